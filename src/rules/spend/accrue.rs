//! What one sight of a resource adds to the books.
//!
//! What is between two sights is charged as before: a change counts from when it was seen, or from the
//! provider's own time for it.

use jiff::{SignedDuration, Timestamp};
use providers::model::{Component, Granularity, Identity, ResourceKind};
use rust_decimal::{Decimal, RoundingStrategy};

use super::meter::{Ended, OpenLine, Running};
use super::{Charge, Charged, Entries, Evidence, Exact, IdleTimes, Lump, Terms};

/// Writes entries while a look is taken in.
pub(super) struct Books {
    /// The look before.
    before: Option<Timestamp>,
    now: Timestamp,
    /// Sights further apart than this leave a gap.
    longest_gap: SignedDuration,
    pub(super) entries: Entries,
}

impl Books {
    pub(super) fn new(before: Option<Timestamp>, now: Timestamp, longest_gap: SignedDuration) -> Self {
        Books { before, now, longest_gap, entries: Entries::default() }
    }

    /// The first sight of a resource, or of one that was gone. What its provider's own time proves comes before
    /// it, but for what it was charged already.
    pub(super) fn begin(&mut self, identity: &Identity, charged: Charged, ended: Option<Ended>) -> Running {
        let now = ended.map_or(self.now, |ended| ended.perhaps.max(self.now));
        let proven = |start: Option<Timestamp>| {
            let start = start.filter(|start| *start < now).unwrap_or(now);
            ended.map_or(start, |ended| ended.surely.max(start))
        };
        let start = proven(began(identity, &charged));
        let lines = charged.lines.iter().map(|(terms, rate)| {
            let run_from = if terms.charge == Charge::Possible { now } else { start };
            OpenLine { terms: terms.clone(), rate: *rate, from: now, run_from }
        });
        let mut running = Running {
            lines: lines.collect(),
            seen: None,
            missing: false,
            since: now,
            state: charged.state,
            idle: IdleTimes::default(),
        };
        for line in &running.lines {
            self.write(identity, &running, line, (line.run_from, now), Evidence::Inferred);
            self.full_hours(identity, &running, line, (line.run_from, now), Evidence::Inferred);
        }
        if running.is_doubtful() {
            // Once it surely works, its provider's time may tell that it did before.
            running.since = proven(charged.state.started_at);
        }
        self.keep(identity, &running);
        running
    }

    /// A look that did not show a resource.
    pub(super) fn miss(&mut self, identity: &Identity, running: &mut Running, missing: bool) {
        let seen = Some(running.sight(self.before));
        if (running.seen, running.missing) != (seen, missing) {
            (running.seen, running.missing) = (seen, missing);
            self.keep(identity, running);
        }
    }

    /// Another sight of a resource.
    pub(super) fn go_on(&mut self, identity: &Identity, running: &mut Running, charged: Charged) {
        let seen = running.sight(self.before);
        let now = self.now.max(seen);
        let gap = now.duration_since(seen) > self.longest_gap;
        let same = running
            .lines
            .iter()
            .map(|line| (&line.terms, line.rate))
            .eq(charged.lines.iter().map(|(terms, rate)| (terms, *rate)));
        let restarted = has_restarted(running, &charged, seen, now);
        let told = match () {
            () if restarted => charged.state.started_at,
            () if same => None,
            () => told_change(running, &charged, now),
        };
        let change = told.unwrap_or(now);
        let evidence = match () {
            () if !gap => Evidence::Observed,
            // It was off for a while in between, nobody knows how long.
            () if restarted => Evidence::Assumed,
            () if told.is_some() => Evidence::Inferred,
            // Nothing has changed since the sight before, by the provider's own time.
            () if same && began(identity, &charged).is_some_and(|began| began <= seen) => Evidence::Inferred,
            () => Evidence::Assumed,
        };
        let before = running.clone();
        let goes_on = |line: &OpenLine| {
            !gap && !restarted && charged.lines.iter().any(|(terms, rate)| (terms, rate) == (&line.terms, &line.rate))
        };
        for line in &before.lines {
            if goes_on(line) {
                self.full_hours(identity, &before, line, (seen, now), evidence);
                continue;
            }
            let observed = if gap { seen.min(change) } else { change };
            self.write(identity, &before, line, (line.from, observed), Evidence::Observed);
            self.write(identity, &before, line, (observed.max(line.from), change), evidence);
            self.full_hours(identity, &before, line, (seen, change), evidence);
            let ends = restarted || !charged.lines.iter().any(|(terms, _)| continues(line, terms));
            if ends {
                self.last_unit(identity, &before, line, change, evidence);
            }
        }
        (running.lines, running.state) = (Vec::new(), charged.state);
        if restarted || !charged.state.running {
            running.idle.end(change);
        }
        for (terms, rate) in &charged.lines {
            let known = before.lines.iter().find(|line| (&line.terms, &line.rate) == (terms, rate));
            if let Some(known) = known.filter(|line| goes_on(line)) {
                running.lines.push(known.clone());
                continue;
            }
            let earlier = before.lines.iter().find(|line| continues(line, terms));
            let start = earlier.map_or(change, |earlier| earlier.from.max(change));
            let run_from = earlier.filter(|_| !restarted).map_or(start, |earlier| earlier.run_from);
            let mut line = OpenLine { terms: terms.clone(), rate: *rate, from: start, run_from };
            if gap {
                self.write(identity, running, &line, (start, now), Evidence::Inferred);
                line.from = now.max(start);
            }
            let evidence = if gap { Evidence::Inferred } else { Evidence::Observed };
            self.full_hours(identity, running, &line, (start.max(seen), now), evidence);
            running.lines.push(line);
        }
        if gap || restarted || !same {
            running.since = running.since.max(if gap { now } else { change });
        }
        (running.seen, running.missing) = (None, false);
        running.forget_idle();
        if *running != before {
            self.keep(identity, running);
        }
    }

