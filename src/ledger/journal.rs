//! Every action, step by step: what is written here is on the disk before anything is sent.

use jiff::Timestamp;
use rusqlite::{Transaction, params};

use super::{Durability, Ledger, LedgerError, row, saved};
use crate::rules::memory::Owner;
use crate::rules::saga::{OpId, Operation, Step};

/// One step of an action, as it was written down.
#[derive(Clone, Debug, PartialEq)]
pub struct JournalLine {
    /// When it was written, to the millisecond.
    pub at: Timestamp,
    /// The step's word, for instance `sending`.
    pub step: String,
    /// The whole action as it was then.
    pub operation: Operation,
}

/// An action's present state. Nothing is overwritten when the id stands for another action.
const KEEP_OPERATION: &str = "
    INSERT INTO operation (op, action, account, kind, id, generation, began_at, began_by,
                           step, ended_at, host, pid, state)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
    ON CONFLICT (op) DO UPDATE SET
        step = excluded.step,
        ended_at = excluded.ended_at,
        host = excluded.host,
        pid = excluded.pid,
        state = excluded.state
    WHERE operation.action = excluded.action
        AND operation.account = excluded.account
        AND operation.kind = excluded.kind
        AND operation.id = excluded.id
        AND operation.generation = excluded.generation
        AND operation.began_at = excluded.began_at";

const ADD_LINE: &str = "
    INSERT INTO journal (op, at, account, kind, id, generation, step, state)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

const OWNER: &str = "SELECT host, pid FROM operation WHERE op = $1";

const IS_KNOWN: &str = "SELECT 1 FROM operation WHERE op = $1";

/// Whatever the generation: a request names the id alone.
const UNFINISHED_ON: &str = "
    SELECT state, host, pid FROM operation WHERE ended_at IS NULL AND account = $1 AND kind = $2 AND id = $3";

const AUDIT: &str = "SELECT state FROM operation WHERE began_at >= $1 ORDER BY began_at DESC, op DESC LIMIT $2";

/// By the index on both sides of the union.
pub(super) const ACTED: &str = "
    SELECT state FROM operation WHERE ended_at IS NULL UNION ALL
    SELECT state FROM operation WHERE ended_at >= $1";

const LINES: &str = "SELECT state, at, step FROM journal WHERE op = $1 ORDER BY entry";

impl Ledger {
    /// Writes an action down as it is now, as a new line of the journal and as its present state. On the disk
    /// when this returns; after an error, nothing of it is.
    pub fn record(&mut self, operation: &Operation, owner: &Owner, now: Timestamp) -> Result<(), LedgerError> {
        self.record_unless_taken(operation, owner, now, false, &|_, _| false)
    }

    /// The same, but an action is not begun beside another one on the same resource of which `in_hand` says that
    /// its process sees to it. Of two that begin at once the first is written down, and the second is not. One that is
    /// the owner's `own` by what it wrote before is not written over what another process, which took it up meanwhile,
    /// made of it.
    pub fn record_unless_taken(
        &mut self,
        operation: &Operation,
        owner: &Owner,
        now: Timestamp,
        own: bool,
        in_hand: &dyn Fn(&Operation, &Owner) -> bool,
    ) -> Result<(), LedgerError> {
        let state = row::write(operation)?;
        let target = &operation.target.identity;
        let (account, id) = (target.account.as_str(), target.id.as_str());
        let (kind, generation) = (row::kind_word(target.kind), target.generation);
        let step = operation.step.word();
        let ended_at = match &operation.step {
            Step::Ended { at, .. } => Some(row::millis(*at)),
            _ => None,
        };
        self.write(Durability::Now, |transaction| {
            let taken_up = if own { taken_up_by(transaction, operation, owner)? } else { None };
            let other = taken_up.map_or_else(|| taken_by(transaction, operation, in_hand), |other| Ok(Some(other)))?;
            if let Some(other) = other {
                return Err(LedgerError::UnderWay(other));
            }
            let written = transaction.prepare_cached(KEEP_OPERATION)?.execute(params![
                operation.id.0,
                operation.action.word(),
                account,
                kind,
                id,
                generation,
                row::millis(operation.began_at),
                operation.by,
                step,
                ended_at,
                owner.host,
                owner.pid,
                state,
            ])?;
            if written == 0 {
                return Err(LedgerError::OpTaken(operation.id));
            }
            let values = params![operation.id.0, row::millis(now), account, kind, id, generation, step, state];
            transaction.prepare_cached(ADD_LINE)?.execute(values)?;
            saved::keep(transaction, operation)
        })
    }

