//! The night: when nobody is there to act, and from when on one should know what happens in it.

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};

use super::Awake;
use crate::rules::spend::date_of;

/// So long before people go to sleep they are told what the night brings.
const EVENING: SignedDuration = SignedDuration::from_hours(3);

/// One time of sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Night {
    /// Nobody is there from then on.
    pub from: Timestamp,
    /// Somebody is there again.
    pub to: Timestamp,
}

impl Night {
    /// Whether a moment lies in it.
    pub fn holds(&self, at: Timestamp) -> bool {
        (self.from..self.to).contains(&at)
    }
}

impl Awake {
    /// The night that people are to be told of now: the one that it is, or the one that begins within three hours.
    /// `None` by day, and for people who never sleep.
    pub fn night(&self, zone: &TimeZone, now: Timestamp) -> Option<Night> {
        let today = date_of(now, zone);
        let begins = [today.yesterday(), Ok(today), today.tomorrow()].into_iter().flatten();
        begins
            .filter_map(|begins| self.night_of(begins, zone))
            .find(|night| night.from - EVENING <= now && now < night.to)
    }

    /// The night that begins on a day, after midnight perhaps.
    fn night_of(&self, begins: Date, zone: &TimeZone) -> Option<Night> {
        if self.from == self.to {
            return None;
        }
        let ends = if self.from > self.to { begins } else { begins.checked_add(1.day()).ok()? };
        // A time that the clock skips is the one after it.
        let moment = |date: Date, time: Time| zone.to_ambiguous_timestamp(date.to_datetime(time)).compatible().ok();
        Some(Night { from: moment(begins, self.to)?, to: moment(ends, self.from)? })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Awake by this span; the clock of a zone, and what the night is by it.
    #[rstest]
    #[case::by_day(("08:00", "23:00"), "UTC", "2026-11-30T19:59:59", None)]
    #[case::in_the_evening(("08:00", "23:00"), "UTC", "2026-11-30T20:00:00", Some(("2026-11-30T23:00", "2026-12-01T08:00")))]
    #[case::after_midnight(("08:00", "23:00"), "UTC", "2026-12-01T03:00:00", Some(("2026-11-30T23:00", "2026-12-01T08:00")))]
    #[case::in_the_morning(("08:00", "23:00"), "UTC", "2026-12-01T08:00:00", None)]
    #[case::awake_over_midnight(("10:00", "02:00"), "UTC", "2026-11-30T23:30:00", Some(("2026-12-01T02:00", "2026-12-01T10:00")))]
    #[case::from_midnight(("08:00", "00:00"), "UTC", "2026-11-30T21:00:00", Some(("2026-12-01T00:00", "2026-12-01T08:00")))]
    #[case::elsewhere(("08:00", "23:00"), "Asia/Shanghai", "2026-11-30T20:00:00", Some(("2026-11-30T23:00", "2026-12-01T08:00")))]
    #[case::never_asleep(("08:00", "08:00"), "UTC", "2026-11-30T08:00:00", None)]
    #[case::hardly_awake(("08:00", "09:00"), "UTC", "2026-11-30T07:00:00", Some(("2026-11-29T09:00", "2026-11-30T08:00")))]
    #[case::a_short_night(("08:00", "23:00"), "Europe/Berlin", "2026-03-28T21:00:00", Some(("2026-03-28T23:00", "2026-03-29T08:00")))]
    fn a_night_is_told_of_from_the_evening_before_until_it_ends(
        #[case] awake: (&str, &str),
        #[case] zone: &str,
        #[case] now: &str,
        #[case] expected: Option<(&str, &str)>,
    ) {
        let awake = Awake { from: awake.0.parse().unwrap(), to: awake.1.parse().unwrap() };
        let zone = TimeZone::get(zone).unwrap();
        let moment = |text: &str| {
            let civil: jiff::civil::DateTime = text.parse().unwrap();
            zone.to_timestamp(civil).unwrap()
        };
        let night = awake.night(&zone, moment(now));
        assert_eq!(night, expected.map(|(from, to)| Night { from: moment(from), to: moment(to) }));
    }

    #[test]
    fn nights_are_as_long_as_the_clock_says() {
        let awake = Awake { from: "08:00".parse().unwrap(), to: "23:00".parse().unwrap() };
        let hours = |now: &str| {
            let night = awake.night(&TimeZone::get("Europe/Berlin").unwrap(), now.parse().unwrap()).unwrap();
            night.to.duration_since(night.from).as_hours()
        };
        assert_eq!(hours("2026-03-29T00:00:00Z"), 8);
        assert_eq!(hours("2026-10-25T00:00:00Z"), 10);
        assert_eq!(hours("2026-11-30T00:00:00Z"), 9);
    }
}
