//! The config as a whole: texts to configs or to exact mistakes, files, the example, the environment.

mod budgets;

use rust_decimal::Decimal;

use super::*;
use crate::rules::alerts::Kind;
use crate::rules::matcher::Matcher;
use crate::rules::samples;
use crate::rules::settings::Settings;
use crate::rules::usage::IdleRule;
use proptest::prelude::*;
use providers::gpu::Gpus;
use providers::model::{Instance, Phase, ProviderName, SshEndpoint};
use providers::money::Rate;
use rstest::rstest;

const FACTS: &str = r#"
volume_stopped_per_gb_month = { value = "0.20", unit = "USD per GB and month", source = "docs", read = "2026-08-20" }
"#;
static RUNPOD: Entry = Entry { facts: FACTS, key_env: &["RUNPOD_API_KEY"], ..providers::runpod::ENTRY };
static VAST: Entry = Entry { facts: "", key_env: &["VAST_API_KEY", "VASTAI_KEY"], ..providers::vast::ENTRY };
static LAMBDA: Entry = Entry { facts: "", key_env: &["LAMBDA_API_KEY"], ..providers::lambda::ENTRY };
/// The real ones with facts and variables of the tests' own, so that a new fact breaks none of them.
static REGISTRY: &[&Entry] = &[&RUNPOD, &VAST, &LAMBDA, &providers::ssh::ENTRY];

const FILE: &str = "/home/u/config.toml";

fn parse(text: &str) -> Result<Config, String> {
    Config::check(text, Path::new(FILE), REGISTRY).map(|checked| checked.config).map_err(|error| error.to_string())
}

/// The mistakes in a text, one a line, without the file that begins each.
fn mistakes(text: &str) -> String {
    let told = parse(text).expect_err("the text has a mistake");
    let prefix = format!("{FILE}:");
    told.lines().map(|line| line.strip_prefix(&prefix).expect(line)).collect::<Vec<_>>().join("\n")
}

fn dec(text: &str) -> Decimal {
    text.parse().unwrap()
}

const WHOLE: &str = r#"
timezone = "Asia/Shanghai"
currency = "cny"
mine = ["ft-*", "owner=me"]
fx.CNY = { usd = "0.1389", as_of = 2026-11-28 }
fx.EUR = { usd = "1.16", as_of = "2026-11-27" }

[[account]]
provider = "runpod"
name = "team"
key_env = "RUNPOD_API_KEY"
base_url = "http://127.0.0.1:9001"
read_only = true
facts = { volume_stopped_per_gb_month = "0.25" }

[[account]]
provider = "vast"
name = "cheap"
key_cmd = "pass 'show it' vast\\ key"

[[account]]
provider = "lambda"
name = "lab"
key_file = "keys/lambda"

[[project]]
name = "finetune"
match = { name = "ft-*", account = "team" }
[[project]]
name = "rest"
match = { name = "*" }

[[protect]]
match = { label = "keep", provider = "runpod" }
"#;

#[test]
fn every_key_is_read() {
    let config = parse(WHOLE).unwrap();
    assert_eq!(config.timezone_name, "Asia/Shanghai");
    assert_eq!(config.timezone, TimeZone::get("Asia/Shanghai").unwrap());
    assert_eq!(config.currency, Currency::CNY);
    assert_eq!(config.rules.mine, ["ft-*", "owner=me"].map(|entry| Matcher::parse(entry).unwrap()));
    let rate = |usd, as_of: &str| Fx { usd: dec(usd), as_of: as_of.parse().unwrap() };
    assert_eq!(
        config.fx,
        BTreeMap::from([(Currency::CNY, rate("0.1389", "2026-11-28")), (Currency::EUR, rate("1.16", "2026-11-27"))])
    );
    let account = |provider, name: &str, key| AccountConfig {
        provider,
        name: name.into(),
        key,
        base_url: None,
        read_only: false,
        facts: BTreeMap::new(),
        streams: Consent::Unasked,
        machines: Vec::new(),
        auto_topup: false,
    };
    let facts = BTreeMap::from([("volume_stopped_per_gb_month".to_owned(), "0.25".to_owned())]);
    let words = ["pass", "show it", "vast key"].map(str::to_owned).to_vec();
    assert_eq!(
        config.accounts,
        [
            AccountConfig {
                base_url: Some("http://127.0.0.1:9001".to_owned()),
                read_only: true,
                facts,
                ..account(&RUNPOD, "team", KeySource::Env("RUNPOD_API_KEY".into()))
            },
            account(&VAST, "cheap", KeySource::Command(words)),
            account(&LAMBDA, "lab", KeySource::File("/home/u/keys/lambda".into())),
        ]
    );
    assert_eq!(config.notices, []);
}