    /// The latest actions, newest first, at most `limit`; with `since`, those begun then or later. What this
    /// version cannot read is left out.
    pub fn audit(&self, limit: u32, since: Option<Timestamp>) -> Result<Vec<Operation>, LedgerError> {
        let mut statement = self.main.prepare_cached(AUDIT)?;
        let mut rows = statement.query(params![since.map_or(i64::MIN, row::millis), limit])?;
        let mut operations = Vec::new();
        while let Some(row) = rows.next()? {
            operations.extend(read_operation(row));
        }
        Ok(operations)
    }

    /// What is not ended, and what ended at a time or later, whatever process has it in hand. What this version cannot
    /// read is left out.
    pub fn acted_since(&self, since: Timestamp) -> Result<Vec<Operation>, LedgerError> {
        let mut statement = self.main.prepare_cached(ACTED)?;
        let mut rows = statement.query(params![row::millis(since)])?;
        let mut operations = Vec::new();
        while let Some(row) = rows.next()? {
            operations.extend(read_operation(row));
        }
        Ok(operations)
    }

    /// Every step of one action, oldest first. What this version cannot read is left out.
    pub fn journal(&self, op: OpId) -> Result<Vec<JournalLine>, LedgerError> {
        let mut statement = self.main.prepare_cached(LINES)?;
        let mut rows = statement.query(params![op.0])?;
        let mut lines = Vec::new();
        while let Some(row) = rows.next()? {
            lines.extend(line(row));
        }
        Ok(lines)
    }
}

/// Another process that took an action up; `None` where the owner still has it in hand.
fn taken_up_by(transaction: &Transaction, operation: &Operation, owner: &Owner) -> Result<Option<Owner>, LedgerError> {
    let mut statement = transaction.prepare_cached(OWNER)?;
    let mut rows = statement.query(params![operation.id.0])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let other = row::text(row, 0).map(str::to_owned).zip(row.get(1).ok()).map(|(host, pid)| Owner { host, pid });
    Ok(other.filter(|other| other != owner))
}

/// The process that has another action on the resource in hand; `None` for an action that was begun before, or
/// that ends.
fn taken_by(
    transaction: &Transaction,
    operation: &Operation,
    in_hand: &dyn Fn(&Operation, &Owner) -> bool,
) -> Result<Option<Owner>, LedgerError> {
    if operation.is_ended() || transaction.prepare_cached(IS_KNOWN)?.exists(params![operation.id.0])? {
        return Ok(None);
    }
    let target = &operation.target.identity;
    let mut statement = transaction.prepare_cached(UNFINISHED_ON)?;
    let mut rows =
        statement.query(params![target.account.as_str(), row::kind_word(target.kind), target.id.as_str()])?;
    while let Some(row) = rows.next()? {
        if let Some((_, owner)) = read_with_owner(row).filter(|(other, owner)| in_hand(other, owner)) {
            return Ok(Some(owner));
        }
    }
    Ok(None)
}

/// An action in a row's first column, and its process in the next two; `None` when this version cannot read it.
pub(super) fn read_with_owner(row: &rusqlite::Row) -> Option<(Operation, Owner)> {
    let owner = Owner { host: row::text(row, 1)?.to_owned(), pid: row.get(2).ok()? };
    Some((read_operation(row)?, owner))
}

/// The action in a row's first column; `None` when this version cannot read it.
pub(super) fn read_operation(row: &rusqlite::Row) -> Option<Operation> {
    row::read(row::text(row, 0)?)
}

