//! How a budget stands: what is spent, what will be, and what is committed.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp, ToSpan};
use providers::model::Identity;
use providers::money::{Currency, Rate};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde::{Deserialize, Serialize};

use super::curve::{Curve, first};
use super::measure::Measure;
use super::{Budget, Term};
use crate::rules::spend::{Exact, Exchange, Lump, Part, Period, Sums, Terms, date_of, start_of};

/// What has no end is looked ahead for so long, and no further.
const FAR: SignedDuration = SignedDuration::from_hours(100 * 365 * 24);
/// So many of what runs are told one by one.
const TOLD: usize = 100;
/// So many days are told one by one.
const DAYS: i64 = 1000;
const MS_PER_HOUR: i64 = 3_600_000;

/// What the books hold as closed for one term of a budget.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Drawn {
    /// The budget's name.
    pub name: String,
    /// When its term begins.
    pub from: Timestamp,
    /// When the books first heard of a budget of this name; `None` when they do not keep that.
    #[serde(default)]
    pub known_since: Option<Timestamp>,
    /// When the books were asked: all that they hold was before.
    pub as_of: Timestamp,
    /// By day of the budget's own zone.
    pub days: BTreeMap<Date, Sums>,
}

/// A charge that goes on and counts for a budget. Those of one resource stand together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Running<'a> {
    pub identity: &'a Identity,
    pub terms: &'a Terms,
    pub rate: Rate,
    /// When it will end by itself, as far as that is known.
    pub ends_at: Option<Timestamp>,
}

/// All that a budget's standing follows from.
#[derive(Clone, Debug)]
pub struct Inputs<'a> {
    /// `None` before the books have answered.
    pub drawn: Option<&'a Drawn>,
    /// What of the budget's scope the books were told since, and what is open.
    pub beyond: Vec<Part<'a>>,
    /// The charges of one moment that they were told since.
    pub lumps: Vec<&'a Lump>,
    pub running: Vec<Running<'a>>,
    pub exchange: &'a Exchange,
    /// The standing before it, of the same budget: when a line was crossed is known best soon after. `None` at first.
    pub before: Option<&'a Standing>,
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
    /// What each running one adds to `committed`, the most first, and no more than a hundred.
    pub left_running: Vec<(Identity, Decimal)>,
    /// When the limit is reached in this term, or was, as far as it can be told.
    pub reaches: Option<Timestamp>,
    /// The lines that were crossed, in percent, rising, each with when, as far as it can be told.
    pub crossed: Vec<(u32, Option<Timestamp>)>,
    /// What was spent by the end of each day, the last one up to `as_of`: no more than the latest thousand.
    pub by_day: Vec<(Date, Decimal)>,
}

impl Standing {
    /// How much of the limit is spent, in percent; rounded down, so that a line is crossed when it is reached.
    pub fn percent(&self, limit: Decimal) -> u32 {
        share(self.spent, limit)
    }

    /// What is spent some moments later, the burn going on until the end of the term.
    pub fn at(&self, now: Timestamp) -> Decimal {
        let until = self.term.to.map_or(now, |to| now.min(to));
        let ms = until.as_millisecond().saturating_sub(self.as_of.max(self.term.from).as_millisecond()).max(0);
        let more = self.burn.checked_mul(ms.into()).and_then(|more| more.checked_div(MS_PER_HOUR.into()));
        more.and_then(|more| self.spent.checked_add(more)).unwrap_or(self.spent)
    }

    /// When a line of so many percent was crossed: one of the budget's thresholds, or its limit. `None` when it was
    /// not, and where nobody can tell.
    pub fn crossed_at(&self, percent: u32) -> Option<Timestamp> {
        self.crossed.iter().find(|(line, _)| *line == percent).and_then(|(_, at)| *at)
    }
}

/// A part of a limit in percent, rounded down: from 0 on.
pub fn share(of: Decimal, limit: Decimal) -> u32 {
    if of <= Decimal::ZERO {
        return 0;
    }
    let share = of.checked_mul(Decimal::ONE_HUNDRED).and_then(|of| of.checked_div(limit));
    share.and_then(|share| share.to_u32()).unwrap_or(u32::MAX)
}