#[test]
fn the_first_project_that_fits_wins_and_protection_needs_every_condition() {
    let settings = Settings { rules: parse(WHOLE).unwrap().rules, single: BTreeMap::new() };
    let row = |name: Option<&str>, label: Option<&str>| Instance {
        name: name.map(str::to_owned),
        labels: label.map(|label| (label.to_owned(), String::new())).into_iter().collect(),
        ..samples::instance("a1", Phase::Running, "1")
    };
    let (runpod, vast) = (ProviderName::from("runpod"), ProviderName::from("vast"));
    let (team, cheap) = (samples::identity("team", "a1"), samples::identity("cheap", "a1"));
    assert_eq!(settings.project(&runpod, &team, &row(Some("ft-1"), None)), Some("finetune"));
    assert_eq!(settings.project(&vast, &cheap, &row(Some("ft-1"), None)), Some("rest"));
    assert_eq!(settings.project(&vast, &cheap, &row(None, None)), Some("rest"));
    assert!(settings.protected(&runpod, &team, &row(None, Some("keep"))));
    assert!(!settings.protected(&vast, &cheap, &row(None, Some("keep"))));
    assert!(!settings.protected(&runpod, &team, &row(None, None)));
    assert!(settings.mine(&runpod, &team, &row(Some("ft-1"), None)));
    assert!(!settings.mine(&runpod, &team, &row(Some("x"), None)));
    assert_eq!(Settings::default().project(&runpod, &team, &row(Some("ft-1"), None)), None);
}

#[test]
fn a_key_source_may_be_a_list_of_words_or_a_path_at_home() {
    let config = parse(
        "[[account]]\nprovider = \"vast\"\nname = \"a\"\nkey_cmd = [\"sec ret\", \"\", \"x\"]\n\
         [[account]]\nprovider = \"vast\"\nname = \"b\"\nkey_file = \"~/k\"\n\
         [[account]]\nprovider = \"vast\"\nname = \"c\"\nkey_file = \"/run/k\"\n",
    );
    let keys: Vec<KeySource> = config.unwrap().accounts.into_iter().map(|account| account.key).collect();
    let words = ["sec ret", "", "x"].map(str::to_owned).to_vec();
    assert_eq!(keys, [KeySource::Command(words), KeySource::File("~/k".into()), KeySource::File("/run/k".into())]);
}

#[test]
fn an_account_gives_its_provider_what_it_needs() {
    let access = parse(WHOLE).unwrap().accounts[0].access(SecretString::from("TESTKEY"));
    assert_eq!((access.provider.as_str(), access.account.as_str()), ("runpod", "team"));
    assert_eq!(access.base_url.as_deref(), Some("http://127.0.0.1:9001"));
    assert_eq!(access.facts["volume_stopped_per_gb_month"], "0.25");
    assert_eq!(secrecy::ExposeSecret::expose_secret(&access.key), "TESTKEY");
}

#[test]
fn windows_line_ends_and_a_byte_order_mark_change_nothing() {
    let windows = format!("\u{feff}{}", WHOLE.replace('\n', "\r\n"));
    assert_eq!(parse(&windows), parse(WHOLE));
    assert_eq!(mistakes("\u{feff}mine = []\r\ncurency = \"USD\"\r\n"), mistakes("mine = []\ncurency = \"USD\"\n"));
}

#[rstest]
#[case::no_toml(
    "mine = [\"*\"]\nname = \n",
    "2:8: this is not TOML: string values must be quoted, expected literal string"
)]
#[case::unknown_key("curency = \"USD\"", "1:1: curency: unknown key; did you mean `currency`?")]
#[case::unknown_key_far_off(
    "[[protect]]\nwhen = 1\nmatch = { name = \"x\" }",
    "2:1: protect[0].when: unknown key; known here: match"
)]
#[case::key_that_toml_quotes(
    "\"a b\" = 1",
    "1:1: \"a b\": unknown key; known here: timezone, currency, awake, mine, mouse, keys, fx, account, project, protect, idle, budget, alerts, notify, checkpoint, lease"
)]
#[case::after_wide_characters(
    "mine = [\"人民币\", 5]",
    "1:16: mine[1]: expected text in quotes, found a number without quotes"
)]
#[case::fx_unknown_currency(
    "[fx]\n\"人民币\" = 2",
    "2:1: fx.\"人民币\": `人民币` is no currency code of three letters such as `USD`"
)]
#[case::zone(
    "timezone = \"Asia/Shangai\"",
    "1:12: timezone: `Asia/Shangai` is no IANA time zone; did you mean `Asia/Shanghai`?"
)]
#[case::zone_far_off(
    "timezone = \"home\"",
    "1:12: timezone: `home` is no IANA time zone; names are such as `Asia/Shanghai`"
)]
#[case::currency(
    "currency = \"dollar\"",
    "1:12: currency: `dollar` is no currency code of three letters such as `USD`"
)]
#[case::type_of_text("currency = 5", "1:12: currency: expected text in quotes, found a number without quotes")]
#[case::type_of_list("mine = \"*\"", "1:8: mine: expected a list in [ ], found text")]
#[case::type_in_a_list("mine = [\"*\", 5]", "1:14: mine[1]: expected text in quotes, found a number without quotes")]
#[case::empty("mine = [\"\"]", "1:9: mine[0]: empty")]
#[case::label_without_key("mine = [\"=x\"]", "1:9: mine[0]: a label pattern is written key=value")]
#[case::fx_float(
    "[fx]\nCNY = { usd = 0.1389, as_of = \"2026-11-28\" }",
    "2:15: fx.CNY.usd: expected text in quotes, found a number without quotes"
)]
#[case::fx_no_decimal(
    "[fx]\nCNY = { usd = \"1e-3\", as_of = \"2026-11-28\" }",
    "2:15: fx.CNY.usd: `1e-3` is not a decimal above 0 such as \"0.1389\""
)]
#[case::fx_zero(
    "[fx]\nCNY = { usd = \"0\", as_of = \"2026-11-28\" }",
    "2:15: fx.CNY.usd: `0` is not a decimal above 0 such as \"0.1389\""
)]
#[case::fx_no_date("[fx]\nCNY = { usd = \"1\" }", "2:7: fx.CNY.as_of: missing")]
#[case::fx_wrong_date(
    "[fx]\nCNY = { usd = \"1\", as_of = \"2026-02-30\" }",
    "2:28: fx.CNY.as_of: expected a date such as \"2026-11-28\""
)]
#[case::fx_usd(
    "[fx]\nUSD = { usd = \"1\", as_of = \"2026-11-28\" }",
    "2:1: fx.USD: USD is what the other currencies are counted in"
)]
#[case::fx_twice(
    "[fx]\nCNY = { usd = \"1\", as_of = \"2026-11-28\" }\ncny = { usd = \"1\", as_of = \"2026-11-28\" }",
    "3:1: fx.cny: CNY stands here twice"
)]
#[case::project_without_match("[[project]]\nname = \"x\"", "1:1: project[0].match: missing")]
#[case::match_of_nothing(
    "[[protect]]\nmatch = {}",
    "2:9: protect[0].match: empty; to take everything write { name = \"*\" }"
)]
#[case::match_of_unknown_provider(
    "[[protect]]\nmatch = { provider = \"runpd\" }",
    "2:22: protect[0].match.provider: no provider `runpd`; did you mean `runpod`?"
)]
#[case::match_of_unknown_key(
    "[[protect]]\nmatch = { nmae = \"x\" }",
    "2:11: protect[0].match.nmae: unknown key; did you mean `name`?"
)]
#[case::one_table("[project]\nname = \"x\"", "1:1: project: there may be several: write `[[project]]`")]
#[case::escape_sequences(
    "currency = \"\\u001b[31mred\\u001b[0m\"",
    "1:12: currency: `red` is no currency code of three letters such as `USD`"
)]
#[case::several(
    "currency = 1\n[[project]]\nnam = \"x\"\nmatch = { name = \"*\" }\n",
    "1:12: currency: expected text in quotes, found a number without quotes\n\
     2:1: project[0].name: missing\n\
     3:1: project[0].nam: unknown key; did you mean `name`?"
)]
fn every_mistake_names_its_place_and_the_way_out(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(mistakes(text), expected);
}

