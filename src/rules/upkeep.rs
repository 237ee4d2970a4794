//! What costs without working: stopped instances and storage that nothing at work uses, each charge once.
//!
//! What may be of use to somebody is listed, says so, and is neither waste nor proposed for deletion.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use providers::model::{
    AccountName, Action, Attachment, Component, Effect, Identity, Instance, Market, Offer, Phase, ProviderName, Rates,
    Refusal, ResourceId, Risk, StorageItem, StorageKind,
};
use providers::money::{Burn, Money, Rate};
use rust_decimal::Decimal;

use super::fleet::{Account, Fleet, Freshness, Known, Row as Resource};
use super::plan::{Basis, Hindrance, barred, delete_offer, shown_name};
use super::settings::Settings;

/// Hours in the month that monthly sums are for: 365 days of 24 hours in 12 months. A provider that spreads
/// its monthly prices over another month has its own hours in the rate already.
pub const HOURS_IN_MONTH: u32 = 730;

/// What a rate comes to in a month.
pub fn month(rate: Rate) -> Money {
    rate.over_hours(Decimal::from(HOURS_IN_MONTH))
        .expect("the largest rate of a month is far below the largest decimal")
}

/// What sort of thing a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// An instance that is stopped or reclaimed.
    Instance(Phase),
    Storage(StorageKind),
}

impl Kind {
    /// The word of `--json`.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Instance(_) => "instance",
            Kind::Storage(kind) => kind.word(),
        }
    }
}

/// Since when a resource is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// By the provider.
    Created(Timestamp),
    /// The provider does not tell: it is at least as old as our first sight of it.
    FirstSeen(Timestamp),
}

impl Since {
    /// The age by then, or the least that it can be; never negative.
    pub fn age(self, now: Timestamp) -> SignedDuration {
        let (Since::Created(at) | Since::FirstSeen(at)) = self;
        now.duration_since(at).max(SignedDuration::ZERO)
    }
}

/// Which of the sums a row belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// A stopped instance, or storage that nobody uses.
    Waste,
    /// Storage of stopped instances only: theirs, and no waste of its own.
    WithStopped,
    /// Storage that somebody uses or may use, as far as anybody tells.
    PerhapsUsed,
    /// An instance that is paid ahead: it stands unused, and ending it saves nothing.
    PaidAhead,
}

impl Standing {
    /// The word of `--json`.
    pub fn word(self) -> &'static str {
        match self {
            Standing::Waste => "waste",
            Standing::WithStopped => "with_stopped",
            Standing::PerhapsUsed => "perhaps_used",
            Standing::PaidAhead => "paid_ahead",
        }
    }
}

/// What a person should know about a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The last complete list lacks it: whether it still costs is not known.
    MissingSince(Timestamp),
    AttachedToNothing,
    /// The names of the stopped instances that use it; the id stands in where there is none.
    AttachedToStopped(Vec<String>),
    /// It is said to be attached to these, which are gone or in no list.
    AttachedToUnlisted(Vec<String>),
    /// In use, and the provider does not say by whom.
    UsedSomewhere,
    /// The provider does not say whether anybody uses it.
    UseUnknown,
    /// Attached to nothing that is listed, but others may use it: what mounts it cannot be seen in full.
    MayBeUsedByOthers,
    /// Stopped, and compute is charged all the same.
    ComputeBilled,
    /// Its disk costs more than it would after a start.
    CostsMoreWhileStopped,
    /// Its public address is charged while stopped.
    AddressBilled,
    /// Paid ahead until then, where the provider tells.
    PaidAhead(Option<Timestamp>),
    /// The provider ends it by itself then.
    EndsAt(Timestamp),
    /// Labels that name an owner: their keys and values.
    OwnerLabels(Vec<(String, String)>),
    Protected,
    NotMine,
}

impl Note {
    /// The word of `--json`.
    pub fn word(&self) -> &'static str {
        match self {
            Note::MissingSince(_) => "missing",
            Note::AttachedToNothing => "attached_to_nothing",
            Note::AttachedToStopped(_) => "attached_to_stopped",
            Note::AttachedToUnlisted(_) => "attached_to_unlisted",
            Note::UsedSomewhere => "used_somewhere",
            Note::UseUnknown => "use_unknown",
            Note::MayBeUsedByOthers => "may_be_used_by_others",
            Note::ComputeBilled => "compute_billed",
            Note::CostsMoreWhileStopped => "costs_more_while_stopped",
            Note::AddressBilled => "address_billed",
            Note::PaidAhead(_) => "paid_ahead",
            Note::EndsAt(_) => "ends_by_itself",
            Note::OwnerLabels(_) => "owner_labels",
            Note::Protected => "protected",
            Note::NotMine => "not_mine",
        }
    }
}

