//! What an action will do, before anybody does it: what it saves, what goes on costing, what it keeps,
//! what it destroys, and what it therefore asks of the person.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use providers::model::{
    Action, Attachment, DataPlace, Effect, Identity, Market, Offer, Phase, ProviderName, Rates, Refusal, ResourceId,
    ResourceKind, Risk, StorageItem,
};
use providers::money::{Burn, Rate};
use serde::{Deserialize, Serialize};

use super::budgets::Thing;
use super::checkpoint::{self, Recipe, RecipeRule, Saved};
use super::fleet::{Account, Fleet, Known, Row, Trouble};
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
    /// Nothing says what of it is to be brought to safety.
    NoRecipe,
    /// It does not run, so that nothing can be read out of it.
    CannotBeRead,
    /// Nobody knows where `ssh` reaches it.
    NoAddress,
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
    /// What is brought to safety first; `None` for an action without a checkpoint.
    #[serde(default)]
    pub recipe: Option<Recipe>,
    /// When it was last brought to safety; `None` when that is not on record.
    #[serde(default)]
    pub saved_at: Option<Timestamp>,
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
    /// It is brought to safety first, and nothing else happens before that is verified.
    Save,
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

    /// Whether it asks for the same as another, later one: only how old the figures are may differ.
    pub fn asks_the_same(&self, later: &Plan) -> bool {
        let settled = |plan: &Plan| {
            let mut targets = plan.targets.clone();
            targets.iter_mut().for_each(|target| target.as_of = None);
            targets.sort_by(|a, b| a.identity.cmp(&b.identity));
            targets
        };
        self.confirmation == later.confirmation && self.left_out == later.left_out && settled(self) == settled(later)
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
    /// What the config says of checkpoints; the first that fits counts.
    pub recipes: &'a [RecipeRule],
    /// The last verified checkpoint of each resource that has one.
    pub saved: &'a BTreeMap<Identity, Saved>,
    /// Resources with an action under way.
    pub under_way: &'a [Identity],
    /// The whole program may change nothing.
    pub read_only: bool,
    pub now: Timestamp,
}

/// What is brought to safety before an action.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SaveFirst {
    #[default]
    Nothing,
    /// What the config says of each.
    ByConfig,
    /// What somebody chose.
    By(Recipe),
}

/// Plans one action on the resources that were pointed at. A plan without targets says why in `left_out`.
pub fn plan(basis: Basis<'_>, action: Action, pointed: &[Identity]) -> Plan {
    plan_with(basis, action, pointed, &SaveFirst::Nothing)
}

/// The same, with something brought to safety first.
pub fn plan_with(basis: Basis<'_>, action: Action, pointed: &[Identity], save: &SaveFirst) -> Plan {
    let single = pointed.iter().all(|identity| Some(identity) == pointed.first());
    make(basis, action, pointed, !single, save)
}

/// The same for resources that nobody pointed at one by one: also a single one is left out that is to be left alone.
pub fn plan_bulk(basis: Basis<'_>, action: Action, resources: &[Identity], save: &SaveFirst) -> Plan {
    make(basis, action, resources, true, save)
}

fn make(basis: Basis<'_>, action: Action, pointed: &[Identity], bulk: bool, save: &SaveFirst) -> Plan {
    // A checkpoint without anything to bring to safety is none.
    let by_config = action == Action::Checkpoint && *save == SaveFirst::Nothing;
    let save = if by_config { &SaveFirst::ByConfig } else { save };
    let mut seen = BTreeSet::new();
    let pointed: Vec<&Identity> = pointed.iter().filter(|identity| seen.insert(*identity)).collect();
    let mut targets = Vec::new();
    let mut left_out = Vec::new();
    for identity in pointed {
        match target(basis, action, identity, bulk, save) {
            Ok(target) => targets.push(target),
            Err((name, hindrance)) => left_out.push((identity.clone(), name, hindrance)),
        }
    }
    // The costliest first: it is what a list of many must show.
    let cost = |target: &Target| target.before.iter().map(|rate| rate.picos()).fold(0, i64::saturating_add);
    targets.sort_by_key(|target| std::cmp::Reverse(cost(target)));
    let confirmation = confirmation(action, &targets);
    Plan { action, made_at: basis.now, targets, left_out, confirmation }
}

