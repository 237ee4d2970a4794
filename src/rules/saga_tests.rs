use std::time::Duration;

use proptest::prelude::*;
use providers::model::{DataKind, Effect, Offers, StorageItem};
use providers::provider::Reading;
use rstest::rstest;

use super::*;
use crate::rules::plan::plan;
use crate::rules::samples::{
    at, basis, disk, effect, error, failed, fleet, identity, instance, item_identity, listed, volume, with_storage,
};
use crate::rules::settings::Settings;

#[path = "saga/saving_tests.rs"]
mod saving;

/// One action with the time at which it is.
struct Story {
    op: Operation,
    now: Timestamp,
}

fn running() -> Instance {
    Instance { created_at: Some(at("08:00:00")), ..instance("a", Phase::Running, "1") }
}

fn stopped() -> Instance {
    Instance { created_at: Some(at("08:00:00")), ..instance("a", Phase::Stopped, "0.02") }
}

fn in_phase(phase: Phase) -> Instance {
    Instance { created_at: Some(at("08:00:00")), ..instance("a", phase, "1") }
}

/// The same id, given to a machine that was made later.
fn another_machine() -> Instance {
    Instance { created_at: Some(at("08:59:00")), ..running() }
}

fn planned(action: Action, row: &Instance) -> Plan {
    let mut fleet = fleet(&["team"]);
    fleet.poll("team", with_storage(listed(vec![row.clone()]), vec![volume("v", "0.1", &[])]), at("08:30:00"));
    let settings = Settings::default();
    let pointed = if action == Action::Delete { item_identity("team", "v") } else { identity("team", "a") };
    let basis = basis(&fleet, &settings, at("08:59:59"));
    plan(basis, action, &[pointed])
}

fn begun(plan: Plan, authority: Authority) -> Story {
    let now = at("09:00:00");
    let target = plan.targets.into_iter().next().expect("a target");
    let (op, _) = Operation::begin(OpId(1), plan.action, target, authority, "me@here".to_owned(), now);
    Story { op, now }
}

impl Story {
    /// A confirmed plan for an instance, or for the volume, at 09:00:00.
    fn of(action: Action, row: &Instance) -> Self {
        let plan = planned(action, row);
        let typed = match &plan.confirmation {
            Confirmation::Countdown | Confirmation::Save => None,
            Confirmation::Typed(text) => Some(text.clone()),
        };
        let Confirmed::Yes(authority) = confirm(&plan, typed.as_deref()) else { panic!("the plan asks for more") };
        begun(plan, authority)
    }

    /// The same, looked at and sent.
    fn sent(action: Action, row: &Instance) -> Self {
        let mut story = Story::of(action, row);
        if story.op.in_countdown() {
            assert_eq!(story.after(5, Input::Tick), [Order::Record, Order::Look]);
        }
        let found = if action == Action::Delete { Found::CannotAsk } else { found(row) };
        let orders = story.hear(Input::LookedUp(Ok(found)));
        assert!(is_sent(&orders), "{orders:?}");
        story
    }

    fn accepted(action: Action, row: &Instance) -> Self {
        let mut story = Story::sent(action, row);
        story.hear(Input::Acted(Ok(Accepted::Done)));
        story
    }

    fn hear(&mut self, input: Input) -> Vec<Order> {
        self.op.advance(input, self.now)
    }

    fn after(&mut self, seconds: i64, input: Input) -> Vec<Order> {
        self.now += SignedDuration::from_secs(seconds);
        self.hear(input)
    }

    /// A list without faults, asked for and answered now.
    fn polls(&mut self, rows: Vec<Instance>) -> Vec<Order> {
        let seen = Sight::of(&self.op.target, &listed(rows));
        self.hear(Input::Polled { asked_at: self.now, seen })
    }

    fn looks(&mut self, row: Instance) -> Vec<Order> {
        self.hear(Input::LookedUp(Ok(found(&row))))
    }

    fn denied(&mut self) -> Vec<Order> {
        self.hear(Input::LookedUp(Ok(Found::NoSuchId)))
    }

    fn outcome(&self) -> Option<&Outcome> {
        match &self.op.step {
            Step::Ended { outcome, .. } => Some(outcome),
            _ => None,
        }
    }
}

fn found(row: &Instance) -> Found {
    Found::Instance(Box::new(row.clone()))
}

fn is_sent(orders: &[Order]) -> bool {
    orders.iter().any(|order| matches!(order, Order::RecordThenSend(_)))
}

fn not_sent(reason: NotSent) -> Option<Outcome> {
    Some(Outcome::NotSent(reason))
}

fn refused(message: &str) -> ErrorKind {
    ErrorKind::Refused { status: 400, code: None, message: message.to_owned(), retry_after: None }
}

fn try_again_in(seconds: u64) -> ErrorKind {
    let message = Some("Unable to terminate instance. Please try again in 60 seconds.".to_owned());
    ErrorKind::Server { status: 500, message, retry_after: Some(Duration::from_secs(seconds)) }
}

fn timed_out() -> ErrorKind {
    ErrorKind::Timeout { after: Duration::from_secs(30) }
}

fn acted(kind: ErrorKind) -> Input {
    Input::Acted(Err(error(kind)))
}

fn look_failed(kind: ErrorKind) -> Input {
    Input::LookedUp(Err(error(kind)))
}

fn no_network() -> ErrorKind {
    ErrorKind::Connect { message: "no route".to_owned() }
}

fn despite(error: Option<&str>) -> Option<Outcome> {
    Some(Outcome::Done { despite: error.map(str::to_owned) })
}

#[test]
fn a_plan_is_confirmed_only_by_what_it_asks_for() {
    let stop = planned(Action::Stop, &running());
    let release = planned(Action::Release, &running());
    assert_eq!(confirm(&stop, None), Confirmed::Yes(Authority::LosesNothing));
    assert_eq!(confirm(&stop, Some("a")), Confirmed::NotYet);
    assert_eq!(confirm(&release, Some("a")), Confirmed::Yes(Authority::Typed("a".to_owned())));
    for typed in [None, Some(""), Some("A"), Some("a "), Some("yes")] {
        assert_eq!(confirm(&release, typed), Confirmed::NotYet, "{typed:?}");
    }
}

#[test]
fn what_loses_nothing_can_be_taken_back_until_its_countdown_ends() {
    let mut story = Story::of(Action::Stop, &running());
    assert_eq!(story.op.next_wake(), Some(at("09:00:05")));
    assert_eq!(story.op.shown_phase(), None);
    assert_eq!(story.after(4, Input::Tick), []);
    assert!(story.op.in_countdown());
    assert_eq!(story.hear(Input::TakeBack), [Order::Record]);
    assert_eq!(story.outcome().cloned(), not_sent(NotSent::TakenBack));
    assert_eq!(story.after(10, Input::Tick), [], "nothing begins any more");
}

/// The lid was closed on a countdown, and opened the next morning.
#[test]
fn nothing_is_sent_on_the_word_of_yesterday() {
    for (seconds, sent) in [(300, true), (8 * 3600, false)] {
        let mut story = Story::of(Action::Stop, &running());
        story.after(seconds, Input::Tick);
        assert_eq!(is_sent(&story.looks(running())), sent, "{seconds}");
        assert_eq!(story.outcome().cloned(), not_sent(NotSent::TooLate).filter(|_| !sent));
    }
}

