use jiff::ToSpan;
use proptest::prelude::*;
use providers::money::{Currency, Rate};
use rstest::rstest;

use super::*;
use crate::rules::alerts::About;
use crate::rules::samples::{at, identity, usd};

/// The fleet's burn of so many dollars an hour.
fn burn(hourly: &str) -> Matter {
    Matter::Burn { burn: usd(hourly), limit: usd("10") }
}

fn idle(id: &str, hourly: &str) -> Matter {
    Matter::Idle {
        identity: identity("team", id),
        name: id.to_owned(),
        since: at("09:00:00"),
        rates: vec![usd(hourly)],
        wasted: Vec::new(),
    }
}

fn unreachable() -> Matter {
    Matter::Account { account: "team".into(), why: "no answer".to_owned(), since: at("09:00:00") }
}

fn appeared(id: &str) -> Matter {
    Matter::Appeared { identity: identity("team", id), name: id.to_owned(), rates: vec![usd("1")] }
}

fn repriced(before: &str, after: &str) -> Matter {
    let (before, after) = (vec![usd(before)], vec![usd(after)]);
    Matter::Repriced { identity: identity("team", "a"), name: "a".to_owned(), before, after }
}

fn losing() -> Matter {
    Matter::Runway {
        account: "team".into(),
        ends_at: at("23:00:00"),
        at_most: false,
        asleep: true,
        lost: vec!["pod-b".to_owned()],
        stopped: 1,
    }
}

/// A book with the ledger that it is written down in.
#[derive(Default)]
struct Story {
    alerts: Alerts,
    ledger: BTreeMap<(Topic, Timestamp), Alert>,
}

impl Story {
    /// Looks at a time. Returns what is told, each as a word.
    fn look(&mut self, clock: &str, found: Vec<Finding>) -> Vec<String> {
        self.look_with(at(clock), found, &|_| false)
    }

    fn look_with(&mut self, now: Timestamp, found: Vec<Finding>, doubtful: &dyn Fn(&Topic) -> bool) -> Vec<String> {
        let told = self.alerts.take(found, doubtful, now);
        self.keep();
        let word = |told| match told {
            Told::Fired(alert) => format!("fired {}", alert.topic.kind.word()),
            Told::Resolved(alert) => format!("resolved {}", alert.topic.kind.word()),
        };
        told.into_iter().map(word).collect()
    }

    fn keep(&mut self) {
        for alert in self.alerts.take_unkept() {
            let key = (alert.topic.clone(), alert.since);
            let ended = self.ledger.get(&key).is_some_and(|known| matches!(known.stage, Stage::Resolved { .. }));
            assert!(!ended, "what ended is never written anew: {alert:?}");
            match alert.came_to_nothing() {
                true => drop(self.ledger.remove(&key)),
                false => drop(self.ledger.insert(key, alert)),
            }
        }
    }

    fn restart(&mut self) {
        self.alerts.remember(self.ledger.values().cloned().collect());
    }

    fn acknowledge(&mut self, matter: &Matter) {
        self.alerts.acknowledge(&matter.topic());
        self.keep();
    }

    fn snooze(&mut self, matter: &Matter, clock: &str) {
        self.alerts.snooze(&matter.topic(), at(clock));
        self.keep();
    }

    fn stage(&self, matter: &Matter) -> Option<Stage> {
        self.alerts.get(&matter.topic()).map(|alert| alert.stage)
    }
}

const NOTHING: [&str; 0] = [];

#[test]
fn it_is_told_once_a_crossing_however_often_it_is_found_and_the_program_started() {
    let mut story = Story::default();
    assert_eq!(story.look("10:00:00", vec![Finding::now(burn("12"))]), ["fired burn"]);
    assert_eq!(story.look("10:00:10", vec![Finding::now(burn("13"))]), NOTHING);
    story.restart();
    assert_eq!(story.look("11:00:00", vec![Finding::now(burn("14"))]), NOTHING);
    assert_eq!(story.alerts.calling().count(), 1);
    assert_eq!(story.look("12:00:00", vec![]), ["resolved burn"]);
    story.restart();
    assert_eq!(story.look("12:00:10", vec![]), NOTHING);
    assert_eq!(story.alerts.ended().len(), 1);
    assert_eq!(story.look("13:00:00", vec![Finding::now(burn("12"))]), ["fired burn"], "it is another crossing");
}

