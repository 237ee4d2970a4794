//! What the collector does about spend: looks become entries in the books, and the books are asked for sums.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use providers::error::ProviderError;
use providers::model::{AccountName, BilledLine, Identity, ResourceKind};
use providers::money::Burn;
use providers::provider::{Poll, Reading};
use rust_decimal::Decimal;

use super::budgets;
use crate::app::effect::Effect;
use crate::app::spending::{Former, SpentTotals, Unwatched};
use crate::app::state::World;
use crate::rules::fleet::{Account, Consequence, Trouble};
use crate::rules::memory::{AccountMemory, Memory};
use crate::rules::spend::{Billing, Entries, Look, Summed, date_of};

/// An account that is well answers more often than so.
const HEARD_WITHIN: SignedDuration = SignedDuration::from_mins(10);

/// What one thing may cost in a day, in whatever currency: more is no bill.
const GREATEST_LINE: i64 = 1_000_000_000;

/// Totals are made anew so often when one change follows another.
const BETWEEN_CHANGES: SignedDuration = SignedDuration::from_millis(100);
/// And so often when nothing changes but the time.
const TICK: SignedDuration = SignedDuration::from_secs(1);

/// Takes the books' memory over.
pub fn remember(world: &mut World, memory: &Memory) {
    let (fleet, spending) = (&world.fleet, &mut world.spending);
    let is_known =
        |account: &AccountMemory| fleet.account(&account.name).is_some_and(|known| known.provider == account.provider);
    spending.meter = memory.meter(is_known);
    spending.version += 1;
    spending.unwatched.clear();
    let is_named = |account: &&AccountMemory| fleet.account(&account.name).is_some();
    let former = memory.accounts.iter().filter(|account| !is_named(account));
    spending.former = former.map(|account| Former::of(account, memory)).collect();
    for account in &memory.accounts {
        if is_known(account) {
            let billed_to = memory.billed_to.get(&account.name);
            if let Some((billing, to)) = spending.billing.get_mut(&account.name).zip(billed_to) {
                billing.kept(*to);
            }
            continue;
        }
        let instances = memory.instances.iter().filter(|known| known.identity.account == account.name);
        let storage = memory.storage.iter().filter(|known| known.identity.account == account.name);
        let rates: Vec<Burn> = instances
            .filter(|known| !known.is_gone())
            .map(|known| known.rates().upper())
            .chain(storage.filter(|known| !known.is_gone()).map(|known| known.rates().upper()))
            .filter(|burn| !burn.is_zero())
            .collect();
        if !rates.is_empty() && !account.unwatched_noted {
            spending.unwatched.push(Unwatched {
                account: account.name.clone(),
                provider: account.provider.clone(),
                resources: rates.len(),
                burn: rates.iter().flat_map(Burn::rates).copied().collect(),
                seen: account.as_of,
            });
        }
    }
    // The config may say otherwise than when this was written down.
    spending.reassigned = world.fleet.accounts.iter().map(|account| account.name.clone()).collect();
    spending.asked_for = None;
}

/// Whether an account's first answer tells that the books know it by another name, which is then to be changed
/// before the answer is taken in: it would be counted twice.
pub fn former_name(world: &mut World, name: &AccountName, poll: &Poll) -> Option<AccountName> {
    let fleet = &world.fleet;
    let account = fleet.account(name).filter(|account| world.collects() && account.as_of.is_none())?;
    let tenant_of_another = |other: &Account| {
        other.provider == account.provider
            && other.tenant.as_ref().is_some_and(|tenant| poll.tenant == Reading::Known(tenant.clone()))
    };
    if fleet.accounts.iter().any(tenant_of_another) {
        return None;
    }
    let former = world.spending.former_name(&account.provider, poll)?;
    world.spending.renamed.insert(name.clone()).then_some(former)
}

