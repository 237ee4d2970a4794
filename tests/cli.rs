//! The command line, end to end: the real binary against simulated providers over HTTP.

mod support;

use providers::sim::{Harm, Life, Machine, Shared, Store};
use rust_decimal::Decimal;
use support::{Account, Lab, world};

/// Three providers with one machine each, and what belongs to them.
struct Three {
    lab: Lab,
    runpod: Shared,
    vast: Shared,
    lambda: Shared,
}

fn three() -> Three {
    three_with("")
}

fn three_with(extra: &'static str) -> Three {
    let mut runpod = world(1.0);
    let now = runpod.now();
    runpod.machines = vec![
        Machine {
            gpu: "NVIDIA H100 80GB HBM3".to_owned(),
            gpu_count: 8,
            compute_per_hour: Decimal::new(2152, 2),
            ..Machine::new("podaaaaaaaaaa1", "llama-ft", now)
        },
        Machine { life: Life::Stopped, ..Machine::new("podbbbbbbbbbb2", "old-exp", now) },
        Machine { disk_gb: 0, ..Machine::new("podcccccccccc3", "scratch", now) },
    ];
    runpod.stores = vec![Store {
        id: "nv1".to_owned(),
        name: "datasets".to_owned(),
        size_gb: 200,
        region: "US-KS-2".to_owned(),
        created_at: now,
        gone: false,
    }];
    let mut vast = world(1.0);
    vast.machines = vec![Machine { spot: true, ..Machine::new("31000001", "sd-lora", now) }];
    let mut lambda = world(1.0);
    lambda.machines = vec![Machine {
        gpu: "gpu_1x_a10".to_owned(),
        ..Machine::new("c0ffee00000000000000000000000001", "infer", now)
    }];
    let [runpod, vast, lambda] = [runpod, vast, lambda].map(Shared::new);
    let account = |provider, name, world: &Shared| Account { provider, name, world: world.clone(), extra };
    let lab = Lab::new(vec![
        account("runpod", "team", &runpod),
        account("vast", "me", &vast),
        account("lambda", "lab", &lambda),
    ]);
    Three { lab, runpod, vast, lambda }
}

fn life(world: &Shared, id: &str) -> Life {
    world.lock().machine(id).unwrap().life
}

