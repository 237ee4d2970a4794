//! Leases carried out: when their moment comes, what their instances are asked, and what is begun for them. Each step
//! is in the ledger before it is taken.

use jiff::{SignedDuration, Timestamp};
use providers::model::{Action, Identity, Phase, Refusal};

use super::world::{advance, begin};
use crate::app::effect::Effect;
use crate::app::message::{LeaseNote, Msg};
use crate::app::state::World;
use crate::rules::alerts::{Finding, Matter};
use crate::rules::lease::{Draft, End, Instead, Lease, LeaseId, Sight, Step, Told, Turn, What, Why};
use crate::rules::plan::{self, Hindrance, Plan, SaveFirst};
use crate::rules::saga::{Confirmed, Input, OpId, Outcome, Step as Stage, confirm};
use crate::rules::streams::{Target, Trouble};

/// What could not be done is tried again after this.
const TRY_AGAIN: SignedDuration = SignedDuration::from_mins(1);

/// Only who collects carries leases out, and a command has its own business.
fn acts(world: &World) -> bool {
    world.remembered && world.collects() && !world.one_shot
}

/// Running machines that a lease is to end by itself, each with whether it is to save and release it.
pub(super) fn promised(world: &World) -> impl Iterator<Item = (Identity, bool)> {
    let runs =
        |lease: &Lease| world.fleet.instances.get(&lease.identity).is_some_and(|known| known.phase() == Phase::Running);
    let ends = |lease: &Lease| lease.what != What::Start && !matches!(lease.step, Step::Asking { .. });
    let leases = world.leases.in_force().filter(move |lease| ends(lease) && runs(lease));
    leases.map(|lease| (lease.identity.clone(), lease.what == What::Release))
}

/// Somebody wants something to happen by itself.
pub(super) fn set(world: &mut World, draft: Draft, now: Timestamp) -> Vec<Effect> {
    let name = world.fleet.name_of(&draft.identity);
    let account = world.fleet.account(&draft.identity.account);
    let hindrance = match () {
        () if world.read_only => Some(Hindrance::ReadOnly),
        () if account.is_none_or(|account| account.read_only) => Some(Hindrance::ReadOnlyAccount),
        () if !world.remembered || !matches!(world.sight(&draft.identity), Sight::Here { .. } | Sight::Untold) => {
            Some(Hindrance::NotThere)
        }
        () => None,
    };
    if let Some(hindrance) = hindrance {
        world.news.push(Msg::LeftOut { name, action: draft.what.action(), hindrance });
        return Vec::new();
    }
    let id = LeaseId(world.next_op);
    world.next_op += 1;
    let lease = Lease::new(id, draft, name, world.by.clone(), now);
    let replaced: Vec<LeaseId> =
        world.leases.in_force().filter(|other| lease.takes_the_place_of(other)).map(|other| other.id).collect();
    let mut effects: Vec<Effect> = replaced.into_iter().flat_map(|old| end(world, old, End::Replaced, now)).collect();
    world.news.push(Msg::Lease { name: lease.name.clone(), what: lease.what, note: LeaseNote::Set });
    world.leases.fresh.insert(id);
    world.leases.by.insert(id, lease);
    effects.extend(keep(world, id));
    effects
}

/// Somebody takes leases away; what was begun for them is taken back, where it still can be.
pub(super) fn take_away(world: &mut World, ids: &[LeaseId], now: Timestamp) -> Vec<Effect> {
    ids.iter().flat_map(|id| end(world, *id, End::Cancelled, now)).collect()
}

fn end(world: &mut World, id: LeaseId, how: End, now: Timestamp) -> Vec<Effect> {
    let Some(lease) = world.leases.by.get_mut(&id).filter(|lease| !lease.is_ended()) else { return Vec::new() };
    let op = lease.op();
    lease.end(how, now);
    world.leases.taking.remove(&id);
    let mut effects = take_back(world, op, now);
    tell_end(world, id);
    effects.extend(keep(world, id));
    effects
}

fn take_back(world: &mut World, op: Option<OpId>, now: Timestamp) -> Vec<Effect> {
    op.map(|op| advance(world, op, Input::TakeBack, now)).unwrap_or_default()
}

/// How a lease ended, where nothing else says so.
fn tell_end(world: &mut World, id: LeaseId) {
    let Some(lease) = world.leases.by.get(&id) else { return };
    let Step::Ended { how, .. } = lease.step else { return };
    tracing::info!(identity = %lease.identity, what = lease.what.word(), ?how, "a lease has ended");
    if !matches!(how, End::Done | End::Replaced | End::TakenBack) {
        world.news.push(Msg::Lease { name: lease.name.clone(), what: lease.what, note: LeaseNote::Ended(how) });
    }
}

