//! Sections that are read and checked already, but that nothing acts on yet: a mistake in them shows today
//! and not on the day when they come into force.

use jiff::SignedDuration;
use jiff::civil::Time;
use providers::money::Currency;

use super::check::{Names, check_account, check_provider, decimal};
use super::file::{Node, Section, quote};

pub(super) const BUDGET: &[&str] = &["name", "limit", "period", "scope"];
pub(super) const PERIOD: &[&str] = &["from", "to"];
pub(super) const SCOPE: &[&str] = &["project", "provider", "account", "instance", "label"];
pub(super) const CHECKPOINT: &[&str] = &["name", "match", "paths", "to", "every"];

const PERIODS: &[&str] = &["day", "week", "month", "total"];
/// `awake = "08:00-23:00"`: two times of day that differ; the second may be after midnight.
pub(super) fn awake(node: &Node<'_>) {
    let Some(text) = node.text() else { return };
    let time = |text: &str| Time::strptime("%H:%M", text.trim()).ok();
    match text.split_once('-').map(|(from, to)| (time(from), time(to))) {
        Some((Some(from), Some(to))) if from != to => {}
        _ => node.refuse(format!("`{}` is not two times of day such as \"08:00-23:00\"", quote(text))),
    }
}

pub(super) fn budget<'d>(section: &Section<'d>, names: &mut Names<'d>) {
    names.unique(section);
    if let Some(node) = section.need("limit") {
        limit(&node);
    }
    if let Some(node) = section.need("period") {
        period(&node);
    }
    if let Some(node) = section.get("scope") {
        scope(&node, names);
    }
}

fn limit(node: &Node<'_>) {
    let Some(text) = node.text() else { return };
    let words: Vec<&str> = text.split_whitespace().collect();
    let right = match words[..] {
        [amount, unit] => {
            decimal(amount).is_some_and(|amount| amount > 0.into())
                && (unit == "gpu-h" || Currency::parse(unit).is_some())
        }
        _ => false,
    };
    if !right {
        node.refuse(format!("`{}` is no limit such as \"1500 USD\" or \"200 gpu-h\"", quote(text)));
    }
}

fn period(node: &Node<'_>) {
    if !node.is_table() {
        node.word(PERIODS);
        return;
    }
    let Some(section) = node.section(PERIOD) else { return };
    let (from, to) = (section.need("from"), section.need("to"));
    if let (Some(from), Some(to)) = (from, to)
        && let (Some(first), Some(last)) = (from.date(), to.date())
        && last < first
    {
        to.refuse(format!("{last} is before {first}"));
    }
}

/// What a budget or a checkpoint is for; all conditions that are given must hold.
fn scope(node: &Node<'_>, names: &Names<'_>) {
    let Some(section) = node.section(SCOPE) else { return };
    for key in ["project", "instance", "label"] {
        if let Some(node) = section.get(key) {
            node.text();
        }
    }
    if let Some(node) = section.get("provider") {
        check_provider(&node, names.registry);
    }
    if let Some(node) = section.get("account") {
        check_account(&node, names);
    }
}

pub(super) fn checkpoint<'d>(section: &Section<'d>, names: &mut Names<'d>) {
    names.unique(section);
    if let Some(node) = section.get("match") {
        scope(&node, names);
    }
    if let Some(node) = section.need("paths")
        && let Some(paths) = node.list()
    {
        if paths.is_empty() {
            node.refuse("empty; name what is to be copied");
        }
        for node in paths {
            if let Some(path) = node.text()
                && !path.starts_with('/')
            {
                node.refuse(format!("`{}` is no absolute path on the instance", quote(path)));
            }
        }
    }
    if let Some(node) = section.need("to") {
        node.text();
    }
    if let Some(node) = section.get("every")
        && let Some(text) = node.text()
        && !text.parse::<SignedDuration>().is_ok_and(|every| every.is_positive())
    {
        node.refuse(format!("`{}` is no time span such as \"30m\" or \"2h\"", quote(text)));
    }
}
