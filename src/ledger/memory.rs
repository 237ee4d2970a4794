//! The fleet as last seen and what people set for single resources: kept at each change, recalled at start.

use std::collections::BTreeMap;

use jiff::Timestamp;
use providers::model::{Identity, Instance, ResourceKind, StorageItem};
use rusqlite::{Connection, Statement, TransactionBehavior, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Durability, Ledger, LedgerError, alerts, books, journal, leases, row, saved};
use crate::rules::alerts::Alert;
use crate::rules::checkpoint::Saved;
use crate::rules::dispatch::Message;
use crate::rules::earlier::{Earlier, Gone};
use crate::rules::fleet::{GONE_SHOWN, Known, Row};
use crate::rules::lease::Lease;
use crate::rules::memory::{AccountMemory, Keep, LedgerNotice, Memory, Owner, Past};
use crate::rules::saga::Operation;
use crate::rules::settings::Setting;

/// How many ended actions are recalled.
const RECENT: u32 = 200;

const KEEP_ACCOUNT: &str = "
    INSERT INTO account (name, provider, as_of, last_complete, state)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (name) DO UPDATE SET
        provider = excluded.provider,
        as_of = excluded.as_of,
        last_complete = excluded.last_complete,
        state = excluded.state";

const KEEP_RESOURCE: &str = "
    INSERT INTO resource (account, kind, id, generation, name, phase,
                          first_seen, last_seen, missing_since, absences, gone_at, state, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
    ON CONFLICT (account, kind, id, generation) DO UPDATE SET
        name = excluded.name,
        phase = excluded.phase,
        first_seen = excluded.first_seen,
        last_seen = excluded.last_seen,
        missing_since = excluded.missing_since,
        absences = excluded.absences,
        gone_at = excluded.gone_at,
        state = excluded.state,
        created_at = excluded.created_at";

const KEEP_SETTING: &str = "
    INSERT INTO setting (account, kind, id, generation, protected, mine, project)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (account, kind, id, generation) DO UPDATE SET
        protected = excluded.protected,
        mine = excluded.mine,
        project = excluded.project";

const FORGET_SETTING: &str = "
    DELETE FROM setting WHERE account = $1 AND kind = $2 AND id = $3 AND generation = $4";

const ACCOUNTS: &str = "SELECT state FROM account ORDER BY name";

const RESOURCES: &str = "
    SELECT account, kind, id, generation, first_seen, last_seen, missing_since, absences, gone_at, state
    FROM resource WHERE gone_at IS NULL OR gone_at > $1";

const GONE: &str = "
    SELECT account, kind, id, generation, created_at FROM resource WHERE gone_at IS NOT NULL";

const SETTINGS: &str = "SELECT account, kind, id, generation, protected, mine, project FROM setting";

const UNFINISHED: &str = "SELECT state, host, pid FROM operation WHERE ended_at IS NULL ORDER BY op";

const RECENTLY_ENDED: &str = "
    SELECT state FROM operation WHERE ended_at IS NOT NULL ORDER BY ended_at DESC, op DESC LIMIT $1";

impl Ledger {
    /// Everything that a starting program should know. Rows that this version cannot read are left out,
    /// counted in a notice and stay in the file. A file that turns out to be damaged is set aside.
    pub fn recall(&mut self, now: Timestamp) -> Result<(Memory, Vec<LedgerNotice>), LedgerError> {
        match self.recall_once(now) {
            Err(LedgerError::Damaged { why }) if !self.read_only => {
                let mut notices = self.set_aside(&why, now)?;
                let (memory, more) = self.recall_once(now)?;
                notices.extend(more);
                Ok((memory, notices))
            }
            recalled => recalled,
        }
    }

    fn recall_once(&mut self, now: Timestamp) -> Result<(Memory, Vec<LedgerNotice>), LedgerError> {
        let newer = self.read_only;
        // One transaction: all of it is of one moment.
        let transaction = self.main.transaction_with_behavior(TransactionBehavior::Deferred)?;
        let mut recall = Recall { connection: &transaction, newer, unreadable: 0 };
        let accounts = recall.rows(ACCOUNTS, params![], |row| row::read::<AccountMemory>(row::text(row, 0)?))?;
        let since = row::millis(now - GONE_SHOWN);
        let mut instances = Vec::new();
        let mut storage = Vec::new();
        for resource in recall.rows(RESOURCES, params![since], Resource::read)? {
            match resource {
                Resource::Instance(known) => instances.push(*known),
                Resource::Storage(known) => storage.push(*known),
            }
        }
        instances.sort_unstable_by(|one: &Known<Instance>, two| one.identity.cmp(&two.identity));
        storage.sort_unstable_by(|one: &Known<StorageItem>, two| one.identity.cmp(&two.identity));
        let settings: BTreeMap<Identity, Setting> = recall.rows(SETTINGS, params![], setting)?.into_iter().collect();
        let unfinished = recall.rows(UNFINISHED, params![], journal::read_with_owner)?;
        let recent = recall.rows(RECENTLY_ENDED, params![RECENT], journal::read_operation)?;
        let saved = recall.rows(saved::LATEST, params![], |row| row::read::<Saved>(row::text(row, 0)?))?;
        let leases = recall.rows(leases::IN_FORCE, params![], |row| row::read::<Lease>(row::text(row, 0)?))?;
        let mut alerts = recall.rows(alerts::OPEN, params![], |row| row::read::<Alert>(row::text(row, 0)?))?;
        alerts.extend(recall.rows(alerts::ENDED, params![RECENT], |row| row::read::<Alert>(row::text(row, 0)?))?);
        let messages = recall.rows(alerts::WAITING, params![], |row| row::read::<Message>(row::text(row, 0)?))?;
        let rows = recall.unreadable;
        let notices = if rows > 0 { vec![LedgerNotice::Unreadable { rows }] } else { Vec::new() };
        let running = recall.rows(books::OPEN, params![], books::open_line)?;
        let billed_to = recall.rows(books::BILLED_TO, params![], books::billed_to)?.into_iter().collect();
        let earlier = Earlier::default();
        Ok((
            Memory {
                accounts,
                instances,
                storage,
                earlier,
                settings,
                running,
                billed_to,
                unfinished,
                recent,
                leases,
                saved,
                alerts,
                messages,
            },
            notices,
        ))
    }

    /// What is gone, for whoever takes in what providers list: an id that comes back may be another machine. Nothing
    /// of a newer ledger, in which nobody writes.
    pub fn earlier(&self) -> Result<Earlier, LedgerError> {
        let mut earlier = Earlier::default();
        if self.read_only {
            return Ok(earlier);
        }
        let mut statement = self.main.prepare(GONE)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let kind = row::text(row, 1).and_then(row::kind);
            if let (Some(account), Some(kind), Some(id)) = (row::text(row, 0), kind, row::text(row, 2)) {
                let created_at = row::text(row, 4).and_then(|text| text.parse().ok());
                earlier.note(account, kind, id, Gone { generation: row.get(3)?, created_at });
            }
        }
        Ok(earlier)
    }

    /// Every account and resource that was ever seen. What this version cannot read is left out.
    pub fn past(&mut self) -> Result<Past, LedgerError> {
        let transaction = self.main.transaction_with_behavior(TransactionBehavior::Deferred)?;
        let mut recall = Recall { connection: &transaction, newer: self.read_only, unreadable: 0 };
        let accounts = recall.rows(ACCOUNTS, params![], |row| row::read::<AccountMemory>(row::text(row, 0)?))?;
        let mut past = Past { accounts, ..Past::default() };
        for resource in recall.rows(RESOURCES, params![i64::MIN], Resource::read)? {
            match resource {
                Resource::Instance(known) => past.instances.push(*known),
                Resource::Storage(known) => past.storage.push(*known),
            }
        }
        Ok(past)
    }

    /// The actions that are not ended, each with the process that has it in hand. What this version cannot
    /// read is left out.
    pub fn unfinished(&self) -> Result<Vec<(Operation, Owner)>, LedgerError> {
        let mut recall = Recall { connection: &self.main, newer: self.read_only, unreadable: 0 };
        recall.rows(UNFINISHED, params![], journal::read_with_owner)
    }

    /// Writes down what one poll changed. Usage is not kept: it changes at every look.
    pub fn keep(&mut self, keep: &Keep) -> Result<(), LedgerError> {
        let zone = self.zone.clone();
        self.write(Durability::Soon, |transaction| {
            let account = &keep.account;
            transaction.prepare_cached(KEEP_ACCOUNT)?.execute(params![
                account.name.as_str(),
                account.provider.as_str(),
                account.as_of.map(row::millis),
                account.last_complete.map(row::millis),
                row::write(account)?,
            ])?;
            let mut upsert = transaction.prepare_cached(KEEP_RESOURCE)?;
            for known in &keep.instances {
                keep_one(&mut upsert, known, known.row.name.as_deref(), Some(known.phase().word()))?;
            }
            for known in &keep.storage {
                let phase = match (known.gone_at, known.missing_since) {
                    (Some(_), _) => Some("gone"),
                    (None, Some(_)) => Some("unknown"),
                    (None, None) => None,
                };
                keep_one(&mut upsert, known, known.row.name.as_deref(), phase)?;
            }
            books::enter(transaction, &zone, keep)
        })
    }

    /// Writes down what a person set for one resource; an empty setting is forgotten.
    pub fn set(&mut self, identity: &Identity, setting: &Setting) -> Result<(), LedgerError> {
        let (account, id) = (identity.account.as_str(), identity.id.as_str());
        let (kind, generation) = (row::kind_word(identity.kind), identity.generation);
        self.write(Durability::Now, |transaction| {
            if setting.is_empty() {
                transaction.execute(FORGET_SETTING, params![account, kind, id, generation])?;
            } else {
                let Setting { protected, mine, project } = setting;
                let values = params![account, kind, id, generation, protected, mine, project];
                transaction.execute(KEEP_SETTING, values)?;
            }
            Ok(())
        })
    }
}

