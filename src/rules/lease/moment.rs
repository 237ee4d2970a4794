//! When, as a person writes it: after a time, at a clock time of their zone, or by what a job leaves.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp, ToSpan};
use providers::money::{Currency, Money};
use rust_decimal::Decimal;

use super::When;

/// Whoever writes more meant something else.
const LONGEST: SignedDuration = SignedDuration::from_hours(400 * 24);

/// What is wrong with what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mistake {
    NoTime,
    Past,
    TooFar,
    NoPath,
    NoProcess,
    NoMoney,
    /// What the instance costs is in this currency.
    OtherCurrency(Currency),
    /// A start has a time.
    StartByJob,
    /// A highest cost is for what follows a job that failed.
    CostWithoutJob,
    /// A job is one instance's.
    JobOfMany,
    /// The config has no command that arms a timer on the instance.
    NoOnBox,
    /// A timer on the instance has a time, and does not start it.
    OnBoxWithoutTime,
}

/// What the clocks of the zone do at a time that somebody named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shift {
    /// They skip it: it is as much later as they are put forward.
    Skipped,
    /// They show it twice: the first time is meant that is still to come.
    Twice,
}

/// A moment that somebody named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    pub at: Timestamp,
    pub shift: Option<Shift>,
}

/// Reads `file /path`, `pid 4711`, or a moment.
pub fn when(text: &str, zone: &TimeZone, now: Timestamp) -> Result<(When, Option<Shift>), Mistake> {
    let text = text.trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    match word.to_lowercase().as_str() {
        "file" | "文件" => Ok((file(rest.trim())?, None)),
        "pid" | "进程" => Ok((process(rest.trim())?, None)),
        _ => moment(text, zone, now).map(|moment| (When::At(moment.at), moment.shift)),
    }
}

/// An absolute path in one line.
pub fn file(text: &str) -> Result<When, Mistake> {
    let fits = text.starts_with('/') && text.trim_end_matches('/').len() > 1 && !text.contains(char::is_control);
    fits.then(|| When::File(text.to_owned())).ok_or(Mistake::NoPath)
}

/// The number of a process other than the first, which is the instance itself.
pub fn process(text: &str) -> Result<When, Mistake> {
    let pid = text.parse::<u32>().ok().filter(|pid| (2..=i32::MAX as u32).contains(pid)).ok_or(Mistake::NoProcess)?;
    Ok(When::Process { pid, began: None })
}

/// Reads `4h`, `1h30m`, `in 2d`; `22:00`, `tomorrow 8:00`; `2026-12-02 22:00`.
pub fn moment(text: &str, zone: &TimeZone, now: Timestamp) -> Result<Moment, Mistake> {
    let text = text.trim().to_lowercase();
    let (is_span, rest) = text.strip_prefix("in ").map_or((false, text.as_str()), |rest| (true, rest));
    if let Some(span) = span(rest) {
        return within(Moment { at: now.checked_add(span).map_err(|_| Mistake::TooFar)?, shift: None }, now);
    }
    if is_span {
        return Err(Mistake::NoTime);
    }
    let today = zone.to_datetime(now).date();
    let days = [("today", 0), ("今天", 0), ("tomorrow", 1), ("明天", 1)];
    let named = days.iter().find_map(|(word, days)| Some((text.strip_prefix(word)?, *days)));
    if let Some((rest, days)) = named {
        let date = today.checked_add(days.days()).map_err(|_| Mistake::TooFar)?;
        return within(at(date, clock(rest).ok_or(Mistake::NoTime)?, zone, now)?, now);
    }
    if let Some(time) = clock(&text) {
        // The next time that a clock shows it.
        let first = at(today, time, zone, now)?;
        let tomorrow = today.tomorrow().map_err(|_| Mistake::TooFar)?;
        return if first.at > now { Ok(first) } else { at(tomorrow, time, zone, now) };
    }
    let (date, time) = text.split_once([' ', 't']).ok_or(Mistake::NoTime)?;
    let date: Date = date.parse().map_err(|_| Mistake::NoTime)?;
    within(at(date, clock(time).ok_or(Mistake::NoTime)?, zone, now)?, now)
}

