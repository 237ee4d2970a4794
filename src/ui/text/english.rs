//! English.

use providers::error::ErrorKind;
use providers::model::{Action, Component, DataKind, Phase, Refusal, Remark, Risk, StorageKind};
use providers::money::Currency;

use super::view;
use super::words::{Phrase, Word};
use crate::app::message::{GroupName, Msg, QuickName, SortName};
use crate::app::rows::MarketName;
use crate::rules::filter::{Expected, FilterErrorKind};
use crate::rules::fleet::{Freshness, Trouble};
use crate::rules::memory::LedgerNotice;
use crate::rules::plan::Hindrance;
use crate::rules::saga::{NotSent, Outcome, Step};
use crate::rules::spend::By;
use crate::ui::format;
use crate::ui::language::Language;
use crate::ui::look::Look;

const SPOKEN: Language = Language::English;

pub fn word(word: Word) -> &'static str {
    match word {
        Word::Demo => "DEMO",
        Word::ReadOnly => "READ-ONLY",
        Word::Fleet => "Fleet",
        Word::Storage => "Storage",
        Word::Activity => "Activity",
        Word::NoBudgets => "no budgets yet",
        Word::NoBudgetsWhy => "n makes one: a limit for a day, a week or a month, for everything or for one project",
        Word::NoAlerts => "nothing needs you",
        Word::NoAlertsWhy => {
            "what fires stands here, and what has fired; a channel in the config tells it elsewhere too"
        }
        Word::Budgets => "Budgets",
        Word::Alerts => "Alerts",
        Word::Notices => "Notices",
        Word::InFull => "in full",
        Word::Seen => "seen",
        Word::Spent => "SPENT",
        Word::SpentSoFar => "spent",
        Word::AssignProject => "project",
        Word::AssignFrom => "from",
        Word::AssignProjectWhy => "empty: by the rules of the config",
        Word::AssignFromWhy => "now, all, 3d, 2026-11-01, or 2026-11-01 14:30",
        Word::Save => "save",
        Word::OtherField => "other field",
        Word::Name => "NAME",
        Word::Gpu => "GPU",
        Word::Util => "UTIL",
        Word::Memory => "MEM G",
        Word::Idle => "IDLE",
        Word::NotYet => "new",
        Word::PerHour => "H",
        Word::Saved => "SAVED",
        Word::Next => "NEXT",
        Word::Account => "ACCOUNT",
        Word::Project => "PROJECT",
        Word::Region => "REGION",
        Word::Up => "UP",
        Word::When => "WHEN",
        Word::Who => "WHO",
        Word::What => "WHAT",
        Word::On => "ON",
        Word::State => "STATE",
        Word::SavesHead => "SAVES/H",
        Word::Kind => "KIND",
        Word::Size => "SIZE",
        Word::Age => "AGE",
        Word::Note => "NOTE",
        Word::PerMonth => "MO",
        Word::NoGpu => "no GPU",
        Word::NoProject => "(no project)",
        Word::StoppedBilled => "still billed",
        Word::StoppedDisk => "stopped, disk",
        Word::StoppedFree => "stopped, free",
        Word::Spot => "spot",
        Word::Reserved => "reserved",
        Word::ReclaimAnyTime => "reclaim any time",
        Word::ReadOnlyAccount => "read-only",
        Word::Protected => "protected",
        Word::NotMine => "not mine",
        Word::NeedsYou => "needs you",
        Word::Ssh => "ssh",
        Word::Processes => "on the GPUs",
        Word::Disks => "disks",
        Word::HostKeyChanged => "host key changed",
        Word::AnotherHostKey => "Host key changed",
        Word::GpuFault => "GPU fault",
        Word::LookInto => "Look into machines",
        Word::OtherSpan => "10 min, 1 h, 24 h",
        Word::Answers => "answer",
        Word::Labels => "labels",
        Word::AllGpus => "all ",
        Word::MainMemory => "memory",
        Word::Costs => "costs",
        Word::Nothing => "nothing",
        Word::Unknown => "not known",
        Word::PartUnknown => "a part is not known",
        Word::Estimated => "estimated",
        Word::Perhaps => "perhaps",
        Word::MayBeCharged => "may be charged",
        Word::PaidAhead => "paid ahead",
        Word::SavesNothing => "saves nothing",
        Word::SavesUnknown => "what it saves is not known",
        Word::ListComma | Word::Comma => ", ",
        Word::Semicolon => "; ",
        Word::Colon => ": ",
        Word::Answer => "answer",
        Word::Took => "took",
        Word::PlanSaves => "saves",
        Word::PlanCosts => "will cost",
        Word::PlanGoesOn => "goes on",
        Word::PlanKeeps => "keeps",
        Word::PlanDeletes => "deletes",
        Word::LastSaved => "last saved",
        Word::LoggedIn => "logged in",
        Word::Nobody => "nobody",
        Word::SavesPaths => "paths",
        Word::Meanwhile => "meanwhile",
        Word::PlanUse => "use",
        Word::PlanMind => "mind",
        Word::PlanAge => "age",
        Word::PlanEnds => "term ends",
        Word::PlanPhase => "state",
        Word::PlanAsOf => "as of",
        Word::OnlyRemembered => "only remembered: the provider has not answered yet",
        Word::Help => "Help",
        Word::InLists => "Fleet and Storage",
        Word::InAPlan => "In a plan",
        Word::InThePopup => "Alerts that popped up",
        Word::Everywhere => "Everywhere",
        Word::FilterHelp => "Filter: every term must fit; - before one turns it round, | means or",
        Word::FilterWords => "words",
        Word::FilterKeys => "keys",
        Word::FilterAmounts => "amounts",
        Word::FilterExamples => "examples",
        Word::Signs => "Signs",
        Word::Close => "close",
        Word::Cancel => "cancel",
        Word::Back => "back",
        Word::KeepFilter => "keep",
        Word::LastAnswer => "last answer",
        Word::LastComplete => "last complete answer",
        Word::Never => "never",
        Word::LeaveNow => "leave now",
        Word::AnyOther => "any other key",
        Word::Stay => "stay",
        Word::PlanChanged => "It has changed while you were asked. This is how it is now; decide anew.",
        Word::PlanNothingLeft => "It has changed while you were asked: nothing is left to do.",
        Word::NotTheSame => "not the same",
        Word::Palette => "What now?",
        Word::Choose => "choose",
        Word::Columns => "Columns",
        Word::ColumnsWhy => "State, name, GPU, use, idleness, cost, the last copy and what comes next always stay.",
        Word::ShowOrHide => "show, hide",
        Word::LeavesEarlierLater => "leaves earlier, later",
        Word::ColumnUp => "up: how long it has been running",
        Word::ColumnRegion => "region",
        Word::ColumnProject => "project, where there are any",
        Word::ColumnMemory => "memory of the GPUs",
        Word::ColumnTrend => "curve of use, beside its figure",
        Word::ColumnMonth => "what it cost this month",
        Word::ColumnSpent => "what it cost since the rental began",
        Word::ColumnAccount => "account, unless grouped by it",
        Word::SaidLast => "Just said",
        Word::Welcome => "Welcome to rentop.",
        Word::WhatItIs => "Every GPU that you rent on one screen: what runs, what it costs, and one key to end it.",
        Word::FoundKeys => "Your environment holds keys of these providers. Press a number to add the account:",
        Word::NoAccounts => "No accounts yet.",
        Word::SetAKey => "Put a provider's API key into its variable and start again:",
        Word::OrDemo => "Or look around first, with nothing to configure:",
        Word::GoOn => "goes on without the others",
        Word::ShowsAll => "shows all",
        Word::NothingRented => "Nothing is rented right now. What you start anywhere appears here by itself.",
        Word::Loading => "Asking your accounts:",
        Word::NobodyAnswered => "No account has answered:",
        Word::NotAskedYet => "not asked yet",
        Word::NothingIdleWhy => {
            "Here stand stopped instances, and volumes, snapshots and addresses that nothing at work uses."
        }
        Word::NothingDone => "Nothing was stopped, started or released yet.",
        Word::NothingDoneWhy => {
            "Every action appears here: who did it, what the provider answered, and whether it is proven."
        }
        Word::Waste => "waste",
        Word::OfStopped => "storage of stopped instances",
        Word::PerhapsUsed => "perhaps in use",
        Word::WorkingUnlisted => "in use and not listed",
        Word::NothingIdle => "Nothing is known to cost without working.",
        Word::AttachedToNothing => "attached to nothing",
        Word::UsedSomewhere => "in use, by whom is not told",
        Word::UseUnknown => "whether it is in use is not told",
        Word::MayBeUsedByOthers => "others may be using it",
        Word::ComputeBilled => "compute is billed while stopped",
        Word::CostsMoreWhileStopped => "its disk costs more while stopped",
        Word::AddressBilled => "its address is billed while stopped",
        Word::Spend => "Spend",
        Word::Amount => "AMOUNT",
        Word::Compute => "COMPUTE",
        Word::Disk => "DISK",
        Word::StorageHead => "STORAGE",
        Word::OtherHead => "OTHER",
        Word::WasteHead => "WASTE",
        Word::GpuHours => "GPU-H",
        Word::Share => "SHARE",
        Word::Instance => "INSTANCE",
        Word::Provider => "PROVIDER",
        Word::Component => "COMPONENT",
        Word::Day => "DAY",
        Word::Total => "total",
        Word::RowsRounded => "(rows rounded)",
        Word::NotInConfig => "(not in the config)",
        Word::Billed => "billed",
        Word::Observed => "observed",
        Word::Inferred => "inferred",
        Word::Assumed => "assumed",
        Word::BilledByProvider => "billed by the provider",
        Word::CountedByUs => "counted by rentop",
        Word::ReadingBooks => "reading the books",
        Word::NothingSpent => "Nothing was spent in these days.",
        Word::SpendWhy => {
            "What is spent appears here by itself, with how it is known: billed, observed, inferred or assumed."
        }
        Word::BooksEmpty => "The books are empty: they count from the first look on.",
        Word::StillAdding => "still being added up",
        Word::AnEstimate => "no billing records: an estimate",
        Word::Today => "today",
        Word::Times => "times",
        Word::Dearest => "dearest",
        Word::Entries => "entries",
        Word::StillRunning => "still running",
        Word::OurFigure => "our figure",
        Word::ReplacedWhy => "(…) our figure for a time that was billed: in no total",
        Word::NoEntry => "The books hold no entry of it in these days.",
        Word::WhichDays => "Which days?",
        Word::TodayOnly => "today",
        Word::ThisWeek => "this week",
        Word::ThisMonth => "this month",
        Word::MonthBefore => "the month before",
        Word::NinetyDays => "the last 90 days",
        Word::ThisYear => "this year",
        Word::FromTo => "from..to",
        Word::NoDate => "like 2026-11-01..2026-11-15, 2026-11-15 or 2026-11",
        Word::DaysReversed => "the last day is before the first",
        Word::DaysAhead => "these days are still to come",
        Word::DaysTooMany => "at most ten years",
    }
}