fn line(row: &rusqlite::Row) -> Option<JournalLine> {
    Some(JournalLine {
        at: row::time(row.get(1).ok()?)?,
        step: row::text(row, 2)?.to_owned(),
        operation: read_operation(row)?,
    })
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use proptest::prelude::*;
    use providers::model::{Action, Phase};

    use super::*;
    use crate::ledger::samples::*;
    use crate::rules::saga::{Authority, NotSent, Outcome};

    fn ids(operations: &[Operation]) -> Vec<i64> {
        operations.iter().map(|operation| operation.id.0).collect()
    }

    #[test]
    fn every_step_is_a_line_and_the_last_one_is_the_present_state() {
        let dir = folder();
        {
            let mut ledger = open(&dir);
            let countdown = operation(1, Step::Countdown { until: at("10:00:05") });
            ledger.record(&countdown, &owner(7), at("10:00")).unwrap();
            ledger.record(&operation(1, sending()), &owner(7), at("10:00:05.250")).unwrap();
        }
        let mut ledger = open(&dir);
        let lines = ledger.journal(OpId(1)).unwrap();
        let steps: Vec<_> = lines.iter().map(|line| (line.at, line.step.as_str())).collect();
        assert_eq!(steps, [(at("10:00"), "countdown"), (at("10:00:05.250"), "sending")]);
        assert_eq!(lines[1].operation, operation(1, sending()));
        let (memory, _) = ledger.recall(at("10:01")).unwrap();
        assert_eq!(memory.unfinished, [(operation(1, sending()), owner(7))]);
        assert_eq!(memory.recent, []);
    }

    #[test]
    fn an_ended_action_is_recalled_among_the_latest_two_hundred_newest_first() {
        let mut ledger = Ledger::in_memory().unwrap();
        for n in 0..=200 {
            // Those with the higher ids ended earlier.
            let step = Step::Ended {
                at: at("12:00") - jiff::SignedDuration::from_secs(n),
                outcome: Outcome::Queued(String::new()),
            };
            ledger.record(&operation(n, step), &owner(7), at("12:00")).unwrap();
        }
        let (memory, _) = ledger.recall(at("12:01")).unwrap();
        assert_eq!(ids(&memory.recent), (0..200).collect::<Vec<_>>());
        assert_eq!(memory.unfinished, []);
    }

    #[test]
    fn the_audit_tells_the_newest_first_from_a_time_on_up_to_a_limit() {
        let mut ledger = Ledger::in_memory().unwrap();
        for (id, began) in [(1, "09:00"), (2, "11:00"), (3, "10:00"), (4, "11:00")] {
            let operation = Operation { began_at: at(began), ..operation(id, done("11:30")) };
            ledger.record(&operation, &owner(7), at("11:30")).unwrap();
        }
        assert_eq!(ids(&ledger.audit(10, None).unwrap()), [4, 2, 3, 1]);
        assert_eq!(ids(&ledger.audit(10, Some(at("10:00"))).unwrap()), [4, 2, 3]);
        assert_eq!(ids(&ledger.audit(1, None).unwrap()), [4]);
    }

    #[test]
    fn an_id_that_stands_for_another_action_is_refused_and_nothing_is_written() {
        let mut ledger = Ledger::in_memory().unwrap();
        let first = operation(1, sending());
        ledger.record(&first, &owner(7), at("10:00")).unwrap();
        let mut other_target = first.clone();
        other_target.target.identity.generation = 1;
        for other in [
            Operation { began_at: at("10:01"), ..first.clone() },
            Operation { action: Action::Stop, ..first.clone() },
            other_target,
        ] {
            let error = ledger.record(&other, &owner(8), at("10:02")).unwrap_err();
            assert!(matches!(error, LedgerError::OpTaken(OpId(1))), "{error:?}");
        }
        assert_eq!(ledger.audit(10, None).unwrap(), [first]);
        assert_eq!(ledger.journal(OpId(1)).unwrap().len(), 1);
    }

    /// Two processes at the same instant, each with a connection of its own.
    #[test]
    fn of_many_that_begin_on_one_resource_at_once_one_is_written_down() {
        const PROCESSES: u32 = 4;
        let dir = folder();
        let start = std::sync::Barrier::new(PROCESSES as usize);
        let begun: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..PROCESSES)
                .map(|pid| {
                    let (dir, start) = (&dir, &start);
                    scope.spawn(move || {
                        let mut ledger = open(dir);
                        let looking = operation(pid.into(), Step::Checking { looks: 1, next_look: None });
                        start.wait();
                        ledger.record_unless_taken(&looking, &owner(pid), at("10:00"), false, &|_, _| true)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let first = begun.iter().position(Result::is_ok).expect("one of them") as u32;
        for (pid, begun) in (0..).zip(begun).filter(|(pid, _)| *pid != first) {
            assert!(matches!(&begun, Err(LedgerError::UnderWay(by)) if *by == owner(first)), "{pid}: {begun:?}");
        }
        assert_eq!(ids(&open(&dir).audit(10, None).unwrap()), [i64::from(first)]);
    }

    #[test]
    fn an_action_gives_way_to_what_is_in_hand_on_the_same_resource_only() {
        let looking = |id| operation(id, Step::Checking { looks: 1, next_look: None });
        let theirs = |_: &Operation, by: &Owner| *by == owner(7);
        let mut ledger = Ledger::in_memory().unwrap();
        let mut begin = |operation: &Operation, by| {
            ledger
                .record_unless_taken(operation, &owner(by), at("10:00"), false, &theirs)
                .map_err(|error| error.to_string())
        };
        begin(&looking(1), 7).unwrap();
        assert_eq!(begin(&looking(2), 8).unwrap_err(), "desk (7) has another action on it under way");
        // Another generation of the id is the same id to the provider.
        let mut again = looking(3);
        again.target.identity.generation = 5;
        begin(&again, 8).unwrap_err();
        // That it came to nothing is written down all the same.
        begin(&operation(2, done("10:01")), 8).unwrap();
        let mut another = looking(4);
        another.target.identity.id = "pod-b".into();
        begin(&another, 8).unwrap();
        // What was begun goes on, whoever begins beside it.
        begin(&operation(1, sending()), 7).unwrap();
        begin(&operation(1, done("10:02")), 7).unwrap();
        begin(&looking(5), 8).unwrap();
        begin(&looking(6), 9).unwrap();
    }

    /// While one slept, another one took its action up: what the sleeper still has in mind is not written over that.
    #[test]
    fn who_slept_does_not_write_over_what_another_process_made_of_its_action() {
        let mut ledger = Ledger::in_memory().unwrap();
        let mut write = |step, by, own| {
            let operation = operation(1, step);
            let written = ledger.record_unless_taken(&operation, &owner(by), at("10:00"), own, &|_, _| false);
            written.map_err(|error| error.to_string())
        };
        write(Step::Checking { looks: 1, next_look: None }, 7, false).unwrap();
        write(sending(), 7, true).unwrap();
        write(sending(), 8, false).unwrap();
        write(done("10:01"), 8, true).unwrap();
        for step in [sending(), done("10:02")] {
            assert_eq!(write(step, 7, true).unwrap_err(), "desk (8) has another action on it under way");
        }
        assert_eq!(ledger.audit(1, None).unwrap(), [operation(1, done("10:01"))]);
    }

    #[test]
    fn the_journal_goes_through_a_connection_that_forces_it_to_the_disk() {
        let synchronous = |connection: &rusqlite::Connection| -> i64 {
            connection.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap()
        };
        let dir = folder();
        let mut ledger = open(&dir);
        assert_eq!(synchronous(&ledger.main), 1);
        assert_eq!(ledger.durable.as_ref().map(synchronous), Some(2));
        // Only the durable one may write here.
        ledger.main.pragma_update(None, "query_only", "ON").unwrap();
        ledger.record(&operation(1, sending()), &owner(7), at("10:00")).unwrap();
    }

    #[test]
    fn a_ledger_whose_file_was_taken_away_records_nothing() {
        let dir = folder();
        let mut ledger = open(&dir);
        std::fs::rename(ledger.path().unwrap(), dir.path().join("elsewhere")).unwrap();
        let error = ledger.record(&operation(1, sending()), &owner(7), at("10:00")).unwrap_err();
        assert!(matches!(error, LedgerError::Moved { .. }), "{error:?}");
        let _another = open_telling(&dir);
        let error = ledger.record(&operation(1, sending()), &owner(7), at("10:00")).unwrap_err();
        assert!(matches!(error, LedgerError::Moved { .. }), "{error:?}");
    }

    const KILLED_IN: &str = "RENTOP_TEST_KILLED_IN";

    /// Safety: what was recorded is there after `kill -9`. The test starts itself once more as the victim.
    #[cfg(unix)]
    #[test]
    fn a_recorded_action_outlives_kill_9() {
        if let Some(dir) = std::env::var_os(KILLED_IN) {
            let (mut ledger, _) = Ledger::open(dir.as_ref(), at("10:00")).unwrap();
            ledger.keep(&keep(vec![known_instance("pod-a")])).unwrap();
            ledger.record(&operation(1, sending()), &owner(std::process::id()), at("10:00")).unwrap();
            println!("recorded");
            // Open and unclosed until the end comes.
            std::io::stdin().lines().for_each(drop);
            return;
        }
        let dir = folder();
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "ledger::journal::tests::a_recorded_action_outlives_kill_9", "--nocapture"])
            .env(KILLED_IN, dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(victim.stdout.take().unwrap()).lines();
        assert!(said.any(|line| line.unwrap().contains("recorded")));
        victim.kill().unwrap();
        victim.wait().unwrap();

        let (memory, _) = open(&dir).recall(at("10:01")).unwrap();
        assert_eq!(memory.unfinished, [(operation(1, sending()), owner(victim.id()))]);
        assert_eq!(memory.instances.len(), 1);
    }

    fn any_time() -> impl Strategy<Value = Timestamp> {
        // To the nanosecond: the journal keeps times whole.
        (0i64..4_000_000_000, 0i32..1_000_000_000).prop_map(|(second, nano)| Timestamp::new(second, nano).unwrap())
    }

    fn any_step() -> impl Strategy<Value = Step> {
        let outcome = prop_oneof![
            proptest::option::of(".*").prop_map(|despite| Outcome::Done { despite }),
            ".*".prop_map(Outcome::Refused),
            Just(Outcome::NotSent(NotSent::PhaseChanged { was: Phase::Stopped, is: Phase::Running })),
            ".*".prop_map(|why| Outcome::NotSent(NotSent::CouldNotLook(why))),
        ];
        prop_oneof![
            any_time().prop_map(|until| Step::Countdown { until }),
            (any::<u32>(), proptest::option::of(any_time()))
                .prop_map(|(looks, next_look)| Step::Checking { looks, next_look }),
            any_time().prop_map(|since| Step::Sending { since }),
            (any_time(), ".*").prop_map(|(until, message)| Step::Waiting { until, message }),
            (any_time(), any_time(), proptest::option::of(".*"), any::<u32>()).prop_map(
                |(since, deadline, doubt, absences)| Step::Confirming {
                    since,
                    deadline,
                    doubt,
                    absences,
                    next_look: None
                }
            ),
            (any_time(), outcome).prop_map(|(at, outcome)| Step::Ended { at, outcome }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_action_comes_back_as_it_was_written(
            (id, began_at, step) in (any::<i64>(), any_time(), any_step()),
            (account, resource, generation) in ("\\PC*", "(?s).*", any::<u32>()),
            (typed, answer, picos) in ("(?s).*", proptest::option::of("(?s).*"), 0i64..i64::MAX),
        ) {
            let mut written = Operation { began_at, answer, authority: Authority::Typed(typed), ..operation(id, step) };
            written.target.identity.account = account.as_str().into();
            written.target.identity.id = resource.as_str().into();
            written.target.identity.generation = generation;
            written.target.before = vec![providers::money::Rate::from_picos(picos, providers::money::Currency::CNY)];
            let mut ledger = Ledger::in_memory().unwrap();
            ledger.record(&written, &owner(u32::MAX), began_at).unwrap();
            ledger.record(&written, &owner(u32::MAX), began_at).unwrap();
            let lines = ledger.journal(written.id).unwrap();
            prop_assert_eq!(lines.len(), 2);
            prop_assert!(lines.iter().all(|line| line.operation == written));
            prop_assert_eq!(&ledger.audit(10, None).unwrap(), &[written.clone()]);
            let (memory, notices) = ledger.recall(at("10:00")).unwrap();
            prop_assert_eq!(notices, []);
            let recalled = memory.unfinished.into_iter().map(|(operation, _)| operation).chain(memory.recent);
            prop_assert_eq!(recalled.collect::<Vec<_>>(), [written]);
        }
    }
}
