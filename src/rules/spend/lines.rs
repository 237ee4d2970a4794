//! What a resource is charged now, in the terms of spans.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use providers::model::{
    AccountName, Component, Granularity, Identity, Instance, Market, Phase, RateLine, ResourceKind, StorageItem,
};
use providers::money::Rate;

use super::{Charge, Terms};
use crate::rules::fleet::{Account, Fleet, Known, Row};
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

/// How a resource was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    Now,
    /// It was not among what could be read, or is missing: nothing is known beyond the last sight.
    Not,
    /// It is gone since some moment up to then: the first list without it.
    Gone {
        by: Timestamp,
    },
}

/// A resource as a look shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Charged {
    pub identity: Identity,
    pub seen: Seen,
    /// One a component and sort of charge.
    pub lines: Vec<(Terms, Rate)>,
    /// It works, or is about to: its present state began at `started_at`, else at `stopped_at`.
    pub running: bool,
    pub started_at: Option<Timestamp>,
    pub stopped_at: Option<Timestamp>,
    /// Proves that it was there.
    pub created_at: Option<Timestamp>,
    pub granularity: Granularity,
}

impl Charged {
    /// As a look at `now` shows it.
    pub fn instance(fleet: &Fleet, settings: &Settings, known: &Known<Instance>, now: Timestamp) -> Self {
        let row = &known.row;
        let resting = row.is_resting();
        let running = matches!(row.phase, Phase::Running | Phase::Stopping | Phase::Releasing | Phase::Unreachable);
        let prepaid = matches!(row.market, Market::Reserved { .. });
        let gpus = row.gpus.as_ref().map_or(0, |gpus| gpus.count);
        let terms = |line: &RateLine| Terms {
            component: line.component,
            charge: charge(line, prepaid),
            wasted: if prepaid { row.phase != Phase::Running } else { resting },
            project: project(fleet, settings, known),
            gpus: if line.component == Component::Compute { gpus } else { 0 },
        };
        Charged {
            identity: known.identity.clone(),
            seen: seen(known, now),
            lines: merged(row.rates.lines.iter().map(|line| (terms(line), line.rate))),
            running,
            started_at: row.started_at,
            stopped_at: row.stopped_at,
            created_at: row.created_at,
            granularity: row.granularity,
        }
    }

    /// As a look at `now` shows it.
    pub fn storage(fleet: &Fleet, settings: &Settings, known: &Known<StorageItem>, now: Timestamp) -> Self {
        let row = &known.row;
        let wasted = fleet.is_unattached(known);
        let terms = |line: &RateLine| Terms {
            component: line.component,
            charge: charge(line, false),
            wasted,
            project: project(fleet, settings, known),
            gpus: 0,
        };
        Charged {
            identity: known.identity.clone(),
            seen: seen(known, now),
            lines: merged(row.rates.lines.iter().map(|line| (terms(line), line.rate))),
            running: false,
            started_at: None,
            stopped_at: None,
            created_at: row.created_at,
            granularity: Granularity::Exact,
        }
    }
}

fn charge(line: &RateLine, prepaid: bool) -> Charge {
    match () {
        () if prepaid => Charge::Prepaid,
        () if line.certain => Charge::Certain,
        () => Charge::Possible,
    }
}

fn seen<T: Row>(known: &Known<T>, now: Timestamp) -> Seen {
    match (known.gone_at, known.missing_since) {
        (Some(gone_at), missing) => Seen::Gone { by: missing.unwrap_or(gone_at) },
        (None, Some(_)) => Seen::Not,
        (None, None) if known.last_seen < now => Seen::Not,
        (None, None) => Seen::Now,
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
