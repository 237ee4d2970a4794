//! The same stories of real OpenSSH servers on loopback, which `.ci/ssh/run` installs. Each server has its own port, key
//! and folder. The person's config is one that says the opposite of all that a stream needs.

#[path = "copies.rs"]
mod copies;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use providers::model::SshEndpoint;
use providers::usage::GpuSample;
use rentop::rules::streams::{Told, Trouble};
use rentop::runtime::streams::KNOWN_HOSTS;
use rstest::rstest;
use rustix::process::{Pid, Signal, kill_process};

use super::support::stage::wait_until;
use super::{Listener, NVIDIA_SMI, StandIn, identity};

const SSHD: &str = "/usr/sbin/sshd";

/// A person with a key, a config, and a file of known hosts.
struct Person {
    /// Its folder has the fake tools of a machine, too.
    home: StandIn,
    known_before: String,
}

impl Person {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let home = StandIn { home };
        std::fs::create_dir(home.path("gpu")).unwrap();
        home.program("gpu/nvidia-smi", NVIDIA_SMI);
        keygen(&home.path("id"));
        let folder = home.path("");
        let folder = folder.display();
        home.program("ssh", &format!("#!/bin/sh\nexec ssh -F '{folder}config' \"$@\"\n"));
        let config = format!(
            "Include {folder}more\n\
             Host 127.0.0.1\n  RemoteCommand echo mine\n  LocalForward 127.0.0.1:1 127.0.0.1:1\n  \
             ControlMaster auto\n  ControlPath {folder}mux\n  VisualHostKey yes\n  LogLevel QUIET\n  \
             NoHostAuthenticationForLocalhost yes\n  RequestTTY force\n  PermitLocalCommand yes\n  \
             LocalCommand touch {folder}local\n\
             Host *\n  IdentityFile {folder}id\n  IdentitiesOnly yes\n  GlobalKnownHostsFile none\n  \
             UserKnownHostsFile {folder}own_known_hosts\n  StrictHostKeyChecking yes\n  HashKnownHosts yes\n"
        );
        std::fs::write(home.path("config"), config).unwrap();
        std::fs::write(home.path("more"), "").unwrap();
        let person = Person { home, known_before: "192.0.2.1 ssh-ed25519 AAAA\n".to_owned() };
        std::fs::write(person.home.path("own_known_hosts"), &person.known_before).unwrap();
        person
    }

    fn listener(&self) -> Listener {
        Listener::by(self.home.path("ssh"), self.home.path(KNOWN_HOSTS))
    }
}

impl Drop for Person {
    /// Whatever was done, the person's own file is as it was, byte for byte, and nothing of the config was run.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(std::fs::read_to_string(self.home.path("own_known_hosts")).unwrap(), self.known_before);
            assert!(!self.home.path("local").exists() && !self.home.path("mux").exists());
        }
    }
}

fn keygen(file: &Path) {
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(file).status();
    assert!(made.expect("OpenSSH is here").success());
}

/// A server that runs until it is dropped.
struct Server {
    folder: PathBuf,
    port: u16,
    child: Child,
}

impl Server {
    fn of(person: &Person, name: &str, more: &str) -> Self {
        let folder = person.home.path(name);
        std::fs::create_dir(&folder).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        std::fs::copy(person.home.path("id.pub"), folder.join("keys")).unwrap();
        let gpu = person.home.path("gpu");
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\nAuthorizedKeysFile {folder}/keys\n\
             StrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\nPermitRootLogin yes\n\
             PrintMotd no\nUseDNS no\nSetEnv PATH={gpu}:/usr/local/bin:/usr/bin:/bin HOME={folder}\n{more}\n",
            folder = folder.display(),
            gpu = gpu.display(),
        );
        std::fs::write(folder.join("config"), config).unwrap();
        keygen(&folder.join("host"));
        let child = Self::started(&folder, port);
        Server { folder, port, child }
    }

    fn started(folder: &Path, port: u16) -> Child {
        let log = std::fs::File::create(folder.join("log")).unwrap();
        let mut command = Command::new(SSHD);
        command.args(["-D", "-e", "-f"]).arg(folder.join("config")).stdin(Stdio::null()).stderr(log);
        let child = command.spawn().expect("an OpenSSH server is here");
        wait_until("a server", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        child
    }

    fn at(&self, host: &str) -> SshEndpoint {
        SshEndpoint::new(&user(), host, self.port, true).unwrap()
    }

    fn key(&self) -> String {
        let text = std::fs::read_to_string(self.folder.join("host.pub")).unwrap();
        text.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
    }

    /// Another machine, with another key, at the same address.
    fn replace(&mut self) {
        self.signal(Signal::KILL);
        self.child.wait().unwrap();
        std::fs::remove_file(self.folder.join("host")).unwrap();
        keygen(&self.folder.join("host"));
        self.child = Self::started(&self.folder, self.port);
    }

    /// The same machine again.
    fn restart(&mut self) {
        self.signal(Signal::KILL);
        self.child.wait().unwrap();
        self.child = Self::started(&self.folder, self.port);
    }

    /// To the server and all its sessions.
    fn signal(&self, signal: Signal) {
        let all = below(self.child.id()).into_iter().map(|(pid, _)| pid).chain([self.child.id()]);
        all.for_each(|pid| send(pid, signal));
    }

    /// What its sessions run.
    fn commands(&self) -> Vec<u32> {
        let all = below(self.child.id()).into_iter();
        all.filter(|(_, name)| !name.starts_with("sshd")).map(|(pid, _)| pid).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        drop(self.child.wait());
    }
}

