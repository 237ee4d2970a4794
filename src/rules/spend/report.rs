//! Spend grouped: by account, provider, project, instance, component or day.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use providers::model::{AccountName, Component, ProviderName};
use providers::money::Currency;
use serde::{Deserialize, Serialize};

use super::{Amounts, Billable, Cell, Charge, Evidence, Exact, Meter, Period, Span, Sums, Terms, start_of};

/// What spend is grouped by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    #[default]
    Project,
    Provider,
    Account,
    /// Instances, storage items and products.
    Instance,
    Component,
    Day,
}

impl By {
    pub const ALL: [By; 6] = [By::Project, By::Provider, By::Account, By::Instance, By::Component, By::Day];

    /// The word of the command line.
    pub fn word(self) -> &'static str {
        match self {
            By::Project => "project",
            By::Provider => "provider",
            By::Account => "account",
            By::Instance => "instance",
            By::Component => "component",
            By::Day => "day",
        }
    }
}

/// What a group stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// `None` for what belongs to no project.
    Project(Option<Arc<str>>),
    /// `None` when the account is not in the config any more.
    Provider(Option<ProviderName>),
    Account(AccountName),
    Billable(AccountName, Billable),
    Component(Component),
    Day(Date),
}

/// One group, in one currency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub key: Key,
    pub currency: Currency,
    pub amounts: Amounts,
    /// What was charged for each component; none that is not there.
    pub components: BTreeMap<Component, Exact>,
    /// Its part of what belongs to nobody, when that is shared out; it stands beside `amounts`, not in it.
    pub shared: Exact,
    /// What is taken from it then to be shared out; it stays in `amounts`.
    pub given: Exact,
}

/// Spend of a period, grouped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The dearest first, a currency at a time; days in their order.
    pub groups: Vec<Group>,
    pub total: Sums,
}

impl Report {
    /// Groups cells. `provider_of` tells whose an account is.
    pub fn new(cells: &[Cell], by: By, provider_of: impl Fn(&AccountName) -> Option<ProviderName>) -> Self {
        let mut groups: BTreeMap<(Currency, Key), Group> = BTreeMap::new();
        let mut total = Sums::default();
        for cell in cells {
            let key = match by {
                By::Project => Key::Project(cell.terms.project.clone()),
                By::Provider => Key::Provider(provider_of(&cell.account)),
                By::Account => Key::Account(cell.account.clone()),
                By::Instance => match &cell.billable {
                    Some(billable) => Key::Billable(cell.account.clone(), billable.clone()),
                    None => continue,
                },
                By::Component => Key::Component(cell.terms.component),
                By::Day => Key::Day(cell.day),
            };
            total.add_cell(cell);
            let group = groups.entry((cell.currency, key)).or_insert_with_key(|(currency, key)| Group {
                key: key.clone(),
                currency: *currency,
                amounts: Amounts::default(),
                components: BTreeMap::new(),
                shared: Exact::ZERO,
                given: Exact::ZERO,
            });
            group.amounts.add(&cell.terms, cell.evidence, cell.replaced, cell.amount, cell.gpu_ms);
            if cell.terms.charge == Charge::Certain && !cell.replaced {
                *group.components.entry(cell.terms.component).or_default() += cell.amount;
            }
        }
        let mut groups: Vec<Group> = groups.into_values().collect();
        if by != By::Day {
            groups.sort_by_key(|group| (group.currency, Reverse(group.amounts.total())));
        }
        Report { groups, total }
    }

    /// Shares what belongs to nobody among those who computed, in proportion to what their compute cost: all
    /// of the group without a project, and the storage items of every group. What is shared out stands in a
    /// column of its own; nothing is shared in a currency in which nobody computed.
    pub fn spread(&mut self) {
        let currencies: Vec<Currency> = self.total.0.keys().copied().collect();
        for currency in currencies {
            let mut groups: Vec<&mut Group> =
                self.groups.iter_mut().filter(|group| group.currency == currency).collect();
            let whole: Exact = groups.iter().map(|group| group.computed()).sum();
            if whole.is_zero() {
                continue;
            }
            for group in &mut groups {
                group.given = if group.is_nobodys() { group.amounts.total() } else { group.of(Component::Storage) };
            }
            let pool: Exact = groups.iter().map(|group| group.given).sum();
            let (mut reached, mut taken) = (Exact::ZERO, Exact::ZERO);
            for group in &mut groups {
                reached += group.computed();
                let until = pool.portion(reached, whole);
                group.shared = until - taken;
                taken = until;
            }
        }
    }
}

