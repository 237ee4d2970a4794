//! The three bills of REST v2 that rentop reads.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use rust_decimal::Decimal;
use serde_json::{Map, Value, json};

use super::buckets::{Amounts, Record, Window, records};
use super::{Params, Sim, float, problem};

/// A bill's shape: its amounts, and where it has one the name of its resources' ids and of their count.
struct Shape {
    amounts: &'static [&'static str],
    ids: Option<(&'static str, &'static str)>,
}

const PODS: Shape =
    Shape { amounts: &["totalAmount", "gpuAmount", "cpuAmount", "diskAmount"], ids: Some(("podId", "uniquePodCount")) };
const VOLUMES: Shape = Shape {
    amounts: &["totalAmount", "standardAmount", "highPerformanceAmount"],
    ids: Some(("networkVolumeId", "uniqueNetworkVolumeCount")),
};
/// The simulated account has machines and stores only: the amounts behind the first five are always zero.
const ACCOUNT: Shape = Shape {
    amounts: &[
        "totalAmount",
        "podGpuAmount",
        "podCpuAmount",
        "podDiskAmount",
        "storageStandardAmount",
        "storageHighPerformanceAmount",
        "serverlessGpuAmount",
        "serverlessCpuAmount",
        "serverlessDiskAmount",
        "serverlessFeeAmount",
        "endpointAmount",
        "clusterGpuAmount",
        "clusterDiskAmount",
        "clusterNetworkingAmount",
    ],
    ids: None,
};

pub async fn pods(State(sim): State<Sim>, Query(query): Params) -> Response {
    bill(&sim, &query, &PODS, |amounts| match amounts {
        Amounts::Machine { gpu, cpu, disk } => Some(vec![gpu + cpu + disk, gpu, cpu, disk]),
        Amounts::Store(_) => None,
    })
}

pub async fn volumes(State(sim): State<Sim>, Query(query): Params) -> Response {
    bill(&sim, &query, &VOLUMES, |amounts| match amounts {
        Amounts::Store(amount) => Some(vec![amount, amount]),
        Amounts::Machine { .. } => None,
    })
}

pub async fn account(State(sim): State<Sim>, Query(query): Params) -> Response {
    bill(&sim, &query, &ACCOUNT, |amounts| match amounts {
        Amounts::Machine { gpu, cpu, disk } => Some(vec![gpu + cpu + disk, gpu, cpu, disk]),
        Amounts::Store(amount) => Some(vec![amount, Decimal::ZERO, Decimal::ZERO, Decimal::ZERO, amount]),
    })
}

/// One line for each bucket and id, or for each bucket where the bill names no ids. `split` gives the first
/// amounts of the shape; the others are zero.
fn bill(
    sim: &Sim,
    query: &BTreeMap<String, String>,
    shape: &Shape,
    split: fn(Amounts) -> Option<Vec<Decimal>>,
) -> Response {
    let world = sim.world.lock();
    let window = match Window::parse(query, world.now()) {
        Ok(window) => window,
        Err(detail) => return problem(422, "Unprocessable Entity", &detail),
    };
    let wanted = shape.ids.and_then(|(name, _)| query.get(name));
    let zeros = || vec![Decimal::ZERO; shape.amounts.len()];
    let mut lines: BTreeMap<(Timestamp, Timestamp, Option<String>), Vec<Decimal>> = BTreeMap::new();
    let mut totals = zeros();
    for Record { start, end, id, amounts } in records(&world, window) {
        let Some(parts) = split(amounts).filter(|_| wanted.is_none_or(|wanted| *wanted == id)) else { continue };
        let line = lines.entry((start, end, shape.ids.map(|_| id))).or_insert_with(zeros);
        for (at, part) in parts.into_iter().enumerate() {
            line[at] += part;
            totals[at] += part;
        }
    }
    let named = |amounts: &[Decimal]| -> Map<String, Value> {
        shape.amounts.iter().zip(amounts).map(|(name, amount)| ((*name).to_owned(), json!(float(*amount)))).collect()
    };
    let mut known = json!({
        "query": { "startTime": window.start, "endTime": window.end, "bucketSize": window.bucket_word() },
        "recordCount": lines.len(), "totals": named(&totals),
    });
    if let Some((name, count)) = shape.ids {
        known["query"][name] = json!(wanted);
        let ids: std::collections::BTreeSet<_> = lines.keys().map(|(_, _, id)| id).collect();
        known[count] = json!(ids.len());
    }
    let records: Vec<Value> = lines
        .iter()
        .map(|((start, end, id), amounts)| {
            let mut record = named(amounts);
            record.insert("startTime".to_owned(), json!(start));
            record.insert("endTime".to_owned(), json!(end));
            if let Some((name, _)) = shape.ids {
                record.insert(name.to_owned(), json!(id));
            }
            Value::Object(record)
        })
        .collect();
    Json(json!({ "records": records, "metadata": known })).into_response()
}
