//! Verified checkpoints: written with the step that proves them, and never changed but for being thinned out.

use jiff::Timestamp;
use providers::model::Identity;
use rusqlite::{Transaction, params};

use super::{Durability, Ledger, LedgerError, row};
use crate::rules::checkpoint::Saved;
use crate::rules::saga::{OpId, Operation};

const KEEP: &str = "
    INSERT INTO copy (op, account, id, generation, verified_at, state)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (op) DO NOTHING";

/// The last one of each machine that is still there.
pub(super) const LATEST: &str = "
    SELECT state FROM copy WHERE thinned_at IS NULL AND NOT EXISTS (
        SELECT 1 FROM copy AS later WHERE later.thinned_at IS NULL AND later.account = copy.account
            AND later.id = copy.id AND later.generation = copy.generation
            AND later.verified_at > copy.verified_at)";

const OF: &str = "
    SELECT state FROM copy WHERE account = $1 AND id = $2 AND generation = $3 AND thinned_at IS NULL
    ORDER BY verified_at DESC, op DESC";

const THIN: &str = "UPDATE copy SET thinned_at = $1 WHERE op = $2 AND thinned_at IS NULL";

/// Writes down the checkpoint that an action has proven, if it has.
pub(super) fn keep(transaction: &Transaction, operation: &Operation) -> Result<(), LedgerError> {
    let Some(saved) = operation.saved() else { return Ok(()) };
    let Identity { account, id, generation, .. } = &saved.identity;
    let values = params![
        saved.op.0,
        account.as_str(),
        id.as_str(),
        generation,
        row::millis(saved.proof.at),
        row::write(&saved)?
    ];
    transaction.prepare_cached(KEEP)?.execute(values)?;
    Ok(())
}

impl Ledger {
    /// The checkpoints of one machine that are still there, the latest first. What this version cannot read is left
    /// out.
    pub fn copies(&self, identity: &Identity) -> Result<Vec<Saved>, LedgerError> {
        let mut statement = self.main.prepare_cached(OF)?;
        let mut rows =
            statement.query(params![identity.account.as_str(), identity.id.as_str(), identity.generation])?;
        let mut copies = Vec::new();
        while let Some(row) = rows.next()? {
            copies.extend(row::text(row, 0).and_then(row::read::<Saved>));
        }
        Ok(copies)
    }

    /// One of them is no longer there, since later ones took its place.
    pub fn thin(&mut self, op: OpId, now: Timestamp) -> Result<(), LedgerError> {
        self.write(Durability::Now, |transaction| {
            transaction.prepare_cached(THIN)?.execute(params![row::millis(now), op.0])?;
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use providers::model::Action;

    use super::*;
    use crate::ledger::samples::*;
    use crate::rules::checkpoint::{Method, Progress, Proof, QUIET, Recipe, Stage, Told};
    use crate::rules::saga::{Authority, Input, Step};

    /// A checkpoint that was verified at a time.
    fn verified(id: i64, now: Timestamp) -> Operation {
        let method = Method::Copy { to: "/home/ana/checkpoints".to_owned() };
        let paths = vec!["/workspace/out".to_owned()];
        let recipe = Recipe { name: "default".to_owned(), paths, method, prepare: None, quiet: QUIET };
        let mut target = operation(id, Step::Countdown { until: now }).target;
        target.recipe = Some(recipe);
        let (mut operation, _) =
            Operation::begin(OpId(id), Action::Checkpoint, target, Authority::Saved, "schedule".to_owned(), now);
        while let Step::Saving { stage, .. } = operation.step {
            let place = format!("/home/ana/checkpoints/{id}");
            let proof = Proof { at: now, files: 1, bytes: 1, left_out: 0, place, manifest: String::new() };
            let done = Progress { files: 1, bytes: 1, done: 1, rate: None };
            let told = if stage == Stage::Verify { Told::Verified(proof) } else { Told::Done(done) };
            let number = operation.saving.as_ref().unwrap().number();
            operation.advance(Input::Saving { number, told }, now);
        }
        operation
    }

    #[test]
    fn a_copy_that_was_thinned_out_is_there_no_more_and_the_one_before_it_is_the_last() {
        let dir = folder();
        let identity = verified(1, at("10:00")).target.identity;
        {
            let mut ledger = open(&dir);
            for (id, minutes) in [(1, 0), (2, 30), (3, 60)] {
                let now = at("10:00") + SignedDuration::from_mins(minutes);
                ledger.record(&verified(id, now), &owner(7), now).unwrap();
            }
            ledger.thin(OpId(3), at("11:30")).unwrap();
            ledger.thin(OpId(1), at("11:30")).unwrap();
        }
        let mut ledger = open(&dir);
        let left: Vec<OpId> = ledger.copies(&identity).unwrap().iter().map(|copy| copy.op).collect();
        assert_eq!(left, [OpId(2)]);
        let (memory, _) = ledger.recall(at("11:31")).unwrap();
        assert_eq!(memory.saved.iter().map(|copy| copy.op).collect::<Vec<_>>(), [OpId(2)]);
    }
}
