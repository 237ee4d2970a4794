//! The simulated account's bill: what each machine and store was charged, by the hour.
//!
//! The meter runs at every request. Between two requests it charges what the state after them costs; before
//! the first one it fills in what the world's own times prove.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;

use super::is_cpu;
use crate::sim::{Machine, World};

const HOUR: i64 = 3600;

/// USD.
#[derive(Clone, Copy, Debug)]
pub enum Amounts {
    Machine { gpu: Decimal, cpu: Decimal, disk: Decimal },
    Store(Decimal),
}

impl Amounts {
    fn add(&mut self, other: Amounts) {
        match (self, other) {
            (Amounts::Machine { gpu, cpu, disk }, Amounts::Machine { gpu: g, cpu: c, disk: d }) => {
                *gpu += g;
                *cpu += c;
                *disk += d;
            }
            (Amounts::Store(amount), Amounts::Store(more)) => *amount += more,
            _ => {}
        }
    }

    fn times(self, hours: Decimal) -> Amounts {
        match self {
            Amounts::Machine { gpu, cpu, disk } => {
                Amounts::Machine { gpu: gpu * hours, cpu: cpu * hours, disk: disk * hours }
            }
            Amounts::Store(amount) => Amounts::Store(amount * hours),
        }
    }

    fn is_zero(self) -> bool {
        match self {
            Amounts::Machine { gpu, cpu, disk } => (gpu + cpu + disk).is_zero(),
            Amounts::Store(amount) => amount.is_zero(),
        }
    }
}

/// One line of a bill.
#[derive(Clone, Debug)]
pub struct Record {
    pub start: Timestamp,
    pub end: Timestamp,
    pub id: String,
    pub amounts: Amounts,
}

/// What a bill was asked for, widened to whole buckets.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    pub start: Timestamp,
    pub end: Timestamp,
    bucket: i64,
}

impl Window {
    pub fn parse(query: &BTreeMap<String, String>, now: Timestamp) -> Result<Self, String> {
        let bucket = match query.get("bucketSize").map_or("day", String::as_str) {
            "hour" => HOUR,
            "day" => 24 * HOUR,
            other => return Err(format!("bucketSize: `{other}` is not simulated")),
        };
        let time = |name: &str| match query.get(name) {
            Some(text) => text.parse::<Timestamp>().map(Some).map_err(|_| format!("{name} is no time")),
            None => Ok(None),
        };
        let (start, end) = match query.get("lastN") {
            Some(count) => {
                let count: i64 = count.parse().map_err(|_| "lastN is no number".to_owned())?;
                (now - SignedDuration::from_secs((count - 1).max(0) * bucket), now + SignedDuration::from_secs(1))
            }
            None => {
                let month = SignedDuration::from_hours(30 * 24);
                (time("startTime")?.unwrap_or(now - month), time("endTime")?.unwrap_or(now))
            }
        };
        let end = floor(end + SignedDuration::from_secs(bucket - 1), bucket);
        Ok(Window { start: floor(start, bucket), end, bucket })
    }

    pub fn bucket_word(&self) -> &'static str {
        if self.bucket == HOUR { "hour" } else { "day" }
    }
}

/// Hour by hour, what each resource was charged.
#[derive(Debug)]
pub struct Meter {
    until: Timestamp,
    hours: BTreeMap<(Timestamp, String), Amounts>,
}

impl Meter {
    pub fn new(world: &World) -> Self {
        let now = world.now();
        let mut meter = Meter { until: now, hours: BTreeMap::new() };
        for machine in world.listed() {
            let now_charged = machine_rates(world, machine);
            if let Amounts::Machine { disk, .. } = now_charged {
                let began = machine.started_at.unwrap_or(now);
                let disk = Amounts::Machine { gpu: Decimal::ZERO, cpu: Decimal::ZERO, disk };
                meter.charge(&machine.id, machine.created_at, began, disk);
                meter.charge(&machine.id, began, now, now_charged);
            }
        }
        for store in &world.stores {
            meter.charge(&store.id, store.created_at, now, Amounts::Store(world.store_of(store)));
        }
        meter
    }

    /// Charges for the time since the last run.
    pub fn run(&mut self, world: &World) {
        let (from, to) = (self.until, world.now());
        for machine in &world.machines {
            self.charge(&machine.id, from, to, machine_rates(world, machine));
        }
        for store in &world.stores {
            self.charge(&store.id, from, to, Amounts::Store(world.store_of(store)));
        }
        self.until = self.until.max(to);
    }

    fn charge(&mut self, id: &str, from: Timestamp, to: Timestamp, per_hour: Amounts) {
        if per_hour.is_zero() {
            return;
        }
        let mut at = from;
        while at < to {
            let hour = floor(at, HOUR);
            let end = (hour + SignedDuration::from_secs(HOUR)).min(to);
            let part = Decimal::from(end.duration_since(at).as_millis() as i64) / Decimal::from(HOUR * 1000);
            let amounts = per_hour.times(part);
            self.hours.entry((hour, id.to_owned())).and_modify(|known| known.add(amounts)).or_insert(amounts);
            at = end;
        }
    }

    /// The bill of a window, oldest first.
    pub fn records(&self, window: Window) -> Vec<Record> {
        let mut buckets: BTreeMap<(Timestamp, &str), Amounts> = BTreeMap::new();
        for ((hour, id), amounts) in &self.hours {
            if *hour < window.start || *hour >= window.end {
                continue;
            }
            buckets
                .entry((floor(*hour, window.bucket), id.as_str()))
                .and_modify(|known| known.add(*amounts))
                .or_insert(*amounts);
        }
        let width = SignedDuration::from_secs(window.bucket);
        buckets
            .into_iter()
            .map(|((start, id), amounts)| Record { start, end: start + width, id: id.to_owned(), amounts })
            .collect()
    }
}

fn machine_rates(world: &World, machine: &Machine) -> Amounts {
    let compute = world.compute_of(machine);
    let (gpu, cpu) = if is_cpu(machine) { (Decimal::ZERO, compute) } else { (compute, Decimal::ZERO) };
    Amounts::Machine { gpu, cpu, disk: world.disk_of(machine) }
}

fn floor(at: Timestamp, bucket: i64) -> Timestamp {
    let second = at.as_second();
    Timestamp::from_second(second - second.rem_euclid(bucket)).expect("a bucket's begin is a time")
}
