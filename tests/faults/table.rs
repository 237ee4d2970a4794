//! Every request of every action, with everything that can go wrong at it: a table that is computed, and run.
//!
//! A row is an action, a place and a harm. What must come of it follows from the three by rule ([`expected`]), and
//! is compared with what was really done, what was sent, the exit code, what is said, and what ledger and journal
//! hold.

use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::{SignedDuration, Timestamp};
use providers::model::Action;
use providers::sim::{Life, Shared, Store};
use rentop::config::Language;
use rentop::rules::saga::{NotSent, Operation, Outcome, Step};
use rentop::ui::{Look, plain};

use super::drive::{Drive, Locks};
use super::support::Ran;
use super::support::stage::{INFER, LORA, OLD_EXP, Stage, TRAINER, comes, lone, outcome};
use super::{Duration, Harm, answer, html};

/// How an action is begun.
#[derive(Clone, Copy, Debug)]
pub enum By {
    /// By the real binary: the arguments.
    Command(&'static [&'static str]),
    /// By the library, over the real ledger and HTTP: what no command does.
    Library,
}

/// An action at a provider, and its requests.
#[derive(Clone, Copy, Debug)]
pub struct Act {
    pub name: &'static str,
    pub action: Action,
    pub by: By,
    /// What it is done to; a store stands in the account of the machine beside it.
    pub id: &'static str,
    beside: &'static str,
    /// Method and a part of the path of the request that changes something.
    pub change: (&'static str, &'static str),
    /// A part of the path of the look by id; `None` where nobody can be asked.
    pub look: Option<&'static str>,
    /// A part of the path of the list that proves it.
    pub list: &'static str,
    /// Where the machine is before and after.
    pub lives: [Life; 2],
    /// How much of the table it goes through.
    pub rows: Rows,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rows {
    All,
    /// Nothing hangs at what only reads: the adapter's client is the same as elsewhere.
    NoHangs,
    /// The request that changes something only.
    Change,
}

const POD: Act = Act {
    name: "stop at RunPod",
    action: Action::Stop,
    by: By::Command(&["stop", "trainer", "--yes"]),
    id: TRAINER,
    beside: TRAINER,
    change: ("POST", "/action"),
    look: Some("/v2/pods/pod"),
    list: "/v2/pods",
    lives: [Life::Running, Life::Stopped],
    rows: Rows::All,
};
const CONTRACT: Act = Act {
    name: "stop at Vast.ai",
    action: Action::Stop,
    by: By::Command(&["stop", "sd-lora", "--yes"]),
    id: LORA,
    beside: LORA,
    change: ("PUT", "/api/v0/instances/"),
    look: Some("/api/v0/instances/3"),
    list: "/api/v1/instances",
    lives: [Life::Running, Life::Stopped],
    rows: Rows::Change,
};
const AT_LAMBDA: Act = Act {
    name: "release at Lambda",
    action: Action::Release,
    by: By::Command(&["release", "infer", "--yes", "--lose-data"]),
    id: INFER,
    beside: INFER,
    change: ("POST", "/terminate"),
    look: Some("/api/v1/instances/"),
    list: "/api/v1/instances",
    lives: [Life::Running, Life::Gone],
    rows: Rows::NoHangs,
};

impl Act {
    /// Lets everything pass that reads a list before the request is sent: a fault that is planned next meets the
    /// list after it.
    pub fn let_lists_pass(&self, world: &Shared) {
        let pass = |path: &str, times| world.fault("GET", path, times, Harm::Delay(Duration::ZERO));
        // A look by id may have the list's path in its own, and Vast.ai's asks the list as well.
        if let Some(look) = self.look {
            pass(look, u32::MAX);
        }
        pass(self.list, if self.list == CONTRACT.list { 2 } else { 1 });
    }
}

/// A line each. What the library does today goes by command once there is one: that is its `by`.
pub const ACTS: &[Act] = &[
    POD,
    Act {
        name: "start at RunPod",
        action: Action::Start,
        by: By::Command(&["start", "old-exp", "--yes"]),
        id: OLD_EXP,
        lives: [Life::Stopped, Life::Running],
        rows: Rows::NoHangs,
        ..POD
    },
    Act {
        name: "release at RunPod",
        action: Action::Release,
        by: By::Command(&["release", "trainer", "--yes", "--lose-data"]),
        change: ("DELETE", "/v2/pods/"),
        lives: [Life::Running, Life::Gone],
        ..POD
    },
    CONTRACT,
    Act {
        name: "start at Vast.ai",
        action: Action::Start,
        by: By::Command(&["start", "sd-lora", "--yes"]),
        lives: [Life::Stopped, Life::Running],
        ..CONTRACT
    },
    Act {
        name: "release at Vast.ai",
        action: Action::Release,
        by: By::Command(&["release", "sd-lora", "--yes", "--lose-data"]),
        change: ("DELETE", "/api/v0/instances/"),
        lives: [Life::Running, Life::Gone],
        rows: Rows::NoHangs,
        ..CONTRACT
    },
    AT_LAMBDA,
    Act {
        name: "restart at RunPod",
        action: Action::Restart,
        by: By::Library,
        lives: [Life::Running, Life::Running],
        rows: Rows::Change,
        ..POD
    },
    Act {
        name: "restart at Lambda",
        action: Action::Restart,
        by: By::Library,
        change: ("POST", "/restart"),
        lives: [Life::Running, Life::Running],
        rows: Rows::Change,
        ..AT_LAMBDA
    },
    Act {
        name: "delete at RunPod",
        action: Action::Delete,
        by: By::Library,
        id: "simnv0left",
        change: ("DELETE", "/v2/network-volumes/"),
        look: Some("/v2/network-volumes/"),
        list: "/v2/network-volumes",
        rows: Rows::NoHangs,
        ..POD
    },
    Act {
        name: "delete at Vast.ai",
        action: Action::Delete,
        by: By::Library,
        id: "5100001",
        change: ("DELETE", "/api/v0/volumes/"),
        look: None,
        list: "/api/v0/volumes",
        rows: Rows::NoHangs,
        ..CONTRACT
    },
    Act {
        name: "delete at Lambda",
        action: Action::Delete,
        by: By::Library,
        id: "f5000000000000000000000000000001",
        change: ("DELETE", "/api/v1/filesystems/"),
        look: None,
        list: "/api/v1/file-systems",
        rows: Rows::NoHangs,
        ..AT_LAMBDA
    },
];

/// A request on the way of an action.
#[derive(Clone, Copy, Debug, PartialEq)]
enum At {
    /// The look before anything is sent.
    Look,
    Change,
    /// The list after it, that is to prove it.
    List,
    /// The question by id after it, once its outcome is in doubt.
    Question,
}

/// What goes wrong there.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wrong {
    /// Carried out, and then …
    AppliedError,
    AppliedDrop,
    AppliedHang,
    AppliedPage,
    /// Promised, and not done.
    Ignored,
    /// Not done, or not answered.
    Error,
    Drop,
    Hang,
    Page,
    Refused,
    Wait,
}

