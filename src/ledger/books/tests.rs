use std::collections::HashMap;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use providers::model::{Balance, BilledLine, Component, Identity, ResourceKind};
use providers::money::{Currency, Money, Rate};
use rstest::rstest;
use rust_decimal::Decimal;

use super::*;
use crate::ledger::samples::*;
use crate::rules::fleet::AsOf;
use crate::rules::spend::*;

const HOUR: i64 = 3_600_000;

pub(super) fn ms(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(millis).unwrap()
}

pub(super) fn pod(id: &str) -> Identity {
    identity(ResourceKind::Instance, id)
}

pub(super) fn compute(project: Option<&str>) -> Terms {
    Terms {
        component: Component::Compute,
        charge: Charge::Certain,
        wasted: false,
        project: project.map(Into::into),
        gpus: 2,
    }
}

pub(super) fn span(id: &str, from: Timestamp, to: Timestamp, rate: &str, evidence: Evidence) -> Span {
    Span { identity: pod(id), terms: compute(None), rate: usd(rate), from, to, evidence }
}

pub(super) fn observed(id: &str, from: &str, to: &str) -> Span {
    span(id, at(from), at(to), "2", Evidence::Observed)
}

pub(super) fn billed(id: &str, from: Timestamp, to: Timestamp, amount: &str) -> BilledLine {
    BilledLine {
        resource: Some((ResourceKind::Instance, id.into())),
        product: "GPU".to_owned(),
        component: Component::Compute,
        from,
        to,
        amount: Money::new(amount.parse().unwrap(), Currency::USD),
    }
}

pub(super) fn spans(spans: Vec<Span>) -> Entries {
    Entries { spans, ..Entries::default() }
}

pub(super) fn enter(ledger: &mut Ledger, entries: Entries) {
    let account = AccountMemory { balance: None, ..account() };
    ledger.keep(&Keep { account, instances: vec![], storage: vec![], entries }).unwrap();
    check(ledger);
}

pub(super) fn import(ledger: &mut Ledger, from: Timestamp, to: Timestamp, lines: &[BilledLine]) {
    ledger.import_billed(&"team".into(), from, to, lines).unwrap();
    check(ledger);
}

pub(super) fn assign(ledger: &mut Ledger, id: &str, from: Option<Timestamp>, project: Option<&str>) {
    ledger.assign(&[Assignment { identity: pod(id), from, project: project.map(str::to_owned) }]).unwrap();
    check(ledger);
}

pub(super) fn mark(ledger: &mut Ledger, id: &str, from: Timestamp, to: Option<Timestamp>, wasted: bool) {
    ledger.mark(&[Marking { identity: pod(id), from, to, wasted }]).unwrap();
    check(ledger);
}

pub(super) fn date(text: &str) -> Date {
    text.parse().unwrap()
}

pub(super) fn november() -> Period {
    Period::month(date("2026-11-30"))
}

fn cells(ledger: &mut Ledger, question: Question) -> Vec<Cell> {
    let answer = ledger.answer(&question).unwrap();
    assert!(!answer.unfinished);
    answer.cells
}

fn sums(cells: &[Cell]) -> Amounts {
    let mut sums = Sums::default();
    cells.iter().for_each(|cell| sums.add_cell(cell));
    sums.of(Currency::USD)
}

pub(super) fn total(ledger: &mut Ledger, period: Period) -> Amounts {
    let by_day = sums(&cells(ledger, Question::Days(period)));
    let by_resource = sums(&cells(ledger, Question::Resources(period)));
    assert_eq!(by_day, by_resource);
    by_day
}

pub(super) fn money(exact: Exact) -> String {
    exact.amount().to_string()
}

/// `HH:MM-HH:MM`, what stands there, and a mark for what is replaced.
pub(super) fn entries(ledger: &mut Ledger, id: &str) -> Vec<String> {
    let billable = Billable::Resource { identity: pod(id), name: None };
    let question = Question::Entries { account: "team".into(), billable, period: november() };
    let entries = ledger.answer(&question).unwrap().entries;
    let clock = |at: Timestamp| at.to_zoned_datetime(TimeZone::UTC).strftime("%d %H:%M").to_string();
    let line = |entry: Entry| {
        let project = entry.terms.project.as_deref().map(|project| format!(" {project}")).unwrap_or_default();
        let replaced = if entry.replaced { " replaced" } else { "" };
        let (from, to, amount) = (clock(entry.from), clock(entry.to), money(entry.amount));
        format!("{from}-{to} {} {amount}{project}{replaced}", entry.evidence.word())
    };
    entries.into_iter().map(line).collect()
}

