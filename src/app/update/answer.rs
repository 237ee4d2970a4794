//! What a person says and does about alerts, in their view and in the window that popped up; and about all that is
//! idle.

use jiff::{SignedDuration, Timestamp};
use providers::model::{AccountName, Action as Deed, ResourceKind};

use super::deeds::{Asking, propose_for};
use super::view::{intend, problem_window, say, show};
use super::{reach, rebuild, windows};
use crate::app::action::{Action, Code, Key};
use crate::app::effect::Effect;
use crate::app::event::Intent;
use crate::app::idle::IdleList;
use crate::app::listing::Line;
use crate::app::message::Msg;
use crate::app::rows::GroupKey;
use crate::app::state::{Modal, Problem, SnoozeChoice, State, Tab};
use crate::rules::alerts::{Alert, Matter, Stage, Topic};
use crate::rules::plan::SaveFirst;

/// The shorter silence.
const HOUR: SignedDuration = SignedDuration::from_hours(1);
/// The morning, where the config does not say when somebody is awake.
const EIGHT: jiff::civil::Time = jiff::civil::Time::constant(8, 0, 0, 0);

/// In the Alerts view and its window it is done to an alert.
pub(super) fn is_about_an_alert(action: Action) -> bool {
    matches!(
        action,
        Action::StopOrStart
            | Action::End
            | Action::Page
            | Action::Details
            | Action::Seen
            | Action::SeenAll
            | Action::Snooze
    )
}

/// The alert under the cursor of the Alerts view, open or ended.
pub(super) fn under_cursor(state: &State) -> Option<Alert> {
    let Some(Line::Alert(topic, since)) = &state.view.alerts.cursor else { return None };
    find(state, topic, *since)
}

fn find(state: &State, topic: &Topic, since: Timestamp) -> Option<Alert> {
    state.world.alerting.alerts.find_one(topic, since).cloned()
}

/// Does to an alert what a key asks for.
pub(super) fn perform(state: &mut State, alert: Option<Alert>, action: Action, now: Timestamp) -> Vec<Effect> {
    match action {
        Action::SeenAll => return seen(state, firing(state), now),
        Action::AllIdle => return all_idle(state, now),
        _ => {}
    }
    let Some(alert) = alert else {
        say(&mut state.view, Msg::NoAlertHere, now);
        return vec![];
    };
    match action {
        // Never a start: that is no answer to something that costs.
        Action::StopOrStart => end(state, &alert, Deed::Stop, now),
        Action::End => end(state, &alert, Deed::Release, now),
        Action::Page => {
            let page = page(state, &alert);
            reach::open(state, page, now)
        }
        Action::Details => {
            go_there(state, &alert, now);
            vec![]
        }
        Action::Problem => {
            let about = problem_of(state, &alert);
            problem_window(state, about);
            vec![]
        }
        Action::Seen => {
            let topics = matches!(alert.stage, Stage::Firing | Stage::Snoozed { .. }).then_some(alert.topic);
            seen(state, topics.into_iter().collect(), now)
        }
        Action::Snooze => {
            snooze(state, &alert, now);
            vec![]
        }
        _ => vec![],
    }
}

/// Alerts that nobody has seen.
fn firing(state: &State) -> Vec<Topic> {
    state.world.alerting.alerts.calling().map(|alert| alert.topic.clone()).collect()
}

fn seen(state: &mut State, topics: Vec<Topic>, now: Timestamp) -> Vec<Effect> {
    if topics.is_empty() {
        say(&mut state.view, Msg::AlertAnswered, now);
        return vec![];
    }
    say(&mut state.view, Msg::AlertsSeen { count: topics.len() }, now);
    intend(state, Intent::Acknowledge(topics), now)
}

fn snooze(state: &mut State, alert: &Alert, now: Timestamp) {
    if matches!(alert.stage, Stage::Resolved { .. } | Stage::Pending) {
        return say(&mut state.view, Msg::AlertAnswered, now);
    }
    let choice = SnoozeChoice { topics: vec![alert.topic.clone()], at: 0, morning: morning(state, now) };
    state.view.modals.push(Modal::Snooze(choice));
}

/// When somebody is awake again, at least an hour from now.
pub fn morning(state: &State, now: Timestamp) -> Timestamp {
    let zone = &state.view.fixed.zone;
    let time = state.world.alerting.limits.awake.map_or(EIGHT, |awake| awake.from);
    let mut day = zone.to_datetime(now).date();
    for _ in 0..3 {
        if let Ok(at) = zone.to_timestamp(day.to_datetime(time))
            && at > now + HOUR
        {
            return at;
        }
        day = day.tomorrow().unwrap_or(day);
    }
    now + SignedDuration::from_hours(24)
}

pub(super) fn in_snooze(state: &mut State, key: Key, now: Timestamp) -> Vec<Effect> {
    let action = state.view.fixed.keys.action_in_popup(key);
    let Some(Modal::Snooze(choice)) = state.view.modals.last_mut() else { return vec![] };
    match (action, key.code) {
        (_, Code::Char('1')) => choice.at = 0,
        (_, Code::Char('2')) => choice.at = 1,
        (_, Code::Enter) => {}
        (Some(Action::Down), _) => {
            choice.at = 1;
            return vec![];
        }
        (Some(Action::Up), _) => {
            choice.at = 0;
            return vec![];
        }
        (_, Code::Esc) => {
            state.view.modals.pop();
            return vec![];
        }
        _ => return vec![],
    }
    let until = if choice.at == 0 { now + HOUR } else { choice.morning };
    let topics = std::mem::take(&mut choice.topics);
    state.view.modals.pop();
    let there = state.view.fixed.zone.to_datetime(until);
    let clock = format!("{:02}:{:02}", there.hour(), there.minute());
    say(&mut state.view, Msg::Snoozed { count: topics.len(), clock }, now);
    intend(state, Intent::Snooze { topics, until }, now)
}

