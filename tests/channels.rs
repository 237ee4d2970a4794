//! Channels beyond the screen, end to end: the real binary against services that answer as the real ones do.

#![cfg(unix)]

#[path = "channels/services.rs"]
mod services;
mod support;

use std::time::Duration;

use rentop::ledger::Ledger;
use rentop::rules::dispatch::MessageState;
use rustix::process::Signal;
use serde_json::json;
use services::{Next, SECRET, Services, TOKEN, least_gap, path};
use support::daemon::Watch;
use support::stage::{Stage, TRAINER, lone, stage, wait_until};
use support::terminal::Terminal;
use support::{Lab, Ran};

const KINDS: [&str; 7] = ["json", "slack", "telegram", "ntfy", "feishu", "dingtalk", "wecom"];

/// A lab beside services, and the runtime that serves these.
struct Told {
    stage: Stage,
    services: Services,
    url: String,
    _runtime: tokio::runtime::Runtime,
}

impl Told {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let services = Services::default();
        let url = services.serve(&runtime);
        Told { stage: lone(TRAINER), services, url, _runtime: runtime }
    }

    /// Adds a channel named like its kind.
    fn channel(&mut self, kind: &str, more: &str) {
        self.named(kind, kind, more);
    }

    fn named(&mut self, name: &str, kind: &str, more: &str) {
        let address = format!("url = \"{}{}\"", self.url, path(kind));
        let secret = if matches!(kind, "feishu" | "dingtalk") { "secret_env = \"SIGNING\"" } else { "" };
        let to = if kind == "telegram" { "to = \"-100200300\"" } else { "" };
        let section = format!("[[notify]]\nname = \"{name}\"\nkind = \"{kind}\"\n{address}\n{secret}\n{to}\n{more}\n");
        self.stage.lab.config.push_str(&section);
        self.stage.lab.write_config();
    }

    fn lab(&self) -> &Lab {
        &self.stage.lab
    }

    fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.lab().command(args).env("SIGNING", SECRET).output().unwrap())
    }

    /// Somebody stops the machine, with a command beside whoever watches.
    fn stop(&self) {
        self.run(&["stop", "trainer", "--yes"]).ends_with(0);
    }

    fn states(&self) -> Vec<MessageState> {
        let (ledger, _) = Ledger::open(&self.lab().state_dir(), jiff::Timestamp::now()).unwrap();
        ledger.messages().unwrap().into_iter().map(|message| message.state).collect()
    }
}

#[test]
fn every_service_takes_the_test_message_of_the_real_program() {
    let mut told = Told::new();
    for (at, kind) in KINDS.into_iter().enumerate() {
        told.channel(kind, if kind == "wecom" { "language = \"zh-CN\"" } else { "" });
        let ran = told.run(&["notify", "test", kind]).ends_with(0);
        assert_eq!(ran.stdout, format!("{kind}: the message was taken\n"));
        let taken = told.services.taken();
        assert_eq!(taken.len(), at + 1, "{kind}: {}", ran.stderr);
        let expected = if kind == "wecom" { "测试消息" } else { "this is a test" };
        assert!(taken[at].text().contains(expected), "{kind}: {:?}", taken[at]);
    }
    let listing = told.run(&["notify", "list", "--json"]).ends_with(0);
    assert_eq!(listing.json()["channels"][4]["address"], "the config file");
    assert!(!listing.stdout.contains(TOKEN));
}

