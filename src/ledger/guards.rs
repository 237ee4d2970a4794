//! Guards: what they are called for by, written by whoever collects; and what people forbid them, by anybody.

use providers::model::Identity;
use rusqlite::params;

use super::{Durability, Ledger, LedgerError, row};
use crate::rules::guard::{Veto, Watch};

const KEEP_WATCH: &str = "
    INSERT INTO guard_watch (guard, account, id, generation, state) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (guard, account, id, generation) DO UPDATE SET state = excluded.state";

const KEEP_VETO: &str = "
    INSERT INTO veto (account, kind, id, generation, said_at, state) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (account, kind, id, generation) DO UPDATE SET
        said_at = excluded.said_at,
        state = excluded.state";

pub(super) const WATCHES: &str = "SELECT state FROM guard_watch ORDER BY guard, account, id, generation";

pub(super) const VETOES: &str = "SELECT account, kind, id, generation, state FROM veto";

pub(super) fn veto(row: &rusqlite::Row) -> Option<(Identity, Veto)> {
    Some((row::identity(row, 0)?, row::read::<Veto>(row::text(row, 4)?)?))
}

impl Ledger {
    /// Writes down all that guards are called for by; what is not among it is over.
    pub fn keep_watches(&mut self, watches: &[Watch]) -> Result<(), LedgerError> {
        self.write(Durability::Now, |transaction| {
            transaction.execute("DELETE FROM guard_watch", [])?;
            let mut keep = transaction.prepare_cached(KEEP_WATCH)?;
            for watch in watches {
                let Identity { account, id, generation, .. } = &watch.identity;
                let state = row::write(watch)?;
                keep.execute(params![watch.guard, account.as_str(), id.as_str(), generation, state])?;
            }
            Ok(())
        })
    }

    /// Writes down that guards are forbidden to act on an instance: it takes the place of what was said before.
    pub fn keep_veto(&mut self, identity: &Identity, veto: &Veto) -> Result<(), LedgerError> {
        let Identity { account, kind, id, generation } = identity;
        self.write(Durability::Now, |transaction| {
            let (kind, said_at) = (row::kind_word(*kind), row::millis(veto.said_at));
            let values = params![account.as_str(), kind, id.as_str(), generation, said_at, row::write(veto)?];
            transaction.execute(KEEP_VETO, values)?;
            Ok(())
        })
    }

    /// What people forbid guards. Fails where one of them cannot be read: what may be forbidden is not to be done.
    pub fn vetoes(&self) -> Result<Vec<(Identity, Veto)>, LedgerError> {
        let mut statement = self.main.prepare_cached(VETOES)?;
        let mut rows = statement.query([])?;
        let mut vetoes = Vec::new();
        while let Some(row) = rows.next()? {
            let unreadable = || LedgerError::Damaged { why: "a veto that this version cannot read".to_owned() };
            vetoes.push(veto(row).ok_or_else(unreadable)?);
        }
        Ok(vetoes)
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use providers::model::{Action, ResourceKind};

    use super::*;
    use crate::ledger::samples::*;
    use crate::rules::guard::{Cause, Stage, Way};

    fn watch(guard: &str) -> Watch {
        Watch {
            guard: guard.to_owned(),
            identity: identity(ResourceKind::Instance, "a"),
            name: "a".to_owned(),
            cause: Cause::Idle { since: at("08:00") },
            since: at("09:00"),
            tries: 1,
            stage: Stage::Counting { until: at("09:10"), way: Way { action: Action::Stop, saves: false } },
        }
    }

    #[test]
    fn what_guards_are_called_for_by_is_recalled_and_what_is_over_is_not() {
        let dir = folder();
        let mut ledger = open(&dir);
        ledger.keep_watches(&[watch("idle"), watch("over")]).unwrap();
        ledger.keep_watches(&[watch("over")]).unwrap();
        let (memory, notices) = open(&dir).recall(at("10:00")).unwrap();
        assert_eq!((memory.watches, notices), (vec![watch("over")], vec![]));
    }

    #[test]
    fn the_last_word_on_a_machine_counts_and_every_process_hears_it() {
        let dir = folder();
        let (mut one, other) = (open(&dir), open(&dir));
        let said = |clock, until| Veto { said_at: at(clock), until, by: "ana@desk".to_owned() };
        let (a, b) = (identity(ResourceKind::Instance, "a"), identity(ResourceKind::Instance, "b"));
        one.keep_veto(&a, &said("09:00", None)).unwrap();
        one.keep_veto(&b, &said("09:01", None)).unwrap();
        let later = said("09:02", Some(at("09:02") + SignedDuration::from_hours(8)));
        one.keep_veto(&a, &later).unwrap();
        let expected = vec![(a, later), (b, said("09:01", None))];
        assert_eq!(other.vetoes().unwrap(), expected);
        assert_eq!(one.recall(at("10:00")).unwrap().0.vetoes, expected);
    }

    #[test]
    fn a_veto_that_cannot_be_read_is_not_taken_for_none() {
        let mut ledger = Ledger::in_memory().unwrap();
        let veto = Veto { said_at: at("09:00"), until: None, by: String::new() };
        ledger.keep_veto(&identity(ResourceKind::Instance, "a"), &veto).unwrap();
        ledger.main.execute("UPDATE veto SET state = 'from later'", []).unwrap();
        assert!(ledger.vetoes().is_err());
    }
}
