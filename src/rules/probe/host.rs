//! The machine beside its cards: processors, memory, disks, network, from counters that the kernel keeps.
//!
//! A container sees the counters of the whole host, where neighbours work. What is its own stands in its control
//! group: where there is one, processors and disks are read from it, and memory where it has a limit. UNSURE: that
//! `/sys/fs/cgroup` has `cpu.max` or `memory.max` only below the root of all groups is so in kernels up to 6.18.

use std::collections::BTreeMap;

use providers::usage::Usage;

/// The counters at one moment.
#[derive(Debug, Default)]
pub(super) struct Host {
    /// Seconds of a clock that nobody sets.
    at: Option<f64>,
    /// Of all processors, in ticks: at work, and in all.
    ticks: Option<(u64, u64)>,
    /// Of a container: seconds that its processors worked, and how many it may use.
    own: Option<(f64, f64)>,
    /// In use, 0.0 to 1.0.
    memory: Option<f64>,
    /// Bytes read and written, by device.
    disks: BTreeMap<String, u64>,
    /// Bytes received and sent, by device.
    networks: BTreeMap<String, u64>,
}

const GROUP: &str = "/sys/fs/cgroup/";
const SECTOR: u64 = 512;
/// Looks nearer than this, in seconds, say little about a rate.
const NEAR: f64 = 0.2;
/// Devices whose traffic passes through another one too: it would count twice.
const VIRTUAL: [&str; 15] = [
    "lo", "docker", "br-", "veth", "virbr", "vnet", "cni", "flannel", "cali", "tun", "tap", "wg", "bond", "dummy",
    "ifb",
];

/// The files of a look, each with its lines.
struct Files<'a>(BTreeMap<&'a str, Vec<&'a str>>);

impl<'a> Files<'a> {
    /// Lines are `path:text`.
    fn read(lines: &'a [String]) -> Self {
        let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (path, text) in lines.iter().filter_map(|line| line.split_once(':')) {
            files.entry(path).or_default().push(text);
        }
        Files(files)
    }

    fn lines<'s>(&'s self, path: &str) -> impl Iterator<Item = &'a str> + use<'a, 's> {
        self.0.get(path).into_iter().flatten().copied()
    }

    /// The words of its first line.
    fn words(&self, path: &str) -> Option<Vec<&'a str>> {
        Some(self.lines(path).next()?.split_whitespace().collect())
    }

    /// The number in its only line.
    fn number(&self, path: &str) -> Option<f64> {
        self.words(path)?.first()?.parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// What stands behind a name in one of its lines.
    fn named(&self, path: &str, name: &str) -> Option<f64> {
        let value = self.lines(path).find_map(|line| line.strip_prefix(name)?.split_whitespace().next())?;
        value.parse().ok().filter(|number: &f64| number.is_finite())
    }

    fn group(&self, name: &str) -> Option<f64> {
        self.number(&format!("{GROUP}{name}"))
    }
}

impl Host {
    pub fn read(lines: &[String]) -> Self {
        let files = Files::read(lines);
        let total = files.named("/proc/meminfo", "MemTotal:").map(|kib| kib * 1024.0).filter(|total| *total > 0.0);
        let limit = files.group("memory.max").or_else(|| files.group("memory/memory.limit_in_bytes"));
        let limit = limit.filter(|limit| *limit > 0.0 && total.is_none_or(|total| *limit < total));
        let cores = files.words("/sys/devices/system/cpu/online").map(|words| count(words[0]));
        let allowed = allowed(&files);
        let fewer = allowed.is_some_and(|allowed| cores.is_none_or(|cores| allowed < cores));
        let below_root = ["cpu.max", "memory.max"].iter().any(|name| files.0.contains_key(&*format!("{GROUP}{name}")));
        let contained = below_root || fewer || limit.is_some();
        let may_use = allowed.into_iter().chain(cores).reduce(f64::min).filter(|cores| *cores > 0.0);
        Host {
            at: files.number("/proc/uptime"),
            ticks: ticks(&files).filter(|_| !contained),
            own: worked(&files).zip(may_use).filter(|_| contained),
            memory: match limit {
                Some(limit) => own_memory(&files).map(|used| used / limit),
                None => files
                    .named("/proc/meminfo", "MemAvailable:")
                    .zip(total)
                    .map(|(available, total)| 1.0 - available * 1024.0 / total),
            },
            disks: disks(&files, contained),
            networks: networks(&files),
        }
    }

