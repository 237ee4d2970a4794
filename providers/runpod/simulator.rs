//! RunPod's wire over a simulated world: REST v2 as rentop and the official MCP server use it, GraphQL as
//! the official Python client does.
//!
//! RunPod has no word for stopping: a pod is RUNNING until it is EXITED. A start that finds no GPU is refused
//! and leaves the pod EXITED. A deleted pod is TERMINATED for a moment, then answers 404.

mod bills;
mod buckets;
mod graphql;

use std::collections::BTreeMap;

use axum::body::Bytes;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde_json::{Value, json};

use super::graphql::Extra;
use super::{pods, volumes};
use crate::facts::Facts;
use crate::model::Instance;
use crate::provider::{Part, Poll};
use crate::sim::{Life, Load, Machine, Shared, SimClock, Store, World, read};

/// Windows and quotas as in the documents' example, ten times as wide.
const WINDOWS: [(&str, i64, i64); 3] = [("minute", 60, 600), ("hour", 3600, 30_000), ("day", 86_400, 500_000)];
/// The label that makes a machine the member of a cluster.
pub const CLUSTER: &str = "cluster";

/// A small account: a busy trainer, a forgotten idle one on a network volume, a spot job, a stopped one
/// whose disk costs, and a network volume that nobody mounts.
pub fn sample(clock: SimClock) -> World {
    let now = clock.now();
    let mut world = World::new(clock, "sim-runpod-key");
    world.tenant = "user_sim0001".to_owned();
    world.balance = Decimal::new(4317, 2);
    world.hours_in_month = Decimal::from(730);
    world.scratch_running_month = Decimal::new(10, 2);
    let ago = |hours: i64| now - SignedDuration::from_hours(hours);
    world.machines = vec![
        Machine {
            gpu: "NVIDIA H100 80GB HBM3".to_owned(),
            gpu_count: 2,
            gpu_memory_gib: 80,
            compute_per_hour: Decimal::new(598, 2),
            scratch_gb: 50,
            disk_gb: 200,
            region: "US-KS-2".to_owned(),
            created_at: ago(31),
            started_at: Some(ago(31)),
            ..Machine::new("sim0train00001", "train-llama", now)
        },
        Machine {
            gpu: "NVIDIA GeForce RTX 4090".to_owned(),
            compute_per_hour: Decimal::new(69, 2),
            disk_gb: 0,
            mounts: vec!["simnv0data".to_owned()],
            load: Load::Idle,
            region: "EU-RO-1".to_owned(),
            address: "192.0.2.11".to_owned(),
            ssh_port: 22011,
            created_at: ago(80),
            started_at: Some(ago(14)),
            ..Machine::new("sim0note000002", "notebook", now)
        },
        Machine {
            gpu: "NVIDIA RTX A5000".to_owned(),
            compute_per_hour: Decimal::new(16, 2),
            spot: true,
            load: Load::Waves,
            region: "EU-SE-1".to_owned(),
            address: "192.0.2.12".to_owned(),
            ssh_port: 22012,
            created_at: ago(5),
            started_at: Some(ago(5)),
            ..Machine::new("sim0spot000003", "sweep-3", now)
        },
        Machine {
            life: Life::Stopped,
            gpu: "NVIDIA GeForce RTX 4090".to_owned(),
            compute_per_hour: Decimal::new(69, 2),
            disk_gb: 120,
            region: "US-KS-2".to_owned(),
            created_at: ago(24 * 12),
            started_at: None,
            ..Machine::new("sim0paus000004", "paused-exp", now)
        },
    ];
    let store = |id: &str, name: &str, size_gb, region: &str, days: i64| Store {
        id: id.to_owned(),
        name: name.to_owned(),
        size_gb,
        region: region.to_owned(),
        created_at: ago(24 * days),
        gone: false,
    };
    world.stores = vec![
        store("simnv0data", "datasets", 500, "EU-RO-1", 60),
        store("simnv0left", "old-ckpts", 250, "US-KS-2", 140),
    ];
    world
}

/// The wire of one account.
pub fn routes(world: Shared) -> Router {
    paged_routes(world, usize::MAX)
}

