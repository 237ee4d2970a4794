//! Alerts that pop up: when their window opens, when it hears keys, and what these do.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::answer;
use super::deeds;
use super::keys;
use super::view::{intend, say};
use crate::app::action::{Action, Code, Key};
use crate::app::effect::Effect;
use crate::app::event::Intent;
use crate::app::message::Msg;
use crate::app::state::{AlertsPopup, Modal, State, View};
use crate::rules::alerts::{Alert, Topic, worst_first};

/// So long nobody must have pressed a key before the window hears one: what is being typed was meant for the view.
const QUIET: SignedDuration = SignedDuration::from_millis(500);
/// So long after another alert came under the cursor by itself a key that ends something may be meant for the one before.
const JUMPED: SignedDuration = SignedDuration::from_millis(500);

/// As long as nobody has touched the window, nor pressed a key for so long, its list is sorted anew.
const UNTOUCHED: SignedDuration = SignedDuration::from_secs(3);

/// Opens the window when something calls that has not popped up yet and nothing else is open; brings an open one up to
/// date.
pub(super) fn open_when_due(state: &mut State, now: Timestamp) {
    let State { world, view, .. } = state;
    let calling = worst_first(world.alerting.alerts.calling(), &world.alerting.exchange);
    view.popped.retain(|topic, _| world.alerting.alerts.get(topic).is_some());
    let fresh = |view: &View| {
        calling.iter().any(|alert| alert.told_at.is_some() && view.popped.get(&alert.topic) != alert.told_at.as_ref())
    };
    let is_fresh = fresh(view);
    match window(view) {
        Some(at) => {
            let last_key = view.last_key.map(|(_, at)| at);
            let Some(Modal::Alerts(popup)) = view.modals.get_mut(at) else { return };
            let untouched = last_key.is_none_or(|at| at < popup.opened_at && now.duration_since(at) >= UNTOUCHED);
            follow(popup, &calling, untouched, now);
            if popup.topics.is_empty() {
                view.modals.remove(at);
            }
        }
        None if is_fresh && view.modals.is_empty() && !view.offers_shown() && !view.is_too_small() => {
            let topics = calling.iter().map(|alert| alert.topic.clone()).collect();
            view.modals.push(Modal::Alerts(AlertsPopup {
                topics,
                at: 0,
                opened_at: now,
                armed: false,
                jumped_at: None,
            }));
        }
        None => return,
    }
    if is_fresh {
        view.rings = world.alerting.limits.bell;
        view.popped.extend(calling.iter().filter_map(|alert| Some((alert.topic.clone(), alert.told_at?))));
    }
    arm(view, now);
}

/// The place of the window among those that are open.
fn window(view: &View) -> Option<usize> {
    view.modals.iter().position(|modal| matches!(modal, Modal::Alerts(_)))
}

/// What calls no more goes. What calls newly comes last, or where it belongs as long as nobody has touched the window:
/// the cursor stays on its alert.
fn follow(popup: &mut AlertsPopup, calling: &[&Alert], untouched: bool, now: Timestamp) {
    let pointed = popup.topics.get(popup.at).cloned();
    let calls: BTreeSet<&Topic> = calling.iter().map(|alert| &alert.topic).collect();
    let gone_before = popup.topics.iter().take(popup.at).filter(|topic| !calls.contains(topic)).count();
    popup.topics.retain(|topic| calls.contains(topic));
    let new = calling.iter().map(|alert| &alert.topic).filter(|topic| !popup.topics.contains(topic));
    let new: Vec<Topic> = new.cloned().collect();
    popup.topics.extend(new);
    popup.at = (popup.at - gone_before).min(popup.topics.len().saturating_sub(1));
    if untouched && let Some(here) = popup.topics.get(popup.at).cloned() {
        popup.topics = calling.iter().map(|alert| alert.topic.clone()).collect();
        popup.at = popup.topics.iter().position(|topic| *topic == here).unwrap_or(0);
    }
    if popup.topics.get(popup.at) != pointed.as_ref() {
        popup.jumped_at = Some(now);
    }
}

