//! Small resources, accounts and answers for the tests of the rules.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use providers::error::{ErrorKind, ProviderError, RequestLine};
use providers::gpu::Gpus;
use providers::model::{
    AccountName, Attachment, Balance, Component, DataKind, DataPlace, Effect, Fate, Granularity, Identity, Instance,
    Market, Offer, Offers, Phase, Rates, Refusal, ResourceKind, StorageItem, StorageKind, Tenant,
};
use providers::money::{Currency, Money, Rate};
use providers::provider::{Part, Poll, Reading};

use super::budgets::{Budget, Cycle, FORECAST, Quantity, Scope, THRESHOLDS, Unit};
use super::checkpoint::Saved;
use super::fleet::{Account, Consequence, Fleet};
use super::plan::Basis;
use super::settings::Settings;

/// `HH:MM:SS` of 2026-11-30, UTC.
pub fn at(clock: &str) -> Timestamp {
    format!("2026-11-30T{clock}Z").parse().expect("a clock time")
}

/// What plans are made from, without a word of checkpoints and with nothing under way.
pub fn basis<'a>(fleet: &'a Fleet, settings: &'a Settings, now: Timestamp) -> Basis<'a> {
    static SAVED: BTreeMap<Identity, Saved> = BTreeMap::new();
    Basis { fleet, settings, recipes: &[], saved: &SAVED, under_way: &[], read_only: false, now }
}

pub fn usd(hourly: &str) -> Rate {
    Rate::per_hour(hourly.parse().expect("a decimal"), Currency::USD).expect("a rate")
}

pub fn identity(account: &str, id: &str) -> Identity {
    Identity { account: account.into(), kind: ResourceKind::Instance, id: id.into(), generation: 0 }
}

pub fn item_identity(account: &str, id: &str) -> Identity {
    Identity { kind: ResourceKind::Storage, ..identity(account, id) }
}

/// A place that an action erases.
pub fn disk(kind: DataKind) -> DataPlace {
    DataPlace { kind, name: None, path: Some("/workspace".to_owned()), size_gb: Some(100.into()) }
}

/// An effect after which `hourly` goes on being charged.
pub fn effect(hourly: &str, lost: Vec<DataPlace>) -> Effect {
    Effect { rates_after: Rates::known().with(Component::Disk, usd(hourly)), lost, ..Effect::default() }
}

/// An instance at `hourly`, with the offers that suit its phase: a stop keeps its disk, a release loses it.
pub fn instance(id: &str, phase: Phase, hourly: &str) -> Instance {
    let at_rest = matches!(phase, Phase::Stopped | Phase::Reclaimed | Phase::Failed);
    let fitting = |fits, effect| if fits { Offer::Yes(effect) } else { Offer::No(Refusal::WrongPhase) };
    Instance {
        id: id.into(),
        name: Some(id.to_owned()),
        phase,
        provider_phase: Some(phase.word().to_owned()),
        note: None,
        remarks: Vec::new(),
        market: Market::OnDemand,
        gpus: Some(Gpus::parse("RTX 4090", Some(1), None)),
        rates: Rates::known().with(Component::Compute, usd(hourly)),
        created_at: None,
        started_at: None,
        stopped_at: None,
        granularity: Granularity::Exact,
        repricing: None,
        ends_at: None,
        at_zero: Fate::Unknown,
        usage: None,
        ssh: None,
        region: None,
        labels: BTreeMap::new(),
        mounts: Vec::new(),
        offers: Offers {
            stop: fitting(!at_rest, effect("0.01", Vec::new())),
            start: fitting(at_rest, effect("1", Vec::new())),
            restart: fitting(!at_rest, effect("1", Vec::new())),
            release: Offer::Yes(effect("0", vec![disk(DataKind::VolumeDisk)])),
        },
        page: None,
    }
}

/// A volume at `hourly` that these instances use.
pub fn volume(id: &str, hourly: &str, users: &[&str]) -> StorageItem {
    StorageItem {
        id: id.into(),
        name: Some(id.to_owned()),
        kind: StorageKind::Volume,
        size_gib: Some(100.into()),
        attachment: Attachment::To(users.iter().map(|id| (*id).into()).collect()),
        rates: Rates::known().with(Component::Storage, usd(hourly)),
        created_at: None,
        region: None,
        labels: BTreeMap::new(),
        at_zero: Fate::Unknown,
        delete: Offer::Yes(effect("0", vec![disk(DataKind::Contents)])),
        page: None,
    }
}

/// A complete list of instances and nothing else.
pub fn listed(rows: Vec<Instance>) -> Poll {
    Poll {
        instances: Part::complete(rows),
        storage: Part::NotAsked,
        balance: Reading::NotAsked,
        tenant: Reading::NotAsked,
        server_time: None,
    }
}

pub fn with_storage(poll: Poll, rows: Vec<StorageItem>) -> Poll {
    Poll { storage: Part::complete(rows), ..poll }
}

pub fn of_tenant(poll: Poll, id: &str) -> Poll {
    Poll { tenant: Reading::Known(Tenant { id: id.to_owned() }), ..poll }
}

pub fn with_balance(poll: Poll, cash: &str) -> Poll {
    let cash = Money::new(cash.parse().expect("a decimal"), Currency::USD);
    Poll { balance: Reading::Known(Balance { cash, voucher: None, provider_burn: None }), ..poll }
}

pub fn error(kind: ErrorKind) -> ProviderError {
    ProviderError {
        provider: "vast".into(),
        account: "team".into(),
        request: RequestLine("GET /instances".to_owned()),
        kind,
    }
}

pub fn failed(kind: ErrorKind) -> Poll {
    Poll { instances: Part::Failed(error(kind)), ..listed(Vec::new()) }
}

/// A fleet of empty accounts, all at one provider.
pub fn fleet(accounts: &[&str]) -> Fleet {
    let accounts = accounts.iter().map(|name| Account::new(AccountName::from(*name), "vast".into(), false)).collect();
    Fleet { accounts, ..Fleet::default() }
}

impl Fleet {
    /// Asks and takes in the answer within the same moment.
    pub(crate) fn poll(&mut self, account: &str, poll: Poll, now: Timestamp) -> Vec<Consequence> {
        self.account_mut(&account.into()).expect("an account of the test").pacing.ask(now, true);
        self.absorb(&account.into(), poll, now)
    }
}

/// A limit in dollars on everything, in UTC, with the usual lines.
pub fn budget(name: &str, limit: &str, cycle: Cycle) -> Budget {
    Budget {
        name: name.to_owned(),
        scope: Scope::default(),
        cycle,
        limit: Quantity::new(limit.parse().expect("a decimal"), Unit::Money(Currency::USD)),
        zone: TimeZone::UTC,
        thresholds: THRESHOLDS.to_vec(),
        forecast: Some(FORECAST),
    }
}
