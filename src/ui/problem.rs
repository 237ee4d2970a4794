//! What went wrong with an account or an action, or what was just said, in full.

use providers::error::Problem;
use providers::model::AccountName;
use ratatui::layout::Rect;

use super::paint::{Paint, Runs, dim, plain, run, wrap};
use super::popup::{self, Border};
use super::scene::Scene;
use super::text::{Phrase, Word};
use super::theme::Role;
use crate::app::state::Problem as About;
use crate::rules::fleet::Trouble;

const WIDTH: u16 = 90;

/// Returns the first line that is shown.
pub fn paint(paint: &mut Paint, scene: &Scene, room: Rect, about: &About, scroll: u16) -> u16 {
    let language = scene.look.language;
    let width = WIDTH.min(room.width.saturating_sub(2));
    let inside = width.saturating_sub(6);
    let (title, lines) = match about {
        About::Account(name) => {
            (language.phrase(&Phrase::ProblemsOf { account: &scene.account_title(name) }), lines(scene, name))
        }
        About::Operation(op) => match scene.state.world.operations.get(op) {
            Some(operation) => {
                let name = &operation.target.name;
                let title = language.phrase(&Phrase::PlanFor { action: operation.action, name });
                (title, super::activity::operation_lines(scene, operation).split_off(1))
            }
            None => (String::new(), vec![vec![plain(language.word(Word::Unknown))]]),
        },
        About::Alert(topic, since) => {
            let title = language.word(Word::Alerts).to_owned();
            match scene.state.world.alerting.alerts.find_one(topic, *since) {
                Some(alert) => (title, super::alerts::in_full(scene, alert)),
                None => (title, vec![vec![plain(language.word(Word::Unknown))]]),
            }
        }
        About::Message(message) => {
            (language.word(Word::SaidLast).to_owned(), vec![vec![plain(scene.message(message))]])
        }
    };
    let lines: Vec<Runs> = lines.iter().flat_map(|line| wrap(line, inside, 2)).collect();
    let keys = popup::key("esc", language.word(Word::Close));
    popup::scrolled(paint, room, width, &lines, scroll, Border { title, keys, ..Border::default() })
}

fn lines(scene: &Scene, name: &AccountName) -> Vec<Runs> {
    let language = scene.look.language;
    let Some(account) = scene.account(name) else { return vec![vec![plain(language.word(Word::Unknown))]] };
    let mut lines = Vec::new();
    if let Some(trouble) = &account.trouble {
        lines.push(vec![
            run(format!("{} ", scene.look.glyphs.needs_you), Role::Urgent),
            plain(language.trouble(&trouble.value)),
        ]);
        lines.push(vec![dim(language.phrase(&Phrase::TroubleSince { age: &scene.since(trouble.as_of) }))]);
        lines.push(vec![plain(language.advice(&trouble.value))]);
        if let Trouble::Request(error) = &trouble.value
            && language.error_kind(&error.kind) != error.kind.to_string()
        {
            lines.push(vec![dim(error.to_string())]);
        }
    }
    let age = account.as_of.map(|as_of| language.phrase(&Phrase::Ago { age: &scene.since(as_of) }));
    let age = age.unwrap_or_else(|| language.word(Word::Never).to_owned());
    lines.push(vec![dim(format!("{}  ", language.word(Word::LastAnswer))), plain(age)]);
    if account.last_complete != account.as_of
        && let Some(complete) = account.last_complete
    {
        let age = language.phrase(&Phrase::Ago { age: &scene.since(complete) });
        lines.push(vec![dim(format!("{}  ", language.word(Word::LastComplete))), plain(age)]);
    }
    if let Some(until) = account.pacing.quiet_until.or(account.pacing.backoff_until).filter(|until| *until > scene.now)
    {
        let time = super::format::age(until.duration_since(scene.now), language);
        lines.push(vec![dim(language.phrase(&Phrase::NextTryIn { time: &time }))]);
    }
    if let Some(error) = &account.balance_error {
        let error = language.error_kind(&error.kind);
        lines.push(vec![plain(language.phrase(&Phrase::BalanceUnknown { error: &error }))]);
    }
    if !account.problems.is_empty() {
        lines.push(Runs::new());
        lines.push(vec![run(language.phrase(&Phrase::Problems { count: account.problems.len() }), Role::Strong)]);
        lines.extend(account.problems.iter().map(|problem| problem_line(scene, problem)));
    }
    lines
}

fn problem_line(scene: &Scene, problem: &Problem) -> Runs {
    let field = if problem.field.is_empty() { String::new() } else { format!("{}: ", problem.field) };
    vec![
        dim(format!("{} {}: ", scene.look.glyphs.dot, problem.request)),
        run(field, Role::Strong),
        plain(&problem.message),
    ]
}
