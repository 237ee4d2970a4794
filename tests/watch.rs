//! `rentop watch`, end to end: it collects, says what happens, ends in order, and whoever is beside it takes over.

#![cfg(unix)]

mod support;

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp, ToSpan};
use providers::sim::{Harm, Machine, Shared};
use rentop::ledger::Ledger;
use rust_decimal::Decimal;
use rustix::process::Signal;
use support::daemon::Watch;
use support::stage::{lone, stage};
use support::terminal::Terminal;
use support::{Account, Lab, world};

/// So soon it has ended after it was told to.
const ENDS: Duration = Duration::from_secs(2);
/// So soon somebody else collects after it has died.
const TAKES_OVER: Duration = Duration::from_secs(30);

/// A lab with one machine that the provider says has run for ten minutes: too short to be billed yet.
fn ten_minutes() -> (Lab, Shared) {
    let mut runpod = world(1.0);
    let started = runpod.now() - SignedDuration::from_mins(10);
    let trainer = Machine::new("podtrainer0001", "trainer", started);
    runpod.machines = vec![Machine { started_at: Some(started), ..trainer }];
    let runpod = Shared::new(runpod);
    let lab = Lab::new(vec![Account { provider: "runpod", name: "team", world: runpod.clone(), extra: "" }]);
    (lab, runpod)
}

fn number(value: &serde_json::Value) -> Decimal {
    value.as_str().unwrap_or_else(|| panic!("no amount: {value}")).parse().unwrap()
}

/// What compute has cost is its rate over the time since its start, to the last place: nothing is lost and nothing
/// counted twice, whoever looked when.
#[track_caller]
fn compute_adds_up(lab: &Lab) {
    let listing = lab.run(&["ls", "--json"]).ends_with(0).json();
    let trainer = &listing["instances"][0];
    let started: Timestamp = trainer["started_at"].as_str().unwrap().parse().unwrap();
    let rate = number(&trainer["rate"]["compute"]);
    let from = (Timestamp::now() - 26.hours()).strftime("%Y-%m-%d").to_string();
    let spend = lab.run(&["spend", "--json", "--by", "component", "--from", &from]).ends_with(0).json();
    let groups = spend["groups"].as_array().unwrap();
    let compute = groups.iter().find(|group| group["key"] == "compute").unwrap_or_else(|| panic!("{spend:#}"));
    let as_of: Timestamp = spend["as_of"].as_str().unwrap().parse().unwrap();
    let ms = as_of.as_millisecond() - started.as_millisecond();
    let expected = rate * Decimal::from(ms) / Decimal::from(3_600_000);
    let amount = number(&compute["amount"]);
    assert!((amount - expected).abs() <= Decimal::new(2, 6), "{amount} is not {expected}: {spend:#}");
}

#[test]
fn without_an_account_there_is_nothing_to_watch() {
    let lab = Lab::new(vec![]);
    let ran = lab.run(&["watch"]).ends_with(2);
    assert!(ran.stderr.contains("no account is configured"), "{}", ran.stderr);
}

#[test]
fn it_ends_at_a_signal_and_gives_the_claim_back() {
    for signal in [Signal::TERM, Signal::INT] {
        let stage = stage();
        let mut watch = Watch::collecting(&stage.lab);
        let (status, took) = watch.end(signal);
        assert!(status.success() && took < ENDS, "{status} after {took:?}: {}", watch.said());
        let said = watch.said();
        assert!(said.contains("watches runpod/team, vast/me, lambda/lab") && said.contains(" ended\n"), "{said}");
        let (ledger, _) = Ledger::open(&stage.lab.state_dir(), Timestamp::now()).unwrap();
        assert_eq!(ledger.collector().unwrap(), None);
    }
}

/// Also while every provider hangs.
#[test]
fn it_ends_at_a_signal_while_nobody_answers() {
    let stage = stage();
    stage.worlds().into_iter().for_each(|world| world.fault("GET", "", 20, Harm::Hang));
    let mut watch = Watch::start(&stage.lab, &[]);
    watch.wait_for("collects");
    let (status, took) = watch.end(Signal::TERM);
    assert!(status.success() && took < ENDS, "{status} after {took:?}");
}

