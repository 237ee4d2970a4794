//! What the collector does about usage: looks go into gauges, gauges are judged, streams are opened and closed.

use std::ops::Bound;

use jiff::{SignedDuration, Timestamp};
use providers::model::{AccountName, Identity, Phase, Remark};
use providers::usage::{Usage, UsageSource};

use super::waste;
use crate::app::effect::Effect;
use crate::app::gauges::latest;
use crate::app::state::World;
use crate::rules::saga::Step;
use crate::rules::streams::{Consent, Link, Order, Told};
use crate::rules::usage::{
    Gauge, Idleness, Judged, UsageEntry, Verdict, WeeksPeak, idle_until, judge, minute_of, mismatch,
};

/// Slots are written down, and all gauges judged, so often.
const MINUTE: SignedDuration = SignedDuration::from_mins(1);
/// So many are judged between two frames.
const AT_ONCE: usize = 100;
/// The most of the week is asked for so often.
const PEAKS: SignedDuration = SignedDuration::from_hours(1);
/// So much of the past is asked for at start.
const DAY: SignedDuration = SignedDuration::from_hours(24);
/// And so much by a screen that looks on, each minute.
const LATELY: SignedDuration = SignedDuration::from_mins(10);
/// Figures of a time that is further ahead are of no time that can be told.
const AHEAD: SignedDuration = SignedDuration::from_mins(1);

/// Takes in which machines did not run when somebody last looked.
pub fn remembered(world: &mut World, now: Timestamp) {
    for known in world.fleet.instances.values().filter(|known| !known.is_gone() && known.row.phase != Phase::Running) {
        let gauge = world.gauges.by.entry(known.identity.clone()).or_default();
        gauge.saw(known.row.phase, now);
        if matches!(known.phase(), Phase::Unreachable | Phase::Unknown) {
            gauge.idleness.verdict = Verdict::Unknown;
        }
    }
}

/// Takes in what an account's list said of its machines, before what it says of their charges.
pub fn looked(world: &mut World, account: &AccountName, now: Timestamp) -> Vec<Effect> {
    let own = world.fleet.instances_of(account).filter(|known| known.last_seen == now);
    let seen: Vec<Identity> = own.map(|known| known.identity.clone()).collect();
    for identity in seen {
        let Some(known) = world.fleet.instances.get(&identity) else { continue };
        let phase = known.row.phase;
        let usage = known.row.usage.clone().filter(|_| phase == Phase::Running);
        world.gauges.by.entry(identity.clone()).or_default().saw(phase, now);
        match usage {
            Some(usage) => note(world, &identity, &usage, now),
            None => judge_one(world, &identity, now),
        }
    }
    waste::write_down(world, now)
}

/// Takes a look at a machine in.
fn note(world: &mut World, identity: &Identity, usage: &Usage, now: Timestamp) {
    let before = world.gauges.by.get(identity).and_then(|gauge| gauge.judged_at);
    if before.is_some_and(|at| is_over(at, MINUTE, now)) {
        // After a sleep, for instance: what was idle before it is known only as long as nothing new is.
        judge_one(world, identity, now);
    }
    if usage.as_of <= now + AHEAD {
        let gpus = world.fleet.instances.get(identity).and_then(|known| known.row.gpus.as_ref());
        let rented = gpus.map(|gpus| gpus.count);
        let copied_from = is_copied_from(world, identity, now);
        let gauge = world.gauges.by.entry(identity.clone()).or_default();
        gauge.copied_from = copied_from;
        gauge.history.forget_after(minute_of(now + AHEAD));
        gauge.note(usage, rented);
    }
    judge_one(world, identity, now);
}

/// Something is being brought to safety out of a machine, or was a moment ago: figures are of the time since the look
/// before.
fn is_copied_from(world: &World, identity: &Identity, now: Timestamp) -> bool {
    world.operations.values().filter(|operation| operation.target.identity == *identity).any(|operation| {
        match &operation.step {
            Step::Ended { at, .. } => operation.saving.is_some() && now.duration_since(*at) < MINUTE,
            _ => operation.is_saving(),
        }
    })
}

/// Whether a pause is over that began at a time, or the clock was set back since.
fn is_over(began: Timestamp, pause: SignedDuration, now: Timestamp) -> bool {
    now.duration_since(began) >= pause || began > now
}

