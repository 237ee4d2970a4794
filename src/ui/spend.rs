//! The Spend view: sums of some days, a bar for each of them, and who it was spent by.

mod bars;
mod figure;
mod range;
mod sums;
mod table;

use providers::model::{AccountName, Component};
use providers::money::Currency;
use ratatui::layout::Rect;

use super::format;
use super::paint::{Paint, Runs, dim, plain, wrap};
use super::scene::Scene;
use super::text::{Phrase, Word};
use crate::app::layout::Above;
use crate::app::listing::Line;
use crate::app::spend::SpendLine;
use crate::rules::spend::{Amounts, Billable, By, Evidence, Exact, Key};

pub use figure::paint as paint_figure;
pub use range::paint as paint_range;

/// Paints what stands above the list, and the list with its head.
pub fn paint(paint: &mut Paint, scene: &Scene, area: Rect, above: Above) {
    let top = Rect { height: above.height(), ..area };
    let list = Rect { y: area.y + top.height, height: area.height - top.height, ..area };
    sums::paint(paint, scene, Rect { height: above.sums, ..top });
    let Some(shown) = &scene.state.view.spend.shown else {
        return told(paint, list, &[vec![plain(scene.look.language.word(Word::ReadingBooks))]]);
    };
    if scene.state.view.spend.list.lines.is_empty() {
        let lines = nothing(scene);
        // No bars of nothing.
        return told(paint, Rect { y: top.y + above.sums, height: area.height - above.sums, ..area }, &lines);
    }
    bars::paint(paint, scene, Rect { y: top.y + above.sums, height: above.bars + above.feet, ..top }, above, shown);
    table::paint(paint, scene, list, shown);
}

fn told(paint: &mut Paint, area: Rect, lines: &[Runs]) {
    let width = area.width.saturating_sub(4).min(100);
    let wrapped = lines.iter().flat_map(|line| wrap(line, width, 0));
    for (row, line) in wrapped.take(usize::from(area.height.saturating_sub(1))).enumerate() {
        paint.runs(area.x + 2, area.y + 1 + row as u16, width, &line);
    }
}

/// Nothing was spent in these days: why that may be.
fn nothing(scene: &Scene) -> Vec<Runs> {
    let (language, spending) = (scene.look.language, &scene.state.world.spending);
    let mut lines: Vec<Runs> = match spending.tally.since() {
        Some(since) => {
            let date = format::day(crate::rules::spend::date_of(since, &spending.zone), today(scene), language);
            let begin = language.phrase(&Phrase::BooksSince { date: &date });
            vec![vec![plain(language.word(Word::NothingSpent))], vec![dim(begin)]]
        }
        // What was spent before that nobody knows.
        None => vec![vec![plain(language.word(Word::BooksEmpty))]],
    };
    lines.push(vec![dim(language.word(Word::SpendWhy))]);
    lines
}

/// The present day, in the zone of the books.
fn today(scene: &Scene) -> jiff::civil::Date {
    crate::rules::spend::date_of(scene.now, &scene.state.world.spending.zone)
}

/// What the list is about: of the currency under the cursor, else of the first there is.
fn currency_here(scene: &Scene) -> Option<Currency> {
    match &scene.state.view.spend.list.cursor {
        Some(Line::Spend(SpendLine::Group(currency, _) | SpendLine::Total(currency))) => Some(*currency),
        _ => scene.state.view.spend.shown.as_ref()?.currencies(scene.currency()).first().copied(),
    }
}

/// What a group is called.
fn group_name(scene: &Scene, key: &Key) -> String {
    let language = scene.look.language;
    match key {
        Key::Project(Some(project)) => project.to_string(),
        Key::Project(None) => language.word(Word::NoProject).to_owned(),
        Key::Provider(Some(provider)) => provider.to_string(),
        Key::Provider(None) => language.word(Word::NotInConfig).to_owned(),
        Key::Account(account) => account_name(scene, account),
        Key::Billable(_, billable) => billable_name(scene, billable),
        Key::Component(component) => language.component(*component).to_owned(),
        Key::Day(day) => format::weekday(*day, today(scene), language),
    }
}

fn account_name(scene: &Scene, account: &AccountName) -> String {
    match scene.state.world.spending.former_provider(account) {
        Some(provider) if scene.account(account).is_none() => format!("{provider}/{account}"),
        _ => scene.account_title(account),
    }
}

fn billable_name(scene: &Scene, billable: &Billable) -> String {
    match billable {
        Billable::Resource { identity, name } => {
            let name = name.as_deref().or_else(|| scene.state.view.spend.name(&scene.state.world, identity));
            name.map_or_else(|| identity.id.to_string(), str::to_owned)
        }
        Billable::Product(name) => name.clone(),
    }
}

/// The head of the first column.
fn grouping(by: By) -> Word {
    match by {
        By::Project => Word::Project,
        By::Provider => Word::Provider,
        By::Account => Word::Account,
        By::Instance => Word::Instance,
        By::Component => Word::Component,
        By::Day => Word::Day,
    }
}

/// The sign of how it is known: billed, counted by us, assumed. It stands under the bars and before the sums.
fn sign(scene: &Scene, evidence: Evidence) -> &'static str {
    let [billed, counted, assumed] = scene.look.glyphs.evidence;
    match evidence {
        Evidence::Billed => billed,
        Evidence::Observed | Evidence::Inferred => counted,
        Evidence::Assumed => assumed,
    }
}

fn evidence(evidence: Evidence) -> Word {
    match evidence {
        Evidence::Billed => Word::Billed,
        Evidence::Observed => Word::Observed,
        Evidence::Inferred => Word::Inferred,
        Evidence::Assumed => Word::Assumed,
    }
}

/// An amount in digits, with its sign where it is not the currency that is shown without one.
fn amount(scene: &Scene, amount: Exact, currency: Currency) -> String {
    if currency == scene.currency() { format::spent(amount.amount()) } else { money(scene, amount, currency) }
}

/// An amount with the sign of its currency.
fn money(scene: &Scene, amount: Exact, currency: Currency) -> String {
    format::spent_money(amount.amount(), currency, scene.look.glyphs)
}

/// Of what there is most.
fn majority(amounts: &Amounts) -> Evidence {
    let counted = amounts.observed + amounts.inferred;
    match () {
        () if amounts.billed >= counted && amounts.billed >= amounts.assumed => Evidence::Billed,
        () if counted >= amounts.assumed => Evidence::Observed,
        () => Evidence::Assumed,
    }
}

/// The components that have a column of their own, the last to leave first.
const COLUMNS: [Component; 3] = [Component::Compute, Component::Disk, Component::Storage];
