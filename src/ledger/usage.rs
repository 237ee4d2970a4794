//! What machines did, five minutes at a time: written once a minute, kept for thirty days.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use providers::model::{AccountName, Identity, ResourceKind};
use providers::usage::Usage;
use rusqlite::{Connection, OptionalExtension, params};

use super::{Durability, Ledger, LedgerError, row};
use crate::rules::usage::{CardMinute, Flow, HostMinute, MINUTE, SLOT, Share, Slot, UsageEntry, WeeksPeak};

/// Slots are kept for so long.
const KEPT: SignedDuration = SignedDuration::from_hours(30 * 24);
/// Of the layout of `figures`; another one is not read.
const LAYOUT: u8 = 1;
const HOST_BYTES: usize = 1 + 1 + 1 + 2 + 4 + 4;
const CARD_BYTES: usize = 5 * 2;

const MACHINE: &str = "SELECT key FROM machine WHERE account = $1 AND id = $2 AND generation = $3";
const NEW_MACHINE: &str = "INSERT INTO machine (account, id, generation) VALUES ($1, $2, $3)";
const FIND: &str = "SELECT seen, whole, figures FROM usage WHERE slot = $1 AND machine = $2";
const KEEP: &str = "
    INSERT OR REPLACE INTO usage (slot, machine, seen, whole, memory_peak, figures) VALUES ($1, $2, $3, $4, $5, $6)";
const KEEP_LATEST: &str = "UPDATE machine SET latest = $1 WHERE key = $2";
const LATEST: &str = "
    SELECT account, id, generation, latest FROM machine
    WHERE latest IS NOT NULL AND key IN (SELECT machine FROM usage WHERE slot >= $1)";
const OLD: &str = "DELETE FROM usage WHERE slot < $1";
const SINCE: &str = "
    SELECT account, id, generation, slot, seen, whole, figures FROM usage JOIN machine ON machine.key = machine
    WHERE slot >= $1 ORDER BY slot";
const PEAKS: &str = "
    SELECT account, id, generation, MAX(memory_peak), COUNT(*) FROM usage JOIN machine ON machine.key = machine
    WHERE slot >= $1 AND memory_peak IS NOT NULL GROUP BY machine";

impl Ledger {
    /// Adds slots to what is known of the same five minutes, whoever saw it, and forgets those that are too old.
    pub fn keep_usage(&mut self, entries: &[UsageEntry], now: Timestamp) -> Result<(), LedgerError> {
        self.write(Durability::Soon, |transaction| {
            let mut keys: BTreeMap<&Identity, i64> = BTreeMap::new();
            for UsageEntry { identity, slot, latest } in entries {
                let key = match keys.get(identity) {
                    Some(key) => *key,
                    None => *keys.entry(identity).or_insert(machine(transaction, identity)?),
                };
                let there = transaction.prepare_cached(FIND)?.query_row(params![slot.number, key], |row| {
                    Ok(self::slot(slot.number, row.get(0)?, row.get(1)?, &row.get::<_, Vec<u8>>(2)?))
                });
                let mut slot = slot.clone();
                if let Some(there) = there.optional()?.flatten() {
                    slot.merge(&there);
                }
                let peak = slot.memory_peak();
                let peak = peak.is_known().then(|| peak.bits());
                let place = params![slot.number, key, slot.seen, slot.whole, peak, encoded(&slot)];
                transaction.prepare_cached(KEEP)?.execute(place)?;
                if let Some(look) = latest {
                    transaction.prepare_cached(KEEP_LATEST)?.execute(params![row::write(look)?, key])?;
                }
            }
            transaction.prepare_cached(OLD)?.execute([slot_of(now - KEPT)])?;
            Ok(())
        })
    }

    /// The slots from a time on, the oldest first: about so many, and the time from which on there are more.
    pub fn usage_since(
        &self,
        from: Timestamp,
        about: usize,
    ) -> Result<(Vec<UsageEntry>, Option<Timestamp>), LedgerError> {
        let mut statement = self.main.prepare_cached(SINCE)?;
        let mut rows = statement.query([slot_of(from)])?;
        let (mut entries, mut read, mut last) = (Vec::new(), 0, None);
        while let Some(row) = rows.next()? {
            let number: i64 = row.get(3)?;
            // Those of the same five minutes stay together.
            if read >= about && last != Some(number) {
                return Ok((entries, Timestamp::from_second(number.saturating_mul(SLOT * MINUTE)).ok()));
            }
            (read, last) = (read + 1, Some(number));
            let figures: Vec<u8> = row.get(6)?;
            // What another version wrote is left alone.
            let Some(slot) = slot(number, row.get(4)?, row.get(5)?, &figures) else { continue };
            entries.push(UsageEntry { identity: identity(row)?, slot, latest: None });
        }
        // With the last of it comes the last look at each machine that is in it.
        let mut looks: BTreeMap<Identity, Box<Usage>> = BTreeMap::new();
        let mut statement = self.main.prepare_cached(LATEST)?;
        let mut rows = statement.query([slot_of(from)])?;
        while let Some(found) = rows.next()? {
            if let Some(look) = row::read(&found.get::<_, String>(3)?) {
                looks.insert(identity(found)?, look);
            }
        }
        for entry in entries.iter_mut().rev() {
            entry.latest = looks.remove(&entry.identity);
        }
        Ok((entries, None))
    }

