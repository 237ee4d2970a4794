//! Actions under faults: at every request of an action something goes wrong, or the process is killed. After
//! each there is one effect or none, and a clear word. Here are the cases with a story of their own; `table` has
//! every request with every harm, `kills` every step at which a process can be killed.

#![cfg(unix)]

#[path = "faults/drive.rs"]
mod drive;
#[path = "faults/kills.rs"]
mod kills;
mod support;
#[path = "faults/table.rs"]
mod table;

use std::time::Duration;

use drive::{Drive, Locks};
use providers::model::Action;
use providers::sim::{Gate, Harm, Life, Shared, World};
use rentop::app::State;
use rentop::ledger::Ledger;
use rentop::rules::saga::{NotSent, Outcome};
use support::Ran;
use support::stage::{INFER, LORA, OLD_EXP, SCRATCH, TRAINER, outcome, stage, wait_until};
use support::terminal::Terminal;

/// Method and part of the path of a request, and what is done while it is held.
type Meanwhile = (&'static str, &'static str, fn(&Shared));

/// One action with what goes wrong on its way.
struct Case {
    /// For a person who reads that it failed.
    name: &'static str,
    act: &'static [&'static str],
    id: &'static str,
    /// Method, part of the path, how often, what.
    faults: Vec<(&'static str, &'static str, u32, Harm)>,
    /// Done to the world while the action is on its way.
    meanwhile: Option<Meanwhile>,
    // What comes of it.
    exit: i32,
    /// Requests that would change anything.
    sent: usize,
    life: Life,
    /// Found in what is said.
    says: &'static str,
    outcome: fn(&Outcome) -> bool,
}

const STOP: &[&str] = &["stop", "trainer", "--yes"];
const START: &[&str] = &["start", "old-exp", "--yes"];
const RELEASE: &[&str] = &["release", "trainer", "--yes", "--lose-data"];
const RELEASE_AT_VAST: &[&str] = &["release", "sd-lora", "--yes", "--lose-data"];
const RELEASE_AT_LAMBDA: &[&str] = &["release", "infer", "--yes", "--lose-data"];

const THE_LOOK: &str = "/v2/pods/pod";
const THE_LIST: &str = "/v2/pods";

fn base(name: &'static str, act: &'static [&'static str]) -> Case {
    let (id, life) = match act {
        _ if act == START => (OLD_EXP, Life::Running),
        _ if act == STOP => (TRAINER, Life::Stopped),
        _ if act == RELEASE_AT_VAST => (LORA, Life::Gone),
        _ if act == RELEASE_AT_LAMBDA => (INFER, Life::Gone),
        _ => (TRAINER, Life::Gone),
    };
    Case { name, act, id, faults: vec![], meanwhile: None, exit: 0, sent: 1, life, says: "", outcome: is_done }
}

/// Nothing was sent, and the machine is as before.
fn unsent(name: &'static str, act: &'static [&'static str]) -> Case {
    let base = base(name, act);
    let life = if base.id == OLD_EXP { Life::Stopped } else { Life::Running };
    Case { exit: 1, sent: 0, life, ..base }
}

fn answer(status: u16, body: &str) -> Harm {
    Harm::Answer { status, headers: vec![], content_type: "application/json", body: body.to_owned() }
}

fn html() -> Harm {
    Harm::Answer { status: 200, headers: vec![], content_type: "text/html", body: "<html>Sign in</html>".to_owned() }
}

fn is_done(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Done { .. })
}

fn is_done_despite(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Done { despite: Some(_) })
}

fn is_refused(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Refused(_))
}

