//! For tests: a story of events that leads to a state, and a picture of the screen in text.

use std::collections::BTreeMap;
use std::fmt::Write;

use jiff::{SignedDuration, Timestamp};
use providers::error::{ErrorKind, ProviderError, RequestLine};
use providers::gpu::Gpus;
use providers::model::{
    AccountName, Balance, Component, DataKind, DataPlace, Effect as Deed, Fate, Instance, Market, Offer, Offers, Phase,
    Rates, Refusal, ResourceId, Risk, StorageItem,
};
use providers::money::{Currency, Money, Rate};
use providers::provider::{Accepted, Found, Part, Poll, Reading};
use providers::usage::{GpuSample, Usage, UsageSource};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, CellWidth};
use ratatui::style::{Color, Modifier, Style};

use super::glyphs::UNICODE;
use super::look::Look;
use super::text::Language;
use super::theme::{Background, Colours, Role, Theme};
use crate::app::action::{Code, Key};
use crate::app::effect::Effect;
use crate::app::event::{Event, ViewEvent, WorldEvent};
use crate::app::state::{Fixed, OfferedAccount, State, View, World};
use crate::app::update::{start, update};
use crate::rules::fleet::Account;
use crate::rules::memory::{Collector, Memory};
use crate::rules::settings::Rules;
use crate::rules::spend::{Answer, Question};

/// True colours on dark: every role has a colour of its own.
pub fn look(language: Language) -> Look {
    Look { theme: Theme::new(Colours::True, Background::Dark), glyphs: &UNICODE, language }
}

/// A program's life so far, told by events at their times.
pub struct Story {
    pub state: State,
    pub now: Timestamp,
    effects: Vec<Effect>,
}

impl Story {
    /// Begins with accounts as `provider/name`, on a Monday at ten.
    pub fn over(accounts: &[&str]) -> Self {
        Story::began(accounts, false, Vec::new())
    }

    pub fn read_only(accounts: &[&str]) -> Self {
        Story::began(accounts, true, Vec::new())
    }

    /// Without accounts, with keys in the environment.
    pub fn offering(offered: &[(&str, &str)]) -> Self {
        let offered = offered
            .iter()
            .zip(1..)
            .map(|((provider, variable), number)| OfferedAccount {
                number,
                provider: (*provider).to_owned(),
                variable: (*variable).to_owned(),
            })
            .collect();
        Story::began(&[], false, offered)
    }

    fn began(accounts: &[&str], read_only: bool, offered: Vec<OfferedAccount>) -> Self {
        let now: Timestamp = "2026-11-30T10:00:00Z".parse().unwrap();
        let accounts = accounts
            .iter()
            .map(|title| {
                let (provider, name) = title.split_once('/').unwrap();
                Account::new(AccountName::from(name), provider.into(), name == "locked")
            })
            .collect();
        let fixed = Fixed {
            config_path: "~/.config/rentop/config.toml".to_owned(),
            sentences: super::text::sentences(Language::English),
            ..Fixed::default()
        };
        let mut state = State {
            world: World::new(accounts, Rules::default(), read_only, "ana@desk".to_owned(), now),
            view: View::new(fixed, offered),
            leaving: false,
        };
        // What its rows give rise to is another story.
        state.world.alerting.heedless = true;
        let effects = start(&mut state, now);
        let mut story = Story { state, now, effects };
        story.world(WorldEvent::Collector(Collector::Us));
        story.world(WorldEvent::Remembered { memory: Box::new(Memory::default()), notices: Vec::new() });
        story
    }

    pub fn event(&mut self, event: Event) {
        self.effects.extend(update(&mut self.state, event, self.now));
    }

    pub fn world(&mut self, event: WorldEvent) -> &mut Self {
        self.event(Event::World(event));
        self
    }

    /// Time passes, second by second.
    pub fn wait(&mut self, seconds: i64) -> &mut Self {
        for _ in 0..seconds {
            self.now += SignedDuration::from_secs(1);
            self.world(WorldEvent::Tick);
        }
        self
    }

