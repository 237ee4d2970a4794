//! From one look after another to spans. Each resource has lines that are open: what it is charged from some
//! time on, up to the last look that showed it so. A line is closed when something changes, and not before.
//!
//! What is between two looks is charged at the rate before: a change counts from when it was seen, or from
//! the provider's own time for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use providers::model::{AccountName, Component, Granularity, Identity, ResourceKind};
use providers::money::Rate;
use rust_decimal::{Decimal, RoundingStrategy};
use serde::{Deserialize, Serialize};

use super::{Charge, Charged, Evidence, Exact, Look, Lump, Seen, Span, Terms};

/// A gap is at least this, where the account's own pace is not known yet.
const USUAL_GAP: SignedDuration = SignedDuration::from_mins(3);

/// One component of one resource that is being charged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenLine {
    pub terms: Terms,
    pub rate: Rate,
    /// What came before stands in spans.
    pub from: Timestamp,
    /// When the unbroken charge began that this line goes on with, at whatever rates.
    pub run_from: Timestamp,
}

/// What a resource is being charged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    pub lines: Vec<OpenLine>,
    /// Its last sight, when the last look did not show it; `None` while every look does.
    pub seen: Option<Timestamp>,
    /// It worked when last seen.
    pub running: bool,
    pub granularity: Granularity,
}

/// What one look adds to the books.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    pub spans: Vec<Span>,
    pub lumps: Vec<Lump>,
    /// The resources whose open lines are others now, as they are; `None` for what has ended.
    pub open: BTreeMap<Identity, Option<Running>>,
}

impl Entries {
    /// Adds what came after.
    pub fn append(&mut self, more: Entries) {
        self.spans.extend(more.spans);
        self.lumps.extend(more.lumps);
        self.open.extend(more.open);
    }

    pub fn is_empty(&self) -> bool {
        self.spans.is_empty() && self.lumps.is_empty() && self.open.is_empty()
    }
}

/// The last look at one kind of an account's resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Horizon {
    at: Timestamp,
    longest_gap: SignedDuration,
}

/// All that is being charged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meter {
    running: BTreeMap<Identity, Running>,
    horizons: BTreeMap<(AccountName, ResourceKind), Horizon>,
    /// Accounts that nobody looks at any more: what they cost is counted to the last look.
    unwatched: BTreeSet<AccountName>,
    /// How far our clock is ahead of the providers', where it is: looks are of their time.
    skews: BTreeMap<AccountName, SignedDuration>,
}

impl Meter {
    /// A meter as the books have it: what was open, and how far each account was looked at.
    pub fn new(
        running: BTreeMap<Identity, Running>,
        horizons: impl IntoIterator<Item = ((AccountName, ResourceKind), Timestamp)>,
    ) -> Self {
        let horizon = |(key, at)| (key, Horizon { at: whole(at), longest_gap: USUAL_GAP });
        Meter { running, horizons: horizons.into_iter().map(horizon).collect(), ..Meter::default() }
    }

    /// The last look at one kind of an account's resources.
    pub fn horizon(&self, account: &AccountName, kind: ResourceKind) -> Option<Timestamp> {
        self.horizons.get(&(account.clone(), kind)).map(|horizon| horizon.at)
    }

    pub fn running(&self) -> &BTreeMap<Identity, Running> {
        &self.running
    }