use Wrong::*;

const AT_THE_CHANGE: [Wrong; 10] =
    [AppliedError, AppliedDrop, AppliedHang, AppliedPage, Ignored, Error, Drop, Page, Refused, Wait];
const AT_A_READ: [Wrong; 6] = [Error, Drop, Hang, Page, Refused, Wait];

impl Wrong {
    fn harm(self) -> Harm {
        match self {
            AppliedError => Harm::ApplyThenError(500),
            AppliedDrop => Harm::ApplyThenDrop,
            AppliedHang => Harm::ApplyThenHang,
            AppliedPage => Harm::ApplyThenPage,
            Ignored => Harm::AcceptThenIgnore,
            Error => answer(500, r#"{"detail":"it failed"}"#),
            Drop => Harm::Drop,
            Hang => Harm::Hang,
            Page => html(),
            Refused => answer(400, r#"{"detail":"not today"}"#),
            Wait => Harm::Answer {
                status: 429,
                headers: vec![("retry-after", "1".to_owned())],
                content_type: "application/json",
                body: "{}".to_owned(),
            },
        }
    }

    /// How many requests it takes until one question has failed: some are asked three times over.
    fn once(self) -> u32 {
        if matches!(self, Error | Drop | Wait) { 3 } else { 1 }
    }

    fn is_slow(self) -> bool {
        matches!(self, AppliedHang | Hang)
    }
}

#[derive(Clone, Copy, Debug)]
struct Row {
    act: &'static Act,
    at: At,
    wrong: Wrong,
    /// How many requests it meets, after those that it lets pass.
    times: u32,
}

/// What must come of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Done,
    DoneDespite,
    Refused,
    CouldNotLook,
    /// Neither proven nor refuted: a promise, or in doubt.
    Open {
        doubt: bool,
    },
}

fn expected(row: &Row) -> (End, usize, usize) {
    match (row.at, row.wrong) {
        (At::Look, Refused) => (End::CouldNotLook, 0, 0),
        (At::Look, _) if row.times == u32::MAX => (End::CouldNotLook, 0, 0),
        (At::Look | At::List, _) => (End::Done, 1, 1),
        (At::Question, _) => (End::DoneDespite, 1, 1),
        (At::Change, AppliedError | AppliedDrop | AppliedHang | AppliedPage) => {
            // A restart begins and ends in running: where the start time is not told anew, nothing proves it.
            let proof = row.act.action != Action::Restart || row.act.list.starts_with("/v2/");
            (if proof { End::DoneDespite } else { End::Open { doubt: true } }, 1, 1)
        }
        // An accepted restart is believed: the machine was running before.
        (At::Change, Ignored) if row.act.action == Action::Restart => (End::Done, 1, 0),
        (At::Change, Ignored) => (End::Open { doubt: false }, 1, 0),
        (At::Change, Error | Drop | Page) => (End::Open { doubt: true }, 1, 0),
        (At::Change, Refused) => (End::Refused, 1, 0),
        (At::Change, Wait) => (End::Done, 2, 1),
        (At::Change, Hang) => unreachable!("the same as an answer that never comes after the deed"),
    }
}

fn rows() -> Vec<Row> {
    let reads = [At::Look, At::List, At::Question];
    let mut rows = Vec::new();
    for act in ACTS {
        // A hang takes half a minute, and the client that gives it up is the same everywhere.
        let hangs = matches!(act.by, By::Command(_));
        let at_the_change = AT_THE_CHANGE.into_iter().filter(|wrong| hangs || *wrong != AppliedHang);
        rows.extend(at_the_change.map(|wrong| Row { act, at: At::Change, wrong, times: 1 }));
        if act.rows == Rows::Change {
            continue;
        }
        // Where nobody can be asked by id there is neither a look nor a question.
        for at in reads.into_iter().filter(|at| *at == At::List || act.look.is_some()) {
            let harms = AT_A_READ.into_iter().filter(|wrong| act.rows == Rows::All || *wrong != Hang);
            rows.extend(harms.clone().map(|wrong| Row { act, at, wrong, times: wrong.once() }));
            if at == At::Look {
                let for_good = harms.filter(|wrong| *wrong != Hang);
                rows.extend(for_good.map(|wrong| Row { act, at, wrong, times: u32::MAX }));
            }
        }
    }
    rows
}

/// How many rows run at a time: most of them wait.
const AT_A_TIME: usize = 96;

/// Actions under faults at every request: one effect or none, and a clear word.
#[test]
fn every_request_of_every_action_may_go_wrong_in_every_way() {
    let mut rows = rows();
    // Whatever takes half a minute begins first.
    rows.sort_by_key(|row| !row.wrong.is_slow());
    let failures = run_all(&rows, AT_A_TIME, |row| {
        run(row).map_err(|why| format!("{}, {:?} {:?} ×{}: {why}", row.act.name, row.at, row.wrong, row.times))
    });
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), rows.len(), failures.join("\n"));
}

