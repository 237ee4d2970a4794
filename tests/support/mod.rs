//! What the end-to-end tests share: simulated providers, a config that points at them, and the real
//! binary, run to its end or in a pseudo-terminal.

// Each test file uses its own part of this.
#![allow(dead_code)]

#[cfg(unix)]
pub mod daemon;
#[cfg(unix)]
pub mod machine;
pub mod stage;
pub mod story;
#[cfg(unix)]
pub mod terminal;

use std::path::PathBuf;
use std::process::{Command, Output};

use jiff::Timestamp;
use providers::sim::{Shared, SimClock, Simulator, World};
use tempfile::TempDir;

pub const KEY: &str = "TESTKEY-0000000000000000-aaaa";

/// One provider's simulator with an account in the config.
pub struct Account {
    pub provider: &'static str,
    pub name: &'static str,
    pub world: Shared,
    /// More lines of its section.
    pub extra: &'static str,
}

/// A scratch home with simulators behind it.
pub struct Lab {
    pub home: TempDir,
    pub config: String,
    /// Provider and name of each account.
    pub accounts: Vec<[&'static str; 2]>,
    runtime: tokio::runtime::Runtime,
    simulators: Vec<Simulator>,
}

/// A world with a clock that runs at `speed`, its transitions short.
pub fn world(speed: f64) -> World {
    let mut world = World::new(SimClock::running(Timestamp::now(), speed), KEY);
    world.transition = jiff::SignedDuration::from_millis(600);
    world
}

impl Lab {
    /// Serves the accounts and writes a config for them.
    pub fn new(accounts: Vec<Account>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let home = tempfile::tempdir().unwrap();
        let config = "timezone = \"UTC\"\n".to_owned();
        let mut lab = Lab { home, config, accounts: Vec::new(), runtime, simulators: Vec::new() };
        for account in accounts {
            let routes = match account.provider {
                "runpod" => providers::runpod::simulator::routes(account.world.clone()),
                "vast" => providers::vast::simulator::routes(account.world.clone()),
                "lambda" => providers::lambda::simulator::routes(account.world.clone()),
                other => panic!("no simulator of {other}"),
            };
            let simulator = lab.runtime.block_on(Simulator::serve(routes, account.world)).unwrap();
            lab.config.push_str(&format!(
                "[[account]]\nprovider = \"{}\"\nname = \"{}\"\nkey_env = \"LAB_KEY\"\nbase_url = \"{}\"\n{}\n",
                account.provider,
                account.name,
                simulator.url(),
                account.extra,
            ));
            lab.accounts.push([account.provider, account.name]);
            lab.simulators.push(simulator);
        }
        lab.write_config();
        lab
    }

    /// Where the simulator of the account at this place is served.
    pub fn url(&self, account: usize) -> String {
        self.simulators[account].url()
    }

    pub fn write_config(&self) {
        std::fs::write(self.config_file(), &self.config).unwrap();
    }

    pub fn config_file(&self) -> PathBuf {
        self.home.path().join("config.toml")
    }

    pub fn state_dir(&self) -> PathBuf {
        self.home.path().join("state")
    }

    /// The environment of every run: nothing of the person who runs the tests.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let home = self.home.path().display().to_string();
        vec![
            ("HOME", home.clone()),
            ("XDG_CONFIG_HOME", format!("{home}/.config")),
            ("XDG_STATE_HOME", format!("{home}/.state")),
            ("RENTOP_CONFIG", self.config_file().display().to_string()),
            ("RENTOP_STATE_DIR", self.state_dir().display().to_string()),
            ("RENTOP_LANG", "en".to_owned()),
            ("LAB_KEY", KEY.to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            ("TERM", "xterm-256color".to_owned()),
            ("TZ", "UTC".to_owned()),
            // Programs that a test puts into its home go before those of the system.
            ("PATH", format!("{home}/bin:{}", std::env::var("PATH").unwrap_or_default())),
            ("USER", "tester".to_owned()),
        ]
    }

    /// The binary with these arguments, ready to be started.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(args).env_clear().envs(self.environment()).stdin(std::process::Stdio::null());
        command
    }

    /// Runs the binary to its end.
    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().unwrap())
    }
}

pub fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_rentop")
}

/// How a run ended.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn of(output: Output) -> Self {
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    pub fn ends_with(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}\n{}", self.stdout, self.stderr))
    }
}
