//! This machine's sleep, held off where the system allows it.
//!
//! By the system's own tools: `systemd-inhibit` (Linux) and `caffeinate` (macOS), each around a `cat` that waits for the
//! end of its input. However this program ends, its end of the pipe is closed, and nothing is held off any more.

use std::process::Stdio;

use tokio::process::{Child, Command};

/// Sleep is held off until this is dropped; where the tools are not there it is not, and nothing is said of it.
#[derive(Debug)]
pub struct Awake {
    _holder: Option<Child>,
}

impl Awake {
    pub fn new() -> Self {
        let words: &[&str] = if cfg!(target_os = "macos") {
            &["caffeinate", "-i", "cat"]
        } else {
            &["systemd-inhibit", "--what=sleep:idle", "--who=rentop", "--why=copying results", "--mode=block", "cat"]
        };
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        #[cfg(unix)]
        command.process_group(0);
        let holder = command.spawn();
        if let Err(error) = &holder {
            tracing::debug!(%error, "sleep is not held off");
        }
        Awake { _holder: holder.ok() }
    }
}
