//! A bar for each day: its height is the amount, the sign below it says how that is known.

use std::collections::BTreeMap;

use jiff::civil::Date;
use providers::money::Currency;
use ratatui::layout::Rect;
use rust_decimal::prelude::ToPrimitive;

use super::{currency_here, majority, money, sign};
use crate::app::layout::Above;
use crate::app::listing::Line;
use crate::app::spend::{SpendLine, Spent};
use crate::rules::spend::{Amounts, Evidence, Exact, Key, Period};
use crate::ui::format;
use crate::ui::paint::Paint;
use crate::ui::scene::Scene;
use crate::ui::text::{Phrase, Word};
use crate::ui::theme::{Colours, Role};

/// Room for what the highest bar stands for.
const PEAK: u16 = 18;
/// The widest bar, its blank included.
const WIDEST: u16 = 4;

/// One bar: a day, or several where there is no room for each.
struct Bar {
    first: Date,
    /// The first day that is no longer in it.
    to: Date,
    x: u16,
    amounts: Amounts,
}

pub fn paint(paint: &mut Paint, scene: &Scene, area: Rect, above: Above, shown: &Spent) {
    let Some(currency) = currency_here(scene) else { return };
    if area.height == 0 {
        return;
    }
    if shown.period.len() == 1 {
        return one_day(paint, scene, area, shown, currency);
    }
    let (bars, cells) = place(area, shown, currency);
    let highest = bars.iter().map(|bar| bar.amounts.total()).max().unwrap_or(Exact::ZERO);
    let here = day_here(scene);
    for bar in &bars {
        let is_here = here.is_some_and(|day| bar.first <= day && day < bar.to);
        let is_today = bar.first <= shown.today && shown.today < bar.to;
        let how = majority(&bar.amounts);
        let role = match () {
            // Turned round, a block would be a hole.
            () if is_here && scene.look.theme.colours == Colours::None => Role::Accent,
            () if is_here => Role::Here,
            () if is_today => Role::Strong,
            () if how == Evidence::Assumed => Role::Dim,
            () => Role::Plain,
        };
        let width = if cells > 1 { cells - 1 } else { 1 };
        column(paint, scene, Rect { x: bar.x, height: above.bars, width, ..area }, share(bar, highest), role);
        if !bar.amounts.total().is_zero() && above.feet > 0 {
            let foot = sign(scene, how).repeat(usize::from(width));
            paint.text(bar.x, area.y + above.bars, width, &foot, if is_here || is_today { role } else { Role::Dim });
        }
    }
    if above.feet > 1 {
        days(paint, scene, &bars, cells, Rect { y: area.y + above.bars + 1, height: 1, ..area }, shown, here);
    }
    let end = bars.last().map_or(area.x, |bar| bar.x + cells) + 1;
    peak(
        paint,
        scene,
        Rect { x: end, width: area.right().saturating_sub(end), ..area },
        above,
        &bars,
        highest,
        currency,
    );
}

/// What part of the highest bar it is: 0.0 to 1.0.
fn share(bar: &Bar, highest: Exact) -> f64 {
    let amount = bar.amounts.total().amount().to_f64().unwrap_or(0.0);
    let highest = highest.amount().to_f64().unwrap_or(0.0);
    if highest > 0.0 { (amount / highest).clamp(0.0, 1.0) } else { 0.0 }
}

/// As many days a bar as it takes for all to have room; returns the cells of each with the blank behind it.
fn place(area: Rect, shown: &Spent, currency: Currency) -> (Vec<Bar>, u16) {
    let days = shown.period.len().max(1);
    let room = area.width.saturating_sub(2);
    let beside = usize::from(room.saturating_sub(PEAK)).max(1);
    // Weeks are looked for before odd numbers of days.
    let each = [1, 2, 7, 14, 31].into_iter().find(|each| days.div_ceil(*each) <= beside);
    let each = each.unwrap_or_else(|| days.div_ceil(beside));
    let count = days.div_ceil(each);
    let cells = (beside / count).clamp(1, usize::from(WIDEST)) as u16;
    let mut bars: Vec<Bar> = Vec::with_capacity(count);
    for (at, day) in shown.period.days().enumerate() {
        if at % each == 0 {
            let x = area.x + 1 + (at / each) as u16 * cells;
            bars.push(Bar { first: day, to: day, x, amounts: Amounts::default() });
        }
        let bar = bars.last_mut().expect("the first day begins a bar");
        bar.to = day.tomorrow().unwrap_or(day);
        if let Some(amounts) = shown.days.get(&(currency, day)) {
            bar.amounts.merge(amounts);
        }
    }
    (bars, cells)
}

/// One bar in eighths of a row.
fn column(paint: &mut Paint, scene: &Scene, area: Rect, share: f64, role: Role) {
    let steps = scene.look.glyphs.spark.len() as f64;
    let mut filled = (share * f64::from(area.height) * steps).round() as usize;
    if share > 0.0 {
        filled = filled.max(1);
    }
    for row in 0..area.height {
        let here = filled.saturating_sub(usize::from(row) * steps as usize).min(steps as usize);
        if let Some(sign) = here.checked_sub(1).map(|at| scene.look.glyphs.spark[at]) {
            let text = sign.repeat(usize::from(area.width));
            paint.text(area.x, area.y + area.height - 1 - row, area.width, &text, role);
        }
    }
}