/// Nor is it sent a second time: what was refused is read back, and the person decides anew.
#[test]
fn a_second_request_goes_out_soon_or_not_at_all() {
    let mut story = Story::sent(Action::Release, &running());
    story.hear(acted(try_again_in(60)));
    story.after(8 * 3600, Input::Tick);
    let orders = story.looks(running());
    assert!(!is_sent(&orders) && orders.contains(&Order::Look), "{orders:?}");
    story.looks(running());
    assert!(matches!(story.outcome(), Some(Outcome::Refused(_))), "{:?}", story.outcome());
}

#[test]
fn what_loses_something_is_looked_at_at_once() {
    let plan = planned(Action::Release, &running());
    let target = plan.targets[0].clone();
    let typed = Authority::Typed("a".to_owned());
    let (op, orders) = Operation::begin(OpId(1), Action::Release, target, typed, "me".to_owned(), at("09:00:00"));
    assert_eq!(orders, [Order::Record, Order::Look]);
    assert_eq!((op.sent, op.shown_phase()), (0, None));
}

/// TUI-06: the target was fixed when the plan was confirmed, whatever the rows do meanwhile.
#[test]
fn the_permit_names_the_resource_of_the_plan() {
    let mut story = Story::of(Action::Release, &running());
    story.polls(vec![instance("b", Phase::Running, "3"), running()]);
    let orders = story.looks(running());
    let [Order::RecordThenSend(permit)] = orders.as_slice() else { panic!("{orders:?}") };
    assert_eq!((permit.identity(), permit.action(), permit.op()), (&identity("team", "a"), Action::Release, OpId(1)));
    assert_eq!((story.op.sent, story.op.sent_at), (1, Some(story.now)));
}

/// The last look: what is found decides whether the request goes out.
#[rstest]
#[case::as_seen(Action::Stop, running(), found(&running()), None)]
#[case::another_machine(Action::Stop, running(), found(&another_machine()), not_sent(NotSent::AnotherMachine))]
#[case::released_another(Action::Release, running(), found(&another_machine()), not_sent(NotSent::AnotherMachine))]
#[case::no_longer_there(Action::Stop, running(), Found::NoSuchId, not_sent(NotSent::NoLongerThere))]
#[case::ended(Action::Stop, running(), found(&in_phase(Phase::Gone)), not_sent(NotSent::NoLongerThere))]
#[case::started_and_gone(Action::Start, stopped(), Found::NoSuchId, not_sent(NotSent::NoLongerThere))]
#[case::denied_before_a_release(Action::Release, running(), Found::NoSuchId, not_sent(NotSent::NoLongerThere))]
#[case::released_and_ended(Action::Release, running(), found(&in_phase(Phase::Gone)), not_sent(NotSent::AlreadySo))]
#[case::denied_before_a_deletion(Action::Delete, running(), Found::NoSuchId, not_sent(NotSent::NoLongerThere))]
#[case::stopped_already(Action::Stop, running(), found(&stopped()), not_sent(NotSent::AlreadySo))]
#[case::running_already(Action::Start, stopped(), found(&running()), not_sent(NotSent::AlreadySo))]
#[case::a_restart_of_what_runs(Action::Restart, running(), found(&running()), None)]
#[case::release_of_what_stopped(Action::Release, running(), found(&stopped()), None)]
#[case::a_stop_of_what_was_out_of_sight(Action::Stop, in_phase(Phase::Unknown), found(&running()), None)]
#[case::a_stop_of_what_did_not_answer(Action::Stop, in_phase(Phase::Unreachable), found(&running()), None)]
#[case::a_release_of_what_did_not_answer(
    Action::Release, in_phase(Phase::Unreachable), found(&running()),
    not_sent(NotSent::PhaseChanged { was: Phase::Unreachable, is: Phase::Running })
)]
#[case::cannot_ask(Action::Release, running(), Found::CannotAsk, None)]
#[case::somebody_started_it(
    Action::Release, stopped(), found(&running()),
    not_sent(NotSent::PhaseChanged { was: Phase::Stopped, is: Phase::Running })
)]
#[case::being_started(
    Action::Start, stopped(), found(&in_phase(Phase::Provisioning)),
    not_sent(NotSent::PhaseChanged { was: Phase::Stopped, is: Phase::Provisioning })
)]
fn the_last_look_decides(
    #[case] action: Action,
    #[case] row: Instance,
    #[case] found: Found,
    #[case] expected: Option<Outcome>,
) {
    let mut story = Story::of(action, &row);
    if story.op.in_countdown() {
        story.after(5, Input::Tick);
    }
    let orders = story.hear(Input::LookedUp(Ok(found)));
    assert_eq!(story.outcome().cloned(), expected);
    assert_eq!(is_sent(&orders), expected.is_none());
    // Nothing was sent so far: whatever ended, it was not by our release.
    assert!(!orders.contains(&Order::Released));
}

/// LIFE-12 and the like: what the provider no longer offers is not sent.
#[test]
fn an_offer_that_was_withdrawn_stops_the_action() {
    let mut story = Story::of(Action::Stop, &running());
    story.after(5, Input::Tick);
    let locked = Offers { stop: Offer::No(Refusal::Locked), ..running().offers };
    story.looks(Instance { offers: locked, ..running() });
    assert_eq!(story.outcome().cloned(), not_sent(NotSent::NotOffered(Refusal::Locked)));
}

#[rstest]
#[case::a_stop_that_now_erases(Action::Stop, vec![disk(DataKind::ContainerDisk)])]
#[case::a_release_that_now_erases_more(Action::Release, vec![disk(DataKind::VolumeDisk), disk(DataKind::LocalDisk)])]
fn a_loss_that_the_plan_did_not_show_stops_the_action(#[case] action: Action, #[case] lost: Vec<DataPlace>) {
    let mut story = Story::of(action, &running());
    story.after(5, Input::Tick);
    let offer = Offer::Yes(effect("0", lost));
    let offers = match action {
        Action::Stop => Offers { stop: offer, ..running().offers },
        _ => Offers { release: offer, ..running().offers },
    };
    story.looks(Instance { offers, ..running() });
    assert_eq!(story.outcome().cloned(), not_sent(NotSent::PlanChanged));
}

#[test]
fn a_disk_that_grew_is_still_the_disk_of_the_plan() {
    let mut story = Story::of(Action::Release, &running());
    let grown = DataPlace { size_gb: Some(200.into()), ..disk(DataKind::VolumeDisk) };
    let offers = Offers { release: Offer::Yes(effect("0", vec![grown])), ..running().offers };
    assert!(is_sent(&story.looks(Instance { offers, ..running() })));
}

