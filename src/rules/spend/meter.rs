//! From one look after another to spans. Each resource has lines that are open: what it is charged from some
//! time on, up to the last look that showed it so. A line is closed when something changes, and not before.
//!
//! Here is what is open and how far it goes; `accrue` has what one sight adds.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use providers::model::{AccountName, Component, Granularity, Identity, ResourceId, ResourceKind};
use providers::money::{Currency, Rate};
use serde::{Deserialize, Serialize};

use super::accrue::Books;
use super::{Charge, Charged, Evidence, Exact, IdleTimes, Look, Lump, Part, Seen, Span, Terms};

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
    /// A complete list did not hold it since: whether it is still charged is not known.
    pub missing: bool,
    /// What was charged up to then stands: no later word of the provider about an earlier time changes it.
    pub since: Timestamp,
    pub state: State,
    /// When it did nothing, as far as that is not in spans.
    #[serde(default, skip_serializing_if = "IdleTimes::is_empty")]
    pub idle: IdleTimes,
}

/// What a resource is charged by, beside its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// It works, or is about to.
    pub running: bool,
    /// When its present run began, by the provider.
    pub started_at: Option<Timestamp>,
    pub granularity: Granularity,
}

impl Running {
    /// Some time of one of its lines, as spans: what was idle of it apart.
    pub fn spans<'a>(
        &'a self,
        identity: &'a Identity,
        line: &'a OpenLine,
        (from, to): (Timestamp, Timestamp),
        evidence: Evidence,
    ) -> impl Iterator<Item = Span> + 'a {
        self.idle.parts(from, to).map(move |(from, to, idle)| {
            let (identity, mut terms) = (identity.clone(), line.terms.clone());
            terms.wasted |= idle;
            Span { identity, terms, rate: line.rate, from, to, evidence }
        })
    }

    /// Idle times matter as long as they are not in spans.
    pub(super) fn forget_idle(&mut self) {
        if let Some(first) = self.lines.iter().map(|line| line.from).min() {
            self.idle.forget(first);
        }
    }

    /// When it was last seen, the last look having been at `before`.
    pub(super) fn sight(&self, before: Option<Timestamp>) -> Timestamp {
        self.seen.or(before).map_or(self.since, |seen| seen.max(self.since))
    }

    /// It may have been working already: its compute only may be charged.
    pub(super) fn is_doubtful(&self) -> bool {
        self.lines
            .iter()
            .any(|line| line.terms.component == Component::Compute && line.terms.charge == Charge::Possible)
    }
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Horizon {
    /// In whole milliseconds.
    pub at: Timestamp,
    /// A look that comes later than so leaves a gap.
    pub longest_gap: SignedDuration,
}

/// Up to when a resource that is gone was charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) surely: Timestamp,
    /// Not before `surely`.
    pub(super) perhaps: Timestamp,
}

/// All that is being charged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meter {
    running: BTreeMap<Identity, Running>,
    horizons: BTreeMap<(AccountName, ResourceKind), Horizon>,
    /// The resources that are gone: one that comes back is not charged again for what it was.
    ended: BTreeMap<Identity, Ended>,
    /// Accounts that nobody looks at any more: what they cost is counted to the last look.
    unwatched: BTreeSet<AccountName>,
    /// How far our clock is ahead of the providers', where it is: looks are of their time.
    skews: BTreeMap<AccountName, SignedDuration>,
    /// What of the last day is in spans, of each instance that is being charged.
    closed: BTreeMap<Identity, Vec<Closed>>,
}

/// A time that was charged for certain and is in the books, at one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Closed {
    component: Component,
    rate: Rate,
    from: Timestamp,
    to: Timestamp,
}

/// So long what is closed is remembered, and longer while the instance does nothing.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(24);

impl Meter {
    /// A meter as the books have it: what was open, and how far each account was looked at.
    pub fn new(
        running: BTreeMap<Identity, Running>,
        horizons: impl IntoIterator<Item = ((AccountName, ResourceKind), Horizon)>,
    ) -> Self {
        let mut meter = Meter { running, horizons: horizons.into_iter().collect(), ..Meter::default() };
        for (identity, running) in &mut meter.running {
            // Whether it did anything since then nobody has seen.
            let horizon = meter.horizons.get(&(identity.account.clone(), identity.kind));
            let seen = running.sight(horizon.map(|horizon| horizon.at));
            running.idle.end(seen);
        }
        meter
    }

