//! When a provider is asked for what it billed, and for which time.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};
use providers::provider::BilledFor;
use serde::{Deserialize, Serialize};

use super::{Period, date_of};

/// Records are asked for this often.
const EVERY: SignedDuration = SignedDuration::from_hours(1);
/// A record is final so long after its time, as far as anybody states it.
const FINAL_AFTER: SignedDuration = SignedDuration::from_mins(30);
/// So far back records are read again, since a provider may still correct them.
const AGAIN: SignedDuration = SignedDuration::from_hours(48);
const FIRST_RETRY: SignedDuration = SignedDuration::from_mins(5);

/// How far an account's billed records are in the books.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Billing {
    /// What the provider's records are for.
    pub records: BilledFor,
    /// The books hold all records up to then; `None` before the first import.
    pub billed_to: Option<Timestamp>,
    /// When they were last asked for.
    pub asked_at: Option<Timestamp>,
    /// The question that is under way.
    pub in_flight: bool,
    /// Failed questions in a row.
    pub failures: u32,
    /// What was wrong with the last question's answer: request, field and reason; `None` when it was good.
    #[serde(default)]
    pub trouble: Option<String>,
}

impl Billing {
    /// Nothing was asked for yet.
    pub fn new(records: BilledFor) -> Self {
        Billing { records, billed_to: None, asked_at: None, in_flight: false, failures: 0, trouble: None }
    }

    /// When the account is to be asked next; `None` while a question is under way.
    pub fn due(&self, now: Timestamp) -> Option<Timestamp> {
        if self.in_flight {
            return None;
        }
        // The clock was set back: what it said then is no time to count from.
        let Some(asked_at) = self.asked_at.filter(|asked_at| *asked_at <= now) else { return Some(now) };
        let wait = match self.failures {
            // Records of whole days change but once a day.
            0 => EVERY.max(SignedDuration::from_secs(self.records.seconds() / 4)),
            failures => (FIRST_RETRY * 2i32.saturating_pow(failures.min(8) - 1)).min(EVERY * 6),
        };
        Some(asked_at + wait)
    }

    /// The time to ask for: at first contact from the start of the previous month, then what is new, and what
    /// may have been corrected. It is of whole records, and ends with one that is final: of what is in it the
    /// answer tells all. `None` when there is nothing to ask for yet.
    pub fn window(&self, zone: &TimeZone, now: Timestamp) -> Option<(Timestamp, Timestamp)> {
        let step = self.records.seconds();
        let whole = |at: Timestamp| Timestamp::from_second(at.as_second().div_euclid(step) * step).ok();
        let to = whole(now - FINAL_AFTER)?;
        let from = match self.billed_to {
            Some(billed_to) => billed_to - AGAIN,
            None => Period::month(date_of(now, zone).first_of_month().saturating_sub(1.day())).start(zone),
        };
        let from = whole(from)?;
        (from < to).then_some((from, to))
    }

    pub fn ask(&mut self, now: Timestamp) {
        self.in_flight = true;
        self.asked_at = Some(now);
    }

    /// The question was answered.
    pub fn answered(&mut self) {
        self.in_flight = false;
        self.failures = 0;
        self.trouble = None;
    }

    /// The books hold all that was billed up to a time. What was answered and not written down is asked for again.
    pub fn kept(&mut self, to: Timestamp) {
        self.billed_to = self.billed_to.max(Some(to));
    }

    pub fn failed(&mut self, trouble: String) {
        self.in_flight = false;
        self.failures += 1;
        self.trouble = Some(trouble);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn the_first_question_reaches_back_to_the_start_of_the_previous_month_of_the_zone() {
        let zone = TimeZone::get("Asia/Shanghai").unwrap();
        let window = |records| Billing::new(records).window(&zone, at("2026-11-30T10:17:00Z")).unwrap();
        assert_eq!(window(BilledFor::Hours), (at("2026-09-30T16:00:00Z"), at("2026-11-30T09:00:00Z")));
        // Silence about a day that is not over tells nothing.
        assert_eq!(window(BilledFor::Days), (at("2026-09-30T00:00:00Z"), at("2026-11-30T00:00:00Z")));
    }

    #[test]
    fn what_is_new_is_asked_for_with_what_may_have_been_corrected() {
        let mut billing = Billing::new(BilledFor::Hours);
        billing.ask(at("2026-11-30T10:00:00Z"));
        assert_eq!(billing.due(at("2026-11-30T10:00:01Z")), None, "one question at a time");
        billing.answered();
        let first = Billing::new(BilledFor::Hours).window(&TimeZone::UTC, at("2026-11-30T11:31:00Z"));
        assert_eq!(billing.window(&TimeZone::UTC, at("2026-11-30T11:31:00Z")), first, "it is not in the books yet");
        billing.kept(at("2026-11-30T09:00:00Z"));
        assert_eq!(billing.due(at("2026-11-30T10:00:01Z")), Some(at("2026-11-30T11:00:00Z")));
        let window = billing.window(&TimeZone::UTC, at("2026-11-30T11:31:00Z")).unwrap();
        assert_eq!(window, (at("2026-11-28T09:00:00Z"), at("2026-11-30T11:00:00Z")));
    }

    #[test]
    fn failures_are_tried_again_later_and_later_and_a_clock_that_was_set_back_asks_at_once() {
        let mut billing = Billing::new(BilledFor::Hours);
        let mut waits = Vec::new();
        for _ in 0..10 {
            billing.ask(at("2026-11-30T10:00:00Z"));
            billing.failed("no answer".to_owned());
            let due = billing.due(at("2026-11-30T10:00:00Z")).unwrap();
            waits.push(due.duration_since(at("2026-11-30T10:00:00Z")).as_mins());
        }
        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 320, 360, 360, 360]);
        assert_eq!(billing.due(at("2026-11-29T10:00:00Z")), Some(at("2026-11-29T10:00:00Z")));
    }
}
