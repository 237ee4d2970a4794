//! What RunPod charged, by the hour.
//!
//! Instances and network volumes come resource by resource; serverless and public endpoints by the name of
//! the product. The GPUs and disks of clusters are left out of the account's sums: their members are listed
//! as instances, and would be counted twice.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use serde::de::DeserializeOwned;

use super::{BILLING, each_page, wire};
use crate::error::{ErrorKind, ProviderError};
use crate::http::{Call, Http};
use crate::model::{BilledLine, Component, ResourceId, ResourceKind};
use crate::money::{Currency, Money};

/// So much is asked for at once: an hour's record of each instance has about 200 bytes.
const SLICE: SignedDuration = SignedDuration::from_hours(14 * 24);
const HOUR_SECONDS: i64 = 3600;
/// Parts and total are rounded apart: less than this between them is no part of its own.
const ROUNDING: Decimal = Decimal::from_parts(1, 0, 0, false, 4);

type Key = (Option<(ResourceKind, ResourceId)>, String, Component, Timestamp, Timestamp);

/// Hours that lie wholly in the window, each a line: what is not whole here is in another answer. The hour that is under way is not final and is left out; how late
/// the last one fills is not stated (charges run every five minutes), UNSURE.
pub async fn billed(http: &Http, from: Timestamp, to: Timestamp) -> Result<Vec<BilledLine>, ProviderError> {
    let mut lines = BTreeMap::new();
    let mut start = whole_hour(from);
    while start < to {
        let end = start.saturating_add(SLICE).expect("a duration of hours can be added to a time").min(to);
        let window = Window { from, to, start, end };
        window.records::<wire::PodRecord>(http, "/v2/billing/pods", &mut lines).await?;
        window.records::<wire::VolumeRecord>(http, "/v2/billing/network-volumes", &mut lines).await?;
        window.records::<wire::AccountRecord>(http, "/v2/billing", &mut lines).await?;
        start = end;
    }
    let mut lines: Vec<BilledLine> = lines
        .into_iter()
        .map(|((resource, product, component, from, to), amount)| BilledLine {
            resource,
            product,
            component,
            from,
            to,
            amount: Money::new(amount, Currency::USD),
        })
        .collect();
    lines.sort_by_key(|line| line.from);
    Ok(lines)
}

struct Window {
    from: Timestamp,
    to: Timestamp,
    start: Timestamp,
    end: Timestamp,
}

impl Window {
    async fn records<R: Record>(
        &self,
        http: &Http,
        path: &str,
        lines: &mut BTreeMap<Key, Decimal>,
    ) -> Result<(), ProviderError> {
        let call = Call::get(path)
            .lane(BILLING)
            .query("startTime", self.start.to_string())
            .query("endTime", self.end.to_string())
            .query("bucketSize", "hour");
        let mut bad = None;
        let incomplete = each_page(http, &call, |answer| {
            let list: wire::RecordList = answer.read()?;
            let (records, problems) = answer.rows::<R>("records", &list.records);
            bad = bad.take().or(problems.into_iter().next());
            for (at, record) in records.into_iter().enumerate() {
                let (from, to) = record.span();
                if to <= from {
                    let message = format!("{to} is not after the startTime {from}");
                    bad.get_or_insert_with(|| answer.problem(format!("records[{at}].endTime"), message));
                    continue;
                }
                if from < self.from || to > self.to {
                    continue;
                }
                for (resource, product, component, amount) in record.parts() {
                    // Of a resource 0 tells that what may be in our rates was not charged.
                    if !amount.is_zero() || (resource.is_some() && component != Component::Other) {
                        lines.insert((resource, product.to_owned(), component, from, to), amount);
                    }
                }
            }
            Ok(list.pagination)
        })
        .await?;
        // A sum with a hole is worse than none.
        match bad.or(incomplete) {
            None => Ok(()),
            Some(problem) => {
                Err(http.error(&call, ErrorKind::Decode { path: problem.field, message: problem.message }))
            }
        }
    }
}

type Part = (Option<(ResourceKind, ResourceId)>, &'static str, Component, Decimal);

trait Record: DeserializeOwned {
    fn span(&self) -> (Timestamp, Timestamp);
    fn parts(self) -> Vec<Part>;
}

impl Record for wire::PodRecord {
    fn span(&self) -> (Timestamp, Timestamp) {
        (self.start_time, self.end_time)
    }

    fn parts(self) -> Vec<Part> {
        let resource = Some((ResourceKind::Instance, ResourceId::new(self.pod_id.as_str())));
        let compute = match (self.gpu_amount, self.cpu_amount) {
            (None, None) => None,
            (gpu, cpu) => Some(gpu.unwrap_or_default().saturating_add(cpu.unwrap_or_default())),
        };
        let told = compute.unwrap_or_default().saturating_add(self.disk_amount.unwrap_or_default());
        let rest = self.total_amount.map(|total| total.saturating_sub(told)).filter(|rest| *rest > ROUNDING);
        let parts = match (compute, self.disk_amount) {
            // A sum without its parts stands for the greatest of them.
            (None, None) => {
                [(Component::Compute, self.total_amount), (Component::Disk, None), (Component::Other, None)]
            }
            (compute, disk) => [(Component::Compute, compute), (Component::Disk, disk), (Component::Other, rest)],
        };
        let part = |(component, amount): (_, Option<_>)| Some((resource.clone(), "pod", component, amount?));
        parts.into_iter().filter_map(part).collect()
    }
}

impl Record for wire::VolumeRecord {
    fn span(&self) -> (Timestamp, Timestamp) {
        (self.start_time, self.end_time)
    }

    fn parts(self) -> Vec<Part> {
        let resource = Some((ResourceKind::Storage, ResourceId::new(self.network_volume_id.as_str())));
        vec![(resource, "network volume", Component::Storage, self.total_amount.unwrap_or_default())]
    }
}

impl Record for wire::AccountRecord {
    fn span(&self) -> (Timestamp, Timestamp) {
        (self.start_time, self.end_time)
    }

    fn parts(self) -> Vec<Part> {
        [
            ("serverless", Component::Compute, self.serverless_gpu_amount),
            ("serverless CPU", Component::Compute, self.serverless_cpu_amount),
            ("serverless", Component::Disk, self.serverless_disk_amount),
            ("serverless", Component::Other, self.serverless_fee_amount),
            ("public endpoints", Component::Other, self.endpoint_amount),
            ("cluster network", Component::Traffic, self.cluster_networking_amount),
        ]
        .map(|(product, component, amount)| (None, product, component, amount.unwrap_or_default()))
        .into()
    }
}

fn whole_hour(at: Timestamp) -> Timestamp {
    let second = at.as_second();
    Timestamp::from_second(second - second.rem_euclid(HOUR_SECONDS)).expect("an hour's begin is a time")
}
