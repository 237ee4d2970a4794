//! The form that asks to which project the spend of some resources belongs.

use ratatui::layout::{Position, Rect};

use super::format;
use super::paint::{Paint, Runs, plain, run};
use super::popup::{self, Border, key};
use super::scene::Scene;
use super::text::{Phrase, Word};
use super::theme::Role;
use crate::app::state::AssignForm;
use crate::rules::plan::shown_name;

const WIDTH: u16 = 66;

pub fn paint(paint: &mut Paint, scene: &Scene, room: Rect, form: &AssignForm) -> Position {
    let language = scene.look.language;
    let fleet = &scene.state.world.fleet;
    let name = form.asked.first().map(|identity| {
        let instance = fleet.instances.get(identity).map(|known| known.row.name.as_deref());
        let storage = fleet.storage.get(identity).map(|known| known.row.name.as_deref());
        shown_name(instance.or(storage).flatten(), &identity.id)
    });
    let title = Phrase::AssignTitle { name: &name.unwrap_or_default(), count: form.asked.len() };
    let labels = [Word::AssignProject, Word::AssignFrom].map(|word| language.word(word));
    let cells = labels.iter().map(|label| format::width(label)).max().unwrap_or_default() + 2;
    let wrong = if form.wrong { Role::Urgent } else { Role::Dim };
    let why = |word, role| popup::labelled("", cells, vec![run(language.word(word), role)]);
    let lines = [
        popup::labelled(labels[0], cells, Runs::new()),
        why(Word::AssignProjectWhy, Role::Dim),
        Runs::new(),
        popup::labelled(labels[1], cells, Runs::new()),
        why(Word::AssignFromWhy, wrong),
    ];
    let mut keys = Runs::new();
    for (name, word) in [("tab", Word::OtherField), ("enter", Word::Save), ("esc", Word::Cancel)] {
        if !keys.is_empty() {
            keys.push(plain("   "));
        }
        keys.extend(key(name, language.word(word)));
    }
    let area = popup::place(room, WIDTH, lines.len() as u16 + 2);
    let inside = popup::paint(paint, area, &Border { title: language.phrase(&title), keys, ..Border::default() });
    for (row, line) in lines.iter().enumerate().take(usize::from(inside.height)) {
        paint.runs(inside.x, inside.y + row as u16, inside.width, line);
    }
    let room = inside.width.saturating_sub(cells + 1);
    let mut field = |row, input| popup::input(paint, inside.x + cells, inside.y + row, room, input);
    let ends = [field(0, &form.project), field(3, &form.from)];
    ends[usize::from(form.in_from)]
}
