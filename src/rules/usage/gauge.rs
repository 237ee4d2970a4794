//! All that is known of what one instance does.

use std::collections::VecDeque;

use jiff::Timestamp;
use providers::usage::{Usage, UsageSource};

use super::{History, Idleness, Recent, Slot};

/// How many past utilizations the curve on a row holds.
pub const TREND: usize = 8;

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
    /// Since when it is known to run, by our clock: of a machine whose provider does not tell when it started.
    pub running_since: Option<Timestamp>,
}

impl Gauge {
    /// Takes a look in. The machine's own looks are the better ones: as long as they come, the provider's add nothing
    /// to what is kept.
    pub fn note(&mut self, usage: &Usage, rented: u32) {
        let own = self.ssh.as_deref().filter(|own| own.is_fresh(usage.as_of));
        if usage.source == UsageSource::Provider && own.is_some() {
            return;
        }
        self.history.note(usage, rented);
        self.recent.note(usage);
        if let Some(mean) = usage.mean_utilization() {
            self.trend.push_back(mean as f32);
            self.forget_surplus();
        }
        if usage.source == UsageSource::Ssh {
            self.ssh = Some(Box::new(usage.clone()));
        }
    }

    /// Takes in what the ledger knew, the oldest first. Until there are enough looks, the trend begins with it.
    pub fn restore(&mut self, slot: &Slot) {
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

    fn forget_surplus(&mut self) {
        while self.trend.len() > TREND {
            self.trend.pop_front();
            self.recalled = self.recalled.saturating_sub(1);
        }
    }
}
