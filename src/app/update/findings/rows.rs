//! What single instances and storage items give rise to: one walk over all of them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use providers::model::{AccountName, Attachment, Component, Instance, Market, Phase, ResourceId, StorageItem};
use providers::money::Money;

use super::super::copies::{self, Wanted};
use super::{account_of, is_heard, is_told, name_of, since};
use crate::app::gauges::Alarm;
use crate::app::state::World;
use crate::rules::alerts::{Finding, Matter, Topic};
use crate::rules::fleet::{Account, Known};
use crate::rules::streams::{Link, Trouble};
use crate::rules::usage::{Gauge, Mismatch, Verdict};

/// Who stops a machine means to end its bill: that it goes on in full is told this soon.
const STILL_IN_FULL: SignedDuration = SignedDuration::from_mins(10);
/// So long whoever comes back, from a sleep for instance, has to make the copies that are due before it is told that
/// they are.
const CATCHES_UP: SignedDuration = SignedDuration::from_mins(10);

/// What was found so far, and what of it the storage is judged by.
struct Walk<'a> {
    world: &'a World,
    now: Timestamp,
    /// Copies are made on a schedule, of some.
    copies: bool,
    mounted: BTreeSet<(&'a AccountName, &'a ResourceId)>,
}

/// Goes through all rows.
pub fn look(world: &World, now: Timestamp, found: &mut Vec<Finding>) {
    let heard: BTreeMap<&AccountName, bool> =
        world.fleet.accounts.iter().map(|account| (&account.name, is_heard(world, account, now))).collect();
    let copies = world.recipes.iter().any(|rule| rule.every.is_some());
    let mut walk = Walk { world, now, copies, mounted: BTreeSet::new() };
    let (mut account, mut is_heard) = (None, false);
    // Rows are far apart in memory: gauges and rows are in the same order, so that none is searched for.
    let mut gauges = world.gauges.iter().peekable();
    for known in world.fleet.instances.values().filter(|known| !known.is_gone()) {
        let identity = &known.identity;
        if account.is_none_or(|account: &Account| account.name != identity.account) {
            account = world.fleet.account(&identity.account);
            is_heard = account.is_some_and(|account| heard.get(&account.name) == Some(&true));
        }
        walk.mounted.extend(known.row.mounts.iter().map(|id| (&identity.account, id)));
        let Some(account) = account.filter(|account| is_heard && is_told(known, account)) else { continue };
        while gauges.next_if(|(of, _)| *of != identity && *of < identity).is_some() {}
        let gauge = gauges.next_if(|(of, _)| *of == identity).map(|(_, gauge)| gauge);
        walk.instance(known, account, gauge, found);
    }
    let mut account = None;
    for known in world.fleet.storage.values() {
        let Some(account) = account_of(world, &known.identity.account, &mut account) else { continue };
        if heard.get(&account.name) == Some(&true) && is_told(known, account) {
            found.extend(walk.item(known));
        }
    }
    found.extend(world.streams.iter().filter_map(|(identity, stream)| {
        let changed = matches!(stream.link, Link::Down { trouble: Trouble::HostKeyChanged, .. });
        let known = world.fleet.instances.get(identity).filter(|known| changed && known.phase() == Phase::Running)?;
        Some(Finding::now(Matter::HostKey { identity: identity.clone(), name: name_of(known) }))
    }));
}

