//! Since when a budget of each name is known: what was spent before nobody had set a limit for.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rusqlite::params;

use super::{Durability, Ledger, LedgerError, row};
use crate::rules::budgets::Budget;

const KNOWN: &str = "SELECT name, since FROM budget";
const KNOW: &str = "INSERT INTO budget (name, since) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";

impl Ledger {
    /// Since when each of these is known; one that was never heard of is from `now` on.
    pub fn know_budgets(
        &mut self,
        budgets: &[Budget],
        now: Timestamp,
    ) -> Result<BTreeMap<String, Timestamp>, LedgerError> {
        let known = self.known_budgets()?;
        let new: Vec<&Budget> = budgets.iter().filter(|budget| !known.contains_key(&budget.name)).collect();
        if new.is_empty() {
            return Ok(known);
        }
        self.write(Durability::Soon, |transaction| {
            for budget in new {
                transaction.execute(KNOW, params![budget.name, row::millis(now)])?;
            }
            Ok(())
        })?;
        self.known_budgets()
    }

    fn known_budgets(&self) -> Result<BTreeMap<String, Timestamp>, LedgerError> {
        let mut statement = self.main.prepare_cached(KNOWN)?;
        let mut rows = statement.query([])?;
        let mut known = BTreeMap::new();
        while let Some(found) = rows.next()? {
            let name = found.get(0)?;
            known.extend(row::time(found.get(1)?).map(|since| (name, since)));
        }
        Ok(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::samples::at;
    use crate::rules::budgets::Cycle;
    use crate::rules::samples::budget;

    #[test]
    fn a_budget_is_known_since_it_was_first_asked_for() {
        let mut ledger = Ledger::in_memory().unwrap();
        let [day, month] = ["day", "month"].map(|name| budget(name, "10", Cycle::Day));
        let known = |names: &[(&str, &str)]| -> BTreeMap<String, Timestamp> {
            names.iter().map(|(name, clock)| ((*name).to_owned(), at(clock))).collect()
        };
        let first = ledger.know_budgets(std::slice::from_ref(&day), at("10:00")).unwrap();
        assert_eq!(first, known(&[("day", "10:00")]));
        let both = ledger.know_budgets(&[day, month], at("11:00")).unwrap();
        assert_eq!(both, known(&[("day", "10:00"), ("month", "11:00")]));
    }
}
