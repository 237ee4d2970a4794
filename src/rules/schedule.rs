//! Which account is due when, given the time, failures and what the provider asked for.

use jiff::{SignedDuration, Timestamp};
use providers::provider::Ask;
use serde::{Deserialize, Serialize};
use std::time::Duration;

const RUNNING: SignedDuration = SignedDuration::from_secs(15);
const RESTING: SignedDuration = SignedDuration::from_secs(60);
/// While an action waits to be confirmed.
const WATCHING: SignedDuration = SignedDuration::from_secs(4);
/// The least time between two questions, however often a refresh is asked for.
const LEAST_GAP: SignedDuration = SignedDuration::from_secs(1);
/// Storage, balance and tenant change slowly.
const SLOW_PARTS: SignedDuration = SignedDuration::from_secs(60);
const FIRST_RETRY: SignedDuration = SignedDuration::from_secs(2);
const LONGEST_BACKOFF: SignedDuration = SignedDuration::from_mins(5);

/// The pace of an account with or without instances that may be working.
pub fn interval(running: bool) -> SignedDuration {
    if running { RUNNING } else { RESTING }
}

/// When one account was asked and how that went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pacing {
    /// When the poll that is under way was sent.
    pub in_flight: Option<Timestamp>,
    /// When the last poll was sent.
    pub asked_at: Option<Timestamp>,
    /// When storage and money were last asked for.
    pub slow_asked_at: Option<Timestamp>,
    /// Failed polls in a row.
    pub failures: u32,
    /// The provider asked to be left alone until then. Nobody's wish shortens it.
    pub quiet_until: Option<Timestamp>,
    /// Our own back-off after failures. A wish for fresh figures shortens it.
    pub backoff_until: Option<Timestamp>,
    /// Somebody asked for fresh figures.
    pub wanted: bool,
}

impl Pacing {
    /// A poll goes out. Says what it is to ask.
    pub fn ask(&mut self, now: Timestamp, tenant_checked: bool) -> Ask {
        let slow_due = self.slow_asked_at.is_none_or(|at| now.duration_since(at) >= SLOW_PARTS);
        let slow = slow_due || self.wanted || !tenant_checked;
        if slow {
            self.slow_asked_at = Some(now);
        }
        self.in_flight = Some(now);
        self.asked_at = Some(now);
        self.wanted = false;
        Ask { storage: slow, money: slow }
    }

    pub fn answered_well(&mut self) {
        self.in_flight = None;
        self.failures = 0;
        self.quiet_until = None;
        self.backoff_until = None;
    }

    /// Backs off, up to five minutes, and at least as long as the provider asked. What does not pass by
    /// itself (a refused key) is tried less often from the first failure on.
    pub fn answered_badly(&mut self, transient: bool, retry_after: Option<Duration>, seed: &str, now: Timestamp) {
        self.in_flight = None;
        self.failures += 1;
        let first = if transient { FIRST_RETRY } else { RESTING };
        let doubled = first * 2i32.saturating_pow(self.failures.min(16) - 1);
        self.backoff_until = Some(now + spread(doubled.min(LONGEST_BACKOFF), seed, now));
        self.quiet_until = retry_after.and_then(|wait| SignedDuration::try_from(wait).ok()).map(|wait| now + wait);
    }

    /// When the account is due next; `None` while a poll is under way. `seed` spreads accounts apart.
    pub fn due(&self, running: bool, watching: bool, seed: &str) -> Option<Timestamp> {
        if self.in_flight.is_some() {
            return None;
        }
        let Some(asked_at) = self.asked_at else { return Some(Timestamp::MIN) };
        let due = match self.backoff_until {
            _ if self.wanted => asked_at + LEAST_GAP,
            // Somebody waits for an action to be proven: a failure must not hide that for minutes.
            Some(until) if watching => until.min(asked_at + RUNNING),
            Some(until) => until,
            None if watching => asked_at + WATCHING,
            None => asked_at + spread(interval(running), seed, asked_at),
        };
        Some(self.quiet_until.map_or(due, |quiet| due.max(quiet)))
    }
}

