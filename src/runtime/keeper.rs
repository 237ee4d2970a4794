//! The ledger's thread: SQL blocks, so it has a thread of its own and hears of work by a channel.

use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use providers::model::{AccountName, BilledLine, Identity};
use tokio::sync::oneshot;

use super::{Outbox, clock};
use crate::app::Event;
use crate::app::event::{ViewEvent, WorldEvent};
use crate::ledger::{self, Ledger, LedgerError};
use crate::rules::memory::{Collector, Keep, LedgerNotice, Memory, Owner, Past};
use crate::rules::saga::{OpId, Operation};
use crate::rules::settings::Setting;
use crate::rules::spend::{Answer, Assignment, Marking, Question, Summed};
use crate::rules::usage::UsageEntry;

/// A claim on the ledger runs out after this unless it is renewed.
const CLAIM: SignedDuration = SignedDuration::from_secs(30);

/// A clock may be set by so much without making a living process look younger than what it does.
const CLOCK_STEP: SignedDuration = SignedDuration::from_mins(1);

/// Called on the ledger's thread when a step is on disk.
pub type OnDisk = Box<dyn FnOnce() + Send>;

enum Work {
    Claim,
    Recall,
    Keep(Box<Keep>),
    Set(Identity, Setting),
    UseZone(TimeZone),
    /// A day, and the number of the question.
    SumUp(Date, u64),
    KeepBilled {
        account: AccountName,
        from: Timestamp,
        to: Timestamp,
        lines: Vec<BilledLine>,
    },
    Assign(Vec<Assignment>),
    MarkWaste(Vec<Marking>),
    NoteUnwatched(Vec<AccountName>),
    Rename {
        from: AccountName,
        to: AccountName,
    },
    KeepUsage(Vec<UsageEntry>),
    /// Since when, if at all, and whether the most of the week is asked for.
    RecallUsage(Option<Timestamp>, bool),
    Spend(Question, Asker),
    Remembered(oneshot::Sender<Result<Memory, LedgerError>>),
    Past(oneshot::Sender<Result<Past, LedgerError>>),
    /// Whoever put this waits until all that was put before is done.
    Reached(oneshot::Sender<()>),
    Record(Box<Operation>, Option<OnDisk>),
    /// The background check found damage.
    Damaged(String),
    Audit(u32, oneshot::Sender<Result<Vec<Operation>, LedgerError>>),
    End {
        release: bool,
    },
}

/// Who asked what was spent.
enum Asker {
    Screen,
    Command(oneshot::Sender<Result<Answer, LedgerError>>),
}

/// A handle on the ledger's thread.
pub struct Keeper {
    work: mpsc::Sender<Work>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Starts the thread. The ledger is opened there, so that nothing waits for the disk here. With `check`
    /// the file is read for damage in the background, and copied when it is sound.
    pub fn start(state_dir: PathBuf, owner: Owner, outbox: Outbox, check: bool) -> std::io::Result<Self> {
        let (work, todo) = mpsc::channel();
        let report = check.then(|| work.clone());
        let thread = std::thread::Builder::new().name("ledger".to_owned()).spawn(move || {
            let ledger = open(&state_dir, &outbox);
            if let (Some(report), Some(path)) = (report, ledger.as_ref().and_then(Ledger::path)) {
                look_after(path.to_owned(), report);
            }
            Desk::new(ledger, owner, outbox).serve(todo);
        })?;
        Ok(Keeper { work, thread: Some(thread) })
    }

    pub fn claim(&self) {
        self.put(Work::Claim);
    }
    pub fn recall(&self) {
        self.put(Work::Recall);
    }
    pub fn keep(&self, keep: Box<Keep>) {
        self.put(Work::Keep(keep));
    }
    pub fn set(&self, identity: Identity, setting: Setting) {
        self.put(Work::Set(identity, setting));
    }
    /// In which zone days begin: told before anything else.
    pub fn use_zone(&self, zone: TimeZone) {
        self.put(Work::UseZone(zone));
    }
    pub fn sum_up(&self, day: Date, asked: u64) {
        self.put(Work::SumUp(day, asked));
    }
    pub fn keep_billed(&self, account: AccountName, from: Timestamp, to: Timestamp, lines: Vec<BilledLine>) {
        self.put(Work::KeepBilled { account, from, to, lines });
    }
    pub fn assign(&self, assignments: Vec<Assignment>) {
        self.put(Work::Assign(assignments));
    }
    pub fn mark_waste(&self, markings: Vec<Marking>) {
        self.put(Work::MarkWaste(markings));
    }
    pub fn note_unwatched(&self, accounts: Vec<AccountName>) {
        self.put(Work::NoteUnwatched(accounts));
    }
    pub fn rename(&self, from: AccountName, to: AccountName) {
        self.put(Work::Rename { from, to });
    }
    pub fn keep_usage(&self, entries: Vec<UsageEntry>) {
        self.put(Work::KeepUsage(entries));
    }
    /// The answer comes as an event.
    pub fn recall_usage(&self, from: Option<Timestamp>, peaks: bool) {
        self.put(Work::RecallUsage(from, peaks));
    }
    /// The answer comes as an event.
    pub fn ask_spend(&self, question: Question) {
        self.put(Work::Spend(question, Asker::Screen));
    }

