//! An action under way: from the confirmed plan to the poll that proves it, one durable step at a time.
//!
//! This file alone hands out [`Permit`]s, and nothing that changes anything at a provider is sent without
//! one. A permit is born in one place, [`Operation::send`], and that place is reached only with an
//! authority (a plan that loses nothing, or a typed name), after a fresh look at the very identity that the
//! person saw, and it travels inside an order to write the step down first.

use jiff::{SignedDuration, Timestamp};
use providers::error::{ErrorKind, ProviderError};
use providers::model::{Action, Identity, Instance, Offer, Phase, Refusal, Remark, ResourceKind};
use providers::provider::{Accepted, Found};
use serde::{Deserialize, Serialize};

use super::plan::{Confirmation, Plan, Target};

/// How long an action that loses nothing can be taken back before it begins.
pub const COUNTDOWN: SignedDuration = SignedDuration::from_secs(5);
/// How long a stop or a release may take before it counts as still billing.
const CONFIRM_WITHIN: SignedDuration = SignedDuration::from_mins(3);
/// A start pulls images: it may take longer, and costs nothing that the plan did not say.
const START_WITHIN: SignedDuration = SignedDuration::from_mins(10);
/// Between two looks at a resource whose state is in doubt.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(3);
/// How often a look that fails is tried before the action is given up unsent.
const LOOKS: u32 = 4;
/// A request is sent at most twice, and the second time only after an answered refusal that named a wait.
const SENDS: u32 = 2;

/// An operation's id, unique over all processes on one ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OpId(pub i64);

/// What entitles an action to be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Authority {
    /// The plan loses nothing, and its countdown ran out untouched.
    LosesNothing,
    /// The person typed what the plan asked for.
    Typed(String),
    /// The person said on the command line that data may be lost.
    LoseData,
}

impl Authority {
    fn covers_loss(&self) -> bool {
        !matches!(self, Authority::LosesNothing)
    }
}

/// What the confirmation of a plan came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confirmed {
    Yes(Authority),
    /// The text is not what was asked for.
    NotYet,
}

/// Compares what was typed with what the plan asks for. `None` typed stands for a plain yes.
pub fn confirm(plan: &Plan, typed: Option<&str>) -> Confirmed {
    match (&plan.confirmation, typed) {
        (Confirmation::Countdown, None) => Confirmed::Yes(Authority::LosesNothing),
        (Confirmation::Typed(expected), Some(typed)) if typed == expected => {
            Confirmed::Yes(Authority::Typed(typed.to_owned()))
        }
        _ => Confirmed::NotYet,
    }
}

/// The right to send one request, once. Only this file can make one.
#[derive(Clone, Debug, PartialEq)]
pub struct Permit {
    op: OpId,
    identity: Identity,
    action: Action,
}

impl Permit {
    pub fn op(&self) -> OpId {
        self.op
    }
    pub fn identity(&self) -> &Identity {
        &self.identity
    }
    pub fn action(&self) -> Action {
        self.action
    }
}

/// Why nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotSent {
    TakenBack,
    /// The program ended before anything was sent.
    ProgramEnded,
    /// The id now names another machine.
    AnotherMachine,
    /// It is gone already, so there was nothing to stop or start.
    NoLongerThere,
    /// Its phase is no longer the one that the plan was made for.
    PhaseChanged {
        was: Phase,
        is: Phase,
    },
    /// It would now lose what the plan did not show.
    PlanChanged,
    /// The provider does not offer it any more.
    NotOffered(Refusal),
    /// It could not be looked at first.
    CouldNotLook(String),
    /// The step could not be written down.
    CouldNotRecord(String),
}

/// How an action ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The provider's own lists prove it. `despite` holds an error that the request was answered with.
    Done {
        despite: Option<String>,
    },
    /// The start waits at the provider and may begin to bill later.
    Queued(String),
    NotSent(NotSent),
    /// Answered and refused; the state was read afterwards and is as before.
    Refused(String),
}

