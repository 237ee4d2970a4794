//! A budget over its days: what was spent, where that leads, and the limit.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use providers::model::Identity;
use ratatui::layout::Rect;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::table::tone;
use super::{about, days, here, is_used_up, part, percent, scope, whole};
use crate::app::notes::unheard_of;
use crate::rules::budgets::{Budget, Standing, Unit};
use crate::rules::spend::{date_of, start_of};
use crate::ui::format;
use crate::ui::paint::{Paint, Run, Runs, dim, plain, run, runs_width};
use crate::ui::scene::{Scene, name_of};
use crate::ui::text::{OfBudgets, Word};
use crate::ui::theme::Role;

/// What is left running stands beside the chart from so many columns on.
const BESIDE_FROM: u16 = 96;
const BESIDE: u16 = 36;
/// Fewer rows are no curve.
const LEAST: u16 = 3;
/// Above the highest line.
const HEADROOM: f64 = 1.06;

/// The budget under the cursor.
pub fn paint(paint: &mut Paint, scene: &Scene, area: Rect) {
    let Some((budget, standing)) = here(scene) else { return };
    let Some(standing) = standing else {
        paint.text(area.x, area.y, area.width, &scene.look.language.of_budgets(OfBudgets::Reading), Role::Dim);
        return;
    };
    let beside = if area.width >= BESIDE_FROM { BESIDE } else { 0 };
    let chart = Rect { width: area.width - if beside > 0 { beside + 2 } else { 0 }, ..area };
    let mut y = area.y;
    for line in head(scene, budget, standing, chart.width) {
        paint.runs(chart.x, y, chart.width, &line);
        y += 1;
    }
    if beside > 0 {
        let side = Rect { x: area.right() - beside, width: beside, ..area };
        left_running(paint, scene, budget, standing, side);
    }
    // Where there is no room beside it, the dearest stand below a tall chart.
    let below = match beside {
        0 if area.height >= 16 => area.height / 3,
        _ => 0,
    };
    let plot = Rect { y, height: (area.y + area.height - below).saturating_sub(y), ..chart };
    if plot.height > LEAST {
        self::plot(paint, scene, budget, standing, plot);
    }
    if below > 0 {
        let list = Rect { y: area.bottom() - below + 1, height: below - 1, ..area };
        left_running(paint, scene, budget, standing, list);
    }
}

