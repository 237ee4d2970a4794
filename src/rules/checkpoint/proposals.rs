//! What is likely to be worth a checkpoint, asked of a machine where nobody has said: where its biggest job works, and
//! which folders hold the newest big files.
//!
//! Whatever a machine answers is made up at will: a path counts only if a person can read all of it as it is.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;
use providers::text::clean;
use serde::{Deserialize, Serialize};

/// Where results are looked for, beside the folders that processes work in.
const ROOTS: [&str; 6] = ["workspace", "root", "home", "data", "mnt", "opt"];
/// What is there belongs to the system: a process that works there keeps its results elsewhere.
const SYSTEM: [&str; 14] =
    ["bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "run", "sbin", "sys", "usr", "var"];
/// So many are shown, and so many of them because somebody works there.
const MOST: usize = 7;
const MOST_WORKING: usize = 2;
/// A path that is longer fits no line.
const LONGEST: usize = 512;

/// A path that may be worth a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// Absolute, and clean: what is shown is what it is.
    pub path: String,
    /// A process with a GPU works there.
    pub works_here: bool,
    /// When the newest big file below it was written; `None` where none was found.
    pub newest: Option<Timestamp>,
    pub size: Size,
}

/// How much a path holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Size {
    /// It could not be counted, or not in time.
    #[default]
    Unknown,
    /// It is not there.
    Missing,
    /// Room that it takes on the disk, in bytes.
    Bytes(u64),
}

/// The script that looks for paths, for the root of a machine.
pub fn look() -> String {
    let below = ROOTS.map(|root| format!("/{root}/*")).join("|");
    include_str!("proposals.sh").replace("{ROOTS}", &ROOTS.join(" ")).replace("{BELOW}", &below)
}

/// The script that measures paths, for the root of a machine.
pub fn measure(paths: &[String]) -> String {
    let mut script = String::from(
        "LC_ALL=C; export LC_ALL\n\
         run() { if command -v timeout > /dev/null 2>&1; then timeout \"$@\"; else shift; \"$@\"; fi; }\n\
         size() {\n\
         if [ -d \"$2\" ]; then set -- \"$1\" \"$2/\"; elif [ ! -e \"$2\" ]; then echo \"$1 missing\"; return; fi\n\
         s=$(run 8 du -skx \"$2\" 2> /dev/null | tail -n 1)\n\
         echo \"$1 ${s%%[!0-9]*}\"\n\
         }\n",
    );
    for (number, path) in paths.iter().enumerate() {
        script.push_str(&format!("size {number} {}\n", shell_words::quote(&format!(".{path}"))));
    }
    script
}

/// How much paths hold, in their order, by what was answered to [`measure`].
pub fn sizes<'a>(lines: impl Iterator<Item = &'a str>, paths: usize) -> Vec<Size> {
    let mut sizes = vec![Size::Unknown; paths];
    for (number, size) in lines.filter_map(|line| line.trim_end().split_once(' ')) {
        let Some(known) = number.parse().ok().and_then(|number: usize| sizes.get_mut(number)) else { continue };
        *known = match (size, size.parse::<u64>()) {
            ("missing", _) => Size::Missing,
            (_, Ok(kib)) => Size::Bytes(kib.saturating_mul(1024)),
            (_, Err(_)) => Size::Unknown,
        };
    }
    sizes
}

