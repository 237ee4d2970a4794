//! What the adapter needs of the world outside: how links stand, one command on a machine, and a small memory.
//! Whoever keeps the person's own `ssh` running offers it.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::{AccountName, ResourceId, SshEndpoint};

/// How a link to a machine stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// When it last told something; `None` when it never did in this run.
    pub heard: Option<Timestamp>,
    /// How the last connection, or the try to make one, ended; `None` while one stands.
    pub end: Option<End>,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub at: Timestamp,
    /// Nobody answers at the address. False when somebody does who lets nobody in, or it is not known.
    pub silent: bool,
}

/// What became of one command on a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ran {
    /// It ran to its end. `complaint` is the first line of its error output, cleaned and cut; mostly empty.
    Ended { code: i32, complaint: String },
    /// It had begun when the connection was cut.
    Cut,
    /// It had begun, and did not end within this.
    TooLong { after: Duration },
    /// No command was run. `silent`: nobody answers at the address.
    NotBegun { silent: bool, message: String },
}

/// A stop of our own that a machine accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnStop {
    pub accepted: Timestamp,
    /// Since when nobody answers there; `None` until that was seen.
    pub off_since: Option<Timestamp>,
}

/// Machines, as the person's own `ssh` reaches them.
#[async_trait]
pub trait Shell: fmt::Debug + Send + Sync {
    /// How the link to a machine stands; `None` when none was tried in this run, or its first try has not ended.
    fn link(&self, account: &AccountName, id: &ResourceId) -> Option<Link>;

    /// Runs one command on a machine, once.
    async fn run(&self, account: &AccountName, id: &ResourceId, endpoint: &SshEndpoint, command: &str) -> Ran;

    /// The last stop of ours that a machine accepted and did not come back from, whichever process sent it.
    async fn own_stop(&self, account: &AccountName, id: &ResourceId) -> Option<OwnStop>;

    /// Remembers a stop beyond this program, or with `None` that the machine is back.
    async fn note_own_stop(&self, account: &AccountName, id: &ResourceId, stop: Option<OwnStop>);
}