    /// What was spent.
    pub async fn spend(&self, question: Question) -> Option<Result<Answer, LedgerError>> {
        let (answer, asked) = oneshot::channel();
        self.put(Work::Spend(question, Asker::Command(answer)));
        asked.await.ok()
    }

    /// What the ledger knows now, whoever wrote it.
    pub async fn remembered(&self) -> Option<Result<Memory, LedgerError>> {
        let (answer, asked) = oneshot::channel();
        self.put(Work::Remembered(answer));
        asked.await.ok()
    }

    /// Every resource that was ever seen.
    pub async fn past(&self) -> Option<Result<Past, LedgerError>> {
        let (answer, asked) = oneshot::channel();
        self.put(Work::Past(answer));
        asked.await.ok()
    }

    /// Waits until all that was put before is done.
    pub async fn reached(&self) {
        let (answer, asked) = oneshot::channel();
        self.put(Work::Reached(answer));
        // A thread that has ended does nothing any more: there is nothing to wait for.
        drop(asked.await);
    }

    /// Writes a step down. With `then`, it is called once the step is on disk, and not at all when it
    /// could not be written.
    pub fn record(&self, operation: Box<Operation>, then: Option<OnDisk>) {
        self.put(Work::Record(operation, then));
    }

    /// The latest ended actions, newest first.
    pub async fn audit(&self, limit: u32) -> Option<Result<Vec<Operation>, LedgerError>> {
        let (answer, asked) = oneshot::channel();
        self.put(Work::Audit(limit, answer));
        asked.await.ok()
    }

    fn put(&self, work: Work) {
        // The thread ends only after `End`, which is the last thing put.
        drop(self.work.send(work));
    }

    /// Finishes all work that was put before, gives the claim back, and waits for it, but not for ever.
    pub fn end(mut self, release: bool) {
        self.put(Work::End { release });
        let Some(thread) = self.thread.take() else { return };
        let patience = std::time::Instant::now() + Duration::from_secs(3);
        while !thread.is_finished() && std::time::Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(2));
        }
        if thread.is_finished() {
            drop(thread.join());
        }
    }
}

fn open(state_dir: &std::path::Path, outbox: &Outbox) -> Option<Ledger> {
    match Ledger::open(state_dir, clock::now()) {
        Ok((ledger, notices)) => {
            for notice in notices {
                outbox.put(Event::World(WorldEvent::Ledger(notice)));
            }
            Some(ledger)
        }
        Err(error) => {
            tracing::error!(%error, "the ledger cannot be opened");
            outbox.put(Event::World(WorldEvent::Ledger(LedgerNotice::NotWritable { why: error.to_string() })));
            None
        }
    }
}

/// Reads the file for damage on a thread of its own, and copies a sound one.
fn look_after(path: PathBuf, report: mpsc::Sender<Work>) {
    let looking = move || match ledger::quick_check(&path).and_then(|()| ledger::back_up(&path)) {
        Ok(copy) => tracing::info!(copy = %copy.display(), "the ledger is sound"),
        // Nobody listens any more only when the program is ending.
        Err(LedgerError::Damaged { why }) => drop(report.send(Work::Damaged(why))),
        Err(error) => tracing::warn!(%error, "the ledger could not be checked"),
    };
    if let Err(error) = std::thread::Builder::new().name("ledger check".to_owned()).spawn(looking) {
        tracing::warn!(%error, "the ledger is not checked");
    }
}

/// What the thread works with. Without a ledger the program runs on and remembers nothing.
struct Desk {
    ledger: Option<Ledger>,
    owner: Owner,
    outbox: Outbox,
    /// What was told last.
    collector: Option<Collector>,
    /// Actions that were not begun, until the state has heard of it and ends them.
    forestalled: BTreeSet<OpId>,
    /// The fleet was recalled, which comes first.
    recalled: bool,
    /// The books are being added up, a piece whenever there is nothing else to do.
    adding_up: bool,
    /// What could not be written, a full disk for instance: first in the order of its coming, once it can be.
    waiting: VecDeque<Box<Keep>>,
}

