//! The Spend view: which days it shows, what the books were asked about them, and what they come to with what
//! is still open.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use providers::model::{AccountName, Identity, ProviderName};
use providers::money::Currency;

use super::listing::{Line, Listing};
use super::notes::{Note, notes};
use super::state::World;
use crate::app::effect::Effect;
use crate::rules::spend::{
    Amounts, Answer, BalanceChange, Billable, By, Cell, Evidence, Exact, Group, Key, Period, Question, Range, Report,
    Sums, Terms, adds_up, date_of, open_cells,
};

/// Decimal places of the amounts on the screen.
const CENTS: u32 = 2;
/// What is open is added up anew this often.
const TICK: SignedDuration = SignedDuration::from_secs(5);
/// What balances tell is asked again when it is so old.
const BALANCES: SignedDuration = SignedDuration::from_mins(10);
/// From so many columns on days, total, evidence and waste have room in one line.
const ONE_LINE_FROM: u16 = 110;
/// What one should know has so many lines at most: the rest stands behind the total.
const NOTE_LINES: usize = 2;
/// Each so many lines or resources add one tick to that, up to so many.
const MANY: usize = 2000;
const SLOWEST: usize = 6;

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpendLine {
    Group(Currency, Key),
    /// All groups of a currency.
    Total(Currency),
}

/// What the Spend view of one screen shows.
#[derive(Clone, Debug, Default)]
pub struct SpendView {
    pub list: Listing,
    pub by: By,
    pub range: Range,
    /// So many ranges before the present one.
    pub back: i32,
    /// Times are told by how long ago they are.
    pub ago: bool,
    /// `None` until the books have answered for the first time.
    pub shown: Option<Spent>,
    days: Asked,
    resources: Asked,
    balances: Asked,
    /// What the balances tell of these days, what was open then included, and when that was.
    moved: Option<(Period, Timestamp, Vec<BalanceChange>)>,
    /// What is asked for the window over the view.
    behind: Asked,
    /// The closed part of `shown`.
    closed: Closed,
}

/// What was spent, as of one moment.
#[derive(Clone, Debug)]
pub struct Spent {
    pub period: Period,
    pub by: By,
    pub report: Report,
    /// The group of each line of the list; `None` for a total.
    pub rows: Vec<Option<usize>>,
    /// All groups of a currency together, in the order of the list.
    pub totals: Vec<Group>,
    /// Currencies of which the rounded rows do not add up to the rounded total.
    pub uneven: Vec<Currency>,
    /// Of all that was spent: also of what the grouping does not tell apart.
    pub total: Sums,
    pub days: BTreeMap<(Currency, Date), Amounts>,
    /// What one should know about the total, the most important first.
    pub notes: Vec<Note>,
    /// The present day, in the zone of the books.
    pub today: Date,
    as_of: Timestamp,
}

/// A question to the books, and the latest answer to it.
#[derive(Clone, Debug, Default)]
struct Asked {
    question: Option<Question>,
    /// What the books held when they were asked.
    version: u64,
    in_flight: bool,
    answer: Option<Answer>,
    /// How many answers there were.
    answers: u64,
}

impl Asked {
    /// Asks what was not asked yet, and again what the books know more of since. One question at a time.
    fn ask(&mut self, question: Question, version: u64) -> Option<Effect> {
        let same = self.question.as_ref() == Some(&question);
        if same && (self.in_flight || self.version == version) {
            return None;
        }
        // What is known of the very same days stands until there is more.
        self.answer.take_if(|answer| answer.question != question);
        self.question = Some(question.clone());
        (self.version, self.in_flight) = (version, true);
        Some(Effect::AskSpend(question))
    }

    fn take(&mut self, answer: &Answer) {
        if self.in_flight && self.question.as_ref() == Some(&answer.question) {
            self.in_flight = false;
            self.answers += 1;
            self.answer = Some(answer.clone());
        }
    }

    /// The answer to a question, as long as the books hold nothing more.
    fn current(&self, question: &Question, version: u64) -> Option<&Answer> {
        let current = !self.in_flight && self.version == version;
        self.answer.as_ref().filter(|answer| current && answer.question == *question)
    }
}

/// Days and grouping, and the numbers of the answers about days, resources and balances.
type Of = (Period, By, [u64; 3]);

/// The closed part of what is shown, grouped once an answer.
#[derive(Clone, Debug, Default)]
struct Closed {
    /// Which days and grouping, and which answers it was made of.
    of: Option<Of>,
    cells: Vec<Cell>,
    total: Sums,
    days: BTreeMap<(Currency, Date), Amounts>,
    billed: bool,
    names: BTreeMap<Identity, String>,
}

