//! How long the money of a prepaid account lasts.

use jiff::{SignedDuration, Timestamp};
use providers::model::AccountName;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::fleet::{Account, AsOf, Fleet, Totals};

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
    runway_at(account, &fleet.burn_of(&account.name))
}

/// The same for whoever has the account's sums at hand.
pub fn runway_at(account: &Account, totals: &Totals) -> Option<Runway> {
    let AsOf { value: balance, as_of } = account.balance.as_ref().filter(|_| account.balance_error.is_none())?;
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use providers::error::ErrorKind;
    use providers::model::{Attachment, Component, Instance, Market, Phase, Rates};
    use providers::money::{Currency, Rate};
    use providers::provider::{Poll, Reading};
    use rstest::rstest;

    use super::*;
    use crate::rules::samples::{at, error, fleet, instance, listed, volume, with_balance, with_storage};

    fn decimal(text: &str) -> Decimal {
        text.parse().unwrap()
    }

    fn of(poll: Poll) -> Option<Runway> {
        let mut fleet = fleet(&["team"]);
        fleet.poll("team", poll, at("10:00:00"));
        runway(&fleet, &fleet.accounts[0])
    }

    fn running(hourly: &str) -> Instance {
        instance("a", Phase::Running, hourly)
    }

    /// BAL-03: storage burns as well.
    #[test]
    fn cash_is_divided_by_all_that_burns() {
        let rows = vec![instance("pod-a", Phase::Running, "0.74"), instance("pod-b", Phase::Running, "1.26")];
        let found = of(with_balance(with_storage(listed(rows), vec![volume("v", "0.10", &["pod-a"])]), "6")).unwrap();
        assert_eq!(found.ends_at, Some(at("10:00:00") + SignedDuration::from_secs(10_285)));
        assert!(!found.at_most);
    }

    /// BAL-04: no burn has no end; a little burn has one.
    #[test]
    fn without_burn_there_is_no_end_in_sight() {
        assert_eq!(of(with_balance(listed(vec![]), "6")), None);
        assert_eq!(of(with_balance(listed(vec![running("0")]), "6")), None);
        let monthly = Rate::of_month(100.into(), decimal("0.2"), 730.into(), Currency::USD).unwrap();
        let mut item = volume("v", "0", &[]);
        item.rates = Rates::known().with(Component::Storage, monthly);
        item.attachment = Attachment::Unknown;
        let found = of(with_balance(with_storage(listed(vec![]), vec![item]), "6")).unwrap();
        assert_eq!(found.hours.round_dp(3), decimal("219"));
    }

    /// BAL-05: who is billed afterwards shortens nobody's runway.
    #[test]
    fn the_shortest_is_over_accounts_that_have_one() {
        let mut fleet = fleet(&["runpod", "lambda", "aws"]);
        fleet.poll("runpod", with_balance(listed(vec![running("2")]), "100"), at("10:00:00"));
        for (name, hourly) in [("lambda", "1.29"), ("aws", "1.01")] {
            let poll = Poll { balance: Reading::NotTold, ..listed(vec![running(hourly)]) };
            fleet.poll(name, poll, at("10:00:00"));
            assert_eq!(runway(&fleet, fleet.account(&name.into()).unwrap()), None);
        }
        let found = shortest(&fleet).unwrap();
        assert_eq!((found.account.as_str(), found.hours), ("runpod", decimal("50")));
        assert_eq!(found.ends_at.unwrap().duration_since(at("10:00:00")).as_secs(), 180_000);
        assert_eq!(fleet.burn().burn.of(Currency::USD).amount(), decimal("4.3"));
        fleet.poll("lambda", with_balance(listed(vec![running("1.29")]), "1.29"), at("10:01:00"));
        assert_eq!(shortest(&fleet).unwrap().account.as_str(), "lambda");
    }

    /// BAL-02: a balance that could not be read again is no basis.
    #[test]
    fn an_unreadable_balance_has_no_runway() {
        let mut fleet = fleet(&["team"]);
        fleet.poll("team", with_balance(listed(vec![running("1")]), "6"), at("10:00:00"));
        assert!(shortest(&fleet).is_some());
        let unread = Reading::Failed(error(ErrorKind::Decode { path: "amount".into(), message: "null".into() }));
        fleet.poll("team", Poll { balance: unread, ..listed(vec![running("1")]) }, at("10:01:00"));
        assert_eq!(shortest(&fleet), None);
        assert!(fleet.accounts[0].balance.is_some(), "it is still there to be shown with its age");
    }

    #[rstest]
    #[case::nothing_left("0")]
    #[case::in_debt("-3.5")]
    fn an_empty_account_has_reached_its_end(#[case] cash: &str) {
        let found = of(with_balance(listed(vec![running("1")]), cash)).unwrap();
        assert_eq!((found.hours, found.ends_at), (Decimal::ZERO, Some(at("10:00:00"))));
    }

    #[rstest]
    #[case::all_known(running("1").rates, false)]
    #[case::a_part_is_not_known(running("1").rates.with_missing(), true)]
    #[case::another_currency(
        running("1").rates.with(Component::Ip, Rate::per_hour(decimal("0.1"), Currency::EUR).unwrap()), true
    )]
    fn an_open_sum_is_an_upper_limit(#[case] rates: Rates, #[case] at_most: bool) {
        let found = of(with_balance(listed(vec![Instance { rates, ..running("1") }]), "6")).unwrap();
        assert_eq!((found.hours, found.at_most), (decimal("6"), at_most));
    }

    #[test]
    fn what_is_paid_ahead_burns_no_balance() {
        let reserved = Instance { market: Market::Reserved { until: None }, ..running("1") };
        assert_eq!(of(with_balance(listed(vec![reserved]), "6")), None);
    }

    proptest! {
        /// No balance and no rate makes it panic, and it is never negative.
        #[test]
        fn any_balance_over_any_burn_is_a_time_or_nothing(cash in any::<i64>(), scale in 0u32..12, picos in 0i64..i64::MAX) {
            let rates = Rates::known().with(Component::Compute, Rate::from_picos(picos, Currency::USD));
            let row = Instance { rates, ..running("1") };
            let found = of(with_balance(listed(vec![row]), &Decimal::new(cash, scale).to_string()));
            prop_assert!(found.is_none_or(|found| found.hours >= Decimal::ZERO && found.ends_at.is_none_or(|end| end >= at("10:00:00"))));
        }
    }
}
