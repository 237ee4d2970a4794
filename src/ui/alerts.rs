//! Alerts: the list of them, and the window of those that have just fired.

use ratatui::layout::Rect;

use super::paint::Paint;
use super::scene::Scene;
use crate::app::state::AlertsPopup;

pub fn paint(paint: &mut Paint, scene: &Scene, area: Rect) {
    let _ = (paint, scene, area);
}

pub fn paint_popup(paint: &mut Paint, scene: &Scene, room: Rect, popup: &AlertsPopup) {
    let _ = (paint, scene, room, popup);
}
