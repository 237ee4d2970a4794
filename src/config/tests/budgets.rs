//! Budgets and what is worth an alert: from text to the config.

use jiff::SignedDuration;

use super::*;
use crate::rules::alerts::Awake;
use crate::rules::budgets::{Cycle, Quantity, Scope, Unit};
use crate::rules::matcher::{Glob, LabelPattern};
use crate::rules::spend::Period;

fn budget_with(lines: &str) -> String {
    format!("[[budget]]\nname = \"a\"\nlimit = \"5 USD\"\nperiod = \"day\"\n{lines}")
}

#[test]
fn a_budget_says_what_it_is_for() {
    let text = "timezone = \"Asia/Shanghai\"\n[[project]]\nname = \"x\"\nmatch = { name = \"x\" }\n\
        [[budget]]\nname = \"all\"\nlimit = \"1500 CNY\"\nperiod = \"month\"\n\
        [[budget]]\nname = \"course\"\nlimit = \"200.5 gpu-h\"\nperiod = { from = \"2026-09-01\", to = 2026-12-31 }\n\
        scope = { project = \"x\", account = \"me\", provider = \"vast\", instance = \"x-*\", label = \"team=a*\" }\n\
        zone = \"Europe/Berlin\"\nthresholds = [1, 75, 1000]\nforecast = false\n";
    let config = parse(text).unwrap();
    let all = Budget {
        name: "all".to_owned(),
        scope: Scope::default(),
        cycle: Cycle::Month,
        limit: Quantity::new(1500.into(), Unit::Money(Currency::CNY)),
        zone: TimeZone::get("Asia/Shanghai").unwrap(),
        thresholds: vec![50, 80, 100],
        forecast: Some(100),
    };
    let scope = Scope {
        provider: Some("vast".into()),
        account: Some("me".into()),
        project: Some("x".to_owned()),
        instance: Some(Glob::new("x-*")),
        label: LabelPattern::parse("team=a*"),
    };
    let (from, to) = (jiff::civil::date(2026, 9, 1), jiff::civil::date(2027, 1, 1));
    let course = Budget {
        name: "course".to_owned(),
        scope,
        cycle: Cycle::Dates(Period { from, to }),
        limit: Quantity::new("200.5".parse().unwrap(), Unit::GpuHours),
        zone: TimeZone::get("Europe/Berlin").unwrap(),
        thresholds: vec![1, 75, 1000],
        forecast: None,
    };
    assert_eq!(config.budgets, [all, course]);
    assert_eq!(config.notices, []);
}

#[rstest]
#[case("limit", "\"1500\"", "`1500` has no unit; write \"1500 USD\", or \"1500 gpu-h\"")]
#[case(
    "limit",
    "\"0,5 USD\"",
    "`0,5 USD`: a comma parts thousands, as in \"1,500 USD\"; decimals begin with a point, as in \"0.5 USD\""
)]
#[case("limit", "\"0 USD\"", "`0 USD` is no limit such as \"1500 USD\" or \"200 gpu-h\"")]
#[case("limit", "\"-5 gpu-h\"", "`-5 gpu-h` is no limit such as \"1500 USD\" or \"200 gpu-h\"")]
#[case("limit", "\"5 dollars\"", "`5 dollars` is no limit such as \"1500 USD\" or \"200 gpu-h\"")]
#[case("period", "\"mounth\"", "`mounth` is not known; did you mean `month`?")]
#[case("thresholds", "50", "expected a list in [ ], found a number without quotes")]
#[case("forecast", "true", "expected a whole percent such as 100, or false")]
#[case("forecast", "0", "`0` is no whole percent from 1 to 1000")]
#[case("forecast", "100.5", "`100.5` is no whole percent from 1 to 1000")]
#[case("zone", "\"Asia/Shangai\"", "`Asia/Shangai` is no IANA time zone; did you mean `Asia/Shanghai`?")]
fn a_mistake_in_a_budget_names_its_key_and_what_to_write(#[case] key: &str, #[case] value: &str, #[case] told: &str) {
    let keys = [("limit", "\"5 USD\""), ("period", "\"day\"")].into_iter().filter(|(other, _)| *other != key);
    let rest: Vec<String> = keys.map(|(key, value)| format!("{key} = {value}\n")).collect();
    let text = format!("[[budget]]\n{key} = {value}\nname = \"a\"\n{}", rest.concat());
    assert_eq!(mistakes(&text), format!("2:{}: budget[0].{key}: {told}", key.len() + 4));
}

