//! Vast.ai: a marketplace of other people's machines, rented as containers.
//!
//! - Base `https://console.vast.ai`; `Authorization: Bearer <key>`. A wrong key is answered with **404** and
//!   `auth_error`, no key with 403: a 404 says that an id does not exist only when its words say so.
//! - Lists: `GET /api/v1/instances/` (25 a page, `after_token`), `GET /api/v0/volumes`. One:
//!   `GET /api/v0/instances/{id}/`, which answers `{"instances": null}` when there is none and leaves the
//!   volumes out, so the list is asked for that one row as well.
//! - Money: `GET /api/v0/users/current` (prepaid), `GET /api/v0/charges/` (billed, by contract and time).
//! - Pace: a least distance for each address and identity, told in the 429 examples of the API description
//!   (see `LANES`). A 429 is plain text or JSON and names no wait.
//! - Stop: `PUT` state `stopped`. The container's disk stays whole and is charged on, perhaps at a higher
//!   price; the GPU is free for others. Start: `PUT` state `running`. When the GPU is taken the answer is 200
//!   with `success` false and the start waits at the provider, for ever if need be, until a stop takes it back.
//! - Release: `DELETE`. The disk is gone; volumes stay and are charged until deleted.
//! - Interruptible instances pause when another offers more and resume by themselves.
//! - The contract ends at `end_date`: the instance is stopped then and may be deleted 48 h later.
//! - Prices stand with each instance; `dph_total` is the running price also while stopped, `instance.*` is
//!   what is charged now. Traffic is charged by the byte in every state and appears in the billed history only.
//! - At a balance of 0 instances are stopped and their disks charged on; without a saved card they are
//!   deleted after a while.
//! - A host may ask for a higher price: `GET /api/v0/instances/pending-price-increases/`. The present price holds
//!   until the rise is accepted there.
//! - Missing: GPU memory in use, the beginning of the present run, snapshots at the provider.
//!
//! Sources: docs.vast.ai and its API description (2026-08-07), the official client `vastai` 1.9.1.

mod instances;
mod offers;
#[cfg(feature = "simulator")]
pub mod simulator;
#[cfg(test)]
mod tests;
mod wire;

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use rust_decimal::Decimal;
use serde_json::json;

use crate::error::{ErrorKind, Problem, ProviderError};
use crate::facts::Facts;
use crate::http::{Answer, Call, Failure, Http, Lane, Pages, Turn};
use crate::model::{
    Action, Attachment, Balance, BilledLine, Component, DataKind, DataPlace, Effect, Fate, Instance, Offer, Rates,
    Refusal, Repricing, ResourceId, ResourceKind, Risk, StorageItem, StorageKind, Tenant,
};
use crate::money::{Currency, Money, Rate};
use crate::provider::{
    Accepted, Access, Ask, BilledFor, Capabilities, Entry, Found, NO_REQUEST, Part, Poll, Provider, Reading,
};
use crate::text::{clean, clean_opt};

pub static ENTRY: Entry = Entry {
    name: "vast",
    title: "Vast.ai",
    capabilities: Capabilities {
        stop: true,
        start: true,
        restart: true,
        release: true,
        storage: true,
        balance: true,
        telemetry: true,
        billed_history: Some(BilledFor::Days),
        spot: true,
    },
    key_env: &["VAST_API_KEY"],
    key_page: "https://cloud.vast.ai/manage-keys/",
    money_page: Some("https://cloud.vast.ai/billing/"),
    facts: include_str!("facts.toml"),
    connect: |access| Ok(Arc::new(Vast::new(access, &LANES)?)),
};

const BASE: &str = "https://console.vast.ai";
const INSTANCES_PAGE: &str = "https://cloud.vast.ai/instances/";

const LIST: &str = "/api/v1/instances/";
const VOLUMES: &str = "/api/v0/volumes";
const USER: &str = "/api/v0/users/current";
const RISES: &str = "/api/v0/instances/pending-price-increases/";
const CHARGES: &str = "/api/v0/charges/";

/// The largest page that the list gives.
const PAGE: &str = "25";
/// The largest page that the charges give.
const CHARGES_PAGE: &str = "500";

