//! What the screen's own parts say, as typed values.

use jiff::Timestamp;
use providers::model::Action;

use crate::rules::filter::FilterErrorKind;
use crate::rules::saga::Operation;

/// Defines the words and the list of all of them.
macro_rules! words {
    ($($(#[$doc:meta])* $word:ident,)*) => {
        /// A text without arguments.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Word {
            $($(#[$doc])* $word,)*
        }

        impl Word {
            /// All of them, in this order.
            pub const ALL: &[Word] = &[$(Word::$word,)*];
        }
    };
}

words! {
    // The header and the views.
    Demo,
    ReadOnly,
    Fleet,
    Storage,
    NoBudgets,
    NoBudgetsWhy,
    NoAlerts,
    NoAlertsWhy,
    Budgets,
    Alerts,
    Activity,
    Notices,
    InFull,
    Seen,
    // Heads of columns.
    Name,
    Gpu,
    Util,
    Memory,
    Idle,
    /// In the column of idleness, in at most five cells.
    NotYet,
    /// After the currency's sign and a stroke.
    PerHour,
    /// Over the age of the last verified copy, in at most five cells.
    Saved,
    Next,
    Account,
    Project,
    Region,
    Up,
    When,
    Who,
    What,
    On,
    State,
    SavesHead,
    Kind,
    Size,
    Age,
    Note,
    PerMonth,
    Spent,
    // Rows and groups.
    NoGpu,
    NoProject,
    StoppedBilled,
    StoppedDisk,
    StoppedFree,
    Spot,
    Reserved,
    ReclaimAnyTime,
    ReadOnlyAccount,
    Protected,
    NotMine,
    NeedsYou,
    // Details.
    Ssh,
    Processes,
    Disks,
    HostKeyChanged,
    /// The same as a title.
    AnotherHostKey,
    GpuFault,
    LookInto,
    OtherSpan,
    Answers,
    Labels,
    AllGpus,
    MainMemory,
    Costs,
    SpentSoFar,
    Nothing,
    Unknown,
    PartUnknown,
    Estimated,
    /// After a rate that may be charged or not.
    Perhaps,
    MayBeCharged,
    PaidAhead,
    SavesNothing,
    SavesUnknown,
    /// Between two things of a list.
    ListComma,
    /// Between two remarks.
    Comma,
    /// Between two sentences.
    Semicolon,
    /// Between a word and what it stands for.
    Colon,
    Answer,
    Took,
    /// Before paths.
    SavesPaths,
    Meanwhile,
    // A plan.
    PlanSaves,
    PlanCosts,
    PlanGoesOn,
    PlanKeeps,
    PlanDeletes,
    LastSaved,
    LoggedIn,
    Nobody,
    PlanUse,
    PlanMind,
    PlanEnds,
    PlanAge,
    PlanPhase,
    PlanAsOf,
    OnlyRemembered,
    // Windows.
    Help,
    InLists,
    InAPlan,
    InThePopup,
    Everywhere,
    FilterHelp,
    FilterWords,
    FilterKeys,
    FilterAmounts,
    FilterExamples,
    Signs,
    Close,
    Cancel,
    Back,
    KeepFilter,
    LastAnswer,
    LastComplete,
    Never,
    LeaveNow,
    AnyOther,
    Stay,
    PlanChanged,
    PlanNothingLeft,
    NotTheSame,
    Palette,
    Choose,
    Columns,
    ColumnsWhy,
    ShowOrHide,
    LeavesEarlierLater,
    ColumnUp,
    ColumnRegion,
    ColumnProject,
    ColumnMemory,
    ColumnTrend,
    ColumnMonth,
    ColumnSpent,
    ColumnAccount,
    SaidLast,
    // To whom spend belongs.
    AssignProject,
    AssignFrom,
    AssignProjectWhy,
    AssignFromWhy,
    Save,
    OtherField,
    // Nothing to show.
    Welcome,
    WhatItIs,
    FoundKeys,
    NoAccounts,
    SetAKey,
    OrDemo,
    GoOn,
    ShowsAll,
    NothingRented,
    Loading,
    NobodyAnswered,
    NotAskedYet,
    NothingIdleWhy,
    NothingDone,
    NothingDoneWhy,
    // What costs without working.
    Waste,
    OfStopped,
    PerhapsUsed,
    WorkingUnlisted,
    NothingIdle,
    AttachedToNothing,
    UsedSomewhere,
    UseUnknown,
    MayBeUsedByOthers,
    ComputeBilled,
    CostsMoreWhileStopped,
    AddressBilled,
    // What was spent.
    Spend,
    Amount,
    Compute,
    Disk,
    StorageHead,
    OtherHead,
    WasteHead,
    GpuHours,
    Share,
    Instance,
    Provider,
    Component,
    Day,
    Total,
    RowsRounded,
    NotInConfig,
    Billed,
    Observed,
    Inferred,
    Assumed,
    BilledByProvider,
    CountedByUs,
    ReadingBooks,
    NothingSpent,
    BooksEmpty,
    SpendWhy,
    StillAdding,
    AnEstimate,
    Today,
    Times,
    Dearest,
    Entries,
    StillRunning,
    OurFigure,
    ReplacedWhy,
    NoEntry,
    WhichDays,
    TodayOnly,
    ThisWeek,
    ThisMonth,
    MonthBefore,
    NinetyDays,
    ThisYear,
    FromTo,
    NoDate,
    DaysReversed,
    DaysAhead,
    DaysTooMany,
}

/// A text with arguments. Figures come ready for the screen.
#[derive(Clone, Copy, Debug)]
pub enum Phrase<'a> {
    TooSmall {
        width: u16,
        height: u16,
        quit: &'a str,
        /// How many actions are under way, once somebody was to be asked before leaving.
        under_way: Option<usize>,
    },
    // The header.
    Wasting {
        rate: &'a str,
    },
    Prepaid {
        rate: &'a str,
    },
    /// What was spent today.
    Today {
        money: &'a str,
    },
    /// What was spent in a month, by its number from 1.
    InMonth {
        month: i8,
        money: &'a str,
    },
    /// An account that was taken out of the config while something ran in it.
    Unwatched {
        count: usize,
        rate: &'a str,
        age: Option<&'a str>,
    },
    /// What of the whole is storage of its own, which no row shows.
    StorageCosts {
        rate: &'a str,
    },
    /// How long an account's money lasts.
    Lasts {
        account: &'a str,
        time: &'a str,
        at_most: bool,
    },
    /// The same, where it is plain whose it is.
    LastsStill {
        time: &'a str,
        at_most: bool,
    },
    /// After the certain rate: the most that may be charged.
    UpTo {
        rate: &'a str,
    },
    InTrouble {
        count: usize,
    },
    MoreInTrouble {
        count: usize,
    },
    TroubleSince {
        age: &'a str,
    },
    LooksOn {
        host: &'a str,
        pid: u32,
    },
    Notices {
        count: usize,
    },
    /// By how much our clock differs from the clock of an account's provider.
    ClockOff {
        account: &'a str,
        off: &'a str,
        behind: bool,
    },
    /// An account whose machines nobody allowed to be looked into over `ssh`.
    NotLookedInto {
        account: &'a str,
        machines: usize,
    },
    // Rows and groups.
    Confirmed {
        action: Action,
    },
    GoneSince {
        age: &'a str,
    },
    MissingSince {
        age: &'a str,
    },
    Ends {
        at: &'a str,
    },
    ReservedTo {
        at: &'a str,
    },
    Old {
        age: &'a str,
    },
    Ago {
        age: &'a str,
    },
    AskingFor {
        age: &'a str,
    },
    Left {
        money: &'a str,
    },
    Voucher {
        money: &'a str,
    },
    /// Where an action is.
    Step {
        operation: &'a Operation,
        now: Timestamp,
        /// The key that takes it back; empty where there is none.
        undo: &'a str,
    },
    // Details.
    SpentSince {
        money: &'a str,
        at: &'a str,
    },
    OfItAssumed {
        money: &'a str,
    },
    PerhapsMore {
        money: &'a str,
    },
    /// The project of some resources is asked for.
    AssignTitle {
        name: &'a str,
        count: usize,
    },
    /// Lowest and highest of several.
    Range {
        from: &'a str,
        to: &'a str,
    },
    UpFor {
        time: &'a str,
    },
    /// A price that is asked for, and when the rental ends unless it is accepted.
    Repricing {
        rate: &'a str,
        asked: &'a str,
        ends: Option<&'a str>,
    },
    Saves {
        rate: &'a str,
    },
    /// What actions of this month saved until now.
    SavedThisMonth {
        money: &'a str,
    },
    WillCost {
        rate: &'a str,
    },
    GoesOn {
        rate: &'a str,
    },
    LeftBehind {
        name: &'a str,
        rate: Option<&'a str>,
    },
    Deletes {
        places: &'a str,
    },
    Keeps {
        places: &'a str,
    },
    /// The whole of what a storage item holds.
    AllIn {
        name: &'a str,
        size: Option<&'a str>,
    },
    Rows {
        count: usize,
    },
    StorageItems {
        count: usize,
        rate: Option<&'a str>,
    },
    ProviderBurn {
        rate: &'a str,
    },
    BalanceUnknown {
        error: &'a str,
    },
    Problems {
        count: usize,
    },
    ProblemsOf {
        account: &'a str,
    },
    NextTryIn {
        time: &'a str,
    },
    // A plan.
    PlanFor {
        action: Action,
        name: &'a str,
    },
    PlanForMany {
        action: Action,
        count: usize,
    },
    ADay {
        money: &'a str,
    },
    AMonth {
        money: &'a str,
    },
    // What was spent.
    /// Sums of several currencies in one.
    InAll {
        money: &'a str,
    },
    BooksSince {
        date: &'a str,
    },
    /// `None` for all accounts.
    CountedSince {
        account: Option<&'a str>,
        date: &'a str,
    },
    MoreMayBeCharged {
        money: &'a str,
    },
    PrepaidAmount {
        money: &'a str,
        unused: Option<&'a str>,
    },
    /// What was billed, and our own figure for it.
    Drift {
        billed: &'a str,
        ours: &'a str,
    },
    Unexplained {
        account: &'a str,
        money: &'a str,
        /// Less left the account than the books say.
        less: bool,
    },
    PaidIn {
        account: &'a str,
        money: &'a str,
    },
    VoucherBeside {
        account: &'a str,
        money: &'a str,
    },
    /// The highest bar.
    Peak {
        money: &'a str,
    },
    DaysFrom {
        date: &'a str,
        count: i32,
    },
    GpuHours {
        hours: &'a str,
    },
    // What costs without working.
    AttachedToStopped {
        names: &'a str,
    },
    AttachedToUnlisted {
        names: &'a str,
    },
    DataOf {
        action: Action,
        count: usize,
    },
    MoreLines {
        count: usize,
    },
    LeftOutCount {
        count: usize,
    },
    Confirm {
        action: Action,
        count: usize,
        /// The key that takes it back; empty where there is none.
        undo: &'a str,
    },
    AskName {
        action: Action,
        count: usize,
    },
    EnterDoes {
        action: Action,
    },
    // Leaving.
    LeaveTitle {
        count: usize,
    },
    UnsentAtLeave {
        count: usize,
    },
    SentAtLeave {
        count: usize,
    },
    /// At the end, and after the screen.
    Farewell {
        count: usize,
        rate: &'a str,
        by_then: &'a str,
        at: &'a str,
        /// No other program looks on.
        alone: bool,
    },
    // The footer.
    Marked {
        count: usize,
    },
    Hidden {
        count: usize,
    },
    /// Of the marked rows.
    MarkedHidden {
        count: usize,
    },
    NothingFound {
        text: &'a str,
    },
    /// A filter that cannot be read; `part` is what it is about.
    FilterError {
        kind: FilterErrorKind,
        part: &'a str,
    },
    // Nothing to show.
    FromVariable {
        variable: &'a str,
    },
    ConfigAt {
        path: &'a str,
    },
    OrConfigAt {
        path: &'a str,
    },
    NothingMatches {
        filter: &'a str,
        hidden: usize,
    },
    AccountsAsked {
        count: usize,
    },
}
