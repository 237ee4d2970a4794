//! Hands on the screen: keys that are held, the mouse, pasted texts, filters, the palette, other keys for the same
//! actions. None of it begins what nobody meant.

mod support;

use jiff::SignedDuration;
use proptest::prelude::*;
use providers::model::{Instance, SshEndpoint};
use rentop::app::Effect;
use rentop::app::action::{Action, Code, Key, MouseKind};
use rentop::app::event::WorldEvent;
use rentop::app::keymap::Bindings;
use rentop::app::listing::Line;
use rentop::app::message::{Msg, QuickName, SortName};
use rentop::app::palette::Entry;
use rentop::app::preferences::Preferences;
use rentop::app::state::{Listener, Modal, OfferedAccount, Tab};
use rentop::config::Language;
use rentop::ui::text;
use rstest::rstest;
use support::story::*;

fn three(clock: &str) -> Story {
    let mut story = Story::over(&["me"], clock);
    story.lists("me", vec![running("a", "3"), running("b", "2"), running("c", "1")]);
    story.code(Code::Home).effects();
    story
}

fn places(story: &Story) -> Vec<&str> {
    let places = story.state.view.list().lines.iter().filter_map(|line| match line {
        Line::Resource(identity) => Some(identity.id.as_str()),
        _ => None,
    });
    places.collect()
}

fn saved(effects: &[Effect]) -> usize {
    effects.iter().filter(|effect| matches!(effect, Effect::SavePreferences(_))).count()
}

/// Every key of the table, held for seconds in every view: each comes to its action once. A terminal that tells
/// repeats, and keyboards that begin to repeat early or late.
#[rstest]
#[case::told(600, true)]
#[case::early(250, false)]
#[case::usual(500, false)]
#[case::late(690, false)]
fn nothing_weighty_acts_twice_while_a_key_is_held(#[case] first_ms: i64, #[case] told: bool) {
    for (tab, key) in ['1', '3', '6'].into_iter().flat_map(|tab| {
        let keys: Vec<Key> = Bindings::default().all().iter().flat_map(|one| one.keys.iter().copied()).collect();
        keys.into_iter().map(move |key| (tab, key))
    }) {
        let mut story = three("10:00:00");
        story.lists_with("me", vec![running("a", "3"), running("b", "2"), stopped("c")], vec![volume("v")]);
        story.press(&tab.to_string()).wait_ms(2_000).effects();
        story.hold(key, first_ms, 40, told);
        assert!(story.busy().len() <= 1, "{key:?} in {tab}: {:?}", story.busy());
        let sets = story.effects().iter().filter(|effect| matches!(effect, Effect::Set { .. })).count();
        assert!(sets <= 1, "{key:?} in {tab}: {sets} settings");
        // Where only time tells, the second of the two presses that open a field may be a repeat; it begins nothing.
        assert!(!told || story.field().is_none(), "{key:?} in {tab} opened the field of its question");
    }
}

/// In a plan: held, `y` begins once and then means nothing in the view; held, `x` opens one field and fills nothing.
#[rstest]
#[case::told(600, true)]
#[case::usual(500, false)]
fn a_held_answer_answers_once(#[case] first_ms: i64, #[case] told: bool) {
    let mut story = three("10:00:00");
    story.press("  s").wait_ms(1_000);
    story.hold(Key::char('y'), first_ms, 40, told);
    assert_eq!(story.busy().len(), 2);
    assert!(!story.effects().iter().any(|effect| matches!(effect, Effect::Copy(_) | Effect::Set { .. })));
    assert_ne!(story.said(), Some(&Msg::NoSsh), "the `y` of the view was heard");

    let mut story = three("10:00:00");
    story.press("x").wait_ms(1_000);
    story.hold(Key::char('x'), first_ms, 40, told);
    assert!(story.field().is_some() && story.busy().is_empty());
    if told {
        assert_eq!(story.field(), Some(""));
    }
    story.key(Key::ctrl('u'));
    story.press("a").wait_ms(1_000);
    // Enter begins it and does not go on into the view.
    story.hold(Key::plain(Code::Enter), first_ms, 40, told);
    assert_eq!((story.busy().len(), story.state.view.modals.len()), (1, 0));
}

