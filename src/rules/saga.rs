//! An action under way: from the confirmed plan to the poll that proves it, one durable step at a time.
//!
//! This file alone hands out [`Permit`]s, and nothing that changes anything at a provider is sent without
//! one. A permit is born in one place, `Operation::send`, and that place is reached only with an
//! authority (a plan that loses nothing, a typed name, or the fresh proof of a checkpoint), after a fresh look at the
//! very identity that the person saw, and it travels inside an order to write the step down first.

use jiff::{SignedDuration, Timestamp};
use providers::error::{ErrorKind, ProviderError};
use providers::model::{Action, DataPlace, Identity, Instance, Offer, Phase, Refusal, Remark, ResourceKind};
use providers::provider::{Accepted, Found, Part, Poll};
use serde::{Deserialize, Serialize};

use super::checkpoint::{self, Stage, Told, Trouble};
use super::fleet::Row;
use super::plan::{Confirmation, Plan, Target, delete_offer};

mod saving;

pub use saving::Saving;

/// How long an action that loses nothing can be taken back before it begins.
pub const COUNTDOWN: SignedDuration = SignedDuration::from_secs(5);
/// How long a stop or a release may take before it counts as still billing.
const CONFIRM_WITHIN: SignedDuration = SignedDuration::from_mins(3);
/// A start pulls images: it may take longer, and costs nothing that the plan did not say.
const START_WITHIN: SignedDuration = SignedDuration::from_mins(10);
/// A provider that wants to be left alone for longer than this is not waited for: the person decides anew.
const LONGEST_WAIT: SignedDuration = CONFIRM_WITHIN;
/// Between two looks at a resource whose state is in doubt.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(3);
/// How often a look that fails is tried before the action is given up unsent.
const LOOKS: u32 = 4;
/// How long a person's word counts. After a sleep of the machine, say, nothing goes out on yesterday's.
const WORD_COUNTS: SignedDuration = SignedDuration::from_mins(10);
/// So long after an action ended its resource may still do what was asked for.
pub const MOVES_FOR: SignedDuration = SignedDuration::from_hours(1);
/// No time that something waits for lies further ahead: one that does is from before the clock was set back.
const FURTHEST: SignedDuration = START_WITHIN;
/// A clock that goes back by less was only put right.
const CLOCK_STEP: SignedDuration = SignedDuration::from_mins(1);
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
    /// The plan loses nothing, and the person said yes to it.
    Confirmed,
    /// The person typed what the plan asked for.
    Typed(String),
    /// The person said on the command line that data may be lost.
    LoseData,
    /// What is to be kept is verified elsewhere first: only with the proof of that, and only for a while.
    Saved,
}

impl Authority {
    fn covers_loss(&self) -> bool {
        matches!(self, Authority::Typed(_) | Authority::LoseData)
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
        (Confirmation::Save, None) => Confirmed::Yes(Authority::Saved),
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
    given_at: Timestamp,
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
    /// Whether it was given just now. One that lay about, while the machine slept for instance, counts no more.
    pub fn counts(&self, now: Timestamp) -> bool {
        is_just_past(self.given_at, now)
    }
}

/// Why nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotSent {
    TakenBack,
    /// The program ended before anything was sent.
    ProgramEnded,
    /// So much time passed since it was asked for (a sleep, mostly) that it must be asked for anew.
    TooLate,
    /// The id now names another machine.
    AnotherMachine,
    /// It is gone already, so there was nothing to stop or start.
    NoLongerThere,
    /// It is already where the action was to bring it.
    AlreadySo,
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
    /// Another rentop on the same ledger has an action on it in hand.
    UnderWay {
        host: String,
        pid: u32,
    },
}

/// How an action ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The provider's own answers prove it. `despite` holds what spoke against it: an error that the request
    /// was answered with, mostly.
    Done {
        despite: Option<String>,
    },
    /// The start waits at the provider and may begin to bill later.
    Queued(String),
    NotSent(NotSent),
    /// Answered and refused; the state was read afterwards, where it could be, and is as before.
    Refused(String),
    /// No answer ever proved it, and another action on the same resource took its place.
    Unproven,
    /// There is no verified checkpoint, so nothing followed it.
    NotSaved(Trouble),
}

