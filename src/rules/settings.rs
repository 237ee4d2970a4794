//! What people said about single resources, and what the config says about groups of them.

use std::collections::BTreeMap;

use providers::model::{Identity, ProviderName};
use serde::{Deserialize, Serialize};

use super::fleet::Row;
use super::matcher::Matcher;

/// What a person set for one resource by a key press. `None` leaves it to the config.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    pub protected: Option<bool>,
    pub mine: Option<bool>,
    pub project: Option<String>,
}

impl Setting {
    pub fn is_empty(&self) -> bool {
        *self == Setting::default()
    }
}

/// What belongs to a project.
#[derive(Clone, Debug, PartialEq)]
pub struct ProjectRule {
    /// The project's name; several rules may have the same.
    pub name: String,
    pub matcher: Matcher,
}

/// The rules of the config.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    pub mine: Vec<Matcher>,
    pub protect: Vec<Matcher>,
    /// The first that fits wins.
    pub projects: Vec<ProjectRule>,
}

impl Default for Rules {
    /// Everything is mine, nothing is protected, nothing belongs to a project.
    fn default() -> Self {
        Rules { mine: vec![Matcher::of_name("*")], protect: Vec::new(), projects: Vec::new() }
    }
}

/// Rules and single settings together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    pub rules: Rules,
    pub single: BTreeMap<Identity, Setting>,
}

/// The label that protects a resource, whatever its value but `false`, `no` and `0`.
const PROTECT_LABEL: &str = "rentop.protect";

impl Settings {
    /// Protected from every bulk action and every guard.
    pub fn protected(&self, provider: &ProviderName, identity: &Identity, row: &impl Row) -> bool {
        self.single.get(identity).and_then(|setting| setting.protected).unwrap_or_else(|| {
            let by_label =
                row.labels().get(PROTECT_LABEL).is_some_and(|value| !matches!(value.as_str(), "false" | "no" | "0"));
            by_label || self.rules.protect.iter().any(|rule| rule.matches(provider, &identity.account, row))
        })
    }

    /// Ours to act on in bulk.
    pub fn mine(&self, provider: &ProviderName, identity: &Identity, row: &impl Row) -> bool {
        self.single
            .get(identity)
            .and_then(|setting| setting.mine)
            .unwrap_or_else(|| self.rules.mine.iter().any(|rule| rule.matches(provider, &identity.account, row)))
    }

    pub fn project(&self, provider: &ProviderName, identity: &Identity, row: &impl Row) -> Option<&str> {
        let single = self.single.get(identity).and_then(|setting| setting.project.as_deref());
        single.or_else(|| {
            let mut rules = self.rules.projects.iter();
            let rule = rules.find(|rule| rule.matcher.matches(provider, &identity.account, row));
            rule.map(|rule| rule.name.as_str())
        })
    }
}

#[cfg(test)]
mod tests {
    use providers::model::{Instance, Phase};
    use rstest::rstest;

    use super::*;
    use crate::rules::samples::{identity, instance, item_identity, volume};

    fn named(name: Option<&str>, labels: &[(&str, &str)]) -> Instance {
        let labels = labels.iter().map(|(label, value)| ((*label).to_owned(), (*value).to_owned())).collect();
        Instance { name: name.map(str::to_owned), labels, ..instance("a", Phase::Running, "1") }
    }

    #[rstest]
    #[case::any_name("*", Some("ft-7"), true)]
    #[case::any_name_means_none_too("*", None, true)]
    #[case::a_part("ft-*", Some("ft-7"), true)]
    #[case::one_character("ft-?", Some("ft-77"), false)]
    #[case::no_name_fits_no_part("ft-*", None, false)]
    #[case::letter_case_differs("ft-*", Some("FT-7"), false)]
    #[case::another_script("训练*", Some("训练-1"), true)]
    #[case::a_label("team=vision", None, true)]
    #[case::part_of_a_labels_value("team=vis*", None, true)]
    #[case::another_value("team=audio", None, false)]
    #[case::no_such_label("owner=*", None, false)]
    #[case::blanks_around_a_label(" team = vision ", None, true)]
    fn an_entry_of_mine_is_a_name_or_a_label(#[case] entry: &str, #[case] name: Option<&str>, #[case] expected: bool) {
        let row = named(name, &[("team", "vision")]);
        assert_eq!(Matcher::parse(entry).matches(&"vast".into(), &"team".into(), &row), expected);
    }

