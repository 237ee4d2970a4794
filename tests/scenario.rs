//! What becomes of the fleet, of actions and of accounts: stories through `app::update`, the screen at telling moments.

mod support;

use std::collections::BTreeMap;

use jiff::SignedDuration;
use providers::error::{ErrorKind, ProviderError, RequestLine};
use providers::model::{AccountName, Instance, Offer, Phase, Refusal, Remark, Repricing, Tenant};
use providers::money::{Currency, Rate};
use providers::provider::{Accepted, Found, Part, Poll, Reading};
use rentop::app::action::{Code, Key};
use rentop::app::effect::Then;
use rentop::app::event::{Intent, ViewEvent, WorldEvent};
use rentop::app::listing::Line;
use rentop::app::message::SortName;
use rentop::app::state::{Modal, OfferedAccount, Question};
use rentop::app::{Effect, Event};
use rentop::config::Language;
use rentop::rules::fleet::{Freshness, Known};
use rentop::rules::memory::{AccountMemory, Collector, Memory, Owner};
use rentop::rules::saga::{NotSent, OpId, Outcome, Step};
use support::story::*;

/// API-01: the list's address is retired. Nothing is gone, nothing is zero, and no key is blamed.
#[test]
fn a_retired_address_takes_no_machine_away() {
    let mut story = Story::over(&["me"], "10:00:00");
    let rows = || vec![running("train-a", "0.351"), running("train-b", "0.622"), running("serve", "1.204")];
    story.lists("me", rows());
    let retired = || ErrorKind::Retired { status: 410, message: Some("deprecated_endpoint".to_owned()) };
    for clock in ["10:05:00", "10:10:00"] {
        story.until(clock).fails("me", retired());
        assert_eq!(story.burn(), (usd("2.177"), usd("2.177")), "{clock}");
        for id in ["train-a", "train-b", "serve"] {
            assert_eq!(story.row("me", id).phase(), Phase::Running, "{id} at {clock}");
        }
        assert_eq!(story.state.world.fleet.freshness(story.account("me"), story.now), Freshness::Failed);
    }
    story.press("e");
    story.shows("deprecated_endpoint");
    story.code(Code::Esc);
    assert_eq!(story.now.duration_since(story.account("me").as_of.unwrap()), SignedDuration::from_millis(601_600));
    story.shows("$2.18/h");
    story.shows_on("train-a", "10 m old");
    story.shows("this address is retired");
    story.hides("key refused");
    assert!(story.deeds().is_empty(), "nothing is asked by id, nothing is sent");
    story.until("10:15:00").lists("me", rows());
    story.hides("retired");
    assert_eq!(story.state.world.fleet.freshness(story.account("me"), story.now), Freshness::Fresh);
}

/// LIFE-01: missing once is unknown and may still cost; back, it is the same machine.
#[test]
fn a_machine_that_one_list_misses_is_not_gone() {
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", vec![running("a", "3.60")]).until("10:00:30").lists("me", vec![]);
    assert_eq!(story.row("me", "a").phase(), Phase::Unknown);
    assert_eq!(story.burn(), (Rate::zero(Currency::USD), usd("3.60")));
    story.shows_on("a ", "missing for");
    story.shows("to $3.60/h");
    assert!(story.deeds().is_empty(), "one absence asks nobody");
    // No action on what nobody sees.
    story.on("a").press("s");
    story.shows("not in the provider's last list");
    story.until("10:01:00").lists("me", vec![running("a", "3.60")]);
    assert_eq!(story.row("me", "a").phase(), Phase::Running);
    assert_eq!((story.row("me", "a").first_seen, story.row("me", "a").identity.generation), (at("10:00:00"), 0));
    assert_eq!(story.burn(), (usd("3.60"), usd("3.60")));
    assert!(story.permits().is_empty());
}

/// LIFE-02: forty minutes without a network. Rows stay, nothing is done, and the pace recovers.
#[test]
fn a_network_that_is_down_ends_nothing() {
    let mut story = Story::over(&["me"], "13:59:00");
    story.lists("me", vec![running("a", "0.44"), stopped("b")]);
    let mut failures = 0;
    while story.now < at("14:40:00") {
        story.fails("me", ErrorKind::Connect { message: "connection refused".to_owned() });
        failures += 1;
        story.wait_ms(1000);
    }
    assert!((8..40).contains(&failures), "{failures} questions in forty minutes");
    assert_eq!((story.row("me", "a").phase(), story.row("me", "b").phase()), (Phase::Running, Phase::Stopped));
    assert_eq!(story.burn().0, usd("0.45"));
    story.shows_on("a ", " m old");
    assert!(story.deeds().is_empty());
    story.lists("me", vec![running("a", "0.44"), stopped("b")]);
    let due = story.account("me").pacing.due(true, false, "me").unwrap();
    assert!(due.duration_since(story.now) < SignedDuration::from_secs(20), "still backing off");
    story.hides(" m old");
}

