//! The user's config file, checked, and what belongs to it: key sources, places on disk, the language.
//!
//! `file` knows the document and its places, `check` turns it into [`Config`], `idle`, `machine`,
//! `budget`, `alerts`, `channel`, `checkpoint`, `lease` and `guard` have a kind of section each, `write` changes a budget in the file. Nothing here polls, draws or keeps a key: sources are read when they are asked.

mod alerts;
mod budget;
mod channel;
mod check;
mod checkpoint;
mod file;
mod guard;
mod idle;
mod keys;
mod language;
mod lease;
mod machine;
pub mod offers;
mod places;
#[cfg(test)]
mod tests;
mod write;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use providers::model::AccountName;
use providers::money::Currency;
use providers::provider::{Access, Entry};
use providers::ssh::Machine;
use secrecy::SecretString;

use crate::rules::alerts::Limits;
use crate::rules::budgets::{Budget, Unit};
use crate::rules::checkpoint::RecipeRule;
use crate::rules::guard::Guard;
use crate::rules::lease::Commands;
use crate::rules::settings::Rules;
use crate::rules::spend::{Exchange, Fx};
use crate::rules::streams::Consent;

pub use channel::{ChannelConfig, ChannelKind, SecretSource};
pub use checkpoint::machine_path;
pub use file::Mistake;
pub use keys::{KeyError, KeyErrorKind, KeySource};
pub use language::{Language, UnknownLanguage};
pub use places::{PlaceError, Places, PlatformFolders, home, open_private};
pub use write::save_budget;

/// A config file with every key, its default and a sentence.
pub const EXAMPLE: &str = include_str!("../../config.example.toml");

/// No config is larger; what is, is some other file.
const FILE_LIMIT_BYTES: u64 = 1024 * 1024;

/// Looks an environment variable up, so that tests bring their own environment.
pub type Environment = dyn Fn(&str) -> Option<OsString> + Send + Sync;

/// The environment of this process.
pub fn process_environment(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// A variable that holds something: an empty one counts as not set.
fn set(environment: &Environment, name: &str) -> Option<OsString> {
    environment(name).filter(|value| !value.is_empty())
}

/// A path for people: cleaned, since a file name may hold anything.
fn shown(path: &Path) -> String {
    providers::text::clean(&path.to_string_lossy())
}

/// The checked configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The file it was read from; `None` when there is none.
    pub path: Option<PathBuf>,
    pub timezone: TimeZone,
    /// The zone's IANA name; `local` when the system does not tell it.
    pub timezone_name: String,
    /// Shown first.
    pub currency: Currency,
    /// What is mine, what is protected, what belongs to which project.
    pub rules: Rules,
    /// Rates of exchange by currency, never of USD itself.
    pub fx: BTreeMap<Currency, Fx>,
    /// Other keys for some actions, in the order of the file; not checked here.
    pub keys: Vec<KeyWish>,
    /// The mouse is listened to.
    pub mouse: bool,
    /// In the order of the file.
    pub accounts: Vec<AccountConfig>,
    /// In the order of the file.
    pub budgets: Vec<Budget>,
    /// From when on something is worth an alert.
    pub limits: Limits,
    /// Where alerts are told beyond the screen, in the order of the file.
    pub channels: Vec<ChannelConfig>,
    /// What is brought to safety, in the order of the file: the first that fits counts.
    pub recipes: Vec<RecipeRule>,
    /// How timers on instances are armed.
    pub lease: Commands,
    /// What is proposed or done by itself, in the order of the file.
    pub guards: Vec<Guard>,
    /// What the user should know although nothing is wrong.
    pub notices: Vec<Notice>,
}

/// Other keys for an action, as somebody wrote them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyWish {
    pub action: String,
    pub keys: Vec<String>,
    /// Where it stands in the file, both counted from 1.
    pub line: usize,
    pub column: usize,
}

/// One account of the config.
#[derive(Clone)]
pub struct AccountConfig {
    pub provider: &'static Entry,
    pub name: AccountName,
    pub key: KeySource,
    /// Replaces scheme, host and port of every URL of the provider; checked.
    pub base_url: Option<String>,
    /// Nothing that changes anything is ever sent for it.
    pub read_only: bool,
    /// Corrections of the provider's billing facts; checked.
    pub facts: BTreeMap<String, String>,
    /// Whether its machines may be looked into over `ssh`; `Unasked` leaves it to what was said, or is asked.
    pub streams: Consent,
    /// Machines that no API lists; none but for the provider `ssh`.
    pub machines: Vec<Machine>,
    /// Money comes by itself before it ends: that it ends is a note, and no alert.
    pub auto_topup: bool,
}

