//! The book of alerts: each from its first sign to its end, told once.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::{Kind, Matter, Topic};
use crate::rules::spend::Exchange;

/// How often what repeats is told again.
const REPEAT: SignedDuration = SignedDuration::from_hours(1);
/// So long an event that nobody has marked as seen stays open.
const EVENT_STAYS: SignedDuration = SignedDuration::from_hours(24);
/// So long after its end what was told of a term is not told anew, where the clock was set back into that term.
const TERM_TOLD: SignedDuration = SignedDuration::from_hours(24);
/// How many ended alerts are remembered.
const RECENT: usize = 200;

/// What is the case, as far as somebody just looked.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    pub matter: Matter,
    /// False when it is no longer so, but so nearly, or since so shortly, that an alert about it goes on: it begins
    /// none.
    pub holds: bool,
    /// It must have been so for this long before it is told.
    pub after: SignedDuration,
    /// It is noted without being told.
    pub quiet: bool,
    /// What it was about is no question any more: an alert about it ends, and nobody is told.
    pub moot: Option<Moot>,
}

/// Why an alert ended that says nothing about whether what it told is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moot {
    /// The config does not name what it was about any more.
    Gone,
    /// The config says something else of it.
    Changed,
    /// The term that it was about is over.
    TermOver,
    /// The clock was set back to before the term that it was about.
    TermAhead,
}

impl Moot {
    /// Its word in `--json`.
    pub fn word(self) -> &'static str {
        match self {
            Moot::Gone => "gone",
            Moot::Changed => "changed",
            Moot::TermOver => "term_over",
            Moot::TermAhead => "term_ahead",
        }
    }
}

impl Finding {
    /// Told at once.
    pub fn now(matter: Matter) -> Self {
        Finding { matter, holds: true, after: SignedDuration::ZERO, quiet: false, moot: None }
    }

    /// Told when it has been so for a time.
    pub fn after(matter: Matter, after: SignedDuration) -> Self {
        Finding { after, ..Finding::now(matter) }
    }

    /// Neither so nor over: no question any more.
    pub fn moot(matter: Matter, why: Moot) -> Self {
        Finding { holds: false, moot: Some(why), ..Finding::now(matter) }
    }

    /// No longer so, and not surely over.
    pub fn eased(matter: Matter) -> Self {
        Finding { holds: false, ..Finding::now(matter) }
    }
}

/// Where an alert stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// It has shown itself, and is not told yet.
    Pending,
    Firing,
    /// Somebody has seen it, or it was noted without being told.
    Acknowledged,
    /// It is told again when that time has come, if it still is so.
    Snoozed {
        until: Timestamp,
    },
    Resolved {
        at: Timestamp,
    },
}

/// One alert.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alert {
    pub topic: Topic,
    /// As it was found last.
    pub matter: Matter,
    pub stage: Stage,
    /// Its first sign. With the topic it names this alert for ever.
    pub since: Timestamp,
    /// When it was first told; `None` while it is pending, and when it was noted quietly.
    pub fired_at: Option<Timestamp>,
    /// When it was told last.
    pub told_at: Option<Timestamp>,
    /// The channels that were told of it.
    #[serde(default)]
    pub told_to: BTreeSet<String>,
    /// Why it ended, where what it told is not over; `None` otherwise, and while it is open.
    #[serde(default)]
    pub moot: Option<Moot>,
}

/// What is to be told to people.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// It began, or it is told again while nobody has seen it.
    Fired(Alert),
    /// Something that was told is no longer so.
    Resolved(Alert),
}

/// All alerts that are open, and the latest that ended.
#[derive(Clone, Debug, Default)]
pub struct Alerts {
    open: BTreeMap<Topic, Alert>,
    /// The newest first.
    ended: Vec<Alert>,
    /// Open ones that are no longer so, and since when. Begins anew with the program.
    eased: BTreeMap<Topic, Timestamp>,
    /// What is not written down yet: open ones, and those that ended.
    unkept: BTreeSet<Topic>,
    unkept_ends: Vec<Alert>,
}

