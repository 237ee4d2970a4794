//! Network volumes become storage items: who mounts them, what they cost. Pure.

use std::collections::BTreeSet;

use rust_decimal::Decimal;

use super::{VOLUMES_PAGE, wire};
use crate::facts::Facts;
use crate::model::{
    Attachment, Component, DataKind, DataPlace, Effect, Fate, Instance, Offer, Phase, Rates, Refusal, ResourceId, Risk,
    StorageItem, StorageKind,
};
use crate::money::{Currency, Rate};
use crate::provider::Part;
use crate::text::clean_opt;

/// Who is known to mount volumes: RunPod has no field for it.
#[derive(Default)]
pub struct Users {
    /// Instance and volume.
    instances: Vec<(ResourceId, ResourceId)>,
    /// The list of instances was complete.
    all_instances: bool,
    /// Volumes that serverless endpoints mount; `None` when these could not be read.
    endpoints: Option<BTreeSet<String>>,
}

impl Users {
    pub fn of(instances: &Part<Instance>, endpoints: Option<Vec<wire::Endpoint>>) -> Self {
        let listed = instances.rows().iter().filter(|instance| instance.phase != Phase::Gone);
        Users {
            instances: listed
                .flat_map(|instance| instance.mounts.iter().map(|volume| (instance.id.clone(), volume.clone())))
                .collect(),
            all_instances: matches!(instances, Part::Listed { problems, .. } if problems.is_empty()),
            endpoints: endpoints
                .map(|rows| rows.into_iter().flat_map(|row| row.network_volumes.unwrap_or_default()).collect()),
        }
    }

    fn attachment(&self, volume: &str) -> Attachment {
        let users: Vec<_> =
            self.instances.iter().filter(|(_, id)| id.as_str() == volume).map(|(user, _)| user.clone()).collect();
        let in_endpoint = self.endpoints.as_ref().is_some_and(|volumes| volumes.contains(volume));
        match users.is_empty() {
            false => Attachment::To(users),
            true if in_endpoint => Attachment::Somewhere,
            true if self.all_instances => Attachment::To(users),
            true => Attachment::Unknown,
        }
    }
}

pub fn item(volume: wire::Volume, users: &Users, facts: &Facts) -> StorageItem {
    let attachment = users.attachment(&volume.id);
    let name = clean_opt(volume.name.as_deref());
    let contents = DataPlace { kind: DataKind::Contents, name: name.clone(), path: None, size_gb: volume.size };
    let sure = users.all_instances && users.endpoints.is_some();
    let delete = match &attachment {
        Attachment::Somewhere => Offer::No(Refusal::InUse),
        Attachment::To(users) if !users.is_empty() => Offer::No(Refusal::InUse),
        Attachment::To(_) | Attachment::Unknown => Offer::Yes(Effect {
            rates_after: Rates::known(),
            lost: vec![contents],
            risks: if sure { Vec::new() } else { vec![Risk::UseUnknown] },
            ..Effect::default()
        }),
    };
    StorageItem {
        id: ResourceId::new(volume.id.as_str()),
        name,
        kind: StorageKind::NetworkVolume,
        size_gib: volume.size,
        attachment,
        rates: rates(&volume, facts),
        created_at: None,
        region: clean_opt(volume.data_center.as_deref()),
        labels: Default::default(),
        // Network volumes follow the pods later if they cannot be paid (accounts-billing/billing, read 2026-08-20).
        at_zero: Fate::DeletedLater,
        delete,
        page: Some(VOLUMES_PAGE.to_owned()),
    }
}

/// By the price list. The price of the high-performance tier stands in RunPod's console only, so that it is
/// not known here; the same holds for a tier that is not told.
fn rates(volume: &wire::Volume, facts: &Facts) -> Rates {
    let standard = volume.tier.as_deref() == Some("STANDARD");
    match volume.size.filter(|_| standard).and_then(|size| standard_rate(size, facts)) {
        Some(rate) => Rates::known().with_estimate(Component::Storage, rate),
        None => Rates::known().with_missing(),
    }
}

fn standard_rate(size_gb: Decimal, facts: &Facts) -> Option<Rate> {
    let tier = facts.value("network_volume_first_tier_gb");
    let first = size_gb.min(tier).checked_mul(facts.value("network_volume_per_gb_month"))?;
    let above = size_gb.checked_sub(tier)?.max(Decimal::ZERO);
    let beyond = above.checked_mul(facts.value("network_volume_beyond_per_gb_month"))?;
    Rate::of_month(first.checked_add(beyond)?, Decimal::ONE, facts.value("hours_per_month"), Currency::USD)
}
