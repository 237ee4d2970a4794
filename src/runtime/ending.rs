//! The signals that end a program without a screen.

use std::io;

#[cfg(unix)]
pub struct Ending {
    term: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Ending {
    /// From here on they end nothing by themselves.
    pub fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Ending {
            term: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for one of them.
    pub async fn wanted(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.hang_up.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(not(unix))]
pub struct Ending;

#[cfg(not(unix))]
impl Ending {
    pub fn listen() -> io::Result<Self> {
        Ok(Ending)
    }

    /// Waits for Ctrl-C.
    pub async fn wanted(&mut self) {
        // Where it cannot be heard it ends the program by itself.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
