//! Whole lives against the simulator: its wire is RunPod's, its clock stands still until it is moved.

use std::collections::BTreeSet;

use jiff::SignedDuration;

use super::simulator::{self, CLUSTER};
use super::*;
use crate::model::Attachment;
use crate::provider::Reading;
use crate::sim::{Harm, Life, Machine, Shared, SimClock, Simulator, Store, World};

struct Play {
    simulator: Simulator,
    clock: SimClock,
    account: Arc<dyn Provider>,
}

impl Play {
    async fn new(set_up: impl FnOnce(&mut World)) -> Self {
        Self::paged(usize::MAX, set_up).await
    }

    async fn paged(per_page: usize, set_up: impl FnOnce(&mut World)) -> Self {
        let clock = SimClock::manual(now());
        let mut world = simulator::sample(clock.clone());
        set_up(&mut world);
        let key = world.key.clone();
        let world = Shared::new(world);
        let simulator = Simulator::serve(simulator::paged_routes(world.clone(), per_page), world).await.unwrap();
        let account = connect_to(&simulator, &key);
        Play { simulator, clock, account }
    }

    async fn poll(&self) -> Poll {
        self.account.poll(Ask::ALL, self.clock.now()).await
    }

    async fn instance(&self, id: &str) -> Option<Instance> {
        let poll = self.poll().await;
        assert!(matches!(poll.instances, Part::Listed { .. }), "{:?}", poll.instances);
        poll.instances.rows().iter().find(|instance| instance.id.as_str() == id).cloned()
    }

    async fn phase(&self, id: &str) -> Phase {
        self.instance(id).await.unwrap().phase
    }

    fn wait(&self, seconds: i64) {
        self.clock.advance(SignedDuration::from_secs(seconds));
    }
}

fn connect_to(simulator: &Simulator, key: &str) -> Arc<dyn Provider> {
    let mut access = Access::new("runpod", "team", key).at(simulator.url());
    access.timeout = std::time::Duration::from_millis(800);
    Arc::new(RunPod::new(&access, &FAST).unwrap())
}

const TRAINER: &str = "sim0train00001";
const PAUSED: &str = "sim0paus000004";

#[tokio::test]
async fn the_sample_is_read_without_a_problem() {
    let play = Play::new(|_| {}).await;
    let poll = play.poll().await;
    let Part::Listed { rows, problems } = &poll.instances else { panic!("{:?}", poll.instances) };
    assert!(problems.is_empty() && rows.len() == 4);
    let Part::Listed { rows: storage, problems } = &poll.storage else { panic!("{:?}", poll.storage) };
    assert!(problems.is_empty());
    assert_eq!(storage[0].attachment, Attachment::To(vec!["sim0note000002".into()]));
    assert_eq!((storage[1].attachment.clone(), effect(&storage[1].delete).risks.len()), (Attachment::To(vec![]), 0));
    let spot = rows.iter().find(|row| row.id.as_str() == "sim0spot000003").unwrap();
    assert_eq!(spot.market, Market::Spot);
    let trainer = rows.iter().find(|row| row.id.as_str() == TRAINER).unwrap();
    let usage = trainer.usage.as_ref().unwrap();
    assert!(usage.gpus.len() == 2 && usage.gpus.iter().all(|card| card.power_watts.is_some()));
    // What the lists come to is what the account says that it burns.
    let burn: Decimal =
        rows.iter().map(|row| certain(&row.rates)).chain(storage.iter().map(|item| certain(&item.rates))).sum();
    let Reading::Known(balance) = &poll.balance else { panic!("{:?}", poll.balance) };
    assert_eq!(balance.provider_burn.unwrap().amount().round_dp(6), burn.round_dp(6));
    assert_eq!(balance.cash.amount, dec("43.17"));
}

#[tokio::test]
async fn a_stop_is_a_promise_until_the_list_says_so() {
    let play = Play::new(|_| {}).await;
    assert_eq!(play.account.act(Action::Stop, &TRAINER.into()).await, Ok(Accepted::Done));
    assert_eq!(play.phase(TRAINER).await, Phase::Running);
    play.wait(10);
    let stopped = play.instance(TRAINER).await.unwrap();
    assert_eq!((stopped.phase, stopped.ssh, stopped.usage, stopped.started_at), (Phase::Stopped, None, None, None));
    assert_eq!(certain(&stopped.rates), monthly("200", "0.20"));
    assert_eq!(play.account.act(Action::Stop, &TRAINER.into()).await, Ok(Accepted::AlreadySo));
    assert_eq!(play.simulator.world.lock().count("POST", "/action"), 2);
}