/// Ends the cost of what an alert is about.
fn end(state: &mut State, alert: &Alert, deed: Deed, now: Timestamp) -> Vec<Effect> {
    let deed = match alert.matter.identity().map(|identity| (identity.kind, deed)) {
        Some((ResourceKind::Storage, Deed::Release)) => Deed::Delete,
        Some((ResourceKind::Instance, deed)) => deed,
        _ => {
            say(&mut state.view, Msg::NotOfThisAlert, now);
            return vec![];
        }
    };
    let asked = alert.matter.identity().cloned().into_iter().collect();
    propose_for(state, deed, asked, Asking::One, SaveFirst::Nothing, now)
}

/// The list of all that is idle, and what can be done with it.
pub(super) fn all_idle(state: &mut State, now: Timestamp) -> Vec<Effect> {
    match IdleList::of(&state.world, now) {
        Some(list) => state.view.modals.push(Modal::Idle(Box::new(list))),
        None => say(&mut state.view, Msg::NothingIdleNow, now),
    }
    vec![]
}

pub(super) fn in_idle(state: &mut State, key: Key, now: Timestamp) -> Vec<Effect> {
    let meaning = state.view.fixed.keys.action_in_plan(key);
    let Some(Modal::Idle(list)) = state.view.modals.last() else { return vec![] };
    let (plan, save) = match meaning {
        Some(Action::StopOrStart) => (&list.stop, SaveFirst::Nothing),
        Some(Action::SaveAndEnd) => (&list.save, SaveFirst::ByConfig),
        Some(Action::Back) => {
            state.view.modals.pop();
            return vec![];
        }
        Some(Action::Down | Action::Up) => {
            windows::scroll_text(state, if meaning == Some(Action::Down) { 1 } else { -1 });
            return vec![];
        }
        _ => return vec![],
    };
    let (deed, asked) = (plan.action, list.asked());
    if !plan.targets.is_empty() {
        state.view.modals.pop();
    }
    propose_for(state, deed, asked, Asking::All, save, now)
}

/// The open list becomes that of the world as it is.
pub(super) fn review_idle(state: &mut State, now: Timestamp) {
    let fresh = IdleList::of(&state.world, now);
    let Some(Modal::Idle(list)) = state.view.modals.last_mut() else { return };
    match fresh {
        Some(fresh) => **list = IdleList { scroll: list.scroll, ..fresh },
        None => drop(state.view.modals.pop()),
    }
}

/// A page where something can be done about it: of the resource, else of any other in its account.
fn page(state: &State, alert: &Alert) -> Option<String> {
    let world = &state.world;
    let of_account = |account: &AccountName| {
        world.fleet.instances_of(account).find_map(|known| reach::page_of(world, &known.identity))
    };
    let own = alert.matter.identity().and_then(|identity| reach::page_of(world, identity));
    own.or_else(|| alert.matter.account().and_then(of_account))
}

/// What can be read in full about an alert.
pub(super) fn problem_of(state: &State, alert: &Alert) -> Problem {
    match &alert.matter {
        Matter::NotDone { op, .. } if state.world.operations.contains_key(op) => Problem::Operation(*op),
        Matter::Account { account, .. }
            if state.world.fleet.account(account).is_some_and(crate::rules::fleet::Account::needs_a_look) =>
        {
            Problem::Account(account.clone())
        }
        _ => Problem::Alert(alert.topic.clone(), alert.since),
    }
}

/// Puts the cursor on what an alert is about.
pub(super) fn go_there(state: &mut State, alert: &Alert, now: Timestamp) {
    let itself = (Tab::Alerts, vec![Line::Alert(alert.topic.clone(), alert.since)]);
    let (tab, lines) = match &alert.matter {
        Matter::NotDone { op, .. } => (Tab::Activity, vec![Line::Operation(*op)]),
        Matter::Budget { name, .. } | Matter::Forecast { name, .. } => (Tab::Budgets, vec![Line::Budget(name.clone())]),
        Matter::Burn { .. } => (Tab::Fleet, Vec::new()),
        Matter::Unexplained { .. } => (Tab::Spend, Vec::new()),
        Matter::Channel { .. } | Matter::Vanished { .. } => itself,
        Matter::Runway { account, .. } | Matter::Account { account, .. } => {
            let rows = state.world.fleet.instances_of(account).map(|known| Line::Resource(known.identity.clone()));
            (Tab::Fleet, [Line::Group(GroupKey::Account(account.clone()))].into_iter().chain(rows).collect())
        }
        other => match other.identity().cloned() {
            Some(identity) => return windows::go_to_row(state, &identity, now),
            None => itself,
        },
    };
    show(state, tab);
    rebuild(state, false, now);
    let list = state.view.list_mut();
    if let Some(at) = lines.iter().find_map(|wanted| list.lines.iter().position(|line| line == wanted)) {
        list.touched = true;
        list.go_to(at);
        list.cursor_jumped = None;
    }
}
