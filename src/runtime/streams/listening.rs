//! One `ssh` from its start to its end. However much it says, and whatever, only so much is ever kept of it.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use providers::usage::Usage;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout};

use super::said;
use crate::rules::probe::Reader;
use crate::rules::streams::Trouble;
use crate::runtime::clock;
use crate::runtime::process::Running;

/// The line after the last look, when the command itself came to its end. `ssh` ends with 255 both when it failed and
/// when the command was killed: this tells the one that came to its end from both.
pub const END: &str = "@ended";
/// The longest line in bytes; what is longer is cut.
const LINE: usize = 64 << 10;
/// The most bytes of one look.
const LOOK: usize = 1 << 20;
/// Of so many looks in [`SHORT`] the others are passed over: the quickest pace is one a second, and what was held up on
/// the way comes at once.
const MANY: u32 = 60;
const SHORT: Duration = Duration::from_secs(10);
/// More than any way can hold up: these are no looks.
const FLOOD: u32 = 20_000;
/// So much is kept of what was said beside the looks: the last of it, where `ssh` says why it ends.
const ASIDE: usize = 8 << 10;
/// So long it may take from the end of its output to its own.
const ENDING: Duration = Duration::from_secs(2);

/// Reads a stream to its end, and says why it ended. Dropped it ends the stream.
pub async fn listen(mut command: Command, alias: &str, tell: impl FnMut(Usage)) -> Trouble {
    let mut running = match command.spawn() {
        Ok(child) => Running(child),
        Err(error) => return not_started(&command, &error),
    };
    let (Some(output), Some(errors)) = (running.0.stdout.take(), running.0.stderr.take()) else {
        return Trouble::Ended;
    };
    let (mut heard, mut aside) = (Heard::default(), Vec::new());
    let reading = async { tokio::join!(hear(output, &mut heard, tell), keep_last(errors, &mut aside)) };
    let status = until_the_end(&mut running.0, reading).await;
    drop(running);
    let spoken = String::from_utf8_lossy(&aside);
    match heard.verdict {
        Some(trouble) => trouble,
        None => said::trouble(status.and_then(|status| status.code()), &heard.spoken(), &spoken, alias),
    }
}

/// Waits for both ends, of what is said and of the process, and for the second not long: what it has started may hold
/// its output open after it.
async fn until_the_end(child: &mut Child, reading: impl Future<Output = ((), ())>) -> Option<ExitStatus> {
    tokio::pin!(reading);
    tokio::select! {
        _ = &mut reading => timeout(ENDING, child.wait()).await.ok()?.ok(),
        status = child.wait() => {
            drop(timeout(ENDING, reading).await);
            status.ok()
        }
    }
}

fn not_started(command: &Command, error: &io::Error) -> Trouble {
    // A folder that is gone is told like a program that is not there.
    let has_folder = command.as_std().get_current_dir().is_none_or(std::path::Path::is_dir);
    if error.kind() == io::ErrorKind::NotFound && has_folder {
        return Trouble::NoProgram;
    }
    Trouble::Said(providers::text::excerpt(&error.to_string(), said::LONGEST))
}

/// What a stream has said so far.
#[derive(Default)]
struct Heard {
    looks: u64,
    came_to_its_end: bool,
    /// The first line that belongs to no look.
    greeting: Option<String>,
    /// What is wrong with what it says, when that ended it.
    verdict: Option<Trouble>,
}

impl Heard {
    fn spoken(&self) -> said::Spoken<'_> {
        said::Spoken {
            looks: self.looks > 0,
            came_to_its_end: self.came_to_its_end,
            greeting: self.greeting.as_deref(),
        }
    }
}

/// Makes looks out of what comes, until it ends or is not what was asked for.
async fn hear(output: impl AsyncRead + Unpin, heard: &mut Heard, mut tell: impl FnMut(Usage)) {
    let (mut output, mut line, mut reader) = (BufReader::new(output), Vec::new(), Reader::default());
    let mut bytes = 0;
    let (mut since, mut recent) = (Instant::now(), 0);
    while let Ok(Some(length)) = next_line(&mut output, &mut line).await {
        bytes += length;
        let text = String::from_utf8_lossy(&line);
        if text.trim_end() == END {
            heard.came_to_its_end = true;
            continue;
        }
        if heard.looks == 0 && heard.greeting.is_none() && !text.trim().is_empty() && !text.starts_with('@') {
            heard.greeting = Some(text.chars().take(said::LONGEST).collect());
        }
        if let Some(usage) = reader.line(&text, clock::now()) {
            bytes = 0;
            heard.looks += 1;
            if since.elapsed() >= SHORT {
                (since, recent) = (Instant::now(), 0);
            }
            recent += 1;
            if recent <= MANY {
                tell(usage);
            }
        }
        if bytes > LOOK || recent > FLOOD {
            heard.verdict = Some(Trouble::Garbled);
            return;
        }
    }
}

/// Reads a line without its end, of which at most [`LINE`] bytes are kept. Says how long it was, or `None` at the end.
/// A line that goes on for more than a look may have is given as it is.
async fn next_line(output: &mut (impl AsyncBufReadExt + Unpin), line: &mut Vec<u8>) -> io::Result<Option<usize>> {
    line.clear();
    let mut length = 0;
    loop {
        let some = output.fill_buf().await?;
        if some.is_empty() {
            return Ok((length > 0).then_some(length));
        }
        let end = some.iter().position(|byte| *byte == b'\n');
        let part = &some[..end.unwrap_or(some.len())];
        line.extend_from_slice(&part[..part.len().min(LINE - line.len())]);
        let used = end.map_or(some.len(), |end| end + 1);
        length += used;
        output.consume(used);
        if end.is_some() || length > LOOK {
            return Ok(Some(length));
        }
    }
}

/// Reads to the end and keeps the last of it.
pub async fn keep_last(mut errors: impl AsyncRead + Unpin, kept: &mut Vec<u8>) {
    let mut some = [0; 4096];
    while let Ok(read @ 1..) = errors.read(&mut some).await {
        kept.extend_from_slice(&some[..read]);
        if kept.len() > 2 * ASIDE {
            kept.drain(..kept.len() - ASIDE);
        }
    }
}

#[cfg(test)]
mod tests;
