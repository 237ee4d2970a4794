//! DingTalk's bot of a group: `https://oapi.dingtalk.com/robot/send?access_token=<token>`.
//!
//! Signed, where the bot wants it, with the time in milliseconds: the secret is the key, the text `<time>\n<secret>` the
//! message, and both time and signature stand in the query. A body is at most 20 000 bytes; 20 a minute, then nothing for
//! ten minutes. DingTalk's guide of custom bots, read 2026-11.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use serde_json::json;
use sha2::Sha256;

use super::{Open, Reply, Request, Text, Verdict, json_bytes};

/// Of the 20 000 of a body, what is left beside its frame.
pub(super) const MOST_BYTES: usize = 19_500;
/// So long nothing is taken after too much.
const BLOCKED: Duration = Duration::from_secs(600);

pub(super) fn request(open: &Open<'_>, text: &Text, at: Timestamp) -> Result<Request, String> {
    let body = json!({
        "msgtype": "text",
        "text": { "content": text.fitting(MOST_BYTES, json_bytes) },
        "at": { "isAtAll": false },
    });
    let mut address = open.address.clone();
    if let Some(secret) = open.secret {
        let time = at.as_millisecond();
        // Encoded once, and here.
        address.query_pairs_mut().append_pair("timestamp", &time.to_string()).append_pair("sign", &sign(secret, time));
    }
    Ok(Request { address, body, bearer: None })
}

fn sign(secret: &str, milliseconds: i64) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes a key of any length");
    mac.update(format!("{milliseconds}\n{secret}").as_bytes());
    STANDARD.encode(mac.finalize().into_bytes())
}

pub(super) fn read(reply: &Reply) -> Verdict {
    let Some(code) = reply.number("errcode") else { return reply.by_status() };
    let why = format!("{code}: {}", reply.text("errmsg").unwrap_or_default());
    match code {
        0 if reply.status.is_success() => Ok(()),
        310000 => reply.refused(format!("{why} (a security setting of the bot: keyword, secret or address)")),
        // 40035 and 400101, a body that it does not like: UNSURE.
        300001 | 40035 | 400101..=400199 => reply.refused(why),
        // 410100 is the newer word for it: UNSURE.
        130101 | 410100 => reply.not_before(Some(BLOCKED), why),
        _ if reply.status.is_success() => reply.later(why),
        _ => reply.by_status(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "SECfake0000000000000000000000000000000000000000000000000000000000";

    /// Checked with openssl.
    #[test]
    fn the_secret_is_the_key() {
        assert_eq!(sign(SECRET, 1_767_323_045_000), "D8IBOn3IUqtS7iBwGeJQ1zSpokrgjjZR2ZDwzkAYIUg=");
    }

    #[test]
    fn the_signature_is_encoded_once() {
        let address = "https://oapi.dingtalk.com/robot/send?access_token=fake".parse().unwrap();
        let text = Text {
            title: "t".to_owned(),
            lines: Vec::new(),
            weight: super::super::Weight::Note,
            record: serde_json::Value::Null,
        };
        let at = Timestamp::from_millisecond(1_767_323_045_000).unwrap();
        let request = request(&Open { address, secret: Some(SECRET), to: None }, &text, at).unwrap();
        assert_eq!(
            request.address.query(),
            Some("access_token=fake&timestamp=1767323045000&sign=D8IBOn3IUqtS7iBwGeJQ1zSpokrgjjZR2ZDwzkAYIUg%3D")
        );
    }
}
