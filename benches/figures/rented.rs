//! Made instances, and a ledger that remembers a year of them.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use providers::gpu::Gpus;
use providers::model::*;
use providers::money::{Currency, Rate};
use providers::usage::{GpuSample, Usage, UsageSource};
use rentop::ledger::Ledger;
use rentop::rules::fleet::Known;
use rentop::rules::memory::{AccountMemory, Keep, Owner};
use rentop::rules::plan::Target;
use rentop::rules::saga::{Authority, OpId, Operation, Outcome, Step};
use rentop::rules::spend::{Charge, Entries, Evidence, Span, Terms};
use rust_decimal::Decimal;

/// Phases as a fleet has them: most run, some are stopped, few are in trouble.
const PHASES: [Phase; 12] = [
    Phase::Running,
    Phase::Running,
    Phase::Running,
    Phase::Running,
    Phase::Running,
    Phase::Stopped,
    Phase::Running,
    Phase::Running,
    Phase::Provisioning,
    Phase::Running,
    Phase::Failed,
    Phase::Running,
];

fn rate(picos: i64) -> Rate {
    Rate::from_picos(picos, Currency::USD)
}

/// The `n`th instance of an account, with all that a provider tells and usage that differs by `look`.
pub fn instance(n: usize, look: usize, now: Timestamp) -> Instance {
    let phase = PHASES[n % PHASES.len()];
    let disk = rate(6_944_444_444);
    let compute = rate(440_000_000_000 + 1_000_000_000 * (n % 97) as i64);
    let place = |kind, path: &str| DataPlace {
        kind,
        name: None,
        path: Some(path.to_owned()),
        size_gb: Some(Decimal::from(50)),
    };
    let share = ((n * 7 + look * 13) % 100) as f64 / 100.0;
    let usage = Usage {
        gpus: (0..2)
            .map(|index| GpuSample {
                index,
                utilization: Some(share),
                memory_used_bytes: Some(((n + look) as u64 % 80) << 30),
                memory_total_bytes: Some(80 << 30),
                temperature_c: Some(61.0),
                power_watts: Some(412.0),
                ..GpuSample::default()
            })
            .collect(),
        cpu: Some(share / 2.0),
        memory: Some(0.42),
        ..Usage::new(now, UsageSource::Provider)
    };
    let rates = Rates::known().with_estimate(Component::Disk, disk);
    let started_at = now - SignedDuration::from_secs(3600 + 977 * n as i64 % 864_000);
    let kept = vec![place(DataKind::VolumeDisk, "/workspace")];
    let lost = vec![place(DataKind::ContainerDisk, "/")];
    Instance {
        id: instance_id(n),
        name: Some(format!("{}-{n:05}", ["llama-ft", "sweep", "训练", "notebook"][n % 4])),
        phase,
        provider_phase: Some("RUNNING".to_owned()),
        note: Some("container started".to_owned()),
        remarks: Vec::new(),
        market: if n.is_multiple_of(5) { Market::Spot } else { Market::OnDemand },
        gpus: Some(Gpus { model: "H100 SXM".to_owned(), count: 2, memory_gib: Some(80) }),
        rates: if phase == Phase::Running { rates.clone().with(Component::Compute, compute) } else { rates.clone() },
        created_at: Some(started_at),
        started_at: (phase == Phase::Running).then_some(started_at),
        stopped_at: None,
        granularity: Granularity::Exact,
        repricing: None,
        ends_at: None,
        at_zero: Fate::Unknown,
        usage: (phase == Phase::Running).then_some(usage),
        ssh: SshEndpoint::new("root", "192.0.2.45", 22_022, true),
        region: Some("EU-SE-1".to_owned()),
        labels: [("team".to_owned(), "vision".to_owned())].into(),
        mounts: Vec::new(),
        offers: Offers {
            stop: Offer::Yes(Effect {
                rates_after: rates,
                kept: kept.clone(),
                lost: lost.clone(),
                risks: vec![Risk::GpuMayBeTaken, Risk::AddressChanges],
                ..Effect::default()
            }),
            start: Offer::No(Refusal::WrongPhase),
            restart: Offer::No(Refusal::WrongPhase),
            release: Offer::Yes(Effect {
                rates_after: Rates::known(),
                lost: [lost, kept].concat(),
                ..Effect::default()
            }),
        },
        page: Some("https://console.example/pods/x".to_owned()),
    }
}

/// The provider's id of the `n`th instance of an account.
pub fn instance_id(n: usize) -> ResourceId {
    ResourceId::new(format!("k3x{n:011}"))
}

/// An account's name.
pub fn account(n: usize) -> AccountName {
    AccountName::new(format!("team-{n:02}"))
}