/// What a complete poll of a world says, without the way over HTTP.
pub fn poll(world: &World) -> Poll {
    let facts = Facts::built_in(super::ENTRY.facts);
    let instance = |machine: &Machine| {
        let extra = Extra { spot: machine.spot, ..Extra::default() };
        pods::instance(read(&pod_json(world, machine)), Some(&extra), &facts, world.now())
    };
    let instances: Vec<Instance> = world.listed().map(instance).collect();
    let users = volumes::Users::of(&Part::complete(instances.clone()), Some(Vec::new()));
    let stores = world.stores.iter().filter(|store| !store.gone);
    let storage = stores.map(|store| volumes::item(read(&volume_json(store)), &users, &facts)).collect();
    Poll::of_lists(instances, storage)
}

/// The same with lists that are cut after so many rows and go on behind a cursor.
pub fn paged_routes(world: Shared, per_page: usize) -> Router {
    let sim = Sim { world, per_page };
    Router::new()
        .route("/v2/pods", get(list_pods))
        .route("/v2/pods/{id}", get(pod).delete(delete_pod))
        .route("/v2/pods/{id}/action", post(action))
        .route("/v2/network-volumes", get(list_volumes))
        .route("/v2/network-volumes/{id}", get(volume).delete(delete_volume))
        .route("/v2/serverless", get(async || Json(json!({ "endpoints": [] }))))
        .route("/v2/billing", get(bills::account))
        .route("/v2/billing/pods", get(bills::pods))
        .route("/v2/billing/network-volumes", get(bills::volumes))
        .route("/v2/catalog/gpus", get(catalog))
        .route("/v2/account/ssh-keys", get(async || Json(json!({ "keys": [] }))))
        .route("/graphql", post(graphql))
        .fallback(async || problem(404, "Not Found", "no route for this path"))
        .layer(middleware::from_fn_with_state(sim.clone(), gate))
        .with_state(sim)
}

#[derive(Clone)]
struct Sim {
    world: Shared,
    per_page: usize,
}

type Params = Query<BTreeMap<String, String>>;

/// Lets in who has the key, and tells each of them what is left of the quotas.
async fn gate(State(sim): State<Sim>, request: Request, next: Next) -> Response {
    let graph = request.uri().path() == "/graphql";
    let given = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let known = given.and_then(|value| value.strip_prefix("Bearer ")) == Some(sim.world.lock().key.as_str());
    match (known, graph) {
        (false, true) => {
            let body =
                json!({ "errors": [{ "message": "Not authenticated", "extensions": { "code": "UNAUTHENTICATED" } }] });
            return (StatusCode::UNAUTHORIZED, Json(body)).into_response();
        }
        (false, false) if given.is_none() => return problem(401, "Unauthorized", "missing bearer token"),
        (false, false) => return problem(401, "Unauthorized", "invalid bearer token"),
        (true, _) => {}
    }
    let mut response = next.run(request).await;
    if !graph {
        rate_headers(&sim.world.lock(), response.headers_mut());
    }
    response
}

/// Counts the requests of the present windows. Nobody is refused for them: a fault does that where a test
/// wants it.
fn rate_headers(world: &World, headers: &mut HeaderMap) {
    let now = world.now().as_second();
    let (left, policy): (Vec<_>, Vec<_>) = WINDOWS
        .iter()
        .map(|(name, width, quota)| {
            let begin = now - now.rem_euclid(*width);
            let used = world.seen.iter().rev().take_while(|seen| seen.at.as_second() >= begin).count() as i64;
            let left = (quota - used).max(1);
            (format!("\"{name}\";r={left};t={}", begin + width - now), format!("\"{name}\";q={quota};w={width}"))
        })
        .unzip();
    for (name, windows) in [("ratelimit", left), ("ratelimit-policy", policy)] {
        if let Ok(value) = HeaderValue::from_str(&windows.join(", ")) {
            headers.insert(name, value);
        }
    }
}

fn problem(status: u16, title: &str, detail: &str) -> Response {
    let body = json!({ "title": title, "status": status, "detail": detail }).to_string();
    let status = StatusCode::from_u16(status).expect("a status of this file");
    (status, [(header::CONTENT_TYPE, "application/problem+json")], body).into_response()
}

fn no_pod() -> Response {
    problem(404, "Not Found", "pod not found")
}

