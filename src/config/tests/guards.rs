//! Guards: from text to the config, or to exact mistakes.

use jiff::SignedDuration;
use providers::model::Action;

use super::*;
use crate::rules::budgets::Scope;
use crate::rules::guard::{Condition, Guard, Mode};
use crate::rules::matcher::Glob;

/// A guard that is whole but for these lines.
fn guard_with(lines: &str) -> String {
    format!("[[guard]]\nname = \"a\"\naction = \"stop\"\nmode = \"enforce\"\n{lines}")
}

fn guards(text: &str) -> Vec<Guard> {
    parse(text).unwrap().guards
}

#[test]
fn a_guard_says_when_what_and_how() {
    let text = "[[guard]]\nname = \"idle\"\nmatch = { provider = \"vast\", instance = \"ft-*\" }\non = \"idle\"\n\
        after = \"2h\"\naction = \"release\"\nmode = \"propose\"\ncountdown = \"3m\"\nscreen = true\nveto_label = \"keep\"";
    let scope = Scope { provider: Some("vast".into()), instance: Some(Glob::new("ft-*")), ..Scope::default() };
    let expected = Guard {
        name: "idle".to_owned(),
        scope,
        on: Condition::Idle { after: SignedDuration::from_hours(2) },
        action: Action::Release,
        mode: Mode::Propose,
        countdown: SignedDuration::from_mins(3),
        on_screen: true,
        veto_label: Some("keep".to_owned()),
    };
    assert_eq!(guards(text), [expected]);
}

#[test]
fn without_more_words_a_guard_counts_ten_minutes_and_leaves_screens_alone() {
    let text = guard_with("on = \"idle\"\nafter = \"30m\"");
    let [Guard { countdown, on_screen, veto_label, scope, .. }] = &guards(&text)[..] else { panic!("one guard") };
    assert_eq!((*countdown, *on_screen, veto_label), (SignedDuration::from_mins(10), false, &None));
    assert!(scope.is_all());
    assert_eq!(parse("").unwrap().guards, []);
}

#[rstest]
#[case::idle("on = \"idle\"\nafter = \"45m\"", Condition::Idle { after: SignedDuration::from_mins(45) })]
#[case::runway("on = \"runway\"\nbelow = \"2h\"", Condition::Runway { below: SignedDuration::from_hours(2) })]
#[case::burn(
    "on = \"burn\"\nabove = \"20 USD\"",
    Condition::Burn { above: Rate::per_hour(20.into(), Currency::USD).unwrap() }
)]
#[case::budget(
    "on = \"budget\"\nbudget = \"b\"\n[[budget]]\nname = \"b\"\nlimit = \"5 USD\"\nperiod = \"day\"",
    Condition::Budget { name: "b".to_owned(), percent: 100 }
)]
#[case::a_part_of_a_budget(
    "on = \"budget\"\nbudget = \"b\"\nat = 90\n[[budget]]\nname = \"b\"\nlimit = \"5 USD\"\nperiod = \"day\"",
    Condition::Budget { name: "b".to_owned(), percent: 90 }
)]
fn each_condition_has_its_own_keys(#[case] lines: &str, #[case] expected: Condition) {
    assert_eq!(guards(&guard_with(lines))[0].on, expected);
}

#[rstest]
#[case::nothing_said("", "1:1: guard[0].on: missing")]
#[case::another_condition("on = \"idel\"", "5:6: guard[0].on: `idel` is not known; did you mean `idle`?")]
#[case::no_time("on = \"idle\"", "1:1: guard[0].after: missing")]
#[case::a_key_of_another(
    "on = \"idle\"\nafter = \"1h\"\nbelow = \"2h\"",
    "7:1: guard[0].below: means nothing for a guard on `idle`"
)]
#[case::no_budget(
    "on = \"budget\"\nbudget = \"month\"",
    "6:10: guard[0].budget: no budget `month`; the config has none"
)]
#[case::another_budget(
    "on = \"budget\"\nbudget = \"mnth\"\n[[budget]]\nname = \"month\"\nlimit = \"5 USD\"\nperiod = \"month\"",
    "6:10: guard[0].budget: no budget `mnth`; did you mean `month`?"
)]
#[case::no_rate("on = \"burn\"\nabove = \"20\"", "6:9: guard[0].above: `20` is no amount an hour such as \"20 USD\"")]
#[case::no_percent(
    "on = \"budget\"\nbudget = \"b\"\nat = 0\n[[budget]]\nname = \"b\"\nlimit = \"5 USD\"\nperiod = \"day\"",
    "7:6: guard[0].at: `0` is no whole percent from 1 to 1000"
)]
#[case::a_countdown_that_nobody_sees(
    "on = \"idle\"\nafter = \"1h\"\ncountdown = \"1s\"",
    "7:13: guard[0].countdown: `1s` is no time span such as \"30m\" or \"2h\" of at least 5s, at most 744h"
)]
#[case::a_label_with_a_value(
    "on = \"idle\"\nafter = \"1h\"\nveto_label = \"keep=1\"",
    "7:14: guard[0].veto_label: `keep=1` is no label's name, such as \"keep\""
)]
fn a_guard_that_cannot_be_meant_is_refused(#[case] lines: &str, #[case] expected: &str) {
    assert_eq!(mistakes(&guard_with(lines)), expected);
}

#[test]
fn what_a_guard_does_must_be_said() {
    assert_eq!(
        mistakes("[[guard]]\nname = \"a\"\non = \"idle\"\nafter = \"1h\""),
        "1:1: guard[0].action: missing\n1:1: guard[0].mode: missing"
    );
    assert_eq!(
        mistakes("[[guard]]\nname = \"a\"\non = \"idle\"\nafter = \"1h\"\naction = \"delete\"\nmode = \"enforce\""),
        "5:10: guard[0].action: `delete` is not known; there are: stop, release"
    );
}