/// LIFE-03: a release is what its provider's lists prove, and until then it is under way. Each step is on
/// disk before the next.
#[test]
fn an_accepted_release_is_not_yet_a_release() {
    let mut story = Story::over(&["me"], "15:00:00");
    story.lists("me", vec![running("a", "3.98"), running("b", "1")]);
    story.on("a").effects();
    story.press("x");
    story.shows("Release a");
    story.shows("asks for its name first");
    story.press("y\n");
    assert!(story.deeds().is_empty(), "neither yes nor enter answers");
    story.press("x").press("b\n");
    assert!(story.deeds().is_empty(), "another name does nothing");
    story.code(Code::Backspace).press("a");
    story.shows("enter: release");
    story.press("\n");
    let effects = story.effects();
    assert_eq!(commits(&effects), [("checking", false)], "written down, and not sent");
    assert_eq!(looks(&effects), 1, "the very machine is looked at first");
    story.effects = effects;
    story.found(Found::Instance(Box::new(running("a", "3.98"))));
    let effects = story.effects();
    let permit = match effects.last() {
        Some(Effect::Commit { entry, then: Some(Then::Send(permit)) }) => {
            assert!(matches!(entry.step, Step::Sending { .. }) && entry.sent == 1, "{entry:?}");
            permit.clone()
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(*permit.identity(), identity("me", "a"));
    story.shows_on("a ", "release sent");
    story.world(WorldEvent::Acted { op: permit.op(), answer: Ok(Accepted::Done) });
    assert_eq!(commits(&story.effects()), [("confirming", false)]);
    let releasing = Instance { phase: Phase::Releasing, ..running("a", "3.98") };
    for row in [running("a", "3.98"), running("a", "3.98"), releasing] {
        story.lists("me", vec![row, running("b", "1")]);
        assert_eq!(story.step(), "confirming");
        assert_eq!(rentop::app::rows::shown_phase(story.row("me", "a"), Some(story.action())), Phase::Releasing);
        assert_eq!(story.burn().0, usd("4.98"), "a promise saves nothing");
        story.shows_on("a ", "releasing");
    }
    assert!(story.permits().is_empty());
    story.lists("me", vec![running("b", "1")]);
    assert_eq!(story.step(), "confirming", "absent once, and not yet asked by id");
    assert_eq!(looks(&story.effects), 1);
    story.found(Found::NoSuchId);
    assert_eq!(story.outcome(), Some(&Outcome::Done { despite: None }));
    assert_eq!(story.row("me", "a").phase(), Phase::Gone);
    assert_eq!(story.burn(), (usd("1"), usd("1")));
    let effects = story.effects();
    assert_eq!(commits(&effects), [("ended", false)]);
    assert!(
        effects.iter().any(|effect| matches!(effect, Effect::Keep(keep) if keep.instances.iter().any(Known::is_gone)))
    );
    story.shows_on("a ", "✓ released");
    // It leaves the list after a minute and stays in the history.
    story.wait_ms(61_000);
    assert!(!story.state.world.fleet.instances.contains_key(&identity("me", "a")));
    story.press("6");
    story.shows("done and proven");
}

/// Safety 5: what could not be written down is not sent.
#[test]
fn what_is_not_on_disk_is_not_sent() {
    let mut story = Story::over(&["me"], "15:00:00");
    story.lists("me", vec![running("a", "1")]).on("a").press("s").wait_ms(5_000);
    story.found(Found::Instance(Box::new(running("a", "1"))));
    let op = story.permits()[0].op();
    story.world(WorldEvent::NotRecorded { op, error: "the disk is full".to_owned() });
    assert_eq!(story.outcome(), Some(&Outcome::NotSent(NotSent::CouldNotRecord("the disk is full".to_owned()))));
    assert_eq!(story.action().sent, 0);
    story.shows("it could not be written down: the disk is full");
    story.wait_ms(600_000);
    assert!(story.permits().is_empty());
}

/// LIFE-10: what a person set outlives absences and a restart.
#[test]
fn settings_outlive_absences_and_a_restart() {
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", vec![running("a", "1"), running("b", "1")]);
    story.on("a").press("pm");
    story.shows_on("a ", " p ");
    let set = story.deeds();
    assert!(matches!(set.as_slice(), [Effect::Set { .. }, Effect::Set { .. }]), "{set:?}");
    let mut settings = BTreeMap::new();
    for effect in set {
        if let Effect::Set { identity, setting } = effect {
            settings.insert(identity, setting);
        }
    }
    let setting = settings[&identity("me", "a")].clone();
    assert_eq!((setting.protected, setting.mine), (Some(true), Some(false)));
    story.until("10:01:00").lists("me", vec![running("b", "1")]).until("10:02:00").lists("me", vec![running("b", "1")]);
    assert_eq!(story.state.world.settings.single, settings);
    // A restart: the ledger tells what it was told.
    let instances = story.state.world.fleet.instances.values().cloned().collect();
    let account = AccountMemory { as_of: story.account("me").as_of, ..AccountMemory::new("me".into(), "vast".into()) };
    let mut again = Story::opened(&["me"], "10:05:00");
    again.world(WorldEvent::Collector(Collector::Us));
    again.remember(Memory { accounts: vec![account], instances, settings: settings.clone(), ..Memory::default() });
    again.shows_on("a ", " p ");
    again.lists("me", vec![running("a", "1"), running("b", "1")]);
    assert_eq!(again.state.world.settings.single, settings);
    // Bulk actions leave it out, and say so.
    again.on("a").press(" ").on("b").press(" ").press("x");
    again.shows("left out: 1");
    again.shows("protected: bulk actions leave it alone");
}

/// LIFE-12: a lock is shown, explained, and respected.
#[test]
fn a_locked_machine_is_explained_and_left_alone() {
    let mut story = Story::over(&["me"], "10:00:00");
    let mut locked = running("a", "1");
    locked.remarks = vec![Remark::Locked];
    locked.offers.stop = Offer::No(Refusal::Locked);
    story.lists("me", vec![locked]).on("a").press("s");
    story.shows("a: locked against it at the provider");
    story.wait_ms(60_000);
    assert!(story.permits().is_empty() && story.state.world.operations.is_empty());
    assert_eq!(story.burn().0, usd("1"));
}

/// DATA-04: out of what does not answer nothing can be saved. The question says so, names it, and a habit sends nothing.
#[test]
fn a_machine_that_does_not_answer_is_released_by_its_name_alone() {
    let mut story = Story::over(&["me"], "10:00:00");
    let silent = instance("3001", Phase::Unreachable, "0");
    story.lists("me", vec![silent.clone()]).on("3001").press("R").wait_ms(1000);
    story.press("\n").wait_ms(60_000);
    assert!(story.permits().is_empty() && story.state.world.operations.is_empty());
    story.code(Code::Esc).press("x");
    story.shows("Release 3001");
    story.wait_ms(1000).press("\n").wait_ms(60_000);
    assert!(story.permits().is_empty() && story.state.world.operations.is_empty());
    story.shows("never");
    story.press("x").press("3002\n");
    assert!(story.state.world.operations.is_empty());
}

/// TUI-06: rows change their places under the cursor and under a plan. The action is about what was painted.
#[test]
fn an_action_is_about_the_row_that_was_painted() {
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", vec![running("A", "2"), running("B", "1")]);
    story.press("o");
    assert_eq!(story.state.view.fleet.sort, SortName::Cost);
    story.on("B");
    story.pass(story.now + SignedDuration::from_secs(40)).lists("me", vec![running("A", "2"), running("B", "3")]);
    let first = |story: &Story| match &story.state.view.fleet.lines[0] {
        Line::Resource(identity) => identity.id.to_string(),
        line => panic!("{line:?}"),
    };
    assert_eq!((first(&story).as_str(), story.selected()), ("B", Some("B")), "sorted anew, and the cursor with it");
    story.event(Event::View(ViewEvent::Key(Key::char('x'))));
    story.shows("Release B");
    story.lists("me", vec![running("A", "5"), running("B", "3")]);
    story.shows("Release B");
    story.press("x").press("B\n");
    story.found(Found::Instance(Box::new(running("B", "3"))));
    let permits = story.permits();
    assert_eq!(permits.iter().map(|permit| permit.identity().id.as_str()).collect::<Vec<_>>(), ["B"]);
}

/// TUI-06 once more: where the cursor comes to another row by itself, a key that was on its way ends nothing.
#[test]
fn a_key_on_its_way_does_not_meet_the_row_that_moved_under_the_cursor() {
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", vec![running("cheap", "1")]);
    assert_eq!(story.selected(), Some("cheap"));
    story.lists("me", vec![running("cheap", "1"), running("dear", "9")]);
    assert_eq!(story.selected(), Some("dear"), "untouched, the cursor stays on the first row");
    for key in ["s", "x"] {
        story.wait_ms(100);
        story.event(Event::View(ViewEvent::Key(Key::char(key.chars().next().unwrap()))));
    }
    assert!(story.state.world.operations.is_empty() && story.state.view.modals.is_empty());
    // Sent to the first row by a key, the cursor is where it is meant to be.
    story.event(Event::View(ViewEvent::Key(Key::plain(Code::Home))));
    story.event(Event::View(ViewEvent::Key(Key::char('x'))));
    story.shows("Release dear");
    story.code(Code::Esc);

    // Else it counts once people could see it.
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", vec![running("cheap", "1")]);
    story.lists("me", vec![running("cheap", "1"), running("dear", "9")]);
    story.wait_ms(600).press("s");
    assert_eq!(story.action().target.identity, identity("me", "dear"));
}

/// TUI-07: what hands press by habit, on the list and in the filter, sends nothing.
#[test]
fn habits_send_nothing() {
    let keys = [
        Key::plain(Code::Backspace),
        Key::plain(Code::Delete),
        Key::ctrl('d'),
        Key::ctrl('k'),
        Key::ctrl('h'),
        Key::ctrl('w'),
        Key::plain(Code::Enter),
        Key::plain(Code::Enter),
        Key::plain(Code::Enter),
        Key::char(' '),
        Key::char('y'),
        Key::char('Y'),
    ];
    for in_filter in [false, true] {
        let mut story = Story::over(&["me"], "10:00:00");
        story.lists("me", vec![running("a", "1"), running("b", "1")]);
        story.on("a").effects();
        if in_filter {
            story.press("/xs");
            assert_eq!(story.state.view.fleet.filter_text, "xs");
        }
        for key in keys {
            story.key(key);
        }
        story.wait_ms(30_000);
        assert!(story.deeds().is_empty(), "in the filter: {in_filter}");
        assert!(story.state.world.operations.is_empty());
    }
}

/// TUI-04: a paste is text in the filter and nothing anywhere else.
#[test]
fn a_paste_is_never_keys() {
    const PASTED: &str = "release all x D y yes\nq\n";
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", vec![running("a", "1")]).on("a").effects();
    story.paste(PASTED);
    assert!(!story.state.leaving && story.state.view.modals.is_empty());
    story.shows("pasted text is not taken as keys");
    story.press("/").paste(PASTED);
    assert_eq!(story.state.view.fleet.filter_text, "release all x D y yes q");
    assert!(matches!(story.state.view.modals.as_slice(), [Modal::Filter { .. }]), "a line break is no Enter");
    story.paste("\u{1b}[31m\u{202e}red\u{7}");
    assert_eq!(story.state.view.fleet.filter_text, "release all x D y yes qred");
    story.code(Code::Esc).press("x").press("x").paste("a\n");
    let field = |story: &Story| match story.state.view.modals.last() {
        Some(Modal::Plan(Question { field: Some(input), .. })) => input.value().to_owned(),
        modal => panic!("{modal:?}"),
    };
    assert_eq!(field(&story), "");
    story.press("\n");
    assert!(story.deeds().is_empty() && story.state.world.operations.is_empty());
}

/// TUI-05: a key that is held acts once, whether the terminal says so or only the time between does.
#[test]
fn a_held_key_acts_once_and_a_moving_one_moves() {
    let mut story = Story::over(&["me"], "10:00:00");
    let rows = (0..10).map(|n| running(&format!("m{n}"), "1")).collect();
    story.lists("me", rows).code(Code::Home).effects();
    for (key, repeats) in [(Key::char('x'), true), (Key::char('x'), false)] {
        story.key(key);
        for _ in 0..20 {
            story.wait_ms(if repeats { 400 } else { 30 });
            story.event(Event::View(ViewEvent::Key(Key { repeat: repeats, ..key })));
        }
        assert!(matches!(story.state.view.modals.as_slice(), [Modal::Plan(Question { field: None, .. })]));
        story.code(Code::Esc);
    }
    story.press("s");
    for _ in 0..20 {
        story.wait_ms(30);
        story.event(Event::View(ViewEvent::Key(Key::char('s'))));
    }
    assert_eq!(story.state.world.operations.len(), 1);
    story.press("u").code(Code::Home);
    let place = |story: &Story| story.state.view.list().cursor_at().unwrap();
    let down = Key::plain(Code::Down);
    story.key(down);
    assert_eq!(place(&story), 1);
    story.key(down);
    for _ in 0..3 {
        story.event(Event::View(ViewEvent::Key(Key { repeat: true, ..down })));
    }
    assert_eq!(place(&story), 5);
}

/// Safety 4: an accepted stop that no poll proves is still billing, needs somebody, and can be asked for anew.
#[test]
fn a_stop_that_does_not_take_effect_is_still_billing() {
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", vec![running("a", "2"), running("b", "1")]);
    story.on("a").press("s");
    assert_eq!(commits(&story.effects()), [("countdown", false)]);
    story.shows_on("a ", "stop in 5 s, u undo");
    story.wait_ms(3_000);
    story.shows_on("a ", "stop in 2 s, u undo");
    assert!(story.deeds().is_empty(), "nothing is sent in a countdown");
    story.wait_ms(2_000);
    let effects = story.effects();
    assert_eq!((commits(&effects), looks(&effects)), (vec![("checking", false)], 1));
    story.effects = effects;
    story.found(Found::Instance(Box::new(running("a", "2"))));
    let permits = story.permits();
    assert_eq!(permits.len(), 1);
    story.world(WorldEvent::Acted { op: permits[0].op(), answer: Ok(Accepted::Done) });
    let accepted = story.now;
    assert_eq!(commits(&story.effects()), [("confirming", false)]);
    while story.now < accepted + SignedDuration::from_secs(179) {
        story.lists("me", vec![running("a", "2"), running("b", "1")]).wait_ms(1000);
        assert!(["confirming", "overdue"].contains(&story.step()));
    }
    story.pass(accepted + SignedDuration::from_secs(181));
    let effects = story.effects();
    assert_eq!(commits(&effects).last(), Some(&("overdue", false)), "{effects:?}");
    story.shows_on("a ", "still billing!");
    story.shows("▲ 1");
    assert_eq!(story.burn().0, usd("3"));
    // It is never sent again by itself.
    while story.now < accepted + SignedDuration::from_mins(10) {
        story.lists("me", vec![running("a", "2"), running("b", "1")]).wait_ms(5_000);
    }
    assert!(story.permits().is_empty());
    // A person may: the old one gives way.
    story.on("a").press("s");
    assert_eq!((story.step(), story.state.world.operations.len()), ("countdown", 2));
    let old = story.state.world.operations.values().next().unwrap();
    assert!(matches!(old.step, Step::Ended { outcome: Outcome::Unproven, .. }), "{old:?}");
    story.wait_ms(5_000);
    story.found(Found::Instance(Box::new(running("a", "2"))));
    let op = story.permits()[0].op();
    story.world(WorldEvent::Acted { op, answer: Ok(Accepted::Done) });
    story.lists("me", vec![stopped("a"), running("b", "1")]);
    while story.outcome().is_none() {
        story.lists("me", vec![stopped("a"), running("b", "1")]);
    }
    assert_eq!(story.outcome(), Some(&Outcome::Done { despite: None }));
    story.shows_on("a ", "✓ stopped");
}

/// API-10: no answer, and the poll shows that it was done: told with the error, and never sent twice.
#[test]
fn an_unanswered_stop_is_read_back() {
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", vec![running("a", "2")]).on("a").press("s").wait_ms(5_000);
    story.found(Found::Instance(Box::new(running("a", "2"))));
    let op = story.permits()[0].op();
    let error = ProviderError {
        provider: "vast".into(),
        account: "me".into(),
        request: RequestLine("PUT /api/v0/instances/a".to_owned()),
        kind: ErrorKind::Timeout { after: std::time::Duration::from_secs(30) },
    };
    story.world(WorldEvent::Acted { op, answer: Err(error) });
    story.shows_on("a ", "outcome unknown");
    story.wait_ms(4_000);
    assert!(looks(&story.effects) > 0, "in doubt it is asked by id");
    story.found(Found::Instance(Box::new(stopped("a"))));
    assert!(matches!(story.outcome(), Some(Outcome::Done { despite: Some(_) })), "{:?}", story.action());
    story.shows("although");
    assert!(story.permits().is_empty());
}

/// A key that opens another account: nothing is gone, nothing is done, and the screen says why.
#[test]
fn an_account_whose_key_opens_another_one_keeps_its_rows() {
    let mut story = Story::over(&["me"], "10:00:00");
    let of = |tenant: &str, rows| Poll {
        tenant: Reading::Known(Tenant { id: tenant.to_owned() }),
        storage: Part::complete(vec![]),
        ..listed(rows)
    };
    story.answer("me", of("1", vec![running("a", "2")]));
    for _ in 0..3 {
        story.wait_ms(60_000);
        story.answer("me", of("2", vec![running("z", "9")]));
    }
    assert_eq!(story.row("me", "a").phase(), Phase::Running);
    assert!(!story.state.world.fleet.instances.contains_key(&identity("me", "z")));
    assert_eq!(story.burn().0, usd("2"));
    story.shows("the key opens another account than before");
    assert!(story.deeds().is_empty());
    for key in ["s", "x"] {
        story.on("a").press(key);
        story.shows("its account is in trouble");
    }
    assert!(story.state.world.operations.is_empty());
    story.wait_ms(300_000);
    story.answer("me", of("1", vec![running("a", "2")]));
    story.hides("the key opens another account");
}

/// What somebody was told once is no news at the next start.
#[test]
fn an_account_that_is_known_to_be_unwatched_is_not_told_of_again() {
    let known = Known::new(identity("old", "a"), running("a", "2"), at("09:59:50"));
    for (unwatched_noted, told) in [(false, 1), (true, 0)] {
        let account = AccountMemory {
            as_of: Some(at("09:59:50")),
            unwatched_noted,
            ..AccountMemory::new("old".into(), "vast".into())
        };
        let mut story = Story::opened(&["me"], "10:00:00");
        story.remember(Memory { accounts: vec![account], instances: vec![known.clone()], ..Memory::default() });
        assert_eq!(story.state.world.spending.unwatched.len(), told);
    }
}

/// STATE-02: who only looks on asks nobody, writes nothing and sends nothing, whatever is pressed.
#[test]
fn a_second_screen_performs_no_world_effects_until_it_takes_over() {
    let mut story = Story::opened(&["me"], "10:00:00");
    story.world(WorldEvent::Collector(other()));
    let known = Known::new(identity("me", "a"), running("a", "2"), at("09:59:50"));
    let account = AccountMemory { as_of: Some(at("09:59:50")), ..AccountMemory::new("me".into(), "vast".into()) };
    let memory = Memory { accounts: vec![account], instances: vec![known], ..Memory::default() };
    story.remember(memory.clone());
    story.shows("looking on: desk (4711) collects");
    story.on("a").press("s").press("p").press("m").press("u").code(Code::F(5)).press("x").press("x");
    story.shows("nothing was done: desk (4711) collects and acts");
    story.press("a\n");
    story.wait_ms(20_000);
    let effects = story.effects();
    let looks_on = |effect: &Effect| {
        let asks = matches!(effect, Effect::Claim | Effect::Recall | Effect::SumUp { .. } | Effect::RecallUsage { .. });
        asks || is_own(effect)
    };
    assert!(effects.iter().all(looks_on) && effects.len() >= 6, "{effects:?}");
    assert!(story.state.world.operations.is_empty() && story.state.world.settings.single.is_empty());
    // It sees what the other one writes down.
    let renamed = Known::new(identity("me", "b"), running("b", "1"), at("10:00:20"));
    story.remember(Memory { instances: vec![renamed], ..memory.clone() });
    story.shows_on("b ", "1.00");

    // The other one was killed while its release was on its way: read back, and not sent again.
    story.effects();
    story.world(WorldEvent::Collector(Collector::Us));
    assert_eq!(story.effects(), [Effect::Recall], "the ledger first");
    let mut dying = Story::over(&["me"], "10:00:00");
    dying.lists("me", vec![running("a", "2")]).on("a").press("x").press("x").press("a\n");
    dying.found(Found::Instance(Box::new(running("a", "2"))));
    let entry = dying.action().clone();
    assert_eq!(entry.step.word(), "sending");
    let owner = Owner { host: "desk".to_owned(), pid: 4711 };
    story.remember(Memory { unfinished: vec![(entry, owner)], ..memory });
    story.hides("looking on");
    let effects = story.effects();
    assert_eq!((commits(&effects), looks(&effects)), (vec![("confirming", false)], 1));
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Poll { .. })));
    story.shows_on("a ", "outcome unknown");
    story.effects = effects;
    story.found(Found::NoSuchId);
    assert!(matches!(story.outcome(), Some(Outcome::Done { despite: Some(_) })));
    assert!(story.permits().is_empty());
}

