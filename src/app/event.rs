//! Everything that can happen. World events are what the collector learns and are plain, versioned data;
//! view events belong to one screen.

use jiff::Timestamp;
use providers::error::ProviderError;
use providers::model::{AccountName, BilledLine, Identity, ProviderName};
use providers::provider::{Accepted, Found, Poll};
use serde::{Deserialize, Serialize};

use crate::app::action::{Key, Mouse};
use crate::rules::alerts::{Alert, Topic};
use crate::rules::budgets::Budget;
use crate::rules::checkpoint;
use crate::rules::checkpoint::proposals::{Proposal, Size};
use crate::rules::dispatch::{Delivery, Message};
use crate::rules::fleet::Trouble;
use crate::rules::guard::{Unable, Veto};
use crate::rules::lease::{self, Lease, LeaseId};
use crate::rules::memory::{Collector, LedgerNotice, Memory, Owner};
use crate::rules::plan::Plan;
use crate::rules::saga::{Authority, OpId, Operation};
use crate::rules::settings::Setting;
use crate::rules::spend::{Answer, Assignment, Summed};
use crate::rules::streams::{Consent, Told};
use crate::rules::usage::{UsageEntry, WeeksPeak};

/// Something happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    World(WorldEvent),
    View(ViewEvent),
}

/// Something that the collector learnt or was asked to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorldEvent {
    /// Time passed; somebody may be due.
    Tick,
    /// What the ledger knew, at start or when looking on again.
    Remembered {
        memory: Box<Memory>,
        notices: Vec<LedgerNotice>,
    },
    /// Who collects.
    Collector(Collector),
    /// Whether some process watches without a screen, whoever collects.
    Watched(bool),
    /// Actions that a process left under way and that nobody has in hand any more.
    Orphaned(Vec<(Operation, Owner)>),
    /// An account of the config that could not be made ready.
    NotReady {
        account: AccountName,
        trouble: Trouble,
    },
    /// An account was added while the program runs.
    Added {
        account: AccountName,
        provider: ProviderName,
        read_only: bool,
    },
    Polled {
        account: AccountName,
        asked_at: Timestamp,
        poll: Box<Poll>,
    },
    /// `op` is the action that asked; without one the fleet asked whether the resource is gone.
    LookedUp {
        op: Option<OpId>,
        identity: Identity,
        found: Result<Found, ProviderError>,
    },
    Acted {
        op: OpId,
        answer: Result<Accepted, ProviderError>,
    },
    /// What the books answered before was not all: they have been added up, or hold what had to wait.
    AddedUp,
    /// What is told of a stage of an action's checkpoint, by the number of its try.
    Saving {
        op: OpId,
        number: u64,
        told: checkpoint::Told,
    },
    /// The copy that this action made of a machine is not where it was; `earlier` is the last one before it that is.
    CopyMissing {
        identity: Identity,
        op: OpId,
        earlier: Option<Box<checkpoint::Saved>>,
    },
    /// The books' sums.
    Summed(Box<Summed>),
    /// What a provider says that it charged from `from` to `to`.
    Billed {
        account: AccountName,
        from: Timestamp,
        to: Timestamp,
        lines: Result<Vec<BilledLine>, ProviderError>,
    },
    /// The books hold all that a provider billed up to then.
    BilledKept {
        account: AccountName,
        to: Timestamp,
    },
    /// What a stream to a machine told.
    Stream {
        identity: Identity,
        number: u64,
        told: Told,
    },
    /// What the ledger knows of what machines did; `peaks` where it was asked for.
    UsageRecalled {
        entries: Vec<UsageEntry>,
        /// There is more from this time on.
        rest: Option<Timestamp>,
        peaks: Option<Vec<WeeksPeak>>,
    },
    /// How alerts stand in the ledger.
    AlertsRecalled {
        alerts: Vec<Alert>,
        /// What any process did of late, or has in hand.
        acted: Vec<Operation>,
    },
    /// The leases that are in force in the ledger.
    LeasesRecalled(Vec<Lease>),
    /// A lease is written down; false when the ledger says that it has ended, and why it could not be.
    LeaseKept {
        lease: LeaseId,
        kept: Result<bool, String>,
    },
    /// What an instance told on behalf of a lease.
    Job {
        lease: LeaseId,
        told: lease::Told,
    },
    /// What the books say of balances.
    Balances(Box<Answer>),
    /// What people forbid guards, by the ledger, and when that was asked for.
    VetoesRecalled {
        asked_at: Timestamp,
        vetoes: Vec<(Identity, Veto)>,
    },
    /// Whether what is promised for a machine could be done now.
    Proven {
        identity: Identity,
        unable: Option<Unable>,
    },
    /// Messages that wait in the ledger, whoever wrote them.
    MessagesRecalled(Vec<Message>),
    /// How it went to tell a channel.
    Sent {
        channel: String,
        delivery: Delivery,
    },
    /// A step could not be written down, so what depended on it was not done.
    NotRecorded {
        op: OpId,
        error: String,
    },
    /// An action was not begun, since another process has one on the same resource in hand.
    Forestalled {
        op: OpId,
        by: Owner,
    },
    /// Another file is the ledger now: whatever was written down before is not in it.
    Reopened,
    /// The ledger can be written again.
    Writable,
    /// Something about the ledger that a person should know.
    Ledger(LedgerNotice),
    Intent(Intent),
}