/// A key that opens a window is not heard by the window while it is held, and one that closes it not by the view.
#[rstest]
#[case::told(600, true)]
#[case::usual(500, false)]
fn a_held_key_stays_with_who_heard_it_first(#[case] first_ms: i64, #[case] told: bool) {
    for (key, listener) in
        [('?', Listener::Text), ('O', Listener::Columns), (':', Listener::Palette), ('/', Listener::Filter)]
    {
        let mut story = three("10:00:00");
        story.wait_ms(1_000).hold(Key::char(key), first_ms, 40, told);
        assert_eq!(story.state.view.listener(), listener, "{key}");
        match story.state.view.modals.last() {
            Some(Modal::Palette(palette)) => assert_eq!(palette.input.value(), ""),
            Some(Modal::Filter { input, .. }) => assert_eq!(input.value(), ""),
            _ => {}
        }
        // Pressed again it is meant.
        story.wait_ms(1_000).quick(Key::char(key));
        match story.state.view.modals.last() {
            Some(Modal::Palette(palette)) => assert_eq!(palette.input.value(), ":"),
            Some(Modal::Filter { input, .. }) => assert_eq!(input.value(), "/"),
            modal => assert!(modal.is_none(), "{key}: {modal:?}"),
        }
    }
    // Leaving is asked about, and the key that asked is no answer.
    let mut story = three("10:00:00");
    story.press("s").wait_ms(1_000).hold(Key::char('q'), first_ms, 40, told);
    assert!(!story.state.leaving && story.state.view.listener() == Listener::Leave);
    story.wait_ms(1_000).quick(Key::char('q'));
    assert!(story.state.leaving);

    // Enter in the palette, in a filter: the view's Enter folds and hides nothing.
    for keys in [":b", ":stop", ":protect", "/b"] {
        let mut story = three("10:00:00");
        story.press(keys).wait_ms(1_000).hold(Key::plain(Code::Enter), first_ms, 40, told);
        assert!(story.state.view.modals.is_empty(), "{keys}");
    }
    // Esc closes what it closes, and takes nothing back on the way.
    for keys in [":", "/", "?", "O", "jx"] {
        let mut story = three("10:00:00");
        story.press("s").press(keys).wait_ms(800);
        story.hold(Key::plain(Code::Esc), first_ms, 40, told);
        assert_eq!(story.busy(), ["a"], "{keys}: a held esc took the stop back");
    }
}

/// The same letter twice in a text is typing, not holding.
#[test]
fn letters_that_are_typed_fast_are_all_heard() {
    let mut story = three("10:00:00");
    story.wait_ms(1_000).quick(Key::char('/'));
    for c in "aabb//".chars() {
        story.wait_ms(40).quick(Key::char(c));
    }
    assert_eq!(story.state.view.fleet.filter_text, "aabb//");
    // Also a name that begins with the key that opened its field.
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", vec![running("xxl", "1")]).on("xxl").press("xx");
    for c in "xxl".chars() {
        story.wait_ms(120).quick(Key::char(c));
    }
    assert_eq!(story.field(), Some("xxl"));
}

/// A digit adds the account that stands beside it, whatever was added before, once however long it is held.
#[test]
fn a_digit_adds_what_it_was_painted_beside() {
    let offered = |number, variable: &str| OfferedAccount {
        number,
        provider: variable.to_owned(),
        variable: format!("{variable}_KEY"),
    };
    for (first_ms, told) in [(500, false), (600, true)] {
        let mut story = Story::over(&[], "10:00:00");
        story.state.view.offered = vec![offered(1, "ONE"), offered(2, "TWO"), offered(3, "THREE")];
        story.effects();
        story.hold(Key::char('1'), first_ms, 40, told);
        assert_eq!(story.deeds(), [Effect::AddOffered("ONE_KEY".to_owned())]);
        story.wait_ms(1_000);
        story.shows("2  TWO");
        story.press("2");
        assert_eq!(story.deeds(), [Effect::AddOffered("TWO_KEY".to_owned())]);
        story.press("2");
        assert!(story.deeds().is_empty());

        // What was added is listed beneath; its rows cannot be seen, so nothing is done to them.
        story.world(WorldEvent::Added { account: "one".into(), provider: "vast".into(), read_only: false });
        story.lists("one", vec![running("a", "2")]);
        story.shows("THREE_KEY");
        story.hides("release");
        story.effects();
        for key in ["s", "x", " ", "p", "m", "!", "y", "b", ":stop\n"] {
            story.press(key);
            assert!(story.busy().is_empty() && story.state.view.modals.is_empty(), "{key}");
            assert!(story.marked().is_empty(), "{key}");
        }
        assert!(story.deeds().is_empty());
        story.shows("nothing is selected");
        story.press("\n").press("s");
        assert_eq!(story.busy(), ["a"]);
    }
}

