//! Days, weeks and months of a time zone.

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde::{Deserialize, Serialize};

/// Whole civil days, from the first to before the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Period {
    pub from: Date,
    /// The first day that is no longer in it.
    pub to: Date,
}

impl Period {
    pub fn day(date: Date) -> Self {
        Period { from: date, to: date.saturating_add(1.day()) }
    }

    /// The week from Monday that holds a day.
    pub fn week(date: Date) -> Self {
        let past = date.weekday().since(Weekday::Monday);
        let from = date.saturating_sub(i64::from(past).days());
        Period { from, to: from.saturating_add(7.days()) }
    }

    /// The month that holds a day.
    pub fn month(date: Date) -> Self {
        let from = date.first_of_month();
        Period { from, to: from.saturating_add(1.month()) }
    }

    /// When it begins. A midnight that a clock change skips is the first moment after it.
    pub fn start(&self, zone: &TimeZone) -> Timestamp {
        start_of(self.from, zone)
    }

    /// When it has ended.
    pub fn end(&self, zone: &TimeZone) -> Timestamp {
        start_of(self.to, zone)
    }

    /// How many days it has.
    pub fn len(&self) -> usize {
        self.days().count()
    }

    pub fn is_empty(&self) -> bool {
        self.from >= self.to
    }

    pub fn contains(&self, date: Date) -> bool {
        self.from <= date && date < self.to
    }

    /// Its days, the first one first.
    pub fn days(&self) -> impl Iterator<Item = Date> + use<> {
        let to = self.to;
        self.from.series(1.day()).take_while(move |date| *date < to)
    }
}

/// The civil day of a moment.
pub fn date_of(at: Timestamp, zone: &TimeZone) -> Date {
    zone.to_datetime(at).date()
}

/// The first moment of a day.
pub fn start_of(date: Date, zone: &TimeZone) -> Timestamp {
    let midnight = zone.to_ambiguous_timestamp(date.at(0, 0, 0, 0)).compatible();
    // Beyond every calendar there is no other day to confuse it with.
    midnight.unwrap_or(Timestamp::MAX)
}

/// Cuts a time into the civil days that it covers, each with its part.
pub fn by_day(from: Timestamp, to: Timestamp, zone: &TimeZone) -> impl Iterator<Item = (Date, Timestamp, Timestamp)> {
    let mut next = (from < to).then_some(from);
    std::iter::from_fn(move || {
        let start = next?;
        let date = date_of(start, zone);
        let end = start_of(date.saturating_add(1.day()), zone).min(to);
        // A zone that repeats an hour across midnight would stand still here.
        let end = if end > start { end } else { to };
        next = (end < to).then_some(end);
        Some((date, start, end))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn date(text: &str) -> Date {
        text.parse().unwrap()
    }

    fn hours(text: &str, zone: &str) -> i64 {
        let zone = TimeZone::get(zone).unwrap();
        let day = Period::day(date(text));
        day.end(&zone).duration_since(day.start(&zone)).as_hours()
    }

    /// COST-06 and its like: a day has the hours that its clocks show.
    #[rstest]
    #[case("2026-03-07", "America/New_York", 24)]
    #[case("2026-03-08", "America/New_York", 23)]
    #[case("2026-11-01", "America/New_York", 25)]
    #[case("2026-03-29", "Europe/Berlin", 23)]
    #[case("2026-10-25", "Europe/Berlin", 25)]
    #[case("2026-11-30", "Asia/Shanghai", 24)]
    // Midnight itself is skipped.
    #[case("2024-09-08", "America/Santiago", 23)]
    fn a_day_is_as_long_as_its_clocks_say(#[case] day: &str, #[case] zone: &str, #[case] length: i64) {
        assert_eq!(hours(day, zone), length);
    }

    #[test]
    fn weeks_begin_on_monday_and_months_on_the_first() {
        let week = Period::week(date("2026-11-29"));
        assert_eq!((week.from, week.to), (date("2026-11-23"), date("2026-11-30")));
        assert_eq!(Period::week(date("2026-11-30")).from, date("2026-11-30"));
        let month = Period::month(date("2026-02-14"));
        assert_eq!((month.from, month.to, month.len()), (date("2026-02-01"), date("2026-03-01"), 28));
    }

    proptest! {
        /// Whatever the zone, the days of a time follow one another and cover all of it.
        #[test]
        fn days_cover_a_time_without_gap_or_overlap(
            start in -1_000_000_000_000i64..3_000_000_000_000,
            length in 1i64..400 * 86_400_000,
            zone in prop::sample::select(vec!["UTC", "Asia/Shanghai", "America/New_York", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe", "America/Santiago", "Africa/Cairo", "Pacific/Apia"]),
        ) {
            let zone = TimeZone::get(zone).unwrap();
            let (from, to) = (Timestamp::from_millisecond(start).unwrap(), Timestamp::from_millisecond(start + length).unwrap());
            let mut reached = from;
            let mut last = None;
            for (date, start, end) in by_day(from, to, &zone) {
                prop_assert_eq!(start, reached);
                prop_assert!(end > start);
                prop_assert!(last.is_none_or(|last| date > last), "{} after {:?}", date, last);
                (reached, last) = (end, Some(date));
            }
            prop_assert_eq!(reached, to);
        }
    }
}
