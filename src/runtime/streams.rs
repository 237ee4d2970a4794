//! Streams to machines: the person's own `ssh`, one process each, whose lines become looks.

mod command;
mod host_keys;
mod listening;
mod said;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{PipeReader, PipeWriter};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jiff::SignedDuration;
use providers::model::Identity;
use tokio::process::Command;
use tokio::task::AbortHandle;

pub(super) use self::command::Ssh;
use self::host_keys::HostKeys;
use super::shell::Links;
use super::{Outbox, clock};
use crate::app::Event;
use crate::app::event::WorldEvent;
use crate::rules::probe;
use crate::rules::streams::{Target, Told, Trouble};

pub(super) use self::said::{Spoken, is_silence, last_line, says_silence, trouble};

pub use self::command::program;

/// The file of host keys, in the state folder.
pub const KNOWN_HOSTS: &str = "known_hosts";

/// An input that lasts as long as this program, however it ends, and holds nothing. Its end tells the far side that
/// nobody listens any more. All streams share it: each of its own would take two more open files.
#[derive(Clone, Default)]
struct Held(Arc<OnceLock<Option<(PipeReader, PipeWriter)>>>);

impl Held {
    /// An input that has ended where none can be made: the far side then notices with its next look.
    fn input(&self) -> Stdio {
        let pipe = self.0.get_or_init(|| std::io::pipe().ok()).as_ref();
        pipe.and_then(|(reader, _)| reader.try_clone().ok()).map_or_else(Stdio::null, Stdio::from)
    }
}

/// All streams that are open.
#[derive(Clone)]
pub struct Streams {
    open: Arc<Mutex<BTreeMap<Identity, AbortHandle>>>,
    ssh: Ssh,
    host_keys: HostKeys,
    links: Links,
    outbox: Outbox,
    held: Held,
}

impl Streams {
    /// Streams by the `ssh` on the path. `known_hosts` is a file of our own, in a folder that is there.
    pub fn new(known_hosts: PathBuf, outbox: Outbox) -> Self {
        let ssh = Ssh::new(Some(program(None)), &known_hosts);
        Streams {
            open: Arc::default(),
            ssh,
            host_keys: HostKeys::new(known_hosts),
            links: Links::default(),
            outbox,
            held: Held::default(),
        }
    }

    /// The same by another program; by `None` nothing is ever connected to.
    pub fn by(self, program: Option<OsString>) -> Self {
        Streams { ssh: self.ssh.by(program), ..self }
    }

    /// How their links stand, for whoever asks between events.
    pub fn links(&self) -> Links {
        self.links.clone()
    }

    /// How `ssh` is called.
    pub(super) fn ssh(&self) -> Ssh {
        self.ssh.clone()
    }

    /// Opens a stream in place of the one that is there. With `new_key` the key that its host had is forgotten before.
    pub fn open(&self, identity: Identity, number: u64, target: Target, pace: SignedDuration, new_key: bool) {
        let (streams, told_of) = (self.clone(), identity.clone());
        let task = tokio::spawn(async move {
            let tell = |told| {
                streams.links.note(&told_of, &told, clock::now());
                streams.outbox.put(Event::World(WorldEvent::Stream { identity: told_of.clone(), number, told }));
            };
            let trouble = streams.listen(&target, pace, new_key, |usage| tell(Told::Usage(Box::new(usage)))).await;
            tracing::debug!(alias = target.alias, ?trouble, "a stream ended");
            tell(Told::Ended(trouble));
        });
        let mut open = self.lock();
        open.retain(|_, task| !task.is_finished());
        open.insert(identity, task.abort_handle()).iter().for_each(AbortHandle::abort);
    }

    pub fn close(&self, identity: &Identity) {
        self.lock().remove(identity).iter().for_each(AbortHandle::abort);
    }

    /// What opens a shell on a machine: with its own host key, and whatever else the person's config says.
    pub fn shell(&self, target: &Target) -> Command {
        self.ssh.shell(target)
    }

    /// Looks into a machine until that ends, and says why it ended.
    async fn listen(
        &self,
        target: &Target,
        pace: SignedDuration,
        new_key: bool,
        tell: impl FnMut(providers::usage::Usage),
    ) -> Trouble {
        let remote = format!("{}\necho {}", probe::command(pace), listening::END);
        let Some(mut command) = self.ssh.unattended(target, &remote) else { return Trouble::NoProgram };
        command.stdin(self.held.input());
        let forgotten = new_key.then(|| target.alias.clone());
        if let Err(error) = self.host_keys.prepare(forgotten).await {
            tracing::warn!(%error, "host keys cannot be kept");
            return Trouble::Said(format!("{KNOWN_HOSTS}: {}", providers::text::clean(&error.to_string())));
        }
        listening::listen(command, &target.alias, tell).await
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Identity, AbortHandle>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
