//! The loop with a screen: events in, effects out, a frame when something changed.

use std::io;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use jiff::Timestamp;

use super::effects::Performer;
use super::input::Input;
use super::keyboard::Keyboard;
use super::lent::Lent;
use super::questions::{Learnt, Questions};
use super::terminal::{self, Keys, Modes};
use super::{Inbox, clock, crash, wait_until};
use crate::app::event::{Guest, ViewEvent, WorldEvent};
use crate::app::{self, Effect, Event, State};
use crate::config::{Config, save_budget};
use crate::rules::budgets::BudgetDraft;
use crate::rules::dispatch::Delivery;
use crate::ui::Look;
use crate::ui::theme::Colours;

/// So long after its end an interruption may still be meant for who had the terminal.
const LATE: Duration = Duration::from_millis(500);

/// The first frame waits this long for the ledger's memory, and no longer.
const FIRST_FRAME: Duration = Duration::from_millis(35);

/// What the screen is given beside the state.
pub struct Given<'a> {
    /// As the environment tells it; the terminal may know better.
    pub look: &'a mut Look,
    /// The terminal is asked what it can do.
    pub ask: bool,
    /// The mouse may be listened to, if the person wants it.
    pub mouse: bool,
    /// The config file, which need not be there.
    pub config: &'a Path,
    /// Paints a frame, and tells what [`app::painted`] is to know of it.
    pub paint: &'a dyn Fn(&mut ratatui::Frame, &State, &Look, Timestamp) -> Option<u16>,
    /// Adds an account that the environment offers; says why not when it cannot.
    pub add: &'a dyn Fn(&str) -> Result<WorldEvent, String>,
}

/// Why the screen ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Somebody left it.
    Left,
    /// A signal ended it.
    Signal,
}

/// Runs the screen until somebody leaves it.
pub async fn run(
    state: &mut State,
    performer: &Performer,
    inbox: &mut Inbox,
    given: Given<'_>,
) -> anyhow::Result<Ended> {
    crash::install();
    if given.look.theme.colours == Colours::None {
        // Else every frame ends with a change to the colours that the terminal has anyway.
        crossterm::style::force_color_output(false);
    }
    let modes = Modes { mouse: state.view.fixed.mouse && given.mouse, keyboard: false };
    let screen = terminal::enter(modes).context("the terminal cannot be taken over")?;
    let mut desk = Desk {
        screen: ManuallyDrop::new(screen),
        given,
        modes,
        keyboard: None,
        keys: Keys::default(),
        questions: Questions::default(),
        lent: None,
        back_at: None,
    };
    let ended = desk.work(state, performer, inbox).await;
    desk.leave().await;
    crash::check()?;
    ended
}

/// The terminal and all that belongs to it.
struct Desk<'a> {
    /// Its own end would print to a terminal that may be gone, which is a panic; ours gives it back.
    screen: ManuallyDrop<terminal::Screen>,
    given: Given<'a>,
    modes: Modes,
    /// `None` while nobody listens: two readers of one keyboard would each get half of it.
    keyboard: Option<Keyboard>,
    keys: Keys,
    questions: Questions,
    /// While somebody else has the terminal nothing is drawn and no key is read; everything else goes on.
    lent: Option<Lent>,
    /// When it last came back.
    back_at: Option<Instant>,
}

/// What wakes the loop.
enum Woken {
    Event(Event),
    Input(Input),
    Signal(Signal),
    /// Who had the terminal has ended.
    Returned(Result<(), String>),
    /// A background task failed.
    Failed,
}

