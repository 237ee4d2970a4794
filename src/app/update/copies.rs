//! Copies on a schedule: the checkpoints that the config wants made now and then, without anybody asking for them and
//! without a word as long as they come to something.

use jiff::{SignedDuration, Timestamp};
use providers::model::{Action, Identity, Instance, Phase};

use super::findings::{is_heard, is_told};
use super::world;
use crate::app::effect::Effect;
use crate::app::state::World;
use crate::rules::checkpoint::{Method, RecipeRule, Saved, Trouble};
use crate::rules::fleet::{Account, Known};
use crate::rules::plan::{self, SaveFirst};
use crate::rules::saga::{Authority, NotSent, OpId, Operation, Outcome, Step};
use crate::rules::schedule;

/// Who makes them, in the record of actions.
pub const BY: &str = "schedule";
/// How often it is looked whether one is due.
const LOOK: SignedDuration = SignedDuration::from_secs(10);
/// So many are made at a time over the whole fleet: a disk and a line here serve them all.
const AT_ONCE: usize = 2;
/// After one that failed, doubled with each that fails after it.
const FIRST_RETRY: SignedDuration = SignedDuration::from_mins(2);
const LONGEST_RETRY: SignedDuration = SignedDuration::from_hours(1);
/// A clock that goes back by less was only put right.
const CLOCK_STEP: SignedDuration = SignedDuration::from_mins(1);

/// Begins those that are due.
pub(super) fn tick(world: &mut World, now: Timestamp) -> Vec<Effect> {
    if !is_ours(world) || world.recipes.iter().all(|rule| rule.every.is_none()) {
        return Vec::new();
    }
    let age = world.copies_looked_at.map(|at| now.duration_since(at));
    if age.is_some_and(|age| (SignedDuration::ZERO..LOOK).contains(&age)) {
        return Vec::new();
    }
    world.copies_looked_at = Some(now);
    let under_way = world.under_way().filter(|operation| is_scheduled(operation)).count();
    let mut free = AT_ONCE.saturating_sub(under_way);
    if free == 0 {
        return Vec::new();
    }
    let mut due: Vec<(Timestamp, Identity)> = world
        .fleet
        .instances
        .values()
        .filter_map(|known| Some((due_at(world, known, now)?, known.identity.clone())))
        .filter(|(at, _)| *at <= now)
        .collect();
    due.sort_unstable();
    let mut effects = Vec::new();
    for (_, identity) in due {
        if free == 0 {
            break;
        }
        let plan = plan::plan_with(world.basis(&[], now), Action::Checkpoint, &[identity], &SaveFirst::ByConfig);
        for target in plan.targets {
            free -= 1;
            effects.extend(world::launch(world, plan.action, target, Authority::Saved, BY.to_owned(), now).1);
        }
    }
    effects
}

/// Made by itself, without anybody asking for it.
pub fn is_scheduled(operation: &Operation) -> bool {
    operation.is_checkpoint() && operation.by == BY
}

fn is_ours(world: &World) -> bool {
    world.collects() && world.remembered && !world.one_shot && !world.read_only
}

/// What the config wants made of an instance now and then, with how often; `None` where it wants nothing of it.
pub fn wanted<'w>(world: &'w World, account: &Account, known: &Known<Instance>, now: Timestamp) -> Option<Wanted<'w>> {
    let rule = plan::recipe_for(world.basis(&[], now), &account.provider, &known.identity)?;
    let mine = world.settings.mine(&account.provider, &known.identity, &known.row);
    Some(Wanted { rule, every: rule.every? }).filter(|_| mine)
}

/// A recipe that is followed on a schedule.
#[derive(Clone, Copy)]
pub struct Wanted<'w> {
    pub rule: &'w RecipeRule,
    pub every: SignedDuration,
}

/// When the next one of an instance is due; `None` where none can be made now, or something else is done to it.
fn due_at(world: &World, known: &Known<Instance>, now: Timestamp) -> Option<Timestamp> {
    let (identity, row) = (&known.identity, &known.row);
    let account = world.fleet.account(&identity.account)?;
    let can_be_made = row.phase == Phase::Running
        && row.ssh.as_ref().is_some_and(|endpoint| endpoint.direct)
        && is_told(known, account)
        && is_heard(world, account, now)
        && world.operation_on(identity).is_none()
        // Another host key is for a person to look into.
        && world.streams.alarm(identity).is_none();
    if !can_be_made {
        return None;
    }
    let Wanted { rule, every } = wanted(world, account, known, now)?;
    let spread = |at: Timestamp| at + schedule::spread(every, identity.id.as_str(), at);
    let is_of_it = |saved: &&Saved| saved.recipe.name == rule.recipe.name && saved.recipe.paths == rule.recipe.paths;
    let copied = world.saved.get(identity).filter(is_of_it).map(|saved| saved.proof.at);
    // Nothing of a machine that has just come up is worth a copy yet.
    let first = copied.unwrap_or_else(|| runs_since(world, known));
    let tried = Tries::of(world, identity);
    let again = tried.last.map(|at| if tried.failures == 0 { spread(at) } else { at + back_off(tried.failures) });
    // What lies ahead of the clock was before it was set back, nobody knows how long ago.
    let is_past = |at: Timestamp| at <= now + CLOCK_STEP;
    let times = [is_past(first).then(|| spread(first)), tried.last.filter(|at| is_past(*at)).and(again)];
    Some(times.into_iter().flatten().max().unwrap_or(Timestamp::MIN))
}

