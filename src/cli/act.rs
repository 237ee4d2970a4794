//! `rentop stop|start|release`: the same plans and the same safety as on the screen.

use std::io::{self, BufRead, IsTerminal, Write};

use providers::model::{AccountName, Action, Identity};

use super::checkpoint::Progress;
use super::look::{settled, told_ledger, told_trouble};
use super::setup::{self, Kind, Program, Setup};
use super::{ActArgs, Common, Exit, Stop, warn};
use crate::app::Event;
use crate::app::event::{Intent, WorldEvent};
use crate::app::state::World;
use crate::rules::naming::{Pointed, point};
use crate::rules::plan::{self, Confirmation, Hindrance, Plan, SaveFirst};
use crate::rules::saga::{Authority, Confirmed, NotSent, Operation, Outcome, Step, confirm};
use crate::runtime::clock;
use crate::runtime::ending::Ending;
use crate::runtime::errand::Errand;
use crate::ui::{Look, plain};

pub fn run(common: &Common, action: Action, args: &ActArgs) -> Result<Exit, Stop> {
    let setup = Setup::read(common)?;
    let account = args.account.as_deref();
    over(&setup, account, async |errand| {
        let identity = find(&setup, errand, &args.name, account)?;
        let save = if args.checkpoint { SaveFirst::ByConfig } else { SaveFirst::Nothing };
        let plan = plan(&setup, errand, action, &identity, &save)?;
        // Whoever acts without a memory of it knows so beforehand.
        told_ledger(&setup, &errand.state);
        let look = setup.look();
        for line in plain::plan_lines(&plan, &look, setup.config.currency, clock::now()) {
            warn(line);
        }
        let authority = authority(&plan, args, &look)?;
        let (operation, exit) = carry_out(errand, &setup, plan, authority, args.no_wait).await?;
        super::tell(plain::operation_line(&operation, &look, clock::now()));
        if let Some(saved) = operation.saved() {
            super::tell(setup.language.saved_to(&saved.proof));
        }
        Ok(exit)
    })
}

/// Looks at every account, or at the one that was named, does something, and gives the ledger back.
pub fn over(
    setup: &Setup,
    account: Option<&str>,
    act: impl AsyncFnOnce(&mut Errand) -> Result<Exit, Stop>,
) -> Result<Exit, Stop> {
    setup.need_accounts()?;
    if let Some(account) = account
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
        // An account that was named waits for no other.
        let looked = errand.run_until(|state| settled(state, account, clock::now())).await;
        let exit = match looked {
            Ok(()) => act(&mut errand).await,
            Err(error) => Err(Stop::failed(error)),
        };
        errand.hear_channels(Errand::PATIENCE).await;
        errand.end();
        exit
    });
    setup::end(runtime);
    exit
}

/// The plan for one instance, or why there is none.
pub fn plan(
    setup: &Setup,
    errand: &Errand,
    action: Action,
    identity: &Identity,
    save: &SaveFirst,
) -> Result<Plan, Stop> {
    let world = &errand.state.world;
    let under_way = world.busy(action);
    let basis = world.basis(&under_way, clock::now());
    let plan = plan::plan_with(basis, action, std::slice::from_ref(identity), save);
    let Some((_, name, hindrance)) = plan.left_out.first() else { return Ok(plan) };
    let mut message = format!("{name}: {}", setup.language.hindrance(hindrance, action));
    let exit = match hindrance {
        Hindrance::NotThere => Exit::Usage,
        Hindrance::NoRecipe => {
            let file = setup.places.config_file.display();
            message.push_str(&format!("; write a [[checkpoint]] into {file}, or use `rentop checkpoint` with --path"));
            Exit::Usage
        }
        _ => Exit::Refused,
    };
    Err(Stop { exit, message })
}

/// Begins a confirmed plan for one instance and sees to its end. Whoever ends the command while something is being
/// brought to safety takes it back.
pub async fn carry_out(
    errand: &mut Errand,
    setup: &Setup,
    plan: Plan,
    authority: Authority,
    no_wait: bool,
) -> Result<(Operation, Exit), Stop> {
    let identity = plan.targets.first().map(|target| target.identity.clone());
    let saves = plan.confirmation == Confirmation::Save;
    let mut ending = saves.then(Ending::listen).transpose().map_err(Stop::failed)?;
    errand.take(Event::World(WorldEvent::Intent(Intent::Begin { plan: Box::new(plan), authority })));
    let begun = identity.and_then(|identity| errand.state.world.operation_on(&identity));
    let Some(op) = begun.map(|operation| operation.id) else {
        return Err(Stop::failed("the action could not be begun"));
    };
    let mut progress = Progress::new(setup, saves);
    let interrupted = {
        let seeing = errand.run_until(|state| {
            let operation = state.world.operations.get(&op);
            operation.iter().for_each(|operation| progress.show(operation));
            operation.is_none_or(|operation| {
                let accepted = matches!(&operation.step, Step::Confirming { doubt: None, .. });
                operation.is_ended() || operation.is_overdue() || (no_wait && accepted)
            })
        });
        let wanted = async {
            match &mut ending {
                Some(ending) => ending.wanted().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            seen = seeing => seen.map(|()| false).map_err(Stop::failed)?,
            () = wanted => true,
        }
    };
    progress.end();
    if interrupted {
        errand.take(Event::World(WorldEvent::Intent(Intent::TakeBack(Some(op)))));
    }
    let Some(operation) = errand.state.world.operations.get(&op).cloned() else {
        return Err(Stop::failed("the action was lost sight of"));
    };
    let exit = if interrupted { Exit::Failed } else { exit(&operation) };
    Ok((operation, exit))
}

/// The instance that a name or id means.
pub fn find(setup: &Setup, errand: &Errand, name: &str, account: Option<&str>) -> Result<Identity, Stop> {
    pointed(&errand.state.world, name, account).inspect_err(|_| {
        // What could not be asked may be why it was not found.
        told_trouble(setup, &errand.state);
    })
}

/// The same without a word on what could not be asked.
pub fn pointed(world: &World, name: &str, account: Option<&str>) -> Result<Identity, Stop> {
    let account = account.map(AccountName::new);
    let shown: Vec<(&Identity, Option<&str>)> = world
        .fleet
        .instances
        .values()
        .filter(|known| !known.is_gone())
        .filter(|known| account.as_ref().is_none_or(|account| known.identity.account == *account))
        .map(|known| (&known.identity, known.row.name.as_deref()))
        .collect();
    let shown_name = providers::text::clean(name);
    match point(name, shown.iter().copied()) {
        Pointed::One(identity) => Ok(identity),
        Pointed::None => Err(Stop::usage(format!("no instance has the name or id `{shown_name}`"))),
        Pointed::Many(candidates) => {
            let list: Vec<String> =
                candidates.iter().map(|identity| format!("  {} --account {}", identity.id, identity.account)).collect();
            Err(Stop::usage(format!("`{shown_name}` means several instances; say which by id:\n{}", list.join("\n"))))
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
