use std::collections::BTreeMap;

use jiff::ToSpan;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use proptest::sample::select;
use providers::model::{Component, Identity, Instance, StorageItem};
use providers::money::{Currency, Rate};
use rust_decimal::Decimal;

use super::*;
use crate::ledger::Ledger;
use crate::ledger::samples::{account, identity, instance, known_volume, usd};
use crate::rules::budgets::{Cycle, Quantity, Scope, Unit};
use crate::rules::fleet::Known;
use crate::rules::matcher::{Glob, LabelPattern};
use crate::rules::memory::{AccountMemory, Keep};
use crate::rules::spend::*;

const ZONES: [&str; 6] =
    ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "America/Santiago"];
/// Accounts, each with its provider.
const ACCOUNTS: [(&str, &str); 3] = [("team", "runpod"), ("lab", "runpod"), ("solo", "vast")];
/// Resources, each with its name and label.
const ONES: [(ResourceKind, &str, Option<&str>, &str); 4] = [
    (ResourceKind::Instance, "a", Some("ft-1"), "vision"),
    (ResourceKind::Instance, "b", Some("ft-2"), "speech"),
    (ResourceKind::Instance, "c", None, "vision"),
    (ResourceKind::Storage, "v", Some("ft-data"), "vision"),
];

#[derive(Clone, Debug)]
struct Spent {
    account: usize,
    one: usize,
    from: i64,
    minutes: i64,
    charge: Charge,
    project: Option<&'static str>,
    gpus: u32,
    picos: i64,
    /// A charge of one moment instead.
    lump: bool,
}

fn spent() -> impl Strategy<Value = Spent> {
    let project = select(vec![None, Some("llm"), Some("web")]);
    // Half an hour of minutes in weeks in which clocks change, and around them.
    let from = (
        select(vec!["2026-03-25T00:00:00Z", "2026-03-31T18:00:00Z", "2026-04-03T00:00:00Z", "2026-02-28T00:00:00Z"]),
        0..4_000i64,
    )
        .prop_map(|(base, minutes)| base.parse::<Timestamp>().unwrap().as_millisecond() + minutes * 60_000 + 7);
    (
        0..3usize,
        0..4usize,
        from,
        1..6_000i64,
        select(Charge::ALL.to_vec()),
        project,
        0..3u32,
        1..9_000_000_000_000i64,
        prop::bool::weighted(0.2),
    )
        .prop_map(|(account, one, from, minutes, charge, project, gpus, picos, lump)| Spent {
            account,
            one,
            from,
            minutes,
            charge,
            project,
            gpus,
            picos,
            lump,
        })
}

fn enter(ledger: &mut Ledger, spent: &Spent) {
    let (name, provider) = ACCOUNTS[spent.account];
    let (kind, id, ..) = ONES[spent.one];
    let own = Identity { account: name.into(), ..identity(kind, id) };
    let terms = Terms {
        component: if kind == ResourceKind::Instance { Component::Compute } else { Component::Storage },
        charge: spent.charge,
        wasted: false,
        project: spent.project.map(Into::into),
        gpus: if kind == ResourceKind::Instance { spent.gpus } else { 0 },
    };
    let time = |ms| Timestamp::from_millisecond(ms).unwrap();
    let (from, rate) = (time(spent.from), Rate::from_picos(spent.picos, Currency::USD));
    let entries = match spent.lump {
        true => {
            let amount = Exact::of(Decimal::new(spent.picos, 9));
            let lump =
                Lump { identity: own, terms, at: from, amount, currency: Currency::USD, evidence: Evidence::Observed };
            Entries { lumps: vec![lump], ..Entries::default() }
        }
        false => {
            let to = time(spent.from + spent.minutes * 60_000);
            let span = Span { identity: own, terms, rate, from, to, evidence: Evidence::Observed };
            Entries { spans: vec![span], ..Entries::default() }
        }
    };
    let account = AccountMemory { balance: None, ..AccountMemory::new(name.into(), provider.into()) };
    ledger.keep(&Keep { account, instances: vec![], storage: vec![], entries }).unwrap();
}

/// What there was: all of it is gone.
fn list_all(ledger: &mut Ledger) {
    for (name, provider) in ACCOUNTS {
        let (mut instances, mut storage) = (vec![], vec![]);
        let gone_at = Some("2026-06-01T00:00:00Z".parse().unwrap());
        for (kind, id, called, label) in ONES {
            let own = Identity { account: name.into(), ..identity(kind, id) };
            let (called, labels) = (called.map(str::to_owned), [("team".to_owned(), label.to_owned())].into());
            let seen = "2026-03-01T00:00:00Z".parse().unwrap();
            match kind {
                ResourceKind::Instance => {
                    let row = Instance { name: called, labels, ..instance(id) };
                    instances.push(Known { gone_at, ..Known::new(own, row, seen) });
                }
                ResourceKind::Storage => {
                    let row = StorageItem { name: called, labels, ..known_volume(id).row };
                    storage.push(Known { gone_at, ..Known::new(own, row, seen) });
                }
            }
        }
        let account = AccountMemory { balance: None, ..AccountMemory::new(name.into(), provider.into()) };
        ledger.keep(&Keep { account, instances, storage, entries: Entries::default() }).unwrap();
    }
}