    /// The books are asked until nothing is open any more; each question gets its answer.
    pub fn books(&mut self, answer: impl Fn(&Question) -> Answer) -> &mut Self {
        loop {
            let asked = self.questions();
            if asked.is_empty() {
                return self;
            }
            for question in asked {
                self.event(Event::View(ViewEvent::Spend(Box::new(answer(&question)))));
            }
        }
    }

    /// What the books were asked since the last time.
    pub fn questions(&mut self) -> Vec<Question> {
        let (asked, rest): (Vec<Effect>, Vec<Effect>) =
            self.effects.drain(..).partition(|effect| matches!(effect, Effect::AskSpend(_)));
        self.effects = rest;
        let question = |effect| match effect {
            Effect::AskSpend(question) => Some(question),
            _ => None,
        };
        asked.into_iter().filter_map(question).collect()
    }

    fn asked_at(&mut self, name: &str) -> Timestamp {
        let name = AccountName::from(name);
        for _ in 0..400 {
            if let Some(at) = self.state.world.fleet.account(&name).unwrap().pacing.in_flight {
                return at;
            }
            self.wait(1);
        }
        panic!("{name} is never asked");
    }

    /// The account answers with these rows.
    pub fn poll(&mut self, name: &str, instances: Vec<Instance>) -> &mut Self {
        self.answer(name, Part::complete(instances), Vec::new(), None)
    }

    pub fn answer(
        &mut self,
        name: &str,
        instances: Part<Instance>,
        storage: Vec<StorageItem>,
        cash: Option<Money>,
    ) -> &mut Self {
        let asked_at = self.asked_at(name);
        let balance =
            cash.map_or(Reading::NotTold, |cash| Reading::Known(Balance { cash, voucher: None, provider_burn: None }));
        let poll =
            Poll { instances, storage: Part::complete(storage), balance, tenant: Reading::NotTold, server_time: None };
        self.world(WorldEvent::Polled { account: name.into(), asked_at, poll: Box::new(poll) })
    }

    /// The account's poll fails.
    pub fn fail(&mut self, name: &str, kind: ErrorKind) -> &mut Self {
        let asked_at = self.asked_at(name);
        let account = self.state.world.fleet.account(&name.into()).unwrap();
        let error = ProviderError {
            provider: account.provider.clone(),
            account: account.name.clone(),
            request: RequestLine("GET /v1/instances".to_owned()),
            kind,
        };
        let poll = Poll {
            instances: Part::Failed(error),
            storage: Part::NotAsked,
            balance: Reading::NotAsked,
            tenant: Reading::NotAsked,
            server_time: None,
        };
        self.world(WorldEvent::Polled { account: name.into(), asked_at, poll: Box::new(poll) })
    }

    /// Presses keys, half a second apart.
    pub fn press(&mut self, keys: &str) -> &mut Self {
        for c in keys.chars() {
            self.key(Key::char(c));
        }
        self
    }

    /// Presses a key in the very moment of what happened last.
    pub fn key_at_once(&mut self, c: char) -> &mut Self {
        self.event(Event::View(ViewEvent::Key(Key::char(c))));
        self
    }

    pub fn code(&mut self, code: Code) -> &mut Self {
        self.key(Key::plain(code));
        self
    }

    fn key(&mut self, key: Key) {
        self.now += SignedDuration::from_millis(800);
        self.event(Event::View(ViewEvent::Key(key)));
    }

    /// Puts the cursor on the row of this name.
    pub fn at(&mut self, name: &str) -> &mut Self {
        self.code(Code::Home);
        for _ in 0..self.state.view.list().lines.len() {
            let here =
                self.state.view.list().selected().and_then(|identity| self.state.world.fleet.instances.get(identity));
            if here.is_some_and(|known| known.row.name.as_deref() == Some(name)) {
                return self;
            }
            self.code(Code::Down);
        }
        panic!("there is no row `{name}`");
    }

    /// Puts the cursor on the row of this id.
    pub fn row(&mut self, id: &str) -> &mut Self {
        self.code(Code::Home);
        for _ in 0..self.state.view.list().lines.len() {
            if self.state.view.list().selected().is_some_and(|identity| identity.id.as_str() == id) {
                return self;
            }
            self.code(Code::Down);
        }
        panic!("there is no row `{id}`");
    }

