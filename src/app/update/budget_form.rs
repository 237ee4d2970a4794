//! The form of a budget: opened, typed into, and what comes of it.

use jiff::Timestamp;

use super::view::say;
use super::windows::edit;
use super::world;
use crate::app::action::{Code, Key};
use crate::app::budget_form::{BudgetForm, Field, Known, read};
use crate::app::effect::Effect;
use crate::app::event::WorldEvent;
use crate::app::listing::Line;
use crate::app::message::Msg;
use crate::app::state::{Modal, State};
use crate::rules::budgets::{Budget, BudgetDraft};
use crate::rules::memory::Collector;

/// Opens the form for a new budget, or for the one of this name.
pub(super) fn open(state: &mut State, of: Option<&str>, now: Timestamp) {
    let rules = &state.world.budgets.rules;
    let budget = of.and_then(|name| rules.iter().find(|budget| budget.name == name));
    let draft = budget.map(|budget| BudgetDraft::of(budget, &state.world.spending.zone));
    if draft == Some(None) {
        let name = of.unwrap_or_default().to_owned();
        return say(&mut state.view, Msg::BudgetOnlyInConfig { name }, now);
    }
    state.view.modals.push(Modal::Budget(Box::new(BudgetForm::new(draft.flatten()))));
}

fn known<'a>(state: &'a State, form: &BudgetForm) -> Known<'a> {
    let names = state.world.budgets.rules.iter().map(|budget| budget.name.as_str());
    Known {
        names: names.filter(|name| form.of.as_deref() != Some(name)).collect(),
        accounts: state.world.fleet.accounts.iter().map(|account| &account.name).collect(),
        zone: state.world.spending.zone.clone(),
        currency: state.view.fixed.currency,
    }
}

pub(super) fn in_form(state: &mut State, key: Key, now: Timestamp) -> Vec<Effect> {
    let Some(Modal::Budget(form)) = state.view.modals.last() else { return vec![] };
    let read = read(form, &known(state, form));
    let Some(Modal::Budget(form)) = state.view.modals.last_mut() else { return vec![] };
    let last = Field::ALL.len() - 1;
    let to = match key.code {
        Code::Esc => {
            state.view.modals.pop();
            return vec![];
        }
        // It is written down already; what comes of it is told.
        _ if form.saving => return vec![],
        Code::Tab | Code::Down => (form.at + 1).min(last),
        Code::BackTab | Code::Up => form.at.saturating_sub(1),
        Code::Enter => match read {
            Ok(budget) => return save(state, budget, now),
            Err(mistakes) => {
                form.at = mistakes.iter().position(Option::is_some).unwrap_or(form.at);
                form.mistakes = mistakes;
                return vec![];
            }
        },
        _ => {
            if let Some(input) = form.typing() {
                edit(input, key);
            }
            return vec![];
        }
    };
    // What was just written is checked when it is left.
    form.mistakes[form.at] = read.err().and_then(|mistakes| mistakes[form.at].clone());
    form.at = to;
    vec![]
}

fn save(state: &mut State, budget: Budget, now: Timestamp) -> Vec<Effect> {
    let demo = state.view.fixed.demo;
    let Some(Modal::Budget(form)) = state.view.modals.last_mut() else { return vec![] };
    let of = form.of.clone();
    if demo {
        return saved(state, budget, of.as_deref(), Ok(()), now);
    }
    form.saving = true;
    vec![Effect::SaveBudget { budget: Box::new(budget), of }]
}

/// The config holds the budget: it is in force. Else the form says why not, and nothing that was typed is lost.
pub(super) fn saved(
    state: &mut State,
    budget: Budget,
    of: Option<&str>,
    ended: Result<(), String>,
    now: Timestamp,
) -> Vec<Effect> {
    let asks =
        state.view.modals.iter().position(|modal| matches!(modal, Modal::Budget(form) if form.of.as_deref() == of));
    if let Err(error) = ended {
        match asks.map(|at| &mut state.view.modals[at]) {
            Some(Modal::Budget(form)) => (form.saving, form.refused) = (false, Some(error)),
            _ => say(&mut state.view, Msg::EditFailed { error }, now),
        }
        return vec![];
    }
    if let Some(at) = asks {
        state.view.modals.remove(at);
    }
    let name = budget.name.clone();
    let elsewhere = matches!(state.world.collector, Some(Collector::Other { .. }));
    let message = match () {
        () if state.view.fixed.demo => Msg::BudgetInDemo { name: name.clone() },
        () if elsewhere => Msg::BudgetSavedElsewhere { name: name.clone() },
        () => Msg::BudgetSaved { name: name.clone() },
    };
    say(&mut state.view, message, now);
    let list = &mut state.view.budgets;
    (list.stale, list.touched, list.cursor) = (true, true, Some(Line::Budget(name)));
    let budgets = &mut state.world.budgets;
    match budgets.rules.iter_mut().find(|rule| Some(rule.name.as_str()) == of) {
        Some(rule) => *rule = budget,
        None => budgets.rules.push(budget),
    }
    // How the others stand is asked anew as well.
    budgets.as_of = None;
    state.world.alerting.looked_at = None;
    // The books answer for the budgets that they were asked for.
    world::update(&mut state.world, WorldEvent::AddedUp, now)
}
