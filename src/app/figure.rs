//! Where a figure of the Spend view comes from: a group's parts and its dearest resources, or a resource's
//! entries, as lines of a window.

use jiff::Timestamp;
use providers::model::{AccountName, Component, Identity};
use providers::money::Currency;

use super::notes::{Note, drift};
use super::spend::{SpendLine, SpendView, provider_of, reduced};
use super::state::World;
use crate::rules::spend::{
    Amounts, Billable, By, COMPONENTS, Cell, Charge, Entry, Evidence, Exact, Key, Period, Question, Report, Span,
    open_cells,
};

/// So many of the dearest are listed.
const DEAREST: usize = 20;

/// A figure, and what it is made of.
#[derive(Clone, Debug)]
pub struct Figure {
    pub about: SpendLine,
    pub period: Period,
    pub lines: Vec<Told>,
    /// The first line in the window.
    pub top: usize,
    /// Which figures of the view, and which answer, the lines were made of.
    made_of: Option<(Timestamp, u64)>,
}

/// A line of the window.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    Blank,
    /// What was charged, by evidence and in all; the heads of the components below.
    Heads,
    Component(Component, Amounts),
    Sum(Amounts),
    Wasted(Exact),
    /// GPU-milliseconds.
    GpuTime(i64),
    Note(Note),
    /// Above the dearest resources.
    Dearest,
    Resource {
        account: AccountName,
        billable: Billable,
        amounts: Amounts,
    },
    /// So many more than are listed.
    More(usize),
    /// Above the entries.
    Entries,
    Entry(Entry),
    /// What is not closed yet; `running` when it goes on.
    Open {
        span: Span,
        running: bool,
    },
    /// Says what figures in brackets are: our own for a time that was billed.
    Replaced,
    /// The books are being asked.
    Reading,
    /// The books hold no entry of it in these days.
    NoEntry,
}

impl Figure {
    pub fn new(about: SpendLine, period: Period) -> Self {
        Figure { about, period, lines: vec![Told::Reading], top: 0, made_of: None }
    }

    fn currency(&self) -> Currency {
        match &self.about {
            SpendLine::Group(currency, _) | SpendLine::Total(currency) => *currency,
        }
    }

    /// The resource that it is about, where it is one.
    fn billable(&self) -> Option<(&AccountName, &Billable)> {
        match &self.about {
            SpendLine::Group(_, Key::Billable(account, billable)) => Some((account, billable)),
            _ => None,
        }
    }

    /// What the books are to be asked for it.
    pub fn question(&self) -> Question {
        match (&self.about, self.billable()) {
            (_, Some((account, billable))) => {
                Question::Entries { account: account.clone(), billable: billable.clone(), period: self.period }
            }
            (SpendLine::Group(_, Key::Day(day)), None) => Question::Resources(Period::day(*day)),
            _ => Question::Resources(self.period),
        }
    }

    /// How many lines a screen of this height shows.
    pub fn page(height: u16) -> usize {
        // Header, footer and the window's border.
        usize::from(height.saturating_sub(6)).max(1)
    }

    pub fn scroll(&mut self, by: i32, height: u16) {
        let last = self.lines.len().saturating_sub(Self::page(height));
        self.top = self.top.saturating_add_signed(by as isize).min(last);
    }

    /// Makes the lines anew when figures or answers are others.
    pub fn refresh(&mut self, view: &SpendView, world: &World, as_of: Timestamp, now: Timestamp) {
        let made_of = Some((as_of, view.answers_behind()));
        if self.made_of == made_of {
            return;
        }
        self.made_of = made_of;
        let (zone, meter) = (&world.spending.zone, &world.spending.meter);
        let by_resource = self.billable().is_some();
        let closed = if by_resource { view.closed_resources() } else { view.closed_days() };
        let open = open_cells(meter, self.period, by_resource, zone, now);
        let cells: Vec<Cell> =
            closed.iter().chain(&open).filter(|cell| self.holds(world, cell, cell.day)).cloned().collect();
        let mut lines = parts(&cells, self.currency());
        lines.push(Told::Blank);
        match self.billable() {
            Some((_, billable)) => lines.extend(self.entries(view, world, billable, now)),
            None => lines.extend(self.dearest(view, world, now)),
        }
        if self.about == SpendLine::Total(self.currency())
            && let Some(shown) = &view.shown
        {
            let told: Vec<Told> = shown.notes.iter().cloned().map(Told::Note).collect();
            // Some of them are told with the parts.
            let more: Vec<Told> = told.into_iter().filter(|note| !lines.contains(note)).collect();
            if !more.is_empty() {
                lines.push(Told::Blank);
                lines.extend(more);
            }
        }
        self.lines = lines;
    }

