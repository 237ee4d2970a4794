//! Lambda's wire, served from a simulated world.
//!
//! Keys are absent where there is nothing to say, never null: the real clients insist on it. What no document
//! states is left out: the pace is not enforced (a 429's shape is not documented; tests plant their own), and
//! an instance that is gone is unknown by id at once, without the short while as `terminated`.

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::http::header::AUTHORIZATION;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{delete, get, post};
use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde_json::{Map, Value, json};

use crate::facts::Facts;
use crate::model::Instance;
use crate::provider::Poll;
use crate::sim::{Life, Load, Machine, Shared, SimClock, Store, World, read};

/// Until a new file system was measured for the first time, its size is not told.
const MEASURED_AFTER: SignedDuration = SignedDuration::from_hours(3);

/// An instance type: name, card, cards, US cents per hour, virtual CPUs, memory and local disk in GiB.
struct Kind {
    name: &'static str,
    card: &'static str,
    cards: u32,
    cents: i64,
    vcpus: u32,
    memory_gib: u32,
    storage_gib: u32,
    /// Regions with room for one more.
    regions: &'static [&'static str],
}

const KINDS: [Kind; 4] = [
    Kind {
        name: "gpu_1x_a10",
        card: "A10 (24 GB PCIe)",
        cards: 1,
        cents: 129,
        vcpus: 30,
        memory_gib: 226,
        storage_gib: 1400,
        regions: &["us-west-1", "us-east-1"],
    },
    Kind {
        name: "gpu_1x_gh200",
        card: "GH200 (96 GB)",
        cards: 1,
        cents: 229,
        vcpus: 64,
        memory_gib: 432,
        storage_gib: 4096,
        regions: &["us-east-1"],
    },
    Kind {
        name: "gpu_8x_h100_sxm5",
        card: "H100 (80 GB SXM5)",
        cards: 8,
        cents: 3192,
        vcpus: 208,
        memory_gib: 1800,
        storage_gib: 22528,
        regions: &[],
    },
    Kind {
        name: "cpu_4x_general",
        card: "N/A",
        cards: 0,
        cents: 20,
        vcpus: 4,
        memory_gib: 16,
        storage_gib: 512,
        regions: &["us-west-1"],
    },
];

/// An account with a busy machine, an idle one, one that boots, one that is unhealthy, and three file systems
/// of which one is mounted and one is too new to have a size.
pub fn sample(clock: SimClock) -> World {
    let now = clock.now();
    let ago = |hours: i64| now - SignedDuration::from_hours(hours);
    let mut world = World::new(clock, "sim-lambda-key");
    world.store_month = Decimal::new(20, 2);
    world.disk_running_month = Decimal::ZERO;
    world.disk_stopped_month = Decimal::ZERO;
    world.transition = SignedDuration::from_secs(20);
    let new = |number: u32, name: &str, kind: &Kind, region: &str, since: Timestamp| Machine {
        gpu: kind.card.to_owned(),
        gpu_count: kind.cards,
        compute_per_hour: Decimal::new(kind.cents, 2),
        scratch_gb: kind.storage_gib,
        disk_gb: 0,
        region: region.to_owned(),
        address: format!("192.0.2.{}", 60 + number),
        ssh_port: 22,
        created_at: since,
        started_at: Some(since),
        ..Machine::new(&format!("1a3bda000000000000000000000000{number:02x}"), name, now)
    };
    let [a10, gh200, h100, _] = &KINDS;
    world.machines = vec![
        Machine {
            mounts: vec![store_id(1)],
            labels: [("team".to_owned(), "vision".to_owned())].into(),
            gpu_memory_gib: 80,
            ..new(1, "pretrain-8x", h100, "us-south-1", ago(31))
        },
        Machine { load: Load::Idle, ..new(2, "notebook", a10, "us-west-1", ago(76)) },
        Machine {
            life: Life::Provisioning,
            next: Some((now + SignedDuration::from_secs(90), Life::Running)),
            started_at: None,
            load: Load::Waves,
            gpu_memory_gib: 96,
            ..new(3, "fresh", gh200, "us-east-1", now)
        },
        Machine { life: Life::Offline, ..new(4, "eval", a10, "us-west-1", ago(9)) },
    ];
    let store = |number: u32, name: &str, size_gb: u32, region: &str, created_at: Timestamp| Store {
        id: store_id(number),
        name: name.to_owned(),
        size_gb,
        region: region.to_owned(),
        created_at,
        gone: false,
    };
    world.stores = vec![
        store(1, "ckpt", 384, "us-south-1", ago(24 * 90)),
        store(2, "datasets", 1200, "us-west-1", ago(24 * 200)),
        store(3, "brand-new", 10, "us-east-1", ago(1)),
    ];
    world
}

