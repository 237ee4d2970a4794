//! One script on a machine, over the person's own `ssh`: what goes in, what comes out, and whether it came to its end.

use std::io::{self, BufRead, BufReader, PipeReader, Read};
use std::time::Duration;

use providers::text::excerpt;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::rules::checkpoint::Trouble;
use crate::rules::streams::{self, Target};
use crate::runtime::process::Running;
use crate::runtime::streams::{Spoken, Ssh, keep_last, last_line, why_ended};

/// Told before what the script says and after it: what a shell says at its start is none of it, and the end of a
/// connection is no end of the script.
const BEGUN: &[u8] = b"@rentop-begun";
const ENDED: &[u8] = b"\n@rentop-ended ";
/// With its code of three digits, and the end of the line.
const MARK: usize = ENDED.len() + 4;
/// More is not said before a script.
const GREETING: usize = 64 << 10;
const CHUNK: usize = 64 << 10;
/// After its mark, `ssh` has this to end as well: what a command left behind may hold the connection open.
const LINGER: Duration = Duration::from_secs(2);

/// A machine, and how it is reached. Copies are of the same.
#[derive(Clone, Debug)]
pub struct Remote {
    pub ssh: Ssh,
    pub target: Target,
}

/// What comes out of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Lines, of which none is our mark: the script is over with that.
    Lines,
    /// Any bytes: only what stands at their very end is our mark.
    Bytes,
}

/// A script that came to its end.
#[derive(Debug)]
pub struct Ended<T> {
    pub code: i32,
    /// What was made of what it said.
    pub value: T,
    /// The last of what was said on the error output.
    pub errors: String,
}

impl<T> Ended<T> {
    /// In one line, cleaned and short.
    pub fn complaint(&self) -> String {
        last_line(&self.errors).unwrap_or_default()
    }
}

/// The script with its marks, for whatever shell the person has there. Its first line leads to the root of all paths.
pub fn wrapped(body: &str) -> String {
    let script = format!("cd /\necho {}\n(\n{body}\n)\nprintf '\\n@rentop-ended %03d\\n' $?", "@rentop-begun");
    format!("exec sh -c {}", shell_words::quote(&script))
}

impl Remote {
    /// Runs a script, with `input` to read. `take` makes something of what it says, on a thread of its own. Dropped it
    /// ends `ssh`, and with it what `take` reads.
    pub async fn run<T: Send + 'static>(
        &self,
        body: &str,
        input: Vec<u8>,
        kind: Kind,
        take: impl FnOnce(&mut Output) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<Ended<T>, Trouble> {
        let no_program = || Trouble::Link(streams::Trouble::NoProgram);
        let mut command = self.ssh.unattended(&self.target, &wrapped(body)).ok_or_else(no_program)?;
        let not_started = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => no_program(),
            _ => Trouble::Link(streams::Trouble::Said(excerpt(&error.to_string(), 200))),
        };
        let (reader, writer) = io::pipe().map_err(not_started)?;
        command.stdin(std::process::Stdio::piped()).stdout(writer);
        let mut running = Running(command.spawn().map_err(not_started)?);
        // It holds an end of the pipe.
        drop(command);
        let (Some(mut stdin), Some(stderr)) = (running.0.stdin.take(), running.0.stderr.take()) else {
            return Err(Trouble::Link(streams::Trouble::Ended));
        };
        let taking = tokio::task::spawn_blocking(move || {
            let mut output = Output::new(reader, kind);
            let value = take(&mut output);
            // What it did not want is passed over, so that the end is seen.
            if value.is_ok() {
                drop(io::copy(&mut output, &mut io::sink()));
            }
            (value, output)
        });
        let mut errors = Vec::new();
        let taken = {
            let beside = async {
                let writing = async {
                    // Who ends before it has read everything says so itself.
                    drop(stdin.write_all(&input).await);
                    drop(stdin);
                };
                tokio::join!(writing, keep_last(stderr, &mut errors));
            };
            tokio::pin!(taking, beside);
            let (taken, is_over) = tokio::select! {
                taken = &mut taking => (taken, false),
                () = &mut beside => (taking.await, true),
            };
            if !is_over && taken.as_ref().is_ok_and(|(value, _)| value.is_ok()) {
                drop(timeout(LINGER, beside).await);
            }
            taken
        };
        let (value, output) = taken.map_err(|error| Trouble::Local(error.to_string()))?;
        let status = match value {
            Ok(_) => timeout(LINGER, running.0.wait()).await.ok().and_then(Result::ok),
            Err(_) => None,
        };
        drop(running);
        let errors = String::from_utf8_lossy(&errors).into_owned();
        match (value, output.code) {
            (Err(trouble), _) => Err(trouble),
            (Ok(value), Some(code)) => Ok(Ended { code, value, errors }),
            (Ok(_), None) => {
                let greeting = String::from_utf8_lossy(&output.greeting);
                let greeting = greeting.lines().find(|line| !line.trim().is_empty());
                let spoken = Spoken { looks: output.begun, came_to_its_end: false, greeting };
                let code = status.and_then(|status| status.code());
                Err(Trouble::Link(why_ended(code, &spoken, &errors, &self.target.alias)))
            }
        }
    }

    /// The same for a script that says nothing.
    pub async fn command(&self, body: &str) -> Result<Ended<()>, Trouble> {
        self.run(body, Vec::new(), Kind::Lines, |_| Ok(())).await
    }
}

