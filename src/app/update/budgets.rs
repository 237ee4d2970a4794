//! How budgets stand, brought up to date; and when the books are to be asked for what is drawn on them.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use providers::model::{AccountName, Identity, Market, ProviderName, ResourceKind};

use crate::app::alerting::{Budgets, Face};
use crate::app::spending::Spending;
use crate::app::state::World;
use crate::rules::budgets::{Budget, Drawn, Inputs, Running, Standing, Thing, standing};
use crate::rules::fleet::Fleet;
use crate::rules::memory::Memory;
use crate::rules::spend::{Lump, Part};

/// Standings are made anew so often when one change follows another.
const BETWEEN_CHANGES: SignedDuration = SignedDuration::from_secs(3);
/// And so often when nothing changes but the time.
const TICK: SignedDuration = SignedDuration::from_secs(10);
/// Books that did not answer are asked again after so long.
const AGAIN: SignedDuration = SignedDuration::from_secs(60);

/// So long a closed term is looked at again: the provider may bill it late.
const BILLED_LATE: SignedDuration = SignedDuration::from_hours(48);

/// The books are asked, for the budgets as they are and for the terms that closed lately. Returns what for.
pub(super) fn asked(world: &mut World, question: u64, now: Timestamp) -> Vec<Budget> {
    let budgets = &mut world.budgets;
    if !draw_alike(&budgets.rules, &budgets.asked.rules) {
        budgets.asked.rules.clone_from(&budgets.rules);
        budgets.asked.first = question;
    }
    budgets.asked.at = Some(now);
    budgets.rules.iter().cloned().chain(closed(budgets, now).map(|(_, closed)| closed)).collect()
}

/// The budgets whose term before the present one is to be looked at, each with that: it ended lately, or nobody has
/// looked since.
fn closed(budgets: &Budgets, now: Timestamp) -> impl Iterator<Item = (&Budget, Budget)> {
    budgets.rules.iter().filter_map(move |rule| {
        let closed = rule.closed(now)?;
        let to = closed.term(now).to?;
        let is_due = now.duration_since(to) < BILLED_LATE || budgets.seen.is_some_and(|seen| seen < to);
        is_due.then_some((rule, closed))
    })
}

/// The accounts that are to be looked at before what was spent is known: those that were looked at before.
pub(super) fn unheard(world: &World, memory: &Memory) -> BTreeSet<AccountName> {
    let known = memory.accounts.iter().filter(|account| account.as_of.is_some());
    known.filter(|known| world.fleet.account(&known.name).is_some()).map(|known| known.name.clone()).collect()
}

/// Whether budgets can be judged: what runs was looked at, and nothing that was spent waits to be written.
pub(super) fn are_whole(world: &World) -> bool {
    world.budgets.unheard.is_empty() && world.spending.tally.is_whole()
}

/// Whether the books are to be asked: a budget has begun anew, or is another one than they were asked for.
pub(super) fn want_sums(world: &mut World, now: Timestamp) -> bool {
    let World { spending, budgets, .. } = world;
    if budgets.rules != budgets.made_for {
        budgets.as_of = None;
    }
    if !draw_alike(&budgets.rules, &budgets.asked.rules) {
        return true;
    }
    let asked = budgets.asked.at;
    budgets.rules.iter().any(|budget| {
        let from = budget.term(now).from;
        let has_turned = from <= now && asked.is_none_or(|at| at < from);
        let is_late = asked.is_none_or(|at| now.duration_since(at).abs() >= AGAIN);
        (has_turned || is_late) && drawn(budget, from, budgets, spending).is_none()
    })
}

fn draw_alike(some: &[Budget], others: &[Budget]) -> bool {
    some.len() == others.len() && some.iter().zip(others).all(|(one, other)| one.draws_like(other))
}

/// What the books answered about a budget's term that begins then; `None` when that was about another one of its name.
fn drawn<'a>(budget: &Budget, from: Timestamp, budgets: &Budgets, spending: &'a Spending) -> Option<&'a Drawn> {
    let knows =
        spending.tally.answered() >= budgets.asked.first && budgets.asked.rules.iter().any(|b| b.draws_like(budget));
    let mut told = spending.tally.budgets().iter();
    told.find(|drawn| drawn.name == budget.name && drawn.from == from).filter(|_| knows)
}