async fn list_pods(State(sim): State<Sim>, Query(query): Params) -> Response {
    let world = sim.world.lock();
    let clusters = query.get("includeClusterPods").is_some_and(|value| value == "true");
    let mut rows: Vec<&Machine> =
        world.listed().filter(|machine| clusters || !machine.labels.contains_key(CLUSTER)).collect();
    rows.sort_by_key(|machine| std::cmp::Reverse(machine.created_at));
    let rows = rows.into_iter().map(|machine| pod_json(&world, machine)).collect();
    page(rows, "pods", &query, sim.per_page)
}

/// A list, cut where the caller or the world wants it cut.
fn page(rows: Vec<Value>, name: &str, query: &BTreeMap<String, String>, per_page: usize) -> Response {
    let Ok(limit) = query.get("limit").map_or(Ok(per_page), |limit| limit.parse()) else {
        return problem(422, "Unprocessable Entity", "limit is no number");
    };
    let start = match query.get("cursor").map(|cursor| cursor.strip_prefix("row-").and_then(|at| at.parse().ok())) {
        None => 0,
        Some(Some(start)) if start <= rows.len() => start,
        Some(_) => return problem(422, "Unprocessable Entity", "unknown cursor"),
    };
    let end = start.saturating_add(limit.max(1)).min(rows.len());
    let more = end < rows.len();
    let mut body = json!({ name: rows[start..end] });
    if limit != usize::MAX {
        body["pagination"] = json!({ "nextCursor": more.then(|| format!("row-{end}")), "hasNextPage": more });
    }
    Json(body).into_response()
}

async fn pod(State(sim): State<Sim>, Path(id): Path<String>) -> Response {
    let world = sim.world.lock();
    match world.listed().find(|machine| machine.id == id) {
        Some(machine) => Json(pod_json(&world, machine)).into_response(),
        None => no_pod(),
    }
}

async fn delete_pod(State(sim): State<Sim>, Path(id): Path<String>) -> Response {
    carry_out(&mut sim.world.lock(), &id, "terminate").unwrap_or_else(|refusal| refusal.response())
}

async fn action(State(sim): State<Sim>, Path(id): Path<String>, body: Bytes) -> Response {
    let wanted = match serde_json::from_slice::<BTreeMap<String, String>>(&body) {
        Ok(fields) if fields.len() == 1 && fields.contains_key("action") => fields["action"].clone(),
        _ => return problem(422, "Unprocessable Entity", "Request validation failed."),
    };
    if !["start", "stop", "restart", "terminate"].contains(&wanted.as_str()) {
        return problem(422, "Unprocessable Entity", "Request validation failed.");
    }
    carry_out(&mut sim.world.lock(), &id, &wanted).unwrap_or_else(|refusal| refusal.response())
}

/// Why an action was not carried out.
#[derive(Debug)]
enum Denied {
    NoPod,
    Conflict(&'static str),
    NoFreeGpu,
}

impl Denied {
    fn text(&self) -> &'static str {
        match self {
            Denied::NoPod => "pod not found",
            Denied::Conflict(text) => text,
            Denied::NoFreeGpu => "There are not enough free GPUs on the host machine to start this pod.",
        }
    }

    fn response(&self) -> Response {
        match self {
            Denied::NoPod => no_pod(),
            Denied::Conflict(text) => problem(409, "Conflict", text),
            Denied::NoFreeGpu => problem(400, "Bad Request", self.text()),
        }
    }
}

/// Begins an action where the pod's state allows it.
fn begin(world: &mut World, id: &str, action: &str) -> Result<(), Denied> {
    let machine = world.listed().find(|machine| machine.id == id).ok_or(Denied::NoPod)?;
    if machine.labels.contains_key(CLUSTER) {
        return Err(Denied::Conflict("pod belongs to a cluster"));
    }
    if machine.locked && action == "stop" {
        return Err(Denied::Conflict("pod is locked"));
    }
    if !actions(machine).contains(&action) {
        return Err(Denied::Conflict("action not valid for current pod status"));
    }
    if action == "start" && machine.gpu_taken {
        return Err(Denied::NoFreeGpu);
    }
    match action {
        "start" => world.start(id),
        "stop" => world.stop(id),
        "restart" => {
            let now = world.now();
            if let Some(machine) = world.machine(id) {
                machine.started_at = Some(now);
            }
            world.did(id, "restart");
        }
        _ => world.release(id),
    }
    Ok(())
}

