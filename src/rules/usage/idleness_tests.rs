use proptest::prelude::*;
use providers::usage::{GpuSample, UsageSource};
use rstest::rstest;

use super::*;
use crate::rules::samples::at;
use crate::rules::usage::{Gauge, SLOT, Slot};

const GIB: u64 = 1 << 30;

/// What a machine does at some time.
#[derive(Clone, Debug)]
struct Doing {
    /// In hundredths; `None` where a card does not tell.
    cards: Vec<Option<u32>>,
    memory_mib: u64,
    cpu: Option<u32>,
    disk: Option<f64>,
    network: Option<f64>,
    power: f64,
    serves: bool,
}

const NOTHING: Doing = Doing {
    cards: Vec::new(),
    memory_mib: 3,
    cpu: Some(1),
    disk: Some(0.0),
    network: Some(2000.0),
    power: 30.0,
    serves: false,
};

fn doing(cards: &[u32]) -> Doing {
    Doing { cards: cards.iter().copied().map(Some).collect(), ..NOTHING }
}

impl Doing {
    fn usage(&self, as_of: Timestamp) -> Usage {
        let card = |used: &Option<u32>| GpuSample {
            utilization: used.map(|used| f64::from(used) / 100.0),
            memory_used_bytes: Some(self.memory_mib << 20),
            memory_total_bytes: Some(32 * GIB),
            power_watts: Some(self.power),
            power_limit_watts: Some(250.0),
            ..GpuSample::default()
        };
        Usage {
            gpus: self.cards.iter().map(card).collect(),
            cpu: self.cpu.map(|cpu| f64::from(cpu) / 100.0),
            disk_bytes_per_second: self.disk,
            network_bytes_per_second: self.network,
            servers: if self.serves { vec![Server::Vllm] } else { Vec::new() },
            ..Usage::new(as_of, UsageSource::Ssh)
        }
    }
}

fn seconds(seconds: i64) -> Timestamp {
    at("10:00:00") + SignedDuration::from_secs(seconds)
}

fn minutes(minutes: i64) -> Timestamp {
    seconds(60 * minutes)
}

/// One machine, as it is looked at.
#[derive(Clone, Debug)]
struct Machine {
    history: History,
    latest: Option<Usage>,
    rented: Gpus,
    running_since: Option<Timestamp>,
    mismatch: Option<Mismatch>,
    before: Option<Idleness>,
}

impl Machine {
    fn of(cards: u32) -> Self {
        let rented = Gpus::parse("RTX 4090", Some(cards), None);
        let history = History::default();
        Machine { history, latest: None, rented, running_since: None, mismatch: None, before: None }
    }

    fn started(mut self, at: Timestamp) -> Self {
        self.running_since = Some(at);
        self
    }

    fn look(&mut self, usage: Usage) {
        self.history.note(&usage, Some(self.rented.count));
        self.latest = Some(usage);
    }

    /// Looks every fifteen seconds from one second to another.
    fn watch(mut self, doing: &Doing, from: i64, to: i64) -> Self {
        (from..to).step_by(15).for_each(|at| self.look(doing.usage(seconds(at))));
        self
    }

    fn judge(&self, rule: &IdleRule, now: Timestamp) -> Idleness {
        let judged = Judged {
            history: &self.history,
            latest: self.latest.as_ref(),
            runs: Some(true),
            rented: Some(&self.rented),
            running_since: self.running_since,
            mismatch: self.mismatch.as_ref(),
            partitioned: false,
            peak: None,
            before: self.before.as_ref(),
        };
        judge(&judged, rule, now)
    }

    fn verdict(&self, minute: i64) -> Verdict {
        self.judge(&IdleRule::default(), minutes(minute)).verdict
    }
}

/// The rule of the cases.
fn case_rule() -> IdleRule {
    IdleRule { cpu: 0.10, ..IdleRule::default() }
}

/// A state from some second on.
type States = Vec<(i64, Doing)>;

fn sampled(states: &States, to: i64) -> Machine {
    let mut machine = Machine::of(states[0].1.cards.len() as u32);
    for second in (states[0].0..=to).step_by(15) {
        let (_, doing) = states.iter().rev().find(|(from, _)| *from <= second).expect("a state");
        machine.look(doing.usage(seconds(second)));
    }
    machine
}

