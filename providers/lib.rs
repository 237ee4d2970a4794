//! GPU rental providers: the domain model and one adapter for each provider's HTTP interface.
//!
//! [`channels`] are the services that messages go to: the same client, another sort of secret.
//!
//! This crate is at the bottom: it knows wires and words, and no screen, rule, database or config file.
//!
//! To add a provider:
//! 1. make a folder with `mod.rs` (the adapter), `wire.rs` (what the interface says, word for word),
//!    `facts.toml` (billing facts, each with source and date), `simulator.rs` (the same wire served from
//!    [`sim::World`]) and `fixtures/` (answers, secrets removed);
//! 2. give it an [`provider::Entry`] named `ENTRY` and a line in [`PROVIDERS`] below;
//! 3. name it in README.md's table of providers (a test tells when it is missing).
//!
//! [`ssh`] is the exception: it has no wire of its own, and what it needs of the world comes by its `Shell`.

pub mod channels;
pub mod error;
pub mod facts;
pub mod gpu;
pub mod http;
pub mod lambda;
pub mod model;
pub mod money;
pub mod provider;
pub mod runpod;
#[cfg(feature = "simulator")]
pub mod sim;
pub mod ssh;
pub mod text;
pub mod usage;
pub mod vast;

/// Every provider, in the order in which lists show them.
pub static PROVIDERS: &[&provider::Entry] = &[&runpod::ENTRY, &vast::ENTRY, &lambda::ENTRY, &ssh::ENTRY];

/// The provider of a name.
pub fn find(name: &str) -> Option<&'static provider::Entry> {
    PROVIDERS.iter().copied().find(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_fact_has_source_and_date() {
        for entry in PROVIDERS {
            for (key, fact) in facts::Facts::built_in(entry.facts).iter() {
                assert!(fact.source.len() > 3 && fact.read.len() > 3 && !fact.unit.is_empty(), "{}: {key}", entry.name);
            }
        }
    }

    #[test]
    fn names_are_unique_and_plain() {
        for (at, entry) in PROVIDERS.iter().enumerate() {
            assert!(entry.name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()), "{}", entry.name);
            assert!(PROVIDERS[at + 1..].iter().all(|other| other.name != entry.name), "{}", entry.name);
        }
    }
}
