//! Spend: what was charged, as spans of time at a rate, each with the evidence for it.
//!
//! `lines` says what a resource is charged now, `meter` holds what is open, and `accrue` turns one look after
//! another into spans; `cell` is what spans add up to, `report` how that is grouped, `period` which days it is for.

mod accrue;
mod amount;
mod billing;
mod cell;
mod exchange;
mod idle;
mod lines;
mod meter;
mod moment;
mod period;
mod question;
mod range;
mod report;
mod rounding;
mod sights;
mod tally;

pub use amount::Exact;
pub use billing::Billing;
pub use cell::{Amounts, Billable, COMPONENTS, Cell, Sums};
pub use exchange::{Exchange, Fx, Joined};
pub use idle::IdleTimes;
pub use lines::Look;
use lines::{Charged, Seen};
pub use meter::{Entries, Horizon, Meter, OpenLine, Running, State};
pub use moment::From;
pub use period::{Period, by_day, date_of, start_of};
pub use question::{Answer, Assignment, BalanceChange, Entry, Marking, Question};
pub use range::{Range, RangeMistake, parse_days};
pub use report::{By, Group, Key, Report, open_cells};
pub use rounding::{PLACES, adds_up, share};
pub use tally::{RowSums, Summed, Tally};

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use providers::model::{Component, Identity};
use providers::money::{Currency, Rate};
use serde::{Deserialize, Serialize};

/// How it is known that something was charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// The provider says itself what it charged.
    Billed,
    /// Both ends were seen, by looks that lie close together.
    Observed,
    /// A gap between two looks, closed by the provider's own times.
    Inferred,
    /// A gap between two looks, the last known rate going on.
    Assumed,
}

impl Evidence {
    pub const ALL: [Evidence; 4] = [Evidence::Billed, Evidence::Observed, Evidence::Inferred, Evidence::Assumed];

    /// The word of `--json` and of the ledger.
    pub fn word(self) -> &'static str {
        match self {
            Evidence::Billed => "billed",
            Evidence::Observed => "observed",
            Evidence::Inferred => "inferred",
            Evidence::Assumed => "assumed",
        }
    }
}

/// In which sums a charge stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Charge {
    /// It is charged: part of every total.
    Certain,
    /// It may be charged (starting, unknown, or gone nobody knows when): an upper limit, in no total.
    Possible,
    /// It was paid ahead: shown beside the total.
    Prepaid,
}

impl Charge {
    pub const ALL: [Charge; 3] = [Charge::Certain, Charge::Possible, Charge::Prepaid];

    /// The word of the ledger.
    pub fn word(self) -> &'static str {
        match self {
            Charge::Certain => "certain",
            Charge::Possible => "possible",
            Charge::Prepaid => "prepaid",
        }
    }
}

/// What a charge is for and whose it is: all that sums tell apart but time, rate and evidence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Terms {
    pub component: Component,
    pub charge: Charge,
    /// While idle, stopped or unattached. Of what was paid ahead: while it stood unused. Of an open line: but for
    /// idle times, which lie over it.
    pub wasted: bool,
    /// The project at the time of the spend.
    pub project: Option<Arc<str>>,
    /// GPUs that a compute charge is for; 0 for every other component.
    pub gpus: u32,
}

/// A time during which one component of one resource was charged at one rate.
///
/// Spans of one resource, component and charge never overlap. Times are whole milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    pub identity: Identity,
    pub terms: Terms,
    pub rate: Rate,
    pub from: Timestamp,
    /// After `from`.
    pub to: Timestamp,
    pub evidence: Evidence,
}

impl Span {
    pub fn amount(&self) -> Exact {
        self.part().amount()
    }

    /// GPU-milliseconds.
    pub fn gpu_ms(&self) -> i64 {
        self.part().gpu_ms()
    }

    /// All of it.
    pub fn part(&self) -> Part<'_> {
        let Span { identity, terms, rate, from, to, evidence } = self;
        let terms = Cow::Borrowed(terms);
        Part { identity, terms, rate: *rate, from: *from, to: *to, evidence: *evidence }
    }
}

/// A span, or some of its time, that is only looked at.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    pub identity: &'a Identity,
    pub terms: Cow<'a, Terms>,
    pub rate: Rate,
    pub from: Timestamp,
    /// After `from`.
    pub to: Timestamp,
    pub evidence: Evidence,
}

impl Part<'_> {
    pub fn amount(&self) -> Exact {
        Exact::over(self.rate, self.from, self.to)
    }

    /// GPU-milliseconds.
    pub fn gpu_ms(&self) -> i64 {
        i64::from(self.terms.gpus) * (self.to.as_millisecond() - self.from.as_millisecond()).max(0)
    }

    /// What of it lies after a time; `None` when nothing does.
    pub fn since(self, from: Timestamp) -> Option<Self> {
        (self.to > from).then(|| Part { from: self.from.max(from), ..self })
    }

    pub fn to_span(&self) -> Span {
        let Part { identity, terms, rate, from, to, evidence } = self;
        let (identity, terms) = ((*identity).clone(), terms.clone().into_owned());
        Span { identity, terms, rate: *rate, from: *from, to: *to, evidence: *evidence }
    }
}

/// A charge of one moment: what a provider adds to the exact time since it counts in whole units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lump {
    pub identity: Identity,
    pub terms: Terms,
    pub at: Timestamp,
    pub amount: Exact,
    pub currency: Currency,
    pub evidence: Evidence,
}

#[cfg(test)]
mod accrue_tests;
#[cfg(test)]
mod cases_tests;
#[cfg(test)]
mod driver;
#[cfg(test)]
mod property_tests;
