//! The use of cards over time, as curves.

use std::collections::BTreeMap;

use providers::model::Instance;

use super::scene::Scene;
use crate::app::state::ChartSpan;
use crate::rules::fleet::Known;
use crate::rules::usage::{Gauge, MINUTE, Share, minute_of};

/// Looks of the last minutes are drawn in steps of so many seconds; a step without a look has the figure of the one
/// before, so many times.
const STEP: i64 = 10;
const HELD: usize = 6;
/// Rows of a curve that has room.
const TALL: usize = 4;

/// The use of each card over the chosen span, oldest first, in equal steps; `None` where nothing was seen.
pub struct Curves(BTreeMap<usize, Vec<Option<f64>>>);

impl Curves {
    pub fn of(scene: &Scene, known: &Known<Instance>) -> Self {
        let span = scene.state.view.chart;
        let Some(gauge) = scene.state.world.gauges.get(&known.identity) else { return Curves(BTreeMap::new()) };
        let minutes = Self::by_minute(gauge, minute_of(scene.now), span.minutes());
        if span != ChartSpan::TenMinutes {
            return Curves(minutes);
        }
        let looks = |card| Self::by_look(gauge, card, scene.now.as_second());
        // What came back from the ledger is known by the minute only.
        let better = |card, by_minute: Vec<Option<f64>>| {
            let by_look: Vec<Option<f64>> = looks(card);
            let parts = by_look.len() / by_minute.len().max(1);
            let minute = |at: usize| by_minute.get(at / parts.max(1)).copied().flatten();
            by_look.into_iter().enumerate().map(|(at, share)| share.or_else(|| minute(at))).collect()
        };
        Curves(minutes.into_iter().map(|(card, by_minute)| (card, better(card, by_minute))).collect())
    }

    fn by_minute(gauge: &Gauge, last: i64, minutes: i64) -> BTreeMap<usize, Vec<Option<f64>>> {
        let first = last - minutes + 1;
        let steps = usize::try_from(minutes).expect("a span is some minutes");
        let mut curves: BTreeMap<_, _> = (0..gauge.history.width()).map(|card| (card, vec![None; steps])).collect();
        for minute in gauge.history.since(first).filter(|minute| minute.number <= last) {
            let at = usize::try_from(minute.number - first).expect("not before the first");
            for (card, told) in minute.cards.iter().enumerate() {
                if let Some(curve) = curves.get_mut(&card) {
                    curve[at] = told.peak.known();
                }
            }
        }
        curves
    }

    fn by_look(gauge: &Gauge, card: usize, now: i64) -> Vec<Option<f64>> {
        let span = ChartSpan::TenMinutes.minutes() * MINUTE;
        let first = now - span;
        let mut steps: Vec<Share> = vec![Share::UNKNOWN; usize::try_from(span / STEP).expect("some steps")];
        for (at, share) in gauge.recent.of_card(card) {
            let step = usize::try_from((at.as_second() - first - 1).div_euclid(STEP)).ok();
            if let Some(step) = step.and_then(|step| steps.get_mut(step)) {
                *step = step.highest(share);
            }
        }
        let mut held = (None, 0);
        let hold = |share: Share| {
            held = match share.known() {
                Some(share) => (Some(share), HELD),
                None if held.1 > 0 => (held.0, held.1 - 1),
                None => (None, 0),
            };
            held.0
        };
        steps.into_iter().map(hold).collect()
    }

    /// It never leaves the ground.
    pub fn is_flat(&self, card: usize) -> bool {
        self.0.get(&card).is_none_or(|curve| curve.iter().flatten().all(|share| *share < 0.05))
    }

    /// One figure a cell: the highest of its time.
    fn cells(&self, card: usize, cells: usize) -> Vec<Option<f64>> {
        let Some(points) = self.0.get(&card).filter(|points| !points.is_empty()) else { return vec![None; cells] };
        let place = |cell: usize| cell * points.len() / cells.max(1);
        (0..cells)
            .map(|cell| {
                let (from, to) = (place(cell), place(cell + 1).max(place(cell) + 1));
                points[from..to.min(points.len())].iter().flatten().copied().reduce(f64::max)
            })
            .collect()
    }

    /// In one row.
    pub fn line(&self, card: usize, cells: usize, scene: &Scene) -> String {
        let cells = self.cells(card, cells).into_iter();
        cells.map(|share| share.map_or(" ", |share| scene.look.glyphs.height(share))).collect()
    }

    /// Several rows, the top one first.
    pub fn rows(&self, card: usize, cells: usize, scene: &Scene) -> Vec<String> {
        let cells = self.cells(card, cells);
        let spark = &scene.look.glyphs.spark;
        let steps = spark.len();
        (0..TALL)
            .rev()
            .map(|row| {
                let sign = |share: &Option<f64>| {
                    let Some(share) = share else { return " " };
                    let height = (share.clamp(0.0, 1.0) * (TALL * steps) as f64).round() as usize;
                    match height.saturating_sub(row * steps).min(steps) {
                        // The foot is drawn wherever something was seen.
                        0 if row == 0 => spark[0],
                        0 => " ",
                        height => spark[height - 1],
                    }
                };
                cells.iter().map(sign).collect()
            })
            .collect()
    }
}
