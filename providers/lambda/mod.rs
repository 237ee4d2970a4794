//! Lambda (Lambda Cloud, <https://cloud.lambda.ai>).
//!
//! - **Base and key**: `https://cloud.lambda.ai`, paths `/api/v1/…`, `Authorization: Bearer KEY`. Success is
//!   wrapped in `data`, failure is `{"error": {"code", "message", "suggestion"?}}`; the code decides, the
//!   texts may change.
//! - **Pace**: about one request a second over all calls of the account, so there is one lane for all. The
//!   answer to more is a 429 whose body and headers are not documented (UNSURE): the status alone decides.
//! - **Read**: `GET instances`, `GET instances/ID`, `GET file-systems` (with a hyphen). No paging.
//! - **Change**: `POST instance-operations/terminate`, `POST instance-operations/restart`,
//!   `DELETE filesystems/ID` (without a hyphen). Nothing is idempotent by key; after a time-out the
//!   instance is to be read again.
//! - **Stop does not exist**, nor does start: an instance runs and is charged in full, used or not, or it is
//!   gone. A shutdown from inside does not end the charge.
//! - **Release** (terminate) is final and destroys the local disk at once. Attached file systems stay, and
//!   cost, until they are deleted.
//! - **Missing**: balance (weekly invoice, paid afterwards), billed history, snapshots, live figures, who is
//!   behind the key, and a creation time. Newer servers tell when an instance first passed its health checks
//!   (`first_healthy`), which is when its charge begins; without it the start is unknown.
//!
//! Sources, read in 2026: Lambda's own description of the interface, version 1.8.3 (the live one is served at
//! <https://cloud.lambda.ai/api/v1/openapi.json>), <https://docs.lambda.ai/public-cloud/cloud-api/>,
//! <https://docs.lambda.ai/public-cloud/billing/>, <https://docs.lambda.ai/public-cloud/filesystems/>,
//! <https://docs.lambda.ai/public-cloud/on-demand/>. `first_healthy` came with version 1.10.0, of which only
//! its existence is known. What none of them states is marked UNSURE.

#[cfg(feature = "simulator")]
pub mod simulator;
mod wire;

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use reqwest::Method;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::error::{ErrorKind, Problem, ProviderError, RequestLine};
use crate::facts::Facts;
use crate::gpu::Gpus;
use crate::http::{Call, Failure, Http, Lane};
use crate::model::*;
use crate::money::{Currency, Rate};
use crate::provider::*;
use crate::text::{clean, clean_opt};

/// Lambda in the registry.
pub static ENTRY: Entry = Entry {
    name: "lambda",
    title: "Lambda",
    capabilities: Capabilities {
        stop: false,
        start: false,
        restart: true,
        release: true,
        storage: true,
        balance: false,
        telemetry: false,
        billed_history: None,
        spot: false,
    },
    key_env: &["LAMBDA_API_KEY", "LAMBDA_CLOUD_API_TOKEN"],
    key_page: "https://cloud.lambda.ai/api-keys",
    money_page: None,
    facts: include_str!("facts.toml"),
    connect: |access| Ok(Arc::new(Lambda::new(access)?)),
};

const BASE: &str = "https://cloud.lambda.ai";
const INSTANCES: &str = "/api/v1/instances";
const FILE_SYSTEMS: &str = "/api/v1/file-systems";
const TERMINATE: &str = "/api/v1/instance-operations/terminate";
const RESTART: &str = "/api/v1/instance-operations/restart";

/// The one lane: the limit counts all calls of the account together.
const ALL: &str = "all";
const LANES: [Lane; 1] = [Lane::new(ALL, 1000)];

/// The only answer that means "no such id"; a 404 without it says nothing about the resource.
const NO_SUCH_OBJECT: &str = "global/object-does-not-exist";
/// The dashboard has no page of one instance; its lists are UNSURE, no document names them.
const INSTANCES_PAGE: &str = "https://cloud.lambda.ai/instances";
const FILE_SYSTEMS_PAGE: &str = "https://cloud.lambda.ai/file-systems";

/// The user of Lambda's own images; others may have another one (UNSURE).
const SSH_USER: &str = "ubuntu";

struct Lambda {
    http: Http,
    facts: Facts,
    provider: ProviderName,
    account: AccountName,
}

impl Lambda {
    fn new(access: &Access) -> Result<Self, ProviderError> {
        Ok(Lambda {
            http: Http::new(access, BASE, &LANES, dialect)?,
            facts: ENTRY.facts(access)?,
            provider: access.provider.clone(),
            account: access.account.clone(),
        })
    }

