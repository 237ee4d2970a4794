//! A lease: what is to happen to an instance by itself, and when.
//!
//! Each step is in the ledger before it is taken, and only who collects takes it. A lease is about one identity: the
//! same id with another machine behind it ends it. It never releases what is not verified elsewhere, and nothing that
//! is late: then it asks.

mod job;
mod moment;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use providers::model::{Action, Identity, Phase};
use providers::money::{Currency, Money, Rate};
use serde::{Deserialize, Serialize};

use super::checkpoint;
use super::plan::Hindrance;
use super::saga::{NotSent, OpId, Outcome};
use super::spend::Exact;
use super::streams;

pub use job::{Ask, Told, fill_in};
pub use moment::{Mistake, Moment, Shift, file, moment, money, process, when};

/// What comes later than this after its moment is never a release by itself.
pub const LATE: SignedDuration = SignedDuration::from_mins(10);
/// What could not be begun is tried again after this.
const TRY_AGAIN: SignedDuration = SignedDuration::from_mins(1);
/// So often, before somebody is asked.
const TRIES: u32 = 5;
/// Clocks of machines are that far off at the most: what a job left may look so much older than it is.
const CLOCKS_DIFFER: SignedDuration = SignedDuration::from_mins(1);
/// Between two looks whether a job is done.
pub const LOOK: SignedDuration = SignedDuration::from_secs(60);
/// A look that was not answered for so long is lost.
const LOST: SignedDuration = SignedDuration::from_mins(3);
/// A job that nobody could look at for so long is worth an alert.
const BLIND: SignedDuration = SignedDuration::from_mins(10);
/// Between two looks whether what was armed on a machine still is.
const CONFIRM: SignedDuration = SignedDuration::from_mins(10);

/// A lease's id, unique over all processes on one ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LeaseId(pub i64);

/// What is to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    Stop,
    /// Only after a verified checkpoint.
    Release,
    Start,
}

impl What {
    pub const ALL: [What; 3] = [What::Stop, What::Release, What::Start];

    /// The word of the command line and of `--json`.
    pub fn word(self) -> &'static str {
        self.action().word()
    }

    pub fn action(self) -> Action {
        match self {
            What::Stop => Action::Stop,
            What::Release => Action::Release,
            What::Start => Action::Start,
        }
    }
}

/// When it is to happen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    At(Timestamp),
    /// Once this file, an absolute path on the instance, holds the exit code of the job.
    File(String),
    /// Once this process on the instance is gone.
    Process {
        pid: u32,
        /// When it began, in the kernel's ticks, as it was first seen: the number may be given to another one.
        began: Option<u64>,
    },
}

impl When {
    pub fn is_job(&self) -> bool {
        !matches!(self, When::At(_))
    }
}

/// What a person wants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Draft {
    pub identity: Identity,
    pub what: What,
    pub when: When,
    /// What may be spent after a job that failed, until the instance is stopped; `None` leaves it to the person.
    pub max_cost: Option<Money>,
    /// A timer is armed on the instance as well.
    pub on_box: bool,
}

/// A timer on the instance itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnBox {
    /// Not armed yet.
    Wanted,
    /// The command that arms it ended well; nothing has read it back.
    Armed,
    /// It was read back then.
    Confirmed(Timestamp),
    /// It was there, and was not when it was read back then.
    Gone(Timestamp),
    /// The command that arms it did not end well. The reason in one line.
    Failed(String),
}

/// Why it is a stop and not what was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Instead {
    /// No checkpoint can be made.
    NoCheckpoint(Hindrance),
    /// The checkpoint failed.
    NotSaved(checkpoint::Trouble),
    /// The job failed, and what may be spent after that is.
    CostReached { code: Option<i32> },
}

