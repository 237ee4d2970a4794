//! The table of the Spend view: one line a group, one currency after the other, each with its total.

use ratatui::layout::Rect;
use rust_decimal::prelude::ToPrimitive;

use super::{COLUMNS, account_name, amount, group_name, grouping, sign};
use crate::app::columns::Column;
use crate::app::listing::Line;
use crate::app::spend::{SpendLine, Spent};
use crate::rules::spend::{By, Evidence, Exact, Group, Key};
use crate::ui::format;
use crate::ui::paint::{Paint, Runs, dim, plain, run};
use crate::ui::scene::Scene;
use crate::ui::text::Word;
use crate::ui::theme::Role;

/// The cursor and a blank.
const LEFT: u16 = 2;
/// The narrowest a name can be.
const NAME: u16 = 14;
/// So much it grows before anything else does, and after everything else.
const NAME_MORE: u16 = 8;
const NAME_MOST: u16 = 30;
/// An amount that is less than a cent.
const SMALL: u16 = 5;
/// A share in digits.
const PERCENT: u16 = 5;
/// The narrowest and the widest bar of a share.
const BAR: (u16, u16) = (6, 30);

/// What a column beside name, amount, waste and share says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extra {
    /// By its place among the components with a column.
    Component(usize),
    /// All other components.
    Others,
    GpuHours,
}

struct Columns {
    name: Column,
    amount: Column,
    extras: Vec<(Extra, Column)>,
    waste: Column,
    /// The bar with its percent; the bar is left out where it has no room.
    share: Column,
}

impl Columns {
    fn fit(scene: &Scene, area: Rect, totals: &[Group], by: By) -> Self {
        let language = scene.look.language;
        let head = |word: Word| format::width(language.word(word));
        // Parts are no larger than their total, and so are their digits.
        let widest = |head: u16, of: &dyn Fn(&Group) -> String| {
            totals.iter().map(|group| format::width(&of(group))).max().unwrap_or(0).max(head).max(SMALL)
        };
        // A mark before, one behind.
        let amount =
            widest(head(Word::Amount).max(7), &|group| self::amount(scene, group.amounts.total(), group.currency)) + 2;
        let waste = widest(head(Word::WasteHead), &|group| self::amount(scene, group.amounts.wasted, group.currency));
        let mut extras: Vec<(Extra, u16)> = Vec::new();
        // What a component is of itself is its amount.
        let apart = by != By::Component;
        for (at, word) in [Word::Compute, Word::Disk, Word::StorageHead].into_iter().enumerate().filter(|_| apart) {
            let part = |group: &Group| text(scene, Extra::Component(at), group);
            extras.push((Extra::Component(at), widest(head(word), &part)));
        }
        if apart && totals.iter().any(|group| !others(group).is_zero()) {
            extras.push((Extra::Others, widest(head(Word::OtherHead), &|group| text(scene, Extra::Others, group))));
        }
        extras.push((Extra::GpuHours, widest(head(Word::GpuHours), &|group| text(scene, Extra::GpuHours, group))));
        let needed = |extras: &[(Extra, u16)]| {
            let extra: u16 = extras.iter().map(|(_, width)| width + 1).sum();
            LEFT + NAME + 1 + amount + extra + 1 + waste + 1 + PERCENT
        };
        // They leave in this order.
        for leaves in [Extra::Others, Extra::Component(2), Extra::Component(1), Extra::GpuHours, Extra::Component(0)] {
            if needed(&extras) > area.width {
                extras.retain(|(extra, _)| *extra != leaves);
            }
        }
        let mut spare = area.width.saturating_sub(needed(&extras) + 1);
        let mut give = |least: u16, most: u16| {
            let more = if spare < least { 0 } else { spare.min(most) };
            spare -= more;
            more
        };
        // A resource has its account beside its name.
        let name = NAME + give(0, if by == By::Instance { 2 * NAME_MORE } else { NAME_MORE });
        // Columns of figures stand a little apart where there is room.
        let figures = extras.len() as u16 + 1;
        let apart = give(figures, 2 * figures) / figures;
        let bar = give(BAR.0, BAR.1);
        let name = name + give(0, NAME_MOST);
        let mut x = area.x + LEFT;
        let mut next = |width: u16| {
            let column = Column { x, width };
            x += width + 1;
            column
        };
        Columns {
            name: next(name),
            amount: next(amount),
            extras: extras.into_iter().map(|(extra, width)| (extra, next(width + apart))).collect(),
            waste: next(waste + apart),
            share: next(bar + PERCENT),
        }
    }
}

/// What is charged for components without a column.
fn others(group: &Group) -> Exact {
    let shown: Exact = COLUMNS.iter().map(|component| group.of(*component)).sum();
    group.amounts.total() - shown
}

fn text(scene: &Scene, extra: Extra, group: &Group) -> String {
    let part = match extra {
        Extra::Component(at) => group.of(COLUMNS[at]),
        Extra::Others => others(group),
        Extra::GpuHours => {
            return if group.amounts.gpu_ms == 0 { String::new() } else { format::gpu_hours(group.amounts.gpu_ms) };
        }
    };
    if part.is_zero() { String::new() } else { amount(scene, part, group.currency) }
}