/// Runs all rows in their order, so many at a time. Returns what failed.
pub fn run_all<T: Sync>(rows: &[T], at_a_time: usize, run: impl Fn(&T) -> Result<(), String> + Sync) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let work = || {
        let taken = std::iter::from_fn(|| rows.get(next.fetch_add(1, Ordering::Relaxed)));
        taken.filter_map(|row| run(row).err()).collect::<Vec<_>>()
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..at_a_time).map(|_| scope.spawn(work)).collect();
        let failed = |worker: std::thread::ScopedJoinHandle<Vec<String>>| worker.join();
        let told = workers.into_iter().map(failed);
        told.flat_map(|failed| failed.expect("a row panicked; its message stands above")).collect()
    })
}

fn run(row: &Row) -> Result<(), String> {
    let act = row.act;
    let stage = lone(act.beside);
    set_up(row, &stage);
    let (end, sent, done) = expected(row);
    let said = match act.by {
        By::Command(args) => by_command(row, &stage, args, end)?,
        By::Library => by_library(row, &stage, end)?,
    };
    let audit = stage.audit();
    let told = || format!("{said:?}\n{audit:#?}");
    let require = |fact: bool, what: &str| if fact { Ok(()) } else { Err(format!("{what}\n{}", told())) };
    let [operation] = audit.as_slice() else { return Err(format!("one action and not these: {}", told())) };
    require(is_so(operation, end), &format!("it should be {end:?}"))?;
    require(stage.changes() == sent, &format!("sent {} times and not {sent}", stage.changes()))?;
    let deeds = stage.deeds_in(act.beside, act.id);
    require(deeds == vec![act.action.word(); done], &format!("done {deeds:?} and not {done} times"))?;
    if act.action != Action::Delete && done == 0 {
        require(stage.life(act.id) == act.lives[0], "the machine is not as it was")?;
    }
    // What a person was told last is what the ledger holds.
    let line = plain::operation_line(operation, &look(), Timestamp::now());
    if operation.is_ended() {
        require(said.contains(&line), &format!("it does not say `{line}`"))?;
    }
    if let End::Open { .. } = end {
        overdue(row, &stage)?;
    }
    Ok(())
}