impl Alerts {
    /// What the ledger knew.
    pub fn remember(&mut self, alerts: Vec<Alert>) {
        *self = Alerts::default();
        for alert in alerts {
            match alert.stage {
                Stage::Resolved { .. } => self.ended.push(alert),
                // Of one topic the latest is the one that counts.
                _ if self.open.get(&alert.topic).is_some_and(|known| known.since > alert.since) => {}
                _ => drop(self.open.insert(alert.topic.clone(), alert)),
            }
        }
        self.ended.sort_by_key(|alert| Reverse(alert.ended_at()));
        self.ended.truncate(RECENT);
    }

    /// What is open, in no order that matters.
    pub fn open(&self) -> impl Iterator<Item = &Alert> {
        self.open.values()
    }

    /// Whether a higher line of the same budget and term is open, which tells all that this one tells.
    pub fn is_outdone(&self, alert: &Alert) -> bool {
        let Matter::Budget { name, term, threshold, .. } = &alert.matter else { return false };
        self.open.values().any(|other| match &other.matter {
            Matter::Budget { name: of, term: in_term, threshold: line, .. } => {
                (of, in_term) == (name, term) && line > threshold && other.fired_at.is_some()
            }
            _ => false,
        })
    }

    pub fn get(&self, topic: &Topic) -> Option<&Alert> {
        self.open.get(topic)
    }

    /// The alert that began with this first sign, open or ended lately.
    pub fn find_one(&self, topic: &Topic, since: Timestamp) -> Option<&Alert> {
        let open = self.open.get(topic).filter(|alert| alert.since == since);
        open.or_else(|| self.ended.iter().find(|alert| alert.since == since && alert.topic == *topic))
    }

    /// What ended lately, the newest first.
    pub fn ended(&self) -> &[Alert] {
        &self.ended
    }

    /// What is so now, was told to people and seen by nobody: what a popup lists and the header counts.
    pub fn calling(&self) -> impl Iterator<Item = &Alert> {
        self.open.values().filter(|alert| alert.stage == Stage::Firing && !self.eased.contains_key(&alert.topic))
    }

    /// Takes in what was found. A topic that is not among it has ended, unless `doubtful` says that nobody knows.
    pub fn take(&mut self, found: Vec<Finding>, doubtful: &dyn Fn(&Topic) -> bool, now: Timestamp) -> Vec<Told> {
        self.follow_clock(now);
        let seen: BTreeSet<Topic> = found.iter().map(|finding| finding.matter.topic()).collect();
        let mut told = self.note(found, now);
        let untold: Vec<Topic> = self.open.keys().filter(|topic| !seen.contains(*topic)).cloned().collect();
        for topic in untold {
            let Some(alert) = self.open.get(&topic) else { continue };
            if alert.matter.is_event() {
                // What is not told yet may turn out to be somebody's doing.
                if alert.stage != Stage::Pending || !doubtful(&topic) {
                    self.let_event_go_on(&topic, now, &mut told);
                }
            } else if !doubtful(&topic) {
                self.end(&topic, now, &mut told);
            }
        }
        told
    }

    /// Takes in what was found by somebody who looks for nothing else.
    pub fn note(&mut self, found: Vec<Finding>, now: Timestamp) -> Vec<Told> {
        let mut told = Vec::new();
        for finding in found {
            let topic = finding.matter.topic();
            self.find(&topic, finding, now, &mut told);
        }
        told
    }

    /// A clock that was set back makes nobody wait for the time that it said before.
    fn follow_clock(&mut self, now: Timestamp) {
        for alert in self.open.values_mut() {
            let Some(told_at) = alert.told_at.filter(|told_at| *told_at > now) else { continue };
            if let Stage::Snoozed { until } = &mut alert.stage {
                *until =
                    now.saturating_add(until.duration_since(told_at)).expect("a duration can be added to any time");
            }
            alert.told_at = Some(now);
            self.unkept.insert(alert.topic.clone());
        }
        self.eased.values_mut().for_each(|since| *since = (*since).min(now));
    }

