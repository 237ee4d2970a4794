//! Sums of several currencies joined into one, by rates that the user set, and by no others.

use std::collections::BTreeMap;

use jiff::civil::Date;
use providers::money::Currency;
use rust_decimal::Decimal;

/// What one unit of a currency is worth, as the user wrote it down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fx {
    /// US dollars for one unit, above 0.
    pub usd: Decimal,
    /// The day for which that holds.
    pub as_of: Date,
}

/// The user's rates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The currency that sums are joined in.
    pub into: Currency,
    /// For one unit of each; the dollar needs none.
    pub rates: BTreeMap<Currency, Fx>,
}

impl Default for Exchange {
    /// No rates: nothing is joined with anything.
    fn default() -> Self {
        Exchange { into: Currency::USD, rates: BTreeMap::new() }
    }
}

/// Amounts joined as far as there are rates for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// In the currency that sums are joined in.
    pub amount: Decimal,
    /// The currencies that were converted, each with the user's rate for it.
    pub by: Vec<(Currency, Fx)>,
    /// What there is no rate for.
    pub apart: Vec<(Currency, Decimal)>,
}

impl Exchange {
    /// Whether sums in this currency can be joined with any other, or are what others are joined in.
    pub fn knows(&self, currency: Currency) -> bool {
        currency == self.into
            || self.rates.contains_key(&currency)
            || (currency == Currency::USD && !self.rates.is_empty())
    }

    /// `None` when nothing needs, or can be, converted: the amounts are then best shown as they are.
    pub fn join(&self, amounts: impl IntoIterator<Item = (Currency, Decimal)>) -> Option<Joined> {
        let mut joined = Joined { amount: Decimal::ZERO, by: Vec::new(), apart: Vec::new() };
        for (currency, amount) in amounts {
            match self.convert(currency, amount) {
                Some(converted) => joined.amount = joined.amount.checked_add(converted)?,
                None => {
                    joined.apart.push((currency, amount));
                    continue;
                }
            }
            for needed in [currency, self.into] {
                let rate = self.rates.get(&needed).filter(|_| currency != self.into);
                if let Some(rate) = rate.filter(|_| joined.by.iter().all(|(known, _)| *known != needed)) {
                    joined.by.push((needed, *rate));
                }
            }
        }
        (!joined.by.is_empty()).then_some(joined)
    }

    /// An amount in the currency that sums are joined in; `None` without a rate for it, and beyond what a decimal holds.
    pub fn convert(&self, currency: Currency, amount: Decimal) -> Option<Decimal> {
        if currency == self.into {
            return Some(amount);
        }
        amount.checked_mul(self.in_dollars(currency)?)?.checked_div(self.in_dollars(self.into)?)
    }

    fn in_dollars(&self, currency: Currency) -> Option<Decimal> {
        match currency {
            Currency::USD => Some(Decimal::ONE),
            currency => self.rates.get(&currency).map(|rate| rate.usd),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dec(text: &str) -> Decimal {
        text.parse().unwrap()
    }

    fn exchange(into: Currency, rates: &[(Currency, Decimal)]) -> Exchange {
        let as_of = "2026-11-29".parse().unwrap();
        Exchange { into, rates: rates.iter().map(|(currency, usd)| (*currency, Fx { usd: *usd, as_of })).collect() }
    }

    fn burn() -> [(Currency, Decimal); 3] {
        [(Currency::USD, dec("2")), (Currency::CNY, dec("1.98")), (Currency::EUR, dec("0.8"))]
    }

    /// COST-08.
    #[test]
    fn amounts_join_by_the_users_rates_and_what_has_none_stands_apart() {
        let all = exchange(Currency::USD, &[(Currency::CNY, Decimal::ONE / dec("7.2")), (Currency::EUR, dec("1.10"))]);
        let joined = all.join(burn()).unwrap();
        assert_eq!((joined.amount.round_dp(3), joined.by.len(), joined.apart), (dec("3.155"), 2, vec![]));
        let euro = exchange(Currency::USD, &[(Currency::EUR, dec("1.10"))]);
        let joined = euro.join(burn()).unwrap();
        assert_eq!(joined.amount, dec("2.88"));
        assert_eq!(joined.apart, [(Currency::CNY, dec("1.98"))]);
    }

    #[test]
    fn without_a_rate_nothing_is_joined() {
        assert_eq!(Exchange::default().join(burn()), None);
        let euro = exchange(Currency::USD, &[(Currency::EUR, dec("1.10"))]);
        assert_eq!(euro.join([(Currency::USD, dec("2"))]), None, "there is nothing to convert");
    }

    #[test]
    fn sums_join_in_another_currency_than_the_dollar_as_well() {
        let yuan = exchange(Currency::CNY, &[(Currency::CNY, dec("0.125"))]);
        let joined = yuan.join([(Currency::USD, dec("2")), (Currency::CNY, dec("1"))]).unwrap();
        assert_eq!(joined.amount, dec("17"));
        assert_eq!(joined.by.iter().map(|(currency, _)| *currency).collect::<Vec<_>>(), [Currency::CNY]);
    }
}