fn many(count: usize, one: &str, more: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {more}") }
}

/// What an action is about, counted.
fn things(action: Action, count: usize) -> String {
    match action {
        Action::Delete => many(count, "storage item", "storage items"),
        _ => many(count, "instance", "instances"),
    }
}

pub fn phrase(phrase: &Phrase) -> String {
    match *phrase {
        Phrase::TooSmall { width, height, quit, under_way: None } => {
            format!("window too small: {width}×{height} needed, {quit} quits")
        }
        Phrase::TooSmall { quit, under_way: Some(count), .. } => {
            format!("{} under way, {quit} leaves now", many(count, "action is", "actions are"))
        }
        Phrase::Wasting { rate } => format!("wasting {rate}"),
        Phrase::Today { money } => format!("today {money}"),
        Phrase::InMonth { month, money } => format!("{} {money}", Language::English.month(month)),
        Phrase::Unwatched { count, rate, age } => {
            let when = age.map_or_else(|| " when last seen".to_owned(), |age| format!(" {age} ago"));
            format!("{count} cost {rate}{when}; watched no longer, nor counted since")
        }
        Phrase::SpentSince { money, at } => format!("{money} since {at}"),
        Phrase::OfItAssumed { money } => format!("{money} of it assumed"),
        Phrase::PerhapsMore { money } => format!("perhaps {money} more"),
        Phrase::AssignTitle { name, count: 1 } => format!("Project of {name}"),
        Phrase::AssignTitle { count, .. } => format!("Project of {count} resources"),
        Phrase::Prepaid { rate } => format!("prepaid {rate}"),
        Phrase::Lasts { account, time, at_most: false } => format!("{account} lasts {time}"),
        Phrase::Lasts { account, time, at_most: true } => format!("{account} lasts {time} at most"),
        Phrase::LastsStill { time, at_most: false } => format!("lasts {time}"),
        Phrase::LastsStill { time, at_most: true } => format!("lasts {time} at most"),
        Phrase::StorageCosts { rate } => format!("storage {rate}"),
        Phrase::UpTo { rate } => format!(" to {rate}"),
        Phrase::InTrouble { count } => format!("{} in trouble", many(count, "account", "accounts")),
        Phrase::MoreInTrouble { count } => format!("and {} in trouble", many(count, "more account", "more accounts")),
        Phrase::TroubleSince { age } => format!("for {age}"),
        Phrase::LooksOn { host, pid } => format!("looking on: {host} ({pid}) collects"),
        Phrase::Notices { count } => many(count, "notice", "notices"),
        Phrase::ClockOff { account, off, behind } => {
            let way = if behind { "behind" } else { "ahead of" };
            format!("The clock of this machine is about {off} {way} the provider's ({account}): set it right.")
        }
        Phrase::NotLookedInto { account, machines } => {
            let these = if machines == 1 { "1 machine is".to_owned() } else { format!("{machines} machines are") };
            format!(
                "{account}: {these} not looked into over ssh; `--ssh` allows it this once, `ssh = \"always\"` in the \
                 account's section for good"
            )
        }
        Phrase::Confirmed { action } => done(action).to_owned(),
        Phrase::GoneSince { age } => format!("gone {age} ago"),
        Phrase::MissingSince { age } => format!("missing for {age}"),
        Phrase::Ends { at } => format!("ends {at}"),
        Phrase::ReservedTo { at } => format!("paid to {at}"),
        Phrase::Old { age } => format!("{age} old"),
        Phrase::Ago { age } => format!("{age} ago"),
        Phrase::AskingFor { age } => format!("asking for {age}"),
        Phrase::Left { money } => format!("{money} left"),
        Phrase::Voucher { money } => format!("{money} voucher"),
        Phrase::Step { operation, now, undo } => {
            let since = |moment| format::since(moment, now, SPOKEN);
            match &operation.step {
                Step::Countdown { until } => {
                    let undo = if undo.is_empty() { String::new() } else { format!(", {undo} undo") };
                    format!("{} in {} s{undo}", action(operation.action), format::seconds_left(*until, now))
                }
                Step::Saving { stage, next_try, .. } => {
                    let progress = operation.saving.as_ref().map(|saving| saving.progress).unwrap_or_default();
                    Language::English.saving_step(*stage, &progress, *next_try, now)
                }
                Step::Checking { next_look: None, .. } => "looking first".to_owned(),
                Step::Checking { next_look: Some(_), .. } => "looks again soon".to_owned(),
                Step::Sending { since: from } => format!("{} sent {}", action(operation.action), since(*from)),
                Step::Waiting { until, .. } => format!("told to wait {} s", format::seconds_left(*until, now)),
                Step::Verifying { .. } => "refused, checking".to_owned(),
                Step::Confirming { since: from, doubt: Some(_), .. } => format!("outcome unknown {}", since(*from)),
                Step::Confirming { since: from, doubt: None, .. } => {
                    format!("{} {}", doing(operation.action), since(*from))
                }
                Step::Overdue { since: overdue, .. } => match operation.action {
                    Action::Start | Action::Restart => {
                        format!("still not running {}", since(operation.sent_at.unwrap_or(*overdue)))
                    }
                    Action::Stop | Action::Release | Action::Delete => {
                        format!("still billing! {}", since(operation.sent_at.unwrap_or(*overdue)))
                    }
                    // It is never sent.
                    Action::Checkpoint => String::new(),
                },
                Step::Ended { outcome, .. } => self::outcome(outcome),
            }
        }
        Phrase::Range { from, to } => format!("{from} to {to}"),
        Phrase::UpFor { time } => format!("up {time}"),
        Phrase::Repricing { rate, asked, ends } => {
            let ends = ends.map(|at| format!(" or it ends {at}")).unwrap_or_default();
            format!("the host asks for {asked} in place of {rate}: accept it at the provider{ends}")
        }
        Phrase::Saves { rate } => format!("saves {rate}"),
        Phrase::SavedThisMonth { money } => format!("saved this month by stopping and releasing: {money}"),
        Phrase::WillCost { rate } => format!("will cost {rate}"),
        Phrase::GoesOn { rate } => format!("{rate} goes on"),
        Phrase::LeftBehind { name, rate: Some(rate) } => format!("{name} stays and costs {rate}"),
        Phrase::LeftBehind { name, rate: None } => format!("{name} stays and may cost"),
        Phrase::Deletes { places } => format!("deletes {places}"),
        Phrase::AllIn { name, size: Some(size) } => format!("all that {name} ({size}) holds"),
        Phrase::AllIn { name, size: None } => format!("all that {name} holds"),
        Phrase::Keeps { places } => format!("keeps {places}"),
        Phrase::Rows { count } => many(count, "instance", "instances"),
        Phrase::StorageItems { count, rate } => {
            let items = many(count, "storage item", "storage items");
            rate.map_or(items.clone(), |rate| format!("{items}, {rate}"))
        }
        Phrase::ProviderBurn { rate } => format!("the provider itself says {rate}"),
        Phrase::BalanceUnknown { error } => format!("balance not known: {error}"),
        Phrase::Problems { count } => many(count, "part could not be read", "parts could not be read"),
        Phrase::ProblemsOf { account } => format!("What is wrong with {account}"),
        Phrase::NextTryIn { time } => format!("next try in {time}"),
        Phrase::PlanFor { action, name } => format!("{} {name}", begin(action)),
        Phrase::PlanForMany { action, count } => format!("{} {}", begin(action), things(action, count)),
        Phrase::ADay { money } => format!("{money} a day"),
        Phrase::AMonth { money } => format!("{money} a month"),
        Phrase::InAll { money } => format!("in all {money}"),
        Phrase::BooksSince { date } => format!("The books begin on {date}."),
        Phrase::CountedSince { account: None, date } => format!("counted since {date}"),
        Phrase::CountedSince { account: Some(account), date } => format!("{account} counted since {date}"),
        Phrase::MoreMayBeCharged { money } => format!("up to {money} more may have been charged"),
        Phrase::PrepaidAmount { money, unused: None } => format!("besides {money} prepaid"),
        Phrase::PrepaidAmount { money, unused: Some(unused) } => {
            format!("besides {money} prepaid, {unused} of it unused")
        }
        Phrase::Drift { billed, ours } => format!("billed {billed} where we had counted {ours}"),
        Phrase::Unexplained { account, money, less: false } => format!("{money} unexplained at {account}"),
        Phrase::Unexplained { account, money, less: true } => format!("{money} less left {account} than was counted"),
        Phrase::PaidIn { account, money } => format!("paid in {money} ({account})"),
        Phrase::VoucherBeside { account, money } => format!("vouchers {money} ({account})"),
        Phrase::Peak { money } => format!("most {money}"),
        Phrase::DaysFrom { date, count } => format!("{count} days from {date}"),
        Phrase::GpuHours { hours } => format!("{hours} GPU-hours"),
        Phrase::AttachedToStopped { names } => format!("attached to {names}, stopped"),
        Phrase::AttachedToUnlisted { names } => format!("attached to {names}, which no list holds"),
        Phrase::DataOf { action, count } => format!("data of {}, see below", things(action, count)),
        Phrase::MoreLines { count } => format!("  and {count} more"),
        Phrase::LeftOutCount { count } => format!("left out: {count}"),
        Phrase::Confirm { action: verb, count, undo } => {
            let what = if count == 1 { String::new() } else { format!(" {count}") };
            let undo = if undo.is_empty() { String::new() } else { format!(", {undo} takes it back") };
            format!("{}{what}: begins after 5 s{undo}", action(verb))
        }
        Phrase::AskName { action: verb, count: 1 } => format!("{}: asks for its name first", action(verb)),
        Phrase::AskName { action: verb, count } => format!("{} {count}: asks for a typed word first", action(verb)),
        Phrase::EnterDoes { action: verb } => format!("enter: {}", action(verb)),
        Phrase::LeaveTitle { count } => format!("{} under way", many(count, "action is", "actions are")),
        Phrase::UnsentAtLeave { count } => {
            format!("{} not sent yet will not be sent.", many(count, "action", "actions"))
        }
        Phrase::SentAtLeave { count } => {
            format!(
                "{} already sent: the next start reads back what became of it.",
                many(count, "action is", "actions are")
            )
        }
        Phrase::Farewell { count, rate, by_then, at, alone } => {
            format!(
                "{}, {rate} in all, {by_then} by {at}.{}",
                many(count, "instance goes on costing", "instances go on costing"),
                if alone { " Nobody watches unless another rentop runs. `rentop watch` would." } else { "" }
            )
        }
        Phrase::Marked { count } => format!("{count} marked"),
        Phrase::MarkedHidden { count } => format!("{count} of them hidden"),
        Phrase::FilterError { kind, part } => filter_error(kind, part),
        Phrase::NothingFound { text } => format!("nothing is called `{text}`"),
        Phrase::Hidden { count } => format!("{count} hidden"),
        Phrase::FromVariable { variable } => format!("from {variable}"),
        Phrase::ConfigAt { path } => format!("It is written to {path}, without the key itself."),
        Phrase::OrConfigAt { path } => format!("or write an account into {path}"),
        Phrase::NothingMatches { filter, hidden } => format!("Nothing matches `{filter}`; {hidden} hidden."),
        Phrase::AccountsAsked { count } => format!("{} asked.", many(count, "account", "accounts")),
    }
}

