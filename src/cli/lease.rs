//! `rentop lease`: what is to happen to an instance by itself. It is written into the ledger; a rentop that runs carries
//! it out.

use clap::{Subcommand, ValueEnum};
use jiff::Timestamp;
use providers::model::{AccountName, ResourceId};
use serde::Serialize;

use super::act::{find, pointed};
use super::look::{told_notices, visit};
use super::setup::{self, Kind, Program, Setup};
use super::table::{Table, print_json};
use super::{Common, Exit, Output, Stop, tell, warn};
use crate::app::Event;
use crate::app::event::{Intent, WorldEvent};
use crate::app::lease_form::{Field, check};
use crate::app::leases::{Note, currencies, notes};
use crate::app::message::Msg;
use crate::rules::lease::{self, Draft, Lease, LeaseId, Mistake, OnBox, Shift, Step, What, When};
use crate::rules::memory::Collector;
use crate::runtime::clock;
use crate::runtime::errand::Errand;
use crate::ui::text;

#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct LeaseArgs {
    /// The instance's name or id, whole; it must mean one instance only.
    #[arg(value_name = "NAME|ID", required = true)]
    pub name: Option<String>,
    /// What is to happen. A release is made after a verified checkpoint alone.
    #[arg(required = true)]
    pub what: Option<Wanted>,
    /// After this time, such as 4h or 1h30m.
    #[arg(long = "in", value_name = "TIME", group = "moment")]
    pub after: Option<String>,
    /// At this time of the config's zone: 22:00, "tomorrow 8:00" or "2026-12-02 22:00".
    #[arg(long, value_name = "TIME", group = "moment")]
    pub at: Option<String>,
    /// Once this file on the instance holds the exit code of the job: 0 acts, all else keeps the instance and asks.
    #[arg(long, value_name = "PATH", group = "moment")]
    pub when_file: Option<String>,
    /// Once this process on the instance is gone; how it ended nobody knows, so that the instance is kept.
    #[arg(long, value_name = "PID", group = "moment")]
    pub when_pid: Option<String>,
    /// What may be spent after a job that did not end well, such as "5 USD"; then it is stopped. 0 stops it at once.
    #[arg(long, value_name = "AMOUNT")]
    pub max_cost: Option<String>,
    /// Arm a timer on the instance as well, by `on_box` of the config.
    #[arg(long)]
    pub on_box: bool,
    /// Only among the instances of this account.
    #[arg(long, value_name = "NAME")]
    pub account: Option<String>,
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// The leases in force.
    List(Output),
    /// Take the leases of an instance away.
    Cancel {
        /// The instance's name or id, or the id of a lease.
        #[arg(value_name = "NAME|ID")]
        name: String,
        /// Only among the instances of this account.
        #[arg(long, value_name = "NAME")]
        account: Option<String>,
    },
}

/// What can be wanted.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Wanted {
    Stop,
    Release,
    Start,
}

impl Wanted {
    fn what(self) -> What {
        match self {
            Wanted::Stop => What::Stop,
            Wanted::Release => What::Release,
            Wanted::Start => What::Start,
        }
    }
}

pub fn run(common: &Common, args: &LeaseArgs) -> Result<Exit, Stop> {
    match &args.command {
        Some(Command::List(output)) => list(common, *output),
        Some(Command::Cancel { name, account }) => cancel(common, name, account.as_deref()),
        None => set(common, args),
    }
}

fn set(common: &Common, args: &LeaseArgs) -> Result<Exit, Stop> {
    let setup = Setup::read(common)?;
    setup.need_accounts()?;
    let (Some(name), Some(what)) = (&args.name, args.what) else { return Err(Stop::usage("which instance?")) };
    // What cannot be read is told before anything is asked.
    moment(&setup, args, clock::now())?;
    let max_cost = args.max_cost.as_deref().map(lease::money).transpose();
    let max_cost = max_cost.map_err(|mistake| wrong(&setup, "--max-cost", &mistake))?;
    if args.on_box && setup.config.lease.arm.is_none() {
        return Err(wrong(&setup, "--on-box", &Mistake::NoOnBox));
    }
    let (exit, _) = visit(&setup, async |errand| {
        let identity = find(&setup, errand, name, args.account.as_deref())?;
        let now = clock::now();
        let (when, shift) = moment(&setup, args, now)?;
        let draft = Draft { identity: identity.clone(), what: what.what(), when, max_cost, on_box: args.on_box };
        let costs_in = currencies(&errand.state.world, std::slice::from_ref(&identity));
        let draft = check(draft, &costs_in).map_err(|(field, mistake)| wrong(&setup, flag(args, field), &mistake))?;
        let told = notes(&errand.state.world, &draft, shift, now);
        let sentence = sentence(&setup, &draft.when, draft.what, now);
        tell_of(errand, Intent::Lease(Box::new(draft))).await?;
        tell(format_args!("{}: {sentence}", errand.state.world.fleet.name_of(&identity)));
        for note in &told {
            warn(setup.language.lease_note(note));
        }
        if nobody_collects(&errand.state.world.collector) {
            warn(setup.language.nobody_collects());
        }
        Ok(Exit::Done)
    })?;
    Ok(exit)
}

