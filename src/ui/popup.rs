//! The one style of window: rounded corners, a title at the left, a remark at the right, keys below.

use ratatui::layout::{Position, Rect};
use tui_input::Input;

use super::format;
use super::paint::{Paint, Runs, dim, run};
use super::theme::Role;

/// What stands on the border of a window.
#[derive(Debug, Default)]
pub struct Border {
    pub title: String,
    pub title_right: String,
    /// Below, at the left: how far it is scrolled.
    pub place: String,
    /// Below, at the right: keys.
    pub keys: Runs,
}

/// A window of at most this size in the middle of its room.
pub fn place(room: Rect, width: u16, height: u16) -> Rect {
    let width = width.min(room.width.saturating_sub(2));
    let height = height.min(room.height);
    let x = room.x + (room.width - width) / 2;
    let y = room.y + (room.height - height) / 2;
    Rect::new(x, y, width, height)
}

/// Empties the window's place, draws its border and returns the room inside, two cells from each side.
pub fn paint(paint: &mut Paint, area: Rect, border: &Border) -> Rect {
    if area.width < 6 || area.height < 3 {
        return Rect::new(area.x, area.y, 0, 0);
    }
    // A cell at each side keeps what stands beside it from reading into the window.
    paint.blank(Rect { x: area.x.saturating_sub(1), width: area.width + 2, ..area });
    let [top_left, top_right, bottom_left, bottom_right] = paint.look.glyphs.corners;
    let (right, bottom) = (area.right() - 1, area.bottom() - 1);
    paint.rule(area.x, area.y, area.width);
    paint.rule(area.x, bottom, area.width);
    paint.upright(area.x, area.y, area.height);
    paint.upright(right, area.y, area.height);
    for (x, y, corner) in [
        (area.x, area.y, top_left),
        (right, area.y, top_right),
        (area.x, bottom, bottom_left),
        (right, bottom, bottom_right),
    ] {
        paint.text(x, y, 1, corner, Role::Rule);
    }
    let room = area.width - 4;
    let title = vec![run(format!(" {} ", border.title), Role::Strong)];
    let end = if border.title.is_empty() { area.x + 2 } else { paint.runs(area.x + 2, area.y, room, &title) };
    let right_title = vec![dim(format!(" {} ", border.title_right))];
    // The remark goes before it touches the title.
    if !border.title_right.is_empty() && both_fit(area.width, &border.title, &border.title_right) {
        paint.runs_right(end, area.y, right - 1 - end, &right_title);
    }
    if !border.place.is_empty() {
        paint.text(area.x + 2, bottom, room, &format!(" {} ", border.place), Role::Dim);
    }
    if !border.keys.is_empty() {
        let keys = [vec![dim(" ")], border.keys.clone(), vec![dim(" ")]].concat();
        paint.runs_right(area.x + 2, bottom, room, &keys);
    }
    Rect::new(area.x + 3, area.y + 1, area.width - 6, area.height - 2)
}

/// Whether a title and the remark at its right have room beside each other on a border.
pub fn both_fit(width: u16, title: &str, remark: &str) -> bool {
    // A corner and a line at each side, a blank before and after each text, a line between them.
    format::width(title).saturating_add(format::width(remark)).saturating_add(9) <= width
}

/// A line of text that is being typed: its end is seen. Returns where the terminal's cursor belongs.
pub fn input(paint: &mut Paint, x: u16, y: u16, cells: u16, input: &Input) -> Position {
    let scroll = input.visual_scroll(usize::from(cells));
    paint.text(x, y, cells, tail_from(input.value(), scroll as u16), Role::Strong);
    Position::new(x + (input.visual_cursor().saturating_sub(scroll) as u16).min(cells), y)
}

/// A text without its first cells.
fn tail_from(text: &str, cells: u16) -> &str {
    let mut skipped = 0;
    let mut rest = text;
    for (symbol, wide) in format::graphemes(text) {
        if skipped >= cells {
            break;
        }
        skipped += wide;
        // A grapheme is a part of the text, so what follows it is one too.
        rest = &text[symbol.as_ptr() as usize - text.as_ptr() as usize + symbol.len()..];
    }
    rest
}

/// A key and what it does, for the lower border.
pub fn key(key: &str, does: &str) -> Runs {
    vec![run(key, Role::Accent), dim(format!(" {does}"))]
}

/// A window over a text that may be longer than it: says where it is, and returns the first line that it shows.
/// That is the one that is asked for, unless the text ends before.
pub fn scrolled(paint: &mut Paint, room: Rect, width: u16, lines: &[Runs], scroll: u16, mut border: Border) -> u16 {
    let height = (lines.len() as u16).saturating_add(2).min(room.height);
    let area = place(room, width, height);
    let visible = usize::from(area.height.saturating_sub(2));
    let top = usize::from(scroll).min(lines.len().saturating_sub(visible));
    if lines.len() > visible {
        border.place = format!("{}-{} / {}", top + 1, (top + visible).min(lines.len()), lines.len());
    }
    let inside = self::paint(paint, area, &border);
    for (row, line) in lines.iter().skip(top).take(usize::from(inside.height)).enumerate() {
        paint.runs(inside.x, inside.y + row as u16, inside.width, line);
    }
    u16::try_from(top).unwrap_or(u16::MAX)
}

/// Puts a label before a value, the values one below the other.
pub fn labelled(label: &str, cells: u16, value: Runs) -> Runs {
    let pad = cells.saturating_sub(format::width(label)).max(1);
    let mut runs = vec![dim(format!("{label}{}", " ".repeat(usize::from(pad))))];
    runs.extend(value);
    runs
}
