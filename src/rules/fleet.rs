//! What each account last said, and what follows: fresh or stale, missing, gone, another machine.
//!
//! The first rule of the fleet: silence is never "gone". A failed poll changes nothing but freshness; only
//! complete lists make things disappear, and only after asking by id.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use providers::error::{ErrorKind, Problem, ProviderError, RequestLine};
use providers::model::{
    AccountName, Attachment, Balance, Identity, Instance, Market, Phase, ProviderName, Rates, ResourceId, ResourceKind,
    StorageItem, Tenant,
};
use providers::money::{Burn, Rate};
use providers::provider::{Found, Part, Poll, Reading};
use serde::{Deserialize, Serialize};

use super::earlier::{Earlier, Gone};
use super::schedule::{self, Pacing};

/// A provider tells its time to the second, and its answer takes its way: less than this is no other time.
const SAME_TIME: SignedDuration = SignedDuration::from_secs(30);
/// A clock that is off by more is worth a word.
const CLOCK_OFF: SignedDuration = SignedDuration::from_secs(60);

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
    pub fn rates(&self) -> Cow<'_, Rates> {
        match (self.gone_at, self.missing_since) {
            (Some(_), _) => Cow::Owned(Rates::known()),
            (None, Some(_)) => Cow::Owned(self.row.rates().clone().doubtful()),
            (None, None) => Cow::Borrowed(self.row.rates()),
        }
    }

    pub fn is_gone(&self) -> bool {
        self.gone_at.is_some()
    }

    fn end(&mut self, now: Timestamp, consequences: &mut Vec<Consequence>) {
        if self.gone_at.is_none() {
            self.gone_at = Some(now);
            consequences.push(Consequence::Gone(self.identity.clone()));
            consequences.push(Consequence::Changed(self.identity.clone()));
        }
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
    fn name(&self) -> Option<&str>;
    fn labels(&self) -> &BTreeMap<String, String>;
    fn created_at(&self) -> Option<Timestamp>;
    fn set_created_at(&mut self, created_at: Option<Timestamp>);
    fn rates(&self) -> &Rates;
    /// `None` for what has none.
    fn phase(&self) -> Option<Phase>;
    /// The provider lists it, and says itself that it is no more.
    fn has_ended(&self) -> bool;
    /// Takes over when it ended from the row that says so.
    fn take_end(&mut self, last: &Self);
    /// The same row without what changes at every look (usage).
    fn settled(&self) -> Self;
    /// Whether two looks differ in more than usage. It is taken out of the older one.
    fn differs(&mut self, newer: &mut Self) -> bool;
}

impl Row for Instance {
    const KIND: ResourceKind = ResourceKind::Instance;
    fn id(&self) -> &ResourceId {
        &self.id
    }
    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
    fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }
    fn created_at(&self) -> Option<Timestamp> {
        self.created_at
    }
    fn set_created_at(&mut self, created_at: Option<Timestamp>) {
        self.created_at = created_at;
    }
    fn rates(&self) -> &Rates {
        &self.rates
    }
    fn phase(&self) -> Option<Phase> {
        Some(self.phase)
    }
    fn has_ended(&self) -> bool {
        self.phase == Phase::Gone
    }
    fn take_end(&mut self, last: &Self) {
        self.stopped_at = last.stopped_at.or(self.stopped_at);
    }
    fn settled(&self) -> Self {
        Instance { usage: None, ..self.clone() }
    }
    fn differs(&mut self, newer: &mut Self) -> bool {
        self.usage = None;
        let usage = newer.usage.take();
        let differs = self != newer;
        newer.usage = usage;
        differs
    }
}