/// A process that slept while another one took its place sends nothing of what it had not sent.
#[test]
fn a_lost_place_ends_what_was_not_sent() {
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", vec![running("a", "2")]).on("a").press("s").effects();
    story.now += SignedDuration::from_mins(5);
    story.world(WorldEvent::Tick);
    story.world(WorldEvent::Collector(other()));
    story.effects();
    story.world(WorldEvent::LookedUp {
        op: Some(story.action().id),
        identity: identity("me", "a"),
        found: Ok(Found::Instance(Box::new(running("a", "2")))),
    });
    story.wait_ms(60_000);
    assert!(story.permits().is_empty());
    assert_eq!(story.outcome(), Some(&Outcome::NotSent(NotSent::ProgramEnded)));
}

/// Read-only, the whole program or one account: no key and no intent begins anything.
#[test]
fn read_only_begins_nothing_on_any_path() {
    for whole in [true, false] {
        let mut story = Story::over(&["me"], "10:00:00");
        story.lists("me", vec![running("a", "2"), stopped("b")]);
        // A plan from before, which does not know of it.
        story.on("a").press("x");
        let Some(Modal::Plan(Question { plan, .. })) = story.state.view.modals.pop() else { panic!("no plan") };
        if whole {
            story.state.world.read_only = true;
        } else {
            story.state.world.fleet.accounts[0].read_only = true;
        }
        story.effects();
        for (id, key) in [("a", "s"), ("a", "x"), ("b", "s"), ("b", "x")] {
            story.on(id).press(key);
            story.shows("read");
            assert!(story.state.view.modals.is_empty());
        }
        let authority = rentop::rules::saga::Authority::LoseData;
        story.world(WorldEvent::Intent(Intent::Begin { plan, authority }));
        story.wait_ms(60_000);
        assert!(story.deeds().is_empty() && story.state.world.operations.is_empty());
    }
}

