//! Everything that the screen can say, as typed values. The words in each language are `ui::text`'s.

use super::state::Tab;
use jiff::Timestamp;
use providers::money::Rate;
use serde::{Deserialize, Serialize};

use crate::rules::lease::{End, What};
use crate::rules::plan::Hindrance;
use crate::rules::saga::Outcome;
use crate::rules::spend::By;
use crate::rules::streams::Consent;

/// A text without arguments, or one that carries what its sentence needs.
#[derive(Clone, Debug, PartialEq)]
pub enum Msg {
    // Footer hints: one or two words.
    HintStop,
    HintStart,
    HintRelease,
    HintSaveAndEnd,
    HintCheckpoint,
    HintDelete,
    HintTakeBack,
    HintMark,
    HintDetails,
    HintFilter,
    HintSort,
    HintGroup,
    HintQuick,
    HintEarlier,
    HintLater,
    HintRange,
    HintBehind,
    HintNewBudget,
    HintChange,
    HintGoThere,
    HintSeen,
    HintSeenAll,
    HintSnooze,
    HintAllIdle,
    HintPage,
    HintLeave,
    HintPalette,
    HintHelp,
    HintQuit,
    HintConfirm,
    HintCancel,
    // Help: one sentence each.
    HelpStop,
    HelpRelease,
    HelpTakeBack,
    HelpMark,
    HelpDetails,
    HelpFilter,
    HelpSort,
    HelpGroup,
    HelpQuick,
    HelpProtect,
    HelpMine,
    HelpProject,
    HelpSeen,
    HelpColumns,
    HelpSaveAndEnd,
    HelpCheckpoint,
    HelpLease,
    HelpPlanSave,
    HelpPane,
    HelpLookInto,
    HelpChart,
    HelpSsh,
    HelpCopySsh,
    HelpPage,
    HelpEarlier,
    HelpLater,
    HelpRange,
    HelpSpendGroup,
    HelpBehind,
    HelpTimes,
    HelpFold,
    HelpUnfold,
    HelpProblem,
    HelpEditConfig,
    HelpDown,
    HelpUp,
    HelpPageDown,
    HelpPageUp,
    HelpFirst,
    HelpLast,
    HelpShowFleet,
    HelpShowSpend,
    HelpShowStorage,
    HelpShowBudgets,
    HelpShowAlerts,
    HelpNewBudget,
    HelpChangeBudget,
    HelpGoThere,
    HelpAlertSeen,
    HelpSeenAll,
    HelpAlertInFull,
    HelpSnooze,
    HelpAllIdle,
    HelpLeaveAlerts,
    HelpShowActivity,
    HelpPalette,
    HelpNextView,
    HelpRefresh,
    HelpRepaint,
    HelpSuspend,
    HelpBack,
    HelpHelp,
    HelpQuit,
    HelpConfirm,
    HelpPlanAgain,
    HelpCancel,
    // The message line.
    /// Of a lease.
    Lease {
        name: String,
        what: What,
        note: LeaseNote,
    },
    NothingSelected,
    /// The key means something in another view.
    WorksElsewhere {
        tab: Tab,
    },
    NothingToTakeBack,
    RowJustChanged,
    RowGone,
    NotListed {
        name: String,
    },
    TakenBack {
        name: String,
    },
    SeveralTakenBack {
        count: usize,
    },
    LeftOut {
        name: String,
        action: providers::model::Action,
        hindrance: Hindrance,
    },
    MixedMarks,
    MixedKinds,
    PasteIgnored,
    Refreshing,
    SortedBy {
        order: SortName,
        reversed: bool,
    },
    GroupedBy(GroupName),
    SpendBy(By),
    /// There is nothing beyond the present range.
    NoFuture,
    /// Times are told by how long ago they are, or as moments.
    TimesAgo(bool),
    QuickFilter(QuickName),
    ProtectedNow {
        name: String,
        on: bool,
    },
    /// Spend of some resources belongs to a project from some time on.
    Assigned {
        count: usize,
        project: Option<String>,
    },
    /// What was told is known.
    Noted,
    /// So many alerts are seen.
    AlertsSeen {
        count: usize,
    },
    /// Alerts are told again then.
    Snoozed {
        count: usize,
        /// The time of day.
        clock: String,
    },
    /// There is nothing left to say to an alert: it is seen, or has ended.
    AlertAnswered,
    NoAlertHere,
    /// What an alert is about has no row that this could be done to.
    NotOfThisAlert,
    NothingIdleNow,
    BudgetSaved {
        name: String,
    },
    /// The same, where it is kept nowhere.
    BudgetInDemo {
        name: String,
    },
    /// Another process collects: it takes the config up at its next start.
    BudgetSavedElsewhere {
        name: String,
    },
    /// Its scope has several conditions, which the form has not.
    BudgetOnlyInConfig {
        name: String,
    },
    NothingToNote,
    MineNow {
        name: String,
        on: bool,
    },
    NoPage,
    NoSsh,
    SshCopied {
        line: String,
    },
    NoSshInDemo,
    /// No machine tells an address that `ssh` leads to.
    NothingToLookInto,
    /// What was said about an account's machines.
    LooksInto {
        account: String,
        consent: Consent,
    },
    /// The other key of a host is taken for the right one.
    HostKeyAccepted {
        name: String,
    },
    OpeningPage {
        url: String,
    },
    PageNotOpened {
        error: String,
        url: String,
    },
    NoProblem,
    /// The config is as it should be; it is in force from the next start.
    ConfigEdited,
    NoConfigInDemo,
    /// What the editor left, or that it could not be started.
    EditFailed {
        error: String,
    },
    SshFailed {
        error: String,
    },
    OnlyLooking {
        host: String,
        pid: u32,
    },
    NotAdded {
        error: String,
    },
    Begun {
        action: providers::model::Action,
        count: usize,
        saves: Vec<Rate>,
        goes_on: Vec<Rate>,
    },
    Ended {
        name: String,
        action: providers::model::Action,
        outcome: Outcome,
    },
}

impl Msg {
    /// Something did not go as it should: it can be read in full.
    pub fn is_bad(&self) -> bool {
        match self {
            Msg::Ended { outcome, .. } => outcome.is_bad(),
            Msg::Lease { note: LeaseNote::NotKept(_), .. }
            | Msg::LeftOut { .. }
            | Msg::PageNotOpened { .. }
            | Msg::SshFailed { .. }
            | Msg::EditFailed { .. }
            | Msg::OnlyLooking { .. }
            | Msg::NotAdded { .. } => true,
            _ => false,
        }
    }
}

/// What became of a lease.
#[derive(Clone, Debug, PartialEq)]
pub enum LeaseNote {
    Set,
    Ended(End),
    /// The ledger could not take it.
    NotKept(String),
}

/// Orders of the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SortName {
    /// What needs somebody, then what wastes most, then what costs most.
    #[default]
    Attention,
    Cost,
    Name,
    Age,
    /// How much the GPUs do, the idlest first.
    Use,
    /// How long nothing worked on it, the longest first.
    Idle,
    Account,
    Project,
    Region,
    Size,
}

/// Groupings of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GroupName {
    None,
    Account,
    Provider,
    Project,
    Market,
}

/// Quick filters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum QuickName {
    #[default]
    All,
    /// Judged to do nothing.
    Idle,
    /// Costs money and does no work, as far as the phase tells.
    Off,
    Spot,
}

/// A message with the time at which it leaves the screen.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    pub message: Msg,
    pub until: Timestamp,
}
