//! Stories through `app::update`: events at their times, the effects that come of them, and the screen. No task, no
//! sleep, no provider: polls are values.

use std::collections::BTreeMap;
use std::ffi::OsString;

use jiff::{SignedDuration, Timestamp};
use providers::error::{ErrorKind, ProviderError, RequestLine};
use providers::gpu::Gpus;
use providers::model::{
    Attachment, Component, DataKind, DataPlace, Effect as Deed, Fate, Identity, Instance, Market, Offer, Offers, Phase,
    Rates, Refusal, ResourceKind, StorageItem, StorageKind,
};
use providers::money::{Currency, Rate};
use providers::provider::{Found, Part, Poll, Reading};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::CellWidth;
use rentop::app::action::{Code, Key, Mouse, MouseKind};
use rentop::app::effect::Then;
use rentop::app::event::{ViewEvent, WorldEvent};
use rentop::app::message::Msg;
use rentop::app::state::{Fixed, Modal, Question, View, World};
use rentop::app::{self, Effect, Event, State};
use rentop::config::Language;
use rentop::rules::fleet::{Account, Known};
use rentop::rules::memory::{Collector, Memory, Owner};
use rentop::rules::saga::{Operation, Outcome, Permit, Step};
use rentop::rules::settings::Rules;
use rentop::ui::{self, Look, text};
use tui_input::Input;

/// `HH:MM:SS` of 2026-11-30, UTC.
pub fn at(clock: &str) -> Timestamp {
    format!("2026-11-30T{clock}Z").parse().unwrap()
}

pub fn identity(account: &str, id: &str) -> Identity {
    Identity { account: account.into(), kind: ResourceKind::Instance, id: id.into(), generation: 0 }
}

pub fn usd(hourly: &str) -> Rate {
    Rate::per_hour(hourly.parse().unwrap(), Currency::USD).unwrap()
}

pub fn disk() -> DataPlace {
    DataPlace { kind: DataKind::VolumeDisk, name: None, path: Some("/workspace".into()), size_gb: Some(100.into()) }
}

/// An instance at so many dollars an hour: a stop keeps its disk for 0.01, a release loses it.
pub fn instance(id: &str, phase: Phase, hourly: &str) -> Instance {
    let at_rest = matches!(phase, Phase::Stopped | Phase::Reclaimed);
    let offer = |fits: bool, deed: Deed| if fits { Offer::Yes(deed) } else { Offer::No(Refusal::WrongPhase) };
    let costs = |rate: &str, component| Rates::known().with(component, usd(rate));
    let stop = Deed { rates_after: costs("0.01", Component::Disk), kept: vec![disk()], ..Deed::default() };
    let start = Deed { rates_after: costs("1", Component::Compute), ..Deed::default() };
    Instance {
        id: id.into(),
        name: Some(id.to_owned()),
        phase,
        provider_phase: None,
        note: None,
        remarks: Vec::new(),
        market: Market::OnDemand,
        gpus: Some(Gpus::parse("RTX 4090", Some(1), None)),
        rates: costs(hourly, if at_rest { Component::Disk } else { Component::Compute }),
        created_at: Some(at("00:00:00")),
        started_at: (phase == Phase::Running).then(|| at("00:00:00")),
        stopped_at: None,
        granularity: providers::model::Granularity::Exact,
        repricing: None,
        ends_at: None,
        at_zero: Fate::Unknown,
        usage: None,
        ssh: None,
        region: None,
        labels: BTreeMap::new(),
        mounts: Vec::new(),
        offers: Offers {
            stop: offer(phase == Phase::Running, stop),
            start: offer(at_rest, start),
            restart: Offer::No(Refusal::NotOffered),
            release: offer(true, Deed { rates_after: Rates::known(), lost: vec![disk()], ..Deed::default() }),
        },
        page: None,
    }
}

pub fn running(id: &str, hourly: &str) -> Instance {
    instance(id, Phase::Running, hourly)
}

pub fn stopped(id: &str) -> Instance {
    instance(id, Phase::Stopped, "0.01")
}

/// The identity of a storage item.
pub fn item_identity(account: &str, id: &str) -> Identity {
    Identity { kind: ResourceKind::Storage, ..identity(account, id) }
}

