//! Reading the books: sums and single entries.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use providers::model::{AccountName, Identity};
use providers::money::{Currency, Rate};
use rusqlite::{Connection, OptionalExtension, params};

use super::balance;
use super::pieces::Piece;
use super::sums::{self, Deltas, State, Sum, day_number, day_of, month_number, read_item, time};
use super::terms::{self, Sort};
use super::write::{self, Amount, Item, Place};
use crate::ledger::{LedgerError, row};
use crate::rules::spend::{
    Answer, Billable, COMPONENTS, Cell, Charge, Entry, Exact, Period, Question, RowSums, Summed, Sums, Terms, date_of,
};

const BOOKS: &str = "SELECT key, account FROM book";
const SINCE: &str = "SELECT MIN(since) FROM billable WHERE book = $1";
const ITEM: &str = "SELECT key, book, since, lines, longest FROM billable WHERE key = $1";
pub const ITEMS: &str = "SELECT key, book, since, lines, longest FROM billable WHERE since < $1 ORDER BY key";
const ITEMS_OF: &str = "SELECT key, book, since, lines, longest FROM billable WHERE since < $1 AND book = $2";
/// Names are those of the fleet; of what never was in it, the id.
const NAMES: &str = "
    SELECT billable.key, book.account, billable.kind, billable.id, billable.generation,
           CASE WHEN resource.id IS NULL THEN billable.id ELSE resource.name END
    FROM billable JOIN book ON book.key = billable.book
    LEFT JOIN resource ON resource.account = book.account AND resource.kind = billable.kind
        AND resource.id = billable.id AND resource.generation = billable.generation";
const FIND: &str = "
    SELECT billable.key, book, since, lines, longest FROM billable JOIN book ON book.key = book
    WHERE account = $1 AND kind = $2 AND id = $3 AND generation = $4";
pub const DAYS: &str = "
    SELECT day, book, terms, micros, rest, gpu_ms FROM day_sum WHERE day >= $1 AND day < $2";
const DAY_OF_BOOK: &str = "SELECT terms, micros, rest FROM day_sum WHERE day = $1 AND book = $2";
const MONTHS: &str = "
    SELECT billable, month, terms, micros, rest, gpu_ms FROM month_sum WHERE month >= $1 AND month < $2";
const MONTHS_OF: &str = "
    SELECT billable, month, terms, micros, rest, gpu_ms FROM month_sum WHERE billable = $1";
const PRESENT: &str = "
    SELECT billable.key, resource.account, resource.kind, resource.id, resource.generation, since
    FROM resource LEFT JOIN book ON book.account = resource.account
    LEFT JOIN billable ON billable.book = book.key AND billable.kind = resource.kind
        AND billable.id = resource.id AND billable.generation = resource.generation
    WHERE gone_at IS NULL";

/// The books, while they are read.
pub struct Reader<'c> {
    pub connection: &'c Connection,
    pub zone: &'c TimeZone,
    pub state: State,
    pub sorts: HashMap<i64, Sort>,
    pub accounts: HashMap<i64, AccountName>,
}

/// Numbers as the tables of sums have them, each with its sum.
pub type Rows = Vec<((i64, i64, i64), Sum)>;