impl Outcome {
    /// It did not do what was asked for, and nobody wanted it so.
    pub fn is_bad(&self) -> bool {
        !matches!(
            self,
            Outcome::Done { despite: None }
                | Outcome::Queued(_)
                | Outcome::NotSent(NotSent::TakenBack | NotSent::AlreadySo)
        )
    }
}

/// Where an action is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// May still be taken back; nothing was sent.
    Countdown {
        until: Timestamp,
    },
    /// What is to be kept is brought to safety; nothing was sent.
    Saving {
        stage: Stage,
        since: Timestamp,
        /// It failed, and is tried again then.
        next_try: Option<Timestamp>,
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

impl Step {
    /// The word of the journal and of `--json`.
    pub fn word(&self) -> &'static str {
        match self {
            Step::Countdown { .. } => "countdown",
            Step::Saving { stage, .. } => stage.word(),
            Step::Checking { .. } => "checking",
            Step::Sending { .. } => "sending",
            Step::Waiting { .. } => "waiting",
            Step::Verifying { .. } => "verifying",
            Step::Confirming { .. } => "confirming",
            Step::Overdue { .. } => "overdue",
            Step::Ended { .. } => "ended",
        }
    }
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
    /// What is brought to safety first, or alone.
    #[serde(default)]
    pub saving: Option<Box<Saving>>,
}

/// What the saga hears.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    Tick,
    TakeBack,
    /// Another action on the same resource begins: only one that is overdue gives way to it.
    Superseded,
    /// The record that a request waited for could not be written, so the request was not sent.
    NotRecorded(String),
    /// Its beginning was not written down, and nothing after it will be sent: another process has an action on the
    /// same resource in hand.
    Forestalled {
        host: String,
        pid: u32,
    },
    LookedUp(Result<Found, ProviderError>),
    Acted(Result<Accepted, ProviderError>),
    /// What is told of a stage of the checkpoint, by the number of its try.
    Saving {
        number: u64,
        told: Told,
    },
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
    /// A complete list does not hold it, or its id now names another machine.
    Absent,
    /// The poll does not tell.
    Untold,
}

impl Sight {
    /// What one poll says about a target.
    pub fn of(target: &Target, poll: &Poll) -> Self {
        match target.identity.kind {
            ResourceKind::Instance => {
                Self::within(target, &poll.instances, |row| (row.phase, row.remarks.contains(&Remark::StartQueued)))
            }
            // A storage item has no phases: it is there or not.
            ResourceKind::Storage => Self::within(target, &poll.storage, |_| (target.phase, false)),
        }
    }

    fn within<T: Row>(target: &Target, part: &Part<T>, state: impl Fn(&T) -> (Phase, bool)) -> Self {
        match part.rows().iter().find(|row| *row.id() == target.identity.id) {
            Some(row) if another(target.created_at, row.created_at()) => Sight::Absent,
            Some(row) => {
                let (phase, queued) = state(row);
                Sight::Here { phase, queued }
            }
            None => match part {
                Part::Listed { problems, .. } if problems.is_empty() => Sight::Absent,
                _ => Sight::Untold,
            },
        }
    }
}

