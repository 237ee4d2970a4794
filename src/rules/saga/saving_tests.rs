//! Checkpoints before an action, and what can come between: a pause, a crash, a clock that is set, another machine.

use super::*;
use crate::rules::checkpoint::{Method, Progress, Proof, Recipe, Which};
use crate::rules::plan::{SaveFirst, plan_with};
use crate::rules::streams;
use providers::model::SshEndpoint;

const PLACE: &str = "/home/me/checkpoints/vast-team/a-a/20261130T090000Z";

fn recipe() -> Recipe {
    Recipe {
        name: "results".to_owned(),
        paths: vec!["/workspace/out".to_owned()],
        method: Method::Copy { to: "/home/me/checkpoints".to_owned() },
        prepare: None,
        quiet: SignedDuration::from_secs(10),
    }
}

fn reachable() -> Instance {
    let ssh = SshEndpoint { user: None, host: "203.0.113.7".to_owned(), port: None, direct: true };
    Instance { ssh: Some(ssh), ..running() }
}

/// With something brought to safety first, confirmed and begun.
fn saving(action: Action) -> Story {
    let mut fleet = fleet(&["team"]);
    fleet.poll("team", listed(vec![reachable()]), at("08:30:00"));
    let settings = Settings::default();
    let basis = basis(&fleet, &settings, at("08:59:59"));
    let plan = plan_with(basis, action, &[identity("team", "a")], &SaveFirst::By(recipe()));
    assert_eq!(plan.confirmation, Confirmation::Save);
    let Confirmed::Yes(authority) = confirm(&plan, None) else { panic!("a yes is enough") };
    begun(plan, authority)
}

fn proof() -> Proof {
    let manifest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".to_owned();
    Proof { at: at("07:00:00"), files: 2, bytes: 300, left_out: 0, place: PLACE.to_owned(), manifest }
}

fn progress(done: u64) -> Progress {
    Progress { files: 2, bytes: 300, done, rate: None }
}

impl Story {
    /// Of the stage that was begun last.
    fn told(&mut self, told: Told) -> Vec<Order> {
        let number = self.op.saving.as_ref().expect("it saves").number();
        self.hear(Input::Saving { number, told })
    }

    fn told_after(&mut self, seconds: i64, told: Told) -> Vec<Order> {
        self.now += SignedDuration::from_secs(seconds);
        self.told(told)
    }

    fn stage(&self) -> Option<Stage> {
        match self.op.step {
            Step::Saving { stage, .. } => Some(stage),
            _ => None,
        }
    }

    /// Up to a stage, each done at once.
    fn up_to(mut self, stage: Stage) -> Self {
        while self.stage() != Some(stage) {
            assert_eq!(self.told_after(1, Told::Done(progress(0))), [Order::RecordThenSave]);
        }
        self
    }

    fn verified(action: Action) -> Self {
        let mut story = saving(action).up_to(Stage::Verify);
        assert_eq!(story.told_after(1, Told::Verified(proof())), [Order::Record, Order::Look]);
        story
    }

    /// Time passes with nothing but ticks, as of a program that runs.
    fn waits(&mut self, seconds: i64) {
        for _ in 0..seconds / 30 {
            self.after(30, Input::Tick);
        }
    }
}

#[test]
fn a_machine_is_released_once_what_was_to_be_kept_is_verified() {
    let mut story = saving(Action::Release);
    assert_eq!((story.stage(), story.op.sent), (Some(Stage::Prepare), 0));
    assert_eq!(story.told_after(20, Told::Done(progress(0))), [Order::RecordThenSave]);
    assert_eq!(story.stage(), Some(Stage::Copy));
    assert_eq!(story.told_after(5, Told::Sign(progress(100))), []);
    assert_eq!(story.told_after(5, Told::Done(progress(300))), [Order::RecordThenSave]);
    assert_eq!(story.op.saved(), None);
    assert_eq!(story.told_after(5, Told::Verified(proof())), [Order::Record, Order::Look]);
    // By our own clock, whatever the other side's says.
    assert_eq!(story.op.saved().map(|saved| saved.proof), Some(Proof { at: at("09:00:35"), ..proof() }));
    assert!(is_sent(&story.looks(reachable())));
    story.hear(Input::Acted(Ok(Accepted::Done)));
    story.denied();
    assert_eq!(story.outcome().cloned(), despite(None));
}

