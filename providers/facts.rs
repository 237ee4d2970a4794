//! Billing facts: what a provider charges and does, as data with source and date, open to correction by
//! the user's config.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use serde::Deserialize;

/// One fact of a `facts.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fact {
    /// A decimal in quotes, so that nothing passes through a float.
    pub value: Decimal,
    /// What the value counts, for instance `USD per GB and month`.
    pub unit: String,
    /// Where it was read.
    pub source: String,
    /// When it was read, or that nobody states it.
    pub read: String,
    /// True where no primary source states it.
    #[serde(default)]
    pub unsure: bool,
}

/// A provider's facts with the user's corrections applied.
#[derive(Clone, Debug)]
pub struct Facts(BTreeMap<String, Fact>);

/// A correction that cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FactError {
    #[error("no billing fact `{key}`; there are: {known}")]
    Unknown { key: String, known: String },
    #[error("billing fact `{key}` = `{value}` is not a decimal of 0 or more")]
    NotADecimal { key: String, value: String },
}

impl Facts {
    /// Reads a provider's compiled-in file.
    pub fn built_in(toml: &str) -> Self {
        Facts(toml::from_str(toml).expect("a built-in facts.toml is valid, a test reads each"))
    }

    /// Applies corrections, each a decimal of 0 or more.
    pub fn corrected(mut self, corrections: &BTreeMap<String, String>) -> Result<Self, FactError> {
        for (key, value) in corrections {
            let known = self.0.keys().cloned().collect::<Vec<_>>().join(", ");
            let fact = self.0.get_mut(key).ok_or(FactError::Unknown { key: key.clone(), known })?;
            fact.value = value
                .parse()
                .ok()
                .filter(|value: &Decimal| !value.is_sign_negative())
                .ok_or_else(|| FactError::NotADecimal { key: key.clone(), value: value.clone() })?;
            fact.source = "config".to_owned();
        }
        Ok(self)
    }

    /// A fact by a key that the provider's own file defines.
    pub fn value(&self, key: &str) -> Decimal {
        self.0.get(key).unwrap_or_else(|| panic!("billing fact `{key}` is in the provider's facts.toml")).value
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Fact)> {
        self.0.iter().map(|(key, fact)| (key.as_str(), fact))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "[disk_per_gb_month]\nvalue = \"0.10\"\nunit = \"USD per GB and month\"\nsource = \"docs\"\nread = \"2026-08-20\"";

    #[test]
    fn the_config_corrects_a_fact_and_only_a_known_one() {
        let corrections = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        let facts = Facts::built_in(FILE).corrected(&corrections("disk_per_gb_month", "0.25")).unwrap();
        assert_eq!(facts.value("disk_per_gb_month"), "0.25".parse().unwrap());
        let unknown = Facts::built_in(FILE).corrected(&corrections("disc", "1")).unwrap_err();
        assert!(unknown.to_string().contains("disk_per_gb_month"));
        assert!(Facts::built_in(FILE).corrected(&corrections("disk_per_gb_month", "-1")).is_err());
    }
}