/// Takes in what a stream told.
pub fn told(world: &mut World, identity: &Identity, number: u64, told: Told, now: Timestamp) -> Vec<Effect> {
    let works = world.streams.get(identity).is_some_and(|stream| matches!(stream.link, Link::Live { .. }));
    if world.streams.told(identity, number, &told, now) {
        ask_of(world, identity, &told);
        match told {
            Told::Usage(usage) => {
                note(world, identity, &usage, now);
                if works {
                    // Nothing else may begin by it: no need to go through the whole fleet each time.
                    return Vec::new();
                }
            }
            Told::Ended(_) => world.changed = true,
        }
    }
    streams_due(world, now)
}

/// What no API lists is known by its link: what that tells is asked for at once where the row says otherwise.
fn ask_of(world: &mut World, identity: &Identity, told: &Told) {
    let Some(known) = world.fleet.instances.get(identity) else { return };
    let told_otherwise = match told {
        Told::Usage(_) => known.phase() != Phase::Running,
        // Of one that goes down it may be the proof.
        Told::Ended(_) => matches!(known.phase(), Phase::Running | Phase::Stopping | Phase::Unknown),
    };
    if told_otherwise
        && known.row.remarks.contains(&Remark::NoApi)
        && let Some(account) = world.fleet.account_mut(&identity.account)
    {
        account.pacing.wanted = true;
    }
}

/// Somebody said whether an account's machines may be looked into.
pub fn consent(world: &mut World, account: &AccountName, consent: Consent, now: Timestamp) -> Vec<Effect> {
    world.streams.set_consent(account, consent);
    let mut effects = streams_due(world, now);
    if consent.lasts() {
        effects.extend(super::world::kept(world, account, Default::default()));
    }
    effects
}

/// Somebody looked into why a host has another key, and takes it for the instance.
pub fn accept_host_key(world: &mut World, identity: &Identity, now: Timestamp) -> Vec<Effect> {
    if !world.streams.accept_host_key(identity) {
        return Vec::new();
    }
    world.changed = true;
    streams_due(world, now)
}

/// Takes over what the ledger knew.
pub fn recalled(
    world: &mut World,
    entries: &[UsageEntry],
    rest: Option<Timestamp>,
    peaks: Option<Vec<WeeksPeak>>,
    now: Timestamp,
) -> Vec<Effect> {
    for UsageEntry { identity, slot, latest } in entries {
        let Some(known) = world.fleet.instances.get_mut(identity).filter(|known| !known.is_gone()) else { continue };
        let gauge = world.gauges.by.entry(known.identity.clone()).or_default();
        gauge.restore(slot);
        let Some(look) = latest else { continue };
        let newer = |before: Option<&Usage>| before.is_none_or(|before| before.as_of < look.as_of);
        match look.source {
            UsageSource::Ssh if newer(gauge.ssh.as_deref()) => gauge.ssh = Some(look.clone()),
            UsageSource::Provider if newer(known.row.usage.as_ref()) => known.row.usage = Some((**look).clone()),
            _ => {}
        }
    }
    if let Some(peaks) = peaks {
        world.gauges.peaks = peaks.into_iter().map(|peak| (peak.identity.clone(), peak)).collect();
    }
    world.gauges.recalling = rest.is_some();
    if rest.is_some() {
        return vec![Effect::RecallUsage { from: rest, peaks: false }];
    }
    world.gauges.round = Some(None);
    judge_some(world, now);
    Vec::new()
}

/// What is due by itself.
pub fn tick(world: &mut World, now: Timestamp) -> Vec<Effect> {
    let mut effects = streams_due(world, now);
    if !world.remembered {
        return effects;
    }
    let due = |last: Option<Timestamp>, pause| last.is_none_or(|at| is_over(at, pause, now));
    if due(world.gauges.judged_at, MINUTE) {
        world.gauges.judged_at = Some(now);
        world.gauges.round = Some(None);
    }
    judge_some(world, now);
    if due(world.gauges.kept_at, MINUTE) {
        let first = world.gauges.kept_at.is_none();
        world.gauges.kept_at = Some(now);
        let peaks = due(world.gauges.peaks_asked_at, PEAKS);
        if peaks {
            world.gauges.peaks_asked_at = Some(now);
        }
        match world.collects() {
            _ if first => effects.push(Effect::RecallUsage { from: Some(now - DAY), peaks }),
            true => {
                effects.extend(keep(world));
                if peaks {
                    effects.push(Effect::RecallUsage { from: None, peaks });
                }
            }
            false if !world.one_shot => effects.push(Effect::RecallUsage { from: Some(now - LATELY), peaks }),
            false => {}
        }
    }
    effects
}