/// Scopes, each with which entries it takes: of an account, a resource and a project, by their numbers in the lists.
type Takes = fn(usize, usize, Option<&str>) -> bool;

fn scopes() -> Vec<(Scope, Takes)> {
    let all = Scope::default;
    let label = LabelPattern::parse("team=vision");
    vec![
        (all(), |_, _, _| true),
        (Scope { account: Some("lab".into()), ..all() }, |account, _, _| account == 1),
        (Scope { provider: Some("runpod".into()), ..all() }, |account, _, _| account < 2),
        (Scope { project: Some("llm".to_owned()), ..all() }, |_, _, project| project == Some("llm")),
        (Scope { instance: Some(Glob::new("ft-*")), ..all() }, |_, one, _| one < 2),
        (Scope { instance: Some(Glob::new("*")), ..all() }, |_, one, _| one < 3),
        (Scope { label: label.clone(), ..all() }, |_, one, _| one != 1),
        (
            Scope {
                label,
                provider: Some("vast".into()),
                project: Some("web".to_owned()),
                instance: Some(Glob::new("*")),
                account: None,
            },
            |account, one, project| account == 2 && (one == 0 || one == 2) && project == Some("web"),
        ),
    ]
}

/// Terms, each with when it begins and ends in a zone, counted by hand.
fn cycles(zone: &TimeZone, now: Timestamp) -> Vec<(Cycle, i64, i64)> {
    let today = zone.to_datetime(now).date();
    let start = |date: Date| zone.to_timestamp(date.at(0, 0, 0, 0)).unwrap().as_millisecond();
    let monday = today - i64::from(today.weekday().to_monday_zero_offset()).days();
    let dates = Period { from: "2026-03-27".parse().unwrap(), to: "2026-04-02".parse().unwrap() };
    vec![
        (Cycle::Day, start(today), start(today + 1.day())),
        (Cycle::Week, start(monday), start(monday + 7.days())),
        (Cycle::Month, start(today.first_of_month()), start(today.last_of_month() + 1.day())),
        (Cycle::Total, i64::MIN, i64::MAX),
        (Cycle::Dates(dates), start(dates.from), start(dates.to)),
    ]
}

fn budget(scope: &Scope, cycle: Cycle, zone: &TimeZone) -> Budget {
    Budget {
        name: "some".to_owned(),
        scope: scope.clone(),
        cycle,
        limit: Quantity::new(Decimal::TEN, Unit::Money(Currency::USD)),
        zone: zone.clone(),
        thresholds: vec![],
        forecast: None,
    }
}

type Sum = (Exact, Exact, Exact, i64);

/// What entries come to in a time, as they stand in the books: certain, possible and prepaid, and GPU-milliseconds.
fn by_hand(ledger: &Ledger, takes: Takes, from: i64, to: i64) -> Sum {
    const SPANS: &str = "
        SELECT account, id, project, charge, gpus, began, ended, rate, 0, 0 FROM span
        JOIN billable ON billable.key = billable JOIN book ON book.key = book JOIN terms ON terms.key = terms";
    const AMOUNTS: &str = "
        SELECT account, id, project, charge, 0, began, ended, 0, micros, rest FROM amount
        JOIN billable ON billable.key = billable JOIN book ON book.key = book JOIN terms ON terms.key = terms";
    let mut sum = Sum::default();
    for sql in [SPANS, AMOUNTS] {
        let mut statement = ledger.main.prepare(sql).unwrap();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let (account, id): (String, String) = (row.get(0).unwrap(), row.get(1).unwrap());
            let project: Option<String> = row.get(2).unwrap();
            let account = ACCOUNTS.iter().position(|(name, _)| *name == account).unwrap();
            let one = ONES.iter().position(|(_, own, ..)| *own == id).unwrap();
            if !takes(account, one, project.as_deref()) {
                continue;
            }
            let [charge, gpus, began, ended, rate, micros, rest] =
                [3, 4, 5, 6, 7, 8, 9].map(|n| row.get::<_, i64>(n).unwrap());
            let ms = (ended.min(to) - began.max(from)).max(0);
            let within = from <= began && began < to;
            let amount = match began == ended {
                true if within => Exact::from_parts(micros, rest),
                true => Exact::ZERO,
                false => Exact::of_picos(rate.into(), ms),
            };
            *[&mut sum.0, &mut sum.1, &mut sum.2][charge as usize] += amount;
            sum.3 += if charge == 1 { 0 } else { gpus * ms };
        }
    }
    sum
}

