//! The proof that spend adds up: ninety days of a random world with its own exact bill, watched by rentop's
//! rules. What they observed or inferred must be exact to the smallest unit, on every day, in every month and in
//! all; what differs must be listed as assumed, or as possible where a thing had gone.
//!
//! `PROOF_SEEDS=1000 cargo test --test proof` proves a thousand worlds, and `PROOF_SEED=17` one of them.

mod watcher;
mod world;

use std::collections::BTreeMap;
use std::thread;

use jiff::civil::Date;
use rentop::rules::spend::{Charge, Evidence, Exact, Span, by_day};

use watcher::{ACCOUNTS, Watcher};
use world::{Dice, Thing, World};

/// What one world came to, in 1e-12 dollars an hour times milliseconds.
#[derive(Default)]
struct Figures {
    charged: i128,
    assumed: i128,
    true_bill: i128,
}

#[test]
fn ninety_days_add_up_to_the_worlds_own_bill() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seeds = match (number("PROOF_SEED"), number("PROOF_SEEDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, count) => 0..count.unwrap_or(50),
    };
    println!("seeds {seeds:?}");
    let threads = thread::available_parallelism().map_or(2, usize::from) as u64;
    let lots: Vec<Vec<u64>> =
        (0..threads).map(|lot| seeds.clone().filter(|seed| seed % threads == lot).collect()).collect();
    let proofs: Vec<_> =
        lots.into_iter().map(|lot| thread::spawn(move || lot.into_iter().map(prove).collect::<Vec<_>>())).collect();
    let mut all = Figures::default();
    for figures in proofs.into_iter().flat_map(|proof| proof.join().expect("a proof, see above for its seed")) {
        all.charged += figures.charged;
        all.assumed += figures.assumed;
        all.true_bill += figures.true_bill;
    }
    let percent = |part: i128| part * 10_000 / all.true_bill;
    println!("charged {} of 10,000, assumed {}", percent(all.charged), percent(all.assumed));
    // A world that is hardly seen, or without any gap, proves nothing.
    assert!((100..5000).contains(&percent(all.assumed)), "{}", percent(all.assumed));
}

fn prove(seed: u64) -> Figures {
    let world = World::new(seed);
    let mut watcher = Watcher::new();
    watcher.watch(&world, &mut Dice::new(!seed));
    let days = world.days();
    let mut figures = Figures::default();
    for thing in &world.things {
        prove_thing(seed, &world, &days, thing, &spans_of(&world, &watcher, thing), &mut figures);
    }
    figures
}

/// Everything that was written down about a thing, and what is open at the last look.
fn spans_of(world: &World, watcher: &Watcher, thing: &Thing) -> Vec<Span> {
    let last = jiff::Timestamp::from_millisecond(*world.polls[thing.account].last().unwrap()).unwrap();
    let open = watcher.meter.open_spans(last);
    let ours = |span: &Span| {
        span.identity.id.as_str() == thing.id && span.identity.account.as_str() == ACCOUNTS[thing.account]
    };
    watcher.spans.iter().cloned().chain(open).filter(ours).collect()
}

fn prove_thing(
    seed: u64,
    world: &World,
    days: &BTreeMap<Date, (i64, i64)>,
    thing: &Thing,
    spans: &[Span],
    figures: &mut Figures,
) {
    let last = *world.polls[thing.account].last().unwrap();
    let is_sure = |span: &Span| span.terms.charge == Charge::Certain && span.evidence != Evidence::Assumed;
    let unsure = union(spans.iter().filter(|span| !is_sure(span)));
    let mut ours: BTreeMap<Date, Exact> = BTreeMap::new();
    let mut sure: BTreeMap<Date, Exact> = BTreeMap::new();
    for span in spans.iter().filter(|span| span.terms.charge == Charge::Certain) {
        for (day, from, to) in by_day(span.from, span.to, &world.zone) {
            let amount = Exact::over(span.rate, from, to);
            *ours.entry(day).or_default() += amount;
            if is_sure(span) {
                *sure.entry(day).or_default() += amount;
            } else {
                figures.assumed += units(amount);
            }
        }
    }
    let mut months: BTreeMap<Date, [i128; 2]> = BTreeMap::new();
    for (day, (from, to)) in days {
        let (from, to) = (*from, (*to).min(last));
        // The world's bill, but for the times that are listed as not sure.
        let parts =
            unsure.iter().map(|(start, end)| (from.max(*start), to.min(*end))).filter(|(start, end)| start < end);
        let (open, listed) =
            parts.fold((0, 0), |(bill, time), (start, end)| (bill + thing.bill(start, end), time + end - start));
        let expected = thing.bill(from, to) - open;
        let found = units(sure.get(day).copied().unwrap_or_default());
        assert_eq!(found, expected, "seed {seed}: {} on {day}: {:#?}\n{spans:#?}", thing.id, thing.states);
        let total = units(ours.get(day).copied().unwrap_or_default());
        let off = (total - thing.bill(from, to)).abs();
        let bound = i128::from(thing.dearest()) * i128::from(listed);
        assert!(off <= bound, "seed {seed}: {} on {day} is off by more than what is listed", thing.id);
        let month = months.entry(day.first_of_month()).or_default();
        month[0] += total;
        month[1] += bound;
    }
    for (month, [total, bound]) in &months {
        let midnight = |day: Date| day.to_zoned_datetime(world.zone.clone()).unwrap().timestamp().as_millisecond();
        let end = midnight(month.last_of_month().tomorrow().unwrap()).min(last);
        let expected = thing.bill(midnight(*month), end);
        assert!((total - expected).abs() <= *bound, "seed {seed}: {} in {month}", thing.id);
        assert!(*bound > 0 || *total == expected, "seed {seed}: {} in {month} has nothing assumed", thing.id);
    }
    let total: Exact = ours.values().copied().sum();
    let whole: Exact = spans.iter().filter(|span| span.terms.charge == Charge::Certain).map(Span::amount).sum();
    assert_eq!(total, whole, "seed {seed}: {}: its days add up", thing.id);
    figures.charged += units(total);
    figures.true_bill += thing.bill(world.start, last);
}

/// The times that some of these spans cover, none of them twice.
fn union<'a>(spans: impl Iterator<Item = &'a Span>) -> Vec<(i64, i64)> {
    let mut times: Vec<_> = spans.map(|span| (span.from.as_millisecond(), span.to.as_millisecond())).collect();
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

fn units(amount: Exact) -> i128 {
    let (micros, rest) = amount.parts();
    i128::from(micros) * 3_600_000_000_000 + i128::from(rest)
}