impl Row for StorageItem {
    const KIND: ResourceKind = ResourceKind::Storage;
    fn id(&self) -> &ResourceId {
        &self.id
    }
    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
    fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }
    fn created_at(&self) -> Option<Timestamp> {
        self.created_at
    }
    fn set_created_at(&mut self, created_at: Option<Timestamp>) {
        self.created_at = created_at;
    }
    fn rates(&self) -> &Rates {
        &self.rates
    }
    fn phase(&self) -> Option<Phase> {
        None
    }
    fn has_ended(&self) -> bool {
        false
    }
    fn take_end(&mut self, _last: &Self) {}
    fn settled(&self) -> Self {
        self.clone()
    }
    fn differs(&mut self, newer: &mut Self) -> bool {
        self != newer
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

    /// The key opens an account that is not, or not only, this one: nothing that it says is taken in.
    fn is_about_the_tenant(&self) -> bool {
        matches!(self, Trouble::OtherTenant | Trouble::SameAs(_))
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
    /// What the last lists left out.
    pub problems: Vec<Problem>,
    /// Those among them that are about storage. It is asked for more rarely, so they stand until it is again.
    pub storage_problems: Vec<Problem>,
    pub trouble: Option<AsOf<Trouble>>,
    pub balance: Option<AsOf<Balance>>,
    /// Why the balance is not known, when asking for it failed.
    pub balance_error: Option<ProviderError>,
    pub tenant: Option<Tenant>,
    /// Whether the tenant was compared, or found not to be told, since this program started.
    pub tenant_checked: bool,
    /// How far our clock is ahead of the provider's, by its last good answer; `None` while they agree.
    #[serde(default)]
    pub skew: Option<SignedDuration>,
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
            storage_problems: Vec::new(),
            trouble: None,
            balance: None,
            balance_error: None,
            tenant: None,
            tenant_checked: false,
            skew: None,
            pacing: Pacing::default(),
        }
    }

    /// It failed, or its last lists had parts that could not be read: something may run unseen.
    pub fn needs_a_look(&self) -> bool {
        self.trouble.is_some() || !self.problems.is_empty()
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
    /// It costs something else than before, and what that was.
    Repriced(Identity, Rates),
    /// An instance is in another phase than this one, in which it was.
    Turned(Identity, Phase),
}

impl Consequence {
    pub fn identity(&self) -> &Identity {
        match self {
            Consequence::AskById(identity)
            | Consequence::Appeared(identity)
            | Consequence::Gone(identity)
            | Consequence::Changed(identity)
            | Consequence::Repriced(identity, _)
            | Consequence::Turned(identity, _) => identity,
        }
    }
}

