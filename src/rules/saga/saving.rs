//! The checkpoint of an action: what is brought to safety before it, or by itself.
//!
//! Each stage is on disk before it is begun, and can be begun again: what was copied is not copied twice. What follows
//! the checkpoint, a release for instance, follows only what was verified just now and was asked for without a pause:
//! after a sleep or a restart of more than a few minutes the copy is finished, and the machine stays.

use jiff::{SignedDuration, Timestamp};
use providers::model::Action;
use providers::provider::Found;
use serde::{Deserialize, Serialize};

use super::{Input, NotSent, Operation, Order, Outcome, Step, has_come, is_just_past};
use crate::rules::checkpoint::{Progress, Proof, Saved, Stage, Told, Trouble};

/// How often it is noted that it goes on: after a crash it shows how long nobody saw to it.
const NOTED: SignedDuration = SignedDuration::from_mins(1);
/// Nothing was heard for so long: it is begun again.
const STALLED: SignedDuration = SignedDuration::from_mins(5);
const FIRST_RETRY: SignedDuration = SignedDuration::from_secs(5);
const LONGEST_RETRY: SignedDuration = SignedDuration::from_mins(5);
/// So often in a row a stage may fail without any progress.
const TRIES: u32 = 8;
/// No checkpoint takes longer.
const LONGEST: SignedDuration = SignedDuration::from_hours(24);

/// How a checkpoint stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Saving {
    /// Of the copy, below that of the method.
    pub folder: String,
    pub progress: Progress,
    /// It was verified. What follows it reads this.
    pub proof: Option<Proof>,
    /// What went wrong last, while it is tried again.
    pub trouble: Option<Trouble>,
    /// Nobody saw to it for so long that what was to follow does not.
    pub lapsed: bool,
    /// Failures in a row.
    tries: u32,
    /// Of the stage that was begun last.
    number: u64,
    /// The last event of any kind, and the last word of whoever performs it.
    alive_at: Timestamp,
    heard_at: Timestamp,
    noted_at: Timestamp,
}

impl Saving {
    pub(super) fn new(folder: String, now: Timestamp) -> Self {
        Saving {
            folder,
            progress: Progress::default(),
            proof: None,
            trouble: None,
            lapsed: false,
            tries: 0,
            number: 0,
            alive_at: now,
            heard_at: now,
            noted_at: now,
        }
    }

    /// Of the stage that was begun last.
    pub fn number(&self) -> u64 {
        self.number
    }
}

impl Operation {
    /// The verified checkpoint that it made, if it did.
    pub fn saved(&self) -> Option<Saved> {
        Some(Saved {
            op: self.id,
            identity: self.target.identity.clone(),
            recipe: self.target.recipe.clone()?,
            proof: self.saving.as_ref()?.proof.clone()?,
        })
    }

    /// A checkpoint belongs to it, before anything else or alone.
    pub(super) fn asked_to_save(&self) -> bool {
        self.saving.is_some() || self.target.recipe.is_some()
    }

    /// What proves its checkpoint; `None` while nothing does.
    pub(super) fn proof(&self) -> Option<&Proof> {
        self.saving.as_ref()?.proof.as_ref()
    }

    /// Begins a stage, or begins it again.
    pub(super) fn save(&mut self, stage: Stage, now: Timestamp) -> Vec<Order> {
        let Some(saving) = &mut self.saving else { return vec![] };
        saving.number += 1;
        saving.proof = None;
        (saving.alive_at, saving.heard_at, saving.noted_at) = (now, now, now);
        self.step = Step::Saving { stage, since: now, next_try: None };
        vec![Order::RecordThenSave]
    }

    /// Takes up what an earlier process left.
    pub(super) fn save_on(&mut self, stage: Stage, now: Timestamp) -> Vec<Order> {
        self.note_pause(now);
        self.save(stage, now)
    }

    /// A sleep, a time in which no process saw to it, or a clock that was set back by nobody knows how much.
    fn note_pause(&mut self, now: Timestamp) {
        if let Some(saving) = &mut self.saving {
            saving.lapsed |= !is_just_past(saving.alive_at, now);
            saving.alive_at = now;
        }
    }

    /// When a tick is wanted next.
    pub(super) fn saving_wakes(&self, next_try: Option<Timestamp>) -> Option<Timestamp> {
        let saving = self.saving.as_ref()?;
        let noted = saving.noted_at + NOTED;
        Some(next_try.map_or(noted, |at| at.min(noted)))
    }