fn confirmation(action: Action, targets: &[Target]) -> Confirmation {
    let ends = matches!(action, Action::Release | Action::Delete);
    let loses = targets.iter().any(|target| target.effect.loses_data());
    match targets {
        _ if targets.iter().any(|target| target.recipe.is_some()) => Confirmation::Save,
        // What cannot be undone is never a countdown, even when nothing of value is known to be lost.
        _ if !loses && !ends => Confirmation::Countdown,
        [one] => Confirmation::Typed(one.typed_name.clone()),
        many => Confirmation::Typed(format!("{} {}", action.word(), many.len())),
    }
}

fn target(
    basis: Basis<'_>,
    action: Action,
    identity: &Identity,
    bulk: bool,
    save: &SaveFirst,
) -> Result<Target, (String, Hindrance)> {
    let id = || identity.id.as_str().to_owned();
    let account = basis.fleet.account(&identity.account).ok_or_else(|| (id(), Hindrance::NotThere))?;
    let hindrance = |name: &str, hindrance| Err((name.to_owned(), hindrance));
    let (row, name, offer) = match row(basis.fleet, action, identity) {
        Some(found) => found,
        None => return hindrance(&basis.fleet.name_of(identity), Hindrance::NotThere),
    };
    if let Some(reason) = barred(basis, account, identity) {
        return hindrance(&name, reason);
    }
    if bulk && let Some(reason) = left_alone(basis, &account.provider, identity) {
        return hindrance(&name, reason);
    }
    let effect = match offer {
        Offer::Yes(effect) => effect,
        Offer::No(refusal) => return hindrance(&name, Hindrance::Provider(refusal)),
    };
    let recipe = match save {
        SaveFirst::Nothing => None,
        SaveFirst::ByConfig => Some(recipe_for(basis, &account.provider, identity).map(|rule| &rule.recipe)),
        SaveFirst::By(recipe) => Some(Some(recipe)),
    };
    let recipe = match recipe {
        None => None,
        // What no recipe could help comes first.
        Some(_) if !checkpoint::can_be_read(row.phase) => return hindrance(&name, Hindrance::CannotBeRead),
        Some(_) if !row.has_address => return hindrance(&name, Hindrance::NoAddress),
        Some(None) => return hindrance(&name, Hindrance::NoRecipe),
        Some(Some(recipe)) => Some(recipe.clone()),
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
        recipe,
        saved_at: basis.saved.get(identity).map(|saved| saved.proof.at),
    })
}

/// What the config says of the checkpoints of an instance: the first that fits.
pub fn recipe_for<'a>(basis: Basis<'a>, provider: &ProviderName, identity: &Identity) -> Option<&'a RecipeRule> {
    let known = basis.fleet.instances.get(identity)?;
    let thing = Thing {
        provider,
        account: &identity.account,
        kind: Some(ResourceKind::Instance),
        name: known.row.name.as_deref(),
        labels: Some(&known.row.labels),
        project: basis.settings.project(provider, identity, &known.row),
    };
    basis.recipes.iter().find(|rule| rule.scope.takes(&thing))
}

/// What keeps every action from a resource, whatever its provider offers; `None` when nothing does.
pub fn barred(basis: Basis<'_>, account: &Account, identity: &Identity) -> Option<Hindrance> {
    if basis.read_only {
        Some(Hindrance::ReadOnly)
    } else if account.read_only {
        Some(Hindrance::ReadOnlyAccount)
    } else if matches!(&account.trouble, Some(trouble) if !matches!(trouble.value, Trouble::Request(_))) {
        Some(Hindrance::AccountInTrouble)
    } else if basis.under_way.contains(identity) {
        Some(Hindrance::UnderWay)
    } else {
        None
    }
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
    has_address: bool,
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
            rates: known.rates().into_owned(),
            prepaid: false,
            has_address: false,
        };
        let mounted = fleet.mounting(identity).next().is_some();
        let offer = if mounted { Offer::No(Refusal::InUse) } else { delete_offer(&known.row) };
        return Some((row, shown_name(known.row.name.as_deref(), &identity.id), offer));
    }
    let known = fleet.instances.get(identity).filter(|known| !known.is_gone() && known.missing_since.is_none())?;
    let gpus = known.row.gpus.as_ref().filter(|gpus| gpus.count > 0);
    let row = PlanRow {
        plain_name: known.row.name.clone(),
        gpus: gpus.map(|gpus| format!("{}× {}", gpus.count, gpus.model)).unwrap_or_default(),
        phase: known.phase(),
        created_at: known.row.created_at,
        ends_at: known.row.ends_at,
        rates: known.rates().into_owned(),
        prepaid: matches!(known.row.market, Market::Reserved { .. }),
        // A provider's proxy may offer a shell, but no commands and no copies.
        has_address: known.row.ssh.as_ref().is_some_and(|endpoint| endpoint.direct),
    };
    let offer = match action {
        // It changes nothing, so that nobody has to offer it.
        Action::Checkpoint => Offer::Yes(Effect { rates_after: row.rates.clone(), ..Effect::default() }),
        _ => known.row.offers.of(action),
    };
    Some((row, shown_name(known.row.name.as_deref(), &identity.id), offer))
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
        Some(known) => (shown_name(known.row.name.as_deref(), id), known.rates().into_owned()),
        None => (id.to_string(), Rates::unknown()),
    }
}

