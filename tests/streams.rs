//! Streams over a stand-in for `ssh`, which knows exactly the options that it is to be given, runs the remote command
//! in a shell of this machine, and misbehaves as the name of the host says. `.ci/ssh/run` tells the same stories of
//! real OpenSSH.
#![cfg(unix)]

#[path = "streams/openssh.rs"]
mod openssh;
mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use providers::model::{Identity, ResourceKind, SshEndpoint};
use providers::sim::{Machine, Shared};
use providers::usage::{Usage, UsageSource};
use rentop::app::event::{Intent, WorldEvent};
use rentop::app::{Effect, Event};
use rentop::ledger::Ledger;
use rentop::rules::memory::{AccountMemory, Collector, Keep, Memory};
use rentop::rules::spend::Entries;
use rentop::rules::streams::{Consent, Target, Told, Trouble};
use rentop::runtime::Inbox;
use rentop::runtime::streams::{KNOWN_HOSTS, Streams};
use rstest::rstest;
use support::stage::wait_until;
use support::story::{self, Story};
use support::terminal::Terminal;
use support::{Account, Lab, world};

/// The longest wait for something that must come.
const PATIENCE: Duration = Duration::from_secs(30);

const SSH: &str = r#"#!/bin/sh
# Stands in for ssh. Its folder holds a host's key in `keys/HOST` and writes down who called in `log`.
here=$(dirname "$0")
fail() { echo "$@" >&2; echo "failed: $*" >> "$here/log"; exit 255; }
kind=shell known= alias= port=
while [ $# -gt 0 ]; do
    case $1 in
        -T) kind=stream ;;
        -p) port=$2; shift ;;
        -o)
            case $2 in
                UserKnownHostsFile=*) known=${2#*=} ;;
                HostKeyAlias=*) alias=${2#*=} ;;
                BatchMode=yes | ConnectTimeout=10 | ServerAliveInterval=5 | ServerAliveCountMax=2 | LogLevel=INFO) ;;
                VisualHostKey=no | ClearAllForwardings=yes | ForwardAgent=no | ForwardX11=no | Tunnel=no) ;;
                PermitLocalCommand=no | RemoteCommand=none | StrictHostKeyChecking=accept-new | CheckHostIP=no) ;;
                HashKnownHosts=no | UpdateHostKeys=no | VerifyHostKeyDNS=no | NoHostAuthenticationForLocalhost=no) ;;
                ControlMaster=no | ControlPath=none) ;;
                *) fail "unknown option $2" ;;
            esac
            shift ;;
        --) shift; break ;;
        *) fail "unknown argument $1" ;;
    esac
    shift
done
user=${1%@*} host=${1#*@} command=$2
[ "$user" = root ] || fail "another user: $user"
[ "$port" = 2222 ] || fail "another port: $port"
[ -n "$alias" ] && [ -n "$known" ] || fail "no name for its key"
case $kind in
    shell) [ $# = 1 ] && [ -t 0 ] && [ -t 1 ] || fail "no terminal: $*" ;;
    stream)
        [ $# = 2 ] || fail "not one command: $*"
        [ "$LC_ALL" = C ] && [ "$SSH_ASKPASS_REQUIRE" = force ] || fail "another environment"
        [ -p /dev/stdin ] || fail "an input that is not held"
        if [ -e /proc/self/stat ]; then
            read -r _ _ _ _ group _ < /proc/$$/stat
            [ "$group" = $$ ] || fail "of our process group"
        fi ;;
esac
echo "$kind $host $alias $$" >> "$here/log"
key=$(cat "$here/keys/$host" 2>/dev/null || echo "key-of-$host")
was=$(sed -n "s/^$alias ssh-ed25519 //p" "$known" 2>/dev/null)
if [ -z "$was" ]; then
    echo "$alias ssh-ed25519 $key" >> "$known"
    echo "Warning: Permanently added '$alias' (ED25519) to the list of known hosts." >&2
elif [ "$was" != "$key" ]; then
    echo "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @" >&2
    echo "Host key for $alias has changed and you have requested strict checking." >&2
    echo "Host key verification failed." >&2
    exit 255
fi
[ $kind = stream ] || { echo "a shell on $host"; read -r line; exit 0; }
PATH=$here/gpu:$PATH
case $host in
    key-refused*) echo "root@$host: Permission denied (publickey)." >&2; exit 255 ;;
    no-name*) echo "ssh: Could not resolve hostname $host: Name or service not known" >&2; exit 255 ;;
    no-port*) echo "ssh: connect to host $host port 2222: Connection refused" >&2; exit 255 ;;
    no-commands*) echo "This account is currently not available."; exit 1 ;;
    dead-link*) exec sleep 1000 ;;
    silent*) sh -c "$command" > /dev/null & echo $! >> "$here/children"; wait; exit 255 ;;
    killed*) sh -c "$command" | sed '/^@end$/q'; exit 255 ;;
    restarted*) sh -c "$command" | sed '/^@end$/q'; echo "Connection to $host closed by remote host." >&2; exit 255 ;;
    lost*) sh -c "$command" | sed '/^@end$/q'; echo "Timeout, server $host not responding." >&2; exit 255 ;;
    ends*) sh -c "echo @look; echo @end; ${command##*
}"; exit ;;
    greets*) echo "Permission denied to strangers" >&2; echo; echo "** Welcome! **"; exec sh -c "$command" ;;
    slow*) sh -c "$command" | while read -r line; do sleep 0.01; printf '%s\n' "$line"; done ;;
    talks*) yes "a word aside" | head -c 3000000 >&2; exec sh -c "$command" ;;
    floods*) exec yes ;;
    repeats*) yes "@look
