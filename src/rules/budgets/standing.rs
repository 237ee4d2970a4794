//! How a budget stands: what is spent, what will be, and what is committed.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use providers::model::Identity;
use providers::money::{Currency, Rate};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde::{Deserialize, Serialize};

use super::measure::{Measure, Measured};
use super::{Budget, Term, Unit};
use crate::rules::spend::{Charge, Exchange, Lump, Part, Sums, by_day, date_of};

const MS_PER_HOUR: i64 = 3_600_000;

/// What the books hold as closed for one budget's present term.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Drawn {
    /// The budget's name.
    pub name: String,
    /// When its term begins.
    pub from: Timestamp,
    /// By day of the budget's own zone.
    pub days: BTreeMap<Date, Sums>,
}

/// What runs and counts for a budget.
#[derive(Clone, Debug, PartialEq)]
pub struct Running {
    pub identity: Identity,
    /// What it is certainly charged.
    pub rates: Vec<Rate>,
    pub gpus: u32,
    /// When it will end by itself, as far as that is known.
    pub ends_at: Option<Timestamp>,
}

/// All that a budget's standing follows from, of its scope alone.
pub struct Inputs<'a> {
    /// `None` before the books have answered.
    pub drawn: Option<&'a Drawn>,
    /// What was charged beyond that: closed since, and open.
    pub parts: Vec<Part<'a>>,
    pub lumps: Vec<&'a Lump>,
    pub running: Vec<Running>,
    pub exchange: &'a Exchange,
}

/// How a budget stands at a moment. Amounts are in the unit of its limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    pub term: Term,
    pub as_of: Timestamp,
    pub spent: Decimal,
    /// What of it is no provider's own figure.
    pub estimated: Decimal,
    /// What was spent in currencies that no exchange rate joins: in no other amount here.
    pub apart: Vec<(Currency, Decimal)>,
    /// An hour.
    pub burn: Decimal,
    /// What will be spent at the end of the term: the burn going on, but for what ends before. `None` without an end,
    /// and when nothing burns.
    pub forecast: Option<Decimal>,
    /// The same as if nothing that runs ended before.
    pub committed: Option<Decimal>,
    /// What each running one adds to `committed`, the most first.
    pub left_running: Vec<(Identity, Decimal)>,
    /// When the limit is reached in this term, or was, as far as it can be told.
    pub reaches: Option<Timestamp>,
    /// When each of the budget's thresholds was crossed, as far as it can be told.
    pub crossed: Vec<(u32, Option<Timestamp>)>,
    /// What was spent by the end of each day, the last one up to `as_of`.
    pub by_day: Vec<(Date, Decimal)>,
}

impl Standing {
    /// How much of the limit is spent, in percent, rounded down: a line is crossed when it is reached.
    pub fn percent(&self, limit: Decimal) -> u32 {
        share(self.spent, limit)
    }

    /// What is spent a little later, the burn going on.
    pub fn spent_at(&self, now: Timestamp) -> Decimal {
        let until = self.term.to.map_or(now, |to| now.min(to));
        self.spent.saturating_add(over(self.burn, ms(self.as_of, until)))
    }
}

/// An amount in percent of a limit, rounded down.
pub fn share(of: Decimal, limit: Decimal) -> u32 {
    let share = of.max(Decimal::ZERO).checked_mul(Decimal::ONE_HUNDRED).and_then(|of| of.checked_div(limit));
    share.and_then(|share| share.to_u32()).unwrap_or(u32::MAX)
}

/// So many percent of a limit.
pub fn line(limit: Decimal, percent: u32) -> Decimal {
    limit.saturating_mul(Decimal::from(percent)) / Decimal::ONE_HUNDRED
}

