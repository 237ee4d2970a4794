//! What one thread does between an event and the end of its frame, over 10,000 rows.

use std::collections::VecDeque;
use std::io::{BufWriter, Sink, sink};
use std::time::{Duration, Instant};

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use providers::model::{AccountName, Component};
use providers::money::Currency;
use providers::provider::{Part, Poll, Reading};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use rentop::app::action::{Code, Key};
use rentop::app::event::{ViewEvent, WorldEvent};
use rentop::app::state::{Fixed, State, View, World};
use rentop::app::{self, Effect, Event};
use rentop::config::Language;
use rentop::rules::fleet::Account;
use rentop::rules::memory::{Collector, Memory};
use rentop::rules::settings::Rules;
use rentop::rules::spend::{Answer, Billable, Cell, Charge, Evidence, Exact, Question, Terms};
use rentop::ui::{self, Look};

use crate::measure::{Judged, Measured};
use crate::rented;

const ROWS: usize = 10_000;
/// One of so many answers changes a row; the others change usage alone.
const CHANGES: usize = 10;
const SIZE: (u16, u16) = (180, 50);

/// The loop of the screen without its terminal, its runtime and its clock.
struct Desk {
    state: State,
    look: Look,
    terminal: Terminal<CrosstermBackend<BufWriter<Sink>>>,
    now: Timestamp,
    /// Accounts that were asked, in that order.
    asked: VecDeque<(AccountName, Timestamp)>,
    /// What the books were asked.
    questions: VecDeque<Question>,
    each: usize,
    answers: usize,
}

impl Desk {
    /// Rows in so many accounts, as the ledger gives them at the start. Each account has just been asked.
    fn new(accounts: usize) -> Self {
        let now = Timestamp::now();
        let names: Vec<AccountName> = (0..accounts).map(rented::account).collect();
        let each = ROWS / accounts;
        let instances =
            names.iter().enumerate().flat_map(|(n, name)| rented::known(name, n * each..(n + 1) * each, now)).collect();
        let memory = Memory {
            accounts: names.iter().map(|name| rented::memory(name, "runpod", now)).collect(),
            instances,
            ..Memory::default()
        };
        let fixed = Fixed::default();
        let accounts = names.into_iter().map(|name| Account::new(name, "runpod".into(), false)).collect();
        let look = Look::of_environment(Language::English, &|name| (name == "COLORTERM").then(|| "truecolor".into()));
        // As the program's own, with nobody behind it.
        let backend = CrosstermBackend::new(BufWriter::with_capacity(1 << 16, sink()));
        let viewport = Viewport::Fixed(Rect::new(0, 0, SIZE.0, SIZE.1));
        let mut desk = Desk {
            state: State {
                world: World::new(accounts, Rules::default(), false, "ana@desk".to_owned(), now),
                view: View::new(fixed, Vec::new()),
                leaving: false,
            },
            look,
            terminal: Terminal::with_options(backend, TerminalOptions { viewport }).expect("a terminal of fixed size"),
            now,
            asked: VecDeque::new(),
            questions: VecDeque::new(),
            each,
            answers: 0,
        };
        app::update::start(&mut desk.state, now);
        desk.take(Event::View(ViewEvent::Resize { width: SIZE.0, height: SIZE.1 }));
        desk.world(WorldEvent::Collector(Collector::Us));
        desk.world(WorldEvent::Remembered { memory: Box::new(memory), notices: Vec::new() });
        app::settle(&mut desk.state, now);
        desk.draw();
        desk
    }

    fn take(&mut self, event: Event) {
        for effect in app::take(&mut self.state, event, self.now) {
            match effect {
                Effect::Poll { account, asked_at, .. } => self.asked.push_back((account, asked_at)),
                Effect::AskSpend(question) => self.questions.push_back(question),
                _ => {}
            }
        }
    }

