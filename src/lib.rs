//! rentop: one live screen for every GPU that you rent.
pub mod ledger;
pub mod rules;
