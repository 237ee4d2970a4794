//! Slack's incoming webhook: `https://hooks.slack.com/services/T…/B…/…`.
//!
//! Plain text with `&`, `<` and `>` escaped, so that a name calls nobody. About one a second; 40 000 characters.
//! Slack's page on incoming webhooks, read 2026-11.

use jiff::Timestamp;
use serde_json::json;

use super::{Open, Reply, Request, Text, Verdict};

pub(super) const MOST_BYTES: usize = 35_000;

pub(super) fn request(open: &Open<'_>, text: &Text, _: Timestamp) -> Result<Request, String> {
    // Cut before: an escape must not be cut in two.
    let escaped = escape(&text.fitting(MOST_BYTES, |text| escape(text).len()));
    Ok(Request { address: open.address.clone(), body: json!({ "text": escaped }), bearer: None })
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

pub(super) fn read(reply: &Reply) -> Verdict {
    match reply.body.trim_ascii() {
        b"ok" if reply.status.is_success() => Ok(()),
        _ => reply.by_status(),
    }
}