fn idle_01() -> States {
    vec![(0, Doing { memory_mib: 812, cpu: Some(96), disk: Some(4e8), network: Some(20_000.0), ..doing(&[0]) })]
}

fn idle_02() -> States {
    vec![(0, Doing { memory_mib: 22_900, cpu: Some(2), network: Some(300.0), serves: true, ..doing(&[0]) })]
}

fn idle_04() -> States {
    let stuck = Doing { memory_mib: 30_765, cpu: Some(12), network: Some(0.0), power: 47.0, ..doing(&[100]) };
    vec![(-120, Doing { power: 230.0, ..doing(&[98]) }), (-60, Doing { power: 231.0, ..doing(&[97]) }), (0, stuck)]
}

fn idle_05() -> States {
    let quiet = Doing { cpu: Some(6), disk: Some(1e5), network: Some(5000.0), ..doing(&[0]) };
    let bursts = [(210, 91), (510, 95), (810, 93), (1110, 91), (1410, 95), (1710, 93)];
    let burst =
        |(at, used): (i64, u32)| [(at, Doing { cards: vec![Some(used)], ..quiet.clone() }), (at + 30, quiet.clone())];
    std::iter::once((0, quiet.clone())).chain(bursts.into_iter().flat_map(burst)).collect()
}

fn idle_06() -> States {
    vec![(0, doing(&[0; 8]))]
}

#[rstest]
#[case::idle_01(idle_01(), 40, Verdict::Busy)]
#[case::idle_02(idle_02(), 60, Verdict::Waiting)]
#[case::idle_04(idle_04(), 34, Verdict::Busy)]
#[case::idle_05(idle_05(), 29, Verdict::Busy)]
#[case::idle_06(idle_06(), 31, Verdict::Idle)]
fn the_cases_are_judged_as_they_say(#[case] states: States, #[case] minute: i64, #[case] expected: Verdict) {
    let machine = sampled(&states, minute * 60);
    let idleness = machine.judge(&case_rule(), minutes(minute));
    assert_eq!(idleness.verdict, expected, "{idleness:?}");
}

#[test]
fn idle_03_two_looks_or_looks_far_apart_prove_nothing() {
    for (looks, now) in [(vec![0, 1], 1), (vec![0, 1], 31), (vec![0, 31, 60], 60)] {
        let mut machine = Machine::of(1);
        looks.into_iter().for_each(|minute| machine.look(doing(&[0]).usage(minutes(minute))));
        assert_eq!(machine.judge(&case_rule(), minutes(now)).verdict, Verdict::Unknown);
    }
}

#[test]
fn idle_04_has_the_hint_that_it_is_perhaps_stuck() {
    let hints = sampled(&idle_04(), 34 * 60).judge(&case_rule(), minutes(34)).hints;
    assert!(matches!(hints[..], [Hint::PerhapsStuck { .. }]), "{hints:?}");
    let works = vec![(0, Doing { power: 230.0, ..doing(&[100]) })];
    assert_eq!(sampled(&works, 34 * 60).judge(&case_rule(), minutes(34)).hints, []);
}

#[test]
fn idle_06_counts_since_its_first_minute() {
    for machine in [sampled(&idle_06(), 31 * 60), sampled(&idle_06(), 31 * 60).started(minutes(0))] {
        let idleness = machine.judge(&case_rule(), minutes(31));
        assert_eq!((idleness.verdict, idleness.since), (Verdict::Idle, Some(minutes(0))));
    }
}

