//! `[[idle]]`: what counts as work, for all instances or for some.

use jiff::SignedDuration;

use super::check::{Names, matcher_in};
use super::file::{Node, Section, quote};
use crate::rules::settings::{IdleRuleFor, Rules};
use crate::rules::usage::IdleRule;

pub(super) const IDLE: &[&str] =
    &["match", "after", "gpu_percent", "memory_percent", "cpu_percent", "disk_mb_per_s", "network_mb_per_s", "serving"];
pub(super) const MATCH: &[&str] = &["name", "account", "provider", "label", "project"];

const SERVING: &[&str] = &["waiting", "idle"];
/// A day is what is remembered minute by minute.
const LONGEST: SignedDuration = SignedDuration::from_hours(24);
/// A million bytes, as network and disks are counted.
const MEGABYTE: f64 = 1e6;
/// More is no rate of one machine, in MB/s.
const FASTEST: f64 = 1e6;

/// Reads all sections. What one with a `match` does not say is as in the one without.
pub(super) fn rules(sections: &[Section<'_>], names: &Names<'_>, rules: &mut Rules) {
    let (general, special): (Vec<_>, Vec<_>) = sections.iter().partition(|section| section.get("match").is_none());
    if let [first, second, ..] = general[..] {
        second.refuse(format!("{} has no `match` already; give this one a `match`", first.path()));
    }
    if let Some(section) = general.first() {
        rules.idle_default = rule(section, &rules.idle_default);
    }
    rules.idle = special.iter().filter_map(|section| rule_for(section, names, &rules.idle_default)).collect();
}

fn rule_for(section: &Section<'_>, names: &Names<'_>, general: &IdleRule) -> Option<IdleRuleFor> {
    let rule = rule(section, general);
    let conditions = section.get("match")?.section(MATCH)?;
    let matcher = matcher_in(&conditions, names);
    let project = conditions.get("project").and_then(|node| node.text()).map(str::to_owned);
    Some(IdleRuleFor { matcher: matcher?, project, rule })
}

fn rule(section: &Section<'_>, general: &IdleRule) -> IdleRule {
    let read = |key: &str, scale: f64, most: f64, otherwise: f64| {
        let number = section.get(key).and_then(|node| number(&node, most));
        number.map_or(otherwise, |number| number / scale)
    };
    let serving = section.get("serving").and_then(|node| node.word(SERVING));
    IdleRule {
        window: section.get("after").and_then(|node| minutes(&node)).unwrap_or(general.window),
        gpu: read("gpu_percent", 100.0, 100.0, general.gpu),
        memory: read("memory_percent", 100.0, 100.0, general.memory),
        cpu: read("cpu_percent", 100.0, 100.0, general.cpu),
        disk: read("disk_mb_per_s", 1.0 / MEGABYTE, FASTEST, general.disk),
        network: read("network_mb_per_s", 1.0 / MEGABYTE, FASTEST, general.network),
        serving_is_idle: serving.map_or(general.serving_is_idle, |word| word == "idle"),
    }
}

/// A number of 0 to `most`.
fn number(node: &Node<'_>, most: f64) -> Option<f64> {
    let number = node.number()?;
    if !(0.0..=most).contains(&number) {
        node.refuse(format!("`{number}` is not from 0 to {most}"));
        return None;
    }
    Some(number)
}

/// Whole minutes, of which there is at least one.
fn minutes(node: &Node<'_>) -> Option<u32> {
    let text = node.text()?;
    let span = text.parse::<SignedDuration>().ok().filter(|span| {
        let whole = span.as_secs() % 60 == 0 && span.subsec_nanos() == 0;
        whole && (SignedDuration::from_mins(1)..=LONGEST).contains(span)
    });
    let minutes = span.and_then(|span| u32::try_from(span.as_mins()).ok());
    if minutes.is_none() {
        node.refuse(format!("`{}` is no time span of whole minutes from \"1m\" to \"24h\"", quote(text)));
    }
    minutes
}