/// TUI-04: with each window open, a pasted text is a text in a text field that is no answer, and nothing elsewhere.
#[test]
fn a_paste_is_nothing_in_any_window() {
    const PASTED: &str = "release all x D y yes\nq\n";
    for keys in ["", "?", "v", "x", "xx", "  s", "e", "6", "3"] {
        let mut story = three("10:00:00");
        story.press(keys).effects();
        let (listener, tab) = (story.state.view.listener(), story.state.view.tab);
        let columns = story.state.view.columns.clone();
        story.paste(PASTED);
        assert_eq!((story.state.view.listener(), story.state.view.tab), (listener, tab), "{keys}");
        assert!(!story.state.leaving && story.busy().is_empty() && story.deeds().is_empty(), "{keys}");
        assert_eq!(story.state.view.columns, columns);
        assert!(story.field().is_none_or(str::is_empty));
        story.shows("pasted text is not taken as keys");
    }
    let mut story = three("10:00:00");
    story.press(":").paste(PASTED);
    match story.state.view.modals.last() {
        Some(Modal::Palette(palette)) => assert_eq!(palette.input.value(), "release all x D y yes q"),
        modal => panic!("{modal:?}"),
    }
    assert!(story.busy().is_empty());
    // A whole book is no search.
    story.paste(&"word ".repeat(1_000_000));
    story.code(Code::Esc).press("/").paste(&"word ".repeat(1_000_000));
    assert!(story.state.view.fleet.filter_text.len() < 1_000);
}

/// TUI-03: the edge and beyond it, over the list and over every window: nothing happens, and nothing is begun.
#[test]
fn a_click_begins_nothing_anywhere() {
    let corners = [0, 1, 5, 49, 50, 51, 100, 208, 209, 500, u16::MAX];
    for keys in ["", "?", "v", "x", "xx", "  s", ":", ":stop", "/b", "3", "6", "sq"] {
        let mut story = Story::over(&["me"], "10:00:00");
        story.resize(209, 51).lists_with("me", vec![running("a", "3"), stopped("b")], vec![volume("v")]);
        story.press(keys).effects();
        let (busy, listener) = (story.busy(), story.state.view.listener());
        let (field, marks) = (story.field().map(str::to_owned), story.state.view.fleet.marks.clone());
        for (column, row) in corners.into_iter().flat_map(|column| corners.map(|row| (column, row))) {
            for kind in [MouseKind::Press, MouseKind::Release, MouseKind::WheelUp, MouseKind::WheelDown] {
                story.mouse(kind, column, row).mouse(kind, column, row);
            }
        }
        story.screen();
        assert_eq!((story.busy(), story.state.view.listener()), (busy, listener), "{keys}");
        assert_eq!(story.field().map(str::to_owned), field);
        assert!(story.deeds().is_empty() && story.state.view.fleet.marks == marks && !story.state.leaving, "{keys}");
    }
}

#[test]
fn a_click_selects_a_double_click_opens_and_a_drag_does_neither_twice() {
    let mut story = three("10:00:00");
    let (a, b) = (story.line_of(" a  "), story.line_of(" b  "));
    story.click(8, b);
    assert_eq!(story.selected(), Some("b"));
    let open = |story: &Story| story.state.view.listener() == Listener::Machine;
    // Pressed in one place and let go in another: the press selects, and the release is nothing.
    story.wait_ms(1_000).mouse(MouseKind::Press, 8, a).mouse(MouseKind::Release, 8, b);
    assert_eq!((story.selected(), open(&story)), (Some("a"), false));
    // Two rows in quick order are no double click.
    story.wait_ms(1_000).click(8, a).click(8, b);
    assert!(!open(&story));
    story.wait_ms(100).click(8, b);
    assert!(open(&story), "the same row twice");
    story.wait_ms(100).click(8, b);
    assert_eq!(story.state.view.modals.len(), 1, "a third click is no second double click");
    story.code(Code::Esc);
    // Neither is one on another row that took its place.
    story.wait_ms(1_000).click(8, b).lists("me", vec![running("a", "3"), running("c", "1")]);
    story.click(8, b);
    assert!(!open(&story));

    // Groups fold by a double click, and the head of a column sorts, twice the other way round.
    let mut story = three("10:00:00");
    story.press("g");
    let group = story.line_of("vast/me");
    story.click(3, group).wait_ms(100).click(3, group);
    assert!(places(&story).is_empty());
    story.wait_ms(1_000).click(3, group).wait_ms(100).click(3, group);
    assert_eq!(places(&story).len(), 3);
    let (head, rate) = (story.line_of("$/H"), story.state.view.fleet_columns(&story.state.world).rate.x);
    story.click(rate, head);
    assert_eq!((story.state.view.fleet.sort, story.state.view.fleet.reversed), (SortName::Cost, false));
    story.wait_ms(1_000).click(rate, head);
    assert!(story.state.view.fleet.reversed);
    assert!(story.busy().is_empty() && story.deeds().is_empty());
}

