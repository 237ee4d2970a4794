//! The wire of Vast.ai, served from a simulated world: what the adapter and the official client ask for.
//!
//! It does not keep the provider's pace: a test that wants a 429 plans one as a fault.

use std::collections::BTreeMap;

use axum::extract::{Path, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use serde_json::{Map, Value, json};

use super::instances;
use crate::facts::Facts;
use crate::provider::Poll;
use crate::sim::{Charge, Item, Life, Load, Machine, Shared, SimClock, Store, World, read};

/// The largest page of the list.
const PAGE: usize = 25;

/// A fleet with something of everything: work, an expensive idler, a stopped disk, an interruptible one,
/// a volume in use and one that nobody uses.
pub fn sample(clock: SimClock) -> World {
    let now = clock.now();
    let hours = |n: i64| now - SignedDuration::from_hours(n);
    let mut world = World::new(clock, "sim-vast-key");
    world.tenant = "900001".to_owned();
    world.balance = Decimal::new(4250, 2);
    world.disk_running_month = Decimal::new(15, 2);
    world.disk_stopped_month = Decimal::new(20, 2);
    world.store_month = Decimal::new(10, 2);
    let base = |id: &str, name: &str, port: u16| Machine {
        scratch_gb: 0,
        ssh_port: port,
        region: "Sweden, SE".to_owned(),
        ..Machine::new(id, name, now)
    };
    world.machines = vec![
        Machine {
            gpu: "RTX 4090".to_owned(),
            compute_per_hour: Decimal::new(40, 2),
            disk_gb: 40,
            ..base("31000001", "train-llama", 41021)
        },
        Machine {
            gpu: "H100 SXM".to_owned(),
            gpu_count: 8,
            gpu_memory_gib: 80,
            compute_per_hour: Decimal::new(1760, 2),
            disk_gb: 500,
            mounts: vec!["5100001".to_owned()],
            load: Load::Idle,
            address: "192.0.2.45".to_owned(),
            created_at: hours(90),
            started_at: Some(hours(12)),
            ..base("31000002", "pretrain", 41022)
        },
        Machine {
            gpu: "RTX 3090".to_owned(),
            life: Life::Stopped,
            compute_per_hour: Decimal::new(22, 2),
            disk_gb: 120,
            gpu_taken: true,
            created_at: hours(700),
            started_at: None,
            ..base("31000003", "paused-exp", 41023)
        },
        Machine {
            gpu: "RTX 4090".to_owned(),
            gpu_count: 2,
            compute_per_hour: Decimal::new(36, 2),
            disk_gb: 60,
            spot: true,
            load: Load::Waves,
            region: "Japan, JP".to_owned(),
            ..base("31000004", "", 41024)
        },
    ];
    let store = |id: &str, name: &str, size_gb, age| Store {
        id: id.to_owned(),
        name: name.to_owned(),
        size_gb,
        region: "Sweden, SE".to_owned(),
        created_at: hours(age),
        gone: false,
    };
    world.stores = vec![store("5100001", "ckpt", 500, 90), store("5100002", "spare", 50, 1200)];
    world
}

/// The routes, each also without its final slash.
pub fn routes(world: Shared) -> Router {
    let both = |router: Router<Shared>, path: &str, route: axum::routing::MethodRouter<Shared>| {
        router.route(path, route.clone()).route(&format!("{path}/"), route)
    };
    let mut router = Router::new();
    router = both(router, "/api/v1/instances", get(list));
    router = both(router, "/api/v0/instances", get(retired));
    router = both(router, "/api/v0/instances/filters", get(filters));
    router = both(router, "/api/v0/instances/pending-price-increases", get(rises));
    router = both(router, "/api/v0/instances/accept-price-increase", put(accept_rise));
    router = both(router, "/api/v0/instances/{id}", get(one).put(change).delete(destroy));
    router = both(router, "/api/v0/instances/reboot/{id}", put(reboot));
    router = both(router, "/api/v0/users/current", get(user));
    router = both(router, "/api/v0/volumes", get(volumes).delete(delete_volume));
    router = both(router, "/api/v0/charges", get(charges));
    let keyed = router.layer(middleware::from_fn_with_state(world.clone(), keyed));
    both(keyed, "/api/v0/gpu_names/unique", get(gpu_names)).with_state(world)
}

/// What a complete poll of a world says, without the way over HTTP.
pub fn poll(world: &World) -> Poll {
    let facts = Facts::built_in(super::ENTRY.facts);
    let instance = |machine: &Machine| instances::instance(&read(&row(world, machine)), &facts, world.now());
    let stores = world.stores.iter().filter(|store| !store.gone);
    let storage = stores.map(|store| super::volume(&read(&volume_row(world, store)))).collect();
    Poll::of_lists(world.listed().map(instance).collect(), storage)
}

/// A missing key is a 403, a wrong one a 404: as the provider answers.
async fn keyed(State(world): State<Shared>, request: Request, next: Next) -> Response {
    let sent = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let right = sent == Some(format!("Bearer {}", world.lock().key).as_str());
    match sent {
        None => refuse(403, "auth_error", "This action requires login."),
        Some(_) if !right => refuse(404, "auth_error", "Invalid user key"),
        Some(_) => next.run(request).await,
    }
}

fn refuse(status: u16, error: &str, msg: &str) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, Json(json!({"success": false, "error": error, "msg": msg}))).into_response()
}

