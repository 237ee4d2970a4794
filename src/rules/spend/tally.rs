//! The sums that tick: what the books hold as closed, and what is open beside it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use providers::model::Identity;
use serde::{Deserialize, Serialize};

use crate::rules::budgets::Drawn;

use super::{Entries, Meter, Period, Sums, start_of};

/// What the books hold as closed, summed up for one civil day.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summed {
    /// The number of the question, as [`Tally::ask`] gave it.
    pub asked: u64,
    pub day: Date,
    /// Of all accounts, on that day.
    pub today: Sums,
    /// Of all accounts, in the month of that day.
    pub month: Sums,
    /// Of every resource that is not gone.
    pub rows: Vec<(Identity, RowSums)>,
    /// When the books begin; `None` when they are empty.
    pub since: Option<Timestamp>,
    /// What is drawn on the budgets that were asked for.
    #[serde(default)]
    pub budgets: Vec<Drawn>,
    /// Something waits to be written that is in none of these.
    #[serde(default)]
    pub partial: bool,
}

/// What one resource cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowSums {
    /// Since this rental began, as far as it is known.
    pub rental: Sums,
    /// In the month of the day.
    pub month: Sums,
    /// When the rental begins in the books.
    pub since: Option<Timestamp>,
}

/// The closed sums, kept up to date between two answers of the books.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    summed: Option<Summed>,
    /// What has ended stays in it until the next answer: it is still on the screen, and may come back.
    rows: BTreeMap<Identity, RowSums>,
    /// How often the books were asked.
    asked: u64,
    /// What was added while an answer is under way, each with how often the books had been asked by then: an
    /// answer knows of what was added before its question, and of nothing else.
    pending: Vec<(u64, Entries)>,
    /// The latest question that was answered.
    answered: u64,
    /// All that was added and that the latest answer does not know of.
    beyond: Entries,
}

impl Tally {
    /// The books are asked: whatever is added from now on comes on top of their answer. Returns the number of
    /// the question.
    pub fn ask(&mut self) -> u64 {
        self.asked += 1;
        self.asked
    }

    /// The books have answered.
    pub fn answer(&mut self, mut summed: Summed, zone: &TimeZone) {
        self.rows = std::mem::take(&mut summed.rows).into_iter().collect();
        self.answered = summed.asked;
        self.pending.retain(|(asked, _)| *asked >= summed.asked);
        self.summed = Some(summed);
        let pending = std::mem::take(&mut self.pending);
        self.beyond = Entries::default();
        for (_, entries) in &pending {
            self.add(entries, zone);
        }
        // Another answer may be under way.
        if self.answered < self.asked {
            self.pending = pending;
        }
    }

    /// Takes in what a look added.
    pub fn note(&mut self, entries: &Entries, zone: &TimeZone) {
        self.add(entries, zone);
        if self.answered < self.asked {
            self.pending.push((self.asked, entries.clone()));
        }
    }

    fn add(&mut self, entries: &Entries, zone: &TimeZone) {
        self.beyond.spans.extend(entries.spans.iter().cloned());
        self.beyond.lumps.extend(entries.lumps.iter().cloned());
        let Some(summed) = &mut self.summed else { return };
        let (day, month) = bounds(summed.day, zone);
        for span in &entries.spans {
            let row = self.rows.entry(span.identity.clone()).or_default();
            row.rental.add_span(span);
            row.since = Some(row.since.map_or(span.from, |since| since.min(span.from)));
            if let Some(part) = span.part().since(month) {
                row.month.add_part(&part);
                summed.month.add_part(&part);
            }
            if let Some(part) = span.part().since(day) {
                summed.today.add_part(&part);
            }
            summed.since = Some(summed.since.map_or(span.from, |since| since.min(span.from)));
        }
        for lump in &entries.lumps {
            let row = self.rows.entry(lump.identity.clone()).or_default();
            row.rental.add_lump(lump);
            if lump.at >= month {
                row.month.add_lump(lump);
                summed.month.add_lump(lump);
            }
            if lump.at >= day {
                summed.today.add_lump(lump);
            }
        }
    }

    /// The day that the sums are for; `None` before the first answer.
    pub fn day(&self) -> Option<Date> {
        self.summed.as_ref().map(|summed| summed.day)
    }

    /// What is drawn on the budgets, by what the books answered last.
    pub fn budgets(&self) -> &[Drawn] {
        self.summed.as_ref().map_or(&[], |summed| &summed.budgets)
    }

    /// Nothing waits to be written that the latest answer did not know of.
    pub fn is_whole(&self) -> bool {
        self.summed.as_ref().is_none_or(|summed| !summed.partial)
    }

    /// The number of the latest question that was answered; 0 before the first answer.
    pub fn answered(&self) -> u64 {
        self.answered
    }

    /// What was added beyond that.
    pub fn beyond(&self) -> &Entries {
        &self.beyond
    }

    /// When the books begin.
    pub fn since(&self) -> Option<Timestamp> {
        self.summed.as_ref().and_then(|summed| summed.since)
    }

    /// What was spent today and this month, what is open included; `None` before the first answer.
    pub fn totals(&self, meter: &Meter, zone: &TimeZone, now: Timestamp) -> Option<(Sums, Sums)> {
        let summed = self.summed.as_ref()?;
        let (day, month) = bounds(summed.day, zone);
        let (mut of_day, mut of_month) = (summed.today.clone(), summed.month.clone());
        // A day begins within its month.
        for part in meter.open_parts(now).filter_map(|part| part.since(month)) {
            of_month.add_part(&part);
            if let Some(part) = part.since(day) {
                of_day.add_part(&part);
            }
        }
        Some((of_day, of_month))
    }

    /// What one resource cost, what is open included; `None` before the first answer.
    pub fn row(&self, identity: &Identity, meter: &Meter, zone: &TimeZone, now: Timestamp) -> Option<RowSums> {
        let summed = self.summed.as_ref()?;
        let (_, month) = bounds(summed.day, zone);
        let mut row = self.rows.get(identity).cloned().unwrap_or_default();
        for part in meter.open_parts_of(identity, now) {
            row.rental.add_part(&part);
            row.since = Some(row.since.map_or(part.from, |since| since.min(part.from)));
            if let Some(part) = part.since(month) {
                row.month.add_part(&part);
            }
        }
        Some(row)
    }
}

/// When a day and its month begin.
fn bounds(day: Date, zone: &TimeZone) -> (Timestamp, Timestamp) {
    (start_of(day, zone), Period::month(day).start(zone))
}
