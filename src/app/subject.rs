//! What a filter may ask about the rows of the lists.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use providers::model::{Attachment, Instance, Market, Phase, ProviderName, Rates, StorageItem, StorageKind};
use providers::usage::Usage;
use rust_decimal::Decimal;

use super::rows::{may_hold_results, needs_you, shown_phase};
use super::state::World;
use crate::rules::filter::Subject;
use crate::rules::fleet::Known;
use crate::rules::saga::Operation;
use crate::rules::usage::{Gauge, Idleness, Verdict};

/// An instance with what is looked up for it.
pub struct InstanceRow<'a> {
    pub world: &'a World,
    pub known: &'a Known<Instance>,
    pub gauge: Option<&'a Gauge>,
    pub provider: Option<&'a ProviderName>,
    pub operation: Option<&'a Operation>,
    pub needs_you: bool,
    /// It runs and does nothing: all that it costs is waste.
    pub idles: bool,
}

impl<'a> InstanceRow<'a> {
    pub fn new(
        world: &'a World,
        known: &'a Known<Instance>,
        gauge: Option<&'a Gauge>,
        provider: Option<&'a ProviderName>,
        operation: Option<&'a Operation>,
    ) -> Self {
        let idles = world.fleet.idle.contains(&known.identity);
        let needs_you = needs_you(world, known, gauge, operation);
        InstanceRow { world, known, gauge, provider, operation, needs_you, idles }
    }

    /// Whether it works; `None` when nothing is known of that.
    pub fn idleness(&self) -> Option<&'a Idleness> {
        self.gauge.map(|gauge| &gauge.idleness)
    }

    /// By hand or by rule.
    pub fn project_name(&self) -> Option<&'a str> {
        self.world.settings.project(self.provider?, &self.known.identity, &self.known.row)
    }
}

impl Subject for InstanceRow<'_> {
    fn name(&self) -> Option<&str> {
        self.known.row.name.as_deref()
    }
    fn id(&self) -> &str {
        self.known.row.id.as_str()
    }
    fn account(&self) -> &str {
        self.known.identity.account.as_str()
    }
    fn provider(&self) -> Option<&str> {
        self.provider.map(ProviderName::as_str)
    }
    fn region(&self) -> Option<&str> {
        self.known.row.region.as_deref()
    }
    fn gpu_model(&self) -> Option<&str> {
        self.known.row.gpus.as_ref().filter(|gpus| gpus.count > 0).map(|gpus| gpus.model.as_str())
    }
    fn gpu_count(&self) -> Option<u32> {
        self.known.row.gpus.as_ref().map(|gpus| gpus.count)
    }
    fn labels(&self) -> &BTreeMap<String, String> {
        &self.known.row.labels
    }
    fn project(&self) -> Option<&str> {
        self.project_name()
    }
    fn phase(&self) -> Option<Phase> {
        Some(shown_phase(self.known, self.operation))
    }
    fn market(&self) -> Option<Market> {
        Some(self.known.row.market)
    }
    fn storage_kind(&self) -> Option<StorageKind> {
        None
    }
    fn rates(&self) -> Cow<'_, Rates> {
        self.known.rates()
    }
    fn utilization(&self) -> Option<f64> {
        self.world.usage(self.known).and_then(Usage::mean_utilization)
    }
    fn memory_used_bytes(&self) -> Option<u64> {
        let usage = self.world.usage(self.known)?;
        let used: Vec<u64> = usage.gpus.iter().map(|gpu| gpu.memory_used_bytes).collect::<Option<_>>()?;
        (!used.is_empty()).then(|| used.into_iter().fold(0, u64::saturating_add))
    }
    fn started_at(&self) -> Option<Timestamp> {
        let started = self.known.row.started_at.filter(|_| self.known.phase() == Phase::Running)?;
        Some(self.world.fleet.here(&self.known.identity.account, started))
    }
    fn saved_at(&self) -> Option<Timestamp> {
        self.world.saved.get(&self.known.identity).map(|saved| saved.proof.at)
    }
    fn unsaved(&self) -> bool {
        self.saved_at().is_none() && may_hold_results(self.known)
    }
    fn created_at(&self) -> Option<Timestamp> {
        Some(self.world.fleet.here(&self.known.identity.account, self.known.row.created_at?))
    }
    fn size_gib(&self) -> Option<Decimal> {
        None
    }
    fn verdict(&self) -> Option<Verdict> {
        let verdict = self.idleness()?.verdict;
        (!matches!(verdict, Verdict::Unknown | Verdict::NotYet)).then_some(verdict)
    }
    fn unattached(&self) -> Option<bool> {
        Some(false)
    }
    fn wastes(&self) -> Option<bool> {
        let rates = self.known.rates();
        let does_nothing = match self.known.phase() {
            Phase::Stopped | Phase::Reclaimed => true,
            Phase::Running => self.idles,
            Phase::Unknown => return None,
            _ => false,
        };
        match () {
            () if !does_nothing || matches!(self.known.row.market, Market::Reserved { .. }) => Some(false),
            () if !rates.certain().is_zero() => Some(true),
            () => rates.complete.then_some(false),
        }
    }
    fn protected(&self) -> bool {
        self.provider
            .is_some_and(|provider| self.world.settings.protected(provider, &self.known.identity, &self.known.row))
    }
    fn mine(&self) -> bool {
        self.provider.is_some_and(|provider| self.world.settings.mine(provider, &self.known.identity, &self.known.row))
    }
    fn needs_you(&self) -> bool {
        self.needs_you
    }
    fn under_way(&self) -> bool {
        self.operation.is_some()
    }
}

