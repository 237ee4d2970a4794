//! Channels that messages go to: one file a service has its body, its signature, its limits and how it answers.
//!
//! An address is a secret: whoever knows it can write there. It is opened here alone, and stands in no error and no log;
//! what a service answers is shown without it. Nothing follows a redirect. HTTP 200 is no success by itself: several
//! services say in the body that they took nothing.

mod dingtalk;
mod feishu;
mod json;
mod ntfy;
mod slack;
mod telegram;
mod wecom;

use std::borrow::Cow;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::HeaderMap;
use reqwest::{StatusCode, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use crate::http;
use crate::text::{clean, excerpt};

/// No answer may take longer.
const TIMEOUT: Duration = Duration::from_secs(15);
/// More of an answer is not read: what counts stands at its beginning.
const ANSWER_BYTES: usize = 64 * 1024;
/// The longest excerpt of an answer that is shown, in characters.
const EXCERPT: usize = 160;
/// So much of an answer is searched for its words.
const SAID_BYTES: usize = 4096;
/// One of several lines of a message is cut to this, so that all of them fit.
pub const LINE_BYTES: usize = 300;
/// A title is cut to this.
pub const TITLE_BYTES: usize = 200;
/// What is shorter is no secret that could be told from ordinary words.
const SHORTEST_SECRET: usize = 6;
/// What stands for it.
const HIDDEN: &str = "***";

/// A service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Anything that takes JSON.
    Json,
    Slack,
    Telegram,
    Ntfy,
    /// And Lark.
    Feishu,
    Dingtalk,
    Wecom,
}

/// What is to be told.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    /// One line: who tells it, and how much.
    pub title: String,
    /// What happened, a line each.
    pub lines: Vec<String>,
    pub weight: Weight,
    /// The same for programs: the body of [`Service::Json`], an object.
    pub record: Value,
}

/// How much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    Note,
    Money,
    Urgent,
}

/// Why something was not delivered. `why` is one line without the address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undelivered {
    /// It may be taken later.
    Later {
        /// At the earliest after this, where the service says so.
        wait: Option<Duration>,
        why: String,
        /// It may have arrived all the same.
        perhaps: bool,
    },
    /// Nothing will be taken before somebody has corrected the address or the service's settings.
    Refused { why: String },
    /// This one will never be taken, whatever becomes of the others: it is too long.
    TooLong { why: String },
}

/// How an answer is to be understood, before the secrets are taken out of its words.
type Verdict = Result<(), Undelivered>;

/// What a service is like.
struct Manner {
    /// The request of a text.
    request: fn(&Open<'_>, &Text, Timestamp) -> Result<Request, String>,
    /// What an answer means.
    read: fn(&Reply) -> Verdict,
}

/// The secrets of a channel, opened for one request.
struct Open<'a> {
    address: Url,
    secret: Option<&'a str>,
    to: Option<&'a str>,
}

/// What is sent.
struct Request {
    address: Url,
    body: Value,
    /// An access token for the header.
    bearer: Option<String>,
}

/// What came back.
struct Reply {
    status: StatusCode,
    /// The wait that a header names.
    wait: Option<Duration>,
    body: Vec<u8>,
    /// The body, where it is JSON.
    json: Option<Value>,
}

impl Service {
    pub const ALL: [Service; 7] = [
        Service::Json,
        Service::Slack,
        Service::Telegram,
        Service::Ntfy,
        Service::Feishu,
        Service::Dingtalk,
        Service::Wecom,
    ];

    /// Its word in the config.
    pub fn word(self) -> &'static str {
        match self {
            Service::Json => "json",
            Service::Slack => "slack",
            Service::Telegram => "telegram",
            Service::Ntfy => "ntfy",
            Service::Feishu => "feishu",
            Service::Dingtalk => "dingtalk",
            Service::Wecom => "wecom",
        }
    }

    /// The least time between two messages that the service allows for good.
    pub fn pace(self) -> Duration {
        Duration::from_millis(match self {
            Service::Json => 500,
            Service::Slack | Service::Feishu => 1000,
            // In groups, where the limit is 20 a minute.
            Service::Telegram => 3000,
            Service::Dingtalk | Service::Wecom => 3100,
            Service::Ntfy => 5000,
        })
    }

    /// So many pieces of news fit into one message, each in [`LINE_BYTES`].
    pub fn at_once(self) -> usize {
        match self {
            // A program takes one thing at a time.
            Service::Json => 1,
            Service::Wecom => 6,
            Service::Telegram | Service::Ntfy => 12,
            Service::Slack | Service::Feishu | Service::Dingtalk => 40,
        }
    }

    /// The longest text that it takes, in bytes.
    pub fn most_bytes(self) -> usize {
        match self {
            Service::Json => json::MOST_BYTES,
            Service::Slack => slack::MOST_BYTES,
            Service::Telegram => telegram::MOST_BYTES,
            Service::Ntfy => ntfy::MOST_BYTES,
            Service::Feishu => feishu::MOST_BYTES,
            Service::Dingtalk => dingtalk::MOST_BYTES,
            Service::Wecom => wecom::MOST_BYTES,
        }
    }

    fn manner(self) -> Manner {
        match self {
            Service::Json => Manner { request: json::request, read: json::read },
            Service::Slack => Manner { request: slack::request, read: slack::read },
            Service::Telegram => Manner { request: telegram::request, read: telegram::read },
            Service::Ntfy => Manner { request: ntfy::request, read: ntfy::read },
            Service::Feishu => Manner { request: feishu::request, read: feishu::read },
            Service::Dingtalk => Manner { request: dingtalk::request, read: dingtalk::read },
            Service::Wecom => Manner { request: wecom::request, read: wecom::read },
        }
    }
}

