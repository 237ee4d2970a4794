//! RunPod: pods (here: instances) and network volumes.
//!
//! - **Base URL** `https://api.runpod.io`; REST v2 under `/v2`, GraphQL at `/graphql`. REST v1 ended on
//!   2026-11-15; GraphQL is announced to end early in 2027, so nothing here depends on it: without it the
//!   balance, the tenant, the spot flag, temperatures and watts are not told, and all else stands.
//! - **Auth** `Authorization: Bearer`. A key that lacks a right gets 403. A wrong one gets 401.
//! - **Asked** `GET /v2/pods` (members of clusters included), `/v2/network-volumes`, `/v2/serverless` (who
//!   else mounts a volume), `/v2/billing…`; `POST /graphql` for what REST does not have: balance and tenant,
//!   list price, market, temperature and power.
//! - **Sent** `POST /v2/pods/{id}/action` with `start`, `stop`, `restart`; `DELETE /v2/pods/{id}` and
//!   `DELETE /v2/network-volumes/{id}`. No call has an idempotency key.
//! - **Limits** three windows a user (minute, hour, day), told in each answer's `RateLimit` header; the
//!   documents' example is 60, 3000, 50000. A poll every 15 s stays far inside.
//! - **Stop** ends compute, erases the container disk and keeps the volume disk at twice its price; the
//!   instance keeps its host but not its GPU, so that a later start can be refused (400) or come up without
//!   one. An instance with no mount at all loses everything. `cost` is 0.0 then: that is not free.
//! - **Release** deletes the instance with its volume disk; network volumes live on and go on costing.
//! - **At zero credit** everything is stopped, and what has no network volume is deleted.
//! - **Missing** snapshots, prices of the high-performance volumes, who stopped an instance: `EXITED` is said
//!   for a stop by the user, by the platform (spot too) and for an ended process alike.
//!
//! Sources: the descriptions and documents of v2 (`docs.runpod.io`: api-reference-v2, pods/pricing,
//! pods/manage-pods, storage/types, storage/network-volumes, accounts-billing/billing), read 2026-08-20; the
//! GraphQL reference and the official Python client 1.12.0. What none of them states is marked UNSURE.

mod billing;
mod graphql;
mod offers;
mod pods;
#[cfg(feature = "simulator")]
pub mod simulator;
mod volumes;
mod wire;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use reqwest::Method;
use serde::de::DeserializeOwned;
use serde_json::json;
use serde_json::value::RawValue;

use crate::error::{ErrorKind, Problem, ProviderError};
use crate::facts::Facts;
use crate::http::{Answer, Call, Failure, Http, Lane, Pages, Turn};
use crate::model::{Action, BilledLine, Instance, ResourceId, ResourceKind};
use crate::provider::{Accepted, Access, Ask, BilledFor, Capabilities, Entry, Found, NO_REQUEST, Part, Poll, Provider};

pub static ENTRY: Entry = Entry {
    name: "runpod",
    title: "RunPod",
    capabilities: Capabilities {
        stop: true,
        start: true,
        restart: true,
        release: true,
        storage: true,
        balance: true,
        telemetry: true,
        billed_history: Some(BilledFor::Hours),
        spot: true,
    },
    key_env: &["RUNPOD_API_KEY"],
    key_page: "https://console.runpod.io/user/settings",
    money_page: Some("https://console.runpod.io/user/billing"),
    facts: include_str!("facts.toml"),
    connect: |access| Ok(Arc::new(RunPod::new(access, &LANES)?)),
};

const BASE_URL: &str = "https://api.runpod.io";

/// Each kind of list keeps its own pace, so that a slow one does not hold up the others.
const PODS: &str = "pods";
const VOLUMES: &str = "volumes";
const BILLING: &str = "billing";
const SPACING_MS: u64 = 250;
/// The first import makes some fifteen calls: at this pace they stay far inside the minute's quota.
const BILLING_SPACING_MS: u64 = 1000;

/// GraphQL only adds to what REST tells: a poll does not wait for it as long as for the lists.
const EXTRAS_TIMEOUT: Duration = Duration::from_secs(10);

/// The code that a refused start gets here, whatever the status that carried it.
const NO_FREE_GPU: &str = "no_free_gpu";

