//! A limit as somebody writes it: an amount, with or without commas between thousands, and what it is of.

use providers::money::Currency;
use rust_decimal::Decimal;

use super::{Quantity, Unit};

/// How a limit of hours is written, in whatever case.
const GPU_HOURS: &str = "gpu-h";

/// Why a text is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoLimit {
    /// An amount of nothing.
    NoUnit,
    /// A comma where decimals begin: that may mean thousands as well.
    DecimalComma,
    /// No amount above 0 with its unit.
    Unreadable,
}

/// `1500 USD`, `1,500.50 usd`, `200 gpu-h`. An amount that stands alone is of the currency `alone`, where there is one.
pub fn limit(text: &str, alone: Option<Currency>) -> Result<Quantity, NoLimit> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (digits, unit) = match words[..] {
        [digits] => (digits, None),
        [digits, unit] => (digits, Some(unit.to_lowercase())),
        _ => return Err(NoLimit::Unreadable),
    };
    let amount = amount(digits)?;
    let unit = match unit.as_deref() {
        None => Unit::Money(alone.ok_or(NoLimit::NoUnit)?),
        Some(GPU_HOURS) => Unit::GpuHours,
        Some(unit) => Unit::Money(Currency::parse(&unit.to_uppercase()).ok_or(NoLimit::Unreadable)?),
    };
    if amount > Decimal::ZERO { Ok(Quantity::new(amount, unit)) } else { Err(NoLimit::Unreadable) }
}

/// Commas part thousands alone: `2,5` is no 25, and `0,500` no 500.
fn amount(text: &str) -> Result<Decimal, NoLimit> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b',')) {
        return Err(NoLimit::Unreadable);
    }
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let mut groups = whole.split(',');
    let first = groups.next().unwrap_or_default();
    let parted = whole.contains(',');
    let parts_thousands = !parted || ((1..=3).contains(&first.len()) && !first.starts_with('0'));
    if decimals.contains(',') || !parts_thousands || groups.any(|group| group.len() != 3) {
        return Err(NoLimit::DecimalComma);
    }
    Decimal::from_str_exact(&text.replace(',', "")).map_err(|_| NoLimit::Unreadable)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("1500 USD", "1500", Unit::Money(Currency::USD))]
    #[case("1,500 USD", "1500", Unit::Money(Currency::USD))]
    #[case("1,234,567.89 usd", "1234567.89", Unit::Money(Currency::USD))]
    #[case("0.5 USD", "0.5", Unit::Money(Currency::USD))]
    #[case("200 GPU-H", "200", Unit::GpuHours)]
    #[case("200 Gpu-h", "200", Unit::GpuHours)]
    #[case("20", "20", Unit::Money(Currency::CNY))]
    fn a_limit_is_read_as_people_write_it(#[case] text: &str, #[case] amount: &str, #[case] unit: Unit) {
        assert_eq!(limit(text, Some(Currency::CNY)), Ok(Quantity::new(amount.parse().unwrap(), unit)));
    }

    #[rstest]
    #[case("1500", NoLimit::NoUnit)]
    #[case("0,5 USD", NoLimit::DecimalComma)]
    #[case("0,500 USD", NoLimit::DecimalComma)]
    #[case("1.000,50 USD", NoLimit::DecimalComma)]
    #[case("1234,567 USD", NoLimit::DecimalComma)]
    #[case("-5 USD", NoLimit::Unreadable)]
    #[case("0 USD", NoLimit::Unreadable)]
    #[case("1e5 USD", NoLimit::Unreadable)]
    #[case("5 dollars", NoLimit::Unreadable)]
    #[case("200 gpu-h USD", NoLimit::Unreadable)]
    #[case("", NoLimit::Unreadable)]
    fn what_is_no_limit_says_why(#[case] text: &str, #[case] why: NoLimit) {
        assert_eq!(limit(text, None), Err(why));
    }
}
