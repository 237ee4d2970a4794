//! Fixtures to model, failures over real HTTP, and whole lives against the simulator.

mod answers;
#[cfg(feature = "simulator")]
mod lives;

use jiff::Timestamp;
use rstest::rstest;
use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::graphql::Extra;
use super::*;
use crate::model::{
    Component, DataKind, Effect, Fate, Market, Offer, Phase, Rates, Refusal, Remark, Risk, SshEndpoint, StorageItem,
};
use crate::money::{Currency, Rate};

const PODS: &str = include_str!("fixtures/pods.json");
const NULLS: &str = include_str!("fixtures/pods_nulls.json");

/// Lanes without a pace.
const FAST: [Lane; 3] = [Lane::new(PODS, 1), Lane::new(VOLUMES, 1), Lane::new(BILLING, 1).background()];

fn now() -> Timestamp {
    "2026-11-30T09:00:00Z".parse().unwrap()
}

fn dec(text: &str) -> Decimal {
    text.parse().unwrap()
}

fn facts() -> Facts {
    Facts::built_in(ENTRY.facts)
}

fn pod_of(json: &str) -> wire::Pod {
    serde_json::from_str(json).unwrap()
}

fn instance_of(json: Value, extra: Option<&Extra>) -> Instance {
    pods::instance(pod_of(&json.to_string()), extra, &facts(), now())
}

/// A running pod with one card and no mount, changed by `change`.
fn pod(change: Value) -> Instance {
    pod_with(change, None)
}

fn pod_with(change: Value, extra: Option<&Extra>) -> Instance {
    let mut pod = json!({
        "id": "p0", "name": "n0", "status": "RUNNING", "actions": ["stop", "restart", "terminate"], "disk": 50,
        "mounts": {}, "gpu": { "id": "NVIDIA L4", "count": 1 }, "cost": 0.5, "locked": false,
        "createdAt": "2026-11-20T08:00:00Z", "startedAt": "2026-11-28T09:00:00Z",
    });
    for (key, value) in change.as_object().unwrap() {
        pod[key] = value.clone();
    }
    instance_of(pod, extra)
}

/// An instance of a fixture, by id.
fn of_fixture(fixture: &str, id: &str) -> Instance {
    let list: wire::PodList = serde_json::from_str(fixture).unwrap();
    let rows = list.pods.iter().map(|row| pods::instance(pod_of(row.get()), None, &facts(), now()));
    rows.into_iter().find(|instance| instance.id.as_str() == id).unwrap()
}

fn certain(rates: &Rates) -> Decimal {
    rates.certain().of(Currency::USD).amount()
}

fn upper(rates: &Rates) -> Decimal {
    rates.upper().of(Currency::USD).amount()
}

fn compute(rates: &Rates) -> Decimal {
    rates.of(&[Component::Compute]).of(Currency::USD).amount()
}

fn effect(offer: &Offer) -> &Effect {
    offer.effect().expect("an offer")
}

fn monthly(size: &str, price: &str) -> Decimal {
    Rate::of_month(dec(size), dec(price), dec("730"), Currency::USD).unwrap().amount()
}

#[rstest]
#[case("a1podrunfull01", Phase::Running, "RUNNING")]
#[case("a5podprov00005", Phase::Provisioning, "PROVISIONING")]
#[case("a6podstart0006", Phase::Provisioning, "STARTING")]
#[case("a7podexited007", Phase::Stopped, "EXITED")]
#[case("b1poderror0001", Phase::Failed, "ERROR")]
#[case("b2podterm00002", Phase::Gone, "TERMINATED")]
fn each_status_has_its_phase(#[case] id: &str, #[case] phase: Phase, #[case] word: &str) {
    let instance = of_fixture(PODS, id);
    assert_eq!((instance.phase, instance.provider_phase.as_deref()), (phase, Some(word)));
}

