//! What each account last said, and what follows: fresh or stale, missing, gone, another machine.
//!
//! The first rule of the fleet: silence is never "gone". A failed poll changes nothing but freshness; only
//! complete lists make things disappear, and only after asking by id.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use providers::error::{Problem, ProviderError};
use providers::model::{
    AccountName, Attachment, Balance, Identity, Instance, Market, Phase, ProviderName, Rates, ResourceId, ResourceKind,
    StorageItem, Tenant,
};
use providers::money::Burn;
use providers::provider::{Found, Part, Poll, Reading};
use serde::{Deserialize, Serialize};

use super::schedule::{self, Pacing};

/// How long a gone resource stays on the screen.
pub const GONE_SHOWN: SignedDuration = SignedDuration::from_secs(60);

/// A resource with what we know of its presence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Known<T> {
    pub identity: Identity,
    pub row: T,
    pub first_seen: Timestamp,
    /// Of the last list, or answer by id, that held it.
    pub last_seen: Timestamp,
    /// Set by the first complete list without it, cleared by the next sight.
    pub missing_since: Option<Timestamp>,
    /// Complete lists in a row without it.
    pub absences: u32,
    pub gone_at: Option<Timestamp>,
}

impl<T: Row> Known<T> {
    /// What it costs: nothing when gone, only perhaps when it is missing.
    pub fn rates(&self) -> Rates {
        match (self.gone_at, self.missing_since) {
            (Some(_), _) => Rates::known(),
            (None, Some(_)) => self.row.rates().clone().doubtful(),
            (None, None) => self.row.rates().clone(),
        }
    }

    pub fn is_gone(&self) -> bool {
        self.gone_at.is_some()
    }
}

impl Known<Instance> {
    /// The phase that the last poll proves: missing is unknown, not stopped.
    pub fn phase(&self) -> Phase {
        match (self.gone_at, self.missing_since) {
            (Some(_), _) => Phase::Gone,
            (None, Some(_)) => Phase::Unknown,
            (None, None) => self.row.phase,
        }
    }
}

/// What instances and storage items have in common here.
pub trait Row: Clone + PartialEq {
    const KIND: ResourceKind;
    fn id(&self) -> &ResourceId;
    fn created_at(&self) -> Option<Timestamp>;
    fn rates(&self) -> &Rates;
    /// The same row without what changes at every look (usage): for telling whether anything changed.
    fn settled(&self) -> Self;
}

impl Row for Instance {
    const KIND: ResourceKind = ResourceKind::Instance;
    fn id(&self) -> &ResourceId {
        &self.id
    }
    fn created_at(&self) -> Option<Timestamp> {
        self.created_at
    }
    fn rates(&self) -> &Rates {
        &self.rates
    }
    fn settled(&self) -> Self {
        Instance { usage: None, ..self.clone() }
    }
}

impl Row for StorageItem {
    const KIND: ResourceKind = ResourceKind::Storage;
    fn id(&self) -> &ResourceId {
        &self.id
    }
    fn created_at(&self) -> Option<Timestamp> {
        self.created_at
    }
    fn rates(&self) -> &Rates {
        &self.rates
    }
    fn settled(&self) -> Self {
        self.clone()
    }
}

/// How far an account's figures can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Freshness {
    Never,
    Fresh,
    Stale,
    Partial,
    Failed,
}

impl Freshness {
    pub fn word(self) -> &'static str {
        match self {
            Freshness::Never => "never",
            Freshness::Fresh => "fresh",
            Freshness::Stale => "stale",
            Freshness::Partial => "partial",
            Freshness::Failed => "failed",
        }
    }
}

/// Why an account cannot be used as it is, beyond a failed request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// The last poll failed.
    Request(ProviderError),
    /// The key could not be read or used; nothing was asked.
    Key(String),
    /// The key now opens another tenant's account: nothing that is known is taken for gone.
    OtherTenant,
    /// The same tenant as another account: counting both would count everything twice.
    SameAs(AccountName),
}

