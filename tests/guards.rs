//! Guards and `rentop veto`, end to end: the real binary against a simulated provider.

#![cfg(unix)]

mod support;

use jiff::Timestamp;
use providers::sim::Life;
use rentop::ledger::Ledger;
use rentop::rules::guard::Stage;
use rentop::rules::saga::Outcome;
use rustix::process::Signal;
use support::daemon::Watch;
use support::stage::{SCRATCH, Stage as Scene, TRAINER, lone, outcome, wait_until};

/// All that is left running costs more than nothing: called for at once.
const ALWAYS: &str = "\
[[guard]]
name = \"dear\"
match = { instance = \"trainer\" }
on = \"burn\"
above = \"0.01 USD\"
action = \"stop\"
mode = \"enforce\"
countdown = \"8s\"
";

fn guarded() -> Scene {
    let mut scene = lone(TRAINER);
    scene.lab.config.push_str(ALWAYS);
    scene.lab.write_config();
    scene
}

#[test]
fn a_watch_stops_what_its_guard_is_for_after_the_countdown_and_nothing_else() {
    let scene = guarded();
    let watch = Watch::start(&scene.lab, &[]);
    watch.wait_for("in force: 0 budgets, 0 channels, 1 guard");
    watch.wait_for("trainer is stopped at ");
    assert_eq!(scene.deeds(TRAINER), [] as [&str; 0], "it is told before it is done");
    wait_until("the stop", || scene.life(TRAINER) == Life::Stopped);
    assert_eq!(scene.deeds(SCRATCH), [] as [&str; 0]);
    wait_until("its proof", || scene.audit().first().is_some_and(|operation| outcome(operation).is_some()));
    let [operation] = &scene.audit()[..] else { panic!("one action") };
    assert_eq!((operation.by.as_str(), outcome(operation)), ("guard dear", Some(&Outcome::Done { despite: None })));
}

#[test]
fn a_veto_keeps_it_away_also_from_the_next_watch() {
    let scene = guarded();
    let mut watch = Watch::start(&scene.lab, &[]);
    watch.wait_for("trainer is stopped at ");
    let said = scene.lab.run(&["veto", "trainer"]).ends_with(0).stdout;
    assert!(said.contains("dear"), "{said}");
    watch.wait_for(" over: ");
    assert!(watch.end(Signal::TERM).0.success());
    let mut watch = Watch::collecting(&scene.lab);
    assert!(watch.end(Signal::TERM).0.success());
    assert!(!watch.said().contains("is stopped at"), "{}", watch.said());
    let (mut ledger, _) = Ledger::open(&scene.lab.state_dir(), Timestamp::now()).unwrap();
    let (memory, _) = ledger.recall(Timestamp::now()).unwrap();
    assert!(matches!(&memory.watches[..], [watch] if watch.stage == Stage::Vetoed), "{:?}", memory.watches);
    assert_eq!((scene.deeds(TRAINER), scene.life(TRAINER)), (vec![], Life::Running));
}

#[test]
fn a_veto_without_a_guard_needs_a_time_and_a_machine_that_is_there() {
    let scene = lone(TRAINER);
    scene.lab.run(&["check"]).ends_with(0);
    let told = scene.lab.run(&["veto", "trainer"]).ends_with(2).stderr;
    assert!(told.contains("--for 8h"), "{told}");
    assert!(scene.lab.run(&["veto", "nobody"]).ends_with(2).stderr.contains("nobody"));
    let told = scene.lab.run(&["veto", "trainer", "--for", "8h"]).ends_with(0).stdout;
    assert!(told.contains("no guard acts before"), "{told}");
}
