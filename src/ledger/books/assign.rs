//! Spend that turns out to belong to another project.

use std::sync::Arc;

use jiff::Timestamp;
use providers::model::{Identity, ResourceKind};
use rusqlite::{OptionalExtension, params};

use super::sums::time;
use super::write::Books;
use crate::ledger::{LedgerError, row};
use crate::rules::memory::AccountMemory;
use crate::rules::spend::{Assignment, Evidence, Running};

const OPEN: &str = "SELECT state FROM open WHERE billable = $1";
const KEEP_OPEN: &str = "UPDATE open SET state = $1 WHERE billable = $2";
const ACCOUNT: &str = "SELECT state FROM account WHERE name = $1";

impl Books<'_> {
    /// Gives all of a resource's spend from a time on to a project. Of a resource without any nothing is kept.
    pub fn assign(&mut self, assignment: &Assignment) -> Result<(), LedgerError> {
        let Assignment { identity, from, project } = assignment;
        if !self.knows(identity)? {
            return Ok(());
        }
        let from = from.map_or(i64::MIN, row::millis);
        let project: Option<Arc<str>> = project.as_deref().map(Arc::from);
        self.assign_open(identity, from, project.as_ref())?;
        self.restate(identity, (from, i64::MAX), |sort| sort.terms.project = project.clone())
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
        let before = running.clone();
        for line in &mut running.lines {
            if line.terms.project.as_ref() == project {
                continue;
            }
            if row::millis(line.from) < from {
                // Nobody knows yet what will be charged then: whoever looks next says whose it is.
                if from > seen {
                    continue;
                }
                let at = time(from);
                for span in before.spans(identity, line, (line.from, at), Evidence::Observed) {
                    self.span(&span)?;
                }
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
