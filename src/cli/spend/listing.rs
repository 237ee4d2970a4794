//! Spend as figures: every row rounded so that rows add up to totals, and parts to rows.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use providers::model::{AccountName, Component, ResourceKind};
use providers::money::Currency;
use rust_decimal::Decimal;
use serde::Serialize;

use super::books::Books;
use crate::cli::ls::six;
use crate::cli::table::Table;
use crate::config::Config;
use crate::rules::spend::{Amounts, BalanceChange, Billable, By, Exact, Group, Joined, Key, PLACES, Report, share};

/// One group in one currency, or a total.
#[derive(Clone, Debug)]
pub struct Row {
    /// `None` for a total.
    pub key: Option<Key>,
    pub currency: Currency,
    pub figures: Figures,
    /// Its part of what belongs to nobody, and what it comes to with that.
    pub shared: Option<(Decimal, Decimal)>,
}

/// Rounded amounts. `amount` is exactly the sum of `billed`, `observed`, `inferred` and `assumed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub amount: Decimal,
    pub billed: Decimal,
    pub observed: Decimal,
    pub inferred: Decimal,
    pub assumed: Decimal,
    pub waste: Decimal,
    pub gpu_hours: Decimal,
    pub possible: Decimal,
    pub prepaid: Decimal,
    pub unused: Decimal,
    /// `None` where the provider billed nothing.
    pub drift: Option<Decimal>,
}

impl Figures {
    /// The parts of an amount that is rounded already.
    fn of(amounts: &Amounts, amount: Decimal, places: u32) -> Self {
        let parts = [amounts.billed, amounts.observed, amounts.inferred, amounts.assumed];
        let [billed, observed, inferred, assumed] = share(&parts, amount, places)[..] else {
            unreachable!("as many parts as were given");
        };
        let wasted = share(&[amounts.wasted, amounts.total() - amounts.wasted], amount, places)[0];
        Figures { amount, billed, observed, inferred, assumed, waste: wasted, ..Figures::default() }
    }

    fn add(&mut self, other: &Figures) {
        self.amount += other.amount;
        self.billed += other.billed;
        self.observed += other.observed;
        self.inferred += other.inferred;
        self.assumed += other.assumed;
        self.waste += other.waste;
        self.gpu_hours += other.gpu_hours;
        self.possible += other.possible;
        self.prepaid += other.prepaid;
        self.unused += other.unused;
        self.drift = match (self.drift, other.drift) {
            (None, None) => None,
            (one, two) => Some(one.unwrap_or_default() + two.unwrap_or_default()),
        };
    }
}

/// Groups and, for each currency, what they add up to.
pub fn rows(books: &Books, by: By, spread: bool, places: u32) -> (Vec<Row>, Vec<Row>) {
    let mut report = Report::new(&books.cells, by, |account| books.provider_of(account));
    if spread {
        report.spread();
    }
    let (mut rows, mut totals) = (Vec::new(), Vec::new());
    for (&currency, sum) in &report.total.0 {
        let groups: Vec<&Group> = report.groups.iter().filter(|group| group.currency == currency).collect();
        let whole = sum.total().amount().round_dp(places);
        let amounts: Vec<Exact> = groups.iter().map(|group| group.amounts.total()).collect();
        let rounded = share(&amounts, whole, places);
        let shared = shared(&groups, whole, places);
        let mut total = Figures::default();
        // What is in no total adds up, too, whatever it is grouped by.
        let column = |of: fn(&Amounts) -> Exact| {
            let parts: Vec<Exact> = groups.iter().map(|group| of(&group.amounts)).collect();
            share(&parts, of(sum).amount().round_dp(places), places)
        };
        let gpu_hours = column(gpu_hours);
        let possible = column(|sums| sums.possible);
        let prepaid = column(|sums| sums.prepaid);
        let unused = column(|sums| sums.unused);
        let drift = column(Amounts::drift);
        for (place, ((group, amount), shared)) in groups.iter().zip(rounded).zip(shared).enumerate() {
            let amounts = &group.amounts;
            let was_billed = !(amounts.billed.is_zero() && amounts.replaced.is_zero());
            let figures = Figures {
                gpu_hours: gpu_hours[place],
                possible: possible[place],
                prepaid: prepaid[place],
                unused: unused[place],
                drift: was_billed.then_some(drift[place]),
                ..Figures::of(amounts, amount, places)
            };
            total.add(&figures);
            rows.push(Row { key: Some(group.key.clone()), currency, figures, shared: shared.filter(|_| spread) });
        }
        totals.push(Row { key: None, currency, figures: total, shared: None });
    }
    (rows, totals)
}

fn gpu_hours(amounts: &Amounts) -> Exact {
    Exact::of(Decimal::from(amounts.gpu_ms) / Decimal::from(3_600_000))
}