/// An interval lengthened or shortened by up to a tenth, the same for the same seed (an account's name, for instance)
/// and moment, so that not all do it in step.
pub fn spread(interval: SignedDuration, seed: &str, asked_at: Timestamp) -> SignedDuration {
    let mut hash = 0xcbf2_9ce4_8422_2325u64 ^ asked_at.as_millisecond() as u64;
    for byte in seed.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    let share = (hash >> 33) as i64 % 201 - 100; // -100 to 100 thousandths
    interval + SignedDuration::from_millis(interval.as_millis() as i64 * share / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_795_000_000 + second).unwrap()
    }

    fn seconds(wait: SignedDuration) -> f64 {
        wait.as_secs_f64()
    }

    /// API-05: refused polls without a stated wait are tried again later and later.
    #[test]
    fn refused_polls_back_off() {
        let mut pacing = Pacing::default();
        let mut now = at(0);
        for least in [1.0, 2.0, 4.0] {
            pacing.ask(now, true);
            pacing.answered_badly(true, None, "team", now);
            let due = pacing.due(true, false, "team").unwrap();
            let wait = seconds(due.duration_since(now));
            assert!(wait >= least && wait <= 60.0, "{wait}");
            now = due;
        }
        for _ in 0..20 {
            pacing.ask(now, true);
            pacing.answered_badly(true, None, "team", now);
            now = pacing.due(true, false, "team").unwrap();
        }
        let wait = seconds(now.duration_since(pacing.asked_at.unwrap()));
        assert!(wait <= 330.0, "the back-off ends at five minutes, not {wait}");
    }

    #[test]
    fn a_stated_wait_is_kept_whatever_is_wished() {
        let mut pacing = Pacing::default();
        pacing.ask(at(0), true);
        pacing.answered_badly(true, Some(Duration::from_secs(90)), "team", at(0));
        pacing.wanted = true;
        assert_eq!(pacing.due(true, true, "team"), Some(at(90)));
    }

    #[test]
    fn a_wish_shortens_a_back_off_of_our_own() {
        let mut pacing = Pacing::default();
        pacing.ask(at(0), true);
        pacing.answered_badly(false, None, "team", at(0));
        assert!(pacing.due(true, false, "team").unwrap() > at(50));
        pacing.wanted = true;
        assert_eq!(pacing.due(true, false, "team"), Some(at(1)));
    }

    /// API-15: ten wishes within a second become two questions, a second apart.
    #[test]
    fn a_held_refresh_key_is_one_question_more() {
        let mut pacing = Pacing::default();
        let (mut asked, mut answer_at) = (Vec::new(), None);
        for tick in 0..30 {
            let now = Timestamp::from_millisecond(at(0).as_millisecond() + tick * 100).unwrap();
            if answer_at.is_some_and(|due| due <= now) {
                pacing.answered_well();
                answer_at = None;
            }
            if tick < 10 {
                pacing.wanted = true;
            }
            if pacing.due(true, false, "team").is_some_and(|due| due <= now) {
                pacing.ask(now, true);
                asked.push(now);
                answer_at = Some(now + SignedDuration::from_millis(300));
            }
        }
        assert!((1..=4).contains(&asked.len()), "{asked:?}");
        assert!(asked.windows(2).all(|pair| pair[1].duration_since(pair[0]) >= LEAST_GAP), "{asked:?}");
    }

    #[test]
    fn slow_parts_are_asked_for_once_a_minute_or_on_a_wish() {
        let mut pacing = Pacing::default();
        assert_eq!(pacing.ask(at(0), true), Ask::ALL);
        assert_eq!(pacing.ask(at(15), true), Ask::INSTANCES);
        assert_eq!(pacing.ask(at(30), false), Ask::ALL, "a tenant that was not compared is asked for");
        assert_eq!(pacing.ask(at(45), true), Ask::INSTANCES);
        pacing.wanted = true;
        assert_eq!(pacing.ask(at(50), true), Ask::ALL);
    }

    proptest! {
        #[test]
        fn accounts_do_not_ask_in_step_but_near_their_pace(seed in "[a-z]{1,8}", second in 0i64..100_000) {
            let spread = spread(RUNNING, &seed, at(second));
            prop_assert!(spread >= SignedDuration::from_millis(13_500) && spread <= SignedDuration::from_millis(16_500));
        }
    }
}
