//! What a machine is doing at one moment: its GPUs, and what else is known of it.
//!
//! Two sources fill it: a provider's telemetry, which knows little, and the machine itself over `ssh`. What a
//! source does not say is `None`, never 0: a lost card, a missing column and `[N/A]` all mean "not known".

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// Figures older than this are no longer those of now.
const FRESH: SignedDuration = SignedDuration::from_mins(5);

/// One look at one GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuSample {
    /// In the order of the machine, from 0. A card that is lost moves those behind it.
    pub index: u32,
    /// The card's own id, which stays its own when others are lost; `None` where the source has none.
    #[serde(default)]
    pub key: Option<String>,
    /// What the source calls the card, cleaned.
    #[serde(default)]
    pub model: Option<String>,
    /// The share of time in which something ran on it, 0.0 to 1.0.
    pub utilization: Option<f64>,
    pub memory_used_bytes: Option<u64>,
    pub memory_total_bytes: Option<u64>,
    pub temperature_c: Option<f64>,
    pub power_watts: Option<f64>,
    #[serde(default)]
    pub power_limit_watts: Option<f64>,
    /// It is cut into parts (NVIDIA's MIG): what it does as a whole is told by nobody.
    #[serde(default)]
    pub partitioned: bool,
    /// What its driver says is wrong with it, cleaned: lost, needs a reset, does not answer.
    #[serde(default)]
    pub fault: Option<String>,
}

impl GpuSample {
    /// The share of its memory in use, 0.0 to 1.0.
    pub fn memory_share(&self) -> Option<f64> {
        let total = self.memory_total_bytes.filter(|total| *total > 0)?;
        Some((self.memory_used_bytes? as f64 / total as f64).min(1.0))
    }

    /// The power that it draws, as a share of what it may draw, 0.0 and up.
    pub fn power_share(&self) -> Option<f64> {
        let limit = self.power_limit_watts.filter(|limit| *limit > 0.0)?;
        Some(self.power_watts? / limit)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageSource {
    Provider,
    Ssh,
}

/// A file system of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Where it stands, cleaned.
    pub path: String,
    pub used_bytes: u64,
    pub total_bytes: u64,
}

/// A process that holds memory of a GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuProcess {
    /// The card's place among `Usage::gpus`; `None` when it is not told which.
    pub gpu: Option<u32>,
    pub pid: u32,
    /// Its name, cleaned and short; `None` when it is of another name space.
    pub name: Option<String>,
    pub memory_bytes: Option<u64>,
}

/// A program that waits for requests with a model in memory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Server {
    Vllm,
    TensorRtLlm,
    Tgi,
    /// Something that holds memory of a GPU and listens.
    Port(u16),
}

/// Usage of one instance at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// When the figures were taken; for a provider without a time of its own, when it was asked.
    pub as_of: Timestamp,
    /// The source itself says that they are of that time. What is not so may be what it heard last, whenever.
    #[serde(default)]
    pub timed: bool,
    pub source: UsageSource,
    /// One a GPU. Where a provider has one figure for all, one entry stands for all of them.
    pub gpus: Vec<GpuSample>,
    /// The source has named all cards that it sees: when there is none among `gpus`, it sees none.
    #[serde(default)]
    pub gpus_told: bool,
    /// True when the single entry of `gpus` is the average of several cards.
    pub averaged: bool,
    /// CPU use of all cores, 0.0 to 1.0.
    pub cpu: Option<f64>,
    /// Main memory in use, 0.0 to 1.0.
    pub memory: Option<f64>,
    /// Read and written by all disks.
    #[serde(default)]
    pub disk_bytes_per_second: Option<f64>,
    /// Received and sent by all devices but the loopback.
    #[serde(default)]
    pub network_bytes_per_second: Option<f64>,
    #[serde(default)]
    pub mounts: Vec<Mount>,
    /// Who is logged in, each once, cleaned. `None` when not known.
    #[serde(default)]
    pub users: Option<Vec<String>>,
    /// The biggest first. `None` when not known; none that is visible is no proof that none is there.
    #[serde(default)]
    pub processes: Option<Vec<GpuProcess>>,
    #[serde(default)]
    pub servers: Vec<Server>,
    /// Why nothing is known of any GPU, cleaned: a driver that does not answer, for instance. `None` when all is well.
    #[serde(default)]
    pub fault: Option<String>,
}

impl Usage {
    /// A look that knows nothing yet.
    pub fn new(as_of: Timestamp, source: UsageSource) -> Self {
        Usage {
            as_of,
            timed: false,
            source,
            gpus: Vec::new(),
            gpus_told: false,
            averaged: false,
            cpu: None,
            memory: None,
            disk_bytes_per_second: None,
            network_bytes_per_second: None,
            mounts: Vec::new(),
            users: None,
            processes: None,
            servers: Vec::new(),
            fault: None,
        }
    }

    /// Its figures are those of a time, not of long before.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        now.duration_since(self.as_of) < FRESH
    }

    /// The mean utilization over the GPUs that told it, 0.0 to 1.0; `None` when none did.
    pub fn mean_utilization(&self) -> Option<f64> {
        let known: Vec<f64> = self.gpus.iter().filter_map(|gpu| gpu.utilization).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    }
}