/// Why somebody is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Its moment was long ago when somebody saw to it.
    Overdue,
    /// The file was there before the lease was.
    Stale,
    /// The job ended with an error; `None` for a code that nobody knows.
    Job { code: Option<i32> },
    /// It cannot be begun.
    Hindered(Hindrance),
    /// It would lose data.
    LosesData,
    /// It was begun, and not done.
    NotDone(Outcome),
    /// The instance was stopped, and that was not what was asked for.
    Stopped(Instead),
    /// The instance cannot be asked whether the job is done.
    Blind(streams::Trouble),
}

/// What is spent from a moment on, exactly.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Meter {
    spent: BTreeMap<Currency, Exact>,
    rates: Vec<Rate>,
    from: Timestamp,
}

impl Meter {
    fn new(rates: &[Rate], from: Timestamp) -> Self {
        Meter { spent: BTreeMap::new(), rates: rates.to_vec(), from }
    }

    /// Goes on at other rates. True when they are others.
    fn turn(&mut self, rates: &[Rate], now: Timestamp) -> bool {
        if self.rates == rates || now < self.from {
            return false;
        }
        for rate in &self.rates {
            *self.spent.entry(rate.currency).or_default() += Exact::over(*rate, self.from, now);
        }
        (self.rates, self.from) = (rates.to_vec(), now);
        true
    }

    /// What was spent of a currency.
    pub fn of(&self, currency: Currency, now: Timestamp) -> Exact {
        let open = self.rates.iter().filter(|rate| rate.currency == currency);
        let open: Exact = open.map(|rate| Exact::over(*rate, self.from, now)).sum();
        self.spent.get(&currency).copied().unwrap_or_default() + open
    }

    /// What was spent, a currency at a time, without those of which it is nothing.
    pub fn all(&self, now: Timestamp) -> Vec<Money> {
        let mut currencies: Vec<Currency> = self.spent.keys().copied().collect();
        currencies.extend(self.rates.iter().map(|rate| rate.currency));
        currencies.sort_unstable();
        currencies.dedup();
        let money = |currency| Money::new(self.of(currency, now).amount(), currency);
        currencies.into_iter().map(money).filter(|money| !money.amount.is_zero()).collect()
    }

    /// When so much will be spent at these rates; `None` when never.
    fn reaches(&self, limit: Money) -> Option<Timestamp> {
        let mut rates = self.rates.iter().filter(|rate| rate.currency == limit.currency);
        let picos = rates.try_fold(0_i64, |sum, rate| sum.checked_add(rate.picos()))?;
        let missing = Exact::of(limit.amount) - self.spent.get(&limit.currency).copied().unwrap_or_default();
        if missing <= Exact::ZERO {
            return Some(self.from);
        }
        self.from.checked_add(missing.lasts(Rate::from_picos(picos, limit.currency))?).ok()
    }
}

/// Where a lease is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Until its moment comes, or its job ends.
    Waiting,
    /// Its moment was then; nothing is begun. With a time, it is tried again then.
    Due {
        since: Timestamp,
        tries: u32,
        next_try: Option<Timestamp>,
    },
    /// This action is under way for it.
    Acting {
        since: Timestamp,
        tries: u32,
        op: OpId,
        instead: Option<Instead>,
    },
    /// It does nothing more by itself but for what its highest cost says: somebody is asked.
    Asking {
        since: Timestamp,
        why: Why,
        /// Whether the instance was at rest then, as soon as that is known: once it changes, somebody has answered.
        at_rest: Option<bool>,
        /// What the instance has cost since.
        meter: Meter,
    },
    Ended {
        at: Timestamp,
        how: End,
    },
}

/// How a lease ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    Done,
    /// It was so already.
    AlreadySo,
    /// The person took the action back.
    TakenBack,
    /// The person took the lease away.
    Cancelled,
    /// Another lease took its place.
    Replaced,
    /// The instance is gone.
    Gone,
    /// The id now names another instance.
    AnotherMachine,
    /// It asked, and somebody did something about it.
    Answered,
}

