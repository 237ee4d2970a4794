//! The dictionary of the books: all that sums tell apart, under one number.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use providers::model::Component;
use providers::money::Currency;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::ledger::LedgerError;
use crate::rules::spend::{COMPONENTS, Charge, Evidence, Terms};

const FIND: &str = "
    SELECT key FROM terms
    WHERE component = $1 AND charge = $2 AND wasted = $3 AND project IS NOT DISTINCT FROM $4 AND gpus = $5
      AND currency = $6 AND evidence = $7 AND replaced = $8";
const ADD: &str = "
    INSERT INTO terms (component, charge, wasted, project, gpus, currency, evidence, replaced)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
const READ: &str = "
    SELECT component, charge, wasted, project, gpus, currency, evidence, replaced FROM terms WHERE key = $1";
const READ_ALL: &str = "
    SELECT component, charge, wasted, project, gpus, currency, evidence, replaced, key FROM terms";

/// Whether an entry counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    Counts,
    /// The provider has billed that time.
    Billed,
    /// All that the provider billed for that time is known, and this is not among it.
    Disproved,
}

const STANDINGS: [Standing; 3] = [Standing::Counts, Standing::Billed, Standing::Disproved];

/// What one entry of the books is, but for its time and amount.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sort {
    pub terms: Terms,
    pub currency: Currency,
    pub evidence: Evidence,
    pub standing: Standing,
}

impl Sort {
    pub fn is_replaced(&self) -> bool {
        self.standing != Standing::Counts
    }

    /// The GPUs whose time counts: those of a time that never was do not.
    pub fn gpus(&self) -> u32 {
        if self.standing == Standing::Disproved { 0 } else { self.terms.gpus }
    }
}

/// The number of a component in the books.
pub fn component_number(component: Component) -> i64 {
    place(&COMPONENTS, &component)
}

/// The number of a line: a component and a sort of charge.
pub fn line_number(component: Component, charge: Charge) -> i64 {
    component_number(component) * Charge::ALL.len() as i64 + place(&Charge::ALL, &charge)
}

fn place<T: PartialEq>(all: &[T], one: &T) -> i64 {
    all.iter().position(|other| other == one).expect("the list is complete") as i64
}

fn at<T: Copy>(all: &[T], row: &Row, column: usize) -> Option<T> {
    all.get(usize::try_from(row.get::<_, i64>(column).ok()?).ok()?).copied()
}

fn read(row: &Row) -> Option<Sort> {
    let project: Option<String> = row.get(3).ok()?;
    let terms = Terms {
        component: at(&COMPONENTS, row, 0)?,
        charge: at(&Charge::ALL, row, 1)?,
        wasted: row.get(2).ok()?,
        project: project.map(Arc::from),
        gpus: row.get(4).ok()?,
    };
    let currency = Currency::parse(row.get_ref(5).ok()?.as_str().ok()?)?;
    Some(Sort { terms, currency, evidence: at(&Evidence::ALL, row, 6)?, standing: at(&STANDINGS, row, 7)? })
}

/// All terms that this version can read.
pub fn all(connection: &Connection) -> Result<HashMap<i64, Sort>, LedgerError> {
    let mut statement = connection.prepare_cached(READ_ALL)?;
    let mut rows = statement.query([])?;
    let mut found = HashMap::new();
    while let Some(row) = rows.next()? {
        found.extend(read(row).map(|sort| Ok::<_, LedgerError>((row.get(8)?, sort))).transpose()?);
    }
    Ok(found)
}

/// What one transaction has looked up.
#[derive(Default)]
pub struct Dictionary {
    keys: HashMap<Sort, i64>,
    sorts: HashMap<i64, Sort>,
    summed: HashMap<i64, i64>,
}

impl Dictionary {
    /// The number of a sort, which is given one when it has none.
    pub fn key(&mut self, connection: &Connection, sort: &Sort) -> Result<i64, LedgerError> {
        if let Some(key) = self.keys.get(sort) {
            return Ok(*key);
        }
        let Sort { terms, currency, evidence, standing } = sort;
        let values = params![
            component_number(terms.component),
            place(&Charge::ALL, &terms.charge),
            terms.wasted,
            terms.project.as_deref(),
            terms.gpus,
            currency.code(),
            place(&Evidence::ALL, evidence),
            place(&STANDINGS, standing),
        ];
        let known = connection.prepare_cached(FIND)?.query_row(values, |row| row.get(0)).optional()?;
        let key = match known {
            Some(key) => key,
            None => connection.prepare_cached(ADD)?.insert(values)?,
        };
        self.keys.insert(sort.clone(), key);
        self.sorts.insert(key, sort.clone());
        Ok(key)
    }

    pub fn sort(&mut self, connection: &Connection, key: i64) -> Result<&Sort, LedgerError> {
        match self.sorts.entry(key) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(place) => {
                let sort = connection.prepare_cached(READ)?.query_row([key], |row| Ok(read(row))).optional()?;
                let unreadable = || LedgerError::Damaged { why: format!("the terms {key} cannot be read") };
                Ok(place.insert(sort.flatten().ok_or_else(unreadable)?))
            }
        }
    }

    /// The number of the same sort without GPUs, under which it is summed up.
    pub fn summed(&mut self, connection: &Connection, key: i64) -> Result<i64, LedgerError> {
        if let Some(summed) = self.summed.get(&key) {
            return Ok(*summed);
        }
        let mut sort = self.sort(connection, key)?.clone();
        sort.terms.gpus = 0;
        let summed = self.key(connection, &sort)?;
        self.summed.insert(key, summed);
        Ok(summed)
    }

    /// The number of the same sort changed.
    pub fn changed(
        &mut self,
        connection: &Connection,
        key: i64,
        change: impl FnOnce(&mut Sort),
    ) -> Result<i64, LedgerError> {
        let mut sort = self.sort(connection, key)?.clone();
        change(&mut sort);
        self.key(connection, &sort)
    }
}
