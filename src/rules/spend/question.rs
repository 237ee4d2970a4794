//! What the books can be asked, and what they answer.

use jiff::Timestamp;
use providers::model::{AccountName, Identity};
use providers::money::{Currency, Money, Rate};
use serde::{Deserialize, Serialize};

use super::{Billable, Cell, Charge, Evidence, Exact, Meter, Period, Terms};

/// A question to the books. Only what is closed is answered: what is open stands in the meter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// Day by day, whatever resource it was spent on.
    Days(Period),
    /// Resource by resource, whatever the day.
    Resources(Period),
    /// How the accounts' balances moved, and what was charged meanwhile: slower than the sums where an account
    /// has many resources.
    Balances(Period),
    /// Every entry about one of them.
    Entries { account: AccountName, billable: Billable, period: Period },
}

/// What the books answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    pub question: Question,
    /// For `Days` and `Resources`.
    pub cells: Vec<Cell>,
    /// For `Entries`, oldest first.
    pub entries: Vec<Entry>,
    /// Since when each account is in the books.
    pub since: Vec<(AccountName, Timestamp)>,
    /// For `Balances`: what those of the accounts that have one tell about the period.
    pub balances: Vec<BalanceChange>,
    /// The books are still being added up anew, after a change of the time zone for instance.
    pub unfinished: bool,
}

/// One entry of the books.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub from: Timestamp,
    /// The same as `from` for a charge of one moment.
    pub to: Timestamp,
    pub terms: Terms,
    pub evidence: Evidence,
    /// Our own figure for a time that the provider has billed.
    pub replaced: bool,
    /// `None` for an amount that is no rate over a time.
    pub rate: Option<Rate>,
    pub amount: Exact,
    pub currency: Currency,
}

/// How an account's balance moved between the first and the last reading of a period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BalanceChange {
    pub account: AccountName,
    pub from: Timestamp,
    pub to: Timestamp,
    pub first: Money,
    pub last: Money,
    /// What was paid in meanwhile: the sum of all rises.
    pub paid_in: Money,
    /// Vouchers at the first and the last reading, where there are any.
    pub vouchers: Option<(Money, Money)>,
    /// What the books hold as charged between the two readings: closed entries only, as they answer.
    pub charged: Exact,
}

impl BalanceChange {
    /// With what was charged between the two readings and is not closed yet, as of the books' answer.
    pub fn with_open(mut self, meter: &Meter, now: Timestamp) -> Self {
        let own = meter
            .open_parts_in(&self.account, now)
            .filter(|part| part.terms.charge == Charge::Certain && part.rate.currency == self.first.currency);
        self.charged += own.map(|part| Exact::over(part.rate, part.from.max(self.from), part.to.min(self.to))).sum();
        self
    }

    /// What left the account beyond what is known to be charged; negative when less left it.
    pub fn unexplained(&self) -> Exact {
        let left = Exact::of(self.first.amount) + Exact::of(self.paid_in.amount) - Exact::of(self.last.amount);
        left - self.charged
    }
}

/// To whom the spend of one resource belongs, from some time on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    pub identity: Identity,
    /// `None` for all that the books hold.
    pub from: Option<Timestamp>,
    pub project: Option<String>,
}

/// Whether the spend of one resource was waste in a time, as it turned out later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marking {
    pub identity: Identity,
    pub from: Timestamp,
    /// `None` for all that the books hold.
    pub to: Option<Timestamp>,
    pub wasted: bool,
}