fn store_id(number: u32) -> String {
    format!("f5{number:030x}")
}

/// What a complete poll of a world says, without the way over HTTP.
pub fn poll(world: &World) -> Poll {
    let facts = Facts::built_in(super::ENTRY.facts);
    let instances: Vec<Instance> =
        world.listed().map(|machine| super::instance(&read(&instance_json(world, machine)), &facts)).collect();
    let stores = world.stores.iter().filter(|store| !store.gone);
    let storage =
        stores.map(|store| super::file_system(&read(&store_json(world, store)), &instances, &facts)).collect();
    Poll::of_lists(instances, storage)
}

/// The paths that rentop and the known clients call.
pub fn routes(world: Shared) -> Router {
    Router::new()
        .route("/api/v1/instances", get(instances))
        .route("/api/v1/instances/{id}", get(instance).post(rename))
        .route("/api/v1/instance-types", get(instance_types))
        .route("/api/v1/instance-operations/terminate", post(terminate))
        .route("/api/v1/instance-operations/restart", post(restart))
        .route("/api/v1/file-systems", get(file_systems))
        .route("/api/v1/filesystems", get(file_systems).post(create_file_system))
        .route("/api/v1/filesystems/{id}", delete(delete_file_system))
        .route("/api/v1/ssh-keys", get(ssh_keys))
        .route("/api/v1/images", get(images))
        .layer(middleware::from_fn_with_state(world.clone(), authorize))
        .with_state(world)
}

async fn authorize(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let expected = format!("Bearer {}", shared.lock().key);
    let sent = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    if sent == Some(expected.as_str()) {
        return next.run(request).await;
    }
    error(
        StatusCode::UNAUTHORIZED,
        "global/invalid-api-key",
        "API key was invalid, expired, or deleted.",
        Some("Check your API key or create a new one, then try again."),
    )
}

async fn instances(State(shared): State<Shared>) -> Response {
    let world = shared.lock();
    data(world.listed().map(|machine| instance_json(&world, machine)).collect())
}

async fn instance(State(shared): State<Shared>, Path(id): Path<String>) -> Response {
    let world = shared.lock();
    match world.listed().find(|machine| machine.id == id) {
        Some(machine) => data(instance_json(&world, machine)),
        None => no_such("instance"),
    }
}

async fn rename(State(shared): State<Shared>, Path(id): Path<String>, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let Some(name) = body["name"].as_str().filter(|name| name.len() <= 64) else { return invalid("Invalid name.") };
    let mut world = shared.lock();
    match world.machine(&id).filter(|machine| machine.life != Life::Gone) {
        Some(machine) => machine.name = (!name.is_empty()).then(|| name.to_owned()),
        None => return no_such("instance"),
    }
    let machine = world.listed().find(|machine| machine.id == id);
    machine.map_or_else(|| no_such("instance"), |machine| data(instance_json(&world, machine)))
}

/// Ends all that are named, or none when one of them is unknown. One that is ending already is taken again.
async fn terminate(State(shared): State<Shared>, body: Bytes) -> Response {
    let mut world = shared.lock();
    operate(&mut world, &body, "terminate", "terminated_instances", |world, id| {
        if world.machine(id).is_some_and(|machine| machine.life != Life::Releasing) {
            world.release(id);
        }
    })
}

/// The status stays `active` during a restart.
async fn restart(State(shared): State<Shared>, body: Bytes) -> Response {
    let mut world = shared.lock();
    operate(&mut world, &body, "restart", "restarted_instances", |world, id| world.did(id, "restart"))
}

fn operate(world: &mut World, body: &[u8], action: &str, list: &str, carry_out: fn(&mut World, &str)) -> Response {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let Some(ids) = body["instance_ids"].as_array().filter(|ids| !ids.is_empty() && ids.iter().all(Value::is_string))
    else {
        return invalid("Invalid request data.");
    };
    let ids: Vec<&str> = ids.iter().filter_map(Value::as_str).collect();
    for id in &ids {
        let Some(machine) = world.listed().find(|machine| machine.id == *id) else { return no_such("instance") };
        let again = action == "terminate" && machine.life == Life::Releasing;
        if !again && blocked(machine, action).is_some() {
            return invalid(&format!("The {action} operation is not available for this instance right now."));
        }
    }
    for id in &ids {
        carry_out(world, id);
    }
    let done: Value = world
        .listed()
        .filter(|machine| ids.contains(&machine.id.as_str()))
        .map(|machine| instance_json(world, machine))
        .collect();
    data(json!({ list: done }))
}

