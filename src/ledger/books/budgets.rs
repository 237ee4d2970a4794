//! What is drawn on budgets: closed sums by day of each budget's own zone.

use std::collections::{BTreeMap, HashMap};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use providers::model::{AccountName, Identity, Instance, ProviderName, ResourceKind, StorageItem};
use rusqlite::params;

use super::ask::{ITEMS, Reader, Rows};
use super::sums::day_of;
use crate::ledger::{LedgerError, row};
use crate::rules::budgets::{Budget, Drawn, Thing};
use crate::rules::spend::{Billable, Period, Sums, date_of, start_of};

const PROVIDERS: &str = "SELECT name, provider FROM account";
const LABELS: &str = "SELECT account, kind, id, generation, state FROM resource";

type Labels = HashMap<Identity, BTreeMap<String, String>>;

impl Reader<'_> {
    /// What each budget's present term holds, in their order.
    pub fn drawn(&self, budgets: &[Budget], now: Timestamp) -> Result<Vec<Drawn>, LedgerError> {
        let mut desk = Desk { providers: self.providers()?, labels: None, days: Vec::new() };
        budgets.iter().map(|budget| desk.drawn(self, budget, now)).collect()
    }

    fn providers(&self) -> Result<HashMap<AccountName, ProviderName>, LedgerError> {
        let mut statement = self.connection.prepare_cached(PROVIDERS)?;
        let read = |row: &rusqlite::Row| {
            let (name, provider): (String, String) = (row.get(0)?, row.get(1)?);
            Ok((name.as_str().into(), provider.as_str().into()))
        };
        Ok(statement.query_map([], read)?.collect::<Result<_, _>>()?)
    }

    /// Of every resource that was ever seen, as it was seen last.
    fn labels(&self) -> Result<Labels, LedgerError> {
        let mut statement = self.connection.prepare_cached(LABELS)?;
        let mut rows = statement.query([])?;
        let mut labels = Labels::new();
        while let Some(found) = rows.next()? {
            let Some(identity) = row::identity(found, 0) else { continue };
            let Some(state) = row::text(found, 4) else { continue };
            let own = match identity.kind {
                ResourceKind::Instance => row::read::<Instance>(state).map(|row| row.labels),
                ResourceKind::Storage => row::read::<StorageItem>(state).map(|row| row.labels),
            };
            labels.extend(own.filter(|own| !own.is_empty()).map(|own| (identity, own)));
        }
        Ok(labels)
    }
}

/// What several budgets need, read once.
struct Desk {
    providers: HashMap<AccountName, ProviderName>,
    labels: Option<Labels>,
    /// The days of a zone and period that were added up already.
    days: Vec<(TimeZone, Period, Rows)>,
}

impl Desk {
    fn drawn(&mut self, books: &Reader, budget: &Budget, now: Timestamp) -> Result<Drawn, LedgerError> {
        let term = budget.term(now);
        let mut drawn = Drawn { name: budget.name.clone(), from: term.from, days: BTreeMap::new() };
        // What is closed lies before now, but for a clock that was set back.
        let tomorrow = date_of(now, &budget.zone).saturating_add(2.days());
        let end = term.to.map_or(tomorrow, |to| date_of(to, &budget.zone).min(tomorrow));
        let Some(from) = (match term.first {
            Some(first) => Some(first),
            None => books.since()?.into_iter().map(|(_, since)| date_of(since, &budget.zone)).min(),
        }) else {
            return Ok(drawn);
        };
        let period = Period { from, to: end };
        if period.is_empty() {
            return Ok(drawn);
        }
        let own = books.in_zone(&budget.zone)?;
        let rows = match budget.scope.is_about_single_ones() {
            true => self.single(&own, budget, period)?,
            false => self.days(&own, budget, period)?,
        };
        for ((day, book, terms), (amount, gpu_ms)) in rows {
            let (Some(day), Some(sort), Some(account)) = (day_of(day), own.sort(terms), own.account(book)) else {
                continue;
            };
            let Some(provider) = self.providers.get(account) else { continue };
            let project = sort.terms.project.as_deref();
            let mut scope = budget.scope.clone();
            // Which single ones they are was asked before.
            (scope.instance, scope.label) = (None, None);
            if scope.takes(&Thing { provider, account, kind: None, name: None, labels: None, project }) {
                let sums: &mut Sums = drawn.days.entry(day).or_default();
                let of = sums.0.entry(sort.currency).or_default();
                of.add(&sort.terms, sort.evidence, sort.is_replaced(), amount, gpu_ms);
            }
        }
        Ok(drawn)
    }

    fn days(&mut self, books: &Reader, budget: &Budget, period: Period) -> Result<Rows, LedgerError> {
        let known = self.days.iter().find(|(zone, days, _)| *zone == budget.zone && *days == period);
        if let Some((_, _, rows)) = known {
            return Ok(rows.clone());
        }
        let rows = books.days(period)?;
        self.days.push((budget.zone.clone(), period, rows.clone()));
        Ok(rows)
    }

    /// Of those resources alone that the scope names one by one.
    fn single(&mut self, books: &Reader, budget: &Budget, period: Period) -> Result<Rows, LedgerError> {
        if budget.scope.label.is_some() && self.labels.is_none() {
            self.labels = Some(books.labels()?);
        }
        let mut scope = budget.scope.clone();
        // A span has the project of its own time.
        scope.project = None;
        let start = |date: Date| row::millis(start_of(date, &budget.zone));
        let (from, to) = (start(period.from), start(period.to));
        let names = books.names()?;
        let takes = |key: i64| {
            let (account, billable) = names.get(&key)?;
            let Billable::Resource { identity, name } = billable else { return None };
            let provider = self.providers.get(account)?;
            let labels = self.labels.as_ref().and_then(|labels| labels.get(identity));
            let kind = Some(identity.kind);
            scope.takes(&Thing { provider, account, kind, name: name.as_deref(), labels, project: None }).then_some(())
        };
        let items = books.items(ITEMS, params![to])?.into_iter().filter(|item| takes(item.key).is_some()).collect();
        Ok(books.add_entries_up(items, from, to)?.into_days().into_iter().collect())
    }
}
