//! What spans add up to: the pieces that every grouping, total and table is made of.

use std::collections::BTreeMap;

use jiff::civil::Date;
use providers::model::{AccountName, Component, Identity};
use providers::money::Currency;
use serde::{Deserialize, Serialize};

use super::{Charge, Evidence, Exact, Lump, Part, Span, Terms};

/// What money was spent on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Billable {
    /// An instance or storage item, with its last known name.
    Resource { identity: Identity, name: Option<String> },
    /// What belongs to no listed resource, by the provider's own name: serverless, traffic.
    Product(String),
}

/// One piece of a sum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// The civil day. Of a piece that is one resource's: the first day of the period that was asked for.
    pub day: Date,
    pub account: AccountName,
    /// `None` where only days were asked for, whatever was billed on them.
    pub billable: Option<Billable>,
    /// Its `gpus` are 0: the GPU-hours tell.
    pub terms: Terms,
    pub evidence: Evidence,
    /// Our own figure for a time that the provider has billed: it counts in no total, but for the drift.
    pub replaced: bool,
    pub currency: Currency,
    pub amount: Exact,
    /// GPU-milliseconds.
    pub gpu_ms: i64,
}

/// Sums of one currency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amounts {
    pub billed: Exact,
    pub observed: Exact,
    pub inferred: Exact,
    pub assumed: Exact,
    /// What of the total was spent on what did no work.
    pub wasted: Exact,
    /// What may have been charged besides.
    pub possible: Exact,
    /// Paid ahead, in no total.
    pub prepaid: Exact,
    /// What of `prepaid` stood unused.
    pub unused: Exact,
    /// Our own figure for the time that `billed` covers.
    pub replaced: Exact,
    /// GPU-milliseconds, those of times that were billed included.
    pub gpu_ms: i64,
}

impl Amounts {
    /// What was charged: exactly the sum of the four kinds of evidence.
    pub fn total(&self) -> Exact {
        self.billed + self.observed + self.inferred + self.assumed
    }

    /// What the provider billed beyond our own figure for the same time; negative when it billed less.
    pub fn drift(&self) -> Exact {
        self.billed - self.replaced
    }

    /// What is not the provider's own figure.
    pub fn estimated(&self) -> Exact {
        self.total() - self.billed
    }

    pub fn add(&mut self, terms: &Terms, evidence: Evidence, replaced: bool, amount: Exact, gpu_ms: i64) {
        match terms.charge {
            Charge::Possible => {
                // What may have been charged in a time that was billed is known by now.
                if !replaced {
                    self.possible += amount;
                }
                return;
            }
            Charge::Prepaid => {
                self.prepaid += amount;
                if terms.wasted {
                    self.unused += amount;
                }
            }
            Charge::Certain if replaced => self.replaced += amount,
            Charge::Certain => {
                let part = match evidence {
                    Evidence::Billed => &mut self.billed,
                    Evidence::Observed => &mut self.observed,
                    Evidence::Inferred => &mut self.inferred,
                    Evidence::Assumed => &mut self.assumed,
                };
                *part += amount;
                if terms.wasted {
                    self.wasted += amount;
                }
            }
        }
        self.gpu_ms += gpu_ms;
    }

    /// Adds all of another sum of the same currency.
    pub fn merge(&mut self, other: &Amounts) {
        self.billed += other.billed;
        self.observed += other.observed;
        self.inferred += other.inferred;
        self.assumed += other.assumed;
        self.wasted += other.wasted;
        self.possible += other.possible;
        self.prepaid += other.prepaid;
        self.unused += other.unused;
        self.replaced += other.replaced;
        self.gpu_ms += other.gpu_ms;
    }
}

/// Sums kept apart by currency.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sums(pub BTreeMap<Currency, Amounts>);

impl Sums {
    pub fn add_span(&mut self, span: &Span) {
        self.add_part(&span.part());
    }

    /// The same of what is not written down yet.
    pub fn add_part(&mut self, part: &Part<'_>) {
        let sum = self.0.entry(part.rate.currency).or_default();
        sum.add(&part.terms, part.evidence, false, part.amount(), part.gpu_ms());
    }

    pub fn add_lump(&mut self, lump: &Lump) {
        let sum = self.0.entry(lump.currency).or_default();
        sum.add(&lump.terms, lump.evidence, false, lump.amount, 0);
    }

    pub fn add_cell(&mut self, cell: &Cell) {
        let sum = self.0.entry(cell.currency).or_default();
        sum.add(&cell.terms, cell.evidence, cell.replaced, cell.amount, cell.gpu_ms);
    }

    pub fn merge(&mut self, other: &Sums) {
        for (currency, amounts) in &other.0 {
            self.0.entry(*currency).or_default().merge(amounts);
        }
    }

    pub fn of(&self, currency: Currency) -> Amounts {
        self.0.get(&currency).copied().unwrap_or_default()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Every component, in the order of tables.
pub const COMPONENTS: [Component; 6] =
    [Component::Compute, Component::Disk, Component::Storage, Component::Ip, Component::Traffic, Component::Other];

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// What was billed is known: our own figure for that time, and what only may have been charged in it, stand
    /// in no total.
    #[rstest]
    #[case::certain(Charge::Certain, [0, 0, 7])]
    #[case::possible(Charge::Possible, [0, 0, 0])]
    fn what_was_replaced_counts_for_the_drift_alone(#[case] charge: Charge, #[case] expected: [i64; 3]) {
        let terms = Terms { component: Component::Compute, charge, wasted: true, project: None, gpus: 1 };
        let mut sums = Amounts::default();
        sums.add(&terms, Evidence::Observed, true, Exact::from_parts(7, 0), 1);
        let found = [sums.total() + sums.wasted, sums.possible, sums.replaced];
        assert_eq!(found, expected.map(|micros| Exact::from_parts(micros, 0)));
        assert_eq!(sums.drift(), Exact::ZERO - sums.replaced);
    }
}
