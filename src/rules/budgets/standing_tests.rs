use std::borrow::Cow;

use jiff::tz::TimeZone;
use proptest::prelude::*;
use providers::model::Component;
use rstest::rstest;

use super::*;
use crate::rules::budgets::{Cycle, Unit};
use crate::rules::samples::{at, budget, identity, usd};
use crate::rules::spend::{Amounts, Charge, Evidence, Fx};

fn dec(text: &str) -> Decimal {
    text.parse().unwrap()
}

fn day(text: &str) -> Date {
    text.parse().unwrap()
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn terms(charge: Charge, gpus: u32) -> Terms {
    Terms { component: Component::Compute, charge, wasted: false, project: None, gpus }
}

fn sums(of: &[(Currency, &str)]) -> Sums {
    let amounts = |amount: &str| Amounts { observed: Exact::of(dec(amount)), ..Amounts::default() };
    Sums(of.iter().map(|(currency, amount)| (*currency, amounts(amount))).collect())
}

/// All that a standing is made from.
struct Given {
    budget: Budget,
    days: BTreeMap<Date, Sums>,
    asked: Timestamp,
    spans: Vec<(Terms, Rate, Timestamp, Timestamp)>,
    lumps: Vec<Lump>,
    running: Vec<(&'static str, Terms, Rate, Option<Timestamp>)>,
    exchange: Exchange,
}

fn given(limit: &str, cycle: Cycle) -> Given {
    Given {
        budget: budget("all", limit, cycle),
        days: BTreeMap::new(),
        asked: at("00:00:00"),
        spans: Vec::new(),
        lumps: Vec::new(),
        running: Vec::new(),
        exchange: Exchange::default(),
    }
}

impl Given {
    fn closed(mut self, date: &str, amount: &str) -> Self {
        self.days.insert(day(date), sums(&[(Currency::USD, amount)]));
        self
    }

    fn spent(self, hourly: &str, from: Timestamp, to: Timestamp) -> Self {
        self.counted(terms(Charge::Certain, 1), usd(hourly), from, to)
    }

    fn counted(mut self, terms: Terms, rate: Rate, from: Timestamp, to: Timestamp) -> Self {
        self.spans.push((terms, rate, from, to));
        self
    }

    fn lump(mut self, amount: &str, at: Timestamp) -> Self {
        let (identity, terms, amount) = (identity("team", "a"), terms(Charge::Certain, 1), Exact::of(dec(amount)));
        self.lumps.push(Lump { identity, terms, at, amount, currency: Currency::USD, evidence: Evidence::Observed });
        self
    }

    fn runs(mut self, id: &'static str, hourly: &str, ends_at: Option<Timestamp>) -> Self {
        self.running.push((id, terms(Charge::Certain, 1), usd(hourly), ends_at));
        self
    }

    fn stands(&self, now: Timestamp) -> Standing {
        let from = self.budget.term(now).from;
        let drawn =
            Drawn { name: "all".to_owned(), from, as_of: self.asked, days: self.days.clone(), ..Drawn::default() };
        let own = identity("team", "a");
        let part = |(terms, rate, from, to): &(Terms, Rate, Timestamp, Timestamp)| Part {
            identity: &own,
            terms: Cow::Owned(terms.clone()),
            rate: *rate,
            from: *from,
            to: *to,
            evidence: Evidence::Observed,
        };
        let names: Vec<Identity> = self.running.iter().map(|(id, ..)| identity("team", id)).collect();
        let running = self.running.iter().zip(&names);
        let running = running.map(|((_, terms, rate, ends_at), identity)| Running {
            identity,
            terms,
            rate: *rate,
            ends_at: *ends_at,
        });
        let inputs = Inputs {
            drawn: Some(&drawn),
            beyond: self.spans.iter().map(part).collect(),
            lumps: self.lumps.iter().collect(),
            running: running.collect(),
            exchange: &self.exchange,
            before: None,
        };
        standing(&self.budget, &inputs, now).expect("the books answered")
    }
}

/// BUD-05: what was crossed while nobody looked is told to the second.
#[test]
fn the_moment_of_a_crossing_in_the_past_is_known() {
    let began = time("2026-11-29T22:00:00Z");
    let now = at("09:00:05");
    let standing = given("20", Cycle::Month).closed("2026-11-29", "12").spent("2.5", began, now).stands(now);
    assert!((standing.spent - dec("39.5")).abs() <= dec("0.02"), "{}", standing.spent);
    assert_eq!(standing.crossed_at(100), Some(at("01:12:00")));
    assert_eq!(standing.reaches, standing.crossed_at(100));
    assert_eq!(standing.crossed_at(80), None, "of what was closed on that evening only the day is known");
    assert_eq!(standing.percent(dec("20")), 197);
    assert_eq!(standing.by_day.last(), Some(&(day("2026-11-30"), standing.spent)));
}

/// BUD-07.
#[test]
fn a_limit_ahead_is_reached_when_the_burn_gets_there() {
    let now = at("08:00:00");
    let spent = given("20", Cycle::Day).closed("2026-11-30", "12");
    let standing = spent.stands(now);
    assert_eq!((standing.burn, standing.forecast, standing.reaches), (Decimal::ZERO, None, None));
    let standing = spent.runs("a", "2.5", None).stands(now);
    assert_eq!(standing.reaches.map(|at| at.duration_since(now).as_secs()), Some(11_520));
    assert_eq!((standing.forecast, standing.committed), (Some(dec("52")), Some(dec("52"))));
    assert_eq!(standing.left_running, [(identity("team", "a"), dec("40"))]);
    assert_eq!((standing.crossed.len(), standing.estimated), (1, dec("12")));
    assert_eq!(standing.at(at("09:00:00")), dec("14.5"));
    assert_eq!(standing.at(at("09:00:00") + SignedDuration::from_hours(48)), dec("52"), "no further than the term");
}

#[rstest]
#[case::in_time(Some("12:00:00"), "22", "52", Some("11:12:00"))]
#[case::too_early_to_reach_it(Some("10:00:00"), "17", "52", None)]
#[case::it_should_have_ended(Some("07:00:00"), "52", "52", Some("11:12:00"))]
#[case::beyond_the_term(None, "52", "52", Some("11:12:00"))]
fn what_ends_by_itself_costs_no_longer(
    #[case] ends: Option<&str>,
    #[case] forecast: &str,
    #[case] committed: &str,
    #[case] reaches: Option<&str>,
) {
    let ends = ends.map_or(at("08:00:00") + SignedDuration::from_hours(100), at);
    let spent = given("20", Cycle::Day).closed("2026-11-30", "12").runs("a", "2.5", Some(ends));
    let standing = spent.stands(at("08:00:00"));
    assert_eq!((standing.forecast, standing.committed), (Some(dec(forecast)), Some(dec(committed))));
    assert_eq!(standing.reaches, reaches.map(at));
}

/// Of what is closed only the day is known: a moment within such a day is told only where nothing closed can move it.
#[rstest]
#[case::before_the_day("2026-11-29", "00:00:00", Some("04:00:00"))]
#[case::on_that_day("2026-11-30", "08:00:00", None)]
#[case::after_the_books_were_asked("2026-11-30", "03:00:00", Some("04:00:00"))]
fn a_moment_is_told_only_where_it_is_known(#[case] closed: &str, #[case] asked: &str, #[case] expected: Option<&str>) {
    let mut given = given("10", Cycle::Month).closed(closed, "6").spent("1", at("00:00:00"), at("08:00:00"));
    given.asked = at(asked);
    let standing = given.stands(at("08:00:00"));
    assert_eq!((standing.spent, standing.crossed_at(100)), (dec("14"), expected.map(at)));
}

#[test]
fn closed_days_alone_tell_no_moment() {
    let standing = given("10", Cycle::Month).closed("2026-11-12", "25").stands(at("08:00:00"));
    assert_eq!(standing.crossed, [(50, None), (80, None), (100, None)]);
    assert_eq!(standing.reaches, None);
}

#[test]
fn a_charge_of_one_moment_crosses_a_line_in_it_and_belongs_to_the_term_that_it_begins() {
    let lump = |clock| given("10", Cycle::Day).lump("4", at("01:00:00")).lump("8", clock).stands(at("08:00:00"));
    assert_eq!(lump(at("02:00:00")).crossed_at(100), Some(at("02:00:00")));
    assert_eq!(lump(at("00:00:00")).crossed_at(100), Some(at("01:00:00")));
    assert_eq!(lump(at("00:00:00") + SignedDuration::from_hours(24)).spent, dec("4"));
}

#[test]
fn only_what_is_charged_for_certain_counts_as_money() {
    let (from, to) = (at("00:00:00"), at("04:00:00"));
    let mut given = given("10", Cycle::Day);
    for charge in Charge::ALL {
        given = given.counted(terms(charge, 2), usd("1"), from, to);
    }
    let amounts = Amounts {
        billed: Exact::of(dec("3")),
        replaced: Exact::of(dec("100")),
        possible: Exact::of(dec("100")),
        prepaid: Exact::of(dec("100")),
        gpu_ms: 3_600_000,
        ..Amounts::default()
    };
    given.days.insert(day("2026-11-30"), Sums([(Currency::USD, amounts)].into()));
    given.running = vec![
        ("a", terms(Charge::Certain, 2), usd("1"), None),
        ("b", terms(Charge::Possible, 4), usd("1"), None),
        ("c", terms(Charge::Prepaid, 8), usd("1"), None),
    ];
    let standing = given.stands(to);
    assert_eq!((standing.spent, standing.estimated, standing.burn), (dec("7"), dec("4"), dec("1")));
    given.budget.limit.unit = Unit::GpuHours;
    let standing = given.stands(to);
    assert_eq!((standing.spent, standing.estimated, standing.burn), (dec("17"), dec("17"), dec("10")));
    assert_eq!(standing.crossed_at(50), Some(at("01:00:00")), "an hour was closed before");
}

#[test]
fn currencies_join_by_the_users_rates_and_what_has_none_stands_apart() {
    let mut given = given("14.4", Cycle::Day).closed("2026-11-29", "0").runs("a", "1", None);
    given.budget.limit.unit = Unit::Money(Currency::CNY);
    given.exchange.rates.insert(Currency::CNY, Fx { usd: dec("0.125"), as_of: day("2026-11-29") });
    let yuan = Rate::per_hour(dec("1"), Currency::CNY).unwrap();
    let euro = Rate::per_hour(dec("1"), Currency::EUR).unwrap();
    for rate in [usd("0.1"), yuan, euro] {
        given = given.counted(terms(Charge::Certain, 1), rate, at("00:00:00"), at("10:00:00"));
    }
    let standing = given.stands(at("10:00:00"));
    assert_eq!((standing.spent, standing.burn), (dec("18"), dec("8")));
    assert_eq!(standing.apart, [(Currency::EUR, dec("10"))]);
    assert_eq!(standing.crossed_at(100), Some(at("08:00:00")));
}

#[test]
fn days_from_one_date_to_another_are_one_term_before_in_and_after_them() {
    let period = Period { from: day("2026-12-03"), to: day("2026-12-05") };
    let given = given("100", Cycle::Dates(period)).spent("1", at("00:00:00"), at("08:00:00")).runs("a", "1", None);
    let before = given.stands(at("08:00:00"));
    assert_eq!((before.spent, before.forecast), (Decimal::ZERO, Some(dec("48"))));
    assert_eq!((before.by_day.len(), before.at(at("20:00:00"))), (0, Decimal::ZERO));
    let last = time("2026-12-04T23:00:00Z");
    let within = given.spent("2", time("2026-12-03T00:00:00Z"), last);
    assert_eq!(within.stands(last).forecast, Some(dec("95")));
    let after = within.stands(time("2026-12-09T00:00:00Z"));
    assert_eq!((after.spent, after.forecast, after.reaches), (dec("94"), None, None));
    assert_eq!(after.by_day, [(day("2026-12-03"), dec("48")), (day("2026-12-04"), dec("94"))]);
}

#[test]
fn all_time_has_no_forecast_and_reaches_its_limit_all_the_same() {
    let given = given("100", Cycle::Total).closed("2025-01-01", "90").runs("a", "1", None);
    let standing = given.stands(at("08:00:00"));
    assert_eq!((standing.forecast, standing.committed), (None, None));
    assert_eq!(standing.reaches, Some(at("18:00:00")));
    assert_eq!((standing.by_day.len(), standing.by_day[0]), (699, (day("2025-01-01"), dec("90"))));
}

#[test]
fn days_are_those_of_the_budgets_own_zone() {
    let mut given = given("100", Cycle::Month);
    given.budget.zone = TimeZone::get("America/New_York").unwrap();
    // Midnight there is 04:00Z before the clocks change on 1 November, and 05:00Z after.
    let now = time("2026-11-03T06:00:00Z");
    let given = given.spent("1", time("2026-10-31T00:00:00Z"), now);
    let expected = [("2026-11-01", "25"), ("2026-11-02", "49"), ("2026-11-03", "50")];
    assert_eq!(given.stands(now).by_day, expected.map(|(date, sum)| (day(date), dec(sum))));
}

#[test]
fn without_an_answer_about_the_present_term_nobody_knows() {
    let budget = budget("all", "10", Cycle::Day);
    let exchange = Exchange::default();
    let of = |drawn: Option<&Drawn>| {
        let inputs =
            Inputs { drawn, beyond: vec![], lumps: vec![], running: vec![], exchange: &exchange, before: None };
        standing(&budget, &inputs, at("08:00:00")).is_some()
    };
    let drawn = |name: &str, from| Drawn { name: name.to_owned(), from, ..Drawn::default() };
    assert!(of(Some(&drawn("all", at("00:00:00")))));
    assert!(!of(None));
    assert!(!of(Some(&drawn("other", at("00:00:00")))));
    assert!(!of(Some(&drawn("all", at("00:00:00") - SignedDuration::from_hours(24)))));
}

#[rstest]
#[case("0", "1", u32::MAX)]
#[case("0", "0", 0)]
#[case("3", "2", 66)]
#[case("0.0000000000000000000000000001", "79228162514264337593543950335", u32::MAX)]
#[case("5", "-3", 0)]
fn a_share_is_rounded_down_and_never_fails(#[case] limit: &str, #[case] of: &str, #[case] expected: u32) {
    assert_eq!(share(dec(of), dec(limit)), expected);
}

/// What cannot be is told somehow, and breaks nothing.
#[test]
fn no_amount_is_too_large_and_no_time_too_long() {
    let most = Rate::from_picos(i64::MAX, Currency::USD);
    for limit in [Decimal::MAX, Decimal::MIN, Decimal::ZERO] {
        for cycle in [Cycle::Total, Cycle::Dates(Period { from: Date::MIN, to: Date::MAX })] {
            for unit in [Unit::Money(Currency::USD), Unit::Money(Currency::CNY), Unit::GpuHours] {
                let mut given =
                    given("1", cycle).counted(terms(Charge::Certain, u32::MAX), most, Timestamp::MIN, Timestamp::MAX);
                given.budget.limit = crate::rules::budgets::Quantity::new(limit, unit);
                given
                    .exchange
                    .rates
                    .insert(Currency::CNY, Fx { usd: dec("0.0000000000000000000000000001"), as_of: Date::MIN });
                given.running = vec![("a", terms(Charge::Certain, u32::MAX), most, Some(Timestamp::MAX)); 3];
                let standing = given.stands(at("08:00:00"));
                standing.at(Timestamp::MAX);
                standing.percent(limit);
            }
        }
    }
}

proptest! {
    /// The sum is that of its parts, and at each moment that is told of a line it was just reached.
    #[test]
    fn a_line_is_crossed_when_the_sum_reaches_it(
        parts in prop::collection::vec((0..20_000_000i64, 1..20_000_000i64, 1..9_000_000i64), 1..8),
        lumps in prop::collection::vec((0..20_000_000i64, 1..5_000_000i64), 0..4),
        limit in 1..60i64,
    ) {
        let start = at("00:00:00").as_millisecond();
        let moment = |ms: i64| Timestamp::from_millisecond(start + ms).unwrap();
        let mut given = given(&limit.to_string(), Cycle::Day);
        for (from, length, micros) in &parts {
            let rate = Rate::from_picos(micros * 1_000_000, Currency::USD);
            given = given.counted(terms(Charge::Certain, 1), rate, moment(*from), moment(from + length));
        }
        for (at, micros) in &lumps {
            given = given.lump(&Decimal::new(*micros, 6).to_string(), moment(*at));
        }
        // In 1e-12 an hour times milliseconds.
        let sum = |to: i64| -> i128 {
            let parts = parts.iter().map(|(from, length, micros)| {
                i128::from((to.min(from + length) - from).max(0)) * i128::from(*micros) * 1_000_000
            });
            let lumps = lumps.iter().filter(|(at, _)| *at <= to);
            parts.sum::<i128>() + lumps.map(|(_, micros)| i128::from(*micros) * 1_000_000 * 3_600_000).sum::<i128>()
        };
        let standing = given.stands(moment(40_000_000));
        prop_assert_eq!(standing.spent, (Decimal::from(sum(40_000_000)) / dec("3600000000000000000")).round_dp(12).normalize());
        for percent in [50, 80, 100] {
            let line = i128::from(limit) * i128::from(percent) * 10_000_000_000 * 3_600_000;
            let crossed = standing.crossed_at(percent).map(|at| at.as_millisecond() - start);
            prop_assert_eq!(crossed.is_some(), sum(40_000_000) >= line);
            if let Some(at) = crossed {
                prop_assert!(sum(at - 1) < line && line <= sum(at), "{} at {}", percent, at);
            }
        }
    }
}