/// Half an hour of one thing.
#[rstest]
#[case::at_the_line(doing(&[5]), Verdict::Idle)]
#[case::above_the_line(doing(&[6]), Verdict::Busy)]
#[case::one_of_two(doing(&[0, 6]), Verdict::Underused)]
#[case::one_of_eight(doing(&[0, 0, 0, 0, 0, 0, 0, 90]), Verdict::Underused)]
#[case::most_of_eight(doing(&[0, 0, 0, 90, 90, 90, 90, 90]), Verdict::Busy)]
#[case::cpu_under(Doing { cpu: Some(19), ..doing(&[0]) }, Verdict::Idle)]
#[case::cpu_at(Doing { cpu: Some(20), ..doing(&[0]) }, Verdict::Busy)]
#[case::disk_under(Doing { disk: Some(4_999_000.0), ..doing(&[0]) }, Verdict::Idle)]
#[case::disk_at(Doing { disk: Some(5e6), ..doing(&[0]) }, Verdict::Busy)]
#[case::network_under(Doing { network: Some(999_000.0), ..doing(&[0]) }, Verdict::Idle)]
#[case::network_at(Doing { network: Some(1e6), ..doing(&[0]) }, Verdict::Busy)]
#[case::the_rest_not_known(Doing { cpu: None, disk: None, network: None, ..doing(&[0]) }, Verdict::Idle)]
#[case::serves(Doing { serves: true, ..doing(&[0]) }, Verdict::Waiting)]
#[case::serves_somebody(Doing { serves: true, ..doing(&[40]) }, Verdict::Busy)]
#[case::one_card_does_not_tell(Doing { cards: vec![Some(0), None], ..NOTHING }, Verdict::Unknown)]
#[case::no_card_tells(Doing { cards: vec![None], ..NOTHING }, Verdict::Unknown)]
#[case::no_card_tells_but_the_cpu_works(Doing { cards: vec![None], cpu: Some(90), ..NOTHING }, Verdict::Busy)]
fn half_an_hour_of_one_thing_is_judged_by_the_lines(#[case] doing: Doing, #[case] expected: Verdict) {
    let machine = Machine::of(doing.cards.len() as u32).watch(&doing, 0, 30 * 60);
    let idleness = machine.judge(&IdleRule::default(), minutes(29));
    assert_eq!(idleness.verdict, expected, "{idleness:?}");
}

/// Half an hour of eight cards that are not told whole.
#[rstest]
#[case::no_memory(|usage: &mut Usage| usage.gpus.iter_mut().for_each(|gpu| gpu.memory_used_bytes = None), Some(8))]
#[case::no_memory_of_one(|usage: &mut Usage| usage.gpus[7].memory_total_bytes = None, Some(8))]
#[case::one_more_that_does_not_tell(|usage: &mut Usage| usage.gpus.push(GpuSample::default()), Some(8))]
#[case::one_of_nobody_knows_how_many(|usage: &mut Usage| usage.gpus[7].utilization = None, None)]
#[case::an_average_of_nobody_knows_how_many(|usage: &mut Usage| (usage.gpus.truncate(1), usage.averaged = true).1, None)]
fn what_is_not_told_of_a_card_is_no_stillness(#[case] change: fn(&mut Usage), #[case] rented: Option<u32>) {
    let mut machine = Machine::of(8);
    for minute in 0..40 {
        let mut usage = doing(&[0; 8]).usage(minutes(minute));
        change(&mut usage);
        machine.history.note(&usage, rented);
        machine.latest = Some(usage);
    }
    assert_eq!(machine.verdict(39), Verdict::Unknown);
}

#[test]
fn a_machine_without_memory_figures_says_what_is_missing() {
    let mut machine = Machine::of(1);
    for minute in 0..40 {
        let mut usage = doing(&[0]).usage(minutes(minute));
        usage.gpus[0].memory_used_bytes = None;
        machine.look(usage);
    }
    assert_eq!(machine.judge(&IdleRule::default(), minutes(39)).why, Why::MemoryUntold);
}

/// A hundredth of all of them is eight of one.
#[test]
fn an_average_hides_a_card_whose_memory_moves() {
    for (mib, expected) in [(0, Verdict::Idle), (330, Verdict::Busy)] {
        let mut machine = Machine::of(8);
        for minute in 0..30 {
            let memory_mib = if minute < 15 { 1000 } else { 1000 + mib };
            let usage = Doing { memory_mib, ..doing(&[0]) }.usage(minutes(minute));
            machine.look(Usage { averaged: true, ..usage });
        }
        assert_eq!(machine.verdict(29), expected, "{mib} MiB more");
    }
}