/// Each failure is told in the service's own words, without its address, and with the exit code of a failure.
#[test]
fn every_failure_is_told_plainly_and_without_a_secret() {
    let mut told = Told::new();
    KINDS.into_iter().for_each(|kind| told.channel(kind, ""));
    let leak = format!("hint: [{TOKEN}]");
    let cases = [
        (
            "feishu",
            200,
            "",
            json!({ "code": 19024, "msg": "Key Words Not Found" }).to_string(),
            "refused, and would be refused again: 19024: Key Words Not Found",
        ),
        (
            "feishu",
            200,
            "",
            json!({ "code": 9499, "msg": "Bad Request" }).to_string(),
            "refused, and would be refused again: 9499",
        ),
        (
            "feishu",
            429,
            "x-ogw-ratelimit-reset: 42",
            json!({ "code": 99991400, "msg": "limit" }).to_string(),
            "(again in 42 s at the earliest)",
        ),
        (
            "dingtalk",
            200,
            "",
            json!({ "errcode": 310000, "errmsg": "keywords not in content" }).to_string(),
            "310000: keywords not in content",
        ),
        (
            "dingtalk",
            200,
            "",
            json!({ "errcode": 130101, "errmsg": "send too fast" }).to_string(),
            "(again in 600 s at the earliest)",
        ),
        ("wecom", 200, "", json!({ "errcode": 93000, "errmsg": leak }).to_string(), "93000: hint: [***]"),
        (
            "wecom",
            200,
            "",
            json!({ "errcode": 45009, "errmsg": "api freq out of limit" }).to_string(),
            "not delivered: 45009",
        ),
        ("slack", 404, "", "no_service".to_owned(), "refused, and would be refused again: HTTP 404: no_service"),
        ("slack", 429, "retry-after: 30", "".to_owned(), "(again in 30 s at the earliest)"),
        (
            "telegram",
            401,
            "",
            json!({ "ok": false, "error_code": 401, "description": "Unauthorized" }).to_string(),
            "401: Unauthorized",
        ),
        (
            "telegram",
            429,
            "",
            json!({ "ok": false, "error_code": 429, "description": "x", "parameters": { "retry_after": 17 } })
                .to_string(),
            "(again in 17 s at the earliest)",
        ),
        ("ntfy", 403, "", json!({ "code": 40301, "error": "forbidden" }).to_string(), "40301: forbidden"),
        (
            "json",
            302,
            "location: https://elsewhere.invalid/",
            "".to_owned(),
            "it sends elsewhere, which is not followed",
        ),
        ("json", 504, "", "".to_owned(), "it may have arrived all the same"),
    ];
    for (kind, status, header, body, expected) in cases {
        told.services.then(Next::Answer(status, header, body));
        let ran = told.run(&["notify", "test", kind]).ends_with(1);
        assert!(ran.stderr.contains(expected), "{kind}: {}", ran.stderr);
        assert!(!format!("{}{}", ran.stdout, ran.stderr).contains("TESTSECRET"), "{kind}: {}", ran.stderr);
    }
    assert_eq!(told.services.taken().len(), 0);
    let logs = std::fs::read_dir(told.lab().state_dir().join("logs")).unwrap();
    for log in logs {
        assert!(!std::fs::read_to_string(log.unwrap().path()).unwrap().contains("TESTSECRET"));
    }
}

#[test]
fn what_is_missing_is_told_before_anything_is_sent() {
    let mut told = Told::new();
    let ran = told.run(&["notify", "test", "ops"]).ends_with(2);
    assert!(ran.stderr.contains("no channel `ops`; the config has no [[notify]]"), "{}", ran.stderr);
    told.channel("feishu", "");
    let ran = told.run(&["notify", "test", "ops"]).ends_with(2);
    assert!(ran.stderr.contains("no channel `ops`; there are: feishu"), "{}", ran.stderr);
    let ran = Ran::of(told.lab().command(&["notify", "test", "feishu"]).output().unwrap()).ends_with(1);
    assert!(ran.stderr.contains("the environment variable SIGNING is not set"), "{}", ran.stderr);
    assert_eq!(told.services.requests().len(), 0);
}

