use std::path::Path;

use proptest::prelude::*;
use rstest::rstest;

use super::*;

const FILE: &str = "/home/u/config.toml";

/// A config as somebody keeps it: with comments, odd blanks and quotes of both kinds.
const KEPT: &str = "\
# ours
timezone = 'Asia/Shanghai'   # where we sit

[[budget]]   # the big one
  name = 'all' # everything
  limit   =   \"1500 USD\"  # agreed in May
  period = \"month\"
  # Berlin pays
  zone = 'Europe/Berlin' # so far
  thresholds = [ 50,80 ]

[[budget]]
name = \"art\"
limit = \"200 gpu-h\"
period = { from = 2026-09-01, to = 2026-12-31 } # a term
scope = { project = \"art\" } # sd and comfy
forecast = false

[fx]
CNY = { usd = \"0.1389\", as_of = 2026-11-28 }
# the end";

fn draft(name: &str) -> BudgetDraft {
    let of = |text: &str| text.to_owned();
    let all = BudgetDraft {
        name: of("all"),
        limit: of("1500 USD"),
        period: of("month"),
        thresholds: of("50, 80"),
        forecast: of("100"),
        zone: of("Europe/Berlin"),
        ..BudgetDraft::default()
    };
    let art = BudgetDraft {
        name: of("art"),
        limit: of("200 gpu-h"),
        period: of("2026-09-01 2026-12-31"),
        scope_kind: of("project"),
        scope: of("art"),
        thresholds: of("50 80 100"),
        ..BudgetDraft::default()
    };
    if name == "all" { all } else { art }
}

/// Fields of a form, and what is typed into them.
type Fields = &'static [(&'static str, &'static str)];

fn set(draft: &mut BudgetDraft, fields: Fields) {
    for (field, typed) in fields {
        let place = match *field {
            "name" => &mut draft.name,
            "limit" => &mut draft.limit,
            "period" => &mut draft.period,
            "scope_kind" => &mut draft.scope_kind,
            "scope" => &mut draft.scope,
            "thresholds" => &mut draft.thresholds,
            "forecast" => &mut draft.forecast,
            _ => &mut draft.zone,
        };
        (*typed).clone_into(place);
    }
}

fn changed(text: &str, of: &str, fields: Fields) -> Result<String, String> {
    let mut wanted = draft(of);
    set(&mut wanted, fields);
    with_budget(text, Path::new(FILE), &wanted, Some(of))
}

#[test]
fn what_is_as_it_was_is_written_as_it_was() {
    for of in ["all", "art"] {
        assert_eq!(changed(KEPT, of, &[]), Ok(KEPT.to_owned()));
    }
}

#[rstest]
#[case::limit("all", &[("limit", "2000 CNY")], "\"1500 USD\"", "\"2000 CNY\"")]
#[case::name("all", &[("name", "every \"thing\" #1")], "'all'", r#""every \"thing\" #1""#)]
#[case::period("all", &[("period", "2026-01-01..2026-02-28")], "\"month\"",
    "{ from = \"2026-01-01\", to = \"2026-02-28\" }")]
#[case::zone("all", &[("zone", "UTC")], "'Europe/Berlin'", "\"UTC\"")]
#[case::no_zone_of_its_own("all", &[("zone", "")], "zone = 'Europe/Berlin' # so far", "# so far")]
#[case::thresholds("all", &[("thresholds", "75%, 90%")], "[ 50,80 ]", "[75, 90]")]
#[case::no_thresholds("all", &[("thresholds", "")], "[ 50,80 ]", "[]")]
#[case::forecast("art", &[("forecast", "120 %")], "false", "120")]
#[case::a_date("art", &[("period", "2026-09-01 – 2027-01-31")], "2026-09-01, to = 2026-12-31",
    "\"2026-09-01\", to = \"2027-01-31\"")]
#[case::a_word("art", &[("period", "total")], "{ from = 2026-09-01, to = 2026-12-31 }", "\"total\"")]
#[case::another_project("art", &[("scope", "客户甲")], "{ project = \"art\" }", "{ project = \"客户甲\" }")]
#[case::another_kind("art", &[("scope_kind", "instance"), ("scope", "sd-*")],
    "{ project = \"art\" }", "{ instance = \"sd-*\" }")]
#[case::everything("art", &[("scope_kind", ""), ("scope", "")],
    "scope = { project = \"art\" } # sd", "# sd")]
