//! The client against real answers on loopback: what it sends, what it makes of each failure.

use super::*;
use rstest::rstest;
use serde::Deserialize;
use wiremock::matchers::{header, method};
use wiremock::{Mock, MockServer, ResponseTemplate};

const NO_LANES: [Lane; 1] = [Lane::new("", 1)];

fn plain(_: &Failure<'_>) -> Option<ErrorKind> {
    None
}

fn http(server: &MockServer, key: &str) -> Http {
    let mut access = Access::new("sim", "team", key).at(server.uri());
    access.timeout = Duration::from_millis(400);
    Http::new(&access, "https://example.invalid", &NO_LANES, plain).unwrap()
}

async fn answering(response: ResponseTemplate) -> MockServer {
    let server = MockServer::start().await;
    Mock::given(method("GET")).respond_with(response).mount(&server).await;
    server
}

#[derive(Debug, Deserialize)]
struct Anything {}

async fn kind_of(response: ResponseTemplate) -> ErrorKind {
    let server = answering(response).await;
    http(&server, "k").json::<Anything>(&Call::get("/v2/pods")).await.unwrap_err().kind
}

/// SEC-01: a key with a line end or blanks around it works and is in no message.
#[rstest]
#[case("TESTKEY-0000000000000000-aaaa\n")]
#[case("TESTKEY-0000000000000000-aaaa\r\n")]
#[case("  TESTKEY-0000000000000000-aaaa  ")]
#[tokio::test]
async fn a_key_is_trimmed(#[case] written: &str) {
    let server = MockServer::start().await;
    Mock::given(header("authorization", "Bearer TESTKEY-0000000000000000-aaaa"))
        .respond_with(ResponseTemplate::new(200).set_body_json(serde_json::json!({})))
        .mount(&server)
        .await;
    http(&server, written).json::<Anything>(&Call::get("/v2/pods")).await.unwrap();
}

#[test]
fn a_key_that_cannot_be_sent_is_not_printed() {
    let access = Access::new("sim", "team", "TESTKEY-0000\n0000-aaaa");
    let error = Http::new(&access, "https://example.invalid", &[], plain).err().unwrap();
    let shown = format!("{error} {error:?} {access:?}");
    assert!(!shown.contains("TESTKEY"), "{shown}");
    assert!(shown.contains("line break"));
}

/// SEC-01: a server that repeats the key it was sent.
#[rstest]
#[case(401, r#"{"message": "bad key TESTKEY-0000000000000000-aaaa"}"#, "application/json")]
#[case(400, r#"{"error": {"code": "TESTKEY-0000000000000000-aaaa", "message": "x"}}"#, "application/json")]
#[case(500, "TESTKEY-0000000000000000-aaaa and TESTKEY-0000000000000000-aaaa", "text/plain")]
#[case(200, "you sent Bearer TESTKEY-0000000000000000-aaaa", "text/plain")]
#[tokio::test]
async fn a_key_that_comes_back_is_in_no_error(#[case] status: u16, #[case] body: &str, #[case] kind: &str) {
    let server = answering(ResponseTemplate::new(status).set_body_raw(body, kind)).await;
    let http = http(&server, " TESTKEY-0000000000000000-aaaa\n");
    let error = http.json::<Anything>(&Call::get("/v2/pods")).await.unwrap_err();
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains("TESTKEY") && shown.contains("***"), "{shown}");
}

/// API-06: HTML or nothing where JSON was expected.
#[rstest]
#[case(502, "<!DOCTYPE html><html><h1>Bad gateway</h1></html>", "HTTP 502")]
#[case(200, "<html><body>We are down for maintenance</body></html>", "HTTP 200, not JSON")]
#[case(503, "", "HTTP 503")]
#[case(500, "upstream connect error", "HTTP 500: upstream connect error")]
#[case(403, "<html>blocked</html>", "HTTP 403, not JSON")]
#[case(200, "", "HTTP 200, not JSON")]
#[tokio::test]
async fn a_page_is_an_error_with_its_status(#[case] status: u16, #[case] body: &str, #[case] shown: &str) {
    let kind = kind_of(ResponseTemplate::new(status).set_body_raw(body, "text/html")).await;
    assert_eq!(kind.to_string(), shown);
}

