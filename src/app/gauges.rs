//! What the machines do, as the collector knows it: a gauge for each, and what is asked of all of them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use providers::model::{Identity, Instance, Phase};
use providers::usage::Usage;

use super::state::World;
use crate::rules::fleet::Known;
use crate::rules::usage::{Gauge, Idleness, Mismatch, WeeksPeak, mismatch};

#[derive(Clone, Debug, Default)]
pub struct Gauges {
    pub(super) by: BTreeMap<Identity, Gauge>,
    pub(super) peaks: BTreeMap<Identity, WeeksPeak>,
    /// When slots were last written down, or read.
    pub(super) kept_at: Option<Timestamp>,
    /// When the most of the week was last asked for.
    pub(super) peaks_asked_at: Option<Timestamp>,
    /// When all of them were last judged.
    pub(super) judged_at: Option<Timestamp>,
}

impl Gauges {
    pub fn get(&self, identity: &Identity) -> Option<&Gauge> {
        self.by.get(identity)
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
        match (own, told) {
            (Some(own), Some(told)) if !own.is_fresh(told.as_of) => Some(told),
            (own, told) => own.or(told),
        }
    }

    /// Whether it works; of what is not known at all, that this is so.
    pub fn idleness(&self, identity: &Identity) -> Option<&Idleness> {
        self.gauges.get(identity).map(|gauge| &gauge.idleness)
    }

    /// How its cards differ from those that are rented.
    pub fn mismatch(&self, known: &Known<Instance>) -> Option<Mismatch> {
        mismatch(known.row.gpus.as_ref(), self.usage(known)?)
    }
}
