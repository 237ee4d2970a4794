//! Figures and cut texts: money, rates, ages, dates, sizes. Here, and only here, amounts are rounded.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use providers::money::{Burn, Currency, Money, Rate};
use ratatui::buffer::CellWidth;
use rust_decimal::{Decimal, RoundingStrategy};
use unicode_segmentation::UnicodeSegmentation;

use super::glyphs::Glyphs;
use super::language::{Language, Unit};
use super::look::Look;
use super::scene::Scene;
use crate::rules::spend::{Amounts, Period, Sums};

/// The graphemes of a text that take room on the screen: what is left never speaks to the terminal.
pub fn graphemes(text: &str) -> impl Iterator<Item = (&str, u16)> {
    text.graphemes(true)
        .filter(|symbol| !symbol.contains(char::is_control))
        .map(|symbol| (symbol, symbol.cell_width()))
        .filter(|(_, cells)| *cells > 0)
}

/// How many cells a text takes.
pub fn width(text: &str) -> u16 {
    graphemes(text).fold(0, |sum, (_, cells)| sum.saturating_add(cells))
}

/// A text in at most `cells` cells, never cut inside a character; what was cut ends with `mark`.
pub fn cut(text: &str, cells: u16, mark: &str) -> String {
    let mark_cells = width(mark);
    let mut out = String::with_capacity(text.len().min(usize::from(cells) * 4));
    let (mut used, mut kept, mut kept_at) = (0u16, 0u16, 0usize);
    for (symbol, wide) in graphemes(text) {
        if used.saturating_add(wide) > cells {
            // Back to where the mark still fits.
            out.truncate(kept_at);
            if kept + mark_cells <= cells {
                out.push_str(mark);
            }
            return out;
        }
        used += wide;
        out.push_str(symbol);
        if used + mark_cells <= cells {
            (kept, kept_at) = (used, out.len());
        }
    }
    out
}

/// The sign of a currency, or its code and a blank.
pub fn symbol(currency: Currency, glyphs: &Glyphs) -> String {
    match currency {
        Currency::USD => "$".to_owned(),
        Currency::CNY => "¥".to_owned(),
        Currency::EUR => glyphs.euro.to_owned(),
        other => format!("{} ", other.code()),
    }
}

/// An hourly amount in digits: cents, or a tenth of one where it is less than ten of them.
pub fn hourly(amount: Decimal) -> String {
    let small = amount < Decimal::new(1, 1);
    if amount.is_zero() || !small {
        return grouped(amount, 2);
    }
    if amount < Decimal::new(5, 4) { "<0.001".to_owned() } else { grouped(amount, 3) }
}

/// An amount in digits, to the cent.
pub fn digits(amount: Decimal) -> String {
    grouped(amount, 2)
}

/// An amount in digits as one says it: to the cent below a hundred, else whole.
pub fn brief(amount: Decimal) -> String {
    let whole = amount.abs() >= Decimal::ONE_HUNDRED || amount.fract().is_zero();
    grouped(amount, if whole { 0 } else { 2 })
}

/// A limit in digits: nothing of it is rounded away but what is less than a cent.
pub fn limit(amount: Decimal) -> String {
    grouped(amount, if amount.fract().is_zero() { 0 } else { 2 })
}

/// Digits with the sign of their currency: `$1,204`, `-$9.50`.
pub fn with_sign(digits: &str, currency: Currency, glyphs: &Glyphs) -> String {
    match digits.strip_prefix('-') {
        Some(digits) => format!("-{}{digits}", symbol(currency, glyphs)),
        None => format!("{}{digits}", symbol(currency, glyphs)),
    }
}

/// An amount that was spent, in digits: to the cent, and what is less than one is said to be.
pub fn spent(amount: Decimal) -> String {
    let least = Decimal::new(5, 3);
    match amount {
        _ if amount.is_zero() || amount.abs() >= least => grouped(amount, 2),
        _ if amount.is_sign_negative() => "-<0.01".to_owned(),
        _ => "<0.01".to_owned(),
    }
}

/// The same with the sign of its currency: `$1,204.55`, `<$0.01`.
pub fn spent_money(amount: Decimal, currency: Currency, glyphs: &Glyphs) -> String {
    let digits = spent(amount);
    let at = digits.find(|c: char| c.is_ascii_digit()).unwrap_or(0);
    format!("{}{}{}", &digits[..at], symbol(currency, glyphs), &digits[at..])
}

/// GPU-milliseconds in hours, to a tenth.
pub fn gpu_hours(milliseconds: i64) -> String {
    let hours = Decimal::from(milliseconds) / Decimal::from(3_600_000);
    if milliseconds > 0 && hours < Decimal::new(5, 2) { "<0.1".to_owned() } else { grouped(hours, 1) }
}

