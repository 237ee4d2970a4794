//! Leases as a process knows them: those in force, how their instances are asked, and what is on its way to the ledger.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use providers::model::Identity;
use providers::money::Currency;

use super::state::World;
use crate::rules::lease::{Commands, Draft, Instead, Lease, LeaseId, Next, Shift, Sight, Watch, What, When};
use crate::rules::plan::recipe_for;

/// What is to happen to instances by itself.
#[derive(Clone, Debug, Default)]
pub struct Leases {
    pub(super) by: BTreeMap<LeaseId, Lease>,
    pub(super) watches: BTreeMap<LeaseId, Watch>,
    /// How often the ledger has yet to say whether one is written.
    pub(super) unkept: BTreeMap<LeaseId, u32>,
    /// Those that it was never told of before.
    pub(super) fresh: BTreeSet<LeaseId>,
    /// Those whose action begins once they are written; with a reason, it is a stop in place of what was asked for.
    pub(super) taking: BTreeMap<LeaseId, Option<Instead>>,
    /// Those that could not be written, and when that is tried again.
    pub(super) unwritten: BTreeMap<LeaseId, Timestamp>,
    /// Those that nothing can be done about before then.
    pub(super) paused: BTreeMap<LeaseId, Timestamp>,
    /// What the config says of timers on instances.
    pub commands: Commands,
}

impl Leases {
    /// Those in force, the oldest first.
    pub fn in_force(&self) -> impl Iterator<Item = &Lease> {
        self.by.values().filter(|lease| !lease.is_ended())
    }

    /// Those of one instance.
    pub fn of(&self, identity: &Identity) -> impl Iterator<Item = &Lease> {
        self.in_force().filter(move |lease| lease.identity == *identity)
    }

    /// Takes over what the ledger has in force. What it has yet to be told of stays.
    pub(super) fn remember(&mut self, leases: Vec<Lease>) {
        let (unkept, unwritten) = (&self.unkept, &self.unwritten);
        self.by.retain(|id, _| unkept.contains_key(id) || unwritten.contains_key(id));
        for lease in leases {
            self.by.entry(lease.id).or_insert(lease);
        }
    }

    pub(super) fn forget(&mut self, id: LeaseId) {
        self.by.remove(&id);
        self.watches.remove(&id);
        self.fresh.remove(&id);
        self.taking.remove(&id);
        self.unwritten.remove(&id);
        self.paused.remove(&id);
    }

    /// The ledger has all that it was told.
    pub fn are_kept(&self) -> bool {
        self.unkept.is_empty()
    }
}

/// What somebody should know before a lease is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// This checkpoint is made first.
    SavedBy(String),
    /// No checkpoint of the config fits it: it is stopped in place of being released.
    NoCheckpoint,
    /// It is protected, which keeps no lease of its own from it.
    Protected,
    /// A process leaves no exit code: once it is gone the instance is kept, and somebody is asked.
    NoExitCode,
    Shifted(Shift),
    /// Another lease ends by it.
    Replaces(What, When),
    /// The timer that is armed on the instance for that one stays armed.
    StaysArmed,
}

/// The currencies that instances cost in.
pub fn currencies(world: &World, asked: &[Identity]) -> Vec<Currency> {
    let known = asked.iter().filter_map(|identity| world.fleet.instances.get(identity));
    let mut currencies: Vec<Currency> =
        known.flat_map(|known| known.row.rates.lines.iter().map(|line| line.rate.currency)).collect();
    currencies.sort_unstable();
    currencies.dedup();
    currencies
}

/// What somebody should know of a lease before it is made.
pub fn notes(world: &World, draft: &Draft, shift: Option<Shift>, now: Timestamp) -> Vec<Note> {
    let Draft { identity, what, when, .. } = draft;
    let mut notes = Vec::new();
    let provider = world.fleet.account(&identity.account).map(|account| &account.provider);
    if *what == What::Release
        && let Some(provider) = provider
    {
        let recipe = recipe_for(world.basis(&[], now), provider, identity);
        notes.push(recipe.map_or(Note::NoCheckpoint, |rule| Note::SavedBy(rule.recipe.name.clone())));
    }
    if matches!(when, When::Process { .. }) {
        notes.push(Note::NoExitCode);
    }
    notes.extend(shift.map(Note::Shifted));
    let known = world.fleet.instances.get(identity);
    let protected =
        provider.zip(known).is_some_and(|(provider, known)| world.settings.protected(provider, identity, &known.row));
    if protected && *what != What::Start {
        notes.push(Note::Protected);
    }
    let same_side = |lease: &&Lease| (lease.what == What::Start) == (*what == What::Start);
    for lease in world.leases.of(identity).filter(same_side) {
        notes.push(Note::Replaces(lease.what, lease.when.clone()));
        notes.extend(lease.is_armed().then_some(Note::StaysArmed));
    }
    notes
}

impl World {
    /// What happens to an instance next by itself, and when; `None` when nothing.
    pub fn next_of(&self, identity: &Identity) -> Option<Next> {
        self.leases.of(identity).filter_map(Lease::next).min()
    }

    /// The instance of a lease as it is known now.
    pub(super) fn sight(&self, identity: &Identity) -> Sight {
        let fleet = &self.fleet;
        let another = || {
            let mut there = fleet.instances_of(&identity.account).filter(|known| !known.is_gone());
            there.any(|known| known.identity.id == identity.id && known.identity.generation > identity.generation)
        };
        match fleet.instances.get(identity) {
            Some(known) if !known.is_gone() => match known.missing_since {
                Some(_) => Sight::Untold,
                None => Sight::Here { phase: known.phase(), rates: known.rates().upper().rates().to_vec() },
            },
            _ if another() => Sight::AnotherMachine,
            Some(_) => Sight::Gone,
            // Gone for so long that it is shown no more; before this process has read a whole list, nobody knows.
            None => {
                let heard = fleet.account(&identity.account).is_some_and(|account| {
                    account.tenant_checked && account.as_of.is_some() && account.last_complete == account.as_of
                });
                if heard && fleet.trusts(&identity.account) { Sight::Gone } else { Sight::Untold }
            }
        }
    }
}
