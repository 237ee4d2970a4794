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
    /// The last slot that the trend was made from, before there were looks.
    trend_slot: Option<i64>,
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
            self.add_to_trend(mean);
        }
        if usage.source == UsageSource::Ssh {
            self.ssh = Some(Box::new(usage.clone()));
        }
    }

    /// Takes in what the ledger knew. Until there are looks, the trend is made of it.
    pub fn restore(&mut self, slot: &Slot) {
        self.history.restore(slot);
        if self.recent.is_empty() && self.trend_slot.is_none_or(|last| last < slot.number) {
            self.trend_slot = Some(slot.number);
            let used: Vec<f64> = slot.cards.iter().filter_map(|card| card.peak.known()).collect();
            if !used.is_empty() {
                self.add_to_trend(used.iter().sum::<f64>() / used.len() as f64);
            }
        }
    }

    fn add_to_trend(&mut self, mean: f64) {
        while self.trend.len() >= TREND {
            self.trend.pop_front();
        }
        self.trend.push_back(mean as f32);
    }
}
