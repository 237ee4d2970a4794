//! Alerts: what somebody should know of, once. `matter` is what they are about, `book` keeps them from their first
//! sign to their end, `limits` says from when on something is worth a word.

mod book;
mod limits;
mod matter;
mod night;

pub use book::{Alert, Alerts, Finding, Moot, Stage, Told, worst_first};
pub use limits::{Awake, Limits};
pub use matter::{About, Kind, Matter, Money, Severity, Topic};
pub use night::Night;