    /// Takes in one look. `changed` names what may differ from the look before, `None` when anything may; of
    /// the others only their presence counts.
    pub fn look(
        &mut self,
        look: &Look,
        resources: impl IntoIterator<Item = Charged>,
        changed: Option<&BTreeSet<Identity>>,
    ) -> Entries {
        let key = (look.account.clone(), look.kind);
        let before = self.horizons.get(&key).map(|horizon| horizon.at);
        // A clock that was set back does not take back what was charged, nor charge it again.
        let now = before.map_or(whole(look.now), |before| before.max(whole(look.now)));
        let mut books = Books { now, longest_gap: look.longest_gap, entries: Entries::default() };
        let gap = before.is_some_and(|before| now.duration_since(before) > look.longest_gap);
        for charged in resources {
            let known = self.running.get_mut(&charged.identity);
            let unchanged = changed.is_some_and(|changed| !changed.contains(&charged.identity));
            match (charged.seen, known) {
                (Seen::Now, Some(running)) => {
                    if gap || !unchanged || running.seen.is_some() {
                        books.go_on(running, &charged, before);
                    }
                }
                (Seen::Now, None) => {
                    let running = books.begin(&charged);
                    self.running.insert(charged.identity, running);
                }
                (Seen::Not, Some(running)) => {
                    if let (None, Some(before)) = (running.seen, before) {
                        running.seen = Some(before);
                        books.entries.open.insert(charged.identity, Some(running.clone()));
                    }
                }
                (Seen::Gone { by }, Some(_)) => {
                    let running = self.running.remove(&charged.identity).expect("it was just found");
                    books.end(running, &charged, before, whole(by));
                }
                (Seen::Not | Seen::Gone { .. }, None) => {}
            }
        }
        self.horizons.insert(key, Horizon { at: now, longest_gap: look.longest_gap });
        books.entries
    }

    /// Takes in what was learnt about one resource between two looks.
    pub fn single(&mut self, look: &Look, charged: Charged) -> Entries {
        let before = self.horizon(&look.account, look.kind);
        // What is seen again, and unchanged, the next look shows.
        let news = !matches!(charged.seen, Seen::Not) && (before.is_some() || matches!(charged.seen, Seen::Now));
        if !news || (charged.seen == Seen::Now && self.running.contains_key(&charged.identity)) {
            return Entries::default();
        }
        let now = before.map_or(whole(look.now), |before| before.max(whole(look.now)));
        let mut books = Books { now, longest_gap: look.longest_gap, entries: Entries::default() };
        match (charged.seen, self.running.remove(&charged.identity)) {
            (Seen::Gone { by }, Some(running)) => books.end(running, &charged, before, whole(by)),
            (Seen::Now, _) => {
                let running = books.begin(&charged);
                self.running.insert(charged.identity, running);
            }
            _ => {}
        }
        books.entries
    }

    /// Closes what is open up to a time that was looked at, so that the books alone tell of what was before.
    pub fn cut(&mut self, account: &AccountName, at: Timestamp) -> Entries {
        let own = self.running.keys().filter(|identity| identity.account == *account).cloned();
        let mut entries = Entries::default();
        for identity in own.collect::<Vec<_>>() {
            entries.append(self.cut_one(&identity, at));
        }
        entries
    }

    fn cut_one(&mut self, identity: &Identity, at: Timestamp) -> Entries {
        let mut entries = Entries::default();
        let horizon = self.horizon(&identity.account, identity.kind);
        let Some(running) = self.running.get_mut(identity) else { return entries };
        let Some(seen) = running.seen.or(horizon) else { return entries };
        let at = whole(at).min(seen);
        for line in running.lines.iter_mut().filter(|line| line.from < at) {
            entries.spans.push(span(identity, line, line.from, at, Evidence::Observed));
            line.from = at;
        }
        if !entries.spans.is_empty() {
            entries.open.insert(identity.clone(), Some(running.clone()));
        }
        entries
    }

    /// What a resource is charged belongs to a project from its last look on.
    pub fn assign(&mut self, identity: &Identity, project: Option<&Arc<str>>) -> Entries {
        let mut entries = self.cut_one(identity, Timestamp::MAX);
        if let Some(running) = self.running.get_mut(identity) {
            running.lines.iter_mut().for_each(|line| line.terms.project = project.cloned());
            entries.open.insert(identity.clone(), Some(running.clone()));
        }
        entries
    }

    /// How far our clock is ahead of that of the looks at an account.
    pub fn set_skew(&mut self, account: &AccountName, skew: SignedDuration) {
        if self.skews.get(account).copied().unwrap_or_default() != skew {
            self.skews.insert(account.clone(), skew);
        }
    }

    /// Nobody looks at an account any more: what it costs is counted to the last look.
    pub fn leave_unwatched(&mut self, account: &AccountName) {
        self.unwatched.insert(account.clone());
    }