/// The instances `from` to `to` of an account as the fleet knows them.
pub fn known(account: &AccountName, numbers: impl Iterator<Item = usize>, now: Timestamp) -> Vec<Known<Instance>> {
    let known = |n| {
        let row = instance(n, 0, now);
        let id = row.id.clone();
        let identity = Identity { account: account.clone(), kind: ResourceKind::Instance, id, generation: 0 };
        Known::new(identity, row, now)
    };
    numbers.map(known).collect()
}

pub fn memory(name: &AccountName, provider: &str, now: Timestamp) -> AccountMemory {
    AccountMemory { as_of: Some(now), last_complete: Some(now), ..AccountMemory::new(name.clone(), provider.into()) }
}

/// Writes down accounts with so many instances each, as seen an hour ago.
pub fn remember(state_dir: &Path, accounts: usize, each: usize) {
    let seen = Timestamp::now() - SignedDuration::from_hours(1);
    let (mut ledger, _) = Ledger::open(state_dir, seen).expect("a ledger in a folder of our own");
    for n in 0..accounts {
        let name = account(n);
        let instances = known(&name, n * each..(n + 1) * each, seen);
        let keep = Keep {
            account: memory(&name, "runpod", seen),
            instances,
            storage: Vec::new(),
            entries: Entries::default(),
        };
        ledger.keep(&keep).expect("a ledger that can be written");
    }
}

/// Adds what a year leaves behind: gone instances with what they cost, and ended actions with all their steps.
pub fn a_year_ago(state_dir: &Path, gone: usize, actions: usize) {
    let now = Timestamp::now();
    let (mut ledger, _) = Ledger::open(state_dir, now).expect("a ledger in a folder of our own");
    let name = account(0);
    let mut ended = known(&name, 1_000_000..1_000_000 + gone, now - SignedDuration::from_hours(2));
    for (n, known) in ended.iter_mut().enumerate() {
        known.gone_at = Some(now - SignedDuration::from_secs(3600 + (31_000_000 * n / gone) as i64));
    }
    for lot in ended.chunks(500) {
        let account = memory(&name, "runpod", now);
        let entries = Entries { spans: lot.iter().flat_map(spent).collect(), ..Entries::default() };
        let keep = Keep { account, instances: lot.to_vec(), storage: Vec::new(), entries };
        ledger.keep(&keep).expect("a ledger that can be written");
    }
    let owner = Owner { host: "desk".to_owned(), pid: 1 };
    for (n, known) in ended.iter().cycle().take(actions).enumerate() {
        let began_at = now - SignedDuration::from_secs(3600 + (31_000_000 * n / actions) as i64);
        let mut operation = operation(n, known, began_at);
        let ended = Step::Ended { at: began_at, outcome: Outcome::Done { despite: None } };
        for step in [Step::Countdown { until: began_at }, Step::Sending { since: began_at }, ended] {
            operation.step = step;
            ledger.record(&operation, &owner, began_at).expect("a ledger that can be written");
        }
    }
}

/// What an instance that is gone was charged: twenty hours, with another price every five.
fn spent(known: &Known<Instance>) -> Vec<Span> {
    let end = known.gone_at.expect("it is gone");
    let mut spans = Vec::new();
    for (component, gpus, picos) in [(Component::Compute, 2, 2_390_000_000_000), (Component::Disk, 0, 6_944_444_444)] {
        for part in 0..4 {
            let from = end - SignedDuration::from_hours(20 - 5 * part);
            let charge = Charge::Certain;
            let terms = Terms { component, charge, wasted: false, project: Some("sweep".into()), gpus };
            let (identity, rate) = (known.identity.clone(), rate(picos + part));
            let to = from + SignedDuration::from_hours(5);
            spans.push(Span { identity, terms, rate, from, to, evidence: Evidence::Observed });
        }
    }
    spans
}

fn operation(n: usize, known: &Known<Instance>, began_at: Timestamp) -> Operation {
    let name = known.row.name.clone().expect("every made instance has a name");
    Operation {
        id: OpId(began_at.as_microsecond() - n as i64),
        action: Action::Release,
        saving: None,
        target: Target {
            recipe: None,
            saved_at: None,
            identity: known.identity.clone(),
            provider: "runpod".into(),
            typed_name: name.clone(),
            name: name.clone(),
            gpus: "2× H100 SXM".to_owned(),
            phase: known.row.phase,
            created_at: known.row.created_at,
            ends_at: None,
            as_of: Some(began_at),
            before: known.row.rates.upper().rates().to_vec(),
            after: Vec::new(),
            rates_complete: true,
            prepaid: false,
            effect: known.row.offers.release.effect().cloned().unwrap_or_default(),
            left_behind: Vec::new(),
        },
        authority: Authority::Typed(name),
        by: "ana@desk".to_owned(),
        began_at,
        step: Step::Sending { since: began_at },
        sent: 1,
        sent_at: Some(began_at),
        answer: Some("accepted".to_owned()),
    }
}
