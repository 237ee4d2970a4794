//! What the collector does with an event: the fleet learns, actions go on, accounts are asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use providers::model::{AccountName, Action, Identity, ResourceKind};
use providers::provider::{Found, Part, Poll};

use super::{alerts, budgets, copies, guards, happened, leases, proofs, spend, usage, waste};
use crate::app::effect::{Effect, Then};
use crate::app::event::{Intent, WorldEvent};
use crate::app::message::Msg;
use crate::app::state::{BRIGHT, World};
use crate::rules::checkpoint::{self, Job};
use crate::rules::dispatch::News;
use crate::rules::fleet::{Account, Consequence, Known, Trouble};
use crate::rules::memory::{AccountMemory, Collector, Keep, LedgerNotice, Memory, Owner};
use crate::rules::plan::{Hindrance, Plan, Target};
use crate::rules::saga::{Authority, Input, OpId, Operation, Order, Outcome, Sight, Step};
use crate::rules::spend::{Assignment, Entries};
use crate::rules::streams::{self, Consent};

/// How often the claim on the ledger is renewed; it runs out after three times this.
const RENEW: SignedDuration = SignedDuration::from_secs(10);
/// So late a renewal finds the claim run out: another process may have acted meanwhile.
const LAPSED: SignedDuration = SignedDuration::from_secs(20);
/// How often somebody who only looks on reads the ledger.
const LOOK_ON: SignedDuration = SignedDuration::from_secs(5);
/// How many ended actions the screen remembers.
const RECENT: usize = 200;

pub fn update(world: &mut World, event: WorldEvent, now: Timestamp) -> Vec<Effect> {
    // Most polls and ticks change no line, and say themselves when they do.
    world.changed |= !matches!(
        event,
        WorldEvent::Tick
            | WorldEvent::Polled { .. }
            | WorldEvent::Collector(_)
            | WorldEvent::Watched(_)
            | WorldEvent::Ledger(_)
            | WorldEvent::Stream { .. }
            | WorldEvent::VetoesRecalled { .. }
            | WorldEvent::Proven { .. }
            | WorldEvent::Saving { .. }
    );
    let mut effects = match event {
        WorldEvent::Tick => tick(world, now),
        WorldEvent::Remembered { memory, notices } => remembered(world, *memory, notices, now),
        WorldEvent::Collector(collector) => collector_known(world, collector, now),
        WorldEvent::Watched(watched) => {
            world.alerting.watched = watched;
            vec![]
        }
        WorldEvent::Orphaned(unfinished) => take_up(world, unfinished, now),
        WorldEvent::NotReady { account, trouble } => {
            world.budgets.unheard.remove(&account);
            if let Some(account) = world.fleet.account_mut(&account) {
                account.fail(trouble, now);
            }
            vec![]
        }
        WorldEvent::Added { account, provider, read_only } => {
            if world.fleet.account(&account).is_none() {
                world.fleet.accounts.push(Account::new(account, provider, read_only));
                spend::track_billing(world);
            }
            tick(world, now)
        }
        WorldEvent::Polled { account, asked_at, poll } => polled(world, &account, asked_at, *poll, now),
        WorldEvent::LookedUp { op, identity, found } => {
            let found = world.fleet.vouch(&identity, found);
            let consequences = match &found {
                Ok(found) => world.fleet.absorb_found(&identity, found.clone(), now),
                // An error proves nothing: the next list asks again.
                Err(_) => Vec::new(),
            };
            happened::note(world, happened::Before::of(world, &identity.account), &consequences, now);
            let entries = spend::single(world, &consequences, now);
            let mut effects = follow(world, &identity.account, consequences, entries);
            if let Some(op) = op {
                effects.extend(advance(world, op, Input::LookedUp(found), now));
            }
            effects
        }
        WorldEvent::AddedUp => {
            world.alerting.balances_asked = None;
            vec![spend::sum_up(world, now)]
        }
        WorldEvent::Balances(answer) => {
            alerts::balances_told(world, *answer, now);
            vec![]
        }
        WorldEvent::Summed(summed) => {
            spend::summed(world, *summed, now);
            vec![]
        }
        WorldEvent::Billed { account, from, to, lines } => spend::billed(world, account, (from, to), lines, now),
        WorldEvent::BilledKept { account, to } => {
            spend::billed_kept(world, &account, to);
            vec![]
        }
        WorldEvent::Stream { identity, number, told } => usage::told(world, &identity, number, told, now),
        WorldEvent::UsageRecalled { entries, rest, peaks } => usage::recalled(world, &entries, rest, peaks, now),
        WorldEvent::AlertsRecalled { alerts, acted } => {
            alerts::recalled(world, alerts, acted, now);
            vec![]
        }
        WorldEvent::LeasesRecalled(recalled) => leases::recalled(world, recalled, now),
        WorldEvent::LeaseKept { lease, kept } => leases::kept(world, lease, kept, now),
        WorldEvent::Job { lease, told } => leases::told(world, lease, &told, now),
        WorldEvent::VetoesRecalled { asked_at, vetoes } => {
            guards::vetoes_recalled(world, asked_at, vetoes);
            vec![]
        }
        WorldEvent::Proven { identity, unable } => {
            proofs::answered(world, &identity, unable);
            vec![]
        }
        WorldEvent::MessagesRecalled(messages) => {
            if world.collects() && world.remembered {
                world.alerting.dispatch.join(messages);
            }
            vec![]
        }
        WorldEvent::Sent { channel, delivery } => alerts::sent(world, &channel, delivery, now),
        WorldEvent::Acted { op, answer } => advance(world, op, Input::Acted(answer), now),
        WorldEvent::Saving { op, number, told } => {
            world.changed = true;
            advance(world, op, Input::Saving { number, told }, now)
        }
        WorldEvent::CopyMissing { identity, op, earlier } => {
            copies::missing(world, &identity, op, earlier.map(|saved| *saved));
            vec![]
        }
        WorldEvent::NotRecorded { op, error } => advance(world, op, Input::NotRecorded(error), now),
        WorldEvent::Forestalled { op, by: Owner { host, pid } } => {
            advance(world, op, Input::Forestalled { host, pid }, now)
        }
        WorldEvent::Ledger(notice) => {
            note(world, notice);
            vec![]
        }
        WorldEvent::Reopened => reopened(world, now),
        WorldEvent::Writable => {
            world.ledger_notices.retain(|notice| !matches!(notice, LedgerNotice::NotWritable { .. }));
            vec![]
        }
        WorldEvent::Intent(intent) => intend(world, intent, now),
    };
    effects.extend(leases::settle(world, now));
    if world.changed {
        world.prune_at = world.fleet.next_prune();
    }
    effects.extend(waste::write_down(world, now));
    if world.remembered {
        budgets::bring_up_to_date(world, now);
    }
    // What happened is told in the ledger before the rows are that say so: else a crash between would hide it for ever.
    let mut first = alerts::tick(world, now);
    first.append(&mut effects);
    first
}

