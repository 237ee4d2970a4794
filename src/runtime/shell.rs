//! What machines without an API need of this program: how their links stand, one command on one of them, and which
//! of them a stop of ours has ended.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use providers::model::{AccountName, Identity, ResourceId, ResourceKind, SshEndpoint};
use providers::ssh::{End, Link, NAME, OwnStop, Ran, Shell};
use providers::text::clean;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::process::Child;

use super::streams::{Ssh, Streams, is_silence, last_line, says_silence};
use crate::rules::streams::{Target, Told, host_key_alias};

/// The folder of stops that are remembered, in the state folder: a file a machine.
const STOPS: &str = "stops";
/// The longest that one command may take, the connection to it included.
const LONGEST: Duration = Duration::from_secs(60);
/// After the command has ended, `ssh` has this to end as well.
const LINGER: Duration = Duration::from_secs(1);
/// More of what a command says is not read.
const OUTPUT_BYTES: u64 = 64 * 1024;
/// Told on the machine before the command and after it, so that an end of the connection is no end of the command.
const BEGUN: &str = "@rentop-begun";
const ENDED: &str = "@rentop-ended";

/// How links stand, as the streams tell it. Copies are of the same.
#[derive(Clone, Debug, Default)]
pub struct Links(Arc<Mutex<BTreeMap<(AccountName, ResourceId), Link>>>);

impl Links {
    /// Takes in what a stream told.
    pub fn note(&self, identity: &Identity, told: &Told, now: Timestamp) {
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let link = links.entry((identity.account.clone(), identity.id.clone())).or_default();
        match told {
            Told::Usage(_) => *link = Link { heard: Some(now), end: None },
            Told::Ended(trouble) => link.end = Some(End { at: now, silent: is_silence(trouble) }),
        }
    }

    fn get(&self, account: &AccountName, id: &ResourceId) -> Option<Link> {
        let links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        links.get(&(account.clone(), id.clone())).copied()
    }
}

/// The person's own `ssh`.
#[derive(Debug)]
pub struct OwnSsh {
    links: Links,
    stops: PathBuf,
    ssh: Ssh,
}

impl OwnSsh {
    pub fn new(state_dir: &Path, streams: &Streams) -> Self {
        OwnSsh { links: streams.links(), stops: state_dir.join(STOPS), ssh: streams.ssh() }
    }

    fn stop_file(&self, account: &AccountName, id: &ResourceId) -> PathBuf {
        self.stops.join(format!("{}.json", host_key_alias(&NAME.into(), &identity(account, id))))
    }
}

/// They are what the config says, so that there is one generation of each.
fn identity(account: &AccountName, id: &ResourceId) -> Identity {
    Identity { account: account.clone(), kind: ResourceKind::Instance, id: id.clone(), generation: 0 }
}

/// Runs one command on a machine to its end.
pub(super) async fn run_there(ssh: &Ssh, target: &Target, command: &str) -> Ran {
    let Some(mut ssh) = ssh.unattended(target, &wrapped(command)) else {
        return Ran::NotBegun { silent: false, message: "nothing is connected to".to_owned() };
    };
    match ssh.spawn() {
        Ok(child) => follow(child, &target.alias, LONGEST).await,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Ran::NotBegun { silent: false, message: "there is no program `ssh`".to_owned() }
        }
        Err(error) => Ran::NotBegun { silent: false, message: clean(&error.to_string()) },
    }
}

/// The command with its marks, for whatever shell the person has there.
fn wrapped(command: &str) -> String {
    let script = format!("echo {BEGUN}; (\n{command}\n); echo {ENDED} $?");
    format!("exec sh -c {}", shell_words::quote(&script))
}

#[async_trait]
impl Shell for OwnSsh {
    fn link(&self, account: &AccountName, id: &ResourceId) -> Option<Link> {
        self.links.get(account, id)
    }

    async fn run(&self, account: &AccountName, id: &ResourceId, endpoint: &SshEndpoint, command: &str) -> Ran {
        let target = Target::new(&NAME.into(), &identity(account, id), endpoint);
        run_there(&self.ssh, &target, command).await
    }

    async fn own_stop(&self, account: &AccountName, id: &ResourceId) -> Option<OwnStop> {
        let file = self.stop_file(account, id);
        // What cannot be read is no proof of a stop.
        let bytes = tokio::fs::read(file).await.ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    async fn note_own_stop(&self, account: &AccountName, id: &ResourceId, stop: Option<OwnStop>) {
        let file = self.stop_file(account, id);
        let noting = tokio::task::spawn_blocking(move || note(&file, stop));
        match noting.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%account, %id, %error, "a stop could not be remembered"),
            Err(error) => tracing::warn!(%account, %id, %error, "a stop was not remembered"),
        }
    }
}

/// Writes the file whole or not at all.
fn note(file: &Path, stop: Option<OwnStop>) -> io::Result<()> {
    let Some(stop) = stop else {
        return match std::fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    };
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let new = file.with_extension("new");
    std::fs::write(&new, serde_json::to_vec(&stop)?)?;
    std::fs::rename(new, file)
}

/// Follows one command to its end.
async fn follow(mut child: Child, alias: &str, longest: Duration) -> Ran {
    let (Some(output), Some(errors)) = (child.stdout.take(), child.stderr.take()) else {
        return Ran::NotBegun { silent: false, message: "its output cannot be read".to_owned() };
    };
    let complaining = tokio::spawn(complained(errors));
    let (mut begun, mut code) = (false, None);
    let telling = async {
        let mut lines = BufReader::new(output.take(OUTPUT_BYTES)).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            begun |= line.trim_end() == BEGUN;
            if let Some(told) = line.strip_prefix(ENDED) {
                code = told.trim().parse().ok();
                break;
            }
        }
    };
    let in_time = tokio::time::timeout(longest, telling).await.is_ok();
    // What the command left behind may hold the connection open: it is not waited for.
    let ended = tokio::time::timeout(LINGER, child.wait()).await;
    drop(child);
    let complaint = tokio::time::timeout(LINGER, complaining).await.ok().and_then(Result::ok).unwrap_or_default();
    let reason = last_line(&complaint);
    tracing::debug!(begun, ?code, in_time, ?ended, "a command on a machine");
    match (begun, code) {
        (true, Some(code)) => Ran::Ended { code, complaint: reason.unwrap_or_default() },
        (true, None) if in_time => Ran::Cut,
        (true, None) => Ran::TooLong { after: longest },
        (false, _) if in_time => {
            let message = reason.unwrap_or_else(|| "ssh ended without a word".to_owned());
            Ran::NotBegun { silent: says_silence(&complaint, alias), message }
        }
        (false, _) => Ran::NotBegun { silent: false, message: format!("no answer within {} s", longest.as_secs()) },
    }
}

/// What was said on the error output, as far as it can be read.
async fn complained(errors: impl AsyncRead + Unpin) -> String {
    let mut said = Vec::new();
    let mut errors = errors.take(OUTPUT_BYTES);
    while matches!(errors.read_buf(&mut said).await, Ok(1..)) {}
    String::from_utf8_lossy(&said).into_owned()
}

#[cfg(all(test, unix))]
#[path = "shell_tests.rs"]
mod tests;
