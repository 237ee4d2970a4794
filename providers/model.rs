//! The words of the trade as types: what an account holds, what it costs, what can be done with it.
//!
//! Every adapter speaks in these; nothing here knows a wire, a screen or a database. The types derive
//! serde for one purpose, the versioned stream of events (attach, record, replay, the ledger's memory of
//! the fleet); no provider's answer is ever read into them.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use crate::gpu::Gpus;
use crate::money::{Burn, Money, Rate};
use crate::usage::Usage;

// Names are shared: an identity is copied for every line, place and mark of every row.
macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl Ord for $name {
            /// The same shared text is known to be equal without a look at it: most steps of a search among the rows
            /// of one account are of this kind.
            fn cmp(&self, other: &Self) -> Ordering {
                if Arc::ptr_eq(&self.0, &other.0) { Ordering::Equal } else { self.0.cmp(&other.0) }
            }
        }
        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl $name {
            pub fn new(text: impl AsRef<str>) -> Self {
                $name(text.as_ref().into())
            }
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.0)
            }
        }
        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                $name(text.into())
            }
        }
        impl From<String> for $name {
            fn from(text: String) -> Self {
                $name(text.into())
            }
        }
        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.as_str().to_owned()
            }
        }
    };
}

name_type!(
    /// A provider's name in the registry, for instance `runpod`.
    ProviderName
);
name_type!(
    /// The user's own name of one account, unique in the config.
    AccountName
);
name_type!(
    /// The provider's id of a resource, unique within its account and kind.
    ResourceId
);

/// What a resource is. Ids of instances and of storage items are numbered apart at some providers, so the
/// kind belongs to the identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceKind {
    Instance,
    Storage,
}

/// Which resource exactly: the key everywhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Identity {
    pub account: AccountName,
    pub kind: ResourceKind,
    pub id: ResourceId,
    /// Rises only when a known creation time changes: the provider gave the id to another machine.
    pub generation: u32,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.account, self.id)
    }
}

/// Where an instance is in its life. What it costs is told by its rates, not by this word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Provisioning,
    Running,
    Stopping,
    Stopped,
    /// Taken or paused by the provider: spot, outbid.
    Reclaimed,
    /// The provider says that the rental exists but its host does not answer.
    Unreachable,
    Releasing,
    Gone,
    Failed,
    /// A word that is not known, or a resource that was missing once.
    Unknown,
}

impl Phase {
    /// Every phase, in the order of a life.
    pub const ALL: [Phase; 10] = [
        Phase::Provisioning,
        Phase::Running,
        Phase::Stopping,
        Phase::Stopped,
        Phase::Reclaimed,
        Phase::Unreachable,
        Phase::Releasing,
        Phase::Gone,
        Phase::Failed,
        Phase::Unknown,
    ];

    /// The word of `--json` and of the ledger.
    pub fn word(self) -> &'static str {
        match self {
            Phase::Provisioning => "provisioning",
            Phase::Running => "running",
            Phase::Stopping => "stopping",
            Phase::Stopped => "stopped",
            Phase::Reclaimed => "reclaimed",
            Phase::Unreachable => "unreachable",
            Phase::Releasing => "releasing",
            Phase::Gone => "gone",
            Phase::Failed => "failed",
            Phase::Unknown => "unknown",
        }
    }
}

/// On which terms an instance is rented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Market {
    OnDemand,
    /// Interruptible: the provider may take it at any time.
    Spot,
    /// Prepaid, until a date where the provider tells it.
    Reserved {
        until: Option<Timestamp>,
    },
}

/// What a rate is charged for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Component {
    Compute,
    /// The instance's own disk.
    Disk,
    /// A storage item of its own.
    Storage,
    Ip,
    Traffic,
    Other,
}

/// One component's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLine {
    pub component: Component,
    pub rate: Rate,
    /// Computed by us from list prices or sizes, not stated by the provider for this resource.
    pub estimated: bool,
    /// False when it *may* be charged (unknown and starting phases): such a line counts in the upper burn only.
    pub certain: bool,
}

