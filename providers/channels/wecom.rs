//! WeCom's bot of a group: `https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=<uuid>`.
//!
//! Nothing is signed. A text is at most 2048 bytes; 20 a minute. WeCom's guide of group bots, read 2026-11.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::{Open, Reply, Request, Text, Verdict};

pub(super) const MOST_BYTES: usize = 2048;

pub(super) fn request(open: &Open<'_>, text: &Text, _: Timestamp) -> Result<Request, String> {
    let body = json!({ "msgtype": "text", "text": { "content": text.joined(MOST_BYTES) } });
    Ok(Request { address: open.address.clone(), body, bearer: None })
}

pub(super) fn read(reply: &Reply) -> Verdict {
    let Some(code) = reply.number("errcode") else { return reply.by_status() };
    let why = format!("{code}: {}", reply.text("errmsg").unwrap_or_default());
    match code {
        0 if reply.status.is_success() => Ok(()),
        93000 => reply.refused(format!("{why} (the key is wrong, or the bot was taken out of the group)")),
        40008 | 40058 => reply.refused(why),
        45009 => reply.not_before(Some(Duration::from_secs(60)), why),
        _ if reply.status.is_success() => reply.later(why),
        _ => reply.by_status(),
    }
}
