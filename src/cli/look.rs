//! One look at every account, and what went wrong with it.

use std::time::Duration;

use jiff::Timestamp;

use super::setup::{self, Kind, Program, Setup};
use super::{Exit, Stop, warn};
use crate::app::Event;
use crate::app::event::WorldEvent;
use crate::app::state::State;
use crate::rules::memory::LedgerNotice;
use crate::runtime::clock;
use crate::runtime::errand::Errand;

/// Looks at every account: from the ledger where that is younger than one interval, else by asking. What is
/// to be done after it comes before the ledger is given back.
pub fn visit<T>(setup: &Setup, then: impl AsyncFnOnce(&mut Errand) -> Result<T, Stop>) -> Result<(T, State), Stop> {
    visit_as(setup, Kind::OneShot, then)
}

/// The same for a command of some kind.
pub fn visit_as<T>(
    setup: &Setup,
    kind: Kind,
    then: impl AsyncFnOnce(&mut Errand) -> Result<T, Stop>,
) -> Result<(T, State), Stop> {
    let _log = setup::log(&setup.places.state_dir);
    let runtime = setup::runtime()?;
    let visited = runtime.block_on(async {
        let Program { state, performer, inbox } = setup.program(kind)?;
        let mut errand = Errand::new(state, performer, inbox);
        errand.start();
        let looked = errand.run_until(|state| settled(state, None, clock::now())).await;
        let done = match looked {
            Ok(()) => then(&mut errand).await,
            Err(error) => Err(Stop::failed(error)),
        };
        errand.hear_channels(Errand::PATIENCE).await;
        let state = errand.end();
        done.map(|done| (done, state))
    });
    setup::end(runtime);
    visited
}

/// So often what alerts and budgets say is asked for anew: the books may have to answer in between.
const ROUNDS: usize = 5;

/// So long the books are waited for: of an empty ledger, and of one that was not ended well, they are added up first.
const BOOKS: Duration = Duration::from_secs(10);

/// Brings up to date how budgets stand, and what is worth an alert, as of what was seen until now.
pub async fn stand(errand: &mut Errand) {
    for _ in 0..ROUNDS {
        errand.catch_up().await;
        look_anew(errand);
        if budgets_stand(&errand.state) {
            return;
        }
    }
    // In vain where the books cannot be read: what is unknown is shown as such.
    drop(tokio::time::timeout(BOOKS, errand.run_until(budgets_stand)).await);
    look_anew(errand);
}

/// Budgets and alerts are as of now, however short a time ago they were looked at.
fn look_anew(errand: &mut Errand) {
    errand.state.world.budgets.as_of = None;
    errand.state.world.alerting.looked_at = None;
    errand.take(Event::World(WorldEvent::Tick));
}

/// The books have answered for every budget.
fn budgets_stand(state: &State) -> bool {
    let budgets = &state.world.budgets;
    budgets.standings.len() == budgets.rules.len() && budgets.standings.iter().all(Option::is_some)
}

/// The look alone.
pub fn look(setup: &Setup) -> Result<(State, Timestamp), Stop> {
    let (now, state) = visit(setup, async |_| Ok(clock::now()))?;
    Ok((state, now))
}

/// Every account was asked, or need not be; with `only`, that one.
pub fn settled(state: &State, only: Option<&str>, now: Timestamp) -> bool {
    let world = &state.world;
    let mut accounts =
        world.fleet.accounts.iter().filter(|account| only.is_none_or(|name| account.name.as_str() == name));
    world.remembered
        && world.collector.is_some()
        && accounts.all(|account| {
            let pacing = &account.pacing;
            let wanted = pacing.in_flight.is_some() || pacing.wanted;
            let asked = !wanted && world.due(account, now).is_none_or(|at| at > now);
            account.trouble.is_some() || asked
        })
}

/// Says on standard error what is wrong with the ledger.
pub fn told_ledger(setup: &Setup, state: &State) {
    for notice in &state.world.ledger_notices {
        warn(format_args!("rentop: {}", setup.language.ledger_notice(notice)));
    }
}

/// Says on standard error what the ledger told, and what that makes of the exit code of a command that only reads it.
pub fn told_notices(setup: &Setup, events: Vec<Event>) -> Exit {
    let mut exit = Exit::Done;
    for event in events {
        let Event::World(WorldEvent::Ledger(notice)) = event else { continue };
        warn(format_args!("rentop: {}", setup.language.ledger_notice(&notice)));
        // The real ledger may hold more than what is printed.
        if matches!(notice, LedgerNotice::NotWritable { .. }) {
            exit = Exit::Failed;
        }
    }
    exit
}

/// Says on standard error what is wrong with the ledger and which accounts failed, and what the latter makes
/// of the exit code.
pub fn told_trouble(setup: &Setup, state: &State) -> Exit {
    let mut exit = Exit::Done;
    told_ledger(setup, state);
    if let Some((account, ahead)) = state.world.fleet.clock_off() {
        warn(format_args!("rentop: {}", setup.language.clock_off(account, ahead)));
    }
    for account in &state.world.fleet.accounts {
        let trouble = account.trouble.iter().map(|trouble| trouble.value.line());
        for line in trouble.chain(account.problems.iter().map(ToString::to_string)) {
            warn(format_args!("rentop: {}/{}: {line}", account.provider, account.name));
            exit = Exit::Partly;
        }
    }
    exit
}
