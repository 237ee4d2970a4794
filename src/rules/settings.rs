//! What people said about single resources, and what the config says about groups of them.

use std::collections::BTreeMap;

use providers::model::{Identity, ProviderName};
use serde::{Deserialize, Serialize};

use super::fleet::Row;
use super::matcher::Matcher;
use super::usage::IdleRule;

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

/// What counts as work for some instances.
#[derive(Clone, Debug, PartialEq)]
pub struct IdleRuleFor {
    pub matcher: Matcher,
    /// Of this project only.
    pub project: Option<String>,
    pub rule: IdleRule,
}

/// The rules of the config.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    pub mine: Vec<Matcher>,
    pub protect: Vec<Matcher>,
    /// The first that fits wins.
    pub projects: Vec<ProjectRule>,
    /// What counts as work; the first that fits wins.
    pub idle: Vec<IdleRuleFor>,
    /// What counts as work where none fits.
    pub idle_default: IdleRule,
}

impl Default for Rules {
    /// Everything is mine, nothing is protected, nothing belongs to a project.
    fn default() -> Self {
        Rules {
            mine: vec![Matcher::of_name("*")],
            protect: Vec::new(),
            projects: Vec::new(),
            idle: Vec::new(),
            idle_default: IdleRule::default(),
        }
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

    /// What counts as work for an instance.
    pub fn idle_rule(&self, provider: &ProviderName, identity: &Identity, row: &impl Row) -> &IdleRule {
        let fits = |rule: &&IdleRuleFor| {
            let of_project = |wanted: &String| self.project(provider, identity, row) == Some(wanted);
            rule.matcher.matches(provider, &identity.account, row) && rule.project.as_ref().is_none_or(of_project)
        };
        self.rules.idle.iter().find(fits).map_or(&self.rules.idle_default, |found| &found.rule)
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
        let protect = if by_rule { vec![Matcher::of_name("ft-*")] } else { Vec::new() };
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
        let rule = |(project, entry): (&str, &str)| ProjectRule {
            name: project.to_owned(),
            matcher: Matcher::parse(entry).unwrap(),
        };
        let projects = projects.map(rule).to_vec();
        let settings = Settings { rules: Rules { projects, ..Rules::default() }, ..Settings::default() };
        let project = |row: &Instance| settings.project(&"vast".into(), &identity("team", "a"), row).map(str::to_owned);
        assert_eq!(project(&named(Some("ft-12"), &[])).as_deref(), Some("first"));
        assert_eq!(project(&named(Some("ft-2"), &[])).as_deref(), Some("second"));
        assert_eq!(project(&named(None, &[("team", "vision")])).as_deref(), Some("first"));
        assert_eq!(project(&named(None, &[])), None);
    }
}
