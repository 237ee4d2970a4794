//! What RunPod's interfaces say, word for word, as far as it is read.
//!
//! REST v2 unless a type says GraphQL. `env`, `registry` and `args` are not read at all: they can hold
//! secrets. Money is read from the digits as they were sent and never passes through a float.

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::de::{DeserializeOwned, Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// `GET /v2/pods`. The rows are read one by one, so that one bad row does not hide the others.
#[derive(Debug, Deserialize)]
pub struct PodList {
    pub pods: Vec<Box<RawValue>>,
    pub pagination: Option<Pagination>,
}

/// `GET /v2/network-volumes`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeList {
    pub network_volumes: Vec<Box<RawValue>>,
    pub pagination: Option<Pagination>,
}

/// `GET /v2/serverless`.
#[derive(Debug, Deserialize)]
pub struct EndpointList {
    pub endpoints: Vec<Box<RawValue>>,
    pub pagination: Option<Pagination>,
}

/// `GET /v2/billing` and its kin.
#[derive(Debug, Deserialize)]
pub struct RecordList {
    pub records: Vec<Box<RawValue>>,
    pub pagination: Option<Pagination>,
}

/// UNSURE: seen by a third party on 2026-09-29, absent in the description of 2026-08-20.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Pagination {
    pub next_cursor: Option<String>,
    pub has_next_page: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pod {
    #[serde(deserialize_with = "plain_id")]
    pub id: String,
    #[serde(default, deserialize_with = "text")]
    pub name: Option<String>,
    #[serde(default, deserialize_with = "text")]
    pub status: Option<String>,
    /// The moves that are allowed now; `None` when the answer does not speak of it.
    #[serde(default, deserialize_with = "lenient")]
    pub actions: Option<Vec<String>>,
    /// Container disk, GB.
    #[serde(default, deserialize_with = "number")]
    pub disk: Option<Decimal>,
    pub mounts: Option<Mounts>,
    /// Missing for CPU pods, and perhaps after a start without GPUs.
    pub gpu: Option<Gpu>,
    pub cpu: Option<Cpu>,
    #[serde(default, deserialize_with = "text")]
    pub data_center_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub ssh: Option<Ssh>,
    /// USD per hour for the whole pod; 0.0 when EXITED or TERMINATED.
    #[serde(default, deserialize_with = "number")]
    pub cost: Option<Decimal>,
    pub locked: Option<bool>,
    /// Present for the members of a cluster only.
    pub cluster: Option<IgnoredAny>,
    /// Null when not running; every inner field is optional even when running.
    #[serde(default, deserialize_with = "lenient")]
    pub runtime: Option<Runtime>,
    #[serde(default, deserialize_with = "time")]
    pub created_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "time")]
    pub started_at: Option<Timestamp>,
}

/// At most one kind is present.
#[derive(Debug, Default, Deserialize)]
pub struct Mounts {
    pub persistent: Option<PersistentMount>,
    pub network: Option<Vec<NetworkMount>>,
}