async fn instance_types() -> Response {
    let types: Map<String, Value> = KINDS
        .iter()
        .map(|kind| {
            let regions: Value = kind.regions.iter().map(|name| region_json(name)).collect();
            let entry = json!({"instance_type": kind_json(kind), "regions_with_capacity_available": regions});
            (kind.name.to_owned(), entry)
        })
        .collect();
    data(Value::Object(types))
}

async fn file_systems(State(shared): State<Shared>) -> Response {
    let world = shared.lock();
    data(world.stores.iter().filter(|store| !store.gone).map(|store| store_json(&world, store)).collect())
}

async fn create_file_system(State(shared): State<Shared>, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (Some(name), Some(region)) = (body["name"].as_str(), body["region"].as_str()) else {
        return invalid("Invalid request data.");
    };
    let mut world = shared.lock();
    if world.stores.iter().any(|store| !store.gone && store.name == name) {
        return error(StatusCode::BAD_REQUEST, "global/duplicate", "A filesystem of this name exists.", None);
    }
    let store = Store {
        id: store_id(100 + world.stores.len() as u32),
        name: name.to_owned(),
        size_gb: 0,
        region: region.to_owned(),
        created_at: world.now(),
        gone: false,
    };
    let shown = store_json(&world, &store);
    world.stores.push(store);
    data(shown)
}

async fn delete_file_system(State(shared): State<Shared>, Path(id): Path<String>) -> Response {
    let mut world = shared.lock();
    let in_use = in_use(&world, &id);
    match world.stores.iter_mut().find(|store| store.id == id && !store.gone) {
        None => no_such("filesystem"),
        Some(_) if in_use => error(
            StatusCode::BAD_REQUEST,
            "filesystems/filesystem-in-use",
            "Filesystem is in use.",
            Some("Terminate the instances that mount it, then try again."),
        ),
        Some(store) => {
            store.gone = true;
            world.did(&id, "delete");
            data(json!({"deleted_ids": [id]}))
        }
    }
}

async fn ssh_keys() -> Response {
    data(json!([{
        "id": "5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e",
        "name": "laptop",
        "public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAISIMULATEDSIMULATEDSIMULATEDSIMULATEDSIMULATE laptop",
    }]))
}

async fn images() -> Response {
    data(json!([{
        "id": "51111111-0000-4000-8000-000000000001",
        "created_time": "2026-08-03T09:00:00.000Z",
        "updated_time": "2026-08-03T09:00:00.000Z",
        "name": "ubuntu-24.04",
        "description": "Ubuntu with drivers",
        "family": "ubuntu",
        "version": "24.4.1",
        "architecture": "x86_64",
        "region": region_json("us-west-1"),
    }]))
}

fn data(value: Value) -> Response {
    Json(json!({"data": value})).into_response()
}

fn error(status: StatusCode, code: &str, message: &str, suggestion: Option<&str>) -> Response {
    let mut error = json!({"code": code, "message": message});
    if let Some(suggestion) = suggestion {
        error["suggestion"] = suggestion.into();
    }
    (status, Json(json!({"error": error}))).into_response()
}

fn no_such(what: &str) -> Response {
    let message = format!("Specified {what} does not exist.");
    error(StatusCode::NOT_FOUND, "global/object-does-not-exist", &message, None)
}

fn invalid(message: &str) -> Response {
    error(StatusCode::BAD_REQUEST, "global/invalid-parameters", message, None)
}

/// Lambda's word for where a machine is. There is no stop: one that shut itself down answers no health check.
fn status(life: Life) -> &'static str {
    match life {
        Life::Provisioning | Life::Starting => "booting",
        Life::Running => "active",
        Life::Releasing => "terminating",
        Life::Gone => "terminated",
        Life::Outbid => "preempted",
        Life::Stopping | Life::Stopped | Life::Queued | Life::Offline | Life::Failed => "unhealthy",
    }
}

/// Why an action is not available now, as code and words. A machine that is locked cannot be terminated
/// before it has booted.
fn blocked(machine: &Machine, action: &str) -> Option<(&'static str, &'static str)> {
    match status(machine.life) {
        "booting" if action != "terminate" || machine.locked => {
            Some(("vm-has-not-launched", "Instance has not launched yet."))
        }
        "terminating" | "terminated" => Some(("vm-is-terminating", "Instance is being terminated.")),
        "preempted" if action != "terminate" => Some(("vm-is-terminating", "Instance was preempted.")),
        _ => None,
    }
}

