//! Fixtures to model, then the adapter over real HTTP against the simulator.
//!
//! The lane lets one request a second through, so a test that asks often opens a new account each time.

use rstest::rstest;

use super::*;

const STATES: &str = include_str!("fixtures/instances_many_states.json");
const NULLS: &str = include_str!("fixtures/instances_nulls.json");
const BARE: &str = include_str!("fixtures/instances_missing_optional.json");
const TERMINATED: &str = include_str!("fixtures/instance_terminated.json");
const FILE_SYSTEMS_ANSWER: &str = include_str!("fixtures/file_systems.json");

fn facts() -> Facts {
    Facts::built_in(ENTRY.facts)
}

fn dec(text: &str) -> Decimal {
    text.parse().unwrap()
}

fn rows<T: DeserializeOwned>(answer: &str) -> Vec<T> {
    let list: wire::List = serde_json::from_str(answer).unwrap();
    list.data.iter().map(|row| serde_json::from_str(row.get()).unwrap()).collect()
}

fn instances(answer: &str) -> Vec<Instance> {
    rows::<wire::Instance>(answer).iter().map(|row| instance(row, &facts())).collect()
}

fn named(answer: &str, name: &str) -> Instance {
    instances(answer).into_iter().find(|instance| instance.name.as_deref() == Some(name)).unwrap()
}

