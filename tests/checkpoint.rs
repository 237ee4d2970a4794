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
# The folder whose root this is goes where the script says `/`.
command="exec sh -c 'cd .$rest"
if [ -e "$here/cut" ] && case $command in *"$(cat "$here/cut-in")"*) true ;; *) false ;; esac; then
    cut=$(/bin/cat "$here/cut"); /bin/rm "$here/cut"
    /bin/sh -c "$command" | /usr/bin/head -c "$cut"
    echo "Connection to machine closed by remote host." >&2
    exit 255
fi
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

    /// Does a stage and waits for its end.
    async fn perform(&mut self, stage: Stage) -> Result<Told, Trouble> {
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
        loop {
            let event = tokio::time::timeout(PATIENCE, self.inbox.next()).await.expect("an end").unwrap();
            let Event::World(WorldEvent::Saving { number, told, .. }) = event else { panic!("{event:?}") };
            assert_eq!(number, self.number);
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

    fn scripts(&self) -> usize {
        std::fs::read_to_string(self.path("scripts")).unwrap().matches("exec sh -c").count()
    }

    /// Its own tools alone, each from a program of this machine.
    fn tools(&self, names: &[&str], by: impl Fn(&str) -> String) {
        std::fs::create_dir_all(self.path("tools")).unwrap();
        for name in names {
            program(&self.path("tools").join(name), &format!("#!/bin/sh\nexec {} \"$@\"\n", by(name)));
        }
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