fn begin(action: Action) -> &'static str {
    match action {
        Action::Stop => "Stop",
        Action::Start => "Start",
        Action::Restart => "Restart",
        Action::Release => "Release",
        Action::Delete => "Delete",
        Action::Checkpoint => "Save",
    }
}

fn doing(action: Action) -> &'static str {
    match action {
        Action::Stop => "stopping",
        Action::Start => "starting",
        Action::Restart => "restarting",
        Action::Release => "releasing",
        Action::Delete => "deleting",
        Action::Checkpoint => "saving",
    }
}

fn done(action: Action) -> &'static str {
    match action {
        Action::Stop => "stopped",
        Action::Start => "started",
        Action::Restart => "restarted",
        Action::Release => "released",
        Action::Delete => "deleted",
        Action::Checkpoint => "saved",
    }
}

pub fn message(message: &Msg, look: &Look, first: Currency) -> String {
    let fixed = match message {
        Msg::HintStop => "stop",
        Msg::HintStart => "start",
        Msg::HintRelease => "release",
        Msg::HintSaveAndEnd => "save+release",
        Msg::HintCheckpoint => "save",
        Msg::HintDelete => "delete",
        Msg::HintTakeBack => "undo",
        Msg::HintMark => "mark",
        Msg::HintDetails => "more",
        Msg::HintFilter => "filter",
        Msg::HintSort => "sort",
        Msg::HintGroup => "group",
        Msg::HintQuick => "quick",
        Msg::HintPalette => "find",
        Msg::HintHelp => "help",
        Msg::HintQuit => "quit",
        Msg::HintConfirm => "yes",
        Msg::HintCancel => "cancel",
        Msg::HintEarlier => "back",
        Msg::HintLater => "forth",
        Msg::HintRange => "range",
        Msg::HintBehind => "why",
        Msg::HintNewBudget => "new",
        Msg::HintChange => "change",
        Msg::HintGoThere => "go there",
        Msg::HintSeen => "seen",
        Msg::HintSeenAll => "all seen",
        Msg::HintSnooze => "snooze",
        Msg::HintAllIdle => "all idle",
        Msg::HintPage => "page",
        Msg::HintLeave => "later",
        Msg::HelpShowBudgets => "Budgets: what is spent of each, and what will be",
        Msg::HelpShowAlerts => "Alerts: what needs somebody, and what did",
        Msg::HelpNewBudget => "make a budget",
        Msg::HelpChangeBudget => "change the budget",
        Msg::HelpGoThere => "go to the row that it is about",
        Msg::HelpAlertSeen => "the alert under the cursor is seen, and not told again",
        Msg::HelpSeenAll => "all alerts that fire are seen",
        Msg::HelpAlertInFull => "all about the alert",
        Msg::HelpSnooze => "tell it again in an hour, or tomorrow",
        Msg::HelpAllIdle => "all that is idle: stop it, or save and release it",
        Msg::HelpLeaveAlerts => "leave them in the Alerts view",
        Msg::HelpEarlier => "the month (or week, day, range) before",
        Msg::HelpLater => "the one after it",
        Msg::HelpRange => "other days: today, week, month, 90 days, year, or from one date to another",
        Msg::HelpSpendGroup => "next grouping: project, provider, account, instance, component, day",
        Msg::HelpBehind => "where the figure comes from: its parts, the dearest instances, single entries",
        Msg::HelpTimes => "times as moments, or by how long ago they are",
        Msg::HelpShowSpend => "what was spent, by project, provider, account, instance, component or day",
        Msg::HelpStop => "stop what runs, start what is stopped; shows beforehand what that saves",
        Msg::HelpRelease => "end it for good: release an instance, delete storage; shows beforehand what is lost",
        Msg::HelpTakeBack => "take back an action that has not been sent yet",
        Msg::HelpMark => "mark the row: actions are then about all marked rows",
        Msg::HelpDetails => "all about it in a window; fold a group",
        Msg::HelpFilter => "filter: words, and terms such as spot, >1/h, project:art, up>2d, -name:test",
        Msg::HelpSort => "next order: what needs you, cost, use, idleness, age, name",
        Msg::HelpGroup => "next grouping: account, provider, project, market, none",
        Msg::HelpQuick => "quick filter: idle, spot, off, or all",
        Msg::HelpSaveAndEnd => "save what is worth keeping, and release once that is verified; shows its plan first",
        Msg::HelpCheckpoint => "save what is worth keeping; the instance goes on",
        Msg::HelpLease => "a lease: what is to happen to it by itself, and when",
        Msg::HelpPlanSave => "the same with a verified copy first",
        Msg::HelpColumns => "choose the columns; the choice is kept",
        Msg::HelpPane => "show or hide the details beside or below the list",
        Msg::HelpLookInto => "whether to look into machines over your own ssh; a host key that changed",
        Msg::HelpChart => "charts of use over 10 minutes, an hour, a day",
        Msg::HelpSsh => "open ssh to it; its end brings you back",
        Msg::HelpCopySsh => "copy its ssh line",
        Msg::HelpProtect => "protect from bulk actions, or no longer",
        Msg::HelpMine => "mark as mine or not mine; bulk actions leave out what is not mine",
        Msg::HelpProject => "say to which project its spend belongs, from now or from a time",
        Msg::HelpSeen => "I have seen what is told there",
        Msg::Noted => "noted",
        Msg::NothingToNote => "there is nothing to note",
        Msg::HelpPage => "open the provider's page of it",
        Msg::HelpFold => "fold the group",
        Msg::HelpUnfold => "unfold the group",
        Msg::HelpEditConfig => {
            "open the config in your editor; it is checked afterwards, and in force at the next start"
        }
        Msg::HelpProblem => "the error in full: of an account, an action, or what was just said",
        Msg::HelpDown => "down",
        Msg::HelpUp => "up",
        Msg::HelpPageDown => "a page down",
        Msg::HelpPageUp => "a page up",
        Msg::HelpFirst => "to the first line",
        Msg::HelpLast => "to the last line",
        Msg::HelpShowFleet => "the fleet",
        Msg::HelpShowStorage => "what costs without working: stopped disks, volumes, snapshots",
        Msg::HelpShowActivity => "what was done",
        Msg::HelpPalette => "find any action or row by a few letters",
        Msg::HelpNextView => "next view",
        Msg::HelpRefresh => "ask the providers again, within their limits",
        Msg::HelpRepaint => "paint the screen anew",
        Msg::HelpSuspend => "back to the shell; fg returns",
        Msg::HelpBack => "undo a countdown, else the marks, the filter, the view",
        Msg::HelpHelp => "this help",
        Msg::HelpQuit => "quit",
        Msg::HelpConfirm => "yes, when nothing is lost",
        Msg::HelpPlanAgain => "pressed again: opens the field for the name, when something is lost",
        Msg::HelpCancel => "cancel",
        Msg::WorksElsewhere { tab } => return format!("this key works in {}", word(view(*tab))),
        Msg::NothingSelected => "nothing is selected",
        Msg::RowJustChanged => "the row just changed: press again",
        Msg::RowGone => "its row is gone: nothing was done",
        Msg::NothingToTakeBack => "nothing can be taken back",
        Msg::MixedMarks => "some marked rows run and some are stopped: mark one kind",
        Msg::MixedKinds => "instances and storage are marked: mark one kind",
        Msg::PasteIgnored => "pasted text is not taken as keys",
        Msg::Refreshing => "asking the providers again",
        Msg::NotListed { name } => return format!("{name} is not listed: in use, or free"),
        Msg::NoPage => "the provider has no page for it",
        Msg::NoProblem => "nothing is in trouble",
        Msg::NoSsh => "no ssh address is known for it now",
        Msg::NoSshInDemo => "what is simulated has no ssh",
        Msg::SshCopied { line } => return format!("copied, where the terminal allows it: {line}"),
        Msg::NothingToLookInto => "no machine tells an address that ssh leads to",
        Msg::LooksInto { account, consent } => return SPOKEN.looks_into(account, *consent),
        Msg::HostKeyAccepted { name } => {
            return format!("{name}: the key that its host has now is taken for the right one");
        }
        Msg::SeveralTakenBack { count } => return format!("{count} taken back, nothing was sent"),
        Msg::Vetoed { name } => return format!("{name}: guards leave it alone until this is over and comes again"),
        Msg::TakenBack { name } => return format!("{name}: taken back, nothing was sent"),
        Msg::LeftOut { name, action, hindrance } => {
            return format!("{name}: {}", self::hindrance(hindrance, *action));
        }
        Msg::SortedBy { order, reversed } => {
            let by = match order {
                SortName::Attention => "what needs you, then waste, then cost",
                SortName::Cost => "cost, dearest first",
                SortName::Name => "name",
                SortName::Age => "age, oldest first",
                SortName::Use => "use, idlest first",
                SortName::Idle => "idleness, longest first",
                SortName::Account => "account",
                SortName::Project => "project",
                SortName::Region => "region",
                SortName::Size => "size, largest first",
            };
            return format!("sorted by {by}{}", if *reversed { ", the other way round" } else { "" });
        }
        Msg::GroupedBy(group) => match group {
            GroupName::None => "not grouped",
            GroupName::Account => "grouped by account",
            GroupName::Provider => "grouped by provider",
            GroupName::Project => "grouped by project",
            GroupName::Market => "grouped by market",
        },
        Msg::SpendBy(by) => match by {
            By::Project => "by project",
            By::Provider => "by provider",
            By::Account => "by account",
            By::Instance => "by instance",
            By::Component => "by component",
            By::Day => "by day",
        },
        Msg::AlertsSeen { count: 1 } => "seen: it is not told again",
        Msg::AlertsSeen { count } => return format!("{count} seen: they are not told again"),
        Msg::Snoozed { clock, .. } => return format!("told again at {clock}, if it is still so"),
        Msg::AlertAnswered => "nothing is left to say to it: it is seen, or over",
        Msg::Lease { name, what, note } => return super::Language::English.lease_news(name, *what, note),
        Msg::NoAlertHere => "no alert here",
        Msg::NotOfThisAlert => "this is about no instance and no storage item; enter goes there",
        Msg::NothingIdleNow => "nothing is known to be idle",
        Msg::BudgetSaved { name } => return format!("budget {name} is in the config and in force"),
        Msg::BudgetInDemo { name } => return format!("budget {name} is in force until the demo ends"),
        Msg::BudgetSavedElsewhere { name } => {
            return format!("budget {name} is in the config; who collects knows it from its next start");
        }
        Msg::BudgetOnlyInConfig { name } => {
            return format!("budget {name} has several conditions: change it in the config");
        }
        Msg::NoFuture => "nothing is spent beyond today",
        Msg::TimesAgo(true) => "times by how long ago they are",
        Msg::TimesAgo(false) => "times as moments",
        Msg::QuickFilter(name) => return format!("shows {}", quick(*name)),
        Msg::ProtectedNow { name, on: true } => return format!("{name} is protected: bulk actions leave it alone"),
        Msg::ProtectedNow { name, on: false } => return format!("{name} is no longer protected"),
        Msg::Assigned { count, project } => {
            let what =
                if *count == 1 { "its spend belongs".to_owned() } else { format!("the spend of {count} belongs") };
            let to = project.as_ref().map_or("where the rules say".to_owned(), |name| format!("to {name}"));
            return format!("{what} {to}");
        }
        Msg::MineNow { name, on: true } => return format!("{name} is mine"),
        Msg::MineNow { name, on: false } => return format!("{name} is not mine: bulk actions leave it alone"),
        Msg::OpeningPage { url } => return format!("opens {url}"),
        Msg::ConfigEdited => "the config is right; it is in force from the next start",
        Msg::NoConfigInDemo => "the demo has no config",
        Msg::EditFailed { error } => return error.clone(),
        Msg::SshFailed { error } => return format!("ssh: {error}"),
        Msg::PageNotOpened { error, url } => return format!("no browser ({error}): {url}"),
        Msg::OnlyLooking { host, pid } => return format!("nothing was done: {host} ({pid}) collects and acts"),
        Msg::NotAdded { error } => return format!("not added: {error}"),
        Msg::Begun { action, count, saves, goes_on } => {
            let (verb, many) = (self::action(*action), if *count == 1 { String::new() } else { format!(" {count}") });
            let rates = |rates| format::rates(rates, first, look);
            let saves = rates(saves).map(|rate| format!(", saves {rate}")).unwrap_or_default();
            let goes_on = match (action, rates(goes_on)) {
                (Action::Start, Some(rate)) => format!(", will cost {rate}"),
                (_, Some(rate)) => format!(", {rate} goes on"),
                (_, None) => String::new(),
            };
            return format!("{verb}{many} begun{saves}{goes_on}");
        }
        Msg::Ended { name, action, outcome: Outcome::Done { despite: None } } => {
            return format!("{name}: {}", done(*action));
        }
        Msg::Ended { name, action, outcome: Outcome::Done { despite: Some(error) } } => {
            return format!("{name}: {}, although the provider said: {error}", done(*action));
        }
        Msg::Ended { name, action, outcome } => {
            return format!("{name}: {}: {}", self::action(*action), self::outcome(outcome));
        }
    };
    fixed.to_owned()
}

