//! The only HTTP client: authentication, time-outs, pace, Retry-After, size caps, redaction.
//!
//! Keys are opened here and nowhere else. A key goes to the account's own host only: redirects are never
//! followed, paging links give their path and query and nothing more, and plain `http` reaches loopback
//! addresses only, never through a proxy.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use jiff::Timestamp;
use reqwest::header::{AGE, AUTHORIZATION, CONTENT_TYPE, DATE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Certificate, Client, Method, StatusCode, Url};
use secrecy::ExposeSecret;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::error::{ErrorKind, Problem, ProviderError, RequestLine};
use crate::provider::Access;
use crate::text::{clean, excerpt};

/// No answer may be larger than this.
const BODY_LIMIT_BYTES: usize = 32 * 1024 * 1024;
/// The longest excerpt of a body that an error shows, in characters.
const EXCERPT: usize = 160;
/// So many requests are left to what somebody waits for.
const RESERVE: u64 = 15;
/// A wait up to this long is taken inside a call; a longer one is told, and the caller's schedule obeys it.
const SHORT_WAIT: Duration = Duration::from_secs(2);

/// A request to be sent.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    method: Method,
    path: &'a str,
    query: Vec<(&'a str, String)>,
    body: Option<serde_json::Value>,
    lane: &'static str,
    by_id: bool,
    safe: bool,
}

impl<'a> Call<'a> {
    /// A request that changes nothing and may be repeated.
    pub fn get(path: &'a str) -> Self {
        Call { method: Method::GET, path, query: vec![], body: None, lane: "", by_id: false, safe: true }
    }

    /// A request that changes something: sent once, whatever happens.
    pub fn change(method: Method, path: &'a str) -> Self {
        Call { safe: false, by_id: true, method, ..Call::get(path) }
    }

    /// A POST that only reads, as GraphQL queries are.
    pub fn read_by_post(path: &'a str, body: serde_json::Value) -> Self {
        Call { method: Method::POST, body: Some(body), ..Call::get(path) }
    }

    pub fn query(mut self, name: &'a str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    pub fn body(mut self, body: serde_json::Value) -> Self {
        self.body = Some(body);
        self
    }

    /// The lane whose pace this request keeps.
    pub fn lane(mut self, lane: &'static str) -> Self {
        self.lane = lane;
        self
    }

    /// Names one resource: a 404 then means that there is no such id. For a list it never does.
    pub fn by_id(mut self) -> Self {
        self.by_id = true;
        self
    }

    fn line(&self) -> RequestLine {
        RequestLine(clean(&format!("{} {}", self.method, self.path)))
    }
}

/// A failed answer, for an adapter that knows better than the status line.
#[derive(Debug)]
pub struct Failure<'a> {
    pub status: u16,
    pub by_id: bool,
    pub code: Option<&'a str>,
    pub message: Option<&'a str>,
    pub retry_after: Option<Duration>,
}

