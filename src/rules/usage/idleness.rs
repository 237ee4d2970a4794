//! Whether an instance works, from what was seen of it minute by minute.
//!
//! One look above the line is work. Idle is said only of a whole window that was seen nearly all of; what is not
//! known is never acted on.

use jiff::{SignedDuration, Timestamp};
use providers::gpu::Gpus;
use providers::usage::{Server, Usage};
use serde::{Deserialize, Serialize};

use super::history::{History, MINUTE, Minute, minute_of};
use super::{Mismatch, Share, WeeksPeak};

/// So long after its start a machine may still be loading: it is judged afterwards.
const YOUNG: SignedDuration = SignedDuration::from_mins(10);
/// The part of the window's minutes that must have been seen.
const COVERAGE: f64 = 0.8;
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
        /// The highest use of a card.
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
    pub runs: bool,
    pub rented: Option<&'a Gpus>,
    /// When it began to run, by our clock; `None` when not known.
    pub running_since: Option<Timestamp>,
    pub mismatch: Option<&'a Mismatch>,
    pub peak: Option<&'a WeeksPeak>,
}

/// What is added up over the minutes of a window.
#[derive(Debug)]
struct Window {
    /// Minutes of which enough is known.
    seen: u32,
    cards: Vec<Ends>,
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
    fn moved(&self) -> f64 {
        self.low.known().zip(self.high.known()).map_or(0.0, |(low, high)| high - low)
    }
}

impl Window {
    fn new(width: usize) -> Self {
        let cards = vec![Ends::default(); width];
        Window { seen: 0, cards, cpu: Share::UNKNOWN, disk: 0.0, network: 0.0, serves: false }
    }

    /// `rented` cards must have told their use for the minute to count as seen.
    fn add(&mut self, minute: Minute<'_>, rented: usize) {
        let host = minute.host;
        let told = minute.cards.iter().filter(|card| card.peak.is_known()).count();
        let all = told >= rented || (host.averaged_over > 1 && told > 0);
        self.seen += u32::from(host.seen && all);
        for (ends, card) in self.cards.iter_mut().zip(minute.cards) {
            // An average hides the one card that works: each may have done all of it.
            let most =
                |share: Share| Share::from(share.known().map(|share| share * f64::from(host.averaged_over.max(1))));
            ends.peak = ends.peak.highest(most(card.peak));
            ends.least = ends.least.lowest(card.least);
            ends.low = ends.low.lowest(card.memory_low);
            ends.high = ends.high.highest(card.memory_high);
            ends.power = ends.power.highest(card.power);
        }
        self.cpu = self.cpu.highest(host.cpu);
        self.disk = self.disk.max(host.disk.known().unwrap_or(0.0));
        self.network = self.network.max(host.network.known().unwrap_or(0.0));
        self.serves |= host.serves;
    }

    /// What of it is work.
    fn work(&self, rule: &IdleRule) -> Option<Work> {
        let peak = self.cards.iter().filter_map(|card| card.peak.known()).fold(0.0, f64::max);
        let moved = self.moved();
        let cpu = self.cpu.known().unwrap_or(0.0);
        match () {
            () if peak > rule.gpu => Some(Work::Gpu(peak)),
            () => self.work_beside_cards(rule, moved, cpu),
        }
    }

    fn work_beside_cards(&self, rule: &IdleRule, moved: f64, cpu: f64) -> Option<Work> {
        match () {
            () if moved > rule.memory => Some(Work::Memory(moved)),
            () if cpu >= rule.cpu => Some(Work::Cpu(cpu)),
            () if self.disk >= rule.disk => Some(Work::Disk(self.disk)),
            () if self.network >= rule.network => Some(Work::Network(self.network)),
            () => None,
        }
    }

    fn moved(&self) -> f64 {
        self.cards.iter().map(Ends::moved).fold(0.0, f64::max)
    }
}

/// Whether an instance works, at a time by our clock.
pub fn judge(judged: &Judged<'_>, rule: &IdleRule, now: Timestamp) -> Idleness {
    if !judged.runs {
        return Idleness::only(Verdict::NotApplicable, Why::AtRest);
    }
    if judged.rented.is_some_and(|rented| rented.count == 0) {
        return Idleness::only(Verdict::NotApplicable, Why::NoCards);
    }
    let rented = judged.rented.map_or(1, |rented| rented.count.max(1));
    let this = minute_of(now);
    let mut window = Window::new(judged.history.width());
    let first = this - i64::from(rule.window) + 1;
    // What a machine did before its present run is no work of this one.
    let began = judged.running_since.map_or(i64::MIN, minute_of);
    for minute in judged.history.since(first.max(began)).filter(|minute| minute.number <= this) {
        window.add(minute, rented as usize);
    }
    let mut idleness = verdict(judged, rule, &window, (rented, this, began, now));
    idleness.hints = hints(judged, rule, &window);
    idleness
}