/// How a budget stands; `None` before the books have answered for its term.
pub fn standing(budget: &Budget, inputs: &Inputs<'_>, now: Timestamp) -> Option<Standing> {
    let term = budget.term(now);
    let drawn = inputs.drawn.filter(|drawn| drawn.from == term.from)?;
    let exchange = match budget.limit.unit {
        Unit::Money(currency) => inputs.exchange.into_currency(currency),
        Unit::GpuHours => inputs.exchange.clone(),
    };
    let measure = Measure { unit: budget.limit.unit, exchange };
    let until = term.to.map_or(now, |to| now.min(to));
    let parts: Vec<Part<'_>> = inputs.parts.iter().filter_map(|part| cut(part, term.from, until)).collect();
    let lumps: Vec<&Lump> = inputs.lumps.iter().copied().filter(|lump| term.holds(lump.at)).collect();

    let mut days = drawn.days.clone();
    let closed = measure.of(&sum(days.values()));
    for part in &parts {
        for (date, from, to) in by_day(part.from, part.to, &budget.zone) {
            days.entry(date).or_default().add_part(&Part { from, to, ..part.clone() });
        }
    }
    for lump in &lumps {
        days.entry(date_of(lump.at, &budget.zone)).or_default().add_lump(lump);
    }
    let Measured { total: spent, estimated, apart } = measure.of(&sum(days.values()));

    let mut reached = Decimal::ZERO;
    let by_day = days.iter().map(|(date, sums)| {
        reached = reached.saturating_add(measure.of(sums).total);
        (*date, reached)
    });
    let by_day = by_day.collect();

    let burns: Vec<(&Running, Decimal)> = inputs
        .running
        .iter()
        .map(|running| (running, measure.burn(running)))
        .filter(|(_, burn)| !burn.is_zero())
        .collect();
    let burn = burns.iter().fold(Decimal::ZERO, |sum, (_, burn)| sum.saturating_add(*burn));
    let ahead = Ahead { from: now.max(term.from), to: term.to };
    let ends = |ends_at: fn(&Running) -> Option<Timestamp>| {
        let to = ahead.to.filter(|_| !burns.is_empty())?;
        let rest = burns
            .iter()
            .map(|(running, burn)| over(*burn, ms(ahead.from, ends_at(running).map_or(to, |end| end.min(to)))));
        Some(rest.fold(spent, Decimal::saturating_add))
    };
    let mut left_running: Vec<(Identity, Decimal)> = burns
        .iter()
        .filter_map(|(running, burn)| Some((running.identity.clone(), over(*burn, ms(ahead.from, ahead.to?)))))
        .collect();
    left_running.sort_by(|(_, one), (_, other)| other.cmp(one));

    let limit = budget.limit.amount;
    let crossed: Vec<u32> =
        budget.thresholds.iter().copied().filter(|percent| spent >= line(limit, *percent)).collect();
    let mut lines: Vec<Decimal> = crossed.iter().map(|percent| line(limit, *percent)).collect();
    lines.push(limit);
    let mut at = crossings(closed.total, &measure, &parts, &lumps, &lines);
    let reaches = match spent >= limit {
        true => at.pop().flatten(),
        false => ahead.reaches(limit - spent, &burns),
    };
    Some(Standing {
        term,
        as_of: now,
        spent,
        estimated,
        apart,
        burn,
        forecast: ends(|running| running.ends_at),
        committed: ends(|_| None),
        left_running,
        reaches,
        crossed: crossed.into_iter().zip(at).collect(),
        by_day,
    })
}

fn sum<'a>(days: impl Iterator<Item = &'a Sums>) -> Sums {
    days.fold(Sums::default(), |mut sum, day| {
        sum.merge(day);
        sum
    })
}

/// What of a part lies between two times.
fn cut<'a>(part: &Part<'a>, from: Timestamp, to: Timestamp) -> Option<Part<'a>> {
    let (from, to) = (part.from.max(from), part.to.min(to));
    (from < to).then(|| Part { from, to, ..part.clone() })
}