fn arm(view: &mut View, now: Timestamp) {
    let Some(at) = arms_at(view) else { return };
    if let Some(Modal::Alerts(popup)) = view.modals.last_mut() {
        popup.armed = now >= at;
    }
}

/// When the window will hear keys, unless one is pressed before; `None` when it does, and without it.
fn arms_at(view: &View) -> Option<Timestamp> {
    let Some(Modal::Alerts(popup)) = view.modals.last().filter(|_| waits(view)) else { return None };
    let since = view.last_key.map_or(popup.opened_at, |(_, at)| at.max(popup.opened_at));
    Some(since + QUIET)
}

pub(super) fn next_wake(view: &View) -> Option<Timestamp> {
    arms_at(view)
}

/// The window is there and does not hear keys yet.
pub(super) fn waits(view: &View) -> bool {
    matches!(view.modals.last(), Some(Modal::Alerts(popup)) if !popup.armed)
}

/// A key that the view beneath hears: whatever ends something, or would confirm it, is swallowed.
pub(super) fn beneath(state: &mut State, key: Key, now: Timestamp) -> Vec<Effect> {
    let keys = &state.view.fixed.keys;
    let ends = keys.of(state.view.tab).any(|binding| binding.danger && binding.keys.contains(&key));
    if ends || key.code == Code::Enter || keys.action_in_plan(key) == Some(Action::Confirm) {
        return vec![];
    }
    let effects = keys::in_view(state, key, now);
    // What somebody opened goes first: the alerts wait until that is closed.
    if !matches!(state.view.modals.last(), Some(Modal::Alerts(_)))
        && let Some(at) = window(&state.view)
        && let Modal::Alerts(popup) = state.view.modals.remove(at)
    {
        state.view.popped.retain(|topic, _| !popup.topics.contains(topic));
    }
    effects
}

pub(super) fn in_popup(state: &mut State, key: Key, now: Timestamp) -> Vec<Effect> {
    let action = state.view.fixed.keys.action_in_popup(key);
    let Some(Modal::Alerts(popup)) = state.view.modals.last_mut() else { return vec![] };
    let jumped = popup.jumped_at.is_some_and(|at| (SignedDuration::ZERO..JUMPED).contains(&now.duration_since(at)));
    let pointed = popup.topics.get(popup.at).cloned();
    match action {
        Some(Action::Down) => step(&mut state.view, 1),
        Some(Action::Up) => step(&mut state.view, -1),
        Some(Action::Back) => drop(state.view.modals.pop()),
        Some(Action::TakeBack) if pointed.as_ref().and_then(deeds::guarded).is_some() => {
            let guarded = pointed.as_ref().and_then(deeds::guarded).cloned();
            let effects = guarded.map(|identity| deeds::veto(state, identity, now)).unwrap_or_default();
            settle_cursor(state, now);
            return effects;
        }
        Some(Action::TakeBack) => return intend(state, Intent::TakeBack(None), now),
        Some(Action::StopOrStart | Action::End) if jumped => say(&mut state.view, Msg::RowJustChanged, now),
        Some(action) => {
            let alert = pointed.and_then(|topic| state.world.alerting.alerts.get(&topic).cloned());
            if action == Action::Details {
                state.view.modals.pop();
            }
            let effects = answer::perform(state, alert, action, now);
            settle_cursor(state, now);
            return effects;
        }
        None => {}
    }
    vec![]
}

/// What was answered goes at once, and what is then under the cursor came there by that key.
fn settle_cursor(state: &mut State, now: Timestamp) {
    open_when_due(state, now);
    if let Some(Modal::Alerts(popup)) = state.view.modals.last_mut() {
        popup.jumped_at = None;
    }
}

/// Moves the cursor of the window.
pub(super) fn step(view: &mut View, by: isize) {
    if let Some(Modal::Alerts(popup)) = view.modals.last_mut() {
        popup.at = popup.at.saturating_add_signed(by).min(popup.topics.len().saturating_sub(1));
        popup.jumped_at = None;
    }
}
