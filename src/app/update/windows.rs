//! Keys in windows: a plan, its field, the filter, the palette, the columns, and texts that scroll.

use jiff::{SignedDuration, Timestamp};
use providers::model::{AccountName, Action as Deed, Identity};
use providers::text::clean;
use tui_input::{Input, InputRequest};

use super::deeds::{Asked, begin, make_plan, saving_instead};
use super::rebuild;
use super::view::{further_back, intend, perform, say, step};
use crate::app::action::{Action, Code, Key};
use crate::app::columns::Optional;
use crate::app::effect::Effect;
use crate::app::event::Intent;
use crate::app::listing::Line;
use crate::app::message::Msg;
use crate::app::palette::{Entry, view_of};
use crate::app::rows::GroupKey;
use crate::app::state::{ACCEPT, AssignForm, Modal, Question, State, Tab};
use crate::rules::memory::Collector;
use crate::rules::plan::{Confirmation, shown_name};
use crate::rules::saga::{Confirmed, confirm};
use crate::rules::spend::{Assignment, From};
use crate::rules::streams::Consent;

/// So long after a question became another one, an answer may be meant for the one before.
const READING: SignedDuration = SignedDuration::from_millis(700);

fn question(state: &mut State) -> Option<&mut Question> {
    match state.view.modals.last_mut() {
        Some(Modal::Plan(question)) => Some(question),
        _ => None,
    }
}

pub(super) fn in_plan(state: &mut State, key: Key, now: Timestamp) -> Vec<Effect> {
    let meaning = state.view.fixed.keys.action_in_plan(key);
    let Some(question) = question(state) else { return vec![] };
    let plan = &question.plan;
    let last = plan.targets.len().saturating_sub(1);
    let again = match plan.action {
        Deed::Stop | Deed::Start => Action::StopOrStart,
        Deed::Release | Deed::Delete | Deed::Restart => Action::End,
        Deed::Checkpoint => Action::Checkpoint,
    };
    let answers = !plan.targets.is_empty() && question.changed.is_none_or(|at| now.duration_since(at) >= READING);
    let loses = plan.targets.iter().any(|target| target.effect.loses_data());
    match (meaning, &plan.confirmation) {
        (Some(Action::Back), _) => {
            state.view.modals.pop();
        }
        (Some(Action::Down), _) => question.scroll = (question.scroll + 1).min(last),
        (Some(Action::Up), _) => question.scroll = question.scroll.saturating_sub(1),
        _ if !answers => {}
        (Some(Action::Confirm), Confirmation::Countdown) => return begin_asked(state, now),
        (Some(Action::SaveAndEnd), Confirmation::Save) => return begin_asked(state, now),
        // What is not in the copy is lost: a yes by habit is not enough.
        (Some(Action::Confirm), Confirmation::Save) if !loses => return begin_asked(state, now),
        (Some(action), Confirmation::Save) if action == again && plan.action != Deed::Checkpoint => {
            ask_instead(state, now);
        }
        (Some(Action::SaveAndEnd), Confirmation::Typed(_)) => save_instead(state, now),
        (Some(action), Confirmation::Typed(_)) if action == again => question.field = Some(Input::default()),
        _ => {}
    }
    vec![]
}

/// What was asked about begins.
fn begin_asked(state: &mut State, now: Timestamp) -> Vec<Effect> {
    match state.view.modals.pop() {
        Some(Modal::Plan(question)) => begin(state, *question.plan, None, now),
        _ => vec![],
    }
}

/// Asks about the same with everything brought to safety first, where that can be.
fn save_instead(state: &mut State, now: Timestamp) {
    let Some(Modal::Plan(question)) = state.view.modals.last() else { return };
    let Some(plan) = saving_instead(state, question, now) else { return };
    match (plan.targets.is_empty(), plan.left_out.into_iter().next()) {
        (true, Some((_, name, hindrance))) => {
            say(&mut state.view, Msg::LeftOut { name, action: plan.action, hindrance }, now);
        }
        _ => ask_instead(state, now),
    }
}

