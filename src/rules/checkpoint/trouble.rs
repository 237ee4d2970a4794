//! What a stage of a checkpoint tells, and what can go wrong with it.

use serde::{Deserialize, Serialize};

use super::{Progress, Proof};
use crate::rules::streams;

/// What whoever performs a stage says of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// It goes on.
    Sign(Progress),
    /// The stage is done.
    Done(Progress),
    /// The last stage is done: both sides agree.
    Verified(Proof),
    Failed(Trouble),
}

/// Why there is no checkpoint. Texts from outside are cleaned and cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// Nobody knows where `ssh` reaches the machine.
    NoAddress,
    /// The connection.
    Link(streams::Trouble),
    /// Nothing was heard of it for long.
    Stalled,
    /// The machine lacks a program.
    NoTool(String),
    /// Paths that are not on the machine.
    Missing(Vec<String>),
    /// The paths hold no file: what is worth keeping is somewhere else.
    Nothing,
    /// Files that could not be read there.
    Unreadable { files: u64, first: String },
    /// Files that are still being written.
    NotQuiet { files: u64, first: String },
    /// Files that changed while they were copied.
    Changed { files: u64, first: String },
    /// Files whose copy is not what is on the machine.
    Differs { files: u64, first: String },
    /// The folder here has not enough room; in bytes.
    NoRoom { need: u64, free: u64 },
    /// The folder here cannot be written.
    Local(String),
    /// Two names there are one here, or a name cannot be written here.
    Name(String),
    /// A command of the recipe ended with this code.
    Command { command: Which, code: i32, complaint: String },
    /// `rsync` ended with this code; `None` when it was killed.
    Rsync { code: Option<i32>, complaint: String },
    /// A path that does not lie on storage which outlives the machine.
    NotOnVolume { path: String },
    /// What came was not what was asked for.
    Garbled(String),
}

/// A command of a recipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    Prepare,
    Run,
    Verify,
    Listing,
}

impl Trouble {
    /// Whether the same may go well later, without anybody doing anything.
    pub fn may_pass(&self) -> bool {
        match self {
            Trouble::Link(trouble) => !trouble.is_lasting(),
            Trouble::Stalled | Trouble::NotQuiet { .. } | Trouble::Changed { .. } | Trouble::Differs { .. } => true,
            // rsync(1), "EXIT VALUES": protocol stream, signal, some files, vanished files, time-outs, and ssh's own.
            Trouble::Rsync { code, .. } => matches!(code, None | Some(10 | 12 | 20 | 23 | 24 | 30 | 35 | 255)),
            _ => false,
        }
    }
}