    /// The most memory that each machine used since a time.
    pub fn memory_peaks(&self, from: Timestamp) -> Result<Vec<WeeksPeak>, LedgerError> {
        let mut statement = self.main.prepare_cached(PEAKS)?;
        let peaks = statement.query_map([slot_of(from)], |row| {
            let memory = Share::from_bits(row.get(3)?);
            Ok(WeeksPeak { identity: identity(row)?, memory, slots: row.get(4)? })
        })?;
        Ok(peaks.collect::<Result<_, _>>()?)
    }
}

fn slot_of(at: Timestamp) -> i64 {
    at.as_second().div_euclid(SLOT * MINUTE)
}

fn identity(row: &rusqlite::Row<'_>) -> rusqlite::Result<Identity> {
    let (account, id): (String, String) = (row.get(0)?, row.get(1)?);
    let account = AccountName::from(account);
    Ok(Identity { account, kind: ResourceKind::Instance, id: id.as_str().into(), generation: row.get(2)? })
}

fn machine(connection: &Connection, identity: &Identity) -> Result<i64, LedgerError> {
    let place = params![identity.account.as_str(), identity.id.as_str(), identity.generation];
    let known = connection.prepare_cached(MACHINE)?.query_row(place, |row| row.get(0)).optional()?;
    match known {
        Some(key) => Ok(key),
        None => Ok(connection.prepare_cached(NEW_MACHINE)?.insert(place)?),
    }
}

/// All numbers are little-endian.
fn encoded(slot: &Slot) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HOST_BYTES + slot.cards.len() * CARD_BYTES);
    let host = &slot.host;
    bytes.extend([LAYOUT, host.averaged_over, u8::from(host.serves)]);
    bytes.extend(host.cpu.bits().to_le_bytes());
    bytes.extend(host.disk.bits().to_le_bytes());
    bytes.extend(host.network.bits().to_le_bytes());
    for card in &slot.cards {
        for share in [card.peak, card.least, card.memory_low, card.memory_high, card.power] {
            bytes.extend(share.bits().to_le_bytes());
        }
    }
    bytes
}

/// `None` for what another version wrote.
fn slot(number: i64, seen: u8, whole: u8, figures: &[u8]) -> Option<Slot> {
    let (host, cards) = decoded(figures)?;
    Some(Slot { number, seen, whole, host, cards })
}

