//! `[[budget]]`: a limit of spending or use.

use jiff::ToSpan;
use jiff::tz::TimeZone;
use providers::model::ProviderName;

use super::check::{Names, check_account, check_provider, timezone};
use super::file::{Node, Section, quote};
use crate::rules::budgets::{self, Budget, Cycle, FORECAST, NoLimit, Quantity, Scope, THRESHOLDS};
use crate::rules::matcher::{Glob, LabelPattern};
use crate::rules::spend::Period;

pub(super) const BUDGET: &[&str] = &["name", "limit", "period", "scope", "zone", "thresholds", "forecast"];
pub(super) const PERIOD: &[&str] = &["from", "to"];
pub(super) const SCOPE: &[&str] = &["project", "provider", "account", "instance", "label"];

const PERIODS: &[&str] = &["day", "week", "month", "total"];
/// How a limit of hours is written.
pub(super) const GPU_HOURS: &str = "gpu-h";
/// Of a limit, in percent: more is no line that anybody would wait for.
const HIGHEST: u32 = 1000;

/// Reads one budget; without a zone of its own it counts in the config's.
pub(super) fn budget<'d>(section: &Section<'d>, names: &mut Names<'d>, zone: &TimeZone) -> Option<Budget> {
    let name = names.unique(section);
    let limit = section.need("limit").and_then(|node| limit(&node));
    let cycle = section.need("period").and_then(|node| cycle(&node));
    let scope = section.get("scope").map_or_else(|| Some(Scope::default()), |node| scope(&node, names));
    let zone = section.get("zone").map_or_else(|| Some(zone.clone()), |node| timezone(&node));
    let thresholds = section.get("thresholds").map_or_else(|| Some(THRESHOLDS.to_vec()), |node| thresholds(&node));
    let forecast = section.get("forecast").map_or(Some(Some(FORECAST)), |node| forecast(&node));
    Some(Budget {
        name: name?.to_owned(),
        scope: scope?,
        cycle: cycle?,
        limit: limit?,
        zone: zone?,
        thresholds: thresholds?,
        forecast: forecast?,
    })
}

fn limit(node: &Node<'_>) -> Option<Quantity> {
    let text = node.text()?;
    let why = match budgets::limit(text, None) {
        Ok(limit) => return Some(limit),
        Err(why) => why,
    };
    let quoted = quote(text);
    node.refuse(match why {
        NoLimit::NoUnit => format!("`{quoted}` has no unit; write \"{quoted} USD\", or \"{quoted} {GPU_HOURS}\""),
        NoLimit::DecimalComma => {
            format!("`{quoted}`: a comma parts thousands, as in \"1,500 USD\"; decimals begin with a point, as in \"0.5 USD\"")
        }
        NoLimit::Unreadable => format!("`{quoted}` is no limit such as \"1500 USD\" or \"200 {GPU_HOURS}\""),
    });
    None
}

fn cycle(node: &Node<'_>) -> Option<Cycle> {
    if !node.is_table() {
        return node.word(PERIODS).map(|word| match word {
            "day" => Cycle::Day,
            "week" => Cycle::Week,
            "month" => Cycle::Month,
            _ => Cycle::Total,
        });
    }
    let section = node.section(PERIOD)?;
    let (from, to) = (section.need("from"), section.need("to"));
    let (first, last) = (from.and_then(|node| node.date()), to.as_ref().and_then(|node| node.date()));
    let (first, last) = (first?, last?);
    if last < first {
        to?.refuse(format!("{last} is before {first}"));
        return None;
    }
    Some(Cycle::Dates(Period { from: first, to: last.saturating_add(1.day()) }))
}

/// What a budget, a checkpoint or a guard is for; all conditions that are given must hold.
pub(super) fn scope(node: &Node<'_>, names: &Names<'_>) -> Option<Scope> {
    let section = node.section(SCOPE)?;
    let provider = section.get("provider").map(|node| check_provider(&node, names.registry));
    let account = section.get("account").map(|node| check_account(&node, names));
    let project = section.get("project").map(|node| node.text().map(str::to_owned));
    let instance = section.get("instance").map(|node| node.text().map(Glob::new));
    let label = section.get("label").map(|node| {
        let label = LabelPattern::parse(node.text()?);
        if label.is_none() {
            node.refuse("a label pattern is written key=value");
        }
        label
    });
    // A condition that could not be read must not leave a scope that is wider.
    Some(Scope {
        provider: read(provider)?.map(|entry| ProviderName::from(entry.name)),
        account: read(account)?,
        project: read(project)?,
        instance: read(instance)?,
        label: read(label)?,
    })
}

/// `None` when it stands there and could not be read.
fn read<T>(condition: Option<Option<T>>) -> Option<Option<T>> {
    match condition {
        Some(None) => None,
        Some(read) => Some(read),
        None => Some(None),
    }
}

/// Whole percents, rising; none of them when nothing is to be told.
fn thresholds(node: &Node<'_>) -> Option<Vec<u32>> {
    let nodes = node.list()?;
    let lines: Vec<u32> = nodes.iter().map(percent).collect::<Option<_>>()?;
    if let Some(at) = lines.windows(2).position(|pair| pair[0] >= pair[1]) {
        nodes[at + 1].refuse(format!("{} comes after {}; they rise", lines[at + 1], lines[at]));
        return None;
    }
    Some(lines)
}

pub(super) fn percent(node: &Node<'_>) -> Option<u32> {
    let number = node.number()?;
    let whole = (1..=HIGHEST).find(|whole| f64::from(*whole) == number);
    if whole.is_none() {
        node.refuse(format!("`{number}` is no whole percent from 1 to {HIGHEST}"));
    }
    whole
}

/// A percent, or `false` when a forecast is not to be told.
fn forecast(node: &Node<'_>) -> Option<Option<u32>> {
    match node.is_flag() {
        true if node.flag()? => {
            node.refuse(format!("expected a whole percent such as {FORECAST}, or false"));
            None
        }
        true => Some(None),
        false => percent(node).map(Some),
    }
}
