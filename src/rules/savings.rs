//! What was not charged because something was ended.

use std::collections::BTreeMap;

use jiff::Timestamp;
use providers::model::Action;
use providers::money::Currency;

use super::saga::{Operation, Outcome, Step};
use super::spend::Exact;

/// What stops, releases and deletions saved that were proven done since a time, a currency at a time: what each saves
/// per hour, from then until now. It ends earlier where the provider would have ended the resource by itself, or where
/// it was started or stopped again: from there on it is another one's saving, or none. What nobody knows the rate of
/// counts nothing, so that it is never too much.
pub fn saved_since(operations: &[Operation], since: Timestamp, now: Timestamp) -> BTreeMap<Currency, Exact> {
    let mut sums = BTreeMap::new();
    for operation in operations {
        let Some(at) = done_at(operation).filter(|at| *at >= since && ends_cost(operation.action)) else { continue };
        let anew = operations
            .iter()
            .filter(|other| other.target.identity == operation.target.identity)
            .filter(|other| matches!(other.action, Action::Start | Action::Stop))
            .filter_map(done_at)
            .filter(|other| *other > at);
        let until = anew.chain(operation.target.ends_at).chain([now]).min().unwrap_or(now);
        for rate in operation.target.saves() {
            *sums.entry(rate.currency).or_insert(Exact::ZERO) += Exact::over(rate, at, until);
        }
    }
    sums
}

fn ends_cost(action: Action) -> bool {
    matches!(action, Action::Stop | Action::Release | Action::Delete)
}

/// When it was proven; `None` for what was not.
fn done_at(operation: &Operation) -> Option<Timestamp> {
    match &operation.step {
        Step::Ended { at, outcome: Outcome::Done { .. } } => Some(*at),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use providers::model::Phase;
    use rstest::rstest;
    use rust_decimal::Decimal;

    use super::*;
    use crate::rules::plan::plan;
    use crate::rules::saga::{Authority, NotSent, OpId};
    use crate::rules::samples::{at, basis, fleet, identity, instance, listed, usd};
    use crate::rules::settings::Settings;

    /// An action on a machine of 2 USD an hour that costs nothing at rest, and how it ended.
    fn operation(action: Action, id: &str, ended: &str, outcome: Outcome) -> Operation {
        let phase = if action == Action::Start { Phase::Stopped } else { Phase::Running };
        let mut fleet = fleet(&["team"]);
        fleet.poll("team", listed(vec![instance(id, phase, "2")]), at("08:00:00"));
        let settings = Settings::default();
        let plan = plan(basis(&fleet, &settings, at("08:00:00")), action, &[identity("team", id)]);
        let mut target = plan.targets.into_iter().next().expect("it can be done");
        (target.before, target.after) = (vec![usd("2")], vec![]);
        let (op, _) =
            Operation::begin(OpId(1), action, target, Authority::LoseData, "me@here".to_owned(), at("08:00:00"));
        Operation { step: Step::Ended { at: at(ended), outcome }, ..op }
    }

    fn done(action: Action, id: &str, ended: &str) -> Operation {
        operation(action, id, ended, Outcome::Done { despite: None })
    }

    #[rstest]
    #[case::nothing(vec![], "0")]
    #[case::a_release(vec![done(Action::Release, "a", "10:00:00")], "4")]
    #[case::two(vec![done(Action::Release, "a", "10:00:00"), done(Action::Stop, "b", "11:30:00")], "5")]
    #[case::before(vec![done(Action::Release, "a", "08:59:00")], "0")]
    #[case::started_again(vec![done(Action::Start, "a", "11:00:00"), done(Action::Stop, "a", "10:00:00")], "2")]
    #[case::another_started(vec![done(Action::Start, "b", "11:00:00"), done(Action::Stop, "a", "10:00:00")], "4")]
    #[case::stopped_twice(vec![done(Action::Stop, "a", "11:00:00"), done(Action::Stop, "a", "10:00:00")], "4")]
    #[case::not_done(
        vec![operation(Action::Release, "a", "10:00:00", Outcome::NotSent(NotSent::TakenBack))], "0"
    )]
    #[case::a_start_saves_nothing(vec![done(Action::Start, "a", "10:00:00")], "0")]
    #[case::would_have_ended(
        vec![{
            let mut operation = done(Action::Release, "a", "10:00:00");
            operation.target.ends_at = Some(at("10:30:00"));
            operation
        }],
        "1"
    )]
    fn what_was_ended_saves_from_then_until_it_would_have_ended(#[case] deeds: Vec<Operation>, #[case] usd: &str) {
        let saved = saved_since(&deeds, at("09:00:00"), at("12:00:00"));
        let sum = saved.get(&Currency::USD).copied().unwrap_or_default();
        assert_eq!(sum.amount(), usd.parse::<Decimal>().unwrap());
    }
}
