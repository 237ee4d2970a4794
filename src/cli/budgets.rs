//! `rentop budgets`: how the budgets of the config stand, once.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use providers::money::Currency;
use rust_decimal::Decimal;
use serde::Serialize;

use super::look::{stand, told_trouble, visit};
use super::ls::six;
use super::setup::Setup;
use super::spend::listing::local;
use super::table::{Table, print_json};
use super::{Common, Exit, Output, Stop, tell, warn};
use crate::app::alerting::Budgets;
use crate::app::notes::unheard_of;
use crate::rules::budgets::{Budget, Cycle, Quantity, Scope, Standing, Unit};
use crate::runtime::clock;
use crate::ui::text::OfBudgets;

#[derive(Serialize)]
struct Listing {
    schema: &'static str,
    as_of: Timestamp,
    /// In the order of the config.
    budgets: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    name: String,
    scope: Conditions,
    /// day, week, month, total, dates
    period: &'static str,
    timezone: String,
    /// `null` for all time.
    from: Option<String>,
    to: Option<String>,
    limit: String,
    /// money, gpu_hours
    unit: &'static str,
    /// Of money.
    currency: Option<Currency>,
    /// As all amounts below `null` before the books have answered.
    spent: Option<String>,
    /// Of the limit, rounded down.
    percent: Option<u32>,
    estimated: Option<String>,
    /// What was spent in other currencies that nothing joins: in no other amount here.
    apart: Option<Vec<Apart>>,
    burn: Option<String>,
    forecast: Option<String>,
    committed: Option<String>,
    reaches_at: Option<Timestamp>,
    thresholds: Vec<u32>,
    forecast_threshold: Option<u32>,
}

/// All that are given must hold; all are `null` for everything.
#[derive(Serialize)]
struct Conditions {
    provider: Option<String>,
    account: Option<String>,
    project: Option<String>,
    instance: Option<String>,
    label: Option<String>,
}

#[derive(Serialize)]
struct Apart {
    amount: String,
    currency: Currency,
}

pub fn run(common: &Common, output: Output) -> Result<Exit, Stop> {
    let setup = Setup::read(common)?;
    setup.need_accounts()?;
    let ((), state) = visit(&setup, async |errand| {
        stand(errand).await;
        Ok(())
    })?;
    let listing = Listing::of(&state.world.budgets, clock::now());
    if output.json {
        print_json(&listing)?;
    } else if output.csv {
        listing.spreadsheet().print(output)?;
    } else if listing.budgets.is_empty() {
        tell(format_args!("no budgets: write a [[budget]] into {}", setup.places.config_file.display()));
    } else {
        listing.table(&setup.config.timezone).print(output)?;
    }
    let Budgets { rules, standings, .. } = &state.world.budgets;
    for (at, budget) in rules.iter().enumerate() {
        let standing = standings.get(at).and_then(Option::as_ref);
        if let Some(currency) = unheard_of(&state.world, budget, standing) {
            let note = setup.language.of_budgets(OfBudgets::NothingIn { currency });
            warn(format_args!("rentop: {}: {note}", providers::text::clean(&budget.name)));
        }
    }
    Ok(told_trouble(&setup, &state))
}

impl Listing {
    fn of(budgets: &Budgets, now: Timestamp) -> Self {
        let line = |budget: &Budget| line(budget, budgets.get(&budget.name).and_then(|(_, standing)| standing), now);
        Listing { schema: "rentop.budgets/1", as_of: now, budgets: budgets.rules.iter().map(line).collect() }
    }

