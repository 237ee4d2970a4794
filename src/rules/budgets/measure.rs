//! What budgets count: money in one currency, or GPU-hours.

use providers::money::Currency;
use rust_decimal::Decimal;

use super::{Running, Unit};
use crate::rules::spend::{Charge, Exchange, Lump, Part, Sums};

const MS_PER_HOUR: i64 = 3_600_000;

/// How amounts come to a budget's unit.
pub struct Measure {
    pub unit: Unit,
    /// Into that unit, where it is money.
    pub exchange: Exchange,
}

/// A sum in a budget's unit.
pub struct Measured {
    pub total: Decimal,
    /// What of it is no provider's own figure.
    pub estimated: Decimal,
    /// What there is no exchange rate for.
    pub apart: Vec<(Currency, Decimal)>,
}

impl Measure {
    /// GPU-hours are those of all that ran, paid ahead or not.
    pub fn of(&self, sums: &Sums) -> Measured {
        let mut measured = Measured { total: Decimal::ZERO, estimated: Decimal::ZERO, apart: Vec::new() };
        for (currency, amounts) in &sums.0 {
            if self.unit == Unit::GpuHours {
                let hours = Decimal::from(amounts.gpu_ms) / Decimal::from(MS_PER_HOUR);
                measured.total = measured.total.saturating_add(hours);
                measured.estimated = measured.total;
                continue;
            }
            let (total, estimated) = (amounts.total().amount(), amounts.estimated().amount());
            match (self.exchange.convert(*currency, total), self.exchange.convert(*currency, estimated)) {
                (Some(total), Some(estimated)) => {
                    measured.total = measured.total.saturating_add(total);
                    measured.estimated = measured.estimated.saturating_add(estimated);
                }
                _ if total.is_zero() => {}
                _ => measured.apart.push((*currency, total)),
            }
        }
        measured
    }

    /// What something that runs burns an hour; what there is no exchange rate for burns nothing here.
    pub fn burn(&self, running: &Running) -> Decimal {
        match self.unit {
            Unit::GpuHours => Decimal::from(running.gpus),
            Unit::Money(_) => {
                let rates = running.rates.iter();
                let rates = rates.filter_map(|rate| self.exchange.convert(rate.currency, rate.amount()));
                rates.fold(Decimal::ZERO, Decimal::saturating_add)
            }
        }
    }

    /// GPU-hours that were paid ahead count as well, and their money does not.
    pub fn counts_prepaid(&self, part: &Part<'_>) -> bool {
        self.unit == Unit::GpuHours && part.terms.charge == Charge::Prepaid
    }

    /// An hour of a part.
    pub fn rate(&self, part: &Part<'_>) -> Option<Decimal> {
        match self.unit {
            Unit::GpuHours => Some(Decimal::from(part.terms.gpus)),
            Unit::Money(_) => self.exchange.convert(part.rate.currency, part.rate.amount()),
        }
    }

    pub fn lump(&self, lump: &Lump) -> Option<Decimal> {
        match self.unit {
            Unit::GpuHours => None,
            Unit::Money(_) => self.exchange.convert(lump.currency, lump.amount.amount()),
        }
    }
}