#[test]
fn the_minute_that_has_just_begun_is_no_hole() {
    let machine = Machine::of(1).watch(&doing(&[0]), 0, 3600);
    for window in [1, 2, 30, 60] {
        let rule = IdleRule { window, ..IdleRule::default() };
        assert_eq!(machine.judge(&rule, minutes(60)).verdict, Verdict::Idle, "{window} min");
        assert_eq!(machine.judge(&rule, minutes(59)).verdict, Verdict::Idle, "{window} min");
    }
    // Nor does it make what was quiet before it begin later.
    let since = |machine: &Machine| machine.judge(&IdleRule { window: 6, ..IdleRule::default() }, minutes(60)).since;
    assert_eq!(since(&machine), Some(minutes(0)));
    let hole = Machine::of(1).watch(&doing(&[0]), 50 * 60, 57 * 60).watch(&doing(&[0]), 58 * 60, 3600);
    assert_eq!(since(&hole), Some(minutes(50)));
    let short = IdleRule { window: 1, ..IdleRule::default() };
    assert_eq!(machine.judge(&short, minutes(61)).verdict, Verdict::Unknown);
    // What works in it works.
    let mut works = machine.clone();
    works.look(doing(&[90]).usage(minutes(60)));
    assert_eq!(works.judge(&short, seconds(3605)).verdict, Verdict::Busy);
}

#[test]
fn nobody_knows_of_a_machine_that_perhaps_runs() {
    let machine = Machine::of(1).watch(&doing(&[0]), 0, 3600);
    let judged = |runs, partitioned| {
        let judged = Judged {
            history: &machine.history,
            latest: machine.latest.as_ref(),
            runs,
            rented: Some(&machine.rented),
            running_since: None,
            mismatch: None,
            partitioned,
            peak: None,
            before: None,
        };
        judge(&judged, &IdleRule::default(), minutes(59)).verdict
    };
    assert_eq!(judged(Some(true), false), Verdict::Idle);
    assert_eq!(judged(Some(true), true), Verdict::Unknown);
    assert_eq!(judged(Some(false), false), Verdict::NotApplicable);
    assert_eq!(judged(None, false), Verdict::Unknown);
}

#[test]
fn what_serves_is_idle_where_the_rule_says_so() {
    let machine = Machine::of(1).watch(&Doing { serves: true, ..doing(&[0]) }, 0, 1800);
    let rule = IdleRule { serving_is_idle: true, ..IdleRule::default() };
    assert_eq!(machine.judge(&rule, minutes(29)).verdict, Verdict::Idle);
}

#[test]
fn what_served_before_it_was_idle_was_waiting_then() {
    let serves = Doing { serves: true, ..doing(&[0]) };
    let machine = Machine::of(1).watch(&serves, 0, 3600).watch(&doing(&[0]), 3600, 2 * 3600);
    assert_eq!(machine.verdict(88), Verdict::Waiting);
    let idleness = machine.judge(&IdleRule::default(), minutes(119));
    assert_eq!((idleness.verdict, idleness.since), (Verdict::Idle, Some(minutes(60))));
}

#[rstest]
#[case::within_two_hundredths(655, Verdict::Idle)]
#[case::beyond(700, Verdict::Busy)]
fn memory_that_moves_is_work(#[case] mib: u64, #[case] expected: Verdict) {
    let holds = |memory_mib| Doing { memory_mib, ..doing(&[0]) };
    let machine = Machine::of(1).watch(&holds(0), 0, 900).watch(&holds(mib), 900, 1800);
    assert_eq!(machine.verdict(29), expected);
}

#[rstest]
#[case::just_started(5, Verdict::NotYet)]
#[case::younger_than_the_window(29, Verdict::NotYet)]
#[case::old_enough(30, Verdict::Idle)]
fn a_machine_is_judged_when_it_is_as_old_as_the_window(#[case] minute: i64, #[case] expected: Verdict) {
    let machine = Machine::of(1).started(minutes(0)).watch(&doing(&[0]), 0, minute * 60 + 1);
    assert_eq!(machine.verdict(minute), expected);
}

