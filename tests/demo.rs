//! The demo, end to end: the real binary in a pseudo-terminal, whose checkpoints are real copies by the same code.

#![cfg(unix)]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use portable_pty::CommandBuilder;
use support::binary;
use support::terminal::Terminal;

/// The title of the plan.
const PLAN: &str = "then release llama-ft";
/// Longer than a key has to stay away to count anew.
const A_MOMENT: Duration = Duration::from_secs(1);
/// Whatever window is open.
const LEAVE: &str = "\x03";

fn demo(home: &Path, temp: &Path) -> Terminal {
    let mut command = CommandBuilder::new(binary());
    command.args(["demo"]);
    command.env_clear();
    for (name, value) in [
        ("HOME", home.display().to_string()),
        ("TMPDIR", temp.display().to_string()),
        ("PATH", std::env::var("PATH").unwrap_or_default()),
        ("TERM", "xterm-256color".to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
    ] {
        command.env(name, value);
    }
    command.cwd(home);
    let mut terminal = Terminal::spawn(command, 160, 40);
    terminal.wait_for("infer-a10");
    terminal
}

/// Opens a window by a key. Alerts that come up meanwhile keep such keys from what lies beneath: they are put off.
fn open(terminal: &mut Terminal, key: &str, title: &str) {
    for _ in 0..20 {
        terminal.press("\x1b");
        terminal.listen(A_MOMENT);
        terminal.press(key);
        terminal.listen(A_MOMENT);
        if terminal.text().contains(title) {
            return;
        }
    }
    panic!("`{title}` does not open:\n{}", terminal.text());
}

/// The only copy of a machine, below what the demo keeps.
fn copy(temp: &Path, account: &str, machine: &str) -> PathBuf {
    let only = |folder: &Path, prefix: &str| {
        let inside = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let named = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(prefix);
        let mut fitting: Vec<PathBuf> = inside.filter(named).collect();
        assert_eq!(fitting.len(), 1, "{fitting:?}");
        fitting.remove(0)
    };
    let copies = only(temp, "rentop-demo-").join("copies").join(account);
    only(&only(&copies, machine), "")
}

fn verify(copy: &Path) -> bool {
    Command::new(binary()).arg("verify").arg(copy).output().unwrap().status.success()
}

/// The file system's names of what was copied, below the copy's folder.
fn has(copy: &Path, name: &str) -> bool {
    let mut folders = vec![copy.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_name().to_str() == Some(name) {
                return true;
            }
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            }
        }
    }
    false
}

#[test]
fn a_machine_of_the_demo_is_released_once_its_results_are_here() {
    let (home, temp) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut terminal = demo(home.path(), temp.path());
    terminal.select("llama-ft");
    open(&mut terminal, "R", PLAN);
    // A key that follows at once is one that is held, and a plan that has just changed is read first.
    while terminal.text().contains(PLAN) {
        terminal.listen(A_MOMENT);
        terminal.press("R");
        terminal.listen(A_MOMENT);
    }
    terminal.wait_for("copying");
    terminal.wait_for("released");
    let copy = copy(temp.path(), "runpod-team", "llama-ft");
    for name in ["manifest.json", "step-1000.pt", "step-2000.pt", "latest.pt", "it's final.json", "样本 1.txt"] {
        assert!(has(&copy, name), "{name} in {}", copy.display());
    }
    assert!(verify(&copy));
    terminal.press(LEAVE);
    assert!(terminal.wait_end().success());
    assert!(terminal.wrote().contains("its copies in"));
    for folder in [&home, &temp] {
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[test]
fn what_the_config_says_nothing_of_is_looked_at_and_copied_by_choice() {
    let (home, temp) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut terminal = demo(home.path(), temp.path());
    terminal.select("sd-lora");
    open(&mut terminal, "c", "Save results of sd-lora");
    let text = terminal.wait_for("14.7 MB");
    assert!(text.contains("/workspace/train") && text.contains("/workspace/out"), "{text}");
    // The programs of the job are not wanted; the results are.
    terminal.press(" ");
    terminal.wait_for("1 path, 14.7 MB");
    terminal.press("\r");
    terminal.wait("the end of the copy", |text| text.contains("copying") || text.contains("checking"));
    terminal.wait("the age of the copy", |text| {
        text.lines().any(|line| line.contains("sd-lora") && !line.contains("never") && line.contains(" s"))
            && !text.contains("copying")
            && !text.contains("checking")
            && !text.contains("preparing")
    });
    let copy = copy(temp.path(), "vast-me", "sd-lora");
    assert!(has(&copy, "manifest.json") && has(&copy, "step-2000.pt") && !has(&copy, "train.py"));
    assert!(verify(&copy));
    terminal.press(LEAVE);
    assert!(terminal.wait_end().success());
}
