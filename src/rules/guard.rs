//! Guards: what the config wants done by itself when something has been so for long enough.
//!
//! A guard watches single machines: each has a *watch* from the first moment at which the condition is known to hold to
//! the moment at which it is known to be over. Within one watch a guard acts at most once. What is not known begins
//! nothing and ends nothing.

use jiff::{SignedDuration, Timestamp};
use providers::model::{AccountName, Action, Identity};
use providers::money::Rate;
use serde::{Deserialize, Serialize};

use super::budgets::Scope;
use super::checkpoint::Trouble;
use super::fleet::Row;
use super::plan::{Basis, Confirmation, Hindrance, Plan, SaveFirst, plan_bulk};
use super::saga::{NotSent, OpId, Outcome};
use super::streams;

/// So long somebody may forbid it, where the config does not say.
pub const COUNTDOWN: SignedDuration = SignedDuration::from_mins(10);
/// A countdown that ran out so long ago, over a sleep for instance, starts anew.
const OVERDUE: SignedDuration = SignedDuration::from_mins(10);
/// So often within one watch it is begun, while nothing was sent.
const TRIES: u32 = 3;

/// One guard of the config.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    /// Unique among the guards.
    pub name: String,
    /// Which instances it is for.
    pub scope: Scope,
    pub on: Condition,
    /// Stop or release.
    pub action: Action,
    pub mode: Mode,
    /// From the warning to the deed.
    pub countdown: SignedDuration,
    /// It acts also when a screen collects, and not only in `rentop watch`.
    pub on_screen: bool,
    /// The label that keeps it away, whatever its value but `false`, `no` and `0`.
    pub veto_label: Option<String>,
}

/// When a guard is called for.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// The instance has been idle for so long.
    Idle { after: SignedDuration },
    /// So many percent of a budget that the instance counts for are spent.
    Budget { name: String, percent: u32 },
    /// All that the guard is for costs more than this.
    Burn { above: Rate },
    /// The money of the instance's account ends so soon.
    Runway { below: SignedDuration },
}

/// What a guard does when it is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It says so; a person does it.
    Propose,
    /// It acts after its countdown.
    Enforce,
}

/// What is so of a machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Sign {
    Holds(Cause),
    Over,
    /// Nobody knows: what is not known is never acted on.
    Unknown,
}

/// Why a guard is called for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    Idle { since: Timestamp },
    Budget { name: String, percent: u32 },
    Burn { burn: Rate, above: Rate },
    Runway { account: AccountName, ends_at: Timestamp },
}

/// What a guard is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Way {
    pub action: Action,
    /// Only after a verified checkpoint.
    pub saves: bool,
}

/// A guard that is called for on one machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Watch {
    /// The guard's name.
    pub guard: String,
    pub identity: Identity,
    /// Of the machine.
    pub name: String,
    pub cause: Cause,
    /// When it was first called for.
    pub since: Timestamp,
    /// How often it was begun and nothing was sent.
    pub tries: u32,
    pub stage: Stage,
}

/// Where a watch is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// A person is to do it.
    Proposed,
    /// It acts then, unless somebody forbids it.
    Counting { until: Timestamp, way: Way },
    /// There is nothing that it may do.
    Barred { why: Hindrance },
    /// Somebody has forbidden it.
    Vetoed,
    /// Its action is under way.
    Acting { op: OpId, way: Way },
    /// It has acted, or a person took that back.
    Done,
    /// It has tried.
    Failed { way: Way, why: Failure },
}

/// Why a guard did not get done what it was to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// There is no checkpoint, and without one nothing else may be done.
    NotSaved(Trouble),
    NotSent(NotSent),
    /// The provider's word.
    Refused(String),
    Unproven,
}

/// Somebody forbids guards to act on a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Veto {
    pub said_at: Timestamp,
    /// `None`: until what the guards are called for by is over and comes again.
    pub until: Option<Timestamp>,
    /// User and host.
    pub by: String,
}

impl Veto {
    /// Whether it keeps a guard away that was first called for at a time.
    pub fn holds(&self, since: Timestamp, now: Timestamp) -> bool {
        self.until.map_or(since <= self.said_at, |until| now < until)
    }
}

/// What is told of a guard on one machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Warning {
    Proposes { action: Action },
    Acts { way: Way, at: Timestamp },
    CanDoNothing { why: Hindrance },
    DidNot { way: Way, why: Failure },
}