#[rstest]
#[case::in_use(volume("v", "0.1", &["a"]), not_sent(NotSent::NotOffered(Refusal::InUse)))]
#[case::not_offered(
    StorageItem { delete: Offer::No(Refusal::ManagedElsewhere), ..volume("v", "0.1", &[]) },
    not_sent(NotSent::NotOffered(Refusal::ManagedElsewhere))
)]
#[case::as_seen(volume("v", "0.1", &[]), None)]
fn storage_is_looked_at_as_well(#[case] item: StorageItem, #[case] expected: Option<Outcome>) {
    let mut story = Story::of(Action::Delete, &running());
    let orders = story.hear(Input::LookedUp(Ok(Found::Storage(Box::new(item)))));
    assert_eq!((story.outcome().cloned(), is_sent(&orders)), (expected.clone(), expected.is_none()));
}

/// No step before lets it pass, and if one did: nothing is destroyed on a countdown.
#[rstest]
#[case(Action::Release, Found::CannotAsk)]
#[case(Action::Release, found(&running()))]
#[case(Action::Delete, Found::CannotAsk)]
#[case(Action::Delete, Found::Storage(Box::new(volume("v", "0.1", &[]))))]
fn a_countdown_destroys_nothing(#[case] action: Action, #[case] found: Found) {
    let mut story = begun(planned(action, &running()), Authority::LosesNothing);
    story.after(5, Input::Tick);
    assert!(!is_sent(&story.hear(Input::LookedUp(Ok(found)))));
    assert_eq!(story.outcome().cloned(), not_sent(NotSent::PlanChanged));
}

#[test]
fn a_look_that_fails_is_tried_again_and_then_the_action_is_dropped_unsent() {
    let mut story = Story::of(Action::Release, &running());
    for look in 1..LOOKS {
        assert_eq!(story.hear(look_failed(no_network())), [], "look {look}");
        let wake = story.op.next_wake().unwrap();
        assert!(wake.duration_since(story.now) >= LOOK_AGAIN);
        assert_eq!(story.after(1, Input::Tick), [], "too early");
        story.now = wake;
        assert_eq!(story.hear(Input::Tick), [Order::Look]);
    }
    assert_eq!(story.hear(look_failed(no_network())), [Order::Record]);
    assert!(
        matches!(story.outcome(), Some(Outcome::NotSent(NotSent::CouldNotLook(told))) if told.contains("no route"))
    );
}

#[rstest]
#[case::a_refused_key(ErrorKind::Credentials { message: None })]
#[case::a_wait_of_an_hour(ErrorKind::RateLimited { retry_after: Some(Duration::from_secs(3600)) })]
fn a_look_that_will_not_come_soon_ends_it_at_once(#[case] kind: ErrorKind) {
    let mut story = Story::of(Action::Release, &running());
    story.hear(look_failed(kind));
    assert!(matches!(story.outcome(), Some(Outcome::NotSent(NotSent::CouldNotLook(_)))));
}

#[test]
fn a_step_that_cannot_be_written_down_is_not_taken() {
    let mut story = Story::sent(Action::Release, &running());
    story.hear(Input::NotRecorded("disk full".to_owned()));
    assert_eq!(story.outcome().cloned(), not_sent(NotSent::CouldNotRecord("disk full".to_owned())));
    assert_eq!((story.op.sent, story.op.sent_at), (0, None));
}

/// Another process had begun on the same resource: wherever the news finds this one, nothing of it was sent.
#[rstest]
#[case::in_its_countdown(Story::of(Action::Stop, &running()))]
#[case::at_its_look(Story::of(Action::Release, &running()))]
#[case::about_to_be_sent(Story::sent(Action::Release, &running()))]
fn an_action_that_came_second_ends_unsent(#[case] mut story: Story) {
    let orders = story.hear(Input::Forestalled { host: "desk".to_owned(), pid: 7 });
    assert_eq!(orders, [Order::Record]);
    assert_eq!(story.outcome().cloned(), not_sent(NotSent::UnderWay { host: "desk".to_owned(), pid: 7 }));
    assert_eq!((story.op.sent, story.op.sent_at), (0, None));
}

#[rstest]
#[case::release(Action::Release, running(), Some(Phase::Releasing))]
#[case::delete(Action::Delete, running(), Some(Phase::Releasing))]
#[case::stop(Action::Stop, running(), Some(Phase::Stopping))]
#[case::start(Action::Start, stopped(), Some(Phase::Provisioning))]
#[case::restart(Action::Restart, running(), None)]
fn a_row_shows_what_is_being_done_to_it(#[case] action: Action, #[case] row: Instance, #[case] shown: Option<Phase>) {
    let mut story = Story::of(action, &row);
    assert_eq!(story.op.shown_phase(), None, "nothing was sent yet");
    story = Story::sent(action, &row);
    assert_eq!(story.op.shown_phase(), shown);
    story.hear(Input::Acted(Ok(Accepted::Done)));
    assert_eq!(story.op.shown_phase(), shown);
}

/// API-09, first half: the provider denies the id that we released.
#[rstest]
#[case::by_id_alone(false)]
#[case::after_an_absence(true)]
fn a_release_is_done_when_the_provider_denies_the_id(#[case] absent_first: bool) {
    let mut story = Story::accepted(Action::Release, &running());
    story.now = at("12:00:20");
    story.op.step =
        Step::Confirming { since: at("12:00:00"), deadline: at("12:03:00"), doubt: None, absences: 0, next_look: None };
    if absent_first {
        assert_eq!(story.polls(vec![]), [Order::Look]);
    }
    assert_eq!(story.denied(), [Order::Released, Order::Record, Order::Refresh]);
    assert_eq!(story.outcome().cloned(), despite(None));
}

/// LIFE-03: accepted is not done.
#[test]
fn a_release_is_a_promise_until_an_absence_is_confirmed() {
    let mut story = Story::accepted(Action::Release, &running());
    for phase in [Phase::Running, Phase::Running, Phase::Releasing] {
        story.now += SignedDuration::from_secs(10);
        assert_eq!(story.polls(vec![in_phase(phase)]), []);
        assert_eq!(story.op.shown_phase(), Some(Phase::Releasing));
    }
    story.now += SignedDuration::from_secs(20);
    assert_eq!(story.polls(vec![]), [Order::Look]);
    assert_eq!(story.op.shown_phase(), Some(Phase::Releasing), "absent once is not confirmed");
    assert_eq!(story.denied(), [Order::Released, Order::Record, Order::Refresh]);
    assert_eq!(story.outcome().cloned(), despite(None));
}

/// API-10: an unanswered or broken start may have worked. It is read, and never sent again.
#[rstest]
#[case(ErrorKind::Server { status: 500, message: Some("Something went wrong.".to_owned()), retry_after: None })]
#[case(timed_out())]
#[case(ErrorKind::Disconnected { message: "reset".to_owned() })]
#[case(ErrorKind::NotJson { status: 200, excerpt: None })]
fn a_start_without_a_clear_answer_is_read_back(#[case] kind: ErrorKind) {
    let mut story = Story::sent(Action::Start, &stopped());
    assert_eq!(story.hear(acted(kind.clone())), [Order::Record, Order::Refresh]);
    assert!(matches!(&story.op.step, Step::Confirming { doubt: Some(_), .. }));
    story.now += SignedDuration::from_secs(3);
    assert_eq!(story.hear(Input::Tick), [Order::Look]);
    for _ in 0..3 {
        assert_eq!(story.looks(stopped()), [], "not yet, and not sent again");
        let wake = story.op.next_wake().unwrap();
        assert!(wake.duration_since(story.now) <= SignedDuration::from_secs(10), "it is soon looked at again");
        story.now = wake;
        assert_eq!(story.hear(Input::Tick), [Order::Look]);
    }
    story.polls(vec![running()]);
    let told = format!("GET /instances: {kind}");
    assert_eq!(story.outcome().cloned(), despite(Some(&told)));
}