/// All that is known of what a resource costs per hour.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rates {
    pub lines: Vec<RateLine>,
    /// False when a part that may cost is not known: the total is then a lower bound.
    pub complete: bool,
}

impl Rates {
    /// Known in full, and nothing yet: add lines to it.
    pub fn known() -> Self {
        Rates { lines: Vec::new(), complete: true }
    }

    /// Nothing is known.
    pub fn unknown() -> Self {
        Rates::default()
    }

    /// Adds a charge that is certain.
    pub fn with(self, component: Component, rate: Rate) -> Self {
        self.push(RateLine { component, rate, estimated: false, certain: true })
    }

    /// Adds a certain charge that was computed from list prices.
    pub fn with_estimate(self, component: Component, rate: Rate) -> Self {
        self.push(RateLine { component, rate, estimated: true, certain: true })
    }

    /// Adds a line. A `None` where a charge is likely makes the whole incomplete: see [`Rates::with_missing`].
    pub fn push(mut self, line: RateLine) -> Self {
        self.lines.push(line);
        self
    }

    /// Notes that some component's rate could not be read.
    pub fn with_missing(mut self) -> Self {
        self.complete = false;
        self
    }

    /// The same charges, none of them certain.
    pub fn doubtful(mut self) -> Self {
        self.lines.iter_mut().for_each(|line| line.certain = false);
        self
    }

    /// Sum of the certain lines, a currency at a time.
    pub fn certain(&self) -> Burn {
        self.lines.iter().filter(|line| line.certain).map(|line| line.rate).collect()
    }

    /// Sum of all lines, those that only may be charged included.
    pub fn upper(&self) -> Burn {
        self.lines.iter().map(|line| line.rate).collect()
    }

    /// Sum of the lines of some components, certain or not.
    pub fn of(&self, components: &[Component]) -> Burn {
        self.lines.iter().filter(|line| components.contains(&line.component)).map(|line| line.rate).collect()
    }

    pub fn estimated(&self) -> bool {
        self.lines.iter().any(|line| line.estimated)
    }
}

/// Where `ssh` reaches an instance. Made only by [`SshEndpoint::new`] and [`SshEndpoint::of_config`], so that none
/// of its parts can be read as an option or a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SshEndpoint {
    /// `None` leaves it to the person's ssh config.
    pub user: Option<String>,
    /// A name, an address, or a `Host` of the person's ssh config.
    pub host: String,
    /// `None` leaves it to the person's ssh config.
    pub port: Option<u16>,
    /// False for a provider's proxy, which may offer a shell but no commands and no copies.
    pub direct: bool,
}

impl SshEndpoint {
    /// The line that opens it in a shell; its parts hold nothing that a shell takes for its own.
    pub fn command_line(&self) -> String {
        let destination = self.destination();
        match self.port {
            None | Some(22) => format!("ssh {destination}"),
            Some(port) => format!("ssh -p {port} {destination}"),
        }
    }

    /// `user@host`, or the host alone.
    pub fn destination(&self) -> String {
        match &self.user {
            Some(user) => format!("{user}@{}", self.host),
            None => self.host.clone(),
        }
    }

