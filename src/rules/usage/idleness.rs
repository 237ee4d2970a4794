//! Whether an instance works, from what was seen of it minute by minute.
//!
//! One look above the line is work. Idle is said only of a whole window that was seen nearly all of; what is not
//! known is never acted on.

use jiff::{SignedDuration, Timestamp};
use providers::gpu::Gpus;
use providers::usage::{GpuSample, Server, Usage};
use serde::{Deserialize, Serialize};

use super::history::{History, MINUTE, Minute, minute_of};
use super::{CardMinute, HostMinute, Mismatch, Share, WeeksPeak};

/// So long after its start a machine may still be loading: it is judged afterwards.
const YOUNG: SignedDuration = SignedDuration::from_mins(10);
/// The part of the window's minutes that must have been seen: four of five.
const SEEN: u32 = 4;
const OF: u32 = 5;
/// Use from which on a card is perhaps stuck, when it draws next to no power.
const STUCK_USE: f64 = 0.9;
/// The most that a stuck card draws, as a share of what it may.
const STUCK_POWER: f64 = 0.3;
/// Slots of five minutes that make a week known well enough to say what it never used: half of them.
const WEEK_KNOWN: u32 = 7 * 24 * 12 / 2;

/// Above which lines something is work.
#[derive(Clone, Debug, PartialEq)]
pub struct IdleRule {
    /// So many minutes without work make an instance idle, 1 to 1440.
    pub window: u32,
    /// Shares of 0.0 to 1.0: of each card's time, of its memory moved, of all cores.
    pub gpu: f64,
    pub memory: f64,
    pub cpu: f64,
    /// Bytes a second.
    pub disk: f64,
    pub network: f64,
    /// What serves and waits is idle too, not only waiting.
    pub serving_is_idle: bool,
}

impl Default for IdleRule {
    fn default() -> Self {
        IdleRule {
            window: 30,
            gpu: 0.05,
            memory: 0.02,
            cpu: 0.20,
            disk: 5_000_000.0,
            network: 1_000_000.0,
            serving_is_idle: false,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Busy,
    /// Some of its cards work, most do nothing.
    Underused,
    /// It serves, and nobody asks it anything.
    Waiting,
    Idle,
    /// It does not run long enough to be judged.
    NotYet,
    /// Not enough is known.
    Unknown,
    /// It does not run, or has no cards.
    #[default]
    NotApplicable,
}

impl Verdict {
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Busy => "busy",
            Verdict::Underused => "underused",
            Verdict::Waiting => "waiting",
            Verdict::Idle => "idle",
            Verdict::NotYet => "not_yet",
            Verdict::Unknown => "unknown",
            Verdict::NotApplicable => "not_applicable",
        }
    }
}

/// What was seen that is work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Work {
    /// The highest use of a card, 0.0 to 1.0.
    Gpu(f64),
    /// The memory of a card moved by so much of its total.
    Memory(f64),
    /// Of all cores.
    Cpu(f64),
    /// Bytes a second.
    Disk(f64),
    Network(f64),
}

/// Why a verdict is what it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Why {
    /// Nothing is known of it.
    #[default]
    NoUsage,
    Work(Work),
    /// So many cards work, of so many.
    Few {
        busy: u32,
        cards: u32,
    },
    Quiet {
        cards: u32,
        /// The highest use of a card in the window, as all of this is.
        peak: Share,
        /// What the memory of a card moved by at the most.
        moved: Share,
        /// The highest use of all cores.
        cpu: Share,
        /// Who is logged in now; `None` when not known.
        users: Option<u32>,
        server: Option<Server>,
    },
    /// So many minutes of the window were seen.
    TooFewLooks {
        seen: u32,
        window: u32,
    },
    /// It runs since less than this, which it takes to be judged.
    Young {
        minutes: u32,
    },
    /// Its cards are cut into parts, of whose use nobody tells.
    Partitioned,
    /// Nobody tells how much memory of its cards is in use, which may be all that moves.
    MemoryUntold,
    /// What its driver says.
    Fault(String),
    FewerCards {
        seen: u32,
        rented: u32,
    },
    /// It does not run.
    AtRest,
    NoCards,
}

/// What else may be worth a look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Hint {
    /// Full use at so small a part of the power that it may draw, with nothing moving.
    PerhapsStuck { power: Share },
    /// No card used more of its memory than this in a week.
    RentLess { memory: Share },
}