/// A provider's own reading of a failure; `None` leaves it to the status.
pub type Dialect = fn(&Failure<'_>) -> Option<ErrorKind>;

/// A sort of requests that keep one pace, apart from the others.
#[derive(Clone, Copy, Debug)]
pub struct Lane {
    pub name: &'static str,
    spacing: Duration,
    background: bool,
}

impl Lane {
    /// With the least time between two requests.
    pub const fn new(name: &'static str, spacing_ms: u64) -> Self {
        Lane { name, spacing: Duration::from_millis(spacing_ms), background: false }
    }

    /// What nobody waits for: it stands back when few requests are left, and its own waits are not the others'.
    pub const fn background(self) -> Self {
        Lane { background: true, ..self }
    }
}

struct LaneState {
    /// One request that only reads is under way at a time.
    turn: tokio::sync::Mutex<()>,
    limiter: Option<DefaultDirectRateLimiter>,
    background: bool,
}

/// What answers said beside their bodies.
#[derive(Default)]
struct Noted {
    /// Nothing is sent before this moment: the provider said so.
    quiet_until: Option<Instant>,
    /// Nothing is sent in the background before this one.
    background_quiet_until: Option<Instant>,
    /// The provider's time, and when it was told.
    date: Option<(Timestamp, Instant)>,
}

/// One account's way to its provider.
pub struct Http {
    client: Client,
    base: Url,
    access: Access,
    auth: HeaderValue,
    dialect: Dialect,
    lanes: HashMap<&'static str, LaneState>,
    noted: Mutex<Noted>,
}

/// A successful answer.
pub struct Answer {
    body: Vec<u8>,
    status: u16,
    request: RequestLine,
    access: (crate::model::ProviderName, crate::model::AccountName),
}

impl Http {
    /// A client for one account. Fails when the key cannot be sent or the base URL is not allowed.
    pub fn new(access: &Access, default_base: &str, lanes: &[Lane], dialect: Dialect) -> Result<Self, ProviderError> {
        let unusable = |message: String| ProviderError {
            provider: access.provider.clone(),
            account: access.account.clone(),
            request: RequestLine("set-up".to_owned()),
            kind: ErrorKind::Unusable { message },
        };
        let base = base_url(access.base_url.as_deref().unwrap_or(default_base)).map_err(unusable)?;
        let key = access.key.expose_secret().trim();
        if key.is_empty() {
            return Err(unusable("the key is empty".to_owned()));
        }
        let mut auth = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| {
            unusable("the key holds characters that cannot be sent, such as a line break in its middle".to_owned())
        })?;
        auth.set_sensitive(true);
        let lanes = lanes
            .iter()
            .map(|lane| {
                let limiter = Quota::with_period(lane.spacing).map(RateLimiter::direct);
                let turn = tokio::sync::Mutex::new(());
                (lane.name, LaneState { turn, limiter, background: lane.background })
            })
            .collect();
        let client = client(base.scheme() == "http").map_err(unusable)?;
        Ok(Http { client, base, access: access.clone(), auth, dialect, lanes, noted: Mutex::default() })
    }

    /// Sends a request. One that only reads is tried up to three times when the provider stumbles; one that
    /// changes something goes out once.
    pub async fn send(&self, call: &Call<'_>) -> Result<Answer, ProviderError> {
        let lane = self.lanes.get(call.lane);
        let _turn = match lane.filter(|_| call.safe) {
            Some(lane) => Some(lane.turn.lock().await),
            None => None,
        };
        let attempt = || async {
            if let Some(limiter) = lane.and_then(|lane| lane.limiter.as_ref()) {
                limiter.until_ready().await;
            }
            self.attempt(call).await
        };
        let backoff = ExponentialBuilder::default()
            .with_jitter()
            .with_min_delay(Duration::from_millis(250))
            .with_max_delay(SHORT_WAIT)
            .with_max_times(2);
        attempt
            .retry(backoff)
            .when(|kind| call.safe && worth_repeating(kind))
            .adjust(|kind: &ErrorKind, wait| wait.map(|wait| kind.retry_after().unwrap_or(wait)))
            .await
            .map_err(|kind| self.error(call, kind))
    }

    /// Sends a request and reads the answer as `T`.
    pub async fn json<T: DeserializeOwned>(&self, call: &Call<'_>) -> Result<T, ProviderError> {
        self.send(call).await?.read()
    }

    /// An error of this account about this request.
    pub fn error(&self, call: &Call<'_>, kind: ErrorKind) -> ProviderError {
        ProviderError {
            provider: self.access.provider.clone(),
            account: self.access.account.clone(),
            request: call.line(),
            kind,
        }
    }

    /// The provider's clock as of now, by the last answer that told it, to the second. `None` before the first.
    pub fn server_time(&self) -> Option<Timestamp> {
        let (date, told_at) = self.noted().date?;
        date.checked_add(told_at.elapsed()).ok() // A date at the end of the calendar is none.
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().expect("the lock is held for single assignments only")
    }

    async fn attempt(&self, call: &Call<'_>) -> Result<Answer, ErrorKind> {
        let background = self.lanes.get(call.lane).is_some_and(|lane| lane.background);
        self.keep_quiet(background).await?;
        let mut url = self.base.clone();
        url.set_path(call.path);
        let mut request = self
            .client
            .request(call.method.clone(), url)
            .header(AUTHORIZATION, &self.auth)
            .timeout(self.access.timeout);
        if !call.query.is_empty() {
            request = request.query(&call.query);
        }
        if let Some(body) = &call.body {
            request = request.json(body);
        }
        let mut response = request.send().await.map_err(|error| self.transport(error))?;
        let status = response.status();
        self.note_date(response.headers());
        let retry_after = self.note_limits(response.headers(), status, background);
        let json = is_json(response.headers());
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.transport(error))? {
            if body.len() + chunk.len() > BODY_LIMIT_BYTES {
                return Err(ErrorKind::TooLarge { limit_bytes: BODY_LIMIT_BYTES });
            }
            body.extend_from_slice(&chunk);
        }
        if !status.is_success() || !json {
            // Some servers repeat what they were sent; these texts are shown and kept.
            body = without_key(body, self.access.key.expose_secret().trim());
        }
        if status.is_success() {
            let looks_like_json = json || body.is_empty() || matches!(first_byte(&body), Some(b'{' | b'['));
            if !looks_like_json {
                return Err(ErrorKind::NotJson { status: status.as_u16(), excerpt: plain_excerpt(&body) });
            }
            let access = (self.access.provider.clone(), self.access.account.clone());
            return Ok(Answer { body, status: status.as_u16(), request: call.line(), access });
        }
        Err(self.failure(call, status, retry_after, &body))
    }

    /// Waits out a short quiet time; refuses to send inside a long one.
    async fn keep_quiet(&self, background: bool) -> Result<(), ErrorKind> {
        let until = {
            let noted = self.noted();
            noted.quiet_until.max(noted.background_quiet_until.filter(|_| background))
        };
        let Some(wait) = until.map(|until| until.saturating_duration_since(Instant::now())) else { return Ok(()) };
        if wait > SHORT_WAIT {
            return Err(ErrorKind::RateLimited { retry_after: Some(whole_seconds(wait)) });
        }
        tokio::time::sleep(wait).await;
        Ok(())
    }

    /// Reads Retry-After and the RateLimit windows, and remembers how long to be quiet.
    fn note_limits(&self, headers: &HeaderMap, status: StatusCode, background: bool) -> Option<Duration> {
        let refused = status == StatusCode::TOO_MANY_REQUESTS;
        let retry_after = retry_after(headers, Timestamp::now());
        let windows = headers.get("ratelimit").and_then(|value| value.to_str().ok());
        let empty = windows.and_then(|windows| fuller_in(windows, 1));
        let scarce = windows.and_then(|windows| fuller_in(windows, RESERVE));
        let asked = retry_after.filter(|_| refused);
        let mut noted = self.noted();
        // A wait that the background was told may be its own: the others find out by themselves.
        note(&mut noted.quiet_until, empty.max(asked.filter(|_| !background)));
        note(&mut noted.background_quiet_until, scarce.max(asked));
        if refused { retry_after.max(empty) } else { retry_after }
    }

    /// Remembers what time it is there. A cache's answer tells an old one.
    fn note_date(&self, headers: &HeaderMap) {
        if headers.contains_key(AGE) {
            return;
        }
        if let Some(date) = headers.get(DATE).and_then(|value| http_date(value.to_str().ok()?)) {
            self.noted().date = Some((date, Instant::now()));
        }
    }

    fn transport(&self, error: reqwest::Error) -> ErrorKind {
        if error.is_timeout() && !error.is_connect() {
            return ErrorKind::Timeout { after: self.access.timeout };
        }
        let (connect, redirect) = (error.is_connect(), error.is_redirect());
        if redirect {
            return ErrorKind::Redirected;
        }
        let message = excerpt(&innermost(&error.without_url()), EXCERPT);
        if connect { ErrorKind::Connect { message } } else { ErrorKind::Disconnected { message } }
    }

    fn failure(&self, call: &Call<'_>, status: StatusCode, retry_after: Option<Duration>, body: &[u8]) -> ErrorKind {
        let told: Told = serde_json::from_slice(body).map(Told::from_json).unwrap_or_default();
        let html = first_byte(body) == Some(b'<');
        let message = told.message.or_else(|| if html { None } else { plain_excerpt(body) });
        let retry_after = retry_after.or_else(|| message.as_deref().and_then(wait_in_words));
        let failure = Failure {
            status: status.as_u16(),
            by_id: call.by_id,
            code: told.code.as_deref(),
            message: message.as_deref(),
            retry_after,
        };
        if let Some(kind) = (self.dialect)(&failure) {
            return kind;
        }
        let status = status.as_u16();
        match status {
            300..400 => ErrorKind::Redirected,
            // A gateway's page says nothing about the key, the right or the id.
            400..500 if html && status != 429 => ErrorKind::NotJson { status, excerpt: None },
            401 => ErrorKind::Credentials { message },
            403 => ErrorKind::Forbidden { message },
            404 if call.by_id => ErrorKind::NoSuchId,
            410 => ErrorKind::Retired { status, message },
            429 => ErrorKind::RateLimited { retry_after },
            400..500 => ErrorKind::Refused {
                status,
                code: told.code,
                message: message.unwrap_or_else(|| format!("HTTP {status}")),
                retry_after,
            },
            _ => ErrorKind::Server { status, message, retry_after },
        }
    }
}