    /// The provider answers the question by id that an action has asked last, and then its request.
    pub fn looked_up(&mut self, instance: Instance) -> &mut Self {
        let (op, identity) = self
            .effects
            .iter()
            .rev()
            .find_map(|effect| match effect {
                Effect::Lookup { op: Some(op), identity } => Some((*op, identity.clone())),
                _ => None,
            })
            .expect("nothing was asked by id");
        let found = Ok(Found::Instance(Box::new(instance)));
        self.world(WorldEvent::LookedUp { op: Some(op), identity, found });
        self.world(WorldEvent::Acted { op, answer: Ok(Accepted::Done) })
    }

    /// The provider says that there is no such id any more, when an action asks again.
    pub fn gone(&mut self, id: &str) -> &mut Self {
        let operation = self.state.world.under_way().find(|one| one.target.identity.id.as_str() == id).unwrap();
        let (op, identity) = (operation.id, operation.target.identity.clone());
        self.world(WorldEvent::LookedUp { op: Some(op), identity, found: Ok(Found::NoSuchId) })
    }

    /// The screen as text, with its styles.
    pub fn picture(&mut self, width: u16, height: u16, look: &Look) -> String {
        let (buffer, cursor) = self.paint(width, height, look);
        let mut out = text_of(&buffer);
        out.push_str(&styles_of(&buffer, look));
        if let Some((x, y)) = cursor {
            writeln!(out, "cursor at {x},{y}").unwrap();
        }
        out
    }

    pub fn paint(&mut self, width: u16, height: u16, look: &Look) -> (Buffer, Option<(u16, u16)>) {
        self.event(Event::View(ViewEvent::Resize { width, height }));
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let (mut painted, mut text_top) = (None, None);
        let (state, now) = (&self.state, self.now);
        terminal
            .draw(|frame| {
                text_top = super::draw(frame, state, look, now);
                let area = frame.area();
                painted = super::screen(
                    &mut super::paint::Paint { buffer: &mut Buffer::empty(area), look },
                    area,
                    state,
                    now,
                )
                .cursor;
            })
            .unwrap();
        crate::app::painted(&mut self.state, text_top);
        (terminal.backend().buffer().clone(), painted.map(|at| (at.x, at.y)))
    }
}