impl World {
    /// Whether an account is asked more often, since an action on it waits to be proven. What is overdue may
    /// stay so for days, and is looked at by the usual polls.
    fn watches(&self, account: &AccountName) -> bool {
        self.watched(account).next().is_some()
    }

    fn watched(&self, account: &AccountName) -> impl Iterator<Item = &Operation> {
        self.under_way().filter(|operation| {
            let waits = operation.in_countdown() || operation.is_saving() || operation.is_overdue();
            operation.target.identity.account == *account && !waits
        })
    }

    /// When an account is to be asked next; `None` while it is not for us to ask, or was asked already.
    pub fn due(&self, account: &Account, now: Timestamp) -> Option<Timestamp> {
        // Who lost the claim while an action of its own is under way still sees to its end.
        if !self.remembered || !(self.acts() || self.watches(&account.name)) {
            return None;
        }
        let pacing = &account.pacing;
        // A key that could not be used is not tried again by itself: nothing would have changed.
        let locked = account.trouble.as_ref().is_some_and(|trouble| matches!(trouble.value, Trouble::Key(_)));
        if locked && !pacing.wanted {
            return None;
        }
        let running = self.fleet.has_running(&account.name);
        let due = pacing.due(running, self.watches(&account.name), account.name.as_str())?;
        // The clock was set back: what it said then is no time to count from.
        let set_back = pacing.asked_at.is_some_and(|asked_at| asked_at > now);
        Some(if set_back { pacing.quiet_until.unwrap_or(now) } else { due })
    }
}