impl Answer {
    /// Reads the whole answer as `T`; the error names the field.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ProviderError> {
        if self.body.is_empty() {
            return Err(self.error(ErrorKind::NotJson { status: self.status, excerpt: None }));
        }
        from_json(&self.body).map_err(|error| {
            let kind = if error.inner().is_data() {
                decode(error)
            } else {
                ErrorKind::NotJson { status: self.status, excerpt: Some(excerpt(&error.inner().to_string(), EXCERPT)) }
            };
            self.error(kind)
        })
    }

    /// An error of the account that asked, about this request.
    pub fn error(&self, kind: ErrorKind) -> ProviderError {
        let (provider, account) = self.access.clone();
        ProviderError { provider, account, request: self.request.clone(), kind }
    }

    /// Reads rows one by one: one that cannot be read becomes a problem that names its field, the others
    /// go on. `list` is the list's name in the answer, for instance `pods`.
    pub fn rows<T: DeserializeOwned>(&self, list: &str, rows: &[Box<RawValue>]) -> (Vec<T>, Vec<Problem>) {
        let mut read = Vec::with_capacity(rows.len());
        let mut problems = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            match from_json(row.get().as_bytes()) {
                Ok(row) => read.push(row),
                Err(error) => {
                    let path = error.path().to_string();
                    problems.push(Problem {
                        request: self.request.clone(),
                        field: if path == "." { format!("{list}[{at}]") } else { format!("{list}[{at}].{path}") },
                        message: excerpt(&error.into_inner().to_string(), EXCERPT),
                    });
                }
            }
        }
        (read, problems)
    }

    /// A problem about this answer.
    pub fn problem(&self, field: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem { request: self.request.clone(), field: field.into(), message: message.into() }
    }
}