#[case::a_new_key("all", &[("forecast", "90")], "# agreed in May\n", "# agreed in May\n  forecast = 90\n")]
#[case::a_new_scope("all", &[("scope_kind", "provider"), ("scope", "vast")],
    "# agreed in May\n", "# agreed in May\n  scope = { provider = \"vast\" }\n")]
fn a_change_changes_its_own_text_and_nothing_else(
    #[case] of: &str,
    #[case] change: Fields,
    #[case] old: &str,
    #[case] new: &str,
) {
    assert_eq!(KEPT.matches(old).count(), 1, "{old}");
    let told = changed(KEPT, of, change);
    assert_eq!(told, Ok(KEPT.replace(old, new)));
    // And so with other line ends.
    let windows = |text: &str| text.replace('\n', "\r\n");
    assert_eq!(changed(&windows(KEPT), of, change), Ok(windows(&KEPT.replace(old, new))));
}

const ART: &str = "[[budget]]\nname = \"art\"\nlimit = \"200 gpu-h\"\nforecast = false\n";

#[rstest]
#[case::headers(
    "[budget.period]\nfrom = 2026-09-01 # autumn\nto = 2026-12-31\n[budget.scope]\nproject = \"art\" # ours\n",
    &[("period", "2026-09-02 2026-12-30"), ("scope_kind", "account"), ("scope", "me")],
    Ok("[budget.period]\nfrom = \"2026-09-02\" # autumn\nto = \"2026-12-30\"\n[budget.scope]\naccount = \"me\" # ours\n")
)]
#[case::dots(
    "period.from = 2026-09-01\nperiod.to = 2026-12-31\nscope.project = 'art'\n",
    &[("scope_kind", ""), ("scope", "")],
    Ok("period.from = 2026-09-01\nperiod.to = 2026-12-31\n")
)]
#[case::dots_to_a_word(
    "period.from = 2026-09-01\nperiod.to = 2026-12-31\nscope.project = 'art'\n",
    &[("period", "month")],
    Err(BY_HAND)
)]
#[case::one_of_two(
    "period = { from = 2026-09-01, to = 2026-12-31 }\nscope = { account = \"me\", project = \"art\" }\n",
    &[("scope", "film")],
    Ok("period = { from = 2026-09-01, to = 2026-12-31 }\nscope = { account = \"me\", project = \"film\" }\n")
)]
#[case::both_of_two(
    "period = { from = 2026-09-01, to = 2026-12-31 }\nscope = { account = \"me\", project = \"art\" }\n",
    &[("scope_kind", "provider"), ("scope", "vast")],
    Err(SEVERAL)
)]
fn other_ways_of_writing_are_kept(#[case] lines: &str, #[case] change: Fields, #[case] expected: Result<&str, &str>) {
    let told = changed(&format!("{ART}{lines}"), "art", change);
    assert_eq!(told, expected.map(|lines| format!("{ART}{lines}")).map_err(str::to_owned));
}

#[rstest]
#[case(
    "[{ name = \"all\", limit = \"1 USD\", period = \"day\" }]",
    "[{ name = \"all\", limit = \"1500 USD\", \
    thresholds = [50, 80], zone = \"Europe/Berlin\", period = \"month\" }]"
)]
#[case(
    "[{ name = \"all\", zone = \"UTC\", scope = { project = \"x\" }, limit = \"1500 USD\", period = \"month\" },]",
    "[{ name = \"all\", zone = \"Europe/Berlin\", limit = \"1500 USD\", thresholds = [50, 80], period = \"month\" },]"
)]
fn budgets_in_a_list_are_changed_in_it(#[case] list: &str, #[case] expected: &str) {
    let text = format!("budget = {list} # short\nmouse = false\n");
    let told = changed(&text, "all", &[]).map(|text| {
        assert!(text.ends_with(" # short\nmouse = false\n"), "{text}");
        Config::parse(&text, Path::new(FILE)).unwrap().budgets
    });
    let expected = Config::parse(&format!("budget = {expected}"), Path::new(FILE)).unwrap().budgets;
    assert_eq!(told, Ok(expected));
}

#[rstest]
#[case::nothing("", "")]
#[case::no_line_end("mouse = true", "\n\n")]
#[case::a_table_at_the_end("[fx]\nCNY = { usd = \"0.1\", as_of = 2026-11-28 }\n", "\n")]
#[case::a_mark_at_the_beginning("\u{feff}# a\n", "\n")]
fn a_new_budget_comes_last(#[case] text: &str, #[case] gap: &str) {
    let wanted = draft("art");
    let told = with_budget(text, Path::new(FILE), &wanted, None).unwrap();
    let section = "[[budget]]\nname = \"art\"\nlimit = \"200 gpu-h\"\n\
        period = { from = \"2026-09-01\", to = \"2026-12-31\" }\nscope = { project = \"art\" }\nforecast = false\n";
    assert_eq!(told, format!("{text}{gap}{section}"));
}