fn tick(world: &mut World, now: Timestamp) -> Vec<Effect> {
    let mut effects = Vec::new();
    // Further away than it is ever set means that the clock was set back.
    if let Some(due) = world.ledger_due.filter(|due| *due <= now || *due > now + RENEW) {
        effects.push(Effect::Claim);
        // A command acts without the claim as well: the person may have thought about its question for long.
        if world.collects() && !world.one_shot && now.duration_since(due) >= LAPSED {
            // After a sleep, for instance: claimed anew, and taken up from the ledger as after a take-over.
            effects.extend(give_up(world, now));
        }
        if world.collects() {
            effects.push(Effect::RecallAlerts);
            world.ledger_due = Some(now + RENEW);
        } else {
            world.ledger_due = Some(now + LOOK_ON);
            effects.push(Effect::Recall);
        }
    }
    if world.prune_at.is_some_and(|at| at <= now) && world.fleet.prune(now) {
        world.changed = true;
        world.gauges.by.retain(|identity, _| world.fleet.instances.contains_key(identity));
    }
    let due: Vec<OpId> =
        world.under_way().filter(|operation| operation.is_due(now)).map(|operation| operation.id).collect();
    world.changed |= !due.is_empty();
    for op in due {
        effects.extend(advance(world, op, Input::Tick, now));
    }
    effects.extend(spend::ask_sums(world, now));
    effects.extend(spend::ask_billed(world, now));
    effects.extend(usage::tick(world, now));
    effects.extend(leases::tick(world, now));
    effects.extend(ask_due(world, now));
    effects.extend(copies::tick(world, now));
    effects
}

/// Asks every account that is due.
fn ask_due(world: &mut World, now: Timestamp) -> Vec<Effect> {
    let due: Vec<AccountName> = world
        .fleet
        .accounts
        .iter()
        .filter(|account| world.due(account, now).is_some_and(|at| at <= now))
        .map(|account| account.name.clone())
        .collect();
    due.into_iter()
        .filter_map(|name| {
            // What is not asked for at every poll is, as long as a deletion waits to be proven by it.
            let of_storage = |operation: &Operation| operation.target.identity.kind == ResourceKind::Storage;
            let storage_watched = world.watched(&name).any(of_storage);
            let account = world.fleet.account_mut(&name)?;
            let mut ask = account.pacing.ask(now, account.tenant_checked);
            ask.storage |= storage_watched;
            Some(Effect::Poll { account: name, ask, asked_at: now })
        })
        .collect()
}

fn remembered(world: &mut World, memory: Memory, notices: Vec<LedgerNotice>, now: Timestamp) -> Vec<Effect> {
    // Rows that could not be read may be of any account.
    let whole = !notices.iter().any(|notice| matches!(notice, LedgerNotice::Unreadable { .. }));
    notices.into_iter().for_each(|notice| note(world, notice));
    let first = !world.remembered;
    if !first && world.acts() {
        // Asked for while somebody else collected, answered after we took over: ours is newer.
        return Vec::new();
    }
    world.remembered = true;
    world.budgets.seen = memory.accounts.iter().filter_map(|account| account.as_of).max();
    world.budgets.unheard = budgets::unheard(world, &memory);
    for account in &memory.accounts {
        let one_shot = world.one_shot;
        let known = world.fleet.account_mut(&account.name).filter(|known| known.provider == account.provider);
        if let Some(known) = known {
            known.as_of = account.as_of;
            known.last_complete = account.last_complete;
            known.tenant = account.tenant.clone();
            known.balance = account.balance.clone();
            if account.streams.lasts() && world.streams.consent(&account.name) == Consent::Unasked {
                world.streams.set_consent(&account.name, account.streams);
            }
            if one_shot {
                // What the ledger knows is good for one interval, if nothing was left out.
                let good = |as_of: &Timestamp| whole && account.last_complete == Some(*as_of);
                known.pacing.asked_at = account.as_of.filter(good);
            }
        }
    }
    spend::remember(world, &memory);
    world.fleet.instances = keyed(memory.instances, &world.fleet.accounts);
    world.fleet.storage = keyed(memory.storage, &world.fleet.accounts);
    world.fleet.earlier.extend(memory.earlier);
    usage::remembered(world, now);
    world.alerting.alerts.remember(memory.alerts);
    world.alerting.dispatch.remember(memory.messages);
    guards::remember(world, memory.watches, memory.vetoes);
    world.settings.single = memory.settings;
    world.leases.remember(memory.leases);
    world.saved = memory.saved.into_iter().map(|saved| (saved.identity.clone(), saved)).collect();
    for operation in memory.recent {
        world.operations.entry(operation.id).or_insert(operation);
    }
    copies::remembered(world);
    forget_old(world);
    let mut effects = take_up(world, memory.unfinished, now);
    effects.extend(copies::look_for(world));
    effects.extend(tick(world, now));
    effects
}

