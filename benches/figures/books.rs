//! The books of a year: 10,000 instances whose rates change every day.

use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use providers::model::{Balance, Component, Granularity, Identity};
use providers::money::{Currency, Money, Rate};
use rentop::ledger::Ledger;
use rentop::rules::fleet::AsOf;
use rentop::rules::memory::{AccountMemory, Keep};
use rentop::rules::spend::{Charge, Entries, Evidence, OpenLine, Period, Question, Running, Span, State, Sums, Terms};
use rust_decimal::Decimal;

use crate::measure::{Judged, Measured};
use crate::rented;

const ACCOUNTS: usize = 50;
const EACH: usize = 200;
const PROJECTS: usize = 20;
const DAYS: i64 = 365;
const ROUNDS: usize = 60;

/// The time that a month's spend by project takes, and the size of the file.
pub fn year() -> Vec<Measured> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let start: Timestamp = "2025-11-29T12:00:00Z".parse().expect("a time");
    let end = start + SignedDuration::from_hours(24 * DAYS);
    let (mut ledger, _) = Ledger::open(folder.path(), end).expect("a folder of our own");
    ledger.use_zone(TimeZone::get("Europe/Berlin").expect("a zone")).expect("a new ledger");
    while ledger.add_up_more().expect("a new ledger") {}
    for account in 0..ACCOUNTS {
        let name = rented::account(account);
        let instances = rented::known(&name, 0..EACH, start);
        let (storage, entries) = (Vec::new(), Entries::default());
        ledger.keep(&Keep { account: remembered(account, None), instances, storage, entries }).expect("a sound ledger");
    }
    let mut write = |days: Range<i64>| {
        let mut entries = days_of_all(days, start);
        entries.spans.sort_by(|one, other| one.identity.cmp(&other.identity));
        let began = Instant::now();
        let (account, instances, storage) = (remembered(0, None), Vec::new(), Vec::new());
        ledger.keep(&Keep { account, instances, storage, entries }).expect("a sound ledger");
        began.elapsed()
    };
    // Written week by week, and the last days one by one.
    for week in 0..DAYS / 7 - 1 {
        write(week * 7..week * 7 + 7);
    }
    let written: Vec<Duration> = ((DAYS / 7 - 1) * 7..DAYS).map(|day| write(day..day + 1)).collect();
    for (days, account) in (0..28).rev().flat_map(|days| (0..ACCOUNTS).map(move |account| (days, account))) {
        let account = remembered(account, Some((end - SignedDuration::from_hours(24 * days), 100 + days)));
        let (instances, storage, entries) = Default::default();
        ledger.keep(&Keep { account, instances, storage, entries }).expect("a sound ledger");
    }

    let november = Period::month(Date::constant(2026, 11, 1));
    let asked: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let began = Instant::now();
            let answer = ledger.answer(&Question::Days(november)).expect("a sound ledger");
            let mut projects: HashMap<_, Sums> = HashMap::new();
            for cell in &answer.cells {
                projects.entry(cell.terms.project.clone()).or_default().add_cell(cell);
            }
            assert!(!answer.unfinished && projects.len() == PROJECTS);
            began.elapsed()
        })
        .collect();
    let balances: Vec<Duration> = (0..5)
        .map(|_| {
            let began = Instant::now();
            let answer = ledger.answer(&Question::Balances(november)).expect("a sound ledger");
            assert_eq!(answer.balances.len(), ACCOUNTS);
            began.elapsed()
        })
        .collect();
    let summed: Vec<Duration> = (0..5)
        .map(|_| {
            let began = Instant::now();
            let summed = ledger.sum_up(Date::constant(2026, 11, 28)).expect("a sound ledger");
            assert_eq!(summed.rows.len(), ACCOUNTS * EACH);
            began.elapsed()
        })
        .collect();
    drop(ledger);
    let bytes: u64 = std::fs::read_dir(folder.path())
        .expect("a folder of our own")
        .map(|file| file.and_then(|file| file.metadata()).expect("a file of our own").len())
        .sum();
    vec![
        Measured::times("month's spend by project, 10,000 resources × 1 year", Judged::P99, 20.0, &asked),
        Measured::times("  what the balances of 50 accounts tell of it", Judged::Median, 500.0, &balances).beside(),
        Measured::new("  the ledger's file", "MB", Judged::Worst, 500.0, vec![bytes as f64 / 1e6]),
        Measured::times("  all sums of the screen", Judged::Median, 500.0, &summed).beside(),
        Measured::times("  a day's 20,000 changes written", Judged::Median, 1000.0, &written).beside(),
    ]
}

fn remembered(n: usize, balance: Option<(Timestamp, i64)>) -> AccountMemory {
    let balance = balance.map(|(as_of, cash)| AsOf {
        value: Balance { cash: Money::new(Decimal::from(cash), Currency::USD), voucher: None, provider_burn: None },
        as_of,
    });
    AccountMemory { balance, ..AccountMemory::new(rented::account(n), "runpod".into()) }
}

/// What some days close: compute and disk of every instance, each at its own time of day.
fn days_of_all(days: Range<i64>, start: Timestamp) -> Entries {
    let mut entries = Entries::default();
    for day in days {
        entries.append(day_of_all(day, start));
    }
    entries
}

fn day_of_all(day: i64, start: Timestamp) -> Entries {
    let mut entries = Entries::default();
    for account in 0..ACCOUNTS {
        for n in 0..EACH {
            let id = rented::instance_id(n);
            let kind = providers::model::ResourceKind::Instance;
            let identity = Identity { account: rented::account(account), kind, id, generation: 0 };
            let from = start + SignedDuration::from_millis(day * 86_400_000 + n as i64 * 123_457);
            let to = from + SignedDuration::from_hours(24);
            let project = Some(format!("project-{}", (account * 4 + n % 4) % PROJECTS).into());
            let evidence = if (day as usize + n).is_multiple_of(9) { Evidence::Inferred } else { Evidence::Observed };
            let mut lines = Vec::new();
            for (component, gpus, picos) in
                [(Component::Compute, 2, 2_390_000_000_000), (Component::Disk, 0, 6_944_444_444)]
            {
                let charge = Charge::Certain;
                let terms = Terms { component, charge, wasted: n.is_multiple_of(12), project: project.clone(), gpus };
                let rate = |day: i64| Rate::from_picos(picos + day * 1_000_000 + n as i64, Currency::USD);
                let (identity, rate_then) = (identity.clone(), rate(day));
                entries.spans.push(Span { identity, terms: terms.clone(), rate: rate_then, from, to, evidence });
                lines.push(OpenLine { terms, rate: rate(day + 1), from: to, run_from: start });
            }
            let state = State { running: true, started_at: Some(start), granularity: Granularity::Exact };
            let running = Running { lines, seen: None, missing: false, since: start, state, idle: Default::default() };
            entries.open.insert(identity, Some(running));
        }
    }
    entries
}
