//! What one screen does with an event, and what an action means in its views.

use jiff::{SignedDuration, Timestamp};
use providers::model::{AccountName, Action as Deed, Identity};
use tui_input::Input;

use super::{
    MESSAGE_STAYS, answer, budget_form, deeds, figures, keys, lease_form, leave_now, mouse, reach, resort, save_form,
    windows, world,
};
use crate::app::action::Action;
use crate::app::effect::Effect;
use crate::app::event::{Guest, Intent, ViewEvent, WorldEvent};
use crate::app::listing::Line;
use crate::app::message::{GroupName, Msg, QuickName, Shown, SortName};
use crate::app::palette::Palette;
use crate::app::rows::{self, GroupKey};
use crate::app::state::{ChartSpan, Modal, Problem, State, Tab, View};
use crate::rules::plan::SaveFirst;
use crate::rules::saga::{OpId, Step};

/// So long after the cursor came to another row by itself a key that ends something may be meant for the one before.
const JUMPED: SignedDuration = SignedDuration::from_millis(500);

pub fn update(state: &mut State, event: ViewEvent, now: Timestamp) -> Vec<Effect> {
    match event {
        ViewEvent::Key(key) => keys::pressed(state, key, now),
        ViewEvent::Paste(text) => {
            keys::pasted(state, &text, now);
            vec![]
        }
        ViewEvent::Mouse(mouse) => mouse::update(state, mouse, now),
        ViewEvent::Returned { from, ended } => {
            match (from, ended) {
                (Guest::Ssh, Ok(())) => {}
                (Guest::Ssh, Err(error)) => say(&mut state.view, Msg::SshFailed { error }, now),
                (Guest::Editor, Ok(())) => say(&mut state.view, Msg::ConfigEdited, now),
                (Guest::Editor, Err(error)) => say(&mut state.view, Msg::EditFailed { error }, now),
            }
            vec![Effect::Repaint]
        }
        ViewEvent::Resize { width, height } => {
            (state.view.width, state.view.height) = (width, height);
            // All of it, also when the size is as before: what was cut off on the way there and back is lost.
            vec![Effect::Repaint]
        }
        ViewEvent::Resumed => vec![Effect::Repaint],
        ViewEvent::PageNotOpened { url, error } => {
            say(&mut state.view, Msg::PageNotOpened { error, url }, now);
            vec![]
        }
        ViewEvent::Spend(answer) => {
            state.view.spend.answered(&answer);
            vec![]
        }
        ViewEvent::TellTerminal { channel, text } => vec![Effect::TellTerminal { channel, text }],
        ViewEvent::NotAdded(error) => {
            say(&mut state.view, Msg::NotAdded { error }, now);
            vec![]
        }
        ViewEvent::PathsFound { identity, found } => {
            save_form::found(state, &identity, found);
            vec![]
        }
        ViewEvent::PathMeasured { identity, path, size } => {
            save_form::measured(state, &identity, &path, size);
            vec![]
        }
        ViewEvent::BudgetSaved { budget, of, ended } => budget_form::saved(state, *budget, of.as_deref(), ended, now),
    }
}

pub(super) fn say(view: &mut View, message: Msg, now: Timestamp) {
    view.message = Some(Shown { message, until: now + MESSAGE_STAYS });
}

