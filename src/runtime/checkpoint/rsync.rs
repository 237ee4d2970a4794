//! `rsync`, where both sides have it: it brings only what differs within a file, too. What it brought is verified like
//! anything else.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::process::Stdio;
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

use super::copy::words;
use super::meter::Meter;
use super::remote::Remote;
use super::store::{Missing, PARTIAL, Store, local};
use super::{Work, blocking};
use crate::rules::checkpoint::{Trouble, rsync};
use crate::runtime::process::Running;
use crate::runtime::streams::{keep_last, last_line};

/// The script that stands between `rsync` and `ssh`, in the folder of what is in the making.
const SHELL: &str = "rsh";

/// Whether `rsync` is here, in a version whose words are known. What a Mac brings along is another program.
pub(super) async fn is_here() -> bool {
    let mut command = Command::new("rsync");
    command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    command.output().await.is_ok_and(|told| told.stdout.starts_with(b"rsync  version 3."))
}

impl Work {
    pub(super) async fn bring_by_rsync(&self, store: &Arc<Store>, missing: &Missing) -> Result<(), Trouble> {
        let Some(script) = shell_script(&self.remote) else {
            return Err(Trouble::Link(crate::rules::streams::Trouble::NoProgram));
        };
        let to = store.clone();
        blocking(move || {
            let mut file = to.create(SHELL)?;
            file.write_all(script.as_bytes()).map_err(|error| local(SHELL, error))
        })
        .await?;
        let mut command = Command::new("rsync");
        // The script is named by its bare name, since a path would be parted at its blanks.
        command.current_dir(store.incoming_path()).args(["-e", &format!("sh {SHELL}")]);
        command.args(["--files-from=-", "-0", "-t", "--no-links", "--no-devices", "--no-specials"]);
        command.arg(format!("--partial-dir={PARTIAL}")).args(["--timeout=60", "--out-format=%b %l"]);
        command.args(["--", "machine:.", ".."]).env("LC_ALL", "C");
        command.env("SSH_ASKPASS", "false").env("SSH_ASKPASS_REQUIRE", "force");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command.process_group(0);
        self.meter.waits(true);
        let (code, errors) = follow(command, words(missing.files.keys()), &self.meter).await?;
        self.meter.waits(false);
        if code != Some(0) && errors.contains("No space left on device") {
            return Err(Trouble::NoRoom { need: 0, free: 0 });
        }
        rsync::ended(code, last_line(&errors).unwrap_or_default())
    }
}

/// Runs it to its end, and counts what came.
async fn follow(mut command: Command, names: Vec<u8>, meter: &Meter) -> Result<(Option<i32>, String), Trouble> {
    let failed = |error: io::Error| local("rsync", error);
    let mut running = Running(command.spawn().map_err(failed)?);
    let child = &mut running.0;
    let (Some(mut stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(Trouble::Rsync { code: None, complaint: String::new() });
    };
    let mut errors = Vec::new();
    let writing = async {
        // When it ends before it has read everything, its code says so.
        drop(stdin.write_all(&names).await);
        drop(stdin);
    };
    let counting = async {
        let mut lines = BufReader::new(stdout).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            // What went over the wire, and the length of the file.
            let length = line.split_once(' ').and_then(|(_, length)| length.parse().ok());
            meter.add(length.unwrap_or_default());
        }
    };
    tokio::join!(writing, counting, keep_last(stderr, &mut errors));
    let status = running.0.wait().await.map_err(failed)?;
    Ok((status.code(), String::from_utf8_lossy(&errors).into_owned()))
}

/// The very same call of `ssh` as for anything else, around what `rsync` wants to run. `None` where it cannot be
/// written, or nothing is connected to.
fn shell_script(remote: &Remote) -> Option<String> {
    let command = remote.ssh.unattended(&remote.target, "")?;
    let command = command.as_std();
    let quoted = |word: &OsStr| word.to_str().map(|word| shell_words::quote(word).into_owned());
    let folder = quoted(command.get_current_dir()?.as_os_str())?;
    let mut words: Vec<String> =
        std::iter::once(command.get_program()).chain(command.get_args()).map(quoted).collect::<Option<_>>()?;
    // The script of the machine, empty so far.
    words.pop();
    // The first word is the name of the machine, which stands in the call of `ssh` already.
    Some(format!(
        "shift\ncd {folder} || exit 255\nexec {} \"exec sh -c 'cd /\nexec \\\"\\$@\\\"' sh $*\"\n",
        words.join(" ")
    ))
}
