//! What is told to channels beyond the screen: a queue a channel, kept in the ledger, so that a message outlives a
//! crash and is sent once.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use providers::model::Action;
use providers::money::Rate;
use serde::{Deserialize, Serialize};

use super::alerts::{Kind, Matter, Told};

/// What the config says about a channel, but for how it is reached.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelRule {
    pub name: String,
    /// Screens keep it silent: only who collects without one tells it.
    pub watch_only: bool,
    /// Of these alerts alone; `None` for all.
    pub kinds: Option<Vec<Kind>>,
    /// Actions are told too.
    pub actions: bool,
    /// The least time between two messages.
    pub pace: SignedDuration,
}

/// What a message tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum News {
    Fired(Matter),
    Resolved(Matter),
    /// Somebody did something: `saves` an hour.
    Acted {
        by: String,
        action: Action,
        name: String,
        saves: Vec<Rate>,
    },
    /// Somebody tries the channel.
    Test,
}

/// One piece of news for one channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Unique in a ledger.
    pub id: i64,
    pub channel: String,
    pub news: News,
    pub made_at: Timestamp,
    /// The host that noticed it.
    pub host: String,
    pub state: MessageState,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageState {
    Queued,
    /// A request with it was begun: after a crash nobody knows whether it arrived.
    Sending,
    Sent,
    /// The channel does not take it, and never will.
    Dropped {
        why: String,
    },
}

/// How a request to a channel ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    Delivered,
    /// It may be taken later: at the earliest after `wait`, where the service says so.
    Later {
        wait: Option<SignedDuration>,
        why: String,
    },
    /// It will never be taken.
    Refused {
        why: String,
    },
}

/// Messages that go out together.
#[derive(Clone, Debug, PartialEq)]
pub struct Parcel {
    pub channel: String,
    pub messages: Vec<Message>,
}

/// All channels and what they are still to be told.
#[derive(Clone, Debug, Default)]
pub struct Dispatch {
    pub rules: Vec<ChannelRule>,
    queue: BTreeMap<String, Vec<Message>>,
}

impl Dispatch {
    /// What the ledger holds unsent.
    pub fn remember(&mut self, messages: Vec<Message>) {
        self.queue.clear();
        for message in messages {
            self.queue.entry(message.channel.clone()).or_default().push(message);
        }
    }

    /// Makes messages of what is to be told: they are to be written down before they are sent.
    pub fn tell(&mut self, told: &[Told], screen: bool, host: &str, now: Timestamp) -> Vec<Message> {
        let _ = (told, screen, host, now);
        Vec::new()
    }

    /// What is due to be sent. Each parcel's messages are to be written down as `Sending` first.
    pub fn due(&mut self, now: Timestamp) -> Vec<Parcel> {
        let _ = now;
        Vec::new()
    }

    /// How a parcel fared. Returns the messages as they are to be written down.
    pub fn answered(&mut self, channel: &str, delivery: Delivery, now: Timestamp) -> Vec<Message> {
        let _ = (channel, delivery, now);
        Vec::new()
    }

    /// The channels that do not take what they are told, each with why.
    pub fn failing(&self) -> impl Iterator<Item = (&str, &str)> {
        std::iter::empty()
    }

    /// Nothing was sent that is not answered yet.
    pub fn awaits_nothing(&self) -> bool {
        true
    }

    pub fn next_wake(&self) -> Option<Timestamp> {
        None
    }
}
