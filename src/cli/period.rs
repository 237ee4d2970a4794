//! The days that a command is about, from what was typed.

use jiff::ToSpan;
use jiff::civil::Date;

use super::Stop;
use crate::rules::spend::Period;

/// From when to when, in civil days of the configured zone.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Days {
    /// The first day: 2026-11-01, 2026-11, today or yesterday. Without it, the month so far.
    #[arg(long, value_name = "DAY")]
    pub from: Option<String>,
    /// The last day, itself included, in the same words. Without it, today.
    #[arg(long, value_name = "DAY")]
    pub to: Option<String>,
}

impl Days {
    /// The days meant; without any, the present month to its end.
    pub fn period(&self, today: Date) -> Result<Period, Stop> {
        let from = self.from.as_deref().map(|text| read("--from", text, today)).transpose()?;
        let to = self.to.as_deref().map(|text| read("--to", text, today)).transpose()?;
        let period = match (from, to) {
            (None, None) => Period::month(today),
            (Some(from), None) => Period { from: from.from, to: Period::day(today).to },
            (None, Some(to)) => Period { from: last_day(to).first_of_month(), to: to.to },
            (Some(from), Some(to)) => Period { from: from.from, to: to.to },
        };
        if !period.is_empty() {
            return Ok(period);
        }
        let last = last_day(period);
        Err(Stop::usage(match to {
            Some(_) => format!("--from {} comes after --to {last}", period.from),
            None => format!("--from {} comes after today, {today}", period.from),
        }))
    }
}

fn last_day(period: Period) -> Date {
    period.to.saturating_sub(1.day())
}

/// What one word means: a day, or all days of a month.
pub fn read(flag: &str, text: &str, today: Date) -> Result<Period, Stop> {
    let day = |text: &str| text.parse::<Date>().ok().filter(|date| date.to_string() == text);
    match text {
        "today" => Ok(Period::day(today)),
        "yesterday" => Ok(Period::day(today.saturating_sub(1.day()))),
        _ => day(text).map(Period::day).or_else(|| day(&format!("{text}-01")).map(Period::month)).ok_or_else(|| {
            let text = providers::text::clean(text);
            Stop::usage(format!(
                "{flag} {text}: this is no day; write it like {today}, {}, today or yesterday",
                today.strftime("%Y-%m")
            ))
        }),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn of(from: Option<&str>, to: Option<&str>) -> Result<String, String> {
        let days = Days { from: from.map(str::to_owned), to: to.map(str::to_owned) };
        let period = days.period("2026-11-30".parse().unwrap()).map_err(|stop| stop.message)?;
        Ok(format!("{} {}", period.from, period.to))
    }

    #[rstest]
    #[case::this_month(None, None, "2026-11-01 2026-12-01")]
    #[case::so_far(Some("2026-11-10"), None, "2026-11-10 2026-12-01")]
    #[case::one_day(Some("yesterday"), Some("yesterday"), "2026-11-29 2026-11-30")]
    #[case::whole_months(Some("2026-09"), Some("2026-10"), "2026-09-01 2026-11-01")]
    #[case::the_last_day_is_part_of_it(Some("2026-10-01"), Some("2026-10-15"), "2026-10-01 2026-10-16")]
    #[case::of_its_month(None, Some("2026-10-15"), "2026-10-01 2026-10-16")]
    #[case::a_month(None, Some("2026-10"), "2026-10-01 2026-11-01")]
    #[case::today(Some("today"), None, "2026-11-30 2026-12-01")]
    fn days_mean_what_they_say(#[case] from: Option<&str>, #[case] to: Option<&str>, #[case] period: &str) {
        assert_eq!(of(from, to).unwrap(), period);
    }

    #[rstest]
    #[case(Some("2026-11-31"), None, "--from 2026-11-31: this is no day")]
    #[case(Some("2026-13"), None, "--from 2026-13: this is no day")]
    #[case(None, Some("11/30/2026"), "--to 11/30/2026: this is no day")]
    #[case(None, Some("2026-11-30T09:00"), "this is no day")]
    #[case(None, Some(""), "this is no day")]
    #[case(Some("20261101"), None, "this is no day")]
    #[case(Some("2026-11-20"), Some("2026-11-10"), "--from 2026-11-20 comes after --to 2026-11-10")]
    #[case(Some("2026-12-24"), None, "--from 2026-12-24 comes after today, 2026-11-30")]
    fn what_cannot_be_meant_is_told(#[case] from: Option<&str>, #[case] to: Option<&str>, #[case] told: &str) {
        let message = of(from, to).unwrap_err();
        assert!(message.contains(told), "{message}");
    }
}