/// The distances that the API description names in its 429 examples (read 2026-08-07); those of `user`
/// and `rises` are not named (UNSURE).
const LANES: [Lane; 10] = [
    Lane::new("list", 1000),
    Lane::new("one", 2000),
    Lane::new("state", 1000),
    Lane::new("reboot", 1000),
    Lane::new("destroy", 3000),
    Lane::new("volumes", 5500),
    Lane::new("volume", 5500),
    Lane::new("user", 1000),
    Lane::new("rises", 5500),
    Lane::new("charges", 1000).background(),
];

/// One account at Vast.ai.
struct Vast {
    http: Http,
    facts: Facts,
    /// By instance, as last told: they are asked for more rarely than the list.
    rises: Mutex<BTreeMap<String, Repricing>>,
}

impl Vast {
    fn new(access: &Access, lanes: &[Lane]) -> Result<Self, ProviderError> {
        Ok(Vast {
            http: Http::new(access, BASE, lanes, dialect)?,
            facts: ENTRY.facts(access)?,
            rises: Mutex::default(),
        })
    }

    /// Sends a request and refuses an answer that tells of a failure in spite of its status.
    async fn ask(&self, call: &Call<'_>) -> Result<Answer, ProviderError> {
        let answer = self.http.send(call).await?;
        let told: wire::Told = answer.read()?;
        if failed(&told) { Err(answer.error(refusal(&told))) } else { Ok(answer) }
    }

    /// All pages of the list, each instance once.
    async fn rows(&self, filters: &str) -> Result<(Vec<wire::Instance>, Vec<Problem>), ProviderError> {
        let (mut rows, mut problems, mut known) = (Vec::new(), Vec::new(), HashSet::new());
        let (mut pages, mut cursor) = (Pages::default(), None);
        loop {
            let mut call = Call::get(LIST)
                .lane("list")
                .query("limit", PAGE)
                .query("order_by", r#"[{"col":"id","dir":"asc"}]"#)
                .query("select_filters", filters);
            if let Some(token) = cursor.take() {
                call = call.query("after_token", token);
            }
            let answer = self.ask(&call).await?;
            let page: wire::Page = answer.read()?;
            let (read, unread) = answer.rows::<wire::Instance>("instances", &page.instances);
            problems.extend(unread);
            rows.extend(read.into_iter().filter(|row| known.insert(row.id.0.clone())));
            let turn = pages.turn(page.next_token);
            match turn {
                Turn::Next(token) => cursor = Some(token),
                Turn::Loop => problems.push(answer.problem("next_token", "the page cursor repeats")),
                Turn::End => {}
            }
            if cursor.is_none() {
                let listed = rows.len() + problems.iter().filter(|p| p.field.starts_with("instances[")).count();
                if let Some(total) = page.total_instances.filter(|total| *total > listed) {
                    let message = format!("{total} in total, but the pages hold {listed}");
                    problems.push(answer.problem("total_instances", message));
                }
                return Ok((rows, problems));
            }
        }
    }

    fn instance(&self, row: &wire::Instance, now: Timestamp) -> Instance {
        let repricing = self.rises().get(&row.id.0).copied();
        Instance { repricing, ..instances::instance(row, &self.facts, now) }
    }

    fn rises(&self) -> MutexGuard<'_, BTreeMap<String, Repricing>> {
        self.rises.lock().expect("the lock is held for single look-ups only")
    }

    /// Learns which prices are to rise. Without an answer what was told before stands.
    async fn learn_rises(&self) {
        let read = async {
            let answer = self.ask(&Call::get(RISES).lane("rises")).await?;
            let list: wire::Rises = answer.read()?;
            Ok::<_, ProviderError>(
                answer.rows::<wire::Rise>("pending_price_increases", &list.pending_price_increases).0,
            )
        };
        match read.await {
            Ok(rises) => {
                let known =
                    rises.iter().filter_map(|rise| Some((rise.contract_id.0.clone(), instances::repricing(rise)?)));
                *self.rises() = known.collect();
            }
            Err(error) => tracing::debug!(%error, "price rises are not known"),
        }
    }

    fn instances(
        &self,
        listed: Result<(Vec<wire::Instance>, Vec<Problem>), ProviderError>,
        now: Timestamp,
    ) -> Part<Instance> {
        match listed {
            Ok((rows, problems)) => {
                Part::Listed { rows: rows.iter().map(|row| self.instance(row, now)).collect(), problems }
            }
            Err(error) => Part::Failed(error),
        }
    }

