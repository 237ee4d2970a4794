//! A release after a checkpoint, with the real binary over HTTP and a stand-in for `ssh`: whatever goes wrong, and
//! whenever it is killed, no request to release goes out before a verified copy of every file lies here.

#![cfg(unix)]

mod support;

use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use providers::sim::{Harm, Life};
use rentop::ledger::Ledger;
use rentop::rules::checkpoint::Trouble;
use rentop::rules::saga::{NotSent, Operation, Outcome};
use rustix::process::{Pid, Signal, kill_process};
use support::Ran;
use support::daemon::Watch;
use support::machine::Results;
use support::stage::{Stage, TRAINER, audit_in, comes, lone, outcome, wait_until};
use support::terminal::Terminal;

const RELEASE: &[&str] = &["release", "trainer", "--checkpoint", "--yes"];
const THE_REQUEST: (&str, &str) = ("DELETE", "/v2/pods/");

/// The one action of the lab's ledger, as it stands; `None` before it is there.
fn action(stage: &Stage) -> Option<Operation> {
    let path = stage.lab.state_dir();
    let (ledger, _) = Ledger::open(&path, jiff::Timestamp::now()).ok()?;
    ledger.audit(1, None).ok()?.pop()
}

fn requests(stage: &Stage) -> usize {
    stage.runpod.lock().count(THE_REQUEST.0, THE_REQUEST.1)
}

/// Safety 1, seen from outside: the machine is there, or a copy of every file was verified before its release was asked
/// for, once.
fn is_safe(stage: &Stage, results: &Results) -> Result<(), String> {
    let audit = audit_in(&stage.lab.state_dir());
    let told = || format!("{audit:#?}\n{:?}", stage.life(TRAINER));
    let require = |fact: bool, what: &str| if fact { Ok(()) } else { Err(format!("{what}\n{}", told())) };
    let asked_at: Vec<_> = {
        let world = stage.runpod.lock();
        let asked = world.seen.iter().filter(|seen| seen.method == THE_REQUEST.0 && seen.path.contains(THE_REQUEST.1));
        asked.map(|seen| seen.at).collect()
    };
    require(asked_at.len() <= 1, "it was asked for twice")?;
    let Some(asked_at) = asked_at.first() else {
        return require(stage.life(TRAINER) == Life::Running, "it is gone without a request");
    };
    let saved = audit.iter().find_map(Operation::saved).ok_or_else(|| format!("no proof\n{}", told()))?;
    require(saved.identity.id.as_str() == TRAINER, "of another machine")?;
    require(saved.proof.at <= *asked_at, "asked for before it was verified")?;
    let place = Path::new(&saved.proof.place);
    let lacking = results.lacking_in(place);
    require(lacking.is_empty(), &format!("the copy lacks {lacking:?}"))?;
    let manifest = std::fs::metadata(place.join("manifest.json")).and_then(|manifest| manifest.modified());
    let written = jiff::Timestamp::try_from(manifest.map_err(|error| error.to_string())?).unwrap();
    require(written <= *asked_at, "asked for before the manifest was written")
}

#[test]
fn a_machine_is_released_after_a_verified_copy_of_every_file() {
    let stage = lone(TRAINER);
    let results = Results::of(&stage.lab);
    let ran = Ran::of(stage.start(RELEASE).wait_with_output().unwrap()).ends_with(0);
    assert!(ran.stderr.contains("first: copies"), "{}", ran.stderr);
    let place = action(&stage).unwrap().saved().unwrap().proof.place;
    assert!(ran.stdout.contains(&place) && ran.stdout.contains("done and proven"), "{}", ran.stdout);
    assert_eq!((stage.deeds(TRAINER), requests(&stage)), (vec!["release"], 1));
    is_safe(&stage, &results).unwrap();
    let audit = stage.lab.run(&["audit", "--json"]).ends_with(0).json();
    let line = &audit["actions"][0];
    assert_eq!((&line["saved"]["place"], &line["saved"]["files"]), (&place.as_str().into(), &5.into()), "{line:#}");
    assert_eq!((&line["confirmed_by"], &line["outcome"]), (&"checkpoint".into(), &"done".into()));
    assert!(line["saved"]["verified_at"].as_str() < line["sent_at"].as_str(), "{line:#}");
    assert_eq!(audit["saved_this_month"][0]["currency"], "USD", "{audit:#}");
    assert!(stage.lab.run(&["audit"]).ends_with(0).stdout.contains("saved this month"));
}

