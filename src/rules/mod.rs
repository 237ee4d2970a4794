//! What is true and what follows from it: pure functions of values, time included.
//!
//! Nothing here touches a network, a disk, a database, a terminal, a task or a clock, and nothing here
//! knows a screen.

pub mod alerts;
pub mod budgets;
pub mod checkpoint;
pub mod dispatch;
pub mod earlier;
pub mod filter;
pub mod fleet;
pub mod guard;
pub mod lease;
pub mod matcher;
pub mod memory;
pub mod naming;
pub mod plan;
pub mod probe;
pub mod runway;
pub mod saga;
pub mod savings;
pub mod schedule;
pub mod settings;
pub mod spend;
pub mod streams;
pub mod upkeep;
pub mod usage;

#[cfg(test)]
pub(crate) mod samples;