/// The wheel moves as the arrows do, from the first moment on.
#[test]
fn the_wheel_moves_a_screen_that_nobody_has_touched() {
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", (0..9).map(|n| running(&format!("m{n}"), "1")).collect());
    story.mouse(MouseKind::WheelDown, 5, 5);
    assert_eq!(story.selected(), Some("m3"));
    story.lists("me", (0..9).map(|n| running(&format!("m{n}"), "1")).collect());
    assert_eq!(story.selected(), Some("m3"));
}

/// Rows stay where they are while somebody points at them.
#[test]
fn rows_are_not_sorted_anew_under_the_mouse() {
    let mut story = three("10:00:00");
    let b = story.line_of(" b  ");
    for hourly in ["4", "5", "6"] {
        story.wait_ms(25_000).click(8, b);
        story.lists("me", vec![running("a", "3"), running("b", "2"), running("c", hourly)]);
        assert_eq!(places(&story), ["a", "b", "c"]);
    }
    story.wait_ms(31_000).lists("me", vec![running("a", "3"), running("b", "2"), running("c", "7")]);
    assert_eq!(places(&story), ["c", "a", "b"]);
}

#[test]
fn a_mouse_that_is_switched_off_is_not_heard() {
    let mut story = three("10:00:00");
    story.state.view.fixed.mouse = false;
    let b = story.line_of(" b  ");
    story.click(8, b).mouse(MouseKind::WheelDown, 8, b);
    assert_eq!(story.selected(), Some("a"));
}

/// Marks outlive filters and folds; how many are out of sight is told, and is right.
#[test]
fn marks_outlive_what_hides_them() {
    let mut story = three("10:00:00");
    story.press("  ");
    assert_eq!(story.marked(), ["a", "b"]);
    for (filter, hidden) in [("c", 2), ("b", 1), ("-zzz", 0), (">2/h", 1), ("zzz", 2)] {
        story.press("/").key(Key::ctrl('u'));
        story.press(filter).press("\n").wait_ms(9_000);
        assert_eq!((story.marked().len(), story.state.view.fleet.hidden_marks), (2, hidden), "{filter}");
        match hidden {
            0 => story.hides("of them hidden"),
            _ => story.shows(&format!("2 marked, {hidden} of them hidden")),
        }
        story.language = Language::Chinese;
        if hidden > 0 {
            story.shows(&format!("已标记 2，其中 {hidden} 个被隐藏"));
        }
        story.language = Language::English;
    }
    // Esc: first the marks, then the filter.
    story.press("x");
    story.shows("Release 2 instances");
    story.code(Code::Esc);
    assert_eq!(story.marked().len(), 2);
    story.code(Code::Esc);
    assert!(story.marked().is_empty() && !story.state.view.fleet.filter_text.is_empty());
    story.code(Code::Esc);
    assert_eq!(places(&story).len(), 3);

    // Folded away is out of sight as well; a marked row that goes is not counted any more.
    story.press("g").on("b").press(" ").on("a").press(" ").press("h").wait_ms(9_000);
    story.shows("2 marked, 2 of them hidden");
    story.lists("me", vec![running("a", "3")]).lists("me", vec![running("a", "3")]);
    story.world(WorldEvent::LookedUp {
        op: None,
        identity: identity("me", "b"),
        found: Ok(providers::provider::Found::NoSuchId),
    });
    assert_eq!((story.marked(), story.state.view.fleet.hidden_marks), (vec!["a"], 1));
    story.press("f").press("f");
    assert_eq!(story.state.view.fleet.hidden_marks, 1);
}

