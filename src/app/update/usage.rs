//! What the collector does about usage: looks go into gauges, gauges are judged, streams are opened and closed.

use jiff::{SignedDuration, Timestamp};
use providers::model::{AccountName, Identity, Phase, Remark};

use crate::app::effect::Effect;
use crate::app::state::World;
use crate::rules::streams::{Consent, Order, Told};
use crate::rules::usage::{Judged, UsageEntry, WeeksPeak, judge, mismatch};

/// Slots are written down, and all gauges judged, so often.
const MINUTE: SignedDuration = SignedDuration::from_mins(1);
/// The most of the week is asked for so often.
const PEAKS: SignedDuration = SignedDuration::from_hours(1);
/// So much of the past is asked for at start.
const DAY: SignedDuration = SignedDuration::from_hours(24);
/// And so much by a screen that looks on, each minute.
const LATELY: SignedDuration = SignedDuration::from_mins(10);

/// Takes in what an account's list said of its machines.
pub fn looked(world: &mut World, account: &AccountName, now: Timestamp) {
    let World { fleet, gauges, .. } = world;
    let mut seen = Vec::new();
    for known in fleet.instances_of(account).filter(|known| known.last_seen == now) {
        let gauge = gauges.by.entry(known.identity.clone()).or_default();
        if let Some(usage) = known.row.usage.as_ref().filter(|_| known.row.phase == Phase::Running) {
            gauge.note(usage, known.row.gpus.as_ref().map_or(1, |gpus| gpus.count));
        }
        seen.push(known.identity.clone());
    }
    for identity in seen {
        judge_one(world, &identity, now);
    }
}

/// Takes in what a stream told.
pub fn told(world: &mut World, identity: &Identity, number: u64, told: Told, now: Timestamp) -> Vec<Effect> {
    if world.streams.told(identity, number, &told, now) {
        ask_of(world, identity, &told);
        match told {
            Told::Usage(usage) => {
                let gpus = world.fleet.instances.get(identity).and_then(|known| known.row.gpus.as_ref());
                let rented = gpus.map_or(1, |gpus| gpus.count);
                world.gauges.by.entry(identity.clone()).or_default().note(&usage, rented);
                judge_one(world, identity, now);
            }
            Told::Ended(_) => world.changed = true,
        }
    }
    streams_due(world, now)
}

/// What no API lists is known by its link: what that tells is asked for at once where the row says otherwise.
fn ask_of(world: &mut World, identity: &Identity, told: &Told) {
    let Some(known) = world.fleet.instances.get(identity) else { return };
    let told_otherwise = matches!(told, Told::Usage(_)) != (known.phase() == Phase::Running);
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
    let Some(target) = world.streams.accept_host_key(identity) else { return Vec::new() };
    let mut effects = vec![Effect::ForgetHostKey { alias: target.alias }];
    effects.extend(streams_due(world, now));
    effects
}

/// Takes over what the ledger knew.
pub fn recalled(world: &mut World, entries: &[UsageEntry], peaks: Option<Vec<WeeksPeak>>, now: Timestamp) {
    for UsageEntry { identity, slot } in entries {
        let known = world.fleet.instances.get(identity).filter(|known| !known.is_gone());
        if known.is_some() {
            world.gauges.by.entry(identity.clone()).or_default().history.restore(slot);
        }
    }
    if let Some(peaks) = peaks {
        world.gauges.peaks = peaks.into_iter().map(|peak| (peak.identity.clone(), peak)).collect();
    }
    judge_all(world, now);
}

/// What is due by itself.
pub fn tick(world: &mut World, now: Timestamp) -> Vec<Effect> {
    if !world.remembered {
        return Vec::new();
    }
    let due = |last: Option<Timestamp>, pause| last.is_none_or(|at| now.duration_since(at) >= pause || at > now);
    let mut effects = Vec::new();
    if due(world.gauges.judged_at, MINUTE) {
        world.gauges.judged_at = Some(now);
        judge_all(world, now);
    }
    if due(world.gauges.kept_at, MINUTE) {
        let first = world.gauges.kept_at.is_none();
        world.gauges.kept_at = Some(now);
        let peaks = due(world.gauges.peaks_asked_at, PEAKS);
        if peaks {
            world.gauges.peaks_asked_at = Some(now);
        }
        match world.collects() {
            _ if first => effects.push(Effect::RecallUsage { from: now - DAY, peaks }),
            true => {
                effects.extend(keep(world));
                if peaks {
                    effects.push(Effect::RecallUsage { from: now, peaks });
                }
            }
            false if !world.one_shot => effects.push(Effect::RecallUsage { from: now - LATELY, peaks }),
            false => {}
        }
    }
    effects.extend(streams_due(world, now));
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
        entries.extend(slots.map(|slot| UsageEntry { identity: identity.clone(), slot }));
    }
    (!entries.is_empty()).then_some(Effect::KeepUsage(entries))
}

/// Opens and closes streams. Only who collects has any.
pub fn streams_due(world: &mut World, now: Timestamp) -> Vec<Effect> {
    if !world.remembered || !world.streams_open() {
        return Vec::new();
    }
    let orders = world.streams.orders(&world.fleet, now);
    orders
        .into_iter()
        .map(|order| match order {
            Order::Open { identity, number, target, pace } => Effect::OpenStream { identity, number, target, pace },
            Order::Close { identity } => Effect::CloseStream { identity },
        })
        .collect()
}

fn judge_all(world: &mut World, now: Timestamp) {
    let all: Vec<Identity> = world.gauges.by.keys().cloned().collect();
    for identity in all {
        judge_one(world, &identity, now);
    }
}

fn judge_one(world: &mut World, identity: &Identity, now: Timestamp) {
    let Some(known) = world.fleet.instances.get(identity) else { return };
    let Some(account) = world.fleet.account(&identity.account) else { return };
    let rule = world.settings.idle_rule(&account.provider, identity, &known.row);
    let latest = world.usage(known);
    let mismatch = latest.and_then(|usage| mismatch(known.row.gpus.as_ref(), usage));
    let Some(gauge) = world.gauges.by.get(identity) else { return };
    let judged = Judged {
        history: &gauge.history,
        latest,
        runs: known.phase() == Phase::Running,
        rented: known.row.gpus.as_ref(),
        running_since: known.row.started_at.map(|at| world.fleet.here(&identity.account, at)).or(gauge.running_since),
        mismatch: mismatch.as_ref(),
        peak: world.gauges.peaks.get(identity),
    };
    let idleness = judge(&judged, rule, now);
    if idleness.verdict != gauge.idleness.verdict {
        world.changed = true;
    }
    if let Some(gauge) = world.gauges.by.get_mut(identity) {
        gauge.idleness = idleness;
    }
}