fn keep_one<T: Row + Serialize>(
    upsert: &mut Statement,
    known: &Known<T>,
    name: Option<&str>,
    phase: Option<&str>,
) -> Result<(), LedgerError> {
    let identity = &known.identity;
    upsert.execute(params![
        identity.account.as_str(),
        row::kind_word(identity.kind),
        identity.id.as_str(),
        identity.generation,
        name,
        phase,
        row::millis(known.first_seen),
        row::millis(known.last_seen),
        known.missing_since.map(row::millis),
        known.absences,
        known.gone_at.map(row::millis),
        row::write(&known.row.settled())?,
        known.row.created_at().map(|at| at.to_string()),
    ])?;
    Ok(())
}

/// One recall under way.
struct Recall<'a> {
    connection: &'a Connection,
    /// The tables are of a newer rentop: what cannot be asked for is left out.
    newer: bool,
    unreadable: usize,
}

impl Recall<'_> {
    /// All rows that can be read; the others are counted.
    fn rows<T>(
        &mut self,
        sql: &str,
        values: impl rusqlite::Params,
        read: impl Fn(&rusqlite::Row) -> Option<T>,
    ) -> Result<Vec<T>, LedgerError> {
        let mut statement = match self.connection.prepare(sql) {
            Ok(statement) => statement,
            Err(_) if self.newer => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let mut rows = statement.query(values)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            match read(row) {
                Some(value) => found.push(value),
                None => self.unreadable += 1,
            }
        }
        Ok(found)
    }
}