fn instance_json(world: &World, machine: &Machine) -> Value {
    let stores: Vec<&Store> = world.stores.iter().filter(|store| machine.mounts.contains(&store.id)).collect();
    let actions: Map<String, Value> = ["migrate", "rebuild", "restart", "cold_reboot", "terminate"]
        .into_iter()
        .map(|action| {
            let told = match blocked(machine, action) {
                None => json!({"available": true}),
                Some((code, words)) => json!({"available": false, "reason_code": code, "reason_description": words}),
            };
            (action.to_owned(), told)
        })
        .collect();
    let mut row = json!({
        "id": machine.id,
        "status": status(machine.life),
        "ssh_key_names": ["laptop"],
        "file_system_names": stores.iter().map(|store| store.name.as_str()).collect::<Vec<_>>(),
        "region": region_json(&machine.region),
        "instance_type": machine_kind_json(machine),
        "actions": actions,
        "is_reserved": false,
    });
    let mut add = |key: &str, value: Value| row[key] = value;
    if let Some(name) = &machine.name {
        add("name", name.as_str().into());
    }
    if !stores.is_empty() {
        let mounts = stores.iter().map(|store| json!({"mount_point": mount_point(store), "file_system_id": store.id}));
        add("file_system_mounts", mounts.collect());
    }
    if !machine.labels.is_empty() {
        add("tags", machine.labels.iter().map(|(key, value)| json!({"key": key, "value": value})).collect());
    }
    if let Some(since) = machine.started_at {
        add("first_healthy", since.to_string().into());
    }
    if !matches!(machine.life, Life::Provisioning | Life::Starting | Life::Outbid) {
        let host = machine.address.replace('.', "-");
        let token = format!("jt-SIMULATED-SECRET-{}", machine.id);
        add("ip", machine.address.as_str().into());
        add("private_ip", machine.address.replacen("192.0.2.", "10.19.1.", 1).into());
        add("hostname", format!("{host}.lambda.invalid").into());
        add("jupyter_url", format!("https://{host}.lambda.invalid/?token={token}").into());
        add("jupyter_token", token.into());
    }
    row
}

/// The type of a machine: one of the table where card and number fit, else one made of the machine's own figures.
fn machine_kind_json(machine: &Machine) -> Value {
    let known = KINDS.iter().find(|kind| kind.card == machine.gpu && kind.cards == machine.gpu_count);
    let mut shown = known.map_or_else(
        || {
            let slug = machine.gpu.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
            json!({
                "name": format!("gpu_{}x_{slug}", machine.gpu_count),
                "description": format!("{}x {}", machine.gpu_count, machine.gpu),
                "gpu_description": machine.gpu,
                "specs": {"vcpus": 16, "memory_gib": 128, "gpus": machine.gpu_count},
            })
        },
        kind_json,
    );
    shown["specs"]["storage_gib"] = machine.scratch_gb.into();
    shown["price_cents_per_hour"] = (machine.compute_per_hour * Decimal::ONE_HUNDRED).to_i64().into();
    shown
}

fn kind_json(kind: &Kind) -> Value {
    json!({
        "name": kind.name,
        "description": if kind.cards == 0 { "CPU".to_owned() } else { format!("{}x {}", kind.cards, kind.card) },
        "gpu_description": kind.card,
        "price_cents_per_hour": kind.cents,
        "specs": {
            "vcpus": kind.vcpus,
            "memory_gib": kind.memory_gib,
            "storage_gib": kind.storage_gib,
            "gpus": kind.cards,
        },
    })
}

fn store_json(world: &World, store: &Store) -> Value {
    let mut row = json!({
        "id": store.id,
        "name": store.name,
        "mount_point": mount_point(store),
        "created": store.created_at.to_string(),
        "created_by": {
            "id": "0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e",
            "email": "owner@example.com",
            "status": "active",
        },
        "is_in_use": in_use(world, &store.id),
        "region": region_json(&store.region),
    });
    if world.now().duration_since(store.created_at) >= MEASURED_AFTER {
        row["bytes_used"] = (u64::from(store.size_gb) << 30).into();
    }
    row
}

fn mount_point(store: &Store) -> String {
    format!("/lambda/nfs/{}", store.name)
}

fn in_use(world: &World, store: &str) -> bool {
    world.listed().any(|machine| machine.mounts.iter().any(|mount| mount == store))
}

fn region_json(name: &str) -> Value {
    let description = match name {
        "us-west-1" => "California, USA",
        "us-south-1" => "Texas, USA",
        "us-east-1" => "Virginia, USA",
        _ => "Elsewhere",
    };
    json!({"name": name, "description": description})
}