/// What it is, what the signs stand for, and what one should know of the figures.
fn head(scene: &Scene, budget: &Budget, standing: &Standing, width: u16) -> Vec<Runs> {
    let (language, glyphs, unit) = (scene.look.language, scene.look.glyphs, budget.limit.unit);
    let whole = whole(scene, budget);
    let spent = format!("{}{}", about(standing), part(scene, standing.spent, unit));
    let of = language.of_budgets(OfBudgets::Of { part: &spent, whole: &whole });
    let mut title = vec![
        run(&budget.name, Role::Strong),
        dim(format!("  {}  {}  ", scope(scene, budget), days(scene, budget, &standing.term))),
        plain(format!("{of}  ")),
        run(percent(standing.spent, budget), tone(standing.spent, budget)),
    ];
    let reached = match standing.reaches {
        Some(at) => run(language.of_budgets(OfBudgets::ReachedAt { at: &scene.moment(at) }), Role::Waste),
        None if is_used_up(budget, standing) => run(language.of_budgets(OfBudgets::LimitReached), Role::Urgent),
        None => dim(language.of_budgets(OfBudgets::NotReached)),
    };
    let mut lines = Vec::new();
    if runs_width(&title) + 3 + format::width(&reached.text) <= width {
        title.push(plain("   "));
        title.push(reached);
        lines.push(title);
    } else {
        lines.extend([title, vec![reached]]);
    }
    let sign = |sign: &str, role, text| vec![run(sign, role), dim(format!(" {}", language.of_budgets(text)))];
    let figure = |amount: Decimal| plain(format!(" {}", part(scene, amount, unit)));
    let mut legend: Vec<Runs> = vec![sign(glyphs.bar_full, Role::Plain, OfBudgets::Spent)];
    if let Some(forecast) = standing.forecast {
        let mut told = sign(glyphs.evidence[1], Role::Accent, OfBudgets::Forecast);
        told.push(figure(forecast));
        told.push(dim(format!(" ({})", percent(forecast, budget))));
        legend.push(told);
    }
    if let Some(committed) = standing.committed.filter(|committed| Some(*committed) != standing.forecast) {
        let mut told = sign(glyphs.evidence[2], Role::Dim, OfBudgets::Committed);
        told.push(figure(committed));
        legend.push(told);
    }
    legend.push(sign(glyphs.horizontal, Role::Waste, OfBudgets::Limit));
    let mut line = Runs::new();
    for entry in legend {
        if !line.is_empty() && runs_width(&line) + 3 + runs_width(&entry) > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(plain("   "));
        }
        line.extend(entry);
    }
    lines.push(line);
    let mut notes: Vec<String> = Vec::new();
    if !standing.estimated.is_zero() {
        let money = part(scene, standing.estimated, unit);
        notes.push(language.of_budgets(OfBudgets::Estimated { money: &money }));
    }
    if !standing.apart.is_empty() {
        let apart = standing.apart.iter();
        let sums: Vec<String> = apart.map(|(currency, sum)| format::spent_money(*sum, *currency, glyphs)).collect();
        notes.push(language.of_budgets(OfBudgets::Apart { money: &sums.join(" + ") }));
    }
    if let Some(currency) = unheard_of(&scene.state.world, budget, Some(standing)) {
        let note = language.of_budgets(OfBudgets::NothingIn { currency });
        lines.push(vec![run(note, Role::Waste)]);
    }
    if !notes.is_empty() {
        lines.push(vec![dim(notes.join(language.word(Word::Semicolon)))]);
    }
    lines
}

/// What each that runs adds by the end of the term, if it is left on.
fn left_running(paint: &mut Paint, scene: &Scene, budget: &Budget, standing: &Standing, area: Rect) {
    let language = scene.look.language;
    paint.text(area.x, area.y, area.width, &language.of_budgets(OfBudgets::LeftRunning), Role::Dim);
    let rows = usize::from(area.height.saturating_sub(1));
    let all = &standing.left_running;
    if all.is_empty() {
        paint.text(area.x, area.y + 1, area.width, &language.of_budgets(OfBudgets::NothingRuns), Role::Dim);
        return;
    }
    let shown = if all.len() > rows { rows.saturating_sub(1) } else { all.len() };
    for (row, (identity, added)) in all.iter().take(shown).enumerate() {
        let y = area.y + 1 + row as u16;
        let figure = format!("+{}", part(scene, *added, budget.limit.unit));
        let cells = area.width.min(BESIDE);
        paint.text(area.x, y, cells.saturating_sub(format::width(&figure) + 1), &name(scene, identity), Role::Plain);
        paint.right(area.x, y, cells, &figure, Role::Plain);
    }
    if shown < all.len() && rows > 0 {
        let more = language.of_budgets(OfBudgets::MoreRunning { count: all.len() - shown });
        paint.text(area.x, area.y + 1 + shown as u16, area.width, &more, Role::Dim);
    }
}

fn name(scene: &Scene, identity: &Identity) -> String {
    let fleet = &scene.state.world.fleet;
    let instance = fleet.instances.get(identity).map(|known| name_of(known).to_owned());
    let storage = || fleet.storage.get(identity).and_then(|known| known.row.name.clone());
    instance.or_else(storage).filter(|name| !name.is_empty()).unwrap_or_else(|| identity.id.to_string())
}

/// The scales of a chart.
struct Scale {
    from: Timestamp,
    to: Timestamp,
    highest: f64,
    area: Rect,
}