impl Trouble {
    /// One line, no secret.
    pub fn line(&self) -> String {
        match self {
            Trouble::Request(error) => format!("{}: {}", error.request, error.kind),
            Trouble::Key(message) => message.clone(),
            Trouble::OtherTenant => "the key opens another account than before; what was known is kept".to_owned(),
            Trouble::SameAs(other) => format!("the same account at the provider as `{other}`; remove one of the two"),
        }
    }
}

/// A value with the time at which it was learnt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AsOf<T> {
    pub value: T,
    pub as_of: Timestamp,
}

/// One account as the collector knows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Account {
    pub name: AccountName,
    pub provider: ProviderName,
    /// Nothing that changes anything is sent for it.
    pub read_only: bool,
    /// Of the last complete or partial poll.
    pub as_of: Option<Timestamp>,
    pub last_complete: Option<Timestamp>,
    /// Of the last poll that left something out.
    pub problems: Vec<Problem>,
    pub trouble: Option<AsOf<Trouble>>,
    pub balance: Option<AsOf<Balance>>,
    /// Why the balance is not known, when asking for it failed.
    pub balance_error: Option<ProviderError>,
    pub tenant: Option<Tenant>,
    /// Whether the tenant was compared, or found not to be told, since this program started.
    pub tenant_checked: bool,
    pub pacing: Pacing,
}

impl Account {
    pub fn new(name: AccountName, provider: ProviderName, read_only: bool) -> Self {
        Account {
            name,
            provider,
            read_only,
            as_of: None,
            last_complete: None,
            problems: Vec::new(),
            trouble: None,
            balance: None,
            balance_error: None,
            tenant: None,
            tenant_checked: false,
            pacing: Pacing::default(),
        }
    }

    pub fn freshness(&self, interval: SignedDuration, now: Timestamp) -> Freshness {
        if self.trouble.is_some() {
            return Freshness::Failed;
        }
        let Some(as_of) = self.as_of else { return Freshness::Never };
        let hung = self.pacing.in_flight.is_some_and(|since| now.duration_since(since) > interval);
        if hung || now.duration_since(as_of) > interval * 3 {
            Freshness::Stale
        } else if self.problems.is_empty() {
            Freshness::Fresh
        } else {
            Freshness::Partial
        }
    }
}

/// Something that an answer brought about, for the layers above.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Consequence {
    /// Twice missing: only asking by id can tell whether it is gone.
    AskById(Identity),
    Appeared(Identity),
    Gone(Identity),
    /// A row is not what the ledger last wrote down.
    Changed(Identity),
}

/// Every account and every resource that is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fleet {
    pub accounts: Vec<Account>,
    pub instances: BTreeMap<Identity, Known<Instance>>,
    pub storage: BTreeMap<Identity, Known<StorageItem>>,
}

impl Fleet {
    pub fn account(&self, name: &AccountName) -> Option<&Account> {
        self.accounts.iter().find(|account| account.name == *name)
    }

    pub fn account_mut(&mut self, name: &AccountName) -> Option<&mut Account> {
        self.accounts.iter_mut().find(|account| account.name == *name)
    }

    /// Whether an account has instances that may be working: it is then asked more often.
    pub fn has_running(&self, account: &AccountName) -> bool {
        self.instances_of(account).any(|known| {
            !known.is_gone()
                && matches!(known.row.phase, Phase::Running | Phase::Provisioning | Phase::Stopping | Phase::Unknown)
        })
    }

    /// The interval at which an account is asked.
    pub fn interval(&self, account: &AccountName) -> SignedDuration {
        schedule::interval(self.has_running(account))
    }

    pub fn freshness(&self, account: &Account, now: Timestamp) -> Freshness {
        account.freshness(self.interval(&account.name), now)
    }

    /// The latest instance of an id.
    pub fn instance(&self, account: &AccountName, id: &ResourceId) -> Option<&Known<Instance>> {
        latest(&self.instances, account, id)
    }

    pub fn instances_of<'a>(&'a self, account: &'a AccountName) -> impl Iterator<Item = &'a Known<Instance>> {
        of_account(&self.instances, account)
    }

    pub fn storage_of<'a>(&'a self, account: &'a AccountName) -> impl Iterator<Item = &'a Known<StorageItem>> {
        of_account(&self.storage, account)
    }

