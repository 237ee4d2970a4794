//! The adapter against recorded answers, and over real HTTP against the simulator.

use std::time::Duration;

use rstest::rstest;
use rust_decimal::Decimal;
use secrecy::SecretString;
use serde_json::{Value, json};
use wiremock::matchers::{body_json, method, path, query_param, query_param_is_missing};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::*;
use crate::model::{Market, Offers, Phase, Remark};

const MANY: &str = include_str!("fixtures/instances_many_states.json");

fn now() -> Timestamp {
    "2026-11-30T12:00:00Z".parse().unwrap()
}

fn dec(text: &str) -> Decimal {
    text.parse().unwrap()
}

/// An account that keeps no pace, so that no test waits.
fn account(url: String) -> Vast {
    let mut access = Access::new("vast", "team", "sim-vast-key").at(url);
    access.timeout = Duration::from_millis(500);
    Vast::new(&access, &[]).unwrap()
}

fn ok(body: Value) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_json(body)
}

fn text(body: &str) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_raw(body, "application/json")
}

async fn answers(to: &str, with: ResponseTemplate) -> MockServer {
    let server = MockServer::start().await;
    Mock::given(path(to)).respond_with(with).mount(&server).await;
    server
}

/// The list, when the provider answers with this.
async fn listed(with: ResponseTemplate) -> Part<Instance> {
    let server = answers(LIST, with).await;
    account(server.uri()).poll(Ask::INSTANCES, now()).await.instances
}

fn page(rows: Value) -> Value {
    let count = rows.as_array().map_or(0, Vec::len);
    json!({"success": true, "instances_found": count, "total_instances": count, "next_token": null, "instances": rows})
}

/// The one instance of a list of one row.
async fn only(row: Value) -> Instance {
    let part = listed(ok(page(json!([row])))).await;
    let Part::Listed { mut rows, problems } = part else { panic!("{part:?}") };
    assert_eq!((rows.len(), problems.len()), (1, 0), "{problems:?}");
    rows.remove(0)
}

async fn many() -> Vec<Instance> {
    let part = listed(text(MANY)).await;
    let Part::Listed { rows, problems } = part else { panic!("{part:?}") };
    assert!(problems.is_empty(), "{problems:?}");
    rows
}

fn certain(rates: &Rates) -> Decimal {
    rates.certain().of(Currency::USD).amount()
}

fn upper(rates: &Rates) -> Decimal {
    rates.upper().of(Currency::USD).amount()
}

fn effect(offer: &Offer) -> &Effect {
    offer.effect().unwrap_or_else(|| panic!("not offered: {offer:?}"))
}

/// Which of the four are offered, as letters: stop `s`, start `t`, restart `b`, release `x`.
fn letters(offers: &Offers) -> String {
    [("s", &offers.stop), ("t", &offers.start), ("b", &offers.restart), ("x", &offers.release)]
        .iter()
        .filter(|(_, offer)| offer.effect().is_some())
        .map(|(letter, _)| *letter)
        .collect()
}

fn failure<T: std::fmt::Debug>(part: &Part<T>) -> &ErrorKind {
    match part {
        Part::Failed(error) => &error.kind,
        other => panic!("not failed: {other:?}"),
    }
}

// Where an instance stands and what it costs.

/// LIFE-05, COST-05: every documented state, with what is surely charged, what may be, and what can be done.
#[tokio::test]
async fn each_state_has_its_phase_its_rates_and_its_offers() {
    let expected = [
        ("31000001", Phase::Running, None, "0.4083333333", "0.4083333333", "sbx"),
        ("31000002", Phase::Running, None, "0.2366666667", "0.2366666667", "sbx"),
        ("31000003", Phase::Running, None, "17.6694444444", "17.6694444444", "sbx"),
        ("31000004", Phase::Provisioning, None, "0.0083333333", "0.4083333333", "sx"),
        ("31000005", Phase::Provisioning, None, "0.0041666667", "0.3141666667", "sx"),
        ("31000006", Phase::Stopped, None, "0.0333333333", "0.0333333333", "tx"),
        ("31000007", Phase::Provisioning, Some(Remark::StartQueued), "0.0333333333", "0.4333333333", "sx"),
        ("31000008", Phase::Reclaimed, Some(Remark::Outbid), "0.0083333333", "0.0083333333", "tx"),
        ("31000009", Phase::Running, None, "0.1983333333", "0.1983333333", "sbx"),
        ("31000010", Phase::Unreachable, None, "0", "0", "sx"),
        ("31000011", Phase::Unreachable, None, "0", "0.3666666667", "sx"),
        ("31000012", Phase::Failed, Some(Remark::BootFailed), "0.0020740694", "0.0020740694", "tx"),
        ("31000013", Phase::Stopped, None, "0.50625", "0.50625", "stx"),
        ("31000014", Phase::Provisioning, None, "0.0041666667", "0.3041666667", "sx"),
        ("31000015", Phase::Running, None, "0.3041666667", "0.3041666667", "sbx"),
    ];
    let rows = many().await;
    assert_eq!(rows.len(), expected.len());
    for (row, (id, phase, remark, least, most, offered)) in rows.iter().zip(expected) {
        assert_eq!((row.id.as_str(), row.phase), (id, phase));
        assert_eq!(row.remarks, remark.into_iter().collect::<Vec<_>>(), "{id}");
        assert_eq!((certain(&row.rates), upper(&row.rates)), (dec(least), dec(most)), "{id}");
        assert!(row.rates.complete && !row.rates.estimated(), "{id}");
        assert_eq!(letters(&row.offers), offered, "{id}");
    }
}

#[tokio::test]
async fn a_row_says_who_it_is() {
    let rows = many().await;
    let big = &rows[2];
    assert_eq!(big.name.as_deref(), Some("pretrain"));
    let gpus = big.gpus.as_ref().unwrap();
    assert_eq!((gpus.model.as_str(), gpus.count, gpus.memory_gib), ("H100 SXM", 8, Some(80)));
    assert_eq!(big.region.as_deref(), Some("Sweden, SE"));
    assert_eq!(big.mounts, [ResourceId::from("5100001")]);
    assert_eq!(big.created_at.map(|at| at.as_second()), Some(1_795_000_003));
    assert_eq!(big.ends_at.map(|at| at.as_second()), Some(1_800_184_000));
    assert_eq!((rows[0].market, rows[8].market), (Market::OnDemand, Market::Spot));
    assert_eq!(rows[4].note.as_deref(), Some("pulling image: 3 of 9 layers"));
    assert_eq!((rows[4].name.as_deref(), rows[4].provider_phase.as_deref()), (None, Some("loading")));
}

/// LIFE-05: paused by a higher offer, not by the user; told apart from a start that waits for its GPU.
/// Each case: `actual_status`, `intended_status`, whether it is interruptible; `min_bid` and the message.
#[rstest]
#[case(("stopped", "running", true), ("0.52", ""), Phase::Reclaimed, Some(Remark::Outbid), "0.0021")]
#[case(("exited", "stopped", true), ("0.52", ""), Phase::Reclaimed, Some(Remark::Outbid), "0.0021")]
#[case(("exited", "stopped", true), ("0.1", "Instance outbid"), Phase::Reclaimed, Some(Remark::Outbid), "0.0021")]
#[case(("exited", "stopped", true), ("0.1", ""), Phase::Stopped, None, "0.0021")]
#[case(("exited", "running", true), ("0.1", ""), Phase::Provisioning, Some(Remark::StartQueued), "0.4")]
#[case(("exited", "running", false), ("0.52", ""), Phase::Provisioning, Some(Remark::StartQueued), "0.4")]
#[tokio::test]
async fn outbid_is_not_queued_and_not_stopped(
    #[case] (actual, intended, is_bid): (&str, &str, bool),
    #[case] (min_bid, words): (&str, &str),
    #[case] phase: Phase,
    #[case] remark: Option<Remark>,
    #[case] most: &str,
) {
    let row = only(json!({
        "id": 3001, "actual_status": actual, "intended_status": intended, "cur_state": "stopped",
        "next_state": intended, "is_bid": is_bid, "min_bid": min_bid, "dph_base": 0.3979, "dph_total": 0.4,
        "storage_total_cost": 0.0021, "gpu_name": "RTX 4090", "num_gpus": 1, "label": "sweep", "status_msg": words,
    }))
    .await;
    assert_eq!((row.phase, row.remarks), (phase, remark.into_iter().collect()));
    assert_eq!((certain(&row.rates), upper(&row.rates)), (dec("0.0021"), dec(most)));
}