    async fn list<T: DeserializeOwned>(&self, path: &str, name: &str) -> Result<(Vec<T>, Vec<Problem>), ProviderError> {
        let answer = self.http.send(&Call::get(path).lane(ALL)).await?;
        let list: wire::List = answer.read()?;
        Ok(answer.rows(name, &list.data))
    }

    async fn instances(&self) -> Part<Instance> {
        match self.list(INSTANCES, "instances").await {
            Ok((rows, problems)) => {
                Part::Listed { rows: rows.iter().map(|row| instance(row, &self.facts)).collect(), problems }
            }
            Err(error) => Part::Failed(error),
        }
    }

    /// File systems, with the instances of the same poll to tell who uses them.
    async fn file_systems(&self, users: &[Instance]) -> Part<StorageItem> {
        match self.list(FILE_SYSTEMS, "file_systems").await {
            Ok((rows, problems)) => {
                let rows = rows.iter().map(|row| file_system(row, users, &self.facts)).collect();
                Part::Listed { rows, problems }
            }
            Err(error) => Part::Failed(error),
        }
    }

    /// Sends one of the operations that name the instance in their body. The answer must name it too.
    async fn operate(&self, path: &str, id: &wire::Id) -> Result<Accepted, ProviderError> {
        let body = json!(wire::Operation { instance_ids: [id.as_str()] });
        let answer = self.http.send(&Call::change(Method::POST, path).body(body).lane(ALL)).await?;
        let done: wire::Data<wire::Operated> = answer.read()?;
        if done.data.instances.iter().any(|instance| instance.id == *id) {
            Ok(Accepted::Done)
        } else {
            Err(answer.error(other_id("data")))
        }
    }

    async fn delete(&self, id: &wire::Id) -> Result<Accepted, ProviderError> {
        let path = format!("/api/v1/filesystems/{}", id.as_str());
        let answer = self.http.send(&Call::change(Method::DELETE, &path).lane(ALL)).await?;
        let done: wire::Data<wire::Deleted> = answer.read()?;
        if done.data.deleted_ids.contains(id) { Ok(Accepted::Done) } else { Err(answer.error(other_id("data"))) }
    }

    /// An error about something that was not sent.
    fn unsent(&self, what: &str, message: String) -> ProviderError {
        ProviderError {
            provider: self.provider.clone(),
            account: self.account.clone(),
            request: RequestLine(what.to_owned()),
            kind: ErrorKind::Unusable { message },
        }
    }

    fn id(&self, what: &str, id: &ResourceId) -> Result<wire::Id, ProviderError> {
        wire::Id::try_from(id.as_str().to_owned()).map_err(|message| self.unsent(what, message))
    }
}

#[async_trait]
impl Provider for Lambda {
    async fn poll(&self, ask: Ask, _now: Timestamp) -> Poll {
        let instances = self.instances().await;
        let storage = match &instances {
            _ if !ask.storage => Part::NotAsked,
            // The second request would meet the same door.
            Part::Failed(error) if closed_to_all(&error.kind) => Part::Failed(error.clone()),
            instances => self.file_systems(instances.rows()).await,
        };
        let (balance, tenant) =
            if ask.money { (Reading::NotTold, Reading::NotTold) } else { (Reading::NotAsked, Reading::NotAsked) };
        Poll { instances, storage, balance, tenant, server_time: self.http.server_time() }
    }

    async fn lookup(&self, kind: ResourceKind, id: &ResourceId, _now: Timestamp) -> Result<Found, ProviderError> {
        if kind == ResourceKind::Storage {
            // There is a list of file systems and their deletion, and no call that asks for one.
            return Ok(Found::CannotAsk);
        }
        let id = self.id("look-up", id)?;
        let path = format!("{INSTANCES}/{}", id.as_str());
        let answer = match self.http.send(&Call::get(&path).by_id().lane(ALL)).await {
            Ok(answer) => answer,
            Err(error) if error.kind == ErrorKind::NoSuchId => return Ok(Found::NoSuchId),
            Err(error) => return Err(error),
        };
        let row: wire::Data<wire::Instance> = answer.read()?;
        if row.data.id == id {
            Ok(Found::Instance(Box::new(instance(&row.data, &self.facts))))
        } else {
            Err(answer.error(other_id("data.id")))
        }
    }

