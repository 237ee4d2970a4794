//! From flags, environment and config to a program that can run.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use providers::model::ProviderName;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::{Common, Stop};
use crate::app::keymap::{Bindings, KeyMistake};
use crate::app::state::{Fixed, OfferedAccount, State, View, World};
use crate::config::{self, Config, ConfigError, KeySource, Language, Mistake, Places};
use crate::rules::fleet::Account;
use crate::rules::memory::Owner;
use crate::rules::streams::Consent;
use crate::runtime::accounts::Accounts;
use crate::runtime::channels::Channels;
use crate::runtime::checkpoint::Copies;
use crate::runtime::effects::Performer;
use crate::runtime::jobs::Jobs;
use crate::runtime::keeper::Keeper;
use crate::runtime::shell::OwnSsh;
use crate::runtime::streams::{self, Streams};
use crate::runtime::{Inbox, Outbox, clock, preferences};
use crate::ui::{Look, text};

/// Everything that a command needs before it begins.
pub struct Setup {
    pub config: Config,
    pub places: Places,
    pub language: Language,
    pub read_only: bool,
    pub notices: Vec<String>,
    /// What connects to machines; `None` connects to nothing.
    pub ssh: Option<OsString>,
}

/// What a program is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Screen,
    Demo,
    /// Collects without a screen.
    Watch,
    /// One command, and out.
    OneShot,
    /// The same, which looks into machines over `ssh`.
    Probe,
    /// Acts on one machine, and tells channels so.
    Act,
    /// One look, and what it gives rise to is told.
    Check,
}

/// The parts of a program that is ready to run.
pub struct Program {
    pub state: State,
    pub performer: Performer,
    pub inbox: Inbox,
}

impl Setup {
    /// Reads the config and finds the folders. Writes nothing but the state folder.
    pub fn read(common: &Common) -> Result<Self, Stop> {
        let places = Places::find(
            common.config.clone(),
            common.state_dir.clone(),
            &config::process_environment,
            config::PlatformFolders::of_the_user,
        )
        .map_err(|error| Stop::usage(error.to_string()))?;
        let config = Config::load(&places.config_file).map_err(|error| Stop::usage(error.to_string()))?;
        if config.path.is_none() && common.config.is_some() {
            return Err(Stop::usage(format!("there is no config file {}", places.config_file.display())));
        }
        let language = Language::of_the_user().map_err(|error| Stop::usage(error.to_string()))?;
        let folder = places.prepare_state_dir().map_err(|error| Stop::usage(error.to_string()))?;
        let notices = config.notices.iter().chain(&folder).map(ToString::to_string).collect();
        let ssh = Some(streams::program(std::env::var_os("RENTOP_SSH")));
        Ok(Setup { config, places, language, read_only: common.read_only, notices, ssh })
    }

    /// Fails with the way out when there is nothing to work with.
    pub fn need_accounts(&self) -> Result<(), Stop> {
        if !self.config.accounts.is_empty() {
            return Ok(());
        }
        let offered = config::keys_in_environment(&config::process_environment);
        let file = self.places.config_file.display();
        let hint = match offered.first() {
            Some(account) => format!(
                "a key of {} is in the environment: start `rentop` to add it, or write an [[account]] into {file}",
                account.provider.title
            ),
            None => format!("write an [[account]] into {file}; `rentop demo` shows the program without one"),
        };
        Err(Stop::usage(format!("no account is configured: {hint}")))
    }

