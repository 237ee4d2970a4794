//! What providers billed. It wins over our own figures for the time that it covers: those stay in the books
//! as replaced, so that the drift can be shown, and count again when a line is taken back.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use providers::model::{AccountName, BilledLine, Component, ResourceId, ResourceKind};
use providers::money::Currency;
use rusqlite::{OptionalExtension, params};

use super::pieces::{self, Piece};
use super::sums::{read_item, time};
use super::terms::{Sort, Standing, component_number, line_number};
use super::write::{Amount, Books, Item, Place};
use crate::ledger::{LedgerError, row};
use crate::rules::spend::{COMPONENTS, Charge, Evidence, Exact, Terms};

const ITEMS: &str = "
    SELECT key, book, since, lines, longest FROM billable WHERE book = $1 AND since IS NOT NULL ORDER BY key";
const INSTANCES: &str = "
    SELECT key, book, since, lines, longest FROM billable
    WHERE book = $1 AND kind = 'instance' AND longest IS NOT NULL AND since < $2 ORDER BY key";
/// The newest rental of an id that began before a time.
const GENERATION: &str = "
    SELECT generation FROM resource WHERE account = $1 AND kind = $2 AND id = $3
    ORDER BY first_seen >= $4, CASE WHEN first_seen >= $4 THEN generation ELSE -generation END LIMIT 1";
const ITEM: &str = "SELECT key, book, since, lines, longest FROM billable WHERE key = $1";
const KIND: &str = "SELECT kind FROM billable WHERE key = $1";
const HAS_BILLED: &str = "
    SELECT EXISTS (SELECT 1 FROM amount WHERE billable = $1 AND component = $2 AND billed_before >= 0)";
const IMPORTED: &str = "SELECT began, ended FROM imported WHERE book = $1 AND ended >= $2 AND began <= $3";
const FORGET_IMPORTED: &str = "DELETE FROM imported WHERE book = $1 AND ended >= $2 AND began <= $3";
const KEEP_IMPORTED: &str = "INSERT INTO imported (book, began, ended) VALUES ($1, $2, $3)";
const FIRST_SPAN: &str = "SELECT MIN(began) FROM span WHERE billable = $1 AND line = $2";
const FIRST_AMOUNT: &str = "SELECT MIN(began) FROM amount WHERE billable = $1 AND component = $2";

/// Whose some time was, as a billed line takes it over.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Owned {
    from: i64,
    to: i64,
    project: Option<Arc<str>>,
    wasted: bool,
    gpus: u32,
}

impl Owned {
    fn same_owner(&self, other: &Owned) -> bool {
        (&self.project, self.wasted, self.gpus) == (&other.project, other.wasted, other.gpus)
    }
}

/// One component of one billable, as an import finds it and as it is to be.
struct Page {
    item: Item,
    component: Component,
    old: BTreeMap<Place, Amount>,
    new: BTreeMap<Place, Amount>,
}

