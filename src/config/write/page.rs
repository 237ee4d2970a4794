//! The text of a config, cut at the places that the parser tells.

use std::borrow::Cow;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::draft::{Period, Wanted, condition, text};
use super::{BY_HAND, SEVERAL};
use crate::rules::budgets::Budget;

/// A piece of a text, and what stands there instead.
pub(super) type Edit = (Range<usize>, String);

/// The text of a config, without a byte-order mark.
pub(super) struct Page<'t> {
    pub text: &'t str,
    pub newline: &'static str,
}

impl Page<'_> {
    /// The text with its edits, of which no two overlap.
    pub fn with(&self, mut edits: Vec<Edit>) -> String {
        // Those at one place stay in the order in which they were asked for.
        edits.sort_by_key(|(place, _)| (place.start, place.end));
        let mut changed = String::new();
        let mut at = 0;
        for (place, instead) in edits {
            changed.push_str(&self.text[at..place.start.max(at)]);
            changed.push_str(&instead);
            at = place.end.max(at);
        }
        changed.push_str(&self.text[at..]);
        changed
    }

    /// A new budget, behind all else.
    pub fn add(&self, table: &DeTable<'_>, wanted: &Wanted) -> Vec<Edit> {
        let budgets = table.get("budget").and_then(|value| Some((value, value.get_ref().as_array()?)));
        let inline = || {
            let entries = wanted.entries().into_iter().map(|(key, value)| format!("{key} = {value}"));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        };
        match budgets.map(|(value, list)| (value, list.iter().last())) {
            Some((value, None)) => return vec![(value.span(), format!("[{}]", inline()))],
            Some((_, Some(last))) if self.is_literal(last) => {
                let end = last.span().end;
                return vec![(end..end, format!(", {}", inline()))];
            }
            _ => {}
        }
        let (end, newline) = (self.text.len(), self.newline);
        let gap = match self.text {
            "" => String::new(),
            text if text.ends_with('\n') => newline.to_owned(),
            _ => newline.repeat(2),
        };
        vec![(end..end, format!("{gap}{}", wanted.section(newline)))]
    }

    /// Changes what is to be something else in the budget that is there.
    pub fn change(
        &self,
        table: &DeTable<'_>,
        wanted: &Wanted,
        old: &Budget,
        new: &Budget,
    ) -> Result<Vec<Edit>, String> {
        let budgets = table.get("budget").and_then(|value| value.get_ref().as_array());
        let of_name = |value: &&Spanned<DeValue<'_>>| {
            let name = value.get_ref().as_table().and_then(|section| section.get("name"));
            name.and_then(|name| name.get_ref().as_str()) == Some(old.name.as_str())
        };
        let value = budgets.and_then(|list| list.iter().find(of_name)).ok_or(BY_HAND)?;
        let section =
            Written { page: self, table: value.get_ref().as_table().ok_or(BY_HAND)?, inline: self.is_literal(value) };
        let mut edits = Vec::new();
        if old.name != new.name {
            edits.push(section.set("name", wanted.name.clone())?);
        }
        if old.limit != new.limit {
            edits.push(section.set("limit", wanted.limit.clone())?);
        }
        if old.cycle != new.cycle {
            edits.extend(section.set_period(&wanted.period)?);
        }
        if old.scope != new.scope {
            edits.extend(section.set_scope(wanted.scope.as_ref())?);
        }
        if old.zone != new.zone && wanted.zone.is_empty() {
            edits.extend(section.take_out("zone")?);
        } else if old.zone != new.zone {
            edits.push(section.set("zone", text(&wanted.zone))?);
        }
        if old.thresholds != new.thresholds {
            edits.push(section.set("thresholds", wanted.thresholds.clone())?);
        }
        if old.forecast != new.forecast {
            edits.push(section.set("forecast", wanted.forecast.clone())?);
        }
        Ok(edits)
    }

    /// The value is written in one piece, and not by headers or by dotted keys.
    fn is_literal(&self, value: &Spanned<DeValue<'_>>) -> bool {
        let written = &self.text[value.span()];
        match value.get_ref() {
            DeValue::Table(_) => written.starts_with('{'),
            _ => true,
        }
    }
}