    /// Puts into a look what is known now, and what follows from how the counters moved since the look before.
    pub fn tell(&self, before: Option<&Host>, usage: &mut Usage) {
        usage.memory = self.memory.map(|memory| memory.clamp(0.0, 1.0));
        let Some(before) = before else { return };
        let Some(passed) = self.at.zip(before.at).map(|(now, then)| now - then).filter(|passed| *passed >= NEAR) else {
            return;
        };
        let ticks = self.ticks.zip(before.ticks).and_then(|((work, all), (work_before, all_before))| {
            let all = all.checked_sub(all_before).filter(|all| *all > 0)?;
            Some(work.checked_sub(work_before)? as f64 / all as f64)
        });
        let own = self.own.zip(before.own).map(|((worked, cores), (before, _))| (worked - before) / (passed * cores));
        let cpu = own.filter(|own| *own >= 0.0).or(ticks);
        usage.cpu = cpu.map(|cpu| cpu.min(1.0));
        usage.disk_bytes_per_second = grown(&before.disks, &self.disks).map(|bytes| bytes as f64 / passed);
        usage.network_bytes_per_second = grown(&before.networks, &self.networks).map(|bytes| bytes as f64 / passed);
    }
}

/// By how much the devices that were there both times have moved on; one that began anew is left out.
fn grown(before: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>) -> Option<u64> {
    let moved = now.iter().filter_map(|(device, now)| now.checked_sub(*before.get(device)?));
    moved.reduce(u64::saturating_add)
}

/// `cpu user nice system idle iowait irq softirq steal …`: what comes behind is part of the first two.
fn ticks(files: &Files<'_>) -> Option<(u64, u64)> {
    let line = files.lines("/proc/stat").find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
    let idle = ticks.get(3)?.saturating_add(ticks.get(4).copied().unwrap_or(0));
    let all = ticks.iter().fold(0u64, |sum, ticks| sum.saturating_add(*ticks));
    Some((all.saturating_sub(idle), all))
}

/// How many processors the control group may use, where it says so.
fn allowed(files: &Files<'_>) -> Option<f64> {
    let quota = match files.words(&format!("{GROUP}cpu.max")) {
        Some(words) => words.first().and_then(|word| word.parse().ok()).zip(words.get(1).and_then(|w| w.parse().ok())),
        None => files.group("cpu/cpu.cfs_quota_us").zip(files.group("cpu/cpu.cfs_period_us")),
    };
    let quota = quota.map(|(quota, period): (f64, f64)| quota / period).filter(|cores| *cores > 0.0);
    let set = ["cpuset.cpus.effective", "cpuset/cpuset.effective_cpus"];
    let set = set.iter().find_map(|name| files.words(&format!("{GROUP}{name}"))).map(|words| count(words[0]));
    quota.into_iter().chain(set).filter(|cores| cores.is_finite() && *cores > 0.0).reduce(f64::min)
}

/// Seconds that the processors worked for the control group.
fn worked(files: &Files<'_>) -> Option<f64> {
    let newer = files.named(&format!("{GROUP}cpu.stat"), "usage_usec ").map(|micros| micros / 1e6);
    newer.or_else(|| files.group("cpuacct/cpuacct.usage").map(|nanos| nanos / 1e9))
}

/// Bytes that the control group holds; what it read from files and could let go is not in use.
fn own_memory(files: &Files<'_>) -> Option<f64> {
    let newer = files.group("memory.current").map(|used| (used, "memory.stat", "inactive_file "));
    let older = || {
        let used = files.group("memory/memory.usage_in_bytes")?;
        Some((used, "memory/memory.stat", "total_inactive_file "))
    };
    let (used, file, name) = newer.or_else(older)?;
    Some(used - files.named(&format!("{GROUP}{file}"), name).unwrap_or(0.0))
}

