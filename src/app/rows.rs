//! From the state to the lines of the fleet: filtered, grouped, sorted, and at rest while people look.

use std::borrow::Cow;
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use providers::model::{AccountName, Identity, Instance, Market, Phase, ProviderName};
use providers::usage::Usage;

use super::listing::{Line, Listing};
use super::message::{GroupName, QuickName, SortName};
use super::state::{View, World};
use super::subject::InstanceRow;
use crate::rules::alerts::{Alert, Kind, Stage, worst_first};
use crate::rules::filter::Subject;
use crate::rules::fleet::{Account, Known, Totals};
use crate::rules::saga::Operation;
use crate::rules::usage::{Gauge, Verdict};

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

/// Sums over the rows of a group that the filters let through, folded away or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupSum {
    pub rows: usize,
    /// Rows that somebody should look at now.
    pub attention: usize,
    pub totals: Totals,
    /// Whose rows they are, each once.
    pub accounts: Vec<AccountName>,
}

/// From so many rows on the fleet is grouped by account unless somebody chose otherwise.
const GROUPED_FROM: usize = 20;

/// How the fleet is grouped now.
pub fn grouping(world: &World, list: &Listing) -> GroupName {
    let automatic = if world.fleet.instances.len() >= GROUPED_FROM { GroupName::Account } else { GroupName::None };
    list.group.unwrap_or(automatic)
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
pub fn needs_you(world: &World, known: &Known<Instance>, gauge: Option<&Gauge>, operation: Option<&Operation>) -> bool {
    if known.is_gone() {
        return false;
    }
    operation.is_some_and(Operation::is_overdue)
        || known.missing_since.is_some()
        || matches!(known.row.phase, Phase::Failed | Phase::Reclaimed | Phase::Unreachable)
        || (known.row.phase == Phase::Stopped && bills_compute(&known.row))
        || !world.alarms_of(known, gauge).is_empty()
}

/// Whether something may lie on it that is lost with it: `ssh` leads to it, or its disk is kept while it is at rest.
pub fn may_hold_results(known: &Known<Instance>) -> bool {
    known.row.ssh.is_some() || known.row.is_resting()
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
    let provider = provider_of(world, known)?;
    world.settings.project(provider, &known.identity, &known.row)
}

/// A row on its way to its place.
struct Placed<'a> {
    /// Its place since the rows were last sorted; the last of all for one that was not there then.
    rank: usize,
    key: SortKey<'a>,
    /// Its place among those that are shown, in the order of identities.
    number: usize,
    identity: &'a Identity,
    group: usize,
}

/// Computes the lines of the fleet anew. With `resort` rows take the places that the order gives them; without it
/// those that were there keep theirs, and new ones come last in their group.
pub fn rebuild(world: &World, view: &mut View, resort: bool, now: Timestamp) {
    let (list, attention) = (&mut view.fleet, &mut view.attention);
    let operations: BTreeMap<&Identity, &Operation> =
        world.under_way().map(|operation| (&operation.target.identity, operation)).collect();
    if resort {
        list.ranks.clear();
    }
    list.unsorted = !resort;
    (*attention, list.hidden) = (0, 0);

    let told = told_of(world);
    // Thousands of rows are far apart in memory: one walk, in the order of identities, looks at each once.
    let mut ranks = list.ranks.iter().peekable();
    let mut gauges = world.gauges.iter().peekable();
    let mut groups = Groups::new(world, list);
    let mut placed = Vec::with_capacity(world.fleet.instances.len());
    let mut account: Option<&Account> = None;
    for known in world.fleet.instances.values() {
        let identity = &known.identity;
        if account.is_none_or(|account| account.name != identity.account) {
            account = world.fleet.account(&identity.account);
        }
        let operation = operations.get(identity).copied();
        let provider = account.map(|account| &account.provider);
        // Equal ones share their texts, so that asking for that first reads none.
        while gauges.next_if(|(of, _)| *of != identity && *of < identity).is_some() {}
        let gauge = gauges.next_if(|(of, _)| *of == identity).map(|(_, gauge)| gauge);
        let row = InstanceRow::new(world, known, gauge, provider, operation);
        *attention += usize::from(row.needs_you && !told.contains(identity));
        if !passes(&row, list, now) {
            list.hidden += 1;
            continue;
        }
        while ranks.next_if(|(ranked, _)| ranked != identity && ranked < identity).is_some() {}
        let rank = ranks.next_if(|(ranked, _)| ranked == identity).map_or(usize::MAX, |(_, rank)| *rank);
        if let Some(group) = groups.add(&row) {
            placed.push(Placed { rank, key: sort_key(&row, list.sort), number: placed.len(), identity, group });
        }
    }
    // Numbers are moved about more cheaply than rows.
    let mut order: Vec<usize> = (0..placed.len()).collect();
    order.sort_by(|a, b| {
        let (a, b) = (&placed[*a], &placed[*b]);
        a.rank.cmp(&b.rank).then_with(|| a.key.compare(&b.key, list.reversed))
    });
    let in_order = || order.iter().map(|at| &placed[*at]);

    let next = list.ranks.iter().map(|(_, last)| last + 1).max().unwrap_or(0);
    let fresh = in_order().filter(|row| row.rank == usize::MAX).enumerate();
    let mut fresh: Vec<_> = fresh.map(|(place, row)| (row.number, row.identity, next + place)).collect();
    fresh.sort_unstable_by_key(|(number, ..)| *number);
    let merged = !list.ranks.is_empty() && !fresh.is_empty();
    list.ranks.extend(fresh.into_iter().map(|(_, identity, rank)| (identity.clone(), rank)));
    if merged {
        list.ranks.sort();
    }
    let groups = groups.ordered(in_order());
    list.sums = groups.iter().filter_map(|group| Some((group.key.clone()?, group.sum.clone()))).collect();
    list.lines = lines(list, groups);
    list.marks.retain(|identity| world.fleet.instances.get(identity).is_some_and(|known| !known.is_gone()));
    list.count_hidden_marks();
    list.stale = false;
}