/// A single day is one row: how much of it is known in which way.
fn one_day(paint: &mut Paint, scene: &Scene, area: Rect, shown: &Spent, currency: Currency) {
    let amounts = shown.total.of(currency);
    let room = f64::from(area.width.saturating_sub(2));
    let whole = amounts.total().amount().to_f64().unwrap_or(0.0);
    if whole <= 0.0 {
        return;
    }
    let parts = [
        (Evidence::Billed, amounts.billed),
        (Evidence::Observed, amounts.observed + amounts.inferred),
        (Evidence::Assumed, amounts.assumed),
    ];
    let mut reached = 0.0;
    let mut x = area.x + 1;
    for (how, part) in parts {
        reached += part.amount().to_f64().unwrap_or(0.0);
        let end = area.x + 1 + (reached / whole * room).round() as u16;
        let cells = end.saturating_sub(x);
        let role = if how == Evidence::Assumed { Role::Dim } else { Role::Plain };
        x = paint.text(x, area.y, cells, &sign(scene, how).repeat(usize::from(cells)), role);
    }
}

/// The day under the cursor, when the list is one of days.
fn day_here(scene: &Scene) -> Option<Date> {
    match &scene.state.view.spend.list.cursor {
        Some(Line::Spend(SpendLine::Group(_, Key::Day(day)))) => Some(*day),
        _ => None,
    }
}

/// The days below their bars: today and the one under the cursor always, others where there is room.
fn days(paint: &mut Paint, scene: &Scene, bars: &[Bar], cells: u16, area: Rect, shown: &Spent, here: Option<Date>) {
    let mut taken: BTreeMap<u16, u16> = BTreeMap::new();
    let holds = |bar: &Bar, day: Date| bar.first <= day && day < bar.to;
    let mut marked: Vec<(&Bar, Role)> = Vec::new();
    marked.extend(bars.iter().filter(|bar| here.is_some_and(|day| holds(bar, day))).map(|bar| (bar, Role::Here)));
    marked.extend(bars.iter().filter(|bar| holds(bar, shown.today)).map(|bar| (bar, Role::Accent)));
    marked.extend(bars.iter().filter(|bar| is_labelled(bar, shown.period)).map(|bar| (bar, Role::Dim)));
    for (bar, role) in marked {
        let label = match role {
            // Of the day under the cursor, the month alone would say too little.
            Role::Here if shown.period.len() > 45 => {
                here.map_or_else(String::new, |day| format::day(day, shown.today, scene.look.language))
            }
            _ => label(scene, bar, cells, shown),
        };
        let end = bar.x + format::width(&label);
        // A blank stays on both sides.
        let free = taken.iter().all(|(from, to)| end < *from || bar.x > *to);
        if free && end <= area.right() {
            taken.insert(bar.x, end);
            paint.text(bar.x, area.y, end - bar.x, &label, role);
        }
    }
}

fn is_labelled(bar: &Bar, period: Period) -> bool {
    let day = bar.first.day();
    let long = period.len() > 45;
    match () {
        // The bar that a month begins in.
        () if long => {
            bar.first == period.from || day == 1 || bar.first.month() != bar.to.yesterday().unwrap_or(bar.to).month()
        }
        () if period.len() <= 7 => true,
        () => day == 1 || day % 5 == 0 || bar.first == period.from,
    }
}

fn label(scene: &Scene, bar: &Bar, cells: u16, shown: &Spent) -> String {
    let language = scene.look.language;
    let is_today = bar.first <= shown.today && shown.today < bar.to;
    match () {
        () if shown.period.len() > 45 && !is_today => {
            let last = bar.to.yesterday().unwrap_or(bar.to);
            language.month(last.month()).to_owned()
        }
        () if shown.period.len() > 45 => language.word(Word::Today).to_owned(),
        () if shown.period.len() <= 7 && cells >= WIDEST => language.weekday(bar.first.weekday()).to_owned(),
        () => bar.first.day().to_string(),
    }
}

/// Beside the bars: what the highest of them stands for, and how many days each has.
fn peak(paint: &mut Paint, scene: &Scene, area: Rect, above: Above, bars: &[Bar], highest: Exact, currency: Currency) {
    let language = scene.look.language;
    let Some(bar) = bars.iter().find(|bar| bar.amounts.total() == highest && !highest.is_zero()) else { return };
    let days = bar.first.until(bar.to).map_or(1, |span| span.get_days());
    let date = format::day(bar.first, super::today(scene), language);
    let most = language.phrase(&Phrase::Peak { money: &money(scene, highest, currency) });
    paint.text(area.x, area.y, area.width, &most, Role::Dim);
    let when = if days > 1 { language.phrase(&Phrase::DaysFrom { date: &date, count: days }) } else { date };
    if above.bars > 1 {
        paint.text(area.x, area.y + 1, area.width, &when, Role::Dim);
    }
}