#[tokio::test]
async fn an_exited_container_of_a_running_contract_is_starting_and_not_in_the_queue() {
    let row = only(json!({
        "id": 1, "actual_status": "exited", "intended_status": "running", "cur_state": "running",
        "next_state": "running", "dph_base": 1, "storage_total_cost": 0.01,
    }))
    .await;
    assert_eq!((row.phase, row.remarks), (Phase::Provisioning, vec![]));
}

/// COST-05: the total holds the disk already, `storage_cost` is by the month, a stop leaves the disk.
#[rstest]
#[case(json!({"dph_base": 0.8, "storage_total_cost": 0.0021, "dph_total": 0.8021, "storage_cost": 0.15, "disk_space": 10.08}), "0.8021", "0.0021", false)]
#[case(json!({"dph_base": "0.8", "storage_total_cost": "0.0021"}), "0.8021", "0.0021", false)]
#[case(json!({"dph_base": 0.8, "dph_total": 0.8021}), "0.8021", "0.0021", false)]
#[case(json!({"dph_base": 0.8, "storage_cost": 0.15, "disk_space": 10.08}), "0.8021", "0.0021", true)]
#[case(json!({"dph_total": 0.8021, "storage_total_cost": 0.0021}), "0.8021", "0.0021", false)]
#[case(json!({"instance": {"gpuCostPerHour": 0.8, "diskHour": 0.0021, "totalHour": 0.8021}, "dph_base": 9, "storage_total_cost": 9}), "0.8021", "0.0021", false)]
#[case(json!({"instance": {"totalHour": 0.8021, "diskHour": 0.0021}, "dph_base": 9}), "0.8021", "0.0021", false)]
#[case(json!({"instance": {"gpuCostPerHour": 0, "diskHour": 0, "totalHour": 0}, "dph_base": 0.8, "storage_total_cost": 0.0021}), "0.8021", "0.0021", false)]
#[tokio::test]
async fn the_total_holds_the_disk_already(
    #[case] mut prices: Value,
    #[case] running: &str,
    #[case] stopped: &str,
    #[case] estimated: bool,
) {
    let fields = prices.as_object_mut().unwrap();
    fields.insert("id".into(), json!(1));
    fields.insert("actual_status".into(), json!("running"));
    fields.insert("intended_status".into(), json!("running"));
    let row = only(prices.clone()).await;
    assert_eq!(certain(&row.rates), dec(running));
    assert_eq!(row.rates.of(&[Component::Disk]).of(Currency::USD).amount(), dec(stopped));
    assert_eq!((row.rates.estimated(), row.rates.complete), (estimated, true));
    assert_eq!(certain(&effect(&row.offers.stop).rates_after), dec(stopped));
}

#[tokio::test]
async fn a_stopped_disk_may_cost_more_and_the_charged_figure_counts() {
    let row = only(json!({
        "id": 1, "actual_status": "exited", "intended_status": "stopped", "cur_state": "stopped", "dph_base": 0.4,
        "dph_total": 0.41, "storage_total_cost": 0.01, "instance": {"gpuCostPerHour": 0, "diskHour": 0.02, "totalHour": 0.02},
    }))
    .await;
    assert_eq!(certain(&row.rates), dec("0.02"));
    assert_eq!(certain(&effect(&row.offers.start).rates_after), dec("0.41"));
}

#[tokio::test]
async fn the_config_corrects_what_a_stopped_disk_costs() {
    let rows = page(json!([{"id": 1, "actual_status": "running", "dph_base": 1, "storage_total_cost": 0.01}]));
    let server = answers(LIST, ok(rows)).await;
    let mut access = Access::new("vast", "team", "k").at(server.uri());
    access.facts.insert("disk_stopped_factor".into(), "2".into());
    let poll = Vast::new(&access, &[]).unwrap().poll(Ask::INSTANCES, now()).await;
    let after = &effect(&poll.instances.rows()[0].offers.stop).rates_after;
    assert_eq!((certain(after), after.estimated()), (dec("0.02"), true));
}

#[tokio::test]
async fn a_price_that_is_not_told_is_no_zero() {
    let running = json!({"id": 1, "actual_status": "running", "intended_status": "running"});
    let row = only(running).await;
    assert!(row.rates.lines.is_empty() && !row.rates.complete);
    // Only a total: it is known in full, and what a stop leaves is not.
    let row = only(json!({"id": 1, "actual_status": "running", "dph_total": 0.4})).await;
    assert_eq!((certain(&row.rates), row.rates.complete), (dec("0.4"), true));
    assert!(!effect(&row.offers.stop).rates_after.complete);
}

#[tokio::test]
async fn a_reserved_instance_is_prepaid_at_its_discount() {
    let row = only(json!({
        "id": 1, "actual_status": "running", "dph_base": 0.8, "storage_total_cost": 0.0021, "credit_balance": 4792.99,
        "credit_discount": 0.37,
        "instance": {"gpuCostPerHour": 0.8, "diskHour": 0.0021, "totalHour": 0.8021, "discountedTotalPerHour": 0.5061},
    }))
    .await;
    assert_eq!(row.market, Market::Reserved { until: None });
    assert_eq!(certain(&row.rates), dec("0.5061"));
}

/// API-08: words that nobody mapped are kept, and never counted as stopped.
#[rstest]
#[case(json!("MIGRATING"), Some("MIGRATING"))]
#[case(json!("hibernating\u{1b}[2J"), Some("hibernating"))]
#[case(json!(7), Some("7"))]
#[tokio::test]
async fn a_word_that_is_not_known_may_be_billing(#[case] word: Value, #[case] kept: Option<&str>) {
    let row = only(json!({"id": 1, "actual_status": word, "intended_status": "running", "dph_base": 0.4, "storage_total_cost": 0.01})).await;
    assert_eq!((row.phase, row.provider_phase.as_deref()), (Phase::Unknown, kept));
    assert_eq!((certain(&row.rates), upper(&row.rates)), (dec("0"), dec("0.41")));
    assert_eq!(letters(&row.offers), "sx");
}

#[tokio::test]
async fn a_stop_under_way_is_charged_and_a_release_under_way_is_left_alone() {
    let stopping = json!({"id": 1, "actual_status": "running", "intended_status": "stopped", "dph_base": 1, "storage_total_cost": 0.1});
    let row = only(stopping).await;
    assert_eq!((row.phase, certain(&row.rates)), (Phase::Stopping, dec("1.1")));
    let going = json!({"id": 1, "actual_status": "exited", "cur_state": "stopped", "next_state": "unloaded", "storage_total_cost": 0.1});
    let row = only(going).await;
    assert_eq!((row.phase, letters(&row.offers)), (Phase::Releasing, String::new()));
}

#[tokio::test]
async fn nulls_and_missing_keys_are_not_known() {
    let part = listed(text(include_str!("fixtures/instances_nulls.json"))).await;
    let Part::Listed { rows, problems } = part else { panic!("{part:?}") };
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!((rows[0].phase, rows[1].phase), (Phase::Provisioning, Phase::Unknown));
    for row in rows {
        assert!(row.rates.lines.is_empty() && !row.rates.complete, "{row:?}");
        assert_eq!((&row.name, &row.gpus, &row.usage, &row.ssh, row.ends_at), (&None, &None, &None, &None, None));
    }
}

// Usage and reach.

#[tokio::test]
async fn figures_are_read_while_it_runs_and_odd_ones_are_not_known() {
    let rows = many().await;
    let of = |at: usize| rows[at].usage.as_ref();
    let usage = of(0).unwrap();
    assert_eq!((usage.gpus[0].utilization, usage.gpus[0].temperature_c), (Some(0.87), Some(61.0)));
    assert_eq!((usage.cpu, usage.averaged, usage.as_of), (Some(0.12), false, now()));
    assert!(usage.memory.is_some_and(|part| (part - 11.7 / 64.4).abs() < 1e-9));
    assert!(of(2).unwrap().averaged, "one figure for eight cards");
    assert_eq!(of(5), None, "stale figures of a stopped one");
    let odd = of(14).unwrap();
    assert_eq!((odd.gpus[0].utilization, odd.cpu), (None, Some(0.973)));
}