fn no_such_instance(id: &str) -> Response {
    refuse(404, "no_such_instance", &format!("Instance {id} not found."))
}

fn done() -> Response {
    Json(json!({"success": true})).into_response()
}

type Asked = Query<BTreeMap<String, String>>;

fn json_of(asked: &BTreeMap<String, String>, name: &str) -> Option<Value> {
    asked.get(name).and_then(|text| serde_json::from_str(text).ok())
}

async fn list(State(world): State<Shared>, Query(asked): Asked) -> Response {
    let world = world.lock();
    let mut rows: Vec<Value> = world.listed().map(|machine| row(&world, machine)).collect();
    rows.sort_by_key(|row| row["id"].as_u64());
    for (column, tests) in json_of(&asked, "select_filters").as_ref().and_then(Value::as_object).into_iter().flatten() {
        if ["dph_total", "num_gpus"].contains(&column.as_str()) {
            return refuse(400, "invalid_request", &format!("cannot filter on {column}"));
        }
        rows.retain(|row| meets(&row[column], tests));
    }
    let total = rows.len();
    let mut labels = BTreeMap::new();
    for row in &rows {
        *labels.entry(row["label"].as_str().unwrap_or_default().to_owned()).or_insert(0) += 1;
    }
    let limit = match asked.get("limit").and_then(|limit| limit.parse::<i64>().ok()) {
        None => PAGE,
        Some(..=0) => 5,
        Some(limit) => usize::try_from(limit).map_or(PAGE, |limit| limit.min(PAGE)),
    };
    let after = match asked.get("after_token").map(|token| token.strip_prefix("after-")?.parse::<u64>().ok()) {
        None => 0,
        Some(Some(id)) => id,
        Some(None) => return refuse(400, "invalid_token", "Invalid pagination token"),
    };
    rows.retain(|row| row["id"].as_u64() > Some(after));
    let next = (rows.len() > limit).then(|| format!("after-{}", rows[limit - 1]["id"]));
    rows.truncate(limit);
    let columns = json_of(&asked, "select_cols")
        .and_then(|columns| serde_json::from_value::<Vec<String>>(columns).ok())
        .filter(|columns| !columns.iter().any(|column| column == "*"));
    if let Some(columns) = columns {
        for row in &mut rows {
            *row = columns.iter().map(|column| (column.clone(), row[column].clone())).collect::<Map<_, _>>().into();
        }
    }
    Json(json!({
        "success": true, "instances_found": rows.len(), "total_instances": total, "label_counts": labels,
        "next_token": next, "instances": rows,
    }))
    .into_response()
}