/// Where an action is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// May still be taken back; nothing was sent.
    Countdown {
        until: Timestamp,
    },
    /// The resource is looked at once more; nothing was sent.
    Checking {
        looks: u32,
        next_look: Option<Timestamp>,
    },
    /// Written down, and on its way.
    Sending {
        since: Timestamp,
    },
    /// Refused with a wait: looked at and sent once more afterwards.
    Waiting {
        until: Timestamp,
        message: String,
    },
    /// Refused: looked at, since a refusal often means that it is so already.
    Verifying {
        error: String,
        looks: u32,
        next_look: Option<Timestamp>,
    },
    /// A promise: until a poll proves it. With `doubt`, the outcome is unknown.
    Confirming {
        since: Timestamp,
        deadline: Timestamp,
        doubt: Option<String>,
        absences: u32,
        next_look: Option<Timestamp>,
    },
    /// Past its deadline and still not so: still billing, or still not running.
    Overdue {
        since: Timestamp,
        doubt: Option<String>,
        absences: u32,
        next_look: Option<Timestamp>,
    },
    Ended {
        at: Timestamp,
        outcome: Outcome,
    },
}

/// One action on one resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    pub id: OpId,
    pub action: Action,
    pub target: Target,
    pub authority: Authority,
    /// User and host.
    pub by: String,
    pub began_at: Timestamp,
    pub step: Step,
    /// How often the request was sent.
    pub sent: u32,
    pub sent_at: Option<Timestamp>,
    /// The last answer in one line.
    pub answer: Option<String>,
}

/// What the saga hears.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    Tick,
    TakeBack,
    /// The step's record could not be written; what depended on it was not done.
    NotRecorded(String),
    LookedUp(Result<Found, ProviderError>),
    Acted(Result<Accepted, ProviderError>),
    /// What a poll of the account said about the target.
    Polled {
        asked_at: Timestamp,
        seen: Sight,
    },
}

/// A target as one poll shows it.
#[derive(Clone, Debug, PartialEq)]
pub enum Sight {
    Here {
        phase: Phase,
        queued: bool,
    },
    /// A complete list does not hold it.
    Absent,
    /// The poll does not tell.
    Untold,
}

/// What the saga wants done.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// Write the operation down as it is now.
    Record,
    /// Write it down, and only then send.
    RecordThenSend(Permit),
    /// Ask the provider for the target by id.
    Look,
    /// The provider says that our release ended it.
    Released,
    /// Ask the account again soon.
    Refresh,
}

impl Operation {
    /// Begins an action on one target of a confirmed plan.
    pub fn begin(
        id: OpId,
        action: Action,
        target: Target,
        authority: Authority,
        by: String,
        now: Timestamp,
    ) -> (Self, Vec<Order>) {
        let (step, mut orders) = match authority {
            Authority::LosesNothing => (Step::Countdown { until: now + COUNTDOWN }, vec![]),
            Authority::Typed(_) | Authority::LoseData => {
                (Step::Checking { looks: 1, next_look: None }, vec![Order::Look])
            }
        };
        orders.insert(0, Order::Record);
        let operation =
            Operation { id, action, target, authority, by, began_at: now, step, sent: 0, sent_at: None, answer: None };
        (operation, orders)
    }

    /// Takes up an operation of a process that ended. Nothing is sent by itself afterwards: what was not
    /// sent stays unsent, and what may have been sent is read back.
    pub fn resume(&mut self, now: Timestamp) -> Vec<Order> {
        match &self.step {
            Step::Countdown { .. } | Step::Checking { .. } | Step::Waiting { .. } => {
                self.end(Outcome::NotSent(NotSent::ProgramEnded), now)
            }
            Step::Sending { .. } => {
                let mut orders = self.doubt("the program ended while the request was on its way".to_owned(), now);
                orders.push(Order::Look);
                orders
            }
            Step::Verifying { .. } | Step::Confirming { .. } | Step::Overdue { .. } => vec![Order::Look],
            Step::Ended { .. } => vec![],
        }
    }

    pub fn is_ended(&self) -> bool {
        matches!(self.step, Step::Ended { .. })
    }

    /// Still to be taken back.
    pub fn in_countdown(&self) -> bool {
        matches!(self.step, Step::Countdown { .. })
    }

    /// Past its deadline.
    pub fn is_overdue(&self) -> bool {
        matches!(self.step, Step::Overdue { .. })
    }

    /// The phase that a row is to show meanwhile; `None` where the provider's own is right.
    pub fn shown_phase(&self) -> Option<Phase> {
        let under_way = matches!(
            self.step,
            Step::Sending { .. }
                | Step::Waiting { .. }
                | Step::Verifying { .. }
                | Step::Confirming { .. }
                | Step::Overdue { .. }
        );
        match self.action {
            _ if !under_way => None,
            Action::Stop => Some(Phase::Stopping),
            Action::Release | Action::Delete => Some(Phase::Releasing),
            Action::Start => Some(Phase::Provisioning),
            Action::Restart => None,
        }
    }

