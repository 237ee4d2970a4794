//! `rentop demo`: the screen over simulated providers. Reads no config, key or keyring, keeps its state in
//! a temporary folder, copies of results included, and sends nothing beyond this machine. The folder goes with it.

mod budgets;
mod past;
pub mod stand_in;
mod worlds;

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use providers::sim::{Shared, SimClock, Simulator};

use self::worlds::{KEY, Rented};
use super::setup::{self, Kind, Setup};
use super::{Common, Exit, Stop, screen};
use crate::config::{AccountConfig, Config, KeySource, Language, Places};
use crate::ledger::{Ledger, LedgerError};
use crate::rules::matcher::Matcher;
use crate::rules::memory::Keep;
use crate::rules::settings::{ProjectRule, Rules};
use crate::rules::streams::Consent;
use crate::runtime::clock;

pub fn run(common: &Common) -> Result<Exit, Stop> {
    screen::need_terminal()?;
    let folder = tempfile::Builder::new().prefix("rentop-demo-").tempdir().map_err(Stop::failed)?;
    let language = Language::of_the_user().map_err(|error| Stop::usage(error.to_string()))?;
    let places = Places { config_file: folder.path().join("config.toml"), state_dir: folder.path().join("state") };
    places.prepare_state_dir().map_err(|error| Stop::usage(error.to_string()))?;
    let key_file = folder.path().join("key");
    write_key(&key_file).map_err(Stop::failed)?;

    let now = clock::now();
    let zone = Config::default().timezone;
    let rented = worlds::all(&SimClock::running(now, 1.0), &zone);
    let pasts = past::of_all(&rented, &rules(), now);
    let copies = folder.path().join("copies");
    let text = budgets::text(&pasts, now) + &checkpoint(&copies);
    let config = Config::parse(&text, &places.config_file).map_err(Stop::failed)?;
    let config = Config { rules: rules(), ..config };
    remember(&rented, &pasts, zone, &places, now).map_err(Stop::failed)?;
    let servers = setup::runtime()?;
    let simulators = servers.block_on(serve(rented)).map_err(Stop::failed)?;
    let accounts = simulators
        .iter()
        .map(|(provider, account, simulator)| AccountConfig {
            provider: providers::find(provider).expect("a provider of the registry"),
            name: (*account).into(),
            key: KeySource::File(key_file.clone()),
            base_url: Some(simulator.url()),
            read_only: false,
            facts: BTreeMap::new(),
            // What its machines do their provider tells: nobody has to look into them.
            streams: Consent::Never,
            machines: Vec::new(),
            auto_topup: false,
        })
        .collect();
    let config = Config { accounts, ..config };
    let ssh = stand_in::set_up(&folder.path().join("machines")).map_err(Stop::failed)?;
    let setup = Setup { config, places, language, read_only: common.read_only, notices: Vec::new(), ssh };
    let exit = screen::show(&setup, Kind::Demo, &|_, _| Err("the demo has accounts of its own".to_owned()));
    drop(simulators);
    setup::end(servers);
    if copies.exists() {
        super::tell(format_args!("The demo is over, and its copies in {} go with it.", copies.display()));
    }
    exit
}

/// What the demo's config says of checkpoints: there is a recipe for one project, and none for the others.
fn checkpoint(copies: &Path) -> String {
    let to = toml_text(&copies.to_string_lossy());
    format!(
        r#"
[[checkpoint]]
name = "results"
match = {{ project = "finetune" }}
paths = ["/workspace/out"]
to = {to}
quiet = "2s"
"#
    )
}

/// A text as TOML has it between quotes.
fn toml_text(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn write_key(file: &Path) -> std::io::Result<()> {
    use std::io::Write;
    let mut options = std::fs::OpenOptions::new();
    crate::config::open_private(file, options.write(true).create_new(true))?.write_all(KEY.as_bytes())
}

fn rules() -> Rules {
    let project = |name: &str, glob: &str| ProjectRule { name: name.to_owned(), matcher: Matcher::of_name(glob) };
    Rules {
        projects: vec![
            project("finetune", "llama-*"),
            project("finetune", "datasets"),
            project("pretrain", "pretrain-*"),
            project("pretrain", "ckpt"),
            project("art", "sd-*"),
            project("art", "comfy*"),
            project("客户甲", "eval-*"),
        ],
        protect: vec![Matcher::of_name("serve-*")],
        ..Rules::default()
    }
}

/// Writes the past of all accounts into the demo's own ledger.
fn remember(
    rented: &[Rented],
    pasts: &[Keep],
    zone: TimeZone,
    places: &Places,
    now: Timestamp,
) -> Result<(), LedgerError> {
    let (mut ledger, _) = Ledger::open(&places.state_dir, now)?;
    ledger.use_zone(zone)?;
    past::write(&mut ledger, rented, pasts, now)
}

async fn serve(rented: Vec<Rented>) -> std::io::Result<Vec<(&'static str, &'static str, Simulator)>> {
    let mut simulators = Vec::new();
    for Rented { provider, account, world, .. } in rented {
        let world = Shared::new(world);
        let routes = match provider {
            "runpod" => providers::runpod::simulator::routes(world.clone()),
            "vast" => providers::vast::simulator::routes(world.clone()),
            _ => providers::lambda::simulator::routes(world.clone()),
        };
        simulators.push((provider, account, Simulator::serve(routes, world).await?));
    }
    Ok(simulators)
}
