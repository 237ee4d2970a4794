//! Which machines are looked at over `ssh`, how often, and what became of it.
//!
//! A stream is one connection to one instance, which tells its figures until it ends. The rules say which ones
//! should be there; whoever performs them says what happened.

use std::collections::{BTreeMap, BTreeSet};

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
/// Streams that may be connecting at a time: the exchange of keys costs a processor.
pub const CONNECTING: usize = 8;
/// A stream that has told nothing for so long is dead, whatever its connection says.
pub const SILENT: SignedDuration = SignedDuration::from_secs(60);
const FIRST_RETRY: SignedDuration = SignedDuration::from_secs(15);
const LONGEST_RETRY: SignedDuration = SignedDuration::from_mins(5);
/// What a person has to mend first is tried this often all the same.
const TRY_AGAIN: SignedDuration = SignedDuration::from_mins(10);

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

/// What opens a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    pub endpoint: SshEndpoint,
    /// The name under which its host key is known: of the identity, since addresses are given to the next machine.
    pub alias: String,
}

/// The name under which the host key of an instance is known: letters, digits, `-`, `.` and `_` only, and another
/// one for each identity.
pub fn host_key_alias(provider: &ProviderName, identity: &Identity) -> String {
    let mut alias = String::from("rentop");
    for part in [provider.as_str(), identity.account.as_str(), identity.id.as_str()] {
        alias.push('.');
        for byte in part.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => alias.push(char::from(byte)),
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
    /// Ends in a row without a single look between them.
    failures: u32,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    Open { identity: Identity, number: u64, target: Target, pace: SignedDuration },
    Close { identity: Identity },
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

    /// Somebody has this row under the cursor.
    pub fn focus(&mut self, identity: Option<&Identity>, now: Timestamp) {
        if self.focus.as_ref().map(|(focus, _)| focus) != identity {
            self.focus = identity.map(|identity| (identity.clone(), now));
        }
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
        let mut orders = Vec::new();
        let names = fleet.accounts.iter().map(|account| &account.name);
        let allowed: BTreeSet<&AccountName> = names.filter(|name| self.consent(name).allows()).collect();
        self.streams.retain(|identity, stream| {
            let known = fleet.instances.get(identity);
            let stays = allowed.contains(&identity.account)
                && known.is_some_and(|known| can_be_looked_into(known) || is_only_in_doubt(known));
            if !stays && !matches!(stream.link, Link::Down { .. }) {
                orders.push(Order::Close { identity: identity.clone() });
            }
            stays
        });
        let connecting = |stream: &&Stream| matches!(stream.link, Link::Connecting { .. });
        let mut free = CONNECTING.saturating_sub(self.streams.values().filter(connecting).count());
        for known in allowed.into_iter().flat_map(|account| fleet.instances_of(account)) {
            let identity = &known.identity;
            if free == 0 {
                break;
            }
            if !can_be_looked_into(known) {
                continue;
            }
            let Some(endpoint) = known.row.ssh.as_ref() else { continue };
            let Some(account) = fleet.account(&identity.account) else { continue };
            let pace = self.pace(identity, now);
            let stream = self.streams.get(identity);
            let moved = stream.is_some_and(|stream| stream.target.endpoint != *endpoint);
            let due = match stream.map(|stream| (&stream.link, stream.pace)) {
                None => true,
                Some((Link::Down { trouble: Trouble::HostKeyChanged, .. }, _)) => false,
                Some((Link::Down { retry_at, .. }, _)) => moved || retry_at.is_some_and(|at| at <= now),
                Some((Link::Connecting { since }, _)) => moved || now.duration_since(*since) >= SILENT,
                Some((Link::Live { heard, .. }, was)) => {
                    moved || was != pace || now.duration_since(*heard) >= SILENT + was
                }
            };
            if !due {
                continue;
            }
            let failures = stream.map_or(0, |stream| stream.failures);
            if stream.is_some_and(|stream| !matches!(stream.link, Link::Down { .. })) {
                orders.push(Order::Close { identity: identity.clone() });
            }
            free -= 1;
            self.last += 1;
            let target = Target { endpoint: endpoint.clone(), alias: host_key_alias(&account.provider, identity) };
            let number = self.last;
            orders.push(Order::Open { identity: identity.clone(), number, target: target.clone(), pace });
            let link = Link::Connecting { since: now };
            self.streams.insert(identity.clone(), Stream { number, target, pace, link, failures });
        }
        orders
    }

    /// Takes in what a stream told. False when it is none that is meant any more.
    pub fn told(&mut self, identity: &Identity, number: u64, told: &Told, now: Timestamp) -> bool {
        let Some(stream) = self.streams.get_mut(identity).filter(|stream| stream.number == number) else {
            return false;
        };
        match told {
            Told::Usage(_) => {
                let since = if let Link::Live { since, .. } = stream.link { since } else { now };
                stream.link = Link::Live { since, heard: now };
                stream.failures = 0;
            }
            Told::Ended(trouble) => {
                stream.failures += 1;
                let retry_at = retry_at(trouble, stream.failures, now);
                stream.link = Link::Down { trouble: trouble.clone(), since: now, retry_at };
            }
        }
        true
    }

    /// Forgets that a host had another key: somebody looked into it. The next connection takes the key that is there.
    pub fn accept_host_key(&mut self, identity: &Identity) -> Option<Target> {
        let changed = |stream: &&mut Stream| matches!(stream.link, Link::Down { trouble: Trouble::HostKeyChanged, .. });
        let stream = self.streams.get_mut(identity).filter(changed)?;
        let target = stream.target.clone();
        self.streams.remove(identity);
        Some(target)
    }

    /// When something is due by itself.
    pub fn next_wake(&self, now: Timestamp) -> Option<Timestamp> {
        let retries = self.streams.values().filter_map(|stream| match &stream.link {
            Link::Down { retry_at, .. } => *retry_at,
            Link::Connecting { since } => Some(*since + SILENT),
            Link::Live { heard, .. } => Some(*heard + SILENT + stream.pace),
        });
        let rests = self.focus.as_ref().map(|(_, since)| *since + RESTED);
        retries.chain(rests).filter(|at| *at > now).min()
    }

    fn pace(&self, identity: &Identity, now: Timestamp) -> SignedDuration {
        let rests = |(focus, since): &(Identity, Timestamp)| focus == identity && now.duration_since(*since) >= RESTED;
        if self.focus.as_ref().is_some_and(rests) { CLOSE } else { WIDE }
    }
}

/// It runs, and tells an address that runs commands. Whether one that no API lists runs, its link alone can tell.
fn can_be_looked_into(known: &Known<Instance>) -> bool {
    let direct = known.row.ssh.as_ref().is_some_and(|endpoint| endpoint.direct);
    let may_run =
        known.row.remarks.contains(&Remark::NoApi) || matches!(known.phase(), Phase::Running | Phase::Unreachable);
    !known.is_gone() && direct && may_run
}

/// A provider that is silent ends no stream that works.
fn is_only_in_doubt(known: &Known<Instance>) -> bool {
    !known.is_gone() && known.phase() == Phase::Unknown
}

fn retry_at(trouble: &Trouble, failures: u32, now: Timestamp) -> Option<Timestamp> {
    match trouble {
        Trouble::HostKeyChanged => None,
        trouble if trouble.is_lasting() => Some(now + TRY_AGAIN),
        _ => Some(now + (FIRST_RETRY * 2i32.saturating_pow(failures.min(8) - 1)).min(LONGEST_RETRY)),
    }
}