impl Desk {
    fn new(ledger: Option<Ledger>, owner: Owner, outbox: Outbox) -> Self {
        let (collector, forestalled, waiting) = (None, BTreeSet::new(), VecDeque::new());
        Desk { ledger, owner, outbox, collector, forestalled, recalled: false, adding_up: false, waiting }
    }

    fn serve(mut self, todo: mpsc::Receiver<Work>) {
        loop {
            let work = match todo.try_recv() {
                Err(mpsc::TryRecvError::Empty) if self.adding_up && self.recalled => {
                    self.add_up_more();
                    continue;
                }
                Err(mpsc::TryRecvError::Empty) => todo.recv().ok(),
                work => work.ok(),
            };
            let Some(work) = work else { return };
            match work {
                Work::Claim => self.claim(),
                Work::Recall => self.recall(),
                Work::Keep(keep) => self.keep(keep),
                Work::Set(identity, setting) => {
                    self.write("a setting", |ledger| ledger.set(&identity, &setting));
                }
                Work::UseZone(zone) => {
                    self.write("the time zone", |ledger| ledger.use_zone(zone));
                }
                Work::SumUp(day, asked) => self.sum_up(day, asked),
                Work::KeepBilled { account, from, to, lines } => self.keep_billed(account, from, to, &lines),
                Work::Assign(assignments) => {
                    self.write("projects", |ledger| ledger.assign(&assignments));
                }
                Work::MarkWaste(markings) => {
                    self.write("waste", |ledger| ledger.mark(&markings));
                }
                Work::NoteUnwatched(accounts) => {
                    self.write("what is watched", |ledger| ledger.note_unwatched(&accounts));
                }
                Work::Rename { from, to } => {
                    self.write("an account's name", |ledger| ledger.rename(&from, &to));
                }
                Work::KeepUsage(entries) => {
                    self.write("usage", |ledger| ledger.keep_usage(&entries, clock::now()));
                }
                Work::RecallUsage(from, peaks) => self.recall_usage(from, peaks),
                Work::Spend(question, asker) => self.spend(&question, asker),
                // Nobody waits for these any more only when the command was interrupted.
                Work::Remembered(answer) => {
                    drop(answer.send(self.open_ledger().and_then(|ledger| Ok(ledger.recall(clock::now())?.0))));
                }
                Work::Past(answer) => drop(answer.send(self.open_ledger().and_then(|ledger| ledger.past()))),
                Work::Reached(answer) => drop(answer.send(())),
                Work::Record(operation, then) => self.record(&operation, then),
                Work::Damaged(why) => self.set_aside(&why),
                Work::Audit(limit, answer) => {
                    // An empty list would say that nothing was ever done.
                    let audit = self.open_ledger().and_then(|ledger| ledger.audit(limit, None));
                    // Nobody waits for it any more only when the command was interrupted.
                    drop(answer.send(audit));
                }
                Work::End { release } => {
                    self.keep_all(None);
                    let owner = self.owner.clone();
                    if release {
                        self.write("the claim", |ledger| ledger.release(&owner));
                    }
                    return;
                }
            }
        }
    }

    fn open_ledger(&mut self) -> Result<&mut Ledger, LedgerError> {
        let not_open = || LedgerError::NotWritable { why: "it could not be opened".to_owned() };
        self.ledger.as_mut().ok_or_else(not_open)
    }

    fn claim(&mut self) {
        let owner = self.owner.clone();
        let collector = match self.ledger.as_mut() {
            None => Collector::Us,
            Some(ledger) => {
                let claimed = ledger.claim(&owner, clock::now(), CLAIM, &process_is_alive);
                collector(claimed, self.collector.take())
            }
        };
        self.collector = Some(collector.clone());
        self.outbox.put(Event::World(WorldEvent::Collector(collector.clone())));
        if collector == Collector::Us {
            self.keep_all(None);
            self.take_up_orphans();
        } else {
            // Who collects goes on from what is written, over the same time.
            self.waiting.clear();
        }
        // Whoever only looks on leaves the sums to the one who writes.
        let unfinished = self.ledger.as_ref().is_some_and(|ledger| matches!(ledger.is_unfinished(), Ok(true)));
        let before = std::mem::replace(&mut self.adding_up, collector == Collector::Us && unfinished);
        if before && !self.adding_up {
            self.outbox.put(Event::World(WorldEvent::AddedUp));
        }
    }