    /// Puts state, ledger and performer together.
    pub fn program(&self, kind: Kind) -> Result<Program, Stop> {
        let now = clock::now();
        let owner = Owner { host: host(), pid: std::process::id() };
        let by = format!("{}@{}", user(), owner.host);
        let accounts = self
            .config
            .accounts
            .iter()
            .map(|account| {
                let provider = ProviderName::from(account.provider.name);
                Account::new(account.name.clone(), provider, account.read_only)
            })
            .collect();
        let mut world = World::new(accounts, self.config.rules.clone(), self.read_only, by, now);
        world.one_shot = matches!(kind, Kind::OneShot | Kind::Probe | Kind::Act | Kind::Check);
        world.probes = kind == Kind::Probe;
        // The ledger has no figures of now.
        world.fleet.accounts.iter_mut().for_each(|account| account.pacing.wanted = world.probes);
        for account in self.config.accounts.iter().filter(|account| account.streams != Consent::Unasked) {
            world.streams.ordain(&account.name, account.streams);
        }
        world.recipes = self.config.recipes.clone();
        world.leases.commands = self.config.lease.clone();
        world.guarding.rules = self.config.guards.clone();
        world.budgets.rules = self.config.budgets.clone();
        world.budgets.exchange = self.config.exchange();
        world.alerting.limits = self.config.limits.clone();
        let topped_up = self.config.accounts.iter().filter(|account| account.auto_topup);
        world.alerting.topped_up = topped_up.map(|account| account.name.clone()).collect();
        world.alerting.exchange = self.config.exchange();
        world.alerting.host.clone_from(&owner.host);
        world.alerting.on_screen = matches!(kind, Kind::Screen | Kind::Demo);
        world.alerting.heedless = matches!(kind, Kind::OneShot | Kind::Probe | Kind::Act);
        world.alerting.silent = matches!(kind, Kind::OneShot | Kind::Probe);
        world.alerting.dispatch.salt = salt(&owner);
        world.alerting.dispatch.rules =
            self.config.channels.iter().map(|channel| channel.rule_in(&config::process_environment)).collect();
        world.use_zone(self.config.timezone.clone());
        let fixed = Fixed {
            demo: kind == Kind::Demo,
            zone: self.config.timezone.clone(),
            currency: self.config.currency,
            exchange: self.config.exchange(),
            notices: self.notices.clone(),
            home: config::home(),
            config_path: self.places.config_file.display().to_string(),
            keys: self.keys()?,
            sentences: text::sentences(self.language),
            mouse: self.config.mouse,
        };
        let mut view = View::new(fixed, self.offered(kind));
        let kept = (kind == Kind::Screen).then(|| self.places.state_dir.join(preferences::FILE));
        if let Some(file) = &kept {
            preferences::load(file).apply(&mut view);
        }
        let (inbox, outbox) = Inbox::new();
        let keeper = Keeper::start(self.places.state_dir.clone(), owner, outbox.clone(), !world.one_shot)
            .map_err(Stop::failed)?;
        keeper.use_zone(self.config.timezone.clone());
        if kind == Kind::Watch {
            keeper.watch();
        }
        let known_hosts = self.places.state_dir.join(streams::KNOWN_HOSTS);
        let streams = Streams::new(known_hosts, outbox.clone()).by(self.ssh.clone());
        let copies = Copies::new(&streams, outbox.clone());
        let jobs = Jobs::new(&streams, outbox.clone());
        let accounts = Accounts::reached_by(Arc::new(OwnSsh::new(&self.places.state_dir, &streams)));
        self.config.accounts.iter().for_each(|account| accounts.add(account.clone()));
        let performer = Performer {
            accounts,
            keeper,
            streams,
            channels: self.channels(kind, outbox.clone()),
            copies,
            jobs,
            outbox,
            read_only: self.read_only,
            preferences: kept,
        };
        Ok(Program { state: State { world, view, leaving: false }, performer, inbox })
    }

    /// The channels of the config.
    pub fn channels(&self, kind: Kind, outbox: Outbox) -> Channels {
        Channels::new(&self.config, self.language, kind == Kind::Screen, outbox)
    }

