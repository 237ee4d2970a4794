//! What the README says of keys and providers is what the program says.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use providers::PROVIDERS;
use providers::money::Currency;
use rentop::app::action::{Action, Code, Key};
use rentop::app::keymap::{Binding, Bindings, Place, key_name};
use rentop::config::Language;
use rentop::ui::{Look, text};

const BEGIN: &str = "<!-- keys -->";
const END: &str = "<!-- /keys -->";

fn readme() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap()
}

/// The table of keys, as the README is to have it.
fn table() -> String {
    let environment = |name: &str| (name == "LANG").then(|| OsString::from("C.UTF-8"));
    let look = Look::of_environment(Language::English, &environment);
    let places = [
        (Place::Fleet, "in Fleet"),
        (Place::Lists, "in Fleet and Storage"),
        (Place::Spend, "in Spend"),
        (Place::Budgets, "in Budgets"),
        (Place::Alerts, "in Alerts"),
        (Place::Activity, "in Activity"),
        (Place::Popup, "in the window of alerts"),
        (Place::Everywhere, "everywhere"),
        (Place::Plan, "in a plan"),
    ];
    let mut table = String::from("| key | where | name | what it does |\n|---|---|---|---|\n");
    for (place, told) in places {
        for binding in Bindings::default().all().iter().filter(|binding| binding.place == place) {
            let help = text::message(&binding.help, &look, Currency::USD);
            table.push_str(&format!("| {} | {told} | `{}` | {help} |\n", keys(binding), binding.action.word()));
        }
    }
    table
}

fn keys(binding: &Binding) -> String {
    binding.keys.iter().map(|key| format!("`{}`", key_name(*key))).collect::<Vec<_>>().join(" ")
}

/// Run with `RENTOP_WRITE_README=1` to bring the table up to date.
#[test]
fn the_readmes_table_of_keys_is_the_programs() {
    let readme = readme();
    let from = readme.find(BEGIN).expect("README.md marks where the table begins") + BEGIN.len();
    let to = readme.find(END).expect("README.md marks where the table ends");
    if std::env::var_os("RENTOP_WRITE_README").is_some() {
        let written = format!("{}\n{}{}", &readme[..from], table(), &readme[to..]);
        std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md"), written).unwrap();
        return;
    }
    let wanted = table();
    assert_eq!(readme[from..to].trim(), wanted.trim(), "RENTOP_WRITE_README=1 writes it:\n{wanted}");
}

/// Every action, so that one without a key is found. A new one does not compile until it is here.

#[test]
fn every_action_has_a_key() {
    for action in Action::ALL.iter().copied() {
        assert!(
            Bindings::default().all().iter().any(|binding| binding.action == action && !binding.keys.is_empty()),
            "{action:?}"
        );
    }
}

#[test]
fn every_key_has_a_name_of_its_own() {
    let mut names = BTreeSet::new();
    let bindings = Bindings::default();
    let named: Vec<Key> = bindings.all().iter().flat_map(|binding| binding.keys.iter().copied()).collect();
    let keys: BTreeSet<String> = named.iter().map(|key| format!("{key:?}")).collect();
    for key in named {
        assert!(key.code != Code::Other && !key_name(key).is_empty());
        names.insert(key_name(key));
    }
    assert_eq!(names.len(), keys.len(), "two keys share a name");
}

#[test]
fn every_provider_stands_in_the_readme() {
    let readme = readme();
    for entry in PROVIDERS {
        let row = readme.lines().find(|line| line.starts_with('|') && line.contains(entry.title));
        let row = row.unwrap_or_else(|| panic!("no row of README.md's table names {}", entry.title));
        assert!(row.contains(&format!("`{}`", entry.name)), "the row does not say what the config calls it: {row}");
        for variable in entry.key_env {
            assert!(row.contains(&format!("`{variable}`")), "the row does not name {variable}: {row}");
        }
    }
}