/// Does what a key or the palette asks for in the view.
pub(super) fn perform(state: &mut State, action: Action, now: Timestamp) -> Vec<Effect> {
    if state.view.offers_shown() && action.is_about_rows() {
        say(&mut state.view, Msg::NothingSelected, now);
        return vec![];
    }
    let list = state.view.list();
    let jumped = list.cursor_jumped.is_some_and(|at| (SignedDuration::ZERO..JUMPED).contains(&now.duration_since(at)));
    if jumped && matches!(action, Action::StopOrStart | Action::End | Action::SaveAndEnd) && list.marks.is_empty() {
        say(&mut state.view, Msg::RowJustChanged, now);
        return vec![];
    }
    if state.view.tab == Tab::Alerts && answer::is_about_an_alert(action) {
        return answer::perform(state, answer::under_cursor(state), action, now);
    }
    match action {
        Action::Quit => return quit(state, now),
        Action::Suspend => return vec![Effect::Suspend],
        Action::Repaint => return vec![Effect::Repaint],
        Action::Refresh => return intend(state, Intent::Refresh, now),
        Action::Help => state.view.modals.push(Modal::Help { scroll: 0 }),
        Action::Palette => {
            let palette = Palette::open(state);
            state.view.modals.push(Modal::Palette(palette));
        }
        Action::LookInto => windows::ask_consent(state, now),
        Action::Columns => state.view.modals.push(Modal::Columns { at: 0 }),
        Action::EditConfig if state.view.fixed.demo => say(&mut state.view, Msg::NoConfigInDemo, now),
        Action::EditConfig => return vec![Effect::EditConfig],
        Action::Problem => problem(state, now),
        Action::ShowFleet => show(state, Tab::Fleet),
        Action::ShowSpend => show(state, Tab::Spend),
        Action::ShowStorage => show(state, Tab::Storage),
        Action::ShowBudgets => show(state, Tab::Budgets),
        Action::ShowAlerts => show(state, Tab::Alerts),
        Action::ShowActivity => show(state, Tab::Activity),
        Action::NextView => {
            let tab = next(&Tab::ALL, state.view.tab);
            show(state, tab);
        }
        Action::Back => return back(state, now),
        Action::Down => step(&mut state.view, 1),
        Action::Up => step(&mut state.view, -1),
        Action::PageDown => {
            let page = page(&state.view);
            step(&mut state.view, page);
        }
        Action::PageUp => {
            let page = page(&state.view);
            step(&mut state.view, -page);
        }
        Action::First | Action::Last => {
            step(&mut state.view, if action == Action::First { isize::MIN } else { isize::MAX });
            // Wherever it had come to, it is now where it was sent.
            state.view.list_mut().cursor_jumped = None;
        }
        Action::Fold => fold(&mut state.view, true),
        Action::Unfold => fold(&mut state.view, false),
        Action::Earlier => figures::shift(state, 1, now),
        Action::Later => figures::shift(state, -1, now),
        Action::Range if state.view.tab == Tab::Fleet => further_back(&mut state.view),
        Action::Range => figures::choose_range(state),
        Action::Times => {
            state.view.spend.ago = !state.view.spend.ago;
            let message = Msg::TimesAgo(state.view.spend.ago);
            say(&mut state.view, message, now);
        }
        Action::Mark => mark(state, now),
        Action::Details => details(state, now),
        Action::Pane => state.view.details = !state.view.details,
        Action::Filter => {
            let before = state.view.list().filter_text.clone();
            state.view.modals.push(Modal::Filter { input: Input::new(before.clone()), before });
        }
        Action::Sort => {
            let orders: &[SortName] = match state.view.tab {
                Tab::Storage => &[SortName::Attention, SortName::Cost, SortName::Size, SortName::Age, SortName::Name],
                _ => {
                    &[SortName::Attention, SortName::Cost, SortName::Use, SortName::Idle, SortName::Age, SortName::Name]
                }
            };
            let order = next(orders, state.view.list().sort);
            sort_by(state, order, false, now);
        }
        Action::Group if state.view.tab == Tab::Spend => figures::group(state, now),
        Action::Group => {
            let names =
                [GroupName::Account, GroupName::Provider, GroupName::Project, GroupName::Market, GroupName::None];
            let group = next(&names, rows::grouping(&state.world, &state.view.fleet));
            state.view.fleet.group = Some(group);
            resort(state, now);
            say(&mut state.view, Msg::GroupedBy(group), now);
        }
        Action::Quick => {
            let names = [QuickName::All, QuickName::Idle, QuickName::Spot, QuickName::Off];
            let quick = next(&names, state.view.fleet.quick);
            state.view.fleet.quick = quick;
            resort(state, now);
            say(&mut state.view, Msg::QuickFilter(quick), now);
        }
        Action::StopOrStart => return deeds::stop_or_start(state, now),
        Action::End => return deeds::end(state, now),
        Action::Checkpoint => return deeds::propose(state, Deed::Checkpoint, SaveFirst::ByConfig, now),
        Action::SaveAndEnd => return deeds::propose(state, Deed::Release, SaveFirst::ByConfig, now),
        Action::Lease => lease_form::open(state, now),
        Action::TakeBack => {
            let op = deeds::takeable_here(state);
            return intend(state, Intent::TakeBack(op), now);
        }
        Action::Protect => return deeds::toggle(state, now, true),
        Action::Mine => return deeds::toggle(state, now, false),
        Action::Project => windows::ask_project(state, now),
        Action::Seen => return note(state, now),
        Action::Page => return reach::open_page(state, now),
        Action::Ssh => return reach::ssh(state, now),
        Action::CopySsh => return reach::copy_ssh(state, now),
        Action::AllIdle => return answer::all_idle(state, now),
        Action::NewBudget => budget_form::open(state, None, now),
        // In the Alerts view alone.
        Action::Snooze | Action::SeenAll => {}
        Action::Confirm => {}
    }
    vec![]
}