    /// For people: `user@host:port`, as far as it is told.
    pub fn place(&self) -> String {
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}{port}", self.destination())
    }

    /// What `ssh` is given to find it, after its options.
    pub fn arguments(&self) -> Vec<String> {
        let port = self.port.map(|port| ["-p".to_owned(), port.to_string()]);
        port.into_iter().flatten().chain(["--".to_owned(), self.destination()]).collect()
    }

    /// `None` when user or host hold anything but the characters of names and addresses, begin with a
    /// dash, or the port is 0.
    pub fn new(user: &str, host: &str, port: u16, direct: bool) -> Option<Self> {
        Self::safe(host, Some(user), Some(port), direct)
    }

    /// The same of what a person wrote down, who may leave user and port to the own ssh config.
    pub fn of_config(host: &str, user: Option<&str>, port: Option<u16>) -> Option<Self> {
        Self::safe(host, user, port, true)
    }

    fn safe(host: &str, user: Option<&str>, port: Option<u16>, direct: bool) -> Option<Self> {
        let (user, host) = (user.map(str::trim), host.trim());
        let safe = |text: &str, more: &[char]| {
            !text.is_empty()
                && text.len() <= 255
                && !text.starts_with('-')
                && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(&c))
        };
        let user_is_safe = user.is_none_or(|user| safe(user, &['-', '_', '.']));
        (user_is_safe && safe(host, &['-', '.', ':', '_']) && port != Some(0)).then(|| SshEndpoint {
            user: user.map(str::to_owned),
            host: host.to_owned(),
            port,
            direct,
        })
    }
}

/// Something that holds data and what happens to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataPlace {
    pub kind: DataKind,
    /// Its name or id, when it has one that the user would know.
    pub name: Option<String>,
    /// Where it is mounted in the instance.
    pub path: Option<String>,
    /// Its size in GB as the provider counts; `None` when not told.
    pub size_gb: Option<Decimal>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataKind {
    /// The root file system of a container: everything outside the mounts.
    ContainerDisk,
    /// The instance's own lasting disk.
    VolumeDisk,
    /// The disk of a virtual machine.
    LocalDisk,
    /// A storage item that outlives the instance.
    NetworkVolume,
    FileSystem,
    /// A volume bound to the host, attached to the instance.
    LocalVolume,
    /// The contents of the storage item that the action is about.
    Contents,
}

/// What may go wrong although the action itself succeeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// A stopped instance keeps its place on the host but not its GPU: others may take it.
    GpuMayBeTaken,
    /// A start that finds no GPU waits at the provider, and may begin to bill hours later.
    StartMayQueue,
    /// A start that finds no GPU may come up without one.
    StartMayLackGpu,
    /// Everything outside the mounts is erased, although what is mounted stays.
    ScratchErased,
    /// The address and port of `ssh` change.
    AddressChanges,
    /// The contract ends at a date after which the instance cannot be started again.
    ContractEnds,
    /// The provider may charge more for the disk while stopped.
    DiskMayCostMore,
    /// Others may be using it: the provider does not tell who mounts it.
    UseUnknown,
}

/// What an action does, as far as facts and provider tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// What the resource costs afterwards.
    pub rates_after: Rates,
    /// Storage items that go on costing by themselves afterwards, by id.
    pub left_behind: Vec<ResourceId>,
    pub kept: Vec<DataPlace>,
    pub lost: Vec<DataPlace>,
    pub risks: Vec<Risk>,
}

impl Effect {
    /// True when the action destroys something that a person could miss.
    pub fn loses_data(&self) -> bool {
        !self.lost.is_empty()
    }
}

/// Why an action is not to be had for a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The provider has no such call for any resource of the kind.
    NotOffered,
    /// It is known over ssh alone, and the config names no command that does it.
    NoApi,
    /// It does not fit the phase that the resource is in.
    WrongPhase,
    /// Locked against it at the provider.
    Locked,
    /// Still used by other resources.
    InUse,
    /// Member of a group that is managed as a whole.
    ManagedElsewhere,
    /// The provider's own words.
    Told(String),
}

/// Whether an action can be had now, and what it would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Offer {
    Yes(Effect),
    No(Refusal),
}

impl Offer {
    pub fn effect(&self) -> Option<&Effect> {
        match self {
            Offer::Yes(effect) => Some(effect),
            Offer::No(_) => None,
        }
    }
}

/// What can be done to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Stop,
    Start,
    Restart,
    /// Deletes an instance.
    Release,
    /// Deletes a storage item.
    Delete,
    /// Brings what is worth keeping out of an instance: nothing that a provider is asked for.
    Checkpoint,
}

