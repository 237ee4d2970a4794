//! What was spent, as the collector knows it: what is open in the meter, and the books' sums beside it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use providers::model::{AccountName, Identity, ProviderName, ResourceId, Tenant};
use providers::money::Burn;
use providers::provider::{Part, Poll, Reading};

use crate::rules::memory::{AccountMemory, Memory};
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
    /// Accounts that the books know and the config does not: one of the config may be one of them, called otherwise.
    pub(super) former: Vec<Former>,
    /// Accounts that were found among these once.
    pub(super) renamed: BTreeSet<AccountName>,
    /// Today and this month, as of the last time that sums were brought up to date; `None` before the books
    /// have answered.
    pub totals: Option<SpentTotals>,
    /// Rises whenever the books hold something that they did not hold before.
    pub(super) version: u64,
    /// Something changed since these were made.
    pub(super) late: bool,
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

/// An account that the config does not name.
#[derive(Clone, Debug)]
pub(super) struct Former {
    pub(super) name: AccountName,
    provider: ProviderName,
    tenant: Option<Tenant>,
    seen: Option<Timestamp>,
    /// What was there when it was last looked at.
    ids: BTreeSet<ResourceId>,
}

impl Former {
    pub(super) fn of(account: &AccountMemory, memory: &Memory) -> Self {
        let instances = memory.instances.iter().filter(|known| !known.is_gone()).map(|known| &known.identity);
        let storage = memory.storage.iter().filter(|known| !known.is_gone()).map(|known| &known.identity);
        let own = instances.chain(storage).filter(|identity| identity.account == account.name);
        Former {
            name: account.name.clone(),
            provider: account.provider.clone(),
            tenant: account.tenant.clone(),
            seen: account.as_of,
            ids: own.map(|identity| identity.id.clone()).collect(),
        }
    }

    /// Whether an answer is of this account: by its tenant, or where that is not told, by what is there.
    fn is_of(&self, provider: &ProviderName, poll: &Poll) -> bool {
        if self.provider != *provider {
            return false;
        }
        match (&self.tenant, &poll.tenant) {
            (Some(known), Reading::Known(tenant)) => known == tenant,
            _ => {
                let mut instances = listed(&poll.instances).map(|row| &row.id);
                let mut storage = listed(&poll.storage).map(|row| &row.id);
                instances.any(|id| self.ids.contains(id)) || storage.any(|id| self.ids.contains(id))
            }
        }
    }
}

/// What there is by an answer, heard of or not.
fn listed<T>(part: &Part<T>) -> impl Iterator<Item = &T> {
    let (rows, unheard): (&[T], &[T]) = match part {
        Part::Listed { rows, .. } => (rows, &[]),
        Part::Pieces { rows, unheard } => (rows, unheard),
        Part::NotAsked | Part::Failed(_) => (&[], &[]),
    };
    rows.iter().chain(unheard)
}

impl Spending {
    /// Whose an account was that is no longer in the config; `None` when the books know none of that name.
    pub fn former_provider(&self, account: &AccountName) -> Option<&ProviderName> {
        self.former.iter().find(|former| former.name == *account).map(|former| &former.provider)
    }

    /// Under which name the books know the account of an answer, the one that was seen last; `None` when they know
    /// no such account.
    pub(super) fn former_name(&self, provider: &ProviderName, poll: &Poll) -> Option<AccountName> {
        let same = self.former.iter().filter(|former| former.is_of(provider, poll));
        same.max_by_key(|former| former.seen).map(|former| former.name.clone())
    }

    pub fn new(zone: TimeZone) -> Self {
        Spending {
            zone,
            meter: Meter::default(),
            tally: Tally::default(),
            billing: BTreeMap::new(),
            unwatched: Vec::new(),
            former: Vec::new(),
            renamed: BTreeSet::new(),
            totals: None,
            late: false,
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
