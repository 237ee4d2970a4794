//! Everything that the program can ask for. Plain data: a test compares them, a log prints them.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use providers::model::{AccountName, BilledLine, Identity};
use providers::provider::Ask;

use super::preferences::Preferences;
use crate::rules::alerts::Alert;
use crate::rules::budgets::Budget;
use crate::rules::checkpoint::{Job, KeepRule, Saved};
use crate::rules::dispatch::{Message, Parcel};
use crate::rules::guard::{Trial, Veto, Watch};
use crate::rules::lease::{self, Lease, LeaseId};
use crate::rules::memory::Keep;
use crate::rules::saga::{OpId, Operation, Permit};
use crate::rules::settings::Setting;
use crate::rules::spend::{Assignment, Marking, Question};
use crate::rules::streams::Target;
use crate::rules::usage::UsageEntry;

#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    // World effects: the collector's alone.
    Poll {
        account: AccountName,
        ask: Ask,
        asked_at: Timestamp,
    },
    Lookup {
        op: Option<OpId>,
        identity: Identity,
    },
    /// The entry is on disk before what follows is done.
    Commit {
        entry: Box<Operation>,
        then: Option<Then>,
    },
    /// The stage of this number of an action's checkpoint ends, or is not begun.
    StopSaving {
        op: OpId,
        number: u64,
    },
    /// Delete the copies of a machine by this recipe that make room for later ones; a day is one of the zone.
    Thin {
        identity: Identity,
        recipe: String,
        keep: KeepRule,
        zone: TimeZone,
    },
    /// Look whether the last copies of machines are still where they were.
    LookForCopies(Vec<Saved>),
    /// Write down what a poll changed.
    Keep(Box<Keep>),
    Set {
        identity: Identity,
        setting: Setting,
    },
    /// Ask the books for their sums of a day and its month.
    SumUp {
        day: Date,
        /// The number of the question, to be told with the answer.
        asked: u64,
        /// The budgets whose closed days are asked for as well.
        budgets: Vec<Budget>,
    },
    /// Ask a provider for what it billed in a time.
    AskBilled {
        account: AccountName,
        from: Timestamp,
        to: Timestamp,
    },
    /// Write down what a provider billed in a time: all of it.
    KeepBilled {
        account: AccountName,
        from: Timestamp,
        to: Timestamp,
        lines: Vec<BilledLine>,
    },
    /// Write down to which projects spend belongs.
    Assign(Vec<Assignment>),
    /// Write down which spend turned out to be waste, or none.
    MarkWaste(Vec<Marking>),
    /// Somebody knows of the accounts that nobody watches any more.
    NoteUnwatched(Vec<AccountName>),
    /// What is known under one account's name goes on under another's: it is the same one.
    Rename {
        from: AccountName,
        to: AccountName,
    },
    /// Open a stream to a machine: it tells its figures at this pace until it ends.
    OpenStream {
        identity: Identity,
        number: u64,
        target: Target,
        pace: SignedDuration,
        /// The key that its host had is forgotten first: whatever key it has now is the right one.
        new_key: bool,
    },
    CloseStream {
        identity: Identity,
    },
    /// Write down what machines did.
    KeepUsage(Vec<UsageEntry>),
    /// Read what machines did since a time, if any, and the most memory that they used in a week.
    RecallUsage {
        from: Option<Timestamp>,
        peaks: bool,
    },
    /// Write down what alerts have come to, and what channels are to be told of it.
    KeepAlerts {
        alerts: Vec<Alert>,
        messages: Vec<Message>,
    },
    /// Read how alerts and leases stand, and what was done: another process may have been told that somebody has seen
    /// them, and may have brought about what happened.
    RecallAlerts,
    /// Write down a lease as it is now; whether it is written is told.
    KeepLease(Box<Lease>),
    /// Ask an instance on behalf of a lease.
    LookForJob {
        lease: LeaseId,
        target: Target,
        ask: lease::Ask,
    },
    /// Write down all that guards are called for by.
    KeepWatches(Vec<Watch>),
    /// Write down that guards are not to act on a machine.
    KeepVeto {
        identity: Identity,
        veto: Veto,
    },
    /// Read what people forbid guards: another process may have been told.
    RecallVetoes {
        asked_at: Timestamp,
    },
    /// Find out whether what is promised for a machine could be done now.
    Prove(Box<Trial>),
    /// Ask the books how balances moved, and what was charged meanwhile.
    AskBalances(Question),
    /// Tell a channel, once it is written down that this was begun.
    Send(Parcel),
    /// Claim the ledger, or renew the claim.
    Claim,
    /// Read the ledger again: somebody else collects.
    Recall,

    // View effects: this screen's own.
    /// Ask the books what was spent.
    AskSpend(Question),
    OpenPage(String),
    /// Put a text into the clipboard, through the terminal.
    Copy(String),
    /// Have the terminal tell a notice, as it does with those of programs; how that went is an event of the channel.
    TellTerminal {
        channel: String,
        text: String,
    },
    /// Lend the terminal to `ssh` until it ends.
    Ssh(Target),
    /// Lend the terminal to the editor, with the config.
    EditConfig,
    /// Add the account whose key is in this environment variable.
    AddOffered(String),
    /// Write a budget into the config, in place of the one of this name or as a new one.
    SaveBudget {
        budget: Box<Budget>,
        of: Option<String>,
    },
    /// See what of a machine may be worth a checkpoint.
    LookForPaths {
        identity: Identity,
        target: Target,
    },
    /// See how much a path on a machine holds.
    MeasurePath {
        identity: Identity,
        target: Target,
        path: String,
    },
    /// Ring the terminal's bell.
    Bell,
    /// Write down how this screen was set up.
    SavePreferences(Preferences),
    /// Clear the terminal and paint all of it.
    Repaint,
    /// Leave the screen to the shell until the program is brought back.
    Suspend,
}

/// What is done once a step is on disk.
#[derive(Clone, Debug, PartialEq)]
pub enum Then {
    /// One request is sent.
    Send(Permit),
    /// One stage of a checkpoint is done.
    Save(Box<Job>),
}