fn within(moment: Moment, now: Timestamp) -> Result<Moment, Mistake> {
    match moment.at.duration_since(now) {
        time if !time.is_positive() => Err(Mistake::Past),
        time if time > LONGEST => Err(Mistake::TooFar),
        _ => Ok(moment),
    }
}

/// Hours and minutes.
fn clock(text: &str) -> Option<Time> {
    let (hours, minutes) = text.trim().split_once([':', '：'])?;
    let number = |text: &str| (1..=2).contains(&text.len()).then(|| text.parse::<i8>().ok())?;
    let minutes = Some(minutes).filter(|minutes| minutes.len() == 2)?;
    Time::new(number(hours)?, number(minutes)?, 0, 0).ok()
}

fn at(date: Date, time: Time, zone: &TimeZone, now: Timestamp) -> Result<Moment, Mistake> {
    let there = zone.to_ambiguous_timestamp(DateTime::from_parts(date, time));
    let shift = match there.offset() {
        AmbiguousOffset::Unambiguous { .. } => None,
        AmbiguousOffset::Gap { .. } => Some(Shift::Skipped),
        AmbiguousOffset::Fold { .. } => Some(Shift::Twice),
    };
    // Skipped: as much later. Twice: the first.
    let first = there.compatible().map_err(|_| Mistake::TooFar)?;
    if shift == Some(Shift::Twice) && first <= now {
        return Ok(Moment { at: there.later().map_err(|_| Mistake::TooFar)?, shift });
    }
    Ok(Moment { at: first, shift })
}

/// `4h`, `1h30m`, `90 min`, `2天`: numbers, each with its unit.
fn span(text: &str) -> Option<SignedDuration> {
    let mut seconds = 0_i64;
    let mut rest = text.trim();
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).filter(|at| *at > 0)?;
        let number: i64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let end = rest.find(|c: char| c.is_ascii_digit() || c.is_whitespace()).unwrap_or(rest.len());
        let unit = match &rest[..end] {
            "m" | "min" | "mins" | "minute" | "minutes" | "分" | "分钟" => 60,
            "h" | "hour" | "hours" | "小时" | "时" => 3600,
            "d" | "day" | "days" | "天" => 86_400,
            "w" | "week" | "weeks" | "周" => 7 * 86_400,
            _ => return None,
        };
        seconds = seconds.checked_add(number.checked_mul(unit)?)?;
        rest = rest[end..].trim_start();
    }
    (!text.trim().is_empty()).then(|| SignedDuration::from_secs(seconds))
}

