//! The form of a budget.

use jiff::Timestamp;

use crate::app::action::Key;
use crate::app::effect::Effect;
use crate::app::state::State;

pub(super) fn in_form(state: &mut State, key: Key, now: Timestamp) -> Vec<Effect> {
    let _ = (key, now);
    state.view.modals.pop();
    vec![]
}