    /// When a tick is wanted next.
    pub fn next_wake(&self) -> Option<Timestamp> {
        match &self.step {
            Step::Countdown { until } | Step::Waiting { until, .. } => Some(*until),
            Step::Checking { next_look, .. } | Step::Verifying { next_look, .. } | Step::Overdue { next_look, .. } => {
                *next_look
            }
            Step::Confirming { deadline, next_look, .. } => {
                Some(next_look.map_or(*deadline, |look| look.min(*deadline)))
            }
            Step::Sending { .. } | Step::Ended { .. } => None,
        }
    }

    /// One step further.
    pub fn advance(&mut self, input: Input, now: Timestamp) -> Vec<Order> {
        match (self.step.clone(), input) {
            (Step::Ended { .. }, _) => vec![],
            (Step::Countdown { .. } | Step::Checking { .. } | Step::Waiting { .. }, Input::TakeBack) => {
                self.end(Outcome::NotSent(NotSent::TakenBack), now)
            }
            (_, Input::TakeBack) => vec![],
            (Step::Sending { .. }, Input::NotRecorded(error)) => {
                self.end(Outcome::NotSent(NotSent::CouldNotRecord(error)), now)
            }
            (_, Input::NotRecorded(_)) => vec![],
            (Step::Countdown { until } | Step::Waiting { until, .. }, Input::Tick) if now >= until => self.check(),
            (Step::Checking { looks, .. }, Input::LookedUp(answer)) => self.checked(answer, looks, now),
            (Step::Checking { looks, next_look: Some(at) }, Input::Tick) if now >= at => {
                self.step = Step::Checking { looks: looks + 1, next_look: None };
                vec![Order::Look]
            }
            (Step::Sending { .. }, Input::Acted(answer)) => self.answered(answer, now),
            (Step::Verifying { error, looks, .. }, Input::LookedUp(answer)) => self.verified(answer, error, looks, now),
            (Step::Verifying { error, looks, next_look: Some(at) }, Input::Tick) if now >= at => {
                self.step = Step::Verifying { error, looks: looks + 1, next_look: None };
                vec![Order::Look]
            }
            (Step::Confirming { .. } | Step::Overdue { .. }, input) => self.awaited(input, now),
            _ => vec![],
        }
    }

    fn check(&mut self) -> Vec<Order> {
        self.step = Step::Checking { looks: 1, next_look: None };
        vec![Order::Record, Order::Look]
    }

    /// The last look before the request: is it still what the person saw?
    fn checked(&mut self, answer: Result<Found, ProviderError>, looks: u32, now: Timestamp) -> Vec<Order> {
        let ends_it = matches!(self.action, Action::Release | Action::Delete);
        match answer {
            Ok(Found::NoSuchId) if ends_it => {
                let mut orders = vec![Order::Released];
                orders.extend(self.end(Outcome::Done { despite: None }, now));
                orders
            }
            Ok(Found::NoSuchId) => self.end(Outcome::NotSent(NotSent::NoLongerThere), now),
            Ok(Found::Instance(instance)) => match self.objection(&instance) {
                Some(objection) => self.end(Outcome::NotSent(objection), now),
                None if self.reached(instance.phase) => self.end(Outcome::Done { despite: None }, now),
                None => self.send(now),
            },
            Ok(Found::Storage(item)) => match (&item.delete, another(self.target.created_at, item.created_at)) {
                (_, true) => self.end(Outcome::NotSent(NotSent::AnotherMachine), now),
                (Offer::No(refusal), _) => self.end(Outcome::NotSent(NotSent::NotOffered(refusal.clone())), now),
                (Offer::Yes(_), false) => self.send(now),
            },
            // The list that the plan was made from is all that this provider tells.
            Ok(Found::CannotAsk) => self.send(now),
            Err(error) if looks < LOOKS && error.kind.is_transient() => {
                let wait = error.kind.retry_after().and_then(|wait| SignedDuration::try_from(wait).ok());
                let next_look = Some(now + wait.unwrap_or(LOOK_AGAIN).max(LOOK_AGAIN));
                self.step = Step::Checking { looks, next_look };
                vec![]
            }
            Err(error) => self.end(Outcome::NotSent(NotSent::CouldNotLook(line(&error))), now),
        }
    }