/// Goes on with what other processes left under way. A command has its own business only.
fn take_up(world: &mut World, unfinished: Vec<(Operation, Owner)>, now: Timestamp) -> Vec<Effect> {
    let mut effects = Vec::new();
    if !world.remembered || !world.collects() || world.one_shot {
        return effects;
    }
    for (mut operation, _) in unfinished {
        // Also ended ones: an answer may come late.
        if world.operations.contains_key(&operation.id) {
            continue;
        }
        let orders = operation.resume(now);
        let id = operation.id;
        world.operations.insert(id, operation);
        effects.extend(carry_out(world, id, orders, now));
    }
    effects
}

/// The rows of accounts that are in the config, all with their account's own text for its name.
fn keyed<T>(rows: Vec<Known<T>>, accounts: &[Account]) -> BTreeMap<Identity, Known<T>> {
    let row = |mut known: Known<T>| {
        let account = accounts.iter().find(|account| account.name == known.identity.account)?;
        known.identity.account = account.name.clone();
        Some((known.identity.clone(), known))
    };
    rows.into_iter().filter_map(row).collect()
}

fn collector_known(world: &mut World, collector: Collector, now: Timestamp) -> Vec<Effect> {
    let lost = world.collects() && !world.one_shot && collector != Collector::Us;
    let took_over = collector == Collector::Us && matches!(world.collector, Some(Collector::Other { .. }));
    world.ledger_due = Some(now + if collector == Collector::Us { RENEW } else { LOOK_ON });
    world.collector = Some(collector);
    if took_over {
        // What the other one left under way is taken up from the ledger.
        world.remembered = false;
        return vec![Effect::Recall];
    }
    // Another one took the place while this one slept. What was not sent is no longer ours to send.
    let mut effects = if lost { leave(world, now) } else { Vec::new() };
    effects.extend(tick(world, now));
    effects
}

/// Who collects is no more known than at the start. Another one may have taken the place meanwhile: what was not sent
/// is no longer ours to send.
fn give_up(world: &mut World, now: Timestamp) -> Vec<Effect> {
    world.collector = None;
    world.remembered = false;
    // Whoever collects next finds out by itself.
    world.alerting.events.clear();
    leave(world, now)
}

/// Another file is the ledger: it is taken up as after a start, and what lies between is a gap like any other.
fn reopened(world: &mut World, now: Timestamp) -> Vec<Effect> {
    // A command has its own business only, and is soon done with it.
    if world.one_shot {
        return Vec::new();
    }
    let mut effects = give_up(world, now);
    world.fleet.accounts.iter_mut().for_each(|account| account.pacing.wanted = true);
    spend::forget_billed(world);
    effects.extend([Effect::Claim, Effect::Recall]);
    effects
}

fn note(world: &mut World, notice: LedgerNotice) {
    if !world.ledger_notices.contains(&notice) {
        world.ledger_notices.push(notice);
    }
}

