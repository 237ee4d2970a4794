//! The form of what is to be brought to safety: opened, filled by a look at the machine, and what comes of it.

use jiff::Timestamp;
use providers::model::{Action as Deed, Identity};

use super::deeds::{Asked, Asking, make_plan, propose_for};
use super::view::say;
use super::windows::edit;
use crate::app::action::{Action, Code, Key};
use crate::app::effect::Effect;
use crate::app::message::Msg;
use crate::app::save_form::{At, Look, SaveForm};
use crate::app::state::{Modal, State};
use crate::rules::checkpoint::proposals::{Proposal, Size};
use crate::rules::checkpoint::{Method, QUIET, Recipe, Trouble};
use crate::rules::plan::SaveFirst;
use crate::rules::streams::Target;

/// Below the person's own folder, where the config names none.
const FOLDER: &str = "checkpoints";

/// Opens the form for a machine, unless it could not be copied from whatever was chosen.
pub(super) fn open(state: &mut State, action: Deed, identity: Identity, now: Timestamp) -> Vec<Effect> {
    let folder = folder(state);
    let method = Method::Copy { to: folder.clone() };
    let any = Recipe { name: String::new(), paths: Vec::new(), method, prepare: None, quiet: QUIET };
    let save = SaveFirst::By(any);
    let plan = make_plan(state, Asked { action, save: &save, bulk: false }, std::slice::from_ref(&identity), now);
    if let Some((_, name, hindrance)) = plan.left_out.into_iter().next() {
        say(&mut state.view, Msg::LeftOut { name, action, hindrance }, now);
        return vec![];
    }
    let Some(target) = plan.targets.into_iter().next() else { return vec![] };
    let Some(known) = state.world.fleet.instances.get(&identity) else { return vec![] };
    let kept = known.row.offers.release.effect().map(|effect| effect.kept.clone()).unwrap_or_default();
    state.view.modals.push(Modal::Save(Box::new(SaveForm::new(identity, target.name, action, kept, folder))));
    look(state)
}

/// Where copies go that the config says nothing of: where it lets those of others go, else below the person's own
/// folder.
fn folder(state: &State) -> String {
    let of_config = state.world.recipes.iter().find_map(|rule| match &rule.recipe.method {
        Method::Copy { to } => Some(to.clone()),
        Method::Command { .. } | Method::Volume => None,
    });
    let own = || state.view.fixed.home.as_ref().map(|home| home.join(FOLDER).to_string_lossy().into_owned());
    of_config.or_else(own).unwrap_or_default()
}

fn target(state: &State, identity: &Identity) -> Option<Target> {
    let provider = &state.world.fleet.account(&identity.account)?.provider;
    let endpoint = state.world.fleet.instances.get(identity)?.row.ssh.as_ref()?;
    Some(Target::new(provider, identity, endpoint))
}

fn form<'a>(state: &'a mut State, identity: &Identity) -> Option<&'a mut SaveForm> {
    state.view.modals.iter_mut().find_map(|modal| match modal {
        Modal::Save(form) if form.identity == *identity => Some(&mut **form),
        _ => None,
    })
}

/// The machine was looked at. Whoever closed the form meanwhile wants to know nothing of it.
pub(super) fn found(state: &mut State, identity: &Identity, found: Result<Vec<Proposal>, Trouble>) {
    match (form(state, identity), found) {
        (Some(form), Ok(found)) => form.found(found),
        (Some(form), Err(trouble)) => form.look = Look::Failed(trouble),
        (None, _) => {}
    }
}

/// A typed path was measured.
pub(super) fn measured(state: &mut State, identity: &Identity, path: &str, size: Size) {
    if let Some(form) = form(state, identity) {
        form.measured(path, size);
    }
}

pub(super) fn in_form(state: &mut State, key: Key, now: Timestamp) -> Vec<Effect> {
    let meaning = state.view.fixed.keys.action_in(state.view.tab, key);
    let Some(Modal::Save(form)) = state.view.modals.last_mut() else { return vec![] };
    match key.code {
        Code::Esc => {
            state.view.modals.pop();
        }
        Code::Tab | Code::Down => form.step(false),
        Code::BackTab | Code::Up => form.step(true),
        Code::Enter if form.at == At::Another && !form.another.value().trim().is_empty() => {
            let (identity, path) = (form.identity.clone(), form.add());
            let target = target(state, &identity);
            let measure = path.zip(target).map(|(path, target)| Effect::MeasurePath { identity, target, path });
            return measure.into_iter().collect();
        }
        Code::Enter => return begin(state, now),
        _ => match form.field() {
            Some(field) if !matches!(key.code, Code::F(_)) => {
                edit(field, key);
                form.mistake = None;
            }
            _ => match meaning {
                Some(Action::Refresh) if form.look != Look::UnderWay => return look(state),
                Some(Action::Mark) => form.toggle(),
                Some(Action::Down) => form.step(false),
                Some(Action::Up) => form.step(true),
                _ => {}
            },
        },
    }
    vec![]
}

/// Has the machine of the form looked at.
fn look(state: &mut State) -> Vec<Effect> {
    let Some(Modal::Save(form)) = state.view.modals.last_mut() else { return vec![] };
    form.look = Look::UnderWay;
    let identity = form.identity.clone();
    target(state, &identity).map(|target| Effect::LookForPaths { identity, target }).into_iter().collect()
}

/// Goes on by the usual plan, with what was chosen.
fn begin(state: &mut State, now: Timestamp) -> Vec<Effect> {
    let home = state.view.fixed.home.clone();
    let Some(Modal::Save(form)) = state.view.modals.last_mut() else { return vec![] };
    match form.recipe(home.as_deref()) {
        Ok(recipe) => {
            let (action, identity) = (form.action, form.identity.clone());
            state.view.modals.pop();
            propose_for(state, action, vec![identity], Asking::One, SaveFirst::By(recipe), now)
        }
        Err(mistake) => {
            form.mistake = Some(mistake);
            vec![]
        }
    }
}