/// When it is to happen, by whichever flag says so.
fn moment(setup: &Setup, args: &LeaseArgs, now: Timestamp) -> Result<(When, Option<Shift>), Stop> {
    let zone = &setup.config.timezone;
    let read = match (&args.after, &args.at, &args.when_file, &args.when_pid) {
        (Some(text), ..) => lease::moment(&format!("in {text}"), zone, now).map(|at| (When::At(at.at), at.shift)),
        (_, Some(text), ..) => lease::moment(text, zone, now).map(|at| (When::At(at.at), at.shift)),
        (.., Some(path), _) => lease::file(path).map(|when| (when, None)),
        (.., Some(pid)) => lease::process(pid).map(|when| (when, None)),
        _ => return Err(Stop::usage("when? add one of --in, --at, --when-file and --when-pid")),
    };
    read.map_err(|mistake| wrong(setup, flag(args, Field::When), &mistake))
}

fn flag(args: &LeaseArgs, field: Field) -> &'static str {
    match field {
        Field::What => "what",
        Field::MaxCost => "--max-cost",
        Field::OnBox => "--on-box",
        Field::When if args.after.is_some() => "--in",
        Field::When if args.at.is_some() => "--at",
        Field::When if args.when_file.is_some() => "--when-file",
        Field::When => "--when-pid",
    }
}

fn wrong(setup: &Setup, flag: &str, mistake: &Mistake) -> Stop {
    Stop::usage(format!("{flag}: {}", setup.language.lease_mistake(mistake)))
}

fn sentence(setup: &Setup, when: &When, what: What, now: Timestamp) -> String {
    let language = setup.language;
    format!("{}, {}", language.lease_what(what), language.lease_when(when, now, &setup.config.timezone))
}

/// Nobody but this command holds the ledger.
fn nobody_collects(collector: &Option<Collector>) -> bool {
    !matches!(collector, Some(Collector::Other { .. }))
}

/// Says it, and waits until it is in the ledger.
async fn tell_of(errand: &mut Errand, intent: Intent) -> Result<(), Stop> {
    errand.take(Event::World(WorldEvent::Intent(intent)));
    errand.run_until(|state| state.world.leases.are_kept()).await.map_err(Stop::failed)?;
    match errand.state.view.message.as_ref().map(|shown| &shown.message) {
        Some(message @ Msg::LeftOut { .. }) => Err(Stop::refused(said(errand, message))),
        Some(message) if message.is_bad() => Err(Stop::failed(said(errand, message))),
        _ => Ok(()),
    }
}

fn said(errand: &Errand, message: &Msg) -> String {
    let look = crate::ui::Look::of_environment(
        crate::config::Language::of_the_user().unwrap_or(crate::config::Language::English),
        &crate::config::process_environment,
    );
    text::message(message, &look, errand.state.view.fixed.currency)
}

fn cancel(common: &Common, name: &str, account: Option<&str>) -> Result<Exit, Stop> {
    let setup = Setup::read(common)?;
    let ((), _) = visit(&setup, async |errand| {
        let world = &errand.state.world;
        let by_id = name.parse().ok().map(LeaseId);
        let mut leases: Vec<Lease> = world.leases.in_force().filter(|lease| Some(lease.id) == by_id).cloned().collect();
        if leases.is_empty() {
            let fits = |lease: &&Lease| {
                let of_account = account.is_none_or(|account| lease.identity.account.as_str() == account);
                of_account && (lease.name == name || lease.identity.id.as_str() == name)
            };
            leases = world.leases.in_force().filter(fits).cloned().collect();
            let mut identities: Vec<_> = leases.iter().map(|lease| &lease.identity).collect();
            identities.dedup();
            // A name of several machines, or one that has a name of its own since.
            if leases.is_empty() || identities.len() > 1 {
                let identity = pointed(world, name, account)?;
                leases = world.leases.of(&identity).cloned().collect();
            }
        }
        if leases.is_empty() {
            return Err(Stop::usage(format!("`{}` has no lease", providers::text::clean(name))));
        }
        tell_of(errand, Intent::EndLeases(leases.iter().map(|lease| lease.id).collect())).await?;
        for lease in &leases {
            tell(setup.language.lease_cancelled(&lease.name, lease.what));
            if lease.is_armed() {
                warn(setup.language.lease_note(&Note::StaysArmed));
            }
        }
        Ok(())
    })?;
    Ok(Exit::Done)
}