/// Null, missing and negative are not known, and nothing known is no look; 0 is a figure.
#[rstest]
#[case(json!({}), None)]
#[case(json!({ "gpu_util": null, "gpu_temp": null, "cpu_util": null, "mem_usage": null }), None)]
#[case(json!({ "gpu_util": -1, "gpu_temp": -1, "cpu_util": -1, "mem_usage": -1, "mem_limit": 64 }), None)]
#[case(json!({ "gpu_util": {}, "cpu_util": "x" }), None)]
#[case(json!({ "gpu_util": 0 }), Some((Some(0.0), None)))]
#[case(json!({ "gpu_util": -1, "cpu_util": 0.5 }), Some((None, Some(0.5))))]
#[case(json!({ "gpu_util": 0, "cpu_util": 50 }), Some((Some(0.0), Some(0.5))))]
#[case(json!({ "gpu_util": 90, "actual_status": "exited" }), None)]
#[case(json!({ "gpu_util": 90, "actual_status": null }), None)]
#[tokio::test]
async fn what_the_host_does_not_tell_is_not_known(
    #[case] more: Value,
    #[case] expected: Option<(Option<f64>, Option<f64>)>,
) {
    let mut row = json!({ "id": 1, "actual_status": "running", "intended_status": "running", "num_gpus": 1 });
    row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let usage = only(row).await.usage;
    assert_eq!(usage.map(|usage| (usage.gpus[0].utilization, usage.cpu)), expected);
}

/// SSH-02, API-14: no port yet, a proxy, a port of its own; nothing of what does not run.
#[rstest]
#[case(json!({"ports": null}), None)]
#[case(json!({"ports": {"8888/tcp": [{"HostIp": "0.0.0.0", "HostPort": "8888"}]}}), None)]
#[case(json!({"ports": {"22/tcp": []}}), None)]
#[case(json!({"ports": null, "ssh_host": "ssh1.example.invalid", "ssh_port": 10600}), Some("ssh1.example.invalid:10600 proxy"))]
#[case(json!({"ports": {"22/tcp": [{"HostIp": "0.0.0.0", "HostPort": "20000"}]}, "ssh_host": "ssh1.example.invalid", "ssh_port": 10600}), Some("192.0.2.45:20000 direct"))]
#[case(json!({"ports": {"22/tcp": [{"HostPort": 20000}]}}), Some("192.0.2.45:20000 direct"))]
#[case(json!({"ports": {"22/tcp": "odd"}, "ssh_host": "ssh5.vast.ai", "ssh_port": 10002, "image_runtype": "jupyter ssh_proxy"}), Some("ssh5.vast.ai:10003 proxy"))]
#[case(json!({"ports": {"22/tcp": [{"HostPort": "20000"}]}, "public_ipaddr": "-oProxyCommand=x"}), None)]
#[case(json!({"ports": {"22/tcp": [{"HostPort": "20000"}]}, "actual_status": "exited", "intended_status": "stopped"}), None)]
#[tokio::test]
async fn ssh_goes_to_its_own_port_or_to_the_proxy(#[case] more: Value, #[case] expected: Option<&str>) {
    let mut row = json!({
        "id": 1, "actual_status": "running", "intended_status": "running", "public_ipaddr": "192.0.2.45 \n",
        "ssh_host": null, "ssh_port": null,
    });
    row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let ssh = only(row).await.ssh.map(|ssh| {
        let place = ssh.place();
        let place = place.strip_prefix("root@").expect("the user is root");
        format!("{place} {}", if ssh.direct { "direct" } else { "proxy" })
    });
    assert_eq!(ssh.as_deref(), expected);
}

// What actions keep and lose.

/// DATA-05: a stop here keeps the whole disk, so it loses nothing; a release loses it and leaves the volume.
#[tokio::test]
async fn a_stop_loses_nothing_and_a_release_leaves_the_volume() {
    let rows = many().await;
    let big = &rows[2].offers;
    let stop = effect(&big.stop);
    assert!(!stop.loses_data());
    assert_eq!(
        stop.kept.iter().map(|place| place.kind).collect::<Vec<_>>(),
        [DataKind::ContainerDisk, DataKind::LocalVolume]
    );
    assert_eq!(certain(&stop.rates_after), dec("0.0694444444"));
    assert_eq!(stop.risks, [Risk::StartMayQueue, Risk::GpuMayBeTaken, Risk::DiskMayCostMore, Risk::ContractEnds]);
    let release = effect(&big.release);
    assert_eq!(
        (release.lost.len(), release.lost[0].kind, release.lost[0].size_gb),
        (1, DataKind::ContainerDisk, Some(dec("500")))
    );
    assert_eq!(release.left_behind, [ResourceId::from("5100001")]);
    assert!(release.rates_after.upper().is_zero() && release.rates_after.complete);
    // A frozen one is charged in full, and a stop ends that.
    assert_eq!(certain(&effect(&rows[12].offers.stop).rates_after), dec("0.00625"));
    // Taking back a start that waits ends what may be charged, and risks no GPU: it has none.
    let queued = effect(&rows[6].offers.stop);
    assert_eq!(
        (upper(&queued.rates_after), &queued.risks[..]),
        (dec("0.0333333333"), &[Risk::StartMayQueue, Risk::ContractEnds][..])
    );
}

#[tokio::test]
async fn after_the_contract_nothing_can_be_started() {
    let row = |end: i64| json!({"id": 1, "actual_status": "exited", "intended_status": "stopped", "end_date": end});
    let over = only(row(now().as_second() - 60)).await;
    assert_eq!(over.offers.start, Offer::No(Refusal::WrongPhase));
    assert!(only(row(now().as_second() + 60)).await.offers.start.effect().is_some());
}

// Lists.

/// API-02: 25 rows a page and a cursor for the rest.
#[tokio::test]
async fn all_pages_are_read() {
    let row = |id: u64, base: f64| json!({"id": id, "actual_status": "running", "dph_base": base, "storage_total_cost": 0.0021});
    let sheet = |rows: Vec<Value>, next: Option<&str>| json!({"success": true, "total_instances": 31, "next_token": next, "instances": rows});
    let server = MockServer::start().await;
    let first = sheet((1001..1026).map(|id| row(id, 0.3979)).collect(), Some("eyJpZCI6MTAyNX0="));
    let second = sheet((1026..1032).map(|id| row(id, 0.5479)).collect(), None);
    Mock::given(query_param_is_missing("after_token"))
        .and(query_param("limit", "25"))
        .respond_with(ok(first))
        .mount(&server)
        .await;
    Mock::given(query_param("after_token", "eyJpZCI6MTAyNX0=")).respond_with(ok(second)).mount(&server).await;
    let poll = account(server.uri()).poll(Ask::INSTANCES, now()).await;
    let Part::Listed { rows, problems } = poll.instances else { panic!() };
    assert_eq!((rows.len(), problems.len()), (31, 0), "{problems:?}");
    assert_eq!(rows.iter().map(|row| certain(&row.rates)).sum::<Decimal>(), dec("13.3"));
}