/// The name, or the id where there is none.
pub fn shown_name(name: Option<&str>, id: &ResourceId) -> String {
    name.filter(|name| !name.trim().is_empty()).unwrap_or(id.as_str()).to_owned()
}

impl Fleet {
    /// What a resource is called, also when it is missing: its id where nothing better is known.
    pub fn name_of(&self, identity: &Identity) -> String {
        let name = match identity.kind {
            ResourceKind::Instance => self.instances.get(identity).and_then(|known| known.row.name.as_deref()),
            ResourceKind::Storage => self.storage.get(identity).and_then(|known| known.row.name.as_deref()),
        };
        shown_name(name, &identity.id)
    }

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use providers::error::ErrorKind;
    use providers::model::{Component, DataKind, Instance, Offers, RateLine, Tenant};
    use providers::money::Currency;
    use rstest::rstest;

    use super::*;
    use crate::rules::fleet::Trouble;
    use crate::rules::matcher::Matcher;
    use crate::rules::samples::{
        at, disk, effect, error, failed, fleet, identity, instance, item_identity, listed, usd, volume, with_storage,
    };
    use crate::rules::settings::{Rules, Setting};

    fn running(id: &str) -> Instance {
        instance(id, Phase::Running, "1")
    }

    fn over(rows: Vec<Instance>, volumes: Vec<StorageItem>) -> Fleet {
        let mut fleet = fleet(&["team"]);
        fleet.poll("team", with_storage(listed(rows), volumes), at("09:00:00"));
        fleet
    }

    fn planned(fleet: &Fleet, action: Action, ids: &[&str]) -> Plan {
        with_settings(fleet, &Settings::default(), action, ids)
    }

    fn with_settings(fleet: &Fleet, settings: &Settings, action: Action, ids: &[&str]) -> Plan {
        let of = if action == Action::Delete { item_identity } else { identity };
        let pointed: Vec<Identity> = ids.iter().map(|id| of("team", id)).collect();
        plan(basis(fleet, settings), action, &pointed)
    }

    fn basis<'a>(fleet: &'a Fleet, settings: &'a Settings) -> Basis<'a> {
        crate::rules::samples::basis(fleet, settings, at("09:00:10"))
    }

    fn names(plan: &Plan) -> Vec<&str> {
        plan.targets.iter().map(|target| target.name.as_str()).collect()
    }

    fn left_out(plan: &Plan) -> Vec<(&str, &Hindrance)> {
        plan.left_out.iter().map(|(_, name, hindrance)| (name.as_str(), hindrance)).collect()
    }

    fn typed(text: &str) -> Confirmation {
        Confirmation::Typed(text.to_owned())
    }

