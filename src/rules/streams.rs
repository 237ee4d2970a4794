//! Which machines are looked at over `ssh`, how often, and what became of it.
//!
//! A stream is one connection to one instance, which tells its figures until it ends. The rules say which ones
//! should be there; whoever performs them says what happened.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::{SignedDuration, Timestamp};
use providers::model::{AccountName, Identity, Instance, Phase, ProviderName, Remark, SshEndpoint};
use serde::{Deserialize, Serialize};

use super::fleet::{Fleet, Known};

/// Between two looks of a machine that nobody looks at.
pub const WIDE: SignedDuration = SignedDuration::from_secs(15);
/// Between two looks of the machine whose row somebody has under the cursor.
pub const CLOSE: SignedDuration = SignedDuration::from_secs(1);
/// So long the cursor rests on a row before its stream is opened anew at the close pace.
pub const RESTED: SignedDuration = SignedDuration::from_secs(2);
/// And so long it stays at that pace when the cursor has left, so that going to and fro connects nothing anew.
pub const LINGERS: SignedDuration = SignedDuration::from_secs(30);
/// Streams that may be connecting at a time: the exchange of keys costs a processor.
pub const CONNECTING: usize = 8;
/// Who has been connecting for so long waits for an answer, and no longer costs a processor: the next one may begin.
pub const EXCHANGED: SignedDuration = SignedDuration::from_secs(20);
/// A stream that has told nothing for so long is dead, whatever its connection says.
pub const SILENT: SignedDuration = SignedDuration::from_secs(60);
/// A stream that has told its figures for so long works: what ends it later is no further failure in a row.
const WORKS: SignedDuration = SignedDuration::from_secs(60);
const FIRST_RETRY: SignedDuration = SignedDuration::from_secs(15);
const LONGEST_RETRY: SignedDuration = SignedDuration::from_mins(5);
/// What a person has to mend first is tried this often all the same.
const TRY_AGAIN: SignedDuration = SignedDuration::from_mins(10);
/// The longest pause of all, with what comes on top of it.
const LONGEST_WAIT: SignedDuration = SignedDuration::from_mins(15);
/// After so many failures: a machine that has just begun lets nobody in until the keys are there.
const BEGINNING: u32 = 3;

/// Whether an account's machines may be looked into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Consent {
    /// Nobody has said.
    #[default]
    Unasked,
    /// As long as this program runs.
    Yes,
    /// Not as long as this program runs.
    No,
    Always,
    /// The config says so, or somebody said it for good.
    Never,
}

impl Consent {
    pub fn allows(self) -> bool {
        matches!(self, Consent::Yes | Consent::Always)
    }

    /// It holds beyond this run.
    pub fn lasts(self) -> bool {
        matches!(self, Consent::Always | Consent::Never)
    }
}

/// What a connection is opened to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    pub endpoint: SshEndpoint,
    /// The name under which its host key is known: of the identity, since addresses are given to the next machine.
    pub alias: String,
}

impl Target {
    pub fn new(provider: &ProviderName, identity: &Identity, endpoint: &SshEndpoint) -> Self {
        let mut alias = host_key_alias(provider, identity);
        if !endpoint.direct {
            // Who answers there is the proxy, with a key of its own.
            alias.push_str(".proxy");
        }
        Target { endpoint: endpoint.clone(), alias }
    }
}

/// The name under which the host key of an instance is known: small letters, digits, `-`, `.` and `_` only, and another
/// one for each identity. OpenSSH makes all letters of a name small before it looks for it in a file, so that capitals
/// are written as the other signs are.
pub fn host_key_alias(provider: &ProviderName, identity: &Identity) -> String {
    let mut alias = String::from("rentop");
    for part in [provider.as_str(), identity.account.as_str(), identity.id.as_str()] {
        alias.push('.');
        for byte in part.bytes() {
            match byte {
                b'a'..=b'z' | b'0'..=b'9' | b'-' => alias.push(char::from(byte)),
                _ => alias.push_str(&format!("_{byte:02x}")),
            }
        }
    }
    alias.push_str(&format!(".{}", identity.generation));
    alias
}

