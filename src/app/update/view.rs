//! What one screen does with an event: keys find their listener, the topmost window first.

use jiff::{SignedDuration, Timestamp};
use providers::model::{Action as Deed, Identity, Phase};
use providers::text::clean;
use tui_input::{Input, InputRequest};

use super::{MESSAGE_STAYS, leave_now, world};
use crate::app::action::{Action, Code, Key};
use crate::app::effect::Effect;
use crate::app::event::{Intent, ViewEvent, WorldEvent};
use crate::app::keymap;
use crate::app::message::{GroupName, Msg, QuickName, Shown, SortName};
use crate::app::rows::{self, GroupKey, Line};
use crate::app::state::{Modal, State, Tab, View};
use crate::rules::memory::Collector;
use crate::rules::plan::{self, Basis, Confirmation, Plan};
use crate::rules::saga::{Confirmed, Step, confirm};
use crate::rules::settings::Setting;

/// The same key within this time of its last event is a key that is being held.
const HELD: SignedDuration = SignedDuration::from_millis(150);

/// So long after the cursor came to another row by itself a key that ends something may be meant for the one before.
const JUMPED: SignedDuration = SignedDuration::from_millis(500);

pub fn update(state: &mut State, event: ViewEvent, now: Timestamp) -> Vec<Effect> {
    match event {
        ViewEvent::Key(key) => pressed(state, key, now),
        ViewEvent::Paste(text) => {
            pasted(state, &text, now);
            vec![]
        }
        ViewEvent::Mouse(_) => vec![],
        ViewEvent::SshEnded(ended) => {
            if let Err(error) = ended {
                say(&mut state.view, Msg::SshFailed { error }, now);
            }
            vec![Effect::Repaint]
        }
        ViewEvent::Resize { width, height } => {
            (state.view.width, state.view.height) = (width, height);
            keep_cursor(&mut state.view);
            // All of it, also when the size is as before: what was cut off on the way there and back is lost.
            vec![Effect::Repaint]
        }
        ViewEvent::Resumed => vec![Effect::Repaint],
        ViewEvent::PageNotOpened { url, error } => {
            say(&mut state.view, Msg::PageNotOpened { error, url }, now);
            vec![]
        }
        ViewEvent::NotAdded(error) => {
            say(&mut state.view, Msg::NotAdded { error }, now);
            vec![]
        }
    }
}

fn say(view: &mut View, message: Msg, now: Timestamp) {
    view.message = Some(Shown { message, until: now + MESSAGE_STAYS });
}

fn pressed(state: &mut State, key: Key, now: Timestamp) -> Vec<Effect> {
    if key == Key::ctrl('c') {
        return leave_now(state, now);
    }
    let last = state.view.last_key.replace((key, now));
    let in_field = in_text_field(&state.view);
    let held = key.repeat || last.is_some_and(|(before, at)| same(before, key) && now.duration_since(at) < HELD);
    if held && !in_field && !keymap::action_in(state.view.tab, key).is_some_and(Action::moves) {
        return vec![];
    }
    match state.view.modals.last() {
        None => in_view(state, key, now),
        Some(Modal::Filter { .. }) => in_filter(state, key, now),
        Some(Modal::Plan { field: Some(_), .. }) => in_name_field(state, key, now),
        Some(Modal::Plan { field: None, .. }) => in_plan(state, key, now),
        Some(Modal::Help { .. } | Modal::Problem { .. }) => in_text(state, key),
        Some(Modal::Leave) => match keymap::action_in(state.view.tab, key) {
            Some(Action::Quit) => leave_now(state, now),
            _ => {
                state.view.modals.pop();
                vec![]
            }
        },
    }
}

fn same(a: Key, b: Key) -> bool {
    Key { repeat: false, ..a } == Key { repeat: false, ..b }
}

fn in_text_field(view: &View) -> bool {
    matches!(view.modals.last(), Some(Modal::Filter { .. } | Modal::Plan { field: Some(_), .. }))
}

/// A pasted text goes into a filter as text, and nowhere else.
fn pasted(state: &mut State, text: &str, now: Timestamp) {
    if let Some(Modal::Filter { input, .. }) = state.view.modals.last_mut() {
        for c in clean(text).chars() {
            input.handle(InputRequest::InsertChar(c));
        }
        state.view.filter = input.value().to_owned();
        state.view.lines_stale = true;
        return;
    }
    say(&mut state.view, Msg::PasteIgnored, now);
}