impl<'c> Reader<'c> {
    pub fn new(connection: &'c Connection, zone: &'c TimeZone) -> Result<Self, LedgerError> {
        let mut statement = connection.prepare_cached(BOOKS)?;
        let accounts = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?.as_str().into())))?;
        let accounts = accounts.collect::<Result<_, _>>()?;
        Ok(Reader { connection, zone, state: sums::state(connection, zone)?, sorts: terms::all(connection)?, accounts })
    }

    pub fn answer(&self, question: &Question) -> Result<Answer, LedgerError> {
        let (Question::Days(period)
        | Question::Resources(period)
        | Question::Balances(period)
        | Question::Entries { period, .. }) = question;
        let (from, to) = (period.start(self.zone), period.end(self.zone));
        let mut answer = Answer {
            question: question.clone(),
            cells: Vec::new(),
            entries: Vec::new(),
            since: self.since()?,
            balances: Vec::new(),
            unfinished: false,
        };
        match question {
            Question::Days(period) => {
                answer.unfinished = self.state == State::Unfinished;
                answer.cells = self.days(*period)?.into_iter().filter_map(|row| self.day_cell(row)).collect();
            }
            Question::Resources(period) => answer.cells = self.resources(*period)?,
            Question::Balances(_) => answer.balances = balance::changes(self, from, to)?,
            Question::Entries { account, billable, .. } => {
                answer.entries = self.entries(account, billable, row::millis(from), row::millis(to))?;
            }
        }
        Ok(answer)
    }

    /// The sums of what is closed.
    pub fn sum_up(&self, day: Date) -> Result<Summed, LedgerError> {
        let mut summed =
            Summed { day, since: self.since()?.into_iter().map(|(_, since)| since).min(), ..Summed::default() };
        for ((number, _, terms), sum) in self.days(Period::month(day))? {
            self.add(&mut summed.month, terms, sum);
            if number == day_number(day) {
                self.add(&mut summed.today, terms, sum);
            }
        }
        let mut statement = self.connection.prepare_cached(PRESENT)?;
        let mut present = statement.query([])?;
        while let Some(row) = present.next()? {
            let Some(identity) = row::identity(row, 1) else { continue };
            let since = row.get::<_, Option<i64>>(5)?.map(time);
            let mut sums = RowSums { since, ..RowSums::default() };
            // One by one: of most that is in the books nobody asks any more.
            let billable: Option<i64> = row.get(0)?;
            for ((_, month, terms), sum) in billable.map(|key| self.months_of(key)).transpose()?.unwrap_or_default() {
                self.add(&mut sums.rental, terms, sum);
                if month == month_number(day) {
                    self.add(&mut sums.month, terms, sum);
                }
            }
            summed.rows.push((identity, sums));
        }
        Ok(summed)
    }

    pub fn add(&self, sums: &mut Sums, terms: i64, (amount, gpu_ms): Sum) {
        if let Some(sort) = self.sorts.get(&terms) {
            let of = sums.0.entry(sort.currency).or_default();
            of.add(&sort.terms, sort.evidence, sort.is_replaced(), amount, gpu_ms);
        }
    }

    /// Since when each account is in the books.
    fn since(&self) -> Result<Vec<(AccountName, Timestamp)>, LedgerError> {
        let mut statement = self.connection.prepare_cached(SINCE)?;
        let mut since = Vec::new();
        for (book, account) in &self.accounts {
            let at: Option<i64> = statement.query_row([book], |row| row.get(0))?;
            since.extend(at.map(|at| (account.clone(), time(at))));
        }
        since.sort();
        Ok(since)
    }

    /// Sums by day, book and terms. Where those of the tables are another zone's, from the entries: right, and
    /// slow only with large books.
    fn days(&self, period: Period) -> Result<Rows, LedgerError> {
        if self.state == State::Elsewhere {
            let (from, to) = (row::millis(period.start(self.zone)), row::millis(period.end(self.zone)));
            let sums = self.add_entries_up(self.items(ITEMS, params![to])?, from, to, self.zone)?;
            return Ok(sums.into_days().into_iter().collect());
        }
        self.rows(DAYS, [day_number(period.from), day_number(period.to)])
    }

    /// Sums by billable, month and terms, of a period: from the tables where it is one of whole months.
    fn months(&self, period: Period) -> Result<Rows, LedgerError> {
        if self.state == State::Whole && period.from.day() == 1 && period.to.day() == 1 {
            return self.rows(MONTHS, [month_number(period.from), month_number(period.to)]);
        }
        let (from, to) = (row::millis(period.start(self.zone)), row::millis(period.end(self.zone)));
        Ok(self
            .add_entries_up(self.items(ITEMS, params![to])?, from, to, self.zone)?
            .into_months()
            .into_iter()
            .collect())
    }

    /// The same of one billable and all months.
    fn months_of(&self, billable: i64) -> Result<Rows, LedgerError> {
        if self.state == State::Whole {
            return self.rows(MONTHS_OF, [billable]);
        }
        let sums = self.add_entries_up(self.items(ITEM, [billable])?, i64::MIN, i64::MAX, self.zone)?;
        Ok(sums.into_months().into_iter().collect())
    }

    pub fn rows(&self, sql: &str, values: impl rusqlite::Params) -> Result<Rows, LedgerError> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(values)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let sum = (Exact::from_parts(row.get(3)?, row.get(4)?), row.get(5)?);
            // What was taken away again leaves nothing.
            if sum != Sum::default() {
                found.push(((row.get(0)?, row.get(1)?, row.get(2)?), sum));
            }
        }
        Ok(found)
    }

    /// Adds all entries of some billables up between two times, by the days and months of a zone.
    pub fn add_entries_up(&self, items: Vec<Item>, from: i64, to: i64, zone: &TimeZone) -> Result<Deltas, LedgerError> {
        let mut sums = Deltas::default();
        let keys: HashMap<&Sort, i64> = self.sorts.iter().map(|(key, sort)| (sort, *key)).collect();
        let mut without_gpus = HashMap::new();
        for item in items {
            for entry in self.entries_of(&item, from, to)? {
                let key = entry.terms();
                let Some(sort) = self.sorts.get(&key) else { continue };
                // Where there is no such sort, any will do: cells show no GPUs in any case.
                let summed = *without_gpus.entry(key).or_insert_with(|| {
                    let terms = Terms { gpus: 0, ..sort.terms.clone() };
                    keys.get(&Sort { terms, ..sort.clone() }).copied().unwrap_or(key)
                });
                match entry {
                    Found::Piece(piece) => sums.add_piece(&item, summed, sort, &piece, 1, zone),
                    Found::Amount(amount) => {
                        sums.add_amount_within(&item, summed, &amount, (from, to), 1, zone);
                    }
                }
            }
        }
        Ok(sums)
    }

    pub fn items(&self, sql: &str, values: impl rusqlite::Params) -> Result<Vec<Item>, LedgerError> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let items = statement.query_map(values, read_item)?;
        Ok(items.collect::<Result<_, _>>()?)
    }

    /// The parts of all spans of a billable that lie between two times, and the amounts that have a part there.
    fn entries_of(&self, item: &Item, from: i64, to: i64) -> Result<Vec<Found>, LedgerError> {
        let mut found = Vec::new();
        for line in item.lines() {
            let pieces = write::pieces(self.connection, item, line, from, to)?;
            found.extend(pieces.into_iter().filter_map(|piece| piece.within(from, to)).map(Found::Piece));
        }
        if item.longest.is_some() {
            for component in COMPONENTS {
                let amounts = write::amounts(self.connection, item, component, from, to)?;
                found.extend(amounts.into_iter().filter(|amount| overlaps(amount, from, to)).map(Found::Amount));
            }
        }
        Ok(found)
    }

    fn day_cell(&self, ((day, book, terms), (amount, gpu_ms)): ((i64, i64, i64), Sum)) -> Option<Cell> {
        let sort = self.sorts.get(&terms)?;
        Some(Cell {
            day: day_of(day)?,
            account: self.accounts.get(&book)?.clone(),
            billable: None,
            terms: Terms { gpus: 0, ..sort.terms.clone() },
            evidence: sort.evidence,
            replaced: sort.is_replaced(),
            currency: sort.currency,
            amount,
            gpu_ms,
        })
    }

    fn resources(&self, period: Period) -> Result<Vec<Cell>, LedgerError> {
        let mut sums: BTreeMap<(i64, i64), Sum> = BTreeMap::new();
        for ((billable, _, terms), (amount, gpu_ms)) in self.months(period)? {
            let sum = sums.entry((billable, terms)).or_default();
            sum.0 += amount;
            sum.1 += gpu_ms;
        }
        let names = self.names()?;
        let cells = sums.into_iter().filter(|(_, sum)| *sum != Sum::default()).filter_map(
            |((billable, terms), (amount, gpu_ms))| {
                let (sort, (account, billable)) = (self.sorts.get(&terms)?, names.get(&billable)?);
                Some(Cell {
                    day: period.from,
                    account: account.clone(),
                    billable: Some(billable.clone()),
                    terms: Terms { gpus: 0, ..sort.terms.clone() },
                    evidence: sort.evidence,
                    replaced: sort.is_replaced(),
                    currency: sort.currency,
                    amount,
                    gpu_ms,
                })
            },
        );
        Ok(cells.collect())
    }

    /// What each billable is called.
    fn names(&self) -> Result<HashMap<i64, (AccountName, Billable)>, LedgerError> {
        let mut statement = self.connection.prepare_cached(NAMES)?;
        let mut rows = statement.query([])?;
        let mut names = HashMap::new();
        while let Some(row) = rows.next()? {
            let (key, account): (i64, String) = (row.get(0)?, row.get(1)?);
            let billable = match row::identity(row, 1) {
                Some(identity) => Billable::Resource { identity, name: row.get(5)? },
                None => Billable::Product(row.get(3)?),
            };
            names.insert(key, (account.as_str().into(), billable));
        }
        Ok(names)
    }

    fn entries(
        &self,
        account: &AccountName,
        billable: &Billable,
        from: i64,
        to: i64,
    ) -> Result<Vec<Entry>, LedgerError> {
        let (kind, id, generation) = match billable {
            Billable::Resource { identity: Identity { kind, id, generation, .. }, .. } => {
                (row::kind_word(*kind), id.as_str(), *generation)
            }
            Billable::Product(name) => ("product", name.as_str(), 0),
        };
        let place = params![account.as_str(), kind, id, generation];
        let item = self.connection.prepare_cached(FIND)?.query_row(place, read_item).optional()?;
        let Some(item) = item else { return Ok(Vec::new()) };
        let found = self.entries_of(&item, from, to)?;
        let mut entries: Vec<Entry> = found.into_iter().filter_map(|found| self.entry(found, from, to)).collect();
        let order = |entry: &Entry| (entry.from, entry.to, entry.evidence);
        entries.sort_by(|one, other| order(one).cmp(&order(other)).then_with(|| one.terms.cmp(&other.terms)));
        Ok(entries)
    }

    /// An entry, or the part of it that lies between two times.
    fn entry(&self, found: Found, from: i64, to: i64) -> Option<Entry> {
        let sort = self.sorts.get(&found.terms())?;
        let (start, end, rate) = match &found {
            Found::Piece(piece) => (piece.from, piece.to, Some(Rate::from_picos(piece.rate, sort.currency))),
            Found::Amount(amount) => (amount.place.from, amount.place.to, None),
        };
        Some(Entry {
            from: time(start.max(from)),
            to: time(end.min(to)),
            terms: sort.terms.clone(),
            evidence: sort.evidence,
            replaced: sort.is_replaced(),
            rate,
            amount: found.amount(from, to),
            currency: sort.currency,
        })
    }

    /// What is closed and certain of an account between two times: whole days from their sums, the rest from
    /// the entries.
    pub fn charged(&self, book: i64, from: i64, to: i64, currency: Currency) -> Result<Exact, LedgerError> {
        let counts = |terms: i64| {
            let sort = self.sorts.get(&terms);
            sort.is_some_and(|sort| {
                sort.currency == currency && sort.terms.charge == Charge::Certain && !sort.is_replaced()
            })
        };
        let first = Period::day(date_of(time(from), self.zone)).to;
        let last = date_of(time(to), self.zone);
        let whole = Period { from: first, to: last };
        let mut charged = Exact::ZERO;
        let edges = if self.state == State::Whole && !whole.is_empty() {
            let mut statement = self.connection.prepare_cached(DAY_OF_BOOK)?;
            for day in whole.days() {
                let mut rows = statement.query([day_number(day), book])?;
                while let Some(row) = rows.next()? {
                    if counts(row.get(0)?) {
                        charged += Exact::from_parts(row.get(1)?, row.get(2)?);
                    }
                }
            }
            vec![(from, row::millis(whole.start(self.zone))), (row::millis(whole.end(self.zone)), to)]
        } else {
            vec![(from, to)]
        };
        for (from, to) in edges {
            for item in self.items(ITEMS_OF, params![to, book])? {
                let found = self.entries_of(&item, from, to)?.into_iter();
                charged += found.filter(|found| counts(found.terms())).map(|found| found.amount(from, to)).sum();
            }
        }
        Ok(charged)
    }
}

/// One row of the books.
enum Found {
    /// Cut to what was asked for.
    Piece(Piece),
    Amount(Amount),
}

impl Found {
    fn terms(&self) -> i64 {
        match self {
            Found::Piece(piece) => piece.terms,
            Found::Amount(amount) => amount.place.terms,
        }
    }

    /// What it comes to between two times. One of a moment is there as a whole.
    fn amount(&self, from: i64, to: i64) -> Exact {
        match self {
            // The currency is of no weight here.
            Found::Piece(piece) => {
                Exact::over(Rate::from_picos(piece.rate, Currency::USD), time(piece.from), time(piece.to))
            }
            Found::Amount(Amount { place, amount, .. }) if place.from == place.to => *amount,
            Found::Amount(Amount { place, amount, .. }) => {
                let until = |at| amount.until(time(at), time(place.from), time(place.to));
                until(place.to.min(to)) - until(place.from.max(from))
            }
        }
    }
}

/// Whether an amount has a part between two times. One of a moment belongs to the time that it begins.
fn overlaps(amount: &Amount, from: i64, to: i64) -> bool {
    let Place { from: start, to: end, .. } = amount.place;
    start < to && (from < end || (start == end && from == start))
}
