//! `kill -9` between any two steps of an action, of a command and of a screen. The next screen reads back and ends
//! it; nothing is sent a second time.

use jiff::SignedDuration;
use providers::model::Action;
use providers::sim::Life;
use rentop::rules::saga::{NotSent, Operation, Outcome};

use super::support::stage::{Stage, lone, outcome, wait_until};
use super::support::terminal::Terminal;
use super::table::{ACTS, Act, By, Rows, run_all};
use super::{Duration, Harm, answer, html};

/// Between which steps it is killed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Moment {
    /// Of a screen: it could still be taken back.
    Countdown,
    Looking,
    /// The request is out, and was not carried out.
    Sent,
    /// The request is out and was carried out; nobody has answered.
    CarriedOut,
    /// The answer is here, and no list has proven it.
    Accepted,
    /// Told to wait before it is sent once more.
    Waiting,
    /// Sent once more after that, and not carried out.
    SentAgain,
    /// Refused, and looking whether it is so already.
    Verifying,
    /// The answer proved nothing, and it is asked for by id.
    Asking,
}

use Moment::*;

const MOMENTS: [Moment; 9] = [Countdown, Looking, Sent, CarriedOut, Accepted, Waiting, SentAgain, Verifying, Asking];

/// What must be true of a process that is killed at a moment, and of what becomes of its action.
struct Expected {
    step: &'static str,
    sent: u32,
    done: bool,
    /// What the next screen says of it in Activity.
    says: &'static str,
    /// `None`: it stays in doubt until the machine says otherwise.
    end: Option<fn(&Outcome) -> bool>,
}

impl Moment {
    fn expected(self) -> Expected {
        let unsent: fn(&Outcome) -> bool = |end| *end == Outcome::NotSent(NotSent::ProgramEnded);
        let done: fn(&Outcome) -> bool = |end| *end == Outcome::Done { despite: None };
        let despite: fn(&Outcome) -> bool = |end| matches!(end, Outcome::Done { despite: Some(_) });
        let refused: fn(&Outcome) -> bool = |end| matches!(end, Outcome::Refused(_));
        let (step, sent, carried_out, says, end) = match self {
            Countdown => ("countdown", 0, false, "rentop ended first", Some(unsent)),
            Looking => ("checking", 0, false, "rentop ended first", Some(unsent)),
            Sent => ("sending", 1, false, "outcome unknown", None),
            CarriedOut => ("sending", 1, true, "although", Some(despite)),
            Accepted => ("confirming", 1, true, "done and proven", Some(done)),
            Waiting => ("waiting", 1, false, "refused", Some(refused)),
            SentAgain => ("sending", 2, false, "outcome unknown", None),
            Verifying => ("verifying", 1, false, "refused", Some(refused)),
            Asking => ("confirming", 1, true, "although", Some(despite)),
        };
        Expected { step, sent, done: carried_out, says, end }
    }