#[rstest]
#[case::loads(9, Verdict::NotYet)]
#[case::works(10, Verdict::Busy)]
fn the_first_ten_minutes_give_no_verdict_at_all(#[case] minute: i64, #[case] expected: Verdict) {
    let machine = Machine::of(1).started(minutes(0)).watch(&doing(&[99]), 0, minute * 60 + 1);
    assert_eq!(machine.verdict(minute), expected);
    let short = IdleRule { window: 5, ..IdleRule::default() };
    let machine = Machine::of(1).started(minutes(0)).watch(&doing(&[0]), 0, 600);
    assert_eq!(machine.judge(&short, seconds(599)).verdict, Verdict::NotYet);
    assert_eq!(machine.judge(&short, seconds(600)).verdict, Verdict::Idle);
}

#[rstest]
#[case::four_of_five(24, Verdict::Idle)]
#[case::fewer(23, Verdict::Unknown)]
fn four_of_five_minutes_must_have_been_seen(#[case] seen: i64, #[case] expected: Verdict) {
    let mut machine = Machine::of(1);
    (30 - seen..30).for_each(|minute| machine.look(doing(&[0]).usage(minutes(minute))));
    assert_eq!(machine.verdict(29), expected);
}

#[test]
fn what_a_machine_did_in_its_run_before_does_not_count() {
    let machine = Machine::of(1).watch(&doing(&[99]), 0, 3600).started(minutes(61)).watch(&doing(&[0]), 3660, 6000);
    let idleness = machine.judge(&IdleRule::default(), minutes(91));
    assert_eq!((idleness.verdict, idleness.since), (Verdict::Idle, Some(minutes(61))));
    // Nor does what it did not do.
    let machine = Machine::of(1).watch(&doing(&[0]), 0, 3600).started(minutes(61)).watch(&doing(&[0]), 3660, 3720);
    assert_eq!(machine.verdict(62), Verdict::NotYet);
}

#[test]
fn an_average_hides_a_card_that_works() {
    let average = |used| Usage { averaged: true, ..doing(&[used]).usage(minutes(0)) };
    for (used, expected) in [(0, Verdict::Idle), (1, Verdict::Busy)] {
        let mut machine = Machine::of(8);
        (0..30).for_each(|minute| machine.look(Usage { as_of: minutes(minute), ..average(used) }));
        assert_eq!(machine.verdict(29), expected, "{used} of 100 on 8 cards may be one that works");
    }
}

/// A card that idles at two hundredths is none that works because an average stood there a moment before.
#[test]
fn figures_of_the_provider_and_of_the_machine_mix_card_by_card() {
    let mut machine = Machine::of(8);
    for minute in 0..30 {
        machine.look(Usage { averaged: true, ..doing(&[0]).usage(minutes(minute)) });
        machine.look(doing(&[2; 8]).usage(seconds(60 * minute + 30)));
    }
    assert_eq!(machine.verdict(29), Verdict::Idle);
    machine.look(Usage { averaged: true, ..doing(&[1]).usage(minutes(29)) });
    assert_eq!(machine.verdict(29), Verdict::Underused, "one may have done all of it");
}

#[rstest]
#[case::lost(|machine: &mut Machine| machine.mismatch = Some(Mismatch::Fewer { seen: 7, rented: 8 }))]
#[case::driver(|machine: &mut Machine| machine.latest.as_mut().unwrap().fault = Some("mismatch".to_owned()))]
#[case::card(|machine: &mut Machine| machine.latest.as_mut().unwrap().gpus[0].fault = Some("lost".to_owned()))]
#[case::cut(|machine: &mut Machine| machine.latest.as_mut().unwrap().gpus[0].partitioned = true)]
fn a_machine_that_cannot_be_seen_is_unknown(#[case] change: fn(&mut Machine)) {
    let mut machine = Machine::of(1).watch(&doing(&[0]), 0, 1800);
    change(&mut machine);
    assert_eq!(machine.verdict(29), Verdict::Unknown);
}

#[test]
fn figures_that_come_late_are_those_of_their_minute() {
    let mut machine = Machine::of(1).watch(&doing(&[0]), 0, 1800);
    // The same old figures over and over are no looks at the minutes since.
    (1800..2400).step_by(15).for_each(|_| machine.look(doing(&[0]).usage(seconds(1799))));
    assert_eq!(machine.verdict(36), Verdict::Idle);
    assert_eq!(machine.verdict(37), Verdict::Unknown);
    machine.look(doing(&[90]).usage(minutes(20)));
    assert_eq!(machine.verdict(35), Verdict::Busy);
}