/// A plan that loses data begins nothing by a mere countdown, whoever hands it in.
#[test]
fn a_plan_that_loses_data_is_not_begun_by_a_countdown() {
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", vec![running("a", "2")]).on("a").press("x");
    let Some(Modal::Plan(Question { plan, .. })) = story.state.view.modals.pop() else { panic!("no plan") };
    story.effects();
    story.world(WorldEvent::Intent(Intent::Begin { plan, authority: rentop::rules::saga::Authority::LosesNothing }));
    story.wait_ms(60_000);
    assert!(story.deeds().is_empty() && story.state.world.operations.is_empty());
}

/// Without a config, keys of the environment are offered; a digit takes one.
#[test]
fn keys_of_the_environment_become_accounts_by_a_digit() {
    let mut story = Story::over(&[], "10:00:00");
    let offered = |number, provider: &str, variable: &str| OfferedAccount {
        number,
        provider: provider.to_owned(),
        variable: variable.to_owned(),
    };
    story.state.view.offered = vec![offered(1, "RunPod", "RUNPOD_API_KEY"), offered(2, "Vast.ai", "VAST_API_KEY")];
    story.effects();
    story.shows("VAST_API_KEY");
    story.press("39x0");
    assert!(story.deeds().is_empty(), "only what is offered");
    story.press("2");
    assert_eq!(story.deeds(), [Effect::AddOffered("VAST_API_KEY".to_owned())]);
    story.world(WorldEvent::Added { account: "vast".into(), provider: "vast".into(), read_only: false });
    let polled = |effect: &Effect| matches!(effect, Effect::Poll { account, .. } if account.as_str() == "vast");
    assert!(story.effects().iter().any(polled));
    story.lists("vast", vec![running("a", "2")]);
    // The other one can still be added.
    story.shows("RUNPOD_API_KEY");
    story.hides("VAST_API_KEY");
    story.press("\n");
    story.shows_on("a ", "2.00");
    // The digits are the views' again.
    story.press("2");
    assert_eq!(story.deeds(), []);
}