/// What a person wants of the collector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Intent {
    /// Begin a confirmed plan.
    Begin {
        plan: Box<Plan>,
        authority: Authority,
    },
    /// Take back this action, or without one all that was begun last and can be taken back.
    TakeBack(Option<OpId>),
    /// Ask every account again, within the limits.
    Refresh,
    Set {
        identity: Identity,
        setting: Setting,
    },
    /// The spend of a resource belongs to a project: from now on, and in the books since a time.
    Assign(Assignment),
    /// The spend of resources belongs where the rules say, in the books since a time. Nobody's own setting.
    AssignAll(Vec<Assignment>),
    /// Somebody knows of the accounts that nobody watches any more.
    NoteUnwatched,
    /// Whether an account's machines may be looked into over `ssh`.
    Consent {
        account: AccountName,
        consent: Consent,
    },
    /// The other key that a host has is the right one.
    AcceptHostKey(Identity),
    /// This is to happen to an instance by itself.
    Lease(Box<lease::Draft>),
    /// These leases are taken away.
    EndLeases(Vec<LeaseId>),
    /// Somebody has seen these alerts.
    Acknowledge(Vec<Topic>),
    /// Guards are not to act on these machines, until what they are called for by is over and comes again.
    Veto(Vec<Identity>),
    /// These alerts are to be told again then.
    Snooze {
        topics: Vec<Topic>,
        until: Timestamp,
    },
}

/// Something that happened to one screen.
#[derive(Clone, Debug, PartialEq)]
pub enum ViewEvent {
    Key(Key),
    /// A whole pasted text: never taken as keys.
    Paste(String),
    Mouse(Mouse),
    Resize {
        width: u16,
        height: u16,
    },
    /// The screen was left and is back: paint all of it.
    Resumed,
    /// A page could not be opened.
    PageNotOpened {
        url: String,
        error: String,
    },
    /// What the books answered.
    Spend(Box<Answer>),
    /// The account that was offered could not be added.
    NotAdded(String),
    /// The desktop does not take a notice: the terminal is to tell it. `text` is clean, and one line.
    TellTerminal {
        channel: String,
        text: String,
    },
    /// The config holds a budget, or why it does not.
    BudgetSaved {
        budget: Box<Budget>,
        /// The one in whose place it stands.
        of: Option<String>,
        ended: Result<(), String>,
    },
    /// What of a machine may be worth a checkpoint, or why nobody could look.
    PathsFound {
        identity: Identity,
        found: Result<Vec<Proposal>, checkpoint::Trouble>,
    },
    /// How much a path on a machine holds.
    PathMeasured {
        identity: Identity,
        path: String,
        size: Size,
    },
    /// Whoever had the terminal has given it back: what went wrong, if anything did.
    Returned {
        from: Guest,
        ended: Result<(), String>,
    },
}

/// Who gets the terminal lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guest {
    Ssh,
    /// The editor, for the config.
    Editor,
}

/// One line of a recorded stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The version of this format.
    pub v: u32,
    pub at: Timestamp,
    pub event: WorldEvent,
}

impl Record {
    pub const VERSION: u32 = 1;

    pub fn new(at: Timestamp, event: WorldEvent) -> Self {
        Record { v: Self::VERSION, at, event }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_event_reads_back() {
        let record = Record::new(Timestamp::UNIX_EPOCH, WorldEvent::Intent(Intent::Refresh));
        let line = serde_json::to_string(&record).unwrap();
        assert_eq!(line, r#"{"v":1,"at":"1970-01-01T00:00:00Z","event":{"intent":"refresh"}}"#);
        assert_eq!(serde_json::from_str::<Record>(&line).unwrap(), record);
    }
}