fn polled(world: &mut World, name: &AccountName, asked_at: Timestamp, poll: Poll, now: Timestamp) -> Vec<Effect> {
    // An answer to a question that was given up, or from before a take-over, is late: drop it.
    let expected = world.fleet.account(name).is_some_and(|account| account.pacing.in_flight == Some(asked_at));
    if !expected {
        return Vec::new();
    }
    if let Some(former) = spend::former_name(world, name, &poll) {
        tracing::info!(%former, account = %name, "the account is known by another name");
        world.remembered = false;
        if let Some(account) = world.fleet.account_mut(name) {
            account.pacing.answered_well();
            account.pacing.wanted = true;
        }
        return vec![Effect::Rename { from: former, to: name.clone() }, Effect::Recall];
    }
    world.budgets.unheard.remove(name);
    let watched: Vec<(OpId, Sight)> = world
        .under_way()
        .filter(|operation| operation.target.identity.account == *name)
        .map(|operation| (operation.id, Sight::of(&operation.target, &poll)))
        .collect();
    // What sums and lines are made of, beside the rows themselves.
    let basis = |world: &World| {
        let account = world.fleet.account(name)?;
        let rows = world.fleet.instances.len() + world.fleet.storage.len();
        let in_doubt = account.trouble.as_ref().is_some_and(|trouble| !matches!(trouble.value, Trouble::Request(_)));
        Some((rows, in_doubt, account.balance.clone(), account.balance_error.clone(), account.problems.clone()))
    };
    let before = basis(world);
    let known_before = happened::Before::of(world, name);
    let in_pieces = matches!(poll.instances, Part::Pieces { .. });
    let kinds = [
        (ResourceKind::Instance, matches!(poll.instances, Part::Listed { .. })),
        (ResourceKind::Storage, matches!(poll.storage, Part::Listed { .. })),
    ];
    let consequences = world.fleet.absorb(name, poll, now);
    world.bright.retain(|_, since| now.duration_since(*since) < BRIGHT);
    for consequence in &consequences {
        if let Consequence::Repriced(identity, _) = consequence {
            world.bright.insert(identity.clone(), now);
        }
    }
    happened::note(world, known_before, &consequences, now);
    world.changed |= !consequences.is_empty() || !watched.is_empty() || before != basis(world);
    let mut effects = usage::looked(world, name, now);
    // What was not taken in, of another tenant for instance, is no look.
    let taken_in = world.fleet.account(name).is_some_and(|account| account.as_of == Some(now));
    let listed: Vec<_> = kinds.into_iter().filter(|(_, listed)| *listed && taken_in).map(|(kind, _)| kind).collect();
    let entries = match in_pieces {
        true => spend::single(world, &consequences, now),
        false => spend::look(world, name, &listed, &consequences, now),
    };
    effects.extend(follow(world, name, consequences, entries));
    // A list of another tenant's account proves nothing about ours.
    let trusted = world.fleet.trusts(name);
    for (op, seen) in watched {
        let seen = if trusted { seen } else { Sight::Untold };
        effects.extend(advance(world, op, Input::Polled { asked_at, seen }, now));
    }
    effects.extend(usage::streams_due(world, now));
    effects.extend(ask_due(world, now));
    effects
}

/// What follows from a change of the fleet: questions by id, and a line in the ledger.
fn follow(world: &World, name: &AccountName, consequences: Vec<Consequence>, entries: Entries) -> Vec<Effect> {
    let mut effects = Vec::new();
    let mut keep = keep_of(world, name, entries);
    for consequence in consequences {
        match consequence {
            Consequence::AskById(identity) => effects.push(Effect::Lookup { op: None, identity }),
            Consequence::Changed(identity) => {
                if let Some(keep) = &mut keep {
                    keep.instances.extend(world.fleet.instances.get(&identity).cloned());
                    keep.storage.extend(world.fleet.storage.get(&identity).cloned());
                }
            }
            Consequence::Appeared(_) | Consequence::Gone(_) | Consequence::Repriced(..) | Consequence::Turned(..) => {}
        }
    }
    effects.extend(keep.map(|keep| Effect::Keep(Box::new(keep))));
    effects
}

/// A line in the ledger about an account, with what is new in the books.
pub(super) fn kept(world: &World, name: &AccountName, entries: Entries) -> Option<Effect> {
    keep_of(world, name, entries).map(|keep| Effect::Keep(Box::new(keep)))
}

/// An account's line, without resources; `None` when it is not for us to write, or nothing is known yet.
fn keep_of(world: &World, name: &AccountName, entries: Entries) -> Option<Keep> {
    // Single machines may be known before the account is, and are written down no later time as long as they stay so.
    let has_rows = || world.fleet.instances_of(name).next().is_some();
    let account = world.fleet.account(name).filter(|account| account.as_of.is_some() || has_rows())?;
    if !world.collects() {
        return None;
    }
    let spending = &world.spending;
    let account = AccountMemory {
        as_of: account.as_of,
        last_complete: account.last_complete,
        tenant: account.tenant.clone(),
        balance: account.balance.clone(),
        instances_seen: spending.meter.horizon(name, ResourceKind::Instance),
        storage_seen: spending.meter.horizon(name, ResourceKind::Storage),
        streams: world.streams.said(name),
        ..AccountMemory::new(account.name.clone(), account.provider.clone())
    };
    Some(Keep { account, instances: Vec::new(), storage: Vec::new(), entries })
}

