//! GraphQL over the world: a reader of queries and the fields of RunPod's schema that its clients ask for.
//!
//! Like the real one it answers exactly the fields that were asked for, and refuses one that it does not
//! know: a query with a wrong field fails here too.

use rust_decimal::Decimal;
use serde_json::{Map, Value, json};

use super::{begin, float, host_id, is_cpu, loads, memory_of, percent, uptime};
use crate::sim::{Life, Load, Machine, World};

/// Runs a query; the error is the message of a query that cannot be understood.
pub fn answer(world: &mut World, query: &str) -> Result<Value, String> {
    let mut data = Map::new();
    for field in parse(query)? {
        let told = match resolve(world, &field) {
            Ok(value) => value,
            // A refusal has status 200 and no data.
            Err(Refused::Told(message)) => {
                return Ok(json!({
                    "errors": [{ "message": message, "path": [field.name], "extensions": { "code": "RUNPOD" } }],
                    "data": { field.name: null },
                }));
            }
            Err(Refused::NoSuchField) => return Err(no_field(&field.name, "Query")),
        };
        data.insert(field.name.clone(), project(&told, &field)?);
    }
    Ok(json!({ "data": data }))
}

enum Refused {
    NoSuchField,
    Told(String),
}

fn resolve(world: &mut World, field: &Field) -> Result<Value, Refused> {
    let id = field.argument("podId").unwrap_or_default().to_owned();
    match field.name.as_str() {
        "myself" => Ok(myself(world)),
        "pod" => Ok(world.listed().find(|machine| machine.id == id).map_or(Value::Null, |machine| pod(world, machine))),
        "gpuTypes" => Ok(gpu_types(world)),
        "podStop" => change(world, &id, "stop"),
        "podResume" => change(world, &id, "start"),
        "podTerminate" => change(world, &id, "terminate").map(|_| Value::Null),
        _ => Err(Refused::NoSuchField),
    }
}

fn change(world: &mut World, id: &str, action: &str) -> Result<Value, Refused> {
    begin(world, id, action).map_err(|denied| Refused::Told(denied.text().to_owned()))?;
    Ok(world.listed().find(|machine| machine.id == id).map_or(Value::Null, |machine| pod(world, machine)))
}

fn myself(world: &World) -> Value {
    let compute: Decimal = world.machines.iter().map(|machine| world.compute_of(machine)).sum();
    let disks: Decimal = world.machines.iter().map(|machine| world.disk_of(machine)).sum();
    let stores: Decimal = world.stores.iter().map(|store| world.store_of(store)).sum();
    let pods: Vec<_> = world.listed().map(|machine| pod(world, machine)).collect();
    let volumes = world.stores.iter().filter(|store| !store.gone).map(
        |store| json!({ "id": store.id, "name": store.name, "size": store.size_gb, "dataCenterId": store.region }),
    );
    json!({
        "id": world.tenant, "pubKey": null, "clientBalance": float(world.balance),
        "currentSpendPerHr": float(compute + disks + stores), "spendLimit": 80, "minBalance": 0,
        "underBalance": world.balance <= Decimal::ZERO,
        "spendDetails": {
            "localStoragePerHour": float(disks), "networkStoragePerHour": float(stores),
            "gpuComputePerHour": float(compute),
        },
        "networkVolumes": volumes.collect::<Vec<_>>(), "pods": pods,
    })
}

fn pod(world: &World, machine: &Machine) -> Value {
    let now = world.now();
    let running = machine.life == Life::Running;
    let told = running && machine.load != Load::Untold && machine.gpu_count > 0;
    let price = float(machine.compute_per_hour);
    let metrics: Vec<_> = loads(machine, now)
        .zip(0..)
        .map(|(load, card): (f64, u32)| {
            json!({
                "id": gpu_id(machine, card), "percentUtilization": percent(load),
                "temperatureCelcius": percent(0.34 + load * 0.34), "memoryUtilization": percent(memory_of(load)),
                "powerWatts": 32.0 + (load * 3800.0).round() / 10.0,
            })
        })
        .collect();
    let gpus: Vec<_> = loads(machine, now)
        .zip(0..)
        .map(|(load, card): (f64, u32)| {
            let memory = percent(memory_of(load));
            json!({ "id": gpu_id(machine, card), "gpuUtilPercent": percent(load), "memoryUtilPercent": memory })
        })
        .collect();
    let ports = json!([{
        "ip": machine.address, "isIpPublic": true, "privatePort": 22, "publicPort": machine.ssh_port, "type": "tcp",
    }]);
    let runtime = json!({
        "uptimeInSeconds": uptime(machine, now), "ports": ports, "gpus": gpus,
        "container": { "cpuPercent": 12, "memoryPercent": 30 },
    });
    let telemetry = json!({
        "state": "running", "time": now, "cpuUtilization": 12.0, "memoryUtilization": 30.0,
        "averageGpuMetrics": metrics.first(), "individualGpuMetrics": metrics,
    });
    json!({
        "id": machine.id, "name": machine.name.as_deref().unwrap_or_default(), "desiredStatus": desired(machine.life),
        "podType": if machine.spot { "INTERRUPTABLE" } else { "RESERVED" }, "imageName": "runpod/pytorch:1.0.2",
        "dockerArgs": "", "dockerId": null, "port": null, "templateId": null,
        "gpuCount": machine.gpu_count, "vcpuCount": 16, "memoryInGb": 62,
        "volumeInGb": machine.disk_gb, "containerDiskInGb": machine.scratch_gb, "volumeMountPath": "/workspace",
        "env": ["HF_TOKEN=hf_simulated_secret"], "ports": "8888/http,22/tcp",
        "costPerHr": price, "adjustedCostPerHr": price, "uptimeSeconds": 0,
        "lastStatusChange": change_in_words(machine), "lastStartedAt": machine.started_at,
        "machineId": "simhost00001", "networkVolumeId": machine.mounts.first(),
        "machine": {
            "gpuDisplayName": if is_cpu(machine) { "unknown" } else { machine.gpu.trim_start_matches("NVIDIA ") },
            "gpuTypeId": machine.gpu, "podHostId": host_id(machine), "location": "US",
            "dataCenterId": machine.region, "costPerHr": price,
        },
        "runtime": running.then_some(runtime), "latestTelemetry": told.then_some(telemetry),
    })
}

