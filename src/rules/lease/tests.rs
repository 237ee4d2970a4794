use rstest::rstest;

use super::*;
use crate::rules::samples::{at, identity, usd};

fn draft(what: What, when: When) -> Draft {
    Draft { identity: identity("team", "a"), what, when, max_cost: None, on_box: false }
}

fn lease(what: What, when: When) -> Lease {
    Lease::new(LeaseId(7), draft(what, when), "a".to_owned(), "ana@desk".to_owned(), at("10:00:00"))
}

fn file() -> When {
    When::File("/root/done".to_owned())
}

fn process(began: Option<u64>) -> When {
    When::Process { pid: 4711, began }
}

fn sight(phase: Phase) -> Sight {
    Sight::Here { phase, rates: vec![usd("2")] }
}

fn dollars(amount: &str) -> Money {
    Money::new(amount.parse().unwrap(), Currency::USD)
}

/// A word for where it is.
fn word(lease: &Lease) -> String {
    match &lease.step {
        Step::Waiting => "waiting".to_owned(),
        Step::Due { next_try, .. } => if next_try.is_some() { "later" } else { "due" }.to_owned(),
        Step::Acting { .. } => "acting".to_owned(),
        Step::Asking { why, .. } => format!("asks: {why:?}"),
        Step::Ended { how, .. } => format!("ended: {how:?}"),
    }
}

#[rstest]
#[case::before(What::Release, "11:59:59", Turn::Nothing, "waiting")]
#[case::on_time(What::Release, "12:00:00", Turn::Take, "due")]
#[case::nearly_late(What::Release, "12:10:00", Turn::Take, "due")]
#[case::late(What::Release, "12:10:01", Turn::Keep, "asks: Overdue")]
#[case::late_start(What::Start, "20:00:00", Turn::Keep, "asks: Overdue")]
#[case::late_stop(What::Stop, "20:00:00", Turn::Take, "due")]
fn what_is_late_is_no_release_by_itself(
    #[case] what: What,
    #[case] now: &str,
    #[case] expected: Turn,
    #[case] step: &str,
) {
    let mut lease = lease(what, When::At(at("12:00:00")));
    assert_eq!(lease.turn(&sight(Phase::Running), at(now)), expected);
    assert_eq!(word(&lease), step);
}

#[rstest]
#[case(Sight::Gone, "ended: Gone")]
#[case(Sight::AnotherMachine, "ended: AnotherMachine")]
#[case(Sight::Untold, "waiting")]
#[case(sight(Phase::Stopped), "waiting")]
fn a_lease_is_about_one_machine(#[case] sight: Sight, #[case] expected: &str) {
    let mut lease = lease(What::Stop, When::At(at("12:00:00")));
    lease.turn(&sight, at("11:00:00"));
    assert_eq!(word(&lease), expected);
}

fn not_sent(reason: NotSent) -> Option<Outcome> {
    Some(Outcome::NotSent(reason))
}

#[rstest]
#[case::done(What::Release, Some(Outcome::Done { despite: None }), "ended: Done")]
#[case::so(What::Stop, not_sent(NotSent::AlreadySo), "ended: AlreadySo")]
#[case::taken_back(What::Release, not_sent(NotSent::TakenBack), "ended: TakenBack")]
#[case::another(What::Stop, not_sent(NotSent::AnotherMachine), "ended: AnotherMachine")]
#[case::gone(What::Stop, not_sent(NotSent::NoLongerThere), "ended: Gone")]
#[case::quit(What::Stop, not_sent(NotSent::ProgramEnded), "due")]
#[case::quit_too(What::Release, not_sent(NotSent::ProgramEnded), "due")]
#[case::crashed(What::Release, None, "due")]
#[case::full(What::Stop, not_sent(NotSent::CouldNotRecord("full".into())), "later")]
#[case::slept(What::Stop, not_sent(NotSent::TooLate), "due")]
#[case::slept_too(What::Release, not_sent(NotSent::TooLate), "asks: Overdue")]
#[case::refused(What::Stop, Some(Outcome::Refused("no".into())), "asks: NotDone(Refused(\"no\"))")]
#[case::unproven(What::Stop, Some(Outcome::Unproven), "asks: NotDone(Unproven)")]
fn how_an_action_ended_is_how_its_lease_goes_on(
    #[case] what: What,
    #[case] outcome: Option<Outcome>,
    #[case] expected: &str,
) {
    let mut lease = lease(what, When::At(at("12:00:00")));
    let running = sight(Phase::Running);
    lease.turn(&running, at("12:00:00"));
    lease.begun(OpId(1), None, at("12:00:00"));
    assert_eq!(lease.op(), Some(OpId(1)));
    assert_eq!(lease.acted(outcome.as_ref(), &running, at("12:00:05")), Turn::Keep);
    assert_eq!(word(&lease), expected);
}

