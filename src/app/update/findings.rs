//! What is worth an alert now. Without data nothing is found: of an account that was not heard, and of rows that it did
//! not tell, nobody knows whether what was so still is.

mod accounts;
mod rows;

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use providers::model::{AccountName, Action, Identity, Phase, ResourceKind};

use super::{happened, leases};
use crate::app::state::World;
use crate::rules::alerts::{About, Alert, Finding, Kind, Matter, Moot, Stage, Topic};
use crate::rules::budgets;
use crate::rules::fleet::{Account, Freshness, Known, Row};
use crate::rules::plan::shown_name;
use crate::rules::saga::{Operation, Outcome, Step};
use crate::rules::streams::Link;
use crate::rules::usage::Verdict;
pub(super) use accounts::sum_in;

/// Storage is listed more rarely than instances: so much older than the account's last answer it may be.
const STORAGE_LAGS: SignedDuration = SignedDuration::from_mins(5);
/// So long it is worth a word that an action ended without a proof.
const UNPROVEN: SignedDuration = SignedDuration::from_hours(24);

/// All that is the case, as far as it is known.
pub(super) fn all(world: &mut World, now: Timestamp) -> Vec<Finding> {
    let mut found = std::mem::take(&mut world.alerting.events);
    let world = &*world;
    rows::look(world, now, &mut found);
    accounts::look(world, now, &mut found);
    found.extend(world.operations.values().filter_map(|operation| not_done(world, operation, now)));
    found.extend(leases::findings(world, now));
    found.extend(world.alerting.dispatch.failing().map(|(rule, why)| {
        Finding::now(Matter::Channel { name: rule.name.clone(), why: why.to_owned(), way: rule.way })
    }));
    if super::budgets::are_whole(world) {
        let alerts = &world.alerting.alerts;
        for (budget, standing) in world.budgets.rules.iter().zip(&world.budgets.standings) {
            found.extend(standing.iter().flat_map(|standing| budgets::findings(budget, standing, alerts)));
        }
        let closed = world.budgets.closed.iter();
        found.extend(closed.filter_map(|(budget, standing)| budgets::closed(budget, standing.as_ref()?, alerts)));
    }
    found.extend(world.alerting.unexplained.iter().flatten().filter_map(|matter| {
        let About::Account(name) = matter.topic().about else { return None };
        // A balance that nobody reads any more tells nothing new.
        let account = world.fleet.account(&name)?;
        is_heard(world, account, now).then(|| Finding::now(matter.clone()))
    }));
    found.extend(explained(world, now));
    found.extend(budgets::moot(&world.budgets.rules, &world.alerting.alerts, &found, now));
    found.extend(other_channels(world));
    let eased = eased(world, &found, now);
    found.extend(eased);
    found
}

/// A stop or a release that did not take effect in time, or that nothing ever proved.
fn not_done(world: &World, operation: &Operation, now: Timestamp) -> Option<Finding> {
    if !matches!(operation.action, Action::Stop | Action::Release | Action::Delete) {
        return None;
    }
    let identity = &operation.target.identity;
    let rates = world.fleet.rates_of(identity);
    let is_open = match &operation.step {
        Step::Overdue { .. } => true,
        // Another action took its place: what that one proves, or what is gone, is no longer in doubt.
        Step::Ended { at, outcome: Outcome::Unproven } => {
            let settled = world.operations.range(operation.id..).skip(1).any(|(_, later)| {
                later.target.identity == *identity
                    && matches!(&later.step, Step::Ended { outcome: Outcome::Done { .. }, .. })
            });
            !settled && rates.is_some() && now.duration_since(*at) < UNPROVEN
        }
        _ => false,
    };
    is_open.then(|| {
        Finding::now(Matter::NotDone {
            op: operation.id,
            identity: identity.clone(),
            name: operation.target.name.clone(),
            action: operation.action,
            rates: rates.unwrap_or_default(),
        })
    })
}

/// What happened and is not told yet, since it turns out to be what some process was asked to do.
fn explained(world: &World, now: Timestamp) -> impl Iterator<Item = Finding> {
    let pending = world.alerting.alerts.open().filter(|alert| alert.stage == Stage::Pending);
    let explained = pending.filter(move |alert| happened::is_explained(world, &alert.matter, now));
    explained.map(|alert| Finding::eased(alert.matter.clone()))
}

/// Alerts about channels that the config does not name any more, or that are reached otherwise now.
fn other_channels(world: &World) -> impl Iterator<Item = Finding> {
    let rules = &world.alerting.dispatch.rules;
    world.alerting.alerts.open().filter_map(move |alert| {
        let Matter::Channel { name, .. } = &alert.matter else { return None };
        let rule = rules.iter().find(|rule| rule.name == *name);
        match rule {
            None => Some(Finding::moot(alert.matter.clone(), Moot::Gone)),
            Some(rule) if !rule.is_meant_by(&alert.matter) => Some(Finding::moot(alert.matter.clone(), Moot::Changed)),
            Some(_) => None,
        }
    })
}