#[tokio::test]
async fn failures_are_told_apart() {
    let json = |status, body| ResponseTemplate::new(status).set_body_json::<serde_json::Value>(body);
    use serde_json::json;
    assert!(matches!(kind_of(json(401, json!({"title": "x"}))).await, ErrorKind::Credentials { .. }));
    assert!(matches!(kind_of(json(403, json!({"detail": "access denied"}))).await, ErrorKind::Forbidden { .. }));
    let retired = kind_of(json(410, json!({"error": "deprecated_endpoint", "msg": "it is deprecated"}))).await;
    assert!(retired.to_string().contains("deprecated"), "{retired}");
    // A list that is not there says nothing about any instance.
    assert!(!matches!(kind_of(json(404, json!({}))).await, ErrorKind::NoSuchId));
    let refused = kind_of(json(409, json!({"error": {"code": "busy", "message": "not now"}}))).await;
    assert!(matches!(refused, ErrorKind::Refused { status: 409, ref code, .. } if code.as_deref() == Some("busy")));
    let decoded = kind_of(json(200, json!(5))).await;
    assert!(matches!(decoded, ErrorKind::Decode { .. }), "{decoded:?}");
    assert!(matches!(
        kind_of(ResponseTemplate::new(302).insert_header("location", "http://127.0.0.1:1/")).await,
        ErrorKind::Redirected
    ));
}

#[tokio::test]
async fn a_hanging_answer_ends_in_a_time_out() {
    let kind = kind_of(ResponseTemplate::new(200).set_delay(Duration::from_secs(5))).await;
    assert!(matches!(kind, ErrorKind::Timeout { .. }), "{kind:?}");
    assert!(kind.outcome_unknown());
}

#[tokio::test]
async fn nobody_listening_means_nothing_was_sent() {
    let access = Access::new("sim", "team", "k").at("http://127.0.0.1:9");
    let http = Http::new(&access, "https://example.invalid", &NO_LANES, plain).unwrap();
    let kind = http.send(&Call::change(Method::POST, "/x")).await.err().unwrap().kind;
    assert!(matches!(kind, ErrorKind::Connect { .. }) && !kind.outcome_unknown(), "{kind:?}");
}

#[tokio::test]
async fn a_stumbling_provider_is_asked_again_but_a_change_is_sent_once() {
    let server = MockServer::start().await;
    Mock::given(method("GET")).respond_with(ResponseTemplate::new(500)).up_to_n_times(2).mount(&server).await;
    Mock::given(method("GET"))
        .respond_with(ResponseTemplate::new(200).set_body_json(serde_json::json!({})))
        .mount(&server)
        .await;
    Mock::given(method("POST")).respond_with(ResponseTemplate::new(500)).expect(1).mount(&server).await;
    let http = http(&server, "k");
    http.json::<Anything>(&Call::get("/a")).await.unwrap();
    assert!(http.send(&Call::change(Method::POST, "/a")).await.is_err());
}

#[tokio::test]
async fn a_wait_that_was_told_is_kept() {
    let server = answering(ResponseTemplate::new(429).insert_header("retry-after", "30")).await;
    let http = http(&server, "k");
    for _ in 0..3 {
        let kind = http.send(&Call::get("/a")).await.err().unwrap().kind;
        assert!(matches!(kind.retry_after(), Some(wait) if wait > Duration::from_secs(25)), "{kind:?}");
    }
    assert_eq!(server.received_requests().await.unwrap().len(), 1, "asked while told to wait");
}

#[tokio::test]
async fn an_empty_window_stops_further_requests() {
    let windows = r#""minute";r=0;t=41, "hour";r=0;t=1812, "day";r=4;t=45012"#;
    let ok = ResponseTemplate::new(200).insert_header("ratelimit", windows).set_body_json(serde_json::json!({}));
    let server = answering(ok).await;
    let http = http(&server, "k");
    http.send(&Call::get("/a")).await.map(drop).unwrap();
    let kind = http.send(&Call::get("/a")).await.err().unwrap().kind;
    assert_eq!(kind.retry_after().map(|wait| wait.as_secs() > 1800), Some(true), "{kind:?}");
}

/// What nobody waits for keeps off the last requests of a window, and its own waits hold up nobody.
#[tokio::test]
async fn the_background_stands_back_and_holds_nobody_up() {
    let lanes = [Lane::new("", 1), Lane::new("bills", 1).background()];
    let try_both = async |response: ResponseTemplate| {
        let server = answering(response).await;
        let access = Access::new("sim", "team", "k").at(server.uri());
        let http = Http::new(&access, "https://example.invalid", &lanes, plain).unwrap();
        drop(http.send(&Call::get("/a").lane("bills")).await);
        let waits = |kind: ErrorKind| kind.retry_after().map(|wait| wait.as_secs());
        let bills = http.send(&Call::get("/a").lane("bills")).await.err().and_then(|error| waits(error.kind));
        let sent = server.received_requests().await.unwrap().len();
        drop(http.send(&Call::get("/a")).await);
        (bills, server.received_requests().await.unwrap().len() > sent)
    };
    let body = serde_json::json!({});
    let scarce = r#""minute";r=9;t=41, "hour";r=700;t=1812"#;
    let few = ResponseTemplate::new(200).insert_header("ratelimit", scarce).set_body_json(&body);
    assert_eq!(try_both(few).await, (Some(41), true));
    let refused = ResponseTemplate::new(429).insert_header("retry-after", "30");
    assert_eq!(try_both(refused).await, (Some(30), true));
    let plenty = r#""minute";r=40;t=41, "hour";r=700;t=1812"#;
    let enough = ResponseTemplate::new(200).insert_header("ratelimit", plenty).set_body_json(&body);
    assert_eq!(try_both(enough).await, (None, true));
}

