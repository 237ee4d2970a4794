//! From the state to the lines of the fleet: filtered, grouped, sorted, and at rest while people look.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;
use providers::model::{AccountName, Identity, Instance, Market, Phase, ProviderName};

use super::message::{GroupName, QuickName, SortName};
use super::state::{View, World};
use crate::rules::fleet::{Known, Totals};
use crate::rules::saga::Operation;

/// What a group has in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupKey {
    Account(AccountName),
    Provider(ProviderName),
    /// `None` for instances of no project.
    Project(Option<String>),
    Market(MarketName),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MarketName {
    OnDemand,
    Spot,
    Reserved,
}

impl MarketName {
    pub fn of(market: Market) -> Self {
        match market {
            Market::OnDemand => MarketName::OnDemand,
            Market::Spot => MarketName::Spot,
            Market::Reserved { .. } => MarketName::Reserved,
        }
    }
}

/// One line of the fleet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Line {
    Group(GroupKey),
    Instance(Identity),
}

/// Sums over the rows of a group that the filters let through, folded away or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupSum {
    pub rows: usize,
    /// Rows that somebody should look at now.
    pub attention: usize,
    pub totals: Totals,
}

/// From so many rows on the fleet is grouped by account unless somebody chose otherwise.
const GROUPED_FROM: usize = 20;

/// How the fleet is grouped now.
pub fn grouping(world: &World, view: &View) -> GroupName {
    let automatic = if world.fleet.instances.len() >= GROUPED_FROM { GroupName::Account } else { GroupName::None };
    view.group.unwrap_or(automatic)
}

/// The phase that a row shows: what we are doing to it, else what the last poll proves.
pub fn shown_phase(known: &Known<Instance>, operation: Option<&Operation>) -> Phase {
    let proven = known.phase();
    if proven == Phase::Gone {
        return proven;
    }
    operation.and_then(Operation::shown_phase).unwrap_or(proven)
}

/// True for a row that somebody should look at now.
pub fn needs_you(known: &Known<Instance>, operation: Option<&Operation>) -> bool {
    if known.is_gone() {
        return false;
    }
    operation.is_some_and(Operation::is_overdue)
        || known.missing_since.is_some()
        || matches!(known.row.phase, Phase::Failed | Phase::Reclaimed | Phase::Unreachable)
        || (known.row.phase == Phase::Stopped && bills_compute(&known.row))
}

/// Compute is charged although nothing computes.
fn bills_compute(instance: &Instance) -> bool {
    !instance.rates.of(&[providers::model::Component::Compute]).is_zero()
}

fn provider_of<'a>(world: &'a World, known: &Known<Instance>) -> Option<&'a ProviderName> {
    world.fleet.account(&known.identity.account).map(|account| &account.provider)
}

/// The project of an instance, by hand or by rule.
pub fn project_of<'a>(world: &'a World, known: &Known<Instance>) -> Option<&'a str> {
    provider_of(world, known).and_then(|provider| world.settings.project(provider, &known.identity, &known.row))
}

fn group_key(world: &World, known: &Known<Instance>, name: GroupName) -> Option<GroupKey> {
    Some(match name {
        GroupName::None => return None,
        GroupName::Account => GroupKey::Account(known.identity.account.clone()),
        GroupName::Provider => GroupKey::Provider(provider_of(world, known)?.clone()),
        GroupName::Project => GroupKey::Project(project_of(world, known).map(str::to_owned)),
        GroupName::Market => GroupKey::Market(MarketName::of(known.row.market)),
    })
}

/// Computes the lines anew. With `resort` rows take the places that the order gives them; without it
/// those that were there keep theirs, and new ones come last in their group.
pub fn rebuild(world: &World, view: &mut View, resort: bool, now: Timestamp) {
    let words: Vec<String> = view.filter.split_whitespace().map(str::to_lowercase).collect();
    let rows: Vec<&Known<Instance>> = world.fleet.instances.values().collect();
    let shown: Vec<&Known<Instance>> =
        rows.iter().copied().filter(|known| passes(world, known, view.quick, &words)).collect();
    view.hidden = rows.len() - shown.len();

    let operations: BTreeMap<&Identity, &Operation> =
        world.under_way().map(|operation| (&operation.target.identity, operation)).collect();
    let mut ordered: Vec<(&Known<Instance>, SortKey)> = shown
        .into_iter()
        .map(|known| (known, sort_key(known, operations.get(&known.identity).copied(), view.sort, now)))
        .collect();
    if resort {
        ordered.sort_by(|a, b| a.1.cmp(&b.1));
        view.ranks = ordered.iter().enumerate().map(|(rank, (known, _))| (known.identity.clone(), rank)).collect();
    } else {
        let rank = |known: &Known<Instance>| view.ranks.get(&known.identity).copied().unwrap_or(usize::MAX);
        ordered.sort_by(|a, b| rank(a.0).cmp(&rank(b.0)).then_with(|| a.1.cmp(&b.1)));
        let next = view.ranks.values().max().map_or(0, |last| last + 1);
        let fresh: Vec<Identity> = ordered
            .iter()
            .filter(|(known, _)| !view.ranks.contains_key(&known.identity))
            .map(|(known, _)| known.identity.clone())
            .collect();
        view.ranks.extend(fresh.into_iter().enumerate().map(|(at, identity)| (identity, next + at)));
    }

    view.attention = rows.iter().filter(|known| needs_you(known, operations.get(&known.identity).copied())).count();
    let groups = group(world, view, ordered.into_iter().map(|(known, _)| known).collect());
    view.sums = groups.iter().filter_map(|(key, members)| Some((key.clone()?, sum(members, &operations)))).collect();
    view.lines = lines(view, groups);
    view.marks.retain(|identity| world.fleet.instances.get(identity).is_some_and(|known| !known.is_gone()));
    view.lines_stale = false;
}