fn send(pid: u32, signal: Signal) {
    // One that has just ended is as good.
    let _ = kill_process(Pid::from_raw(pid as i32).unwrap(), signal);
}

fn user() -> String {
    let out = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(out.stdout).unwrap().trim().to_owned()
}

/// All that a process has started, with their names.
fn below(parent: u32) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((name, rest)) = stat.split_once('(').and_then(|(_, rest)| rest.rsplit_once(") ")) else { continue };
        let mut rest = rest.split_whitespace();
        if rest.next() != Some("Z") && rest.next() == Some(&parent.to_string()) {
            found.push((pid, name.to_owned()));
            found.extend(below(pid));
        }
    }
    found
}

#[rstest]
#[case::plain("")]
#[case::greeted("Banner /etc/passwd")]
#[case::rsa_client_alive("ClientAliveInterval 1")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an OpenSSH server: .ci/ssh/run"]
async fn a_machine_is_looked_into_and_left_clean(#[case] more: &str) {
    let person = Person::new();
    let server = Server::of(&person, "server", more);
    let mut listener = person.listener();
    listener.open_at("m1", &server.at("127.0.0.1"), false);
    for _ in 0..2 {
        let Told::Usage(usage) = listener.next().await else { panic!("a look") };
        let card = |gpu: &GpuSample| {
            (gpu.model.clone(), gpu.utilization, gpu.memory_used_bytes, gpu.memory_total_bytes, gpu.power_watts)
        };
        let model = || Some("NVIDIA H100 80GB HBM3".to_owned());
        let expected = (model(), Some(0.93), Some(71_234 << 20), Some(81_559 << 20), Some(612.4));
        assert_eq!(usage.gpus.iter().map(card).collect::<Vec<_>>(), [expected.clone(), expected]);
        assert!(usage.memory.is_some() && usage.mounts.iter().any(|mount| mount.path == "/"), "{usage:?}");
    }
    assert!(!server.commands().is_empty());
    listener.streams.close(&identity("m1"));
    wait_until("the end of all that ran there", || server.commands().is_empty());
    assert_eq!(person.home.known_hosts(), format!("rentop.vast.me.m1.0 {}\n", server.key()));
}

/// SSH-01, with K1, K2 and K3.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an OpenSSH server: .ci/ssh/run"]
async fn a_real_host_key_belongs_to_an_identity() {
    let person = Person::new();
    let mut server = Server::of(&person, "server", "");
    let mut listener = person.listener();
    listener.open_at("m1", &server.at("127.0.0.1"), false);
    listener.looks().await;
    let mut known = format!("rentop.vast.me.m1.0 {}\n", server.key());
    server.replace();
    listener.open_at("m2", &server.at("127.0.0.1"), false);
    listener.looks().await;
    let second = server.key();
    known.push_str(&format!("rentop.vast.me.m2.0 {second}\n"));
    server.replace();
    listener.open_at("m2", &server.at("127.0.0.1"), false);
    assert_eq!(listener.trouble().await, (0, Trouble::HostKeyChanged));
    assert!(server.commands().is_empty());
    assert_eq!(person.home.known_hosts(), known);
    listener.open_at("m2", &server.at("127.0.0.1"), true);
    listener.looks().await;
    assert_eq!(person.home.known_hosts(), known.replace(&second, &server.key()));
}

#[rstest]
#[case::killed_command(|server: &Server| server.commands().into_iter().for_each(|pid| send(pid, Signal::KILL)), Trouble::Ended)]
#[case::killed_server(|server: &Server| server.signal(Signal::KILL), Trouble::Ended)]
#[case::dead_link(|server: &Server| server.signal(Signal::STOP), Trouble::NoAnswer)]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an OpenSSH server: .ci/ssh/run"]
async fn a_stream_that_worked_says_why_it_ended(#[case] happens: fn(&Server), #[case] trouble: Trouble) {
    let person = Person::new();
    let server = Server::of(&person, "server", "");
    let mut listener = person.listener();
    listener.open_at("m1", &server.at("127.0.0.1"), false);
    listener.looks().await;
    happens(&server);
    assert_eq!(listener.trouble().await.1, trouble);
}