pub fn paint(paint: &mut Paint, scene: &Scene, area: Rect, shown: &Spent) {
    let list = &scene.state.view.spend.list;
    let totals = &shown.totals;
    let columns = Columns::fit(scene, area, totals, shown.by);
    head(paint, scene, &columns, area.y, shown.by);
    let height = usize::from(area.height.saturating_sub(1));
    let lines = list.lines.iter().zip(&shown.rows).skip(list.top).take(height);
    for (row, (line, group)) in lines.enumerate() {
        let y = area.y + 1 + row as u16;
        let here = list.cursor.as_ref() == Some(line);
        if here {
            paint.text(area.x, y, 1, scene.look.glyphs.cursor, Role::Accent);
        }
        let Line::Spend(SpendLine::Group(currency, _) | SpendLine::Total(currency)) = line else { continue };
        let Some(total) = totals.iter().find(|total| total.currency == *currency) else { continue };
        match group.and_then(|at| shown.report.groups.get(at)) {
            Some(group) => {
                let name = run(group_name(scene, &group.key), if here { Role::Here } else { Role::Plain });
                let mut name: Runs = vec![name];
                if let Key::Billable(account, _) = &group.key {
                    name.push(dim(format!("  {}", account_name(scene, account))));
                }
                self::row(paint, scene, &columns, y, &name, group, Some(total));
            }
            None => {
                let language = scene.look.language;
                let mut name: Runs =
                    vec![run(language.word(Word::Total), if here { Role::Here } else { Role::Strong })];
                if shown.uneven.contains(currency) {
                    name.push(dim(format!(" {}", language.word(Word::RowsRounded))));
                }
                self::row(paint, scene, &columns, y, &name, total, None);
            }
        }
    }
}

fn head(paint: &mut Paint, scene: &Scene, columns: &Columns, y: u16, by: By) {
    let language = scene.look.language;
    paint.text(columns.name.x, y, columns.name.width, language.word(grouping(by)), Role::Dim);
    let sign = format::symbol(scene.currency(), scene.look.glyphs);
    let amount = format!("{} {}", sign.trim(), language.word(Word::Amount));
    let room = columns.amount.width - 1;
    let amount = if format::width(&amount) > room { language.word(Word::Amount).to_owned() } else { amount };
    paint.right(columns.amount.x, y, room, &amount, Role::Dim);
    for (extra, column) in &columns.extras {
        let word = match extra {
            Extra::Component(at) => [Word::Compute, Word::Disk, Word::StorageHead][*at],
            Extra::Others => Word::OtherHead,
            Extra::GpuHours => Word::GpuHours,
        };
        paint.right(column.x, y, column.width, language.word(word), Role::Dim);
    }
    paint.right(columns.waste.x, y, columns.waste.width, language.word(Word::WasteHead), Role::Dim);
    if columns.share.width > PERCENT {
        paint.text(columns.share.x + 1, y, columns.share.width - 1, language.word(Word::Share), Role::Dim);
    } else {
        paint.right(columns.share.x, y, columns.share.width, language.word(Word::Share), Role::Dim);
    }
}

/// One line: `~` before an amount that is assumed in part, the sign of billed behind one that is wholly so, `?`
/// behind one to which more may have been charged.
fn row(
    paint: &mut Paint,
    scene: &Scene,
    columns: &Columns,
    y: u16,
    name: &[crate::ui::paint::Run],
    group: &Group,
    total: Option<&Group>,
) {
    let amounts = &group.amounts;
    paint.runs(columns.name.x, y, columns.name.width, name);
    let role = if total.is_none() { Role::Strong } else { Role::Plain };
    let about = if amounts.assumed.is_zero() { "" } else { "~" };
    let behind = match () {
        () if !amounts.possible.is_zero() => "?",
        () if !amounts.billed.is_zero() && amounts.estimated().is_zero() => sign(scene, Evidence::Billed),
        () => "",
    };
    let text = format!("{about}{}", amount(scene, amounts.total(), group.currency));
    paint.right(columns.amount.x, y, columns.amount.width - 1, &text, role);
    paint.text(columns.amount.x + columns.amount.width - 1, y, 1, behind, Role::Dim);
    for (extra, column) in &columns.extras {
        let text = self::text(scene, *extra, group);
        paint.right(column.x, y, column.width, &text, role);
    }
    let wasted = match amounts.wasted {
        wasted if wasted.is_zero() => String::new(),
        wasted => amount(scene, wasted, group.currency),
    };
    paint.right(columns.waste.x, y, columns.waste.width, &wasted, Role::Waste);
    if let Some(total) = total {
        share(paint, scene, columns.share, y, amounts.total(), total.amounts.total());
    }
}

fn share(paint: &mut Paint, scene: &Scene, column: Column, y: u16, part: Exact, whole: Exact) {
    let of = |amount: Exact| amount.amount().to_f64().unwrap_or(0.0);
    if of(whole) <= 0.0 {
        return;
    }
    let share = (of(part) / of(whole)).clamp(0.0, 1.0);
    let percent = format::part(share);
    let room = column.width.saturating_sub(PERCENT);
    let cells = (share * f64::from(room.saturating_sub(2))).round() as u16;
    let mut runs: Runs = Vec::new();
    if room > 0 {
        let bar = scene.look.glyphs.bar_full.repeat(usize::from(cells.max(u16::from(share > 0.0))));
        runs.push(plain(format!(" {bar}{}", if share > 0.0 { " " } else { "" })));
        runs.push(dim(percent));
        paint.runs(column.x, y, column.width, &runs);
    } else {
        paint.right(column.x, y, column.width, &percent, Role::Dim);
    }
}