#[test]
fn a_release_whose_checkpoint_fails_is_a_stop_and_somebody_hears_why() {
    let mut lease = lease(What::Release, When::At(at("12:00:00")));
    lease.turn(&sight(Phase::Running), at("12:00:00"));
    lease.begun(OpId(1), None, at("12:00:00"));
    let outcome = Outcome::NotSaved(checkpoint::Trouble::Stalled);
    let instead = Instead::NotSaved(checkpoint::Trouble::Stalled);
    assert_eq!(lease.acted(Some(&outcome), &sight(Phase::Running), at("12:30:00")), Turn::Stop(instead.clone()));
    lease.begun(OpId(2), Some(instead), at("12:30:00"));
    lease.acted(Some(&Outcome::Done { despite: None }), &sight(Phase::Stopped), at("12:31:00"));
    assert_eq!(word(&lease), "asks: Stopped(NotSaved(Stalled))");
    assert_eq!(lease.turn(&sight(Phase::Stopped), at("13:00:00")), Turn::Nothing);
    lease.turn(&sight(Phase::Running), at("14:00:00"));
    assert_eq!(word(&lease), "ended: Answered");
}

fn code(code: Option<i32>, age: Option<i64>) -> Told {
    Told::Code { code, age: age.map(SignedDuration::from_secs) }
}

#[rstest]
#[case::not_yet(file(), Told::NoFile, Turn::Nothing, "waiting")]
#[case::good(file(), code(Some(0), Some(30)), Turn::Take, "due")]
#[case::long_ago(file(), code(Some(0), Some(1200)), Turn::Keep, "asks: Overdue")]
#[case::before_the_lease(file(), code(Some(0), Some(7200)), Turn::Keep, "asks: Stale")]
#[case::no_age(file(), code(Some(0), None), Turn::Take, "due")]
#[case::bad(file(), code(Some(137), Some(30)), Turn::Save, "asks: Job { code: Some(137) }")]
#[case::garbled(file(), code(None, Some(30)), Turn::Save, "asks: Job { code: None }")]
#[case::unreachable(file(), Told::Lost(streams::Trouble::NoAnswer), Turn::Nothing, "waiting")]
#[case::of_another_question(file(), Told::NoProcess, Turn::Nothing, "waiting")]
#[case::runs(process(Some(8)), Told::Alive { began: Some(8) }, Turn::Nothing, "waiting")]
#[case::first_seen(process(None), Told::Alive { began: Some(8) }, Turn::Keep, "waiting")]
#[case::used_again(process(Some(8)), Told::Alive { began: Some(9) }, Turn::Save, "asks: Job { code: None }")]
#[case::ended(process(Some(8)), Told::NoProcess, Turn::Save, "asks: Job { code: None }")]
fn what_a_job_leaves_decides(#[case] when: When, #[case] told: Told, #[case] expected: Turn, #[case] step: &str) {
    let mut lease = lease(What::Release, when);
    let heard = Some(at("10:59:00"));
    assert_eq!(lease.told(&told, heard, &sight(Phase::Running), at("11:00:00")), expected);
    assert_eq!(word(&lease), step);
}

/// An hour without a look: it may have been done for as long.
#[test]
fn a_job_that_nobody_saw_end_is_as_late_as_it_may_be() {
    let mut lease = lease(What::Release, file());
    lease.told(&code(Some(0), None), Some(at("11:00:00")), &sight(Phase::Running), at("12:00:00"));
    assert_eq!(word(&lease), "asks: Overdue");
}

#[test]
fn after_a_failed_job_it_is_stopped_once_so_much_is_spent() {
    let mut lease = Lease { max_cost: Some(dollars("3")), ..lease(What::Release, file()) };
    lease.told(&code(Some(1), Some(5)), None, &sight(Phase::Running), at("12:00:00"));
    assert_eq!(lease.next_wake(), Some(at("13:30:00")), "three dollars at two an hour");
    // From one o'clock it costs four an hour, of which it has two left.
    let dearer = Sight::Here { phase: Phase::Running, rates: vec![usd("4")] };
    assert_eq!(lease.turn(&dearer, at("13:00:00")), Turn::Keep);
    assert_eq!(lease.next_wake(), Some(at("13:15:00")));
    assert_eq!(lease.turn(&dearer, at("13:14:59")), Turn::Nothing);
    let stop = Turn::Stop(Instead::CostReached { code: Some(1) });
    assert_eq!(lease.turn(&dearer, at("13:15:00")), stop);
    // Also after a night in which nobody counted.
    assert_eq!(lease.turn(&dearer, at("22:00:00")), stop);
    let Step::Asking { meter, .. } = &lease.step else { panic!("{:?}", lease.step) };
    assert_eq!(meter.all(at("13:15:00")), [dollars("3")]);
}