/// A volume of 80 GB at a cent an hour that nothing uses; deleting it loses all that it holds.
pub fn volume(id: &str) -> StorageItem {
    let lost = vec![DataPlace { kind: DataKind::Contents, name: None, path: None, size_gb: Some(80.into()) }];
    StorageItem {
        id: id.into(),
        name: Some(id.to_owned()),
        kind: StorageKind::Volume,
        size_gib: Some(80.into()),
        attachment: Attachment::To(Vec::new()),
        region: None,
        rates: Rates::known().with(Component::Storage, usd("0.01")),
        created_at: Some("2026-09-30T00:00:00Z".parse().unwrap()),
        labels: BTreeMap::new(),
        at_zero: Fate::Unknown,
        delete: Offer::Yes(Deed { rates_after: Rates::known(), lost, ..Deed::default() }),
        page: None,
    }
}

pub fn other() -> Collector {
    Collector::Other { owner: Owner { host: "desk".to_owned(), pid: 4711 }, until: at("23:00:00") }
}

/// A program's life so far.
pub struct Story {
    pub state: State,
    pub now: Timestamp,
    pub effects: Vec<Effect>,
    pub language: Language,
}

impl Story {
    /// A screen over accounts at Vast.ai that has just learnt that it collects, and that the ledger is empty.
    pub fn over(accounts: &[&str], clock: &str) -> Self {
        let mut story = Story::opened(accounts, clock);
        story.world(WorldEvent::Collector(Collector::Us));
        story.remember(Memory::default());
        story
    }

    /// A screen that has not heard of its ledger yet.
    pub fn opened(accounts: &[&str], clock: &str) -> Self {
        let now = at(clock);
        let accounts = accounts.iter().map(|name| Account::new((*name).into(), "vast".into(), false)).collect();
        let fixed = Fixed {
            config_path: "~/.config/rentop/config.toml".to_owned(),
            sentences: text::sentences(Language::English),
            ..Fixed::default()
        };
        let mut world = World::new(accounts, Rules::default(), false, "ana@desk".to_owned(), now);
        // What its rows give rise to is another story.
        world.alerting.heedless = true;
        let mut state = State { world, view: View::new(fixed, Vec::new()), leaving: false };
        (state.view.width, state.view.height) = (100, 30);
        let effects = app::update::start(&mut state, now);
        assert_eq!(effects, [Effect::Claim, Effect::Recall]);
        Story { state, now, effects: Vec::new(), language: Language::English }
    }

    pub fn remember(&mut self, memory: Memory) {
        self.world(WorldEvent::Remembered { memory: Box::new(memory), notices: Vec::new() });
    }

    pub fn event(&mut self, event: Event) {
        self.effects.extend(app::update(&mut self.state, event, self.now));
    }

    pub fn world(&mut self, event: WorldEvent) {
        self.event(Event::World(event));
    }

    /// Time passes, and the program wakes whenever it wants to.
    pub fn until(&mut self, clock: &str) -> &mut Self {
        self.pass(at(clock))
    }

    pub fn pass(&mut self, until: Timestamp) -> &mut Self {
        assert!(until >= self.now, "time does not run backwards");
        while let Some(wake) = app::next_wake(&self.state, self.now).filter(|wake| *wake <= until) {
            self.now = wake.max(self.now + SignedDuration::from_millis(1));
            self.world(WorldEvent::Tick);
        }
        self.now = self.now.max(until);
        self
    }

    pub fn wait_ms(&mut self, milliseconds: i64) -> &mut Self {
        self.pass(self.now + SignedDuration::from_millis(milliseconds))
    }

    /// When the poll under way was asked; waits for one.
    pub fn asked(&mut self, account: &str) -> Timestamp {
        for _ in 0..1000 {
            if let Some(asked) = self.account(account).pacing.in_flight {
                return asked;
            }
            self.wait_ms(500);
        }
        panic!("{account} is never asked");
    }

    pub fn answer(&mut self, account: &str, poll: Poll) {
        let asked_at = self.asked(account);
        self.world(WorldEvent::Polled { account: account.into(), asked_at, poll: Box::new(poll) });
    }

    /// The poll under way, or the next one, lists these and nothing else.
    pub fn lists(&mut self, account: &str, rows: Vec<Instance>) -> &mut Self {
        self.answer(account, listed(rows));
        self
    }

    pub fn fails(&mut self, account: &str, kind: ErrorKind) -> &mut Self {
        let error = ProviderError {
            provider: "vast".into(),
            account: account.into(),
            request: RequestLine("GET /api/v1/instances".to_owned()),
            kind,
        };
        self.answer(account, Poll { instances: Part::Failed(error), ..listed(vec![]) });
        self
    }