#[test]
fn a_stop_follows_its_checkpoint_and_a_checkpoint_stands_alone() {
    let stage = lone(TRAINER);
    let results = Results::of(&stage.lab);
    let told = stage.lab.run(&["checkpoint", "trainer", "--json"]).ends_with(0).json();
    assert_eq!((&told["schema"], &told["outcome"]), (&"rentop.checkpoint/1".into(), &"done".into()));
    let place = told["saved"]["place"].as_str().unwrap();
    assert_eq!(results.lacking_in(Path::new(place)), [""; 0]);
    assert_eq!((stage.changes(), stage.life(TRAINER)), (0, Life::Running));
    let ran = stage.lab.run(&["stop", "trainer", "--checkpoint", "--yes"]).ends_with(0);
    assert!(ran.stdout.contains("verified copy: "), "{}", ran.stdout);
    assert_eq!((stage.deeds(TRAINER), stage.life(TRAINER)), (vec!["stop"], Life::Stopped));
    // What is at rest cannot be read.
    stage.lab.run(&["release", "trainer", "--checkpoint", "--yes"]).ends_with(4);
    assert_eq!(stage.deeds(TRAINER), ["stop"]);
}

#[test]
fn what_to_save_is_said_by_the_config_or_by_arguments() {
    let stage = lone(TRAINER);
    for args in [&["checkpoint", "trainer"][..], &["checkpoint", "trainer", "--to", "x"], RELEASE] {
        let ran = stage.lab.run(args).ends_with(2);
        assert!(ran.stderr.contains("[[checkpoint]]") && ran.stderr.contains("--path"), "{}", ran.stderr);
    }
    for args in [&["--path", "out"][..], &["--path", "/"], &["--path", "/a/../b"], &["--path", "/workspace/out"]] {
        stage.lab.run(&[&["checkpoint", "trainer"], args].concat()).ends_with(2);
    }
    stage.lab.run(&["release", "trainer", "--checkpoint", "--lose-data", "--yes"]).ends_with(2);
    assert_eq!(action(&stage), None);

    let results = Results::of(&stage.lab);
    let path = results.folder().join("logs").display().to_string();
    let elsewhere = stage.lab.home.path().join("elsewhere");
    let to = elsewhere.display().to_string();
    let told = stage.lab.run(&["checkpoint", TRAINER, "--account", "team", "--path", &path, "--to", &to, "--json"]);
    let saved = &told.ends_with(0).json()["saved"];
    assert!(Path::new(saved["place"].as_str().unwrap()).starts_with(&elsewhere), "{saved:#}");
    assert_eq!(saved["files"], 2);
    // Without a yes nobody is there to be asked, and nothing changes.
    let ran = stage.lab.run(&["release", "trainer", "--checkpoint"]).ends_with(4);
    assert!(ran.stderr.contains("first: copies") && ran.stderr.contains("--yes"), "{}", ran.stderr);
    stage.lab.run(&["release", "trainer", "--checkpoint", "--yes", "--read-only"]).ends_with(4);
    assert_eq!((stage.changes(), stage.audit().len()), (0, 1));
}

/// What will not pass by itself ends it at once: told, and nothing is sent.
#[test]
fn what_cannot_be_saved_is_not_released() {
    type Case = (&'static str, &'static str, fn(&Stage, &Results), fn(&Trouble) -> bool);
    let cases: Vec<Case> = vec![
        (
            "the key is refused",
            "",
            |_, results| results.refuse("Permission denied (publickey)."),
            |trouble| matches!(trouble, Trouble::Link(_)),
        ),
        (
            "another host key",
            "",
            |_, results| results.refuse("WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!"),
            |trouble| matches!(trouble, Trouble::Link(_)),
        ),
        (
            "the command before it fails",
            "prepare = \"exit 3\"",
            |_, _| {},
            |trouble| matches!(trouble, Trouble::Command { code: 3, .. }),
        ),
        (
            "nothing is there",
            "",
            |_, results| std::fs::remove_dir_all(results.folder()).unwrap(),
            |trouble| matches!(trouble, Trouble::Missing(_)),
        ),
        (
            "a file stands where the folder is to be",
            "",
            |_, results| std::fs::write(results.copies(), "").unwrap(),
            |trouble| matches!(trouble, Trouble::Local(_)),
        ),
    ];
    std::thread::scope(|scope| {
        for (name, lines, spoil, is_right) in cases {
            scope.spawn(move || {
                let stage = lone(TRAINER);
                let results = Results::with(&stage.lab, lines);
                spoil(&stage, &results);
                let ran = stage.lab.run(RELEASE).ends_with(1);
                let end = stage.audit().first().and_then(outcome).cloned();
                assert!(matches!(&end, Some(Outcome::NotSaved(why)) if is_right(why)), "{name}: {end:?} {ran:?}");
                assert_eq!((stage.changes(), stage.life(TRAINER)), (0, Life::Running), "{name}");
            });
        }
    });
}