const LANES: [Lane; 3] =
    [Lane::new(PODS, SPACING_MS), Lane::new(VOLUMES, SPACING_MS), Lane::new(BILLING, BILLING_SPACING_MS).background()];

struct RunPod {
    rest: Http,
    extras: graphql::Extras,
    facts: Facts,
}

#[async_trait]
impl Provider for RunPod {
    async fn poll(&self, ask: Ask, now: Timestamp) -> Poll {
        let (pods, (), volumes, money) = tokio::join!(
            self.list::<wire::PodList>("/v2/pods", PODS),
            self.extras.refresh(now),
            self.volumes(ask.storage),
            self.extras.money(ask.money),
        );
        let instances = match pods {
            Ok(list) => Part::Listed {
                rows: list.rows.into_iter().map(|pod| self.instance(pod, now)).collect(),
                problems: list.problems,
            },
            Err(error) => Part::Failed(error),
        };
        let storage = match volumes {
            None => Part::NotAsked,
            Some(Err(error)) => Part::Failed(error),
            Some(Ok((list, endpoints))) => {
                let users = volumes::Users::of(&instances, endpoints);
                let rows = list.rows.into_iter().map(|volume| volumes::item(volume, &users, &self.facts)).collect();
                Part::Listed { rows, problems: list.problems }
            }
        };
        let (balance, tenant) = money;
        Poll { instances, storage, balance, tenant, server_time: self.rest.server_time() }
    }

    async fn lookup(&self, kind: ResourceKind, id: &ResourceId, now: Timestamp) -> Result<Found, ProviderError> {
        let path = self.path_of(kind, id)?;
        let lane = if kind == ResourceKind::Instance { PODS } else { VOLUMES };
        let answer = match self.rest.send(&Call::get(&path).lane(lane).by_id()).await {
            Err(error) if error.kind == ErrorKind::NoSuchId => return Ok(Found::NoSuchId),
            answer => answer?,
        };
        match kind {
            ResourceKind::Instance => {
                let pod: wire::Pod = answer.read()?;
                same_id(&answer, id, &pod.id)?;
                Ok(Found::Instance(Box::new(self.instance(pod, now))))
            }
            ResourceKind::Storage => {
                let volume: wire::Volume = answer.read()?;
                same_id(&answer, id, &volume.id)?;
                Ok(Found::Storage(Box::new(volumes::item(volume, &volumes::Users::default(), &self.facts))))
            }
        }
    }

    async fn act(&self, action: Action, id: &ResourceId) -> Result<Accepted, ProviderError> {
        let kind = if action == Action::Delete { ResourceKind::Storage } else { ResourceKind::Instance };
        let resource = self.path_of(kind, id)?;
        let action_path = format!("{resource}/action");
        let call = match action {
            Action::Release | Action::Delete => Call::change(Method::DELETE, &resource),
            Action::Checkpoint => {
                let kind = ErrorKind::Unusable { message: NO_REQUEST.to_owned() };
                return Err(self.rest.error(&Call::get(&resource), kind));
            }
            Action::Stop | Action::Start | Action::Restart => {
                Call::change(Method::POST, &action_path).body(json!({ "action": action.word() }))
            }
        };
        match self.rest.send(&call).await {
            Ok(answer) => promise(&answer),
            Err(error) => match error.kind {
                ErrorKind::NoSuchId if matches!(action, Action::Release | Action::Delete) => Ok(Accepted::AlreadySo),
                ErrorKind::Refused { status: 409, .. } if self.is_already(action, &resource).await => {
                    Ok(Accepted::AlreadySo)
                }
                _ => Err(error),
            },
        }
    }

    async fn billed(&self, from: Timestamp, to: Timestamp) -> Result<Vec<BilledLine>, ProviderError> {
        billing::billed(&self.rest, from, to).await
    }
}

/// The rows of a list over all its pages.
struct Listing<T> {
    rows: Vec<T>,
    problems: Vec<Problem>,
}