/// It is written down as it is now.
fn keep(world: &mut World, id: LeaseId) -> Option<Effect> {
    world.changed = true;
    let lease = world.leases.by.get(&id)?.clone();
    *world.leases.unkept.entry(id).or_default() += 1;
    Some(Effect::KeepLease(Box::new(lease)))
}

/// The ledger has written a lease, or has not.
pub(super) fn kept(world: &mut World, id: LeaseId, kept: Result<bool, String>, now: Timestamp) -> Vec<Effect> {
    let waiting = world.leases.unkept.get_mut(&id).map_or(0, |count| {
        *count -= 1;
        *count
    });
    if waiting > 0 {
        return Vec::new();
    }
    world.leases.unkept.remove(&id);
    let taking = world.leases.taking.remove(&id);
    match kept {
        Ok(true) => {
            world.leases.fresh.remove(&id);
            world.leases.unwritten.remove(&id);
            if world.leases.by.get(&id).is_none_or(Lease::is_ended) {
                world.leases.forget(id);
                return Vec::new();
            }
            match taking {
                Some(instead) if acts(world) => act(world, id, instead, now),
                _ => Vec::new(),
            }
        }
        Ok(false) => ended_elsewhere(world, id, now),
        Err(why) => {
            if world.leases.fresh.contains(&id)
                && let Some(lease) = world.leases.by.get(&id)
            {
                let note = LeaseNote::NotKept(why);
                world.news.push(Msg::Lease { name: lease.name.clone(), what: lease.what, note });
                world.leases.forget(id);
                return Vec::new();
            }
            if let (Some(_), Some(lease)) = (taking, world.leases.by.get_mut(&id)) {
                lease.later(now);
            }
            world.leases.unwritten.insert(id, now + TRY_AGAIN);
            world.leases.paused.insert(id, now + TRY_AGAIN);
            Vec::new()
        }
    }
}

/// Another process took it away.
fn ended_elsewhere(world: &mut World, id: LeaseId, now: Timestamp) -> Vec<Effect> {
    let op = world.leases.by.get(&id).and_then(Lease::op);
    world.leases.forget(id);
    world.changed = true;
    take_back(world, op, now)
}

/// What the ledger has in force: other processes may have made some, and taken some away.
pub(super) fn recalled(world: &mut World, recalled: Vec<Lease>, now: Timestamp) -> Vec<Effect> {
    let leases = &world.leases;
    let ours = |id: &LeaseId| leases.unkept.contains_key(id) || leases.unwritten.contains_key(id);
    let there = |id: &LeaseId| recalled.iter().any(|lease| lease.id == *id);
    let ended: Vec<LeaseId> = leases.by.keys().filter(|id| !ours(id) && !there(id)).copied().collect();
    for lease in recalled {
        world.leases.by.entry(lease.id).or_insert(lease);
    }
    ended.into_iter().flat_map(|id| ended_elsewhere(world, id, now)).collect()
}

/// Looks whether the moment of a lease has come, and asks the instances that tell.
pub(super) fn tick(world: &mut World, now: Timestamp) -> Vec<Effect> {
    let mut effects = Vec::new();
    let unwritten: Vec<LeaseId> =
        world.leases.unwritten.iter().filter(|(_, at)| **at <= now).map(|(id, _)| *id).collect();
    for id in unwritten {
        world.leases.unwritten.remove(&id);
        effects.extend(keep(world, id));
    }
    if !acts(world) {
        return effects;
    }
    for id in free(world, now) {
        let sight = world.leases.by.get(&id).map(|lease| world.sight(&lease.identity));
        let (Some(sight), Some(lease)) = (sight, world.leases.by.get_mut(&id)) else { continue };
        let turn = lease.turn(&sight, now);
        // What nothing can be done about just now wakes nobody again and again.
        if turn == Turn::Nothing && lease.next_wake().is_some_and(|at| at <= now) {
            world.leases.paused.insert(id, now + TRY_AGAIN);
        }
        effects.extend(apply(world, id, turn, now));
    }
    effects.extend(ask(world, now));
    effects
}

/// Leases about which something may be done now.
fn free(world: &World, now: Timestamp) -> Vec<LeaseId> {
    let leases = &world.leases;
    let is_free = |id: &LeaseId| {
        !leases.unkept.contains_key(id) && leases.paused.get(id).is_none_or(|at| *at <= now || *at > now + TRY_AGAIN)
    };
    leases.in_force().map(|lease| lease.id).filter(is_free).collect()
}

