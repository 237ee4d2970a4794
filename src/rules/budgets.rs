//! Budgets: what some resources may cost, or how many GPU-hours they may take, in a time.
//!
//! `term` says which time that is, `standing` what was spent in it and what will be (`measure` what of the spend counts,
//! `curve` how it grows), `findings` what of it somebody should know, `draft`
//! how one is written, and `limit` how its limit is.

mod curve;
mod draft;
mod findings;
mod limit;
mod measure;
mod standing;
mod term;

pub use draft::BudgetDraft;
pub use findings::{closed, findings, moot};
pub use limit::{NoLimit, limit};
pub use standing::{Drawn, Inputs, Running, Standing, share, standing};
pub use term::{Cycle, Term};

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use providers::model::{AccountName, ProviderName, ResourceKind};
use providers::money::{Currency, Money};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::matcher::{Glob, LabelPattern};

/// The shares of a limit at which is told that they are spent, in percent, unless the config says otherwise.
pub const THRESHOLDS: [u32; 3] = [50, 80, 100];
/// The share of a limit at which is told that it will be spent, in percent.
pub const FORECAST: u32 = 100;

/// A limit on the spend, or the GPU-hours, of some resources in a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    /// Unique among the budgets.
    pub name: String,
    pub scope: Scope,
    pub cycle: Cycle,
    pub limit: Quantity,
    /// In which its days, weeks and months begin.
    pub zone: TimeZone,
    /// In percent of the limit, rising.
    pub thresholds: Vec<u32>,
    /// In percent of the limit; `None` when a forecast alerts nobody.
    pub forecast: Option<u32>,
}

impl Budget {
    /// The time that it is for now.
    pub fn term(&self, now: Timestamp) -> Term {
        self.cycle.term(&self.zone, now)
    }

    /// The term before the present one, as a budget for those days alone; `None` of a budget that has one term only.
    pub fn closed(&self, now: Timestamp) -> Option<Budget> {
        let last = self.term(now).first?.yesterday().ok()?;
        let cycle = Cycle::Dates(self.cycle.turn(last)?);
        Some(Budget { cycle, ..self.clone() })
    }

    /// So many percent of the limit.
    pub fn line(&self, percent: u32) -> Decimal {
        let limit = self.limit.amount;
        limit.checked_mul(percent.into()).map_or(Decimal::MAX, |line| line / Decimal::ONE_HUNDRED)
    }

    /// So much in the unit of the limit.
    pub fn quantity(&self, amount: Decimal) -> Quantity {
        Quantity { amount, unit: self.limit.unit }
    }

    /// Whether what another one holds is what this one holds, whatever the limits.
    pub fn draws_like(&self, other: &Budget) -> bool {
        (&self.name, &self.scope, self.cycle, &self.zone) == (&other.name, &other.scope, other.cycle, &other.zone)
    }
}

/// So much of what a budget counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quantity {
    pub amount: Decimal,
    pub unit: Unit,
}

/// What a budget counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Money(Currency),
    GpuHours,
}

impl Quantity {
    pub fn new(amount: Decimal, unit: Unit) -> Self {
        Quantity { amount, unit }
    }

    /// Money; `None` for GPU-hours.
    pub fn money(&self) -> Option<Money> {
        match self.unit {
            Unit::Money(currency) => Some(Money::new(self.amount, currency)),
            Unit::GpuHours => None,
        }
    }
}

/// Which resources a budget is for: all conditions that are given must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scope {
    pub provider: Option<ProviderName>,
    pub account: Option<AccountName>,
    pub project: Option<String>,
    /// Of instances alone.
    pub instance: Option<Glob>,
    pub label: Option<LabelPattern>,
}

/// What a scope asks about something that costs.
#[derive(Clone, Copy, Debug)]
pub struct Thing<'a> {
    pub provider: &'a ProviderName,
    pub account: &'a AccountName,
    /// `None` for what belongs to no listed resource.
    pub kind: Option<ResourceKind>,
    pub name: Option<&'a str>,
    pub labels: Option<&'a BTreeMap<String, String>>,
    /// The project at the time of the spend.
    pub project: Option<&'a str>,
}

impl Scope {
    /// Everything.
    pub fn is_all(&self) -> bool {
        *self == Scope::default()
    }

    /// Whether it asks for more than account, provider and project tell.
    pub fn is_about_single_ones(&self) -> bool {
        self.instance.is_some() || self.label.is_some()
    }

    pub fn takes(&self, thing: &Thing<'_>) -> bool {
        let is_instance = thing.kind == Some(ResourceKind::Instance);
        self.provider.as_ref().is_none_or(|wanted| wanted == thing.provider)
            && self.account.as_ref().is_none_or(|wanted| wanted == thing.account)
            && self.project.as_ref().is_none_or(|wanted| thing.project == Some(wanted))
            && self.instance.as_ref().is_none_or(|glob| is_instance && glob.matches(thing.name.unwrap_or_default()))
            && self.label.as_ref().is_none_or(|label| thing.labels.is_some_and(|labels| label.matches(labels)))
    }
}