    /// What speaks against sending, given the resource as it is now.
    fn objection(&self, instance: &Instance) -> Option<NotSent> {
        if another(self.target.created_at, instance.created_at) {
            return Some(NotSent::AnotherMachine);
        }
        if self.reached(instance.phase) {
            return None;
        }
        // Somebody started what was at rest. The other way round nobody's work is at stake.
        let (was, is) = (self.target.phase, instance.phase);
        if at_work(is) && !at_work(was) {
            return Some(NotSent::PhaseChanged { was, is });
        }
        match instance.offers.of(self.action) {
            Offer::No(refusal) => Some(NotSent::NotOffered(refusal)),
            Offer::Yes(effect) if effect.loses_data() && !self.authority.covers_loss() => Some(NotSent::PlanChanged),
            Offer::Yes(effect) if effect.lost.iter().any(|place| !self.target.effect.lost.contains(place)) => {
                Some(NotSent::PlanChanged)
            }
            Offer::Yes(_) => None,
        }
    }

    /// The one place where a permit is made.
    fn send(&mut self, now: Timestamp) -> Vec<Order> {
        self.step = Step::Sending { since: now };
        self.sent += 1;
        self.sent_at = Some(now);
        let permit = Permit { op: self.id, identity: self.target.identity.clone(), action: self.action };
        vec![Order::RecordThenSend(permit)]
    }

    fn answered(&mut self, answer: Result<Accepted, ProviderError>, now: Timestamp) -> Vec<Order> {
        self.answer = Some(match &answer {
            Ok(Accepted::Done) => "accepted".to_owned(),
            Ok(Accepted::AlreadySo) => "already so".to_owned(),
            Ok(Accepted::Queued(message)) => message.clone(),
            Err(error) => error.kind.to_string(),
        });
        match answer {
            Ok(Accepted::Queued(message)) => {
                let mut orders = self.end(Outcome::Queued(message), now);
                orders.push(Order::Refresh);
                orders
            }
            Ok(Accepted::Done | Accepted::AlreadySo) => self.await_proof(None, now),
            Err(error) if error.kind.outcome_unknown() => self.doubt(line(&error), now),
            Err(ProviderError {
                kind: kind @ (ErrorKind::Server { .. } | ErrorKind::Refused { .. } | ErrorKind::RateLimited { .. }),
                ..
            }) if self.sent < SENDS && kind.retry_after().is_some() => {
                let wait = kind.retry_after().and_then(|wait| SignedDuration::try_from(wait).ok()).unwrap_or_default();
                self.step = Step::Waiting { until: now + wait.max(LOOK_AGAIN), message: kind.to_string() };
                vec![Order::Record]
            }
            Err(error) => {
                self.step = Step::Verifying { error: line(&error), looks: 1, next_look: None };
                vec![Order::Record, Order::Look]
            }
        }
    }

    /// After a refusal: is it so already?
    fn verified(
        &mut self,
        answer: Result<Found, ProviderError>,
        error: String,
        looks: u32,
        now: Timestamp,
    ) -> Vec<Order> {
        match answer {
            Ok(found) if self.proven_by(&found) => self.proven(Some(error), now),
            // Not asked by id here: a complete list without it is the proof, and the poll brings that.
            Ok(Found::CannotAsk | Found::NoSuchId | Found::Instance(_) | Found::Storage(_)) => {
                self.end(Outcome::Refused(error), now)
            }
            Err(again) if looks < LOOKS && again.kind.is_transient() => {
                self.step = Step::Verifying { error, looks, next_look: Some(now + LOOK_AGAIN) };
                vec![]
            }
            Err(_) => self.end(Outcome::Refused(error), now),
        }
    }

    /// No answer, or one that proves nothing: it is read back, and never sent again by itself.
    fn doubt(&mut self, reason: String, now: Timestamp) -> Vec<Order> {
        self.await_proof(Some(reason), now)
    }

    fn await_proof(&mut self, doubt: Option<String>, now: Timestamp) -> Vec<Order> {
        let within = if self.action == Action::Start { START_WITHIN } else { CONFIRM_WITHIN };
        // In doubt the very resource is asked for; a promise is proven by the next polls.
        let next_look = doubt.is_some().then(|| now + LOOK_AGAIN);
        self.step = Step::Confirming { since: now, deadline: now + within, doubt, absences: 0, next_look };
        vec![Order::Record, Order::Refresh]
    }

