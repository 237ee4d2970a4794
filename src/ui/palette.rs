//! The palette's window: a text, and what fits it.

use ratatui::layout::{Position, Rect};

use super::format;
use super::paint::{Paint, dim, plain, run};
use super::popup::{self, Border, key};
use super::scene::Scene;
use super::text::{Phrase, Word};
use super::theme::Role;
use crate::app::palette::{Entry, Palette};

const WIDTH: u16 = 76;
const ROWS: u16 = 12;
/// Keys stand in so many cells.
const KEY_CELLS: u16 = 8;

pub fn paint(paint: &mut Paint, scene: &Scene, room: Rect, palette: &Palette) -> Position {
    let language = scene.look.language;
    let rows = ROWS.min(room.height.saturating_sub(4));
    let area = popup::place(room, WIDTH, rows + 4);
    let keys =
        [key("enter", language.word(Word::Choose)), vec![dim("   ")], key("esc", language.word(Word::Cancel))].concat();
    let place = match palette.found.len() {
        0 => String::new(),
        count => format!("{} / {count}", palette.at + 1),
    };
    let border = Border { title: language.word(Word::Palette).to_owned(), keys, place, ..Border::default() };
    let inside = popup::paint(paint, area, &border);

    let x = paint.runs(inside.x, inside.y, inside.width, &[run(": ", Role::Accent)]);
    let cells = inside.right().saturating_sub(x + 1);
    let cursor = popup::input(paint, x, inside.y, cells, &palette.input);

    if palette.found.is_empty() {
        let nothing = language.phrase(&Phrase::NothingFound { text: palette.input.value() });
        paint.runs(inside.x, inside.y + 2, inside.width, &[dim(nothing)]);
    }
    let top = (palette.at + 1).saturating_sub(usize::from(rows));
    for (row, (at, found)) in palette.found.iter().enumerate().skip(top).take(usize::from(rows)).enumerate() {
        let y = inside.y + 2 + row as u16;
        let here = at == palette.at;
        if here {
            paint.text(inside.x - 1, y, 1, scene.look.glyphs.cursor, Role::Accent);
        }
        let key = match &found.entry {
            Entry::Action(action) => scene.key_of(*action),
            Entry::Row(_) => scene.look.glyphs.dot.to_owned(),
        };
        let pad = KEY_CELLS.saturating_sub(format::width(&key)).max(1);
        let label = if here { run(&found.label, Role::Here) } else { plain(&found.label) };
        let line = [run(format!("{key}{}", " ".repeat(usize::from(pad))), Role::Accent), label];
        paint.runs(inside.x + 1, y, inside.width.saturating_sub(1), &line);
    }
    cursor
}
