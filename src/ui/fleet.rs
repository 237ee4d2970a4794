//! The list of the fleet: groups and rows, in columns that leave by their rank when it gets narrow.

mod group;
mod next;

use providers::model::{Instance, Market, Phase, Rates, Remark};
use providers::usage::Usage;
use ratatui::layout::Rect;

use super::paint::Paint;
use super::scene::{Scene, name_of};
use super::text::{Phrase, Word};
use super::theme::Role;
use super::{format, saving, usage};
use crate::app::columns::{Column, Columns, FLAGS, FRACTION, SIGNS, SPARK};
use crate::app::listing::Line;
use crate::app::message::GroupName;
use crate::app::rows;
use crate::app::state::BRIGHT;
use crate::rules::fleet::Known;

pub use group::{balance, freshness, group_title};
pub use next::{remark_role, step, whole_parts};

/// Head and visible lines.
pub fn paint(paint: &mut Paint, scene: &Scene, area: Rect) {
    let view = &scene.state.view.fleet;
    let grouping = rows::grouping(&scene.state.world, view);
    let columns = scene.state.view.fleet_columns(&scene.state.world);
    head(paint, scene, &columns, area.y);
    let height = usize::from(area.height.saturating_sub(1));
    for (row, line) in view.lines.iter().skip(view.top).take(height).enumerate() {
        let y = area.y + 1 + row as u16;
        let here = view.cursor.as_ref() == Some(line);
        if here {
            paint.text(area.x, y, 1, scene.look.glyphs.cursor, Role::Accent);
        }
        match line {
            Line::Group(key) => group::paint_group(paint, scene, &columns, area, y, key, here),
            Line::Resource(identity) => {
                if let Some(known) = scene.state.world.fleet.instances.get(identity) {
                    instance(paint, scene, &columns, y, known, here, grouping);
                }
            }
            Line::Operation(_) | Line::Spend(_) | Line::Budget(_) | Line::Alert(..) => {}
        }
    }
}

fn head(paint: &mut Paint, scene: &Scene, columns: &Columns, y: u16) {
    let language = scene.look.language;
    let rate =
        format!("{}/{}", format::symbol(scene.currency(), scene.look.glyphs).trim(), language.word(Word::PerHour));
    let rate_end = Column { width: columns.rate.width.saturating_sub(FRACTION - 3), ..columns.rate };
    let left = [
        (columns.name, Word::Name),
        (columns.gpu, Word::Gpu),
        (columns.next, Word::Next),
        (columns.account, Word::Account),
        (columns.project, Word::Project),
        (columns.region, Word::Region),
    ];
    // The head of the column that the rows are sorted by says so.
    let sort = scene.state.view.fleet.sort;
    let role = |column: Column| {
        let sorted = columns.sorted().into_iter().any(|(one, name)| name == sort && one.x == column.x);
        if sorted { Role::Accent } else { Role::Dim }
    };
    for (column, word) in left {
        paint.text(column.x, y, column.width, language.word(word), role(column));
    }
    let at_right = [
        (columns.util, Word::Util),
        (columns.memory, Word::Memory),
        (columns.idle, Word::Idle),
        (columns.saved, Word::Saved),
        (columns.up, Word::Up),
    ];
    for (column, word) in at_right {
        // A head may reach into the gap before its column.
        let more = u16::from(column.width > 0);
        paint.right(column.x - more, y, column.width + more, language.word(word), role(column));
    }
    paint.right(rate_end.x, y, rate_end.width, &rate, role(columns.rate));
    if let Some(day) = scene.state.world.spending.tally.day() {
        let month = language.month(day.month());
        paint.right(columns.month.x, y, columns.month.width, month, Role::Dim);
    }
    paint.right(columns.spent.x, y, columns.spent.width, language.word(Word::Spent), Role::Dim);
}