fn meets(value: &Value, tests: &Value) -> bool {
    tests.as_object().is_none_or(|tests| {
        tests.iter().all(|(test, wanted)| match test.as_str() {
            "eq" => value == wanted,
            "neq" => value != wanted,
            "in" => wanted.as_array().is_some_and(|any| any.contains(value)),
            "notin" => wanted.as_array().is_some_and(|any| !any.contains(value)),
            _ => true,
        })
    })
}

/// The unpaged list of earlier years.
async fn retired() -> Response {
    refuse(410, "deprecated_endpoint", "/api/v0/instances/ is deprecated. Use /api/v1/instances/ instead.")
}

async fn filters(State(world): State<Shared>) -> Response {
    let world = world.lock();
    let rows = world.listed().map(|machine| {
        let row = row(&world, machine);
        json!({"actual_status": row["actual_status"], "gpu_name": row["gpu_name"], "label": row["label"]})
    });
    Json(json!({"success": true, "filters": rows.collect::<Vec<_>>()})).into_response()
}

/// The plural key holds one object, or null; volumes are left out.
async fn one(State(world): State<Shared>, Path(id): Path<String>) -> Response {
    let world = world.lock();
    let found = world.listed().find(|machine| machine.id == id).map(|machine| {
        let mut row = row(&world, machine);
        if let Some(fields) = row.as_object_mut() {
            fields.remove("volume_info");
        }
        row
    });
    Json(json!({"instances": found})).into_response()
}

async fn change(State(world): State<Shared>, Path(id): Path<String>, body: Json<Value>) -> Response {
    let mut world = world.lock();
    let Some(machine) = world.machine(&id).filter(|machine| machine.life != Life::Gone) else {
        return no_such_instance(&id);
    };
    if let Some(label) = body.get("label").and_then(Value::as_str) {
        machine.name = (!label.is_empty()).then(|| label.to_owned());
    }
    match body.get("state").and_then(Value::as_str) {
        None if body.get("label").is_some() => done(),
        Some("stopped") => {
            match machine.life {
                Life::Running | Life::Provisioning | Life::Starting => world.stop(&id),
                // The wish to run is taken back at once: nothing runs.
                Life::Queued | Life::Outbid | Life::Failed => machine.life = Life::Stopped,
                _ => {}
            }
            done()
        }
        Some("running") => {
            match machine.life {
                Life::Stopped | Life::Failed => world.start(&id),
                Life::Outbid | Life::Queued => machine.life = if machine.spot { Life::Outbid } else { Life::Queued },
                _ => {}
            }
            let waits = world.machine(&id).is_some_and(|machine| matches!(machine.life, Life::Queued | Life::Outbid));
            if !waits {
                return done();
            }
            let msg = "Required resources are currently unavailable, state change queued.";
            Json(json!({"success": false, "error": "resources_unavailable", "msg": msg})).into_response()
        }
        _ => refuse(400, "invalid_args", "state must be one of running, stopped"),
    }
}

/// The rises that wait to be accepted, by the second. What the old prices are is what is charged.
async fn rises(State(world): State<Shared>) -> Response {
    let world = world.lock();
    let per_second = |per_hour: Decimal| number(per_hour / Decimal::from(3600));
    let rows: Vec<Value> = world
        .listed()
        .filter_map(|machine| {
            let asked = machine.asked_per_hour?;
            Some(json!({
                "pending_price_increase_id": digits(&machine.id), "contract_id": digits(&machine.id), "host_id": 70,
                "new_gpu_costpersec": per_second(asked), "old_gpu_costpersec": per_second(machine.compute_per_hour),
                "new_disk_ram_costpersec": null, "old_disk_ram_costpersec": null, "new_bwu_cost": null,
                "old_bwu_cost": null, "new_bwd_cost": null, "old_bwd_cost": null, "new_platform_fee": null,
                "old_platform_fee": null, "contract_end_date": contract_end(machine),
                "ask_end_date": contract_end(machine), "created_at": seconds(world.now()),
            }))
        })
        .collect();
    Json(json!({"success": true, "count": rows.len(), "truncated": false, "pending_price_increases": rows}))
        .into_response()
}