fn set_up(row: &Row, stage: &Stage) {
    let act = row.act;
    let world = stage.world_of(act.beside);
    {
        let mut world = world.lock();
        if act.action == Action::Delete {
            let created_at = world.now() - SignedDuration::from_hours(24 * 9);
            let (id, name) = (act.id.to_owned(), "old-data".to_owned());
            world.stores.push(Store { id, name, size_gb: 100, region: "EU-SE-1".to_owned(), created_at, gone: false });
        } else {
            world.machine(act.id).expect("it is of this account").life = act.lives[0];
        }
    }
    let look = act.look.unwrap_or("nobody can be asked by id");
    match row.at {
        At::Look => world.fault("GET", look, row.times, row.wrong.harm()),
        At::Change => world.fault(act.change.0, act.change.1, 1, row.wrong.harm()),
        At::List => {
            act.let_lists_pass(world);
            world.fault("GET", act.list, row.times, row.wrong.harm());
        }
        At::Question => {
            world.fault(act.change.0, act.change.1, 1, Harm::ApplyThenError(500));
            world.fault("GET", look, 1, Harm::Delay(Duration::ZERO));
            world.fault("GET", look, row.times, row.wrong.harm());
        }
    }
}

/// Runs the real binary to where it must come. Returns what it said.
fn by_command(row: &Row, stage: &Stage, args: &[&str], end: End) -> Result<String, String> {
    let ran = match end {
        // It would go on looking for minutes.
        End::Open { doubt: true } => {
            let mut process = stage.start(args);
            let world = stage.world_of(row.act.beside);
            let sent = comes(|| world.lock().count(row.act.change.0, row.act.change.1) > 0);
            let open = sent && comes(|| stage.audit().first().is_some_and(|operation| is_so(operation, end)));
            process.kill().unwrap();
            let ran = Ran::of(process.wait_with_output().unwrap());
            if !open {
                return Err(format!("sent: {sent}, and not {end:?}: {ran:?}\n{:#?}", stage.audit()));
            }
            return Ok(String::new());
        }
        End::Open { doubt: false } => stage.lab.run(&[args, &["--no-wait"]].concat()),
        _ => stage.lab.run(args),
    };
    let code = match end {
        End::Done | End::DoneDespite | End::Open { .. } => 0,
        End::Refused | End::CouldNotLook => 1,
    };
    if ran.code != Some(code) {
        return Err(format!("exit {:?} and not {code}: {ran:?}\n{:#?}", ran.code, stage.audit()));
    }
    let audit = stage.lab.run(&["audit", "--json"]).json();
    let word = match end {
        End::Done | End::DoneDespite => "done",
        End::Refused => "refused",
        End::CouldNotLook => "not_sent",
        End::Open { .. } => "confirming",
    };
    if audit["actions"][0]["outcome"] != word {
        return Err(format!("not `{word}`: {audit}"));
    }
    let Ran { stdout, stderr, .. } = ran;
    Ok(stdout + &stderr)
}

