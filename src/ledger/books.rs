//! The books: spans of spend, what providers billed, and the sums of both.
//!
//! `write` is the one way in and keeps the sums of `sums` up to date, `billed` says what wins, `ask` reads.
//! `pieces` holds what is pure about times at a rate, `terms` the dictionary that keeps the rows short.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use providers::model::{AccountName, BilledLine, Identity};
use rusqlite::{OptionalExtension, Transaction, TransactionBehavior};

use super::{Durability, Ledger, LedgerError, row};
use crate::rules::budgets::{Budget, Drawn};
use crate::rules::memory::{AccountMemory, Keep};
use crate::rules::spend::{Answer, Assignment, Marking, Question, Running, Summed};

mod ask;
mod assign;
mod balance;
mod billed;
mod budgets;
#[cfg(test)]
mod overlap_tests;
mod pieces;
#[cfg(test)]
mod property_tests;
mod restate;
mod sums;
mod terms;
#[cfg(test)]
mod tests;
mod write;

pub(super) const OPEN: &str = "
    SELECT account, kind, id, generation, state
    FROM open JOIN billable ON billable.key = billable JOIN book ON book.key = book";

/// Written in the same transaction as the lines themselves.
pub(super) const BILLED_TO: &str = "
    SELECT account, MAX(ended) FROM imported JOIN book ON book.key = book GROUP BY account";

const ACCOUNT: &str = "SELECT state FROM account WHERE name = $1";
const KEEP_ACCOUNT: &str = "UPDATE account SET state = $1 WHERE name = $2";

pub(super) fn open_line(row: &rusqlite::Row) -> Option<(Identity, Running)> {
    Some((row::identity(row, 0)?, row::read(row::text(row, 4)?)?))
}

pub(super) fn billed_to(row: &rusqlite::Row) -> Option<(AccountName, Timestamp)> {
    Some((row::text(row, 0)?.into(), sums::time(row.get(1).ok()?)))
}

/// Writes down what a look adds, and the account's balance.
pub(super) fn enter(transaction: &Transaction, zone: &TimeZone, keep: &Keep) -> Result<(), LedgerError> {
    if keep.entries.is_empty() && keep.account.balance.is_none() {
        return Ok(());
    }
    let mut books = write::Books::new(transaction, zone)?;
    books.enter(&keep.entries)?;
    if let Some(balance) = &keep.account.balance {
        balance::note(transaction, books.book(&keep.account.name)?, balance)?;
    }
    books.finish()
}

impl Ledger {
    /// In which zone days begin. When the books were added up in another one, [`Ledger::add_up_more`] adds them
    /// up anew; until then answers come from the single entries.
    pub fn use_zone(&mut self, zone: TimeZone) -> Result<(), LedgerError> {
        self.zone = zone;
        Ok(())
    }

    /// Whether sums are missing, or those of another zone.
    pub fn is_unfinished(&self) -> Result<bool, LedgerError> {
        Ok(sums::state(&self.main, &self.zone)? != sums::State::Whole)
    }

    /// Goes on to add the books up in the present zone, for some hundredths of a second; true when that is not
    /// all yet. For the one process that writes.
    pub fn add_up_more(&mut self) -> Result<bool, LedgerError> {
        if self.read_only || !self.is_unfinished()? {
            return Ok(false);
        }
        let zone = self.zone.clone();
        self.write(Durability::Soon, |transaction| sums::add_up_more(transaction, &zone))
    }

    /// Sums of what is closed, for a day and its month.
    pub fn sum_up(&mut self, day: Date) -> Result<Summed, LedgerError> {
        self.read(|reader| reader.sum_up(day))
    }

    /// What is drawn on budgets, in their order.
    pub fn drawn(&mut self, budgets: &[Budget], now: Timestamp) -> Result<Vec<Drawn>, LedgerError> {
        self.read(|reader| reader.drawn(budgets, now))
    }

    /// Answers a question about what is closed. Entries are told as far as they lie in the period.
    pub fn answer(&mut self, question: &Question) -> Result<Answer, LedgerError> {
        self.read(|reader| reader.answer(question))
    }

    fn read<T>(&mut self, work: impl FnOnce(&ask::Reader) -> Result<T, LedgerError>) -> Result<T, LedgerError> {
        // One transaction: all of it is of one moment.
        let transaction = self.main.transaction_with_behavior(TransactionBehavior::Deferred)?;
        work(&ask::Reader::new(&transaction, &self.zone)?)
    }

    /// Writes down all that a provider billed from `from` to `to`, in the place of what was written down of
    /// that time before. It wins over our own figures for the time that it covers.
    pub fn import_billed(
        &mut self,
        account: &AccountName,
        from: Timestamp,
        to: Timestamp,
        lines: &[BilledLine],
    ) -> Result<(), LedgerError> {
        self.write_books(|books| books.import(account, from, to, lines))
    }

    /// Writes down to which projects spend belongs, from some time on.
    pub fn assign(&mut self, assignments: &[Assignment]) -> Result<(), LedgerError> {
        self.write_books(|books| assignments.iter().try_for_each(|assignment| books.assign(assignment)))
    }

    /// Writes down which spend turned out to be waste, or none.
    pub fn mark(&mut self, markings: &[Marking]) -> Result<(), LedgerError> {
        self.write_books(|books| markings.iter().try_for_each(|marking| books.mark(marking)))
    }

    /// Somebody knows that these accounts are watched no more: their resources are no news at the next start.
    pub fn note_unwatched(&mut self, accounts: &[AccountName]) -> Result<(), LedgerError> {
        self.write(Durability::Soon, |transaction| {
            for account in accounts {
                let name = account.as_str();
                let state = transaction.query_row(ACCOUNT, [name], |row| row.get::<_, String>(0)).optional()?;
                let memory = state.as_deref().and_then(row::read::<AccountMemory>);
                if let Some(memory) = memory {
                    let memory = AccountMemory { unwatched_noted: true, ..memory };
                    transaction.execute(KEEP_ACCOUNT, [row::write(&memory)?.as_str(), name])?;
                }
            }
            Ok(())
        })
    }

    fn write_books(
        &mut self,
        work: impl FnOnce(&mut write::Books) -> Result<(), LedgerError>,
    ) -> Result<(), LedgerError> {
        let zone = self.zone.clone();
        self.write(Durability::Soon, |transaction| {
            let mut books = write::Books::new(transaction, &zone)?;
            work(&mut books)?;
            books.finish()
        })
    }
}
