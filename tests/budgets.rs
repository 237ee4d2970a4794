//! Budgets that run into their lines, end to end: told once, whoever looked when, and not again after a restart.

#![cfg(unix)]

mod support;

use std::time::{Duration, Instant};

use providers::sim::{Machine, Shared};
use rust_decimal::Decimal;
use rustix::process::Signal;
use serde_json::Value;
use support::daemon::Watch;
use support::stage::wait_until;
use support::{Account, Lab, world};

/// So long after its start a machine has spent half of the budget: longer than a command takes.
const CROSSES: Duration = Duration::from_secs(15);

/// A machine that begins now and costs 20 USD a second, and half of a budget that is gone soon.
fn dear() -> (Lab, Instant) {
    let mut runpod = world(1.0);
    let began = Instant::now();
    let now = runpod.now();
    runpod.balance = Decimal::from(100_000_000);
    let trainer = Machine { compute_per_hour: Decimal::from(72_000), ..Machine::new("podtrainer0001", "trainer", now) };
    runpod.machines = vec![Machine { started_at: Some(now), ..trainer }];
    let mut lab = Lab::new(vec![Account { provider: "runpod", name: "team", world: Shared::new(runpod), extra: "" }]);
    lab.config.push_str(
        "[alerts]\nrunway = \"off\"\n\
         [[budget]]\nname = \"sprint\"\nlimit = \"600 USD\"\nperiod = \"total\"\nthresholds = [50]\nforecast = false\n",
    );
    lab.write_config();
    (lab, began)
}

/// The alerts about the budget, open or over.
fn told(lab: &Lab) -> Vec<Value> {
    let alerts = lab.run(&["alerts", "--all", "--json"]).ends_with(0).json();
    let alerts = alerts["alerts"].as_array().unwrap().iter();
    alerts.filter(|alert| alert["kind"] == "budget" && alert["budget"] == "sprint").cloned().collect()
}

fn figure(lab: &Lab, name: &str) -> Decimal {
    let budgets = lab.run(&["budgets", "--json"]).ends_with(0).json();
    let figure = &budgets["budgets"][0][name];
    figure.as_str().unwrap_or_else(|| panic!("no {name}: {budgets:#}")).parse().unwrap()
}

#[test]
fn a_crossing_while_nothing_ran_is_told_once_and_not_after_a_restart() {
    let (lab, began) = dear();
    lab.run(&["check"]).ends_with(0);
    assert!(figure(&lab, "spent") < Decimal::from(300) && began.elapsed() < CROSSES, "the first look came too late");
    assert!(figure(&lab, "burn") >= Decimal::from(72_000));
    assert!(told(&lab).is_empty());
    wait_until("the crossing", || began.elapsed() > CROSSES + Duration::from_secs(1));
    let said = lab.run(&["check"]).ends_with(1).stdout;
    assert!(said.lines().count() == 1 && said.contains("sprint"), "{said}");
    let [first] = &told(&lab)[..] else { panic!("{:#?}", told(&lab)) };
    assert_eq!(first["state"], "firing");
    // It goes on firing, and is the same one.
    lab.run(&["check"]).ends_with(1);
    let mut watch = Watch::collecting(&lab);
    watch.wait_for(" alert: ");
    assert!(watch.end(Signal::TERM).0.success());
    let again = told(&lab);
    assert_eq!((again.len(), &again[0]["id"], &again[0]["fired_at"]), (1, &first["id"], &first["fired_at"]));
    lab.run(&["alerts", "seen", first["id"].as_str().unwrap()]).ends_with(0);
    lab.run(&["check"]).ends_with(0);
    assert_eq!(told(&lab).len(), 1);
}

#[test]
fn two_processes_tell_a_crossing_once() {
    let (lab, _began) = dear();
    let first = Watch::collecting(&lab);
    let second = Watch::start(&lab, &[]);
    second.wait_for(&format!("({}) collects", first.pid()));
    first.wait_for(" alert: ");
    let said = lab.run(&["check"]).ends_with(1).stdout;
    assert!(said.contains("sprint"), "{said}");
    second.wait_for(" alert: ");
    assert_eq!(told(&lab).len(), 1, "{:#?}", told(&lab));
    let lines = |watch: &Watch| watch.said().lines().filter(|line| line.contains(" alert: ")).count();
    assert_eq!((lines(&first), lines(&second)), (1, 1));
}