    /// The bindings with the wishes of the config.
    fn keys(&self) -> Result<Bindings, Stop> {
        let wishes: Vec<(&str, &[String])> =
            self.config.keys.iter().map(|wish| (wish.action.as_str(), wish.keys.as_slice())).collect();
        Bindings::with(&wishes).map_err(|mistakes| {
            let mistake = |(at, mistake): &(usize, KeyMistake)| {
                let wish = &self.config.keys[*at];
                Mistake {
                    line: wish.line,
                    column: wish.column,
                    key: format!("keys.{}", wish.action),
                    message: mistake.to_string(),
                }
            };
            let file = self.places.config_file.clone();
            Stop::usage(ConfigError::Mistakes { file, mistakes: mistakes.iter().map(mistake).collect() }.to_string())
        })
    }

    /// How this terminal is written to.
    pub fn look(&self) -> Look {
        Look::of_environment(self.language, &config::process_environment)
    }

    fn offered(&self, kind: Kind) -> Vec<OfferedAccount> {
        if kind != Kind::Screen || self.config.path.is_some() {
            return Vec::new();
        }
        config::keys_in_environment(&config::process_environment)
            .into_iter()
            .filter_map(|account| match account.key {
                KeySource::Env(variable) => Some((account.provider.title.to_owned(), variable)),
                KeySource::Command(_) | KeySource::File(_) | KeySource::NotNeeded => None,
            })
            .zip(1..=9)
            .map(|((provider, variable), number)| OfferedAccount { number, provider, variable })
            .collect()
    }
}

/// A runtime of two threads: the program waits much and computes little.
pub fn runtime() -> Result<tokio::runtime::Runtime, Stop> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(Stop::failed)
}

/// Ends a runtime without waiting for what hangs.
pub fn end(runtime: tokio::runtime::Runtime) {
    runtime.shutdown_timeout(std::time::Duration::from_millis(200));
}

/// So many lines of the log may wait for a slow disk; what comes beyond them is dropped. All the room for them is
/// taken at the start.
const LOG_LINES: usize = 4096;

/// What is logged unless `RENTOP_LOG` says otherwise; of all else warnings.
const LOGGED: [(&str, LevelFilter); 2] = [("rentop", LevelFilter::INFO), ("providers", LevelFilter::INFO)];

/// Logs go to a file in the state folder, a new one each day; never to the terminal. Keep the guard: with
/// it the last lines are lost.
pub fn log(state_dir: &Path) -> Option<tracing_appender::non_blocking::WorkerGuard> {
    let folder = state_dir.join("logs");
    std::fs::create_dir_all(&folder).ok()?;
    let files = tracing_appender::rolling::Builder::new()
        .rotation(tracing_appender::rolling::Rotation::DAILY)
        .filename_prefix("rentop")
        .filename_suffix("log")
        .max_log_files(7)
        .build(folder)
        .ok()?;
    let (writer, guard) =
        tracing_appender::non_blocking::NonBlockingBuilder::default().buffered_lines_limit(LOG_LINES).finish(files);
    // Levels by target and nothing more: a filter that knows spans as well would bring a regex engine along.
    let wished = std::env::var("RENTOP_LOG").ok().and_then(|wished| wished.parse::<Targets>().ok());
    let filter = wished.unwrap_or_else(|| LOGGED.iter().copied().collect::<Targets>().with_default(LevelFilter::WARN));
    let layer = tracing_subscriber::fmt::layer().with_writer(writer).with_ansi(false).with_filter(filter);
    let installed = tracing_subscriber::registry().with(layer).try_init();
    // A second subscriber in one process is refused, and the first goes on.
    installed.ok().map(|()| guard)
}

/// What tells this process's messages from those of another one.
fn salt(owner: &Owner) -> u16 {
    let host = owner.host.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    (host.wrapping_add(owner.pid) & 0xffff) as u16
}

pub(super) fn host() -> String {
    providers::text::clean(&gethostname::gethostname().to_string_lossy())
}

fn user() -> String {
    let name = std::env::var("USER").or_else(|_| std::env::var("USERNAME")).unwrap_or_default();
    Some(providers::text::clean(&name)).filter(|name| !name.is_empty()).unwrap_or_else(|| "somebody".to_owned())
}
