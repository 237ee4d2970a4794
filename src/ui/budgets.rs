//! The budgets: what is spent of each, what will be, and when its limit is reached.

use ratatui::layout::{Position, Rect};

use super::paint::Paint;
use super::scene::Scene;
use crate::app::state::BudgetForm;

pub fn paint(paint: &mut Paint, scene: &Scene, area: Rect) {
    let _ = (paint, scene, area);
}

/// The form of one budget. Returns where a text is being typed.
pub fn paint_form(paint: &mut Paint, scene: &Scene, room: Rect, form: &BudgetForm) -> Option<Position> {
    let _ = (paint, scene, room, form);
    None
}
