//! Whatever is written in the books, in whatever order: the sums are those of the entries.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use proptest::sample::select;
use providers::model::{BilledLine, Component};
use providers::money::Currency;
use rust_decimal::Decimal;

use super::tests::*;
use crate::ledger::Ledger;
use crate::rules::spend::*;

const ZONES: [&str; 5] = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"];
const QUARTER: i64 = 900_000;

/// A quarter of an hour since shortly before a change of clocks in each of the zones.
#[derive(Clone, Copy, Debug)]
struct Quarter(i64);

fn quarters() -> impl Strategy<Value = Quarter> {
    // Lord Howe and New York and Berlin change in these weeks.
    (
        select(vec!["2026-03-07T00:00:00Z", "2026-03-28T00:00:00Z", "2026-10-03T00:00:00Z", "2026-10-31T00:00:00Z"]),
        0..200i64,
    )
        .prop_map(|(base, quarter)| Quarter(base.parse::<Timestamp>().unwrap().as_millisecond() / QUARTER + quarter))
}

impl Quarter {
    fn at(self) -> Timestamp {
        ms(self.0 * QUARTER)
    }

    fn later(self, quarters: i64) -> Quarter {
        Quarter(self.0 + quarters)
    }
}

type Line = (&'static str, Component, i64, i64, u32);

#[derive(Clone, Debug)]
enum Deed {
    Look {
        id: &'static str,
        from: Quarter,
        quarters: i64,
        rate: u32,
        evidence: Evidence,
        project: Option<&'static str>,
        charge: Charge,
    },
    Lump {
        id: &'static str,
        at: Quarter,
        amount: u32,
    },
    Import {
        from: Quarter,
        quarters: i64,
        lines: Vec<Line>,
    },
    Assign {
        id: &'static str,
        from: Option<Quarter>,
        project: Option<&'static str>,
    },
    Mark {
        id: &'static str,
        from: Quarter,
        quarters: Option<i64>,
        wasted: bool,
    },
}

fn deeds() -> impl Strategy<Value = Deed> {
    let id = || select(vec!["a", "b"]);
    let project = || select(vec![None, Some("vision"), Some("speech")]);
    let component = || select(vec![Component::Compute, Component::Compute, Component::Disk]);
    let line = (id(), component(), 0..100i64, 1..40i64, 1..9_999_999u32);
    prop_oneof![
        4 => (id(), quarters(), 1..120i64, 1..3u32, select(Evidence::ALL[1..].to_vec()), project(), select(Charge::ALL.to_vec()))
            .prop_map(|(id, from, quarters, rate, evidence, project, charge)| {
                Deed::Look { id, from, quarters, rate, evidence, project, charge }
            }),
        1 => (id(), quarters(), 1..999u32).prop_map(|(id, at, amount)| Deed::Lump { id, at, amount }),
        3 => (quarters(), 20..150i64, prop::collection::vec(line, 0..5))
            .prop_map(|(from, quarters, lines)| Deed::Import { from, quarters, lines }),
        1 => (id(), prop::option::of(quarters()), project()).prop_map(|(id, from, project)| Deed::Assign { id, from, project }),
        2 => (id(), quarters(), prop::option::of(1..100i64), any::<bool>())
            .prop_map(|(id, from, quarters, wasted)| Deed::Mark { id, from, quarters, wasted }),
    ]
}

fn perform(ledger: &mut Ledger, deed: &Deed) {
    match deed {
        Deed::Look { id, from, quarters, rate, evidence, project, charge } => {
            let terms = Terms { charge: *charge, ..compute(*project) };
            let rate = format!("{rate}.0000001");
            enter(
                ledger,
                spans(vec![Span { terms, ..span(id, from.at(), from.later(*quarters).at(), &rate, *evidence) }]),
            );
        }
        Deed::Lump { id, at, amount } => {
            let amount = Exact::of(Decimal::new(i64::from(*amount), 3));
            let (identity, terms, currency) = (pod(id), compute(None), Currency::USD);
            let lump = Lump { identity, terms, at: at.at(), amount, currency, evidence: Evidence::Observed };
            enter(ledger, Entries { lumps: vec![lump], ..Entries::default() });
        }
        Deed::Import { from, quarters, lines } => {
            import(ledger, from.at(), from.later(*quarters).at(), &billed_lines(*from, *quarters, lines));
        }
        Deed::Assign { id, from, project } => assign(ledger, id, from.map(Quarter::at), *project),
        Deed::Mark { id, from, quarters, wasted } => {
            let to = quarters.map(|quarters| from.later(quarters).at());
            mark(ledger, id, from.at(), to, *wasted);
        }
    }
}

fn billed_lines(from: Quarter, quarters: i64, lines: &[Line]) -> Vec<BilledLine> {
    let line = |(id, component, offset, length, amount): &Line| {
        // Some begin before the window and some end after it, as daily lines do.
        let from = from.later(offset - 10);
        let amount = Decimal::new(i64::from(*amount), 6).to_string();
        BilledLine { component: *component, ..billed(id, from.at(), from.later(*length).at(), &amount) }
    };
    lines.iter().map(line).filter(|line| line.from < from.later(quarters).at()).collect()
}

/// What the provider has told last of each line. Silence about one that begins in the time asked for takes it back.
#[derive(Default)]
struct Told(BTreeMap<(String, Component, Timestamp, Timestamp), Decimal>);

impl Told {
    fn hear(&mut self, deed: &Deed) {
        let Deed::Import { from, quarters, lines } = deed else { return };
        let (start, end) = (from.at(), from.later(*quarters).at());
        let mut told = BTreeMap::new();
        for BilledLine { resource, component, from, to, amount, .. } in billed_lines(*from, *quarters, lines) {
            let (_, id) = resource.unwrap();
            *told.entry((id.to_string(), component, from, to)).or_default() += amount.amount;
        }
        self.0.retain(|(.., from, _), _| *from < start || end <= *from);
        self.0.extend(told);
    }

    fn total(&self) -> Exact {
        self.0.values().map(|amount| Exact::of(*amount)).sum()
    }
}

fn in_zone(ledger: &mut Ledger, zone: &str) {
    ledger.use_zone(TimeZone::get(zone).unwrap()).unwrap();
    while ledger.add_up_more().unwrap() {}
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// What was waste, or none, is the same money.
    #[test]
    fn marking_changes_nothing_but_what_is_waste(
        done in prop::collection::vec(deeds(), 1..9),
        from in quarters(),
        quarters in 1..100i64,
    ) {
        let mut ledger = Ledger::in_memory().unwrap();
        done.iter().for_each(|deed| perform(&mut ledger, deed));
        let year = Period { from: date("2026-01-01"), to: date("2027-01-01") };
        let before = total(&mut ledger, year);
        let to = from.later(quarters).at();
        mark(&mut ledger, "a", from.at(), Some(to), false);
        let none = total(&mut ledger, year);
        mark(&mut ledger, "a", from.at(), Some(to), true);
        let all = total(&mut ledger, year);
        let but_waste = |amounts: Amounts| Amounts { wasted: Exact::ZERO, unused: Exact::ZERO, ..amounts };
        prop_assert_eq!(but_waste(none), but_waste(before));
        prop_assert_eq!(but_waste(all), but_waste(before));
        assign(&mut ledger, "a", Some(from.later(quarters / 2).at()), Some("speech"));
        prop_assert_eq!(total(&mut ledger, year), all);
        prop_assert!(none.wasted <= before.wasted && before.wasted <= all.wasted);
        prop_assert!(Exact::ZERO <= none.wasted && all.wasted <= all.total());
    }

    /// Lines may overlap, and be cut by marks and projects at the same times.
    #[test]
    fn what_was_billed_is_there_to_the_last_digit(done in prop::collection::vec(deeds(), 1..12)) {
        let (mut ledger, mut told) = (Ledger::in_memory().unwrap(), Told::default());
        let year = Period { from: date("2026-01-01"), to: date("2027-01-01") };
        for deed in &done {
            perform(&mut ledger, deed);
            told.hear(deed);
            prop_assert_eq!(total(&mut ledger, year).billed, told.total(), "after {:?}", deed);
        }
    }

    #[test]
    fn sums_follow_the_entries_and_nothing_counts_twice(
        done in prop::collection::vec(deeds(), 1..9),
        zone in select(ZONES.to_vec()),
        other in select(ZONES.to_vec()),
        cut in 1..364i64,
    ) {
        let mut ledger = Ledger::in_memory().unwrap();
        in_zone(&mut ledger, zone);
        for deed in &done {
            perform(&mut ledger, deed);
            let once = rows(&ledger);
            perform(&mut ledger, deed);
            prop_assert_eq!(rows(&ledger), once, "{:?} twice", deed);
        }

        let year = Period { from: date("2026-01-01"), to: date("2027-01-01") };
        let whole = total(&mut ledger, year);
        let cut = year.days().nth(cut as usize).unwrap();
        let mut parts = total(&mut ledger, Period { to: cut, ..year });
        parts.merge(&total(&mut ledger, Period { from: cut, ..year }));
        prop_assert_eq!(parts, whole);
        for month in ["2026-03-01", "2026-10-01"].map(|month| Period::month(date(month))) {
            let mut days = Amounts::default();
            month.days().for_each(|day| days.merge(&total(&mut ledger, Period::day(day))));
            prop_assert_eq!(days, total(&mut ledger, month));
        }

        // The same from the entries alone, before they are added up in another zone, and after.
        ledger.use_zone(TimeZone::get(other).unwrap()).unwrap();
        let march = Period::month(date("2026-03-01"));
        let slowly = (total(&mut ledger, march), total(&mut ledger, year));
        in_zone(&mut ledger, other);
        check(&ledger);
        prop_assert_eq!((total(&mut ledger, march), total(&mut ledger, year)), slowly);
        prop_assert_eq!(slowly.1, whole);
    }
}
