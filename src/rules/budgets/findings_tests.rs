use std::collections::BTreeMap;

use jiff::Timestamp;
use providers::model::Component;
use providers::money::Currency;
use rstest::rstest;

use super::*;
use crate::rules::alerts::{Alert, Stage, Told, Topic};
use crate::rules::budgets::{Cycle, Drawn, Inputs, Running, Scope, standing};
use crate::rules::matcher::Glob;
use crate::rules::samples::{at, budget, identity, usd};
use crate::rules::spend::{Amounts, Charge, Exact, Exchange, Sums, Terms, date_of};

fn dec(text: &str) -> Decimal {
    text.parse().unwrap()
}

/// A budget, and the alerts about it.
struct Desk {
    budget: Budget,
    alerts: Alerts,
    burn: &'static str,
    now: Timestamp,
    /// All that was written down.
    kept: BTreeMap<(Topic, Timestamp), Alert>,
}

impl Desk {
    fn new(limit: &str, thresholds: &[u32]) -> Self {
        let thresholds = thresholds.to_vec();
        let budget = Budget { thresholds, forecast: None, ..budget("all", limit, Cycle::Month) };
        Desk { budget, alerts: Alerts::default(), burn: "0", now: at("00:00:00"), kept: BTreeMap::new() }
    }

    fn stands(&self, spent: &str) -> Standing {
        let sums = Amounts { observed: Exact::of(dec(spent)), ..Amounts::default() };
        let day = (date_of(self.now, &self.budget.zone), Sums([(Currency::USD, sums)].into()));
        let from = self.budget.term(self.now).from;
        let drawn = Drawn { name: "all".to_owned(), from, as_of: self.now, days: [day].into(), ..Drawn::default() };
        let (own, exchange) = (identity("team", "a"), Exchange::default());
        let terms =
            Terms { component: Component::Compute, charge: Charge::Certain, wasted: false, project: None, gpus: 1 };
        let running = Running { identity: &own, terms: &terms, rate: usd(self.burn), ends_at: None };
        let inputs = Inputs {
            drawn: Some(&drawn),
            beyond: vec![],
            lumps: vec![],
            running: vec![running],
            exchange: &exchange,
            before: None,
        };
        standing(&self.budget, &inputs, self.now).unwrap()
    }

    /// Looks once, a minute after the last time. Returns what was told: lines that were crossed, and others in words.
    fn look(&mut self, spent: &str) -> Vec<String> {
        self.now += SignedDuration::from_mins(1);
        let mut found = findings(&self.budget, &self.stands(spent), &self.alerts);
        found.extend(moot(std::slice::from_ref(&self.budget), &self.alerts, &found, self.now));
        let told = self.alerts.take(found, &|_| false, self.now);
        self.kept
            .extend(self.alerts.take_unkept().into_iter().map(|alert| ((alert.topic.clone(), alert.since), alert)));
        let words = |told: &Told| match told {
            Told::Fired(Alert { matter: Matter::Budget { threshold, spent, .. }, .. }) => {
                format!("{threshold} at {}", spent.amount)
            }
            Told::Fired(alert) => alert.topic.kind.word().to_owned(),
            Told::Resolved(alert) => format!("no more {} {}", alert.topic.kind.word(), alert.topic.mark),
        };
        told.iter().map(words).collect()
    }

    fn looks(&mut self, spent: &[&str]) -> Vec<String> {
        spent.iter().flat_map(|spent| self.look(spent)).collect()
    }

    /// The program ends and begins with what was written down.
    fn restart(&mut self) {
        self.alerts = Alerts::default();
        let text = serde_json::to_string(&self.kept.values().collect::<Vec<_>>()).unwrap();
        self.alerts.remember(serde_json::from_str(&text).unwrap());
    }
}

/// BUD-01.
#[test]
fn a_crossing_is_told_once_and_not_at_every_look() {
    let looks = ["19.80", "20.10", "20.40", "20.70", "21.00", "21.30", "21.60", "21.90", "22.20", "22.50"];
    assert_eq!(Desk::new("20", &[100]).looks(&looks), ["100 at 20.1"]);
}

/// BUD-02.
#[test]
fn a_restart_is_no_new_crossing() {
    let mut desk = Desk::new("20", &[80, 100]);
    assert_eq!(desk.looks(&["15.9", "16.1", "20.1"]), ["80 at 16.1", "100 at 20.1"]);
    desk.restart();
    assert!(desk.looks(&["20.5", "20.6"]).is_empty());
}

