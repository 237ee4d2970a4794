//! What one screen does with an event: keys find their listener, the topmost window first.

use jiff::{SignedDuration, Timestamp};
use providers::model::{AccountName, Action as Deed, Identity, Phase, ResourceKind};
use providers::text::clean;
use tui_input::{Input, InputRequest};

use super::{MESSAGE_STAYS, figures, leave_now, mouse, resort, windows, world};
use crate::app::action::{Action, Code, Key as Pressed};
use crate::app::effect::Effect;
use crate::app::event::{Guest, Intent, ViewEvent, WorldEvent};
use crate::app::listing::Line;
use crate::app::message::{GroupName, Msg, QuickName, Shown, SortName};
use crate::app::palette::Palette;
use crate::app::rows::{self, GroupKey};
use crate::app::spend::SpendLine;
use crate::app::state::{ChartSpan, Listener, Modal, Press, Problem, Question, State, Tab, View};
use crate::rules::memory::Collector;
use crate::rules::plan::{self, Confirmation, Plan};
use crate::rules::saga::{Confirmed, OpId, Step, confirm};
use crate::rules::settings::Setting;
use crate::rules::spend::{Billable, Key};
use crate::rules::streams::Target;

/// The same key within this time of its last event is a key that is being held.
const HELD: SignedDuration = SignedDuration::from_millis(150);

/// The first repeat of a held key comes this late at the latest, as keyboards are set up.
const FIRST_REPEAT: SignedDuration = SignedDuration::from_millis(700);

/// So many characters of a pasted text are taken: nobody searches for more, and each is looked for in every row.
const PASTED: usize = 200;

/// So long after the cursor came to another row by itself a key that ends something may be meant for the one before.
const JUMPED: SignedDuration = SignedDuration::from_millis(500);