/// What cannot be read of a filter is told, and the rest counts; Enter does not keep it, Esc brings back the old one.
#[test]
fn a_filter_that_cannot_be_read_hides_nothing_by_itself() {
    let mut story = three("10:00:00");
    story.press("/>1.5/h\n");
    assert_eq!(places(&story), ["a", "b"]);
    story.press("/ projct:art");
    story.shows("did you mean project:?");
    assert_eq!(places(&story), ["a", "b"], "the other term stays in force");
    story.press("\n");
    assert_eq!(story.state.view.listener(), Listener::Filter, "enter keeps no error");
    story.code(Code::Esc);
    assert_eq!((story.state.view.fleet.filter_text.as_str(), places(&story).len()), (">1.5/h", 2));
    assert!(story.state.view.fleet.filter_error.is_none());
    // Habits in a filter: half a term, a quote, an empty text.
    story.press("/").key(Key::ctrl('u'));
    for text in ["\"a", "-", "up>", "a|", "|", ":", "project:"] {
        story.press(text);
        assert!(story.busy().is_empty());
        story.screen();
        story.key(Key::ctrl('u'));
    }
    story.press("\n");
    assert_eq!(places(&story).len(), 3);
}

/// What stands between quotes is read also when it is blank: typing goes on.
#[test]
fn a_key_in_quotes_does_not_hold_the_program_up() {
    for text in ["\"docker\":img", "\" \":", "a|\"b\":", "\"", "-\"\"|", "\u{3000}\":\":x"] {
        let mut story = three("10:00:00");
        story.press("/>1.5/h ").paste(text);
        story.screen();
        assert!(places(&story).len() <= 3, "{text}");
    }
    let mut story = three("10:00:00");
    story.press("/>1.5/h \"docker\":img");
    assert_eq!(places(&story), ["a", "b"], "what can be read stays in force");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Whatever stands in a filter, it is read to its end: nothing hangs, nothing panics, and what is told is a part
    /// of it.
    #[test]
    fn any_text_is_a_filter_or_is_told_where_it_is_none(text in r#"[a-z0-9:<>=|"' ./\-$¥é竞价项目：＞“”*!()]{0,24}"#) {
        let mut story = three("10:00:00");
        story.press("/").paste(&text);
        story.screen();
        let list = &story.state.view.fleet;
        if let Some(error) = &list.filter_error {
            prop_assert!(list.filter_text.get(error.at.clone()).is_some(), "{:?} in {:?}", error, list.filter_text);
        }
        story.key(Key::plain(Code::Backspace));
        story.code(Code::Enter).code(Code::Esc);
        prop_assert!(story.busy().is_empty());
    }
}

/// However long a filter and its error get, what is being typed can be seen.
#[test]
fn what_is_typed_into_a_filter_is_seen_at_every_width() {
    for (width, language) in [(60, Language::English), (80, Language::English), (60, Language::Chinese)] {
        for text in [">1/", "projct:art", "somethingverylongthatnobodyknows:valueofthis", "phase:stoped", "\"two wor"] {
            let mut story = three("10:00:00");
            story.language = language;
            story.resize(width, 16).press("/").press(text);
            let screen = story.screen();
            let line = screen.lines().last().unwrap_or_default();
            let end: String = text.chars().rev().take(6).collect::<Vec<_>>().into_iter().rev().collect();
            assert!(line.contains(&end), "{width}: {line}");
        }
    }
}

/// `up>2h` comes true without any poll, and the cursor that it moves is not trusted at once.
#[test]
fn a_filter_of_time_comes_true_by_time() {
    let mut story = Story::over(&["me"], "10:00:00");
    let young = Instance { started_at: Some(at("08:30:00")), ..running("young", "1") };
    story.lists("me", vec![running("old", "2"), young]);
    story.press("/up>2h\n");
    assert_eq!(places(&story), ["old"]);
    while story.now < at("10:29:50") {
        story.wait_ms(5_000);
    }
    assert_eq!(places(&story), ["old"]);
    story.until("10:30:10");
    assert_eq!(places(&story), ["old", "young"]);
    story.press("/").key(Key::ctrl('u'));
    story.press("up<2h30m\n");
    assert_eq!(places(&story), ["young"]);
    story.until("11:00:10");
    assert!(places(&story).is_empty());
    story.shows("Nothing matches `up<2h30m`; 2 hidden.");
}

