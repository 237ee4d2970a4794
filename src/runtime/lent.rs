//! The terminal lent to `ssh` or an editor. It runs in our own process group, so that the shell's job control holds for both:
//! Ctrl-Z at its password prompt stops both, `fg` brings both back.

use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use providers::model::SshEndpoint;
use tokio::process::{Child, Command};

use crate::app::event::Guest;

/// How long it may take to end when we are told to end ourselves.
const PATIENCE: Duration = Duration::from_millis(500);

pub struct Lent {
    pub guest: Guest,
    child: Child,
    /// The terminal as we gave it away.
    #[cfg(unix)]
    modes: Option<rustix::termios::Termios>,
}

impl Lent {
    /// Starts `ssh` on a terminal that was given back. Says why not when it cannot be started.
    pub fn to_ssh(endpoint: &SshEndpoint) -> Result<Self, String> {
        let mut command = Command::new("ssh");
        command.args(endpoint.arguments());
        Self::to(Guest::Ssh, command)
    }

    /// Starts the person's editor on a file: what `VISUAL` or `EDITOR` names, else what is there anyway.
    pub fn to_editor(file: &Path) -> Result<Self, String> {
        let named = ["VISUAL", "EDITOR"].into_iter().filter_map(|name| std::env::var(name).ok());
        let words = named.filter_map(|text| shell_words::split(&text).ok()).find(|words| !words.is_empty());
        let words = words.unwrap_or_else(|| vec![if cfg!(windows) { "notepad" } else { "vi" }.to_owned()]);
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).map_err(|error| providers::text::clean(&error.to_string()))?;
        }
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg(file);
        Self::to(Guest::Editor, command).map_err(|error| format!("{}: {error}", providers::text::clean(&words[0])))
    }

    fn to(guest: Guest, mut command: Command) -> Result<Self, String> {
        #[cfg(unix)]
        let modes = rustix::termios::tcgetattr(io::stdin()).ok();
        match command.kill_on_drop(true).spawn() {
            Ok(child) => Ok(Lent {
                guest,
                child,
                #[cfg(unix)]
                modes,
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err("there is no such program".to_owned()),
            Err(error) => Err(providers::text::clean(&error.to_string())),
        }
    }

    /// Waits for its end: an error says why nobody was logged in to the end.
    pub async fn ended(&mut self) -> Result<(), String> {
        match self.child.wait().await {
            Ok(status) => verdict(self.guest, status),
            Err(error) => Err(providers::text::clean(&error.to_string())),
        }
    }

    /// Ends it: politely, then not.
    pub async fn end(&mut self) {
        #[cfg(unix)]
        if let Some(pid) = self.child.id().and_then(|pid| rustix::process::Pid::from_raw(pid.try_into().ok()?)) {
            // One that is stopped hears nothing until it goes on; one that is gone already is as good.
            for signal in [rustix::process::Signal::TERM, rustix::process::Signal::CONT] {
                let _ = rustix::process::kill_process(pid, signal);
            }
            if tokio::time::timeout(PATIENCE, self.child.wait()).await.is_ok() {
                return;
            }
        }
        drop(self.child.kill().await);
    }

    /// Sets the terminal up as it was given away, whatever became of it: a program that is killed cleans
    /// nothing up. What was typed blindly is dropped.
    #[cfg(unix)]
    pub fn clean_up(&self, keyboard: bool) -> io::Result<()> {
        use rustix::termios::{OptionalActions, QueueSelector, tcflush, tcsetattr};
        if let Some(modes) = &self.modes {
            tcsetattr(io::stdin(), OptionalActions::Now, modes)?;
        }
        super::terminal::clean_up(keyboard)?;
        Ok(tcflush(io::stdin(), QueueSelector::IFlush)?)
    }

    #[cfg(not(unix))]
    pub fn clean_up(&self, _keyboard: bool) -> io::Result<()> {
        Ok(())
    }
}

/// `ssh` ends as what it ran there ended, and with 255 when it could not do its own part.
fn verdict(guest: Guest, status: ExitStatus) -> Result<(), String> {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return Err(format!("ended by signal {signal}"));
    }
    match status.code() {
        Some(255) if guest == Guest::Ssh => Err("no connection, or it broke off (255)".to_owned()),
        _ => Ok(()),
    }
}
