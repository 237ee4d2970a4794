//! The real binary with streams to 200 machines, by the real `ssh` where its server is installed too.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use providers::sim::{Machine, Shared, SimClock, World};
use rentop::ledger::Ledger;
use rentop::rules::memory::Keep;
use rentop::rules::spend::Entries;
use rentop::rules::streams::Consent;

use crate::measure::{Judged, Measured};
use crate::program::{in_megabytes, leave, machines_of, processor_time};
use crate::rented;
use crate::support::terminal::Terminal;
use crate::support::{Account, KEY, Lab};

const STREAMS: usize = 200;
const SSHD: &str = "/usr/sbin/sshd";
/// The longest wait until all are connected: the keys of each are exchanged by these processors, on both sides.
const PATIENCE: Duration = Duration::from_secs(300);

/// Time, memory and processor time of our own process with 200 streams at their usual pace, and what their `ssh`
/// processes take beside it.
pub fn streams() -> Vec<Measured> {
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    let lab = lab(port);
    let machines = Machines::serve(lab.home.path(), port);
    let mut command = Terminal::command(&lab, &[]);
    command.env("RENTOP_SSH", lab.home.path().join("ssh"));
    let began = Instant::now();
    let mut terminal = Terminal::spawn(command, 120, 40);
    terminal.wait_for("job-000");
    let pid = terminal.child.process_id().expect("a program that runs");
    while children(pid).len() < STREAMS {
        assert!(began.elapsed() < PATIENCE, "only {} streams are open", children(pid).len());
        terminal.listen(Duration::from_millis(200));
    }
    let connected = began.elapsed();
    terminal.listen(Duration::from_secs(20));
    let [mut processor, mut resident, mut share, mut beside] = [const { Vec::new() }; 4];
    for _ in 0..5 {
        let (window, used) = (Instant::now(), processor_time(pid));
        terminal.listen(Duration::from_secs(15));
        processor.push((processor_time(pid) - used).as_secs_f64() / window.elapsed().as_secs_f64() * 100.0);
        resident.push(in_megabytes(pid, "status", "VmRSS:"));
        share.push(in_megabytes(pid, "smaps_rollup", "Pss:"));
        let open = children(pid);
        assert_eq!(open.len(), STREAMS, "streams were lost");
        beside.push(open.into_iter().map(|child| in_megabytes(child, "smaps_rollup", "Pss:")).sum());
    }
    leave(terminal);
    let by = if machines.server.is_some() { "ssh" } else { "stand-in" };
    vec![
        Measured::new(format!("processor time, {STREAMS} streams by {by}"), "%", Judged::Median, 25.0, processor),
        Measured::new(format!("resident memory, {STREAMS} streams"), "MB", Judged::Worst, 64.0, resident),
        Measured::new("  of it our own share (Pss)", "MB", Judged::Worst, 64.0, share).beside(),
        Measured::new("  their own processes beside it (Pss)", "MB", Judged::Worst, 400.0, beside).beside(),
        Measured::times("  until all are open, eight at a time", Judged::Worst, 120_000.0, &[connected]).beside(),
    ]
}

/// Machines at one address, into which this program may look for good.
fn lab(port: u16) -> Lab {
    let mut world = World::new(SimClock::manual(jiff::Timestamp::now()), KEY);
    let at = |machine| Machine { address: "127.0.0.1".to_owned(), ssh_port: port, ..machine };
    world.machines = machines_of("vast", STREAMS, world.now()).into_iter().map(at).collect();
    let lab = Lab::new(vec![Account { provider: "vast", name: "me", world: Shared::new(world), extra: "" }]);
    let now = jiff::Timestamp::now();
    let (mut ledger, _) = Ledger::open(&lab.state_dir(), now).expect("a ledger in a folder of our own");
    let account = rented::memory(&"me".into(), "vast", now);
    let account = rentop::rules::memory::AccountMemory { streams: Consent::Always, ..account };
    let keep = Keep { account, instances: Vec::new(), storage: Vec::new(), entries: Entries::default() };
    ledger.keep(&keep).expect("a ledger that can be written");
    lab
}

/// What answers at the address.
struct Machines {
    /// `None`: there is no server, and `ssh` is a script that runs the command here.
    server: Option<Child>,
}

impl Machines {
    fn serve(folder: &Path, port: u16) -> Self {
        let shown = folder.display();
        let script = |text: &str| {
            let file = folder.join("ssh");
            std::fs::write(&file, format!("#!/bin/sh\n{text}\n")).expect("a file of our own");
            std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).expect("a file of our own");
        };
        if !Path::new(SSHD).exists() {
            script("for command; do :; done\nexec sh -c \"$command\"");
            return Machines { server: None };
        }
        for key in ["id", "host"] {
            let file = folder.join(key);
            let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(file).status();
            assert!(made.is_ok_and(|made| made.success()), "no key can be made");
        }
        let user = Command::new("id").arg("-un").output().expect("a user");
        let user = String::from_utf8_lossy(&user.stdout).into_owned();
        // Whoever measures this may be another one than the machines' `root`.
        script(&format!("exec ssh -F '{shown}/config' -o User={} \"$@\"", user.trim()));
        std::fs::write(folder.join("config"), format!("IdentityFile {shown}/id\nIdentitiesOnly yes\n"))
            .expect("a file");
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {shown}/host\nPidFile none\nAuthorizedKeysFile {shown}/id.pub\n\
             StrictModes no\nPasswordAuthentication no\nUsePAM no\nPermitRootLogin yes\nPrintMotd no\nUseDNS no\n\
             MaxStartups 500\nSetEnv HOME={shown}\n"
        );
        std::fs::write(folder.join("sshd"), config).expect("a file of our own");
        let mut server = Command::new(SSHD);
        server.args(["-D", "-f"]).arg(folder.join("sshd")).stdin(Stdio::null()).stderr(Stdio::null());
        Machines { server: Some(server.spawn().expect("a server that starts")) }
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            drop(server.kill());
            drop(server.wait());
        }
    }
}

/// What a process has started and was not waited for.
fn children(parent: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).expect("a program that runs");
    let of = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
    let all: Vec<String> = tasks.flatten().map(of).collect();
    all.iter().flat_map(|text| text.split_whitespace()).filter_map(|pid| pid.parse().ok()).collect()
}