#[tokio::test]
async fn a_start_comes_up_and_its_price_was_named_before() {
    let play = Play::new(|_| {}).await;
    let paused = play.instance(PAUSED).await.unwrap();
    assert_eq!(compute(&effect(&paused.offers.start).rates_after), dec("0.69"));
    assert_eq!(play.account.act(Action::Start, &PAUSED.into()).await, Ok(Accepted::Done));
    let starting = play.instance(PAUSED).await.unwrap();
    assert_eq!(starting.phase, Phase::Provisioning);
    assert!(certain(&starting.rates) < dec("0.1") && upper(&starting.rates) > dec("0.69"));
    play.wait(10);
    assert_eq!(play.phase(PAUSED).await, Phase::Running);
    assert_eq!(play.account.act(Action::Start, &PAUSED.into()).await, Ok(Accepted::AlreadySo));
}

/// LIFE-06: the host gave the GPU away; the instance stays stopped and goes on costing.
#[tokio::test]
async fn a_start_without_a_gpu_leaves_it_stopped() {
    let play = Play::new(|world| world.machine(PAUSED).unwrap().gpu_taken = true).await;
    let error = play.account.act(Action::Start, &PAUSED.into()).await.unwrap_err();
    assert!(matches!(&error.kind, ErrorKind::Refused { code: Some(code), .. } if code == NO_FREE_GPU), "{error}");
    play.wait(60);
    let paused = play.instance(PAUSED).await.unwrap();
    assert_eq!((paused.phase, certain(&paused.rates)), (Phase::Stopped, monthly("120", "0.20")));
}

#[tokio::test]
async fn a_release_ends_in_no_such_id() {
    let play = Play::new(|_| {}).await;
    assert_eq!(play.account.act(Action::Release, &TRAINER.into()).await, Ok(Accepted::Done));
    assert_eq!(play.phase(TRAINER).await, Phase::Gone);
    play.wait(10);
    assert_eq!(play.instance(TRAINER).await, None);
    let looked = play.account.lookup(ResourceKind::Instance, &TRAINER.into(), play.clock.now()).await;
    assert_eq!(looked, Ok(Found::NoSuchId));
    assert_eq!(play.account.act(Action::Release, &TRAINER.into()).await, Ok(Accepted::AlreadySo));
}

#[tokio::test]
async fn a_volume_is_deleted_and_one_instance_looked_up() {
    let play = Play::new(|_| {}).await;
    let id: ResourceId = "simnv0left".into();
    let looked = play.account.lookup(ResourceKind::Storage, &id, play.clock.now()).await.unwrap();
    let Found::Storage(item) = looked else { panic!("{looked:?}") };
    assert_eq!((item.attachment, effect(&item.delete).risks.clone()), (Attachment::Unknown, vec![Risk::UseUnknown]));
    assert_eq!(play.account.act(Action::Delete, &id).await, Ok(Accepted::Done));
    assert_eq!(play.poll().await.storage.rows().len(), 1);
    assert_eq!(play.account.lookup(ResourceKind::Storage, &id, play.clock.now()).await, Ok(Found::NoSuchId));
    let looked = play.account.lookup(ResourceKind::Instance, &TRAINER.into(), play.clock.now()).await.unwrap();
    assert!(matches!(looked, Found::Instance(instance) if instance.phase == Phase::Running));
}

#[tokio::test]
async fn a_wrong_key_is_a_refused_key_on_every_way() {
    let play = Play::new(|_| {}).await;
    let stranger = connect_to(&play.simulator, "another-key");
    let poll = stranger.poll(Ask::ALL, now()).await;
    let refused = |error: &ProviderError| matches!(error.kind, ErrorKind::Credentials { .. });
    assert!(matches!(&poll.instances, Part::Failed(error) if refused(error)));
    assert!(matches!(&poll.storage, Part::Failed(error) if refused(error)));
    assert!(matches!(&poll.balance, Reading::Failed(error) if refused(error)));
    assert!(refused(&stranger.lookup(ResourceKind::Instance, &TRAINER.into(), now()).await.unwrap_err()));
    assert!(refused(&stranger.act(Action::Release, &TRAINER.into()).await.unwrap_err()));
    assert_eq!(play.phase(TRAINER).await, Phase::Running);
}