/// A right account, followed by one that begins with a right provider, name and key where `lines` lacks them.
fn second_account(lines: &str) -> String {
    let given = |key: &str| lines.lines().any(|line| line.starts_with(key));
    let mut text = "[[account]]\nprovider = \"vast\"\nname = \"one\"\nkey_env = \"V\"\n[[account]]\n".to_owned();
    text += lines;
    for (key, line) in [("provider", "provider = \"runpod\""), ("name", "name = \"two\""), ("key_", "key_env = \"K\"")]
    {
        if !given(key) {
            text += &format!("\n{line}");
        }
    }
    text
}

#[rstest]
#[case::unknown_key("providr = \"vast\"", "6:1: account[1].providr: unknown key; did you mean `provider`?")]
#[case::key_in_the_file(
    "api_key = \"TESTKEY\"",
    "6:1: account[1].api_key: unknown key; a key itself does not belong into this file: name its source with `key_env`, `key_cmd` or `key_file`"
)]
#[case::provider("provider = \"lamda\"", "6:12: account[1].provider: no provider `lamda`; did you mean `lambda`?")]
#[case::provider_far_off(
    "provider = \"hetzner\"",
    "6:12: account[1].provider: no provider `hetzner`; there are: runpod, vast, lambda, ssh"
)]
#[case::name_twice("name = \"one\"", "6:8: account[1].name: `one` is the name of account[0] already")]
#[case::name_with_slash("name = \"a/b\"", "6:8: account[1].name: `a/b` holds a slash; names are parts of paths")]
#[case::name_with_blanks(
    "name = \" a\"",
    "6:8: account[1].name: `a` has blanks around it or characters that cannot be shown"
)]
#[case::name_empty("name = \"\"", "6:8: account[1].name: empty")]
#[case::two_sources(
    "key_env = \"A\"\nkey_cmd = \"b\"",
    "7:1: account[1].key_cmd: two key sources, `key_env` and `key_cmd`; an account has exactly one"
)]
#[case::three_sources(
    "key_file = \"c\"\nkey_cmd = \"b\"\nkey_env = \"A\"",
    "7:1: account[1].key_cmd: two key sources, `key_env` and `key_cmd`; an account has exactly one"
)]
#[case::secret_as_variable(
    "key_env = \"rpa_TESTKEY0000000000000000aaaa\"",
    "6:11: account[1].key_env: not the name of an environment variable, such as \"RUNPOD_API_KEY\"; the secret is its value"
)]
#[case::dotted_secret_as_variable(
    "key_env = \"secret.TESTKEY\"",
    "6:11: account[1].key_env: not the name of an environment variable, such as \"RUNPOD_API_KEY\"; the secret is its value"
)]
#[case::open_quote("key_cmd = \"pass 'x\"", "6:11: account[1].key_cmd: a quote in it is not closed")]
#[case::no_program("key_cmd = []", "6:11: account[1].key_cmd: no program to run")]
#[case::comment_only("key_cmd = \"# x\"", "6:11: account[1].key_cmd: no program to run")]
#[case::no_word(
    "key_cmd = [\"a\", 1]",
    "6:17: account[1].key_cmd[1]: expected text in quotes, found a number without quotes"
)]
#[case::http(
    "base_url = \"http://example.com\"",
    "6:12: account[1].base_url: `http://example.com`: plain http would show the key to others; use https"
)]
#[case::password(
    "base_url = \"https://u:TESTKEY@host:99999\"",
    "6:12: account[1].base_url: holds a user name or password; a key belongs into the account's key source"
)]
#[case::query(
    "base_url = \"https://host/?t=TESTKEY\"",
    "6:12: account[1].base_url: holds more than scheme, host and port; it replaces these only"
)]
#[case::read_only("read_only = \"yes\"", "6:13: account[1].read_only: expected true or false, found text")]
#[case::fact(
    "facts = { volume_stoped_per_gb_month = \"1\" }",
    "6:11: account[1].facts.volume_stoped_per_gb_month: no billing fact of runpod; did you mean `volume_stopped_per_gb_month`?"
)]
#[case::fact_value(
    "facts = { volume_stopped_per_gb_month = \"-1\" }",
    "6:41: account[1].facts.volume_stopped_per_gb_month: `-1` is not a decimal of 0 or more"
)]
#[case::fact_number(
    "facts = { volume_stopped_per_gb_month = 0.2 }",
    "6:41: account[1].facts.volume_stopped_per_gb_month: expected text in quotes, found a number without quotes"
)]
fn a_mistake_in_an_account_names_the_account_and_quotes_no_secret(#[case] lines: &str, #[case] expected: &str) {
    let told = mistakes(&second_account(lines));
    assert_eq!(told, expected);
    assert!(!told.contains("TESTKEY"));
}

