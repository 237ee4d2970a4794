//! What can go wrong with a provider, as a value: who was asked what, and which kind of failure it is.
//!
//! No variant holds a header, a query or more of a body than one short cleaned line.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::{AccountName, ProviderName};

/// A request as a person would name it: method and path, no host, no query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestLine(pub String);

impl fmt::Display for RequestLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A failed request, with everything that a person needs to act on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{provider}/{account}: {request}: {kind}")]
pub struct ProviderError {
    pub provider: ProviderName,
    pub account: AccountName,
    pub request: RequestLine,
    #[source]
    pub kind: ErrorKind,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The key is wrong, revoked or expired.
    #[error("key refused{}; check the account's key", said(.message))]
    Credentials { message: Option<String> },
    /// The key is good but lacks a right.
    #[error("the key lacks the right for this{}", said(.message))]
    Forbidden { message: Option<String> },
    /// Asked by id: there is no such resource.
    #[error("no such id")]
    NoSuchId,
    /// The address itself is no longer served: an update of rentop is needed.
    #[error("HTTP {status}: this address is retired{}; a newer rentop may know the new one", said(.message))]
    Retired { status: u16, message: Option<String> },
    #[error("rate limited{}", retry_in(.retry_after))]
    RateLimited { retry_after: Option<Duration> },
    /// Understood and refused: the phase does not fit, no stock, in use, not enough balance.
    #[error("refused{}{}", said_opt(.message), retry_in(.retry_after))]
    Refused { status: u16, code: Option<String>, message: String, retry_after: Option<Duration> },
    /// The provider failed.
    #[error("HTTP {status}{}{}", said(.message), retry_in(.retry_after))]
    Server { status: u16, message: Option<String>, retry_after: Option<Duration> },
    #[error("HTTP {status}, not JSON{}", said(.excerpt))]
    NotJson { status: u16, excerpt: Option<String> },
    /// JSON, but not of the documented shape.
    #[error("cannot read `{path}`: {message}")]
    Decode { path: String, message: String },
    #[error("no answer within {} s", .after.as_secs())]
    Timeout { after: Duration },
    /// No connection could be made: nothing was sent.
    #[error("cannot connect: {message}")]
    Connect { message: String },
    /// The connection broke after the request was sent.
    #[error("connection lost: {message}")]
    Disconnected { message: String },
    #[error("redirected to another place; not followed, so that the key stays here")]
    Redirected,
    #[error("answer larger than {limit_bytes} bytes")]
    TooLarge { limit_bytes: usize },
    #[error("the page cursor repeats; reading stopped after {pages} pages")]
    PagingLoop { pages: usize },
    /// The request could not be built: a key with forbidden characters, an address that is not allowed.
    #[error("{message}")]
    Unusable { message: String },
}

fn said(message: &Option<String>) -> String {
    message.as_deref().map(said_opt).unwrap_or_default()
}

fn said_opt(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

fn retry_in(after: &Option<Duration>) -> String {
    after.map(|after| format!(", retry in {} s", after.as_secs())).unwrap_or_default()
}

impl ErrorKind {
    /// True when waiting may help without anybody doing something.
    pub fn is_transient(&self) -> bool {
        match self {
            ErrorKind::RateLimited { .. }
            | ErrorKind::Server { .. }
            | ErrorKind::NotJson { .. }
            | ErrorKind::Timeout { .. }
            | ErrorKind::Connect { .. }
            | ErrorKind::Disconnected { .. }
            | ErrorKind::PagingLoop { .. } => true,
            ErrorKind::Refused { retry_after, .. } => retry_after.is_some(),
            _ => false,
        }
    }

    /// True when a request that changes something may have been carried out although it failed: it must
    /// not be repeated before the state was read.
    pub fn outcome_unknown(&self) -> bool {
        match self {
            ErrorKind::Timeout { .. }
            | ErrorKind::Disconnected { .. }
            | ErrorKind::NotJson { .. }
            | ErrorKind::Decode { .. }
            | ErrorKind::TooLarge { .. } => true,
            // An answered refusal that names a wait was not carried out.
            ErrorKind::Server { retry_after, .. } => retry_after.is_none(),
            _ => false,
        }
    }

    /// How long the provider asks to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            ErrorKind::RateLimited { retry_after }
            | ErrorKind::Refused { retry_after, .. }
            | ErrorKind::Server { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    pub fn is_credentials(&self) -> bool {
        matches!(self, ErrorKind::Credentials { .. } | ErrorKind::Forbidden { .. })
    }
}

/// A part of an answer that could not be read. The rest of the answer stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    pub request: RequestLine,
    /// Where in the answer, for instance `instances[3].dph_total`; empty when the whole request failed.
    pub field: String,
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            write!(f, "{}: {}", self.request, self.message)
        } else {
            write!(f, "{}: `{}`: {}", self.request, self.field, self.message)
        }
    }
}