fn in_view(state: &mut State, key: Key, now: Timestamp) -> Vec<Effect> {
    if state.view.offers_shown() {
        match key.code {
            Code::Char(digit @ '1'..='9') => {
                let at = digit as usize - '1' as usize;
                if at < state.view.offered.len() {
                    return vec![Effect::AddOffered(state.view.offered.remove(at).variable)];
                }
            }
            // On to what was added; the others can be written into the config.
            Code::Enter | Code::Esc if !state.world.fleet.accounts.is_empty() => {
                state.view.offered.clear();
                return vec![];
            }
            _ => {}
        }
    }
    let Some(action) = keymap::action_in(state.view.tab, key) else { return vec![] };
    let jumped = state.view.cursor_jumped.is_some_and(|at| now.duration_since(at) < JUMPED);
    if jumped && matches!(action, Action::StopOrStart | Action::End) && state.view.marks.is_empty() {
        return vec![];
    }
    match action {
        Action::Quit => return quit(state, now),
        Action::Suspend => return vec![Effect::Suspend],
        Action::Repaint => return vec![Effect::Repaint],
        Action::Refresh => return intend(state, Intent::Refresh, now),
        Action::Help => state.view.modals.push(Modal::Help { scroll: 0 }),
        Action::Problem => problem(state, now),
        Action::ShowFleet => state.view.tab = Tab::Fleet,
        Action::ShowActivity => state.view.tab = Tab::Activity,
        Action::NextView => {
            state.view.tab = match state.view.tab {
                Tab::Fleet => Tab::Activity,
                Tab::Activity => Tab::Fleet,
            }
        }
        Action::Back => return back(state, now),
        Action::Down => step(state, 1),
        Action::Up => step(state, -1),
        Action::PageDown => step(state, page(&state.view)),
        Action::PageUp => step(state, -page(&state.view)),
        Action::First | Action::Last => {
            step(state, if action == Action::First { isize::MIN } else { isize::MAX });
            // Wherever it had come to, it is now where it was sent.
            state.view.cursor_jumped = None;
        }
        Action::Fold => fold(state, true),
        Action::Unfold => fold(state, false),
        Action::Mark => mark(state, now),
        Action::Details => details(state),
        Action::Filter => {
            let before = state.view.filter.clone();
            state.view.modals.push(Modal::Filter { input: Input::new(before.clone()), before });
        }
        Action::Sort => {
            state.view.sort =
                next(&[SortName::Attention, SortName::Cost, SortName::Name, SortName::Age], state.view.sort);
            resort(state, now);
            let sort = state.view.sort;
            say(&mut state.view, Msg::SortedBy(sort), now);
        }
        Action::Group => {
            let names =
                [GroupName::Account, GroupName::Provider, GroupName::Project, GroupName::Market, GroupName::None];
            let group = next(&names, rows::grouping(&state.world, &state.view));
            state.view.group = Some(group);
            resort(state, now);
            say(&mut state.view, Msg::GroupedBy(group), now);
        }
        Action::Quick => {
            state.view.quick = next(&[QuickName::All, QuickName::Off, QuickName::Spot], state.view.quick);
            resort(state, now);
            let quick = state.view.quick;
            say(&mut state.view, Msg::QuickFilter(quick), now);
        }
        Action::StopOrStart => return stop_or_start(state, now),
        Action::End => return propose(state, Deed::Release, now),
        Action::TakeBack => return intend(state, Intent::TakeBack, now),
        Action::Protect => return toggle(state, now, true),
        Action::Mine => return toggle(state, now, false),
        // What is simulated has no page, and a demonstration sends nothing beyond this machine.
        Action::Page => match selected_page(state).filter(|_| !state.view.fixed.demo) {
            Some(url) => {
                say(&mut state.view, Msg::OpeningPage { url: url.clone() }, now);
                return vec![Effect::OpenPage(url)];
            }
            None => say(&mut state.view, Msg::NoPage, now),
        },
        Action::Confirm => {}
    }
    vec![]
}

