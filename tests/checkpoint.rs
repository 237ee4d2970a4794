//! Checkpoints over a stand-in for `ssh`, which runs every script in a folder that plays a machine's root.
#![cfg(unix)]

mod support;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::SignedDuration;
use providers::model::{Identity, ResourceKind, SshEndpoint};
use rentop::app::Event;
use rentop::app::event::WorldEvent;
use rentop::rules::checkpoint::{CommandProof, Job, Method, Progress, Proof, Recipe, Stage, Told, Trouble, Which};
use rentop::rules::saga::OpId;
use rentop::rules::streams::{self, Target};
use rentop::runtime::Inbox;
use rentop::runtime::checkpoint::Copies;
use rentop::runtime::streams::{KNOWN_HOSTS, Streams};
use rstest::rstest;
use support::stage::wait_until;

/// The longest wait for something that must come.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs the script where the machine's root is, with its tools alone where it has any of its own. After a number of
/// bytes in `cut` the connection is lost, once.
const SSH: &str = r#"#!/bin/sh
here=$(dirname "$0")
for word; do command=$word; done
case $command in "exec sh -c 'cd /
"*) ;; *) echo "another script: $command" >> "$here/wrong"; exit 255 ;; esac
echo "$command" >> "$here/scripts"
begin="exec sh -c 'cd /"
rest=${command#"$begin"}
cd "$here/root" || exit 255
[ ! -d "$here/tools" ] || PATH=$here/tools
export PATH
[ ! -e "$here/greeting" ] || /bin/cat "$here/greeting"
[ ! -e "$here/refuses" ] || { echo "root@machine: Permission denied (publickey)." >&2; exit 255; }
# The folder whose root this is goes where the script says `/`.
command="exec sh -c 'cd .$rest"
if [ -e "$here/cut" ] && case $command in *"$(/bin/cat "$here/cut-in")"*) true ;; *) false ;; esac; then
    cut=$(/bin/cat "$here/cut"); /bin/rm "$here/cut"
    # What runs there learns of it when it next reads or writes.
    /usr/bin/mkfifo "$here/link"
    exec 3<&0
    /bin/sh -c "$command" <&3 > "$here/link" 2> /dev/null &
    # The second holds nothing back, which some wait for, and is slow.
    if [ "$cut" -gt 500000 ]; then /usr/bin/head -c "$cut" < "$here/link"
    else /bin/dd bs=1 count="$cut" status=none < "$here/link"; fi
    /bin/rm "$here/link"
    echo "Connection to machine closed by remote host." >&2
    exit 255
fi
echo $$ >> "$here/children"
exec /bin/sh -c "$command"
"#;

struct Machine {
    home: tempfile::TempDir,
    copies: Copies,
    inbox: Inbox,
    number: u64,
    recipe: Recipe,
    whole: bool,
    folder: String,
}

impl Machine {
    fn new() -> Self {
        let home = tempfile::Builder::new().prefix("a b'\"$").tempdir().unwrap();
        std::fs::create_dir_all(home.path().join("root/workspace/out")).unwrap();
        program(&home.path().join("ssh"), SSH);
        let (inbox, outbox) = Inbox::new();
        let streams =
            Streams::new(home.path().join(KNOWN_HOSTS), outbox.clone()).by(Some(home.path().join("ssh").into()));
        let recipe = Recipe {
            name: "default".to_owned(),
            paths: vec!["/workspace/out".to_owned()],
            method: Method::Copy { to: home.path().join("copies").to_str().unwrap().to_owned() },
            prepare: None,
            quiet: SignedDuration::ZERO,
        };
        let copies = Copies::new(&streams, outbox);
        Machine { home, copies, inbox, number: 0, recipe, whole: true, folder: "me/one/20261130T100000Z".to_owned() }
    }

    fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.home.path().join(name)
    }

    fn root(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path("root").join(name)
    }

    /// A file that was written long ago.
    fn file(&self, name: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        aged(&path, 1_700_000_000);
        path
    }

    fn copy(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path("copies").join(&self.folder).join(name)
    }

    fn part(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path("copies").join(format!("{}.part", self.folder)).join(name)
    }

    fn begin(&mut self, stage: Stage) {
        self.number += 1;
        let identity = Identity { account: "me".into(), kind: ResourceKind::Instance, id: "one".into(), generation: 0 };
        let endpoint = SshEndpoint::new("root", "192.0.2.1", 22, true).unwrap();
        let job = Job {
            op: OpId(7),
            number: self.number,
            stage,
            recipe: self.recipe.clone(),
            target: Target::new(&"vast".into(), &identity, &endpoint),
            folder: self.folder.clone(),
            whole: self.whole,
        };
        self.copies.start(job, &tokio::runtime::Handle::current());
    }

    /// Does a stage and waits for its end.
    async fn perform(&mut self, stage: Stage) -> Result<Told, Trouble> {
        self.begin(stage);
        loop {
            let event = tokio::time::timeout(PATIENCE, self.inbox.next()).await.expect("an end").unwrap();
            let Event::World(WorldEvent::Saving { number, told, .. }) = event else { panic!("{event:?}") };
            // What an earlier try said does not count.
            if number < self.number {
                continue;
            }
            assert!(!self.path("wrong").exists(), "{}", std::fs::read_to_string(self.path("wrong")).unwrap());
            match told {
                Told::Sign(_) => {}
                Told::Failed(trouble) => return Err(trouble),
                told => return Ok(told),
            }
        }
    }

    /// All three.
    async fn save(&mut self) -> Result<Proof, Trouble> {
        self.perform(Stage::Prepare).await?;
        self.perform(Stage::Copy).await?;
        match self.perform(Stage::Verify).await? {
            Told::Verified(proof) => Ok(proof),
            told => panic!("{told:?}"),
        }
    }

    fn scripts(&self) -> String {
        std::fs::read_to_string(self.path("scripts")).unwrap()
    }

    /// Its own tools alone, each by a program of this machine.
    fn tools(&self, names: &[&str], by: impl Fn(&str) -> String) {
        std::fs::create_dir_all(self.path("tools")).unwrap();
        for name in names {
            self.tool(name, &format!("exec {} \"$@\"", by(name)));
        }
    }

    fn tool(&self, name: &str, script: &str) {
        program(&self.path("tools").join(name), &format!("#!/bin/sh\n{script}\n"));
    }

    /// The link is lost once, so many bytes into the answer to a script that holds these words.
    fn cut(&self, at: usize, words: &str) {
        std::fs::write(self.path("cut-in"), words).unwrap();
        std::fs::write(self.path("cut"), at.to_string()).unwrap();
    }
}

/// Everything that a machine is counted on to have, and the shell's own helpers.
const TOOLS: &[&str] = &[
    "sh",
    "find",
    "xargs",
    "tar",
    "tail",
    "sha256sum",
    "stat",
    "od",
    "tr",
    "readlink",
    "date",
    "wc",
    "df",
    "sed",
    "sync",
];

fn program(path: &Path, text: &str) {
    let written = path.with_extension("written");
    std::fs::write(&written, text).unwrap();
    std::fs::set_permissions(&written, std::fs::Permissions::from_mode(0o755)).unwrap();
    // By a process of its own: what another test starts at this moment would hold a file of ours open for writing.
    assert!(std::process::Command::new("cp").arg("-p").arg(&written).arg(path).status().unwrap().success());
}

fn aged(path: &Path, seconds: u64) {
    let time = std::time::UNIX_EPOCH + Duration::from_secs(seconds);
    std::fs::File::open(path).unwrap().set_modified(time).unwrap();
}

