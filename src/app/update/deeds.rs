//! What is done to rows: stop, start, release, delete, take back, protect.

use jiff::Timestamp;
use providers::model::{Action as Deed, Identity, Phase, ResourceKind};

use super::save_form;
use super::view::{intend, say};
use crate::app::effect::Effect;
use crate::app::event::Intent;
use crate::app::listing::Line;
use crate::app::message::Msg;
use crate::app::rows;
use crate::app::state::{Modal, Question, State};
use crate::rules::memory::Collector;
use crate::rules::plan::{self, Confirmation, Hindrance, Plan, SaveFirst};
use crate::rules::saga::{Confirmed, OpId, confirm};
use crate::rules::settings::Setting;

/// The action on the row under the cursor, if it can still be taken back.
pub(super) fn takeable_here(state: &State) -> Option<OpId> {
    let operation = match state.view.list().cursor.as_ref()? {
        Line::Resource(identity) => state.world.operation_on(identity)?,
        Line::Operation(op) => state.world.operations.get(op)?,
        Line::Group(_) | Line::Spend(_) | Line::Budget(_) | Line::Alert(..) => return None,
    };
    operation.can_be_taken_back().then_some(operation.id)
}

pub(super) fn toggle(state: &mut State, now: Timestamp, protect: bool) -> Vec<Effect> {
    let found = state.view.list().selected().cloned().and_then(|identity| {
        let account = state.world.fleet.account(&identity.account)?;
        let (settings, provider) = (&state.world.settings, &account.provider);
        let (name, protected, mine) = match identity.kind {
            ResourceKind::Instance => {
                let known = state.world.fleet.instances.get(&identity)?;
                let row = &known.row;
                (
                    row.name.clone(),
                    settings.protected(provider, &identity, row),
                    settings.mine(provider, &identity, row),
                )
            }
            ResourceKind::Storage => {
                let known = state.world.fleet.storage.get(&identity)?;
                let row = &known.row;
                (
                    row.name.clone(),
                    settings.protected(provider, &identity, row),
                    settings.mine(provider, &identity, row),
                )
            }
        };
        let name = name.unwrap_or_else(|| identity.id.to_string());
        let before = settings.single.get(&identity).cloned().unwrap_or_default();
        Some((identity, name, before, if protect { !protected } else { !mine }))
    });
    let Some((identity, name, before, on)) = found else {
        say(&mut state.view, Msg::NothingSelected, now);
        return vec![];
    };
    let (setting, message) = if protect {
        (Setting { protected: Some(on), ..before }, Msg::ProtectedNow { name, on })
    } else {
        (Setting { mine: Some(on), ..before }, Msg::MineNow { name, on })
    };
    say(&mut state.view, message, now);
    intend(state, Intent::Set { identity, setting }, now)
}

/// Whether `s` means stop or start for a row, by the phase as painted.
pub fn stop_or_start_of(phase: Phase) -> Deed {
    match phase {
        Phase::Stopped | Phase::Reclaimed => Deed::Start,
        _ => Deed::Stop,
    }
}

/// What stop-or-start would do to the instance under the cursor.
pub(super) fn meaning(state: &State) -> Option<(Identity, Deed)> {
    let known = state.world.fleet.instances.get(state.view.list().selected()?)?;
    let phase = rows::shown_phase(known, state.world.operation_on(&known.identity));
    Some((known.identity.clone(), stop_or_start_of(phase)))
}

pub(super) fn stop_or_start(state: &mut State, now: Timestamp) -> Vec<Effect> {
    let mut deeds: Vec<Deed> = state
        .view
        .list()
        .pointed()
        .iter()
        .filter_map(|identity| state.world.fleet.instances.get(identity))
        .map(|known| stop_or_start_of(rows::shown_phase(known, state.world.operation_on(&known.identity))))
        .collect();
    deeds.dedup();
    match deeds.as_slice() {
        [] => {
            say(&mut state.view, Msg::NothingSelected, now);
            vec![]
        }
        [deed] => propose(state, *deed, SaveFirst::Nothing, now),
        _ => {
            say(&mut state.view, Msg::MixedMarks, now);
            vec![]
        }
    }
}

/// Release for instances, delete for storage; not both in one plan.
pub(super) fn end(state: &mut State, now: Timestamp) -> Vec<Effect> {
    let mut kinds: Vec<ResourceKind> = state.view.list().pointed().iter().map(|identity| identity.kind).collect();
    kinds.sort();
    kinds.dedup();
    match kinds.as_slice() {
        [] => say(&mut state.view, Msg::NothingSelected, now),
        [ResourceKind::Instance] => return propose(state, Deed::Release, SaveFirst::Nothing, now),
        [ResourceKind::Storage] => return propose(state, Deed::Delete, SaveFirst::Nothing, now),
        _ => say(&mut state.view, Msg::MixedKinds, now),
    }
    vec![]
}