#[test]
fn ls_tells_the_whole_fleet_as_the_contract_says() {
    let three = three();
    let listing = three.lab.run(&["ls", "--json"]).ends_with(0).json();
    assert_eq!(listing["schema"], "rentop.ls/1");
    assert_eq!(listing["accounts"].as_array().unwrap().len(), 3);
    assert_eq!(listing["instances"].as_array().unwrap().len(), 5);
    let of = |id: &str| {
        listing["instances"].as_array().unwrap().iter().find(|instance| instance["id"] == id).unwrap().clone()
    };
    let llama = of("podaaaaaaaaaa1");
    assert_eq!(llama["gpu"]["model"], "H100 SXM");
    assert_eq!(llama["gpu"]["count"], 8);
    assert_eq!(llama["phase"], "running");
    assert_eq!(llama["rate"]["compute"], "21.52");
    assert_eq!(llama["rate"]["currency"], "USD");
    assert_eq!(llama["market"], "on_demand");
    let spent = &llama["spent"];
    assert!(["amount", "since", "assumed"].iter().all(|key| spent[key].is_string()), "{spent}");
    assert_eq!(spent["currency"], "USD");
    // One look proves work, and never idleness.
    assert_eq!(llama["idle"]["verdict"], "busy", "{}", llama["idle"]);
    assert_eq!(llama["idle"]["waste"], serde_json::json!({ "amount": "0", "currency": "USD" }));
    for key in [
        "account",
        "provider",
        "id",
        "name",
        "phase",
        "provider_phase",
        "missing_since",
        "market",
        "reserved_until",
        "gpu",
        "rate",
        "created_at",
        "started_at",
        "usage",
        "idle",
        "spent",
        "checkpoint",
        "next",
        "ssh",
        "region",
        "labels",
        "project",
        "protected",
        "mine",
    ] {
        assert!(llama.as_object().unwrap().contains_key(key), "`{key}` is left out");
    }
    assert_eq!(of("31000001")["market"], "spot");
    let stopped = of("podbbbbbbbbbb2");
    assert_eq!((&stopped["phase"], &stopped["rate"]["compute"]), (&"stopped".into(), &"0".into()));
    assert_ne!(stopped["rate"]["storage"], "0", "a stopped disk is not free");
    assert_eq!(listing["storage"][0]["id"], "nv1");
    // The parts add up to the total, and the rows to the burn.
    let number = |value: &serde_json::Value| value.as_str().unwrap().parse::<Decimal>().unwrap();
    let mut sum = Decimal::ZERO;
    for instance in listing["instances"].as_array().unwrap() {
        let rate = &instance["rate"];
        assert_eq!(
            number(&rate["compute"]) + number(&rate["storage"]) + number(&rate["other"]),
            number(&rate["total"])
        );
        sum += number(&rate["total"]);
    }
    for item in listing["storage"].as_array().unwrap() {
        sum += number(&item["rate"]["total"]);
    }
    let burn = number(&listing["totals"]["burn"][0]["amount"]);
    assert!((burn - sum).abs() < Decimal::new(1, 5), "{burn} is not {sum}");
    let lambda = listing["accounts"].as_array().unwrap().iter().find(|account| account["account"] == "lab").unwrap();
    assert!(lambda["balance"].is_null() && lambda["runway_hours"].is_null(), "unknown is null, never 0");
}

/// What costs without working, and nothing else: a stopped disk, a volume that nobody mounts.
#[test]
fn storage_tells_what_costs_without_working_and_sums_what_works() {
    let three = three();
    {
        let mut world = three.runpod.lock();
        let used = Store { id: "nv2".to_owned(), name: "weights".to_owned(), ..world.stores[0].clone() };
        world.stores.push(used);
        world.machines[0].mounts = vec!["nv2".to_owned()];
    }
    let listing = three.lab.run(&["storage", "--json"]).ends_with(0).json();
    assert_eq!(listing["schema"], "rentop.storage/1");
    let rows = listing["storage"].as_array().unwrap();
    let told: Vec<_> = rows.iter().map(|row| (row["id"].as_str().unwrap(), row["kind"].as_str().unwrap())).collect();
    assert_eq!(told, [("nv1", "network_volume"), ("podbbbbbbbbbb2", "instance")]);
    let (volume, stopped) = (&rows[0], &rows[1]);
    assert_eq!((&volume["per_month"], &volume["currency"]), (&"14".into(), &"USD".into()));
    assert_eq!((&volume["size_gib"], &volume["attached_to"]), (&200.into(), &serde_json::json!([])));
    assert_eq!(volume["notes"], serde_json::json!(["attached_to_nothing"]));
    assert_eq!((&volume["standing"], &volume["proposable"]), (&"waste".into(), &true.into()));
    assert!(volume["created_at"].is_null() && volume["phase"].is_null(), "unknown is null");
    assert!(volume["first_seen_at"].is_string() && volume["hindrance"].is_null());
    assert_eq!((&volume["loses_data"], &volume["estimated"]), (&true.into(), &true.into()));
    assert_eq!((&stopped["phase"], &stopped["name"]), (&"stopped".into(), &"old-exp".into()));
    assert!(stopped["attached_to"].is_null());
    // Every row has the same keys, and none holds another object than its labels.
    for row in rows {
        let row = row.as_object().unwrap();
        assert!(row.keys().eq(volume.as_object().unwrap().keys()));
        assert!(row.iter().all(|(key, value)| key == "labels" || !value.is_object()), "{row:?}");
    }
    let totals = listing["totals"].as_array().unwrap();
    let sum = |standing: &str| totals.iter().find(|line| line["standing"] == standing);
    assert_eq!((&sum("working").unwrap()["count"], &sum("working").unwrap()["per_month"]), (&1.into(), &"14".into()));
    // The waste is the sum of its rows, and the same that `ls` tells.
    let number = |value: &serde_json::Value| value.as_str().unwrap().parse::<Decimal>().unwrap();
    let waste = sum("waste").unwrap();
    assert_eq!((&waste["count"], &waste["complete"]), (&2.into(), &true.into()));
    assert_eq!(number(&waste["per_month"]), number(&volume["per_month"]) + number(&stopped["per_month"]));
    let listed = three.lab.run(&["ls", "--json"]).ends_with(0).json();
    assert_eq!(waste["per_hour"], listed["totals"]["waste_burn"][0]["amount"]);
}

