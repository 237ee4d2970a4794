//! Streams to machines: the person's own `ssh`, one process each, whose lines become looks.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::SignedDuration;
use providers::model::Identity;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::task::AbortHandle;

use super::shell::Links;
use super::{Outbox, clock};
use crate::app::Event;
use crate::app::event::WorldEvent;
use crate::rules::probe::{self, Reader};
use crate::rules::streams::{Target, Told, Trouble};

/// The file of host keys, in the state folder.
pub const KNOWN_HOSTS: &str = "known_hosts";

/// All streams that are open.
#[derive(Clone)]
pub struct Streams {
    open: Arc<Mutex<BTreeMap<Identity, AbortHandle>>>,
    /// A file of our own, in the state folder.
    known_hosts: PathBuf,
    links: Links,
    outbox: Outbox,
}

impl Streams {
    pub fn new(known_hosts: PathBuf, outbox: Outbox) -> Self {
        Streams { open: Arc::default(), known_hosts, links: Links::default(), outbox }
    }

    /// How their links stand, for whoever asks between events.
    pub fn links(&self) -> Links {
        self.links.clone()
    }

    pub fn open(&self, identity: Identity, number: u64, target: Target, pace: SignedDuration) {
        let (outbox, links, told_of) = (self.outbox.clone(), self.links.clone(), identity.clone());
        let command = self.command(&target, pace);
        let task = tokio::spawn(async move {
            let tell = |told| {
                links.note(&told_of, &told, clock::now());
                outbox.put(Event::World(WorldEvent::Stream { identity: told_of.clone(), number, told }));
            };
            let trouble = listen(command, |usage| tell(Told::Usage(Box::new(usage)))).await;
            tell(Told::Ended(trouble));
        });
        let before = self.lock().insert(identity, task.abort_handle());
        before.iter().for_each(AbortHandle::abort);
    }

    pub fn close(&self, identity: &Identity) {
        self.lock().remove(identity).iter().for_each(AbortHandle::abort);
    }

    /// Takes a name's key out of our file: whatever key its host has the next time is the right one.
    pub fn forget_host_key(&self, alias: &str) {
        let (file, alias) = (self.known_hosts.clone(), alias.to_owned());
        tokio::task::spawn_blocking(move || {
            let of_another = |line: &&str| line.split_whitespace().next() != Some(alias.as_str());
            let kept = std::fs::read_to_string(&file)
                .map(|text| text.lines().filter(of_another).map(|line| format!("{line}\n")).collect::<String>());
            if let Err(error) = kept.and_then(|kept| std::fs::write(&file, kept)) {
                tracing::warn!(%error, "a host key could not be forgotten");
            }
        });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Identity, AbortHandle>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn command(&self, target: &Target, pace: SignedDuration) -> Command {
        let mut command = Command::new("ssh");
        let endpoint = &target.endpoint;
        command.args(["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5"]);
        command.args(["-o", "ServerAliveCountMax=2", "-o", "LogLevel=INFO", "-o", "StrictHostKeyChecking=accept-new"]);
        command.args(["-o", "ControlMaster=no", "-o", "ControlPath=none"]);
        command.arg("-o").arg(format!("HostKeyAlias={}", target.alias));
        command.arg("-o").arg(format!("UserKnownHostsFile={}", self.known_hosts.display()));
        command.args(endpoint.arguments()).arg(probe::command(pace));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        command.env("LC_ALL", "C");
        command
    }
}

/// Reads a stream to its end, and says why it ended.
async fn listen(mut command: Command, mut tell: impl FnMut(providers::usage::Usage)) -> Trouble {
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Trouble::NoProgram,
        Err(error) => return Trouble::Said(providers::text::clean(&error.to_string())),
    };
    let Some(output) = child.stdout.take() else { return Trouble::Ended };
    let (mut lines, mut reader) = (BufReader::new(output).lines(), Reader::default());
    while let Ok(Some(line)) = lines.next_line().await {
        if let Some(usage) = reader.line(&line, clock::now()) {
            tell(usage);
        }
    }
    Trouble::Ended
}
