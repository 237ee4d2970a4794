//! The table of budgets.

use providers::money::Rate;
use ratatui::layout::Rect;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::{about, days, is_used_up, part, percent, scope, whole};
use crate::app::columns::Column;
use crate::app::listing::Line;
use crate::rules::budgets::{Budget, Standing, Unit};
use crate::ui::format;
use crate::ui::paint::{Paint, Run, dim, plain, run};
use crate::ui::scene::Scene;
use crate::ui::text::{OfBudgets, percent_of};
use crate::ui::theme::Role;

/// The cells of a bar.
const BAR: u16 = 8;
/// An amount with its share, and the share alone.
const FORECAST: u16 = 14;
const PERCENT: u16 = 8;

struct Columns {
    name: Column,
    scope: Column,
    days: Column,
    spent: Column,
    bar: Column,
    percent: Column,
    forecast: Column,
    committed: Column,
    reached: Column,
    burn: Column,
}

impl Columns {
    fn fit(area: Rect, zh: bool) -> Self {
        // What is there in any case: name, spent, percent, forecast, and when the limit is reached.
        // Thousands of GPU-hours need their room as soon as it is there.
        let spent = match area.width {
            0..80 => 18,
            _ if zh => 19,
            _ => 21,
        };
        let (percent, reached) = (6, 11);
        let narrow = area.width < 2 + 9 + spent + percent + FORECAST + reached + 5;
        let forecast = if narrow { PERCENT } else { FORECAST };
        let mut name = 9;
        let mut scope = 0;
        let mut spare = area.width.saturating_sub(2 + name + spent + percent + forecast + reached + 5);
        let mut give = |least: u16, most: u16| {
            let given = if spare > least { (spare - 1).min(most) } else { 0 };
            spare -= if given > 0 { given + 1 } else { 0 };
            given
        };
        let days = if zh { give(11, 13) } else { give(9, 10) };
        scope += give(12, 12);
        let bar = give(BAR, BAR);
        let burn = give(13, 13);
        let committed = give(11, 11);
        name += give(1, 12);
        scope += if scope > 0 { give(1, 12) } else { 0 };
        let mut x = area.x + 2;
        let mut next = |width: u16| {
            let column = Column { x, width };
            x += if width > 0 { width + 1 } else { 0 };
            column
        };
        Columns {
            name: next(name),
            scope: next(scope),
            days: next(days),
            spent: next(spent),
            bar: next(bar),
            percent: next(percent),
            forecast: next(forecast),
            committed: next(committed),
            reached: next(reached),
            burn: next(burn),
        }
    }
}

pub fn paint(paint: &mut Paint, scene: &Scene, area: Rect) {
    let (language, list) = (scene.look.language, &scene.state.view.budgets);
    let columns = Columns::fit(area, language == crate::ui::language::Language::Chinese);
    for (column, text) in [
        (&columns.name, OfBudgets::HeadBudget),
        (&columns.scope, OfBudgets::HeadScope),
        (&columns.days, OfBudgets::HeadPeriod),
    ] {
        paint.text(column.x, area.y, column.width, &language.of_budgets(text), Role::Dim);
    }
    for (column, text) in [
        (&columns.spent, OfBudgets::HeadSpent),
        (&columns.forecast, OfBudgets::HeadForecast),
        (&columns.committed, OfBudgets::HeadCommitted),
        (&columns.reached, OfBudgets::HeadReached),
        (&columns.burn, OfBudgets::HeadBurn),
    ] {
        paint.right(column.x, area.y, column.width, &language.of_budgets(text), Role::Dim);
    }
    let height = usize::from(area.height.saturating_sub(1));
    for (row, line) in list.lines.iter().skip(list.top).take(height).enumerate() {
        let Line::Budget(name) = line else { continue };
        let Some((budget, standing)) = scene.state.world.budgets.get(name) else { continue };
        let here = list.cursor.as_ref() == Some(line);
        let y = area.y + 1 + row as u16;
        if here {
            paint.text(area.x, y, 1, scene.look.glyphs.cursor, Role::Accent);
        }
        self::row(paint, scene, &columns, y, budget, standing, here);
    }
}

