//! What idle instances cost is waste: here the meter and the books follow the verdicts.

use std::collections::BTreeMap;

use jiff::Timestamp;
use providers::model::{AccountName, Identity};

use crate::app::effect::Effect;
use crate::app::state::World;
use crate::rules::spend::{Entries, Marking};
use crate::rules::usage::Idleness;

/// Makes what is counted as waste follow a verdict. `until` is up to when it was idle, of one that was so and is so no
/// longer. Returns the verdict, since when by all that the meter knows.
pub fn follow(world: &mut World, identity: &Identity, idleness: Idleness, until: Option<Timestamp>) -> Idleness {
    let World { fleet, gauges, spending, .. } = world;
    let (account, meter) = (&identity.account, &mut spending.meter);
    let since = idleness.since.filter(|_| idleness.wastes()).map(|since| fleet.there(account, since));
    let marked = meter.idle_since(identity);
    let (from, wasted) = match (since, marked) {
        (None, None) if !fleet.idle.contains(identity) => return idleness,
        (Some(since), Some(marked)) if marked <= since && fleet.idle.contains(identity) => {
            return Idleness { since: Some(fleet.here(account, marked)), ..idleness };
        }
        (Some(since), _) => (since, true),
        (None, marked) => (until.map(|until| fleet.there(account, until)).or(marked).unwrap_or(Timestamp::MAX), false),
    };
    if meter.closed_since(identity, from) && (wasted || marked.is_some()) {
        gauges.markings.push(Marking { identity: identity.clone(), from, to: None, wasted });
    }
    gauges.turned.insert(identity.clone());
    if !wasted {
        fleet.idle.remove(identity);
        meter.works(identity, from);
        return idleness;
    }
    fleet.idle.insert(identity.clone());
    let since = meter.idles(identity, from).map(|since| fleet.here(account, since));
    Idleness { since: since.or(idleness.since), ..idleness }
}

/// Writes down what turned out to be waste, or none.
pub fn write_down(world: &mut World, now: Timestamp) -> Vec<Effect> {
    if world.gauges.turned.is_empty() {
        return Vec::new();
    }
    let (turned, markings) = (std::mem::take(&mut world.gauges.turned), std::mem::take(&mut world.gauges.markings));
    world.changed = true;
    if !world.collects() {
        return Vec::new();
    }
    let mut entries: BTreeMap<AccountName, Entries> = BTreeMap::new();
    for identity in turned {
        // What has ended meanwhile was written down with its end.
        if let Some(running) = world.spending.meter.running().get(&identity) {
            let own = entries.entry(identity.account.clone()).or_default();
            own.open.insert(identity, Some(running.clone()));
        }
    }
    let mut effects: Vec<Effect> =
        entries.into_iter().filter_map(|(account, entries)| super::world::kept(world, &account, entries)).collect();
    if !markings.is_empty() {
        effects.push(Effect::MarkWaste(markings));
        effects.push(super::spend::sum_up(world, now));
    }
    effects
}

#[cfg(test)]
#[path = "waste_tests.rs"]
mod tests;
