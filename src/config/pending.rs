//! Sections that are read and checked already, but that nothing acts on yet: a mistake in them shows today
//! and not on the day when they come into force.

use jiff::SignedDuration;

use super::budget::scope;
use super::check::Names;
use super::file::{Section, quote};

pub(super) const NOTIFY: &[&str] = &["name", "kind", "url", "url_env", "from"];
pub(super) const CHECKPOINT: &[&str] = &["name", "match", "paths", "to", "every"];

const KINDS: &[&str] = &["json", "slack", "telegram", "ntfy", "feishu", "dingtalk", "wecom", "desktop", "command"];
/// The kinds that need no address.
const LOCAL_KINDS: &[&str] = &["desktop", "command"];

/// True when the channel's address, which is a secret, stands in the file.
pub(super) fn notify<'d>(section: &Section<'d>, names: &mut Names<'d>) -> bool {
    names.unique(section);
    let kind = section.need("kind").and_then(|node| node.word(KINDS));
    if let Some(node) = section.get("from") {
        node.word(&["any", "watch"]);
    }
    let (url, url_env) = (section.get("url"), section.get("url_env"));
    match (&url, &url_env) {
        (Some(_), Some(second)) => second.refuse_key("two addresses, `url` and `url_env`; a channel has one"),
        (None, None) if kind.is_some_and(|kind| !LOCAL_KINDS.contains(&kind)) => {
            section.refuse("no address: name it with `url_env`, or write it as `url`");
        }
        _ => {}
    }
    if let Some(node) = &url_env {
        super::check::variable(node);
    }
    // Never quoted: whoever knows the address can write to the channel.
    if let Some(node) = &url
        && node.text().is_some_and(|text| !is_safe_address(text))
    {
        node.refuse("not an https address (plain http is for loopback only)");
    }
    url.is_some()
}

fn is_safe_address(text: &str) -> bool {
    let Some((scheme, rest)) = text.trim().split_once("://") else { return false };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    providers::http::base_url(&format!("{scheme}://{host}")).is_ok()
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