    /// What the open lines come to by now: up to the last look as observed, and beyond it as long as looks
    /// are not overdue; what is beyond that is assumed.
    pub fn open_spans(&self, now: Timestamp) -> impl Iterator<Item = Span> + '_ {
        self.running.iter().flat_map(move |(identity, running)| self.spans_of(identity, running, now))
    }

    /// The same of one resource.
    pub fn open_spans_of<'a>(&'a self, identity: &Identity, now: Timestamp) -> impl Iterator<Item = Span> + use<'a> {
        let found = self.running.get_key_value(identity).into_iter();
        found.flat_map(move |(identity, running)| self.spans_of(identity, running, now))
    }

    fn spans_of<'a>(
        &self,
        identity: &'a Identity,
        running: &'a Running,
        now: Timestamp,
    ) -> impl Iterator<Item = Span> + use<'a> {
        let skew = self.skews.get(&identity.account).copied().unwrap_or_default();
        let now = now.saturating_sub(skew).expect("a duration can be taken from any time");
        let (seen, reach) = self.reach(identity, running, whole(now));
        running.lines.iter().flat_map(move |line| {
            let seen = seen.max(line.from);
            let parts = [(line.from, seen, Evidence::Observed), (seen, reach.max(seen), Evidence::Assumed)];
            let parts = parts.into_iter().filter(|(from, to, _)| from < to);
            parts.map(|(from, to, evidence)| span(identity, line, from, to, evidence))
        })
    }

    /// How far a resource's lines are observed, and how far they go.
    fn reach(&self, identity: &Identity, running: &Running, now: Timestamp) -> (Timestamp, Timestamp) {
        match (running.seen, self.horizons.get(&(identity.account.clone(), identity.kind))) {
            (Some(seen), _) => (seen, seen),
            (None, Some(horizon)) if self.unwatched.contains(&identity.account) => (horizon.at, horizon.at),
            (None, Some(horizon)) if now.duration_since(horizon.at) <= horizon.longest_gap => {
                (now.max(horizon.at), now.max(horizon.at))
            }
            (None, Some(horizon)) => (horizon.at, now),
            (None, None) => (now, now),
        }
    }

    /// Whether what a resource costs goes on with the clock.
    pub fn ticks(&self, identity: &Identity) -> bool {
        let followed = self.running.get(identity).is_some_and(|running| running.seen.is_none());
        followed && !self.unwatched.contains(&identity.account)
    }
}

/// Writes entries while a look is taken in.
struct Books {
    now: Timestamp,
    longest_gap: SignedDuration,
    entries: Entries,
}

impl Books {
    /// The first sight of a resource. What its provider's own time proves comes before it.
    fn begin(&mut self, charged: &Charged) -> Running {
        let now = self.now;
        let proven = match charged.identity.kind {
            ResourceKind::Storage => charged.created_at,
            ResourceKind::Instance if charged.running => charged.started_at,
            ResourceKind::Instance => charged.stopped_at,
        };
        let start = proven.map(whole).filter(|start| *start < now).unwrap_or(now);
        let mut running =
            Running { lines: Vec::new(), seen: None, running: charged.running, granularity: charged.granularity };
        for (terms, rate) in &charged.lines {
            let line = OpenLine { terms: terms.clone(), rate: *rate, from: now, run_from: start };
            self.write(&charged.identity, &line, start, now, Evidence::Inferred);
            self.clock_hours(&charged.identity, &line, charged.granularity, start, now);
            running.lines.push(line);
        }
        self.entries.open.insert(charged.identity.clone(), Some(running.clone()));
        running
    }