fn intend(world: &mut World, intent: Intent, now: Timestamp) -> Vec<Effect> {
    // What this process began before it lost the claim is still its own to take back.
    let for_anybody = matches!(
        intent,
        Intent::TakeBack(_)
            | Intent::Veto(_)
            | Intent::Acknowledge(_)
            | Intent::Snooze { .. }
            | Intent::Lease(_)
            | Intent::EndLeases(_)
    );
    if !world.acts() && !for_anybody {
        if let Some(Collector::Other { owner, .. }) = &world.collector {
            world.news.push(Msg::OnlyLooking { host: owner.host.clone(), pid: owner.pid });
        }
        return Vec::new();
    }
    match intent {
        Intent::Begin { plan, authority } => {
            let by = world.by.clone();
            begin(world, *plan, authority, &by, now)
        }
        Intent::TakeBack(op) => take_back(world, op, now),
        Intent::Veto(identities) => guards::veto(world, identities, now),
        Intent::Refresh => {
            world.fleet.accounts.iter_mut().for_each(|account| account.pacing.wanted = true);
            world.news.push(Msg::Refreshing);
            ask_due(world, now)
        }
        Intent::Set { identity, setting } => {
            if setting.is_empty() {
                world.settings.single.remove(&identity);
            } else {
                world.settings.single.insert(identity.clone(), setting.clone());
            }
            world.spending.reassigned.insert(identity.account.clone());
            vec![Effect::Set { identity, setting }]
        }
        Intent::Assign(assignment) => assign(world, assignment, now),
        Intent::AssignAll(assignments) => reassign(world, assignments, now),
        Intent::NoteUnwatched => {
            let accounts = world.spending.unwatched.drain(..).map(|unwatched| unwatched.account).collect();
            vec![Effect::NoteUnwatched(accounts)]
        }
        Intent::Consent { account, consent } => usage::consent(world, &account, consent, now),
        Intent::AcceptHostKey(identity) => usage::accept_host_key(world, &identity, now),
        Intent::Lease(draft) => leases::set(world, *draft, now),
        Intent::EndLeases(ids) => leases::take_away(world, &ids, now),
        intent @ (Intent::Acknowledge(_) | Intent::Snooze { .. }) => alerts::intend(world, &intent, now),
    }
}

/// The spend of a resource belongs to a project from now on, and in the books from when it was said.
fn assign(world: &mut World, assignment: Assignment, now: Timestamp) -> Vec<Effect> {
    let identity = assignment.identity.clone();
    let mut setting = world.settings.single.get(&identity).cloned().unwrap_or_default();
    setting.project = assignment.project.clone();
    let mut effects = intend(world, Intent::Set { identity: identity.clone(), setting }, now);
    effects.extend(reassign(world, vec![assignment], now));
    effects
}

/// What is open belongs to other projects from its last look on, and what is closed since a time.
fn reassign(world: &mut World, mut assignments: Vec<Assignment>, now: Timestamp) -> Vec<Effect> {
    let mut effects = Vec::new();
    for assignment in &assignments {
        let project = assignment.project.as_deref().map(Arc::from);
        let entries = world.spending.meter.assign(&assignment.identity, project.as_ref());
        effects.extend(kept(world, &assignment.identity.account, entries));
    }
    assignments.retain(|assignment| assignment.from.is_none_or(|from| from < now));
    if !assignments.is_empty() {
        effects.push(Effect::Assign(assignments));
    }
    effects.push(spend::sum_up(world, now));
    effects
}

/// Takes back one action, or what was begun last: several at once are one.
fn take_back(world: &mut World, op: Option<OpId>, now: Timestamp) -> Vec<Effect> {
    // What nobody began is meant by nobody who does not point at it.
    let meant = |operation: &&Operation| op.is_some() || !copies::is_scheduled(operation);
    let open: Vec<&Operation> =
        world.under_way().filter(|operation| operation.can_be_taken_back()).filter(meant).collect();
    let last = open.iter().map(|operation| operation.began_at).max();
    let wanted = |operation: &&&Operation| match op {
        Some(op) => operation.id == op,
        None => Some(operation.began_at) == last,
    };
    let ops: Vec<OpId> = open.iter().filter(wanted).map(|operation| operation.id).collect();
    if ops.is_empty() {
        world.news.push(Msg::NothingToTakeBack);
    }
    let mut effects = Vec::new();
    for op in &ops {
        effects.extend(advance(world, *op, Input::TakeBack, now));
    }
    if ops.len() > 1 {
        world.news.push(Msg::SeveralTakenBack { count: ops.len() });
    }
    effects
}