#[test]
fn a_figure_that_wavers_about_the_line_is_one_crossing() {
    let mut story = Story::default();
    assert_eq!(story.look("10:00:00", vec![Finding::eased(burn("9.9"))]), NOTHING);
    assert!(story.ledger.is_empty() && story.alerts.open().next().is_none());
    assert_eq!(story.look("10:01:00", vec![Finding::now(burn("10.1"))]), ["fired burn"]);
    for (minute, over) in (2..60).zip([false, true].into_iter().cycle()) {
        let found = if over { Finding::now(burn("10.1")) } else { Finding::eased(burn("9.9")) };
        assert_eq!(story.look(&format!("10:{minute:02}:00"), vec![found]), NOTHING);
        assert_eq!(story.alerts.calling().count(), usize::from(over), "nobody is called for what is not so now");
    }
}

#[test]
fn what_must_have_been_so_for_a_time_counts_it_over_restarts_and_leaves_nothing_behind_when_it_passes() {
    let hour = SignedDuration::from_hours(1);
    let found = || vec![Finding::after(idle("a", "1"), hour)];
    let mut story = Story::default();
    assert_eq!(story.look("10:00:00", found()), NOTHING);
    assert_eq!(story.alerts.calling().count(), 0);
    story.acknowledge(&idle("a", "1"));
    story.restart();
    assert_eq!(story.look("10:59:50", found()), NOTHING);
    assert_eq!(story.look("11:00:00", found()), ["fired idle"], "what was not told yet cannot have been seen");

    let mut story = Story::default();
    story.look("10:00:00", found());
    assert_eq!(story.look("10:30:00", vec![]), NOTHING);
    story.restart();
    assert_eq!(story.look("11:00:00", found()), NOTHING, "it began anew");
    assert_eq!((story.ledger.len(), story.alerts.ended().len()), (1, 0));
}

#[test]
fn what_somebody_has_seen_is_silent_until_it_ends_and_begins_anew() {
    let mut story = Story::default();
    story.look("10:00:00", vec![Finding::now(burn("12"))]);
    story.acknowledge(&burn("12"));
    story.restart();
    assert_eq!(story.look("10:10:00", vec![Finding::now(burn("20"))]), NOTHING);
    assert_eq!(story.alerts.calling().count(), 0);
    assert_eq!(story.look("10:20:00", vec![]), ["resolved burn"]);
    assert_eq!(story.look("10:30:00", vec![Finding::now(burn("12"))]), ["fired burn"]);
}

#[test]
fn what_was_put_off_comes_back_at_its_time_if_it_still_is_so() {
    let mut story = Story::default();
    story.look("10:00:00", vec![Finding::now(burn("12"))]);
    story.snooze(&burn("12"), "11:00:00");
    story.restart();
    assert_eq!(story.look("10:59:00", vec![Finding::now(burn("12"))]), NOTHING);
    assert_eq!(story.look("11:00:00", vec![Finding::eased(burn("9.9"))]), NOTHING, "it is not so now");
    assert_eq!(story.look_with(at("11:05:00"), vec![], &|_| true), NOTHING, "nobody knows");
    assert_eq!(story.look("11:10:00", vec![Finding::now(burn("12"))]), ["fired burn"]);
    assert_eq!(story.look("11:20:00", vec![Finding::now(burn("12"))]), NOTHING);
}

#[test]
fn what_nobody_can_judge_stays_as_it_is() {
    let mut story = Story::default();
    story.look("10:00:00", vec![Finding::now(idle("a", "1")), Finding::now(idle("b", "1"))]);
    let b = idle("b", "1").topic();
    assert_eq!(story.look_with(at("10:01:00"), vec![], &|topic| *topic == b), ["resolved idle"]);
    assert_eq!(story.alerts.open().map(|alert| &alert.topic).collect::<Vec<_>>(), [&b]);
}

