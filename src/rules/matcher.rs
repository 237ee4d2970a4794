//! Patterns over what a resource is called and where it is: `match = { … }` and the entries of `mine`.

use std::collections::BTreeMap;

use providers::model::{AccountName, ProviderName};
use wildmatch::WildMatch;

use super::fleet::Row;

/// A pattern with `*` (any text) and `?` (one character); upper and lower case differ.
pub type Glob = WildMatch;

/// A label that must be there, with a value that fits.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelPattern {
    pub key: String,
    /// `None` when any value will do.
    pub value: Option<Glob>,
}

impl LabelPattern {
    /// Reads `key=value glob` or `key`; `None` when there is no key.
    pub fn parse(text: &str) -> Option<Self> {
        let (key, value) = match text.split_once('=') {
            Some((key, value)) => (key.trim(), Some(Glob::new(value.trim()))),
            None => (text.trim(), None),
        };
        (!key.is_empty()).then(|| LabelPattern { key: key.to_owned(), value })
    }

    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        labels.get(&self.key).is_some_and(|label| self.value.as_ref().is_none_or(|value| value.matches(label)))
    }
}

/// Some resources: all conditions that are given must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matcher {
    /// A resource without a name counts as one with an empty name: `*` takes it, `ft-*` does not.
    pub name: Option<Glob>,
    pub account: Option<AccountName>,
    pub provider: Option<ProviderName>,
    pub label: Option<LabelPattern>,
}

impl Matcher {
    /// Everything of a name that fits a glob.
    pub fn of_name(glob: &str) -> Self {
        Matcher { name: Some(Glob::new(glob.trim())), ..Matcher::default() }
    }

    /// Reads an entry of `mine`: with `=` in it a label, else a glob of the name. `None` for a label
    /// without a key.
    pub fn parse(text: &str) -> Option<Self> {
        if text.contains('=') {
            LabelPattern::parse(text).map(|label| Matcher { label: Some(label), ..Matcher::default() })
        } else {
            Some(Matcher::of_name(text))
        }
    }

    pub fn matches(&self, provider: &ProviderName, account: &AccountName, row: &impl Row) -> bool {
        self.name.as_ref().is_none_or(|glob| glob.matches(row.name().unwrap_or_default()))
            && self.account.as_ref().is_none_or(|wanted| wanted == account)
            && self.provider.as_ref().is_none_or(|wanted| wanted == provider)
            && self.label.as_ref().is_none_or(|label| label.matches(row.labels()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::samples;
    use providers::model::{Instance, Phase};
    use rstest::rstest;

    fn labels() -> BTreeMap<String, String> {
        BTreeMap::from([("team".to_owned(), "vision-eu".to_owned()), ("keep".to_owned(), String::new())])
    }

    #[rstest]
    #[case("*", None, true)]
    #[case("ft-*", None, false)]
    #[case("ft-*", Some("ft-7"), true)]
    #[case("ft-*", Some("FT-7"), false)]
    #[case("ft-?", Some("ft-77"), false)]
    #[case("训练*", Some("训练-1"), true)]
    #[case("team=vision-eu", Some("x"), true)]
    #[case("team=vision-*", None, true)]
    #[case("team = vision-eu", None, true)]
    #[case("team=vision", Some("x"), false)]
    #[case("keep=", None, true)]
    #[case("other=*", None, false)]
    fn an_entry_of_mine_is_a_name_or_a_label(#[case] entry: &str, #[case] name: Option<&str>, #[case] expected: bool) {
        let row = Instance {
            name: name.map(str::to_owned),
            labels: labels(),
            ..samples::instance("a1", Phase::Running, "1")
        };
        assert_eq!(Matcher::parse(entry).unwrap().matches(&"vast".into(), &"team".into(), &row), expected);
    }

    #[test]
    fn a_label_pattern_needs_a_key() {
        assert_eq!(Matcher::parse("=x"), None);
        assert_eq!(LabelPattern::parse(" "), None);
        assert!(LabelPattern::parse("keep").unwrap().matches(&labels()));
        assert!(!LabelPattern::parse("team=").unwrap().matches(&labels()));
    }

    fn matcher(name: &str, account: &str, provider: &str, label: &str) -> Matcher {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Matcher {
            name: given(name).map(|text| Glob::new(&text)),
            account: given(account).map(AccountName::new),
            provider: given(provider).map(ProviderName::new),
            label: given(label).and_then(|text| LabelPattern::parse(&text)),
        }
    }

    #[rstest]
    #[case::nothing_asked(matcher("", "", "", ""), true)]
    #[case::all_hold(matcher("ft-*", "team", "vast", "team=vision-*"), true)]
    #[case::name_differs(matcher("prod-*", "team", "vast", "team=vision-*"), false)]
    #[case::account_differs(matcher("ft-*", "me", "vast", "team=vision-*"), false)]
    #[case::provider_differs(matcher("ft-*", "team", "runpod", "team=vision-*"), false)]
    #[case::label_differs(matcher("ft-*", "team", "vast", "team=audio"), false)]
    fn every_condition_of_a_match_must_hold(#[case] matcher: Matcher, #[case] expected: bool) {
        let row = Instance {
            name: Some("ft-7".to_owned()),
            labels: labels(),
            ..samples::instance("a1", Phase::Running, "1")
        };
        assert_eq!(matcher.matches(&"vast".into(), &"team".into(), &row), expected);
    }
}
