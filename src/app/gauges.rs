//! What the machines do, as the collector knows it: a gauge for each, and what is asked of all of them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use providers::model::{Identity, Instance, Phase};
use providers::money::Currency;
use providers::usage::Usage;

use super::state::World;
use crate::rules::fleet::Known;
use crate::rules::spend::{Exact, Marking};
use crate::rules::usage::{Gauge, Idleness, Mismatch, Verdict, WeeksPeak, mismatch};

/// What about a machine somebody should look at now.
#[derive(Clone, Debug, PartialEq)]
pub enum Alarm<'a> {
    /// Its host has another key than before.
    HostKeyChanged,
    Mismatch(Mismatch),
    /// What its driver says.
    Fault(&'a str),
}

#[derive(Clone, Debug, Default)]
pub struct Gauges {
    pub(super) by: BTreeMap<Identity, Gauge>,
    pub(super) peaks: BTreeMap<Identity, WeeksPeak>,
    /// When slots were last written down, or read.
    pub(super) kept_at: Option<Timestamp>,
    /// When the most of the week was last asked for.
    pub(super) peaks_asked_at: Option<Timestamp>,
    /// When all of them were last begun to be judged.
    pub(super) judged_at: Option<Timestamp>,
    /// All of them are being judged: the last one that was; `None` inside when none was so far.
    pub(super) round: Option<Option<Identity>>,
    /// What the ledger knew was told in part, and the rest is asked for.
    pub(super) recalling: bool,
    /// Instances that are idle, or no longer, and what of it the books do not know yet.
    pub(super) turned: BTreeSet<Identity>,
    pub(super) markings: Vec<Marking>,
}

impl Gauges {
    /// Of what the ledger knew nothing is still to come that belongs to what was told.
    pub fn are_recalled(&self) -> bool {
        !self.recalling
    }

    pub fn get(&self, identity: &Identity) -> Option<&Gauge> {
        self.by.get(identity)
    }

    /// In the order of identities.
    pub fn iter(&self) -> impl Iterator<Item = (&Identity, &Gauge)> {
        self.by.iter()
    }
}

/// Of what the machine itself and its provider told, what is to be gone by.
pub(super) fn latest<'a>(own: Option<&'a Usage>, told: Option<&'a Usage>) -> Option<&'a Usage> {
    match (own, told) {
        (Some(own), Some(told)) if !own.is_fresh(told.as_of) => Some(told),
        (own, told) => own.or(told),
    }
}

impl World {
    /// What a running instance does: by the machine itself as long as that is not much older than what its provider
    /// says.
    pub fn usage<'a>(&'a self, known: &'a Known<Instance>) -> Option<&'a Usage> {
        if known.phase() != Phase::Running {
            return None;
        }
        let own = self.gauges.get(&known.identity).and_then(|gauge| gauge.ssh.as_deref());
        let told = known.row.usage.as_ref();
        latest(own, told)
    }

    /// Whether it works; of what is not known at all, that this is so.
    pub fn idleness(&self, identity: &Identity) -> Option<&Idleness> {
        self.gauges.get(identity).map(|gauge| &gauge.idleness)
    }

    /// What an instance was charged since it does nothing, one a currency: of an idle one it is waste. `None` while it
    /// works, or nobody knows; of one that waits see [`World::waited`].
    pub fn wasted(&self, identity: &Identity, now: Timestamp) -> Option<Vec<(Currency, Exact)>> {
        self.charged_while(Verdict::Idle, identity, now)
    }

    /// What an instance was charged since it waits to serve, one a currency: no waste, but worth a thought.
    pub fn waited(&self, identity: &Identity, now: Timestamp) -> Option<Vec<(Currency, Exact)>> {
        self.charged_while(Verdict::Waiting, identity, now)
    }

    fn charged_while(&self, verdict: Verdict, identity: &Identity, now: Timestamp) -> Option<Vec<(Currency, Exact)>> {
        let idleness = self.idleness(identity).filter(|idleness| idleness.verdict == verdict)?;
        let since = self.fleet.there(&identity.account, idleness.since?);
        Some(self.spending.meter.charged_since(identity, since, now))
    }

    /// What about it needs somebody, as far as the machine itself tells.
    pub fn alarms(&self, known: &Known<Instance>) -> Vec<Alarm<'_>> {
        self.alarms_of(known, self.gauges.get(&known.identity))
    }

    /// The same for whoever has its gauge at hand.
    pub fn alarms_of<'a>(&self, known: &Known<Instance>, gauge: Option<&'a Gauge>) -> Vec<Alarm<'a>> {
        let mut alarms = Vec::new();
        if self.streams.alarm(&known.identity).is_some() {
            alarms.push(Alarm::HostKeyChanged);
        }
        // What a provider tells is no look at the cards; and what a machine told in a run before is over.
        let Some(seen) = gauge.and_then(|gauge| gauge.ssh.as_deref()).filter(|_| known.phase() == Phase::Running)
        else {
            return alarms;
        };
        alarms.extend(mismatch(known.row.gpus.as_ref(), seen).map(Alarm::Mismatch));
        let fault = seen.fault.as_deref().or_else(|| seen.gpus.iter().find_map(|gpu| gpu.fault.as_deref()));
        alarms.extend(fault.map(Alarm::Fault));
        alarms
    }

    /// How its cards differ from those that are rented.
    pub fn mismatch(&self, known: &Known<Instance>) -> Option<Mismatch> {
        mismatch(known.row.gpus.as_ref(), self.usage(known)?)
    }
}