/// Writes down what the ledger does not have yet.
pub fn keep(world: &mut World) -> Option<Effect> {
    if !world.collects() {
        return None;
    }
    let mut entries = Vec::new();
    for (identity, gauge) in &mut world.gauges.by {
        let slots = gauge.history.take_unkept().into_iter();
        entries.extend(slots.map(|slot| UsageEntry { identity: identity.clone(), slot, latest: None }));
        if let Some(last) = entries.last_mut().filter(|last| last.identity == *identity) {
            let told = world.fleet.instances.get(identity).and_then(|known| known.row.usage.as_ref());
            last.latest = latest(gauge.ssh.as_deref(), told).cloned().map(Box::new);
        }
    }
    (!entries.is_empty()).then_some(Effect::KeepUsage(entries))
}

/// Opens and closes streams. Only who collects has any: whoever takes that over looks into the machines then.
pub fn streams_due(world: &mut World, now: Timestamp) -> Vec<Effect> {
    let orders = if !world.streams_open() {
        world.streams.close_all()
    } else if world.remembered {
        world.streams.orders(&world.fleet, now)
    } else {
        Vec::new()
    };
    let effect = |order| match order {
        Order::Open { identity, number, target, pace, new_key } => {
            Effect::OpenStream { identity, number, target, pace, new_key }
        }
        Order::Close { identity } => Effect::CloseStream { identity },
    };
    orders.into_iter().map(effect).collect()
}

/// Goes on with the round through all gauges, and judges some of those that are due: no frame waits for thousands.
fn judge_some(world: &mut World, now: Timestamp) {
    let Some(after) = world.gauges.round.take() else { return };
    let after = after.map_or(Bound::Unbounded, Bound::Excluded);
    let is_due = |gauge: &Gauge| gauge.has_learnt() || gauge.judged_at.is_none_or(|at| is_over(at, MINUTE, now));
    let due = world.gauges.by.range((after, Bound::Unbounded)).filter(|(_, gauge)| is_due(gauge));
    let at_once = if world.one_shot { usize::MAX } else { AT_ONCE };
    let due: Vec<Identity> = due.take(at_once).map(|(identity, _)| identity.clone()).collect();
    for identity in &due {
        judge_one(world, identity, now);
    }
    world.gauges.round = due.into_iter().nth(at_once.saturating_sub(1)).map(Some);
}

/// When the rest of the gauges is judged; `None` when none waits.
pub fn next_wake(world: &World, now: Timestamp) -> Option<Timestamp> {
    world.gauges.round.as_ref().map(|_| now)
}

fn judge_one(world: &mut World, identity: &Identity, now: Timestamp) {
    // What is not read yet may be the work in it.
    if world.gauges.recalling {
        return;
    }
    let Some(known) = world.fleet.instances.get(identity) else { return };
    let Some(account) = world.fleet.account(&identity.account) else { return };
    let rule = world.settings.idle_rule(&account.provider, identity, &known.row);
    let latest = world.usage(known);
    let mismatch = latest.and_then(|usage| mismatch(known.row.gpus.as_ref(), usage));
    let Some(gauge) = world.gauges.by.get(identity) else { return };
    let started = known.row.started_at;
    let judged = Judged {
        history: &gauge.history,
        latest,
        runs: match known.phase() {
            Phase::Running => Some(true),
            Phase::Unknown | Phase::Unreachable => None,
            _ => Some(false),
        },
        rented: known.row.gpus.as_ref(),
        running_since: gauge.running_since(started.map(|at| world.fleet.here(&identity.account, at))),
        mismatch: mismatch.as_ref(),
        partitioned: gauge.ssh.as_deref().is_some_and(|own| own.gpus.iter().any(|gpu| gpu.partitioned)),
        peak: world.gauges.peaks.get(identity),
        before: gauge.before(rule, now),
    };
    let idleness = match known.phase() {
        // Whether it runs nobody knows, and the less whether it works.
        Phase::Unreachable | Phase::Unknown => Idleness { verdict: Verdict::Unknown, ..Idleness::default() },
        _ => judge(&judged, rule, now),
    };
    let marked = world.spending.meter.idle_since(identity).filter(|_| !idleness.wastes());
    let marked = marked.map(|since| world.fleet.here(&identity.account, since));
    let until = marked.map(|since| idle_until(&gauge.history, rule, since, now));
    let idleness = waste::follow(world, identity, idleness, until);
    let Some(gauge) = world.gauges.by.get_mut(identity) else { return };
    world.changed |= idleness.verdict != gauge.idleness.verdict;
    gauge.judged(idleness, now);
}
