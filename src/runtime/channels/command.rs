//! A program of the person's own: it reads one object of JSON and ends with 0 when the news is delivered.

use std::io::{self, ErrorKind};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use providers::text::{clean, excerpt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, Command};

use super::later;
use crate::rules::dispatch::Delivery;

/// It has this long.
const LONGEST: Duration = Duration::from_secs(30);
/// After it has ended, its output has this to end as well.
const LINGER: Duration = Duration::from_secs(1);
/// More of what it says is not kept.
const OUTPUT_BYTES: u64 = 4096;
/// The longest excerpt of that, in characters.
const EXCERPT: usize = 160;

pub async fn tell(argv: &[String], record: &serde_json::Value) -> Delivery {
    tell_within(argv, record, LONGEST).await
}

async fn tell_within(argv: &[String], record: &serde_json::Value, longest: Duration) -> Delivery {
    let Some((program, arguments)) = argv.split_first() else { return later("no program is named".to_owned()) };
    let name = excerpt(program, EXCERPT);
    let failed = |error: io::Error| match error.kind() {
        ErrorKind::NotFound => later(format!("{name}: no such program")),
        _ => later(format!("{name}: {}", clean(&error.to_string()))),
    };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    // In a group of its own: it may not read our terminal, and is ended with all that it started.
    #[cfg(unix)]
    command.process_group(0);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return failed(error),
    };
    let mut group = Group(child.id());
    let input = format!("{record}\n");
    let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
    // Beside each other: one that talks much before it reads, or reads nothing at all, must not hang.
    let writing = tokio::spawn(write(stdin, input));
    let reading = tokio::spawn(read(stderr));
    let ended = tokio::time::timeout(longest, child.wait()).await;
    writing.abort();
    match ended {
        Err(_) => {
            let why = format!("{name}: not done within {} s, and ended", longest.as_secs_f32());
            Delivery::Later { wait: None, why, perhaps: true }
        }
        Ok(Err(error)) => failed(error),
        Ok(Ok(status)) => {
            // It was waited for: its number may be another one's from here on.
            group.0 = None;
            if status.success() {
                return Delivery::Delivered;
            }
            // What it left in the background may hold its output open.
            let said = tokio::time::timeout(LINGER, reading).await.ok().and_then(Result::ok).unwrap_or_default();
            let line = said.lines().map(|line| excerpt(line, EXCERPT)).find(|line| !line.is_empty());
            let said = line.map(|line| format!(": {line}")).unwrap_or_default();
            later(format!("{name}: {}{said}", how(status)))
        }
    }
}

fn how(status: ExitStatus) -> String {
    status.code().map_or_else(|| "ended by a signal".to_owned(), |code| format!("exit code {code}"))
}

async fn write(stdin: Option<ChildStdin>, input: String) {
    let Some(mut stdin) = stdin else { return };
    // One that does not want to read all of it may be right all the same.
    drop(stdin.write_all(input.as_bytes()).await);
}

async fn read(stderr: Option<ChildStderr>) -> String {
    let Some(mut stderr) = stderr else { return String::new() };
    let mut said = Vec::new();
    // An error ends what is read, and what was read before it counts.
    drop((&mut stderr).take(OUTPUT_BYTES).read_to_end(&mut said).await);
    // The rest is taken too, lest the program wait for ever to get rid of it; it ends with the program.
    tokio::spawn(async move { drop(tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await) });
    String::from_utf8_lossy(&said).into_owned()
}

/// A program and all that it started, until it was waited for: nothing of it is left when this is dropped.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        let Some(leader) = self.0.take().and_then(|id| i32::try_from(id).ok()) else { return };
        #[cfg(unix)]
        if let Some(leader) = rustix::process::Pid::from_raw(leader) {
            // It may have ended in this very moment.
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
        // Elsewhere the program alone is ended, by its handle.
        #[cfg(not(unix))]
        let _ = leader;
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    async fn run(script: &str, longest: Duration) -> Delivery {
        let argv: Vec<String> = ["sh", "-c", script].map(str::to_owned).into();
        tell_within(&argv, &json!({ "schema": "rentop.message/1", "text": "$(true)" }), longest).await
    }

    #[rstest]
    #[case::done("exit 0", None)]
    #[case::reads_what_it_is_given(r#"[ "$(cat)" = '{"schema":"rentop.message/1","text":"$(true)"}' ]"#, None)]
    #[case::loud("yes | head -c 300000 >&2", None)]
    #[case::leaves_something_behind("sleep 60 & exit 0", None)]
    #[case::failed("exit 3", Some("sh: exit code 3"))]
    #[case::says_why("printf '\\n\\033[31mno route\\033[0m\\nmore\\n' >&2; exit 1", Some("sh: exit code 1: no route"))]
    #[case::killed("kill -9 $$", Some("sh: ended by a signal"))]
    #[tokio::test]
    async fn it_is_delivered_when_the_program_ends_with_0(#[case] script: &str, #[case] why: Option<&str>) {
        let expected = why.map_or(Delivery::Delivered, |why| later(why.to_owned()));
        assert_eq!(run(script, Duration::from_secs(20)).await, expected);
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_named() {
        let argv = ["rentop-test-no-such-program".to_owned()];
        let told = tell_within(&argv, &json!({}), LONGEST).await;
        assert_eq!(told, later("rentop-test-no-such-program: no such program".to_owned()));
    }

    #[tokio::test]
    async fn one_that_hangs_is_ended_with_all_that_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let script = format!("sleep 600 & echo $! > {}; wait", file.display());
        let told = run(&script, Duration::from_millis(500)).await;
        let why = "sh: not done within 0.5 s, and ended".to_owned();
        assert_eq!(told, Delivery::Later { wait: None, why, perhaps: true });
        let pid: i32 = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
        let gone = || {
            let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            state.is_empty() || state.contains(") Z")
        };
        let patience = std::time::Instant::now() + Duration::from_secs(5);
        while !gone() && std::time::Instant::now() < patience {
            tokio::task::yield_now().await;
        }
        assert!(gone(), "the child of the child lives on");
    }
}
