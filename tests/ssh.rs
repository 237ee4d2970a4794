//! Machines that no API lists, end to end: the real binary over a stand-in for `ssh` that runs the commands here.

#![cfg(unix)]

mod support;

use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;
use serde_json::Value;
use support::Lab;
use support::daemon::Watch;
use support::stage::wait_until;

/// A machine is a folder of its name below `machines`: without it, or with a file `off` in it, nobody answers.
const SSH: &str = r#"#!/bin/sh
while [ "$1" != -- ]; do shift; done
machine="$HOME/machines/$2"
echo "$2" >> "$HOME/connections"
if [ ! -d "$machine" ] || [ -e "$machine/off" ]; then
  echo "ssh: connect to host $2 port 22: Connection refused" >&2
  exit 255
fi
cd "$machine" || exit 255
set -m
sh -c "$3" &
while kill -0 $! 2>/dev/null; do
  if [ -e off ]; then
    # Going down ends every connection, that of the stop itself too.
    kill -- -$! 2>/dev/null
    echo "Connection to $2 closed by remote host." >&2
    exit 255
  fi
  sleep 0.05
done
wait $!
"#;

const OWN: &str = r#"
[[account]]
provider = "ssh"
name = "own"
[[account.machine]]
name = "box"
host = "gpu-box"
price = "1.98 CNY"
price_stopped = "0.02 CNY"
gpus = "2x RTX 4090"
stop = "touch off"
release_after_off = "15d"
[[account.machine]]
name = "silent"
host = "nobody"
price = "0.5 CNY"
stop = "touch off"
[[project]]
name = "art"
match = { name = "bo*" }
"#;

fn lab() -> Lab {
    let mut lab = Lab::new(vec![]);
    lab.config.push_str(OWN);
    lab.write_config();
    lab.accounts.push(["ssh", "own"]);
    std::fs::create_dir_all(lab.home.path().join("machines/gpu-box")).unwrap();
    stand_in(&lab);
    lab
}

fn stand_in(lab: &Lab) {
    let folder = lab.home.path().join("bin");
    std::fs::create_dir_all(&folder).unwrap();
    let ssh = folder.join("ssh");
    std::fs::write(&ssh, SSH).unwrap();
    std::fs::set_permissions(&ssh, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// How often the stand-in was called.
fn connections(lab: &Lab) -> usize {
    std::fs::read_to_string(lab.home.path().join("connections")).unwrap_or_default().lines().count()
}

fn ls(lab: &Lab) -> Value {
    lab.run(&["ls", "--json"]).ends_with(0).json()
}

fn instance<'a>(listing: &'a Value, name: &str) -> &'a Value {
    let mut instances = listing["instances"].as_array().unwrap().iter();
    instances.find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name}: {listing:#}"))
}

fn phase(lab: &Lab, name: &str) -> String {
    instance(&ls(lab), name)["phase"].as_str().unwrap().to_owned()
}

fn amount(sums: &Value) -> Option<&str> {
    assert!(sums.as_array().unwrap().len() < 2, "{sums}");
    sums[0]["amount"].as_str()
}