    fn awaited(&mut self, input: Input, now: Timestamp) -> Vec<Order> {
        let (doubt, absences, next_look) = match &self.step {
            Step::Confirming { doubt, absences, next_look, .. } | Step::Overdue { doubt, absences, next_look, .. } => {
                (doubt.clone(), *absences, *next_look)
            }
            _ => return vec![],
        };
        let ends_it = matches!(self.action, Action::Release | Action::Delete);
        match input {
            Input::Polled { asked_at, .. } if self.sent_at.is_some_and(|sent| asked_at < sent) => vec![],
            Input::Polled { seen: Sight::Absent, .. } => {
                self.set_waiting(absences + 1, None);
                vec![Order::Look]
            }
            Input::Polled { seen: Sight::Here { queued: true, .. }, .. } if self.action == Action::Start => {
                self.end(Outcome::Queued(doubt.unwrap_or_default()), now)
            }
            Input::Polled { seen: Sight::Here { phase, .. }, .. } if self.reached(phase) && !ends_it => {
                self.proven(doubt, now)
            }
            Input::LookedUp(Ok(found)) if self.proven_by(&found) => self.proven(doubt, now),
            Input::LookedUp(Ok(Found::CannotAsk)) if ends_it && absences >= 2 => self.proven(doubt, now),
            Input::LookedUp(_) if doubt.is_some() => {
                self.set_waiting(absences, Some(now + LOOK_AGAIN * 3));
                vec![]
            }
            Input::Tick => {
                if let Step::Confirming { deadline, .. } = &self.step
                    && now >= *deadline
                {
                    self.step = Step::Overdue { since: now, doubt, absences, next_look: Some(now + CONFIRM_WITHIN) };
                    return vec![Order::Record, Order::Refresh];
                }
                if next_look.is_some_and(|at| now >= at) {
                    let again = self.is_overdue().then(|| now + CONFIRM_WITHIN);
                    self.set_waiting(absences, again);
                    return vec![Order::Look];
                }
                vec![]
            }
            _ => vec![],
        }
    }

    fn set_waiting(&mut self, count: u32, look: Option<Timestamp>) {
        if let Step::Confirming { absences, next_look, .. } | Step::Overdue { absences, next_look, .. } = &mut self.step
        {
            *absences = count;
            *next_look = look;
        }
    }

    fn proven(&mut self, despite: Option<String>, now: Timestamp) -> Vec<Order> {
        let mut orders = Vec::new();
        if matches!(self.action, Action::Release | Action::Delete) {
            orders.push(Order::Released);
        }
        orders.extend(self.end(Outcome::Done { despite }, now));
        orders.push(Order::Refresh);
        orders
    }

    fn end(&mut self, outcome: Outcome, now: Timestamp) -> Vec<Order> {
        self.step = Step::Ended { at: now, outcome };
        vec![Order::Record]
    }

    /// Whether an answer by id proves that the action has taken effect.
    fn proven_by(&self, found: &Found) -> bool {
        match (self.action, found) {
            (Action::Release, Found::Instance(instance)) => {
                instance.phase == Phase::Gone || another(self.target.created_at, instance.created_at)
            }
            (Action::Release | Action::Delete, found) => *found == Found::NoSuchId,
            (_, Found::Instance(instance)) => {
                self.reached(instance.phase) && !instance.remarks.contains(&Remark::StartQueued)
            }
            _ => false,
        }
    }

    /// Whether a phase is what the action was to bring about.
    fn reached(&self, phase: Phase) -> bool {
        match self.action {
            Action::Stop => matches!(phase, Phase::Stopped | Phase::Reclaimed),
            Action::Start => phase == Phase::Running,
            // A restart begins and ends in running: only what comes after the request counts.
            Action::Restart => phase == Phase::Running && self.sent > 0,
            Action::Release | Action::Delete => phase == Phase::Gone,
        }
    }

    /// The kind of resource that it is about.
    pub fn kind(&self) -> ResourceKind {
        self.target.identity.kind
    }
}

/// Two known creation times that differ: the id was given to another machine.
fn another(seen: Option<Timestamp>, now: Option<Timestamp>) -> bool {
    matches!((seen, now), (Some(seen), Some(now)) if seen != now)
}

/// Whether a machine in this phase may be doing somebody's work: a change of this matters to a plan.
fn at_work(phase: Phase) -> bool {
    matches!(phase, Phase::Provisioning | Phase::Running | Phase::Stopping)
}

fn line(error: &ProviderError) -> String {
    format!("{}: {}", error.request, error.kind)
}

#[cfg(test)]
#[path = "saga_tests.rs"]
mod tests;
