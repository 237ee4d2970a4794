//! Writing in the books: every change of an entry goes through here, so that the sums follow it.

use std::collections::HashMap;

use jiff::tz::TimeZone;
use providers::model::{AccountName, Component, Identity};
use providers::money::Currency;
use rusqlite::{Connection, OptionalExtension, params};

use super::pieces::{self, Piece};
use super::sums::{Deltas, Progress};
use super::terms::{Dictionary, Sort, Standing, component_number, line_number};
use crate::ledger::{LedgerError, row};
use crate::rules::spend::{Entries, Evidence, Exact, Lump, Span, Terms};

const BOOK: &str = "SELECT key FROM book WHERE account = $1";
const NEW_BOOK: &str = "INSERT INTO book (account) VALUES ($1)";
const BILLABLE: &str = "
    SELECT key, since, lines, longest FROM billable
    WHERE book = $1 AND kind = $2 AND id = $3 AND generation = $4";
const NEW_BILLABLE: &str = "
    INSERT INTO billable (book, kind, id, generation, since, lines, longest)
    VALUES ($1, $2, $3, $4, NULL, 0, NULL)";
const KEEP_BILLABLE: &str = "UPDATE billable SET since = $1, lines = $2, longest = $3 WHERE key = $4";
const KEEP_OPEN: &str = "
    INSERT INTO open (billable, state) VALUES ($1, $2) ON CONFLICT (billable) DO UPDATE SET state = excluded.state";
const CLOSE: &str = "DELETE FROM open WHERE billable = $1";

const PIECES: &str = "
    SELECT began, ended, terms, rate FROM span
    WHERE billable = $1 AND line = $2 AND began <= $3 ORDER BY began DESC";
const KEEP_SPAN: &str = "
    INSERT INTO span (billable, line, began, ended, terms, rate) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (billable, line, began) DO UPDATE SET
        ended = excluded.ended, terms = excluded.terms, rate = excluded.rate";
const DROP_SPAN: &str = "DELETE FROM span WHERE billable = $1 AND line = $2 AND began = $3";

const AMOUNTS: &str = "
    SELECT began, ended, terms, billed_before, billed_after, micros, rest FROM amount
    WHERE billable = $1 AND component = $2 AND began >= $3 AND began <= $4
    ORDER BY began, ended, terms, billed_before, billed_after";
const NEW_AMOUNT: &str = "
    INSERT INTO amount (billable, component, began, ended, terms, billed_before, billed_after, micros, rest)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
const DROP_AMOUNT: &str = "
    DELETE FROM amount WHERE billable = $1 AND component = $2 AND began = $3 AND ended = $4 AND terms = $5
        AND billed_before = $6 AND billed_after = $7";
/// Stands in the books where an amount is no provider's: no line is so much longer than a part of it.
const NOT_BILLED: i64 = -1;

/// One row of `billable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    pub key: i64,
    pub book: i64,
    pub since: Option<i64>,
    pub lines: i64,
    pub longest: Option<i64>,
}

impl Item {
    /// The numbers of the lines that it has spans of.
    pub fn lines(&self) -> impl Iterator<Item = i64> + use<> {
        let lines = self.lines;
        (0..i64::from(i64::BITS)).filter(move |line| lines >> line & 1 == 1)
    }

    pub fn has_line(&self, line: i64) -> bool {
        self.lines >> line & 1 == 1
    }
}

/// Where an amount stands: of one component of one billable there is one amount a place. It tells two lines of a
/// provider apart whose parts have the same time and terms, so that neither is taken for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub from: i64,
    /// The same as `from` for a charge of one moment.
    pub to: i64,
    pub terms: i64,
    /// From when to when the provider's line is that it is a part of; `None` for what is no provider's.
    pub billed: Option<(i64, i64)>,
}

impl Place {
    /// How much longer the provider's line is before and after it.
    fn beyond(&self) -> (i64, i64) {
        self.billed.map_or((NOT_BILLED, NOT_BILLED), |(from, to)| (self.from - from, to - self.to))
    }