enum Resource {
    Instance(Box<Known<Instance>>),
    Storage(Box<Known<StorageItem>>),
}

impl Resource {
    fn read(row: &rusqlite::Row) -> Option<Self> {
        let identity = row::identity(row, 0)?;
        Some(match identity.kind {
            ResourceKind::Instance => Resource::Instance(Box::new(known(identity, row)?)),
            ResourceKind::Storage => Resource::Storage(Box::new(known(identity, row)?)),
        })
    }
}

fn known<T: DeserializeOwned>(identity: Identity, row: &rusqlite::Row) -> Option<Known<T>> {
    Some(Known {
        identity,
        first_seen: row::time(row.get(4).ok()?)?,
        last_seen: row::time(row.get(5).ok()?)?,
        missing_since: row::maybe_time(row.get(6).ok()?)?,
        absences: row.get(7).ok()?,
        gone_at: row::maybe_time(row.get(8).ok()?)?,
        row: row::read(row::text(row, 9)?)?,
    })
}

fn setting(row: &rusqlite::Row) -> Option<(Identity, Setting)> {
    let setting = Setting { protected: row.get(4).ok()?, mine: row.get(5).ok()?, project: row.get(6).ok()? };
    Some((row::identity(row, 0)?, setting))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use providers::provider::{Part, Poll, Reading};

    use super::*;
    use crate::ledger::samples::*;
    use crate::rules::fleet::{Account, Fleet};
    use crate::rules::spend::Entries;

    fn recall(ledger: &mut Ledger) -> Memory {
        let (memory, notices) = ledger.recall(at("10:00")).unwrap();
        assert_eq!(notices, []);
        memory
    }

    #[test]
    fn what_is_kept_is_recalled_by_the_next_program_without_usage() {
        let dir = folder();
        let (mut a, volume) = (known_instance("pod-a"), known_volume("vol-1"));
        a.missing_since = Some(at("09:58"));
        a.absences = 3;
        let keep = Keep {
            account: account(),
            instances: vec![a.clone()],
            storage: vec![volume.clone()],
            entries: Entries::default(),
        };
        open(&dir).keep(&keep).unwrap();

        let memory = recall(&mut open(&dir));
        a.row.usage = None;
        assert_eq!(memory.accounts, [account()]);
        assert_eq!(memory.instances, [a]);
        assert_eq!(memory.storage, [volume]);
    }

    #[test]
    fn a_poll_that_changed_nothing_touches_the_account_only() {
        let mut ledger = Ledger::in_memory().unwrap();
        ledger.keep(&keep(vec![known_instance("pod-a"), known_instance("pod-b")])).unwrap();
        let later = AccountMemory { as_of: Some(at("10:05")), balance: None, ..account() };
        ledger
            .keep(&Keep { account: later.clone(), instances: vec![], storage: vec![], entries: Entries::default() })
            .unwrap();
        let memory = recall(&mut ledger);
        assert_eq!(memory.accounts, [later]);
        assert_eq!(memory.instances.len(), 2);
    }

    #[test]
    fn a_changed_row_takes_the_place_of_the_old_one_and_generations_are_apart() {
        let mut ledger = Ledger::in_memory().unwrap();
        let first = known_instance("pod-a");
        let mut second = first.clone();
        second.identity.generation = 1;
        ledger.keep(&keep(vec![first.clone(), second])).unwrap();
        let mut stopped = first;
        stopped.row.phase = providers::model::Phase::Stopped;
        stopped.last_seen = at("10:01");
        ledger.keep(&keep(vec![stopped])).unwrap();
        let phases: Vec<_> = recall(&mut ledger)
            .instances
            .iter()
            .map(|known| (known.identity.generation, known.row.phase.word(), known.last_seen))
            .collect();
        assert_eq!(phases, [(0, "stopped", at("10:01")), (1, "running", at("09:00"))]);
    }

    #[test]
    fn a_large_fleet_comes_back_whole_and_in_order() {
        let mut ledger = Ledger::in_memory().unwrap();
        let ids: Vec<_> = (0..601).map(|n| format!("pod-{n:04}")).collect();
        ledger.keep(&keep(ids.iter().rev().map(|id| known_instance(id)).collect())).unwrap();
        ledger.main.execute("UPDATE resource SET state = '{}' WHERE id IN ('pod-0000', 'pod-0600')", []).unwrap();
        let (memory, notices) = ledger.recall(at("10:00")).unwrap();
        assert_eq!(notices, [LedgerNotice::Unreadable { rows: 2 }]);
        let recalled: Vec<_> = memory.instances.iter().map(|known| known.row.id.as_str()).collect();
        let expected: Vec<_> = ids.iter().filter(|id| !["pod-0000", "pod-0600"].contains(&id.as_str())).collect();
        assert_eq!(recalled, expected);
    }

    #[test]
    fn one_id_may_name_an_instance_and_a_storage_item() {
        let mut ledger = Ledger::in_memory().unwrap();
        let keep = Keep {
            account: account(),
            instances: vec![known_instance("7")],
            storage: vec![known_volume("7")],
            entries: Entries::default(),
        };
        ledger.keep(&keep).unwrap();
        let memory = recall(&mut ledger);
        assert_eq!((memory.instances.len(), memory.storage.len()), (1, 1));
    }

    #[test]
    fn what_is_gone_is_recalled_for_a_minute_and_stays_in_the_file() {
        let mut ledger = Ledger::in_memory().unwrap();
        let (mut just, mut long) = (known_instance("just"), known_instance("long"));
        just.gone_at = Some(at("09:59:01"));
        long.gone_at = Some(at("09:59:00"));
        ledger.keep(&keep(vec![just, long])).unwrap();
        let ids: Vec<_> = recall(&mut ledger).instances.iter().map(|known| known.identity.to_string()).collect();
        assert_eq!(ids, ["team/just"]);
        let phase: String =
            ledger.main.query_row("SELECT phase FROM resource WHERE id = 'long'", [], |row| row.get(0)).unwrap();
        assert_eq!(phase, "gone");
    }

    /// An id that comes back may be another machine: what is gone is told apart by when it was created, to the last
    /// digit. Rows that cannot be read tell at least their generation.
    #[test]
    fn of_what_is_gone_the_latest_generation_and_its_creation_are_told() {
        let mut ledger = Ledger::in_memory().unwrap();
        let gone = |id: &str, generation, created_at: Option<&str>| {
            let mut known = known_instance(id);
            known.identity.generation = generation;
            known.row.created_at = created_at.map(|text| text.parse().unwrap());
            known.gone_at = Some(at("09:00"));
            known
        };
        let exact = "2026-11-01T08:00:00.123456789Z";
        let rows = vec![
            gone("a", 0, Some("2026-10-01T08:00:00Z")),
            gone("a", 1, Some(exact)),
            gone("b", 0, None),
            gone("odd", 3, None),
            known_instance("here"),
        ];
        ledger.keep(&keep(rows)).unwrap();
        ledger.main.execute("UPDATE resource SET state = 'no JSON' WHERE id = 'odd'", []).unwrap();
        let earlier = ledger.earlier().unwrap();
        let of = |id: &str| earlier.of(&identity(ResourceKind::Instance, id));
        let told = |generation, created_at: Option<&str>| {
            Some(Gone { generation, created_at: created_at.map(|text| text.parse().unwrap()) })
        };
        assert_eq!(of("a"), told(1, Some(exact)));
        assert_eq!((of("b"), of("odd"), of("here")), (told(0, None), told(3, None), None));
    }

    #[test]
    fn the_past_holds_what_is_gone_beside_what_is_there() {
        let mut ledger = Ledger::in_memory().unwrap();
        let mut gone = known_instance("gone");
        gone.gone_at = Some(at("01:00"));
        let entries = Entries::default();
        let storage = vec![known_volume("disk")];
        ledger
            .keep(&Keep { account: account(), instances: vec![gone, known_instance("here")], storage, entries })
            .unwrap();
        let past = ledger.past().unwrap();
        let mut ids: Vec<_> = past.instances.iter().map(|known| known.row.id.as_str()).collect();
        ids.sort_unstable();
        assert_eq!((ids, past.storage.len(), past.accounts), (vec!["gone", "here"], 1, vec![account()]));
    }

    #[test]
    fn rows_that_this_version_cannot_read_are_counted_and_left() {
        let dir = folder();
        let mut ledger = open(&dir);
        ledger.keep(&keep(vec![known_instance("a"), known_instance("b"), known_instance("c")])).unwrap();
        ledger.record(&operation(1, sending()), &owner(7), at("10:00")).unwrap();
        ledger
            .main
            .execute_batch(
                r#"UPDATE resource SET state = '{"v":2,' || substr(state, 8) WHERE id = 'a';
                UPDATE resource SET state = '{"v":1,"row":{"id":"b","orbit":"low"}}' WHERE id = 'b';
                UPDATE operation SET state = 'no JSON';"#,
            )
            .unwrap();
        drop(ledger);

        let (memory, notices) = open(&dir).recall(at("10:00")).unwrap();
        assert_eq!(notices, [LedgerNotice::Unreadable { rows: 3 }]);
        assert_eq!(memory.instances.len(), 1);
        assert_eq!(memory.unfinished, []);
        let left: i64 = open(&dir).main.query_row("SELECT COUNT(*) FROM resource", [], |row| row.get(0)).unwrap();
        assert_eq!(left, 3);
    }

    /// LIFE-10: two complete lists without the machine, a restart, and it is back.
    #[test]
    fn settings_outlive_an_absence_and_a_restart() {
        let dir = folder();
        let kept = Setting { protected: Some(true), mine: Some(false), project: Some("视觉 \"1\"".to_owned()) };
        let a = identity(ResourceKind::Instance, "A");
        let mut fleet =
            Fleet { accounts: vec![Account::new("team".into(), "runpod".into(), false)], ..Fleet::default() };
        let poll = |rows: Vec<Instance>| Poll {
            instances: Part::Listed { rows, problems: vec![] },
            storage: Part::NotAsked,
            balance: Reading::NotAsked,
            tenant: Reading::NotTold,
            server_time: None,
        };
        {
            let mut ledger = open(&dir);
            ledger.set(&a, &kept).unwrap();
            for (clock, rows) in [("10:00", vec![instance("A")]), ("10:01", vec![]), ("10:02", vec![])] {
                fleet.absorb(&"team".into(), poll(rows), at(clock));
                ledger.keep(&keep(fleet.instances.values().cloned().collect())).unwrap();
            }
        }
        let mut ledger = open(&dir);
        let (memory, _) = ledger.recall(at("10:02:30")).unwrap();
        fleet.instances = memory.instances.into_iter().map(|known| (known.identity.clone(), known)).collect();
        fleet.absorb(&"team".into(), poll(vec![instance("A")]), at("10:03"));
        assert_eq!(memory.settings, BTreeMap::from([(a.clone(), kept)]));
        assert!(fleet.instances.keys().eq([&a]));
    }

    #[test]
    fn an_empty_setting_is_forgotten_and_others_stay() {
        let mut ledger = Ledger::in_memory().unwrap();
        let [a, b] = ["a", "b"].map(|id| identity(ResourceKind::Instance, id));
        let protected = Setting { protected: Some(true), ..Setting::default() };
        ledger.set(&a, &protected).unwrap();
        ledger.set(&b, &protected).unwrap();
        ledger.set(&a, &Setting { protected: Some(false), ..Setting::default() }).unwrap();
        ledger.set(&b, &Setting::default()).unwrap();
        let settings = recall(&mut ledger).settings;
        assert_eq!(settings, BTreeMap::from([(a, Setting { protected: Some(false), ..Setting::default() })]));
    }

    #[test]
    fn a_keep_that_fails_leaves_nothing_behind() {
        let mut ledger = Ledger::in_memory().unwrap();
        ledger
            .main
            .execute_batch(
                "CREATE TRIGGER refuse BEFORE INSERT ON resource WHEN NEW.id = 'b'
                BEGIN SELECT RAISE(ABORT, 'refused'); END",
            )
            .unwrap();
        ledger.keep(&keep(vec![known_instance("a"), known_instance("b")])).unwrap_err();
        assert_eq!(recall(&mut ledger), Memory::default());
    }

    #[test]
    fn a_full_disk_is_told_as_such_and_what_was_kept_stays() {
        let dir = folder();
        let mut ledger = open(&dir);
        ledger.keep(&keep(vec![known_instance("a")])).unwrap();
        ledger.main.pragma_update(None, "max_page_count", 1).unwrap();
        let many = (0..200).map(|n| known_instance(&format!("b{n}"))).collect();
        let error = ledger.keep(&keep(many)).unwrap_err();
        assert!(matches!(error, LedgerError::Full), "{error:?}");
        assert_eq!(recall(&mut ledger).instances.len(), 1);
    }

    #[test]
    fn recall_finds_by_index_what_is_there_and_what_is_unfinished() {
        let ledger = Ledger::in_memory().unwrap();
        for (sql, index) in [
            (RESOURCES.replace("$1", "0"), "resource_by_end"),
            (GONE.to_owned(), "USING COVERING INDEX resource_by_end"),
            (UNFINISHED.to_owned(), "operation_by_end"),
            (RECENTLY_ENDED.replace("$1", "200"), "operation_by_end"),
            (journal::ACTED.replace("$1", "0"), "operation_by_end"),
        ] {
            let mut statement = ledger.main.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let steps: Vec<String> =
                statement.query_map([], |row| row.get(3)).unwrap().collect::<Result<_, _>>().unwrap();
            let plan = steps.join("; ");
            assert!(plan.contains(index) && !plan.contains("SCAN") && !plan.contains("TEMP"), "{sql}: {plan}");
        }
    }
}