/// Quitting in a countdown asks; left, nothing is sent, and that is written down.
#[test]
fn quitting_in_a_countdown_writes_down_that_nothing_was_sent() {
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", vec![running("a", "2"), running("b", "1")]).on("a").press("s").effects();
    story.press("q");
    assert!(!story.state.leaving);
    story.shows("1 action not sent yet will not be sent.");
    story.shows("$3.00/h in all");
    story.shows("Nobody watches unless another rentop runs.");
    story.press("j");
    assert!(story.state.view.modals.is_empty() && !story.state.leaving, "any other key stays");
    story.press("q").press("q");
    assert!(story.state.leaving);
    let effects = story.deeds();
    let entry = match effects.as_slice() {
        [Effect::Commit { entry, then: None }] => entry,
        other => panic!("{other:?}"),
    };
    assert!(matches!(&entry.step, Step::Ended { outcome: Outcome::NotSent(NotSent::ProgramEnded), .. }), "{entry:?}");
    assert_eq!(entry.sent, 0);
}

/// What was sent is left to the next start, which reads it back.
#[test]
fn leaving_what_was_sent_forgets_nothing() {
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", vec![running("a", "2")]).on("a").press("s").wait_ms(5_000);
    story.found(Found::Instance(Box::new(running("a", "2"))));
    let op = story.permits()[0].op();
    story.world(WorldEvent::Acted { op, answer: Ok(Accepted::Done) });
    story.effects();
    story.press("q");
    story.shows("1 action is already sent: the next start reads back what became of");
    story.press("q");
    assert!(story.state.leaving && story.deeds().is_empty(), "its last record stands");
    let entry = story.action().clone();
    let mut next = Story::opened(&["me"], "11:00:00");
    next.world(WorldEvent::Collector(Collector::Us));
    let owner = Owner { host: "desk".to_owned(), pid: 1 };
    next.remember(Memory { unfinished: vec![(entry, owner)], ..Memory::default() });
    assert_eq!(looks(&next.effects), 1);
    next.found(Found::Instance(Box::new(stopped("a"))));
    assert_eq!(next.outcome(), Some(&Outcome::Done { despite: None }));
    assert!(next.permits().is_empty());
}

