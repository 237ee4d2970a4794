//! `[[guard]]`: what is proposed, or done, by itself when something has been so for long enough.

use jiff::SignedDuration;
use providers::model::Action;

use super::alerts::hourly;
use super::budget::{percent, scope};
use super::check::Names;
use super::checkpoint::span;
use super::file::{Node, Section, did_you_mean, quote};
use crate::rules::budgets::Scope;
use crate::rules::guard::{COUNTDOWN, Condition, Guard, Mode};

pub(super) const GUARD: &[&str] = &[
    "name",
    "match",
    "on",
    "after",
    "budget",
    "at",
    "above",
    "below",
    "action",
    "mode",
    "countdown",
    "screen",
    "veto_label",
];

/// What a guard is called for by, each with the keys that say when.
const CONDITIONS: [(&str, &[&str]); 4] =
    [("idle", &["after"]), ("budget", &["budget", "at"]), ("burn", &["above"]), ("runway", &["below"])];
const ACTIONS: &[&str] = &["stop", "release"];
const MODES: &[&str] = &["propose", "enforce"];
/// Of a budget, in percent, where the config does not say.
const ALL_OF_IT: u32 = 100;
/// A warning that nobody could read is none.
const SHORTEST_COUNTDOWN: SignedDuration = SignedDuration::from_secs(5);
const LONGEST: SignedDuration = SignedDuration::from_hours(31 * 24);
/// A machine that stands still for a moment is not idle.
const SHORTEST_IDLE: SignedDuration = SignedDuration::from_mins(1);

/// Reads one guard; `budgets` are the names that it may refer to.
pub(super) fn guard<'d>(section: &Section<'d>, names: &mut Names<'d>, budgets: &[&str]) -> Option<Guard> {
    let name = names.unique(section);
    let scope = section.get("match").map_or_else(|| Some(Scope::default()), |node| scope(&node, names));
    let on = condition(section, budgets);
    let action = section.need("action").and_then(|node| node.word(ACTIONS)).map(|word| match word {
        "stop" => Action::Stop,
        _ => Action::Release,
    });
    let mode = section.need("mode").and_then(|node| node.word(MODES)).map(|word| match word {
        "propose" => Mode::Propose,
        _ => Mode::Enforce,
    });
    let countdown = section.get("countdown").map_or(Some(COUNTDOWN), |node| span(&node, SHORTEST_COUNTDOWN, LONGEST));
    let on_screen = section.get("screen").map_or(Some(false), |node| node.flag());
    let veto_label = section.get("veto_label").map_or(Some(None), |node| label(&node).map(Some));
    Some(Guard {
        name: name?.to_owned(),
        scope: scope?,
        on: on?,
        action: action?,
        mode: mode?,
        countdown: countdown?,
        on_screen: on_screen?,
        veto_label: veto_label?,
    })
}

/// When it is called for, with all that this needs and nothing that it does not.
fn condition(section: &Section<'_>, budgets: &[&str]) -> Option<Condition> {
    let words = CONDITIONS.map(|(word, _)| word);
    let word = section.need("on").and_then(|node| node.word(&words))?;
    for (_, keys) in CONDITIONS.iter().filter(|(other, _)| *other != word) {
        for node in keys.iter().filter_map(|key| section.get(key)) {
            node.refuse_key(format!("means nothing for a guard on `{word}`"));
        }
    }
    match word {
        "idle" => {
            let after = section.need("after").and_then(|node| span(&node, SHORTEST_IDLE, LONGEST))?;
            Some(Condition::Idle { after })
        }
        "budget" => {
            let name = section.need("budget").and_then(|node| budget(&node, budgets));
            let percent = section.get("at").map_or(Some(ALL_OF_IT), |node| percent(&node));
            Some(Condition::Budget { name: name?, percent: percent? })
        }
        "burn" => {
            let node = section.need("above")?;
            let above = hourly(node.text()?);
            if above.is_none() {
                node.refuse(format!("`{}` is no amount an hour such as \"20 USD\"", quote(node.text()?)));
            }
            Some(Condition::Burn { above: above? })
        }
        _ => {
            let below = section.need("below").and_then(|node| span(&node, SignedDuration::from_mins(1), LONGEST))?;
            Some(Condition::Runway { below })
        }
    }
}

fn budget(node: &Node<'_>, budgets: &[&str]) -> Option<String> {
    let text = node.text()?;
    if budgets.contains(&text) {
        return Some(text.to_owned());
    }
    let hint = match budgets {
        [] => "the config has none".to_owned(),
        known => did_you_mean(text, known, "there are"),
    };
    node.refuse(format!("no budget `{}`; {hint}", quote(text)));
    None
}

fn label(node: &Node<'_>) -> Option<String> {
    let text = node.text()?;
    if text.trim().is_empty() || text.contains('=') {
        node.refuse(format!("`{}` is no label's name, such as \"keep\"", quote(text)));
        return None;
    }
    Some(text.to_owned())
}
