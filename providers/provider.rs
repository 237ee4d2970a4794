//! What every adapter offers: the one trait between the program and the wires.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use crate::error::{ErrorKind, Problem, ProviderError, RequestLine};
use crate::facts::Facts;
use crate::model::{
    AccountName, Action, Balance, BilledLine, Instance, ProviderName, ResourceId, ResourceKind, StorageItem, Tenant,
};
use crate::ssh::{Machine, Shell};

/// One set of credentials at one provider, ready for use. Prints without its key.
#[derive(Debug, Clone)]
pub struct Access {
    pub provider: ProviderName,
    pub account: AccountName,
    /// As the user's key source gave it; blanks and line ends around it do not count.
    pub key: SecretString,
    /// Replaces scheme, host and port of every address of the provider; paths stay. `http` for loopback only.
    pub base_url: Option<String>,
    /// Overrides of billing facts, by the keys of the provider's `facts.toml`.
    pub facts: BTreeMap<String, String>,
    /// The longest wait for one answer.
    pub timeout: Duration,
    /// Machines that no API lists: for the provider `ssh` alone.
    pub machines: Vec<Machine>,
    /// How they are reached; `None` where nobody can.
    pub shell: Option<Arc<dyn Shell>>,
}

impl Access {
    pub fn new(provider: &str, account: &str, key: impl Into<String>) -> Self {
        Access {
            provider: provider.into(),
            account: account.into(),
            key: SecretString::from(key.into()),
            base_url: None,
            facts: BTreeMap::new(),
            timeout: Duration::from_secs(30),
            machines: Vec::new(),
            shell: None,
        }
    }

    pub fn at(mut self, base_url: impl Into<String>) -> Self {
        self.base_url = Some(base_url.into());
        self
    }
}

/// For which times a provider's records of what it charged are: whole ones of UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BilledFor {
    Hours,
    Days,
}

impl BilledFor {
    /// The length of one record's time, in seconds.
    pub fn seconds(self) -> i64 {
        match self {
            BilledFor::Hours => 3600,
            BilledFor::Days => 86_400,
        }
    }
}

/// What a provider can do at all, whatever the state of a resource. For tables and help; whether an
/// action can be had *now* stands with each resource as its offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    pub stop: bool,
    pub start: bool,
    pub restart: bool,
    pub release: bool,
    /// Storage items are listed and can be deleted.
    pub storage: bool,
    pub balance: bool,
    pub telemetry: bool,
    /// What its records of what it charged are for; `None` when it keeps none.
    pub billed_history: Option<BilledFor>,
    pub spot: bool,
}

/// Why a checkpoint is sent to nobody.
pub(crate) const NO_REQUEST: &str = "a checkpoint is nothing that a provider is asked for";

/// What a poll is to ask. Instances every time; the rest changes more slowly and is asked for more rarely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    pub storage: bool,
    /// Balance and tenant.
    pub money: bool,
}

impl Ask {
    pub const ALL: Ask = Ask { storage: true, money: true };
    pub const INSTANCES: Ask = Ask { storage: false, money: false };
}

/// What one list said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part<T> {
    NotAsked,
    /// The rows that could be read. Only a list without problems may make things disappear.
    Listed {
        rows: Vec<T>,
        problems: Vec<Problem>,
    },
    /// Some were asked for, each by itself, and of the others nothing was learnt: they stay as they are known.
    /// `unheard` are those others, as they stand where nothing better is known of them.
    Pieces {
        rows: Vec<T>,
        unheard: Vec<T>,
    },
    /// No row was learnt; nothing known changes.
    Failed(ProviderError),
}

impl<T> Part<T> {
    pub fn complete(rows: Vec<T>) -> Self {
        Part::Listed { rows, problems: Vec::new() }
    }

    pub fn rows(&self) -> &[T] {
        match self {
            Part::Listed { rows, .. } | Part::Pieces { rows, .. } => rows,
            Part::NotAsked | Part::Failed(_) => &[],
        }
    }
}

