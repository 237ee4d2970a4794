//! `rentop spend`: what was spent, grouped.

pub mod books;
pub mod listing;
mod projects;
mod shown;

use clap::ValueEnum;

use self::books::{Books, answered, at_one_moment};
use super::look::{told_trouble, visit};
use super::period::Days;
use super::setup::Setup;
use super::table::print_json;
use super::{Common, Exit, Output, Stop, tell};
use crate::rules::spend::{By, Question, date_of};
use crate::runtime::clock;

#[derive(Clone, Debug, clap::Args)]
pub struct SpendArgs {
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub days: Days,
    /// What it is grouped by; without it, by project.
    #[arg(long, value_enum, value_name = "WHAT", default_value = "project")]
    pub by: Grouping,
    /// Share what belongs to no project, and all storage, among the projects that computed.
    #[arg(long)]
    pub spread_unassigned: bool,
    /// Let the config's present project rules count for what was spent before, from --from on.
    #[arg(long, conflicts_with_all = ["json", "csv", "to", "by", "spread_unassigned"])]
    pub apply_projects: bool,
    /// Do not ask.
    #[arg(long, requires = "apply_projects")]
    pub yes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Grouping {
    Account,
    Provider,
    Project,
    Instance,
    Component,
    Day,
}

impl Grouping {
    fn by(self) -> By {
        match self {
            Grouping::Account => By::Account,
            Grouping::Provider => By::Provider,
            Grouping::Project => By::Project,
            Grouping::Instance => By::Instance,
            Grouping::Component => By::Component,
            Grouping::Day => By::Day,
        }
    }
}

pub fn run(common: &Common, args: &SpendArgs) -> Result<Exit, Stop> {
    let by = args.by.by();
    if args.spread_unassigned && by != By::Project {
        return Err(Stop::usage("--spread-unassigned shares among projects: it goes with --by project"));
    }
    let setup = Setup::read(common)?;
    setup.need_accounts()?;
    let today = date_of(clock::now(), &setup.config.timezone);
    if args.apply_projects {
        return projects::run(&setup, args.days.from.as_deref(), args.yes, today);
    }
    let period = args.days.period(today)?;
    let question = if by == By::Instance { Question::Resources(period) } else { Question::Days(period) };
    let (books, state) = visit(&setup, async |errand| {
        let keeper = errand.keeper();
        let ask = async || {
            let balances = answered(keeper.spend(Question::Balances(period)).await)?.balances;
            Ok((answered(keeper.spend(question.clone()).await)?, balances))
        };
        let ((answer, balances), memory) = at_one_moment(keeper, ask).await?;
        Ok(Books::of(answer, balances, &memory, &errand.state.world, period, clock::now()))
    })?;
    if args.output.json {
        print_json(&listing::Listing::of(&books, by, args.spread_unassigned, &setup.config))?;
    } else if args.output.csv {
        listing::spreadsheet(&books, by, args.spread_unassigned).print(args.output)?;
    } else {
        let look = setup.look();
        shown::table(&books, by, args.spread_unassigned, &look, setup.config.currency).print(args.output)?;
        shown::lines(&books, by, &look, &setup.config).into_iter().for_each(tell);
    }
    Ok(told_trouble(&setup, &state))
}