/// Everything in the books but the sums: equal books have equal rows.
pub(super) fn rows(ledger: &Ledger) -> Vec<Vec<rusqlite::types::Value>> {
    const ENTRIES: [&str; 4] = [
        "SELECT billable, line, began, ended, rate, component, charge, wasted, project, gpus, evidence, replaced
         FROM span JOIN terms ON key = terms ORDER BY 1, 2, 3",
        "SELECT billable, terms.component, began, ended, billed_before, billed_after, micros, rest, wasted, project, gpus,
                evidence, replaced
         FROM amount JOIN terms ON key = terms ORDER BY 1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 13",
        "SELECT * FROM open ORDER BY 1",
        "SELECT key, since FROM billable ORDER BY 1",
    ];
    let read = |sql: &str| {
        let mut statement = ledger.main.prepare(sql).unwrap();
        let columns = statement.column_count();
        let rows = statement.query_map([], |row| (0..columns).map(|column| row.get(column)).collect()).unwrap();
        rows.collect::<Result<Vec<Vec<_>>, _>>().unwrap()
    };
    ENTRIES.iter().flat_map(|sql| read(sql)).collect()
}

/// One row of a table of sums, keyed by what its terms say.
type Sum = HashMap<(i64, i64, String), (Exact, i64)>;

/// Adds all entries up once more, day by day and without a shortcut, and holds that against the sums.
pub(super) fn check(ledger: &Ledger) {
    const SPANS: &str = "
        SELECT billable, line, began, ended, rate, component, charge, wasted, project, currency, evidence, replaced, gpus
        FROM span JOIN terms ON key = terms ORDER BY billable, line, began";
    const AMOUNTS: &str = "
        SELECT billable, began, ended, micros, rest, terms.component, charge, wasted, project, currency, evidence, replaced
        FROM amount JOIN terms ON key = terms";
    let words = |row: &rusqlite::Row, from: usize| -> String {
        (from..from + 7).map(|column| format!("{:?} ", row.get_ref(column).unwrap())).collect()
    };
    let (mut days, mut months): (Sum, Sum) = Default::default();
    let zone = &ledger.zone;
    let mut add = |billable: i64, day: Date, words: &str, amount: Exact, gpu_ms: i64| {
        let (year, month) = (i64::from(day.year()), i64::from(day.month()));
        for (sums, key) in [
            (&mut days, (year * 10_000 + month * 100 + i64::from(day.day()), 1, words.to_owned())),
            (&mut months, (billable, year * 100 + month, words.to_owned())),
        ] {
            let sum = sums.entry(key).or_default();
            *sum = (sum.0 + amount, sum.1 + gpu_ms);
        }
    };
    let days_of = |from: i64, to: i64| {
        let (first, last) = (date_of(ms(from), zone), date_of(ms(to), zone));
        let period = Period { from: first, to: Period::day(last).to };
        period.days().map(move |day| {
            let (start, end) = (start_of(day, zone).as_millisecond(), Period::day(day).end(zone).as_millisecond());
            (day, start.max(from), end.min(to))
        })
    };

    let mut statement = ledger.main.prepare(SPANS).unwrap();
    let mut found = statement.query([]).unwrap();
    let mut before: Option<(i64, i64, i64)> = None;
    while let Some(row) = found.next().unwrap() {
        let [billable, line, began, ended, rate] = [0, 1, 2, 3, 4].map(|column| row.get::<_, i64>(column).unwrap());
        assert!(began < ended);
        if let Some((_, _, reached)) = before.filter(|before| (before.0, before.1) == (billable, line)) {
            assert!(reached <= began, "spans overlap");
        }
        before = Some((billable, line, ended));
        let gpus = if row.get::<_, i64>(11).unwrap() == 2 { 0 } else { row.get(12).unwrap() };
        for (day, from, to) in days_of(began, ended).filter(|(_, from, to)| from < to) {
            let amount = Exact::over(Rate::from_picos(rate, Currency::USD), ms(from), ms(to));
            add(billable, day, &words(row, 5), amount, gpus * (to - from));
        }
    }
    let mut statement = ledger.main.prepare(AMOUNTS).unwrap();
    let mut found = statement.query([]).unwrap();
    while let Some(row) = found.next().unwrap() {
        let [billable, began, ended, micros, rest] = [0, 1, 2, 3, 4].map(|column| row.get::<_, i64>(column).unwrap());
        let amount = Exact::from_parts(micros, rest);
        if began == ended {
            add(billable, date_of(ms(began), zone), &words(row, 5), amount, 0);
        }
        let until = |at| amount.until(ms(at), ms(began), ms(ended));
        for (day, from, to) in days_of(began, ended).filter(|(_, from, to)| from < to) {
            add(billable, day, &words(row, 5), until(to) - until(from), 0);
        }
    }

    let read = |table: &str, keys: &str| -> Sum {
        let sql = format!(
            "SELECT {keys}, micros, rest, gpu_ms, component, charge, wasted, project, currency, evidence, replaced
             FROM {table} JOIN terms ON key = terms"
        );
        let mut statement = ledger.main.prepare(&sql).unwrap();
        let rows = statement.query_map([], |row| {
            let sum = (Exact::from_parts(row.get(2)?, row.get(3)?), row.get(4)?);
            Ok(((row.get(0)?, row.get(1)?, words(row, 5)), sum))
        });
        rows.unwrap().collect::<Result<_, _>>().unwrap()
    };
    // What entries are looked up by: the first one's time, and the longest line.
    const BILLABLES: &str = "
        SELECT since,
               (SELECT MIN(began) FROM (SELECT began, billable FROM span UNION ALL SELECT began, billable FROM amount)
                WHERE billable = key),
               longest,
               (SELECT MAX(ended - began + MAX(billed_before, 0) + MAX(billed_after, 0)) FROM amount
                WHERE billable = key)
        FROM billable";
    let mut statement = ledger.main.prepare(BILLABLES).unwrap();
    let mut found = statement.query([]).unwrap();
    while let Some(row) = found.next().unwrap() {
        let [since, first, longest, needed] = [0, 1, 2, 3].map(|column| row.get::<_, Option<i64>>(column).unwrap());
        assert_eq!(since, first, "since");
        assert!(needed <= longest, "an amount of {needed:?} is longer than {longest:?}");
    }

    for (table, keys, mut expected) in [("day_sum", "day, book", days), ("month_sum", "billable, month", months)] {
        let mut sums = read(table, keys);
        sums.retain(|_, sum| *sum != Default::default());
        expected.retain(|_, sum| *sum != Default::default());
        assert_eq!(sums, expected, "{table}");
    }
}

