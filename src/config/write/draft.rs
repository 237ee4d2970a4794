//! From the plain texts of a form to what stands in the file.

use std::path::Path;

use jiff::tz::TimeZone;

use super::{BY_HAND, for_a_form};
use crate::config::Config;
use crate::config::budget::SCOPE;
use crate::config::file::{did_you_mean, quote};
use crate::rules::budgets::{Budget, BudgetDraft, FORECAST, THRESHOLDS};

/// What a draft asks for, as it is written in TOML.
pub(super) struct Wanted {
    pub name: String,
    pub limit: String,
    pub period: Period,
    /// The kind of the only condition, and its value.
    pub scope: Option<(&'static str, String)>,
    pub zone: String,
    pub thresholds: String,
    pub forecast: String,
}

/// A period as it is written.
pub(super) enum Period {
    Word(String),
    Dates([String; 2]),
}

impl Wanted {
    pub fn of(draft: &BudgetDraft) -> Result<Self, String> {
        let [kind, scope] = [&draft.scope_kind, &draft.scope].map(|text| text.trim());
        let scope = match SCOPE.iter().find(|known| **known == kind) {
            Some(kind) if scope.is_empty() => return Err(format!("scope: say which {kind}")),
            Some(kind) => Some((*kind, text(scope))),
            None if kind.is_empty() => None,
            None => return Err(format!("scope: {}", did_you_mean(kind, SCOPE, "there are"))),
        };
        Ok(Wanted {
            name: text(draft.name.trim()),
            limit: text(draft.limit.trim()),
            period: period(&draft.period),
            scope,
            zone: draft.zone.trim().to_owned(),
            thresholds: thresholds(&draft.thresholds)?,
            forecast: forecast(&draft.forecast)?,
        })
    }

    /// What it means where `zone` is the config's own. What is referred to is only checked in the whole file.
    pub fn meant(&self, zone: &TimeZone) -> Result<Budget, String> {
        let alone = Config::parse(&self.section("\n"), Path::new("")).map_err(|error| for_a_form(&error))?;
        let read = alone.budgets.into_iter().next().ok_or(BY_HAND)?;
        let zone = if self.zone.is_empty() { zone.clone() } else { read.zone };
        Ok(Budget { zone, ..read })
    }

    /// Its keys with their values, but for those that are as without them.
    pub fn entries(&self) -> Vec<(&'static str, String)> {
        let mut entries =
            vec![("name", self.name.clone()), ("limit", self.limit.clone()), ("period", self.period.value())];
        entries.extend(self.scope.as_ref().map(|scope| ("scope", condition(scope))));
        if !self.zone.is_empty() {
            entries.push(("zone", text(&self.zone)));
        }
        if self.thresholds != percents(&THRESHOLDS) {
            entries.push(("thresholds", self.thresholds.clone()));
        }
        if self.forecast != FORECAST.to_string() {
            entries.push(("forecast", self.forecast.clone()));
        }
        entries
    }

    pub fn section(&self, newline: &str) -> String {
        let lines = self.entries().into_iter().map(|(key, value)| format!("{key} = {value}{newline}"));
        format!("[[budget]]{newline}{}", lines.collect::<String>())
    }
}

impl Period {
    pub fn value(&self) -> String {
        match self {
            Period::Word(word) => text(word),
            Period::Dates([from, to]) => format!("{{ from = {}, to = {} }}", text(from), text(to)),
        }
    }
}

/// One word, or two dates with whatever between them.
fn period(given: &str) -> Period {
    let apart = given.replace("..", " ");
    let words = apart.split(|c: char| c.is_whitespace() || "–—,/、，".contains(c));
    let words: Vec<&str> = words.filter(|word| !word.is_empty() && !["to", "至", "到", "-"].contains(word)).collect();
    match words[..] {
        [from, to] => Period::Dates([from.to_owned(), to.to_owned()]),
        _ => Period::Word(given.trim().to_owned()),
    }
}

fn thresholds(given: &str) -> Result<String, String> {
    let words = given.split(|c: char| c.is_whitespace() || "%,;、，；".contains(c)).filter(|word| !word.is_empty());
    let lines = words.map(|word| percent(word).ok_or_else(|| format!("thresholds: {}", no_percent(word))));
    Ok(percents(&lines.collect::<Result<Vec<u32>, String>>()?))
}

fn forecast(given: &str) -> Result<String, String> {
    let word = given.trim().trim_end_matches('%').trim_end();
    match word {
        "" | "false" => Ok("false".to_owned()),
        _ => percent(word).map(|line| line.to_string()).ok_or_else(|| format!("forecast: {}", no_percent(word))),
    }
}

fn percent(word: &str) -> Option<u32> {
    word.bytes().all(|byte| byte.is_ascii_digit()).then(|| word.parse().ok()).flatten()
}

fn no_percent(word: &str) -> String {
    format!("`{}` is no whole percent", quote(word))
}

fn percents(lines: &[u32]) -> String {
    format!("[{}]", lines.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))
}

pub(super) fn condition((kind, value): &(&'static str, String)) -> String {
    format!("{{ {kind} = {value} }}")
}

/// A text as TOML has it.
pub(super) fn text(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
        c => c.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}