fn total(drawn: &Drawn) -> Sum {
    let mut sums = Sums::default();
    drawn.days.values().for_each(|day| sums.merge(day));
    let of = sums.of(Currency::USD);
    (of.total(), of.possible, of.prepaid, of.gpu_ms)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever was spent: what is drawn on a budget is what the entries of its scope and term come to.
    #[test]
    fn what_is_drawn_is_what_the_entries_add_up_to(
        spent in prop::collection::vec(spent(), 1..14),
        own in select(ZONES.to_vec()),
        listed in any::<bool>(),
        now in select(vec!["2026-03-29T12:00:00Z", "2026-03-31T23:30:00Z", "2026-04-05T03:59:59Z", "2026-03-01T00:00:00Z"]),
    ) {
        let mut ledger = Ledger::in_memory().unwrap();
        ledger.use_zone(TimeZone::get(own).unwrap()).unwrap();
        while ledger.add_up_more().unwrap() {}
        spent.iter().for_each(|spent| enter(&mut ledger, spent));
        if listed {
            list_all(&mut ledger);
        }
        let now: Timestamp = now.parse().unwrap();
        for zone in [own, ZONES[0], ZONES[4]].map(|zone| TimeZone::get(zone).unwrap()) {
            for (scope, takes) in scopes() {
                // Of what was never listed nobody knows more than whose it is.
                let single = scope.is_about_single_ones() && !listed;
                for (cycle, from, to) in cycles(&zone, now) {
                    let drawn = ledger.drawn(&[budget(&scope, cycle, &zone)], now).unwrap();
                    let expected = match (single, &scope.label) {
                        (true, Some(_)) => Sum::default(),
                        (true, None) if scope.instance == Some(Glob::new("ft-*")) => Sum::default(),
                        _ => by_hand(&ledger, takes, from, to),
                    };
                    prop_assert_eq!(total(&drawn[0]), expected, "{:?} {:?} {:?}", scope, cycle, zone.iana_name());
                    let inside = |day: &Date| {
                        let start = zone.to_timestamp(day.at(0, 0, 0, 0)).unwrap().as_millisecond();
                        from <= start && start < to
                    };
                    prop_assert!(drawn[0].days.keys().all(inside));
                }
            }
        }
    }
}

/// A budget's days follow the entries also while the sums are those of another zone, or not made yet.
#[test]
fn what_is_drawn_does_not_wait_for_the_sums() {
    let mut ledger = Ledger::in_memory().unwrap();
    let from = "2026-11-29T20:00:00Z".parse::<Timestamp>().unwrap();
    let terms = Terms { component: Component::Compute, charge: Charge::Certain, wasted: false, project: None, gpus: 1 };
    let span = Span {
        identity: identity(ResourceKind::Instance, "a"),
        terms,
        rate: usd("1"),
        from,
        to: from + 8.hours(),
        evidence: Evidence::Observed,
    };
    let entries = Entries { spans: vec![span], ..Entries::default() };
    ledger
        .keep(&Keep {
            account: AccountMemory { balance: None, ..account() },
            instances: vec![],
            storage: vec![],
            entries,
        })
        .unwrap();
    let zone = TimeZone::get("Asia/Shanghai").unwrap();
    let budgets =
        [budget(&Scope::default(), Cycle::Month, &zone), budget(&Scope::default(), Cycle::Day, &TimeZone::UTC)];
    let days = |ledger: &mut Ledger| {
        let drawn = ledger.drawn(&budgets, from + 6.hours()).unwrap();
        let day = |(day, sums): (&Date, &Sums)| (day.to_string(), sums.of(Currency::USD).total().amount().to_string());
        drawn.iter().map(|drawn| drawn.days.iter().map(day).collect()).collect::<Vec<BTreeMap<_, _>>>()
    };
    let of = |all: &[(&str, &str)]| all.iter().map(|(day, sum)| ((*day).to_owned(), (*sum).to_owned())).collect();
    let expected = vec![of(&[("2026-11-30", "8")]), of(&[("2026-11-30", "4")])];
    assert_eq!(days(&mut ledger), expected, "the sums are UTC's");
    ledger.use_zone(zone.clone()).unwrap();
    assert_eq!(days(&mut ledger), expected, "and in that zone not made yet");
    while ledger.add_up_more().unwrap() {}
    assert_eq!(days(&mut ledger), expected);
}