/// What somebody chose is written down once a change and comes back; filters, marks and folds do not.
#[test]
fn a_set_up_is_kept_and_a_filter_is_not() {
    let mut story = three("10:00:00");
    story.effects();
    for (keys, writes) in [("o", 1), ("z", 1), ("g", 1), ("O ", 1), ("\u{1b}", 0), ("j", 0), ("/b\n", 0), (" ", 0)] {
        for c in keys.chars() {
            match c {
                '\u{1b}' => story.key(Key::plain(Code::Esc)),
                c => {
                    story.press(&c.to_string());
                }
            }
        }
        assert_eq!(saved(&story.effects()), writes, "{keys:?}");
    }
    story.press("f").wait_ms(60_000).lists("me", vec![running("a", "3"), running("b", "2"), running("c", "1")]);
    assert_eq!(saved(&story.effects()), 0, "nothing was changed by hand");

    let kept = Preferences::of(&story.state.view);
    let mut next = Story::opened(&["me"], "11:00:00");
    kept.clone().apply(&mut next.state.view);
    next.world(WorldEvent::Collector(rentop::rules::memory::Collector::Us));
    next.remember(rentop::rules::memory::Memory::default());
    next.lists("me", vec![running("a", "3"), running("b", "2"), running("c", "1")]).effects();
    let view = &next.state.view;
    assert_eq!((view.fleet.sort, view.details), (SortName::Cost, false));
    assert_eq!((view.fleet.filter_text.as_str(), view.fleet.quick), ("", QuickName::All));
    assert_eq!(places(&next).len(), 3);
    next.press("jk");
    assert_eq!(saved(&next.effects()), 0, "what was read is not written again");
    assert_eq!(Preferences::of(&next.state.view), kept);
}

fn found(story: &Story) -> Vec<Entry> {
    match story.state.view.modals.last() {
        Some(Modal::Palette(palette)) => palette.found.iter().map(|found| found.entry.clone()).collect(),
        modal => panic!("{modal:?}"),
    }
}

/// Every action is found by its word in the config, and by its sentence in the language of the screen.
#[test]
fn every_action_is_found_by_its_word_and_by_its_sentence() {
    let of_windows = [Action::Confirm, Action::Palette, Action::Back, Action::First, Action::Last, Action::NextView];
    for language in [Language::English, Language::Chinese] {
        let sentences = text::sentences(language);
        for action in Action::ALL.iter().copied().filter(|action| !action.moves() && !of_windows.contains(action)) {
            let keys = Bindings::default();
            let place_in = |tab| keys.of(tab).find(|binding| binding.action == action).map(|binding| binding.place);
            let mut places = Tab::ALL.into_iter().filter_map(|tab| Some((tab, place_in(tab)?)));
            let (tab, place) = places.next().expect("it counts in some view");
            let sentence = sentences[&(place, action)].clone();
            for text in [action.word(), &sentence] {
                let mut story = three("10:00:00");
                story.state.view.fixed.sentences = sentences.clone();
                story.state.view.tab = tab;
                story.press(":");
                story.paste(text);
                let found = found(&story);
                assert!(found.contains(&Entry::Action(action)), "`{text}` does not find {action:?} but {found:?}");
                let place = found.iter().position(|entry| *entry == Entry::Action(action));
                assert!(text != sentence || place < Some(3), "{text}: {found:?}");
            }
        }
    }
}