pub fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Provisioning => "starting",
        Phase::Running => "running",
        Phase::Stopping => "stopping",
        Phase::Stopped => "stopped",
        Phase::Reclaimed => "reclaimed",
        Phase::Unreachable => "no answer",
        Phase::Releasing => "releasing",
        Phase::Gone => "gone",
        Phase::Failed => "failed",
        Phase::Unknown => "unknown",
    }
}

pub fn phase_short(phase: Phase) -> &'static str {
    match phase {
        Phase::Provisioning => "boot",
        Phase::Running => "on",
        Phase::Stopping => "stops",
        Phase::Stopped => "off",
        Phase::Reclaimed => "taken",
        Phase::Unreachable => "lost",
        Phase::Releasing => "ends",
        Phase::Gone => "gone",
        Phase::Failed => "fail",
        Phase::Unknown => "?",
    }
}

pub fn action(action: Action) -> &'static str {
    action.word()
}

pub fn freshness(freshness: Freshness) -> &'static str {
    match freshness {
        Freshness::Never => "no answer yet",
        Freshness::Fresh => "fresh",
        Freshness::Stale => "stale",
        Freshness::Partial => "partial",
        Freshness::Failed => "failed",
    }
}

pub fn market(market: MarketName) -> &'static str {
    match market {
        MarketName::OnDemand => "on demand",
        MarketName::Spot => "spot",
        MarketName::Reserved => "reserved",
    }
}