#[derive(Debug, Deserialize)]
pub struct PersistentMount {
    /// GB.
    #[serde(default, deserialize_with = "number")]
    pub size: Option<Decimal>,
    #[serde(default, deserialize_with = "text")]
    pub path: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkMount {
    #[serde(deserialize_with = "plain_id")]
    pub volume_id: String,
    #[serde(default, deserialize_with = "text")]
    pub path: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct Gpu {
    /// The type's name, for instance `NVIDIA GeForce RTX 4090`.
    #[serde(default, deserialize_with = "text")]
    pub id: Option<String>,
    /// 1 when missing, says the description.
    pub count: Option<u32>,
    /// GB of one card; in newer answers only.
    #[serde(default, deserialize_with = "lenient")]
    pub memory: Option<u32>,
}

#[derive(Debug, Deserialize)]
pub struct Cpu {
    #[serde(default, deserialize_with = "text")]
    pub id: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct Ssh {
    /// An interactive shell only: no commands, no copies.
    #[serde(default, deserialize_with = "lenient")]
    pub proxy: Option<SshTarget>,
    /// Only while the pod runs and publishes `22/tcp`.
    #[serde(default, deserialize_with = "lenient")]
    pub direct: Option<SshTarget>,
}

#[derive(Debug, Deserialize)]
pub struct SshTarget {
    pub host: String,
    pub port: u16,
    pub username: String,
}

#[derive(Debug, Deserialize)]
pub struct Runtime {
    /// Seconds since the container started.
    pub uptime: Option<i64>,
    pub gpus: Option<Vec<GpuLoad>>,
    pub cpu: Option<Load>,
    pub memory: Option<Load>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GpuLoad {
    /// Percent.
    pub util: Option<f64>,
    /// Percent.
    pub memory_util: Option<f64>,
}

#[derive(Debug, Deserialize)]
pub struct Load {
    /// Percent.
    pub util: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    #[serde(deserialize_with = "plain_id")]
    pub id: String,
    #[serde(default, deserialize_with = "text")]
    pub name: Option<String>,
    /// GB.
    #[serde(default, deserialize_with = "number")]
    pub size: Option<Decimal>,
    #[serde(default, deserialize_with = "text")]
    pub data_center: Option<String>,
    /// `STANDARD` or `HIGH_PERFORMANCE`.
    #[serde(rename = "type", default, deserialize_with = "text")]
    pub tier: Option<String>,
}

/// A serverless endpoint, read for the volumes that it mounts.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    pub id: String,
    pub network_volumes: Option<Vec<String>>,
}

/// The answer to an action: the pod, or a failure with status 200.
#[derive(Debug, Deserialize)]
pub struct ActionAnswer {
    #[serde(default, deserialize_with = "text")]
    id: Option<String>,
    #[serde(default, deserialize_with = "text")]
    error: Option<String>,
    #[serde(default, deserialize_with = "text")]
    detail: Option<String>,
    #[serde(default, deserialize_with = "text")]
    title: Option<String>,
}

impl ActionAnswer {
    /// The words of a failure, when the answer is one.
    pub fn failure(self) -> Option<String> {
        if self.id.is_some() { None } else { self.error.or(self.detail).or(self.title) }
    }
}

/// One line of `GET /v2/billing/pods`. All amounts are USD.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodRecord {
    pub start_time: Timestamp,
    /// Exclusive.
    pub end_time: Timestamp,
    #[serde(deserialize_with = "plain_id")]
    pub pod_id: String,
    #[serde(default, deserialize_with = "number")]
    pub total_amount: Option<Decimal>,
    #[serde(default, deserialize_with = "number")]
    pub gpu_amount: Option<Decimal>,
    #[serde(default, deserialize_with = "number")]
    pub cpu_amount: Option<Decimal>,
    #[serde(default, deserialize_with = "number")]
    pub disk_amount: Option<Decimal>,
}

/// One line of `GET /v2/billing/network-volumes`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeRecord {
    pub start_time: Timestamp,
    pub end_time: Timestamp,
    #[serde(deserialize_with = "plain_id")]
    pub network_volume_id: String,
    #[serde(default, deserialize_with = "number")]
    pub total_amount: Option<Decimal>,
}

/// One line of `GET /v2/billing`, read for what belongs to no listed resource.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AccountRecord {
    pub start_time: Timestamp,
    pub end_time: Timestamp,
    #[serde(default, deserialize_with = "number")]
    pub serverless_gpu_amount: Option<Decimal>,
    #[serde(default, deserialize_with = "number")]
    pub serverless_cpu_amount: Option<Decimal>,
    #[serde(default, deserialize_with = "number")]
    pub serverless_disk_amount: Option<Decimal>,
    #[serde(default, deserialize_with = "number")]
    pub serverless_fee_amount: Option<Decimal>,
    #[serde(default, deserialize_with = "number")]
    pub endpoint_amount: Option<Decimal>,
    #[serde(default, deserialize_with = "number")]
    pub cluster_networking_amount: Option<Decimal>,
}

/// An answer of GraphQL. A failed query has status 200, `errors` and no data.
#[derive(Debug, Deserialize)]
pub struct Reply<T> {
    pub data: Option<T>,
}

