//! The README's pictures: taken from the real `rentop demo` in a pseudo-terminal, and checked.

#![cfg(unix)]

mod check;
#[path = "../support/mod.rs"]
mod support;
mod svg;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use portable_pty::CommandBuilder;
use rentop::ui::glyphs::UNICODE;
use support::binary;
use support::terminal::{Answers, Terminal};
use svg::{DARK, Ground, LIGHT};

const FOLDER: &str = ".ci/pictures";
const WIDTH: u16 = 120;
const HEIGHT: u16 = 34;
/// The largest picture, in bytes.
const LARGEST: usize = 60_000;

/// One run of the demo and what is taken of it.
struct Run {
    language: &'static str,
    ground: &'static Ground,
    /// What the terminal answers when it is asked for its background: it counts whatever the environment says.
    background: &'static str,
    shots: &'static [Shot],
}

struct Shot {
    file: &'static str,
    title: &'static str,
    /// The row on which the cursor is put.
    row: &'static str,
    /// Pressed then; `esc` brings the list back.
    keys: &'static str,
    /// Whether the screen shows what the keys asked for.
    shows: fn(&str) -> bool,
}

const RUNS: [Run; 3] = [
    Run {
        language: "en",
        ground: &DARK,
        background: "rgb:1717/1a1a/1f1f",
        shots: &[
            Shot {
                file: "fleet.svg",
                title: "rentop: the fleet",
                row: "llama-ft",
                keys: "",
                shows: |text| text.contains("k3llamaft08x01"),
            },
            Shot {
                file: "storage.svg",
                title: "rentop: what costs without working",
                row: "llama-ft",
                keys: "3",
                shows: |text| !text.contains("UTIL"),
            },
            Shot {
                file: "spend.svg",
                title: "rentop: what was spent",
                row: "llama-ft",
                keys: "2",
                shows: |text| text.contains("SHARE") && text.contains("billed"),
            },
            Shot {
                file: "plan.svg",
                title: "rentop: the plan of a release",
                row: "llama-ft",
                keys: "x",
                shows: |text| text.contains("Release llama-ft"),
            },
        ],
    },
    Run {
        language: "zh-CN",
        ground: &DARK,
        background: "rgb:1717/1a1a/1f1f",
        shots: &[Shot {
            file: "fleet-zh.svg",
            title: "rentop：全部实例",
            row: "llama-ft",
            keys: "",
            shows: |text| text.contains("k3llamaft08x01"),
        }],
    },
    Run {
        language: "en",
        ground: &LIGHT,
        background: "rgb:ffff/ffff/ffff",
        shots: &[Shot {
            file: "fleet-light.svg",
            title: "rentop: the fleet",
            row: "llama-ft",
            keys: "",
            shows: |text| text.contains("k3llamaft08x01"),
        }],
    },
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Run with `RENTOP_WRITE_PICTURES=1` to take the pictures anew; `.ci/pictures/make` does.
#[test]
fn the_readmes_pictures_are_there_and_whole() {
    if std::env::var_os("RENTOP_WRITE_PICTURES").is_some() {
        take_pictures();
    }
    let taken: BTreeSet<String> =
        RUNS.iter().flat_map(|run| run.shots).map(|shot| format!("{FOLDER}/{}", shot.file)).collect();
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    assert_eq!(named(&readme), taken, "the README shows other pictures than are taken");
    let there: BTreeSet<String> = std::fs::read_dir(root().join(FOLDER))
        .unwrap()
        .map(|entry| format!("{FOLDER}/{}", entry.unwrap().file_name().to_string_lossy()))
        .filter(|path| path.ends_with(".svg"))
        .collect();
    assert_eq!(there, taken, "the folder holds other pictures than are taken");
    for path in &taken {
        let svg = std::fs::read_to_string(root().join(path)).unwrap();
        check::is_whole(&svg).unwrap_or_else(|problem| panic!("{path}: {problem}"));
        assert_eq!(check::trace(&svg), None, "{path} names the machine that it was taken on");
        assert!(svg.len() <= LARGEST, "{path} has {} bytes", svg.len());
        assert!(check::words(&svg).len() > 40, "{path} shows next to nothing");
    }
}

/// Those who do not see a picture are told what it shows.
#[test]
fn every_picture_of_the_readme_is_told_in_words() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let markdown = readme.split("![").skip(1).filter_map(|part| part.split_once("]("));
    let html = readme.split("<img ").skip(1).filter_map(|part| part.split_once("alt=\"")?.1.split_once('"'));
    let told: Vec<(&str, &str)> = markdown.chain(html).collect();
    // The light picture stands for the dark one and shares its words.
    assert_eq!(told.len(), RUNS.iter().flat_map(|run| run.shots).count() - 1);
    for (alt, _) in told {
        assert!(alt.split_whitespace().count() >= 8, "`{alt}` tells too little");
    }
}