/// One lease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lease {
    pub id: LeaseId,
    pub identity: Identity,
    /// As it was shown when the lease was made.
    pub name: String,
    pub what: What,
    pub when: When,
    pub max_cost: Option<Money>,
    /// `None` without a timer on the instance.
    pub on_box: Option<OnBox>,
    /// User and host.
    pub by: String,
    pub made_at: Timestamp,
    pub step: Step,
}

/// The instance of a lease, as far as it is known.
#[derive(Clone, Debug, PartialEq)]
pub enum Sight {
    Here {
        phase: Phase,
        rates: Vec<Rate>,
    },
    /// Nobody knows at the moment.
    Untold,
    Gone,
    AnotherMachine,
}

/// What follows from a turn of a lease.
#[derive(Clone, Debug, PartialEq)]
pub enum Turn {
    Nothing,
    /// It is another than before: it is written down.
    Keep,
    /// It is written down, and its action begins once that is on disk.
    Take,
    /// It is stopped in place of what was asked for.
    Stop(Instead),
    /// It is written down; what can be brought to safety is, and nothing follows that.
    Save,
}

/// What a row is to show of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Next {
    pub when: NextWhen,
    pub what: What,
}

/// In the order of what comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NextWhen {
    /// It has begun, or is about to.
    Now,
    /// Somebody is asked.
    Asks,
    At(Timestamp),
    /// When its job ends.
    JobEnd,
}

impl Lease {
    pub fn new(id: LeaseId, draft: Draft, name: String, by: String, now: Timestamp) -> Self {
        let Draft { identity, what, when, max_cost, on_box } = draft;
        let on_box = (on_box && !when.is_job() && what != What::Start).then_some(OnBox::Wanted);
        Lease { id, identity, name, what, when, max_cost, on_box, by, made_at: now, step: Step::Waiting }
    }

    pub fn is_ended(&self) -> bool {
        matches!(self.step, Step::Ended { .. })
    }

    /// Of one instance there is one lease that ends its cost and one that starts it.
    pub fn takes_the_place_of(&self, other: &Lease) -> bool {
        self.id != other.id
            && self.identity == other.identity
            && (self.what == What::Start) == (other.what == What::Start)
            && !other.is_ended()
    }

    /// A timer on the instance was armed for it, and may still be.
    pub fn is_armed(&self) -> bool {
        matches!(self.on_box, Some(OnBox::Armed | OnBox::Confirmed(_)))
    }

    /// The action that is under way for it.
    pub fn op(&self) -> Option<OpId> {
        match self.step {
            Step::Acting { op, .. } => Some(op),
            _ => None,
        }
    }

    /// What it comes to by itself; `None` when it has ended.
    pub fn next(&self) -> Option<Next> {
        let when = match (&self.step, &self.when) {
            (Step::Ended { .. }, _) => return None,
            (Step::Asking { .. }, _) => NextWhen::Asks,
            (Step::Due { .. } | Step::Acting { .. }, _) => NextWhen::Now,
            (Step::Waiting, When::At(at)) => NextWhen::At(*at),
            (Step::Waiting, When::File(_) | When::Process { .. }) => NextWhen::JobEnd,
        };
        Some(Next { when, what: self.what })
    }

    /// When something is to be done about it by the clock alone.
    pub fn next_wake(&self) -> Option<Timestamp> {
        match (&self.step, &self.when) {
            (Step::Waiting, When::At(at)) => Some(*at),
            (Step::Due { since, next_try, .. }, _) => Some(next_try.unwrap_or(*since)),
            (Step::Asking { why: Why::Job { .. }, meter, at_rest, .. }, _) if *at_rest != Some(true) => {
                meter.reaches(self.max_cost?)
            }
            _ => None,
        }
    }

    pub fn end(&mut self, how: End, now: Timestamp) -> Turn {
        self.step = Step::Ended { at: now, how };
        Turn::Keep
    }

