//! A checkpoint: what is brought to safety out of a machine, how, and what proves that the copy is whole.
//!
//! Whoever performs it (`runtime::checkpoint`) does one stage at a time and says how it went; `rules::saga` decides what
//! follows. Nothing here trusts the success of a command: a copy is one once both sides agree.

pub mod listing;
pub mod manifest;
pub mod mounts;
pub mod paths;
pub mod proposals;
pub mod rsync;
pub mod script;
mod thin;
mod trouble;

use jiff::{SignedDuration, Timestamp};
use providers::model::{Identity, Phase};
use serde::{Deserialize, Serialize};

use super::budgets::Scope;
use super::saga::OpId;
use super::streams::Target;

pub use thin::{place_of, surplus};
pub use trouble::{Told, Trouble, Which};

/// So long files must stay as they are before they count as whole, where the config does not say.
pub const QUIET: SignedDuration = SignedDuration::from_secs(10);

/// How results are brought to safety.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipe {
    /// Of the config's section; empty where somebody chose the paths by hand.
    pub name: String,
    /// Absolute, on the machine. Never empty.
    pub paths: Vec<String>,
    pub method: Method,
    /// Runs on the machine before anything is copied, a signal to the trainer for instance; it must end well.
    pub prepare: Option<String>,
    /// So long the files must stay as they are before they count as whole.
    pub quiet: SignedDuration,
}

/// Where a checkpoint goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Over the person's own `ssh` into a folder of this machine, absolute.
    Copy { to: String },
    /// By a command on the machine, which pushes somewhere else. That it ended well is no proof.
    Command { run: String, proof: CommandProof },
    /// The paths lie on storage that outlives the machine: what is written there is only brought to the disk.
    Volume,
}

/// What proves that a command brought everything to its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandProof {
    /// A command on the machine that compares, and ends well only if all is there.
    Verify(String),
    /// A command on the machine that lists what is there: a size in bytes, a blank and a path a line, the path as
    /// below one of the recipe's.
    Listing(String),
}

/// What the config says of checkpoints of some machines.
#[derive(Clone, Debug, PartialEq)]
pub struct RecipeRule {
    pub recipe: Recipe,
    pub scope: Scope,
    /// Between two copies that are made without a release; `None` makes none by itself.
    pub every: Option<SignedDuration>,
    pub keep: KeepRule,
}

/// Which of the older copies stay. The last verified one always does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepRule {
    /// So many of the latest.
    pub last: usize,
    /// The last one of each of so many days.
    pub days: usize,
}

impl Default for KeepRule {
    fn default() -> Self {
        KeepRule { last: 3, days: 7 }
    }
}

/// The parts of a checkpoint, each done only once the one before is on record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Runs what the recipe says, waits until the files are quiet, and lists them.
    Prepare,
    /// Brings over what is missing or differs.
    Copy,
    /// Compares both sides, and sees that nothing changed meanwhile.
    Verify,
}

impl Stage {
    /// The word of the journal and of `--json`.
    pub fn word(self) -> &'static str {
        match self {
            Stage::Prepare => "preparing",
            Stage::Copy => "copying",
            Stage::Verify => "checking_copy",
        }
    }
}

/// How far a stage is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    pub files: u64,
    /// Of all files together.
    pub bytes: u64,
    /// Of these, what this stage has done.
    pub done: u64,
    /// Bytes a second of late; `None` while there is nothing to count from.
    pub rate: Option<u64>,
}

/// What a checkpoint turned out to be: both sides were compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    pub at: Timestamp,
    pub files: u64,
    pub bytes: u64,
    /// Files that were being written and are not in it; never any before a release.
    #[serde(default)]
    pub left_out: u64,
    /// Where it is: a folder of this machine, or what the method is called.
    pub place: String,
    /// SHA-256 of the manifest, in hexadecimal; empty where the method has none.
    pub manifest: String,
}

/// A verified checkpoint on record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    pub op: OpId,
    pub identity: Identity,
    pub recipe: Recipe,
    pub proof: Proof,
}

/// One stage to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub op: OpId,
    /// Of the try that is meant: what an earlier one says does not count.
    pub number: u64,
    pub stage: Stage,
    pub recipe: Recipe,
    pub target: Target,
    /// The copy's own folder below that of the method: of the machine, then of the time.
    pub folder: String,
    /// What is still being written fails it, instead of being left out.
    pub whole: bool,
}

/// The folder of a machine's copies, and of one of them: made of what cannot be taken for anything else.
pub fn folder(provider: &str, name: &str, identity: &Identity, at: Timestamp) -> String {
    let time = at.strftime("%Y%m%dT%H%M%SZ");
    format!("{}/{}/{time}", part(&format!("{provider}-{}", identity.account)), part(&format!("{name}-{}", identity.id)))
}

/// A text as one part of a path: nothing in it leads elsewhere, or is hidden.
fn part(text: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
    let mut part: String = text.chars().map(plain).collect();
    while part.len() > 120 {
        part.pop();
    }
    part.strip_prefix('.').map(|rest| format!("_{rest}")).unwrap_or(part)
}

/// Whether a machine in this phase may be copied from. Where nobody knows, a try does no harm.
pub fn can_be_read(phase: Phase) -> bool {
    matches!(phase, Phase::Running | Phase::Unknown | Phase::Unreachable)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::rules::samples::identity;

    #[rstest]
    #[case("trainer", "vast-team/trainer-31/20261130T100000Z")]
    #[case("../../etc", "vast-team/_._.._etc-31/20261130T100000Z")]
    #[case("客户甲 1", "vast-team/客户甲_1-31/20261130T100000Z")]
    #[case("a\u{0}b/c", "vast-team/a_b_c-31/20261130T100000Z")]
    fn a_folder_is_named_by_what_leads_nowhere_else(#[case] name: &str, #[case] expected: &str) {
        let at: Timestamp = "2026-11-30T10:00:00Z".parse().unwrap();
        assert_eq!(folder("vast", name, &identity("team", "31"), at), expected);
    }
}