#[test]
fn a_match_names_an_account_that_is_there() {
    let text = second_account("") + "\n[[protect]]\nmatch = { account = \"tow\" }";
    assert_eq!(mistakes(&text), "11:21: protect[0].match.account: no account `tow`; did you mean `two`?");
    // Without accounts in the file they are those that the environment offers.
    assert!(parse("[[protect]]\nmatch = { account = \"vast\" }").is_ok());
}

#[test]
fn an_account_without_a_key_source_is_told_which_there_are() {
    assert_eq!(
        mistakes("[[account]]\nprovider = \"vast\"\nname = \"a\"\n"),
        "1:1: account[0]: no key source; this version reads keys from key_env, key_cmd or key_file (the OS keyring \
         comes with `rentop login`, which is not available yet)"
    );
}

#[rstest]
#[case(
    "[[checkpoint]]\nname = \"a\"\npaths = []\nto = \"~/c\"\nevery = \"0m\"",
    "3:9: checkpoint[0].paths: empty; name what is to be brought to safety\n5:9: checkpoint[0].every: `0m` is no time span such as \"30m\" or \"2h\""
)]
#[case(
    "[[checkpoint]]\nname = \"a\"\npaths = [\"out\"]\nmatch = { provider = \"shh\" }",
    "1:1: checkpoint[0].to: missing\n3:10: checkpoint[0].paths[0]: `out` is no absolute path on the instance\n4:22: checkpoint[0].match.provider: no provider `shh`; did you mean `ssh`?"
)]
fn a_checkpoint_that_could_not_be_made_is_refused(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(mistakes(text), expected);
}

const IDLE: &str = r#"
[[idle]]
match = { name = "serve-*", project = "chat" }
after = "2h"
serving = "idle"
[[idle]]
after = "45m"
gpu_percent = 2.5
memory_percent = 1
cpu_percent = 0
disk_mb_per_s = 0.5
network_mb_per_s = 20
"#;

#[test]
fn what_a_special_rule_leaves_open_is_as_in_the_general_one() {
    let rules = parse(IDLE).unwrap().rules;
    let general = IdleRule {
        window: 45,
        gpu: 0.025,
        memory: 0.01,
        cpu: 0.0,
        disk: 500_000.0,
        network: 20_000_000.0,
        serving_is_idle: false,
    };
    assert_eq!(rules.idle_default, general);
    let [special] = &rules.idle[..] else { panic!("{:?}", rules.idle) };
    assert_eq!(special.rule, IdleRule { window: 120, serving_is_idle: true, ..general });
    assert_eq!(special.project.as_deref(), Some("chat"));
    assert_eq!(Config::default().rules.idle_default, parse("[[idle]]").unwrap().rules.idle_default);
}

#[rstest]
#[case("after = \"30s\"", "2:9: idle[0].after: `30s` is no time span of whole minutes from \"1m\" to \"24h\"")]
#[case("after = \"25h\"", "2:9: idle[0].after: `25h` is no time span of whole minutes from \"1m\" to \"24h\"")]
#[case("after = 30", "2:9: idle[0].after: expected text in quotes, found a number without quotes")]
#[case("gpu_percent = 101", "2:15: idle[0].gpu_percent: `101` is not from 0 to 100")]
#[case("gpu_percent = -1", "2:15: idle[0].gpu_percent: `-1` is not from 0 to 100")]
#[case("gpu_percent = nan", "2:15: idle[0].gpu_percent: no number that can be read")]
#[case("cpu_percent = \"20\"", "2:15: idle[0].cpu_percent: expected a number without quotes, found text")]
#[case("disk_mb_per_s = 1e9", "2:17: idle[0].disk_mb_per_s: `1000000000` is not from 0 to 1000000")]
#[case("serving = \"busy\"", "2:11: idle[0].serving: `busy` is not known; there are: waiting, idle")]
#[case("gpu_procent = 5", "2:1: idle[0].gpu_procent: unknown key; did you mean `gpu_percent`?")]
#[case("match = {}", "2:9: idle[0].match: empty; to take everything write { name = \"*\" }")]
#[case("match = { projekt = \"x\" }", "2:11: idle[0].match.projekt: unknown key; did you mean `project`?")]
#[case("[[idle]]", "2:1: idle[1]: idle[0] has no `match` already; give this one a `match`")]
fn a_mistake_in_an_idle_rule_is_told(#[case] line: &str, #[case] expected: &str) {
    assert_eq!(mistakes(&format!("[[idle]]\n{line}")), expected);
}

