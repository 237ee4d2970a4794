//! How sums grow with time: steps at moments, and what goes on at a rate from one time to another.

use std::collections::BTreeMap;

use jiff::Timestamp;
use providers::money::{Currency, Rate};

use crate::rules::spend::Exact;

/// Sums kept apart by currency, each as a line that grows. Times are whole milliseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Curve(BTreeMap<Currency, Vec<Point>>);

/// From here to the next point a sum grows evenly.
#[derive(Clone, Copy, Debug)]
struct Point {
    /// Milliseconds since 1970.
    at: i64,
    /// What it is here, a step of this moment included.
    sum: Exact,
    /// In 1e-12 of the unit an hour.
    slope: i128,
}

impl Curve {
    /// A curve of steps, and of rates each from one time to another.
    pub fn new(
        steps: impl IntoIterator<Item = (Timestamp, Currency, Exact)>,
        rates: impl IntoIterator<Item = (Rate, Timestamp, Timestamp)>,
    ) -> Self {
        let mut lines: BTreeMap<Currency, Vec<Point>> = BTreeMap::new();
        // At first each point tells what changes there.
        for (at, currency, sum) in steps {
            lines.entry(currency).or_default().push(Point { at: at.as_millisecond(), sum, slope: 0 });
        }
        for (rate, from, to) in rates {
            let (from, to, slope) = (from.as_millisecond(), to.as_millisecond(), i128::from(rate.picos()));
            if from < to && slope != 0 {
                let line = lines.entry(rate.currency).or_default();
                line.push(Point { at: from, sum: Exact::ZERO, slope });
                line.push(Point { at: to, sum: Exact::ZERO, slope: -slope });
            }
        }
        for line in lines.values_mut() {
            line.sort_unstable_by_key(|point| point.at);
            let mut before: Option<Point> = None;
            for point in line {
                if let Some(before) = before {
                    point.sum += before.on(point.at);
                    point.slope += before.slope;
                }
                before = Some(*point);
            }
        }
        Curve(lines)
    }

    /// What it comes to at a moment, steps of that moment included.
    pub fn at(&self, at: i64) -> impl Iterator<Item = (Currency, Exact)> + '_ {
        self.sums(at, move |point| point.at <= at)
    }

    /// What it comes to just before a moment.
    pub fn before(&self, at: i64) -> impl Iterator<Item = (Currency, Exact)> + '_ {
        self.sums(at, move |point| point.at < at)
    }

    /// What it comes to in the end.
    pub fn end(&self) -> impl Iterator<Item = (Currency, Exact)> + '_ {
        self.at(i64::MAX)
    }

    fn sums<'a>(
        &'a self,
        at: i64,
        is_past: impl Fn(&Point) -> bool + Copy + 'a,
    ) -> impl Iterator<Item = (Currency, Exact)> + 'a {
        let last = move |line: &[Point]| line.partition_point(is_past).checked_sub(1).map(|last| line[last]);
        self.0.iter().filter_map(move |(currency, line)| Some((*currency, last(line)?.on(at))))
    }

    /// The times of its first and its last point; `None` when it has none.
    pub fn span(&self) -> Option<(i64, i64)> {
        let first = self.0.values().filter_map(|line| line.first()).map(|point| point.at).min()?;
        let last = self.0.values().filter_map(|line| line.last()).map(|point| point.at).max()?;
        Some((first, last))
    }
}

impl Point {
    /// What the sum is at a later moment, if there is no other point before it.
    fn on(&self, at: i64) -> Exact {
        match self.slope {
            0 => self.sum,
            slope => self.sum + Exact::of_picos(slope, at.saturating_sub(self.at)),
        }
    }
}

/// The first millisecond after `from` and up to `to` for which something holds that goes on holding; `None` when it
/// holds at none of them, or already at `from`.
pub(super) fn first(from: i64, to: i64, holds: impl Fn(i64) -> bool) -> Option<Timestamp> {
    let (mut not_yet, mut already) = (from, to);
    if not_yet >= already || holds(not_yet) || !holds(already) {
        return None;
    }
    while not_yet + 1 < already {
        let between = not_yet + (already - not_yet) / 2;
        if holds(between) { already = between } else { not_yet = between }
    }
    Timestamp::from_millisecond(already).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::samples::{at, usd};

    fn dollars(sums: impl Iterator<Item = (Currency, Exact)>) -> String {
        sums.map(|(currency, sum)| format!("{} {currency}", sum.amount())).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn a_curve_grows_by_steps_and_at_rates() {
        let step = |clock, amount: &str| (at(clock), Currency::EUR, Exact::of(amount.parse().unwrap()));
        let curve = Curve::new(
            [step("03:00:00", "5"), step("01:00:00", "2")],
            [(usd("2"), at("02:00:00"), at("04:00:00")), (usd("1"), at("03:00:00"), at("03:30:00"))],
        );
        let ms = |clock| at(clock).as_millisecond();
        assert_eq!(dollars(curve.at(ms("00:59:59"))), "");
        assert_eq!(dollars(curve.before(ms("01:00:00"))), "");
        assert_eq!(dollars(curve.at(ms("01:00:00"))), "2 EUR");
        assert_eq!(dollars(curve.before(ms("03:00:00"))), "2 EUR, 2 USD");
        assert_eq!(dollars(curve.at(ms("03:15:00"))), "7 EUR, 2.75 USD");
        assert_eq!(dollars(curve.end()), "7 EUR, 4.5 USD");
        assert_eq!(curve.span(), Some((ms("01:00:00"), ms("04:00:00"))));
        assert_eq!(Curve::default().span(), None);
    }

    #[test]
    fn the_first_moment_is_found_to_the_millisecond() {
        assert_eq!(first(0, 1_000_000_007, |at| at >= 777).map(|at| at.as_millisecond()), Some(777));
        assert_eq!(first(0, 776, |at| at >= 777), None);
        assert_eq!(first(0, 10, |_| true), None, "it held before");
        assert_eq!(first(10, 10, |at| at >= 10), None);
    }
}
