//! One event in, new state and effects out.

mod alerts;
mod answer;
mod budget_form;
mod budgets;
mod copies;
mod deeds;
mod figures;
mod findings;
mod happened;
mod keys;
mod lease_form;
mod leases;
mod mouse;
mod popup;
mod reach;
mod save_form;
mod spend;
mod usage;
mod view;
mod waste;
mod windows;
mod world;

pub use answer::morning;
pub use deeds::{saving_instead, stop_or_start_of};
pub(super) use spend::track_billing;
pub use windows::painted;

#[cfg(test)]
mod popup_tests;

use jiff::{SignedDuration, Timestamp};

use super::effect::Effect;
use super::event::{Event, WorldEvent};
use super::listing::Line;
use super::message::Shown;
use super::preferences::Preferences;
use super::rows;
use super::shelf;
use super::state::{BRIGHT, State, Tab, View};
use crate::rules::memory::Collector;
use crate::rules::runway;
use crate::rules::saga::{Operation, Step};

/// Rows are sorted anew when no key was pressed for so long.
const RESORT_AFTER: SignedDuration = SignedDuration::from_secs(30);
/// How long a message stays.
const MESSAGE_STAYS: SignedDuration = SignedDuration::from_secs(8);
/// Ages on the screen are brought up to date this often.
const AGES: SignedDuration = SignedDuration::from_secs(5);

/// What is to be done before the first event.
pub fn start(state: &mut State, now: Timestamp) -> Vec<Effect> {
    rebuild(state, true, now);
    vec![Effect::Claim, Effect::Recall]
}

/// Takes in one event and brings the lines up to date with it.
pub fn update(state: &mut State, event: Event, now: Timestamp) -> Vec<Effect> {
    let effects = take(state, event, now);
    settle(state, now);
    effects
}

/// Takes in one event of several: before the next frame, [`settle`] does once what would be wasted between.
pub fn take(state: &mut State, event: Event, now: Timestamp) -> Vec<Effect> {
    if event == Event::World(WorldEvent::Tick) {
        // What a filter asks may be a matter of time.
        for list in [&mut state.view.fleet, &mut state.view.storage] {
            list.stale |= !list.filter().is_empty();
        }
        // The Spend view brings them up to date with its own figures.
        if state.view.tab != Tab::Spend {
            spend::add_up_when_due(&mut state.world, false, now);
        }
    }
    let mut effects = match event {
        Event::World(event) => world::update(&mut state.world, event, now),
        Event::View(event) => {
            // A key is about the lines as they are, and where it leads the cursor nothing jumped.
            settle(state, now);
            let mut effects = view::update(state, event, now);
            note_changes(state, now);
            bring_up_to_date(state, now);
            state.view.list_mut().means = deeds::meaning(state);
            effects.extend(save_preferences(&mut state.view));
            effects
        }
    };
    note_changes(state, now);
    effects.extend(figures::ask(state, now));
    if std::mem::take(&mut state.view.rings) {
        effects.push(Effect::Bell);
    }
    effects
}

fn note_changes(state: &mut State, now: Timestamp) {
    if std::mem::take(&mut state.world.changed) {
        state.view.sums_stale = true;
        let View { fleet, storage, budgets, alerts, activity, .. } = &mut state.view;
        for list in [fleet, storage, budgets, alerts, activity] {
            list.stale = true;
        }
    }
    for message in std::mem::take(&mut state.world.news) {
        state.view.message = Some(Shown { message, until: now + MESSAGE_STAYS });
    }
    if state.view.message.as_ref().is_some_and(|shown| shown.until <= now) {
        state.view.message = None;
    }
}

fn save_preferences(view: &mut View) -> Option<Effect> {
    let preferences = Preferences::of(view);
    (preferences != view.saved).then(|| {
        view.saved = preferences.clone();
        Effect::SavePreferences(preferences)
    })
}

/// Brings lines and sums up to date with the world.
pub fn settle(state: &mut State, now: Timestamp) {
    let (tab, before) = (state.view.tab, state.view.list().cursor.clone());
    bring_up_to_date(state, now);
    let list = state.view.list();
    let jumped = before.is_some() && before != list.cursor;
    // The key that stopped it a moment ago may start it now.
    let (meant, means) = (list.means.clone(), deeds::meaning(state));
    let turned = meant.zip(means.clone()).is_some_and(|(meant, means)| meant.0 == means.0 && meant.1 != means.1);
    state.view.list_mut().means = means;
    if state.view.tab == tab && (jumped || turned) {
        state.view.list_mut().cursor_jumped = Some(now);
    }
}