/// The provider's side: whatever it answers, it is asked once, after the copy.
#[test]
fn a_release_after_a_checkpoint_is_asked_for_once_whatever_is_answered() {
    let refused = Harm::Answer {
        status: 400,
        headers: vec![],
        content_type: "application/json",
        body: r#"{"detail":"not today"}"#.to_owned(),
    };
    type Ends = fn(&Outcome) -> bool;
    let done: Ends = |end| matches!(end, Outcome::Done { despite: Some(_) });
    let cases: Vec<(&str, Harm, i32, Ends)> = vec![
        ("applied, then an error", Harm::ApplyThenError(500), 0, done),
        ("applied, then cut off", Harm::ApplyThenDrop, 0, done),
        ("applied, then a page", Harm::ApplyThenPage, 0, done),
        ("refused", refused, 1, |end| matches!(end, Outcome::Refused(_))),
    ];
    std::thread::scope(|scope| {
        for (name, harm, exit, is_right) in cases {
            scope.spawn(move || {
                let stage = lone(TRAINER);
                let results = Results::of(&stage.lab);
                stage.runpod.fault(THE_REQUEST.0, THE_REQUEST.1, 1, harm);
                stage.lab.run(RELEASE).ends_with(exit);
                let end = stage.audit().first().and_then(outcome).cloned();
                assert!(end.as_ref().is_some_and(is_right), "{name}: {end:?}");
                assert_eq!(requests(&stage), 1, "{name}");
                is_safe(&stage, &results).or_else(|why| if exit == 0 { Err(why) } else { Ok(()) }).unwrap();
            });
        }
    });
}

/// Interrupted while it copies, a command takes its checkpoint back, and nobody goes on with it.
#[test]
fn an_interrupted_command_takes_its_checkpoint_back() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let stage = lone(TRAINER);
        let results = Results::with(&stage.lab, "prepare = \"sleep 60\"");
        let process = stage.start(RELEASE);
        wait_until("it prepares", || results.connections() > 0);
        kill_process(Pid::from_raw(process.id() as i32).unwrap(), signal).unwrap();
        let ran = Ran::of(process.wait_with_output().unwrap()).ends_with(1);
        assert!(ran.stdout.contains("taken back"), "{ran:?}");
        assert_eq!(stage.audit().first().and_then(outcome), Some(&Outcome::NotSent(NotSent::TakenBack)));
        let mut watch = Watch::collecting(&stage.lab);
        watch.end(Signal::TERM);
        assert_eq!((results.connections(), stage.changes()), (1, 0), "somebody went on");
    }
}

/// A moment of standing still is no pause that matters.
#[test]
fn a_command_that_stood_still_for_a_moment_goes_on() {
    let stage = lone(TRAINER);
    let results = Results::of(&stage.lab);
    let process = stage.start(RELEASE);
    let signal = |signal| kill_process(Pid::from_raw(process.id() as i32).unwrap(), signal).unwrap();
    wait_until("it copies", || results.connections() > 1);
    signal(Signal::STOP);
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(requests(&stage), 0);
    signal(Signal::CONT);
    Ran::of(process.wait_with_output().unwrap()).ends_with(0);
    is_safe(&stage, &results).unwrap();
}

/// Numbers that nobody chose, and that come again.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// After which sign from outside it is killed, and how long after.
#[derive(Clone, Copy, Debug)]
enum Moment {
    Started,
    /// So many times the machine was called.
    Called(usize),
    /// It is looked at once more.
    Looked,
    /// The request has arrived.
    Asked,
}

