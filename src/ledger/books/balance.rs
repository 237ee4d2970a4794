//! Readings of balances, and what they tell about a period.

use jiff::Timestamp;
use providers::model::{AccountName, Balance};
use providers::money::{Currency, Money};
use rusqlite::{Connection, Row, params};
use rust_decimal::Decimal;

use super::ask::Reader;
use super::sums::time;
use crate::ledger::{LedgerError, row};
use crate::rules::fleet::AsOf;
use crate::rules::spend::BalanceChange;

const LATEST: &str = "
    SELECT at, currency, cash, voucher FROM balance WHERE book = $1 ORDER BY at DESC LIMIT 2";
const NOTE: &str = "INSERT INTO balance (book, at, currency, cash, voucher) VALUES ($1, $2, $3, $4, $5)";
const FORGET: &str = "DELETE FROM balance WHERE book = $1 AND at = $2";
const WITHIN: &str = "
    SELECT at, currency, cash, voucher FROM balance WHERE book = $1 AND at >= $2 AND at < $3 ORDER BY at";
const BOOKS: &str = "SELECT key, account FROM book ORDER BY account";

const HOUR_MS: i64 = 3_600_000;

struct Reading {
    at: i64,
    cash: Money,
    voucher: Option<Money>,
}

fn read(row: &Row) -> Option<Reading> {
    let currency = Currency::parse(row::text(row, 1)?)?;
    let money = |text: &str| Some(Money::new(text.parse::<Decimal>().ok()?, currency));
    let voucher = match row.get_ref(3).ok()?.as_str_or_null().ok()? {
        Some(text) => Some(money(text)?),
        None => None,
    };
    Some(Reading { at: row.get(0).ok()?, cash: money(row::text(row, 2)?)?, voucher })
}

fn readings(connection: &Connection, sql: &str, values: impl rusqlite::Params) -> Result<Vec<Reading>, LedgerError> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(values)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.extend(read(row));
    }
    Ok(found)
}

/// Notes a reading. The latest always stands there; it gives way to the next one unless it is needed: one an
/// hour is, and both sides of each rise.
pub fn note(connection: &Connection, book: i64, balance: &AsOf<Balance>) -> Result<(), LedgerError> {
    let at = row::millis(balance.as_of);
    let Balance { cash, voucher, .. } = balance.value;
    let latest = readings(connection, LATEST, [book])?;
    if latest.first().is_some_and(|last| at <= last.at) {
        return Ok(());
    }
    if let [last, before] = &latest[..] {
        let level = |from: &Money, to: &Money| from.currency == to.currency && to.amount <= from.amount;
        if last.at - before.at < HOUR_MS && level(&before.cash, &last.cash) && level(&last.cash, &cash) {
            connection.prepare_cached(FORGET)?.execute([book, last.at])?;
        }
    }
    let voucher = voucher.filter(|voucher| voucher.currency == cash.currency);
    let voucher = voucher.map(|voucher| voucher.amount.to_string());
    let values = params![book, at, cash.currency.code(), cash.amount.to_string(), voucher];
    connection.prepare_cached(NOTE)?.execute(values)?;
    Ok(())
}

/// How each balance moved between two times; nothing of those that were not read twice.
pub fn changes(reader: &Reader, from: Timestamp, to: Timestamp) -> Result<Vec<BalanceChange>, LedgerError> {
    let mut statement = reader.connection.prepare_cached(BOOKS)?;
    let books = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let books: Vec<(i64, String)> = books.collect::<Result<_, _>>()?;
    let mut changes = Vec::new();
    for (book, account) in books {
        let mut all = readings(reader.connection, WITHIN, params![book, row::millis(from), row::millis(to)])?;
        // Of an account that changed its currency, what it has now.
        let Some(currency) = all.last().map(|last| last.cash.currency) else { continue };
        all.retain(|reading| reading.cash.currency == currency);
        let [first, .., last] = &all[..] else { continue };
        let rises = all.windows(2).map(|pair| pair[1].cash.amount - pair[0].cash.amount);
        let paid_in = rises.filter(|rise| *rise > Decimal::ZERO).sum();
        changes.push(BalanceChange {
            account: AccountName::from(account.as_str()),
            from: time(first.at),
            to: time(last.at),
            first: first.cash,
            last: last.cash,
            paid_in: Money::new(paid_in, currency),
            vouchers: first.voucher.zip(last.voucher),
            charged: reader.charged(book, first.at, last.at, currency)?,
        });
    }
    Ok(changes)
}
