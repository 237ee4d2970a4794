//! `rentop watch` in the background, and what it says.

use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::Lab;
use super::stage::wait_until;

pub struct Watch {
    pub child: Child,
    said: std::path::PathBuf,
}

impl Watch {
    /// Starts it and returns at once.
    pub fn start(lab: &Lab, args: &[&str]) -> Self {
        let said = tempfile::Builder::new().prefix("watch-").tempfile_in(lab.home.path()).unwrap();
        let (file, said) = said.keep().unwrap();
        let child = lab.command(&[&["watch"], args].concat()).stdout(Stdio::null()).stderr(file).spawn().unwrap();
        Watch { child, said }
    }

    /// Starts it and waits until it has seen every account.
    pub fn collecting(lab: &Lab) -> Self {
        let watch = Watch::start(lab, &[]);
        watch.wait_for("collects");
        wait_until("its first look", || {
            let (mut ledger, _) = rentop::ledger::Ledger::open(&lab.state_dir(), jiff::Timestamp::now()).unwrap();
            let accounts = ledger.recall(jiff::Timestamp::now()).unwrap().0.accounts;
            accounts.iter().filter(|account| account.as_of.is_some()).count() == lab.accounts.len()
        });
        watch
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Everything that it has said so far.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.said).unwrap()
    }

    #[track_caller]
    pub fn wait_for(&self, words: &str) {
        wait_until(&format!("`{words}` in: {}", self.said()), || self.said().contains(words));
    }

    /// Sends a signal and waits for its end. Returns how it ended and how long that took.
    pub fn end(&mut self, signal: Signal) -> (ExitStatus, Duration) {
        let began = Instant::now();
        kill_process(Pid::from_raw(self.child.id() as i32).unwrap(), signal).unwrap();
        (self.child.wait().unwrap(), began.elapsed())
    }
}

/// A test that fails leaves no process behind.
impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
