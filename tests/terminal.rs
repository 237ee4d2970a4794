//! The screen, end to end: the real binary in a pseudo-terminal over simulated providers.

#![cfg(unix)]

mod support;

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use portable_pty::CommandBuilder;
use providers::sim::{Harm, Life, Machine};
use rentop::ledger::Ledger;
use rentop::rules::memory::Keep;
use rstest::rstest;
use support::binary;
use support::stage::{INFER, LORA, NAMES, SCRATCH, Stage, TRAINER, stage};
use support::terminal::{Answers, Terminal};

/// The screen with every row on it.
fn screen_of(stage: &Stage, args: &[&str]) -> Terminal {
    let mut terminal = Terminal::start(&stage.lab, args, 100, 30);
    for name in NAMES {
        terminal.wait_for(name);
    }
    terminal
}

/// The terminal is the shell's again: main screen, cursor, plain pastes, no mouse, plain keys, no raw mode.
#[track_caller]
fn is_given_back(terminal: &mut Terminal) {
    let written = terminal.wrote();
    for mode in ["?1049", "?2004", "?1000", "?1006"] {
        let (on, off) = (format!("\x1b[{mode}h"), format!("\x1b[{mode}l"));
        assert!(written.contains(&on), "{on:?} was never written");
        assert!(written.rfind(&on) < written.rfind(&off), "{on:?} was not taken back by {off:?}");
    }
    assert!(written.rfind("\x1b[?25l") < written.rfind("\x1b[?25h"), "the cursor is hidden");
    let (pushed, popped) = (written.matches(ENHANCED).count(), written.matches("\x1b[<1u").count());
    assert_eq!(pushed, popped, "the keyboard's mode was not taken back");
    let screen = terminal.screen();
    assert!(!screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste());
    assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
    terminal.wait_raw(false);
}

/// The kitty keyboard protocol, as far as it is wanted: it tells every key apart, presses from releases, and
/// which key of a Latin keyboard it is.
const ENHANCED: &str = "\x1b[>7u";

#[test]
fn the_first_frame_is_the_ledgers_with_its_age_while_every_provider_hangs() {
    let stage = stage();
    stage.lab.run(&["ls"]).ends_with(0);
    let mut ledger = Ledger::open(&stage.lab.state_dir(), Timestamp::now()).unwrap().0;
    let (memory, _) = ledger.recall(Timestamp::now()).unwrap();
    for mut account in memory.accounts {
        account.as_of = Some(Timestamp::now() - SignedDuration::from_hours(5));
        ledger
            .keep(&Keep { account, instances: Vec::new(), storage: Vec::new(), entries: Default::default() })
            .unwrap();
    }
    drop(ledger);
    for world in [&stage.runpod, &stage.vast, &stage.lambda] {
        world.fault("", "", u32::MAX, Harm::Hang);
    }
    let mut terminal = Terminal::start(&stage.lab, &[], 100, 30);
    let text = terminal.wait_for("trainer");
    for name in ["scratch", "old-exp", "sd-lora", "infer"] {
        assert!(text.contains(name), "{name} is not in the first frame:\n{text}");
    }
    let old = text.lines().filter(|line| line.contains("×") && line.contains("5 h old")).count();
    assert_eq!(old, 5, "{text}");
    // A plan from memory says so.
    terminal.select("trainer");
    terminal.press("x");
    terminal.wait_for("Release trainer");
    terminal.wait_for("5 h ago");
}

#[test]
fn rows_follow_their_providers() {
    let stage = stage();
    let mut terminal = screen_of(&stage, &[]);
    let now = stage.runpod.lock().now();
    stage.runpod.lock().machines.push(Machine::new("podnewcomer004", "newcomer", now));
    stage.vast.lock().machine(LORA).unwrap().life = Life::Outbid;
    terminal.press("\x1b[15~");
    terminal.wait_for("newcomer");
    terminal.wait_for("outbid");
    // Gone by its provider's word only: twice absent and no such id.
    stage.runpod.lock().machine(SCRATCH).unwrap().life = Life::Gone;
    terminal
        .wait("scratch to be gone", |text| text.lines().any(|line| line.contains("scratch") && line.contains("gone")));
    assert_eq!(stage.changes(), 0);
}

/// A countdown can be taken back; left alone it ends in the stop that a poll proves.
#[test]
fn a_stop_is_counted_down_taken_back_and_done() {
    let stage = stage();
    let mut terminal = screen_of(&stage, &[]);
    terminal.select("trainer");
    terminal.press("s");
    terminal.wait_for("stop in 5 s, u undo");
    terminal.wait_for("stop in 4 s, u undo");
    assert_eq!(stage.changes(), 0);
    terminal.press("u");
    terminal.wait_for("taken back, nothing was sent");
    terminal.press("s");
    terminal.wait("the second countdown", |text| text.contains("s, u undo"));
    terminal.press("\x1b");
    terminal.wait("the second taking back", |text| !text.contains("s, u undo"));
    terminal.press("s");
    terminal.wait_for("stop in 5 s, u undo");
    // Other keys go on working meanwhile.
    terminal.press("6");
    terminal.wait_for("taken back");
    terminal.press("1");
    terminal.wait_for("trainer: stopped");
    terminal.wait("the row as stopped", |text| {
        text.lines().any(|line| line.contains("trainer") && line.contains("✓ stopped"))
    });
    assert_eq!((stage.changes(), stage.life(TRAINER)), (1, Life::Stopped));
    // The key that stopped it starts it now: for a moment it is not taken for meant.
    terminal.press("s");
    terminal.wait("a word about it", |text| text.contains("press again") || text.contains("start in"));
    if terminal.text().contains("press again") {
        terminal.listen(std::time::Duration::from_millis(600));
        terminal.press("s");
    }
    terminal.wait_for("start in");
    terminal.wait_for("trainer: started");
    assert_eq!((stage.changes(), stage.life(TRAINER)), (2, Life::Running));
}