fn next<T: Copy + PartialEq>(all: &[T], now: T) -> T {
    let at = all.iter().position(|one| *one == now).map_or(0, |at| (at + 1) % all.len());
    all[at]
}

fn resort(state: &mut State, now: Timestamp) {
    rows::rebuild(&state.world, &mut state.view, true, now);
    keep_cursor(&mut state.view);
}

fn intend(state: &mut State, intent: Intent, now: Timestamp) -> Vec<Effect> {
    world::update(&mut state.world, WorldEvent::Intent(intent), now)
}

fn quit(state: &mut State, now: Timestamp) -> Vec<Effect> {
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
        return intend(state, Intent::TakeBack, now);
    }
    let view = &mut state.view;
    if view.tab != Tab::Fleet {
        view.tab = Tab::Fleet;
    } else if !view.marks.is_empty() {
        view.marks.clear();
    } else if !view.filter.is_empty() || view.quick != QuickName::All {
        view.filter.clear();
        view.quick = QuickName::All;
        resort(state, now);
    }
    vec![]
}

fn page(view: &View) -> isize {
    isize::from(view.body_height() as i16).max(2) - 1
}

fn step(state: &mut State, by: isize) {
    if state.view.tab == Tab::Activity {
        let last = state.world.operations.len().saturating_sub(1);
        state.view.activity = state.view.activity.saturating_add_signed(by).min(last);
        return;
    }
    let view = &mut state.view;
    let Some(last) = view.lines.len().checked_sub(1) else { return };
    let at = view.cursor_at().unwrap_or(0).saturating_add_signed(by).min(last);
    view.cursor = Some(view.lines[at].clone());
    keep_cursor(view);
}

fn fold(state: &mut State, fold: bool) {
    let key = match &state.view.cursor {
        Some(Line::Group(key)) => Some(key.clone()),
        Some(Line::Instance(_)) if fold => {
            let at = state.view.cursor_at().unwrap_or(0);
            state.view.lines[..=at].iter().rev().find_map(|line| match line {
                Line::Group(key) => Some(key.clone()),
                Line::Instance(_) => None,
            })
        }
        _ => None,
    };
    let Some(key) = key else { return };
    fold_group(&mut state.view, key, fold);
}

fn fold_group(view: &mut View, key: GroupKey, fold: bool) {
    if fold {
        view.folded.insert(key.clone());
        view.cursor = Some(Line::Group(key));
    } else {
        view.folded.remove(&key);
    }
    view.lines_stale = true;
}

fn mark(state: &mut State, now: Timestamp) {
    let Some(identity) = state.view.selected().cloned() else {
        return say(&mut state.view, Msg::NothingSelected, now);
    };
    if !state.view.marks.remove(&identity) {
        state.view.marks.insert(identity);
    }
    step(state, 1);
}

fn details(state: &mut State) {
    match state.view.cursor.clone() {
        Some(Line::Group(key)) => {
            let folded = state.view.folded.contains(&key);
            fold_group(&mut state.view, key, !folded);
        }
        _ => state.view.details = !state.view.details,
    }
}

fn toggle(state: &mut State, now: Timestamp, protect: bool) -> Vec<Effect> {
    let found = state.view.selected().cloned().and_then(|identity| {
        let known = state.world.fleet.instances.get(&identity)?;
        let account = state.world.fleet.account(&identity.account)?;
        let settings = &state.world.settings;
        let on = if protect {
            !settings.protected(&account.provider, &identity, &known.row)
        } else {
            !settings.mine(&account.provider, &identity, &known.row)
        };
        let name = known.row.name.clone().unwrap_or_else(|| identity.id.to_string());
        let before = settings.single.get(&identity).cloned().unwrap_or_default();
        Some((identity, name, before, on))
    });
    let Some((identity, name, before, on)) = found else {
        say(&mut state.view, Msg::NothingSelected, now);
        return vec![];
    };
    let (setting, message) = if protect {
        (Setting { protected: Some(on), ..before }, Msg::ProtectedNow { name, on })
    } else {
        (Setting { mine: Some(on), ..before }, Msg::MineNow { name, on })
    };
    say(&mut state.view, message, now);
    intend(state, Intent::Set { identity, setting }, now)
}

