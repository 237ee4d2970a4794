//! The form of a lease.

use jiff::Timestamp;
use ratatui::layout::{Position, Rect};

use super::format;
use super::paint::{Paint, Runs, dim, plain, run, wrap};
use super::popup::{self, Border, key};
use super::scene::Scene;
use super::text::Word;
use super::theme::Role;
use crate::app::lease_form::{Choice, Field, LeaseForm, Wish, read};
use crate::app::leases::{currencies, notes};
use crate::rules::lease::Draft;

const WIDTH: u16 = 76;

/// Returns where a text is being typed.
pub fn paint(paint: &mut Paint, scene: &Scene, room: Rect, form: &LeaseForm) -> Option<Position> {
    let language = scene.look.language;
    let width = WIDTH.min(room.width.saturating_sub(2));
    let inner = width.saturating_sub(6);
    let cells = Field::ALL.iter().map(|field| format::width(language.lease_field(*field)[0])).max().unwrap_or(0) + 2;
    let mut below: Vec<Runs> = told(scene, form).iter().flat_map(|line| wrap(line, inner, 0)).collect();
    // Room for what most leases say, so that the window does not jump while somebody types.
    below.resize(below.len().max(3), Runs::new());
    let mut keys = Runs::new();
    for (name, word) in [("tab", Word::OtherField), ("enter", Word::Save), ("esc", Word::Cancel)] {
        if !keys.is_empty() {
            keys.push(plain("   "));
        }
        keys.extend(key(name, language.word(word)));
    }
    let fields = form.fields();
    let height = (Field::ALL.len() + below.len() + 3) as u16;
    let border = Border { title: title(scene, form), keys, ..Border::default() };
    let inside = popup::paint(paint, popup::place(room, width, height), &border);
    let mut cursor = None;
    for (at, field) in fields.iter().enumerate() {
        let y = inside.y + at as u16;
        if y >= inside.bottom() {
            break;
        }
        let here = at == form.at;
        if here {
            paint.text(inside.x - 2, y, 1, scene.look.glyphs.cursor, Role::Accent);
        }
        let role = match (&form.mistakes[*field as usize], here) {
            (Some(_), _) => Role::Urgent,
            (None, true) => Role::Here,
            (None, false) => Role::Dim,
        };
        paint.text(inside.x, y, cells, language.lease_field(*field)[0], role);
        let (x, room) = (inside.x + cells, inside.width.saturating_sub(cells + 1));
        let end = match field {
            Field::When => Some(popup::input(paint, x, y, room, &form.when)),
            Field::MaxCost => Some(popup::input(paint, x, y, room, &form.max_cost)),
            Field::What => {
                paint.runs(x, y, room, &choices(scene, form));
                None
            }
            Field::OnBox => {
                paint.text(x, y, room, language.lease_yes(form.on_box), Role::Strong);
                None
            }
        };
        cursor = if here { end } else { cursor };
    }
    for (row, line) in below.iter().enumerate() {
        let y = inside.y + (Field::ALL.len() + row) as u16 + 1;
        if y < inside.bottom() {
            paint.runs(inside.x, y, inside.width, line);
        }
    }
    cursor
}

fn title(scene: &Scene, form: &LeaseForm) -> String {
    let name = form.asked.first().map(|identity| scene.state.world.fleet.name_of(identity)).unwrap_or_default();
    scene.look.language.lease_title(&name, form.asked.len())
}

/// All choices, the one that is made standing out; its sign says it without colour.
fn choices(scene: &Scene, form: &LeaseForm) -> Runs {
    let mut runs = Runs::new();
    for choice in form.choices() {
        if !runs.is_empty() {
            runs.push(plain("   "));
        }
        let text = scene.look.language.lease_choice(choice);
        runs.push(match choice == form.choice {
            true => run(format!("[{text}]"), Role::Strong),
            false => dim(format!(" {text} ")),
        });
    }
    runs
}

/// What is wrong with a field, else what the lease comes to, else what may stand in the one that is written in.
fn told(scene: &Scene, form: &LeaseForm) -> Vec<Runs> {
    let (language, world) = (scene.look.language, &scene.state.world);
    let wrong = form.mistakes.iter().enumerate().find_map(|(at, mistake)| Some((at, mistake.as_ref()?)));
    if let Some((at, mistake)) = wrong {
        let [name, _] = language.lease_field(Field::ALL[at]);
        let text = format!("{name}{}{}", language.word(Word::Colon), language.lease_mistake(mistake));
        return vec![vec![run(text, Role::Urgent)]];
    }
    let mut lines = Vec::new();
    let zone = &scene.state.view.fixed.zone;
    if let Ok(Wish::Lease(drafts, shift)) = read(form, zone, &currencies(world, &form.asked), scene.now)
        && let Some(first) = drafts.first()
    {
        lines.push(vec![plain(sentence(scene, first, scene.now))]);
        if drafts.len() == 1 {
            lines.extend(notes(world, first, shift, scene.now).iter().map(|note| vec![dim(language.lease_note(note))]));
        }
    }
    if form.choice != Choice::TakeAway {
        let field = form.fields().get(form.at).copied().unwrap_or(Field::What);
        lines.push(vec![dim(language.lease_field(field)[1])]);
    }
    lines
}

fn sentence(scene: &Scene, draft: &Draft, now: Timestamp) -> String {
    let language = scene.look.language;
    let when = language.lease_when(&draft.when, now, &scene.state.view.fixed.zone);
    format!("{}{}{when}", language.lease_what(draft.what), language.word(Word::Colon))
}