    async fn act(&self, action: Action, id: &ResourceId) -> Result<Accepted, ProviderError> {
        let id = self.id(action.word(), id)?;
        let (answer, ends) = match action {
            Action::Checkpoint => return Err(self.unsent(action.word(), NO_REQUEST.to_owned())),
            Action::Stop | Action::Start => {
                let word = action.word();
                let message = format!("Lambda cannot {word} an instance: it runs until it is released");
                return Err(self.unsent(word, message));
            }
            Action::Restart => (self.operate(RESTART, &id).await, false),
            Action::Release => (self.operate(TERMINATE, &id).await, true),
            Action::Delete => (self.delete(&id).await, true),
        };
        match answer {
            Err(error) if ends && error.kind == ErrorKind::NoSuchId => Ok(Accepted::AlreadySo),
            answer => answer,
        }
    }

    async fn billed(&self, _from: Timestamp, _to: Timestamp) -> Result<Vec<BilledLine>, ProviderError> {
        Ok(Vec::new())
    }
}

/// What the status alone does not tell.
fn dialect(failure: &Failure<'_>) -> Option<ErrorKind> {
    let message = failure.message.map(str::to_owned);
    let refused = || ErrorKind::Refused {
        status: failure.status,
        code: failure.code.map(str::to_owned),
        message: message.clone().unwrap_or_else(|| format!("HTTP {}", failure.status)),
        retry_after: failure.retry_after,
    };
    match (failure.status, failure.code) {
        (404, Some(NO_SUCH_OBJECT)) if failure.by_id => Some(ErrorKind::NoSuchId),
        // Any other 404 is about the address, not about the resource; one without words comes from a gateway.
        (404, None) if failure.by_id && message.is_none() => {
            Some(ErrorKind::NotJson { status: failure.status, excerpt: None })
        }
        (404, _) if failure.by_id => Some(refused()),
        // The key is good and lacks no right: the account itself is closed, for instance over an unpaid invoice.
        (403, Some("global/account-inactive")) => Some(refused()),
        // Trouble beneath the interface; with which status it comes is UNSURE.
        (400..500, Some(code)) if code.starts_with("provider/") || code == "global/internal-error" => {
            Some(ErrorKind::Server { status: failure.status, message, retry_after: failure.retry_after })
        }
        _ => None,
    }
}

/// True when every other request of the account would fail the same way now.
fn closed_to_all(kind: &ErrorKind) -> bool {
    matches!(kind, ErrorKind::Credentials { .. } | ErrorKind::RateLimited { .. })
}

fn other_id(path: &str) -> ErrorKind {
    ErrorKind::Decode { path: path.to_owned(), message: "the answer is about another id".to_owned() }
}

/// `status`, as listed by the description of 1.8.3. A word not listed there stays visible as unknown.
fn phase(status: Option<&str>) -> Phase {
    match status {
        Some("booting") => Phase::Provisioning,
        Some("active") => Phase::Running,
        Some("unhealthy") => Phase::Unreachable,
        Some("terminating") => Phase::Releasing,
        Some("terminated") => Phase::Gone,
        Some("preempted") => Phase::Reclaimed,
        _ => Phase::Unknown,
    }
}

fn instance(row: &wire::Instance, facts: &Facts) -> Instance {
    let phase = phase(row.status.as_deref());
    let rates = rates(row, phase);
    let market = if row.is_reserved == Some(true) { Market::Reserved { until: None } } else { Market::OnDemand };
    let begun = !matches!(phase, Phase::Provisioning | Phase::Gone);
    let remarks = if begun && row.first_healthy.is_none() { vec![Remark::StartTimeUnknown] } else { Vec::new() };
    // The address of an instance that ends or was taken may be somebody else's by now.
    let reachable = matches!(phase, Phase::Running | Phase::Unreachable);
    let ip = row.ip.as_deref().filter(|_| reachable);
    let tags = row.tags.iter().flatten();
    Instance {
        id: ResourceId::new(row.id.as_str()),
        name: clean_opt(row.name.as_deref()),
        phase,
        provider_phase: clean_opt(row.status.as_deref()),
        note: None,
        remarks,
        market,
        gpus: row.instance_type.as_ref().and_then(gpus),
        // No creation time is told, and the moment of the first health check is not one.
        created_at: None,
        started_at: row.first_healthy,
        stopped_at: None,
        granularity: granularity(facts),
        repricing: None,
        ends_at: None,
        at_zero: AT_ZERO,
        usage: None,
        ssh: ip.and_then(|ip| SshEndpoint::new(SSH_USER, ip, 22, true)),
        region: region(row.region.as_ref()),
        labels: tags.filter_map(|tag| Some((clean_opt(tag.key.as_deref())?, clean(tag.value.as_deref()?)))).collect(),
        mounts: mounts(row).map(|mount| ResourceId::new(mount.file_system_id.as_str())).collect(),
        offers: offers(row, phase, market, &rates),
        rates,
        page: Some(INSTANCES_PAGE.to_owned()),
    }
}

