//! The proof that spend adds up, carried through the ledger: what it answers about days, months, resources and
//! single entries is the world's own exact bill, though the program ends again and again and begins with what
//! the file tells; and what a provider billed stands in the place of what was counted for the same time.
//!
//! `PROOF_SEEDS=100 cargo test --test proof_ledger` proves a hundred worlds of either sort.

#[path = "proof/watcher.rs"]
mod watcher;
#[path = "proof/world.rs"]
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use jiff::Timestamp;
use jiff::civil::Date;
use providers::model::{AccountName, BilledLine, Identity, ResourceKind};
use providers::money::{Currency, Money};
use providers::provider::BilledFor;
use rentop::ledger::Ledger;
use rentop::rules::memory::{AccountMemory, Keep};
use rentop::rules::spend::{
    Billable, Billing, Cell, Charge, Entries, Evidence, Exact, Meter, Period, Question, Sums, date_of, open_cells,
};
use rust_decimal::Decimal;
use tempfile::TempDir;

use watcher::{ACCOUNTS, Books, Watcher};
use world::{Dice, HOUR, Thing, World};

/// So many worlds of either sort unless it is said otherwise: one in each of the three zones.
const SEEDS: u64 = 3;

#[test]
fn the_ledger_answers_with_the_worlds_own_bill() {
    prove_all(|_| None);
}

#[test]
fn what_was_billed_stands_in_the_place_of_what_was_counted() {
    prove_all(|seed| Some((seed % 2) as usize));
}

/// Proves some worlds; `billed` says whose provider tells what it billed.
fn prove_all(billed: impl Fn(u64) -> Option<usize>) {
    let seeds = std::env::var("PROOF_SEEDS").map_or(SEEDS, |text| text.parse().expect("a number"));
    let zones: BTreeSet<String> = (0..seeds).map(|seed| prove(seed, billed(seed))).collect();
    assert_eq!(zones.len(), 3, "{zones:?}");
}

/// The ledger of a program that ends and begins, in a folder.
struct Kept<'a> {
    world: &'a World,
    folder: TempDir,
    ledger: Ledger,
    accounts: [AccountMemory; 2],
    now: Timestamp,
    /// Which account's provider tells what it billed, and how far that was asked for.
    billed: Option<(usize, Billing)>,
    dice: Dice,
}

impl<'a> Kept<'a> {
    fn new(world: &'a World, billed: Option<usize>, dice: Dice) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let now = time(world.start);
        let ledger = open(&folder, world, now);
        let accounts = ACCOUNTS.map(|name| AccountMemory::new(name.into(), "somewhere".into()));
        Kept {
            world,
            folder,
            ledger,
            accounts,
            now,
            billed: billed.map(|at| (at, Billing::new(BilledFor::Hours))),
            dice,
        }
    }

    fn write(&mut self, account: usize, entries: Entries, meter: &Meter) {
        let memory = &mut self.accounts[account];
        memory.as_of = Some(self.now);
        memory.instances_seen = meter.horizon(&memory.name, ResourceKind::Instance);
        memory.storage_seen = meter.horizon(&memory.name, ResourceKind::Storage);
        let keep = Keep { account: memory.clone(), instances: Vec::new(), storage: Vec::new(), entries };
        self.ledger.keep(&keep).unwrap();
    }

    /// Asks for what was billed, as the program does, and takes it in, now and then twice.
    fn import(&mut self, account: usize, meter: &mut Meter) {
        let Some((billed, billing)) = self.billed.as_mut().filter(|(billed, _)| *billed == account) else { return };
        let due = billing.due(self.now).is_some_and(|at| at <= self.now);
        let Some((from, to)) = billing.window(&self.world.zone, self.now).filter(|_| due) else { return };
        billing.ask(self.now);
        billing.answered();
        billing.kept(to);
        let lines = lines(self.world, *billed, from.as_millisecond()..to.as_millisecond());
        let entries = meter.cut(&ACCOUNTS[account].into(), to);
        self.write(account, entries, meter);
        for _ in 0..if self.dice.chance(20) { 2 } else { 1 } {
            self.ledger.import_billed(&ACCOUNTS[account].into(), from, to, &lines).unwrap();
        }
    }
}

