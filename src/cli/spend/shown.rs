//! Spend for people: a table to the cent, and what must be known beside it.

use jiff::ToSpan;
use providers::money::{Currency, Money};
use rust_decimal::Decimal;

use super::books::Books;
use super::listing::{Row, joined, known_since, rows};
use crate::cli::table::Table;
use crate::config::Config;
use crate::rules::spend::{Billable, By, Key};
use crate::ui::text::{Below, Head};
use crate::ui::{Look, format};

/// Amounts are shown to the cent, and add up to the cent.
const CENTS: u32 = 2;

/// One row for each group and currency, and one for each total.
pub fn table(books: &Books, by: By, spread: bool, look: &Look, first: Currency) -> Table {
    let language = look.language;
    let mut heads = vec![Head::By(by)];
    if by == By::Instance {
        heads.push(Head::Account);
    }
    heads.extend([Head::Amount, Head::Billed, Head::Estimated, Head::Assumed, Head::Waste, Head::GpuHours]);
    if spread {
        heads.extend([Head::Shared, Head::WithShare]);
    }
    let heads: Vec<&'static str> = heads.into_iter().map(|head| language.head(head)).collect();
    let mut table = Table::new(&heads);
    let (mut rows, mut totals) = rows(books, by, spread, CENTS);
    rows.sort_by_key(|row| row.currency != first);
    totals.sort_by_key(|row| row.currency != first);
    for row in rows.iter().chain(&totals) {
        let money = |amount: Decimal| format::money(Money::new(amount, row.currency), look.glyphs);
        let figures = &row.figures;
        let mut cells = vec![key(row, look)];
        if by == By::Instance {
            cells.push(match &row.key {
                Some(Key::Billable(account, _)) => account.to_string(),
                _ => String::new(),
            });
        }
        let computed = figures.observed + figures.inferred;
        cells.extend([figures.amount, figures.billed, computed, figures.assumed, figures.waste].map(money));
        cells.push(format::digits(figures.gpu_hours));
        if spread {
            let shared = row.shared.map(|(shared, with_share)| [money(shared), money(with_share)]);
            cells.extend(shared.unwrap_or_default());
        }
        table.row(cells);
    }
    table
}

fn key(row: &Row, look: &Look) -> String {
    let language = look.language;
    match &row.key {
        None => language.below(Below::Total),
        Some(Key::Project(None)) => language.below(Below::NoProject),
        Some(Key::Project(Some(project))) => project.to_string(),
        Some(Key::Provider(provider)) => provider.as_ref().map_or_else(|| "—".to_owned(), ToString::to_string),
        Some(Key::Account(account)) => account.to_string(),
        Some(Key::Component(component)) => language.component(*component).to_owned(),
        Some(Key::Day(day)) => day.to_string(),
        Some(Key::Billable(_, Billable::Product(product))) => product.clone(),
        Some(Key::Billable(_, Billable::Resource { identity, name })) => match name {
            Some(name) => format!("{name}  {}", identity.id),
            None => identity.id.to_string(),
        },
    }
}

/// What the figures leave open.
pub fn lines(books: &Books, by: By, look: &Look, config: &Config) -> Vec<String> {
    let language = look.language;
    let (_, totals) = rows(books, by, false, CENTS);
    let money = |amounts: Vec<(Currency, Decimal)>| {
        let mut amounts = amounts;
        amounts.retain(|(_, amount)| !amount.is_zero());
        amounts.sort_by_key(|(currency, _)| *currency != config.currency);
        let parts: Vec<String> = amounts
            .into_iter()
            .map(|(currency, amount)| format::money(Money::new(amount, currency), look.glyphs))
            .collect();
        (!parts.is_empty()).then(|| parts.join(" + "))
    };
    let of = |figure: fn(&Row) -> Decimal| money(totals.iter().map(|row| (row.currency, figure(row))).collect());
    let moment = |at| format::moment(at, books.now, &books.zone, language);
    let mut lines = Vec::new();
    if totals.is_empty() {
        lines.push(language.below(Below::NothingSpent));
    }
    if let Some(joined) = joined(&totals, config) {
        let rates: Vec<String> = joined
            .by
            .iter()
            .map(|(one, fx)| {
                let dollars = format!("{} USD", fx.usd.normalize());
                language.below(Below::Rate { one: one.code(), dollars: &dollars, as_of: &fx.as_of.to_string() })
            })
            .collect();
        let mut sums = vec![(config.exchange().into, joined.amount)];
        sums.extend(joined.apart);
        if let Some(money) = money(sums) {
            lines.push(language.below(Below::Joined { money: &money, rates: &rates.join(", ") }));
        }
    }
    let last = books.period.to.saturating_sub(1.day()).to_string();
    lines.push(language.below(Below::Period { from: &books.period.from.to_string(), to: &last }));
    // Of a period that begins before anything is known, part is missing.
    if let Some(since) = known_since(books).filter(|since| *since > books.period.start(&books.zone)) {
        lines.push(language.below(Below::KnownSince { at: &moment(since) }));
    }
    if let Some(money) = of(|row| row.figures.possible) {
        lines.push(language.below(Below::Possible { money: &money }));
    }
    if let Some(money) = of(|row| row.figures.prepaid) {
        let unused = of(|row| row.figures.unused);
        let unused = unused.unwrap_or_else(|| format::digits(Decimal::ZERO));
        lines.push(language.below(Below::Prepaid { money: &money, unused: &unused }));
    }
    if let Some(money) = of(|row| row.figures.drift.unwrap_or_default()) {
        lines.push(language.below(Below::Drift { money: &money }));
    }
    for change in books.balances.iter().filter(|change| books.unexplained.contains(&change.account)) {
        if let Some(money) = money(vec![(change.first.currency, change.unexplained().amount().round_dp(CENTS))]) {
            let (account, from) = (change.account.to_string(), moment(change.from));
            lines.push(language.below(Below::Unexplained { account: &account, money: &money, from: &from }));
        }
    }
    if books.unfinished {
        lines.push(language.below(Below::Unfinished));
    }
    lines
}
