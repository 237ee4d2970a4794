//! The last ten minutes of an instance, look by look: for the chart of the row that somebody has under the cursor.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};
use providers::usage::Usage;

use super::Share;

/// How far back it reaches.
pub const RECENT: SignedDuration = SignedDuration::from_mins(10);

/// Looks, the oldest first.
#[derive(Clone, Debug, Default)]
pub struct Recent(VecDeque<(Timestamp, Box<[Share]>)>);

impl Recent {
    /// Takes a look in. One that is not later than the last is dropped.
    pub fn note(&mut self, usage: &Usage) {
        if self.0.back().is_some_and(|(at, _)| *at >= usage.as_of) {
            return;
        }
        while self.0.front().is_some_and(|(at, _)| usage.as_of.duration_since(*at) > RECENT) {
            self.0.pop_front();
        }
        let shares = usage.gpus.iter().map(|gpu| Share::from(gpu.utilization)).collect();
        self.0.push_back((usage.as_of, shares));
    }

    /// The use of one card at each look, the oldest first.
    pub fn of_card(&self, card: usize) -> impl Iterator<Item = (Timestamp, Share)> {
        self.0.iter().map(move |(at, shares)| (*at, shares.get(card).copied().unwrap_or_default()))
    }
}