    /// The last look at one kind of an account's resources.
    pub fn horizon(&self, account: &AccountName, kind: ResourceKind) -> Option<Horizon> {
        self.horizons.get(&(account.clone(), kind)).copied()
    }

    pub fn running(&self) -> &BTreeMap<Identity, Running> {
        &self.running
    }

    /// Takes in one look: every resource of its account and kind, how it was found and what it is charged.
    /// `changed` names what may differ from the look before, `None` when anything may; of the others only
    /// their presence counts.
    pub fn look<'a, C: FnOnce() -> Charged>(
        &mut self,
        look: &Look,
        resources: impl IntoIterator<Item = (&'a Identity, Seen, C)>,
        changed: Option<&BTreeSet<Identity>>,
    ) -> Entries {
        let key = (look.account.clone(), look.kind);
        let before = self.horizons.get(&key).copied();
        // The pace may just have become another; what was looked at in time by the old one is no gap.
        let longest_gap = before.map_or(look.longest_gap, |before| before.longest_gap.max(look.longest_gap));
        let before = before.map(|before| before.at);
        // A clock that was set back does not take back what was charged, nor charge it again.
        let now = before.map_or(whole(look.now), |before| before.max(whole(look.now)));
        let gap = before.is_some_and(|before| now.duration_since(before) > longest_gap);
        let mut books = Books::new(before, now, longest_gap);
        for (identity, seen, charged) in resources {
            match (seen, self.running.get_mut(identity)) {
                (Seen::Now, Some(running)) => {
                    // Full hours are charged as they pass.
                    let goes_by_the_clock = matches!(running.state.granularity, Granularity::ClockHours { .. });
                    let unchanged = changed.is_some_and(|changed| !changed.contains(identity));
                    if gap || !unchanged || running.seen.is_some() || goes_by_the_clock {
                        books.go_on(identity, running, charged());
                    }
                }
                (Seen::Now, None) => {
                    let running = books.begin(identity, charged(), self.ended.remove(identity));
                    self.running.insert(identity.clone(), running);
                }
                (Seen::Not { missing }, Some(running)) => books.miss(identity, running, missing),
                (Seen::Gone { by }, Some(_)) => {
                    let running = self.running.remove(identity).expect("it was just found");
                    let end = books.end(identity, running, charged(), whole(by));
                    self.ended.insert(identity.clone(), end);
                }
                (Seen::Not { .. } | Seen::Gone { .. }, None) => {}
            }
        }
        self.unwatched.remove(&look.account);
        self.horizons.insert(key, Horizon { at: now, longest_gap: look.longest_gap });
        let entries = books.entries;
        self.remember(&entries);
        entries
    }

