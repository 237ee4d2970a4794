//! `rentop budgets`, `alerts` and `check`, end to end: the real binary against simulated providers.

mod support;

use jiff::{SignedDuration, Timestamp};
use providers::model::{Identity, ResourceKind};
use providers::sim::Harm;
use rentop::ledger::Ledger;
use rentop::rules::alerts::{Alert, Matter, Stage};
use serde_json::{Value, json};
#[cfg(unix)]
use support::daemon::Watch;
use support::stage::{SCRATCH, Stage as Scene, TRAINER, lone};

const BUDGETS: &str = "\
[[budget]]
name = \"month\"
limit = \"1500 USD\"
period = \"month\"
[[budget]]
name = \"=cmd\"
limit = \"200.50 gpu-h\"
period = { from = \"2026-09-01\", to = \"2026-12-31\" }
scope = { account = \"team\", instance = \"ft-*\", label = \"team=a\" }
zone = \"Asia/Shanghai\"
thresholds = [90]
forecast = false
";

fn with(text: &str) -> Scene {
    let mut scene = lone(TRAINER);
    scene.lab.config.push_str(text);
    scene.lab.write_config();
    scene
}

/// Writes down that machines are gone that nobody here ended: something that stays open until somebody has seen it.
fn vanished(scene: &Scene, names: &[&str]) {
    let now = Timestamp::now();
    let alert = |name: &&str| {
        let identity =
            Identity { account: "team".into(), kind: ResourceKind::Instance, id: (*name).into(), generation: 0 };
        let matter = Matter::Vanished { identity, name: (*name).to_owned() };
        let at = Some(now);
        Alert {
            topic: matter.topic(),
            matter,
            stage: Stage::Firing,
            since: now,
            fired_at: at,
            told_at: at,
            told_to: Default::default(),
            moot: None,
        }
    };
    std::fs::create_dir_all(scene.lab.state_dir()).unwrap();
    let (mut ledger, _) = Ledger::open(&scene.lab.state_dir(), now).unwrap();
    ledger.keep_alerts(&names.iter().map(alert).collect::<Vec<_>>(), &[], now).unwrap();
}

fn alerts(scene: &Scene, args: &[&str]) -> Vec<Value> {
    let told = scene.lab.run(&[&["alerts", "--json"], args].concat()).ends_with(0).json();
    assert_eq!(told["schema"], "rentop.alerts/1");
    told["alerts"].as_array().unwrap().clone()
}

#[test]
fn budgets_are_told_with_their_terms_and_every_figure_or_null() {
    let scene = with(BUDGETS);
    let told = scene.lab.run(&["budgets", "--json"]).ends_with(0).json();
    assert_eq!(told["schema"], "rentop.budgets/1");
    let [month, course] = &told["budgets"].as_array().unwrap()[..] else { panic!("{told:#}") };
    for key in ["spent", "estimated", "burn", "forecast", "committed", "reaches_at", "apart", "percent"] {
        for budget in [month, course] {
            let figure = budget.get(key).unwrap_or_else(|| panic!("`{key}` is left out of {budget:#}"));
            let right = match key {
                "apart" => figure.is_array(),
                "percent" => figure.is_u64(),
                _ => figure.as_str().is_some(),
            };
            assert!(figure.is_null() || right, "{key}: {budget:#}");
        }
    }
    assert_eq!((&month["name"], &month["limit"], &month["currency"]), (&"month".into(), &"1500".into(), &"USD".into()));
    let everything = json!({ "provider": null, "account": null, "project": null, "instance": null, "label": null });
    assert_eq!((&month["scope"], &month["unit"], &month["period"]), (&everything, &"money".into(), &"month".into()));
    assert!(month["from"].as_str().unwrap().ends_with("-01T00:00:00+00:00"), "{month:#}");
    assert_eq!((&month["thresholds"], &month["forecast_threshold"]), (&json!([50, 80, 100]), &json!(100)));
    let some = json!({ "provider": null, "account": "team", "project": null, "instance": "ft-*", "label": "team=a" });
    assert_eq!((&course["scope"], &course["unit"], &course["currency"]), (&some, &"gpu_hours".into(), &Value::Null));
    assert_eq!((&course["limit"], &course["period"]), (&"200.5".into(), &"dates".into()));
    let term = (&course["from"], &course["to"], &course["timezone"]);
    assert_eq!(
        term,
        (&"2026-09-01T00:00:00+08:00".into(), &"2027-01-01T00:00:00+08:00".into(), &"Asia/Shanghai".into())
    );
    assert_eq!((&course["thresholds"], &course["forecast_threshold"]), (&json!([90]), &Value::Null));

    let table = scene.lab.run(&["budgets"]).ends_with(0).stdout;
    assert!(table.contains("account:team name:ft-* label:team=a") && table.contains("1500.00"), "{table}");
    let csv = scene.lab.run(&["budgets", "--csv"]).ends_with(0).stdout;
    assert!(csv.lines().count() == 3 && csv.contains("\n'=cmd,"), "no formula: {csv}");
}

#[test]
fn without_budgets_a_person_is_told_where_to_write_one() {
    let scene = lone(TRAINER);
    let told = scene.lab.run(&["budgets"]).ends_with(0).stdout;
    assert!(told.contains("[[budget]]") && told.contains("config.toml"), "{told}");
    assert_eq!(scene.lab.run(&["budgets", "--json"]).ends_with(0).json()["budgets"], json!([]));
}

#[test]
fn an_alert_has_an_id_by_which_it_is_seen_or_put_off() {
    let scene = lone(TRAINER);
    vanished(&scene, &["gone-a", "gone-b", "gone-c"]);
    let firing = alerts(&scene, &[]);
    assert_eq!(firing.len(), 3);
    for alert in &firing {
        let about = (&alert["kind"], &alert["state"], &alert["account"]);
        assert_eq!(about, (&"vanished".into(), &"firing".into(), &"team".into()), "{alert:#}");
        for key in ["storage", "budget", "channel", "snoozed_until", "resolved_at"] {
            assert!(alert.get(key).is_some_and(Value::is_null), "{key}: {alert:#}");
        }
        assert!(
            alert["fired_at"].is_string()
                && alert["text"].as_str().unwrap().contains(alert["instance"].as_str().unwrap())
        );
    }
    let ids: Vec<&str> = firing.iter().map(|alert| alert["id"].as_str().unwrap()).collect();
    let ran = scene.lab.run(&["alerts", "seen", "nothing"]).ends_with(2);
    assert!(ran.stderr.contains("no open alert `nothing`"), "{}", ran.stderr);
    scene.lab.run(&["alerts", "seen"]).ends_with(2);
    scene.lab.run(&["alerts", "snooze", ids[1], "--for", "100 years"]).ends_with(2);
    scene.lab.run(&["alerts", "seen", ids[0]]).ends_with(0);
    scene.lab.run(&["alerts", "snooze", ids[1], "--for", "2h"]).ends_with(0);
    let state = |id: &str| alerts(&scene, &[]).into_iter().find(|alert| alert["id"] == *id).unwrap();
    assert_eq!(state(ids[0])["state"], "acknowledged");
    let until: Timestamp = state(ids[1])["snoozed_until"].as_str().unwrap().parse().unwrap();
    let wait = until.duration_since(Timestamp::now());
    assert!(wait > SignedDuration::from_mins(110) && wait <= SignedDuration::from_mins(120), "{wait:?}");
    assert_eq!(state(ids[2])["state"], "firing");
    scene.lab.run(&["alerts", "seen", "--all"]).ends_with(0);
    assert_eq!(
        (state(ids[1])["state"].clone(), state(ids[2])["state"].clone()),
        ("snoozed".into(), "acknowledged".into())
    );
    assert_eq!(scene.lab.run(&["alerts", "seen", "--all"]).ends_with(0).stdout, "nothing fires\n");
}

#[test]
fn check_says_by_its_exit_code_whether_something_fires() {
    let scene = lone(TRAINER);
    let quiet = scene.lab.run(&["check"]).ends_with(0);
    assert_eq!(quiet.stdout, "");
    vanished(&scene, &["gone-a", "gone-b"]);
    let told = scene.lab.run(&["check"]).ends_with(1).stdout;
    assert!(told.lines().count() == 2 && told.contains("gone-a") && told.contains("gone-b"), "{told}");
    let told = scene.lab.run(&["check", "--json"]).ends_with(1).json();
    assert_eq!((&told["schema"], told["alerts"].as_array().unwrap().len()), (&"rentop.alerts/1".into(), 2));
    // What somebody has seen, or put off, does not count.
    let ids = told["alerts"].as_array().unwrap().iter().map(|alert| alert["id"].as_str().unwrap()).collect::<Vec<_>>();
    scene.lab.run(&["alerts", "seen", ids[0]]).ends_with(0);
    scene.lab.run(&["alerts", "snooze", ids[1]]).ends_with(0);
    scene.lab.run(&["check"]).ends_with(0);
}

/// Each time it asks, also where the ledger is young.
#[test]
fn check_asks_the_providers() {
    let scene = lone(TRAINER);
    let asked = || scene.runpod.lock().count("GET", "/v2/pods");
    scene.lab.run(&["check"]).ends_with(0);
    let before = asked();
    scene.lab.run(&["check"]).ends_with(0);
    assert_eq!(asked(), before + 1);
}

#[test]
fn check_tells_a_config_that_is_wrong_and_accounts_that_fail() {
    let mut scene = lone(TRAINER);
    let body = "<html>maintenance</html>".to_owned();
    let harm = Harm::Answer { status: 200, headers: vec![], content_type: "text/html", body };
    scene.runpod.fault("GET", "/v2/pods", 9, harm);
    let ran = scene.lab.run(&["check"]).ends_with(3);
    assert!(ran.stderr.contains("runpod/team"), "{}", ran.stderr);
    // Something that fires is worth more than an account that fails.
    vanished(&scene, &["gone-a"]);
    scene.lab.run(&["check"]).ends_with(1);
    scene.lab.config.push_str("[alerts]\nidel = \"1h\"\n");
    scene.lab.write_config();
    let ran = scene.lab.run(&["check"]).ends_with(2);
    assert!(ran.stderr.contains("alerts.idel: unknown key; did you mean `idle`?"), "{}", ran.stderr);
}

/// Beside a collector it takes that one's word, and asks nobody.
#[cfg(unix)]
#[test]
fn check_beside_a_watch_reads_its_ledger() {
    let scene = lone(TRAINER);
    let _watch = Watch::collecting(&scene.lab);
    vanished(&scene, &["gone-a"]);
    let asked = || scene.runpod.lock().count("GET", "/v2/pods");
    let (before, began) = (asked(), std::time::Instant::now());
    let told = scene.lab.run(&["check"]).ends_with(1).stdout;
    assert!(told.contains("gone-a"), "{told}");
    assert!(asked() <= before + 1 + began.elapsed().as_secs() as usize / 10);
}

#[cfg(unix)]
#[test]
fn a_watch_says_what_fires_and_what_somebody_has_seen() {
    let scene = with("[[budget]]\nname = \"month\"\nlimit = \"1500 USD\"\nperiod = \"month\"\n");
    vanished(&scene, &["gone-a"]);
    let watch = Watch::start(&scene.lab, &[]);
    watch.wait_for("in force: 1 budget, 0 channels");
    watch.wait_for(" alert: ");
    scene.lab.run(&["alerts", "seen", "--all"]).ends_with(0);
    watch.wait_for(" seen: ");
    // What happened is over once somebody has seen it.
    watch.wait_for(" over: ");
    let said = watch.said();
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("gone-a")).collect();
    assert_eq!(lines.len(), 3, "each once: {said}");
}

/// One machine is released by a command beside the collector, another one by nobody.
#[cfg(unix)]
#[test]
fn what_a_command_beside_a_watch_released_did_not_vanish() {
    let scene = lone(TRAINER);
    let watch = Watch::collecting(&scene.lab);
    scene.lab.run(&["release", "trainer", "--yes", "--lose-data"]).ends_with(0);
    scene.runpod.lock().machines.retain(|machine| machine.id != SCRATCH);
    watch.wait_for(" alert: ");
    let said = watch.said();
    assert!(said.contains("scratch") && !said.contains("trainer"), "{said}");
    let names = alerts(&scene, &["--all"]);
    assert!(names.iter().all(|alert| !alert["text"].as_str().unwrap().contains("trainer")), "{names:#?}");
}

/// From cron, with nobody who watches: each of them looks at what the one before wrote down.
#[test]
fn check_tells_what_happened_since_the_last_one_until_somebody_has_seen_it() {
    let scene = lone(TRAINER);
    scene.lab.run(&["check"]).ends_with(0);
    scene.runpod.lock().machines.retain(|machine| machine.id != SCRATCH);
    // Not listed once is not gone.
    scene.lab.run(&["check"]).ends_with(0);
    for _ in 0..2 {
        let told = scene.lab.run(&["check"]).ends_with(1).stdout;
        assert!(told.lines().count() == 1 && told.contains("scratch"), "{told}");
    }
    scene.lab.run(&["alerts", "seen", "--all"]).ends_with(0);
    scene.lab.run(&["check"]).ends_with(0);
}

/// A ledger that nobody wrote to before has its books added up first: the look waits for them.
#[test]
fn the_first_look_of_all_judges_budgets_too() {
    let budget = "[[budget]]\nname = \"least\"\nlimit = \"0.0000001 USD\"\nperiod = \"month\"\nthresholds = [100]\n";
    let scene = with(budget);
    let told = scene.lab.run(&["check"]).ends_with(1);
    assert!(told.stdout.contains("budget least is used up"), "{}", told.stdout);
}

/// The table says until when, in the zone of the person; a line that was only noted below the highest is left out.
#[test]
fn what_is_put_off_says_until_when_and_what_was_only_noted_is_left_out() {
    let scene = with("");
    vanished(&scene, &["gone-a", "gone-b"]);
    let now = Timestamp::now();
    let (mut ledger, _) = Ledger::open(&scene.lab.state_dir(), now).unwrap();
    let mut noted = ledger.alerts().unwrap().remove(0);
    noted.since += SignedDuration::from_secs(1);
    (noted.stage, noted.fired_at, noted.told_at) = (Stage::Acknowledged, None, None);
    ledger.keep_alerts(&[noted], &[], now).unwrap();
    drop(ledger);
    assert_eq!(alerts(&scene, &[]).len(), 2);
    let told = scene.lab.run(&["alerts", "snooze", "--all", "--for", "8h"]).ends_with(0).stdout;
    let until = now + SignedDuration::from_hours(8);
    let day = until.to_zoned_datetime(jiff::tz::TimeZone::UTC).strftime("snoozed until %Y-%m-%d %H:").to_string();
    assert_eq!(told.matches(&day).count(), 2, "{told}");
}

/// A currency that nothing charges in is accepted, since it may come, and said to be a typing mistake perhaps.
#[test]
fn a_mistyped_currency_is_said_to_be_one_perhaps() {
    let typo = "[alerts]\nburn = \"20 UDS\"\n[[budget]]\nname = \"month\"\nlimit = \"100 UDS\"\nperiod = \"month\"\n\
        [[budget]]\nname = \"right\"\nlimit = \"100 USD\"\nperiod = \"month\"\n";
    let scene = with(typo);
    let told = scene.lab.run(&["budgets"]).ends_with(0);
    let note = "nothing is spent in UDS; a typing mistake? add [fx] to join it";
    assert_eq!(told.stderr.matches("nothing is spent in").count(), 1, "{}", told.stderr);
    assert!(told.stderr.contains(&format!("month: {note}")), "{}", told.stderr);
    let config = rentop::config::Config::load(&scene.lab.config_file()).unwrap();
    let notices: Vec<String> = config.notices.iter().map(ToString::to_string).collect();
    for limit in ["the limit of budget `month`", "`burn` in [alerts]"] {
        assert!(notices.iter().any(|notice| notice.contains(&format!("{limit} is in UDS"))), "{notices:?}");
    }
}
