//! Sums by day and by month, kept beside the entries and changed with them.

use std::collections::HashMap;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use providers::money::{Currency, Rate};
use rusqlite::{Connection, OptionalExtension, params};

use super::pieces::Piece;
use super::terms::Sort;
use super::write::{Amount, Books, Item};
use crate::ledger::LedgerError;
use crate::rules::spend::{COMPONENTS, Exact, by_day, date_of};

const ADD_DAY: &str = "
    INSERT INTO day_sum (day, book, terms, micros, rest, gpu_ms) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (day, book, terms) DO UPDATE SET
        micros = micros + excluded.micros, rest = rest + excluded.rest, gpu_ms = gpu_ms + excluded.gpu_ms";
const ADD_MONTH: &str = "
    INSERT INTO month_sum (billable, month, terms, micros, rest, gpu_ms) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (billable, month, terms) DO UPDATE SET
        micros = micros + excluded.micros, rest = rest + excluded.rest, gpu_ms = gpu_ms + excluded.gpu_ms";
const PROGRESS: &str = "SELECT zone, billable FROM added_up WHERE seat = 1";
const KEEP_PROGRESS: &str = "UPDATE added_up SET zone = $1, billable = $2 WHERE seat = 1";
const NEXT: &str = "
    SELECT key, book, since, lines, longest FROM billable WHERE key > $1 ORDER BY key LIMIT 1";

/// All billables are added up, those to come included.
const ALL: i64 = i64::MAX;
/// About so many entries are added up at once when the zone has changed: a few hundredths of a second.
const AT_ONCE: usize = if cfg!(test) { 500 } else { 20_000 };

/// A day as the books write it.
pub fn day_number(date: Date) -> i64 {
    month_number(date) * 100 + i64::from(date.day())
}

/// A day's month as the books write it.
pub fn month_number(date: Date) -> i64 {
    i64::from(date.year()) * 100 + i64::from(date.month())
}

/// The day that a number of the books stands for.
pub fn day_of(number: i64) -> Option<Date> {
    let (year, month, day) = (number / 10_000, number / 100 % 100, number % 100);
    Date::new(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?).ok()
}

pub fn time(millis: i64) -> Timestamp {
    let edge = if millis < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(millis).unwrap_or(edge)
}

/// What a zone is called in the books. One without a name is told by what its clocks show.
pub fn zone_name(zone: &TimeZone) -> String {
    zone.iana_name().map(str::to_owned).unwrap_or_else(|| {
        let offset = |at: i64| zone.to_offset(time(at)).to_string();
        // Winter and summer, a few times over the years.
        (0..12).map(|n| offset((40 + n) * 15_778_800_000)).collect::<Vec<_>>().join(" ")
    })
}

/// A sum and its GPU-milliseconds.
pub type Sum = (Exact, i64);

/// How far the sums are made.
pub struct Progress {
    pub zone: TimeZone,
    zone_name: String,
    /// They hold the entries of all billables up to this one.
    pub up_to: i64,
}

impl Progress {
    /// As the file has it; begun anew in `own` zone where the file's zone is not known here.
    pub fn of(connection: &Connection, own: &TimeZone) -> Result<Self, LedgerError> {
        let (name, up_to) = read_progress(connection)?;
        let own_name = zone_name(own);
        let zone = if name == own_name { Some(own.clone()) } else { TimeZone::get(&name).ok() };
        match zone {
            Some(zone) => Ok(Progress { zone, zone_name: name, up_to }),
            None => Progress::begin(connection, own),
        }
    }

    fn begin(connection: &Connection, own: &TimeZone) -> Result<Self, LedgerError> {
        connection.execute("DELETE FROM day_sum", [])?;
        connection.execute("DELETE FROM month_sum", [])?;
        let progress = Progress { zone: own.clone(), zone_name: zone_name(own), up_to: 0 };
        progress.keep(connection)?;
        Ok(progress)
    }

    fn keep(&self, connection: &Connection) -> Result<(), LedgerError> {
        connection.execute(KEEP_PROGRESS, params![self.zone_name, self.up_to])?;
        Ok(())
    }

    pub fn holds(&self, billable: i64) -> bool {
        billable <= self.up_to
    }
}

fn read_progress(connection: &Connection) -> Result<(String, i64), LedgerError> {
    Ok(connection.prepare_cached(PROGRESS)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?)
}

/// What the sums are good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Whole,
    /// Some billables are missing.
    Unfinished,
    /// Their days are those of another zone.
    Elsewhere,
}

pub fn state(connection: &Connection, zone: &TimeZone) -> Result<State, LedgerError> {
    let (name, up_to) = read_progress(connection)?;
    Ok(match () {
        () if name != zone_name(zone) => State::Elsewhere,
        () if up_to == ALL => State::Whole,
        () => State::Unfinished,
    })
}

