//! What is looked at every few looks only, and stays known in between: file systems, who is logged in, the processes
//! on the cards, what serves.

use std::collections::BTreeSet;

use providers::text::{clean, excerpt};
use providers::usage::{GpuProcess, GpuSample, Mount, Server, Usage};

use super::{Section, amd, nvidia};

#[derive(Debug, Default)]
pub(super) struct Seldom {
    mounts: Vec<Mount>,
    users: Option<Vec<String>>,
    /// Each with the id of its card.
    processes: Option<Vec<(String, GpuProcess)>>,
    /// What the cards are called, by index, where it is another question.
    names: Vec<(u32, String)>,
    servers: BTreeSet<Server>,
    ports: BTreeSet<u16>,
}

const MOST_MOUNTS: usize = 16;
const MOST_USERS: usize = 32;
const MOST_PROCESSES: usize = 64;
const MOST_PORTS: usize = 8;
const PATH: usize = 100;
/// File systems that are no disk. An overlay is what a container stands on, and counts.
const PSEUDO: [&str; 8] = ["tmpfs", "devtmpfs", "udev", "shm", "none", "proc", "sysfs", "efivarfs"];
/// A driver holds less than this of a card by itself, in bytes.
const HELD: u64 = 1 << 30;

impl Seldom {
    pub fn note(&mut self, section: &Section) {
        let lines = || section.lines.iter().map(String::as_str).filter(|line| !line.is_empty());
        let well = section.exit == Some(0);
        match section.name.as_str() {
            "mounts" => self.mounts = mounts(lines()),
            "users" => self.users = well.then(|| users(lines())),
            "apps" => self.processes = well.then(|| nvidia::processes(&section.text())),
            "names" => self.names = amd::names(&section.text()),
            "serving" => self.servers = lines().filter_map(server).collect(),
            "ports" => {
                let own = section.argument.parse().ok();
                self.ports = lines().filter_map(port).filter(|port| may_serve(*port) && Some(*port) != own).collect();
            }
            _ => {}
        }
    }

    /// Puts into a look what was last known.
    pub fn tell(&self, usage: &mut Usage) {
        usage.mounts.clone_from(&self.mounts);
        usage.users.clone_from(&self.users);
        for gpu in usage.gpus.iter_mut().filter(|gpu| gpu.model.is_none()) {
            gpu.model = self.names.iter().find(|(index, _)| *index == gpu.index).map(|(_, name)| name.clone());
        }
        if let Some(processes) = &self.processes {
            let placed = |(card, process): &(String, GpuProcess)| {
                let gpu = usage.gpus.iter().position(|gpu| gpu.key.as_ref() == Some(card)).map(|place| place as u32);
                GpuProcess { gpu, ..process.clone() }
            };
            usage.processes = Some(processes.iter().map(placed).collect());
        }
        if let Some(processes) = &mut usage.processes {
            processes.sort_by_key(|process| std::cmp::Reverse(process.memory_bytes));
            processes.truncate(MOST_PROCESSES);
        }
        usage.servers = self.servers.iter().cloned().collect();
        // A port tells nothing more about what is known by name.
        let held = |gpu: &GpuSample| gpu.memory_used_bytes.is_some_and(|used| used >= HELD);
        if usage.servers.is_empty() && usage.gpus.iter().any(held) {
            usage.servers = self.ports.iter().take(MOST_PORTS).map(|port| Server::Port(*port)).collect();
        }
    }
}

/// `Filesystem 1024-blocks Used Available Capacity Mounted on`, one line a device: the first that names it.
fn mounts<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<Mount> {
    let mut devices = BTreeSet::new();
    let mount = |line: &'a str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        // The name of a device may hold spaces, and so may the path: the share in use stands between the numbers and
        // the path.
        let capacity = (4..words.len()).find(|at| words[*at].ends_with('%') && words[at - 1].parse::<i64>().is_ok())?;
        let kib = |at: usize| words[at].parse::<u64>().ok()?.checked_mul(1024);
        let (total_bytes, used_bytes) = (kib(capacity - 3)?, kib(capacity - 2)?);
        let (device, path) = (words[0], words.get(capacity + 1..)?.join(" "));
        let shown = total_bytes > 0 && used_bytes <= total_bytes && !PSEUDO.contains(&device) && !path.is_empty();
        let new = shown && devices.insert(device);
        new.then(|| Mount { path: excerpt(&clean(&path), PATH), used_bytes, total_bytes })
    };
    lines.filter_map(mount).take(MOST_MOUNTS).collect()
}

/// The first word of each line, each once.
fn users<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let names = lines.filter_map(|line| line.split_whitespace().next()).map(|name| excerpt(name, 32));
    let names: BTreeSet<String> = names.filter(|name| !name.is_empty()).collect();
    names.into_iter().take(MOST_USERS).collect()
}

/// The part of a command line by which a server is known.
fn server(found: &str) -> Option<Server> {
    match () {
        () if found.starts_with("vllm") || found.starts_with("VLLM") => Some(Server::Vllm),
        () if found.starts_with("trtllm") || found.starts_with("tritonserver") => Some(Server::TensorRtLlm),
        () if found.starts_with("text-generation") => Some(Server::Tgi),
        () => None,
    }
}

/// `0: 00000000:1F90 00000000:0000 0A`: the port is the last part of the second word, in base 16.
fn port(line: &str) -> Option<u16> {
    let (_, port) = line.split_whitespace().nth(1)?.rsplit_once(':')?;
    u16::from_str_radix(port, 16).ok()
}

/// Whether who listens there may be a server of a model. What is taken at random, as a notebook's kernels and a
/// debugger take theirs, is none.
fn may_serve(port: u16) -> bool {
    match port {
        // `ssh` in containers; databases; what meets before a training over several cards.
        ..=1024 | 2222 | 3306 | 5432 | 6379 | 29400 | 29500 => false,
        // Screens, and TensorBoard among them.
        6000..=6063 => false,
        // Notebooks.
        8888..=8899 => false,
        // Measuring: Prometheus, the node's exporter, the cards' exporter.
        9090 | 9100 | 9400 => false,
        port => port < 32768,
    }
}