impl Books for Kept<'_> {
    fn keep(&mut self, account: &AccountName, now: Timestamp, entries: Entries, meter: &mut Meter) {
        let account = ACCOUNTS.iter().position(|name| *name == account.as_str()).unwrap();
        self.now = now;
        self.write(account, entries, meter);
        if self.dice.chance(1) {
            self.import(account, meter);
        }
    }

    fn recall(&mut self) -> Meter {
        self.ledger = open(&self.folder, self.world, self.now);
        let (memory, notices) = self.ledger.recall(self.now).unwrap();
        assert_eq!(notices, []);
        memory.meter(|_| true)
    }
}

fn open(folder: &TempDir, world: &World, now: Timestamp) -> Ledger {
    let (mut ledger, notices) = Ledger::open(folder.path(), now).unwrap();
    assert_eq!(notices, []);
    ledger.use_zone(world.zone.clone()).unwrap();
    while ledger.add_up_more().unwrap() {}
    ledger
}

fn time(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(ms).unwrap()
}

/// What a provider billed in whole hours: what the world's bill says, and of every fifth line something else.
fn lines(world: &World, account: usize, times: Range<i64>) -> Vec<BilledLine> {
    let mut lines = Vec::new();
    for (number, thing) in world.things.iter().enumerate().filter(|(_, thing)| thing.account == account) {
        let begin = times.start.max(thing.states[0].from).div_euclid(HOUR) * HOUR;
        for hour in (begin..times.end).step_by(HOUR as usize) {
            let bills = thing.bills(hour, hour + HOUR);
            for (component, bill) in bills.into_iter().filter(|(_, bill)| *bill > 0) {
                let mut dice = Dice::new(hour as u64 ^ number as u64);
                let percent = if dice.chance(20) { dice.between(90, 110) } else { 100 };
                let amount = Decimal::from_i128_with_scale(bill * i128::from(percent), 14) / Decimal::from(HOUR);
                lines.push(BilledLine {
                    resource: Some((kind(thing), thing.id.as_str().into())),
                    product: "something rented".to_owned(),
                    component,
                    from: time(hour),
                    to: time(hour + HOUR),
                    amount: Money::new(amount, Currency::USD),
                });
            }
        }
    }
    lines
}

fn kind(thing: &Thing) -> ResourceKind {
    if thing.is_storage { ResourceKind::Storage } else { ResourceKind::Instance }
}

fn identity(thing: &Thing) -> Identity {
    let (account, id) = (ACCOUNTS[thing.account].into(), thing.id.as_str().into());
    Identity { account, kind: kind(thing), id, generation: 0 }
}

/// Proves one world, and tells its zone.
fn prove(seed: u64, billed: Option<usize>) -> String {
    let world = World::new(seed);
    let mut watcher = Watcher::new(Kept::new(&world, billed, Dice::new(seed ^ 0xb111ed)));
    watcher.watch(&world, &mut Dice::new(!seed));
    let meter = watcher.books.recall();
    let mut proof = Proof::new(seed, &world, &mut watcher.books, &meter);
    for thing in &world.things {
        proof.entries(thing);
    }
    proof.months();
    proof.days();
    world.zone.iana_name().unwrap().to_owned()
}

/// What certainly was charged, as the ledger tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Figures {
    /// Observed or inferred.
    sure: Exact,
    assumed: Exact,
    billed: Exact,
}

impl Figures {
    fn add(&mut self, evidence: Evidence, amount: Exact) {
        match evidence {
            Evidence::Observed | Evidence::Inferred => self.sure += amount,
            Evidence::Assumed => self.assumed += amount,
            Evidence::Billed => self.billed += amount,
        }
    }

    fn merge(&mut self, other: Figures) {
        self.sure += other.sure;
        self.assumed += other.assumed;
        self.billed += other.billed;
    }
}

