//! What a simulated world charged: each machine and store at its own rates, from the world's past on.
//!
//! The bill is exact. A simulator serves it in its provider's own form and rounds it there.

use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;

use super::{Life, Machine, Store, World};

/// What a charge is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    Compute,
    /// A machine's own disks.
    Disk,
    Store,
}

/// A time at one rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Charge {
    /// Of the machine or the store.
    pub id: String,
    pub item: Item,
    pub from: Timestamp,
    pub to: Timestamp,
    pub per_hour: Decimal,
}

impl Charge {
    /// The hours of it that lie in a window.
    pub fn hours_in(&self, from: Timestamp, to: Timestamp) -> Decimal {
        let within = self.to.min(to).duration_since(self.from.max(from));
        Decimal::from(within.max(SignedDuration::ZERO).as_millis() as i64) / Decimal::from(3_600_000)
    }
}

/// All charges, those of one thing and item in the order of their times.
#[derive(Clone, Debug, Default)]
pub struct Bill {
    charges: Vec<Charge>,
    /// The past was written down.
    opened: bool,
}

impl Bill {
    fn add(&mut self, id: &str, item: Item, from: Timestamp, to: Timestamp, per_hour: Decimal) {
        if from >= to || per_hour.is_zero() {
            return;
        }
        let last = self.charges.iter_mut().rev().find(|charge| charge.item == item && charge.id == id);
        match last {
            Some(charge) if charge.to == from && charge.per_hour == per_hour => charge.to = to,
            _ => self.charges.push(Charge { id: id.to_owned(), item, from, to, per_hour }),
        }
    }
}

impl World {
    /// What was charged in a window, by the bill: times the world's `billed_factor`, else exact.
    pub fn charges(&self, from: Timestamp, to: Timestamp) -> impl Iterator<Item = Charge> + '_ {
        let charges = self.bill.charges.iter().filter(move |charge| charge.from < to && charge.to > from);
        charges.map(|charge| Charge { per_hour: charge.per_hour * self.billed_factor, ..charge.clone() })
    }

    /// Writes down what was charged before the world began, once.
    pub(super) fn open_bill(&mut self) {
        if std::mem::replace(&mut self.bill.opened, true) {
            return;
        }
        let began = self.settled_at;
        let mut bill = std::mem::take(&mut self.bill);
        for machine in &self.machines {
            for (from, to, life) in machine.lives(began) {
                let then = Machine { life, ..machine.clone() };
                bill.add(&machine.id, Item::Compute, from, to, self.compute_of(&then));
                bill.add(&machine.id, Item::Disk, from, to, self.disk_of(&then));
            }
        }
        for store in &self.stores {
            bill.add(&store.id, Item::Store, store.created_at, began, self.store_of(store));
        }
        self.bill = bill;
    }

    /// Charges everything from the last time on at what it costs now.
    pub(super) fn charge_bill(&mut self, from: Timestamp, to: Timestamp) {
        let mut bill = std::mem::take(&mut self.bill);
        for machine in &self.machines {
            bill.add(&machine.id, Item::Compute, from, to, self.compute_of(machine));
            bill.add(&machine.id, Item::Disk, from, to, self.disk_of(machine));
        }
        for store in &self.stores {
            bill.add(&store.id, Item::Store, from, to, self.store_of(store));
        }
        self.bill = bill;
    }

    /// The moments before the world began at which a machine turned into something else or a store was made.
    pub fn past_changes(&self) -> Vec<Timestamp> {
        let began = self.settled_at;
        let lives = self.machines.iter().flat_map(|machine| machine.lives(began).map(|(from, _, _)| from));
        let ends = self.machines.iter().filter(|machine| machine.life == Life::Gone);
        let ends = ends.filter_map(|machine| machine.past.last().map(|(at, _)| *at));
        let stores = self.stores.iter().map(|store| store.created_at);
        let mut all: Vec<Timestamp> = lives.chain(ends).chain(stores).filter(|at| *at < began).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The world as it was before it began, as far as the pasts of its machines tell. Its clock stands still.
    pub fn as_of(&self, at: Timestamp) -> World {
        let then = |machine: &Machine| {
            let (from, _, life) = machine.lives(Timestamp::MAX).find(|(from, to, _)| *from <= at && at < *to)?;
            let up = matches!(life, Life::Running | Life::Stopping);
            Some(Machine { life, next: None, started_at: up.then_some(from), ..machine.clone() })
        };
        let stores: Vec<Store> = self.stores.iter().filter(|store| store.created_at <= at).cloned().collect();
        World {
            clock: super::SimClock::manual(at),
            machines: self.machines.iter().filter_map(then).collect(),
            stores,
            happenings: Vec::new(),
            settled_at: at,
            bill: Bill { opened: true, ..Bill::default() },
            ..self.clone()
        }
    }
}

