//! The window in which somebody chooses the columns of the fleet.

use ratatui::layout::Rect;

use super::paint::{Paint, Runs, dim, plain, run, wrap};
use super::popup::{self, Border, key};
use super::scene::Scene;
use super::text::Word;
use super::theme::Role;
use crate::app::columns::Optional;

const WIDTH: u16 = 62;

pub fn paint(paint: &mut Paint, scene: &Scene, room: Rect, at: usize) {
    let language = scene.look.language;
    let choice = &scene.state.view.columns;
    let width = WIDTH.min(room.width.saturating_sub(2));
    let mut lines = wrap(&[dim(language.word(Word::ColumnsWhy))], width.saturating_sub(6), 0);
    lines.push(Runs::new());
    for (place, column) in choice.order.iter().enumerate() {
        let here = place == at;
        let mark = if choice.is_on(*column) { scene.look.glyphs.marked } else { " " };
        let cursor = if here { scene.look.glyphs.cursor } else { " " };
        let role = if here { Role::Here } else { Role::Plain };
        lines.push(vec![
            run(format!("{cursor} "), Role::Accent),
            run(format!("{mark} "), Role::Accent),
            run(language.word(word(*column)), role),
        ]);
    }
    lines.push(Runs::new());
    let mut keys = Runs::new();
    for (name, word) in [("space", Word::ShowOrHide), ("- +", Word::LeavesEarlierLater), ("esc", Word::Close)] {
        if !keys.is_empty() {
            keys.push(plain("   "));
        }
        keys.extend(key(name, language.word(word)));
    }
    let border = Border { title: language.word(Word::Columns).to_owned(), keys, ..Border::default() };
    popup::scrolled(paint, room, width, &lines, 0, border);
}

fn word(column: Optional) -> Word {
    match column {
        Optional::Up => Word::ColumnUp,
        Optional::Region => Word::ColumnRegion,
        Optional::Project => Word::ColumnProject,
        Optional::Memory => Word::ColumnMemory,
        Optional::Trend => Word::ColumnTrend,
        Optional::Month => Word::ColumnMonth,
        Optional::Spent => Word::ColumnSpent,
        Optional::Account => Word::ColumnAccount,
    }
}