#[test]
fn a_checkpoint_by_itself_ends_with_its_proof_and_sends_nothing() {
    let mut story = saving(Action::Checkpoint).up_to(Stage::Verify);
    let with_open_files = Proof { left_out: 1, ..proof() };
    assert_eq!(story.told(Told::Verified(with_open_files)), [Order::Record]);
    assert_eq!(story.outcome().cloned(), despite(None));
    assert!(story.op.saved().is_some());
}

/// DATA-01, DATA-02, DATA-03: what does not end in a comparison is not saved, however it ended, and nothing follows it.
#[rstest]
#[case::still_written(Trouble::NotQuiet { files: 1, first: "ckpt/step-2000.pt".to_owned() }, true)]
#[case::changed_meanwhile(Trouble::Changed { files: 1, first: "ckpt/step-2000.pt".to_owned() }, true)]
#[case::not_the_same(Trouble::Differs { files: 1, first: "ckpt/step-2000.pt".to_owned() }, true)]
#[case::no_room(Trouble::NoRoom { need: 42_000_000_000, free: 17_000_000_000 }, false)]
#[case::disk_full(Trouble::Rsync { code: Some(11), complaint: "No space left on device (28)".to_owned() }, false)]
#[case::protocol(Trouble::Rsync { code: Some(12), complaint: String::new() }, true)]
#[case::interrupted(Trouble::Rsync { code: Some(20), complaint: String::new() }, true)]
#[case::partly(Trouble::Rsync { code: Some(23), complaint: String::new() }, true)]
#[case::vanished(Trouble::Rsync { code: Some(24), complaint: String::new() }, true)]
#[case::time_out(Trouble::Rsync { code: Some(30), complaint: String::new() }, true)]
#[case::connection(Trouble::Rsync { code: Some(255), complaint: String::new() }, true)]
#[case::killed(Trouble::Rsync { code: None, complaint: String::new() }, true)]
#[case::offline(Trouble::Link(streams::Trouble::NoAnswer), true)]
#[case::another_host_key(Trouble::Link(streams::Trouble::HostKeyChanged), false)]
#[case::no_key(Trouble::Link(streams::Trouble::KeyRefused), false)]
#[case::not_there(Trouble::Missing(vec!["/workspace/out".to_owned()]), false)]
#[case::prepare_failed(Trouble::Command { command: Which::Prepare, code: 3, complaint: String::new() }, false)]
#[case::not_kept(Trouble::NotOnVolume { path: "/root/out".to_owned() }, false)]
fn a_checkpoint_that_fails_is_tried_again_or_given_up_and_nothing_follows(
    #[case] trouble: Trouble,
    #[case] passes: bool,
    #[values(Stage::Prepare, Stage::Copy, Stage::Verify)] stage: Stage,
) {
    let mut story = saving(Action::Release).up_to(stage);
    let mut failures = 0;
    while !story.op.is_ended() {
        assert_eq!(story.told(Told::Failed(trouble.clone())), [Order::StopSaving, Order::Record]);
        failures += 1;
        if let Step::Saving { next_try: Some(at), .. } = story.op.step {
            // Whoever performed it may still be heard of: that tells of what was given up.
            assert_eq!(story.told(Told::Verified(proof())), []);
            story.now = at;
            assert_eq!(story.hear(Input::Tick), [Order::RecordThenSave]);
        }
    }
    assert_eq!(failures, if passes { 8 } else { 1 });
    assert_eq!(story.outcome().cloned(), Some(Outcome::NotSaved(trouble)));
    assert_eq!((story.op.sent, story.op.saved()), (0, None));
}

#[test]
fn what_changed_is_listed_anew_and_what_was_cut_short_goes_on() {
    let changed = Trouble::Changed { files: 1, first: "a".to_owned() };
    for (trouble, again) in [(changed, Stage::Prepare), (Trouble::Link(streams::Trouble::Ended), Stage::Verify)] {
        let mut story = saving(Action::Release).up_to(Stage::Verify);
        story.told(Told::Failed(trouble));
        story.after(5, Input::Tick);
        assert_eq!(story.stage(), Some(again));
    }
}