#[test]
fn storage_speaks_to_people_in_their_language_and_to_spreadsheets_in_numbers() {
    let three = three();
    let text = three.lab.run(&["storage"]).ends_with(0).stdout;
    assert!(text.contains("~$14.00") && text.contains("attached to nothing"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("waste: ~$") && line.ends_with(" a month")), "{text}");
    let output = three.lab.command(&["storage"]).env("RENTOP_LANG", "zh-CN").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("未挂载") && text.lines().any(|line| line.starts_with("浪费：每月 ~$")), "{text}");
    let csv = three.lab.run(&["storage", "--csv"]).ends_with(0).stdout;
    let volume = csv.lines().find(|line| line.contains("nv1")).unwrap();
    assert!(volume.contains(",network_volume,,waste,200,,"), "{volume}");
    assert!(volume.ends_with(",14,yes,yes,yes,USD,attached_to_nothing"), "{volume}");
    assert!(!csv.contains('—') && !csv.contains("waste:"), "{csv}");
}

/// What an account did not tell may cost: the rest is printed, and the exit code says so.
#[test]
fn storage_of_a_failing_account_costs_exit_code_3() {
    let three = three();
    let harm = Harm::Answer { status: 502, headers: vec![], content_type: "text/html", body: String::new() };
    three.runpod.fault("GET", "", 20, harm);
    let ran = three.lab.run(&["storage", "--json"]).ends_with(3);
    assert!(ran.stderr.contains("runpod/team"), "{}", ran.stderr);
    assert_eq!(ran.json()["storage"].as_array().unwrap().len(), 0);
}

#[test]
fn ls_answers_from_the_ledger_while_that_is_young() {
    let three = three();
    three.lab.run(&["ls"]).ends_with(0);
    let before = three.runpod.lock().seen.len();
    let listing = three.lab.run(&["ls", "--json"]).ends_with(0).json();
    assert_eq!(listing["instances"].as_array().unwrap().len(), 5);
    assert_eq!(three.runpod.lock().seen.len(), before, "it asked again within the interval");
}

/// A list that left something out is no answer to lean on: what it left out stays a problem for scripts.
#[test]
fn ls_asks_again_when_the_last_list_left_something_out() {
    let three = three();
    let body = r#"{"success": true, "instances": [{"id": "x"}], "next_token": null}"#.to_owned();
    let harm = Harm::Answer { status: 200, headers: vec![], content_type: "application/json", body };
    three.vast.fault("GET", "v1/instances", 2, harm);
    three.lab.run(&["ls"]).ends_with(3);
    three.lab.run(&["ls"]).ends_with(3);
    three.lab.run(&["ls"]).ends_with(0);
}

/// An account that was named waits for no other.
#[test]
fn an_account_that_hangs_delays_no_action_on_another() {
    let three = three();
    three.vast.fault("GET", "", 20, Harm::Hang);
    let began = std::time::Instant::now();
    three.lab.run(&["stop", "llama-ft", "--account", "team", "--yes"]).ends_with(0);
    assert!(began.elapsed() < std::time::Duration::from_secs(25), "it waited for the account that hangs");
}

