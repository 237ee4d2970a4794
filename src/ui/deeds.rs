//! What an action would do to the line under the cursor: saves, goes on, deleted, kept, risked; or why it cannot be had.

use providers::model::{
    AccountName, Action, DataKind, DataPlace, Effect, Instance, Market, Offer, Rates, ResourceId, Risk,
};
use providers::money::{Burn, Rate};

use super::fleet;
use super::format;
use super::language::Language;
use super::paint::{Runs, dim, plain, run, runs_width};
use super::saving;
use super::scene::Scene;
use super::text::{OfSaving, Phrase, Word};
use super::theme::Role;
use crate::app::action::Action as Meaning;
use crate::app::update::stop_or_start_of;
use crate::rules::fleet::Known;
use crate::rules::plan::Hindrance;

/// Key and name of an action stand in so many cells.
pub const ACTION_CELLS: u16 = 11;

/// What `s` means for a row.
pub fn first_action(scene: &Scene, known: &Known<Instance>) -> Action {
    stop_or_start_of(scene.phase(known))
}

/// The key, the action and what it would do, in one line.
pub fn action_line(scene: &Scene, known: &Known<Instance>, action: Action) -> Runs {
    let (mut head, parts) = action_parts(scene, known, action);
    let used = runs_width(&head);
    head.push(plain(" ".repeat(usize::from(ACTION_CELLS.saturating_sub(used).max(2)))));
    for (at, part) in parts.into_iter().enumerate() {
        if at > 0 {
            head.push(dim(scene.look.language.word(Word::Semicolon)));
        }
        head.extend(part);
    }
    head
}

/// The key and the action, then what it would do: saves, goes on, lost, left behind, kept, risks; or why it cannot be had.
pub fn action_parts(scene: &Scene, known: &Known<Instance>, action: Action) -> (Runs, Vec<Runs>) {
    let language = scene.look.language;
    let key = scene.key_of(if action == Action::Release { Meaning::End } else { Meaning::StopOrStart });
    let hindrance = scene.hindrance(known, action);
    let key_role = if hindrance.is_some() { Role::Dim } else { Role::Accent };
    let head = vec![run(key, key_role), run(format!(" {}", language.action(action)), key_role)];
    if let Some(operation) = scene.operation(&known.identity).filter(|operation| operation.action == action) {
        return (head, vec![vec![fleet::step(scene, operation)]]);
    }
    if let Some(hindrance) = hindrance {
        return (head, vec![vec![dim(language.hindrance(&hindrance, action))]]);
    }
    let Offer::Yes(effect) = known.row.offers.of(action) else { return (head, Vec::new()) };
    let prepaid = matches!(known.row.market, Market::Reserved { .. });
    (head, effect_parts(scene, &known.identity.account, &known.rates(), prepaid, &effect, action))
}

/// The key that saves and releases, and what it would save; or why it cannot. `None` while neither is of use.
pub fn save_line(scene: &Scene, known: &Known<Instance>) -> Option<Runs> {
    let language = scene.look.language;
    if scene.operation(&known.identity).is_some() || scene.hindrance(known, Action::Release).is_some() {
        return None;
    }
    let (role, told) = match scene.recipe(known) {
        Ok(recipe) => {
            let rates = known.rates().certain();
            let last = saving::last_time(scene, &known.identity, rates.rates());
            let (action, paths) = (Action::Release, recipe.paths.len());
            let first = language.of_saving(&OfSaving::First { action, paths, last: last.as_deref(), begins: false });
            (Role::Accent, plain(first))
        }
        // At rest nothing can be copied: that is plain to see.
        Err(Hindrance::CannotBeRead) => return None,
        Err(why) => {
            let why = language.hindrance(&why, Action::Release);
            (Role::Dim, dim(language.of_saving(&OfSaving::CannotFirst { why: &why })))
        }
    };
    Some(vec![run(format!("{} ", scene.key_of(Meaning::SaveAndEnd)), role), told])
}

