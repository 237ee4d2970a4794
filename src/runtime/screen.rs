//! The loop with a screen: events in, effects out, a frame when something changed.

use std::io;
use std::mem::ManuallyDrop;
use std::time::Duration;

use anyhow::Context;
use crossterm::event::EventStream;
use futures_util::StreamExt;

use super::effects::Performer;
use super::{Inbox, clock, crash, terminal, wait_until};
use crate::app::event::{ViewEvent, WorldEvent};
use crate::app::{self, Effect, Event, State};
use crate::ui::{self, Look};

/// The first frame waits this long for the ledger's memory, and no longer.
const FIRST_FRAME: Duration = Duration::from_millis(35);

/// Adds an account that the environment offers; says why not when it cannot.
pub type AddOffered<'a> = &'a dyn Fn(&str) -> Result<WorldEvent, String>;

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
    look: &Look,
    add: AddOffered<'_>,
) -> anyhow::Result<Ended> {
    crash::install();
    // Its own end would print to a terminal that may be gone, which is a panic; ours gives it back.
    let mut screen = ManuallyDrop::new(terminal::enter().context("the terminal cannot be taken over")?);
    let ended = in_terminal(state, performer, inbox, look, add, &mut screen).await;
    terminal::restore();
    crash::check()?;
    ended
}

type Screen = ratatui::Terminal<ratatui::backend::CrosstermBackend<io::BufWriter<io::Stdout>>>;

async fn in_terminal(
    state: &mut State,
    performer: &Performer,
    inbox: &mut Inbox,
    look: &Look,
    add: AddOffered<'_>,
    screen: &mut Screen,
) -> anyhow::Result<Ended> {
    // Before the size is asked for, so that no change of it is missed.
    let mut signals = Signals::listen()?;
    let size = screen.size()?;
    let now = clock::now();
    let mut waiting = app::update::start(state, now);
    waiting.extend(app::update(state, resized(size.width, size.height), now));
    waiting.into_iter().for_each(|effect| drop(performer.perform(effect)));
    first_memory(state, performer, inbox).await;

    let mut keys = Some(EventStream::new());
    let mut ended = Ended::Left;
    loop {
        let now = clock::now();
        app::settle(state, now);
        screen.draw(|frame| ui::draw(frame, state, look, now))?;
        if state.leaving {
            return Ok(ended);
        }
        let first = tokio::select! {
            Some(event) = inbox.next() => Some(event),
            key = next_key(&mut keys) => key?.map(Event::View),
            () = wait_until(app::next_wake(state, now), now) => Some(Event::World(WorldEvent::Tick)),
            signal = signals.next() => match signal {
                Signal::End => {
                    ended = Ended::Signal;
                    app::update::leave_now(state, clock::now()).into_iter().for_each(|effect| drop(performer.perform(effect)));
                    None
                }
                Signal::Suspend => {
                    suspend(screen, &mut keys)?;
                    Some(Event::View(ViewEvent::Resumed))
                }
                Signal::GoOn => {
                    terminal::take_again()?;
                    Some(Event::View(ViewEvent::Resumed))
                }
                Signal::Resized => {
                    let size = screen.size()?;
                    Some(resized(size.width, size.height))
                }
            },
            () = crash::happened() => {
                state.leaving = true;
                None
            }
        };
        // A burst is handled before the next frame.
        let mut event = first;
        let mut handled = 0;
        while let Some(next) = event {
            for effect in app::take(state, next, clock::now()) {
                match performer.perform(effect) {
                    Some(Effect::Repaint) => repaint(screen, state)?,
                    Some(Effect::Suspend) => {
                        suspend(screen, &mut keys)?;
                        repaint(screen, state)?;
                    }
                    Some(Effect::AddOffered(variable)) => {
                        let added =
                            add(&variable).map_or_else(|error| Event::View(ViewEvent::NotAdded(error)), Event::World);
                        performer.outbox.put(added);
                    }
                    _ => {}
                }
            }
            handled += 1;
            event = if handled < 64 { inbox.ready() } else { None };
        }
    }
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

/// The next thing that the terminal reports and somebody listens to.
async fn next_key(keys: &mut Option<EventStream>) -> io::Result<Option<ViewEvent>> {
    let stream = keys.get_or_insert_with(EventStream::new);
    match stream.next().await {
        // The key reader may miss one that comes together with a key: the signal is heard apart.
        Some(Ok(crossterm::event::Event::Resize(..))) if cfg!(unix) => Ok(None),
        Some(event) => Ok(terminal::translate(event?)),
        None => Err(io::Error::other("the terminal is gone")),
    }
}

fn resized(width: u16, height: u16) -> Event {
    Event::View(ViewEvent::Resize { width, height })
}

fn repaint(screen: &mut Screen, state: &mut State) -> io::Result<()> {
    let size = screen.size()?;
    // Not `clear`: that asks the terminal where its cursor is, and would wait for an answer among the keys.
    screen.resize(size.into())?;
    (state.view.width, state.view.height) = (size.width, size.height);
    Ok(())
}

/// Gives the terminal to the shell until the program is brought back.
fn suspend(screen: &mut Screen, keys: &mut Option<EventStream>) -> anyhow::Result<()> {
    // Two readers of one keyboard would each get half of it.
    *keys = None;
    terminal::suspend();
    *screen = terminal::enter()?;
    Ok(())
}

enum Signal {
    End,
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
            _ = self.interrupt.recv() => Signal::End,
            _ = self.quit.recv() => Signal::End,
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