/// The body names the rise, by an id that is its instance's here.
async fn accept_rise(State(world): State<Shared>, body: Json<Value>) -> Response {
    let mut world = world.lock();
    let id = body["pending_price_increase_id"].to_string();
    let Some((machine, asked)) =
        world.machine(&id).and_then(|machine| machine.asked_per_hour.take().map(|asked| (machine, asked)))
    else {
        return refuse(404, "not_found", "no such price increase");
    };
    machine.compute_per_hour = asked;
    done()
}

async fn reboot(State(world): State<Shared>, Path(id): Path<String>) -> Response {
    let mut world = world.lock();
    let due = world.now() + world.transition;
    let Some(machine) = world.machine(&id).filter(|machine| machine.life != Life::Gone) else {
        return no_such_instance(&id);
    };
    if machine.life != Life::Running {
        return refuse(400, "invalid_args", "the instance is not running");
    }
    machine.life = Life::Starting;
    machine.next = Some((due, Life::Running));
    world.did(&id, "restart");
    done()
}

async fn destroy(State(world): State<Shared>, Path(id): Path<String>) -> Response {
    let mut world = world.lock();
    if world.machine(&id).is_none_or(|machine| matches!(machine.life, Life::Gone | Life::Releasing)) {
        return no_such_instance(&id);
    }
    world.release(&id);
    Json(json!({"success": true, "msg": "destroying instance"})).into_response()
}

async fn user(State(world): State<Shared>) -> Response {
    let world = world.lock();
    let id: Value = world.tenant.parse::<u64>().map_or_else(|_| json!(world.tenant), Value::from);
    Json(json!({
        "id": id, "key_id": 1, "email": "owner@example.com", "username": "owner", "balance": 0.0,
        "credit": number(world.balance), "balance_threshold": 5.0, "balance_threshold_enabled": true,
        "can_pay": true, "has_billing": true, "billing_creditonly": 0, "ssh_key": "", "fullname": "",
        // Looks like a secret so that a test sees it if it leaks.
        "sid": "sid_TESTSECRET", "api_key": "key_TESTSECRET",
    }))
    .into_response()
}

async fn volumes(State(world): State<Shared>, Query(asked): Asked) -> Response {
    if asked.get("type").is_some_and(|kind| kind == "network_volume") {
        return Json(json!({"volumes": []})).into_response();
    }
    let world = world.lock();
    let rows = world.stores.iter().filter(|store| !store.gone).map(|store| volume_row(&world, store));
    Json(json!({"volumes": rows.collect::<Vec<_>>()})).into_response()
}

fn volume_row(world: &World, store: &Store) -> Value {
    let users: Vec<u64> = users(world, &store.id);
    json!({
        "id": digits(&store.id), "label": store.name, "status": if users.is_empty() { "created" } else { "in-use" },
        "type": "machine", "disk_space": store.size_gb, "storage_total_cost": number(world.store_of(store)),
        "instances": users.iter().map(|id| json!({"id": id})).collect::<Vec<_>>(), "machine_id": 4103, "host_id": 70, "start_date": seconds(store.created_at),
        "end_date": seconds(store.created_at + SignedDuration::from_hours(24 * 180)),
        "geolocation": store.region, "public_ipaddr": "192.0.2.45", "disk_name": "nvme", "inet_up": 812.4,
        "inet_down": 905.1, "reliability2": 0.9968, "verification": "verified", "driver_version": "575.57.08",
        "cuda_max_good": 12.9, "cpu_name": "EPYC 7543", "cpu_arch": "amd64", "os_version": "22.04",
        "static_ip": true,
    })
}

