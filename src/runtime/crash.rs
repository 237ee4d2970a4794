//! Panics: the terminal is given back before a word is printed, and a panic in a background task ends the
//! program in order instead of tearing at a screen that goes on living.

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
            if std::thread::current().name() == Some("main") || !terminal::is_up() {
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

/// What the first background panic said.
pub fn report() -> Option<String> {
    REPORT.lock().unwrap_or_else(PoisonError::into_inner).take()
}
