//! The command that machines are asked with, run for real: by every shell that is here, with tools that only seem to
//! be those of the cards' makers.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use providers::usage::{GpuSample, Server, Usage, UsageSource};
use rentop::rules::probe::{Reader, command};
use tempfile::TempDir;

/// Nothing here takes this long, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);
const PACE: SignedDuration = SignedDuration::from_secs(1);

const NVIDIA: &str = r#"case $1 in
    --query-gpu=*) echo "0, GPU-fake-0, NVIDIA H200, 97, 143771, 131072, 54, 612.48, 700.00, Disabled";;
    --query-compute-apps=*) echo "GPU-fake-0, 23456, /opt/conda/bin/python3, 131060";;
esac"#;
/// A driver of before there were parts of cards.
const OLD_NVIDIA: &str = r#"case $1 in
    *mig.mode*) echo "Field \"mig.mode.current\" is not a valid field to query."; exit 2;;
    --query-gpu=*) echo "0, GPU-fake-0, Tesla K80, 55, 11441, 8000, 60, 120.50, 149.00";;
    --query-compute-apps=*) ;;
esac"#;

/// A machine with tools of its own in front of those that are here.
struct Machine {
    folder: TempDir,
}

impl Machine {
    fn new() -> Self {
        let machine = Machine { folder: tempfile::tempdir().unwrap() };
        for name in ["bin", "here", "home", "asked"] {
            std::fs::create_dir(machine.at(name)).unwrap();
        }
        machine
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Puts a tool there, which writes down what it is asked.
    fn with(self, tool: &str, script: &str) -> Self {
        let path = self.at("bin").join(tool);
        let asked = self.at("asked").join(tool);
        std::fs::write(&path, format!("#!/bin/sh\necho \"$*\" >>{}\n{script}\n", asked.display())).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    /// Makes a shell the machine's `sh`.
    fn with_sh(self, shell: &Path) -> Self {
        symlink(shell, self.at("bin").join("sh")).unwrap();
        self
    }

    fn asked(&self, tool: &str) -> Vec<String> {
        let asked = std::fs::read_to_string(self.at("asked").join(tool)).unwrap_or_default();
        asked.lines().map(str::to_owned).collect()
    }

    fn is_untouched(&self) -> bool {
        ["here", "home"].iter().all(|name| std::fs::read_dir(self.at(name)).unwrap().next().is_none())
    }

    fn log_in(&self, shell: &Path) -> Session {
        self.log_in_with(shell, &command(PACE))
    }

    fn log_in_with(&self, shell: &Path, line: &str) -> Session {
        self.log_in_by(shell, line, Stdio::null())
    }

    fn log_in_by(&self, shell: &Path, line: &str, input: Stdio) -> Session {
        let path = format!("{}:{}", self.at("bin").display(), std::env::var("PATH").unwrap());
        let mut session = Command::new(shell);
        session.arg("-c").arg(line).current_dir(self.at("here"));
        session.env("PATH", path).env("HOME", self.at("home")).env("XDG_DATA_HOME", self.at("asked"));
        session.env("XDG_CONFIG_HOME", self.at("asked")).env("SSH_CONNECTION", "192.0.2.1 50000 192.0.2.2 22");
        session.stdin(input).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        let mut child = session.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (tell, looks) = channel();
        let listener = std::thread::spawn(move || {
            let mut reader = Reader::default();
            let lines = output.split(b'\n').map_while(Result::ok);
            let mut usages =
                lines.filter_map(|line| reader.line(&String::from_utf8_lossy(&line), Timestamp::UNIX_EPOCH));
            // As soon as nobody wants another look, the output is closed.
            usages.all(|usage| tell.send(usage).is_ok());
        });
        Session { child: Some(child), looks: Some(looks), listener: Some(listener) }
    }
}

struct Session {
    child: Option<Child>,
    looks: Option<Receiver<Usage>>,
    listener: Option<std::thread::JoinHandle<()>>,
}

impl Session {
    fn look(&self) -> Usage {
        self.looks.as_ref().unwrap().recv_timeout(PATIENCE).expect("a look in time")
    }

    /// Nobody listens any more; gives whether the command ended by itself.
    fn hang_up(mut self) -> bool {
        drop(self.looks.take());
        let mut child = self.child.take().unwrap();
        let (id, (tell, ended)) = (child.id(), channel());
        let waiting = std::thread::spawn(move || tell.send(child.wait().is_ok()));
        let ended = ended.recv_timeout(PATIENCE) == Ok(true);
        if !ended {
            end_group(id);
        }
        waiting.join().unwrap().unwrap();
        ended
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            end_group(child.id());
            child.wait().unwrap();
        }
        if let Some(listener) = self.listener.take() {
            listener.join().unwrap();
        }
    }
}

/// Ends a command with all that it started. It may have ended before.
fn end_group(id: u32) {
    let group = rustix::process::Pid::from_raw(i32::try_from(id).unwrap()).unwrap();
    let _ended_before = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

fn sh() -> PathBuf {
    find("sh").expect("a POSIX shell")
}

fn check_two_looks(machine: &Machine, session: &Session, what: &str) {
    let (first, second) = (session.look(), session.look());
    let expected = GpuSample {
        index: 0,
        key: Some("GPU-fake-0".to_owned()),
        model: Some("NVIDIA H200".to_owned()),
        utilization: Some(0.97),
        memory_used_bytes: Some(131_072 << 20),
        memory_total_bytes: Some(143_771 << 20),
        temperature_c: Some(54.0),
        power_watts: Some(612.48),
        power_limit_watts: Some(700.0),
        partitioned: false,
        fault: None,
    };
    for usage in [&first, &second] {
        assert_eq!((usage.gpus.as_slice(), &usage.fault), ([expected.clone()].as_slice(), &None), "{what}");
        assert!(usage.gpus_told && usage.source == UsageSource::Ssh, "{what}");
        let process = &usage.processes.as_ref().expect(what)[0];
        assert_eq!((process.pid, process.gpu, process.name.as_deref()), (23456, Some(0), Some("python3")), "{what}");
        assert!(usage.mounts.iter().any(|mount| mount.path == "/" && mount.total_bytes > 0), "{what}: {usage:?}");
        assert!(usage.memory.is_some_and(|share| share > 0.0 && share <= 1.0), "{what}: {usage:?}");
    }
    assert_eq!((first.cpu, first.network_bytes_per_second), (None, None), "{what}");
    assert!(second.cpu.is_some_and(|cpu| (0.0..=1.0).contains(&cpu)), "{what}: {second:?}");
    assert!(machine.is_untouched(), "{what} left something behind");
}

#[test]
fn every_shell_tells_the_same_looks() {
    let mut seen = 0;
    for shell in ["sh", "dash", "bash", "busybox", "mksh"] {
        let Some(shell) = find(shell) else { continue };
        let machine = Machine::new().with("nvidia-smi", NVIDIA).with_sh(&shell);
        let session = machine.log_in(&machine.at("bin").join("sh"));
        check_two_looks(&machine, &session, &shell.display().to_string());
        seen += 1;
    }
    assert!(seen > 0);
}

/// A machine that has nothing but the small tools.
#[test]
fn the_small_tools_are_enough() {
    let Some(busybox) = find("busybox") else { return };
    let machine = Machine::new().with("nvidia-smi", NVIDIA).with_sh(&busybox);
    for tool in ["cat", "df", "grep", "sleep", "timeout", "who"] {
        symlink(&busybox, machine.at("bin").join(tool)).unwrap();
    }
    check_two_looks(&machine, &machine.log_in(&machine.at("bin").join("sh")), "busybox alone");
}

#[test]
fn every_login_shell_hands_the_command_on_unchanged() {
    for shell in ["sh", "bash", "zsh", "fish", "tcsh"] {
        let Some(shell) = find(shell) else { continue };
        let machine = Machine::new().with("nvidia-smi", NVIDIA);
        let session = machine.log_in(&shell);
        check_two_looks(&machine, &session, &shell.display().to_string());
    }
}

#[test]
fn it_ends_when_nobody_reads_any_more() {
    for line in [command(PACE), format!("trap '' PIPE; {}", command(PACE))] {
        for shell in ["dash", "bash", "busybox"] {
            let Some(shell) = find(shell) else { continue };
            let machine = Machine::new().with("nvidia-smi", NVIDIA).with_sh(&shell);
            let session = machine.log_in_with(&sh(), &line);
            session.look();
            assert!(session.hang_up(), "{}: {}", shell.display(), &line[..10]);
        }
    }
}

/// Whoever listened is gone without a word: its input ends, and it does not wait for its next look to find out.
#[test]
fn it_ends_with_an_input_that_was_held() {
    for shell in ["dash", "bash", "busybox"] {
        let Some(shell) = find(shell) else { continue };
        let machine = Machine::new().with("nvidia-smi", NVIDIA).with_sh(&shell);
        let (input, held) = std::io::pipe().unwrap();
        let line = command(SignedDuration::from_mins(10));
        let mut session = machine.log_in_by(&sh(), &line, input.into());
        session.look();
        // It rests by now, or begins to within the next look of a stream that is quicker.
        let quick = machine.log_in_by(&sh(), &command(PACE), Stdio::null());
        let _two = (quick.look(), quick.look());
        drop(held);
        let mut child = session.child.take().unwrap();
        let (id, (tell, ended)) = (child.id(), channel());
        let waiting = std::thread::spawn(move || tell.send(child.wait().is_ok()));
        let in_time = ended.recv_timeout(PATIENCE) == Ok(true);
        end_group(id);
        waiting.join().unwrap().unwrap();
        assert!(in_time, "{}", shell.display());
    }
}

#[test]
fn what_moves_slowly_is_not_asked_each_time() {
    let machine = Machine::new().with("nvidia-smi", NVIDIA).with("df", "exec /bin/df \"$@\"").with("who", "exit 0");
    let session = machine.log_in(&sh());
    let looks = [session.look(), session.look(), session.look()];
    assert!(looks.iter().all(|usage| usage.processes.is_some() && !usage.mounts.is_empty()));
    drop(session);
    let asked = machine.asked("nvidia-smi");
    let apps = asked.iter().filter(|asked| asked.starts_with("--query-compute-apps")).count();
    assert_eq!((apps, machine.asked("df").len()), (1, 1), "{asked:?}");
    assert!((3..=4).contains(&(asked.len() - apps)), "{asked:?}");
}

#[test]
fn a_tool_that_is_slow_is_asked_less_often() {
    let pause = |tool: &str| {
        let machine = Machine::new().with("nvidia-smi", tool).with("sleep", "exec /bin/sleep 0.1");
        let session = machine.log_in(&sh());
        let _three = [session.look(), session.look(), session.look()];
        drop(session);
        machine.asked("sleep").iter().map(|seconds| seconds.parse::<u32>().unwrap()).collect::<Vec<_>>()
    };
    let slow = pause(&format!("/bin/sleep 1.1\n{NVIDIA}"));
    assert!(slow.len() >= 2 && slow.iter().all(|pause| (4..=15).contains(pause)), "{slow:?}");
    let quick = pause(NVIDIA);
    assert!(quick.contains(&1), "{quick:?}");
}

#[test]
fn a_field_that_is_not_known_is_asked_for_once() {
    let machine = Machine::new().with("nvidia-smi", OLD_NVIDIA);
    let session = machine.log_in(&sh());
    for usage in [session.look(), session.look()] {
        assert_eq!((usage.gpus.len(), usage.gpus[0].utilization, usage.fault), (1, Some(0.55), None));
    }
    drop(session);
    assert_eq!(machine.asked("nvidia-smi").iter().filter(|asked| asked.contains("mig.mode")).count(), 1);
}

#[test]
fn a_tool_that_hangs_is_ended_and_said() {
    // The machine's clock runs fast: what would take fifteen seconds takes one.
    let fast = "case $1 in -k) shift 3;; *) shift;; esac; exec /usr/bin/timeout 1 \"$@\"";
    let machine = Machine::new().with("nvidia-smi", "exec sleep 1000").with("timeout", fast);
    let session = machine.log_in(&sh());
    let usage = session.look();
    assert_eq!(usage.fault.as_deref(), Some("nvidia-smi: timeout 15 s"));
    assert!(usage.gpus.is_empty() && !usage.gpus_told && usage.memory.is_some() && !usage.mounts.is_empty());
    drop(session);
    assert_eq!(machine.asked("nvidia-smi").len(), 1, "the processes are not asked for");
    assert!(machine.asked("timeout").iter().any(|asked| asked.starts_with("-k 2 15 nvidia-smi ")));
}

#[test]
fn a_machine_without_timeout_is_asked_all_the_same() {
    let machine = Machine::new().with("nvidia-smi", NVIDIA).with("timeout", "exit 1");
    let session = machine.log_in(&sh());
    assert_eq!(session.look().gpus.len(), 1);
}

#[test]
fn what_the_driver_says_instead_of_figures_is_told() {
    let said = "echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18";
    let machine = Machine::new().with("nvidia-smi", said);
    let usage = machine.log_in(&sh()).look();
    assert_eq!(usage.fault.as_deref(), Some("Failed to initialize NVML: Driver/library version mismatch"));
    let machine = Machine::new().with("nvidia-smi", "echo 'No devices were found'; exit 6");
    let usage = machine.log_in(&sh()).look();
    assert!((usage.gpus.len(), usage.gpus_told, usage.fault) == (0, true, None));
}

#[test]
fn the_makers_number_decides_which_tool_is_asked() {
    let table = include_str!("../src/rules/probe/fixtures/npu_smi_info_910b.txt");
    let amd = include_str!("../src/rules/probe/fixtures/rocm_smi.json");
    let machine = Machine::new()
        .with("nvidia-smi", "echo 'no driver'; exit 9")
        .with("cat", "echo 0x8086; echo 0x19e5")
        .with("npu-smi", &format!("cat <<'END'\n{table}END").replace("cat <<", "/bin/cat <<"));
    let usage = machine.log_in(&sh()).look();
    assert_eq!((usage.gpus.len(), usage.gpus[1].utilization), (3, Some(0.87)));
    assert_eq!(machine.asked("npu-smi"), ["info"]);
    assert!(machine.asked("nvidia-smi").is_empty());

    // A tool that does not know what it is asked gives way to the older one.
    let machine = Machine::new()
        .with("cat", "echo 0x1002")
        .with("amd-smi", "echo 'unrecognized arguments' >&2; exit 2")
        .with("rocm-smi", &format!("/bin/cat <<'END'\n{amd}END"));
    let session = machine.log_in(&sh());
    for usage in [session.look(), session.look()] {
        assert_eq!((usage.gpus.len(), usage.gpus[0].power_watts, usage.fault), (2, Some(512.0), None));
    }
    drop(session);
    assert_eq!(machine.asked("amd-smi").len(), 1);
}

#[test]
fn a_server_is_known_by_its_command_line() {
    // What ends by itself when its input does is no danger to whoever runs this.
    let mut server = Command::new("cat").arg0("/usr/bin/vllm serve").stdin(Stdio::piped()).spawn().unwrap();
    let machine = Machine::new().with("nvidia-smi", NVIDIA);
    let usage = machine.log_in(&sh()).look();
    drop(server.stdin.take());
    server.wait().unwrap();
    assert!(usage.servers.contains(&Server::Vllm), "{:?}", usage.servers);
}