fn instance(
    paint: &mut Paint,
    scene: &Scene,
    columns: &Columns,
    y: u16,
    known: &Known<Instance>,
    here: bool,
    grouping: GroupName,
) {
    let (look, view) = (scene.look, &scene.state.view.fleet);
    let old = scene.is_old(&known.identity.account) || known.is_gone();
    let tone = |role: Role| match role {
        Role::Plain | Role::Strong if old => Role::Dim,
        role => role,
    };
    let signs = columns.name.x - SIGNS;
    if view.marks.contains(&known.identity) {
        paint.text(signs + 1, y, 1, look.glyphs.marked, Role::Accent);
    }
    let sign = scene.phase_sign(known);
    paint.text(signs + 2, y, 1, &sign.text, tone(sign.role));
    if scene.needs_you(known) {
        paint.text(signs + 4, y, 1, look.glyphs.needs_you, Role::Urgent);
    }
    let name_role = if here { Role::Here } else { tone(Role::Plain) };
    paint.text(columns.name.x, y, columns.name.width, name_of(known), name_role);
    let saving = scene.operation(&known.identity).filter(|operation| operation.is_saving());
    match saving {
        Some(operation) => {
            // How far it is takes the place of what the machine is and does.
            let x = columns.gpu.x - FLAGS;
            let cells = columns.rate.x.saturating_sub(x + 1);
            let doing = saving::doing_in_row(scene, operation, cells).unwrap_or_default();
            paint.runs(x, y, cells, &doing);
        }
        None => use_cells(paint, scene, columns, y, known, old),
    }
    rate_cell(paint, scene, columns.rate, y, &known.rates(), rate_role(known, scene, old));

    spent(paint, scene, columns, y, known, tone(Role::Plain));
    match next::of_action(scene, &known.identity) {
        Some(next) => {
            // What is being done matters more than how old the copy is.
            let room = columns.saved_and_next();
            let saving = saving.and_then(|operation| saving::next_in_row(scene, operation, room.width));
            let next = saving.unwrap_or_else(|| whole_parts(scene, next, room.width, Word::Comma));
            paint.runs(room.x, y, room.width, &next);
        }
        None => {
            saved(paint, scene, columns.saved, y, known, old);
            let mut next = next::next_of(scene, columns, known);
            if old && !known.is_gone() && grouping != GroupName::Account {
                next::age_first(scene, known, &mut next);
            }
            let next = whole_parts(scene, next, columns.next.width, Word::Comma);
            paint.runs(columns.next.x, y, columns.next.width, &next);
        }
    }
    let account = scene.account_title(&known.identity.account);
    paint.text(columns.account.x, y, columns.account.width, &account, Role::Dim);
    if columns.project.width > 0 {
        let project = rows::project_of(&scene.state.world, known).unwrap_or_default();
        paint.text(columns.project.x, y, columns.project.width, project, tone(Role::Plain));
    }
    let region = known.row.region.as_deref().unwrap_or_default();
    paint.text(columns.region.x, y, columns.region.width, region, Role::Dim);
    if let Some(started) = known.row.started_at.filter(|_| columns.up.width > 0 && known.phase() == Phase::Running) {
        let age = scene.since(scene.state.world.fleet.here(&known.identity.account, started));
        paint.right(columns.up.x, y, columns.up.width, &age, Role::Dim);
    }
}

/// What the machine is and does: its market, its cards, how much they are used, and since when they are not.
fn use_cells(paint: &mut Paint, scene: &Scene, columns: &Columns, y: u16, known: &Known<Instance>, old: bool) {
    let tone = if old { Role::Dim } else { Role::Plain };
    if known.row.market == Market::Spot {
        paint.text(columns.gpu.x - FLAGS, y, 1, "s", Role::Dim);
    }
    if scene.is_protected(known) {
        paint.text(columns.gpu.x - FLAGS + 1, y, 1, "p", Role::Accent);
    }
    let gpus = gpus(known, scene);
    paint.text(columns.gpu.x, y, columns.gpu.width, &gpus, tone);
    util(paint, scene, columns, y, known, old);
    if columns.memory.width > 0 {
        let memory = memory(known, scene);
        paint.right(columns.memory.x, y, columns.memory.width, &memory, tone);
    }
    idle(paint, scene, columns, y, known, old);
}

/// `8× H100 SXM`.
pub fn gpus(known: &Known<Instance>, scene: &Scene) -> String {
    match &known.row.gpus {
        Some(gpus) if gpus.count > 0 => format!("{}{} {}", gpus.count, scene.look.glyphs.times, gpus.model),
        Some(_) => scene.look.language.word(Word::NoGpu).to_owned(),
        None => scene.look.glyphs.dash.to_owned(),
    }
}

