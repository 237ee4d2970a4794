//! What happened to instances without anybody here having done it: each is told once, as soon as it is known.

use jiff::{SignedDuration, Timestamp};
use providers::model::{AccountName, Action, Identity, Instance, Phase, Rates, Remark, ResourceKind};

use crate::app::state::World;
use crate::rules::alerts::{Finding, Matter};
use crate::rules::fleet::{Consequence, Known};
use crate::rules::plan::shown_name;
use crate::rules::saga::{MOVES_FOR, Operation, Outcome, Step};

/// So long at the most the ledger is waited for to say whether another process did it.
pub const HELD: SignedDuration = SignedDuration::from_secs(20);

/// How far an account was known before an answer was taken in.
#[derive(Clone, Copy, Debug, Default)]
pub struct Before {
    as_of: Option<Timestamp>,
    last_complete: Option<Timestamp>,
}

impl Before {
    pub fn of(world: &World, account: &AccountName) -> Self {
        let account = world.fleet.account(account);
        Before {
            as_of: account.and_then(|account| account.as_of),
            last_complete: account.and_then(|account| account.last_complete),
        }
    }
}

/// Notes what an answer brought about that is worth a word. Who writes down that it is so writes this down as well.
pub fn note(world: &mut World, before: Before, consequences: &[Consequence], now: Timestamp) {
    if !world.collects() {
        return;
    }
    for (at, consequence) in consequences.iter().enumerate() {
        let identity = consequence.identity();
        let Some(known) = world.fleet.instances.get(identity).filter(|_| identity.kind == ResourceKind::Instance)
        else {
            continue;
        };
        let taken = known.row.phase == Phase::Reclaimed;
        let matter = match consequence {
            // Whoever comes new to an account finds machines in it, and some were taken already.
            Consequence::Appeared(_) if taken => Some(reclaimed(world, known)),
            Consequence::Appeared(_) => appeared(world, known, before, now),
            Consequence::Turned(..) if taken => Some(reclaimed(world, known)),
            Consequence::Gone(_) => vanished(world, known, now),
            Consequence::Repriced(_, rates) => {
                let turned = |other: &Consequence| matches!(other, Consequence::Turned(of, _) if of == identity);
                // What it costs in another phase is another price, not a new one.
                let stays = !consequences.iter().skip(at).take(2).any(turned);
                stays.then(|| repriced(known, rates)).flatten()
            }
            Consequence::Turned(..) | Consequence::AskById(_) | Consequence::Changed(_) => None,
        };
        world.alerting.events.extend(matter.map(|matter| match doing(&matter) {
            Some(_) => Finding::after(matter, HELD),
            None => Finding::now(matter),
        }));
    }
}

/// The actions that bring such a thing about, and on what; `None` for what nobody here does.
fn doing(matter: &Matter) -> Option<(&Identity, &'static [Action])> {
    match matter {
        Matter::Appeared { identity, .. } => Some((identity, &[Action::Start, Action::Restart])),
        Matter::Vanished { identity, .. } => Some((identity, &[Action::Release, Action::Stop])),
        _ => None,
    }
}

/// What was noted, and turns out to be what some process was asked to do.
pub fn is_explained(world: &World, matter: &Matter, now: Timestamp) -> bool {
    doing(matter).is_some_and(|(identity, actions)| acted(world, identity, actions, now))
}

fn appeared(world: &World, known: &Known<Instance>, before: Before, now: Timestamp) -> Option<Matter> {
    let row = &known.row;
    // It may have been there when the account was first looked at, in part or not at all.
    let at_first_sight = before.last_complete.is_none() && {
        let created = row.created_at.map(|at| world.fleet.here(&known.identity.account, at));
        created.zip(before.as_of).is_none_or(|(created, as_of)| created <= as_of)
    };
    let of_the_config = row.remarks.contains(&Remark::NoApi);
    if at_first_sight || of_the_config {
        return None;
    }
    let rates = row.rates.upper().rates().to_vec();
    let matter = Matter::Appeared { identity: known.identity.clone(), name: name(known), rates };
    Some(matter).filter(|matter| !is_explained(world, matter, now))
}

fn vanished(world: &World, known: &Known<Instance>, now: Timestamp) -> Option<Matter> {
    let matter = Matter::Vanished { identity: known.identity.clone(), name: name(known) };
    Some(matter).filter(|matter| !is_explained(world, matter, now))
}

fn reclaimed(world: &World, known: &Known<Instance>) -> Matter {
    let copied_at = world.saved.get(&known.identity).map(|saved| saved.proof.at);
    Matter::Reclaimed { identity: known.identity.clone(), name: name(known), copied_at }
}

/// A new price for the same: both are known in full, certain, and told in the same way.
fn repriced(known: &Known<Instance>, before: &Rates) -> Option<Matter> {
    let after = &known.row.rates;
    let is_firm = |rates: &Rates| rates.complete && rates.lines.iter().all(|line| line.certain);
    let told_alike = before.estimated() == after.estimated() && is_firm(before) && is_firm(after);
    let (before, after) = (before.certain().rates().to_vec(), after.certain().rates().to_vec());
    (told_alike && before != after).then(|| Matter::Repriced {
        identity: known.identity.clone(),
        name: name(known),
        before,
        after,
    })
}

/// Whether one of these actions was sent to it, by whatever identity it had, and may still be what moves it.
fn acted(world: &World, identity: &Identity, actions: &[Action], now: Timestamp) -> bool {
    let may_move = |operation: &Operation| match &operation.step {
        Step::Ended { outcome: Outcome::NotSent(_), .. } => false,
        Step::Ended { at, .. } => now.duration_since(*at) < MOVES_FOR,
        _ => operation.sent > 0,
    };
    let of_others = world.alerting.acted.iter().flatten();
    world.operations.values().chain(of_others).any(|operation| {
        let of = &operation.target.identity;
        actions.contains(&operation.action)
            && (&of.account, of.kind, &of.id) == (&identity.account, identity.kind, &identity.id)
            && may_move(operation)
    })
}

fn name(known: &Known<Instance>) -> String {
    shown_name(known.row.name.as_deref(), &known.identity.id)
}
