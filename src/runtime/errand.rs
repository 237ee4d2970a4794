//! The same loop without a screen: for one command, until a condition holds, or until a signal.

use std::time::Duration;

use super::effects::Performer;
use super::ending::Ending;
use super::keeper::Keeper;
use super::{Inbox, clock, crash, wait_until};
use crate::app::event::WorldEvent;
use crate::app::{self, Event, State};

/// A program state that runs without a screen.
pub struct Errand {
    pub state: State,
    performer: Performer,
    inbox: Inbox,
}

impl Errand {
    /// So long a channel is waited for when somebody ends the program.
    pub const LAST_WORDS: Duration = Duration::from_secs(1);
    /// So long a command waits for what channels answer to what it told them.
    pub const PATIENCE: Duration = Duration::from_secs(5);

    pub fn new(state: State, performer: Performer, inbox: Inbox) -> Self {
        crash::install();
        Errand { state, performer, inbox }
    }

    /// Begins: the ledger is claimed and read.
    pub fn start(&mut self) {
        let effects = app::update::start(&mut self.state, clock::now());
        effects.into_iter().for_each(|effect| drop(self.performer.perform(effect)));
    }

    /// Takes in one event.
    pub fn take(&mut self, event: Event) {
        let effects = app::take(&mut self.state, event, clock::now());
        effects.into_iter().for_each(|effect| drop(self.performer.perform(effect)));
    }

    /// The ledger, for what is asked of it beside the loop.
    pub fn keeper(&self) -> &Keeper {
        &self.performer.keeper
    }

    /// Waits until the ledger has done all that it was asked for so far, and takes in what it answered.
    pub async fn catch_up(&mut self) {
        loop {
            self.performer.keeper.reached().await;
            while let Some(event) = self.inbox.ready() {
                self.take(event);
            }
            // Much of what machines did comes a part at a time, each asked for when the one before is there.
            if self.state.world.gauges.are_recalled() {
                return;
            }
        }
    }

    /// Finishes what is to be written down, gives the claim back and returns what is known.
    pub fn end(mut self) -> State {
        let effect = app::update::keep_usage(&mut self.state);
        effect.into_iter().for_each(|effect| drop(self.performer.perform(effect)));
        let collects = self.state.world.collects();
        self.performer.keeper.end(collects);
        self.state
    }

    /// Runs until `done` says so. `done` sees the state after every event. Fails when a background task did.
    pub async fn run_until(&mut self, mut done: impl FnMut(&State) -> bool) -> anyhow::Result<()> {
        while !done(&self.state) {
            let now = clock::now();
            let event = tokio::select! {
                Some(event) = self.inbox.next() => event,
                () = wait_until(app::next_wake(&self.state, now), now) => Event::World(WorldEvent::Tick),
                () = crash::happened() => return crash::check(),
            };
            self.take(event);
        }
        Ok(())
    }

    /// Runs until a signal ends it. `see` sees the state after every event. Fails when a background task did.
    pub async fn run_until_ended(&mut self, ending: &mut Ending, mut see: impl FnMut(&State)) -> anyhow::Result<()> {
        let seeing = self.run_until(|state| {
            see(state);
            false
        });
        tokio::select! {
            failed = seeing => failed?,
            () = ending.wanted() => {}
        }
        let effects = app::update::leave_now(&mut self.state, clock::now());
        effects.into_iter().for_each(|effect| drop(self.performer.perform(effect)));
        self.hear_channels(Self::LAST_WORDS).await;
        Ok(())
    }

    /// Waits for what channels answer to what was sent, but not for long: without an answer it would be sent again.
    pub async fn hear_channels(&mut self, longest: Duration) {
        let hearing = async {
            while !self.state.world.alerting.dispatch.awaits_nothing() {
                let Some(event) = self.inbox.next().await else { return };
                if matches!(event, Event::World(WorldEvent::Sent { .. })) {
                    self.take(event);
                }
            }
        };
        // What does not answer is said to be there perhaps, next time.
        drop(tokio::time::timeout(longest, hearing).await);
    }
}
