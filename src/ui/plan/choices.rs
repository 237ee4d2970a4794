//! What a plan leaves to choose: to bring something to safety first, or to lose it; and how that stands now.

use providers::model::{Action, DataPlace, Phase};

use super::Meaning;
use crate::app::keymap::Place;
use crate::app::state::Question;
use crate::app::update::saving_instead;
use crate::rules::checkpoint::Recipe;
use crate::rules::plan::{Confirmation, Plan, Target};
use crate::ui::paint::{Run, Runs, dim, plain, run, wrap};
use crate::ui::saving;
use crate::ui::scene::Scene;
use crate::ui::text::{OfSaving, Phrase, Word};
use crate::ui::theme::Role;

/// A choice is told below its key, so many cells further in.
const INDENT: u16 = 3;
/// Lines for paths and where they go.
const PATH_LINES: usize = 2;

/// What can be done now, a key each; with paths where the window is `roomy`.
pub(super) fn choices(scene: &Scene, question: &Question, width: u16, roomy: bool) -> Vec<Runs> {
    let plan = &question.plan;
    let mut lines = Vec::new();
    match plan.confirmation {
        Confirmation::Save => {
            lines.extend(save(scene, (plan, plan), true, width, roomy));
            if plan.action != Action::Checkpoint {
                lines.extend(without(scene, plan, width));
            }
        }
        // Where there is little room, what cannot be done is not told.
        _ => match saving_instead(scene.state, question, scene.now)
            .filter(|instead| roomy || !instead.targets.is_empty())
        {
            Some(instead) => {
                lines.extend(save(scene, (plan, &instead), false, width, roomy));
                lines.extend(without(scene, plan, width));
            }
            None => {
                let text =
                    scene.look.language.phrase(&Phrase::AskName { action: plan.action, count: plan.targets.len() });
                lines.extend(choice(scene.key_in(Place::Plan, again(plan.action)), Role::Accent, plain(text), width));
            }
        },
    }
    lines
}

/// The key that means the plan's action.
fn again(action: Action) -> Meaning {
    match action {
        Action::Stop | Action::Start => Meaning::StopOrStart,
        Action::Release | Action::Delete | Action::Restart | Action::Checkpoint => Meaning::End,
    }
}

fn choice(key: String, role: Role, told: Run, width: u16) -> Vec<Runs> {
    wrap(&[run(format!("{key}  "), role), told], width, INDENT)
}

/// To save first: it begins where the plan is to do so, and else the plan becomes one that does.
fn save(scene: &Scene, (plan, saving): (&Plan, &Plan), begins: bool, width: u16, roomy: bool) -> Vec<Runs> {
    let (action, language) = (plan.action, scene.look.language);
    let key = scene.key_in(Place::Plan, Meaning::SaveAndEnd);
    match saving.targets.as_slice() {
        [] => {
            let why = saving.left_out.first().map(|(_, _, hindrance)| language.hindrance(hindrance, action));
            let told = language.of_saving(&OfSaving::CannotFirst { why: &why.unwrap_or_default() });
            choice(key, Role::Dim, dim(told), width)
        }
        [Target { recipe: Some(recipe), identity, before, effect, .. }] if plan.targets.len() == 1 => {
            let last = saving::last_time(scene, identity, before);
            let first = OfSaving::First { action, paths: recipe.paths.len(), last: last.as_deref(), begins };
            let mut lines = choice(key, Role::Accent, plain(language.of_saving(&first)), width);
            let mut below = |told: Run, most: usize| {
                let told = [plain(" ".repeat(usize::from(INDENT))), told];
                lines.extend(wrap(&told, width, INDENT).into_iter().take(most));
            };
            if roomy {
                below(dim(language.of_saving(&OfSaving::Paths { recipe })), PATH_LINES);
            }
            if effect.loses_data() {
                let all = covers(recipe, &effect.lost);
                let role = if all { Role::Dim } else { Role::Waste };
                below(run(language.of_saving(&OfSaving::Covers { all }), role), usize::MAX);
            }
            lines
        }
        some => {
            let first = OfSaving::FirstMany { action, count: some.len(), of: plan.targets.len(), begins };
            choice(key, Role::Accent, plain(language.of_saving(&first)), width)
        }
    }
}

