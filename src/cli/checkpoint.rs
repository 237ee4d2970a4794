//! `rentop checkpoint`: brings to safety what is worth keeping of one instance, and waits until it is verified.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use jiff::Timestamp;
use providers::model::{AccountName, Action, Identity, ResourceId};
use serde::Serialize;

use super::act::{self, carry_out, find, over};
use super::look::told_ledger;
use super::setup::Setup;
use super::table::print_json;
use super::{Common, Exit, Stop, tell};
use crate::config::machine_path;
use crate::rules::checkpoint::{Method, Proof, QUIET, Recipe};
use crate::rules::plan::{SaveFirst, recipe_for};
use crate::rules::saga::{Authority, Operation, Outcome, Step};
use crate::runtime::clock;
use crate::runtime::errand::Errand;
use crate::ui::{Look, format, plain};

#[derive(Clone, Debug, clap::Args)]
pub struct CheckpointArgs {
    /// The instance's name or id, whole; it must mean one instance only.
    #[arg(value_name = "NAME|ID")]
    name: String,
    /// Only among the instances of this account.
    #[arg(long, value_name = "NAME")]
    account: Option<String>,
    /// What to copy, an absolute path on the instance; more than once for several. Without it: what the config's
    /// [[checkpoint]] says.
    #[arg(long = "path", value_name = "PATH")]
    paths: Vec<String>,
    /// Where to copy it, a folder of this machine. Without it: what the config's [[checkpoint]] says.
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
    /// JSON, for scripts.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Told {
    schema: &'static str,
    account: AccountName,
    provider: String,
    id: ResourceId,
    name: String,
    /// done, not_saved, not_sent, or the step that it is at.
    outcome: &'static str,
    detail: String,
    /// Null unless it is verified.
    saved: Option<SavedLine>,
}

/// A verified checkpoint, for `--json`.
#[derive(Serialize)]
pub struct SavedLine {
    /// A folder of the machine that copied it, or what the method is called.
    place: String,
    files: u64,
    bytes: u64,
    /// Files that were being written and are not in it.
    left_out: u64,
    verified_at: Timestamp,
}

impl SavedLine {
    pub fn of(proof: &Proof) -> Self {
        let Proof { at, files, bytes, left_out, place, .. } = proof;
        SavedLine { place: place.clone(), files: *files, bytes: *bytes, left_out: *left_out, verified_at: *at }
    }
}

pub fn run(common: &Common, args: &CheckpointArgs) -> Result<Exit, Stop> {
    let setup = Setup::read(common)?;
    let account = args.account.as_deref();
    let paths = args.paths.iter().map(|path| absolute(path)).collect::<Result<Vec<String>, Stop>>()?;
    over(&setup, account, async |errand| {
        let identity = find(&setup, errand, &args.name, account)?;
        let save = save(errand, &setup, &identity, paths, args.to.as_ref())?;
        let plan = act::plan(&setup, errand, Action::Checkpoint, &identity, &save)?;
        told_ledger(&setup, &errand.state);
        let (operation, exit) = carry_out(errand, &setup, plan, Authority::Saved, false).await?;
        let line = plain::operation_line(&operation, &setup.look(), clock::now());
        let saved = operation.saved().map(|saved| saved.proof);
        if args.json {
            print_json(&told(&operation, line, saved.as_ref()))?;
            return Ok(exit);
        }
        tell(line);
        if let Some(proof) = saved {
            tell(setup.language.saved_to(&proof));
        }
        Ok(exit)
    })
}

/// What is copied, and where: as the arguments say, and for the rest as the config does.
fn save(
    errand: &Errand,
    setup: &Setup,
    identity: &Identity,
    paths: Vec<String>,
    to: Option<&PathBuf>,
) -> Result<SaveFirst, Stop> {
    let to = to.map(std::path::absolute).transpose().map_err(|error| Stop::usage(format!("--to: {error}")))?;
    if paths.is_empty() && to.is_none() {
        return Ok(SaveFirst::ByConfig);
    }
    let world = &errand.state.world;
    let provider = world.fleet.account(&identity.account).map(|account| account.provider.clone());
    let rule = provider.and_then(|provider| recipe_for(world.basis(&[], clock::now()), &provider, identity));
    let mut recipe = match rule {
        Some(rule) => rule.recipe.clone(),
        None if paths.is_empty() => return Ok(SaveFirst::ByConfig),
        None => Recipe {
            name: String::new(),
            paths: Vec::new(),
            method: Method::Copy { to: String::new() },
            prepare: None,
            quiet: QUIET,
        },
    };
    if !paths.is_empty() {
        (recipe.name, recipe.paths) = (String::new(), paths);
    }
    recipe.method = match (to, recipe.method) {
        (Some(folder), _) => Method::Copy { to: folder.to_string_lossy().into_owned() },
        (None, Method::Copy { to }) if !to.is_empty() => Method::Copy { to },
        (None, _) => {
            let file = setup.places.config_file.display();
            let message = format!("where to? use --to, or write a [[checkpoint]] with a folder `to` into {file}");
            return Err(Stop::usage(message));
        }
    };
    Ok(SaveFirst::By(recipe))
}

fn absolute(path: &str) -> Result<String, Stop> {
    machine_path(path).map_err(|wrong| Stop::usage(format!("--path: `{}` {wrong}", providers::text::clean(path))))
}

fn told(operation: &Operation, detail: String, saved: Option<&Proof>) -> Told {
    let target = &operation.target;
    Told {
        schema: "rentop.checkpoint/1",
        account: target.identity.account.clone(),
        provider: target.provider.to_string(),
        id: target.identity.id.clone(),
        name: target.name.clone(),
        outcome: match &operation.step {
            Step::Ended { outcome: Outcome::Done { .. }, .. } => "done",
            Step::Ended { outcome: Outcome::NotSaved(_), .. } => "not_saved",
            Step::Ended { .. } => "not_sent",
            step => step.word(),
        },
        detail,
        saved: saved.map(SavedLine::of),
    }
}

/// So many cells are there on any terminal.
const CELLS: u16 = 79;

/// How far it is: one line on standard error, written anew; nothing where nobody looks on.
pub struct Progress {
    look: Look,
    shown: Option<String>,
}

impl Progress {
    /// Of an action, if it has something to show.
    pub fn new(setup: &Setup, shows: bool) -> Self {
        let shown = (shows && io::stderr().is_terminal()).then(String::new);
        Progress { look: setup.look(), shown }
    }

    pub fn show(&mut self, operation: &Operation) {
        let Some(shown) = &mut self.shown else { return };
        let line = format::cut(&plain::operation_line(operation, &self.look, clock::now()), CELLS, "…");
        if line != *shown {
            write(&format!("\r\x1b[K{line}"));
            *shown = line;
        }
    }

    /// Makes room for what is told at last.
    pub fn end(self) {
        if self.shown.is_some_and(|shown| !shown.is_empty()) {
            write("\r\x1b[K");
        }
    }
}

/// With nobody left to read it, the exit code still tells.
fn write(text: &str) {
    let mut out = io::stderr();
    drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}
