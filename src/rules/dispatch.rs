//! What is told to channels beyond the screen: a queue a channel, kept in the ledger, so that a message outlives a
//! crash and is sent once.
//!
//! A message is written down before it is sent, as begun before the request, and as sent after the answer. A crash
//! between those two leaves open whether it arrived: it is sent again and says so. All that waits for a channel goes out
//! together, one parcel at a time, and no channel waits for another.

use std::collections::{BTreeMap, VecDeque};

use jiff::{SignedDuration, Timestamp};
use providers::model::Action;
use providers::money::Rate;
use serde::{Deserialize, Serialize};

use super::alerts::{Kind, Matter, Told};

/// The first wait after a failure; each next one doubles it.
const FIRST_WAIT: SignedDuration = SignedDuration::from_secs(5);
/// The longest of them.
const LONGEST_WAIT: SignedDuration = SignedDuration::from_mins(15);
/// What was tried in vain for so long is no news any more.
const TOO_OLD: SignedDuration = SignedDuration::from_hours(24);
/// Between two tries no more than this counts: rentop may have been off, or the machine asleep.
const BETWEEN_TRIES: SignedDuration = SignedDuration::from_hours(1);
/// After so many failures in a row a channel is said to fail.
const FAILS_AFTER: u32 = 3;
/// So many messages that are done with are known, so that an old reading of the ledger brings none of them back.
const DONE: usize = 1000;
/// Numbers are microseconds with room below, for who made them.
const SALTS: i64 = 1 << 10;

/// What the config says about a channel, but for how it is reached.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelRule {
    pub name: String,
    /// It is silent while nothing but screens is open.
    pub watch_only: bool,
    /// Of these alerts alone; `None` for all.
    pub kinds: Option<Vec<Kind>>,
    /// Actions are told too.
    pub actions: bool,
    /// The least time between two messages.
    pub pace: SignedDuration,
    /// So many pieces of news go out together at the most.
    pub at_once: usize,
    /// Another one when the channel is reached otherwise than before.
    pub way: u16,
}

impl ChannelRule {
    /// Whether an alert is about this channel as it is reached now.
    pub fn is_meant_by(&self, matter: &Matter) -> bool {
        matches!(matter, Matter::Channel { name, way, .. } if (name, *way) == (&self.name, self.way))
    }
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
    /// So many pieces of news could not be told; the first of them was made at `since`.
    Lost {
        count: u32,
        since: Timestamp,
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
    /// It was sent before, and nobody knows whether it arrived.
    #[serde(default)]
    pub again: bool,
    #[serde(default)]
    pub wait: Wait,
}

/// How long a message has waited for its channel to take it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    /// While its channel was tried in vain.
    pub tried: SignedDuration,
    /// When that was last; `None` before the first time.
    pub tried_at: Option<Timestamp>,
    /// Since when the config names no such channel, as far as somebody looked; `None` while it does.
    #[serde(default)]
    pub unnamed_since: Option<Timestamp>,
}

impl Message {
    /// The number of the first message of a moment: those made before have lower ones.
    pub fn first_id(at: Timestamp) -> i64 {
        at.as_microsecond() * SALTS
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageState {
    Queued,
    /// A request with it was begun: after a crash nobody knows whether it arrived.
    Sending,
    Sent,
    /// It is given up.
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
        /// It may have arrived all the same.
        perhaps: bool,
    },
    /// The channel takes nothing before somebody has corrected something.
    Refused {
        why: String,
    },
    /// This will never be taken: it is too long.
    TooLong {
        why: String,
    },
}

/// What one channel has not been told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    pub waiting: u32,
    /// Given up, and to be told as a number.
    pub lost: u32,
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
    /// Tells this process's messages from those that another one makes at the same moment.
    pub salt: u16,
    queues: BTreeMap<String, Queue>,
    last_id: i64,
    done: VecDeque<i64>,
    /// Messages that were given up and are not written down yet.
    unkept: Vec<Message>,
}

/// What a channel is still to be told, and how it fares.
#[derive(Clone, Debug, Default)]
struct Queue {
    /// The oldest first.
    waiting: VecDeque<Message>,
    /// Sent, and not answered yet.
    under_way: Vec<Message>,
    /// When the last one was sent or answered, and until when nothing is sent.
    pause: Option<(Timestamp, Timestamp)>,
    /// In a row.
    failures: u32,
    refused: bool,
    /// What goes out together is too long: one by one until something is taken.
    one_by_one: bool,
    /// Why the last one failed; `None` after a delivery.
    trouble: Option<String>,
}