impl Scale {
    /// The middle of a column's time.
    fn time(&self, column: u16) -> f64 {
        (f64::from(column) + 0.5) / f64::from(self.area.width.max(1))
    }

    /// Where a moment is: 0.0 to 1.0.
    fn share(&self, at: Timestamp) -> f64 {
        let whole = self.to.duration_since(self.from).as_secs_f64();
        if whole <= 0.0 { 1.0 } else { (at.duration_since(self.from).as_secs_f64() / whole).clamp(0.0, 1.0) }
    }

    fn column(&self, at: Timestamp) -> u16 {
        ((self.share(at) * f64::from(self.area.width)) as u16).min(self.area.width.saturating_sub(1))
    }

    /// The row of an amount, from the top; the lowest holds zero.
    fn row(&self, amount: f64) -> u16 {
        let height = f64::from(self.area.height);
        let from_below = (amount / self.highest * height).clamp(0.0, height - 1.0) as u16;
        self.area.y + self.area.height - 1 - from_below
    }
}

fn float(amount: Decimal) -> f64 {
    amount.to_f64().unwrap_or(0.0)
}

fn plot(paint: &mut Paint, scene: &Scene, budget: &Budget, standing: &Standing, room: Rect) {
    let unit = budget.limit.unit;
    let labels = [
        match unit {
            Unit::Money(_) => whole(scene, budget),
            Unit::GpuHours => format::limit(budget.limit.amount),
        },
        part(scene, Decimal::ZERO, unit),
    ];
    let left = labels.iter().map(|label| format::width(label)).max().unwrap_or(0) + 1;
    let zone = &budget.zone;
    let first = standing.by_day.first().map(|(day, _)| *day);
    let from = match standing.term.first {
        Some(_) => standing.term.from,
        None => first.map_or(standing.as_of, |day| start_of(day, zone)),
    };
    let amounts = [Some(budget.limit.amount), standing.forecast, standing.committed, Some(standing.spent)];
    let highest = amounts.into_iter().flatten().map(float).fold(0.0, f64::max) * HEADROOM;
    let area = Rect { x: room.x + left, width: room.width.saturating_sub(left), height: room.height - 1, ..room };
    let scale = Scale { from, to: standing.term.to.unwrap_or(standing.as_of), highest, area };
    if area.width < 8 || highest <= 0.0 {
        return;
    }
    let limit_row = scale.row(float(budget.limit.amount));
    bars(paint, scene, budget, standing, &scale);
    onward(paint, scene, standing, &scale);
    // The limit goes behind what was spent, and before what is only thought.
    for column in 0..area.width {
        let cell = &paint.buffer[(area.x + column, limit_row)];
        if cell.symbol() == " " {
            paint.text(area.x + column, limit_row, 1, scene.look.glyphs.horizontal, Role::Waste);
        }
    }
    paint.right(room.x, limit_row, left - 1, &labels[0], Role::Waste);
    let bottom = area.bottom() - 1;
    if limit_row != bottom {
        paint.right(room.x, bottom, left - 1, &labels[1], Role::Dim);
    }
    if let Some(at) = standing.reaches.filter(|at| (scale.from..=scale.to).contains(at)) {
        paint.text(area.x + scale.column(at), limit_row, 1, scene.look.glyphs.needs_you, Role::Urgent);
    }
    axis(paint, scene, standing, &scale, zone);
}

/// What was spent, up to now: a bar a column, in eighths of a row.
fn bars(paint: &mut Paint, scene: &Scene, budget: &Budget, standing: &Standing, scale: &Scale) {
    let points = points(standing, &budget.zone, scale);
    let now = scale.share(standing.as_of);
    let steps = scene.look.glyphs.spark.len();
    let limit = float(budget.limit.amount);
    // The column of now is a bar too, however little of it is over.
    for column in 0..=scale.column(standing.as_of) {
        let amount = at(&points, scale.time(column).min(now));
        let role = if amount >= limit { Role::Urgent } else { Role::Plain };
        let mut filled = (amount / scale.highest * f64::from(scale.area.height) * steps as f64).round() as usize;
        filled = filled.max(usize::from(amount > 0.0));
        for row in 0..scale.area.height {
            let level = filled.saturating_sub(usize::from(row) * steps).min(steps);
            if let Some(sign) = level.checked_sub(1).map(|level| scene.look.glyphs.spark[level]) {
                paint.text(scale.area.x + column, scale.area.bottom() - 1 - row, 1, sign, role);
            }
        }
    }
}

