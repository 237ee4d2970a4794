//! Ways to the instance under the cursor: its page, ssh to it, its ssh line.

use jiff::Timestamp;
use providers::model::{Identity, Phase, ResourceKind};

use super::view::say;
use crate::app::effect::Effect;
use crate::app::listing::Line;
use crate::app::message::Msg;
use crate::app::spend::SpendLine;
use crate::app::state::{State, World};
use crate::rules::spend::{Billable, Key};
use crate::rules::streams::Target;

pub(super) fn open_page(state: &mut State, now: Timestamp) -> Vec<Effect> {
    let page = state.view.list().selected().and_then(|identity| page_of(&state.world, identity));
    open(state, page, now)
}

/// The provider's page of a resource.
pub(super) fn page_of(world: &World, identity: &Identity) -> Option<String> {
    match identity.kind {
        ResourceKind::Instance => world.fleet.instances.get(identity)?.row.page.clone(),
        ResourceKind::Storage => world.fleet.storage.get(identity)?.row.page.clone(),
    }
}

pub(super) fn open(state: &mut State, page: Option<String>, now: Timestamp) -> Vec<Effect> {
    // What is simulated has no page, and a demonstration sends nothing beyond this machine.
    match page.filter(|_| !state.view.fixed.demo) {
        Some(url) => {
            say(&mut state.view, Msg::OpeningPage { url: url.clone() }, now);
            vec![Effect::OpenPage(url)]
        }
        None => {
            say(&mut state.view, Msg::NoPage, now);
            vec![]
        }
    }
}

/// Where the instance under the cursor can be reached.
fn reached(state: &State) -> Option<Target> {
    let list = state.view.list();
    let identity = match &list.cursor {
        Some(Line::Spend(SpendLine::Group(_, Key::Billable(_, Billable::Resource { identity, .. })))) => identity,
        _ => list.selected()?,
    };
    let known = state.world.fleet.instances.get(identity).filter(|known| known.phase() == Phase::Running)?;
    let account = state.world.fleet.account(&identity.account)?;
    Some(Target::new(&account.provider, identity, known.row.ssh.as_ref()?))
}

pub(super) fn ssh(state: &mut State, now: Timestamp) -> Vec<Effect> {
    match reached(state) {
        Some(_) if state.view.fixed.demo => say(&mut state.view, Msg::NoSshInDemo, now),
        Some(target) => return vec![Effect::Ssh(target)],
        None => say(&mut state.view, Msg::NoSsh, now),
    }
    vec![]
}

pub(super) fn copy_ssh(state: &mut State, now: Timestamp) -> Vec<Effect> {
    let Some(target) = reached(state) else {
        say(&mut state.view, Msg::NoSsh, now);
        return vec![];
    };
    let line = target.endpoint.command_line();
    say(&mut state.view, Msg::SshCopied { line: line.clone() }, now);
    vec![Effect::Copy(line)]
}