#[test]
fn a_running_instance_is_read_in_full() {
    let instance = of_fixture(PODS, "a1podrunfull01");
    assert_eq!(instance.name.as_deref(), Some("train-llama"));
    let gpus = instance.gpus.unwrap();
    assert_eq!((gpus.model.as_str(), gpus.count, gpus.memory_gib), ("RTX 4090", 1, Some(24)));
    assert_eq!(compute(&instance.rates), dec("0.69"));
    assert_eq!(upper(&instance.rates), dec("0.69") + monthly("70", "0.10"));
    assert!(instance.rates.complete && instance.rates.estimated());
    assert_eq!(instance.created_at.unwrap().to_string(), "2026-11-20T08:00:00Z");
    assert_eq!(instance.started_at.unwrap().to_string(), "2026-11-28T09:00:00Z");
    assert_eq!(instance.ssh, SshEndpoint::new("root", "198.51.100.20", 34440, true));
    assert_eq!(instance.region.as_deref(), Some("US-KS-2"));
    let usage = instance.usage.unwrap();
    assert_eq!((usage.gpus[0].utilization, usage.cpu, usage.memory), (Some(0.94), Some(0.45), Some(0.62)));
    assert_eq!(usage.gpus[0].memory_used_bytes, Some((0.78 * f64::from(24 << 20) * 1024.0) as u64));
    assert!(instance.page.unwrap().starts_with("https://"));
}

/// Rate lines are one a component: what surely bills, what may, and what is estimated.
#[rstest]
// Running: compute and both disks.
#[case("RUNNING", "0.5", true, monthly("70", "0.10"), true)]
// Compute may be charged while the image comes, the disk surely is.
#[case("STARTING", "0.5", false, monthly("70", "0.10"), true)]
#[case("PROVISIONING", "0.5", false, monthly("70", "0.10"), false)]
// Stopped: 0.0 is not free, the volume costs twice as much.
#[case("EXITED", "0", true, monthly("20", "0.20"), true)]
#[case("ERROR", "0.5", false, monthly("20", "0.20"), true)]
// A word that nobody knows: the dearest that it may be.
#[case("MIGRATING", "0.5", false, monthly("90", "0.10"), false)]
fn each_state_bills_what_the_facts_say(
    #[case] status: &str,
    #[case] compute_rate: &str,
    #[case] compute_certain: bool,
    #[case] disk_rate: Decimal,
    #[case] disk_certain: bool,
) {
    let rates =
        pod(json!({ "status": status, "mounts": { "persistent": { "size": 20, "path": "/workspace" } } })).rates;
    assert_eq!(compute(&rates), dec(compute_rate));
    let line = |component| rates.lines.iter().find(move |line| line.component == component);
    assert!(line(Component::Compute).is_none_or(|line| line.certain == compute_certain && !line.estimated));
    let disk = line(Component::Disk).unwrap();
    assert_eq!((disk.rate.amount(), disk.certain, disk.estimated), (disk_rate, disk_certain, true));
    assert!(rates.complete && rates.lines.len() <= 2);
}

#[test]
fn a_stopped_instance_costs_by_its_volume_and_not_by_its_cost() {
    let stopped = of_fixture(PODS, "a7podexited007");
    assert_eq!(certain(&stopped.rates), monthly("120", "0.20"));
    for free in ["a8podexitnv008", "a9podexitno009"] {
        let rates = of_fixture(PODS, free).rates;
        assert!(rates.complete && rates.lines.is_empty(), "{free}");
    }
}

/// API-07, on today's wire: a price as a text, a savings plan, ports not there yet, a stopped CPU instance.
#[test]
fn odd_prices_and_missing_ports_are_read() {
    let plan = Extra { list_price: Some(dec("0.74")), adjusted_price: Some(dec("0.69")), ..Extra::default() };
    let direct = json!({ "direct": { "host": "100.65.0.119", "port": 10341, "username": "root" }, "proxy": null });
    let a = pod_with(json!({ "id": "a", "cost": "0.74", "ssh": direct }), Some(&plan));
    let b = pod(json!({ "id": "b", "cost": 1.19, "ssh": null, "ports": [] }));
    let c = pod(json!({ "id": "c", "cost": "0.06", "status": "EXITED", "gpu": null, "cpu": { "id": "cpu3c" } }));
    assert_eq!((compute(&a.rates), compute(&b.rates), compute(&c.rates)), (dec("0.69"), dec("1.19"), dec("0")));
    assert_eq!(a.ssh, SshEndpoint::new("root", "100.65.0.119", 10341, true));
    assert_eq!((b.ssh, b.phase, c.phase), (None, Phase::Running, Phase::Stopped));
}