/// A row that is chosen is shown, with the cursor on it, whatever hid it.
#[test]
fn a_row_that_is_chosen_is_shown() {
    let hide: [fn(&mut Story); 5] = [
        |_| {},
        |story| {
            story.press("/c\n");
        },
        |story| {
            story.press("ff");
        },
        |story| {
            story.press("g").code(Code::Home).press("h");
        },
        |story| {
            story.press("6");
        },
    ];
    for (at, hide) in hide.into_iter().enumerate() {
        let mut story = three("10:00:00");
        hide(&mut story);
        story.press(":").press("me b\n");
        assert_eq!((story.state.view.tab, story.selected()), (Tab::Fleet, Some("b")), "{at}");
        story.shows("▌ ●   b");
        // A key right after it is about that row.
        story.quick(Key::char('x'));
        story.shows("Release b");
    }
    // Storage is shown in its own view.
    let mut story = three("10:00:00");
    let used = providers::model::StorageItem {
        attachment: providers::model::Attachment::To(vec!["a".into()]),
        ..volume("weights")
    };
    story.lists_with("me", vec![running("a", "3"), stopped("old")], vec![volume("free"), used]);
    story.press("3/zzz\n1").press(":free\n");
    assert_eq!((story.state.view.tab, story.selected()), (Tab::Storage, Some("free")));
    // What stands in no list is not mistaken for another row.
    story.press(":weights\n");
    story.shows("weights is not listed: in use, or free");
    assert_ne!(story.selected(), Some("weights"));
    // One that goes while the palette is open.
    story.press("1:").press("old");
    story.lists("me", vec![running("a", "3")]).lists("me", vec![running("a", "3")]);
    story.world(WorldEvent::LookedUp {
        op: None,
        identity: identity("me", "old"),
        found: Ok(providers::provider::Found::NoSuchId),
    });
    story.wait_ms(70_000).press("\n");
    assert_eq!(story.said(), Some(&Msg::RowGone));
}

/// The palette covers the rows: what it does is about the row that was seen before it opened.
#[test]
fn an_action_of_the_palette_is_about_the_row_that_was_seen() {
    for action in ["stop", "end", "protect", "mine"] {
        let mut story = three("10:00:00");
        story.on("b").press(":").press(action);
        story.lists("me", vec![running("a", "3"), running("c", "1")]);
        story.lists("me", vec![running("a", "3"), running("c", "1")]);
        story.world(WorldEvent::LookedUp {
            op: None,
            identity: identity("me", "b"),
            found: Ok(providers::provider::Found::NoSuchId),
        });
        story.wait_ms(70_000).effects();
        story.press("\n");
        assert!(story.deeds().is_empty() && story.busy().is_empty() && story.question().is_none(), "{action}");
        story.shows("its row is gone: nothing was done");
    }
    let mut story = three("10:00:00");
    story.on("b").press(":stop\n");
    assert_eq!(story.busy(), ["b"]);
}

#[test]
fn a_palette_over_ten_thousand_rows_finds_one() {
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", (0..10_000).map(|n| running(&format!("worker-{n:05}"), "1")).collect());
    story.press(":").paste("worker-07321");
    assert!(found(&story).contains(&Entry::Row(identity("me", "worker-07321"))));
    story.press("\n");
    assert_eq!(story.selected(), Some("worker-07321"));
    story.shows("worker-07321");
    story.press("x");
    story.shows("Release worker-07321");
}

/// Other keys for the same actions: footer, help, palette, plan and countdown say the ones that work.
#[test]
fn the_screen_tells_the_keys_that_somebody_chose() {
    let keys = |word: &'static str, key: &str| (word, vec![key.to_owned()]);
    let wishes =
        [keys("end", "delete"), keys("stop", "D"), keys("undo", "Z"), keys("confirm", "n"), keys("quit", "ctrl-q")];
    let wishes: Vec<(&str, &[String])> = wishes.iter().map(|(word, keys)| (*word, keys.as_slice())).collect();
    let mut story = three("10:00:00");
    story.state.view.fixed.keys = Bindings::with(&wishes).unwrap();
    story.resize(120, 30).wait_ms(9_000);
    for hint in ["D stop", "delete release", "Ctrl-Q quit"] {
        story.shows(hint);
    }
    // The old keys mean nothing.
    story.press("sx");
    assert!(story.busy().is_empty() && story.question().is_none());
    story.code(Code::Delete);
    story.shows("delete  release without saving: asks for its name first");
    story.press("x");
    assert!(story.field().is_none());
    story.code(Code::Delete);
    assert_eq!(story.field(), Some(""), "the key that opened the plan opens its field");
    // In a text it edits the text.
    story.press("ba").code(Code::Home).code(Code::Delete);
    assert_eq!(story.field(), Some("a"));
    story.code(Code::Esc).code(Code::Esc).press("  D");
    story.shows("n  stop 2: begins after 5 s, Z takes it back");
    story.press("y");
    assert!(story.busy().is_empty());
    story.press("n");
    story.shows("stop in 5 s, Z undo");
    story.key(Key::ctrl('q'));
    story.shows("Ctrl-Q leave now");
    story.press("j").press("Z").press("Z");
    assert!(story.busy().is_empty());
    story.language = Language::Chinese;
    story.code(Code::Home).press("  D");
    story.shows("Z 可撤销");
    story.language = Language::English;
    story.code(Code::Esc).press("?");
    for line in ["D           stop what runs", "delete      end it for good", "Z           take back"] {
        story.shows(line);
    }
    story.code(Code::Esc).press(":end");
    story.shows("delete  end it for good");
    story.code(Code::Esc).resize(50, 10);
    story.shows("Ctrl-Q quits");
}

