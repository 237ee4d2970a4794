//! Values that the ledger's tests share.

use jiff::Timestamp;
use providers::gpu::Gpus;
use providers::model::*;
use providers::money::{Currency, Money, Rate};
use providers::usage::{GpuSample, Usage, UsageSource};
use rust_decimal::Decimal;
use tempfile::TempDir;

use super::Ledger;
use crate::rules::fleet::{AsOf, Known};
use crate::rules::memory::{AccountMemory, Keep, LedgerNotice, Owner};
use crate::rules::plan::Target;
use crate::rules::saga::{Authority, OpId, Operation, Outcome, Step};
use crate::rules::spend::{Charge, Entries, Evidence, Span, Terms};

/// A moment of 30 November 2026, `HH:MM` or `HH:MM:SS` in UTC.
pub fn at(clock: &str) -> Timestamp {
    let seconds = if clock.len() == 5 { ":00" } else { "" };
    format!("2026-11-30T{clock}{seconds}Z").parse().expect("a time of day")
}

pub fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// Opens a ledger that is expected to have nothing to say.
pub fn open(dir: &TempDir) -> Ledger {
    let (ledger, notices) = open_telling(dir);
    assert_eq!(notices, []);
    ledger
}

pub fn open_telling(dir: &TempDir) -> (Ledger, Vec<LedgerNotice>) {
    Ledger::open(dir.path(), at("10:00")).expect("opening never fails while nobody else holds the file")
}

pub fn usd(amount: &str) -> Rate {
    Rate::per_hour(amount.parse().unwrap(), Currency::USD).unwrap()
}

pub fn identity(kind: ResourceKind, id: &str) -> Identity {
    Identity { account: "team".into(), kind, id: id.into(), generation: 0 }
}

fn effect() -> Effect {
    let disk = DataPlace {
        kind: DataKind::ContainerDisk,
        name: None,
        path: Some("/".to_owned()),
        size_gb: Some(Decimal::from(50)),
    };
    Effect {
        rates_after: Rates::known().with(Component::Disk, usd("0.0138888889")),
        left_behind: vec!["vol-1".into()],
        kept: vec![DataPlace { kind: DataKind::VolumeDisk, path: Some("/workspace".to_owned()), ..disk.clone() }],
        lost: vec![disk],
        risks: vec![Risk::GpuMayBeTaken, Risk::AddressChanges],
    }
}

/// A running machine with every field in use, its usage included.
pub fn instance(id: &str) -> Instance {
    Instance {
        id: id.into(),
        name: Some(format!("训练 {id}")),
        phase: Phase::Running,
        provider_phase: Some("RUNNING".to_owned()),
        note: None,
        remarks: vec![Remark::NothingSurvivesStop],
        market: Market::Reserved { until: Some(at("23:00")) },
        gpus: Some(Gpus { model: "H100 SXM".to_owned(), count: 8, memory_gib: Some(80) }),
        rates: Rates::known()
            .with(Component::Compute, usd("23.92"))
            .with_estimate(Component::Disk, usd("0.0069444444")),
        created_at: Some(at("08:00")),
        started_at: Some(at("08:01:30")),
        stopped_at: None,
        granularity: Granularity::Exact,
        repricing: None,
        ends_at: None,
        at_zero: Fate::Unknown,
        usage: Some(Usage {
            gpus: vec![GpuSample { index: 0, utilization: Some(0.97), ..GpuSample::default() }],
            cpu: Some(0.4),
            ..Usage::new(at("10:00"), UsageSource::Provider)
        }),
        ssh: SshEndpoint::new("root", "192.0.2.45", 22022, true),
        region: Some("EU-SE-1".to_owned()),
        labels: [("rentop.project".to_owned(), "vision".to_owned())].into(),
        mounts: vec!["vol-1".into()],
        offers: Offers {
            stop: Offer::Yes(effect()),
            start: Offer::No(Refusal::WrongPhase),
            restart: Offer::Yes(Effect { lost: vec![], ..effect() }),
            release: Offer::Yes(effect()),
        },
        page: Some("https://console.example/pods/x".to_owned()),
    }
}

pub fn known_instance(id: &str) -> Known<Instance> {
    Known::new(identity(ResourceKind::Instance, id), instance(id), at("09:00"))
}

pub fn known_volume(id: &str) -> Known<StorageItem> {
    let item = StorageItem {
        id: id.into(),
        name: None,
        kind: StorageKind::NetworkVolume,
        size_gib: Some("931.3225746155".parse().unwrap()),
        attachment: Attachment::To(vec![]),
        rates: Rates::known().with(Component::Storage, usd("0.0972222222")).with_missing(),
        created_at: None,
        region: None,
        labels: Default::default(),
        at_zero: Fate::Unknown,
        delete: Offer::Yes(effect()),
        page: None,
    };
    Known::new(identity(ResourceKind::Storage, id), item, at("09:00"))
}

pub fn account() -> AccountMemory {
    AccountMemory {
        as_of: Some(at("10:00")),
        last_complete: Some(at("09:59:45")),
        tenant: Some(Tenant { id: "user-1".to_owned() }),
        balance: Some(AsOf {
            value: Balance {
                cash: Money::new("41.0712".parse().unwrap(), Currency::USD),
                voucher: None,
                provider_burn: Some(usd("23.9269444444")),
            },
            as_of: at("10:00"),
        }),
        ..AccountMemory::new("team".into(), "runpod".into())
    }
}

/// What a poll keeps: the account and some machines.
pub fn keep(instances: Vec<Known<Instance>>) -> Keep {
    Keep { account: account(), instances, storage: vec![], entries: Entries::default() }
}

/// What a look keeps that closes a time of an instance at two dollars an hour.
pub fn spent(id: &str, from: Timestamp, to: Timestamp) -> Keep {
    let component = Component::Compute;
    let terms = Terms { component, charge: Charge::Certain, wasted: false, project: None, gpus: 2 };
    let identity = identity(ResourceKind::Instance, id);
    let span = Span { identity, terms, rate: usd("2"), from, to, evidence: Evidence::Observed };
    Keep { entries: Entries { spans: vec![span], ..Entries::default() }, ..keep(vec![]) }
}

pub fn operation(id: i64, step: Step) -> Operation {
    Operation {
        id: OpId(id),
        action: Action::Release,
        saving: None,
        target: Target {
            recipe: None,
            saved_at: None,
            identity: identity(ResourceKind::Instance, "pod-a"),
            provider: "runpod".into(),
            name: "训练 pod-a".to_owned(),
            typed_name: "pod-a".to_owned(),
            gpus: "8× H100 SXM".to_owned(),
            phase: Phase::Running,
            created_at: Some(at("08:00")),
            ends_at: None,
            as_of: Some(at("09:59:58.123456789")),
            before: vec![usd("23.92"), usd("0.0069444444")],
            after: vec![],
            rates_complete: true,
            prepaid: false,
            effect: effect(),
            left_behind: vec![("data".to_owned(), vec![usd("0.0972222222")])],
        },
        authority: Authority::Typed("pod-a".to_owned()),
        by: "ada@desk".to_owned(),
        began_at: at("10:00"),
        step,
        sent: 1,
        sent_at: Some(at("10:00:02")),
        answer: Some("accepted".to_owned()),
    }
}

pub fn sending() -> Step {
    Step::Sending { since: at("10:00:02") }
}

pub fn done(clock: &str) -> Step {
    Step::Ended { at: at(clock), outcome: Outcome::Done { despite: None } }
}

pub fn owner(pid: u32) -> Owner {
    Owner { host: "desk".to_owned(), pid }
}
