//! What can be done about an alert, the best first.

use providers::model::{Action as Deed, Identity, Offer, ResourceKind};

use super::action::Action;
use super::state::World;
use crate::rules::alerts::Matter;
use crate::rules::plan::delete_offer;

/// The keys that answer an alert, the best first; always some way to what it is about.
pub fn answers(world: &World, matter: &Matter) -> Vec<Action> {
    let mut answers = Vec::new();
    match matter {
        Matter::Account { .. } | Matter::NotDone { .. } => answers.push(Action::Problem),
        Matter::Runway { .. } => {
            answers.extend(some_idle(world));
            answers.push(Action::Page);
        }
        Matter::Burn { .. } | Matter::Budget { .. } | Matter::Forecast { .. } => answers.extend(some_idle(world)),
        _ => {}
    }
    // Whose data is not safe is not ended over it.
    let may_end = !matches!(matter, Matter::CopyOverdue { .. });
    if let Some(identity) = matter.identity().filter(|_| may_end) {
        answers.extend(ends(world, identity));
    }
    answers.push(Action::Details);
    answers
}

fn some_idle(world: &World) -> Option<Action> {
    (!world.fleet.idle.is_empty()).then_some(Action::AllIdle)
}

/// How its cost can be ended: what loses nothing first.
fn ends(world: &World, identity: &Identity) -> Vec<Action> {
    let may = |offer: &Offer| matches!(offer, Offer::Yes(_));
    match identity.kind {
        ResourceKind::Instance => {
            let known = world.fleet.instances.get(identity).filter(|known| !known.is_gone());
            let Some(offers) = known.map(|known| &known.row.offers) else { return Vec::new() };
            let deeds = [(Deed::Stop, Action::StopOrStart), (Deed::Release, Action::End)];
            deeds.into_iter().filter(|(deed, _)| may(&offers.of(*deed))).map(|(_, action)| action).collect()
        }
        ResourceKind::Storage => {
            let known = world.fleet.storage.get(identity).filter(|known| !known.is_gone());
            known.filter(|known| may(&delete_offer(&known.row))).map(|_| Action::End).into_iter().collect()
        }
    }
}