const OWN: &str = r#"
[[account]]
provider = "ssh"
name = "own"
[[account.machine]]
name = "autodl-1"
host = "connect.example.com"
user = "root"
port = 41234
price = "1.98 CNY"
price_stopped = "0 CNY"
gpus = "2x RTX 4090"
stop = "shutdown -h now"
release_after_off = "15d"
labels = { team = "vision" }
[[account.machine]]
name = "colleague"
host = "gpu-box"
"#;

#[test]
fn machines_without_a_provider_are_read_and_looked_into() {
    let config = parse(OWN).unwrap();
    let [account] = &config.accounts[..] else { panic!("{:?}", config.accounts) };
    assert_eq!((&account.key, account.streams), (&KeySource::NotNeeded, Consent::Always));
    let [first, second] = &account.machines[..] else { panic!("{:?}", account.machines) };
    let price = |amount: &str| Rate::per_hour(dec(amount), Currency::CNY);
    let expected = Machine {
        name: "autodl-1".to_owned(),
        endpoint: SshEndpoint::new("root", "connect.example.com", 41234, true).unwrap(),
        running: price("1.98"),
        stopped: price("0"),
        gpus: Some(Gpus::parse("RTX 4090", Some(2), None)),
        stop: Some("shutdown -h now".to_owned()),
        release_after_off: Some(jiff::SignedDuration::from_hours(15 * 24)),
        labels: BTreeMap::from([("team".to_owned(), "vision".to_owned())]),
    };
    assert_eq!(*first, expected);
    let expected = Machine {
        name: "colleague".to_owned(),
        endpoint: SshEndpoint::of_config("gpu-box", None, None).unwrap(),
        running: None,
        stopped: None,
        gpus: None,
        stop: None,
        release_after_off: None,
        labels: BTreeMap::new(),
    };
    assert_eq!(*second, expected);
}

#[rstest]
#[case::dash(
    "host = \"-oProxyCommand=x\"",
    "6:8: account[0].machine[0].host: `-oProxyCommand=x` is no name of a host or of a `Host` of your ssh config"
)]
#[case::user("host = \"h\"\nuser = \"a b\"", "7:8: account[0].machine[0].user: `a b` is no name of a user")]
#[case::port("host = \"h\"\nport = 70000", "7:8: account[0].machine[0].port: `70000` is no port from 1 to 65535")]
#[case::price(
    "host = \"h\"\nprice = \"1.98\"",
    "7:9: account[0].machine[0].price: `1.98` is no price of an hour such as \"1.98 CNY\""
)]
#[case::minus(
    "host = \"h\"\nprice = \"-1 CNY\"",
    "7:9: account[0].machine[0].price: `-1 CNY` is no price of an hour such as \"1.98 CNY\""
)]
#[case::span(
    "host = \"h\"\nrelease_after_off = \"15\"",
    "7:21: account[0].machine[0].release_after_off: `15` is no time span of up to a year such as \"15d\""
)]
#[case::no_host("", "4:1: account[0].machine[0].host: missing")]
#[case::twice(
    "host = \"h\"\n[[account.machine]]\nname = \"m\"\nhost = \"i\"",
    "8:8: account[0].machine[1].name: `m` is the name of another machine of this account"
)]
fn a_mistake_in_a_machine_is_told(#[case] lines: &str, #[case] expected: &str) {
    let text = format!("[[account]]\nprovider = \"ssh\"\nname = \"own\"\n[[account.machine]]\nname = \"m\"\n{lines}");
    assert_eq!(mistakes(&text), expected);
}

#[rstest]
#[case("provider = \"ssh\"", "1:1: account[0]: no machine; write an [[account.machine]] below it")]
#[case(
    "provider = \"ssh\"\nkey_env = \"KEY\"\nssh = \"ask\"\nmachine = [{ name = \"m\", host = \"h\" }]",
    "4:1: account[0].key_env: these machines have no API, so this means nothing\n5:7: account[0].ssh: these machines are known over ssh alone; leave this out"
)]
#[case(
    "provider = \"vast\"\nkey_env = \"KEY\"\nmachine = [{ name = \"m\", host = \"h\" }]",
    "5:1: account[0].machine: only accounts of the provider `ssh` name their machines; the others list them"
)]
#[case(
    "provider = \"vast\"\nkey_env = \"KEY\"\nssh = \"yes\"",
    "5:7: account[0].ssh: `yes` is not known; there are: ask, always, never"
)]
fn what_belongs_to_the_other_kind_of_account_is_told(#[case] lines: &str, #[case] expected: &str) {
    assert_eq!(mistakes(&format!("[[account]]\nname = \"own\"\n{lines}")), expected);
}