impl SpendView {
    /// The days that are to be shown.
    pub fn period(&self, today: Date) -> Period {
        self.range.period(today, self.back)
    }

    /// The books are asked for other days, or something else, than what is shown.
    pub fn is_waiting(&self, world: &World, now: Timestamp) -> bool {
        let period = self.period(date_of(now, &world.spending.zone));
        self.shown.as_ref().is_none_or(|shown| (shown.period, shown.by) != (period, self.by))
    }

    /// So many lines its sums would like to have on a screen of this width.
    pub fn lines_above(&self, width: u16) -> u16 {
        let Some(shown) = &self.shown else { return 1 };
        let currencies = shown.total.0.len().max(1) as u16;
        // The first line also names the days; where it is narrow, it is two.
        let narrow = width < ONE_LINE_FROM;
        let notes = shown.notes.len().div_ceil(if narrow { 2 } else { 4 }).min(NOTE_LINES);
        currencies + u16::from(narrow) + (notes as u16).max(u16::from(currencies > 1))
    }

    /// The view was left and is looked at again: what it knew may be old, and an answer may have been lost.
    pub(super) fn opened(&mut self) {
        self.days.question = None;
        self.resources.question = None;
        self.balances.question = None;
    }

    /// The questions that are open.
    pub(super) fn ask(&mut self, world: &World, behind: Option<Question>, now: Timestamp) -> Vec<Effect> {
        if !world.remembered {
            return Vec::new();
        }
        let period = self.period(date_of(now, &world.spending.zone));
        let version = world.spending.version;
        let mut effects: Vec<Effect> = self.days.ask(Question::Days(period), version).into_iter().collect();
        if self.by == By::Instance {
            effects.extend(self.resources.ask(Question::Resources(period), version));
        }
        match behind {
            Some(question) => effects.extend(self.behind.ask(question, version)),
            None => self.behind = Asked::default(),
        }
        effects.dedup();
        // They take the books the longest and change slowly.
        let question = Question::Balances(period);
        let known = self.moved.as_ref().is_some_and(|(_, as_of, _)| now.duration_since(*as_of) < BALANCES);
        if !known || self.balances.question.as_ref() != Some(&question) {
            effects.extend(self.balances.ask(question, version));
        }
        effects
    }

    /// Takes in an answer to whatever asked for it.
    pub(super) fn answered(&mut self, answer: &Answer) {
        for asked in [&mut self.days, &mut self.resources, &mut self.balances, &mut self.behind] {
            asked.take(answer);
        }
    }

    /// The latest answer for the window over the view; `None` while it is asked for.
    pub(super) fn behind(&self) -> Option<&Answer> {
        self.behind.answer.as_ref()
    }

    /// Which answer that is, to tell it from the next one.
    pub(super) fn answers_behind(&self) -> u64 {
        self.behind.answers
    }

    /// Whether figures or lines are to be made anew.
    pub(super) fn is_due(&self, world: &World, now: Timestamp) -> bool {
        let Some(of) = self.ready(world, now) else { return false };
        let age = self.shown.as_ref().map(|shown| now.duration_since(shown.as_of));
        // What is long to add up is added up less often: no frame waits for it twice in a row.
        let size = self.list.lines.len().max(world.spending.meter.running().len());
        let tick = TICK * (1 + size / MANY).min(SLOWEST) as i32;
        self.closed.of != Some(of) || age.is_none_or(|age| !(SignedDuration::ZERO..tick).contains(&age))
    }

    /// What would be shown, when the books have told all of it.
    fn ready(&self, world: &World, now: Timestamp) -> Option<Of> {
        let period = self.period(date_of(now, &world.spending.zone));
        let version = world.spending.version;
        self.days.current(&Question::Days(period), version)?;
        let resources = match self.by {
            By::Instance => {
                self.resources.current(&Question::Resources(period), version).map(|_| self.resources.answers)?
            }
            _ => 0,
        };
        Some((period, self.by, [self.days.answers, resources, self.balances.answers]))
    }

