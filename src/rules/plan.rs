//! What an action will do, before anybody does it: what it saves, what goes on costing, what it keeps,
//! what it destroys, and what it therefore asks of the person.

use std::collections::BTreeSet;

use jiff::Timestamp;
use providers::model::{
    Action, Attachment, DataPlace, Effect, Identity, Market, Offer, Phase, ProviderName, Rates, Refusal, ResourceId,
    ResourceKind, Risk, StorageItem,
};
use providers::money::{Burn, Rate};
use serde::{Deserialize, Serialize};

use super::fleet::{Fleet, Known, Row, Trouble};
use super::naming::typed_name;
use super::settings::Settings;

/// Why a resource is left out of an action, in the program's own terms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hindrance {
    Provider(Refusal),
    /// The program was started with `--read-only`.
    ReadOnly,
    /// The config keeps this account from being changed.
    ReadOnlyAccount,
    /// Not in the last complete list, or already gone.
    NotThere,
    /// Another action on it is under way.
    UnderWay,
    /// Protected; bulk actions leave it alone.
    Protected,
    /// Not `mine`; bulk actions leave it alone.
    NotMine,
    /// The account's key opens another account than the one that was seen.
    AccountInTrouble,
}

/// One resource of a plan, as it was when the plan was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    pub identity: Identity,
    pub provider: ProviderName,
    /// Cleaned; the id stands in where there is none.
    pub name: String,
    /// What is to be typed to mean it.
    pub typed_name: String,
    /// Its GPUs in words, for instance `8× H100 SXM`; empty where there are none.
    pub gpus: String,
    pub phase: Phase,
    pub created_at: Option<Timestamp>,
    /// The end of the term that the provider set, if any.
    pub ends_at: Option<Timestamp>,
    /// The poll that all this is from; `None` when it is only remembered.
    pub as_of: Option<Timestamp>,
    pub before: Vec<Rate>,
    pub after: Vec<Rate>,
    /// Every part of both is known.
    pub rates_complete: bool,
    /// Paid ahead: ending it saves nothing before the term ends.
    pub prepaid: bool,
    pub effect: Effect,
    /// Storage that goes on costing by itself: its name and rates.
    pub left_behind: Vec<(String, Vec<Rate>)>,
}

impl Target {
    /// What it saves per hour: what is charged now less what is charged after.
    pub fn saves(&self) -> Vec<Rate> {
        if self.prepaid {
            return Vec::new();
        }
        let after: Burn = self.after.iter().copied().collect();
        self.before
            .iter()
            .filter_map(|rate| rate.minus(after.of(rate.currency)))
            .filter(|rate| !rate.is_zero())
            .collect()
    }
}

/// What the person must do before the action begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confirmation {
    /// Nothing is lost: it begins by itself after a countdown that can be taken back.
    Countdown,
    /// Something is lost: this text must be typed.
    Typed(String),
}

/// An action on one or more resources, ready to be shown and confirmed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub action: Action,
    pub made_at: Timestamp,
    pub targets: Vec<Target>,
    /// What was asked for and is left out, with the reason.
    pub left_out: Vec<(Identity, String, Hindrance)>,
    pub confirmation: Confirmation,
}

impl Plan {
    /// What the whole plan saves per hour.
    pub fn saves(&self) -> Burn {
        self.targets.iter().flat_map(Target::saves).collect()
    }

    /// What goes on costing per hour after it, left-behind storage included: once, however many of the
    /// targets leave it behind.
    pub fn goes_on(&self) -> Burn {
        let own = self.targets.iter().flat_map(|target| target.after.iter().copied());
        let mut counted = BTreeSet::new();
        let behind = self.targets.iter().flat_map(|target| {
            let account = &target.identity.account;
            target.effect.left_behind.iter().zip(&target.left_behind).map(move |(id, (_, rates))| (account, id, rates))
        });
        let once = behind.filter(|(account, id, _)| counted.insert((*account, *id)));
        own.chain(once.flat_map(|(_, _, rates)| rates.iter().copied())).collect()
    }

    pub fn lost(&self) -> impl Iterator<Item = (&Target, &DataPlace)> {
        self.targets.iter().flat_map(|target| target.effect.lost.iter().map(move |place| (target, place)))
    }