#[test]
fn what_is_entered_is_told_by_day_by_resource_and_one_by_one() {
    let mut ledger = Ledger::in_memory().unwrap();
    ledger.keep(&keep(vec![known_instance("a")])).unwrap();
    enter(&mut ledger, spans(vec![observed("a", "08:00", "10:00"), observed("b", "09:00", "10:00")]));
    let sums = total(&mut ledger, november());
    assert_eq!((money(sums.observed), sums.gpu_ms), ("6".to_owned(), 6 * HOUR));
    assert_eq!(entries(&mut ledger, "a"), ["30 08:00-30 10:00 observed 4"]);
    let named = cells(&mut ledger, Question::Resources(november()));
    let named: Vec<_> = named.into_iter().filter_map(|cell| cell.billable).collect();
    let resource = |id: &str, name: &str| Billable::Resource { identity: pod(id), name: Some(name.to_owned()) };
    assert_eq!(named, [resource("a", "训练 a"), resource("b", "b")]);

    let summed = ledger.sum_up(date("2026-11-30")).unwrap();
    assert_eq!(money(summed.today.of(Currency::USD).total()), "6");
    assert_eq!(money(summed.month.of(Currency::USD).total()), "6");
    assert_eq!(summed.since, Some(at("08:00")));
    let [(identity, row)] = &summed.rows[..] else { panic!("only what the fleet has: {:?}", summed.rows) };
    assert_eq!((identity, money(row.rental.of(Currency::USD).total()).as_str()), (&pod("a"), "4"));
    assert_eq!(row.since, Some(at("08:00")));
    let next = ledger.sum_up(date("2026-12-01")).unwrap();
    assert_eq!((next.today.is_empty(), next.month.is_empty()), (true, true));
    assert_eq!((&next.rows[0].1.rental, next.rows[0].1.month.is_empty()), (&row.rental, true));
}

/// A rental that is proven back to its start when it is there again meets what was counted before.
#[test]
fn what_the_books_have_is_never_doubled() {
    let mut ledger = Ledger::in_memory().unwrap();
    enter(&mut ledger, spans(vec![observed("a", "08:00", "09:00"), observed("a", "09:30", "10:00")]));
    let proven = span("a", at("07:00"), at("11:00"), "3", Evidence::Inferred);
    for _ in 0..2 {
        enter(&mut ledger, spans(vec![proven.clone()]));
        let expected = [
            "30 07:00-30 08:00 inferred 3",
            "30 08:00-30 09:00 observed 2",
            "30 09:00-30 09:30 inferred 1.5",
            "30 09:30-30 10:00 observed 1",
            "30 10:00-30 11:00 inferred 3",
        ];
        assert_eq!(entries(&mut ledger, "a"), expected);
    }
}

#[test]
fn a_lump_is_entered_once_also_when_it_was_replaced() {
    let mut ledger = Ledger::in_memory().unwrap();
    let (amount, currency) = (Exact::of(Decimal::new(5, 1)), Currency::USD);
    let lump = Lump {
        identity: pod("a"),
        terms: compute(None),
        at: at("09:00"),
        amount,
        currency,
        evidence: Evidence::Observed,
    };
    let look = Entries { spans: vec![observed("a", "08:00", "09:00")], lumps: vec![lump], ..Entries::default() };
    enter(&mut ledger, look.clone());
    enter(&mut ledger, look.clone());
    assert_eq!(money(total(&mut ledger, november()).total()), "2.5");
    import(&mut ledger, at("08:00"), at("09:00"), &[billed("a", at("08:00"), at("09:00"), "2.4")]);
    enter(&mut ledger, look);
    let sums = total(&mut ledger, november());
    assert_eq!([sums.total(), sums.replaced].map(money), ["2.4", "2.5"]);
}