fn without(scene: &Scene, plan: &Plan, width: u16) -> Vec<Runs> {
    let told = OfSaving::Without { action: plan.action, count: plan.targets.len() };
    let told = plain(scene.look.language.of_saving(&told));
    choice(scene.key_in(Place::Plan, again(plan.action)), Role::Accent, told, width)
}

/// Whether all that is lost lies below the paths of a recipe. What has no path of its own does not.
fn covers(recipe: &Recipe, lost: &[DataPlace]) -> bool {
    let below = |place: &str, path: &str| {
        let (place, path) = (place.trim_end_matches('/'), path.trim_end_matches('/'));
        place.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let covered = |place: &str| recipe.paths.iter().any(|path| below(place, path));
    lost.iter().all(|place| place.path.as_deref().is_some_and(covered))
}

/// When a single machine was last brought to safety, where something of it is at stake.
pub(super) fn last_saved(scene: &Scene, plan: &Plan, target: &Target) -> Option<Run> {
    let at_stake = target.effect.loses_data() && matches!(plan.action, Action::Stop | Action::Release);
    let last = saving::last(scene, &target.identity);
    match last {
        Some(last) if at_stake || plan.action == Action::Checkpoint => Some(plain(last)),
        None if at_stake => Some(run(scene.look.language.word(Word::Never), Role::Strong)),
        _ => None,
    }
}

/// Who is logged in to a single machine that runs, and as of when.
pub(super) fn logged_in(scene: &Scene, plan: &Plan, target: &Target) -> Option<Runs> {
    if target.phase != Phase::Running || !matches!(plan.action, Action::Stop | Action::Release) {
        return None;
    }
    let language = scene.look.language;
    let Some((users, as_of)) = users(scene, target) else {
        return Some(vec![dim(language.word(Word::Unknown))]);
    };
    let who = match users {
        [] => plain(language.word(Word::Nobody)),
        users => run(users.join(language.word(Word::ListComma)), Role::Waste),
    };
    Some(vec![who, dim(format!("   {}", language.phrase(&Phrase::Ago { age: &scene.since(as_of) })))])
}

fn users<'a>(scene: &Scene<'a>, target: &Target) -> Option<(&'a [String], jiff::Timestamp)> {
    let known = scene.state.world.fleet.instances.get(&target.identity)?;
    let usage = scene.usage(known)?;
    Some((usage.users.as_deref()?, usage.as_of))
}

/// Of one of several: how it is saved, and who is logged in.
pub(super) fn of_several(scene: &Scene, target: &Target) -> Runs {
    let language = scene.look.language;
    let mut runs = Runs::new();
    if let Some(recipe) = &target.recipe {
        runs.push(dim(format!("  {}", language.of_saving(&OfSaving::PathsBriefly { recipe }))));
    }
    if let Some((users @ [_, ..], _)) = users(scene, target) {
        let names = users.join(language.word(Word::ListComma));
        let label = language.word(Word::LoggedIn);
        runs.push(run(format!("  {label}{}{names}", language.word(Word::Colon)), Role::Waste));
    }
    runs
}

#[cfg(test)]
mod tests {
    use providers::model::DataKind;
    use rstest::rstest;

    use super::*;
    use crate::rules::checkpoint::{Method, QUIET};

    #[rstest]
    #[case::itself(&["/workspace"], Some("/workspace"), true)]
    #[case::above(&["/data", "/"], Some("/workspace"), true)]
    #[case::a_slash_more(&["/workspace/"], Some("/workspace"), true)]
    #[case::a_part(&["/workspace/out"], Some("/workspace"), false)]
    #[case::a_longer_name(&["/work"], Some("/workspace"), false)]
    #[case::nobody_knows_where(&["/workspace"], None, false)]
    fn paths_cover_what_lies_below_them(#[case] paths: &[&str], #[case] lost: Option<&str>, #[case] covered: bool) {
        let paths = paths.iter().map(|path| (*path).to_owned()).collect();
        let recipe = Recipe { name: String::new(), paths, method: Method::Volume, prepare: None, quiet: QUIET };
        let place = DataPlace {
            kind: DataKind::VolumeDisk,
            name: None,
            path: lost.map(str::to_owned),
            size_gb: Some(30.into()),
        };
        assert_eq!(covers(&recipe, &[place]), covered);
    }
}
