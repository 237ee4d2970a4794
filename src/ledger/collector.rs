//! Who may poll, write and act: one process a ledger, by a claim that runs out unless it is renewed.

use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};

use super::{Durability, Ledger, LedgerError, row};
use crate::rules::memory::{Collector, Owner};

const HOLDER: &str = "SELECT host, pid, until FROM collector WHERE seat = 1";

const TAKE: &str = "
    INSERT INTO collector (seat, host, pid, until) VALUES (1, $1, $2, $3)
    ON CONFLICT (seat) DO UPDATE SET host = excluded.host, pid = excluded.pid, until = excluded.until";

const RELEASE: &str = "DELETE FROM collector WHERE host = $1 AND pid = $2";

impl Ledger {
    /// Asks to be the collector, or to stay it, until `now + ttl`: granted when the place is free, ours already, run out, or
    /// held by a process of this host of which `alive` says that it has ended.
    pub fn claim(
        &mut self,
        us: &Owner,
        now: Timestamp,
        ttl: SignedDuration,
        alive: &dyn Fn(u32) -> bool,
    ) -> Result<Collector, LedgerError> {
        self.write(Durability::Soon, |transaction| {
            if let Some((owner, until)) = holder(transaction)? {
                let dead = || owner.host == us.host && !alive(owner.pid);
                if owner != *us && now < until && !dead() {
                    return Ok(Collector::Other { owner, until });
                }
            }
            transaction.execute(TAKE, params![us.host, us.pid, row::millis(now + ttl)])?;
            Ok(Collector::Us)
        })
    }

    /// Gives the place up; another's is left alone.
    pub fn release(&mut self, us: &Owner) -> Result<(), LedgerError> {
        self.write(Durability::Soon, |transaction| {
            transaction.execute(RELEASE, params![us.host, us.pid])?;
            Ok(())
        })
    }

    /// Who holds the place and until when, run out or not; `None` when nobody does.
    pub fn collector(&self) -> Result<Option<(Owner, Timestamp)>, LedgerError> {
        holder(&self.main)
    }
}

fn holder(connection: &Connection) -> Result<Option<(Owner, Timestamp)>, LedgerError> {
    let found = connection
        .query_row(HOLDER, [], |row| Ok((Owner { host: row.get(0)?, pid: row.get(1)? }, row.get(2)?)))
        .optional()?;
    Ok(found.map(|(owner, until): (Owner, i64)| (owner, row::time(until).unwrap_or(Timestamp::MIN))))
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;
    use crate::ledger::samples::*;

    const TTL: SignedDuration = SignedDuration::from_secs(60);

    fn living(_: u32) -> bool {
        true
    }

    fn ended(_: u32) -> bool {
        false
    }

    fn elsewhere(pid: u32) -> Owner {
        Owner { host: "laptop".to_owned(), pid }
    }

    fn claim(ledger: &mut Ledger, us: &Owner, clock: &str, alive: &dyn Fn(u32) -> bool) -> Collector {
        ledger.claim(us, at(clock), TTL, alive).unwrap()
    }

    #[test]
    fn the_second_copy_is_told_who_collects_and_until_when() {
        let dir = folder();
        let (mut first, mut second) = (open(&dir), open(&dir));
        assert_eq!(claim(&mut first, &owner(1), "10:00", &living), Collector::Us);
        let other = Collector::Other { owner: owner(1), until: at("10:01") };
        assert_eq!(claim(&mut second, &owner(2), "10:00:30", &living), other);
        assert_eq!(claim(&mut first, &owner(1), "10:00:30", &living), Collector::Us);
        assert_eq!(second.collector().unwrap(), Some((owner(1), at("10:01:30"))));
    }

    /// STATE-02: the first copy is killed; the third one starts and is not blocked.
    #[test]
    fn the_claim_of_a_dead_process_of_this_host_does_not_block() {
        let mut ledger = Ledger::in_memory().unwrap();
        assert_eq!(claim(&mut ledger, &owner(1), "10:00", &living), Collector::Us);
        assert_eq!(claim(&mut ledger, &owner(3), "10:00:01", &ended), Collector::Us);
        assert_ne!(claim(&mut ledger, &owner(1), "10:00:02", &living), Collector::Us);
    }

    #[test]
    fn whether_a_process_of_another_host_lives_is_not_guessed() {
        let mut ledger = Ledger::in_memory().unwrap();
        assert_eq!(claim(&mut ledger, &elsewhere(1), "10:00", &living), Collector::Us);
        let asked = |_| panic!("a number of another host means nothing here");
        let other = Collector::Other { owner: elsewhere(1), until: at("10:01") };
        assert_eq!(claim(&mut ledger, &owner(2), "10:00:59", &asked), other);
        assert_eq!(claim(&mut ledger, &owner(2), "10:01", &asked), Collector::Us);
    }

    #[test]
    fn a_renewed_claim_lasts_and_a_lost_one_is_not_renewed() {
        let mut ledger = Ledger::in_memory().unwrap();
        claim(&mut ledger, &owner(1), "10:00", &living);
        assert_eq!(claim(&mut ledger, &owner(1), "10:00:50", &living), Collector::Us);
        let other = Collector::Other { owner: owner(1), until: at("10:01:50") };
        assert_eq!(claim(&mut ledger, &owner(2), "10:01:30", &living), other);
        // It slept past its time, and another took over.
        assert_eq!(claim(&mut ledger, &owner(2), "10:02", &living), Collector::Us);
        assert_ne!(claim(&mut ledger, &owner(1), "10:02:01", &living), Collector::Us);
        assert_eq!(ledger.collector().unwrap(), Some((owner(2), at("10:03"))));
    }

    #[test]
    fn a_released_place_is_free_and_only_its_holder_releases_it() {
        let mut ledger = Ledger::in_memory().unwrap();
        claim(&mut ledger, &owner(1), "10:00", &living);
        ledger.release(&owner(2)).unwrap();
        assert!(matches!(claim(&mut ledger, &owner(2), "10:00:01", &living), Collector::Other { .. }));
        ledger.release(&owner(1)).unwrap();
        assert_eq!(ledger.collector().unwrap(), None);
        assert_eq!(claim(&mut ledger, &owner(2), "10:00:01", &living), Collector::Us);
    }

    /// STATE-02: whatever the order, one of them collects, also when the place falls free under all of them.
    #[test]
    fn of_many_that_claim_at_once_exactly_one_collects() {
        const PROCESSES: u32 = 4;
        const ROUNDS: i64 = 25;
        let dir = folder();
        let start = Barrier::new(PROCESSES as usize);
        let granted: Vec<Vec<bool>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..PROCESSES)
                .map(|pid| {
                    let (dir, start) = (&dir, &start);
                    scope.spawn(move || {
                        let mut ledger = open(dir);
                        let round = |round: i64| {
                            start.wait();
                            // Every claim of the round before has run out.
                            let now = at("10:00") + TTL * i32::try_from(round).unwrap();
                            ledger.claim(&owner(pid), now, TTL, &living).unwrap() == Collector::Us
                        };
                        (0..ROUNDS).map(round).collect()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for round in 0..ROUNDS as usize {
            assert_eq!(granted.iter().filter(|process| process[round]).count(), 1, "round {round}");
        }
    }
}