impl AccountConfig {
    /// What the provider's adapter needs, with the key that the source gave.
    pub fn access(&self, key: SecretString) -> Access {
        Access {
            key,
            base_url: self.base_url.clone(),
            facts: self.facts.clone(),
            machines: self.machines.clone(),
            ..Access::new(self.provider.name, self.name.as_str(), "")
        }
    }
}

/// By hand, as a registry entry has no equality of its own: its name is unique.
impl PartialEq for AccountConfig {
    fn eq(&self, other: &Self) -> bool {
        let AccountConfig { provider, name, key, base_url, read_only, facts, streams, machines, auto_topup } = self;
        provider.name == other.provider.name
            && *name == other.name
            && *key == other.key
            && *base_url == other.base_url
            && *read_only == other.read_only
            && *facts == other.facts
            && *streams == other.streams
            && *machines == other.machines
            && *auto_topup == other.auto_topup
    }
}

impl fmt::Debug for AccountConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AccountConfig { provider, name, key, base_url, read_only, facts, streams, machines, auto_topup } = self;
        f.debug_struct("AccountConfig")
            .field("provider", &provider.name)
            .field("name", name)
            .field("key", key)
            .field("base_url", base_url)
            .field("read_only", read_only)
            .field("facts", facts)
            .field("streams", streams)
            .field("machines", machines)
            .field("auto_topup", auto_topup)
            .finish()
    }
}

/// Something the user should know. Not an error: the config is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The config file holds a secret and others can read it.
    ConfigFileOpen { path: PathBuf, mode: u32 },
    /// The state folder was there before, and others can look into it.
    StateFolderOpen { path: PathBuf, mode: u32 },
    /// A limit is in a currency that nothing else in the config knows: what is spent in others does not count for it.
    LoneCurrency { path: PathBuf, limit: String, currency: Currency },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::ConfigFileOpen { path, mode } => {
                let path = shown(path);
                write!(f, "{path}: mode {mode:04o} lets others read the addresses in it; run: chmod 600 {path}")
            }
            Notice::StateFolderOpen { path, mode } => {
                let path = shown(path);
                write!(f, "{path}: mode {mode:04o} lets others look into the state folder; run: chmod 700 {path}")
            }
            Notice::LoneCurrency { path, limit, currency } => {
                let path = shown(path);
                write!(
                    f,
                    "{path}: {limit} is in {currency}, which neither `currency` nor [fx] names; a typing mistake? add \
                     [fx] to join it"
                )
            }
        }
    }
}

/// Why there is no config.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{}: {}", shown(.file), match .source.kind() {
        ErrorKind::PermissionDenied => "no permission to read this config file".to_owned(),
        _ => format!("this config file cannot be read: {}", providers::text::clean(&.source.to_string())),
    })]
    Unreadable { file: PathBuf, source: io::Error },
    #[error("{}: this is a folder, not a config file", shown(.file))]
    Folder { file: PathBuf },
    #[error("{}: larger than {} KiB, so it is no config file", shown(.file), FILE_LIMIT_BYTES / 1024)]
    TooLarge { file: PathBuf },
    /// At least one, in the order of the file; printed one a line.
    #[error("{}", lines(.file, .mistakes))]
    Mistakes { file: PathBuf, mistakes: Vec<Mistake> },
}

fn lines(file: &Path, mistakes: &[Mistake]) -> String {
    let file = shown(file);
    mistakes.iter().map(|mistake| format!("{file}:{mistake}")).collect::<Vec<_>>().join("\n")
}

fn zone_name(zone: &TimeZone) -> String {
    zone.iana_name().unwrap_or("local").to_owned()
}

impl Default for Config {
    /// What holds without a config file: the system's time zone, no accounts, everything is mine.
    fn default() -> Self {
        // A system that sets no zone counts in UTC.
        let timezone = TimeZone::try_system().unwrap_or(TimeZone::UTC);
        Config {
            path: None,
            timezone_name: zone_name(&timezone),
            timezone,
            currency: Currency::USD,
            rules: Rules::default(),
            fx: BTreeMap::new(),
            keys: Vec::new(),
            mouse: true,
            accounts: Vec::new(),
            budgets: Vec::new(),
            limits: Limits::default(),
            channels: Vec::new(),
            recipes: Vec::new(),
            lease: Commands::default(),
            guards: Vec::new(),
            notices: Vec::new(),
        }
    }
}