/// Whether an instance works.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Idleness {
    pub verdict: Verdict,
    /// Of idle and waiting: since when.
    pub since: Option<Timestamp>,
    pub why: Why,
    pub hints: Vec<Hint>,
}

impl Idleness {
    fn only(verdict: Verdict, why: Why) -> Self {
        Idleness { verdict, why, ..Idleness::default() }
    }

    /// Its spend is waste.
    pub fn wastes(&self) -> bool {
        self.verdict == Verdict::Idle
    }
}

/// What is judged.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'a> {
    pub history: &'a History,
    /// The last look, however old.
    pub latest: Option<&'a Usage>,
    /// `None` when not known.
    pub runs: Option<bool>,
    pub rented: Option<&'a Gpus>,
    /// When it began to run, by our clock; `None` when not known.
    pub running_since: Option<Timestamp>,
    pub mismatch: Option<&'a Mismatch>,
    /// The machine itself told, however long ago, that its cards are cut into parts: no figure of a whole card counts.
    pub partitioned: bool,
    pub peak: Option<&'a WeeksPeak>,
    /// The verdict before, where nothing was learnt since then of what lies before the window: what was quiet stays so.
    pub before: Option<&'a Idleness>,
}

/// What is added up over the minutes of a window.
#[derive(Debug)]
struct Window {
    /// Minutes of which enough is known.
    seen: u32,
    cards: Vec<Ends>,
    /// The most cards that one figure stands for.
    averaged_over: u8,
    cpu: Share,
    disk: f64,
    network: f64,
    serves: bool,
}

/// Of one card over several minutes.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    peak: Share,
    least: Share,
    low: Share,
    high: Share,
    power: Share,
}

impl Ends {
    fn add(&mut self, card: &CardMinute, host: &HostMinute) {
        let mut most = *card;
        most.spread(host.averaged_over);
        self.peak = self.peak.highest(most.peak);
        self.least = self.least.lowest(card.least);
        self.low = self.low.lowest(card.memory_low);
        self.high = self.high.highest(card.memory_high);
        self.power = self.power.highest(card.power);
    }

    fn moved(&self) -> f64 {
        self.low.known().zip(self.high.known()).map_or(0.0, |(low, high)| high - low)
    }

    fn works(&self, rule: &IdleRule) -> bool {
        self.peak.known().is_some_and(|peak| peak > rule.gpu)
    }
}

impl Window {
    fn new(width: usize) -> Self {
        let cards = vec![Ends::default(); width];
        Window { seen: 0, cards, averaged_over: 1, cpu: Share::UNKNOWN, disk: 0.0, network: 0.0, serves: false }
    }

    fn add(&mut self, minute: Minute<'_>) {
        let host = minute.host;
        self.seen += u32::from(host.whole);
        self.averaged_over = self.averaged_over.max(host.averaged_over);
        self.cards.iter_mut().zip(minute.cards).for_each(|(ends, card)| ends.add(card, host));
        self.cpu = self.cpu.highest(host.cpu);
        self.disk = self.disk.max(host.disk.known().unwrap_or(0.0));
        self.network = self.network.max(host.network.known().unwrap_or(0.0));
        self.serves |= host.serves;
    }

    fn peak(&self) -> Share {
        self.cards.iter().fold(Share::UNKNOWN, |peak, card| peak.highest(card.peak))
    }

    /// What the memory of a card moved by at the most: of an average it may have been that of one card.
    fn moved(&self) -> f64 {
        (self.cards.iter().map(Ends::moved).fold(0.0, f64::max) * f64::from(self.averaged_over)).min(1.0)
    }

    /// What of it is work.
    fn work(&self, rule: &IdleRule) -> Option<Work> {
        let (peak, cpu) = (self.peak().known().unwrap_or(0.0), self.cpu.known().unwrap_or(0.0));
        match () {
            () if peak > rule.gpu => Some(Work::Gpu(peak)),
            () if self.moved() > rule.memory => Some(Work::Memory(self.moved())),
            () if cpu >= rule.cpu => Some(Work::Cpu(cpu)),
            () if self.disk >= rule.disk => Some(Work::Disk(self.disk)),
            () if self.network >= rule.network => Some(Work::Network(self.network)),
            () => None,
        }
    }

