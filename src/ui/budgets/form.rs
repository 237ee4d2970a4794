//! The form of one budget.

use providers::money::Currency;
use ratatui::layout::{Position, Rect};

use crate::app::budget_form::{BudgetForm, Field};
use crate::app::notes::is_unheard_of;
use crate::rules::budgets::{Unit, limit};
use crate::ui::format;
use crate::ui::paint::{Paint, Runs, dim, plain, run, wrap};
use crate::ui::popup::{self, Border, key};
use crate::ui::scene::Scene;
use crate::ui::text::{OfBudgets, Word};
use crate::ui::theme::Role;

const WIDTH: u16 = 78;

/// Returns where a text is being typed.
pub fn paint(paint: &mut Paint, scene: &Scene, room: Rect, form: &BudgetForm) -> Option<Position> {
    let language = scene.look.language;
    let width = WIDTH.min(room.width.saturating_sub(2));
    let inner = width.saturating_sub(6);
    let cells = Field::ALL.iter().map(|field| format::width(language.field(*field)[0])).max().unwrap_or(0) + 2;
    let told = told(scene, form);
    let mut below = wrap(&told, inner, 0);
    // Two lines at least, so that the window does not jump from field to field.
    below.resize(below.len().max(2), Runs::new());
    let mut keys = Runs::new();
    for (name, word) in [("tab", Word::OtherField), ("enter", Word::Save), ("esc", Word::Cancel)] {
        if !keys.is_empty() {
            keys.push(plain("   "));
        }
        keys.extend(key(name, language.word(word)));
    }
    let title = match &form.of {
        Some(name) => language.of_budgets(OfBudgets::ChangeBudget { name }),
        None => language.of_budgets(OfBudgets::NewBudget),
    };
    let title_right = if form.saving { language.of_budgets(OfBudgets::Saving) } else { String::new() };
    let height = (Field::ALL.len() + below.len() + 3) as u16;
    let border = Border { title, title_right, keys, ..Border::default() };
    let inside = popup::paint(paint, popup::place(room, width, height), &border);
    let mut cursor = None;
    for (at, field) in Field::ALL.into_iter().enumerate() {
        let y = inside.y + at as u16;
        if y >= inside.bottom() {
            break;
        }
        let here = at == form.at;
        if here {
            paint.text(inside.x - 2, y, 1, scene.look.glyphs.cursor, Role::Accent);
        }
        let role = match (&form.mistakes[at], here) {
            (Some(_), _) => Role::Urgent,
            (None, true) => Role::Here,
            (None, false) => Role::Dim,
        };
        paint.text(inside.x, y, cells, language.field(field)[0], role);
        let end = popup::input(paint, inside.x + cells, y, inside.width.saturating_sub(cells + 1), &form.fields[at]);
        cursor = if here { Some(end) } else { cursor };
    }
    for (row, line) in below.iter().enumerate() {
        let y = inside.y + (Field::ALL.len() + 1 + row) as u16;
        if y < inside.bottom() {
            paint.runs(inside.x, y, inside.width, line);
        }
    }
    cursor.filter(|_| !form.saving)
}

/// Why it was not saved, else what is wrong with a field, else what may stand in the one that is written in.
fn told(scene: &Scene, form: &BudgetForm) -> Runs {
    let language = scene.look.language;
    if let Some(error) = &form.refused {
        return vec![run(error, Role::Urgent)];
    }
    let wrong = form.mistakes[form.at].as_ref().map(|mistake| (form.at, mistake));
    let wrong = wrong.or_else(|| form.mistakes.iter().enumerate().find_map(|(at, one)| Some((at, one.as_ref()?))));
    match wrong {
        Some((at, mistake)) => {
            let [name, _] = language.field(Field::ALL[at]);
            vec![run(format!("{name}{}{}", language.word(Word::Colon), language.mistake(mistake)), Role::Urgent)]
        }
        None => match currency_of(form).filter(|currency| is_unheard_of(&scene.state.world, *currency)) {
            Some(currency) => vec![run(language.of_budgets(OfBudgets::NothingIn { currency }), Role::Waste)],
            None => vec![dim(language.field(Field::ALL[form.at])[1])],
        },
    }
}

/// The currency that the limit names; `None` while it can be read as none.
fn currency_of(form: &BudgetForm) -> Option<Currency> {
    match limit(form.fields[Field::Limit as usize].value(), None).ok()?.unit {
        Unit::Money(currency) => Some(currency),
        Unit::GpuHours => None,
    }
}
