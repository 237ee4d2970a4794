//! What is rented in the demo: three accounts with a past of three months, and what a newcomer lost in it. All times
//! are counted from the start of the demo, but for the weekend, which is one.

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};
use providers::provider::Poll;
use providers::sim::{Happening, Life, Load, Machine, SimClock, Store, World};
use rust_decimal::Decimal;

use crate::rules::spend::{date_of, start_of};

/// The key of every simulated account. It opens nothing else.
pub const KEY: &str = "demo-key-of-a-simulated-account";
/// A machine that has done nothing for hours.
pub const NOTEBOOK: &str = "q4notebook0007";
/// Hours.
const DAY: i64 = 24;
/// Who starts while somebody looks on was rented so long before: nobody is told of it as of a newcomer.
const STARTS: SignedDuration = SignedDuration::from_mins(2);

/// One account.
pub struct Rented {
    pub provider: &'static str,
    pub account: &'static str,
    pub world: World,
    /// What a complete poll of it says.
    pub poll: fn(&World) -> Poll,
}

/// All accounts; the weekend is one of the zone.
pub fn all(clock: &SimClock, zone: &TimeZone) -> Vec<Rented> {
    vec![
        Rented {
            provider: "runpod",
            account: "team",
            world: runpod(clock.clone(), zone),
            poll: providers::runpod::simulator::poll,
        },
        Rented { provider: "vast", account: "me", world: vast(clock.clone()), poll: providers::vast::simulator::poll },
        Rented {
            provider: "lambda",
            account: "lab",
            world: lambda(clock.clone()),
            poll: providers::lambda::simulator::poll,
        },
    ]
}

fn ago(now: Timestamp, hours: i64) -> Timestamp {
    now - SignedDuration::from_hours(hours)
}

/// A machine that has been up for so many hours.
fn up(id: &str, name: &str, hours: i64, now: Timestamp) -> Machine {
    Machine { created_at: ago(now, hours), started_at: Some(ago(now, hours)), ..Machine::new(id, name, now) }
}

/// A machine that ran for so many hours, from so many hours ago on, and was released.
fn ended(machine: Machine, since: i64, hours: i64, now: Timestamp) -> Machine {
    machine.lived(&[(ago(now, since), Life::Running), (ago(now, since - hours), Life::Gone)])
}

/// The second weekend of last month, from Friday evening to Monday morning.
fn weekend(now: Timestamp, zone: &TimeZone) -> (Timestamp, Timestamp) {
    let month = date_of(now, zone).first_of_month().saturating_sub(1.day());
    let saturday = month.nth_weekday_of_month(2, Weekday::Saturday).expect("each month has a second Saturday");
    let at = |date: Date, minutes| start_of(date, zone) + SignedDuration::from_mins(minutes);
    (at(saturday.saturating_sub(1.day()), 18 * 60 + 40), at(saturday.saturating_add(2.days()), 9 * 60 + 5))
}

