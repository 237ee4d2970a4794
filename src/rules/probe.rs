//! What is asked of a machine over `ssh`, and what its answer means.
//!
//! One command runs there for as long as somebody listens. It only reads, and says what it found a look at a time:
//! a line `@look`, sections that begin with `@name`, and `@end`. What cannot be read costs that figure alone.
//!
//! `look.sh` is the command; `cards` knows the vendors' tools, with a file for each family of them, `host` reads the
//! counters of the machine, `seldom` what is looked at every few looks only. A machine is rented from strangers:
//! whatever it sends is bounded and cleaned.

mod amd;
mod ascend;
mod cards;
mod host;
mod nvidia;
mod rocm;
mod seldom;
#[cfg(test)]
mod tests;

use jiff::{SignedDuration, Timestamp};
use providers::usage::{Usage, UsageSource};

use cards::{WAYS, Way};
use host::Host;
use seldom::Seldom;

/// So long a vendor's tool may take, in seconds: several of them hang when a card is sick.
const PATIENCE: i64 = 15;
/// What moves slowly is looked at this often, in seconds.
const SELDOM: i64 = 15;
/// The most of a look that is taken in. A machine of sixteen cards fills a tenth of it.
const MOST_BYTES: usize = 512 * 1024;
const MOST_LINES: usize = 8192;

/// The command that runs on a machine, with this between two looks: one line, for whatever login shell is there.
pub fn command(pace: SignedDuration) -> String {
    let mut script = String::new();
    for line in include_str!("probe/look.sh").lines().map(str::trim) {
        if !line.is_empty() && !line.starts_with('#') {
            script.push_str(line);
            script.push(' ');
        }
    }
    let ways: Vec<String> = WAYS.iter().filter_map(Way::choice).collect();
    let arms: Vec<String> = WAYS.iter().map(|way| format!("{}) run {} {};;", way.word, way.tool, way.asked)).collect();
    let script = script
        .replace("{WAYS}", &ways.join(" "))
        .replace("{ARMS}", &arms.join(" "))
        .replace("{PATIENCE}", &PATIENCE.to_string())
        .replace("{SELDOM}", &SELDOM.to_string())
        .replace("{PACE}", &pace.as_secs().max(1).to_string());
    format!("sh -c '{}'", script.trim_end())
}

/// Makes looks out of lines.
#[derive(Debug, Default)]
pub struct Reader {
    /// The look that is being told; `None` between looks, and before the first: whatever greets is no part of any.
    look: Option<Look>,
    /// What the counters of the last look stood at.
    before: Option<Host>,
    seldom: Seldom,
}

impl Reader {
    /// Takes the next line in. At the end of a look gives it, as of a time by our clock. A look that breaks off gives
    /// nothing.
    pub fn line(&mut self, line: &str, now: Timestamp) -> Option<Usage> {
        let line = line.trim_end();
        match line.split(' ').next() {
            Some("@look") => self.look = Some(Look::default()),
            Some("@end") => return self.look.take().map(|look| self.finish(&look, now)),
            _ => self.look.iter_mut().for_each(|look| look.add(line)),
        }
        None
    }

    fn finish(&mut self, look: &Look, now: Timestamp) -> Usage {
        let mut usage = Usage::new(now, UsageSource::Ssh);
        for section in &look.sections {
            match section.name.as_str() {
                "host" => {
                    let host = Host::read(&section.lines);
                    host.tell(self.before.as_ref(), &mut usage);
                    self.before = Some(host);
                }
                // A tool that does not know what it was asked is asked again: the last answer counts.
                "cards" => cards::tell(&section.argument, &section.text(), section.exit, look.cut, &mut usage),
                _ => self.seldom.note(section),
            }
        }
        self.seldom.tell(&mut usage);
        usage
    }
}

/// A look as it is told.
#[derive(Debug, Default)]
struct Look {
    sections: Vec<Section>,
    lines: usize,
    bytes: usize,
    /// It was longer than a look may be; the rest was dropped.
    cut: bool,
}

#[derive(Debug, Default)]
struct Section {
    name: String,
    argument: String,
    lines: Vec<String>,
    /// What the tool that filled it ended with; `None` when no tool did, or it never ended.
    exit: Option<i32>,
}

impl Look {
    fn add(&mut self, line: &str) {
        (self.lines, self.bytes) = (self.lines + 1, self.bytes + line.len());
        if self.lines > MOST_LINES || self.bytes > MOST_BYTES {
            self.cut = true;
            return;
        }
        let marker = line.strip_prefix('@').map(|marker| marker.split_once(' ').unwrap_or((marker, "")));
        match (marker, self.sections.last_mut()) {
            (Some(("exit", code)), Some(section)) => section.exit = code.parse().ok(),
            (Some((name, argument)), _) => {
                let (name, argument) = (name.to_owned(), argument.to_owned());
                self.sections.push(Section { name, argument, ..Section::default() });
            }
            (None, Some(section)) => section.lines.push(line.to_owned()),
            (None, None) => {}
        }
    }
}

impl Section {
    fn text(&self) -> String {
        self.lines.join("\n")
    }
}
