//! Money and rates: exact decimal amounts beside their currency, and the only arithmetic on either.
//!
//! Nothing here rounds for display; that is the screen's and the JSON's business. Amounts of different
//! currencies never meet: adding them is an error of the caller and answers `None`.

use std::fmt;

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde::{Deserialize, Serialize};

/// An ISO 4217 currency code, three capital letters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Currency([u8; 3]);

impl Currency {
    pub const USD: Currency = Currency(*b"USD");
    pub const CNY: Currency = Currency(*b"CNY");
    pub const EUR: Currency = Currency(*b"EUR");

    /// Reads a code in any case; `None` unless it is three ASCII letters.
    pub fn parse(code: &str) -> Option<Self> {
        let bytes: [u8; 3] = code.as_bytes().try_into().ok()?;
        bytes.iter().all(u8::is_ascii_alphabetic).then(|| Currency(bytes.map(|b| b.to_ascii_uppercase())))
    }

    /// The code, for instance `USD`.
    pub fn code(&self) -> &str {
        std::str::from_utf8(&self.0).expect("a currency code is ASCII letters")
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.code())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl TryFrom<String> for Currency {
    type Error = String;
    fn try_from(code: String) -> Result<Self, String> {
        Currency::parse(&code).ok_or_else(|| format!("`{code}` is no currency code of three letters"))
    }
}

impl From<Currency> for String {
    fn from(currency: Currency) -> String {
        currency.code().to_owned()
    }
}

/// An amount of one currency. May be negative (a balance can be).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Money {
    pub amount: Decimal,
    pub currency: Currency,
}

impl Money {
    pub fn new(amount: Decimal, currency: Currency) -> Self {
        Money { amount, currency }
    }

    /// The sum, or `None` when the currencies differ or the sum overflows.
    pub fn plus(self, other: Money) -> Option<Money> {
        (self.currency == other.currency)
            .then(|| self.amount.checked_add(other.amount))
            .flatten()
            .map(|amount| Money::new(amount, self.currency))
    }
}

/// Money per hour, exact to 1e-12 of the currency's unit.
///
/// An integer so that sums of rates over milliseconds are exact in wide integers. Ranges to about
/// nine million an hour, far beyond any machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rate {
    /// Units of 1e-12 of the currency an hour.
    picos: i64,
    pub currency: Currency,
}

const PICOS: i64 = 1_000_000_000_000;

impl Rate {
    pub const fn zero(currency: Currency) -> Self {
        Rate { picos: 0, currency }
    }

    /// A rate from an hourly decimal amount, rounded to 1e-12 (half to even).
    /// `None` when it is negative or out of range: no provider pays its customers.
    pub fn per_hour(amount: Decimal, currency: Currency) -> Option<Self> {
        if amount.is_sign_negative() && !amount.is_zero() {
            return None;
        }
        let picos = amount.checked_mul(Decimal::from(PICOS))?.round().to_i64()?;
        Some(Rate { picos, currency })
    }

    /// `size × price of a unit and month ÷ hours in that provider's month`.
    pub fn of_month(size: Decimal, per_unit_month: Decimal, hours: Decimal, currency: Currency) -> Option<Self> {
        Self::per_hour(size.checked_mul(per_unit_month)?.checked_div(hours)?, currency)
    }

    /// Takes a rate back from its stored integer of 1e-12 an hour.
    pub fn from_picos(picos: i64, currency: Currency) -> Self {
        Rate { picos, currency }
    }

    /// The exact integer of 1e-12 an hour, for storage and exact sums.
    pub fn picos(&self) -> i64 {
        self.picos
    }

    /// The hourly amount as a decimal, with no trailing zeros.
    pub fn amount(&self) -> Decimal {
        Decimal::from_i128_with_scale(self.picos.into(), 12).normalize()
    }

    pub fn is_zero(&self) -> bool {
        self.picos == 0
    }

    /// The difference, never below zero, or `None` when the currencies differ.
    pub fn minus(self, other: Rate) -> Option<Rate> {
        (self.currency == other.currency).then(|| Rate::from_picos((self.picos - other.picos).max(0), self.currency))
    }

    /// What this rate comes to over `hours`.
    pub fn over_hours(&self, hours: Decimal) -> Option<Money> {
        Some(Money::new(self.amount().checked_mul(hours)?, self.currency))
    }
}

/// Sums of rates kept apart by currency, in the order in which the currencies first came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Burn(Vec<Rate>);

impl Burn {
    pub fn add(&mut self, rate: Rate) {
        match self.0.iter_mut().find(|sum| sum.currency == rate.currency) {
            Some(sum) => sum.picos = sum.picos.saturating_add(rate.picos),
            None => self.0.push(rate),
        }
    }

    /// One rate a currency.
    pub fn rates(&self) -> &[Rate] {
        &self.0
    }

    /// The rate in one currency, zero when nothing of it was added.
    pub fn of(&self, currency: Currency) -> Rate {
        self.0.iter().copied().find(|sum| sum.currency == currency).unwrap_or(Rate::zero(currency))
    }

    pub fn is_zero(&self) -> bool {
        self.0.iter().all(Rate::is_zero)
    }
}

impl FromIterator<Rate> for Burn {
    fn from_iter<I: IntoIterator<Item = Rate>>(rates: I) -> Self {
        let mut burn = Burn::default();
        rates.into_iter().for_each(|rate| burn.add(rate));
        burn
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn dec(text: &str) -> Decimal {
        text.parse().expect("a decimal literal")
    }

    #[test]
    fn rates_keep_the_ten_digits_that_vast_sends() {
        let rate = Rate::per_hour(dec("0.4083333333"), Currency::USD).unwrap();
        assert_eq!(rate.amount(), dec("0.4083333333"));
    }

    #[test]
    fn a_monthly_price_is_spread_over_the_providers_month() {
        let rate = Rate::of_month(dec("120"), dec("0.2"), dec("720"), Currency::USD).unwrap();
        assert_eq!(rate.amount(), dec("0.033333333333"));
    }

    #[test]
    fn a_negative_rate_is_refused_and_currencies_never_join() {
        assert_eq!(Rate::per_hour(dec("-0.1"), Currency::USD), None);
        let dollars = Money::new(dec("1"), Currency::USD);
        assert_eq!(dollars.plus(Money::new(dec("1"), Currency::CNY)), None);
        let burn: Burn = [
            Rate::per_hour(dec("1.5"), Currency::USD).unwrap(),
            Rate::per_hour(dec("2"), Currency::CNY).unwrap(),
            Rate::per_hour(dec("0.5"), Currency::USD).unwrap(),
        ]
        .into_iter()
        .collect();
        assert_eq!(burn.of(Currency::USD).amount(), dec("2"));
        assert_eq!(burn.of(Currency::CNY).amount(), dec("2"));
    }

    proptest! {
        #[test]
        fn a_rate_survives_its_stored_integer(picos in 0i64..i64::MAX) {
            let rate = Rate::from_picos(picos, Currency::EUR);
            prop_assert_eq!(Rate::per_hour(rate.amount(), Currency::EUR), Some(rate));
        }

        #[test]
        fn a_currency_is_three_letters(code in "\\PC{0,5}") {
            let expected = code.len() == 3 && code.bytes().all(|b| b.is_ascii_alphabetic());
            prop_assert_eq!(Currency::parse(&code).is_some(), expected);
        }
    }
}