fn users(world: &World, store: &str) -> Vec<u64> {
    let mounts = |machine: &&Machine| machine.mounts.iter().any(|mounted| mounted == store);
    world.listed().filter(mounts).map(|machine| digits(&machine.id)).collect()
}

async fn delete_volume(State(world): State<Shared>, Query(asked): Asked) -> Response {
    let mut world = world.lock();
    let Some(id) = asked.get("id") else { return refuse(400, "invalid_args", "Please provide a valid volume ID.") };
    if !users(&world, id).is_empty() {
        return refuse(400, "invalid_args", "the volume is in use by an instance");
    }
    match world.stores.iter_mut().find(|store| store.id == *id && !store.gone) {
        Some(store) => {
            store.gone = true;
            world.did(id, "delete");
            done()
        }
        None => refuse(404, "no_such_volume", "Volume with that ID does not exist."),
    }
}

/// What each contract was charged in the days asked for, one that has ended as well.
async fn charges(State(world): State<Shared>, Query(asked): Asked) -> Response {
    let days = json_of(&asked, "select_filters").unwrap_or_default();
    let end_of = |test: &str| Timestamp::from_second(days["day"][test].as_f64()? as i64).ok();
    let (Some(from), Some(last)) = (end_of("gte"), end_of("lte")) else {
        let msg = "Must provide both 'day' gte and lte filters for instance charges";
        return (StatusCode::BAD_REQUEST, Json(json!({"success": false, "msg": msg}))).into_response();
    };
    let world = world.lock();
    let to = (last + SignedDuration::from_secs(1)).min(world.now());
    let mut contracts: BTreeMap<(&str, String), Vec<Charge>> = BTreeMap::new();
    for charge in world.charges(from, to) {
        let kind = if charge.item == Item::Store { "volume" } else { "instance" };
        contracts.entry((kind, charge.id.clone())).or_default().push(charge);
    }
    let label = |id: &str| {
        let machine = world.machines.iter().find(|machine| machine.id == id).and_then(|machine| machine.name.clone());
        machine.or_else(|| world.stores.iter().find(|store| store.id == id).map(|store| store.name.clone()))
    };
    let all: Vec<Value> = contracts
        .iter()
        .map(|((kind, id), charges)| {
            let items: Vec<(&str, Decimal, Decimal)> = charges
                .iter()
                .map(|charge| {
                    let word = if charge.item == Item::Compute { "gpu" } else { "disk" };
                    (word, charge.hours_in(from, to), charge.per_hour)
                })
                .collect();
            let amount: Decimal = items.iter().map(|(_, hours, rate)| (hours * rate).round_dp(3)).sum();
            let (start, end) = (from.as_second(), to.as_second());
            json!({
                "start": start, "end": end, "type": kind, "source": format!("{kind}-{id}"),
                "description": format!("{kind} {id} charges"), "amount": number(amount),
                "metadata": label(id).map_or(json!({}), |label| json!({"label": label})),
                "items": items.iter().map(|(kind, hours, rate)| json!({
                    "start": start, "end": end, "type": kind, "source": null, "metadata": {}, "items": [],
                    "description": format!("{} hours at ${}/hour", hours.round_dp(3), rate.round_dp(4)),
                    "amount": number((hours * rate).round_dp(3)),
                })).collect::<Vec<_>>(),
            })
        })
        .collect();
    let limit = asked.get("limit").and_then(|limit| limit.parse().ok()).unwrap_or(100usize).clamp(1, 500);
    let skip = match asked.get("after_token").map(|token| token.strip_prefix("skip-")?.parse::<usize>().ok()) {
        None => 0,
        Some(Some(skip)) => skip.min(all.len()),
        Some(None) => return refuse(400, "invalid_token", "Invalid pagination token"),
    };
    let page: Vec<&Value> = all.iter().skip(skip).take(limit).collect();
    let next = (skip + page.len() < all.len()).then(|| format!("skip-{}", skip + page.len()));
    Json(json!({"success": true, "count": page.len(), "total": all.len(), "next_token": next, "results": page}))
        .into_response()
}

