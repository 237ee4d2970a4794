//! The world's bill in RunPod's buckets.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;

use super::is_cpu;
use crate::sim::{Item, World};

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

    fn of(item: Item, on_cpu: bool, amount: Decimal) -> Amounts {
        let zero = Decimal::ZERO;
        match item {
            Item::Compute if on_cpu => Amounts::Machine { gpu: zero, cpu: amount, disk: zero },
            Item::Compute => Amounts::Machine { gpu: amount, cpu: zero, disk: zero },
            Item::Disk => Amounts::Machine { gpu: zero, cpu: zero, disk: amount },
            Item::Store => Amounts::Store(amount),
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

/// The bill of a window, oldest first.
pub fn records(world: &World, window: Window) -> Vec<Record> {
    let width = SignedDuration::from_secs(window.bucket);
    let mut buckets: BTreeMap<(Timestamp, String), Amounts> = BTreeMap::new();
    for charge in world.charges(window.start, window.end) {
        let on_cpu = world.machines.iter().any(|machine| machine.id == charge.id && is_cpu(machine));
        let mut start = floor(charge.from.max(window.start), window.bucket);
        while start < charge.to.min(window.end) {
            let amount = charge.per_hour * charge.hours_in(start, start + width);
            let amounts = Amounts::of(charge.item, on_cpu, amount);
            buckets.entry((start, charge.id.clone())).and_modify(|known| known.add(amounts)).or_insert(amounts);
            start += width;
        }
    }
    buckets.into_iter().map(|((start, id), amounts)| Record { start, end: start + width, id, amounts }).collect()
}

fn floor(at: Timestamp, bucket: i64) -> Timestamp {
    let second = at.as_second();
    Timestamp::from_second(second - second.rem_euclid(bucket)).expect("a bucket's begin is a time")
}