/// Why a stream ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// There is no program `ssh`.
    NoProgram,
    /// None of the user's keys was accepted.
    KeyRefused,
    /// The host has another key than the one that this instance had. Nothing was sent to it.
    HostKeyChanged,
    /// Its name means no address.
    NoSuchHost,
    /// Nobody answers there.
    NoAnswer,
    /// The host is there and does not listen at the port.
    ConnectionRefused,
    /// It lets one in and runs no commands.
    NoCommands,
    /// What came was not what was asked for.
    Garbled,
    /// The connection ended, or the command was killed.
    Ended,
    /// What `ssh` said, cleaned and short.
    Said(String),
}

impl Trouble {
    /// A person has to do something first.
    pub fn is_lasting(&self) -> bool {
        matches!(self, Trouble::NoProgram | Trouble::KeyRefused | Trouble::NoCommands | Trouble::HostKeyChanged)
    }
}

/// What a stream tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    Usage(Box<providers::usage::Usage>),
    Ended(Trouble),
}

/// How a stream stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    Connecting {
        since: Timestamp,
    },
    Live {
        since: Timestamp,
        heard: Timestamp,
    },
    /// It is tried again at `retry_at`; never by itself when the host key changed.
    Down {
        trouble: Trouble,
        since: Timestamp,
        retry_at: Option<Timestamp>,
    },
}

/// A stream that is there, or was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Of the connection that is meant: what an earlier one says does not count.
    pub number: u64,
    pub target: Target,
    pub pace: SignedDuration,
    pub link: Link,
    /// When it was last tried.
    tried: Timestamp,
    /// Ends in a row, none of them of a stream that had worked.
    failures: u32,
}

impl Stream {
    fn is_up(&self) -> bool {
        !matches!(self.link, Link::Down { .. })
    }

    /// It takes one of the few places of those that are connecting until then; `None` when it takes none.
    fn connects_until(&self) -> Option<Timestamp> {
        matches!(self.link, Link::Connecting { .. }).then(|| self.tried + EXCHANGED)
    }

    /// When it counts as dead if it tells nothing until then; `None` when it is down.
    fn silent_at(&self) -> Option<Timestamp> {
        match self.link {
            Link::Connecting { since } => Some(since + SILENT),
            Link::Live { heard, .. } => Some(heard + SILENT + self.pace),
            Link::Down { .. } => None,
        }
    }

    fn go_down(&mut self, identity: &Identity, trouble: Trouble, now: Timestamp) {
        let worked = matches!(self.link, Link::Live { since, .. } if now.duration_since(since) >= WORKS);
        self.failures = if worked { 1 } else { self.failures.saturating_add(1) };
        let retry_at = retry_at(&trouble, self.failures, spread(identity, self.number), now);
        self.link = Link::Down { trouble, since: now, retry_at };
    }
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    Open {
        identity: Identity,
        number: u64,
        target: Target,
        pace: SignedDuration,
        /// The key that its host had is forgotten first: whatever key it has now is the right one.
        new_key: bool,
    },
    Close {
        identity: Identity,
    },
}

/// All streams.
#[derive(Clone, Debug, Default)]
pub struct Streams {
    streams: BTreeMap<Identity, Stream>,
    consents: BTreeMap<AccountName, Consent>,
    /// What the config says, which goes before what anybody said.
    ordained: BTreeMap<AccountName, Consent>,
    /// The row that somebody has under the cursor, and since when.
    focus: Option<(Identity, Timestamp)>,
    /// Rows on which the cursor rested and which it left, with the end of their close pace.
    left: BTreeMap<Identity, Timestamp>,
    /// Machines of which somebody said that another host key is right, until they are connected to.
    accepted: BTreeSet<Identity>,
    last: u64,
}

impl Streams {
    pub fn consent(&self, account: &AccountName) -> Consent {
        self.ordained.get(account).copied().unwrap_or_else(|| self.said(account))
    }

