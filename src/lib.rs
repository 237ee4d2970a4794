//! rentop: one live screen for every GPU that you rent.

pub mod app;
//pub mod cli;
pub mod config;
pub mod ledger;
pub mod rules;
pub mod runtime;
//pub mod ui;
