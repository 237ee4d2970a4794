use jiff::SignedDuration;
use providers::gpu::Gpus;
use providers::model::{Instance, Phase};
use providers::money::Currency;
use providers::provider::{Part, Poll, Reading};
use providers::usage::{GpuSample, Usage, UsageSource};
use rstest::rstest;

use super::*;
use crate::app::event::{Event, WorldEvent};
use crate::app::state::{Fixed, State, View};
use crate::app::update::{settle, start, take};
use crate::rules::fleet::Account;
use crate::rules::memory::{Collector, Memory};
use crate::rules::samples::{at, identity, instance};
use crate::rules::settings::Rules;
use crate::rules::spend::{Exact, Sums};
use crate::rules::usage::{UsageEntry, Verdict};

/// Eight cards at 21.52 dollars an hour.
fn machine() -> Instance {
    Instance { gpus: Some(Gpus::parse("H100", Some(8), None)), ..instance("a", Phase::Running, "21.52") }
}

/// What all of its cards do, as its provider tells.
fn eight(used: f64, as_of: Timestamp) -> Usage {
    let (memory_used_bytes, memory_total_bytes) = (Some(1 << 30), Some(80 << 30));
    let card = GpuSample { utilization: Some(used), memory_used_bytes, memory_total_bytes, ..GpuSample::default() };
    Usage { gpus: vec![card; 8], timed: true, ..Usage::new(as_of, UsageSource::Provider) }
}

/// One account with one instance, looked at every thirty seconds.
struct Story {
    state: State,
    now: Timestamp,
    effects: Vec<Effect>,
}

impl Story {
    fn begin() -> Self {
        Story::at(at("10:00:00"))
    }

    fn at(now: Timestamp) -> Self {
        let accounts = vec![Account::new("team".into(), "runpod".into(), false)];
        let mut state = State {
            world: World::new(accounts, Rules::default(), false, "ana@desk".to_owned(), now),
            view: View::new(Fixed::default(), Vec::new()),
            leaving: false,
        };
        state.world.use_zone(jiff::tz::TimeZone::UTC);
        start(&mut state, now);
        let mut story = Story { state, now, effects: Vec::new() };
        story.take(WorldEvent::Collector(Collector::Us));
        story.take(WorldEvent::Remembered { memory: Box::new(Memory::default()), notices: Vec::new() });
        story
    }

    fn take(&mut self, event: WorldEvent) {
        let effects = take(&mut self.state, Event::World(event), self.now);
        self.effects.extend(effects);
        settle(&mut self.state, self.now);
    }

    /// Looks up to a minute. `used` is what each card does, in hundredths; `None` when nothing tells.
    fn looks(&mut self, minute: i64, used: Option<u32>) {
        let to = at("10:00:00") + SignedDuration::from_mins(minute);
        while self.now < to {
            let usage = used.map(|used| eight(f64::from(used) / 100.0, self.now));
            self.poll(Instance { usage, ..machine() });
            self.wait();
        }
    }

    /// Half a minute, in which the claim on the ledger is renewed.
    fn wait(&mut self) {
        for _ in 0..3 {
            self.now += SignedDuration::from_secs(10);
            self.take(WorldEvent::Collector(Collector::Us));
        }
    }

    fn poll(&mut self, row: Instance) {
        let account = AccountName::from("team");
        self.state.world.fleet.account_mut(&account).unwrap().pacing.in_flight = Some(self.now);
        let poll = Poll {
            instances: Part::complete(vec![row]),
            storage: Part::NotAsked,
            balance: Reading::NotAsked,
            tenant: Reading::NotTold,
            server_time: None,
        };
        self.take(WorldEvent::Polled { account, asked_at: self.now, poll: Box::new(poll) });
    }

    fn verdict(&self) -> Verdict {
        self.state.world.idleness(&identity("team", "a")).unwrap().verdict
    }

    fn since(&self) -> Option<Timestamp> {
        self.state.world.idleness(&identity("team", "a")).unwrap().since
    }

    /// What of the open lines is waste.
    fn waste(&self) -> String {
        let mut sums = Sums::default();
        self.state.world.spending.meter.open_parts(self.now).for_each(|part| sums.add_part(&part));
        sums.of(Currency::USD).wasted.amount().round_dp(6).normalize().to_string()
    }

    fn wasting(&self) -> String {
        self.state.world.totals.waste.of(Currency::USD).amount().to_string()
    }

    fn usage(&mut self) -> Vec<UsageEntry> {
        let kept = std::mem::take(&mut self.effects).into_iter();
        kept.flat_map(|effect| if let Effect::KeepUsage(entries) = effect { entries } else { Vec::new() }).collect()
    }

    fn markings(&self) -> Vec<(Timestamp, bool)> {
        let marks = self.effects.iter().filter_map(|effect| match effect {
            Effect::MarkWaste(markings) => Some(markings.iter().map(|marking| (marking.from, marking.wasted))),
            _ => None,
        });
        marks.flatten().collect()
    }
}

#[test]
fn idle_06_an_idle_hour_costs_what_an_hour_costs() {
    let mut story = Story::begin();
    story.looks(10, Some(0));
    assert_eq!((story.verdict(), story.wasting()), (Verdict::Unknown, "0".to_owned()));
    story.looks(31, Some(0));
    assert_eq!((story.verdict(), story.since()), (Verdict::Idle, Some(at("10:00:00"))));
    assert_eq!(story.wasting(), "21.52");
    story.looks(60, Some(0));
    let spent = vec![(Currency::USD, Exact::of("21.52".parse().unwrap()))];
    assert_eq!(story.state.world.wasted(&identity("team", "a"), story.now), Some(spent));
    assert_eq!(story.waste(), "21.52");
    assert_eq!(story.markings(), [], "nothing of it is closed");
}

