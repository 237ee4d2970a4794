//! A child process that never outlives whoever started it.

use tokio::process::Child;

/// A process with all that it has started, which is ended when this is dropped.
pub(super) struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        // A jump host's `ssh` is one of its group. There is no id once it was waited for.
        #[cfg(unix)]
        if let Some(pid) = self.0.id().and_then(|pid| rustix::process::Pid::from_raw(pid.try_into().ok()?)) {
            // One that has just ended is as good.
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
    }
}