    /// A resource is gone, and was so at `by`. It is charged to its last sight, or to the end that its provider
    /// tells; what may lie beyond is an upper limit.
    pub(super) fn end(&mut self, identity: &Identity, running: Running, charged: Charged, by: Timestamp) -> Ended {
        let seen = running.sight(self.before);
        let told = charged.stopped_at.filter(|at| running.state.running && running.since < *at && *at <= by);
        let end = told.unwrap_or(seen);
        let gap = end > seen && self.now.duration_since(seen) > self.longest_gap;
        let evidence = if gap { Evidence::Inferred } else { Evidence::Observed };
        for line in &running.lines {
            let observed = if gap { seen } else { end };
            self.write(identity, &running, line, (line.from, observed), Evidence::Observed);
            self.write(identity, &running, line, (observed.max(line.from), end), evidence);
            self.full_hours(identity, &running, line, (seen, end), evidence);
            self.last_unit(identity, &running, line, end, evidence);
            if told.is_none() && line.terms.charge != Charge::Prepaid {
                let terms = Terms { charge: Charge::Possible, ..line.terms.clone() };
                let beyond = OpenLine { terms, ..line.clone() };
                self.write(identity, &running, &beyond, (seen.max(line.from), by), Evidence::Assumed);
            }
        }
        self.entries.open.insert(identity.clone(), None);
        Ended { surely: end, perhaps: by.max(end) }
    }

    fn keep(&mut self, identity: &Identity, running: &Running) {
        self.entries.open.insert(identity.clone(), Some(running.clone()));
    }

    fn write(
        &mut self,
        identity: &Identity,
        running: &Running,
        line: &OpenLine,
        time: (Timestamp, Timestamp),
        evidence: Evidence,
    ) {
        self.entries.spans.extend(running.spans(identity, line, time, evidence));
    }

    /// What a provider that counts in whole units of time adds at the end of a run.
    fn last_unit(
        &mut self,
        identity: &Identity,
        running: &Running,
        line: &OpenLine,
        end: Timestamp,
        evidence: Evidence,
    ) {
        if !is_counted(line) {
            return;
        }
        match running.state.granularity {
            Granularity::Exact => {}
            Granularity::Steps { seconds, least_seconds } => {
                let run = (end.as_millisecond() - line.run_from.as_millisecond()).max(0);
                let step = i64::from(seconds.max(1)) * 1000;
                let charged = ((run + step - 1) / step * step).max(i64::from(least_seconds) * 1000);
                let extra = SignedDuration::from_millis(charged - run);
                self.lump(identity, running, line, end, Exact::over(line.rate, end, end + extra), evidence);
            }
            // The piece that ended at a full hour was rounded up when that hour passed.
            Granularity::ClockHours { .. } if hour_before(end) + HOUR == end => {}
            Granularity::ClockHours { .. } => self.piece(identity, running, line, end, evidence),
        }
    }