/// Whatever is told of another stage than the one under way, or by one that was begun before, proves nothing.
#[test]
fn only_the_last_stage_that_was_begun_proves_anything() {
    for stage in [Stage::Prepare, Stage::Copy] {
        let mut story = saving(Action::Release).up_to(stage);
        story.told(Told::Verified(proof()));
        assert!(matches!(story.outcome(), Some(Outcome::NotSaved(Trouble::Garbled(_)))), "{stage:?}");
    }
    let mut story = saving(Action::Release).up_to(Stage::Verify);
    story.told(Told::Done(progress(300)));
    assert!(matches!(story.outcome(), Some(Outcome::NotSaved(Trouble::Garbled(_)))));

    let mut story = saving(Action::Release).up_to(Stage::Verify);
    let number = story.op.saving.as_ref().unwrap().number();
    story.op.resume(story.now);
    for number in [number, number + 2] {
        assert_eq!(story.hear(Input::Saving { number, told: Told::Verified(proof()) }), [], "{number}");
    }
    assert_eq!(story.stage(), Some(Stage::Verify));
}

/// Files that were open are lost with the machine: they are waited for.
#[test]
fn a_copy_that_left_something_out_releases_nothing() {
    let mut story = saving(Action::Release).up_to(Stage::Verify);
    story.told(Told::Verified(Proof { left_out: 2, ..proof() }));
    assert!(story.op.saved().is_none() && story.stage() == Some(Stage::Prepare), "{:?}", story.op.step);
}

#[rstest]
#[case::taken_back(Input::TakeBack, Some(NotSent::TakenBack))]
#[case::not_recorded(
    Input::NotRecorded("disk full".to_owned()), Some(NotSent::CouldNotRecord("disk full".to_owned()))
)]
#[case::forestalled(
    Input::Forestalled { host: "desk".to_owned(), pid: 7 }, Some(NotSent::UnderWay { host: "desk".to_owned(), pid: 7 })
)]
#[case::gone(Input::LookedUp(Ok(Found::NoSuchId)), Some(NotSent::NoLongerThere))]
#[case::another_action(Input::Superseded, None)]
#[case::a_list_without_it(Input::Polled { asked_at: at("09:00:00"), seen: Sight::Absent }, None)]
fn what_comes_in_the_middle_ends_it_or_leaves_it_alone(
    #[case] input: Input,
    #[case] expected: Option<NotSent>,
    #[values(Stage::Prepare, Stage::Copy, Stage::Verify)] stage: Stage,
) {
    let mut story = saving(Action::Release).up_to(stage);
    assert!(story.op.can_be_taken_back());
    let orders = story.hear(input);
    assert_eq!(orders.contains(&Order::StopSaving), expected.is_some());
    assert_eq!(story.outcome().cloned(), expected.map(Outcome::NotSent));
    if story.op.is_ended() {
        // What is told afterwards comes too late.
        assert_eq!(story.told(Told::Done(progress(300))), []);
    }
}

/// A mere checkpoint is in nobody's way, and another one does not begin beside it.
#[test]
fn a_checkpoint_gives_way_to_what_is_wanted_now() {
    let mut story = saving(Action::Checkpoint).up_to(Stage::Copy);
    assert!(story.op.gives_way_to(Action::Stop) && !story.op.gives_way_to(Action::Checkpoint));
    assert_eq!(story.hear(Input::Superseded), [Order::StopSaving, Order::Record]);
    assert!(!saving(Action::Release).op.gives_way_to(Action::Stop));
}

/// The machine slept, the process was stopped, or the clock was set: the copy is finished, and the machine stays.
#[rstest]
#[case::asleep(8 * 3600)]
#[case::just_too_long(601)]
#[case::set_back(-3600)]
fn after_a_pause_the_copy_is_finished_and_the_machine_stays(
    #[case] pause: i64,
    #[values(Stage::Prepare, Stage::Copy, Stage::Verify)] stage: Stage,
    #[values(false, true)] by_another_process: bool,
) {
    let mut story = saving(Action::Release).up_to(stage);
    story.now += SignedDuration::from_secs(pause);
    if by_another_process {
        assert_eq!(story.op.resume(story.now), [Order::RecordThenSave]);
    } else {
        story.hear(Input::Tick);
        if let Step::Saving { next_try: Some(at), .. } = story.op.step {
            story.now = at;
            story.hear(Input::Tick);
        }
    }
    let mut story = story.up_to(Stage::Verify);
    assert_eq!(story.told(Told::Verified(proof())), [Order::Record]);
    assert_eq!(story.outcome().cloned(), not_sent(NotSent::TooLate));
    assert!(story.op.saved().is_some(), "the copy counts all the same");
}