/// What the saga wants done.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// Write the operation down as it is now.
    Record,
    /// Write it down, and only then send.
    RecordThenSend(Permit),
    /// Write it down, and only then do the stage that it is at.
    RecordThenSave,
    /// Whatever is done of the checkpoint ends.
    StopSaving,
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
            Authority::Confirmed | Authority::Typed(_) | Authority::LoseData | Authority::Saved => {
                (Step::Checking { looks: 1, next_look: None }, vec![Order::Look])
            }
        };
        orders.insert(0, Order::Record);
        let saving = target.recipe.is_some().then(|| {
            let folder = checkpoint::folder(target.provider.as_str(), &target.name, &target.identity, now);
            Box::new(Saving::new(folder, now))
        });
        let (sent, sent_at, answer) = (0, None, None);
        let mut operation =
            Operation { id, action, target, authority, by, began_at: now, step, sent, sent_at, answer, saving };
        if operation.saving.is_some() {
            orders = operation.save(Stage::Prepare, now);
        }
        (operation, orders)
    }

    /// Takes up an operation of a process that ended. Nothing is sent by itself afterwards: what was not
    /// sent stays unsent, and what may have been sent is read back.
    pub fn resume(&mut self, now: Timestamp) -> Vec<Order> {
        match &mut self.step {
            Step::Saving { stage, .. } => {
                let stage = *stage;
                self.save_on(stage, now)
            }
            // It is verified, and what it was for was asked for: whether that still counts is seen when it is sent.
            Step::Checking { .. } if self.sent == 0 && self.saving.is_some() => self.check(),
            Step::Countdown { .. } | Step::Checking { .. } | Step::Waiting { .. } => {
                self.abandon(NotSent::ProgramEnded, now)
            }
            Step::Sending { .. } => {
                let mut orders = self.doubt("the program ended while the request was on its way".to_owned(), now);
                orders.push(Order::Look);
                orders
            }
            Step::Verifying { .. } | Step::Overdue { .. } => vec![Order::Look],
            Step::Confirming { deadline, .. } => {
                // While nobody looked it may well have come true: it is looked at before it is called overdue.
                *deadline = (*deadline).max(now + LOOK_AGAIN * 5);
                vec![Order::Look]
            }
            Step::Ended { .. } => vec![],
        }
    }

    pub fn is_ended(&self) -> bool {
        matches!(self.step, Step::Ended { .. })
    }

    /// Nothing of it is sent, or it waits to be sent once more: it can still be taken back.
    pub fn can_be_taken_back(&self) -> bool {
        matches!(self.step, Step::Countdown { .. } | Step::Saving { .. } | Step::Checking { .. } | Step::Waiting { .. })
    }

    /// A checkpoint and nothing after it.
    pub fn is_checkpoint(&self) -> bool {
        self.action == Action::Checkpoint
    }

    /// Something is being brought to safety.
    pub fn is_saving(&self) -> bool {
        matches!(self.step, Step::Saving { .. })
    }

    /// It goes on when somebody collects again, although nobody sees to it meanwhile: a checkpoint, and what it is for.
    pub fn outlives_its_process(&self) -> bool {
        let verified = matches!(self.step, Step::Checking { .. }) && self.sent == 0 && self.saving.is_some();
        self.is_saving() || verified
    }

    /// What somebody wants done now goes before it. A mere checkpoint is not begun twice.
    pub fn gives_way_to(&self, action: Action) -> bool {
        self.is_overdue() || (self.is_checkpoint() && action != Action::Checkpoint)
    }

    pub fn in_countdown(&self) -> bool {
        matches!(self.step, Step::Countdown { .. })
    }

    /// Past its deadline.
    pub fn is_overdue(&self) -> bool {
        matches!(self.step, Step::Overdue { .. })
    }

    /// The phase that a row is to show meanwhile; `None` where the provider's own is right.
    pub fn shown_phase(&self) -> Option<Phase> {
        let under_way = self.sent > 0 && !self.is_ended();
        match self.action {
            _ if !under_way => None,
            Action::Stop => Some(Phase::Stopping),
            Action::Release | Action::Delete => Some(Phase::Releasing),
            // What did not come up in time is not coming up.
            Action::Start => (!self.is_overdue()).then_some(Phase::Provisioning),
            Action::Restart | Action::Checkpoint => None,
        }
    }

    /// When a tick is wanted next.
    pub fn next_wake(&self) -> Option<Timestamp> {
        match &self.step {
            Step::Countdown { until } | Step::Waiting { until, .. } => Some(*until),
            Step::Saving { next_try, .. } => self.saving_wakes(*next_try),
            Step::Checking { next_look, .. } | Step::Verifying { next_look, .. } | Step::Overdue { next_look, .. } => {
                *next_look
            }
            Step::Confirming { deadline, next_look, .. } => {
                Some(next_look.map_or(*deadline, |look| look.min(*deadline)))
            }
            Step::Sending { .. } | Step::Ended { .. } => None,
        }
    }

    /// Whether a tick is wanted now.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.next_wake().is_some_and(|at| has_come(at, now))
    }

    /// One step further.
    pub fn advance(&mut self, input: Input, now: Timestamp) -> Vec<Order> {
        match (self.step.clone(), input) {
            (Step::Ended { .. }, _) => vec![],
            (Step::Saving { stage, since, next_try }, input) => {
                self.advance_saving((stage, since, next_try), input, now)
            }
            (Step::Countdown { .. } | Step::Checking { .. } | Step::Waiting { .. }, Input::TakeBack) => {
                self.abandon(NotSent::TakenBack, now)
            }
            (Step::Overdue { .. }, Input::Superseded) => self.end(Outcome::Unproven, now),
            (Step::Sending { .. }, Input::NotRecorded(error)) => self.unsent(NotSent::CouldNotRecord(error), now),
            (Step::Sending { .. }, Input::Forestalled { host, pid }) => {
                self.unsent(NotSent::UnderWay { host, pid }, now)
            }
            (Step::Countdown { .. } | Step::Checking { .. }, Input::Forestalled { host, pid }) => {
                self.abandon(NotSent::UnderWay { host, pid }, now)
            }
            (Step::Countdown { until } | Step::Waiting { until, .. }, Input::Tick) if has_come(until, now) => {
                self.check()
            }
            (Step::Checking { looks, .. }, Input::LookedUp(answer)) => self.checked(answer, looks, now),
            (Step::Checking { looks, next_look: Some(at) }, Input::Tick) if has_come(at, now) => {
                self.step = Step::Checking { looks: looks + 1, next_look: None };
                vec![Order::Look]
            }
            (Step::Sending { .. }, Input::Acted(answer)) => self.answered(answer, now),
            (Step::Verifying { error, looks, .. }, Input::LookedUp(answer)) => self.verified(answer, error, looks, now),
            (Step::Verifying { error, looks, next_look: Some(at) }, Input::Tick) if has_come(at, now) => {
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
        let found = match answer {
            Ok(found) => found,
            Err(error) => {
                return match look_again(&error) {
                    Some(wait) if looks < LOOKS => {
                        self.step = Step::Checking { looks, next_look: Some(now + wait) };
                        vec![]
                    }
                    _ => self.abandon(NotSent::CouldNotLook(line(&error)), now),
                };
            }
        };
        if self.sent == 0 {
            let reason = match self.objection(&found) {
                // One "no such id" before anything was sent proves no release: the lists settle what it is.
                _ if found == Found::NoSuchId => NotSent::NoLongerThere,
                // Whoever brought it there: it was not this action, which saves nothing by it.
                _ if self.proven_by(&found) && !self.is_another(&found) => NotSent::AlreadySo,
                Some(objection) => return self.end(Outcome::NotSent(objection), now),
                None => return self.send(now),
            };
            let mut orders = self.end(Outcome::NotSent(reason), now);
            orders.push(Order::Refresh);
            return orders;
        }
        let refusal = self.answer.clone().unwrap_or_default();
        match self.came_true(&found, refusal.clone(), now) {
            Some(orders) => orders,
            None if self.objection(&found).is_some() => self.refuse(refusal, now),
            None => self.send(now),
        }
    }

    /// What speaks against sending, given the resource as it is now.
    fn objection(&self, found: &Found) -> Option<NotSent> {
        if self.is_another(found) {
            return Some(NotSent::AnotherMachine);
        }
        let offer = match found {
            // The list that the plan was made from is all that this provider tells.
            Found::CannotAsk => return None,
            Found::NoSuchId => return Some(NotSent::NoLongerThere),
            Found::Instance(instance) if instance.has_ended() => return Some(NotSent::NoLongerThere),
            Found::Instance(instance) => {
                // Somebody started what was at rest. The other way round nobody's work is at stake.
                let (was, is) = (self.target.phase, instance.phase);
                // Of what nobody could see into it was not said that it rests: a stop is for what runs.
                let may_have_run = matches!(was, Phase::Unknown | Phase::Unreachable) && self.action == Action::Stop;
                if at_work(is) && !at_work(was) && !may_have_run {
                    return Some(NotSent::PhaseChanged { was, is });
                }
                // Whoever started it since it was brought to safety may have new work on it.
                let proven_at = self.proof().map(|proof| proof.at);
                if proven_at.zip(instance.started_at).is_some_and(|(proven_at, started_at)| started_at > proven_at) {
                    return Some(NotSent::PlanChanged);
                }
                instance.offers.of(self.action)
            }
            Found::Storage(item) => delete_offer(item),
        };
        match offer {
            Offer::No(refusal) => Some(NotSent::NotOffered(refusal)),
            Offer::Yes(effect) if effect.lost.iter().any(|place| !self.was_shown(place)) => Some(NotSent::PlanChanged),
            Offer::Yes(_) => None,
        }
    }

    /// Whether the plan told that this place would be lost. Its size may have changed since.
    fn was_shown(&self, place: &DataPlace) -> bool {
        let named = |place: &DataPlace| (place.kind, place.name.clone(), place.path.clone());
        self.target.effect.lost.iter().any(|shown| named(shown) == named(place))
    }

    /// The one place where a permit is made. What destroys something is never sent on a mere countdown,
    /// whatever the steps before have let pass.
    fn send(&mut self, now: Timestamp) -> Vec<Order> {
        // Who asked for a checkpoint first has its proof, or nothing is sent. By itself one is never sent at all.
        if self.is_checkpoint() || (self.asked_to_save() && self.proof().is_none()) {
            return self.abandon(NotSent::PlanChanged, now);
        }
        let lapsed = self.saving.as_ref().is_some_and(|saving| saving.lapsed);
        let said = self.sent_at.or(self.proof().map(|proof| proof.at)).unwrap_or(self.began_at);
        if lapsed || !is_just_past(said, now) {
            return self.abandon(NotSent::TooLate, now);
        }
        let saved = self.authority == Authority::Saved && self.proof().is_some_and(|proof| is_just_past(proof.at, now));
        if (self.ends_it() || self.target.effect.loses_data()) && !(self.authority.covers_loss() || saved) {
            return self.abandon(NotSent::PlanChanged, now);
        }
        self.step = Step::Sending { since: now };
        self.sent += 1;
        self.sent_at = Some(now);
        let permit = Permit { op: self.id, identity: self.target.identity.clone(), action: self.action, given_at: now };
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
            Ok(Accepted::Queued(message)) if matches!(self.action, Action::Start | Action::Restart) => {
                self.queue(message, now)
            }
            Ok(_) => self.await_proof(None, now),
            Err(error) if error.kind.outcome_unknown() => self.doubt(line(&error), now),
            // Gone already, by the provider's own word: that alone is to be proven.
            Err(error) if self.ends_it() && error.kind == ErrorKind::NoSuchId => {
                let mut orders = self.doubt(line(&error), now);
                orders.push(Order::Look);
                orders
            }
            Err(error) => match wait_asked(&error) {
                Some(wait) if self.sent < SENDS && wait <= LONGEST_WAIT => {
                    let message = error.kind.to_string();
                    self.step = Step::Waiting { until: now + wait.max(LOOK_AGAIN), message };
                    vec![Order::Record]
                }
                _ => self.verify(line(&error)),
            },
        }
    }

    /// The request that was to be sent was not.
    fn unsent(&mut self, reason: NotSent, now: Timestamp) -> Vec<Order> {
        self.sent -= 1;
        self.sent_at = self.sent_at.filter(|_| self.sent > 0);
        self.abandon(reason, now)
    }

    /// Goes no further. Where nothing was sent, that is the end; a refused request is read back first.
    fn abandon(&mut self, reason: NotSent, now: Timestamp) -> Vec<Order> {
        if self.sent == 0 {
            self.end(Outcome::NotSent(reason), now)
        } else {
            self.verify(self.answer.clone().unwrap_or_default())
        }
    }

    fn verify(&mut self, error: String) -> Vec<Order> {
        self.step = Step::Verifying { error, looks: 1, next_look: None };
        vec![Order::Record, Order::Look]
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
            Ok(found) => match self.came_true(&found, error.clone(), now) {
                Some(orders) => orders,
                None => self.refuse(error, now),
            },
            Err(again) => match look_again(&again) {
                Some(wait) if looks < LOOKS => {
                    self.step = Step::Verifying { error, looks, next_look: Some(now + wait) };
                    vec![]
                }
                _ => self.refuse(error, now),
            },
        }
    }

    /// What follows when a look shows that a refused request was carried out all the same, or is being.
    fn came_true(&mut self, found: &Found, error: String, now: Timestamp) -> Option<Vec<Order>> {
        if self.proven_by(found) {
            return Some(self.proven(Some(error), now));
        }
        let Found::Instance(instance) = found else { return None };
        match (self.action, instance.phase) {
            (Action::Stop, Phase::Stopping) | (Action::Release, Phase::Releasing) => Some(self.doubt(error, now)),
            (Action::Start, _) if is_queued(instance) => Some(self.queue(error, now)),
            _ => None,
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
        let (doubt, absences, next_look, since) = match &self.step {
            Step::Confirming { doubt, absences, next_look, since, .. }
            | Step::Overdue { doubt, absences, next_look, since } => (doubt.clone(), *absences, *next_look, *since),
            _ => return vec![],
        };
        match input {
            // Asked before the request was answered: it may show what was before.
            Input::Polled { asked_at, .. } if !self.is_overdue() && asked_at < since => vec![],
            Input::Polled { seen: Sight::Untold, .. } => vec![],
            Input::Polled { seen: Sight::Absent, .. } => {
                self.set_waiting(absences + 1, next_look);
                vec![Order::Look]
            }
            Input::Polled { seen: Sight::Here { phase, queued }, .. } => {
                self.set_waiting(0, next_look);
                match self.action {
                    Action::Start if queued => self.queue(doubt.unwrap_or_default(), now),
                    Action::Start if phase == Phase::Failed && self.target.phase != Phase::Failed => {
                        self.refuse(doubt.unwrap_or_else(|| "the start failed at the provider".to_owned()), now)
                    }
                    // Running is what it was before: only an accepted restart is believed.
                    Action::Restart if phase == Phase::Running && doubt.is_none() => self.proven(None, now),
                    Action::Restart => vec![],
                    _ if self.reached(phase) && !queued => self.proven(doubt, now),
                    _ => vec![],
                }
            }
            Input::LookedUp(Ok(found)) if self.proven_by(&found) => self.proven(doubt, now),
            Input::LookedUp(Ok(Found::CannotAsk)) if self.ends_it() && absences >= 2 => self.proven(doubt, now),
            Input::LookedUp(Ok(Found::NoSuchId | Found::CannotAsk)) if absences >= 2 => self.vanished(now),
            Input::LookedUp(Ok(found)) if self.is_another(&found) => self.vanished(now),
            Input::LookedUp(Ok(Found::Instance(instance))) if self.action == Action::Start && is_queued(&instance) => {
                self.queue(doubt.unwrap_or_default(), now)
            }
            Input::LookedUp(_) if doubt.is_some() && !self.is_overdue() => {
                self.set_waiting(absences, Some(now + LOOK_AGAIN * 3));
                vec![]
            }
            Input::Tick => {
                if let Step::Confirming { deadline, .. } = &self.step
                    && has_come(*deadline, now)
                {
                    self.step = Step::Overdue { since: now, doubt, absences, next_look: Some(now + CONFIRM_WITHIN) };
                    // The lists may be what fails: the machine itself is asked for before anybody is alarmed long.
                    return vec![Order::Record, Order::Refresh, Order::Look];
                }
                if next_look.is_some_and(|at| has_come(at, now)) {
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
        if self.ends_it() {
            orders.push(Order::Released);
        }
        orders.extend(self.end(Outcome::Done { despite }, now));
        orders.push(Order::Refresh);
        orders
    }

    /// It went away by itself meanwhile. That ends compute as a stop would, and whatever else was wanted.
    fn vanished(&mut self, now: Timestamp) -> Vec<Order> {
        let message = "it is no longer there".to_owned();
        match self.action {
            Action::Stop => self.proven(Some(message), now),
            _ => self.refuse(message, now),
        }
    }

    fn refuse(&mut self, error: String, now: Timestamp) -> Vec<Order> {
        let mut orders = self.end(Outcome::Refused(error), now);
        orders.push(Order::Refresh);
        orders
    }

    fn queue(&mut self, message: String, now: Timestamp) -> Vec<Order> {
        let mut orders = self.end(Outcome::Queued(message), now);
        orders.push(Order::Refresh);
        orders
    }

    fn end(&mut self, outcome: Outcome, now: Timestamp) -> Vec<Order> {
        self.step = Step::Ended { at: now, outcome };
        vec![Order::Record]
    }

    /// Whether an answer by id proves that the action has taken effect.
    fn proven_by(&self, found: &Found) -> bool {
        match found {
            Found::CannotAsk => false,
            Found::NoSuchId => self.ends_it(),
            // The id went to another machine: ours is no more.
            found if self.is_another(found) => self.ends_it(),
            Found::Storage(_) => false,
            // A restart begins and ends in running: only a run that began after the request counts.
            Found::Instance(instance) if self.action == Action::Restart => {
                let began_since = instance.started_at.zip(self.sent_at).is_some_and(|(began, sent)| began >= sent);
                instance.phase == Phase::Running && began_since
            }
            Found::Instance(instance) => self.reached(instance.phase) && !is_queued(instance),
        }
    }

    /// Whether the id names another machine than the one that the person saw.
    fn is_another(&self, found: &Found) -> bool {
        match found {
            Found::Instance(instance) => another(self.target.created_at, instance.created_at),
            Found::Storage(item) => another(self.target.created_at, item.created_at),
            Found::NoSuchId | Found::CannotAsk => false,
        }
    }

    /// Whether a phase is what the action was to bring about.
    fn reached(&self, phase: Phase) -> bool {
        match self.action {
            Action::Stop => matches!(phase, Phase::Stopped | Phase::Reclaimed),
            Action::Start => phase == Phase::Running,
            Action::Restart | Action::Checkpoint => false,
            Action::Release | Action::Delete => phase == Phase::Gone,
        }
    }

    /// Nothing of the resource is left afterwards.
    fn ends_it(&self) -> bool {
        matches!(self.action, Action::Release | Action::Delete)
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

/// Whether a time that something waits for is here, or so far ahead that the clock was set back since it was named.
fn has_come(at: Timestamp, now: Timestamp) -> bool {
    now >= at || at.duration_since(now) > FURTHEST
}

/// Whether something was so lately that a person's word of then, or a proof, still counts. What lies ahead of the clock
/// was before it was set back, nobody knows how long ago.
fn is_just_past(at: Timestamp, now: Timestamp) -> bool {
    (-CLOCK_STEP..=WORD_COUNTS).contains(&now.duration_since(at))
}

/// A start that waits at the provider for a free GPU.
fn is_queued(instance: &Instance) -> bool {
    instance.remarks.contains(&Remark::StartQueued)
}

/// How long the provider asks to be left alone; `None` where it does not.
fn wait_asked(error: &ProviderError) -> Option<SignedDuration> {
    error.kind.retry_after().and_then(|wait| SignedDuration::try_from(wait).ok())
}

/// After how long a look that failed is worth another; `None` when it is not.
fn look_again(error: &ProviderError) -> Option<SignedDuration> {
    let wait = wait_asked(error).unwrap_or_default().max(LOOK_AGAIN);
    (error.kind.is_transient() && wait <= LONGEST_WAIT).then_some(wait)
}

fn line(error: &ProviderError) -> String {
    format!("{}: {}", error.request, error.kind)
}

#[cfg(test)]
#[path = "saga_tests.rs"]
mod tests;
