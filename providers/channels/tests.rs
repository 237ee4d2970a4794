//! Each service against a server that answers as it does.

use super::*;
use rstest::rstest;
use serde_json::json;
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, ResponseTemplate};

const TOKEN: &str = "fake0000-TESTSECRET-0000";
const SECRET: &str = "FakeSigningSecret0001";

fn text(lines: &[&str]) -> Text {
    Text {
        title: "rentop · 实验室".to_owned(),
        lines: lines.iter().map(|line| line.to_string()).collect(),
        weight: Weight::Money,
        record: json!({ "schema": "rentop.message/1", "text": lines.join("\n") }),
    }
}

/// The path of an address of this service.
fn path(service: Service) -> String {
    match service {
        Service::Json => format!("/in/{TOKEN}"),
        Service::Slack => format!("/services/T000/B000/{TOKEN}"),
        Service::Telegram => format!("/bot77:{TOKEN}"),
        Service::Ntfy => format!("/sub/{TOKEN}"),
        Service::Feishu => format!("/open-apis/bot/v2/hook/{TOKEN}"),
        Service::Dingtalk => format!("/robot/send?access_token={TOKEN}"),
        Service::Wecom => format!("/cgi-bin/webhook/send?key={TOKEN}"),
    }
}

fn hook(service: Service, server: &str) -> Hook {
    let address = SecretString::from(format!("{server}{}", path(service)));
    Hook::new(service, address, Some(SecretString::from(SECRET)), Some("-100200300".to_owned()))
        .unwrap()
        .with_timeout(Duration::from_secs(5))
}

async fn answering(answer: ResponseTemplate) -> MockServer {
    let server = MockServer::start().await;
    Mock::given(any()).respond_with(answer).mount(&server).await;
    server
}

fn at() -> Timestamp {
    Timestamp::from_second(1_767_323_045).unwrap()
}

const OK_OF_FEISHU: &str =
    r#"{"StatusCode":0,"StatusMessage":"success","code":0,"data":{},"msg":"success","Extra":null}"#;
const TOO_FAST: &str =
    r#"{"status":1111,"wait":5,"punish":"deny","errcode":130101,"errmsg":"send too fast, exceed 20 times per minute"}"#;

