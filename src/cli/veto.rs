//! `rentop veto`: keeps guards from an instance.

use jiff::SignedDuration;

use super::act::pointed;
use super::alerts::time;
use super::budgets::minute;
use super::setup::{self, Kind, Program, Setup};
use super::spend::books::answered;
use super::{Common, Exit, Stop, tell};
use crate::rules::guard::Veto;
use crate::runtime::clock;

#[derive(Clone, Debug, clap::Args)]
pub struct VetoArgs {
    /// The instance's name or id, whole; it must mean one instance only.
    #[arg(value_name = "NAME|ID")]
    pub name: String,
    /// For how long, such as 30m, 8h or 2d. Default: until what a guard is called for by is over and comes again.
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub time: Option<SignedDuration>,
    /// Only among the instances of this account.
    #[arg(long, value_name = "NAME")]
    pub account: Option<String>,
}

pub fn run(common: &Common, args: &VetoArgs) -> Result<Exit, Stop> {
    let setup = Setup::read(common)?;
    let runtime = setup::runtime()?;
    let told = runtime.block_on(async {
        let Program { state, performer, .. } = setup.program(Kind::OneShot)?;
        let said = async {
            let memory = answered(performer.keeper.remembered().await)?;
            let now = clock::now();
            let veto = Veto { said_at: now, until: args.time.map(|time| now + time), by: state.world.by.clone() };
            let identity = pointed(&memory.instances, &args.name, args.account.as_deref())?;
            let called: Vec<&str> = memory
                .watches
                .iter()
                .filter(|watch| watch.identity == identity && watch.can_be_vetoed())
                .map(|watch| watch.guard.as_str())
                .collect();
            if called.is_empty() && args.time.is_none() {
                let name = providers::text::clean(&args.name);
                let message = format!("no guard is about to act on `{name}`; `--for 8h` keeps them away all the same");
                return Err(Stop::usage(message));
            }
            performer.keeper.keep_veto(identity.clone(), veto.clone());
            // What was written down is what counts: it is read again.
            let memory = answered(performer.keeper.remembered().await)?;
            if !memory.vetoes.contains(&(identity, veto.clone())) {
                return Err(Stop::failed("the veto could not be written down: guards may act"));
            }
            Ok(match veto.until {
                Some(until) => format!("no guard acts before {}", minute(until, &setup.config.timezone)),
                None => format!("kept away until it comes again: {}", called.join(", ")),
            })
        };
        let said = said.await;
        performer.keeper.end(false);
        said
    });
    setup::end(runtime);
    tell(told?);
    Ok(Exit::Done)
}
