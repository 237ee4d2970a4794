//! A server that checks what it is sent as each service does, and answers as that does.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

pub const TOKEN: &str = "fake0000-TESTSECRET-0000";
pub const SECRET: &str = "SECfakeTESTSECRET0000";

/// What comes instead of the service's own answer.
#[derive(Clone, Debug)]
pub enum Next {
    Answer(u16, &'static str, String),
    /// No answer, ever.
    Hang,
}

/// What was taken, in its order.
#[derive(Clone, Debug)]
pub struct Taken {
    pub body: Value,
    pub at: Instant,
}

impl Taken {
    /// The words of it, whatever the service.
    pub fn text(&self) -> String {
        let places = ["/content/text", "/text/content", "/message", "/text"];
        places.iter().find_map(|place| self.body.pointer(place)?.as_str()).unwrap_or_default().to_owned()
    }
}

#[derive(Clone, Default)]
pub struct Services(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    next: VecDeque<Next>,
    /// All requests, also those that were not taken.
    requests: Vec<Taken>,
    taken: Vec<Taken>,
    hanging: usize,
}

impl Services {
    /// Serves all of them; returns where.
    pub fn serve(&self, runtime: &tokio::runtime::Runtime) -> String {
        let router = axum::Router::new().fallback(answer).with_state(self.clone());
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(async move { axum::serve(listener, router).await });
        format!("http://{address}")
    }

    pub fn then(&self, next: Next) {
        self.0.lock().unwrap().next.push_back(next);
    }

    /// Forgets what was to come.
    pub fn be_well(&self) {
        self.0.lock().unwrap().next.clear();
    }

    pub fn taken(&self) -> Vec<Taken> {
        self.0.lock().unwrap().taken.clone()
    }

    pub fn requests(&self) -> Vec<Taken> {
        self.0.lock().unwrap().requests.clone()
    }

    pub fn hanging(&self) -> usize {
        self.0.lock().unwrap().hanging
    }
}

/// The path of a service's address.
pub fn path(kind: &str) -> String {
    match kind {
        "json" => format!("/json/{TOKEN}"),
        "slack" => format!("/services/T0/B0/{TOKEN}"),
        "telegram" => format!("/bot77:{TOKEN}"),
        "ntfy" => format!("/ntfy/{TOKEN}"),
        "feishu" => format!("/open-apis/bot/v2/hook/{TOKEN}"),
        "dingtalk" => format!("/robot/send?access_token={TOKEN}"),
        "wecom" => format!("/cgi-bin/webhook/send?key={TOKEN}"),
        other => panic!("{other}"),
    }
}

async fn answer(State(services): State<Services>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let parsed: Value = serde_json::from_slice(&body).unwrap_or_default();
    let next = {
        let mut inner = services.0.lock().unwrap();
        inner.requests.push(Taken { body: parsed.clone(), at: Instant::now() });
        inner.next.pop_front()
    };
    match next {
        Some(Next::Answer(status, header, body)) => {
            let mut response = (StatusCode::from_u16(status).unwrap(), body).into_response();
            if let Some((name, value)) = header.split_once(": ") {
                let name: HeaderName = name.parse().unwrap();
                response.headers_mut().insert(name, HeaderValue::from_str(value).unwrap());
            }
            return response;
        }
        Some(Next::Hang) => {
            services.0.lock().unwrap().hanging += 1;
            std::future::pending::<()>().await;
        }
        None => {}
    }
    let json = headers.get("content-type").is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    let (taken, answer) = if json { own(&uri, &parsed, body.len()) } else { (false, "no JSON".to_owned()) };
    if taken {
        services.0.lock().unwrap().taken.push(Taken { body: parsed, at: Instant::now() });
    }
    (StatusCode::OK, answer).into_response()
}

/// Whether a service takes it, and what it answers.
fn own(uri: &Uri, body: &Value, bytes: usize) -> (bool, String) {
    let path = uri.path();
    let text = |place: &str| body.pointer(place).and_then(Value::as_str).map(str::to_owned).unwrap_or_default();
    let answer = |taken: bool, well: Value, ill: Value| (taken, if taken { well } else { ill }.to_string());
    match path {
        _ if path.starts_with("/open-apis/") => {
            let time: i64 = text("/timestamp").parse().unwrap_or_default();
            let signed = is_now(time) && text("/sign") == mac(format!("{time}\n{SECRET}").as_bytes(), b"");
            let right = signed && body["msg_type"] == "text" && !text("/content/text").is_empty() && bytes <= 20_480;
            answer(
                right,
                json!({ "code": 0, "msg": "success", "data": {} }),
                json!({ "code": 19021, "msg": "sign match fail" }),
            )
        }
        "/robot/send" => {
            let query: Vec<(String, String)> = uri
                .query()
                .unwrap_or_default()
                .split('&')
                .filter_map(|pair| pair.split_once('='))
                .map(|(name, value)| {
                    (name.to_owned(), value.replace("%3D", "=").replace("%2B", "+").replace("%2F", "/"))
                })
                .collect();
            let of = |name: &str| query.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
            let time: i64 = of("timestamp").and_then(|time| time.parse().ok()).unwrap_or_default();
            let sign = mac(SECRET.as_bytes(), format!("{time}\n{SECRET}").as_bytes());
            let signed =
                is_now(time / 1000) && of("sign") == Some(sign) && of("access_token").as_deref() == Some(TOKEN);
            let right = signed && body["msgtype"] == "text" && !text("/text/content").is_empty() && bytes <= 20_000;
            answer(
                right,
                json!({ "errcode": 0, "errmsg": "ok" }),
                json!({ "errcode": 310000, "errmsg": "sign not match" }),
            )
        }
        "/cgi-bin/webhook/send" => {
            let content = text("/text/content");
            let right = body["msgtype"] == "text" && !content.is_empty() && content.len() <= 2048;
            answer(right, json!({ "errcode": 0, "errmsg": "ok" }), json!({ "errcode": 40058, "errmsg": "too long" }))
        }
        _ if path.starts_with("/services/") => {
            let right = !text("/text").is_empty() && text("/text").len() <= 40_000;
            (right, if right { "ok" } else { "no_text" }.to_owned())
        }
        _ if path.ends_with("/sendMessage") && path.starts_with(&format!("/bot77:{TOKEN}")) => {
            let right =
                body["chat_id"] == -100200300 && body.get("parse_mode").is_none() && text("/text").len() <= 4096;
            answer(
                right,
                json!({ "ok": true, "result": {} }),
                json!({ "ok": false, "error_code": 400, "description": "chat not found" }),
            )
        }
        "/ntfy/" => {
            let right = body["topic"] == TOKEN && !text("/title").is_empty() && bytes <= 4096 + 300;
            answer(
                right,
                json!({ "id": "fake0000AAAA", "event": "message" }),
                json!({ "code": 40009, "error": "invalid topic" }),
            )
        }
        _ if path == format!("/json/{TOKEN}") => (body["schema"] == "rentop.message/1", String::new()),
        _ => (false, "not here".to_owned()),
    }
}

fn is_now(seconds: i64) -> bool {
    (jiff::Timestamp::now().as_second() - seconds).abs() < 600
}

fn mac(key: &[u8], message: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(message);
    STANDARD.encode(mac.finalize().into_bytes())
}

/// Between two messages that were taken.
pub fn least_gap(taken: &[Taken]) -> Option<Duration> {
    taken.windows(2).map(|two| two[1].at.duration_since(two[0].at)).min()
}
