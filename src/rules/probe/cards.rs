//! The tools of the cards' makers: which there are, what they are asked, and what all of their answers share.

use providers::text::{clean, excerpt};
use providers::usage::{GpuProcess, GpuSample, Usage};

use super::{MOST_BYTES, PATIENCE, amd, ascend, nvidia, rocm};

/// One way to ask for the cards.
pub(super) struct Way {
    /// What the command calls it.
    pub word: &'static str,
    pub tool: &'static str,
    /// The maker's number on the PCI bus, four digits; `None` for a second way of the same tool.
    pub maker: Option<&'static str>,
    /// The arguments.
    pub asked: &'static str,
    /// Makes cards out of the answer to what was asked.
    pub read: fn(asked: &str, answer: &str) -> Cards,
}

/// The first one that is there is taken. A maker's number decides between two: some machines have the tool of one
/// maker and the cards of another.
pub(super) const WAYS: &[Way] =
    &[nvidia::NVIDIA, nvidia::NVIDIA_OLD, amd::AMD, rocm::ROCM, ascend::ASCEND, rocm::HYGON, nvidia::ILUVATAR];

impl Way {
    /// As the command chooses among them.
    pub fn choice(&self) -> Option<String> {
        self.maker.map(|maker| format!("{}:{}:{maker}", self.word, self.tool))
    }
}

/// What a tool said.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Cards {
    pub gpus: Vec<GpuSample>,
    /// It said that there are none.
    pub none: bool,
    /// `None` where it is another question.
    pub processes: Option<Vec<GpuProcess>>,
}

/// More cards than this are in no machine: a history has room for each.
const MOST_CARDS: usize = 64;
/// Characters of a name, and of what a driver says.
const NAME: usize = 60;
const SAID: usize = 160;
const MIB: f64 = 1024.0 * 1024.0;
const MOST_BYTES_OF_MEMORY: f64 = (1u64 << 50) as f64;

/// Puts what a tool answered into a look.
pub(super) fn tell(word: &str, answer: &str, exit: Option<i32>, cut: bool, usage: &mut Usage) {
    let Some(way) = WAYS.iter().find(|way| way.word == word) else { return };
    let mut cards = (way.read)(way.asked, answer);
    cards.gpus.truncate(MOST_CARDS);
    (usage.gpus, usage.fault) = (cards.gpus, None);
    usage.processes = cards.processes;
    usage.gpus_told = cards.none || !usage.gpus.is_empty();
    if !usage.gpus_told {
        usage.fault = Some(fault(way.tool, answer, exit, cut));
    }
}

/// Why an answer has no card in it: in the words of the tool where it has any.
fn fault(tool: &str, answer: &str, exit: Option<i32>, cut: bool) -> String {
    let said = answer.lines().map(|line| excerpt(line, SAID)).find(|line| line.chars().any(char::is_alphabetic));
    match (exit, said) {
        _ if cut => format!("{tool}: > {} KiB", MOST_BYTES / 1024),
        // 124 is what `timeout` ends with, 137 when it had to kill.
        (Some(124 | 137), _) => format!("{tool}: timeout {PATIENCE} s"),
        (_, Some(said)) => said,
        (Some(code), None) => format!("{tool}: exit {code}"),
        (None, None) => format!("{tool}: ?"),
    }
}

/// The number at the beginning of a cell, with or without its unit. `[N/A]` and its kin are no numbers.
pub(super) fn number(cell: &str) -> Option<f64> {
    let cell = cell.trim();
    let end = cell.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '-' | '+')).unwrap_or(cell.len());
    // An exponent is no unit.
    if cell[end..].starts_with(['e', 'E']) {
        return None;
    }
    cell[..end].parse().ok().filter(|number: &f64| number.is_finite())
}

/// 0 to 100 as a share.
pub(super) fn percent(value: Option<f64>) -> Option<f64> {
    value.filter(|value| (0.0..=100.0).contains(value)).map(|value| value / 100.0)
}

pub(super) fn celsius(value: Option<f64>) -> Option<f64> {
    value.filter(|value| (-50.0..=200.0).contains(value))
}

pub(super) fn watts(value: Option<f64>) -> Option<f64> {
    value.filter(|value| (0.0..=10_000.0).contains(value))
}

pub(super) fn bytes(value: Option<f64>) -> Option<u64> {
    value.filter(|value| (0.0..=MOST_BYTES_OF_MEMORY).contains(value)).map(|value| value as u64)
}

pub(super) fn mib(value: Option<f64>) -> Option<u64> {
    bytes(value.map(|value| value * MIB))
}

/// Memory in use and in all: more in use than there is, or none in all, is not known.
pub(super) fn memory(used: Option<u64>, total: Option<u64>) -> (Option<u64>, Option<u64>) {
    let total = total.filter(|total| *total > 0);
    (used.filter(|used| total.is_none_or(|total| *used <= total)), total)
}

/// A cleaned, short name; `None` for what stands where there is none.
pub(super) fn name(text: &str) -> Option<String> {
    let text = clean(text);
    let nothing = text.is_empty() || text.starts_with('[') || matches!(text.as_str(), "N/A" | "NA" | "-");
    (!nothing).then(|| excerpt(&text, NAME))
}

/// A process's name without its folder.
pub(super) fn program(text: &str) -> Option<String> {
    let text = name(text)?;
    text.rsplit('/').find(|part| !part.is_empty()).map(str::to_owned)
}