    /// Another sight of a resource whose last one was at `before`, or earlier when it was missing.
    fn go_on(&mut self, running: &mut Running, charged: &Charged, before: Option<Timestamp>) {
        let (identity, now) = (&charged.identity, self.now);
        let seen = running.seen.or(before).unwrap_or(now).min(now);
        let gap = now.duration_since(seen) > self.longest_gap;
        let same = running
            .lines
            .iter()
            .map(|line| (&line.terms, line.rate))
            .eq(charged.lines.iter().map(|(terms, rate)| (terms, *rate)));
        let within = |at: &Timestamp| seen < *at && *at <= now;
        let restarted = running.running && charged.running && charged.started_at.map(whole).filter(within).is_some();
        let told = match () {
            () if restarted => charged.started_at,
            () if same => None,
            () if charged.running && !running.running => charged.started_at,
            () if !charged.running && running.running => charged.stopped_at,
            () => None,
        };
        let told = told.map(whole).filter(within);
        for line in &running.lines {
            self.clock_hours(identity, line, running.granularity, seen, told.unwrap_or(now));
        }
        if same && !gap && !restarted {
            if running.seen.take().is_some() {
                self.entries.open.insert(identity.clone(), Some(running.clone()));
            }
            return;
        }
        let change = told.unwrap_or(now);
        let evidence = match () {
            () if !gap => Evidence::Observed,
            // It was off for a while in between, nobody knows how long.
            () if restarted => Evidence::Assumed,
            () if told.is_some() || (same && was_there_at(charged, seen)) => Evidence::Inferred,
            () => Evidence::Assumed,
        };
        let old = std::mem::take(&mut running.lines);
        let goes_on = |old: &OpenLine| {
            charged
                .lines
                .iter()
                .any(|(terms, _)| terms.component == old.terms.component && terms.charge == old.terms.charge)
        };
        for line in &old {
            let stays = !gap && !restarted && charged.lines.contains(&(line.terms.clone(), line.rate));
            if stays {
                continue;
            }
            if gap {
                self.write(identity, line, line.from, seen, Evidence::Observed);
                self.write(identity, line, seen.max(line.from), change, evidence);
            } else {
                self.write(identity, line, line.from, change, evidence);
            }
            if restarted || !goes_on(line) {
                self.surplus(identity, line, running.granularity, change);
            }
        }
        for (terms, rate) in &charged.lines {
            let same_line = old.iter().find(|old| old.terms == *terms && old.rate == *rate);
            if let Some(old) = same_line.filter(|_| !gap && !restarted) {
                running.lines.push(old.clone());
                continue;
            }
            let run = old
                .iter()
                .find(|old| old.terms.component == terms.component && old.terms.charge == terms.charge)
                .filter(|_| !restarted);
            let from = if gap { now } else { change };
            let run_from = run.map_or(change, |old| old.run_from);
            let line = OpenLine { terms: terms.clone(), rate: *rate, from, run_from };
            if gap {
                self.write(identity, &line, change, now, Evidence::Inferred);
            }
            self.clock_hours(identity, &line, charged.granularity, change, now);
            running.lines.push(line);
        }
        (running.seen, running.running, running.granularity) = (None, charged.running, charged.granularity);
        self.entries.open.insert(identity.clone(), Some(running.clone()));
    }

    /// A resource is gone, and was so at `by`. It is charged to its last sight, or to the end that its provider
    /// tells; what may lie beyond is an upper limit.
    fn end(&mut self, running: Running, charged: &Charged, before: Option<Timestamp>, by: Timestamp) {
        let identity = &charged.identity;
        for line in &running.lines {
            let seen = running.seen.or(before).unwrap_or(line.from).max(line.from);
            let told = charged.stopped_at.map(whole).filter(|at| running.running && seen < *at && *at <= by);
            self.write(identity, line, line.from, seen, Evidence::Observed);
            if let Some(told) = told {
                self.write(identity, line, seen, told, Evidence::Inferred);
            }
            let end = told.unwrap_or(seen);
            self.clock_hours(identity, line, running.granularity, seen, end);
            self.surplus(identity, line, running.granularity, end);
            if told.is_none() && line.terms.charge != Charge::Prepaid {
                let terms = Terms { charge: Charge::Possible, ..line.terms.clone() };
                let beyond = OpenLine { terms, ..line.clone() };
                self.write(identity, &beyond, seen, by, Evidence::Assumed);
            }
        }
        self.entries.open.insert(identity.clone(), None);
    }

    fn write(&mut self, identity: &Identity, line: &OpenLine, from: Timestamp, to: Timestamp, evidence: Evidence) {
        if from < to {
            self.entries.spans.push(span(identity, line, from, to, evidence));
        }
    }

