//! `rentop`: the screen.

use std::io::IsTerminal;

use super::setup::{self, Kind, Program, Setup};
use super::{Common, Exit, Stop, tell};
use crate::app::event::WorldEvent;
use crate::config::{self, AccountConfig, KeySource, Places, offers};
use crate::runtime::accounts::Accounts;
use crate::runtime::clock;
use crate::runtime::errand::Errand;
use crate::runtime::screen::{self, Ended, Given};
use crate::ui::{self, plain};

pub fn run(common: &Common) -> Result<Exit, Stop> {
    need_terminal()?;
    let setup = Setup::read(common)?;
    show(&setup, Kind::Screen, &|accounts, at| add(&setup.places, accounts, at))
}

/// The screen needs a terminal at both ends.
pub fn need_terminal() -> Result<(), Stop> {
    if std::io::stdout().is_terminal() && std::io::stdin().is_terminal() {
        return Ok(());
    }
    Err(Stop::usage("the screen needs a terminal; `rentop ls` prints the same once"))
}

/// Runs the screen over a set-up.
pub fn show(
    setup: &Setup,
    kind: Kind,
    add: &dyn Fn(&Accounts, &str) -> Result<WorldEvent, String>,
) -> Result<Exit, Stop> {
    let _log = setup::log(&setup.places.state_dir);
    let mut look = setup.look();
    let runtime = setup::runtime()?;
    let shown = runtime.block_on(async {
        let Program { mut state, performer, mut inbox } = setup.program(kind)?;
        let accounts = performer.accounts.clone();
        let given = Given {
            look: &mut look,
            ask: ui::answers(&config::process_environment),
            mouse: ui::has_a_mouse(&config::process_environment),
            config: &setup.places.config_file,
            paint: &ui::draw,
            add: &|at| add(&accounts, at),
        };
        let ended = screen::run(&mut state, &performer, &mut inbox, given).await;
        let mut rest = Errand::new(state, performer, inbox);
        if ended.is_ok() {
            rest.hear_channels(Errand::LAST_WORDS).await;
        }
        let state = rest.end();
        let farewell = plain::farewell(&state, &look, clock::now()).filter(|_| kind != Kind::Demo);
        ended.map(|ended| (ended, farewell)).map_err(|error| Stop::failed(format!("{error:#}")))
    });
    setup::end(runtime);
    let (ended, farewell) = shown?;
    if let Some(line) = farewell {
        tell(line);
    }
    Ok(match ended {
        Ended::Left => Exit::Done,
        Ended::Signal => Exit::Failed,
    })
}

/// Adds an account that the environment offers, here and in a new config file.
fn add(places: &Places, accounts: &Accounts, variable: &str) -> Result<WorldEvent, String> {
    let offered: Vec<AccountConfig> = config::keys_in_environment(&config::process_environment);
    let of_variable = |account: &AccountConfig| matches!(&account.key, KeySource::Env(name) if name == variable);
    let account = offered.into_iter().find(of_variable).ok_or("it is no longer in the environment")?;
    offers::write(&places.config_file, &account).map_err(|error| error.to_string())?;
    let event = WorldEvent::Added {
        account: account.name.clone(),
        provider: account.provider.name.into(),
        read_only: account.read_only,
    };
    accounts.add(account);
    Ok(event)
}