#[test]
fn looks_of_a_time_to_come_are_none_of_now() {
    let machine = Machine::of(1).watch(&doing(&[0]), 0, 1800).watch(&doing(&[99]), 1860, 3600);
    assert_eq!(machine.verdict(30), Verdict::Idle);
}

#[test]
fn it_is_quiet_since_its_last_work_as_far_as_nearly_all_was_seen() {
    let quiet = doing(&[0]);
    let worked = Machine::of(1).watch(&doing(&[50]), 0, 600).watch(&quiet, 600, 7200);
    assert_eq!(worked.judge(&IdleRule::default(), minutes(119)).since, Some(minutes(10)));
    let hole = Machine::of(1).watch(&quiet, 0, 600).watch(&quiet, 1080, 7200);
    assert_eq!(hole.judge(&IdleRule::default(), minutes(119)).since, Some(minutes(18)), "eight minutes not seen");
    let rarely = |mut machine: Machine, step| {
        (0..60).step_by(step).for_each(|minute| machine.look(quiet.usage(minutes(minute))));
        machine.watch(&quiet, 3600, 7200)
    };
    let since = rarely(Machine::of(1), 3).judge(&IdleRule::default(), minutes(119)).since.unwrap();
    assert!(since > minutes(30), "a look every three minutes is not enough: {since}");
}

#[test]
fn what_was_quiet_stays_so_beyond_what_is_kept() {
    let mut machine = Machine::of(1).watch(&doing(&[0]), 0, 3600);
    let rule = IdleRule::default();
    machine.before = Some(machine.judge(&rule, minutes(59)));
    for minute in 60..30 * 60 {
        machine.look(doing(&[0]).usage(minutes(minute)));
        let idleness = machine.judge(&rule, minutes(minute));
        assert_eq!((idleness.verdict, idleness.since), (Verdict::Idle, Some(minutes(0))));
        machine.before = Some(idleness);
    }
}

#[rstest]
#[case::it_works(Some(99), 40, 40)]
#[case::nobody_looks(None, 50, 40)]
fn it_was_idle_up_to_its_last_quiet_minute(#[case] then: Option<u32>, #[case] now: i64, #[case] expected: i64) {
    let mut machine = Machine::of(1).watch(&doing(&[0]), 0, 2400);
    if let Some(used) = then {
        machine.look(doing(&[used]).usage(minutes(40)));
    }
    let until = idle_until(&machine.history, &IdleRule::default(), minutes(0), minutes(now));
    assert_eq!(until, minutes(expected));
}

#[test]
fn a_clock_that_is_set_back_takes_nothing_back() {
    let machine = Machine::of(1).watch(&doing(&[0]), 0, 2400);
    let rule = IdleRule::default();
    assert_eq!(machine.judge(&rule, minutes(-60)).verdict, Verdict::Unknown);
    let until = idle_until(&machine.history, &rule, minutes(0), minutes(-60));
    assert!((minutes(39)..=minutes(40)).contains(&until), "{until}");
}

#[test]
fn after_a_clock_was_days_ahead_looks_are_kept_again() {
    let mut machine = Machine::of(1).watch(&doing(&[0]), 0, 600);
    for to in [minutes(5), minutes(-3 * 24 * 60)] {
        machine.history.forget_after(minute_of(to));
        machine.look(doing(&[0]).usage(to));
        let seen: Vec<i64> = machine.history.since(i64::MIN).map(|minute| minute.number).collect();
        assert_eq!(seen.last(), Some(&minute_of(to)));
    }
    assert_eq!(machine.history.since(i64::MIN).count(), 1);
}

#[test]
fn what_came_late_ends_idleness_where_it_belongs() {
    let mut machine = Machine::of(1).watch(&doing(&[0]), 0, 2400);
    machine.look(doing(&[99]).usage(seconds(37 * 60 + 20)));
    assert_eq!(idle_until(&machine.history, &IdleRule::default(), minutes(0), minutes(40)), minutes(37));
}