#[test]
fn a_cost_that_already_heeds_the_plan_is_not_lowered_again() {
    let plan = Extra { list_price: Some(dec("0.74")), adjusted_price: Some(dec("0.69")), ..Extra::default() };
    assert_eq!(compute(&pod_with(json!({ "cost": 0.02 }), Some(&plan)).rates), dec("0.02"));
    assert_eq!(compute(&pod_with(json!({ "cost": 0.69 }), Some(&plan)).rates), dec("0.69"));
}

/// API-08: a word that nobody mapped is shown, and counts in the upper burn only.
#[test]
fn unknown_words_may_be_billing() {
    let words = [json!("RUNNING"), json!("EXITED"), json!("DEAD"), json!("MIGRATING"), json!(null)];
    let rows = words.map(|word| pod(json!({ "status": word, "disk": 0 })));
    let phases = rows.each_ref().map(|row| row.phase);
    use Phase::{Running, Stopped, Unknown};
    assert_eq!(phases, [Running, Stopped, Unknown, Unknown, Unknown]);
    assert_eq!(rows[3].provider_phase.as_deref(), Some("MIGRATING"));
    assert_eq!(rows[4].provider_phase, None);
    assert_eq!(rows.iter().map(|row| certain(&row.rates)).sum::<Decimal>(), dec("0.5"));
    assert_eq!(rows.iter().map(|row| upper(&row.rates)).sum::<Decimal>(), dec("2.0"));
}

/// API-14: a stopped instance offers no address, and the uptime is where it is live.
#[test]
fn an_old_address_is_not_offered_and_the_run_began_by_its_uptime() {
    let direct = json!({ "direct": { "host": "100.65.0.101", "port": 60141, "username": "root" } });
    let runtime = json!({ "uptime": 3931 });
    let old = pod(json!({ "status": "EXITED", "ssh": direct }));
    let new = pod(json!({ "ssh": direct, "runtime": runtime, "startedAt": null }));
    assert_eq!((old.ssh, old.started_at), (None, None));
    assert_eq!(now().duration_since(new.started_at.unwrap()).as_secs(), 3931);
    assert!(new.ssh.is_some() && !new.remarks.contains(&Remark::StartTimeUnknown));
}

/// SSH-02: no port yet, no 22/tcp, an empty block, the proxy only, a public port.
#[rstest]
#[case(json!(null), None)]
#[case(json!({}), None)]
#[case(json!({ "proxy": null, "direct": null }), None)]
#[case(json!({ "proxy": { "host": "ssh1.example.invalid", "port": 10600, "username": "p0-64" } }), Some(("ssh1.example.invalid", 10600, false)))]
#[case(json!({ "direct": { "host": "192.0.2.45", "port": 20000, "username": "root" } }), Some(("192.0.2.45", 20000, true)))]
#[case(json!({ "direct": { "host": "-oProxyCommand=x", "port": 20000, "username": "root" } }), None)]
#[case(json!("odd"), None)]
fn ssh_is_offered_where_it_reaches(#[case] ssh: Value, #[case] expected: Option<(&str, u16, bool)>) {
    let endpoint = pod(json!({ "ssh": ssh })).ssh;
    assert_eq!(endpoint.as_ref().map(|end| (end.host.as_str(), end.port.unwrap(), end.direct)), expected);
}

/// COST-14: `cost` is for the whole instance.
#[test]
fn eight_cards_cost_what_the_instance_costs() {
    let big = pod(json!({ "cost": 21.52, "gpu": { "id": "NVIDIA H100 80GB HBM3", "count": 8 } }));
    assert_eq!(compute(&big.rates), dec("21.52"));
    let gpus = big.gpus.unwrap();
    assert_eq!((gpus.model.as_str(), gpus.count), ("H100 SXM", 8));
}

/// GPU-08 on this wire: a count of its own, none at all, a part of a card, no card by kind.
#[rstest]
#[case("c2podnulls0002", NULLS, Some(("L4", 1)))]
#[case("a3podeight0003", PODS, Some(("H100 SXM", 8)))]
#[case("b4podmig000004", PODS, Some(("NVIDIA RTX PRO 6000 Blackwell MIG 1g.24gb", 1)))]
#[case("b3podcpu000003", PODS, Some(("cpu5c", 0)))]
#[case("c3podnulls0003", NULLS, None)]
fn cards_have_a_name_and_a_count(#[case] id: &str, #[case] fixture: &str, #[case] expected: Option<(&str, u32)>) {
    let instance = of_fixture(fixture, id);
    assert_eq!(instance.gpus.as_ref().map(|gpus| (gpus.model.as_str(), gpus.count)), expected);
    assert!(!instance.remarks.contains(&Remark::NoGpus), "{id}");
}

