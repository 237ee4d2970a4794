//! The command line: one file a subcommand, and what they share.

mod accounts;
mod act;
mod alerts;
mod audit;
mod budgets;
mod check;
mod checkpoint;
mod demo;
mod export;
mod lease;
mod look;
mod ls;
mod notify;
mod period;
mod providers_list;
mod screen;
mod setup;
mod spend;
mod storage;
mod table;
mod top;
mod verify;
mod veto;
mod watch;

use std::fmt::Display;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use providers::model::Action;

/// How a command ended: the exit codes that scripts rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    Done = 0,
    /// Failed, still billing, or outcome unknown.
    Failed = 1,
    /// Usage or config.
    Usage = 2,
    /// Some or all accounts failed; what is known was printed.
    Partly = 3,
    /// Refused for safety.
    Refused = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// An error with the exit code that it leads to.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Stop {
    pub exit: Exit,
    pub message: String,
}

impl Stop {
    fn usage(message: impl Into<String>) -> Self {
        Stop { exit: Exit::Usage, message: message.into() }
    }
    fn refused(message: impl Into<String>) -> Self {
        Stop { exit: Exit::Refused, message: message.into() }
    }
    fn failed(message: impl std::fmt::Display) -> Self {
        Stop { exit: Exit::Failed, message: message.to_string() }
    }
}

/// Every GPU that you rent on one live screen: what runs, what it costs, and one safe key to end it.
#[derive(Debug, Parser)]
#[command(name = "rentop", version, about, long_about = None, args_conflicts_with_subcommands = false)]
pub struct Args {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Flags that count for every command.
#[derive(Clone, Debug, clap::Args)]
pub struct Common {
    /// The config file, in place of the one in the platform's config folder.
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The folder of ledger, logs and known hosts.
    #[arg(long, global = true, value_name = "FOLDER")]
    pub state_dir: Option<PathBuf>,
    /// Send nothing that changes anything, on any path.
    #[arg(long, global = true)]
    pub read_only: bool,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// The screen over simulated providers: nothing to configure, nothing leaves this machine.
    Demo,
    /// All instances and storage, once.
    Ls(Output),
    /// Every GPU, once: use, memory, temperature, power, and whether its machine works.
    Top(top::TopArgs),
    /// What was spent: billed by the provider, counted from looks, or assumed between them.
    Spend(spend::SpendArgs),
    /// The books as CSV in the columns of FOCUS 1.2 (FinOps Open Cost and Usage Specification).
    Export(export::ExportArgs),
    /// What costs without working: stopped instances, and storage that nothing uses.
    Storage(Output),
    /// How the budgets of the config stand: spent, to be spent at this burn, and committed.
    Budgets(Output),
    /// What somebody should know of: the open alerts, and with `seen` or `snooze` the answer to them.
    Alerts(alerts::AlertsArgs),
    /// One look at everything: tells what fires, and whether anything does (exit code 1).
    Check(check::CheckArgs),
    /// No screen: polls, writes down what it sees and tells alerts, until it is ended (SIGTERM, Ctrl-C).
    Watch,
    /// Stop an instance: compute ends, its disk stays and may still cost.
    Stop(ActArgs),
    /// Start a stopped instance.
    Start(ActArgs),
    /// Release an instance: it is deleted, and so is its own disk.
    Release(ActArgs),
    /// Copy what is worth keeping out of an instance, and compare both sides; the instance goes on.
    Checkpoint(checkpoint::CheckpointArgs),
    /// What is to happen to an instance by itself, and when: kept in the ledger, carried out by a rentop that runs.
    Lease(lease::LeaseArgs),
    /// Keep guards from an instance: until what they are called for by is over, or for a time.
    Veto(veto::VetoArgs),
    /// Channels beyond the screen: which there are, and whether one takes a message.
    Notify(notify::NotifyArgs),
    /// The providers, and what each can and cannot do.
    Providers(Output),
    /// The accounts of the config: reach, balance, number of instances.
    Accounts(Output),
    /// What was done to instances, when, by whom, and how it ended.
    Audit(Output),
    /// Whether a copy still is what was verified: every file of its folder is read again.
    Verify(verify::VerifyArgs),
    /// Shell completions, on standard output.
    Completions { shell: clap_complete::Shell },
    /// The manual page, on standard output.
    Man,
}

/// How a table is printed.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Output {
    /// JSON, for scripts.
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// CSV, for spreadsheets.
    #[arg(long)]
    pub csv: bool,
}

