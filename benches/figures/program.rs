//! The real binary in a pseudo-terminal, over simulated providers.

use std::time::{Duration, Instant};

use providers::sim::{Fault, Harm, Load, Machine, Shared, SimClock, World};

use crate::measure::{Judged, Measured};
use crate::rented;
use crate::support::terminal::Terminal;
use crate::support::{Account, KEY, Lab};

const SIZE: (u16, u16) = (120, 40);

/// RunPod accounts of which none ever answers.
fn silent(accounts: usize) -> Lab {
    let accounts = (0..accounts).map(|n| {
        let mut world = World::new(SimClock::manual(jiff::Timestamp::now()), KEY);
        world.faults.push(Fault { method: "", path: String::new(), times: u32::MAX, harm: Harm::Hang });
        let name = rented::account(n).to_string().leak();
        Account { provider: "runpod", name, world: Shared::new(world), extra: "" }
    });
    Lab::new(accounts.collect())
}

pub fn leave(mut terminal: Terminal) {
    // Whatever window is open by then.
    terminal.press("\u{3}");
    assert!(terminal.wait_end().success(), "it does not end well");
}

/// From the command to the frame that shows what the ledger remembers.
pub fn start() -> Vec<Measured> {
    let lab = silent(3);
    rented::remember(&lab.state_dir(), 1, 50);
    rented::a_year_ago(&lab.state_dir(), 10_000, 4_000);
    let starts: Vec<Duration> = (0..30)
        .map(|_| {
            let began = Instant::now();
            let mut terminal = Terminal::start(&lab, &[], SIZE.0, SIZE.1);
            terminal.wait_for("H100 SXM");
            let took = began.elapsed();
            leave(terminal);
            took
        })
        .collect();
    vec![Measured::times("start to first frame, ledger of a year", Judged::P99, 50.0, &starts)]
}

/// From a key to the last byte of its frame, while every provider hangs.
pub fn hanging() -> Vec<Measured> {
    let lab = silent(10);
    rented::remember(&lab.state_dir(), 10, 1000);
    let mut terminal = Terminal::start(&lab, &[], SIZE.0, SIZE.1);
    terminal.wait_for("H100 SXM");
    while terminal.take(Duration::from_millis(500)) {}
    let mut frames = Vec::new();
    for key in ["j", "\x1b[6~", "j", "o", "/", "4", "2", "\x1b[B", "\r", "\x1b"].iter().cycle().take(400) {
        let pressed = Instant::now();
        terminal.press(key);
        assert!(terminal.take(Duration::from_secs(5)), "no frame follows {key:?}");
        let mut took = pressed.elapsed();
        while terminal.take(Duration::from_millis(5)) {
            took = pressed.elapsed();
        }
        frames.push(took);
    }
    leave(terminal);
    vec![Measured::times("key to bytes, every provider hangs, 10,000 rows", Judged::P99, 16.0, &frames)]
}

/// Memory, processor time and bytes with 50 instances at three providers, of which no figure changes, after a
/// year of use.
pub fn quiet() -> Vec<Measured> {
    let lab = Lab::new(vec![busy("runpod", "team", 25), busy("vast", "me", 15), busy("lambda", "lab", 10)]);
    rented::a_year_ago(&lab.state_dir(), 10_000, 4_000);
    let mut terminal = Terminal::start(&lab, &[], SIZE.0, SIZE.1);
    terminal.wait_for("/ 53");
    terminal.listen(Duration::from_secs(8));
    let pid = terminal.child.process_id().expect("a program that runs");
    let mut measured = Windows::default();
    for _ in 0..5 {
        let (began, used) = (Instant::now(), processor_time(pid));
        let bytes = terminal.listen(Duration::from_secs(12));
        let seconds = began.elapsed().as_secs_f64();
        measured.processor.push((processor_time(pid) - used).as_secs_f64() / seconds * 100.0);
        measured.bytes.push(bytes as f64 / seconds);
        measured.resident.push(in_megabytes(pid, "status", "VmRSS:"));
        measured.share.push(in_megabytes(pid, "smaps_rollup", "Pss:"));
    }
    leave(terminal);
    vec![
        Measured::new("idle processor time, 50 instances", "%", Judged::Median, 0.5, measured.processor),
        Measured::new("bytes a second when nothing changes", "B/s", Judged::Median, 200.0, measured.bytes),
        Measured::new("resident memory, 50 instances", "MB", Judged::Worst, 25.0, measured.resident),
        Measured::new("  of it our own share (Pss)", "MB", Judged::Worst, 25.0, measured.share).beside(),
    ]
}

/// A sample a window.
#[derive(Default)]
struct Windows {
    processor: Vec<f64>,
    bytes: Vec<f64>,
    resident: Vec<f64>,
    share: Vec<f64>,
}

/// An account with running machines, in a world whose clock stands still.
fn busy(provider: &'static str, name: &'static str, machines: usize) -> Account {
    let mut world = World::new(SimClock::manual(jiff::Timestamp::now()), KEY);
    world.machines = machines_of(provider, machines, world.now());
    Account { provider, name, world: Shared::new(world), extra: "" }
}

/// Machines with ids and cards as the provider has them.
pub fn machines_of(provider: &str, count: usize, now: jiff::Timestamp) -> Vec<Machine> {
    let machine = |n: usize| {
        let (id, gpu) = match provider {
            "runpod" => (format!("k3x{n:011}"), "NVIDIA H100 80GB HBM3"),
            "vast" => (format!("{}", 31_000_000 + n), "RTX 4090"),
            _ => (format!("c0ffee{n:026}"), "gpu_1x_a10"),
        };
        Machine { gpu: gpu.to_owned(), load: Load::Busy, ..Machine::new(&id, &format!("job-{n:03}"), now) }
    };
    (0..count).map(machine).collect()
}

/// What all threads of a process have used so far.
pub fn processor_time(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a program that runs");
    // The name in brackets may hold blanks; user and system time are the 14th and 15th field.
    let fields: Vec<&str> = stat[stat.rfind(')').expect("a name in brackets")..].split_whitespace().collect();
    let ticks: u64 = fields[12..14].iter().map(|field| field.parse::<u64>().expect("a number of ticks")).sum();
    // Linux counts in hundredths of a second here, whatever the kernel's own pace.
    Duration::from_millis(ticks * 10)
}

/// A line of one of a process's files, told there in kB.
pub fn in_megabytes(pid: u32, file: &str, name: &str) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/{file}")).expect("a program that runs");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a line of that name");
    let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse().expect("a number of kB");
    kilobytes * 1024.0 / 1e6
}
