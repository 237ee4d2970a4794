//! The wall clock. Everything that decides is told the time; only this file asks for it.

use jiff::Timestamp;

/// The present moment.
pub fn now() -> Timestamp {
    Timestamp::now()
}