pub(super) fn show(state: &mut State, tab: Tab) {
    if tab == Tab::Spend && state.view.tab != tab {
        state.view.spend.opened();
    }
    state.view.tab = tab;
}

/// Sorts anew, by a key or by a click on the head of a column.
pub(super) fn sort_by(state: &mut State, order: SortName, reversed: bool, now: Timestamp) {
    let list = state.view.list_mut();
    (list.sort, list.reversed) = (order, reversed);
    resort(state, now);
    say(&mut state.view, Msg::SortedBy { order, reversed }, now);
}

fn next<T: Copy + PartialEq>(all: &[T], now: T) -> T {
    let at = all.iter().position(|one| *one == now).map_or(0, |at| (at + 1) % all.len());
    all[at]
}

pub(super) fn intend(state: &mut State, intent: Intent, now: Timestamp) -> Vec<Effect> {
    world::update(&mut state.world, WorldEvent::Intent(intent), now)
}

pub(super) fn quit(state: &mut State, now: Timestamp) -> Vec<Effect> {
    if state.world.under_way().next().is_some() {
        state.view.modals.push(Modal::Leave);
        return vec![];
    }
    leave_now(state, now)
}

/// Esc undoes one thing at a time, the most urgent first.
fn back(state: &mut State, now: Timestamp) -> Vec<Effect> {
    let countdown = state.world.under_way().any(|operation| matches!(operation.step, Step::Countdown { .. }));
    if countdown {
        return intend(state, Intent::TakeBack(None), now);
    }
    let list = state.view.list_mut();
    if !list.marks.is_empty() {
        list.marks.clear();
    } else if list.is_filtered() || !list.filter_text.is_empty() {
        list.show_all();
        resort(state, now);
    } else {
        state.view.tab = Tab::Fleet;
    }
    vec![]
}

pub(super) fn page(view: &View) -> isize {
    isize::from(view.body_height() as i16).max(2) - 1
}

pub(super) fn step(view: &mut View, by: isize) {
    let list = view.list_mut();
    let Some(last) = list.lines.len().checked_sub(1) else { return };
    let at = list.cursor_at().unwrap_or(0).saturating_add_signed(by).min(last);
    list.go_to(at);
}

fn fold(view: &mut View, fold: bool) {
    let list = view.list();
    let key = match &list.cursor {
        Some(Line::Group(key)) => Some(key.clone()),
        Some(Line::Resource(_)) if fold => {
            let at = list.cursor_at().unwrap_or(0);
            list.lines[..=at].iter().rev().find_map(|line| match line {
                Line::Group(key) => Some(key.clone()),
                _ => None,
            })
        }
        _ => None,
    };
    let Some(key) = key else { return };
    fold_group(view, key, fold);
}