    fn read(row: &rusqlite::Row) -> rusqlite::Result<Self> {
        let (from, to, before, after): (i64, i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(3)?, row.get(4)?);
        let billed = (before != NOT_BILLED).then_some((from - before, to + after));
        Ok(Place { from, to, terms: row.get(2)?, billed })
    }
}

/// One row of `amount`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount {
    pub place: Place,
    pub amount: Exact,
}

/// The books, while one transaction writes in them.
pub struct Books<'t> {
    pub connection: &'t Connection,
    pub dictionary: Dictionary,
    pub progress: Progress,
    pub deltas: Deltas,
    books: HashMap<AccountName, i64>,
    /// Of each book, up to when something is known to be billed.
    billed_to: HashMap<i64, Option<i64>>,
}

impl<'t> Books<'t> {
    /// `zone` is the one to add up in where nobody can tell in which that was done before.
    pub fn new(connection: &'t Connection, zone: &TimeZone) -> Result<Self, LedgerError> {
        Ok(Books {
            connection,
            dictionary: Dictionary::default(),
            progress: Progress::of(connection, zone)?,
            deltas: Deltas::default(),
            books: HashMap::new(),
            billed_to: HashMap::new(),
        })
    }

    /// Brings the sums up to date. What is written is whole only after this.
    pub fn finish(self) -> Result<(), LedgerError> {
        self.deltas.write(self.connection)
    }

    /// Writes down what a look adds.
    pub fn enter(&mut self, entries: &Entries) -> Result<(), LedgerError> {
        entries.spans.iter().try_for_each(|span| self.span(span))?;
        entries.lumps.iter().try_for_each(|lump| self.lump(lump))?;
        for (identity, running) in &entries.open {
            let key = self.item(identity)?.key;
            match running {
                Some(running) => {
                    self.connection.prepare_cached(KEEP_OPEN)?.execute(params![key, row::write(running)?])?
                }
                None => self.connection.prepare_cached(CLOSE)?.execute(params![key])?,
            };
        }
        Ok(())
    }

    /// Adds a span, or what of it the books do not have yet.
    pub fn span(&mut self, span: &Span) -> Result<(), LedgerError> {
        let (from, to) = (row::millis(span.from), row::millis(span.to));
        if from >= to {
            return Ok(());
        }
        let mut item = self.item(&span.identity)?;
        let terms = self.counting(span.terms.clone(), span.rate.currency, span.evidence)?;
        let line = line_number(span.terms.component, span.terms.charge);
        let old = self.pieces(&item, line, from, to)?;
        let new = pieces::with(&old, Piece { from, to, terms, rate: span.rate.picos() });
        self.rewrite(&mut item, line, &old, &new)?;
        self.settle_late(&mut item, span.terms.component, from, to)
    }

    /// Adds a charge of one moment. Of one moment and one sort of charge there is one, as of spans, whatever became of
    /// it since: it may stand there as replaced, as waste or under another project.
    fn lump(&mut self, lump: &Lump) -> Result<(), LedgerError> {
        let at = row::millis(lump.at);
        let mut item = self.item(&lump.identity)?;
        let terms = self.counting(lump.terms.clone(), lump.currency, lump.evidence)?;
        let component = lump.terms.component;
        for there in self.amounts(&item, component, at, at)?.iter().filter(|there| there.place.billed.is_none()) {
            if self.dictionary.sort(self.connection, there.place.terms)?.terms.charge == lump.terms.charge {
                return Ok(());
            }
        }
        let place = Place { from: at, to: at, terms, billed: None };
        self.put(&mut item, component, Amount { place, amount: lump.amount })?;
        self.settle_late(&mut item, component, at, at)
    }