pub fn quick(quick: QuickName) -> &'static str {
    match quick {
        QuickName::All => "all",
        QuickName::Idle => "what is idle",
        QuickName::Off => "what is off",
        QuickName::Spot => "spot only",
    }
}

pub fn component(component: Component) -> &'static str {
    match component {
        Component::Compute => "compute",
        Component::Disk => "disk",
        Component::Storage => "storage",
        Component::Ip => "IP address",
        Component::Traffic => "traffic",
        Component::Other => "other",
    }
}

pub fn data_kind(kind: DataKind) -> &'static str {
    match kind {
        DataKind::ContainerDisk => "container disk",
        DataKind::VolumeDisk => "volume disk",
        DataKind::LocalDisk => "local disk",
        DataKind::NetworkVolume => "network volume",
        DataKind::FileSystem => "file system",
        DataKind::LocalVolume => "local volume",
        DataKind::Contents => "all that it holds",
    }
}

pub fn storage_kind(kind: StorageKind) -> &'static str {
    match kind {
        StorageKind::Volume => "volume",
        StorageKind::NetworkVolume => "network",
        StorageKind::FileSystem => "files",
        StorageKind::Snapshot => "snapshot",
        StorageKind::Image => "image",
        StorageKind::Address => "address",
    }
}

fn filter_error(kind: FilterErrorKind, part: &str) -> String {
    match kind {
        FilterErrorKind::Unfinished(expected) => match expected {
            Expected::Quote => "a second quote is to come".to_owned(),
            Expected::Term => format!("a word is to come after {part}"),
            Expected::Value(key) => format!("such as {}", key.example()),
            Expected::Amount(quantity) => format!("such as {}", quantity.example()),
        },
        FilterErrorKind::UnknownKey { nearest: Some(nearest) } => format!("did you mean {nearest}:?"),
        FilterErrorKind::UnknownKey { nearest: None } => format!("no such key: {part}; in quotes it is a text"),
        FilterErrorKind::UnknownValue { nearest: Some(nearest), .. } => format!("did you mean {nearest}?"),
        FilterErrorKind::UnknownValue { key, nearest: None } => format!("unknown; such as {}", key.example()),
        FilterErrorKind::NotAnAmount(quantity) => format!("no amount; such as {}", quantity.example()),
        FilterErrorKind::NotCompared(key) => format!("{} is a text: {}", key.names()[0], key.example()),
    }
}