/// Release, and DATA-05's stop that erases everything: a plan, a second press, the name, and no other way.
#[rstest]
#[case::release("x", "trainer", TRAINER, "Release trainer", "trainer: released", Life::Gone)]
#[case::a_stop_that_erases("s", "scratch", SCRATCH, "Stop scratch", "scratch: stopped", Life::Stopped)]
fn what_loses_data_asks_for_the_name(
    #[case] key: &str,
    #[case] name: &str,
    #[case] id: &str,
    #[case] title: &str,
    #[case] told: &str,
    #[case] end: Life,
) {
    let stage = stage();
    let mut terminal = screen_of(&stage, &[]);
    terminal.select(name);
    terminal.press(key);
    let plan = terminal.wait_for(title);
    assert!(plan.contains("deletes") && plan.contains("saves") && plan.contains("asks for its name first"), "{plan}");
    // Neither yes nor Enter is an answer.
    terminal.press("y\r\r");
    terminal.press(key);
    terminal.wait_for(&format!("type {name} and press enter"));
    terminal.press("wrong\r");
    terminal.wait_for("> wrong");
    // TUI-04: a name must be typed.
    terminal.press("\x15");
    terminal.press(&format!("\x1b[200~{name}\r\x1b[201~"));
    terminal.wait_for("pasted text is not taken as keys");
    assert!(!terminal.text().contains(&format!("> {name}")), "{}", terminal.text());
    terminal.press("\r");
    assert_eq!(stage.changes(), 0);
    // Esc leaves the field, then the plan.
    terminal.press("\x1b");
    terminal.wait_for("asks for its name first");
    // Another key between: the same one at once would be a held one.
    terminal.press("j");
    terminal.press("\x1b");
    terminal.wait("the list alone", |text| !text.contains(title));
    terminal.press(key);
    terminal.wait_for("asks for its name first");
    terminal.press("j");
    terminal.press(key);
    terminal.wait_for(&format!("type {name} and press enter"));
    terminal.press(&format!("{name}\r"));
    terminal.wait_for(told);
    assert_eq!(stage.changes(), 1);
    // At RunPod a pod's id is no more as soon as its deletion is accepted.
    assert!(stage.life(id) == end || (end, stage.life(id)) == (Life::Gone, Life::Releasing));
    if end == Life::Gone {
        terminal.wait("the row as gone", |text| {
            text.lines().any(|line| line.contains(name) && line.contains("✓ released"))
        });
        terminal.press("6");
        terminal.wait_for("done and proven");
    }
}

/// A held key acts once: it opens the plan and not the field, marks one row, turns the grouping once.
#[test]
fn a_held_key_acts_once() {
    let stage = stage();
    let mut terminal = screen_of(&stage, &[]);
    terminal.select("trainer");
    terminal.press("gggggggggggg");
    terminal.wait_for("grouped by account");
    terminal.select("trainer");
    terminal.press(&" ".repeat(12));
    terminal.wait_for("1 marked");
    terminal.press("\x1b");
    terminal.wait("no mark", |text| !text.contains("1 marked"));
    terminal.select("trainer");
    terminal.press(&"x".repeat(12));
    terminal.wait_for("asks for its name first");
    terminal.press("\x1b");
    terminal.wait("the list alone", |text| !text.contains("Release trainer"));
    terminal.press(&"s".repeat(12));
    terminal.wait_for("s, u undo");
    terminal.press(&"u".repeat(12));
    terminal.wait_for("taken back, nothing was sent");
    assert_eq!(stage.changes(), 0);
}

/// TUI-04, TUI-07: in the filter every letter is a letter, and a paste is text.
#[test]
fn the_filter_takes_letters_and_pastes_as_text() {
    let stage = stage();
    let mut terminal = screen_of(&stage, &[]);
    terminal.press("/");
    terminal.wait_for("enter keep");
    terminal.press("xsq");
    terminal.wait_for("Nothing matches `xsq`");
    terminal.press("\x7f\x7f\x7ftrai");
    terminal.wait("one row", |text| text.contains("trainer") && !text.contains("sd-lora"));
    terminal.press("\x15\x1b[200~release all x D y yes\nq\n\x1b[201~");
    terminal.wait_for("`release all x D y yes q`");
    terminal.press("\x15SD-lo\r");
    terminal.wait("the other row", |text| text.contains("sd-lora") && !text.contains("trainer"));
    terminal.wait_for("4 hidden");
    terminal.press("\x1b");
    terminal.wait_for("trainer");
    // On the list a paste is no key.
    terminal.press("\x1b[200~release all x D y yes\nq\n\x1b[201~");
    terminal.wait_for("pasted text is not taken as keys");
    // TUI-07: what hands press by habit.
    for key in ["\x7f", "\x1b[3~", "\x04", "\x0b", "\x08", "\x17", "\r", "y", "Y", "S", "X"] {
        terminal.press(key);
    }
    terminal.press("?");
    terminal.wait_for("Help");
    assert_eq!(stage.changes(), 0);
}