    /// Looks what the time and the instance say.
    pub fn turn(&mut self, sight: &Sight, now: Timestamp) -> Turn {
        // An action under way finds out by itself what became of its instance.
        match sight {
            _ if matches!(self.step, Step::Ended { .. } | Step::Acting { .. }) => return Turn::Nothing,
            Sight::Gone => return self.end(End::Gone, now),
            Sight::AnotherMachine => return self.end(End::AnotherMachine, now),
            Sight::Here { .. } | Sight::Untold => {}
        }
        match (&mut self.step, &self.when) {
            (Step::Waiting, When::At(at)) if *at <= now => {
                self.step = Step::Due { since: *at, tries: 0, next_try: None };
                self.take(sight, now)
            }
            (Step::Due { next_try, .. }, _) if next_try.is_none_or(|at| at <= now) => self.take(sight, now),
            (Step::Asking { why, at_rest, meter, .. }, _) => {
                let Sight::Here { phase, rates } = sight else { return Turn::Nothing };
                let rests = is_at_rest(*phase);
                if at_rest.is_some() && rests.is_some() && rests != *at_rest {
                    return self.end(End::Answered, now);
                }
                let known = at_rest.is_none() && rests.is_some();
                *at_rest = at_rest.or(rests);
                let turned = meter.turn(rates, now) || known;
                let spent = |max: Money| meter.of(max.currency, now) >= Exact::of(max.amount);
                match why {
                    Why::Job { code } if *at_rest != Some(true) && self.max_cost.is_some_and(spent) => {
                        Turn::Stop(Instead::CostReached { code: *code })
                    }
                    _ if turned => Turn::Keep,
                    _ => Turn::Nothing,
                }
            }
            _ => Turn::Nothing,
        }
    }

    /// Its moment has come. What is late is no release, and no start, that nobody expects any more.
    fn take(&mut self, sight: &Sight, now: Timestamp) -> Turn {
        let Step::Due { since, .. } = self.step else { return Turn::Nothing };
        if now.duration_since(since) > LATE && self.what != What::Stop {
            return self.ask(Why::Overdue, since, sight, now);
        }
        Turn::Take
    }

    /// Asks somebody. What it costs is counted from a moment on.
    pub fn ask(&mut self, why: Why, since: Timestamp, sight: &Sight, now: Timestamp) -> Turn {
        let (at_rest, rates) = match sight {
            Sight::Here { phase, rates } => (is_at_rest(*phase), rates.as_slice()),
            Sight::Untold | Sight::Gone | Sight::AnotherMachine => (None, [].as_slice()),
        };
        self.step = Step::Asking { since, why, at_rest, meter: Meter::new(rates, since.min(now)) };
        Turn::Keep
    }

    /// It could not be begun just now.
    pub fn later(&mut self, now: Timestamp) {
        if let Step::Due { tries, next_try, .. } = &mut self.step {
            *tries += 1;
            *next_try = Some(now + TRY_AGAIN);
        }
    }

    /// Whether it was tried so often that somebody is to be asked.
    pub fn is_tried_out(&self) -> bool {
        matches!(self.step, Step::Due { tries, .. } if tries >= TRIES)
    }

    /// When its moment was; `now` while it has none.
    pub fn since(&self, now: Timestamp) -> Timestamp {
        match self.step {
            Step::Due { since, .. } | Step::Acting { since, .. } | Step::Asking { since, .. } => since,
            Step::Waiting | Step::Ended { .. } => now,
        }
    }

    /// This action was begun for it.
    pub fn begun(&mut self, op: OpId, instead: Option<Instead>, now: Timestamp) -> Turn {
        let tries = if let Step::Due { tries, .. } = self.step { tries } else { 0 };
        self.step = Step::Acting { since: self.since(now), tries, op, instead };
        Turn::Keep
    }

