//! Leases: written whole at each change. One that has ended stays ended, whoever else still believes in it.

use providers::model::{AccountName, Identity};
use rusqlite::{Transaction, params};

use super::{Durability, Ledger, LedgerError, row};
use crate::rules::lease::{Lease, Step};

const KEEP: &str = "
    INSERT INTO lease (id, ended, state) VALUES ($1, $2, $3)
    ON CONFLICT (id) DO UPDATE SET ended = excluded.ended, state = excluded.state
    WHERE lease.ended IS NULL";

pub(super) const IN_FORCE: &str = "SELECT state FROM lease WHERE ended IS NULL ORDER BY id";

impl Ledger {
    /// Writes down a lease as it is now. False when the ledger has it as ended: then it stays so.
    pub fn keep_lease(&mut self, lease: &Lease) -> Result<bool, LedgerError> {
        self.write(Durability::Now, |transaction| keep(transaction, lease))
    }

    /// The leases in force. What this version cannot read is left out.
    pub fn leases(&self) -> Result<Vec<Lease>, LedgerError> {
        in_force(&self.main)
    }
}

fn keep(transaction: &Transaction, lease: &Lease) -> Result<bool, LedgerError> {
    let ended = match lease.step {
        Step::Ended { at, .. } => Some(row::millis(at)),
        _ => None,
    };
    let written = transaction.prepare_cached(KEEP)?.execute(params![lease.id.0, ended, row::write(lease)?])?;
    Ok(written > 0)
}

fn in_force(connection: &rusqlite::Connection) -> Result<Vec<Lease>, LedgerError> {
    let mut statement = connection.prepare_cached(IN_FORCE)?;
    let mut rows = statement.query([])?;
    let mut leases = Vec::new();
    while let Some(row) = rows.next()? {
        leases.extend(row::text(row, 0).and_then(row::read::<Lease>));
    }
    Ok(leases)
}

/// Those of an account go on under its new name.
pub(super) fn rename(transaction: &Transaction, from: &AccountName, to: &AccountName) -> Result<(), LedgerError> {
    for lease in in_force(transaction)?.into_iter().filter(|lease| lease.identity.account == *from) {
        let identity = Identity { account: to.clone(), ..lease.identity.clone() };
        keep(transaction, &Lease { identity, ..lease })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use providers::model::ResourceKind;
    use providers::money::{Currency, Money};

    use super::*;
    use crate::ledger::samples::*;
    use crate::rules::lease::{Draft, End, LeaseId, Sight, What, When, Why};

    fn lease(id: i64) -> Lease {
        let draft = Draft {
            identity: identity(ResourceKind::Instance, "pod-a"),
            what: What::Release,
            when: When::Process { pid: 4711, began: Some(8123) },
            max_cost: Some(Money::new("2.50".parse().unwrap(), Currency::USD)),
            on_box: false,
        };
        Lease::new(LeaseId(id), draft, "trainer".to_owned(), "ana@desk".to_owned(), at("10:00"))
    }

    fn now() -> Timestamp {
        at("11:00")
    }

    #[test]
    fn a_lease_survives_the_program_at_every_step() {
        let dir = folder();
        let mut one = lease(1);
        assert!(open(&dir).keep_lease(&one).unwrap());
        assert_eq!(open(&dir).recall(now()).unwrap().0.leases, [one.clone()]);
        one.ask(Why::Job { code: Some(137) }, now(), &Sight::Untold, now());
        assert!(open(&dir).keep_lease(&one).unwrap());
        let mut ledger = open(&dir);
        assert_eq!(ledger.recall(now()).unwrap().0.leases, [one.clone()]);
        assert_eq!(ledger.leases().unwrap(), [one]);
    }

    #[test]
    fn what_has_ended_is_not_brought_back_by_who_has_not_heard() {
        let dir = folder();
        let (mut ours, mut theirs) = (open(&dir), open(&dir));
        let lease = lease(1);
        assert!(ours.keep_lease(&lease).unwrap());
        let mut ended = lease.clone();
        ended.end(End::Cancelled, now());
        assert!(theirs.keep_lease(&ended).unwrap());
        assert!(!ours.keep_lease(&lease).unwrap(), "it was taken away");
        assert_eq!(ours.leases().unwrap(), []);
    }

    #[test]
    fn an_account_takes_its_leases_along_under_its_new_name() {
        let mut ledger = Ledger::in_memory().unwrap();
        ledger.keep(&keep_of_team()).unwrap();
        ledger.keep_lease(&lease(1)).unwrap();
        ledger.rename(&"team".into(), &"crew".into()).unwrap();
        assert_eq!(ledger.leases().unwrap()[0].identity.account, "crew".into());
    }

    fn keep_of_team() -> crate::rules::memory::Keep {
        crate::ledger::samples::keep(vec![known_instance("pod-a")])
    }
}
