//! Panics: the terminal is given back before a word is printed, and a panic in a background task ends the
//! program in order, instead of tearing at a screen that goes on living or leaving a command waiting for an
//! answer that never comes.

use std::sync::{Mutex, Once, PoisonError};

use tokio::sync::Notify;

use super::terminal;

static REPORT: Mutex<Option<String>> = Mutex::new(None);
static HAPPENED: Notify = Notify::const_new();

/// Installs the hook; more than once does nothing.
pub fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let standard = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            tracing::error!(%info, "panic");
            if std::thread::current().name() == Some("main") {
                terminal::restore();
                standard(info);
                return;
            }
            let mut report = REPORT.lock().unwrap_or_else(PoisonError::into_inner);
            report.get_or_insert_with(|| info.to_string());
            HAPPENED.notify_one();
        }));
    });
}

/// Waits for a panic of a background task.
pub async fn happened() {
    HAPPENED.notified().await;
}

/// An error with what the first background panic said, if there was one.
pub fn check() -> anyhow::Result<()> {
    match REPORT.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(report) => anyhow::bail!("a background task failed: {report}"),
        None => Ok(()),
    }
}
