//! Two rentops at once, over one ledger or each over its own, on the same machines. What was really done is counted
//! where it happens: never the same thing twice, and who came second is told why nothing came of it.

#![cfg(unix)]

mod support;

use std::process::Child;

use providers::sim::{Gate, Harm, Life};
use rentop::rules::saga::{NotSent, Operation, Outcome};
use support::Ran;
use support::stage::{INFER, LORA, OLD_EXP, TRAINER, audit_in, outcome, stage, wait_until};
use support::terminal::Terminal;

const STOP: &[&str] = &["stop", "trainer", "--yes"];
const START: &[&str] = &["start", "old-exp", "--yes"];
const RELEASE: &[&str] = &["release", "trainer", "--yes", "--lose-data"];
const RELEASE_AT_VAST: &[&str] = &["release", "sd-lora", "--yes", "--lose-data"];
const RELEASE_AT_LAMBDA: &[&str] = &["release", "infer", "--yes", "--lose-data"];

const UNDER_WAY: &str = "has another action on it under way";

/// Runs all cases at once and tells of every one that went otherwise.
#[track_caller]
fn check<T: Sync>(cases: &[T], name: fn(&T) -> &str, run: fn(&T) -> Result<(), String>) {
    let failures: Vec<String> = std::thread::scope(|scope| {
        let runs: Vec<_> = cases.iter().map(|case| scope.spawn(|| run(case))).collect();
        let told = runs.into_iter().zip(cases).filter_map(|(run, case)| {
            let why = run.join().expect("a case panicked; its message stands above").err()?;
            Some(format!("{}: {why}", name(case)))
        });
        told.collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn require(fact: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if fact { Ok(()) } else { Err(what()) }
}

fn end_of(process: Child) -> Ran {
    Ran::of(process.wait_with_output().unwrap())
}

/// Waits for the end of one of two processes. Returns that one's end, its number, and the other one.
fn first_to_end(mut processes: [Child; 2]) -> (Ran, u32, Child) {
    let mut ended = None;
    while ended.is_none() {
        ended = processes.iter_mut().position(|process| process.try_wait().unwrap().is_some());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let [first, second] = processes;
    let (ended, other) = if ended == Some(0) { (first, second) } else { (second, first) };
    let pid = ended.id();
    (end_of(ended), pid, other)
}

/// Two commands on one ledger at the same instant.
struct AtOnce {
    name: &'static str,
    acts: [&'static [&'static str]; 2],
    id: &'static str,
    /// The list that both have to read first, and the look that the first one is held at.
    list: &'static str,
    look: &'static str,
}

/// Both have their plan before either begins. One begins; the other is told by whom, and sends nothing.
#[test]
fn of_two_commands_on_one_ledger_one_acts() {
    let pod = |name, acts| AtOnce { name, acts, id: TRAINER, list: "/v2/pods", look: "/v2/pods/" };
    check(
        &[
            pod("two stops", [STOP, STOP]),
            pod("two releases", [RELEASE, RELEASE]),
            pod("a stop and a release", [STOP, RELEASE]),
            AtOnce { id: OLD_EXP, ..pod("two starts", [START, START]) },
            AtOnce {
                name: "two releases at Vast.ai",
                acts: [RELEASE_AT_VAST, RELEASE_AT_VAST],
                id: LORA,
                list: "/api/v1/instances",
                look: "/api/v0/instances/",
            },
            AtOnce {
                name: "two releases at Lambda",
                acts: [RELEASE_AT_LAMBDA, RELEASE_AT_LAMBDA],
                id: INFER,
                list: "/api/v1/instances",
                look: "/api/v1/instances/",
            },
        ],
        |case| case.name,
        at_once,
    );
}

fn at_once(case: &AtOnce) -> Result<(), String> {
    let stage = stage();
    let world = stage.world_of(case.id);
    let (planned, looked) = (Gate::default(), Gate::default());
    world.fault("GET", case.list, 2, Harm::Hold(planned.clone()));
    world.fault("GET", case.look, 2, Harm::Hold(looked.clone()));
    let processes = case.acts.map(|act| stage.start(act));
    wait_until(case.name, || world.lock().count("GET", case.list) == 2);
    planned.open();
    let (second, second_pid, first) = first_to_end(processes);
    let first_pid = first.id();
    looked.open();
    let first = end_of(first);
    let told = || format!("first: {first:?}\nsecond: {second:?}\n{:?}", stage.audit());
    require(first.code == Some(0), told)?;
    require(second.code == Some(4), told)?;
    require(second.stdout.contains(&format!("({first_pid}) {UNDER_WAY}")), told)?;
    require(stage.changes() == 1 && stage.deeds(case.id).len() == 1, told)?;
    let audit = stage.audit();
    let outcomes: Vec<&Outcome> = audit.iter().filter_map(outcome).collect();
    let done = outcomes.iter().filter(|outcome| ***outcome == Outcome::Done { despite: None }).count();
    let told_off =
        |outcome: &&Outcome| matches!(outcome, Outcome::NotSent(NotSent::UnderWay { pid, .. }) if *pid == first_pid);
    require(
        second_pid != first_pid && audit.len() == 2 && done == 1 && outcomes.into_iter().any(|o| told_off(&o)),
        told,
    )
}

/// Two rentops that know nothing of each other: laptops of one team, each with its own ledger, one account.
struct Apart {
    name: &'static str,
    /// The first one's action is held at a request, the second one's runs to its end meanwhile.
    acts: [&'static [&'static str]; 2],
    id: &'static str,
    at: (&'static str, &'static str),
    harm: fn(Gate) -> Harm,
    /// How long a machine takes to stop, to start or to go.
    seconds: i64,
    exits: [i32; 2],
    says: [&'static str; 2],
    deeds: &'static [&'static str],
}

/// What is done once is not done again, and both are told what became of theirs.
#[test]
fn of_two_rentops_with_a_ledger_each_the_second_finds_it_done_or_is_refused() {
    const DONE: &str = "done and proven";
    const ALREADY: &str = "it is so already";
    const STOP_OLD: &[&str] = &["stop", "old-exp", "--yes"];
    const STOP_AT_VAST: &[&str] = &["stop", "sd-lora", "--yes"];
    const START_OLD: &[&str] = &["start", "old-exp", "--yes", "--no-wait"];
    const START_TRAINER: &[&str] = &["start", "trainer", "--yes"];
    const RELEASE_OLD: &[&str] = &["release", "old-exp", "--yes", "--lose-data"];
    let sent = |name, acts, says, deeds| Apart {
        name,
        acts,
        id: TRAINER,
        at: ("POST", "/action"),
        harm: Harm::Hold,
        seconds: 0,
        exits: [0, 0],
        says,
        deeds,
    };
    let looks = ("GET", "/v2/pods/");
    let delete = ("DELETE", "");
    check(
        &[
            // Both had looked before either was carried out.
            sent("stops twice", [STOP, STOP], [DONE, DONE], &["stop"]),
            Apart { id: OLD_EXP, ..sent("starts twice", [START, START], [DONE, DONE], &["start"]) },
            Apart { at: delete, ..sent("releases twice", [RELEASE, RELEASE], [DONE, DONE], &["release"]) },
            Apart {
                at: delete,
                id: LORA,
                ..sent("releases twice at Vast.ai", [RELEASE_AT_VAST, RELEASE_AT_VAST], [DONE, DONE], &["release"])
            },
            Apart {
                at: ("PUT", "/api/v0/instances/"),
                id: LORA,
                ..sent("stops twice at Vast.ai", [STOP_AT_VAST, STOP_AT_VAST], [DONE, DONE], &["stop"])
            },
            Apart {
                at: ("POST", "/terminate"),
                id: INFER,
                ..sent("releases twice at Lambda", [RELEASE_AT_LAMBDA, RELEASE_AT_LAMBDA], [DONE, DONE], &["release"])
            },
            Apart { exits: [1, 0], ..sent("stops what is gone", [STOP, RELEASE], ["refused", DONE], &["release"]) },
            Apart {
                at: delete,
                ..sent("releases what is stopped", [RELEASE, STOP], [DONE, DONE], &["stop", "release"])
            },
            // The first one's request was carried out, and its answer is late.
            Apart {
                harm: Harm::ApplyThenHold,
                ..sent("stops, and it is released", [STOP, RELEASE], ["no longer there", DONE], &["stop", "release"])
            },
            Apart {
                harm: Harm::ApplyThenHold,
                id: OLD_EXP,
                ..sent("starts, and it is stopped", [START_OLD, STOP_OLD], ["starting", DONE], &["start", "stop"])
            },
            Apart {
                harm: Harm::ApplyThenHold,
                exits: [0, 4],
                seconds: 5,
                ..sent(
                    "stops, and it is to be started",
                    [STOP, START_TRAINER],
                    [DONE, "not possible in its"],
                    &["stop"],
                )
            },
            // The first one had not looked yet.
            Apart { at: looks, ..sent("looks late, and it is stopped", [STOP, STOP], [ALREADY, DONE], &["stop"]) },
            Apart {
                at: looks,
                exits: [1, 0],
                ..sent("looks late, and it is gone", [STOP, RELEASE], ["it is gone already", DONE], &["release"])
            },
            Apart {
                at: looks,
                exits: [1, 0],
                ..sent("looks late, and it is released", [RELEASE, RELEASE], ["it is gone already", DONE], &["release"])
            },
            Apart {
                at: looks,
                seconds: 5,
                ..sent("looks late, and it ends", [RELEASE, RELEASE], [ALREADY, DONE], &["release"])
            },
            Apart {
                at: looks,
                exits: [4, 0],
                id: OLD_EXP,
                ..sent(
                    "would release what is started",
                    [RELEASE_OLD, START],
                    ["it was stopped and is now running", DONE],
                    &["start"],
                )
            },
        ],
        |case| case.name,
        apart,
    );
}

fn apart(case: &Apart) -> Result<(), String> {
    let stage = stage();
    let world = stage.world_of(case.id);
    let gate = Gate::default();
    world.lock().transition = jiff::SignedDuration::from_secs(case.seconds);
    world.fault(case.at.0, case.at.1, 1, (case.harm)(gate.clone()));
    let elsewhere = stage.lab.home.path().join("another laptop");
    let other = ["--state-dir", elsewhere.to_str().unwrap()];
    let first = stage.start(case.acts[0]);
    wait_until(case.name, || world.lock().count(case.at.0, case.at.1) > 0);
    let second = stage.lab.run(&[&other, case.acts[1]].concat());
    gate.open();
    let first = end_of(first);
    let told = || format!("first: {first:?}\nsecond: {second:?}\n{:?}\n{:?}", stage.audit(), audit_in(&elsewhere));
    require([first.code, second.code] == case.exits.map(Some), told)?;
    let said = |ran: &Ran, words: &str| format!("{}{}", ran.stdout, ran.stderr).contains(words);
    require(said(&first, case.says[0]) && said(&second, case.says[1]), told)?;
    require(stage.deeds(case.id) == case.deeds, || format!("{:?}\n{}", stage.deeds(case.id), told()))?;
    // Each ledger tells of its own side.
    let own = |audit: &[_], act: &[&str]| audit.iter().all(|operation: &Operation| operation.action.word() == act[0]);
    require(own(&stage.audit(), case.acts[0]) && own(&audit_in(&elsewhere), case.acts[1]), told)
}

/// Both screens show a running machine, and both are told to stop it in the same second.
#[test]
fn two_screens_with_a_ledger_each_stop_a_machine_once() {
    let stage = stage();
    let gate = Gate::default();
    stage.runpod.fault("GET", "/v2/pods/", 2, Harm::Hold(gate.clone()));
    let elsewhere = stage.lab.home.path().join("another laptop");
    let args = ["--state-dir", elsewhere.to_str().unwrap()];
    let mut screens = [Terminal::start(&stage.lab, &[], 140, 30), Terminal::start(&stage.lab, &args, 140, 30)];
    for screen in &mut screens {
        screen.select("trainer");
        screen.press("s");
    }
    // Both looks are under way before either request.
    wait_until("both look", || stage.runpod.lock().count("GET", "/v2/pods/") == 2);
    gate.open();
    for screen in &mut screens {
        screen.press("6");
        screen.wait("its end", |text| {
            ["done and proven", "refused", "not possible in its"].iter().any(|end| text.contains(end))
        });
    }
    assert_eq!((stage.deeds(TRAINER), stage.life(TRAINER)), (vec!["stop"], Life::Stopped));
    let done = |audit: Vec<Operation>| audit.iter().filter_map(outcome).any(|end| matches!(end, Outcome::Done { .. }));
    // The screen is told before the ledger has written it down.
    wait_until("the end on disk", || done(stage.audit()) || done(audit_in(&elsewhere)));
}

/// A screen that looks on says who acts, whichever key it is, and does nothing.
#[test]
fn keys_on_a_screen_that_looks_on_do_nothing() {
    let stage = stage();
    let mut collector = Terminal::start(&stage.lab, &[], 100, 30);
    collector.wait_for("trainer");
    let pid = collector.child.process_id().unwrap();
    let mut looker = Terminal::start(&stage.lab, &[], 140, 30);
    looker.wait_for(&format!("({pid}) collects"));
    looker.select("trainer");
    for (key, sorted) in [("s", "cost"), ("x", "name"), ("p", "age"), ("m", "need"), ("\x1b[15~", "cost")] {
        // Another message first, so that each key's own is seen.
        looker.press("o");
        looker.wait(sorted, |text| text.to_lowercase().contains("sorted") && !text.contains("nothing was done"));
        looker.press(key);
        looker.wait_for(&format!("({pid}) collects and acts"));
    }
    looker.press("u");
    looker.wait_for("nothing can be taken back");
    assert_eq!((stage.changes(), stage.audit().len()), (0, 0));
    let text = collector.text();
    assert!(!text.contains("protected") && !text.contains("not mine"), "{text}");
}

/// Somebody's countdown is not run over by a command on the same machine, and the other way round.
#[test]
fn a_command_is_refused_what_a_screen_is_about_to_do() {
    let stage = stage();
    // However slow the commands are, the screen's own look comes after them.
    let gate = Gate::default();
    stage.runpod.fault("GET", "/v2/pods/", 3, Harm::Hold(gate.clone()));
    let mut screen = Terminal::start(&stage.lab, &[], 140, 30);
    screen.select("trainer");
    screen.press("s");
    wait_until("the countdown on disk", || !stage.audit().is_empty());
    let under_way = format!("({}) {UNDER_WAY}", screen.child.process_id().unwrap());
    for act in [RELEASE, STOP] {
        let ran = stage.lab.run(act).ends_with(4);
        assert!(ran.stdout.contains(&under_way), "{ran:?}");
    }
    assert_eq!(stage.changes(), 0);
    gate.open();
    screen.press("6");
    screen.wait_for("done and proven");
    assert_eq!((stage.deeds(TRAINER), stage.changes()), (vec!["stop"], 1));
    // What has ended stands in nobody's way.
    stage.lab.run(RELEASE).ends_with(0);
    assert_eq!((stage.deeds(TRAINER), stage.changes()), (vec!["stop", "release"], 2));
}

#[test]
fn a_screen_is_refused_what_a_command_has_in_hand() {
    let stage = stage();
    let gate = Gate::default();
    stage.runpod.fault("GET", "/v2/pods/", 1, Harm::Hold(gate.clone()));
    let mut screen = Terminal::start(&stage.lab, &[], 140, 30);
    // It is the collector before the command is there.
    screen.wait_for("trainer");
    let command = stage.start(RELEASE);
    wait_until("the look", || stage.runpod.lock().count("GET", "/v2/pods/") == 1 && !stage.audit().is_empty());
    let under_way = format!("({}) {UNDER_WAY}", command.id());
    for keys in [vec!["s"], vec!["x", "x", "trainer", "\r"]] {
        screen.select("trainer");
        for key in keys {
            screen.press(key);
            // A key that follows at once would count as held.
            screen.listen(std::time::Duration::from_millis(200));
        }
        screen.wait_for(&under_way);
        screen.press("o");
        screen.wait("another message", |text| !text.contains(&under_way));
    }
    assert_eq!(stage.changes(), 0);
    gate.open();
    let command = end_of(command).ends_with(0);
    assert!(command.stdout.contains("done and proven"), "{command:?}");
    assert_eq!((stage.deeds(TRAINER), stage.changes()), (vec!["release"], 1));
    screen.press("6");
    screen.wait_for(&under_way);
    let not_sent = stage.audit().iter().filter_map(outcome).filter(|end| matches!(end, Outcome::NotSent(_))).count();
    assert_eq!(not_sent, 2);
}

/// A process that only sleeps may go on; a dead one blocks nobody.
#[test]
fn a_dead_process_stands_in_nobodys_way() {
    let stage = stage();
    stage.runpod.fault("GET", "/v2/pods/", 1, Harm::Hang);
    let mut first = stage.start(STOP);
    wait_until("the look", || stage.runpod.lock().count("GET", "/v2/pods/") == 1 && !stage.audit().is_empty());
    let stopped = std::process::Command::new("kill").args(["-STOP", &first.id().to_string()]).status().unwrap();
    assert!(stopped.success());
    let ran = stage.lab.run(RELEASE).ends_with(4);
    assert!(ran.stdout.contains(&format!("({}) {UNDER_WAY}", first.id())), "{ran:?}");
    first.kill().unwrap();
    first.wait().unwrap();
    stage.lab.run(RELEASE).ends_with(0);
    assert_eq!((stage.deeds(TRAINER), stage.changes()), (vec!["release"], 1));
    let mut screen = Terminal::start(&stage.lab, &[], 140, 30);
    screen.press("6");
    screen.wait_for("rentop ended first");
    assert_eq!((stage.audit().len(), stage.changes()), (3, 1));
}