#[test]
fn without_a_highest_cost_it_only_asks_and_ends_when_somebody_stops_it() {
    let mut lease = lease(What::Release, file());
    lease.told(&code(Some(1), Some(5)), None, &sight(Phase::Running), at("12:00:00"));
    assert_eq!((lease.next_wake(), lease.turn(&sight(Phase::Running), at("23:00:00"))), (None, Turn::Nothing));
    assert_eq!(lease.turn(&sight(Phase::Stopping), at("23:01:00")), Turn::Nothing);
    assert_eq!(lease.turn(&Sight::Untold, at("23:02:00")), Turn::Nothing);
    assert_eq!(lease.turn(&sight(Phase::Stopped), at("23:03:00")), Turn::Keep);
    assert_eq!(word(&lease), "ended: Answered");
}

#[test]
fn a_timer_on_the_machine_is_confirmed_by_being_read_back() {
    let commands = Commands { arm: Some("arm {what} {at}".to_owned()), check: Some("armed".to_owned()) };
    let wanted = Draft { on_box: true, ..draft(What::Stop, When::At(at("12:00:00"))) };
    let mut lease = Lease::new(LeaseId(7), wanted, "a".to_owned(), "ana@desk".to_owned(), at("10:00:00"));
    let (now, running) = (at("11:00:00"), sight(Phase::Running));
    let moment = at("12:00:00").as_second();
    assert_eq!(lease.ask_of(&commands), Some(Ask::Arm(format!("arm stop {moment}"))));
    let tell = |lease: &mut Lease, told: Told| lease.told(&told, None, &running, now);
    tell(&mut lease, Told::NotArmed("127".to_owned()));
    assert_eq!(lease.on_box, Some(OnBox::Failed("127".to_owned())));
    tell(&mut lease, Told::Armed);
    assert_eq!((lease.on_box.clone(), lease.is_armed()), (Some(OnBox::Armed), true));
    assert_eq!(tell(&mut lease, Told::NotThere), Turn::Nothing, "it was never confirmed");
    assert_eq!(lease.ask_of(&commands), Some(Ask::Confirm("armed".to_owned())));
    assert_eq!(lease.ask_of(&Commands { check: None, ..commands }), None);
    tell(&mut lease, Told::Confirmed);
    tell(&mut lease, Told::NotThere);
    assert_eq!(lease.on_box, Some(OnBox::Gone(now)));
    let of_job = Draft { on_box: true, ..draft(What::Stop, file()) };
    assert_eq!(Lease::new(LeaseId(8), of_job, "a".into(), "ana@desk".into(), now).on_box, None);
}

#[test]
fn who_cannot_be_asked_is_asked_again_and_is_worth_a_word_after_ten_minutes() {
    let (mut watch, lease) = (Watch::default(), lease(What::Release, file()));
    assert_eq!(watch.due(&lease), None, "at once");
    watch.asked(at("10:00:00"));
    assert_eq!(watch.due(&lease), Some(at("10:03:00")), "an answer that never comes is waited for no longer");
    let lost = Told::Lost(streams::Trouble::NoAnswer);
    watch.told(&lost, at("10:00:10"));
    assert_eq!((watch.due(&lease), watch.is_blind(at("10:10:09"))), (Some(at("10:01:00")), None));
    watch.told(&lost, at("10:09:00"));
    assert_eq!(watch.is_blind(at("10:10:10")), Some((streams::Trouble::NoAnswer, at("10:00:10"))));
    watch.told(&Told::NoFile, at("10:11:00"));
    assert_eq!((watch.is_blind(at("11:00:00")), watch.heard_at), (None, Some(at("10:11:00"))));
}

#[test]
fn a_lease_to_start_stands_beside_one_to_stop() {
    let moment = || When::At(at("12:00:00"));
    let other = |what| Lease { id: LeaseId(8), ..lease(what, moment()) };
    let stop = lease(What::Stop, moment());
    assert!(stop.takes_the_place_of(&other(What::Release)));
    assert!(!stop.takes_the_place_of(&other(What::Start)));
    assert!(!stop.takes_the_place_of(&stop.clone()));
}

#[test]
fn what_comes_first_is_told_first() {
    let later = Next { when: NextWhen::At(at("22:00:00")), what: What::Stop };
    let sooner = Next { when: NextWhen::At(at("21:00:00")), what: What::Start };
    let asks = Next { when: NextWhen::Asks, what: What::Stop };
    let job = Next { when: NextWhen::JobEnd, what: What::Release };
    assert_eq!([job, later, asks, sooner].into_iter().min(), Some(asks));
    assert_eq!([job, later, sooner].into_iter().min(), Some(sooner));
}