fn row(
    paint: &mut Paint,
    scene: &Scene,
    columns: &Columns,
    y: u16,
    budget: &Budget,
    standing: Option<&Standing>,
    here: bool,
) {
    let (dash, unit) = (scene.look.glyphs.dash, budget.limit.unit);
    let mut right = |column: &Column, told: Run| paint.right(column.x, y, column.width, &told.text, told.role);
    let whole = whole(scene, budget);
    let Some(standing) = standing else {
        for column in [&columns.percent, &columns.forecast, &columns.committed, &columns.reached, &columns.burn] {
            right(column, dim(dash));
        }
        right(&columns.spent, plain(scene.look.language.of_budgets(OfBudgets::Of { part: dash, whole: &whole })));
        titles(paint, scene, columns, y, budget, None, here);
        return;
    };
    let told = |amount: Option<Decimal>| amount.map(|amount| part(scene, amount, unit));
    let spent = format!("{}{}", about(standing), part(scene, standing.spent, unit));
    right(&columns.spent, plain(scene.look.language.of_budgets(OfBudgets::Of { part: &spent, whole: &whole })));
    right(&columns.percent, run(percent(standing.spent, budget), tone(standing.spent, budget)));
    right(
        &columns.forecast,
        match standing.forecast {
            Some(forecast) => {
                let share = percent(forecast, budget);
                let text = match columns.forecast.width {
                    PERCENT => share,
                    _ => format!("{} {share:>5}", part(scene, forecast, unit)),
                };
                run(text, if forecast >= budget.limit.amount { Role::Waste } else { Role::Plain })
            }
            None => dim(dash),
        },
    );
    right(&columns.committed, told(standing.committed).map_or(dim(dash), plain));
    right(
        &columns.reached,
        match standing.reaches {
            Some(at) if at <= scene.now => run(scene.moment(at), Role::Urgent),
            Some(at) => run(scene.moment(at), Role::Waste),
            None if is_used_up(budget, standing) => {
                run(scene.look.language.of_budgets(OfBudgets::Reached), Role::Urgent)
            }
            None => dim(dash),
        },
    );
    right(&columns.burn, burn(scene, budget, standing));
    bar(paint, scene, &columns.bar, y, standing.spent, budget);
    titles(paint, scene, columns, y, budget, Some(standing), here);
}

fn titles(
    paint: &mut Paint,
    scene: &Scene,
    columns: &Columns,
    y: u16,
    budget: &Budget,
    standing: Option<&Standing>,
    here: bool,
) {
    let name_role = if here { Role::Here } else { Role::Plain };
    paint.text(columns.name.x, y, columns.name.width, &budget.name, name_role);
    paint.text(columns.scope.x, y, columns.scope.width, &scope(scene, budget), Role::Dim);
    let term = standing.map_or_else(|| budget.term(scene.now), |standing| standing.term);
    paint.text(columns.days.x, y, columns.days.width, &days(scene, budget, &term), Role::Dim);
}

/// From the limit on red, near it amber.
pub fn tone(spent: Decimal, budget: &Budget) -> Role {
    match percent_of(spent, budget.limit.amount) {
        Some(100..) => Role::Urgent,
        Some(80..) => Role::Waste,
        _ => Role::Plain,
    }
}

/// What it costs an hour now, and what part of the whole fleet that is.
fn burn(scene: &Scene, budget: &Budget, standing: &Standing) -> Run {
    match budget.limit.unit {
        Unit::GpuHours => plain(format!("{} GPU", format::brief(standing.burn))),
        Unit::Money(currency) => {
            let Some(rate) = Rate::per_hour(standing.burn, currency) else { return dim(scene.look.glyphs.dash) };
            let all = scene.state.world.totals.burn.of(currency).amount();
            let rate = format::bare_rate(rate, scene.look.glyphs);
            match percent_of(standing.burn, all) {
                Some(share @ 0..=100) if !standing.burn.is_zero() => {
                    plain(format!("{rate} {:>5}", format!("{share} %")))
                }
                _ => plain(rate),
            }
        }
    }
}

fn bar(paint: &mut Paint, scene: &Scene, column: &Column, y: u16, spent: Decimal, budget: &Budget) {
    if column.width == 0 {
        return;
    }
    let x = paint.runs(
        column.x,
        y,
        column.width,
        &[run(filled(scene, spent, budget.limit.amount, column.width).0, tone(spent, budget))],
    );
    let rest = column.x + column.width - x;
    paint.text(x, y, rest, &scene.look.glyphs.bar_empty.repeat(usize::from(rest)), Role::Rule);
}

/// The filled part of a bar and the rest of it.
pub fn filled(scene: &Scene, part: Decimal, whole: Decimal, cells: u16) -> (String, String) {
    let share = part.checked_div(whole).and_then(|share| share.to_f64()).unwrap_or(0.0).clamp(0.0, 1.0);
    let full = usize::from(((share * f64::from(cells)) as u16).max(u16::from(share > 0.0)).min(cells));
    let glyphs = scene.look.glyphs;
    (glyphs.bar_full.repeat(full), glyphs.bar_empty.repeat(usize::from(cells) - full))
}