/// `expected` is `ok`, `refused: why`, or `later SECONDS: why` with `?` where it may have arrived.
#[rstest]
#[case(Service::Feishu, 200, "", OK_OF_FEISHU, "ok")]
#[case(Service::Feishu, 200, "", r#"{"StatusCode":0,"StatusMessage":"success"}"#, "ok")]
#[case(Service::Feishu, 200, "", r#"{"code":9499,"msg":"Bad Request"}"#, "refused: 9499: Bad Request")]
#[case(
    Service::Feishu,
    200,
    "",
    r#"{"code":19021,"msg":"sign match fail"}"#,
    "refused: 19021: sign match fail (the secret is not the bot's, or this clock is off)"
)]
#[case(
    Service::Feishu,
    200,
    "",
    r#"{"code":19022,"msg":"Ip Not Allowed"}"#,
    "refused: 19022: Ip Not Allowed (the bot takes messages of some addresses only)"
)]
#[case(
    Service::Feishu,
    200,
    "",
    r#"{"code":19024,"msg":"Key Words Not Found"}"#,
    "refused: 19024: Key Words Not Found (the bot wants a keyword: make `rentop` one)"
)]
#[case(Service::Feishu, 200, "", r#"{"code":11232,"msg":"frequency limited"}"#, "later 5: 11232: frequency limited")]
#[case(
    Service::Feishu,
    429,
    "x-ogw-ratelimit-reset: 42",
    r#"{"code":99991400,"msg":"request trigger frequency limit"}"#,
    "later 42: 99991400: request trigger frequency limit"
)]
#[case(
    Service::Feishu,
    400,
    "x-ogw-ratelimit-reset: 3",
    r#"{"code":99991400,"msg":"request trigger frequency limit"}"#,
    "later 3: 99991400: request trigger frequency limit"
)]
#[case(Service::Feishu, 200, "", r#"{"code":77,"msg":"new"}"#, "later: 77: new")]
#[case(Service::Feishu, 200, "", "<html>log in</html>", "later: not an answer of this service: HTTP 200")]
#[case(Service::Feishu, 502, "", "<html>", "later?: HTTP 502")]
#[case(Service::Dingtalk, 200, "", r#"{"errcode":0,"errmsg":"ok"}"#, "ok")]
#[case(
    Service::Dingtalk,
    200,
    "",
    r#"{"errcode":310000,"errmsg":"sign not match"}"#,
    "refused: 310000: sign not match (a security setting of the bot: keyword, secret or address)"
)]
#[case(
    Service::Dingtalk,
    200,
    "",
    r#"{"errcode":300001,"errmsg":"token is not exist"}"#,
    "refused: 300001: token is not exist"
)]
#[case(Service::Dingtalk, 200, "", TOO_FAST, "later 600: 130101: send too fast, exceed 20 times per minute")]
#[case(Service::Dingtalk, 200, "", r#"{"errcode":-1,"errmsg":"busy"}"#, "later: -1: busy")]
#[case(Service::Wecom, 200, "", r#"{"errcode":0,"errmsg":"ok"}"#, "ok")]
#[case(
    Service::Wecom,
    200,
    "",
    r#"{"errcode":93000,"errmsg":"invalid webhook url, hint: [fake0000-TESTSECRET-0000]"}"#,
    "refused: 93000: invalid webhook url, hint: [***] (the key is wrong, or the bot was taken out of the group)"
)]
#[case(
    Service::Wecom,
    200,
    "",
    r#"{"errcode":45009,"errmsg":"api freq out of limit"}"#,
    "later 60: 45009: api freq out of limit"
)]
#[case(Service::Wecom, 200, "", r#"{"errcode":40058,"errmsg":"too long"}"#, "refused: 40058: too long")]
#[case(Service::Slack, 200, "", "ok", "ok")]
#[case(Service::Slack, 400, "", "invalid_payload", "refused: HTTP 400: invalid_payload")]
#[case(Service::Slack, 404, "", "no_service", "refused: HTTP 404: no_service")]
#[case(Service::Slack, 410, "", "channel_is_archived", "refused: HTTP 410: channel_is_archived")]
#[case(Service::Slack, 429, "retry-after: 30", "rate_limited", "later 30: HTTP 429: rate_limited")]
#[case(Service::Slack, 200, "", "<html>portal</html>", "later: not an answer of this service: HTTP 200")]
#[case(Service::Telegram, 200, "", r#"{"ok":true,"result":{"message_id":7}}"#, "ok")]
#[case(
    Service::Telegram,
    429,
    "",
    r#"{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 17","parameters":{"retry_after":17}}"#,
    "later 17: 429: Too Many Requests: retry after 17"
)]
#[case(
    Service::Telegram,
    400,
    "",
    r#"{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}"#,
    "refused: 400: Bad Request: chat not found"
)]
#[case(
    Service::Telegram,
    401,
    "",
    r#"{"ok":false,"error_code":401,"description":"Unauthorized"}"#,
    "refused: 401: Unauthorized (the token of the address is wrong)"
)]
#[case(
    Service::Telegram,
    403,
    "",
    r#"{"ok":false,"error_code":403,"description":"Forbidden: bot was kicked"}"#,
    "refused: 403: Forbidden: bot was kicked"
)]
#[case(Service::Ntfy, 200, "", r#"{"id":"fake0000AAAA","event":"message"}"#, "ok")]
#[case(Service::Ntfy, 403, "", r#"{"code":40301,"http":403,"error":"forbidden"}"#, "refused: 40301: forbidden")]
#[case(
    Service::Ntfy,
    429,
    "retry-after: 9",
    r#"{"code":42901,"http":429,"error":"limit reached"}"#,
    "later 9: 42901: limit reached"
)]
#[case(
    Service::Ntfy,
    500,
    "",
    r#"{"code":50001,"http":500,"error":"internal"}"#,
    "later?: HTTP 500: {\"code\":50001,\"http\":500,\"error\":\"internal\"}"
)]
#[case(Service::Json, 202, "", "", "ok")]
#[case(Service::Json, 204, "", "", "ok")]
#[case(Service::Json, 503, "retry-after: 8", "", "later 8: HTTP 503")]
#[case(Service::Json, 504, "", "", "later?: HTTP 504")]
#[case(Service::Json, 413, "", "", "too long: HTTP 413")]
#[case(
    Service::Json,
    302,
    "location: https://elsewhere.invalid/",
    "",
    "refused: HTTP 302: it sends elsewhere, which is not followed; correct the address"
)]
#[tokio::test]
async fn each_answer_is_read_as_its_service_means_it(
    #[case] service: Service,
    #[case] status: u16,
    #[case] header: &str,
    #[case] body: &str,
    #[case] expected: &str,
) {
    let mut answer = ResponseTemplate::new(status).set_body_string(body);
    if let Some((name, value)) = header.split_once(": ") {
        answer = answer.insert_header(name, value);
    }
    let server = answering(answer).await;
    let told = match hook(service, &server.uri()).send(&text(&["idle"]), at()).await {
        Ok(()) => "ok".to_owned(),
        Err(Undelivered::Refused { why }) => format!("refused: {why}"),
        Err(Undelivered::TooLong { why }) => format!("too long: {why}"),
        Err(Undelivered::Later { wait, why, perhaps }) => {
            let wait = wait.map(|wait| format!(" {}", wait.as_secs())).unwrap_or_default();
            format!("later{}{wait}: {why}", if perhaps { "?" } else { "" })
        }
    };
    assert_eq!(told, expected);
    assert_eq!(server.received_requests().await.unwrap().len(), 1, "nothing is sent twice by itself");
}