@end" ;;
    endless*) tr '\0' x < /dev/zero ;;
    zeros*) exec cat /dev/zero ;;
    no-gpu*) PATH=${PATH#"$here/gpu:"}; exec sh -c "$command" ;;
    cut-up*) export MIG=Enabled; exec sh -c "$command" ;;
    127.0.0.1 | works*) exec sh -c "$command" ;;
    *) fail "nobody knows $host" ;;
esac
"#;

/// Answers whatever fields it is asked for, for two cards.
const NVIDIA_SMI: &str = r#"#!/bin/sh
for word; do case $word in
    --query-gpu=*) fields=${word#*=} ;;
    --query-*) exit 0 ;;
esac; done
[ -n "$fields" ] || { echo "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0)"; exit 0; }
for card in 0 1; do
    line= IFS=,
    for field in $fields; do
        case $field in
            index) value=$card ;;
            uuid | gpu_uuid) value=GPU-$card ;;
            name | gpu_name) value="NVIDIA H100 80GB HBM3" ;;
            utilization.gpu) value=93; [ -z "$MIG" ] || value="[N/A]" ;;
            memory.used) value=71234 ;;
            memory.total) value=81559 ;;
            temperature.gpu) value=61 ;;
            power.draw*) value=612.40 ;;
            power.limit | enforced.power.limit) value=700.00 ;;
            mig.mode.current) value=${MIG:-Disabled} ;;
            *) value="[N/A]" ;;
        esac
        line="$line, $value"
    done
    echo "${line#, }"
done
"#;

/// The stand-in in a folder of its own, whose name is hard to quote.
struct StandIn {
    home: tempfile::TempDir,
}

impl StandIn {
    fn new() -> Self {
        let stand_in = StandIn { home: tempfile::Builder::new().prefix("a b%h${HOME}\"'").tempdir().unwrap() };
        std::fs::create_dir_all(stand_in.path("gpu")).unwrap();
        std::fs::create_dir_all(stand_in.path("keys")).unwrap();
        stand_in.program("ssh", SSH);
        stand_in.program("gpu/nvidia-smi", NVIDIA_SMI);
        stand_in
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn program(&self, name: &str, text: &str) {
        let written = self.path("written");
        std::fs::write(&written, text).unwrap();
        std::fs::set_permissions(&written, std::fs::Permissions::from_mode(0o755)).unwrap();
        // By a process of its own: what another test starts at this moment would hold a file of ours open for writing,
        // and such a program cannot be run.
        assert!(
            std::process::Command::new("cp").arg("-p").arg(written).arg(self.path(name)).status().unwrap().success()
        );
    }

    /// Who called: what was opened, at which host, under which name, by which process.
    fn calls(&self) -> Vec<[String; 4]> {
        let log = std::fs::read_to_string(self.path("log")).unwrap_or_default();
        assert!(!log.contains("failed"), "{log}");
        // A line that is being written is not there yet.
        let lines = log.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        lines.map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().try_into().unwrap()).collect()
    }

