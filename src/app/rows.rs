//! From the state to the lines of the fleet: filtered, grouped, sorted, and at rest while people look.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;
use providers::model::{AccountName, Identity, Instance, Market, Phase, ProviderName};

use super::message::{GroupName, QuickName, SortName};
use super::state::{View, World};
use crate::rules::fleet::{Account, Known, Totals};
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
    let provider = provider_of(world, known)?;
    world.settings.project(provider, &known.identity, &known.row)
}

/// An instance with what is looked up for it.
struct Row<'a> {
    known: &'a Known<Instance>,
    provider: Option<&'a ProviderName>,
    needs_you: bool,
}

impl<'a> Row<'a> {
    fn project(&self, world: &'a World) -> Option<&'a str> {
        world.settings.project(self.provider?, &self.known.identity, &self.known.row)
    }

    fn group_key(&self, world: &World, name: GroupName) -> Option<GroupKey> {
        Some(match name {
            GroupName::None => return None,
            GroupName::Account => GroupKey::Account(self.known.identity.account.clone()),
            GroupName::Provider => GroupKey::Provider(self.provider?.clone()),
            GroupName::Project => GroupKey::Project(self.project(world).map(str::to_owned)),
            GroupName::Market => GroupKey::Market(MarketName::of(self.known.row.market)),
        })
    }
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

/// Computes the lines anew. With `resort` rows take the places that the order gives them; without it
/// those that were there keep theirs, and new ones come last in their group.
pub fn rebuild(world: &World, view: &mut View, resort: bool, now: Timestamp) {
    let words: Vec<String> = view.filter.split_whitespace().map(str::to_lowercase).collect();
    let operations: BTreeMap<&Identity, &Operation> =
        world.under_way().map(|operation| (&operation.target.identity, operation)).collect();
    if resort {
        view.ranks.clear();
    }
    view.unsorted = !resort;
    (view.attention, view.hidden) = (0, 0);

    // Thousands of rows are far apart in memory: one walk, in the order of identities, looks at each once.
    let mut ranks = view.ranks.iter().peekable();
    let mut groups = Groups::new(world, view);
    let mut placed = Vec::with_capacity(world.fleet.instances.len());
    let mut account: Option<&Account> = None;
    for known in world.fleet.instances.values() {
        let identity = &known.identity;
        if account.is_none_or(|account| account.name != identity.account) {
            account = world.fleet.account(&identity.account);
        }
        let operation = operations.get(identity).copied();
        let provider = account.map(|account| &account.provider);
        let row = Row { known, provider, needs_you: needs_you(known, operation) };
        view.attention += usize::from(row.needs_you);
        if !passes(world, &row, view.quick, &words) {
            view.hidden += 1;
            continue;
        }
        // Equal ones share their texts, so that asking for that first reads none.
        while ranks.next_if(|(ranked, _)| ranked != identity && ranked < identity).is_some() {}
        let rank = ranks.next_if(|(ranked, _)| ranked == identity).map_or(usize::MAX, |(_, rank)| *rank);
        if let Some(group) = groups.add(world, &row) {
            placed.push(Placed { rank, key: sort_key(&row, view.sort, now), number: placed.len(), identity, group });
        }
    }
    placed.sort_by(|a, b| a.rank.cmp(&b.rank).then_with(|| a.key.cmp(&b.key)));

    let next = view.ranks.iter().map(|(_, last)| last + 1).max().unwrap_or(0);
    let fresh = placed.iter().filter(|row| row.rank == usize::MAX).enumerate();
    let mut fresh: Vec<_> = fresh.map(|(place, row)| (row.number, row.identity, next + place)).collect();
    fresh.sort_unstable_by_key(|(number, ..)| *number);
    let merged = !view.ranks.is_empty() && !fresh.is_empty();
    view.ranks.extend(fresh.into_iter().map(|(_, identity, rank)| (identity.clone(), rank)));
    if merged {
        view.ranks.sort();
    }
    let groups = groups.ordered(&placed);
    view.sums = groups.iter().filter_map(|group| Some((group.key.clone()?, group.sum.clone()))).collect();
    view.lines = lines(view, groups);
    view.marks.retain(|identity| world.fleet.instances.get(identity).is_some_and(|known| !known.is_gone()));
    view.lines_stale = false;
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
    fn new(world: &World, view: &View) -> Self {
        let name = grouping(world, view);
        // An account without instances has a balance and a state to show all the same.
        let fixed = name == GroupName::Account && view.filter.is_empty() && view.quick == QuickName::All;
        let mut groups = Groups { name, fixed, groups: Vec::new(), places: BTreeMap::new(), last: 0 };
        if fixed {
            for account in &world.fleet.accounts {
                groups.place(Some(GroupKey::Account(account.name.clone())));
            }
        }
        groups
    }

    /// Counts a row into its group. Returns the group's number; `None` when it belongs to none.
    fn add(&mut self, world: &World, row: &Row<'a>) -> Option<usize> {
        let key = row.group_key(world, self.name);
        if key.is_none() && self.name != GroupName::None {
            return None;
        }
        let at = self.place(key);
        let sum = &mut self.groups[at].sum;
        sum.rows += 1;
        sum.attention += usize::from(row.needs_you);
        sum.totals.add_instance(row.known);
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
    fn ordered(mut self, placed: &[Placed<'a>]) -> Vec<Group<'a>> {
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

fn lines(view: &View, groups: Vec<Group>) -> Vec<Line> {
    let mut lines = Vec::new();
    for group in groups {
        let folded = group.key.as_ref().is_some_and(|key| view.folded.contains(key));
        lines.extend(group.key.map(Line::Group));
        if !folded {
            lines.extend(group.members.into_iter().map(|identity| Line::Instance(identity.clone())));
        }
    }
    lines
}

/// Every word must be found somewhere in what the row is called.
fn passes(world: &World, row: &Row, quick: QuickName, words: &[String]) -> bool {
    let instance = &row.known.row;
    let quick_passes = match quick {
        QuickName::All => true,
        QuickName::Off => {
            matches!(instance.phase, Phase::Stopped | Phase::Reclaimed | Phase::Unreachable | Phase::Failed)
        }
        QuickName::Spot => instance.market == Market::Spot,
    };
    if !quick_passes || words.is_empty() {
        return quick_passes;
    }
    let texts = [
        instance.name.as_deref().unwrap_or_default(),
        instance.id.as_str(),
        row.known.identity.account.as_str(),
        row.provider.map(ProviderName::as_str).unwrap_or_default(),
        instance.region.as_deref().unwrap_or_default(),
        instance.gpus.as_ref().map(|gpus| gpus.model.as_str()).unwrap_or_default(),
        row.known.phase().word(),
        if instance.market == Market::Spot { "spot" } else { "" },
    ];
    words.iter().all(|word| {
        texts.iter().any(|text| holds(text, word))
            || row.project(world).is_some_and(|project| holds(project, word))
            || instance.labels.iter().any(|(label, value)| match word.contains('=') {
                true => holds(&format!("{label}={value}"), word),
                false => holds(label, word) || holds(value, word),
            })
    })
}

/// Whether a text holds a word, which is in lower case, in any case.
fn holds(text: &str, word: &str) -> bool {
    if !text.is_ascii() {
        return text.to_lowercase().contains(word);
    }
    let word = word.as_bytes();
    let mut parts = text.as_bytes().windows(word.len());
    parts.any(|part| part[0].eq_ignore_ascii_case(&word[0]) && part.eq_ignore_ascii_case(word))
}

/// Rows are compared by this, smallest first. Money only through picos of one and the same currency order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SortKey<'a> {
    gone: bool,
    attention: Reverse<bool>,
    waste: Reverse<i64>,
    cost: Reverse<i64>,
    age: Option<Timestamp>,
    name: Cow<'a, str>,
}

fn sort_key<'a>(row: &Row<'a>, sort: SortName, now: Timestamp) -> SortKey<'a> {
    let (known, instance) = (row.known, &row.known.row);
    let cost = known.rates().lines.iter().map(|line| line.rate.picos()).fold(0, i64::saturating_add);
    let stopped = matches!(instance.phase, Phase::Stopped | Phase::Reclaimed);
    let attention = sort == SortName::Attention;
    let by_cost = matches!(sort, SortName::Attention | SortName::Cost);
    SortKey {
        gone: known.is_gone(),
        attention: Reverse(attention && row.needs_you),
        waste: Reverse(if attention && stopped { cost } else { 0 }),
        cost: Reverse(if by_cost { cost } else { 0 }),
        age: (sort == SortName::Age).then(|| instance.started_at.or(instance.created_at).unwrap_or(now)),
        name: match sort {
            SortName::Age => Cow::Borrowed(""),
            _ => lower_case(instance.name.as_deref().unwrap_or(instance.id.as_str())),
        },
    }
}

fn lower_case(text: &str) -> Cow<'_, str> {
    let is_lower = text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
    if is_lower { Cow::Borrowed(text) } else { Cow::Owned(text.to_lowercase()) }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use jiff::tz::TimeZone;
    use proptest::prelude::*;
    use providers::money::Currency;
    use providers::provider::{Part, Poll, Reading};
    use rstest::rstest;

    use super::*;
    use crate::app::action::Key;
    use crate::app::event::{Event, ViewEvent, WorldEvent};
    use crate::app::state::{Fixed, State};
    use crate::app::update::{settle, start, take};
    use crate::rules::memory::{Collector, Memory};
    use crate::rules::samples;
    use crate::rules::settings::Rules;

    #[rstest]
    #[case("LLaMA-ft", "llama", true)]
    #[case("llama", "llama-ft", false)]
    #[case("训练 Ä1", "ä1", true)]
    #[case("plain", "练", false)]
    #[case("", "a", false)]
    fn a_word_is_found_in_any_case(#[case] text: &str, #[case] word: &str, #[case] expected: bool) {
        assert_eq!(holds(text, word), expected);
    }

    /// Two accounts, `team` and `lab`, of which the ledger knows nothing.
    fn empty(now: Timestamp) -> State {
        let account = |name: &str| Account::new(name.into(), "runpod".into(), false);
        let fixed = Fixed {
            demo: false,
            zone: TimeZone::UTC,
            currency: Currency::USD,
            notices: Vec::new(),
            config_path: String::new(),
            mouse: true,
        };
        let accounts = vec![account("team"), account("lab")];
        let mut state = State {
            world: World::new(accounts, Rules::default(), false, "ana@desk".to_owned(), now),
            view: View::new(fixed, Vec::new()),
            leaving: false,
        };
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
        };
        take(state, Event::World(WorldEvent::Polled { account, asked_at: now, poll: Box::new(poll) }), now);
    }

    fn ids(state: &State) -> Vec<&str> {
        let ids = state.view.lines.iter().filter_map(|line| match line {
            Line::Instance(identity) => Some(identity.id.as_str()),
            Line::Group(_) => None,
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
                anew.view.lines_stale = true;
                settle(&mut anew, now);
                prop_assert_eq!(&state.view.lines, &anew.view.lines);
                prop_assert_eq!(&state.view.sums, &anew.view.sums);
                prop_assert_eq!(state.view.attention, anew.view.attention);
                prop_assert_eq!(state.view.hidden, anew.view.hidden);
                prop_assert_eq!(&state.world.totals, &state.world.fleet.burn());
            }
        }
    }
}