fn verdict(
    judged: &Judged<'_>,
    rule: &IdleRule,
    window: &Window,
    (rented, this, began, now): (u32, i64, i64, Timestamp),
) -> Idleness {
    let covered = f64::from(window.seen) >= COVERAGE * f64::from(rule.window);
    if let Some(work) = window.work(rule) {
        let busy = window.cards.iter().filter(|card| card.peak.known().is_some_and(|peak| peak > rule.gpu)).count();
        let (busy, cards) = (busy as u32, window.cards.len() as u32);
        let averaged = judged.latest.is_some_and(|usage| usage.averaged);
        // Those that do nothing are known to do nothing only when the whole window was seen.
        return match busy {
            1.. if covered && !averaged && busy * 2 <= cards => {
                Idleness::only(Verdict::Underused, Why::Few { busy, cards })
            }
            _ => Idleness::only(Verdict::Busy, Why::Work(work)),
        };
    }
    let needed = SignedDuration::from_mins(i64::from(rule.window)).max(YOUNG);
    if judged.running_since.is_some_and(|began| now.duration_since(began) < needed) {
        let minutes = u32::try_from(needed.as_mins()).unwrap_or(u32::MAX);
        return Idleness::only(Verdict::NotYet, Why::Young { minutes });
    }
    if let Some(why) = blindness(judged) {
        return Idleness::only(Verdict::Unknown, why);
    }
    if !covered {
        let why = match window.seen {
            0 => Why::NoUsage,
            seen => Why::TooFewLooks { seen, window: rule.window },
        };
        return Idleness::only(Verdict::Unknown, why);
    }
    let (since, quiet) = quiet_since(judged.history, rule, rented as usize, (this, began));
    let server = judged.latest.and_then(|usage| usage.servers.first().cloned());
    let verdict = if window.serves && !rule.serving_is_idle { Verdict::Waiting } else { Verdict::Idle };
    let users = judged.latest.and_then(|usage| usage.users.as_ref()).map(|users| users.len() as u32);
    let peak = quiet.cards.iter().fold(Share::UNKNOWN, |peak, card| peak.highest(card.peak));
    let why = Why::Quiet { cards: rented, peak, moved: Share::of(quiet.moved()), cpu: quiet.cpu, users, server };
    let since = judged.running_since.map_or(since, |began| since.max(began));
    Idleness { verdict, since: Some(since), why, hints: Vec::new() }
}

/// Why the figures that are there prove nothing.
fn blindness(judged: &Judged<'_>) -> Option<Why> {
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

/// Since when nothing was work, and what was seen since then. A hole that is longer than a window may have ends it.
fn quiet_since(history: &History, rule: &IdleRule, rented: usize, (this, began): (i64, i64)) -> (Timestamp, Window) {
    let longest_hole = (f64::from(rule.window) * (1.0 - COVERAGE)) as i64;
    let (mut since, mut quiet) = (this, Window::new(history.width()));
    for minute in history.since(began).rev().filter(|minute| minute.number <= this && minute.host.seen) {
        let mut longer = Window { cards: quiet.cards.clone(), ..quiet };
        longer.add(minute, rented);
        if since - minute.number > longest_hole + 1 || longer.work(rule).is_some() || longer.seen == quiet.seen {
            break;
        }
        (since, quiet) = (minute.number, longer);
    }
    (Timestamp::from_second(since * MINUTE).expect("a minute of the history"), quiet)
}

fn hints(judged: &Judged<'_>, rule: &IdleRule, window: &Window) -> Vec<Hint> {
    let mut hints = Vec::new();
    let covered = f64::from(window.seen) >= COVERAGE * f64::from(rule.window);
    let still = window.work_beside_cards(rule, window.moved(), window.cpu.known().unwrap_or(0.0)).is_none();
    let stuck = window.cards.iter().find(|card| {
        let full = card.least.known().is_some_and(|least| least >= STUCK_USE);
        full && card.power.known().is_some_and(|power| power <= STUCK_POWER)
    });
    if let Some(card) = stuck.filter(|_| covered && still) {
        hints.push(Hint::PerhapsStuck { power: card.power });
    }
    let peak = judged.peak.filter(|peak| judged.runs && peak.slots >= WEEK_KNOWN);
    if let Some(peak) = peak.filter(|peak| peak.memory.known().is_some_and(|memory| memory < 0.5)) {
        hints.push(Hint::RentLess { memory: peak.memory });
    }
    hints
}