/// An account that fails every other poll, work that comes and goes.
#[rstest]
#[case::idleness(idle("a", "1"), "resolved idle", "12:00:00", "12:01:00")]
#[case::an_account(unreachable(), "resolved account", "10:15:00", "10:16:00")]
fn what_comes_and_goes_is_one_alert_until_it_has_settled(
    #[case] matter: Matter,
    #[case] resolved: &str,
    #[case] still: &str,
    #[case] settled: &str,
) {
    let mut story = Story::default();
    assert_eq!(story.look("09:00:00", vec![Finding::now(matter.clone())]).len(), 1);
    for minute in 1..60 {
        let found = if minute % 2 == 0 { Finding::now(matter.clone()) } else { Finding::eased(matter.clone()) };
        assert_eq!(story.look(&format!("09:{minute:02}:00"), vec![found]), NOTHING);
    }
    story.look("10:00:00", vec![Finding::now(matter.clone())]);
    story.look("10:01:00", vec![Finding::eased(matter.clone())]);
    assert_eq!(story.look(still, vec![Finding::eased(matter.clone())]), NOTHING);
    assert_eq!(story.look(settled, vec![Finding::eased(matter.clone())]), [resolved]);
    assert_eq!(story.stage(&matter), None);
}

#[test]
fn an_event_ends_by_being_seen_or_by_time_and_that_is_no_news() {
    let mut story = Story::default();
    let found = vec![Finding::now(appeared("a")), Finding::now(appeared("b"))];
    assert_eq!(story.look("00:00:00", found), ["fired appeared", "fired appeared"]);
    story.restart();
    assert_eq!(story.look("00:00:10", vec![Finding::now(appeared("b"))]), NOTHING, "it is the same event");
    story.acknowledge(&appeared("a"));
    assert_eq!(story.look("00:00:20", vec![]), NOTHING);
    assert_eq!((story.stage(&appeared("a")), story.stage(&appeared("b"))), (None, Some(Stage::Firing)));
    assert_eq!(story.look_with(at("00:00:00") + 24.hours(), vec![], &|_| true), NOTHING);
    assert_eq!((story.alerts.open().count(), story.alerts.ended().len()), (0, 2));
}

#[test]
fn an_event_that_was_put_off_is_told_again_and_one_that_happens_again_is_another() {
    let mut story = Story::default();
    story.look("10:00:00", vec![Finding::now(appeared("a"))]);
    story.snooze(&appeared("a"), "11:00:00");
    assert_eq!(story.look("10:30:00", vec![]), NOTHING);
    assert_eq!(story.look("11:00:00", vec![]), ["fired appeared"]);
    story.acknowledge(&appeared("a"));
    assert_eq!(story.look("11:00:01", vec![Finding::now(appeared("a"))]), ["fired appeared"]);
}

#[test]
fn several_prices_in_a_row_are_one_change_until_somebody_has_seen_it() {
    let mut story = Story::default();
    assert_eq!(story.look("10:00:00", vec![Finding::now(repriced("1", "2"))]), ["fired repriced"]);
    assert_eq!(story.look("10:01:00", vec![Finding::now(repriced("2", "3"))]), NOTHING);
    assert_eq!(story.alerts.get(&repriced("1", "3").topic()).unwrap().matter, repriced("1", "3"));
    story.acknowledge(&repriced("1", "3"));
    assert_eq!(story.look("10:02:00", vec![Finding::now(repriced("3", "4"))]), ["fired repriced"]);
}

