//! The ledger's thread: SQL blocks, so it has a thread of its own and hears of work by a channel.

use std::collections::{BTreeMap, BTreeSet, VecDeque, btree_map};
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
use crate::rules::alerts::Alert;
use crate::rules::budgets::Budget;
use crate::rules::checkpoint::Saved;
use crate::rules::dispatch::Message;
use crate::rules::earlier::Earlier;
use crate::rules::guard::{Veto, Watch};
use crate::rules::lease::Lease;
use crate::rules::memory::{Collector, Keep, LedgerNotice, Memory, Owner, Past};
use crate::rules::saga::{MOVES_FOR, OpId, Operation};
use crate::rules::settings::Setting;
use crate::rules::spend::{Answer, Assignment, Marking, Question, Summed};
use crate::rules::usage::UsageEntry;

/// A claim on the ledger runs out after this unless it is renewed.
const CLAIM: SignedDuration = SignedDuration::from_secs(30);

/// Of what machines did, about so many slots are told at a time.
const SLOTS: usize = 2000;

/// So many of them wait at the most for a disk with room: a day of three hundred machines.
const MOST_SLOTS: usize = 100_000;

/// A clock may be set by so much without making a living process look younger than what it does.
const CLOCK_STEP: SignedDuration = SignedDuration::from_mins(1);

/// Called on the ledger's thread when a step is on disk.
pub type OnDisk = Box<dyn FnOnce() + Send>;

/// Called there when messages are on disk, or could not be written: then with the reason.
pub type Written = Box<dyn FnOnce(Result<(), String>) + Send>;

enum Work {
    /// This process watches without a screen.
    Watch,
    Claim,
    Recall,
    Keep(Box<Keep>),
    Set(Identity, Setting),
    UseZone(TimeZone),
    /// A day, the number of the question, and the budgets that are asked for as well.
    SumUp(Date, u64, Vec<Budget>),
    KeepAlerts(Vec<Alert>, Vec<Message>),
    RecallAlerts,
    KeepLease(Box<Lease>),
    KeepWatches(Vec<Watch>),
    KeepVeto(Identity, Veto),
    /// When that was asked for.
    RecallVetoes(Timestamp),
    /// Messages that are about to be sent, and what is to be done once that is on disk.
    Sending(Vec<Message>, Written),
    KeepBilled(Billed),
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
    /// The copies of one machine that are still there, the latest first.
    Copies(Identity, oneshot::Sender<Result<Vec<Saved>, LedgerError>>),
    /// The copy of this action is no longer there.
    Thinned(OpId),
    /// The background check found damage.
    Damaged(String),
    Audit(u32, oneshot::Sender<Result<Vec<Operation>, LedgerError>>),
    End {
        release: bool,
    },
}

/// All that a provider billed in a time.
struct Billed {
    account: AccountName,
    from: Timestamp,
    to: Timestamp,
    lines: Vec<BilledLine>,
}

/// What is written down later when it cannot be now.
enum Entry {
    Look(Box<Keep>),
    Billed(Billed),
    /// What of the looks before was waste, or was none.
    Waste(Vec<Marking>),
}

impl Entry {
    /// Whether it tells nothing that the other one, which came later, does not tell as well.
    fn is_in(&self, later: &Entry) -> bool {
        match (self, later) {
            (Entry::Look(one), Entry::Look(other)) => {
                let nothing_new = one.entries.is_empty() && one.instances.is_empty() && one.storage.is_empty();
                nothing_new && one.account.name == other.account.name
            }
            (Entry::Billed(one), Entry::Billed(other)) => {
                one.account == other.account && one.from >= other.from && one.to <= other.to
            }
            _ => false,
        }
    }
}

/// Who asked what was spent.
enum Asker {
    Screen,
    /// For what is worth an alert.
    Collector,
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

