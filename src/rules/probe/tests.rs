//! Looks as they come, whole and broken. What the makers' tools answer has a file for each of them.

use jiff::SignedDuration;
use proptest::prelude::*;
use providers::gpu::Gpus;
use providers::usage::{GpuProcess, GpuSample, Mount, Server, Usage};
use rstest::rstest;

use super::cards::{Cards, WAYS, number};
use super::{MOST_BYTES, MOST_LINES, Reader, command};
use crate::rules::samples::at;
use crate::rules::usage::{Mismatch, mismatch};

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../fixtures/", $name))
    };
}

mod host;
mod makers;
mod nvidia;
mod seldom;

/// What a short question asks for.
const SHORT: &str = "--query-gpu=index,name,utilization.gpu,memory.used,memory.total,temperature.gpu,power.draw,power.limit \
    --format=csv,noheader,nounits";

fn read(word: &str, asked: &str, answer: &str) -> Cards {
    let way = WAYS.iter().find(|way| way.word == word).unwrap();
    (way.read)(if asked.is_empty() { way.asked } else { asked }, answer)
}

/// A look with the answer of a tool in it.
fn look(sections: &str) -> Usage {
    looks(&mut Reader::default(), &format!("@look\n{sections}\n@end\n")).pop().unwrap()
}

fn looks(reader: &mut Reader, text: &str) -> Vec<Usage> {
    text.lines().filter_map(|line| reader.line(line, at("10:00"))).collect()
}

fn told(word: &str, answer: &str, exit: i32) -> Usage {
    look(&format!("@cards {word}\n{answer}\n@exit {exit}"))
}

fn mib(mib: u64) -> Option<u64> {
    Some(mib * 1024 * 1024)
}

fn rented(count: u32, model: &str) -> Gpus {
    Gpus { model: model.to_owned(), count, memory_gib: None }
}

fn near(one: Option<f64>, other: f64) -> bool {
    one.is_some_and(|one| (one - other).abs() < 1e-9)
}

#[rstest]
#[case("1e400", None)]
#[case("5E3", None)]
#[case("12288 MiB", Some(12288.0))]
#[case("0 %", Some(0.0))]
#[case("71%", Some(71.0))]
#[case(" 87.12 ", Some(87.12))]
#[case("-3", Some(-3.0))]
#[case("[N/A]", None)]
#[case("NA", None)]
#[case("-", None)]
#[case("", None)]
#[case("nan", None)]
#[case("inf", None)]
#[case("1.2.3", None)]
fn a_number_is_what_a_cell_begins_with(#[case] cell: &str, #[case] expected: Option<f64>) {
    assert_eq!(number(cell), expected);
}

/// GPU-09: what greets, or is printed by the shell's own files, is no part of a look.
#[test]
fn only_a_whole_look_is_one() {
    let mut reader = Reader::default();
    let card = "@cards nvidia\n0, GPU-0, NVIDIA A100, 50, 81920, 512, 30, 60, 400, [N/A]\n@exit 0";
    let text = format!(
        "Welcome!\n@end\n\u{1b}[32m>> activated\u{1b}[0m\n@look\n{card}\n@look\n@host\n@end 0\n@look\n{card}\r\n"
    );
    let usages = looks(&mut reader, &text);
    assert_eq!(usages.len(), 1, "one broke off, one ended, one goes on");
    assert!(usages[0].gpus.is_empty());
    let usages = looks(&mut reader, "@end\nlogout\n@end\n");
    assert_eq!(usages.len(), 1);
    assert_eq!(usages[0].gpus[0].utilization, Some(0.5));
}

#[test]
fn a_flood_is_cut_and_said() {
    let mut reader = Reader::default();
    assert_eq!(reader.line("@look", at("10:00")), None);
    reader.line("@cards amd", at("10:00"));
    reader.line("{\"gpu_data\": [", at("10:00"));
    for _ in 0..20 {
        reader.line(&"x".repeat(MOST_BYTES / 4), at("10:00"));
    }
    for _ in 0..2 * MOST_LINES {
        reader.line("@x", at("10:00"));
    }
    let look = reader.look.as_ref().unwrap();
    let kept: usize = look.sections.iter().flat_map(|section| &section.lines).map(String::len).sum();
    assert!(kept <= MOST_BYTES && look.sections.len() <= MOST_LINES);
    let usage = reader.line("@end", at("10:00")).unwrap();
    assert_eq!(usage.fault.as_deref(), Some("amd-smi: > 512 KiB"));
    let rows: String = (0..4000).map(|n| format!("{n}, GPU-{n}, A100, 50, 81920, 512, 30, 60, 400, [N/A]\n")).collect();
    assert_eq!(told("nvidia", &rows, 0).gpus.len(), 64);
}

