//! What the machines do, look after look, and what follows: how busy, how long idle, fewer cards than rented.
//!
//! `share` is a figure small enough to be kept by the thousand, `history` keeps a day by the minute and what of it
//! outlives the program, `recent` the last minutes look by look; `idleness` judges, `gauge` holds all of it for one
//! instance, `seen` compares what is there with what is rented.

mod gauge;
mod history;
mod idleness;
mod recent;
mod seen;
mod share;

pub use gauge::{Gauge, TREND};
pub use history::{CardMinute, Flow, HISTORY, History, HostMinute, MINUTE, Minute, SLOT, Slot, minute_of};
pub use idleness::{Hint, IdleRule, Idleness, Judged, Verdict, Why, Work, idle_until, judge};
pub use recent::{RECENT, Recent};
pub use seen::{Mismatch, mismatch};
pub use share::Share;

use providers::model::Identity;
use providers::usage::Usage;
use serde::{Deserialize, Serialize};

/// What is kept of five minutes of one instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UsageEntry {
    pub identity: Identity,
    pub slot: Slot,
    /// The last look of all, where the slot is the last one.
    #[serde(default)]
    pub latest: Option<Box<Usage>>,
}

/// The most memory that an instance ever used, over the last week.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WeeksPeak {
    pub identity: Identity,
    /// Of one card, as a share of its own.
    pub memory: Share,
    /// In how many five-minute slots of the week something was seen.
    pub slots: u32,
}
