//! A day of one instance, minute by minute: of everything that moves the end that matters.
//!
//! It is kept small (some twenty bytes a minute and card), for every machine of the fleet has one. What is to
//! outlive the program are slots of five minutes, made of the same figures: the highest use, both ends of memory,
//! and in which of the minutes something was seen, so that no work is lost by a restart and no gap is hidden.

use jiff::Timestamp;
use providers::usage::{GpuSample, Usage};
use serde::{Deserialize, Serialize};

use super::Share;

/// Minutes that are kept.
pub const HISTORY: usize = 24 * 60;
/// Minutes of a slot.
pub const SLOT: i64 = 5;
/// Seconds of a minute.
pub const MINUTE: i64 = 60;
/// They are dropped so many at a time.
const SURPLUS: usize = 60;

/// What one card did in a minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardMinute {
    /// Of the time in which something ran on it, the highest that was seen.
    pub peak: Share,
    /// The lowest of the same.
    pub least: Share,
    pub memory_low: Share,
    pub memory_high: Share,
    /// The highest power, as a share of what it may draw.
    pub power: Share,
}

impl CardMinute {
    /// One figure for several cards, as each of them may have done all of it: an average hides the one that works.
    pub fn spread(&mut self, cards: u8) {
        let most = |peak: f64| (peak * f64::from(cards.max(1))).min(1.0);
        self.peak = Share::from(self.peak.known().map(most));
    }

    fn merge(&mut self, other: &CardMinute) {
        self.peak = self.peak.highest(other.peak);
        self.least = self.least.lowest(other.least);
        self.memory_low = self.memory_low.lowest(other.memory_low);
        self.memory_high = self.memory_high.highest(other.memory_high);
        self.power = self.power.highest(other.power);
    }
}

/// Bytes a second in thousands, rounded up; or not known.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow(u32);

impl Flow {
    pub const UNKNOWN: Flow = Flow(u32::MAX);

    /// Bytes a second.
    pub fn known(self) -> Option<f64> {
        (self != Flow::UNKNOWN).then(|| f64::from(self.0) * 1000.0)
    }

    /// As it is written in the ledger.
    pub fn bits(self) -> u32 {
        self.0
    }

    pub fn from_bits(bits: u32) -> Self {
        Flow(bits)
    }

    fn highest(self, other: Self) -> Self {
        match (self == Flow::UNKNOWN, other == Flow::UNKNOWN) {
            (false, false) => Flow(self.0.max(other.0)),
            (false, true) => self,
            _ => other,
        }
    }
}

impl From<Option<f64>> for Flow {
    fn from(bytes: Option<f64>) -> Self {
        let known = bytes.filter(|bytes| bytes.is_finite() && *bytes >= 0.0);
        known.map_or(Flow::UNKNOWN, |bytes| Flow((bytes / 1000.0).ceil().min(f64::from(u32::MAX - 1)) as u32))
    }
}

impl Default for Flow {
    fn default() -> Self {
        Flow::UNKNOWN
    }
}

impl std::fmt::Debug for Flow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.known() {
            Some(bytes) => write!(f, "{bytes} B/s"),
            None => f.write_str("unknown"),
        }
    }
}

/// What the machine did in a minute beside its cards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostMinute {
    /// Something was seen in it.
    pub seen: bool,
    /// What each rented card did was seen in it, and the memory that it had in use.
    pub whole: bool,
    /// The one figure of use stands for so many cards; 1 when each has its own.
    pub averaged_over: u8,
    /// Something served, or waited to.
    pub serves: bool,
    pub cpu: Share,
    pub disk: Flow,
    pub network: Flow,
}

impl HostMinute {
    fn merge(&mut self, other: &HostMinute) {
        self.seen |= other.seen;
        self.whole |= other.whole;
        self.averaged_over = self.averaged_over.max(other.averaged_over);
        self.serves |= other.serves;
        self.cpu = self.cpu.highest(other.cpu);
        self.disk = self.disk.highest(other.disk);
        self.network = self.network.highest(other.network);
    }
}

