//! How a budget stands: what is spent, what will be, and what is committed.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use providers::model::Identity;
use providers::money::{Currency, Rate};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::{Budget, Term};
use crate::rules::spend::{Exchange, Part, Sums};

/// What the books hold as closed for one budget's present term.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Drawn {
    /// The budget's name.
    pub name: String,
    /// When its term begins.
    pub from: Timestamp,
    /// By day of the budget's own zone.
    pub days: BTreeMap<Date, Sums>,
}

/// What runs and counts for a budget.
#[derive(Clone, Debug, PartialEq)]
pub struct Running {
    pub identity: Identity,
    /// What it is certainly charged.
    pub rates: Vec<Rate>,
    pub gpus: u32,
    /// When it will end by itself, as far as that is known.
    pub ends_at: Option<Timestamp>,
}

/// All that a budget's standing follows from.
pub struct Inputs<'a> {
    /// `None` before the books have answered.
    pub drawn: Option<&'a Drawn>,
    /// What of the budget's scope the books were told since, and what is open.
    pub beyond: Vec<Part<'a>>,
    pub running: Vec<Running>,
    pub exchange: &'a Exchange,
}

/// How a budget stands at a moment. Amounts are in the unit of its limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    pub term: Term,
    pub as_of: Timestamp,
    pub spent: Decimal,
    /// What of it is no provider's own figure.
    pub estimated: Decimal,
    /// What was spent in currencies that no exchange rate joins: in no other amount here.
    pub apart: Vec<(Currency, Decimal)>,
    /// An hour.
    pub burn: Decimal,
    /// What will be spent at the end of the term: the burn going on, but for what ends before. `None` without an end,
    /// and when nothing burns.
    pub forecast: Option<Decimal>,
    /// The same as if nothing that runs ended before.
    pub committed: Option<Decimal>,
    /// What each running one adds to `committed`, the most first.
    pub left_running: Vec<(Identity, Decimal)>,
    /// When the limit is reached, or was, as far as it can be told.
    pub reaches: Option<Timestamp>,
    /// What was spent by the end of each day, the last one up to `as_of`.
    pub by_day: Vec<(Date, Decimal)>,
}

impl Standing {
    /// How much of the limit is spent, in percent; rounded down, so that a line is crossed when it is reached.
    pub fn percent(&self, limit: Decimal) -> u32 {
        share(self.spent, limit)
    }
}

fn share(of: Decimal, limit: Decimal) -> u32 {
    use rust_decimal::prelude::ToPrimitive;
    (of.max(Decimal::ZERO) * Decimal::ONE_HUNDRED)
        .checked_div(limit)
        .and_then(|share| share.to_u32())
        .unwrap_or(u32::MAX)
}

/// How a budget stands; `None` before the books have answered for its term.
pub fn standing(budget: &Budget, inputs: &Inputs<'_>, now: Timestamp) -> Option<Standing> {
    let term = budget.term(now);
    let drawn = inputs.drawn.filter(|drawn| drawn.from == term.from)?;
    let _ = (drawn, &inputs.beyond, &inputs.running, inputs.exchange);
    None
}