/// The curve and the figure while it runs, the phase as a word else.
fn util(paint: &mut Paint, scene: &Scene, columns: &Columns, y: u16, known: &Known<Instance>, old: bool) {
    let (column, look) = (columns.util, scene.look);
    let phase = scene.phase(known);
    let role = if old { Role::Dim } else { Role::Plain };
    if phase != Phase::Running || known.row.remarks.contains(&Remark::NoGpus) {
        let word = match phase {
            Phase::Running => look.language.word(Word::NoGpu),
            _ if columns.spark => state_words(scene, known, phase),
            _ if column.width < 9 => look.language.phase_short(phase),
            _ => look.language.phase(phase),
        };
        let role = match phase {
            Phase::Stopped if scene.wastes(known) && !old => Role::Waste,
            _ => Role::Dim,
        };
        paint.text(column.x, y, column.width, word, role);
        return;
    }
    let usage = scene.usage(known);
    let share = usage.and_then(Usage::mean_utilization);
    let figure = share.map_or_else(|| look.glyphs.dash.to_owned(), format::percent);
    let late = usage.filter(|usage| !usage.is_fresh(scene.now));
    let role = if share.is_some() && late.is_none() { role } else { Role::Dim };
    paint.right(column.x + column.width - 5, y, 5, &figure, role);
    // What is not of now has its age in the place of the curve.
    if let Some(late) = late.filter(|_| columns.spark && share.is_some()) {
        let age = look.language.phrase(&Phrase::Old { age: &scene.since(late.as_of) });
        paint.right(column.x, y, SPARK, &age, Role::Dim);
    } else if columns.spark
        && let Some(trend) = scene.state.world.gauges.get(&known.identity).map(|gauge| &gauge.trend)
    {
        let shown = trend.len().min(usize::from(SPARK));
        let curve: String =
            trend.iter().skip(trend.len() - shown).map(|share| look.glyphs.height(f64::from(*share))).collect();
        paint.right(column.x, y, SPARK, &curve, Role::Dim);
    }
}

/// A phase with what it means for money.
fn state_words(scene: &Scene, known: &Known<Instance>, phase: Phase) -> &'static str {
    use providers::model::Component;
    let language = scene.look.language;
    let rates = known.rates();
    match phase {
        Phase::Stopped if !rates.of(&[Component::Compute]).is_zero() => language.word(Word::StoppedBilled),
        Phase::Stopped if !rates.upper().is_zero() => language.word(Word::StoppedDisk),
        Phase::Stopped if rates.complete => language.word(Word::StoppedFree),
        phase => language.phase(phase),
    }
}

fn memory(known: &Known<Instance>, scene: &Scene) -> String {
    let dash = scene.look.glyphs.dash;
    let running = scene.phase(known) == Phase::Running;
    let Some(usage) = scene.usage(known) else {
        return if running { dash.to_owned() } else { String::new() };
    };
    let sum = |figures: Vec<Option<u64>>| {
        let known: Vec<u64> = figures.into_iter().flatten().collect();
        (!known.is_empty()).then(|| known.iter().fold(0u64, |sum, bytes| sum.saturating_add(*bytes)))
    };
    let used = sum(usage.gpus.iter().map(|gpu| gpu.memory_used_bytes).collect());
    let total = sum(usage.gpus.iter().map(|gpu| gpu.memory_total_bytes).collect());
    match (used, total) {
        (Some(used), Some(total)) => format!("{}/{}", format::gib(used), format::gib(total)),
        (Some(used), None) => format::gib(used),
        (None, _) => dash.to_owned(),
    }
}

/// How long nothing has worked on it; for how long it has been off.
fn idle(paint: &mut Paint, scene: &Scene, columns: &Columns, y: u16, known: &Known<Instance>, old: bool) {
    let (text, role) = match (scene.phase(known), known.row.stopped_at) {
        (Phase::Running, _) => usage::idle_cell(scene, known),
        (Phase::Stopped | Phase::Reclaimed, Some(stopped)) => {
            let stopped = scene.state.world.fleet.here(&known.identity.account, stopped);
            (format::brief_span(scene.now.duration_since(stopped)), Role::Dim)
        }
        _ => return,
    };
    let role = if old { Role::Dim } else { role };
    paint.right(columns.idle.x, y, columns.idle.width, &text, role);
}

