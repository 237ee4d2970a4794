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