/// What to propose, most likely first, by what was answered to [`look`]: not measured yet.
pub fn found<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<Proposal> {
    let (mut working, mut files) = (BTreeMap::<String, u64>::new(), Vec::new());
    for line in lines {
        let mut words = line.splitn(3, ' ');
        let (word, number) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let rest = words.next().unwrap_or_default();
        match word {
            "cwd" => {
                let parts = parts(rest);
                let of_system = parts.first().is_none_or(|first| SYSTEM.contains(first));
                if let Some(path) = (!of_system).then(|| readable(&parts)).flatten() {
                    // Its memory may not be told.
                    *working.entry(path).or_default() += number.parse().unwrap_or(0);
                }
            }
            "big" => {
                let at = number.parse().ok().and_then(|second| Timestamp::from_second(second).ok());
                // The size stands before the name.
                files.extend(at.zip(rest.split_once(' ')).map(|(at, (_, path))| (at, parts(path))));
            }
            _ => {}
        }
    }
    let mut working: Vec<_> = working.into_iter().collect();
    working.sort_by_key(|(_, memory)| Reverse(*memory));
    let mut proposals: Vec<Proposal> = working
        .into_iter()
        .take(MOST_WORKING)
        .map(|(path, _)| Proposal { path, works_here: true, newest: None, size: Size::Unknown })
        .collect();
    for (path, newest) in folders(files) {
        match proposals.iter().position(|proposal| proposal.path == path) {
            Some(at) => proposals[at].newest = Some(newest),
            None => proposals.push(Proposal { path, works_here: false, newest: Some(newest), size: Size::Unknown }),
        }
    }
    proposals.truncate(MOST);
    proposals
}

/// The folders of big files with the time of their newest, the newest first. Folders that differ in numbers only, as
/// those of one training's steps do, are one: what they have in common.
fn folders(files: Vec<(Timestamp, Vec<&str>)>) -> Vec<(String, Timestamp)> {
    let mut alike: BTreeMap<String, (Timestamp, Vec<&str>, Vec<&str>)> = BTreeMap::new();
    for (at, file) in files {
        let Some((_, folder)) = file.split_last() else { continue };
        // The whole of such a folder is hardly meant: what lies in it by itself is the file.
        let own = if is_root(folder) { &file[..] } else { folder };
        let pattern: String = own.join("/").chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        let pattern = squeezed(&pattern);
        let (newest, of_newest, common) = alike.entry(pattern).or_insert_with(|| (at, own.to_vec(), own.to_vec()));
        if at > *newest {
            (*newest, *of_newest) = (at, own.to_vec());
        }
        common.truncate(common.iter().zip(own).take_while(|(a, b)| a == b).count());
    }
    let mut folders = BTreeMap::<String, Timestamp>::new();
    for (newest, of_newest, common) in alike.into_values() {
        let folder = if is_root(&common) { of_newest } else { common };
        if let Some(path) = readable(&folder) {
            let known = folders.entry(path).or_insert(newest);
            *known = newest.max(*known);
        }
    }
    let mut folders: Vec<_> = folders.into_iter().collect();
    folders.sort_by_key(|(_, newest)| Reverse(*newest));
    folders
}

/// Numbers of any length are one digit.
fn squeezed(pattern: &str) -> String {
    let mut squeezed = String::new();
    for c in pattern.chars() {
        if c != '0' || !squeezed.ends_with('0') {
            squeezed.push(c);
        }
    }
    squeezed
}

fn parts(path: &str) -> Vec<&str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".").collect()
}

/// One of the places that are searched, or somebody's home.
fn is_root(folder: &[&str]) -> bool {
    match folder {
        [] => true,
        [one] => ROOTS.contains(one),
        ["home", _] => true,
        _ => false,
    }
}