fn selected_page(state: &State) -> Option<String> {
    state.world.fleet.instances.get(state.view.selected()?)?.row.page.clone()
}

fn problem(state: &mut State, now: Timestamp) {
    let under_cursor = match &state.view.cursor {
        Some(Line::Instance(identity)) => Some(identity.account.clone()),
        Some(Line::Group(GroupKey::Account(account))) => Some(account.clone()),
        _ => None,
    };
    let troubled = |name: &providers::model::AccountName| {
        state.world.fleet.account(name).is_some_and(crate::rules::fleet::Account::needs_a_look)
    };
    let account = under_cursor.filter(troubled).or_else(|| {
        let all = state.world.fleet.accounts.iter().map(|account| &account.name);
        all.into_iter().find(|name| troubled(name)).cloned()
    });
    match account {
        Some(account) => state.view.modals.push(Modal::Problem { account, scroll: 0 }),
        None => say(&mut state.view, Msg::NoProblem, now),
    }
}

/// What the next action is about: the marked rows, else the one under the cursor.
fn pointed(view: &View) -> Vec<Identity> {
    if view.marks.is_empty() {
        view.selected().cloned().into_iter().collect()
    } else {
        view.marks.iter().cloned().collect()
    }
}

/// Whether `s` means stop or start for a row, by the phase as painted.
pub fn stop_or_start_of(phase: Phase) -> Deed {
    match phase {
        Phase::Stopped | Phase::Reclaimed => Deed::Start,
        _ => Deed::Stop,
    }
}

fn stop_or_start(state: &mut State, now: Timestamp) -> Vec<Effect> {
    let mut deeds: Vec<Deed> = pointed(&state.view)
        .iter()
        .filter_map(|identity| state.world.fleet.instances.get(identity))
        .map(|known| stop_or_start_of(rows::shown_phase(known, state.world.operation_on(&known.identity))))
        .collect();
    deeds.dedup();
    match deeds.as_slice() {
        [] => {
            say(&mut state.view, Msg::NothingSelected, now);
            vec![]
        }
        [deed] => propose(state, *deed, now),
        _ => {
            say(&mut state.view, Msg::MixedMarks, now);
            vec![]
        }
    }
}

/// Makes the plan, and asks what the plan demands.
fn propose(state: &mut State, deed: Deed, now: Timestamp) -> Vec<Effect> {
    let pointed = pointed(&state.view);
    if pointed.is_empty() {
        say(&mut state.view, Msg::NothingSelected, now);
        return vec![];
    }
    if let (false, Some(Collector::Other { owner, .. })) = (state.world.acts(), &state.world.collector) {
        let message = Msg::OnlyLooking { host: owner.host.clone(), pid: owner.pid };
        say(&mut state.view, message, now);
        return vec![];
    }
    let plan = make_plan(state, deed, &pointed, now);
    if plan.targets.is_empty() {
        if let Some((_, name, hindrance)) = plan.left_out.into_iter().next() {
            say(&mut state.view, Msg::LeftOut { name, action: deed, hindrance }, now);
        }
        return vec![];
    }
    // One resource that loses nothing goes into its countdown at once: the row shows it, `u` takes it back.
    if plan.confirmation == Confirmation::Countdown && pointed.len() == 1 {
        return begin(state, plan, None, now);
    }
    state.view.modals.push(Modal::Plan { plan: Box::new(plan), field: None, scroll: 0 });
    vec![]
}

fn make_plan(state: &State, deed: Deed, pointed: &[Identity], now: Timestamp) -> Plan {
    let under_way = state.world.busy();
    let basis = Basis {
        fleet: &state.world.fleet,
        settings: &state.world.settings,
        under_way: &under_way,
        read_only: state.world.read_only,
        now,
    };
    plan::plan(basis, deed, pointed)
}

fn begin(state: &mut State, plan: Plan, typed: Option<&str>, now: Timestamp) -> Vec<Effect> {
    match confirm(&plan, typed) {
        Confirmed::Yes(authority) => {
            state.view.marks.clear();
            intend(state, Intent::Begin { plan: Box::new(plan), authority }, now)
        }
        Confirmed::NotYet => vec![],
    }
}