    /// Nothing comes in, goes out or moves in the cards' memory. A core that waits for a stuck card is busy.
    fn is_still(&self, rule: &IdleRule) -> bool {
        self.moved() <= rule.memory && self.disk < rule.disk && self.network < rule.network
    }

    fn covers(&self, rule: &IdleRule) -> bool {
        self.seen * OF >= rule.window * SEEN
    }
}

impl IdleRule {
    /// The first of the window's minutes, by the last of them.
    pub(super) fn first(&self, last: i64) -> i64 {
        last - i64::from(self.window) + 1
    }

    /// The last of the window's minutes: this one, or the one before as long as nothing was seen of this.
    fn last(&self, history: &History, this: i64) -> i64 {
        let seen = history.since(this).next().is_some_and(|minute| minute.number == this && minute.host.whole);
        if seen { this } else { this - 1 }
    }

    /// So many minutes of a window need not be seen.
    fn unseen(&self) -> i64 {
        i64::from(self.window - (self.window * SEEN).div_ceil(OF))
    }

    /// It serves, which is no idleness.
    fn waits(&self, serves: bool) -> bool {
        serves && !self.serving_is_idle
    }
}

/// Whether an instance works, at a time by our clock.
pub fn judge(judged: &Judged<'_>, rule: &IdleRule, now: Timestamp) -> Idleness {
    match judged.runs {
        Some(true) => {}
        Some(false) => return Idleness::only(Verdict::NotApplicable, Why::AtRest),
        None => return Idleness::only(Verdict::Unknown, Why::NoUsage),
    }
    if judged.rented.is_some_and(|rented| rented.count == 0) {
        return Idleness::only(Verdict::NotApplicable, Why::NoCards);
    }
    let this = minute_of(now);
    let last = rule.last(judged.history, this);
    let mut window = Window::new(judged.history.width());
    // What a machine did before its present run is no work of this one.
    let began = judged.running_since.map_or(i64::MIN, minute_of);
    for minute in judged.history.since(rule.first(last).max(began)).take_while(|minute| minute.number <= this) {
        window.add(minute);
    }
    let mut idleness = verdict(judged, rule, &window, (last, began, now));
    idleness.hints = hints(judged, rule, &window);
    idleness
}

fn verdict(
    judged: &Judged<'_>,
    rule: &IdleRule,
    window: &Window,
    (last, began, now): (i64, i64, Timestamp),
) -> Idleness {
    let age = judged.running_since.map(|began| now.duration_since(began));
    let needed = SignedDuration::from_mins(i64::from(rule.window)).max(YOUNG);
    let not_yet = || {
        let minutes = u32::try_from(needed.as_mins()).unwrap_or(u32::MAX);
        Idleness::only(Verdict::NotYet, Why::Young { minutes })
    };
    if age.is_some_and(|age| age < YOUNG) {
        return not_yet();
    }
    if let Some(work) = window.work(rule) {
        let busy = window.cards.iter().filter(|card| card.works(rule)).count();
        let (busy, cards) = (busy as u32, window.cards.len() as u32);
        // Those that do nothing are known to do nothing only when the whole window was seen.
        return match busy {
            1.. if window.covers(rule) && window.averaged_over <= 1 && busy * 2 <= cards => {
                Idleness::only(Verdict::Underused, Why::Few { busy, cards })
            }
            _ => Idleness::only(Verdict::Busy, Why::Work(work)),
        };
    }
    if age.is_some_and(|age| age < needed) {
        return not_yet();
    }
    if let Some(why) = blindness(judged) {
        return Idleness::only(Verdict::Unknown, why);
    }
    if !window.covers(rule) {
        let tells = |gpus: &[GpuSample]| gpus.iter().any(|gpu| gpu.utilization.is_some());
        let untold = |gpus: &[GpuSample]| gpus.iter().any(|gpu| gpu.memory_share().is_none());
        let why = match window.seen {
            _ if judged.latest.is_some_and(|usage| tells(&usage.gpus) && untold(&usage.gpus)) => Why::MemoryUntold,
            0 => Why::NoUsage,
            seen => Why::TooFewLooks { seen, window: rule.window },
        };
        return Idleness::only(Verdict::Unknown, why);
    }
    let waits = rule.waits(window.serves);
    let verdict = if waits { Verdict::Waiting } else { Verdict::Idle };
    let known = judged.before.filter(|before| before.verdict == verdict).and_then(|before| before.since);
    let since = known.unwrap_or_else(|| quiet_since(judged.history, rule, waits, (last, began)));
    let since = judged.running_since.map_or(since, |began| since.max(began));
    let why = Why::Quiet {
        cards: judged.rented.map_or(1, |rented| rented.count.max(1)),
        peak: window.peak(),
        moved: Share::of(window.moved()),
        cpu: window.cpu,
        users: judged.latest.and_then(|usage| usage.users.as_ref()).map(|users| users.len() as u32),
        server: judged.latest.and_then(|usage| usage.servers.first().cloned()),
    };
    Idleness { verdict, since: Some(since), why, hints: Vec::new() }
}