impl Walk<'_> {
    fn instance(&self, known: &Known<Instance>, account: &Account, gauge: Option<&Gauge>, found: &mut Vec<Finding>) {
        found.extend(self.ending(known, account));
        if known.row.is_resting() {
            found.extend(self.stopped(known));
        }
        if self.copies && known.row.phase == Phase::Running {
            found.extend(self.copy_overdue(known, account));
        }
        let Some(gauge) = gauge.filter(|_| known.row.phase == Phase::Running) else { return };
        if gauge.idleness.verdict == Verdict::Idle {
            found.extend(self.idle(known, gauge));
        }
        if looked_lately(gauge, self.now) {
            found.extend(self.cards(known, gauge));
        }
    }

    fn idle(&self, known: &Known<Instance>, gauge: &Gauge) -> Option<Finding> {
        let (limit, since) = (self.world.alerting.limits.idle?, gauge.idleness.since?);
        if self.now.duration_since(since) < limit || !is_mine(self.world, known) {
            return None;
        }
        let wasted = self.world.wasted(&known.identity, self.now).unwrap_or_default();
        Some(Finding::now(Matter::Idle {
            identity: known.identity.clone(),
            name: name_of(known),
            since,
            // What is paid ahead costs no more for standing still.
            rates: if is_prepaid(known) { Vec::new() } else { known.row.rates.certain().rates().to_vec() },
            wasted: wasted.into_iter().map(|(currency, amount)| Money::new(amount.amount(), currency)).collect(),
        }))
    }

    fn stopped(&self, known: &Known<Instance>) -> Option<Finding> {
        let limit = self.world.alerting.limits.stopped?;
        let rates = known.row.rates.certain();
        if rates.is_zero() || is_prepaid(known) {
            return None;
        }
        let is_charged = |line: &&providers::model::RateLine| line.certain && !line.rate.is_zero();
        let in_full = known.row.rates.lines.iter().filter(is_charged).any(|line| line.component == Component::Compute);
        let limit = if in_full { limit.min(STILL_IN_FULL) } else { limit };
        let matter = |since| Matter::StoppedBilled {
            identity: known.identity.clone(),
            name: name_of(known),
            since,
            rates: rates.rates().to_vec(),
        };
        match known.row.stopped_at.map(|at| self.world.fleet.here(&known.identity.account, at)) {
            Some(since) => (self.now.duration_since(since) >= limit).then(|| Finding::now(matter(since))),
            None => Some(self.after(limit, matter)),
        }
    }

    /// Told when it has been so for a time, counted from its first sign.
    fn after(&self, limit: SignedDuration, matter: impl Fn(Timestamp) -> Matter) -> Finding {
        let topic: Topic = matter(self.now).topic();
        Finding::after(matter(since(self.world, &topic, self.now)), limit)
    }

    fn ending(&self, known: &Known<Instance>, account: &Account) -> Option<Finding> {
        let limit = self.world.alerting.limits.ending?;
        let row = &known.row;
        let term = match row.market {
            Market::Reserved { until } => until,
            _ => None,
        };
        let ended = [row.ends_at, row.repricing.and_then(|rise| rise.ends_at)].into_iter().flatten().min();
        let first = [term, ended].into_iter().flatten().min()?;
        let at = first.saturating_add(account.skew.unwrap_or_default()).ok()?;
        // What its provider ends takes its disk along; a term that ends goes on at another price.
        let deleted = ended.is_some_and(|ended| ended <= first);
        (at.duration_since(self.now) <= limit).then(|| {
            Finding::now(Matter::Ending { identity: known.identity.clone(), name: name_of(known), at, deleted })
        })
    }

    fn copy_overdue(&self, known: &Known<Instance>, account: &Account) -> Option<Finding> {
        let Wanted { every, .. } = copies::wanted(self.world, account, known, self.now)?;
        let copied_at = self.world.saved.get(&known.identity).map(|saved| saved.proof.at);
        // While it did not run there was nothing to copy.
        let since = copied_at.into_iter().chain([copies::runs_since(self.world, known)]).max()?;
        if self.now.duration_since(since) <= every.saturating_mul(2) {
            return None;
        }
        let why = copies::Tries::of(self.world, &known.identity).trouble;
        let matter =
            Matter::CopyOverdue { identity: known.identity.clone(), name: name_of(known), copied_at, every, why };
        Some(Finding::after(matter, CATCHES_UP))
    }

    fn cards(&self, known: &Known<Instance>, gauge: &Gauge) -> Option<Finding> {
        let rented = known.row.gpus.as_ref().map_or(0, |gpus| gpus.count);
        let (mut seen, mut why) = (None, None);
        let mut is_wrong = false;
        for alarm in self.world.alarms_of(known, Some(gauge)) {
            is_wrong |= !matches!(alarm, Alarm::HostKeyChanged);
            match alarm {
                Alarm::HostKeyChanged => {}
                Alarm::Mismatch(Mismatch::Fewer { seen: answering, .. }) => seen = Some(answering),
                Alarm::Mismatch(Mismatch::Smaller { seen_gib, rented_gib }) => {
                    why = Some(format!("{rented_gib} GiB → {seen_gib} GiB"));
                }
                Alarm::Mismatch(Mismatch::Other { seen, rented }) => why = Some(format!("{rented} → {seen}")),
                Alarm::Fault(fault) => why = Some(fault.to_owned()),
            }
        }
        is_wrong.then(|| {
            Finding::now(Matter::Cards { identity: known.identity.clone(), name: name_of(known), rented, seen, why })
        })
    }

    fn item(&self, known: &Known<StorageItem>) -> Option<Finding> {
        let limit = self.world.alerting.limits.unattached?;
        let used_by_nobody = matches!(&known.row.attachment, Attachment::To(ids) if ids.is_empty())
            && !self.mounted.contains(&(&known.identity.account, &known.row.id));
        let rates = known.row.rates.certain();
        // What it costs may not be known; that it costs nothing is.
        if !used_by_nobody || (rates.is_zero() && known.row.rates.complete) {
            return None;
        }
        Some(self.after(limit, |since| Matter::Unattached {
            identity: known.identity.clone(),
            name: name_of(known),
            since,
            rates: rates.rates().to_vec(),
        }))
    }
}

/// The machine itself has told of its cards lately.
pub fn looked_lately(gauge: &Gauge, now: Timestamp) -> bool {
    gauge.ssh.as_deref().is_some_and(|look| look.is_fresh(now))
}

/// Ours to act on.
pub fn is_mine(world: &World, known: &Known<Instance>) -> bool {
    let account = world.fleet.account(&known.identity.account);
    account.is_some_and(|account| world.settings.mine(&account.provider, &known.identity, &known.row))
}

fn is_prepaid(known: &Known<Instance>) -> bool {
    matches!(known.row.market, Market::Reserved { .. })
}
