//! Spend that turns out to belong to another project.

use std::sync::Arc;

use jiff::Timestamp;
use providers::model::{Component, Identity, ResourceKind};
use rusqlite::{OptionalExtension, params};

use super::pieces::{self, Piece};
use super::sums::time;
use super::write::{Amount, Books, Item, Place};
use crate::ledger::{LedgerError, row};
use crate::rules::memory::AccountMemory;
use crate::rules::spend::{Assignment, COMPONENTS, Evidence, Running, Span};

const BILLABLE: &str = "
    SELECT billable.key FROM billable JOIN book ON book.key = book
    WHERE account = $1 AND kind = $2 AND id = $3 AND generation = $4";
const OPEN: &str = "SELECT state FROM open WHERE billable = $1";
const KEEP_OPEN: &str = "UPDATE open SET state = $1 WHERE billable = $2";
const ACCOUNT: &str = "SELECT state FROM account WHERE name = $1";

impl Books<'_> {
    /// Gives all of a resource's spend from a time on to a project. Of a resource without any nothing is kept.
    pub fn assign(&mut self, assignment: &Assignment) -> Result<(), LedgerError> {
        let Assignment { identity, from, project } = assignment;
        let place = params![
            identity.account.as_str(),
            row::kind_word(identity.kind),
            identity.id.as_str(),
            identity.generation
        ];
        let known: Option<i64> =
            self.connection.prepare_cached(BILLABLE)?.query_row(place, |row| row.get(0)).optional()?;
        if known.is_none() {
            return Ok(());
        }
        let from = from.map_or(i64::MIN, row::millis);
        let project: Option<Arc<str>> = project.as_deref().map(Arc::from);
        self.assign_open(identity, from, project.as_ref())?;
        let mut item = self.item(identity)?;
        for line in item.lines() {
            let old = self.pieces(&item, line, from, i64::MAX)?;
            let new = pieces::changed(&old, [from], |part: &Piece| {
                if part.from < from { Ok(part.terms) } else { self.owned_by(part.terms, project.as_ref()) }
            })?;
            self.rewrite(&mut item, line, &old, &new)?;
        }
        for component in COMPONENTS {
            for amount in self.amounts(&item, component, from, i64::MAX)? {
                let terms = self.owned_by(amount.place.terms, project.as_ref())?;
                if terms != amount.place.terms {
                    self.give(&mut item, component, amount, from, terms)?;
                }
            }
        }
        Ok(())
    }

    fn owned_by(&mut self, terms: i64, project: Option<&Arc<str>>) -> Result<i64, LedgerError> {
        self.dictionary.changed(self.connection, terms, |sort| sort.terms.project = project.cloned())
    }

    /// Puts the part of an amount that stands for the time from `from` on under other terms.
    fn give(
        &mut self,
        item: &mut Item,
        component: Component,
        amount: Amount,
        from: i64,
        terms: i64,
    ) -> Result<(), LedgerError> {
        let Place { from: start, to: end, terms: before } = amount.place;
        if start < from && end <= from {
            return Ok(());
        }
        self.take(item, component, &amount)?;
        if start >= from {
            return self.put(item, component, Amount { place: Place { terms, ..amount.place }, ..amount });
        }
        let first = amount.amount.until(time(from), time(start), time(end));
        let parts = [(start, from, before, first), (from, end, terms, amount.amount - first)];
        for (from, to, terms, part) in parts {
            self.put(item, component, Amount { place: Place { from, to, terms }, amount: part, ..amount })?;
        }
        Ok(())
    }

    /// What is open belongs to the project too. Of a line that began before, the time up to then is closed.
    fn assign_open(&mut self, identity: &Identity, from: i64, project: Option<&Arc<str>>) -> Result<(), LedgerError> {
        let key = self.item(identity)?.key;
        let state: Option<String> =
            self.connection.prepare_cached(OPEN)?.query_row([key], |row| row.get(0)).optional()?;
        // What this version cannot read stays as it is.
        let Some(mut running) = state.as_deref().and_then(row::read::<Running>) else { return Ok(()) };
        let seen = match running.seen {
            Some(seen) => Some(seen),
            None => self.last_look(identity)?,
        };
        let Some(seen) = seen.map(row::millis) else { return Ok(()) };
        for line in &mut running.lines {
            if line.terms.project.as_ref() == project {
                continue;
            }
            if row::millis(line.from) < from {
                // Nobody knows yet what will be charged then: whoever looks next says whose it is.
                if from > seen {
                    continue;
                }
                let (terms, rate, at) = (line.terms.clone(), line.rate, time(from));
                let identity = identity.clone();
                self.span(&Span { identity, terms, rate, from: line.from, to: at, evidence: Evidence::Observed })?;
                line.from = at;
            }
            line.terms.project = project.cloned();
        }
        self.connection.prepare_cached(KEEP_OPEN)?.execute(params![row::write(&running)?, key])?;
        Ok(())
    }

    fn last_look(&self, identity: &Identity) -> Result<Option<Timestamp>, LedgerError> {
        let mut statement = self.connection.prepare_cached(ACCOUNT)?;
        let state: Option<String> = statement.query_row([identity.account.as_str()], |row| row.get(0)).optional()?;
        let memory = state.as_deref().and_then(row::read::<AccountMemory>);
        let last = memory.and_then(|memory| match identity.kind {
            ResourceKind::Instance => memory.instances_seen,
            ResourceKind::Storage => memory.storage_seen,
        });
        Ok(last.map(|last| last.at))
    }
}