fn bring_up_to_date(state: &mut State, now: Timestamp) {
    let last_used = state.view.last_key.map(|(_, at)| at).max(state.view.last_mouse);
    let quiet = last_used.is_none_or(|at| now.duration_since(at) >= RESORT_AFTER);
    let accounts = state.world.fleet.accounts.iter().filter(|account| account.needs_a_look()).count();
    state.view.trouble = accounts + state.world.spending.unwatched.len();
    if !state.world.streams_open() {
        state.view.unasked = None;
    }
    let resort = quiet && state.view.modals.is_empty();
    // The header counts what the fleet's rows say, whatever view is shown.
    let stale = state.view.fleet.stale
        || match state.view.tab {
            Tab::Spend => figures::is_due(state, now),
            _ => state.view.list().stale,
        };
    if stale || (resort && state.view.list().unsorted) {
        rebuild(state, resort, now);
        windows::review_question(state, now);
    }
    figures::refresh(state, now);
    popup::open_when_due(state, now);
    let height = state.view.body_height();
    state.view.list_mut().keep_cursor(height);
    let pointed_at = match &state.view.fleet.cursor {
        Some(Line::Resource(identity)) if state.view.tab == Tab::Fleet => Some(identity),
        _ => None,
    };
    state.world.streams.focus(pointed_at, now);
}

/// Sorts the list of this view anew.
fn resort(state: &mut State, now: Timestamp) {
    rebuild(state, true, now);
}

fn rebuild(state: &mut State, resort: bool, now: Timestamp) {
    let State { world, view, .. } = state;
    let changed = std::mem::take(&mut view.sums_stale);
    if changed {
        world.totals = world.fleet.burn();
        world.runway = runway::shortest(&world.fleet);
    }
    // What the lines say was spent is of the same moment as what the header says.
    spend::add_up_when_due(world, changed, now);
    if view.fleet.stale || view.tab == Tab::Fleet {
        // Only who may open streams asks whether to.
        let asks = world.streams_open() && !view.fixed.demo;
        let unasked = world.streams.to_ask(&world.fleet).next().filter(|_| asks);
        view.unasked = unasked.map(|(account, machines)| (account.clone(), machines));
        rows::rebuild(world, view, resort, now);
        view.attention += world.alerting.alerts.calling().count();
    }
    match view.tab {
        Tab::Fleet => {}
        Tab::Spend => figures::rebuild(state, resort, now),
        Tab::Storage => shelf::rebuild(world, &mut view.storage, &mut view.shelf, resort, now),
        Tab::Budgets => rows::rebuild_budgets(world, &mut view.budgets),
        Tab::Alerts => rows::rebuild_alerts(world, &mut view.alerts),
        Tab::Activity => rows::rebuild_activity(world, &mut view.activity),
    }
}

/// What is to be written down, last of all, of what machines did.
pub fn keep_usage(state: &mut State) -> Option<Effect> {
    usage::keep(&mut state.world)
}

/// Ends the program at once, as a signal does: what was not sent is written down as not sent.
pub fn leave_now(state: &mut State, now: Timestamp) -> Vec<Effect> {
    state.leaving = true;
    let mut effects = world::leave(&mut state.world, now);
    effects.extend(keep_usage(state));
    effects
}

/// When the program wants to be woken with a tick, if nothing happens before.
pub fn next_wake(state: &State, now: Timestamp) -> Option<Timestamp> {
    let world = &state.world;
    let operations = world.under_way().filter_map(|operation| operation.next_wake());
    // A countdown is painted second by second, whatever it counts down to.
    let counts = |operation: &Operation| {
        operation.in_countdown() || matches!(operation.step, Step::Saving { next_try: Some(_), .. })
    };
    let countdown = world.under_way().any(counts).then(|| now + SignedDuration::from_secs(1));
    let accounts = world.fleet.accounts.iter().filter_map(|account| world.due(account, now));
    let ledger = world.ledger_due.filter(|_| matches!(world.collector, Some(Collector::Us | Collector::Other { .. })));
    let bright = world.bright.values().map(|since| *since + BRIGHT).filter(|until| *until > now);
    let message = state.view.message.as_ref().map(|shown| shown.until);
    operations
        .chain(countdown)
        .chain(accounts)
        .chain(ledger)
        .chain(world.prune_at)
        .chain(world.streams.next_wake(now).filter(|_| world.streams_open()))
        .chain(usage::next_wake(world, now))
        .chain(spend::billed_due(world, now))
        .chain(spend::totals_due(world))
        .chain(world.alerting.dispatch.next_wake().filter(|_| world.remembered && world.collects()))
        .chain(leases::next_wake(world, now))
        .chain(popup::next_wake(&state.view))
        .chain(message)
        .chain(bright)
        .chain([now + AGES])
        .min()
        .map(|at| at.max(now))
}