/// The symbols of a buffer, without the cells that a wide one covers.
pub fn text_of(buffer: &Buffer) -> String {
    let mut out = String::new();
    for y in buffer.area.top()..buffer.area.bottom() {
        let mut line = String::new();
        let mut x = buffer.area.left();
        while x < buffer.area.right() {
            let symbol = buffer[(x, y)].symbol();
            line.push_str(symbol);
            x += symbol.cell_width().max(1);
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// The styles of a buffer by the names of their roles: row, then first and last cell of each run.
fn styles_of(buffer: &Buffer, look: &Look) -> String {
    let mut out = String::from("styles\n");
    for y in buffer.area.top()..buffer.area.bottom() {
        let mut runs: Vec<(String, u16, u16)> = Vec::new();
        let mut x = buffer.area.left();
        while x < buffer.area.right() {
            let cell = &buffer[(x, y)];
            let wide = cell.symbol().cell_width().max(1);
            if cell.symbol() != " " {
                let role = role_of(cell.style(), look);
                match runs.last_mut() {
                    Some((last, _, end)) if *last == role && x - *end <= 2 => *end = x + wide - 1,
                    _ => runs.push((role, x, x + wide - 1)),
                }
            }
            x += wide;
        }
        let told: Vec<String> = runs
            .iter()
            .filter(|(role, ..)| role != "Plain")
            .map(|(role, from, to)| format!("{} {from}-{to}", role.to_lowercase()))
            .collect();
        if !told.is_empty() && !told.iter().all(|run| run.starts_with("rule")) {
            writeln!(out, "{y:>3}: {}", told.join(", ")).unwrap();
        }
    }
    out
}

fn role_of(style: Style, look: &Look) -> String {
    // A buffer says "reset" where a style says nothing.
    let bare =
        Style { fg: style.fg.filter(|c| *c != Color::Reset), bg: style.bg.filter(|c| *c != Color::Reset), ..style };
    Role::ALL
        .into_iter()
        .find(|role| {
            let wanted = look.theme.style(*role);
            wanted.fg == bare.fg && bare.bg.is_none() && wanted.add_modifier == bare.add_modifier - Modifier::empty()
        })
        .map_or_else(|| format!("{bare:?}"), |role| format!("{role:?}"))
}

pub fn usd(amount: &str) -> Rate {
    Rate::per_hour(amount.parse().unwrap(), Currency::USD).unwrap()
}

pub fn cny(amount: &str) -> Rate {
    Rate::per_hour(amount.parse().unwrap(), Currency::CNY).unwrap()
}

pub fn dollars(amount: &str) -> Money {
    Money::new(amount.parse().unwrap(), Currency::USD)
}

/// A running instance with compute and a disk; a stop keeps the disk, a release deletes it.
pub fn instance(id: &str, name: &str, gpu: &str, count: u32, compute: Rate, disk: Rate) -> Instance {
    let volume = DataPlace {
        kind: DataKind::VolumeDisk,
        name: None,
        path: Some("/workspace".to_owned()),
        size_gb: Some(30.into()),
    };
    let after_stop = Rates::known().with(Component::Disk, disk);
    Instance {
        id: ResourceId::new(id),
        name: (!name.is_empty()).then(|| name.to_owned()),
        phase: Phase::Running,
        provider_phase: None,
        note: None,
        remarks: Vec::new(),
        market: Market::OnDemand,
        gpus: Some(Gpus { model: gpu.to_owned(), count, memory_gib: Some(80) }),
        rates: Rates::known().with(Component::Compute, compute).with(Component::Disk, disk),
        created_at: Some("2026-11-29T08:00:00Z".parse().unwrap()),
        started_at: Some("2026-11-29T08:00:00Z".parse().unwrap()),
        stopped_at: None,
        granularity: providers::model::Granularity::Exact,
        repricing: None,
        ends_at: None,
        at_zero: Fate::Unknown,
        usage: None,
        ssh: None,
        region: Some("US, TX".to_owned()),
        labels: BTreeMap::new(),
        mounts: Vec::new(),
        offers: Offers {
            stop: Offer::Yes(Deed {
                rates_after: after_stop,
                kept: vec![volume.clone()],
                risks: vec![Risk::GpuMayBeTaken],
                ..Deed::default()
            }),
            start: Offer::No(Refusal::WrongPhase),
            restart: Offer::No(Refusal::WrongPhase),
            release: Offer::Yes(Deed { rates_after: Rates::known(), lost: vec![volume], ..Deed::default() }),
        },
        page: None,
    }
}

/// It shows so much use on each of its GPUs, each with 80 GiB.
pub fn busy(mut instance: Instance, share: f64, used_gib: u64, now: Timestamp) -> Instance {
    let count = instance.gpus.as_ref().map_or(1, |gpus| gpus.count);
    let gpus = (0..count)
        .map(|index| GpuSample {
            index,
            utilization: Some(share),
            memory_used_bytes: Some(used_gib << 30),
            memory_total_bytes: Some(80 << 30),
            temperature_c: Some(61.0),
            power_watts: Some(412.0),
            ..GpuSample::default()
        })
        .collect();
    instance.usage =
        Some(Usage { gpus, cpu: Some(0.31), memory: Some(0.42), ..Usage::new(now, UsageSource::Provider) });
    instance
}

/// It is stopped: only its disk costs, and it can be started.
pub fn stopped(mut instance: Instance) -> Instance {
    let disk = instance.rates.of(&[Component::Disk]).rates()[0];
    instance.phase = Phase::Stopped;
    instance.started_at = None;
    instance.offers.start =
        Offer::Yes(Deed { rates_after: instance.rates.clone(), risks: vec![Risk::StartMayLackGpu], ..Deed::default() });
    instance.offers.stop = Offer::No(Refusal::WrongPhase);
    instance.rates = Rates::known().with(Component::Disk, disk);
    instance
}
