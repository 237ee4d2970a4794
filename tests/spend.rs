//! `rentop spend`, end to end: the real binary against simulated providers, and figures that add up.

mod support;

use jiff::SignedDuration;
use providers::sim::{Harm, Life, Machine, Shared, Store};
use rust_decimal::Decimal;
use serde_json::Value;
use support::{Account, Lab, Ran, world};

const GROUPINGS: [&str; 6] = ["account", "provider", "project", "instance", "component", "day"];
const PARTS: [&str; 4] = ["billed", "observed", "inferred", "assumed"];

/// A name that a spreadsheet would run.
const FORMULA: &str = "=cmd|' /C calc'!A0";

struct Rented {
    lab: Lab,
    runpod: Shared,
    vast: Shared,
}

/// Machines that have run for days, so that whole days of spend are proven by their providers' own times.
fn rented() -> Rented {
    let mut runpod = world(1.0);
    let now = runpod.now();
    let since = |hours| now - SignedDuration::from_hours(hours);
    let up = |id, name, hours| Machine { started_at: Some(since(hours)), ..Machine::new(id, name, since(hours)) };
    runpod.machines = vec![
        Machine { gpu_count: 8, compute_per_hour: Decimal::new(2152, 2), ..up("podaaaaaaaaaa1", "ft-llama", 70) },
        Machine { compute_per_hour: Decimal::new(33_333_333, 8), ..up("podbbbbbbbbbb2", FORMULA, 61) },
        Machine { life: Life::Stopped, started_at: None, ..Machine::new("podcccccccccc3", "old-exp", since(90)) },
    ];
    runpod.stores = vec![Store {
        id: "nv1".to_owned(),
        name: "+1".to_owned(),
        size_gb: 200,
        region: "US-KS-2".to_owned(),
        created_at: since(200),
        gone: false,
    }];
    let mut vast = world(1.0);
    vast.machines = vec![Machine { spot: true, ..up("31000001", "ft-sd", 55) }];
    let [runpod, vast] = [runpod, vast].map(Shared::new);
    let account = |provider, name, world: &Shared| Account { provider, name, world: world.clone(), extra: "" };
    let lab = Lab::new(vec![account("runpod", "team", &runpod), account("vast", "me", &vast)]);
    Rented { lab, runpod, vast }
}

impl Rented {
    fn with_project(mut self) -> Self {
        self.add("[[project]]\nname = \"finetune\"\nmatch = { name = \"ft-*\" }\n");
        self
    }

    fn add(&mut self, text: &str) {
        self.lab.config.push_str(text);
        self.lab.write_config();
    }

    fn spend(&self, args: &[&str]) -> Value {
        self.lab.run(&[&["spend", "--json"], args].concat()).ends_with(0).json()
    }
}

#[track_caller]
fn number(value: &Value) -> Decimal {
    let number: Decimal = value.as_str().unwrap_or_else(|| panic!("no amount: {value}")).parse().unwrap();
    assert!(number.scale() <= 6, "{number} has more than six places");
    number
}

fn list<'a>(spend: &'a Value, name: &str) -> &'a Vec<Value> {
    spend[name].as_array().unwrap_or_else(|| panic!("no `{name}`: {spend:#}"))
}

fn sum(lines: &[Value], key: &str) -> Decimal {
    lines.iter().map(|line| number(&line[key])).sum()
}

/// Parts add up to their group, and groups to the total, to the last place.
#[track_caller]
fn adds_up(spend: &Value) -> Decimal {
    for line in list(spend, "groups").iter().chain(list(spend, "totals")) {
        let parts: Decimal = PARTS.iter().map(|part| number(&line[part])).sum();
        assert_eq!(parts, number(&line["amount"]), "{line:#}");
        assert!(number(&line["waste"]) <= number(&line["amount"]), "{line:#}");
    }
    let [total] = &list(spend, "totals")[..] else { panic!("one currency has one total: {spend:#}") };
    for figure in PARTS.iter().chain(&["amount", "waste", "gpu_hours"]) {
        assert_eq!(sum(list(spend, "groups"), figure), number(&total[figure]), "{figure}: {spend:#}");
    }
    number(&total["amount"])
}