impl Config {
    /// How sums of several currencies are joined.
    pub fn exchange(&self) -> Exchange {
        Exchange { into: self.currency, rates: self.fx.clone() }
    }

    /// The limits that are in a currency of their own. An account may charge in it: that is for the fleet to tell.
    fn lone_currencies(&self, file: &Path) -> Vec<Notice> {
        let exchange = self.exchange();
        let notice = |limit: String, currency: Currency| {
            let is_lone = currency != Currency::USD && !exchange.knows(currency);
            is_lone.then(|| Notice::LoneCurrency { path: file.to_owned(), limit, currency })
        };
        let budgets = self.budgets.iter().filter_map(|budget| match budget.limit.unit {
            Unit::Money(currency) => notice(format!("the limit of budget `{}`", budget.name), currency),
            Unit::GpuHours => None,
        });
        let burn = self.limits.burn.and_then(|burn| notice("`burn` in [alerts]".to_owned(), burn.currency));
        budgets.chain(burn).collect()
    }

    /// Reads a config file. One that is not there is none: the defaults hold, and `path` is `None`.
    pub fn load(file: &Path) -> Result<Config, ConfigError> {
        let unreadable = |source| ConfigError::Unreadable { file: file.to_owned(), source };
        let mut opened = match std::fs::File::open(file) {
            Ok(opened) => opened,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Config::default()),
            Err(_) if file.is_dir() => return Err(ConfigError::Folder { file: file.to_owned() }),
            Err(error) => return Err(unreadable(error)),
        };
        let metadata = opened.metadata().map_err(unreadable)?;
        if metadata.is_dir() {
            return Err(ConfigError::Folder { file: file.to_owned() });
        }
        let mut bytes = Vec::new();
        (&mut opened).take(FILE_LIMIT_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > FILE_LIMIT_BYTES {
            return Err(ConfigError::TooLarge { file: file.to_owned() });
        }
        let text = std::str::from_utf8(&bytes).map_err(|error| {
            let (line, column) = file::place(&bytes, error.valid_up_to());
            let message = "this is not UTF-8 text".to_owned();
            ConfigError::Mistakes {
                file: file.to_owned(),
                mistakes: vec![Mistake { line, column, key: String::new(), message }],
            }
        })?;
        let checked = Config::check(text, file, providers::PROVIDERS)?;
        let mut config = Config { path: Some(file.to_owned()), ..checked.config };
        config.notices.extend(config.lone_currencies(file));
        let mode = places::mode_bits(&metadata).filter(|mode| mode & 0o044 != 0);
        if let Some(mode) = mode.filter(|_| checked.holds_secrets) {
            config.notices.push(Notice::ConfigFileOpen { path: file.to_owned(), mode });
        }
        Ok(config)
    }

    /// Reads a config text as if it stood in `file`, which is only named.
    pub fn parse(text: &str, file: &Path) -> Result<Config, ConfigError> {
        Ok(Config::check(text, file, providers::PROVIDERS)?.config)
    }

    fn check(text: &str, file: &Path, registry: check::Registry) -> Result<check::Checked, ConfigError> {
        check::check(text, file.parent().unwrap_or(Path::new("")), registry)
            .map_err(|mistakes| ConfigError::Mistakes { file: file.to_owned(), mistakes })
    }
}

/// The accounts to offer when there is no config: one a provider, by the first of its usual environment
/// variables that holds something. Named like the provider.
pub fn keys_in_environment(environment: &Environment) -> Vec<AccountConfig> {
    offered(environment, providers::PROVIDERS)
}

fn offered(environment: &Environment, registry: check::Registry) -> Vec<AccountConfig> {
    let holds = |variable: &str| {
        set(environment, variable).is_some_and(|value| !value.as_encoded_bytes().trim_ascii().is_empty())
    };
    let account = |entry: &&'static Entry| {
        let variable = entry.key_env.iter().find(|variable| holds(variable))?;
        Some(AccountConfig {
            provider: entry,
            name: AccountName::from(entry.name),
            key: KeySource::Env((*variable).to_owned()),
            base_url: None,
            read_only: false,
            facts: BTreeMap::new(),
            streams: Consent::default(),
            machines: Vec::new(),
            auto_topup: false,
        })
    };
    registry.iter().filter_map(account).collect()
}