/// Every account and every resource that is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fleet {
    pub accounts: Vec<Account>,
    pub instances: BTreeMap<Identity, Known<Instance>>,
    pub storage: BTreeMap<Identity, Known<StorageItem>>,
    /// What was pruned: an id that comes back may be another machine.
    pub earlier: Earlier,
    /// Instances that run and do nothing, as their gauges tell.
    pub idle: BTreeSet<Identity>,
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

    /// How far our clock is ahead of an account's provider's; zero while they agree.
    pub fn skew(&self, account: &AccountName) -> SignedDuration {
        self.account(account).and_then(|account| account.skew).unwrap_or_default()
    }

    /// A time of our clock as an account's provider has it.
    pub fn there(&self, account: &AccountName, at: Timestamp) -> Timestamp {
        at.saturating_sub(self.skew(account)).expect("a duration can be taken from any time")
    }

    /// A time that an account's provider told, as our clock has it: what its age is counted from.
    pub fn here(&self, account: &AccountName, at: Timestamp) -> Timestamp {
        at.saturating_add(self.skew(account)).expect("a duration can be added to any time")
    }

    /// The account whose provider's clock differs from ours by the most, and by how much ours is ahead; `None`
    /// while all agree within a minute.
    pub fn clock_off(&self) -> Option<(&Account, SignedDuration)> {
        let off = |account: &Account| account.skew.filter(|skew| skew.abs() > CLOCK_OFF);
        let all = self.accounts.iter().filter_map(|account| Some((account, off(account)?)));
        all.max_by_key(|(_, skew)| skew.abs())
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

    /// The present instances that say themselves that they mount a storage item. They are asked more often
    /// than storage is, so that they may know of a use that its own row does not tell yet.
    pub fn mounting<'a>(&'a self, item: &'a Identity) -> impl Iterator<Item = &'a Known<Instance>> {
        self.instances_of(&item.account).filter(|known| !known.is_gone() && known.row.mounts.contains(&item.id))
    }

    /// Nobody uses it, as far as itself and the instances tell.
    pub fn is_unattached(&self, known: &Known<StorageItem>) -> bool {
        let attached_to_nothing = matches!(&known.row.attachment, Attachment::To(ids) if ids.is_empty());
        attached_to_nothing && self.mounting(&known.identity).next().is_none()
    }

    /// What a resource is certainly charged; `None` when it is not there any more.
    pub fn rates_of(&self, identity: &Identity) -> Option<Vec<Rate>> {
        let burn = match identity.kind {
            ResourceKind::Instance => {
                let known = self.instances.get(identity).filter(|known| !known.is_gone())?;
                known.rates().certain()
            }
            ResourceKind::Storage => {
                let known = self.storage.get(identity).filter(|known| !known.is_gone())?;
                known.rates().certain()
            }
        };
        Some(burn.rates().to_vec())
    }

    /// Sums of all certain rates and of all that may be charged; prepaid instances stand in neither.
    pub fn burn(&self) -> Totals {
        let mut totals = Totals::of(self.instances.values(), self.storage.values(), &self.idle);
        // A row that could not be read may cost, too.
        totals.incomplete |= self.accounts.iter().any(|account| !account.problems.is_empty());
        totals
    }

    /// The same for one account.
    pub fn burn_of(&self, account: &AccountName) -> Totals {
        Totals::of(self.instances_of(account), self.storage_of(account), &self.idle)
    }

    /// Whether what an account does not show may be taken for absent: its key is known to open the same
    /// account as before, as far as the provider tells at all.
    pub fn trusts(&self, name: &AccountName) -> bool {
        self.account(name).is_some_and(|account| {
            !account.trouble.as_ref().is_some_and(|trouble| trouble.value.is_about_the_tenant())
                && (account.tenant_checked || account.tenant.is_none())
        })
    }

    /// An answer by id as far as it can be relied on: of an account that is not trusted, "no such id" tells
    /// nothing and becomes an error.
    pub fn vouch(&self, identity: &Identity, found: Result<Found, ProviderError>) -> Result<Found, ProviderError> {
        match (found, self.account(&identity.account)) {
            (Ok(Found::NoSuchId), Some(account)) if !self.trusts(&account.name) => Err(ProviderError {
                provider: account.provider.clone(),
                account: account.name.clone(),
                request: RequestLine("look-up".to_owned()),
                kind: ErrorKind::Unusable { message: Trouble::OtherTenant.line() },
            }),
            (found, _) => found,
        }
    }

    /// Takes in the answer to the poll that is under way.
    pub fn absorb(&mut self, name: &AccountName, poll: Poll, now: Timestamp) -> Vec<Consequence> {
        let Some(at) = self.accounts.iter().position(|account| account.name == *name) else { return Vec::new() };
        if let Some(trouble) = self.tenant_trouble(at, &poll.tenant) {
            if matches!(trouble, Trouble::SameAs(_)) {
                // The other account shows the very same resources: none may count twice.
                self.instances.retain(|identity, _| identity.account != *name);
                self.storage.retain(|identity, _| identity.account != *name);
            }
            let account = &mut self.accounts[at];
            account.tenant_checked = false;
            account.fail(trouble, now);
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
            Reading::NotTold => {
                account.balance = None;
                account.balance_error = None;
            }
            // The last good one stays beside its age; it is no basis for a runway any more.
            Reading::Failed(error) => account.balance_error = Some(error),
            Reading::NotAsked => {}
        }
        if let Part::Failed(error) = poll.instances {
            account.fail(Trouble::Request(error), now);
            return Vec::new();
        }
        let list = List {
            account: name,
            asked_at: account.pacing.in_flight.unwrap_or(now),
            // Nothing is taken for absent before the key is known to open the same account as before.
            trusted: account.tenant_checked || account.tenant.is_none(),
            earlier: &self.earlier,
            now,
        };
        if let Some(there) = poll.server_time {
            account.skew = Some(now.duration_since(there)).filter(|skew| skew.abs() > SAME_TIME);
        }
        let storage_asked = poll.storage != Part::NotAsked;
        let whole = !matches!(poll.instances, Part::Pieces { .. });
        let mut consequences = Vec::new();
        let mut problems = self.instances.absorb(&list, poll.instances, &mut consequences);
        let storage_problems = self.storage.absorb(&list, poll.storage, &mut consequences);
        let account = &mut self.accounts[at];
        if storage_asked {
            account.storage_problems = storage_problems;
        }
        problems.extend(account.storage_problems.iter().cloned());
        // What was learnt of single machines makes no account known as of now.
        if whole {
            account.as_of = Some(now);
            if problems.is_empty() {
                account.last_complete = Some(now);
            }
        }
        account.problems = problems;
        account.trouble = None;
        account.pacing.answered_well();
        consequences
    }

    /// Takes in the answer to a question by id.
    pub fn absorb_found(&mut self, identity: &Identity, found: Found, now: Timestamp) -> Vec<Consequence> {
        let mut consequences = Vec::new();
        let (account, earlier) = (&identity.account, &self.earlier);
        let answer = List { account, asked_at: now, trusted: true, earlier, now };
        match found {
            Found::Instance(row) => self.instances.sight(&answer, *row, &mut consequences),
            Found::Storage(row) => self.storage.sight(&answer, *row, &mut consequences),
            Found::NoSuchId if !self.trusts(&identity.account) => {}
            Found::NoSuchId => {
                match identity.kind {
                    ResourceKind::Instance => self.instances.doubt(identity, now, &mut consequences),
                    ResourceKind::Storage => self.storage.doubt(identity, now, &mut consequences),
                }
                self.settle(identity, 2, now, &mut consequences);
            }
            Found::CannotAsk => self.settle(identity, 2, now, &mut consequences),
        }
        consequences
    }

    /// What `needed` complete lists in a row did not hold is gone.
    fn settle(&mut self, identity: &Identity, needed: u32, now: Timestamp, consequences: &mut Vec<Consequence>) {
        match identity.kind {
            ResourceKind::Instance => self.instances.settle(identity, needed, now, consequences),
            ResourceKind::Storage => self.storage.settle(identity, needed, now, consequences),
        }
    }

    /// Marks what our own release ended, once the provider says that there is no such id any more.
    pub fn released(&mut self, identity: &Identity, now: Timestamp) -> Vec<Consequence> {
        let mut consequences = Vec::new();
        self.settle(identity, 0, now, &mut consequences);
        consequences
    }

    /// Forgets what has been gone for long enough. Returns whether anything went.
    pub fn prune(&mut self, now: Timestamp) -> bool {
        let pruned =
            prune(&mut self.instances, &mut self.earlier, now) | prune(&mut self.storage, &mut self.earlier, now);
        if pruned {
            self.idle.retain(|identity| self.instances.contains_key(identity));
        }
        pruned
    }

    /// When the next gone resource is to be forgotten.
    pub fn next_prune(&self) -> Option<Timestamp> {
        let instances = self.instances.values().filter_map(|known| known.gone_at);
        let storage = self.storage.values().filter_map(|known| known.gone_at);
        instances.chain(storage).min().map(|at| at + GONE_SHOWN)
    }

    fn tenant_trouble(&self, at: usize, reading: &Reading<Tenant>) -> Option<Trouble> {
        let account = &self.accounts[at];
        let Reading::Known(tenant) = reading else {
            // Only the provider's own word ends such a trouble.
            let trouble = account.trouble.as_ref().map(|trouble| &trouble.value);
            return trouble.filter(|trouble| trouble.is_about_the_tenant()).cloned();
        };
        if account.tenant.as_ref().is_some_and(|known| known != tenant) {
            return Some(Trouble::OtherTenant);
        }
        // The account that was there first stays; of two that were, the first in the config.
        let same = |other: &Account| other.provider == account.provider && other.tenant.as_ref() == Some(tenant);
        let others = self.accounts.iter().enumerate().filter(|(place, _)| *place != at);
        others
            .filter(|(place, _)| *place < at || account.tenant.is_none())
            .find(|(_, other)| same(other))
            .map(|(_, other)| Trouble::SameAs(other.name.clone()))
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
    /// What of `burn` is storage items.
    pub storage: Burn,
    /// Some part of a rate is not known: the sums are lower bounds.
    pub incomplete: bool,
    /// Some part of a rate is computed from list prices.
    pub estimated: bool,
}

impl Totals {
    fn of<'a>(
        instances: impl Iterator<Item = &'a Known<Instance>>,
        storage: impl Iterator<Item = &'a Known<StorageItem>>,
        idle: &BTreeSet<Identity>,
    ) -> Self {
        let mut totals = Totals::default();
        let mut mounted = BTreeSet::new();
        for known in instances.filter(|known| !known.is_gone()) {
            mounted.extend(known.row.mounts.iter().map(|id| (&known.identity.account, id)));
            totals.add_instance(known, idle.contains(&known.identity));
        }
        for known in storage.filter(|known| !known.is_gone()) {
            let rates = known.rates();
            totals.add(&rates);
            rates.certain().rates().iter().for_each(|rate| totals.storage.add(*rate));
            let unattached = matches!(&known.row.attachment, Attachment::To(ids) if ids.is_empty());
            if unattached && !mounted.contains(&(&known.identity.account, &known.row.id)) {
                certain(&rates).for_each(|rate| totals.waste.add(rate));
            }
        }
        totals
    }

    /// Adds what one instance costs; nothing for one that is gone. All of what an idle one costs is waste.
    pub fn add_instance(&mut self, known: &Known<Instance>, idle: bool) {
        if known.is_gone() {
            return;
        }
        let rates = known.rates();
        if matches!(known.row.market, Market::Reserved { .. }) {
            rates.lines.iter().for_each(|line| self.prepaid.add(line.rate));
            return;
        }
        self.add(&rates);
        if idle || known.row.is_resting() {
            certain(&rates).for_each(|rate| self.waste.add(rate));
        }
    }

    fn add(&mut self, rates: &Rates) {
        certain(rates).for_each(|rate| self.burn.add(rate));
        rates.lines.iter().for_each(|line| self.upper.add(line.rate));
        self.incomplete |= !rates.complete;
        self.estimated |= rates.estimated();
    }
}

