//! A timeline of polls for the tests of spend: what the fleet makes of them, and the meter of that.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use providers::model::{AccountName, Identity, ResourceKind};
use providers::money::Currency;
use providers::provider::{Found, Part, Poll};
use rust_decimal::Decimal;

use super::{Amounts, Entries, Exact, Horizon, Look, Lump, Meter, Running, Span, Sums, by_day};
use crate::rules::fleet::{Consequence, Fleet};
use crate::rules::samples::fleet;
use crate::rules::settings::Settings;

/// One account, `team`, and the books that are kept of it.
pub struct Watch {
    pub fleet: Fleet,
    pub settings: Settings,
    pub meter: Meter,
    pub spans: Vec<Span>,
    pub lumps: Vec<Lump>,
    open: BTreeMap<Identity, Running>,
    horizons: BTreeMap<(AccountName, ResourceKind), Horizon>,
}

impl Watch {
    pub fn new() -> Self {
        Watch {
            fleet: fleet(&["team"]),
            settings: Settings::default(),
            meter: Meter::default(),
            spans: Vec::new(),
            lumps: Vec::new(),
            open: BTreeMap::new(),
            horizons: BTreeMap::new(),
        }
    }

    /// Takes in the answer to a poll. Returns what it adds to the books.
    pub fn poll(&mut self, now: Timestamp, poll: Poll) -> Entries {
        let team = AccountName::from("team");
        let listed = [
            (ResourceKind::Instance, matches!(poll.instances, Part::Listed { .. })),
            (ResourceKind::Storage, matches!(poll.storage, Part::Listed { .. })),
        ];
        let consequences = self.fleet.poll("team", poll, now);
        let changed: BTreeSet<Identity> = consequences.iter().map(|known| known.identity().clone()).collect();
        let taken_in = self.fleet.account(&team).unwrap().as_of == Some(now);
        let mut entries = Entries::default();
        for (kind, _) in listed.into_iter().filter(|(_, listed)| *listed && taken_in) {
            let look = Look::new(&self.fleet, &team, kind, now);
            let changed = (kind == ResourceKind::Instance).then_some(&changed);
            entries.append(self.meter.look_at(&look, &self.fleet, &self.settings, now, changed));
        }
        self.keep(&entries);
        self.fleet.prune(now);
        entries
    }

    /// Takes in the answer to a question by id.
    pub fn found(&mut self, now: Timestamp, identity: &Identity, found: Found) -> Entries {
        let consequences = self.fleet.absorb_found(identity, found, now);
        self.follow(now, consequences)
    }

    /// Our own release was confirmed.
    pub fn released(&mut self, now: Timestamp, identity: &Identity) -> Entries {
        let consequences = self.fleet.released(identity, now);
        self.follow(now, consequences)
    }

    fn follow(&mut self, now: Timestamp, consequences: Vec<Consequence>) -> Entries {
        let mut entries = Entries::default();
        for consequence in consequences {
            let (Consequence::Appeared(identity) | Consequence::Gone(identity)) = consequence else { continue };
            let look = Look::new(&self.fleet, &identity.account, identity.kind, now);
            entries.append(self.meter.look_at_one(&look, &self.fleet, &self.settings, &identity, now));
        }
        self.keep(&entries);
        entries
    }

    pub fn keep(&mut self, entries: &Entries) {
        self.spans.extend(entries.spans.iter().cloned());
        self.lumps.extend(entries.lumps.iter().cloned());
        for (identity, running) in &entries.open {
            match running {
                Some(running) => self.open.insert(identity.clone(), running.clone()),
                None => self.open.remove(identity),
            };
        }
        for kind in [ResourceKind::Instance, ResourceKind::Storage] {
            let horizon = self.meter.horizon(&"team".into(), kind);
            self.horizons.extend(horizon.map(|at| (("team".into(), kind), at)));
        }
    }

    /// The program ends, and another one begins with what was written down.
    pub fn restart(&mut self) {
        self.meter = Meter::new(self.open.clone(), self.horizons.clone());
    }

    /// Everything that was charged, what is open included.
    pub fn all(&self, now: Timestamp) -> Vec<Span> {
        self.spans.iter().cloned().chain(self.meter.open_spans(now)).collect()
    }

    /// What one resource came to, or all together.
    pub fn sums(&self, id: Option<&str>, now: Timestamp) -> Sums {
        let mut sums = Sums::default();
        let ours = |identity: &Identity| id.is_none_or(|id| identity.id.as_str() == id);
        self.all(now).iter().filter(|span| ours(&span.identity)).for_each(|span| sums.add_span(span));
        self.lumps.iter().filter(|lump| ours(&lump.identity)).for_each(|lump| sums.add_lump(lump));
        sums
    }

    pub fn usd(&self, id: &str, now: Timestamp) -> Amounts {
        self.sums(Some(id), now).of(Currency::USD)
    }

    /// What certainly was charged on each day of a zone.
    pub fn days(&self, zone: &TimeZone, now: Timestamp) -> BTreeMap<Date, Decimal> {
        let mut days: BTreeMap<Date, Exact> = BTreeMap::new();
        for span in self.all(now) {
            for (day, from, to) in by_day(span.from, span.to, zone) {
                *days.entry(day).or_default() += Span { from, to, ..span.clone() }.amount();
            }
        }
        days.into_iter().map(|(day, amount)| (day, amount.amount())).collect()
    }
}