/// Adds what was seen in the same time. One figure for all cards does not mix with one for each.
fn merge((host, cards): (&mut HostMinute, &mut [CardMinute]), (other, more): (&HostMinute, &[CardMinute])) {
    let (own, their) = (host.averaged_over, other.averaged_over);
    let mixed = host.seen && other.seen && own != their;
    if mixed {
        cards.iter_mut().for_each(|card| card.spread(own));
    }
    for (card, more) in cards.iter_mut().zip(more) {
        let mut more = *more;
        if mixed {
            more.spread(their);
        }
        card.merge(&more);
    }
    host.merge(other);
    if mixed {
        host.averaged_over = 1;
    }
}

/// One minute of a history.
#[derive(Clone, Copy, Debug)]
pub struct Minute<'a> {
    /// Counted from the beginning of 1970.
    pub number: i64,
    pub host: &'a HostMinute,
    pub cards: &'a [CardMinute],
}

/// What outlives the program of five minutes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slot {
    /// Five minutes, counted from the beginning of 1970.
    pub number: i64,
    /// A bit for each minute in which something was seen, the first the lowest.
    pub seen: u8,
    /// Of these, the minutes in which each rented card was.
    pub whole: u8,
    pub host: HostMinute,
    pub cards: Vec<CardMinute>,
}

impl Slot {
    /// Adds what somebody else saw of the same five minutes.
    pub fn merge(&mut self, other: &Slot) {
        self.seen |= other.seen;
        self.whole |= other.whole;
        if self.cards.len() < other.cards.len() {
            self.cards.resize(other.cards.len(), CardMinute::default());
        }
        merge((&mut self.host, &mut self.cards), (&other.host, &other.cards));
    }

    /// The highest share of its memory that a card used.
    pub fn memory_peak(&self) -> Share {
        self.cards.iter().fold(Share::UNKNOWN, |peak, card| peak.highest(card.memory_high))
    }
}

/// The minutes of an instance. Minutes without a look are there, not seen.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The number of the first minute.
    first: i64,
    hosts: Vec<HostMinute>,
    /// `width` cards a minute, in the order of the machine: a card that is lost moves those behind it, which
    /// changes nothing for what is asked of all of them.
    cards: Vec<CardMinute>,
    width: usize,
    /// The first minute that is not in the ledger as it is.
    unkept: Option<i64>,
}

/// The number of the minute in which a moment lies.
pub fn minute_of(at: Timestamp) -> i64 {
    at.as_second().div_euclid(MINUTE)
}

impl History {
    /// Takes a look in. `rented` is how many cards there are to be seen, and how many one figure stands for where it
    /// is an average; `None` when not known.
    pub fn note(&mut self, usage: &Usage, rented: Option<u32>) {
        let number = minute_of(usage.as_of);
        let (known, cards) = (rented.unwrap_or(1).max(1), usage.gpus.len());
        // Of a card whose memory is not known nobody can say that it did not move.
        let tells = |gpu: &&GpuSample| gpu.utilization.is_some() && gpu.memory_share().is_some();
        let told = usage.gpus.iter().filter(tells).count();
        let all = if usage.averaged { rented.is_some() } else { told >= known as usize };
        let host = HostMinute {
            seen: true,
            whole: told > 0 && told == cards && all,
            averaged_over: if usage.averaged { u8::try_from(known).unwrap_or(u8::MAX) } else { 1 },
            serves: !usage.servers.is_empty(),
            cpu: Share::from(usage.cpu),
            disk: Flow::from(usage.disk_bytes_per_second),
            network: Flow::from(usage.network_bytes_per_second),
        };
        let card = |gpu: &GpuSample| {
            let (used, memory) = (Share::from(gpu.utilization), Share::from(gpu.memory_share()));
            let power = Share::from(gpu.power_share());
            CardMinute { peak: used, least: used, memory_low: memory, memory_high: memory, power }
        };
        let cards: Vec<CardMinute> = usage.gpus.iter().map(card).collect();
        if self.merge(number, &host, &cards) {
            self.unkept = Some(self.unkept.map_or(number, |first| first.min(number)));
        }
    }

    /// Takes in what the ledger knew: of each minute that was seen, the ends of its slot.
    pub fn restore(&mut self, slot: &Slot) {
        for minute in (0..SLOT).filter(|minute| slot.seen & (1 << minute) != 0) {
            let host = HostMinute { whole: slot.whole & (1 << minute) != 0, ..slot.host };
            self.merge(slot.number * SLOT + minute, &host, &slot.cards);
        }
    }