/// What each group gets of what belongs to nobody, and what it comes to with that.
fn shared(groups: &[&Group], whole: Decimal, places: u32) -> Vec<Option<(Decimal, Decimal)>> {
    let with_share: Vec<Exact> = groups.iter().map(|group| group.with_share()).collect();
    let given = groups.iter().map(|group| group.shared.amount().round_dp(places));
    given.zip(share(&with_share, whole, places)).map(Some).collect()
}

/// `rentop spend --json`.
#[derive(Serialize)]
pub struct Listing {
    schema: &'static str,
    from: String,
    /// The first moment that is no longer in it.
    to: String,
    timezone: String,
    by: &'static str,
    as_of: Timestamp,
    /// Since when anything is known.
    known_since: Option<String>,
    /// The books are still being added up anew: figures may be missing.
    unfinished: bool,
    groups: Vec<GroupLine>,
    totals: Vec<TotalLine>,
    /// The totals in one currency, by the rates of the config.
    joined: Option<JoinedLine>,
    accounts: Vec<AccountLine>,
    balances: Vec<BalanceLine>,
}

#[derive(Serialize)]
struct GroupLine {
    /// `null` for what belongs to none.
    key: Option<String>,
    /// Of an instance, storage item or product.
    account: Option<String>,
    kind: Option<&'static str>,
    name: Option<String>,
    #[serde(flatten)]
    figures: FigureLine,
    /// Only with `--spread-unassigned`.
    shared: Option<String>,
    with_share: Option<String>,
}

#[derive(Serialize)]
struct TotalLine {
    #[serde(flatten)]
    figures: FigureLine,
}

#[derive(Serialize)]
struct FigureLine {
    amount: String,
    currency: Currency,
    billed: String,
    observed: String,
    inferred: String,
    assumed: String,
    waste: String,
    gpu_hours: String,
    possible: String,
    prepaid: String,
    unused: String,
    billed_drift: Option<String>,
}

#[derive(Serialize)]
struct JoinedLine {
    amount: String,
    currency: Currency,
    rates: Vec<RateLine>,
    apart: Vec<MoneyLine>,
}

#[derive(Serialize)]
struct RateLine {
    currency: Currency,
    usd: String,
    as_of: Date,
}

#[derive(Serialize)]
struct MoneyLine {
    amount: String,
    currency: Currency,
}

#[derive(Serialize)]
struct AccountLine {
    account: AccountName,
    provider: Option<String>,
    known_since: Timestamp,
}

#[derive(Serialize)]
struct BalanceLine {
    account: AccountName,
    from: Timestamp,
    to: Timestamp,
    first: String,
    last: String,
    paid_in: String,
    charged: String,
    unexplained: String,
    currency: Currency,
}

impl Listing {
    pub fn of(books: &Books, by: By, spread: bool, config: &Config) -> Self {
        let (rows, totals) = rows(books, by, spread, PLACES);
        let zone = &books.zone;
        Listing {
            schema: "rentop.spend/1",
            from: local(books.period.start(zone), zone),
            to: local(books.period.end(zone), zone),
            timezone: config.timezone_name.clone(),
            by: by.word(),
            as_of: books.now,
            known_since: known_since(books).map(|at| local(at, zone)),
            unfinished: books.unfinished,
            joined: joined(&totals, config).map(|joined| joined_line(&joined, config)),
            groups: rows.iter().map(group_line).collect(),
            totals: totals.iter().map(|row| TotalLine { figures: figure_line(row) }).collect(),
            accounts: books
                .since
                .iter()
                .map(|(account, since)| AccountLine {
                    account: account.clone(),
                    provider: books.provider_of(account).map(|provider| provider.to_string()),
                    known_since: *since,
                })
                .collect(),
            balances: books.balances.iter().map(balance_line).collect(),
        }
    }
}

/// Since when anything is known.
pub fn known_since(books: &Books) -> Option<Timestamp> {
    books.since.values().min().copied()
}

/// The totals in one currency, by the user's rates; `None` when nothing is, or can be, converted.
pub fn joined(totals: &[Row], config: &Config) -> Option<Joined> {
    config.exchange().join(totals.iter().map(|row| (row.currency, row.figures.amount)))
}

fn joined_line(joined: &Joined, config: &Config) -> JoinedLine {
    JoinedLine {
        amount: six(joined.amount),
        currency: config.exchange().into,
        rates: joined
            .by
            .iter()
            .map(|(currency, fx)| RateLine {
                currency: *currency,
                usd: fx.usd.normalize().to_string(),
                as_of: fx.as_of,
            })
            .collect(),
        apart: joined
            .apart
            .iter()
            .map(|(currency, amount)| MoneyLine { amount: six(*amount), currency: *currency })
            .collect(),
    }
}

