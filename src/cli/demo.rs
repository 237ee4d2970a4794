//! `rentop demo`: the screen over simulated providers. Reads no config, key or keyring, keeps its state in
//! a temporary folder, and sends nothing beyond this machine.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use providers::sim::{Happening, Life, Load, Machine, Shared, SimClock, Simulator, Store, World};
use rust_decimal::Decimal;

use super::setup::{self, Kind, Setup};
use super::{Common, Exit, Stop, screen};
use crate::config::{AccountConfig, Config, KeySource, Language, Places};
use crate::rules::settings::{Matcher, ProjectRule, Rules};
use crate::runtime::clock;

/// The key of every simulated account. It opens nothing else.
const KEY: &str = "demo-key-of-a-simulated-account";

pub fn run(common: &Common) -> Result<Exit, Stop> {
    screen::need_terminal()?;
    let folder = tempfile::Builder::new().prefix("rentop-demo-").tempdir().map_err(Stop::failed)?;
    let language = Language::of_the_user().map_err(|error| Stop::usage(error.to_string()))?;
    let places =
        Places { config_file: folder.path().join("config.toml"), state_dir: folder.path().join("state") };
    places.prepare_state_dir().map_err(|error| Stop::usage(error.to_string()))?;
    let key_file = folder.path().join("key");
    write_key(&key_file).map_err(Stop::failed)?;

    let servers = setup::runtime()?;
    let simulators = servers.block_on(simulators()).map_err(Stop::failed)?;
    let accounts = simulators
        .iter()
        .map(|(provider, account, simulator)| AccountConfig {
            provider: providers::find(provider).expect("a provider of the registry"),
            name: (*account).into(),
            key: KeySource::File(key_file.clone()),
            base_url: Some(simulator.url()),
            read_only: false,
            facts: BTreeMap::new(),
        })
        .collect();
    let config = Config { accounts, rules: rules(), ..Config::default() };
    let setup = Setup { config, places, language, read_only: common.read_only, notices: Vec::new() };
    let exit = screen::show(&setup, Kind::Demo, &|_, _| Err("the demo has accounts of its own".to_owned()));
    drop(simulators);
    setup::end(servers);
    exit
}

fn write_key(file: &std::path::Path) -> std::io::Result<()> {
    use std::io::Write;
    let mut options = std::fs::OpenOptions::new();
    crate::config::open_private(file, options.write(true).create_new(true))?.write_all(KEY.as_bytes())
}

fn rules() -> Rules {
    let project = |name: &str, glob: &str| ProjectRule { name: name.to_owned(), matcher: Matcher::of_name(glob) };
    Rules {
        projects: vec![
            project("finetune", "llama-*"),
            project("art", "sd-*"),
            project("art", "comfy*"),
            project("客户甲", "eval-*"),
        ],
        protect: vec![Matcher::of_name("serve-*")],
        ..Rules::default()
    }
}

async fn simulators() -> std::io::Result<Vec<(&'static str, &'static str, Simulator)>> {
    let clock = SimClock::running(clock::now(), 1.0);
    let mut simulators = Vec::new();
    let runpod = Shared::new(runpod(clock.clone()));
    let routes = providers::runpod::simulator::routes(runpod.clone());
    simulators.push(("runpod", "team", Simulator::serve(routes, runpod).await?));
    let vast = Shared::new(vast(clock.clone()));
    let routes = providers::vast::simulator::routes(vast.clone());
    simulators.push(("vast", "me", Simulator::serve(routes, vast).await?));
    let lambda = Shared::new(lambda(clock));
    let routes = providers::lambda::simulator::routes(lambda.clone());
    simulators.push(("lambda", "lab", Simulator::serve(routes, lambda).await?));
    Ok(simulators)
}

fn ago(now: Timestamp, hours: i64) -> Timestamp {
    now - SignedDuration::from_hours(hours)
}

/// A machine that has been up for so many hours.
fn up(id: &str, name: &str, hours: i64, now: Timestamp) -> Machine {
    Machine { created_at: ago(now, hours), started_at: Some(ago(now, hours)), ..Machine::new(id, name, now) }
}

fn runpod(clock: SimClock) -> World {
    let now = clock.now();
    let h100 = "NVIDIA H100 80GB HBM3";
    let mut world = World::new(clock, KEY);
    world.tenant = "runpod-demo".to_owned();
    world.balance = Decimal::new(91_420, 2);
    world.stores = vec![
        Store {
            id: "nv7datasets".to_owned(),
            name: "datasets".to_owned(),
            size_gb: 200,
            region: "US-KS-2".to_owned(),
            created_at: ago(now, 61 * 24),
            gone: false,
        },
        Store {
            id: "nv9oldckpts".to_owned(),
            name: "old-checkpoints".to_owned(),
            size_gb: 500,
            region: "US-TX-3".to_owned(),
            created_at: ago(now, 90 * 24),
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
            life: Life::Stopped,
            started_at: None,
            region: "US-KS-2".to_owned(),
            ..up("p9oldexp000042", "old-exp", 216, now)
        },
        Machine {
            gpu: "NVIDIA GeForce RTX 4090".to_owned(),
            compute_per_hour: Decimal::new(69, 2),
            disk_gb: 0,
            scratch_gb: 60,
            load: Load::Waves,
            ..up("q4notebook0007", "notebook", 2, now)
        },
        Machine {
            gpu: "NVIDIA L40S".to_owned(),
            gpu_memory_gib: 48,
            compute_per_hour: Decimal::new(86, 2),
            disk_gb: 40,
            locked: true,
            mounts: vec!["nv7datasets".to_owned()],
            region: "US-KS-2".to_owned(),
            ..up("s1servellm0003", "serve-llm", 410, now)
        },
    ];
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
            load: Load::Idle,
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
            life: Life::Stopped,
            started_at: None,
            gpu_taken: true,
            region: "Czechia, CZ".to_owned(),
            ..up("31000013", "旧实验", 312, now)
        },
        Machine {
            gpu: "RTX 5090".to_owned(),
            gpu_memory_gib: 32,
            compute_per_hour: Decimal::new(58, 2),
            disk_gb: 50,
            load: Load::Waves,
            region: "Texas, US".to_owned(),
            ..up("31000014", "comfyui", 11, now)
        },
        Machine {
            compute_per_hour: Decimal::new(39, 2),
            disk_gb: 25,
            life: Life::Starting,
            next: Some((now + SignedDuration::from_secs(25), Life::Running)),
            started_at: None,
            region: "Poland, PL".to_owned(),
            ..up("31000015", "", 0, now)
        },
    ];
    world.happenings = vec![Happening {
        at: now + SignedDuration::from_secs(50),
        machine: "31000012".to_owned(),
        life: Life::Outbid,
    }];
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
        created_at: ago(now, 33 * 24),
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
            started_at: None,
            region: "us-west-1".to_owned(),
            ..up("c0ffee00000000000000000000000002", "infer-a10", 0, now)
        },
    ];
    world
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_is_about_twelve_machines_at_three_providers() {
        let clock = SimClock::manual("2026-11-30T09:00:00Z".parse().unwrap());
        let worlds = [runpod(clock.clone()), vast(clock.clone()), lambda(clock)];
        let machines: usize = worlds.iter().map(|world| world.machines.len()).sum();
        assert_eq!(machines, 12);
    }
}