/// Digits with so many places and a mark at the thousands.
fn grouped(amount: Decimal, places: u32) -> String {
    let mut rounded = amount.round_dp_with_strategy(places, RoundingStrategy::MidpointAwayFromZero);
    rounded.rescale(places);
    let text = rounded.abs().to_string();
    let (whole, rest) = text.split_once('.').map_or((text.as_str(), ""), |(whole, rest)| (whole, rest));
    let mut out = String::new();
    if rounded.is_sign_negative() && !rounded.is_zero() {
        out.push('-');
    }
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if !rest.is_empty() {
        out.push('.');
        out.push_str(rest);
    }
    out
}

/// `$914.20`, `-¥3.00`.
pub fn money(money: Money, glyphs: &Glyphs) -> String {
    with_sign(&grouped(money.amount, 2), money.currency, glyphs)
}

/// `$187.41 ¥88.20`: what was spent, `~` before what is partly assumed. The main currency comes first, and
/// alone when nothing was spent in another.
pub fn sums(sums: &Sums, scene: &Scene) -> String {
    sums_to(sums, scene, |_| 2)
}

/// The same in whole units, where they tell enough: `$187 ¥88`.
pub fn sums_briefly(sums: &Sums, scene: &Scene) -> String {
    sums_to(sums, scene, |amount| if amount < Decimal::TEN { 2 } else { 0 })
}

fn sums_to(sums: &Sums, scene: &Scene, places: impl Fn(Decimal) -> u32) -> String {
    let first = scene.currency();
    let mut shown: Vec<(Currency, Amounts)> = sums.0.iter().map(|(currency, amounts)| (*currency, *amounts)).collect();
    shown.retain(|(_, amounts)| !amounts.total().is_zero());
    shown.sort_by_key(|(currency, _)| *currency != first);
    if shown.is_empty() {
        shown.push((first, Amounts::default()));
    }
    let part = |(currency, amounts): &(Currency, Amounts)| {
        let about = if amounts.assumed.is_zero() { "" } else { "~" };
        let whole = amounts.total().amount();
        match places(whole) {
            2 => format!("{about}{}", spent_money(whole, *currency, scene.look.glyphs)),
            places => format!("{about}{}{}", symbol(*currency, scene.look.glyphs), grouped(whole, places)),
        }
    };
    shown.iter().map(part).collect::<Vec<_>>().join(" ")
}

/// `$21.55/h`.
pub fn rate(rate: Rate, look: &Look) -> String {
    format!("{}/{}", bare_rate(rate, look.glyphs), look.language.per_hour())
}

/// `$21.55`: a rate where its head says what it is.
pub fn bare_rate(rate: Rate, glyphs: &Glyphs) -> String {
    format!("{}{}", symbol(rate.currency, glyphs), hourly(rate.amount()))
}

/// `$0.41/h + ¥4.36/h`; `None` when nothing is charged. The main currency comes first.
pub fn rates(rates: &[Rate], first: Currency, look: &Look) -> Option<String> {
    let parts: Vec<String> = in_order(rates, first).into_iter().map(|one| rate(one, look)).collect();
    (!parts.is_empty()).then(|| parts.join(" + "))
}

/// The same for a sum.
pub fn burn(sum: &Burn, first: Currency, look: &Look) -> Option<String> {
    rates(sum.rates(), first, look)
}

/// Rates that are not zero, the main currency first.
pub fn in_order(rates: &[Rate], first: Currency) -> Vec<Rate> {
    let mut shown: Vec<Rate> = rates.iter().copied().filter(|rate| !rate.is_zero()).collect();
    shown.sort_by_key(|rate| rate.currency != first);
    shown
}

/// Whole seconds, never negative.
fn seconds(time: SignedDuration) -> i64 {
    time.as_secs().max(0)
}

/// How old something is, in its largest unit: `4 s`, `3 m`, `5 h`, `9 d`.
pub fn age(time: SignedDuration, language: Language) -> String {
    let seconds = seconds(time);
    let (count, unit) = match seconds {
        0..60 => (seconds, Unit::Second),
        60..3600 => (seconds / 60, Unit::Minute),
        3600..172_800 => (seconds / 3600, Unit::Hour),
        _ => (seconds / 86_400, Unit::Day),
    };
    format!("{count} {}", language.unit(unit))
}

/// The age of a moment.
pub fn since(moment: Timestamp, now: Timestamp, language: Language) -> String {
    age(now.duration_since(moment), language)
}