/// One thing that costs without working.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub identity: Identity,
    pub provider: ProviderName,
    /// `None` when it has none, or a blank one.
    pub name: Option<String>,
    pub kind: Kind,
    pub standing: Standing,
    /// In GB or GiB as its provider counts: of an instance, the disks that a release erases. `None` when any
    /// part of it is not told.
    pub size_gb: Option<Decimal>,
    pub since: Since,
    pub region: Option<String>,
    /// Its own charges alone: what is attached to it stands in rows of its own.
    pub rates: Rates,
    /// The most telling first.
    pub notes: Vec<Note>,
    /// What ending it would do; `None` where the provider does not offer it.
    pub effect: Option<Effect>,
    /// Why it cannot be ended now, in the words of its plan; `None` when nothing is in the way.
    pub hindrance: Option<Hindrance>,
    /// Whether it may stand in a list of things to end that the program makes by itself.
    pub proposable: bool,
}

impl Row {
    /// The name, or the id where there is none.
    pub fn shown_name(&self) -> &str {
        self.name.as_deref().unwrap_or(self.identity.id.as_str())
    }

    /// The action that ends it.
    pub fn end(&self) -> Action {
        match self.kind {
            Kind::Instance(_) => Action::Release,
            Kind::Storage(_) => Action::Delete,
        }
    }

    /// All of its charges, those that only may be charged included: one rate a currency, none where nothing
    /// is known.
    pub fn hourly(&self) -> Burn {
        self.rates.upper()
    }

    /// The same by the month.
    pub fn monthly(&self) -> Vec<Money> {
        self.hourly().rates().iter().copied().map(month).collect()
    }

    /// Whether each of its known charges is surely charged.
    pub fn certain(&self) -> bool {
        self.rates.lines.iter().all(|line| line.certain)
    }
}

/// What several resources cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub count: usize,
    /// What is surely charged, by the hour.
    pub certain: Burn,
    /// What may be charged included.
    pub upper: Burn,
    /// Some part of it was computed from list prices.
    pub estimated: bool,
    /// Some part of a rate is not known: both are lower bounds.
    pub incomplete: bool,
}

impl Sum {
    /// What is surely charged by the month, one amount a currency.
    pub fn monthly(&self) -> Vec<Money> {
        self.certain.rates().iter().copied().map(month).collect()
    }

    fn add(&mut self, rates: &Rates) {
        self.count += 1;
        rates.certain().rates().iter().for_each(|rate| self.certain.add(*rate));
        rates.upper().rates().iter().for_each(|rate| self.upper.add(*rate));
        self.estimated |= rates.estimated();
        self.incomplete |= !rates.complete;
    }
}

/// All that costs without working, and what of the storage works.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Upkeep {
    /// The costliest first.
    pub rows: Vec<Row>,
    /// Its certain sum is the waste of the fleet.
    pub waste: Sum,
    pub with_stopped: Sum,
    pub perhaps_used: Sum,
    pub paid_ahead: Sum,
    /// Storage of instances that are not stopped; it has no rows.
    pub working: Sum,
}

impl Upkeep {
    /// What the program may propose to end by itself: nobody is known, said or suspected to use it, it is
    /// mine and not protected, nothing hinders it, and all this is from a complete poll that is fresh.
    pub fn proposable(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.proposable)
    }

    /// The sum of the rows that stand so.
    pub fn sum(&self, standing: Standing) -> &Sum {
        match standing {
            Standing::Waste => &self.waste,
            Standing::WithStopped => &self.with_stopped,
            Standing::PerhapsUsed => &self.perhaps_used,
            Standing::PaidAhead => &self.paid_ahead,
        }
    }

    fn take(&mut self, row: Row) {
        let sum = match row.standing {
            Standing::Waste => &mut self.waste,
            Standing::WithStopped => &mut self.with_stopped,
            Standing::PerhapsUsed => &mut self.perhaps_used,
            Standing::PaidAhead => &mut self.paid_ahead,
        };
        sum.add(&row.rates);
        self.rows.push(row);
    }
}

/// Finds what costs without working. What is known to cost nothing is left out.
pub fn upkeep(basis: Basis<'_>) -> Upkeep {
    let mut upkeep = Upkeep::default();
    for known in basis.fleet.instances.values().filter(|known| !known.is_gone()) {
        if at_rest(known) && !is_free(&known.rates()) {
            upkeep.take(instance_row(basis, known));
        }
    }
    let mounts = mounts(basis.fleet);
    for known in basis.fleet.storage.values().filter(|known| !known.is_gone()) {
        let mounting = mounts.get(&(&known.identity.account, &known.row.id));
        let users = Users::of(basis.fleet, known, mounting.map_or(&[], Vec::as_slice));
        if users.working {
            upkeep.working.add(&known.rates());
        } else if !is_free(&known.rates()) {
            upkeep.take(storage_row(basis, known, &users));
        }
    }
    let cost = |row: &Row| row.hourly().rates().iter().map(Rate::picos).fold(0, i64::saturating_add);
    upkeep.rows.sort_by_cached_key(|row| (Reverse(cost(row)), row.identity.clone()));
    upkeep
}

