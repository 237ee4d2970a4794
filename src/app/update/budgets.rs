//! How budgets stand, brought up to date.

use jiff::Timestamp;

use crate::app::state::World;

/// Makes the standings anew when they are due.
pub(super) fn bring_up_to_date(world: &mut World, now: Timestamp) {
    let _ = (world, now);
}