/// The last two whole days: however often they are asked for, they cost the same.
fn whole_days() -> [String; 4] {
    let day = |back: i64| {
        let at = jiff::Timestamp::now() - SignedDuration::from_hours(24 * back);
        at.strftime("%Y-%m-%d").to_string()
    };
    ["--from".to_owned(), day(2), "--to".to_owned(), day(1)]
}

#[test]
fn spend_tells_this_month_by_project_as_the_contract_says() {
    let rented = rented().with_project();
    let spend = rented.spend(&[]);
    assert_eq!((&spend["schema"], &spend["timezone"]), (&"rentop.spend/1".into(), &"UTC".into()));
    let from = spend["from"].as_str().unwrap();
    assert!(from.ends_with("-01T00:00:00+00:00"), "{from}");
    assert!(spend["to"].as_str().unwrap().ends_with("-01T00:00:00+00:00") && spend["known_since"].is_string());
    adds_up(&spend);
    let keys: Vec<&Value> = list(&spend, "groups").iter().map(|group| &group["key"]).collect();
    assert!(keys.contains(&&"finetune".into()) && keys.contains(&&Value::Null), "{keys:?}");
    for group in list(&spend, "groups") {
        for key in ["key", "amount", "currency", "waste", "gpu_hours"].iter().chain(&PARTS) {
            assert!(group.get(key).is_some(), "`{key}` is left out of {group:#}");
        }
        assert_eq!(group["currency"], "USD");
    }
}

/// COST-16: whatever it is grouped by, a period comes to the same, and its days to their period.
#[test]
fn however_it_is_grouped_a_period_comes_to_the_same() {
    let rented = rented().with_project();
    let days = whole_days();
    let days: Vec<&str> = days.iter().map(String::as_str).collect();
    let whole = adds_up(&rented.spend(&days));
    assert!(whole > Decimal::from(24 * 21), "a machine of 21.52 an hour ran all the time: {whole}");
    for by in GROUPINGS {
        let spend = rented.spend(&[&days[..], &["--by", by]].concat());
        assert_eq!((adds_up(&spend), &spend["by"]), (whole, &by.into()), "{spend:#}");
    }
    let one = |day: &str| adds_up(&rented.spend(&["--from", day, "--to", day]));
    let apart = one(days[1]) + one(days[3]);
    assert!((apart - whole).abs() <= Decimal::new(1, 6), "{apart} is not {whole}");
    let by_day = rented.spend(&[&days[..], &["--by", "day"]].concat());
    let keys: Vec<&str> = list(&by_day, "groups").iter().map(|group| group["key"].as_str().unwrap()).collect();
    assert_eq!(keys, [days[1], days[3]]);
}

#[test]
fn what_belongs_to_nobody_is_shared_out_and_nothing_is_lost() {
    let rented = rented().with_project();
    let days = whole_days();
    let days: Vec<&str> = days.iter().map(String::as_str).collect();
    let spend = rented.spend(&[&days[..], &["--spread-unassigned"]].concat());
    let whole = adds_up(&spend);
    assert_eq!(sum(list(&spend, "groups"), "with_share"), whole);
    let nobody = list(&spend, "groups").iter().find(|group| group["key"].is_null()).unwrap();
    assert_eq!(number(&nobody["with_share"]), Decimal::ZERO);
    let project = list(&spend, "groups").iter().find(|group| group["key"] == "finetune").unwrap();
    assert_eq!(number(&project["shared"]), number(&nobody["amount"]), "{spend:#}");
    rented.lab.run(&["spend", "--spread-unassigned", "--by", "day"]).ends_with(2);
}

#[test]
fn days_that_cannot_be_meant_are_refused() {
    let rented = rented();
    for (args, told) in [
        (&["--from", "soon"][..], "--from soon: this is no day"),
        (&["--to", "2026-02-30"], "this is no day"),
        (&["--from", "2026-02-10", "--to", "2026-02-01"], "comes after --to"),
        (&["--by", "mood"], "possible values"),
        (&["--yes"], "--apply-projects"),
    ] {
        let ran = rented.lab.run(&[&["spend"], args].concat()).ends_with(2);
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
    }
    assert_eq!(rented.runpod.lock().seen.len(), 0, "it asked before it had read what was typed");
}

