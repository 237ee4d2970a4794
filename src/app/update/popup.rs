//! Alerts that pop up: when the window opens, when it hears keys, and what they do.

use jiff::Timestamp;

use crate::app::action::Key;
use crate::app::effect::Effect;
use crate::app::state::{Modal, State};

/// Opens the window when something calls and nothing is open.
pub(super) fn open_when_due(state: &mut State, now: Timestamp) {
    let _ = (state, now);
}

pub(super) fn in_popup(state: &mut State, key: Key, now: Timestamp) -> Vec<Effect> {
    let _ = (key, now);
    if matches!(state.view.modals.last(), Some(Modal::Alerts(_))) {
        state.view.modals.pop();
    }
    vec![]
}