pub fn risk(risk: Risk) -> &'static str {
    match risk {
        Risk::ScratchErased => "erases the container disk, all outside the mounts",
        Risk::GpuMayBeTaken => "the GPU may be taken by others meanwhile",
        Risk::StartMayQueue => "the start may have to wait for a GPU, and then bills by itself",
        Risk::StartMayLackGpu => "it may come up without a GPU",
        Risk::AddressChanges => "the address for ssh changes",
        Risk::ContractEnds => "after its term ends it cannot be started again",
        Risk::DiskMayCostMore => "the disk may cost more while stopped",
        Risk::UseUnknown => "others may be using it: the provider does not tell",
    }
}

pub fn remark(remark: Remark) -> &'static str {
    match remark {
        Remark::Outbid => "outbid: your price is under the present minimum",
        Remark::StartQueued => "a start waits at the provider for a GPU and will bill when one comes",
        Remark::NoGpus => "runs without GPUs",
        Remark::Locked => "locked against stop at the provider",
        Remark::BootFailed => "the boot failed and will not go on",
        Remark::NothingSurvivesStop => "no data outlives a stop",
        Remark::StartTimeUnknown => "the provider does not tell when it began",
        Remark::NoApi => "in no provider's list: known by the config and over ssh alone",
    }
}

