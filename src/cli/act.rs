//! `rentop stop|start|release`: the same plans and the same safety as on the screen.

use std::io::{self, BufRead, IsTerminal, Write};

use providers::model::{AccountName, Action, Identity};

use super::look::{settled, told_ledger, told_trouble};
use super::setup::{self, Kind, Program, Setup};
use super::{ActArgs, Common, Exit, Stop, warn};
use crate::app::Event;
use crate::app::event::{Intent, WorldEvent};
use crate::app::state::World;
use crate::rules::naming::{Pointed, point};
use crate::rules::plan::{self, Confirmation, Hindrance, Plan};
use crate::rules::saga::{Authority, Confirmed, NotSent, Operation, Outcome, Step, confirm};
use crate::runtime::clock;
use crate::runtime::errand::Errand;
use crate::ui::{Look, plain};

pub fn run(common: &Common, action: Action, args: &ActArgs) -> Result<Exit, Stop> {
    let setup = Setup::read(common)?;
    setup.need_accounts()?;
    if let Some(account) = &args.account
        && !setup.config.accounts.iter().any(|known| known.name.as_str() == account)
    {
        return Err(Stop::usage(format!("no account is named `{account}`")));
    }
    let _log = setup::log(&setup.places.state_dir);
    let runtime = setup::runtime()?;
    let exit = runtime.block_on(async {
        let Program { state, performer, inbox } = setup.program(Kind::Act)?;
        let mut errand = Errand::new(state, performer, inbox);
        errand.start();
        let exit = act(&mut errand, &setup, action, args).await;
        errand.hear_channels(Errand::PATIENCE).await;
        errand.end();
        exit
    });
    setup::end(runtime);
    exit
}

async fn act(errand: &mut Errand, setup: &Setup, action: Action, args: &ActArgs) -> Result<Exit, Stop> {
    // An account that was named waits for no other.
    let only = args.account.as_deref();
    errand.run_until(|state| settled(state, only, clock::now())).await.map_err(Stop::failed)?;
    let identity = find(&errand.state.world, args).inspect_err(|_| {
        // What could not be asked may be why it was not found.
        told_trouble(setup, &errand.state);
    })?;
    let look = setup.look();
    let now = clock::now();
    let plan = {
        let world = &errand.state.world;
        let under_way = world.busy(action);
        let basis = world.basis(&under_way, now);
        plan::plan(basis, action, std::slice::from_ref(&identity))
    };
    if let Some((_, name, hindrance)) = plan.left_out.first() {
        let message = format!("{name}: {}", setup.language.hindrance(hindrance, action));
        let exit = if *hindrance == Hindrance::NotThere { Exit::Usage } else { Exit::Refused };
        return Err(Stop { exit, message });
    }
    // Whoever acts without a memory of it knows so beforehand.
    told_ledger(setup, &errand.state);
    for line in plain::plan_lines(&plan, &look, setup.config.currency, now) {
        warn(line);
    }
    let authority = authority(&plan, args, &look)?;
    errand.take(Event::World(WorldEvent::Intent(Intent::Begin { plan: Box::new(plan), authority })));
    let Some(op) = errand.state.world.operation_on(&identity).map(|operation| operation.id) else {
        return Err(Stop::failed("the action could not be begun"));
    };
    let no_wait = args.no_wait;
    errand
        .run_until(|state| {
            state.world.operations.get(&op).is_none_or(|operation| {
                let accepted = matches!(&operation.step, Step::Confirming { doubt: None, .. });
                operation.is_ended() || operation.is_overdue() || (no_wait && accepted)
            })
        })
        .await
        .map_err(Stop::failed)?;
    let Some(operation) = errand.state.world.operations.get(&op) else {
        return Err(Stop::failed("the action was lost sight of"));
    };
    super::tell(plain::operation_line(operation, &look, clock::now()));
    Ok(exit(operation))
}

fn find(world: &World, args: &ActArgs) -> Result<Identity, Stop> {
    let account = args.account.as_deref().map(AccountName::new);
    let shown: Vec<(&Identity, Option<&str>)> = world
        .fleet
        .instances
        .values()
        .filter(|known| !known.is_gone())
        .filter(|known| account.as_ref().is_none_or(|account| known.identity.account == *account))
        .map(|known| (&known.identity, known.row.name.as_deref()))
        .collect();
    one_of(&args.name, &shown)
}

/// The one instance of those shown that somebody means by its name or id.
pub(super) fn one_of(wanted: &str, shown: &[(&Identity, Option<&str>)]) -> Result<Identity, Stop> {
    let name = providers::text::clean(wanted);
    match point(wanted, shown.iter().copied()) {
        Pointed::One(identity) => Ok(identity),
        Pointed::None => Err(Stop::usage(format!("no instance has the name or id `{name}`"))),
        Pointed::Many(candidates) => {
            let list: Vec<String> =
                candidates.iter().map(|identity| format!("  {} --account {}", identity.id, identity.account)).collect();
            Err(Stop::usage(format!("`{name}` means several instances; say which by id:\n{}", list.join("\n"))))
        }
    }
}

/// What entitles the action: flags, or an answer at the terminal.
fn authority(plan: &Plan, args: &ActArgs, look: &Look) -> Result<Authority, Stop> {
    let typed = matches!(plan.confirmation, Confirmation::Typed(_));
    if args.yes {
        return match (typed, args.lose_data) {
            (false, _) => Ok(entitled(plan)),
            (true, true) => Ok(Authority::LoseData),
            (true, false) if plan.lost().next().is_none() => {
                Err(Stop::refused("a release cannot be undone; add --lose-data if that is meant"))
            }
            (true, false) => Err(Stop::refused("this deletes data; add --lose-data if that is meant")),
        };
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Stop::refused("nobody is there to be asked; add --yes if the plan above is meant"));
    }
    match &plan.confirmation {
        Confirmation::Typed(expected) => {
            let answer = ask(&plain::type_to_confirm(expected, look))?;
            match confirm(plan, Some(&answer)) {
                Confirmed::Yes(authority) => Ok(authority),
                Confirmed::NotYet => Err(Stop::refused("that is not what was to be typed; nothing was sent")),
            }
        }
        Confirmation::Countdown | Confirmation::Save => match ask("[y/N]")?.to_lowercase().as_str() {
            "y" | "yes" | "是" => Ok(entitled(plan)),
            _ => Err(Stop::refused("nothing was sent")),
        },
    }
}

/// What a yes entitles to.
fn entitled(plan: &Plan) -> Authority {
    match plan.confirmation {
        Confirmation::Save => Authority::Saved,
        Confirmation::Countdown | Confirmation::Typed(_) => Authority::Confirmed,
    }
}

/// Asks a person at the terminal.
pub fn ask(question: &str) -> Result<String, Stop> {
    let mut out = io::stderr();
    write!(out, "{question} ").and_then(|()| out.flush()).map_err(Stop::failed)?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(Stop::failed)?;
    Ok(answer.trim().to_owned())
}

/// What the end of an action means for a script.
fn exit(operation: &Operation) -> Exit {
    match &operation.step {
        Step::Ended { outcome: Outcome::Done { .. } | Outcome::NotSent(NotSent::AlreadySo), .. }
        | Step::Confirming { .. } => Exit::Done,
        Step::Ended {
            outcome:
                Outcome::NotSent(
                    NotSent::AnotherMachine
                    | NotSent::PhaseChanged { .. }
                    | NotSent::PlanChanged
                    | NotSent::NotOffered(_)
                    | NotSent::UnderWay { .. },
                ),
            ..
        } => Exit::Refused,
        _ => Exit::Failed,
    }
}
