//! What was spent, as the collector knows it: what is open in the meter, and the books' sums beside it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use providers::model::{AccountName, Identity, ProviderName};
use providers::money::Burn;

use crate::rules::spend::{Billing, Meter, RowSums, Sums, Tally};

#[derive(Clone, Debug)]
pub struct Spending {
    /// For days, weeks and months.
    pub zone: TimeZone,
    pub meter: Meter,
    pub tally: Tally,
    /// The accounts whose provider tells what it billed.
    pub billing: BTreeMap<AccountName, Billing>,
    /// Accounts that are no longer in the config while something of theirs ran.
    pub unwatched: Vec<Unwatched>,
    /// Whose the accounts were that are no longer in the config.
    pub former: BTreeMap<AccountName, ProviderName>,
    /// Today and this month, as of the last time that sums were brought up to date; `None` before the books
    /// have answered.
    pub totals: Option<SpentTotals>,
    /// Rises whenever the books hold something that they did not hold before.
    pub(super) version: u64,
    /// The day that the books were last asked for.
    pub(super) asked_for: Option<Date>,
    /// Accounts whose resources may belong elsewhere than the meter thinks: a person or the config said so.
    pub(super) reassigned: BTreeSet<AccountName>,
}

/// What was spent over the whole fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpentTotals {
    pub today: Sums,
    pub month: Sums,
    pub as_of: Timestamp,
}

/// What ran in an account when it was last looked at, before it was taken out of the config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwatched {
    pub account: AccountName,
    pub provider: ProviderName,
    /// Instances and storage items that cost something.
    pub resources: usize,
    pub burn: Burn,
    /// Of the last look.
    pub seen: Option<Timestamp>,
}

impl Spending {
    pub fn new(zone: TimeZone) -> Self {
        Spending {
            zone,
            meter: Meter::default(),
            tally: Tally::default(),
            billing: BTreeMap::new(),
            unwatched: Vec::new(),
            former: BTreeMap::new(),
            totals: None,
            version: 0,
            asked_for: None,
            reassigned: BTreeSet::new(),
        }
    }

    /// What one resource cost, this month and in this rental; `None` before the books have answered.
    pub fn row(&self, identity: &Identity, now: Timestamp) -> Option<RowSums> {
        self.tally.row(identity, &self.meter, &self.zone, now)
    }

    /// The same at the moment of `totals`, for whoever shows it beside them.
    pub fn row_beside_totals(&self, identity: &Identity) -> Option<RowSums> {
        self.row(identity, self.totals.as_ref()?.as_of)
    }
}