impl Machine {
    /// This machine with a past: from each moment on it was what stands beside it, the last of which it is now.
    /// One that is gone stands in the bill alone.
    pub fn lived(self, past: &[(Timestamp, Life)]) -> Self {
        let Some((since, life)) = past.last().copied() else { return self };
        let created_at = past.first().map_or(self.created_at, |(at, _)| *at);
        let started_at = (life == Life::Running).then_some(since);
        Machine { life, created_at, started_at, past: past.to_vec(), ..self }
    }

    /// What it was and when, up to `until`. Without a past, what its own times prove: it ran since it was
    /// started, and stood still before.
    fn lives(&self, until: Timestamp) -> impl Iterator<Item = (Timestamp, Timestamp, Life)> + '_ {
        let proven = match self.started_at {
            Some(started) if started > self.created_at => {
                vec![(self.created_at, Life::Stopped), (started, self.life)]
            }
            _ => vec![(self.created_at, self.life)],
        };
        let past = if self.past.is_empty() { proven } else { self.past.clone() };
        (0..past.len()).filter_map(move |n| {
            let (from, life) = past[n];
            let to = past.get(n + 1).map_or(until, |(at, _)| *at);
            (from < to && life != Life::Gone).then_some((from, to, life))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Shared, SimClock};
    use super::*;

    fn at(text: &str) -> Timestamp {
        format!("2026-11-{text}:00Z").parse().unwrap()
    }

    /// A machine that worked for a day, stood for two, and was released; one that has worked since noon.
    fn world() -> World {
        let mut world = World::new(SimClock::manual(at("30T18:00")), "k");
        let past = [(at("02T00:00"), Life::Running), (at("03T00:00"), Life::Stopped), (at("05T00:00"), Life::Gone)];
        world.machines = vec![
            Machine::new("old", "", at("30T18:00")).lived(&past),
            Machine::new("new", "", at("30T18:00")).lived(&[(at("30T12:00"), Life::Running)]),
        ];
        world
    }

    fn hours(world: &World, id: &str, item: Item, from: &str, to: &str) -> Decimal {
        let (from, to) = (at(from), at(to));
        world
            .charges(from, to)
            .filter(|charge| charge.id == id && charge.item == item)
            .map(|c| c.hours_in(from, to))
            .sum()
    }

    #[test]
    fn a_past_is_in_the_bill_and_goes_on_with_the_clock() {
        let clock = SimClock::manual(at("30T18:00"));
        let shared = Shared::new(World { clock: clock.clone(), ..world() });
        clock.advance(SignedDuration::from_hours(2));
        let world = shared.lock();
        assert_eq!(hours(&world, "old", Item::Compute, "01T00:00", "30T00:00"), Decimal::from(24));
        assert_eq!(hours(&world, "old", Item::Disk, "01T00:00", "30T00:00"), Decimal::from(72));
        assert_eq!(hours(&world, "old", Item::Compute, "02T20:00", "02T22:00"), Decimal::from(2));
        assert_eq!(hours(&world, "new", Item::Compute, "30T00:00", "30T23:00"), Decimal::from(8));
        assert_eq!(world.listed().count(), 1, "what is gone is in the bill alone");
        // The stopped disk has its own price.
        let prices: Vec<Decimal> = world
            .charges(at("01T00:00"), at("29T00:00"))
            .filter(|charge| charge.item == Item::Disk)
            .map(|charge| charge.per_hour * world.hours_in_month / Decimal::from(40))
            .collect();
        assert_eq!(
            prices.iter().map(|p| p.round_dp(6)).collect::<Vec<_>>(),
            [Decimal::new(10, 2), Decimal::new(20, 2)]
        );
    }

    #[test]
    fn the_bill_may_drift_from_the_rates() {
        let world = Shared::new(World { billed_factor: Decimal::new(102, 2), ..world() });
        let world = world.lock();
        let charge = world.charges(at("02T00:00"), at("02T01:00")).find(|charge| charge.item == Item::Compute).unwrap();
        assert_eq!(charge.per_hour, world.machines[0].compute_per_hour * Decimal::new(102, 2));
    }

    #[test]
    fn a_world_can_be_seen_as_it_was() {
        let world = world();
        let lives = |text| world.as_of(at(text)).listed().map(|machine| machine.life).collect::<Vec<_>>();
        assert_eq!(lives("01T00:00"), []);
        assert_eq!(lives("02T10:00"), [Life::Running]);
        assert_eq!(lives("04T00:00"), [Life::Stopped]);
        assert_eq!(lives("29T00:00"), []);
        let changes = world.past_changes();
        assert_eq!(changes, [at("02T00:00"), at("03T00:00"), at("05T00:00"), at("30T12:00")]);
    }
}