    /// What is added at each full hour after the first of two times, up to the second, by a provider that
    /// charges at full hours, piece by piece.
    fn full_hours(
        &mut self,
        identity: &Identity,
        running: &Running,
        line: &OpenLine,
        (after, to): (Timestamp, Timestamp),
        evidence: Evidence,
    ) {
        if !matches!(running.state.granularity, Granularity::ClockHours { .. }) || !is_counted(line) {
            return;
        }
        let mut hour = hour_before(after) + HOUR;
        if hour == after {
            hour += HOUR;
        }
        while hour <= to {
            self.piece(identity, running, line, hour, evidence);
            hour += HOUR;
        }
    }

    /// Rounds the piece up that ends at `end` and began at a full hour or with the run.
    fn piece(&mut self, identity: &Identity, running: &Running, line: &OpenLine, end: Timestamp, evidence: Evidence) {
        let Granularity::ClockHours { round_up_to } = running.state.granularity else { return };
        let start = line.run_from.max(hour_before(end));
        let exact = Exact::over(line.rate, start, end);
        if round_up_to <= Decimal::ZERO {
            return;
        }
        let pieces = (exact.amount() / round_up_to).round_dp_with_strategy(0, RoundingStrategy::AwayFromZero);
        self.lump(identity, running, line, end, Exact::of(pieces * round_up_to) - exact, evidence);
    }

    fn lump(
        &mut self,
        identity: &Identity,
        running: &Running,
        line: &OpenLine,
        at: Timestamp,
        amount: Exact,
        evidence: Evidence,
    ) {
        if amount > Exact::ZERO {
            let (identity, mut terms, currency) = (identity.clone(), line.terms.clone(), line.rate.currency);
            // What is charged at the end of a time belongs to that time.
            let last =
                at.saturating_sub(SignedDuration::from_millis(1)).expect("a duration can be taken from any time");
            terms.wasted |= running.idle.parts(last, at).any(|(.., idle)| idle);
            self.entries.lumps.push(Lump { identity, terms, at, amount, currency, evidence });
        }
    }
}

/// Whether a line is charged in the provider's units of time.
fn is_counted(line: &OpenLine) -> bool {
    line.terms.component == Component::Compute && line.terms.charge == Charge::Certain
}

/// Whether what these terms are for was charged before, at another rate or to somebody else.
fn continues(line: &OpenLine, terms: &Terms) -> bool {
    (line.terms.component, line.terms.charge) == (terms.component, terms.charge)
}

/// Since when its present state lasts, by the provider's own time.
fn began(identity: &Identity, charged: &Charged) -> Option<Timestamp> {
    match identity.kind {
        ResourceKind::Storage => charged.created_at,
        ResourceKind::Instance if charged.state.running => charged.state.started_at,
        ResourceKind::Instance => charged.stopped_at,
    }
}

/// It was stopped and started again between two sights of it working.
fn has_restarted(running: &Running, charged: &Charged, seen: Timestamp, now: Timestamp) -> bool {
    let started_at = charged.state.started_at.filter(|_| running.state.running && charged.state.running);
    // Known before, it began in the future of a clock that is slow.
    started_at.filter(|at| running.state.started_at != Some(*at)).is_some_and(|at| seen < at && at <= now)
}

/// When it began to work or to rest, by the provider's own time.
fn told_change(running: &Running, charged: &Charged, now: Timestamp) -> Option<Timestamp> {
    let surely = |(terms, _): &(Terms, _)| terms.component == Component::Compute && terms.charge != Charge::Possible;
    if running.is_doubtful() && charged.lines.iter().any(surely) {
        // What may have been charged all along was, when the run is older than the doubt.
        let at = charged.state.started_at.filter(|_| charged.state.running);
        return at.filter(|at| *at <= now).map(|at| at.max(running.since));
    }
    let at = match (running.state.running, charged.state.running) {
        (false, true) => charged.state.started_at,
        (true, false) => charged.stopped_at,
        _ => None,
    };
    at.filter(|at| running.since < *at && *at <= now)
}

const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// The last full hour before a time.
fn hour_before(at: Timestamp) -> Timestamp {
    let hour = HOUR.as_millis() as i64;
    Timestamp::from_millisecond((at.as_millisecond() - 1).div_euclid(hour) * hour).unwrap_or(Timestamp::MIN)
}