#[test]
fn a_start_is_known_when_it_was_seen_and_not_otherwise() {
    use providers::model::Phase::*;
    let mut gauge = Gauge::default();
    gauge.saw(Running, minutes(0));
    gauge.saw(Unreachable, minutes(1));
    gauge.saw(Running, minutes(2));
    assert_eq!(gauge.running_since(None), None, "it ran when it was first seen");
    for rest in [Stopped, Provisioning, Reclaimed] {
        gauge.saw(rest, minutes(3));
        assert_eq!(gauge.running_since(None), None);
        gauge.saw(Running, minutes(4));
        gauge.saw(Running, minutes(5));
        assert_eq!(gauge.running_since(None), Some(minutes(4)));
    }
}

/// Some providers name the begin of the first run of all.
#[test]
fn a_start_that_was_seen_counts_where_an_older_one_is_told() {
    use providers::model::Phase::*;
    let mut gauge = Gauge::default();
    assert_eq!(gauge.running_since(Some(minutes(-60))), Some(minutes(-60)));
    gauge.saw(Stopped, minutes(3));
    gauge.saw(Running, minutes(4));
    assert_eq!(gauge.running_since(Some(minutes(-60))), Some(minutes(4)));
    assert_eq!(gauge.running_since(Some(seconds(200))), Some(seconds(200)), "it knows better when");
}

/// A host that no longer hears of its machine goes on telling what it heard last, with the time of now.
#[test]
fn what_a_provider_repeats_for_long_is_no_look() {
    let rule = IdleRule::default();
    let verdict = |timed: bool, moves: bool, base: f64| {
        let (mut gauge, mut latest) = (Gauge::default(), None);
        for minute in 0..60 {
            let memory = Some(if moves && minute % 9 == 0 { base + 0.01 } else { base });
            let usage = doing(&[0]).usage(minutes(minute));
            let usage = Usage { source: UsageSource::Provider, timed, memory, ..usage };
            gauge.note(&usage, Some(1));
            latest = Some(usage);
        }
        Machine { history: gauge.history, latest, ..Machine::of(1) }.judge(&rule, minutes(59)).verdict
    };
    assert_eq!(verdict(false, false, 0.3021), Verdict::Unknown);
    assert_eq!(verdict(false, true, 0.3021), Verdict::Idle, "it breathes");
    assert_eq!(verdict(true, false, 0.3021), Verdict::Idle, "it says when it looked");
    assert_eq!(verdict(false, false, 0.3), Verdict::Idle, "whole percents of an idle machine stand still");
}

#[test]
fn the_same_figures_again_are_one_point_of_the_curve() {
    let mut gauge = Gauge::default();
    let old = Usage { source: UsageSource::Provider, ..doing(&[7]).usage(minutes(0)) };
    (0..5).for_each(|_| gauge.note(&old, Some(1)));
    assert_eq!(gauge.trend.len(), 1);
}

/// What happened in each of some minutes: how it was seen, if at all.
#[derive(Clone, Debug)]
struct Seen {
    used: u32,
    other: u32,
    cpu: u32,
    memory_mib: u64,
    told: bool,
}

fn seen() -> impl Strategy<Value = Option<Seen>> {
    let used = || prop_oneof![12 => 0u32..6, 1 => 6u32..100];
    let memory = prop_oneof![12 => 0u64..200, 1 => 0u64..30_000];
    let told = prop::bool::weighted(0.95);
    let seen = (used(), used(), prop_oneof![12 => 0u32..20, 1 => 20u32..100], memory, told)
        .prop_map(|(used, other, cpu, memory_mib, told)| Seen { used, other, cpu, memory_mib, told });
    prop::option::weighted(0.9, seen)
}

fn watched(minutes_seen: &[Option<Seen>]) -> Machine {
    let mut machine = Machine::of(2);
    for (minute, seen) in minutes_seen.iter().enumerate() {
        if let Some(Seen { used, other, cpu, memory_mib, told }) = seen {
            let cards = vec![Some(*used), told.then_some(*other)];
            let doing = Doing { cards, cpu: Some(*cpu), memory_mib: *memory_mib, ..NOTHING };
            machine.look(doing.usage(minutes(minute as i64)));
        }
    }
    machine
}