    /// One piece. An error ends it until the next claim: nothing is lost but time. When it ends, it is told, for
    /// whatever was answered meanwhile was not all.
    fn add_up_more(&mut self) {
        self.adding_up = match self.ledger.as_mut().map(Ledger::add_up_more) {
            None => false,
            Some(Ok(more)) => more,
            Some(Err(error)) => {
                tracing::warn!(%error, "the books cannot be added up anew");
                false
            }
        };
        if !self.adding_up {
            self.outbox.put(Event::World(WorldEvent::AddedUp));
        }
    }

    /// What a command beside us left under way, or was killed over, is ours to see to. Of another host's
    /// processes it is not known whether they live: theirs is taken up with their claim only.
    fn take_up_orphans(&self) {
        let Some(ledger) = &self.ledger else { return };
        match ledger.unfinished() {
            Ok(mut unfinished) => {
                let here = |owner: &Owner| owner.host == self.owner.host && *owner != self.owner;
                unfinished.retain(|(operation, owner)| here(owner) && is_orphaned(operation, owner, &self.owner));
                if !unfinished.is_empty() {
                    self.outbox.put(Event::World(WorldEvent::Orphaned(unfinished)));
                }
            }
            Err(error) => tracing::warn!(%error, "what others left under way is not known"),
        }
    }

    fn recall(&mut self) {
        self.keep_all(None);
        // What was charged since then is charged again from what is recalled on.
        self.waiting.clear();
        let recalled = self.ledger.as_mut().map(|ledger| ledger.recall(clock::now()));
        let (mut memory, notices) = match recalled {
            None => Default::default(),
            Some(Ok(recalled)) => recalled,
            Some(Err(error)) => {
                tracing::error!(%error, "the ledger cannot be read");
                (Default::default(), vec![LedgerNotice::NotWritable { why: error.to_string() }])
            }
        };
        memory.unfinished.retain(|(operation, owner)| is_orphaned(operation, owner, &self.owner));
        self.outbox.put(Event::World(WorldEvent::Remembered { memory: Box::new(memory), notices }));
        self.recalled = true;
    }

    fn sum_up(&mut self, day: Date, asked: u64) {
        // They are asked for anew when they are whole.
        if self.adding_up {
            return;
        }
        // Without an answer the sums are unknown: nobody takes them for zero.
        match self.ledger.as_mut().map(|ledger| ledger.sum_up(day)) {
            None => {}
            Some(Ok(summed)) => {
                self.outbox.put(Event::World(WorldEvent::Summed(Box::new(Summed { asked, ..summed }))));
            }
            Some(Err(error)) => tracing::error!(%error, "the books cannot be added up"),
        }
    }

    fn spend(&mut self, question: &Question, asker: Asker) {
        let answer = self.open_ledger().and_then(|ledger| ledger.answer(question));
        match (asker, answer) {
            // Nobody waits for it any more only when the command was interrupted.
            (Asker::Command(asker), answer) => drop(asker.send(answer)),
            (Asker::Screen, Ok(answer)) => self.outbox.put(Event::View(ViewEvent::Spend(Box::new(answer)))),
            (Asker::Screen, Err(error)) => tracing::error!(%error, "the books cannot be read"),
        }
    }

    fn recall_usage(&mut self, from: Option<Timestamp>, peaks: bool) {
        let week = clock::now() - SignedDuration::from_hours(7 * 24);
        let recalled = self.open_ledger().and_then(|ledger| {
            let entries = from.map(|from| ledger.usage_since(from)).transpose()?.unwrap_or_default();
            Ok((entries, peaks.then(|| ledger.memory_peaks(week)).transpose()?))
        });
        match recalled {
            Ok((entries, peaks)) => self.outbox.put(Event::World(WorldEvent::UsageRecalled { entries, peaks })),
            Err(error) => tracing::error!(%error, "what machines did cannot be read"),
        }
    }

    fn set_aside(&mut self, why: &str) {
        let Some(ledger) = self.ledger.as_mut() else { return };
        match ledger.set_aside(why, clock::now()) {
            Ok(notices) => {
                for notice in notices {
                    self.outbox.put(Event::World(WorldEvent::Ledger(notice)));
                }
            }
            Err(error) => tracing::error!(%error, "a damaged ledger could not be set aside"),
        }
    }