/// API-15: however often a refresh is asked for, one question at a time, a second apart.
#[test]
fn refreshes_are_merged() {
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", vec![running("a", "2")]).wait_ms(5_000);
    story.effects();
    let (began, mut asked, mut answer_at) = (story.now, Vec::new(), None);
    let mut pressed = 0;
    while story.now < began + SignedDuration::from_secs(3) {
        if pressed < 10 {
            // Ten presses within a second, with another key between so that none is a held one.
            story.event(Event::View(ViewEvent::Key(Key::plain(Code::F(5)))));
            story.event(Event::View(ViewEvent::Key(Key::plain(Code::Home))));
            pressed += 1;
        }
        for effect in story.effects() {
            if let Effect::Poll { asked_at, .. } = effect {
                assert!(answer_at.is_none(), "two questions at once");
                asked.push(asked_at);
                answer_at = Some(asked_at + SignedDuration::from_millis(300));
            }
        }
        if answer_at.is_some_and(|due| due <= story.now) {
            answer_at = None;
            story.lists("me", vec![running("a", "2")]);
            continue;
        }
        story.shows("asking the providers again");
        story.wait_ms(100);
    }
    assert!((2..=4).contains(&asked.len()), "{asked:?}");
    let gap = SignedDuration::from_secs(1);
    assert!(asked.windows(2).all(|pair| pair[1].duration_since(pair[0]) >= gap), "{asked:?}");
}