/// What hourly cuts take apart is one row again, so that the books do not grow by the hour.
#[test]
fn a_billed_line_wins_for_its_time_and_hourly_imports_leave_few_rows() {
    let mut ledger = Ledger::in_memory().unwrap();
    for hour in 0..6 {
        let (from, to) = (at("01:00") + hours(hour), at("02:00") + hours(hour));
        enter(&mut ledger, spans(vec![span("a", from, to, "2", Evidence::Observed)]));
        import(&mut ledger, from, to, &[billed("a", from, to, "1.9")]);
    }
    enter(&mut ledger, spans(vec![observed("a", "07:00", "08:00")]));
    let lines = entries(&mut ledger, "a");
    assert_eq!(lines.len(), 8);
    assert!(lines.contains(&"30 01:00-30 07:00 observed 12 replaced".to_owned()), "{lines:?}");
    let sums = total(&mut ledger, november());
    assert_eq!([sums.billed, sums.observed, sums.drift()].map(money), ["11.4", "2", "-0.6"]);
    assert_eq!(sums.gpu_ms, 14 * HOUR);
}

fn hours(hours: i64) -> jiff::SignedDuration {
    jiff::SignedDuration::from_hours(hours)
}

#[test]
fn a_line_that_is_billed_no_more_makes_our_own_figure_count_again() {
    let mut ledger = Ledger::in_memory().unwrap();
    enter(&mut ledger, spans(vec![observed("a", "08:00", "11:00")]));
    let before = rows(&ledger);
    let lines = [billed("a", at("09:00"), at("10:00"), "1.9")];
    import(&mut ledger, at("08:00"), at("11:00"), &lines);
    let once = rows(&ledger);
    import(&mut ledger, at("08:00"), at("11:00"), &lines);
    assert_eq!(rows(&ledger), once);
    assert_eq!(money(total(&mut ledger, november()).total()), "5.9");

    let changed = [billed("a", at("09:00"), at("10:00"), "2.1")];
    import(&mut ledger, at("08:00"), at("11:00"), &changed);
    assert_eq!(money(total(&mut ledger, november()).total()), "6.1");
    import(&mut ledger, at("08:00"), at("11:00"), &[]);
    assert_eq!(rows(&ledger), before);
}

/// A daily line that began before the time that is asked for again.
#[test]
fn a_line_that_reaches_out_of_its_window_is_there_once() {
    let mut ledger = Ledger::in_memory().unwrap();
    enter(&mut ledger, spans(vec![observed("a", "01:00", "11:00")]));
    let day = |amount| billed("a", at("00:00"), at("12:00"), amount);
    import(&mut ledger, at("00:00"), at("12:00"), &[day("9")]);
    import(&mut ledger, at("06:00"), at("12:00"), &[]);
    assert_eq!(money(total(&mut ledger, november()).total()), "9", "it does not begin in that window");
    import(&mut ledger, at("06:00"), at("12:00"), &[day("10")]);
    assert_eq!(money(total(&mut ledger, november()).total()), "10");
}

#[test]
fn what_comes_late_for_a_time_that_was_billed_is_replaced() {
    let mut ledger = Ledger::in_memory().unwrap();
    import(&mut ledger, at("08:00"), at("10:00"), &[billed("a", at("08:00"), at("10:00"), "3")]);
    enter(&mut ledger, spans(vec![observed("a", "09:00", "11:00")]));
    let sums = total(&mut ledger, november());
    assert_eq!([sums.billed, sums.observed, sums.replaced].map(money), ["3", "2", "2"]);
}

/// COST-02: the laptop sleeps for 15 hours, the instance stopped itself after 42 minutes of them.
#[test]
fn an_assumption_gives_way_to_the_providers_silence_and_a_sight_does_not() {
    let mut ledger = Ledger::in_memory().unwrap();
    let asleep = at("01:00");
    enter(
        &mut ledger,
        spans(vec![
            span("a", at("00:00"), asleep, "2", Evidence::Observed),
            span("a", asleep, asleep + hours(15), "2", Evidence::Assumed),
            // Not billed line by line as far as anybody knows.
            span("b", asleep, asleep + hours(15), "1", Evidence::Assumed),
        ]),
    );
    let lines = [
        billed("a", at("00:00"), at("01:00"), "2"),
        // Billed up to 01:42.
        billed("a", at("01:00"), at("02:00"), "1.4"),
    ];
    import(&mut ledger, at("00:00"), at("12:00"), &lines);
    let sums = total(&mut ledger, november());
    // Of the last four hours nobody said anything yet.
    assert_eq!([sums.billed, sums.assumed].map(money), ["3.4", "23"]);
    import(&mut ledger, at("00:00"), at("16:00"), &lines);
    let sums = total(&mut ledger, november());
    assert_eq!([sums.billed, sums.assumed].map(money), ["3.4", "15"]);
    assert_eq!(sums.gpu_ms, (2 + 15) * 2 * HOUR, "the hours that never were have no GPU-hours");
    assert_eq!(entries(&mut ledger, "a").len(), 5);

    // Late records: the provider bills the third hour after all.
    let more = [lines.as_slice(), &[billed("a", at("02:00"), at("03:00"), "2")]].concat();
    import(&mut ledger, at("00:00"), at("16:00"), &more);
    assert_eq!(money(total(&mut ledger, november()).billed), "5.4");

    let mut seen = Ledger::in_memory().unwrap();
    enter(&mut seen, spans(vec![observed("a", "00:00", "16:00")]));
    import(&mut seen, at("00:00"), at("16:00"), &lines);
    assert_eq!(money(total(&mut seen, november()).total()), "31.4");
}

