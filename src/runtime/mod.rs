//! The one home of tasks, sockets and the wall clock: it performs effects and turns each outcome into an
//! event.

pub mod accounts;
mod awake;
pub mod channels;
pub mod checkpoint;
pub mod clock;
pub mod crash;
pub mod effects;
pub mod ending;
pub mod errand;
pub mod input;
pub mod jobs;
pub mod keeper;
pub mod keyboard;
pub mod lent;
pub mod preferences;
mod process;
pub mod questions;
pub mod screen;
pub mod shell;
pub mod streams;
pub mod terminal;

use jiff::Timestamp;
use tokio::sync::mpsc;

use crate::app::Event;

/// Where outcomes arrive.
pub struct Inbox {
    receiver: mpsc::UnboundedReceiver<Event>,
}

/// Where whoever performs an effect puts its outcome.
#[derive(Clone, Debug)]
pub struct Outbox(mpsc::UnboundedSender<Event>);

impl Outbox {
    pub fn put(&self, event: Event) {
        // Nobody listens any more only when the program is ending; the outcome then belongs to nobody.
        drop(self.0.send(event));
    }
}

impl Inbox {
    pub fn new() -> (Inbox, Outbox) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Inbox { receiver }, Outbox(sender))
    }

    /// The next event. Never ends while the program runs: the performer holds an outbox.
    pub async fn next(&mut self) -> Option<Event> {
        self.receiver.recv().await
    }

    /// What has already arrived.
    pub fn ready(&mut self) -> Option<Event> {
        self.receiver.try_recv().ok()
    }
}

/// Waits until a moment; for ever when there is none.
pub async fn wait_until(moment: Option<Timestamp>, now: Timestamp) {
    match moment {
        None => std::future::pending().await,
        Some(moment) => {
            let wait = moment.duration_since(now);
            tokio::time::sleep(std::time::Duration::try_from(wait).unwrap_or_default()).await;
        }
    }
}