/// How a budget stands; `None` before the books have answered for its term.
pub fn standing(budget: &Budget, inputs: &Inputs<'_>, now: Timestamp) -> Option<Standing> {
    let term = budget.term(now);
    let drawn = inputs.drawn.filter(|drawn| drawn.name == budget.name && drawn.from == term.from)?;
    let measure = Measure::new(budget.limit.unit, inputs.exchange);
    let past = Past::new(budget, &term, drawn, inputs, &measure, now);
    let spent = measure.total(past.end());
    let ahead = Ahead::new(&term, inputs, &measure, past.end().collect(), now);
    let burn = ahead.burn();

    let is_crossed = |line: Decimal| spent.amount > Decimal::ZERO && spent.amount >= line;
    let mut lines = budget.thresholds.clone();
    lines.push(100);
    lines.sort_unstable();
    lines.dedup();
    let crossed = lines.into_iter().map(|percent| (percent, budget.line(percent)));
    let before = inputs.before.filter(|before| before.term == term);
    let when = |(percent, line): (u32, Decimal)| {
        let known = before.and_then(|before| before.crossed.iter().find(|(known, _)| *known == percent));
        known.copied().unwrap_or_else(|| (percent, past.crossed_at(line)))
    };
    let crossed: Vec<_> = crossed.filter(|(_, line)| is_crossed(*line)).map(when).collect();
    let reaches = match crossed.iter().find(|(percent, _)| *percent == 100) {
        Some((_, at)) => *at,
        None => ahead.reaches(budget.limit.amount),
    };
    let has_forecast = burn > Decimal::ZERO && ahead.lasts() && term.to.is_some();
    Some(Standing {
        as_of: now,
        estimated: past.estimated(drawn, spent.amount),
        burn,
        forecast: has_forecast.then(|| ahead.forecast()),
        committed: has_forecast.then(|| ahead.committed()),
        left_running: if has_forecast { ahead.left_running() } else { Vec::new() },
        reaches,
        crossed,
        by_day: past.by_day(&budget.zone, &term, spent.amount, now),
        spent: spent.amount,
        apart: spent.apart,
        term,
    })
}

/// What was spent, and when.
///
/// Of what is closed only the day is known. It is taken once as late as it can have been and once as early; where both
/// tell the same moment of something, that is when it was.
struct Past<'a> {
    measure: &'a Measure,
    /// What is known to the millisecond.
    known: Curve,
    late: Curve,
    early: Curve,
}

impl<'a> Past<'a> {
    fn new(
        budget: &Budget,
        term: &Term,
        drawn: &Drawn,
        inputs: &Inputs<'_>,
        measure: &'a Measure,
        now: Timestamp,
    ) -> Self {
        let end = term.to.unwrap_or(Timestamp::MAX);
        let parts = inputs.beyond.iter().filter_map(|part| {
            let rate = measure.rate(&part.terms, part.rate)?;
            Some((rate, part.from.max(term.from), part.to.min(end)))
        });
        let lumps = inputs.lumps.iter().filter(|lump| term.from <= lump.at && lump.at < end);
        let lumps = lumps.filter_map(|lump| measure.lump(lump).map(|(currency, sum)| (lump.at, currency, sum)));
        let known = Curve::new(lumps, parts);
        let asked = drawn.as_of.min(now);
        let closed = |when: &dyn Fn(Date) -> Timestamp| {
            let day = |(day, sums): (&Date, &_)| {
                // A provider may bill a time ahead.
                let at = when(*day).min(asked);
                measure.closed(sums).map(move |(currency, sum)| (at, currency, sum)).collect::<Vec<_>>()
            };
            Curve::new(drawn.days.iter().flat_map(day), [])
        };
        let late = |day| {
            let end = Period::day(day).end(&budget.zone);
            end.saturating_sub(SignedDuration::from_millis(1)).expect("a duration can be taken from any time")
        };
        Past { measure, known, late: closed(&late), early: closed(&|day| start_of(day, &budget.zone)) }
    }