/// Why something that is promised for a machine could not be done now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unable {
    /// The account's key cannot be used.
    Key(String),
    /// `ssh` does not reach it.
    Link(streams::Trouble),
    /// No plan for it can be made.
    Plan(Hindrance),
    /// The folder of the copies cannot be written.
    Folder(String),
    /// It has not enough room; in bytes.
    NoRoom { need: u64, free: u64 },
}

/// What a look at one machine shows.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    pub sign: &'a Sign,
    /// It is in the guard's scope, mine, not protected, and has not its label.
    pub allowed: bool,
    /// It runs, and nobody else acts on it.
    pub ready: bool,
    pub vetoed: bool,
    /// This process acts for the guard, and does not only propose.
    pub acts: bool,
    /// What is known of vetoes is of that time.
    pub asked_at: Option<Timestamp>,
    /// Of the action of the watch, if it has one.
    pub course: Course<'a>,
}

/// How the action of a watch stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Course<'a> {
    /// There is none: it never came to be written down.
    None,
    UnderWay {
        can_be_taken_back: bool,
    },
    Ended(&'a Outcome),
}

/// What follows for one machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Stay,
    /// It is over, or the guard is not for it any more.
    Forget,
    Turn(Stage),
    /// What it may do is found out, and its countdown begins.
    Begin,
    /// The countdown ran out: whether somebody has forbidden it is asked once more.
    Ask,
    Act,
    /// Its action is taken back.
    TakeBack,
    /// There is no checkpoint: it stops the machine, if that loses nothing.
    StopInstead,
}

/// What follows from a look for a guard on one machine; `watch` is what is known of it so far.
pub fn judge(watch: Option<&Watch>, seen: Seen<'_>, now: Timestamp) -> Verdict {
    let holds = matches!(seen.sign, Sign::Holds(_));
    let is_over = *seen.sign == Sign::Over;
    let fits = seen.allowed && seen.ready;
    let call = || match (seen.vetoed, seen.acts) {
        (true, _) => Verdict::Turn(Stage::Vetoed),
        (false, true) => Verdict::Begin,
        (false, false) => Verdict::Turn(Stage::Proposed),
    };
    let Some(watch) = watch else { return if holds && fits { call() } else { Verdict::Stay } };
    match &watch.stage {
        Stage::Acting { way, .. } => match seen.course {
            Course::UnderWay { can_be_taken_back } => {
                let is_wanted = seen.allowed && !seen.vetoed && !is_over;
                if can_be_taken_back && !is_wanted { Verdict::TakeBack } else { Verdict::Stay }
            }
            _ if is_over || !seen.allowed => Verdict::Forget,
            Course::None if fits => call(),
            Course::None => Verdict::Forget,
            Course::Ended(outcome) => ended(watch, *way, outcome, seen),
        },
        _ if is_over || !seen.allowed => Verdict::Forget,
        _ if !holds => Verdict::Stay,
        Stage::Done | Stage::Failed { .. } => Verdict::Stay,
        Stage::Vetoed if seen.vetoed || !seen.ready => Verdict::Stay,
        _ if !seen.ready => Verdict::Forget,
        Stage::Vetoed => call(),
        Stage::Proposed if !seen.vetoed && !seen.acts => Verdict::Stay,
        Stage::Counting { until, .. } if !seen.vetoed && seen.acts => match now.duration_since(*until) {
            late if late > OVERDUE => Verdict::Begin,
            late if late.is_negative() => Verdict::Stay,
            _ if seen.asked_at.is_some_and(|at| at >= *until && at <= now) => Verdict::Act,
            _ => Verdict::Ask,
        },
        Stage::Proposed | Stage::Counting { .. } | Stage::Barred { .. } => call(),
    }
}