#[rstest]
#[case("", Consent::Unasked)]
#[case("ssh = \"ask\"", Consent::Unasked)]
#[case("ssh = \"always\"", Consent::Always)]
#[case("ssh = \"never\"", Consent::Never)]
fn whether_machines_are_looked_into_can_stand_in_the_config(#[case] line: &str, #[case] expected: Consent) {
    let text = format!("[[account]]\nprovider = \"vast\"\nname = \"a\"\nkey_env = \"KEY\"\n{line}");
    assert_eq!(parse(&text).unwrap().accounts[0].streams, expected);
}

mod files {
    use super::*;

    fn load(bytes: impl AsRef<[u8]>) -> (Result<Config, String>, String) {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("config.toml");
        std::fs::write(&file, bytes).unwrap();
        #[cfg(unix)]
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        (Config::load(&file).map_err(|error| error.to_string()), file.display().to_string())
    }

    #[test]
    fn a_missing_file_is_the_default_and_a_file_knows_its_path() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(Config::load(&home.path().join("no/config.toml")).unwrap(), Config::default());
        assert_eq!(Config::default().accounts, []);
        let (config, file) = load("currency = \"EUR\"");
        assert_eq!(config, Ok(Config { path: Some(file.into()), currency: Currency::EUR, ..Config::default() }));
    }

    #[test]
    fn a_mistake_begins_with_the_file() {
        let (told, file) = load("\ncurency = \"EUR\"");
        assert_eq!(told, Err(format!("{file}:2:1: curency: unknown key; did you mean `currency`?")));
    }

    #[test]
    fn what_is_no_config_file_is_told() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().display();
        let told = Config::load(home.path()).unwrap_err().to_string();
        assert_eq!(told, format!("{path}: this is a folder, not a config file"));
        let (told, file) = load(vec![b'#'; FILE_LIMIT_BYTES as usize + 1]);
        assert_eq!(told, Err(format!("{file}: larger than 1024 KiB, so it is no config file")));
        let (told, file) = load(b"# caf\xc3\xa9\n# caf\xe9");
        assert_eq!(told, Err(format!("{file}:2:6: this is not UTF-8 text")));
        let denied = ConfigError::Unreadable { file: "/c".into(), source: ErrorKind::PermissionDenied.into() };
        assert_eq!(denied.to_string(), "/c: no permission to read this config file");
    }

    // SEC-02
    #[cfg(unix)]
    #[rstest]
    #[case::an_address("url = \"https://h/TESTSECRET\"", true)]
    #[case::no_secret("url_env = \"HOOK\"", false)]
    fn a_file_with_an_address_that_others_can_read_is_told(#[case] line: &str, #[case] warned: bool) {
        let (config, file) = load(format!("[[notify]]\nname = \"a\"\nkind = \"slack\"\n{line}\n"));
        let config = config.unwrap();
        assert!(!format!("{config:?}").contains("TESTSECRET"));
        let told: Vec<String> = config.notices.iter().map(Notice::to_string).collect();
        let expected = format!("{file}: mode 0644 lets others read the addresses in it; run: chmod 600 {file}");
        assert_eq!(told, if warned { vec![expected] } else { vec![] });
    }
}

