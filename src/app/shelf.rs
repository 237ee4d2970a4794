//! The lines of the Storage view.

use jiff::Timestamp;

use super::listing::{Line, Listing};
use super::state::World;

/// Computes the lines anew.
pub fn rebuild(world: &World, list: &mut Listing, _resort: bool, _now: Timestamp) {
    list.lines = world.fleet.storage.keys().cloned().map(Line::Resource).collect();
    list.stale = false;
}