/// Since when an instance runs, by its provider or as far as it is known here.
pub fn runs_since(world: &World, known: &Known<Instance>) -> Timestamp {
    let told = known.row.started_at.or(known.row.created_at);
    told.map_or(known.first_seen, |at| world.fleet.here(&known.identity.account, at))
}

fn back_off(failures: u32) -> SignedDuration {
    (FIRST_RETRY * 2_i32.pow(failures.saturating_sub(1).min(5))).min(LONGEST_RETRY)
}

/// What came of the latest tries of an instance that proved nothing.
#[derive(Default)]
pub struct Tries {
    /// Since the last one that did not fail.
    failures: u32,
    /// When the last one ended.
    last: Option<Timestamp>,
    /// What was wrong with it.
    pub trouble: Option<Trouble>,
}

impl Tries {
    pub fn of(world: &World, identity: &Identity) -> Self {
        let mut tries = Tries::default();
        let of_it = |operation: &&Operation| is_scheduled(operation) && operation.target.identity == *identity;
        for operation in world.operations.values().filter(of_it) {
            let Step::Ended { at, outcome } = &operation.step else { continue };
            let trouble = match outcome {
                // What was proven tells its time itself.
                Outcome::Done { .. } => {
                    tries = Tries::default();
                    continue;
                }
                // A person wants none now, or wants something else done: that is no failure.
                Outcome::NotSent(NotSent::TakenBack) => {
                    tries = Tries { last: Some(*at), ..Tries::default() };
                    continue;
                }
                Outcome::NotSaved(trouble) => Some(trouble.clone()),
                _ => None,
            };
            tries = Tries { failures: tries.failures + 1, last: Some(*at), trouble };
        }
        tries
    }
}

/// One of them ended: those of the same instance before it have no more to tell, once it is proven.
pub(super) fn ended(world: &mut World, op: OpId) {
    let Some(operation) = world.operations.get(&op).filter(|operation| is_scheduled(operation)) else { return };
    if matches!(operation.step, Step::Ended { outcome: Outcome::Done { .. }, .. }) {
        let identity = operation.target.identity.clone();
        forget_before(world, op, &identity);
    }
}

/// The same for all that the ledger told.
pub(super) fn remembered(world: &mut World) {
    let scheduled = world.operations.values().filter(|operation| is_scheduled(operation) && operation.is_ended());
    scheduled.map(|operation| operation.id).collect::<Vec<_>>().into_iter().for_each(|op| ended(world, op));
}

fn forget_before(world: &mut World, op: OpId, identity: &Identity) {
    world.operations.retain(|id, earlier| {
        *id >= op || !is_scheduled(earlier) || earlier.target.identity != *identity || !earlier.is_ended()
    });
}

/// A checkpoint was verified: earlier copies of a schedule make room for it.
pub(super) fn thin(world: &World, saved: &Saved, now: Timestamp) -> Option<Effect> {
    let account = world.fleet.account(&saved.identity.account)?;
    let rule = plan::recipe_for(world.basis(&[], now), &account.provider, &saved.identity)?;
    let is_kept_here = matches!(saved.recipe.method, Method::Copy { .. });
    let of_it = rule.every.is_some() && is_kept_here && rule.recipe.name == saved.recipe.name;
    (of_it && is_ours(world)).then(|| Effect::Thin {
        identity: saved.identity.clone(),
        recipe: rule.recipe.name.clone(),
        keep: rule.keep,
        zone: world.spending.zone.clone(),
    })
}

/// Whether the last copies are still where they were: asked when the ledger has told of them.
pub(super) fn look_for(world: &World) -> Option<Effect> {
    let last: Vec<Saved> = world.saved.values().cloned().collect();
    (is_ours(world) && !last.is_empty()).then_some(Effect::LookForCopies(last))
}

/// One of them is not there: what is shown is the last that is, if any.
pub(super) fn missing(world: &mut World, identity: &Identity, op: OpId, earlier: Option<Saved>) {
    // A later one may have been made meanwhile.
    if world.saved.get(identity).is_some_and(|saved| saved.op == op) {
        world.saved.remove(identity);
        world.saved.extend(earlier.map(|saved| (identity.clone(), saved)));
    }
}

#[cfg(test)]
#[path = "copies_tests.rs"]
mod tests;