/// LIFE-07: a start that found no GPU, as a count of 0 and as a missing part.
#[test]
fn a_start_without_gpus_says_so() {
    let counted =
        instance_of(serde_json::from_str(include_str!("fixtures/action_start_zero_gpus.json")).unwrap(), None);
    for instance in [counted, pod(json!({ "gpu": null, "cost": 0.02 }))] {
        assert_eq!((instance.phase, instance.gpus.unwrap().count), (Phase::Running, 0));
        assert!(instance.remarks.contains(&Remark::NoGpus));
        assert_eq!(compute(&instance.rates), dec("0.02"));
        assert_eq!(instance.usage.and_then(|usage| usage.mean_utilization()), None);
    }
}

/// LIFE-12: a locked instance refuses to be stopped, whether `actions` still names it or not.
#[test]
fn a_locked_instance_is_not_stopped() {
    for locked in [of_fixture(PODS, "a3podeight0003"), pod(json!({ "locked": true }))] {
        assert_eq!(locked.offers.stop, Offer::No(Refusal::Locked));
        assert!(locked.remarks.contains(&Remark::Locked));
        assert!(locked.offers.release.effect().is_some());
    }
}

/// DATA-05: a stop loses everything where nothing lasting is mounted, and nothing that needs a typed name
/// where something is.
#[rstest]
#[case(json!({}), true)]
#[case(json!({ "persistent": null, "network": [] }), true)]
#[case(json!({ "persistent": { "size": 100, "path": "/workspace" } }), false)]
#[case(json!({ "network": [{ "volumeId": "v1", "path": "/workspace" }] }), false)]
#[case(json!(null), true)]
fn a_stop_loses_data_only_without_a_lasting_mount(#[case] mounts: Value, #[case] loses: bool) {
    let instance = pod(json!({ "mounts": mounts }));
    for offer in [&instance.offers.stop, &instance.offers.restart] {
        assert_eq!(effect(offer).loses_data(), loses);
        assert!(effect(offer).lost.iter().all(|place| place.kind == DataKind::ContainerDisk));
    }
    assert_eq!(instance.remarks.contains(&Remark::NothingSurvivesStop), loses && !mounts.is_null());
    // Mounts that are not told leave the rate open.
    assert_eq!(effect(&instance.offers.stop).rates_after.complete, !mounts.is_null());
}

#[test]
fn a_stop_keeps_the_volume_at_twice_the_price_and_warns() {
    let instance = pod(json!({ "mounts": { "persistent": { "size": 100, "path": "/workspace" } } }));
    let stop = effect(&instance.offers.stop);
    assert_eq!(certain(&stop.rates_after), monthly("100", "0.20"));
    assert_eq!((stop.kept[0].kind, stop.kept[0].size_gb), (DataKind::VolumeDisk, Some(dec("100"))));
    assert_eq!(stop.kept[0].path.as_deref(), Some("/workspace"));
    assert_eq!(stop.risks, [Risk::ScratchErased, Risk::GpuMayBeTaken, Risk::AddressChanges]);
}

#[test]
fn a_release_loses_its_own_disks_and_leaves_network_volumes_behind() {
    let own = pod(json!({ "mounts": { "persistent": { "size": 100, "path": "/workspace" } } }));
    let kinds = |offer: &Offer| effect(offer).lost.iter().map(|place| place.kind).collect::<Vec<_>>();
    assert_eq!(kinds(&own.offers.release), [DataKind::VolumeDisk, DataKind::ContainerDisk]);
    assert!(effect(&own.offers.release).rates_after.lines.is_empty());
    let network = of_fixture(PODS, "a8podexitnv008");
    let release = effect(&network.offers.release);
    assert!(release.lost.is_empty(), "a stop had erased the container disk already");
    assert_eq!(release.left_behind, [ResourceId::from("nvvol0000a")]);
    assert_eq!(release.kept[0].kind, DataKind::NetworkVolume);
    assert_eq!(kinds(&of_fixture(PODS, "a7podexited007").offers.release), [DataKind::VolumeDisk]);
}