#[rstest]
#[case("budget = []\n")]
#[case("budget = [{ name = \"a\", limit = \"1 USD\", period = \"day\" }]\n")]
#[case("budget = [\n  { name = \"a\", limit = \"1 USD\", period = \"day\" }, # a\n]\n")]
fn a_new_budget_joins_a_list(#[case] text: &str) {
    let told = with_budget(text, Path::new(FILE), &draft("all"), None).unwrap();
    let config = Config::parse(&told, Path::new(FILE)).unwrap();
    assert_eq!(config.budgets.last().map(|budget| budget.name.as_str()), Some("all"), "{told}");
}

#[rstest]
#[case(&[("name", "art")], "name: `art` is the name of budget[0] already")]
#[case(&[("name", " ")], "name: empty")]
#[case(&[("limit", "1500")], "limit: `1500` has no unit; write \"1500 USD\", or \"1500 gpu-h\"")]
#[case(&[("period", "mounth")], "period: `mounth` is not known; did you mean `month`?")]
#[case(&[("period", "2026-12-31 to 2026-09-01")], "period.to: 2026-09-01 is before 2026-12-31")]
#[case(&[("scope_kind", "projekt")], "scope: did you mean `project`?")]
#[case(&[("scope_kind", "project")], "scope: say which project")]
#[case(&[("scope_kind", "account"), ("scope", "tema")], "scope.account: no account `tema`; did you mean `team`?")]
#[case(&[("thresholds", "80, 50")], "thresholds[1]: 50 comes after 80; they rise")]
#[case(&[("thresholds", "half")], "thresholds: `half` is no whole percent")]
#[case(&[("forecast", "-5")], "forecast: `-5` is no whole percent")]
#[case(&[("forecast", "5000")], "forecast: `5000` is no whole percent from 1 to 1000")]
#[case(&[("zone", "Berlin")], "zone: `Berlin` is no IANA time zone; names are such as `Asia/Shanghai`")]
fn a_mistake_in_a_form_is_told_by_its_field(#[case] change: Fields, #[case] told: &str) {
    let text = format!("{ART}period = \"day\"\n[[account]]\nprovider = \"vast\"\nname = \"team\"\nkey_env = \"K\"\n");
    let mut wanted = draft("all");
    set(&mut wanted, change);
    assert_eq!(with_budget(&text, Path::new(FILE), &wanted, None), Err(told.to_owned()));
}

#[test]
fn a_file_that_has_mistakes_or_lost_the_budget_stays_as_it_is() {
    assert_eq!(
        changed("mouse = 5", "all", &[]),
        Err(format!("{FILE}:1:9: mouse: expected true or false, found a number without quotes"))
    );
    assert_eq!(changed(ART, "all", &[]).unwrap_err(), format!("{FILE}:1:1: budget[0].period: missing"));
    assert_eq!(changed("", "all", &[]), Err("there is no budget `all` in the config file any more".to_owned()));
}

#[cfg(unix)]
mod files {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn home(text: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("config.toml");
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        (home, file)
    }

    fn mode(file: &Path) -> u32 {
        fs::metadata(file).unwrap().permissions().mode() & 0o777
    }

    /// Nothing is left beside it.
    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_keeps_its_mode_and_a_link_stays() {
        for bits in [0o600, 0o640] {
            let (home, file) = home(KEPT, bits);
            let link = home.path().join("link.toml");
            symlink("config.toml", &link).unwrap();
            save_budget(&link, &BudgetDraft { limit: "7 USD".into(), ..draft("all") }, Some("all")).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), KEPT.replace("1500 USD", "7 USD"));
            assert_eq!((mode(&file), fs::read_link(&link).unwrap()), (bits, "config.toml".into()));
            assert_eq!(names(home.path()), ["config.toml", "link.toml"]);
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_begun_for_its_owner_alone() {
        let home = tempfile::tempdir().unwrap();
        let (link, file) = (home.path().join("link.toml"), home.path().join("new/config.toml"));
        symlink("new/config.toml", &link).unwrap();
        save_budget(&link, &draft("art"), None).unwrap();
        assert_eq!((mode(&file), Config::load(&link).unwrap().budgets.len()), (0o600, 1));
    }