/// Makes a list that was read into entries. `listed` says for which kinds one was.
pub fn look(
    world: &mut World,
    name: &AccountName,
    listed: &[ResourceKind],
    consequences: &[Consequence],
    now: Timestamp,
) -> Entries {
    let reassigned = world.spending.reassigned.remove(name);
    let changed: BTreeSet<Identity> = consequences.iter().map(|consequence| consequence.identity().clone()).collect();
    let mut entries = Entries::default();
    world.spending.meter.set_skew(name, world.fleet.skew(name));
    for &kind in listed {
        let look = Look::new(&world.fleet, name, kind, now);
        // Who mounts a storage item is not told by the item itself.
        let changed = (kind == ResourceKind::Instance && !reassigned).then_some(&changed);
        let meter = &mut world.spending.meter;
        entries.append(meter.look_at(&look, &world.fleet, &world.settings, now, changed));
    }
    let trouble = world.fleet.account(name).and_then(|account| account.trouble.as_ref());
    if trouble.is_some_and(|trouble| matches!(trouble.value, Trouble::SameAs(_))) {
        // Its resources are the other account's, which counts them from here on.
        world.spending.meter.leave_unwatched(name);
    }
    note(world, &entries);
    entries
}

/// Makes into entries what was learnt about single resources between two lists.
pub fn single(world: &mut World, consequences: &[Consequence], now: Timestamp) -> Entries {
    let mut entries = Entries::default();
    for consequence in consequences {
        if let Consequence::Changed(identity) = consequence {
            // The next list shows the same and seems to change nothing: all of it is to be compared.
            world.spending.reassigned.insert(identity.account.clone());
        }
        let (Consequence::Appeared(identity) | Consequence::Gone(identity)) = consequence else { continue };
        let look = Look::new(&world.fleet, &identity.account, identity.kind, now);
        let meter = &mut world.spending.meter;
        entries.append(meter.look_at_one(&look, &world.fleet, &world.settings, identity, now));
    }
    note(world, &entries);
    entries
}

fn note(world: &mut World, entries: &Entries) {
    if !entries.is_empty() {
        let spending = &mut world.spending;
        spending.version += u64::from(!entries.spans.is_empty() || !entries.lumps.is_empty());
        spending.tally.note(entries, &spending.zone);
    }
}

/// Asks the books for their sums when the ones that are here are of another day, or not those of the budgets.
pub fn ask_sums(world: &mut World, now: Timestamp) -> Option<Effect> {
    let day = date_of(now, &world.spending.zone);
    if !world.remembered {
        return None;
    }
    let wanted = budgets::want_sums(world, now) || world.spending.asked_for != Some(day);
    wanted.then(|| sum_up(world, now))
}

/// Asks the books for their sums: something in them is not as it was.
pub fn sum_up(world: &mut World, now: Timestamp) -> Effect {
    let day = date_of(now, &world.spending.zone);
    world.spending.asked_for = Some(day);
    let asked = world.spending.tally.ask();
    let budgets = budgets::asked(world, asked, now);
    Effect::SumUp { day, asked, budgets }
}

pub fn summed(world: &mut World, summed: Summed, now: Timestamp) {
    let spending = &mut world.spending;
    spending.version += 1;
    spending.tally.answer(summed, &spending.zone);
    // Budgets can be told of now.
    world.alerting.looked_at = None;
    add_up(world, now);
}

/// Brings the totals of the header up to date when they are due: after a change, but not at each of many, and
/// once a second else.
pub fn add_up_when_due(world: &mut World, changed: bool, now: Timestamp) {
    let spending = &mut world.spending;
    spending.late |= changed;
    let age = spending.totals.as_ref().map(|totals| now.duration_since(totals.as_of));
    let least = if spending.late { BETWEEN_CHANGES } else { TICK };
    if age.is_none_or(|age| !(SignedDuration::ZERO..least).contains(&age)) {
        add_up(world, now);
    }
}

/// When totals that had to wait are due.
pub fn totals_due(world: &World) -> Option<Timestamp> {
    let spending = &world.spending;
    spending.totals.as_ref().filter(|_| spending.late).map(|totals| totals.as_of + BETWEEN_CHANGES)
}

/// Brings the totals of the header up to date.
pub fn add_up(world: &mut World, now: Timestamp) {
    let spending = &mut world.spending;
    let totals = spending.tally.totals(&spending.meter, &spending.zone, now);
    spending.late = false;
    spending.totals = totals.map(|(today, month)| SpentTotals { today, month, as_of: now });
}

