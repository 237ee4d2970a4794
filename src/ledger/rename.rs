//! An account that is called otherwise in the config: all that is known of it goes on under its new name.

use providers::model::AccountName;
use rusqlite::{OptionalExtension, params};

use super::{Durability, Ledger, LedgerError, leases, row};
use crate::rules::memory::AccountMemory;

const STATE: &str = "SELECT state FROM account WHERE name = $1";
const ACCOUNT: &str = "UPDATE account SET name = $1, state = $2 WHERE name = $3";
/// What was done keeps the name that the account had then.
const OTHERS: [&str; 4] = [
    "UPDATE resource SET account = $1 WHERE account = $2",
    "UPDATE setting SET account = $1 WHERE account = $2",
    "UPDATE book SET account = $1 WHERE account = $2",
    "UPDATE machine SET account = $1 WHERE account = $2",
];

impl Ledger {
    /// Gives an account another name. Fails, and changes nothing, where something is known under that name already.
    pub fn rename(&mut self, from: &AccountName, to: &AccountName) -> Result<(), LedgerError> {
        self.write(Durability::Soon, |transaction| {
            let state: Option<String> = transaction.query_row(STATE, [from.as_str()], |row| row.get(0)).optional()?;
            let Some(memory) = state.as_deref().and_then(row::read::<AccountMemory>) else { return Ok(()) };
            let memory = AccountMemory { name: to.clone(), ..memory };
            transaction.execute(ACCOUNT, params![to.as_str(), row::write(&memory)?, from.as_str()])?;
            for sql in OTHERS {
                transaction.execute(sql, [to.as_str(), from.as_str()])?;
            }
            leases::rename(transaction, from, to)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::samples::*;
    use crate::rules::memory::Keep;
    use crate::rules::settings::Setting;
    use crate::rules::spend::{Period, Question};
    use providers::model::ResourceKind;

    fn filled() -> Ledger {
        let mut ledger = Ledger::in_memory().unwrap();
        let spent = spent("a", at("09:00"), at("10:00"));
        let storage = vec![known_volume("disk")];
        ledger.keep(&Keep { instances: vec![known_instance("a")], storage, ..spent }).unwrap();
        let setting = Setting { project: Some("vision".to_owned()), ..Setting::default() };
        ledger.set(&identity(ResourceKind::Instance, "a"), &setting).unwrap();
        ledger.import_billed(&"team".into(), at("08:00"), at("09:00"), &[]).unwrap();
        ledger
    }

    #[test]
    fn all_that_is_known_of_an_account_goes_on_under_its_new_name() {
        let mut ledger = filled();
        let (before, _) = ledger.recall(at("10:00")).unwrap();
        ledger.rename(&"team".into(), &"crew".into()).unwrap();
        let (after, notices) = ledger.recall(at("10:00")).unwrap();
        assert_eq!(notices, []);
        let renamed = format!("{before:?} {:?}", before.settings).replace("team", "crew");
        assert_eq!(format!("{after:?} {:?}", after.settings), renamed);
        let period = Period::month("2026-11-30".parse().unwrap());
        let cells = ledger.answer(&Question::Days(period)).unwrap().cells;
        assert!(!cells.is_empty() && cells.iter().all(|cell| cell.account.as_str() == "crew"), "{cells:?}");
    }

    #[test]
    fn nothing_is_mixed_with_what_is_known_under_that_name() {
        let mut ledger = filled();
        let mut other = keep(vec![]);
        other.account.name = "crew".into();
        ledger.keep(&other).unwrap();
        let before = ledger.recall(at("10:00")).unwrap();
        ledger.rename(&"team".into(), &"crew".into()).unwrap_err();
        assert_eq!(ledger.recall(at("10:00")).unwrap(), before);
        ledger.rename(&"nobody".into(), &"lab".into()).unwrap();
        assert_eq!(ledger.recall(at("10:00")).unwrap(), before);
    }
}