    /// The same with all of its storage.
    pub fn lists_with(&mut self, account: &str, rows: Vec<Instance>, items: Vec<StorageItem>) -> &mut Self {
        self.answer(account, Poll { storage: Part::complete(items), ..listed(rows) });
        self
    }

    /// The last question by id, of an action or of the fleet, is answered so.
    pub fn found(&mut self, found: Found) {
        let asked = self.effects.iter().rev().find_map(|effect| match effect {
            Effect::Lookup { op, identity } => Some((*op, identity.clone())),
            _ => None,
        });
        let (op, identity) = asked.expect("nothing was asked by id");
        self.world(WorldEvent::LookedUp { op, identity, found: Ok(found) });
    }

    /// Presses keys, a third of a second apart.
    pub fn press(&mut self, keys: &str) -> &mut Self {
        for c in keys.chars() {
            let key = if c == '\n' { Key::plain(Code::Enter) } else { Key::char(c) };
            self.key(key);
        }
        self
    }

    pub fn key(&mut self, key: Key) {
        self.wait_ms(800);
        self.event(Event::View(ViewEvent::Key(key)));
    }

    pub fn code(&mut self, code: Code) -> &mut Self {
        self.key(Key::plain(code));
        self
    }

    /// A key that comes right after what was before it.
    pub fn quick(&mut self, key: Key) -> &mut Self {
        self.event(Event::View(ViewEvent::Key(key)));
        self
    }

    /// A key that is held down for so many repeats: the first comes after `first_ms`, the others every 30 ms.
    /// `told` says that the terminal tells a repeat from a press.
    pub fn hold(&mut self, key: Key, first_ms: i64, repeats: usize, told: bool) -> &mut Self {
        self.quick(key);
        for repeat in 0..repeats {
            self.wait_ms(if repeat == 0 { first_ms } else { 30 });
            self.quick(Key { repeat: told, ..key });
        }
        self
    }

    pub fn mouse(&mut self, kind: MouseKind, column: u16, row: u16) -> &mut Self {
        self.event(Event::View(ViewEvent::Mouse(Mouse { kind, column, row })));
        self
    }

    pub fn click(&mut self, column: u16, row: u16) -> &mut Self {
        self.mouse(MouseKind::Press, column, row).mouse(MouseKind::Release, column, row)
    }

    pub fn resize(&mut self, width: u16, height: u16) -> &mut Self {
        self.event(Event::View(ViewEvent::Resize { width, height }));
        self
    }

    /// The line of the screen that holds this text.
    pub fn line_of(&self, text: &str) -> u16 {
        let screen = self.screen();
        let at = screen.lines().position(|line| line.contains(text));
        at.unwrap_or_else(|| panic!("`{text}` is not on the screen:\n{screen}")) as u16
    }

    /// The plan that is asked about; `None` when none is.
    pub fn question(&self) -> Option<&Question> {
        match self.state.view.modals.last() {
            Some(Modal::Plan(question)) => Some(question),
            _ => None,
        }
    }

    /// What was typed into the field of the question; `None` while there is no field.
    pub fn field(&self) -> Option<&str> {
        self.question()?.field.as_ref().map(Input::value)
    }

    /// The texts of the marks, in the order of identities.
    pub fn marked(&self) -> Vec<&str> {
        self.state.view.list().marks.iter().map(|identity| identity.id.as_str()).collect()
    }

    /// Resources with an action under way.
    pub fn busy(&self) -> Vec<String> {
        self.state.world.under_way().map(|operation| operation.target.identity.id.to_string()).collect()
    }

    /// What the program last said.
    pub fn said(&self) -> Option<&Msg> {
        self.state.view.message.as_ref().map(|shown| &shown.message)
    }

    pub fn paste(&mut self, text: &str) {
        self.event(Event::View(ViewEvent::Paste(text.to_owned())));
    }

    /// Puts the cursor on a row.
    pub fn on(&mut self, id: &str) -> &mut Self {
        self.code(Code::Home);
        while self.selected() != Some(id) {
            let before = self.state.view.list().cursor.clone();
            self.code(Code::Down);
            assert_ne!(before, self.state.view.list().cursor, "there is no row {id}");
        }
        self
    }

    pub fn selected(&self) -> Option<&str> {
        self.state.view.list().selected().map(|identity| identity.id.as_str())
    }

