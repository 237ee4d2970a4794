//! `[lease]`: how a timer is armed on an instance itself. Without it none is: there is no command that is right for
//! all, and a shutdown inside many instances goes on being billed.

use super::checkpoint::line;
use super::file::Section;
use crate::rules::lease::Commands;

pub(super) const LEASE: &[&str] = &["on_box", "on_box_check"];

pub(super) fn commands(section: &Section<'_>) -> Commands {
    let command = |key: &str| section.get(key).and_then(|node| line(&node));
    let commands = Commands { arm: command("on_box"), check: command("on_box_check") };
    if let (None, Some(node)) = (&commands.arm, section.get("on_box_check").filter(|_| section.get("on_box").is_none()))
    {
        node.refuse_key("means nothing without `on_box`");
    }
    commands
}
