//! Copies that are made regularly and by themselves, which of the older ones make room, and those that are no longer
//! where they were made.

use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::{SignedDuration, Timestamp};
use providers::model::{Action, Identity, Instance, Phase};

use super::findings::{is_heard, is_told, name_of};
use super::world::launch;
use crate::app::effect::Effect;
use crate::app::guarding::FailedCopy;
use crate::app::state::World;
use crate::rules::alerts::{Finding, Matter};
use crate::rules::checkpoint::{RecipeRule, Saved, place_of, surplus};
use crate::rules::fleet::Known;
use crate::rules::plan::{SaveFirst, plan_bulk, recipe_for};
use crate::rules::saga::{Confirmed, OpId, Operation, Outcome, Step, confirm};

/// Who makes them, in the record of actions.
const BY: &str = "schedule";
/// So many are made at a time.
const AT_ONCE: usize = 2;
/// After a try that came to nothing; each next one doubles it.
const FIRST_RETRY: SignedDuration = SignedDuration::from_mins(5);
const LONGEST_RETRY: SignedDuration = SignedDuration::from_hours(1);
/// So many turns late, a copy is worth an alert.
const LATE: i32 = 2;
/// Copies of one turn are spread over this part of it, so that not all begin at one moment.
const SPREAD: i32 = 10;

/// Begins the copies that are due, the longest due first.
pub(super) fn begin_due(world: &mut World, now: Timestamp) -> Vec<Effect> {
    if world.one_shot || world.recipes.iter().all(|rule| rule.every.is_none()) {
        return Vec::new();
    }
    let World { copying, fleet, .. } = &mut *world;
    copying.failed.retain(|identity, _| fleet.instances.get(identity).is_some_and(|known| !known.is_gone()));
    let under_way = world.under_way().filter(|operation| is_scheduled(operation)).count();
    let mut due: Vec<(Timestamp, Identity)> = copied(world, now)
        .filter(|(known, _)| world.operation_on(&known.identity).is_none())
        .map(|(known, every)| (due_at(world, known, every), known.identity.clone()))
        .filter(|(at, _)| *at <= now)
        .collect();
    due.sort();
    let mut effects = Vec::new();
    let mut room = AT_ONCE.saturating_sub(under_way);
    for (_, identity) in due {
        if room == 0 {
            break;
        }
        match begin(world, &identity, now) {
            Some(begun) => {
                effects.extend(begun);
                room -= 1;
            }
            None => failed(world, &identity, None, now),
        }
    }
    effects
}

/// Running instances that are copied regularly, as far as they are told, each with how often.
fn copied(world: &World, now: Timestamp) -> impl Iterator<Item = (&Known<Instance>, SignedDuration)> {
    world.fleet.instances.values().filter_map(move |known| {
        let account = world.fleet.account(&known.identity.account)?;
        let is_there = known.phase() == Phase::Running && is_heard(world, account, now) && is_told(known, account);
        let every = rule_of(world, &known.identity, now).filter(|_| is_there)?.every?;
        Some((known, every))
    })
}

fn rule_of<'a>(world: &'a World, identity: &Identity, now: Timestamp) -> Option<&'a RecipeRule> {
    let account = world.fleet.account(&identity.account)?;
    recipe_for(world.basis(&[], now), &account.provider, identity)
}

/// When a machine is to be copied next.
fn due_at(world: &World, known: &Known<Instance>, every: SignedDuration) -> Timestamp {
    let spread = (every / SPREAD).as_millis().max(1).unsigned_abs();
    let mut hasher = DefaultHasher::new();
    known.identity.hash(&mut hasher);
    let own = i64::try_from(u128::from(hasher.finish()) % spread).unwrap_or_default();
    let regular = since(world, known) + every + SignedDuration::from_millis(own);
    match world.copying.failed.get(&known.identity) {
        None => regular,
        Some(failed) => {
            let wait = FIRST_RETRY * 2_i32.pow(failed.times.saturating_sub(1).min(6));
            regular.max(failed.at + wait.min(LONGEST_RETRY))
        }
    }
}

/// From when on the next copy is counted.
fn since(world: &World, known: &Known<Instance>) -> Timestamp {
    world.saved.get(&known.identity).map_or(known.first_seen, |saved| saved.proof.at)
}