    async fn storage(&self) -> Part<StorageItem> {
        let call = Call::get(VOLUMES).lane("volumes").query("owner", "me").query("type", "all_volume");
        let read = async {
            let answer = self.ask(&call).await?;
            let list: wire::Volumes = answer.read()?;
            Ok(answer.rows::<wire::Volume>("volumes", &list.volumes))
        };
        match read.await {
            Ok((rows, problems)) => Part::Listed { rows: rows.iter().map(volume).collect(), problems },
            Err(error) => Part::Failed(error),
        }
    }

    async fn money(&self) -> (Reading<Balance>, Reading<Tenant>) {
        match self.ask(&Call::get(USER).lane("user")).await {
            Ok(answer) => (balance(&answer), tenant(&answer)),
            Err(error) => (Reading::Failed(error.clone()), Reading::Failed(error)),
        }
    }

    async fn one(&self, id: &ResourceId, now: Timestamp) -> Result<Found, ProviderError> {
        let path = format!("/api/v0/instances/{id}/");
        let call = Call::get(&path).query("owner", "me").lane("one").by_id();
        let answer = match self.ask(&call).await {
            Err(error) if error.kind == ErrorKind::NoSuchId => return Ok(Found::NoSuchId),
            answered => answered?,
        };
        let Some(raw) = answer.read::<wire::One>()?.instances else { return Ok(Found::NoSuchId) };
        let (rows, problems) = answer.rows::<wire::Instance>("instances", &[raw]);
        let row = rows.into_iter().next().filter(|row| row.id.0 == id.as_str());
        let Some(mut row) = row else {
            let (path, message) = match problems.into_iter().next() {
                Some(problem) => (problem.field, problem.message),
                None => ("instances.id".to_owned(), "another instance than the one asked for".to_owned()),
            };
            return Err(answer.error(ErrorKind::Decode { path, message }));
        };
        if row.volume_info.is_none() {
            // What a release leaves behind stands in the list only. Without it the rest still holds.
            let listed = self.rows(&format!(r#"{{"id":{{"eq":{id}}}}}"#)).await;
            row.volume_info = listed.ok().and_then(|(rows, _)| {
                rows.into_iter().find(|listed| listed.id.0 == row.id.0).and_then(|listed| listed.volume_info)
            });
        }
        Ok(Found::Instance(Box::new(self.instance(&row, now))))
    }

    /// What was charged in one span of time, all pages.
    async fn charges(&self, from: Timestamp, to: Timestamp) -> Result<Vec<BilledLine>, ProviderError> {
        let filters = json!({"day": {"gte": from.as_second(), "lte": to.as_second() - 1}}).to_string();
        let (mut lines, mut pages, mut cursor) = (Vec::new(), Pages::default(), None);
        for page in 1.. {
            let mut call = Call::get(CHARGES)
                .lane("charges")
                .query("select_filters", filters.as_str())
                .query("format", "table")
                .query("latest_first", "false")
                .query("limit", CHARGES_PAGE);
            if let Some(token) = cursor.take() {
                call = call.query("after_token", token);
            }
            let answer = self.ask(&call).await?;
            let list: wire::Charges = answer.read()?;
            let (read, unread) = answer.rows::<wire::Charge>("results", &list.results);
            // A sum with a hole would pass for the whole.
            if let Some(Problem { field: path, message, .. }) = unread.into_iter().next() {
                return Err(answer.error(ErrorKind::Decode { path, message }));
            }
            lines.extend(read.iter().flat_map(|charge| billed_lines(charge, from, to)));
            match pages.turn(list.next_token) {
                Turn::Next(token) => cursor = Some(token),
                Turn::Loop => return Err(answer.error(ErrorKind::PagingLoop { pages: page })),
                Turn::End => break,
            }
        }
        Ok(lines)
    }
}

#[async_trait]
impl Provider for Vast {
    async fn poll(&self, ask: Ask, now: Timestamp) -> Poll {
        let storage = async { if ask.storage { self.storage().await } else { Part::NotAsked } };
        let money = async { if ask.money { self.money().await } else { (Reading::NotAsked, Reading::NotAsked) } };
        let instances = async {
            let rises = async {
                if ask.money {
                    self.learn_rises().await;
                }
            };
            tokio::join!(self.rows("{}"), rises).0
        };
        let (instances, storage, (balance, tenant)) = tokio::join!(instances, storage, money);
        let instances = self.instances(instances, now);
        Poll { instances, storage, balance, tenant, server_time: self.http.server_time() }
    }

    async fn lookup(&self, kind: ResourceKind, id: &ResourceId, now: Timestamp) -> Result<Found, ProviderError> {
        match kind {
            ResourceKind::Instance => {
                self.checked(id)?;
                self.one(id, now).await
            }
            ResourceKind::Storage => Ok(Found::CannotAsk),
        }
    }

    async fn act(&self, action: Action, id: &ResourceId) -> Result<Accepted, ProviderError> {
        self.checked(id)?;
        let path = match action {
            Action::Restart => format!("/api/v0/instances/reboot/{id}/"),
            Action::Delete => format!("{VOLUMES}/"),
            _ => format!("/api/v0/instances/{id}/"),
        };
        let call = match action {
            Action::Stop => Call::change(Method::PUT, &path).body(json!({"state": "stopped"})).lane("state"),
            Action::Start => Call::change(Method::PUT, &path).body(json!({"state": "running"})).lane("state"),
            Action::Restart => Call::change(Method::PUT, &path).body(json!({})).lane("reboot"),
            Action::Release => Call::change(Method::DELETE, &path).body(json!({})).lane("destroy"),
            Action::Delete => Call::change(Method::DELETE, &path).query("id", id.as_str()).lane("volume"),
            Action::Checkpoint => {
                return Err(self.http.error(&Call::get(&path), ErrorKind::Unusable { message: NO_REQUEST.to_owned() }));
            }
        };
        let ends = matches!(action, Action::Release | Action::Delete);
        let answer = match self.http.send(&call).await {
            Err(error) if ends && error.kind == ErrorKind::NoSuchId => return Ok(Accepted::AlreadySo),
            answered => answered?,
        };
        let told: wire::Told = answer.read()?;
        if !failed(&told) {
            return Ok(Accepted::Done);
        }
        if action == Action::Start && queued(&told) {
            return Ok(Accepted::Queued(clean(words(&told).unwrap_or("the start is queued"))));
        }
        match refusal(&told) {
            ErrorKind::NoSuchId if ends => Ok(Accepted::AlreadySo),
            kind => Err(answer.error(kind)),
        }
    }

    /// Day by day, because a charge is told as one sum for the whole time asked for; a day's line is the same
    /// whoever asks. Only whole days (UTC): the first import makes some sixty calls, a second apart, in a lane of
    /// their own, later ones two or three.
    async fn billed(&self, from: Timestamp, to: Timestamp) -> Result<Vec<BilledLine>, ProviderError> {
        let mut lines = Vec::new();
        let mut day = midnight_from(from);
        loop {
            let next = midnight_from(day + SignedDuration::from_secs(1));
            if next <= day || next > to {
                break;
            }
            lines.extend(self.charges(day, next).await?);
            day = next;
        }
        lines.sort_by_key(|line| line.from);
        Ok(lines)
    }
}

impl Vast {
    /// Ids are digits; anything else must not become part of an address.
    fn checked(&self, id: &ResourceId) -> Result<(), ProviderError> {
        if !id.as_str().is_empty() && id.as_str().bytes().all(|b| b.is_ascii_digit()) {
            return Ok(());
        }
        let message = format!("`{}` is no id of Vast.ai", clean(id.as_str()));
        Err(self.http.error(&Call::get("/api/v0/instances/"), ErrorKind::Unusable { message }))
    }
}

/// What failed answers mean here, as documented and as seen with live keys (2026-09-29).
fn dialect(failure: &Failure<'_>) -> Option<ErrorKind> {
    let code = failure.code.unwrap_or_default();
    let words = failure.message.unwrap_or_default().to_lowercase();
    let says = |any: &[&str]| any.iter().any(|part| words.contains(part));
    let message = failure.message.map(str::to_owned);
    let about_the_key = code == "auth_error"
        || says(&["invalid user key", "session expired", "log in again", "logging in", "requires login"]);
    match failure.status {
        // UNSURE whether a right that is missing is a 401 or a 403.
        401 | 403 if says(&["permission", "not authorized", "not allowed"]) => Some(ErrorKind::Forbidden { message }),
        200 | 401 | 403 | 404 if about_the_key => Some(ErrorKind::Credentials { message }),
        200 | 404 if failure.by_id && no_such_id(code, &words) => Some(ErrorKind::NoSuchId),
        404 if code.is_empty() && words.is_empty() => Some(ErrorKind::NotJson { status: 404, excerpt: None }),
        404 => Some(ErrorKind::Refused {
            status: 404,
            code: failure.code.map(str::to_owned),
            message: message.unwrap_or_else(|| "HTTP 404".to_owned()),
            retry_after: failure.retry_after,
        }),
        _ => None,
    }
}

/// `no_such_instance`, `no_such_volume`, `not_found`, or the same in words alone.
fn no_such_id(code: &str, words: &str) -> bool {
    let names_it = words.contains("instance") || words.contains("volume");
    code.starts_with("no_such_")
        || code == "not_found"
        || (names_it && (words.contains("not found") || words.contains("does not exist")))
}

/// True when an answer says of itself that it failed, whatever its status.
fn failed(told: &wire::Told) -> bool {
    told.success == Some(false) || (told.success.is_none() && told.error.is_some())
}

fn words(told: &wire::Told) -> Option<&str> {
    told.msg.as_deref().or(told.message.as_deref()).or(told.error.as_deref())
}

/// A failure that came with status 200.
fn refusal(told: &wire::Told) -> ErrorKind {
    let (code, message) = (told.error.as_deref().map(clean), words(told).map(clean));
    let failure =
        Failure { status: 200, by_id: true, code: code.as_deref(), message: message.as_deref(), retry_after: None };
    dialect(&failure).unwrap_or_else(|| ErrorKind::Refused {
        status: 200,
        code,
        message: message.unwrap_or_else(|| "`success` is false".to_owned()),
        retry_after: None,
    })
}

/// The GPU is taken and the start now waits; the code may be missing.
fn queued(told: &wire::Told) -> bool {
    told.error.as_deref() == Some("resources_unavailable")
        || words(told).is_some_and(|words| words.to_lowercase().contains("queued"))
}

/// `credit` is what is left, `balance` where that is missing; neither is no 0.
fn balance(answer: &Answer) -> Reading<Balance> {
    match answer.read::<wire::Purse>() {
        Ok(purse) => match purse.credit.or(purse.balance) {
            Some(left) => {
                let cash = Money::new(left.0, Currency::USD);
                Reading::Known(Balance { cash, voucher: None, provider_burn: None })
            }
            None => Reading::Failed(answer.error(ErrorKind::Decode {
                path: "credit".to_owned(),
                message: "neither `credit` nor `balance` is told".to_owned(),
            })),
        },
        Err(error) => Reading::Failed(error),
    }
}

fn tenant(answer: &Answer) -> Reading<Tenant> {
    match answer.read::<wire::Holder>() {
        Ok(wire::Holder { id: Some(id) }) => Reading::Known(Tenant { id: id.0 }),
        Ok(wire::Holder { id: None }) => Reading::NotTold,
        Err(error) => Reading::Failed(error),
    }
}

/// At zero or below instances are stopped, and disks go on being charged. Without a saved card that can be charged,
/// instances and volumes are destroyed after a grace that depends on what the account spends a day (guides: billing, read
/// 2026-08-07). Whether there is such a card is not told, UNSURE.
const AT_ZERO: Fate = Fate::DeletedLater;

/// A volume is charged until it is deleted, whatever becomes of the instances that mount it.
fn volume(row: &wire::Volume) -> StorageItem {
    let users = row.instances.as_deref().unwrap_or_default();
    let ids = users.iter().map(|user| match user {
        wire::User::Number(id) | wire::User::Object { id } => ResourceId::new(id.to_string()),
        wire::User::Text(id) => ResourceId::new(clean(id)),
    });
    let attachment = match row.status.as_ref().map(|status| status.0.as_str()) {
        _ if !users.is_empty() => Attachment::To(ids.collect()),
        Some("in-use") => Attachment::Somewhere,
        Some("created") => Attachment::To(Vec::new()),
        _ => Attachment::Unknown,
    };
    let rate = row.storage_total_cost.and_then(|cost| Rate::per_hour(cost.0, Currency::USD));
    let network = row.kind.as_deref().is_some_and(|kind| kind.contains("network"));
    let contents = DataPlace {
        kind: DataKind::Contents,
        name: clean_opt(row.label.as_deref()),
        path: None,
        size_gb: row.disk_space.map(|size| size.0),
    };
    StorageItem {
        id: ResourceId::new(&row.id.0),
        name: clean_opt(row.label.as_deref()),
        kind: if network { StorageKind::NetworkVolume } else { StorageKind::Volume },
        size_gib: row.disk_space.map(|size| size.0),
        rates: rate.map_or_else(Rates::unknown, |rate| Rates::known().with(Component::Storage, rate)),
        created_at: row.start_date.and_then(instances::moment),
        region: clean_opt(row.geolocation.as_deref()),
        labels: BTreeMap::new(),
        at_zero: AT_ZERO,
        delete: match &attachment {
            Attachment::To(ids) if ids.is_empty() => deletion(contents, Vec::new()),
            Attachment::Unknown => deletion(contents, vec![Risk::UseUnknown]),
            Attachment::To(_) | Attachment::Somewhere => Offer::No(Refusal::InUse),
        },
        attachment,
        page: None,
    }
}

fn deletion(contents: DataPlace, risks: Vec<Risk>) -> Offer {
    Offer::Yes(Effect { rates_after: Rates::known(), lost: vec![contents], risks, ..Effect::default() })
}

/// The lines of one contract's charge of a day. Each covers the part of the day in which the contract was. Items
/// of one component are one line: what a running disk cost, and a stopped one.
fn billed_lines(charge: &wire::Charge, from: Timestamp, to: Timestamp) -> Vec<BilledLine> {
    let kind = charge.kind.as_deref().unwrap_or_default();
    let began = charge.start.and_then(instances::moment).map_or(from, |start| start.max(from));
    let ended = charge.end.and_then(instances::moment).map_or(to, |end| end.min(to));
    let (began, ended) = if began < ended { (began, ended) } else { (from, to) };
    let component = |item: Option<&str>| match item {
        Some("gpu") => Component::Compute,
        Some("disk") if kind == "volume" => Component::Storage,
        Some("disk") => Component::Disk,
        Some("bwd" | "bwu") => Component::Traffic,
        // A sum without its parts stands for the greatest of them.
        None if kind == "instance" => Component::Compute,
        None if kind == "volume" => Component::Storage,
        _ => Component::Other,
    };
    // What its items do not name was not charged.
    let itemised: &[Component] = match (kind, charge.items.as_deref().unwrap_or_default()) {
        ("instance", [_, ..]) => &[Component::Compute, Component::Disk],
        _ => &[],
    };
    let mut sums: BTreeMap<Component, Decimal> = itemised.iter().map(|part| (*part, Decimal::ZERO)).collect();
    let mut add = |item: Option<&str>, amount: wire::Exact| {
        let sum = sums.entry(component(item)).or_default();
        *sum = sum.saturating_add(amount.0);
    };
    match charge.items.as_deref().unwrap_or_default() {
        [] => add(None, charge.amount),
        items => items.iter().for_each(|item| add(Some(item.kind.as_deref().unwrap_or_default()), item.amount)),
    }
    let line = |(component, amount)| BilledLine {
        resource: charge.source.as_deref().and_then(resource),
        product: clean_opt(Some(kind)).unwrap_or_else(|| "other".to_owned()),
        component,
        from: began,
        to: ended,
        amount: Money::new(amount, Currency::USD),
    };
    let worth_a_line = |(component, amount): &(Component, Decimal)| {
        !amount.is_zero() || matches!(component, Component::Compute | Component::Disk | Component::Storage)
    };
    sums.into_iter().filter(worth_a_line).map(line).collect()
}

/// `instance-31000001`, `volume-5100001`; other products name no resource that is listed.
fn resource(source: &str) -> Option<(ResourceKind, ResourceId)> {
    let (kind, id) = source.split_once('-')?;
    let kind = match kind {
        "instance" => ResourceKind::Instance,
        "volume" => ResourceKind::Storage,
        _ => return None,
    };
    id.bytes().all(|b| b.is_ascii_digit()).then(|| (kind, ResourceId::new(id)))
}

/// The first midnight (UTC) at a moment or after it: charges are kept by day.
fn midnight_from(at: Timestamp) -> Timestamp {
    const DAY: i64 = 24 * 3600;
    let second = at.as_second() + i64::from(at.subsec_nanosecond() > 0);
    Timestamp::from_second((second + DAY - 1).div_euclid(DAY) * DAY).unwrap_or(Timestamp::MAX)
}