/// The actions, newest first.
pub fn rebuild_activity(world: &World, list: &mut Listing) {
    list.lines = world.operations.keys().rev().copied().map(Line::Operation).collect();
    list.stale = false;
}

/// The budgets, in the order of the config.
pub fn rebuild_budgets(world: &World, list: &mut Listing) {
    list.lines = world.budgets.rules.iter().map(|budget| Line::Budget(budget.name.clone())).collect();
    list.stale = false;
}

/// What calls, the worst first, then what was seen or is silent, then what ended, the newest first.
pub fn rebuild_alerts(world: &World, list: &mut Listing) {
    let alerts = &world.alerting.alerts;
    let told = |alert: &&Alert| alert.fired_at.is_some();
    let (calling, silent): (Vec<&Alert>, Vec<&Alert>) =
        alerts.open().filter(told).partition(|alert| alert.stage == Stage::Firing);
    let exchange = &world.alerting.exchange;
    let open = [calling, silent].map(|alerts| worst_first(alerts.into_iter(), exchange));
    let line = |alert: &Alert| Line::Alert(alert.topic.clone(), alert.since);
    list.lines = open.into_iter().flatten().chain(alerts.ended()).map(line).collect();
    list.stale = false;
}

/// Resources of which an alert tells what makes a row need somebody: it is counted instead, until it is seen.
fn told_of(world: &World) -> BTreeSet<&Identity> {
    let told = world.alerting.alerts.open().filter(|alert| alert.fired_at.is_some());
    let of_row = told.filter(|alert| {
        matches!(
            alert.topic.kind,
            Kind::NotDone | Kind::Reclaimed | Kind::StoppedBilled | Kind::Cards | Kind::HostKey | Kind::Vanished
        )
    });
    of_row.filter_map(|alert| alert.matter.identity()).collect()
}

/// Rows that belong together; without a key when there is no grouping.
struct Group<'a> {
    key: Option<GroupKey>,
    sum: GroupSum,
    members: Vec<&'a Identity>,
}

/// The groups while rows are added to them.
struct Groups<'a> {
    name: GroupName,
    /// Every account has its group, in the order of the config.
    fixed: bool,
    groups: Vec<Group<'a>>,
    places: BTreeMap<Option<GroupKey>, usize>,
    last: usize,
}

impl<'a> Groups<'a> {
    fn new(world: &World, list: &Listing) -> Self {
        let name = grouping(world, list);
        // An account without instances has a balance and a state to show all the same.
        let fixed = name == GroupName::Account && !list.is_filtered();
        let mut groups = Groups { name, fixed, groups: Vec::new(), places: BTreeMap::new(), last: 0 };
        if fixed {
            for account in &world.fleet.accounts {
                groups.place(Some(GroupKey::Account(account.name.clone())));
            }
        }
        groups
    }