/// The open question becomes the other one about the same resources: with or without a checkpoint first.
fn ask_instead(state: &mut State, now: Timestamp) {
    let Some(Modal::Plan(question)) = state.view.modals.last() else { return };
    let asked = Asked { action: question.plan.action, save: &question.instead, bulk: question.bulk };
    let plan = make_plan(state, asked, &question.asked, now);
    if let Some(question) = self::question(state) {
        std::mem::swap(&mut question.save, &mut *question.instead);
        (*question.plan, question.scroll) = (plan, 0);
    }
}

pub(super) fn in_name_field(state: &mut State, key: Key, now: Timestamp) -> Vec<Effect> {
    let Some(question) = question(state) else { return vec![] };
    let Some(input) = &mut question.field else { return vec![] };
    match key.code {
        Code::Esc => question.field = None,
        Code::Enter => {
            let typed = input.value().trim().to_owned();
            if matches!(confirm(&question.plan, Some(&typed)), Confirmed::Yes(_)) {
                let plan = (*question.plan).clone();
                state.view.modals.pop();
                return begin(state, plan, Some(&typed), now);
            }
        }
        _ => drop(edit(input, key)),
    }
    vec![]
}

/// Looks whether an open question still asks what it asked: rows re-sort, vanish and change under it. When it
/// does not, it is asked anew.
pub(super) fn review_question(state: &mut State, now: Timestamp) {
    let question = match state.view.modals.last() {
        Some(Modal::Plan(question)) => question,
        Some(Modal::Idle(_)) => return super::answer::review_idle(state, now),
        _ => return,
    };
    let asked = Asked { action: question.plan.action, save: &question.save, bulk: question.bulk };
    let fresh = make_plan(state, asked, &question.asked, now);
    let Some(question) = self::question(state) else { return };
    if !question.plan.asks_the_same(&fresh) {
        question.changed = Some(now);
        question.field = None;
        question.scroll = 0;
    }
    *question.plan = fresh;
}

pub(super) fn in_filter(state: &mut State, key: Key) -> Vec<Effect> {
    let wrong = state.view.list().filter_error.is_some();
    let Some(Modal::Filter { input, before }) = state.view.modals.last_mut() else { return vec![] };
    match key.code {
        Code::Esc => {
            let before = std::mem::take(before);
            state.view.modals.pop();
            state.view.list_mut().set_filter(&before);
        }
        // What cannot be read is not kept: the field says why.
        Code::Enter if wrong => {}
        Code::Enter => {
            state.view.modals.pop();
        }
        Code::Up | Code::Down => step(&mut state.view, if key.code == Code::Up { -1 } else { 1 }),
        _ => {
            if edit(input, key) {
                let filter = input.value().to_owned();
                state.view.list_mut().set_filter(&filter);
            }
        }
    }
    vec![]
}

/// Opens the form that asks to which project the spend of what is pointed at belongs.
pub(super) fn ask_project(state: &mut State, now: Timestamp) {
    let asked = state.view.list().pointed();
    if asked.is_empty() {
        return say(&mut state.view, Msg::NothingSelected, now);
    }
    let single = |identity: &Identity| state.world.settings.single.get(identity)?.project.clone();
    let project = asked.first().and_then(single).unwrap_or_default();
    let form = AssignForm {
        asked,
        project: Input::new(project),
        from: Input::new("now".to_owned()),
        in_from: false,
        untouched: true,
        wrong: false,
    };
    state.view.modals.push(Modal::Assign(form));
}

