//! Entries of a time that turn out to stand on other terms: another project's, or waste.
//!
//! Amounts, rates and times stay as they are: what was charged is not touched.

use providers::model::{Component, Identity};
use rusqlite::{OptionalExtension, params};

use super::pieces::{self, Piece};
use super::sums::time;
use super::terms::Sort;
use super::write::{Amount, Books, Item, Place};
use crate::ledger::{LedgerError, row};
use crate::rules::spend::{COMPONENTS, Marking};

const BILLABLE: &str = "
    SELECT billable.key FROM billable JOIN book ON book.key = book
    WHERE account = $1 AND kind = $2 AND id = $3 AND generation = $4";

impl Books<'_> {
    /// Marks a resource's spend of a time as waste, or as none. What is open says so itself.
    pub fn mark(&mut self, marking: &Marking) -> Result<(), LedgerError> {
        let Marking { identity, from, to, wasted } = marking;
        if !self.knows(identity)? {
            return Ok(());
        }
        let time = (row::millis(*from), to.map_or(i64::MAX, row::millis));
        self.restate(identity, time, |sort| sort.terms.wasted = *wasted)
    }

    /// Whether the books have anything of a resource.
    pub fn knows(&self, identity: &Identity) -> Result<bool, LedgerError> {
        let place = params![
            identity.account.as_str(),
            row::kind_word(identity.kind),
            identity.id.as_str(),
            identity.generation
        ];
        let known: Option<i64> =
            self.connection.prepare_cached(BILLABLE)?.query_row(place, |row| row.get(0)).optional()?;
        Ok(known.is_some())
    }

    /// Changes the terms of all of a resource's entries in a time. What reaches beyond it is cut there.
    pub fn restate(
        &mut self,
        identity: &Identity,
        (from, to): (i64, i64),
        change: impl Fn(&mut Sort),
    ) -> Result<(), LedgerError> {
        let mut item = self.item(identity)?;
        for line in item.lines() {
            let old = self.pieces(&item, line, from, to)?;
            let new = pieces::changed(&old, [from, to], |part: &Piece| match from <= part.from && part.to <= to {
                true => self.dictionary.changed(self.connection, part.terms, &change),
                false => Ok(part.terms),
            })?;
            self.rewrite(&mut item, line, &old, &new)?;
        }
        for component in COMPONENTS {
            for amount in self.amounts(&item, component, from, to)? {
                let terms = self.dictionary.changed(self.connection, amount.place.terms, &change)?;
                if terms != amount.place.terms {
                    self.give(&mut item, component, amount, (from, to), terms)?;
                }
            }
        }
        Ok(())
    }

    /// Puts the part of an amount that stands for a time under other terms.
    fn give(
        &mut self,
        item: &mut Item,
        component: Component,
        amount: Amount,
        (from, to): (i64, i64),
        terms: i64,
    ) -> Result<(), LedgerError> {
        let Place { from: start, to: end, terms: before, .. } = amount.place;
        if start == end {
            // What is charged at the end of a time belongs to that time.
            if start < from || (start == from && from != i64::MIN) || to < start {
                return Ok(());
            }
            self.take(item, component, &amount)?;
            return self.put(item, component, Amount { place: Place { terms, ..amount.place }, ..amount });
        }
        let cuts = [start, from.clamp(start, end), to.clamp(start, end), end];
        if cuts[1] == cuts[2] {
            return Ok(());
        }
        self.take(item, component, &amount)?;
        let until = |at| amount.amount.until(time(at), time(start), time(end));
        for (times, terms) in cuts.windows(2).zip([before, terms, before]) {
            if let [from, to] = *times
                && from < to
            {
                let place = Place { from, to, terms, ..amount.place };
                self.put(item, component, Amount { place, amount: until(to) - until(from) })?;
            }
        }
        Ok(())
    }
}