async fn sent(service: Service, text: &Text) -> (reqwest::Url, serde_json::Value, usize) {
    let server = answering(ResponseTemplate::new(200).set_body_string("{}")).await;
    drop(hook(service, &server.uri()).send(text, at()).await);
    let request = server.received_requests().await.unwrap().remove(0);
    assert_eq!(request.headers["content-type"], "application/json");
    (request.url, serde_json::from_slice(&request.body).unwrap(), request.body.len())
}

#[rstest]
#[case(Service::Json, "/in/fake0000-TESTSECRET-0000", json!({ "schema": "rentop.message/1", "text": "<at 1>\nb & c" }))]
#[case(Service::Slack, "/services/T000/B000/fake0000-TESTSECRET-0000",
    json!({ "text": "rentop · 实验室\n&lt;at 1&gt;\nb &amp; c" }))]
#[case(Service::Telegram, "/bot77:fake0000-TESTSECRET-0000/sendMessage",
    json!({ "chat_id": -100200300, "text": "rentop · 实验室\n<at 1>\nb & c", "link_preview_options": { "is_disabled": true } }))]
#[case(Service::Ntfy, "/sub/",
    json!({ "topic": "fake0000-TESTSECRET-0000", "title": "rentop · 实验室", "message": "<at 1>\nb & c", "priority": 4 }))]
#[case(Service::Feishu, "/open-apis/bot/v2/hook/fake0000-TESTSECRET-0000",
    json!({ "msg_type": "text", "content": { "text": "rentop · 实验室\n< at 1>\nb & c" },
        "timestamp": "1767323045", "sign": "XTs1pwlooYzYjxA+VVz6sPvRRyh9QvOk8r/MUNf+oNc=" }))]