/// Reads JSON. Only after a failure is it read once more for the place of the field: keeping track of the
/// path takes longer than the reading itself.
fn from_json<T: DeserializeOwned>(text: &[u8]) -> Result<T, serde_path_to_error::Error<serde_json::Error>> {
    serde_json::from_slice(text)
        .or_else(|_| serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_slice(text)))
}

fn decode(error: serde_path_to_error::Error<serde_json::Error>) -> ErrorKind {
    let path = error.path().to_string();
    ErrorKind::Decode { path, message: excerpt(&error.into_inner().to_string(), EXCERPT) }
}

/// Follows page cursors and notices one that comes again.
#[derive(Debug, Default)]
pub struct Pages {
    seen: HashSet<String>,
}

/// What a page's cursor means.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn {
    Next(String),
    End,
    /// The cursor was seen before, or there are more pages than any account fills: the list is incomplete.
    Loop,
}

impl Pages {
    const LIMIT: usize = 1000;

    pub fn turn(&mut self, cursor: Option<String>) -> Turn {
        match cursor.filter(|cursor| !cursor.is_empty()) {
            None => Turn::End,
            Some(cursor) if self.seen.len() < Self::LIMIT && self.seen.insert(cursor.clone()) => Turn::Next(cursor),
            Some(_) => Turn::Loop,
        }
    }
}

