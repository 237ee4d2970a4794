//! Keys and pasted texts: who listens to them, and when a held key acts no more.

use jiff::{SignedDuration, Timestamp};
use providers::text::clean;
use tui_input::{Input, InputRequest};

use super::view::{perform, quit, say};
use super::{answer, budget_form, figures, lease_form, leave_now, popup, save_form, windows};
use crate::app::action::{Action, Code, Key as Pressed};
use crate::app::effect::Effect;
use crate::app::message::Msg;
use crate::app::state::{Listener, Modal, Press, State, Tab, View};

/// The same key within this time of its last event is a key that is being held.
const HELD: SignedDuration = SignedDuration::from_millis(150);

/// The first repeat of a held key comes this late at the latest, as keyboards are set up.
const FIRST_REPEAT: SignedDuration = SignedDuration::from_millis(700);

/// So many characters of a pasted text are taken: nobody searches for more, and each is looked for in every row.
const PASTED: usize = 200;

pub(super) fn pressed(state: &mut State, key: Pressed, now: Timestamp) -> Vec<Effect> {
    if key == Pressed::ctrl('c') {
        return leave_now(state, now);
    }
    let listener = state.view.listener();
    let held = is_held(&state.view, listener, key, now);
    state.view.last_key = Some((key, now));
    state.view.last_press = match state.view.last_press.filter(|_| held) {
        Some(press) => Some(Press { repeated: true, ..press }),
        None => Some(Press { heard_by: listener, repeated: false }),
    };
    state.view.list_mut().touched = true;
    if held {
        return vec![];
    }
    if state.view.is_too_small() {
        return unseen(state, key, now);
    }
    match listener {
        Listener::View if popup::waits(&state.view) => popup::beneath(state, key, now),
        Listener::View => in_view(state, key, now),
        Listener::Filter => windows::in_filter(state, key),
        Listener::Palette => windows::in_palette(state, key, now),
        Listener::NameField => windows::in_name_field(state, key, now),
        Listener::Form => windows::in_assign(state, key, now),
        Listener::Plan => windows::in_plan(state, key, now),
        Listener::Columns => windows::in_columns(state, key),
        Listener::Text => windows::in_text(state, key),
        Listener::Machine => windows::in_machine(state, key, now),
        Listener::Consent => windows::in_consent(state, key, now),
        Listener::HostKey => windows::in_host_key(state, key, now),
        Listener::Range | Listener::RangeField => figures::in_range(state, key, now),
        Listener::Figure => figures::in_figure(state, key),
        Listener::AlertsPopup => popup::in_popup(state, key, now),
        Listener::Snooze => answer::in_snooze(state, key, now),
        Listener::BudgetForm => budget_form::in_form(state, key, now),
        Listener::SaveForm | Listener::SaveField => save_form::in_form(state, key, now),
        Listener::LeaseForm => lease_form::in_form(state, key, now),
        Listener::Idle => answer::in_idle(state, key, now),
        Listener::Leave => match state.view.fixed.keys.action_in(state.view.tab, key) {
            Some(Action::Quit) => leave_now(state, now),
            _ => {
                state.view.modals.pop();
                vec![]
            }
        },
    }
}

/// A key while the window is too small to show what it would do: the ways out, and what takes something back.
fn unseen(state: &mut State, key: Pressed, now: Timestamp) -> Vec<Effect> {
    match state.view.fixed.keys.action_in(state.view.tab, key) {
        // What is under way is told when there is room for it.
        Some(Action::Quit) if matches!(state.view.modals.last(), Some(Modal::Leave)) => leave_now(state, now),
        Some(Action::Quit) => quit(state, now),
        Some(action @ (Action::Suspend | Action::Repaint | Action::TakeBack)) => perform(state, action, now),
        _ => vec![],
    }
}

