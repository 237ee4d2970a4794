//! Sections that are read and checked already, but that nothing acts on yet: a mistake in them shows today
//! and not on the day when they come into force.

use jiff::SignedDuration;

use super::budget::scope;
use super::check::Names;
use super::file::{Section, quote};

pub(super) const CHECKPOINT: &[&str] = &["name", "match", "paths", "to", "every"];

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
