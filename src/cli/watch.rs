//! `rentop watch`: the collector without a screen. What a person should know it says on standard error, a line
//! each, and in the log.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use providers::model::AccountName;

use super::setup::{self, Kind, Program, Setup};
use super::{Common, Exit, Stop, warn};
use crate::app::state::State;
use crate::config::Language;
use crate::rules::alerts::{Alert, Alerts, Stage, Topic};
use crate::rules::memory::{Collector, LedgerNotice};
use crate::runtime::clock;
use crate::runtime::ending::Ending;
use crate::runtime::errand::Errand;
use crate::ui::text::alert_line;

pub fn run(common: &Common) -> Result<Exit, Stop> {
    let setup = Setup::read(common)?;
    setup.need_accounts()?;
    let _log = setup::log(&setup.places.state_dir);
    let runtime = setup::runtime()?;
    let ended = runtime.block_on(async {
        // Before anything is claimed, so that no end goes by unheard.
        let mut ending = Ending::listen().map_err(Stop::failed)?;
        let Program { state, performer, inbox } = setup.program(Kind::Watch)?;
        let mut teller = Teller::new(&setup);
        teller.begin(&setup);
        let mut errand = Errand::new(state, performer, inbox);
        errand.start();
        let ended = errand.run_until_ended(&mut ending, |state| teller.tell(state)).await;
        errand.end();
        teller.say("ended");
        ended.map_err(|error| Stop::failed(format!("{error:#}")))
    });
    setup::end(runtime);
    ended.map(|()| Exit::Done)
}

/// Says what is new.
struct Teller {
    zone: TimeZone,
    language: Language,
    collector: Option<Collector>,
    /// What is wrong with an account.
    troubles: BTreeMap<AccountName, Vec<String>>,
    /// What was told about the ledger and still holds.
    notices: Vec<LedgerNotice>,
    /// The open alerts, each by what names it, as they were told.
    alerts: BTreeMap<(Topic, Timestamp), Stage>,
    /// The channels that take nothing, each with why.
    failing: BTreeMap<String, String>,
    /// The channels that the config does not name and that something waits for, as they were told.
    unnamed: BTreeSet<String>,
}

impl Teller {
    fn new(setup: &Setup) -> Self {
        Teller {
            zone: setup.config.timezone.clone(),
            language: setup.language,
            collector: None,
            troubles: BTreeMap::new(),
            notices: Vec::new(),
            alerts: BTreeMap::new(),
            failing: BTreeMap::new(),
            unnamed: BTreeSet::new(),
        }
    }

    fn begin(&self, setup: &Setup) {
        setup.notices.iter().for_each(|notice| self.say(notice));
        let accounts: Vec<String> =
            setup.config.accounts.iter().map(|account| format!("{}/{}", account.provider.name, account.name)).collect();
        let mode = if setup.read_only { ", read-only" } else { "" };
        let version = env!("CARGO_PKG_VERSION");
        let pid = std::process::id();
        self.say(format_args!("rentop {version} ({pid}) watches {}{mode}", accounts.join(", ")));
        let count = |number: usize, what: &str| match number {
            1 => format!("1 {what}"),
            number => format!("{number} {what}s"),
        };
        let budgets = count(setup.config.budgets.len(), "budget");
        let channels = count(setup.config.channels.len(), "channel");
        let guards = count(setup.config.guards.len(), "guard");
        self.say(format_args!("in force: {budgets}, {channels}, {guards}"));
    }