/// A day is that of the configured zone.
#[test]
fn days_begin_in_the_configured_zone() {
    let mut rented = rented();
    rented.lab.config = rented.lab.config.replacen("\"UTC\"", "\"Asia/Shanghai\"", 1);
    rented.lab.write_config();
    let spend = rented.spend(&["--from", "2026-11-01", "--to", "2026-11-02"]);
    assert_eq!(spend["timezone"], "Asia/Shanghai");
    assert_eq!(spend["from"], "2026-11-01T00:00:00+08:00");
    assert_eq!(spend["to"], "2026-11-03T00:00:00+08:00", "the last day is part of it");
}

/// What an account did not tell is not zero: the rest is printed, and the exit code says so.
#[test]
fn a_failing_account_costs_exit_code_3_and_hides_nobody_else() {
    let rented = rented();
    let harm = Harm::Answer { status: 502, headers: vec![], content_type: "text/html", body: String::new() };
    rented.vast.fault("GET", "", 20, harm);
    let ran = rented.lab.run(&["spend", "--json", "--by", "account"]).ends_with(3);
    assert!(ran.stderr.contains("vast/me"), "{}", ran.stderr);
    let spend = ran.json();
    let keys: Vec<&Value> = list(&spend, "groups").iter().map(|group| &group["key"]).collect();
    assert_eq!(keys, ["team"]);
}

#[test]
fn people_read_it_in_their_language() {
    let rented = rented().with_project();
    let text = rented.lab.run(&["spend"]).ends_with(0).stdout;
    assert!(text.starts_with("PROJECT") && text.contains("finetune") && text.contains("(no project)"), "{text}");
    assert!(text.contains("total") && text.contains("both included"), "{text}");
    let run = |args: &[&str]| Ran::of(rented.lab.command(args).env("RENTOP_LANG", "zh-CN").output().unwrap());
    let text = run(&["spend"]).ends_with(0).stdout;
    assert!(text.starts_with("项目") && text.contains("合计") && text.contains("金额"), "{text}");
    assert!(run(&["spend", "--by", "component"]).ends_with(0).stdout.starts_with("费用项"));
}

/// SEC-04: a name is a text in a spreadsheet, and a figure a figure.
#[test]
fn no_name_is_a_formula_in_any_csv() {
    let rented = rented();
    for args in
        [&["spend", "--csv", "--by", "instance"][..], &["ls", "--csv"], &["storage", "--csv"], &["export", "--focus"]]
    {
        let csv = rented.lab.run(args).ends_with(0).stdout;
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let records: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>().unwrap();
        let cells: Vec<&str> = records.iter().flat_map(csv::StringRecord::iter).collect();
        assert!(cells.iter().any(|cell| cell.contains("'+1")), "{args:?}: {csv}");
        for cell in cells {
            let figure = cell.parse::<Decimal>().is_ok() && !cell.starts_with('+');
            assert!(figure || !cell.starts_with(['=', '+', '-', '@', '＝']), "{args:?}: {cell}");
        }
    }
    let csv = rented.lab.run(&["spend", "--csv", "--by", "instance"]).ends_with(0).stdout;
    assert!(csv.contains(&format!("'{FORMULA}")), "{csv}");
}

/// What a machine cost since it was started, as `ls` tells it.
#[test]
fn ls_tells_what_each_machine_has_cost() {
    let rented = rented();
    let listing = rented.lab.run(&["ls", "--json"]).ends_with(0).json();
    let llama = list(&listing, "instances").iter().find(|instance| instance["name"] == "ft-llama").unwrap().clone();
    let spent = &llama["spent"];
    let at = |value: &Value| value.as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond();
    assert_eq!((&spent["currency"], at(&spent["since"])), (&"USD".into(), at(&llama["started_at"])), "{llama:#}");
    let (amount, rate) = (number(&spent["amount"]), number(&llama["rate"]["total"]));
    let hours = amount / rate;
    assert!(hours > Decimal::new(699, 1) && hours < Decimal::new(705, 1), "{hours} h at {rate} are not {amount}");
    assert_eq!(number(&spent["assumed"]), Decimal::ZERO);
}