    /// LIFE-04: names that look alike, equal names, empty names. One row is meant, by its id.
    #[rstest]
    #[case("a1", "train", "a1")]
    #[case("a2", "train-2", "train-2")]
    #[case("b2", "b2", "b2")]
    #[case("b3", "b3", "b3")]
    #[case("c1", "TRAIN", "c1")]
    #[case("c2", "train ", "c2")]
    fn a_release_means_one_resource_and_asks_for_what_means_it_alone(
        #[case] id: &str,
        #[case] shown: &str,
        #[case] asked: &str,
    ) {
        let named = |id: &str, name: Option<&str>| Instance { name: name.map(str::to_owned), ..running(id) };
        let rows = [
            ("a1", Some("train")),
            ("a2", Some("train-2")),
            ("b1", Some("train")),
            ("b2", None),
            ("b3", Some("")),
            ("c1", Some("TRAIN")),
            ("c2", Some("train ")),
        ];
        let fleet = over(rows.map(|(id, name)| named(id, name)).to_vec(), vec![]);
        let plan = planned(&fleet, Action::Release, &[id]);
        let [target] = plan.targets.as_slice() else { panic!("{:?}", plan.targets) };
        assert_eq!((&target.identity, target.name.as_str()), (&identity("team", id), shown));
        assert_eq!(plan.confirmation, typed(asked));
        assert_eq!((target.provider.as_str(), target.gpus.as_str()), ("vast", "1× RTX 4090"));
        assert_eq!((target.before.as_slice(), target.as_of), ([usd("1")].as_slice(), Some(at("09:00:00"))));
    }

    /// LIFE-08 and LIFE-12: what the provider does not offer has no target and no stand-in.
    #[rstest]
    #[case::cannot_stop_at_all(Refusal::NotOffered)]
    #[case::locked(Refusal::Locked)]
    #[case::wrong_phase(Refusal::WrongPhase)]
    #[case::its_own_words(Refusal::Told("member of a cluster".to_owned()))]
    fn what_is_not_offered_is_named_and_not_planned(#[case] refusal: Refusal) {
        let offers = Offers { stop: Offer::No(refusal.clone()), ..running("c1").offers };
        let fleet = over(vec![Instance { offers, ..running("c1") }], vec![]);
        let plan = planned(&fleet, Action::Stop, &["c1"]);
        assert!(plan.targets.is_empty());
        assert_eq!(left_out(&plan), [("c1", &Hindrance::Provider(refusal))]);
        assert_eq!(planned(&fleet, Action::Release, &["c1"]).confirmation, typed("c1"), "release is its own question");
    }

    /// DATA-05: it is the loss that asks, not the verb.
    #[rstest]
    #[case::everything_is_erased(vec![disk(DataKind::ContainerDisk)], typed("a"))]
    #[case::a_volume_keeps_it(vec![], Confirmation::Countdown)]
    fn a_stop_that_erases_asks_like_a_release(#[case] lost: Vec<DataPlace>, #[case] expected: Confirmation) {
        let offers = Offers { stop: Offer::Yes(effect("0.1", lost.clone())), ..running("a").offers };
        let fleet = over(vec![Instance { offers, ..running("a") }], vec![]);
        let plan = planned(&fleet, Action::Stop, &["a"]);
        assert_eq!(plan.confirmation, expected);
        assert_eq!(plan.lost().map(|(_, place)| place.clone()).collect::<Vec<_>>(), lost);
        assert_eq!((plan.saves().of(Currency::USD), plan.goes_on().of(Currency::USD)), (usd("0.9"), usd("0.1")));
    }

    #[test]
    fn what_ends_a_resource_is_typed_even_when_nothing_is_known_to_be_lost() {
        let offers = Offers { release: Offer::Yes(effect("0", vec![])), ..running("a").offers };
        let empty = StorageItem { delete: Offer::Yes(effect("0", vec![])), ..volume("v", "0.1", &[]) };
        let fleet = over(vec![Instance { offers, ..running("a") }], vec![empty]);
        assert_eq!(planned(&fleet, Action::Release, &["a"]).confirmation, typed("a"));
        assert_eq!(planned(&fleet, Action::Delete, &["v"]).confirmation, typed("v"));
    }

    /// DATA-07: what stays behind is named, with what it goes on costing.
    #[test]
    fn storage_that_a_release_leaves_behind_is_named_with_its_rate() {
        let monthly = Rate::of_month(20.into(), 1.into(), 730.into(), Currency::EUR).unwrap();
        let data = StorageItem {
            name: Some("v-data".to_owned()),
            rates: Rates::known().with(Component::Storage, monthly),
            ..volume("vol-2", "0", &["a"])
        };
        let release = Effect { left_behind: vec!["vol-2".into()], ..effect("0", vec![disk(DataKind::LocalDisk)]) };
        let offers = Offers { release: Offer::Yes(release), ..running("a").offers };
        let fleet = over(vec![Instance { offers, ..running("a") }], vec![data]);
        let plan = planned(&fleet, Action::Release, &["a"]);
        assert_eq!(plan.targets[0].left_behind, [("v-data".to_owned(), vec![monthly])]);
        assert_eq!(plan.goes_on().of(Currency::EUR), monthly);
        assert!(plan.targets[0].rates_complete);
        assert_eq!(plan.saves().of(Currency::USD), usd("1"));
    }

