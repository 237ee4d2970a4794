//! The book of alerts: each from its first sign to its end, told once.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Matter, Topic};

/// How often what repeats is told again.
const REPEAT: SignedDuration = SignedDuration::from_hours(1);
/// So long an event that nobody has marked as seen stays open.
const EVENT_STAYS: SignedDuration = SignedDuration::from_hours(24);
/// How many ended alerts are remembered.
const RECENT: usize = 200;

/// What is the case, as far as somebody just looked.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    pub matter: Matter,
    /// False when it is no longer so, but so nearly that an alert about it goes on: it begins none.
    pub holds: bool,
    /// It must have been so for this long before it is told.
    pub after: SignedDuration,
    /// It is noted without being told: what was there at first sight, for instance.
    pub quiet: bool,
}

impl Finding {
    /// Told at once.
    pub fn now(matter: Matter) -> Self {
        Finding { matter, holds: true, after: SignedDuration::ZERO, quiet: false }
    }
}

/// Where an alert stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// It has shown itself, and is not told yet.
    Pending,
    Firing,
    /// Somebody has seen it.
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
    /// What is not written down yet.
    unkept: Vec<Alert>,
}

impl Alerts {
    /// What the ledger knew.
    pub fn remember(&mut self, alerts: Vec<Alert>) {
        self.open.clear();
        self.ended.clear();
        for alert in alerts {
            match alert.stage {
                Stage::Resolved { .. } => self.ended.push(alert),
                _ => drop(self.open.insert(alert.topic.clone(), alert)),
            }
        }
        self.ended.sort_by_key(|alert| std::cmp::Reverse(alert.since));
        self.ended.truncate(RECENT);
    }

    /// What is open, in no order that matters.
    pub fn open(&self) -> impl Iterator<Item = &Alert> {
        self.open.values()
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

    /// What is to be told to people now and was not seen: the popup's list.
    pub fn calling(&self) -> impl Iterator<Item = &Alert> {
        self.open.values().filter(|alert| alert.stage == Stage::Firing)
    }

    /// Takes in what was found. A topic that is not among it has ended, unless `doubtful` says that nobody knows.
    pub fn take(&mut self, found: Vec<Finding>, doubtful: &dyn Fn(&Topic) -> bool, now: Timestamp) -> Vec<Told> {
        let mut told = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        for finding in found {
            let topic = finding.matter.topic();
            seen.insert(topic.clone());
            self.find(topic, finding, now, &mut told);
        }
        let over: Vec<Topic> = self
            .open
            .values()
            .filter(|alert| !seen.contains(&alert.topic))
            .filter(|alert| match alert.matter.is_event() {
                true => alert.stage == Stage::Acknowledged || now.duration_since(alert.since) >= EVENT_STAYS,
                false => !doubtful(&alert.topic),
            })
            .map(|alert| alert.topic.clone())
            .collect();
        over.iter().for_each(|topic| told.extend(self.end(topic, now)));
        told
    }

    fn find(&mut self, topic: Topic, finding: Finding, now: Timestamp, told: &mut Vec<Told>) {
        let Finding { matter, holds, after, quiet } = finding;
        let Some(alert) = self.open.get_mut(&topic) else {
            if !holds {
                return;
            }
            let stage = if quiet { Stage::Acknowledged } else { Stage::Pending };
            let alert = Alert { topic: topic.clone(), matter, stage, since: now, fired_at: None, told_at: None };
            self.open.insert(topic.clone(), alert);
            self.fire_when_due(&topic, after, now, told);
            self.keep(&topic);
            return;
        };
        if !holds && alert.stage == Stage::Pending {
            self.open.remove(&topic);
            return;
        }
        if holds {
            alert.matter = matter;
        }
        self.fire_when_due(&topic, after, now, told);
    }

    fn fire_when_due(&mut self, topic: &Topic, after: SignedDuration, now: Timestamp, told: &mut Vec<Told>) {
        let Some(alert) = self.open.get_mut(topic) else { return };
        let due = match alert.stage {
            Stage::Pending => now.duration_since(alert.since) >= after,
            Stage::Snoozed { until } => now >= until,
            Stage::Firing => alert.matter.repeats() && alert.told_at.is_some_and(|at| now.duration_since(at) >= REPEAT),
            Stage::Acknowledged | Stage::Resolved { .. } => false,
        };
        if due {
            alert.stage = Stage::Firing;
            alert.fired_at = alert.fired_at.or(Some(now));
            alert.told_at = Some(now);
            told.push(Told::Fired(alert.clone()));
            self.keep(topic);
        }
    }

    fn end(&mut self, topic: &Topic, now: Timestamp) -> Option<Told> {
        let mut alert = self.open.remove(topic)?;
        let was_told = alert.fired_at.is_some();
        alert.stage = Stage::Resolved { at: now };
        self.unkept.push(alert.clone());
        if !was_told {
            return None;
        }
        self.ended.insert(0, alert.clone());
        self.ended.truncate(RECENT);
        Some(Told::Resolved(alert))
    }

    /// Somebody has seen it.
    pub fn acknowledge(&mut self, topic: &Topic) {
        self.set(topic, Stage::Acknowledged);
    }

    /// It is told again later.
    pub fn snooze(&mut self, topic: &Topic, until: Timestamp) {
        self.set(topic, Stage::Snoozed { until });
    }

    fn set(&mut self, topic: &Topic, stage: Stage) {
        if let Some(alert) = self.open.get_mut(topic).filter(|alert| alert.stage != Stage::Pending) {
            alert.stage = stage;
            self.keep(topic);
        }
    }

    fn keep(&mut self, topic: &Topic) {
        self.unkept.extend(self.open.get(topic).cloned());
    }

    /// What is to be written down.
    pub fn take_unkept(&mut self) -> Vec<Alert> {
        std::mem::take(&mut self.unkept)
    }
}
