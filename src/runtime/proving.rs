//! Whether what is promised could be done: a key that can be used, a machine that `ssh` reaches, a folder that takes a
//! copy. Nothing is changed by it.

use std::path::Path;

use providers::ssh::Ran;
use providers::text::clean;

use super::Outbox;
use super::accounts::Accounts;
use super::shell::run_there;
use super::streams::Ssh;
use crate::app::Event;
use crate::app::event::WorldEvent;
use crate::rules::guard::{Trial, Unable};

/// What a machine is asked to do: nothing.
const NOTHING: &str = "true";
/// The file that is made and deleted again where copies go.
const PROBE: &str = ".rentop-probe";

/// Tries it out, and tells what came of it.
pub fn prove(trial: Trial, accounts: Accounts, ssh: Ssh, outbox: Outbox) {
    tokio::spawn(async move {
        let identity = trial.identity.clone();
        let unable = tried(trial, &accounts, &ssh).await.err();
        if let Some(unable) = &unable {
            tracing::warn!(%identity, ?unable, "what is promised could not be done");
        }
        outbox.put(Event::World(WorldEvent::Proven { identity, unable }));
    });
}

async fn tried(trial: Trial, accounts: &Accounts, ssh: &Ssh) -> Result<(), Unable> {
    if trial.key {
        let slot = accounts.get(&trial.identity.account);
        let slot = slot.ok_or_else(|| Unable::Key("the account is not in the config".to_owned()))?;
        slot.provider().await.map_err(|trouble| Unable::Key(trouble.line()))?;
    }
    if let Some((folder, need)) = trial.folder {
        let looking = tokio::task::spawn_blocking(move || takes(Path::new(&folder), need));
        looking.await.map_err(|error| Unable::Folder(error.to_string()))??;
    }
    match trial.target {
        None => Ok(()),
        Some(target) => reached(run_there(ssh, &target, NOTHING).await),
    }
}

fn reached(ran: Ran) -> Result<(), Unable> {
    match ran {
        Ran::Ended { code: 0, .. } => Ok(()),
        Ran::Ended { code, complaint } => Err(Unable::Ssh(format!("`{NOTHING}` ended with code {code} {complaint}"))),
        Ran::NotBegun { message, .. } => Err(Unable::Ssh(message)),
        Ran::Cut => Err(Unable::Ssh("the connection ended".to_owned())),
        Ran::TooLong { after } => Err(Unable::Ssh(format!("no end within {} s", after.as_secs()))),
    }
}

/// Whether a folder, or where it would be made, can be written and has room.
fn takes(folder: &Path, need: u64) -> Result<(), Unable> {
    let there = folder.ancestors().find(|path| path.exists()).unwrap_or(folder);
    let trouble = |error: std::io::Error| {
        Unable::Folder(format!("{}: {}", clean(&there.to_string_lossy()), clean(&error.to_string())))
    };
    let probe = there.join(format!("{PROBE}-{}", std::process::id()));
    std::fs::File::create_new(&probe).map_err(trouble)?;
    std::fs::remove_file(&probe).map_err(trouble)?;
    match free(there) {
        Some(free) if free < need => Err(Unable::NoRoom { need, free }),
        _ => Ok(()),
    }
}

/// Bytes that may be written there; `None` where the system does not tell.
#[cfg(unix)]
fn free(folder: &Path) -> Option<u64> {
    let told = rustix::fs::statvfs(folder).ok()?;
    told.f_bavail.checked_mul(told.f_frsize)
}

#[cfg(not(unix))]
fn free(_: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_takes_a_copy_when_it_can_be_written_and_has_room() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(takes(home.path(), 1), Ok(()));
        assert_eq!(takes(&home.path().join("not/yet"), 1), Ok(()));
        assert!(!home.path().join("not").exists(), "nothing is made by looking");
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
    }

    #[test]
    #[cfg(unix)]
    fn a_folder_without_room_is_told_with_both_figures() {
        let home = tempfile::tempdir().unwrap();
        let told = takes(home.path(), u64::MAX);
        assert!(matches!(told, Err(Unable::NoRoom { need: u64::MAX, free }) if free > 0), "{told:?}");
    }

    #[test]
    fn what_is_no_folder_takes_nothing() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("file");
        std::fs::write(&file, "").unwrap();
        let told = takes(&file.join("below"), 1);
        assert!(matches!(&told, Err(Unable::Folder(said)) if said.contains("file")), "{told:?}");
    }

    #[test]
    fn only_a_command_that_ended_well_reached_the_machine() {
        let silent = Ran::NotBegun { silent: true, message: "no answer".to_owned() };
        assert_eq!(reached(Ran::Ended { code: 0, complaint: String::new() }), Ok(()));
        for ran in [silent, Ran::Cut, Ran::Ended { code: 1, complaint: String::new() }] {
            assert!(matches!(reached(ran), Err(Unable::Ssh(_))));
        }
    }
}