fn certain(rates: &Rates) -> impl Iterator<Item = Rate> {
    rates.lines.iter().filter(|line| line.certain).map(|line| line.rate)
}

/// Whether anything went.
fn prune<T: Row>(known: &mut BTreeMap<Identity, Known<T>>, earlier: &mut Earlier, now: Timestamp) -> bool {
    let before = known.len();
    known.retain(|identity, known| {
        let goes = known.gone_at.is_some_and(|at| now.duration_since(at) >= GONE_SHOWN);
        if goes {
            let gone = Gone { generation: identity.generation, created_at: known.row.created_at() };
            earlier.note(identity.account.as_str(), identity.kind, identity.id.as_str(), gone);
        }
        !goes
    });
    known.len() != before
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
    let [first, last] = generations::<T>(account, id);
    known.range(&first..=&last).next_back().map(|(_, known)| known)
}

/// The first and the last identity that an id can have.
fn generations<T: Row>(account: &AccountName, id: &ResourceId) -> [Identity; 2] {
    let first = Identity { account: account.clone(), kind: T::KIND, id: id.clone(), generation: 0 };
    let last = Identity { generation: u32::MAX, ..first.clone() };
    [first, last]
}

/// Whether two created-ats under one id are those of two machines.
fn is_another(then: Option<Timestamp>, new: Option<Timestamp>) -> bool {
    then.is_some() && new.is_some() && then != new
}