async fn gpu_names(State(world): State<Shared>) -> Response {
    let world = world.lock();
    let names: std::collections::BTreeSet<&str> = world.listed().map(|machine| machine.gpu.as_str()).collect();
    Json(json!({"gpu_names": names})).into_response()
}

/// What the wire says of a machine. The official client falls over without a numeric `start_date` and a
/// list in `extra_env`.
fn row(world: &World, machine: &Machine) -> Value {
    let now = world.now();
    let (actual, current, next, intended) = words(machine.life);
    let compute = machine.compute_per_hour;
    let listed_disk = Decimal::from(machine.disk_gb) * world.disk_running_month / world.hours_in_month;
    let (gpu_now, disk_now) = (world.compute_of(machine), world.disk_of(machine));
    let price = |gpu: Decimal, disk: Decimal| {
        json!({
            "gpuCostPerHour": number(gpu), "diskHour": number(disk), "totalHour": number(gpu + disk),
            "discountTotalHour": 0, "discountedTotalPerHour": number(gpu + disk),
        })
    };
    let reachable = matches!(machine.life, Life::Running | Life::Stopping);
    let entry = |address: &str| json!({"HostIp": address, "HostPort": machine.ssh_port.to_string()});
    let mean = (0..machine.gpu_count).filter_map(|card| machine.utilization(card, now)).sum::<f64>()
        / f64::from(machine.gpu_count.max(1));
    let told = machine.utilization(0, now).is_some();
    let mounted = |id: &String| {
        let store = world.stores.iter().find(|store| store.id == *id)?;
        Some(json!({
            "id": digits(id), "label": store.name, "avail_space": store.size_gb, "total_space": store.size_gb,
            "type": "machine",
        }))
    };
    let least = if machine.life == Life::Outbid { compute * Decimal::new(13, 1) } else { compute * Decimal::new(5, 1) };
    let message = match machine.life {
        Life::Running | Life::Stopping => "success, running pytorch/pytorch_2.8.0/ssh",
        Life::Starting => "pulling image: 3 of 9 layers",
        Life::Failed => "Error response from daemon: OCI runtime create failed",
        _ => "",
    };
    let memory_mib = machine.gpu_memory_gib * 1024;
    let contract = json!({
        "id": digits(&machine.id), "actual_status": actual, "cur_state": current, "next_state": next,
        "intended_status": intended, "label": machine.name, "status_msg": message,
        "template_id": null, "template_hash_id": null, "template_name": null, "image_args": [],
        "image_uuid": "pytorch/pytorch:2.8.0-cuda12.8-cudnn9-runtime", "image_runtype": "ssh_direc ssh_proxy",
        // Look like secrets so that a test sees them if they leak.
        "extra_env": [["HF_TOKEN", "hf_TESTSECRET"]], "jupyter_token": "jt_TESTSECRET",
        "onstart": "export WANDB_API_KEY=TESTSECRET",
        "public_ipaddr": format!("{}\n", machine.address), "local_ipaddrs": "10.0.0.5 172.17.0.1",
        "ssh_host": "ssh5.vast.ai", "ssh_idx": "5", "ssh_port": 10001, "machine_dir_ssh_port": 21000,
        "ports": reachable.then(|| json!({"22/tcp": [entry("0.0.0.0"), entry("::")]})),
        "machine_id": 4103, "host_id": 70, "start_date": seconds(machine.created_at),
        "end_date": contract_end(machine),
        "uptime_mins": null, "duration": 4924800.0, "geolocation": machine.region, "verification": "verified",
        "static_ip": true, "rentable": false, "external": false, "hosting_type": 0, "webpage": null,
        "time_remaining": "", "time_remaining_isbid": "",
    });
    let hardware = json!({
        "gpu_name": machine.gpu, "gpu_arch": "nvidia", "num_gpus": machine.gpu_count, "gpu_frac": 1.0,
        "gpu_ram": memory_mib, "gpu_totalram": memory_mib * machine.gpu_count,
        "gpu_util": told.then_some(mean * 100.0), "gpu_temp": told.then_some(61.0),
        "gpu_lanes": 16, "gpu_mem_bw": 1008.0, "bw_nvlink": 0.0, "cpu_name": "EPYC 7543", "cpu_arch": "amd64",
        "cpu_cores": 64, "cpu_cores_effective": 16.0, "cpu_ram": 257852,
        "cpu_util": if told { 0.02 + mean * 0.3 } else { 0.0 }, "mem_limit": 64.4, "mem_usage": told.then_some(11.7),
        "vmem_usage": 0.9, "disk_name": "nvme", "disk_space": f64::from(machine.disk_gb), "disk_bw": 5200.0,
        "disk_util": 0.31, "disk_usage": f64::from(machine.disk_gb) * 0.31, "inet_up": 812.4, "inet_down": 905.1,
        "inet_up_cost": 0.005, "inet_down_cost": 0.003, "reliability2": 0.9968, "dlperf": null,
        "direct_port_count": 100, "direct_port_start": 41000, "direct_port_end": 41999, "os_version": "22.04",
        "driver_version": "575.57.08", "cuda_max_good": 12.9, "score": null, "pci_gen": 4.0, "pcie_bw": 24.9,
    });
    let prices = json!({
        "is_bid": machine.spot, "min_bid": number(least), "dph_base": number(compute),
        "dph_total": number(compute + listed_disk), "storage_cost": number(world.disk_running_month),
        "storage_total_cost": number(listed_disk), "search": price(compute, listed_disk),
        "instance": price(gpu_now, disk_now), "credit_balance": null, "credit_discount": null,
        "credit_discount_max": 0.4, "volume_info": machine.mounts.iter().filter_map(mounted).collect::<Vec<_>>(),
    });
    [contract, hardware, prices]
        .iter()
        .filter_map(Value::as_object)
        .flatten()
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect()
}

