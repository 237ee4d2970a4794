//! What of the spend counts for a budget, and what it comes to in the unit of its limit.

use std::collections::BTreeMap;

use providers::money::{Currency, Rate};
use rust_decimal::Decimal;

use super::Unit;
use crate::rules::spend::{Amounts, Charge, Exact, Exchange, Lump, Sums, Terms};

/// GPU-hours are summed as if an hour of one were one of this: then one arithmetic does for both units.
const GPU_HOUR: Currency = Currency::USD;
/// In 1e-12, as rates are.
const ONE: i64 = 1_000_000_000_000;

/// How a unit counts.
///
/// Money is what is charged for certain, and not replaced by what the provider billed. GPU-hours are those of compute
/// that is charged for certain or was paid ahead: such a limit is on the hours that are taken, whoever paid for them
/// when; the same hours as everywhere else.
#[derive(Clone, Debug)]
pub(super) struct Measure {
    unit: Unit,
    /// Into the currency of the unit.
    exchange: Exchange,
}

/// Sums in the unit of a limit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Total {
    pub amount: Decimal,
    /// What no exchange rate joins with it.
    pub apart: Vec<(Currency, Decimal)>,
}

impl Measure {
    pub fn new(unit: Unit, exchange: &Exchange) -> Self {
        let exchange = match unit {
            Unit::Money(currency) => Exchange { into: currency, rates: exchange.rates.clone() },
            Unit::GpuHours => Exchange { into: GPU_HOUR, rates: BTreeMap::new() },
        };
        Measure { unit, exchange }
    }

    /// What a charge counts an hour; `None` when it does not count.
    pub fn rate(&self, terms: &Terms, rate: Rate) -> Option<Rate> {
        match self.unit {
            Unit::Money(_) => (terms.charge == Charge::Certain).then_some(rate),
            Unit::GpuHours => (terms.charge != Charge::Possible && terms.gpus > 0)
                .then(|| Rate::from_picos(i64::from(terms.gpus).saturating_mul(ONE), GPU_HOUR)),
        }
    }

    /// What a charge of one moment counts; `None` when it does not.
    pub fn lump(&self, lump: &Lump) -> Option<(Currency, Exact)> {
        let counts = matches!(self.unit, Unit::Money(_)) && lump.terms.charge == Charge::Certain;
        counts.then_some((lump.currency, lump.amount))
    }

    /// What closed sums count, one a currency.
    pub fn closed<'a>(&self, sums: &'a Sums) -> impl Iterator<Item = (Currency, Exact)> + use<'a> {
        let of: fn(Currency, &Amounts) -> (Currency, Exact) = match self.unit {
            Unit::Money(_) => |currency, amounts| (currency, amounts.total()),
            Unit::GpuHours => |_, amounts| (GPU_HOUR, Exact::of_picos(i128::from(ONE), amounts.gpu_ms)),
        };
        sums.0.iter().map(move |(currency, amounts)| of(*currency, amounts))
    }

    /// What of closed sums is the provider's own figure: of GPU-hours nothing, no provider tells those.
    pub fn billed<'a>(&self, sums: &'a Sums) -> impl Iterator<Item = (Currency, Exact)> + use<'a> {
        let is_money = matches!(self.unit, Unit::Money(_));
        sums.0.iter().filter(move |_| is_money).map(|(currency, amounts)| (*currency, amounts.billed))
    }

    /// An amount in the unit of the limit; `None` when nothing joins it with that.
    pub fn amount(&self, currency: Currency, sum: Exact) -> Option<Decimal> {
        self.exchange.convert(currency, sum.amount())
    }

    /// Joins sums.
    pub fn total(&self, sums: impl IntoIterator<Item = (Currency, Exact)>) -> Total {
        // There are hardly ever more than two or three.
        let mut of: Vec<(Currency, Exact)> = Vec::with_capacity(2);
        for (currency, sum) in sums {
            match of.iter_mut().find(|(known, _)| *known == currency) {
                Some((_, known)) => *known += sum,
                None => of.push((currency, sum)),
            }
        }
        let mut total = Total { amount: Decimal::ZERO, apart: Vec::new() };
        for (currency, sum) in of {
            // What is beyond every decimal stands apart too: it is not lost.
            match self.amount(currency, sum).and_then(|amount| total.amount.checked_add(amount)) {
                Some(amount) => total.amount = amount,
                None if sum.is_zero() => {}
                None => total.apart.push((currency, sum.amount())),
            }
        }
        total
    }
}
