//! The times that budgets are for: days, weeks and months of a zone, all time, or days from one date to another.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::rules::spend::{Period, date_of};

/// How often a budget begins anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cycle {
    Day,
    /// From Monday.
    Week,
    Month,
    /// All that was ever spent.
    Total,
    /// Once.
    Dates(Period),
}

/// One turn of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Term {
    pub from: Timestamp,
    /// `None` when it has no end.
    pub to: Option<Timestamp>,
    /// Its first day; `None` when it has no beginning.
    pub first: Option<Date>,
}

impl Term {
    pub fn holds(&self, at: Timestamp) -> bool {
        self.from <= at && self.to.is_none_or(|to| at < to)
    }
}

impl Cycle {
    /// The turn that holds a moment. Days from one date to another are the same turn before, in and after it.
    pub fn term(&self, zone: &TimeZone, now: Timestamp) -> Term {
        let period = match self {
            Cycle::Dates(period) => Some(*period),
            cycle => cycle.turn(date_of(now, zone)),
        };
        match period {
            Some(period) => Term { from: period.start(zone), to: Some(period.end(zone)), first: Some(period.from) },
            None => Term { from: Timestamp::MIN, to: None, first: None },
        }
    }

    /// The turn that holds a day; `None` of what has one turn only.
    pub(super) fn turn(&self, day: Date) -> Option<Period> {
        match self {
            Cycle::Day => Some(Period::day(day)),
            Cycle::Week => Some(Period::week(day)),
            Cycle::Month => Some(Period::month(day)),
            Cycle::Total | Cycle::Dates(_) => None,
        }
    }
}
