//! `rentop check`: one look, and whether something fires.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::alerts::Listing;
use super::look::{settled, stand, told_trouble, visit_as};
use super::setup::{Kind, Setup};
use super::table::print_json;
use super::{Common, Exit, Stop, tell};
use crate::app::Event;
use crate::app::event::WorldEvent;
use crate::app::state::State;
use crate::runtime::clock;
use crate::runtime::errand::Errand;

/// Messages that were not taken by then stay in the queue.
const SENDING: Duration = Duration::from_secs(20);

/// What is tried again later than so is not waited for.
const SOON: SignedDuration = SignedDuration::from_secs(20);

/// So long it is waited for what providers say of single instances that their lists miss.
const LOOKING: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, clap::Args)]
pub struct CheckArgs {
    /// JSON, for scripts.
    #[arg(long)]
    pub json: bool,
}

pub fn run(common: &Common, args: CheckArgs) -> Result<Exit, Stop> {
    let setup = Setup::read(common)?;
    setup.need_accounts()?;
    let began = clock::now();
    let ((), state) = visit_as(&setup, Kind::Check, async |errand| look_and_tell(errand, began).await)?;
    let listing = Listing::of(state.world.alerting.alerts.calling(), &setup, clock::now());
    if args.json {
        print_json(&listing)?;
    } else {
        listing.alerts.iter().for_each(|alert| tell(&alert.text));
    }
    let trouble = told_trouble(&setup, &state);
    Ok(if listing.alerts.is_empty() { trouble } else { Exit::Failed })
}

/// Comes after a look at all accounts of which the ledger was old. Who collects asks the others as well; who does not
/// takes the word of the process that does.
async fn look_and_tell(errand: &mut Errand, began: Timestamp) -> Result<(), Stop> {
    if errand.state.world.collects() {
        for account in &mut errand.state.world.fleet.accounts {
            account.pacing.wanted = account.pacing.asked_at.is_none_or(|asked_at| asked_at < began);
        }
        errand.take(Event::World(WorldEvent::Tick));
        errand.run_until(|state| settled(state, None, clock::now())).await.map_err(Stop::failed)?;
        // Without the answer nothing would ever be known to be gone where each look is a program of its own.
        let known = tokio::time::timeout(LOOKING, errand.run_until(|state| !is_asked_by_id(state))).await;
        known.unwrap_or(Ok(())).map_err(Stop::failed)?;
    }
    stand(errand).await;
    if errand.state.world.collects() {
        // In vain when a channel takes nothing: what waits for it is in the ledger.
        let told = tokio::time::timeout(SENDING, errand.run_until(is_told)).await;
        told.unwrap_or(Ok(())).map_err(Stop::failed)?;
    }
    errand.catch_up().await;
    Ok(())
}

/// An instance was missed by two lists, and nobody knows yet whether it is gone.
fn is_asked_by_id(state: &State) -> bool {
    state.world.fleet.instances.values().any(|known| !known.is_gone() && known.absences >= 2)
}

/// No message is under way, and none waits that will be tried soon.
fn is_told(state: &State) -> bool {
    let dispatch = &state.world.alerting.dispatch;
    dispatch.awaits_nothing() && dispatch.next_wake().is_none_or(|at| at.duration_since(clock::now()) > SOON)
}