/// Amounts of two currencies meet only at the user's own rate, which is told beside the sum.
#[test]
fn currencies_are_joined_by_the_users_rates_alone() {
    let mut rented = rented();
    assert!(rented.spend(&[])["joined"].is_null());
    rented.lab.config = rented.lab.config.replacen(
        '\n',
        "\ncurrency = \"CNY\"\n[fx]\nCNY = { usd = \"0.125\", as_of = \"2026-11-28\" }\n",
        1,
    );
    rented.lab.write_config();
    let days = whole_days();
    let days: Vec<&str> = days.iter().map(String::as_str).collect();
    let spend = rented.spend(&days);
    let joined = &spend["joined"];
    assert_eq!(joined["currency"], "CNY");
    assert_eq!(joined["rates"][0], serde_json::json!({"currency": "CNY", "usd": "0.125", "as_of": "2026-11-28"}));
    assert_eq!(number(&joined["amount"]), adds_up(&spend) * Decimal::from(8));
    let text = rented.lab.run(&["spend"]).ends_with(0).stdout;
    assert!(text.contains("1 CNY = 0.125 USD as of 2026-11-28"), "{text}");
}

/// Rules count from when they are written; for what was before, only when that is asked for.
#[test]
fn project_rules_count_for_the_past_on_request_alone() {
    let mut rented = rented();
    let days = whole_days();
    let days: Vec<&str> = days.iter().map(String::as_str).collect();
    let before = rented.spend(&days);
    assert_eq!(list(&before, "groups").len(), 1, "{before:#}");
    rented.add("[[project]]\nname = \"finetune\"\nmatch = { name = \"ft-*\" }\n");
    assert_eq!(list(&rented.spend(&days), "groups").len(), 1, "a rule changes no past");

    let ran = rented.lab.run(&["spend", "--apply-projects"]).ends_with(4);
    assert!(ran.stderr.contains("(no project) -> finetune: 2 resources, $"), "{}", ran.stderr);
    assert_eq!(list(&rented.spend(&days), "groups").len(), 1, "nobody agreed to it");

    // From yesterday on, the day before stays where it was.
    rented.lab.run(&["spend", "--apply-projects", "--from", "yesterday", "--yes"]).ends_with(0);
    let part = |day: &str| {
        let spend = rented.spend(&["--from", day, "--to", day]);
        list(&spend, "groups").iter().filter(|group| group["key"] == "finetune").count()
    };
    assert_eq!((part(days[1]), part(days[3])), (0, 1));

    rented.lab.run(&["spend", "--apply-projects", "--yes"]).ends_with(0);
    let after = rented.spend(&days);
    assert_eq!(adds_up(&after), adds_up(&before), "it moves money, and makes none");
    assert_eq!(part(days[1]), 1);
    let ran = rented.lab.run(&["spend", "--apply-projects", "--yes"]).ends_with(0);
    assert!(ran.stdout.contains("nothing changes"), "{}", ran.stdout);
}

/// Who collects has the open lines in hand: nothing is changed behind its back.
#[cfg(unix)]
#[test]
fn projects_are_not_applied_while_another_process_collects() {
    let mut rented = rented();
    let watch = support::daemon::Watch::collecting(&rented.lab);
    rented.add("[[project]]\nname = \"finetune\"\nmatch = { name = \"ft-*\" }\n");
    let ran = rented.lab.run(&["spend", "--apply-projects", "--yes"]).ends_with(4);
    assert!(ran.stderr.contains(&format!("({}) collects", watch.pid())), "{}", ran.stderr);
}

/// An account is the same one under whatever name: what it cost is told once, and goes on.
#[test]
fn an_account_that_is_called_otherwise_costs_nothing_twice() {
    let mut rented = rented();
    let days = whole_days();
    let days: Vec<&str> = days.iter().map(String::as_str).collect();
    let before = rented.spend(&[&days[..], &["--by", "instance"]].concat());
    for [was, is] in [["team", "crew"], ["crew", "team"]] {
        rented.lab.config = rented.lab.config.replacen(&format!("\"{was}\""), &format!("\"{is}\""), 1);
        rented.lab.write_config();
        let after = rented.spend(&[&days[..], &["--by", "instance"]].concat());
        assert_eq!(adds_up(&after), adds_up(&before), "{after:#}");
        let accounts = rented.spend(&[&days[..], &["--by", "account"]].concat());
        let keys: Vec<&Value> = list(&accounts, "groups").iter().map(|group| &group["key"]).collect();
        assert_eq!(keys, [is]);
        assert_eq!(list(&rented.lab.run(&["ls", "--json"]).ends_with(0).json(), "instances").len(), 4);
    }
}
