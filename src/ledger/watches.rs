//! Who watches without a screen: a sign of life of each such process, whether it collects or looks on.

use jiff::{SignedDuration, Timestamp};
use rusqlite::params;

use super::{Durability, Ledger, LedgerError, row};
use crate::rules::memory::Owner;

const SIGN: &str = "
    INSERT INTO watch (host, pid, until) VALUES ($1, $2, $3)
    ON CONFLICT (host, pid) DO UPDATE SET until = excluded.until";
const RUN_OUT: &str = "DELETE FROM watch WHERE until <= $1";
const LEAVE: &str = "DELETE FROM watch WHERE host = $1 AND pid = $2";
const SIGNS: &str = "SELECT host, pid FROM watch WHERE until > $1";

impl Ledger {
    /// A process that watches gives a sign of life, which is good until `now + ttl`.
    pub fn watches(&mut self, us: &Owner, now: Timestamp, ttl: SignedDuration) -> Result<(), LedgerError> {
        self.write(Durability::Soon, |transaction| {
            transaction.execute(RUN_OUT, [row::millis(now)])?;
            transaction.execute(SIGN, params![us.host, us.pid, row::millis(now + ttl)])?;
            Ok(())
        })
    }

    /// It watches no more.
    pub fn watches_no_more(&mut self, us: &Owner) -> Result<(), LedgerError> {
        self.write(Durability::Soon, |transaction| {
            transaction.execute(LEAVE, params![us.host, us.pid])?;
            Ok(())
        })
    }

    /// Whether any process watches: one whose sign has not run out, and of which `alive` does not say that it has ended
    /// where it is one of `us`'s host.
    pub fn is_watched(&self, us: &Owner, now: Timestamp, alive: &dyn Fn(u32) -> bool) -> Result<bool, LedgerError> {
        let mut statement = self.main.prepare_cached(SIGNS)?;
        let mut signs = statement.query([row::millis(now)])?;
        while let Some(sign) = signs.next()? {
            let (host, pid): (String, u32) = (sign.get(0)?, sign.get(1)?);
            if host != us.host || alive(pid) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::samples::{at, owner};

    const TTL: SignedDuration = SignedDuration::from_secs(30);

    #[test]
    fn a_watch_is_there_until_its_sign_runs_out_or_it_leaves_or_is_dead() {
        let mut ledger = Ledger::in_memory().unwrap();
        let living = |_| true;
        let watched = |ledger: &Ledger, clock: &str, alive: &dyn Fn(u32) -> bool| {
            ledger.is_watched(&owner(1), at(clock), alive).unwrap()
        };
        assert!(!watched(&ledger, "10:00:00", &living), "nobody watches");
        ledger.watches(&owner(2), at("10:00:00"), TTL).unwrap();
        assert!(watched(&ledger, "10:00:29", &living));
        assert!(!watched(&ledger, "10:00:30", &living), "its sign has run out");
        assert!(!watched(&ledger, "10:00:29", &|pid| pid != 2), "it was killed");
        ledger.watches(&owner(2), at("10:00:20"), TTL).unwrap();
        assert!(watched(&ledger, "10:00:49", &living), "it was renewed");
        ledger.watches_no_more(&owner(3)).unwrap();
        assert!(watched(&ledger, "10:00:49", &living), "another one left");
        ledger.watches_no_more(&owner(2)).unwrap();
        assert!(!watched(&ledger, "10:00:49", &living));
        let elsewhere = Owner { host: "laptop".to_owned(), pid: 2 };
        ledger.watches(&elsewhere, at("10:00:20"), TTL).unwrap();
        assert!(watched(&ledger, "10:00:49", &|_| panic!("a number of another host means nothing here")));
    }
}
