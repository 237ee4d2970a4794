//! The mouse: a click selects, a second one opens, the wheel scrolls, a click on a head sorts. It never stops
//! or ends anything.

use jiff::{SignedDuration, Timestamp};

use super::popup;
use super::view::{details, sort_by, step};
use super::windows::scroll_text;
use crate::app::action::{Mouse, MouseKind};
use crate::app::effect::Effect;
use crate::app::layout::Spot;
use crate::app::state::{Listener, Modal, Question, State, Tab};

/// Two clicks on one line within this time open it.
const DOUBLE: SignedDuration = SignedDuration::from_millis(400);
/// Lines that one notch of the wheel goes.
const NOTCH: i32 = 3;

pub fn update(state: &mut State, mouse: Mouse, now: Timestamp) -> Vec<Effect> {
    // A terminal may go on reporting what another program asked it for.
    if !state.view.fixed.mouse || state.view.is_too_small() {
        return vec![];
    }
    state.view.last_mouse = Some(now);
    match mouse.kind {
        MouseKind::Press => pressed(state, mouse, now),
        MouseKind::WheelUp => wheel(state, -NOTCH),
        MouseKind::WheelDown => wheel(state, NOTCH),
        MouseKind::Release => {}
    }
    vec![]
}

fn wheel(state: &mut State, by: i32) {
    match state.view.listener() {
        Listener::View if state.view.offers_shown() => {}
        Listener::View => {
            state.view.list_mut().touched = true;
            step(&mut state.view, by as isize);
        }
        Listener::Text | Listener::Machine | Listener::Idle => scroll_text(state, by),
        Listener::Figure => {
            let height = state.view.height;
            if let Some(Modal::Figure(figure)) = state.view.modals.last_mut() {
                figure.scroll(by, height);
            }
        }
        Listener::AlertsPopup => popup::step(&mut state.view, by.signum() as isize),
        Listener::Plan => {
            if let Some(Modal::Plan(Question { plan, scroll, .. })) = state.view.modals.last_mut() {
                let last = plan.targets.len().saturating_sub(1);
                *scroll = scroll.saturating_add_signed(by as isize).min(last);
            }
        }
        Listener::Filter
        | Listener::Palette
        | Listener::NameField
        | Listener::Form
        | Listener::Columns
        | Listener::Range
        | Listener::RangeField
        | Listener::Consent
        | Listener::HostKey
        | Listener::Snooze
        | Listener::BudgetForm
        | Listener::SaveForm
        | Listener::SaveField
        | Listener::LeaseForm
        | Listener::Leave => {}
    }
}

fn pressed(state: &mut State, mouse: Mouse, now: Timestamp) {
    // A window covers what lies below it, and its own answers are keys.
    if !state.view.modals.is_empty() || state.view.offers_shown() {
        return;
    }
    match state.view.frame().spot(state.view.width, mouse.column, mouse.row) {
        Spot::Line(row) => clicked(state, usize::from(row), now),
        Spot::Head if state.view.tab == Tab::Fleet => {
            if let Some(order) = state.view.fleet_columns(&state.world).sort_at(mouse.column) {
                let again = state.view.fleet.sort == order;
                let reversed = again && !state.view.fleet.reversed;
                sort_by(state, order, reversed, now);
            }
        }
        Spot::Head | Spot::Elsewhere => {}
    }
}

fn clicked(state: &mut State, row: usize, now: Timestamp) {
    let list = state.view.list_mut();
    let at = list.top + row;
    let Some(line) = list.lines.get(at).cloned() else { return };
    list.touched = true;
    list.go_to(at);
    // It is where it was pointed to.
    list.cursor_jumped = None;
    let before = state.view.last_click.replace((line.clone(), now));
    if before.is_some_and(|(clicked, at)| clicked == line && now.duration_since(at) < DOUBLE) {
        state.view.last_click = None;
        details(state, now);
    }
}