impl Group {
    /// What was charged for one component.
    pub fn of(&self, component: Component) -> Exact {
        self.components.get(&component).copied().unwrap_or_default()
    }

    fn is_nobodys(&self) -> bool {
        matches!(self.key, Key::Project(None))
    }

    /// What somebody's compute cost: by that, what belongs to nobody is shared out.
    fn computed(&self) -> Exact {
        if self.is_nobodys() { Exact::ZERO } else { self.of(Component::Compute).max(Exact::ZERO) }
    }

    /// What it comes to for whom it is billed on to: what is its own, without what is shared out, and its part
    /// of that.
    pub fn with_share(&self) -> Exact {
        self.amounts.total() - self.given + self.shared
    }
}

/// What is open, in the same pieces as what the books answer: by day, or by resource over the whole period.
pub fn open_cells(meter: &Meter, period: Period, by_resource: bool, zone: &TimeZone, now: Timestamp) -> Vec<Cell> {
    let (start, end) = (period.start(zone), period.end(zone));
    let spans = meter.open_spans(now).filter_map(|span| {
        let (from, to) = (span.from.max(start), span.to.min(end));
        (from < to).then_some(Span { from, to, ..span })
    });
    if by_resource { resource_cells(spans, period.from) } else { day_cells(spans, period, zone) }
}

/// What cells of one day, or of one resource, differ in.
type Kind = (AccountName, Option<Billable>, Terms, Evidence, Currency);

fn kind_of(span: &Span, billable: Option<Billable>) -> Kind {
    let terms = Terms { gpus: 0, ..span.terms.clone() };
    (span.identity.account.clone(), billable, terms, span.evidence, span.rate.currency)
}

fn cell((account, billable, terms, evidence, currency): Kind, day: Date, amount: Exact, gpu_ms: i64) -> Cell {
    Cell { day, account, billable, terms, evidence, replaced: false, currency, amount, gpu_ms }
}

fn resource_cells(spans: impl Iterator<Item = Span>, day: Date) -> Vec<Cell> {
    let mut cells: BTreeMap<Kind, (Exact, i64)> = BTreeMap::new();
    for span in spans {
        let billable = Billable::Resource { identity: span.identity.clone(), name: None };
        let sum = cells.entry(kind_of(&span, Some(billable))).or_default();
        sum.0 += span.amount();
        sum.1 += span.gpu_ms();
    }
    cells.into_iter().map(|(kind, (amount, gpu_ms))| cell(kind, day, amount, gpu_ms)).collect()
}

/// What the spans of one kind come to, day by day.
struct Days {
    /// On the first and the last day of a span, which it covers in part.
    edges: Vec<(Exact, i64)>,
    /// By how much the rate and the GPUs of those who cover the whole day change with it.
    steps: Vec<(i128, i64)>,
}