#[derive(Clone, Debug, clap::Args)]
pub struct ActArgs {
    /// The instance's name or id, whole; it must mean one instance only.
    #[arg(value_name = "NAME|ID")]
    pub name: String,
    /// Only among the instances of this account.
    #[arg(long, value_name = "NAME")]
    pub account: Option<String>,
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
    /// Go on although data is lost.
    #[arg(long)]
    pub lose_data: bool,
    /// First bring to safety what a `checkpoint` section of the config names; without a verified copy nothing follows.
    #[arg(long, conflicts_with = "lose_data")]
    pub checkpoint: bool,
    /// Return once the provider has accepted, without waiting for a poll to confirm.
    #[arg(long)]
    pub no_wait: bool,
}

/// Runs the command line and returns how it ended.
pub fn run() -> ExitCode {
    keep_files_private();
    if let Some(machines) = demo::stand_in::called() {
        return demo::stand_in::run(&machines);
    }
    let args = Args::parse();
    match dispatch(args) {
        Ok(exit) => exit.into(),
        Err(stop) => {
            warn(format_args!("rentop: {stop}"));
            stop.exit.into()
        }
    }
}

/// One line on standard error. With nobody left to read it, the exit code still tells.
fn warn(line: impl Display) {
    drop(writeln!(std::io::stderr(), "{line}"));
}

/// One line on standard output, for a person: what it tells was done already, whether or not it is read.
fn tell(line: impl Display) {
    drop(writeln!(std::io::stdout(), "{line}"));
}

/// Whatever is written from here on, ledger, logs and copies, is its owner's alone.
fn keep_files_private() {
    #[cfg(unix)]
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
}

fn dispatch(args: Args) -> Result<Exit, Stop> {
    let common = args.common;
    match args.command {
        None => screen::run(&common),
        Some(Command::Demo) => demo::run(&common),
        Some(Command::Ls(output)) => ls::run(&common, output),
        Some(Command::Top(args)) => top::run(&common, &args),
        Some(Command::Spend(args)) => spend::run(&common, &args),
        Some(Command::Export(args)) => export::run(&common, &args),
        Some(Command::Storage(output)) => storage::run(&common, output),
        Some(Command::Budgets(output)) => budgets::run(&common, output),
        Some(Command::Alerts(args)) => alerts::run(&common, &args),
        Some(Command::Check(args)) => check::run(&common, args),
        Some(Command::Watch) => watch::run(&common),
        Some(Command::Stop(act)) => act::run(&common, Action::Stop, &act),
        Some(Command::Start(act)) => act::run(&common, Action::Start, &act),
        Some(Command::Release(act)) => act::run(&common, Action::Release, &act),
        Some(Command::Checkpoint(args)) => checkpoint::run(&common, &args),
        Some(Command::Lease(args)) => lease::run(&common, &args),
        Some(Command::Veto(args)) => veto::run(&common, &args),
        Some(Command::Notify(args)) => notify::run(&common, &args),
        Some(Command::Providers(output)) => providers_list::run(output),
        Some(Command::Accounts(output)) => accounts::run(&common, output),
        Some(Command::Audit(output)) => audit::run(&common, output),
        Some(Command::Verify(args)) => verify::run(&args),
        Some(Command::Completions { shell }) => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Args::command(), "rentop", &mut text);
            table::print_bytes(&text)
        }
        Some(Command::Man) => {
            let mut text = Vec::new();
            clap_mangen::Man::new(Args::command()).render(&mut text).map_err(Stop::failed)?;
            table::print_bytes(&text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound_and_knows_no_prefixes() {
        Args::command().debug_assert();
        assert!(Args::try_parse_from(["rentop", "stop", "x", "--lose"]).is_err());
        assert!(Args::try_parse_from(["rentop", "sto", "x"]).is_err());
        assert!(Args::try_parse_from(["rentop", "release", "x", "--yes", "--lose-data", "--read-only"]).is_ok());
    }
}