impl Desk<'_> {
    async fn work(&mut self, state: &mut State, performer: &Performer, inbox: &mut Inbox) -> anyhow::Result<Ended> {
        // Before the size is asked for, so that no change of it is missed.
        let mut signals = Signals::listen()?;
        let size = self.screen.size()?;
        if self.given.ask && cfg!(unix) {
            self.questions = Questions::ask(self.given.look, size.width, &mut io::stdout())?;
        }
        let now = clock::now();
        let mut waiting = app::update::start(state, now);
        waiting.extend(app::update(state, resized(size.width, size.height), now));
        waiting.into_iter().for_each(|effect| drop(performer.perform(effect)));
        first_memory(state, performer, inbox).await;

        let mut ended = Ended::Left;
        loop {
            let now = clock::now();
            app::settle(state, now);
            if self.lent.is_none() {
                let Given { look, paint, .. } = &self.given;
                let mut text_top = None;
                self.screen.draw(|frame| text_top = paint(frame, state, look, now))?;
                app::painted(state, text_top);
            }
            if state.leaving {
                return Ok(ended);
            }
            let woken = tokio::select! {
                Some(event) = inbox.next() => Woken::Event(event),
                input = next_input(&mut self.keyboard), if self.lent.is_none() => Woken::Input(input?),
                result = returned(&mut self.lent) => Woken::Returned(result),
                () = wait_until(app::next_wake(state, now), now) => Woken::Event(Event::World(WorldEvent::Tick)),
                signal = signals.next() => Woken::Signal(signal),
                () = crash::happened() => Woken::Failed,
            };
            let first = match woken {
                Woken::Event(event) => Some(event),
                Woken::Input(Input::Event(event)) => self.keys.translate(event, Instant::now()).map(Event::View),
                Woken::Input(Input::Answer(answer)) => {
                    self.learn(answer, state)?;
                    None
                }
                Woken::Returned(result) => {
                    self.back_at = Some(Instant::now());
                    let from = self.lent.as_ref().map_or(Guest::Ssh, |lent| lent.guest);
                    self.take_back(state)?;
                    Some(Event::View(ViewEvent::Returned { from, ended: result.and_then(|()| self.judge(from)) }))
                }
                Woken::Failed => {
                    state.leaving = true;
                    None
                }
                Woken::Signal(signal) => {
                    let (event, ends) = self.hear(signal, state, performer).await?;
                    if ends {
                        ended = Ended::Signal;
                    }
                    event
                }
            };
            // A burst is handled before the next frame.
            let mut event = first;
            let mut handled = 0;
            while let Some(next) = event {
                for effect in app::take(state, next, clock::now()) {
                    if let Some(effect) = performer.perform(effect) {
                        self.perform(effect, state, performer).await?;
                    }
                }
                handled += 1;
                event = if handled < 64 { inbox.ready() } else { None };
            }
        }
    }

    /// Performs what needs the terminal.
    async fn perform(&mut self, effect: Effect, state: &mut State, performer: &Performer) -> anyhow::Result<()> {
        match effect {
            Effect::Repaint => self.repaint(state)?,
            Effect::Suspend => {
                self.suspend().await?;
                self.repaint(state)?;
            }
            Effect::Copy(text) => terminal::copy(&text)?,
            Effect::TellTerminal { channel, text } => {
                let delivery = match &self.lent {
                    None => {
                        terminal::tell(&text)?;
                        Delivery::Delivered
                    }
                    Some(_) => {
                        let why = "another program has the terminal".to_owned();
                        Delivery::Later { wait: None, why, perhaps: false }
                    }
                };
                performer.outbox.put(Event::World(WorldEvent::Sent { channel, delivery }));
            }
            Effect::Ssh(target) => {
                self.lend(Guest::Ssh, || Lent::to_ssh(performer.streams.shell(&target)), performer).await?;
            }
            Effect::EditConfig => {
                let file = self.given.config.to_owned();
                self.lend(Guest::Editor, || Lent::to_editor(&file), performer).await?;
            }
            Effect::Bell => terminal::ring()?,
            Effect::SaveBudget { budget, of } => {
                let (file, outbox) = (self.given.config.to_owned(), performer.outbox.clone());
                let draft = BudgetDraft::of(&budget, &state.world.spending.zone);
                // A disk may be slow, and a frame waits for none.
                tokio::task::spawn_blocking(move || {
                    let draft = draft.expect("a form has one condition");
                    let ended = save_budget(&file, &draft, of.as_deref());
                    outbox.put(Event::View(ViewEvent::BudgetSaved { budget, of, ended }));
                });
            }
            Effect::AddOffered(variable) => {
                let added = (self.given.add)(&variable)
                    .map_or_else(|error| Event::View(ViewEvent::NotAdded(error)), Event::World);
                performer.outbox.put(added);
            }
            _ => {}
        }
        Ok(())
    }

    /// Gives the terminal to somebody else until that one ends.
    async fn lend(
        &mut self,
        guest: Guest,
        start: impl FnOnce() -> Result<Lent, String>,
        performer: &Performer,
    ) -> anyhow::Result<()> {
        self.stop_listening().await;
        terminal::restore();
        match start() {
            Ok(lent) => self.lent = Some(lent),
            Err(error) => {
                *self.screen = terminal::enter(self.modes)?;
                performer.outbox.put(Event::View(ViewEvent::Returned { from: guest, ended: Err(error) }));
            }
        }
        Ok(())
    }

    /// What is to be said of what somebody did while it had the terminal.
    fn judge(&self, guest: Guest) -> Result<(), String> {
        match guest {
            Guest::Ssh => Ok(()),
            Guest::Editor => Config::load(self.given.config).map(drop).map_err(|error| error.to_string()),
        }
    }

    /// What follows from a signal, and whether the program ends by it.
    async fn hear(
        &mut self,
        signal: Signal,
        state: &mut State,
        performer: &Performer,
    ) -> anyhow::Result<(Option<Event>, bool)> {
        let event = match signal {
            // Typed to who has the terminal: the whole group hears it, and we perhaps after its end.
            Signal::Interrupt if self.lent.is_some() || self.back_at.is_some_and(|at| at.elapsed() < LATE) => None,
            Signal::End | Signal::Interrupt => {
                let effects = app::update::leave_now(state, clock::now());
                effects.into_iter().for_each(|effect| drop(performer.perform(effect)));
                return Ok((None, true));
            }
            Signal::Suspend if self.lent.is_some() => {
                terminal::stop();
                None
            }
            Signal::GoOn if self.lent.is_some() => None,
            Signal::Suspend => {
                self.suspend().await?;
                Some(Event::View(ViewEvent::Resumed))
            }
            Signal::GoOn => {
                terminal::take_again(self.modes)?;
                Some(Event::View(ViewEvent::Resumed))
            }
            Signal::Resized => {
                let size = self.screen.size()?;
                Some(resized(size.width, size.height))
            }
        };
        Ok((event, false))
    }

    /// Takes what the terminal tells of itself.
    fn learn(&mut self, answer: super::input::Answer, state: &mut State) -> io::Result<()> {
        match self.questions.answered(answer, self.given.look) {
            Learnt::Nothing => Ok(()),
            Learnt::Keyboard if self.modes.keyboard => Ok(()),
            Learnt::Keyboard => {
                self.modes.keyboard = true;
                terminal::enhance_keyboard()
            }
            Learnt::Look => self.repaint(state),
        }
    }

    fn repaint(&mut self, state: &mut State) -> io::Result<()> {
        let size = self.screen.size()?;
        (state.view.width, state.view.height) = (size.width, size.height);
        if self.lent.is_none() {
            // Not `clear`: that asks the terminal where its cursor is, and would wait for an answer among the keys.
            self.screen.resize(size.into())?;
        }
        Ok(())
    }

    /// Gives the terminal to the shell until the program is brought back.
    async fn suspend(&mut self) -> io::Result<()> {
        self.stop_listening().await;
        terminal::suspend();
        *self.screen = terminal::enter(self.modes)?;
        Ok(())
    }

    /// Takes the terminal back from who had it and has ended.
    fn take_back(&mut self, state: &mut State) -> io::Result<()> {
        if let Some(lent) = self.lent.take() {
            lent.clean_up(self.modes.keyboard)?;
            *self.screen = terminal::enter(self.modes)?;
            self.repaint(state)?;
        }
        Ok(())
    }

    /// Ends reading: whoever reads next gets nothing that was meant for us, answers least of all.
    async fn stop_listening(&mut self) {
        while let Some(until) = self.questions.open_until() {
            match tokio::time::timeout_at(until.into(), next_input(&mut self.keyboard)).await {
                // What they say matters no more now than that they are here.
                Ok(Ok(Input::Answer(answer))) => {
                    self.questions.answered(answer, self.given.look);
                }
                Ok(Ok(Input::Event(_))) => {}
                Ok(Err(_)) | Err(_) => break,
            }
        }
        self.keyboard = None;
        self.keys = Keys::default();
    }

    /// Gives the terminal back for good.
    async fn leave(&mut self) {
        if let Some(mut lent) = self.lent.take() {
            lent.end().await;
            // It is on its way back to the shell, with or without this.
            drop(lent.clean_up(self.modes.keyboard));
            return;
        }
        self.stop_listening().await;
        terminal::restore();
    }
}