    fn known_hosts(&self) -> String {
        std::fs::read_to_string(self.path(KNOWN_HOSTS)).unwrap_or_default()
    }

    fn host_key(&self, host: &str, key: &str) {
        std::fs::write(self.path("keys").join(host), key).unwrap();
    }
}

fn identity(id: &str) -> Identity {
    Identity { account: "me".into(), kind: ResourceKind::Instance, id: id.into(), generation: 0 }
}

fn target(id: &str, endpoint: &SshEndpoint) -> Target {
    Target::new(&"vast".into(), &identity(id), endpoint)
}

/// Streams by the stand-in, and what they tell.
struct Listener {
    streams: Streams,
    inbox: Inbox,
    last: u64,
}

impl Listener {
    fn of(stand_in: &StandIn) -> Self {
        Self::by(stand_in.path("ssh"), stand_in.path(KNOWN_HOSTS))
    }

    fn by(program: PathBuf, known_hosts: PathBuf) -> Self {
        let (inbox, outbox) = Inbox::new();
        let streams = Streams::new(known_hosts, outbox).by(Some(program.into()));
        Listener { streams, inbox, last: 0 }
    }

    fn open(&mut self, id: &str, host: &str, new_key: bool) {
        self.open_at(id, &SshEndpoint::new("root", host, 2222, true).unwrap(), new_key);
    }

    fn open_at(&mut self, id: &str, endpoint: &SshEndpoint, new_key: bool) {
        self.last += 1;
        let second = SignedDuration::from_secs(1);
        self.streams.open(identity(id), self.last, target(id, endpoint), second, new_key);
    }

    /// What the stream that was opened last tells next.
    async fn next(&mut self) -> Told {
        loop {
            let next = tokio::time::timeout(PATIENCE, self.inbox.next()).await.expect("something is told");
            match next {
                Some(Event::World(WorldEvent::Stream { number, told, .. })) if number == self.last => return told,
                Some(Event::World(WorldEvent::Stream { .. })) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    async fn looks(&mut self) {
        let told = self.next().await;
        assert!(matches!(told, Told::Usage(_)), "{told:?}");
    }

    /// Why it ended, after any number of looks.
    async fn trouble(&mut self) -> (usize, Trouble) {
        let mut looks = 0;
        loop {
            match self.next().await {
                Told::Usage(_) => looks += 1,
                Told::Ended(trouble) => return (looks, trouble),
            }
        }
    }
}

fn is_alive(pid: &str) -> bool {
    // One that ended and was not waited for yet does nothing any more.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    match stat {
        Ok(stat) => !stat.contains(") Z "),
        Err(_) if Path::new("/proc/self/stat").exists() => false,
        Err(_) => std::process::Command::new("kill").args(["-0", pid]).status().unwrap().success(),
    }
}

#[rstest]
#[case::works("works")]
#[case::greets("greets")]
#[case::slow("slow")]
#[case::talks("talks")]
#[case::no_gpu("no-gpu")]
#[case::cut_up("cut-up")]
#[tokio::test(flavor = "multi_thread")]
async fn a_machine_is_looked_into_again_and_again(#[case] host: &str) {
    let stand_in = StandIn::new();
    let mut listener = Listener::of(&stand_in);
    listener.open("m1", host, false);
    listener.looks().await;
    listener.looks().await;
    let calls = stand_in.calls();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0][..3], ["stream", host, "rentop.vast.me.m1.0"]);
    listener.streams.close(&identity("m1"));
    wait_until("its end", || !is_alive(&calls[0][3]));
}

#[rstest]
#[case::key("key-refused", 0, Trouble::KeyRefused)]
#[case::name("no-name", 0, Trouble::NoSuchHost)]
#[case::port("no-port", 0, Trouble::ConnectionRefused)]
#[case::shell("no-commands", 0, Trouble::NoCommands)]
#[case::killed("killed", 1, Trouble::Ended)]
#[case::restarted("restarted", 1, Trouble::Ended)]
#[case::lost("lost", 1, Trouble::NoAnswer)]
#[case::its_own_end("ends", 1, Trouble::Ended)]
#[case::floods("floods", 0, Trouble::Garbled)]
#[case::repeats("repeats", 60, Trouble::Garbled)]
#[case::no_newline("endless", 0, Trouble::Garbled)]
#[case::nul_bytes("zeros", 0, Trouble::Garbled)]
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_ends_says_why(#[case] host: &str, #[case] looks: usize, #[case] trouble: Trouble) {
    let stand_in = StandIn::new();
    let mut listener = Listener::of(&stand_in);
    listener.open("m1", host, false);
    assert_eq!(listener.trouble().await, (looks, trouble));
    let pid = stand_in.calls()[0][3].clone();
    wait_until("its end", || !is_alive(&pid));
}