    /// Takes in what was learnt about one resource between two looks: that it is there, or gone.
    pub fn single(&mut self, look: &Look, identity: &Identity, seen: Seen, charged: Charged) -> Entries {
        let before = self.horizon(&look.account, look.kind).map(|horizon| horizon.at);
        let now = before.map_or(whole(look.now), |before| before.max(whole(look.now)));
        let mut books = Books::new(before, now, look.longest_gap);
        match seen {
            // What is seen again, or changed, the next look shows.
            Seen::Now if !self.running.contains_key(identity) => {
                let running = books.begin(identity, charged, self.ended.remove(identity));
                self.running.insert(identity.clone(), running);
            }
            Seen::Gone { by } => {
                if let Some(running) = self.running.remove(identity) {
                    let end = books.end(identity, running, charged, whole(by));
                    self.ended.insert(identity.clone(), end);
                }
            }
            Seen::Now | Seen::Not { .. } => {}
        }
        let entries = books.entries;
        self.remember(&entries);
        entries
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
        let at = whole(at).min(running.sight(horizon.map(|horizon| horizon.at)));
        for line in running.lines.iter().filter(|line| line.from < at) {
            entries.spans.extend(running.spans(identity, line, (line.from, at), Evidence::Observed));
        }
        if !entries.spans.is_empty() {
            running.lines.iter_mut().for_each(|line| line.from = line.from.max(at));
            running.since = running.since.max(at);
            running.forget_idle();
            entries.open.insert(identity.clone(), Some(running.clone()));
        }
        self.remember(&entries);
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

    /// Since when an instance does nothing; `None` while it works, or nobody knows.
    pub fn idle_since(&self, identity: &Identity) -> Option<Timestamp> {
        self.running.get(identity)?.idle.since()
    }

    /// An instance does nothing since a time. Returns since when it does, as far as that is known; `None` for what is
    /// not charged.
    pub fn idles(&mut self, identity: &Identity, since: Timestamp) -> Option<Timestamp> {
        Some(self.running.get_mut(identity)?.idle.begin(whole(since)))
    }

    /// An instance did nothing up to a time only.
    pub fn works(&mut self, identity: &Identity, until: Timestamp) {
        if let Some(running) = self.running.get_mut(identity) {
            running.idle.end(whole(until));
            running.forget_idle();
        }
    }

    /// Whether the books may hold anything that an instance was charged after a time.
    pub fn closed_since(&self, identity: &Identity, at: Timestamp) -> bool {
        self.running.get(identity).is_none_or(|running| {
            let by_the_clock = matches!(running.state.granularity, Granularity::ClockHours { .. });
            by_the_clock || running.since > at || running.lines.iter().any(|line| line.from > at)
        })
    }

    /// What an instance was charged for certain since a time, one a currency: at the rates that were in force. What
    /// was closed before the program began is taken for charged as it is now.
    pub fn charged_since(&self, identity: &Identity, since: Timestamp, now: Timestamp) -> Vec<(Currency, Exact)> {
        let since = whole(since);
        let closed = self.closed.get(identity).map_or(&[][..], Vec::as_slice);
        let mut sums: BTreeMap<Currency, Exact> = BTreeMap::new();
        let mut add = |rate: Rate, from: Timestamp, to: Timestamp| {
            *sums.entry(rate.currency).or_default() += Exact::over(rate, from.max(since), to);
        };
        closed.iter().for_each(|closed| add(closed.rate, closed.from, closed.to));
        for part in self.open_parts_of(identity, now).filter(|part| part.terms.charge == Charge::Certain) {
            add(part.rate, part.from, part.to);
        }
        for line in self.running.get(identity).into_iter().flat_map(|running| &running.lines) {
            let first = closed.iter().filter(|closed| closed.component == line.terms.component);
            let known = first.map(|closed| closed.from).fold(line.from, Timestamp::min);
            if line.terms.charge == Charge::Certain {
                add(line.rate, line.run_from, known);
            }
        }
        sums.into_iter().filter(|(_, sum)| !sum.is_zero()).collect()
    }

    /// Remembers for a while what was closed of instances that are still charged.
    fn remember(&mut self, entries: &Entries) {
        for span in entries.spans.iter().filter(|span| span.identity.kind == ResourceKind::Instance) {
            let Span { identity, terms, rate, from, to, .. } = span;
            let Some(running) = self.running.get(identity).filter(|_| terms.charge == Charge::Certain) else {
                continue;
            };
            let new = Closed { component: terms.component, rate: *rate, from: *from, to: *to };
            let closed = self.closed.entry(identity.clone()).or_default();
            let goes_on = |old: &&mut Closed| (old.component, old.rate, old.to) == (new.component, new.rate, new.from);
            match closed.iter_mut().find(goes_on) {
                Some(old) => old.to = new.to,
                None => closed.push(new),
            }
            let day = to.saturating_sub(REMEMBERED).expect("a duration can be taken from any time");
            let first = running.idle.since().map_or(day, |since| since.min(day));
            closed.retain(|closed| closed.to > first);
        }
        for (identity, _) in entries.open.iter().filter(|(_, running)| running.is_none()) {
            self.closed.remove(identity);
        }
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
    /// are not overdue; what is beyond that is assumed, and of what is missing only possible.
    pub fn open_parts(&self, now: Timestamp) -> impl Iterator<Item = Part<'_>> {
        let mut last: Option<(&Identity, Account)> = None;
        self.running.iter().flat_map(move |(identity, running)| {
            // They are in the order of their accounts.
            let same = |of: &Identity| of.kind == identity.kind && of.account == identity.account;
            let account = match last {
                Some((of, account)) if same(of) => account,
                _ => self.account(identity, now),
            };
            last = Some((identity, account));
            parts_of(identity, running, account)
        })
    }

    /// The same as spans of their own.
    pub fn open_spans(&self, now: Timestamp) -> impl Iterator<Item = Span> + '_ {
        self.open_parts(now).map(|part| part.to_span())
    }