#[rstest]
#[case::no_key("AuthorizedKeysFile none", "127.0.0.1", Trouble::KeyRefused)]
#[case::no_commands(
    "ForceCommand echo This account is currently not available.; exit 1",
    "127.0.0.1",
    Trouble::NoCommands
)]
#[case::no_name("", "nobody.invalid", Trouble::NoSuchHost)]
#[case::refused_by_its_address("", "127.0.0.9", Trouble::ConnectionRefused)]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an OpenSSH server: .ci/ssh/run"]
async fn a_machine_that_lets_nobody_in_says_why(#[case] more: &str, #[case] host: &str, #[case] trouble: Trouble) {
    let person = Person::new();
    let server = Server::of(&person, "server", "");
    // The first word counts there.
    let config = std::fs::read_to_string(server.folder.join("config")).unwrap();
    let mut server = server;
    std::fs::write(server.folder.join("config"), format!("{more}\n{config}")).unwrap();
    server.replace();
    let mut listener = person.listener();
    listener.open_at("m1", &server.at(host), false);
    assert_eq!(listener.trouble().await, (0, trouble));
}

/// What the person's config says of the way is done: included files, a match, a jump host with its own known key.
#[rstest]
#[case::its_key(true, None)]
#[case::another_key(false, Some("Host key for jump has changed and you have requested strict checking."))]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an OpenSSH server: .ci/ssh/run"]
async fn a_machine_behind_a_jump_host_is_reached(#[case] known: bool, #[case] said: Option<&str>) {
    let mut person = Person::new();
    let jump = Server::of(&person, "jump", "");
    let server = Server::of(&person, "server", "AllowTcpForwarding no");
    let more = format!(
        "Match host behind.invalid exec \"true\"\n  HostName 127.0.0.1\n  ProxyJump jump\n\
         Host jump\n  HostName 127.0.0.1\n  Port {}\n  User {}\n  HostKeyAlias jump\n",
        jump.port,
        user(),
    );
    std::fs::write(person.home.path("more"), more).unwrap();
    let key = if known { jump.key() } else { server.key() };
    person.known_before.push_str(&format!("jump {key}\n"));
    std::fs::write(person.home.path("own_known_hosts"), &person.known_before).unwrap();
    let mut listener = person.listener();
    listener.open_at("m1", &server.at("behind.invalid"), false);
    match said {
        None => listener.looks().await,
        Some(said) => assert_eq!(listener.trouble().await, (0, Trouble::Said(said.to_owned()))),
    }
    // The jump host's key is the person's matter, the machine's is ours.
    let ours = if known { format!("rentop.vast.me.m1.0 {}\n", server.key()) } else { String::new() };
    assert_eq!(person.home.known_hosts(), ours);
    listener.streams.close(&identity("m1"));
    wait_until("the end of all that ran there", || server.commands().is_empty() && below(jump.child.id()).is_empty());
}

#[rstest]
#[case::by_its_own_will(false)]
#[case::killed(true)]
#[ignore = "needs an OpenSSH server: .ci/ssh/run"]
fn the_program_itself_looks_into_a_real_machine_and_leaves_it(#[case] killed: bool) {
    let person = Person::new();
    // Providers say `root`; whoever runs this may be somebody else.
    if user() != "root" {
        std::fs::write(person.home.path("more"), format!("Match all\n  User {}\n", user())).unwrap();
    }
    let server = Server::of(&person, "server", "");
    let lab = super::lab(server.port);
    let mut terminal = super::screen(&lab, &person.home.path("ssh"));
    wait_until("a stream", || !server.commands().is_empty());
    let known_hosts = std::fs::read_to_string(lab.state_dir().join(KNOWN_HOSTS)).unwrap();
    assert_eq!(known_hosts, format!("rentop.vast.me.31000001.0 {}\n", server.key()));
    if killed {
        // It has looked once, and rests.
        terminal.wait_for("93");
        terminal.child.kill().unwrap();
        let began = Instant::now();
        wait_until("the end of all that ran there", || below(server.child.id()).is_empty());
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        return;
    }
    terminal.press("q");
    assert!(terminal.wait_end().success());
    wait_until("the end of all that ran there", || below(server.child.id()).is_empty());
}

/// The `ssh` of a jump host does not know that nobody sits before it.
#[test]
#[ignore = "needs an OpenSSH server: .ci/ssh/run"]
fn a_jump_host_that_nobody_knows_asks_nothing_on_our_screen() {
    let person = Person::new();
    let jump = Server::of(&person, "jump", "");
    let more = format!(
        "Match originalhost 127.0.0.1\n  ProxyJump jump\n\
         Host jump\n  HostName 127.0.0.1\n  Port {}\n  User {}\n  StrictHostKeyChecking ask\n",
        jump.port,
        user(),
    );
    std::fs::write(person.home.path("more"), more).unwrap();
    let lab = super::lab(jump.port);
    let mut terminal = super::screen(&lab, &person.home.path("ssh"));
    let log = || std::fs::read_to_string(jump.folder.join("log")).unwrap();
    // It ends by itself, before a stream that is silent would be ended.
    let began = Instant::now();
    while !log().contains("[preauth]") {
        assert!(began.elapsed() < Duration::from_secs(30), "it waits for an answer: {}", terminal.wrote());
        terminal.listen(Duration::from_millis(200));
    }
    terminal.press("q");
    assert!(terminal.wait_end().success());
    assert!(!terminal.wrote().contains("authenticity"));
}