fn desired(life: Life) -> &'static str {
    match life {
        Life::Provisioning | Life::Starting => "CREATED",
        Life::Running | Life::Stopping | Life::Offline => "RUNNING",
        Life::Stopped | Life::Queued | Life::Outbid => "EXITED",
        Life::Failed => "DEAD",
        Life::Releasing | Life::Gone => "TERMINATED",
    }
}

fn change_in_words(machine: &Machine) -> &'static str {
    match machine.life {
        Life::Outbid => "Exited by Runpod",
        Life::Stopped => "Exited by user",
        _ => "Rented by User",
    }
}

fn gpu_id(machine: &Machine, card: u32) -> String {
    format!("GPU-{}-{card}", machine.id)
}

fn gpu_types(world: &World) -> Value {
    let mut names: Vec<_> = world.machines.iter().filter(|machine| !is_cpu(machine)).collect();
    names.sort_by_key(|machine| &machine.gpu);
    names.dedup_by_key(|machine| &machine.gpu);
    names
        .iter()
        .map(|machine| {
            let short = machine.gpu.trim_start_matches("NVIDIA ").trim_start_matches("GeForce ");
            json!({ "id": machine.gpu, "displayName": short, "memoryInGb": machine.gpu_memory_gib })
        })
        .collect()
}

/// Keeps what was asked for.
fn project(value: &Value, field: &Field) -> Result<Value, String> {
    match value {
        Value::Array(rows) => rows.iter().map(|row| project(row, field)).collect(),
        Value::Object(known) if !field.inner.is_empty() => {
            let mut kept = Map::new();
            for inner in &field.inner {
                let value = known.get(&inner.name).ok_or_else(|| no_field(&inner.name, &field.name))?;
                kept.insert(inner.name.clone(), project(value, inner)?);
            }
            Ok(Value::Object(kept))
        }
        Value::Object(_) => Err(format!("Field \"{}\" must have a selection of subfields.", field.name)),
        value => Ok(value.clone()),
    }
}

fn no_field(name: &str, holder: &str) -> String {
    format!("Cannot query field \"{name}\" on type \"{holder}\".")
}

#[derive(Debug)]
struct Field {
    name: String,
    /// All arguments, those inside an input object too.
    arguments: Vec<(String, String)>,
    inner: Vec<Field>,
}

impl Field {
    fn argument(&self, name: &str) -> Option<&str> {
        self.arguments.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Reads a query or mutation with literal arguments; variables and fragments are not used by any client.
fn parse(query: &str) -> Result<Vec<Field>, String> {
    let words = split(query);
    let mut words = words.iter().map(String::as_str).peekable();
    while words.next_if(|word| *word != "{").is_some() {}
    selection(&mut words)
}

type Words<'a, I> = std::iter::Peekable<I>;

fn selection<'a, I: Iterator<Item = &'a str>>(words: &mut Words<'a, I>) -> Result<Vec<Field>, String> {
    let broken = || "Syntax Error: Unexpected <EOF>.".to_owned();
    words.next_if_eq(&"{").ok_or_else(broken)?;
    let mut fields = Vec::new();
    loop {
        let name = match words.next().ok_or_else(broken)? {
            "}" => return Ok(fields),
            name => name.to_owned(),
        };
        let mut arguments = Vec::new();
        if words.next_if_eq(&"(").is_some() {
            let mut key = String::new();
            loop {
                match words.next().ok_or_else(broken)? {
                    ")" => break,
                    "{" | "}" => {}
                    word => match word.strip_suffix(':') {
                        Some(name) => key = name.to_owned(),
                        None => arguments.push((std::mem::take(&mut key), word.trim_matches('"').to_owned())),
                    },
                }
            }
        }
        let inner = if words.peek() == Some(&"{") { selection(words)? } else { Vec::new() };
        fields.push(Field { name, arguments, inner });
    }
}

/// Names (an argument's with its colon), values and the brackets, each one word.
fn split(query: &str) -> Vec<String> {
    let mut spaced = String::with_capacity(query.len() * 2);
    for c in query.chars() {
        match c {
            '{' | '}' | '(' | ')' => spaced.extend([' ', c, ' ']),
            ',' => spaced.push(' '),
            ':' => spaced.push_str(": "),
            c => spaced.push(c),
        }
    }
    spaced.split_whitespace().map(str::to_owned).collect()
}
