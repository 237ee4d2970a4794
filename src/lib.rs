//! rentop: one live screen for every GPU that you rent.
pub mod app;
pub mod rules;
pub mod ui;
