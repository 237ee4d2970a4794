//! Alerts: what the world gives rise to, what is told of it and where, and what people say to it.

use jiff::{SignedDuration, Timestamp};
use providers::money::Money;

use super::{findings, guards, happened, proofs};
use crate::app::effect::Effect;
use crate::app::event::Intent;
use crate::app::notes;
use crate::app::state::World;
use crate::rules::alerts::{Alert, Finding, Matter, Stage, Told};
use crate::rules::dispatch::{Delivery, MessageState, News};
use crate::rules::saga::Operation;
use crate::rules::spend::{Answer, BalanceChange, Exact, Period, Question, date_of};

/// How often it is looked for what is worth an alert, when nothing calls for it.
const LOOK: SignedDuration = SignedDuration::from_secs(10);

/// How often the books are asked what left accounts beyond what is known to be charged.
const ASK_BALANCES: SignedDuration = SignedDuration::from_hours(1);

/// Looks for what is worth an alert when it is time, and tells it.
pub(super) fn tick(world: &mut World, now: Timestamp) -> Vec<Effect> {
    if !world.remembered {
        return Vec::new();
    }
    if !world.collects() {
        // It is for who collects to tell.
        world.alerting.events.clear();
        return write_down(world, Vec::new(), now);
    }
    let happened = !world.alerting.events.is_empty();
    if world.alerting.heedless {
        match world.one_shot {
            true => note_events(world, now),
            false => world.alerting.events.clear(),
        }
        return write_down(world, Vec::new(), now);
    }
    if happened {
        world.alerting.acted = None;
    }
    let age = world.alerting.looked_at.map(|at| now.duration_since(at));
    let is_due = age.is_none_or(|age| !(SignedDuration::ZERO..LOOK).contains(&age));
    // What happened is written down as soon as it is known.
    let mut done = Vec::new();
    if is_due || happened || guards::wants_a_look(world, now) {
        world.alerting.looked_at = Some(now);
        done.extend(guards::look(world, now));
        done.extend(proofs::begin_due(world, now));
        look(world, now);
    }
    let mut effects = write_down(world, done, now);
    if happened {
        effects.push(Effect::RecallAlerts);
    }
    effects.extend(ask_balances(world, now));
    effects
}

fn ask_balances(world: &mut World, now: Timestamp) -> Option<Effect> {
    let age = world.alerting.balances_asked.map(|at| now.duration_since(at));
    if age.is_some_and(|age| (SignedDuration::ZERO..ASK_BALANCES).contains(&age)) {
        return None;
    }
    world.alerting.balances_asked = Some(now);
    Some(Effect::AskBalances(Question::Balances(Period::month(date_of(now, &world.spending.zone)))))
}

/// What the books say of this month so far. While they are being added up they do not know all.
pub(super) fn balances_told(world: &mut World, answer: Answer, now: Timestamp) {
    if answer.unfinished {
        return;
    }
    let changes = answer.balances.into_iter().map(|change| change.with_open(&world.spending.meter, now));
    let lost = changes.filter(|change| change.unexplained() > Exact::ZERO && notes::is_unexplained(world, change));
    let matter = |change: BalanceChange| Matter::Unexplained {
        amount: Money::new(change.unexplained().amount(), change.first.currency),
        account: change.account,
        since: change.from,
    };
    let unexplained = lost.map(matter).collect();
    world.alerting.unexplained = Some(unexplained);
}

/// What happened is written down for who looks next, who tells it.
fn note_events(world: &mut World, now: Timestamp) {
    let events = std::mem::take(&mut world.alerting.events);
    let later = events.into_iter().map(|event| Finding { after: happened::HELD, ..event }).collect();
    let told = world.alerting.alerts.note(later, now);
    tell(world, &told, now);
}

/// Takes in what is the case now.
fn look(world: &mut World, now: Timestamp) {
    let mut found = findings::all(world, now);
    found.extend(guards::findings(world));
    found.extend(proofs::findings(world));
    let alerting = &world.alerting;
    let mut alerts = alerting.alerts.clone();
    let told = alerts.take(found, &|topic| findings::is_doubtful(world, topic, now), now);
    world.alerting.alerts = alerts;
    world.changed |= !told.is_empty();
    tell(world, &told, now);
}

