//! What outlives the program: the fleet as last seen, settings, and every action's record. The ledger
//! keeps these; nothing here knows how.

use std::collections::BTreeMap;

use jiff::Timestamp;
use providers::model::{AccountName, Balance, Identity, Instance, ProviderName, ResourceKind, StorageItem, Tenant};
use serde::{Deserialize, Serialize};

use super::alerts::Alert;
use super::checkpoint::Saved;
use super::dispatch::Message;
use super::earlier::Earlier;
use super::fleet::{AsOf, Known};
use super::lease::Lease;
use super::saga::Operation;
use super::settings::Setting;
use super::spend::{Entries, Horizon, Meter, Running};
use super::streams::Consent;

/// An account as last seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccountMemory {
    pub name: AccountName,
    pub provider: ProviderName,
    /// Of the last complete or partial poll.
    pub as_of: Option<Timestamp>,
    pub last_complete: Option<Timestamp>,
    pub tenant: Option<Tenant>,
    pub balance: Option<AsOf<Balance>>,
    /// Of the last list of instances that was read: their open lines reach as far.
    #[serde(default)]
    pub instances_seen: Option<Horizon>,
    /// The same of storage.
    #[serde(default)]
    pub storage_seen: Option<Horizon>,
    /// Somebody knows that nobody watches it any more: what runs there is no news. Watching it again ends that.
    #[serde(default)]
    pub unwatched_noted: bool,
    /// Whether its machines may be looked into, where that was said for good.
    #[serde(default)]
    pub streams: Consent,
}

impl AccountMemory {
    /// Of an account that was never seen.
    pub fn new(name: AccountName, provider: ProviderName) -> Self {
        AccountMemory {
            name,
            provider,
            as_of: None,
            last_complete: None,
            tenant: None,
            balance: None,
            instances_seen: None,
            storage_seen: None,
            unwatched_noted: false,
            streams: Consent::default(),
        }
    }
}

/// What one poll changed: the account's line every time, of its resources only those that differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Keep {
    pub account: AccountMemory,
    pub instances: Vec<Known<Instance>>,
    pub storage: Vec<Known<StorageItem>>,
    /// What it adds to the books.
    pub entries: Entries,
}

/// The process that acts: an action of one that has ended is taken up by the next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    pub host: String,
    pub pid: u32,
}

/// Everything that the ledger knows when the program starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    pub accounts: Vec<AccountMemory>,
    pub instances: Vec<Known<Instance>>,
    pub storage: Vec<Known<StorageItem>>,
    /// What is gone. Only who collects is told of it.
    #[serde(default)]
    pub earlier: Earlier,
    #[serde(skip)]
    pub settings: BTreeMap<Identity, Setting>,
    /// What was being charged.
    pub running: Vec<(Identity, Running)>,
    /// Up to when the books have what was billed, of each account of which they have any.
    #[serde(default)]
    pub billed_to: BTreeMap<AccountName, Timestamp>,
    /// Actions that are not ended, each with the process that began it.
    pub unfinished: Vec<(Operation, Owner)>,
    /// The latest ended actions, newest first.
    pub recent: Vec<Operation>,
    /// Leases in force.
    #[serde(default)]
    pub leases: Vec<Lease>,
    /// The last verified checkpoint of each resource that has one.
    #[serde(default)]
    pub saved: Vec<Saved>,
    /// Alerts that are open, and the latest that ended.
    #[serde(default)]
    pub alerts: Vec<Alert>,
    /// What channels are still to be told, the oldest first.
    #[serde(default)]
    pub messages: Vec<Message>,
}

impl Memory {
    /// What is being charged, as the books have it. Of the accounts that nobody watches it is counted to their
    /// last look.
    pub fn meter(&self, watched: impl Fn(&AccountMemory) -> bool) -> Meter {
        let horizons = self.accounts.iter().flat_map(|account| {
            let of = |kind, seen: Option<Horizon>| seen.map(|seen| ((account.name.clone(), kind), seen));
            [of(ResourceKind::Instance, account.instances_seen), of(ResourceKind::Storage, account.storage_seen)]
        });
        let mut meter = Meter::new(self.running.iter().cloned().collect(), horizons.flatten());
        for account in self.accounts.iter().filter(|account| !watched(account)) {
            meter.leave_unwatched(&account.name);
        }
        meter
    }
}

/// Every account and resource that was ever seen, as it was seen last; gone ones too.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Past {
    pub accounts: Vec<AccountMemory>,
    pub instances: Vec<Known<Instance>>,
    pub storage: Vec<Known<StorageItem>>,
}

/// Who may poll, write and act: one process a ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Collector {
    /// This process.
    Us,
    /// Another one, whose claim runs out at `until` unless it is renewed.
    Other { owner: Owner, until: Timestamp },
}

/// What a person should know about the ledger itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LedgerNotice {
    /// The file was damaged or not ours; it was moved to `kept_as` and a new one begun.
    SetAside { kept_as: String, why: String },
    /// The new one is the last good copy, of `as_of`: what was written after that is in the damaged file only.
    Restored { from: String, as_of: Option<Timestamp> },
    /// Written by a newer rentop: opened to read only.
    Newer,
    /// Nothing can be written (read-only or full disk); the program goes on without a memory.
    NotWritable { why: String },
    /// A copy was made before its layout was brought up to date.
    BackedUp { kept_as: String },
    /// Rows that this version cannot read were left as they are.
    Unreadable { rows: usize },
}