    /// The parts of one account's resources.
    pub fn open_parts_in(&self, account: &AccountName, now: Timestamp) -> impl Iterator<Item = Part<'_>> {
        let id = ResourceId::new("");
        let first = Identity { account: account.clone(), kind: ResourceKind::Instance, id, generation: 0 };
        let own =
            self.running.range(first.clone()..).take_while(move |(identity, _)| identity.account == first.account);
        own.flat_map(move |(identity, running)| parts_of(identity, running, self.account(identity, now)))
    }

    /// The parts of one resource.
    pub fn open_parts_of<'a>(
        &'a self,
        identity: &Identity,
        now: Timestamp,
    ) -> impl Iterator<Item = Part<'a>> + use<'a> {
        let found = self.running.get_key_value(identity).into_iter();
        let account = self.account(identity, now);
        found.flat_map(move |(identity, running)| parts_of(identity, running, account))
    }

    /// How a resource's account stands at a time by our clock.
    fn account(&self, identity: &Identity, now: Timestamp) -> Account {
        let skew = self.skews.get(&identity.account).copied().unwrap_or_default();
        Account {
            now: whole(now.saturating_sub(skew).expect("a duration can be taken from any time")),
            horizon: self.horizon(&identity.account, identity.kind),
            unwatched: self.unwatched.contains(&identity.account),
        }
    }

    /// Whether what a resource is charged goes on with the clock.
    pub fn ticks(&self, identity: &Identity) -> bool {
        let followed = self.running.get(identity).is_some_and(|running| !running.missing);
        followed && !self.unwatched.contains(&identity.account)
    }
}

/// How an account stands at a time.
#[derive(Clone, Copy)]
struct Account {
    /// By the provider's clock.
    now: Timestamp,
    horizon: Option<Horizon>,
    unwatched: bool,
}

/// What the open lines of one resource come to.
fn parts_of<'a>(identity: &'a Identity, running: &'a Running, account: Account) -> impl Iterator<Item = Part<'a>> {
    let (seen, reach) = reach(running, account);
    running.lines.iter().flat_map(move |line| {
        let seen = seen.max(line.from);
        let beyond = match line.terms.charge {
            Charge::Certain if running.missing => Cow::Owned(Terms { charge: Charge::Possible, ..line.terms.clone() }),
            _ => Cow::Borrowed(&line.terms),
        };
        let parts = move |terms: Cow<'a, Terms>, from, to, evidence| {
            running.idle.parts(from, to).map(move |(from, to, idle)| {
                let terms = match idle && !terms.wasted {
                    true => Cow::Owned(Terms { wasted: true, ..terms.as_ref().clone() }),
                    false => terms.clone(),
                };
                Part { identity, terms, rate: line.rate, from, to, evidence }
            })
        };
        let observed = parts(Cow::Borrowed(&line.terms), line.from, seen, Evidence::Observed);
        observed.chain(parts(beyond, seen, reach, Evidence::Assumed))
    })
}

/// How far a resource's lines are observed, and how far they go.
fn reach(running: &Running, account: Account) -> (Timestamp, Timestamp) {
    let Account { now, horizon, unwatched } = account;
    let seen = running.sight(horizon.map(|horizon| horizon.at));
    let longest_gap = horizon.map_or(USUAL_GAP, |horizon| horizon.longest_gap);
    match () {
        () if unwatched => (seen, seen),
        () if running.seen.is_none() && now.duration_since(seen) <= longest_gap => (now.max(seen), now.max(seen)),
        () => (seen, now),
    }
}

/// A time in whole milliseconds, as the books keep it.
pub(super) fn whole(at: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at)
}