/// Bytes that are the same each time, and no pattern.
fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..length).map(|_| next()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_copied_and_both_sides_agree() {
    let mut machine = Machine::new();
    machine.file("workspace/out/step-1.pt", noise(300_000, 1));
    machine.file("workspace/out/empty", "");
    std::fs::create_dir(machine.root("workspace/out/hollow")).unwrap();
    std::os::unix::fs::symlink("step-1.pt", machine.root("workspace/out/latest")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", machine.root("workspace/out/secret")).unwrap();
    let prepared = machine.perform(Stage::Prepare).await;
    assert_eq!(prepared, Ok(Told::Done(Progress { files: 2, bytes: 300_000, done: 0, rate: None })));
    let copied = machine.perform(Stage::Copy).await;
    assert_eq!(copied, Ok(Told::Done(Progress { files: 2, bytes: 300_000, done: 300_000, rate: None })));
    let Told::Verified(proof) = machine.perform(Stage::Verify).await.unwrap() else { panic!("a proof") };
    assert_eq!((proof.files, proof.bytes, proof.left_out), (2, 300_000, 0));
    assert_eq!(proof.place, machine.copy("").to_str().unwrap().trim_end_matches('/'));
    assert_eq!(std::fs::read(machine.copy("workspace/out/step-1.pt")).unwrap(), noise(300_000, 1));
    assert_eq!(std::fs::metadata(machine.copy("workspace/out/step-1.pt")).unwrap().mtime(), 1_700_000_000);
    assert!(machine.copy("workspace/out/hollow").is_dir());
    assert_eq!(std::fs::read_link(machine.copy("workspace/out/secret")).unwrap(), Path::new("/etc/passwd"));
    assert!(!machine.part("").exists() && !machine.copy(".incoming").exists());
    let manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(machine.copy("manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["schema"], "rentop.manifest/1");
    assert_eq!(manifest["machine"], "rentop.vast.me.one.0");
    assert_eq!(manifest["files"][1]["path"], "workspace/out/step-1.pt");
}

fn usual(name: &str) -> String {
    let found = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"].map(|folder| format!("{folder}/{name}"));
    found.into_iter().find(|path| Path::new(path).exists()).unwrap_or_else(|| panic!("{name} is here"))
}

fn busybox(name: &str) -> String {
    format!("/bin/busybox {name}")
}

/// Names that some program on the way takes for something else.
const ODD: &[&[u8]] = &[
    b"plain",
    b"a b  c ",
    b" leading",
    b"-rf",
    b"--",
    b"new\nline",
    b"e 81a4 1 1 1 ./workspace/out/forged\n",
    b"back\\slash",
    b"back\\nslash",
    b"carriage\rreturn",
    b"tab\tstop",
    b"quote'and\"double",
    b"$(touch x)`id`",
    b"*?[a]",
    b"not-utf8-\xff\xfe",
    b"not-utf8-\xff\n\xfe",
    "\u{6587}\u{4ef6} \u{1f600}".as_bytes(),
    b"~",
    b"#hash;semi&amp",
];

#[rstest]
#[case::gnu(usual as fn(&str) -> String, TOOLS)]
#[case::gnu_without_stat(usual as fn(&str) -> String, &["stat"])]
#[case::busybox(busybox as fn(&str) -> String, TOOLS)]
#[case::busybox_without_stat(busybox as fn(&str) -> String, &["stat"])]
#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_name_is_it_is_kept(#[case] by: fn(&str) -> String, #[case] set: &[&str]) {
    if by("sh").contains("busybox") && !Path::new("/bin/busybox").exists() {
        return;
    }
    let mut machine = Machine::new();
    let without = set.len() == 1;
    let tools: Vec<&str> = TOOLS.iter().copied().filter(|tool| !without || *tool != "stat").collect();
    machine.tools(&tools, by);
    let mut expected = BTreeMap::new();
    for (index, name) in ODD.iter().enumerate() {
        let name = OsStr::from_bytes(name);
        for place in [
            Path::new("workspace/out").join(name),
            Path::new("workspace/out").join(name).with_extension("d").join(name),
        ] {
            let content = format!("{index} {place:?}");
            machine.file(&place, &content);
            expected.insert(place, content);
        }
        let mut link = name.to_owned();
        link.push(".link");
        std::os::unix::fs::symlink(name, machine.root("workspace/out").join(link)).unwrap();
    }
    let proof = machine.save().await.unwrap();
    assert_eq!(proof.files, expected.len() as u64);
    for (place, content) in &expected {
        assert_eq!(&std::fs::read_to_string(machine.copy(place)).unwrap(), content);
    }
    for name in ODD {
        let mut link = OsStr::from_bytes(name).to_owned();
        link.push(".link");
        assert_eq!(std::fs::read_link(machine.copy("workspace/out").join(link)).unwrap(), OsStr::from_bytes(name));
    }
    assert!(!machine.root("x").exists());
    assert!(rentop::runtime::checkpoint::check(&machine.copy("")).unwrap().is_whole());
}

/// What is small comes in one go, and what came before the cut is not brought again.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_is_cut_anywhere_goes_on_where_it_was() {
    for at in [0, 10, 14, 15, 300, 525, 526, 527, 1037, 1038, 2600, 5_000, 9_000, 10_253, 10_254, 10_260] {
        let mut machine = Machine::new();
        machine.tools(TOOLS, usual);
        for index in 0..8 {
            machine.file(format!("workspace/out/{index}"), noise(500 + index, index as u64));
        }
        machine.perform(Stage::Prepare).await.unwrap();
        machine.cut(at, "tar -cf");
        assert_eq!(machine.perform(Stage::Copy).await, Err(Trouble::Link(streams::Trouble::Ended)), "cut at {at}");
        assert!(!machine.path("cut").exists());
        let came = inodes(&machine.part("workspace/out"));
        // A mark, and of each file its head and its bytes.
        let whole = (0..8).filter(|index| 14 + index * 1024 + 512 + 500 + index <= at).count();
        assert_eq!(came.len(), whole, "cut at {at}");
        machine.perform(Stage::Copy).await.unwrap();
        assert!(came.iter().all(|(name, inode)| inodes(&machine.part("workspace/out")).get(name) == Some(inode)));
        assert!(matches!(machine.perform(Stage::Verify).await, Ok(Told::Verified(_))));
    }
}

fn inodes(folder: &Path) -> BTreeMap<PathBuf, u64> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| (entry.path(), entry.metadata().unwrap().ino())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_file_goes_on_in_its_middle() {
    let mut machine = Machine::new();
    machine.tools(TOOLS, usual);
    let bytes = noise(70 << 20, 3);
    machine.file("workspace/out/large", &bytes);
    machine.perform(Stage::Prepare).await.unwrap();
    let mut before = 0;
    for at in [1, 20 << 20, (40 << 20) + 3] {
        machine.cut(at, "tail -c");
        assert_eq!(machine.perform(Stage::Copy).await, Err(Trouble::Link(streams::Trouble::Ended)));
        let incoming = std::fs::read_dir(machine.part(".incoming")).unwrap().flatten();
        let length: u64 = incoming.map(|entry| entry.metadata().unwrap().len()).sum();
        let expected = before + (at as u64).saturating_sub(14);
        assert_eq!(length, expected);
        before = length;
    }
    machine.perform(Stage::Copy).await.unwrap();
    assert!(machine.scripts().contains(&format!("tail -c +{}", before + 1)));
    assert!(matches!(machine.perform(Stage::Verify).await, Ok(Told::Verified(_))));
    assert!(std::fs::read(machine.copy("workspace/out/large")).unwrap() == bytes);
}

/// DATA-01. A file that was written just now is none that is whole.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_being_written_is_left_out_and_counted() {
    let mut machine = Machine::new();
    machine.file("workspace/out/step-1900.pt", "whole");
    let written = machine.file("workspace/out/step-2000.pt", "half");
    let soon = std::time::SystemTime::now() + Duration::from_secs(600);
    std::fs::File::open(written).unwrap().set_modified(soon).unwrap();
    machine.recipe.quiet = SignedDuration::from_secs(1);
    machine.whole = false;
    let proof = machine.save().await.unwrap();
    assert_eq!((proof.files, proof.left_out), (1, 1));
    assert!(!machine.copy("workspace/out/step-2000.pt").exists());
    let manifest = std::fs::read_to_string(machine.copy("manifest.json")).unwrap();
    assert!(manifest.contains("unfinished") && manifest.contains("step-2000.pt"));
}

#[rstest]
#[case::grows(|machine: &Machine| drop(machine.file("workspace/out/a", "longer than before")), "/workspace/out/a")]
#[case::goes_away(|machine: &Machine| std::fs::remove_file(machine.root("workspace/out/a")).unwrap(), "/workspace/out/a")]
#[case::is_new(|machine: &Machine| drop(machine.file("workspace/out/c", "new")), "/workspace/out/c")]
#[case::is_replaced(|machine: &Machine| {
    let other = machine.file("other", "1");
    std::fs::rename(other, machine.root("workspace/out/a")).unwrap();
}, "/workspace/out/a")]
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_proven_of_what_changed_meanwhile(#[case] happens: fn(&Machine), #[case] first: &str) {
    for whole in [true, false] {
        let mut machine = Machine::new();
        machine.whole = whole;
        machine.file("workspace/out/a", "1");
        machine.file("workspace/out/b", "2");
        machine.perform(Stage::Prepare).await.unwrap();
        machine.perform(Stage::Copy).await.unwrap();
        happens(&machine);
        let told = machine.perform(Stage::Verify).await;
        if whole {
            assert_eq!(told, Err(Trouble::Changed { files: 1, first: first.to_owned() }));
            assert!(!machine.copy("").exists());
            assert!(machine.save().await.is_ok());
        } else {
            let Ok(Told::Verified(proof)) = told else { panic!("{told:?}") };
            assert_eq!(proof.files + proof.left_out, 2);
            assert_eq!(machine.copy("workspace/out/a").exists(), proof.files == 2);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_goes_away_before_it_is_copied_is_told() {
    let mut machine = Machine::new();
    machine.tools(TOOLS, usual);
    machine.file("workspace/out/a", "1");
    machine.file("workspace/out/b", "2");
    machine.perform(Stage::Prepare).await.unwrap();
    std::fs::remove_file(machine.root("workspace/out/a")).unwrap();
    let told = machine.perform(Stage::Copy).await;
    assert_eq!(told, Err(Trouble::Changed { files: 1, first: "/workspace/out/a".to_owned() }));
}

/// The disk here lies, with the size and the time of the right one.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_differs_is_none_and_is_brought_again() {
    let mut machine = Machine::new();
    machine.file("workspace/out/a", "right");
    machine.perform(Stage::Prepare).await.unwrap();
    machine.perform(Stage::Copy).await.unwrap();
    std::fs::write(machine.part("workspace/out/a"), "wrong").unwrap();
    aged(&machine.part("workspace/out/a"), 1_700_000_000);
    let told = machine.perform(Stage::Verify).await;
    assert_eq!(told, Err(Trouble::Differs { files: 1, first: "/workspace/out/a".to_owned() }));
    assert!(!machine.copy("").exists());
    machine.save().await.unwrap();
    assert_eq!(std::fs::read_to_string(machine.copy("workspace/out/a")).unwrap(), "right");
}

/// DATA-03.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_begun_without_room() {
    let mut machine = Machine::new();
    machine.tools(TOOLS, usual);
    let huge = machine.file("workspace/out/huge", "");
    std::fs::File::options().write(true).open(&huge).unwrap().set_len(1 << 42).unwrap();
    machine.perform(Stage::Prepare).await.unwrap();
    let told = machine.perform(Stage::Copy).await;
    assert!(matches!(told, Err(Trouble::NoRoom { need, free }) if need > 1 << 42 && free < need), "{told:?}");
    assert!(!machine.scripts().contains("tail -c +"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_did_not_change_is_on_this_disk_once() {
    let mut machine = Machine::new();
    machine.file("workspace/out/old", "old");
    machine.file("workspace/out/changing", "1");
    machine.file("workspace/out/lies", "aa");
    machine.save().await.unwrap();
    let first = machine.copy("");
    machine.folder = "me/one/20261130T110000Z".to_owned();
    machine.file("workspace/out/changing", "22");
    // Of the same size and time, and another content: only the sums tell.
    machine.file("workspace/out/lies", "bb");
    let told = machine.save().await;
    assert_eq!(told, Err(Trouble::Differs { files: 1, first: "/workspace/out/lies".to_owned() }));
    machine.perform(Stage::Prepare).await.unwrap();
    machine.perform(Stage::Copy).await.unwrap();
    assert!(matches!(machine.perform(Stage::Verify).await, Ok(Told::Verified(_))));
    let inode = |folder: &Path, name: &str| std::fs::metadata(folder.join("workspace/out").join(name)).unwrap().ino();
    let second = machine.copy("");
    assert_eq!(inode(&first, "old"), inode(&second, "old"));
    assert_eq!(std::fs::read_to_string(first.join("workspace/out/lies")).unwrap(), "aa");
    assert_eq!(std::fs::read_to_string(second.join("workspace/out/lies")).unwrap(), "bb");
    assert_eq!(std::fs::read_to_string(first.join("workspace/out/changing")).unwrap(), "1");
    assert!([first, second].iter().all(|copy| rentop::runtime::checkpoint::check(copy).unwrap().is_whole()));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_names_of_one_file_are_two_files_with_one_content() {
    let mut machine = Machine::new();
    let first = machine.file("workspace/out/a", "same");
    std::fs::hard_link(first, machine.root("workspace/out/b")).unwrap();
    assert_eq!(machine.save().await.unwrap().files, 2);
    assert_eq!(std::fs::read_to_string(machine.copy("workspace/out/b")).unwrap(), "same");
}

#[rstest]
#[case::no_tar("tar")]
#[case::no_sums("sha256sum")]
#[case::no_find("find")]
#[case::no_xargs("xargs")]
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_is_not_there_is_named(#[case] lacks: &str) {
    let mut machine = Machine::new();
    let tools: Vec<&str> = TOOLS.iter().copied().filter(|tool| *tool != lacks).collect();
    machine.tools(&tools, usual);
    machine.file("workspace/out/a", "1");
    assert_eq!(machine.perform(Stage::Prepare).await, Err(Trouble::NoTool(lacks.to_owned())));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_is_not_there_is_no_empty_checkpoint() {
    let mut machine = Machine::new();
    machine.file("workspace/step-1", "1");
    std::os::unix::fs::symlink("step-1", machine.root("workspace/latest")).unwrap();
    std::os::unix::fs::symlink("workspace", machine.root("data")).unwrap();
    std::fs::create_dir(machine.root("empty")).unwrap();
    machine.recipe.paths = vec!["/empty".to_owned()];
    assert_eq!(machine.perform(Stage::Prepare).await, Err(Trouble::Nothing));
    machine.recipe.paths = ["/workspace/nowhere", "/workspace/latest", "/data"].map(str::to_owned).to_vec();
    let missing = vec!["/workspace/nowhere".to_owned(), "/workspace/latest -> step-1".to_owned()];
    assert_eq!(machine.perform(Stage::Prepare).await, Err(Trouble::Missing(missing)));
    // A path that leads to a folder is that folder.
    machine.recipe.paths = vec!["/data".to_owned()];
    assert_eq!(machine.save().await.unwrap().files, 1);
    assert_eq!(std::fs::read_to_string(machine.copy("data/step-1")).unwrap(), "1");
}

/// A machine that lies about what it has, and about what it sends.
#[rstest]
#[case::above("e 81a4 1 1 1 ./workspace/out/../../../evil")]
#[case::elsewhere("e 81a4 1 1 1 /etc/passwd")]
#[case::through_a_link("l ./workspace/out/l\nt /tmp\ne 81a4 1 1 1 ./workspace/out/l/evil")]
#[case::a_file_as_folder("e 81a4 1 1 1 ./workspace/out/l\ne 81a4 1 1 1 ./workspace/out/l/evil")]
#[case::no_number("e 81a4 -1 1 1 ./workspace/out/l")]
#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_leads_elsewhere_is_none(#[case] said: &str) {
    let mut machine = Machine::new();
    machine.tools(TOOLS, usual);
    machine.tool("find", &format!("printf '%b\\n' '{said}'"));
    let told = machine.perform(Stage::Prepare).await;
    assert!(matches!(told, Err(Trouble::Garbled(_))), "{told:?}");
    assert!(!machine.path("copies").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_that_holds_something_else_writes_nothing_of_it() {
    let mut machine = Machine::new();
    machine.tools(TOOLS, usual);
    machine.file("workspace/out/a", "right");
    let evil = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(evil.path().join("workspace/out")).unwrap();
    std::fs::write(evil.path().join("evil"), "evil").unwrap();
    std::os::unix::fs::symlink("/tmp", evil.path().join("workspace/out/a")).unwrap();
    let tar = usual("tar");
    machine.tool(
        "tar",
        &format!(
            "cd {} && exec {tar} -cPf - ../../../../../../../../../../../etc/hostname evil workspace/out/a",
            evil.path().display()
        ),
    );
    machine.perform(Stage::Prepare).await.unwrap();
    let told = machine.perform(Stage::Copy).await;
    assert_eq!(told, Err(Trouble::Changed { files: 1, first: "/workspace/out/a".to_owned() }));
    let folder: Vec<_> =
        std::fs::read_dir(machine.part("")).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(folder.len(), 2, "{folder:?}");
    assert!(std::fs::read_dir(machine.part("workspace/out")).unwrap().next().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_ours_is_refused() {
    let mut machine = Machine::new();
    machine.file("manifest.json", "theirs");
    machine.recipe.paths = vec!["/manifest.json".to_owned()];
    machine.perform(Stage::Prepare).await.unwrap();
    assert_eq!(machine.perform(Stage::Copy).await, Err(Trouble::Name("/manifest.json".to_owned())));
}

/// After a restart nobody knows what was listed: it is found anew, and what is there already is not brought again.
#[tokio::test(flavor = "multi_thread")]
async fn every_stage_can_be_begun_again_by_another_process() {
    let mut machine = Machine::new();
    machine.tools(TOOLS, usual);
    machine.file("workspace/out/a", "1");
    machine.perform(Stage::Copy).await.unwrap();
    let came = inodes(&machine.part("workspace/out"));
    machine.perform(Stage::Copy).await.unwrap();
    assert_eq!(came, inodes(&machine.part("workspace/out")));
    machine.perform(Stage::Verify).await.unwrap();
    // It was finished, and not recorded.
    assert!(matches!(machine.perform(Stage::Verify).await, Ok(Told::Verified(proof)) if proof.files == 1));
    assert!(machine.copy("manifest.json").exists() && !machine.part("").exists());
}

#[rstest]
#[case::fails("echo why >&2; exit 3", Some((3, "why")))]
#[case::leaves_something_running("sleep 1000 & echo $! > child", None)]
#[case::signals("echo saved > workspace/out/new", None)]
#[tokio::test(flavor = "multi_thread")]
async fn the_command_before_must_end_well(#[case] line: &str, #[case] expected: Option<(i32, &str)>) {
    let mut machine = Machine::new();
    machine.file("workspace/out/a", "1");
    machine.recipe.prepare = Some(line.to_owned());
    let told = machine.perform(Stage::Prepare).await;
    match expected {
        Some((code, complaint)) => {
            let complaint = complaint.to_owned();
            assert_eq!(told, Err(Trouble::Command { command: Which::Prepare, code, complaint }));
        }
        None => assert!(told.is_ok(), "{told:?}"),
    }
    if let Ok(pid) = std::fs::read_to_string(machine.root("child")) {
        send(pid.trim().parse().unwrap(), rustix::process::Signal::KILL);
    }
}

fn send(pid: i32, signal: rustix::process::Signal) {
    // One that has ended is as good.
    let _ = rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal);
}

#[rstest]
#[case::verified("true", CommandProof::Verify("true".to_owned()), None)]
#[case::run_fails("exit 5", CommandProof::Verify("true".to_owned()), Some(Which::Run))]
#[case::verify_fails("true", CommandProof::Verify("exit 5".to_owned()), Some(Which::Verify))]
#[case::listing_fails("true", CommandProof::Listing("echo 1 a; exit 5".to_owned()), Some(Which::Listing))]
#[case::listed("true", CommandProof::Listing("echo heading; echo '1 a'; echo ' 2 b c/d '".to_owned()), None)]
#[tokio::test(flavor = "multi_thread")]
async fn a_command_counts_by_its_proof(#[case] run: &str, #[case] proof: CommandProof, #[case] failed: Option<Which>) {
    let mut machine = Machine::new();
    machine.recipe.method = Method::Command { run: run.to_owned(), proof };
    machine.file("workspace/out/a", "1");
    machine.file("workspace/out/b c/d", "22");
    match (machine.save().await, failed) {
        (Ok(proof), None) => assert_eq!((proof.files, proof.bytes, proof.place.as_str()), (2, 3, "command")),
        (Err(trouble), Some(command)) => {
            assert_eq!(trouble, Trouble::Command { command, code: 5, complaint: String::new() });
        }
        (told, _) => panic!("{told:?}"),
    }
}

#[rstest]
#[case::missing("echo '1 a'", "/workspace/out/b")]
#[case::cut_off("echo '0 a'; echo '2 b'", "/workspace/out/a")]
#[case::elsewhere("echo '1 x/a'; echo '2 b'", "/workspace/out/a")]
#[tokio::test(flavor = "multi_thread")]
async fn a_listing_that_lacks_something_proves_nothing(#[case] listing: &str, #[case] first: &str) {
    let mut machine = Machine::new();
    let proof = CommandProof::Listing(listing.to_owned());
    machine.recipe.method = Method::Command { run: "true".to_owned(), proof };
    machine.file("workspace/out/a", "1");
    machine.file("workspace/out/b", "22");
    assert_eq!(machine.save().await, Err(Trouble::Differs { files: 1, first: first.to_owned() }));
}

#[rstest]
#[case::on_a_mount("/dev/sdb1 9 9 9 1% /workspace", true)]
#[case::on_the_root("overlay 9 9 9 1% /", false)]
#[tokio::test(flavor = "multi_thread")]
async fn a_volume_must_be_one(#[case] row: &str, #[case] is_one: bool) {
    let mut machine = Machine::new();
    machine.tools(TOOLS, usual);
    machine.tool("df", &format!("echo Filesystem; case $2 in .) echo 'overlay 9 9 9 1% /' ;; *) echo '{row}' ;; esac"));
    machine.recipe.method = Method::Volume;
    machine.file("workspace/out/a", "1");
    match machine.save().await {
        Ok(proof) => assert_eq!((is_one, proof.files, proof.place.as_str()), (true, 1, "volume")),
        Err(trouble) => {
            assert_eq!(trouble, Trouble::NotOnVolume { path: "/workspace/out".to_owned() });
            assert!(!is_one);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_shell_says_first_is_none_of_it() {
    let mut machine = Machine::new();
    machine.file("workspace/out/a", "1");
    std::fs::write(machine.path("greeting"), "Welcome!\n@rentop-ended 000\n").unwrap();
    assert_eq!(machine.save().await.unwrap().files, 1);
    std::fs::write(machine.path("refuses"), "").unwrap();
    let told = machine.perform(Stage::Prepare).await;
    assert_eq!(told, Err(Trouble::Link(streams::Trouble::KeyRefused)));
}

/// No child stays, and the next try goes on where it was.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_is_stopped_leaves_nothing_behind() {
    let mut machine = Machine::new();
    machine.tools(TOOLS, usual);
    machine.file("workspace/out/large", noise(70 << 20, 5));
    machine.tool("tail", &format!("{} -c 10000000 workspace/out/large; exec {} 1000", usual("head"), usual("sleep")));
    machine.perform(Stage::Prepare).await.unwrap();
    std::fs::remove_file(machine.path("children")).unwrap();
    machine.begin(Stage::Copy);
    let length = |machine: &Machine| -> u64 {
        let incoming = std::fs::read_dir(machine.part(".incoming")).into_iter().flatten().flatten();
        incoming.map(|entry| entry.metadata().map_or(0, |data| data.len())).sum()
    };
    wait_until("some of it", || length(&machine) > 9_000_000);
    let children = std::fs::read_to_string(machine.path("children")).unwrap();
    machine.copies.stop(OpId(7), machine.number);
    let is_gone = |pid: &str| !Path::new("/proc").join(pid).exists();
    wait_until("the end of what ran there", || children.lines().all(is_gone));
    machine.tools(&["tail"], usual);
    let before = length(&machine);
    machine.perform(Stage::Copy).await.unwrap();
    assert!(machine.scripts().contains(&format!("tail -c +{}", before + 1)));
    assert!(matches!(machine.perform(Stage::Verify).await, Ok(Told::Verified(_))));
}

/// Where it is installed; it is never needed.
fn has_rsync() -> bool {
    let told = std::process::Command::new("rsync").arg("--version").output();
    told.is_ok_and(|told| told.stdout.starts_with(b"rsync  version 3."))
}

#[tokio::test(flavor = "multi_thread")]
async fn rsync_brings_the_same_and_proves_nothing() {
    if !has_rsync() {
        return;
    }
    let mut machine = Machine::new();
    for name in ODD {
        machine.file(Path::new("workspace/out").join(OsStr::from_bytes(name)), noise(1000, name.len() as u64));
    }
    machine.file("workspace/out/deep/er/a b", noise(3_000_000, 9));
    let proof = machine.save().await.unwrap();
    assert_eq!(proof.files, ODD.len() as u64 + 1);
    assert!(machine.scripts().contains("rsync --server") && !machine.scripts().contains("tar -cf"));
    assert_eq!(std::fs::read(machine.copy("workspace/out/deep/er/a b")).unwrap(), noise(3_000_000, 9));
    assert!(rentop::runtime::checkpoint::check(&machine.copy("")).unwrap().is_whole());
    // What went away meanwhile is told by the list.
    machine.folder = "me/one/20261130T110000Z".to_owned();
    machine.perform(Stage::Prepare).await.unwrap();
    std::fs::write(machine.root("workspace/out/plain"), "other").unwrap();
    aged(&machine.root("workspace/out/plain"), 1_700_000_500);
    let told = match machine.perform(Stage::Copy).await {
        Ok(_) => machine.perform(Stage::Verify).await,
        told => told,
    };
    assert_eq!(told, Err(Trouble::Changed { files: 1, first: "/workspace/out/plain".to_owned() }));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_rsync_that_is_cut_goes_on() {
    if !has_rsync() {
        return;
    }
    let mut machine = Machine::new();
    machine.file("workspace/out/a", noise(3_000_000, 1));
    machine.perform(Stage::Prepare).await.unwrap();
    machine.cut(400_000, "$@");
    let told = machine.perform(Stage::Copy).await;
    let Err(trouble @ Trouble::Rsync { .. }) = told else { panic!("{told:?}") };
    assert!(trouble.may_pass(), "{trouble:?}");
    machine.perform(Stage::Copy).await.unwrap();
    assert!(matches!(machine.perform(Stage::Verify).await, Ok(Told::Verified(proof)) if proof.files == 1));
}

/// Given up while its record was still on the way to the disk.
#[tokio::test]
async fn a_stage_that_was_given_up_before_it_began_is_not_begun() {
    let mut machine = Machine::new();
    machine.file("workspace/out/a", "a");
    let calls = |machine: &Machine| machine.scripts().matches("exec sh -c 'cd /").count();
    machine.perform(Stage::Prepare).await.unwrap();
    let once = calls(&machine);
    machine.copies.stop(OpId(7), 2);
    machine.begin(Stage::Prepare);
    machine.perform(Stage::Prepare).await.unwrap();
    assert_eq!(calls(&machine), 2 * once);
}

/// A disk that fills up in the middle; the room that is asked for first is there. Only where a small disk can be mounted.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "mounts a small disk: .ci/ssh/run"]
async fn a_disk_that_fills_up_is_told_as_one() {
    let mut machine = Machine::new();
    machine.tools(TOOLS, usual);
    std::fs::create_dir(machine.path("copies")).unwrap();
    let mount = |words: &[&OsStr]| std::process::Command::new(words[0]).args(&words[1..]).status().unwrap().success();
    let folder = machine.path("copies");
    let words = ["mount", "-t", "tmpfs", "-o", "size=130m", "tmpfs"].map(OsStr::new);
    assert!(mount(&[&words[..], &[folder.as_os_str()]].concat()), "a disk of its own");
    machine.file("workspace/out/a", noise(20 << 20, 1));
    machine.file("workspace/out/b", noise(5 << 20, 2));
    machine.perform(Stage::Prepare).await.unwrap();
    // Somebody else fills it, between the look at the room and the copy.
    let fill = folder.join("filled");
    program(
        &machine.path("tools/tar"),
        &format!(
            "#!/bin/sh\n{} -c 115000000 < /dev/zero > {}\nexec {} \"$@\"\n",
            usual("head"),
            shell_words::quote(fill.to_str().unwrap()),
            usual("tar")
        ),
    );
    let told = machine.perform(Stage::Copy).await;
    let later = machine.perform(Stage::Verify).await;
    assert!(mount(&[OsStr::new("umount"), OsStr::new("-l"), folder.as_os_str()]));
    assert!(matches!(told, Err(Trouble::NoRoom { need, .. }) if need > 1_000_000), "{told:?}");
    assert!(matches!(later, Err(Trouble::Differs { .. })), "{later:?}");
}