fn carry_out(world: &mut World, id: &str, action: &str) -> Result<Response, Denied> {
    begin(world, id, action)?;
    if action == "terminate" {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let machine = world.listed().find(|machine| machine.id == id).ok_or(Denied::NoPod)?;
    Ok(Json(pod_json(world, machine)).into_response())
}

async fn list_volumes(State(sim): State<Sim>, Query(query): Params) -> Response {
    let world = sim.world.lock();
    let rows = world.stores.iter().filter(|store| !store.gone).map(volume_json).collect();
    page(rows, "networkVolumes", &query, sim.per_page)
}

async fn volume(State(sim): State<Sim>, Path(id): Path<String>) -> Response {
    let world = sim.world.lock();
    match world.stores.iter().find(|store| store.id == id && !store.gone) {
        Some(store) => Json(volume_json(store)).into_response(),
        None => problem(404, "Not Found", "network volume not found"),
    }
}

async fn delete_volume(State(sim): State<Sim>, Path(id): Path<String>) -> Response {
    let mut world = sim.world.lock();
    match world.stores.iter_mut().find(|store| store.id == id && !store.gone) {
        Some(store) => {
            store.gone = true;
            world.did(&id, "delete");
            StatusCode::NO_CONTENT.into_response()
        }
        None => problem(404, "Not Found", "network volume not found"),
    }
}

async fn catalog(State(sim): State<Sim>) -> Response {
    let world = sim.world.lock();
    let mut types: BTreeMap<&str, Value> = BTreeMap::new();
    for machine in world.machines.iter().filter(|machine| machine.gpu_count > 0) {
        let price = machine.compute_per_hour / Decimal::from(machine.gpu_count);
        let short = machine.gpu.trim_start_matches("NVIDIA ").trim_start_matches("GeForce ");
        types.entry(&machine.gpu).or_insert_with(|| {
            json!({
                "id": machine.gpu, "name": short, "pool": null, "manufacturer": "NVIDIA",
                "memory": machine.gpu_memory_gib, "secure": true, "community": false,
                "price": { "secure": float(price), "community": 0 }, "maxCount": { "secure": 8, "community": 8 },
            })
        });
    }
    Json(json!({ "gpus": types.into_values().collect::<Vec<_>>() })).into_response()
}

async fn graphql(State(sim): State<Sim>, body: Bytes) -> Response {
    let query = serde_json::from_slice::<Value>(&body).ok().and_then(|body| Some(body["query"].as_str()?.to_owned()));
    let answer = match query {
        Some(query) => graphql::answer(&mut sim.world.lock(), &query),
        None => Err("the body holds no query".to_owned()),
    };
    match answer {
        Ok(data) => Json(data).into_response(),
        Err(message) => (StatusCode::BAD_REQUEST, Json(json!({ "errors": [{ "message": message }] }))).into_response(),
    }
}

fn status(life: Life) -> &'static str {
    match life {
        Life::Provisioning => "PROVISIONING",
        Life::Starting => "STARTING",
        Life::Running | Life::Stopping | Life::Offline => "RUNNING",
        Life::Stopped | Life::Queued | Life::Outbid => "EXITED",
        Life::Failed => "ERROR",
        Life::Releasing | Life::Gone => "TERMINATED",
    }
}

fn actions(machine: &Machine) -> Vec<&'static str> {
    let all: &[&str] = match status(machine.life) {
        _ if machine.life == Life::Stopping => &["terminate"],
        "RUNNING" => &["stop", "restart", "terminate"],
        "EXITED" | "ERROR" => &["start", "terminate"],
        "PROVISIONING" | "STARTING" => &["stop", "terminate"],
        _ => &[],
    };
    all.iter().copied().filter(|action| *action != "stop" || !machine.locked).collect()
}

/// True for a machine of the kind that never has GPUs.
fn is_cpu(machine: &Machine) -> bool {
    machine.gpu.starts_with("cpu")
}