#[test]
fn marked_rows_are_released_together_and_protected_ones_are_left_out() {
    let stage = stage();
    let mut terminal = screen_of(&stage, &[]);
    terminal.select("infer");
    terminal.press("p");
    terminal.wait_for("infer is protected");
    for name in ["infer", "trainer", "sd-lora"] {
        terminal.select(name);
        terminal.press(" ");
    }
    terminal.wait_for("3 marked");
    terminal.press("x");
    let plan = terminal.wait_for("Release 2 instances");
    assert!(plan.contains("left out: 1") && plan.contains("protected"), "{plan}");
    terminal.press("jx");
    terminal.wait_for("type release 2 and press enter");
    terminal.press("release 3\r\x15release 2\r");
    terminal.wait("both released", |text| text.matches("✓ released").count() == 2);
    assert_eq!(stage.changes(), 2);
    assert_eq!((stage.life(TRAINER), stage.life(LORA)), (Life::Gone, Life::Gone));
    assert_eq!(stage.life(INFER), Life::Running);
}

/// LIFE-08: the key explains, and sends nothing.
#[test]
fn a_provider_that_cannot_stop_says_so() {
    let stage = stage();
    let mut terminal = screen_of(&stage, &[]);
    terminal.select("infer");
    terminal.press("s");
    terminal.wait_for("infer: this provider cannot stop");
    let row = terminal.bar();
    terminal.press("k");
    terminal.wait_moved(row);
    assert_eq!(stage.changes(), 0);
}

#[test]
fn a_read_only_screen_sends_nothing() {
    let stage = stage();
    let mut terminal = screen_of(&stage, &["--read-only"]);
    terminal.wait_for("READ-ONLY");
    for (name, key) in [("trainer", "s"), ("scratch", "s"), ("old-exp", "s"), ("sd-lora", "x"), ("infer", "x")] {
        terminal.select(name);
        terminal.press(key);
        terminal.wait_for(&format!("{name}: rentop was started with --read-only"));
    }
    terminal.press("q");
    assert!(terminal.wait_end().success());
    assert_eq!(stage.changes(), 0);
}

/// TUI-02: no size panics, and the view comes back with its cursor.
#[rstest]
#[case::the_list("", "NAME")]
#[case::help("?", "Help")]
#[case::a_plan("x", "Release trainer")]
#[case::a_field("xjx", "type trainer and press enter")]
#[case::the_filter("/", "enter keep")]
#[case::activity("6", "Nothing was stopped")]
fn a_storm_of_sizes_passes(#[case] keys: &str, #[case] shown: &str) {
    let stage = stage();
    let mut terminal = Terminal::start(&stage.lab, &[], 80, 24);
    NAMES.into_iter().for_each(|name| drop(terminal.wait_for(name)));
    terminal.select("trainer");
    terminal.press(keys);
    terminal.wait_for(shown);
    for (width, height) in [(14, 54), (10, 11), (7, 2), (1, 1), (2, 100), (100, 2), (172, 18), (1000, 100), (60, 16)] {
        terminal.resize(width, height);
        terminal.resize(80, 24);
        terminal.resize(width, height);
        terminal.press("\x1b[B");
        terminal.press("\x1b[A");
    }
    terminal.resize(80, 24);
    terminal.wait("the view as it was", |text| text.starts_with(" rentop") && text.contains(shown));
    if keys.is_empty() {
        terminal.press("\x1b[B\x1b[A");
        terminal.wait("the cursor where it was", |text| {
            text.lines().any(|line| line.starts_with('▌') && line.contains("trainer"))
        });
    }
    assert_eq!(stage.changes(), 0);
}

#[rstest]
#[case(1, 1)]
#[case(7, 2)]
#[case(14, 54)]
#[case(100, 2)]
fn a_start_in_a_tiny_window_recovers(#[case] width: u16, #[case] height: u16) {
    let stage = stage();
    let mut terminal = Terminal::start(&stage.lab, &[], width, height);
    terminal.wait_raw(true);
    terminal.resize(80, 24);
    terminal.wait_for("trainer");
    terminal.resize(width, height);
    terminal.press("q");
    assert!(terminal.wait_end().success());
}

/// A key in the very moment of a resize is neither lost nor late.
#[test]
fn a_key_is_heard_while_the_size_changes() {
    let stage = stage();
    let mut terminal = screen_of(&stage, &[]);
    terminal.press("/");
    terminal.wait_for("enter keep");
    for round in 0..60 {
        let typed = "z".repeat(round % 10 + 1);
        if round % 10 == 0 {
            terminal.press("\x15");
        }
        let width = 100 + round as u16 % 2;
        // A signal and a key wake the program at once, now this first and now that.
        if round % 3 == 0 {
            terminal.press("z");
            terminal.resize(width, 30);
        } else {
            terminal.resize(width, 30);
            terminal.press("z");
        }
        terminal.wait_for(&format!("`{typed}`"));
    }
}

/// TUI-01: whatever ends the program, the terminal is the shell's again.
#[rstest]
#[case::q("q", "", 0)]
#[case::ctrl_c("\x03", "", 0)]
#[case::sigterm("", "TERM", 1)]
#[case::sighup("", "HUP", 1)]
#[case::sigint("", "INT", 1)]
#[case::sigquit("", "QUIT", 1)]
fn the_terminal_is_given_back(#[case] keys: &str, #[case] signal: &str, #[case] code: u32) {
    let stage = stage();
    let mut terminal = screen_of(&stage, &[]);
    terminal.wait_raw(true);
    if signal.is_empty() {
        terminal.press(keys);
    } else {
        terminal.signal(signal);
    }
    let status = terminal.wait_end();
    assert_eq!(status.exit_code(), code, "{status:?}");
    is_given_back(&mut terminal);
    // What goes on costing is said where it can be read.
    terminal.wait_for("Nobody watches unless another rentop runs.");
    assert_eq!(stage.changes(), 0);
}

