//! What accounts give rise to: they do not answer, their money ends, all of them together burn too much.

use jiff::Timestamp;
use providers::error::ErrorKind;
use providers::model::{Fate, Phase};
use providers::money::{Burn, Currency, Rate};
use rust_decimal::Decimal;

use super::{is_heard, name_of};
use crate::app::state::World;
use crate::rules::alerts::{About, Finding, Kind, Matter, Topic};
use crate::rules::fleet::{Account, AsOf, Totals, Trouble};
use crate::rules::runway::runway_at;
use crate::rules::spend::Exchange;

/// A burn of so much of its limit, in percent, is nearly over it.
const NEARLY: i64 = 95;

/// Goes through all accounts.
pub fn look(world: &World, now: Timestamp, found: &mut Vec<Finding>) {
    let limits = &world.alerting.limits;
    let mut burns = Burn::default();
    for account in &world.fleet.accounts {
        found.extend(unreachable(world, account, now));
        if !is_heard(world, account, now) {
            continue;
        }
        let money_ends = account.balance.is_some() && (limits.runway.is_some() || limits.awake.is_some());
        if limits.burn.is_none() && !money_ends {
            continue;
        }
        let totals = world.fleet.burn_of(&account.name);
        totals.burn.rates().iter().for_each(|rate| burns.add(*rate));
        if money_ends {
            found.extend(runway(world, account, &totals, now));
        }
    }
    found.extend(limits.burn.and_then(|limit| burn(world, limit, &burns)));
}

/// It does not answer for some time, or it answers that it wants somebody to do something first.
fn unreachable(world: &World, account: &Account, now: Timestamp) -> Option<Finding> {
    let limit = world.alerting.limits.unreachable?;
    let AsOf { value: trouble, as_of: since } = account.trouble.as_ref()?;
    let is_refused = match trouble {
        Trouble::Request(error) => matches!(
            error.kind,
            ErrorKind::Credentials { .. } | ErrorKind::Forbidden { .. } | ErrorKind::Retired { .. }
        ),
        Trouble::Key(_) | Trouble::OtherTenant | Trouble::SameAs(_) => true,
    };
    let topic = Topic { kind: Kind::Account, about: About::Account(account.name.clone()), mark: String::new() };
    // Trouble that comes and goes began when it was first told.
    let since = match world.alerting.alerts.get(&topic).map(|alert| &alert.matter) {
        Some(Matter::Account { since: first, .. }) => *first.min(since),
        _ => *since,
    };
    let matter = Matter::Account { account: account.name.clone(), why: trouble.line(), since };
    let lasts = account.trouble.as_ref().is_some_and(|trouble| now.duration_since(trouble.as_of) >= limit);
    (is_refused || lasts).then(|| Finding::now(matter))
}

/// The money ends soon, or while nobody is there to act.
fn runway(world: &World, account: &Account, totals: &Totals, now: Timestamp) -> Option<Finding> {
    let limits = &world.alerting.limits;
    let runway = runway_at(account, totals)?;
    let ends_at = runway.ends_at?;
    let left = ends_at.duration_since(now);
    let night = limits.awake.and_then(|awake| awake.night(&world.spending.zone, now));
    let is_told = limits.runway.is_some_and(|limit| left <= limit) || night.is_some_and(|night| ends_at < night.to);
    // A quarter more is not yet enough for an alert to be over.
    let nearly = limits.runway.is_some_and(|limit| left <= limit.saturating_add(limit / 4));
    if !is_told && !nearly {
        return None;
    }
    let instances: Vec<_> = world.fleet.instances_of(&account.name).filter(|known| !known.is_gone()).collect();
    let storage = world.fleet.storage_of(&account.name).filter(|known| !known.is_gone());
    let lost = instances.iter().filter(|known| known.row.at_zero == Fate::Deleted).map(|known| name_of(known));
    let lost = lost.chain(storage.filter(|known| known.row.at_zero == Fate::Deleted).map(name_of)).collect();
    let runs = |phase| matches!(phase, Phase::Running | Phase::Provisioning | Phase::Unknown | Phase::Unreachable);
    let is_stopped = |fate| matches!(fate, Fate::Stopped | Fate::DeletedLater);
    let stopped = instances.iter().filter(|known| is_stopped(known.row.at_zero) && runs(known.phase())).count();
    let matter = Matter::Runway {
        account: account.name.clone(),
        ends_at,
        at_most: runway.at_most,
        asleep: night.is_some_and(|night| night.holds(ends_at)),
        lost,
        stopped,
    };
    let quiet = world.alerting.topped_up.contains(&account.name);
    Some(Finding { holds: is_told, quiet, ..Finding::now(matter) })
}

/// Several rates as one in a currency; what cannot be exchanged is not in it.
pub fn sum_in(exchange: &Exchange, currency: Currency, burns: &Burn) -> Decimal {
    // Of two amounts joined in one currency, neither is rounded before they are compared.
    let joined = |rate: &Rate| match rate.currency == currency {
        true => Some(rate.amount()),
        false => {
            let unit = exchange.convert(currency, Decimal::ONE)?;
            exchange.convert(rate.currency, rate.amount())?.checked_div(unit)
        }
    };
    burns.rates().iter().filter_map(joined).fold(Decimal::ZERO, Decimal::saturating_add)
}

/// What is certainly charged, in the currency of the limit; what cannot be exchanged stands in it no more than in any
/// other sum.
fn burn(world: &World, limit: Rate, burns: &Burn) -> Option<Finding> {
    let amount = sum_in(&world.alerting.exchange, limit.currency, burns);
    let matter = Matter::Burn { burn: Rate::per_hour(amount, limit.currency)?, limit };
    let nearly = limit.amount() * Decimal::new(NEARLY, 2);
    match amount {
        amount if amount > limit.amount() => Some(Finding::now(matter)),
        amount if amount > nearly => Some(Finding::eased(matter)),
        _ => None,
    }
}