#[rstest]
#[case(
    "[[notify]]\nname = \"a\"\nkind = \"slak\"\nurl_env = \"HOOK\"",
    "3:8: notify[0].kind: `slak` is not known; did you mean `slack`?"
)]
#[case(
    "[[notify]]\nname = \"a\"\nkind = \"slack\"",
    "1:1: notify[0]: no address: name it with `url_env`, or write it as `url`"
)]
#[case(
    "[[notify]]\nname = \"a\"\nkind = \"slack\"\nurl = \"https://h/x\"\nurl_env = \"HOOK\"",
    "5:1: notify[0].url_env: two addresses, `url` and `url_env`; a channel has one"
)]
#[case(
    "[[notify]]\nname = \"a\"\nkind = \"slack\"\nurl = \"http://h/TESTSECRET\"",
    "4:7: notify[0].url: not an https address (plain http is for loopback only)"
)]
#[case(
    "[[notify]]\nname = \"a\"\nkind = \"slack\"\nurl_env = \"https://h/TESTSECRET\"",
    "4:11: notify[0].url_env: not the name of an environment variable, such as \"RUNPOD_API_KEY\"; the secret is its value"
)]
#[case(
    "[[notify]]\nname = \"a\"\nkind = \"desktop\"\nfrom = \"screen\"",
    "4:8: notify[0].from: `screen` is not known; there are: any, watch"
)]
#[case(
    "[[notify]]\nname = \"a\"\nkind = \"desktop\"\n[[notify]]\nname = \"a\"\nkind = \"desktop\"",
    "5:8: notify[1].name: `a` is the name of notify[0] already"
)]
#[case(
    "[[notify]]\nname = \"a\"\nkind = \"telegram\"\nurl_env = \"HOOK\"",
    "1:1: notify[0]: no `to`: the number of the chat, or \"@channel\""
)]
#[case(
    "[[notify]]\nname = \"a\"\nkind = \"telegram\"\nurl = \"https://h/TESTSECRET\"\nto = \"1\"",
    "4:7: notify[0].url: an address of Telegram ends with /bot<id>:<token>"
)]
#[case(
    "[[notify]]\nname = \"a\"\nkind = \"slack\"\nurl_env = \"HOOK\"\nsecret = \"TESTSECRET\"\nto = \"1\"",
    "5:1: notify[0].secret: only feishu and dingtalk are signed, and ntfy has a token; leave this out\n6:1: notify[0].to: only telegram wants to know to whom; leave this out"
)]
#[case(
    "[[notify]]\nname = \"a\"\nkind = \"feishu\"\nurl_env = \"HOOK\"\nsecret = \"TESTSECRET\"\nsecret_env = \"S\"",
    "6:1: notify[0].secret_env: two secrets, `secret` and `secret_env`; a channel has one"
)]
#[case(
    "[[notify]]\nname = \"a\"\nkind = \"command\"",
    "1:1: notify[0]: no `command`: the program and its arguments, as a list"
)]
#[case(
    "[[notify]]\nname = \"a\"\nkind = \"command\"\ncommand = \"notify.sh gpu\"",
    "4:11: notify[0].command: a list of the program and its arguments, such as [\"notify.sh\", \"gpu\"]; there is no shell"
)]
#[case(
    "[[notify]]\nname = \"a\"\nkind = \"command\"\ncommand = []",
    "4:11: notify[0].command: no program; the first of the list is the one that is run"
)]
#[case(
    "[[notify]]\nname = \"a\"\nkind = \"desktop\"\nurl_env = \"HOOK\"\ncommand = [\"x\"]",
    "4:1: notify[0].url_env: only a service has an address; leave this out\n5:1: notify[0].command: only a channel of the kind `command` runs one; leave this out"
)]
#[case(
    "[[notify]]\nname = \"a\"\nkind = \"desktop\"\nalerts = [\"idle\", \"runnway\"]\nactions = \"yes\"\nlanguage = \"fr\"",
    "4:19: notify[0].alerts[1]: `runnway` is not known; did you mean `runway`?\n5:11: notify[0].actions: expected true or false, found text\n6:12: notify[0].language: `fr` is not known; there are: en, zh-CN"
)]
fn a_mistake_in_a_channel_is_told_and_quotes_no_secret(#[case] text: &str, #[case] expected: &str) {
    let told = mistakes(text);
    assert_eq!(told, expected);
    assert!(!told.contains("TESTSECRET"), "{told}");
}

#[test]
fn channels_are_read() {
    let text = r#"
[[notify]]
name = "ops"
kind = "feishu"
url = "https://open.feishu.cn/open-apis/bot/v2/hook/TESTSECRET"
secret_env = "FEISHU_SECRET"
from = "watch"
alerts = ["runway", "not_done"]
actions = true
language = "zh-CN"
[[notify]]
name = "chat"
kind = "telegram"
url_env = "TELEGRAM"
to = " -100200 "
[[notify]]
name = "mine"
kind = "command"
command = ["notify.sh", "a b", ""]
[[notify]]
name = "desk"
kind = "desktop"
"#;
    let config = parse(text).unwrap();
    assert!(config.notices.is_empty() && !format!("{config:?}").contains("TESTSECRET"));
    let [ops, chat, mine, desk] = &config.channels[..] else { panic!("{:?}", config.channels) };
    let kinds = [ops, chat, mine, desk].map(|channel| channel.kind.word());
    assert_eq!(kinds, ["feishu", "telegram", "command", "desktop"]);
    assert_eq!(ops.rule.kinds, Some(vec![Kind::Runway, Kind::NotDone]));
    assert!(ops.rule.watch_only && ops.rule.actions && !chat.rule.watch_only && !chat.rule.actions);
    assert_eq!((ops.language, chat.language, &chat.rule.kinds), (Some(Language::Chinese), None, &None));
    assert_eq!(
        (chat.to.as_deref(), &mine.argv[..]),
        (Some("-100200"), &["notify.sh", "a b", ""].map(String::from)[..])
    );
    let environment = |name: &str| (name == "TELEGRAM").then(|| OsString::from("https://h/botx"));
    assert!(chat.address.as_ref().unwrap().read(&environment).is_ok());
    let missing = ops.secret.as_ref().unwrap().read(&environment).unwrap_err();
    assert_eq!(missing, "the environment variable FEISHU_SECRET is not set");
}

mod example {
    use super::*;
    use crate::config::{alerts, budget, channel, check, checkpoint, idle, lease, machine};

    /// The example with every commented line in force.
    fn uncommented() -> String {
        let in_force = |line: &'static str| match line.strip_prefix('#') {
            Some(rest) if !rest.is_empty() && !rest.starts_with(' ') => rest,
            _ => line,
        };
        EXAMPLE.lines().map(in_force).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_example_is_exactly_the_defaults() {
        assert_eq!(Config::parse(EXAMPLE, Path::new(FILE)).unwrap(), Config::default());
    }

    #[test]
    fn every_example_in_it_can_be_used() {
        // By the real providers, whose billing facts it names.
        let config = Config::parse(&uncommented(), Path::new(FILE)).unwrap();
        assert_eq!(config.accounts.len(), 4);
        assert_eq!(config.timezone_name, "Asia/Shanghai");
        assert_eq!((config.notices.len(), config.recipes.len()), (0, 3));
        assert_eq!(config.budgets.len(), 2);
        let burn = Rate::per_hour(dec("20"), Currency::USD);
        assert_eq!(config.limits, Limits { burn, awake: config.limits.awake, ..Limits::default() });
        assert_eq!(config.channels.len(), 4);
        assert!(config.lease.arm.is_some() && config.lease.check.is_some());
    }

