//! Rates and shares from counters.

use super::*;

/// Two looks, and what the second one tells.
fn second(first: &str, then: &str) -> Usage {
    let text = format!("@look\n@host\n{first}\n@end\n@look\n@host\n{then}\n@end\n");
    let mut usages = looks(&mut Reader::default(), &text);
    assert_eq!(usages.len(), 2);
    assert_eq!((usages[0].cpu, usages[0].network_bytes_per_second), (None, None), "a rate takes two looks");
    usages.pop().unwrap()
}

#[test]
fn rates_are_what_the_counters_moved_by() {
    let usage = second(
        "/proc/uptime:100.00 50.0\n/proc/stat:cpu  100 0 100 800 0 0 0 0 7 0\n\
         /proc/net/dev:    lo: 5 0 0 0 0 0 0 0 5 0 0 0 0 0 0 0\n\
         /proc/net/dev:  eth0: 1000 0 0 0 0 0 0 0 2000 0 0 0 0 0 0 0\n\
         /proc/net/dev:docker0: 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0 0\n\
         /proc/diskstats: 259 0 nvme0n1 1 0 100 0 1 0 200 0 0 0 0\n\
         /proc/diskstats: 259 1 nvme0n1p1 1 0 100 0 1 0 200 0 0 0 0",
        "/proc/uptime:110.00 55.0\n/proc/stat:cpu  150 0 150 1050 50 0 0 0 900 0\n\
         /proc/meminfo:MemTotal:       1000 kB\n/proc/meminfo:MemAvailable:    250 kB\n\
         /proc/net/dev:    lo: 900005 0 0 0 0 0 0 0 900005 0 0 0 0 0 0 0\n\
         /proc/net/dev:  eth0:11000 0 0 0 0 0 0 0 7000 0 0 0 0 0 0 0\n\
         /proc/net/dev:docker0: 90001 0 0 0 0 0 0 0 1 0 0 0 0 0 0 0\n\
         /proc/diskstats: 259 0 nvme0n1 1 0 120 0 1 0 280 0 0 0 0\n\
         /proc/diskstats: 259 1 nvme0n1p1 1 0 120 0 1 0 280 0 0 0 0",
    );
    // 100 of 400 ticks were work; waiting for a disk is none.
    assert!(near(usage.cpu, 0.25), "{:?}", usage.cpu);
    assert!(near(usage.memory, 0.75));
    assert!(near(usage.network_bytes_per_second, 1500.0));
    assert!(near(usage.disk_bytes_per_second, 5120.0));
}

#[test]
fn a_container_is_measured_by_its_own_group() {
    let host = "/proc/stat:cpu  100 0 100 800\n/sys/devices/system/cpu/online:0-63\n\
        /proc/meminfo:MemTotal: 1000000 kB\n/proc/meminfo:MemAvailable: 10 kB\n\
        /sys/fs/cgroup/cpu.max:400000 100000\n/sys/fs/cgroup/memory.max:1024000\n\
        /sys/fs/cgroup/memory.stat:inactive_file 256000";
    let usage = second(
        &format!(
            "{host}\n/proc/uptime:100.00 5\n/sys/fs/cgroup/cpu.stat:usage_usec 1000000\n\
             /proc/diskstats: 8 0 sda 1 0 0 0 1 0 0 0 0 0 0\n\
             /sys/fs/cgroup/io.stat:8:0 rbytes=1000 wbytes=500 rios=1 wios=1 dbytes=0 dios=0\n\
             /sys/fs/cgroup/io.stat:253:0 rbytes=1000 wbytes=500 rios=1 wios=1 dbytes=0 dios=0"
        ),
        &format!(
            "{host}\n/proc/uptime:110.00 5\n/sys/fs/cgroup/cpu.stat:usage_usec 21000000\n\
             /proc/diskstats: 8 0 sda 1 0 99999999 0 1 0 0 0 0 0 0\n\
             /sys/fs/cgroup/memory.current:768000\n\
             /sys/fs/cgroup/io.stat:8:0 rbytes=6000 wbytes=5500 rios=1 wios=1 dbytes=0 dios=0\n\
             /sys/fs/cgroup/io.stat:253:0 rbytes=6000 wbytes=5500 rios=1 wios=1 dbytes=0 dios=0"
        ),
    );
    // 20 seconds of work in 10, of 4 processors.
    assert!(near(usage.cpu, 0.5), "{:?}", usage.cpu);
    assert!(near(usage.memory, 0.5), "{:?}", usage.memory);
    assert!(near(usage.disk_bytes_per_second, 1000.0), "{:?}", usage.disk_bytes_per_second);
}