#[rstest]
#[case::it_works(Some(90), 70, Verdict::Busy)]
#[case::nobody_tells(None, 70, Verdict::Unknown)]
fn waste_ends_with_the_last_idle_minute(#[case] then: Option<u32>, #[case] minute: i64, #[case] verdict: Verdict) {
    let mut story = Story::begin();
    story.looks(60, Some(0));
    story.looks(minute, then);
    assert_eq!(story.verdict(), verdict);
    assert_eq!((story.waste().as_str(), story.wasting().as_str()), ("21.52", "0"));
    assert_eq!(story.state.world.wasted(&identity("team", "a"), story.now), None);
}

#[test]
fn what_was_closed_while_it_was_idle_is_marked_in_the_books() {
    let mut story = Story::begin();
    story.looks(20, Some(0));
    let (from, to) = (at("10:00:00"), at("10:15:00"));
    story.take(WorldEvent::Billed { account: "team".into(), from, to, lines: Ok(Vec::new()) });
    story.looks(30, Some(0));
    assert_eq!(story.markings(), [(at("10:00:00"), true)]);
    assert_eq!(story.effects.iter().filter(|effect| matches!(effect, Effect::MarkWaste(_))).count(), 1);
    let spent = vec![(Currency::USD, Exact::of("10.76".parse().unwrap()))];
    assert_eq!(story.state.world.wasted(&identity("team", "a"), story.now), Some(spent));
    story.effects.clear();
    // Nobody tells any more.
    story.looks(60, None);
    let (from, to) = (at("10:15:00"), at("10:50:00"));
    story.take(WorldEvent::Billed { account: "team".into(), from, to, lines: Ok(Vec::new()) });
    assert_eq!((story.verdict(), story.markings()), (Verdict::Unknown, Vec::new()), "it ended within what was open");
}

#[test]
fn what_the_ledger_knew_is_judged_after_a_restart_as_before_it() {
    let mut story = Story::begin();
    story.looks(60, Some(0));
    let effect = crate::app::update::keep_usage(&mut story.state);
    story.effects.extend(effect);
    let entries = story.usage();
    let mut again = Story::at(story.now);
    again.looks(61, Some(0));
    assert_eq!(again.verdict(), Verdict::Unknown);
    again.take(WorldEvent::UsageRecalled { entries, rest: None, peaks: None });
    assert_eq!((again.verdict(), again.since()), (Verdict::Idle, Some(at("10:00:00"))));
}

#[test]
fn a_stop_ends_what_was_wasted_by_running() {
    let mut story = Story::begin();
    story.looks(40, Some(0));
    story.poll(instance("a", Phase::Stopped, "0"));
    assert_eq!((story.verdict(), story.wasting()), (Verdict::NotApplicable, "0".to_owned()));
    assert!(story.state.world.fleet.idle.is_empty());
}

#[test]
fn figures_of_a_time_to_come_are_not_taken_in() {
    let mut story = Story::begin();
    story.looks(31, Some(0));
    let usage = eight(0.9, story.now + SignedDuration::from_hours(48));
    story.poll(Instance { usage: Some(usage), ..machine() });
    assert_eq!((story.verdict(), story.since()), (Verdict::Idle, Some(at("10:00:00"))));
}

/// A screen beside the one that collects knows only what that one wrote, up to a minute ago.
#[test]
fn who_only_looks_on_is_told_by_the_ledger() {
    let (mut story, mut beside) = (Story::begin(), Story::begin());
    beside.poll(machine());
    for minute in 1..40 {
        story.looks(minute, Some(0));
        let entries = story.usage();
        beside.now = story.now;
        beside.take(WorldEvent::UsageRecalled { entries, rest: None, peaks: None });
    }
    assert_eq!((beside.verdict(), beside.since()), (Verdict::Idle, Some(at("10:00:00"))));
    assert_eq!(beside.wasting(), "21.52");
    story.looks(42, Some(90));
    let entries = story.usage();
    beside.now = story.now;
    beside.take(WorldEvent::UsageRecalled { entries, rest: None, peaks: None });
    assert_eq!((beside.verdict(), beside.wasting().as_str()), (Verdict::Busy, "0"));
}

/// What a program that is ended by force has not written is a minute at the most.
#[test]
fn what_is_seen_is_written_down_within_a_minute() {
    let mut story = Story::begin();
    for minute in 2..10 {
        story.looks(minute, Some(0));
        let last = story.usage().last().map(|entry| entry.slot.clone()).expect("a slot a minute");
        let (slot, bit) = ((600 + minute - 2) / 5, (600 + minute - 2) % 5);
        assert!(last.number % 288 > slot || last.seen >> bit & 1 == 1, "{minute}: {last:?}");
    }
    let usage = Usage { gpus: vec![GpuSample::default()], ..Usage::new(story.now, UsageSource::Provider) };
    story.poll(Instance { usage: Some(usage), ..machine() });
    assert_eq!(crate::app::update::leave_now(&mut story.state, story.now).len(), 1, "and the rest at the end");
}

#[test]
fn a_clock_that_was_days_ahead_and_is_set_goes_on_being_judged() {
    let mut story = Story::begin();
    story.now += SignedDuration::from_hours(72);
    for _ in 0..70 {
        story.poll(Instance { usage: Some(eight(0.0, story.now)), ..machine() });
        story.wait();
    }
    assert_eq!(story.verdict(), Verdict::Idle);
    story.now = at("10:00:00");
    story.looks(1, Some(0));
    assert_eq!(story.verdict(), Verdict::Unknown);
    story.looks(31, Some(0));
    assert_eq!((story.verdict(), story.since()), (Verdict::Idle, Some(at("10:00:00"))));
}