    /// Counts a row into its group. Returns the group's number; `None` when it belongs to none.
    fn add(&mut self, row: &InstanceRow<'a>) -> Option<usize> {
        let key = group_key(row, self.name);
        if key.is_none() && self.name != GroupName::None {
            return None;
        }
        let at = self.place(key);
        let sum = &mut self.groups[at].sum;
        sum.rows += 1;
        sum.attention += usize::from(row.needs_you);
        sum.totals.add_instance(row.known, row.idles);
        // Rows come account by account.
        if sum.accounts.last() != Some(&row.known.identity.account) {
            sum.accounts.push(row.known.identity.account.clone());
        }
        Some(at)
    }

    fn place(&mut self, key: Option<GroupKey>) -> usize {
        // Neighbours are often in the same one.
        if self.groups.get(self.last).is_none_or(|group| group.key != key) {
            self.last = *self.places.entry(key).or_insert_with_key(|key| {
                self.groups.push(Group { key: key.clone(), sum: GroupSum::default(), members: Vec::new() });
                self.groups.len() - 1
            });
        }
        self.last
    }

    /// The groups with their members, each in its place.
    fn ordered<'p>(mut self, placed: impl Iterator<Item = &'p Placed<'a>>) -> Vec<Group<'a>>
    where
        'a: 'p,
    {
        let mut order = Vec::new();
        for row in placed {
            let group = &mut self.groups[row.group];
            if group.members.is_empty() {
                order.push(row.group);
            }
            group.members.push(row.identity);
        }
        match self.name {
            GroupName::Account if self.fixed => return self.groups,
            GroupName::Account => {}
            _ => order.sort_by(|a, b| self.groups[*a].key.cmp(&self.groups[*b].key)),
        }
        let mut groups: Vec<Option<Group>> = self.groups.into_iter().map(Some).collect();
        order.into_iter().filter_map(|at| groups[at].take()).collect()
    }
}

fn lines(list: &Listing, groups: Vec<Group>) -> Vec<Line> {
    let mut lines = Vec::new();
    for group in groups {
        let folded = group.key.as_ref().is_some_and(|key| list.folded.contains(key));
        lines.extend(group.key.map(Line::Group));
        if !folded {
            lines.extend(group.members.into_iter().map(|identity| Line::Resource(identity.clone())));
        }
    }
    lines
}

fn passes(row: &InstanceRow, list: &Listing, now: Timestamp) -> bool {
    let quick = match list.quick {
        QuickName::All => true,
        QuickName::Idle => row.verdict() == Some(Verdict::Idle),
        QuickName::Off => {
            matches!(row.known.row.phase, Phase::Stopped | Phase::Reclaimed | Phase::Unreachable | Phase::Failed)
        }
        QuickName::Spot => row.known.row.market == Market::Spot,
    };
    quick && (list.filter().is_empty() || list.filter().matches(row, now))
}

fn group_key(row: &InstanceRow, name: GroupName) -> Option<GroupKey> {
    Some(match name {
        GroupName::None => return None,
        GroupName::Account => GroupKey::Account(row.known.identity.account.clone()),
        GroupName::Provider => GroupKey::Provider(row.provider?.clone()),
        GroupName::Project => GroupKey::Project(row.project_name().map(str::to_owned)),
        GroupName::Market => GroupKey::Market(MarketName::of(row.known.row.market)),
    })
}

/// What a row is placed by.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SortKey<'a> {
    gone: bool,
    /// What the order asks for is not known: such rows come last, whichever way round.
    unknown: bool,
    order: Order<'a>,
    /// The beginning of the name, which decides nearly always: thousands of texts are far apart in memory.
    begin: u128,
    name: Cow<'a, str>,
}

/// What is compared first, smallest first. Money only through picos of one and the same currency order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Order<'a> {
    /// What needs somebody, then waste, then cost.
    Attention(Reverse<bool>, Reverse<i64>, Reverse<i64>),
    Cost(Reverse<i64>),
    Since(Option<Timestamp>),
    /// In thousandths.
    Use(Option<u32>),
    /// How much it stands still, and since when.
    Idle(Option<(u8, Option<Timestamp>)>),
    Text(Option<&'a str>),
    /// The names decide.
    Name,
}

