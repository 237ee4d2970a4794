//! Rows and deeds over a stand-in for the links.

use std::sync::Mutex;

use rstest::rstest;
use rust_decimal::Decimal;

use super::*;
use crate::money::Currency;

const TEN: &str = "10:00:00";

fn at(time: &str) -> Timestamp {
    format!("2026-11-30T{time}Z").parse().unwrap()
}

fn price(amount: &str) -> Rate {
    Rate::per_hour(amount.parse().unwrap(), Currency::CNY).unwrap()
}

/// What the world outside is.
#[derive(Debug, Default)]
struct World {
    link: Mutex<Option<Link>>,
    stop: Mutex<Option<OwnStop>>,
    /// What each command that is run comes to, in turn; the last goes on.
    comes: Mutex<Vec<Ran>>,
    ran: Mutex<Vec<String>>,
}

#[async_trait]
impl Shell for World {
    fn link(&self, _: &AccountName, id: &ResourceId) -> Option<Link> {
        self.link.lock().unwrap().filter(|_| id.as_str() == "box")
    }
    async fn run(&self, _: &AccountName, _: &ResourceId, _: &SshEndpoint, command: &str) -> Ran {
        self.ran.lock().unwrap().push(command.to_owned());
        let mut comes = self.comes.lock().unwrap();
        if comes.len() > 1 { comes.remove(0) } else { comes.first().cloned().expect("a command was not to be run") }
    }
    async fn own_stop(&self, _: &AccountName, id: &ResourceId) -> Option<OwnStop> {
        self.stop.lock().unwrap().filter(|_| id.as_str() == "box")
    }
    async fn note_own_stop(&self, _: &AccountName, _: &ResourceId, stop: Option<OwnStop>) {
        *self.stop.lock().unwrap() = stop;
    }
}

fn machine() -> Machine {
    Machine {
        name: "box".to_owned(),
        endpoint: SshEndpoint::of_config("gpu-box", None, None).unwrap(),
        running: Some(price("1.98")),
        stopped: Some(price("0.02")),
        gpus: Some(Gpus::parse("2x RTX 4090", None, None)),
        stop: Some("poweroff".to_owned()),
        release_after_off: Some(SignedDuration::from_hours(15 * 24)),
        labels: BTreeMap::from([("team".to_owned(), "vision".to_owned())]),
    }
}

fn over(world: &Arc<World>, machines: Vec<Machine>) -> Arc<dyn Provider> {
    let shell: Arc<dyn Shell> = world.clone();
    let access = Access { machines, shell: Some(shell), ..Access::new(NAME, "own", "") };
    (ENTRY.connect)(&access).unwrap()
}

fn heard(time: &str) -> Option<Link> {
    Some(Link { heard: Some(at(time)), end: None })
}

fn down(heard: Option<&str>, time: &str, silent: bool) -> Option<Link> {
    Some(Link { heard: heard.map(at), end: Some(End { at: at(time), silent }) })
}

fn stopped(accepted: &str, off: Option<&str>) -> Option<OwnStop> {
    Some(OwnStop { accepted: at(accepted), off_since: off.map(at) })
}

fn silence() -> Ran {
    Ran::NotBegun { silent: true, message: "Connection refused".to_owned() }
}

fn answers() -> Ran {
    Ran::Ended { code: 0, complaint: String::new() }
}

async fn row(world: &Arc<World>, now: &str) -> Instance {
    let poll = over(world, vec![machine()]).poll(Ask::INSTANCES, at(now)).await;
    let Part::Listed { rows, problems } = poll.instances else { panic!("{:?}", poll.instances) };
    assert!(problems.is_empty());
    rows.into_iter().next().unwrap()
}