fn runpod(clock: SimClock, zone: &TimeZone) -> World {
    let now = clock.now();
    let h100 = "NVIDIA H100 80GB HBM3";
    let mut world = World::new(clock, KEY);
    world.tenant = "runpod-demo".to_owned();
    world.hours_in_month = Decimal::from(730);
    world.scratch_running_month = Decimal::new(10, 2);
    world.balance = Decimal::new(91_420, 2);
    world.stores = vec![
        Store {
            id: "nv7datasets".to_owned(),
            name: "datasets".to_owned(),
            size_gb: 200,
            region: "US-KS-2".to_owned(),
            created_at: ago(now, 61 * DAY),
            gone: false,
        },
        Store {
            id: "nv9oldckpts".to_owned(),
            name: "old-checkpoints".to_owned(),
            size_gb: 500,
            region: "US-TX-3".to_owned(),
            created_at: ago(now, 89 * DAY),
            gone: false,
        },
    ];
    world.machines = vec![
        Machine {
            gpu: h100.to_owned(),
            gpu_count: 8,
            gpu_memory_gib: 80,
            compute_per_hour: Decimal::new(2152, 2),
            disk_gb: 200,
            mounts: Vec::new(),
            region: "US-KS-2".to_owned(),
            ..up("k3llamaft08x01", "llama-ft", 19, now)
        },
        Machine {
            gpu: "NVIDIA A100-SXM4-80GB".to_owned(),
            gpu_memory_gib: 80,
            compute_per_hour: Decimal::new(189, 2),
            disk_gb: 100,
            load: Load::Until(now + SignedDuration::from_secs(75)),
            region: "US-TX-3".to_owned(),
            ..up("m2evalsuite001", "eval-批量", 7, now)
        },
        Machine {
            gpu: "NVIDIA A100 80GB PCIe".to_owned(),
            gpu_memory_gib: 80,
            compute_per_hour: Decimal::new(139, 2),
            disk_gb: 100,
            region: "US-KS-2".to_owned(),
            // Stopped for weeks, and its disk costs twice as much since.
            ..up("p9oldexp000042", "old-exp", 0, now)
                .lived(&[(ago(now, 41 * DAY), Life::Running), (ago(now, 38 * DAY), Life::Stopped)])
        },
        Machine {
            gpu: "NVIDIA GeForce RTX 4090".to_owned(),
            compute_per_hour: Decimal::new(69, 2),
            disk_gb: 0,
            scratch_gb: 60,
            load: Load::Until(now - SignedDuration::from_mins(220)),
            ..up(NOTEBOOK, "notebook", 27, now)
        },
        Machine {
            gpu: "NVIDIA L40S".to_owned(),
            gpu_memory_gib: 48,
            compute_per_hour: Decimal::new(86, 2),
            disk_gb: 0,
            locked: true,
            load: Load::Waits,
            mounts: vec!["nv7datasets".to_owned()],
            region: "US-KS-2".to_owned(),
            ..up("s1servellm0003", "serve-llm", 410, now)
        },
    ];
    world.machines.push(Machine {
        gpu: "NVIDIA A40".to_owned(),
        gpu_count: 8,
        gpu_memory_gib: 48,
        compute_per_hour: Decimal::new(352, 2),
        disk_gb: 100,
        load: Load::Few(1),
        region: "US-KS-2".to_owned(),
        ..up("t7sweep0000005", "llama-sweep", 16, now)
    });
    let new = |gpu: &str, gpu_count, cents, id: &str, name: &str| Machine {
        gpu: gpu.to_owned(),
        gpu_count,
        gpu_memory_gib: 80,
        compute_per_hour: Decimal::new(cents, 2),
        disk_gb: 100,
        region: "US-KS-2".to_owned(),
        ..Machine::new(id, name, now)
    };
    let a100 = "NVIDIA A100-SXM4-80GB";
    // The machine that made the checkpoints went, its volume stayed.
    let made_checkpoints = Machine {
        disk_gb: 0,
        mounts: vec!["nv9oldckpts".to_owned()],
        region: "US-TX-3".to_owned(),
        ..new(h100, 4, 1076, "j1llamapre0001", "llama-pre")
    };
    world.machines.push(ended(made_checkpoints, 89 * DAY, 27 * DAY, now));
    let runs = [(80, 31), (52, 44), (24, 27)];
    for (n, (days, hours)) in runs.into_iter().enumerate() {
        let run = new(h100, 8, 2152, &format!("k3llamaft08r{n:02}"), "llama-ft");
        world.machines.push(ended(Machine { disk_gb: 200, ..run }, days * DAY, hours, now));
    }
    for n in 0..9 {
        let run = new(a100, 1, 189, &format!("m2evalsuite1{n:02}"), "eval-批量");
        world.machines.push(ended(run, (81 - 9 * n) * DAY + 5 * n, 5 + n % 3, now));
    }
    // Somebody went home and left it on.
    let (friday, monday) = weekend(now, zone);
    let forgotten = Machine { load: Load::Idle, ..new(a100, 2, 378, "n5sdinpaint001", "sd-inpaint") };
    world.machines.push(forgotten.lived(&[(friday, Life::Running), (monday, Life::Gone)]));
    world
}

