//! The same words without a screen: a plan, an action's end and a farewell as lines of text.

use jiff::Timestamp;
use providers::model::Action;
use providers::money::Currency;

use super::details::places;
use super::format;
use super::look::Look;
use super::text::{Phrase, Word};
use crate::app::state::State;
use crate::rules::plan::Plan;
use crate::rules::saga::Operation;

/// What a plan comes to, for a person at a shell.
pub fn plan_lines(plan: &Plan, look: &Look, first: Currency, now: Timestamp) -> Vec<String> {
    let language = look.language;
    let mut lines = Vec::new();
    for target in &plan.targets {
        let title = language.phrase(&Phrase::PlanFor { action: plan.action, name: &target.name });
        let gpus = if target.gpus.is_empty() { String::new() } else { format!("  {}", target.gpus) };
        lines.push(format!("{title}  {}/{}{gpus}", target.identity.account, target.identity.id));
        let mut add = |word: Word, value: String| lines.push(format!("  {}: {value}", language.word(word)));
        let nothing = || language.word(Word::Nothing).to_owned();
        let more = if target.rates_complete { "" } else { "+" };
        let goes_on = format::rates(&target.after, first, look);
        if plan.action == Action::Start {
            add(Word::PlanCosts, goes_on.map_or_else(nothing, |rate| format!("{rate}{more}")));
        } else {
            add(Word::PlanSaves, format::rates(&target.saves(), first, look).unwrap_or_else(nothing));
            add(Word::PlanGoesOn, goes_on.map_or_else(nothing, |rate| format!("{rate}{more}")));
        }
        for (name, rates) in &target.left_behind {
            let rate = format::rates(rates, first, look);
            add(Word::PlanGoesOn, language.phrase(&Phrase::LeftBehind { name, rate: rate.as_deref() }));
        }
        if !target.effect.kept.is_empty() {
            add(Word::PlanKeeps, places(language, &target.effect.kept));
        }
        if !target.effect.lost.is_empty() {
            add(Word::PlanDeletes, places(language, &target.effect.lost));
        }
        for risk in &target.effect.risks {
            add(Word::PlanMind, language.risk(*risk).to_owned());
        }
        if let Some(as_of) = target.as_of {
            let age = format::since(as_of, now, language);
            add(Word::PlanAsOf, language.phrase(&Phrase::Ago { age: &age }));
        }
    }
    lines
}

/// Where an action is, or how it ended, in one line.
pub fn operation_line(operation: &Operation, look: &Look, now: Timestamp) -> String {
    let language = look.language;
    let title = language.phrase(&Phrase::PlanFor { action: operation.action, name: &operation.target.name });
    format!("{title}: {}", language.phrase(&Phrase::Step { operation, now }))
}

/// What is to be typed to confirm, as a question.
pub fn type_to_confirm(expected: &str, look: &Look) -> String {
    let [before, after] = look.language.type_name();
    format!("{before}{expected}{after}:")
}

/// What goes on when the screen is left, what it will have cost by the morning, and that nobody watches.
/// `None` when nothing goes on.
pub fn farewell(state: &State, look: &Look, now: Timestamp) -> Option<String> {
    let (world, fixed) = (&state.world, &state.view.fixed);
    let count = world.fleet.instances.values().filter(|known| !known.is_gone() && costs(known)).count();
    let rate = format::burn(&world.totals.burn, fixed.currency, look)?;
    let morning = morning(now, fixed)?;
    let hours = rust_decimal::Decimal::from(morning.duration_since(now).as_secs()) / rust_decimal::Decimal::from(3600);
    let by_then: Vec<String> = format::in_order(world.totals.burn.rates(), fixed.currency)
        .into_iter()
        .filter_map(|rate| rate.over_hours(hours))
        .map(|money| format::money(money, look.glyphs))
        .collect();
    let at = format::moment(morning, now, &fixed.zone, look.language);
    let phrase = Phrase::Farewell { count, rate: &rate, by_then: &by_then.join(" + "), at: &at };
    Some(look.language.phrase(&phrase))
}

fn costs(known: &crate::rules::fleet::Known<providers::model::Instance>) -> bool {
    !known.rates().certain().is_zero()
}

/// The next eight o'clock in the morning.
fn morning(now: Timestamp, fixed: &crate::app::state::Fixed) -> Option<Timestamp> {
    let here = now.to_zoned_datetime(fixed.zone.clone());
    let today = here.date().at(8, 0, 0, 0).to_zoned_datetime(fixed.zone.clone()).ok()?.timestamp();
    if today > now {
        return Some(today);
    }
    let tomorrow = here.date().tomorrow().ok()?.at(8, 0, 0, 0);
    Some(tomorrow.to_zoned_datetime(fixed.zone.clone()).ok()?.timestamp())
}