    /// Makes figures and lines anew, as far as the books have answered. Until then what is shown stays: an entry
    /// that was just closed stands in neither the open lines nor the former answer.
    pub(super) fn rebuild(&mut self, world: &World, first: Currency, resort: bool, now: Timestamp) {
        let Some(of) = self.ready(world, now) else { return };
        let spending = &world.spending;
        let (period, by, ..) = of;
        if self.balances.current(&Question::Balances(period), spending.version).is_some() {
            // Once with what was open beside it, it holds whatever is closed meanwhile.
            let moved = self.balances.answer.take().into_iter().flat_map(|answer| answer.balances);
            self.moved = Some((period, now, moved.map(|change| change.with_open(&spending.meter, now)).collect()));
        }
        self.moved.take_if(|(of, ..)| *of != period);
        let Some(days) = self.days.answer.as_ref() else { return };
        if self.closed.of != Some(of) {
            let answer = self.resources.answer.as_ref().filter(|_| by == By::Instance).unwrap_or(days);
            self.closed = Closed::of(of, days, answer);
        }
        let open_days = open_cells(&spending.meter, period, false, &spending.zone, now);
        let mut total = self.closed.total.clone();
        let mut per_day = self.closed.days.clone();
        for cell in &open_days {
            total.add_cell(cell);
            add_to(&mut per_day, cell);
        }
        let open = match by {
            By::Instance => open_cells(&spending.meter, period, true, &spending.zone, now),
            _ => open_days,
        };
        let cells = [self.closed.cells.clone(), reduced(&open, by)].concat();
        let mut report = Report::new(&cells, by, |account| provider_of(world, account));
        report.groups.sort_by_key(|group| (group.currency != first, group.currency));
        let same = self.shown.as_ref().is_some_and(|shown| (shown.period, shown.by) == (period, by));
        if same && !resort {
            keep_order(&mut report.groups, &self.list.lines);
        }
        if !same {
            (self.list.cursor, self.list.top) = (None, 0);
            self.list.cursor_was = 0;
            // Of days the latest one is looked for first.
            if let Some(last) = report.groups.iter().rfind(|group| by == By::Day && group.currency == first) {
                self.list.cursor = Some(Line::Spend(SpendLine::Group(first, last.key.clone())));
                self.list.touched = true;
            }
        }
        let moved = self.moved.as_ref().map(|(.., moved)| moved.as_slice()).unwrap_or_default();
        let notes = notes(world, period, &total, self.closed.billed, days, moved);
        let (lines, rows) = lines(&report.groups);
        self.list.lines = lines;
        self.list.unsorted = same && !resort && by != By::Day;
        self.list.stale = false;
        let today = date_of(now, &spending.zone);
        let uneven = uneven(&report);
        let totals = totals(&report.groups);
        self.shown =
            Some(Spent { period, by, report, rows, totals, uneven, total, days: per_day, notes, today, as_of: now });
    }

    /// What a resource is called; `None` when nobody ever said.
    pub fn name<'a>(&'a self, world: &'a World, identity: &Identity) -> Option<&'a str> {
        let answered = self.closed.names.get(identity).map(String::as_str);
        let behind = || {
            let cells = self.behind.answer.as_ref().map(|answer| answer.cells.as_slice()).unwrap_or_default();
            cells.iter().find_map(|cell| match &cell.billable {
                Some(Billable::Resource { identity: found, name }) if found == identity => name.as_deref(),
                _ => None,
            })
        };
        let fleet = &world.fleet;
        let listed = || match fleet.instances.get(identity) {
            Some(known) => known.row.name.as_deref(),
            None => fleet.storage.get(identity).and_then(|known| known.row.name.as_deref()),
        };
        answered.or_else(listed).or_else(behind).filter(|name| !name.trim().is_empty())
    }

    /// The closed cells of the days that are shown.
    pub(super) fn closed_days(&self) -> &[Cell] {
        self.days.answer.as_ref().map(|answer| answer.cells.as_slice()).unwrap_or_default()
    }

    /// The closed cells of the resources that are shown.
    pub(super) fn closed_resources(&self) -> &[Cell] {
        self.resources.answer.as_ref().map(|answer| answer.cells.as_slice()).unwrap_or_default()
    }
}

impl Spent {
    /// The moment that it is of.
    pub fn as_of(&self) -> Timestamp {
        self.as_of
    }

    pub fn group(&self, currency: Currency, key: &Key) -> Option<&Group> {
        self.report.groups.iter().find(|group| group.currency == currency && group.key == *key)
    }

    /// The currencies in which something was spent, the first one first.
    pub fn currencies(&self, first: Currency) -> Vec<Currency> {
        let mut currencies: Vec<Currency> = self.total.0.keys().copied().collect();
        currencies.sort_by_key(|currency| *currency != first);
        currencies
    }
}

impl Closed {
    fn of(of: Of, days: &Answer, answer: &Answer) -> Self {
        let mut closed = Closed { of: Some(of), ..Closed::default() };
        for cell in &days.cells {
            closed.total.add_cell(cell);
            closed.billed |= cell.evidence == Evidence::Billed;
            add_to(&mut closed.days, cell);
        }
        for cell in &answer.cells {
            if let Some(Billable::Resource { identity, name: Some(name) }) = &cell.billable {
                closed.names.insert(identity.clone(), name.clone());
            }
        }
        closed.cells = reduced(&answer.cells, of.1);
        closed
    }
}