/// API-03: a cursor that repeats ends the reading; what was read stays, and the list is not complete.
#[tokio::test]
async fn a_cursor_that_repeats_leaves_the_list_incomplete() {
    let rows: Vec<Value> = (1001..1026).map(|id| json!({"id": id, "actual_status": "running"})).collect();
    let body = json!({"success": true, "total_instances": 31, "next_token": "eyJpZCI6MTAyNX0=", "instances": rows});
    let server = answers(LIST, ok(body)).await;
    let poll = account(server.uri()).poll(Ask::INSTANCES, now()).await;
    let Part::Listed { rows, problems } = poll.instances else { panic!() };
    assert_eq!(rows.len(), 25);
    let fields: Vec<&str> = problems.iter().map(|problem| problem.field.as_str()).collect();
    assert_eq!(fields, ["next_token", "total_instances"]);
    assert!(problems[0].message.contains("page cursor repeats"));
    assert!(server.received_requests().await.unwrap().len() <= 3);
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_named_and_the_others_go_on() {
    let rows = page(json!([
        {"id": 1, "actual_status": "running"},
        {"id": 2, "actual_status": "running", "dph_base": "n/a"},
        {"id": null},
        {"id": 4, "gpu_util": "hot", "ports": 5, "label": {"x": 1}},
    ]));
    let Part::Listed { rows, problems } = listed(ok(rows)).await else { panic!() };
    assert_eq!(rows.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["1", "4"]);
    let fields: Vec<&str> = problems.iter().map(|problem| problem.field.as_str()).collect();
    assert_eq!(fields, ["instances[1].dph_base", "instances[2].id"], "and no total that does not fit");
}

/// API-01, API-04, API-05, API-06: none of these answers is an empty list.
#[rstest]
#[case(404, "application/json", r#"{"success":false,"error":"auth_error","msg":"Invalid user key"}"#, "key refused")]
#[case(404, "application/json", r#"{"success":false,"msg":"Session expired. Please log in again."}"#, "key refused")]
#[case(404, "application/json", r#"{"success":false,"error":"not_found","msg":"not found"}"#, "refused: not found")]
#[case(404, "text/plain", "", "HTTP 404, not JSON")]
#[case(401, "application/json", r#"{"detail":"Authentication credentials were not provided."}"#, "key refused")]
#[case(
    403,
    "application/json",
    r#"{"success":false,"error":"auth_error","msg":"This action requires login."}"#,
    "key refused"
)]
#[case(
    403,
    "application/json",
    r#"{"success":false,"error":"auth_error","msg":"no permission for instance_read"}"#,
    "the key lacks the right"
)]
#[case(403, "text/html", "<html><body>403 Forbidden</body></html>", "HTTP 403, not JSON")]
#[case(
    410,
    "application/json",
    r#"{"success":false,"error":"deprecated_endpoint","msg":"it is deprecated"}"#,
    "deprecated"
)]
#[case(429, "text/plain", "API requests too frequent: endpoint threshold=1.0", "rate limited")]
#[case(429, "application/json", r#"{"detail":"API requests too frequent endpoint threshold=1.0"}"#, "rate limited")]
#[case(
    500,
    "application/json",
    r#"{"success":false,"error":"server_error","msg":"Internal error"}"#,
    "HTTP 500: Internal error"
)]
#[case(502, "text/html", "<html><h1>Bad gateway</h1></html>", "HTTP 502")]
#[case(200, "text/html", "<html>maintenance</html>", "HTTP 200, not JSON")]
#[case(200, "application/json", r#"{"success":false,"error":"auth_error","msg":"Invalid user key"}"#, "key refused")]
#[case(
    200,
    "application/json",
    r#"{"success":false,"error":"busy","msg":"try later","instances":[]}"#,
    "refused: try later"
)]
#[case(200, "application/json", r#"{"success":true,"instances":null}"#, "cannot read `instances`")]
#[case(200, "application/json", r#"{"success":true}"#, "instances")]
#[tokio::test]
async fn a_failed_list_is_no_empty_list(
    #[case] status: u16,
    #[case] kind: &str,
    #[case] body: &str,
    #[case] shown: &str,
) {
    let part = listed(ResponseTemplate::new(status).set_body_raw(body, kind)).await;
    let error = failure(&part).to_string();
    assert!(error.contains(shown) && !error.contains('<'), "{error}");
    assert_ne!(*failure(&part), ErrorKind::NoSuchId);
}

/// API-05: a refusal for haste is not repeated at once, whatever its body; the next good list is complete.
#[tokio::test]
async fn haste_is_told_and_not_repeated() {
    let server = MockServer::start().await;
    let plain = "API requests too frequent: endpoint threshold=1.0";
    let refusals = [
        ResponseTemplate::new(429).set_body_raw(plain, "text/plain"),
        ResponseTemplate::new(429).set_body_json(json!({"detail": "API requests too frequent endpoint threshold=1.0"})),
    ];
    for refusal in refusals {
        Mock::given(path(LIST)).respond_with(refusal).up_to_n_times(1).expect(1).mount(&server).await;
    }
    Mock::given(path(LIST)).respond_with(ok(page(json!([{"id": 1}])))).expect(1).mount(&server).await;
    let vast = account(server.uri());
    for _ in 0..2 {
        let error = failure(&vast.poll(Ask::INSTANCES, now()).await.instances).clone();
        assert!(matches!(error, ErrorKind::RateLimited { .. }) && error.is_transient(), "{error}");
    }
    assert_eq!(vast.poll(Ask::INSTANCES, now()).await.instances.rows().len(), 1);
}

#[tokio::test]
async fn a_page_that_does_not_come_fails_the_list() {
    let server = MockServer::start().await;
    let first = json!({"success": true, "total_instances": 2, "next_token": "t", "instances": [{"id": 1}]});
    Mock::given(query_param_is_missing("after_token")).respond_with(ok(first)).mount(&server).await;
    Mock::given(query_param("after_token", "t")).respond_with(ResponseTemplate::new(429)).mount(&server).await;
    let poll = account(server.uri()).poll(Ask::INSTANCES, now()).await;
    assert!(matches!(failure(&poll.instances), ErrorKind::RateLimited { .. }));
}

/// SEC-03: what the rows hold beside the figures is never kept.
#[tokio::test]
async fn secrets_in_answers_are_not_kept() {
    let row = json!({
        "id": 1, "actual_status": "running", "intended_status": "running", "dph_total": 0.4, "label": "x",
        "extra_env": [["HF_TOKEN", "hf_TESTSECRET1"], ["WANDB_API_KEY", "wb_TESTSECRET2"]],
        "jupyter_token": "jt_TESTSECRET3", "onstart": "export AWS_SECRET_ACCESS_KEY=TESTSECRET4; ./run.sh",
    });
    let instance = only(row).await;
    let shown = format!("{instance:?} {}", serde_json::to_string(&instance).unwrap());
    assert!(!shown.contains("TESTSECRET"), "{shown}");
}

// Storage and money.

#[tokio::test]
async fn volumes_are_listed_with_their_users() {
    let mut body: Value = serde_json::from_str(include_str!("fixtures/volumes.json")).unwrap();
    let rows = body["volumes"].as_array_mut().unwrap();
    rows[2]["instances"] = json!([{"id": 31000009}]);
    rows.push(json!({"id": "5100004", "status": "in-use", "instances": []}));
    rows.push(json!({"id": 5100005, "status": "odd", "storage_total_cost": "0.5"}));
    let server = answers(VOLUMES, ok(body)).await;
    let poll = account(server.uri()).poll(Ask { storage: true, money: false }, now()).await;
    let rows = poll.storage.rows();
    let to = |ids: &[&str]| Attachment::To(ids.iter().map(|id| ResourceId::from(*id)).collect());
    let expected = [
        ("5100001", StorageKind::Volume, to(&["31000003"]), "0.0694444444", false),
        ("5100002", StorageKind::Volume, to(&[]), "0.0069444444", true),
        ("5100003", StorageKind::NetworkVolume, to(&["31000009"]), "0.0069444444", false),
        ("5100004", StorageKind::Volume, Attachment::Somewhere, "0", false),
        ("5100005", StorageKind::Volume, Attachment::Unknown, "0.5", true),
    ];
    assert_eq!(rows.len(), expected.len());
    for (row, (id, kind, attachment, rate, deletable)) in rows.iter().zip(expected) {
        assert_eq!((row.id.as_str(), row.kind, &row.attachment), (id, kind, &attachment));
        assert_eq!(certain(&row.rates), dec(rate), "{id}");
        assert_eq!(row.delete.effect().is_some(), deletable, "{id}");
    }
    assert!(!rows[3].rates.complete, "no price is no price of 0");
    assert_eq!((rows[0].size_gib, rows[0].name.as_deref()), (Some(dec("500")), Some("ckpt")));
    assert!(effect(&rows[1].delete).loses_data());
    assert_eq!(effect(&rows[4].delete).risks, [Risk::UseUnknown]);
}

