//! What a view shows when it has no rows: what this is for, and the next key.

use ratatui::layout::Rect;

use super::paint::{Paint, Runs, dim, plain, run, wrap};
use super::scene::Scene;
use super::text::{Phrase, Word};
use super::theme::Role;
use crate::app::state::Tab;
use crate::rules::fleet::Freshness;

/// Paints an empty view.
pub fn paint(paint: &mut Paint, scene: &Scene, area: Rect) {
    let width = area.width.saturating_sub(4).min(100);
    let lines = lines(scene);
    let wrapped = lines.iter().flat_map(|line| wrap(line, width, 0));
    for (row, line) in wrapped.take(usize::from(area.height.saturating_sub(1))).enumerate() {
        paint.runs(area.x + 2, area.y + 1 + row as u16, width, &line);
    }
}

fn lines(scene: &Scene) -> Vec<Runs> {
    let (world, view) = (&scene.state.world, &scene.state.view);
    if view.offers_shown() {
        return first_run(scene);
    }
    if world.fleet.accounts.is_empty() {
        return no_accounts(scene);
    }
    if view.list().hidden > 0 {
        return nothing_matches(scene);
    }
    let language = scene.look.language;
    let told = |word, why| vec![vec![plain(language.word(word))], vec![dim(language.word(why))]];
    match view.tab {
        Tab::Activity => told(Word::NothingDone, Word::NothingDoneWhy),
        Tab::Budgets => told(Word::NoBudgets, Word::NoBudgetsWhy),
        Tab::Alerts => told(Word::NoAlerts, Word::NoAlertsWhy),
        _ if world.fleet.accounts.iter().all(|account| account.as_of.is_none()) => loading(scene),
        Tab::Storage => told(Word::NothingIdle, Word::NothingIdleWhy),
        Tab::Fleet | Tab::Spend => nothing_rented(scene),
    }
}

/// Keys were found in the environment: one key each makes them accounts.
fn first_run(scene: &Scene) -> Vec<Runs> {
    let language = scene.look.language;
    let mut lines = vec![
        vec![run(language.word(Word::Welcome), Role::Strong)],
        vec![dim(language.word(Word::WhatItIs))],
        Runs::new(),
        vec![plain(language.word(Word::FoundKeys))],
        Runs::new(),
    ];
    for offered in &scene.state.view.offered {
        lines.push(vec![
            run(format!("  {}  ", offered.number), Role::Accent),
            run(format!("{:<12}", offered.provider), Role::Strong),
            dim(language.phrase(&Phrase::FromVariable { variable: &offered.variable })),
        ]);
    }
    lines.push(Runs::new());
    lines.push(vec![dim(language.phrase(&Phrase::ConfigAt { path: &scene.state.view.fixed.config_path }))]);
    lines.push(vec![plain(language.word(Word::OrDemo)), run("  rentop demo", Role::Accent)]);
    if !scene.state.world.fleet.accounts.is_empty() {
        lines.push(vec![run("enter", Role::Accent), plain(format!(" {}", language.word(Word::GoOn)))]);
    }
    lines
}

fn no_accounts(scene: &Scene) -> Vec<Runs> {
    let language = scene.look.language;
    let variables = providers::PROVIDERS.iter().filter_map(|entry| entry.key_env.first().copied());
    vec![
        vec![run(language.word(Word::NoAccounts), Role::Strong)],
        vec![dim(language.word(Word::WhatItIs))],
        Runs::new(),
        vec![plain(language.word(Word::SetAKey))],
        variables.into_iter().map(|variable| run(format!("  {variable}"), Role::Accent)).collect(),
        vec![plain(language.phrase(&Phrase::OrConfigAt { path: &scene.state.view.fixed.config_path }))],
        Runs::new(),
        vec![plain(language.word(Word::OrDemo)), run("  rentop demo", Role::Accent)],
    ]
}

fn nothing_matches(scene: &Scene) -> Vec<Runs> {
    let (language, view) = (scene.look.language, &scene.state.view);
    let filter = if view.list().filter_text.is_empty() {
        language.quick(view.list().quick)
    } else {
        view.list().filter_text.as_str()
    };
    vec![
        vec![plain(language.phrase(&Phrase::NothingMatches { filter, hidden: view.list().hidden }))],
        vec![run("esc", Role::Accent), dim(format!(" {}", language.word(Word::ShowsAll)))],
    ]
}

fn nothing_rented(scene: &Scene) -> Vec<Runs> {
    let language = scene.look.language;
    vec![
        vec![plain(language.word(Word::NothingRented))],
        vec![dim(language.phrase(&Phrase::AccountsAsked { count: scene.state.world.fleet.accounts.len() }))],
    ]
}

/// Nobody has answered yet: whom we ask, and for how long.
fn loading(scene: &Scene) -> Vec<Runs> {
    let language = scene.look.language;
    let waits = scene.state.world.fleet.accounts.iter().any(|account| account.trouble.is_none());
    let head = if waits { Word::Loading } else { Word::NobodyAnswered };
    let mut lines = vec![vec![plain(language.word(head))], Runs::new()];
    for account in &scene.state.world.fleet.accounts {
        let mut line = vec![plain(format!("  {}  ", scene.account_title(&account.name)))];
        line.push(match (&account.trouble, account.pacing.in_flight) {
            (Some(_), _) => run(language.freshness(Freshness::Failed), Role::Urgent),
            (None, Some(asked)) => dim(language.phrase(&Phrase::AskingFor { age: &scene.since(asked) })),
            (None, None) => dim(language.word(Word::NotAskedYet)),
        });
        lines.push(line);
    }
    lines
}
