//! How long the money of a prepaid account lasts.

use jiff::{SignedDuration, Timestamp};
use providers::model::AccountName;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::fleet::{Account, AsOf, Fleet};

/// The end of an account's cash at its present burn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runway {
    pub account: AccountName,
    /// From the moment at which the balance was read; 0 when there is nothing left.
    pub hours: Decimal,
    /// `None` when it lies beyond every calendar.
    pub ends_at: Option<Timestamp>,
    /// It may end earlier: something that costs is not known, not certain, or charged in another currency.
    pub at_most: bool,
}

/// An account's cash divided by its burn in the same currency, storage included. `None` when the balance
/// is not known or could not be read again, when the account is billed afterwards, and when nothing burns.
/// Vouchers are no runway.
pub fn runway(fleet: &Fleet, account: &Account) -> Option<Runway> {
    let AsOf { value: balance, as_of } = account.balance.as_ref().filter(|_| account.balance_error.is_none())?;
    let totals = fleet.burn_of(&account.name);
    let burn = totals.burn.of(balance.cash.currency);
    if burn.is_zero() {
        return None;
    }
    let hours = balance.cash.amount.max(Decimal::ZERO).checked_div(burn.amount())?;
    let seconds = hours.checked_mul(Decimal::from(3600)).and_then(|seconds| seconds.to_i64());
    let ends_at = seconds.and_then(|seconds| as_of.checked_add(SignedDuration::from_secs(seconds)).ok());
    let elsewhere = totals.burn.rates().iter().any(|rate| rate.currency != burn.currency && !rate.is_zero());
    let at_most = elsewhere || totals.incomplete || totals.upper.of(burn.currency) != burn;
    Some(Runway { account: account.name.clone(), hours, ends_at, at_most })
}

/// The runway that ends first. Accounts without one do not make it shorter.
pub fn shortest(fleet: &Fleet) -> Option<Runway> {
    let all = fleet.accounts.iter().filter_map(|account| runway(fleet, account));
    all.min_by_key(|runway| (runway.ends_at.unwrap_or(Timestamp::MAX), runway.hours))
}
