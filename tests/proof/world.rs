//! A world of rented things with its own exact bill. It knows nothing of how rentop counts.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use providers::model::{
    Attachment, Component, Fate, Granularity, Instance, Market, Offer, Offers, Phase, Rates, Refusal, StorageItem,
    StorageKind,
};
use providers::money::{Currency, Rate};

pub const MINUTE: i64 = 60_000;
pub const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const DAYS: i64 = 90;
/// Polls are at most this far apart, but for outages and nights.
const PACE: i64 = 3 * HOUR;
/// What is further apart leaves a gap.
pub const LONGEST_GAP: i64 = 9 * HOUR;
/// Long enough that a gap holds two changes of what tells its times, and no third.
const LEAST_PHASE: i64 = 26 * HOUR;

/// The numbers of a seed (splitmix64).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Dice(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn between(&mut self, least: i64, most: i64) -> i64 {
        least + (self.next() % u64::try_from(most - least + 1).unwrap()) as i64
    }

    pub fn chance(&mut self, percent: i64) -> bool {
        self.between(0, 99) < percent
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.between(0, choices.len() as i64 - 1) as usize]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    On,
    Off,
    /// It is no more; `told` when its provider still lists it as ended, once.
    Gone {
        told: bool,
    },
}

/// How a thing is from some time on.
#[derive(Clone, Copy, Debug)]
pub struct State {
    pub from: i64,
    pub life: Life,
    /// In 1e-12 of a dollar an hour; compute is charged while it is on.
    compute: i64,
    disk: i64,
}

/// A rented thing.
pub struct Thing {
    pub account: usize,
    pub id: String,
    pub is_storage: bool,
    /// Its provider tells when it began and ended.
    tells: bool,
    /// In order of time; nothing before the first one.
    pub states: Vec<State>,
}

pub struct World {
    pub zone: TimeZone,
    pub things: Vec<Thing>,
    /// When each account is looked at.
    pub polls: Vec<Vec<i64>>,
    pub start: i64,
    pub end: i64,
}

/// What a provider's list holds of a thing.
pub enum Row {
    Instance(Box<Instance>),
    Storage(Box<StorageItem>),
}

