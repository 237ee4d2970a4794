//! A time that somebody types: from when on something counts.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::start_of;

/// From when on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// All that is known.
    All,
    At(Timestamp),
}

impl From {
    pub fn time(self) -> Option<Timestamp> {
        match self {
            From::All => None,
            From::At(at) => Some(at),
        }
    }

    /// Reads `now` (or nothing), `all`, `45m`, `6h`, `3d` or `2w` ago, a date, or a date and a time of the zone.
    /// `None` when it cannot be read or lies in the future.
    pub fn read(text: &str, zone: &TimeZone, now: Timestamp) -> Option<From> {
        let text = text.trim();
        let at = match text {
            "" | "now" => Some(now),
            "all" => return Some(From::All),
            text => ago(text, now).or_else(|| date(text, zone)),
        };
        at.filter(|at| *at <= now).map(From::At)
    }
}

fn ago(text: &str, now: Timestamp) -> Option<Timestamp> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let minutes: i64 = match unit {
        "m" => 1,
        "h" => 60,
        "d" => 24 * 60,
        "w" => 7 * 24 * 60,
        _ => return None,
    };
    let number: u32 = number.parse().ok()?;
    now.checked_sub(SignedDuration::from_secs(i64::from(number).checked_mul(minutes * 60)?)).ok()
}

fn date(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    // A bare date is its first moment, also where a clock change skips midnight.
    if text.len() <= "2026-11-01".len() {
        return text.parse::<Date>().ok().map(|date| start_of(date, zone));
    }
    let time: DateTime = text.replacen(' ', "T", 1).parse().ok()?;
    zone.to_ambiguous_timestamp(time).compatible().ok()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("", Some("2026-11-30T10:00:00Z"))]
    #[case("now", Some("2026-11-30T10:00:00Z"))]
    #[case("90m", Some("2026-11-30T08:30:00Z"))]
    #[case(" 3d ", Some("2026-11-27T10:00:00Z"))]
    #[case("2w", Some("2026-11-16T10:00:00Z"))]
    #[case("2026-11-01", Some("2026-10-31T16:00:00Z"))]
    #[case("2026-11-01 14:30", Some("2026-11-01T06:30:00Z"))]
    #[case("2026-11-30T17:59:59", Some("2026-11-30T09:59:59Z"))]
    #[case("2026-12-01", None)]
    #[case("2026-02-30", None)]
    #[case("-3d", None)]
    #[case("3", None)]
    #[case("99999999999d", None)]
    #[case("yesterday", None)]
    #[case("三", None)]
    fn a_time_is_read_in_the_zone_and_never_lies_ahead(#[case] text: &str, #[case] expected: Option<&str>) {
        let zone = TimeZone::get("Asia/Shanghai").unwrap();
        let now = "2026-11-30T10:00:00Z".parse().unwrap();
        let read = From::read(text, &zone, now).map(|from| from.time().unwrap().to_string());
        assert_eq!(read.as_deref(), expected);
        assert_eq!(From::read("all", &zone, now), Some(From::All));
    }
}
