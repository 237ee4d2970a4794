//! What one should know about a total of the Spend view: since when it counts, what may come on top of it, and
//! what a balance says.

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use providers::model::{AccountName, Rates};
use providers::money::Currency;
use rust_decimal::Decimal;

use super::state::World;
use crate::rules::budgets::{Budget, Standing, Unit};
use crate::rules::fleet::Account;
use crate::rules::spend::{Amounts, Answer, BalanceChange, Exact, Period, Sums, date_of};

/// What a balance lost beyond the books is told from so much of the charged amount on.
const TOLERATED_PERCENT: i64 = 1;
/// And from so much burn on: balances and polls are not of the same moment.
const TOLERATED_BURN: SignedDuration = SignedDuration::from_mins(10);

/// Whether nothing is known of a currency that a limit is in: no account charges in it or has money in it, and no rate of
/// the user joins it. False before anything was looked at.
pub fn is_unheard_of(world: &World, currency: Currency) -> bool {
    let fleet = &world.fleet;
    let has = |rates: &Rates| rates.upper().rates().iter().any(|rate| rate.currency == currency);
    let holds = |account: &Account| account.balance.as_ref().is_some_and(|known| known.value.cash.currency == currency);
    fleet.accounts.iter().any(|account| account.as_of.is_some())
        && !world.budgets.exchange.knows(currency)
        && !fleet.instances.values().any(|known| has(&known.rates()))
        && !fleet.storage.values().any(|known| has(&known.rates()))
        && !fleet.accounts.iter().any(holds)
}

/// The currency of a budget's limit, where nothing is known of that and nothing was spent in it.
pub fn unheard_of(world: &World, budget: &Budget, standing: Option<&Standing>) -> Option<Currency> {
    let Unit::Money(currency) = budget.limit.unit else { return None };
    let is_used = standing.is_some_and(|standing| !standing.spent.is_zero());
    (!is_used && is_unheard_of(world, currency)).then_some(currency)
}

/// What one should know about a total.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// The books are still being added up.
    Unfinished,
    /// No provider has told what it billed.
    Estimate,
    /// The books begin later than the period: for all accounts, or for one of several.
    Since {
        account: Option<AccountName>,
        date: Date,
    },
    /// What may have been charged besides.
    Possible {
        currency: Currency,
        amount: Exact,
    },
    /// In no total.
    Prepaid {
        currency: Currency,
        amount: Exact,
        unused: Exact,
    },
    /// What the providers billed, and our own figure where there is one.
    Drift {
        currency: Currency,
        billed: Exact,
        ours: Exact,
    },
    /// What left an account beyond what the books know; negative when less left it.
    Unexplained {
        account: AccountName,
        currency: Currency,
        amount: Exact,
    },
    PaidIn {
        account: AccountName,
        currency: Currency,
        amount: Exact,
    },
    /// The last reading of an account's vouchers: they stand beside its money.
    Voucher {
        account: AccountName,
        currency: Currency,
        amount: Exact,
    },
}

/// What one should know about a total; `billed` says whether any provider told what it billed. What was open
/// between two readings stands in `balances` already.
pub fn notes(
    world: &World,
    period: Period,
    total: &Sums,
    billed: bool,
    answer: &Answer,
    balances: &[BalanceChange],
) -> Vec<Note> {
    let mut notes = Vec::new();
    if answer.unfinished {
        notes.push(Note::Unfinished);
    }
    if !billed && total.0.values().any(|amounts| !amounts.total().is_zero()) {
        notes.push(Note::Estimate);
    }
    notes.extend(since(world, period, answer));
    for (&currency, amounts) in &total.0 {
        if !amounts.possible.is_zero() {
            notes.push(Note::Possible { currency, amount: amounts.possible });
        }
    }
    notes.extend(balances.iter().filter(|change| is_unexplained(world, change)).map(|change| Note::Unexplained {
        account: change.account.clone(),
        currency: change.first.currency,
        amount: change.unexplained(),
    }));
    for (&currency, amounts) in &total.0 {
        if !amounts.prepaid.is_zero() {
            notes.push(Note::Prepaid { currency, amount: amounts.prepaid, unused: amounts.unused });
        }
        notes.extend(drift(currency, amounts));
    }
    for change in balances {
        let account = &change.account;
        if !change.paid_in.amount.is_zero() {
            let (currency, amount) = (change.paid_in.currency, Exact::of(change.paid_in.amount));
            notes.push(Note::PaidIn { account: account.clone(), currency, amount });
        }
        if let Some((_, last)) = change.vouchers.filter(|(first, last)| first.amount.max(last.amount) > Decimal::ZERO) {
            let (currency, amount) = (last.currency, Exact::of(last.amount));
            notes.push(Note::Voucher { account: account.clone(), currency, amount });
        }
    }
    notes
}

/// What was billed beside our own figure, where there is one and it differs.
pub fn drift(currency: Currency, amounts: &Amounts) -> Option<Note> {
    let differs = amounts.drift().amount().round_dp(2) != Decimal::ZERO;
    (differs && !amounts.replaced.is_zero()).then_some(Note::Drift {
        currency,
        billed: amounts.billed,
        ours: amounts.replaced,
    })
}

/// Since when the books are, where that is after the period began.
fn since(world: &World, period: Period, answer: &Answer) -> Vec<Note> {
    let zone = &world.spending.zone;
    let late: Vec<(&AccountName, Date)> = answer
        .since
        .iter()
        .map(|(account, since)| (account, date_of(*since, zone)))
        .filter(|(_, date)| period.from < *date && *date < period.to)
        .collect();
    match late.as_slice() {
        [] => Vec::new(),
        [(_, date), ..] if late.len() == answer.since.len() && late.iter().all(|(_, other)| other == date) => {
            vec![Note::Since { account: None, date: *date }]
        }
        late => {
            late.iter().map(|(account, date)| Note::Since { account: Some((*account).clone()), date: *date }).collect()
        }
    }
}

/// Whether more left an account, or less, than the books can be off by.
pub fn is_unexplained(world: &World, change: &BalanceChange) -> bool {
    let amount = change.unexplained();
    let size = if amount < Exact::ZERO { -amount } else { amount };
    let charged = change.charged.amount() * Decimal::new(TOLERATED_PERCENT, 2);
    let burn = world.fleet.burn_of(&change.account).burn.of(change.first.currency);
    let burn = Exact::over(burn, Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH + TOLERATED_BURN);
    let tolerated = Exact::of(charged).max(burn).max(Exact::of(Decimal::new(1, 2)));
    size > tolerated
}
