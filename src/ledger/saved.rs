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

const THIN: &str = "UPDATE copy SET thinned_at = $2 WHERE op = $1 AND thinned_at IS NULL";

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
            transaction.prepare_cached(THIN)?.execute(params![op.0, row::millis(now)])?;
            Ok(())
        })
    }
}
