use jiff::SignedDuration;

use super::*;
use crate::app::event::WorldEvent;
use crate::app::update::guards::tests::{Story, a, recipe};
use crate::rules::alerts::Kind;

const EVERY: SignedDuration = SignedDuration::from_mins(30);

fn hourly() -> Story {
    Story::begin(vec![], vec![recipe(Some(EVERY))])
}

fn copies(story: &Story) -> Vec<&Operation> {
    story.operations.values().filter(|operation| operation.action == Action::Checkpoint).collect()
}

fn is_late(story: &Story) -> bool {
    story.state.world.alerting.alerts.calling().any(|alert| alert.topic.kind == Kind::CopyLate)
}

#[test]
fn a_machine_is_copied_again_and_again_without_a_word() {
    let mut story = hourly();
    story.until("00:29:00");
    assert_eq!(copies(&story).len(), 0);
    story.until("02:00:00");
    let made = copies(&story);
    assert!((3..=4).contains(&made.len()), "{}", made.len());
    assert!(made.iter().all(|operation| operation.by == BY && operation.saved().is_some()), "{made:?}");
    assert!(story.sent.is_empty() && story.state.view.message.is_none() && !is_late(&story));
    let last = &story.state.world.saved[&a()];
    assert_eq!(last.op, made.last().unwrap().id);
}

#[test]
fn what_cannot_be_copied_is_tried_less_and_less_often_and_is_told_when_it_is_late() {
    let mut story = hourly();
    story.disk_full = true;
    story.until("00:55:00");
    assert!(!is_late(&story) && (2..=4).contains(&copies(&story).len()), "{}", copies(&story).len());
    story.until("01:05:00");
    assert!(is_late(&story) && story.state.view.message.is_none());
    story.until("08:00:00");
    assert!(copies(&story).len() < 15, "{}", copies(&story).len());
    story.disk_full = false;
    story.until("09:30:00");
    assert!(!is_late(&story) && story.state.world.saved.contains_key(&a()));
}

#[test]
fn nothing_is_copied_while_something_else_is_done_with_the_machine_or_it_does_not_run() {
    let mut story = hourly();
    story.silent = true;
    story.until("02:00:00");
    assert_eq!(copies(&story).len(), 0);
}

#[test]
fn older_copies_make_room_and_never_the_last_one() {
    let mut story = hourly();
    story.until("01:20:00");
    let made: Vec<Saved> = copies(&story).iter().filter_map(|operation| operation.saved()).collect();
    let [first, last] = &made[..] else { panic!("{made:?}") };
    story.effects.clear();
    story.hear(WorldEvent::CopiesRecalled { identity: a(), copies: vec![last.clone(), first.clone()] });
    assert!(story.effects.contains(&Effect::Discard(vec![first.clone()])), "{:?}", story.effects);
    story.effects.clear();
    // A ledger that does not hold the last one yet.
    story.hear(WorldEvent::CopiesRecalled { identity: a(), copies: vec![first.clone()] });
    assert!(!story.effects.iter().any(|effect| matches!(effect, Effect::Discard(_))));
}

#[test]
fn a_copy_that_is_gone_is_not_shown_as_one_and_the_one_before_it_is_looked_for() {
    let mut story = hourly();
    story.until("01:20:00");
    let made: Vec<Saved> = copies(&story).iter().filter_map(|operation| operation.saved()).collect();
    let [first, last] = &made[..] else { panic!("{made:?}") };
    story.effects.clear();
    story.hear(WorldEvent::CopiesMissed { gone: vec![last.op], out_of_reach: vec![] });
    assert!(!story.state.world.saved.contains_key(&a()));
    for effect in [Effect::NoteGone(last.op), Effect::RecallCopies(a())] {
        assert!(story.effects.contains(&effect), "{effect:?} in {:?}", story.effects);
    }
    story.hear(WorldEvent::CopiesRecalled { identity: a(), copies: vec![first.clone()] });
    assert_eq!(story.state.world.saved.get(&a()), Some(first));
    assert!(story.effects.contains(&Effect::LookForCopies(vec![first.clone()])));
    story.effects.clear();
    story.hear(WorldEvent::CopiesMissed { gone: vec![], out_of_reach: vec![first.op] });
    assert!(!story.state.world.saved.contains_key(&a()));
    assert!(!story.effects.iter().any(|effect| matches!(effect, Effect::NoteGone(_))), "it may come back");
}
