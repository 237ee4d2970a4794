//! The program's loop in the test's own hands, over the real ledger and HTTP: for what no command does, and for
//! what takes longer than a test may.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use providers::model::{Action, Identity};
use rentop::app::event::{Intent, WorldEvent};
use rentop::app::state::{Fixed, View, World};
use rentop::app::{self, Event, State};
use rentop::config::{AccountConfig, KeySource};
use rentop::rules::fleet::Account;
use rentop::rules::memory::Owner;
use rentop::rules::plan::plan;
use rentop::rules::saga::Authority;
use rentop::rules::settings::Rules;
use rentop::runtime::accounts::Accounts;
use rentop::runtime::channels::Channels;
use rentop::runtime::checkpoint::Copies;
use rentop::runtime::effects::Performer;
use rentop::runtime::jobs::Jobs;
use rentop::runtime::keeper::Keeper;
use rentop::runtime::streams::Streams;
use rentop::runtime::{Inbox, wait_until};

use super::support::KEY;
use super::support::stage::Stage;

/// The longest wait for something that must come.
const PATIENCE: Duration = Duration::from_secs(60);

/// Who may change nothing: enforced where effects are performed, unknown to the state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Locks {
    pub whole: bool,
    pub account: bool,
}

pub struct Drive {
    pub state: State,
    performer: Performer,
    inbox: Inbox,
    /// How far its clock is before the real one.
    ahead: SignedDuration,
}

impl Drive {
    /// Over the first account of a stage.
    pub fn over(stage: &Stage, locks: Locks) -> Self {
        let [provider, name] = stage.lab.accounts[0];
        let key_file = stage.lab.home.path().join("key");
        std::fs::write(&key_file, KEY).unwrap();
        std::fs::set_permissions(&key_file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let config = AccountConfig {
            provider: providers::find(provider).unwrap(),
            name: name.into(),
            key: KeySource::File(key_file),
            base_url: Some(stage.lab.url(0)),
            read_only: locks.account,
            facts: BTreeMap::new(),
            streams: Default::default(),
            machines: Vec::new(),
            auto_topup: false,
        };
        let host = gethostname::gethostname().to_string_lossy().into_owned();
        let owner = Owner { host, pid: std::process::id() };
        let (inbox, outbox) = Inbox::new();
        std::fs::create_dir_all(stage.lab.state_dir()).unwrap();
        let keeper = Keeper::start(stage.lab.state_dir(), owner, outbox.clone(), false).unwrap();
        let fixed = Fixed::default();
        let accounts = vec![Account::new(config.name.clone(), config.provider.name.into(), false)];
        let world = World::new(accounts, Rules::default(), false, "test".to_owned(), Timestamp::now());
        let state = State { world, view: View::new(fixed, Vec::new()), leaving: false };
        let streams = Streams::new(Default::default(), outbox.clone());
        let performer = Performer {
            accounts: Accounts::new([config]),
            keeper,
            copies: Copies::new(&streams, outbox.clone()),
            jobs: Jobs::new(&streams, outbox.clone()),
            streams,
            channels: Channels::new(
                &rentop::config::Config::default(),
                rentop::config::Language::English,
                false,
                outbox.clone(),
            ),
            outbox,
            read_only: locks.whole,
            preferences: None,
        };
        let mut drive = Drive { state, performer, inbox, ahead: SignedDuration::ZERO };
        let now = drive.now();
        let effects = app::update::start(&mut drive.state, now);
        effects.into_iter().for_each(|effect| drop(drive.performer.perform(effect)));
        drive
    }

    fn now(&self) -> Timestamp {
        Timestamp::now() + self.ahead
    }

    /// Time passes at once.
    pub fn later(&mut self, time: SignedDuration) {
        self.ahead += time;
    }

    pub fn take(&mut self, event: Event) {
        let now = self.now();
        let effects = app::take(&mut self.state, event, now);
        effects.into_iter().for_each(|effect| drop(self.performer.perform(effect)));
    }

    /// Goes on until something that must come is so; says what it waited for in vain.
    pub async fn until(&mut self, what: &str, mut done: impl FnMut(&State) -> bool) -> Result<(), String> {
        let went_on = async {
            while !done(&self.state) {
                let now = self.now();
                let event = tokio::select! {
                    Some(event) = self.inbox.next() => event,
                    () = wait_until(app::next_wake(&self.state, now), now) => Event::World(WorldEvent::Tick),
                };
                self.take(event);
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, went_on).await;
        in_time.map_err(|_| format!("waited in vain: {what}: {:#?}", self.state.world.operations))
    }

    /// Begins an action on a resource once it was listed, with the word that data may be lost.
    pub async fn begin(&mut self, action: Action, id: &str) -> Result<(), String> {
        let listed = |state: &State| -> Option<Identity> {
            let fleet = &state.world.fleet;
            fleet.shown().into_iter().map(|(identity, _)| identity).find(|identity| identity.id.as_str() == id).cloned()
        };
        self.until("it is listed", |state| listed(state).is_some()).await?;
        let identity = listed(&self.state).expect("it was waited for");
        let world = &self.state.world;
        let basis = world.basis(&[], self.now());
        let plan = Box::new(plan(basis, action, &[identity]));
        let begin = Intent::Begin { plan, authority: Authority::LoseData };
        self.take(Event::World(WorldEvent::Intent(begin)));
        Ok(())
    }

    /// Writes down what is to be written and gives the ledger back.
    pub fn end(self) {
        let collects = self.state.world.collects();
        self.performer.keeper.end(collects);
    }
}