fn in_plan(state: &mut State, key: Key, now: Timestamp) -> Vec<Effect> {
    let Some(Modal::Plan { plan, field, scroll }) = state.view.modals.last_mut() else { return vec![] };
    let last = plan.targets.len().saturating_sub(1);
    let again = match plan.action {
        Deed::Stop | Deed::Start => Action::StopOrStart,
        Deed::Release | Deed::Delete | Deed::Restart => Action::End,
    };
    match keymap::action_in_plan(key) {
        Some(Action::Back) => {
            state.view.modals.pop();
        }
        Some(Action::Confirm) if plan.confirmation == Confirmation::Countdown => {
            let plan = (**plan).clone();
            state.view.modals.pop();
            return begin(state, plan, None, now);
        }
        Some(action) if action == again && matches!(plan.confirmation, Confirmation::Typed(_)) => {
            *field = Some(Input::default());
        }
        Some(Action::Down) => *scroll = (*scroll + 1).min(last),
        Some(Action::Up) => *scroll = scroll.saturating_sub(1),
        _ => {}
    }
    vec![]
}

fn in_name_field(state: &mut State, key: Key, now: Timestamp) -> Vec<Effect> {
    let Some(Modal::Plan { plan, field: field @ Some(_), .. }) = state.view.modals.last_mut() else { return vec![] };
    match key.code {
        Code::Esc => *field = None,
        Code::Enter => {
            let typed = field.as_ref().map(|input| input.value().trim().to_owned()).unwrap_or_default();
            if matches!(confirm(plan, Some(&typed)), Confirmed::Yes(_)) {
                let plan = (**plan).clone();
                state.view.modals.pop();
                return begin(state, plan, Some(&typed), now);
            }
        }
        _ => {
            if let Some(input) = field {
                edit(input, key);
            }
        }
    }
    vec![]
}

fn in_filter(state: &mut State, key: Key, now: Timestamp) -> Vec<Effect> {
    let Some(Modal::Filter { input, before }) = state.view.modals.last_mut() else { return vec![] };
    let was = state.view.filter.clone();
    match key.code {
        Code::Esc => {
            state.view.filter = before.clone();
            state.view.modals.pop();
        }
        Code::Enter => {
            state.view.modals.pop();
        }
        Code::Up | Code::Down => step(state, if key.code == Code::Up { -1 } else { 1 }),
        _ => {
            edit(input, key);
            state.view.filter = input.value().to_owned();
        }
    }
    if state.view.filter != was {
        resort(state, now);
    }
    vec![]
}

/// One key in a line of text.
fn edit(input: &mut Input, key: Key) {
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
        _ => return,
    };
    input.handle(request);
}

fn in_text(state: &mut State, key: Key) -> Vec<Effect> {
    let page = page(&state.view) as i32;
    let action = keymap::action_in(state.view.tab, key);
    let Some(Modal::Help { scroll } | Modal::Problem { scroll, .. }) = state.view.modals.last_mut() else {
        return vec![];
    };
    let by = match action {
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
    // The painter stops at the text's end; this only keeps the number sane.
    *scroll = (i32::from(*scroll) + by).clamp(0, 500) as u16;
    vec![]
}

/// Keeps the cursor on a line that exists and on the screen.
pub fn keep_cursor(view: &mut View) {
    if view.lines.is_empty() {
        view.cursor = None;
        view.top = 0;
        return;
    }
    let at = match view.cursor_at() {
        // Until somebody moves it, the cursor stays on the first row: the one that needs somebody most.
        _ if view.last_key.is_none() => {
            let first = view.lines.iter().position(|line| matches!(line, Line::Instance(_))).unwrap_or(0);
            view.cursor = Some(view.lines[first].clone());
            first
        }
        Some(at) => at,
        None => {
            // Its line is gone: the one that took its place is nearest to where people look.
            let at = view.cursor_was.min(view.lines.len() - 1);
            view.cursor = Some(view.lines[at].clone());
            at
        }
    };
    view.cursor_was = at;
    let height = usize::from(view.body_height()).max(1);
    if at < view.top {
        view.top = at;
    } else if at >= view.top + height {
        view.top = at + 1 - height;
    }
    view.top = view.top.min(view.lines.len().saturating_sub(height));
}