/// BUD-03.
#[test]
fn a_new_term_arms_the_lines_again() {
    let mut desk = Desk::new("100", &[80]);
    let mut look = |time: &str, spent: &str| {
        desk.now = time.parse().unwrap();
        desk.look(spent)
    };
    assert_eq!(look("2026-11-28T10:00:00Z", "80.5"), ["80 at 80.5"]);
    assert!(look("2026-11-30T23:00:00Z", "95").is_empty());
    assert!(look("2026-12-01T00:10:00Z", "0.1").is_empty(), "that a term is over is no news");
    assert_eq!(look("2026-12-20T10:00:00Z", "80.2"), ["80 at 80.2"]);
}

/// BUD-04.
#[test]
fn back_and_forth_over_a_line_is_one_crossing() {
    let mut desk = Desk::new("100", &[80]);
    assert_eq!(desk.looks(&["79.9", "80.1", "79.8", "80.2", "79.9", "80.3", "75"]), ["80 at 80.1"]);
    assert_eq!(desk.look("74.99"), ["no more budget 2026-11-01 80"], "a correction that large took it back");
    assert_eq!(desk.look("80"), ["80 at 80"], "and whoever heard that hears this");
}

/// BUD-05: one alert at once, with the moment in which it was crossed.
#[test]
fn what_was_crossed_while_nobody_looked_is_told_with_its_moment() {
    let desk = Desk::new("20", &[50, 80, 100]);
    let mut standing = desk.stands("39.5");
    standing.crossed = vec![(50, None), (80, None), (100, Some(at("00:00:00") - SignedDuration::from_hours(8)))];
    let found = findings(&desk.budget, &standing, &desk.alerts);
    let mut alerts = Alerts::default();
    let told = alerts.take(found, &|_| false, desk.now);
    let [Told::Fired(alert)] = &told[..] else { panic!("{told:?}") };
    let Matter::Budget { threshold: 100, crossed_at, .. } = alert.matter else { panic!("{alert:?}") };
    assert_eq!(crossed_at, standing.crossed_at(100));
    // Later the books know the day alone.
    standing.crossed[2].1 = None;
    let found = findings(&desk.budget, &standing, &alerts);
    assert!(alerts.take(found, &|_| false, desk.now).is_empty());
    let Matter::Budget { crossed_at: later, .. } = &alerts.get(&alert.topic).unwrap().matter else { panic!() };
    assert_eq!(*later, crossed_at);
}

#[test]
fn several_lines_crossed_at_once_are_told_as_the_highest() {
    let mut desk = Desk::new("100", &[50, 80, 100, 150]);
    assert_eq!(desk.look("120"), ["100 at 120"]);
    let quiet = desk.alerts.open().filter(|alert| alert.stage == Stage::Acknowledged).count();
    assert_eq!((desk.alerts.open().count(), quiet), (3, 2));
    assert_eq!(desk.look("150"), ["150 at 150"]);
    assert!(desk.look("40").iter().all(|told| told.starts_with("no more budget")));
    assert_eq!(desk.looks(&["55", "85"]), ["50 at 55", "80 at 85"]);
}

/// BUD-06: many small ones, each below its own limit, and all of them beyond theirs.
#[test]
fn many_small_ones_reach_the_limit_of_all() {
    let mut all = Desk::new("50", &[100]);
    let glob = Scope { instance: Some(Glob::new("machine-*")), ..Scope::default() };
    let mut ones: Vec<Desk> = (0..20).map(|_| Desk::new("5", &[100])).collect();
    ones.iter_mut().for_each(|one| one.budget.scope = glob.clone());
    let mut told = Vec::new();
    for (n, one) in ones.iter_mut().enumerate() {
        assert!(one.look("4").is_empty());
        let spent = (4 * (n + 1)).to_string();
        told.extend(all.look(&spent).into_iter().map(|told| (n + 1, told)));
    }
    assert_eq!(told, [(13, "100 at 52".to_owned())]);
}

/// BUD-08 and its like: what is told when the limit becomes another one at 85 of 100 dollars, told at 80 %.
#[rstest]
#[case::raised("200", &["120", "160.5", "165"], &["80 at 160.5"])]
#[case::raised_a_little("105", &["85", "90", "104"], &[])]
#[case::raised_to_where_it_is_nearly_crossed("110", &["85", "87.9", "88", "89"], &["80 at 88"])]
#[case::lowered("84", &["85", "86"], &["100 at 85"])]
#[case::lowered_and_not_crossed("90", &["85", "86", "90"], &["100 at 90"])]
fn another_limit_has_other_lines(#[case] limit: &str, #[case] looks: &[&str], #[case] expected: &[&str]) {
    let mut desk = Desk::new("100", &[80, 100]);
    assert_eq!(desk.looks(&["79", "85"]), ["80 at 85"]);
    desk.budget.limit.amount = dec(limit);
    desk.restart();
    assert_eq!(desk.looks(looks), expected);
}