/// The end of who has the terminal; never, while nobody has.
async fn returned(lent: &mut Option<Lent>) -> Result<(), String> {
    match lent {
        Some(lent) => lent.ended().await,
        None => std::future::pending().await,
    }
}

/// The next thing that the terminal sends.
async fn next_input(keyboard: &mut Option<Keyboard>) -> io::Result<Input> {
    let keyboard = match keyboard {
        Some(keyboard) => keyboard,
        None => keyboard.insert(Keyboard::open()?),
    };
    keyboard.next().await
}

/// Lets the ledger's memory come before the first frame, if it is quick.
async fn first_memory(state: &mut State, performer: &Performer, inbox: &mut Inbox) {
    let patience = tokio::time::sleep(FIRST_FRAME);
    tokio::pin!(patience);
    while !state.world.remembered {
        tokio::select! {
            Some(event) = inbox.next() => {
                for effect in app::take(state, event, clock::now()) {
                    drop(performer.perform(effect));
                }
            }
            () = &mut patience => return,
        }
    }
}

fn resized(width: u16, height: u16) -> Event {
    Event::View(ViewEvent::Resize { width, height })
}

enum Signal {
    End,
    /// As Ctrl-C and its like send it where nobody reads them as keys.
    Interrupt,
    Suspend,
    Resized,
    /// After a stop, ours or one that nobody can catch: the shell had the terminal meanwhile.
    GoOn,
}

#[cfg(unix)]
struct Signals {
    term: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    quit: tokio::signal::unix::Signal,
    stop: tokio::signal::unix::Signal,
    go_on: tokio::signal::unix::Signal,
    resized: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            term: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            stop: signal(SignalKind::from_raw(signal_hook::consts::SIGTSTP))?,
            go_on: signal(SignalKind::from_raw(signal_hook::consts::SIGCONT))?,
            resized: signal(SignalKind::window_change())?,
        })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.term.recv() => Signal::End,
            _ = self.hang_up.recv() => Signal::End,
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.quit.recv() => Signal::Interrupt,
            _ = self.stop.recv() => Signal::Suspend,
            _ = self.go_on.recv() => Signal::GoOn,
            _ = self.resized.recv() => Signal::Resized,
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Signals)
    }

    async fn next(&mut self) -> Signal {
        // Only Ctrl-C is there, and the terminal reports it as a key.
        let _never: std::convert::Infallible = std::future::pending().await;
        Signal::End
    }
}