/// `5 USD`; nothing at all is `0 USD`.
pub fn money(text: &str) -> Result<Money, Mistake> {
    let (amount, currency) = text.trim().split_once(char::is_whitespace).ok_or(Mistake::NoMoney)?;
    let amount: Decimal = amount.parse().map_err(|_| Mistake::NoMoney)?;
    let currency = Currency::parse(currency.trim()).ok_or(Mistake::NoMoney)?;
    if amount.is_sign_negative() { Err(Mistake::NoMoney) } else { Ok(Money::new(amount, currency)) }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn told(text: &str, zone: &str, now: &str) -> Result<(String, Option<Shift>), Mistake> {
        let zone = TimeZone::get(zone).unwrap();
        moment(text, &zone, now.parse().unwrap()).map(|moment| (moment.at.to_string(), moment.shift))
    }

    #[rstest]
    #[case::hours("4h", "2026-11-30T14:00:00Z")]
    #[case::both("1h30m", "2026-11-30T11:30:00Z")]
    #[case::words("in 90 min", "2026-11-30T11:30:00Z")]
    #[case::days(" 2d ", "2026-12-02T10:00:00Z")]
    #[case::chinese("4小时30分", "2026-11-30T14:30:00Z")]
    #[case::today("22:00", "2026-11-30T14:00:00Z")]
    #[case::in_the_past_is_tomorrow("9:30", "2026-12-01T01:30:00Z")]
    #[case::this_minute_is_tomorrow("18:00", "2026-12-01T10:00:00Z")]
    #[case::tomorrow("tomorrow 22:00", "2026-12-01T14:00:00Z")]
    #[case::in_chinese("明天8:00", "2026-12-01T00:00:00Z")]
    #[case::date("2026-12-02 22:00", "2026-12-02T14:00:00Z")]
    #[case::iso("2026-12-02T22:00", "2026-12-02T14:00:00Z")]
    fn a_moment_is_read_in_the_persons_zone(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(told(text, "Asia/Shanghai", "2026-11-30T10:00:00Z"), Ok((expected.to_owned(), None)));
    }

    #[rstest]
    #[case("", Mistake::NoTime)]
    #[case("4", Mistake::NoTime)]
    #[case("h", Mistake::NoTime)]
    #[case("4x", Mistake::NoTime)]
    #[case("-4h", Mistake::NoTime)]
    #[case("in 22:00", Mistake::NoTime)]
    #[case("25:00", Mistake::NoTime)]
    #[case("22:5", Mistake::NoTime)]
    #[case("2026-02-30 10:00", Mistake::NoTime)]
    #[case("0m", Mistake::Past)]
    #[case("today 9:30", Mistake::Past)]
    #[case("2026-11-30 17:59", Mistake::Past)]
    #[case("500d", Mistake::TooFar)]
    #[case("99999999999999999h", Mistake::NoTime)]
    #[case("9999999999d", Mistake::TooFar)]
    #[case("2099-01-01 10:00", Mistake::TooFar)]
    fn what_is_no_moment_to_come_is_refused(#[case] text: &str, #[case] expected: Mistake) {
        assert_eq!(told(text, "Asia/Shanghai", "2026-11-30T10:00:00Z"), Err(expected));
    }

    /// In Berlin clocks go from 2:00 to 3:00 on 29 March 2026, and from 3:00 to 2:00 on 25 October.
    #[rstest]
    #[case::skipped("2:30", "2026-03-28T20:00:00Z", "2026-03-29T01:30:00Z", Some(Shift::Skipped))]
    #[case::before("1:30", "2026-03-28T20:00:00Z", "2026-03-29T00:30:00Z", None)]
    #[case::twice("2:30", "2026-10-24T20:00:00Z", "2026-10-25T00:30:00Z", Some(Shift::Twice))]
    #[case::the_second_one("2:30", "2026-10-25T00:45:00Z", "2026-10-25T01:30:00Z", Some(Shift::Twice))]
    #[case::hours_are_hours("12h", "2026-10-24T20:00:00Z", "2026-10-25T08:00:00Z", None)]
    fn a_change_of_the_clocks_is_told(
        #[case] text: &str,
        #[case] now: &str,
        #[case] expected: &str,
        #[case] shift: Option<Shift>,
    ) {
        assert_eq!(told(text, "Europe/Berlin", now), Ok((expected.to_owned(), shift)));
    }

    #[rstest]
    #[case("file /root/done", Ok(When::File("/root/done".into())))]
    #[case("文件 /root/my done", Ok(When::File("/root/my done".into())))]
    #[case("file done", Err(Mistake::NoPath))]
    #[case("file /", Err(Mistake::NoPath))]
    #[case("file", Err(Mistake::NoPath))]
    #[case("pid 4711", Ok(When::Process { pid: 4711, began: None }))]
    #[case("pid 1", Err(Mistake::NoProcess))]
    #[case("pid 4711x", Err(Mistake::NoProcess))]
    #[case("pid", Err(Mistake::NoProcess))]
    #[case("1h", Ok(When::At("2026-11-30T11:00:00Z".parse().unwrap())))]
    fn a_job_is_a_file_or_a_process(#[case] text: &str, #[case] expected: Result<When, Mistake>) {
        let now = "2026-11-30T10:00:00Z".parse().unwrap();
        assert_eq!(when(text, &TimeZone::UTC, now).map(|(when, _)| when), expected);
    }

    #[rstest]
    #[case("5 USD", Some("5"))]
    #[case(" 0 usd ", Some("0"))]
    #[case("2.50 CNY", Some("2.50"))]
    #[case("-1 USD", None)]
    #[case("5", None)]
    #[case("USD 5", None)]
    #[case("5 dollars", None)]
    fn a_highest_cost_has_its_currency(#[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(money(text).ok().map(|money| money.amount.to_string()).as_deref(), expected);
    }
}