/// A time in its two largest units: `1 d 2 h`, `3 h 40 m`, `12 m`, `40 s`.
pub fn span(time: SignedDuration, language: Language) -> String {
    let seconds = seconds(time);
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    let part = |count: i64, unit| format!("{count} {}", language.unit(unit));
    let lesser = |count: i64, unit| (count > 0).then(|| format!("{count} {}", language.lesser_unit(unit)));
    let (large, small) = match (days, hours, minutes) {
        (0, 0, 0) => return part(seconds, Unit::Second),
        (0, 0, _) => return part(minutes, Unit::Minute),
        (0, _, _) => (part(hours, Unit::Hour), lesser(minutes, Unit::Minute)),
        _ => (part(days, Unit::Day), lesser(hours, Unit::Hour)),
    };
    small.map_or(large.clone(), |small| format!("{large} {small}"))
}

/// Seconds until a moment, counted up to the next whole one: a countdown ends at 1.
pub fn seconds_left(until: Timestamp, now: Timestamp) -> i64 {
    let left = until.duration_since(now).as_millis().max(0);
    i64::try_from(left.div_euclid(1000) + i128::from(left % 1000 != 0)).unwrap_or(i64::MAX)
}

/// In seconds.
const HALF_A_YEAR: i64 = 182 * 86_400;

/// A moment as a person in this zone says it: the clock time today, the weekday within six days, else the date.
pub fn moment(at: Timestamp, now: Timestamp, zone: &TimeZone, language: Language) -> String {
    let (there, here) = (at.to_zoned_datetime(zone.clone()), now.to_zoned_datetime(zone.clone()));
    let clock = format!("{:02}:{:02}", there.hour(), there.minute());
    let apart = at.duration_since(now).as_secs().abs();
    if there.date() == here.date() {
        clock
    } else if apart < 6 * 86_400 {
        format!("{} {clock}", language.weekday(there.weekday()))
    } else {
        // Within half a year the nearest such day is meant.
        let year = (there.year() != here.year() && apart > HALF_A_YEAR).then_some(there.year());
        language.date(year, there.month(), there.day())
    }
}

/// A day, with its year when that is not the present one.
pub fn day(date: Date, today: Date, language: Language) -> String {
    language.date((date.year() != today.year()).then_some(date.year()), date.month(), date.day())
}

/// The same with its weekday.
pub fn weekday(date: Date, today: Date, language: Language) -> String {
    format!("{} {}", language.weekday(date.weekday()), day(date, today, language))
}

/// Days as people call them: one day, a year, days of one month, or from one day to another.
pub fn period(period: Period, today: Date, language: Language) -> String {
    let (first, last) = (period.from, period.to.yesterday().unwrap_or(period.from));
    let year = (first.year() != today.year() || last.year() != today.year()).then_some(first.year());
    match () {
        () if first >= last => weekday(first, today, language),
        () if first == first.first_of_year() && last == first.last_of_year() => language.year(first.year()),
        () if first.first_of_month() == last.first_of_month() => {
            language.days_of_month(year, first.month(), first.day(), last.day())
        }
        () => format!("{} - {}", day(first, today, language), day(last, today, language)),
    }
}

/// A moment of the past with its day: `30 Nov 09:12`.
pub fn instant(at: Timestamp, today: Date, zone: &TimeZone, language: Language) -> String {
    let there = zone.to_datetime(at);
    format!("{} {:02}:{:02}", day(there.date(), today, language), there.hour(), there.minute())
}

/// A time in at most five cells: `40s`, `12m`, `3h40m`, `27h`, `9d`.
pub fn brief_span(time: SignedDuration) -> String {
    let seconds = seconds(time);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..36_000 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        36_000..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Bytes a second: `820 kB/s`, `3.2 MB/s`, `1.1 GB/s`.
pub fn flow(bytes_per_second: f64) -> String {
    let (figure, unit) = match bytes_per_second {
        figure if figure >= 999.5e6 => (figure / 1e9, "GB/s"),
        figure if figure >= 999.5e3 => (figure / 1e6, "MB/s"),
        figure if figure.is_finite() => (figure.max(0.0) / 1e3, "kB/s"),
        _ => return "? kB/s".to_owned(),
    };
    if figure < 9.95 && unit != "kB/s" { format!("{figure:.1} {unit}") } else { format!("{figure:.0} {unit}") }
}

/// Bytes in the unit that suits them, as disks and networks count: `820 kB`, `7.2 MB`, `12.4 GB`.
pub fn bytes(bytes: u64) -> String {
    let (by, unit) = byte_unit(bytes);
    format!("{} {unit}", bytes_by(bytes, by))
}

/// So much of a whole, in the unit of the whole: `7.2`.
pub fn bytes_of(part: u64, whole: u64) -> String {
    bytes_by(part, byte_unit(whole).0)
}

fn byte_unit(bytes: u64) -> (u64, &'static str) {
    let units = [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    // What would be rounded up to a thousand has the next one.
    units.into_iter().find(|(by, _)| bytes >= by - by / 20_000).unwrap_or((1, "B"))
}

fn bytes_by(bytes: u64, by: u64) -> String {
    let figure = bytes as f64 / by as f64;
    if by == 1 || figure >= 99.95 { format!("{figure:.0}") } else { format!("{figure:.1}") }
}

/// A share of 0.0 to 1.0: `97 %`.
pub fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.0} %", (share * 100.0).clamp(0.0, 999.0)) } else { "? %".to_owned() }
}