impl Action {
    pub fn word(self) -> &'static str {
        match self {
            Action::Stop => "stop",
            Action::Start => "start",
            Action::Restart => "restart",
            Action::Release => "release",
            Action::Delete => "delete",
            Action::Checkpoint => "checkpoint",
        }
    }
}

/// The offers of one instance, computed by its adapter from the answer and the billing facts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offers {
    pub stop: Offer,
    pub start: Offer,
    pub restart: Offer,
    pub release: Offer,
}

impl Offers {
    /// The offer of one action; deleting is for storage items, so it is not offered here.
    pub fn of(&self, action: Action) -> Offer {
        match action {
            Action::Stop => self.stop.clone(),
            Action::Start => self.start.clone(),
            Action::Restart => self.restart.clone(),
            Action::Release => self.release.clone(),
            Action::Delete | Action::Checkpoint => Offer::No(Refusal::NotOffered),
        }
    }
}

/// Why an instance is as it is, where the phase alone would mislead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Remark {
    /// Outbid: its own price is under the present minimum.
    Outbid,
    /// A start waits at the provider for a free GPU and will bill when it comes.
    StartQueued,
    /// Runs without GPUs, for saving data only.
    NoGpus,
    /// Locked against stop at the provider.
    Locked,
    /// The boot failed and will not go on.
    BootFailed,
    /// No data outlives a stop.
    NothingSurvivesStop,
    /// The provider does not tell when it began; spend counts from the first sight.
    StartTimeUnknown,
    /// No API lists it: it is what the config says, and what is known of it came over its `ssh` link.
    NoApi,
}

/// In which units of time a provider counts compute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Granularity {
    /// As it comes, by the second or finer.
    #[default]
    Exact,
    /// Each run in whole steps, and at least for so long.
    Steps { seconds: u32, least_seconds: u32 },
    /// Piece by piece at each full hour and at the end, each piece rounded up to a multiple of this amount.
    ClockHours { round_up_to: Decimal },
}

/// A higher price that is asked for. The present one holds until somebody accepts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repricing {
    /// What is to become dearer, as it is: a part of the rates or all of them.
    pub rate: Rate,
    /// What the same would cost.
    pub asked: Rate,
    /// When the rental ends unless it is accepted; `None` when that is not told.
    pub ends_at: Option<Timestamp>,
}

/// What a provider does with a resource by itself when its account's money has run out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It is stopped, and its data is kept.
    Stopped,
    /// It is deleted with its data, at once.
    Deleted,
    /// It is stopped if it runs, and deleted after a time of grace unless somebody pays.
    DeletedLater,
    /// Nothing ends: it is billed afterwards.
    GoesOn,
    #[default]
    Unknown,
}

/// A rented machine, container or pod, as one poll saw it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Instance {
    pub id: ResourceId,
    /// Cleaned; `None` when the user gave none.
    pub name: Option<String>,
    pub phase: Phase,
    /// The provider's own word, cleaned; `None` when it sent none.
    pub provider_phase: Option<String>,
    /// The provider's own remark on its state, cleaned and short.
    pub note: Option<String>,
    pub remarks: Vec<Remark>,
    pub market: Market,
    /// `None` when the provider does not say, or there are no GPUs by kind (a CPU instance has count 0).
    pub gpus: Option<Gpus>,
    pub rates: Rates,
    /// When the rental began, by the provider.
    pub created_at: Option<Timestamp>,
    /// When the present run began, by the provider.
    pub started_at: Option<Timestamp>,
    /// When it was last stopped, or ended, by the provider.
    #[serde(default)]
    pub stopped_at: Option<Timestamp>,
    #[serde(default)]
    pub granularity: Granularity,
    /// A rise of its price that waits to be accepted.
    #[serde(default)]
    pub repricing: Option<Repricing>,
    /// When the provider will end it by itself.
    pub ends_at: Option<Timestamp>,
    /// What becomes of it when the account's money has run out.
    #[serde(default)]
    pub at_zero: Fate,
    pub usage: Option<Usage>,
    pub ssh: Option<SshEndpoint>,
    pub region: Option<String>,
    pub labels: BTreeMap<String, String>,
    /// Ids of the storage items that are mounted in it.
    pub mounts: Vec<ResourceId>,
    pub offers: Offers,
    /// The provider's page of it, for a browser; https only, holds no secret.
    pub page: Option<String>,
}