    fn record(&mut self, operation: &Operation, then: Option<OnDisk>) {
        let op = operation.id;
        // What is still on its way here was asked for before the state heard of it.
        if self.forestalled.contains(&op) && !operation.is_ended() {
            return;
        }
        self.forestalled.remove(&op);
        // One that is overdue gives way to what the person decides now.
        let in_hand = |other: &Operation, owner: &Owner| !other.is_overdue() && !is_orphaned(other, owner, &self.owner);
        let recorded = match self.ledger.as_mut() {
            None => Err("the ledger is not open".to_owned()),
            // A ledger in memory would forget the action with the program: nothing is sent on its word.
            Some(ledger) if then.is_some() && ledger.path().is_none() => Err("the ledger is not on disk".to_owned()),
            Some(ledger) => match ledger.record_unless_taken(operation, &self.owner, clock::now(), &in_hand) {
                Err(LedgerError::UnderWay(by)) => {
                    tracing::warn!(?by, operation = op.0, "not begun: another process has one on it under way");
                    self.forestalled.insert(op);
                    self.outbox.put(Event::World(WorldEvent::Forestalled { op, by }));
                    return;
                }
                recorded => recorded.map_err(|error| error.to_string()),
            },
        };
        match (recorded, then) {
            (Ok(()), Some(then)) => then(),
            (Ok(()), None) => {}
            (Err(error), then) => {
                tracing::error!(%error, operation = op.0, "a step could not be written down");
                if then.is_some() {
                    self.outbox.put(Event::World(WorldEvent::NotRecorded { op, error }));
                }
            }
        }
    }

    /// Writes down what a poll changed, after all that could not be written before it.
    fn keep(&mut self, keep: Box<Keep>) {
        let idle = |keep: &Keep| keep.entries.is_empty() && keep.instances.is_empty() && keep.storage.is_empty();
        let last = self.waiting.back().filter(|last| last.account.name == keep.account.name);
        if last.is_some_and(|last| idle(last) && idle(&keep)) {
            self.waiting.pop_back();
        }
        self.keep_all(Some(keep));
    }

    /// Writes down all that waits, and then what is new.
    fn keep_all(&mut self, new: Option<Box<Keep>>) {
        let late = !self.waiting.is_empty();
        self.waiting.extend(new);
        while let Some(keep) = self.waiting.pop_front() {
            let kept = self.ledger.as_mut().map(|ledger| ledger.keep(&keep));
            let Some(Err(error)) = kept else { continue };
            let passes = error.may_pass();
            self.not_written("the fleet", error);
            if passes {
                self.waiting.push_front(keep);
                return;
            }
        }
        // The sums that were told lack what has just been written.
        if late {
            self.outbox.put(Event::World(WorldEvent::AddedUp));
        }
    }

    fn keep_billed(&mut self, account: AccountName, from: Timestamp, to: Timestamp, lines: &[BilledLine]) {
        if self.write("what was billed", |ledger| ledger.import_billed(&account, from, to, lines)) {
            self.outbox.put(Event::World(WorldEvent::BilledKept { account, to }));
        }
    }

    /// Whether it was written.
    fn write(&mut self, what: &str, write: impl FnOnce(&mut Ledger) -> Result<(), LedgerError>) -> bool {
        match self.ledger.as_mut().map(write) {
            Some(Err(error)) => self.not_written(what, error),
            Some(Ok(())) => return true,
            None => {}
        }
        false
    }

    fn not_written(&self, what: &str, error: LedgerError) {
        tracing::error!(%error, what, "could not be written to the ledger");
        self.outbox.put(Event::World(WorldEvent::Ledger(LedgerNotice::NotWritable { why: error.to_string() })));
    }
}

/// Whether nobody sees to an action any more: what a living process has under way is its own business.
fn is_orphaned(operation: &Operation, owner: &Owner, us: &Owner) -> bool {
    // After a restart of the system another process may have its number.
    let another = || process_began(owner.pid).is_some_and(|began| began > operation.began_at + CLOCK_STEP);
    owner.host != us.host || owner == us || !process_is_alive(owner.pid) || another()
}

/// Who collects, given how the claim went and who did before.
fn collector(claimed: Result<Collector, LedgerError>, before: Option<Collector>) -> Collector {
    claimed.unwrap_or_else(|error| {
        tracing::warn!(%error, "the claim could not be written");
        match (error, before) {
            // Somebody else writes just now: that alone makes nobody the collector.
            (LedgerError::Busy, Some(before)) => before,
            // A ledger that cannot be written has no claims: each process is on its own.
            _ => Collector::Us,
        }
    })
}