/// TUI-09: given back while the program is stopped, taken over and painted anew when it goes on.
#[rstest]
#[case::ctrl_z("\x1a", "")]
#[case::sigtstp("", "TSTP")]
fn a_suspended_screen_comes_back(#[case] keys: &str, #[case] signal: &str) {
    let stage = stage();
    let mut terminal = screen_of(&stage, &[]);
    if signal.is_empty() {
        terminal.press(keys);
    } else {
        terminal.signal(signal);
    }
    terminal.wait_raw(false);
    terminal.wait("the main screen", |text| !text.contains("trainer"));
    is_given_back(&mut terminal);
    stage.runpod.lock().machine(TRAINER).unwrap().name = Some("renamed".to_owned());
    terminal.wake_until("the screen", |screen| screen.alternate_screen() && screen.contents().contains("trainer"));
    terminal.wait_raw(true);
    // Keys are read again, and the providers asked.
    terminal.press("\x1b[15~");
    terminal.wait_for("renamed");
    terminal.press("q");
    assert!(terminal.wait_end().success());
    is_given_back(&mut terminal);
}

/// TUI-09: a stop that nobody can catch, after which the shell has set its own modes.
#[test]
fn a_screen_that_was_stopped_from_outside_comes_back() {
    let stage = stage();
    let mut terminal = screen_of(&stage, &[]);
    terminal.signal("STOP");
    terminal.make_sane();
    terminal.wait_raw(false);
    let before = terminal.written.len();
    terminal.signal("CONT");
    terminal.wait_raw(true);
    terminal.press("?");
    terminal.wait_for("Help");
    let after = String::from_utf8_lossy(&terminal.written[before..]).into_owned();
    assert!(after.contains("rentop") && after.contains("\x1b[?2004h"), "it was not painted anew: {after:?}");
    terminal.press("\x1b");
    terminal.wait("the list alone", |text| !text.contains("Help"));
    terminal.press("q");
    assert!(terminal.wait_end().success());
    is_given_back(&mut terminal);
}

/// TUI-11: one account that hangs slows neither keys nor the others, and its old rows stay.
#[test]
fn a_provider_that_hangs_slows_nothing() {
    let stage = stage();
    let mut terminal = screen_of(&stage, &[]);
    stage.vast.fault("", "", u32::MAX, Harm::Hang);
    terminal.press("g");
    terminal.wait_for("grouped by account");
    terminal.press("\x1b[15~");
    stage.runpod.lock().machine(TRAINER).unwrap().name = Some("renamed".to_owned());
    terminal.wait_for("renamed");
    let mut fastest = Duration::MAX;
    terminal.select("renamed");
    for key in ["j", "k"].repeat(6) {
        let row = terminal.bar();
        let began = Instant::now();
        terminal.press(key);
        terminal.wait_moved(row);
        fastest = fastest.min(began.elapsed());
    }
    assert!(fastest < Duration::from_millis(100), "a key takes {fastest:?} at best");
    let text = terminal.wait_for("asking for");
    let slow = text.lines().find(|line| line.contains("asking for")).unwrap();
    assert!(slow.contains("vast/me") && text.contains("sd-lora"), "{text}");
}

#[test]
fn the_screen_speaks_chinese() {
    let stage = stage();
    let mut command = Terminal::command(&stage.lab, &[]);
    command.env("RENTOP_LANG", "zh-CN");
    let mut terminal = Terminal::spawn(command, 100, 30);
    terminal.wait_for("trainer");
    terminal.wait_for("名称");
    terminal.select("infer");
    terminal.press("s");
    terminal.wait_for("infer：该平台不支持停止");
    terminal.press("?");
    terminal.wait_for("帮助");
}