/// A budget that stands in a file.
struct Written<'p> {
    page: &'p Page<'p>,
    table: &'p DeTable<'p>,
    /// In braces, and not below a header.
    inline: bool,
}

impl Written<'_> {
    fn find(&self, key: &str) -> Option<(&Spanned<Cow<'_, str>>, &Spanned<DeValue<'_>>)> {
        self.table.get_key_value(key)
    }

    /// Another value; the key comes after the limit where it is not there yet.
    fn set(&self, key: &str, value: String) -> Result<Edit, String> {
        if let Some((_, written)) = self.find(key) {
            return if self.page.is_literal(written) { Ok((written.span(), value)) } else { Err(BY_HAND.to_owned()) };
        }
        let (limit, written) = self.find("limit").ok_or(BY_HAND)?;
        let end = written.span().end;
        if self.inline {
            return Ok((end..end, format!(", {key} = {value}")));
        }
        let text = self.page.text;
        let before = text[..limit.span().start].rsplit('\n').next().unwrap_or_default();
        let end = end + text[end..].find(['\r', '\n']).unwrap_or(text.len() - end);
        Ok((end..end, format!("{}{before}{key} = {value}", self.page.newline)))
    }

    fn set_period(&self, period: &Period) -> Result<Vec<Edit>, String> {
        let dates = self.find("period").and_then(|(_, value)| value.get_ref().as_table());
        if let (Some(dates), Period::Dates([from, to])) = (dates, period)
            && let (Some(old_from), Some(old_to)) = (dates.get("from"), dates.get("to"))
        {
            return Ok(vec![(old_from.span(), text(from)), (old_to.span(), text(to))]);
        }
        Ok(vec![self.set("period", period.value())?])
    }

    fn set_scope(&self, scope: Option<&(&'static str, String)>) -> Result<Vec<Edit>, String> {
        let Some((_, written)) = self.find("scope") else {
            return scope.map(|scope| self.set("scope", condition(scope))).into_iter().collect();
        };
        let conditions = written.get_ref().as_table().ok_or(BY_HAND)?;
        let same_kind = scope.and_then(|(kind, value)| Some((conditions.get(*kind)?, value)));
        if let Some((old, value)) = same_kind {
            return Ok(vec![(old.span(), value.clone())]);
        }
        let mut all = conditions.iter();
        match (all.next(), all.next(), scope) {
            (Some(_), Some(_), _) => Err(SEVERAL.to_owned()),
            (Some((key, value)), None, Some((kind, new))) => {
                Ok(vec![(key.span(), (*kind).to_owned()), (value.span(), new.clone())])
            }
            (Some(_), None, None) if self.page.is_literal(written) => Ok(self.take_out("scope")?.into_iter().collect()),
            (Some((key, _)), None, None) => {
                let below = Written { page: self.page, table: conditions, inline: false };
                Ok(below.take_out(key.get_ref())?.into_iter().collect())
            }
            (None, _, Some(scope)) => Ok(vec![self.set("scope", condition(scope))?]),
            (None, _, None) => Ok(Vec::new()),
        }
    }

    /// Takes a key out with its value. What is said of it in comments stays.
    fn take_out(&self, key: &str) -> Result<Option<Edit>, String> {
        let Some((key, value)) = self.find(key) else { return Ok(None) };
        let text = self.page.text;
        let (start, end) = (key.span().start, value.span().end);
        if self.inline {
            let after = text[end..].trim_start();
            if let Some(rest) = after.strip_prefix(',') {
                return Ok(Some((start..text.len() - rest.trim_start().len(), String::new())));
            }
            let before = text[..start].trim_end().strip_suffix(',').ok_or(BY_HAND)?;
            return Ok(Some((before.len()..end, String::new())));
        }
        let rest = text[end..].trim_start_matches([' ', '\t']);
        if rest.starts_with('#') {
            return Ok(Some((start..text.len() - rest.len(), String::new())));
        }
        let line = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let next = text[end..].find('\n').map_or(text.len(), |at| end + at + 1);
        Ok(Some((line..next, String::new())))
    }
}