/// Cuts spans within a period into its days. What covers many days whole costs no more than what covers two:
/// a machine may run for months without a change.
fn day_cells(spans: impl Iterator<Item = Span>, period: Period, zone: &TimeZone) -> Vec<Cell> {
    let days: Vec<Date> = period.days().collect();
    let mut bounds: Vec<Timestamp> = days.iter().map(|day| start_of(*day, zone)).collect();
    bounds.push(period.end(zone));
    // The last day that has begun by then.
    let day_of = |at: Timestamp| bounds[..days.len()].partition_point(|bound| *bound <= at).saturating_sub(1);
    let mut kinds: BTreeMap<Kind, Days> = BTreeMap::new();
    for span in spans {
        let sums = kinds
            .entry(kind_of(&span, None))
            .or_insert_with(|| Days { edges: vec![(Exact::ZERO, 0); days.len()], steps: vec![(0, 0); days.len() + 1] });
        let (first, last) = (day_of(span.from), day_of(span.to));
        let mut edge = |day: usize, from: Timestamp, to: Timestamp| {
            let part = Span { from, to, ..span.clone() };
            sums.edges[day].0 += part.amount();
            sums.edges[day].1 += part.gpu_ms();
        };
        if first == last {
            edge(first, span.from, span.to);
            continue;
        }
        edge(first, span.from, bounds[first + 1]);
        edge(last, bounds[last], span.to);
        let (picos, gpus) = (i128::from(span.rate.picos()), i64::from(span.terms.gpus));
        sums.steps[first + 1].0 += picos;
        sums.steps[first + 1].1 += gpus;
        sums.steps[last].0 -= picos;
        sums.steps[last].1 -= gpus;
    }
    let mut cells = Vec::new();
    for (kind, sums) in kinds {
        let (mut picos, mut gpus) = (0, 0);
        for (at, day) in days.iter().enumerate() {
            picos += sums.steps[at].0;
            gpus += sums.steps[at].1;
            let ms = bounds[at + 1].as_millisecond() - bounds[at].as_millisecond();
            let amount = sums.edges[at].0 + Exact::of_picos(picos, ms);
            let gpu_ms = sums.edges[at].1 + gpus * ms;
            if !amount.is_zero() || gpu_ms != 0 {
                cells.push(cell(kind.clone(), *day, amount, gpu_ms));
            }
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rust_decimal::Decimal;

    use super::*;

    fn exact(text: &str) -> Exact {
        Exact::of(text.parse().unwrap())
    }

    fn cell(project: Option<&str>, component: Component, amount: &str) -> Cell {
        Cell {
            day: "2026-11-30".parse().unwrap(),
            account: "team".into(),
            billable: None,
            terms: Terms {
                component,
                charge: Charge::Certain,
                wasted: false,
                project: project.map(Arc::from),
                gpus: 0,
            },
            evidence: Evidence::Observed,
            replaced: false,
            currency: Currency::USD,
            amount: exact(amount),
            gpu_ms: 0,
        }
    }

    fn by_project(cells: &[Cell]) -> Report {
        Report::new(cells, By::Project, |_| None)
    }

    #[test]
    fn groups_stand_the_dearest_first_and_add_up() {
        let report = by_project(&[
            cell(Some("art"), Component::Compute, "180"),
            cell(None, Component::Storage, "191.01"),
            cell(Some("finetune"), Component::Compute, "801.10"),
            cell(Some("finetune"), Component::Disk, "4.20"),
        ]);
        let shown: Vec<_> = report.groups.iter().map(|group| (group.key.clone(), group.amounts.total())).collect();
        let expected = [(Some("finetune"), "805.3"), (None, "191.01"), (Some("art"), "180")];
        assert_eq!(shown, expected.map(|(name, amount)| (Key::Project(name.map(Arc::from)), exact(amount))));
        assert_eq!(report.total.of(Currency::USD).total(), exact("1176.31"));
    }

    #[test]
    fn what_the_provider_billed_stands_in_the_total_and_our_own_figure_for_it_does_not() {
        let billed = Cell { evidence: Evidence::Billed, ..cell(Some("a"), Component::Compute, "3.1") };
        let ours = Cell { replaced: true, gpu_ms: 3_600_000, ..cell(Some("a"), Component::Compute, "66.52") };
        let maybe =
            Cell { terms: Terms { charge: Charge::Possible, ..ours.terms.clone() }, replaced: false, ..ours.clone() };
        let group = &by_project(&[billed, ours, maybe]).groups[0];
        assert_eq!(group.amounts.total(), exact("3.1"));
        assert_eq!((group.amounts.drift(), group.amounts.possible), (exact("-63.42"), exact("66.52")));
        assert_eq!(group.amounts.gpu_ms, 3_600_000, "the time was computed all the same");
    }

    #[test]
    fn what_belongs_to_nobody_is_shared_by_compute() {
        let mut report = by_project(&[
            cell(Some("a"), Component::Compute, "30"),
            cell(Some("a"), Component::Storage, "1"),
            cell(Some("b"), Component::Compute, "10"),
            cell(Some("idle"), Component::Disk, "5"),
            cell(None, Component::Storage, "7"),
        ]);
        report.spread();
        let of = |name: &str| {
            let key = Key::Project(Some(Arc::from(name)));
            report.groups.iter().find(|group| group.key == key).map(|group| (group.shared, group.with_share())).unwrap()
        };
        assert_eq!(of("a"), (exact("6"), exact("36")));
        assert_eq!(of("b"), (exact("2"), exact("12")));
        assert_eq!(of("idle"), (Exact::ZERO, exact("5")));
        let whole: Exact = report.groups.iter().map(Group::with_share).sum();
        assert_eq!(whole, report.total.of(Currency::USD).total(), "nothing is lost and nothing is added");
    }

    #[test]
    fn where_nobody_computed_everything_stays_where_it_is() {
        let mut report = by_project(&[
            cell(Some("a"), Component::Storage, "1"),
            cell(Some("b"), Component::Disk, "5"),
            cell(None, Component::Compute, "7"),
        ]);
        report.spread();
        for group in &report.groups {
            assert_eq!((group.shared, group.with_share()), (Exact::ZERO, group.amounts.total()), "{:?}", group.key);
        }
    }

    /// A refund that belongs to nobody is shared out like what was charged.
    #[test]
    fn a_refund_is_shared_by_compute_too() {
        let mut report = by_project(&[
            cell(Some("a"), Component::Compute, "30"),
            cell(Some("b"), Component::Compute, "10"),
            cell(None, Component::Other, "-8"),
        ]);
        report.spread();
        let told: Vec<_> = report.groups.iter().map(|group| (group.shared, group.with_share())).collect();
        let expected = [("-6", "24"), ("-2", "8"), ("0", "0")];
        assert_eq!(told, expected.map(|(shared, with_share)| (exact(shared), exact(with_share))));
    }

    proptest! {
        /// Cut into days, spans come to the same as each cut by itself.
        #[test]
        fn days_come_to_what_each_span_is_on_them(
            spans in prop::collection::vec((0i64..40 * 86_400_000, 1i64..40 * 86_400_000, 1i64..9_000_000_000_000, 0u32..9), 0..12),
            zone in prop::sample::select(vec!["UTC", "Asia/Shanghai", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/Santiago", "Pacific/Apia"]),
        ) {
            let zone = TimeZone::get(zone).unwrap();
            let period = Period { from: "2026-03-01".parse().unwrap(), to: "2026-04-10".parse().unwrap() };
            let (start, end) = (period.start(&zone), period.end(&zone));
            let identity = providers::model::Identity {
                account: "team".into(),
                kind: providers::model::ResourceKind::Instance,
                id: providers::model::ResourceId::new("a"),
                generation: 0,
            };
            let spans: Vec<Span> = spans.iter().filter_map(|(from, length, picos, gpus)| {
                let from = start + jiff::SignedDuration::from_millis(*from);
                let to = (from + jiff::SignedDuration::from_millis(*length)).min(end);
                let terms = Terms { gpus: *gpus, ..cell(None, Component::Compute, "0").terms };
                let rate = providers::money::Rate::from_picos(*picos, Currency::USD);
                let span = Span { identity: identity.clone(), terms, rate, from, to, evidence: Evidence::Observed };
                (from < to).then_some(span)
            }).collect();
            let mut expected: BTreeMap<Date, (Exact, i64)> = BTreeMap::new();
            for span in &spans {
                for (day, from, to) in super::super::by_day(span.from, span.to, &zone) {
                    let part = Span { from, to, ..span.clone() };
                    let sum = expected.entry(day).or_default();
                    sum.0 += part.amount();
                    sum.1 += part.gpu_ms();
                }
            }
            let found: BTreeMap<Date, (Exact, i64)> =
                day_cells(spans.into_iter(), period, &zone).into_iter().map(|cell| (cell.day, (cell.amount, cell.gpu_ms))).collect();
            prop_assert_eq!(found, expected);
        }

        /// However cells are grouped, they come to the same total; shared out, too.
        #[test]
        fn no_grouping_changes_the_total(cells in prop::collection::vec((0usize..4, 0usize..6, -9_000_000_000_000_000i64..9_000_000_000_000_000), 0..40)) {
            let projects = [None, Some("a"), Some("b"), Some("c")];
            let cells: Vec<Cell> = cells.iter().map(|(project, component, picos)| Cell {
                amount: Exact::of(Decimal::new(*picos, 12)) + Exact::from_parts(0, 1),
                ..cell(projects[*project], super::super::COMPONENTS[*component], "0")
            }).collect();
            let whole: Exact = cells.iter().map(|cell| cell.amount).sum();
            for by in [By::Project, By::Provider, By::Account, By::Component, By::Day] {
                let report = Report::new(&cells, by, |_| None);
                prop_assert_eq!(report.groups.iter().map(|group| group.amounts.total()).sum::<Exact>(), whole);
            }
            let mut report = by_project(&cells);
            report.spread();
            prop_assert_eq!(report.groups.iter().map(Group::with_share).sum::<Exact>(), whole);
        }
    }
}
