//! What keys and answers do in the Spend view: other days, other groups, and what stands behind a figure.

use jiff::Timestamp;
use tui_input::InputRequest;

use super::view::say;
use super::windows::edit;
use crate::app::action::{Action, Code, Key};
use crate::app::effect::Effect;
use crate::app::figure::Figure;
use crate::app::listing::Line;
use crate::app::message::Msg;
use crate::app::ranges::{CHOICES, RangeChoice};
use crate::app::state::{Modal, State, Tab};
use crate::rules::spend::{By, Range, date_of};

/// Asks the books for what the view and its window show.
pub fn ask(state: &mut State, now: Timestamp) -> Vec<Effect> {
    if state.view.tab != Tab::Spend {
        return Vec::new();
    }
    let behind = match state.view.modals.last() {
        Some(Modal::Figure(figure)) => Some(figure.question()),
        _ => None,
    };
    state.view.spend.ask(&state.world, behind, now)
}

/// Whether figures are to be made anew before the next frame.
pub fn is_due(state: &State, now: Timestamp) -> bool {
    state.view.tab == Tab::Spend && state.view.spend.is_due(&state.world, now)
}

/// Makes figures and lines anew.
pub fn rebuild(state: &mut State, resort: bool, now: Timestamp) {
    let first = state.view.fixed.currency;
    state.view.spend.rebuild(&state.world, first, resort, now);
}

/// Brings the window over the view up to date with it.
pub fn refresh(state: &mut State, now: Timestamp) {
    let State { world, view, .. } = state;
    let (Some(Modal::Figure(figure)), Some(shown)) = (view.modals.last_mut(), &view.spend.shown) else { return };
    if shown.period == figure.period {
        figure.refresh(&view.spend, world, shown.as_of(), now);
        figure.scroll(0, view.height);
    }
}

/// One range back or forth, not beyond the present one.
pub fn shift(state: &mut State, by: i32, now: Timestamp) {
    let today = date_of(now, &state.world.spending.zone);
    let spend = &mut state.view.spend;
    let back = spend.back.saturating_add(by);
    if spend.range.period(today, back).from <= today {
        spend.back = back;
    } else {
        say(&mut state.view, Msg::NoFuture, now);
    }
}

/// The next grouping.
pub fn group(state: &mut State, now: Timestamp) {
    let spend = &mut state.view.spend;
    let at = By::ALL.iter().position(|by| *by == spend.by).map_or(0, |at| (at + 1) % By::ALL.len());
    spend.by = By::ALL[at];
    let message = Msg::SpendBy(spend.by);
    say(&mut state.view, message, now);
}

pub fn choose_range(state: &mut State) {
    let spend = &state.view.spend;
    let choice = RangeChoice::open(spend.range, spend.back);
    state.view.modals.push(Modal::Range(choice));
}

pub fn in_range(state: &mut State, key: Key, now: Timestamp) -> Vec<Effect> {
    let action = state.view.fixed.keys.action_in(state.view.tab, key);
    let today = date_of(now, &state.world.spending.zone);
    let Some(Modal::Range(choice)) = state.view.modals.last_mut() else { return vec![] };
    let in_field = choice.in_field();
    match (key.code, action) {
        (Code::Esc, _) => drop(state.view.modals.pop()),
        (Code::Enter, _) => {
            let chosen = match CHOICES.get(choice.at) {
                Some(chosen) => Some(*chosen),
                None => choice.typed(today).ok().map(|period| (Range::Days(period), 0)),
            };
            match chosen {
                Some((range, back)) => {
                    (state.view.spend.range, state.view.spend.back) = (range, back);
                    state.view.modals.pop();
                }
                // The window says why.
                None => choice.tried = true,
            }
        }
        (Code::Up | Code::Down, _) => choice.step(if key.code == Code::Up { -1 } else { 1 }),
        // Who begins to type dates means the field.
        (Code::Char(c), _) if !key.ctrl && !key.alt && (in_field || c.is_ascii_digit()) => {
            choice.begin_to_type();
            choice.input.handle(InputRequest::InsertChar(c));
        }
        _ if in_field => {
            choice.untouched = false;
            choice.tried &= !edit(&mut choice.input, key);
        }
        (_, Some(Action::Down)) => choice.step(1),
        (_, Some(Action::Up)) => choice.step(-1),
        (_, Some(Action::First)) => choice.at = 0,
        (_, Some(Action::Last)) => choice.at = CHOICES.len(),
        (_, Some(Action::Range | Action::Quit)) => drop(state.view.modals.pop()),
        _ => {}
    }
    vec![]
}

/// Opens what stands behind the figure under the cursor.
pub fn open(state: &mut State, now: Timestamp) {
    let view = &mut state.view;
    let (Some(Line::Spend(line)), Some(shown)) = (&view.spend.list.cursor, &view.spend.shown) else { return };
    let figure = Figure::new(line.clone(), shown.period);
    view.modals.push(Modal::Figure(Box::new(figure)));
    refresh(state, now);
}

pub fn in_figure(state: &mut State, key: Key) -> Vec<Effect> {
    let action = state.view.fixed.keys.action_in(state.view.tab, key);
    let height = state.view.height;
    let page = i32::try_from(Figure::page(height)).unwrap_or(i32::MAX);
    let by = match action {
        Some(Action::Down) => 1,
        Some(Action::Up) => -1,
        Some(Action::PageDown) => page,
        Some(Action::PageUp) => -page,
        Some(Action::First) => i32::MIN,
        Some(Action::Last) => i32::MAX,
        Some(Action::Times) => {
            state.view.spend.ago = !state.view.spend.ago;
            return vec![];
        }
        _ => {
            state.view.modals.pop();
            return vec![];
        }
    };
    if let Some(Modal::Figure(figure)) = state.view.modals.last_mut() {
        figure.scroll(by, height);
    }
    vec![]
}