    /// For people.
    fn table(&self, zone: &TimeZone) -> Table {
        let mut table = Table::new(&[
            "NAME",
            "FOR",
            "PERIOD",
            " LIMIT",
            "UNIT",
            " SPENT",
            " %",
            " BURN/H",
            " FORECAST",
            " COMMITTED",
            "REACHED",
        ]);
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "—".to_owned());
        let short = |amount: &Option<String>| or_dash(amount.as_deref().map(two_places));
        for line in &self.budgets {
            let beyond = line.apart.iter().flatten().next().map_or("", |_| " +");
            table.row(vec![
                line.name.clone(),
                line.scope.told(),
                line.period.to_owned(),
                two_places(&line.limit),
                line.unit(),
                format!("{}{beyond}", short(&line.spent)),
                or_dash(line.percent.map(|percent| percent.to_string())),
                short(&line.burn),
                short(&line.forecast),
                short(&line.committed),
                or_dash(line.reaches_at.map(|at| minute(at, zone))),
            ]);
        }
        table
    }

    /// For spreadsheets: plain numbers, and nothing where nothing is known.
    fn spreadsheet(&self) -> Table {
        let mut table = Table::new(&[
            "NAME",
            "SCOPE",
            "PERIOD",
            "FROM",
            "TO",
            " LIMIT",
            "UNIT",
            " SPENT",
            " PERCENT",
            " ESTIMATED",
            " BURN",
            " FORECAST",
            " COMMITTED",
            "REACHES_AT",
        ]);
        let or_empty = |text: &Option<String>| text.clone().unwrap_or_default();
        for line in &self.budgets {
            table.row(vec![
                line.name.clone(),
                line.scope.told(),
                line.period.to_owned(),
                or_empty(&line.from),
                or_empty(&line.to),
                line.limit.clone(),
                line.unit(),
                or_empty(&line.spent),
                line.percent.map(|percent| percent.to_string()).unwrap_or_default(),
                or_empty(&line.estimated),
                or_empty(&line.burn),
                or_empty(&line.forecast),
                or_empty(&line.committed),
                line.reaches_at.map(|at| at.to_string()).unwrap_or_default(),
            ]);
        }
        table
    }
}

impl Line {
    fn unit(&self) -> String {
        self.currency.map_or_else(|| "gpu-h".to_owned(), |currency| currency.to_string())
    }
}

impl Conditions {
    fn of(scope: &Scope) -> Self {
        Conditions {
            provider: scope.provider.as_ref().map(ToString::to_string),
            account: scope.account.as_ref().map(ToString::to_string),
            project: scope.project.clone(),
            instance: scope.instance.as_ref().map(ToString::to_string),
            label: scope.label.as_ref().map(|label| match &label.value {
                Some(value) => format!("{}={value}", label.key),
                None => label.key.clone(),
            }),
        }
    }

    fn told(&self) -> String {
        let Conditions { provider, account, project, instance, label } = self;
        let all =
            [("provider", provider), ("account", account), ("project", project), ("name", instance), ("label", label)];
        let told: Vec<String> =
            all.iter().filter_map(|(kind, value)| Some(format!("{kind}:{}", value.as_ref()?))).collect();
        if told.is_empty() { "all".to_owned() } else { told.join(" ") }
    }
}

