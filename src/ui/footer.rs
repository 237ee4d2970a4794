//! The last line: what was just said, else how many rows there are; and the keys that work now.

use providers::model::{Action as Deed, Identity, ResourceKind};
use ratatui::layout::{Position, Rect};

use super::deeds::first_action;
use super::format;
use super::paint::{Paint, Runs, dim, plain, run, runs_width};
use super::popup;
use super::scene::Scene;
use super::text::{Phrase, Word};
use super::theme::Role;
use crate::app::action::Action;
use crate::app::answers::answers;
use crate::app::keymap::Binding;
use crate::app::listing::Line;
use crate::app::message::{Msg, QuickName};
use crate::app::state::{Modal, Tab};
use crate::rules::alerts::Stage;
use crate::rules::plan::Hindrance;
use crate::rules::saga::{Operation, Outcome};

/// The least room for a text that is being typed, its sign and the blanks around it included.
const FIELD: u16 = 20;

/// Paints the rule and the line; says where a filter is being typed.
pub fn paint(paint: &mut Paint, scene: &Scene, area: Rect) -> Option<Position> {
    paint.rule(area.x, area.y, area.width);
    let line = Rect::new(area.x + 1, area.y + 1, area.width.saturating_sub(2), 1);
    if let Some(Modal::Filter { input, .. }) = scene.state.view.modals.last() {
        return Some(filter_field(paint, scene, line, input));
    }
    let message = scene.state.view.message.as_ref();
    let left = match message {
        Some(shown) => vec![run(scene.message(&shown.message), message_role(&shown.message))],
        None => counts(scene),
    };
    let room = line.width.saturating_sub(runs_width(&left) + 3);
    let hints = match (scene.state.view.modals.last(), message) {
        // A window names its own keys.
        (Some(_), _) => Runs::new(),
        (None, None) => hints(scene, room, |binding| match binding.action {
            Action::AllIdle | Action::SaveAndEnd if !available(scene, binding.action) => LAST,
            Action::SaveAndEnd => 1,
            Action::AllIdle => 2,
            _ if binding.danger => STAYS,
            Action::Help | Action::TakeBack => STAYS,
            Action::Filter => 3,
            Action::Quit => 4,
            Action::Palette => 5,
            Action::Details => 6,
            _ => LAST,
        }),
        // What is said goes before what can be pressed; what has no room can be read in full.
        (None, Some(shown)) => {
            let hints = hints(scene, room, |binding| match binding.action {
                Action::TakeBack => STAYS,
                Action::Help => 1,
                _ => LAST,
            });
            let cut = runs_width(&hints) > room;
            if shown.message.is_bad() && (cut || room == 0) { [in_full(scene), hints].concat() } else { hints }
        }
    };
    let end = line.width.saturating_sub(runs_width(&hints));
    paint.runs(line.x, line.y, end.max(1) - 1, &left);
    paint.runs_right(line.x, line.y, line.width, &hints);
    None
}

fn in_full(scene: &Scene) -> Runs {
    let key = scene.key_of(Action::Problem);
    vec![run(key, Role::Accent), plain(format!(" {}  ", scene.look.language.word(Word::InFull)))]
}

fn message_role(message: &Msg) -> Role {
    match message {
        Msg::Ended { outcome: Outcome::Done { .. }, .. } => Role::Good,
        Msg::Ended { outcome: Outcome::Refused(_), .. } => Role::Urgent,
        Msg::Ended { outcome: Outcome::Queued(_), .. } => Role::Waste,
        Msg::Begun { .. } | Msg::TakenBack { .. } => Role::Accent,
        _ => Role::Plain,
    }
}