fn add_to(days: &mut BTreeMap<(Currency, Date), Amounts>, cell: &Cell) {
    let day = days.entry((cell.currency, cell.day)).or_default();
    day.add(&cell.terms, cell.evidence, cell.replaced, cell.amount, cell.gpu_ms);
}

/// What reduced cells differ in.
type Kind = (Date, AccountName, Option<Billable>, Terms, Evidence, bool, Currency);

/// The cells without what a grouping does not tell apart: far fewer. Names are left out, too: two of them for
/// one resource would make two of it.
pub(super) fn reduced(cells: &[Cell], by: By) -> Vec<Cell> {
    let nobody = AccountName::from("");
    let mut places: BTreeMap<Kind, (Exact, i64)> = BTreeMap::new();
    for cell in cells {
        let by_account = matches!(by, By::Account | By::Provider | By::Instance);
        let account = if by_account { cell.account.clone() } else { nobody.clone() };
        let billable = cell.billable.as_ref().filter(|_| by == By::Instance).map(nameless);
        let mut terms = cell.terms.clone();
        if by != By::Project {
            terms.project = None;
        }
        let day = if by == By::Day { cell.day } else { Date::ZERO };
        let place = places.entry((day, account, billable, terms, cell.evidence, cell.replaced, cell.currency));
        let sum = place.or_default();
        sum.0 += cell.amount;
        sum.1 += cell.gpu_ms;
    }
    let cell = |((day, account, billable, terms, evidence, replaced, currency), (amount, gpu_ms))| Cell {
        day,
        account,
        billable,
        terms,
        evidence,
        replaced,
        currency,
        amount,
        gpu_ms,
    };
    places.into_iter().map(cell).collect()
}

fn nameless(billable: &Billable) -> Billable {
    match billable {
        Billable::Resource { identity, .. } => Billable::Resource { identity: identity.clone(), name: None },
        Billable::Product(name) => Billable::Product(name.clone()),
    }
}

/// Whose an account is, or was before it was taken out of the config; `None` when nobody knows it any more.
pub(super) fn provider_of(world: &World, account: &AccountName) -> Option<ProviderName> {
    let former = || world.spending.former_provider(account);
    world.fleet.account(account).map(|account| &account.provider).or_else(former).cloned()
}

/// The groups stay where they were; new ones come last.
fn keep_order(groups: &mut [Group], before: &[Line]) {
    let places: BTreeMap<&SpendLine, usize> = before
        .iter()
        .enumerate()
        .filter_map(|(at, line)| match line {
            Line::Spend(line) => Some((line, at)),
            _ => None,
        })
        .collect();
    let place = |group: &Group| places.get(&SpendLine::Group(group.currency, group.key.clone())).copied();
    // Currencies stay apart: each begins where its first group is.
    let mut start = 0;
    while let Some(first) = groups.get(start) {
        let currency = first.currency;
        let length = groups[start..].iter().take_while(|group| group.currency == currency).count();
        groups[start..start + length].sort_by_cached_key(|group| place(group).unwrap_or(usize::MAX));
        start += length;
    }
}

/// The lines of the list, and the group that each is about.
fn lines(groups: &[Group]) -> (Vec<Line>, Vec<Option<usize>>) {
    let mut lines = Vec::with_capacity(groups.len() + 1);
    let mut rows = Vec::with_capacity(groups.len() + 1);
    for (at, group) in groups.iter().enumerate() {
        lines.push(Line::Spend(SpendLine::Group(group.currency, group.key.clone())));
        rows.push(Some(at));
        if groups.get(at + 1).is_none_or(|next| next.currency != group.currency) {
            lines.push(Line::Spend(SpendLine::Total(group.currency)));
            rows.push(None);
        }
    }
    (lines, rows)
}

/// All groups of each currency together.
fn totals(groups: &[Group]) -> Vec<Group> {
    let mut totals: Vec<Group> = Vec::new();
    for group in groups {
        match totals.last_mut().filter(|total| total.currency == group.currency) {
            None => totals.push(group.clone()),
            Some(total) => {
                total.amounts.merge(&group.amounts);
                for (component, part) in &group.components {
                    *total.components.entry(*component).or_default() += *part;
                }
            }
        }
    }
    totals
}

/// The currencies of which the rows, each rounded, come to something else than the total.
fn uneven(report: &Report) -> Vec<Currency> {
    let mut parts: BTreeMap<Currency, Vec<Exact>> = BTreeMap::new();
    for group in &report.groups {
        parts.entry(group.currency).or_default().push(group.amounts.total());
    }
    parts.retain(|_, parts| !adds_up(parts, CENTS));
    parts.into_keys().collect()
}