fn vast(clock: SimClock) -> World {
    let now = clock.now();
    let mut world = World::new(clock, KEY);
    world.tenant = "20007".to_owned();
    world.balance = Decimal::new(3_710, 2);
    world.machines = vec![
        Machine {
            spot: true,
            compute_per_hour: Decimal::new(41, 2),
            disk_gb: 30,
            load: Load::Waves,
            region: "Sweden, SE".to_owned(),
            ..up("31000011", "sd-lora", 27, now)
        },
        Machine {
            gpu_count: 2,
            spot: true,
            compute_per_hour: Decimal::new(72, 2),
            disk_gb: 60,
            region: "Taiwan, TW".to_owned(),
            ..up("31000012", "sd-sweep", 5, now)
        },
        Machine {
            gpu: "RTX 3090".to_owned(),
            compute_per_hour: Decimal::new(22, 2),
            disk_gb: 80,
            gpu_taken: true,
            region: "Czechia, CZ".to_owned(),
            ..up("31000013", "旧实验", 0, now)
                .lived(&[(ago(now, 30 * DAY), Life::Running), (ago(now, 27 * DAY), Life::Stopped)])
        },
        Machine {
            gpu: "RTX 5090".to_owned(),
            gpu_memory_gib: 32,
            compute_per_hour: Decimal::new(58, 2),
            disk_gb: 50,
            load: Load::Waves,
            asked_per_hour: Some(Decimal::new(66, 2)),
            region: "Texas, US".to_owned(),
            ..up("31000014", "comfyui", 11, now)
        },
        Machine {
            compute_per_hour: Decimal::new(39, 2),
            disk_gb: 25,
            life: Life::Starting,
            next: Some((now + SignedDuration::from_secs(25), Life::Running)),
            created_at: now - STARTS,
            started_at: None,
            region: "Poland, PL".to_owned(),
            ..Machine::new("31000015", "", now)
        },
    ];
    let new = |gpu: &str, gpu_memory_gib, cents, id: &str, name: &str| Machine {
        gpu: gpu.to_owned(),
        gpu_memory_gib,
        compute_per_hour: Decimal::new(cents, 2),
        disk_gb: 50,
        region: "Sweden, SE".to_owned(),
        ..Machine::new(id, name, now)
    };
    // Twice outbid on its way.
    let sweep = Machine { spot: true, ..new("RTX 4090", 24, 38, "31000001", "sd-sweep") };
    world.machines.push(sweep.lived(&[
        (ago(now, 36 * DAY), Life::Running),
        (ago(now, 35 * DAY), Life::Outbid),
        (ago(now, 34 * DAY + 9), Life::Running),
        (ago(now, 33 * DAY), Life::Outbid),
        (ago(now, 33 * DAY - 4), Life::Running),
        (ago(now, 31 * DAY), Life::Gone),
    ]));
    for (n, (days, hours)) in [(84, 60), (66, 52), (47, 75), (14, 72), (6, 30)].into_iter().enumerate() {
        let run = new("RTX 5090", 32, 58, &format!("310000{:02}", 2 + n), "comfyui");
        world.machines.push(ended(run, days * DAY, hours, now));
    }
    let lora = Machine { spot: true, ..new("RTX 4090", 24, 41, "31000008", "sd-lora") };
    world.machines.push(ended(lora, 58 * DAY, 96, now));
    world.happenings =
        vec![Happening { at: now + SignedDuration::from_secs(50), machine: "31000012".to_owned(), life: Life::Outbid }];
    world
}