#[test]
fn an_account_in_trouble_is_told_once_and_so_is_its_recovery() {
    let stage = lone("podtrainer0001");
    let body = "<html>maintenance</html>".to_owned();
    let harm = Harm::Answer { status: 200, headers: vec![], content_type: "text/html", body };
    stage.runpod.fault("GET", "/v2/pods", 1, harm);
    let watch = Watch::start(&stage.lab, &["--read-only"]);
    watch.wait_for("runpod/team: is well again");
    let said = watch.said();
    assert!(said.contains("runpod/team, read-only\n"), "{said}");
    let troubles = said.lines().filter(|line| line.contains(" runpod/team: ")).count();
    assert_eq!(troubles, 2, "one for each: {said}");
    assert_eq!(stage.changes(), 0);
}

/// Our own figures stand until a provider's can be read; what cannot be is named by provider, account, request and
/// field.
#[test]
fn a_bill_that_cannot_be_read_is_told() {
    let stage = lone("podtrainer0001");
    let record = r#"{"startTime":"2026-11-02T05:00:00Z","endTime":"2026-11-02T04:00:00Z","podId":"p","totalAmount":1}"#;
    let body = format!(r#"{{"records":[{record}]}}"#);
    let harm = Harm::Answer { status: 200, headers: vec![], content_type: "application/json", body };
    stage.runpod.fault("GET", "/v2/billing/pods", 1, harm);
    let watch = Watch::start(&stage.lab, &[]);
    watch.wait_for("runpod/team: what was billed is not known: GET /v2/billing/pods: cannot read `records[0].endTime`");
}

/// Whoever comes second looks on; it collects as soon as the first one is dead, and what was spent adds up
/// exactly across all of it.
#[test]
fn the_second_one_takes_over_from_a_dead_one_and_spend_adds_up() {
    let (lab, _runpod) = ten_minutes();
    let mut first = Watch::collecting(&lab);
    let second = Watch::start(&lab, &[]);
    second.wait_for(&format!("({}) collects", first.pid()));
    compute_adds_up(&lab);
    let died = Instant::now();
    first.end(Signal::KILL);
    second.wait_for(&format!("({})\n", first.pid()));
    assert!(second.said().contains("takes over from") && died.elapsed() < TAKES_OVER, "{}", second.said());
    compute_adds_up(&lab);
}

/// A command beside it asks nobody: the books are young.
#[test]
fn a_command_beside_it_answers_from_its_books() {
    let (lab, runpod) = ten_minutes();
    let mut watch = Watch::collecting(&lab);
    let listed = || runpod.lock().count("GET", "/v2/pods");
    let (before, began) = (listed(), Instant::now());
    lab.run(&["ls"]).ends_with(0);
    compute_adds_up(&lab);
    // Only what is due by its own pace came in between.
    assert!(listed() <= before + 1 + began.elapsed().as_secs() as usize / 10, "{before} {}", listed());
    assert!(watch.end(Signal::TERM).0.success());
    compute_adds_up(&lab);
}

#[test]
fn a_screen_beside_it_looks_on_and_takes_over_when_it_dies() {
    let (lab, _runpod) = ten_minutes();
    let mut watch = Watch::collecting(&lab);
    let mut screen = Terminal::start(&lab, &[], 140, 30);
    screen.wait_for(&format!("({}) collects", watch.pid()));
    let died = Instant::now();
    watch.end(Signal::KILL);
    screen.wait("to collect itself", |text| text.contains("trainer") && !text.contains(") collects"));
    assert!(died.elapsed() < TAKES_OVER);
    let pid = screen.child.process_id().unwrap();
    let (ledger, _) = Ledger::open(&lab.state_dir(), Timestamp::now()).unwrap();
    assert_eq!(ledger.collector().unwrap().map(|(owner, _)| owner.pid), Some(pid));
    compute_adds_up(&lab);
}