struct Proof<'a> {
    seed: u64,
    world: &'a World,
    ledger: &'a mut Ledger,
    meter: &'a Meter,
    /// The account for which there are billed lines, and up to when.
    billed: Option<(usize, i64)>,
    whole: Period,
    /// By day and account: what it should have come to, and what is assumed by the single entries.
    days: BTreeMap<(Date, &'static str), Figures>,
    /// The same by month and resource.
    months: BTreeMap<(Date, Identity), Figures>,
}

impl<'a> Proof<'a> {
    fn new(seed: u64, world: &'a World, books: &'a mut Kept, meter: &'a Meter) -> Self {
        let billed = books.billed.as_ref().map(|(account, billing)| {
            let to = billing.billed_to.expect("something was billed");
            (*account, to.as_millisecond())
        });
        let day = |ms| date_of(time(ms), &world.zone);
        let whole = Period { from: day(world.start), to: day(world.end).tomorrow().unwrap() };
        let (days, months) = Default::default();
        Proof { seed, world, ledger: &mut books.ledger, meter, billed, whole, days, months }
    }

    /// Up to when a thing's time is billed.
    fn billed_to(&self, thing: &Thing) -> i64 {
        self.billed.filter(|(account, _)| *account == thing.account).map_or(i64::MIN, |(_, to)| to)
    }

    /// The last look at a thing's account.
    fn last(&self, account: usize) -> i64 {
        *self.world.polls[account].last().unwrap()
    }

    /// Looks through all entries of a thing, and notes what it should have come to.
    fn entries(&mut self, thing: &Thing) {
        let (seed, id, zone) = (self.seed, thing.id.as_str(), self.world.zone.clone());
        let (billed_to, last) = (self.billed_to(thing), self.last(thing.account));
        let account = AccountName::from(ACCOUNTS[thing.account]);
        let billable = Billable::Resource { identity: identity(thing), name: None };
        let question = Question::Entries { account, billable, period: self.whole };
        let entries = self.ledger.answer(&question).unwrap().entries;
        let closed = entries.into_iter().filter(|entry| !entry.replaced);
        let closed = closed.map(|entry| (entry.from, entry.to, entry.terms.charge, entry.evidence, entry.amount));
        let open = self.meter.open_parts_of(&identity(thing), time(last));
        let open = open.map(|part| (part.from, part.to, part.terms.charge, part.evidence, part.amount()));
        let all: Vec<_> = closed.chain(open).collect();
        let mut unsure = Vec::new();
        let mut found = Figures::default();
        for (from, to, charge, evidence, amount) in all {
            let (from, to) = (from.as_millisecond(), to.as_millisecond());
            if to > billed_to && (charge == Charge::Possible || evidence == Evidence::Assumed) {
                unsure.push((from.max(billed_to), to));
            }
            if charge == Charge::Certain {
                found.add(evidence, amount);
                let is_billed = evidence == Evidence::Billed;
                assert!(is_billed || from >= billed_to, "seed {seed}: {id} is counted and billed at {}", time(from));
                if evidence == Evidence::Assumed {
                    for (day, start, end) in rentop::rules::spend::by_day(time(from), time(to), &zone) {
                        let part = amount.until(end, time(from), time(to)) - amount.until(start, time(from), time(to));
                        self.note(day, thing, Figures { assumed: part, ..Figures::default() });
                    }
                }
            }
        }
        let unsure = union(unsure);
        let mut expected = Figures { assumed: found.assumed, ..Figures::default() };
        for (day, (from, to)) in self.world.days() {
            let (from, to) = (from.max(billed_to), to.min(last));
            if from >= to {
                continue;
            }
            let open = unsure.iter().map(|(start, end)| (from.max(*start), to.min(*end)));
            let open: i128 = open.filter(|(start, end)| start < end).map(|(start, end)| thing.bill(start, end)).sum();
            let of_day = Figures { sure: exact(thing.bill(from, to) - open), ..Figures::default() };
            expected.merge(of_day);
            self.note(day, thing, of_day);
        }
        if billed_to > self.world.start {
            let first = self.world.start.div_euclid(HOUR) * HOUR;
            let own = lines(self.world, thing.account, first..billed_to).into_iter();
            for line in own.filter(|line| line.resource.as_ref().is_some_and(|(_, own)| own.as_str() == id)) {
                let of_line = Figures { billed: Exact::of(line.amount.amount), ..Figures::default() };
                expected.merge(of_line);
                self.note(date_of(line.from, &zone), thing, of_line);
            }
        }
        assert_eq!(found, expected, "seed {seed}: {id}");
        let bill = exact(thing.bill(billed_to.max(self.world.start), last));
        let off = found.sure + found.assumed - bill;
        let listed: i64 = unsure.iter().map(|(from, to)| to - from).sum();
        let bound = exact(i128::from(thing.dearest()) * i128::from(listed));
        assert!(off.max(-off) <= bound, "seed {seed}: {id} is off by more than what is listed");
    }