impl Queue {
    /// Nothing more is sent for a time from now on.
    fn pause(&mut self, now: Timestamp, wait: SignedDuration) {
        self.pause = Some((now, now.checked_add(wait).unwrap_or(Timestamp::MAX)));
    }

    /// So many messages are given up, of which this is the first: says so in one that waits for as long as it takes.
    fn lose(&mut self, first: &Message, count: u32, last_id: &mut i64, now: Timestamp) -> Message {
        for message in &mut self.waiting {
            if let News::Lost { count: known, .. } = &mut message.news {
                *known = known.saturating_add(count);
                return message.clone();
            }
        }
        *last_id = (*last_id + SALTS).max(Message::first_id(now) + first.id.rem_euclid(SALTS));
        let news = News::Lost { count, since: first.made_at };
        let (state, wait) = (MessageState::Queued, Wait::default());
        let message = Message { id: *last_id, news, made_at: now, state, again: false, wait, ..first.clone() };
        self.waiting.push_back(message.clone());
        message
    }

    /// What was sent and not taken waits again, before all else.
    fn put_back(&mut self, messages: &mut [Message], perhaps: bool) {
        for message in messages.iter_mut().rev() {
            message.state = MessageState::Queued;
            message.again |= perhaps;
            self.waiting.push_front(message.clone());
        }
    }

    /// What refused everything may have been corrected: what is new is worth a try.
    fn try_soon(&mut self, pace: SignedDuration) {
        if let Some((from, until)) = self.pause.as_mut().filter(|_| self.refused) {
            *until = (*until).min(from.saturating_add(pace).unwrap_or(Timestamp::MAX));
        }
    }

    /// All that waits was offered in vain.
    fn tried(&mut self, now: Timestamp) {
        for message in &mut self.waiting {
            let wait = &mut message.wait;
            let since = wait.tried_at.unwrap_or(message.made_at);
            wait.tried += now.duration_since(since).clamp(SignedDuration::ZERO, BETWEEN_TRIES);
            wait.tried_at = Some(now);
        }
    }

    fn is_free(&self, now: Timestamp) -> bool {
        // A pause that begins in the future means that the clock was set back.
        self.pause.is_none_or(|(from, until)| now >= until || now < from)
    }
}

impl Dispatch {
    /// What the ledger holds unsent. What is under way stays so.
    pub fn remember(&mut self, messages: Vec<Message>) {
        self.queues.values_mut().for_each(|queue| queue.waiting.clear());
        for message in messages {
            self.take_in(message);
        }
    }

    /// What others wrote down for us to send, while we collect.
    pub fn join(&mut self, messages: Vec<Message>) {
        for message in messages.into_iter().filter(|message| message.state == MessageState::Queued) {
            let channel = message.channel.clone();
            if self.take_in(message)
                && let Some(rule) = self.rules.iter().find(|rule| rule.name == channel)
            {
                self.queues.entry(channel).or_default().try_soon(rule.pace);
            }
        }
    }

    /// False when it is known already.
    fn take_in(&mut self, mut message: Message) -> bool {
        let queue = self.queues.entry(message.channel.clone()).or_default();
        let known = queue.waiting.iter().chain(&queue.under_way).any(|known| known.id == message.id);
        if known || self.done.contains(&message.id) {
            return false;
        }
        // Also where the clock was set back since.
        self.last_id = self.last_id.max(message.id);
        message.again |= message.state == MessageState::Sending;
        let at = queue.waiting.partition_point(|other| other.id < message.id);
        queue.waiting.insert(at, message);
        true
    }

    /// Makes messages of what is to be told: they are to be written down before they are sent.
    pub fn tell(&mut self, told: &[Told], screens_only: bool, host: &str, now: Timestamp) -> Vec<Message> {
        let mut messages = Vec::new();
        for told in told {
            let (Told::Fired(alert) | Told::Resolved(alert)) = told;
            let matter = &alert.matter;
            let news = match told {
                Told::Fired(_) => News::Fired(matter.clone()),
                // That something happened is not over one day.
                Told::Resolved(_) if matter.is_event() => continue,
                Told::Resolved(_) => News::Resolved(matter.clone()),
            };
            // An end is news only where the beginning was told.
            let knows = |rule: &ChannelRule| match told {
                Told::Fired(_) => true,
                Told::Resolved(alert) => alert.told_to.contains(&rule.name),
            };
            let wants = |rule: &ChannelRule| {
                // What a channel does not take is no news for itself.
                let itself = matches!(matter, Matter::Channel { name, .. } if *name == rule.name);
                let wanted =
                    matter.is_for_all() || rule.kinds.as_ref().is_none_or(|kinds| kinds.contains(&matter.kind()));
                !itself && knows(rule) && wanted
            };
            messages.extend(self.make(&news, wants, screens_only, host, now));
        }
        messages
    }