/// Makes the plan, and asks what the plan demands.
pub(super) fn propose(state: &mut State, deed: Deed, save: SaveFirst, now: Timestamp) -> Vec<Effect> {
    let pointed = state.view.list().pointed();
    if pointed.is_empty() {
        say(&mut state.view, Msg::NothingSelected, now);
        return vec![];
    }
    // One resource that loses nothing goes into its countdown at once: the row shows it, `u` takes it back. A
    // marked row may be anywhere, so it is asked about.
    let under_cursor = pointed.len() == 1 && state.view.list().selected() == pointed.first();
    let asking = if under_cursor { Asking::One } else { Asking::Marked };
    propose_for(state, deed, pointed, asking, save, now)
}

/// What an action is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asking {
    /// The one that is seen under the cursor.
    One,
    Marked,
    /// All of a kind: nobody pointed at each of them.
    All,
}

/// Makes the plan for some resources, and asks what the plan demands.
pub(super) fn propose_for(
    state: &mut State,
    deed: Deed,
    asked: Vec<Identity>,
    asking: Asking,
    save: SaveFirst,
    now: Timestamp,
) -> Vec<Effect> {
    if let (false, Some(Collector::Other { owner, .. })) = (state.world.acts(), &state.world.collector) {
        let message = Msg::OnlyLooking { host: owner.host.clone(), pid: owner.pid };
        say(&mut state.view, message, now);
        return vec![];
    }
    let bulk = asking == Asking::All;
    let plan = make_plan(state, Asked { action: deed, save: &save, bulk }, &asked, now);
    if plan.targets.is_empty() {
        // Nothing says what of this one is to be brought to safety: whoever pointed at it is asked.
        if let ([(identity, _, Hindrance::NoRecipe)], false) = (&plan.left_out[..], bulk) {
            return save_form::open(state, deed, identity.clone(), now);
        }
        if let Some((_, name, hindrance)) = plan.left_out.into_iter().next() {
            say(&mut state.view, Msg::LeftOut { name, action: deed, hindrance }, now);
        }
        return vec![];
    }
    // A mere checkpoint changes nothing: it begins at once.
    let at_once = plan.confirmation == Confirmation::Countdown || deed == Deed::Checkpoint;
    if at_once && asking == Asking::One {
        return begin(state, plan, None, now);
    }
    let instead = if save == SaveFirst::Nothing { SaveFirst::ByConfig } else { SaveFirst::Nothing };
    let (plan, instead) = (Box::new(plan), Box::new(instead));
    let question = Question { plan, asked, save, instead, bulk, field: None, scroll: 0, changed: None };
    state.view.modals.push(Modal::Plan(question));
    vec![]
}

/// What a plan is asked for.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub action: Deed,
    /// What is brought to safety first.
    pub save: &'a SaveFirst,
    /// Nobody pointed at each of them.
    pub bulk: bool,
}

pub(super) fn make_plan(state: &State, asked: Asked<'_>, resources: &[Identity], now: Timestamp) -> Plan {
    let under_way = state.world.busy(asked.action);
    let basis = state.world.basis(&under_way, now);
    match asked.bulk {
        true => plan::plan_bulk(basis, asked.action, resources, asked.save),
        false => plan::plan_with(basis, asked.action, resources, asked.save),
    }
}

/// The plan of an open question with everything brought to safety first, also when nothing can be: it says why.
/// `None` where nothing would be lost, or it is so already.
pub fn saving_instead(state: &State, question: &Question, now: Timestamp) -> Option<Plan> {
    let Question { plan, asked, instead, bulk, .. } = question;
    let ends = matches!(plan.action, Deed::Stop | Deed::Release) && matches!(plan.confirmation, Confirmation::Typed(_));
    let loses = plan.targets.iter().any(|target| target.effect.loses_data());
    let asked_for = Asked { action: plan.action, save: instead, bulk: *bulk };
    (ends && loses).then(|| make_plan(state, asked_for, asked, now))
}

pub(super) fn begin(state: &mut State, plan: Plan, typed: Option<&str>, now: Timestamp) -> Vec<Effect> {
    match confirm(&plan, typed) {
        Confirmed::Yes(authority) => {
            state.view.list_mut().marks.clear();
            intend(state, Intent::Begin { plan: Box::new(plan), authority }, now)
        }
        Confirmed::NotYet => vec![],
    }
}