/// Runs all cases at once, each over a fleet of its own, and tells of every one that went otherwise.
#[track_caller]
fn check(cases: Vec<Case>) {
    let failures: Vec<String> = std::thread::scope(|scope| {
        let runs: Vec<_> = cases.iter().map(|case| (case.name, scope.spawn(|| run(case)))).collect();
        runs.into_iter()
            .filter_map(|(name, run)| match run.join().expect("a case panicked; its message stands above") {
                Ok(()) => None,
                Err(why) => Some(format!("{name}: {why}")),
            })
            .collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn run(case: &Case) -> Result<(), String> {
    let stage = stage();
    let world = stage.world_of(case.id);
    let gate = Gate::default();
    if let Some((method, path, _)) = case.meanwhile {
        world.fault(method, path, 1, Harm::Hold(gate.clone()));
    }
    for (method, path, times, harm) in &case.faults {
        world.fault(method, path, *times, harm.clone());
    }
    let process = stage.start(case.act);
    if let Some((method, path, change)) = case.meanwhile {
        wait_until(case.name, || world.lock().count(method, path) > 0);
        change(world);
        gate.open();
    }
    let ran = Ran::of(process.wait_with_output().unwrap());
    let told = format!("{ran:?}\n{:?}", stage.audit());
    let require = |fact: bool, what: String| if fact { Ok(()) } else { Err(format!("{what}\n{told}")) };
    require(ran.code == Some(case.exit), format!("exit {:?} and not {}", ran.code, case.exit))?;
    require(stage.changes() == case.sent, format!("sent {} times and not {}", stage.changes(), case.sent))?;
    let life = stage.life(case.id);
    // A release is proven by the provider's word, which may come while the machine still shuts down.
    let as_expected = life == case.life || (life == Life::Releasing && case.life == Life::Gone);
    require(as_expected, format!("the machine is {life:?} and not {:?}", case.life))?;
    let said = format!("{}{}", ran.stdout, ran.stderr);
    require(said.contains(case.says), format!("it does not say `{}`", case.says))?;
    let audit = stage.audit();
    let outcome = audit.first().and_then(outcome);
    require(audit.len() == 1 && outcome.is_some_and(case.outcome), format!("it ended as {outcome:?}"))
}

/// Before anything is sent the very machine is looked at, and without that look nothing is sent.
#[test]
fn a_look_that_goes_wrong_sends_nothing_or_is_looked_again() {
    let could_not_look = |outcome: &Outcome| matches!(outcome, Outcome::NotSent(NotSent::CouldNotLook(_)));
    let look = |times, harm| vec![("GET", THE_LOOK, times, harm)];
    check(vec![
        Case { faults: look(2, answer(500, "{}")), ..base("two errors, then an answer", STOP) },
        Case { faults: look(1, Harm::CutBody), ..base("half an answer, then a whole one", RELEASE) },
        Case { faults: look(3, html()), ..base("pages instead of an answer, then one", STOP) },
        Case { faults: look(1, Harm::Delay(Duration::from_secs(2))), ..base("a late answer", RELEASE) },
        Case {
            faults: look(u32::MAX, answer(500, "{}")),
            says: "could not be looked at first",
            outcome: could_not_look,
            ..unsent("never an answer", STOP)
        },
        Case {
            faults: look(u32::MAX, answer(401, r#"{"detail":"no"}"#)),
            says: "could not be looked at first",
            outcome: could_not_look,
            ..unsent("the key is refused", RELEASE)
        },
        Case {
            faults: look(u32::MAX, answer(200, r#"{"id": 7}"#)),
            says: "could not be looked at first",
            outcome: could_not_look,
            ..unsent("an answer of another shape", RELEASE)
        },
        Case {
            faults: vec![("GET", "/api/v0/instances", u32::MAX, answer(500, "{}"))],
            says: "could not be looked at first",
            outcome: could_not_look,
            ..unsent("never an answer at another provider", RELEASE_AT_VAST)
        },
    ]);
}

/// Safety 2: what changed between the look of the person and ours stops the action.
#[test]
fn what_changed_meanwhile_is_not_acted_on() {
    fn with(world: &Shared, change: impl Fn(&mut World)) {
        change(&mut world.lock());
    }
    let another = |outcome: &Outcome| *outcome == Outcome::NotSent(NotSent::AnotherMachine);
    let anew: fn(&Shared) = |world| {
        with(world, |world| {
            let now = world.now();
            world.machine(TRAINER).unwrap().created_at = now;
        })
    };
    let seen = |change| Some(("GET", THE_LOOK, change));
    check(vec![
        Case {
            meanwhile: seen(anew),
            exit: 4,
            says: "the id now names another machine",
            outcome: another,
            ..unsent("another machine has the id, stop", STOP)
        },
        Case {
            meanwhile: seen(anew),
            exit: 4,
            says: "the id now names another machine",
            outcome: another,
            ..unsent("another machine has the id, release", RELEASE)
        },
        Case {
            meanwhile: seen(|world| with(world, |world| world.machine(OLD_EXP).unwrap().life = Life::Running)),
            act: &["release", "old-exp", "--yes", "--lose-data"],
            exit: 4,
            life: Life::Running,
            says: "it was stopped and is now running",
            outcome: |outcome| matches!(outcome, Outcome::NotSent(NotSent::PhaseChanged { .. })),
            ..unsent("somebody started what was to be released", START)
        },
        Case {
            meanwhile: seen(|world| with(world, |world| world.machine(TRAINER).unwrap().disk_gb = 0)),
            exit: 4,
            says: "it would now delete what the plan did not show",
            outcome: |outcome| *outcome == Outcome::NotSent(NotSent::PlanChanged),
            ..unsent("the lasting disk is no more", STOP)
        },
        // LIFE-12
        Case {
            meanwhile: seen(|world| with(world, |world| world.machine(TRAINER).unwrap().locked = true)),
            exit: 4,
            says: "locked",
            outcome: |outcome| matches!(outcome, Outcome::NotSent(NotSent::NotOffered(_))),
            ..unsent("somebody locked it", STOP)
        },
        Case {
            meanwhile: seen(|world| with(world, |world| world.machine(TRAINER).unwrap().life = Life::Stopped)),
            exit: 0,
            life: Life::Stopped,
            says: "nothing was sent: it is so already",
            outcome: |outcome| *outcome == Outcome::NotSent(NotSent::AlreadySo),
            ..unsent("it stopped by itself", STOP)
        },
        Case {
            meanwhile: seen(|world| with(world, |world| world.machine(TRAINER).unwrap().life = Life::Gone)),
            life: Life::Gone,
            says: "it is gone already",
            outcome: |outcome| *outcome == Outcome::NotSent(NotSent::NoLongerThere),
            ..unsent("it went by itself", STOP)
        },
    ]);
}

/// An answered refusal is told after the state was read; only one that names a wait is sent once more.
#[test]
fn a_refusal_is_read_back_and_told() {
    let post = |harm| vec![("POST", "/action", 1, harm)];
    let wait = || Harm::Answer {
        status: 429,
        headers: vec![("retry-after", "2".to_owned())],
        content_type: "application/json",
        body: "{}".to_owned(),
    };
    check(vec![
        Case {
            faults: post(answer(400, r#"{"title":"Bad Request","detail":"not today"}"#)),
            sent: 1,
            says: "not today",
            outcome: is_refused,
            ..unsent("refused", STOP)
        },
        Case {
            faults: post(answer(403, r#"{"detail":"no right"}"#)),
            sent: 1,
            says: "lacks the right",
            outcome: is_refused,
            ..unsent("forbidden", STOP)
        },
        // LIFE-11: nothing is released or made anew.
        Case {
            faults: post(answer(400, r#"{"detail":"There are not enough free GPUs on the host machine."}"#)),
            sent: 1,
            says: "not enough free GPUs",
            outcome: is_refused,
            ..unsent("no capacity", START)
        },
        // API-11: refused, since it is so already.
        Case {
            faults: vec![("DELETE", "", 1, Harm::ApplyThenError(403))],
            outcome: is_done,
            ..base("refused after the deed", RELEASE)
        },
        Case { faults: post(wait()), sent: 2, ..base("told to wait", STOP) },
        // API-12
        Case {
            faults: vec![(
                "DELETE",
                "",
                1,
                answer(500, r#"{"detail":"Unable to terminate instance. Please try again in 2 seconds."}"#),
            )],
            sent: 2,
            ..base("told to wait in words", RELEASE)
        },
        Case { faults: vec![("DELETE", "", 1, wait())], sent: 2, ..base("told to wait at Vast.ai", RELEASE_AT_VAST) },
        Case {
            faults: vec![("POST", "/terminate", 1, wait())],
            sent: 2,
            ..base("told to wait at Lambda", RELEASE_AT_LAMBDA)
        },
        Case {
            faults: vec![("POST", "/action", 2, wait())],
            sent: 2,
            says: "rate limited",
            outcome: is_refused,
            ..unsent("told to wait twice", STOP)
        },
    ]);
}

/// Safety 3, API-10: what may have been carried out is read back and never sent again.
#[test]
fn an_answer_that_proves_nothing_is_read_back_and_not_repeated() {
    let post = |harm| vec![("POST", "/action", 1, harm)];
    let despite = |name, act| Case { says: "although", outcome: is_done_despite, ..base(name, act) };
    check(vec![
        Case { faults: post(Harm::ApplyThenError(502)), ..despite("an error after the start", START) },
        Case { faults: post(Harm::CutBody), ..despite("half an answer to the stop", STOP) },
        Case {
            faults: vec![("POST", "/terminate", 1, Harm::CutBody)],
            ..despite("half an answer to the release", RELEASE_AT_LAMBDA)
        },
        Case { faults: post(Harm::Delay(Duration::from_secs(3))), ..base("a late answer", STOP) },
    ]);
}

/// Safety 4: an answer is a promise, and lists that fail prove nothing.
#[test]
fn a_promise_is_proven_by_a_good_list_only() {
    fn lists_fail(world: &Shared, harm: Harm) {
        world.fault("GET", THE_LIST, 4, harm);
    }
    check(vec![
        Case {
            meanwhile: Some(("POST", "/action", |world| lists_fail(world, html()))),
            ..base("pages instead of lists", STOP)
        },
        Case {
            meanwhile: Some(("DELETE", "", |world| lists_fail(world, Harm::CutBody))),
            ..base("half a list", RELEASE)
        },
    ]);
}

/// A promise that is not kept is not told as done, and the next screen goes on watching it.
#[test]
fn a_promise_that_is_not_kept_stays_under_way() {
    let stage = stage();
    stage.runpod.fault("POST", "/action", 1, Harm::AcceptThenIgnore);
    let ran = stage.lab.run(&["stop", "trainer", "--yes", "--no-wait"]).ends_with(0);
    assert!(ran.stdout.contains("stopping"), "{ran:?}");
    assert_eq!(stage.audit()[0].step.word(), "confirming");
    let audit = stage.lab.run(&["audit", "--json"]).ends_with(0).json();
    assert_eq!((&audit["actions"][0]["outcome"], &audit["actions"][0]["ended_at"]), (&"confirming".into(), &().into()));
    let mut screen = Terminal::start(&stage.lab, &[], 100, 30);
    screen.wait("the action under way", |text| {
        text.lines().any(|line| line.contains("trainer") && line.contains("stopping"))
    });
    assert_eq!((stage.life(TRAINER), stage.changes()), (Life::Running, 1));
    screen.press("6");
    screen.wait("no claim that it is done", |text| text.contains("stopping") && !text.contains("done"));
    // Once it is so it is told.
    stage.runpod.lock().machine(TRAINER).unwrap().life = Life::Stopped;
    screen.wait_for("done and proven");
    assert_eq!(stage.changes(), 1);
}

/// Leaving in order, by key or signal, in a countdown: nothing is sent, now or later, and the journal says so.
#[test]
fn a_screen_left_in_its_countdown_writes_that_down() {
    for way in ["q", "\x03", "TERM", "HUP"] {
        let stage = stage();
        let mut screen = Terminal::start(&stage.lab, &[], 100, 30);
        screen.select("trainer");
        screen.press("s");
        screen.wait_for("s, u undo");
        match way {
            "q" => {
                screen.press("q");
                screen.wait_for("1 action not sent yet will not be sent.");
                // Any other key stays.
                screen.press("j");
                screen.wait("the list", |text| !text.contains("will not be sent"));
                screen.press("q");
                screen.wait_for("will not be sent");
                screen.press("\x03");
            }
            "\x03" => screen.press("\x03"),
            signal => screen.signal(signal),
        }
        screen.wait_end();
        let outcomes: Vec<_> = stage.audit().iter().filter_map(outcome).cloned().collect();
        assert_eq!(outcomes, [Outcome::NotSent(NotSent::ProgramEnded)], "{way}");
        assert_eq!((stage.changes(), stage.life(TRAINER)), (0, Life::Running), "{way}");
    }
}

/// Safety 5: a step that cannot be written down is not taken, on the real disk.
#[test]
fn without_its_record_nothing_is_sent() {
    for args in [STOP, RELEASE] {
        let stage = stage();
        let gate = Gate::default();
        stage.runpod.fault("GET", THE_LOOK, 1, Harm::Hold(gate.clone()));
        let process = stage.start(args);
        wait_until("the look", || stage.runpod.lock().count("GET", THE_LOOK) > 0);
        let ledger = Ledger::open(&stage.lab.state_dir(), jiff::Timestamp::now()).unwrap().0;
        let path = ledger.path().expect("it is a file").to_owned();
        drop(ledger);
        std::fs::rename(&path, path.with_extension("away")).unwrap();
        gate.open();
        let ran = Ran::of(process.wait_with_output().unwrap()).ends_with(1);
        assert!(ran.stdout.contains("it could not be written down"), "{ran:?}");
        assert_eq!((stage.changes(), stage.life(TRAINER)), (0, Life::Running));
    }
}

/// Safety 6: the guard holds where effects are performed, for a state that knows nothing of it.
#[test]
fn a_permit_is_not_used_where_nothing_may_be_changed() {
    for (whole, account) in [(true, false), (false, true), (false, false)] {
        let stage = stage();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let outcome = runtime.block_on(async {
            let mut drive = Drive::over(&stage, Locks { whole, account });
            drive.begin(Action::Release, TRAINER).await.unwrap();
            let ended = |state: &State| state.world.operations.values().next().and_then(outcome).cloned();
            drive.until("its end", |state| ended(state).is_some()).await.unwrap();
            let outcome = ended(&drive.state).expect("it was waited for");
            drive.end();
            outcome
        });
        let expected = usize::from(!whole && !account);
        assert_eq!(stage.changes(), expected, "{outcome:?}");
        if expected == 0 {
            let Outcome::Refused(why) = &outcome else { panic!("{outcome:?}") };
            assert!(why.contains("read-only: nothing was sent"), "{why}");
            assert_eq!(stage.life(TRAINER), Life::Running);
        }
        runtime.shutdown_timeout(Duration::from_millis(100));
    }
}

/// DATA-05: an action that loses data is never begun by a yes alone, whatever fails around it.
#[test]
fn a_stop_that_erases_needs_more_than_a_yes() {
    let stage = stage();
    stage.lab.run(&["stop", "scratch", "--yes"]).ends_with(4);
    assert_eq!((stage.changes(), stage.audit().len()), (0, 0));
    let ran = stage.lab.run(&["stop", "scratch", "--yes", "--lose-data"]).ends_with(0);
    assert!(ran.stderr.contains("deletes"), "{ran:?}");
    assert_eq!((stage.changes(), stage.life(SCRATCH)), (1, Life::Stopped));
}