pub(super) fn in_assign(state: &mut State, key: Key, now: Timestamp) -> Vec<Effect> {
    let zone = state.world.spending.zone.clone();
    let Some(Modal::Assign(form)) = state.view.modals.last_mut() else { return vec![] };
    match key.code {
        Code::Esc => {
            state.view.modals.pop();
        }
        Code::Tab | Code::BackTab | Code::Up | Code::Down => form.in_from = !form.in_from,
        Code::Enter => {
            let Some(from) = From::read(form.from.value(), &zone, now) else {
                (form.wrong, form.in_from) = (true, true);
                return vec![];
            };
            let project = Some(clean(form.project.value())).filter(|project| !project.is_empty());
            let asked = std::mem::take(&mut form.asked);
            state.view.modals.pop();
            return assign(state, asked, project, from, now);
        }
        Code::Char(c) if !key.ctrl && !key.alt => {
            form.field().handle(InputRequest::InsertChar(c));
            form.wrong = false;
        }
        _ => {
            form.untouched &= !form.in_from;
            let field = if form.in_from { &mut form.from } else { &mut form.project };
            if edit(field, key) {
                form.wrong = false;
            }
        }
    }
    vec![]
}

fn assign(state: &mut State, asked: Vec<Identity>, project: Option<String>, from: From, now: Timestamp) -> Vec<Effect> {
    let count = asked.len();
    let from = from.time();
    let assignment = |identity| Intent::Assign(Assignment { identity, from, project: project.clone() });
    let effects: Vec<Effect> =
        asked.into_iter().flat_map(|identity| intend(state, assignment(identity), now)).collect();
    if !effects.is_empty() {
        state.view.list_mut().marks.clear();
        say(&mut state.view, Msg::Assigned { count, project }, now);
    }
    effects
}

pub(super) fn in_palette(state: &mut State, key: Key, now: Timestamp) -> Vec<Effect> {
    let Some(Modal::Palette(palette)) = state.view.modals.last_mut() else { return vec![] };
    let last = palette.found.len().saturating_sub(1);
    match (key.code, key.ctrl) {
        (Code::Esc, _) => {
            state.view.modals.pop();
        }
        (Code::Up, _) | (Code::Char('p'), true) => palette.at = palette.at.saturating_sub(1),
        (Code::Down, _) | (Code::Char('n'), true) => palette.at = (palette.at + 1).min(last),
        (Code::Enter, _) => {
            let chosen = palette.found.get(palette.at).map(|found| found.entry.clone());
            let about = std::mem::take(&mut palette.about);
            state.view.modals.pop();
            match chosen {
                Some(Entry::Action(action)) if action.is_about_rows() && state.view.list().pointed() != about => {
                    say(&mut state.view, Msg::RowGone, now);
                }
                Some(Entry::Action(action)) => return perform(state, action, now),
                Some(Entry::Row(identity)) => go_to_row(state, &identity, now),
                None => {}
            }
        }
        _ => {
            if edit(&mut palette.input, key) {
                search(state);
            }
        }
    }
    vec![]
}

/// Puts the cursor on a row; what hides it is taken away.
pub(super) fn go_to_row(state: &mut State, identity: &Identity, now: Timestamp) {
    state.view.tab = view_of(identity);
    if state.view.tab == Tab::Fleet {
        state.view.offered.clear();
    }
    let line = Line::Resource(identity.clone());
    rebuild(state, false, now);
    let list = state.view.list_mut();
    list.touched = true;
    if !list.lines.contains(&line) {
        list.folded.clear();
        list.show_all();
        rebuild(state, false, now);
    }
    let list = state.view.list_mut();
    if list.lines.contains(&line) {
        list.cursor = Some(line);
        list.cursor_jumped = None;
        return;
    }
    // Storage that something at work uses, or that costs nothing, stands in no list.
    let known = state.world.fleet.storage.get(identity).filter(|known| !known.is_gone());
    let message = match known {
        Some(known) => Msg::NotListed { name: shown_name(known.row.name.as_deref(), &identity.id) },
        None => Msg::RowGone,
    };
    say(&mut state.view, message, now);
}

/// Finds anew what fits the palette's text.
pub(super) fn search(state: &mut State) {
    // It looks at the state that it is a part of.
    let Some(Modal::Palette(mut palette)) = state.view.modals.pop() else { return };
    palette.search(state);
    state.view.modals.push(Modal::Palette(palette));
}