    /// What the books answer: each resource ran for an hour on each day that is asked for apart.
    fn books(&mut self) {
        while let Some(question) = self.questions.pop_front() {
            let mut answer = Answer {
                question: question.clone(),
                cells: Vec::new(),
                entries: Vec::new(),
                since: Vec::new(),
                balances: Vec::new(),
                unfinished: false,
            };
            let known = &self.state.world.fleet.instances;
            match question {
                Question::Days(period) => {
                    answer.cells = period.days().map(|day| cell(day, rented::account(0), None)).collect();
                }
                Question::Resources(period) => {
                    let each = known.iter().map(|(identity, known)| {
                        let billable = Billable::Resource { identity: identity.clone(), name: known.row.name.clone() };
                        cell(period.from, identity.account.clone(), Some(billable))
                    });
                    answer.cells = each.collect();
                }
                Question::Entries { .. } | Question::Balances(_) => {}
            }
            self.take(Event::View(ViewEvent::Spend(Box::new(answer))));
        }
    }

    fn world(&mut self, event: WorldEvent) {
        self.take(Event::World(event));
    }

    fn press(&mut self, key: Key) {
        self.take(Event::View(ViewEvent::Key(key)));
    }

    fn draw(&mut self) {
        let drawn = self.terminal.draw(|frame| {
            ui::draw(frame, &self.state, &self.look, self.now);
        });
        drawn.expect("a terminal that swallows everything");
    }

    /// The answer of the account that has waited longest, every usage in it another than before.
    fn answer(&mut self) -> Option<Event> {
        let (account, asked_at) = self.asked.pop_front()?;
        self.answers += 1;
        let first = self.state.world.fleet.accounts.iter().position(|known| known.name == account)? * self.each;
        let rows = (first..first + self.each)
            .map(|n| {
                let seen = rented::instance(n, self.answers, self.now);
                // When it began does not change from look to look.
                let known = self.state.world.fleet.instance(&account, &seen.id);
                let began = known.and_then(|known| known.row.created_at);
                providers::model::Instance { created_at: began, started_at: seen.started_at.and(began), ..seen }
            })
            .collect();
        let mut rows: Vec<providers::model::Instance> = rows;
        if self.answers.is_multiple_of(CHANGES) {
            rows[0].note = Some(format!("restarted {} times", self.answers));
        }
        let poll = Poll {
            instances: Part::complete(rows),
            storage: Part::NotAsked,
            balance: Reading::NotAsked,
            tenant: Reading::NotTold,
            server_time: None,
        };
        Some(Event::World(WorldEvent::Polled { account, asked_at, poll: Box::new(poll) }))
    }

    fn pass(&mut self, seconds: f64) {
        self.now += SignedDuration::from_secs_f64(seconds);
    }
}

fn time(work: impl FnOnce()) -> Duration {
    let began = Instant::now();
    work();
    began.elapsed()
}

fn cell(day: Date, account: AccountName, billable: Option<Billable>) -> Cell {
    Cell {
        day,
        account,
        billable,
        terms: Terms { component: Component::Compute, charge: Charge::Certain, wasted: false, project: None, gpus: 0 },
        evidence: Evidence::Observed,
        replaced: false,
        currency: Currency::USD,
        amount: Exact::from_parts(2_000_000_000_000, 1),
        gpu_ms: 3_600_000,
    }
}

/// Frames of the Spend view with a line for each of 10,000 resources; beside them, what it takes to add them up.
pub fn spend_frame() -> Vec<Measured> {
    let mut desk = Desk::new(50);
    while let Some(event) = desk.answer() {
        desk.take(event);
    }
    for key in "2ggg".chars().map(Key::char) {
        // A key that comes sooner is one that is held.
        desk.pass(0.2);
        desk.press(key);
        desk.books();
        app::settle(&mut desk.state, desk.now);
    }
    assert!(desk.state.view.spend.list.lines.len() > ROWS, "every resource has its line");
    let (mut frames, mut made) = (Vec::new(), Vec::new());
    for n in 0..2000 {
        match n % 4 {
            0 => desk.press(Key::plain(Code::Down)),
            1 => desk.press(Key::plain(if n / 400 % 2 == 0 { Code::PageDown } else { Code::PageUp })),
            2 => {
                desk.pass(3.0);
                desk.world(WorldEvent::Tick);
            }
            _ => desk.books(),
        }
        let as_of = desk.state.view.spend.shown.as_ref().map(|shown| shown.as_of());
        let took = time(|| app::settle(&mut desk.state, desk.now));
        if desk.state.view.spend.shown.as_ref().map(|shown| shown.as_of()) != as_of {
            made.push(took);
        }
        frames.push(time(|| desk.draw()));
    }
    let frames = Measured::times("frame of Spend, 10,000 resources", Judged::P99, 4.0, &frames);
    vec![frames, Measured::times("Spend made anew, 10,000 resources", Judged::P99, 50.0, &made).beside()]
}