#[test]
fn what_is_quiet_is_noted_and_told_only_when_it_no_longer_is() {
    let quiet = || Finding { quiet: true, ..Finding::now(losing()) };
    let mut story = Story::default();
    assert_eq!(story.look("10:00:00", vec![quiet()]), NOTHING);
    assert_eq!((story.stage(&losing()), story.alerts.calling().count()), (Some(Stage::Acknowledged), 0));
    assert_eq!(story.look("12:00:00", vec![quiet()]), NOTHING);
    assert_eq!(story.look("12:00:10", vec![Finding::now(losing())]), ["fired runway"]);
    assert_eq!(story.look("12:00:20", vec![quiet()]), NOTHING);
    assert_eq!(story.look("12:00:30", vec![]), ["resolved runway"], "somebody was told");

    let mut story = Story::default();
    story.look("10:00:00", vec![quiet()]);
    assert_eq!(story.look("10:01:00", vec![]), NOTHING, "nobody was told that it began");
    assert!(story.ledger.is_empty());
}

#[test]
fn data_that_will_be_lost_is_told_every_hour_until_somebody_has_seen_it() {
    let mut story = Story::default();
    assert_eq!(story.look("20:00:00", vec![Finding::now(losing())]), ["fired runway"]);
    assert_eq!(story.look("20:59:50", vec![Finding::now(losing())]), NOTHING);
    story.restart();
    assert_eq!(story.look("21:00:00", vec![Finding::now(losing())]), ["fired runway"]);
    assert_eq!(story.look_with(at("22:00:00"), vec![], &|_| true), NOTHING, "of what nobody knows nothing is told");
    story.acknowledge(&losing());
    assert_eq!(story.look("23:00:00", vec![Finding::now(losing())]), NOTHING);
}

#[test]
fn a_clock_that_is_set_back_keeps_nobody_waiting() {
    let hour = SignedDuration::from_hours(1);
    let mut story = Story::default();
    story
        .look("20:00:00", vec![Finding::now(losing()), Finding::now(burn("12")), Finding::after(idle("a", "1"), hour)]);
    story.snooze(&burn("12"), "21:00:00");
    let found = || vec![Finding::now(losing()), Finding::now(burn("12")), Finding::after(idle("a", "1"), hour)];
    assert_eq!(story.look("08:00:00", found()), NOTHING);
    let mut told = story.look("09:00:00", found());
    told.sort();
    assert_eq!(told, ["fired burn", "fired idle", "fired runway"]);
    // What ended at a time that comes again is not the one that begins then.
    story.look("09:00:10", vec![]);
    assert_eq!(story.look("09:00:00", vec![Finding::now(burn("12"))]), ["fired burn"]);
}

#[test]
fn the_ledgers_latest_word_of_a_topic_counts() {
    let mut story = Story::default();
    story.look("10:00:00", vec![Finding::now(burn("12"))]);
    let old = story.alerts.get(&burn("12").topic()).unwrap().clone();
    let newer = Alert { since: at("11:00:00"), stage: Stage::Acknowledged, ..old.clone() };
    for both in [vec![old.clone(), newer.clone()], vec![newer.clone(), old]] {
        story.alerts.remember(both);
        assert_eq!(story.alerts.open().collect::<Vec<_>>(), [&newer]);
    }
}

#[test]
fn the_worst_comes_first_then_what_costs_the_most_whatever_its_currency_then_the_oldest() {
    let euro = Rate::per_hour("2".parse().unwrap(), Currency::EUR).unwrap();
    let mut in_euro = idle("euro", "0");
    if let Matter::Idle { rates, .. } = &mut in_euro {
        *rates = vec![euro];
    }
    let usd = "1.5".parse().unwrap();
    let fx = crate::rules::spend::Fx { usd, as_of: "2026-11-30".parse().unwrap() };
    let exchange = Exchange { rates: [(Currency::EUR, fx)].into(), ..Exchange::default() };
    let mut story = Story::default();
    story.look("09:00:00", vec![Finding::now(idle("later", "2"))]);
    let matters = [appeared("x"), idle("cheap", "1"), in_euro, idle("dear", "2.5"), losing(), idle("a", "2")];
    let found = matters.into_iter().map(Finding::now).chain([Finding::now(idle("later", "2"))]);
    story.look("10:00:00", found.collect());
    let name = |alert: &&Alert| match &alert.topic.about {
        About::Resource(identity) => identity.id.to_string(),
        _ => alert.topic.kind.word().to_owned(),
    };
    let order = worst_first(story.alerts.calling(), &exchange);
    assert_eq!(order.iter().map(name).collect::<Vec<_>>(), ["runway", "euro", "dear", "later", "a", "cheap", "x"]);
}