impl Books<'_> {
    /// Writes down all that was billed from one time to another, in the place of what was written down of it.
    pub fn import(
        &mut self,
        account: &AccountName,
        from: Timestamp,
        to: Timestamp,
        lines: &[BilledLine],
    ) -> Result<(), LedgerError> {
        let (from, to) = (row::millis(from), row::millis(to));
        let book = self.book(account)?;
        let mut found = self.imported_before(book, from, to)?;
        let mut sums: BTreeMap<(i64, i64, i64, i64, Currency), Exact> = BTreeMap::new();
        for line in lines {
            let item = self.item_of_line(account, book, line)?;
            let component = line.component;
            let key = (item.key, component_number(component));
            let known = found.entry(key).or_insert_with(|| Page {
                item,
                component,
                old: BTreeMap::new(),
                new: BTreeMap::new(),
            });
            let (began, ended) = (row::millis(line.from), row::millis(line.to).max(row::millis(line.from)));
            if began < from || to <= began {
                // It began outside of what was asked for, and may stand there already.
                let there = self.amounts(&known.item, component, began, ended)?;
                let there = there.into_iter().filter(|amount| amount.place.billed == Some((began, ended)));
                known.old.extend(there.map(|amount| (amount.place, amount)));
            }
            let currency = line.amount.currency;
            *sums.entry((key.0, key.1, began, ended, currency)).or_default() += Exact::of(line.amount.amount);
        }
        for ((billable, component, began, ended, currency), sum) in sums {
            let page = &found[&(billable, component)];
            let owned = self.owners(page, began, ended)?;
            let component = page.component;
            let mut parts = Vec::new();
            for Owned { from, to, project, wasted, gpus } in owned {
                let terms = Terms { component, charge: Charge::Certain, wasted, project, gpus };
                let sort = Sort { terms, currency, evidence: Evidence::Billed, standing: Standing::Counts };
                let terms = self.dictionary.key(self.connection, &sort)?;
                let until = |at| sum.until(time(at), time(began), time(ended));
                let amount = if began == ended { sum } else { until(to) - until(from) };
                parts.push(Amount { place: Place { from, to, terms, billed: Some((began, ended)) }, amount });
            }
            let page = found.get_mut(&(billable, component_number(component))).expect("it was just found");
            page.new.extend(parts.into_iter().map(|part| (part.place, part)));
        }
        self.note_imported(book, from, to)?;
        for page in found.into_values() {
            self.replace(page, from, to)?;
        }
        // What was only assumed of others is settled by the provider's silence.
        let mut statement = self.connection.prepare_cached(INSTANCES)?;
        let instances: Vec<Item> = statement.query_map([book, to], read_item)?.collect::<Result<_, _>>()?;
        for mut item in instances {
            self.settle(&mut item, Component::Compute, from, to)?;
        }
        Ok(())
    }

    /// What the books have of lines that begin between two times.
    fn imported_before(&self, book: i64, from: i64, to: i64) -> Result<BTreeMap<(i64, i64), Page>, LedgerError> {
        let mut statement = self.connection.prepare_cached(ITEMS)?;
        let items: Vec<Item> = statement.query_map([book], read_item)?.collect::<Result<_, _>>()?;
        let mut found = BTreeMap::new();
        for item in items {
            for component in COMPONENTS {
                let until = to.saturating_add(item.longest.unwrap_or(0));
                let there = self.amounts(&item, component, from, until)?.into_iter();
                let asked = |began: i64| from <= began && began < to;
                let old: BTreeMap<_, _> = there
                    .filter(|amount| amount.place.billed.is_some_and(|(began, _)| asked(began)))
                    .map(|amount| (amount.place, amount))
                    .collect();
                if !old.is_empty() {
                    let page = Page { item, component, old, new: BTreeMap::new() };
                    found.insert((item.key, component_number(component)), page);
                }
            }
        }
        Ok(found)
    }

    fn replace(&mut self, page: Page, from: i64, to: i64) -> Result<(), LedgerError> {
        let Page { item: Item { key, .. }, component, old, new } = page;
        // Another page of it may have changed it since it was found.
        let mut item = self.connection.prepare_cached(ITEM)?.query_row([key], read_item)?;
        let reach =
            old.keys().chain(new.keys()).fold((from, to), |(from, to), place| (from.min(place.from), to.max(place.to)));
        let mut lost = false;
        for (place, amount) in &old {
            if new.get(place) != Some(amount) {
                self.take(&item, component, amount)?;
                lost |= item.since == Some(place.from);
            }
        }
        for (place, amount) in &new {
            if old.get(place) != Some(amount) {
                self.put(&mut item, component, *amount)?;
            }
        }
        if lost {
            let since = self.first_entry(&item)?;
            self.change(&mut item, |item| item.since = since)?;
        }
        self.settle(&mut item, component, reach.0, reach.1)
    }

    fn first_entry(&self, item: &Item) -> Result<Option<i64>, LedgerError> {
        let mut first: Option<i64> = None;
        let spans = item.lines().map(|line| (FIRST_SPAN, line));
        for (sql, number) in spans.chain(COMPONENTS.map(|component| (FIRST_AMOUNT, component_number(component)))) {
            let began: Option<i64> =
                self.connection.prepare_cached(sql)?.query_row([item.key, number], |row| row.get(0))?;
            first = first.into_iter().chain(began).min();
        }
        Ok(first)
    }

    /// Whose the time of a line was: as our own spans tell, else as the books have that line already. A gap belongs
    /// to who was there before it, the time before the first to that one. Of nobody's time all is told in one part.
    fn owners(&mut self, page: &Page, from: i64, to: i64) -> Result<Vec<Owned>, LedgerError> {
        let mut own = self.owned_spans(&page.item, page.component, from, to)?;
        if own.is_empty() {
            for place in parts_of(page, from, to) {
                let terms = &self.dictionary.sort(self.connection, place.terms)?.terms;
                let project = terms.project.clone();
                own.push(Owned { from: place.from, to: place.to, project, wasted: terms.wasted, gpus: terms.gpus });
            }
        }
        own.sort_by_key(|owned| owned.from);
        let mut parts: Vec<Owned> = Vec::new();
        for owned in own {
            match parts.last_mut() {
                Some(last) if last.same_owner(&owned) => {}
                Some(last) if last.from < owned.from && owned.from < to => {
                    last.to = owned.from;
                    parts.push(Owned { to, ..owned });
                }
                Some(_) => {}
                None => parts.push(Owned { from, to, ..owned }),
            }
        }
        if parts.is_empty() {
            parts.push(Owned { from, to, project: None, wasted: false, gpus: 0 });
        }
        Ok(parts)
    }

    /// Our own spans of a component in a time; of any other when there are none, for the project.
    fn owned_spans(
        &mut self,
        item: &Item,
        component: Component,
        from: i64,
        to: i64,
    ) -> Result<Vec<Owned>, LedgerError> {
        let others = COMPONENTS.into_iter().filter(|other| *other != component);
        for (other, charge) in
            std::iter::once(component).chain(others).flat_map(|component| Charge::ALL.map(|charge| (component, charge)))
        {
            let mut own = Vec::new();
            for piece in self.pieces(item, line_number(other, charge), from, to)? {
                if !overlaps((piece.from, piece.to), (from, to)) {
                    continue;
                }
                let terms = &self.dictionary.sort(self.connection, piece.terms)?.terms;
                let gpus = if other == component { terms.gpus } else { 0 };
                let project = terms.project.clone();
                own.push(Owned { from: piece.from, to: piece.to, project, wasted: terms.wasted, gpus });
            }
            if !own.is_empty() {
                return Ok(own);
            }
        }
        Ok(Vec::new())
    }

    fn item_of_line(&mut self, account: &AccountName, book: i64, line: &BilledLine) -> Result<Item, LedgerError> {
        let Some((kind, id)) = &line.resource else { return self.item_of(book, "product", &line.product, 0) };
        let generation = self.generation(account, *kind, id, row::millis(line.to))?;
        self.item_of(book, row::kind_word(*kind), id.as_str(), generation)
    }

    /// Which rental of an id a line is about, its time being all that tells.
    fn generation(
        &self,
        account: &AccountName,
        kind: ResourceKind,
        id: &ResourceId,
        at: i64,
    ) -> Result<u32, LedgerError> {
        let values = params![account.as_str(), row::kind_word(kind), id.as_str(), at];
        let found = self.connection.prepare_cached(GENERATION)?.query_row(values, |row| row.get(0)).optional()?;
        Ok(found.unwrap_or(0))
    }

    fn note_imported(&mut self, book: i64, from: i64, to: i64) -> Result<(), LedgerError> {
        let mut windows = self.imported(book, from, to)?;
        windows.push((from, to));
        self.connection.prepare_cached(FORGET_IMPORTED)?.execute([book, from, to])?;
        for (from, to) in pieces::union(windows) {
            self.connection.prepare_cached(KEEP_IMPORTED)?.execute([book, from, to])?;
        }
        Ok(())
    }

    /// The times for which the books have all that was billed, as far as they touch a time.
    fn imported(&self, book: i64, from: i64, to: i64) -> Result<Vec<(i64, i64)>, LedgerError> {
        let mut statement = self.connection.prepare_cached(IMPORTED)?;
        let windows = statement.query_map([book, from, to], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(windows.collect::<Result<_, _>>()?)
    }

    /// Makes our own figures of a component, in a time, count or not, by what was billed.
    pub fn settle(&mut self, item: &mut Item, component: Component, from: i64, to: i64) -> Result<(), LedgerError> {
        let amounts = self.amounts(item, component, from, to)?;
        let lines = amounts.iter().filter(|amount| amount.place.billed.is_some());
        let billed = pieces::union(lines.map(|amount| (amount.place.from, amount.place.to)).collect());
        let known = self.known_wholly(item, component, from, to)?;
        let standing = |sort: &Sort, from: i64, to: i64| match () {
            () if within(&billed, from, to) => Standing::Billed,
            () if is_guess(sort) && within(&known, from, to) => Standing::Disproved,
            () => Standing::Counts,
        };
        let edges = billed.iter().chain(&known).flat_map(|(from, to)| [*from, *to]);
        let cuts: Vec<i64> = edges.chain([from, to]).collect();
        for charge in Charge::ALL {
            let line = line_number(component, charge);
            let old = self.pieces(item, line, from, to)?;
            let new = pieces::changed(&old, cuts.iter().copied(), |part: &Piece| {
                if part.from < from || part.to > to {
                    return Ok(part.terms);
                }
                self.dictionary.changed(self.connection, part.terms, |sort| {
                    sort.standing = standing(sort, part.from, part.to);
                })
            })?;
            self.rewrite(item, line, &old, &new)?;
        }
        for amount in amounts.iter().filter(|amount| amount.place.billed.is_none()) {
            // What is charged at the end of a time belongs to that time.
            let at = amount.place.from;
            let terms = self.dictionary.changed(self.connection, amount.place.terms, |sort| {
                sort.standing = standing(sort, at - 1, at);
            })?;
            if terms != amount.place.terms {
                self.take(item, component, amount)?;
                self.put(item, component, Amount { place: Place { terms, ..amount.place }, ..*amount })?;
            }
        }
        Ok(())
    }

    /// The times for which the provider's list tells all there is to tell of an instance's compute: those that
    /// were imported, of an instance that it bills line by line. An assumption of ours that is not among it is
    /// wrong there (it stopped while nobody looked); a sight of ours is not, however silent the list is.
    fn known_wholly(
        &self,
        item: &Item,
        component: Component,
        from: i64,
        to: i64,
    ) -> Result<Vec<(i64, i64)>, LedgerError> {
        if component != Component::Compute || item.longest.is_none() {
            return Ok(Vec::new());
        }
        let kind: String = self.connection.prepare_cached(KIND)?.query_row([item.key], |row| row.get(0))?;
        let values = params![item.key, component_number(component)];
        let billed: bool = self.connection.prepare_cached(HAS_BILLED)?.query_row(values, |row| row.get(0))?;
        if kind != row::kind_word(ResourceKind::Instance) || !billed {
            return Ok(Vec::new());
        }
        self.imported(item.book, from, to)
    }
}

/// The parts in which the books have a line already. One that is not there may be another one that was corrected.
fn parts_of(page: &Page, from: i64, to: i64) -> Vec<&Place> {
    let parts = |is_it: &dyn Fn((i64, i64)) -> bool| -> Vec<&Place> {
        page.old.keys().filter(|place| place.billed.is_some_and(is_it)).collect()
    };
    let same = parts(&|line| line == (from, to));
    if same.is_empty() { parts(&|(began, _)| began == from) } else { same }
}

/// Nobody saw it, and it would have been billed.
fn is_guess(sort: &Sort) -> bool {
    sort.evidence == Evidence::Assumed && sort.terms.charge != Charge::Prepaid
}

/// Whether two times share more than an edge, or one of them is a moment within the other.
fn overlaps(one: (i64, i64), other: (i64, i64)) -> bool {
    one == other || (one.0 < other.1 && other.0 < one.1)
}

/// Whether all of a time lies in one of some others.
fn within(others: &[(i64, i64)], from: i64, to: i64) -> bool {
    others.iter().any(|other| other.0 <= from && to <= other.1)
}