/// The demo needs nothing, shows three providers, and leaves nothing behind.
#[test]
fn the_demo_starts_without_a_config_and_leaves_nothing_behind() {
    let home = tempfile::tempdir().unwrap();
    let temp = tempfile::tempdir().unwrap();
    let mut command = CommandBuilder::new(binary());
    command.args(["demo"]);
    command.env_clear();
    for (name, value) in [
        ("HOME", home.path().display().to_string()),
        ("TMPDIR", temp.path().display().to_string()),
        ("PATH", std::env::var("PATH").unwrap_or_default()),
        ("TERM", "xterm-256color".to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
        // A key that it must not touch.
        ("RUNPOD_API_KEY", "not-for-the-demo".to_owned()),
    ] {
        command.env(name, value);
    }
    command.cwd(home.path());
    let mut terminal = Terminal::spawn(command, 160, 40);
    terminal.wait_for("DEMO");
    for name in ["llama-ft", "sd-lora", "pretrain-gh", "runpod/team", "vast/me", "lambda/lab"] {
        terminal.wait_for(name);
    }
    assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 1, "its own folder");
    terminal.press("q");
    assert!(terminal.wait_end().success());
    is_given_back(&mut terminal);
    for folder in [&home, &temp] {
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// STATE-02: the second screen looks on, does nothing, and takes over when the first is killed.
#[test]
fn a_second_screen_looks_on_and_takes_over() {
    let stage = stage();
    let mut first = screen_of(&stage, &[]);
    let mut second = Terminal::start(&stage.lab, &[], 140, 30);
    second.wait_for("looking on");
    second.select("trainer");
    second.press("s");
    let pid = first.child.process_id().unwrap();
    let text = second.wait_for("nothing was done");
    assert!(text.contains(&format!("({pid})")), "{text}");
    second.press("\x1b[15~");
    second.press("p");
    second.wait("the words again", |text| !text.contains("is protected"));
    assert_eq!(stage.changes(), 0);
    first.signal("KILL");
    first.wait_end();
    second.wait("the take-over", |text| !text.contains("looking on"));
    second.press("s");
    second.wait_for("s, u undo");
    second.wait_for("trainer: stopped");
    assert_eq!((stage.changes(), stage.life(TRAINER)), (1, Life::Stopped));
    // The next one is not kept out by a dead process either.
    second.signal("KILL");
    second.wait_end();
    let mut third = screen_of(&stage, &[]);
    third.press("6");
    third.wait_for("done and proven");
    assert!(!third.text().contains("looking on"), "{}", third.text());
}

/// The screen with every row on it, in a terminal that answers like this.
fn screen_in(answers: Answers, stage: &Stage, variables: &[(&str, &str)]) -> Terminal {
    let mut command = Terminal::command(&stage.lab, &[]);
    variables.iter().for_each(|(name, value)| command.env(name, value));
    let mut terminal = Terminal::spawn_with(answers, command, 100, 30);
    for name in NAMES {
        terminal.wait_for(name);
    }
    terminal
}

/// TUI-05: with the kitty protocol a press acts once, a repeat moves, a release is nothing, and a key with
/// another modifier is another key.
#[test]
fn presses_repeats_and_releases_are_told_apart() {
    let stage = stage();
    let mut terminal = screen_in(Answers::KITTY, &stage, &[]);
    terminal.wait_written(ENHANCED);
    let keys = |key: &str, kinds: &[u8]| -> String {
        let (number, letter) = key.split_at(key.len() - 1);
        kinds.iter().map(|kind| format!("\x1b[{number};1:{kind}{letter}")).collect()
    };
    terminal.select("trainer");
    terminal.press(&keys("115u", &[1, 2, 2, 3]));
    terminal.wait_for("stop in");
    terminal.press(&keys("117u", &[1, 3]));
    terminal.wait_for("taken back, nothing was sent");
    // The cursor moves one row, then three.
    terminal.press("\x1b[H");
    let head = |text: &str| text.lines().position(|line| line.contains("NAME"));
    terminal.wait("the first row", |text| text.lines().nth(head(text).unwrap() + 1).unwrap().starts_with('▌'));
    let first = terminal.bar().unwrap();
    terminal.press(&keys("1B", &[1, 3]));
    terminal.wait("one row further", |text| text.lines().nth(first + 1).unwrap().starts_with('▌'));
    terminal.press(&keys("1B", &[1, 2, 2, 3]));
    terminal.wait("three rows further", |text| text.lines().nth(first + 4).unwrap().starts_with('▌'));
    // Letters are sent as text, their release is not: nobody presses again what is down.
    terminal.select("trainer");
    terminal.press("x");
    terminal.wait_for("asks for its name first");
    terminal.listen(Duration::from_millis(300));
    terminal.press("x");
    terminal.press(&keys("120u", &[3]));
    terminal.press("\x1b[27;1:1u\x1b[27;1:3u");
    // Out of the field Esc would lead to the plan.
    terminal.wait("the list alone", |text| !text.contains("Release trainer"));
    // Super, Hyper and Meta with x, and Ctrl-Shift-C: not x, and not Ctrl-C.
    for other in ["\x1b[120;9u", "\x1b[120;17u", "\x1b[120;33u", "\x1b[99:67;6u"] {
        terminal.press(other);
    }
    terminal.press("?");
    assert!(!terminal.wait_for("Help").contains("Release trainer"));
    terminal.press("\x1b[27u");
    // A Russian keyboard's Ctrl-C.
    terminal.press("\x1b[1089::99;5u");
    assert!(terminal.wait_end().success());
    is_given_back(&mut terminal);
    assert!(terminal.wrote().contains(ENHANCED));
    assert_eq!(stage.changes(), 0);
}

/// TUI-09: the keyboard's mode goes and comes with the screen.
#[test]
fn the_kitty_protocol_is_taken_up_again_after_a_stop() {
    let stage = stage();
    let mut terminal = screen_in(Answers::KITTY, &stage, &[]);
    terminal.wait_written(ENHANCED);
    terminal.press("\x1b[122;5u");
    terminal.wait_raw(false);
    terminal.wait("the main screen", |text| !text.contains("trainer"));
    is_given_back(&mut terminal);
    terminal.wake_until("the screen", |screen| screen.alternate_screen() && screen.contents().contains("trainer"));
    let written = terminal.wrote();
    assert!(written.rfind(ENHANCED) > written.rfind("\x1b[<1u"), "it was not taken up again");
    terminal.signal("TERM");
    assert_eq!(terminal.wait_end().exit_code(), 1);
    is_given_back(&mut terminal);
}

/// TUI-10: a light background, by the terminal's own word against that of the environment.
#[test]
fn a_light_terminal_gets_dark_letters() {
    let (dark, light) = ("38;2;108;182;255", "38;2;5;80;174");
    let variables = [("COLORTERM", "truecolor"), ("COLORFGBG", "15;0")];
    let stage = stage();
    let white = Answers { background: Some("rgb:fafa/fafa/fafa"), ..Answers::USUAL };
    let mut terminal = screen_in(white, &stage, &variables);
    terminal.wait_written(light);
    let before = terminal.written.len();
    terminal.press("\x0cjk");
    terminal.listen(Duration::from_millis(300));
    assert!(!String::from_utf8_lossy(&terminal.written[before..]).contains(dark), "both at once");
    let mut terminal = screen_in(Answers::USUAL, &stage, &variables);
    terminal.press("jk");
    terminal.listen(Duration::from_millis(300));
    assert!(terminal.wrote().contains(dark) && !terminal.wrote().contains(light));
}

/// A terminal that draws doubtful signs in two cells gets letters instead.
#[test]
fn signs_that_would_be_drawn_wider_are_letters() {
    let stage = stage();
    let mut terminal = screen_in(Answers { wide: true, ..Answers::USUAL }, &stage, &[]);
    terminal.wait("letters for signs", |text| text.is_ascii() && text.contains("trainer"));
    terminal.press("q");
    assert!(terminal.wait_end().success());
    is_given_back(&mut terminal);
}

/// No answer delays a key, and none that comes late is one.
#[test]
fn a_silent_terminal_delays_nothing_and_a_late_answer_is_no_key() {
    let stage = stage();
    let began = Instant::now();
    let mut terminal = screen_in(Answers::SILENT, &stage, &[("COLORTERM", "truecolor")]);
    terminal.press("?");
    terminal.wait_for("Help");
    assert!(began.elapsed() < Duration::from_millis(1500), "{:?}", began.elapsed());
    terminal.press("\x1b");
    terminal.wait("the list alone", |text| !text.contains("Help"));
    terminal.select("trainer");
    let row = terminal.bar();
    // Ours, in pieces too, and some that another program asked for: full of letters that would act.
    for answer in [
        "\x1b[?0u",
        "\x1b]11;rgb:ffff/ffff/",
        "ffff\x1b\\",
        "\x1b[?62;22;52c",
        "\x1b[1;9R",
        "\x1bP>|xsugb 3.4\x1b\\",
        "\x1bP1+r544e=78737571\x1b\\",
        "\x1b]10;rgb:bbbb/bbbb/bbbb\x07",
        "\x1b[>41;354;0c",
        "\x1b[?2026;2$y",
        "\x1b_Gi=1;sxu\x1b\\",
    ] {
        terminal.press(answer);
    }
    terminal.wait_written("38;2;5;80;174");
    terminal.wait_written(ENHANCED);
    terminal.press("?");
    let text = terminal.wait_for("Help");
    assert!(!text.contains("grouped") && !text.contains("undo"), "{text}");
    terminal.press("\x1b[27u");
    terminal.wait("the list alone", |text| !text.contains("Help"));
    assert_eq!(terminal.bar(), row);
    terminal.press("q");
    assert!(terminal.wait_end().success());
    is_given_back(&mut terminal);
    assert_eq!(stage.changes(), 0);
}

/// Who leaves at once leaves no answer behind, which the shell would take for typing.
#[test]
fn the_shell_gets_no_answer_that_was_for_us() {
    let stage = stage();
    let mut command = CommandBuilder::new("sh");
    command.env_clear();
    for (name, value) in stage.lab.environment() {
        command.env(name, value);
    }
    let rest = "stty -icanon -echo min 0 time 3; echo \"left:$(dd bs=99 count=1 2>/dev/null | od -An -c):\"";
    command.args(["-c", &format!("\"$0\"; {rest}"), binary()]);
    let mut terminal = Terminal::spawn_with(Answers::KITTY, command, 100, 30);
    terminal.press("q");
    terminal.wait_for("left::");
}

/// TUI-10: not one colour in all that is written, and nothing is asked of a terminal that can do nothing.
#[rstest]
#[case::no_color(&[("NO_COLOR", "1"), ("COLORTERM", "truecolor")], true)]
#[case::dumb(&[("TERM", "dumb"), ("COLORTERM", "truecolor")], false)]
fn no_colour_means_none(#[case] variables: &[(&str, &str)], #[case] asks: bool) {
    let stage = stage();
    let mut terminal = screen_in(Answers::USUAL, &stage, variables);
    terminal.select("trainer");
    terminal.press("?");
    terminal.wait_for("Help");
    terminal.press("\x1b");
    terminal.wait("the list alone", |text| !text.contains("Help"));
    for (key, shown) in [("s", "undo"), ("u", "taken back"), ("x", "Release trainer")] {
        terminal.press(key);
        terminal.wait_for(shown);
    }
    terminal.press("\x03");
    assert!(terminal.wait_end().success());
    is_given_back(&mut terminal);
    let written = terminal.wrote();
    let mut styles = 0;
    for (at, _) in written.match_indices("\x1b[") {
        let rest = &written[at + 2..];
        let end = rest.find(|c: char| !matches!(c, '0'..=';')).unwrap();
        if rest[end..].starts_with('m') {
            styles += 1;
            for number in rest[..end].split(';') {
                let number: u32 = if number.is_empty() { 0 } else { number.parse().unwrap() };
                assert!(matches!(number, 0..=29), "a colour: {:?}", &rest[..=end]);
            }
        }
    }
    assert!(styles > 10, "nothing is bold");
    assert!(!written.contains("\x1b]11;?"));
    assert_eq!(written.contains("\x1b[c"), asks);
}

/// TUI-10: with sixteen colours the palette alone is used.
#[test]
fn sixteen_colours_are_those_of_the_palette() {
    let stage = stage();
    let mut terminal = screen_in(Answers::USUAL, &stage, &[("TERM", "xterm")]);
    terminal.select("trainer");
    terminal.press("x");
    terminal.wait_for("Release trainer");
    assert!(!terminal.wrote().contains("38;2;"), "a colour that the terminal has not");
}

/// TUI-03: whatever the mouse tells, nothing panics and nothing is sent.
#[test]
fn the_mouse_on_and_beyond_the_edge_does_no_harm() {
    let stage = stage();
    let mut terminal = Terminal::start(&stage.lab, &[], 209, 51);
    terminal.wait_for("trainer");
    for event in [
        "\x1b[<35;210;50M",
        "\x1b[<0;209;51M",
        "\x1b[<0;209;51m",
        "\x1b[<0;1;52M",
        "\x1b[<0;1;52m",
        "\x1b[<64;501;501M",
        "\x1b[<65;65535;65535M",
        "\x1b[<0;0;0M",
        "\x1b[<0;99999;1M",
        "\x1b[M   ",
        "\x1b[M\x1f\x1f\x1f",
    ] {
        terminal.press(event);
    }
    terminal.press("?");
    terminal.wait_for("Help");
    terminal.press("\x03");
    assert!(terminal.wait_end().success());
    let written = terminal.wrote();
    for movement in ["\x1b[?1002h", "\x1b[?1003h"] {
        assert!(!written.contains(movement), "{movement:?}: every movement is told");
    }
    is_given_back(&mut terminal);
    assert_eq!(stage.changes(), 0);
}

/// A stage on which `ssh` is this script. It finds its own folder in `HOME`.
fn screen_with_ssh(stage: &Stage, answers: Answers, script: &str) -> Terminal {
    let ssh = program(stage, "ssh", script);
    let path = format!("{}:{}", ssh.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut terminal = screen_in(answers, stage, &[("PATH", &path)]);
    terminal.select("infer");
    terminal
}

/// A program of the person's own that does this.
fn program(stage: &Stage, name: &str, script: &str) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let folder = stage.lab.home.path().join("bin");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(name);
    std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    file
}

/// The list is there, keys are heard, and leaving gives back what the shell gave: `modes` are the terminal's
/// from before.
#[track_caller]
fn is_ours_again_and_given_back(stage: &Stage, terminal: &mut Terminal, modes: &str) {
    terminal.wait("the screen", |text| text.starts_with(" rentop") && text.contains("trainer"));
    terminal.wait_raw(true);
    terminal.press("?");
    terminal.wait_for("Help");
    terminal.press("\x03");
    assert!(terminal.wait_end().success());
    is_given_back(terminal);
    assert_eq!(terminal.modes(), modes, "the terminal's modes are not those from before");
    assert_eq!(stage.changes(), 0);
}

/// The terminal's modes before the program starts: it is started in the same kind of terminal.
fn modes_before() -> String {
    let mut command = CommandBuilder::new("sleep");
    command.arg("60");
    Terminal::spawn(command, 100, 30).modes()
}

#[test]
fn ssh_gets_the_terminal_and_gives_it_back() {
    let stage = stage();
    let script = "printf '%s\\n' \"$@\" > $HOME/args; echo here I am; read line; echo $line > $HOME/line; exit 1";
    let mut terminal = screen_with_ssh(&stage, Answers::KITTY, script);
    terminal.wait_written(ENHANCED);
    terminal.press("!");
    terminal.wait_for("here I am");
    is_given_back(&mut terminal);
    // The providers are asked meanwhile: only drawing and keys pause.
    let polls = || stage.worlds().into_iter().map(|world| world.lock().count("GET", "")).sum::<usize>();
    let before = polls();
    let began = Instant::now();
    while polls() == before {
        assert!(began.elapsed() < Duration::from_secs(30), "nobody is asked any more");
        terminal.listen(Duration::from_millis(100));
    }
    assert!(!terminal.text().contains("trainer"), "drawn over: {}", terminal.text());
    terminal.press("xyz\r");
    is_ours_again_and_given_back(&stage, &mut terminal, &modes_before());
    // What the command there said with its exit code is its own matter.
    assert!(!terminal.wrote().contains("ssh: "));
    let home = stage.lab.home.path();
    assert_eq!(std::fs::read_to_string(home.join("line")).unwrap(), "xyz\n");
    let args = std::fs::read_to_string(home.join("args")).unwrap();
    let args: Vec<&str> = args.lines().collect();
    assert!(matches!(args[..], [.., "-p", "22", "--", host] if host.starts_with("ubuntu@")), "{args:?}");
    // It may ask.
    assert!(!args.iter().any(|arg| arg.contains("BatchMode")), "{args:?}");
}

/// Whatever became of it, the terminal is as before, and what was typed blindly is no key.
#[rstest]
#[case::killed_in_a_mess(
    "printf '\\033[?1049h\\033[?1003h\\033[?1006h\\033[3;9r\\033(0\\033[?25l\\033[>31u'; stty raw -echo; kill -9 $$",
    "ssh: ended by signal 9"
)]
#[case::no_connection("echo it said why >&2; exit 255", "ssh: no connection, or it broke off (255)")]
#[case::typed_blindly("echo here I am; sleep 1; exit 255", "ssh: no connection")]
fn the_terminal_survives_what_ssh_does(#[case] script: &str, #[case] told: &str) {
    let stage = stage();
    let mut terminal = screen_with_ssh(&stage, Answers::KITTY, script);
    terminal.wait_written(ENHANCED);
    terminal.press("!");
    if script.contains("here I am") {
        terminal.wait_for("here I am");
        terminal.press("xx\rxq");
    }
    let text = terminal.wait_for(told);
    assert!(!text.contains("Release infer"), "{text}");
    is_ours_again_and_given_back(&stage, &mut terminal, &modes_before());
}