fn tell(world: &mut World, told: &[Told], now: Timestamp) {
    let (screens_only, alerting) = (world.alerting.screens_only(), &mut world.alerting);
    let messages = alerting.dispatch.tell(told, screens_only, &alerting.host, now);
    for message in &messages {
        if let News::Fired(matter) = &message.news {
            alerting.alerts.told_to(&matter.topic(), &message.channel);
        }
    }
    alerting.unkept.extend(messages);
}

/// Tells that something was done.
pub(super) fn tell_deed(world: &mut World, news: &News, now: Timestamp) {
    let (screens_only, alerting) = (world.alerting.screens_only(), &mut world.alerting);
    let messages = alerting.dispatch.tell_deed(news, screens_only, &alerting.host, now);
    alerting.unkept.extend(messages);
}

/// Writes down what is new, and sends what is due.
fn write_down(world: &mut World, mut effects: Vec<Effect>, now: Timestamp) -> Vec<Effect> {
    let due = if world.collects() && !world.alerting.silent { world.alerting.dispatch.due(now) } else { Vec::new() };
    let alerting = &mut world.alerting;
    let (alerts, mut messages) = (alerting.alerts.take_unkept(), std::mem::take(&mut alerting.unkept));
    let given_up = alerting.dispatch.take_unkept();
    for message in &given_up {
        match &message.state {
            MessageState::Dropped { why } => tracing::warn!(channel = message.channel, why, "a message is given up"),
            _ if message.wait.unnamed_since == Some(now) => {
                tracing::warn!(channel = message.channel, "a message waits for a channel that is not in the config");
            }
            _ => {}
        }
    }
    messages.extend(given_up);
    // Before they are sent, which is written down after it.
    if !alerts.is_empty() || !messages.is_empty() {
        effects.push(Effect::KeepAlerts { alerts, messages });
    }
    effects.extend(due.into_iter().map(Effect::Send));
    effects
}

/// How it went to tell a channel.
pub(super) fn sent(world: &mut World, channel: &str, delivery: Delivery, now: Timestamp) -> Vec<Effect> {
    let messages = world.alerting.dispatch.answered(channel, delivery, now);
    world.alerting.unkept.extend(messages);
    write_down(world, Vec::new(), now)
}

/// What another process was told by a person is taken over, and what it did explains what happened.
pub(super) fn recalled(world: &mut World, alerts: Vec<Alert>, acted: Vec<Operation>, now: Timestamp) {
    let is_held_back = |alert: &Alert| alert.stage == Stage::Pending && alert.matter.is_event();
    if world.alerting.acted.replace(acted).is_none() && world.alerting.alerts.open().any(is_held_back) {
        world.alerting.looked_at = None;
    }
    for alert in alerts {
        let own = &mut world.alerting.alerts;
        // A time that has come here is not waited for again.
        let was_told = |ours: &&Alert| ours.fired_at.is_some();
        let ours = own.get(&alert.topic).filter(|ours| ours.since == alert.since).filter(was_told);
        if ours.is_none_or(|ours| ours.stage == alert.stage) {
            continue;
        }
        match alert.stage {
            Stage::Acknowledged => own.acknowledge(&alert.topic),
            Stage::Snoozed { until } if until > now => own.snooze(&alert.topic, until),
            _ => continue,
        }
        world.changed = true;
    }
    // They come from where they would be written.
    drop(world.alerting.alerts.take_unkept());
}

/// What a person says to alerts.
pub(super) fn intend(world: &mut World, intent: &Intent, now: Timestamp) -> Vec<Effect> {
    let alerts = &mut world.alerting.alerts;
    match intent {
        Intent::Acknowledge(topics) => topics.iter().for_each(|topic| alerts.acknowledge(topic)),
        Intent::Snooze { topics, until } => topics.iter().for_each(|topic| alerts.snooze(topic, *until)),
        _ => return Vec::new(),
    }
    write_down(world, Vec::new(), now)
}

#[cfg(test)]
#[path = "alerts_tests.rs"]
mod tests;