    /// The action that was begun for it has ended; `None` when nobody knows how, since the program ended before it was
    /// written down.
    pub fn acted(&mut self, outcome: Option<&Outcome>, sight: &Sight, now: Timestamp) -> Turn {
        let Step::Acting { since, tries, instead, .. } = self.step.clone() else { return Turn::Nothing };
        let again = |lease: &mut Lease, next_try| {
            lease.step = Step::Due { since, tries, next_try };
            Turn::Keep
        };
        let Some(outcome) = outcome else { return again(self, None) };
        match (outcome, instead) {
            (Outcome::Done { .. } | Outcome::NotSent(NotSent::AlreadySo), Some(instead)) => {
                self.ask(Why::Stopped(instead), now, sight, now)
            }
            (Outcome::NotSent(NotSent::TakenBack), _) => self.end(End::TakenBack, now),
            (Outcome::NotSent(NotSent::NoLongerThere), _) => self.end(End::Gone, now),
            (Outcome::NotSent(NotSent::AnotherMachine), _) => self.end(End::AnotherMachine, now),
            // A stop in place of something is no action of the lease's own: it is not begun a second time.
            (outcome, Some(_)) => self.ask(Why::NotDone(outcome.clone()), now, sight, now),
            (Outcome::Done { .. } | Outcome::Queued(_), None) => self.end(End::Done, now),
            (Outcome::NotSent(NotSent::AlreadySo), None) => self.end(End::AlreadySo, now),
            (Outcome::NotSent(NotSent::ProgramEnded), None) => again(self, None),
            (Outcome::NotSent(NotSent::TooLate), None) if self.what == What::Stop => again(self, None),
            (Outcome::NotSent(NotSent::TooLate), None) => self.ask(Why::Overdue, since, sight, now),
            (Outcome::NotSent(NotSent::CouldNotRecord(_) | NotSent::UnderWay { .. }), None) if tries < TRIES => {
                self.step = Step::Due { since, tries: tries + 1, next_try: Some(now + TRY_AGAIN) };
                Turn::Keep
            }
            (Outcome::NotSaved(trouble), None) => Turn::Stop(Instead::NotSaved(trouble.clone())),
            (outcome, None) => self.ask(Why::NotDone(outcome.clone()), now, sight, now),
        }
    }

    /// What the instance told of the job or of its timer. `heard` is when it was last asked with success before.
    pub fn told(&mut self, told: &Told, heard: Option<Timestamp>, sight: &Sight, now: Timestamp) -> Turn {
        if !matches!(self.step, Step::Waiting) {
            return Turn::Nothing;
        }
        match (told, &mut self.when) {
            (Told::Alive { began }, When::Process { began: known, .. }) => match (*known, *began) {
                (None, Some(_)) => {
                    *known = *began;
                    Turn::Keep
                }
                (Some(known), Some(began)) if known != began => self.failed(None, sight, now),
                _ => Turn::Nothing,
            },
            (Told::NoProcess, When::Process { .. }) => self.failed(None, sight, now),
            (Told::Code { code, age }, When::File(_)) => {
                let done_at = age.map(|age| now - age);
                if done_at.is_some_and(|at| at < self.made_at - CLOCKS_DIFFER) {
                    return self.ask(Why::Stale, now, sight, now);
                }
                if *code != Some(0) {
                    return self.failed(*code, sight, now);
                }
                // Without its age, it may be as old as the look before.
                let since = done_at.unwrap_or(heard.unwrap_or(self.made_at)).min(now);
                self.step = Step::Due { since, tries: 0, next_try: None };
                self.take(sight, now)
            }
            (told, When::At(_)) => self.on_box_told(told, now),
            _ => Turn::Nothing,
        }
    }

    fn failed(&mut self, code: Option<i32>, sight: &Sight, now: Timestamp) -> Turn {
        self.ask(Why::Job { code }, now, sight, now);
        Turn::Save
    }