    /// What comes late, for a time that was billed already.
    fn settle_late(&mut self, item: &mut Item, component: Component, from: i64, to: i64) -> Result<(), LedgerError> {
        let billed_to = match self.billed_to.get(&item.book) {
            Some(known) => *known,
            None => {
                const SQL: &str = "SELECT MAX(ended) FROM imported WHERE book = $1";
                let to = self.connection.prepare_cached(SQL)?.query_row([item.book], |row| row.get(0))?;
                *self.billed_to.entry(item.book).or_insert(to)
            }
        };
        // The provider's last line may reach further than what was asked for.
        if billed_to.is_some_and(|billed_to| from <= billed_to + item.longest.unwrap_or(0)) {
            self.settle(item, component, from, to)?;
        }
        Ok(())
    }

    fn counting(&mut self, terms: Terms, currency: Currency, evidence: Evidence) -> Result<i64, LedgerError> {
        self.dictionary.key(self.connection, &Sort { terms, currency, evidence, standing: Standing::Counts })
    }

    pub fn book(&mut self, account: &AccountName) -> Result<i64, LedgerError> {
        if let Some(key) = self.books.get(account) {
            return Ok(*key);
        }
        let known = self.connection.prepare_cached(BOOK)?.query_row([account.as_str()], |row| row.get(0)).optional()?;
        let key = match known {
            Some(key) => key,
            None => self.connection.prepare_cached(NEW_BOOK)?.insert([account.as_str()])?,
        };
        self.books.insert(account.clone(), key);
        Ok(key)
    }

    pub fn item(&mut self, identity: &Identity) -> Result<Item, LedgerError> {
        let book = self.book(&identity.account)?;
        self.item_of(book, row::kind_word(identity.kind), identity.id.as_str(), identity.generation)
    }

    pub fn item_of(&mut self, book: i64, kind: &str, id: &str, generation: u32) -> Result<Item, LedgerError> {
        let place = params![book, kind, id, generation];
        let known = self.connection.prepare_cached(BILLABLE)?.query_row(place, |row| {
            Ok(Item { key: row.get(0)?, book, since: row.get(1)?, lines: row.get(2)?, longest: row.get(3)? })
        });
        Ok(match known.optional()? {
            Some(item) => item,
            None => {
                let key = self.connection.prepare_cached(NEW_BILLABLE)?.insert(place)?;
                Item { key, book, since: None, lines: 0, longest: None }
            }
        })
    }

    /// What a line has in a time, and what touches it.
    pub fn pieces(&self, item: &Item, line: i64, from: i64, to: i64) -> Result<Vec<Piece>, LedgerError> {
        pieces(self.connection, item, line, from, to)
    }

    /// The amounts of a component that have some of their time between two others, these included.
    pub fn amounts(&self, item: &Item, component: Component, from: i64, to: i64) -> Result<Vec<Amount>, LedgerError> {
        amounts(self.connection, item, component, from, to)
    }

    /// Puts some pieces of a line in the place of others.
    pub fn rewrite(&mut self, item: &mut Item, line: i64, old: &[Piece], new: &[Piece]) -> Result<(), LedgerError> {
        if old == new {
            return Ok(());
        }
        for piece in old.iter().filter(|piece| !new.iter().any(|other| other.from == piece.from)) {
            self.connection.prepare_cached(DROP_SPAN)?.execute(params![item.key, line, piece.from])?;
        }
        for piece in new.iter().filter(|piece| !old.contains(piece)) {
            let Piece { from, to, terms, rate } = piece;
            self.connection.prepare_cached(KEEP_SPAN)?.execute(params![item.key, line, from, to, terms, rate])?;
        }
        let (gone, come) = pieces::differences(old, new);
        for (pieces, sign) in [(gone, -1), (come, 1)] {
            for piece in pieces {
                self.count_piece(item, &piece, sign)?;
            }
        }
        self.change(item, |item| {
            item.since = first(item.since, new.first().map(|piece| piece.from));
            item.lines |= 1 << line;
        })
    }