    pub(super) fn advance_saving(
        &mut self,
        (stage, since, next_try): (Stage, Timestamp, Option<Timestamp>),
        input: Input,
        now: Timestamp,
    ) -> Vec<Order> {
        self.note_pause(now);
        let Some(saving) = &mut self.saving else { return vec![] };
        match input {
            Input::TakeBack => self.give_up_saving(Outcome::NotSent(NotSent::TakenBack), now),
            Input::Superseded if self.action == Action::Checkpoint => {
                self.give_up_saving(Outcome::NotSent(NotSent::TakenBack), now)
            }
            Input::NotRecorded(error) => self.give_up_saving(Outcome::NotSent(NotSent::CouldNotRecord(error)), now),
            Input::Forestalled { host, pid } => {
                self.give_up_saving(Outcome::NotSent(NotSent::UnderWay { host, pid }), now)
            }
            Input::Saving { number, told } if number == saving.number && next_try.is_none() => {
                saving.heard_at = now;
                self.saving_told(stage, told, now)
            }
            Input::LookedUp(Ok(Found::NoSuchId)) => self.give_up_saving(Outcome::NotSent(NotSent::NoLongerThere), now),
            Input::Tick if now.duration_since(self.began_at) > LONGEST => {
                self.give_up_saving(Outcome::NotSaved(Trouble::Stalled), now)
            }
            Input::Tick if next_try.is_some_and(|at| has_come(at, now)) => self.save(stage, now),
            Input::Tick if next_try.is_none() && now.duration_since(saving.heard_at).abs() > STALLED => {
                self.saving_failed(stage, Trouble::Stalled, now)
            }
            Input::Tick if now.duration_since(saving.noted_at).abs() >= NOTED => {
                saving.noted_at = now;
                self.step = Step::Saving { stage, since, next_try };
                vec![Order::Record]
            }
            _ => vec![],
        }
    }

    fn saving_told(&mut self, stage: Stage, told: Told, now: Timestamp) -> Vec<Order> {
        let Some(saving) = &mut self.saving else { return vec![] };
        match (stage, told) {
            (_, Told::Sign(progress)) => {
                if progress.done > saving.progress.done {
                    (saving.tries, saving.trouble) = (0, None);
                }
                saving.progress = progress;
                vec![]
            }
            (Stage::Prepare, Told::Done(progress)) => {
                saving.progress = progress;
                self.save(Stage::Copy, now)
            }
            (Stage::Copy, Told::Done(progress)) => {
                saving.progress = progress;
                self.save(Stage::Verify, now)
            }
            // What was left out would be lost with the machine.
            (Stage::Verify, Told::Verified(proof)) if proof.left_out > 0 && self.action != Action::Checkpoint => {
                let trouble = Trouble::NotQuiet { files: proof.left_out, first: String::new() };
                self.saving_failed(stage, trouble, now)
            }
            (Stage::Verify, Told::Verified(proof)) => {
                // When it was verified is what counts, and that is now by our clock.
                saving.proof = Some(Proof { at: now, ..proof });
                saving.trouble = None;
                self.saving_done(now)
            }
            // Only the last stage proves anything, and it proves it by saying what.
            (_, Told::Done(_) | Told::Verified(_)) => self.saving_failed(stage, Trouble::Garbled(String::new()), now),
            (_, Told::Failed(trouble)) => self.saving_failed(stage, trouble, now),
        }
    }

    /// The checkpoint is verified.
    fn saving_done(&mut self, now: Timestamp) -> Vec<Order> {
        if self.is_checkpoint() {
            return self.end(Outcome::Done { despite: None }, now);
        }
        if self.saving.as_ref().is_some_and(|saving| saving.lapsed) {
            return self.end(Outcome::NotSent(NotSent::TooLate), now);
        }
        self.check()
    }

    fn saving_failed(&mut self, stage: Stage, trouble: Trouble, now: Timestamp) -> Vec<Order> {
        let Some(saving) = &mut self.saving else { return vec![] };
        saving.tries += 1;
        if !trouble.may_pass() || saving.tries >= TRIES {
            return self.give_up_saving(Outcome::NotSaved(trouble), now);
        }
        // What changed is listed anew; what a connection cut short goes on where it was.
        let again = match trouble {
            Trouble::Changed { .. } | Trouble::NotQuiet { .. } | Trouble::Differs { .. } => Stage::Prepare,
            _ => stage,
        };
        let wait = (FIRST_RETRY * 2_i32.pow((saving.tries - 1).min(6))).min(LONGEST_RETRY);
        saving.trouble = Some(trouble);
        saving.noted_at = now;
        self.step = Step::Saving { stage: again, since: now, next_try: Some(now + wait) };
        vec![Order::StopSaving, Order::Record]
    }

    fn give_up_saving(&mut self, outcome: Outcome, now: Timestamp) -> Vec<Order> {
        let mut orders = vec![Order::StopSaving];
        orders.extend(self.end(outcome, now));
        orders
    }
}