    /// Drops what lies after a minute: a clock that was ahead saw it, and has been set.
    pub fn forget_after(&mut self, number: i64) {
        let kept = usize::try_from(number.saturating_sub(self.first).saturating_add(1)).unwrap_or(0);
        self.hosts.truncate(kept);
        self.cards.truncate(kept * self.width);
    }

    /// The slots that differ from what the ledger has, which are then taken for written.
    pub fn take_unkept(&mut self) -> Vec<Slot> {
        let Some(first) = self.unkept.take() else { return Vec::new() };
        let slots = first.max(self.first).div_euclid(SLOT)..=self.last().div_euclid(SLOT);
        slots.filter_map(|number| self.slot(number)).collect()
    }

    /// Minutes from one on, the oldest first.
    pub fn since(&self, number: i64) -> impl DoubleEndedIterator<Item = Minute<'_>> {
        let skip = usize::try_from(number.saturating_sub(self.first)).unwrap_or(0).min(self.hosts.len());
        (skip..self.hosts.len()).map(|at| Minute {
            number: self.first + at as i64,
            host: &self.hosts[at],
            cards: &self.cards[at * self.width..(at + 1) * self.width],
        })
    }

    /// How many cards there ever were.
    pub fn width(&self) -> usize {
        self.width
    }

    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// The last minute that is kept.
    pub fn last(&self) -> i64 {
        self.first + self.hosts.len() as i64 - 1
    }

    fn slot(&self, number: i64) -> Option<Slot> {
        let mut slot = Slot { number, seen: 0, whole: 0, host: HostMinute::default(), cards: Vec::new() };
        let begin = number * SLOT;
        for minute in self.since(begin).take_while(|minute| minute.number < begin + SLOT) {
            if minute.host.seen {
                let bit = 1 << (minute.number - begin);
                slot.seen |= bit;
                slot.whole |= if minute.host.whole { bit } else { 0 };
                slot.cards.resize(self.width, CardMinute::default());
                merge((&mut slot.host, &mut slot.cards), (minute.host, minute.cards));
            }
        }
        (slot.seen != 0).then_some(slot)
    }

    /// False when the minute is too far back to be kept.
    fn merge(&mut self, number: i64, host: &HostMinute, cards: &[CardMinute]) -> bool {
        if !self.make_room(number) {
            return false;
        }
        self.widen(cards.len());
        let at = usize::try_from(number - self.first).expect("room was made for it");
        let own = &mut self.cards[at * self.width..(at + 1) * self.width];
        merge((&mut self.hosts[at], own), (host, cards));
        true
    }

    /// Makes the minute one of those that are kept, with those between it and the others.
    fn make_room(&mut self, number: i64) -> bool {
        if self.hosts.is_empty() {
            self.first = number;
        }
        let last = self.last().max(number);
        if last - number >= HISTORY as i64 {
            return false;
        }
        if last - self.first >= (2 * HISTORY) as i64 {
            // Nothing of before reaches into the day.
            (self.hosts, self.cards, self.first) = (Vec::new(), Vec::new(), number);
        }
        if let Ok(before @ 1..) = usize::try_from(self.first - number) {
            self.hosts.splice(0..0, std::iter::repeat_n(HostMinute::default(), before));
            self.cards.splice(0..0, std::iter::repeat_n(CardMinute::default(), before * self.width));
            self.first = number;
        }
        let count = usize::try_from(last - self.first + 1).expect("the last is not before the first");
        // Grown by the hour: doubled, a day would take the room of two.
        if count > self.hosts.capacity() {
            let more = count - self.hosts.len() + SURPLUS;
            self.hosts.reserve_exact(more);
            self.cards.reserve_exact(more * self.width);
        }
        self.hosts.resize(count, HostMinute::default());
        self.cards.resize(count * self.width, CardMinute::default());
        if count >= HISTORY + SURPLUS {
            let surplus = count - HISTORY;
            self.hosts.drain(..surplus);
            self.cards.drain(..surplus * self.width);
            self.first += surplus as i64;
        }
        true
    }

    fn widen(&mut self, width: usize) {
        if width <= self.width {
            return;
        }
        let mut cards = Vec::with_capacity(self.hosts.len() * width);
        for at in 0..self.hosts.len() {
            cards.extend_from_slice(&self.cards[at * self.width..(at + 1) * self.width]);
            cards.resize((at + 1) * width, CardMinute::default());
        }
        (self.cards, self.width) = (cards, width);
    }
}