/// Begins every target of a confirmed plan that can still be begun.
pub(super) fn begin(world: &mut World, plan: Plan, authority: Authority, by: &str, now: Timestamp) -> Vec<Effect> {
    let mut effects = Vec::new();
    let mut count = 0;
    let (action, saves, goes_on) = (plan.action, plan.saves().rates().to_vec(), plan.goes_on().rates().to_vec());
    for target in plan.targets {
        let account_locked = world.fleet.account(&target.identity.account).is_none_or(|account| account.read_only);
        let hindrance = match () {
            () if world.read_only => Some(Hindrance::ReadOnly),
            () if account_locked => Some(Hindrance::ReadOnlyAccount),
            () if world.operation_on(&target.identity).is_some_and(|operation| !operation.gives_way_to(action)) => {
                Some(Hindrance::UnderWay)
            }
            () if target.effect.loses_data() && authority == Authority::LosesNothing => Some(Hindrance::NotThere),
            () => None,
        };
        if let Some(hindrance) = hindrance {
            world.news.push(Msg::LeftOut { name: target.name, action: plan.action, hindrance });
            continue;
        }
        effects.extend(launch(world, action, target, authority.clone(), by.to_owned(), now).1);
        count += 1;
    }
    if count > 0 {
        world.news.push(Msg::Begun { action, count, saves, goes_on });
    }
    effects
}

/// Begins an action on one target of a plan. One that is overdue, or a mere checkpoint, gives way to it.
pub(super) fn launch(
    world: &mut World,
    action: Action,
    target: Target,
    authority: Authority,
    by: String,
    now: Timestamp,
) -> (OpId, Vec<Effect>) {
    let mut effects = Vec::new();
    let before: Vec<OpId> = world
        .under_way()
        .filter(|operation| operation.target.identity == target.identity)
        .map(|operation| operation.id)
        .collect();
    for op in before {
        effects.extend(advance(world, op, Input::Superseded, now));
    }
    let id = OpId(world.next_op);
    world.next_op += 1;
    let (operation, orders) = Operation::begin(id, action, target, authority, by, now);
    world.operations.insert(id, operation);
    world.changed = true;
    effects.extend(carry_out(world, id, orders, now));
    (id, effects)
}

/// Takes one action a step further and carries out what it orders.
pub fn advance(world: &mut World, op: OpId, input: Input, now: Timestamp) -> Vec<Effect> {
    let Some(operation) = world.operations.get_mut(&op) else { return Vec::new() };
    let was_ended = operation.is_ended();
    let orders = operation.advance(input, now);
    let mut is_new = false;
    if let Some(saved) = operation.saved().filter(|_| !was_ended) {
        is_new = operation.is_checkpoint();
        world.saved.insert(saved.identity.clone(), saved);
    }
    if let (false, Step::Ended { outcome, .. }) = (was_ended, &operation.step) {
        let (name, action, outcome) = (operation.target.name.clone(), operation.action, outcome.clone());
        let by_itself = copies::is_scheduled(operation);
        if matches!(outcome, Outcome::Done { .. }) && !operation.is_checkpoint() {
            let (by, saves) = (operation.by.clone(), operation.target.saves());
            let news = News::Acted { by, action, name: name.clone(), saves };
            alerts::tell_deed(world, &news, now);
        }
        match outcome {
            Outcome::NotSent(crate::rules::saga::NotSent::TakenBack) => world.news.push(Msg::TakenBack { name }),
            // SAVED tells how old the last one is, and an alert that it is too old.
            _ if by_itself => {}
            outcome => world.news.push(Msg::Ended { name, action, outcome }),
        }
        copies::ended(world, op);
        forget_old(world);
    }
    let identity = world.operations.get(&op).map(|operation| operation.target.identity.clone());
    let mut effects = carry_out(world, op, orders, now);
    // After it is on record, from which it is known what there is.
    let newest = identity.filter(|_| is_new).and_then(|identity| world.saved.get(&identity));
    effects.extend(newest.and_then(|saved| copies::thin(world, saved, now)));
    effects
}