    fn end(&self) -> impl Iterator<Item = (Currency, Exact)> + '_ {
        self.known.end().chain(self.late.end())
    }

    fn estimated(&self, drawn: &Drawn, spent: Decimal) -> Decimal {
        // What the books were told since is never a provider's figure, nor is what is open.
        let billed = self.measure.total(drawn.days.values().flat_map(|sums| self.measure.billed(sums)));
        spent.checked_sub(billed.amount).unwrap_or(spent)
    }

    /// When the sum reached a line that is behind it. Where a credit took it back, one of those moments.
    fn crossed_at(&self, line: Decimal) -> Option<Timestamp> {
        let sum = |closed: &Curve, at: i64| self.measure.total(self.known.at(at).chain(closed.at(at))).amount;
        let spans = [self.known.span(), self.late.span()].into_iter().flatten();
        let (from, to) = spans.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))?;
        let at = first(from - 1, to, |at| sum(&self.late, at) >= line)?;
        (sum(&self.early, at.as_millisecond() - 1) < line).then_some(at)
    }

    fn by_day(&self, zone: &jiff::tz::TimeZone, term: &Term, spent: Decimal, now: Timestamp) -> Vec<(Date, Decimal)> {
        let of = |ms: i64| Timestamp::from_millisecond(ms).ok().map(|at| date_of(at, zone));
        let began = [self.known.span(), self.early.span()].into_iter().flatten().map(|span| span.0).min();
        let Some(from) = term.first.or_else(|| began.and_then(of)) else { return Vec::new() };
        let end = term.to.filter(|to| *to <= now).map(|to| to.as_millisecond() - 1);
        let last = end.and_then(of).unwrap_or_else(|| date_of(now, zone));
        let from = from.max(last.saturating_sub((DAYS - 1).days()));
        let days = Period { from, to: Period::day(last).to }.days();
        let by_end = |day: Date| {
            let end = Period::day(day).end(zone).as_millisecond();
            match day == last {
                true => (day, spent),
                false => (day, self.measure.total(self.known.before(end).chain(self.late.before(end))).amount),
            }
        };
        days.map(by_end).collect()
    }
}

/// What is going to be spent in what is left of a term.
struct Ahead<'a> {
    measure: &'a Measure,
    spent: Vec<(Currency, Exact)>,
    running: Vec<(&'a Identity, Rate)>,
    /// What runs, each up to its end where that is known.
    curve: Curve,
    from: Timestamp,
    /// Not after `from` when nothing is left.
    to: Timestamp,
}

impl<'a> Ahead<'a> {
    fn new(
        term: &Term,
        inputs: &Inputs<'a>,
        measure: &'a Measure,
        spent: Vec<(Currency, Exact)>,
        now: Timestamp,
    ) -> Self {
        let from = now.max(term.from);
        let to = term.to.unwrap_or_else(|| now.saturating_add(FAR).unwrap_or(Timestamp::MAX));
        let counted =
            || inputs.running.iter().filter_map(|running| Some((running, measure.rate(running.terms, running.rate)?)));
        let ends = counted().map(|(running, rate)| {
            // What should have ended and still runs goes on.
            let end = running.ends_at.filter(|at| *at > now).map_or(to, |at| at.min(to));
            (rate, from, end)
        });
        let curve = Curve::new([], ends);
        Ahead { measure, spent, running: counted().map(|(of, rate)| (of.identity, rate)).collect(), curve, from, to }
    }

    fn lasts(&self) -> bool {
        self.from < self.to
    }

    fn burn(&self) -> Decimal {
        let an_hour = |rate: Rate| (rate.currency, Exact::of_picos(rate.picos().into(), MS_PER_HOUR));
        self.measure.total(self.running.iter().map(|(_, rate)| an_hour(*rate))).amount
    }

    fn forecast(&self) -> Decimal {
        self.measure.total(self.curve.end().chain(self.spent.iter().copied())).amount
    }

    fn committed(&self) -> Decimal {
        let rest = self.running.iter().map(|(_, rate)| self.rest(*rate));
        self.measure.total(rest.chain(self.spent.iter().copied())).amount
    }

    /// What a rate comes to until the end.
    fn rest(&self, rate: Rate) -> (Currency, Exact) {
        (rate.currency, Exact::over(rate, self.from, self.to))
    }

    fn left_running(&self) -> Vec<(Identity, Decimal)> {
        let mut left: Vec<(&Identity, Decimal)> = Vec::new();
        for (identity, rate) in &self.running {
            let (currency, sum) = self.rest(*rate);
            let Some(amount) = self.measure.amount(currency, sum) else { continue };
            match left.last_mut().filter(|(last, _)| last == identity) {
                Some((_, sum)) => *sum = sum.saturating_add(amount),
                None => left.push((identity, amount)),
            }
        }
        left.retain(|(_, amount)| *amount > Decimal::ZERO);
        left.sort_unstable_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(other.0)));
        left.truncate(TOLD);
        left.into_iter().map(|(identity, amount)| (identity.clone(), amount)).collect()
    }

    /// When a limit is reached that is still ahead; `None` when not before the end.
    fn reaches(&self, limit: Decimal) -> Option<Timestamp> {
        let sum = |at: i64| self.measure.total(self.curve.at(at).chain(self.spent.iter().copied())).amount;
        first(self.from.as_millisecond(), self.to.as_millisecond() - 1, |at| sum(at) >= limit)
    }
}

#[cfg(test)]
#[path = "standing_tests.rs"]
mod tests;