    #[rstest]
    #[case::both(Some("team"), Some("vast"), true)]
    #[case::another_account(Some("lab"), Some("vast"), false)]
    #[case::another_provider(Some("team"), Some("runpod"), false)]
    fn every_part_of_a_matcher_must_hold(
        #[case] account: Option<&str>,
        #[case] provider: Option<&str>,
        #[case] expected: bool,
    ) {
        let matcher = Matcher {
            account: account.map(AccountName::from),
            provider: provider.map(ProviderName::from),
            ..Matcher::parse("ft-*")
        };
        let row = named(Some("ft-1"), &[]);
        assert_eq!(matcher.matches(&"vast".into(), &"team".into(), &row), expected);
        assert!(!matcher.matches(&"vast".into(), &"team".into(), &named(Some("x"), &[])));
    }

    #[test]
    fn by_default_everything_is_mine_and_nothing_is_protected() {
        let settings = Settings::default();
        for row in [named(None, &[]), named(Some("ft-1"), &[("team", "x")])] {
            assert!(settings.mine(&"vast".into(), &identity("team", "a"), &row));
            assert!(!settings.protected(&"vast".into(), &identity("team", "a"), &row));
            assert_eq!(settings.project(&"vast".into(), &identity("team", "a"), &row), None);
        }
    }

    #[rstest]
    #[case::a_label(&[("rentop.protect", "")], false, None, true)]
    #[case::a_label_that_says_no(&[("rentop.protect", "false")], false, None, false)]
    #[case::a_rule(&[], true, None, true)]
    #[case::a_key_press_beats_a_rule(&[], true, Some(false), false)]
    #[case::a_key_press_beats_a_label(&[("rentop.protect", "1")], false, Some(false), false)]
    #[case::a_key_press_alone(&[], false, Some(true), true)]
    fn a_resource_is_protected_by_label_rule_or_key(
        #[case] labels: &[(&str, &str)],
        #[case] by_rule: bool,
        #[case] pressed: Option<bool>,
        #[case] expected: bool,
    ) {
        let protect = if by_rule { vec![Matcher::parse("ft-*")] } else { Vec::new() };
        let mut settings = Settings { rules: Rules { protect, ..Rules::default() }, ..Settings::default() };
        settings.single.insert(identity("team", "a"), Setting { protected: pressed, ..Setting::default() });
        let row = named(Some("ft-1"), labels);
        assert_eq!(settings.protected(&"vast".into(), &identity("team", "a"), &row), expected);
    }

    #[test]
    fn a_setting_is_of_one_identity_only() {
        let mut settings = Settings::default();
        let setting = Setting { protected: Some(true), mine: Some(false), project: Some("llm".to_owned()) };
        assert!(!setting.is_empty() && Setting::default().is_empty());
        settings.single.insert(identity("team", "a"), setting);
        let later = Identity { generation: 1, ..identity("team", "a") };
        for other in [identity("lab", "a"), identity("team", "b"), later, item_identity("team", "a")] {
            let row = volume("a", "0.1", &[]);
            assert!(!settings.protected(&"vast".into(), &other, &row), "{other:?}");
            assert!(settings.mine(&"vast".into(), &other, &row));
        }
        let row = named(Some("x"), &[]);
        assert!(settings.protected(&"vast".into(), &identity("team", "a"), &row));
        assert!(!settings.mine(&"vast".into(), &identity("team", "a"), &row));
        assert_eq!(settings.project(&"vast".into(), &identity("team", "a"), &row), Some("llm"));
    }

    #[test]
    fn the_first_rule_that_fits_names_the_project() {
        let projects = [("first", "ft-1*"), ("second", "ft-*"), ("first", "team=vision")];
        let projects = projects.map(|(project, entry)| (project.to_owned(), Matcher::parse(entry))).to_vec();
        let settings = Settings { rules: Rules { projects, ..Rules::default() }, ..Settings::default() };
        let project = |row: &Instance| settings.project(&"vast".into(), &identity("team", "a"), row).map(str::to_owned);
        assert_eq!(project(&named(Some("ft-12"), &[])).as_deref(), Some("first"));
        assert_eq!(project(&named(Some("ft-2"), &[])).as_deref(), Some("second"));
        assert_eq!(project(&named(None, &[("team", "vision")])).as_deref(), Some("first"));
        assert_eq!(project(&named(None, &[])), None);
    }
}
