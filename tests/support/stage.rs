//! A fleet to act on: machines that can be stopped, one that a stop would erase, one that cannot be stopped.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use providers::sim::{Life, Machine, Shared};
use rentop::ledger::Ledger;
use rentop::rules::saga::{Operation, Outcome, Step};
use rust_decimal::Decimal;

use super::{Account, Lab, world};

/// Runs at RunPod; a stop keeps its disk.
pub const TRAINER: &str = "podtrainer0001";
/// Runs at RunPod without a lasting disk (DATA-05).
pub const SCRATCH: &str = "podscratch0002";
/// Stopped at RunPod.
pub const OLD_EXP: &str = "podoldexp00003";
/// Runs at Vast.ai, interruptible.
pub const LORA: &str = "31000001";
/// Runs at Lambda, which cannot stop (LIFE-08).
pub const INFER: &str = "c0ffee00000000000000000000000001";
/// The longest wait for something that must come.
const PATIENCE: Duration = Duration::from_secs(150);

/// All their names.
pub const NAMES: [&str; 5] = ["trainer", "scratch", "old-exp", "sd-lora", "infer"];

pub struct Stage {
    pub lab: Lab,
    pub runpod: Shared,
    pub vast: Shared,
    pub lambda: Shared,
}

/// All of it, served.
pub fn stage() -> Stage {
    set(|_| true)
}

/// The account of one machine alone: nobody else is asked.
pub fn lone(id: &str) -> Stage {
    set(|world| world.lock().machine(id).is_some())
}

fn set(served: impl Fn(&Shared) -> bool) -> Stage {
    let mut runpod = world(1.0);
    let now = runpod.now();
    runpod.machines = vec![
        Machine { compute_per_hour: Decimal::new(189, 2), ..Machine::new(TRAINER, "trainer", now) },
        Machine { disk_gb: 0, ..Machine::new(SCRATCH, "scratch", now) },
        Machine { life: Life::Stopped, ..Machine::new(OLD_EXP, "old-exp", now) },
    ];
    let mut vast = world(1.0);
    vast.machines = vec![Machine { spot: true, ..Machine::new(LORA, "sd-lora", now) }];
    let mut lambda = world(1.0);
    lambda.machines = vec![Machine { gpu: "gpu_1x_a10".to_owned(), ..Machine::new(INFER, "infer", now) }];
    let [runpod, vast, lambda] = [runpod, vast, lambda].map(Shared::new);
    let account = |provider, name, world: &Shared| Account { provider, name, world: world.clone(), extra: "" };
    let accounts =
        vec![account("runpod", "team", &runpod), account("vast", "me", &vast), account("lambda", "lab", &lambda)];
    let lab = Lab::new(accounts.into_iter().filter(|account| served(&account.world)).collect());
    Stage { lab, runpod, vast, lambda }
}

impl Stage {
    pub fn worlds(&self) -> [&Shared; 3] {
        [&self.runpod, &self.vast, &self.lambda]
    }

    /// Requests so far that would change anything.
    pub fn changes(&self) -> usize {
        let deeds = |world: &Shared| {
            let world = world.lock();
            // RunPod's balance is asked for with a POST.
            let posts = world.count("POST", "") - world.count("POST", "/graphql");
            posts + world.count("PUT", "") + world.count("DELETE", "")
        };
        self.worlds().into_iter().map(deeds).sum()
    }

    /// The world that a machine is in.
    pub fn world_of(&self, id: &str) -> &Shared {
        self.worlds().into_iter().find(|world| world.lock().machine(id).is_some()).expect("a machine of the stage")
    }

    pub fn life(&self, id: &str) -> Life {
        self.world_of(id).lock().machine(id).expect("it is in this world").life
    }

    /// What was really done to a machine, in order.
    pub fn deeds(&self, id: &str) -> Vec<&'static str> {
        self.deeds_in(id, id)
    }

    /// What was really done to a machine or a store in the account of another machine, in order.
    pub fn deeds_in(&self, account_of: &str, id: &str) -> Vec<&'static str> {
        self.world_of(account_of).lock().deeds_on(id)
    }

    /// Starts the binary, its output kept.
    pub fn start(&self, args: &[&str]) -> Child {
        self.lab.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Every action in the lab's own ledger, checked as in [`audit_in`].
    #[track_caller]
    pub fn audit(&self) -> Vec<Operation> {
        audit_in(&self.lab.state_dir())
    }
}

/// Every action in a ledger, newest first, after a check that its journal leads to it: a line holds its state, and
/// each request that was sent has a line before that says so.
#[track_caller]
pub fn audit_in(state_dir: &Path) -> Vec<Operation> {
    let (ledger, _) = Ledger::open(state_dir, jiff::Timestamp::now()).unwrap();
    let operations = ledger.audit(100, None).unwrap();
    for operation in &operations {
        let lines = ledger.journal(operation.id).unwrap();
        // A process that is at work may have written more meanwhile.
        let at = lines.iter().rposition(|line| line.operation == *operation);
        let until = &lines[..=at.unwrap_or_else(|| panic!("no line holds {operation:?}: {lines:?}"))];
        let sent = until.iter().filter(|line| line.step == "sending").count();
        assert_eq!(sent, operation.sent as usize, "{lines:?}");
        assert!(!operation.is_ended() || until.len() == lines.len(), "it went on after its end: {lines:?}");
    }
    operations
}

/// How an action ended; `None` while it is under way.
pub fn outcome(operation: &Operation) -> Option<&Outcome> {
    match &operation.step {
        Step::Ended { outcome, .. } => Some(outcome),
        _ => None,
    }
}

/// Waits until something that must come is so.
#[track_caller]
pub fn wait_until(what: &str, done: impl Fn() -> bool) {
    assert!(comes(done), "waited in vain: {what}");
}

/// Waits for something that must come; false when it did not.
pub fn comes(done: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while !done() {
        if began.elapsed() > PATIENCE {
            return false;
        }
        // Not so often that who waits and looks into the ledger keeps it from who is to write there.
        std::thread::sleep(Duration::from_millis(30));
    }
    true
}