    fn tell(&mut self, state: &State) {
        let world = &state.world;
        if world.ledger_notices != self.notices {
            for notice in world.ledger_notices.iter().filter(|notice| !self.notices.contains(notice)) {
                self.say(self.language.ledger_notice(notice));
            }
            if self.notices.iter().any(|notice| !world.ledger_notices.contains(notice)) {
                self.say("the ledger is written again");
            }
            self.notices.clone_from(&world.ledger_notices);
        }
        self.tell_collector(world.collector.as_ref());
        self.tell_alerts(&world.alerting.alerts);
        let failing = world.alerting.dispatch.failing();
        self.tell_channels(failing.map(|(rule, why)| (rule.name.as_str(), why)));
        self.tell_unnamed(world.alerting.dispatch.unnamed());
        for account in &world.fleet.accounts {
            let trouble = account.trouble.iter().map(|trouble| trouble.value.line());
            let bill = world.spending.billing.get(&account.name).and_then(|billing| billing.trouble.as_ref());
            let bill = bill.map(|trouble| format!("what was billed is not known: {trouble}"));
            let problems = account.problems.iter().map(ToString::to_string);
            let now: Vec<String> = trouble.chain(problems).chain(bill).collect();
            let before = self.troubles.insert(account.name.clone(), now.clone()).unwrap_or_default();
            let name = format_args!("{}/{}", account.provider, account.name);
            for line in now.iter().filter(|line| !before.contains(line)) {
                self.say(format_args!("{name}: {line}"));
            }
            if now.is_empty() && !before.is_empty() {
                self.say(format_args!("{name}: is well again"));
            }
        }
    }

    fn tell_channels<'a>(&mut self, failing: impl Iterator<Item = (&'a str, &'a str)>) {
        let now: BTreeMap<String, String> = failing.map(|(name, why)| (name.to_owned(), why.to_owned())).collect();
        for (name, why) in now.iter().filter(|(name, why)| self.failing.get(*name) != Some(why)) {
            self.say(format_args!("channel {name}: takes nothing: {why}"));
        }
        for name in self.failing.keys().filter(|name| !now.contains_key(*name)) {
            self.say(format_args!("channel {name}: is well again"));
        }
        self.failing = now;
    }

    fn tell_unnamed<'a>(&mut self, unnamed: impl Iterator<Item = (&'a str, usize)>) {
        for (name, count) in unnamed {
            if self.unnamed.insert(name.to_owned()) {
                let messages = if count == 1 { "1 message waits" } else { &format!("{count} messages wait") };
                self.say(format_args!(
                    "channel {name}: is not in the config, and {messages} for it: dropped after a day"
                ));
            }
        }
    }

    fn tell_collector(&mut self, collector: Option<&Collector>) {
        // Between two claims nobody is known to collect: no news.
        let Some(collector) = collector else { return };
        match (collector, &self.collector) {
            (Collector::Us, None) => self.say("collects"),
            (Collector::Us, Some(Collector::Other { owner, .. })) => {
                self.say(format_args!("takes over from {} ({})", owner.host, owner.pid));
            }
            (Collector::Other { owner, .. }, before) => {
                let known = matches!(before, Some(Collector::Other { owner: known, .. }) if known == owner);
                if !known {
                    self.say(format_args!("looks on: {} ({}) collects", owner.host, owner.pid));
                }
            }
            (Collector::Us, Some(Collector::Us)) => {}
        }
        self.collector = Some(collector.clone());
    }

    /// What fires, what somebody has seen or put off, and what ended; not what was only noted.
    fn tell_alerts(&mut self, alerts: &Alerts) {
        let key = |alert: &Alert| (alert.topic.clone(), alert.since);
        let now: BTreeMap<_, _> =
            alerts.open().filter(|alert| alert.fired_at.is_some()).map(|alert| (key(alert), alert)).collect();
        for (key, alert) in &now {
            let word = match alert.stage {
                _ if self.alerts.get(key) == Some(&alert.stage) => continue,
                // Nobody has seen it: a higher line took over.
                Stage::Acknowledged if alerts.is_outdone(alert) => continue,
                Stage::Acknowledged => "seen",
                Stage::Snoozed { .. } => "put off",
                _ => "alert",
            };
            self.say_alert(word, alert);
        }
        // What is no question any more is not over.
        let is_over = |alert: &&Alert| alert.moot.is_none() && self.alerts.contains_key(&key(alert));
        for alert in alerts.ended().iter().filter(is_over) {
            self.say_alert("over", alert);
        }
        self.alerts = now.into_iter().map(|(key, alert)| (key, alert.stage)).collect();
    }

    fn say_alert(&self, word: &str, alert: &Alert) {
        self.say(format_args!("{word}: {}", alert_line(&alert.matter, self.language, &self.zone)));
    }

    fn say(&self, line: impl Display) {
        tracing::info!("{line}");
        let now = clock::now().to_zoned_datetime(self.zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string();
        warn(format_args!("{now} {line}"));
    }
}