impl Moment {
    fn any(dice: &mut Dice) -> (Moment, Duration) {
        let moment = match dice.below(10) {
            0 => Moment::Started,
            1..7 => Moment::Called(1 + dice.below(4) as usize),
            7..9 => Moment::Looked,
            _ => Moment::Asked,
        };
        (moment, Duration::from_millis(dice.below(120)))
    }

    fn has_come(self, stage: &Stage, results: &Results, called: usize) -> bool {
        match self {
            Moment::Started => true,
            Moment::Called(times) => results.connections() >= called + times,
            Moment::Looked => stage.runpod.lock().count("GET", "/v2/pods/pod") > 0,
            Moment::Asked => requests(stage) > 0,
        }
    }
}

/// Waits for a moment to kill at; not beyond the process's own end.
fn wait_to_kill(process: &mut dyn FnMut() -> bool, moment: (Moment, Duration), stage: &Stage, results: &Results) {
    let (called, began) = (results.connections(), Instant::now());
    while !moment.0.has_come(stage, results, called) && !process() && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(moment.1);
}

fn how_often() -> usize {
    std::env::var("RELEASE_KILLS").ok().and_then(|number| number.parse().ok()).unwrap_or(200)
}

/// So many at a time: each waits more than it works.
const AT_A_TIME: usize = 8;

/// Safety 1 and 5 under `kill -9` at any point, of whoever began it and of whoever took it up: the machine is there, or
/// its files are here. `RELEASE_KILLS` says how often, `RELEASE_SEED` from which number on.
#[test]
fn whenever_it_is_killed_the_machine_or_a_verified_copy_is_there() {
    let first: usize = std::env::var("RELEASE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let next = AtomicUsize::new(first);
    let (failures, steps) = (Mutex::new(Vec::new()), Mutex::new(std::collections::BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + how_often() {
                        return;
                    }
                    match killed(seed as u64) {
                        Ok(step) => *steps.lock().unwrap().entry(step).or_insert(0) += 1,
                        Err(why) => failures.lock().unwrap().push(format!("RELEASE_SEED={seed}: {why}")),
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let steps = steps.into_inner().unwrap();
    eprintln!("killed at {steps:?}");
    assert!(how_often() < 200 || steps.len() > 3, "it was hardly killed anywhere: {steps:?}");
}

/// One life: begun, killed, taken up, perhaps killed again, and taken up to its end. Returns the step at which it was
/// killed first.
fn killed(seed: u64) -> Result<&'static str, String> {
    let mut dice = Dice(seed);
    let stage = lone(TRAINER);
    let results = Results::of(&stage.lab);
    let moment = Moment::any(&mut dice);
    if dice.below(12) == 0 {
        let mut screen = Terminal::start(&stage.lab, &[], 120, 30);
        screen.select("trainer");
        screen.press("R");
        screen.wait_for("begin: save");
        // The same key sooner would count as held.
        screen.listen(Duration::from_millis(900));
        screen.press("R");
        wait_until("it is begun", || action(&stage).is_some());
        wait_to_kill(&mut || false, moment, &stage, &results);
        screen.signal("KILL");
        screen.wait_end();
    } else {
        let mut process = stage.lab.command(RELEASE).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_to_kill(&mut || process.try_wait().unwrap().is_some(), moment, &stage, &results);
        process.kill().unwrap();
        process.wait().unwrap();
    }
    is_safe(&stage, &results)?;
    let step = action(&stage).map_or("nothing", |operation| operation.step.word());
    while dice.below(3) == 0 {
        let moment = (Moment::Called(1 + dice.below(3) as usize), Duration::from_millis(dice.below(200)));
        let mut watch = Watch::start(&stage.lab, &[]);
        wait_to_kill(&mut || !is_under_way(&stage), moment, &stage, &results);
        watch.end(Signal::KILL);
        is_safe(&stage, &results)?;
    }
    let mut watch = Watch::collecting(&stage.lab);
    if !comes(|| !is_under_way(&stage)) {
        return Err(format!("it came to no end: {:#?}", action(&stage)));
    }
    let ended = watch.end(Signal::TERM);
    is_safe(&stage, &results).map_err(|why| format!("{why}\n{ended:?}"))?;
    Ok(step)
}

/// Something may still be sent of it.
fn is_under_way(stage: &Stage) -> bool {
    action(stage).is_some_and(|operation| !operation.is_ended() && operation.sent == 0)
}