/// API-02: lists that are cut.
#[tokio::test]
async fn every_page_is_read() {
    let play = Play::paged(2, |world| {
        let now = world.now();
        world.machines.extend((0..5).map(|n| Machine::new(&format!("extra{n}"), "x", now)));
        let left = world.stores[1].clone();
        world.stores.extend((0..2).map(|n| Store { id: format!("nv{n}"), ..left.clone() }));
    })
    .await;
    let poll = play.poll().await;
    assert!(matches!(&poll.instances, Part::Listed { rows, problems } if rows.len() == 9 && problems.is_empty()));
    assert_eq!(poll.storage.rows().len(), 4);
}

#[tokio::test]
async fn locked_cpu_and_cluster_machines_are_told_apart() {
    let play = Play::new(|world| {
        let now = world.now();
        let machine = |id: &str| Machine { disk_gb: 0, ..Machine::new(id, id, now) };
        world.machines.push(Machine { locked: true, ..machine("locked") });
        world.machines.push(Machine { gpu: "cpu5c".to_owned(), gpu_count: 0, ..machine("cpu") });
        world.machines.push(Machine { gpu_count: 0, ..machine("nogpu") });
        let labels = [(CLUSTER.to_owned(), "cl1".to_owned())].into();
        world.machines.push(Machine { labels, ..machine("member") });
    })
    .await;
    let of = async |id: &str| play.instance(id).await.unwrap();
    assert_eq!(of("locked").await.offers.stop, Offer::No(Refusal::Locked));
    assert_eq!(of("member").await.offers.release, Offer::No(Refusal::ManagedElsewhere));
    assert!(of("nogpu").await.remarks.contains(&Remark::NoGpus));
    let cpu = of("cpu").await;
    assert!(!cpu.remarks.contains(&Remark::NoGpus) && cpu.remarks.contains(&Remark::NothingSurvivesStop));
    assert!(effect(&cpu.offers.stop).loses_data());
    for id in ["locked", "member"] {
        let error = play.account.act(Action::Stop, &id.into()).await.unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Refused { status: 409, .. }), "{error}");
    }
}

#[rstest]
#[case(Harm::CutBody, "connection lost")]
#[case(Harm::Hang, "no answer within")]
#[tokio::test]
async fn a_broken_answer_fails_the_list_only(#[case] harm: Harm, #[case] words: &str) {
    let play = Play::new(|_| {}).await;
    play.simulator.world.fault("GET", "/v2/pods", 3, harm);
    let poll = play.poll().await;
    assert!(
        matches!(&poll.instances, Part::Failed(error) if error.to_string().contains(words)),
        "{:?}",
        poll.instances
    );
    // Who uses the volumes is not known now, so none of them is called unattached.
    assert!(poll.storage.rows().iter().all(|item| item.attachment == Attachment::Unknown));
    assert!(matches!(poll.balance, Reading::Known(_)));
}

/// API-10: carried out, yet answered with an error: the outcome is unknown and the list tells.
#[rstest]
#[case(Harm::ApplyThenError(500))]
#[case(Harm::ApplyThenHang)]
#[tokio::test]
async fn an_action_with_a_broken_answer_was_sent_once_and_may_have_happened(#[case] harm: Harm) {
    let play = Play::new(|_| {}).await;
    play.simulator.world.fault("POST", "/action", 1, harm);
    let error = play.account.act(Action::Start, &PAUSED.into()).await.unwrap_err();
    assert!(error.kind.outcome_unknown(), "{error}");
    assert_eq!(play.simulator.world.lock().count("POST", "/action"), 1);
    play.wait(10);
    assert_eq!(play.phase(PAUSED).await, Phase::Running);
}

#[tokio::test]
async fn a_spot_machine_that_was_taken_is_stopped_with_the_providers_words() {
    let play = Play::new(|world| world.machine("sim0spot000003").unwrap().life = Life::Outbid).await;
    let taken = play.instance("sim0spot000003").await.unwrap();
    assert_eq!((taken.phase, taken.note.as_deref()), (Phase::Stopped, Some("Exited by Runpod")));
}