/// What was so a moment ago and, as somebody looked, is not now: it may come and go.
fn eased(world: &World, found: &[Finding], now: Timestamp) -> Vec<Finding> {
    let comes_and_goes = |kind| matches!(kind, Kind::Idle | Kind::Account | Kind::Cards | Kind::Channel);
    let open: Vec<&Alert> = world.alerting.alerts.open().filter(|alert| comes_and_goes(alert.topic.kind)).collect();
    if open.is_empty() {
        return Vec::new();
    }
    let found: BTreeSet<Topic> = found
        .iter()
        .filter(|finding| comes_and_goes(finding.matter.kind()))
        .map(|found| found.matter.topic())
        .collect();
    let limits = &world.alerting.limits;
    let may_come_back = |alert: &&Alert| match &alert.topic.about {
        About::Resource(identity) => {
            let Some(known) = world.fleet.instances.get(identity) else { return false };
            let wanted = alert.topic.kind != Kind::Idle || (limits.idle.is_some() && rows::is_mine(world, known));
            wanted && known.phase() == Phase::Running && !is_doubtful(world, &alert.topic, now)
        }
        About::Account(name) => {
            let account = world.fleet.account(name);
            limits.unreachable.is_some()
                && account.is_some_and(|account| account.trouble.is_some() || is_heard(world, account, now))
        }
        // One that is reached otherwise now has not failed yet.
        About::Channel(_) => world.alerting.dispatch.rules.iter().any(|rule| rule.is_meant_by(&alert.matter)),
        _ => false,
    };
    let gone_on = open.into_iter().filter(|alert| !found.contains(&alert.topic)).filter(may_come_back);
    gone_on.map(|alert| Finding::eased(alert.matter.clone())).collect()
}

/// An account's figures are those of now.
pub(super) fn is_heard(world: &World, account: &Account, now: Timestamp) -> bool {
    matches!(world.fleet.freshness(account, now), Freshness::Fresh | Freshness::Partial)
}

/// The account's last answer told this row.
pub(super) fn is_told<T: Row>(known: &Known<T>, account: &Account) -> bool {
    let lag = if T::KIND == ResourceKind::Storage { STORAGE_LAGS } else { SignedDuration::ZERO };
    !known.is_gone()
        && known.missing_since.is_none()
        && account.as_of.is_some_and(|as_of| as_of.duration_since(known.last_seen) <= lag)
}

/// Nobody knows whether it still is so.
pub(super) fn is_doubtful(world: &World, topic: &Topic, now: Timestamp) -> bool {
    match &topic.about {
        _ if matches!(topic.kind, Kind::Appeared | Kind::Vanished) => is_held_back(world, topic, now),
        // What guards are called for by, and what was tried out, is what is known of it.
        _ if matches!(topic.kind, Kind::Guard | Kind::Unable) => false,
        // That these happened is certain.
        _ if matches!(topic.kind, Kind::Reclaimed | Kind::Repriced) => false,
        // Our own ledger tells.
        _ if topic.kind == Kind::Lease => false,
        About::Resource(identity) => resource_is_doubtful(world, topic.kind, identity, now),
        About::Account(name) => {
            let Some(account) = world.fleet.account(name) else { return false };
            let untold = match topic.kind {
                Kind::Runway => account.balance_error.is_some(),
                Kind::Unexplained => world.alerting.unexplained.is_none(),
                _ => false,
            };
            untold || !is_heard(world, account, now)
        }
        // What is not heard may be what burns.
        About::Fleet => world.fleet.accounts.iter().any(|account| !is_heard(world, account, now)),
        About::Budget(name) => {
            let is_unknown = |(_, standing): (_, Option<&_>)| standing.is_none();
            !super::budgets::are_whole(world) || world.budgets.get(name).is_some_and(is_unknown)
        }
        About::Action(_) | About::Channel(_) => false,
    }
}

/// The ledger has yet to say whether another process did it.
fn is_held_back(world: &World, topic: &Topic, now: Timestamp) -> bool {
    let age = world.alerting.alerts.get(topic).map(|alert| now.duration_since(alert.since));
    world.alerting.acted.is_none() && age.is_some_and(|age| (SignedDuration::ZERO..happened::HELD).contains(&age))
}

fn resource_is_doubtful(world: &World, kind: Kind, identity: &Identity, now: Timestamp) -> bool {
    let Some(account) = world.fleet.account(&identity.account) else { return false };
    let unheard = !is_heard(world, account, now);
    if let Some(known) = world.fleet.storage.get(identity) {
        return !known.is_gone() && (unheard || !is_told(known, account));
    }
    // What is not known at all may still be told when the account is heard.
    let Some(known) = world.fleet.instances.get(identity) else { return unheard };
    if known.is_gone() {
        return false;
    }
    if unheard || !is_told(known, account) || matches!(known.row.phase, Phase::Unknown | Phase::Unreachable) {
        return true;
    }
    let gauge = world.gauges.get(identity);
    let runs = known.phase() == Phase::Running;
    match kind {
        Kind::Idle => gauge.is_none_or(|gauge| gauge.judged_at.is_none() || gauge.idleness.verdict == Verdict::Unknown),
        // The machine itself is asked, and has not answered lately.
        Kind::Cards => runs && !gauge.is_some_and(|gauge| rows::looked_lately(gauge, now)),
        Kind::HostKey => {
            let link = world.streams.get(identity).map(|stream| &stream.link);
            runs && !matches!(link, Some(Link::Live { .. }))
        }
        _ => false,
    }
}

/// Since when something was first found, by the alert that is open about it.
fn since(world: &World, topic: &Topic, now: Timestamp) -> Timestamp {
    world.alerting.alerts.get(topic).map_or(now, |alert| alert.since.min(now))
}

pub(super) fn name_of<T: Row>(known: &Known<T>) -> String {
    shown_name(known.row.name(), &known.identity.id)
}

/// An account's own name for it.
fn account_of<'a>(world: &'a World, name: &AccountName, last: &mut Option<&'a Account>) -> Option<&'a Account> {
    if last.is_none_or(|account| account.name != *name) {
        *last = world.fleet.account(name);
    }
    *last
}