/// What a script says, without its marks. Reading ends when the script or its connection does.
pub struct Output {
    pipe: PipeReader,
    kind: Kind,
    held: Vec<u8>,
    /// So much of what is held was given.
    given: usize,
    begun: bool,
    ended: bool,
    code: Option<i32>,
    greeting: Vec<u8>,
}

impl Output {
    fn new(pipe: PipeReader, kind: Kind) -> Self {
        let held = Vec::with_capacity(2 * CHUNK);
        Output { pipe, kind, held, given: 0, begun: false, ended: false, code: None, greeting: Vec::new() }
    }

    /// Reads more, and looks for the marks.
    fn fill(&mut self) -> io::Result<()> {
        self.held.drain(..self.given);
        self.given = 0;
        let before = self.held.len();
        self.held.resize(before + CHUNK, 0);
        let read = loop {
            match self.pipe.read(&mut self.held[before..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.held.truncate(before + read.as_ref().copied().unwrap_or_default());
        self.ended |= read? == 0;
        if !self.begun {
            self.pass_greeting();
        }
        if self.begun && (self.ended || self.kind == Kind::Lines) {
            self.code = mark(&self.held);
            if self.code.is_some() {
                self.held.truncate(self.held.len() - MARK);
                self.ended = true;
            }
        }
        Ok(())
    }

    fn pass_greeting(&mut self) {
        while let Some(end) = self.held.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.held.drain(..=end).collect();
            if line.trim_ascii_end() == BEGUN {
                self.begun = true;
                return;
            }
            self.greeting.extend_from_slice(&line);
        }
        if self.ended || self.greeting.len() + self.held.len() > GREETING {
            // Cut in the middle of our own mark, it greeted nobody.
            if !BEGUN.starts_with(&self.held) {
                self.greeting.append(&mut self.held);
            }
            self.held.clear();
            self.ended = true;
        }
    }

    /// Calls for every line, without its end; a line that is longer than `longest`, or more than `most` bytes of them,
    /// is not what was asked for.
    pub fn lines(
        &mut self,
        longest: u64,
        most: u64,
        mut take: impl FnMut(&[u8]) -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        let (mut lines, mut line, mut all) = (BufReader::new(self), Vec::new(), 0);
        loop {
            line.clear();
            let read = lines.by_ref().take(longest).read_until(b'\n', &mut line);
            match read.map_err(|error| Trouble::Local(excerpt(&error.to_string(), 200)))? {
                0 => return Ok(()),
                read => all += read as u64,
            }
            if line.last() == Some(&b'\n') {
                line.pop();
            } else if lines.get_ref().code.is_none() && (line.len() as u64) < longest {
                // Cut in the middle.
                return Ok(());
            } else if line.len() as u64 >= longest {
                return Err(Trouble::Garbled(excerpt(&String::from_utf8_lossy(&line), 80)));
            }
            if all > most {
                return Err(Trouble::Garbled(format!("more than {most} bytes")));
            }
            take(&line)?;
        }
    }
}

/// The code of a mark that ends this.
fn mark(held: &[u8]) -> Option<i32> {
    let at = held.len().checked_sub(MARK)?;
    let digits = held[at..].strip_prefix(ENDED)?.strip_suffix(b"\n")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

impl Read for Output {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            // The last of it may be the beginning of a mark.
            let kept = if self.ended { 0 } else { MARK };
            let free = self.held.len().saturating_sub(kept);
            if self.begun && free > self.given {
                let length = into.len().min(free - self.given);
                into[..length].copy_from_slice(&self.held[self.given..self.given + length]);
                self.given += length;
                return Ok(length);
            }
            if self.ended {
                return Ok(0);
            }
            self.fill()?;
        }
    }
}
