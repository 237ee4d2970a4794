//! The window in which somebody chooses the days.

use ratatui::layout::{Position, Rect};

use crate::app::ranges::{CHOICES, RangeChoice};
use crate::rules::spend::{Range, RangeMistake};
use crate::ui::format;
use crate::ui::paint::{Paint, dim, plain, run};
use crate::ui::popup::{self, Border, key};
use crate::ui::scene::Scene;
use crate::ui::text::Word;
use crate::ui::theme::Role;

const WIDTH: u16 = 62;
/// Cells of a choice's name.
const NAME: u16 = 18;

/// Says where days are being typed.
pub fn paint(paint: &mut Paint, scene: &Scene, room: Rect, choice: &RangeChoice) -> Option<Position> {
    let language = scene.look.language;
    let today = super::today(scene);
    // A blank line above the field, and one below for what is said about it.
    let area = popup::place(room, WIDTH, CHOICES.len() as u16 + 5);
    let keys =
        [key("enter", language.word(Word::Choose)), vec![dim("   ")], key("esc", language.word(Word::Cancel))].concat();
    let inside = popup::paint(
        paint,
        area,
        &Border { title: language.word(Word::WhichDays).to_owned(), keys, ..Border::default() },
    );
    let cursor = |paint: &mut Paint, at: usize, y: u16| {
        if choice.at == at {
            paint.text(inside.x - 1, y, 1, scene.look.glyphs.cursor, Role::Accent);
        }
        if choice.at == at { Role::Here } else { Role::Plain }
    };
    for (at, (range, back)) in CHOICES.into_iter().enumerate() {
        let y = inside.y + at as u16;
        let role = cursor(paint, at, y);
        paint.text(inside.x + 1, y, NAME, language.word(word(range, back)), role);
        let days = format::period(range.period(today, back), today, language);
        paint.text(inside.x + 1 + NAME, y, inside.width.saturating_sub(NAME + 1), &days, Role::Dim);
    }
    let y = inside.y + CHOICES.len() as u16 + 1;
    let role = cursor(paint, CHOICES.len(), y);
    let x = inside.x + 1 + NAME;
    paint.text(inside.x + 1, y, NAME, language.word(Word::FromTo), role);
    let cells = inside.right().saturating_sub(x + 1);
    let typed = choice.input.value();
    if typed.is_empty() {
        paint.text(x, y, cells, &format!("{}..{}", today.first_of_month(), today), Role::Dim);
    }
    let cursor = popup::input(paint, x, y, cells, &choice.input);
    let said = match choice.typed(today) {
        _ if !choice.in_field() || (typed.is_empty() && !choice.tried) => dim(""),
        Ok(period) => plain(format::period(period, today, language)),
        Err(mistake) => run(language.word(mistake_word(mistake)), if choice.tried { Role::Urgent } else { Role::Dim }),
    };
    paint.runs(inside.x + 1, y + 1, inside.width.saturating_sub(1), &[said]);
    choice.in_field().then_some(cursor)
}

fn word(range: Range, back: i32) -> Word {
    match (range, back) {
        (Range::Day, _) => Word::TodayOnly,
        (Range::Week, _) => Word::ThisWeek,
        (Range::Month, 0) => Word::ThisMonth,
        (Range::Month, _) => Word::MonthBefore,
        (Range::Quarter, _) => Word::NinetyDays,
        (Range::Year, _) => Word::ThisYear,
        (Range::Days(_), _) => Word::FromTo,
    }
}

fn mistake_word(mistake: RangeMistake) -> Word {
    match mistake {
        RangeMistake::NoDate => Word::NoDate,
        RangeMistake::Reversed => Word::DaysReversed,
        RangeMistake::Future => Word::DaysAhead,
        RangeMistake::TooLong => Word::DaysTooMany,
    }
}