#[test]
fn a_container_of_the_older_kind_too() {
    let host = "/sys/devices/system/cpu/online:0-63\n/proc/meminfo:MemTotal: 1000000 kB\n\
        /sys/fs/cgroup/cpu/cpu.cfs_quota_us:800000\n/sys/fs/cgroup/cpu/cpu.cfs_period_us:100000\n\
        /sys/fs/cgroup/memory/memory.limit_in_bytes:1000000\n/sys/fs/cgroup/memory/memory.usage_in_bytes:600000\n\
        /sys/fs/cgroup/memory/memory.stat:inactive_file 1\n/sys/fs/cgroup/memory/memory.stat:total_inactive_file 200000";
    let group = |uptime: u32, worked: u64, bytes: u64| {
        format!(
            "{host}\n/proc/uptime:{uptime}.00 5\n/sys/fs/cgroup/cpuacct/cpuacct.usage:{worked}\n\
             /sys/fs/cgroup/blkio/blkio.throttle.io_service_bytes:8:0 Read {bytes}\n\
             /sys/fs/cgroup/blkio/blkio.throttle.io_service_bytes:8:0 Sync 777777\n\
             /sys/fs/cgroup/blkio/blkio.throttle.io_service_bytes:8:0 Write 5"
        )
    };
    let usage = second(&group(100, 0, 0), &group(101, 2_000_000_000, 4096));
    assert!(near(usage.cpu, 0.25) && near(usage.memory, 0.4) && near(usage.disk_bytes_per_second, 4096.0), "{usage:?}");
}

#[rstest]
// Both groups are there and limit nothing: the machine is its own.
#[case::no_limit(
    "/sys/fs/cgroup/cpu/cpu.cfs_quota_us:-1\n/sys/fs/cgroup/memory/memory.limit_in_bytes:9223372036854771712",
    0.5
)]
// A group below the root without a limit of its own may use all 4.
#[case::all_of_them("/sys/fs/cgroup/cpu.max:max 100000", 0.1)]
#[case::some_of_them("/sys/fs/cgroup/cpuset.cpus.effective:0,3", 0.2)]
fn how_many_processors_there_are_is_the_smallest_that_is_told(#[case] group: &str, #[case] expected: f64) {
    let at = |uptime: u32, work: u32, idle: u32, worked: u32| {
        format!(
            "{group}\n/proc/meminfo:MemTotal: 1000 kB\n/sys/devices/system/cpu/online:0-3\n/proc/uptime:{uptime}.0 1\n\
             /proc/stat:cpu  {work} 0 0 {idle}\n/sys/fs/cgroup/cpu.stat:usage_usec {worked}"
        )
    };
    let usage = second(&at(10, 100, 100, 0), &at(20, 300, 300, 4_000_000));
    assert!(near(usage.cpu, expected), "{:?}", usage.cpu);
}

#[test]
fn a_counter_that_began_anew_and_one_that_is_new_tell_nothing() {
    let device = |name: &str, bytes: u32| format!("/proc/net/dev:{name}: {bytes} 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n");
    let then = |uptime: u32, devices: &str| format!("/proc/uptime:{uptime}.0 1\n/proc/stat:cpu  9 0 0 9\n{devices}");
    let before = then(10, &(device("eth0", 500) + &device("eth1", 100)));
    let usage = second(&before, &then(20, &(device("eth0", 5) + &device("eth1", 200) + &device("eth2", 1_000_000))));
    assert!(near(usage.network_bytes_per_second, 10.0), "{:?}", usage.network_bytes_per_second);
    assert_eq!(usage.cpu, None, "no tick passed");
    let back = second(&before, &then(5, &device("eth1", 900)));
    assert_eq!((back.cpu, back.network_bytes_per_second), (None, None), "the machine began anew");
}

#[test]
fn traffic_that_passes_two_devices_counts_once_and_a_tunnel_alone_counts() {
    let with = |uptime: u32, names: &[&str], bytes: u32| {
        let line = |name: &&str| format!("/proc/net/dev:{name}: {bytes} 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n");
        format!("/proc/uptime:{uptime}.0 1\n{}", names.iter().map(line).collect::<String>())
    };
    let all = ["lo", "eth0", "eth0.100", "veth12", "br-9", "tailscale0"];
    let usage = second(&with(10, &all, 0), &with(11, &all, 100));
    assert!(near(usage.network_bytes_per_second, 200.0), "{:?}", usage.network_bytes_per_second);
    let usage = second(&with(10, &["lo", "tap0"], 0), &with(11, &["lo", "tap0"], 100));
    assert!(near(usage.network_bytes_per_second, 100.0));
}