/// Makes the standings anew when they are due.
pub(super) fn bring_up_to_date(world: &mut World, now: Timestamp) {
    let (budgets, version) = (&world.budgets, world.spending.version);
    let has_changed = budgets.version != version;
    let is_wrong = |(budget, standing): (&Budget, &Option<Standing>)| match standing {
        Some(standing) => has_turned(budget, standing, now),
        None => has_changed,
    };
    let least = match () {
        () if budgets.standings.len() != budgets.rules.len() => SignedDuration::ZERO,
        () if budgets.rules.iter().zip(&budgets.standings).any(is_wrong) => SignedDuration::ZERO,
        () if has_changed => BETWEEN_CHANGES,
        () => TICK,
    };
    let age = budgets.as_of.map(|at| now.duration_since(at));
    if age.is_some_and(|age| (SignedDuration::ZERO..least).contains(&age)) {
        return;
    }
    // What is over changes only with what is learnt about it.
    let closed: Option<Vec<(Budget, Budget)>> =
        has_changed.then(|| closed(&world.budgets, now).map(|(rule, closed)| (rule.clone(), closed)).collect());
    let mut standings = make(world, closed.as_deref().unwrap_or_default(), now);
    let budgets = &mut world.budgets;
    let of_closed = standings.split_off(budgets.rules.len());
    if let Some(closed) = closed {
        budgets.closed = closed.into_iter().map(|(_, closed)| closed).zip(of_closed).collect();
    }
    // Lines are made anew when one of them tells something else.
    world.changed |= told(&budgets.rules, &standings) != told(&budgets.made_for, &budgets.standings);
    let stood = std::mem::replace(&mut budgets.standings, standings);
    let stood = budgets.made_for.iter().cloned().zip(stood).filter_map(|(budget, stood)| Some((budget, stood?)));
    budgets.before.extend(stood);
    let (rules, standings) = (&budgets.rules, &budgets.standings);
    // Only where nothing newer is known.
    budgets
        .before
        .retain(|(budget, _)| rules.iter().zip(standings).any(|(rule, standing)| rule == budget && standing.is_none()));
    if budgets.made_for != budgets.rules {
        budgets.made_for.clone_from(&budgets.rules);
    }
    budgets.as_of = Some(now);
    budgets.version = version;
}

/// Whether a standing is of another term than the present one. Days from one date to another have one only.
fn has_turned(budget: &Budget, standing: &Standing, now: Timestamp) -> bool {
    let term = standing.term;
    let is_within = term.from <= now && term.to.is_none_or(|to| now < to);
    !is_within && budget.term(now) != term
}

/// What of standings an order or a mark may follow from.
fn told(rules: &[Budget], standings: &[Option<Standing>]) -> Vec<Option<(u32, bool)>> {
    let of = |(budget, standing): (&Budget, &Option<Standing>)| {
        let limit = budget.limit.amount;
        standing.as_ref().map(|standing| (standing.percent(limit), standing.forecast.is_some_and(|sum| sum > limit)))
    };
    rules.iter().zip(standings).map(of).collect()
}

/// How the budgets stand, and then how those do that are for a closed term, each beside its rule.
fn make(world: &mut World, past: &[(Budget, Budget)], now: Timestamp) -> Vec<Option<Standing>> {
    let World { fleet, spending, budgets, .. } = world;
    if budgets.rules.is_empty() {
        budgets.faces.clear();
        return Vec::new();
    }
    let single = budgets.rules.iter().any(|budget| budget.scope.is_about_single_ones());
    remember_faces(budgets, fleet, spending, single);
    let (budgets, spending) = (&*budgets, &*spending);
    let beyond = spending.tally.beyond();
    // What a scope asks about each is looked up once for all budgets.
    let mut things = Things { fleet, spending, budgets, single, last: None };
    let closed = beyond.spans.iter().map(|span| span.part());
    let parts: Vec<(Part<'_>, Thing<'_>)> = closed
        .chain(spending.meter.open_parts(now))
        .filter_map(|part| {
            let thing = things.of(part.identity)?;
            Some((part, thing))
        })
        .collect();
    let lumps: Vec<(&Lump, Thing<'_>)> = beyond
        .lumps
        .iter()
        .filter_map(|lump| {
            let project = lump.terms.project.as_deref();
            Some((lump, Thing { project, ..things.of(&lump.identity)? }))
        })
        .collect();
    let running: Vec<(Running<'_>, Thing<'_>)> = running(fleet, spending)
        .filter_map(|running| {
            let project = running.terms.project.as_deref();
            Some((running, Thing { project, ..things.of(running.identity)? }))
        })
        .collect();
    let of = |budget: &Budget, drawn: Option<&Drawn>| {
        let takes = |thing: &Thing<'_>| budget.scope.takes(thing);
        let takes_part =
            |(part, thing): &&(Part<'_>, Thing<'_>)| takes(&Thing { project: part.terms.project.as_deref(), ..*thing });
        let inputs = Inputs {
            drawn,
            beyond: parts.iter().filter(takes_part).map(|(part, _)| part.clone()).collect(),
            lumps: lumps.iter().filter(|(_, thing)| takes(thing)).map(|(lump, _)| *lump).collect(),
            running: running.iter().filter(|(_, thing)| takes(thing)).map(|(running, _)| *running).collect(),
            exchange: &budgets.exchange,
            before: before(budget, budgets),
        };
        standing(budget, &inputs, now)
    };
    let present = |budget| of(budget, drawn(budget, budget.term(now).from, budgets, spending));
    let as_closed = |(rule, closed): &(Budget, Budget)| {
        let term = closed.term(now);
        // Nobody had set it a limit before.
        let was_known = |drawn: &&Drawn| drawn.known_since.zip(term.to).is_some_and(|(since, to)| since < to);
        of(closed, drawn(rule, term.from, budgets, spending).filter(was_known))
    };
    budgets.rules.iter().map(present).chain(past.iter().map(as_closed)).collect()
}

/// How a budget stood that has not become another one since.
fn before<'a>(budget: &Budget, budgets: &'a Budgets) -> Option<&'a Standing> {
    let made =
        budgets.made_for.iter().zip(&budgets.standings).filter_map(|(of, standing)| Some((of, standing.as_ref()?)));
    let before = budgets.before.iter().map(|(of, standing)| (of, standing));
    made.chain(before).find(|(of, _)| *of == budget).map(|(_, standing)| standing)
}

