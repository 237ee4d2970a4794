//! The help: every binding of the table, the signs, and what the program has to say about itself.

use ratatui::layout::Rect;

use super::format;
use super::paint::{Paint, Runs, dim, plain, run, wrap};
use super::popup::{self, Border, labelled};
use super::scene::Scene;
use super::text::{Language, Word};
use super::theme::Role;
use crate::app::keymap::{Binding, Place};
use crate::rules::filter::{EXAMPLES, Flag, Key, Quantity};
use crate::rules::usage::Verdict;

const WIDTH: u16 = 86;
/// Cells of the keys and labels.
const KEYS: u16 = 12;

/// Returns the first line that is shown.
pub fn paint(paint: &mut Paint, scene: &Scene, room: Rect, scroll: u16) -> u16 {
    let language = scene.look.language;
    let width = WIDTH.min(room.width.saturating_sub(2));
    let inside = width.saturating_sub(6);
    let mut lines = notices(scene, inside);
    for (place, word) in [
        (Place::Fleet, Word::Fleet),
        (Place::Lists, Word::InLists),
        (Place::Spend, Word::Spend),
        (Place::Budgets, Word::Budgets),
        (Place::Alerts, Word::Alerts),
        (Place::Activity, Word::Activity),
        (Place::Popup, Word::InThePopup),
        (Place::Plan, Word::InAPlan),
        (Place::Everywhere, Word::Everywhere),
    ] {
        let bindings: Vec<&Binding> = scene
            .state
            .view
            .fixed
            .keys
            .all()
            .iter()
            .filter(|binding| binding.place == place && !binding.keys.is_empty())
            .collect();
        if bindings.is_empty() {
            continue;
        }
        if !lines.is_empty() {
            lines.push(Runs::new());
        }
        lines.push(vec![run(language.word(word), Role::Strong)]);
        lines.extend(bindings.into_iter().flat_map(|binding| binding_lines(scene, binding, inside)));
    }
    lines.push(Runs::new());
    lines.push(vec![run(language.word(Word::FilterHelp), Role::Strong)]);
    lines.extend(filters(scene, inside));
    lines.push(Runs::new());
    lines.push(vec![run(language.word(Word::Signs), Role::Strong)]);
    lines.extend(signs(scene, inside));
    let keys = popup::key("esc", language.word(Word::Close));
    let border = Border { title: language.word(Word::Help).to_owned(), keys, ..Border::default() };
    popup::scrolled(paint, room, width, &lines, scroll, border)
}

fn binding_lines(scene: &Scene, binding: &Binding, width: u16) -> Vec<Runs> {
    let keys: Vec<String> = binding.keys.iter().map(|key| scene.shown_key(*key)).collect();
    let keys = keys.join(" ");
    let pad = KEYS.saturating_sub(format::width(&keys)).max(1);
    let line =
        vec![run(format!("{keys}{}", " ".repeat(usize::from(pad))), Role::Accent), plain(scene.message(&binding.help))];
    wrap(&line, width, KEYS)
}

/// What a filter can ask, by its words and by examples.
fn filters(scene: &Scene, width: u16) -> Vec<Runs> {
    let language = scene.look.language;
    let spoken = match language {
        Language::English => 0,
        Language::Chinese => 1,
    };
    let words = Flag::ALL.map(|flag| flag.names()[spoken].to_owned());
    let keys = Key::ALL.map(|key| format!("{}:", key.names()[spoken]));
    let amounts = Quantity::ALL.map(|quantity| quantity.example().to_owned());
    let examples: Vec<String> = EXAMPLES.iter().map(|example| (*example).to_owned()).collect();
    [
        (Word::FilterWords, words.as_slice()),
        (Word::FilterKeys, keys.as_slice()),
        (Word::FilterAmounts, amounts.as_slice()),
        (Word::FilterExamples, examples.as_slice()),
    ]
    .into_iter()
    .flat_map(|(word, texts)| in_columns(language.word(word), texts, width))
    .collect()
}

/// A label and texts beside it, none of them broken where it can be helped.
fn in_columns(label: &str, texts: &[String], width: u16) -> Vec<Runs> {
    let mut lines: Vec<String> = vec![String::new()];
    let room = width.saturating_sub(KEYS);
    for text in texts {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            line.push_str(text);
        } else if format::width(line) + 2 + format::width(text) <= room {
            line.push_str("  ");
            line.push_str(text);
        } else {
            lines.push(text.clone());
        }
    }
    let labels = std::iter::once(label).chain(std::iter::repeat(""));
    labels.zip(lines).flat_map(|(label, line)| wrap(&labelled(label, KEYS, vec![plain(line)]), width, KEYS)).collect()
}

/// Every sign with its word.
fn signs(scene: &Scene, width: u16) -> Vec<Runs> {
    use providers::model::Phase;
    let (glyphs, language) = (scene.look.glyphs, scene.look.language);
    let phases = [
        Phase::Running,
        Phase::Provisioning,
        Phase::Stopping,
        Phase::Stopped,
        Phase::Reclaimed,
        Phase::Unreachable,
        Phase::Failed,
        Phase::Unknown,
        Phase::Gone,
    ];
    let mut pairs: Vec<(&str, &str)> =
        phases.into_iter().map(|phase| (glyphs.phase(phase), language.phase(phase))).collect();
    let verdict = |verdict| language.verdict(verdict).unwrap_or_default();
    let little =
        format!("{}{}{}", verdict(Verdict::Underused), language.word(Word::ListComma), verdict(Verdict::Waiting));
    pairs.insert(1, (glyphs.idle, verdict(Verdict::Idle)));
    pairs.insert(2, (glyphs.underused, &little));
    pairs.push((glyphs.needs_you, language.word(Word::NeedsYou)));
    pairs.push(("s", language.word(Word::Spot)));
    pairs.push(("p", language.word(Word::Protected)));
    pairs.push(("~", language.word(Word::Estimated)));
    let [billed, counted, _] = glyphs.evidence;
    pairs.push((billed, language.word(Word::BilledByProvider)));
    pairs.push((counted, language.word(Word::CountedByUs)));
    pairs.push(("?", language.word(Word::MayBeCharged)));
    pairs.push(("+", language.word(Word::PartUnknown)));
    pairs.push((glyphs.dash, language.word(Word::Unknown)));
    let per_line = usize::from((width / 26).max(1));
    pairs
        .chunks(per_line)
        .map(|pairs| {
            let mut line = Runs::new();
            for (sign, word) in pairs {
                let text = format::cut(word, 22, glyphs.ellipsis);
                let pad = 24 - format::width(&text);
                line.push(run(format!("{sign} "), Role::Accent));
                line.push(plain(format!("{text}{}", " ".repeat(usize::from(pad)))));
            }
            line
        })
        .collect()
}

/// What the ledger, the config and the providers' clocks have to say.
pub fn notices(scene: &Scene, width: u16) -> Vec<Runs> {
    let language = scene.look.language;
    let ledger = scene.state.world.ledger_notices.iter().map(|notice| language.ledger_notice(notice));
    let clock = scene.state.world.fleet.clock_off().map(|(account, ahead)| language.clock_off(account, ahead));
    let all: Vec<String> =
        clock.into_iter().chain(ledger).chain(scene.state.view.fixed.notices.iter().cloned()).collect();
    if all.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![vec![run(language.word(Word::Notices), Role::Strong)]];
    for notice in all {
        lines.extend(wrap(&[dim(format!("{} ", scene.look.glyphs.dot)), plain(notice)], width, 2));
    }
    lines
}