    /// The risks of any of the targets, each once.
    pub fn risks(&self) -> Vec<Risk> {
        let mut risks = Vec::new();
        for risk in self.targets.iter().flat_map(|target| &target.effect.risks) {
            if !risks.contains(risk) {
                risks.push(*risk);
            }
        }
        risks
    }
}

/// What a plan is made from.
#[derive(Clone, Copy, Debug)]
pub struct Basis<'a> {
    pub fleet: &'a Fleet,
    pub settings: &'a Settings,
    /// Resources with an action under way.
    pub under_way: &'a [Identity],
    /// The whole program may change nothing.
    pub read_only: bool,
    pub now: Timestamp,
}

/// Plans one action on the resources that were pointed at. A plan without targets says why in `left_out`.
pub fn plan(basis: Basis<'_>, action: Action, pointed: &[Identity]) -> Plan {
    let mut seen = BTreeSet::new();
    let pointed: Vec<&Identity> = pointed.iter().filter(|identity| seen.insert(*identity)).collect();
    let bulk = pointed.len() > 1;
    let mut targets = Vec::new();
    let mut left_out = Vec::new();
    for identity in pointed {
        match target(basis, action, identity, bulk) {
            Ok(target) => targets.push(target),
            Err((name, hindrance)) => left_out.push((identity.clone(), name, hindrance)),
        }
    }
    let confirmation = confirmation(action, &targets);
    Plan { action, made_at: basis.now, targets, left_out, confirmation }
}

fn confirmation(action: Action, targets: &[Target]) -> Confirmation {
    let ends = matches!(action, Action::Release | Action::Delete);
    let loses = targets.iter().any(|target| target.effect.loses_data());
    match targets {
        // What cannot be undone is never a countdown, even when nothing of value is known to be lost.
        _ if !loses && !ends => Confirmation::Countdown,
        [one] => Confirmation::Typed(one.typed_name.clone()),
        many => Confirmation::Typed(format!("{} {}", action.word(), many.len())),
    }
}

fn target(basis: Basis<'_>, action: Action, identity: &Identity, bulk: bool) -> Result<Target, (String, Hindrance)> {
    let id = || identity.id.as_str().to_owned();
    let account = basis.fleet.account(&identity.account).ok_or_else(|| (id(), Hindrance::NotThere))?;
    let hindrance = |name: &str, hindrance| Err((name.to_owned(), hindrance));
    let (row, name, offer) = match row(basis.fleet, action, identity) {
        Some(found) => found,
        None => return hindrance(identity.id.as_str(), Hindrance::NotThere),
    };
    if basis.read_only {
        return hindrance(&name, Hindrance::ReadOnly);
    }
    if account.read_only {
        return hindrance(&name, Hindrance::ReadOnlyAccount);
    }
    if matches!(&account.trouble, Some(trouble) if !matches!(trouble.value, Trouble::Request(_))) {
        return hindrance(&name, Hindrance::AccountInTrouble);
    }
    if basis.under_way.contains(identity) {
        return hindrance(&name, Hindrance::UnderWay);
    }
    if bulk && let Some(reason) = left_alone(basis, &account.provider, identity) {
        return hindrance(&name, reason);
    }
    let effect = match offer {
        Offer::Yes(effect) => effect,
        Offer::No(refusal) => return hindrance(&name, Hindrance::Provider(refusal)),
    };
    let left: Vec<_> = effect.left_behind.iter().map(|id| storage_left(basis.fleet, identity, id)).collect();
    let left_known = left.iter().all(|(_, rates)| rates.complete);
    let upper = |rates: &Rates| rates.upper().rates().to_vec();
    let shown = basis.fleet.shown();
    Ok(Target {
        typed_name: typed_name(identity, row.plain_name.as_deref(), shown.iter().map(|(id, name)| (*id, *name))),
        identity: identity.clone(),
        provider: account.provider.clone(),
        name,
        gpus: row.gpus,
        phase: row.phase,
        created_at: row.created_at,
        ends_at: row.ends_at,
        as_of: account.as_of,
        before: row.rates.certain().rates().to_vec(),
        after: upper(&effect.rates_after),
        rates_complete: row.rates.complete && effect.rates_after.complete && left_known,
        prepaid: row.prepaid,
        effect,
        left_behind: left.into_iter().map(|(name, rates)| (name, upper(&rates))).collect(),
    })
}