    fn note(&mut self, day: Date, thing: &Thing, figures: Figures) {
        self.days.entry((day, ACCOUNTS[thing.account])).or_default().merge(figures);
        self.months.entry((day.first_of_month(), identity(thing))).or_default().merge(figures);
    }

    /// What the ledger answers, and what is open in the meter.
    fn cells(&mut self, question: &Question, period: Period) -> Vec<Cell> {
        let answer = self.ledger.answer(question).unwrap();
        assert!(!answer.unfinished);
        let by_resource = matches!(question, Question::Resources(_));
        let mut cells = answer.cells;
        for (account, name) in ACCOUNTS.iter().enumerate() {
            let open = open_cells(self.meter, period, by_resource, &self.world.zone, time(self.last(account)));
            cells.extend(open.into_iter().filter(|cell| cell.account.as_str() == *name));
        }
        cells.retain(|cell| cell.terms.charge == Charge::Certain && !cell.replaced);
        cells
    }

    /// Every resource in every month.
    fn months(&mut self) {
        let mut month = Period::month(self.whole.from);
        while month.from < self.whole.to {
            let mut found: BTreeMap<(Date, Identity), Figures> = BTreeMap::new();
            for cell in self.cells(&Question::Resources(month), month) {
                let Some(Billable::Resource { identity, .. }) = cell.billable else { panic!("{cell:?}") };
                found.entry((month.from, identity)).or_default().add(cell.evidence, cell.amount);
            }
            let expected = self.months.iter().filter(|((of, _), _)| *of == month.from);
            assert_eq!(nonzero(found), nonzero(expected.map(|(key, sum)| (key.clone(), *sum))), "seed {}", self.seed);
            month = Period::month(month.to);
        }
    }

    /// Every account on every day, and the sums that tick.
    fn days(&mut self) {
        let mut found: BTreeMap<(Date, &str), Figures> = BTreeMap::new();
        for cell in self.cells(&Question::Days(self.whole), self.whole) {
            let account = ACCOUNTS.iter().find(|name| **name == cell.account.as_str()).unwrap();
            found.entry((cell.day, account)).or_default().add(cell.evidence, cell.amount);
        }
        assert_eq!(nonzero(found), nonzero(self.days.clone()), "seed {}", self.seed);
        let today = date_of(time(self.world.end - 1), &self.world.zone);
        let summed = self.ledger.sum_up(today).unwrap();
        for (sums, period) in [(summed.today, Period::day(today)), (summed.month, Period::month(today))] {
            let mut expected = Sums::default();
            let cells = self.ledger.answer(&Question::Days(period)).unwrap().cells;
            cells.iter().for_each(|cell| expected.add_cell(cell));
            assert_eq!(sums, expected, "seed {}", self.seed);
        }
    }
}

fn nonzero<K: Ord>(sums: impl IntoIterator<Item = (K, Figures)>) -> BTreeMap<K, Figures> {
    sums.into_iter().filter(|(_, figures)| *figures != Figures::default()).collect()
}

/// Some times, none of them twice.
fn union(mut times: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    times.sort_unstable();
    let mut union: Vec<(i64, i64)> = Vec::new();
    for (from, to) in times {
        match union.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => union.push((from, to)),
        }
    }
    union
}

fn exact(units: i128) -> Exact {
    let micro = i128::from(Exact::MICRO_PARTS);
    Exact::from_parts(units.div_euclid(micro) as i64, units.rem_euclid(micro) as i64)
}