    /// Plans what holds the process there. Returns the request at which it is held, and which one of these.
    fn hold(self, act: &Act, stage: &Stage) -> (&'static str, &'static str, usize) {
        let world = stage.world_of(act.id);
        let (look, change) = (("GET", act.look.expect("machines are asked for by id")), act.change);
        let fault = |(method, path): (&'static str, &str), harm| world.fault(method, path, 1, harm);
        let wait = |seconds: u32| Harm::Answer {
            status: 429,
            headers: vec![("retry-after", seconds.to_string())],
            content_type: "application/json",
            body: "{}".to_owned(),
        };
        let pass = || Harm::Delay(Duration::ZERO);
        // A list that comes would prove it.
        let no_lists = || {
            act.let_lists_pass(world);
            world.fault("GET", act.list, u32::MAX, html());
        };
        let ((method, path), nth) = match self {
            Countdown => (look, 0),
            Looking => {
                fault(look, Harm::Hang);
                (look, 1)
            }
            Sent => {
                fault(change, Harm::Hang);
                (change, 1)
            }
            CarriedOut => {
                fault(change, Harm::ApplyThenHang);
                (change, 1)
            }
            Accepted => {
                no_lists();
                (change, 1)
            }
            Waiting => {
                fault(change, wait(60));
                (change, 1)
            }
            SentAgain => {
                fault(change, wait(1));
                fault(change, Harm::Hang);
                (change, 2)
            }
            Verifying => {
                fault(look, pass());
                fault(look, Harm::Hang);
                fault(change, answer(400, r#"{"detail":"not today"}"#));
                (look, 2)
            }
            Asking => {
                fault(look, pass());
                fault(look, Harm::Hang);
                fault(change, Harm::ApplyThenError(500));
                no_lists();
                (look, 2)
            }
        };
        (method, path, nth)
    }
}

/// How many rows run at a time: a countdown is over after five seconds, whoever has to wait for a processor.
const AT_A_TIME: usize = 24;

/// Who is killed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Who {
    Command,
    Screen,
}

#[test]
fn a_killed_process_leaves_one_effect_or_none() {
    let mut rows = Vec::new();
    for act in ACTS.iter().filter(|act| act.rows != Rows::Change && matches!(act.by, By::Command(_))) {
        let typed = act.action == Action::Release;
        for moment in MOMENTS {
            if moment != Countdown {
                rows.push((act, Who::Command, moment));
            }
            // The screen is the same over every provider.
            if act.list == "/v2/pods" && !(typed && moment == Countdown) {
                rows.push((act, Who::Screen, moment));
            }
        }
    }
    let failures = run_all(&rows, AT_A_TIME, |(act, who, moment)| {
        kill(act, *who, *moment).map_err(|why| format!("{}, {who:?} {moment:?}: {why}", act.name))
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn kill(act: &Act, who: Who, moment: Moment) -> Result<(), String> {
    let stage = lone(act.id);
    let world = stage.world_of(act.id);
    {
        let mut world = world.lock();
        world.machine(act.id).expect("it is of this account").life = act.lives[0];
        // Long enough to be killed before a list proves anything.
        world.transition = SignedDuration::from_secs(4);
    }
    let expected = moment.expected();
    let (method, path, nth) = moment.hold(act, &stage);
    let mut process = Process::start(act, who, &stage);
    let name = format!("{}, {who:?} {moment:?}", act.name);
    wait_until(&name, || world.lock().count(method, path) >= nth);
    let first = || stage.audit().into_iter().next();
    // A request that changes anything was on disk before the provider saw it.
    let before = first();
    let at_the_step = |operation: &Operation| operation.step.word() == expected.step && operation.sent == expected.sent;
    wait_until(&name, || first().as_ref().is_some_and(at_the_step));
    process.kill();
    // What was to hold it and did not meet it is not for the next one.
    world.lock().faults.clear();
    let told = || format!("{:#?}", stage.audit());
    let require = |fact: bool, what: &str| if fact { Ok(()) } else { Err(format!("{what}\n{}", told())) };
    let written = before.is_some_and(|operation| operation.sent == expected.sent);
    require(written || method == "GET", "a request was on its way before its record")?;
    require(first().as_ref().is_some_and(at_the_step), "it was not killed where it should have been")?;
    goes_on(act, &stage, &expected, &require)
}

/// The next screen tells what became of it, and sends nothing.
fn goes_on(
    act: &Act,
    stage: &Stage,
    expected: &Expected,
    require: &dyn Fn(bool, &str) -> Result<(), String>,
) -> Result<(), String> {
    let world = stage.world_of(act.id);
    let mut screen = Terminal::start(&stage.lab, &[], 120, 30);
    screen.wait_for("1 Fleet");
    screen.press("6");
    screen.wait_for(expected.says);
    let sent_once = || {
        let deeds = if expected.done { vec![act.action.word()] } else { vec![] };
        require(stage.changes() == expected.sent as usize, "it was sent again")?;
        require(stage.deeds(act.id) == deeds, &format!("done: {:?}", stage.deeds(act.id)))
    };
    sent_once()?;
    if let Some(is_right) = expected.end {
        let ended = || stage.audit().first().and_then(outcome).cloned();
        wait_until(expected.says, || ended().is_some());
        require(ended().as_ref().is_some_and(is_right), "it ended otherwise")?;
    } else {
        // Its row says so, too, and nothing can be taken back.
        screen.press("1");
        screen.wait_for("outcome unknown");
        screen.press("u");
        screen.wait_for("nothing can be taken back");
        // Later it turns out to have been carried out.
        world.lock().machine(act.id).expect("it is of this account").life = act.lives[1];
        screen.press("6");
        screen.wait_for("although");
        return sent_once();
    }
    let at_last = act.lives[usize::from(expected.done)];
    wait_until("the machine at rest", || stage.life(act.id) == at_last);
    if at_last != Life::Gone && !expected.done {
        screen.press("1");
        screen.wait("the row at rest", |text| !text.contains("undo") && !text.contains("unknown"));
    }
    sent_once()
}

/// What is killed: a command, or a screen in its terminal.
enum Process {
    Command(std::process::Child),
    Screen(Box<Terminal>),
}

impl Process {
    fn start(act: &Act, who: Who, stage: &Stage) -> Self {
        let By::Command(args) = act.by else { unreachable!("rows are of commands") };
        if who == Who::Command {
            return Process::Command(stage.start(args));
        }
        let name = args[1];
        let mut screen = Terminal::start(&stage.lab, &[], 120, 30);
        screen.select(name);
        if act.action == Action::Release {
            screen.press("x");
            screen.wait_for("asks for its name first");
            // The same key at once would count as held.
            screen.listen(Duration::from_millis(200));
            screen.press("x");
            screen.wait_for(&format!("type {name} and press enter"));
            screen.press(&format!("{name}\r"));
        } else {
            screen.press("s");
            screen.wait_for("u undo");
        }
        Process::Screen(Box::new(screen))
    }

    fn kill(&mut self) {
        match self {
            Process::Command(process) => {
                process.kill().unwrap();
                process.wait().unwrap();
            }
            Process::Screen(screen) => {
                screen.signal("KILL");
                screen.wait_end();
            }
        }
    }
}