/// Without a bus it fails and says so; over ssh no bus is looked for.
#[test]
fn a_desktop_that_is_not_there_is_told() {
    let mut told = Told::new();
    told.stage.lab.config.push_str("[[notify]]\nname = \"desk\"\nkind = \"desktop\"\n");
    told.stage.lab.write_config();
    let bus = "unix:path=/nowhere/bus";
    let run = |ssh: &str| {
        let mut command = told.lab().command(&["notify", "test", "desk"]);
        Ran::of(command.env("DBUS_SESSION_BUS_ADDRESS", bus).env("SSH_TTY", ssh).output().unwrap()).ends_with(1)
    };
    let (here, remote) = (run(""), run("/dev/pts/1"));
    let why = match cfg!(feature = "desktop") {
        true => "desk: not delivered: no desktop takes it",
        false => "desk: not delivered: this rentop was built without notices of the desktop",
    };
    assert!(here.stderr.contains(why), "{}", here.stderr);
    assert!(remote.stderr.contains("this runs over ssh, where no desktop is"), "{}", remote.stderr);
}

#[test]
fn a_command_reads_one_object_of_json() {
    let mut told = Told::new();
    let file = told.lab().home.path().join("told.json");
    let command = format!(r#"command = ["sh", "-c", "cat > {}"]"#, file.display());
    told.stage
        .lab
        .config
        .push_str(&format!("[[notify]]\nname = \"own\"\nkind = \"command\"\nactions = true\n{command}\n"));
    told.stage.lab.write_config();
    told.run(&["notify", "test", "own"]).ends_with(0);
    let object = || serde_json::from_str::<serde_json::Value>(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!((&object()["schema"], &object()["kind"]), (&json!("rentop.message/1"), &json!("test")));
    told.stop();
    let told = object();
    assert_eq!(
        (&told["kind"], &told["details"]["name"], &told["again"]),
        (&json!("action"), &json!("trainer"), &json!(false))
    );
}

/// A command alone tells what it did; beside a watch it leaves that to the watch, and it is told once.
#[test]
fn what_a_command_did_is_told_once_whoever_sends_it() {
    for watched in [false, true] {
        let mut told = Told::new();
        told.channel("json", "actions = true");
        told.channel("feishu", "");
        let watch = watched.then(|| Watch::collecting(told.lab()));
        told.stop();
        wait_until("it is told", || !told.services.taken().is_empty());
        wait_until("nothing waits", || told.states().is_empty());
        drop(watch);
        told.run(&["ls"]).ends_with(0);
        let [taken] = &told.services.taken()[..] else { panic!("{:?}", told.services.taken()) };
        assert_eq!((&taken.body["kind"], &taken.body["again"]), (&json!("action"), &json!(false)));
        assert!(
            taken.text().starts_with("tester@") && taken.text().contains("stop trainer, done, saves $"),
            "{taken:?}"
        );
        assert_eq!(told.states(), []);
    }
}

/// A channel that fails holds up no other one, and is told of once it takes something.
#[test]
fn a_channel_that_fails_is_tried_again_and_holds_up_no_other() {
    let mut told = Told::new();
    told.channel("json", "actions = true");
    told.channel("slack", "actions = true");
    // Both hear the same: one of the first two requests fails.
    (0..2).for_each(|_| told.services.then(Next::Answer(503, "", "busy".to_owned())));
    let _watch = Watch::collecting(told.lab());
    told.stop();
    wait_until("both are told", || told.services.taken().len() == 2);
    assert_eq!(told.services.requests().len(), 4, "each was tried twice");
    let waits: Vec<_> = told.services.requests().iter().map(|request| request.at).collect();
    assert!(waits[3].duration_since(waits[0]) >= Duration::from_secs(5), "not at once");
    wait_until("nothing waits", || told.states().is_empty());
}

/// Killed while it waits for a service that is busy: it is told after the restart, once, and as if nothing was.
#[test]
fn a_message_that_waits_outlives_a_kill() {
    let mut told = Told::new();
    told.channel("json", "actions = true");
    (0..50).for_each(|_| told.services.then(Next::Answer(503, "", "busy".to_owned())));
    let mut watch = Watch::collecting(told.lab());
    told.stop();
    wait_until("it was tried", || !told.services.requests().is_empty());
    wait_until("it waits", || told.states() == [MessageState::Queued]);
    watch.end(Signal::KILL);
    told.services.be_well();
    let _watch = Watch::start(told.lab(), &[]);
    wait_until("it is told", || !told.services.taken().is_empty());
    wait_until("nothing waits", || told.states().is_empty());
    let [taken] = &told.services.taken()[..] else { panic!("{:?}", told.services.taken()) };
    assert_eq!(taken.body["again"], false);
}

/// Killed between the request and its answer: nobody knows whether it is there, and the second one says so.
#[test]
fn a_message_that_may_have_arrived_says_so() {
    let mut told = Told::new();
    told.channel("json", "actions = true");
    told.services.then(Next::Hang);
    let mut watch = Watch::collecting(told.lab());
    told.stop();
    wait_until("it is under way", || told.services.hanging() == 1);
    assert_eq!(told.states(), [MessageState::Sending]);
    watch.end(Signal::KILL);
    let _watch = Watch::start(told.lab(), &[]);
    wait_until("it is told again", || !told.services.taken().is_empty());
    wait_until("nothing waits", || told.states().is_empty());
    let [taken] = &told.services.taken()[..] else { panic!("{:?}", told.services.taken()) };
    assert_eq!(taken.body["again"], true);
    assert_eq!(told.services.requests()[0].body["id"], taken.body["id"]);
}

/// Two pieces of news one after the other keep the pace of the service.
#[test]
fn the_pace_of_a_service_is_kept() {
    let mut told = Told { stage: stage(), ..Told::new() };
    told.channel("wecom", "actions = true");
    let _watch = Watch::collecting(told.lab());
    told.stop();
    wait_until("it is told", || told.services.taken().len() == 1);
    told.run(&["stop", "sd-lora", "--yes"]).ends_with(0);
    wait_until("both are told", || told.services.taken().len() == 2);
    assert!(least_gap(&told.services.taken()).unwrap() >= Duration::from_millis(3100));
}

/// What is refused waits; who watches says so, and says when the channel takes something, which then has it all.
#[test]
fn a_refusal_is_told_by_who_watches_and_ends_with_the_next_delivery() {
    let mut told = Told { stage: stage(), ..Told::new() };
    told.channel("slack", "actions = true");
    told.services.then(Next::Answer(404, "", "no_service".to_owned()));
    let watch = Watch::collecting(told.lab());
    told.stop();
    watch.wait_for("channel slack: takes nothing: HTTP 404: no_service");
    wait_until("it waits", || told.states() == [MessageState::Queued]);
    told.run(&["stop", "sd-lora", "--yes"]).ends_with(0);
    watch.wait_for("channel slack: is well again");
    let taken = told.services.taken();
    let both = ["stop trainer, done", "stop sd-lora, done"].iter().all(|deed| taken[0].text().contains(deed));
    assert!(taken.len() == 1 && both, "{taken:?}");
    assert!(!watch.said().contains("TESTSECRET"));
}

/// On a screen a channel of those who watch is silent, and the terminal tells what no desktop takes.
#[test]
fn a_screen_tells_by_its_terminal_and_leaves_the_watchs_channels_alone() {
    let mut told = Told::new();
    told.channel("json", "actions = true");
    told.channel("slack", "actions = true\nfrom = \"watch\"");
    told.stage.lab.config.push_str("[[notify]]\nname = \"desk\"\nkind = \"desktop\"\nactions = true\n");
    told.stage.lab.write_config();
    let mut command = Terminal::command(told.lab(), &[]);
    command.env("SSH_TTY", "/dev/pts/1");
    let mut terminal = Terminal::spawn(command, 100, 30);
    terminal.wait_for("trainer");
    terminal.select("trainer");
    terminal.press("s");
    terminal.wait_for("trainer: stopped");
    let line = "\x1b]9;rentop on ";
    terminal.wait_written(line);
    assert!(terminal.wrote().contains("stop trainer, done, saves $1.8"), "what was done is told");
    wait_until("the other one is told", || told.services.taken().len() == 1);
    wait_until("nothing waits", || told.states().is_empty());
    assert_eq!(told.services.requests().len(), 1, "{:?}", told.services.requests());
    assert_eq!(told.services.taken()[0].body["kind"], "action");
}