/// The pictures that a page names.
fn named(page: &str) -> BTreeSet<String> {
    let files = page.split(FOLDER).skip(1).filter_map(|part| Some(part.split_once(".svg")?.0));
    files.filter(|name| !name.contains(char::is_whitespace)).map(|name| format!("{FOLDER}{name}.svg")).collect()
}

/// Takes all pictures, each run beside the others: nearly all of their time is spent waiting.
fn take_pictures() {
    std::thread::scope(|scope| {
        for run in &RUNS {
            scope.spawn(|| take(run));
        }
    });
}

fn take(run: &Run) {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = demo(home.path(), run);
    wait_until_settled(&mut terminal);
    for shot in run.shots {
        terminal.select(shot.row);
        terminal.press(shot.keys);
        terminal.wait(shot.title, shot.shows);
        // The rest of a frame whose beginning is there.
        while terminal.take(Duration::from_millis(200)) {}
        let svg = svg::picture(terminal.screen(), run.ground, shot.title);
        for name in names_of_this_machine() {
            assert!(!check::tells(&svg, &name), "{} shows `{name}`:\n{}", shot.file, terminal.text());
        }
        std::fs::write(root().join(FOLDER).join(shot.file), svg).unwrap();
        if !shot.keys.is_empty() {
            terminal.press("\x1b");
            terminal.wait("the list", |text| !(shot.shows)(text));
        }
    }
    terminal.press("q");
    assert!(terminal.wait_end().success());
}

/// The demo in a terminal of all colours, with nothing of the person who takes its picture.
fn demo(home: &Path, run: &Run) -> Terminal {
    let mut command = CommandBuilder::new(binary());
    command.args(["demo"]);
    command.env_clear();
    command.env("HOME", home);
    command.env("TMPDIR", home);
    command.cwd(home);
    for (name, value) in [
        ("RENTOP_LANG", run.language),
        ("COLORTERM", "truecolor"),
        ("TERM", "xterm-256color"),
        ("LANG", "C.UTF-8"),
        ("TZ", "UTC"),
    ] {
        command.env(name, value);
    }
    Terminal::spawn_with(Answers { background: Some(run.background), ..Answers::USUAL }, command, WIDTH, HEIGHT)
}

/// Waits until the demo has told its story: every machine is up, and one was outbid.
fn wait_until_settled(terminal: &mut Terminal) {
    let began = Instant::now();
    while !is_settled(&terminal.text()) {
        assert!(began.elapsed() < Duration::from_secs(180), "the demo does not settle:\n{}", terminal.text());
        terminal.take(Duration::from_millis(200));
    }
}

fn is_settled(text: &str) -> bool {
    let row = |name: &str| text.lines().find(|line| line.contains(name));
    let starts = text.contains(UNICODE.provisioning);
    let outbid = row("sd-sweep").is_some_and(|line| line.contains(UNICODE.reclaimed));
    row("llama-ft").is_some() && row("infer-a10").is_some() && outbid && !starts
}

fn names_of_this_machine() -> Vec<String> {
    let host = gethostname::gethostname().to_string_lossy().into_owned();
    let names = ["USER", "LOGNAME", "HOME"].into_iter().filter_map(|name| std::env::var(name).ok());
    names.chain([host]).filter(|name| !name.is_empty()).collect()
}