pub(super) fn in_columns(state: &mut State, key: Key) -> Vec<Effect> {
    let action = state.view.fixed.keys.action_in(state.view.tab, key);
    let choice = &mut state.view.columns;
    let Some(Modal::Columns { at }) = state.view.modals.last_mut() else { return vec![] };
    let last = Optional::ALL.len() - 1;
    match (action, key.code) {
        (Some(Action::Down), _) => *at = (*at + 1).min(last),
        (Some(Action::Up), _) => *at = at.saturating_sub(1),
        (_, Code::Char(' ')) => choice.toggle(choice.order[*at]),
        (_, Code::Char('-')) if *at > 0 => {
            choice.order.swap(*at, *at - 1);
            *at -= 1;
        }
        (_, Code::Char('+')) if *at < last => {
            choice.order.swap(*at, *at + 1);
            *at += 1;
        }
        (_, Code::Char('+' | '-')) => {}
        _ => {
            state.view.modals.pop();
        }
    }
    vec![]
}

/// One key in a line of text. True when the text may have changed.
pub(super) fn edit(input: &mut Input, key: Key) -> bool {
    let request = match (key.code, key.ctrl) {
        (Code::Char('a'), true) | (Code::Home, _) => InputRequest::GoToStart,
        (Code::Char('e'), true) | (Code::End, _) => InputRequest::GoToEnd,
        (Code::Char('u'), true) => InputRequest::DeleteLine,
        (Code::Char('w'), true) => InputRequest::DeletePrevWord,
        (Code::Char('h'), true) | (Code::Backspace, _) => InputRequest::DeletePrevChar,
        (Code::Char('k'), true) => InputRequest::DeleteTillEnd,
        (Code::Delete, _) => InputRequest::DeleteNextChar,
        (Code::Left, _) => InputRequest::GoToPrevChar,
        (Code::Right, _) => InputRequest::GoToNextChar,
        (Code::Char(c), false) if !key.alt => InputRequest::InsertChar(c),
        _ => return false,
    };
    input.handle(request).is_some_and(|change| change.value)
}

/// Opens what the row under the cursor asks: a host key that changed, else whether machines may be looked into: those
/// of the account that was never asked about, else those of the row's own, whatever was said before.
pub(super) fn ask_consent(state: &mut State, now: Timestamp) {
    let changed = state.view.list().selected().filter(|identity| state.world.streams.alarm(identity).is_some());
    if let Some(identity) = changed.cloned() {
        return state.view.modals.push(Modal::HostKey { identity, input: Input::default() });
    }
    if state.view.fixed.demo {
        return say(&mut state.view, Msg::NoSshInDemo, now);
    }
    if let Some(Collector::Other { owner, .. }) = &state.world.collector {
        let message = Msg::OnlyLooking { host: owner.host.clone(), pid: owner.pid };
        return say(&mut state.view, message, now);
    }
    let of_row = || match state.view.list().cursor.as_ref()? {
        Line::Resource(identity) => Some(identity.account.clone()),
        Line::Group(GroupKey::Account(account)) => Some(account.clone()),
        _ => None,
    };
    let reached = |account: &AccountName| {
        let mut machines = state.world.fleet.instances_of(account);
        machines.any(|known| known.row.ssh.as_ref().is_some_and(|endpoint| endpoint.direct))
    };
    let unasked = state.view.unasked.as_ref().map(|(account, _)| account.clone());
    match unasked.or_else(|| of_row().filter(reached)) {
        Some(account) => state.view.modals.push(Modal::Consent { account }),
        None => say(&mut state.view, Msg::NothingToLookInto, now),
    }
}