/// How old the last verified copy is: whether one may end it. `never` where there may be something to lose.
fn saved(paint: &mut Paint, scene: &Scene, column: Column, y: u16, known: &Known<Instance>, old: bool) {
    if known.is_gone() {
        return;
    }
    let (text, role) = match scene.state.world.saved.get(&known.identity) {
        Some(saved) if old => (format::brief_span(scene.now.duration_since(saved.proof.at)), Role::Dim),
        Some(saved) => (format::brief_span(scene.now.duration_since(saved.proof.at)), Role::Plain),
        None if rows::may_hold_results(known) => (scene.look.language.word(Word::Never).to_owned(), Role::Dim),
        None => (scene.look.glyphs.dash.to_owned(), Role::Dim),
    };
    paint.right(column.x, y, column.width, &text, role);
}

fn rate_role(known: &Known<Instance>, scene: &Scene, old: bool) -> Role {
    let bright = scene.state.world.bright.get(&known.identity);
    if bright.is_some_and(|since| scene.now.duration_since(*since) < BRIGHT) {
        Role::Strong
    } else if known.is_gone() || matches!(known.row.market, Market::Reserved { .. }) {
        Role::Dim
    } else if scene.wastes(known) {
        Role::Waste
    } else if old {
        Role::Dim
    } else {
        Role::Plain
    }
}

/// A rate at the decimal point: `~` before an estimate, `?` after what only may be charged, `+` after what
/// lacks a part.
fn rate_cell(paint: &mut Paint, scene: &Scene, column: Column, y: u16, rates: &Rates, role: Role) {
    let glyphs = scene.look.glyphs;
    let (first, whole_width) = (scene.currency(), column.width.saturating_sub(FRACTION));
    let fraction_x = column.x + whole_width;
    if rates.lines.is_empty() && !rates.complete {
        return paint.right(column.x, y, whole_width, glyphs.dash, Role::Dim);
    }
    let shown = format::in_order(rates.upper().rates(), first);
    let rate = shown.first().copied().unwrap_or(providers::money::Rate::zero(first));
    let digits = format::hourly(rate.amount());
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let about = if rates.estimated() { "~" } else { "" };
    let sign = if rate.currency == first { String::new() } else { format::symbol(rate.currency, glyphs) };
    let more = if !rates.complete || shown.len() > 1 {
        "+"
    } else if rates.lines.iter().any(|line| !line.certain) {
        "?"
    } else {
        ""
    };
    // A long amount reaches into the gap before it: money is never cut.
    let whole = format!("{about}{sign}{whole}");
    let cells = format::width(&whole);
    paint.text(fraction_x.saturating_sub(cells), y, cells, &whole, role);
    paint.text(fraction_x, y, FRACTION, &format!(".{fraction}{more}"), role);
}

/// What it cost this month, and in the whole rental.
fn spent(paint: &mut Paint, scene: &Scene, columns: &Columns, y: u16, known: &Known<Instance>, role: Role) {
    if columns.month.width + columns.spent.width == 0 {
        return;
    }
    let row = scene.state.world.spending.row_beside_totals(&known.identity);
    let rates = known.rates();
    for (column, sums) in
        [(columns.month, row.as_ref().map(|row| &row.month)), (columns.spent, row.as_ref().map(|row| &row.rental))]
    {
        // Of what has no known price nothing is known to be spent.
        let known = sums.filter(|sums| rates.complete || sums.0.values().any(|amounts| !amounts.total().is_zero()));
        let Some(sums) = known else {
            paint.right(column.x, y, column.width, scene.look.glyphs.dash, Role::Dim);
            continue;
        };
        // The head says which currency is meant.
        let first = format::symbol(scene.currency(), scene.look.glyphs);
        let perhaps = sums.0.values().any(|amounts| !amounts.possible.is_zero());
        let more = if !rates.complete {
            "+"
        } else if perhaps {
            "?"
        } else {
            ""
        };
        let text = format!("{}{more}", format::sums(sums, scene).replacen(first.trim(), "", 1));
        paint.right(column.x, y, column.width, &text, role);
    }
}