fn fold_group(view: &mut View, key: GroupKey, fold: bool) {
    let list = view.list_mut();
    if fold {
        list.folded.insert(key.clone());
        list.cursor = Some(Line::Group(key));
    } else {
        list.folded.remove(&key);
    }
    list.stale = true;
}

fn mark(state: &mut State, now: Timestamp) {
    let list = state.view.list_mut();
    let Some(identity) = list.selected().cloned() else {
        return say(&mut state.view, Msg::NothingSelected, now);
    };
    if !list.marks.remove(&identity) {
        list.marks.insert(identity);
    }
    step(&mut state.view, 1);
}

pub(super) fn details(state: &mut State, now: Timestamp) {
    if state.view.tab == Tab::Spend {
        return figures::open(state, now);
    }
    let view = &mut state.view;
    match view.list().cursor.clone() {
        Some(Line::Group(key)) => {
            let folded = view.list().folded.contains(&key);
            fold_group(view, key, !folded);
        }
        Some(Line::Resource(identity)) if view.tab == Tab::Fleet => {
            view.modals.push(Modal::Machine { identity, scroll: 0 });
        }
        Some(Line::Budget(name)) => budget_form::open(state, Some(&name), now),
        Some(Line::Alert(..)) => {
            if let Some(alert) = answer::under_cursor(state) {
                answer::go_there(state, &alert, now);
            }
        }
        _ => view.details = !view.details,
    }
}

/// The charts reach back to the next span.
pub(super) fn further_back(view: &mut View) {
    view.chart = next(&ChartSpan::ALL, view.chart);
}

/// What was told is known: of accounts that are watched no longer, so far.
fn note(state: &mut State, now: Timestamp) -> Vec<Effect> {
    if state.world.spending.unwatched.is_empty() {
        say(&mut state.view, Msg::NothingToNote, now);
        return vec![];
    }
    let effects = intend(state, Intent::NoteUnwatched, now);
    if !effects.is_empty() {
        say(&mut state.view, Msg::Noted, now);
    }
    effects
}

fn problem(state: &mut State, now: Timestamp) {
    let list = state.view.list();
    let under_cursor = match &list.cursor {
        Some(Line::Resource(identity)) => Some(identity.account.clone()),
        Some(Line::Group(GroupKey::Account(account))) => Some(account.clone()),
        _ => None,
    };
    let of_action = match &list.cursor {
        Some(Line::Operation(op)) => Some(*op),
        Some(Line::Resource(identity)) => latest_trouble(state, identity),
        _ => None,
    };
    let troubled =
        |name: &AccountName| state.world.fleet.account(name).is_some_and(crate::rules::fleet::Account::needs_a_look);
    // What was just said first: it is what somebody has seen.
    let said = state.view.message.as_ref().filter(|shown| shown.message.is_bad()).map(|shown| shown.message.clone());
    let of_alert = answer::under_cursor(state).filter(|_| state.view.tab == Tab::Alerts);
    let about = said
        .map(Problem::Message)
        .or(of_alert.map(|alert| answer::problem_of(state, &alert)))
        .or(of_action.map(Problem::Operation))
        .or_else(|| under_cursor.filter(troubled).map(Problem::Account))
        .or_else(|| {
            let mut all = state.world.fleet.accounts.iter().map(|account| &account.name);
            all.find(|name| troubled(name)).cloned().map(Problem::Account)
        });
    match about {
        Some(about) => problem_window(state, about),
        None => say(&mut state.view, Msg::NoProblem, now),
    }
}

pub(super) fn problem_window(state: &mut State, about: Problem) {
    state.view.modals.push(Modal::Problem { about, scroll: 0 });
}

/// The last action on a resource, when it is overdue or did not do what it should.
fn latest_trouble(state: &State, identity: &Identity) -> Option<OpId> {
    let mut operations = state.world.operations.values().rev();
    let latest = operations.find(|operation| operation.target.identity == *identity)?;
    let failed = matches!(&latest.step, Step::Ended { outcome, .. } if outcome.is_bad());
    (failed || latest.is_overdue()).then_some(latest.id)
}