    /// What somebody said, whatever the config says: it is this that is remembered.
    pub fn said(&self, account: &AccountName) -> Consent {
        self.consents.get(account).copied().unwrap_or_default()
    }

    /// The config says it, as long as it stands there.
    pub fn ordain(&mut self, account: &AccountName, consent: Consent) {
        self.ordained.insert(account.clone(), consent);
    }

    pub fn set_consent(&mut self, account: &AccountName, consent: Consent) {
        self.consents.insert(account.clone(), consent);
    }

    pub fn get(&self, identity: &Identity) -> Option<&Stream> {
        self.streams.get(identity)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Identity, &Stream)> {
        self.streams.iter()
    }

    /// What a person has to look into before anything goes on: the host has another key. `None` when there is nothing.
    pub fn alarm(&self, identity: &Identity) -> Option<&Trouble> {
        match &self.streams.get(identity)?.link {
            Link::Down { trouble: trouble @ Trouble::HostKeyChanged, .. } => Some(trouble),
            _ => None,
        }
    }

    /// Somebody has this row under the cursor.
    pub fn focus(&mut self, identity: Option<&Identity>, now: Timestamp) {
        if self.focus.as_ref().map(|(focus, _)| focus) == identity {
            return;
        }
        if let Some((left, since)) = self.focus.take()
            && (now.duration_since(since) >= RESTED || self.left.contains_key(&left))
        {
            self.left.insert(left, now + LINGERS);
        }
        self.focus = identity.map(|identity| (identity.clone(), now));
    }