#[rstest]
#[case::closed(true)]
#[case::opened_anew(false)]
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_says_nothing_is_ended_with_all_that_it_started(#[case] closes: bool) {
    let stand_in = StandIn::new();
    let mut listener = Listener::of(&stand_in);
    listener.open("m1", "silent", false);
    let children = stand_in.path("children");
    wait_until("its command", || std::fs::read_to_string(&children).is_ok_and(|text| text.ends_with('\n')));
    let child = std::fs::read_to_string(&children).unwrap();
    if closes {
        listener.streams.close(&identity("m1"));
    } else {
        stand_in.host_key("works", "key-of-silent");
        listener.open("m1", "works", false);
        listener.looks().await;
    }
    let pid = stand_in.calls()[0][3].clone();
    wait_until("the end of both", || !is_alive(&pid) && !is_alive(child.trim()));
    listener.open("m2", "dead-link", false);
    wait_until("its start", || stand_in.calls().len() == if closes { 2 } else { 3 });
    let pid = stand_in.calls().last().unwrap()[3].clone();
    assert!(is_alive(&pid));
    drop(listener);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_not_there_and_none_at_all_are_told() {
    let stand_in = StandIn::new();
    let mut listener = Listener::of(&stand_in);
    for program in [Some(stand_in.path("nowhere").into()), None] {
        listener.streams = listener.streams.clone().by(program);
        listener.open("m1", "works", false);
        assert_eq!(listener.trouble().await, (0, Trouble::NoProgram));
    }
    assert_eq!(stand_in.calls().len(), 0);
}

/// SSH-01: an address that another machine had is no trouble, another key of the same machine is.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_key_belongs_to_an_identity() {
    let stand_in = StandIn::new();
    let mut listener = Listener::of(&stand_in);
    stand_in.host_key("works", "K1");
    listener.open("m1", "works", false);
    listener.looks().await;
    listener.streams.close(&identity("m1"));
    stand_in.host_key("works", "K2");
    listener.open("m2", "works", false);
    listener.looks().await;
    let known = "rentop.vast.me.m1.0 ssh-ed25519 K1\nrentop.vast.me.m2.0 ssh-ed25519 K2\n";
    assert_eq!(stand_in.known_hosts(), known);
    stand_in.host_key("works", "K3");
    listener.open("m2", "works", false);
    assert_eq!(listener.trouble().await, (0, Trouble::HostKeyChanged));
    assert_eq!(stand_in.known_hosts(), known);
    // Somebody says that it is right: the key is forgotten before the connection that learns the new one.
    listener.open("m2", "works", true);
    listener.looks().await;
    assert_eq!(stand_in.known_hosts(), known.replace("K2", "K3"));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_accepted_keys_and_new_ones_lose_none() {
    let stand_in = StandIn::new();
    let mut listener = Listener::of(&stand_in);
    let before: String = (0..4).map(|n| format!("rentop.vast.me.m{n}.0 ssh-ed25519 OLD\n")).collect();
    std::fs::write(stand_in.path(KNOWN_HOSTS), before).unwrap();
    for n in 0..8 {
        listener.open(&format!("m{n}"), "works", n < 4);
    }
    wait_until("all keys", || stand_in.known_hosts().matches(" key-of-works\n").count() == 8);
    assert_eq!(stand_in.known_hosts().lines().count(), 8);
}

/// One machine at Vast.ai, reached at a loopback address, into which this program may look for good.
fn lab(port: u16) -> Lab {
    let mut vast = world(1.0);
    let now = vast.now();
    let machine = Machine { address: "127.0.0.1".to_owned(), ssh_port: port, ..Machine::new("31000001", "lora", now) };
    vast.machines = vec![machine];
    let lab = Lab::new(vec![Account { provider: "vast", name: "me", world: Shared::new(vast), extra: "" }]);
    let (mut ledger, _) = Ledger::open(&lab.state_dir(), Timestamp::now()).unwrap();
    let account = AccountMemory {
        as_of: Some(now),
        last_complete: Some(now),
        streams: Consent::Always,
        ..AccountMemory::new("me".into(), "vast".into())
    };
    ledger.keep(&Keep { account, instances: Vec::new(), storage: Vec::new(), entries: Entries::default() }).unwrap();
    lab
}

fn screen(lab: &Lab, program: &Path) -> Terminal {
    let mut command = Terminal::command(lab, &[]);
    command.env("RENTOP_SSH", program);
    let mut terminal = Terminal::spawn(command, 120, 30);
    terminal.wait_for("lora");
    terminal
}

#[test]
fn the_program_looks_into_its_machines_and_ends_that_with_itself() {
    let (lab, stand_in) = (lab(2222), StandIn::new());
    let mut terminal = screen(&lab, &stand_in.path("ssh"));
    wait_until("a stream", || !stand_in.calls().is_empty());
    let known_hosts = lab.state_dir().join(KNOWN_HOSTS);
    let key = "rentop.vast.me.31000001.0 ssh-ed25519 key-of-127.0.0.1\n";
    wait_until("its key", || std::fs::read_to_string(&known_hosts).is_ok_and(|text| text == key));
    // A shell of somebody's own has the terminal, and the same key.
    terminal.select("lora");
    terminal.press("!");
    terminal.wait_for("a shell on 127.0.0.1");
    terminal.press("\n");
    terminal.wait_for("lora");
    assert_eq!(std::fs::read_to_string(&known_hosts).unwrap(), key);
    let calls = stand_in.calls();
    assert!(
        calls.iter().any(|call| call[0] == "shell") && calls.iter().all(|call| call[2] == "rentop.vast.me.31000001.0")
    );
    terminal.press("q");
    assert!(terminal.wait_end().success());
    wait_until("the end of all", || stand_in.calls().iter().all(|call| !is_alive(&call[3])));
}

#[test]
fn nothing_stays_behind_when_the_program_is_killed() {
    let (lab, stand_in) = (lab(2222), StandIn::new());
    let mut terminal = screen(&lab, &stand_in.path("ssh"));
    // The row under the cursor is looked at closely by now: what nobody hears ends with its next line.
    wait_until("a second stream", || stand_in.calls().len() == 2);
    terminal.child.kill().unwrap();
    wait_until("the end of all", || stand_in.calls().iter().all(|call| !is_alive(&call[3])));
}

/// SSH-01: nothing is sent to a host with another key, by a stream or by a shell, and the streams leave it alone.
#[test]
fn the_program_leaves_a_host_with_another_key_alone() {
    let (lab, stand_in) = (lab(2222), StandIn::new());
    let known = "rentop.vast.me.31000001.0 ssh-ed25519 another\n";
    std::fs::write(lab.state_dir().join(KNOWN_HOSTS), known).unwrap();
    let mut terminal = screen(&lab, &stand_in.path("ssh"));
    wait_until("a try", || stand_in.calls().len() == 1);
    terminal.select("lora");
    terminal.press("!");
    terminal.wait_for("no connection, or it broke off (255)");
    terminal.press("q");
    assert!(terminal.wait_end().success());
    let kinds: Vec<String> = stand_in.calls().into_iter().map(|[kind, ..]| kind).collect();
    assert_eq!(kinds, ["stream", "shell"]);
    assert_eq!(std::fs::read_to_string(lab.state_dir().join(KNOWN_HOSTS)).unwrap(), known);
}

/// A screen over one account with one machine that may be looked into, before anybody said whether it is.
fn story() -> (Story, Identity) {
    let mut story = Story::over(&["me"], "10:00:00");
    let ssh = SshEndpoint::new("root", "192.0.2.45", 20000, true);
    story.lists("me", vec![providers::model::Instance { ssh, ..story::running("lora", "1") }]);
    (story, story::identity("me", "lora"))
}

/// What was opened and closed since, with the number of the last stream.
fn ordered(story: &mut Story) -> (Vec<String>, Option<u64>) {
    let (mut orders, mut last) = (Vec::new(), None);
    for effect in std::mem::take(&mut story.effects) {
        match effect {
            Effect::OpenStream { identity, number, pace, new_key, .. } => {
                last = Some(number);
                let key = if new_key { " new key" } else { "" };
                orders.push(format!("open {} {}{key}", identity.id, pace.as_secs()));
            }
            Effect::CloseStream { identity } => orders.push(format!("close {}", identity.id)),
            _ => {}
        }
    }
    (orders, last)
}

fn consents(story: &mut Story, consent: Consent) {
    story.world(WorldEvent::Intent(Intent::Consent { account: "me".into(), consent }));
}

fn tells(story: &mut Story, identity: &Identity, number: u64, told: Told) {
    story.world(WorldEvent::Stream { identity: identity.clone(), number, told });
}

#[test]
fn a_machine_is_looked_into_once_somebody_said_so_and_no_longer_than_that() {
    let (mut story, lora) = story();
    assert_eq!(ordered(&mut story).0, [""; 0]);
    consents(&mut story, Consent::Yes);
    let (orders, number) = ordered(&mut story);
    assert_eq!(orders, ["open lora 15"]);
    let usage = Usage::new(story.now, UsageSource::Ssh);
    tells(&mut story, &lora, number.unwrap(), Told::Usage(Box::new(usage)));
    let known = &story.state.world.fleet.instances[&lora];
    assert_eq!(story.state.world.usage(known).map(|usage| usage.source), Some(UsageSource::Ssh));
    consents(&mut story, Consent::No);
    assert_eq!(ordered(&mut story).0, ["close lora"]);
    story.wait_ms(60_000);
    assert_eq!(ordered(&mut story).0, [""; 0]);
}

#[test]
fn a_new_machine_is_looked_into_when_its_list_is_there() {
    let (mut story, _) = story();
    consents(&mut story, Consent::Yes);
    ordered(&mut story);
    let ssh = SshEndpoint::new("root", "192.0.2.46", 20000, true);
    let row = |id| providers::model::Instance { ssh: ssh.clone(), ..story::running(id, "1") };
    story.lists("me", vec![row("lora"), row("next")]);
    // The other one has moved, and the cursor rests on it.
    assert_eq!(ordered(&mut story).0, ["close lora", "open lora 1", "open next 15"]);
}

#[test]
fn the_row_under_the_cursor_is_looked_at_closely() {
    let (mut story, lora) = story();
    consents(&mut story, Consent::Yes);
    let (_, number) = ordered(&mut story);
    let usage = Usage::new(story.now, UsageSource::Ssh);
    tells(&mut story, &lora, number.unwrap(), Told::Usage(Box::new(usage)));
    story.on("lora");
    story.wait_ms(2_000);
    assert_eq!(ordered(&mut story).0, ["close lora", "open lora 1"]);
}

#[test]
fn whoever_loses_the_claim_closes_all_streams_and_has_them_again_with_it() {
    let (mut story, _) = story();
    consents(&mut story, Consent::Yes);
    ordered(&mut story);
    story.world(WorldEvent::Collector(story::other()));
    assert_eq!(ordered(&mut story).0, ["close lora"]);
    story.wait_ms(20_000);
    assert_eq!(ordered(&mut story).0, [""; 0]);
    story.world(WorldEvent::Collector(Collector::Us));
    let instances = story.state.world.fleet.instances.values().cloned().collect();
    story.remember(Memory { instances, ..Memory::default() });
    // The cursor has rested on it meanwhile.
    assert_eq!(ordered(&mut story).0, ["open lora 1"]);
}

/// SSH-01: nothing goes on by itself, and the key is forgotten with the connection that takes the new one.
#[test]
fn a_changed_host_key_waits_for_somebody() {
    let (mut story, lora) = story();
    consents(&mut story, Consent::Yes);
    let (_, number) = ordered(&mut story);
    tells(&mut story, &lora, number.unwrap(), Told::Ended(Trouble::HostKeyChanged));
    assert_eq!(story.state.world.streams.alarm(&lora), Some(&Trouble::HostKeyChanged));
    story.wait_ms(3_600_000);
    assert_eq!(ordered(&mut story).0, [""; 0]);
    story.world(WorldEvent::Intent(Intent::AcceptHostKey(lora.clone())));
    assert_eq!(ordered(&mut story).0, ["open lora 1 new key"]);
    assert_eq!(story.state.world.streams.alarm(&lora), None);
}
