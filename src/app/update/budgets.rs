//! How budgets stand, brought up to date.

use std::collections::BTreeMap;

use jiff::Timestamp;
use providers::model::{Identity, Instance, Market, ResourceKind};

use super::spend;
use crate::app::effect::Effect;
use crate::app::state::World;
use crate::rules::budgets::{Budget, Inputs, Running, Thing, standing};
use crate::rules::fleet::{Known, Row};
use crate::rules::spend::Part;

/// Makes the standings anew; asks the books where they have not answered for the present terms.
pub(super) fn bring_up_to_date(world: &mut World, now: Timestamp) -> Option<Effect> {
    let terms: Vec<_> = world.budgets.rules.iter().map(|budget| (budget.name.clone(), budget.term(now).from)).collect();
    if !terms.is_empty() && world.remembered && world.budgets.asked_for != terms {
        world.budgets.asked_for = terms;
        return Some(spend::sum_up(world, now));
    }
    let standings = {
        let books = world.spending.tally.budgets();
        let beyond = world.spending.tally.beyond();
        let parts: Vec<Part<'_>> =
            beyond.spans.iter().map(|span| span.part()).chain(world.spending.meter.open_parts(now)).collect();
        let made = |budget: &Budget| {
            let takes = |identity: &Identity, project: Option<&str>| takes(world, budget, identity, project);
            let inputs = Inputs {
                drawn: books.iter().find(|drawn| drawn.name == budget.name),
                parts: parts
                    .iter()
                    .filter(|part| takes(part.identity, part.terms.project.as_deref()))
                    .cloned()
                    .collect(),
                lumps: beyond
                    .lumps
                    .iter()
                    .filter(|lump| takes(&lump.identity, lump.terms.project.as_deref()))
                    .collect(),
                running: running(world, budget),
                exchange: &world.budgets.exchange,
            };
            standing(budget, &inputs, now)
        };
        world.budgets.rules.iter().map(made).collect()
    };
    world.budgets.standings = standings;
    world.budgets.as_of = Some(now);
    None
}

fn takes(world: &World, budget: &Budget, identity: &Identity, project: Option<&str>) -> bool {
    if budget.scope.is_all() {
        return true;
    }
    let fleet = &world.fleet;
    let Some(account) = fleet.account(&identity.account) else { return false };
    let (name, labels) = match identity.kind {
        ResourceKind::Instance => row(&fleet.instances, identity),
        ResourceKind::Storage => row(&fleet.storage, identity),
    };
    let (provider, account, kind) = (&account.provider, &identity.account, Some(identity.kind));
    budget.scope.takes(&Thing { provider, account, kind, name, labels, project })
}

fn row<'a, T: Row>(
    rows: &'a BTreeMap<Identity, Known<T>>,
    identity: &Identity,
) -> (Option<&'a str>, Option<&'a BTreeMap<String, String>>) {
    rows.get(identity).map_or((None, None), |known| (known.row.name(), Some(known.row.labels())))
}

/// What runs and counts for a budget.
fn running(world: &World, budget: &Budget) -> Vec<Running> {
    let fleet = &world.fleet;
    let project = |account: &_, identity: &Identity, known: &Known<Instance>| {
        world.settings.project(account, identity, &known.row).map(str::to_owned)
    };
    let instances = fleet.instances.iter().filter_map(|(identity, known)| {
        let account = fleet.account(&identity.account)?;
        let project = project(&account.provider, identity, known);
        let prepaid = matches!(known.row.market, Market::Reserved { .. });
        let burn = if prepaid { Vec::new() } else { known.rates().certain().rates().to_vec() };
        let gpus = match known.phase() {
            providers::model::Phase::Running => known.row.gpus.as_ref().map_or(0, |gpus| gpus.count),
            _ => 0,
        };
        let counts = (!burn.is_empty() || gpus > 0) && takes(world, budget, identity, project.as_deref());
        let until = match known.row.market {
            Market::Reserved { until } => until,
            _ => None,
        };
        let ends_at = known.row.ends_at.or(until);
        counts.then(|| Running { identity: identity.clone(), rates: burn, gpus, ends_at })
    });
    let storage = fleet.storage.iter().filter_map(|(identity, known)| {
        let account = fleet.account(&identity.account)?;
        let project = world.settings.project(&account.provider, identity, &known.row);
        let burn = known.rates().certain().rates().to_vec();
        let counts = !burn.is_empty() && takes(world, budget, identity, project);
        counts.then(|| Running { identity: identity.clone(), rates: burn, gpus: 0, ends_at: None })
    });
    instances.chain(storage).collect()
}