/// A part of a whole, which is never nothing: `<1 %`.
pub fn part(share: f64) -> String {
    if share > 0.0 && share < 0.005 { "<1 %".to_owned() } else { percent(share) }
}

/// Bytes in GiB, with one place under ten.
pub fn gib(bytes: u64) -> String {
    let gib = bytes as f64 / (1u64 << 30) as f64;
    if gib < 9.95 && bytes > 0 { format!("{gib:.1}") } else { format!("{gib:.0}") }
}

/// A size in GB as the provider counts, without zeros that say nothing.
pub fn gigabytes(size: Decimal) -> String {
    format!("{} GB", size.round_dp(1).normalize())
}

/// The same in six cells: from a thousand GB on in TB.
pub fn large_size(size: Decimal) -> String {
    let (size, unit) =
        if size.round() < Decimal::ONE_THOUSAND { (size, "GB") } else { (size / Decimal::ONE_THOUSAND, "TB") };
    let places = if size.round_dp(1) < Decimal::TEN { 1 } else { 0 };
    format!("{} {unit}", size.round_dp(places).normalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::glyphs::UNICODE;
    use proptest::prelude::*;
    use rstest::rstest;

    fn dec(text: &str) -> Decimal {
        text.parse().expect("a decimal literal")
    }

    #[rstest]
    #[case("0", "0.00")]
    #[case("0.00001", "<0.001")]
    #[case("0.005", "0.005")]
    #[case("0.0333", "0.033")]
    #[case("0.0999", "0.100")]
    #[case("0.415", "0.42")]
    #[case("21.549", "21.55")]
    #[case("1234.5", "1,234.50")]
    #[case("1234567", "1,234,567.00")]
    fn hourly_amounts_keep_their_small_change(#[case] amount: &str, #[case] expected: &str) {
        assert_eq!(hourly(dec(amount)), expected);
    }

    #[rstest]
    #[case(0, "0 B")]
    #[case(999, "999 B")]
    #[case(1_000, "1.0 kB")]
    #[case(999_940, "1000 kB")]
    #[case(999_960, "1.0 MB")]
    #[case(7_240_000, "7.2 MB")]
    #[case(12_400_000_000, "12.4 GB")]
    #[case(412_000_000_000, "412 GB")]
    #[case(u64::MAX, "18446744 TB")]
    fn bytes_have_the_unit_that_suits_them(#[case] count: u64, #[case] expected: &str) {
        assert_eq!(bytes(count), expected);
    }

    #[test]
    fn a_part_has_the_unit_of_its_whole() {
        assert_eq!(bytes_of(720_000_000, 12_400_000_000), "0.7");
        assert_eq!(bytes_of(0, 0), "0");
    }

    #[rstest]
    #[case("914.2", Currency::USD, "$914.20")]
    #[case("-3", Currency::CNY, "-¥3.00")]
    #[case("-0.001", Currency::USD, "$0.00")]
    #[case("12", Currency::EUR, "€12.00")]
    #[case("12", Currency::parse("gbp").unwrap(), "GBP 12.00")]
    fn money_stands_beside_its_currency(#[case] amount: &str, #[case] currency: Currency, #[case] expected: &str) {
        assert_eq!(money(Money::new(dec(amount), currency), &UNICODE), expected);
    }

    #[rstest]
    #[case(-5, "0 s", "0 s")]
    #[case(59, "59 s", "59 s")]
    #[case(60, "1 m", "1 m")]
    #[case(3599, "59 m", "59 m")]
    #[case(13_200, "3 h", "3 h 40 m")]
    #[case(86_400, "24 h", "1 d")]
    #[case(93_600, "26 h", "1 d 2 h")]
    #[case(777_600, "9 d", "9 d")]
    fn times_are_short(#[case] seconds: i64, #[case] expected_age: &str, #[case] expected_span: &str) {
        let time = SignedDuration::from_secs(seconds);
        assert_eq!(age(time, Language::English), expected_age);
        assert_eq!(span(time, Language::English), expected_span);
    }

    #[rstest]
    #[case(180, "3 分钟", "3 分钟")]
    #[case(13_200, "3 小时", "3 小时 40 分")]
    #[case(93_600, "26 小时", "1 天 2 小时")]
    fn times_are_no_times_of_day(#[case] seconds: i64, #[case] expected_age: &str, #[case] expected_span: &str) {
        let time = SignedDuration::from_secs(seconds);
        assert_eq!(age(time, Language::Chinese), expected_age);
        assert_eq!(span(time, Language::Chinese), expected_span);
    }

    #[rstest]
    #[case("0.5", "0.5 GB")]
    #[case("9.96", "10 GB")]
    #[case("120.4", "120 GB")]
    #[case("999.4", "999 GB")]
    #[case("999.6", "1 TB")]
    #[case("1200", "1.2 TB")]
    #[case("12345", "12 TB")]
    fn sizes_fit_their_column(#[case] size: &str, #[case] expected: &str) {
        assert_eq!(large_size(dec(size)), expected);
    }

    #[test]
    fn a_countdown_ends_at_one() {
        let until = Timestamp::from_millisecond(10_000).unwrap();
        let left = |millisecond| seconds_left(until, Timestamp::from_millisecond(millisecond).unwrap());
        assert_eq!([left(0), left(5_000), left(5_001), left(9_999), left(10_000), left(20_000)], [10, 5, 5, 1, 0, 0]);
    }

    #[test]
    fn a_moment_is_told_as_people_tell_it() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let now = at("2026-11-30T10:00:00Z");
        let tell = |text: &str, language| moment(at(text), now, &TimeZone::UTC, language);
        assert_eq!(tell("2026-11-30T22:00:00Z", Language::English), "22:00");
        assert_eq!(tell("2026-12-02T03:34:00Z", Language::English), "Wed 03:34");
        assert_eq!(tell("2026-12-12T03:34:00Z", Language::English), "12 Dec");
        assert_eq!(tell("2027-01-02T03:34:00Z", Language::English), "2 Jan");
        assert_eq!(tell("2025-12-02T03:34:00Z", Language::English), "2 Dec 2025");
        assert_eq!(tell("2027-06-02T03:34:00Z", Language::Chinese), "2027年6月2日");
        assert_eq!(tell("2026-12-02T03:34:00Z", Language::Chinese), "周三 03:34");
        assert_eq!(tell("2026-12-12T03:34:00Z", Language::Chinese), "12月12日");
    }

    /// TUI-08.
    #[rstest]
    #[case("训练机-01", 9, "训练机-…")]
    #[case("🦀 でCLIから", 12, "🦀 でCL…")]
    #[case("実験 α", 6, "実験 α")]
    #[case("café", 4, "café")]
    #[case("cafe\u{301}", 4, "cafe\u{301}")]
    #[case("very-long-name-without-any-space-0123456789-0123456789", 54, "very-lo…")]
    #[case("", 0, "")]
    fn names_are_cut_by_cells(#[case] name: &str, #[case] cells: u16, #[case] in_eight: &str) {
        assert_eq!(width(name), cells);
        assert_eq!(cut(name, 8, "…"), in_eight);
    }

    /// SEC-04: what slipped in all the same does not get out here.
    #[test]
    fn nothing_that_controls_is_kept() {
        assert_eq!(cut("a\u{1b}[31mb\u{202e}c\u{9b}d\r\ne", 20, "…"), "a[31mbcde");
    }

    proptest! {
        #[test]
        fn a_cut_is_whole_characters_in_its_cells(text in "\\PC*|[\\x00-\\x20a训\u{301}🦀\u{200d}\u{202e}]*", cells in 0u16..30) {
            for mark in ["…", "..", ""] {
                let kept = cut(&text, cells, mark);
                prop_assert!(width(&kept) <= cells);
                prop_assert!(!kept.contains(char::is_control));
                let whole: Vec<&str> = graphemes(&text).map(|(symbol, _)| symbol).collect();
                let body: String = if kept == whole.concat() { kept.clone() } else { kept.strip_suffix(mark).unwrap_or(&kept).to_owned() };
                let mut rest = body.as_str();
                for symbol in &whole {
                    if rest.is_empty() { break; }
                    prop_assert!(rest.starts_with(symbol), "{kept:?} is cut inside a character of {text:?}");
                    rest = &rest[symbol.len()..];
                }
            }
        }
    }
}