    /// The same of something that somebody did.
    pub fn tell_deed(&mut self, news: &News, screens_only: bool, host: &str, now: Timestamp) -> Vec<Message> {
        self.make(news, |rule| rule.actions, screens_only, host, now)
    }

    fn make(
        &mut self,
        news: &News,
        wants: impl Fn(&ChannelRule) -> bool,
        screens_only: bool,
        host: &str,
        now: Timestamp,
    ) -> Vec<Message> {
        let mut messages = Vec::new();
        for rule in self.rules.iter().filter(|rule| !(rule.watch_only && screens_only) && wants(rule)) {
            let salt = i64::from(self.salt) % SALTS;
            let id = (Message::first_id(now) + salt).max(self.last_id + SALTS);
            self.last_id = id;
            let message = Message {
                id,
                channel: rule.name.clone(),
                news: news.clone(),
                made_at: now,
                host: host.to_owned(),
                state: MessageState::Queued,
                again: false,
                wait: Wait::default(),
            };
            let queue = self.queues.entry(rule.name.clone()).or_default();
            queue.waiting.push_back(message.clone());
            queue.try_soon(rule.pace);
            messages.push(message);
        }
        messages
    }

    /// What is due to be sent. Each parcel's messages are to be written down as `Sending` first.
    pub fn due(&mut self, now: Timestamp) -> Vec<Parcel> {
        self.give_up_old(now);
        let mut parcels = Vec::new();
        for rule in &self.rules {
            let Some(queue) = self.queues.get_mut(&rule.name) else { continue };
            if queue.waiting.is_empty() || !queue.under_way.is_empty() || !queue.is_free(now) {
                continue;
            }
            let most = if queue.one_by_one { 1 } else { rule.at_once };
            let count = most.clamp(1, queue.waiting.len());
            queue.under_way = queue.waiting.drain(..count).collect();
            queue.under_way.iter_mut().for_each(|message| message.state = MessageState::Sending);
            queue.pause(now, rule.pace);
            parcels.push(Parcel { channel: rule.name.clone(), messages: queue.under_way.clone() });
        }
        parcels
    }

    /// What a channel was offered for a day and did not take is not told any more; how much that was it is told when it
    /// takes something again.
    fn give_up_old(&mut self, now: Timestamp) {
        for (channel, queue) in &mut self.queues {
            let rule = self.rules.iter().any(|rule| rule.name == *channel);
            for message in queue.waiting.iter_mut().filter(|message| message.wait.unnamed_since.is_none() != rule) {
                message.wait.unnamed_since = (!rule).then_some(now);
                self.unkept.push(message.clone());
            }
            let is_old = |message: &Message| match message.wait.unnamed_since {
                None => message.wait.tried >= TOO_OLD && !matches!(message.news, News::Lost { .. }),
                Some(since) => now.duration_since(since) >= TOO_OLD,
            };
            let why = match &queue.trouble {
                _ if !rule => "not in the config any more".to_owned(),
                Some(why) => format!("not taken for 24 h: {why}"),
                None => "not taken for 24 h".to_owned(),
            };
            let (old, waiting): (VecDeque<_>, VecDeque<_>) = queue.waiting.drain(..).partition(is_old);
            queue.waiting = waiting;
            if let Some(first) = old.front().filter(|_| rule) {
                let count = u32::try_from(old.len()).unwrap_or(u32::MAX);
                self.unkept.push(queue.lose(first, count, &mut self.last_id, now));
            }
            for mut message in old {
                message.state = MessageState::Dropped { why: why.clone() };
                self.done.push_back(message.id);
                self.unkept.push(message);
            }
        }
        self.forget_done();
    }