/// Silence alone stops nothing, and only a stop of ours that was accepted makes silence a proof.
#[rstest]
#[case::heard(heard("09:59:50"), None, Phase::Running, None)]
#[case::a_connection_that_breaks_is_made_anew(down(Some("09:59:00"), "09:59:30", false), None, Phase::Running, None)]
#[case::silent_for_long(down(Some("09:00:00"), "09:59:30", true), None, Phase::Unreachable, None)]
#[case::never_reached(down(None, "09:59:30", true), None, Phase::Unreachable, None)]
#[case::key_refused(down(None, "09:59:30", false), None, Phase::Unreachable, None)]
#[case::hangs(heard("09:50:00"), None, Phase::Unreachable, None)]
#[case::just_stopped(heard("09:59:50"), stopped("09:59:40", None), Phase::Stopping, stopped("09:59:40", None))]
#[case::cut(
    down(Some("09:59:50"), "09:59:55", false),
    stopped("09:59:40", None),
    Phase::Stopping,
    stopped("09:59:40", None)
)]
#[case::silent_since_the_stop(
    down(Some("09:59:00"), "09:59:55", true),
    stopped("09:59:40", None),
    Phase::Stopped,
    stopped("09:59:40", Some("09:59:55"))
)]
#[case::silent_from_before(
    down(None, "09:59:30", true),
    stopped("09:59:40", None),
    Phase::Stopping,
    stopped("09:59:40", None)
)]
#[case::silent_when_somebody_looks_days_later(
    down(None, "09:59:30", true),
    stopped("01:00:00", None),
    Phase::Stopped,
    stopped("01:00:00", Some("09:59:30"))
)]
#[case::off_before_a_restart(
    down(None, "09:59:30", true),
    stopped("01:00:00", Some("01:01:00")),
    Phase::Stopped,
    stopped("01:00:00", Some("01:01:00"))
)]
#[case::a_session_that_lingers(
    heard("09:59:50"),
    stopped("09:59:30", Some("09:59:40")),
    Phase::Stopped,
    stopped("09:59:30", Some("09:59:40"))
)]
#[case::back_on(heard("09:59:50"), stopped("01:00:00", Some("01:01:00")), Phase::Running, None)]
#[case::the_stop_did_not_take(heard("09:59:50"), stopped("09:40:00", None), Phase::Running, None)]
#[case::somebody_else_answers(
    down(None, "09:59:30", false),
    stopped("01:00:00", Some("01:01:00")),
    Phase::Unreachable,
    stopped("01:00:00", Some("01:01:00"))
)]
#[case::neither_heard_nor_silent(
    down(None, "09:59:30", false),
    stopped("01:00:00", None),
    Phase::Unreachable,
    stopped("01:00:00", None)
)]
#[tokio::test]
async fn a_machine_is_what_its_link_and_our_own_stop_prove(
    #[case] link: Option<Link>,
    #[case] stop: Option<OwnStop>,
    #[case] phase: Phase,
    #[case] remembered: Option<OwnStop>,
) {
    let world = Arc::new(World { link: Mutex::new(link), stop: Mutex::new(stop), ..World::default() });
    let row = row(&world, TEN).await;
    assert_eq!((row.phase, *world.stop.lock().unwrap()), (phase, remembered));
    assert!(world.ran.lock().unwrap().is_empty(), "a poll runs nothing on it");
    let (certain, upper) = (row.rates.certain().of(Currency::CNY), row.rates.upper().of(Currency::CNY));
    let expected = match phase {
        Phase::Stopped => (price("0.02"), price("0.02")),
        Phase::Unreachable => (Rate::zero(Currency::CNY), price("1.98")),
        _ => (price("1.98"), price("1.98")),
    };
    assert_eq!((certain, upper), expected);
    let off = remembered.and_then(|stop| stop.off_since).filter(|_| phase == Phase::Stopped);
    assert_eq!((row.stopped_at, row.ends_at), (off, off.map(|off| off + SignedDuration::from_hours(360))));
}

#[tokio::test]
async fn a_row_is_what_the_config_says() {
    let world = Arc::new(World { link: Mutex::new(heard("09:59:50")), ..World::default() });
    let row = row(&world, TEN).await;
    assert_eq!((row.id.as_str(), row.name.as_deref()), ("box", Some("box")));
    let gpus = row.gpus.unwrap();
    assert_eq!((gpus.model.as_str(), gpus.count), ("RTX 4090", 2));
    assert_eq!(row.ssh.unwrap().command_line(), "ssh gpu-box");
    assert_eq!(row.labels["team"], "vision");
    assert_eq!(row.remarks, [Remark::NoApi]);
    let stop = row.offers.stop.effect().expect("it has a command");
    assert_eq!(stop.rates_after.certain().of(Currency::CNY), price("0.02"));
    assert!(!stop.loses_data() && stop.risks.contains(&Risk::GpuMayBeTaken));
    for offer in [&row.offers.start, &row.offers.restart, &row.offers.release] {
        assert_eq!(*offer, Offer::No(Refusal::NoApi));
    }
}

#[tokio::test]
async fn what_nobody_said_is_not_known() {
    let plain = Machine { running: None, stopped: None, gpus: None, stop: None, ..machine() };
    let world = Arc::new(World { link: Mutex::new(heard("09:59:50")), ..World::default() });
    let poll = over(&world, vec![plain]).poll(Ask::ALL, at(TEN)).await;
    let row = &poll.instances.rows()[0];
    assert_eq!((&row.rates, &row.gpus, &row.usage), (&Rates::unknown(), &None, &None));
    assert_eq!(row.offers.stop, Offer::No(Refusal::NoApi));
    assert_eq!((poll.storage, poll.balance), (Part::complete(vec![]), Reading::NotTold));
}