/// The last word about it is that it is stopped: by us or by its provider.
fn at_rest(known: &Known<Instance>) -> bool {
    known.row.is_resting()
}

/// Known in full, and nothing.
fn is_free(rates: &Rates) -> bool {
    rates.complete && rates.upper().is_zero()
}

fn instance_row(basis: Basis<'_>, known: &Known<Instance>) -> Row {
    let row = &known.row;
    let charged = |component| !row.rates.of(&[component]).is_zero();
    let (standing, paid_ahead) = match row.market {
        Market::Reserved { until } => (Standing::PaidAhead, Some(Note::PaidAhead(until))),
        Market::OnDemand | Market::Spot => (Standing::Waste, None),
    };
    let told = [
        (standing == Standing::Waste && charged(Component::Compute), Note::ComputeBilled),
        (disk_costs_more(row), Note::CostsMoreWhileStopped),
        (charged(Component::Ip), Note::AddressBilled),
    ];
    let notes = told.into_iter().filter_map(|(holds, note)| holds.then_some(note));
    let notes = notes.chain(paid_ahead).chain(row.ends_at.map(Note::EndsAt)).collect();
    let size_gb = row.offers.release.effect().and_then(erased_gb);
    let found = Found { kind: Kind::Instance(row.phase), standing, size_gb, region: row.region.clone(), notes };
    found.row(basis, known, row.offers.release.clone())
}

fn storage_row(basis: Basis<'_>, known: &Known<StorageItem>, users: &Users) -> Row {
    let row = &known.row;
    let listed = |names: &[String], note: fn(Vec<String>) -> Note| (!names.is_empty()).then(|| note(names.to_vec()));
    let mut notes = Vec::new();
    notes.extend(listed(&users.stopped, Note::AttachedToStopped));
    notes.extend(listed(&users.unlisted, Note::AttachedToUnlisted));
    let attached = !notes.is_empty();
    let offer = if attached { Offer::No(Refusal::InUse) } else { delete_offer(row) };
    let standing = match row.attachment {
        Attachment::Somewhere => {
            notes.push(Note::UsedSomewhere);
            Standing::PerhapsUsed
        }
        Attachment::Unknown => {
            notes.push(Note::UseUnknown);
            Standing::PerhapsUsed
        }
        Attachment::To(_) if !users.unlisted.is_empty() => Standing::PerhapsUsed,
        Attachment::To(_) if attached => Standing::WithStopped,
        Attachment::To(_) => {
            notes.push(Note::AttachedToNothing);
            notes.extend(offer.effect().filter(|effect| others_may_use(effect)).map(|_| Note::MayBeUsedByOthers));
            Standing::Waste
        }
    };
    let (size_gb, region) = (row.size_gib, row.region.clone());
    Found { kind: Kind::Storage(row.kind), standing, size_gb, region, notes }.row(basis, known, offer)
}

/// What is particular to instances or to storage in a row.
struct Found {
    kind: Kind,
    standing: Standing,
    size_gb: Option<Decimal>,
    region: Option<String>,
    notes: Vec<Note>,
}

impl Found {
    fn row<T: Resource>(self, basis: Basis<'_>, known: &Known<T>, offer: Offer) -> Row {
        let Basis { fleet, settings, now, .. } = basis;
        let (identity, row) = (&known.identity, &known.row);
        let account = fleet.account(&identity.account);
        let provider = account.map_or_else(|| "".into(), |account| account.provider.clone());
        let (mine, protected) = (settings.mine(&provider, identity, row), settings.protected(&provider, identity, row));
        let owners = owner_labels(row.labels());
        let (effect, refusal) = match offer {
            Offer::Yes(effect) => (Some(effect), None),
            Offer::No(refusal) => (None, Some(Hindrance::Provider(refusal))),
        };
        let hindrance = match account.filter(|_| known.missing_since.is_none()) {
            Some(account) => barred(basis, account, identity).or(refusal),
            None => Some(Hindrance::NotThere),
        };
        let proposable = self.standing == Standing::Waste
            && hindrance.is_none()
            && !effect.as_ref().is_some_and(others_may_use)
            && mine
            && !protected
            && (owners.is_empty() || said_to_be_mine(settings, &provider, known))
            && account.is_some_and(|account| is_sure(fleet, account, now));
        let mut notes: Vec<Note> = known.missing_since.map(Note::MissingSince).into_iter().chain(self.notes).collect();
        notes.extend((!owners.is_empty()).then_some(Note::OwnerLabels(owners)));
        notes.extend(protected.then_some(Note::Protected));
        notes.extend((!mine).then_some(Note::NotMine));
        Row {
            identity: identity.clone(),
            provider,
            name: row.name().filter(|name| !name.trim().is_empty()).map(str::to_owned),
            kind: self.kind,
            standing: self.standing,
            size_gb: self.size_gb,
            since: row.created_at().map_or(Since::FirstSeen(known.first_seen), Since::Created),
            region: self.region,
            rates: known.rates().into_owned(),
            notes,
            effect,
            hindrance,
            proposable,
        }
    }
}