/// API-11: releasing what is gone already.
#[rstest]
#[case::ended_by_its_own_word(found(&in_phase(Phase::Gone)))]
#[case::denied(Found::NoSuchId)]
fn a_refused_release_of_what_is_gone_is_done(#[case] found: Found) {
    let mut story = Story::sent(Action::Release, &running());
    let kind = ErrorKind::Refused {
        status: 403,
        code: Some("forbidden_action".to_owned()),
        message: "Can't discontinue a discontinued instance".to_owned(),
        retry_after: None,
    };
    assert_eq!(story.hear(acted(kind)), [Order::Record, Order::Look]);
    let orders = story.hear(Input::LookedUp(Ok(found)));
    assert_eq!(orders, [Order::Released, Order::Record, Order::Refresh]);
    assert!(matches!(story.outcome(), Some(Outcome::Done { despite: Some(told) }) if told.contains("discontinued")));
    assert_eq!(story.op.sent, 1);
}

/// The same where the provider cannot be asked by id: two lists without it are the proof.
#[test]
fn deleting_what_is_gone_already_is_proven_by_the_lists() {
    let mut story = Story::sent(Action::Delete, &running());
    assert_eq!(story.hear(acted(ErrorKind::NoSuchId)), [Order::Record, Order::Refresh, Order::Look]);
    story.hear(Input::LookedUp(Ok(Found::CannotAsk)));
    assert_eq!(story.outcome(), None);
    for absence in 1..=2 {
        story.now += SignedDuration::from_secs(60);
        let seen = Sight::of(&story.op.target, &with_storage(listed(vec![]), vec![]));
        assert_eq!(story.hear(Input::Polled { asked_at: story.now, seen }), [Order::Look]);
        story.hear(Input::LookedUp(Ok(Found::CannotAsk)));
        assert_eq!(story.outcome().is_some(), absence == 2);
    }
    assert!(matches!(story.outcome(), Some(Outcome::Done { despite: Some(_) })));
}

#[test]
fn two_absences_prove_a_deletion_only_in_a_row() {
    let mut story = Story::accepted(Action::Delete, &running());
    for volumes in [vec![], vec![volume("v", "0.1", &[])], vec![]] {
        story.now += SignedDuration::from_secs(10);
        let seen = Sight::of(&story.op.target, &with_storage(listed(vec![]), volumes));
        story.hear(Input::Polled { asked_at: story.now, seen });
        story.hear(Input::LookedUp(Ok(Found::CannotAsk)));
    }
    assert_eq!(story.outcome(), None);
}

/// API-12: refused with a wait of a minute: sent once more, not before, and only after a look.
#[test]
fn a_refusal_with_a_wait_is_sent_once_more_after_a_look() {
    let mut story = Story::sent(Action::Release, &running());
    assert_eq!(story.hear(acted(try_again_in(60))), [Order::Record]);
    assert_eq!(story.op.next_wake(), Some(at("09:01:00")));
    story.now = at("09:00:30");
    assert_eq!((story.hear(Input::Tick), story.op.shown_phase()), (vec![], Some(Phase::Releasing)));
    story.now = at("09:01:00");
    assert_eq!(story.hear(Input::Tick), [Order::Record, Order::Look]);
    assert_eq!(story.op.shown_phase(), Some(Phase::Releasing), "while it is looked at, too");
    assert!(is_sent(&story.looks(running())));
    assert_eq!(story.op.sent, 2);
    // The second refusal with a wait is the last.
    assert_eq!(story.hear(acted(try_again_in(60))), [Order::Record, Order::Look]);
    assert_eq!(story.looks(running()), [Order::Record, Order::Refresh]);
    assert!(matches!(story.outcome(), Some(Outcome::Refused(_))));
}

#[test]
fn the_second_request_is_accepted_and_proven() {
    let mut story = Story::sent(Action::Release, &running());
    story.hear(acted(try_again_in(60)));
    story.after(60, Input::Tick);
    story.looks(running());
    story.hear(Input::Acted(Ok(Accepted::Done)));
    story.now = at("09:01:30");
    story.polls(vec![]);
    story.now = at("09:01:45");
    story.denied();
    assert_eq!((story.outcome().cloned(), story.op.sent), (despite(None), 2));
}

#[rstest]
#[case::it_is_gone_by_now(Found::NoSuchId, false)]
#[case::it_is_being_released(found(&in_phase(Phase::Releasing)), true)]
fn a_refused_release_that_works_all_the_same_is_not_sent_again(#[case] found: Found, #[case] still_waits: bool) {
    let mut story = Story::sent(Action::Release, &running());
    story.hear(acted(try_again_in(60)));
    story.after(60, Input::Tick);
    assert!(!is_sent(&story.hear(Input::LookedUp(Ok(found)))));
    assert_eq!(story.op.sent, 1);
    if still_waits {
        assert!(matches!(&story.op.step, Step::Confirming { doubt: Some(_), .. }));
        story.denied();
    }
    assert!(matches!(story.outcome(), Some(Outcome::Done { despite: Some(_) })));
}

/// Between the two requests anything may happen: what was sent is never told as not sent.
#[rstest]
#[case::taken_back(Input::TakeBack)]
#[case::offline(look_failed(ErrorKind::Credentials { message: None }))]
fn an_action_dropped_after_its_first_request_is_read_back(#[case] input: Input) {
    let mut story = Story::sent(Action::Release, &running());
    story.hear(acted(try_again_in(60)));
    if matches!(input, Input::LookedUp(_)) {
        story.after(60, Input::Tick);
    }
    assert_eq!(story.hear(input), [Order::Record, Order::Look]);
    story.looks(running());
    assert!(matches!(story.outcome(), Some(Outcome::Refused(told)) if told.contains("try again")));
}

#[test]
fn a_changed_machine_is_not_sent_the_second_request() {
    let mut story = Story::sent(Action::Stop, &running());
    story.hear(acted(try_again_in(60)));
    story.after(60, Input::Tick);
    assert_eq!(story.looks(another_machine()), [Order::Record, Order::Refresh]);
    assert!(matches!(story.outcome(), Some(Outcome::Refused(_))));
    assert_eq!(story.op.sent, 1);
}

#[test]
fn a_second_request_that_cannot_be_written_down_is_not_counted() {
    let mut story = Story::sent(Action::Release, &running());
    story.hear(acted(try_again_in(60)));
    story.after(60, Input::Tick);
    story.looks(running());
    assert_eq!(story.hear(Input::NotRecorded("disk full".to_owned())), [Order::Record, Order::Look]);
    assert_eq!(story.op.sent, 1);
}