    #[test]
    fn storage_that_stays_and_is_not_known_leaves_the_sum_open() {
        let release = Effect { left_behind: vec!["vol-9".into()], ..effect("0", vec![]) };
        let offers = Offers { release: Offer::Yes(release), ..running("a").offers };
        let fleet = over(vec![Instance { offers, ..running("a") }], vec![]);
        let target = planned(&fleet, Action::Release, &["a"]).targets.remove(0);
        assert_eq!(target.left_behind, [("vol-9".to_owned(), vec![])]);
        assert!(!target.rates_complete);
    }

    #[test]
    fn a_volume_that_two_leave_behind_goes_on_costing_once() {
        let sharing = |id: &str| {
            let release = Effect { left_behind: vec!["v".into()], ..effect("0", vec![disk(DataKind::ContainerDisk)]) };
            Instance { offers: Offers { release: Offer::Yes(release), ..running(id).offers }, ..running(id) }
        };
        let fleet = over(vec![sharing("a"), sharing("b")], vec![volume("v", "0.1", &["a", "b"])]);
        let plan = planned(&fleet, Action::Release, &["a", "b"]);
        assert_eq!(plan.goes_on().of(Currency::USD), usd("0.1"));
        assert_eq!(plan.saves().of(Currency::USD), usd("2"));
        assert_eq!(plan.confirmation, typed("release 2"));
    }

    fn bulk_settings() -> Settings {
        let rules = Rules {
            mine: vec![Matcher::of_name("ft-*")],
            protect: vec![Matcher::of_name("*-prod")],
            projects: Vec::new(),
            ..Rules::default()
        };
        Settings { rules, ..Settings::default() }
    }

    /// Bulk actions leave alone what is protected or not mine, and say so. Pointed at alone it is meant.
    #[rstest]
    #[case::instances(Action::Release)]
    #[case::storage(Action::Delete)]
    fn bulk_leaves_out_what_is_protected_or_not_mine_and_names_it(#[case] action: Action) {
        let ids = ["ft-1", "ft-prod", "other", "ft-keep"];
        let fleet = over(ids.map(running).to_vec(), ids.map(|id| volume(id, "0.1", &[])).to_vec());
        let mut settings = bulk_settings();
        let kept = if action == Action::Delete { item_identity } else { identity }("team", "ft-keep");
        settings.single.insert(kept, Setting { protected: Some(true), ..Setting::default() });
        let plan = with_settings(&fleet, &settings, action, &ids);
        assert_eq!(names(&plan), ["ft-1"]);
        assert_eq!(plan.confirmation, typed("ft-1"));
        let expected =
            [("ft-prod", &Hindrance::Protected), ("other", &Hindrance::NotMine), ("ft-keep", &Hindrance::Protected)];
        assert_eq!(left_out(&plan), expected);
        for id in ids {
            assert_eq!(names(&with_settings(&fleet, &settings, action, &[id])), [id]);
        }
    }

    #[test]
    fn the_same_row_twice_is_one_row() {
        let fleet = over(vec![running("ft-prod")], vec![]);
        let plan = with_settings(&fleet, &bulk_settings(), Action::Release, &["ft-prod", "ft-prod"]);
        assert_eq!(names(&plan), ["ft-prod"], "and no bulk");
        assert_eq!(plan.confirmation, typed("ft-prod"));
    }