impl SortKey<'_> {
    fn compare(&self, other: &Self, reversed: bool) -> Ordering {
        let fixed = (self.gone, self.unknown).cmp(&(other.gone, other.unknown));
        let chosen = self.order.cmp(&other.order);
        let name = || self.begin.cmp(&other.begin).then_with(|| self.name.cmp(&other.name));
        match (self.order == Order::Name, reversed) {
            (true, true) => fixed.then_with(|| name().reverse()),
            (_, true) => fixed.then(chosen.reverse()).then_with(name),
            (_, false) => fixed.then(chosen).then_with(name),
        }
    }
}

fn sort_key<'a>(row: &InstanceRow<'a>, sort: SortName) -> SortKey<'a> {
    let (known, instance) = (row.known, &row.known.row);
    let cost = || known.rates().lines.iter().map(|line| line.rate.picos()).fold(0, i64::saturating_add);
    let order = match sort {
        SortName::Attention => {
            let cost = cost();
            let wastes = instance.is_resting() || row.idles;
            Order::Attention(Reverse(row.needs_you), Reverse(if wastes { cost } else { 0 }), Reverse(cost))
        }
        SortName::Cost => Order::Cost(Reverse(cost())),
        SortName::Age => Order::Since(instance.started_at.or(instance.created_at)),
        SortName::Use => {
            let used = row.world.usage(known).and_then(Usage::mean_utilization);
            Order::Use(used.map(|share| (share * 1000.0) as u32))
        }
        SortName::Idle => Order::Idle(row.idleness().and_then(|idleness| {
            let judged = !matches!(idleness.verdict, Verdict::Unknown | Verdict::NotApplicable);
            let rank = match idleness.verdict {
                Verdict::Idle => 0,
                Verdict::Waiting => 1,
                Verdict::Underused => 2,
                _ => 3,
            };
            judged.then_some((rank, idleness.since))
        })),
        SortName::Account => Order::Text(Some(known.identity.account.as_str())),
        SortName::Project => Order::Text(row.project_name()),
        SortName::Region => Order::Text(instance.region.as_deref()),
        // Instances have no size of their own.
        SortName::Name | SortName::Size => Order::Name,
    };
    let name = lower_case(instance.name.as_deref().unwrap_or(instance.id.as_str()));
    SortKey {
        gone: known.is_gone(),
        unknown: matches!(order, Order::Since(None) | Order::Use(None) | Order::Idle(None) | Order::Text(None)),
        order,
        begin: begin(&name),
        name,
    }
}

/// The first bytes of a text as a number that stands in the same order.
fn begin(text: &str) -> u128 {
    let mut first = [0; 16];
    let length = text.len().min(first.len());
    first[..length].copy_from_slice(&text.as_bytes()[..length]);
    u128::from_be_bytes(first)
}