/// TUI-02: what was cut off on the way to a size and back is painted again, and the cursor stays on its row.
#[test]
fn every_change_of_size_paints_everything() {
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", (0..40).map(|n| running(&format!("m{n:02}"), "1")).collect());
    story.on("m25").effects();
    for (width, height) in [(1, 1), (80, 24), (80, 24), (7, 2), (u16::MAX, u16::MAX), (60, 16), (80, 24)] {
        story.event(Event::View(ViewEvent::Resize { width, height }));
        assert_eq!(story.effects(), [Effect::Repaint], "{width}×{height}");
        assert_eq!(story.selected(), Some("m25"));
    }
    let view = &story.state.view;
    let seen = view.list().top..view.list().top + usize::from(view.body_height());
    assert!(seen.contains(&view.list().cursor_at().unwrap()), "{seen:?}");
    story.event(Event::View(ViewEvent::Resumed));
    assert_eq!(story.effects(), [Effect::Repaint]);
}

/// LIFE-04: where a name means two rows, the end of the id is asked for, and one request goes to one id.
#[test]
fn a_name_that_is_not_unique_is_not_enough() {
    let mut story = Story::over(&["me", "lab"], "10:00:00");
    let named = |id: &str, name: &str| Instance { name: Some(name.to_owned()), ..running(id, "1") };
    story.lists("me", vec![named("1000a1", "train"), named("1000a2", "train-2")]);
    story.lists("lab", vec![named("2000b1", "train"), Instance { name: None, ..running("2000b2", "1") }]);
    story.on("1000a1").press("x").press("x");
    story.shows("type 1000a1 and press enter");
    story.press("train\n");
    assert!(story.state.world.operations.is_empty(), "the name alone");
    story.key(Key::ctrl('u'));
    story.press("1000a1\n");
    story.found(Found::Instance(Box::new(named("1000a1", "train"))));
    let permits = story.permits();
    assert_eq!(permits.iter().map(|permit| permit.identity().clone()).collect::<Vec<_>>(), [identity("me", "1000a1")]);
    story.on("2000b2").press("x");
    story.shows("Release 2000b2");
}