    pub fn account(&self, name: &str) -> &Account {
        self.state.world.fleet.account(&name.into()).unwrap()
    }

    pub fn row(&self, account: &str, id: &str) -> &Known<Instance> {
        &self.state.world.fleet.instances[&identity(account, id)]
    }

    pub fn burn(&self) -> (Rate, Rate) {
        let totals = &self.state.world.totals;
        (totals.burn.of(Currency::USD), totals.upper.of(Currency::USD))
    }

    /// The latest action.
    pub fn action(&self) -> &Operation {
        self.state.world.operations.values().next_back().expect("an action was begun")
    }

    pub fn step(&self) -> &'static str {
        self.action().step.word()
    }

    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.action().step {
            Step::Ended { outcome, .. } => Some(outcome),
            _ => None,
        }
    }

    /// What was asked for since the last call.
    pub fn effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// The same without what an idle program asks for all the time.
    pub fn deeds(&mut self) -> Vec<Effect> {
        let mut effects = self.effects();
        effects.retain(|effect| {
            let books = matches!(
                effect,
                Effect::SumUp { .. } | Effect::AskBilled { .. } | Effect::KeepBilled { .. } | Effect::AskSpend(_)
            );
            let usage = matches!(effect, Effect::KeepUsage(_) | Effect::RecallUsage { .. } | Effect::RecallAlerts);
            let usual = matches!(effect, Effect::Poll { .. } | Effect::Keep(_) | Effect::Claim);
            let alerts = matches!(effect, Effect::KeepAlerts { .. } | Effect::RecallAlerts);
            !usual && !books && !usage && !alerts && !is_own(effect)
        });
        effects
    }

    /// Permits handed out since the last call.
    pub fn permits(&mut self) -> Vec<Permit> {
        let effects = self.effects();
        let permit = |effect| match effect {
            Effect::Commit { then: Some(Then::Send(permit)), .. } => Some(permit),
            _ => None,
        };
        effects.into_iter().filter_map(permit).collect()
    }

    /// The screen as text.
    pub fn screen(&self) -> String {
        let utf8 = |name: &str| (name == "LANG").then(|| OsString::from("C.UTF-8"));
        let look = Look::of_environment(self.language, &utf8);
        let (width, height) = (self.state.view.width, self.state.view.height);
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal
            .draw(|frame| {
                ui::draw(frame, &self.state, &look, self.now);
            })
            .unwrap();
        let buffer = terminal.backend().buffer();
        let mut text = String::new();
        for y in 0..height {
            let mut line = String::new();
            let mut x = 0;
            while x < width {
                let symbol = buffer[(x, y)].symbol();
                line.push_str(symbol);
                // The cells that a wide one covers are its own.
                x += symbol.cell_width().max(1);
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    #[track_caller]
    pub fn shows(&self, text: &str) {
        let screen = self.screen();
        assert!(screen.contains(text), "`{text}` is not on the screen:\n{screen}");
    }

    #[track_caller]
    pub fn shows_on(&self, row: &str, text: &str) {
        let screen = self.screen();
        let line = screen.lines().find(|line| line.contains(row) && line.contains("×"));
        assert!(line.is_some_and(|line| line.contains(text)), "`{text}` is not in the row of {row}:\n{screen}");
    }

    #[track_caller]
    pub fn hides(&self, text: &str) {
        let screen = self.screen();
        assert!(!screen.contains(text), "`{text}` is on the screen:\n{screen}");
    }
}

/// An effect on this screen alone.
pub fn is_own(effect: &Effect) -> bool {
    matches!(effect, Effect::SavePreferences(_) | Effect::Copy(_) | Effect::Repaint)
}

pub fn listed(rows: Vec<Instance>) -> Poll {
    Poll {
        instances: Part::complete(rows),
        storage: Part::NotAsked,
        balance: Reading::NotAsked,
        tenant: Reading::NotTold,
        server_time: None,
    }
}

pub fn commits(effects: &[Effect]) -> Vec<(&'static str, bool)> {
    let commit = |effect: &Effect| match effect {
        Effect::Commit { entry, then } => Some((entry.step.word(), then.is_some())),
        _ => None,
    };
    effects.iter().filter_map(commit).collect()
}

pub fn looks(effects: &[Effect]) -> usize {
    effects.iter().filter(|effect| matches!(effect, Effect::Lookup { .. })).count()
}