    /// The present rates of a resource of either kind; `None` when it is not known.
    pub fn rates(&self, identity: &Identity) -> Option<Rates> {
        match identity.kind {
            ResourceKind::Instance => self.instances.get(identity).map(Known::rates),
            ResourceKind::Storage => self.storage.get(identity).map(Known::rates),
        }
    }

    /// Sums of all certain rates and of all that may be charged; prepaid instances stand in neither.
    pub fn burn(&self) -> Totals {
        let mut totals = Totals::default();
        self.instances.values().for_each(|known| totals.add_instance(known));
        for known in self.storage.values().filter(|known| !known.is_gone()) {
            let rates = known.rates();
            totals.add(&rates);
            if matches!(&known.row.attachment, Attachment::To(ids) if ids.is_empty()) {
                rates.certain().rates().iter().for_each(|rate| totals.waste.add(*rate));
            }
        }
        totals
    }

    /// Takes in one poll. `asked_at` is when it was sent, `now` when it was answered.
    pub fn absorb(&mut self, name: &AccountName, poll: Poll, now: Timestamp) -> Vec<Consequence> {
        let Some(at) = self.accounts.iter().position(|account| account.name == *name) else { return Vec::new() };
        if let Some(trouble) = self.tenant_trouble(at, &poll.tenant) {
            self.accounts[at].fail(trouble, now);
            return Vec::new();
        }
        let account = &mut self.accounts[at];
        match poll.tenant {
            Reading::Known(tenant) => {
                account.tenant = Some(tenant);
                account.tenant_checked = true;
            }
            Reading::NotTold => account.tenant_checked = true,
            Reading::NotAsked | Reading::Failed(_) => {}
        }
        match poll.balance {
            Reading::Known(value) => {
                account.balance = Some(AsOf { value, as_of: now });
                account.balance_error = None;
            }
            Reading::NotTold => account.balance = None,
            // The last good one stays beside its age; it is no basis for a runway any more.
            Reading::Failed(error) => account.balance_error = Some(error),
            Reading::NotAsked => {}
        }
        if let Part::Failed(error) = poll.instances {
            account.fail(Trouble::Request(error), now);
            return Vec::new();
        }
        // Nothing is taken for absent before the key is known to open the same account as before.
        let trusted = account.tenant_checked || account.tenant.is_none();
        let mut problems = Vec::new();
        let mut consequences = Vec::new();
        self.instances.absorb(name, poll.instances, trusted, now, &mut problems, &mut consequences);
        self.storage.absorb(name, poll.storage, trusted, now, &mut problems, &mut consequences);
        let account = &mut self.accounts[at];
        account.as_of = Some(now);
        if problems.is_empty() {
            account.last_complete = Some(now);
        }
        account.trouble = None;
        account.problems = problems;
        account.pacing.answered_well();
        consequences
    }

    /// Takes in the answer to a question by id.
    pub fn absorb_found(&mut self, identity: &Identity, found: Found, now: Timestamp) -> Vec<Consequence> {
        match found {
            Found::Instance(row) => {
                self.instances.sight(&identity.account, *row, now).map(|id| vec![Consequence::Changed(id)])
            }
            Found::Storage(row) => {
                self.storage.sight(&identity.account, *row, now).map(|id| vec![Consequence::Changed(id)])
            }
            Found::NoSuchId | Found::CannotAsk => self.settle_absence(identity, now),
        }
        .unwrap_or_default()
    }

    /// A provider that says "no such id" proves "gone" for what two complete lists did not hold.
    fn settle_absence(&mut self, identity: &Identity, now: Timestamp) -> Option<Vec<Consequence>> {
        match identity.kind {
            ResourceKind::Instance => settle_absence(self.instances.get_mut(identity)?, 2, now),
            ResourceKind::Storage => settle_absence(self.storage.get_mut(identity)?, 2, now),
        }
    }

    /// Marks what our own release ended, once the provider says that there is no such id any more.
    pub fn released(&mut self, identity: &Identity, now: Timestamp) -> Vec<Consequence> {
        match identity.kind {
            ResourceKind::Instance => self.instances.get_mut(identity).and_then(|known| settle_absence(known, 0, now)),
            ResourceKind::Storage => self.storage.get_mut(identity).and_then(|known| settle_absence(known, 0, now)),
        }
        .unwrap_or_default()
    }