/// Whether a process of this host runs.
#[cfg(unix)]
fn process_is_alive(pid: u32) -> bool {
    use rustix::process::{Pid, test_kill_process};
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    // Another user's process is there, too, although it takes no signals from us.
    !matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH))
}

/// When a process of this host began; `None` where the system does not tell.
#[cfg(target_os = "linux")]
fn process_began(pid: u32) -> Option<Timestamp> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
    // The name before the bracket may hold anything; what follows are fields 3 and up, and 22 is the start.
    let ticks: f64 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    let began = ticks / rustix::param::clock_ticks_per_second() as f64;
    let since_boot: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    clock::now().checked_sub(SignedDuration::try_from_secs_f64(since_boot - began).ok()?).ok()
}

#[cfg(not(target_os = "linux"))]
fn process_began(_: u32) -> Option<Timestamp> {
    None
}

/// Without a cheap way to ask, a claim is believed until it runs out.
#[cfg(not(unix))]
fn process_is_alive(_: u32) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::samples::{at, done, folder, keep, operation, owner, sending, spent};
    use crate::rules::saga::Step;
    use crate::runtime::Inbox;

    fn desk(ledger: Option<Ledger>, owner: Owner, outbox: Outbox) -> Desk {
        Desk::new(ledger, owner, outbox)
    }

    async fn record_and_send(state_dir: PathBuf) -> (bool, Vec<Event>) {
        let (mut inbox, outbox) = Inbox::new();
        let keeper = Keeper::start(state_dir, owner(std::process::id()), outbox, false).unwrap();
        let (sent, heard) = mpsc::channel();
        let then: OnDisk = Box::new(move || sent.send(()).unwrap());
        keeper.record(Box::new(operation(1, sending())), Some(then));
        keeper.end(false);
        let told = std::iter::from_fn(|| inbox.ready()).collect();
        (heard.try_recv().is_ok(), told)
    }

    /// A full disk for a while costs nothing: what was looked at meanwhile is written down afterwards, in its order,
    /// and the sums are told again.
    #[test]
    fn what_could_not_be_written_is_written_once_it_can_be() {
        let dir = folder();
        let (ledger, _) = Ledger::open(dir.path(), at("10:00")).unwrap();
        let (mut inbox, outbox) = Inbox::new();
        let mut desk = desk(Some(ledger), owner(std::process::id()), outbox);
        let day: Date = "2026-11-30".parse().unwrap();
        desk.sum_up(day, 1);
        let path = dir.path().join("ledger.sqlite");
        assert_eq!(desk.ledger.as_ref().unwrap().path(), Some(path.as_path()));
        let elsewhere = dir.path().join("elsewhere");
        std::fs::rename(&path, &elsewhere).unwrap();
        desk.keep(Box::new(spent("a", at("10:00"), at("11:00"))));
        for _ in 0..5 {
            desk.keep(Box::new(keep(vec![])));
        }
        desk.keep(Box::new(spent("a", at("11:00"), at("12:00"))));
        assert_eq!(desk.waiting.len(), 3, "looks that changed nothing are one");
        std::fs::rename(&elsewhere, &path).unwrap();
        desk.keep(Box::new(keep(vec![])));
        assert_eq!(desk.waiting.len(), 0);
        let mut told: Vec<Event> = std::iter::from_fn(|| inbox.ready()).collect();
        assert_eq!(told.last(), Some(&Event::World(WorldEvent::AddedUp)), "they are asked for anew");
        desk.sum_up(day, 2);
        told.extend(std::iter::from_fn(|| inbox.ready()));
        let sums: Vec<String> = told
            .iter()
            .filter_map(|event| match event {
                Event::World(WorldEvent::Summed(summed)) => {
                    Some(summed.today.of(providers::money::Currency::USD).total().amount().to_string())
                }
                _ => None,
            })
            .collect();
        assert_eq!(sums, ["0", "4"], "{told:?}");
    }

    /// Whoever collects meanwhile goes on from what is written: what waits here would be of the same time.
    #[test]
    fn what_waits_is_dropped_when_another_process_collects() {
        let dir = folder();
        let (mut ledger, _) = Ledger::open(dir.path(), at("10:00")).unwrap();
        let other = owner(1);
        ledger.claim(&other, clock::now(), CLAIM, &|_| true).unwrap();
        let (_inbox, outbox) = Inbox::new();
        let mut desk = desk(Some(ledger), owner(std::process::id()), outbox);
        desk.waiting.push_back(Box::new(spent("a", at("10:00"), at("11:00"))));
        desk.claim();
        assert!(desk.waiting.is_empty());
        assert!(desk.ledger.unwrap().sum_up("2026-11-30".parse().unwrap()).unwrap().today.is_empty());
    }

    /// What was billed is known once it is in the books: until then it is asked for again.
    #[test]
    fn what_was_billed_is_told_to_be_known_once_it_is_written() {
        let dir = folder();
        let (mut ledger, _) = Ledger::open(dir.path(), at("10:00")).unwrap();
        ledger.keep(&keep(vec![])).unwrap();
        let (mut inbox, outbox) = Inbox::new();
        let mut desk = desk(Some(ledger), owner(std::process::id()), outbox);
        let (path, elsewhere) = (dir.path().join("ledger.sqlite"), dir.path().join("elsewhere"));
        let mut import = || {
            desk.keep_billed("team".into(), at("09:00"), at("10:00"), &[]);
            let told: Vec<Event> = std::iter::from_fn(|| inbox.ready()).collect();
            told.iter()
                .any(|event| matches!(event, Event::World(WorldEvent::BilledKept { to, .. }) if *to == at("10:00")))
        };
        std::fs::rename(&path, &elsewhere).unwrap();
        assert!(!import());
        std::fs::rename(&elsewhere, &path).unwrap();
        assert!(import());
    }

    /// Safety: nothing is sent before it is on the disk, and a ledger that lives in memory never is.
    #[tokio::test]
    async fn nothing_is_sent_on_the_word_of_a_ledger_in_memory() {
        let dir = folder();
        let (sent, told) = record_and_send(dir.path().join("state")).await;
        assert!(sent && told.is_empty(), "{told:?}");

        let file = dir.path().join("a-file");
        std::fs::write(&file, "").unwrap();
        let (sent, told) = record_and_send(file).await;
        assert!(!sent);
        let not_recorded = |event: &Event| matches!(event, Event::World(WorldEvent::NotRecorded { .. }));
        assert!(told.iter().any(not_recorded), "{told:?}");
    }

    /// After a change of zone: what waits for whole sums is answered when they are, and nothing waits for it.
    #[tokio::test]
    async fn sums_are_told_when_the_books_are_added_up_in_the_zone() {
        let dir = folder();
        let (mut ledger, _) = Ledger::open(dir.path(), at("10:00")).unwrap();
        // The last day of November here is the first of December there, from 16:00 on.
        let (from, to) = (at("15:00"), at("20:00"));
        ledger.keep(&spent("a", from, to)).unwrap();
        drop(ledger);

        let (mut inbox, outbox) = Inbox::new();
        let keeper = Keeper::start(dir.path().to_owned(), owner(std::process::id()), outbox, false).unwrap();
        keeper.use_zone(TimeZone::get("Asia/Shanghai").unwrap());
        keeper.claim();
        keeper.sum_up("2026-12-01".parse().unwrap(), 1);
        keeper.recall();
        let mut told = Vec::new();
        let summed = loop {
            match inbox.next().await.unwrap() {
                Event::World(WorldEvent::Summed(summed)) => break summed,
                Event::World(WorldEvent::AddedUp) => keeper.sum_up("2026-12-01".parse().unwrap(), 2),
                other => told.push(other),
            }
        };
        assert!(matches!(
            told[..],
            [Event::World(WorldEvent::Collector(_)), Event::World(WorldEvent::Remembered { .. })]
        ));
        assert_eq!(summed.asked, 2, "what was not whole was not told");
        let month = summed.month.of(providers::money::Currency::USD);
        assert_eq!(month.total().amount().to_string(), "8");
        keeper.end(true);
        let (ledger, _) = Ledger::open(dir.path(), at("10:00")).unwrap();
        assert!(ledger.is_unfinished().unwrap(), "they are those of the other zone");
    }

    /// A write of another process that takes long makes nobody the collector who was none.
    #[test]
    fn a_busy_ledger_leaves_the_collector_who_it_was() {
        let other = Collector::Other { owner: owner(7), until: at("10:00") };
        assert_eq!(collector(Err(LedgerError::Busy), Some(other.clone())), other);
        assert_eq!(collector(Err(LedgerError::Busy), None), Collector::Us);
        assert_eq!(collector(Err(LedgerError::ReadOnly), Some(other.clone())), Collector::Us);
        assert_eq!(collector(Ok(other.clone()), Some(Collector::Us)), other);
    }

    /// After a power cut the number of the process may belong to another one.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_that_began_after_the_action_has_it_not_in_hand() {
        let began = process_began(std::process::id()).unwrap();
        let orphaned = |began_at| {
            let operation = Operation { began_at, ..operation(1, sending()) };
            is_orphaned(&operation, &owner(std::process::id()), &owner(1))
        };
        assert!(!orphaned(began));
        assert!(orphaned(began - SignedDuration::from_hours(1)));
    }

    /// Safety: an action under way is never forgotten, also when its process ends beside a collector.
    #[cfg(unix)]
    #[tokio::test]
    async fn who_collects_is_told_what_a_dead_process_of_this_host_left() {
        let dir = folder();
        let (mut ledger, _) = Ledger::open(dir.path(), at("10:00")).unwrap();
        let (us, dead) = (owner(std::process::id()), owner(i32::MAX as u32));
        let elsewhere = Owner { host: "elsewhere".to_owned(), ..dead.clone() };
        for (id, owner) in [(1, &us), (2, &dead), (3, &elsewhere)] {
            ledger.record(&operation(id, sending()), owner, at("10:00")).unwrap();
        }
        let (mut inbox, outbox) = Inbox::new();
        desk(Some(ledger), us, outbox).claim();
        let collector = Event::World(WorldEvent::Collector(Collector::Us));
        let orphaned = Event::World(WorldEvent::Orphaned(vec![(operation(2, sending()), dead)]));
        assert_eq!(std::iter::from_fn(|| inbox.ready()).collect::<Vec<_>>(), [collector, orphaned]);
    }

    /// Safety: what was not begun is not sent either, even when the other one ends before the state heard of it.
    #[cfg(unix)]
    #[tokio::test]
    async fn an_action_that_came_second_is_never_sent() {
        let dir = folder();
        let looking = |id| operation(id, Step::Checking { looks: 1, next_look: None });
        // The parent of this process lives as long as it does.
        let other = owner(std::os::unix::process::parent_id());
        let began_at = clock::now();
        let (mut theirs, _) = Ledger::open(dir.path(), began_at).unwrap();
        let first = Operation { began_at, ..looking(1) };
        theirs.record(&first, &other, began_at).unwrap();

        let (mut inbox, outbox) = Inbox::new();
        let (ours, _) = Ledger::open(dir.path(), began_at).unwrap();
        let mut desk = desk(Some(ours), owner(std::process::id()), outbox);
        desk.record(&looking(2), None);
        let forestalled = Event::World(WorldEvent::Forestalled { op: OpId(2), by: other.clone() });
        assert_eq!(inbox.ready(), Some(forestalled));

        theirs.record(&Operation { step: done("10:01"), ..first }, &other, began_at).unwrap();
        desk.record(&operation(2, sending()), Some(Box::new(|| panic!("it was sent"))));
        desk.record(&operation(2, done("10:01")), None);
        assert_eq!(inbox.ready(), None);
        let steps: Vec<String> = theirs.journal(OpId(2)).unwrap().into_iter().map(|line| line.step).collect();
        assert_eq!(steps, ["ended"]);
    }

    /// What is overdue, and what nobody sees to any more, stands in nobody's way.
    #[cfg(unix)]
    #[tokio::test]
    async fn an_action_begins_beside_what_is_overdue_or_was_left() {
        let overdue = Step::Overdue { since: at("10:03"), doubt: None, absences: 0, next_look: None };
        let alive = owner(std::os::unix::process::parent_id());
        for (step, by) in [(overdue, alive), (sending(), owner(i32::MAX as u32))] {
            let mut ledger = Ledger::in_memory().unwrap();
            ledger.record(&Operation { began_at: clock::now(), ..operation(1, step) }, &by, at("10:00")).unwrap();
            let (mut inbox, outbox) = Inbox::new();
            let mut desk = desk(Some(ledger), owner(std::process::id()), outbox);
            desk.record(&operation(2, Step::Checking { looks: 1, next_look: None }), None);
            assert_eq!(inbox.ready(), None);
            assert_eq!(desk.ledger.unwrap().journal(OpId(2)).unwrap().len(), 1);
        }
    }

    /// An audit that finds nothing says that nothing was ever done.
    #[tokio::test]
    async fn an_audit_without_a_ledger_is_an_error() {
        let (_inbox, outbox) = Inbox::new();
        let (answer, asked) = oneshot::channel();
        let (work, todo) = mpsc::channel();
        work.send(Work::Audit(10, answer)).unwrap();
        drop(work);
        desk(None, owner(1), outbox).serve(todo);
        assert!(asked.await.unwrap().is_err());
    }
}
