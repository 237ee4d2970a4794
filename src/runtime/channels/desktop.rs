//! Notices of the desktop. Over ssh there is none of this machine that the person would see: the terminal tells it.

use providers::channels::{Text, cut};
use providers::text::clean;

use super::later;
use crate::config::{Environment, process_environment};
use crate::rules::dispatch::Delivery;

/// What a terminal is told at once, in bytes.
const LINE_BYTES: usize = 240;

/// Shows a notice; else why not.
pub async fn tell(text: &Text) -> Result<(), Delivery> {
    if is_remote(&process_environment) {
        return Err(later("this runs over ssh, where no desktop is".to_owned()));
    }
    show(text).await
}

/// The terminal is elsewhere.
fn is_remote(environment: &Environment) -> bool {
    ["SSH_TTY", "SSH_CONNECTION"].iter().any(|name| environment(name).is_some_and(|value| !value.is_empty()))
}

/// On a thread of its own, with a limit: the bus may not answer.
#[cfg(feature = "desktop")]
async fn show(text: &Text) -> Result<(), Delivery> {
    use std::time::Duration;

    const LONGEST: Duration = Duration::from_secs(3);
    let (title, body) = (clean(&text.title), text.lines.iter().map(|line| clean(line)).collect::<Vec<_>>().join("\n"));
    // Some desktops read it as markup.
    let body = body.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let (answer, asked) = tokio::sync::oneshot::channel();
    let showing = move || {
        let shown = notify_rust::Notification::new().appname("rentop").summary(&title).body(&body).show();
        // Nobody waits for it any more when it took too long.
        drop(answer.send(shown.map(drop).map_err(|error| error.to_string())));
    };
    if let Err(error) = std::thread::Builder::new().name("desktop notice".to_owned()).spawn(showing) {
        return Err(later(clean(&error.to_string())));
    }
    match tokio::time::timeout(LONGEST, asked).await {
        Ok(Ok(Ok(()))) => Ok(()),
        Ok(Ok(Err(error))) => Err(later(format!("no desktop takes it: {}", providers::text::excerpt(&error, 160)))),
        Ok(Err(_)) => Err(later("the notice was not shown".to_owned())),
        Err(_) => {
            let why = format!("the desktop did not answer within {} s", LONGEST.as_secs());
            Err(Delivery::Later { wait: None, why, perhaps: true })
        }
    }
}

#[cfg(not(feature = "desktop"))]
async fn show(_: &Text) -> Result<(), Delivery> {
    Err(later("this rentop was built without notices of the desktop".to_owned()))
}

/// The text in one line, for a terminal.
pub fn one_line(text: &Text) -> String {
    let line = std::iter::once(&text.title).chain(&text.lines).map(|line| clean(line)).collect::<Vec<_>>().join(" · ");
    cut(&line, LINE_BYTES).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use providers::channels::Weight;
    use std::ffi::OsString;

    #[test]
    fn over_ssh_no_desktop_is_asked() {
        for (variable, value, expected) in [
            ("SSH_TTY", "/dev/pts/1", true),
            ("SSH_CONNECTION", "a b", true),
            ("SSH_TTY", "", false),
            ("X", "1", false),
        ] {
            let environment = move |name: &str| (name == variable).then(|| OsString::from(value));
            assert_eq!(is_remote(&environment), expected, "{variable}={value}");
        }
    }

    #[test]
    fn a_terminal_is_told_one_clean_short_line() {
        let lines = vec!["idle: a\u{1b}]52;c;x\u{7}b".to_owned(), "闲".repeat(200)];
        let text =
            Text { title: "rentop on lab".to_owned(), lines, weight: Weight::Note, record: serde_json::Value::Null };
        let line = one_line(&text);
        assert!(line.starts_with("rentop on lab · idle: ab · 闲闲") && line.ends_with('…'), "{line}");
        assert!(line.len() <= LINE_BYTES && !line.contains(char::is_control));
    }
}
