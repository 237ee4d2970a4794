//! `[alerts]` and `awake`: from when on something is worth an alert.

use jiff::civil::Time;
use jiff::{SignedDuration, SpanRelativeTo};
use providers::money::{Currency, Rate};

use super::check::decimal;
use super::file::{Node, Section, quote};
use crate::rules::alerts::{Awake, Limits};

pub(super) const ALERTS: &[&str] =
    &["burn", "runway", "idle", "stopped", "unattached", "ending", "unreachable", "bell"];

/// What switches an alert off.
const OFF: &str = "off";
/// Ten years: whoever writes more meant something else.
const LONGEST: SignedDuration = SignedDuration::from_hours(10 * 365 * 24);

/// Takes over what the section says; what it does not say stays.
pub(super) fn limits(section: &Section<'_>, limits: &mut Limits) {
    if let Some(burn) = section.get("burn").and_then(|node| burn(&node)) {
        limits.burn = burn;
    }
    let times = [
        ("runway", &mut limits.runway),
        ("idle", &mut limits.idle),
        ("stopped", &mut limits.stopped),
        ("unattached", &mut limits.unattached),
        ("ending", &mut limits.ending),
        ("unreachable", &mut limits.unreachable),
    ];
    for (key, limit) in times {
        if let Some(span) = section.get(key).and_then(|node| span(&node)) {
            *limit = span;
        }
    }
    if let Some(bell) = section.get("bell").and_then(|node| node.flag()) {
        limits.bell = bell;
    }
}

/// `"20 USD"` an hour, or `"off"`.
fn burn(node: &Node<'_>) -> Option<Option<Rate>> {
    let text = node.text()?;
    if text == OFF {
        return Some(None);
    }
    let rate = hourly(text);
    if rate.is_none() {
        node.refuse(format!("`{}` is no amount an hour such as \"20 USD\", and not \"{OFF}\"", quote(text)));
    }
    rate.map(Some)
}

/// So much an hour, more than nothing.
pub(super) fn hourly(text: &str) -> Option<Rate> {
    let (amount, currency) = text.split_once(char::is_whitespace)?;
    let amount = decimal(amount).filter(|amount| *amount > 0.into())?;
    Rate::per_hour(amount, Currency::parse(currency.trim())?)
}

/// `"12h"` and the like, or `"off"`.
fn span(node: &Node<'_>) -> Option<Option<SignedDuration>> {
    let text = node.text()?;
    if text == OFF {
        return Some(None);
    }
    let days = SpanRelativeTo::days_are_24_hours();
    let span = text.parse::<jiff::Span>().ok().and_then(|span| span.to_duration(days).ok());
    let span = span.filter(|span| span.is_positive() && *span <= LONGEST);
    if span.is_none() {
        node.refuse(format!("`{}` is no time span such as \"30m\", \"12h\" or \"2d\", and not \"{OFF}\"", quote(text)));
    }
    span.map(Some)
}

/// `awake = "08:00-23:00"`: two times of day that differ; the second may be after midnight.
pub(super) fn awake(node: &Node<'_>) -> Option<Awake> {
    let text = node.text()?;
    let time = |text: &str| Time::strptime("%H:%M", text.trim()).ok();
    let awake = text
        .split_once('-')
        .and_then(|(from, to)| Some(Awake { from: time(from)?, to: time(to)? }))
        .filter(|awake| awake.from != awake.to);
    if awake.is_none() {
        node.refuse(format!("`{}` is not two times of day such as \"08:00-23:00\"", quote(text)));
    }
    awake
}