/// `None` when it cannot be begun.
fn begin(world: &mut World, identity: &Identity, now: Timestamp) -> Option<Vec<Effect>> {
    let pointed = std::slice::from_ref(identity);
    let plan = plan_bulk(world.basis(&[], now), Action::Checkpoint, pointed, &SaveFirst::ByConfig);
    let Confirmed::Yes(authority) = confirm(&plan, None) else { return None };
    let target = plan.targets.into_iter().next()?;
    Some(launch(world, Action::Checkpoint, target, authority, BY.to_owned(), now).1)
}

/// It was begun by itself: nobody waits to hear how it went.
pub(super) fn is_scheduled(operation: &Operation) -> bool {
    operation.is_checkpoint() && operation.by == BY
}

fn failed(world: &mut World, identity: &Identity, outcome: Option<&Outcome>, now: Timestamp) {
    let times = world.copying.failed.get(identity).map_or(0, |failed| failed.times) + 1;
    let why = match outcome {
        Some(Outcome::NotSaved(trouble)) => Some(trouble.clone()),
        _ => None,
    };
    world.copying.failed.insert(identity.clone(), FailedCopy { at: now, times, why });
}

/// Takes in how a mere checkpoint ended, whoever wanted it.
pub(super) fn ended(world: &mut World, operation: &Operation, now: Timestamp) -> Vec<Effect> {
    let identity = &operation.target.identity;
    match &operation.step {
        Step::Ended { outcome: Outcome::Done { .. }, .. } => {
            world.copying.failed.remove(identity);
            vec![Effect::RecallCopies(identity.clone())]
        }
        Step::Ended { outcome, .. } if is_scheduled(operation) => {
            failed(world, identity, Some(outcome), now);
            Vec::new()
        }
        _ => Vec::new(),
    }
}

/// The last copy of each machine, as the ledger has it, may be gone meanwhile.
pub(super) fn remembered(world: &World) -> Option<Effect> {
    let on_disk: Vec<Saved> = world.saved.values().filter(|saved| place_of(saved).is_some()).cloned().collect();
    (!on_disk.is_empty() && world.collects() && !world.one_shot).then_some(Effect::LookForCopies(on_disk))
}

/// Copies are not where they were made.
pub(super) fn missed(world: &mut World, gone: &[OpId], out_of_reach: &[OpId]) -> Vec<Effect> {
    let mut effects = Vec::new();
    world.saved.retain(|identity, saved| {
        if gone.contains(&saved.op) {
            effects.push(Effect::NoteGone(saved.op));
            // The one before it may be there.
            effects.push(Effect::RecallCopies(identity.clone()));
            return false;
        }
        !out_of_reach.contains(&saved.op)
    });
    world.changed = true;
    effects
}

/// Takes in which copies of a machine there are: of the last one it is looked whether it is there, and what makes room
/// goes.
pub(super) fn recalled(world: &mut World, identity: Identity, copies: Vec<Saved>, now: Timestamp) -> Vec<Effect> {
    let mut effects = Vec::new();
    if let (None, Some(last)) = (world.saved.get(&identity), copies.first()) {
        world.saved.insert(identity, last.clone());
        world.changed = true;
        if place_of(last).is_some() {
            effects.push(Effect::LookForCopies(vec![last.clone()]));
        }
        // What is there is not known yet.
        return effects;
    }
    let Some(rule) = rule_of(world, &identity, now).filter(|_| world.collects()) else { return effects };
    let last = world.saved.get(&identity).map(|saved| saved.op);
    let going = surplus(&copies, rule.keep, &world.spending.zone).into_iter();
    let going: Vec<Saved> = going.filter(|copy| Some(copy.op) != last).cloned().collect();
    if !going.is_empty() {
        effects.push(Effect::Discard(going));
    }
    effects
}

/// Machines that are copied regularly, and were not for long.
pub(super) fn findings(world: &World, now: Timestamp) -> Vec<Finding> {
    if world.recipes.iter().all(|rule| rule.every.is_none()) {
        return Vec::new();
    }
    let late = copied(world, now).filter(|(known, every)| now.duration_since(since(world, known)) > *every * LATE);
    let finding = |(known, _): (&Known<Instance>, SignedDuration)| {
        let identity = &known.identity;
        Finding::now(Matter::CopyLate {
            identity: identity.clone(),
            name: name_of(known),
            copied_at: world.saved.get(identity).map(|saved| saved.proof.at),
            why: world.copying.failed.get(identity).and_then(|failed| failed.why.clone()),
        })
    };
    late.map(finding).collect()
}

#[cfg(test)]
#[path = "copies_tests.rs"]
mod tests;