#[tokio::test]
async fn the_providers_clock_is_what_its_last_answer_said() {
    let date = "Mon, 30 Nov 2026 10:07:00 GMT";
    let told = ResponseTemplate::new(200).insert_header("date", date).set_body_json(serde_json::json!({}));
    let of = async |response: ResponseTemplate| {
        let server = answering(response).await;
        let http = http(&server, "k");
        assert_eq!(http.server_time(), None);
        http.send(&Call::get("/a")).await.map(drop).unwrap();
        http.server_time()
    };
    let there = of(told.clone()).await.unwrap();
    let late = there.duration_since("2026-11-30T10:07:00Z".parse().unwrap());
    assert!(!late.is_negative() && late.as_secs() < 5, "{late}");
    assert_eq!(of(told.insert_header("age", "40")).await, None, "a cache's answer is an old one");
}

/// API-12: the wait stands in the words of a failure.
#[rstest]
#[case("Unable to terminate instance. Please try again in 60 seconds.", Some(60))]
#[case("try again in 2 minutes", Some(120))]
#[case("Something went wrong. Please try again later", None)]
fn a_wait_in_words_is_read(#[case] message: &str, #[case] seconds: Option<u64>) {
    assert_eq!(wait_in_words(message), seconds.map(Duration::from_secs));
}

#[test]
fn a_wait_may_be_a_date() {
    let mut headers = HeaderMap::new();
    headers.insert(RETRY_AFTER, HeaderValue::from_static("Mon, 30 Nov 2026 10:00:30 GMT"));
    assert_eq!(retry_after(&headers, "2026-11-30T10:00:00Z".parse().unwrap()), Some(Duration::from_secs(30)));
}

#[rstest]
#[case("https://api.example.invalid", true)]
#[case("http://127.0.0.1:9001", true)]
#[case("http://[::1]:9001", true)]
#[case("http://localhost:9001", true)]
#[case("http://192.0.2.1", false)]
#[case("http://127.0.0.1.example.invalid", false)]
#[case("https://user:pass@example.invalid", false)]
#[case("https://example.invalid/v2", false)]
#[case("ftp://127.0.0.1", false)]
fn plain_http_reaches_loopback_only(#[case] url: &str, #[case] allowed: bool) {
    assert_eq!(base_url(url).is_ok(), allowed);
}

#[test]
fn a_paging_link_gives_path_and_query_only() {
    assert_eq!(path_and_query("https://evil.invalid/v2/pods?page=2").as_deref(), Some("/v2/pods?page=2"));
    assert_eq!(path_and_query("//evil.invalid/x").as_deref(), Some("/x"));
}

#[test]
fn a_cursor_that_comes_again_ends_the_reading() {
    let mut pages = Pages::default();
    assert_eq!(pages.turn(Some("a".into())), Turn::Next("a".into()));
    assert_eq!(pages.turn(Some("a".into())), Turn::Loop);
    assert_eq!(pages.turn(None), Turn::End);
}

#[tokio::test]
async fn a_row_that_cannot_be_read_names_its_field() {
    #[derive(Deserialize)]
    struct Row {
        cost: f64,
    }
    #[derive(Deserialize)]
    struct List {
        pods: Vec<Box<RawValue>>,
    }
    let body = serde_json::json!({"pods": [{"cost": 1.0}, {"cost": {"x": 1}}, {"cost": 2.0}]});
    let server = answering(ResponseTemplate::new(200).set_body_json(body)).await;
    let answer = http(&server, "k").send(&Call::get("/a")).await.map_err(|e| e.kind).unwrap();
    let list: List = answer.read().unwrap();
    let (rows, problems) = answer.rows::<Row>("pods", &list.pods);
    assert_eq!((rows.iter().map(|row| row.cost).collect::<Vec<_>>(), problems.len()), (vec![1.0, 2.0], 1));
    assert_eq!(problems[0].field, "pods[1].cost");
}

#[tokio::test]
async fn two_reads_of_one_lane_keep_their_distance() {
    let server = answering(ResponseTemplate::new(200).set_body_json(serde_json::json!({}))).await;
    let access = Access::new("sim", "team", "k").at(server.uri());
    let lanes = [Lane::new("list", 300)];
    let http = Http::new(&access, "https://example.invalid", &lanes, plain).unwrap();
    let call = Call::get("/a").lane("list");
    let began = std::time::Instant::now();
    let (first, second, third) = tokio::join!(http.send(&call), http.send(&call), http.send(&call));
    assert!(first.is_ok() && second.is_ok() && third.is_ok());
    assert!(began.elapsed() >= Duration::from_millis(600), "{:?}", began.elapsed());
    assert_eq!(server.received_requests().await.unwrap().len(), 3);
}