#[derive(Debug, Deserialize)]
pub struct Myself<T> {
    pub myself: Option<T>,
}

/// GraphQL: the account's money, USD.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Money {
    #[serde(default, deserialize_with = "text")]
    pub id: Option<String>,
    /// Prepaid credit left.
    #[serde(default, deserialize_with = "number")]
    pub client_balance: Option<Decimal>,
    /// What the account burns now, per hour.
    #[serde(default, deserialize_with = "number")]
    pub current_spend_per_hr: Option<Decimal>,
}

/// GraphQL: the list of pods.
#[derive(Debug, Deserialize)]
pub struct GraphPods {
    pub pods: Option<Vec<Box<RawValue>>>,
}

/// GraphQL: what it tells of a pod beyond REST.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphPod {
    pub id: String,
    /// `INTERRUPTABLE` (spelled so), `RESERVED`, `BID`, `BACKGROUND`.
    #[serde(default, deserialize_with = "text")]
    pub pod_type: Option<String>,
    /// The list price of the whole pod, USD per hour; told while stopped too.
    #[serde(default, deserialize_with = "number")]
    pub cost_per_hr: Option<Decimal>,
    /// The same after savings plans.
    #[serde(default, deserialize_with = "number")]
    pub adjusted_cost_per_hr: Option<Decimal>,
    /// Free text for people.
    #[serde(default, deserialize_with = "text")]
    pub last_status_change: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub latest_telemetry: Option<Telemetry>,
}

/// GraphQL: the last figures that the host sent.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Telemetry {
    #[serde(default, deserialize_with = "time")]
    pub time: Option<Timestamp>,
    pub average_gpu_metrics: Option<GpuMetrics>,
    pub individual_gpu_metrics: Option<Vec<GpuMetrics>>,
}

/// GraphQL: one card.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GpuMetrics {
    /// Percent.
    pub percent_utilization: Option<f64>,
    /// Spelled so; degrees Celsius.
    pub temperature_celcius: Option<f64>,
    /// Percent.
    pub memory_utilization: Option<f64>,
    pub power_watts: Option<f64>,
}

/// An id that can stand in an address. Any other could reach another resource than the one that was meant.
pub fn is_plain_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= 128 && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

fn plain_id<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let id = String::deserialize(from)?;
    if is_plain_id(&id) { Ok(id) } else { Err(D::Error::custom("an id that no address can hold")) }
}

/// A decimal from a number or from a text that is one; null and an empty text are nothing.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Decimal>, D::Error> {
    let Some(raw) = Option::<Box<RawValue>>::deserialize(from)? else { return Ok(None) };
    let owned: String;
    let digits = if raw.get().starts_with('"') {
        owned = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
        owned.trim()
    } else {
        raw.get()
    };
    if digits.is_empty() {
        return Ok(None);
    }
    let read = if digits.contains(['e', 'E']) { Decimal::from_scientific(digits) } else { digits.parse() };
    read.map(Some).map_err(|_| D::Error::custom("not a number"))
}

/// A text; a number or a truth value as it is written; anything else is nothing.
fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let raw = Option::<Box<RawValue>>::deserialize(from)?;
    Ok(raw.and_then(|raw| match raw.get().as_bytes().first() {
        Some(b'"') => serde_json::from_str(raw.get()).ok(), // A text that JSON itself accepted can be read again.
        Some(b'{' | b'[') => None,
        _ => Some(raw.get().to_owned()),
    }))
}

/// A time in RFC 3339; one that cannot be read is not known.
fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Timestamp>, D::Error> {
    Ok(text(from)?.and_then(|text| text.parse().ok())) // No wrong time stands in for one that cannot be read.
}

/// A part that is not worth losing the row for: of an unexpected shape, it counts as not told.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Option<T>, D::Error> {
    let raw = Option::<Box<RawValue>>::deserialize(from)?;
    Ok(raw.and_then(|raw| serde_json::from_str(raw.get()).ok())) // The odd shape is what this function is for.
}