impl World {
    /// Ninety days with 40 things in two accounts: one whose provider tells its times, one that tells none.
    pub fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        // The clocks of all three zones change in both, one way in spring and the other in autumn.
        let first = dice.of(&["2026-02-10T00:00:00Z", "2026-08-20T00:00:00Z"]);
        let zone = dice.of(&["America/New_York", "Europe/Berlin", "America/Santiago"]);
        let start = first.parse::<Timestamp>().unwrap().as_millisecond();
        let end = start + DAYS * DAY;
        let polls: Vec<Vec<i64>> = (0..2).map(|_| polls(&mut dice, start, end)).collect();
        let mut world = World { zone: TimeZone::get(zone).unwrap(), things: Vec::new(), polls, start, end };
        for number in 0..40 {
            let thing = world.thing(number, &mut dice);
            world.things.push(thing);
        }
        world.look_at_changes(&mut dice);
        world
    }

    fn thing(&self, number: usize, dice: &mut Dice) -> Thing {
        let (account, is_storage) = (number % 2, number % 5 == 4);
        let mut thing =
            Thing { account, id: format!("t{number}"), is_storage, tells: account == 0, states: Vec::new() };
        let polls = &self.polls[account];
        let quiet = quiet(polls);
        // What tells nothing is bought and changed as somebody looks.
        let begin = if thing.tells || is_storage {
            let poll = dice.of(&quiet[..quiet.len() / 2]);
            poll - dice.between(1, 50 * MINUTE)
        } else {
            dice.of(&quiet[..quiet.len() / 2])
        };
        let price = |dice: &mut Dice| dice.between(1, 40_000) * 99_999_937;
        let mut state = State { from: begin, life: Life::On, compute: price(dice), disk: price(dice) / 50 };
        if is_storage {
            state.compute = 0;
        }
        thing.states.push(state);
        let last = dice.between(begin + 2 * DAY, self.end + 40 * DAY).min(self.end);
        // Storage is never switched off.
        let switched = if is_storage { begin } else { last };
        while state.from < switched {
            let wish = state.from + dice.between(LEAST_PHASE, 10 * DAY);
            let from = if thing.tells { wish } else { self.unnoticed(polls, wish, dice) };
            if from >= last {
                break;
            }
            let life = if state.life == Life::On { Life::Off } else { Life::On };
            state = State { from, life, ..state };
            thing.states.push(state);
        }
        for _ in 0..dice.between(0, 3) {
            let wish = dice.between(begin, last);
            let from = self.unnoticed(polls, wish, dice);
            let (compute, disk) = (price(dice), price(dice) / 50);
            thing.reprice(from, if is_storage { 0 } else { compute }, disk);
        }
        if last < self.end {
            let calm = thing.states.last().is_some_and(|state| last - state.from > 48 * HOUR);
            let before = *thing.states.last().unwrap();
            if last > before.from {
                let told = thing.tells && !is_storage && calm && dice.chance(50);
                thing.states.push(State { from: last, life: Life::Gone { told }, ..before });
            }
        }
        thing
    }

    /// A time for what nobody tells: just as somebody looks, or within a gap.
    fn unnoticed(&self, polls: &[i64], wish: i64, dice: &mut Dice) -> i64 {
        let next = polls.partition_point(|poll| *poll < wish);
        let Some(&poll) = polls.get(next) else { return self.end };
        let before = if next == 0 { self.start } else { polls[next - 1] };
        if poll - before > LONGEST_GAP {
            return dice.between(before + 1, poll - 1);
        }
        poll
    }

    /// Somebody looks soon after most changes, outside of gaps.
    fn look_at_changes(&mut self, dice: &mut Dice) {
        for thing in &self.things {
            let polls = &mut self.polls[thing.account];
            for state in &thing.states {
                let at = state.from + dice.between(1, 10 * MINUTE);
                let next = polls.partition_point(|poll| *poll < at);
                let calm = next > 0 && polls.get(next).is_some_and(|poll| poll - polls[next - 1] <= PACE && *poll > at);
                if calm && dice.chance(80) {
                    polls.insert(next, at);
                }
            }
        }
    }

    /// The first moments of the civil days, from the first to after the last, by the calendar alone.
    pub fn days(&self) -> BTreeMap<Date, (i64, i64)> {
        let midnight = |day: Date| day.to_zoned_datetime(self.zone.clone()).unwrap().timestamp().as_millisecond();
        let mut day = Timestamp::from_millisecond(self.start).unwrap().to_zoned_datetime(self.zone.clone()).date();
        let mut days = BTreeMap::new();
        while midnight(day) < self.end {
            let next = day.tomorrow().unwrap();
            days.insert(day, (midnight(day), midnight(next)));
            day = next;
        }
        days
    }
}

/// When an account is looked at: every hour or three, but for nights and outages of up to forty hours.
fn polls(dice: &mut Dice, start: i64, end: i64) -> Vec<i64> {
    let mut polls = Vec::new();
    let mut at = start + dice.between(1, PACE);
    while at < end {
        polls.push(at);
        at += match dice.between(0, 99) {
            0 => dice.between(PACE, 40 * HOUR),
            1..3 => dice.between(PACE, 10 * HOUR),
            _ => dice.between(HOUR, PACE),
        };
    }
    polls
}

/// The polls that have others close before and after them.
fn quiet(polls: &[i64]) -> Vec<i64> {
    let near = |pair: &[i64]| pair[1] - pair[0] <= PACE;
    polls.windows(3).filter(|three| near(&three[..2]) && near(&three[1..])).map(|three| three[1]).collect()
}

/// Whether a poll may be lost, or lack a row: others are close before and after it, and nothing changes with it.
pub fn may_be_lost(world: &World, account: usize, place: usize) -> bool {
    let polls = &world.polls[account];
    let near = |place: usize| place > 0 && polls.get(place).is_some_and(|poll| poll - polls[place - 1] <= PACE);
    let own = world.things.iter().filter(|thing| thing.account == account);
    let changes = |state: &State| state.from == polls[place];
    near(place) && near(place + 1) && !own.flat_map(|thing| &thing.states).any(changes)
}

impl Thing {
    /// Another price from some time on. Not close to a change of another sort: between two looks a provider
    /// tells when a machine was stopped, but not what it cost until then.
    fn reprice(&mut self, from: i64, compute: i64, disk: i64) {
        let place = self.states.partition_point(|state| state.from <= from);
        let crowded = self.states.iter().any(|state| (state.from - from).abs() < 46 * HOUR);
        if place == 0 || crowded {
            return;
        }
        let life = self.states[place - 1].life;
        self.states.insert(place, State { from, life, compute, disk });
        for state in &mut self.states[place..] {
            (state.compute, state.disk) = (compute, disk);
        }
    }