    /// What a provider that counts in whole steps adds at the end of a run.
    fn surplus(&mut self, identity: &Identity, line: &OpenLine, granularity: Granularity, end: Timestamp) {
        if !is_counted(line) {
            return;
        }
        let run = (end.as_millisecond() - line.run_from.as_millisecond()).max(0);
        match granularity {
            Granularity::Exact => {}
            Granularity::Steps { seconds, least_seconds } => {
                let step = i64::from(seconds.max(1)) * 1000;
                let charged = ((run + step - 1) / step * step).max(i64::from(least_seconds) * 1000);
                let extra = SignedDuration::from_millis(charged - run);
                self.lump(identity, line, end, Exact::over(line.rate, end, end + extra));
            }
            Granularity::ClockHours { round_up_to } => {
                self.piece(identity, line, end, round_up_to);
            }
        }
    }

    /// What is added at each full hour since `seen` by a provider that charges at full hours, piece by piece.
    fn clock_hours(
        &mut self,
        identity: &Identity,
        line: &OpenLine,
        granularity: Granularity,
        seen: Timestamp,
        to: Timestamp,
    ) {
        let Granularity::ClockHours { round_up_to } = granularity else { return };
        if !is_counted(line) {
            return;
        }
        let mut hour = next_hour(seen);
        while hour <= to {
            self.piece(identity, line, hour, round_up_to);
            hour = next_hour(hour);
        }
    }

    /// Rounds the piece up that ends at `end` and began at a full hour or with the run.
    fn piece(&mut self, identity: &Identity, line: &OpenLine, end: Timestamp, round_up_to: Decimal) {
        let start = line.run_from.max(hour_before(end));
        let exact = Exact::over(line.rate, start, end);
        if exact.is_zero() || round_up_to <= Decimal::ZERO {
            return;
        }
        let pieces = (exact.amount() / round_up_to).round_dp_with_strategy(0, RoundingStrategy::AwayFromZero);
        let charged = Exact::of(pieces * round_up_to);
        self.lump(identity, line, end, charged - exact);
    }

    fn lump(&mut self, identity: &Identity, line: &OpenLine, at: Timestamp, amount: Exact) {
        if amount > Exact::ZERO {
            self.entries.lumps.push(Lump {
                identity: identity.clone(),
                terms: line.terms.clone(),
                at,
                amount,
                currency: line.rate.currency,
                evidence: Evidence::Observed,
            });
        }
    }
}

/// Whether a line is charged in the provider's units of time.
fn is_counted(line: &OpenLine) -> bool {
    line.terms.component == Component::Compute && line.terms.charge == Charge::Certain
}

/// Whether the provider's own time proves that nothing changed since a sight.
fn was_there_at(charged: &Charged, seen: Timestamp) -> bool {
    let since = match charged.identity.kind {
        ResourceKind::Storage => charged.created_at,
        ResourceKind::Instance if charged.running => charged.started_at,
        ResourceKind::Instance => charged.stopped_at,
    };
    since.is_some_and(|since| since <= seen)
}

fn span(identity: &Identity, line: &OpenLine, from: Timestamp, to: Timestamp, evidence: Evidence) -> Span {
    Span { identity: identity.clone(), terms: line.terms.clone(), rate: line.rate, from, to, evidence }
}

/// A time in whole milliseconds, as the books keep it.
fn whole(at: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(at.as_millisecond()).expect("a time less than a millisecond earlier exists")
}

const HOUR_MS: i64 = 3_600_000;

fn next_hour(at: Timestamp) -> Timestamp {
    Timestamp::from_millisecond((at.as_millisecond().div_euclid(HOUR_MS) + 1) * HOUR_MS).unwrap_or(Timestamp::MAX)
}

/// The last full hour before a time.
fn hour_before(at: Timestamp) -> Timestamp {
    Timestamp::from_millisecond((at.as_millisecond() - 1).div_euclid(HOUR_MS) * HOUR_MS).unwrap_or(Timestamp::MIN)
}
