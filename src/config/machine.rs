//! `[[account.machine]]`: machines that no API lists.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, SpanRelativeTo, ToSpan};
use providers::gpu::Gpus;
use providers::model::SshEndpoint;
use providers::money::{Currency, Rate};
use providers::ssh::Machine;
use providers::text::clean;

use super::check::{decimal, name};
use super::file::{Node, Section, quote};

pub(super) const MACHINE: &[&str] =
    &["name", "host", "user", "port", "price", "price_stopped", "gpus", "stop", "release_after_off", "labels"];

/// Reads an account's machines. `wanted` says whether it is an account of such.
pub(super) fn machines(account: &Section<'_>, wanted: bool) -> Vec<Machine> {
    let node = match (account.get("machine"), wanted) {
        (Some(node), true) => node,
        (Some(node), false) => {
            node.refuse_key("only accounts of the provider `ssh` name their machines; the others list them");
            return Vec::new();
        }
        (None, true) => {
            account.refuse("no machine; write an [[account.machine]] below it");
            return Vec::new();
        }
        (None, false) => return Vec::new(),
    };
    let mut names = BTreeSet::new();
    node.sections(MACHINE).iter().filter_map(|section| machine(section, &mut names)).collect()
}

fn machine<'d>(section: &Section<'d>, names: &mut BTreeSet<&'d str>) -> Option<Machine> {
    let own_name = section.need("name").and_then(|node| {
        let name = name(&node)?;
        if !names.insert(name) {
            node.refuse(format!("`{name}` is the name of another machine of this account"));
        }
        Some(name)
    });
    let endpoint = endpoint(section);
    let rate = |key: &str| section.get(key).and_then(|node| price(&node));
    let (running, stopped) = (rate("price"), rate("price_stopped"));
    let gpus = section.get("gpus").and_then(|node| node.text()).map(|text| Gpus::parse(text, None, None));
    let stop = section.get("stop").and_then(|node| node.text()).map(str::to_owned);
    let release_after_off = section.get("release_after_off").and_then(|node| span(&node));
    let labels = section.get("labels").and_then(|node| node.free_section()).map(|table| labels(&table));
    Some(Machine {
        name: own_name?.to_owned(),
        endpoint: endpoint?,
        running,
        stopped,
        gpus,
        stop,
        release_after_off,
        labels: labels.unwrap_or_default(),
    })
}

/// What `ssh` is given: only what can be no option and no command.
fn endpoint(section: &Section<'_>) -> Option<SshEndpoint> {
    let user = section.get("user").map(|node| (node.text().map(str::to_owned), node));
    let port = section.get("port").map(|node| (port(&node), node));
    let node = section.need("host")?;
    let host = node.text()?;
    if SshEndpoint::of_config(host, None, None).is_none() {
        node.refuse(format!("`{}` is no name of a host or of a `Host` of your ssh config", quote(host)));
        return None;
    }
    let user = match user {
        Some((user, node)) => {
            let user = user?;
            if SshEndpoint::of_config(host, Some(&user), None).is_none() {
                node.refuse(format!("`{}` is no name of a user", quote(&user)));
                return None;
            }
            Some(user)
        }
        None => None,
    };
    let port = match port {
        Some((port, _)) => Some(port?),
        None => None,
    };
    SshEndpoint::of_config(host, user.as_deref(), port)
}

fn port(node: &Node<'_>) -> Option<u16> {
    let number = node.number()?;
    if number.fract() != 0.0 || !(1.0..=65535.0).contains(&number) {
        node.refuse(format!("`{number}` is no port from 1 to 65535"));
        return None;
    }
    Some(number as u16)
}

/// `"1.98 CNY"`: what an hour costs.
fn price(node: &Node<'_>) -> Option<Rate> {
    let text = node.text()?;
    let words: Vec<&str> = text.split_whitespace().collect();
    let rate = match words[..] {
        [amount, currency] => decimal(amount)
            .zip(Currency::parse(currency))
            .and_then(|(amount, currency)| Rate::per_hour(amount, currency)),
        _ => None,
    };
    if rate.is_none() {
        node.refuse(format!("`{}` is no price of an hour such as \"1.98 CNY\"", quote(text)));
    }
    rate
}

/// A time span in which a day has 24 hours.
fn span(node: &Node<'_>) -> Option<SignedDuration> {
    let text = node.text()?;
    let days = SpanRelativeTo::days_are_24_hours();
    let span = text.parse::<jiff::Span>().ok().and_then(|span| span.to_duration(days).ok());
    let span = span.filter(|span| span.is_positive() && *span <= 366.days().to_duration(days).unwrap_or_default());
    if span.is_none() {
        node.refuse(format!("`{}` is no time span of up to a year such as \"15d\"", quote(text)));
    }
    span
}

fn labels(table: &Section<'_>) -> BTreeMap<String, String> {
    table.entries().filter_map(|(key, node)| Some((clean(key), clean(node.any_text()?)))).collect()
}
