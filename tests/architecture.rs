//! Imports run one way: `main → cli → runtime → ui → app → rules → providers`, with `config` and `ledger`
//! beside `app`. Read from the `use` lines and the paths in the code.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What each part of the program may name.
const MAY: &[(&str, &[&str])] = &[
    ("cli", &["app", "config", "rules", "runtime", "ui", "ledger"]),
    ("runtime", &["app", "config", "rules", "ui", "ledger"]),
    ("ui", &["app", "config", "rules"]),
    ("app", &["rules"]),
    ("ledger", &["rules", "config"]),
    ("config", &["rules"]),
    ("rules", &[]),
];

/// Crates that only some parts may touch.
const CRATES: &[(&str, &[&str])] = &[
    ("tokio", &["runtime", "cli", "config"]),
    ("rusqlite", &["ledger"]),
    ("refinery", &["ledger"]),
    ("ratatui", &["ui", "runtime"]),
    ("crossterm", &["runtime", "ui"]),
    ("clap", &["cli"]),
    ("reqwest", &[]),
    ("secrecy", &["config"]),
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The part of the program that a file belongs to.
fn part(file: &Path, root: &Path) -> Option<String> {
    let relative = file.strip_prefix(root).unwrap();
    let first = relative.components().next()?.as_os_str().to_string_lossy().into_owned();
    let name = first.trim_end_matches(".rs").to_owned();
    (!matches!(name.as_str(), "main" | "lib")).then_some(name)
}

/// The text without comments and without its unit tests, which may reach further.
fn code(file: &Path) -> String {
    let text = std::fs::read_to_string(file).unwrap();
    let tests = text.find("#[cfg(test)]\nmod ").unwrap_or(text.len());
    text[..tests].lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The names that follow `crate::`.
fn named(code: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let group = &group[..group.find('}').unwrap_or(group.len())];
            names.extend(group.split(',').map(|name| name.trim().split("::").next().unwrap_or_default().to_owned()));
        } else {
            names.insert(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
        }
    }
    names
}

#[test]
fn imports_run_one_way() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut wrong = Vec::new();
    for file in &files {
        let Some(part) = part(file, &root) else { continue };
        let shown = file.strip_prefix(&root).unwrap().display();
        let Some((_, may)) = MAY.iter().find(|(name, _)| *name == part) else {
            wrong.push(format!("src/{shown}: `{part}` has no place in the order of imports"));
            continue;
        };
        let code = code(file);
        for name in named(&code) {
            let known = MAY.iter().any(|(part, _)| *part == name);
            if known && name != part && !may.contains(&name.as_str()) {
                wrong.push(format!("src/{shown} names src/{name}: `{part}` may not know `{name}`"));
            }
        }
        for (name, parts) in CRATES {
            let used = code.contains(&format!("{name}::")) || code.contains(&format!("use {name}"));
            if used && !parts.contains(&part.as_str()) {
                wrong.push(format!("src/{shown} uses the crate {name}, which is not for `{part}`"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(files.len() > 20, "the sources were not found");
}

#[test]
fn the_provider_crate_knows_no_screen_and_no_database() {
    let manifest = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("providers/Cargo.toml")).unwrap();
    for forbidden in ["ratatui", "crossterm", "rusqlite", "rentop", "clap"] {
        assert!(!manifest.contains(forbidden), "providers/Cargo.toml names {forbidden}");
    }
}

#[test]
fn only_the_client_and_the_channels_open_a_secret() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    sources(&root.join("providers"), &mut files);
    let opened: Vec<String> = files
        .iter()
        .filter(|file| code(file).contains("expose_secret"))
        .map(|file| file.strip_prefix(root).unwrap().display().to_string())
        .filter(|file| !file.ends_with("tests.rs"))
        .collect();
    let mut opened = opened;
    opened.sort_unstable();
    assert_eq!(opened, ["providers/channels.rs", "providers/http.rs"]);
}