/// A storage item with what is looked up for it.
pub struct StorageRow<'a> {
    pub world: &'a World,
    pub known: &'a Known<StorageItem>,
    pub provider: Option<&'a ProviderName>,
    /// Charged for, and nobody uses it.
    pub wastes: bool,
}

impl Subject for StorageRow<'_> {
    fn name(&self) -> Option<&str> {
        self.known.row.name.as_deref()
    }
    fn id(&self) -> &str {
        self.known.row.id.as_str()
    }
    fn account(&self) -> &str {
        self.known.identity.account.as_str()
    }
    fn provider(&self) -> Option<&str> {
        self.provider.map(ProviderName::as_str)
    }
    fn region(&self) -> Option<&str> {
        self.known.row.region.as_deref()
    }
    fn gpu_model(&self) -> Option<&str> {
        None
    }
    fn gpu_count(&self) -> Option<u32> {
        None
    }
    fn labels(&self) -> &BTreeMap<String, String> {
        &self.known.row.labels
    }
    fn project(&self) -> Option<&str> {
        self.world.settings.project(self.provider?, &self.known.identity, &self.known.row)
    }
    fn phase(&self) -> Option<Phase> {
        None
    }
    fn market(&self) -> Option<Market> {
        None
    }
    fn storage_kind(&self) -> Option<StorageKind> {
        Some(self.known.row.kind)
    }
    fn rates(&self) -> Cow<'_, Rates> {
        self.known.rates()
    }
    fn utilization(&self) -> Option<f64> {
        None
    }
    fn memory_used_bytes(&self) -> Option<u64> {
        None
    }
    fn started_at(&self) -> Option<Timestamp> {
        None
    }
    fn saved_at(&self) -> Option<Timestamp> {
        None
    }
    fn unsaved(&self) -> bool {
        false
    }
    fn created_at(&self) -> Option<Timestamp> {
        Some(self.world.fleet.here(&self.known.identity.account, self.known.row.created_at?))
    }
    fn size_gib(&self) -> Option<Decimal> {
        self.known.row.size_gib
    }
    fn verdict(&self) -> Option<Verdict> {
        Some(Verdict::NotApplicable)
    }
    fn unattached(&self) -> Option<bool> {
        match &self.known.row.attachment {
            Attachment::To(users) => Some(users.is_empty()),
            Attachment::Somewhere => Some(false),
            Attachment::Unknown => None,
        }
    }
    fn wastes(&self) -> Option<bool> {
        let told = self.known.row.attachment != Attachment::Unknown;
        told.then_some(self.wastes)
    }
    fn protected(&self) -> bool {
        self.provider
            .is_some_and(|provider| self.world.settings.protected(provider, &self.known.identity, &self.known.row))
    }
    fn mine(&self) -> bool {
        self.provider.is_some_and(|provider| self.world.settings.mine(provider, &self.known.identity, &self.known.row))
    }
    fn needs_you(&self) -> bool {
        self.known.missing_since.is_some()
    }
    fn under_way(&self) -> bool {
        self.world.operation_on(&self.known.identity).is_some()
    }
}