/// One row with these members beside its id.
fn row(members: &str) -> Instance {
    let row: wire::Instance = serde_json::from_str(&format!(r#"{{"id": "c1", {members}}}"#)).unwrap();
    instance(&row, &facts())
}

fn certain(instance: &Instance) -> Decimal {
    instance.rates.certain().of(Currency::USD).amount()
}

fn upper(instance: &Instance) -> Decimal {
    instance.rates.upper().of(Currency::USD).amount()
}

/// COST-07: from the first passed health check, minute by minute; the config can say otherwise.
#[rstest]
#[case("60", Granularity::Steps { seconds: 60, least_seconds: 0 })]
#[case("1", Granularity::Exact)]
#[case("0", Granularity::Exact)]
fn an_instance_is_charged_in_the_steps_of_the_facts(#[case] seconds: &str, #[case] granularity: Granularity) {
    let corrections = [("instance_granularity_seconds".to_owned(), seconds.to_owned())].into();
    let row: wire::Instance = serde_json::from_str(r#"{"id": "c1", "status": "active"}"#).unwrap();
    assert_eq!(instance(&row, &facts().corrected(&corrections).unwrap()).granularity, granularity);
}

/// API-08 too: a word that nobody mapped may be billing and is never taken for free.
#[rstest]
#[case("booting", Phase::Provisioning, "0", "1.29")]
#[case("active", Phase::Running, "1.29", "1.29")]
#[case("unhealthy", Phase::Unreachable, "1.29", "1.29")]
#[case("terminating", Phase::Releasing, "0", "1.29")]
#[case("terminated", Phase::Gone, "0", "0")]
#[case("preempted", Phase::Reclaimed, "0", "1.29")]
#[case("some_new_status", Phase::Unknown, "0", "1.29")]
fn a_status_has_its_phase_and_its_charge(
    #[case] status: &str,
    #[case] phase: Phase,
    #[case] surely: &str,
    #[case] at_most: &str,
) {
    let instance = row(&format!(r#""status": "{status}", "instance_type": {{"price_cents_per_hour": 129}}"#));
    assert_eq!((instance.phase, instance.provider_phase.as_deref()), (phase, Some(status)));
    assert_eq!((certain(&instance), upper(&instance)), (dec(surely), dec(at_most)));
    assert!(instance.rates.complete);
}

/// API-08: no word at all.
#[test]
fn a_missing_status_is_unknown() {
    let instance = row(r#""status": null"#);
    assert_eq!((instance.phase, instance.provider_phase), (Phase::Unknown, None));
}

/// COST-14: the price is in cents, and for the machine, not for each GPU.
#[test]
fn the_price_is_for_the_whole_instance() {
    let instance = named(STATES, "pretrain-8x");
    assert_eq!(certain(&instance), dec("31.92"));
    assert_eq!(instance.gpus, Some(Gpus { model: "H100 SXM".into(), count: 8, memory_gib: Some(80) }));
    assert!(!instance.rates.estimated());
}

#[rstest]
#[case("129", Some("1.29"))]
#[case(r#""129""#, Some("1.29"))]
#[case("129.5", Some("1.295"))]
#[case("1.29e2", Some("1.29"))]
#[case("0", Some("0"))]
#[case("null", None)]
#[case(r#""""#, None)]
fn a_price_may_be_number_or_text_and_none_is_unknown(#[case] sent: &str, #[case] rate: Option<&str>) {
    let instance = row(&format!(r#""status": "active", "instance_type": {{"price_cents_per_hour": {sent}}}"#));
    assert_eq!(instance.rates.complete, rate.is_some());
    assert_eq!(instance.rates.lines.first().map(|line| line.rate.amount()), rate.map(dec));
}

/// A boot that follows an earlier health check is inside the charge.
#[test]
fn an_instance_that_was_healthy_once_is_charged_while_it_boots() {
    let price = r#""instance_type": {"price_cents_per_hour": 129}"#;
    let instance = row(&format!(r#""status": "booting", "first_healthy": "2026-11-28T09:04:11Z", {price}"#));
    assert_eq!(certain(&instance), dec("1.29"));
}

/// The list price is no promise about a contract: it is an estimate, and an end saves nothing for sure.
#[test]
fn a_reserved_instance_is_shown_as_one() {
    let instance = row(r#""status": "active", "is_reserved": true, "instance_type": {"price_cents_per_hour": 3192}"#);
    assert_eq!(instance.market, Market::Reserved { until: None });
    assert!(instance.rates.estimated());
    let after = &instance.offers.release.effect().unwrap().rates_after;
    assert!(!after.complete && after.certain().is_zero() && !after.upper().is_zero());
}

/// GPU-08: the names as Lambda writes them.
#[rstest]
#[case("A10 (24 GB PCIe)", 1, "A10", Some(24))]
#[case("H100 (80 GB SXM5)", 8, "H100 SXM", Some(80))]
#[case("A100 (40 GB SXM4)", 1, "A100 SXM 40GB", Some(40))]
#[case("GH200 (96 GB)", 1, "GH200", Some(96))]
#[case("Tesla V100 (16 GB)", 8, "V100", Some(16))]
#[case("Next 9000 (512 GB)", 2, "Next 9000 (512 GB)", Some(512))]
#[case("N/A", 0, "CPU", None)]
fn a_card_has_its_normal_name(
    #[case] card: &str,
    #[case] count: u32,
    #[case] model: &str,
    #[case] memory_gib: Option<u32>,
) {
    let kind = format!(r#"{{"gpu_description": "{card}", "specs": {{"gpus": {count}}}}}"#);
    let instance = row(&format!(r#""status": "active", "instance_type": {kind}"#));
    assert_eq!(instance.gpus, Some(Gpus { model: model.to_owned(), count, memory_gib }));
}

/// GPU-08: without a description the type's own name serves, count included.
#[test]
fn a_type_name_serves_where_the_description_is_missing() {
    let instance = row(r#""status": "active", "instance_type": {"name": "gpu_8x_h100_sxm5"}"#);
    assert_eq!(instance.gpus, Some(Gpus { model: "H100 SXM".into(), count: 8, memory_gib: Some(80) }));
    assert_eq!(row(r#""status": "active""#).gpus, None);
}

#[test]
fn only_the_first_health_check_is_a_start_time() {
    let known = named(STATES, "pretrain-8x");
    assert_eq!(known.started_at, Some("2026-11-28T09:04:11Z".parse().unwrap()));
    assert_eq!((known.created_at, known.remarks.as_slice()), (None, [].as_slice()));
    let unknown = named(STATES, "train-a10");
    assert_eq!((unknown.started_at, unknown.remarks), (None, vec![Remark::StartTimeUnknown]));
    // One that boots has not begun.
    assert_eq!(named(STATES, "fresh").remarks, []);
    // A time without its zone could be any of several, and the row is worth more than it.
    let odd = row(r#""status": "active", "first_healthy": "2026-11-28T09:04:11""#);
    assert_eq!((odd.started_at, odd.remarks), (None, vec![Remark::StartTimeUnknown]));
}

/// SSH-02 and API-14: no address yet, and none that is no longer its own.
#[rstest]
#[case("train-a10", Some("ubuntu@192.0.2.11:22"))]
#[case("sick", Some("ubuntu@192.0.2.15:22"))]
#[case("fresh", None)]
#[case("going", None)]
#[case("bumped", None)]
fn ssh_is_offered_where_the_instance_can_be_reached(#[case] name: &str, #[case] expected: Option<&str>) {
    let ssh = named(STATES, name).ssh;
    let shown = ssh.map(|ssh| ssh.place());
    assert_eq!(shown.as_deref(), expected);
}

/// LIFE-08 and the map of actions: what can be had is what the provider says.
#[rstest]
#[case("train-a10", None, None)]
#[case("old-vm", None, None)]
#[case("sick", None, None)]
#[case("fresh", Some("Instance has not launched yet."), None)]
#[case("going", Some("Instance is being terminated."), Some("Instance is being terminated."))]
#[case("bumped", Some("Instance was preempted."), None)]
fn the_map_of_actions_decides(#[case] name: &str, #[case] no_restart: Option<&str>, #[case] no_release: Option<&str>) {
    let offers = named(STATES, name).offers;
    let reason = |offer: &Offer| match offer {
        Offer::No(Refusal::Told(words)) => Some(words.clone()),
        Offer::No(other) => Some(format!("{other:?}")),
        Offer::Yes(_) => None,
    };
    assert_eq!(offers.stop, Offer::No(Refusal::NotOffered));
    assert_eq!(offers.start, Offer::No(Refusal::NotOffered));
    assert_eq!(reason(&offers.restart).as_deref(), no_restart);
    assert_eq!(reason(&offers.release).as_deref(), no_release);
}

#[rstest]
#[case(r#""status": "active""#, None)]
#[case(r#""status": "terminating""#, Some(Refusal::WrongPhase))]
#[case(r#""status": "active", "actions": {"terminate": {"available": false}}"#, Some(Refusal::WrongPhase))]
#[case(
    r#""status": "active", "actions": {"terminate": {"available": false, "reason_code": "vm-is-too-old"}}"#,
    Some(Refusal::Told("vm-is-too-old".to_owned()))
)]
fn where_the_map_says_nothing_the_phase_decides(#[case] members: &str, #[case] refusal: Option<Refusal>) {
    match (row(members).offers.release, refusal) {
        (Offer::Yes(_), None) => {}
        (offer, refusal) => assert_eq!(Some(offer), refusal.map(Offer::No)),
    }
}

/// DATA-05's kind: what a release takes and what it leaves.
#[test]
fn a_release_loses_the_local_disk_and_leaves_file_systems_behind() {
    let instance = named(STATES, "pretrain-8x");
    let effect = instance.offers.release.effect().unwrap();
    assert_eq!(
        effect.lost,
        [DataPlace { kind: DataKind::LocalDisk, name: None, path: Some("/".to_owned()), size_gb: Some(dec("22528")) }]
    );
    assert_eq!(
        effect.kept,
        [DataPlace {
            kind: DataKind::FileSystem,
            name: Some("ckpt".to_owned()),
            path: Some("/lambda/nfs/ckpt".to_owned()),
            size_gb: None
        }]
    );
    assert_eq!(effect.left_behind, [ResourceId::from("55555555555555555555555555555555")]);
    assert_eq!(effect.left_behind, instance.mounts);
    assert_eq!(effect.rates_after, Rates::known());
}

#[test]
fn a_restart_loses_nothing_and_saves_nothing() {
    let instance = named(STATES, "pretrain-8x");
    let effect = instance.offers.restart.effect().unwrap();
    assert!(!effect.loses_data() && effect.left_behind.is_empty());
    assert_eq!(effect.rates_after, instance.rates);
    assert_eq!(effect.kept.len(), 2);
}

/// Names and mounts come apart; a name is given to a mount only where it is sure.
#[test]
fn several_file_systems_keep_their_own_names() {
    let instance = row(r#""status": "active", "file_system_names": ["data", "ckpt"], "file_system_mounts": [
            {"mount_point": "/lambda/nfs/ckpt", "file_system_id": "f1"},
            {"mount_point": "/mnt/elsewhere", "file_system_id": "f2"}]"#);
    let effect = instance.offers.release.effect().unwrap();
    let names: Vec<_> = effect.kept.iter().map(|place| place.name.as_deref().unwrap()).collect();
    assert_eq!(names, ["ckpt", "f2"]);
    let only_names = row(r#""status": "active", "file_system_names": ["data"]"#);
    let effect = only_names.offers.release.effect().unwrap();
    assert_eq!((effect.kept[0].name.as_deref(), effect.left_behind.len()), (Some("data"), 0));
}

/// Optional keys may be absent (documented) or null (seen nowhere, cheap to bear).
#[test]
fn absent_keys_and_nulls_are_read_alike() {
    for answer in [NULLS, BARE] {
        for instance in instances(answer) {
            assert_eq!(upper(&instance), dec("1.29"));
            assert!(instance.mounts.is_empty() && instance.labels.is_empty());
        }
    }
    assert_eq!(instances(NULLS)[1].name, None);
    assert_eq!(
        instances(NULLS)[2].offers.release,
        Offer::No(Refusal::Told("A code this client does not know.".into()))
    );
    // `terminate` itself can be unavailable while booting.
    assert_eq!(instances(BARE)[0].offers.release, Offer::No(Refusal::Told("Instance has not launched yet.".into())));
}

/// SEC-04: names, regions, tags and reasons say nothing to the terminal. LIFE-04: blanks around a name are no name.
#[test]
fn texts_are_cleaned_on_the_way_in() {
    let instance = row(
        r#""status": "act\u001b[2Jive", "name": "\u001b]52;c;ZXZpbA==\u0007prod\r\nSTOPPED", "region": {"name": "a\u202eb"},
           "tags": [{"key": "te\u0007am", "value": "x\u009b31my"}],
           "actions": {"restart": {"available": false, "reason_description": "\u001b[Hno\u200b"}}"#,
    );
    assert_eq!(instance.name.as_deref(), Some("prod STOPPED"));
    assert_eq!((instance.phase, instance.provider_phase.as_deref()), (Phase::Unknown, Some("active")));
    assert_eq!(instance.region.as_deref(), Some("ab"));
    assert_eq!(instance.labels["team"], "xy");
    assert_eq!(instance.offers.restart, Offer::No(Refusal::Told("no".to_owned())));
    assert_eq!(row(r#""status": "active", "name": "train ""#).name.as_deref(), Some("train"));
    assert_eq!(row(r#""status": "active", "name": """#).name, None);
}

/// SEC-03: the notebook's token is in the answer and in nothing that is made of it.
#[test]
fn secrets_in_an_answer_are_not_kept() {
    let answer = STATES.replace("00000000000000000000000000000000", "jt_TESTSECRET3");
    assert!(answer.contains("TESTSECRET"));
    let instances = instances(&answer);
    let kept = format!("{instances:?}{}", serde_json::to_string(&instances).unwrap());
    let wires = format!("{:?}", rows::<wire::Instance>(&answer));
    assert!(!kept.contains("TESTSECRET") && !wires.contains("TESTSECRET"));
    assert!(!kept.contains("jupyter"), "{kept}");
}

#[test]
fn a_terminated_instance_is_gone_and_free() {
    let row: wire::Data<wire::Instance> = serde_json::from_str(TERMINATED).unwrap();
    let instance = instance(&row.data, &facts());
    assert_eq!((instance.phase, instance.rates, instance.ssh), (Phase::Gone, Rates::known(), None));
    assert_eq!(instance.remarks, []);
}

#[rstest]
#[case(r#"{"id": "../x", "status": "active"}"#)]
#[case(r#"{"id": "", "status": "active"}"#)]
#[case(r#"{"id": 7, "status": "active"}"#)]
#[case(r#"{"status": "active"}"#)]
#[case(r#"{"id": "a", "instance_type": {"price_cents_per_hour": "n/a"}}"#)]
#[case(r#"{"id": "a", "instance_type": {"price_cents_per_hour": -1}}"#)]
#[case(r#"{"id": "a", "instance_type": {"price_cents_per_hour": {}}}"#)]
fn a_row_without_a_plain_id_or_with_an_odd_price_is_not_read(#[case] row: &str) {
    assert!(serde_json::from_str::<wire::Instance>(row).is_err());
}

fn file_systems(users: &[Instance]) -> Vec<StorageItem> {
    rows::<wire::FileSystem>(FILE_SYSTEMS_ANSWER).iter().map(|row| file_system(row, users, &facts())).collect()
}

/// ORPH-01's kind: a file system bills on what is in it, whoever mounts it.
#[test]
fn a_file_system_costs_by_what_is_in_it() {
    let items = file_systems(&[]);
    // 384 GiB × 0.20 ÷ 720 h.
    assert_eq!(items[0].size_gib, Some(dec("384")));
    assert_eq!(items[0].rates.certain().of(Currency::USD).amount(), dec("0.106666666667"));
    assert!(items[0].rates.estimated() && items[0].rates.complete);
    // Empty is known to cost nothing; not measured yet is not known.
    assert_eq!(items[1].size_gib, Some(Decimal::ZERO));
    assert!(items[1].rates.complete && items[1].rates.upper().is_zero());
    assert_eq!((items[2].size_gib, items[2].rates.clone()), (None, Rates::unknown()));
    assert_eq!(items[0].created_at, Some("2026-06-14T10:22:41Z".parse().unwrap()));
}

#[test]
fn the_config_corrects_the_price_of_file_systems() {
    let mut access = Access::new("lambda", "team", "k");
    access.facts.insert("file_system_per_gib_month".to_owned(), "0.36".to_owned());
    let facts = ENTRY.facts(&access).unwrap();
    let item = file_system(&rows::<wire::FileSystem>(FILE_SYSTEMS_ANSWER)[0], &[], &facts);
    assert_eq!(item.rates.certain().of(Currency::USD).amount(), dec("0.192"));
}

/// Who uses a file system comes from the instances; the flag stays set for a while after the last has gone.
#[test]
fn a_file_system_in_use_cannot_be_deleted() {
    let with_users = file_systems(&instances(STATES));
    assert_eq!(with_users[0].attachment, Attachment::To(vec!["c0ffee00000000000000000000000002".into()]));
    assert_eq!(with_users[0].delete, Offer::No(Refusal::InUse));
    let without = file_systems(&[]);
    assert_eq!((&without[0].attachment, &without[0].delete), (&Attachment::Somewhere, &Offer::No(Refusal::InUse)));
    assert_eq!(without[1].attachment, Attachment::To(vec![]));
    let effect = without[1].delete.effect().unwrap();
    // Empty as of hours ago: something may be in it by now.
    assert_eq!((effect.lost[0].kind, effect.lost[0].name.as_deref()), (DataKind::Contents, Some("scratch")));
    assert_eq!(effect.risks, []);
    // One that is gone uses nothing any more.
    let gone = row(
        r#""status": "terminated", "file_system_mounts": [{"file_system_id": "00000000000000000000000000000077"}]"#,
    );
    assert_eq!(file_systems(&[gone])[1].attachment, Attachment::To(vec![]));
    let row = serde_json::from_str(r#"{"id": "f9"}"#).unwrap();
    let untold = file_system(&row, &[], &facts());
    assert_eq!(untold.attachment, Attachment::Unknown);
    assert_eq!(untold.delete.effect().unwrap().risks, [Risk::UseUnknown]);
}

/// ORPH-04: nothing unattached is taken for empty or unwanted; each deletion loses its contents by name.
#[test]
fn every_deletion_counts_as_a_loss() {
    let losses =
        file_systems(&[]).iter().filter_map(|item| item.delete.effect().map(Effect::loses_data)).collect::<Vec<_>>();
    assert_eq!(losses, [true, true]);
}

#[cfg(feature = "simulator")]
mod over_http {
    use std::time::Duration;

    use super::*;
    use crate::sim::{Harm, Life, Shared, SimClock, Simulator, World};
    use jiff::SignedDuration;

    const PRETRAIN: &str = "1a3bda00000000000000000000000001";
    const NOTEBOOK: &str = "1a3bda00000000000000000000000002";
    const FRESH: &str = "1a3bda00000000000000000000000003";
    const CKPT: &str = "f5000000000000000000000000000001";
    const DATASETS: &str = "f5000000000000000000000000000002";

    fn noon() -> Timestamp {
        "2026-11-30T12:00:00Z".parse().unwrap()
    }

    struct Story {
        simulator: Simulator,
        clock: SimClock,
    }

    impl Story {
        async fn begin() -> Self {
            let clock = SimClock::manual(noon());
            let world = Shared::new(simulator::sample(clock.clone()));
            let simulator = Simulator::serve(simulator::routes(world.clone()), world).await.unwrap();
            Story { simulator, clock }
        }

        /// An account of its own, so that nothing waits for an earlier request's pace.
        fn account(&self) -> Arc<dyn Provider> {
            let key = self.world(|world| world.key.clone());
            self.account_with(&key)
        }

        fn account_with(&self, key: &str) -> Arc<dyn Provider> {
            let mut access = Access::new("lambda", "team", key).at(self.simulator.url());
            access.timeout = Duration::from_millis(500);
            (ENTRY.connect)(&access).unwrap()
        }

        fn world<T>(&self, look: impl FnOnce(&mut World) -> T) -> T {
            look(&mut self.simulator.world.lock())
        }

        async fn poll(&self) -> Poll {
            self.account().poll(Ask::INSTANCES, self.clock.now()).await
        }

        async fn storage(&self) -> Part<StorageItem> {
            self.account().poll(Ask { storage: true, money: false }, self.clock.now()).await.storage
        }

        async fn act(&self, action: Action, id: &str) -> Result<Accepted, ProviderError> {
            self.account().act(action, &id.into()).await
        }

        async fn lookup(&self, id: &str) -> Result<Found, ProviderError> {
            self.account().lookup(ResourceKind::Instance, &id.into(), self.clock.now()).await
        }

        fn fault(&self, method: &'static str, path: &str, harm: Harm) {
            self.simulator.world.fault(method, path, 1, harm);
        }

        fn answers(&self, method: &'static str, path: &str, status: u16, body: &str) {
            let content_type = if body.starts_with('<') { "text/html" } else { "application/json" };
            let harm = Harm::Answer { status, headers: Vec::new(), content_type, body: body.to_owned() };
            self.fault(method, path, harm);
        }
    }

    fn phases(poll: &Poll) -> Vec<Phase> {
        poll.instances.rows().iter().map(|instance| instance.phase).collect()
    }

    fn failure<T: std::fmt::Debug>(part: Part<T>) -> ErrorKind {
        match part {
            Part::Failed(error) => error.kind,
            other => panic!("it did not fail: {other:?}"),
        }
    }

    /// The whole account in two requests, a second apart: API-15.
    #[tokio::test]
    async fn a_poll_lists_everything_and_keeps_its_pace() {
        let story = Story::begin().await;
        let began = std::time::Instant::now();
        let poll = story.account().poll(Ask::ALL, noon()).await;
        assert!(began.elapsed() >= Duration::from_millis(950), "{:?}", began.elapsed());
        assert_eq!(phases(&poll), [Phase::Running, Phase::Running, Phase::Provisioning, Phase::Unreachable]);
        let Part::Listed { rows, problems } = &poll.storage else { panic!("{:?}", poll.storage) };
        assert_eq!((rows.len(), problems.len()), (3, 0));
        assert_eq!(rows[0].attachment, Attachment::To(vec![PRETRAIN.into()]));
        assert_eq!(rows[2].rates, Rates::unknown());
        // BAL-02: no balance is no balance of 0.
        assert_eq!((poll.balance, poll.tenant), (Reading::NotTold, Reading::NotTold));
        let asked: Vec<String> = story.world(|world| world.seen.iter().map(|seen| seen.path.clone()).collect());
        assert_eq!(asked, [INSTANCES, FILE_SYSTEMS]);
        let first = &poll.instances.rows()[0];
        assert_eq!(first.started_at, Some(noon() - SignedDuration::from_hours(31)));
        assert_eq!(first.labels["team"], "vision");
        // SEC-03, over the wire.
        assert!(!format!("{:?}", poll.instances).contains("SECRET"));
    }

    /// LIFE-03: a release is a promise until the instance is missing and unknown by id.
    #[tokio::test]
    async fn a_release_ends_in_no_such_id() {
        let story = Story::begin().await;
        assert_eq!(story.act(Action::Release, PRETRAIN).await, Ok(Accepted::Done));
        let going = &story.poll().await.instances.rows()[0].clone();
        assert_eq!((going.phase, certain(going), going.ssh.clone()), (Phase::Releasing, Decimal::ZERO, None));
        assert!(matches!(going.offers.release, Offer::No(Refusal::Told(_))));
        // Sent again while it ends: taken again.
        assert_eq!(story.act(Action::Release, PRETRAIN).await, Ok(Accepted::Done));
        story.clock.advance(SignedDuration::from_secs(30));
        assert_eq!(story.poll().await.instances.rows().len(), 3);
        assert_eq!(story.lookup(PRETRAIN).await, Ok(Found::NoSuchId));
        // API-11: once more, and it was so already.
        assert_eq!(story.act(Action::Release, PRETRAIN).await, Ok(Accepted::AlreadySo));
        // What it left behind is listed and can now be deleted.
        let storage = story.storage().await;
        assert_eq!(storage.rows()[0].attachment, Attachment::To(vec![]));
        assert!(storage.rows()[0].delete.effect().is_some());
    }

    #[tokio::test]
    async fn a_file_system_is_deleted_only_when_nobody_mounts_it() {
        let story = Story::begin().await;
        let refused = story.act(Action::Delete, CKPT).await.unwrap_err();
        assert!(
            matches!(&refused.kind, ErrorKind::Refused { status: 400, code: Some(code), .. } if code == "filesystems/filesystem-in-use"),
            "{refused:?}"
        );
        assert_eq!(
            refused.to_string(),
            format!("lambda/team: DELETE /api/v1/filesystems/{CKPT}: refused: Filesystem is in use.")
        );
        assert_eq!(story.act(Action::Delete, DATASETS).await, Ok(Accepted::Done));
        assert_eq!(story.storage().await.rows().len(), 2);
        assert_eq!(story.act(Action::Delete, DATASETS).await, Ok(Accepted::AlreadySo));
        let asked = story.account().lookup(ResourceKind::Storage, &DATASETS.into(), noon()).await;
        assert_eq!(asked, Ok(Found::CannotAsk));
    }

    #[tokio::test]
    async fn a_restart_leaves_the_instance_as_it_is() {
        let story = Story::begin().await;
        let before = story.lookup(NOTEBOOK).await.unwrap();
        assert_eq!(story.act(Action::Restart, NOTEBOOK).await, Ok(Accepted::Done));
        assert_eq!(story.lookup(NOTEBOOK).await.unwrap(), before);
        let body = story.world(|world| world.seen[1].body.clone());
        assert_eq!(body, format!(r#"{{"instance_ids":["{NOTEBOOK}"]}}"#));
        // One that still boots cannot be restarted; one that is unknown is not "already so".
        let refused = story.act(Action::Restart, FRESH).await.unwrap_err();
        assert!(matches!(refused.kind, ErrorKind::Refused { status: 400, .. }), "{refused:?}");
        assert_eq!(story.act(Action::Restart, "ffff").await.unwrap_err().kind, ErrorKind::NoSuchId);
    }

    #[tokio::test]
    async fn a_boot_ends_in_running_with_a_start_time() {
        let story = Story::begin().await;
        story.clock.advance(SignedDuration::from_secs(120));
        let poll = story.poll().await;
        let fresh = &poll.instances.rows()[2];
        assert_eq!((fresh.phase, certain(fresh)), (Phase::Running, dec("2.29")));
        assert_eq!(fresh.started_at, Some(noon() + SignedDuration::from_secs(90)));
        assert!(fresh.ssh.is_some());
    }

    #[tokio::test]
    async fn a_preempted_instance_was_taken_by_the_provider() {
        let story = Story::begin().await;
        story.world(|world| world.machines[1].life = Life::Outbid);
        let poll = story.poll().await;
        let taken = &poll.instances.rows()[1];
        assert_eq!((taken.phase, taken.provider_phase.as_deref()), (Phase::Reclaimed, Some("preempted")));
        assert!(taken.offers.release.effect().is_some());
    }

    /// LIFE-08: the stop key sends nothing, and release is never its stand-in.
    #[rstest]
    #[case(Action::Stop, "cannot stop")]
    #[case(Action::Start, "cannot start")]
    #[tokio::test]
    async fn what_lambda_lacks_is_not_sent(#[case] action: Action, #[case] words: &str) {
        let story = Story::begin().await;
        let error = story.act(action, NOTEBOOK).await.unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert!(!error.kind.outcome_unknown() && !error.kind.is_transient());
        assert_eq!(story.world(|world| world.seen.len()), 0);
    }

    /// An id reaches a path only as it is.
    #[rstest]
    #[case("../instances")]
    #[case("a/b")]
    #[case("")]
    #[tokio::test]
    async fn an_id_that_is_none_is_not_sent(#[case] id: &str) {
        let story = Story::begin().await;
        for action in [Action::Release, Action::Delete, Action::Restart] {
            let error = story.act(action, id).await.unwrap_err();
            assert!(matches!(error.kind, ErrorKind::Unusable { .. }), "{error}");
        }
        assert!(story.lookup(id).await.is_err());
        assert_eq!(story.world(|world| world.seen.len()), 0);
    }

    /// API-04's kind: a refused key is never an empty account and never "no such id".
    #[tokio::test]
    async fn a_refused_key_is_told_as_one() {
        let story = Story::begin().await;
        let poll = story.account_with("WRONGKEY-0000").poll(Ask::ALL, noon()).await;
        assert!(
            matches!(&failure(poll.instances), ErrorKind::Credentials { message: Some(words) } if words.contains("invalid"))
        );
        // The same door is not knocked at twice.
        assert!(matches!(failure(poll.storage), ErrorKind::Credentials { .. }));
        assert_eq!(story.world(|world| world.seen.len()), 1);
        let account = story.account_with("WRONGKEY-0000");
        let error = account.lookup(ResourceKind::Instance, &NOTEBOOK.into(), noon()).await.unwrap_err();
        assert!(error.kind.is_credentials());
        assert!(!format!("{error} {error:?}").contains("WRONGKEY"));
        let error = story.account_with("WRONGKEY-0000").act(Action::Release, &NOTEBOOK.into()).await.unwrap_err();
        assert!(error.kind.is_credentials());
    }

    #[derive(Debug, Clone, Copy)]
    enum Kind {
        Refused,
        Forbidden,
        Retired,
        RateLimited,
        Server,
        NotJson,
        Decode,
    }

    /// API-01 and API-06: each failure of a list keeps what is known, and each says what it is.
    #[rstest]
    #[case(
        403,
        r#"{"error": {"code": "global/account-inactive", "message": "Your account is inactive."}}"#,
        Kind::Refused
    )]
    #[case(403, r#"{"error": {"code": "global/other", "message": "no"}}"#, Kind::Forbidden)]
    #[case(404, r#"{"error": {"code": "global/object-does-not-exist", "message": "x"}}"#, Kind::Refused)]
    #[case(410, r#"{"error": {"code": "global/gone", "message": "this address is deprecated"}}"#, Kind::Retired)]
    #[case(429, r#"{"error": {"code": "global/rate-limited", "message": "Too many requests."}}"#, Kind::RateLimited)]
    #[case(429, "", Kind::RateLimited)]
    #[case(429, "<html><body>429 Too Many Requests</body></html>", Kind::RateLimited)]
    #[case(400, r#"{"error": {"code": "provider/internal-unavailable", "message": "x"}}"#, Kind::Server)]
    #[case(200, "<html><body>maintenance</body></html>", Kind::NotJson)]
    #[case(200, "", Kind::NotJson)]
    #[case(200, r#"{"data": null}"#, Kind::Decode)]
    #[case(200, r#"{"error": {"code": "global/internal-error", "message": "x"}}"#, Kind::Decode)]
    #[tokio::test]
    async fn a_failed_list_is_no_empty_list(#[case] status: u16, #[case] body: &str, #[case] expected: Kind) {
        let story = Story::begin().await;
        for _ in 0..3 {
            story.answers("GET", INSTANCES, status, body);
        }
        let kind = failure(story.poll().await.instances);
        let as_expected = match expected {
            Kind::Refused => matches!(kind, ErrorKind::Refused { .. }),
            Kind::Forbidden => matches!(kind, ErrorKind::Forbidden { .. }),
            Kind::Retired => matches!(kind, ErrorKind::Retired { .. }),
            Kind::RateLimited => matches!(kind, ErrorKind::RateLimited { retry_after: None }),
            Kind::Server => matches!(kind, ErrorKind::Server { .. }),
            Kind::NotJson => matches!(kind, ErrorKind::NotJson { .. }),
            Kind::Decode => matches!(kind, ErrorKind::Decode { .. }),
        };
        assert!(as_expected, "{kind:?}");
        assert!(!kind.to_string().contains('<'), "{kind}");
    }

    /// API-05: a wait that is told is kept, and nothing else of the account is asked meanwhile.
    #[tokio::test]
    async fn a_rate_limit_closes_the_account_for_its_time() {
        let story = Story::begin().await;
        let headers = vec![("retry-after", "12".to_owned())];
        let harm = Harm::Answer { status: 429, headers, content_type: "text/html", body: "<html>".to_owned() };
        story.fault("GET", INSTANCES, harm);
        let account = story.account();
        let poll = account.poll(Ask::ALL, noon()).await;
        assert_eq!(failure(poll.instances).retry_after(), Some(Duration::from_secs(12)));
        assert!(matches!(failure(poll.storage), ErrorKind::RateLimited { .. }));
        let again = account.poll(Ask::INSTANCES, noon()).await;
        assert!(matches!(failure(again.instances), ErrorKind::RateLimited { .. }));
        assert_eq!(story.world(|world| world.seen.len()), 1);
    }

    /// A read is tried again after a stumble and after a cut body.
    #[tokio::test]
    async fn a_stumble_and_a_cut_body_are_asked_again() {
        let story = Story::begin().await;
        story.answers("GET", INSTANCES, 500, r#"{"error": {"code": "global/internal-error", "message": "x"}}"#);
        story.fault("GET", INSTANCES, Harm::CutBody);
        assert_eq!(phases(&story.poll().await).len(), 4);
        assert_eq!(story.world(|world| world.count("GET", INSTANCES)), 3);
    }

    #[tokio::test]
    async fn a_hanging_list_ends_in_a_time_out() {
        let story = Story::begin().await;
        story.fault("GET", INSTANCES, Harm::Hang);
        assert!(matches!(failure(story.poll().await.instances), ErrorKind::Timeout { .. }));
    }

    /// A change goes out once, and when its answer does not come, only reading tells whether it was carried out.
    #[rstest]
    #[case(Harm::ApplyThenHang, Phase::Releasing)]
    #[case(Harm::Hang, Phase::Running)]
    #[case(Harm::CutBody, Phase::Releasing)]
    #[case(Harm::ApplyThenError(500), Phase::Releasing)]
    #[tokio::test]
    async fn a_change_is_sent_once(#[case] harm: Harm, #[case] afterwards: Phase) {
        let story = Story::begin().await;
        story.fault("POST", TERMINATE, harm);
        let error = story.act(Action::Release, NOTEBOOK).await.unwrap_err();
        assert!(error.kind.outcome_unknown(), "{error:?}");
        assert_eq!(story.world(|world| world.count("POST", TERMINATE)), 1);
        let Found::Instance(seen) = story.lookup(NOTEBOOK).await.unwrap() else { panic!("it is listed") };
        assert_eq!(seen.phase, afterwards);
    }

    /// A 404 without the provider's own word, or an answer about another id, says nothing about this one.
    #[rstest]
    #[case(404, "<html>not found</html>")]
    #[case(404, "")]
    #[case(404, r#"{"detail": "Not Found"}"#)]
    #[case(200, r#"{"data": null}"#)]
    #[case(200, r#"{"data": {"id": "another", "status": "terminated"}}"#)]
    #[tokio::test]
    async fn only_the_providers_word_makes_an_id_unknown(#[case] status: u16, #[case] body: &str) {
        let story = Story::begin().await;
        story.answers("GET", NOTEBOOK, status, body);
        let error = story.lookup(NOTEBOOK).await.unwrap_err();
        assert_ne!(error.kind, ErrorKind::NoSuchId);
        story.answers("POST", TERMINATE, status, body);
        let error = story.act(Action::Release, NOTEBOOK).await.unwrap_err();
        assert_ne!(error.kind, ErrorKind::NoSuchId);
    }

    #[tokio::test]
    async fn an_answer_that_does_not_name_the_instance_is_no_promise() {
        let story = Story::begin().await;
        story.answers("POST", TERMINATE, 200, r#"{"data": {"terminated_instances": []}}"#);
        let error = story.act(Action::Release, NOTEBOOK).await.unwrap_err();
        assert!(error.kind.outcome_unknown(), "{error:?}");
        story.answers("DELETE", DATASETS, 200, r#"{"data": {"deleted_ids": ["f1"]}}"#);
        assert!(story.act(Action::Delete, DATASETS).await.unwrap_err().kind.outcome_unknown());
    }

    /// One row that cannot be read is named, the others go on.
    #[tokio::test]
    async fn an_unreadable_row_becomes_a_problem() {
        let story = Story::begin().await;
        let body = r#"{"data": [{"id": "a1", "status": "active"},
            {"id": "a2", "status": "active", "instance_type": {"price_cents_per_hour": "n/a"}}, 5]}"#;
        story.answers("GET", INSTANCES, 200, body);
        let Part::Listed { rows, problems } = story.poll().await.instances else { panic!("the list was read") };
        assert_eq!(rows.len(), 1);
        let fields: Vec<_> = problems.iter().map(|problem| problem.field.as_str()).collect();
        assert_eq!(fields, ["instances[1].instance_type.price_cents_per_hour", "instances[2]"]);
    }

    #[tokio::test]
    async fn there_is_no_billed_history_to_ask_for() {
        let story = Story::begin().await;
        assert_eq!(story.account().billed(noon() - SignedDuration::from_hours(24), noon()).await, Ok(vec![]));
        assert_eq!(story.world(|world| world.seen.len()), 0);
    }

    /// A release of several is all or none, and one that boots may be locked against it.
    #[tokio::test]
    async fn the_simulator_refuses_what_lambda_refuses() {
        let story = Story::begin().await;
        story.world(|world| world.machines[2].locked = true);
        let poll = story.poll().await;
        assert_eq!(
            poll.instances.rows()[2].offers.release,
            Offer::No(Refusal::Told("Instance has not launched yet.".into()))
        );
        let refused = story.act(Action::Release, FRESH).await.unwrap_err();
        assert!(matches!(refused.kind, ErrorKind::Refused { status: 400, .. }));
        assert_eq!(story.act(Action::Release, "ffff").await, Ok(Accepted::AlreadySo));
        assert_eq!(story.poll().await.instances.rows().len(), 4);
    }
}