/// The same through the library, over the same ledger and simulators.
fn by_library(row: &Row, stage: &Stage, end: End) -> Result<String, String> {
    driven(stage, async |drive| {
        drive.begin(row.act.action, row.act.id).await?;
        drive.until("its end", |state| state.world.operations.values().any(|operation| is_so(operation, end))).await
    })
}

/// Whoever collects next takes it up, and past its deadline says that it is not so.
fn overdue(row: &Row, stage: &Stage) -> Result<(), String> {
    let sent = stage.changes();
    let words = match row.act.action {
        Action::Start | Action::Restart => "still not running",
        Action::Stop | Action::Release | Action::Delete => "still billing!",
        Action::Checkpoint => return Err("a checkpoint is never sent".to_owned()),
    };
    let line = driven(stage, async |drive| {
        drive.until("it is taken up", |state| state.world.under_way().next().is_some()).await?;
        drive.later(SignedDuration::from_mins(12));
        drive.until("its deadline", |state| state.world.under_way().any(Operation::is_overdue)).await
    })?;
    if !line.contains(words) || stage.changes() != sent {
        return Err(format!("`{line}` does not say `{words}`, or it was sent again"));
    }
    Ok(())
}

/// Lets somebody drive. Returns what the program then says of its action.
fn driven(stage: &Stage, way: impl AsyncFnOnce(&mut Drive) -> Result<(), String>) -> Result<String, String> {
    // One thread is enough for what mostly waits.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let line = runtime.block_on(async {
        let mut drive = Drive::over(stage, Locks::default());
        way(&mut drive).await?;
        let operation = drive.state.world.operations.values().next().expect("it was waited for").clone();
        drive.end();
        Ok(plain::operation_line(&operation, &look(), Timestamp::now()))
    });
    runtime.shutdown_timeout(Duration::from_millis(100));
    line
}

fn is_so(operation: &Operation, end: End) -> bool {
    match (&operation.step, outcome(operation)) {
        (_, Some(Outcome::Done { despite })) => end == if despite.is_some() { End::DoneDespite } else { End::Done },
        (_, Some(Outcome::Refused(_))) => end == End::Refused,
        (_, Some(Outcome::NotSent(NotSent::CouldNotLook(_)))) => end == End::CouldNotLook,
        (Step::Confirming { doubt, .. }, None) => end == End::Open { doubt: doubt.is_some() },
        _ => false,
    }
}

fn look() -> Look {
    Look::of_environment(Language::English, &|_| None)
}
