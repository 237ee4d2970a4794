//! The demo's past, written by the same code that writes what a collector sees: polls of the world as it was, looks at
//! them, entries in the books. Looks are taken around changes only; a time without changes needs none.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use providers::model::{AccountName, Identity, ResourceKind};
use providers::provider::Found;
use providers::sim::Load;
use rust_decimal::Decimal;

use super::worlds::Rented;
use crate::ledger::{Ledger, LedgerError};
use crate::rules::fleet::{Account, Consequence, Fleet};
use crate::rules::memory::{AccountMemory, Keep};
use crate::rules::settings::{Rules, Settings};
use crate::rules::spend::{Charge, Entries, Exact, Look, Meter, Span, Terms};
use crate::rules::streams::Consent;
use crate::rules::usage::{History, HostMinute, MINUTE, SLOT, Slot, UsageEntry};

/// From and to, so long before the start: the computer slept, and nobody looked.
const OUTAGE: (SignedDuration, SignedDuration) =
    (SignedDuration::from_hours(12 * 24 + 9), SignedDuration::from_hours(12 * 24));
/// When is looked around a change: before it, after it, once more, which proves what is gone, and when a file system
/// has been measured.
const AROUND: [SignedDuration; 4] = [
    SignedDuration::from_secs(-5),
    SignedDuration::from_secs(10),
    SignedDuration::from_secs(25),
    SignedDuration::from_hours(4),
];
/// Between looks that are left out nothing changed: they are no gap.
const NO_GAP: SignedDuration = SignedDuration::from_hours(24 * 365);
/// As the collector has it.
const GAP: SignedDuration = SignedDuration::from_mins(3);

/// Slots of five minutes in a day.
const DAY_OF_SLOTS: i64 = 24 * 60 / SLOT;

/// The past of all accounts up to `now`.
pub fn of_all(rented: &[Rented], rules: &Rules, now: Timestamp) -> Vec<Keep> {
    rented.iter().map(|rented| past(rented, rules, now)).collect()
}

/// Writes it down.
pub fn write(ledger: &mut Ledger, rented: &[Rented], pasts: &[Keep], now: Timestamp) -> Result<(), LedgerError> {
    rented.iter().zip(pasts).try_for_each(|(rented, past)| {
        ledger.keep(past)?;
        ledger.keep_usage(&usage(rented, past, now), now)
    })
}

/// What a resource will have cost by then, if it goes on as it is.
pub fn spent(pasts: &[Keep], id: &str, then: Timestamp) -> Decimal {
    let spans = pasts.iter().flat_map(|past| &past.entries.spans);
    let open = pasts.iter().flat_map(|past| &past.entries.open).filter(|(identity, _)| identity.id.as_str() == id);
    let lines = open.filter_map(|(_, running)| running.as_ref()).flat_map(|running| &running.lines);
    let certain = |terms: &Terms| terms.charge == Charge::Certain;
    let closed = spans.filter(|span| span.identity.id.as_str() == id && certain(&span.terms)).map(Span::amount);
    let open = lines.filter(|line| certain(&line.terms)).map(|line| Exact::over(line.rate, line.from, then));
    closed.chain(open).sum::<Exact>().amount()
}

/// What the machines did in the last day, as far as their provider told it, in slots of which each minute was seen.
fn usage(rented: &Rented, past: &Keep, now: Timestamp) -> Vec<UsageEntry> {
    let mut histories: BTreeMap<&Identity, (History, bool)> = BTreeMap::new();
    let slot = SLOT * MINUTE;
    // That of now is not over.
    let last = now.as_second().div_euclid(slot);
    for number in last - DAY_OF_SLOTS + 1..=last {
        let at = Timestamp::from_second(number * slot + slot / 2).expect("a time of the last day").min(now);
        let poll = (rented.poll)(&rented.world.as_of(at));
        for row in poll.instances.rows() {
            let identity = past.instances.iter().map(|known| &known.identity).find(|identity| identity.id == row.id);
            let (Some(identity), Some(usage)) = (identity, &row.usage) else { continue };
            let (history, serves) = histories.entry(identity).or_default();
            history.note(usage, row.gpus.as_ref().map(|gpus| gpus.count));
            *serves |= rented.world.machines.iter().any(|one| one.id == row.id.as_str() && one.load == Load::Waits);
        }
    }
    let all = (1 << SLOT) - 1;
    let so_far = (1 << (now.as_second().rem_euclid(slot) / MINUTE)) - 1;
    let entries = |(identity, (mut history, serves)): (&Identity, (History, bool))| {
        let slots = history.take_unkept().into_iter().map(move |slot| {
            // That something serves no provider tells: it was seen by looking into the machine.
            let host = HostMinute { serves, ..slot.host };
            let seen = if slot.number == last { so_far } else { all };
            Slot { seen, whole: if slot.whole == 0 { 0 } else { seen }, host, ..slot }
        });
        let slots = slots.filter(|slot| slot.seen > 0);
        slots.map(|slot| UsageEntry { identity: identity.clone(), slot, latest: None }).collect::<Vec<_>>()
    };
    histories.into_iter().flat_map(entries).collect()
}