/// `actual_status`, `cur_state`, `next_state`, `intended_status`.
fn words(life: Life) -> (Option<&'static str>, &'static str, &'static str, &'static str) {
    match life {
        Life::Provisioning => (None, "unloaded", "running", "running"),
        Life::Starting => (Some("loading"), "running", "running", "running"),
        Life::Running => (Some("running"), "running", "running", "running"),
        Life::Stopping => (Some("running"), "running", "stopped", "stopped"),
        Life::Stopped => (Some("exited"), "stopped", "stopped", "stopped"),
        Life::Queued | Life::Outbid => (Some("exited"), "stopped", "running", "running"),
        Life::Offline => (Some("offline"), "running", "running", "running"),
        Life::Failed => (Some("created"), "stopped", "stopped", "stopped"),
        Life::Releasing | Life::Gone => (Some("exited"), "stopped", "unloaded", "stopped"),
    }
}

/// Ten decimals, as the provider sends them.
fn number(amount: Decimal) -> Value {
    serde_json::from_str(&amount.round_dp(10).normalize().to_string()).unwrap_or(Value::Null)
}

/// Contracts are of ninety days.
fn contract_end(machine: &Machine) -> f64 {
    seconds(machine.created_at + SignedDuration::from_hours(24 * 90))
}

fn digits(id: &str) -> u64 {
    id.parse().unwrap_or_default()
}

fn seconds(at: Timestamp) -> f64 {
    at.as_millisecond() as f64 / 1000.0
}