    /// Whether a piece belongs to it. Pieces of resources carry no day: theirs is that of the question.
    fn holds(&self, world: &World, cell: &Cell, day: jiff::civil::Date) -> bool {
        let SpendLine::Group(currency, key) = &self.about else { return cell.currency == self.currency() };
        let same = match key {
            Key::Project(project) => cell.terms.project == *project,
            Key::Provider(provider) => provider_of(world, &cell.account) == *provider,
            Key::Account(account) => cell.account == *account,
            Key::Component(component) => cell.terms.component == *component,
            Key::Day(wanted) => day == *wanted,
            Key::Billable(account, billable) => {
                cell.account == *account && cell.billable.as_ref().is_some_and(|other| same_thing(other, billable))
            }
        };
        cell.currency == *currency && same
    }

    fn dearest(&self, view: &SpendView, world: &World, now: Timestamp) -> Vec<Told> {
        let mut lines = vec![Told::Dearest];
        let (Some(answer), Question::Resources(period)) = (view.behind(), self.question()) else {
            lines.push(Told::Reading);
            return lines;
        };
        let open = open_cells(&world.spending.meter, period, true, &world.spending.zone, now);
        let cells: Vec<Cell> =
            answer.cells.iter().chain(&open).filter(|cell| self.holds(world, cell, period.from)).cloned().collect();
        let report = Report::new(&reduced(&cells, By::Instance), By::Instance, |_| None);
        let count = report.groups.len();
        for group in report.groups.into_iter().take(DEAREST) {
            if let Key::Billable(account, billable) = group.key {
                lines.push(Told::Resource { account, billable, amounts: group.amounts });
            }
        }
        if count > DEAREST {
            lines.push(Told::More(count - DEAREST));
        }
        lines
    }

    fn entries(&self, view: &SpendView, world: &World, billable: &Billable, now: Timestamp) -> Vec<Told> {
        let mut lines = vec![Told::Entries];
        let Some(answer) = view.behind() else {
            lines.push(Told::Reading);
            return lines;
        };
        let zone = &world.spending.zone;
        let (start, end) = (self.period.start(zone), self.period.end(zone));
        let of_currency = answer.entries.iter().filter(|entry| entry.currency == self.currency());
        lines.extend(of_currency.cloned().map(Told::Entry));
        if let Billable::Resource { identity, .. } = billable {
            lines.extend(open(world, identity, self.currency(), start, end, now));
        }
        if answer.entries.iter().any(|entry| entry.replaced) {
            lines.push(Told::Replaced);
        }
        if lines.len() == 1 {
            lines.push(Told::NoEntry);
        }
        lines
    }
}

/// What is open of a resource, within some time.
fn open<'a>(
    world: &'a World,
    identity: &Identity,
    currency: Currency,
    start: Timestamp,
    end: Timestamp,
    now: Timestamp,
) -> impl Iterator<Item = Told> + use<'a> {
    let spans = world.spending.meter.open_parts_of(identity, now).map(|part| part.to_span());
    spans
        .filter(move |span| span.rate.currency == currency)
        .map(move |span| Span { from: span.from.max(start), to: span.to.min(end), ..span })
        .filter(|span| span.from < span.to)
        .map(move |span| Told::Open { running: span.to.as_millisecond() == now.as_millisecond(), span })
}

fn same_thing(one: &Billable, other: &Billable) -> bool {
    match (one, other) {
        (Billable::Resource { identity: one, .. }, Billable::Resource { identity: other, .. }) => one == other,
        (Billable::Product(one), Billable::Product(other)) => one == other,
        _ => false,
    }
}

/// What was charged, by component and evidence, and what is to be known besides.
fn parts(cells: &[Cell], currency: Currency) -> Vec<Told> {
    let mut total = Amounts::default();
    let mut lines = vec![Told::Heads];
    for component in COMPONENTS {
        let mut amounts = Amounts::default();
        for cell in cells.iter().filter(|cell| cell.terms.component == component) {
            amounts.add(&cell.terms, cell.evidence, cell.replaced, cell.amount, cell.gpu_ms);
        }
        total.merge(&amounts);
        let charged = |evidence| {
            let of = |cell: &&Cell| {
                cell.terms.component == component && cell.terms.charge == Charge::Certain && cell.evidence == evidence
            };
            cells.iter().any(|cell| of(&cell))
        };
        if Evidence::ALL.into_iter().any(charged) {
            lines.push(Told::Component(component, amounts));
        }
    }
    if lines.len() != 2 {
        lines.push(Told::Sum(total));
    }
    if !total.wasted.is_zero() {
        lines.push(Told::Wasted(total.wasted));
    }
    if total.gpu_ms > 0 {
        lines.push(Told::GpuTime(total.gpu_ms));
    }
    if !total.possible.is_zero() {
        lines.push(Told::Note(Note::Possible { currency, amount: total.possible }));
    }
    if !total.prepaid.is_zero() {
        lines.push(Told::Note(Note::Prepaid { currency, amount: total.prepaid, unused: total.unused }));
    }
    lines.extend(drift(currency, &total).map(Told::Note));
    lines
}
