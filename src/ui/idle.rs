//! The list of all idle ones: what each costs, who is on it, and what can be done with it.

use providers::model::Action;
use providers::money::{Burn, Rate};
use ratatui::layout::Rect;

use super::format;
use super::paint::{Paint, Runs, dim, plain, run, wrap};
use super::popup::{self, Border, key};
use super::scene::Scene;
use super::text::{OfIdle, OfSaving, Word};
use super::theme::Role;
use crate::app::action::Action as Meaning;
use crate::app::idle::{IdleList, Ways};
use crate::app::keymap::Place;

const WIDTH: u16 = 78;
/// What can be done with one stands below it, so far in.
const INDENT: u16 = 4;

/// Paints the window, and says which line is its first.
pub fn paint(paint: &mut Paint, scene: &Scene, room: Rect, list: &IdleList) -> u16 {
    let language = scene.look.language;
    let width = WIDTH.min(room.width.saturating_sub(2));
    let inside = width.saturating_sub(6);
    let each = list.each();
    let (alone, others): (Vec<&Ways>, Vec<&Ways>) = each.iter().partition(|ways| ways.left_alone().is_some());
    let mut lines = Vec::new();
    for ways in &others {
        lines.extend(wrap(&head(scene, ways), inside, INDENT));
        lines.extend(wrap(&stop(scene, ways), inside, INDENT));
        lines.extend(wrap(&save(scene, ways), inside, INDENT));
    }
    if !alone.is_empty() {
        if !others.is_empty() {
            lines.push(Runs::new());
        }
        lines.push(vec![dim(language.of_idle(OfIdle::LeftAlone { count: alone.len() }))]);
        for ways in alone {
            let mut line = head(scene, ways);
            let why = ways.left_alone().map(|why| language.hindrance(why, Action::Stop));
            line.extend(why.map(|why| dim(format!("  {why}"))));
            lines.extend(wrap(&line, inside, INDENT));
        }
    }
    let rates = each.iter().flat_map(|ways| rates(scene, ways)).collect::<Burn>();
    let rate = format::burn(&rates, scene.currency(), scene.look);
    let title = language.of_idle(OfIdle::Title { count: each.len(), rate: rate.as_deref() });
    let mut keys = Runs::new();
    let (stops, saves) = (list.stop.targets.len(), list.save.targets.len());
    for (count, meaning, text) in [
        (stops, Meaning::StopOrStart, OfIdle::StopAll { count: stops }),
        (saves, Meaning::SaveAndEnd, OfIdle::SaveAll { count: saves }),
    ] {
        if count > 0 {
            keys.extend(key(&scene.key_in(Place::Plan, meaning), &language.of_idle(text)));
            keys.push(plain("  "));
        }
    }
    keys.extend(key("esc", language.word(Word::Back)));
    popup::scrolled(paint, room, width, &lines, list.scroll, Border { title, keys, ..Border::default() })
}

/// What it costs an hour now, as far as that is certain.
fn rates(scene: &Scene, ways: &Ways) -> Vec<Rate> {
    let known = scene.state.world.fleet.instances.get(ways.identity);
    known.map(|known| known.rates().certain().rates().to_vec()).unwrap_or_default()
}

/// Its name, account and cost, since when it does nothing, and who is logged in.
fn head(scene: &Scene, ways: &Ways) -> Runs {
    let language = scene.look.language;
    let dot = format!(" {} ", scene.look.glyphs.dot);
    let mut line = vec![run(ways.name, Role::Strong)];
    line.push(dim(format!("  {}", scene.account_title(&ways.identity.account))));
    if let Some(rate) = format::rates(&rates(scene, ways), scene.currency(), scene.look) {
        line.push(run(format!("  {rate}"), Role::Waste));
    }
    let idleness = scene.state.world.idleness(ways.identity);
    if let Some(since) = idleness.and_then(|idleness| idleness.since) {
        line.push(plain(format!("  {}", language.of_idle(OfIdle::For { span: &scene.since(since) }))));
    }
    let known = scene.state.world.fleet.instances.get(ways.identity);
    if let Some(users) = known.and_then(|known| scene.usage(known)?.users.as_ref()) {
        let text = language.of_idle(OfIdle::LoggedIn { names: &users.join(language.word(Word::ListComma)) });
        line.push(dim(dot));
        // Whoever is on it may be about to use it.
        line.push(if users.is_empty() { dim(text) } else { run(text, Role::Waste) });
    }
    line
}

fn stop(scene: &Scene, ways: &Ways) -> Runs {
    let language = scene.look.language;
    let text = match ways.stop {
        Err(why) => dim(language.hindrance(why, Action::Stop)),
        Ok(target) => {
            let saves = format::rates(&target.saves(), scene.currency(), scene.look);
            let saves = saves.as_deref();
            match target.effect.loses_data() {
                true => run(language.of_idle(OfIdle::StopLoses { saves }), Role::Urgent),
                false => plain(language.of_idle(OfIdle::Stop { saves })),
            }
        }
    };
    below(scene, Meaning::StopOrStart, ways.stop.is_ok(), text)
}

fn save(scene: &Scene, ways: &Ways) -> Runs {
    let language = scene.look.language;
    let text = match ways.save {
        Err(why) => dim(language.hindrance(why, Action::Release)),
        Ok(target) => {
            let recipe = target.recipe.as_ref();
            let paths = recipe.map(|recipe| language.of_saving(&OfSaving::Paths { recipe })).unwrap_or_default();
            plain(language.of_idle(OfIdle::Save { paths: &paths }))
        }
    };
    below(scene, Meaning::SaveAndEnd, ways.save.is_ok(), text)
}

/// A way below the line of its instance, with the key that goes it for all.
fn below(scene: &Scene, meaning: Meaning, can_be: bool, text: super::paint::Run) -> Runs {
    let key = scene.key_in(Place::Plan, meaning);
    let key = if can_be { run(key, Role::Accent) } else { dim(scene.look.glyphs.dash) };
    vec![plain("  "), key, plain(" "), text]
}