    #[test]
    fn nothing_is_planned_on_any_read_only_path() {
        let mut fleet = over(vec![running("a")], vec![volume("v", "0.1", &[])]);
        let settings = Settings::default();
        let actions = [Action::Stop, Action::Restart, Action::Release, Action::Delete];
        for action in actions {
            let pointed = if action == Action::Delete { item_identity("team", "v") } else { identity("team", "a") };
            let read_only =
                plan(Basis { read_only: true, ..basis(&fleet, &settings) }, action, std::slice::from_ref(&pointed));
            assert!(read_only.targets.is_empty());
            assert_eq!(read_only.left_out[0].2, Hindrance::ReadOnly);
            fleet.accounts[0].read_only = true;
            let locked = plan(basis(&fleet, &settings), action, &[pointed]);
            assert!(locked.targets.is_empty());
            assert_eq!(locked.left_out[0].2, Hindrance::ReadOnlyAccount);
            fleet.accounts[0].read_only = false;
        }
    }

    #[test]
    fn what_is_not_there_or_busy_or_in_doubt_is_left_out() {
        let settings = Settings::default();
        let mut fleet = over(vec![running("a"), running("b"), running("c")], vec![]);
        fleet.released(&identity("team", "b"), at("09:00:05"));
        fleet.poll("team", listed(vec![running("a")]), at("09:00:06"));
        let busy = [identity("team", "a")];
        let basis = Basis { under_way: &busy, ..basis(&fleet, &settings) };
        let pointed = ["a", "b", "c", "x"].map(|id| identity("team", id));
        let plan = super::plan(basis, Action::Stop, &pointed);
        assert!(plan.targets.is_empty());
        let expected = [
            ("a", &Hindrance::UnderWay),
            ("b", &Hindrance::NotThere),
            ("c", &Hindrance::NotThere),
            ("x", &Hindrance::NotThere),
        ];
        assert_eq!(left_out(&plan), expected);
    }

    #[test]
    fn a_verb_for_the_other_kind_finds_nothing() {
        let fleet = over(vec![running("a")], vec![volume("a", "0.1", &[])]);
        let settings = Settings::default();
        for (action, pointed) in [
            (Action::Delete, identity("team", "a")),
            (Action::Release, item_identity("team", "a")),
            (Action::Stop, item_identity("team", "a")),
        ] {
            assert_eq!(plan(basis(&fleet, &settings), action, &[pointed]).left_out[0].2, Hindrance::NotThere);
        }
    }

    #[rstest]
    #[case::a_failed_request(Trouble::Request(error(ErrorKind::NoSuchId)), true)]
    #[case::no_key(Trouble::Key("locked".to_owned()), false)]
    #[case::another_tenant(Trouble::OtherTenant, false)]
    #[case::a_double(Trouble::SameAs("lab".into()), false)]
    fn an_account_whose_key_is_in_doubt_is_left_alone(#[case] trouble: Trouble, #[case] expected: bool) {
        let mut fleet = over(vec![running("a")], vec![]);
        fleet.accounts[0].fail(trouble, at("09:00:05"));
        let plan = planned(&fleet, Action::Stop, &["a"]);
        assert_eq!(plan.targets.len() == 1, expected);
        if !expected {
            assert_eq!(left_out(&plan), [("a", &Hindrance::AccountInTrouble)]);
        }
    }

    #[test]
    fn a_plan_of_an_unreachable_account_tells_the_age_of_what_it_shows() {
        let mut fleet = over(vec![running("a")], vec![]);
        fleet.poll("team", failed(ErrorKind::NoSuchId), at("09:10:00"));
        assert_eq!(planned(&fleet, Action::Stop, &["a"]).targets[0].as_of, Some(at("09:00:00")));
    }

    #[test]
    fn storage_in_use_is_not_deleted() {
        let fleet = over(vec![running("a")], vec![volume("v", "0.1", &["a"])]);
        let plan = planned(&fleet, Action::Delete, &["v"]);
        assert_eq!(left_out(&plan), [("v", &Hindrance::Provider(Refusal::InUse))]);
    }

    /// Instances are asked more often than storage: a fresh mount stands in their rows first.
    #[test]
    fn what_an_instance_says_that_it_mounts_is_not_deleted() {
        let mounts = |id: &str| Instance { mounts: vec![id.into()], ..running("a") };
        let fleet = over(vec![mounts("v")], vec![volume("v", "0.1", &[]), volume("w", "0.1", &[])]);
        let plan = planned(&fleet, Action::Delete, &["v", "w"]);
        assert_eq!(left_out(&plan), [("v", &Hindrance::Provider(Refusal::InUse))]);
        assert_eq!(names(&plan), ["w"]);
    }