    #[test]
    fn every_key_stands_in_it_with_a_sentence() {
        let text = uncommented();
        let sections = [
            check::ROOT,
            check::FX,
            check::ACCOUNT,
            check::PROJECT,
            check::PROTECT,
            check::MATCH,
            idle::IDLE,
            idle::MATCH,
            machine::MACHINE,
            budget::BUDGET,
            budget::PERIOD,
            budget::SCOPE,
            alerts::ALERTS,
            channel::NOTIFY,
            checkpoint::CHECKPOINT,
            lease::LEASE,
        ];
        for key in sections.into_iter().flatten() {
            let written = [format!("{key} = "), format!("[{key}]"), format!(".{key}]")]
                .iter()
                .any(|key| text.lines().any(|line| !line.starts_with('#') && line.contains(key.as_str())));
            assert!(written, "{key}");
        }
    }

    #[test]
    fn every_key_has_a_sentence_where_it_first_stands() {
        let mut seen = std::collections::BTreeSet::new();
        let (mut section, mut above) = ("", "");
        for line in EXAMPLE.lines() {
            let key = line.trim_start_matches('#');
            if key.starts_with('[') {
                section = key;
            }
            let is_key = !key.is_empty() && !key.starts_with(' ');
            if is_key && seen.insert((section, key.split(" = ").next())) {
                assert!(above.starts_with("# ") || above == format!("#{section}"), "no sentence above `{line}`");
            }
            above = line;
        }
        assert!(seen.len() > 30, "{seen:?}");
    }
}

#[rstest]
#[case::nothing(&[], &[])]
#[case::one(&[("LAMBDA_API_KEY", "k")], &["lambda LAMBDA_API_KEY"])]
#[case::empty_and_blank(&[("LAMBDA_API_KEY", ""), ("RUNPOD_API_KEY", " \n")], &[])]
#[case::the_first_that_is_set(&[("VASTAI_KEY", "k")], &["vast VASTAI_KEY"])]
#[case::the_first_of_two(&[("VASTAI_KEY", "k"), ("VAST_API_KEY", "k")], &["vast VAST_API_KEY"])]
#[case::all(&[("LAMBDA_API_KEY", "k"), ("VAST_API_KEY", "k"), ("RUNPOD_API_KEY", "k")],
    &["runpod RUNPOD_API_KEY", "vast VAST_API_KEY", "lambda LAMBDA_API_KEY"])]
fn keys_in_the_environment_are_offered_one_a_provider(
    #[case] variables: &'static [(&'static str, &'static str)],
    #[case] expected: &[&str],
) {
    let environment = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value));
    let told = |account: &AccountConfig| match &account.key {
        KeySource::Env(variable) => format!("{} {variable}", account.name),
        other => panic!("{other}"),
    };
    assert_eq!(offered(&environment, REGISTRY).iter().map(told).collect::<Vec<_>>(), expected);
}

/// Lines that are nearly right, for the property below.
fn nearly_right() -> impl Strategy<Value = String> {
    let header = prop::sample::select(vec![
        "[[account]]",
        "[[project]]",
        "[[protect]]",
        "[[idle]]",
        "[[account.machine]]",
        "[[budget]]",
        "[[notify]]",
        "[[checkpoint]]",
        "[alerts]",
        "[fx]",
        "[account]",
    ]);
    let key = prop::sample::select(vec![
        "timezone",
        "mine",
        "provider",
        "name",
        "key_env",
        "key_cmd",
        "base_url",
        "facts",
        "match",
        "limit",
        "period",
        "scope",
        "url",
        "paths",
        "every",
        "awake",
        "fx",
        "CNY",
        "x",
        "after",
        "gpu_percent",
        "serving",
        "host",
        "port",
        "price",
        "ssh",
        "thresholds",
        "forecast",
        "zone",
        "burn",
        "runway",
    ]);
    let value = prop_oneof![
        "\"[^\"\\\\\\p{C}]{0,12}\"",
        Just("5".to_owned()),
        Just("2026-01-01".to_owned()),
        Just("[\"a\", { name = \"*\" }]".to_owned()),
        "\\{ (name|account|usd|from|label) = \"[a-z=*]{0,6}\" \\}",
    ];
    let line = prop_oneof![
        1 => header.prop_map(str::to_owned),
        4 => (key, value).prop_map(|(key, value)| format!("{key} = {value}")),
    ];
    prop::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC*|[\\[\\]{}=\"'.#a-z0-9 \n\r\t]*") {
        let _outcome_is_not_the_point = parse(&text);
    }

    #[test]
    fn a_text_that_is_nearly_right_is_read_or_every_mistake_has_its_place(text in nearly_right()) {
        if let Err(told) = parse(&text) {
            let lines = text.lines().count().max(1);
            for line in told.lines() {
                let mut parts = line.strip_prefix("/home/u/config.toml:").expect("the file").splitn(3, ':');
                let number: usize = parts.next().unwrap().parse().unwrap();
                prop_assert!((1..=lines).contains(&number), "{told}");
                prop_assert!(parts.next().unwrap().parse::<usize>().unwrap() >= 1);
            }
        }
    }
}
