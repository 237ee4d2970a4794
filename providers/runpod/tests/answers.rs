//! Answers over real HTTP: what each makes of a poll, a lookup, an action, a bill.

use std::time::Duration;

use wiremock::matchers::{body_string_contains, method, path, query_param, query_param_is_missing};
use wiremock::{Mock, MockBuilder, MockServer, ResponseTemplate};

use super::*;
use crate::model::Attachment;
use crate::provider::Reading;

fn json_of(text: &str) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_raw(text, "application/json")
}

fn problem(status: u16, title: &str, detail: &str) -> ResponseTemplate {
    let body = json!({ "title": title, "status": status, "detail": detail }).to_string();
    ResponseTemplate::new(status).set_body_raw(body, "application/problem+json")
}

fn get(address: &str) -> MockBuilder {
    Mock::given(method("GET")).and(path(address))
}

fn graph(part: &str) -> MockBuilder {
    Mock::given(method("POST")).and(path("/graphql")).and(body_string_contains(part))
}

async fn with(mocks: impl IntoIterator<Item = Mock>) -> MockServer {
    let server = MockServer::start().await;
    for mock in mocks {
        mock.mount(&server).await;
    }
    server
}

fn account(server: &MockServer) -> Arc<dyn Provider> {
    let mut access = Access::new("runpod", "team", "k").at(server.uri());
    access.timeout = Duration::from_millis(600);
    Arc::new(RunPod::new(&access, &FAST).unwrap())
}

