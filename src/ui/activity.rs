//! What was done: every action of this run and the latest before it, newest first.

use ratatui::layout::Rect;

use super::fleet;
use super::format;
use super::paint::{Paint, Run, Runs, dim, plain, run};
use super::popup::labelled;
use super::scene::Scene;
use super::text::{OfSaving, Phrase, Word};
use super::theme::Role;
use crate::app::listing::Line;
use crate::rules::saga::{Operation, Outcome, Step};

/// Places of the columns.
struct Columns {
    when: (u16, u16),
    what: (u16, u16),
    name: (u16, u16),
    saves: (u16, u16),
    state: (u16, u16),
    /// Leaves first.
    who: (u16, u16),
}

impl Columns {
    fn fit(area: Rect) -> Self {
        let (when, what, saves) = (10, 8, 9);
        let name = match area.width {
            0..76 => 14,
            76..100 => 18,
            _ => 26,
        };
        let who = if area.width >= 110 { 20 } else { 0 };
        let mut x = area.x + 2;
        let mut next = |width: u16| {
            let at = x;
            x += if width > 0 { width + 2 } else { 0 };
            (at, width)
        };
        let (when, what, name, saves) = (next(when), next(what), next(name), next(saves));
        let rest = area.right().saturating_sub(saves.0 + saves.1 + 2 + 1);
        let state_width = if who > 0 { rest.saturating_sub(who + 2) } else { rest };
        let (state, who) = (next(state_width), next(who));
        Columns { when, what, name, saves, state, who }
    }
}

pub fn paint(paint: &mut Paint, scene: &Scene, area: Rect) {
    let (language, list) = (scene.look.language, &scene.state.view.activity);
    let columns = Columns::fit(area);
    for (column, word) in [
        (columns.when, Word::When),
        (columns.what, Word::What),
        (columns.name, Word::On),
        (columns.state, Word::State),
        (columns.who, Word::Who),
    ] {
        paint.text(column.0, area.y, column.1, language.word(word), Role::Dim);
    }
    paint.right(columns.saves.0, area.y, columns.saves.1, language.word(Word::SavesHead), Role::Dim);
    let height = usize::from(area.height.saturating_sub(1));
    for (row, line) in list.lines.iter().skip(list.top).take(height).enumerate() {
        let Line::Operation(op) = line else { continue };
        let Some(operation) = scene.state.world.operations.get(op) else { continue };
        let y = area.y + 1 + row as u16;
        let here = list.cursor.as_ref() == Some(line);
        if here {
            paint.text(area.x, y, 1, scene.look.glyphs.cursor, Role::Accent);
        }
        paint.text(columns.when.0, y, columns.when.1, &scene.moment(operation.began_at), Role::Dim);
        paint.text(columns.what.0, y, columns.what.1, language.action(operation.action), Role::Plain);
        let name_role = if here { Role::Here } else { Role::Plain };
        paint.text(columns.name.0, y, columns.name.1, &operation.target.name, name_role);
        let saves = saves(scene, operation);
        paint.right(columns.saves.0, y, columns.saves.1, &saves.text, saves.role);
        paint.runs(columns.state.0, y, columns.state.1, &[state(scene, operation)]);
        paint.text(columns.who.0, y, columns.who.1, &operation.by, Role::Dim);
    }
}

/// What it saves an hour, once that is so.
fn saves(scene: &Scene, operation: &Operation) -> Run {
    let saved = format::in_order(&operation.target.saves(), scene.currency());
    let text = saved.first().map(|rate| format::bare_rate(*rate, scene.look.glyphs));
    match (text, &operation.step) {
        (Some(text), Step::Ended { outcome: Outcome::Done { .. }, .. }) => {
            let fresh = scene.confirmed(&operation.target.identity).is_some_and(|latest| latest.id == operation.id);
            run(text, if fresh { Role::Good } else { Role::Plain })
        }
        (None, _) | (Some(_), Step::Ended { .. }) => dim(scene.look.glyphs.dash),
        (Some(text), _) => dim(text),
    }
}

/// Where it is, or how it ended.
fn state(scene: &Scene, operation: &Operation) -> Run {
    match &operation.step {
        Step::Ended { outcome, .. } => {
            let role = match outcome {
                Outcome::Done { .. } => Role::Plain,
                Outcome::Queued(_) => Role::Waste,
                Outcome::Refused(_) | Outcome::NotSaved(_) => Role::Urgent,
                Outcome::NotSent(_) | Outcome::Unproven => Role::Dim,
            };
            let made = operation.saving.as_ref().and_then(|saving| saving.proof.as_ref());
            match (made, outcome) {
                // What a checkpoint did is what it holds.
                (Some(proof), Outcome::Done { .. }) if operation.is_checkpoint() => {
                    let (bytes, files) = (format::bytes(proof.bytes), proof.files);
                    run(scene.look.language.of_saving(&OfSaving::Made { bytes: &bytes, files }), role)
                }
                _ => run(scene.look.language.outcome(outcome), role),
            }
        }
        _ => fleet::step(scene, operation),
    }
}

/// One action in full, for the details.
pub fn operation_lines(scene: &Scene, operation: &Operation) -> Vec<Runs> {
    let language = scene.look.language;
    let target = &operation.target;
    let title = language.phrase(&Phrase::PlanFor { action: operation.action, name: &target.name });
    let account = scene.account_title(&target.identity.account);
    let mut lines = vec![vec![run(title, Role::Strong), dim(format!("  {account}  {}", target.identity.id))]];
    let saving = super::saving::in_full(scene, operation);
    // Of a checkpoint it says where it is, or what it made.
    let made = operation.saved().is_some() && operation.is_checkpoint();
    if !operation.is_saving() && !made {
        lines.push(vec![state(scene, operation)]);
    }
    lines.extend(saving);
    let mut add = |word: Word, value: Runs| lines.push(labelled(&language.word(word).to_lowercase(), 12, value));
    let began = format!(
        "{}{}{}",
        scene.moment(operation.began_at),
        language.word(Word::Comma),
        language.phrase(&Phrase::Ago { age: &scene.since(operation.began_at) })
    );
    add(Word::When, vec![plain(began)]);
    add(Word::Who, vec![plain(&operation.by)]);
    if let Some(answer) = &operation.answer {
        add(Word::Answer, vec![plain(answer)]);
    }
    if let Step::Ended { at, .. } = &operation.step {
        let took = format::span(at.duration_since(operation.began_at), language);
        add(Word::Took, vec![plain(took)]);
    }
    // What was not done saves nothing.
    let counts = matches!(operation.step, Step::Ended { outcome: Outcome::Done { .. }, .. }) || !operation.is_ended();
    if counts && let Some(saves) = format::rates(&target.saves(), scene.currency(), scene.look) {
        add(Word::PlanSaves, vec![plain(saves)]);
    }
    lines
}