/// The reader of a pipe may leave before anything is written.
#[test]
fn nobody_who_reads_is_no_reason_to_panic() {
    let three = three();
    for args in [&["completions", "bash"][..], &["man"], &["ls"], &["stop", "llama-ft", "--yes"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = three.lab.command(args).stdout(writer).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !said.contains("panicked"), "{args:?}: {said}");
    }
}

/// An audit that is empty because the ledger cannot be read would say that nothing was ever done.
#[cfg(unix)]
#[test]
fn an_audit_without_the_ledger_is_no_clean_one() {
    let lab = Lab::new(vec![]);
    lab.run(&["audit"]).ends_with(0);
    std::fs::remove_file(lab.state_dir().join("ledger.sqlite")).unwrap();
    std::os::unix::fs::symlink("nowhere", lab.state_dir().join("ledger.sqlite")).unwrap();
    let ran = lab.run(&["audit", "--json"]).ends_with(1);
    assert!(ran.stderr.contains("link to nothing"), "{}", ran.stderr);
    assert_eq!(ran.json()["actions"].as_array().unwrap().len(), 0);
}

#[test]
fn one_failing_account_costs_exit_code_3_and_hides_nobody_else() {
    let three = three();
    let harm =
        Harm::Answer { status: 502, headers: vec![], content_type: "text/html", body: "<html>bad</html>".into() };
    three.vast.fault("GET", "", 20, harm);
    let ran = three.lab.run(&["ls", "--json"]).ends_with(3);
    assert!(
        ran.stderr.contains("vast/me") && ran.stderr.contains("502") && !ran.stderr.contains("<html>"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.json()["instances"].as_array().unwrap().len(), 4);
}

#[test]
fn stop_start_and_release_wait_for_the_poll_that_proves_them() {
    let three = three();
    let ran = three.lab.run(&["stop", "llama-ft", "--yes"]).ends_with(0);
    assert!(ran.stdout.contains("llama-ft"), "{}", ran.stdout);
    assert_eq!(life(&three.runpod, "podaaaaaaaaaa1"), Life::Stopped);
    three.lab.run(&["start", "podaaaaaaaaaa1", "--yes"]).ends_with(0);
    assert_eq!(life(&three.runpod, "podaaaaaaaaaa1"), Life::Running);
    three.lab.run(&["release", "sd-lora", "--yes", "--lose-data"]).ends_with(0);
    assert_eq!(life(&three.vast, "31000001"), Life::Gone);
    let audit = three.lab.run(&["audit", "--json"]).ends_with(0).json();
    let actions: Vec<_> =
        audit["actions"].as_array().unwrap().iter().map(|line| (&line["action"], &line["outcome"])).collect();
    assert_eq!(actions.len(), 3);
    assert_eq!(actions[0], (&"release".into(), &"done".into()));
    assert!(audit["actions"][0]["by"].as_str().unwrap().starts_with("tester@"));
}

/// Safety: what loses data needs more than a yes, and nobody off a terminal is asked.
#[test]
fn data_is_not_lost_by_a_flag_that_does_not_say_so() {
    let three = three();
    for args in [
        &["release", "llama-ft"][..],
        &["release", "llama-ft", "--yes"],
        &["stop", "llama-ft"],
        // DATA-05: without a lasting disk a stop erases everything.
        &["stop", "scratch", "--yes"],
    ] {
        three.lab.run(args).ends_with(4);
    }
    let world = three.runpod.lock();
    assert_eq!(world.count("POST", "/action") + world.count("DELETE", ""), 0, "{:?}", world.seen);
}

/// LIFE-08: a provider that cannot stop gets no request that it could take for a release.
#[test]
fn a_provider_that_cannot_stop_is_not_asked_to() {
    let three = three();
    let ran = three.lab.run(&["stop", "infer", "--yes", "--lose-data"]).ends_with(4);
    assert!(ran.stderr.contains("cannot stop"), "{}", ran.stderr);
    assert_eq!(three.lambda.lock().count("POST", ""), 0);
}

#[test]
fn read_only_sends_nothing_that_changes_anything() {
    let three = three();
    three.lab.run(&["--read-only", "release", "llama-ft", "--yes", "--lose-data"]).ends_with(4);
    let locked = three_with("read_only = true");
    locked.lab.run(&["release", "llama-ft", "--yes", "--lose-data"]).ends_with(4);
    for world in [&three.runpod, &locked.runpod] {
        let world = world.lock();
        assert_eq!(world.count("POST", "/action") + world.count("DELETE", ""), 0);
    }
}

/// LIFE-04: a name must mean one instance, whole.
#[test]
fn a_name_that_means_several_is_refused_with_the_candidates() {
    let three = three();
    let now = three.runpod.lock().now();
    three.vast.lock().machines.push(Machine::new("31000002", "llama-ft", now));
    let ran = three.lab.run(&["stop", "llama-ft", "--yes"]).ends_with(2);
    assert!(ran.stderr.contains("podaaaaaaaaaa1") && ran.stderr.contains("31000002"), "{}", ran.stderr);
    three.lab.run(&["stop", "llama", "--yes"]).ends_with(2);
    three.lab.run(&["stop", "llama-ft", "--account", "team", "--yes"]).ends_with(0);
    assert_eq!(life(&three.vast, "31000002"), Life::Running);
}

/// API-10: the call failed, the machine did what was asked all the same.
#[test]
fn an_error_after_the_deed_is_read_back_and_not_repeated() {
    let three = three();
    three.runpod.fault("POST", "/action", 1, Harm::ApplyThenError(500));
    three.lab.run(&["start", "old-exp", "--yes"]).ends_with(0);
    assert_eq!(life(&three.runpod, "podbbbbbbbbbb2"), Life::Running);
    assert_eq!(three.runpod.lock().count("POST", "/action"), 1, "sent again without need");
}

#[test]
fn a_key_is_in_no_file_and_no_output() {
    let three = three();
    let ran = three.lab.run(&["ls", "--json"]).ends_with(0);
    three.lab.run(&["stop", "llama-ft", "--yes"]).ends_with(0);
    assert!(!ran.stdout.contains(support::KEY) && !ran.stderr.contains(support::KEY));
    let mut files = vec![three.lab.state_dir()];
    let mut looked_at = 0;
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            let found = bytes.windows(8).any(|window| window == &support::KEY.as_bytes()[..8]);
            assert!(!found, "{} holds the key", path.display());
            looked_at += 1;
        }
    }
    assert!(looked_at >= 2, "ledger and log were not found");
}

