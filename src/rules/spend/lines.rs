//! What a resource is charged now, in the terms of spans.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use providers::model::{
    AccountName, Component, Granularity, Instance, Market, Phase, RateLine, ResourceKind, StorageItem,
};
use providers::money::Rate;

use super::meter::whole;
use super::{Charge, State, Terms};
use crate::rules::fleet::{Account, Fleet, Known, Row};
use crate::rules::schedule;
use crate::rules::settings::Settings;

/// One look at one kind of an account's resources: a list that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    pub account: AccountName,
    pub kind: ResourceKind,
    pub now: Timestamp,
    /// Sights further apart than this leave a gap: three intervals.
    pub longest_gap: SignedDuration,
}

impl Look {
    /// A look at `now` by our clock, as the provider's clock has it.
    pub fn new(fleet: &Fleet, account: &AccountName, kind: ResourceKind, now: Timestamp) -> Self {
        let now = fleet.there(account, now);
        let interval = match kind {
            ResourceKind::Instance => fleet.interval(account),
            // However often its account's instances are asked for, storage is looked at more rarely.
            ResourceKind::Storage => schedule::interval(false),
        };
        Look { account: account.clone(), kind, now, longest_gap: interval * 3 }
    }
}

/// How a look found a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    Now,
    /// Nothing is known beyond its last sight: its row could not be read, or is missing from a complete list.
    Not {
        missing: bool,
    },
    /// It is gone since some moment up to then: when that was proven. A list without it proves nothing yet.
    Gone {
        by: Timestamp,
    },
}

impl Seen {
    /// How a look at `now`, by our clock, found it.
    pub fn of<T: Row>(fleet: &Fleet, known: &Known<T>, now: Timestamp) -> Self {
        match (known.gone_at, known.missing_since) {
            (Some(gone_at), _) => Seen::Gone { by: fleet.there(&known.identity.account, gone_at) },
            (None, Some(_)) => Seen::Not { missing: true },
            (None, None) if known.last_seen != now => Seen::Not { missing: false },
            (None, None) => Seen::Now,
        }
    }
}

/// What a resource is charged, as its row tells.
#[derive(Clone, Debug, PartialEq)]
pub struct Charged {
    /// One a component and sort of charge.
    pub lines: Vec<(Terms, Rate)>,
    pub state: State,
    /// When it was last stopped, or ended.
    pub stopped_at: Option<Timestamp>,
    /// Proves that it was there.
    pub created_at: Option<Timestamp>,
}

impl Charged {
    pub fn instance(fleet: &Fleet, settings: &Settings, known: &Known<Instance>) -> Self {
        let row = &known.row;
        let prepaid = matches!(row.market, Market::Reserved { .. });
        let wasted = if prepaid { row.phase != Phase::Running } else { row.is_resting() };
        let gpus = row.gpus.as_ref().map_or(0, |gpus| gpus.count);
        let project = project(fleet, settings, known);
        let terms = |line: &RateLine| Terms {
            component: line.component,
            charge: charge(line, prepaid),
            wasted,
            project: project.clone(),
            gpus: if line.component == Component::Compute { gpus } else { 0 },
        };
        let running = matches!(
            row.phase,
            Phase::Provisioning | Phase::Running | Phase::Stopping | Phase::Releasing | Phase::Unreachable
        );
        Charged {
            lines: merged(row.rates.lines.iter().map(|line| (terms(line), line.rate))),
            state: State { running, started_at: told(row.started_at), granularity: row.granularity },
            stopped_at: told(row.stopped_at),
            created_at: told(row.created_at),
        }
    }

    pub fn storage(fleet: &Fleet, settings: &Settings, known: &Known<StorageItem>) -> Self {
        let row = &known.row;
        let wasted = fleet.is_unattached(known);
        let project = project(fleet, settings, known);
        let terms = |line: &RateLine| Terms {
            component: line.component,
            charge: charge(line, false),
            wasted,
            project: project.clone(),
            gpus: 0,
        };
        Charged {
            lines: merged(row.rates.lines.iter().map(|line| (terms(line), line.rate))),
            state: State { running: false, started_at: None, granularity: Granularity::Exact },
            stopped_at: None,
            created_at: told(row.created_at),
        }
    }
}

/// A provider's own time, as the books keep times. One from before anybody rented machines by the hour is none:
/// zero, in some calendar.
fn told(at: Option<Timestamp>) -> Option<Timestamp> {
    const FIRST: i64 = 1_000_000_000;
    at.filter(|at| at.as_second() >= FIRST).map(whole)
}

fn charge(line: &RateLine, prepaid: bool) -> Charge {
    match () {
        () if prepaid => Charge::Prepaid,
        () if line.certain => Charge::Certain,
        () => Charge::Possible,
    }
}

fn project<T: Row>(fleet: &Fleet, settings: &Settings, known: &Known<T>) -> Option<Arc<str>> {
    let provider = fleet.account(&known.identity.account).map(|account: &Account| &account.provider)?;
    settings.project(provider, &known.identity, &known.row).map(Arc::from)
}

/// One line a component, sort of charge and currency: of several the sum.
fn merged(lines: impl Iterator<Item = (Terms, Rate)>) -> Vec<(Terms, Rate)> {
    let mut merged: Vec<(Terms, Rate)> = Vec::new();
    for (terms, rate) in lines {
        match merged.iter_mut().find(|(known, sum)| *known == terms && sum.currency == rate.currency) {
            Some((_, sum)) => *sum = Rate::from_picos(sum.picos().saturating_add(rate.picos()), rate.currency),
            None => merged.push((terms, rate)),
        }
    }
    merged.sort_by(|one, other| (&one.0, one.1.currency).cmp(&(&other.0, other.1.currency)));
    merged
}