    /// Forgets what has been gone for long enough. Returns whether anything went.
    pub fn prune(&mut self, now: Timestamp) -> bool {
        let before = self.instances.len() + self.storage.len();
        let keep = |gone_at: Option<Timestamp>| gone_at.is_none_or(|at| now.duration_since(at) < GONE_SHOWN);
        self.instances.retain(|_, known| keep(known.gone_at));
        self.storage.retain(|_, known| keep(known.gone_at));
        before != self.instances.len() + self.storage.len()
    }

    /// When the next gone resource is to be forgotten.
    pub fn next_prune(&self) -> Option<Timestamp> {
        let instances = self.instances.values().filter_map(|known| known.gone_at);
        let storage = self.storage.values().filter_map(|known| known.gone_at);
        instances.chain(storage).min().map(|at| at + GONE_SHOWN)
    }

    fn tenant_trouble(&self, at: usize, reading: &Reading<Tenant>) -> Option<Trouble> {
        let Reading::Known(tenant) = reading else { return None };
        let account = &self.accounts[at];
        if account.tenant.as_ref().is_some_and(|known| known != tenant) {
            return Some(Trouble::OtherTenant);
        }
        self.accounts[..at]
            .iter()
            .find(|other| other.provider == account.provider && other.tenant.as_ref() == Some(tenant))
            .map(|other| Trouble::SameAs(other.name.clone()))
    }
}

impl Account {
    /// Notes a failure. Rows stay as they are.
    pub fn fail(&mut self, trouble: Trouble, now: Timestamp) {
        let since = self.trouble.take().map_or(now, |known| known.as_of);
        let (transient, wait) = match &trouble {
            Trouble::Request(error) => (error.kind.is_transient(), error.kind.retry_after()),
            _ => (false, None),
        };
        let seed = self.name.clone();
        self.pacing.answered_badly(transient, wait, seed.as_str(), now);
        self.trouble = Some(AsOf { value: trouble, as_of: since });
    }
}

/// Sums over the fleet, each kept apart by currency.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub burn: Burn,
    pub upper: Burn,
    pub waste: Burn,
    pub prepaid: Burn,
    /// Some part of a rate is not known: the sums are lower bounds.
    pub incomplete: bool,
}

impl Totals {
    /// Adds what one instance costs; nothing for one that is gone.
    pub fn add_instance(&mut self, known: &Known<Instance>) {
        if known.is_gone() {
            return;
        }
        let rates = known.rates();
        if matches!(known.row.market, Market::Reserved { .. }) {
            rates.upper().rates().iter().for_each(|rate| self.prepaid.add(*rate));
            return;
        }
        self.add(&rates);
        if matches!(known.row.phase, Phase::Stopped | Phase::Reclaimed) && known.missing_since.is_none() {
            rates.certain().rates().iter().for_each(|rate| self.waste.add(*rate));
        }
    }

    fn add(&mut self, rates: &Rates) {
        rates.certain().rates().iter().for_each(|rate| self.burn.add(*rate));
        rates.upper().rates().iter().for_each(|rate| self.upper.add(*rate));
        self.incomplete |= !rates.complete;
    }
}

fn of_account<'a, T: Row>(
    known: &'a BTreeMap<Identity, Known<T>>,
    account: &'a AccountName,
) -> impl Iterator<Item = &'a Known<T>> {
    let first = Identity { account: account.clone(), kind: T::KIND, id: ResourceId::new(""), generation: 0 };
    known.range(first..).map(|(_, known)| known).take_while(move |known| known.identity.account == *account)
}

/// The latest generation of an id.
fn latest<'a, T: Row>(
    known: &'a BTreeMap<Identity, Known<T>>,
    account: &AccountName,
    id: &ResourceId,
) -> Option<&'a Known<T>> {
    let lowest = Identity { account: account.clone(), kind: T::KIND, id: id.clone(), generation: 0 };
    let highest = Identity { generation: u32::MAX, ..lowest.clone() };
    known.range(lowest..=highest).next_back().map(|(_, known)| known)
}

