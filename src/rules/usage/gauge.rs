//! All that is known of what one instance does.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};
use providers::model::Phase;
use providers::usage::{GpuSample, Usage, UsageSource};

use super::history::{SLOT, minute_of};
use super::{History, IdleRule, Idleness, Recent, Slot};

/// How many past utilizations the curve on a row holds.
pub const TREND: usize = 8;

/// So long the same figures to the last digit may be looks, where one of them has digits after its point: those move
/// even on a machine that does nothing. What stands still for longer is perhaps what a provider heard last of a machine
/// that no longer tells it anything. Whole percents and degrees of an idle machine do stand still.
const REPEATS: SignedDuration = SignedDuration::from_mins(10);

/// All that a provider tells of use.
type Figures = (Vec<GpuSample>, Option<f64>, Option<f64>);

#[derive(Clone, Debug, Default)]
pub struct Gauge {
    /// The last look of the machine itself; that of the provider stands with the row.
    pub ssh: Option<Box<Usage>>,
    pub history: History,
    pub recent: Recent,
    /// The last mean utilizations, newest last.
    pub trend: VecDeque<f32>,
    pub idleness: Idleness,
    /// How many of them are the ledger's, not looks, and the last slot that they are from.
    recalled: usize,
    recalled_to: Option<i64>,
    /// Since when it was seen to run, by our clock. `None` while it does not run, and of one that ran already when it
    /// was first seen.
    running_since: Option<Timestamp>,
    /// When it was last seen not to run.
    rested: Option<Timestamp>,
    /// When it was last judged.
    pub judged_at: Option<Timestamp>,
    /// We are copying from it: what its processor, its disks and its network do is no work of its own.
    pub copied_from: bool,
    /// What a provider that names no time of its own said last, and when it said so first.
    told: Option<(Figures, Timestamp)>,
    /// The first minute of which something was learnt since then.
    learnt: Option<i64>,
    /// When the last look in the trend was taken.
    trend_at: Option<Timestamp>,
}

impl Gauge {
    /// Takes a look in. The machine's own looks are the better ones: as long as they come, the provider's add nothing
    /// to what is kept.
    pub fn note(&mut self, usage: &Usage, rented: Option<u32>) {
        let repeats = self.repeats(usage);
        let own = self.ssh.as_deref().filter(|own| own.is_fresh(usage.as_of));
        if usage.source == UsageSource::Provider && (own.is_some() || repeats) {
            return;
        }
        self.learn(minute_of(usage.as_of));
        match self.copied_from {
            true => self.history.note(&cards_alone(usage), rented),
            false => self.history.note(usage, rented),
        }
        self.recent.note(usage);
        // A provider that tells the same figures again has not looked again.
        if let Some(mean) = usage.mean_utilization().filter(|_| self.trend_at != Some(usage.as_of)) {
            self.trend_at = Some(usage.as_of);
            self.trend.push_back(mean as f32);
            self.forget_surplus();
        }
        if usage.source == UsageSource::Ssh {
            self.ssh = Some(Box::new(usage.clone()));
        }
    }

    /// Whether a provider that names no time of its own has said the very same for so long that nobody may be looking
    /// any more.
    fn repeats(&mut self, usage: &Usage) -> bool {
        if usage.source != UsageSource::Provider || usage.timed || !breathes(usage) {
            return false;
        }
        let figures = (usage.gpus.clone(), usage.cpu, usage.memory);
        match &self.told {
            Some((told, first)) if *told == figures && *first <= usage.as_of => {
                usage.as_of.duration_since(*first) >= REPEATS
            }
            _ => {
                self.told = Some((figures, usage.as_of));
                false
            }
        }
    }

    /// Takes in what the ledger knew, the oldest first. Until there are enough looks, the trend begins with it.
    pub fn restore(&mut self, slot: &Slot) {
        self.learn(slot.number * SLOT);
        self.history.restore(slot);
        let used: Vec<f64> = slot.cards.iter().filter_map(|card| card.peak.known()).collect();
        if used.is_empty() || self.recalled_to.is_some_and(|last| last >= slot.number) {
            return;
        }
        self.recalled_to = Some(slot.number);
        self.trend.insert(self.recalled, (used.iter().sum::<f64>() / used.len() as f64) as f32);
        self.recalled += 1;
        self.forget_surplus();
    }

    /// Takes in a sight of its phase. What is neither known to run nor to rest changes nothing.
    pub fn saw(&mut self, phase: Phase, now: Timestamp) {
        match phase {
            Phase::Running => {
                if self.rested.is_some() {
                    self.running_since.get_or_insert(now);
                }
            }
            Phase::Provisioning | Phase::Stopping | Phase::Stopped | Phase::Reclaimed | Phase::Failed => {
                (self.rested, self.running_since) = (Some(now), None);
            }
            Phase::Unreachable | Phase::Releasing | Phase::Gone | Phase::Unknown => {}
        }
    }

    /// Since when it runs, by our clock: as its provider tells, unless it was seen not to run after that; some tell the
    /// begin of the first run only. `None` when nobody knows.
    pub fn running_since(&self, told: Option<Timestamp>) -> Option<Timestamp> {
        told.filter(|told| self.rested.is_none_or(|rested| *told >= rested)).or(self.running_since).or(told)
    }

    /// The verdict before, as long as it still tells since when nothing was done: nothing was learnt since then of what
    /// lies before the window.
    pub fn before(&self, rule: &IdleRule, now: Timestamp) -> Option<&Idleness> {
        let first = rule.first(minute_of(now)) - 1;
        Some(&self.idleness).filter(|_| self.learnt.is_none_or(|learnt| learnt >= first))
    }

    /// Something was learnt since it was last judged.
    pub fn has_learnt(&self) -> bool {
        self.learnt.is_some()
    }

    fn learn(&mut self, minute: i64) {
        self.learnt = Some(self.learnt.map_or(minute, |learnt| learnt.min(minute)));
    }

    /// Takes a verdict in.
    pub fn judged(&mut self, idleness: Idleness, now: Timestamp) {
        (self.idleness, self.judged_at, self.learnt) = (idleness, Some(now), None);
    }

    fn forget_surplus(&mut self) {
        while self.trend.len() > TREND {
            self.trend.pop_front();
            self.recalled = self.recalled.saturating_sub(1);
        }
    }
}

/// A look that tells of the cards, and of nothing that a copy of ours sets in motion.
fn cards_alone(usage: &Usage) -> Usage {
    Usage { cpu: None, disk_bytes_per_second: None, network_bytes_per_second: None, ..usage.clone() }
}

/// Whether one of its figures is told finer than in whole percents, degrees and watts.
fn breathes(usage: &Usage) -> bool {
    let fine = |figure: f64| (figure - figure.round()).abs() > 1e-6;
    let shares = [usage.cpu, usage.memory].into_iter().flatten().map(|share| share * 100.0);
    let of_card = |gpu: &GpuSample| [gpu.utilization.map(|share| share * 100.0), gpu.temperature_c, gpu.power_watts];
    shares.chain(usage.gpus.iter().flat_map(of_card).flatten()).any(fine)
}
