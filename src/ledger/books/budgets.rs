//! What is drawn on budgets: closed sums by day of each budget's own zone.

use jiff::Timestamp;

use super::ask::Reader;
use crate::ledger::LedgerError;
use crate::rules::budgets::{Budget, Drawn};

impl Reader<'_> {
    /// What each budget's present term holds, in their order.
    pub fn drawn(&self, budgets: &[Budget], now: Timestamp) -> Result<Vec<Drawn>, LedgerError> {
        let drawn =
            |budget: &Budget| Drawn { name: budget.name.clone(), from: budget.term(now).from, ..Drawn::default() };
        Ok(budgets.iter().map(drawn).collect())
    }
}