pub fn update(state: &mut State, event: ViewEvent, now: Timestamp) -> Vec<Effect> {
    match event {
        ViewEvent::Key(key) => pressed(state, key, now),
        ViewEvent::Paste(text) => {
            pasted(state, &text, now);
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
        ViewEvent::NotAdded(error) => {
            say(&mut state.view, Msg::NotAdded { error }, now);
            vec![]
        }
    }
}

pub(super) fn say(view: &mut View, message: Msg, now: Timestamp) {
    view.message = Some(Shown { message, until: now + MESSAGE_STAYS });
}

fn pressed(state: &mut State, key: Pressed, now: Timestamp) -> Vec<Effect> {
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
        Listener::Plan => keys.action_in_plan(key),
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
    let waits = listener == Listener::Leave || action.is_some_and(Action::toggles);
    // Only the first repeat comes late: what comes late once more was pressed. A plan's key is pressed twice on
    // purpose, and its second press begins nothing.
    let first = elsewhere && listener != Listener::Plan && !view.last_press.is_some_and(|press| press.repeated);
    now.duration_since(at) < if waits || first { FIRST_REPEAT } else { HELD }
}

/// A pasted text goes into a filter or the palette as text, and nowhere else.
fn pasted(state: &mut State, text: &str, now: Timestamp) {
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

fn in_view(state: &mut State, key: Pressed, now: Timestamp) -> Vec<Effect> {
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

/// Does what a key or the palette asks for in the view.
pub(super) fn perform(state: &mut State, action: Action, now: Timestamp) -> Vec<Effect> {
    if state.view.offers_shown() && action.is_about_rows() {
        say(&mut state.view, Msg::NothingSelected, now);
        return vec![];
    }
    let list = state.view.list();
    let jumped = list.cursor_jumped.is_some_and(|at| (SignedDuration::ZERO..JUMPED).contains(&now.duration_since(at)));
    if jumped && matches!(action, Action::StopOrStart | Action::End) && list.marks.is_empty() {
        say(&mut state.view, Msg::RowJustChanged, now);
        return vec![];
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
        Action::StopOrStart => return stop_or_start(state, now),
        Action::End => return end(state, now),
        Action::TakeBack => {
            let op = takeable_here(state);
            return intend(state, Intent::TakeBack(op), now);
        }
        Action::Protect => return toggle(state, now, true),
        Action::Mine => return toggle(state, now, false),
        Action::Project => windows::ask_project(state, now),
        Action::Seen => return note(state, now),
        Action::Page => return open_page(state, now),
        Action::Ssh => return ssh(state, now),
        Action::CopySsh => return copy_ssh(state, now),
        Action::Confirm => {}
    }
    vec![]
}

fn show(state: &mut State, tab: Tab) {
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

/// The action on the row under the cursor, if it can still be taken back.
fn takeable_here(state: &State) -> Option<OpId> {
    let operation = match state.view.list().cursor.as_ref()? {
        Line::Resource(identity) => state.world.operation_on(identity)?,
        Line::Operation(op) => state.world.operations.get(op)?,
        Line::Group(_) | Line::Spend(_) => return None,
    };
    operation.can_be_taken_back().then_some(operation.id)
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
        _ => view.details = !view.details,
    }
}

/// The charts reach back to the next span.
pub(super) fn further_back(view: &mut View) {
    view.chart = next(&ChartSpan::ALL, view.chart);
}

fn toggle(state: &mut State, now: Timestamp, protect: bool) -> Vec<Effect> {
    let found = state.view.list().selected().cloned().and_then(|identity| {
        let account = state.world.fleet.account(&identity.account)?;
        let (settings, provider) = (&state.world.settings, &account.provider);
        let (name, protected, mine) = match identity.kind {
            ResourceKind::Instance => {
                let known = state.world.fleet.instances.get(&identity)?;
                let row = &known.row;
                (
                    row.name.clone(),
                    settings.protected(provider, &identity, row),
                    settings.mine(provider, &identity, row),
                )
            }
            ResourceKind::Storage => {
                let known = state.world.fleet.storage.get(&identity)?;
                let row = &known.row;
                (
                    row.name.clone(),
                    settings.protected(provider, &identity, row),
                    settings.mine(provider, &identity, row),
                )
            }
        };
        let name = name.unwrap_or_else(|| identity.id.to_string());
        let before = settings.single.get(&identity).cloned().unwrap_or_default();
        Some((identity, name, before, if protect { !protected } else { !mine }))
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

fn open_page(state: &mut State, now: Timestamp) -> Vec<Effect> {
    let page = state.view.list().selected().and_then(|identity| match identity.kind {
        ResourceKind::Instance => state.world.fleet.instances.get(identity)?.row.page.clone(),
        ResourceKind::Storage => state.world.fleet.storage.get(identity)?.row.page.clone(),
    });
    // What is simulated has no page, and a demonstration sends nothing beyond this machine.
    match page.filter(|_| !state.view.fixed.demo) {
        Some(url) => {
            say(&mut state.view, Msg::OpeningPage { url: url.clone() }, now);
            vec![Effect::OpenPage(url)]
        }
        None => {
            say(&mut state.view, Msg::NoPage, now);
            vec![]
        }
    }
}

/// Where the instance under the cursor can be reached.
fn reached(state: &State) -> Option<Target> {
    let list = state.view.list();
    let identity = match &list.cursor {
        Some(Line::Spend(SpendLine::Group(_, Key::Billable(_, Billable::Resource { identity, .. })))) => identity,
        _ => list.selected()?,
    };
    let known = state.world.fleet.instances.get(identity).filter(|known| known.phase() == Phase::Running)?;
    let account = state.world.fleet.account(&identity.account)?;
    Some(Target::new(&account.provider, identity, known.row.ssh.as_ref()?))
}

fn ssh(state: &mut State, now: Timestamp) -> Vec<Effect> {
    match reached(state) {
        Some(_) if state.view.fixed.demo => say(&mut state.view, Msg::NoSshInDemo, now),
        Some(target) => return vec![Effect::Ssh(target)],
        None => say(&mut state.view, Msg::NoSsh, now),
    }
    vec![]
}

fn copy_ssh(state: &mut State, now: Timestamp) -> Vec<Effect> {
    let Some(target) = reached(state) else {
        say(&mut state.view, Msg::NoSsh, now);
        return vec![];
    };
    let line = target.endpoint.command_line();
    say(&mut state.view, Msg::SshCopied { line: line.clone() }, now);
    vec![Effect::Copy(line)]
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
    let about = said
        .map(Problem::Message)
        .or(of_action.map(Problem::Operation))
        .or_else(|| under_cursor.filter(troubled).map(Problem::Account))
        .or_else(|| {
            let mut all = state.world.fleet.accounts.iter().map(|account| &account.name);
            all.find(|name| troubled(name)).cloned().map(Problem::Account)
        });
    match about {
        Some(about) => state.view.modals.push(Modal::Problem { about, scroll: 0 }),
        None => say(&mut state.view, Msg::NoProblem, now),
    }
}

/// The last action on a resource, when it is overdue or did not do what it should.
fn latest_trouble(state: &State, identity: &Identity) -> Option<OpId> {
    let mut operations = state.world.operations.values().rev();
    let latest = operations.find(|operation| operation.target.identity == *identity)?;
    let failed = matches!(&latest.step, Step::Ended { outcome, .. } if outcome.is_bad());
    (failed || latest.is_overdue()).then_some(latest.id)
}

/// Whether `s` means stop or start for a row, by the phase as painted.
pub fn stop_or_start_of(phase: Phase) -> Deed {
    match phase {
        Phase::Stopped | Phase::Reclaimed => Deed::Start,
        _ => Deed::Stop,
    }
}

/// What stop-or-start would do to the instance under the cursor.
pub(super) fn meaning(state: &State) -> Option<(Identity, Deed)> {
    let known = state.world.fleet.instances.get(state.view.list().selected()?)?;
    let phase = rows::shown_phase(known, state.world.operation_on(&known.identity));
    Some((known.identity.clone(), stop_or_start_of(phase)))
}

fn stop_or_start(state: &mut State, now: Timestamp) -> Vec<Effect> {
    let mut deeds: Vec<Deed> = state
        .view
        .list()
        .pointed()
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

/// Release for instances, delete for storage; not both in one plan.
fn end(state: &mut State, now: Timestamp) -> Vec<Effect> {
    let mut kinds: Vec<ResourceKind> = state.view.list().pointed().iter().map(|identity| identity.kind).collect();
    kinds.sort();
    kinds.dedup();
    match kinds.as_slice() {
        [] => say(&mut state.view, Msg::NothingSelected, now),
        [ResourceKind::Instance] => return propose(state, Deed::Release, now),
        [ResourceKind::Storage] => return propose(state, Deed::Delete, now),
        _ => say(&mut state.view, Msg::MixedKinds, now),
    }
    vec![]
}

/// Makes the plan, and asks what the plan demands.
fn propose(state: &mut State, deed: Deed, now: Timestamp) -> Vec<Effect> {
    let pointed = state.view.list().pointed();
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
    // One resource that loses nothing goes into its countdown at once: the row shows it, `u` takes it back. A
    // marked row may be anywhere, so it is asked about.
    let under_cursor = pointed.len() == 1 && state.view.list().selected() == pointed.first();
    if plan.confirmation == Confirmation::Countdown && under_cursor {
        return begin(state, plan, None, now);
    }
    let question = Question { plan: Box::new(plan), asked: pointed, field: None, scroll: 0, changed: None };
    state.view.modals.push(Modal::Plan(question));
    vec![]
}

pub(super) fn make_plan(state: &State, deed: Deed, pointed: &[Identity], now: Timestamp) -> Plan {
    let under_way = state.world.busy();
    let basis = state.world.basis(&under_way, now);
    plan::plan(basis, deed, pointed)
}

pub(super) fn begin(state: &mut State, plan: Plan, typed: Option<&str>, now: Timestamp) -> Vec<Effect> {
    match confirm(&plan, typed) {
        Confirmed::Yes(authority) => {
            state.view.list_mut().marks.clear();
            intend(state, Intent::Begin { plan: Box::new(plan), authority }, now)
        }
        Confirmed::NotYet => vec![],
    }
}