/// What was learnt about the account's money.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading<T> {
    NotAsked,
    Known(T),
    /// The provider has no such thing, or no longer tells it. No fault of anybody.
    NotTold,
    Failed(ProviderError),
}

/// One poll of one account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Poll {
    pub instances: Part<Instance>,
    pub storage: Part<StorageItem>,
    pub balance: Reading<Balance>,
    /// `Known` where the provider tells who is behind the key.
    pub tenant: Reading<Tenant>,
    /// What time it was at the provider when the poll ended, to the second; `None` when no answer told.
    #[serde(default)]
    pub server_time: Option<Timestamp>,
}

impl Poll {
    /// Complete lists and nothing else.
    pub fn of_lists(instances: Vec<Instance>, storage: Vec<StorageItem>) -> Self {
        Poll {
            instances: Part::complete(instances),
            storage: Part::complete(storage),
            balance: Reading::NotAsked,
            tenant: Reading::NotAsked,
            server_time: None,
        }
    }
}

/// What asking by id said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    Instance(Box<Instance>),
    Storage(Box<StorageItem>),
    /// The provider says: no such id. Never the answer to a refused key.
    NoSuchId,
    /// The provider cannot be asked by id for this kind.
    CannotAsk,
}

/// How a request that changes something was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Accepted {
    /// A promise, not yet a fact.
    Done,
    /// Will be done when the provider finds room, with the provider's words.
    Queued(String),
    /// Was so already.
    AlreadySo,
}

/// One account at one provider. All methods may be called at the same time; the adapter keeps its
/// provider's pace by itself.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Asks for the lists. Never fails as a whole: each part says how it went.
    async fn poll(&self, ask: Ask, now: Timestamp) -> Poll;

    /// Asks for one resource by id.
    async fn lookup(&self, kind: ResourceKind, id: &ResourceId, now: Timestamp) -> Result<Found, ProviderError>;

    /// Sends one request that changes something, once: nothing is repeated inside. A checkpoint is none of them.
    async fn act(&self, action: Action, id: &ResourceId) -> Result<Accepted, ProviderError>;

    /// What the provider charged, oldest first: the lines that begin at `from` or later and end by `to`. They
    /// are whole hours or days of the provider's own, never cut to the time asked for, so that the same charge
    /// has the same line in every answer. Empty where the provider keeps no such records.
    ///
    /// A line's component is that of the rate that a poll shows for the same charge. One of 0 says that nothing
    /// was charged.
    async fn billed(&self, from: Timestamp, to: Timestamp) -> Result<Vec<BilledLine>, ProviderError>;
}

/// A provider's entry in the registry.
pub struct Entry {
    /// The name in config and `--json`.
    pub name: &'static str,
    /// The name that people know.
    pub title: &'static str,
    pub capabilities: Capabilities,
    /// The environment variables in which the provider's own tools keep a key.
    pub key_env: &'static [&'static str],
    /// The provider's page that makes keys.
    pub key_page: &'static str,
    /// The provider's page to top the account up, if it is prepaid.
    pub money_page: Option<&'static str>,
    /// The built-in billing facts, as TOML.
    pub facts: &'static str,
    /// Makes an account ready. Sends nothing; fails when key, base URL or facts cannot be used.
    pub connect: fn(&Access) -> Result<Arc<dyn Provider>, ProviderError>,
}

impl Entry {
    /// The built-in facts with the user's corrections.
    pub fn facts(&self, access: &Access) -> Result<Facts, ProviderError> {
        Facts::built_in(self.facts).corrected(&access.facts).map_err(|error| ProviderError {
            provider: access.provider.clone(),
            account: access.account.clone(),
            request: RequestLine("config".to_owned()),
            kind: ErrorKind::Unusable { message: error.to_string() },
        })
    }
}