/// BAL-01, BAL-02: what is left, with its sign; what cannot be read is no balance of 0.
#[rstest]
#[case(200, include_str!("fixtures/user_current.json"), Some("25"))]
#[case(200, include_str!("fixtures/user_current_negative.json"), Some("-1.25"))]
#[case(200, include_str!("fixtures/user_current_minimal.json"), Some("12.5"))]
#[case(200, r#"{"id":1,"credit":-1.1102230246251565e-16}"#, Some("-0.0000000000000001110223024625"))]
#[case(200, r#"{"id":1,"credit":null}"#, None)]
#[case(200, r#"{"id":1,"credit":"n/a","balance":3}"#, None)]
#[case(200, r#"{"id":1}"#, None)]
#[case(404, r#"{"success":false,"error":"auth_error","msg":"Invalid user key"}"#, None)]
#[tokio::test]
async fn the_balance_is_what_is_left(#[case] status: u16, #[case] body: &str, #[case] expected: Option<&str>) {
    let server = answers(USER, ResponseTemplate::new(status).set_body_raw(body, "application/json")).await;
    let poll = account(server.uri()).poll(Ask { storage: false, money: true }, now()).await;
    match (&poll.balance, expected) {
        (Reading::Known(balance), Some(expected)) => assert_eq!(balance.cash.amount, dec(expected)),
        (Reading::Failed(_), None) => {}
        other => panic!("{other:?}"),
    }
    // Who is behind the key is known whenever the answer is one.
    assert_eq!(matches!(poll.tenant, Reading::Known(_)), status == 200);
    let shown = format!("{poll:?}");
    assert!(!shown.contains("owner@example.com") && !shown.contains(&"0".repeat(40)), "{shown}");
}

#[tokio::test]
async fn a_charge_is_split_into_its_components() {
    let server = answers(CHARGES, text(include_str!("fixtures/charges_table.json"))).await;
    let at = |seconds| Timestamp::from_second(seconds).unwrap();
    let (from, to) = (at(1_794_873_600), at(1_794_873_600 + 24 * 3600));
    let lines = account(server.uri()).billed(from, to).await.unwrap();
    let shown: Vec<String> = lines
        .iter()
        .map(|line| {
            let id = line.resource.as_ref().map_or("-", |(_, id)| id.as_str());
            format!("{id} {} {:?} {}", line.product, line.component, line.amount.amount)
        })
        .collect();
    assert_eq!(
        shown,
        [
            "31000001 instance Compute 28.48",
            "31000001 instance Disk 0.6",
            "31000001 instance Traffic 0.051",
            "31000006 instance Compute 0.0",
            "31000006 instance Disk 2.4",
            "5100001 volume Storage 5.0",
        ]
    );
    assert!(lines.iter().all(|line| line.from == from && line.to == to), "clipped to the day");
    assert!(matches!(lines[5].resource, Some((ResourceKind::Storage, _))));
}

#[tokio::test]
async fn charges_are_asked_for_by_day_and_read_to_the_last_page() {
    let server = MockServer::start().await;
    let entry = |amount: &str| json!({"type": "serverless", "source": "endpoint-7", "amount": amount, "items": []});
    let sheet = |next: Option<&str>, amount| json!({"success": true, "next_token": next, "results": [entry(amount)]});
    Mock::given(query_param_is_missing("after_token"))
        .respond_with(ok(sheet(Some("more"), "1.5")))
        .mount(&server)
        .await;
    Mock::given(query_param("after_token", "more")).respond_with(ok(sheet(None, "0.25"))).mount(&server).await;
    let vast = account(server.uri());
    let at = |text: &str| format!("2026-11-{text}:00Z").parse().unwrap();
    let lines = vast.billed(at("27T18:00"), at("30T06:00")).await.unwrap();
    let spans: Vec<String> = lines.iter().step_by(2).map(|line| format!("{} {}", line.from, line.to)).collect();
    assert_eq!(
        spans,
        ["2026-11-28T00:00:00Z 2026-11-29T00:00:00Z", "2026-11-29T00:00:00Z 2026-11-30T00:00:00Z"],
        "whole days only, never cut to the time asked for"
    );
    assert_eq!((lines.len(), &lines[0].resource, lines[0].component), (4, &None, Component::Other));
    assert_eq!(vast.billed(at("27T18:00"), at("30T06:00")).await.unwrap(), lines, "the same question, the same answer");
    assert_eq!(
        vast.billed(at("28T11:00"), at("30T00:00")).await.unwrap(),
        lines[2..],
        "and part of it, the same lines"
    );
    assert_eq!(vast.billed(at("30T01:00"), at("30T23:00")).await, Ok(vec![]), "no day is over");
}

#[rstest]
#[case(json!({"success": true, "next_token": "t", "results": []}), "the page cursor repeats")]
#[case(json!({"success": true, "results": [{"amount": "n/a"}]}), "cannot read `results[0].amount`")]
#[case(json!({"success": false, "msg": "Must provide both"}), "refused: Must provide both")]
#[tokio::test]
async fn a_history_with_a_hole_is_no_history(#[case] body: Value, #[case] shown: &str) {
    let server = answers(CHARGES, ok(body)).await;
    let from = "2026-11-29T00:00:00Z".parse().unwrap();
    let error = account(server.uri()).billed(from, now()).await.unwrap_err();
    assert!(error.to_string().contains(shown), "{error}");
}

#[rstest]
#[case(include_str!("fixtures/pending_price_increases.json"), Some(("0.3996", "0.45")))]
#[case(r#"{"pending_price_increases":[{"contract_id":31000001,"new_gpu_costpersec":0.0002}]}"#, None)]
#[case(r#"{"pending_price_increases":[{"contract_id":31000001,"old_gpu_costpersec":0.0001,"new_gpu_costpersec":"0.0002",
    "old_disk_ram_costpersec":0.0001,"new_disk_ram_costpersec":0.0003}]}"#, Some(("0.72", "1.8")))]
#[case(
    r#"{"pending_price_increases":[{"contract_id":31000001,"old_gpu_costpersec":0.0002,"new_gpu_costpersec":0.0001}]}"#,
    None
)]
fn a_rise_is_what_becomes_dearer_by_the_hour(#[case] answer: &str, #[case] wanted: Option<(&str, &str)>) {
    let rises: wire::Rises = serde_json::from_str(answer).unwrap();
    let rise: wire::Rise = serde_json::from_str(rises.pending_price_increases[0].get()).unwrap();
    let told = instances::repricing(&rise).map(|told| (told.rate.amount(), told.asked.amount()));
    assert_eq!(told, wanted.map(|(rate, asked)| (dec(rate), dec(asked))));
}

// One instance, and actions.

const ONE: &str = "/api/v0/instances/31000001/";

async fn looked_up(with: ResponseTemplate) -> Result<Found, ProviderError> {
    let server = answers(ONE, with).await;
    account(server.uri()).lookup(ResourceKind::Instance, &"31000001".into(), now()).await
}

/// API-04, API-09: only the provider's own "no such id" means that; a refused key never does.
#[rstest]
#[case(200, r#"{"instances": null}"#, Some(true))]
#[case(404, r#"{"success":false,"error":"not_found","msg":"Instance not found"}"#, Some(true))]
#[case(404, r#"{"success":false,"error":"no_such_instance","msg":"Instance 31000001 not found."}"#, Some(true))]
#[case(404, r#"{"success":false,"msg":"Instance 31000001 not found."}"#, Some(true))]
#[case(404, r#"{"success":false,"error":"auth_error","msg":"Invalid user key"}"#, None)]
#[case(404, r#"{"success":false,"msg":"Session expired. Please log in again."}"#, None)]
#[case(404, r#"{"detail":"Not Found"}"#, None)]
#[case(404, "", None)]
#[case(200, "{}", None)]
#[case(200, r#"{"instances": {"id": 5}}"#, None)]
#[case(200, r#"{"instances": {"id": 31000001, "dph_base": []}}"#, None)]
#[case(410, r#"{"error":"deprecated_endpoint"}"#, None)]
#[case(200, include_str!("fixtures/instance_one.json"), Some(false))]
#[tokio::test]
async fn only_the_provider_says_that_there_is_no_such_id(
    #[case] status: u16,
    #[case] body: &str,
    #[case] gone: Option<bool>,
) {
    let found = looked_up(ResponseTemplate::new(status).set_body_raw(body, "application/json")).await;
    match (found, gone) {
        (Ok(Found::NoSuchId), Some(true)) => {}
        (Ok(Found::Instance(row)), Some(false)) => {
            assert_eq!((row.id.as_str(), row.phase), ("31000001", Phase::Running))
        }
        (Err(error), None) => assert_ne!(error.kind, ErrorKind::NoSuchId),
        (found, gone) => panic!("{found:?} instead of {gone:?}"),
    }
}