/// How one list is to be read.
struct List<'a> {
    account: &'a AccountName,
    asked_at: Timestamp,
    /// What it leaves out counts as absent.
    trusted: bool,
    earlier: &'a Earlier,
    now: Timestamp,
}

/// A table of one kind of resource.
trait Table<T: Row> {
    /// Takes in one list. Returns what it left out.
    fn absorb(&mut self, list: &List<'_>, part: Part<T>, consequences: &mut Vec<Consequence>) -> Vec<Problem>;

    /// Takes in one row.
    fn sight(&mut self, list: &List<'_>, row: T, consequences: &mut Vec<Consequence>);

    /// Adds what was never seen before.
    fn appear(&mut self, identity: Identity, row: T, now: Timestamp, consequences: &mut Vec<Consequence>);

    /// "No such id" for what no list has missed yet makes it unknown, and no more: lists alone count absences.
    fn doubt(&mut self, identity: &Identity, now: Timestamp, consequences: &mut Vec<Consequence>);

    /// What `needed` complete lists in a row did not hold is gone.
    fn settle(&mut self, identity: &Identity, needed: u32, now: Timestamp, consequences: &mut Vec<Consequence>);
}

impl<T: Row> Table<T> for BTreeMap<Identity, Known<T>> {
    fn absorb(&mut self, list: &List<'_>, part: Part<T>, consequences: &mut Vec<Consequence>) -> Vec<Problem> {
        let (rows, problems) = match part {
            Part::NotAsked => return Vec::new(),
            Part::Failed(error) => {
                let message = error.kind.to_string();
                return vec![Problem { request: error.request, field: String::new(), message }];
            }
            Part::Pieces { rows, unheard } => {
                rows.into_iter().for_each(|row| self.sight(list, row, consequences));
                for row in unheard {
                    let [first, last] = generations::<T>(list.account, row.id());
                    let known = self.range(&first..=&last).next().is_some();
                    if !known && list.earlier.of(&first).is_none() {
                        self.appear(first, row, list.now, consequences);
                    }
                }
                return Vec::new();
            }
            Part::Listed { rows, problems } => (rows, problems),
        };
        let account = list.account;
        let mut listed = BTreeSet::new();
        for row in rows {
            listed.insert(row.id().clone());
            self.sight(list, row, consequences);
        }
        if !problems.is_empty() || !list.trusted {
            return problems;
        }
        let first = Identity { account: account.clone(), kind: T::KIND, id: ResourceId::new(""), generation: 0 };
        let own =
            self.range_mut(first..).map(|(_, known)| known).take_while(|known| known.identity.account == *account);
        for known in own {
            // What was seen by id after the list was asked for is not absent.
            if known.is_gone() || listed.contains(&known.identity.id) || known.last_seen > list.asked_at {
                continue;
            }
            known.absences += 1;
            if known.missing_since.is_none() {
                known.missing_since = Some(list.now);
                consequences.push(Consequence::Changed(known.identity.clone()));
            }
            if known.absences >= 2 {
                consequences.push(Consequence::AskById(known.identity.clone()));
            }
        }
        problems
    }

    fn sight(&mut self, list: &List<'_>, mut row: T, consequences: &mut Vec<Consequence>) {
        let now = list.now;
        let [first, last] = generations::<T>(list.account, row.id());
        let Some((_, known)) = self.range_mut(&first..=&last).next_back() else {
            let Some(Gone { generation, created_at }) = list.earlier.of(&first) else {
                return self.appear(first, row, now, consequences);
            };
            let rises = u32::from(is_another(created_at, row.created_at()));
            row.set_created_at(row.created_at().or(created_at));
            let identity = Identity { generation: generation + rises, ..first };
            return self.appear(identity, row, now, consequences);
        };
        // A list that was asked for before something was proven gone may still hold it.
        if known.gone_at.is_some_and(|at| at > list.asked_at) {
            return;
        }
        let identity = known.identity.clone();
        if is_another(known.row.created_at(), row.created_at()) {
            // A second machine under the same id ends the first: its own created-at says so.
            known.end(now, consequences);
            let next = Identity { generation: identity.generation + 1, ..identity };
            return self.appear(next, row, now, consequences);
        }
        if row.has_ended() {
            known.row.take_end(&row);
            return known.end(now, consequences);
        }
        // A provider that does not tell it this time has not changed it.
        row.set_created_at(row.created_at().or(known.row.created_at()));
        let back = known.is_gone();
        let changed = known.row.differs(&mut row) || known.missing_since.is_some() || back;
        let repriced = changed && !back && known.row.rates() != row.rates();
        let turned = changed && !back && known.row.phase() != row.phase();
        let before = std::mem::replace(&mut known.row, row);
        known.last_seen = now;
        known.missing_since = None;
        known.absences = 0;
        known.gone_at = None;
        if back {
            consequences.push(Consequence::Appeared(identity.clone()));
        }
        if repriced {
            consequences.push(Consequence::Repriced(identity.clone(), before.rates().clone()));
        }
        if let Some(phase) = before.phase().filter(|_| turned) {
            consequences.push(Consequence::Turned(identity.clone(), phase));
        }
        if changed {
            consequences.push(Consequence::Changed(identity));
        }
    }

    fn appear(&mut self, identity: Identity, row: T, now: Timestamp, consequences: &mut Vec<Consequence>) {
        // What had ended before we knew of it is nobody's business any more.
        if !row.has_ended() {
            self.insert(identity.clone(), Known::new(identity.clone(), row, now));
            consequences.push(Consequence::Appeared(identity.clone()));
            consequences.push(Consequence::Changed(identity));
        }
    }

    fn doubt(&mut self, identity: &Identity, now: Timestamp, consequences: &mut Vec<Consequence>) {
        let known = self.get_mut(identity).filter(|known| !known.is_gone() && known.missing_since.is_none());
        if let Some(known) = known {
            known.missing_since = Some(now);
            consequences.push(Consequence::Changed(identity.clone()));
        }
    }

    fn settle(&mut self, identity: &Identity, needed: u32, now: Timestamp, consequences: &mut Vec<Consequence>) {
        if let Some(known) = self.get_mut(identity).filter(|known| known.absences >= needed) {
            known.end(now, consequences);
        }
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
