//! What is worth an alert now.

use jiff::Timestamp;

use crate::app::state::World;
use crate::rules::alerts::{Finding, Topic};

/// All that is the case, as far as it is known.
pub(super) fn all(world: &mut World, now: Timestamp) -> Vec<Finding> {
    let _ = now;
    let mut found = std::mem::take(&mut world.alerting.events);
    let budgets = &world.budgets;
    for (budget, standing) in budgets.rules.iter().zip(&budgets.standings) {
        if let Some(standing) = standing {
            found.extend(crate::rules::budgets::findings(budget, standing, &world.alerting.alerts));
        }
    }
    found
}

/// Nobody knows whether it still is so.
pub(super) fn is_doubtful(world: &World, topic: &Topic) -> bool {
    let _ = (world, topic);
    false
}