/// Which line of how many, what is marked, what the filters hide.
fn counts(scene: &Scene) -> Runs {
    let (list, language, dot) = (scene.state.view.list(), scene.look.language, scene.look.glyphs.dot);
    let mut parts: Vec<Runs> = Vec::new();
    if let Some(at) = list.cursor_at() {
        parts.push(vec![dim(format!("{} / {}", at + 1, list.lines.len()))]);
    }
    if !list.marks.is_empty() {
        let mut marked = vec![run(language.phrase(&Phrase::Marked { count: list.marks.len() }), Role::Accent)];
        if list.hidden_marks > 0 {
            let hidden = language.phrase(&Phrase::MarkedHidden { count: list.hidden_marks });
            marked.push(run(format!("{}{hidden}", language.word(Word::Comma)), Role::Waste));
        }
        parts.push(marked);
    }
    if !list.filter_text.is_empty() {
        parts.push(vec![plain(format!("/{}", list.filter_text))]);
    }
    if list.quick != QuickName::All {
        parts.push(vec![plain(language.quick(list.quick))]);
    }
    if list.hidden > 0 {
        parts.push(vec![dim(language.phrase(&Phrase::Hidden { count: list.hidden }))]);
    }
    if scene.state.view.tab == Tab::Storage {
        parts.extend(super::storage::sum(scene));
    }
    let mut out = Runs::new();
    for part in parts {
        if !out.is_empty() {
            out.push(dim(format!(" {dot} ")));
        }
        out.extend(part);
    }
    out
}

/// The rank of a hint that stays whatever happens.
const STAYS: u8 = 0;
/// The rank of the hints that go first.
const LAST: u8 = 9;

/// As many hints as fit, those of a high rank going first, and those that stay in any case.
fn hints(scene: &Scene, room: u16, rank: impl Fn(&Binding) -> u8) -> Runs {
    let tab = scene.state.view.tab;
    let mut hints: Vec<(u8, Runs)> = scene
        .state
        .view
        .fixed
        .keys
        .of(tab)
        .filter_map(|binding| {
            let hint = hint_of(scene, binding)?;
            let key = binding.keys.first().map(|key| scene.shown_key(*key)).unwrap_or_default();
            let (key_role, role) =
                if available(scene, binding.action) { (Role::Accent, Role::Plain) } else { (Role::Dim, Role::Dim) };
            let text = scene.message(&hint);
            Some((rank(binding), vec![run(key, key_role), run(format!(" {text}"), role)]))
        })
        .collect();
    let needed =
        |hints: &[(u8, Runs)]| hints.iter().map(|(_, runs)| runs_width(runs) + 2).sum::<u16>().saturating_sub(2);
    while needed(&hints) > room {
        let goes = hints.iter().map(|(rank, _)| *rank).max().filter(|rank| *rank > STAYS);
        let Some(at) = goes.and_then(|goes| hints.iter().rposition(|(rank, _)| *rank == goes)) else { break };
        hints.remove(at);
    }
    let mut out = Runs::new();
    for (_, runs) in hints {
        if !out.is_empty() {
            out.push(plain("  "));
        }
        out.extend(runs);
    }
    out
}

/// The hint of a binding as it is now; `None` keeps it out.
fn hint_of(scene: &Scene, binding: &Binding) -> Option<Msg> {
    let nothing = scene.state.view.list().lines.is_empty() || scene.state.view.offers_shown();
    if nothing && !available(scene, binding.action) {
        return None;
    }
    match binding.action {
        // In the Alerts view it never starts anything.
        Action::StopOrStart if scene.state.view.tab == Tab::Alerts => Some(Msg::HintStop),
        Action::StopOrStart => {
            let starts = pointed(scene).is_some_and(|known| first_action(scene, known) == Deed::Start);
            Some(if starts { Msg::HintStart } else { Msg::HintStop })
        }
        Action::End => {
            let storage = first_pointed(scene).is_some_and(|identity| identity.kind == ResourceKind::Storage);
            Some(if storage { Msg::HintDelete } else { Msg::HintRelease })
        }
        Action::TakeBack => can_take_back(scene).then(|| binding.hint.clone()).flatten(),
        // What is at rest, or has an action under way, cannot be copied from: a key for it would only be in the way.
        Action::Checkpoint | Action::SaveAndEnd => {
            available(scene, binding.action).then(|| binding.hint.clone()).flatten()
        }
        _ => binding.hint.clone(),
    }
}

/// What an action would be about first.
fn first_pointed<'a>(scene: &Scene<'a>) -> Option<&'a Identity> {
    if scene.state.view.tab == Tab::Alerts {
        return super::alerts::here(scene)?.matter.identity();
    }
    let list = scene.state.view.list();
    list.marks.first().or_else(|| list.selected())
}