/// Off by our own stop, or silent for no known reason: only the first is stopped, and it stays so for whoever looks
/// later.
#[test]
fn a_machine_without_an_api_runs_and_is_stopped() {
    let lab = lab();
    // A command opens no ssh: nothing is learnt, and nothing that may cost is left out.
    let listing = ls(&lab);
    let own = instance(&listing, "box");
    assert_eq!((&own["phase"], &own["provider"], &own["project"]), (&"unknown".into(), &"ssh".into(), &"art".into()));
    assert_eq!(own["ssh"], serde_json::json!({ "user": null, "host": "gpu-box", "port": null }));
    assert_eq!(listing["accounts"][0]["freshness"], "never");
    assert_eq!((amount(&listing["totals"]["burn"]), amount(&listing["totals"]["burn_upper"])), (None, Some("2.48")));
    assert_eq!(connections(&lab), 0);

    let mut watch = Watch::collecting(&lab);
    wait_until("the box to be seen running", || phase(&lab, "box") == "running");
    let listing = ls(&lab);
    let silent = instance(&listing, "silent");
    assert_eq!((&silent["phase"], &silent["rate"]["total"]), (&"unreachable".into(), &"0.5".into()));
    assert_eq!(
        (amount(&listing["totals"]["burn"]), amount(&listing["totals"]["burn_upper"])),
        (Some("1.98"), Some("2.48"))
    );
    assert_eq!(listing["accounts"][0]["freshness"], "fresh");

    let refused = lab.run(&["stop", "silent", "--yes"]).ends_with(1);
    let told = refused.stdout + &refused.stderr;
    assert!(told.contains("Connection refused"), "{told}");
    lab.run(&["release", "box", "--yes", "--lose-data"]).ends_with(4);
    lab.run(&["stop", "box", "--yes", "--read-only"]).ends_with(4);
    assert!(!lab.home.path().join("machines/gpu-box/off").exists());
    lab.run(&["stop", "box", "--yes"]).ends_with(0);
    assert!(lab.home.path().join("machines/gpu-box/off").exists());
    wait_until("the collector to know", || phase(&lab, "box") == "stopped");
    watch.end(Signal::TERM);

    // Nobody collects any more: what is known stays known.
    let listing = ls(&lab);
    let own = instance(&listing, "box");
    assert_eq!((&own["phase"], &own["rate"]["total"]), (&"stopped".into(), &"0.02".into()));
    assert_eq!(own["next"]["what"], "provider_end");
    let before = connections(&lab);
    let _watch = Watch::collecting(&lab);
    assert!(connections(&lab) > before);
    assert_eq!((phase(&lab, "box"), phase(&lab, "silent")), ("stopped".to_owned(), "unreachable".to_owned()));
}

/// An account that nobody allowed it for is looked into on `--ssh` alone, and never where the config says never.
#[test]
fn top_asks_before_it_looks_into_an_accounts_machines() {
    let started = jiff::Timestamp::now() - jiff::SignedDuration::from_mins(10);
    let mut runpod = support::world(1.0);
    runpod.machines = vec![providers::sim::Machine::new("podtrainer0001", "trainer", started)];
    let account =
        support::Account { provider: "runpod", name: "team", world: providers::sim::Shared::new(runpod), extra: "" };
    let mut lab = Lab::new(vec![account]);
    stand_in(&lab);
    let told = lab.run(&["top", "--json"]).ends_with(0);
    assert!(told.stderr.contains("team") && told.stderr.contains("--ssh"), "{}", told.stderr);
    assert_eq!(told.json()["gpus"][0]["source"], "provider");
    assert_eq!(connections(&lab), 0);
    // Nobody answers there, which is no reason to leave out what the provider tells.
    let told = lab.run(&["top", "--ssh"]).ends_with(3);
    assert_eq!(connections(&lab), 1);
    assert!(told.stderr.starts_with("rentop: team/trainer: ssh: ") && told.stdout.contains(" provider "), "{told:?}");
    lab.config.push_str("ssh = \"never\"\n");
    lab.write_config();
    let told = lab.run(&["top", "--ssh"]).ends_with(0);
    assert_eq!((told.stderr.as_str(), connections(&lab)), ("", 1));
}

/// `top` looks into the machines itself, once, and leaves.
#[test]
fn top_shows_every_card_and_opens_ssh_only_where_it_may() {
    let lab = lab();
    let told = lab.run(&["top", "--json"]).ends_with(3);
    assert_eq!(told.stderr, "rentop: own/silent: ssh: nothing listens at its port yet\n");
    let top = told.json();
    assert_eq!(top["schema"], "rentop.top/1");
    let cards: Vec<_> = top["gpus"].as_array().unwrap().iter().filter(|card| card["name"] == "box").collect();
    assert_eq!(cards.len(), 2, "{top:#}");
    assert_eq!((&cards[0]["model"], &cards[1]["index"]), (&"RTX 4090".into(), &1.into()));
    assert!(connections(&lab) >= 2);
    // What one look told is what a list of it tells afterwards, of each machine.
    let listing = ls(&lab);
    assert_eq!(
        (instance(&listing, "box")["phase"].as_str(), listing["instances"].as_array().unwrap().len()),
        (Some("running"), 2)
    );
    let silent = instance(&listing, "silent");
    assert_eq!((&silent["phase"], &silent["idle"]["verdict"]), (&"unreachable".into(), &"unknown".into()));
    let text = lab.run(&["top"]).ends_with(3).stdout;
    assert!(text.contains("RTX 4090") && text.contains("IDLE"), "{text}");
}