/// Its last lists were complete, are fresh, and are known to be of the same account as before.
fn is_sure(fleet: &Fleet, account: &Account, now: Timestamp) -> bool {
    fleet.freshness(account, now) == Freshness::Fresh && fleet.trusts(&account.name)
}

fn others_may_use(effect: &Effect) -> bool {
    effect.risks.contains(&Risk::UseUnknown)
}

/// A stopped instance's disk costs more than after a start, as far as its offer tells.
fn disk_costs_more(row: &Instance) -> bool {
    let disk = |rates: &Rates| rates.of(&[Component::Disk]);
    row.offers.start.effect().map(|effect| &effect.rates_after).is_some_and(|after| {
        let (now, then) = (disk(&row.rates), disk(after));
        let told = after.complete || !then.rates().is_empty();
        told && now.rates().iter().any(|rate| rate.picos() > then.of(rate.currency).picos())
    })
}

/// The size of all that an action erases; `None` when it erases nothing, or something of a size not told.
fn erased_gb(effect: &Effect) -> Option<Decimal> {
    let mut sizes = effect.lost.iter().map(|place| place.size_gb).peekable();
    sizes.peek()?;
    sizes.try_fold(Decimal::ZERO, |sum, size| sum.checked_add(size?))
}

/// Keys of labels by which people and tools say whose something is, without prefix and separators.
const OWNER_KEYS: &[&str] = &["owner", "team", "user", "creator", "createdby", "managedby", "maintainer", "contact"];

fn owner_labels(labels: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let names_an_owner = |key: &str| {
        let key = key.rsplit(['/', ':']).next().unwrap_or(key);
        let key: String = key.chars().filter(char::is_ascii_alphanumeric).collect();
        OWNER_KEYS.iter().any(|owner| key.eq_ignore_ascii_case(owner))
    };
    let owners = labels.iter().filter(|(key, value)| names_an_owner(key) && !value.trim().is_empty());
    owners.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// A person, or a rule of the config about labels, says that it is mine: a rule about names knows nothing of
/// the owner that a label names.
fn said_to_be_mine<T: Resource>(settings: &Settings, provider: &ProviderName, known: &Known<T>) -> bool {
    let (identity, row) = (&known.identity, &known.row);
    let by_hand = settings.single.get(identity).and_then(|setting| setting.mine);
    by_hand.unwrap_or_else(|| {
        let mut rules = settings.rules.mine.iter().filter(|rule| rule.label.is_some());
        rules.any(|rule| rule.matches(provider, &identity.account, row))
    })
}

/// The present instances that mount each storage item, as they say themselves.
fn mounts(fleet: &Fleet) -> BTreeMap<(&AccountName, &ResourceId), Vec<&ResourceId>> {
    let mut mounts: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for known in fleet.instances.values().filter(|known| !known.is_gone()) {
        for item in &known.row.mounts {
            mounts.entry((&known.identity.account, item)).or_default().push(&known.row.id);
        }
    }
    mounts
}

/// Who uses a storage item, by its own word and by the instances that say that they mount it.
#[derive(Default)]
struct Users {
    /// Names of those that are stopped.
    stopped: Vec<String>,
    /// Names of those that are gone or in no list.
    unlisted: Vec<String>,
    /// One of them is there and not stopped.
    working: bool,
}

impl Users {
    fn of(fleet: &Fleet, known: &Known<StorageItem>, mounting: &[&ResourceId]) -> Self {
        let told: &[ResourceId] = match &known.row.attachment {
            Attachment::To(ids) => ids,
            Attachment::Somewhere | Attachment::Unknown => &[],
        };
        let ids: BTreeSet<&ResourceId> = told.iter().chain(mounting.iter().copied()).collect();
        let mut users = Users::default();
        for id in ids {
            let user = fleet.instance(&known.identity.account, id);
            let name = || shown_name(user.and_then(|user| user.row.name.as_deref()), id);
            match user.filter(|user| !user.is_gone()) {
                Some(user) if at_rest(user) => users.stopped.push(name()),
                Some(_) => users.working = true,
                None => users.unlisted.push(name()),
            }
        }
        users
    }
}

#[cfg(test)]
#[path = "upkeep_tests.rs"]
mod tests;