/// The ledger has them all: the state keeps the latest.
fn forget_old(world: &mut World) {
    let surplus = world.operations.len().saturating_sub(RECENT);
    let ended = world.operations.values().filter(|operation| operation.is_ended()).map(|operation| operation.id);
    for oldest in ended.take(surplus).collect::<Vec<_>>() {
        world.operations.remove(&oldest);
    }
}

fn carry_out(world: &mut World, op: OpId, orders: Vec<Order>, now: Timestamp) -> Vec<Effect> {
    let Some(operation) = world.operations.get(&op).cloned() else { return Vec::new() };
    let identity = operation.target.identity.clone();
    let mut effects = Vec::new();
    for order in orders {
        match order {
            Order::Record => effects.push(Effect::Commit { entry: Box::new(operation.clone()), then: None }),
            Order::RecordThenSend(permit) => {
                let then = Some(Then::Send(permit));
                effects.push(Effect::Commit { entry: Box::new(operation.clone()), then });
            }
            Order::RecordThenSave => match job(world, &operation) {
                Some(job) => {
                    let then = Some(Then::Save(Box::new(job)));
                    effects.push(Effect::Commit { entry: Box::new(operation.clone()), then });
                }
                None => {
                    let gone = world.fleet.instances.get(&identity).is_none_or(Known::is_gone);
                    let told = checkpoint::Told::Failed(checkpoint::Trouble::NoAddress);
                    let number = operation.saving.as_ref().map_or(0, |saving| saving.number());
                    let input =
                        if gone { Input::LookedUp(Ok(Found::NoSuchId)) } else { Input::Saving { number, told } };
                    effects.extend(advance(world, op, input, now));
                }
            },
            Order::StopSaving => {
                let number = operation.saving.as_ref().map_or(0, |saving| saving.number());
                effects.push(Effect::StopSaving { op, number });
            }
            Order::Look => effects.push(Effect::Lookup { op: Some(op), identity: identity.clone() }),
            Order::Released => {
                let consequences = world.fleet.released(&identity, now);
                happened::note(world, happened::Before::of(world, &identity.account), &consequences, now);
                let entries = spend::single(world, &consequences, now);
                effects.extend(follow(world, &identity.account, consequences, entries));
            }
            Order::Refresh => {
                if let Some(account) = world.fleet.account_mut(&identity.account) {
                    account.pacing.wanted = true;
                }
                effects.extend(ask_due(world, now));
            }
        }
    }
    effects
}

/// The stage of a checkpoint that an action is at, as it is to be done now; `None` while nobody knows where the machine
/// is reached.
fn job(world: &World, operation: &Operation) -> Option<Job> {
    let target = &operation.target;
    let saving = operation.saving.as_ref()?;
    let Step::Saving { stage, .. } = operation.step else { return None };
    let known = world.fleet.instances.get(&target.identity).filter(|known| !known.is_gone())?;
    let endpoint = known.row.ssh.as_ref()?;
    Some(Job {
        op: operation.id,
        number: saving.number(),
        stage,
        recipe: target.recipe.clone()?,
        target: streams::Target::new(&target.provider, &target.identity, endpoint),
        folder: saving.folder.clone(),
        whole: !operation.is_checkpoint(),
    })
}

/// What the program writes down when it is left, or another one took its place: what was not sent will not
/// be sent.
pub fn leave(world: &mut World, now: Timestamp) -> Vec<Effect> {
    let unsent: Vec<OpId> = world
        .under_way()
        // What is being brought to safety goes on when somebody collects again.
        .filter(|operation| !operation.outlives_its_process())
        .filter(|operation| operation.sent == 0 || matches!(operation.step, Step::Waiting { .. }))
        .map(|operation| operation.id)
        .collect();
    let mut effects = Vec::new();
    for op in unsent {
        if let Some(operation) = world.operations.get_mut(&op) {
            let orders = operation.resume(now);
            effects.extend(carry_out(world, op, orders, now));
        }
    }
    effects
}

#[cfg(test)]
#[path = "world_tests.rs"]
mod tests;
