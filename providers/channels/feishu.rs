//! Feishu's and Lark's bot of a group: `https://open.feishu.cn/open-apis/bot/v2/hook/<token>`.
//!
//! Signed, where the bot wants it, with the time in seconds: the text `<time>\n<secret>` is the key, and the message is
//! empty. A body is at most 20 KB; 100 a minute and 5 a second. The guide of custom bots on open.feishu.cn and its page
//! on rate limits, read 2026-11.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use serde_json::json;
use sha2::Sha256;

use super::{Open, Reply, Request, Text, Verdict, json_bytes};

/// Of the 20 KB of a body, what is left beside its frame.
pub(super) const MOST_BYTES: usize = 19_500;

pub(super) fn request(open: &Open<'_>, text: &Text, at: Timestamp) -> Result<Request, String> {
    // A name must not call anybody: `<at user_id="all">` would.
    let called = |text: &str| text.replace("<at", "< at");
    let text = called(&text.fitting(MOST_BYTES, |text| json_bytes(&called(text))));
    let mut body = json!({ "msg_type": "text", "content": { "text": text } });
    if let Some(secret) = open.secret {
        let time = at.as_second();
        body["timestamp"] = time.to_string().into();
        body["sign"] = sign(secret, time).into();
    }
    Ok(Request { address: open.address.clone(), body, bearer: None })
}

fn sign(secret: &str, seconds: i64) -> String {
    let key = format!("{seconds}\n{secret}");
    let mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).expect("HMAC takes a key of any length");
    STANDARD.encode(mac.finalize().into_bytes())
}

pub(super) fn read(reply: &Reply) -> Verdict {
    // `StatusCode` is what an older version of the interface said.
    let Some(code) = reply.number("code").or_else(|| reply.number("StatusCode")) else { return reply.by_status() };
    let said = reply.text("msg").or_else(|| reply.text("StatusMessage")).unwrap_or_default();
    let why = format!("{code}: {said}");
    match code {
        0 if reply.status.is_success() => Ok(()),
        19021 => reply.refused(format!("{why} (the secret is not the bot's, or this clock is off)")),
        19022 => reply.refused(format!("{why} (the bot takes messages of some addresses only)")),
        19024 => reply.refused(format!("{why} (the bot wants a keyword: make `rentop` one)")),
        // 19001, a wrong token: UNSURE.
        9499 | 19001 | 19036 => reply.refused(why),
        11232 => reply.not_before(Some(Duration::from_secs(5)), why),
        99991400 => reply.later(why),
        _ if reply.status.is_success() => reply.later(why),
        _ => reply.by_status(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checked with openssl.
    #[test]
    fn the_text_is_the_key_and_the_message_is_empty() {
        assert_eq!(sign("FakeFeishuSecret0001", 1_767_323_045), "5zs5ELgS0kaomLKwk+lAZmXmY1BO9ggt4mlv71XoKa4=");
    }
}