#[test]
fn an_ssh_that_is_not_there_is_told() {
    let stage = stage();
    let mut terminal = screen_in(Answers::USUAL, &stage, &[("PATH", "/nowhere")]);
    terminal.select("infer");
    terminal.press("!");
    terminal.wait_for("ssh: there is no such program");
    is_ours_again_and_given_back(&stage, &mut terminal, &modes_before());
}

/// The editor gets the terminal and the config, whatever becomes of it; what it left is checked.
#[rstest]
#[case::good("echo '# mine' >>\"$1\"", "the config is right")]
#[case::mistake("echo 'mouze = true' >>\"$1\"", "mouze")]
#[case::killed("printf '\\033[?1049h\\033[?1003h'; stty raw -echo; kill -9 $$", "ended by signal 9")]
fn an_editor_gets_the_config_and_gives_the_terminal_back(#[case] script: &str, #[case] told: &str) {
    let stage = stage();
    let editor = program(&stage, "edit", script);
    let variables = [("PATH", "/usr/bin:/bin"), ("EDITOR", editor.to_str().unwrap())];
    let mut terminal = screen_in(Answers::KITTY, &stage, &variables);
    terminal.wait_written(ENHANCED);
    terminal.press("E");
    terminal.wait_for(told);
    is_ours_again_and_given_back(&stage, &mut terminal, &modes_before());
}