fn decoded(bytes: &[u8]) -> Option<(HostMinute, Vec<CardMinute>)> {
    let (host, cards) = bytes.split_at_checked(HOST_BYTES)?;
    let [LAYOUT, averaged_over, serves, figures @ ..] = host else { return None };
    let (cpu, flows) = figures.split_at_checked(2)?;
    let flow = |at: usize| flows.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
    let share = |bytes: &[u8]| bytes.try_into().ok().map(|bytes| Share::from_bits(u16::from_le_bytes(bytes)));
    let host = HostMinute {
        seen: true,
        whole: false,
        averaged_over: *averaged_over,
        serves: *serves != 0,
        cpu: share(cpu)?,
        disk: Flow::from_bits(flow(0)?),
        network: Flow::from_bits(flow(4)?),
    };
    let card = |bytes: &[u8]| {
        let [peak, least, memory_low, memory_high, power] =
            [0, 2, 4, 6, 8].map(|at| bytes.get(at..at + 2).and_then(share).unwrap_or_default());
        CardMinute { peak, least, memory_low, memory_high, power }
    };
    let cards = cards.chunks_exact(CARD_BYTES);
    cards.remainder().is_empty().then(|| (host, cards.map(card).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::samples::{at, identity};

    fn card(peak: f64, memory: (f64, f64)) -> CardMinute {
        let [peak, memory_low, memory_high] = [peak, memory.0, memory.1].map(Share::of);
        CardMinute { peak, least: peak, memory_low, memory_high, power: Share::UNKNOWN }
    }

    fn entry(slot: i64, seen: u8, cards: Vec<CardMinute>) -> UsageEntry {
        let host = HostMinute { seen: true, averaged_over: 1, network: Flow::from(Some(2e6)), ..HostMinute::default() };
        let slot = Slot { number: slot, seen, whole: seen & 0b1_0101, host, cards };
        UsageEntry { identity: identity(ResourceKind::Instance, "a"), slot, latest: None }
    }

    fn all(ledger: &Ledger, from: Timestamp) -> Vec<UsageEntry> {
        ledger.usage_since(from, usize::MAX).unwrap().0
    }

    #[test]
    fn much_of_it_is_read_a_part_at_a_time() {
        let mut ledger = Ledger::in_memory().unwrap();
        let now = at("10:00");
        let of =
            |id: &str, slot| UsageEntry { identity: identity(ResourceKind::Instance, id), ..entry(slot, 1, vec![]) };
        let first = slot_of(now);
        let written: Vec<UsageEntry> = (first..first + 4).flat_map(|slot| [of("a", slot), of("b", slot)]).collect();
        ledger.keep_usage(&written, now).unwrap();
        let (mut read, mut from, mut parts) = (Vec::new(), Some(now), 0);
        while let Some(at) = from {
            let (part, rest) = ledger.usage_since(at, 3).unwrap();
            read.extend(part);
            (from, parts) = (rest, parts + 1);
        }
        assert_eq!((read, parts), (written, 2));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut ledger = Ledger::in_memory().unwrap();
        let now = at("10:00");
        let written = entry(slot_of(now), 0b1_1011, vec![card(0.5, (0.1, 0.2)), CardMinute::default()]);
        ledger.keep_usage(std::slice::from_ref(&written), now).unwrap();
        assert_eq!(all(&ledger, now), [written]);
        assert_eq!(all(&ledger, now + SignedDuration::from_mins(5)), []);
    }

    /// As after a restart, before what the one before wrote is known.
    #[test]
    fn two_processes_that_wrote_parts_of_a_slot_hide_nothing_of_each_other() {
        let mut ledger = Ledger::in_memory().unwrap();
        let now = at("10:00");
        let first = entry(slot_of(now), 0b0_0011, vec![card(0.9, (0.1, 0.6))]);
        let second = entry(slot_of(now), 0b1_0010, vec![card(0.0, (0.0, 0.0)), card(0.1, (0.1, 0.1))]);
        for written in [&first, &second, &first] {
            ledger.keep_usage(std::slice::from_ref(written), now).unwrap();
        }
        let [found] = &all(&ledger, now)[..] else { panic!("one slot") };
        assert_eq!((found.slot.seen, found.slot.whole), (0b1_0011, 0b1_0001));
        let both = CardMinute { least: Share::of(0.0), ..card(0.9, (0.0, 0.6)) };
        assert_eq!(found.slot.cards, [both, card(0.1, (0.1, 0.1))]);
        let peaks = ledger.memory_peaks(now).unwrap();
        assert_eq!((peaks[0].memory, peaks[0].slots), (Share::of(0.6), 1));
    }

    #[test]
    fn the_last_look_stands_with_the_last_slot_alone() {
        let mut ledger = Ledger::in_memory().unwrap();
        let now = at("10:00");
        let look = |cpu| Usage { cpu: Some(cpu), ..Usage::new(now, providers::usage::UsageSource::Ssh) };
        for (slot, cpu) in [(slot_of(now) - 1, 0.5), (slot_of(now), 0.75)] {
            let entry = UsageEntry { latest: Some(Box::new(look(cpu))), ..entry(slot, 1, Vec::new()) };
            ledger.keep_usage(&[entry], now).unwrap();
        }
        let found = all(&ledger, now - SignedDuration::from_mins(5));
        let looks: Vec<_> = found.iter().map(|entry| entry.latest.as_deref()).collect();
        assert_eq!(looks, [None, Some(&look(0.75))]);
    }

    #[test]
    fn slots_are_kept_for_thirty_days() {
        let mut ledger = Ledger::in_memory().unwrap();
        let now = at("10:00");
        let slots = || [slot_of(now - KEPT) - 1, slot_of(now - KEPT), slot_of(now)];
        let entries = slots().map(|slot| entry(slot, 1, vec![card(0.0, (0.2, 0.3))]));
        ledger.keep_usage(&entries, now).unwrap();
        let found: Vec<i64> = all(&ledger, Timestamp::UNIX_EPOCH).iter().map(|e| e.slot.number).collect();
        assert_eq!(found, slots()[1..]);
    }

    #[test]
    fn what_another_version_wrote_is_left_alone() {
        let mut ledger = Ledger::in_memory().unwrap();
        let now = at("10:00");
        ledger.keep_usage(&[entry(slot_of(now), 1, Vec::new())], now).unwrap();
        for figures in [&b"\x02"[..], b"", &[LAYOUT; HOST_BYTES + CARD_BYTES - 1]] {
            ledger.main.execute("UPDATE usage SET figures = $1", [figures]).unwrap();
            assert_eq!(all(&ledger, now), []);
        }
    }
}