#[rstest]
#[case::no_wait_named(ErrorKind::RateLimited { retry_after: None })]
#[case::a_wait_of_an_hour(ErrorKind::RateLimited { retry_after: Some(Duration::from_secs(3600)) })]
#[case::in_use(refused("still in use"))]
#[case::no_right(ErrorKind::Forbidden { message: None })]
#[case::not_even_connected(no_network())]
fn any_other_refusal_is_read_and_told(#[case] kind: ErrorKind) {
    let mut story = Story::sent(Action::Release, &running());
    assert_eq!(story.hear(acted(kind.clone())), [Order::Record, Order::Look]);
    assert_eq!(story.looks(running()), [Order::Record, Order::Refresh]);
    assert_eq!(story.outcome(), Some(&Outcome::Refused(format!("GET /instances: {kind}"))));
}

#[test]
fn a_refusal_that_cannot_be_read_back_is_told_after_some_looks() {
    let mut story = Story::sent(Action::Release, &running());
    story.hear(acted(refused("no")));
    for _ in 1..LOOKS {
        assert_eq!(story.hear(look_failed(no_network())), []);
        story.now = story.op.next_wake().unwrap();
        assert_eq!(story.hear(Input::Tick), [Order::Look]);
    }
    story.hear(look_failed(no_network()));
    assert!(matches!(story.outcome(), Some(Outcome::Refused(told)) if told.contains("no")));
}

/// LIFE-06, LIFE-07 and LIFE-11: the GPU is taken. The machine is as it was, and the row says so.
#[rstest]
#[case(refused("Required resources are currently unavailable"))]
#[case(refused("There are not enough free GPUs on the host machine to start this pod."))]
fn a_refused_start_leaves_it_stopped(#[case] kind: ErrorKind) {
    let mut story = Story::sent(Action::Start, &stopped());
    story.hear(acted(kind.clone()));
    story.looks(stopped());
    assert_eq!(story.outcome(), Some(&Outcome::Refused(format!("GET /instances: {kind}"))));
    assert_eq!(story.op.shown_phase(), None, "it does not stay `provisioning`");
}

/// LIFE-11: a 503 is no clear answer, so it is read until its time is up; nothing else is ever sent.
#[test]
fn a_start_without_capacity_does_not_stay_provisioning() {
    let mut story = Story::sent(Action::Start, &stopped());
    story.hear(acted(ErrorKind::Server { status: 503, message: Some("No capacity".to_owned()), retry_after: None }));
    while !story.op.is_overdue() {
        story.now = story.op.next_wake().expect("it waits for a time");
        let orders = story.hear(Input::Tick);
        assert!(!is_sent(&orders));
        if orders.contains(&Order::Look) {
            story.looks(stopped());
        }
        story.polls(vec![stopped()]);
    }
    assert!(story.now.duration_since(at("09:00:05")) >= START_WITHIN);
    assert_eq!((story.op.shown_phase(), story.op.sent), (None, 1));
}

/// LIFE-07: it comes up without a GPU, which is running all the same.
#[test]
fn a_start_that_comes_up_without_a_gpu_has_come_up() {
    let mut story = Story::accepted(Action::Start, &stopped());
    story.polls(vec![Instance { remarks: vec![Remark::NoGpus], ..running() }]);
    assert_eq!(story.outcome().cloned(), despite(None));
}

#[test]
fn a_start_that_fails_to_boot_is_told() {
    let mut story = Story::accepted(Action::Start, &stopped());
    story.polls(vec![in_phase(Phase::Provisioning)]);
    assert_eq!(story.outcome(), None);
    story.polls(vec![in_phase(Phase::Failed)]);
    assert!(matches!(story.outcome(), Some(Outcome::Refused(told)) if told.contains("failed")));
    let mut again = Story::accepted(Action::Start, &in_phase(Phase::Failed));
    again.polls(vec![in_phase(Phase::Failed)]);
    assert_eq!(again.outcome(), None, "it was failed before, and the list may be behind");
}

#[test]
fn a_start_may_wait_at_the_provider() {
    let queued = || Instance { remarks: vec![Remark::StartQueued], ..stopped() };
    let expected = |message: &str| Some(Outcome::Queued(message.to_owned()));
    let mut answered = Story::sent(Action::Start, &stopped());
    answered.hear(Input::Acted(Ok(Accepted::Queued("waits".to_owned()))));
    assert_eq!(answered.outcome().cloned(), expected("waits"));
    let mut listed = Story::accepted(Action::Start, &stopped());
    listed.polls(vec![queued()]);
    assert_eq!(listed.outcome().cloned(), expected(""));
    let mut refused_but_queued = Story::sent(Action::Start, &stopped());
    refused_but_queued.hear(acted(refused("no room")));
    refused_but_queued.looks(queued());
    assert_eq!(refused_but_queued.outcome().cloned(), expected("GET /instances: refused: no room"));
}

#[test]
fn a_stop_is_not_done_while_a_start_still_waits_at_the_provider() {
    let mut story = Story::accepted(Action::Stop, &running());
    let queued = Instance { remarks: vec![Remark::StartQueued], ..stopped() };
    story.polls(vec![queued.clone()]);
    story.looks(queued);
    assert_eq!(story.outcome(), None);
    story.polls(vec![stopped()]);
    assert_eq!(story.outcome().cloned(), despite(None));
}

#[test]
fn a_stop_or_release_that_was_queued_is_a_promise_like_any() {
    for action in [Action::Stop, Action::Release] {
        let mut story = Story::sent(action, &running());
        story.hear(Input::Acted(Ok(Accepted::Queued("later".to_owned()))));
        assert!(matches!(story.op.step, Step::Confirming { doubt: None, .. }));
    }
}

#[test]
fn a_list_asked_for_before_the_answer_proves_nothing() {
    let mut story = Story::sent(Action::Stop, &running());
    let asked_at = story.now;
    story.after(1, Input::Acted(Ok(Accepted::Done)));
    let seen = Sight::Here { phase: Phase::Stopped, queued: false };
    assert_eq!(story.hear(Input::Polled { asked_at, seen: seen.clone() }), []);
    assert_eq!(story.outcome(), None);
    story.hear(Input::Polled { asked_at: story.now, seen });
    assert_eq!(story.outcome().cloned(), despite(None));
}

#[test]
fn a_restart_that_was_refused_or_never_answered_is_not_done_because_it_runs() {
    let mut refused_one = Story::sent(Action::Restart, &running());
    refused_one.hear(acted(refused("busy")));
    refused_one.looks(running());
    assert!(matches!(refused_one.outcome(), Some(Outcome::Refused(_))));

    let mut waits = Story::sent(Action::Restart, &running());
    waits.hear(acted(try_again_in(60)));
    waits.after(60, Input::Tick);
    assert!(is_sent(&waits.looks(running())), "the second try goes out");

    let mut unanswered = Story::sent(Action::Restart, &running());
    unanswered.hear(acted(timed_out()));
    unanswered.polls(vec![running()]);
    unanswered.looks(running());
    assert_eq!(unanswered.outcome(), None);
    unanswered.looks(Instance { started_at: Some(unanswered.now), ..running() });
    assert!(matches!(unanswered.outcome(), Some(Outcome::Done { despite: Some(_) })));

    let mut accepted = Story::accepted(Action::Restart, &running());
    accepted.polls(vec![running()]);
    assert_eq!(accepted.outcome().cloned(), despite(None));
}