/// With 15 hours of the month left at two dollars an hour.
#[test]
fn a_forecast_is_told_when_it_has_held_and_goes_on_until_it_is_well_below_its_line() {
    let mut desk = Desk::new("100", &[100]);
    (desk.budget.forecast, desk.now) = (Some(100), at("09:00:00"));
    assert!(desk.looks(&["99"; 10]).is_empty(), "nothing burns");
    desk.burn = "2";
    assert!(desk.looks(&["80"; 5]).is_empty(), "it holds for less than five minutes");
    desk.burn = "1";
    assert!(desk.look("80").is_empty(), "and no longer");
    desk.burn = "2";
    assert!(desk.looks(&["80"; 5]).is_empty());
    assert_eq!(desk.look("80"), ["forecast"]);
    desk.burn = "1.2";
    assert!(desk.looks(&["80"; 9]).is_empty(), "97 of 100 is nearly so");
    desk.restart();
    desk.burn = "2";
    assert!(desk.look("80").is_empty());
    desk.burn = "0.8";
    assert_eq!(desk.look("80"), ["no more forecast 2026-11-01"]);
    desk.burn = "2";
    assert!(desk.looks(&["80"; 5]).is_empty());
    assert_eq!(desk.look("80"), ["forecast"]);
    assert_eq!(desk.look("100"), ["100 at 100"], "and what was forecast is no more news, nor taken back");
    desk.burn = "0";
    assert_eq!(desk.look("100"), ["no more forecast 2026-11-01"]);
}

#[test]
fn a_forecast_of_the_limit_itself_or_after_it_was_reached_is_no_news() {
    let mut desk = Desk::new("100", &[]);
    (desk.budget.forecast, desk.burn) = (Some(100), "1");
    let standing = desk.stands("76");
    assert_eq!(standing.forecast, Some(dec("100")));
    assert!(findings(&desk.budget, &standing, &desk.alerts).is_empty());
    assert!(desk.looks(&["101"; 10]).is_empty());
    desk.budget.forecast = None;
    assert!(desk.looks(&["90"; 10]).is_empty());
}

/// That a budget was renamed, taken out, or has another limit or other lines is no end of what it told.
#[test]
fn what_is_no_question_any_more_ends_without_a_word_and_with_its_reason() {
    let other_limit = Budget { limit: budget("all", "200", Cycle::Month).limit, ..budget("all", "100", Cycle::Month) };
    let other_lines = Budget { thresholds: vec![95], ..budget("all", "100", Cycle::Month) };
    let cases = [
        (vec![budget("renamed", "100", Cycle::Month)], Moot::Gone),
        (vec![], Moot::Gone),
        (vec![other_limit], Moot::Changed),
        (vec![other_lines], Moot::Changed),
    ];
    for (rules, why) in cases {
        let mut desk = Desk::new("100", &[80]);
        assert_eq!(desk.look("85"), ["80 at 85"]);
        let found = moot(&rules, &desk.alerts, &[], desk.now);
        assert_eq!(desk.alerts.take(found, &|_| false, desk.now), [], "{why:?}");
        assert_eq!(desk.alerts.ended()[0].moot, Some(why));
    }
}

/// The clock runs ahead over the turn and is set back: what was told of the term is not told again, and what is told of
/// one that lay ahead is, once that is there.
#[test]
fn a_clock_that_goes_over_the_turn_and_back_tells_each_crossing_once() {
    let mut desk = Desk::new("100", &[80, 100]);
    let mut look = |time: &str, spent: &str| {
        desk.now = time.parse().unwrap();
        desk.look(spent)
    };
    assert_eq!(look("2026-11-30T23:50:00Z", "85"), ["80 at 85"]);
    assert!(look("2026-12-01T00:10:00Z", "1").is_empty());
    assert!(look("2026-11-30T23:52:00Z", "86").is_empty());
    assert_eq!(look("2026-11-30T23:55:00Z", "101"), ["100 at 101"]);
    assert_eq!(look("2026-12-01T00:20:00Z", "81"), ["80 at 81"]);
    assert!(look("2026-11-30T23:58:00Z", "101").is_empty());
    assert_eq!(look("2026-12-01T00:30:00Z", "81"), ["80 at 81"], "the true turn");
}

/// What a higher line took over nobody has seen.
#[test]
fn a_line_below_an_open_one_is_outdone() {
    let mut desk = Desk::new("100", &[50, 80]);
    let outdone = |desk: &Desk| {
        let of = |alert: &Alert| match alert.matter {
            Matter::Budget { threshold, .. } => Some(threshold).filter(|_| desk.alerts.is_outdone(alert)),
            _ => None,
        };
        desk.alerts.open().filter_map(of).collect::<Vec<_>>()
    };
    desk.look("60");
    assert_eq!(outdone(&desk), [0; 0]);
    desk.look("85");
    assert_eq!(outdone(&desk), [50]);
    assert!(desk.alerts.open().all(|alert| alert.fired_at.is_some()));
}
