//! The budgets: what is spent of each, what will be, and when its limit is reached.

mod chart;
mod form;
mod table;

use ratatui::layout::Rect;
use rust_decimal::Decimal;

use super::format;
use super::paint::Paint;
use super::scene::Scene;
use super::text::OfBudgets;
use crate::app::listing::Line;
use crate::rules::budgets::{Budget, Cycle, Standing, Term, Unit};
use crate::rules::spend::{Period, date_of};

pub use chart::paint as paint_chart;
pub use form::paint as paint_form;
pub use table::{filled, tone};

pub fn paint(paint: &mut Paint, scene: &Scene, area: Rect) {
    table::paint(paint, scene, area);
}

/// The budget under the cursor, and how it stands.
pub fn here<'a>(scene: &Scene<'a>) -> Option<(&'a Budget, Option<&'a Standing>)> {
    match &scene.state.view.budgets.cursor {
        Some(Line::Budget(name)) => scene.state.world.budgets.get(name),
        _ => None,
    }
}

/// A limit with its unit.
fn whole(scene: &Scene, budget: &Budget) -> String {
    let digits = format::limit(budget.limit.amount);
    match budget.limit.unit {
        Unit::Money(currency) => format::with_sign(&digits, currency, scene.look.glyphs),
        Unit::GpuHours => format!("{digits} gpu-h"),
    }
}

/// An amount without a unit that is no sign.
fn part(scene: &Scene, amount: Decimal, unit: Unit) -> String {
    let digits = format::brief(amount);
    match unit {
        Unit::Money(currency) => format::with_sign(&digits, currency, scene.look.glyphs),
        Unit::GpuHours => digits,
    }
}

/// What part of the limit an amount is.
fn percent(amount: Decimal, budget: &Budget) -> String {
    super::text::percent_of(amount, budget.limit.amount).map_or_else(String::new, |percent| format!("{percent} %"))
}

/// Which resources it is for.
fn scope(scene: &Scene, budget: &Budget) -> String {
    let scope = &budget.scope;
    let parts: Vec<String> = [
        scope.provider.as_ref().map(ToString::to_string),
        scope.account.as_ref().map(|account| scene.account_title(account)),
        scope.project.clone(),
        scope.instance.as_ref().map(ToString::to_string),
        scope.label.as_ref().map(|label| match &label.value {
            Some(value) => format!("{}={value}", label.key),
            None => label.key.clone(),
        }),
    ]
    .into_iter()
    .flatten()
    .collect();
    match parts.is_empty() {
        true => scene.look.language.of_budgets(OfBudgets::Everything),
        false => parts.join(" "),
    }
}

/// The days of its present turn, or how often it begins where it has none.
fn days(scene: &Scene, budget: &Budget, term: &Term) -> String {
    let language = scene.look.language;
    let today = date_of(scene.now, &budget.zone);
    match (term.first, term.to, budget.cycle) {
        (_, _, Cycle::Total) | (None, ..) => language.cycle(&budget.cycle).to_owned(),
        (Some(first), None, _) => format::day(first, today, language),
        (Some(first), Some(to), _) => {
            format::period(Period { from: first, to: date_of(to, &budget.zone) }, today, language)
        }
    }
}

/// The whole limit is spent, also where nobody saw when.
fn is_used_up(budget: &Budget, standing: &Standing) -> bool {
    standing.spent >= budget.limit.amount
}

/// What is spent, with its mark where some of it is no provider's own figure.
fn about(standing: &Standing) -> &'static str {
    if standing.estimated.is_zero() { "" } else { "~" }
}
