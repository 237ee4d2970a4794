//! A machine behind a stand-in for `ssh`: what would run there runs here, over a folder with results in it.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::Lab;

/// Each connection takes a moment, so that there is a time at which to be killed. In `connections` stands who called;
/// with a file `refuses`, nobody comes in.
const SSH: &str = r#"#!/bin/sh
while [ "$1" != -- ]; do shift; done
echo "$2" >> "$HOME/connections"
if [ -e "$HOME/refuses" ]; then
    cat "$HOME/refuses" >&2
    exit 255
fi
sleep 0.05
exec sh -c "$3"
"#;

/// A lab whose machines are all this one.
pub struct Results<'l> {
    lab: &'l Lab,
}

impl<'l> Results<'l> {
    /// Puts results on the machine, and the way to them into the config.
    pub fn of(lab: &'l Lab) -> Self {
        Results::with(lab, "")
    }

    /// The same with more lines in the config's section.
    pub fn with(lab: &'l Lab, lines: &str) -> Self {
        let results = Results { lab };
        let ssh = lab.home.path().join("bin/ssh");
        std::fs::create_dir_all(ssh.parent().unwrap()).unwrap();
        std::fs::write(&ssh, SSH).unwrap();
        std::fs::set_permissions(&ssh, std::fs::Permissions::from_mode(0o755)).unwrap();
        for (path, content) in [
            ("step-1.pt", vec![7u8; 300_000]),
            ("step-2.pt", (0..70_000u32).map(|n| (n % 251) as u8).collect()),
            ("logs/a run's \"log\".txt", b"loss 0.25\n".to_vec()),
            ("logs/empty", vec![]),
            ("\u{5b9e}\u{9a8c}/-notes", b"\xe5\xa5\xbd".to_vec()),
        ] {
            let file = results.folder().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, content).unwrap();
        }
        let section = format!(
            "\n[[checkpoint]]\nname = \"results\"\npaths = [\"{}\"]\nto = \"{}\"\nquiet = \"0s\"\n{lines}\n",
            results.folder().display(),
            results.copies().display()
        );
        std::fs::write(lab.config_file(), format!("{}{section}", lab.config)).unwrap();
        results
    }

    /// On the machine.
    pub fn folder(&self) -> PathBuf {
        self.lab.home.path().join("machine/out")
    }

    /// Here.
    pub fn copies(&self) -> PathBuf {
        self.lab.home.path().join("copies")
    }

    /// Connections so far.
    pub fn connections(&self) -> usize {
        std::fs::read_to_string(self.lab.home.path().join("connections")).unwrap_or_default().lines().count()
    }

    /// From now on `ssh` says this, and nobody comes in.
    pub fn refuse(&self, words: &str) {
        std::fs::write(self.lab.home.path().join("refuses"), words).unwrap();
    }

    /// What in a copy is not what is on the machine: a file that is missing, or another.
    pub fn lacking_in(&self, copy: &Path) -> Vec<String> {
        let there = files(&self.folder());
        let here = files(copy);
        let machine = self.folder();
        let of_the_machine = machine.strip_prefix("/").unwrap();
        let same = |path: &Path, content: &Vec<u8>| {
            let whole = of_the_machine.join(path);
            here.iter().any(|(own, copied)| own.ends_with(&whole) && copied == content)
        };
        there
            .iter()
            .filter(|(path, content)| !same(path, content))
            .map(|(path, _)| path.display().to_string())
            .collect()
    }
}

/// All files below a folder, by their path in it.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(folder).unwrap().to_owned(), std::fs::read(&path).unwrap());
            }
        }
    }
    found
}