/// Whether a key acts no more because it is being held: the terminal says so, or only the time between does.
fn is_held(view: &View, listener: Listener, key: Pressed, now: Timestamp) -> bool {
    let same = |before: Pressed| Pressed { repeat: false, ..before } == Pressed { repeat: false, ..key };
    let last = view.last_key.filter(|(before, _)| same(*before));
    // Held down, it is still meant for who heard it first.
    let elsewhere = last.is_some() && view.last_press.is_some_and(|press| press.heard_by != listener);
    let keys = &view.fixed.keys;
    let action = match listener {
        Listener::Plan | Listener::Idle => keys.action_in_plan(key),
        Listener::AlertsPopup => keys.action_in_popup(key),
        _ if listener.is_text_field() => None,
        _ => keys.action_in(view.tab, key),
    };
    if action.is_some_and(Action::moves) || (listener.is_text_field() && !elsewhere) {
        return false;
    }
    let Some((_, at)) = last.filter(|_| !key.repeat) else { return key.repeat };
    // A name may begin with the very letter that opened its field.
    if listener == Listener::NameField {
        return false;
    }
    // In a plan it begins something: the key that opened or turned the plan may still be down.
    let begins = listener == Listener::Plan && action == Some(Action::SaveAndEnd);
    let waits = begins || listener == Listener::Leave || action.is_some_and(Action::toggles);
    // Only the first repeat comes late: what comes late once more was pressed. A plan's other keys are pressed twice on
    // purpose, and their second press begins nothing.
    // The key that asks for a checkpoint first begins it as well.
    let twice = listener == Listener::Plan && action != Some(Action::SaveAndEnd);
    let first = elsewhere && !twice && !view.last_press.is_some_and(|press| press.repeated);
    now.duration_since(at) < if waits || first { FIRST_REPEAT } else { HELD }
}

/// A pasted text goes into a filter or the palette as text, and nowhere else.
pub(super) fn pasted(state: &mut State, text: &str, now: Timestamp) {
    let too_small = state.view.is_too_small();
    let insert = |input: &mut Input| {
        for c in clean(text).chars().take(PASTED) {
            input.handle(InputRequest::InsertChar(c));
        }
    };
    match state.view.modals.last_mut() {
        _ if too_small => {}
        Some(Modal::Filter { input, .. }) => {
            insert(input);
            let filter = input.value().to_owned();
            state.view.list_mut().set_filter(&filter);
        }
        Some(Modal::Assign(form)) => insert(form.field()),
        Some(Modal::HostKey { input, .. }) => insert(input),
        Some(Modal::Budget(form)) => {
            if let Some(input) = form.typing() {
                insert(input);
            }
        }
        Some(Modal::Save(form)) => {
            if let Some(input) = form.field() {
                insert(input);
            }
        }
        Some(Modal::Lease(form)) => {
            if let Some(input) = form.typing() {
                insert(input);
            }
        }
        Some(Modal::Range(choice)) => {
            choice.begin_to_type();
            insert(&mut choice.input);
        }
        Some(Modal::Palette(palette)) => {
            insert(&mut palette.input);
            windows::search(state);
        }
        _ => say(&mut state.view, Msg::PasteIgnored, now),
    }
}

/// The number that a key stands for.
fn digit(key: Pressed) -> Option<u8> {
    match key.code {
        Code::Char(digit @ '1'..='9') => Some(digit as u8 - b'0'),
        _ => None,
    }
}

pub(super) fn in_view(state: &mut State, key: Pressed, now: Timestamp) -> Vec<Effect> {
    if state.view.offers_shown() {
        if let Some(number) = digit(key) {
            let at = state.view.offered.iter().position(|offered| offered.number == number);
            let taken = at.map(|at| state.view.offered.remove(at).variable);
            return taken.map(Effect::AddOffered).into_iter().collect();
        }
        // On to what was added; the others can be written into the config.
        if matches!(key.code, Code::Enter | Code::Esc) && !state.world.fleet.accounts.is_empty() {
            state.view.offered.clear();
            return vec![];
        }
    }
    match state.view.fixed.keys.action_in(state.view.tab, key) {
        Some(action) => perform(state, action, now),
        None => {
            // A key that is known elsewhere is answered; any other is no key of ours.
            let keys = &state.view.fixed.keys;
            if let Some(tab) = Tab::ALL.into_iter().find(|tab| keys.action_in(*tab, key).is_some()) {
                say(&mut state.view, Msg::WorksElsewhere { tab }, now);
            }
            vec![]
        }
    }
}