/// The path, or the nearest one above it whose name hides nothing; `None` when that is one of the places that are
/// searched.
fn readable(parts: &[&str]) -> Option<String> {
    let plain = |part: &&&str| clean(part) == **part && !part.contains('\u{fffd}') && **part != "..";
    let plain = parts.iter().take_while(plain).count();
    if plain < parts.len() && is_root(&parts[..plain]) {
        return None;
    }
    let path = format!("/{}", parts[..plain].join("/"));
    (plain > 0 && path.len() <= LONGEST).then_some(path)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn paths(answer: &str) -> Vec<String> {
        found(answer.lines()).into_iter().map(|proposal| proposal.path).collect()
    }

    #[test]
    fn the_job_with_the_most_memory_comes_first_and_then_the_newest_folder() {
        let answer = "cwd 4000 /root/small\ncwd 9000 /workspace/train\ncwd 9000 /workspace/train\ncwd 17000 /srv/third\n\
            big 1764000100 20000000 ./workspace//old/a.pt\nbig 1764000300 20000000 ./workspace/train/b.pt\n\
            big 1764000200 20000000 ./data/runs/c.pt\n";
        let found = found(answer.lines());
        let at = |second| Some(Timestamp::from_second(second).unwrap());
        let one = |path: &str, works_here, newest| Proposal {
            path: path.to_owned(),
            works_here,
            newest,
            size: Size::Unknown,
        };
        let expected = [
            one("/workspace/train", true, at(1_764_000_300)),
            one("/srv/third", true, None),
            one("/data/runs", false, at(1_764_000_200)),
            one("/workspace/old", false, at(1_764_000_100)),
        ];
        assert_eq!(found, expected);
    }

    #[rstest]
    #[case::nothing("", &[])]
    #[case::greeting("Welcome to the machine\nbig news today\ncwd\nbig\n", &[])]
    #[case::system("cwd 100 /usr/src\ncwd 100 /\ncwd 100 /var/lib/x\ncwd 1 /app", &["/app"])]
    #[case::memory_untold("cwd [N/A] /app", &["/app"])]
    #[case::blanks("big 5 20000000 ./data/my runs/a b.pt", &["/data/my runs"])]
    #[case::chinese("big 5 20000000 ./data/实验/权重.pt", &["/data/实验"])]
    #[case::quotes("big 5 20000000 ./data/it's $(here)/a", &["/data/it's $(here)"])]
    #[case::line_break("big 5 20000000 ./data/a/b\nc/d.pt", &["/data/a"])]
    #[case::made_up("big 5 20000000 ./data/a/b\nbig 9 1 ../../etc/x", &["/data/a"])]
    #[case::escape("big 5 20000000 ./data/a/\u{1b}[31mred/d.pt", &["/data/a"])]
    #[case::reversed("big 5 20000000 ./data/a/\u{202e}tp.x/d.pt", &["/data/a"])]
    #[case::only_a_root_is_readable("big 5 20000000 ./data/\u{7}/d.pt", &[])]
    #[case::no_text("big 5 20000000 ./data/a/\u{fffd}/d.pt", &["/data/a"])]
    #[case::time("big soon 20000000 ./data/a/d.pt\nbig 99999999999999999999 1 ./data/b/c", &[])]
    #[case::file_of_a_root("big 5 1 ./workspace/m.pt\nbig 4 1 ./home/me/n.pt", &["/workspace/m.pt", "/home/me/n.pt"])]
    #[case::steps(
        "big 7 1 ./data/out/step-200/m.pt\nbig 5 1 ./data/out/step-1000/m.pt\nbig 6 1 ./data/out/final/m.pt",
        &["/data/out", "/data/out/final"]
    )]
    #[case::steps_of_two_levels(
        "big 7 1 ./data/out/ckpt-2/global2/m.pt\nbig 5 1 ./data/out/ckpt-1/global1/m.pt",
        &["/data/out"]
    )]
    #[case::steps_of_a_root("big 7 1 ./workspace/step-2/m\nbig 5 1 ./workspace/step-1/m", &["/workspace/step-2"])]
    fn only_what_a_person_can_read_is_proposed(#[case] answer: &str, #[case] expected: &[&str]) {
        assert_eq!(paths(answer), expected);
    }

    #[test]
    fn no_more_than_a_window_holds_are_proposed() {
        let letter = |n: u32| char::from_u32('a' as u32 + n).unwrap();
        let answer: String = (0..20).map(|n| format!("big {n} 1 ./data/{}/x.pt\n", letter(n))).collect();
        let found = paths(&answer);
        assert_eq!((found.len(), found[0].as_str()), (MOST, "/data/t"));
    }

    #[test]
    fn sizes_are_of_the_path_with_their_number() {
        let answer = "hello there\n2 missing\n0 12\n9 5\n1 \n";
        let expected = [Size::Bytes(12 * 1024), Size::Unknown, Size::Missing, Size::Unknown];
        assert_eq!(sizes(answer.lines(), 4), expected);
    }

    /// Runs a script as it runs on a machine whose root is this folder.
    #[cfg(unix)]
    fn answer(root: &std::path::Path, script: &str) -> String {
        let mut command = std::process::Command::new("/bin/sh");
        let path = format!("{}/bin:{}", root.display(), std::env::var("PATH").unwrap());
        command.arg("-c").arg(script).current_dir(root).env("PATH", path);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }

    /// A machine with a job whose number the vendor's tool tells, or not.
    #[cfg(unix)]
    fn machine(tool: &str) -> tempfile::TempDir {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let machine = tempfile::tempdir().unwrap();
        let at = |path: &str| machine.path().join(path);
        for folder in ["bin", "proc/71/fd", "proc/72/fd", "workspace/tr ain/out", "workspace/.cache", "root", "usr/x"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        std::fs::write(at("bin/nvidia-smi"), tool).unwrap();
        std::fs::set_permissions(at("bin/nvidia-smi"), std::fs::Permissions::from_mode(0o755)).unwrap();
        symlink("/workspace/tr ain", at("proc/71/cwd")).unwrap();
        symlink("/dev/nvidia0", at("proc/71/fd/5")).unwrap();
        symlink("/usr/x", at("proc/72/cwd")).unwrap();
        symlink("/dev/null", at("proc/72/fd/0")).unwrap();
        for file in ["workspace/tr ain/out/it's.pt", "workspace/.cache/model.bin"] {
            std::fs::File::create(at(file)).unwrap().set_len(11 << 20).unwrap();
        }
        std::fs::write(at("workspace/tr ain/out/small.json"), "{}").unwrap();
        machine
    }

    #[cfg(unix)]
    #[rstest]
    #[case::its_number("#!/bin/sh\necho '71, 18000'\n")]
    #[case::number_of_the_host("#!/bin/sh\necho '72, 18000'\necho '4711, [N/A]'\n")]
    #[case::no_tool("#!/bin/sh\necho 'no device'; exit 9\n")]
    fn the_script_finds_where_a_job_works_and_its_newest_big_files(#[case] tool: &str) {
        let machine = machine(tool);
        let answer = answer(machine.path(), &look());
        assert_eq!(paths(&answer), ["/workspace/tr ain", "/workspace/tr ain/out"], "{answer}");
        assert!(found(answer.lines())[0].works_here, "{answer}");
    }

    #[cfg(unix)]
    #[test]
    fn the_script_measures_what_is_there() {
        let machine = machine("");
        let there = "/workspace/tr ain/o'ne".to_owned();
        std::fs::write(machine.path().join(&there[1..]), vec![7; 300 << 10]).unwrap();
        let paths = [there, "/nowhere; echo 0 1".to_owned()];
        let sizes = sizes(answer(machine.path(), &measure(&paths)).lines(), 2);
        let Size::Bytes(bytes) = sizes[0] else { panic!("{sizes:?}") };
        assert!((300 << 10..=512 << 10).contains(&bytes), "{bytes}");
        assert_eq!(sizes[1], Size::Missing);
    }

    proptest! {
        #[test]
        fn whatever_a_machine_answers_what_is_proposed_is_absolute_and_clean(answer in "(cwd|big) [0-9]{1,9} (1 )?\\PC{0,40}|\\PC*") {
            for path in paths(&answer) {
                prop_assert!(path.starts_with('/') && clean(&path) == path);
                prop_assert!(!path.split('/').any(|part| part == ".." || part == "."));
            }
        }
    }
}