/// What is left of a machine's history after a restart.
fn restarted(machine: &Machine) -> Machine {
    let mut history = machine.history.clone();
    let mut restarted = Machine { history: History::default(), ..machine.clone() };
    history.take_unkept().iter().for_each(|slot| restarted.history.restore(slot));
    restarted
}

proptest! {
    #[test]
    fn more_work_never_makes_it_idler(seen in prop::collection::vec(seen(), 30..50), at in any::<prop::sample::Index>(), more in 0u32..100) {
        let now = seen.len() as i64 - 1;
        let before = watched(&seen).verdict(now);
        let mut busier = seen.clone();
        if let Some(seen) = &mut busier[at.index(seen.len())] {
            (seen.used, seen.cpu) = (seen.used.max(more), seen.cpu.max(more));
        }
        let after = watched(&busier).verdict(now);
        prop_assert!(after != Verdict::Idle || before == Verdict::Idle, "{:?} became {:?}", before, after);
    }

    /// A look that is taken away proves less; only one that showed work, or memory that moved, may have been all the
    /// proof of that.
    #[test]
    fn fewer_looks_never_make_it_idle(seen in prop::collection::vec(seen(), 30..50), gone in prop::collection::vec(any::<bool>(), 50)) {
        let now = seen.len() as i64 - 1;
        let before = watched(&seen).verdict(now);
        let quiet = |seen: &Seen| seen.used <= 5 && seen.other <= 5 && seen.cpu < 20 && seen.memory_mib < 200;
        let fewer: Vec<_> = seen.iter().zip(&gone).map(|(look, gone)| {
            let goes = *gone && (before == Verdict::Unknown || look.as_ref().is_some_and(quiet));
            look.clone().filter(|_| !goes)
        }).collect();
        let after = watched(&fewer).verdict(now);
        prop_assert!(after != Verdict::Idle || before == Verdict::Idle, "{:?} became {:?}", before, after);
    }

    #[test]
    fn a_restart_hides_no_work_and_proves_nothing_more(seen in prop::collection::vec(seen(), 30..80)) {
        let now = seen.len() as i64 - 1;
        let (before, after) = (watched(&seen), restarted(&watched(&seen)));
        let (was, is) = (before.verdict(now), after.verdict(now));
        prop_assert!(is != Verdict::Idle || was == Verdict::Idle, "{:?} became {:?}", was, is);
        let since = |machine: &Machine| machine.judge(&IdleRule::default(), minutes(now)).since;
        if is == Verdict::Idle {
            prop_assert!(since(&after) >= since(&before), "it may not have been idle for longer");
        }
        // Ten o'clock is the beginning of a slot: where the window is one of slots, nothing is lost.
        let whole = (now + 1) / SLOT * SLOT;
        let (before, after) = (watched(&seen[..whole as usize]), restarted(&watched(&seen[..whole as usize])));
        if before.history.since(i64::MIN).last().is_some_and(|last| last.number == minute_of(minutes(whole - 1)) && last.host.whole) {
            prop_assert_eq!(before.verdict(whole - 1), after.verdict(whole - 1));
        }
    }

    /// Two processes that each saw a part of it know together what one would have seen.
    #[test]
    fn slots_of_two_processes_are_one(seen in prop::collection::vec(seen(), 5), cut in 0usize..6) {
        let slots = |seen: &[Option<Seen>], first: usize| {
            let mut all: Vec<Option<Seen>> = vec![None; first];
            all.extend(seen.iter().cloned());
            watched(&all).history.take_unkept()
        };
        let (first, second) = (slots(&seen[..cut], 0), slots(&seen[cut..], cut));
        let merged: Vec<Slot> = match (first.first(), second.first()) {
            (Some(one), Some(two)) => {
                let (mut forth, mut back) = (one.clone(), two.clone());
                forth.merge(two);
                back.merge(one);
                prop_assert_eq!(&forth, &back);
                vec![forth]
            }
            (one, two) => one.or(two).cloned().into_iter().collect(),
        };
        prop_assert_eq!(merged, slots(&seen, 0));
    }
}
