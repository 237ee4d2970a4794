//! Times in which an instance ran and did nothing: what it is charged in them is wasted.
//!
//! They lie over its open lines and change none of them: what is charged is the same with them and without.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Sorted and apart from each other; only the last may go on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IdleTimes(Vec<Stretch>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stretch {
    from: Timestamp,
    /// After `from`; `None` while it goes on.
    to: Option<Timestamp>,
}

impl Stretch {
    fn end(&self) -> Timestamp {
        self.to.unwrap_or(Timestamp::MAX)
    }
}

impl IdleTimes {
    /// Since when it does nothing; `None` while it works, or nobody knows.
    pub fn since(&self) -> Option<Timestamp> {
        self.0.last().filter(|last| last.to.is_none()).map(|last| last.from)
    }

    /// It does nothing from a time on. Returns since when it does, which is earlier where one idle time reaches
    /// into another.
    pub fn begin(&mut self, from: Timestamp) -> Timestamp {
        let mut from = from;
        while let Some(last) = self.0.pop_if(|last| last.end() >= from) {
            from = from.min(last.from);
        }
        self.0.push(Stretch { from, to: None });
        from
    }

    /// What goes on went on up to a time only.
    pub fn end(&mut self, to: Timestamp) {
        if let Some(last) = self.0.last_mut().filter(|last| last.to.is_none()) {
            last.to = Some(to);
        }
        self.0.retain(|stretch| stretch.from < stretch.end());
    }

    /// Drops what ended up to a time.
    pub fn forget(&mut self, before: Timestamp) {
        self.0.retain(|stretch| stretch.end() > before);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A time in parts, each idle or not.
    pub fn parts(&self, from: Timestamp, to: Timestamp) -> impl Iterator<Item = (Timestamp, Timestamp, bool)> + '_ {
        let (mut at, mut rest) = (from, self.0.iter().peekable());
        std::iter::from_fn(move || {
            if at >= to {
                return None;
            }
            while rest.next_if(|stretch| stretch.end() <= at).is_some() {}
            let (end, idle) = match rest.peek() {
                Some(stretch) if stretch.from <= at => (stretch.end(), true),
                Some(stretch) => (stretch.from, false),
                None => (to, false),
            };
            let part = (at, end.min(to), idle);
            at = part.1;
            Some(part)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::samples::at;

    fn times() -> IdleTimes {
        let mut times = IdleTimes::default();
        times.begin(at("01:00:00"));
        times.end(at("02:00:00"));
        times.begin(at("03:00:00"));
        times
    }

    #[test]
    fn a_time_is_cut_where_it_begins_and_ends_to_be_idle() {
        let parts: Vec<_> = times().parts(at("00:30:00"), at("04:00:00")).collect();
        let edges = ["00:30:00", "01:00:00", "02:00:00", "03:00:00", "04:00:00"].map(at);
        let expected: Vec<_> = edges.windows(2).zip([false, true, false, true]).map(|(w, i)| (w[0], w[1], i)).collect();
        assert_eq!(parts, expected);
        assert_eq!(IdleTimes::default().parts(at("01:00:00"), at("02:00:00")).count(), 1);
        assert_eq!(times().parts(at("02:00:00"), at("02:00:00")).count(), 0);
    }

    #[test]
    fn idle_times_that_touch_are_one_and_one_of_no_length_is_none() {
        let mut times = times();
        assert_eq!(times.begin(at("03:30:00")), at("03:00:00"));
        times.end(at("04:00:00"));
        assert_eq!(times.begin(at("04:00:00")), at("03:00:00"));
        assert_eq!(times.begin(at("01:30:00")), at("01:00:00"));
        times.end(at("01:00:00"));
        assert!(times.is_empty());
    }

    #[test]
    fn what_is_over_is_forgotten_and_what_goes_on_is_not() {
        let mut times = times();
        times.forget(at("09:00:00"));
        assert_eq!(times.since(), Some(at("03:00:00")));
        times.end(at("10:00:00"));
        assert_eq!(times.since(), None);
        times.forget(at("10:00:00"));
        assert!(times.is_empty());
    }
}