    /// Accounts of which somebody should be asked whether their machines may be looked into, with how many there
    /// are.
    pub fn to_ask<'a>(&'a self, fleet: &'a Fleet) -> impl Iterator<Item = (&'a AccountName, usize)> {
        let unasked = fleet.accounts.iter().filter(|account| self.consent(&account.name) == Consent::Unasked);
        unasked.filter_map(|account| {
            let machines = fleet.instances_of(&account.name).filter(|known| can_be_looked_into(known)).count();
            (machines > 0).then_some((&account.name, machines))
        })
    }

    /// Every machine that may be looked into has told something, or could not be reached.
    pub fn have_answered(&self, fleet: &Fleet) -> bool {
        let answered = |known: &Known<Instance>| {
            let link = self.get(&known.identity).map(|stream| &stream.link);
            matches!(link, Some(Link::Live { .. } | Link::Down { .. }))
        };
        let wanted =
            |known: &&Known<Instance>| can_be_looked_into(known) && self.consent(&known.identity.account).allows();
        fleet.instances.values().filter(wanted).all(answered)
    }

    /// What is to be opened and closed now. What is ordered is taken for done.
    pub fn orders(&mut self, fleet: &Fleet, now: Timestamp) -> Vec<Order> {
        self.keep_to(now);
        self.left.retain(|_, until| *until > now);
        self.accepted.retain(|identity| fleet.instances.get(identity).is_some_and(|known| !known.is_gone()));
        let mut orders = self.close_unwanted(fleet, now);
        let has_place = |stream: &Stream| stream.connects_until().is_some_and(|until| until > now);
        let mut free = CONNECTING.saturating_sub(self.streams.values().filter(|stream| has_place(stream)).count());
        let mut due: Vec<(&Known<Instance>, &ProviderName)> = self
            .allowed(fleet)
            .into_iter()
            .flat_map(|account| fleet.instances_of(account))
            .filter(|known| can_be_looked_into(known))
            .filter(|known| self.is_due(known, now))
            .filter_map(|known| Some((known, &fleet.account(&known.identity.account)?.provider)))
            .collect();
        // Whom somebody looks at comes first, and then whoever was not tried for the longest time: nobody is passed
        // over for ever, however many fail before.
        let focus = self.focus.as_ref().map(|(focus, _)| focus);
        due.sort_by_key(|(known, _)| {
            let tried = self.streams.get(&known.identity).map(|stream| stream.tried);
            (Reverse(focus == Some(&known.identity)), tried)
        });
        for (known, provider) in due {
            // One that is connecting, and moved meanwhile, goes on with the place that it has.
            if !self.streams.get(&known.identity).is_some_and(has_place) {
                if free == 0 {
                    continue;
                }
                free -= 1;
            }
            orders.extend(self.open(known, provider, now));
        }
        orders
    }

    /// The clock may have been set back: what has happened has happened by now, and nothing waits for longer than it
    /// ever does.
    fn keep_to(&mut self, now: Timestamp) {
        for stream in self.streams.values_mut() {
            stream.tried = stream.tried.min(now);
            match &mut stream.link {
                Link::Connecting { since } => *since = (*since).min(now),
                Link::Live { since, heard } => (*since, *heard) = ((*since).min(now), (*heard).min(now)),
                Link::Down { retry_at, .. } => *retry_at = retry_at.map(|at| at.min(now + LONGEST_WAIT)),
            }
        }
        self.left.values_mut().for_each(|until| *until = (*until).min(now + LINGERS));
        if let Some((_, since)) = &mut self.focus {
            *since = (*since).min(now);
        }
    }

    /// Closes all: somebody else collects now, and looks into the machines.
    pub fn close_all(&mut self) -> Vec<Order> {
        let streams = std::mem::take(&mut self.streams);
        let up = streams.into_iter().filter(|(_, stream)| stream.is_up());
        up.map(|(identity, _)| Order::Close { identity }).collect()
    }

    /// The accounts whose machines may be looked into.
    fn allowed<'a>(&self, fleet: &'a Fleet) -> BTreeSet<&'a AccountName> {
        fleet.accounts.iter().map(|account| &account.name).filter(|name| self.consent(name).allows()).collect()
    }

    /// Closes what should not be there, and what is silent.
    fn close_unwanted(&mut self, fleet: &Fleet, now: Timestamp) -> Vec<Order> {
        let mut orders = Vec::new();
        let allowed = self.allowed(fleet);
        self.streams.retain(|identity, stream| {
            let stays = allowed.contains(&identity.account) && fleet.instances.get(identity).is_some_and(may_stay);
            let silent = stream.silent_at().is_some_and(|at| at <= now);
            if stream.is_up() && (silent || !stays) {
                orders.push(Order::Close { identity: identity.clone() });
            }
            if silent {
                stream.go_down(identity, Trouble::NoAnswer, now);
            }
            stays
        });
        orders
    }

    /// Whether a stream to a machine is to be opened now.
    fn is_due(&self, known: &Known<Instance>, now: Timestamp) -> bool {
        let Some(stream) = self.streams.get(&known.identity) else { return true };
        let moved = known.row.ssh.as_ref().is_some_and(|endpoint| stream.target.endpoint != *endpoint);
        match &stream.link {
            Link::Down { trouble: Trouble::HostKeyChanged, .. } => false,
            Link::Down { retry_at, .. } => moved || retry_at.is_some_and(|at| at <= now),
            Link::Connecting { .. } => moved,
            Link::Live { .. } => moved || stream.pace != self.pace(&known.identity, now),
        }
    }

    fn open(&mut self, known: &Known<Instance>, provider: &ProviderName, now: Timestamp) -> Vec<Order> {
        let Some(endpoint) = known.row.ssh.as_ref() else { return Vec::new() };
        let identity = &known.identity;
        let target = Target::new(provider, identity, endpoint);
        let before = self.streams.get(identity);
        let close = before.filter(|stream| stream.is_up()).map(|_| Order::Close { identity: identity.clone() });
        let failures = before.map_or(0, |stream| stream.failures);
        self.last += 1;
        let (number, pace) = (self.last, self.pace(identity, now));
        let stream = Stream {
            number,
            target: target.clone(),
            pace,
            link: Link::Connecting { since: now },
            tried: now,
            failures,
        };
        self.streams.insert(identity.clone(), stream);
        let new_key = self.accepted.remove(identity);
        close.into_iter().chain([Order::Open { identity: identity.clone(), number, target, pace, new_key }]).collect()
    }

    /// Takes in what a stream told. False when it is none that is meant any more.
    pub fn told(&mut self, identity: &Identity, number: u64, told: &Told, now: Timestamp) -> bool {
        let Some(stream) = self.streams.get_mut(identity).filter(|stream| stream.number == number && stream.is_up())
        else {
            return false;
        };
        match told {
            Told::Usage(_) => {
                let since = if let Link::Live { since, .. } = stream.link { since } else { now };
                stream.link = Link::Live { since, heard: now };
            }
            Told::Ended(trouble) => stream.go_down(identity, trouble.clone(), now),
        }
        true
    }

    /// Somebody looked into why a host has another key: the next connection, which is due at once, forgets the key
    /// that it had and takes the one that is there. False when no key is in question.
    pub fn accept_host_key(&mut self, identity: &Identity) -> bool {
        let asked = self.alarm(identity).is_some();
        if asked {
            self.streams.remove(identity);
            self.accepted.insert(identity.clone());
        }
        asked
    }

    /// When something is due by itself; `None` when nothing is. Always after `now`.
    pub fn next_wake(&self, now: Timestamp) -> Option<Timestamp> {
        let retries = self.streams.values().filter_map(|stream| match &stream.link {
            Link::Down { retry_at, .. } => *retry_at,
            Link::Connecting { .. } | Link::Live { .. } => stream.silent_at(),
        });
        let places = self.streams.values().filter_map(Stream::connects_until);
        let rests = self.focus.as_ref().map(|(_, since)| *since + RESTED);
        let lingers = self.left.values().copied();
        retries.chain(places).chain(rests).chain(lingers).filter(|at| *at > now).min()
    }

    fn pace(&self, identity: &Identity, now: Timestamp) -> SignedDuration {
        let rests = |(focus, since): &(Identity, Timestamp)| focus == identity && now.duration_since(*since) >= RESTED;
        let close = self.focus.as_ref().is_some_and(rests) || self.left.get(identity).is_some_and(|until| *until > now);
        if close { CLOSE } else { WIDE }
    }
}