#[tokio::test]
async fn what_a_release_leaves_behind_is_known_by_id_too() {
    let server = answers(ONE, text(include_str!("fixtures/instance_one.json"))).await;
    let mounted = json!({"id": 31000001, "volume_info": [{"id": 5100001, "label": "ckpt", "total_space": 500}]});
    Mock::given(path(LIST))
        .and(query_param("select_filters", r#"{"id":{"eq":31000001}}"#))
        .respond_with(ok(page(json!([mounted]))))
        .mount(&server)
        .await;
    let found = account(server.uri()).lookup(ResourceKind::Instance, &"31000001".into(), now()).await.unwrap();
    let Found::Instance(row) = found else { panic!("{found:?}") };
    assert_eq!(effect(&row.offers.release).left_behind, [ResourceId::from("5100001")]);
}

#[tokio::test]
async fn a_volume_cannot_be_asked_for_by_id() {
    let vast = account("http://127.0.0.1:9".to_owned());
    let found = vast.lookup(ResourceKind::Storage, &"5100001".into(), now()).await;
    assert_eq!(found, Ok(Found::CannotAsk));
}

#[rstest]
#[case(Action::Stop, "PUT", "/api/v0/instances/7/", json!({"state": "stopped"}))]
#[case(Action::Start, "PUT", "/api/v0/instances/7/", json!({"state": "running"}))]
#[case(Action::Restart, "PUT", "/api/v0/instances/reboot/7/", json!({}))]
#[case(Action::Release, "DELETE", "/api/v0/instances/7/", json!({}))]
#[tokio::test]
async fn each_action_is_one_request(#[case] action: Action, #[case] verb: &str, #[case] to: &str, #[case] body: Value) {
    let server = MockServer::start().await;
    let right = Mock::given(method(verb)).and(path(to)).and(body_json(body));
    right.respond_with(ok(json!({"success": true}))).expect(1).mount(&server).await;
    assert_eq!(account(server.uri()).act(action, &"7".into()).await, Ok(Accepted::Done));
    assert_eq!(server.received_requests().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_volume_is_deleted_by_its_id_in_the_query() {
    let server = MockServer::start().await;
    Mock::given(method("DELETE"))
        .and(path("/api/v0/volumes/"))
        .and(query_param("id", "7"))
        .respond_with(ok(json!({"success": true})))
        .mount(&server)
        .await;
    assert_eq!(account(server.uri()).act(Action::Delete, &"7".into()).await, Ok(Accepted::Done));
}

/// LIFE-06, LIFE-11, API-10, API-11, API-12: how answers to actions are taken.
#[rstest]
#[case(Action::Start, 200, r#"{"success":false,"error":"resources_unavailable","msg":"Required resources are currently unavailable, state change queued."}"#, "queued")]
#[case(
    Action::Start,
    200,
    r#"{"success":false,"msg":"Required resources are currently unavailable, state change queued."}"#,
    "queued"
)]
#[case(Action::Stop, 200, r#"{"success":false,"msg":"state change queued"}"#, "refused")]
#[case(Action::Start, 400, r#"{"success":false,"msg":"Required resources are currently unavailable"}"#, "refused")]
#[case(Action::Start, 200, r#"{"success":false,"error":"invalid_args","msg":"no"}"#, "refused")]
#[case(
    Action::Release,
    404,
    r#"{"success":false,"error":"no_such_instance","msg":"Instance 7 not found."}"#,
    "already"
)]
#[case(Action::Release, 404, r#"{"success":false,"error":"auth_error","msg":"Invalid user key"}"#, "key")]
#[case(Action::Release, 404, "", "unknown")]
#[case(Action::Release, 403, "<html>blocked</html>", "unknown")]
#[case(Action::Release, 500, r#"{"msg":"Internal error"}"#, "unknown")]
#[case(Action::Release, 500, r#"{"msg":"Please try again in 60 seconds."}"#, "wait 60")]
#[case(
    Action::Release,
    429,
    r#"{"success":false,"error":"rate_limit_exceeded","msg":"API requests too frequent endpoint threshold=3.0"}"#,
    "rate"
)]
#[case(
    Action::Stop,
    404,
    r#"{"success":false,"error":"no_such_instance","msg":"Instance 7 not found."}"#,
    "no such id"
)]
#[case(
    Action::Delete,
    404,
    r#"{"success":false,"error":"no_such_volume","msg":"Volume with that ID does not exist."}"#,
    "already"
)]
#[case(
    Action::Delete,
    400,
    r#"{"success":false,"error":"invalid_args","msg":"the volume is in use by an instance"}"#,
    "refused"
)]
#[case(Action::Stop, 200, "", "unknown")]
#[tokio::test]
async fn an_answer_to_an_action_is_taken_for_what_it_says(
    #[case] action: Action,
    #[case] status: u16,
    #[case] body: &str,
    #[case] taken: &str,
) {
    let server = MockServer::start().await;
    let answer = ResponseTemplate::new(status)
        .set_body_raw(body, if body.starts_with('<') { "text/html" } else { "application/json" });
    Mock::given(method(if matches!(action, Action::Release | Action::Delete) { "DELETE" } else { "PUT" }))
        .respond_with(answer)
        .expect(1)
        .mount(&server)
        .await;
    let got = match account(server.uri()).act(action, &"7".into()).await {
        Ok(Accepted::Queued(words)) => {
            assert!(words.contains("queued"));
            "queued".to_owned()
        }
        Ok(Accepted::AlreadySo) => "already".to_owned(),
        Ok(Accepted::Done) => "done".to_owned(),
        Err(error) => match error.kind {
            kind if kind.outcome_unknown() => "unknown".to_owned(),
            ErrorKind::Credentials { .. } => "key".to_owned(),
            ErrorKind::NoSuchId => "no such id".to_owned(),
            ErrorKind::RateLimited { .. } => "rate".to_owned(),
            ErrorKind::Refused { .. } => "refused".to_owned(),
            ErrorKind::Server { retry_after: Some(wait), .. } => format!("wait {}", wait.as_secs()),
            kind => format!("{kind:?}"),
        },
    };
    assert_eq!(got, taken);
}

#[rstest]
#[case("")]
#[case("7/../8")]
#[case("seven")]
#[tokio::test]
async fn an_id_that_is_none_is_not_sent(#[case] id: &str) {
    let server = MockServer::start().await;
    let vast = account(server.uri());
    assert!(vast.act(Action::Release, &id.into()).await.is_err());
    assert!(vast.lookup(ResourceKind::Instance, &id.into(), now()).await.is_err());
    assert!(server.received_requests().await.unwrap().is_empty());
}