/// Why a bulk action leaves a resource alone, if it does.
fn left_alone(basis: Basis<'_>, provider: &ProviderName, identity: &Identity) -> Option<Hindrance> {
    fn reason<T: Row>(settings: &Settings, provider: &ProviderName, known: &Known<T>) -> Option<Hindrance> {
        match (&known.identity, &known.row) {
            (identity, row) if settings.protected(provider, identity, row) => Some(Hindrance::Protected),
            (identity, row) if !settings.mine(provider, identity, row) => Some(Hindrance::NotMine),
            _ => None,
        }
    }
    let Basis { fleet, settings, .. } = basis;
    match identity.kind {
        ResourceKind::Instance => fleet.instances.get(identity).and_then(|known| reason(settings, provider, known)),
        ResourceKind::Storage => fleet.storage.get(identity).and_then(|known| reason(settings, provider, known)),
    }
}

/// The parts of a row that a plan shows, of either kind.
struct PlanRow {
    plain_name: Option<String>,
    gpus: String,
    phase: Phase,
    created_at: Option<Timestamp>,
    ends_at: Option<Timestamp>,
    rates: Rates,
    prepaid: bool,
}

fn row(fleet: &Fleet, action: Action, identity: &Identity) -> Option<(PlanRow, String, Offer)> {
    if action == Action::Delete {
        let known = fleet.storage.get(identity).filter(|known| !known.is_gone() && known.missing_since.is_none())?;
        let row = PlanRow {
            plain_name: known.row.name.clone(),
            gpus: String::new(),
            phase: Phase::Stopped,
            created_at: known.row.created_at,
            ends_at: None,
            rates: known.rates(),
            prepaid: false,
        };
        return Some((row, shown_name(known.row.name.as_deref(), &identity.id), delete_offer(&known.row)));
    }
    let known = fleet.instances.get(identity).filter(|known| !known.is_gone() && known.missing_since.is_none())?;
    let gpus = known.row.gpus.as_ref().filter(|gpus| gpus.count > 0);
    let row = PlanRow {
        plain_name: known.row.name.clone(),
        gpus: gpus.map(|gpus| format!("{}× {}", gpus.count, gpus.model)).unwrap_or_default(),
        phase: known.phase(),
        created_at: known.row.created_at,
        ends_at: known.row.ends_at,
        rates: known.rates(),
        prepaid: matches!(known.row.market, Market::Reserved { .. }),
    };
    Some((row, shown_name(known.row.name.as_deref(), &identity.id), known.row.offers.of(action)))
}

/// Whether a storage item can be deleted: never while an instance uses it, whatever its provider would do.
pub fn delete_offer(item: &StorageItem) -> Offer {
    let in_use = matches!(&item.attachment, Attachment::To(ids) if !ids.is_empty());
    if in_use { Offer::No(Refusal::InUse) } else { item.delete.clone() }
}

/// A storage item that stays, by its name, with its rates: not known where the item is not.
fn storage_left(fleet: &Fleet, instance: &Identity, id: &ResourceId) -> (String, Rates) {
    let known = fleet.storage_of(&instance.account).find(|known| known.row.id == *id && !known.is_gone());
    match known {
        Some(known) => (shown_name(known.row.name.as_deref(), id), known.rates()),
        None => (id.to_string(), Rates::unknown()),
    }
}

/// The name, or the id where there is none.
fn shown_name(name: Option<&str>, id: &ResourceId) -> String {
    name.filter(|name| !name.trim().is_empty()).unwrap_or(id.as_str()).to_owned()
}

impl Fleet {
    /// Identities and names of all that is not gone, instances first.
    pub fn shown(&self) -> Vec<(&Identity, Option<&str>)> {
        let instances = self.instances.values().filter(|known| !known.is_gone());
        let storage = self.storage.values().filter(|known| !known.is_gone());
        instances
            .map(|known| (&known.identity, known.row.name.as_deref()))
            .chain(storage.map(|known| (&known.identity, known.row.name.as_deref())))
            .collect()
    }
}