/// The instance that an action would be about first.
fn pointed<'a>(scene: &Scene<'a>) -> Option<&'a crate::rules::fleet::Known<providers::model::Instance>> {
    scene.state.world.fleet.instances.get(first_pointed(scene)?)
}

fn can_take_back(scene: &Scene) -> bool {
    scene.state.world.under_way().any(Operation::can_be_taken_back)
}

/// Whether the row can be brought to safety, by the config or by what somebody says, and this done afterwards.
fn can_be_saved(scene: &Scene, deed: Deed) -> bool {
    pointed(scene).is_some_and(|known| {
        let reached = matches!(scene.recipe(known), Ok(_) | Err(Hindrance::NoRecipe));
        reached && scene.hindrance(known, deed).is_none()
    })
}

/// Whether a key does something for the row as it is now.
fn available(scene: &Scene, action: Action) -> bool {
    let view = &scene.state.view;
    match action {
        _ if view.offers_shown() && action.is_about_rows() => false,
        Action::StopOrStart | Action::End | Action::AllIdle | Action::Checkpoint | Action::SaveAndEnd
            if scene.only_looks_on() =>
        {
            false
        }
        Action::Checkpoint => can_be_saved(scene, Deed::Checkpoint),
        Action::SaveAndEnd => can_be_saved(scene, Deed::Release),
        Action::AllIdle => !scene.state.world.fleet.idle.is_empty(),
        Action::StopOrStart | Action::End | Action::Page if view.tab == Tab::Alerts => {
            super::alerts::here(scene).is_some_and(|alert| answers(&scene.state.world, &alert.matter).contains(&action))
        }
        Action::Seen | Action::Snooze if view.tab == Tab::Alerts => {
            super::alerts::here(scene).is_some_and(|alert| !matches!(alert.stage, Stage::Resolved { .. }))
        }
        Action::StopOrStart => {
            pointed(scene).is_some_and(|known| scene.hindrance(known, first_action(scene, known)).is_none())
        }
        Action::End => match first_pointed(scene) {
            Some(identity) if identity.kind == ResourceKind::Storage => {
                view.shelf.row(identity).is_some_and(|row| row.hindrance.is_none())
            }
            _ => pointed(scene).is_some_and(|known| scene.hindrance(known, Deed::Release).is_none()),
        },
        Action::Mark => matches!(view.list().cursor, Some(Line::Resource(_))),
        Action::Details => view.list().cursor.is_some(),
        Action::Filter | Action::Sort | Action::Group | Action::Quick => {
            !view.list().lines.is_empty() || view.list().hidden > 0
        }
        _ => true,
    }
}

fn filter_field(paint: &mut Paint, scene: &Scene, line: Rect, input: &tui_input::Input) -> Position {
    let language = scene.look.language;
    let list = scene.state.view.list();
    let (told, role) = match &list.filter_error {
        Some(error) => {
            let part = list.filter_text.get(error.at.clone()).unwrap_or_default();
            let role = if error.kind.is_unfinished() { Role::Dim } else { Role::Urgent };
            (language.phrase(&Phrase::FilterError { kind: error.kind, part }), role)
        }
        None => (language.phrase(&Phrase::Hidden { count: list.hidden }), Role::Dim),
    };
    let keys = vec![
        run("   enter", if list.filter_error.is_none() { Role::Accent } else { Role::Dim }),
        dim(format!(" {}", language.word(Word::KeepFilter))),
        run("  esc", Role::Accent),
        dim(format!(" {}", language.word(Word::Cancel))),
    ];
    // What is typed is seen, however long the words about it are.
    let room = line.width.saturating_sub(runs_width(&keys) + FIELD);
    let told = run(format::cut(&told, room, scene.look.glyphs.ellipsis), role);
    let keys = [vec![told], keys].concat();
    let x = paint.text(line.x, line.y, line.width, "/", Role::Accent) + 1;
    let cells = line.right().saturating_sub(x + runs_width(&keys) + 2);
    paint.runs_right(line.x, line.y, line.width, &keys);
    popup::input(paint, x, line.y, cells, input)
}