fn balance_line(change: &BalanceChange) -> BalanceLine {
    BalanceLine {
        account: change.account.clone(),
        from: change.from,
        to: change.to,
        first: six(change.first.amount),
        last: six(change.last.amount),
        paid_in: six(change.paid_in.amount),
        charged: six(change.charged.amount()),
        unexplained: six(change.unexplained().amount()),
        currency: change.first.currency,
    }
}

fn group_line(row: &Row) -> GroupLine {
    let Name { key, account, kind, name } = row.key.as_ref().map(Name::of).unwrap_or_default();
    GroupLine {
        key,
        account,
        kind,
        name,
        figures: figure_line(row),
        shared: row.shared.map(|(shared, _)| six(shared)),
        with_share: row.shared.map(|(_, with_share)| six(with_share)),
    }
}

fn figure_line(row: &Row) -> FigureLine {
    let figures = &row.figures;
    FigureLine {
        amount: six(figures.amount),
        currency: row.currency,
        billed: six(figures.billed),
        observed: six(figures.observed),
        inferred: six(figures.inferred),
        assumed: six(figures.assumed),
        waste: six(figures.waste),
        gpu_hours: six(figures.gpu_hours),
        possible: six(figures.possible),
        prepaid: six(figures.prepaid),
        unused: six(figures.unused),
        billed_drift: figures.drift.map(six),
    }
}

/// What a group is called in a file.
#[derive(Default)]
struct Name {
    key: Option<String>,
    account: Option<String>,
    kind: Option<&'static str>,
    name: Option<String>,
}

impl Name {
    fn of(key: &Key) -> Self {
        let alone = |key: Option<String>| Name { key, ..Name::default() };
        match key {
            Key::Project(project) => alone(project.as_deref().map(str::to_owned)),
            Key::Provider(provider) => alone(provider.as_ref().map(ToString::to_string)),
            Key::Account(account) => alone(Some(account.to_string())),
            Key::Component(component) => alone(Some(component_word(*component).to_owned())),
            Key::Day(day) => alone(Some(day.to_string())),
            Key::Billable(account, billable) => {
                let account = Some(account.to_string());
                match billable {
                    Billable::Resource { identity, name } => {
                        let kind = match identity.kind {
                            ResourceKind::Instance => "instance",
                            ResourceKind::Storage => "storage",
                        };
                        Name { key: Some(identity.id.to_string()), account, kind: Some(kind), name: name.clone() }
                    }
                    Billable::Product(product) => {
                        Name { key: Some(product.clone()), account, kind: Some("product"), name: None }
                    }
                }
            }
        }
    }
}

/// The word of `--json` for a component.
pub fn component_word(component: Component) -> &'static str {
    match component {
        Component::Compute => "compute",
        Component::Disk => "disk",
        Component::Storage => "storage",
        Component::Ip => "ip",
        Component::Traffic => "traffic",
        Component::Other => "other",
    }
}