    /// Messages that were given up, as they are to be written down.
    pub fn take_unkept(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.unkept)
    }

    /// How a parcel fared. Returns the messages as they are to be written down: also those that wait behind it.
    pub fn answered(&mut self, channel: &str, delivery: Delivery, now: Timestamp) -> Vec<Message> {
        let Some(queue) = self.queues.get_mut(channel) else { return Vec::new() };
        let mut messages = std::mem::take(&mut queue.under_way);
        if messages.is_empty() {
            return messages;
        }
        let pace = self.rules.iter().find(|rule| rule.name == channel).map_or(FIRST_WAIT, |rule| rule.pace);
        let mut wait = pace;
        match delivery {
            Delivery::Delivered => {
                messages.iter_mut().for_each(|message| message.state = MessageState::Sent);
                (queue.failures, queue.refused, queue.one_by_one, queue.trouble) = (0, false, false, None);
            }
            // One of them may be all that is too long.
            Delivery::TooLong { .. } if messages.len() > 1 => {
                queue.one_by_one = true;
                queue.put_back(&mut messages, false);
            }
            Delivery::TooLong { why } => {
                messages.iter_mut().for_each(|message| message.state = MessageState::Dropped { why: why.clone() });
            }
            Delivery::Refused { why } => {
                queue.put_back(&mut messages, false);
                queue.tried(now);
                messages = queue.waiting.iter().cloned().collect();
                wait = wait.max(LONGEST_WAIT);
                (queue.refused, queue.trouble) = (true, Some(why));
            }
            Delivery::Later { wait: asked, why, perhaps } => {
                queue.put_back(&mut messages, perhaps);
                queue.tried(now);
                messages = queue.waiting.iter().cloned().collect();
                wait = wait.max(back_off(queue.failures)).max(asked.unwrap_or_default());
                queue.failures = queue.failures.saturating_add(1);
                queue.trouble = Some(why);
            }
        }
        queue.pause(now, wait);
        let done = messages.iter().filter(|message| message.state != MessageState::Queued).map(|message| message.id);
        self.done.extend(done);
        self.forget_done();
        messages
    }

    fn forget_done(&mut self) {
        let surplus = self.done.len().saturating_sub(DONE);
        self.done.drain(..surplus);
    }

    /// The channels that do not take what they are told, each with why.
    pub fn failing(&self) -> impl Iterator<Item = (&ChannelRule, &str)> {
        let queues = self.rules.iter().filter_map(|rule| Some((rule, self.queues.get(&rule.name)?)));
        queues
            .filter(|(_, queue)| queue.failures >= FAILS_AFTER || queue.refused)
            .filter_map(|(rule, queue)| Some((rule, queue.trouble.as_deref()?)))
    }

    /// How much news waits for each channel, and how much was given up, by what waits.
    pub fn backlog<'a>(messages: impl IntoIterator<Item = &'a Message>) -> BTreeMap<&'a str, Backlog> {
        let mut backlog = BTreeMap::<&str, Backlog>::new();
        for message in messages {
            let of = backlog.entry(&message.channel).or_default();
            match message.news {
                News::Lost { count, .. } => of.lost = of.lost.saturating_add(count),
                _ => of.waiting += 1,
            }
        }
        backlog
    }

    /// How many messages wait for each channel that the config does not name: after a day they are given up.
    pub fn unnamed(&self) -> impl Iterator<Item = (&str, usize)> {
        let unnamed = self.queues.iter().filter(|(name, _)| self.rules.iter().all(|rule| rule.name != **name));
        unnamed.map(|(name, queue)| (name.as_str(), queue.waiting.len())).filter(|(_, count)| *count > 0)
    }

    /// Nothing was sent that is not answered yet.
    pub fn awaits_nothing(&self) -> bool {
        self.queues.values().all(|queue| queue.under_way.is_empty())
    }

    /// When something is due to be sent, which may be long ago; `None` while nothing waits, or waits for an answer only.
    pub fn next_wake(&self) -> Option<Timestamp> {
        let queues = self.rules.iter().filter_map(|rule| self.queues.get(&rule.name));
        queues
            .filter(|queue| queue.under_way.is_empty())
            .filter_map(|queue| Some((queue.waiting.front()?, queue.pause)))
            .map(|(first, pause)| pause.map_or(first.made_at, |(_, until)| until))
            .min()
    }
}

/// The wait after so many failures before this one.
fn back_off(failures: u32) -> SignedDuration {
    let doubled = FIRST_WAIT.checked_mul(1 << failures.min(16));
    doubled.map_or(LONGEST_WAIT, |wait| wait.min(LONGEST_WAIT))
}

#[cfg(test)]
#[path = "dispatch_tests.rs"]
mod tests;
