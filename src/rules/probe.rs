//! What is asked of a machine over `ssh`, and what its answer means.
//!
//! One command runs there for as long as somebody listens. It only reads, and says what it found a look at a time:
//! a line `@look`, sections that begin with `@name`, and `@end`. What cannot be read costs that figure alone.

use jiff::{SignedDuration, Timestamp};
use providers::usage::{Usage, UsageSource};

/// The command that runs on a machine, for a POSIX shell, with this between two looks.
pub fn command(pace: SignedDuration) -> String {
    format!("while :; do echo @look; echo @end; sleep {}; done", pace.as_secs().max(1))
}

/// Makes looks out of lines.
#[derive(Debug, Default)]
pub struct Reader {
    lines: Vec<String>,
}

impl Reader {
    /// Takes the next line in. At the end of a look gives it, as of a time by our clock.
    pub fn line(&mut self, line: &str, now: Timestamp) -> Option<Usage> {
        match line.trim_end() {
            "@look" => self.lines.clear(),
            "@end" => return Some(Usage::new(now, UsageSource::Ssh)),
            line => self.lines.push(line.to_owned()),
        }
        None
    }
}