/// Why the figures that are there prove nothing.
fn blindness(judged: &Judged<'_>) -> Option<Why> {
    if judged.partitioned {
        return Some(Why::Partitioned);
    }
    let latest = judged.latest?;
    if let Some(Mismatch::Fewer { seen, rented }) = judged.mismatch {
        return Some(Why::FewerCards { seen: *seen, rented: *rented });
    }
    let fault = latest.fault.as_ref().or_else(|| latest.gpus.iter().find_map(|gpu| gpu.fault.as_ref()));
    if let Some(fault) = fault {
        return Some(Why::Fault(fault.clone()));
    }
    latest.gpus.iter().any(|gpu| gpu.partitioned).then_some(Why::Partitioned)
}

/// Since when nothing was work, as far back as that was seen nearly all of the time. What served before it was idle
/// was waiting then.
fn quiet_since(history: &History, rule: &IdleRule, waits: bool, (this, began): (i64, i64)) -> Timestamp {
    let (mut since, mut last) = (this, this);
    let mut quiet = Window::new(history.width());
    let minutes = history.since(began).rev().skip_while(|minute| minute.number > this);
    for minute in minutes.filter(|minute| minute.host.seen) {
        quiet.add(minute);
        if last - minute.number > rule.unseen() + 1
            || quiet.work(rule).is_some()
            || (!waits && rule.waits(minute.host.serves))
        {
            break;
        }
        if minute.host.whole {
            last = minute.number;
            let all = this - last + 1;
            if i64::from(quiet.seen * OF) >= all * i64::from(SEEN) {
                since = last;
            }
        }
    }
    end_of(since - 1)
}

/// Up to when an instance was seen to be idle that was so since a time, and is so no longer at `now`: to the end of
/// the last minute without work.
pub fn idle_until(history: &History, rule: &IdleRule, since: Timestamp, now: Timestamp) -> Timestamp {
    // After a clock was set back what was seen by it before lies ahead.
    let this = minute_of(now).max(history.last());
    let mut until = since;
    let mut window = Window::new(history.width());
    for minute in history.since(minute_of(since)).take_while(|minute| minute.number <= this) {
        // What lies before the window was judged already.
        if minute.number >= rule.first(this) - 1 {
            window.add(minute);
            if window.work(rule).is_some() || rule.waits(minute.host.serves) {
                break;
            }
        }
        if minute.host.whole {
            until = end_of(minute.number);
        }
    }
    until.min(now.max(end_of(this - 1))).max(since)
}

fn end_of(minute: i64) -> Timestamp {
    Timestamp::from_second((minute + 1).saturating_mul(MINUTE)).unwrap_or(Timestamp::MAX)
}

fn hints(judged: &Judged<'_>, rule: &IdleRule, window: &Window) -> Vec<Hint> {
    let mut hints = Vec::new();
    let stuck = window.cards.iter().find(|card| {
        let full = card.least.known().is_some_and(|least| least >= STUCK_USE);
        full && card.power.known().is_some_and(|power| power <= STUCK_POWER)
    });
    if let Some(card) = stuck.filter(|_| window.covers(rule) && window.is_still(rule)) {
        hints.push(Hint::PerhapsStuck { power: card.power });
    }
    let peak = judged.peak.filter(|peak| peak.slots >= WEEK_KNOWN);
    if let Some(peak) = peak.filter(|peak| peak.memory.known().is_some_and(|memory| memory < 0.5)) {
        hints.push(Hint::RentLess { memory: peak.memory });
    }
    hints
}

#[cfg(test)]
#[path = "idleness_tests.rs"]
mod tests;