    /// Adds an amount, where there is none.
    pub fn put(&mut self, item: &mut Item, component: Component, amount: Amount) -> Result<(), LedgerError> {
        let Place { from, to, terms, billed } = amount.place;
        let ((before, after), (micros, rest)) = (amount.place.beyond(), amount.amount.parts());
        let values = params![item.key, component_number(component), from, to, terms, before, after, micros, rest];
        self.connection.prepare_cached(NEW_AMOUNT)?.execute(values)?;
        self.count_amount(item, &amount, 1)?;
        self.change(item, |item| {
            item.since = first(item.since, Some(from));
            let (began, ended) = billed.unwrap_or((from, to));
            item.longest = Some(item.longest.unwrap_or(0).max(ended - began));
        })
    }

    pub fn take(&mut self, item: &Item, component: Component, amount: &Amount) -> Result<(), LedgerError> {
        let Place { from, to, terms, .. } = amount.place;
        let (before, after) = amount.place.beyond();
        let values = params![item.key, component_number(component), from, to, terms, before, after];
        self.connection.prepare_cached(DROP_AMOUNT)?.execute(values)?;
        self.count_amount(item, amount, -1)
    }

    pub fn change(&self, item: &mut Item, change: impl FnOnce(&mut Item)) -> Result<(), LedgerError> {
        let before = *item;
        change(item);
        if *item != before {
            let values = params![item.since, item.lines, item.longest, item.key];
            self.connection.prepare_cached(KEEP_BILLABLE)?.execute(values)?;
        }
        Ok(())
    }

    pub fn count_piece(&mut self, item: &Item, piece: &Piece, sign: i64) -> Result<(), LedgerError> {
        if !self.progress.holds(item.key) {
            return Ok(());
        }
        let terms = self.dictionary.summed(self.connection, piece.terms)?;
        let sort = self.dictionary.sort(self.connection, piece.terms)?;
        self.deltas.add_piece(item, terms, sort, piece, sign, &self.progress.zone);
        Ok(())
    }

    pub fn count_amount(&mut self, item: &Item, amount: &Amount, sign: i64) -> Result<(), LedgerError> {
        if !self.progress.holds(item.key) {
            return Ok(());
        }
        let terms = self.dictionary.summed(self.connection, amount.place.terms)?;
        self.deltas.add_amount(item, terms, amount, sign, &self.progress.zone);
        Ok(())
    }
}

/// The earlier of two times, where there are any.
fn first(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    one.into_iter().chain(other).min()
}

/// What a line has in a time, and what touches it, oldest first.
pub fn pieces(connection: &Connection, item: &Item, line: i64, from: i64, to: i64) -> Result<Vec<Piece>, LedgerError> {
    let mut found = Vec::new();
    if !item.has_line(line) {
        return Ok(found);
    }
    let mut statement = connection.prepare_cached(PIECES)?;
    let mut rows = statement.query(params![item.key, line, to])?;
    while let Some(row) = rows.next()? {
        let piece = Piece { from: row.get(0)?, to: row.get(1)?, terms: row.get(2)?, rate: row.get(3)? };
        // They do not overlap: all others end earlier still.
        if piece.to < from {
            break;
        }
        found.push(piece);
    }
    found.reverse();
    Ok(found)
}

/// The amounts of a component that have some of their time between two others, these included.
pub fn amounts(
    connection: &Connection,
    item: &Item,
    component: Component,
    from: i64,
    to: i64,
) -> Result<Vec<Amount>, LedgerError> {
    let mut found = Vec::new();
    let Some(longest) = item.longest else { return Ok(found) };
    let mut statement = connection.prepare_cached(AMOUNTS)?;
    let mut rows = statement.query(params![item.key, component_number(component), from.saturating_sub(longest), to])?;
    while let Some(row) = rows.next()? {
        let place = Place::read(row)?;
        if place.to >= from {
            found.push(Amount { place, amount: Exact::from_parts(row.get(5)?, row.get(6)?) });
        }
    }
    Ok(found)
}