/// Every lane that a request names has a pace.
#[test]
fn each_lane_has_a_pace() {
    let source = include_str!("mod.rs");
    let named: Vec<&str> = source.split(".lane(\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(named.len() >= 9);
    for name in named {
        assert!(LANES.iter().any(|lane| lane.name == name), "{name}");
    }
}

#[test]
fn a_key_that_cannot_be_used_is_told_at_once() {
    let mut access = Access::new("vast", "team", " \n");
    assert!((ENTRY.connect)(&access).is_err());
    access.key = SecretString::from("k");
    access.facts.insert("no_such_fact".into(), "1".into());
    assert!((ENTRY.connect)(&access).is_err());
}

#[cfg(feature = "simulator")]
mod simulated {
    use std::collections::BTreeSet;

    use jiff::SignedDuration;

    use super::*;
    use crate::sim::{Happening, Harm, Life, Machine, Shared, SimClock, Simulator};

    struct Stage {
        simulator: Simulator,
        clock: SimClock,
        vast: Vast,
    }

    async fn stage() -> Stage {
        let clock = SimClock::manual(now());
        let world = Shared::new(simulator::sample(clock.clone()));
        let simulator = Simulator::serve(simulator::routes(world.clone()), world).await.unwrap();
        let vast = account(simulator.url());
        Stage { simulator, clock, vast }
    }

    impl Stage {
        fn world(&self) -> &Shared {
            &self.simulator.world
        }

        async fn poll(&self, ask: Ask) -> Poll {
            self.vast.poll(ask, self.clock.now()).await
        }

        async fn row(&self, id: &str) -> Option<Instance> {
            let poll = self.poll(Ask::INSTANCES).await;
            assert!(matches!(&poll.instances, Part::Listed { problems, .. } if problems.is_empty()), "{poll:?}");
            poll.instances.rows().iter().find(|row| row.id.as_str() == id).cloned()
        }

        async fn phase(&self, id: &str) -> Option<Phase> {
            self.row(id).await.map(|row| row.phase)
        }

        async fn act(&self, action: Action, id: &str) -> Result<Accepted, ProviderError> {
            self.vast.act(action, &id.into()).await
        }

        async fn lookup(&self, id: &str) -> Result<Found, ProviderError> {
            self.vast.lookup(ResourceKind::Instance, &id.into(), self.clock.now()).await
        }

        fn pass(&self, seconds: i64) {
            self.clock.advance(SignedDuration::from_secs(seconds));
        }
    }

    #[tokio::test]
    async fn the_sample_reads_as_it_was_planted() {
        let stage = stage().await;
        let poll = stage.poll(Ask::ALL).await;
        let rows = poll.instances.rows();
        assert_eq!((rows.len(), poll.storage.rows().len()), (4, 2));
        assert_eq!(
            rows.iter().map(|row| row.phase).collect::<Vec<_>>(),
            [Phase::Running, Phase::Running, Phase::Stopped, Phase::Running]
        );
        let burn = stage.world().lock().burn();
        let told: Decimal = rows
            .iter()
            .map(|row| certain(&row.rates))
            .chain(poll.storage.rows().iter().map(|row| certain(&row.rates)))
            .sum();
        assert_eq!(told.round_dp(6), burn.round_dp(6), "the wire tells what the world charges");
        assert!(matches!(poll.balance, Reading::Known(Balance { cash, .. }) if cash.amount == dec("42.5")));
        assert_eq!(poll.tenant, Reading::Known(Tenant { id: "900001".to_owned() }));
        assert_eq!(rows[1].usage.as_ref().and_then(crate::usage::Usage::mean_utilization), Some(0.0));
        assert_eq!(rows[1].ssh.as_ref().map(|ssh| (ssh.host.as_str(), ssh.direct)), Some(("192.0.2.45", true)));
        let shown = format!("{poll:?} {}", serde_json::to_string(&poll).unwrap());
        assert!(!shown.contains("TESTSECRET"), "SEC-03");
    }

    #[tokio::test]
    async fn a_fleet_of_sixty_takes_three_pages() {
        let stage = stage().await;
        {
            let mut world = stage.world().lock();
            let more: Vec<Machine> = (0..56).map(|n| Machine::new(&format!("{}", 32_000_000 + n), "", now())).collect();
            world.machines.extend(more);
        }
        let poll = stage.poll(Ask::INSTANCES).await;
        let Part::Listed { rows, problems } = poll.instances else { panic!() };
        assert_eq!((rows.len(), problems.len()), (60, 0), "{problems:?}");
        assert_eq!(stage.world().lock().count("GET", LIST), 3);
    }

    /// API-04: the simulator answers a wrong key as the provider does.
    #[tokio::test]
    async fn a_wrong_key_is_not_an_empty_account() {
        let stage = stage().await;
        let access = Access::new("vast", "team", "wrong").at(stage.simulator.url());
        let vast = Vast::new(&access, &[]).unwrap();
        let poll = vast.poll(Ask::ALL, now()).await;
        assert!(matches!(failure(&poll.instances), ErrorKind::Credentials { .. }));
        assert!(matches!(failure(&poll.storage), ErrorKind::Credentials { .. }));
        assert!(matches!(poll.balance, Reading::Failed(_)) && matches!(poll.tenant, Reading::Failed(_)));
        let found = vast.lookup(ResourceKind::Instance, &"31000001".into(), now()).await;
        assert!(found.unwrap_err().kind.is_credentials());
        assert!(vast.act(Action::Release, &"31000001".into()).await.unwrap_err().kind.is_credentials());
        assert_eq!(stage.phase("31000001").await, Some(Phase::Running));
    }

    #[tokio::test]
    async fn a_stop_and_a_start_are_seen_to_their_end() {
        let stage = stage().await;
        assert_eq!(stage.act(Action::Stop, "31000001").await, Ok(Accepted::Done));
        assert_eq!(stage.phase("31000001").await, Some(Phase::Stopping));
        stage.pass(7);
        let stopped = stage.row("31000001").await.unwrap();
        assert_eq!((stopped.phase, stopped.ssh, stopped.usage), (Phase::Stopped, None, None));
        assert_eq!(certain(&stopped.rates), dec("0.0111111111"));
        assert_eq!(
            stage.act(Action::Stop, "31000001").await,
            Ok(Accepted::Done),
            "a stop of a stopped one changes nothing"
        );
        assert_eq!(stage.act(Action::Start, "31000001").await, Ok(Accepted::Done));
        assert_eq!(stage.phase("31000001").await, Some(Phase::Provisioning));
        stage.pass(7);
        assert_eq!(stage.phase("31000001").await, Some(Phase::Running));
        assert_eq!(stage.act(Action::Restart, "31000001").await, Ok(Accepted::Done));
        assert_eq!(stage.phase("31000001").await, Some(Phase::Provisioning));
        stage.pass(7);
        assert_eq!(stage.phase("31000001").await, Some(Phase::Running));
    }

    /// LIFE-06: the GPU is taken, the start waits, and a stop takes it back.
    #[tokio::test]
    async fn a_start_that_waits_can_be_taken_back() {
        let stage = stage().await;
        assert!(matches!(stage.act(Action::Start, "31000003").await, Ok(Accepted::Queued(_))));
        let waiting = stage.row("31000003").await.unwrap();
        assert_eq!((waiting.phase, &waiting.remarks[..]), (Phase::Provisioning, &[Remark::StartQueued][..]));
        assert!(certain(&waiting.rates) < upper(&waiting.rates));
        assert_eq!(stage.act(Action::Stop, "31000003").await, Ok(Accepted::Done));
        assert_eq!(stage.phase("31000003").await, Some(Phase::Stopped));
    }

    /// LIFE-03, API-09: released, then absent, then no such id, then already so.
    #[tokio::test]
    async fn a_release_is_seen_to_its_end() {
        let stage = stage().await;
        let Found::Instance(before) = stage.lookup("31000002").await.unwrap() else { panic!() };
        assert_eq!(effect(&before.offers.release).left_behind, [ResourceId::from("5100001")]);
        assert_eq!(
            stage.act(Action::Delete, "5100001").await.unwrap_err().kind.to_string(),
            "refused: the volume is in use by an instance"
        );
        assert_eq!(stage.act(Action::Release, "31000002").await, Ok(Accepted::Done));
        assert_eq!(stage.phase("31000002").await, Some(Phase::Releasing));
        stage.pass(7);
        assert_eq!(stage.row("31000002").await, None);
        assert_eq!(stage.lookup("31000002").await, Ok(Found::NoSuchId));
        assert_eq!(stage.act(Action::Release, "31000002").await, Ok(Accepted::AlreadySo));
        assert!(stage.act(Action::Stop, "31000002").await.is_err());
        assert_eq!(stage.act(Action::Delete, "5100001").await, Ok(Accepted::Done));
        assert_eq!(stage.act(Action::Delete, "5100001").await, Ok(Accepted::AlreadySo));
        assert_eq!(stage.poll(Ask { storage: true, money: false }).await.storage.rows().len(), 1);
    }

    /// LIFE-05 on the whole way: outbid, seen, and stopped for good.
    #[tokio::test]
    async fn an_outbid_machine_waits_for_its_turn_until_it_is_stopped() {
        let stage = stage().await;
        let at = now() + SignedDuration::from_secs(60);
        stage.world().lock().happenings.push(Happening { at, machine: "31000004".to_owned(), life: Life::Outbid });
        stage.pass(61);
        let row = stage.row("31000004").await.unwrap();
        assert_eq!((row.phase, &row.remarks[..]), (Phase::Reclaimed, &[Remark::Outbid][..]));
        assert_eq!(row.rates.of(&[Component::Compute]).of(Currency::USD).amount(), Decimal::ZERO);
        assert_eq!(letters(&row.offers), "sx");
        assert_eq!(stage.act(Action::Stop, "31000004").await, Ok(Accepted::Done));
        assert_eq!(stage.phase("31000004").await, Some(Phase::Stopped));
    }

    #[rstest]
    #[case(Life::Offline, Phase::Unreachable)]
    #[case(Life::Failed, Phase::Failed)]
    #[case(Life::Provisioning, Phase::Provisioning)]
    #[tokio::test]
    async fn each_life_has_its_phase(#[case] life: Life, #[case] phase: Phase) {
        let stage = stage().await;
        stage.world().lock().machines[0].life = life;
        let row = stage.row("31000001").await.unwrap();
        assert_eq!(row.phase, phase);
        let world = stage.world().lock();
        let charged = world.compute_of(&world.machines[0]) + world.disk_of(&world.machines[0]);
        assert_eq!(certain(&row.rates).round_dp(6), charged.round_dp(6));
    }

    /// What the history tells is what the balance lost.
    #[tokio::test]
    async fn the_history_agrees_with_the_balance() {
        let stage = stage().await;
        // To the next midnight, then a day.
        let wait = super::super::midnight_from(stage.clock.now()).duration_since(stage.clock.now());
        stage.pass(wait.as_secs());
        let (began, before) = (stage.clock.now(), stage.world().lock().balance);
        stage.pass(3600);
        stage.act(Action::Stop, "31000001").await.unwrap();
        stage.act(Action::Release, "31000004").await.unwrap();
        stage.pass(23 * 3600);
        let lost = before - stage.world().lock().balance;
        let ended = stage.clock.now();
        let lines = stage.vast.billed(began, ended).await.unwrap();
        let sum: Decimal = lines.iter().map(|line| line.amount.amount).sum();
        assert!((sum - lost).abs() < dec("0.01"), "{sum} against {lost}");
        let of = |id: &str, component| -> Decimal {
            let of_it = |line: &&BilledLine| {
                line.component == component && line.resource.as_ref().is_some_and(|(_, known)| known.as_str() == id)
            };
            lines.iter().filter(of_it).map(|line| line.amount.amount).sum()
        };
        assert_eq!(of("31000001", Component::Compute), dec("0.401"), "an hour and the seconds of stopping");
        assert_eq!(of("31000002", Component::Compute), dec("422.4"), "a day");
        assert_eq!(of("5100001", Component::Storage), dec("1.667"));
        assert_eq!(stage.vast.billed(began, ended).await.unwrap(), lines);
    }

    /// COST-10: the old rate holds until the rise is accepted.
    #[tokio::test]
    async fn a_price_rise_is_told_and_counts_once_it_is_accepted() {
        let stage = stage().await;
        stage.world().lock().machines[0].asked_per_hour = Some(dec("0.8"));
        let row = |poll: &Poll| poll.instances.rows()[0].clone();
        let told = row(&stage.poll(Ask::ALL).await);
        let repricing = told.repricing.unwrap();
        // Told by the second, with ten decimals.
        let [rate, asked] = [repricing.rate, repricing.asked].map(|rate| rate.amount().round_dp(6));
        assert_eq!((rate, asked), (dec("0.4"), dec("0.8")));
        assert!(repricing.ends_at.is_some_and(|at| Some(at) == told.ends_at));
        let compute = |row: &Instance| row.rates.of(&[Component::Compute]).of(Currency::USD).amount();
        assert_eq!(compute(&told), dec("0.4"), "what is charged is the old price");
        assert_eq!(row(&stage.poll(Ask::INSTANCES).await).repricing, Some(repricing), "between two questions too");
        let body = json!({"pending_price_increase_id": 31_000_001});
        let accept = format!("{}/api/v0/instances/accept-price-increase/", stage.simulator.url());
        let put = reqwest::Client::new().put(accept).bearer_auth("sim-vast-key").json(&body);
        assert!(put.send().await.unwrap().status().is_success());
        let after = row(&stage.poll(Ask::ALL).await);
        assert_eq!((after.repricing, compute(&after)), (None, dec("0.8")));
        // Asking is no matter of life: what was told stands, and the list with it.
        stage.world().lock().machines[0].asked_per_hour = Some(dec("0.9"));
        stage.poll(Ask::ALL).await;
        let page = Harm::Answer { status: 404, headers: vec![], content_type: "text/html", body: "<html>".into() };
        stage.world().fault("GET", "pending-price-increases", 3, page);
        assert!(row(&stage.poll(Ask::ALL).await).repricing.is_some());
    }

    #[tokio::test]
    async fn a_poll_without_http_says_the_same() {
        let stage = stage().await;
        let (over_http, without) = (stage.poll(Ask::ALL).await, simulator::poll(&stage.world().lock()));
        assert_eq!((without.instances, without.storage), (over_http.instances, over_http.storage));
    }

    /// A charge under another component than its rate would count beside our own figure, and not in its place.
    #[tokio::test]
    async fn what_is_billed_has_the_components_of_the_rates() {
        let stage = stage().await;
        let poll = stage.poll(Ask::ALL).await;
        stage.pass(48 * 3600);
        let began = stage.clock.now() - SignedDuration::from_hours(48);
        let lines = stage.vast.billed(began, stage.clock.now()).await.unwrap();
        let billed = |id: &ResourceId| -> BTreeSet<Component> {
            let of_it = |line: &&BilledLine| line.resource.as_ref().is_some_and(|(_, known)| known == id);
            lines.iter().filter(of_it).filter(|line| !line.amount.amount.is_zero()).map(|line| line.component).collect()
        };
        let rated = |rates: &Rates| rates.lines.iter().map(|line| line.component).collect::<BTreeSet<_>>();
        for row in poll.instances.rows() {
            assert_eq!(billed(&row.id), rated(&row.rates), "{}", row.id);
        }
        for item in poll.storage.rows() {
            assert_eq!(billed(&item.id), rated(&item.rates), "{}", item.id);
        }
    }

    #[tokio::test]
    async fn an_answer_that_hangs_or_breaks_off_is_told_as_such() {
        let stage = stage().await;
        stage.world().fault("GET", LIST, 1, Harm::Hang);
        assert!(matches!(failure(&stage.poll(Ask::INSTANCES).await.instances), ErrorKind::Timeout { .. }));
        stage.world().fault("GET", LIST, 3, Harm::CutBody);
        assert!(matches!(failure(&stage.poll(Ask::INSTANCES).await.instances), ErrorKind::Disconnected { .. }));
        stage.world().fault("PUT", "/instances/", 1, Harm::ApplyThenHang);
        let error = stage.act(Action::Stop, "31000001").await.unwrap_err();
        assert!(error.kind.outcome_unknown(), "{error}");
        assert_eq!(stage.world().lock().count("PUT", "/instances/"), 1, "sent once");
        assert_eq!(stage.phase("31000001").await, Some(Phase::Stopping));
        stage.world().fault(
            "GET",
            VOLUMES,
            3,
            Harm::Answer { status: 500, headers: vec![], content_type: "text/plain", body: "upstream".into() },
        );
        let poll = stage.poll(Ask::ALL).await;
        assert!(matches!(failure(&poll.storage), ErrorKind::Server { .. }));
        assert_eq!(poll.instances.rows().len(), 4, "one list that fails leaves the others");
    }
}