#[case(Service::Dingtalk, "/robot/send",
    json!({ "msgtype": "text", "text": { "content": "rentop · 实验室\n<at 1>\nb & c" }, "at": { "isAtAll": false } }))]
#[case(Service::Wecom, "/cgi-bin/webhook/send",
    json!({ "msgtype": "text", "text": { "content": "rentop · 实验室\n<at 1>\nb & c" } }))]
#[tokio::test]
async fn each_body_is_what_its_service_takes(
    #[case] service: Service,
    #[case] path: &str,
    #[case] expected: serde_json::Value,
) {
    let (url, body, _) = sent(service, &text(&["<at 1>", "b & c"])).await;
    assert_eq!((url.path(), body), (path, expected));
}

/// As many pieces as a service takes at once fit, however long each is, and the last one is there.
#[tokio::test]
async fn what_goes_out_together_fits() {
    let long = "闲".repeat(400);
    for service in Service::ALL {
        let mut lines = vec![long.as_str(); service.at_once() - 1];
        lines.push("the last one");
        let (_, body, bytes) = sent(service, &text(&lines)).await;
        let told = body.to_string();
        assert!(told.contains("the last one"), "{service:?}");
        let limit = match service {
            Service::Wecom => 2048 + 100,
            Service::Telegram | Service::Ntfy => 4096 + 200,
            _ => 20_000,
        };
        assert!(bytes <= limit, "{service:?}: {bytes}");
    }
}

#[tokio::test]
async fn what_is_too_long_is_cut_between_characters() {
    for service in Service::ALL.into_iter().filter(|service| *service != Service::Json) {
        // Of the dearest characters: three bytes, or an escape.
        for piece in ["闲", "<", "\"", "&", "<at"] {
            let (_, body, bytes) = sent(service, &text(&[&piece.repeat(60_000)])).await;
            let told = ["/text", "/message", "/content/text", "/text/content"];
            let told = told.iter().find_map(|at| body.pointer(at)?.as_str()).unwrap();
            assert!(told.ends_with('…') && told.len() <= service.most_bytes(), "{service:?} {piece}: {}", told.len());
            if matches!(service, Service::Feishu | Service::Dingtalk) {
                assert!(bytes <= 20_000, "{service:?}: {bytes}");
            }
        }
    }
}

#[test]
fn a_cut_keeps_whole_characters() {
    for (text, most, expected) in
        [("abc", 3, "abc"), ("abcd", 3, "…"), ("闲置中", 9, "闲置中"), ("闲置中间", 9, "闲置…"), ("闲置中间", 8, "闲…")]
    {
        assert_eq!(cut(text, most), expected);
    }
}