#[test]
fn a_start_names_its_price_where_graphql_knows_it() {
    let mounts = json!({ "persistent": { "size": 20, "path": "/workspace" } });
    let stopped = json!({ "status": "EXITED", "actions": ["start", "terminate"], "cost": 0.0, "mounts": mounts });
    let blind = pod(stopped.clone());
    let start = effect(&blind.offers.start);
    assert!(!start.rates_after.complete && start.risks == [Risk::StartMayLackGpu] && !start.loses_data());
    let plan = Extra { list_price: Some(dec("0.69")), adjusted_price: Some(dec("0.55")), ..Extra::default() };
    let start = pod_with(stopped, Some(&plan)).offers.start;
    assert_eq!(compute(&effect(&start).rates_after), dec("0.55"));
    assert_eq!(upper(&effect(&start).rates_after), dec("0.55") + monthly("70", "0.10"));
}

/// `actions` decides; the documented table only where the answer does not speak of it.
#[rstest]
#[case("RUNNING", json!(["stop", "restart", "terminate"]), [true, false, true, true])]
#[case("EXITED", json!(["start", "terminate"]), [false, true, false, true])]
#[case("PROVISIONING", json!(["start", "terminate"]), [false, true, false, true])]
#[case("RUNNING", json!([]), [false; 4])]
#[case("HIBERNATING", json!(["wake"]), [false; 4])]
#[case("RUNNING", json!(null), [true, false, true, true])]
#[case("STARTING", json!(null), [true, false, false, true])]
#[case("ERROR", json!(null), [false, true, false, true])]
#[case("TERMINATED", json!(null), [false; 4])]
fn offers_follow_the_answer(#[case] status: &str, #[case] actions: Value, #[case] expected: [bool; 4]) {
    let offers = pod(json!({ "status": status, "actions": actions })).offers;
    let all = [&offers.stop, &offers.start, &offers.restart, &offers.release];
    assert_eq!(all.map(|offer| offer.effect().is_some()), expected);
    let refusals = all.iter().filter(|offer| ***offer == Offer::No(Refusal::WrongPhase)).count();
    assert_eq!(refusals, expected.iter().filter(|had| !**had).count());
}

#[test]
fn a_member_of_a_cluster_is_managed_elsewhere_and_still_counted() {
    let member = pod(json!({ "cluster": { "id": "cl1", "rank": 0 } }));
    for action in [Action::Stop, Action::Start, Action::Restart, Action::Release] {
        assert_eq!(member.offers.of(action), Offer::No(Refusal::ManagedElsewhere));
    }
    assert_eq!(compute(&member.rates), dec("0.5"));
}

/// No figure is no figure: never 0 %.
#[rstest]
#[case(json!(null))]
#[case(json!({}))]
#[case(json!({ "uptime": 5, "gpus": [], "cpu": {}, "memory": {}, "ports": [] }))]
#[case(json!({ "gpus": [{}, { "util": null }] }))]
#[case(json!({ "gpus": "odd" }))]
fn silence_is_not_idleness(#[case] runtime: Value) {
    let instance = pod(json!({ "runtime": runtime }));
    assert_eq!((instance.phase, instance.usage), (Phase::Running, None));
}

#[test]
fn a_running_instance_without_gpu_figures_keeps_the_others() {
    assert_eq!(of_fixture(PODS, "a2podnotele002").usage, None);
    let cpu = of_fixture(PODS, "b3podcpu000003");
    let usage = cpu.usage.unwrap();
    assert!(usage.gpus.is_empty() && usage.cpu == Some(0.71));
    assert!(cpu.remarks.contains(&Remark::NothingSurvivesStop));
}

fn telemetry(time: &str) -> Extra {
    let text = json!({ "time": time, "individualGpuMetrics": [
        { "percentUtilization": 93, "temperatureCelcius": 66, "memoryUtilization": 50, "powerWatts": 401.5 }] });
    Extra { telemetry: Some(serde_json::from_str(&text.to_string()).unwrap()), ..Extra::default() }
}