/// Keys of windows and texts: nothing that is bound there ends anything.
#[test]
fn keys_of_texts_edit_texts() {
    let mut story = three("10:00:00");
    story.press(":");
    for key in [Key::ctrl('w'), Key::ctrl('d'), Key::ctrl('k'), Key::plain(Code::Tab), Key::plain(Code::F(5))] {
        story.key(key);
    }
    for c in "sxyupm!".chars() {
        story.key(Key { alt: true, ..Key::char(c) });
    }
    assert!(matches!(story.state.view.modals.as_slice(), [Modal::Palette(_)]));
    assert!(story.busy().is_empty() && story.deeds().is_empty());
}

/// Somebody looks at a machine's address: nothing else happens, and nothing is copied that was not asked for.
#[test]
fn the_ssh_line_is_copied_once_by_a_held_key() {
    let mut story = Story::over(&["me"], "10:00:00");
    let ssh =
        SshEndpoint { host: "203.0.113.7".to_owned(), port: Some(22), user: Some("root".to_owned()), direct: true };
    story.lists("me", vec![Instance { ssh: Some(ssh), ..running("a", "1") }]).on("a").effects();
    story.wait_ms(1_000).hold(Key { ..Key::char('y') }, 500, 40, true);
    let copies = story.effects().iter().filter(|effect| matches!(effect, Effect::Copy(_))).count();
    assert_eq!(copies, 1);
}

/// API-15: the key that asks again is held down for three seconds: one question at a time, a second apart.
#[rstest]
#[case::told(true)]
#[case::untold(false)]
fn a_held_refresh_keeps_the_pace(#[case] told: bool) {
    let rows = || vec![running("a", "2")];
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", rows()).wait_ms(5_000).effects();
    let began = story.now;
    let (mut asked, mut answer_at, mut pressed) = (Vec::new(), None, 0);
    while story.now < began + SignedDuration::from_secs(3) {
        let repeat = pressed > 0;
        if pressed == 0 || story.now >= began + SignedDuration::from_millis(500) {
            story.quick(Key { repeat: repeat && told, ..Key::plain(Code::F(5)) });
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
            story.lists("me", rows());
        }
        story.shows("asking the providers again");
        story.wait_ms(30);
    }
    assert!((1..=4).contains(&asked.len()), "{asked:?}");
    let gap = SignedDuration::from_secs(1);
    assert!(asked.windows(2).all(|pair| pair[1].duration_since(pair[0]) >= gap), "{asked:?}");
}

/// TUI-02 and TUI-12: every window at every size, from a cell to more cells than a 16-bit number counts.
#[test]
fn every_window_is_painted_at_every_size() {
    let sizes = [
        (14, 54),
        (10, 11),
        (7, 2),
        (1, 1),
        (2, 100),
        (100, 2),
        (60, 16),
        (80, 24),
        (172, 18),
        (600, 200),
        (1000, 100),
        (300, 300),
    ];
    let rows = || (0..500).map(|n| running(&format!("worker-{n:03}-with-a-long-name-批量"), "1")).collect::<Vec<_>>();
    let long = || providers::error::ErrorKind::Connect { message: "no route to that host ".repeat(400) };
    for keys in ["", "?", "v", "x", "xx", "  s", ":", ":rel", "/up>", "3", "6", "sq"] {
        let mut story = Story::over(&["me", "lab"], "10:00:00");
        story.lists("me", rows()).fails("lab", long());
        story.press("g").code(Code::End).press(keys);
        let selected = story.selected().map(str::to_owned);
        for (width, height) in sizes {
            story.resize(width, height);
            assert_eq!(story.screen().lines().count(), usize::from(height), "{keys}");
        }
        story.resize(80, 24);
        assert_eq!(story.selected().map(str::to_owned), selected, "{keys}");
    }
    let mut story = Story::over(&["lab"], "10:00:00");
    story.fails("lab", long()).press("e");
    for (width, height) in sizes {
        story.resize(width, height).code(Code::PageDown);
        story.screen();
    }
}