/// Path and query of a paging link, wherever it points: the host is always the account's own.
pub fn path_and_query(link: &str) -> Option<String> {
    let anywhere = Url::parse("http://127.0.0.1/").expect("a literal URL");
    let url = anywhere.join(link).ok()?;
    Some(match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    })
}

/// Checks a base URL: `https` anywhere, `http` on loopback only, nothing behind the port.
pub fn base_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("base_url `{text}` is no URL: {error}"))?;
    match url.scheme() {
        _ if !url.username().is_empty() || url.password().is_some() => {
            Err("base_url holds a user name or password; a key belongs into the account's key source".to_owned())
        }
        _ if url.path() != "/" || url.query().is_some() => {
            Err(format!("base_url `{text}` has a path; it replaces scheme, host and port only"))
        }
        "https" => Ok(url),
        "http" if is_loopback(&url) => Ok(url),
        "http" => Err(format!("base_url `{text}`: plain http would show the key to others; use https")),
        scheme => Err(format!("base_url `{text}`: `{scheme}` is neither https nor http")),
    }
}

/// The innermost cause of a failure, which is what a person can act on: the outer ones only name the address.
pub(crate) fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// Whether an address is of this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host().map(|host| host.to_string()) else { return false };
    host == "localhost" || host.trim_matches(['[', ']']).parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

/// The shared clients, so that connections are reused between accounts. The one for loopback uses no proxy.
pub(crate) fn client(loopback: bool) -> Result<Client, String> {
    static CLIENTS: [OnceLock<Result<Client, String>>; 2] = [const { OnceLock::new() }; 2];
    CLIENTS[usize::from(loopback)].get_or_init(|| build_client(loopback)).clone()
}