    pub fn state(&self, at: i64) -> Option<&State> {
        self.states.iter().rev().find(|state| state.from <= at)
    }

    /// When its present life began.
    fn since(&self, at: i64) -> i64 {
        let known = self.states.iter().take_while(|state| state.from <= at);
        let mut since = (None, 0);
        for state in known {
            if since.0 != Some(state.life) {
                since = (Some(state.life), state.from);
            }
        }
        since.1
    }

    /// What it was charged from one time to another, in 1e-12 dollars an hour times milliseconds.
    pub fn bill(&self, from: i64, to: i64) -> i128 {
        self.bills(from, to).into_iter().map(|(_, sum)| sum).sum()
    }

    /// The same for each of its components.
    pub fn bills(&self, from: i64, to: i64) -> [(Component, i128); 2] {
        let (mut compute, mut disk) = (0, 0);
        for (place, state) in self.states.iter().enumerate() {
            let until = self.states.get(place + 1).map_or(i64::MAX, |next| next.from);
            let ms = i128::from((until.min(to) - state.from.max(from)).max(0));
            if state.life == Life::On {
                compute += i128::from(state.compute) * ms;
            }
            if matches!(state.life, Life::On | Life::Off) {
                disk += i128::from(state.disk) * ms;
            }
        }
        let stored = if self.is_storage { Component::Storage } else { Component::Disk };
        [(Component::Compute, compute), (stored, disk)]
    }

    /// What its rates may come to at most.
    pub fn dearest(&self) -> i64 {
        self.states.iter().map(|state| state.compute + state.disk).max().unwrap()
    }

    /// Its row in a list; `None` when it is not there.
    pub fn row(&self, at: i64, listed_since: i64) -> Option<Row> {
        let state = self.state(at)?;
        let life = state.life;
        if matches!(life, Life::Gone { told } if !told || state.from < listed_since) {
            return None;
        }
        let rate = |picos| Rate::from_picos(picos, Currency::USD);
        let time = |ms| Some(Timestamp::from_millisecond(ms).unwrap());
        if self.is_storage {
            let rates = Rates::known().with(Component::Storage, rate(state.disk));
            return Some(Row::Storage(Box::new(StorageItem {
                id: self.id.as_str().into(),
                name: None,
                kind: StorageKind::Volume,
                size_gib: None,
                attachment: Attachment::Unknown,
                rates,
                created_at: time(self.states[0].from),
                region: None,
                labels: BTreeMap::new(),
                at_zero: Fate::Unknown,
                delete: Offer::No(Refusal::NotOffered),
                page: None,
            })));
        }
        let since = self.since(at);
        // It says so only after some minutes, and until then only may be charged.
        let starting = self.tells && life == Life::On && at - since < 3 * MINUTE;
        let phase = match life {
            Life::On if starting => Phase::Provisioning,
            Life::On => Phase::Running,
            Life::Off => Phase::Stopped,
            Life::Gone { .. } => Phase::Gone,
        };
        let mut rates = Rates::known().with(Component::Disk, rate(state.disk));
        if life == Life::On {
            rates = rates.with(Component::Compute, rate(state.compute));
        }
        let no = || Offer::No(Refusal::NotOffered);
        Some(Row::Instance(Box::new(Instance {
            id: self.id.as_str().into(),
            name: None,
            phase,
            provider_phase: None,
            note: None,
            remarks: Vec::new(),
            market: Market::OnDemand,
            gpus: None,
            rates: if starting { rates.doubtful() } else { rates },
            created_at: time(self.states[0].from),
            started_at: time(since).filter(|_| self.tells && life == Life::On),
            repricing: None,
            stopped_at: time(since).filter(|_| self.tells && life != Life::On),
            granularity: Granularity::Exact,
            ends_at: None,
            at_zero: Fate::Unknown,
            usage: None,
            ssh: None,
            region: None,
            labels: BTreeMap::new(),
            mounts: Vec::new(),
            offers: Offers { stop: no(), start: no(), restart: no(), release: no() },
            page: None,
        })))
    }
}