/// SEC-02: whatever the umask, what is written is its owner's alone.
#[cfg(unix)]
#[test]
fn files_are_their_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let three = three();
    let state = three.lab.state_dir();
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "umask 000; exec \"$0\" ls", support::binary()]).env_clear().envs(three.lab.environment());
    assert!(shell.output().unwrap().status.success());
    let mut paths = vec![state];
    while let Some(path) = paths.pop() {
        let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
        if path.is_dir() {
            paths.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
}

#[test]
fn without_an_account_the_way_out_is_named() {
    let lab = Lab::new(vec![]);
    std::fs::remove_file(lab.config_file()).unwrap();
    let ran = lab.run(&["ls"]).ends_with(2);
    assert!(ran.stderr.contains("no account is configured"), "{}", ran.stderr);
    let mut command = lab.command(&["ls"]);
    let output = command.env_remove("RENTOP_CONFIG").env("RUNPOD_API_KEY", "x").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("RunPod"));
}

#[test]
fn a_bad_config_names_file_line_and_key() {
    let mut lab = Lab::new(vec![]);
    lab.config.push_str("[[account]]\nprovidr = \"runpod\"\nname = \"x\"\nkey_env = \"K\"\n");
    lab.write_config();
    let ran = lab.run(&["ls"]).ends_with(2);
    assert!(ran.stderr.contains("config.toml:3:1") && ran.stderr.contains("`provider`"), "{}", ran.stderr);
}