/// What follows from the end of its action.
fn ended(watch: &Watch, way: Way, outcome: &Outcome, seen: Seen<'_>) -> Verdict {
    let failed = |why| Verdict::Turn(Stage::Failed { way, why });
    match outcome {
        Outcome::Done { .. } | Outcome::Queued(_) => Verdict::Turn(Stage::Done),
        Outcome::NotSent(NotSent::AlreadySo | NotSent::NoLongerThere) => Verdict::Turn(Stage::Done),
        Outcome::NotSent(NotSent::TakenBack) if seen.vetoed => Verdict::Turn(Stage::Vetoed),
        Outcome::NotSent(NotSent::TakenBack) => Verdict::Turn(Stage::Done),
        Outcome::NotSaved(_) if seen.vetoed => Verdict::Turn(Stage::Vetoed),
        // Whether it still is so nobody knows just now.
        Outcome::NotSaved(_) if *seen.sign == Sign::Unknown => Verdict::Stay,
        Outcome::NotSaved(_) if way.action == Action::Release && seen.ready && seen.acts => Verdict::StopInstead,
        Outcome::NotSaved(trouble) => failed(Failure::NotSaved(trouble.clone())),
        Outcome::NotSent(_) if seen.vetoed => Verdict::Turn(Stage::Vetoed),
        Outcome::NotSent(_) if *seen.sign == Sign::Unknown => Verdict::Stay,
        Outcome::NotSent(_) if watch.tries + 1 < TRIES && seen.ready && seen.acts => Verdict::Begin,
        Outcome::NotSent(why) => failed(Failure::NotSent(why.clone())),
        Outcome::Refused(word) => failed(Failure::Refused(word.clone())),
        Outcome::Unproven => failed(Failure::Unproven),
    }
}

/// What a guard may do to a machine, the most wanted first: a release only with a checkpoint, and otherwise a stop that
/// loses nothing, or what it loses only with a checkpoint. Fails with what is in the way.
pub fn way(basis: Basis<'_>, action: Action, identity: &Identity) -> Result<Plan, Hindrance> {
    let ways = [
        (Action::Release, SaveFirst::ByConfig),
        (Action::Stop, SaveFirst::Nothing),
        (Action::Stop, SaveFirst::ByConfig),
    ];
    let first = if action == Action::Release { 0 } else { 1 };
    let mut why = Hindrance::NotThere;
    for (action, save) in &ways[first..] {
        match one(basis, *action, save, identity) {
            Ok(plan) => return Ok(plan),
            Err(hindrance) => why = hindrance,
        }
    }
    Err(why)
}

/// A stop that loses nothing, for a machine of which there is no checkpoint.
pub fn stop_instead(basis: Basis<'_>, identity: &Identity) -> Result<Plan, Hindrance> {
    one(basis, Action::Stop, &SaveFirst::Nothing, identity)
}

/// A plan that nobody needs to be asked about.
fn one(basis: Basis<'_>, action: Action, save: &SaveFirst, identity: &Identity) -> Result<Plan, Hindrance> {
    let mut plan = plan_bulk(basis, action, std::slice::from_ref(identity), save);
    match (plan.targets.as_slice(), &plan.confirmation) {
        ([_], Confirmation::Countdown) => Ok(plan),
        ([target], Confirmation::Save) if target.recipe.is_some() => Ok(plan),
        // It would lose what nothing brings to safety.
        ([_, ..], _) => Err(Hindrance::NoRecipe),
        ([], _) => Err(plan.left_out.pop().map_or(Hindrance::NotThere, |(_, _, hindrance)| hindrance)),
    }
}

impl Way {
    /// What a plan of this file comes to.
    pub fn of(plan: &Plan) -> Self {
        Way { action: plan.action, saves: plan.confirmation == Confirmation::Save }
    }
}

impl Guard {
    /// The label that keeps it away from a machine is there.
    pub fn is_kept_away(&self, row: &impl Row) -> bool {
        let value = self.veto_label.as_ref().and_then(|label| row.labels().get(label));
        value.is_some_and(|value| !matches!(value.as_str(), "false" | "no" | "0"))
    }
}

impl Watch {
    /// What is to be told of it; `None` when there is nothing that somebody should know.
    pub fn warning(&self, guard: &Guard) -> Option<Warning> {
        match &self.stage {
            Stage::Proposed => Some(Warning::Proposes { action: guard.action }),
            Stage::Counting { until, way } => Some(Warning::Acts { way: *way, at: *until }),
            Stage::Barred { why } => Some(Warning::CanDoNothing { why: why.clone() }),
            Stage::Failed { way, why } => Some(Warning::DidNot { way: *way, why: why.clone() }),
            Stage::Vetoed | Stage::Acting { .. } | Stage::Done => None,
        }
    }

    /// Somebody can forbid it: it has not acted yet, or may still take that back.
    pub fn can_be_vetoed(&self) -> bool {
        matches!(self.stage, Stage::Proposed | Stage::Counting { .. } | Stage::Barred { .. } | Stage::Acting { .. })
    }
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