#[test]
fn the_command_is_one_line_that_every_login_shell_reads_alike() {
    let command = command(SignedDuration::from_secs(15));
    let script = command.strip_prefix("sh -c '").and_then(|rest| rest.strip_suffix('\'')).unwrap();
    assert!(!script.contains(['\'', '!', '\\', '\n']));
    for left in ["{PACE}", "{WAYS}", "{ARMS}", "{PATIENCE}", "{SELDOM}", "#"] {
        assert!(!script.contains(&format!(" {left}")), "{left}");
    }
    for way in WAYS {
        assert!(script.contains(&format!("{}) run {} ", way.word, way.tool)), "{}", way.word);
    }
    assert!(script.contains("pause=15"));
    assert!(command.len() < 8000, "{}", command.len());
    assert!(super::command(SignedDuration::ZERO).contains("pause=1;"), "not faster than once a second");
}

fn within_range(usage: &Usage) {
    let share = |share: Option<f64>| share.is_none_or(|share| (0.0..=1.0).contains(&share));
    let flow = |flow: Option<f64>| flow.is_none_or(|flow| flow.is_finite() && flow >= 0.0);
    assert!(share(usage.cpu) && share(usage.memory), "{usage:?}");
    assert!(flow(usage.disk_bytes_per_second) && flow(usage.network_bytes_per_second), "{usage:?}");
    assert!(usage.gpus.len() <= 64 && usage.mounts.len() <= 16 && usage.servers.len() <= 8);
    for gpu in &usage.gpus {
        assert!(share(gpu.utilization) && share(gpu.memory_share()), "{gpu:?}");
        assert!(flow(gpu.power_watts) && gpu.power_limit_watts.is_none_or(|limit| limit > 0.0));
        assert!(gpu.memory_total_bytes.is_none_or(|total| gpu.memory_used_bytes.is_none_or(|used| used <= total)));
        let texts = [&gpu.key, &gpu.model, &gpu.fault];
        assert!(texts.into_iter().flatten().all(|text| !text.chars().any(char::is_control) && text.len() < 700));
    }
    let texts =
        usage.fault.iter().chain(usage.users.iter().flatten()).chain(usage.mounts.iter().map(|mount| &mount.path));
    assert!(texts.clone().all(|text| !text.chars().any(char::is_control)), "{usage:?}");
}

/// Lines that look like something, out of order and out of range.
fn some_line() -> impl Strategy<Value = String> {
    let figure = || {
        prop_oneof![
            Just("0".to_owned()),
            Just("[N/A]".to_owned()),
            Just("-".to_owned()),
            any::<u64>().prop_map(|number| number.to_string()),
            any::<f64>().prop_map(|number| number.to_string()),
            (0..200u32).prop_map(|number| number.to_string()),
            "\\PC{0,6}",
        ]
    };
    let marker = prop_oneof![
        Just("host"),
        Just("mounts"),
        Just("users"),
        Just("serving"),
        Just("ports 22"),
        Just("apps"),
        Just("names")
    ];
    let way = (0..WAYS.len()).prop_map(|at| format!("@cards {}", WAYS[at].word));
    let path = prop_oneof![
        Just("/proc/uptime"),
        Just("/proc/stat"),
        Just("/proc/net/dev"),
        Just("/proc/diskstats"),
        Just("/proc/meminfo"),
        Just("/sys/devices/system/cpu/online"),
        Just("/sys/fs/cgroup/cpu.max"),
        Just("/sys/fs/cgroup/cpu.stat"),
        Just("/sys/fs/cgroup/memory.max"),
        Just("/sys/fs/cgroup/memory.current"),
        Just("/sys/fs/cgroup/io.stat"),
    ];
    let lead = prop_oneof![
        Just(""),
        Just("cpu  "),
        Just("eth0: "),
        Just("MemTotal: "),
        Just("MemAvailable: "),
        Just("usage_usec "),
        Just("8:0 rbytes="),
        Just("8 0 sda "),
        Just("0-"),
    ];
    let figures = move |separator: &'static str| {
        prop::collection::vec(figure(), 0..14).prop_map(move |cells| cells.join(separator))
    };
    prop_oneof![
        2 => Just("@look".to_owned()),
        3 => Just("@end".to_owned()),
        3 => marker.prop_map(|name| format!("@{name}")),
        3 => way,
        1 => any::<i32>().prop_map(|code| format!("@exit {code}")),
        4 => figures(", "),
        2 => figures(" "),
        2 => figures(" | ").prop_map(|row| format!("| {row} |")),
        3 => figures("\": {\"").prop_map(|row| format!("{{\"card0\": {{\"GPU use (%)\": \"{row}")),
        8 => (path, lead, figures(" ")).prop_map(|(path, lead, figures)| format!("{path}:{lead}{figures}")),
        2 => "\\PC{0,40}",
        1 => prop::collection::vec(any::<u8>(), 0..60).prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
    ]
}

proptest! {
    #[test]
    fn whatever_is_said_a_figure_is_in_its_range(lines in prop::collection::vec(some_line(), 0..60)) {
        let mut reader = Reader::default();
        for line in lines {
            if let Some(usage) = reader.line(&line, at("10:00")) {
                within_range(&usage);
            }
        }
    }

    #[test]
    fn whatever_a_tool_answers_no_reader_falls(answer in "[\\PC\n|/:,\"{}\\[\\]]{0,200}", exit in 0..256i32) {
        for way in WAYS {
            within_range(&told(way.word, &answer.replace('@', ""), exit));
        }
    }
}