    fn find(&mut self, topic: &Topic, finding: Finding, now: Timestamp, told: &mut Vec<Told>) {
        let Finding { matter, holds, after, quiet, moot } = finding;
        if moot.is_some() {
            if let Some(alert) = self.open.get_mut(topic) {
                alert.moot = moot;
            }
            return self.end(topic, now, told);
        }
        let is_over = |alert: &Alert| match alert.stage {
            Stage::Pending => !holds || alert.since > now,
            // It has happened again.
            Stage::Acknowledged => alert.matter.is_event() && alert.fired_at.is_some(),
            _ => false,
        };
        if self.open.get(topic).is_some_and(is_over) {
            self.end(topic, now, told);
        }
        if !holds {
            return self.ease(topic, now, told);
        }
        self.eased.remove(topic);
        if let Some(alert) = self.open.get_mut(topic) {
            // Several prices in a row are one change from the first to the last.
            alert.matter = match (&alert.matter, matter) {
                (Matter::Repriced { before, .. }, Matter::Repriced { identity, name, after, .. }) => {
                    Matter::Repriced { identity, name, before: before.clone(), after }
                }
                (_, matter) => matter,
            };
        } else {
            let alert = self.told_of_term(topic, &matter, now).unwrap_or_else(|| self.begin(topic, matter, now));
            self.open.insert(topic.clone(), alert);
            self.unkept.insert(topic.clone());
        }
        let Some(alert) = self.open.get_mut(topic) else { return };
        let stage = match alert.stage {
            _ if quiet => Stage::Acknowledged,
            // Noted quietly, and now it is worth a word.
            Stage::Acknowledged if alert.fired_at.is_none() => Stage::Pending,
            stage => stage,
        };
        if alert.stage != stage {
            alert.stage = stage;
            self.unkept.insert(topic.clone());
        }
        self.fire_when_due(topic, after, now, told);
    }

    /// An alert about a term that ended with the term, and that term is the present one again: the clock was set back.
    /// It goes on as seen: it was told.
    fn told_of_term(&self, topic: &Topic, matter: &Matter, now: Timestamp) -> Option<Alert> {
        let ended_by_term = |alert: &&Alert| {
            let of_term =
                alert.moot == Some(Moot::TermOver) || matches!(alert.matter, Matter::Budget { closed: Some(_), .. });
            let lately = |at| now.duration_since(at) < TERM_TOLD;
            alert.topic == *topic && of_term && alert.ended_at().is_some_and(lately)
        };
        let known = self.ended.iter().find(ended_by_term)?;
        let Alert { fired_at, told_at, told_to, .. } = known.clone();
        Some(Alert { stage: Stage::Acknowledged, fired_at, told_at, told_to, ..self.begin(topic, matter.clone(), now) })
    }

    fn begin(&self, topic: &Topic, matter: Matter, now: Timestamp) -> Alert {
        // After the clock was set back, one that ended may have begun at this very moment.
        let taken = self.ended.iter().filter(|alert| alert.since >= now && alert.topic == *topic);
        let since = taken.map(|alert| alert.since + SignedDuration::from_micros(1)).max().unwrap_or(now);
        let (fired_at, told_at, told_to) = (None, None, BTreeSet::new());
        let (topic, stage, moot) = (topic.clone(), Stage::Pending, None);
        Alert { topic, matter, stage, since, fired_at, told_at, told_to, moot }
    }

    fn fire_when_due(&mut self, topic: &Topic, after: SignedDuration, now: Timestamp, told: &mut Vec<Told>) {
        let Some(alert) = self.open.get_mut(topic) else { return };
        let due = match alert.stage {
            Stage::Pending => now.duration_since(alert.since) >= after || after.is_zero(),
            Stage::Snoozed { until } => now >= until,
            Stage::Firing => alert.matter.repeats() && alert.told_at.is_some_and(|at| now.duration_since(at) >= REPEAT),
            Stage::Acknowledged | Stage::Resolved { .. } => false,
        };
        if due {
            alert.stage = Stage::Firing;
            alert.fired_at = alert.fired_at.or(Some(now));
            alert.told_at = Some(now);
            told.push(Told::Fired(alert.clone()));
            self.unkept.insert(topic.clone());
        }
    }

    /// It is no longer so: it goes on for as long as its kind needs to be surely over.
    fn ease(&mut self, topic: &Topic, now: Timestamp, told: &mut Vec<Told>) {
        if !self.open.contains_key(topic) {
            return;
        }
        let since = *self.eased.entry(topic.clone()).or_insert(now);
        if topic.kind.settles().is_some_and(|settles| now.duration_since(since) >= settles) {
            self.end(topic, now, told);
        }
    }