    fn on_box_told(&mut self, told: &Told, now: Timestamp) -> Turn {
        let Some(on_box) = &mut self.on_box else { return Turn::Nothing };
        let then = match (told, &on_box) {
            (Told::Armed, OnBox::Wanted | OnBox::Failed(_)) => OnBox::Armed,
            (Told::NotArmed(why), OnBox::Wanted | OnBox::Failed(_)) => OnBox::Failed(why.clone()),
            (Told::Confirmed, OnBox::Armed | OnBox::Confirmed(_) | OnBox::Gone(_)) => OnBox::Confirmed(now),
            (Told::NotThere, OnBox::Confirmed(_)) => OnBox::Gone(now),
            _ => return Turn::Nothing,
        };
        *on_box = then;
        Turn::Keep
    }

    /// What the instance is to be asked now, given the commands of the config; `None` when nothing.
    pub fn ask_of(&self, commands: &Commands) -> Option<Ask> {
        match (&self.step, &self.when) {
            (Step::Waiting, When::File(path)) => Some(Ask::File(path.clone())),
            (Step::Waiting, When::Process { pid, .. }) => Some(Ask::Process(*pid)),
            (Step::Waiting, When::At(at)) => {
                let command = |text: &Option<String>| text.as_deref().map(|text| fill_in(text, *at, self.what));
                match self.on_box.as_ref()? {
                    OnBox::Wanted | OnBox::Failed(_) => command(&commands.arm).map(Ask::Arm),
                    OnBox::Armed | OnBox::Confirmed(_) | OnBox::Gone(_) => command(&commands.check).map(Ask::Confirm),
                }
            }
            _ => None,
        }
    }
}

/// Whether a phase is one of rest; `None` on the way there, and when nobody knows.
fn is_at_rest(phase: Phase) -> Option<bool> {
    match phase {
        Phase::Running => Some(false),
        Phase::Stopped | Phase::Reclaimed | Phase::Failed => Some(true),
        _ => None,
    }
}

/// What the config says of timers on instances.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commands {
    /// Arms one; `None` arms none. `{at}` is its moment in seconds since 1970, `{what}` the word.
    pub arm: Option<String>,
    /// Ends well as long as it is armed.
    pub check: Option<String>,
}

/// How an instance is asked on behalf of a lease: not kept, since after a restart it is asked anew.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Watch {
    /// The question under way.
    asked_at: Option<Timestamp>,
    /// The last question of all.
    last: Option<Timestamp>,
    pub heard_at: Option<Timestamp>,
    /// Why the last question had no answer, and since when that is so.
    pub trouble: Option<(streams::Trouble, Timestamp)>,
}

impl Watch {
    /// When the instance is to be asked again.
    pub fn due(&self, lease: &Lease) -> Option<Timestamp> {
        if let Some(asked) = self.asked_at {
            return Some(asked + LOST);
        }
        let pace = match lease.on_box {
            Some(OnBox::Confirmed(_) | OnBox::Gone(_) | OnBox::Failed(_)) => CONFIRM,
            _ => LOOK,
        };
        self.last.map(|last| last + pace)
    }

    pub fn asked(&mut self, now: Timestamp) {
        (self.asked_at, self.last) = (Some(now), Some(now));
    }

    pub fn told(&mut self, told: &Told, now: Timestamp) {
        self.asked_at = None;
        match told {
            Told::Lost(trouble) => {
                let since = self.trouble.as_ref().map_or(now, |(_, since)| *since);
                self.trouble = Some((trouble.clone(), since));
            }
            _ => (self.heard_at, self.trouble) = (Some(now), None),
        }
    }

    /// Why nobody can tell whether the job is done, and since when, once that is worth a word.
    pub fn is_blind(&self, now: Timestamp) -> Option<(streams::Trouble, Timestamp)> {
        self.trouble.clone().filter(|(_, since)| now.duration_since(*since) >= BLIND)
    }
}

#[cfg(test)]
mod tests;