#[rstest]
#[case(Action::Stop, running(), CONFIRM_WITHIN)]
#[case(Action::Release, running(), CONFIRM_WITHIN)]
#[case(Action::Start, stopped(), START_WITHIN)]
fn what_does_not_come_true_in_time_is_overdue_and_looked_at_on(
    #[case] action: Action,
    #[case] row: Instance,
    #[case] within: SignedDuration,
) {
    let mut story = Story::accepted(action, &row);
    let deadline = story.now + within;
    story.polls(vec![row.clone()]);
    assert_eq!(story.op.next_wake(), Some(deadline));
    story.now = deadline;
    assert_eq!(story.hear(Input::Tick), [Order::Record, Order::Refresh, Order::Look]);
    assert!(story.op.is_overdue());
    for _ in 0..3 {
        story.now = story.op.next_wake().expect("it is looked at again");
        assert_eq!(story.hear(Input::Tick), [Order::Look]);
        story.hear(look_failed(no_network()));
    }
    // Late is better than never.
    let done = match action {
        Action::Start => running(),
        Action::Stop => stopped(),
        _ => in_phase(Phase::Gone),
    };
    story.polls(vec![done]);
    assert_eq!(story.outcome().cloned(), despite(None));
}

#[test]
fn only_an_overdue_action_gives_way_to_another() {
    let mut story = Story::accepted(Action::Stop, &running());
    assert_eq!(story.hear(Input::Superseded), []);
    story.after(180, Input::Tick);
    assert_eq!(story.hear(Input::Superseded), [Order::Record]);
    assert_eq!(story.outcome(), Some(&Outcome::Unproven));
}

#[test]
fn what_was_sent_cannot_be_taken_back() {
    for mut story in [Story::sent(Action::Release, &running()), Story::accepted(Action::Release, &running())] {
        let step = story.op.step.clone();
        assert_eq!(story.hear(Input::TakeBack), []);
        assert_eq!(story.op.step, step);
    }
}

#[rstest]
#[case::a_stop_is_served(Action::Stop, running(), Found::NoSuchId, true)]
#[case::a_start_is_not(Action::Start, stopped(), Found::NoSuchId, false)]
#[case::nor_where_nobody_can_be_asked(Action::Start, stopped(), Found::CannotAsk, false)]
#[case::where_nobody_can_be_asked(Action::Stop, running(), Found::CannotAsk, true)]
fn a_machine_that_vanishes_meanwhile_ends_the_waiting(
    #[case] action: Action,
    #[case] row: Instance,
    #[case] told: Found,
    #[case] done: bool,
) {
    let mut story = Story::accepted(action, &row);
    for _ in 0..2 {
        assert_eq!(story.outcome(), None);
        story.now += SignedDuration::from_secs(15);
        assert_eq!(story.polls(vec![]), [Order::Look]);
        assert!(!story.hear(Input::LookedUp(Ok(told.clone()))).contains(&Order::Released));
    }
    assert_eq!(matches!(story.outcome(), Some(Outcome::Done { .. })), done);
    let mut replaced = Story::accepted(action, &row);
    replaced.looks(another_machine());
    assert_eq!(matches!(replaced.outcome(), Some(Outcome::Done { .. })), done);
}

#[test]
fn an_id_that_went_to_another_machine_proves_a_release() {
    let mut story = Story::accepted(Action::Release, &running());
    assert_eq!(story.polls(vec![another_machine()]), [Order::Look]);
    assert_eq!(story.looks(another_machine()), [Order::Released, Order::Record, Order::Refresh]);
}

#[rstest]
#[case::here(listed(vec![running()]), Sight::Here { phase: Phase::Running, queued: false })]
#[case::another_id(listed(vec![instance("b", Phase::Running, "1")]), Sight::Absent)]
#[case::another_machine(listed(vec![another_machine()]), Sight::Absent)]
#[case::failed(failed(timed_out()), Sight::Untold)]
#[case::not_asked(Poll { instances: Part::NotAsked, ..listed(vec![]) }, Sight::Untold)]
#[case::partial(
    Poll {
        instances: Part::Listed {
            rows: vec![],
            problems: vec![providers::error::Problem {
                request: error(timed_out()).request,
                field: String::new(),
                message: "cut".to_owned(),
            }],
        },
        storage: Part::NotAsked,
        balance: Reading::NotAsked,
        tenant: Reading::NotAsked,
        server_time: None,
    },
    Sight::Untold
)]
fn a_poll_tells_only_what_it_holds(#[case] poll: Poll, #[case] expected: Sight) {
    let target = planned(Action::Stop, &running()).targets.remove(0);
    assert_eq!(Sight::of(&target, &poll), expected);
    let item = planned(Action::Delete, &running()).targets.remove(0);
    assert_eq!(Sight::of(&item, &poll), Sight::Untold, "instances say nothing about storage");
}

/// After a crash nothing is sent by itself: what was not sent is dropped, the rest is read.
#[test]
fn a_taken_up_action_sends_nothing() {
    let ended = |mut story: Story| (story.op.resume(story.now), story.outcome().cloned());
    let dropped = (vec![Order::Record], not_sent(NotSent::ProgramEnded));
    assert_eq!(ended(Story::of(Action::Stop, &running())), dropped, "in its countdown");
    assert_eq!(ended(Story::of(Action::Release, &running())), dropped, "while it was looked at");

    let (orders, outcome) = ended(Story::sent(Action::Release, &running()));
    assert_eq!((orders, outcome), (vec![Order::Record, Order::Refresh, Order::Look], None), "on its way");

    let mut waiting = Story::sent(Action::Release, &running());
    waiting.hear(acted(try_again_in(60)));
    assert_eq!(waiting.op.resume(waiting.now), [Order::Record, Order::Look], "refused with a wait");
    waiting.looks(running());
    assert!(matches!(waiting.outcome(), Some(Outcome::Refused(_))));

    let mut verifying = Story::sent(Action::Release, &running());
    verifying.hear(acted(refused("no")));
    assert_eq!(verifying.op.resume(verifying.now), [Order::Look]);

    let mut overdue = Story::accepted(Action::Release, &running());
    overdue.after(180, Input::Tick);
    assert_eq!(overdue.op.resume(overdue.now), [Order::Look]);
    overdue.denied();
    assert_eq!(overdue.op.resume(overdue.now), [], "and what has ended stays so");
}

#[test]
fn a_promise_that_came_true_while_nobody_looked_is_not_called_overdue() {
    let mut story = Story::accepted(Action::Release, &running());
    story.now += SignedDuration::from_hours(8);
    assert_eq!(story.op.resume(story.now), [Order::Look]);
    assert_eq!(story.hear(Input::Tick), []);
    assert!(!story.op.is_overdue());
    story.denied();
    assert_eq!(story.outcome().cloned(), despite(None));
}