/// Ctrl-C where `ssh` reads it as a signal ends `ssh` alone.
#[test]
fn ctrl_c_in_ssh_ends_ssh() {
    let stage = stage();
    let mut terminal =
        screen_with_ssh(&stage, Answers::USUAL, "trap 'exit 7' INT; echo here I am; while :; do sleep 0.05; done");
    terminal.press("!");
    terminal.wait_for("here I am");
    terminal.press("\x03");
    is_ours_again_and_given_back(&stage, &mut terminal, &modes_before());
}

/// A signal that ends us ends what has the terminal too, and the shell gets it in order.
#[rstest]
#[case("TERM", "echo $$ > $HOME/pid; echo here I am; exec sleep 600")]
#[case("HUP", "echo $$ > $HOME/pid; stty raw -echo; trap '' TERM HUP; echo here I am; while :; do sleep 0.05; done")]
fn a_signal_ends_us_and_ssh(#[case] signal: &str, #[case] script: &str) {
    let stage = stage();
    let mut terminal = screen_with_ssh(&stage, Answers::KITTY, script);
    terminal.press("!");
    terminal.wait_for("here I am");
    let began = Instant::now();
    terminal.signal(signal);
    assert_eq!(terminal.wait_end().exit_code(), 1);
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    is_given_back(&mut terminal);
    assert_eq!(terminal.modes(), modes_before());
    let pid = std::fs::read_to_string(stage.lab.home.path().join("pid")).unwrap();
    let alive =
        std::process::Command::new("kill").args(["-0", pid.trim()]).stderr(std::process::Stdio::null()).status();
    assert!(!alive.unwrap().success(), "ssh goes on without us");
}