/// One channel, ready to be written to.
pub struct Hook {
    service: Service,
    address: SecretString,
    secret: Option<SecretString>,
    /// It may move: a group of Telegram gets another number when it grows.
    to: Mutex<Option<String>>,
    timeout: Duration,
}

/// Without its address.
impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook").field("service", &self.service).finish_non_exhaustive()
    }
}

impl Hook {
    /// A channel at an address. The error says what is wrong with that, and never quotes it.
    pub fn new(
        service: Service,
        address: SecretString,
        secret: Option<SecretString>,
        to: Option<String>,
    ) -> Result<Self, String> {
        let to = Mutex::new(to);
        let hook = Hook { service, address, secret, to, timeout: TIMEOUT };
        let probe = Text { title: String::new(), lines: Vec::new(), weight: Weight::Note, record: Value::Null };
        hook.request(&probe, Timestamp::UNIX_EPOCH)?;
        Ok(hook)
    }

    /// The same with another patience.
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Hook { timeout, ..self }
    }

    /// Tells it; `at` is now, for the signature.
    pub async fn send(&self, text: &Text, at: Timestamp) -> Result<(), Undelivered> {
        let reply = self.post(text, at).await?;
        if let Some(to) = telegram::moved_to(&reply).filter(|_| self.service == Service::Telegram) {
            *self.to.lock().unwrap_or_else(PoisonError::into_inner) = Some(to);
            tracing::warn!("a chat of Telegram has another number now: it is used until the config names it");
            return self.read(&self.post(text, at).await?);
        }
        self.read(&reply)
    }

    /// Opens the secrets for one request.
    fn request(&self, text: &Text, at: Timestamp) -> Result<Request, String> {
        let address = address(self.address.expose_secret())?;
        let to = self.to.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let secret = self.secret.as_ref().map(|secret| secret.expose_secret().trim());
        (self.service.manner().request)(&Open { address, secret, to: to.as_deref() }, text, at)
    }

    async fn post(&self, text: &Text, at: Timestamp) -> Result<Reply, Undelivered> {
        let refused = |why| Undelivered::Refused { why };
        let Request { address, body, bearer } = self.request(text, at).map_err(refused)?;
        let client = http::client(http::is_loopback(&address)).map_err(refused)?;
        let mut request = client.post(address).timeout(self.timeout).json(&body);
        if let Some(token) = bearer {
            request = request.bearer_auth(token);
        }
        let failed = |error| self.failed(error);
        let mut response = request.send().await.map_err(failed)?;
        let (status, wait) = (response.status(), wait(response.headers()));
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            body.extend_from_slice(&chunk[..chunk.len().min(ANSWER_BYTES - body.len())]);
            if body.len() == ANSWER_BYTES {
                break;
            }
        }
        let json = serde_json::from_slice(&body).ok();
        Ok(Reply { status, wait, body, json })
    }

    fn failed(&self, error: reqwest::Error) -> Undelivered {
        // What never reached the service cannot have been taken by it.
        let perhaps = !error.is_connect();
        let why = match error.is_timeout() && perhaps {
            true => format!("no answer within {} s", self.timeout.as_secs_f32()),
            false => self.without_secrets(&http::innermost(&error.without_url())),
        };
        Undelivered::Later { wait: None, why, perhaps }
    }

    fn read(&self, reply: &Reply) -> Verdict {
        (self.service.manner().read)(reply).map_err(|undelivered| match undelivered {
            Undelivered::Later { wait, why, perhaps } => {
                Undelivered::Later { wait, why: self.without_secrets(&why), perhaps }
            }
            Undelivered::Refused { why } => Undelivered::Refused { why: self.without_secrets(&why) },
            Undelivered::TooLong { why } => Undelivered::TooLong { why: self.without_secrets(&why) },
        })
    }

    /// A line without any part of the address: some services repeat what they were sent.
    fn without_secrets(&self, line: &str) -> String {
        let mut line = clean(line);
        let address = self.address.expose_secret().trim();
        let secret = self.secret.as_ref().map(|secret| secret.expose_secret().trim());
        let host = address.split_once("://").map_or(address, |(_, rest)| rest).split(['/', '?', '#']).next();
        let mut parts: Vec<&str> = address.split(['/', '?', '&', '=', '#', '@', ':']).collect();
        parts.retain(|part| part.len() >= SHORTEST_SECRET && !host.is_some_and(|host| host.ends_with(part)));
        // The longest first, lest a part of it be left.
        parts.extend([address].into_iter().chain(secret).filter(|part| part.len() >= SHORTEST_SECRET));
        parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
        for part in parts.into_iter().filter(|part| !ORDINARY.contains(part)) {
            line = line.replace(part, HIDDEN);
        }
        excerpt(&line, EXCERPT)
    }
}