/// Frames after all that makes one: the cursor, a page, an answer, passing time.
pub fn frame() -> Vec<Measured> {
    let mut desk = Desk::new(50);
    let mut frames = Vec::new();
    for n in 0..2000 {
        match n % 4 {
            0 => desk.press(Key::plain(Code::Down)),
            1 => desk.press(Key::plain(if n / 400 % 2 == 0 { Code::PageDown } else { Code::PageUp })),
            2 => {
                desk.pass(3.0);
                desk.world(WorldEvent::Tick);
            }
            _ => {
                if let Some(event) = desk.answer() {
                    desk.take(event);
                }
            }
        }
        app::settle(&mut desk.state, desk.now);
        frames.push(time(|| desk.draw()));
    }
    vec![Measured::times("frame, 10,000 rows", Judged::P99, 4.0, &frames)]
}

/// A turn of the loop from a key to the next wait. No account ever answers.
pub fn keys() -> Vec<Measured> {
    let mut desk = Desk::new(50);
    let (enter, esc) = (Key::plain(Code::Enter), Key::plain(Code::Esc));
    let typed = |text: &'static str| text.chars().map(Key::char);
    let moves = [Code::Down, Code::Down, Code::Down, Code::PageDown, Code::Up, Code::PageDown, Code::End, Code::Home];
    let story: Vec<Key> = [
        moves.map(Key::plain).to_vec(),
        typed("jjjj kkjj").collect(),
        vec![Key::char('s'), esc, enter, enter],
        typed("/train-1").chain([enter, esc]).collect(),
        typed("/h100 1").chain([enter, esc]).collect(),
        typed("oooo").collect(),
        typed("ggggg").collect(),
        typed("fff").collect(),
        typed("?").chain([esc]).collect(),
        vec![Key::char('x'), esc],
        moves.map(Key::plain).to_vec(),
    ]
    .concat();
    let mut turns = Vec::new();
    for key in story.iter().cycle().take(2000) {
        desk.pass(0.2);
        turns.push(time(|| {
            desk.press(*key);
            app::settle(&mut desk.state, desk.now);
            desk.draw();
            app::next_wake(&desk.state, desk.now);
        }));
    }
    vec![Measured::times("key to frame, 10,000 rows", Judged::P99, 16.0, &turns)]
}

/// An answer taken in, and the lines after it: a key that comes meanwhile waits for both.
pub fn polls() -> Vec<Measured> {
    let mut measured = Vec::new();
    let mut settled = Vec::new();
    for (accounts, rounds) in [(50, 6), (1, 40)] {
        let mut desk = Desk::new(accounts);
        let mut taken = Vec::new();
        for _ in 0..rounds {
            while let Some(event) = desk.answer() {
                taken.push(time(|| desk.take(event)));
                let took = time(|| app::settle(&mut desk.state, desk.now));
                if desk.answers.is_multiple_of(CHANGES) {
                    settled.push(took);
                }
            }
            desk.pass(20.0);
            desk.world(WorldEvent::Tick);
        }
        let what = format!("answer taken in, {} of 10,000 rows", desk.each);
        measured.push(Measured::times(what, Judged::P99, 16.0, &taken).beside());
    }
    measured.push(Measured::times("lines made anew, 10,000 rows", Judged::P99, 16.0, &settled).beside());
    measured
}
