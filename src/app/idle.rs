//! All that is idle, and what can be done with each of them: stopped, or saved and released.

use jiff::Timestamp;
use providers::model::{Action, Identity};

use super::state::World;
use crate::rules::plan::{Hindrance, Plan, SaveFirst, Target, plan_bulk};

/// The list of all idle ones. It begins nothing: each of its answers opens a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct IdleList {
    /// To stop all of them.
    pub stop: Plan,
    /// To bring all of them to safety by what the config says, and then to release them.
    pub save: Plan,
    /// The first line on the screen.
    pub scroll: u16,
}

/// What can be done with one of them; `Err` says why it cannot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ways<'a> {
    pub identity: &'a Identity,
    pub name: &'a str,
    pub stop: Result<&'a Target, &'a Hindrance>,
    pub save: Result<&'a Target, &'a Hindrance>,
}

impl Ways<'_> {
    /// Why it is left alone, whatever could be done with it; `None` when it is not.
    pub fn left_alone(&self) -> Option<&Hindrance> {
        self.stop.err().filter(|why| matches!(why, Hindrance::Protected | Hindrance::NotMine))
    }
}

impl IdleList {
    /// Of the world as it is; `None` when nothing is idle.
    pub fn of(world: &World, now: Timestamp) -> Option<Self> {
        let idle: Vec<Identity> = world.fleet.idle.iter().cloned().collect();
        let plan = |action, save| {
            let under_way = world.busy(action);
            plan_bulk(world.basis(&under_way, now), action, &idle, &save)
        };
        let (stop, save) = (plan(Action::Stop, SaveFirst::Nothing), plan(Action::Release, SaveFirst::ByConfig));
        (!idle.is_empty()).then_some(IdleList { stop, save, scroll: 0 })
    }

    /// All of them, those that are left alone last.
    pub fn each(&self) -> Vec<Ways<'_>> {
        let targets = self.stop.targets.iter().map(|target| (&target.identity, target.name.as_str()));
        let others = self.stop.left_out.iter().map(|(identity, name, _)| (identity, name.as_str()));
        let mut each: Vec<Ways<'_>> = targets
            .chain(others)
            .map(|(identity, name)| Ways {
                identity,
                name,
                stop: way(&self.stop, identity),
                save: way(&self.save, identity),
            })
            .collect();
        each.sort_by_key(|ways| ways.left_alone().is_some());
        each
    }

    /// The identities of all of them.
    pub fn asked(&self) -> Vec<Identity> {
        self.each().into_iter().map(|ways| ways.identity.clone()).collect()
    }
}

/// What a plan says of one of those that it was made for.
fn way<'a>(plan: &'a Plan, identity: &Identity) -> Result<&'a Target, &'a Hindrance> {
    let left_out = || plan.left_out.iter().find(|(of, ..)| of == identity).map(|(.., why)| why);
    let target = plan.targets.iter().find(|target| target.identity == *identity);
    target.ok_or_else(|| left_out().unwrap_or(&Hindrance::NotThere))
}