pub(super) fn in_consent(state: &mut State, key: Key, now: Timestamp) -> Vec<Effect> {
    let Some(Modal::Consent { account }) = state.view.modals.last() else { return vec![] };
    let account = account.clone();
    let consent = match key.code {
        _ if key.ctrl || key.alt => return vec![],
        Code::Char('y') => Consent::Yes,
        Code::Char('a') => Consent::Always,
        Code::Char('n') => Consent::No,
        Code::Char('N') => Consent::Never,
        Code::Esc | Code::Char('q') => {
            state.view.modals.pop();
            return vec![];
        }
        _ => return vec![],
    };
    state.view.modals.pop();
    let message = Msg::LooksInto { account: account.to_string(), consent };
    say(&mut state.view, message, now);
    // The next account may have its question now.
    state.view.fleet.stale = true;
    intend(state, Intent::Consent { account, consent }, now)
}

pub(super) fn in_host_key(state: &mut State, key: Key, now: Timestamp) -> Vec<Effect> {
    let Some(Modal::HostKey { identity, input }) = state.view.modals.last_mut() else { return vec![] };
    match key.code {
        Code::Esc => {
            state.view.modals.pop();
        }
        Code::Enter if input.value().trim() == ACCEPT => {
            let identity = identity.clone();
            state.view.modals.pop();
            let known = state.world.fleet.instances.get(&identity);
            let name = shown_name(known.and_then(|known| known.row.name.as_deref()), &identity.id);
            say(&mut state.view, Msg::HostKeyAccepted { name }, now);
            return intend(state, Intent::AcceptHostKey(identity), now);
        }
        Code::Enter => {}
        _ => drop(edit(input, key)),
    }
    vec![]
}

pub(super) fn in_machine(state: &mut State, key: Key, now: Timestamp) -> Vec<Effect> {
    let Some(Modal::Machine { identity, .. }) = state.view.modals.last() else { return vec![] };
    match state.view.fixed.keys.action_in(state.view.tab, key) {
        Some(Action::Range) => {
            further_back(&mut state.view);
            vec![]
        }
        // What can be done to the row can be done from here, as long as it is the same row.
        Some(action)
            if action.is_about_rows() && !matches!(action, Action::Details | Action::Fold | Action::Unfold) =>
        {
            let same = state.view.list().pointed() == [identity.clone()];
            state.view.modals.pop();
            if !same {
                say(&mut state.view, Msg::RowGone, now);
                return vec![];
            }
            perform(state, action, now)
        }
        _ => in_text(state, key),
    }
}

pub(super) fn in_text(state: &mut State, key: Key) -> Vec<Effect> {
    // A text's window takes nearly the whole height.
    let page = i32::from(state.view.height.saturating_sub(8).max(2));
    let by = match state.view.fixed.keys.action_in(state.view.tab, key) {
        Some(Action::Down) => 1,
        Some(Action::Up) => -1,
        Some(Action::PageDown) => page,
        Some(Action::PageUp) => -page,
        Some(Action::First) => i32::from(i16::MIN),
        Some(Action::Last) => i32::from(i16::MAX),
        _ => {
            state.view.modals.pop();
            return vec![];
        }
    };
    scroll_text(state, by);
    vec![]
}

/// Takes over the first line that the window over a text showed: only the painter knows where that text ends,
/// and a scroll beyond it would have to be taken back before anything moves again.
pub fn painted(state: &mut State, text_top: Option<u16>) {
    let Some(top) = text_top else { return };
    if let Some(scroll) = scroll_of(state) {
        *scroll = top;
    }
}

/// The first line of the window over a long text, where there is one.
fn scroll_of(state: &mut State) -> Option<&mut u16> {
    match state.view.modals.last_mut()? {
        Modal::Help { scroll } | Modal::Problem { scroll, .. } | Modal::Machine { scroll, .. } => Some(scroll),
        Modal::Idle(list) => Some(&mut list.scroll),
        _ => None,
    }
}

pub(super) fn scroll_text(state: &mut State, by: i32) {
    if let Some(scroll) = scroll_of(state) {
        *scroll = (i32::from(*scroll) + by).clamp(0, i32::from(i16::MAX)) as u16;
    }
}