    /// This process watches without a screen, and is known to do so from the next claim on.
    pub fn watch(&self) {
        self.put(Work::Watch);
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
    pub fn sum_up(&self, day: Date, asked: u64, budgets: Vec<Budget>) {
        self.put(Work::SumUp(day, asked, budgets));
    }
    pub fn keep_alerts(&self, alerts: Vec<Alert>, messages: Vec<Message>) {
        self.put(Work::KeepAlerts(alerts, messages));
    }
    /// The answer comes as an event.
    pub fn recall_alerts(&self) {
        self.put(Work::RecallAlerts);
    }
    /// Whether it is written comes as an event.
    pub fn keep_lease(&self, lease: Box<Lease>) {
        self.put(Work::KeepLease(lease));
    }
    /// All that guards are called for by.
    pub fn keep_watches(&self, watches: Vec<Watch>) {
        self.put(Work::KeepWatches(watches));
    }
    pub fn keep_veto(&self, identity: Identity, veto: Veto) {
        self.put(Work::KeepVeto(identity, veto));
    }
    /// The answer comes as an event, and none where it cannot be read.
    pub fn recall_vetoes(&self, asked_at: Timestamp) {
        self.put(Work::RecallVetoes(asked_at));
    }
    /// Writes down that messages are about to be sent; `then` is called once that is on disk, or with the reason why it
    /// could not be written.
    pub fn sending(&self, messages: Vec<Message>, then: Written) {
        self.put(Work::Sending(messages, then));
    }
    pub fn keep_billed(&self, account: AccountName, from: Timestamp, to: Timestamp, lines: Vec<BilledLine>) {
        self.put(Work::KeepBilled(Billed { account, from, to, lines }));
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

    /// The answer comes as an event.
    pub fn ask_balances(&self, question: Question) {
        self.put(Work::Spend(question, Asker::Collector));
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

    /// The records of copies, for tasks of their own.
    pub fn shelf(&self) -> Shelf {
        Shelf(self.work.clone())
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

/// The records of copies, at the ledger's thread.
#[derive(Clone)]
pub struct Shelf(mpsc::Sender<Work>);

impl Shelf {
    /// The copies of one machine that are still there, the latest first; `None` when that is not to be learnt now.
    pub async fn copies(&self, identity: Identity) -> Option<Vec<Saved>> {
        let (answer, asked) = oneshot::channel();
        self.put(Work::Copies(identity, answer));
        let told = asked.await.ok()?;
        told.inspect_err(|error| tracing::warn!(%error, "the copies of a machine are not known")).ok()
    }

    /// The copy of this action is no longer there.
    pub fn thinned(&self, op: OpId) {
        self.put(Work::Thinned(op));
    }

    fn put(&self, work: Work) {
        // Once the program has ended nobody writes it down: whoever looks next finds the same.
        drop(self.0.send(work));
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

fn sum_up(ledger: &mut Ledger, day: Date, budgets: &[Budget]) -> Result<Summed, LedgerError> {
    let mut drawn = ledger.drawn(budgets, clock::now())?;
    match ledger.know_budgets(budgets, clock::now()) {
        Ok(known) => drawn.iter_mut().for_each(|drawn| drawn.known_since = known.get(&drawn.name).copied()),
        Err(error) => tracing::warn!(%error, "since when budgets are known could not be written"),
    }
    Ok(Summed { budgets: drawn, ..ledger.sum_up(day)? })
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
    /// This process watches without a screen.
    watches: bool,
    /// It was told that some process does.
    watched: bool,
    /// Actions that were not begun, or that another process took up, until the state has heard of it and ends them.
    forestalled: BTreeSet<OpId>,
    /// Actions that this process wrote down and that have not ended.
    own: BTreeSet<OpId>,
    /// The fleet was recalled, which comes first.
    recalled: bool,
    /// The books are being added up, a piece whenever there is nothing else to do.
    adding_up: bool,
    /// What could not be written, a full disk for instance: first in the order of its coming, once it can be.
    waiting: VecDeque<Entry>,
    /// The same of what machines did, which has no order but its own.
    usage: BTreeMap<(i64, Identity), UsageEntry>,
    /// It was told that something could not be written.
    failing: bool,
    /// The day of which the sums were told last.
    summed: Option<Date>,
}

impl Desk {
    fn new(ledger: Option<Ledger>, owner: Owner, outbox: Outbox) -> Self {
        Desk {
            ledger,
            owner,
            outbox,
            collector: None,
            watches: false,
            watched: false,
            forestalled: BTreeSet::new(),
            own: BTreeSet::new(),
            recalled: false,
            adding_up: false,
            waiting: VecDeque::new(),
            usage: BTreeMap::new(),
            failing: false,
            summed: None,
        }
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
                Work::Watch => self.watches = true,
                Work::Claim => self.claim(),
                Work::Recall => self.recall(),
                Work::Keep(keep) => self.keep(Entry::Look(keep)),
                Work::Set(identity, setting) => {
                    self.write("a setting", |ledger| ledger.set(&identity, &setting));
                }
                Work::UseZone(zone) => {
                    self.write("the time zone", |ledger| ledger.use_zone(zone));
                }
                Work::SumUp(day, asked, budgets) => self.sum_up(day, asked, &budgets),
                Work::KeepAlerts(alerts, messages) => {
                    self.write("alerts", |ledger| ledger.keep_alerts(&alerts, &messages, clock::now()));
                }
                Work::RecallAlerts => self.recall_alerts(),
                Work::KeepLease(lease) => self.keep_lease(&lease),
                Work::KeepWatches(watches) => {
                    self.write("guards", |ledger| ledger.keep_watches(&watches));
                }
                Work::KeepVeto(identity, veto) => {
                    self.write("a veto", |ledger| ledger.keep_veto(&identity, &veto));
                }
                Work::RecallVetoes(asked_at) => self.recall_vetoes(asked_at),
                Work::Sending(messages, then) => {
                    let written = self.open_ledger().and_then(|ledger| ledger.keep_messages(&messages));
                    then(written.as_ref().map(drop).map_err(ToString::to_string));
                    if let Err(error) = written {
                        self.not_written("a message", error);
                    }
                }
                Work::KeepBilled(billed) => self.keep(Entry::Billed(billed)),
                Work::Assign(assignments) => {
                    self.write("projects", |ledger| ledger.assign(&assignments));
                }
                Work::MarkWaste(markings) => self.keep(Entry::Waste(markings)),
                Work::NoteUnwatched(accounts) => {
                    self.write("what is watched", |ledger| ledger.note_unwatched(&accounts));
                }
                Work::Rename { from, to } => {
                    self.write("an account's name", |ledger| ledger.rename(&from, &to));
                }
                Work::KeepUsage(entries) => self.keep_usage(entries),
                Work::RecallUsage(from, peaks) => self.recall_usage(from, peaks),
                Work::Spend(question, asker) => self.spend(&question, asker),
                // Nobody waits for these any more only when the command was interrupted.
                Work::Remembered(answer) => {
                    drop(answer.send(self.open_ledger().and_then(|ledger| Ok(ledger.recall(clock::now())?.0))));
                }
                Work::Past(answer) => drop(answer.send(self.open_ledger().and_then(|ledger| ledger.past()))),
                Work::Reached(answer) => drop(answer.send(())),
                Work::Record(operation, then) => self.record(&operation, then),
                // Nobody waits for it any more only when the program is ending.
                Work::Copies(identity, answer) => {
                    drop(answer.send(self.open_ledger().and_then(|ledger| ledger.copies(&identity))));
                }
                Work::Thinned(op) => {
                    self.write("that a copy is gone", |ledger| ledger.thin(op, clock::now()));
                }
                Work::Damaged(why) => self.set_aside(&why),
                Work::Audit(limit, answer) => {
                    // An empty list would say that nothing was ever done.
                    let audit = self.open_ledger().and_then(|ledger| ledger.audit(limit, None));
                    // Nobody waits for it any more only when the command was interrupted.
                    drop(answer.send(audit));
                }
                Work::End { release } => {
                    self.keep_all(None);
                    self.keep_usage(Vec::new());
                    let owner = self.owner.clone();
                    if release {
                        self.write("the claim", |ledger| ledger.release(&owner));
                    }
                    if self.watches {
                        self.write("who watches", |ledger| ledger.watches_no_more(&owner));
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
        match self.ledger.as_mut().map(|ledger| ledger.reopen(clock::now())) {
            // The state claims it then.
            Some(Ok(Some(notices))) => return self.begin_anew(notices),
            Some(Err(error)) => self.not_written("the claim", error),
            Some(Ok(None)) | None => {}
        }
        let owner = self.owner.clone();
        let collector = match self.ledger.as_mut() {
            None => Collector::Us,
            Some(ledger) => {
                let claimed = ledger.claim(&owner, clock::now(), CLAIM, &process_is_alive);
                collector(claimed, self.collector.take())
            }
        };
        self.collector = Some(collector.clone());
        self.see_who_watches();
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

    /// Gives a sign of life where this process watches, and tells when some process begins to, or none does any more.
    fn see_who_watches(&mut self) {
        let (owner, now) = (self.owner.clone(), clock::now());
        let Some(ledger) = self.ledger.as_mut() else { return };
        if self.watches
            && let Err(error) = ledger.watches(&owner, now, CLAIM)
        {
            tracing::warn!(%error, "that this process watches could not be written");
        }
        match ledger.is_watched(&owner, now, &process_is_alive) {
            Ok(watched) if watched == self.watched => {}
            Ok(watched) => {
                self.watched = watched;
                self.outbox.put(Event::World(WorldEvent::Watched(watched)));
            }
            Err(error) => tracing::warn!(%error, "who watches is not known"),
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
        let us = self.collector == Some(Collector::Us);
        let recalled = self.ledger.as_mut().map(|ledger| {
            let (memory, notices) = ledger.recall(clock::now())?;
            let earlier = if us { ledger.earlier()? } else { Earlier::default() };
            Ok::<_, LedgerError>((Memory { earlier, ..memory }, notices))
        });
        let (mut memory, notices) = match recalled {
            None => Default::default(),
            Some(Ok(recalled)) => recalled,
            Some(Err(error)) => {
                tracing::error!(%error, "the ledger cannot be read");
                self.failing = true;
                (Default::default(), vec![LedgerNotice::NotWritable { why: error.to_string() }])
            }
        };
        memory.unfinished.retain(|(operation, owner)| is_orphaned(operation, owner, &self.owner));
        self.outbox.put(Event::World(WorldEvent::Remembered { memory: Box::new(memory), notices }));
        self.recalled = true;
    }

    fn recall_alerts(&mut self) {
        let since = clock::now() - MOVES_FOR;
        let read = |ledger: &mut Ledger| {
            let leases = ledger.leases()?;
            Ok::<_, LedgerError>((ledger.alerts()?, ledger.messages()?, ledger.acted_since(since)?, leases))
        };
        match self.ledger.as_mut().map(read) {
            None => {}
            Some(Ok((alerts, messages, acted, leases))) => {
                self.outbox.put(Event::World(WorldEvent::AlertsRecalled { alerts, acted }));
                self.outbox.put(Event::World(WorldEvent::LeasesRecalled(leases)));
                // A command beside us may have left some to be sent.
                if !messages.is_empty() {
                    self.outbox.put(Event::World(WorldEvent::MessagesRecalled(messages)));
                }
            }
            Some(Err(error)) => tracing::error!(%error, "the alerts cannot be read"),
        }
    }

    fn keep_lease(&mut self, lease: &Lease) {
        let kept = self.open_ledger().and_then(|ledger| ledger.keep_lease(lease));
        let told = kept.as_ref().map(|kept| *kept).map_err(ToString::to_string);
        self.outbox.put(Event::World(WorldEvent::LeaseKept { lease: lease.id, kept: told }));
        if let Err(error) = kept {
            self.not_written("a lease", error);
        }
    }

    fn recall_vetoes(&mut self, asked_at: Timestamp) {
        match self.open_ledger().and_then(|ledger| ledger.vetoes()) {
            Ok(vetoes) => self.outbox.put(Event::World(WorldEvent::VetoesRecalled { asked_at, vetoes })),
            // Without an answer no guard acts.
            Err(error) => tracing::error!(%error, "vetoes cannot be read"),
        }
    }

    fn sum_up(&mut self, day: Date, asked: u64, budgets: &[Budget]) {
        // They are asked for anew when they are whole. What waits stands in those that were told, and not in the books.
        if self.adding_up || (!self.waiting.is_empty() && self.summed == Some(day)) {
            return;
        }
        // Without an answer the sums are unknown: nobody takes them for zero.
        match self.ledger.as_mut().map(|ledger| sum_up(ledger, day, budgets)) {
            None => {}
            Some(Ok(summed)) => {
                self.summed = Some(day);
                let partial = !self.waiting.is_empty();
                self.outbox.put(Event::World(WorldEvent::Summed(Box::new(Summed { asked, partial, ..summed }))));
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
            (Asker::Collector, Ok(answer)) => self.outbox.put(Event::World(WorldEvent::Balances(Box::new(answer)))),
            (Asker::Screen | Asker::Collector, Err(error)) => tracing::error!(%error, "the books cannot be read"),
        }
    }

    fn recall_usage(&mut self, from: Option<Timestamp>, peaks: bool) {
        let week = clock::now() - SignedDuration::from_hours(7 * 24);
        let recalled = self.open_ledger().and_then(|ledger| {
            let (entries, rest) = from.map(|from| ledger.usage_since(from, SLOTS)).transpose()?.unwrap_or_default();
            Ok((entries, rest, peaks.then(|| ledger.memory_peaks(week)).transpose()?))
        });
        let (entries, rest, peaks) = recalled.unwrap_or_else(|error| {
            tracing::error!(%error, "what machines did cannot be read");
            Default::default()
        });
        self.outbox.put(Event::World(WorldEvent::UsageRecalled { entries, rest, peaks }));
    }

    fn set_aside(&mut self, why: &str) {
        let Some(ledger) = self.ledger.as_mut() else { return };
        match ledger.set_aside(why, clock::now()) {
            Ok(notices) => self.begin_anew(notices),
            Err(error) => {
                tracing::error!(%error, "a damaged ledger could not be set aside");
                self.tell_not_written(&error);
            }
        }
    }

    /// Another file is the ledger now. What waits is charged again from what that one knows.
    fn begin_anew(&mut self, notices: Vec<LedgerNotice>) {
        tracing::warn!("another file is the ledger now");
        self.waiting.clear();
        (self.collector, self.summed) = (None, None);
        self.written();
        for notice in notices {
            self.outbox.put(Event::World(WorldEvent::Ledger(notice)));
        }
        self.outbox.put(Event::World(WorldEvent::Reopened));
    }

    fn record(&mut self, operation: &Operation, then: Option<OnDisk>) {
        let op = operation.id;
        // What is still on its way here was asked for before the state heard of it.
        if self.forestalled.contains(&op) && !operation.is_ended() {
            return;
        }
        self.forestalled.remove(&op);
        let own = self.own.contains(&op);
        // One that is overdue gives way to what the person decides now.
        let in_hand = |other: &Operation, owner: &Owner| !other.is_overdue() && !is_orphaned(other, owner, &self.owner);
        let recorded = match self.ledger.as_mut() {
            None => Err("the ledger is not open".to_owned()),
            // A ledger in memory would forget the action with the program: nothing is sent on its word.
            Some(ledger) if then.is_some() && ledger.path().is_none() => Err("the ledger is not on disk".to_owned()),
            Some(ledger) => match ledger.record_unless_taken(operation, &self.owner, clock::now(), own, &in_hand) {
                Err(LedgerError::UnderWay(by)) => {
                    tracing::warn!(?by, operation = op.0, own, "another process has it in hand");
                    self.forestalled.insert(op);
                    self.outbox.put(Event::World(WorldEvent::Forestalled { op, by }));
                    return;
                }
                recorded => recorded.map_err(|error| error.to_string()),
            },
        };
        match (recorded, then) {
            (Ok(()), then) => {
                if operation.is_ended() {
                    self.own.remove(&op);
                } else {
                    self.own.insert(op);
                }
                then.into_iter().for_each(|then| then());
            }
            (Err(error), then) => {
                tracing::error!(%error, operation = op.0, "a step could not be written down");
                if then.is_some() {
                    self.outbox.put(Event::World(WorldEvent::NotRecorded { op, error }));
                }
            }
        }
    }

    /// Writes down what a poll changed or a provider billed, after all that could not be written before it.
    fn keep(&mut self, entry: Entry) {
        self.waiting.retain(|waiting| !waiting.is_in(&entry));
        self.keep_all(Some(entry));
    }

    /// Writes down all that waits, and then what is new.
    fn keep_all(&mut self, new: Option<Entry>) {
        let late = !self.waiting.is_empty();
        self.waiting.extend(new);
        while let Some(entry) = self.waiting.pop_front() {
            let Some(ledger) = self.ledger.as_mut() else { continue };
            let (what, kept) = match &entry {
                Entry::Look(keep) => ("the fleet", ledger.keep(keep)),
                Entry::Billed(Billed { account, from, to, lines }) => {
                    ("what was billed", ledger.import_billed(account, *from, *to, lines))
                }
                Entry::Waste(markings) => ("waste", ledger.mark(markings)),
            };
            match (kept, entry) {
                (Ok(()), Entry::Look(_) | Entry::Waste(_)) => {}
                (Ok(()), Entry::Billed(Billed { account, to, .. })) => {
                    self.outbox.put(Event::World(WorldEvent::BilledKept { account, to }));
                }
                (Err(error), entry) => {
                    let passes = error.may_pass();
                    self.not_written(what, error);
                    if passes {
                        self.waiting.push_front(entry);
                        return;
                    }
                    continue;
                }
            }
            self.written();
        }
        // The sums that were told lack what has just been written.
        if late {
            self.outbox.put(Event::World(WorldEvent::AddedUp));
        }
    }

    /// Writes down what machines did, with what could not be written before. As much of that as there is room for waits
    /// again where it still cannot be; whoever else wrote of the same time meanwhile, it is added to that.
    fn keep_usage(&mut self, entries: Vec<UsageEntry>) {
        for entry in entries {
            match self.usage.entry((entry.slot.number, entry.identity.clone())) {
                btree_map::Entry::Occupied(mut there) => {
                    let there = there.get_mut();
                    there.slot.merge(&entry.slot);
                    there.latest = entry.latest.or(there.latest.take());
                }
                btree_map::Entry::Vacant(place) => drop(place.insert(entry)),
            }
        }
        let Some(ledger) = self.ledger.as_mut().filter(|_| !self.usage.is_empty()) else {
            return self.usage.clear();
        };
        let entries: Vec<UsageEntry> = self.usage.values().cloned().collect();
        match ledger.keep_usage(&entries, clock::now()) {
            Ok(()) => self.usage.clear(),
            Err(error) => {
                if !error.may_pass() {
                    self.usage.clear();
                }
                while self.usage.len() > MOST_SLOTS {
                    self.usage.pop_first();
                }
                self.not_written("usage", error);
            }
        }
    }

    fn write(&mut self, what: &str, write: impl FnOnce(&mut Ledger) -> Result<(), LedgerError>) {
        if let Some(Err(error)) = self.ledger.as_mut().map(write) {
            self.not_written(what, error);
        }
    }

    fn not_written(&mut self, what: &str, error: LedgerError) {
        tracing::error!(%error, what, "could not be written to the ledger");
        match error {
            LedgerError::Damaged { why } => self.set_aside(&why),
            // It was told when the ledger was opened.
            LedgerError::ReadOnly if self.ledger.as_ref().is_some_and(|ledger| ledger.path().is_some()) => {}
            error => self.tell_not_written(&error),
        }
    }

    fn tell_not_written(&mut self, error: &LedgerError) {
        self.failing = true;
        self.outbox.put(Event::World(WorldEvent::Ledger(LedgerNotice::NotWritable { why: error.to_string() })));
    }

    /// What could not be written is: nothing else was told that still holds.
    fn written(&mut self) {
        if self.waiting.is_empty() && std::mem::take(&mut self.failing) {
            self.outbox.put(Event::World(WorldEvent::Writable));
        }
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
#[path = "keeper_tests.rs"]
mod tests;