fn pod_json(world: &World, machine: &Machine) -> Value {
    let now = world.now();
    let running = machine.life == Life::Running;
    let placed = !matches!(machine.life, Life::Provisioning | Life::Releasing | Life::Gone);
    let up = matches!(machine.life, Life::Provisioning | Life::Starting);
    let cost = if up { machine.compute_per_hour } else { world.compute_of(machine) };
    let host_id = host_id(machine);
    let proxy = json!({
        "host": "ssh.runpod.io", "port": 22, "username": host_id, "command": format!("ssh {host_id}@ssh.runpod.io"),
    });
    let direct = json!({
        "host": machine.address, "port": machine.ssh_port, "username": "root",
        "command": format!("ssh root@{} -p {}", machine.address, machine.ssh_port),
    });
    let mounts = match (machine.mounts.first(), machine.disk_gb) {
        (Some(volume), _) => json!({ "network": [{ "volumeId": volume, "path": "/workspace" }] }),
        (None, 0) => json!({}),
        (None, size) => json!({ "persistent": { "size": size, "path": "/workspace" } }),
    };
    let mut pod = json!({
        "id": machine.id, "name": machine.name.as_deref().unwrap_or_default(), "status": status(machine.life),
        "actions": actions(machine), "image": "runpod/pytorch:1.0.2-cu1281-torch280-ubuntu2404", "args": "",
        "disk": machine.scratch_gb, "mounts": mounts, "ports": ["8888/http", "22/tcp"],
        "env": { "HF_TOKEN": "hf_simulated_secret" }, "registry": null,
        "cloud": "SECURE", "dataCenterId": placed.then_some(&machine.region), "cudaVersion": placed.then_some("12.8"),
        "ssh": { "proxy": placed.then_some(proxy), "direct": running.then_some(direct) }, "template": null,
        "cost": float(cost), "locked": machine.locked, "globalNetworking": { "enabled": false },
        "runtime": running.then(|| runtime(machine, now)), "createdAt": machine.created_at,
        "startedAt": machine.started_at,
    });
    if is_cpu(machine) {
        pod["cpu"] = json!({ "id": machine.gpu, "vcpuCount": 8, "memory": 16 });
    } else {
        pod["gpu"] = json!({ "id": machine.gpu, "count": machine.gpu_count });
    }
    if let Some(cluster) = machine.labels.get(CLUSTER) {
        pod["cluster"] = json!({ "id": cluster, "rank": 0 });
    }
    pod
}

fn runtime(machine: &Machine, now: Timestamp) -> Value {
    let mut runtime = json!({
        "uptime": uptime(machine, now),
        "ports": [{ "private": 22, "public": machine.ssh_port, "type": "tcp", "ip": machine.address }],
    });
    if machine.load != Load::Untold {
        let gpus: Vec<_> = loads(machine, now)
            .map(|load| json!({ "util": percent(load), "memoryUtil": percent(memory_of(load)) }))
            .collect();
        let mean = loads(machine, now).sum::<f64>() / f64::from(machine.gpu_count.max(1));
        runtime["gpus"] = json!(gpus);
        runtime["cpu"] = json!({ "util": percent(0.02 + mean * 0.4) });
        runtime["memory"] = json!({ "util": percent(0.05 + mean * 0.5) });
    }
    runtime
}

fn uptime(machine: &Machine, now: Timestamp) -> i64 {
    machine.started_at.map_or(0, |started| now.duration_since(started).as_secs().max(0))
}

fn loads(machine: &Machine, now: Timestamp) -> impl Iterator<Item = f64> {
    (0..machine.gpu_count).filter_map(move |card| machine.utilization(card, now))
}

/// A card that works holds its model in memory; an idle one holds nothing.
fn memory_of(load: f64) -> f64 {
    if load > 0.0 { 0.78 } else { 0.0 }
}

fn percent(share: f64) -> i64 {
    (share * 100.0).round() as i64
}

fn host_id(machine: &Machine) -> String {
    format!("{}-6441aaaa", machine.id)
}

fn volume_json(store: &Store) -> Value {
    json!({
        "id": store.id, "name": store.name, "size": store.size_gb, "dataCenter": store.region, "type": "STANDARD",
    })
}

/// RunPod sends money as a JSON number; ten digits behind the point are more than it charges by.
fn float(amount: Decimal) -> f64 {
    amount.round_dp(10).to_f64().unwrap_or_default()
}