/// How many there are in `0-3,8`; 0 when it is no such list.
fn count(list: &str) -> f64 {
    let part = |part: &str| match part.split_once('-') {
        Some((first, last)) => Some(last.parse::<u32>().ok()?.checked_sub(first.parse().ok()?)? + 1),
        None => part.parse::<u32>().ok().map(|_| 1),
    };
    list.split(',').filter_map(part).map(f64::from).sum()
}

/// Whole disks; of a container what it did itself to them, for the rest is its neighbours'.
fn disks(files: &Files<'_>, contained: bool) -> BTreeMap<String, u64> {
    let mut whole: BTreeMap<&str, (String, u64)> = BTreeMap::new();
    for words in files.lines("/proc/diskstats").map(|line| line.split_whitespace().collect::<Vec<_>>()) {
        let [major, minor, name, _, _, read, _, _, _, written, ..] = words[..] else { continue };
        let sectors = read.parse::<u64>().ok().zip(written.parse::<u64>().ok());
        if let Some((read, written)) = sectors {
            let bytes = read.saturating_add(written).saturating_mul(SECTOR);
            whole.insert(name, (format!("{major}:{minor}"), bytes));
        }
    }
    let names: Vec<&str> = whole.keys().copied().collect();
    whole.retain(|name, _| !names.iter().any(|disk| is_part(name, disk)));
    if !contained {
        return whole.into_iter().map(|(name, (_, bytes))| (name.to_owned(), bytes)).collect();
    }
    let mut own: BTreeMap<String, u64> = BTreeMap::new();
    let newer = files.lines(&format!("{GROUP}io.stat")).map(io_stat);
    let older = files.lines(&format!("{GROUP}blkio/blkio.throttle.io_service_bytes")).map(service_bytes);
    for (device, bytes) in newer.chain(older).flatten() {
        let sum = own.entry(device.to_owned()).or_default();
        *sum = sum.saturating_add(bytes);
    }
    // What is stacked on a disk counts once, as far as the disks are known.
    let known: Vec<&str> = whole.values().map(|(device, _)| device.as_str()).collect();
    if own.keys().any(|device| known.contains(&device.as_str())) {
        own.retain(|device, _| known.contains(&device.as_str()));
    }
    own
}

/// `sda1` is a part of `sda`, `nvme0n1p1` of `nvme0n1`.
fn is_part(name: &str, disk: &str) -> bool {
    let rest = name.strip_prefix(disk).map(|rest| match disk.ends_with(|c: char| c.is_ascii_digit()) {
        true => rest.strip_prefix('p').unwrap_or("no"),
        false => rest,
    });
    rest.is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit()))
}

/// `8:0 rbytes=1 wbytes=2 rios=…`
fn io_stat(line: &str) -> Option<(&str, u64)> {
    let (device, rest) = line.split_once(' ')?;
    let value = |name| rest.split(' ').find_map(|pair: &str| pair.strip_prefix(name)?.parse::<u64>().ok());
    Some((device, value("rbytes=")?.saturating_add(value("wbytes=")?)))
}

/// `8:0 Read 1`, and other lines for what is counted another way.
fn service_bytes(line: &str) -> Option<(&str, u64)> {
    let mut words = line.split(' ');
    let (device, kind, bytes) = (words.next()?, words.next()?, words.next()?);
    matches!(kind, "Read" | "Write").then_some((device, bytes.parse().ok()?))
}

/// Devices that lead out of the machine; where all of them are virtual, those but the loopback.
fn networks(files: &Files<'_>) -> BTreeMap<String, u64> {
    let device = |line: &str| {
        let (name, counters) = line.split_once(':')?;
        let counters: Vec<&str> = counters.split_whitespace().collect();
        let bytes = |at: usize| counters.get(at)?.parse::<u64>().ok();
        Some((name.trim().to_owned(), bytes(0)?.saturating_add(bytes(8)?)))
    };
    let all: BTreeMap<String, u64> =
        files.lines("/proc/net/dev").filter_map(device).filter(|(name, _)| name != "lo").collect();
    let real = |name: &str| !name.contains(['.', '@']) && !VIRTUAL.iter().any(|begin| name.starts_with(begin));
    match all.keys().any(|name| real(name)) {
        true => all.into_iter().filter(|(name, _)| real(name)).collect(),
        false => all,
    }
}
