//! What of a budget is worth an alert.

use jiff::SignedDuration;
use jiff::civil::Date;

use super::standing::{line, share};
use super::{Budget, Quantity, Standing};
use crate::rules::alerts::{About, Alerts, Finding, Kind, Matter, Topic};

/// A correction may bring a sum back by so many points without ending what was told.
const SLACK: u32 = 5;
/// A forecast must have been over its line for so long: machines come and go.
const FORECAST_HOLDS: SignedDuration = SignedDuration::from_mins(5);

/// Each line that is crossed, the lower ones quietly beside a higher one that is new, and the forecast.
pub fn findings(budget: &Budget, standing: &Standing, alerts: &Alerts) -> Vec<Finding> {
    let limit = budget.limit;
    let quantity = |amount| Quantity::new(amount, limit.unit);
    let term: Option<Date> = standing.term.first;
    let spent = share(standing.spent, limit.amount);
    let mut found = Vec::new();
    let highest = budget.thresholds.iter().copied().filter(|threshold| spent >= *threshold).max();
    for &threshold in &budget.thresholds {
        let told = told(alerts, budget, term, threshold);
        // Told of another limit, it is not known of this one.
        let goes_on = told.is_some_and(|of| of == limit) && spent + SLACK >= threshold;
        let holds = spent >= threshold;
        if !holds && !goes_on {
            continue;
        }
        let crossed = standing.crossed.iter().find(|(line, _)| *line == threshold);
        let matter = Matter::Budget {
            name: budget.name.clone(),
            term,
            threshold,
            spent: quantity(standing.spent),
            limit,
            crossed_at: crossed.and_then(|(_, at)| *at),
            forecast: standing.forecast.map(quantity),
        };
        let quiet = holds && highest != Some(threshold);
        found.push(Finding { matter, holds, after: SignedDuration::ZERO, quiet });
    }
    if let (Some(percent), Some(forecast)) = (budget.forecast, standing.forecast)
        && standing.spent < limit.amount
    {
        let over = line(limit.amount, percent);
        let holds = forecast >= over;
        if holds || forecast >= line(over, 100 - SLACK) {
            let matter = Matter::Forecast {
                name: budget.name.clone(),
                term,
                forecast: quantity(forecast),
                limit,
                reaches: standing.reaches,
            };
            found.push(Finding { matter, holds, after: FORECAST_HOLDS, quiet: false });
        }
    }
    found
}

/// The limit of which a line is told to be crossed in this term.
fn told(alerts: &Alerts, budget: &Budget, term: Option<Date>, threshold: u32) -> Option<Quantity> {
    let term = term.map_or_else(String::new, |date| date.to_string());
    let about = About::Budget(budget.name.clone());
    let alert = alerts.get(&Topic { kind: Kind::Budget, about, mark: format!("{term} {threshold}") })?;
    match &alert.matter {
        Matter::Budget { limit, .. } => Some(*limit),
        _ => None,
    }
}