/// What can happen to a topic of three: burn, idleness, an event.
#[derive(Clone, Debug)]
enum Step {
    /// What is found of each: it holds, it has eased, nobody knows, it is over.
    Look([u8; 3]),
    Acknowledge(usize),
    Snooze(usize, i64),
    Restart,
    Wait(i64),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => [0u8..4, 0u8..4, 0u8..4].prop_map(Step::Look),
        1 => (0usize..3).prop_map(Step::Acknowledge),
        1 => (0usize..3, 0i64..200).prop_map(|(topic, minutes)| Step::Snooze(topic, minutes)),
        1 => Just(Step::Restart),
        2 => (1i64..100).prop_map(Step::Wait),
    ]
}

proptest! {
    /// Whatever is found, said and restarted: in one episode it is told once, and once more for each time that it was
    /// put off; what holds is never lost; the end is told of what was told, once.
    #[test]
    fn nothing_is_told_twice_in_one_episode_and_nothing_is_lost(steps in prop::collection::vec(any_step(), 1..60)) {
        let matters = [burn("12"), idle("a", "1"), appeared("b")];
        let mut story = Story::default();
        let mut now = at("00:00:00");
        // Of each: how often it may still be told in this episode.
        let mut may = [1usize; 3];
        for step in steps {
            match step {
                Step::Wait(minutes) => now += SignedDuration::from_mins(minutes),
                Step::Restart => story.restart(),
                Step::Acknowledge(topic) => story.acknowledge(&matters[topic]),
                Step::Snooze(topic, minutes) => {
                    let topic_of = matters[topic].topic();
                    if story.alerts.get(&topic_of).is_some() {
                        story.alerts.snooze(&topic_of, now + SignedDuration::from_mins(minutes));
                        story.keep();
                        may[topic] = 1;
                    }
                }
                Step::Look(states) => {
                    let before: Vec<_> = matters.iter().map(|matter| story.stage(matter)).collect();
                    let found = states.iter().zip(&matters).filter_map(|(state, matter)| match state {
                        0 => Some(Finding::now(matter.clone())),
                        // An event has happened or has not.
                        1 if !matter.is_event() => Some(Finding::eased(matter.clone())),
                        _ => None,
                    });
                    let unknown: Vec<Topic> =
                        states.iter().zip(&matters).filter(|(state, _)| **state == 2).map(|(_, m)| m.topic()).collect();
                    let told = story.look_with(now, found.collect(), &|topic| unknown.contains(topic));
                    for (at, matter) in matters.iter().enumerate() {
                        let count = |word: &str| {
                            told.iter().filter(|told| **told == format!("{word} {}", matter.kind().word())).count()
                        };
                        let (fired, resolved) = (count("fired"), count("resolved"));
                        let is_new = before[at].is_none()
                            || (matter.is_event() && before[at] == Some(Stage::Acknowledged) && states[at] == 0);
                        if is_new {
                            may[at] = 1;
                        }
                        prop_assert!(fired <= may[at], "{matter:?} told again");
                        may[at] -= fired;
                        let stage = story.stage(matter);
                        if states[at] == 0 {
                            prop_assert!(stage.is_some(), "{matter:?} lost");
                            prop_assert!(!is_new || fired == 1, "{matter:?} not told");
                        }
                        let ended = before[at].is_some() && stage.is_none();
                        prop_assert_eq!(resolved, usize::from(ended && !matter.is_event()));
                    }
                }
            }
        }
        // The ledger knows what the book knows.
        let open: BTreeMap<_, _> = story.alerts.open.clone();
        story.restart();
        prop_assert_eq!(open.keys().collect::<Vec<_>>(), story.alerts.open.keys().collect::<Vec<_>>());
        for (topic, alert) in &open {
            prop_assert_eq!(alert.stage, story.alerts.open[topic].stage);
        }
    }
}