/// A moment with the offset that its zone has then.
pub fn local(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned_datetime(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

/// For spreadsheets: the same words as `--json`, and nothing where nothing is known.
pub fn spreadsheet(books: &Books, by: By, spread: bool) -> Table {
    let mut heads = vec![
        "KEY",
        "ACCOUNT",
        "KIND",
        "NAME",
        "CURRENCY",
        " AMOUNT",
        " BILLED",
        " OBSERVED",
        " INFERRED",
        " ASSUMED",
        " WASTE",
        " GPU_HOURS",
        " POSSIBLE",
        " PREPAID",
        " UNUSED",
        " BILLED_DRIFT",
    ];
    if spread {
        heads.extend([" SHARED", " WITH_SHARE"]);
    }
    let mut table = Table::new(&heads);
    for line in rows(books, by, spread, PLACES).0.iter().map(group_line) {
        let FigureLine {
            amount,
            currency,
            billed,
            observed,
            inferred,
            assumed,
            waste,
            gpu_hours,
            possible,
            prepaid,
            unused,
            billed_drift,
        } = line.figures;
        let mut cells = vec![
            line.key.unwrap_or_default(),
            line.account.unwrap_or_default(),
            line.kind.unwrap_or_default().to_owned(),
            line.name.unwrap_or_default(),
            currency.to_string(),
            amount,
            billed,
            observed,
            inferred,
            assumed,
            waste,
            gpu_hours,
            possible,
            prepaid,
            unused,
            billed_drift.unwrap_or_default(),
        ];
        if spread {
            cells.extend([line.shared.unwrap_or_default(), line.with_share.unwrap_or_default()]);
        }
        table.row(cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::rules::spend::{COMPONENTS, Cell, Charge, Evidence, Period, Terms};

    fn cell(project: Option<&str>, component: Component, evidence: Evidence, picos: i64) -> Cell {
        let terms = Terms {
            component,
            charge: Charge::Certain,
            wasted: component == Component::Disk,
            project: project.map(Arc::from),
            gpus: 0,
        };
        Cell {
            day: "2026-11-30".parse().unwrap(),
            account: "team".into(),
            billable: None,
            terms,
            evidence,
            replaced: false,
            currency: Currency::USD,
            amount: Exact::of(Decimal::new(picos, 12)) + Exact::from_parts(0, 3),
            gpu_ms: 1234,
        }
    }

    fn books(cells: Vec<Cell>) -> Books {
        Books {
            period: Period::month("2026-11-30".parse().unwrap()),
            zone: TimeZone::UTC,
            now: "2026-11-30T12:00:00Z".parse().unwrap(),
            cells,
            since: BTreeMap::new(),
            balances: Vec::new(),
            unexplained: BTreeSet::new(),
            unfinished: false,
            providers: BTreeMap::new(),
        }
    }

    /// Where nobody computed there is nobody to share with: the storage stays whose it is.
    #[test]
    fn where_nobody_computed_nothing_is_shared_and_nothing_is_lost() {
        let books = books(vec![
            cell(Some("a"), Component::Storage, Evidence::Observed, 7_000_000_000_000),
            cell(None, Component::Disk, Evidence::Observed, 2_000_000_000_000),
        ]);
        let (rows, _) = rows(&books, By::Project, true, PLACES);
        let told: Vec<_> = rows.iter().map(|row| row.shared.unwrap()).collect();
        assert_eq!(told, [(0.into(), 7.into()), (0.into(), 2.into())]);
    }

    /// Three thirds of a cent are one, whatever they are grouped by; so are three thirds of a hundredth of an hour.
    #[test]
    fn what_stands_beside_the_total_comes_to_the_same_however_it_is_grouped() {
        let third = |project, component| {
            let cell = cell(Some(project), component, Evidence::Billed, 3_333_333_333);
            let replaced = Cell { replaced: true, amount: Exact::ZERO, gpu_ms: 0, ..cell.clone() };
            [Cell { gpu_ms: 12_000, ..cell }, replaced]
        };
        let components = [Component::Compute, Component::Storage, Component::Traffic];
        let thirds = ["a", "b", "c"].into_iter().zip(components).flat_map(|(project, part)| third(project, part));
        let books = books(thirds.collect());
        for by in [By::Account, By::Project, By::Component] {
            let (rows, totals) = rows(&books, by, false, 2);
            let told = |figures: &Figures| (figures.gpu_hours, figures.drift.unwrap());
            assert_eq!(told(&totals[0].figures), (Decimal::new(1, 2), Decimal::new(1, 2)), "{by:?}");
            let sum: Decimal = rows.iter().map(|row| row.figures.drift.unwrap()).sum();
            assert_eq!(sum, Decimal::new(1, 2), "{by:?}");
        }
    }

    proptest! {
        /// To any place, rows add up to totals and parts to rows; shared out, too.
        #[test]
        fn what_is_shown_adds_up(
            cells in prop::sample::select(vec![0i64, -9_000_000_000_000_000]).prop_flat_map(|least| {
                prop::collection::vec((0usize..4, 0usize..6, 0usize..4, least..9_000_000_000_000_000), 0..40)
            }),
            places in prop::sample::select(vec![2u32, PLACES]),
            yuan in any::<bool>(),
        ) {
            let projects = [None, Some("a"), Some("b"), Some("c")];
            let mut cells: Vec<Cell> = cells
                .iter()
                .map(|(project, component, evidence, picos)| {
                    cell(projects[*project], COMPONENTS[*component], Evidence::ALL[*evidence], *picos)
                })
                .collect();
            if let Some(last) = cells.last_mut().filter(|_| yuan) {
                last.currency = Currency::CNY;
            }
            let refunded = cells.iter().any(|cell| cell.amount < Exact::ZERO);
            let (rows, totals) = rows(&books(cells.clone()), By::Project, true, places);
            for row in rows.iter().chain(&totals) {
                let Figures { amount, billed, observed, inferred, assumed, waste, .. } = row.figures;
                prop_assert_eq!(billed + observed + inferred + assumed, amount);
                // After a refund what was wasted may be more than what is left of the bill.
                prop_assert!((refunded || waste <= amount) && amount.scale() <= places);
            }
            for total in &totals {
                let own = || rows.iter().filter(|row| row.currency == total.currency);
                let exact: Exact = cells.iter().filter(|cell| cell.currency == total.currency).map(|cell| cell.amount).sum();
                prop_assert_eq!(total.figures.amount, exact.amount().round_dp(places));
                prop_assert_eq!(own().map(|row| row.figures.amount).sum::<Decimal>(), total.figures.amount);
                prop_assert_eq!(own().map(|row| row.shared.unwrap().1).sum::<Decimal>(), total.figures.amount);
            }
        }
    }
}