/// What a list's answer holds, whatever the name of the list.
trait Page: DeserializeOwned {
    type Row: DeserializeOwned;
    const NAME: &'static str;
    fn open(self) -> (Vec<Box<RawValue>>, Option<wire::Pagination>);
    /// What tells a row from another one; the same row on two pages is one.
    fn id(row: &Self::Row) -> &str;
}

macro_rules! page {
    ($list:ty, $row:ty, $field:ident, $name:literal) => {
        impl Page for $list {
            type Row = $row;
            const NAME: &'static str = $name;
            fn open(self) -> (Vec<Box<RawValue>>, Option<wire::Pagination>) {
                (self.$field, self.pagination)
            }
            fn id(row: &$row) -> &str {
                &row.id
            }
        }
    };
}

page!(wire::PodList, wire::Pod, pods, "pods");
page!(wire::VolumeList, wire::Volume, network_volumes, "networkVolumes");
page!(wire::EndpointList, wire::Endpoint, endpoints, "endpoints");

impl RunPod {
    fn new(access: &Access, lanes: &[Lane]) -> Result<Self, ProviderError> {
        Ok(RunPod {
            facts: ENTRY.facts(access)?,
            rest: Http::new(access, BASE_URL, lanes, dialect)?,
            extras: graphql::Extras::new(access)?,
        })
    }

    async fn list<L: Page>(&self, path: &str, lane: &'static str) -> Result<Listing<L::Row>, ProviderError> {
        // Members of clusters are hidden from the list unless asked for, although they cost.
        let call = Call::get(path).lane(lane);
        let call = if lane == PODS { call.query("includeClusterPods", "true") } else { call };
        let mut listing = Listing { rows: Vec::new(), problems: Vec::new() };
        let mut seen = HashSet::new();
        each_page(&self.rest, &call, |answer| {
            let (raw, pagination) = answer.read::<L>()?.open();
            let (rows, problems) = answer.rows(L::NAME, &raw);
            listing.rows.extend(rows.into_iter().filter(|row| seen.insert(L::id(row).to_owned())));
            listing.problems.extend(problems);
            Ok(pagination)
        })
        .await
        .map(|incomplete| listing.problems.extend(incomplete))?;
        Ok(listing)
    }

    /// The volumes, and the serverless endpoints that may mount them; `None` for these when they could not
    /// be read. Nobody is asked where there is no volume.
    async fn volumes(
        &self,
        asked: bool,
    ) -> Option<Result<(Listing<wire::Volume>, Option<Vec<wire::Endpoint>>), ProviderError>> {
        if !asked {
            return None;
        }
        let volumes = match self.list::<wire::VolumeList>("/v2/network-volumes", VOLUMES).await {
            Ok(volumes) => volumes,
            Err(error) => return Some(Err(error)),
        };
        if volumes.rows.is_empty() {
            return Some(Ok((volumes, Some(Vec::new()))));
        }
        let endpoints = match self.list::<wire::EndpointList>("/v2/serverless", VOLUMES).await {
            Ok(list) if list.problems.is_empty() => Some(list.rows),
            Ok(_) => None,
            Err(error) => {
                tracing::debug!(%error, "who mounts the volumes is not fully known");
                None
            }
        };
        Some(Ok((volumes, endpoints)))
    }

    /// The address of one resource. An id from elsewhere than this API's lists must not lead to another one.
    fn path_of(&self, kind: ResourceKind, id: &ResourceId) -> Result<String, ProviderError> {
        let folder = match kind {
            ResourceKind::Instance => "/v2/pods",
            ResourceKind::Storage => "/v2/network-volumes",
        };
        if wire::is_plain_id(id.as_str()) {
            return Ok(format!("{folder}/{id}"));
        }
        let message = "the id holds characters that RunPod's ids do not have".to_owned();
        Err(self.rest.error(&Call::get(folder), ErrorKind::Unusable { message }))
    }

    fn instance(&self, pod: wire::Pod, now: Timestamp) -> Instance {
        let extra = self.extras.of(&pod.id);
        pods::instance(pod, extra.as_ref(), &self.facts, now)
    }