/// The host's own figures have temperature and power, and a time: they count while they are fresh.
#[rstest]
#[case("2026-11-30T08:59:30Z", Some(0.93), Some(66.0), "2026-11-30T08:59:30Z")]
// A clock that is ahead makes no figure of the future.
#[case("2026-11-30T09:05:00Z", Some(0.93), Some(66.0), "2026-11-30T09:00:00Z")]
#[case("2026-11-30T08:40:00Z", Some(0.10), None, "2026-11-30T09:00:00Z")]
fn fresh_telemetry_comes_first(
    #[case] time: &str,
    #[case] utilization: Option<f64>,
    #[case] temperature: Option<f64>,
    #[case] as_of: &str,
) {
    let live = json!({ "runtime": { "gpus": [{ "util": 10 }], "cpu": { "util": 5 } } });
    let usage = pod_with(live, Some(&telemetry(time))).usage.unwrap();
    assert_eq!((usage.gpus[0].utilization, usage.gpus[0].temperature_c), (utilization, temperature));
    assert_eq!((usage.as_of.to_string().as_str(), usage.cpu), (as_of, Some(0.05)));
}

#[test]
fn old_telemetry_is_shown_with_its_age_but_never_that_of_another_run() {
    let usage = pod_with(json!({ "runtime": null }), Some(&telemetry("2026-11-30T08:40:00Z"))).usage.unwrap();
    assert_eq!((usage.as_of.to_string().as_str(), usage.gpus[0].power_watts), ("2026-11-30T08:40:00Z", Some(401.5)));
    assert_eq!(pod_with(json!({ "runtime": null }), Some(&telemetry("2026-11-27T08:40:00Z"))).usage, None);
}

/// What is null, missing or negative was not measured; what is 0 was.
#[rstest]
#[case(json!({ "percentUtilization": null, "memoryUtilization": 0, "temperatureCelcius": null, "powerWatts": null }), [None, Some(0.0), None, None])]
#[case(json!({ "percentUtilization": 0 }), [Some(0.0), None, None, None])]
#[case(json!({ "percentUtilization": 0, "memoryUtilization": -1, "temperatureCelcius": -1, "powerWatts": -1 }), [Some(0.0), None, None, None])]
#[case(json!({ "percentUtilization": 0, "temperatureCelcius": 0, "powerWatts": 0 }), [Some(0.0), None, None, Some(0.0)])]
fn what_was_not_measured_is_not_known(#[case] card: Value, #[case] expected: [Option<f64>; 4]) {
    let text = json!({ "time": "2026-11-30T08:59:30Z", "individualGpuMetrics": [card] }).to_string();
    let extra = Extra { telemetry: Some(serde_json::from_str(&text).unwrap()), ..Extra::default() };
    let usage = pod_with(json!({}), Some(&extra)).usage.unwrap();
    let card = &usage.gpus[0];
    let memory = card.memory_used_bytes.map(|bytes| bytes as f64);
    assert_eq!([card.utilization, memory, card.temperature_c, card.power_watts], expected);
}

#[rstest]
#[case(json!({ "individualGpuMetrics": [{}], "averageGpuMetrics": {} }))]
#[case(json!({ "individualGpuMetrics": [{ "percentUtilization": -1 }], "averageGpuMetrics": null }))]
#[case(json!({ "individualGpuMetrics": null }))]
fn telemetry_without_a_figure_is_no_look(#[case] mut told: Value) {
    told["time"] = json!("2026-11-30T08:59:30Z");
    let extra = Extra { telemetry: Some(serde_json::from_str(&told.to_string()).unwrap()), ..Extra::default() };
    assert_eq!(pod_with(json!({}), Some(&extra)).usage, None);
}

#[test]
fn an_average_of_several_cards_is_marked_as_one() {
    let text = json!({ "time": "2026-11-30T09:00:00Z", "averageGpuMetrics": { "percentUtilization": 40 } }).to_string();
    let extra = Extra { telemetry: Some(serde_json::from_str(&text).unwrap()), ..Extra::default() };
    let usage = pod_with(json!({ "gpu": { "id": "NVIDIA L4", "count": 4 } }), Some(&extra)).usage.unwrap();
    assert!(usage.averaged && usage.gpus.len() == 1);
}

#[test]
fn a_spot_instance_is_one_by_its_type() {
    let spot = Extra { spot: true, ..Extra::default() };
    assert_eq!(pod_with(json!({}), Some(&spot)).market, Market::Spot);
    assert_eq!(pod(json!({})).market, Market::OnDemand);
}