    #[test]
    fn ending_what_is_paid_ahead_saves_nothing() {
        let reserved = Instance { market: Market::Reserved { until: Some(at("23:00:00")) }, ..running("a") };
        let plan = planned(&over(vec![reserved], vec![]), Action::Release, &["a"]);
        assert!(plan.targets[0].prepaid && plan.saves().is_zero());
    }

    #[test]
    fn the_risks_of_many_are_told_once() {
        let risky = |id: &str| {
            let stop = Effect { risks: vec![Risk::GpuMayBeTaken, Risk::AddressChanges], ..effect("0", vec![]) };
            Instance { offers: Offers { stop: Offer::Yes(stop), ..running(id).offers }, ..running(id) }
        };
        let plan = planned(&over(vec![risky("a"), risky("b")], vec![]), Action::Stop, &["a", "b"]);
        assert_eq!(plan.risks(), [Risk::GpuMayBeTaken, Risk::AddressChanges]);
    }

    #[test]
    fn a_plan_reads_back_as_it_was_written() {
        let rows = vec![running("a"), Instance { name: None, ..running("b") }];
        let mut fleet = over(rows, vec![volume("v", "0.1", &["a"])]);
        fleet.accounts[0].tenant = Some(Tenant { id: "t".to_owned() });
        for plan in [
            planned(&fleet, Action::Stop, &["a"]),
            planned(&fleet, Action::Release, &["a", "b", "x"]),
            planned(&fleet, Action::Delete, &["v"]),
        ] {
            let text = serde_json::to_string(&plan).unwrap();
            assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan, "{text}");
        }
    }

    fn any_rates() -> impl Strategy<Value = Rates> {
        let currency = prop::sample::select(vec![Currency::USD, Currency::EUR]);
        let line = (0i64..10_000_000_000_000, currency, any::<bool>()).prop_map(|(picos, currency, certain)| {
            let rate = Rate::from_picos(picos, currency);
            RateLine { component: Component::Compute, rate, estimated: false, certain }
        });
        (prop::collection::vec(line, 0..4), any::<bool>()).prop_map(|(lines, complete)| Rates { lines, complete })
    }

    proptest! {
        /// Sums add up over targets and currencies, and no plan promises more than is charged now or less
        /// than nothing.
        #[test]
        fn what_is_saved_and_what_goes_on_add_up(
            rows in prop::collection::vec((any_rates(), any_rates(), any::<bool>()), 1..6),
        ) {
            let instances: Vec<Instance> = rows
                .iter()
                .enumerate()
                .map(|(n, (before, after, reserved))| {
                    let stop = Effect { rates_after: after.clone(), ..Effect::default() };
                    let row = running(&n.to_string());
                    Instance {
                        rates: before.clone(),
                        market: if *reserved { Market::Reserved { until: None } } else { Market::OnDemand },
                        offers: Offers { stop: Offer::Yes(stop), ..row.offers.clone() },
                        ..row
                    }
                })
                .collect();
            let ids: Vec<String> = (0..rows.len()).map(|n| n.to_string()).collect();
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            let fleet = over(instances, vec![]);
            let plan = planned(&fleet, Action::Stop, &ids);
            prop_assert_eq!(plan.targets.len(), rows.len());
            for currency in [Currency::USD, Currency::EUR] {
                let (mut saves, mut goes_on) = (0i64, 0i64);
                for (before, after, reserved) in &rows {
                    let (before, after) = (before.certain().of(currency).picos(), after.upper().of(currency).picos());
                    saves += if *reserved { 0 } else { (before - after).max(0) };
                    goes_on += after;
                }
                prop_assert_eq!(plan.saves().of(currency).picos(), saves);
                prop_assert_eq!(plan.goes_on().of(currency).picos(), goes_on);
                prop_assert!(plan.saves().of(currency).picos() <= fleet.burn().burn.of(currency).picos());
            }
            for target in &plan.targets {
                let (before, after, _) = &rows[target.identity.id.as_str().parse::<usize>().unwrap()];
                prop_assert_eq!(target.rates_complete, before.complete && after.complete);
            }
            let cost = |target: &Target| target.before.iter().map(|rate| rate.picos()).fold(0, i64::saturating_add);
            prop_assert!(plan.targets.is_sorted_by_key(|target| std::cmp::Reverse(cost(target))), "the costliest first");
        }
    }
}