/// Time and amount, from nothing at the beginning to what is spent now.
fn points(standing: &Standing, zone: &TimeZone, scale: &Scale) -> Vec<(f64, f64)> {
    let mut points = vec![(0.0, 0.0)];
    for (day, spent) in &standing.by_day {
        let end = day.tomorrow().map_or(standing.as_of, |next| start_of(next, zone)).min(standing.as_of);
        points.push((scale.share(end), float(*spent)));
    }
    points.push((scale.share(standing.as_of), float(standing.spent)));
    points
}

/// The amount at a time, between the points around it.
fn at(points: &[(f64, f64)], time: f64) -> f64 {
    let after = points.partition_point(|(at, _)| *at < time).min(points.len() - 1);
    let ((from, low), (to, high)) = (points[after.saturating_sub(1)], points[after]);
    if to <= from { high } else { low + (high - low) * ((time - from) / (to - from)).clamp(0.0, 1.0) }
}

/// The forecast, and what comes if all is left running.
fn onward(paint: &mut Paint, scene: &Scene, standing: &Standing, scale: &Scale) {
    let now = scale.share(standing.as_of);
    let [_, forecast, committed] = scene.look.glyphs.evidence;
    for (amount, sign, role) in
        [(standing.committed, committed, Role::Dim), (standing.forecast, forecast, Role::Accent)]
    {
        let Some(end) = amount else { continue };
        let line = [(now, float(standing.spent)), (1.0, float(end))];
        for column in scale.column(standing.as_of) + 1..scale.area.width {
            let row = scale.row(at(&line, scale.time(column)));
            paint.text(scale.area.x + column, row, 1, sign, role);
        }
    }
}

/// The days below: first, last, now, and that on which the limit is reached.
fn axis(paint: &mut Paint, scene: &Scene, standing: &Standing, scale: &Scale, zone: &TimeZone) {
    let (language, area, y) = (scene.look.language, scale.area, scale.area.bottom());
    let today = date_of(scene.now, zone);
    let one_day = scale.to.duration_since(scale.from).as_hours() <= 48;
    let label = |at: Timestamp| {
        let there = zone.to_datetime(at);
        match one_day {
            true => format!("{:02}:{:02}", there.hour(), there.minute()),
            false => format::day(there.date(), today, language),
        }
    };
    let last = Timestamp::from_second(scale.to.as_second() - 1).unwrap_or(scale.to);
    let mut marks: Vec<(u16, Run)> = Vec::new();
    if let Some(at) = standing.reaches.filter(|at| (scale.from..=scale.to).contains(at)) {
        marks.push((scale.column(at), run(label(at), Role::Urgent)));
    }
    let now = if one_day { label(standing.as_of) } else { language.word(Word::Today).to_owned() };
    marks.push((scale.column(standing.as_of), run(now, Role::Strong)));
    marks.push((0, dim(label(scale.from))));
    if standing.term.to.is_some() {
        marks.push((area.width - 1, dim(if one_day { label(scale.to) } else { label(last) })));
    }
    let mut taken: Vec<(u16, u16)> = Vec::new();
    for (column, mark) in marks {
        let cells = format::width(&mark.text);
        let from = column.min(area.width.saturating_sub(cells));
        if taken.iter().all(|(begins, ends)| from > *ends || from + cells < *begins) && cells <= area.width {
            taken.push((from, from + cells));
            paint.text(area.x + from, y, cells, &mark.text, mark.role);
        }
    }
}