/// SEC-03, SEC-04: no secret of the answer is in the model, and a name says nothing to the terminal.
#[test]
fn secrets_and_control_characters_stay_outside() {
    let instance = pod(json!({
        "name": "\u{1b}]52;c;ZXZpbA==\u{7}prod", "dataCenterId": "EU\u{202e}-RO-1",
        "env": { "OPENAI_API_KEY": "sk_TESTSECRET5" }, "registry": "TESTSECRET6", "args": "--token TESTSECRET7",
        "status": "\u{9b}31mODD\r\nSTOPPED",
    }));
    assert_eq!((instance.name.as_deref(), instance.region.as_deref()), (Some("prod"), Some("EU-RO-1")));
    assert_eq!(instance.provider_phase.as_deref(), Some("ODD STOPPED"));
    let shown = format!("{instance:?}{}", serde_json::to_string(&instance).unwrap());
    assert!(!shown.contains("TESTSECRET"), "{shown}");
}

#[rstest]
#[case(json!({ "name": "" }))]
#[case(json!({ "name": null }))]
#[case(json!({ "name": " \u{200b}" }))]
fn a_name_that_says_nothing_is_none(#[case] change: Value) {
    assert_eq!(pod(change).name, None);
}

#[test]
fn a_price_that_is_not_told_is_not_zero() {
    for cost in [json!(null), json!(""), json!(-1)] {
        let rates = pod(json!({ "cost": cost })).rates;
        assert!(!rates.complete && rates.of(&[Component::Compute]).is_zero(), "{cost}");
    }
    let exact = pod(json!({ "cost": "0.123456789012" }));
    assert_eq!(compute(&exact.rates), dec("0.123456789012"));
    assert_eq!(compute(&pod(json!({ "cost": 5e-3 })).rates), dec("0.005"));
}

#[test]
fn a_correction_of_the_facts_counts() {
    let mut access = Access::new("runpod", "team", "k");
    access.facts.insert("hours_per_month".to_owned(), "720".to_owned());
    let pod = pod_of(r#"{"id":"p","status":"EXITED","mounts":{"persistent":{"size":120}},"disk":50}"#);
    let instance = pods::instance(pod, None, &ENTRY.facts(&access).unwrap(), now());
    assert_eq!(certain(&instance.rates), dec("0.033333333333"));
}

fn volume(tier: &str, size: Value) -> StorageItem {
    let text = json!({ "id": "v1", "name": "data", "size": size, "dataCenter": "EU-RO-1", "type": tier }).to_string();
    volumes::item(serde_json::from_str(&text).unwrap(), &volumes::Users::default(), &facts())
}

#[test]
fn a_volume_costs_by_its_tier_and_size() {
    let price = |item: StorageItem| item.rates.lines.first().map(|line| (line.rate.amount(), line.estimated));
    assert_eq!(price(volume("STANDARD", json!(100))), Some((monthly("100", "0.07"), true)));
    let large = price(volume("STANDARD", json!(1500))).unwrap().0;
    assert_eq!(large, monthly("95", "1"), "1000 GB at 0.07 and 500 GB at 0.05");
    for unknown in [volume("HIGH_PERFORMANCE", json!(100)), volume("NEXT", json!(10)), volume("STANDARD", json!(null))]
    {
        assert!(!unknown.rates.complete && unknown.rates.lines.is_empty());
    }
}

/// BAL-03.
#[rstest]
#[case::a_network_volume(json!({ "network": [{ "volumeId": "v1", "path": "/workspace" }] }), Fate::Stopped)]
#[case::a_disk_of_its_own_saves_nothing(json!({ "persistent": { "size": 20, "path": "/workspace" } }), Fate::Deleted)]
#[case::nothing(json!({}), Fate::Deleted)]
#[case::not_told(json!(null), Fate::Unknown)]
fn when_the_money_is_gone_a_pod_without_a_network_volume_is_deleted(#[case] mounts: Value, #[case] fate: Fate) {
    assert_eq!(pod(json!({ "mounts": mounts })).at_zero, fate);
    assert_eq!(volume("STANDARD", json!(100)).at_zero, Fate::DeletedLater);
}

#[test]
fn an_id_that_could_lead_elsewhere_is_refused() {
    for id in ["../network-volumes/x", "a/b", "a?b", "", "a b", "ä"] {
        assert!(!wire::is_plain_id(id), "{id}");
        let row = json!({ "id": id, "status": "RUNNING" }).to_string();
        assert!(serde_json::from_str::<wire::Pod>(&row).is_err(), "{id}");
    }
}