fn settle_absence<T: Row>(known: &mut Known<T>, needed: u32, now: Timestamp) -> Option<Vec<Consequence>> {
    if known.absences < needed || known.is_gone() {
        return None;
    }
    known.gone_at = Some(now);
    let identity = known.identity.clone();
    Some(vec![Consequence::Gone(identity.clone()), Consequence::Changed(identity)])
}

/// A table of one kind of resource.
trait Table<T: Row> {
    fn absorb(
        &mut self,
        account: &AccountName,
        part: Part<T>,
        trusted: bool,
        now: Timestamp,
        problems: &mut Vec<Problem>,
        consequences: &mut Vec<Consequence>,
    );

    /// Takes in one row. Returns its identity when it is not what was known.
    fn sight(&mut self, account: &AccountName, row: T, now: Timestamp) -> Option<Identity>;
}

impl<T: Row> Table<T> for BTreeMap<Identity, Known<T>> {
    fn absorb(
        &mut self,
        account: &AccountName,
        part: Part<T>,
        trusted: bool,
        now: Timestamp,
        problems: &mut Vec<Problem>,
        consequences: &mut Vec<Consequence>,
    ) {
        let (rows, incomplete) = match part {
            Part::NotAsked => return,
            Part::Failed(error) => {
                let message = error.kind.to_string();
                problems.push(Problem { request: error.request, field: String::new(), message });
                return;
            }
            Part::Listed { rows, problems: found } => {
                let incomplete = !found.is_empty();
                problems.extend(found);
                (rows, incomplete)
            }
        };
        let mut listed = BTreeSet::new();
        for row in rows {
            let known_before = self
                .values()
                .any(|known| known.identity.account == *account && known.identity.id == *row.id() && !known.is_gone());
            let id = row.id().clone();
            if let Some(identity) = self.sight(account, row, now) {
                if !known_before {
                    consequences.push(Consequence::Appeared(identity.clone()));
                }
                consequences.push(Consequence::Changed(identity));
            }
            listed.insert(id);
        }
        let first = Identity { account: account.clone(), kind: T::KIND, id: ResourceId::new(""), generation: 0 };
        let own =
            self.range_mut(first..).map(|(_, known)| known).take_while(|known| known.identity.account == *account);
        for known in own {
            if known.is_gone() || listed.contains(&known.identity.id) || incomplete || !trusted {
                continue;
            }
            known.absences += 1;
            if known.missing_since.is_none() {
                known.missing_since = Some(now);
                consequences.push(Consequence::Changed(known.identity.clone()));
            }
            if known.absences >= 2 {
                consequences.push(Consequence::AskById(known.identity.clone()));
            }
        }
    }

    fn sight(&mut self, account: &AccountName, row: T, now: Timestamp) -> Option<Identity> {
        let Some(identity) = latest(self, account, row.id()).map(|known| known.identity.clone()) else {
            let first = Identity { account: account.clone(), kind: T::KIND, id: row.id().clone(), generation: 0 };
            self.insert(first.clone(), Known::new(first.clone(), row, now));
            return Some(first);
        };
        let known = self.get_mut(&identity).expect("the key was just found in this very map");
        let another = matches!((known.row.created_at(), row.created_at()), (Some(then), Some(new)) if then != new);
        if another {
            known.gone_at.get_or_insert(now);
            let next = Identity { generation: identity.generation + 1, ..identity };
            self.insert(next.clone(), Known::new(next.clone(), row, now));
            return Some(next);
        }
        let changed = known.row.settled() != row.settled() || known.missing_since.is_some() || known.is_gone();
        known.row = row;
        known.last_seen = now;
        known.missing_since = None;
        known.absences = 0;
        known.gone_at = None;
        changed.then_some(identity)
    }
}

impl<T> Known<T> {
    pub fn new(identity: Identity, row: T, now: Timestamp) -> Self {
        Known { identity, row, first_seen: now, last_seen: now, missing_since: None, absences: 0, gone_at: None }
    }
}

#[cfg(test)]
#[path = "fleet_tests.rs"]
mod tests;