fn build_client(loopback: bool) -> Result<Client, String> {
    // Another part of the process may have installed one already; any will do.
    drop(rustls::crypto::ring::default_provider().install_default());
    let builder = || {
        let builder = Client::builder()
            .user_agent(concat!("rentop/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_secs(10))
            .pool_idle_timeout(Duration::from_secs(90));
        if loopback { builder.no_proxy() } else { builder }
    };
    let bundled = || {
        let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().filter_map(|der| Certificate::from_der(der).ok());
        builder().tls_certs_only(roots).build()
    };
    // Loopback speaks plain http: reading the system's certificates for it would only cost time and memory.
    let built = if loopback { builder().tls_certs_only([]).build() } else { builder().build().or_else(|_| bundled()) };
    built.map_err(|error| format!("the HTTP client cannot be built: {error}"))
}

fn worth_repeating(kind: &ErrorKind) -> bool {
    let soon = kind.retry_after().is_none_or(|wait| wait <= SHORT_WAIT);
    match kind {
        ErrorKind::Server { .. } => soon,
        ErrorKind::Disconnected { .. } => true,
        ErrorKind::RateLimited { retry_after } => retry_after.is_some() && soon,
        _ => false,
    }
}

#[derive(Default)]
struct Told {
    code: Option<String>,
    message: Option<String>,
}

impl Told {
    /// Finds the words of a failure in any of the shapes that providers use.
    fn from_json(body: serde_json::Value) -> Self {
        let text =
            |value: &serde_json::Value| value.as_str().map(|text| excerpt(text, EXCERPT)).filter(|t| !t.is_empty());
        let inner = body.get("error").filter(|error| error.is_object()).unwrap_or(&body);
        let first_of = |keys: &[&str]| keys.iter().find_map(|key| inner.get(key).and_then(text));
        let code = first_of(&["code", "error"]);
        let message = first_of(&["msg", "message", "detail", "title"])
            .or_else(|| body.pointer("/errors/0/message").or(body.pointer("/errors/0")).and_then(text))
            .or_else(|| code.clone());
        Told { code, message }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).is_some_and(|kind| kind.contains("json"))
}

fn first_byte(body: &[u8]) -> Option<u8> {
    body.iter().copied().find(|b| !b.is_ascii_whitespace())
}

/// A body without the account's key, as far as it stands there word for word. A key too short to be one is
/// left alone: taking it out could change what the answer says.
fn without_key(body: Vec<u8>, key: &str) -> Vec<u8> {
    const SHORTEST: usize = 8;
    const INSTEAD: &[u8] = b"***";
    let key = key.as_bytes();
    if key.len() < SHORTEST || body.len() < key.len() {
        return body;
    }
    let mut out = Vec::with_capacity(body.len());
    let mut rest = body.as_slice();
    while let Some(at) = rest.windows(key.len()).position(|window| window == key) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(INSTEAD);
        rest = &rest[at + key.len()..];
    }
    out.extend_from_slice(rest);
    out
}

/// One short line of a body that is plain text; a page of HTML gives nothing.
fn plain_excerpt(body: &[u8]) -> Option<String> {
    if first_byte(body) == Some(b'<') {
        return None;
    }
    let head = &body[..body.len().min(4 * EXCERPT)];
    Some(excerpt(&String::from_utf8_lossy(head), EXCERPT))
        .filter(|text| !text.is_empty() && !text.starts_with(['{', '[']))
}

/// Retry-After as seconds or as a date.
pub(crate) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse::<u64>() {
        return Some(Duration::from_secs(seconds.min(24 * 3600)));
    }
    let date = http_date(value)?;
    Some(Duration::from_secs(date.duration_since(now).as_secs().clamp(0, 24 * 3600) as u64))
}

fn http_date(value: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(value.trim()).ok()
}

fn note(until: &mut Option<Instant>, wait: Option<Duration>) {
    *until = (*until).max(wait.map(|wait| Instant::now() + wait));
}

/// `"minute";r=0;t=41, "hour";r=12;t=1812`: when all windows will have at least so many requests left again;
/// `None` when they have.
fn fuller_in(header: &str, least: u64) -> Option<Duration> {
    header
        .split(',')
        .filter_map(|window| {
            let field = |name: &str| {
                window
                    .split(';')
                    .find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('=')?.parse::<u64>().ok())
            };
            (field("r")? < least).then(|| field("t")).flatten()
        })
        .max()
        .map(|seconds| Duration::from_secs(seconds.min(24 * 3600)))
}

/// `Please try again in 60 seconds`: some providers tell the wait in words only.
fn wait_in_words(message: &str) -> Option<Duration> {
    let lower = message.to_lowercase();
    let after = &lower[lower.find("again in ")? + "again in ".len()..];
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    let number: u64 = digits.parse().ok()?;
    let unit = after[digits.len()..].trim_start();
    let seconds = if unit.starts_with("min") { number.checked_mul(60)? } else { number };
    (unit.starts_with('s') || unit.starts_with("min")).then(|| Duration::from_secs(seconds.min(24 * 3600)))
}

fn whole_seconds(wait: Duration) -> Duration {
    Duration::from_secs(wait.as_secs() + u64::from(wait.subsec_nanos() > 0))
}

#[cfg(test)]
mod tests;