fn lambda(clock: SimClock) -> World {
    let now = clock.now();
    let mut world = World::new(clock, KEY);
    world.tenant = "lambda-demo".to_owned();
    world.transition = SignedDuration::from_secs(9);
    world.stores = vec![Store {
        id: "55555555555555555555555555555555".to_owned(),
        name: "ckpt".to_owned(),
        size_gb: 340,
        region: "us-south-1".to_owned(),
        created_at: ago(now, 33 * DAY),
        gone: false,
    }];
    world.machines = vec![
        Machine {
            gpu: "gpu_1x_gh200".to_owned(),
            gpu_memory_gib: 96,
            compute_per_hour: Decimal::new(149, 2),
            load: Load::Untold,
            mounts: vec!["55555555555555555555555555555555".to_owned()],
            region: "us-east-3".to_owned(),
            ..up("c0ffee00000000000000000000000001", "pretrain-gh", 44, now)
        },
        Machine {
            gpu: "gpu_1x_a10".to_owned(),
            compute_per_hour: Decimal::new(129, 2),
            load: Load::Untold,
            life: Life::Starting,
            next: Some((now + SignedDuration::from_secs(40), Life::Running)),
            created_at: now - STARTS,
            started_at: None,
            region: "us-west-1".to_owned(),
            ..Machine::new("c0ffee00000000000000000000000002", "infer-a10", now)
        },
    ];
    let new = |gpu: &str, gpu_count, cents, id: &str, name: &str| Machine {
        gpu: gpu.to_owned(),
        gpu_count,
        compute_per_hour: Decimal::new(cents, 2),
        load: Load::Untold,
        region: "us-south-1".to_owned(),
        ..Machine::new(&format!("c0ffee000000000000000000000001{id}"), name, now)
    };
    world.machines.push(ended(new("gpu_8x_h100_sxm5", 8, 3192, "01", "pretrain-h100"), 70 * DAY, 58, now));
    world.machines.push(ended(new("gpu_8x_h100_sxm5", 8, 3192, "02", "pretrain-h100"), 32 * DAY, 26, now));
    world.machines.push(ended(new("gpu_1x_a10", 1, 129, "03", "infer-a10"), 64 * DAY, 30 * DAY, now));
    world.machines.push(ended(new("gpu_1x_a10", 1, 129, "04", "infer-a10"), 20 * DAY, 17 * DAY, now));
    world
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_is_about_a_dozen_machines_at_three_providers() {
        let clock = SimClock::manual("2026-11-30T09:00:00Z".parse().unwrap());
        let rented = all(&clock, &TimeZone::UTC);
        assert_eq!(rented.iter().map(|account| account.world.listed().count()).sum::<usize>(), 13);
    }

    #[test]
    fn nothing_that_is_there_at_the_start_is_a_newcomer() {
        let now = "2026-11-30T09:00:00Z".parse().unwrap();
        for Rented { account, world, .. } in all(&SimClock::manual(now), &TimeZone::UTC) {
            for machine in world.listed() {
                assert!(machine.created_at < now, "{account} {}", machine.id);
            }
        }
    }

    #[test]
    fn the_weekend_is_the_second_one_of_last_month() {
        let zone = TimeZone::get("Asia/Shanghai").unwrap();
        for (now, friday, monday) in [
            ("2026-11-30T09:00:00Z", "2026-10-09T10:40:00Z", "2026-10-12T01:05:00Z"),
            ("2026-11-30T17:00:00Z", "2026-11-13T10:40:00Z", "2026-11-16T01:05:00Z"),
        ] {
            let expected = (friday.parse().unwrap(), monday.parse().unwrap());
            assert_eq!(weekend(now.parse().unwrap(), &zone), expected, "{now}");
        }
    }

    #[test]
    fn no_two_machines_have_one_id() {
        let clock = SimClock::manual("2026-11-30T09:00:00Z".parse().unwrap());
        for Rented { account, world, .. } in all(&clock, &TimeZone::UTC) {
            let ids: std::collections::BTreeSet<_> = world.machines.iter().map(|machine| &machine.id).collect();
            assert_eq!(ids.len(), world.machines.len(), "{account}");
        }
    }
}