pub fn remark_short(remark: Remark) -> &'static str {
    match remark {
        Remark::Outbid => "outbid",
        Remark::StartQueued => "start queued",
        Remark::NoGpus => "without GPUs",
        Remark::Locked => "locked",
        Remark::BootFailed => "boot failed",
        Remark::NothingSurvivesStop => "stop loses data",
        Remark::StartTimeUnknown => "start unknown",
        Remark::NoApi => "by ssh alone",
    }
}

pub fn refusal(refusal: &Refusal) -> String {
    match refusal {
        Refusal::NotOffered => "the provider does not offer this".to_owned(),
        Refusal::NoApi => "no API is known that does this".to_owned(),
        Refusal::WrongPhase => "not possible in its present state".to_owned(),
        Refusal::Locked => "locked against it at the provider".to_owned(),
        Refusal::InUse => "still in use by other resources".to_owned(),
        Refusal::ManagedElsewhere => "belongs to a group that is managed as a whole".to_owned(),
        Refusal::Told(words) => words.clone(),
    }
}

pub fn hindrance(hindrance: &Hindrance, action: Action) -> String {
    let fixed = match hindrance {
        Hindrance::Provider(Refusal::NotOffered) => return not_offered(action),
        Hindrance::Provider(Refusal::NoApi) if action == Action::Stop => "the config names no `stop` command for it",
        Hindrance::Provider(Refusal::NoApi) => "only where you rent it: it is known over ssh alone",
        Hindrance::Provider(refusal) => return self::refusal(refusal),
        Hindrance::ReadOnly => "rentop was started with --read-only",
        Hindrance::ReadOnlyAccount => "the config sets this account to read_only",
        Hindrance::NotThere => "not in the provider's last list",
        Hindrance::UnderWay => "another action on it is under way",
        Hindrance::Protected => "protected: bulk actions leave it alone",
        Hindrance::NotMine => "not mine: bulk actions leave it alone",
        Hindrance::AccountInTrouble => "its account is in trouble, e says why",
        Hindrance::NoRecipe => "the config has no [[checkpoint]] for it; c in Fleet asks for paths",
        Hindrance::CannotBeRead => "it does not run, so nothing can be copied from it",
        Hindrance::NoAddress => "nobody knows its address for ssh",
    };
    fixed.to_owned()
}