#[test]
fn billed_lines_of_unknown_resources_and_of_products_stand_by_their_own_names() {
    let mut ledger = Ledger::in_memory().unwrap();
    let serverless = BilledLine {
        resource: None,
        product: "Serverless".to_owned(),
        component: Component::Other,
        ..billed("", at("09:00"), at("10:00"), "0.25")
    };
    import(&mut ledger, at("09:00"), at("10:00"), &[billed("x", at("09:00"), at("10:00"), "1"), serverless]);
    let named = cells(&mut ledger, Question::Resources(november()));
    let named: Vec<_> = named.into_iter().map(|cell| (cell.billable.unwrap(), money(cell.amount))).collect();
    let unknown = Billable::Resource { identity: pod("x"), name: Some("x".to_owned()) };
    assert_eq!(named, [(unknown, "1".to_owned()), (Billable::Product("Serverless".to_owned()), "0.25".to_owned())]);
    let product = Billable::Product("Serverless".to_owned());
    let question = Question::Entries { account: "team".into(), billable: product, period: november() };
    assert_eq!(ledger.answer(&question).unwrap().entries.len(), 1);
    let since = ledger.answer(&Question::Days(november())).unwrap().since;
    assert_eq!(since, [("team".into(), at("09:00"))]);
}

/// An id that the provider gave to another machine: each line goes to the one that was there.
#[test]
fn a_billed_line_goes_to_the_rental_of_its_time() {
    let mut ledger = Ledger::in_memory().unwrap();
    let mut second = known_instance("a");
    (second.identity.generation, second.first_seen) = (1, at("10:00"));
    ledger.keep(&keep(vec![known_instance("a"), second])).unwrap();
    let line = |from: &str, to: &str| billed("a", at(from), at(to), "1");
    import(
        &mut ledger,
        at("02:00"),
        at("12:00"),
        &[line("02:00", "03:00"), line("09:00", "10:00"), line("11:00", "12:00")],
    );
    let found = cells(&mut ledger, Question::Resources(november()));
    let found: Vec<_> = found
        .into_iter()
        .map(|cell| match cell.billable.unwrap() {
            Billable::Resource { identity, .. } => (identity.generation, money(cell.amount)),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(found, [(0, "2".to_owned()), (1, "1".to_owned())]);
}

#[test]
fn a_billed_line_belongs_to_whom_our_own_spans_name_and_goes_with_them() {
    let mut ledger = Ledger::in_memory().unwrap();
    let of = |project: &str, from: &str, to: &str| Span { terms: compute(Some(project)), ..observed("a", from, to) };
    enter(&mut ledger, spans(vec![of("vision", "08:15", "08:30"), of("speech", "08:30", "09:00")]));
    import(&mut ledger, at("08:00"), at("10:00"), &[billed("a", at("08:00"), at("09:00"), "2")]);
    let expected = [
        "30 08:00-30 08:30 billed 1 vision",
        "30 08:15-30 08:30 observed 0.5 vision replaced",
        "30 08:30-30 09:00 billed 1 speech",
        "30 08:30-30 09:00 observed 1 speech replaced",
    ];
    assert_eq!(entries(&mut ledger, "a"), expected);
    assign(&mut ledger, "a", Some(at("08:45")), Some("audio"));
    let expected = [
        "30 08:00-30 08:30 billed 1 vision",
        "30 08:15-30 08:30 observed 0.5 vision replaced",
        "30 08:30-30 08:45 billed 0.5 speech",
        "30 08:30-30 08:45 observed 0.5 speech replaced",
        "30 08:45-30 09:00 billed 0.5 audio",
        "30 08:45-30 09:00 observed 0.5 audio replaced",
    ];
    assert_eq!(entries(&mut ledger, "a"), expected);
    let assigned = rows(&ledger);
    import(&mut ledger, at("08:00"), at("10:00"), &[billed("a", at("08:00"), at("09:00"), "2")]);
    assert_eq!(rows(&ledger), assigned);
    assign(&mut ledger, "a", None, None);
    assert_eq!(entries(&mut ledger, "a").iter().filter(|line| line.contains(" observed ")).count(), 1);
}

#[test]
fn what_is_open_is_assigned_from_its_time_on() {
    let mut ledger = Ledger::in_memory().unwrap();
    let line = OpenLine { terms: compute(Some("vision")), rate: usd("2"), from: at("08:00"), run_from: at("08:00") };
    let running = Running {
        lines: vec![line],
        seen: None,
        missing: false,
        since: at("08:00"),
        state: State { running: true, started_at: None, granularity: providers::model::Granularity::Exact },
        idle: Default::default(),
    };
    let look = Entries { open: [(pod("a"), Some(running))].into(), ..Entries::default() };
    let account = AccountMemory {
        instances_seen: Some(Horizon { at: at("10:00"), longest_gap: jiff::SignedDuration::from_secs(45) }),
        balance: None,
        ..account()
    };
    ledger.keep(&Keep { account, instances: vec![], storage: vec![], entries: look }).unwrap();
    let open = |ledger: &mut Ledger| {
        let (memory, _) = ledger.recall(at("10:00")).unwrap();
        let [(_, running)] = &memory.running[..] else { panic!("{:?}", memory.running) };
        (running.lines[0].from, running.lines[0].terms.project.as_deref().map(str::to_owned))
    };
    assign(&mut ledger, "a", Some(at("10:30")), Some("late"));
    assert_eq!(open(&mut ledger), (at("08:00"), Some("vision".to_owned())));
    assign(&mut ledger, "a", Some(at("09:00")), Some("speech"));
    assert_eq!(open(&mut ledger), (at("09:00"), Some("speech".to_owned())));
    assert_eq!(entries(&mut ledger, "a"), ["30 08:00-30 09:00 observed 2 vision"]);
    assign(&mut ledger, "a", None, None);
    assert_eq!(open(&mut ledger), (at("09:00"), None));
}

/// A currency of small units: a bill of a million million of them is kept to its smallest part.
#[test]
fn sums_of_a_million_million_are_exact() {
    let mut ledger = Ledger::in_memory().unwrap();
    let won = Currency::parse("KRW").unwrap();
    let line = |id: &str, component| BilledLine {
        component,
        amount: Money::new("333333333333.333333333333".parse().unwrap(), won),
        ..billed(id, at("08:00") - hours(30), at("09:00"), "0")
    };
    let lines = ["a", "b"].map(|id| [line(id, Component::Compute), line(id, Component::Disk)]).concat();
    for _ in 0..2 {
        import(&mut ledger, at("00:00") - hours(48), at("09:00"), &lines);
    }
    for question in [Question::Days(november()), Question::Resources(november())] {
        let total: Exact = cells(&mut ledger, question).iter().map(|cell| cell.amount).sum();
        assert_eq!(money(total), "1333333333333.333333333332");
    }
    import(&mut ledger, at("00:00") - hours(48), at("09:00"), &lines[..1]);
    let summed = ledger.sum_up(date("2026-11-30")).unwrap();
    assert_eq!(money(summed.month.of(won).total()), "333333333333.333333333333");
}

fn read_balance(ledger: &mut Ledger, at: Timestamp, cash: &str) {
    let money = |amount: &str| Money::new(amount.parse().unwrap(), Currency::USD);
    let value = Balance { cash: money(cash), voucher: Some(money("5")), provider_burn: None };
    let account = AccountMemory { balance: Some(AsOf { value, as_of: at }), ..account() };
    ledger.keep(&Keep { account, instances: vec![], storage: vec![], entries: Entries::default() }).unwrap();
}

#[test]
fn balances_tell_what_was_paid_in_and_what_left() {
    let mut ledger = Ledger::in_memory().unwrap();
    enter(&mut ledger, spans(vec![span("a", at("00:00") - hours(30), at("09:00"), "2", Evidence::Observed)]));
    // Every minute for two days, with two payments at odd moments.
    let start = at("00:00") - hours(24);
    let mut cash = Decimal::from(100);
    for minute in 0..1440 + 600 {
        let now = start + jiff::SignedDuration::from_mins(minute);
        if now < at("09:00") {
            cash -= Decimal::new(4, 2);
        }
        if [777, 1501].contains(&minute) {
            cash += Decimal::from(50);
        }
        read_balance(&mut ledger, now, &cash.to_string());
        read_balance(&mut ledger, now, &cash.to_string());
    }
    let kept: i64 = ledger.main.query_row("SELECT COUNT(*) FROM balance", [], |row| row.get(0)).unwrap();
    assert!(kept < 45, "{kept}");
    let balances = ledger.answer(&Question::Balances(november())).unwrap().balances;
    let [change] = &balances[..] else { panic!("{balances:?}") };
    assert_eq!((change.from, change.to), (start, at("09:59")));
    // A rise is told less the minute that passed with it.
    assert_eq!(change.paid_in.amount.to_string(), "99.92");
    assert_eq!(money(change.charged), "66");
    assert_eq!(change.vouchers.map(|(first, _)| first.amount.to_string()).as_deref(), Some("5"));
    assert_eq!(money(change.unexplained()), "13.08");
    let day = ledger.answer(&Question::Balances(Period::day(date("2026-11-29")))).unwrap().balances;
    assert_eq!((day[0].from, day[0].paid_in.amount.to_string().as_str()), (start, "49.96"));
}

#[test]
fn accounts_that_are_known_to_be_unwatched_are_so_until_they_are_kept_again() {
    let mut ledger = Ledger::in_memory().unwrap();
    ledger.keep(&keep(vec![])).unwrap();
    let noted = |ledger: &mut Ledger| ledger.recall(at("10:00")).unwrap().0.accounts[0].unwatched_noted;
    assert!(!noted(&mut ledger));
    ledger.note_unwatched(&["team".into(), "unknown".into()]).unwrap();
    assert!(noted(&mut ledger));
    ledger.keep(&keep(vec![])).unwrap();
    assert!(!noted(&mut ledger));
}

#[rstest]
#[case("Asia/Shanghai")]
#[case("America/New_York")]
#[case("Australia/Lord_Howe")]
fn in_another_zone_the_books_are_added_up_anew_piece_by_piece(#[case] zone: &str) {
    let mut ledger = Ledger::in_memory().unwrap();
    let start = at("00:00") - hours(24 * 11);
    let id = |n: i64| format!("pod-{}", n % 40);
    let many = (0..1200).map(|n| {
        let from = start + hours(n / 40);
        span(&id(n), from, from + hours(1), &format!("{}", n / 40 % 2 + 1), Evidence::Observed)
    });
    enter(&mut ledger, spans(many.collect()));
    import(&mut ledger, start, start + hours(2), &[billed("x", start, start + hours(2), "1")]);
    ledger.use_zone(TimeZone::get(zone).unwrap()).unwrap();
    // Right at once, though slow.
    let before = total(&mut ledger, november());
    let day = Question::Days(Period::day(date("2026-11-20")));
    let (of_day, summed) = (sums(&cells(&mut ledger, day.clone())), ledger.sum_up(date("2026-11-20")).unwrap());

    assert!(ledger.add_up_more().unwrap());
    assert!(ledger.is_unfinished().unwrap());
    let answer = ledger.answer(&Question::Days(november())).unwrap();
    assert!(answer.unfinished && sums(&answer.cells).total() < before.total());
    assert_eq!(sums(&ledger.answer(&Question::Resources(november())).unwrap().cells), before);
    // What is written meanwhile, to what is added up and to what is not, is there in the end.
    let late = |id: &str| span(id, start - hours(1), start, "7", Evidence::Inferred);
    for id in ["pod-0", "pod-39", "new"] {
        let entries = spans(vec![late(id)]);
        let account = AccountMemory { balance: None, ..account() };
        ledger.keep(&Keep { account, instances: vec![], storage: vec![], entries }).unwrap();
    }
    while ledger.add_up_more().unwrap() {}
    check(&ledger);
    assert!(!ledger.is_unfinished().unwrap());
    let after = total(&mut ledger, Period { from: date("2026-10-01"), to: date("2026-12-01") });
    let all = total(&mut ledger, Period { from: date("2020-01-01"), to: date("2030-01-01") });
    assert_eq!(after, all);
    assert_eq!(sums(&cells(&mut ledger, day)), of_day);
    assert_eq!(ledger.sum_up(date("2026-11-20")).unwrap().today, summed.today);
}

/// A process in another zone beside the one that collects: both tell their own days rightly.
#[test]
fn two_zones_on_one_file_leave_each_other_alone() {
    let dir = folder();
    let (mut ours, mut theirs) = (open(&dir), open(&dir));
    theirs.use_zone(TimeZone::get("Asia/Shanghai").unwrap()).unwrap();
    let late = observed("a", "15:00", "20:00");
    enter(&mut ours, spans(vec![late.clone()]));
    let account = AccountMemory { balance: None, ..account() };
    let entries = spans(vec![late, observed("b", "15:00", "20:00")]);
    theirs.keep(&Keep { account, instances: vec![], storage: vec![], entries }).unwrap();
    check(&ours);
    assert_eq!(money(total(&mut ours, november()).total()), "20");
    assert_eq!(money(total(&mut theirs, november()).total()), "4");
    assert_eq!(money(total(&mut theirs, Period::month(date("2026-12-01"))).total()), "16");
}

/// Written in one piece: whoever is killed in between asks for the same time again.
#[test]
fn how_far_it_was_billed_is_known_by_the_lines_themselves() {
    let dir = folder();
    let mut ledger = open(&dir);
    enter(&mut ledger, Entries::default());
    assert!(ledger.recall(at("12:00")).unwrap().0.billed_to.is_empty());
    import(&mut ledger, at("09:00"), at("11:00"), &[billed("a", at("09:00"), at("10:00"), "2")]);
    import(&mut ledger, at("08:00"), at("10:00"), &[]);
    drop(ledger);
    let billed_to = open(&dir).recall(at("12:00")).unwrap().0.billed_to;
    assert_eq!(billed_to, [("team".into(), at("11:00"))].into());
}

/// A line from beyond the time that was asked for, the future for instance, is there once, however often it comes.
#[test]
fn a_line_beyond_what_was_asked_for_is_not_added_again() {
    let mut ledger = Ledger::in_memory().unwrap();
    for _ in 0..3 {
        import(&mut ledger, at("09:00"), at("10:00"), &[billed("a", at("12:00"), at("13:00"), "2")]);
    }
    assert_eq!(money(total(&mut ledger, november()).billed), "2");
}

/// Where a unit of money is worth little, a fleet's month is many millions of them.
#[test]
fn a_month_in_small_money_is_kept_to_the_last_place() {
    let mut ledger = Ledger::in_memory().unwrap();
    let won = Currency::parse("KRW").unwrap();
    let lines: Vec<BilledLine> = ["a", "b", "c", "d"]
        .map(|id| BilledLine {
            amount: Money::new("999999999.000000000001".parse().unwrap(), won),
            ..billed(id, at("09:00"), at("10:00"), "0")
        })
        .into();
    for _ in 0..2 {
        import(&mut ledger, at("09:00"), at("10:00"), &lines);
    }
    let mut sums = Sums::default();
    cells(&mut ledger, Question::Days(november())).iter().for_each(|cell| sums.add_cell(cell));
    assert_eq!(money(sums.of(won).billed), "3999999996.000000000004");
}

/// Two dollars an hour, the first hour of it billed as three.
fn billed_in_part() -> Ledger {
    let mut ledger = Ledger::in_memory().unwrap();
    enter(&mut ledger, spans(vec![observed("a", "08:00", "10:00")]));
    import(&mut ledger, at("08:00"), at("09:00"), &[billed("a", at("08:00"), at("09:00"), "3")]);
    ledger
}

#[rstest]
#[case::of_what_is_not_billed("09:15", Some("09:45"), "1")]
#[case::from_the_billed_hour_on("08:30", None, "3.5")]
#[case::within_the_billed_hour("08:20", Some("08:40"), "1")]
#[case::all("08:00", None, "5")]
#[case::after_all("10:00", None, "0")]
fn what_was_idle_is_marked_in_what_was_billed_too(
    #[case] from: &str,
    #[case] to: Option<&str>,
    #[case] expected: &str,
) {
    let mut ledger = billed_in_part();
    let (before, there) = (total(&mut ledger, november()), rows(&ledger));
    mark(&mut ledger, "a", at(from), to.map(at), true);
    let marked = total(&mut ledger, november());
    assert_eq!((money(marked.wasted), marked.total()), (expected.to_owned(), before.total()));
    mark(&mut ledger, "a", at(from), to.map(at), true);
    assert_eq!(total(&mut ledger, november()), marked, "twice is once");
    // What is billed anew of that time keeps the mark.
    import(&mut ledger, at("08:00"), at("09:00"), &[billed("a", at("08:00"), at("09:00"), "3")]);
    assert_eq!(total(&mut ledger, november()), marked);
    mark(&mut ledger, "a", at(from), to.map(at), false);
    assert_eq!(total(&mut ledger, november()), before);
    import(&mut ledger, at("08:00"), at("09:00"), &[billed("a", at("08:00"), at("09:00"), "3")]);
    assert_eq!(rows(&ledger), there);
}

#[test]
fn what_is_charged_at_the_end_of_an_idle_time_is_waste_and_at_its_beginning_it_is_not() {
    for (from, to, expected) in [("09:00", "10:00", "0.5"), ("10:00", "11:00", "0")] {
        let mut ledger = Ledger::in_memory().unwrap();
        let lump = Lump {
            identity: pod("a"),
            terms: compute(None),
            at: at("10:00"),
            amount: Exact::of("0.5".parse().unwrap()),
            currency: Currency::USD,
            evidence: Evidence::Observed,
        };
        enter(&mut ledger, Entries { lumps: vec![lump], ..Entries::default() });
        mark(&mut ledger, "a", at(from), Some(at(to)), true);
        assert_eq!(money(total(&mut ledger, november()).wasted), expected);
    }
}

#[test]
fn of_what_the_books_do_not_know_nothing_is_marked() {
    let mut ledger = billed_in_part();
    let before = rows(&ledger);
    mark(&mut ledger, "b", at("08:00"), None, true);
    assert_eq!(rows(&ledger), before);
}