    /// Reads whether an instance that refused an action is where the action would have brought it. The text
    /// of a 409 is not documented, so it cannot tell "was so already" from "locked" or "in a cluster".
    async fn is_already(&self, action: Action, path: &str) -> bool {
        let Ok(pod) = self.rest.json::<wire::Pod>(&Call::get(path).lane(PODS).by_id()).await else { return false };
        matches!(
            (action, pod.status.as_deref()),
            (Action::Stop, Some("EXITED"))
                | (Action::Start, Some("STARTING" | "RUNNING"))
                | (Action::Release, Some("TERMINATED"))
        )
    }
}

/// Sends a call, then once more for each further page. Answers with the reason when pages may be missing.
async fn each_page(
    http: &Http,
    call: &Call<'_>,
    mut take: impl FnMut(&Answer) -> Result<Option<wire::Pagination>, ProviderError>,
) -> Result<Option<Problem>, ProviderError> {
    let mut pages = Pages::default();
    let mut cursor: Option<String> = None;
    let mut read = 0;
    loop {
        let next = match &cursor {
            Some(cursor) => call.clone().query("cursor", cursor),
            None => call.clone(),
        };
        let answer = http.send(&next).await?;
        let pagination = take(&answer)?.unwrap_or_default();
        read += 1;
        let more_promised = pagination.has_next_page == Some(true);
        match pages.turn(pagination.next_cursor) {
            Turn::Next(next) => cursor = Some(next),
            Turn::End if more_promised => {
                return Ok(Some(answer.problem("pagination.nextCursor", "more pages are promised, but no cursor")));
            }
            Turn::End => return Ok(None),
            Turn::Loop => {
                let kind = ErrorKind::PagingLoop { pages: read };
                return Ok(Some(answer.problem("pagination.nextCursor", kind.to_string())));
            }
        }
    }
}

/// An answer with a status of success: a promise, unless its body says otherwise. An empty body is none.
fn promise(answer: &Answer) -> Result<Accepted, ProviderError> {
    // A body that is no object says nothing against the status; the next poll tells.
    let failure = answer.read::<wire::ActionAnswer>().ok().and_then(wire::ActionAnswer::failure);
    match failure {
        None => Ok(Accepted::Done),
        Some(message) => {
            let message = crate::text::excerpt(&message, 160);
            Err(answer.error(ErrorKind::Refused { status: 200, code: None, message, retry_after: None }))
        }
    }
}

/// An answer about another resource than the one asked for is no answer.
fn same_id(answer: &Answer, asked: &ResourceId, told: &str) -> Result<(), ProviderError> {
    if asked.as_str() == told {
        return Ok(());
    }
    let message = "the answer is about another resource".to_owned();
    Err(answer.error(ErrorKind::Decode { path: "id".to_owned(), message }))
}

/// RunPod's failures: `title`, `status`, `detail` and perhaps `errors`; v1 had `error` in place of `detail`.
fn dialect(failure: &Failure<'_>) -> Option<ErrorKind> {
    let message = failure.message.map(str::to_owned);
    let says = |words: &str| message.as_ref().is_some_and(|message| message.to_lowercase().contains(words));
    match failure.status {
        // A 404 of the service itself says what was not found; one of a gateway does not, and proves nothing.
        404 if failure.by_id && ["not found", "does not exist", "no such"].into_iter().any(says) => {
            Some(ErrorKind::NoSuchId)
        }
        404 if failure.by_id => Some(ErrorKind::NotJson { status: 404, excerpt: message }),
        // Lists have no 404 in the description: the address is gone.
        404 if message.is_some() => Some(ErrorKind::Retired { status: 404, message }),
        // v2 answers 400, v1 answered 500 with the same words. Nothing was started in either case.
        status @ 400.. if says("not enough free gpus") => Some(ErrorKind::Refused {
            status,
            code: Some(NO_FREE_GPU.to_owned()),
            message: message.unwrap_or_default(),
            retry_after: failure.retry_after,
        }),
        _ => None,
    }
}

/// A page of RunPod's console about one instance. UNSURE: no document names the address; people's own
/// programs link to it so, seen 2026-11-30.
fn pod_page(id: &str) -> String {
    format!("https://console.runpod.io/pods?id={id}")
}

/// The console's page of all volumes. UNSURE, as above.
const VOLUMES_PAGE: &str = "https://console.runpod.io/user/storage";

#[cfg(test)]
mod tests;