/// From one time to another, in milliseconds; 0 when they are reversed.
fn ms(from: Timestamp, to: Timestamp) -> i64 {
    (to.as_millisecond() - from.as_millisecond()).max(0)
}

/// What an hourly figure comes to in so many milliseconds.
fn over(hourly: Decimal, ms: i64) -> Decimal {
    hourly.saturating_mul(Decimal::from(ms)) / Decimal::from(MS_PER_HOUR)
}

/// How long an hourly figure needs for an amount, rounded up to a millisecond; `None` when it never comes to it.
fn time_for(amount: Decimal, hourly: Decimal) -> Option<SignedDuration> {
    let needed = amount.checked_mul(Decimal::from(MS_PER_HOUR))?.checked_div(hourly)?;
    needed.ceil().to_i64().filter(|_| hourly > Decimal::ZERO).map(SignedDuration::from_millis)
}

/// The time that is still to come.
struct Ahead {
    from: Timestamp,
    to: Option<Timestamp>,
}

impl Ahead {
    /// When so much more is spent: what has an end burns up to it.
    fn reaches(&self, mut rest: Decimal, burns: &[(&Running, Decimal)]) -> Option<Timestamp> {
        let mut burn = burns.iter().fold(Decimal::ZERO, |sum, (_, burn)| sum.saturating_add(*burn));
        let end = |(running, burn): &(&Running, Decimal)| Some((running.ends_at?.max(self.from), *burn));
        let mut ends: Vec<(Timestamp, Decimal)> = burns.iter().filter_map(end).collect();
        ends.sort();
        let mut from = self.from;
        ends.push((Timestamp::MAX, Decimal::ZERO));
        for (end, less) in ends {
            let at = time_for(rest, burn).and_then(|time| from.checked_add(time).ok());
            if let Some(at) = at.filter(|at| *at <= end) {
                return Some(at).filter(|at| self.to.is_none_or(|to| *at < to));
            }
            rest = rest.saturating_sub(over(burn, ms(from, end)));
            (from, burn) = (end, burn.saturating_sub(less));
        }
        None
    }
}

/// When a sum that was `base` before came to each of some amounts, smallest first, by what was charged since; `None`
/// for those that it never came to, or that were reached before.
fn crossings(
    base: Decimal,
    measure: &Measure,
    parts: &[Part<'_>],
    lumps: &[&Lump],
    lines: &[Decimal],
) -> Vec<Option<Timestamp>> {
    let mut found = vec![None; lines.len()];
    // What changes when: the rate, and the sum at one stroke.
    let mut changes: BTreeMap<Timestamp, (Decimal, Decimal)> = BTreeMap::new();
    if lines.iter().all(|line| *line <= base) {
        return found;
    }
    for part in parts.iter().filter(|part| part.terms.charge == Charge::Certain || measure.counts_prepaid(part)) {
        let Some(rate) = measure.rate(part) else { continue };
        changes.entry(part.from).or_default().0 += rate;
        changes.entry(part.to).or_default().0 -= rate;
    }
    for lump in lumps.iter().filter(|lump| lump.terms.charge == Charge::Certain) {
        if let Some(amount) = measure.lump(lump) {
            changes.entry(lump.at).or_default().1 += amount;
        }
    }
    let (mut level, mut rate, mut from) = (base, Decimal::ZERO, Timestamp::MIN);
    for (at, (turn, jump)) in changes {
        let before = level;
        level = level.saturating_add(over(rate, if rate.is_zero() { 0 } else { ms(from, at) }));
        for (line, found) in lines.iter().zip(&mut found) {
            if found.is_some() || *line <= base {
                continue;
            }
            if *line <= level {
                *found = time_for(line.saturating_sub(before), rate).map(|time| (from + time).min(at));
            } else if *line <= level.saturating_add(jump) {
                *found = Some(at);
            }
        }
        level = level.saturating_add(jump);
        (rate, from) = (rate.saturating_add(turn), at);
    }
    found
}
