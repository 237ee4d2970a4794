//! A budget in plain texts, and how a budget is written as such.

use jiff::tz::TimeZone;

use super::{Budget, Cycle, Unit};
use crate::rules::matcher::LabelPattern;

/// A budget in plain texts, as a form and a file have it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetDraft {
    pub name: String,
    /// `1500 USD` or `200 gpu-h`.
    pub limit: String,
    /// `day`, `week`, `month`, `total`, or two dates such as `2026-09-01 2026-12-31`, both included.
    pub period: String,
    /// `project`, `provider`, `account`, `instance` or `label`; empty for everything.
    pub scope_kind: String,
    /// Of that kind; empty for everything.
    pub scope: String,
    /// Percents such as `50, 80, 100`; empty for none.
    pub thresholds: String,
    /// A percent; empty for none.
    pub forecast: String,
    /// Empty for the config's own.
    pub zone: String,
}

impl BudgetDraft {
    /// `None` of a budget whose scope has several conditions, which texts of one kind cannot say.
    pub fn of(budget: &Budget, own_zone: &TimeZone) -> Option<Self> {
        let scope = &budget.scope;
        let conditions: Vec<(&str, String)> = [
            scope.project.as_ref().map(|project| ("project", project.clone())),
            scope.account.as_ref().map(|account| ("account", account.to_string())),
            scope.provider.as_ref().map(|provider| ("provider", provider.to_string())),
            scope.instance.as_ref().map(|glob| ("instance", glob.to_string())),
            scope.label.as_ref().map(|label| ("label", label_text(label))),
        ]
        .into_iter()
        .flatten()
        .collect();
        let (scope_kind, scope) = match conditions.as_slice() {
            [] => (String::new(), String::new()),
            [(kind, value)] => ((*kind).to_owned(), value.clone()),
            _ => return None,
        };
        let period = match budget.cycle {
            Cycle::Day => "day".to_owned(),
            Cycle::Week => "week".to_owned(),
            Cycle::Month => "month".to_owned(),
            Cycle::Total => "total".to_owned(),
            Cycle::Dates(period) => format!("{} {}", period.from, period.to.yesterday().unwrap_or(period.to)),
        };
        let unit = match budget.limit.unit {
            Unit::Money(currency) => currency.to_string(),
            Unit::GpuHours => "gpu-h".to_owned(),
        };
        let own = budget.zone == *own_zone;
        let percents: Vec<String> = budget.thresholds.iter().map(u32::to_string).collect();
        Some(BudgetDraft {
            name: budget.name.clone(),
            limit: format!("{} {unit}", budget.limit.amount.normalize()),
            period,
            scope_kind,
            scope,
            thresholds: percents.join(", "),
            forecast: budget.forecast.map(|percent| percent.to_string()).unwrap_or_default(),
            zone: budget.zone.iana_name().filter(|_| !own).unwrap_or_default().to_owned(),
        })
    }
}

fn label_text(label: &LabelPattern) -> String {
    label.value.as_ref().map_or_else(|| label.key.clone(), |value| format!("{}={value}", label.key))
}