/// Why a key does nothing, and which one does what is meant.
fn not_offered(verb: Action) -> String {
    match verb {
        Action::Stop => {
            "this provider cannot stop: release deletes the machine and its own disk, file systems stay and go on costing"
                .to_owned()
        }
        _ => format!("this provider cannot {}", action(verb)),
    }
}

pub fn not_sent(reason: &NotSent) -> String {
    match reason {
        NotSent::TakenBack => "taken back".to_owned(),
        NotSent::ProgramEnded => "not sent: rentop ended first".to_owned(),
        NotSent::TooLate => "not sent: too late, ask for it again".to_owned(),
        NotSent::AnotherMachine => "not sent: the id now names another machine".to_owned(),
        NotSent::NoLongerThere => "not sent: it is gone already".to_owned(),
        NotSent::AlreadySo => "nothing was sent: it is so already".to_owned(),
        NotSent::PhaseChanged { was, is } => format!("not sent: it was {} and is now {}", phase(*was), phase(*is)),
        NotSent::PlanChanged => "not sent: it would now delete what the plan did not show".to_owned(),
        NotSent::NotOffered(refusal) => format!("not sent: {}", self::refusal(refusal)),
        NotSent::CouldNotLook(error) => format!("not sent: it could not be looked at first: {error}"),
        NotSent::CouldNotRecord(error) => format!("not sent: it could not be written down: {error}"),
        NotSent::UnderWay { host, pid } => format!("not sent: {host} ({pid}) has another action on it under way"),
    }
}

pub fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done { despite: None } => "done and proven".to_owned(),
        Outcome::Done { despite: Some(error) } => format!("done, although the answer was: {error}"),
        Outcome::Queued(words) if words.is_empty() => "queued: starts and bills when a GPU is free".to_owned(),
        Outcome::Queued(words) => format!("queued: starts and bills when a GPU is free: {words}"),
        Outcome::NotSent(reason) => not_sent(reason),
        Outcome::Refused(words) => format!("refused: {words}"),
        Outcome::Unproven => "never proven: another action took its place".to_owned(),
        Outcome::NotSaved(trouble) => {
            format!("not saved, so nothing was sent: {}", Language::English.save_trouble(trouble))
        }
    }
}

pub fn error_kind(kind: &ErrorKind) -> String {
    kind.to_string()
}

pub fn trouble(trouble: &Trouble) -> String {
    match trouble {
        Trouble::Request(error) => format!("{}: {}", error.request, error_kind(&error.kind)),
        Trouble::Key(message) => message.clone(),
        Trouble::OtherTenant => "the key opens another account than before; what was known is kept".to_owned(),
        Trouble::SameAs(other) => format!("the same account at the provider as `{other}`; remove one of the two"),
    }
}

pub fn advice(trouble: &Trouble) -> &'static str {
    match trouble {
        Trouble::Request(error) if error.kind.is_credentials() => {
            "Check the account's key and its rights. Nothing that is known is taken for gone."
        }
        Trouble::Request(error) if error.kind.is_transient() => {
            "It is tried again by itself, more and more rarely; F5 asks at once. Rows show what was last known."
        }
        Trouble::Request(_) => "F5 asks again. Rows show what was last known.",
        Trouble::Key(_) => "Put the key in order and start rentop again.",
        Trouble::OtherTenant => "Put the former key back, or give the new one an account name of its own.",
        Trouble::SameAs(_) => "Counting both would count everything twice.",
    }
}

pub fn ledger_notice(notice: &LedgerNotice) -> String {
    match notice {
        LedgerNotice::SetAside { kept_as, why } => {
            format!("The ledger could not be used ({why}). It is kept as {kept_as} and a new one was begun.")
        }
        LedgerNotice::Restored { from, as_of } => {
            let of = as_of.map(|at| format!(" of {}", at.strftime("%Y-%m-%d %H:%M UTC"))).unwrap_or_default();
            format!("The ledger goes on from the copy{of}: {from}. What came after it is not in it.")
        }
        LedgerNotice::Newer => "The ledger was written by a newer rentop: it is only read.".to_owned(),
        LedgerNotice::NotWritable { why } => {
            format!("The ledger cannot be written ({why}): nothing is remembered after this run.")
        }
        LedgerNotice::BackedUp { kept_as } => format!("A copy of the ledger was made before its update: {kept_as}."),
        LedgerNotice::Unreadable { rows } => {
            format!("{} of the ledger could not be read and stay as they are.", many(*rows, "row", "rows"))
        }
    }
}

pub fn type_name() -> [&'static str; 2] {
    ["type ", " and press enter"]
}