/// The group got another number: it is told there, now and from then on.
#[tokio::test]
async fn a_chat_that_moved_is_followed() {
    let server = MockServer::start().await;
    let moved =
        r#"{"ok":false,"error_code":400,"description":"upgraded","parameters":{"migrate_to_chat_id":-1000000000001}}"#;
    let answer = move |request: &wiremock::Request| {
        let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
        match body["chat_id"].as_i64() {
            Some(-1000000000001) => ResponseTemplate::new(200).set_body_string(r#"{"ok":true,"result":{}}"#),
            _ => ResponseTemplate::new(400).set_body_string(moved),
        }
    };
    Mock::given(any()).respond_with(answer).mount(&server).await;
    let hook = hook(Service::Telegram, &server.uri());
    for _ in 0..2 {
        hook.send(&text(&["idle"]), at()).await.unwrap();
    }
    assert_eq!(server.received_requests().await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_token_of_ntfy_goes_into_the_header() {
    let server = answering(ResponseTemplate::new(200).set_body_string(r#"{"id":"x"}"#)).await;
    let address = SecretString::from(format!("{}/topic", server.uri()));
    let hook = Hook::new(Service::Ntfy, address, Some(SecretString::from("tk_fake")), None).unwrap();
    hook.send(&text(&["idle"]), at()).await.unwrap();
    assert_eq!(server.received_requests().await.unwrap()[0].headers["authorization"], "Bearer tk_fake");
}

/// Whatever goes wrong, no part of the address and no secret is told, not even one that the service repeats.
#[tokio::test]
async fn no_error_holds_the_address_or_the_secret() {
    let leak = format!("<b>no {SECRET} at http://x/{TOKEN}?access_token={TOKEN} bot77:{TOKEN}");
    for service in Service::ALL {
        let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut told = vec![hook(service, &format!("http://{gone}")).send(&text(&["x"]), at()).await];
        for body in [
            leak.clone(),
            format!("why: {leak}"),
            json!({ "code": 40301, "errcode": 93000, "ok": false, "error_code": 403, "msg": leak, "errmsg": leak,
                "description": leak, "error": leak })
            .to_string(),
        ] {
            let server = answering(ResponseTemplate::new(404).set_body_string(body)).await;
            told.push(hook(service, &server.uri()).send(&text(&["x"]), at()).await);
        }
        let debug = format!("{told:?} {:?}", hook(service, "http://127.0.0.1:1"));
        assert!(told.iter().all(Result::is_err), "{debug}");
        for secret in [TOKEN, SECRET, "TESTSECRET"] {
            assert!(!debug.contains(secret), "{service:?}: {debug}");
        }
    }
}

#[tokio::test]
async fn a_service_that_does_not_answer_may_have_taken_it() {
    let server = answering(ResponseTemplate::new(200).set_delay(Duration::from_secs(30))).await;
    let hook = hook(Service::Json, &server.uri()).with_timeout(Duration::from_millis(50));
    let why = "no answer within 0.05 s".to_owned();
    assert_eq!(hook.send(&text(&["x"]), at()).await, Err(Undelivered::Later { wait: None, why, perhaps: true }));
}

#[tokio::test]
async fn a_service_that_is_not_there_has_taken_nothing() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let outcome = hook(Service::Json, &format!("http://{gone}")).send(&text(&["x"]), at()).await;
    assert!(matches!(outcome, Err(Undelivered::Later { perhaps: false, .. })), "{outcome:?}");
}

#[tokio::test]
async fn an_endless_answer_is_not_read_to_its_end() {
    let server = answering(ResponseTemplate::new(200).set_body_string("ok ".repeat(1_000_000))).await;
    let outcome = hook(Service::Slack, &server.uri()).send(&text(&["x"]), at()).await;
    assert!(matches!(outcome, Err(Undelivered::Later { .. })), "{outcome:?}");
}

#[rstest]
#[case(Service::Json, "http://example.com/TESTSECRET", "plain http would show the address to others; use https")]
#[case(Service::Json, "ftp://example.com/TESTSECRET", "the address begins with neither https nor http")]
#[case(Service::Json, "TESTSECRET", "the address is no URL: relative URL without a base")]
#[case(Service::Telegram, "https://api.telegram.org/TESTSECRET", "an address of Telegram ends with /bot<id>:<token>")]
#[case(Service::Ntfy, "https://ntfy.sh/", "an address of ntfy ends with /<topic>")]
#[case(Service::Ntfy, "https://ntfy.sh/TEST SECRET", "an address of ntfy ends with /<topic>")]
fn an_address_that_cannot_be_used_is_told_without_it(
    #[case] service: Service,
    #[case] address: &str,
    #[case] expected: &str,
) {
    let hook = Hook::new(service, SecretString::from(address), None, Some("1".to_owned()));
    assert_eq!(hook.err().as_deref(), Some(expected));
}

#[test]
fn telegram_wants_to_know_the_chat() {
    let hook = Hook::new(Service::Telegram, SecretString::from("https://api.telegram.org/bot1:fake"), None, None);
    assert_eq!(hook.err().as_deref(), Some("`to` is missing: the number of the chat, or @channel"));
}