/// The moments at which an account was looked at, oldest first.
fn looks(rented: &Rented, now: Timestamp) -> Vec<Timestamp> {
    let changes = rented.world.past_changes();
    let outage = (now - OUTAGE.0, now - OUTAGE.1);
    let around = changes.into_iter().flat_map(|change| AROUND.map(|wait| change + wait));
    let awake = around.filter(|at| *at < now && !(outage.0 < *at && *at < outage.1));
    let mut all: Vec<Timestamp> = awake.chain([outage.0, outage.1, now]).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn past(rented: &Rented, rules: &Rules, now: Timestamp) -> Keep {
    let name = AccountName::from(rented.account);
    let settings = Settings { rules: rules.clone(), single: BTreeMap::new() };
    let account = Account::new(name.clone(), rented.provider.into(), false);
    let mut fleet = Fleet { accounts: vec![account], ..Fleet::default() };
    let (mut meter, mut entries) = (Meter::default(), Entries::default());
    for at in looks(rented, now) {
        let poll = (rented.poll)(&rented.world.as_of(at));
        for consequence in fleet.absorb(&name, poll, at) {
            if let Consequence::AskById(identity) = consequence {
                fleet.absorb_found(&identity, Found::NoSuchId, at);
            }
        }
        let longest_gap = if at == now - OUTAGE.0 || at == now - OUTAGE.1 { GAP } else { NO_GAP };
        for kind in [ResourceKind::Instance, ResourceKind::Storage] {
            let look = Look { account: name.clone(), kind, now: at, longest_gap };
            entries.append(meter.look_at(&look, &fleet, &settings, at, None));
        }
    }
    Keep {
        account: AccountMemory {
            as_of: Some(now),
            last_complete: Some(now),
            instances_seen: meter.horizon(&name, ResourceKind::Instance),
            storage_seen: meter.horizon(&name, ResourceKind::Storage),
            // What is simulated cannot be looked into.
            streams: Consent::Never,
            ..AccountMemory::new(name.clone(), rented.provider.into())
        },
        instances: fleet.instances.into_values().collect(),
        storage: fleet.storage.into_values().collect(),
        entries,
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use providers::model::Component;
    use providers::money::Currency;
    use providers::sim::{Item, SimClock};

    use super::super::{rules, worlds};
    use super::*;
    use crate::rules::spend::Evidence;
    use crate::rules::usage::{IdleRule, Judged, Verdict, judge};

    const NOW: &str = "2026-11-30T09:00:00Z";

    fn pasts() -> Vec<(Rented, Keep)> {
        let now = NOW.parse().unwrap();
        let rented = worlds::all(&SimClock::manual(now), &TimeZone::UTC);
        rented
            .into_iter()
            .map(|rented| (past(&rented, &rules(), now), rented))
            .map(|(keep, rented)| (rented, keep))
            .collect()
    }

    fn sum<'a>(spans: impl Iterator<Item = &'a Span>) -> Decimal {
        spans.map(Span::amount).sum::<Exact>().amount()
    }

    /// What was seen comes to what was charged.
    #[test]
    fn the_past_in_the_books_agrees_with_the_worlds_own_bill() {
        for (rented, keep) in pasts() {
            let shared = providers::sim::Shared::new(rented.world);
            let world = shared.lock();
            let now = NOW.parse().unwrap();
            let wanted = |item| match item {
                Item::Compute => Component::Compute,
                Item::Disk => Component::Disk,
                Item::Store => Component::Storage,
            };
            // Lambda tells neither a price of storage nor one of disks.
            let items: &[Item] =
                if rented.provider == "lambda" { &[Item::Compute] } else { &[Item::Compute, Item::Disk, Item::Store] };
            for item in items {
                let charged: Decimal = world
                    .charges(Timestamp::MIN, now)
                    .filter(|charge| charge.item == *item)
                    .map(|charge| charge.per_hour * charge.hours_in(Timestamp::UNIX_EPOCH, now))
                    .sum();
                let certain =
                    |span: &&Span| span.terms.component == wanted(*item) && span.terms.charge == Charge::Certain;
                let closed = sum(keep.entries.spans.iter().filter(certain));
                let lines = keep.entries.open.values().flatten().flat_map(|running| &running.lines);
                let open: Exact = lines
                    .filter(|line| line.terms.component == wanted(*item) && line.terms.charge == Charge::Certain)
                    .map(|line| Exact::over(line.rate, line.from, now))
                    .sum();
                let seen = closed + open.amount();
                let off = (seen - charged).abs();
                assert!(off <= charged / Decimal::from(500), "{} {item:?}: {seen} against {charged}", rented.account);
            }
        }
    }

    #[test]
    fn it_was_seen_but_for_one_gap() {
        let keeps: Vec<Keep> = pasts().into_iter().map(|(_, keep)| keep).collect();
        let spans = || keeps.iter().flat_map(|keep| &keep.entries.spans);
        let of =
            |evidence| sum(spans().filter(|span| span.terms.charge == Charge::Certain && span.evidence == evidence));
        let assumed = of(Evidence::Assumed);
        assert!(assumed > Decimal::ZERO && assumed < of(Evidence::Observed) / Decimal::from(100), "{assumed}");
        assert!(of(Evidence::Inferred) > Decimal::ZERO);
        assert_eq!(of(Evidence::Billed), Decimal::ZERO);
        let now: Timestamp = NOW.parse().unwrap();
        let outage = (now - OUTAGE.0, now - OUTAGE.1);
        let gaps = spans().filter(|span| span.terms.charge == Charge::Certain && span.evidence == Evidence::Assumed);
        for span in gaps {
            assert!((outage.0..=outage.1).contains(&span.from) && span.to <= outage.1, "{span:?}");
        }
    }

    /// The forgotten weekend, the stopped disk and the volume that nobody uses are in it, and projects as well.
    #[test]
    fn what_a_newcomer_lost_is_in_it() {
        let keeps: Vec<Keep> = pasts().into_iter().map(|(_, keep)| keep).collect();
        let of = |id: &str, wasted: bool| {
            let keep = keeps.iter().find(|keep| {
                keep.instances.iter().any(|known| known.identity.id.as_str() == id)
                    || keep.storage.iter().any(|known| known.identity.id.as_str() == id)
            });
            let entries = &keep.unwrap().entries;
            let closed =
                entries.spans.iter().filter(|span| span.identity.id.as_str() == id && span.terms.wasted == wasted);
            let now = NOW.parse().unwrap();
            let open = entries.open.iter().filter(|(identity, _)| identity.id.as_str() == id);
            let lines = open.filter_map(|(_, running)| running.as_ref()).flat_map(|running| &running.lines);
            let open: Exact = lines
                .filter(|line| line.terms.wasted == wasted)
                .map(|line| Exact::over(line.rate, line.from, now))
                .sum();
            sum(closed) + open.amount()
        };
        assert_eq!(of("n5sdinpaint001", false).round(), Decimal::from(237), "62 hours of two cards");
        assert!(of("p9oldexp000042", true) > Decimal::from(20), "{}", of("p9oldexp000042", true));
        assert!(of("nv9oldckpts", true) > Decimal::from(60), "{}", of("nv9oldckpts", true));
        let spans = keeps.iter().flat_map(|keep| &keep.entries.spans);
        let projects: std::collections::BTreeSet<_> = spans.filter_map(|span| span.terms.project.as_deref()).collect();
        assert_eq!(projects, ["art", "finetune", "pretrain", "客户甲"].into());
        assert!(keeps.iter().all(|keep| keep.entries.spans.iter().all(|span| span.rate.currency == Currency::USD)));
    }

    /// The same start, the same past.
    #[test]
    fn it_is_a_matter_of_the_start_alone() {
        let [one, two] = [pasts(), pasts()].map(|all| all.into_iter().map(|(_, keep)| keep).collect::<Vec<_>>());
        assert_eq!(one, two);
    }

    /// From the first second on the screen says what stands still, and for how long.
    #[test]
    fn a_day_of_use_is_in_it() {
        let now = NOW.parse().unwrap();
        let entries: Vec<UsageEntry> = pasts().iter().flat_map(|(rented, keep)| usage(rented, keep, now)).collect();
        let of = |id: &str| {
            let mut history = History::default();
            entries
                .iter()
                .filter(|entry| entry.identity.id.as_str() == id)
                .for_each(|entry| history.restore(&entry.slot));
            history
        };
        let judged = |id: &str, cards| {
            let gpus = providers::gpu::Gpus { model: "H100".to_owned(), count: cards, memory_gib: None };
            let history = of(id);
            let judged = Judged {
                history: &history,
                latest: None,
                runs: Some(true),
                rented: Some(&gpus),
                running_since: None,
                mismatch: None,
                partitioned: false,
                peak: None,
                before: None,
            };
            judge(&judged, &IdleRule::default(), now)
        };
        let idle = judged("q4notebook0007", 1);
        let time = now.duration_since(idle.since.unwrap()).as_mins();
        assert!(idle.verdict == Verdict::Idle && (215..=225).contains(&time), "{idle:?}, {time} min");
        assert_eq!(judged("t7sweep0000005", 8).verdict, Verdict::Underused);
        assert_eq!(judged("s1servellm0003", 1).verdict, Verdict::Waiting);
        assert_eq!(judged("k3llamaft08x01", 8).verdict, Verdict::Busy);
    }

    #[test]
    fn a_ledger_recalls_what_is_there_now() {
        let now = NOW.parse().unwrap();
        let mut ledger = Ledger::in_memory().unwrap();
        let rented = worlds::all(&SimClock::manual(now), &TimeZone::UTC);
        write(&mut ledger, &rented, &of_all(&rented, &rules(), now), now).unwrap();
        let (memory, notices) = ledger.recall(now).unwrap();
        assert_eq!((memory.instances.len(), memory.storage.len(), memory.accounts.len(), notices), (13, 3, 3, vec![]));
        assert!(memory.running.len() >= 13);
    }
}