/// Each run in whole steps from its first passed health check on. That file systems are charged in steps of
/// an hour is not modelled: what is in use in them changes all the time, and the difference is below a cent.
fn granularity(facts: &Facts) -> Granularity {
    match facts.value("instance_granularity_seconds").to_u32() {
        None | Some(0 | 1) => Granularity::Exact,
        Some(seconds) => Granularity::Steps { seconds, least_seconds: 0 },
    }
}

/// What the instance costs: the price of its type, which covers all GPUs and the local disk, and is charged
/// from the first passed health check to the end, used or not.
fn rates(row: &wire::Instance, phase: Phase) -> Rates {
    if phase == Phase::Gone {
        return Rates::known();
    }
    let cents = row.instance_type.as_ref().and_then(|kind| kind.price_cents_per_hour);
    let Some(rate) = cents.and_then(|cents| Rate::per_hour(cents / Decimal::ONE_HUNDRED, Currency::USD)) else {
        return Rates::unknown();
    };
    // A reserved instance is charged by its contract; the interface tells the list price only.
    let estimated = row.is_reserved == Some(true);
    let rates = Rates::known().push(RateLine { component: Component::Compute, rate, estimated, certain: true });
    match phase {
        // UNSURE for unhealthy: no document says that it is free, and only the end ends the charge.
        Phase::Running | Phase::Unreachable => rates,
        // It has passed its checks before, so its charge has begun.
        Phase::Provisioning if row.first_healthy.is_some() => rates,
        // UNSURE: whether the time of terminating and after a preemption is charged.
        _ => rates.doubtful(),
    }
}

fn gpus(kind: &wire::InstanceType) -> Option<Gpus> {
    let count = kind.specs.as_ref().and_then(|specs| specs.gpus);
    let card = clean_opt(kind.gpu_description.as_deref()).filter(|card| card != "N/A");
    match card.or_else(|| clean_opt(kind.name.as_deref()).filter(|name| name.starts_with("gpu_"))) {
        Some(card) => Some(Gpus::parse(&card, count, memory_gib(&card))),
        None if count == Some(0) => Some(Gpus { model: "CPU".to_owned(), count: 0, memory_gib: None }),
        None => None,
    }
}

/// `H100 (80 GB SXM5)`: the memory of one card, as Lambda writes it.
fn memory_gib(card: &str) -> Option<u32> {
    let (_, inside) = card.split_once('(')?;
    let (number, _) = inside.split_once(" GB")?;
    number.trim().parse().ok()
}

fn region(region: Option<&wire::Region>) -> Option<String> {
    clean_opt(region?.name.as_deref())
}

fn mounts(row: &wire::Instance) -> impl Iterator<Item = &wire::Mount> {
    row.file_system_mounts.iter().flatten()
}

fn offers(row: &wire::Instance, phase: Phase, market: Market, rates: &Rates) -> Offers {
    let unknown = wire::Actions::default();
    let actions = row.actions.as_ref().unwrap_or(&unknown);
    let offer =
        |action: &Option<wire::Availability>, effect: fn(&wire::Instance, Market, &Rates) -> Effect| match refusal(
            action.as_ref(),
            phase,
        ) {
            Some(refusal) => Offer::No(refusal),
            None => Offer::Yes(effect(row, market, rates)),
        };
    Offers {
        stop: Offer::No(Refusal::NotOffered),
        start: Offer::No(Refusal::NotOffered),
        restart: offer(&actions.restart, restart_effect),
        release: offer(&actions.terminate, release_effect),
    }
}

/// Why an action cannot be had now, by the instance's own map of actions; where that says nothing, by phase.
fn refusal(action: Option<&wire::Availability>, phase: Phase) -> Option<Refusal> {
    if let Some(told) = action.filter(|action| action.available == Some(false)) {
        let reason = clean_opt(told.reason_description.as_deref()).or_else(|| clean_opt(told.reason_code.as_deref()));
        return Some(reason.map_or(Refusal::WrongPhase, Refusal::Told));
    }
    matches!(phase, Phase::Releasing | Phase::Gone).then_some(Refusal::WrongPhase)
}

/// A restart loses nothing and ends no charge.
fn restart_effect(row: &wire::Instance, _: Market, rates: &Rates) -> Effect {
    let kept = std::iter::once(local_disk(row)).chain(attached(row)).collect();
    Effect { rates_after: rates.clone(), kept, ..Effect::default() }
}