#[rstest]
#[case("thresholds = [80, 50]", "5:19: budget[0].thresholds[1]: 50 comes after 80; they rise")]
#[case("thresholds = [80, 80]", "5:19: budget[0].thresholds[1]: 80 comes after 80; they rise")]
#[case("thresholds = [\"80\"]", "5:15: budget[0].thresholds[0]: expected a number without quotes, found text")]
#[case("thresholds = [1001]", "5:15: budget[0].thresholds[0]: `1001` is no whole percent from 1 to 1000")]
#[case("scope = { projekt = \"x\" }", "5:11: budget[0].scope.projekt: unknown key; did you mean `project`?")]
#[case("scope = { label = \"=x\" }", "5:19: budget[0].scope.label: a label pattern is written key=value")]
#[case("scope = { provider = \"vas\" }", "5:22: budget[0].scope.provider: no provider `vas`; did you mean `vast`?")]
#[case(
    "scope = { account = \"tow\" }\n[[account]]\nprovider = \"vast\"\nname = \"two\"\nkey_env = \"K\"",
    "5:21: budget[0].scope.account: no account `tow`; did you mean `two`?"
)]
#[case(
    "[[budget]]\nlimit = \"5 USD\"\nperiod = { from = 2026-09-02 }",
    "5:1: budget[1].name: missing\n7:10: budget[1].period.to: missing"
)]
#[case(
    "[[budget]]\nname = \"b\"\nlimit = \"5 USD\"\nperiod = { from = \"2026-09-02\", to = \"2026-09-01\" }",
    "8:38: budget[1].period.to: 2026-09-01 is before 2026-09-02"
)]
#[case(
    "[[budget]]\nname = \"a\"\nlimit = \"5 USD\"\nperiod = \"day\"",
    "6:8: budget[1].name: `a` is the name of budget[0] already"
)]
fn a_mistake_beside_a_budget_is_told_at_its_place(#[case] lines: &str, #[case] told: &str) {
    assert_eq!(mistakes(&budget_with(lines)), told);
}

#[test]
fn what_is_worth_an_alert_is_said_in_times_or_switched_off() {
    let text = "awake = \"22:00 - 06:30\"\n[alerts]\nburn = \"12.50 CNY\"\nrunway = \"2d\"\nidle = \"off\"\n\
        stopped = \"90m\"\nending = \"1d 12h\"\nbell = true\n";
    let config = parse(text).unwrap();
    let time = |hour, minute| jiff::civil::time(hour, minute, 0, 0);
    let hours = |hours| Some(SignedDuration::from_hours(hours));
    let expected = Limits {
        burn: Rate::per_hour("12.50".parse().unwrap(), Currency::CNY),
        runway: hours(48),
        awake: Some(Awake { from: time(22, 0), to: time(6, 30) }),
        idle: None,
        stopped: Some(SignedDuration::from_mins(90)),
        ending: hours(36),
        bell: true,
        ..Limits::default()
    };
    assert_eq!((config.limits, config.notices), (expected, vec![]));
    assert_eq!(parse("[alerts]\nburn = \"off\"").unwrap().limits, Limits::default());
}

#[rstest]
#[case("awake = \"8-23\"", "1:9: awake: `8-23` is not two times of day such as \"08:00-23:00\"")]
#[case("awake = \"08:00-08:00\"", "1:9: awake: `08:00-08:00` is not two times of day such as \"08:00-23:00\"")]
#[case("alerts.idel = \"1h\"", "1:8: alerts.idel: unknown key; did you mean `idle`?")]
#[case("alerts.idle = 60", "1:15: alerts.idle: expected text in quotes, found a number without quotes")]
#[case(
    "alerts.idle = \"0m\"",
    "1:15: alerts.idle: `0m` is no time span such as \"30m\", \"12h\" or \"2d\", and not \"off\""
)]
#[case(
    "alerts.idle = \"never\"",
    "1:15: alerts.idle: `never` is no time span such as \"30m\", \"12h\" or \"2d\", and not \"off\""
)]
#[case("alerts.burn = \"20\"", "1:15: alerts.burn: `20` is no amount an hour such as \"20 USD\", and not \"off\"")]
#[case(
    "alerts.burn = \"0 USD\"",
    "1:15: alerts.burn: `0 USD` is no amount an hour such as \"20 USD\", and not \"off\""
)]
#[case("alerts = \"off\"", "1:10: alerts: expected a table, found text")]
fn a_mistake_about_alerts_is_told_with_what_to_write(#[case] text: &str, #[case] told: &str) {
    assert_eq!(mistakes(text), told);
}