#[test]
fn hours_of_copying_are_no_pause() {
    let mut story = saving(Action::Release).up_to(Stage::Copy);
    for done in 0..200 {
        story.told(Told::Sign(progress(done)));
        story.waits(60);
    }
    story.told(Told::Done(progress(300)));
    story.told(Told::Verified(proof()));
    assert!(is_sent(&story.looks(reachable())), "{:?}", story.op.step);
}

/// It is on disk every minute that it goes on, which is how the next process knows how long nobody saw to it.
#[test]
fn a_crash_of_a_few_minutes_is_gone_on_from() {
    for (pause, released) in [(8 * 60, true), (11 * 60, false)] {
        let mut story = saving(Action::Release).up_to(Stage::Copy);
        let mut on_disk = story.op.clone();
        for done in 0..40 {
            story.told(Told::Sign(progress(done)));
            if story.after(30, Input::Tick) == [Order::Record] {
                on_disk = story.op.clone();
            }
        }
        story.op = on_disk;
        story.now += SignedDuration::from_secs(pause);
        assert_eq!(story.op.resume(story.now), [Order::RecordThenSave]);
        story.told(Told::Done(progress(300)));
        story.told(Told::Verified(proof()));
        assert_eq!(is_sent(&story.looks(reachable())), released, "{pause}");
    }
}

/// The program ended between the proof and the request: whether that still counts is a matter of time.
#[rstest]
#[case(1, None)]
#[case(590, None)]
#[case(611, not_sent(NotSent::TooLate))]
#[case(-600, not_sent(NotSent::TooLate))]
fn what_was_verified_is_gone_on_from_while_the_proof_is_fresh(#[case] pause: i64, #[case] outcome: Option<Outcome>) {
    let mut story = Story::verified(Action::Release);
    assert!(story.op.outlives_its_process());
    story.now += SignedDuration::from_secs(pause);
    assert_eq!(story.op.resume(story.now), [Order::Record, Order::Look]);
    assert_eq!(is_sent(&story.looks(reachable())), outcome.is_none());
    assert_eq!(story.outcome().cloned(), outcome);
}

/// What stands at the id once it is verified decides, as before any action.
#[rstest]
#[case::as_seen(reachable(), None)]
#[case::stopped_meanwhile(stopped(), None)]
#[case::another_machine(another_machine(), not_sent(NotSent::AnotherMachine))]
#[case::gone(in_phase(Phase::Gone), not_sent(NotSent::AlreadySo))]
#[case::a_run_from_before(Instance { started_at: Some(at("08:10:00")), ..reachable() }, None)]
#[case::started_anew_since(
    Instance { started_at: Some(at("09:00:04")), ..reachable() }, not_sent(NotSent::PlanChanged)
)]
fn a_verified_machine_is_still_looked_at(#[case] row: Instance, #[case] outcome: Option<Outcome>) {
    let mut story = Story::verified(Action::Release);
    story.now += SignedDuration::from_secs(5);
    assert_eq!(is_sent(&story.looks(row)), outcome.is_none());
    assert_eq!(story.outcome().cloned(), outcome);
}

/// A provider that wants to be left alone for long outlasts the proof: the person decides anew.
#[test]
fn a_second_request_needs_a_fresh_proof_as_well() {
    for (wait, sent) in [(60, true), (700, false)] {
        let mut story = Story::verified(Action::Release);
        story.looks(reachable());
        story.hear(acted(try_again_in(60)));
        story.after(wait, Input::Tick);
        assert_eq!(is_sent(&story.looks(reachable())), sent, "{wait}");
    }
}

/// A countdown from before the clock was set back counts for nothing: nobody knows how long ago that was.
#[test]
fn a_clock_that_is_set_back_ends_what_was_counted_down() {
    let mut story = Story::of(Action::Stop, &running());
    story.now -= SignedDuration::from_hours(8);
    assert!(story.op.is_due(story.now));
    story.hear(Input::Tick);
    assert!(!is_sent(&story.looks(running())));
    assert_eq!(story.outcome().cloned(), not_sent(NotSent::TooLate));
}