type Members<'a> = Vec<&'a Known<Instance>>;

/// The groups with their members; one without a key when there is no grouping.
fn group<'a>(world: &'a World, view: &View, ordered: Members<'a>) -> Vec<(Option<GroupKey>, Members<'a>)> {
    let name = grouping(world, view);
    if name == GroupName::None {
        return vec![(None, ordered)];
    }
    let mut groups: Vec<(Option<GroupKey>, Members<'a>)> = Vec::new();
    if name == GroupName::Account && view.filter.is_empty() && view.quick == QuickName::All {
        // An account without instances has a balance and a state to show all the same.
        let accounts = world.fleet.accounts.iter().map(|account| GroupKey::Account(account.name.clone()));
        groups.extend(accounts.map(|key| (Some(key), Vec::new())));
    }
    for known in ordered {
        let Some(key) = group_key(world, known, name) else { continue };
        match groups.iter_mut().find(|(other, _)| other.as_ref() == Some(&key)) {
            Some((_, members)) => members.push(known),
            None => groups.push((Some(key), vec![known])),
        }
    }
    if name != GroupName::Account {
        groups.sort_by(|a, b| a.0.cmp(&b.0));
    }
    groups
}

fn lines(view: &View, groups: Vec<(Option<GroupKey>, Members<'_>)>) -> Vec<Line> {
    let mut lines = Vec::new();
    for (key, members) in groups {
        let folded = key.as_ref().is_some_and(|key| view.folded.contains(key));
        lines.extend(key.map(Line::Group));
        if !folded {
            lines.extend(members.into_iter().map(|known| Line::Instance(known.identity.clone())));
        }
    }
    lines
}

fn sum(members: &[&Known<Instance>], operations: &BTreeMap<&Identity, &Operation>) -> GroupSum {
    let mut sum = GroupSum::default();
    for known in members {
        sum.rows += 1;
        sum.attention += usize::from(needs_you(known, operations.get(&known.identity).copied()));
        sum.totals.add_instance(known);
    }
    sum
}

/// Every word must be found somewhere in what the row is called.
fn passes(world: &World, known: &Known<Instance>, quick: QuickName, words: &[String]) -> bool {
    let row = &known.row;
    let quick_passes = match quick {
        QuickName::All => true,
        QuickName::Off => matches!(row.phase, Phase::Stopped | Phase::Reclaimed | Phase::Unreachable | Phase::Failed),
        QuickName::Spot => row.market == Market::Spot,
    };
    if !quick_passes || words.is_empty() {
        return quick_passes;
    }
    let texts = [
        row.name.as_deref().unwrap_or_default(),
        row.id.as_str(),
        known.identity.account.as_str(),
        provider_of(world, known).map(ProviderName::as_str).unwrap_or_default(),
        row.region.as_deref().unwrap_or_default(),
        row.gpus.as_ref().map(|gpus| gpus.model.as_str()).unwrap_or_default(),
        project_of(world, known).unwrap_or_default(),
        known.phase().word(),
        if row.market == Market::Spot { "spot" } else { "" },
    ];
    words.iter().all(|word| {
        texts.iter().any(|text| text.to_lowercase().contains(word))
            || row.labels.iter().any(|(label, value)| format!("{label}={value}").to_lowercase().contains(word))
    })
}

/// Rows are compared by this, smallest first. Money only through picos of one and the same currency order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SortKey {
    gone: bool,
    attention: Reverse<bool>,
    waste: Reverse<i64>,
    cost: Reverse<i64>,
    age: Option<Timestamp>,
    name: String,
    identity: Identity,
}

fn sort_key(known: &Known<Instance>, operation: Option<&Operation>, sort: SortName, now: Timestamp) -> SortKey {
    let cost: i64 = known.rates().upper().rates().iter().map(|rate| rate.picos()).fold(0, i64::saturating_add);
    let stopped = matches!(known.row.phase, Phase::Stopped | Phase::Reclaimed);
    let attention = sort == SortName::Attention;
    let by_cost = matches!(sort, SortName::Attention | SortName::Cost);
    SortKey {
        gone: known.is_gone(),
        attention: Reverse(attention && needs_you(known, operation)),
        waste: Reverse(if attention && stopped { cost } else { 0 }),
        cost: Reverse(if by_cost { cost } else { 0 }),
        age: (sort == SortName::Age).then(|| known.row.started_at.or(known.row.created_at).unwrap_or(now)),
        name: match sort {
            SortName::Age => String::new(),
            _ => known.row.name.as_deref().unwrap_or(known.row.id.as_str()).to_lowercase(),
        },
        identity: known.identity.clone(),
    }
}