fn lower_case(text: &str) -> Cow<'_, str> {
    let is_lower = text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
    if is_lower { Cow::Borrowed(text) } else { Cow::Owned(text.to_lowercase()) }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use proptest::prelude::*;

    use providers::provider::{Part, Poll, Reading};

    use super::*;
    use crate::app::action::Key;
    use crate::app::event::{Event, ViewEvent, WorldEvent};
    use crate::app::state::{Fixed, State};
    use crate::app::update::{settle, start, take};
    use crate::rules::memory::{Collector, Memory};
    use crate::rules::samples;
    use crate::rules::settings::Rules;

    /// Two accounts, `team` and `lab`, of which the ledger knows nothing.
    fn empty(now: Timestamp) -> State {
        let account = |name: &str| Account::new(name.into(), "runpod".into(), false);
        let fixed = Fixed::default();
        let accounts = vec![account("team"), account("lab")];
        let mut state = State {
            world: World::new(accounts, Rules::default(), false, "ana@desk".to_owned(), now),
            view: View::new(fixed, Vec::new()),
            leaving: false,
        };
        // What its rows give rise to is another story.
        state.world.alerting.heedless = true;
        start(&mut state, now);
        take(&mut state, Event::World(WorldEvent::Collector(Collector::Us)), now);
        let remembered = WorldEvent::Remembered { memory: Box::new(Memory::default()), notices: Vec::new() };
        take(&mut state, Event::World(remembered), now);
        settle(&mut state, now);
        state
    }

    fn polled(state: &mut State, account: &str, rows: Vec<Instance>, now: Timestamp) {
        let account = AccountName::from(account);
        // Whether or not it is its turn.
        state.world.fleet.account_mut(&account).unwrap().pacing.in_flight = Some(now);
        let poll = Poll {
            instances: Part::complete(rows),
            storage: Part::NotAsked,
            balance: Reading::NotAsked,
            tenant: Reading::NotTold,
            server_time: None,
        };
        take(state, Event::World(WorldEvent::Polled { account, asked_at: now, poll: Box::new(poll) }), now);
    }

    fn ids(state: &State) -> Vec<&str> {
        let ids = state.view.fleet.lines.iter().filter_map(|line| match line {
            Line::Resource(identity) => Some(identity.id.as_str()),
            _ => None,
        });
        ids.collect()
    }

    #[test]
    fn rows_keep_their_places_while_somebody_works_and_are_sorted_when_it_is_quiet() {
        let now = samples::at("10:00:00");
        let mut state = empty(now);
        let row = |id, hourly| samples::instance(id, Phase::Running, hourly);
        polled(&mut state, "team", vec![row("a", "3"), row("b", "2"), row("c", "1")], now);
        settle(&mut state, now);
        assert_eq!(ids(&state), ["a", "b", "c"]);

        take(&mut state, Event::View(ViewEvent::Key(Key::char('j'))), now);
        let soon = now + SignedDuration::from_secs(5);
        polled(&mut state, "team", vec![row("a", "1"), row("b", "2"), row("c", "3"), row("d", "9")], soon);
        settle(&mut state, soon);
        assert_eq!(ids(&state), ["a", "b", "c", "d"]);

        // No event changes a row any more.
        let later = now + SignedDuration::from_secs(31);
        settle(&mut state, later);
        assert_eq!(ids(&state), ["d", "c", "b", "a"]);
    }

    #[derive(Clone, Debug)]
    enum Told {
        Poll(&'static str, Vec<(usize, Phase, u32)>),
        Key(char),
        Wait(i64),
    }

    fn any_told() -> impl Strategy<Value = Told> {
        let phase = prop::sample::select(vec![Phase::Running, Phase::Stopped, Phase::Failed, Phase::Gone]);
        let row = (0usize..4, phase, 0u32..3);
        let account = prop::sample::select(vec!["team", "lab"]);
        prop_oneof![
            4 => (account, prop::collection::vec(row, 0..4)).prop_map(|(account, rows)| Told::Poll(account, rows)),
            2 => prop::sample::select(vec!['j', 'o', 'g', 'f', ' ', '/', 'a', 'h']).prop_map(Told::Key),
            2 => (1i64..40).prop_map(Told::Wait),
        ]
    }

    proptest! {
        /// What is left as it was because nothing changed is what would have been made anew.
        #[test]
        fn lines_and_sums_are_always_of_the_world_as_it_is(story in prop::collection::vec(any_told(), 1..25)) {
            let mut now = samples::at("10:00:00");
            let mut state = empty(now);
            for told in story {
                now += SignedDuration::from_millis(400);
                match told {
                    Told::Poll(account, rows) => {
                        let mut rows: Vec<Instance> = rows
                            .into_iter()
                            .map(|(id, phase, hourly)| samples::instance(["a", "b", "c", "d"][id], phase, &hourly.to_string()))
                            .collect();
                        rows.dedup_by(|a, b| a.id == b.id);
                        polled(&mut state, account, rows, now);
                    }
                    Told::Key(key) => drop(take(&mut state, Event::View(ViewEvent::Key(Key::char(key))), now)),
                    Told::Wait(seconds) => {
                        now += SignedDuration::from_secs(seconds);
                        take(&mut state, Event::World(WorldEvent::Tick), now);
                    }
                }
                settle(&mut state, now);
                let mut anew = state.clone();
                anew.view.fleet.stale = true;
                settle(&mut anew, now);
                prop_assert_eq!(&state.view.fleet.lines, &anew.view.fleet.lines);
                prop_assert_eq!(&state.view.fleet.sums, &anew.view.fleet.sums);
                prop_assert_eq!(state.view.attention, anew.view.attention);
                prop_assert_eq!(state.view.fleet.hidden, anew.view.fleet.hidden);
                prop_assert_eq!(&state.world.totals, &state.world.fleet.burn());
            }
        }
    }
}