/// Asks the providers that are due for what they billed.
pub fn ask_billed(world: &mut World, now: Timestamp) -> Vec<Effect> {
    if !world.remembered || !world.collects() || world.one_shot {
        return Vec::new();
    }
    let (fleet, spending) = (&world.fleet, &mut world.spending);
    // An account that was never heard of, or is in trouble, is not asked for its past; nor is one that has not been
    // heard of since our clock was set: what it billed is asked for by its own time.
    let heard = |as_of: Timestamp| now.duration_since(as_of).abs() <= HEARD_WITHIN;
    let well = |name: &AccountName| {
        fleet.trusts(name)
            && fleet.account(name).is_some_and(|account| account.trouble.is_none() && account.as_of.is_some_and(heard))
    };
    let zone = &spending.zone;
    let due = spending
        .billing
        .iter_mut()
        .filter(|(name, billing)| billing.due(now).is_some_and(|at| at <= now) && well(name));
    due.filter_map(|(account, billing)| {
        let (from, to) = billing.window(zone, fleet.there(account, now))?;
        billing.ask(now);
        Some(Effect::AskBilled { account: account.clone(), from, to })
    })
    .collect()
}

/// When the next account is to be asked for what was billed.
pub fn billed_due(world: &World, now: Timestamp) -> Option<Timestamp> {
    let asks = world.remembered && world.collects() && !world.one_shot;
    let due = world.spending.billing.values().filter_map(|billing| billing.due(now));
    // Whoever waits for an account's first good answer is woken by that.
    due.filter(|at| *at > now).min().filter(|_| asks)
}

/// Takes in what a provider billed.
pub fn billed(
    world: &mut World,
    account: AccountName,
    (from, to): (Timestamp, Timestamp),
    lines: Result<Vec<BilledLine>, ProviderError>,
    now: Timestamp,
) -> Vec<Effect> {
    let Some(billing) = world.spending.billing.get_mut(&account) else { return Vec::new() };
    let beyond_measure = |line: &BilledLine| line.amount.amount.abs() > Decimal::from(GREATEST_LINE);
    let line = |error: ProviderError| format!("{}: {}", error.request, error.kind);
    let told = lines.map_err(line).and_then(|lines| match lines.iter().find(|line| beyond_measure(line)) {
        Some(line) => {
            Err(format!("{}: nobody is charged {} {}", line.product, line.amount.amount, line.amount.currency))
        }
        None => Ok(lines),
    });
    let lines = match told {
        Ok(lines) => lines,
        Err(error) => {
            let provider = world.fleet.account(&account).map(|account| account.provider.as_str());
            // Of no weight for the fleet: what is not billed yet stays our own figure.
            tracing::warn!(error, provider, %account, "what was billed is not known");
            billing.failed(error);
            return Vec::new();
        }
    };
    billing.answered();
    if !world.collects() {
        return Vec::new();
    }
    // From here on the books alone tell of that time.
    let entries = world.spending.meter.cut(&account, to);
    note(world, &entries);
    let mut effects: Vec<Effect> = super::world::kept(world, &account, entries).into_iter().collect();
    effects.push(Effect::KeepBilled { account, from, to, lines });
    effects.push(sum_up(world, now));
    effects
}

/// The books hold what a provider billed.
pub fn billed_kept(world: &mut World, account: &AccountName, to: Timestamp) {
    if let Some(billing) = world.spending.billing.get_mut(account) {
        billing.kept(to);
    }
}

/// Other books than before: what they hold of what was billed is to be learnt.
pub fn forget_billed(world: &mut World) {
    world.spending.billing.values_mut().for_each(|billing| *billing = Billing::new(billing.records));
}

/// The accounts whose provider tells what it billed.
pub fn track_billing(world: &mut World) {
    for account in &world.fleet.accounts {
        let records = providers::find(account.provider.as_str()).and_then(|entry| entry.capabilities.billed_history);
        if let Some(records) = records {
            world.spending.billing.entry(account.name.clone()).or_insert_with(|| Billing::new(records));
        }
    }
}

#[cfg(test)]
#[path = "spend_tests.rs"]
mod tests;
