//! rentop's side: the fleet, the meter, and what they wrote down.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use providers::error::{ErrorKind, Problem, ProviderError, RequestLine};
use providers::model::{AccountName, Identity, ResourceKind};
use providers::provider::{Found, Part, Poll, Reading};
use rentop::rules::fleet::{Account, Consequence, Fleet};
use rentop::rules::settings::Settings;
use rentop::rules::spend::{Entries, Look, Meter};

use crate::world::{Dice, LONGEST_GAP, Row, World, may_be_lost};

pub const ACCOUNTS: [&str; 2] = ["telling", "silent"];

/// What outlives the program.
pub trait Books {
    /// Writes down what a poll of an account added.
    fn keep(&mut self, account: &AccountName, now: Timestamp, entries: Entries, meter: &mut Meter);

    /// What a program that starts is told.
    fn recall(&mut self) -> Meter;
}

pub struct Watcher<B> {
    fleet: Fleet,
    settings: Settings,
    pub meter: Meter,
    pub books: B,
}

impl<B: Books> Watcher<B> {
    pub fn new(books: B) -> Self {
        let account = |name: &str| Account::new(name.into(), "somewhere".into(), false);
        Watcher {
            fleet: Fleet { accounts: ACCOUNTS.map(account).into(), ..Fleet::default() },
            settings: Settings::default(),
            meter: Meter::default(),
            books,
        }
    }

    /// Looks at the world as often as it is looked at, with lists that lack rows, polls that fail, restarts, and
    /// ends between a poll and its writing down.
    pub fn watch(&mut self, world: &World, dice: &mut Dice) {
        let times = world
            .polls
            .iter()
            .enumerate()
            .flat_map(|(account, polls)| polls.iter().enumerate().map(move |(place, at)| (*at, account, place)));
        let mut times: Vec<(i64, usize, usize)> = times.collect();
        times.sort_unstable();
        let mut whole_before = [true; 2];
        for (at, account, place) in times {
            let now = Timestamp::from_millisecond(at).unwrap();
            let careless = may_be_lost(world, account, place) && whole_before[account];
            let fate = if careless { dice.between(0, 99) } else { 99 };
            whole_before[account] = fate >= 8;
            match fate {
                // Killed before it was written down.
                0..2 => {
                    let fleet = self.fleet.clone();
                    let poll = poll(world, account, place, None, false);
                    self.take(account, poll, now);
                    self.fleet = fleet;
                    self.restart();
                }
                2..4 => {
                    let error = ErrorKind::Connect { message: "connection refused".to_owned() };
                    self.take(account, failed(account, error), now);
                }
                4..8 => {
                    let lacks = Some(dice.between(0, 39) as usize);
                    let entries = self.take(account, poll(world, account, place, lacks, dice.chance(50)), now);
                    self.books.keep(&ACCOUNTS[account].into(), now, entries, &mut self.meter);
                }
                _ => {
                    let entries = self.take(account, poll(world, account, place, None, false), now);
                    self.books.keep(&ACCOUNTS[account].into(), now, entries, &mut self.meter);
                }
            }
            if dice.chance(2) {
                self.restart();
            }
            if dice.chance(5) {
                self.mark(dice, now);
            }
        }
    }

    /// What is thought to do nothing, and when, changes nothing of what is charged.
    fn mark(&mut self, dice: &mut Dice, now: Timestamp) {
        let instances = self.meter.running().keys().filter(|identity| identity.kind == ResourceKind::Instance);
        let instances: Vec<Identity> = instances.cloned().collect();
        let Some(last) = instances.len().checked_sub(1) else { return };
        let identity = &instances[dice.between(0, last as i64) as usize];
        let at = now - SignedDuration::from_mins(dice.between(0, 40));
        match self.meter.idle_since(identity) {
            None => drop(self.meter.idles(identity, at)),
            Some(_) => self.meter.works(identity, at),
        }
    }

    fn restart(&mut self) {
        self.meter = self.books.recall();
    }

    fn take(&mut self, account: usize, poll: Poll, now: Timestamp) -> Entries {
        let name = AccountName::from(ACCOUNTS[account]);
        let listed = matches!(poll.instances, Part::Listed { .. });
        let consequences = self.fleet.absorb(&name, poll, now);
        let changed: BTreeSet<Identity> = consequences.iter().map(|known| known.identity().clone()).collect();
        let mut entries = Entries::default();
        if !listed {
            return entries;
        }
        let look = |kind| {
            let longest_gap = SignedDuration::from_millis(LONGEST_GAP);
            Look { account: name.clone(), kind, now, longest_gap }
        };
        for (kind, changed) in [(ResourceKind::Instance, Some(&changed)), (ResourceKind::Storage, None)] {
            entries.append(self.meter.look_at(&look(kind), &self.fleet, &self.settings, now, changed));
        }
        for consequence in consequences {
            let Consequence::AskById(identity) = consequence else { continue };
            for consequence in self.fleet.absorb_found(&identity, Found::NoSuchId, now) {
                let Consequence::Gone(identity) = consequence else { continue };
                let look = look(identity.kind);
                entries.append(self.meter.look_at_one(&look, &self.fleet, &self.settings, &identity, now));
            }
        }
        self.fleet.prune(now);
        entries
    }
}

/// What the provider answers, without the row of one thing: not listed, or not to be read.
fn poll(world: &World, account: usize, place: usize, lacks: Option<usize>, unreadable: bool) -> Poll {
    let polls = &world.polls[account];
    // What ended is listed for some hours.
    let listed_since = polls[place] - 8 * crate::world::HOUR;
    let (mut instances, mut items, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    for (number, thing) in world.things.iter().enumerate().filter(|(_, thing)| thing.account == account) {
        match thing.row(polls[place], listed_since) {
            Some(_) if lacks == Some(number) => {
                let request = RequestLine("GET /things".to_owned());
                problems.push(Problem { request, field: thing.id.clone(), message: "missing".to_owned() });
            }
            Some(Row::Instance(row)) => instances.push(*row),
            Some(Row::Storage(row)) => items.push(*row),
            None => {}
        }
    }
    if !unreadable {
        problems.clear();
    }
    Poll {
        server_time: None,
        instances: Part::Listed { rows: instances, problems: problems.clone() },
        storage: Part::Listed { rows: items, problems },
        balance: Reading::NotAsked,
        tenant: Reading::NotAsked,
    }
}

fn failed(account: usize, kind: ErrorKind) -> Poll {
    let error = ProviderError {
        provider: "somewhere".into(),
        account: ACCOUNTS[account].into(),
        request: RequestLine("GET /things".to_owned()),
        kind,
    };
    let (storage, balance, tenant) = (Part::NotAsked, Reading::NotAsked, Reading::NotAsked);
    Poll { instances: Part::Failed(error), storage, balance, tenant, server_time: None }
}