/// A moment for people.
pub fn minute(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned_datetime(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string()
}

fn two_places(amount: &str) -> String {
    amount.parse::<Decimal>().map_or_else(|_| amount.to_owned(), |amount| format!("{:.2}", amount.round_dp(2)))
}

fn line(budget: &Budget, standing: Option<&Standing>, now: Timestamp) -> Line {
    let Quantity { amount: limit, unit } = budget.limit;
    let term = budget.term(now);
    let figure = |of: fn(&Standing) -> Option<Decimal>| standing.and_then(of).map(six);
    Line {
        name: budget.name.clone(),
        scope: Conditions::of(&budget.scope),
        period: match budget.cycle {
            Cycle::Day => "day",
            Cycle::Week => "week",
            Cycle::Month => "month",
            Cycle::Total => "total",
            Cycle::Dates(_) => "dates",
        },
        timezone: budget.zone.iana_name().unwrap_or("local").to_owned(),
        from: term.first.map(|_| local(term.from, &budget.zone)),
        to: term.to.map(|to| local(to, &budget.zone)),
        limit: six(limit),
        unit: match unit {
            Unit::Money(_) => "money",
            Unit::GpuHours => "gpu_hours",
        },
        currency: match unit {
            Unit::Money(currency) => Some(currency),
            Unit::GpuHours => None,
        },
        spent: figure(|standing| Some(standing.spent)),
        percent: standing.map(|standing| standing.percent(limit)),
        estimated: figure(|standing| Some(standing.estimated)),
        apart: standing.map(|standing| {
            let apart = standing.apart.iter();
            apart.map(|(currency, amount)| Apart { amount: six(*amount), currency: *currency }).collect()
        }),
        burn: figure(|standing| Some(standing.burn)),
        forecast: figure(|standing| standing.forecast),
        committed: figure(|standing| standing.committed),
        reaches_at: standing.and_then(|standing| standing.reaches),
        thresholds: budget.thresholds.clone(),
        forecast_threshold: budget.forecast,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::config::Config;

    const TEXT: &str = "[[budget]]\nname = \"month\"\nlimit = \"1500 USD\"\nperiod = \"month\"\nzone = \"Asia/Shanghai\"\n\
        [[budget]]\nname = \"course\"\nlimit = \"200 gpu-h\"\nperiod = \"total\"\n";

    /// How the first one stands; the books have not answered for the second.
    fn listing() -> Listing {
        let now: Timestamp = "2026-11-28T10:00:00Z".parse().unwrap();
        let rules = Config::parse(TEXT, std::path::Path::new("config.toml")).unwrap().budgets;
        let dec = |text: &str| text.parse::<Decimal>().unwrap();
        let standing = Standing {
            term: rules[0].term(now),
            as_of: now,
            spent: dec("1199.9999999"),
            estimated: dec("0.1"),
            apart: vec![(Currency::CNY, dec("12.50"))],
            burn: dec("21.5474"),
            forecast: Some(dec("2400")),
            committed: None,
            left_running: Vec::new(),
            reaches: Some("2026-11-29T01:00:00Z".parse().unwrap()),
            crossed: Vec::new(),
            by_day: Vec::new(),
        };
        Listing::of(
            &Budgets { rules, standings: vec![Some(standing), None], as_of: Some(now), ..Budgets::default() },
            now,
        )
    }

    #[test]
    fn a_budget_is_told_in_exact_figures_and_what_is_unknown_is_null() {
        let told = serde_json::to_value(listing()).unwrap();
        let [month, course] = [&told["budgets"][0], &told["budgets"][1]];
        let figures = json!({
            "from": "2026-11-01T00:00:00+08:00", "to": "2026-12-01T00:00:00+08:00", "timezone": "Asia/Shanghai",
            "limit": "1500", "unit": "money", "currency": "USD", "spent": "1200", "percent": 79, "estimated": "0.1",
            "apart": [{ "amount": "12.5", "currency": "CNY" }], "burn": "21.5474", "forecast": "2400",
            "committed": null, "reaches_at": "2026-11-29T01:00:00Z",
        });
        for (key, figure) in figures.as_object().unwrap() {
            assert_eq!(&month[key], figure, "{key}");
        }
        let unknown =
            ["from", "to", "currency", "spent", "percent", "estimated", "apart", "burn", "forecast", "committed"];
        for key in unknown {
            assert_eq!(course[key], Value::Null, "{key}");
            assert!(course.get(key).is_some(), "{key} is left out");
        }
    }

    #[test]
    fn a_person_sees_two_places_and_a_dash_for_what_is_unknown() {
        let zone = TimeZone::get("Asia/Shanghai").unwrap();
        let rows = listing().table(&zone).rows().to_vec();
        let month =
            ["month", "all", "month", "1500.00", "USD", "1200.00 +", "79", "21.55", "2400.00", "—", "2026-11-29 09:00"];
        assert_eq!(rows[0], month);
        assert_eq!(rows[1], ["course", "all", "total", "200.00", "gpu-h", "—", "—", "—", "—", "—", "—"]);
    }
}