/// SEC-03 on the whole way: what the wire holds of secrets does not come through.
#[tokio::test]
async fn no_secret_of_the_wire_is_in_a_poll() {
    let play = Play::new(|_| {}).await;
    let poll = play.poll().await;
    let shown = format!("{poll:?}{}", serde_json::to_string(&poll).unwrap());
    assert!(!shown.contains("hf_simulated_secret") && !shown.contains("sim-runpod-key"));
}

#[tokio::test]
async fn the_bill_agrees_with_the_rates_and_outlives_the_machine() {
    let play = Play::new(|world| world.machine("sim0spot000003").unwrap().compute_per_hour = dec("0.16")).await;
    let first = play.poll().await;
    let rate = |id: &str| {
        first.instances.rows().iter().find(|row| row.id.as_str() == id).map(|row| certain(&row.rates)).unwrap()
    };
    play.wait(3600);
    play.poll().await;
    play.account.act(Action::Release, &TRAINER.into()).await.unwrap();
    play.wait(7200);
    let (from, to) = (now(), play.clock.now());
    let lines = play.account.billed(from, to).await.unwrap();
    let sum = |id: &str| {
        let resource = Some(ResourceId::from(id));
        let of = |line: &&BilledLine| line.resource.as_ref().map(|(_, id)| id.clone()) == resource;
        lines.iter().filter(of).map(|line| line.amount.amount).sum::<Decimal>()
    };
    assert_eq!(sum("sim0spot000003").round_dp(6), (rate("sim0spot000003") * dec("3")).round_dp(6));
    // One hour, then released, with the disk until it was gone.
    assert!((sum(TRAINER) - rate(TRAINER)).abs() < dec("0.0001"), "{}", sum(TRAINER));
    assert_eq!(sum("simnv0left").round_dp(6), (monthly("250", "0.07") * dec("3")).round_dp(6));
    assert!(sum(PAUSED) > dec("0"));
}

/// A charge under another component than its rate would count beside our own figure, and not in its place.
#[tokio::test]
async fn what_is_billed_has_the_components_of_the_rates() {
    let play = Play::new(|_| {}).await;
    let poll = play.poll().await;
    play.wait(7200);
    let lines = play.account.billed(now(), play.clock.now()).await.unwrap();
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

/// The bill of a machine that was gone before anybody looked, and of one whose provider charges a little more.
#[tokio::test]
async fn a_past_is_billed_and_not_listed() {
    let ago = |hours| now() - SignedDuration::from_hours(hours);
    let past = [(ago(72), Life::Running), (ago(70), Life::Stopped), (ago(60), Life::Gone)];
    let play = Play::new(|world| {
        world.billed_factor = dec("1.5");
        world
            .machines
            .push(Machine { compute_per_hour: dec("2"), ..Machine::new("pastpod", "old", now()) }.lived(&past));
    })
    .await;
    assert_eq!(play.instance("pastpod").await, None);
    let lines = play.account.billed(ago(100), now()).await.unwrap();
    let of_it = |component| {
        let of_it = move |line: &&BilledLine| {
            line.component == component && line.resource.as_ref().is_some_and(|(_, id)| id.as_str() == "pastpod")
        };
        lines.iter().filter(of_it).map(|line| line.amount.amount).collect::<Vec<_>>()
    };
    let compute: Vec<Decimal> = of_it(Component::Compute).into_iter().filter(|amount| !amount.is_zero()).collect();
    assert_eq!(compute, [dec("3"), dec("3")]);
    assert_eq!(of_it(Component::Disk).len(), 12);
}

#[tokio::test]
async fn a_poll_without_http_says_the_same() {
    let play = Play::new(|_| {}).await;
    play.poll().await;
    // The second one knows the spot flag.
    let (over_http, without) = (play.poll().await, simulator::poll(&play.simulator.world.lock()));
    let settled = |poll: &Poll| -> Vec<_> {
        let rows = poll.instances.rows().iter().cloned().map(|row| (row.id, row.phase, row.rates, row.mounts));
        rows.collect()
    };
    let by_id = |mut rows: Vec<(ResourceId, _, _, _)>| {
        rows.sort_by(|one, other| one.0.cmp(&other.0));
        rows
    };
    assert_eq!(by_id(settled(&without)), by_id(settled(&over_http)));
    assert_eq!(without.storage, over_http.storage);
}