/// Parts of usual addresses that are no secret.
const ORDINARY: &[&str] = &["open-apis", "access_token", "services", "cgi-bin", "webhook"];

/// Checks an address: `https` anywhere, `http` on loopback only. The error does not quote it.
pub fn address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text.trim()).map_err(|error| format!("the address is no URL: {error}"))?;
    match url.scheme() {
        "https" if url.has_host() => Ok(url),
        "http" if http::is_loopback(&url) => Ok(url),
        "http" => Err("plain http would show the address to others; use https".to_owned()),
        _ => Err("the address begins with neither https nor http".to_owned()),
    }
}

/// Tells one address from another, and nothing else of it: a few bits of a hash (FNV-1a).
pub fn mark(address: &SecretString) -> u16 {
    let bytes = address.expose_secret().trim().bytes();
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    (hash >> 48) as u16
}

/// The wait that a header names: Retry-After everywhere, and Feishu's own.
fn wait(headers: &HeaderMap) -> Option<Duration> {
    let own = headers.get("x-ogw-ratelimit-reset").and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let seconds: Option<u64> = own;
    let own = seconds.map(|seconds| Duration::from_secs(seconds.min(24 * 3600)));
    own.max(http::retry_after(headers, Timestamp::now()))
}

impl Text {
    /// Title and lines in at most so many bytes.
    fn joined(&self, most_bytes: usize) -> String {
        let title = cut(&self.title, TITLE_BYTES).into_owned();
        let several = self.lines.len() > 1;
        let line = |line: &String| if several { cut(line, LINE_BYTES).into_owned() } else { line.clone() };
        let all = std::iter::once(title).chain(self.lines.iter().map(line)).collect::<Vec<_>>().join("\n");
        cut(&all, most_bytes).into_owned()
    }

    /// The same by its size as the service counts it.
    fn fitting(&self, most_bytes: usize, size: impl Fn(&str) -> usize) -> String {
        let mut most = most_bytes;
        loop {
            let joined = self.joined(most);
            if size(&joined) <= most_bytes {
                return joined;
            }
            most = most * 9 / 10;
        }
    }
}

/// How many bytes a text takes inside JSON.
fn json_bytes(text: &str) -> usize {
    serde_json::to_string(text).map_or(usize::MAX, |json| json.len())
}

/// A text in at most so many bytes, never cut inside a character; what was cut ends with `…`.
pub fn cut(text: &str, most_bytes: usize) -> Cow<'_, str> {
    const MARK: &str = "…";
    if text.len() <= most_bytes {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(most_bytes.saturating_sub(MARK.len()));
    Cow::Owned(format!("{}{MARK}", &text[..end]))
}

impl Reply {
    /// A number of the body.
    fn number(&self, key: &str) -> Option<i64> {
        self.json.as_ref()?.get(key)?.as_i64()
    }

    /// A text of the body.
    fn text(&self, key: &str) -> Option<&str> {
        self.json.as_ref()?.get(key)?.as_str()
    }

    /// One line of what it says, for somebody who looks for the reason.
    fn said(&self) -> String {
        // It is cut short after the secrets were taken out, lest half of one be left.
        let body = clean(&String::from_utf8_lossy(&self.body[..self.body.len().min(SAID_BYTES)]));
        let page = body.starts_with('<') || body.is_empty();
        if page { format!("HTTP {}", self.status.as_u16()) } else { format!("HTTP {}: {body}", self.status.as_u16()) }
    }

    fn refused(&self, why: impl Into<String>) -> Verdict {
        Err(Undelivered::Refused { why: why.into() })
    }

    /// The service answered that it did not take it.
    fn later(&self, why: impl Into<String>) -> Verdict {
        self.not_before(None, why)
    }

    /// Not before `least` has gone by, or what a header says, if that is longer.
    fn not_before(&self, least: Option<Duration>, why: impl Into<String>) -> Verdict {
        Err(Undelivered::Later { wait: least.max(self.wait), why: why.into(), perhaps: false })
    }

    /// What the status alone means, where the body is nobody's: a gateway's page, for instance.
    fn by_status(&self) -> Verdict {
        let why = self.said();
        match self.status.as_u16() {
            200..300 => self.later(format!("not an answer of this service: {why}")),
            300..400 => self.refused(format!("{why}: it sends elsewhere, which is not followed; correct the address")),
            413 => Err(Undelivered::TooLong { why }),
            407 | 408 | 425 | 429 | 503 => self.later(why),
            400..500 => self.refused(why),
            _ => Err(Undelivered::Later { wait: self.wait, why, perhaps: true }),
        }
    }
}

#[cfg(test)]
mod tests;
