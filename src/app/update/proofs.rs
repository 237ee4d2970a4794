//! Whether what is promised could be done: for each machine on which something happens by itself it is found out at the
//! start and every hour.

use jiff::{SignedDuration, Timestamp};
use providers::model::{Action, Identity};

use super::findings::{is_heard, name_of};
use super::{guards, leases};
use crate::app::effect::Effect;
use crate::app::guarding::Proving;
use crate::app::state::World;
use crate::rules::alerts::{Finding, Matter};
use crate::rules::checkpoint::Method;
use crate::rules::fleet::Trouble;
use crate::rules::guard::{Trial, Unable};
use crate::rules::plan::{Hindrance, SaveFirst, plan_with};
use crate::rules::streams;

/// How often it is found out.
const EVERY: SignedDuration = SignedDuration::from_hours(1);
/// And how often where it could not be done.
const AGAIN: SignedDuration = SignedDuration::from_mins(5);
/// An answer that has not come after this never comes.
const LONGEST: SignedDuration = SignedDuration::from_mins(3);
/// So many at a time.
const AT_ONCE: usize = 4;

/// Begins what is due.
pub(super) fn begin_due(world: &mut World, now: Timestamp) -> Vec<Effect> {
    if world.one_shot {
        return Vec::new();
    }
    let mut promised = guards::promised(world);
    for (identity, saves) in leases::promised(world) {
        *promised.entry(identity).or_default() |= saves;
    }
    prove(world, promised.into_iter().collect(), now)
}

/// Finds out for these machines, where it is due, whether what is promised could be done; each with whether it is to be
/// saved and released. Of all others nothing is promised.
fn prove(world: &mut World, promised: Vec<(Identity, bool)>, now: Timestamp) -> Vec<Effect> {
    let is_promised = |identity: &Identity| promised.iter().any(|(one, _)| one == identity);
    world.guarding.proofs.retain(|identity, _| is_promised(identity));
    let waits = |proving: &Proving| !proving.answered && now.duration_since(proving.asked_at) < LONGEST;
    let mut room = AT_ONCE.saturating_sub(world.guarding.proofs.values().filter(|proving| waits(proving)).count());
    let mut effects = Vec::new();
    for (identity, saves) in promised {
        let before = world.guarding.proofs.get(&identity);
        let is_due = before.is_none_or(|proving| {
            let every = match (proving.answered, &proving.unable) {
                (false, _) => LONGEST,
                (true, Some(_)) => AGAIN,
                (true, None) => EVERY,
            };
            !(SignedDuration::ZERO..every).contains(&now.duration_since(proving.asked_at))
        });
        if !is_due || room == 0 {
            continue;
        }
        let unable = before.and_then(|proving| proving.unable.clone());
        let (answered, unable) = match trial(world, &identity, saves, now) {
            Some(Ok(trial)) => {
                room -= 1;
                effects.push(Effect::Prove(Box::new(trial)));
                (false, unable)
            }
            Some(Err(unable)) => (true, Some(unable)),
            None => continue,
        };
        world.guarding.proofs.insert(identity, Proving { asked_at: now, answered, unable });
    }
    effects
}

/// What is to be tried out for one machine, or what is in the way already; `None` while that cannot be told.
fn trial(world: &World, identity: &Identity, saves: bool, now: Timestamp) -> Option<Result<Trial, Unable>> {
    let account = world.fleet.account(&identity.account)?;
    if let Some(Trouble::Key(said)) = account.trouble.as_ref().map(|trouble| &trouble.value) {
        return Some(Err(Unable::Key(said.clone())));
    }
    let mut trial =
        Trial { identity: identity.clone(), key: !is_heard(world, account, now), target: None, folder: None };
    if !saves {
        return Some(Ok(trial));
    }
    // What is under way on it now says nothing of later.
    let pointed = std::slice::from_ref(identity);
    let plan = plan_with(world.basis(&[], now), Action::Release, pointed, &SaveFirst::ByConfig);
    let Some(recipe) = plan.targets.first().and_then(|target| target.recipe.as_ref()) else {
        let (_, _, why) = plan.left_out.into_iter().next()?;
        let lasts = !matches!(why, Hindrance::NotThere | Hindrance::CannotBeRead | Hindrance::AccountInTrouble);
        return lasts.then_some(Err(Unable::Plan(why)));
    };
    let endpoint = world.fleet.instances.get(identity)?.row.ssh.as_ref()?;
    trial.target = Some(streams::Target::new(&account.provider, identity, endpoint));
    if let Method::Copy { to } = &recipe.method {
        // As much as the last time, at the least.
        let bytes = world.saved.get(identity).map_or(0, |saved| saved.proof.bytes);
        trial.folder = Some((to.clone(), bytes));
    }
    Some(Ok(trial))
}

/// Takes an answer in.
pub(super) fn answered(world: &mut World, identity: &Identity, unable: Option<Unable>) {
    if let Some(proving) = world.guarding.proofs.get_mut(identity) {
        world.alerting.looked_at = world.alerting.looked_at.filter(|_| proving.unable == unable);
        (proving.answered, proving.unable) = (true, unable);
    }
}

/// What could not be done if it had to be done now.
pub(super) fn findings(world: &World) -> impl Iterator<Item = Finding> {
    world.guarding.proofs.iter().filter_map(|(identity, proving)| {
        let (why, known) = (proving.unable.clone()?, world.fleet.instances.get(identity)?);
        Some(Finding::now(Matter::Unable { identity: identity.clone(), name: name_of(known), why }))
    })
}