impl Instance {
    /// It is stopped, by its user or its provider: what it still costs does no work.
    pub fn is_resting(&self) -> bool {
        matches!(self.phase, Phase::Stopped | Phase::Reclaimed)
    }
}

/// What a storage item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StorageKind {
    Volume,
    NetworkVolume,
    FileSystem,
    Snapshot,
    Image,
    Address,
}

impl StorageKind {
    pub fn word(self) -> &'static str {
        match self {
            StorageKind::Volume => "volume",
            StorageKind::NetworkVolume => "network_volume",
            StorageKind::FileSystem => "file_system",
            StorageKind::Snapshot => "snapshot",
            StorageKind::Image => "image",
            StorageKind::Address => "address",
        }
    }
}

/// Who uses a storage item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attachment {
    /// These instances; nobody when empty.
    To(Vec<ResourceId>),
    /// In use, but the provider does not say by whom.
    Somewhere,
    Unknown,
}

/// A volume, file system, snapshot, image or address that is billed on its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StorageItem {
    pub id: ResourceId,
    pub name: Option<String>,
    pub kind: StorageKind,
    /// In GiB, or in the provider's GB where it does not tell them apart; what is charged on.
    pub size_gib: Option<Decimal>,
    pub attachment: Attachment,
    pub rates: Rates,
    pub created_at: Option<Timestamp>,
    pub region: Option<String>,
    pub labels: BTreeMap<String, String>,
    /// What becomes of it when the account's money has run out.
    #[serde(default)]
    pub at_zero: Fate,
    pub delete: Offer,
    pub page: Option<String>,
}

/// What is left of a prepaid account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Balance {
    /// Cash, may be negative. Positive means credit left, whatever sign the provider uses.
    pub cash: Money,
    /// Vouchers beside it: they are shown but are no runway.
    pub voucher: Option<Money>,
    /// What the provider says that the account burns now, where it does.
    pub provider_burn: Option<Rate>,
}

/// Who is behind a key: two keys with the same tenant id open one and the same account.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tenant {
    pub id: String,
}

/// One line of what a provider charged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BilledLine {
    /// The resource, when the line names one; else see `product`.
    pub resource: Option<(ResourceKind, ResourceId)>,
    /// The provider's product name for lines that belong to no listed resource, cleaned.
    pub product: String,
    pub component: Component,
    pub from: Timestamp,
    pub to: Timestamp,
    pub amount: Money,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ssh_endpoint_can_be_no_option_and_no_command() {
        assert!(SshEndpoint::new("root", "192.0.2.45\n", 22, true).is_some());
        assert!(SshEndpoint::new("root", "2001:db8::1", 22, true).is_some());
        for (user, host, port) in [
            ("-oProxyCommand=x", "192.0.2.1", 22),
            ("root", "-oProxyCommand=x", 22),
            ("root", "192.0.2.1;reboot", 22),
            ("root", "host name", 22),
            ("ro$(x)ot", "192.0.2.1", 22),
            ("root", "192.0.2.1", 0),
            ("", "192.0.2.1", 22),
        ] {
            assert_eq!(SshEndpoint::new(user, host, port, true), None, "{user} {host} {port}");
        }
    }

    #[test]
    fn a_doubtful_rate_counts_in_the_upper_burn_only() {
        use crate::money::{Currency, Rate};
        let rate = Rate::per_hour(Decimal::ONE, Currency::USD).unwrap();
        let rates = Rates::known().with(Component::Compute, rate).doubtful();
        assert!(rates.certain().is_zero());
        assert_eq!(rates.upper().of(Currency::USD), rate);
    }
}
