//! Telegram's bots: the address is `https://api.telegram.org/bot<id>:<token>`, or the same of a server of one's own, and
//! `to` names the chat.
//!
//! Without `parse_mode`, since a stray `_` would be a mistake then. 4096 characters; 1 a second and 20 a minute to a
//! group. Telegram's Bot API, read 2026-11.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Open, Reply, Request, Text, Verdict};

/// A character is at least a byte.
pub(super) const MOST_BYTES: usize = 4096;

pub(super) fn request(open: &Open<'_>, text: &Text, _: Timestamp) -> Result<Request, String> {
    let to = open.to.ok_or("`to` is missing: the number of the chat, or @channel")?;
    // A number goes as one.
    let chat = to.parse::<i64>().map_or_else(|_| Value::from(to), Value::from);
    let mut address = open.address.clone();
    let path = address.path().trim_end_matches('/');
    let path = path.strip_suffix("/sendMessage").unwrap_or(path);
    if !path.rsplit('/').next().is_some_and(|last| last.starts_with("bot") && last.contains([':', '%'])) {
        return Err("an address of Telegram ends with /bot<id>:<token>".to_owned());
    }
    let path = format!("{path}/sendMessage");
    address.set_path(&path);
    let body = json!({
        "chat_id": chat,
        "text": text.joined(MOST_BYTES),
        "link_preview_options": { "is_disabled": true },
    });
    Ok(Request { address, body, bearer: None })
}

/// The number that a group has got instead of its own.
pub(super) fn moved_to(reply: &Reply) -> Option<String> {
    reply.json.as_ref()?.pointer("/parameters/migrate_to_chat_id")?.as_i64().map(|id| id.to_string())
}

pub(super) fn read(reply: &Reply) -> Verdict {
    let Some(ok) = reply.json.as_ref().and_then(|json| json.get("ok")?.as_bool()) else { return reply.by_status() };
    if ok && reply.status.is_success() {
        return Ok(());
    }
    let code = reply.number("error_code").unwrap_or_else(|| reply.status.as_u16().into());
    let why = format!("{code}: {}", reply.text("description").unwrap_or_default());
    let asked = reply.json.as_ref().and_then(|json| json.pointer("/parameters/retry_after")?.as_u64());
    match code {
        429 => reply.not_before(asked.map(|seconds| Duration::from_secs(seconds.min(24 * 3600))), why),
        401 | 404 => reply.refused(format!("{why} (the token of the address is wrong)")),
        400 | 403 => reply.refused(why),
        _ => reply.by_status(),
    }
}