#[test]
fn a_permit_that_lay_about_counts_no_more() {
    let mut story = Story::verified(Action::Release);
    let orders = story.looks(reachable());
    let [Order::RecordThenSend(permit)] = orders.as_slice() else { panic!("{orders:?}") };
    let later = |seconds| story.now + SignedDuration::from_secs(seconds);
    assert_eq!([0, 600, 601, -3600].map(|seconds| permit.counts(later(seconds))), [true, true, false, false]);
}

/// What was never saved is not released on the word that it would be, whatever a record says.
#[test]
fn a_word_to_save_first_without_a_proof_sends_nothing() {
    for with_recipe in [true, false] {
        for action in [Action::Release, Action::Stop, Action::Delete] {
            let mut story = begun(planned(action, &running()), Authority::Saved);
            story.op.target.recipe = with_recipe.then(recipe);
            let looked = if action == Action::Delete { Found::CannotAsk } else { found(&running()) };
            let sent = is_sent(&story.hear(Input::LookedUp(Ok(looked))));
            // A plan that loses nothing needs none, where none was asked for.
            assert_eq!(sent, action == Action::Stop && !with_recipe, "{action:?} {with_recipe}");
        }
    }
}

/// What a random story with a checkpoint does next.
#[derive(Clone, Debug)]
enum Turn {
    /// After so many seconds, which may be a sleep, or before: the clock was set.
    Deed(i64, Deed),
    /// Something is told of a stage, by the number of its try as far from the present one.
    Told(i64, i64, Told),
    /// The process dies, and another one takes up what is on disk.
    Crash(i64),
}

fn any_told() -> impl Strategy<Value = Told> {
    let troubles = vec![
        Trouble::Link(streams::Trouble::Ended),
        Trouble::Link(streams::Trouble::HostKeyChanged),
        Trouble::Changed { files: 1, first: "a".to_owned() },
        Trouble::NoRoom { need: 2, free: 1 },
    ];
    prop_oneof![
        2 => (0u64..300).prop_map(|done| Told::Sign(progress(done))),
        8 => Just(Told::Done(progress(300))),
        8 => (0u64..2).prop_map(|left_out| Told::Verified(Proof { left_out, ..proof() })),
        1 => prop::sample::select(troubles).prop_map(Told::Failed),
    ]
}

fn any_wait() -> impl Strategy<Value = i64> {
    prop_oneof![12 => 0i64..90, 1 => 500i64..700, 1 => Just(8 * 3600), 1 => -600i64..-10]
}

fn any_turn() -> impl Strategy<Value = Turn> {
    prop_oneof![
        8 => (any_wait(), any_deed()).prop_map(|(wait, deed)| Turn::Deed(wait, deed)),
        6 => any_wait().prop_map(|wait| Turn::Deed(wait, Deed::Hear(0, Input::LookedUp(Ok(found(&reachable())))))),
        14 => (any_wait(), prop_oneof![12 => Just(0i64), 1 => -2i64..3], any_told())
            .prop_map(|(wait, off, told)| Turn::Told(wait, off, told)),
        2 => any_wait().prop_map(Turn::Crash),
    ]
}