#[test]
fn an_operation_reads_back_from_every_step() {
    let mut stories = vec![
        Story::of(Action::Stop, &running()),
        Story::of(Action::Release, &running()),
        Story::of(Action::Delete, &running()),
        Story::sent(Action::Start, &stopped()),
        Story::accepted(Action::Release, &running()),
    ];
    let mut waiting = Story::sent(Action::Release, &running());
    waiting.hear(acted(try_again_in(60)));
    let mut verifying = Story::sent(Action::Release, &running());
    verifying.hear(acted(refused("no")));
    let mut overdue = Story::accepted(Action::Stop, &running());
    overdue.after(180, Input::Tick);
    let mut ended = Story::of(Action::Release, &stopped());
    ended.looks(running());
    let mut told = Story::of(Action::Stop, &running());
    told.after(5, Input::Tick);
    let offers = Offers { stop: Offer::No(Refusal::Told("nein".to_owned())), ..running().offers };
    told.looks(Instance { offers, ..running() });
    stories.extend([waiting, verifying, overdue, ended, told]);
    for story in stories {
        let text = serde_json::to_string(&story.op).unwrap();
        assert_eq!(serde_json::from_str::<Operation>(&text).unwrap(), story.op, "{text}");
    }
}

/// What a random story does next.
#[derive(Clone, Debug)]
enum Deed {
    Hear(u32, Input),
    /// The poll was asked for so many seconds ago.
    Poll(u32, u32, Sight),
    Resume,
}

fn any_phase() -> impl Strategy<Value = Phase> {
    prop::sample::select(vec![
        Phase::Provisioning,
        Phase::Running,
        Phase::Stopping,
        Phase::Stopped,
        Phase::Reclaimed,
        Phase::Releasing,
        Phase::Gone,
        Phase::Failed,
        Phase::Unknown,
    ])
}

fn any_created() -> impl Strategy<Value = Option<Timestamp>> {
    prop::sample::select(vec![None, Some(at("08:00:00")), Some(at("08:00:00")), Some(at("08:59:00"))])
}

fn any_effect() -> impl Strategy<Value = Effect> {
    let kinds = vec![DataKind::ContainerDisk, DataKind::VolumeDisk, DataKind::Contents];
    prop::collection::vec(prop::sample::select(kinds), 0..2)
        .prop_map(|kinds| effect("0", kinds.into_iter().map(disk).collect()))
}

fn any_offer() -> impl Strategy<Value = Offer> {
    prop_oneof![
        5 => any_effect().prop_map(Offer::Yes),
        1 => Just(Offer::No(Refusal::Locked)),
    ]
}

fn any_found() -> impl Strategy<Value = Found> {
    let instance = (any_phase(), any_created(), any_offer(), any::<bool>(), any::<bool>()).prop_map(
        |(phase, created_at, offer, queued, new_run)| {
            let offers = Offers { stop: offer.clone(), start: offer.clone(), restart: offer.clone(), release: offer };
            let remarks = if queued { vec![Remark::StartQueued] } else { vec![] };
            let started_at = new_run.then(|| at("10:00:00"));
            found(&Instance { created_at, offers, remarks, started_at, ..instance("a", phase, "1") })
        },
    );
    let item = (any_created(), any_offer(), any::<bool>()).prop_map(|(created_at, delete, used)| {
        let users: &[&str] = if used { &["a"] } else { &[] };
        Found::Storage(Box::new(StorageItem { created_at, delete, ..volume("v", "0.1", users) }))
    });
    prop_oneof![6 => instance, 2 => item, 1 => Just(Found::NoSuchId), 2 => Just(Found::CannotAsk)]
}

fn any_error() -> impl Strategy<Value = ProviderError> {
    prop::sample::select(vec![
        timed_out(),
        no_network(),
        try_again_in(60),
        try_again_in(7200),
        refused("no"),
        ErrorKind::NoSuchId,
        ErrorKind::RateLimited { retry_after: Some(Duration::from_secs(5)) },
        ErrorKind::Server { status: 500, message: None, retry_after: None },
        ErrorKind::Credentials { message: None },
    ])
    .prop_map(error)
}

fn any_deed() -> impl Strategy<Value = Deed> {
    let sight = prop_oneof![
        3 => (any_phase(), any::<bool>()).prop_map(|(phase, queued)| Sight::Here { phase, queued }),
        2 => Just(Sight::Absent),
        1 => Just(Sight::Untold),
    ];
    let accepted =
        prop::sample::select(vec![Accepted::Done, Accepted::AlreadySo, Accepted::Queued("later".to_owned())]);
    let input = prop_oneof![
        6 => Just(Input::Tick),
        1 => Just(Input::TakeBack),
        1 => Just(Input::Superseded),
        1 => Just(Input::NotRecorded("disk full".to_owned())),
        1 => Just(Input::Forestalled { host: "desk".to_owned(), pid: 7 }),
        8 => any_found().prop_map(|found| Input::LookedUp(Ok(found))),
        2 => any_error().prop_map(|error| Input::LookedUp(Err(error))),
        2 => accepted.prop_map(|accepted| Input::Acted(Ok(accepted))),
        4 => any_error().prop_map(|error| Input::Acted(Err(error))),
    ];
    prop_oneof![
        20 => (0u32..240, input).prop_map(|(wait, input)| Deed::Hear(wait, input)),
        4 => (0u32..60, 0u32..60, sight).prop_map(|(wait, ago, sight)| Deed::Poll(wait, ago, sight)),
        1 => Just(Deed::Resume),
    ]
}

fn any_authority() -> impl Strategy<Value = Authority> {
    prop::sample::select(vec![Authority::LosesNothing, Authority::Typed("a".to_owned()), Authority::LoseData])
}