/// What was begun for leases may have ended.
pub(super) fn settle(world: &mut World, now: Timestamp) -> Vec<Effect> {
    let mut effects = Vec::new();
    if !acts(world) || world.leases.by.is_empty() {
        return effects;
    }
    for id in free(world, now) {
        let Some(op) = world.leases.by.get(&id).and_then(Lease::op) else { continue };
        let outcome = match world.operations.get(&op).map(|operation| &operation.step) {
            None => None,
            Some(Stage::Ended { outcome, .. }) => Some(outcome.clone()),
            Some(_) => continue,
        };
        let Some(lease) = world.leases.by.get(&id) else { continue };
        let sight = world.sight(&lease.identity);
        let Some(lease) = world.leases.by.get_mut(&id) else { continue };
        let turn = lease.acted(outcome.as_ref(), &sight, now);
        effects.extend(apply(world, id, turn, now));
    }
    effects
}

fn apply(world: &mut World, id: LeaseId, turn: Turn, now: Timestamp) -> Vec<Effect> {
    let mut effects = Vec::new();
    match turn {
        Turn::Nothing => return effects,
        Turn::Keep => {}
        Turn::Take => drop(world.leases.taking.insert(id, None)),
        Turn::Stop(instead) => drop(world.leases.taking.insert(id, Some(instead))),
        Turn::Save => effects.extend(save(world, id, now)),
    }
    world.alerting.looked_at = None;
    tell_end(world, id);
    effects.extend(keep(world, id));
    effects
}

/// Begins what a lease is for, or a stop in place of it. The lease is on disk.
fn act(world: &mut World, id: LeaseId, instead: Option<Instead>, now: Timestamp) -> Vec<Effect> {
    let Some(lease) = world.leases.by.get(&id).cloned() else { return Vec::new() };
    let (action, save) = match (&instead, lease.what) {
        (Some(_), _) => (Action::Stop, SaveFirst::Nothing),
        (None, What::Release) => (Action::Release, SaveFirst::ByConfig),
        (None, what) => (what.action(), SaveFirst::Nothing),
    };
    let plan = plan_of(world, &lease, action, &save, now);
    let hindrance = plan.left_out.first().map(|(_, _, hindrance)| hindrance.clone());
    let authority = match confirm(&plan, None) {
        Confirmed::Yes(authority) if hindrance.is_none() => authority,
        _ => return hindered(world, id, instead, hindrance, now),
    };
    let by = format!("lease of {}", lease.by);
    let mut effects = begin(world, plan, authority, &by, now);
    let op = world.operation_on(&lease.identity).map(|operation| operation.id);
    let (Some(op), Some(lease)) = (op, world.leases.by.get_mut(&id)) else { return effects };
    lease.begun(op, instead, now);
    effects.extend(keep(world, id));
    effects
}

fn plan_of(world: &World, lease: &Lease, action: Action, save: &SaveFirst, now: Timestamp) -> Plan {
    let busy = world.busy(action);
    plan::plan_with(world.basis(&busy, now), action, std::slice::from_ref(&lease.identity), save)
}

/// It cannot be begun: it waits, or is a stop instead, or somebody is asked. Without a hindrance it would lose data.
fn hindered(
    world: &mut World,
    id: LeaseId,
    instead: Option<Instead>,
    hindrance: Option<Hindrance>,
    now: Timestamp,
) -> Vec<Effect> {
    let Some(lease) = world.leases.by.get(&id) else { return Vec::new() };
    let (what, sight) = (lease.what, world.sight(&lease.identity));
    let Some(lease) = world.leases.by.get_mut(&id) else { return Vec::new() };
    let passes = matches!(hindrance, Some(Hindrance::UnderWay | Hindrance::NotThere | Hindrance::AccountInTrouble));
    let waits_for_another = hindrance == Some(Hindrance::UnderWay);
    if passes && (waits_for_another || !lease.is_tried_out()) {
        lease.later(now);
        world.leases.paused.insert(id, now + TRY_AGAIN);
        return keep(world, id).into_iter().collect();
    }
    let since = lease.since(now);
    let turn = match (instead, hindrance) {
        (None, Some(hindrance @ (Hindrance::NoRecipe | Hindrance::CannotBeRead | Hindrance::NoAddress))) => {
            return act(world, id, Some(Instead::NoCheckpoint(hindrance)), now);
        }
        (None, Some(Hindrance::Provider(Refusal::WrongPhase))) if is_so(what, &sight) => lease.end(End::AlreadySo, now),
        // Why it was to be a stop says more than why it is none.
        (Some(Instead::NoCheckpoint(hindrance)), _) => lease.ask(Why::Hindered(hindrance), since, &sight, now),
        (Some(Instead::NotSaved(trouble)), _) => {
            lease.ask(Why::NotDone(Outcome::NotSaved(trouble)), since, &sight, now)
        }
        (_, Some(hindrance)) => lease.ask(Why::Hindered(hindrance), since, &sight, now),
        (_, None) => lease.ask(Why::LosesData, since, &sight, now),
    };
    apply(world, id, turn, now)
}

