//! To be written.
use crate::sim::{Shared, SimClock, World};
pub fn sample(clock: SimClock) -> World {
    World::new(clock, "sim-key")
}
pub fn routes(_: Shared) -> axum::Router {
    axum::Router::new()
}