/// What an action would do to a resource that is charged at these rates.
pub fn effect_parts(
    scene: &Scene,
    account: &AccountName,
    rates: &Rates,
    prepaid: bool,
    effect: &Effect,
    action: Action,
) -> Vec<Runs> {
    let language = scene.look.language;
    let before = rates.certain();
    let after = effect.rates_after.upper();
    let mut parts: Vec<Runs> = Vec::new();
    let first = scene.currency();
    if action == Action::Start {
        if let Some(rate) = scene.total(&after, !effect.rates_after.complete) {
            parts.push(vec![plain(language.phrase(&Phrase::WillCost { rate: &rate }))]);
        }
    } else {
        let saves = if prepaid { Vec::new() } else { less(&before, &after) };
        let doubtful = !rates.complete || rates.lines.iter().any(|line| !line.certain);
        parts.push(match format::rates(&saves, first, scene.look) {
            Some(rate) => {
                let more = if rates.complete { "" } else { "+" };
                vec![plain(language.phrase(&Phrase::Saves { rate: &format!("{rate}{more}") }))]
            }
            None if doubtful && !prepaid => vec![dim(language.word(Word::SavesUnknown))],
            None => vec![dim(language.word(Word::SavesNothing))],
        });
        if let Some(rate) = scene.total(&after, !effect.rates_after.complete) {
            parts.push(vec![run(language.phrase(&Phrase::GoesOn { rate: &rate }), Role::Waste)]);
        }
    }
    // What is deleted and erased is said before what stays: a narrow window cuts the end.
    if !effect.lost.is_empty() {
        let places = places(language, &effect.lost);
        parts.push(vec![run(language.phrase(&Phrase::Deletes { places: &places }), Role::Strong)]);
    }
    let (erased, risks): (Vec<&Risk>, Vec<&Risk>) = effect.risks.iter().partition(|risk| **risk == Risk::ScratchErased);
    parts.extend(erased.into_iter().map(|risk| vec![run(language.risk(*risk), Role::Strong)]));
    for id in &effect.left_behind {
        let (name, rate) = left_behind(scene, account, id);
        parts.push(vec![run(language.phrase(&Phrase::LeftBehind { name: &name, rate: rate.as_deref() }), Role::Waste)]);
    }
    if !effect.kept.is_empty() {
        let places = places(language, &effect.kept);
        parts.push(vec![plain(language.phrase(&Phrase::Keeps { places: &places }))]);
    }
    parts.extend(risks.into_iter().map(|risk| vec![dim(language.risk(*risk))]));
    parts
}

fn less(before: &Burn, after: &Burn) -> Vec<Rate> {
    before.rates().iter().filter_map(|rate| rate.minus(after.of(rate.currency))).collect()
}

fn left_behind(scene: &Scene, account: &AccountName, id: &ResourceId) -> (String, Option<String>) {
    let known = scene.state.world.fleet.storage_of(account).find(|known| known.row.id == *id && !known.is_gone());
    match known {
        Some(known) => {
            let name = known.row.name.clone().unwrap_or_else(|| id.to_string());
            (name, format::burn(&known.rates().upper(), scene.currency(), scene.look))
        }
        None => (id.to_string(), None),
    }
}

/// Places of data, as people know them: where it is mounted, what it is called, or what it is; and its size.
pub fn places(language: Language, places: &[DataPlace]) -> String {
    let words: Vec<String> = places.iter().map(|place| place_words(language, place)).collect();
    words.join(language.word(Word::ListComma))
}

fn place_words(language: Language, place: &DataPlace) -> String {
    let kind = language.data_kind(place.kind);
    // The root of the file system says less than what it lies on.
    let path = place.path.as_ref().filter(|path| *path != "/");
    let size = place.size_gb.map(format::gigabytes);
    if let (DataKind::Contents, None, Some(name)) = (place.kind, path, &place.name) {
        return language.phrase(&Phrase::AllIn { name, size: size.as_deref() });
    }
    let name = match (path, &place.name) {
        (Some(path), Some(name)) => format!("{path} ({name})"),
        (Some(path), None) => path.clone(),
        (None, Some(name)) => format!("{kind} {name}"),
        (None, None) => kind.to_owned(),
    };
    size.map_or(name.clone(), |size| format!("{name} {size}"))
}
