//! `[[checkpoint]]`: what of which machines is brought to safety, how, and how often.

use std::path::Path;

use jiff::SignedDuration;

use super::budget::scope;
use super::check::Names;
use super::file::{Node, Section, quote};
use crate::rules::budgets::Scope;
use crate::rules::checkpoint::paths::{NoPath, of_ours, on_machine};
use crate::rules::checkpoint::{CommandProof, KeepRule, Method, QUIET, Recipe, RecipeRule};

pub(super) const CHECKPOINT: &[&str] =
    &["name", "match", "paths", "to", "every", "method", "prepare", "quiet", "run", "verify", "listing", "keep"];
pub(super) const KEEP: &[&str] = &["last", "days"];

const METHODS: &[&str] = &["copy", "command", "volume"];
/// Files that are to stay as they are for longer would hold up every release.
const LONGEST_QUIET: SignedDuration = SignedDuration::from_hours(1);
/// A machine that is copied from more often does nothing else.
const SHORTEST_EVERY: SignedDuration = SignedDuration::from_mins(1);
/// More copies of a machine are a slip of the finger.
const MOST_KEPT: f64 = 10_000.0;

pub(super) fn checkpoint<'d>(section: &Section<'d>, names: &mut Names<'d>, home: Option<&Path>) -> Option<RecipeRule> {
    let name = names.unique(section);
    let scope = section.get("match").map_or_else(|| Some(Scope::default()), |node| scope(&node, names));
    let paths = section.need("paths").and_then(|node| paths(&node));
    let method = method(section, home);
    let prepare = command(section, "prepare");
    let quiet = section.get("quiet").map_or(Some(QUIET), |node| span(&node, SignedDuration::ZERO, LONGEST_QUIET));
    let every =
        section.get("every").map_or(Some(None), |node| span(&node, SHORTEST_EVERY, SignedDuration::MAX).map(Some));
    let keep = section.get("keep").map_or_else(|| Some(KeepRule::default()), |node| keep(&node));
    let recipe = Recipe { name: name?.to_owned(), paths: paths?, method: method?, prepare: prepare?, quiet: quiet? };
    Some(RecipeRule { recipe, scope: scope?, every: every?, keep: keep? })
}

fn paths(node: &Node<'_>) -> Option<Vec<String>> {
    let nodes = node.list()?;
    if nodes.is_empty() {
        node.refuse("empty; name what is to be brought to safety");
        return None;
    }
    nodes.iter().map(path).collect()
}

fn path(node: &Node<'_>) -> Option<String> {
    let text = node.text()?;
    match machine_path(text) {
        Ok(path) => Some(path),
        Err(wrong) => {
            node.refuse(format!("`{}` {wrong}", quote(text)));
            None
        }
    }
}

/// A path on a machine that can be brought to safety, in its plain form; else what is wrong with it.
pub fn machine_path(text: &str) -> Result<String, &'static str> {
    on_machine(text).map_err(|wrong| match wrong {
        NoPath::NotAbsolute => "is no absolute path on the instance",
        NoPath::LineBreak => "holds a line break",
        NoPath::Dots => "holds `.` or `..`; write where it leads",
        NoPath::WholeDisk => "is the whole disk; name what is worth keeping",
    })
}

/// The method, with all that it needs and nothing that it does not.
fn method(section: &Section<'_>, home: Option<&Path>) -> Option<Method> {
    let word = section.get("method").map_or(Some("copy"), |node| node.word(METHODS))?;
    let of_others: &[&str] = match word {
        "copy" => &["run", "verify", "listing"],
        "command" => &["to"],
        _ => &["to", "run", "verify", "listing"],
    };
    for node in of_others.iter().filter_map(|key| section.get(key)) {
        node.refuse_key(format!("means nothing for the method `{word}`"));
    }
    match word {
        "copy" => Some(Method::Copy { to: section.need("to").and_then(|node| folder(&node, home))? }),
        "command" => {
            let run = section.need("run").and_then(|node| line(&node));
            let proof = match (section.get("verify"), section.get("listing")) {
                (Some(_), Some(listing)) => {
                    listing.refuse_key("stands beside `verify`; one of them is the proof");
                    None
                }
                (Some(verify), None) => line(&verify).map(CommandProof::Verify),
                (None, Some(listing)) => line(&listing).map(CommandProof::Listing),
                (None, None) => {
                    section.refuse("that a command ended well is no proof: add `verify` or `listing`");
                    None
                }
            };
            Some(Method::Command { run: run?, proof: proof? })
        }
        _ => Some(Method::Volume),
    }
}

/// A folder of this machine; `~` is the person's own.
fn folder(node: &Node<'_>, home: Option<&Path>) -> Option<String> {
    let text = node.text()?;
    if let Some(folder) = of_ours(text, home) {
        return Some(folder);
    }
    node.refuse(format!("`{}` is no absolute folder of this machine, nor one below `~`", quote(text)));
    None
}

fn command(section: &Section<'_>, key: &str) -> Option<Option<String>> {
    section.get(key).map_or(Some(None), |node| line(&node).map(Some))
}

pub(super) fn line(node: &Node<'_>) -> Option<String> {
    let text = node.text()?;
    if text.trim().is_empty() {
        node.refuse("empty; leave it out");
        return None;
    }
    Some(text.to_owned())
}

/// A time span within limits.
pub(super) fn span(node: &Node<'_>, from: SignedDuration, to: SignedDuration) -> Option<SignedDuration> {
    let text = node.text()?;
    let span = text.parse::<SignedDuration>().ok().filter(|span| (from..=to).contains(span));
    if span.is_none() {
        let limit = if to == SignedDuration::MAX { String::new() } else { format!(", at most {to:#}") };
        node.refuse(format!("`{}` is no time span such as \"30m\" or \"2h\"{limit}", quote(text)));
    }
    span
}

fn keep(node: &Node<'_>) -> Option<KeepRule> {
    let section = node.section(KEEP)?;
    let usual = KeepRule::default();
    let number = |key, least: f64, usual| match section.get(key) {
        None => Some(usual),
        Some(node) => {
            let number = node.number()?;
            let whole = number.fract() == 0.0 && (least..=MOST_KEPT).contains(&number);
            if !whole {
                node.refuse(format!("`{number}` is no whole number from {least} to {MOST_KEPT}"));
            }
            whole.then_some(number as usize)
        }
    };
    let (last, days) = (number("last", 1.0, usual.last), number("days", 0.0, usual.days));
    Some(KeepRule { last: last?, days: days? })
}