#[derive(Serialize)]
struct Listing {
    schema: &'static str,
    leases: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    id: i64,
    account: AccountName,
    instance: ResourceId,
    name: String,
    /// stop, release, start
    what: &'static str,
    /// time, file, process
    by: &'static str,
    /// `None` of a job.
    at: Option<Timestamp>,
    file: Option<String>,
    pid: Option<u32>,
    max_cost: Option<Cost>,
    /// waiting, due, acting, asking
    state: &'static str,
    /// wanted, armed, confirmed, gone, failed; `None` without a timer on the instance.
    on_box: Option<&'static str>,
    made_at: Timestamp,
    made_by: String,
}

#[derive(Serialize)]
struct Cost {
    amount: String,
    currency: String,
}

fn list(common: &Common, output: Output) -> Result<Exit, Stop> {
    let setup = Setup::read(common)?;
    let runtime = setup::runtime()?;
    let told = runtime.block_on(async {
        let Program { performer, mut inbox, .. } = setup.program(Kind::OneShot)?;
        let memory = performer.keeper.remembered().await;
        performer.keeper.end(false);
        let memory = memory.ok_or_else(|| Stop::failed("the ledger did not answer"))?.map_err(Stop::failed)?;
        Ok((memory.leases, std::iter::from_fn(|| inbox.ready()).collect()))
    });
    setup::end(runtime);
    let (leases, events) = told?;
    let exit = told_notices(&setup, events);
    if output.json {
        let leases = leases.iter().map(line).collect();
        print_json(&Listing { schema: "rentop.lease/1", leases })?;
        return Ok(exit);
    }
    let now = clock::now();
    let mut table = Table::new(&["ID", "ACCOUNT", "NAME", "WHAT", "WHEN", "STATE", "ON BOX"]);
    for lease in &leases {
        table.row(vec![
            lease.id.0.to_string(),
            lease.identity.account.to_string(),
            lease.name.clone(),
            setup.language.lease_what(lease.what).to_owned(),
            setup.language.lease_when(&lease.when, now, &setup.config.timezone),
            state(&lease.step).to_owned(),
            lease.on_box.as_ref().map(|on_box| setup.language.on_box(on_box)).unwrap_or_default(),
        ]);
    }
    table.print(output)?;
    Ok(exit)
}

fn state(step: &Step) -> &'static str {
    match step {
        Step::Waiting => "waiting",
        Step::Due { .. } => "due",
        Step::Acting { .. } => "acting",
        Step::Asking { .. } => "asking",
        Step::Ended { .. } => "ended",
    }
}

fn line(lease: &Lease) -> Line {
    let (by, at, file, pid) = match &lease.when {
        When::At(at) => ("time", Some(*at), None, None),
        When::File(path) => ("file", None, Some(path.clone()), None),
        When::Process { pid, .. } => ("process", None, None, Some(*pid)),
    };
    Line {
        id: lease.id.0,
        account: lease.identity.account.clone(),
        instance: lease.identity.id.clone(),
        name: lease.name.clone(),
        what: lease.what.word(),
        by,
        at,
        file,
        pid,
        max_cost: lease
            .max_cost
            .map(|money| Cost { amount: money.amount.normalize().to_string(), currency: money.currency.to_string() }),
        state: state(&lease.step),
        on_box: lease.on_box.as_ref().map(|on_box| match on_box {
            OnBox::Wanted => "wanted",
            OnBox::Armed => "armed",
            OnBox::Confirmed(_) => "confirmed",
            OnBox::Gone(_) => "gone",
            OnBox::Failed(_) => "failed",
        }),
        made_at: lease.made_at,
        made_by: lease.by.clone(),
    }
}
