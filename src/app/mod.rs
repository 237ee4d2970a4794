//! What the program is doing: one event in, new state and effects out. Pure.

pub mod action;
pub mod alerting;
pub mod answers;
pub mod budget_form;
pub mod columns;
pub mod effect;
pub mod event;
pub mod figure;
pub mod gauges;
pub mod guarding;
pub mod idle;
pub mod keymap;
pub mod layout;
pub mod lease_form;
pub mod leases;
pub mod listing;
pub mod message;
pub mod notes;
pub mod palette;
pub mod preferences;
pub mod ranges;
pub mod rows;
pub mod save_form;
pub mod shelf;
pub mod spend;
pub mod spending;
pub mod state;
pub mod subject;
pub mod update;

pub use effect::Effect;
pub use event::Event;
pub use state::State;
pub use update::{next_wake, painted, settle, take, update};