/// A release destroys the local disk at once; attached file systems stay and cost.
fn release_effect(row: &wire::Instance, market: Market, rates: &Rates) -> Effect {
    let rates_after = match market {
        // The contract may go on being charged (UNSURE): nothing is promised.
        Market::Reserved { .. } => rates.clone().doubtful().with_missing(),
        _ => Rates::known(),
    };
    Effect {
        rates_after,
        left_behind: mounts(row).map(|mount| ResourceId::new(mount.file_system_id.as_str())).collect(),
        kept: attached(row),
        lost: vec![local_disk(row)],
        risks: Vec::new(),
    }
}

fn local_disk(row: &wire::Instance) -> DataPlace {
    let specs = row.instance_type.as_ref().and_then(|kind| kind.specs.as_ref());
    DataPlace {
        kind: DataKind::LocalDisk,
        name: None,
        path: Some("/".to_owned()),
        size_gb: specs.and_then(|specs| specs.storage_gib),
    }
}

/// The attached file systems. Names and mounts come in two lists of their own; which name belongs to which
/// mount is known where there is one of each, and where a mount lies at the default place of its name.
fn attached(row: &wire::Instance) -> Vec<DataPlace> {
    let place = |name: Option<String>, path: Option<String>| DataPlace {
        kind: DataKind::FileSystem,
        name,
        path,
        size_gb: None,
    };
    let names: Vec<String> = row.file_system_names.iter().flatten().filter_map(|name| clean_opt(Some(name))).collect();
    let count = mounts(row).count();
    if count == 0 {
        return names.into_iter().map(|name| place(Some(name), None)).collect();
    }
    mounts(row)
        .map(|mount| {
            let path = clean_opt(mount.mount_point.as_deref());
            let name = match names.as_slice() {
                [only] if count == 1 => Some(only),
                names => names.iter().find(|name| path.as_deref() == Some(&format!("/lambda/nfs/{name}"))),
            };
            place(Some(name.map_or_else(|| mount.file_system_id.as_str(), String::as_str).to_owned()), path)
        })
        .collect()
}

/// There is no balance: a card is charged afterwards, week by week (public-cloud/billing, read 2026). UNSURE: what becomes
/// of instances when that fails is not stated.
const AT_ZERO: Fate = Fate::GoesOn;

fn file_system(row: &wire::FileSystem, users: &[Instance], facts: &Facts) -> StorageItem {
    let id = ResourceId::new(row.id.as_str());
    let name = clean_opt(row.name.as_deref());
    let size_gib = row.bytes_used.map(|bytes| bytes / Decimal::from(1u64 << 30));
    let users: Vec<ResourceId> = users
        .iter()
        .filter(|user| user.phase != Phase::Gone && user.mounts.contains(&id))
        .map(|user| user.id.clone())
        .collect();
    let attachment = match row.is_in_use {
        _ if !users.is_empty() => Attachment::To(users),
        Some(true) => Attachment::Somewhere,
        Some(false) => Attachment::To(Vec::new()),
        None => Attachment::Unknown,
    };
    StorageItem {
        kind: StorageKind::FileSystem,
        rates: file_system_rates(size_gib, facts),
        delete: delete_offer(&attachment, name.as_ref().map_or(id.as_str(), String::as_str), size_gib),
        id,
        name,
        size_gib,
        attachment,
        created_at: row.created,
        region: region(row.region.as_ref()),
        labels: Default::default(),
        at_zero: AT_ZERO,
        page: Some(FILE_SYSTEMS_PAGE.to_owned()),
    }
}

/// GiB in use × price a month ÷ hours in the month: an estimate, since no price is told and the size is
/// refreshed every few hours only. A size that is not told is a rate that is not known.
fn file_system_rates(size_gib: Option<Decimal>, facts: &Facts) -> Rates {
    let (price, hours) = (facts.value("file_system_per_gib_month"), facts.value("hours_in_month"));
    match size_gib.and_then(|size| Rate::of_month(size, price, hours, Currency::USD)) {
        Some(rate) => Rates::known().with_estimate(Component::Storage, rate),
        None => Rates::unknown(),
    }
}

/// Deleting is refused while an instance mounts it.
fn delete_offer(attachment: &Attachment, name: &str, size_gib: Option<Decimal>) -> Offer {
    let risks = match attachment {
        Attachment::To(users) if users.is_empty() => Vec::new(),
        Attachment::To(_) | Attachment::Somewhere => return Offer::No(Refusal::InUse),
        Attachment::Unknown => vec![Risk::UseUnknown],
    };
    let lost = vec![DataPlace { kind: DataKind::Contents, name: Some(name.to_owned()), path: None, size_gb: size_gib }];
    Offer::Yes(Effect { rates_after: Rates::known(), lost, risks, ..Effect::default() })
}

#[cfg(test)]
mod tests;
