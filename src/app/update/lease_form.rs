//! The form of a lease: opened, typed into, and what comes of it.

use jiff::Timestamp;
use providers::model::{Identity, Phase, ResourceKind};

use super::view::{intend, say};
use super::windows::edit;
use crate::app::action::{Code, Key};
use crate::app::effect::Effect;
use crate::app::event::Intent;
use crate::app::lease_form::{LeaseForm, Wish, read, typed};
use crate::app::leases::currencies;
use crate::app::message::Msg;
use crate::app::state::{Modal, State};

/// Opens the form for the instances that are pointed at.
pub(super) fn open(state: &mut State, now: Timestamp) {
    let mut asked = state.view.list().pointed();
    asked.retain(|identity| identity.kind == ResourceKind::Instance);
    if asked.is_empty() {
        return say(&mut state.view, Msg::NothingSelected, now);
    }
    let world = &state.world;
    let zone = &world.spending.zone;
    let there: Vec<_> = asked
        .iter()
        .flat_map(|identity| world.leases.of(identity))
        .map(|lease| (lease, typed(&lease.when, zone)))
        .collect();
    let rests = |identity: &Identity| {
        let known = world.fleet.instances.get(identity);
        known.is_some_and(|known| matches!(known.phase(), Phase::Stopped | Phase::Reclaimed))
    };
    let starts = asked.iter().all(rests);
    let form = LeaseForm::new(asked.clone(), &there, starts, world.leases.commands.arm.is_some());
    state.view.modals.push(Modal::Lease(Box::new(form)));
}

pub(super) fn in_form(state: &mut State, key: Key, now: Timestamp) -> Vec<Effect> {
    let Some(Modal::Lease(form)) = state.view.modals.last() else { return vec![] };
    let zone = state.world.spending.zone.clone();
    let read = read(form, &zone, &currencies(&state.world, &form.asked), now);
    let Some(Modal::Lease(form)) = state.view.modals.last_mut() else { return vec![] };
    let last = form.fields().len() - 1;
    match key.code {
        Code::Esc => drop(state.view.modals.pop()),
        Code::Tab | Code::Down => form.at = (form.at + 1).min(last),
        Code::BackTab | Code::Up => form.at = form.at.saturating_sub(1),
        Code::Enter => match read {
            Ok(wish) => return wanted(state, wish, now),
            Err(mistakes) => {
                form.at = mistakes.iter().position(Option::is_some).unwrap_or(form.at);
                form.mistakes = mistakes;
            }
        },
        _ => match (form.typing(), key.code) {
            (Some(input), _) => drop(edit(input, key)),
            (None, Code::Right | Code::Char(' ')) => form.turn(1),
            (None, Code::Left) => form.turn(-1),
            (None, _) => {}
        },
    }
    vec![]
}

fn wanted(state: &mut State, wish: Wish, now: Timestamp) -> Vec<Effect> {
    state.view.modals.pop();
    state.view.list_mut().marks.clear();
    match wish {
        Wish::TakeAway(ids) => intend(state, Intent::EndLeases(ids), now),
        Wish::Lease(drafts, _) => {
            drafts.into_iter().flat_map(|draft| intend(state, Intent::Lease(Box::new(draft)), now)).collect()
        }
    }
}
