//! The budgets of the demo. One of them runs into a line within the first minute, by a machine that does nothing; what
//! the others allow is never reached, whatever the day of the month.

use jiff::{SignedDuration, Timestamp};
use rust_decimal::{Decimal, RoundingStrategy};

use super::past;
use super::worlds::NOTEBOOK;
use crate::rules::memory::Keep;

/// So long after the start.
const CROSSES: SignedDuration = SignedDuration::from_secs(30);
/// The line, in percent.
const LINE: i64 = 80;

/// What the demo's config says of budgets.
pub fn text(pasts: &[Keep], now: Timestamp) -> String {
    let spent = past::spent(pasts, NOTEBOOK, now + CROSSES);
    // Of all time, so that no midnight makes it nothing. To a hundredth of a cent: its minute costs more than one cent.
    let limit = spent * Decimal::ONE_HUNDRED / Decimal::from(LINE);
    let limit = limit.round_dp_with_strategy(4, RoundingStrategy::ToZero);
    format!(
        r#"
[[budget]]
name = "all"
limit = "30000 USD"
period = "month"

[[budget]]
name = "finetune"
limit = "20000 USD"
period = "month"
scope = {{ project = "finetune" }}

[[budget]]
name = "art"
limit = "4000 gpu-h"
period = "month"
scope = {{ project = "art" }}

[[budget]]
name = "notebook"
limit = "{limit} USD"
period = "total"
scope = {{ instance = "notebook*" }}
thresholds = [{LINE}, 100]
forecast = false
"#
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use jiff::tz::TimeZone;
    use providers::sim::{Shared, SimClock};
    use rstest::rstest;

    use super::super::{rules, worlds};
    use super::*;
    use crate::config::Config;

    /// On the first and on the last of a month, and at a midnight: 20 to 40 s after the start, by what is counted and
    /// by what the provider bills.
    #[rstest]
    #[case("2026-11-30T09:00:00Z")]
    #[case("2026-11-30T23:59:50Z")]
    #[case("2026-12-01T00:00:00Z")]
    #[case("2027-02-28T13:14:15.678Z")]
    fn the_notebook_crosses_its_line_within_the_first_minute(#[case] now: &str) {
        let now: Timestamp = now.parse().unwrap();
        let rented = worlds::all(&SimClock::manual(now), &TimeZone::UTC);
        let pasts = past::of_all(&rented, &rules(), now);
        let config = Config::parse(&text(&pasts, now), Path::new("demo.toml")).unwrap();
        let [.., notebook] = &config.budgets[..] else { panic!("no budgets") };
        let line = notebook.limit.amount * Decimal::from(LINE) / Decimal::ONE_HUNDRED;
        let by = |seconds| now + SignedDuration::from_secs(seconds);
        let counted = |at| past::spent(&pasts, NOTEBOOK, at);
        assert!(counted(by(28)) < line && line <= counted(by(31)), "{line} {}", counted(now));
        let world = Shared::new(rented.into_iter().next().unwrap().world);
        let world = world.lock();
        let charges: Vec<_> = world.charges(Timestamp::MIN, now).filter(|charge| charge.id == NOTEBOOK).collect();
        let so_far = |at| {
            charges.iter().map(|charge| charge.per_hour * charge.hours_in(Timestamp::UNIX_EPOCH, at)).sum::<Decimal>()
        };
        let an_hour: Decimal = charges.iter().filter(|charge| charge.to >= now).map(|charge| charge.per_hour).sum();
        let billed = |seconds: i64| so_far(now) + an_hour * Decimal::from(seconds) / Decimal::from(3600);
        assert!(billed(20) < line && line <= billed(40), "{line} {} {an_hour}", so_far(now));
        // Nothing else is spent enough for a word, and its projects are the demo's.
        assert_eq!(config.budgets.len(), 4);
        let projects: Vec<_> = rules().projects.into_iter().map(|project| project.name).collect();
        for project in config.budgets.iter().filter_map(|budget| budget.scope.project.as_ref()) {
            assert!(projects.contains(project), "{project}");
        }
    }

    /// All of the last month and the next one together are less than is allowed for one, and what the last one cost is
    /// less than half of it: on no day anything but the notebook's line is told.
    #[rstest]
    #[case("2026-11-30T23:00:00Z")]
    #[case("2026-12-01T00:00:00Z")]
    #[case("2027-03-31T23:00:00Z")]
    fn the_month_is_not_spent(#[case] now: &str) {
        let now: Timestamp = now.parse().unwrap();
        let rented = worlds::all(&SimClock::manual(now), &TimeZone::UTC);
        let pasts = past::of_all(&rented, &rules(), now);
        let month = SignedDuration::from_hours(31 * 24);
        let open = pasts.iter().flat_map(|past| &past.entries.open).filter(|(_, running)| running.is_some());
        let ids: std::collections::BTreeSet<&str> = open.map(|(identity, _)| identity.id.as_str()).collect();
        let sum = |at| ids.iter().map(|id| past::spent(&pasts, id, at)).sum::<Decimal>();
        let ended = pasts.iter().flat_map(|past| &past.entries.spans);
        let ended = ended.filter(|span| !ids.contains(span.identity.id.as_str()) && span.to > now - month);
        let ended: Decimal = ended.map(|span| span.amount().amount()).sum();
        let (last, next) = (ended + sum(now), sum(now + month) - sum(now));
        assert!(last < Decimal::from(15_000) && last + next < Decimal::from(30_000), "{last} {next}");
    }
}
