//! Which days spend is looked at: a range that goes with the calendar, or days that somebody typed.

use jiff::ToSpan;
use jiff::civil::Date;

use super::Period;

/// A range of days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Range {
    Day,
    /// From Monday.
    Week,
    #[default]
    Month,
    /// The last ninety days, today included.
    Quarter,
    Year,
    Days(Period),
}

/// How many days [`Range::Quarter`] has.
const QUARTER: i64 = 90;

impl Range {
    /// Its days, `back` steps before the present ones.
    pub fn period(self, today: Date, back: i32) -> Period {
        let back = i64::from(back);
        match self {
            Range::Day => Period::day(today.saturating_sub(back.days())),
            Range::Week => Period::week(today.saturating_sub(back.weeks())),
            Range::Month => Period::month(today.first_of_month().saturating_sub(back.months())),
            Range::Quarter => {
                let to = today.saturating_add(1.day()).saturating_sub((back * QUARTER).days());
                Period { from: to.saturating_sub(QUARTER.days()), to }
            }
            Range::Year => {
                let from = today.first_of_year().saturating_sub(back.years());
                Period { from, to: from.saturating_add(1.year()) }
            }
            Range::Days(period) => {
                let shift = (period.len() as i64 * back).days();
                Period { from: period.from.saturating_sub(shift), to: period.to.saturating_sub(shift) }
            }
        }
    }
}

/// Why a text names no days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeMistake {
    /// It is no date, and no two with dots between.
    NoDate,
    /// The last day is before the first.
    Reversed,
    /// It begins after today.
    Future,
    /// Longer than ten years.
    TooLong,
}

/// The longest range that is counted day by day.
const LONGEST: i64 = 3660;

/// Reads `2026-11-01..2026-11-15` (both days are in it), one day, or a month as `2026-11`. Without a last day
/// the range goes on to today.
pub fn parse_days(text: &str, today: Date) -> Result<Period, RangeMistake> {
    let one = |text: &str| days_of(text.trim()).ok_or(RangeMistake::NoDate);
    let period = match text.split_once("..") {
        None => one(text)?,
        Some((first, last)) if last.trim().is_empty() => {
            let from = one(first)?.from;
            Period { from, to: from.max(today).saturating_add(1.day()) }
        }
        Some((first, last)) => Period { from: one(first)?.from, to: one(last)?.to },
    };
    match () {
        () if period.is_empty() => Err(RangeMistake::Reversed),
        () if period.from > today => Err(RangeMistake::Future),
        () if period.from.saturating_add(LONGEST.days()) < period.to => Err(RangeMistake::TooLong),
        () => Ok(period),
    }
}

/// A day or a month.
fn days_of(text: &str) -> Option<Period> {
    if let Some(date) = plain_date(text) {
        return Some(Period::day(date));
    }
    plain_date(&format!("{text}-01")).map(Period::month)
}

/// Only the form of the calendar: a parser of times would take far more.
fn plain_date(text: &str) -> Option<Date> {
    let form = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    if form { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn date(text: &str) -> Date {
        text.parse().unwrap()
    }

    #[rstest]
    #[case::today(Range::Day, 0, "2026-11-30", "2026-12-01")]
    #[case::yesterday(Range::Day, 1, "2026-11-29", "2026-11-30")]
    #[case::week(Range::Week, 1, "2026-11-23", "2026-11-30")]
    #[case::month(Range::Month, 0, "2026-11-01", "2026-12-01")]
    // Counted from the first: the thirtieth has no like in February.
    #[case::february(Range::Month, 9, "2026-02-01", "2026-03-01")]
    #[case::quarter(Range::Quarter, 0, "2026-09-02", "2026-12-01")]
    #[case::quarter_before(Range::Quarter, 1, "2026-06-04", "2026-09-02")]
    #[case::year(Range::Year, 1, "2025-01-01", "2026-01-01")]
    fn a_range_steps_by_its_own_length(#[case] range: Range, #[case] back: i32, #[case] from: &str, #[case] to: &str) {
        let period = range.period(date("2026-11-30"), back);
        assert_eq!((period.from, period.to), (date(from), date(to)));
    }

    #[test]
    fn typed_days_step_by_as_many_days() {
        let range = Range::Days(Period { from: date("2026-11-01"), to: date("2026-11-16") });
        let before = range.period(date("2026-11-30"), 1);
        assert_eq!((before.from, before.to), (date("2026-10-17"), date("2026-11-01")));
    }

    #[rstest]
    #[case::both("2026-11-01..2026-11-15", Ok(("2026-11-01", "2026-11-16")))]
    #[case::blanks(" 2026-11-01 .. 2026-11-15 ", Ok(("2026-11-01", "2026-11-16")))]
    #[case::one("2026-11-07", Ok(("2026-11-07", "2026-11-08")))]
    #[case::month("2026-02", Ok(("2026-02-01", "2026-03-01")))]
    #[case::months("2026-09..2026-10", Ok(("2026-09-01", "2026-11-01")))]
    #[case::open("2026-11-20..", Ok(("2026-11-20", "2026-12-01")))]
    #[case::reversed("2026-11-15..2026-11-01", Err(RangeMistake::Reversed))]
    #[case::future("2026-12-01", Err(RangeMistake::Future))]
    #[case::open_future("2027-01-01..", Err(RangeMistake::Future))]
    #[case::no_day("2026-02-30", Err(RangeMistake::NoDate))]
    #[case::words("last week", Err(RangeMistake::NoDate))]
    #[case::three("2026-11-01..2026-11-02..2026-11-03", Err(RangeMistake::NoDate))]
    #[case::half("..2026-11-02", Err(RangeMistake::NoDate))]
    #[case::time("2026-11-01T10:00", Err(RangeMistake::NoDate))]
    #[case::wide("２０２６-11", Err(RangeMistake::NoDate))]
    #[case::empty("", Err(RangeMistake::NoDate))]
    #[case::long("0001-01-01..", Err(RangeMistake::TooLong))]
    fn typed_days_are_read_or_refused(#[case] text: &str, #[case] expected: Result<(&str, &str), RangeMistake>) {
        let expected = expected.map(|(from, to)| Period { from: date(from), to: date(to) });
        assert_eq!(parse_days(text, date("2026-11-30")), expected);
    }
}