/// Adds the next billables up; true when there are more.
pub fn add_up_more(connection: &Connection, zone: &TimeZone) -> Result<bool, LedgerError> {
    let mut books = Books::new(connection, zone)?;
    if books.progress.zone_name != zone_name(zone) {
        books.progress = Progress::begin(connection, zone)?;
    }
    let mut left = AT_ONCE;
    while left > 0 && books.progress.up_to < ALL {
        let item = connection.prepare_cached(NEXT)?.query_row([books.progress.up_to], read_item).optional()?;
        books.progress.up_to = item.map_or(ALL, |item| item.key);
        if let Some(item) = item {
            left = left.saturating_sub(books.count_all(&item)? + 1);
        }
    }
    books.progress.keep(connection)?;
    let more = books.progress.up_to < ALL;
    books.finish()?;
    Ok(more)
}

/// From `key, book, since, lines, longest`.
pub fn read_item(row: &rusqlite::Row) -> rusqlite::Result<Item> {
    Ok(Item { key: row.get(0)?, book: row.get(1)?, since: row.get(2)?, lines: row.get(3)?, longest: row.get(4)? })
}

impl Books<'_> {
    /// Adds all entries of a billable up; answers how many they are.
    fn count_all(&mut self, item: &Item) -> Result<usize, LedgerError> {
        let mut counted = 0;
        for line in item.lines() {
            for piece in self.pieces(item, line, i64::MIN, i64::MAX)? {
                self.count_piece(item, &piece, 1)?;
                counted += 1;
            }
        }
        for component in COMPONENTS {
            for amount in self.amounts(item, component, i64::MIN, i64::MAX)? {
                self.count_amount(item, &amount, 1)?;
                counted += 1;
            }
        }
        Ok(counted)
    }
}

/// What a transaction adds to the sums.
#[derive(Default)]
pub struct Deltas {
    days: HashMap<(i64, i64, i64), Sum>,
    months: HashMap<(i64, i64, i64), Sum>,
}

impl Deltas {
    pub fn add_piece(&mut self, item: &Item, terms: i64, sort: &Sort, piece: &Piece, sign: i64, zone: &TimeZone) {
        let rate = Rate::from_picos(piece.rate, Currency::USD);
        for (date, from, to) in by_day(time(piece.from), time(piece.to), zone) {
            let ms = to.as_millisecond() - from.as_millisecond();
            self.add(item, date, terms, Exact::over(rate, from, to), i64::from(sort.gpus()) * ms, sign);
        }
    }

    pub fn add_amount(&mut self, item: &Item, terms: i64, amount: &Amount, sign: i64, zone: &TimeZone) {
        self.add_amount_within(item, terms, amount, (amount.place.from, amount.place.to), sign, zone);
    }

    /// The part of it that stands for some time. One of a moment is there as a whole.
    pub fn add_amount_within(
        &mut self,
        item: &Item,
        terms: i64,
        amount: &Amount,
        (from, to): (i64, i64),
        sign: i64,
        zone: &TimeZone,
    ) {
        let (start, end) = (time(amount.place.from), time(amount.place.to));
        if start >= end {
            return self.add(item, date_of(start, zone), terms, amount.amount, 0, sign);
        }
        let until = |at| amount.amount.until(at, start, end);
        for (date, from, to) in by_day(start.max(time(from)), end.min(time(to)), zone) {
            self.add(item, date, terms, until(to) - until(from), 0, sign);
        }
    }

    fn add(&mut self, item: &Item, date: Date, terms: i64, amount: Exact, gpu_ms: i64, sign: i64) {
        let amount = if sign < 0 { -amount } else { amount };
        let day = self.days.entry((day_number(date), item.book, terms)).or_default();
        let month = self.months.entry((item.key, month_number(date), terms)).or_default();
        for sum in [day, month] {
            sum.0 += amount;
            sum.1 += sign * gpu_ms;
        }
    }

    pub fn write(self, connection: &Connection) -> Result<(), LedgerError> {
        for (sql, sums) in [(ADD_DAY, self.days), (ADD_MONTH, self.months)] {
            let mut add = connection.prepare_cached(sql)?;
            let mut sums: Vec<_> = sums.into_iter().filter(|(_, sum)| *sum != Sum::default()).collect();
            // Neighbours share a page.
            sums.sort_unstable_by_key(|(key, _)| *key);
            for ((one, two, terms), (amount, gpu_ms)) in sums {
                let (micros, rest) = amount.parts();
                add.execute(params![one, two, terms, micros, rest, gpu_ms])?;
            }
        }
        Ok(())
    }

    /// The sums by day, for an answer that the tables cannot give.
    pub fn into_days(self) -> HashMap<(i64, i64, i64), Sum> {
        self.days
    }

    /// The sums by billable and month, for an answer that the tables cannot give.
    pub fn into_months(self) -> HashMap<(i64, i64, i64), Sum> {
        self.months
    }
}