/// What is known from outside of a checkpoint: when it was verified last, and whether somebody always saw to it.
#[derive(Clone, Debug)]
struct Witness {
    proven_at: Option<Timestamp>,
    seen_to: bool,
    last: Timestamp,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// Safety over any story: after a word to save first, nothing goes out without a whole, fresh, unbroken checkpoint.
    #[test]
    fn no_story_sends_anything_without_the_checkpoint_that_was_asked_for(
        action in prop::sample::select(vec![Action::Release, Action::Release, Action::Stop, Action::Checkpoint]),
        authority in prop_oneof![4 => Just(Authority::Saved), 1 => any_authority()],
        turns in prop::collection::vec(any_turn(), 1..40),
    ) {
        let mut op = saving(action).op;
        op.authority = authority;
        let target = op.target.clone();
        let mut now = at("09:00:00");
        let mut witness = Witness { proven_at: None, seen_to: true, last: now };
        // Its beginning is written down before anything is done.
        let mut on_disk = (serde_json::to_string(&op).unwrap(), witness.clone());
        for turn in turns {
            let wait = match turn { Turn::Deed(wait, _) | Turn::Told(wait, ..) | Turn::Crash(wait) => wait };
            now += SignedDuration::from_secs(wait);
            if let Turn::Crash(_) = turn {
                (op, witness) = (serde_json::from_str(&on_disk.0).unwrap(), on_disk.1.clone());
            }
            let before = op.step.clone();
            let pause = now.duration_since(witness.last);
            let saving = matches!(before, Step::Saving { .. });
            if saving && !(SignedDuration::from_secs(-60)..=SignedDuration::from_mins(10)).contains(&pause) {
                witness.seen_to = false;
            }
            witness.last = now;
            let number = op.saving.as_ref().expect("a checkpoint was asked for").number();
            let (looked, orders) = match turn {
                Turn::Crash(_) | Turn::Deed(_, Deed::Resume) => (None, op.resume(now)),
                Turn::Deed(_, Deed::Hear(_, input)) => {
                    let looked = match &input { Input::LookedUp(Ok(found)) => Some(found.clone()), _ => None };
                    (looked, op.advance(input, now))
                }
                Turn::Deed(_, Deed::Poll(_, _, seen)) => (None, op.advance(Input::Polled { asked_at: now, seen }, now)),
                Turn::Told(_, off, told) => {
                    let of = number.saturating_add_signed(off);
                    let awaited = of == number && matches!(before, Step::Saving { next_try: None, .. });
                    if let (Step::Saving { stage: Stage::Verify, .. }, Told::Verified(proof)) = (&before, &told)
                        && awaited && (proof.left_out == 0 || action == Action::Checkpoint)
                    {
                        witness.proven_at = Some(now);
                    }
                    (None, op.advance(Input::Saving { number: of, told }, now))
                }
            };
            prop_assert_eq!(&op.target, &target);
            for order in &orders {
                let Order::RecordThenSend(permit) = order else { continue };
                prop_assert!(action != Action::Checkpoint, "a checkpoint is no request");
                prop_assert_eq!((permit.identity(), permit.action()), (&target.identity, action));
                let Some(looked) = &looked else { panic!("sent without a look") };
                if let Found::Instance(row) = looked {
                    prop_assert!(!another(target.created_at, row.created_at), "sent to another machine");
                }
                let Some(proven_at) = witness.proven_at else { panic!("sent without a proof") };
                let age = now.duration_since(proven_at);
                prop_assert!(witness.seen_to, "sent after a pause");
                prop_assert!(op.sent > 1 || (-60..=600).contains(&age.as_secs()), "sent on a proof of {age:#} ago");
                let covers_loss = !matches!(op.authority, Authority::Saved | Authority::LosesNothing);
                prop_assert!(covers_loss || (-60..=600).contains(&age.as_secs()), "released on a proof of {age:#} ago");
                let loses = action == Action::Release || target.effect.loses_data();
                prop_assert!(!loses || op.authority != Authority::LosesNothing, "destroyed on a countdown");
            }
            // A stage is begun by its record, and by nothing else.
            let begun = op.saving.as_ref().is_some_and(|saving| saving.number() != number);
            prop_assert!(!begun || orders == [Order::RecordThenSave], "{orders:?}");
            // Whoever gives a stage up, or ends, has it stopped.
            let given_up = saving && !op.is_saving() && op.proof().is_none();
            prop_assert!(!given_up || orders.contains(&Order::StopSaving), "{orders:?}");
            prop_assert_eq!(op.saved().is_some(), op.proof().is_some());
            prop_assert!(op.is_ended() || op.next_wake().is_some() || !op.is_saving(), "stuck in {:?}", op.step);
            let recorded = |order: &Order| {
                matches!(order, Order::Record | Order::RecordThenSend(_) | Order::RecordThenSave)
            };
            if orders.iter().any(recorded) {
                on_disk = (serde_json::to_string(&op).unwrap(), witness.clone());
            } else {
                // Only what is on disk outlives the process, and it says as much.
                let moved = std::mem::discriminant(&op.step) != std::mem::discriminant(&before);
                prop_assert!(!moved, "{before:?} -> {:?} unrecorded", op.step);
            }
        }
    }
}