/// Three machines are stopped by three keys, and taken back one by one, the latest first.
#[test]
fn three_machines_are_stopped_in_three_keys() {
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", vec![running("a", "3"), running("b", "2"), running("c", "1")]);
    story.code(Code::Home).effects();
    story.press("sjsjs");
    assert_eq!(story.state.world.under_way().count(), 3);
    // Where its countdown is seen it can be taken back.
    story.press("6");
    story.shows("s, u undo");
    story.press("u");
    story.shows("c: taken back, nothing was sent");
    story.press("1").code(Code::Esc);
    story.shows("b: taken back, nothing was sent");
    story.wait_ms(5_000);
    story.found(Found::Instance(Box::new(running("a", "3"))));
    let permits = story.permits();
    assert_eq!(permits.iter().map(|permit| permit.identity().id.as_str()).collect::<Vec<_>>(), ["a"]);
    story.press("u");
    story.shows("nothing can be taken back");
}

/// Under the cursor `u` is about that row, as it says; else about what was begun last, all of it.
#[test]
fn what_is_taken_back_is_what_the_row_says_or_all_that_was_begun_last() {
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", vec![running("a", "4"), running("b", "3"), running("c", "2"), running("d", "1")]);
    story.code(Code::Home).press("sj").press("  ").press("s").press("y");
    assert_eq!(story.state.world.under_way().count(), 3);
    story.on("a").press("u");
    story.shows("a: taken back, nothing was sent");
    story.on("d").press("u");
    story.shows("2 taken back, nothing was sent");
    assert_eq!(story.state.world.under_way().count(), 0);
}

#[test]
fn a_key_of_another_view_says_where_it_works() {
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", vec![running("a", "4")]);
    story.press("3s");
    story.shows("this key works in Fleet");
    assert!(story.deeds().is_empty());
}

/// Marks of both kinds are refused, and marks of one kind ask once for all of them.
#[test]
fn marked_rows_are_of_one_kind() {
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", vec![running("a", "3"), running("b", "2"), stopped("c")]);
    story.on("a").press(" ").on("c").press(" ").effects();
    story.press("s");
    story.shows("mark one kind");
    story.on("c").press(" ").on("b").press(" ").press("s");
    story.shows("Stop 2 instances");
    assert!(story.deeds().is_empty());
    story.press("y");
    assert_eq!(story.state.world.under_way().filter(|operation| operation.in_countdown()).count(), 2);
    assert_eq!(commits(&story.effects()), [("countdown", false); 2]);
    let ids: Vec<OpId> = story.state.world.operations.keys().copied().collect();
    assert_ne!(ids[0], ids[1]);
}

/// Recorded world events replay to the same world: none of them holds what only one screen knows.
#[test]
fn recorded_events_lead_to_the_same_world() {
    use rentop::app::event::Record;
    let name: AccountName = "me".into();
    let mut told = Story::over(&["me"], "10:00:00");
    let asked_at = told.asked("me");
    let mut events = vec![WorldEvent::Polled {
        account: name.clone(),
        asked_at,
        poll: Box::new(listed(vec![running("a", "2"), stopped("b")])),
    }];
    told.world(events[0].clone());
    told.on("a").press("x");
    let Some(Modal::Plan(Question { plan, .. })) = told.state.view.modals.pop() else { panic!("no plan") };
    let authority = rentop::rules::saga::Authority::Typed("a".to_owned());
    events.push(WorldEvent::Intent(Intent::Begin { plan, authority }));
    told.world(events[1].clone());
    let lines: Vec<String> =
        events.into_iter().map(|event| serde_json::to_string(&Record::new(told.now, event)).unwrap()).collect();
    let mut replayed = Story::over(&["me"], "10:00:00");
    for line in lines {
        let record: Record = serde_json::from_str(&line).unwrap();
        replayed.now = record.at;
        replayed.world(record.event);
    }
    assert_eq!(replayed.state.world.operations, told.state.world.operations);
    assert_eq!(replayed.burn(), told.burn());
    assert_eq!(replayed.row("me", "b").row, told.row("me", "b").row);
}

/// COST-10: a rise that a host asks for is shown with both prices, and the old one holds until it is accepted.
#[test]
fn a_price_rise_is_shown_and_costs_nothing_before_it_is_accepted() {
    let mut story = Story::over(&["me"], "10:00:00");
    let ends_at = Some(at("20:00:00"));
    let repricing = Some(Repricing { rate: usd("0.36"), asked: usd("0.72"), ends_at });
    story.lists("me", vec![running("a", "0.36")]);
    story.wait_ms(15_000).lists("me", vec![Instance { repricing, ..running("a", "0.36") }]);
    assert_eq!(story.state.world.fleet.burn().burn, [usd("0.36")].into_iter().collect());
    story.shows("asks for $0.72/h in place of $0.36/h");
    story.language = Language::Chinese;
    story.shows("要把 $0.36/时 涨到 $0.72/时");
    story.wait_ms(15_000).lists("me", vec![running("a", "0.72")]);
    story.hides("涨到");
    assert_eq!(story.state.world.fleet.burn().burn, [usd("0.72")].into_iter().collect());
}
