//! What is drawn on budgets: closed sums by day of each budget's own zone.

use std::collections::{BTreeMap, HashMap, HashSet};

use jiff::Timestamp;
use jiff::civil::Date;
use providers::model::{AccountName, ProviderName, ResourceKind};
use rusqlite::params;
use serde::Deserialize;

use super::ask::{DAYS, ITEMS, Reader, Rows};
use super::sums::{State, day_number, day_of, zone_name};
use super::write::Item;
use crate::ledger::{LedgerError, row};
use crate::rules::budgets::{Budget, Drawn, Term, Thing};
use crate::rules::spend::{Sums, date_of};

const PROVIDERS: &str = "SELECT name, provider FROM account";
/// As last seen, also of what is gone.
const FACES: &str = "
    SELECT billable.key, book.account, billable.kind, billable.id, billable.generation, resource.name, resource.state
    FROM billable JOIN book ON book.key = billable.book
    LEFT JOIN resource ON resource.account = book.account AND resource.kind = billable.kind
        AND resource.id = billable.id AND resource.generation = billable.generation";

/// What scopes may ask about one billable.
struct Face {
    account: AccountName,
    /// `None` for what belongs to no listed resource.
    kind: Option<ResourceKind>,
    name: Option<String>,
    labels: BTreeMap<String, String>,
}

/// The part of a resource's row that scopes ask about.
#[derive(Default, Deserialize)]
struct Labels {
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

impl Reader<'_> {
    /// What each budget's present term holds, in their order.
    pub fn drawn(&self, budgets: &[Budget], now: Timestamp) -> Result<Vec<Drawn>, LedgerError> {
        let single: Vec<&Budget> = budgets.iter().filter(|budget| !self.has_days_of(budget)).collect();
        let things = Things {
            providers: if budgets.is_empty() { HashMap::new() } else { self.providers()? },
            faces: match single.is_empty() {
                true => HashMap::new(),
                false => self.faces(single.iter().any(|budget| budget.scope.label.is_some()))?,
            },
        };
        budgets.iter().map(|budget| self.drawn_on(budget, &things, now)).collect()
    }

    fn drawn_on(&self, budget: &Budget, things: &Things, now: Timestamp) -> Result<Drawn, LedgerError> {
        let term = budget.term(now);
        let rows = match self.has_days_of(budget) {
            true => self.of_days(budget, things, &term)?,
            false => self.of_entries(budget, things, &term)?,
        };
        let of_project = |terms: &i64| {
            let project = self.sorts.get(terms).and_then(|sort| sort.terms.project.as_deref());
            budget.scope.project.is_none() || budget.scope.project.as_deref() == project
        };
        let mut days: BTreeMap<Date, Sums> = BTreeMap::new();
        for ((day, _, terms), sum) in rows.into_iter().filter(|((_, _, terms), _)| of_project(terms)) {
            if let Some(day) = day_of(day) {
                self.add(days.entry(day).or_default(), terms, sum);
            }
        }
        Ok(Drawn { name: budget.name.clone(), from: term.from, known_since: None, as_of: now, days })
    }

    /// Whether the sums by day answer: they tell accounts and projects apart, in the days of one zone.
    fn has_days_of(&self, budget: &Budget) -> bool {
        self.state == State::Whole
            && !budget.scope.is_about_single_ones()
            && zone_name(&budget.zone) == zone_name(self.zone)
    }

    fn of_days(&self, budget: &Budget, things: &Things, term: &Term) -> Result<Rows, LedgerError> {
        // It begins and ends with days.
        let first = term.first.map_or(i64::MIN, day_number);
        let end = term.to.map_or(i64::MAX, |to| day_number(date_of(to, &budget.zone)));
        let takes = |book: i64| {
            let account = self.accounts.get(&book);
            account.is_some_and(|account| things.takes(budget, account, None))
        };
        let books: HashSet<i64> = self.accounts.keys().copied().filter(|book| takes(*book)).collect();
        let rows = self.rows(DAYS, [first, end])?;
        Ok(rows.into_iter().filter(|((_, book, _), _)| books.contains(book)).collect())
    }

    fn of_entries(&self, budget: &Budget, things: &Things, term: &Term) -> Result<Rows, LedgerError> {
        let (from, to) = (row::millis(term.from), term.to.map_or(i64::MAX, row::millis));
        let takes = |item: &Item| {
            let face = things.faces.get(&item.key);
            face.is_some_and(|face| things.takes(budget, &face.account, Some(face)))
        };
        let items = self.items(ITEMS, params![to])?.into_iter().filter(takes).collect();
        Ok(self.add_entries_up(items, from, to, &budget.zone)?.into_days().into_iter().collect())
    }

    /// Whose each account is.
    fn providers(&self) -> Result<HashMap<AccountName, ProviderName>, LedgerError> {
        let mut statement = self.connection.prepare_cached(PROVIDERS)?;
        let mut rows = statement.query([])?;
        let mut providers = HashMap::new();
        while let Some(row) = rows.next()? {
            let names = row::text(row, 0).zip(row::text(row, 1));
            providers.extend(names.map(|(account, provider)| (account.into(), provider.into())));
        }
        Ok(providers)
    }

    fn faces(&self, with_labels: bool) -> Result<HashMap<i64, Face>, LedgerError> {
        let mut statement = self.connection.prepare_cached(FACES)?;
        let mut rows = statement.query([])?;
        let mut faces = HashMap::new();
        while let Some(row) = rows.next()? {
            let account: String = row.get(1)?;
            // Of a row that only a newer version can read the labels are not known.
            let labels = row::text(row, 6).filter(|_| with_labels).and_then(row::read::<Labels>).unwrap_or_default();
            let face = Face {
                account: account.as_str().into(),
                kind: row::identity(row, 1).map(|identity| identity.kind),
                name: row.get(5)?,
                labels: labels.labels,
            };
            faces.insert(row.get(0)?, face);
        }
        Ok(faces)
    }
}

/// What scopes are asked about.
struct Things {
    providers: HashMap<AccountName, ProviderName>,
    faces: HashMap<i64, Face>,
}

impl Things {
    /// Whether a budget is for an account, or one that spends in it, whatever the project: that is each entry's own.
    fn takes(&self, budget: &Budget, account: &AccountName, face: Option<&Face>) -> bool {
        let unknown = ProviderName::from("");
        budget.scope.takes(&Thing {
            provider: self.providers.get(account).unwrap_or(&unknown),
            account,
            kind: face.and_then(|face| face.kind),
            name: face.and_then(|face| face.name.as_deref()),
            labels: face.map(|face| &face.labels),
            project: budget.scope.project.as_deref(),
        })
    }
}

#[cfg(test)]
#[path = "budgets_tests.rs"]
mod tests;