/// It runs, and tells an address that runs commands. Whether one that no API lists runs, its link alone can tell.
fn can_be_looked_into(known: &Known<Instance>) -> bool {
    let direct = known.row.ssh.as_ref().is_some_and(|endpoint| endpoint.direct);
    let may_run =
        known.row.remarks.contains(&Remark::NoApi) || matches!(known.phase(), Phase::Running | Phase::Unreachable);
    !known.is_gone() && direct && may_run
}

/// A stream that works is not ended by a provider that is silent, or that leaves an address out.
fn may_stay(known: &Known<Instance>) -> bool {
    can_be_looked_into(known) || matches!(known.phase(), Phase::Running | Phase::Unreachable | Phase::Unknown)
}

/// A share of the pause before a connection is tried again, 0.0 to 1.0: another one for each, so that those that ended
/// together do not come back together.
fn spread(identity: &Identity, number: u64) -> f64 {
    let mut hasher = DefaultHasher::new();
    (identity.account.as_str(), identity.id.as_str(), number).hash(&mut hasher);
    (hasher.finish() % 1024) as f64 / 1024.0
}

/// Half a pause comes on top of it at most; the longest is [`LONGEST_RETRY`], but for what a person has to mend.
fn retry_at(trouble: &Trouble, failures: u32, spread: f64, now: Timestamp) -> Option<Timestamp> {
    let pause = match trouble {
        Trouble::HostKeyChanged => return None,
        trouble if trouble.is_lasting() && failures > BEGINNING => TRY_AGAIN,
        _ => (FIRST_RETRY * 2i32.pow(failures.clamp(1, 8) - 1)).min(LONGEST_RETRY * 2 / 3),
    };
    Some(now + SignedDuration::from_millis((pause.as_millis() as f64 * (1.0 + spread / 2.0)) as i64))
}

#[cfg(test)]
mod tests;