    #[test]
    fn a_file_that_changed_meanwhile_is_left_alone() {
        let (home, file) = home(KEPT, 0o600);
        let told = save_when(&file, &draft("art"), Some("all"), || fs::write(&file, "mouse = true").unwrap());
        assert_eq!(told.unwrap_err(), "name: `art` is the name of budget[0] already");
        let change = BudgetDraft { limit: "7 USD".into(), ..draft("all") };
        let told = save_when(&file, &change, Some("all"), || fs::write(&file, "mouse = true").unwrap());
        let shown = file.display();
        assert_eq!(told, Err(format!("{shown}: somebody else has just changed it; nothing was written")));
        assert_eq!(fs::read_to_string(&file).unwrap(), "mouse = true");
        assert_eq!(names(home.path()), ["config.toml"]);
    }

    #[test]
    fn what_cannot_be_written_is_told_and_stays() {
        let (home, file) = home(KEPT, 0o400);
        let change = BudgetDraft { limit: "7 USD".into(), ..draft("all") };
        let told = save_budget(&file, &change, Some("all"));
        assert_eq!(told, Err(format!("{}: no permission to write there; nothing was written", file.display())));
        assert_eq!(
            (fs::read_to_string(&file).unwrap(), names(home.path())),
            (KEPT.to_owned(), vec!["config.toml".into()])
        );
        let told = save_budget(home.path(), &change, Some("all"));
        assert_eq!(told, Err(format!("{}: this is a folder, not a config file", home.path().display())));
        let below = file.join("config.toml");
        assert!(save_budget(&below, &change, None).unwrap_err().starts_with(&below.display().to_string()));
    }
}

/// Lines that somebody may have around and in a budget.
fn noise() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "# limit = \"9 USD\"\n", "\n", "  # 备注 name = \"all\"\n", "\t\n", "#[[budget]]\n"])
        .prop_map(str::to_owned)
}

fn drafts() -> impl Strategy<Value = BudgetDraft> {
    let word = |words: &'static [&'static str]| prop::sample::select(words).prop_map(str::to_owned);
    let scope = prop::sample::select(vec![
        ("", ""),
        ("project", "a\"b"),
        ("instance", "x-*"),
        ("label", "k=v"),
        ("provider", "vast"),
    ]);
    (
        "[a-z客\"#']{0,5}[a-z]",
        word(&["5 USD", "7.50 CNY", "200 gpu-h"]),
        word(&["day", "month", "total", "2026-01-01 2026-03-01"]),
        scope,
        word(&["", "50", "50,80,100", "1 1000"]),
        word(&["", "100", "90"]),
        word(&["", "UTC", "Asia/Tokyo"]),
    )
        .prop_map(|(name, limit, period, (kind, scope), thresholds, forecast, zone)| BudgetDraft {
            name,
            limit,
            period,
            scope_kind: kind.to_owned(),
            scope: scope.to_owned(),
            thresholds,
            forecast,
            zone,
        })
}

proptest! {
    /// Written, changed, and changed back: what is around it stays, and the budget is the first one again.
    #[test]
    fn whatever_stands_around_a_budget_stays(
        around in prop::collection::vec(noise(), 3),
        one in drafts(),
        two in drafts(),
        windows: bool,
    ) {
        let file = Path::new(FILE);
        let [before, between, after] = &around[..] else { unreachable!() };
        let head = format!("{before}timezone = \"UTC\" # here\n{between}[[budget]]\nname = \"9\"\nlimit = \"1 USD\" # so\nperiod = \"day\"\n{after}");
        let head = if windows { head.replace('\n', "\r\n") } else { head };
        let added = with_budget(&head, file, &one, None).unwrap();
        prop_assert!(added.starts_with(&head));
        let changed = with_budget(&added, file, &two, Some(&one.name)).unwrap();
        prop_assert!(changed.starts_with(&head), "{changed}");
        let back = with_budget(&changed, file, &one, Some(&two.name)).unwrap();
        prop_assert!(back.starts_with(&head));
        let budgets = |text: &str| Config::parse(text, file).unwrap().budgets;
        prop_assert_eq!(budgets(&back), budgets(&added));
        prop_assert_eq!(with_budget(&back, file, &one, Some(&one.name)).unwrap(), back.clone());
        prop_assert_eq!(back.contains("\r\n"), windows);
        prop_assert!(!windows || back.matches('\n').count() == back.matches("\r\n").count());
    }
}