/// A target as a plan made it, or as a careless caller might: any effect, any phase, any creation.
fn any_operation() -> impl Strategy<Value = Operation> {
    let actions = vec![Action::Stop, Action::Start, Action::Restart, Action::Release, Action::Release, Action::Delete];
    (prop::sample::select(actions), any_authority(), any_effect(), any_phase(), any_created()).prop_map(
        |(action, authority, effect, phase, created_at)| {
            let row = if action == Action::Start { stopped() } else { running() };
            let mut target = planned(action, &row).targets.remove(0);
            target.effect = effect;
            target.phase = phase;
            target.created_at = created_at;
            Operation::begin(OpId(7), action, target, authority, "me@here".to_owned(), at("09:00:00")).0
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// Safety over any sequence of inputs, in any order, asked for or not.
    #[test]
    fn no_sequence_of_inputs_makes_an_action_unsafe(
        begun in any_operation(),
        deeds in prop::collection::vec(any_deed(), 1..40),
    ) {
        let mut op = begun.clone();
        let mut now = at("09:00:00");
        let mut looking = matches!(op.step, Step::Checking { .. });
        let mut sends = 0u32;
        let mut may_send_again = true;
        let mut taken_up = false;
        for deed in deeds {
            let before = op.clone();
            let (input, orders) = match deed {
                Deed::Resume => {
                    taken_up = true;
                    (None, op.resume(now))
                }
                Deed::Hear(wait, input) => {
                    now += SignedDuration::from_secs(wait.into());
                    (Some(input.clone()), op.advance(input, now))
                }
                Deed::Poll(wait, ago, seen) => {
                    now += SignedDuration::from_secs(wait.into());
                    let input = Input::Polled { asked_at: now - SignedDuration::from_secs(ago.into()), seen };
                    (Some(input.clone()), op.advance(input, now))
                }
            };
            // What was seen when it began is what it is about, to the end.
            prop_assert_eq!(&op.target, &begun.target);
            prop_assert_eq!((op.action, &op.authority), (begun.action, &begun.authority));
            // The end is the end.
            if before.is_ended() {
                prop_assert_eq!((&op, orders.len()), (&before, 0));
                continue;
            }
            match (&before.step, &input) {
                (Step::Sending { .. }, Some(Input::NotRecorded(_) | Input::Forestalled { .. })) => {
                    sends -= 1;
                    may_send_again = true;
                }
                (Step::Sending { .. }, Some(Input::Acted(Err(error)))) => {
                    may_send_again = error.kind.retry_after().is_some();
                }
                _ => {}
            }
            for order in &orders {
                let Order::RecordThenSend(permit) = order else { continue };
                prop_assert_eq!((permit.identity(), permit.action()), (&begun.target.identity, begun.action));
                // Only right after a look that was answered, and that still shows what the person saw.
                let Some(Input::LookedUp(Ok(found))) = &input else { panic!("sent on {input:?}") };
                let (created_at, effect) = match found {
                    Found::NoSuchId => panic!("sent to nobody"),
                    Found::CannotAsk => (None, None),
                    Found::Instance(row) => (row.created_at, row.offers.of(begun.action).effect().cloned()),
                    Found::Storage(item) => (item.created_at, item.delete.effect().cloned()),
                };
                prop_assert!(!another(begun.target.created_at, created_at), "sent to another machine");
                prop_assert!(*found == Found::CannotAsk || effect.is_some(), "sent though it is not offered");
                // Nothing is lost on a countdown, neither by the plan nor by what is there now.
                let loses = begun.target.effect.loses_data() || effect.is_some_and(|effect| effect.loses_data());
                let ends = matches!(begun.action, Action::Release | Action::Delete);
                prop_assert!(begun.authority != Authority::LosesNothing || !(loses || ends));
                prop_assert!(may_send_again, "sent again without an answered refusal that names a wait");
                prop_assert!(!taken_up, "sent by a process that only took it up");
                may_send_again = false;
                sends += 1;
            }
            prop_assert!(input.is_some() || !orders.iter().any(|order| matches!(order, Order::RecordThenSend(_))));
            prop_assert_eq!(op.sent, sends);
            prop_assert!(sends <= SENDS);
            // Nothing waits for ever: there is a time to wake at, or an answer to come.
            looking &= !matches!(input, Some(Input::LookedUp(_)));
            looking |= orders.contains(&Order::Look);
            let answer_to_come = looking || matches!(op.step, Step::Sending { .. });
            prop_assert!(op.is_ended() || op.next_wake().is_some() || answer_to_come, "stuck in {:?}", op.step);
            // The screen and the record tell what is so.
            let overdue_start = op.is_overdue() && op.action == Action::Start;
            let shows = op.sent > 0 && !op.is_ended() && op.action != Action::Restart && !overdue_start;
            prop_assert_eq!(op.shown_phase().is_some(), shows);
            if let Step::Ended { outcome, .. } = &op.step {
                let done = matches!(outcome, Outcome::Done { .. });
                let ends = matches!(op.action, Action::Release | Action::Delete);
                prop_assert_eq!(orders.contains(&Order::Released), done && ends);
                prop_assert!(!matches!(outcome, Outcome::NotSent(_)) || op.sent == 0, "sent, and told as not sent");
                prop_assert!(orders.contains(&Order::Record), "the end is written down");
            } else {
                prop_assert!(!orders.contains(&Order::Released));
            }
            // Whatever matters after a crash is written down with the step.
            let moved = std::mem::discriminant(&op.step) != std::mem::discriminant(&before.step);
            let recorded = orders.iter().any(|order| matches!(order, Order::Record | Order::RecordThenSend(_)));
            prop_assert!(!moved || recorded, "{:?} -> {:?} unrecorded", before.step, op.step);
        }
        let text = serde_json::to_string(&op).unwrap();
        prop_assert_eq!(serde_json::from_str::<Operation>(&text).unwrap(), op);
    }

    /// Against a provider that does what it says, sooner or later every action is proven, told as refused,
    /// or overdue: and never overdue when it has come true.
    #[test]
    fn every_action_comes_to_an_end(
        action in prop::sample::select(vec![Action::Stop, Action::Start, Action::Release]),
        carried_out in any::<bool>(),
        answers in prop::collection::vec(prop_oneof![
            Just(Ok(Accepted::Done)),
            any_error().prop_map(Err),
        ], 2),
        takes in 0i64..120,
        deaf_looks in 0usize..6,
    ) {
        let row = if action == Action::Start { stopped() } else { running() };
        let mut story = Story::of(action, &row);
        let mut orders = if story.op.in_countdown() { vec![] } else { vec![Order::Look] };
        let mut due: Option<Timestamp> = None;
        let mut answers = answers.into_iter();
        let mut looks = 0;
        let until = story.now + SignedDuration::from_mins(30);
        while !story.op.is_ended() && story.now < until {
            let done = due.is_some_and(|due| due <= story.now);
            let state = match action {
                _ if !done => Some(row.clone()),
                Action::Start => Some(running()),
                Action::Stop => Some(stopped()),
                _ => None,
            };
            let inputs: Vec<Input> = orders
                .drain(..)
                .filter_map(|order| match order {
                    Order::Look => {
                        looks += 1;
                        let found = state.as_ref().map(found).unwrap_or(Found::NoSuchId);
                        let deaf = looks > 1 && looks <= 1 + deaf_looks;
                        Some(Input::LookedUp(if deaf { Err(error(no_network())) } else { Ok(found) }))
                    }
                    Order::RecordThenSend(_) => {
                        let answer = answers.next().expect("two answers are enough");
                        let works = answer.as_ref().map_or_else(|error| error.kind.outcome_unknown(), |_| true);
                        if works && carried_out {
                            due = Some(story.now + SignedDuration::from_secs(takes));
                        }
                        Some(Input::Acted(answer))
                    }
                    _ => None,
                })
                .collect();
            if inputs.is_empty() {
                story.now += SignedDuration::from_secs(4);
                orders.extend(story.hear(Input::Tick));
                let rows = state.into_iter().collect();
                orders.extend(story.polls(rows));
            }
            for input in inputs {
                orders.extend(story.hear(input));
            }
        }
        prop_assert!(story.op.is_ended() || story.op.is_overdue(), "{:?}", story.op.step);
        let came_true = due.is_some_and(|due| due <= story.now);
        let done = matches!(story.outcome(), Some(Outcome::Done { .. }));
        prop_assert_eq!(done, came_true, "{:?}", story.op.step);
    }
}