/// It is where the lease was to bring it.
fn is_so(what: What, sight: &Sight) -> bool {
    let Sight::Here { phase, .. } = sight else { return false };
    match what {
        What::Stop => matches!(phase, Phase::Stopped | Phase::Reclaimed),
        What::Start => *phase == Phase::Running,
        What::Release => false,
    }
}

/// What can be brought to safety is, and nothing follows it.
fn save(world: &mut World, id: LeaseId, now: Timestamp) -> Vec<Effect> {
    let Some(lease) = world.leases.by.get(&id).cloned() else { return Vec::new() };
    let plan = plan_of(world, &lease, Action::Checkpoint, &SaveFirst::ByConfig, now);
    match confirm(&plan, None) {
        Confirmed::Yes(authority) if !plan.targets.is_empty() => {
            begin(world, plan, authority, &format!("lease of {}", lease.by), now)
        }
        _ => Vec::new(),
    }
}

/// Asks the instances of leases that wait for a job, or have a timer there.
fn ask(world: &mut World, now: Timestamp) -> Vec<Effect> {
    let mut effects = Vec::new();
    for id in askable(world) {
        let leases = &mut world.leases;
        let Some(lease) = leases.by.get(&id) else { continue };
        let watch = leases.watches.entry(id).or_default();
        // A clock that was set back is no reason to wait.
        let is_due = watch.due(lease).is_none_or(|at| at <= now || at > now + SignedDuration::from_mins(10));
        let Some(ask) = lease.ask_of(&leases.commands).filter(|_| is_due) else { continue };
        watch.asked(now);
        let row = world.fleet.instances.get(&lease.identity).map(|known| &known.row);
        let account = world.fleet.account(&lease.identity.account);
        match row.and_then(|row| row.ssh.as_ref()).zip(account) {
            Some((endpoint, account)) => {
                let target = Target::new(&account.provider, &lease.identity, endpoint);
                effects.push(Effect::LookForJob { lease: id, target, ask });
            }
            None => watch.told(&Told::Lost(Trouble::NoSuchHost), now),
        }
    }
    effects
}

/// Leases whose instance runs and can be asked something.
fn askable(world: &World) -> Vec<LeaseId> {
    let runs = |lease: &&Lease| {
        let known = world.fleet.instances.get(&lease.identity);
        known.is_some_and(|known| known.phase() == Phase::Running)
    };
    let asks = world.leases.in_force().filter(|lease| lease.ask_of(&world.leases.commands).is_some());
    asks.filter(runs).map(|lease| lease.id).collect()
}

/// What an instance told on behalf of a lease.
pub(super) fn told(world: &mut World, id: LeaseId, told: &Told, now: Timestamp) -> Vec<Effect> {
    if !acts(world) {
        return Vec::new();
    }
    let Some(sight) = world.leases.by.get(&id).map(|lease| world.sight(&lease.identity)) else { return Vec::new() };
    let watch = world.leases.watches.entry(id).or_default();
    let heard = watch.heard_at;
    watch.told(told, now);
    let turn = world.leases.by.get_mut(&id).map_or(Turn::Nothing, |lease| lease.told(told, heard, &sight, now));
    apply(world, id, turn, now)
}

/// What somebody is asked.
pub(super) fn findings(world: &World, now: Timestamp) -> impl Iterator<Item = Finding> {
    world.leases.in_force().filter_map(move |lease| {
        let (why, since, cost) = match &lease.step {
            Step::Asking { why, since, meter, .. } => (why.clone(), *since, meter.all(now)),
            Step::Waiting if lease.when.is_job() => {
                let (trouble, since) = world.leases.watches.get(&lease.id)?.is_blind(now)?;
                (Why::Blind(trouble), since, Vec::new())
            }
            _ => return None,
        };
        Some(Finding::now(Matter::Lease {
            lease: lease.id,
            identity: lease.identity.clone(),
            name: lease.name.clone(),
            what: lease.what,
            why,
            since,
            rates: world.fleet.rates_of(&lease.identity).unwrap_or_default(),
            cost,
        }))
    })
}

/// When a lease wants a tick.
pub(super) fn next_wake(world: &World, now: Timestamp) -> Option<Timestamp> {
    let leases = &world.leases;
    let unwritten = leases.unwritten.values().copied().min();
    if !acts(world) {
        return unwritten;
    }
    let turns = leases.in_force().filter(|lease| !leases.unkept.contains_key(&lease.id)).filter_map(|lease| {
        let at = lease.next_wake()?;
        Some(leases.paused.get(&lease.id).map_or(at, |paused| at.max(*paused)))
    });
    let looks = askable(world).into_iter().filter_map(|id| {
        let lease = leases.by.get(&id)?;
        Some(leases.watches.get(&id).and_then(|watch| watch.due(lease)).unwrap_or(now))
    });
    turns.chain(looks).chain(unwritten).min()
}

#[cfg(test)]
#[path = "leases_tests.rs"]
mod tests;