    /// An event happens once: it is open until it was seen, or for a day, and is told again when it was put off.
    fn let_event_go_on(&mut self, topic: &Topic, now: Timestamp, told: &mut Vec<Told>) {
        let Some(alert) = self.open.get(topic) else { return };
        let is_old = now.duration_since(alert.told_at.unwrap_or(alert.since)) >= EVENT_STAYS;
        match alert.stage {
            Stage::Acknowledged if alert.fired_at.is_some() || is_old => self.end(topic, now, told),
            Stage::Firing if is_old => self.end(topic, now, told),
            _ => self.fire_when_due(topic, SignedDuration::ZERO, now, told),
        }
    }

    fn end(&mut self, topic: &Topic, now: Timestamp, told: &mut Vec<Told>) {
        let Some(mut alert) = self.open.remove(topic) else { return };
        self.eased.remove(topic);
        self.unkept.remove(topic);
        alert.stage = Stage::Resolved { at: now };
        self.unkept_ends.push(alert.clone());
        if alert.fired_at.is_none() {
            return;
        }
        self.ended.insert(0, alert.clone());
        self.ended.truncate(RECENT);
        // That an event was seen is no news.
        if !alert.matter.is_event() && alert.moot.is_none() {
            told.push(Told::Resolved(alert));
        }
    }

    /// Somebody has seen it.
    pub fn acknowledge(&mut self, topic: &Topic) {
        self.set(topic, Stage::Acknowledged);
    }

    /// A channel is told of it: then it is told of its end as well.
    pub fn told_to(&mut self, topic: &Topic, channel: &str) {
        if let Some(alert) = self.open.get_mut(topic)
            && alert.told_to.insert(channel.to_owned())
        {
            self.unkept.insert(topic.clone());
        }
    }

    /// It is told again later.
    pub fn snooze(&mut self, topic: &Topic, until: Timestamp) {
        self.set(topic, Stage::Snoozed { until });
    }

    fn set(&mut self, topic: &Topic, stage: Stage) {
        let told = |alert: &&mut Alert| alert.stage != Stage::Pending && alert.stage != stage;
        if let Some(alert) = self.open.get_mut(topic).filter(told) {
            alert.stage = stage;
            self.unkept.insert(topic.clone());
        }
    }

    /// What is to be written down.
    pub fn take_unkept(&mut self) -> Vec<Alert> {
        let mut alerts = std::mem::take(&mut self.unkept_ends);
        let open = std::mem::take(&mut self.unkept);
        alerts.extend(open.iter().filter_map(|topic| self.open.get(topic).cloned()));
        alerts
    }
}

impl Alert {
    /// It ended without anybody having been told of it.
    pub fn came_to_nothing(&self) -> bool {
        self.fired_at.is_none() && matches!(self.stage, Stage::Resolved { .. })
    }

    fn ended_at(&self) -> Option<Timestamp> {
        match self.stage {
            Stage::Resolved { at } => Some(at),
            _ => None,
        }
    }

    /// What it costs an hour, for the order of a list alone: what cannot be exchanged counts as it stands.
    fn weight(&self, exchange: &Exchange) -> Decimal {
        let rates = self.matter.rates().iter();
        let amounts = rates.map(|rate| exchange.convert(rate.currency, rate.amount()).unwrap_or(rate.amount()));
        amounts.fold(Decimal::ZERO, Decimal::saturating_add)
    }
}

/// Alerts as a list has them: the worst first, then those that cost the most an hour, then the oldest.
pub fn worst_first<'a>(alerts: impl Iterator<Item = &'a Alert>, exchange: &Exchange) -> Vec<&'a Alert> {
    let mut alerts: Vec<&Alert> = alerts.collect();
    alerts.sort_by_cached_key(|alert| {
        (alert.matter.severity(), Reverse(alert.weight(exchange)), alert.since, alert.topic.clone())
    });
    alerts
}

impl Kind {
    /// So long an alert goes on after it was last so: what comes and goes is one alert, not many. `None` for as long
    /// as it is nearly so.
    fn settles(self) -> Option<SignedDuration> {
        match self {
            // Work that comes every other hour does not end it.
            Kind::Idle => Some(SignedDuration::from_hours(2)),
            Kind::Account => Some(SignedDuration::from_mins(15)),
            Kind::Cards | Kind::Channel => Some(SignedDuration::from_mins(30)),
            _ => None,
        }
    }
}

#[cfg(test)]
#[path = "book_tests.rs"]
mod tests;
