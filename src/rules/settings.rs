//! What people said about single resources, and what the config says about groups of them.

use std::collections::BTreeMap;

use providers::model::{AccountName, Identity, ProviderName};
use serde::{Deserialize, Serialize};
use wildmatch::WildMatch;

use super::fleet::Row;

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

/// A condition on resources. Every part that is there must hold; one without parts matches all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matcher {
    /// A glob over the name, with `*` and `?`. A resource without a name matches `*` only.
    pub name: Option<WildMatch>,
    pub account: Option<AccountName>,
    pub provider: Option<ProviderName>,
    /// A label's key and a glob over its value.
    pub label: Option<(String, WildMatch)>,
}

impl Matcher {
    /// Reads one entry of `mine`: a name glob, or `label=value`.
    pub fn parse(text: &str) -> Self {
        match text.split_once('=') {
            Some((label, value)) => {
                Matcher { label: Some((label.trim().to_owned(), WildMatch::new(value.trim()))), ..Matcher::default() }
            }
            None => Matcher { name: Some(WildMatch::new(text)), ..Matcher::default() },
        }
    }

    pub fn matches(&self, provider: &ProviderName, account: &AccountName, row: &impl Row) -> bool {
        self.provider.as_ref().is_none_or(|wanted| wanted == provider)
            && self.account.as_ref().is_none_or(|wanted| wanted == account)
            && self.name.as_ref().is_none_or(|glob| glob.matches(row.name().unwrap_or_default()))
            && self
                .label
                .as_ref()
                .is_none_or(|(label, glob)| row.labels().get(label).is_some_and(|value| glob.matches(value)))
    }
}

/// The rules of the config.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    pub mine: Vec<Matcher>,
    pub protect: Vec<Matcher>,
    /// First match wins.
    pub projects: Vec<(String, Matcher)>,
}

impl Default for Rules {
    /// Everything is mine, nothing is protected, nothing belongs to a project.
    fn default() -> Self {
        Rules { mine: vec![Matcher::parse("*")], protect: Vec::new(), projects: Vec::new() }
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
            let rule = self.rules.projects.iter().find(|(_, rule)| rule.matches(provider, &identity.account, row));
            rule.map(|(project, _)| project.as_str())
        })
    }
}