fn failure<T: std::fmt::Debug>(part: &Part<T>) -> &ErrorKind {
    match part {
        Part::Failed(error) => &error.kind,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_empty_account_is_empty_and_complete() {
    let server = with([get("/v2/pods").respond_with(json_of(r#"{"pods":[]}"#))]).await;
    assert_eq!(account(&server).poll(Ask::INSTANCES, now()).await.instances, Part::complete(vec![]));
}

#[tokio::test]
async fn a_poll_reads_lists_money_and_extras_together() {
    let server = with([
        get("/v2/pods").and(query_param("includeClusterPods", "true")).respond_with(json_of(PODS)),
        get("/v2/network-volumes").respond_with(json_of(include_str!("../fixtures/network_volumes.json"))),
        get("/v2/serverless").respond_with(json_of(r#"{"endpoints":[{"id":"e1","networkVolumes":["nvvol0000b"]}]}"#)),
        graph("clientBalance").respond_with(json_of(include_str!("../fixtures/graphql_myself.json"))),
        graph("latestTelemetry").respond_with(json_of(include_str!("../fixtures/graphql_pods.json"))),
    ])
    .await;
    let poll = account(&server).poll(Ask::ALL, now()).await;
    assert_eq!(poll.instances.rows().len(), 14);
    let trainer = &poll.instances.rows()[0];
    let card = &trainer.usage.as_ref().unwrap().gpus[0];
    assert_eq!((card.temperature_c, card.power_watts), (Some(66.0), Some(401.5)));
    assert!(trainer.note.as_deref().unwrap().starts_with("Rented by User"));
    let Reading::Known(balance) = &poll.balance else { panic!("{:?}", poll.balance) };
    assert_eq!((balance.cash.amount, balance.provider_burn.unwrap().amount()), (dec("43.17"), dec("1.274")));
    assert_eq!(poll.tenant, Reading::Known(crate::model::Tenant { id: "user_fake0001".to_owned() }));
    let storage = poll.storage.rows();
    let users = ["a3podeight0003", "a8podexitnv008"].map(ResourceId::from).to_vec();
    assert_eq!(storage[0].attachment, Attachment::To(users));
    assert_eq!(storage[1].attachment, Attachment::Somewhere, "a serverless endpoint mounts it");
    assert!(storage.iter().all(|item| item.delete == Offer::No(Refusal::InUse)));
}

#[tokio::test]
async fn an_instance_costs_what_its_savings_plan_leaves_and_keeps_it_when_graphql_stumbles() {
    let row = json!({ "pods": [{ "id": "b7podsaved0007", "status": "RUNNING", "cost": 0.69, "mounts": {}, "disk": 0 },
        { "id": "b6podspot00006", "status": "RUNNING", "cost": 0.34, "mounts": {}, "disk": 0 }] });
    let server = with([
        get("/v2/pods").respond_with(json_of(&row.to_string())),
        graph("pods").respond_with(json_of(include_str!("../fixtures/graphql_pods.json"))).up_to_n_times(1),
        graph("pods").respond_with(ResponseTemplate::new(404)).expect(1),
    ])
    .await;
    let account = account(&server);
    for minute in 0..3 {
        let poll = account.poll(Ask::INSTANCES, now() + jiff::SignedDuration::from_mins(minute)).await;
        assert_eq!(compute(&poll.instances.rows()[0].rates), dec("0.55"), "poll {minute}");
        assert_eq!(poll.instances.rows()[1].market, Market::Spot, "poll {minute}");
    }
}

/// GraphQL is going away: without it the balance is not told, and nothing else changes.
#[rstest]
#[case(ResponseTemplate::new(404).set_body_string("404 page not found"))]
#[case(problem(404, "Not Found", "no such route"))]
#[case(problem(410, "Gone", "GraphQL was retired"))]
#[case(json_of(r#"{"errors":[{"message":"Cannot query field"}]}"#))]
#[case(json_of(r#"{"errors":[{"message":"no"}],"data":null}"#))]
#[case(json_of(r#"{"data":{"myself":null}}"#))]
#[case(ResponseTemplate::new(400).set_body_json(json!({ "errors": [{ "message": "Cannot query field" }] })))]
#[case(ResponseTemplate::new(200).set_body_raw("<html>moved</html>", "text/html"))]
#[case(ResponseTemplate::new(302).insert_header("location", "https://example.invalid/"))]
#[tokio::test]
async fn a_retired_graphql_tells_no_balance_and_harms_nothing(#[case] answer: ResponseTemplate) {
    let server =
        with([get("/v2/pods").respond_with(json_of(PODS)), Mock::given(path("/graphql")).respond_with(answer)]).await;
    let poll = account(&server).poll(Ask { storage: false, money: true }, now()).await;
    assert_eq!((&poll.balance, &poll.tenant), (&Reading::NotTold, &Reading::NotTold));
    let Part::Listed { rows, problems } = &poll.instances else { panic!("{:?}", poll.instances) };
    assert!(problems.is_empty());
    assert_eq!(rows[0].usage.as_ref().and_then(|usage| usage.mean_utilization()), Some(0.94));
}

/// BAL-02: a balance that cannot be read is unknown, never 0.
#[rstest]
#[case(ResponseTemplate::new(500).set_body_json(json!({ "message": "error" })))]
#[case(ResponseTemplate::new(429).insert_header("retry-after", "30"))]
#[case(json_of(r#"{"data":{"myself":{"id":"u","clientBalance":null}}}"#))]
#[case(json_of(r#"{"data":{"myself":{"id":"u","clientBalance":"n/a"}}}"#))]
#[case(json_of(r#"{"data":{"myself":{"id":"u"}}}"#))]
#[case(ResponseTemplate::new(401).set_body_json(json!({ "errors": [{ "message": "Not authenticated" }] })))]
#[case(json_of("{}").set_delay(Duration::from_secs(5)))]
#[tokio::test]
async fn a_balance_that_cannot_be_read_is_unknown(#[case] answer: ResponseTemplate) {
    let server = with([
        get("/v2/pods").respond_with(json_of(PODS)),
        graph("clientBalance").respond_with(answer),
        graph("pods").respond_with(json_of(r#"{"data":{"myself":{"pods":[]}}}"#)),
    ])
    .await;
    let poll = account(&server).poll(Ask { storage: false, money: true }, now()).await;
    assert!(matches!(poll.balance, Reading::Failed(_)), "{:?}", poll.balance);
    assert_eq!(poll.instances.rows().len(), 14);
}

#[tokio::test]
async fn a_balance_may_be_negative_or_nothing() {
    for (told, cash) in [("-1.5", dec("-1.5")), ("0.0", dec("0"))] {
        let body = format!(r#"{{"data":{{"myself":{{"id":"u","clientBalance":{told},"currentSpendPerHr":null}}}}}}"#);
        let server = with([
            get("/v2/pods").respond_with(json_of(r#"{"pods":[]}"#)),
            graph("clientBalance").respond_with(json_of(&body)),
        ])
        .await;
        let poll = account(&server).poll(Ask { storage: false, money: true }, now()).await;
        let Reading::Known(balance) = poll.balance else { panic!("{:?}", poll.balance) };
        assert_eq!((balance.cash.amount, balance.provider_burn), (cash, None));
    }
}

/// API-02: pages are followed where there are any. UNSURE on this wire, so they are optional.
#[tokio::test]
async fn all_pages_are_read() {
    let first = get("/v2/pods").and(query_param_is_missing("cursor"));
    let second = get("/v2/pods").and(query_param("cursor", "ZmFrZS1jdXJzb3ItMQ"));
    let server = with([
        first.respond_with(json_of(include_str!("../fixtures/pods_page1_of_2.json"))).expect(1),
        second.respond_with(json_of(include_str!("../fixtures/pods_page2_of_2.json"))).expect(1),
    ])
    .await;
    let poll = account(&server).poll(Ask::INSTANCES, now()).await;
    let Part::Listed { rows, problems } = poll.instances else { panic!() };
    assert_eq!((rows.len(), problems.len()), (3, 0));
}

/// API-03: a cursor that comes again ends the reading; the rows stand once, the list is not complete.
#[tokio::test]
async fn a_repeated_cursor_leaves_the_list_incomplete() {
    let rows: Vec<_> = (0..25).map(|n| json!({ "id": format!("p{n}"), "status": "RUNNING", "cost": 0.4 })).collect();
    let body = json!({ "pods": rows, "pagination": { "nextCursor": "same", "hasNextPage": true } }).to_string();
    let server = with([get("/v2/pods").respond_with(json_of(&body)).expect(1..=3)]).await;
    let Part::Listed { rows, problems } = account(&server).poll(Ask::INSTANCES, now()).await.instances else {
        panic!()
    };
    assert_eq!((rows.len(), problems.len()), (25, 1));
    assert!(problems[0].message.contains("repeats"), "{}", problems[0]);
}

#[tokio::test]
async fn a_promised_page_without_a_cursor_leaves_the_list_incomplete() {
    let body = r#"{"pods":[],"pagination":{"nextCursor":null,"hasNextPage":true}}"#;
    let server = with([get("/v2/pods").respond_with(json_of(body))]).await;
    let poll = account(&server).poll(Ask::INSTANCES, now()).await;
    assert!(matches!(poll.instances, Part::Listed { ref problems, .. } if problems.len() == 1));
}

#[tokio::test]
async fn a_page_that_does_not_come_fails_the_poll() {
    let server = with([
        get("/v2/pods").and(query_param("cursor", "ZmFrZS1jdXJzb3ItMQ")).respond_with(problem(422, "x", "bad cursor")),
        get("/v2/pods").respond_with(json_of(include_str!("../fixtures/pods_page1_of_2.json"))),
    ])
    .await;
    assert!(matches!(
        failure(&account(&server).poll(Ask::INSTANCES, now()).await.instances),
        ErrorKind::Refused { .. }
    ));
}

#[tokio::test]
async fn one_unreadable_row_is_a_problem_and_the_rest_goes_on() {
    let body = json!({ "pods": [{ "id": "p0", "status": "RUNNING", "cost": 1 }, { "id": "p1", "cost": { "usd": 1 } },
        { "id": "p2", "status": "RUNNING", "cost": "n/a" }, { "id": "../x" }, 5] });
    let server = with([get("/v2/pods").respond_with(json_of(&body.to_string()))]).await;
    let Part::Listed { rows, problems } = account(&server).poll(Ask::INSTANCES, now()).await.instances else {
        panic!()
    };
    let fields: Vec<_> = problems.iter().map(|problem| problem.field.as_str()).collect();
    assert_eq!(rows.len(), 1);
    assert_eq!(fields, ["pods[1].cost", "pods[2].cost", "pods[3].id", "pods[4]"]);
}

/// API-01, API-05, API-06, API-13 and the digest's list of failures: never an empty account.
#[rstest]
#[case(problem(401, "Unauthorized", "missing bearer token"), "key refused")]
#[case(problem(403, "Forbidden", "access denied"), "lacks the right")]
#[case(problem(404, "Not Found", "no route"), "retired")]
#[case(problem(410, "Gone", "v2 was retired"), "retired")]
#[case(problem(500, "Internal Server Error", "unexpected error"), "HTTP 500: unexpected error")]
#[case(ResponseTemplate::new(502).set_body_raw("<html>502</html>", "text/html"), "HTTP 502")]
#[case(ResponseTemplate::new(200).set_body_raw("<html>login</html>", "text/html"), "HTTP 200, not JSON")]
#[case(ResponseTemplate::new(403).set_body_raw("<html>blocked</html>", "text/html"), "HTTP 403, not JSON")]
#[case(json_of(r#"{"pods":null}"#), "cannot read `pods`")]
#[case(json_of(r#"{"error":"something broke"}"#), "missing field `pods`")]
#[case(json_of(r#"{"pods":[{"id":"p0""#), "not JSON")]
#[case(json_of(r#"{"pods":[]}"#).set_delay(Duration::from_secs(5)), "no answer within")]
#[case(ResponseTemplate::new(302).insert_header("location", "https://example.invalid/"), "redirected")]
#[tokio::test]
async fn a_failed_list_is_a_failure_and_never_an_empty_account(#[case] answer: ResponseTemplate, #[case] words: &str) {
    let server = with([get("/v2/pods").respond_with(answer)]).await;
    let poll = account(&server).poll(Ask::INSTANCES, now()).await;
    let shown = failure(&poll.instances).to_string();
    assert!(shown.contains(words), "{shown}");
}

#[tokio::test]
async fn the_longest_empty_window_is_waited_for() {
    let windows = r#""minute";r=0;t=12, "hour";r=0;t=1812, "day";r=300;t=45012"#;
    let refused = problem(429, "Too Many Requests", "rate limit exceeded for the hour window")
        .insert_header("retry-after", "12")
        .insert_header("ratelimit", windows);
    let server = with([get("/v2/pods").respond_with(refused).expect(1)]).await;
    let poll = account(&server).poll(Ask::INSTANCES, now()).await;
    assert_eq!(failure(&poll.instances).retry_after(), Some(Duration::from_secs(1812)));
}

/// A volume is called unattached only where that is known.
#[rstest]
#[case(json_of(r#"{"pods":[]}"#), json_of(r#"{"endpoints":[]}"#), Attachment::To(vec![]), true)]
#[case(json_of(r#"{"pods":[]}"#), problem(403, "Forbidden", "access denied"), Attachment::To(vec![]), false)]
#[case(problem(401, "Unauthorized", "x"), json_of(r#"{"endpoints":[]}"#), Attachment::Unknown, false)]
#[case(json_of(r#"{"pods":[{"id":5}]}"#), json_of(r#"{"endpoints":[]}"#), Attachment::Unknown, false)]
#[tokio::test]
async fn use_that_is_not_fully_known_is_a_risk(
    #[case] pods: ResponseTemplate,
    #[case] endpoints: ResponseTemplate,
    #[case] attachment: Attachment,
    #[case] sure: bool,
) {
    let volumes = r#"{"networkVolumes":[{"id":"v1","name":"data","size":100,"dataCenter":"X","type":"STANDARD"}]}"#;
    let server = with([
        get("/v2/pods").respond_with(pods),
        get("/v2/network-volumes").respond_with(json_of(volumes)),
        get("/v2/serverless").respond_with(endpoints),
    ])
    .await;
    let poll = account(&server).poll(Ask { storage: true, money: false }, now()).await;
    let item = &poll.storage.rows()[0];
    assert_eq!(item.attachment, attachment);
    let delete = effect(&item.delete);
    assert_eq!(delete.risks.is_empty(), sure);
    assert_eq!((delete.lost[0].kind, delete.lost[0].size_gb), (DataKind::Contents, Some(dec("100"))));
}

/// API-04: no such id is what the service itself says, for one id; never a refused key or a gateway's page.
#[rstest]
#[case(problem(404, "Not Found", "pod not found"), Ok(()))]
#[case(problem(401, "Unauthorized", "missing bearer token"), Err("key refused"))]
#[case(problem(403, "Forbidden", "access denied"), Err("lacks the right"))]
#[case(ResponseTemplate::new(404), Err("HTTP 404, not JSON"))]
#[case(ResponseTemplate::new(404).set_body_raw("<html>404</html>", "text/html"), Err("HTTP 404, not JSON"))]
#[case(ResponseTemplate::new(404).set_body_json(json!({ "message": "no Route matched" })), Err("HTTP 404"))]
#[case(problem(410, "Gone", "v2 was retired"), Err("retired"))]
#[case(json_of(r#"{"id":"other","status":"RUNNING"}"#), Err("another resource"))]
#[case(json_of("null"), Err("cannot read"))]
#[tokio::test]
async fn no_such_id_is_only_what_the_service_says(
    #[case] answer: ResponseTemplate,
    #[case] expected: Result<(), &str>,
) {
    let server = with([Mock::given(method("GET")).respond_with(answer)]).await;
    let account = account(&server);
    for kind in [ResourceKind::Instance, ResourceKind::Storage] {
        match (account.lookup(kind, &"p0".into(), now()).await, expected) {
            (Ok(found), Ok(())) => assert_eq!(found, Found::NoSuchId),
            (Err(error), Err(words)) => assert!(error.to_string().contains(words), "{error}"),
            (other, _) => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn an_id_from_elsewhere_sends_nothing() {
    let server = with([]).await;
    let account = account(&server);
    let error = account.act(Action::Release, &"../network-volumes/v1".into()).await.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Unusable { .. }), "{error}");
    assert!(account.lookup(ResourceKind::Instance, &"a/../b".into(), now()).await.is_err());
    assert!(server.received_requests().await.unwrap().is_empty());
}

fn change(http_method: &str, address: &str) -> MockBuilder {
    Mock::given(method(http_method)).and(path(address))
}

#[rstest]
#[case(Action::Stop, "stop")]
#[case(Action::Start, "start")]
#[case(Action::Restart, "restart")]
#[tokio::test]
async fn an_action_is_one_request_with_one_word(#[case] action: Action, #[case] word: &str) {
    let stopped = include_str!("../fixtures/action_stop_success.json");
    let server = with([change("POST", "/v2/pods/p0/action").respond_with(json_of(stopped)).expect(1)]).await;
    assert_eq!(account(&server).act(action, &"p0".into()).await, Ok(Accepted::Done));
    let sent: Value = serde_json::from_slice(&server.received_requests().await.unwrap()[0].body).unwrap();
    assert_eq!(sent, json!({ "action": word }));
}

#[rstest]
#[case(Action::Release, "/v2/pods/p0")]
#[case(Action::Delete, "/v2/network-volumes/p0")]
#[tokio::test]
async fn what_is_already_gone_was_so_already(#[case] action: Action, #[case] address: &str) {
    let server = with([
        change("DELETE", address).respond_with(ResponseTemplate::new(204)).up_to_n_times(1),
        change("DELETE", address).respond_with(problem(404, "Not Found", "pod not found")).expect(1),
    ])
    .await;
    let account = account(&server);
    assert_eq!(account.act(action, &"p0".into()).await, Ok(Accepted::Done));
    assert_eq!(account.act(action, &"p0".into()).await, Ok(Accepted::AlreadySo));
}

/// A 409 says nothing about why: the state is read, and only the wished one counts as "already so".
#[rstest]
#[case(Action::Stop, "EXITED", true)]
#[case(Action::Stop, "RUNNING", false)]
#[case(Action::Start, "STARTING", true)]
#[case(Action::Start, "EXITED", false)]
#[case(Action::Restart, "RUNNING", false)]
#[tokio::test]
async fn a_conflict_is_resolved_by_reading(#[case] action: Action, #[case] status: &str, #[case] already: bool) {
    let conflict = problem(409, "Conflict", "action not valid for current pod status");
    let row = json!({ "id": "p0", "status": status }).to_string();
    let server = with([
        change("POST", "/v2/pods/p0/action").respond_with(conflict).expect(1),
        get("/v2/pods/p0").respond_with(json_of(&row)).expect(1),
    ])
    .await;
    match account(&server).act(action, &"p0".into()).await {
        Ok(accepted) => assert!(already && accepted == Accepted::AlreadySo),
        Err(error) => assert!(!already && error.to_string().contains("not valid"), "{error}"),
    }
}

/// LIFE-06, LIFE-07, LIFE-11: a start that found no GPU is a refusal, whatever the status around its words.
#[rstest]
#[case(problem(400, "Bad Request", "There are not enough free GPUs on the host machine to start this pod."))]
#[case(ResponseTemplate::new(400).set_body_json(json!({ "error": "start pod: There are not enough free GPUs on the host machine to start this pod.", "status": 400 })))]
#[case(ResponseTemplate::new(500).set_body_json(json!({ "error": "There are not enough free GPUs on the host machine to start this pod." })))]
#[tokio::test]
async fn a_start_without_a_free_gpu_is_refused(#[case] answer: ResponseTemplate) {
    let server = with([change("POST", "/v2/pods/p0/action").respond_with(answer).expect(1)]).await;
    let error = account(&server).act(Action::Start, &"p0".into()).await.unwrap_err();
    assert!(matches!(&error.kind, ErrorKind::Refused { code: Some(code), .. } if code == NO_FREE_GPU), "{error:?}");
    assert!(error.to_string().contains("not enough free GPUs") && !error.kind.outcome_unknown());
}

/// API-10, API-12: sent once, and the outcome is unknown unless the answer names a wait.
#[rstest]
#[case(500, "Something went wrong. Please try again later or contact support.", true, None)]
#[case(500, "Unable to terminate instance. Please try again in 60 seconds.", false, Some(60))]
#[case(402, "insufficient balance", false, None)]
#[case(422, "Request validation failed.", false, None)]
#[tokio::test]
async fn a_failed_change_is_not_repeated(
    #[case] status: u16,
    #[case] detail: &str,
    #[case] unknown: bool,
    #[case] wait: Option<u64>,
) {
    let server = with([change("DELETE", "/v2/pods/p0").respond_with(problem(status, "x", detail)).expect(1)]).await;
    let error = account(&server).act(Action::Release, &"p0".into()).await.unwrap_err();
    assert_eq!(error.kind.outcome_unknown(), unknown, "{error}");
    assert_eq!(error.kind.retry_after(), wait.map(Duration::from_secs));
    assert!(error.to_string().contains(detail), "{error}");
}

#[tokio::test]
async fn a_failure_with_a_status_of_success_is_a_failure() {
    let answer = json_of(r#"{"error":"pod is being moved","status":400}"#);
    let server = with([change("POST", "/v2/pods/p0/action").respond_with(answer)]).await;
    let error = account(&server).act(Action::Stop, &"p0".into()).await.unwrap_err();
    assert!(error.to_string().contains("pod is being moved"), "{error}");
}

fn billing_mocks(pods: &str, volumes: &str, all: &str) -> [Mock; 3] {
    [
        get("/v2/billing/pods").and(query_param("bucketSize", "hour")).respond_with(json_of(pods)),
        get("/v2/billing/network-volumes").respond_with(json_of(volumes)),
        get("/v2/billing").respond_with(json_of(all)),
    ]
}

const NO_RECORDS: &str = r#"{"records":[]}"#;

#[tokio::test]
async fn a_bill_is_split_by_component_and_product() {
    let server = with(billing_mocks(
        include_str!("../fixtures/billing_pods.json"),
        include_str!("../fixtures/billing_network_volumes.json"),
        include_str!("../fixtures/billing_all.json"),
    ))
    .await;
    let account = account(&server);
    let (from, to) = ("2026-11-28T00:00:00Z".parse().unwrap(), "2026-11-30T00:00:00Z".parse().unwrap());
    let lines = account.billed(from, to).await.unwrap();
    let sum = |wanted: &dyn Fn(&BilledLine) -> bool| {
        lines.iter().filter(|line| wanted(line)).map(|line| line.amount.amount).sum::<Decimal>()
    };
    let of = |id: &str| Some((ResourceKind::Instance, ResourceId::from(id)));
    assert_eq!(
        sum(&|line| line.resource == of("a1podrunfull01") && line.component == Component::Compute),
        dec("26.91")
    );
    assert_eq!(sum(&|line| line.resource == of("a1podrunfull01") && line.component == Component::Disk), dec("0.43"));
    assert_eq!(sum(&|line| line.resource == of("a7podexited007")), dec("1.6"));
    // A stopped one's compute is told as 0, which wins over whatever we thought.
    let stopped: Vec<_> = lines.iter().filter(|line| line.resource == of("a7podexited007")).collect();
    assert!(stopped.iter().any(|line| line.component == Component::Compute));
    assert!(stopped.iter().all(|line| line.component == Component::Disk || line.amount.amount.is_zero()));
    assert_eq!(sum(&|line| line.component == Component::Storage), dec("3.13"));
    assert_eq!(sum(&|line| line.product == "serverless"), dec("3.22"));
    assert!(lines.is_sorted_by_key(|line| line.from));
    assert!(lines.iter().all(|line| line.resource.is_some() || !line.amount.amount.is_zero()));
    assert_eq!(account.billed(from, to).await.unwrap(), lines, "asked again, the same");
}

#[tokio::test]
async fn a_bill_leaves_out_what_is_not_over_and_what_lies_outside() {
    let record = |start: &str, end: &str| {
        json!({ "startTime": format!("2026-11-30T{start}:00Z"), "endTime": format!("2026-11-30T{end}:00Z"),
            "podId": "p0", "totalAmount": 1.25, "gpuAmount": 1, "cpuAmount": 0, "diskAmount": 0.2 })
    };
    let rows = json!({ "records": [record("07:00", "08:00"), record("08:00", "09:00"), record("09:00", "10:00")] });
    let server = with(billing_mocks(&rows.to_string(), NO_RECORDS, NO_RECORDS)).await;
    let (from, to) = ("2026-11-30T07:30:00Z".parse().unwrap(), "2026-11-30T09:40:00Z".parse().unwrap());
    let lines = account(&server).billed(from, to).await.unwrap();
    let parts: Vec<_> = lines.iter().map(|line| (line.component, line.amount.amount)).collect();
    // What the total holds beyond its parts is named too.
    use Component::{Compute, Disk, Other};
    assert_eq!(parts, [(Compute, dec("1")), (Disk, dec("0.2")), (Other, dec("0.05"))]);
}

/// An hour's line is the same whatever time was asked for.
#[tokio::test]
async fn a_later_import_has_the_same_lines() {
    let record = |start: &str, end: &str| {
        json!({ "startTime": format!("2026-11-30T{start}:00Z"), "endTime": format!("2026-11-30T{end}:00Z"),
            "podId": "p0", "totalAmount": 1.0 })
    };
    let rows = json!({ "records": [record("06:00", "07:00"), record("07:00", "08:00"), record("08:00", "09:00")] });
    let server = with(billing_mocks(&rows.to_string(), NO_RECORDS, NO_RECORDS)).await;
    let ask = async |from: &str| {
        let from = format!("2026-11-30T{from}:00Z").parse().unwrap();
        account(&server).billed(from, "2026-11-30T09:00:00Z".parse().unwrap()).await.unwrap()
    };
    let (whole, part) = (ask("06:00").await, ask("07:20").await);
    assert_eq!(whole.len(), 3);
    assert_eq!(part, whole[2..]);
    // A sum that is not split belongs to compute: nothing of it counts beside our own figure.
    assert!(whole.iter().all(|line| line.component == Component::Compute && line.amount.amount == dec("1")));
}

#[tokio::test]
async fn a_bill_with_an_unreadable_line_or_a_missing_page_is_no_bill() {
    let (from, to) = ("2026-11-30T07:00:00Z".parse().unwrap(), "2026-11-30T09:00:00Z".parse().unwrap());
    let bad = r#"{"records":[{"startTime":"soon","endTime":"later","podId":"p0"}]}"#;
    let server = with(billing_mocks(bad, NO_RECORDS, NO_RECORDS)).await;
    let error = account(&server).billed(from, to).await.unwrap_err();
    assert!(error.to_string().contains("records[0].startTime"), "{error}");
    let record = |start: &str, end: &str| {
        json!({ "startTime": format!("2026-11-30T{start}:00Z"), "endTime": format!("2026-11-30T{end}:00Z"),
            "podId": "p0", "totalAmount": 1.25 })
    };
    for reversed in [record("09:00", "08:00"), record("08:00", "08:00")] {
        let rows = json!({ "records": [record("07:00", "08:00"), reversed] });
        let server = with(billing_mocks(&rows.to_string(), NO_RECORDS, NO_RECORDS)).await;
        let error = account(&server).billed(from, to).await.unwrap_err().to_string();
        for part in ["runpod/team", "GET /v2/billing/pods", "records[1].endTime", "08:00:00Z is not after"] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
    let endless = r#"{"records":[],"pagination":{"nextCursor":"same"}}"#;
    let server = with(billing_mocks(endless, NO_RECORDS, NO_RECORDS)).await;
    assert!(account(&server).billed(from, to).await.is_err());
}

#[tokio::test]
async fn a_long_window_is_asked_for_in_slices_without_gap_or_overlap() {
    let server = with(billing_mocks(NO_RECORDS, NO_RECORDS, NO_RECORDS)).await;
    let (from, to) = ("2026-10-01T00:20:00Z".parse().unwrap(), "2026-10-31T00:00:00Z".parse().unwrap());
    account(&server).billed(from, to).await.unwrap();
    let asked = server.received_requests().await.unwrap();
    let spans: Vec<_> = asked
        .iter()
        .filter(|request| request.url.path() == "/v2/billing/pods")
        .map(|request| request.url.query_pairs().take(2).map(|(_, value)| value.into_owned()).collect::<Vec<_>>())
        .collect();
    assert_eq!(spans.len(), 3);
    assert_eq!((spans[0][0].as_str(), spans[2][1].as_str()), ("2026-10-01T00:00:00Z", "2026-10-31T00:00:00Z"));
    assert!(spans.windows(2).all(|pair| pair[0][1] == pair[1][0]), "{spans:?}");
    assert_eq!(account(&server).billed(to, from).await, Ok(vec![]));
}
