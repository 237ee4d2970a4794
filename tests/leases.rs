//! Leases, end to end: the real binary over simulated providers and over a stand-in for `ssh` that runs the commands
//! here.

#![cfg(unix)]

mod support;

use std::os::unix::fs::PermissionsExt;

use providers::sim::{Life, Machine, Shared};
use rustix::process::Signal;
use support::daemon::Watch;
use support::stage::wait_until;
use support::{Account, Lab, world};

fn trainer() -> (Lab, Shared) {
    let mut runpod = world(1.0);
    let now = runpod.now();
    runpod.machines = vec![Machine::new("podtrainer0001", "trainer", now)];
    let runpod = Shared::new(runpod);
    let account = Account { provider: "runpod", name: "team", world: runpod.clone(), extra: "" };
    (Lab::new(vec![account]), runpod)
}

fn life(world: &Shared, id: &str) -> Life {
    world.lock().machine(id).unwrap().life
}

/// Set by one process, told by the next, and taken away by a third.
#[test]
fn a_lease_is_set_listed_and_taken_away() {
    let (lab, world) = trainer();
    let set = lab.run(&["lease", "trainer", "release", "--at", "2099-01-01 10:00"]).ends_with(2);
    assert!(set.stderr.contains("--at: more than 400 days"), "{}", set.stderr);
    let set = lab.run(&["lease", "trainer", "release", "--in", "4h"]).ends_with(0);
    assert!(set.stdout.starts_with("trainer: save, then release, at "), "{}", set.stdout);
    for told in ["no [[checkpoint]] of the config fits it", "start `rentop watch`"] {
        assert!(set.stderr.contains(told), "{}", set.stderr);
    }
    let list = lab.run(&["lease", "list", "--json"]).ends_with(0).json();
    assert_eq!(list["schema"], "rentop.lease/1");
    let lease = &list["leases"][0];
    assert_eq!(
        (&lease["name"], &lease["what"], &lease["state"]),
        (&"trainer".into(), &"release".into(), &"waiting".into())
    );
    let next = &lab.run(&["ls", "--json"]).ends_with(0).json()["instances"][0]["next"];
    assert_eq!((&next["what"], &next["at"]), (&"lease_release".into(), &lease["at"]));
    // Another one takes its place; one that starts it stands beside it.
    lab.run(&["lease", "trainer", "stop", "--when-pid", "4711", "--max-cost", "5 USD"]).ends_with(0);
    lab.run(&["lease", "trainer", "start", "--at", "tomorrow 8:00"]).ends_with(0);
    let list = lab.run(&["lease", "list", "--json"]).ends_with(0).json();
    let told: Vec<_> = list["leases"].as_array().unwrap().iter().map(|lease| lease["what"].clone()).collect();
    assert_eq!(told, ["stop", "start"]);
    assert_eq!(list["leases"][0]["max_cost"], serde_json::json!({ "amount": "5", "currency": "USD" }));
    let table = lab.run(&["lease", "list"]).ends_with(0).stdout;
    assert!(table.contains("when process 4711 is gone") && table.contains("waiting"), "{table}");
    lab.run(&["lease", "cancel", "trainer"]).ends_with(0);
    assert_eq!(lab.run(&["lease", "list", "--json"]).ends_with(0).json()["leases"], serde_json::json!([]));
    lab.run(&["lease", "cancel", "trainer"]).ends_with(2);
    assert_eq!(life(&world, "podtrainer0001"), Life::Running);
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_set() {
    let (lab, _) = trainer();
    for (args, code, told) in [
        (&["lease", "trainer", "stop"][..], 2, "--when-file"),
        (&["lease", "nobody", "stop", "--in", "4h"], 2, "nobody"),
        (&["lease", "trainer", "start", "--when-pid", "7"], 2, "a start has a time"),
        (&["lease", "trainer", "stop", "--in", "4h", "--max-cost", "5 USD"], 2, "only for the end of a job"),
        (&["lease", "trainer", "stop", "--when-pid", "7", "--max-cost", "5 CNY"], 2, "costs USD"),
        (&["lease", "trainer", "stop", "--when-file", "done"], 2, "absolute path"),
        (&["lease", "trainer", "stop", "--in", "4h", "--on-box"], 2, "on_box"),
        (&["lease", "trainer", "stop", "--in", "4h", "--read-only"], 4, "read-only"),
    ] {
        let ran = lab.run(args).ends_with(code);
        assert!(ran.stderr.contains(told), "{args:?}: {}", ran.stderr);
    }
    assert_eq!(lab.run(&["lease", "list", "--json"]).ends_with(0).json()["leases"], serde_json::json!([]));
}

/// One process collects; another makes the lease beside it, and a third takes one away in time.
#[test]
fn a_running_watch_carries_out_what_another_process_set() {
    let (lab, world) = trainer();
    let mut watch = Watch::collecting(&lab);
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_mins(1);
    let clock = jiff::tz::TimeZone::UTC.to_datetime(soon).strftime("%Y-%m-%d %H:%M").to_string();
    let set = lab.run(&["lease", "trainer", "stop", "--at", &clock]);
    if !set.stderr.contains("that is over") {
        let set = set.ends_with(0);
        assert!(!set.stderr.contains("rentop watch"), "somebody watches: {}", set.stderr);
        lab.run(&["lease", "cancel", "trainer"]).ends_with(0);
    }
    // Its moment is long ago when it is read: a stop comes all the same, after its countdown.
    let past = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(1);
    set_in_the_ledger(&lab, past);
    wait_until("the machine to be stopped", || life(&world, "podtrainer0001") == Life::Stopped);
    wait_until("the lease to have ended", || {
        lab.run(&["lease", "list", "--json"]).ends_with(0).json()["leases"] == serde_json::json!([])
    });
    let audit = lab.run(&["audit", "--json"]).ends_with(0).json();
    assert!(audit["actions"][0]["by"].as_str().unwrap().starts_with("lease of "), "{audit:#}");
    assert_eq!(audit["actions"].as_array().unwrap().len(), 1, "what was taken away never acted: {audit:#}");
    watch.end(Signal::TERM);
}

/// A lease of an hour ago, as the ledger has it after a pause.
fn set_in_the_ledger(lab: &Lab, moment: jiff::Timestamp) {
    use providers::model::{Identity, ResourceKind};
    use rentop::rules::lease::{Draft, Lease, LeaseId, What, When};
    let identity =
        Identity { account: "team".into(), kind: ResourceKind::Instance, id: "podtrainer0001".into(), generation: 0 };
    let draft = Draft { identity, what: What::Stop, when: When::At(moment), max_cost: None, on_box: false };
    let lease = Lease::new(LeaseId(moment.as_microsecond()), draft, "trainer".into(), "tester@desk".into(), moment);
    let (mut ledger, _) = rentop::ledger::Ledger::open(&lab.state_dir(), jiff::Timestamp::now()).unwrap();
    assert!(ledger.keep_lease(&lease).unwrap());
}

/// A machine is a folder; `off` in it ends it.
const SSH: &str = r#"#!/bin/sh
while [ "$1" != -- ]; do shift; done
cd "$HOME/machine" || exit 255
if [ -e off ]; then
  echo "ssh: connect to host $2 port 22: Connection refused" >&2
  exit 255
fi
exec sh -c "$3"
"#;

const OWN: &str = r#"
[[account]]
provider = "ssh"
name = "own"
[[account.machine]]
name = "box"
host = "gpu-box"
price = "1.98 CNY"
stop = "touch off"
"#;

/// The file that a job leaves is read over the person's own `ssh`, and its code decides.
#[test]
fn a_job_that_ended_well_stops_its_machine_and_one_that_did_not_keeps_it() {
    for (code, stopped) in [("0\n", true), ("137\n", false)] {
        let mut lab = Lab::new(vec![]);
        lab.config.push_str(OWN);
        lab.write_config();
        lab.accounts.push(["ssh", "own"]);
        let machine = lab.home.path().join("machine");
        let bin = lab.home.path().join("bin");
        std::fs::create_dir_all(&machine).unwrap();
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(bin.join("ssh"), SSH).unwrap();
        std::fs::set_permissions(bin.join("ssh"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let done = machine.join("it's done");
        let _watch = Watch::collecting(&lab);
        let running =
            || lab.run(&["ls", "--json"]).ends_with(0).json()["instances"][0]["phase"] == serde_json::json!("running");
        wait_until("the box to be seen running", running);
        std::fs::write(&done, code).unwrap();
        lab.run(&["lease", "box", "stop", "--when-file", done.to_str().unwrap()]).ends_with(0);
        if stopped {
            wait_until("the box to be off", || machine.join("off").exists());
        } else {
            wait_until("somebody to be asked", || {
                let list = lab.run(&["lease", "list", "--json"]).ends_with(0).json();
                list["leases"][0]["state"] == serde_json::json!("asking")
            });
            wait_until("the alert", || {
                let alerts = lab.run(&["alerts", "--json"]).json();
                alerts["alerts"].as_array().unwrap().iter().any(|alert| alert["kind"] == serde_json::json!("lease"))
            });
            assert!(!machine.join("off").exists());
        }
    }
}
