//! ntfy, of ntfy.sh or a server of one's own: the address is `https://ntfy.sh/<topic>`.
//!
//! The JSON form goes to the root of the server, with the topic in the body: headers would have to be ASCII. The secret,
//! if any, is an access token. Over 4096 bytes a message would become an attachment; 60 at once, then one every 5 s.
//! ntfy's page on publishing, read 2026-11.

use jiff::Timestamp;
use serde_json::json;

use super::{LINE_BYTES, Open, Reply, Request, TITLE_BYTES, Text, Undelivered, Verdict, Weight, cut};

/// Without the title, which has its own place.
pub(super) const MOST_BYTES: usize = 4096 - TITLE_BYTES;

pub(super) fn request(open: &Open<'_>, text: &Text, _: Timestamp) -> Result<Request, String> {
    let mut address = open.address.clone();
    let path = address.path().trim_end_matches('/').to_owned();
    let (folder, topic) = path.rsplit_once('/').unwrap_or_default();
    let word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if topic.is_empty() || !topic.bytes().all(word) {
        return Err("an address of ntfy ends with /<topic>".to_owned());
    }
    address.set_path(&format!("{folder}/"));
    let several = text.lines.len() > 1;
    let line = |line: &String| if several { cut(line, LINE_BYTES).into_owned() } else { line.clone() };
    let message = text.lines.iter().map(line).collect::<Vec<_>>().join("\n");
    let priority = match text.weight {
        Weight::Urgent => 5,
        Weight::Money => 4,
        Weight::Note => 3,
    };
    let body = json!({
        "topic": topic,
        "title": cut(&text.title, TITLE_BYTES),
        "message": cut(&message, MOST_BYTES),
        "priority": priority,
    });
    Ok(Request { address, body, bearer: open.secret.map(str::to_owned) })
}

pub(super) fn read(reply: &Reply) -> Verdict {
    if reply.status.is_success() && reply.text("id").is_some() {
        return Ok(());
    }
    let Some(code) = reply.number("code") else { return reply.by_status() };
    let why = format!("{code}: {}", reply.text("error").unwrap_or_default());
    // The first three digits are the status.
    match code / 100 {
        429 => reply.later(why),
        413 => Err(Undelivered::TooLong { why }),
        400..=499 => reply.refused(why),
        _ => reply.by_status(),
    }
}