/// Ctrl-Z where `ssh` reads it as a signal stops both, and `fg` brings both back.
#[test]
fn ctrl_z_in_ssh_stops_both_and_fg_brings_both_back() {
    let stage = stage();
    drop(screen_with_ssh(&stage, Answers::USUAL, "echo here I am; read line; echo $line > $HOME/line"));
    let mut command = CommandBuilder::new("sh");
    command.env_clear();
    for (name, value) in stage.lab.environment() {
        command.env(name, value);
    }
    command.env("PATH", format!("{}/bin:{}", stage.lab.home.path().display(), std::env::var("PATH").unwrap()));
    let session = "set -m; \"$0\"; echo shell again; read line; echo on with $line; fg; echo ended with $?";
    command.args(["-c", session, binary()]);
    let mut terminal = Terminal::spawn(command, 100, 30);
    terminal.select("infer");
    terminal.press("!");
    terminal.wait_for("here I am");
    terminal.press("\x1a");
    terminal.wait_for("shell again");
    terminal.press("it\r");
    terminal.wait_for("on with it");
    terminal.press("a line\r");
    terminal.wait("the screen", |text| text.starts_with(" rentop") && text.contains("trainer"));
    assert_eq!(std::fs::read_to_string(stage.lab.home.path().join("line")).unwrap(), "a line\n");
    terminal.press("q");
    terminal.wait_for("ended with 0");
}

/// The line goes into the clipboard of the machine that the terminal is on.
#[test]
fn the_ssh_line_is_copied_through_the_terminal() {
    let stage = stage();
    let mut terminal = screen_of(&stage, &[]);
    terminal.select("infer");
    terminal.press("y");
    // `ssh `, in the four letters that it makes in base 64.
    terminal.wait_written("\x1b]52;c;c3No");
}