/// Keys by which a slip of the finger would do harm, or that mean two things, are no keys: told with file and line,
/// by the screen as by a command, before anything is asked or sent.
#[test]
fn keys_that_would_do_harm_are_refused_with_file_line_and_key() {
    let cases = [
        ("group = \"o\"", "keys.group: o means sort there already"),
        ("columns = \"X\"", "keys.columns: X is a Shift away from x, which ends or stops things"),
        ("end = \"d\"", "keys.end: d is beside s, and both end or stop things"),
        ("confirm = \"enter\"", "keys.confirm: enter and space never confirm a plan"),
        ("end = \"esc\"", "keys.end: esc always means back"),
        ("realease = \"t\"", "keys.realease: there is no such action"),
        ("end = [\"delete\", \"hyper-x\"]", "keys.end: `hyper-x` is no key"),
    ];
    for (line, told) in cases {
        let mut three = three();
        three.lab.config = format!("[keys]\n{line}\n").replacen("[keys]", "timezone = \"UTC\"\n[keys]", 1)
            + three.lab.config.strip_prefix("timezone = \"UTC\"\n").unwrap();
        three.lab.write_config();
        let ran = three.lab.run(&["ls"]).ends_with(2);
        assert!(ran.stderr.contains("config.toml:3:") && ran.stderr.contains(told), "{}", ran.stderr);
        #[cfg(unix)]
        {
            let mut terminal = support::terminal::Terminal::start(&three.lab, &[], 200, 30);
            let status = terminal.wait_end();
            assert_eq!(status.exit_code(), 2);
            let text = terminal.text();
            assert!(text.contains("config.toml:3:") && text.contains(told), "{text}");
        }
        assert_eq!(three.runpod.lock().seen.len(), 0, "it was asked before the keys were read");
    }
}

/// What fits is taken: the keys of the config are those of the screen.
#[cfg(unix)]
#[test]
fn the_keys_of_the_config_are_those_of_the_screen() {
    let mut three = three();
    three.lab.config.push_str("[keys]\nend = \"delete\"\nundo = \"alt-z\"\nquit = \"Q\"\n");
    three.lab.write_config();
    let mut terminal = support::terminal::Terminal::start(&three.lab, &[], 120, 30);
    terminal.select("infer");
    terminal.wait_for("delete release");
    terminal.press("x");
    terminal.press("\u{1b}[3~");
    terminal.wait_for("delete  release without saving: asks for its name first");
    terminal.press("\u{1b}");
    terminal.wait("the plan to close", |text| !text.contains("asks for its name first"));
    terminal.press("Q");
    assert_eq!(terminal.wait_end().exit_code(), 0);
    assert_eq!(three.lambda.lock().count("POST", ""), 0);
}

#[test]
fn the_screen_needs_a_terminal_and_says_so() {
    let lab = Lab::new(vec![]);
    let ran = lab.run(&[]).ends_with(2);
    assert!(ran.stderr.contains("terminal"), "{}", ran.stderr);
}

#[test]
fn completions_man_page_and_providers_are_printed() {
    let lab = Lab::new(vec![]);
    for shell in ["bash", "zsh", "fish"] {
        assert!(lab.run(&["completions", shell]).ends_with(0).stdout.contains("rentop"));
    }
    assert!(lab.run(&["man"]).ends_with(0).stdout.contains(".TH rentop"));
    let providers = lab.run(&["providers", "--json"]).ends_with(0).json();
    assert_eq!(providers["providers"].as_array().unwrap().len(), 4);
    let csv = lab.run(&["providers", "--csv"]).ends_with(0).stdout;
    assert!(csv.starts_with("provider,title,"), "{csv}");
}
