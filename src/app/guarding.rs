//! Guards, as the collector knows them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use providers::model::{Action, Identity, Instance, ProviderName, ResourceKind};

use super::state::World;
use crate::rules::alerts::{About, Kind};
use crate::rules::budgets::Thing;
use crate::rules::fleet::Known;
use crate::rules::guard::{Guard, Unable, Veto, Watch};

/// The guards of the config, and what they are called for by.
#[derive(Clone, Debug, Default)]
pub struct Guarding {
    /// In the order of the config.
    pub rules: Vec<Guard>,
    /// By guard and machine.
    pub watches: BTreeMap<(String, Identity), Watch>,
    /// What people forbid guards.
    pub vetoes: BTreeMap<Identity, Veto>,
    /// When the ledger was last asked for them, and when that was asked which it has answered.
    pub(super) asked_at: Option<Timestamp>,
    pub(super) answered_at: Option<Timestamp>,
    /// Whether what is promised for a machine could be done.
    pub(super) proofs: BTreeMap<Identity, Proving>,
}

/// One machine for which it is found out whether what is promised could be done.
#[derive(Clone, Debug)]
pub(super) struct Proving {
    pub asked_at: Timestamp,
    pub answered: bool,
    /// By the last answer.
    pub unable: Option<Unable>,
}

impl World {
    /// A guard is about to act on a machine, or proposes to: it can be forbidden. Also known where another process
    /// collects.
    pub fn is_guarded_now(&self, identity: &Identity) -> bool {
        let of_this = |about: &About| matches!(about, About::Resource(resource) if resource == identity);
        let warned =
            self.alerting.alerts.open().any(|alert| alert.topic.kind == Kind::Guard && of_this(&alert.topic.about));
        warned || self.guarding.watches.values().any(|watch| watch.identity == *identity && watch.can_be_vetoed())
    }

    /// Ours to act on without anybody pointing at it, by what people and the config say.
    pub(super) fn may_be_acted_on(&self, provider: &ProviderName, known: &Known<Instance>) -> bool {
        let (settings, identity, row) = (&self.settings, &known.identity, &known.row);
        settings.mine(provider, identity, row) && !settings.protected(provider, identity, row)
    }

    /// What a scope asks about an instance.
    pub(super) fn thing<'a>(&'a self, provider: &'a ProviderName, known: &'a Known<Instance>) -> Thing<'a> {
        Thing {
            provider,
            account: &known.identity.account,
            kind: Some(ResourceKind::Instance),
            name: known.row.name.as_deref(),
            labels: Some(&known.row.labels),
            project: self.settings.project(provider, &known.identity, &known.row),
        }
    }

    /// Nothing is under way on a resource that an action would have to wait for.
    pub(super) fn is_free_for(&self, action: Action, identity: &Identity) -> bool {
        self.operation_on(identity).is_none_or(|operation| operation.gives_way_to(action))
    }
}
