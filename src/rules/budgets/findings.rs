//! What of a budget is worth an alert: each line that is crossed, once a term, and that it will not last.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;

use super::{Budget, Quantity, Standing};
use crate::rules::alerts::{Alert, Alerts, Finding, Matter, Moot, Topic};

/// An alert about a line goes on while what is spent is no further below it, in percent of the limit: a correction may
/// take the sum back and forth over it.
const SLACK: u32 = 5;
/// A forecast must be over its line for so long.
const HELD: SignedDuration = SignedDuration::from_mins(5);
/// An alert about a forecast goes on while it is at this part of its line, in percent.
const NEARLY: u32 = 95;
/// What was crossed so short a time ago is crossed now.
const JUST_NOW: SignedDuration = SignedDuration::from_secs(60);

/// All that is the case about one budget. Before it has a standing nobody knows: its alerts are doubtful then.
pub fn findings(budget: &Budget, standing: &Standing, alerts: &Alerts) -> Vec<Finding> {
    let of = |line: &u32| crossing(budget, standing, alerts, *line);
    let mut found: Vec<Finding> = budget.thresholds.iter().filter_map(of).collect();
    // Of several the highest tells all: the others are only noted.
    if let Some(highest) = found.iter().rposition(|finding| finding.holds) {
        found[..highest].iter_mut().for_each(|finding| finding.quiet = true);
    }
    found.extend(forecast(budget, standing, alerts));
    found
}

/// The highest line that was crossed in a term that is over, where nobody was told of it, nor of a higher one, in time.
/// `budget` is for that term alone.
pub fn closed(budget: &Budget, standing: &Standing, alerts: &Alerts) -> Option<Finding> {
    let of = |threshold| Matter::Budget {
        name: budget.name.clone(),
        term: standing.term.first,
        threshold,
        spent: budget.quantity(standing.spent),
        limit: budget.limit,
        crossed_at: standing.crossed_at(threshold),
        forecast: None,
        closed: standing.term.to,
    };
    let is_crossed = |line: &&u32| standing.crossed.iter().any(|(crossed, _)| crossed == *line);
    let highest = *budget.thresholds.iter().rfind(is_crossed)?;
    let told = |alert: &Alert| match &alert.matter {
        Matter::Budget { name, term, threshold, .. } => {
            *name == budget.name && *term == standing.term.first && *threshold >= highest && alert.fired_at.is_some()
        }
        _ => false,
    };
    let is_told = alerts.open().chain(alerts.ended()).any(told);
    (!is_told).then(|| Finding::now(of(highest)))
}

/// The open alerts about budgets that are not found, since their budget, its lines or their term are others now.
pub fn moot(rules: &[Budget], alerts: &Alerts, found: &[Finding], now: Timestamp) -> Vec<Finding> {
    let found: BTreeSet<Topic> = found.iter().map(|finding| finding.matter.topic()).collect();
    let gone_on = alerts.open().filter(|alert| !found.contains(&alert.topic));
    let moot =
        gone_on.filter_map(|alert| Some(Finding::moot(alert.matter.clone(), why_moot(rules, &alert.matter, now)?)));
    moot.collect()
}

fn why_moot(rules: &[Budget], matter: &Matter, now: Timestamp) -> Option<Moot> {
    let (name, term, limit, line) = match matter {
        Matter::Budget { name, term, limit, threshold, closed: None, .. } => (name, term, limit, Some(threshold)),
        Matter::Forecast { name, term, limit, .. } => (name, term, limit, None),
        _ => return None,
    };
    let Some(budget) = rules.iter().find(|budget| budget.name == *name) else { return Some(Moot::Gone) };
    let is_line = line.map_or(budget.forecast.is_some(), |line| budget.thresholds.contains(line));
    match (term, budget.term(now).first) {
        (Some(term), Some(present)) if *term < present => Some(Moot::TermOver),
        (Some(term), Some(present)) if *term > present => Some(Moot::TermAhead),
        (term, present) if *term != present || *limit != budget.limit || !is_line => Some(Moot::Changed),
        _ => None,
    }
}

/// Whether a line is crossed, or an alert says so that goes on.
fn crossing(budget: &Budget, standing: &Standing, alerts: &Alerts, threshold: u32) -> Option<Finding> {
    let mut matter = Matter::Budget {
        name: budget.name.clone(),
        term: standing.term.first,
        threshold,
        spent: budget.quantity(standing.spent),
        limit: budget.limit,
        crossed_at: None,
        forecast: standing.forecast.map(|forecast| budget.quantity(forecast)),
        closed: None,
    };
    let open = alerts.get(&matter.topic()).map(|alert| &alert.matter);
    // Another limit has other lines.
    let open = open.filter(|open| limit_of(open) == Some(budget.limit));
    if standing.crossed.iter().all(|(line, _)| *line != threshold) {
        let is_near = standing.spent >= budget.line(threshold.saturating_sub(SLACK));
        return (open.is_some() && is_near).then(|| Finding { holds: false, ..Finding::now(matter) });
    }
    if let Matter::Budget { crossed_at, .. } = &mut matter {
        // Once it was known it stays so, also when the books only know the day any more.
        let told = open.and_then(|open| if let Matter::Budget { crossed_at, .. } = open { *crossed_at } else { None });
        let known = standing.crossed_at(threshold);
        *crossed_at = told.or(known.filter(|at| standing.as_of.duration_since(*at) >= JUST_NOW));
    }
    Some(Finding::now(matter))
}

/// Whether more will be spent than the line of forecasts allows, or an alert says so that goes on.
fn forecast(budget: &Budget, standing: &Standing, alerts: &Alerts) -> Option<Finding> {
    let (percent, forecast) = budget.forecast.zip(standing.forecast)?;
    let matter = Matter::Forecast {
        name: budget.name.clone(),
        term: standing.term.first,
        forecast: budget.quantity(forecast),
        limit: budget.limit,
        reaches: standing.reaches,
    };
    let line = budget.line(percent);
    // What will be spent to the last cent is not too much.
    let holds = forecast > line && standing.spent < budget.limit.amount;
    let open = alerts.get(&matter.topic()).is_some_and(|open| limit_of(&open.matter) == Some(budget.limit));
    let nearly = line.checked_mul(NEARLY.into()).map_or(line, |part| part / Decimal::ONE_HUNDRED);
    (holds || (open && forecast >= nearly)).then(|| Finding { holds, after: HELD, ..Finding::now(matter) })
}

/// The limit that an alert was about.
fn limit_of(matter: &Matter) -> Option<Quantity> {
    match matter {
        Matter::Budget { limit, .. } | Matter::Forecast { limit, .. } => Some(*limit),
        _ => None,
    }
}

#[cfg(test)]
#[path = "findings_tests.rs"]
mod tests;