/// A process that opens no links has learnt nothing: what was known stays.
#[tokio::test]
async fn without_a_link_nothing_is_said_of_a_machine_and_the_others_are() {
    let world = Arc::new(World { link: Mutex::new(heard("09:59:50")), ..World::default() });
    let other = Machine { name: "other".to_owned(), ..machine() };
    let poll = over(&world, vec![machine(), other]).poll(Ask::INSTANCES, at(TEN)).await;
    let Part::Pieces { rows, unheard } = poll.instances else { panic!("{:?}", poll.instances) };
    assert_eq!(rows.iter().map(|row| (row.id.as_str(), row.phase)).collect::<Vec<_>>(), [("box", Phase::Running)]);
    let told: Vec<_> = unheard.iter().map(|row| (row.id.as_str(), row.phase)).collect();
    assert_eq!(told, [("other", Phase::Unknown)]);
    assert!(unheard[0].rates.certain().is_zero() && !unheard[0].rates.upper().is_zero());
}

/// A command without links of its own sees its own stop to its end by knocking.
#[tokio::test]
async fn a_stop_without_links_is_proven_by_knocking() {
    let comes = Mutex::new(vec![answers(), answers(), silence()]);
    let world = Arc::new(World { comes, ..World::default() });
    let provider = over(&world, vec![machine()]);
    let found = provider.lookup(ResourceKind::Instance, &"box".into(), at(TEN)).await.unwrap();
    assert!(matches!(found, Found::Instance(row) if row.phase == Phase::Running));
    assert_eq!(provider.act(Action::Stop, &"box".into()).await, Ok(Accepted::Done));
    assert_eq!(*world.ran.lock().unwrap(), [KNOCK, "poweroff"]);
    let accepted = world.stop.lock().unwrap().expect("it is remembered").accepted;
    let poll = provider.poll(Ask::INSTANCES, accepted).await;
    assert_eq!(poll.instances.rows()[0].phase, Phase::Stopped);
    assert_eq!(world.stop.lock().unwrap().unwrap().off_since, Some(accepted));
    let asked = world.ran.lock().unwrap().len();
    let poll = provider.poll(Ask::INSTANCES, accepted).await;
    assert_eq!(poll.instances.rows()[0].phase, Phase::Stopped);
    assert_eq!(world.ran.lock().unwrap().len(), asked, "what is proven is not knocked at again");
}

#[rstest]
#[case::well(answers(), Ok(Accepted::Done), true)]
#[case::cut_by_the_stop_itself(Ran::Cut, Ok(Accepted::Done), true)]
#[case::a_code(Ran::Ended { code: 3, complaint: "no right".to_owned() }, Err("own: stop box: refused: the stop command ended with code 3: no right"), false)]
#[case::a_code_of_255(Ran::Ended { code: 255, complaint: String::new() }, Err("own: stop box: refused: the stop command ended with code 255"), false)]
#[case::not_reached(silence(), Err("own: stop box: cannot connect: Connection refused"), false)]
#[case::too_long(Ran::TooLong { after: std::time::Duration::from_secs(60) }, Err("own: stop box: no answer within 60 s"), false)]
#[tokio::test]
async fn only_an_accepted_stop_is_remembered(
    #[case] comes: Ran,
    #[case] expected: Result<Accepted, &str>,
    #[case] remembered: bool,
) {
    let in_doubt = matches!(comes, Ran::TooLong { .. });
    let world = Arc::new(World { comes: Mutex::new(vec![comes]), ..World::default() });
    let answer = over(&world, vec![machine()]).act(Action::Stop, &"box".into()).await;
    if let Err(error) = &answer {
        assert_eq!(error.kind.outcome_unknown(), in_doubt);
    }
    let told = answer.map_err(|error| error.to_string());
    assert_eq!(told, expected.map_err(|line| format!("ssh/{line}")));
    assert_eq!(world.stop.lock().unwrap().is_some(), remembered);
}

#[rstest]
#[case(Action::Start, "box")]
#[case(Action::Release, "box")]
#[case(Action::Restart, "box")]
#[case(Action::Stop, "other")]
#[tokio::test]
async fn what_is_not_offered_runs_nothing(#[case] action: Action, #[case] id: &str) {
    let world = Arc::new(World::default());
    let answer = over(&world, vec![machine()]).act(action, &id.into()).await;
    assert!(answer.is_err_and(|error| !error.kind.outcome_unknown()));
    assert!(world.ran.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_machine_that_left_the_config_is_no_more_and_one_that_is_silent_is_not_gone() {
    let world = Arc::new(World { comes: Mutex::new(vec![silence()]), ..World::default() });
    let provider = over(&world, vec![machine()]);
    assert_eq!(provider.billed(at(TEN), at(TEN)).await, Ok(vec![]));
    let gone = provider.lookup(ResourceKind::Instance, &"other".into(), at(TEN)).await;
    assert_eq!(gone, Ok(Found::NoSuchId));
    let error = provider.lookup(ResourceKind::Instance, &"box".into(), at(TEN)).await.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Connect { .. }), "{error}");
}

#[test]
fn a_price_of_nothing_is_known() {
    let free = Machine { running: Rate::per_hour(Decimal::ZERO, Currency::USD), ..machine() };
    assert!(rates(&free, State::On).complete);
}