/// All that goes on being charged.
fn running<'a>(fleet: &'a Fleet, spending: &'a Spending) -> impl Iterator<Item = Running<'a>> {
    let charged = spending.meter.running().iter().filter(|(identity, _)| spending.meter.ticks(identity));
    charged.flat_map(|(identity, running)| {
        let ends_at = fleet.instances.get(identity).and_then(|known| {
            let prepaid = match known.row.market {
                Market::Reserved { until } => until,
                Market::OnDemand | Market::Spot => None,
            };
            known.row.ends_at.into_iter().chain(prepaid).min()
        });
        running.lines.iter().map(move |line| Running { identity, terms: &line.terms, rate: line.rate, ends_at })
    })
}

/// Keeps in mind what was called how as long as the books were told of it since their answer: the fleet forgets what
/// is gone before that.
fn remember_faces(budgets: &mut Budgets, fleet: &Fleet, spending: &Spending, single: bool) {
    let beyond = spending.tally.beyond();
    let told = beyond.spans.iter().map(|span| &span.identity).chain(beyond.lumps.iter().map(|lump| &lump.identity));
    let told: BTreeSet<&Identity> = told.filter(|_| single).collect();
    budgets.faces.retain(|identity, _| told.contains(identity));
    for identity in told {
        let Some((name, labels)) = face(fleet, identity) else { continue };
        if budgets.faces.get(identity).is_none_or(|known| known.name.as_deref() != name || known.labels != *labels) {
            budgets.faces.insert(identity.clone(), Face { name: name.map(str::to_owned), labels: labels.clone() });
        }
    }
}

/// What a resource is called, and its labels.
fn face<'a>(
    fleet: &'a Fleet,
    identity: &Identity,
) -> Option<(Option<&'a str>, &'a std::collections::BTreeMap<String, String>)> {
    match identity.kind {
        ResourceKind::Instance => {
            fleet.instances.get(identity).map(|known| (known.row.name.as_deref(), &known.row.labels))
        }
        ResourceKind::Storage => {
            fleet.storage.get(identity).map(|known| (known.row.name.as_deref(), &known.row.labels))
        }
    }
}

/// What scopes may ask about what is charged.
struct Things<'a> {
    fleet: &'a Fleet,
    spending: &'a Spending,
    budgets: &'a Budgets,
    /// A scope asks for more than account, provider and project.
    single: bool,
    /// They come in the order of their accounts.
    last: Option<(&'a AccountName, &'a ProviderName)>,
}

impl<'a> Things<'a> {
    /// One without its project; `None` for one of an account that nobody knows.
    fn of(&mut self, identity: &'a Identity) -> Option<Thing<'a>> {
        let account = &identity.account;
        let provider = match self.last {
            Some((last, provider)) if last == account => provider,
            _ => {
                let known = self.fleet.account(account).map(|known| &known.provider);
                known.or_else(|| self.spending.former_provider(account))?
            }
        };
        self.last = Some((account, provider));
        let seen = self.single.then(|| face(self.fleet, identity)).flatten();
        let told = || self.budgets.faces.get(identity).map(|face| (face.name.as_deref(), &face.labels));
        let (name, labels) = seen.or_else(told).map_or((None, None), |(name, labels)| (name, Some(labels)));
        Some(Thing { provider, account, kind: Some(identity.kind), name, labels, project: None })
    }
}

#[cfg(test)]
#[path = "budgets_tests.rs"]
mod tests;
