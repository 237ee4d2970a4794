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
        include_str!(concat!("fixtures/", $name))
    };
}

/// What the tools' documentation lists, and more than we ask for.
const EVERYTHING: &str = "--query-gpu=timestamp,index,uuid,name,pci.bus_id,driver_version,utilization.gpu,\
    utilization.memory,memory.total,memory.used,memory.free,memory.reserved,temperature.gpu,temperature.memory,power.draw,\
    power.limit,pstate,clocks.sm,fan.speed,ecc.errors.uncorrected.volatile.total,mig.mode.current --format=csv";
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

mod nvidia {
    use super::*;

    fn all(answer: &str) -> Vec<GpuSample> {
        // The fixtures begin with a time, which is not asked for: the number of the card comes first.
        let strip = |line: &str| line.split_once(", ").map_or(String::new(), |(_, rest)| format!("{rest}\n"));
        let answer: String = answer.lines().map(strip).collect();
        read("nvidia", &EVERYTHING.replace("timestamp,", ""), &answer).gpus
    }

    fn key(number: u32) -> Option<String> {
        Some(format!("GPU-fake0000-0000-0000-0000-{number:012}"))
    }

    #[test]
    fn a_row_is_a_card_with_all_that_is_asked_for() {
        let gpus = all(fixture!("nvidia_8gpu.csv"));
        assert_eq!(gpus.len(), 3);
        assert_eq!(
            gpus[0],
            GpuSample {
                index: 0,
                key: key(0),
                model: Some("NVIDIA H200".to_owned()),
                utilization: Some(0.97),
                memory_used_bytes: mib(131_072),
                memory_total_bytes: mib(143_771),
                temperature_c: Some(54.0),
                power_watts: Some(612.48),
                power_limit_watts: Some(700.0),
                partitioned: false,
                fault: None,
            }
        );
        assert_eq!((gpus[1].utilization, gpus[1].memory_used_bytes), (Some(0.0), Some(0)));
        assert_eq!((gpus[2].index, gpus[2].utilization), (2, Some(1.0)));
    }

    /// GPU-01: what is not told is not known, never 0, and costs nothing else.
    #[test]
    fn a_cell_without_a_number_costs_that_cell() {
        let answer = "0, NVIDIA A10-12Q, 0, 227, 12288, [N/A], [N/A], [N/A]\n\
            1, Tesla T4, 35, 4012, 15360, 55, [Not Supported], 70.00\n\
            2, NVIDIA A800-SXM4-80GB, 12, 36537, 81920, 33, 87.12, N/A\n\
            3, NVIDIA GeForce RTX 3090, , 1, 24576, 30, 21.50, 350.00\n";
        let gpus = read("nvidia", SHORT, answer).gpus;
        assert_eq!(gpus.len(), 4);
        assert_eq!(
            (gpus[0].temperature_c, gpus[0].utilization, gpus[0].memory_used_bytes),
            (None, Some(0.0), mib(227))
        );
        assert_eq!((gpus[1].power_watts, gpus[1].power_limit_watts), (None, Some(70.0)));
        assert_eq!((gpus[2].power_watts, gpus[2].power_limit_watts), (Some(87.12), None));
        assert_eq!((gpus[3].utilization, gpus[3].memory_used_bytes), (None, mib(1)));
        assert!(gpus.iter().all(|gpu| gpu.fault.is_none()));

        let consumer = &all(fixture!("nvidia_consumer_na.csv"))[0];
        assert_eq!((consumer.utilization, consumer.partitioned, &consumer.fault), (Some(0.12), false, &None));
        let old = &all(fixture!("nvidia_not_supported_old_driver.csv"))[0];
        assert_eq!((old.utilization, old.temperature_c, old.partitioned), (Some(0.55), Some(60.0), false));
    }

    /// GPU-02, GPU-03: `[N/A]` is the word of cards that cannot be cut into parts.
    #[test]
    fn a_card_in_parts_says_so_and_tells_no_use() {
        let asked = format!("{},mig.mode.current", SHORT.split(' ').next().unwrap());
        let gpu =
            &read("nvidia", &asked, "0, NVIDIA A800-SXM4-80GB, [N/A], 36537, 81920, 33, 87.00, 400.00, Enabled\n").gpus
                [0];
        assert_eq!((gpu.utilization, gpu.partitioned), (None, true));
        assert!((gpu.memory_share().unwrap() - 0.446).abs() < 0.001);

        let modes = "0, NVIDIA GeForce RTX 4090, [N/A]\n1, NVIDIA A100-SXM4-80GB, Disabled\n\
            2, NVIDIA A100-SXM4-80GB, Enabled\n";
        let gpus = read("nvidia", "--query-gpu=index,name,mig.mode.current", modes).gpus;
        assert_eq!(gpus.iter().map(|gpu| gpu.partitioned).collect::<Vec<_>>(), [false, false, true]);

        let parent = &all(fixture!("nvidia_mig_parent.csv"))[0];
        assert_eq!((parent.utilization, parent.partitioned, &parent.fault), (None, true, &None));
        assert_eq!(parent.memory_used_bytes, mib(20_157));
    }

    #[test]
    fn a_card_that_is_lost_or_sick_has_a_fault() {
        let lost = &all(fixture!("nvidia_gpu_lost.csv"))[0];
        assert_eq!((lost.fault.as_deref(), &lost.key), (Some("GPU is lost"), &key(0)));
        let two = all(fixture!("nvidia_unknown_error.csv"));
        assert_eq!((two[0].utilization, &two[0].fault), (Some(0.98), &None));
        let expected = GpuSample { index: 1, fault: Some("Unknown Error".to_owned()), ..GpuSample::default() };
        assert_eq!(two[1], expected);
        // Some cards never tell their power, and work.
        let well = "0, NVIDIA A10, 35, 4012, 15360, 55, [Unknown Error], 70.00\n";
        assert_eq!(read("nvidia", SHORT, well).gpus[0].fault, None);
    }

    /// GPU-04, GPU-05, and what else a driver says when it has no figures.
    #[rstest]
    #[case::handle("Unable to determine the device handle for GPU0000:1B:00.0: Unknown Error", 255, "1B:00.0")]
    #[case::mismatch(fixture!("nvidia_err_mismatch.txt"), 18, "mismatch")]
    #[case::no_driver(fixture!("nvidia_err_no_driver.txt"), 9, "couldn't communicate with the NVIDIA driver")]
    #[case::container(fixture!("nvidia_err_container_lost.txt"), 255, "Failed to initialize NVML: Unknown Error")]
    #[case::bad_field(fixture!("nvidia_err_bad_field.txt"), 2, "is not a valid field")]
    #[case::hangs("", 124, "nvidia-smi: timeout 15 s")]
    #[case::killed("0, half a", 137, "nvidia-smi: timeout 15 s")]
    #[case::wordless("", 12, "nvidia-smi: exit 12")]
    #[case::rights("\u{1b}[31mPermission denied\u{1b}[0m", 4, "Permission denied")]
    fn what_the_driver_says_is_the_fault(#[case] answer: &str, #[case] exit: i32, #[case] part: &str) {
        let usage = told("nvidia", answer, exit);
        let fault = usage.fault.as_deref().unwrap();
        assert!(fault.contains(part) && !fault.contains(['\u{1b}', '\n']), "{fault}");
        assert!(usage.gpus.is_empty() && !usage.gpus_told);
        assert_eq!(mismatch(Some(&rented(1, "RTX 4090")), &usage), None, "nothing is known of the cards");
    }

    /// GPU-07: whether no card is an error is a matter of what is rented.
    #[test]
    fn no_card_at_all_is_told_or_not_known() {
        let no_tool = look("@host");
        assert!((&no_tool.fault, no_tool.gpus_told) == (&None, false));
        assert_eq!(mismatch(Some(&rented(1, "A100")), &no_tool), None);

        let none = told("nvidia", fixture!("nvidia_err_no_devices.txt"), 6);
        assert!((&none.fault, none.gpus_told, none.gpus.len()) == (&None, true, 0));
        assert_eq!(mismatch(Some(&rented(0, "")), &none), None);
        assert_eq!(mismatch(Some(&rented(1, "A100")), &none), Some(Mismatch::Fewer { seen: 0, rented: 1 }));
    }

    /// GPU-09, GPU-10a, GPU-10b, GPU-10c.
    #[test]
    fn text_between_rows_units_and_missing_cards_are_all_right() {
        let greeted = "Welcome to the machine. If authentication fails, try again after a few seconds.\nHave fun!\n\
            \u{1b}[32m>> env activated\u{1b}[0m\n0, NVIDIA GeForce RTX 4090, 97, 20111, 24564, 66, 402.10, 450.00\n\
            1, NVIDIA GeForce RTX 4090, 95, 20098, 24564, 64, 398.77, 450.00\nlogout\n";
        let gpus = read("nvidia", SHORT, greeted).gpus;
        assert_eq!((gpus.len(), gpus[0].utilization, gpus[1].memory_used_bytes), (2, Some(0.97), mib(20_098)));

        let units = "0, NVIDIA A10-12Q, 12288 MiB, 227 MiB, 0 %, 418.87.01\n\
            1, NVIDIA A10-12Q, 12288 MiB, 5 MiB, 0 %, 418.87.01\n";
        let asked =
            "--query-gpu=index,name,memory.total,memory.used,utilization.gpu,driver_version --format=csv,noheader";
        let gpus = read("nvidia", asked, units).gpus;
        assert_eq!((gpus.len(), gpus[0].memory_used_bytes, gpus[0].utilization), (2, mib(227), Some(0.0)));

        let row = |index: u32| {
            format!("{index}, GPU-{index}, NVIDIA H100 80GB HBM3, 98, 81559, 70000, 60, 650.00, 700.00, Disabled\n")
        };
        let eight = told("nvidia", &(0..8).map(row).collect::<String>(), 0);
        assert_eq!((eight.gpus.len(), eight.gpus_told), (8, true));
        assert_eq!(mismatch(Some(&rented(8, "H100 SXM")), &eight), None);
        let seven: String = (0..8).filter(|index| *index != 3).map(row).collect();
        let seven = told("nvidia", &seven, 0);
        assert_eq!(seven.gpus[3].index, 4);
        assert_eq!(mismatch(Some(&rented(8, "H100 SXM")), &seven), Some(Mismatch::Fewer { seen: 7, rented: 8 }));
    }

    #[test]
    fn a_card_that_is_named_and_not_reached_is_there_with_its_fault() {
        let answer = "0, GPU-0, NVIDIA H100 80GB HBM3, 98, 81559, 70000, 60, 650.00, 700.00, Disabled\n\
            Unable to determine the device handle for GPU1: 0000:1B:00.0: GPU is lost.  Reboot the system\n";
        let usage = told("nvidia", answer, 15);
        assert_eq!((usage.gpus.len(), usage.gpus[1].index, &usage.fault), (2, 1, &None));
        assert!(usage.gpus[1].fault.as_deref().unwrap().contains("0000:1B:00.0"));
        assert_eq!(mismatch(Some(&rented(2, "H100 SXM")), &usage), Some(Mismatch::Fewer { seen: 1, rented: 2 }));
    }

    #[test]
    fn a_question_that_is_not_understood_is_asked_in_another_way_and_the_last_answer_counts() {
        let usage = look(concat!(
            "@cards nvidia\nField \"mig.mode.current\" is not a valid field to query.\n\n@exit 2\n",
            "@cards nvidia-old\n0, GPU-0, Tesla K80, 55, 11441, 8000, 60, 120.50, 149.00\n\n@exit 0",
        ));
        assert_eq!((usage.gpus.len(), usage.gpus[0].utilization, usage.fault), (1, Some(0.55), None));
    }

    /// GPU-06: what the name space hides is hidden; none is no proof of none.
    #[test]
    fn processes_have_their_card_and_their_short_name() {
        let rows = "0, GPU-fake0000-0000-0000-0000-000000000000, NVIDIA H200, 97, 143771, 131072, 54, 612.48, 700.00, [N/A]\n\
            1, GPU-fake0000-0000-0000-0000-000000000002, NVIDIA H200, 100, 143771, 142900, 54, 612.48, 700.00, [N/A]";
        let with =
            |apps: &str, exit: i32| look(&format!("@cards nvidia\n{rows}\n@exit 0\n@apps\n{apps}\n@exit {exit}"));
        let process = |gpu, pid, name: Option<&str>, memory_bytes| GpuProcess {
            gpu: Some(gpu),
            pid,
            name: name.map(str::to_owned),
            memory_bytes,
        };
        assert_eq!(
            with(fixture!("nvidia_compute_apps.csv"), 0).processes,
            Some(vec![
                process(0, 23456, Some("python3"), mib(131_060)),
                process(1, 23999, Some("tool,with,commas"), mib(512)),
                process(1, 24001, None, None),
            ])
        );
        let hidden = with("GPU-fake0000-0000-0000-0000-000000000000, 56752, [Not Found], 33106", 0);
        assert_eq!(hidden.processes, Some(vec![process(0, 56752, None, mib(33_106))]));
        assert_eq!(with("", 0).processes, Some(vec![]));
        assert_eq!(with("", 124).processes, None);
    }

    #[test]
    fn iluvatar_is_read_the_same_way() {
        let gpus = read("iluvatar", "", fixture!("ixsmi.csv")).gpus;
        assert_eq!(gpus.len(), 2);
        assert_eq!(
            (gpus[0].utilization, gpus[0].temperature_c, gpus[0].memory_used_bytes),
            (Some(0.71), Some(52.0), mib(12_116))
        );
        assert_eq!(gpus[1].memory_total_bytes, mib(16_384));
    }
}

#[rstest]
#[case::newer(fixture!("amd_smi_metric.json"))]
#[case::older(fixture!("amd_smi_metric_old_array.json"))]
fn amd_is_read_from_both_shapes(#[case] answer: &str) {
    let expected = GpuSample {
        index: 0,
        utilization: Some(0.99),
        memory_used_bytes: mib(139_580),
        memory_total_bytes: mib(196_592),
        temperature_c: Some(52.0),
        power_watts: Some(512.0),
        ..GpuSample::default()
    };
    assert_eq!(read("amd", "", answer).gpus[..], *std::slice::from_ref(&expected));
    let warned = format!("WARNING: old driver\n{answer}\ngoodbye");
    assert_eq!(read("amd", "", &warned).gpus[..], *std::slice::from_ref(&expected));

    let names = r#"{"gpu_data": [{"gpu": 0, "asic": {"market_name": "AMD Instinct MI300X"}}]}"#;
    let usage = look(&format!("@cards amd\n{answer}\n@exit 0\n@names\n{names}\n@exit 0"));
    let named = GpuSample { model: Some("AMD Instinct MI300X".to_owned()), ..expected };
    assert_eq!(usage.gpus, [named]);
}

#[test]
fn amd_without_a_card_says_so() {
    let none = told("amd", r#"{"gpu_data": []}"#, 0);
    assert!((none.gpus_told, &none.fault) == (true, &None));
    let broken = told("amd", "{\"gpu_data\": [", 0);
    assert!(!broken.gpus_told && broken.fault.is_some());
}

#[test]
fn rocm_is_read_in_bytes_and_in_the_order_of_the_cards() {
    let gpus = read("rocm", "", fixture!("rocm_smi.json")).gpus;
    let expected = [
        GpuSample {
            index: 0,
            key: Some("0xfake000000000001".to_owned()),
            model: Some("AMD Instinct MI300X".to_owned()),
            utilization: Some(0.99),
            memory_used_bytes: Some(146_360_573_952),
            memory_total_bytes: Some(206_141_652_992),
            temperature_c: Some(52.0),
            power_watts: Some(512.0),
            ..GpuSample::default()
        },
        GpuSample {
            index: 1,
            model: Some("AMD Radeon RX 7900 XTX".to_owned()),
            utilization: Some(0.0),
            memory_used_bytes: Some(297_795_584),
            memory_total_bytes: Some(25_753_026_560),
            temperature_c: Some(41.0),
            power_watts: Some(25.0),
            ..GpuSample::default()
        },
    ];
    assert_eq!(gpus, expected);
    let many: Vec<String> =
        [10, 2, 0].iter().map(|card| format!("\"card{card}\": {{\"GPU use (%)\": \"{card}\"}}")).collect();
    let gpus = read("rocm", "", &format!("{{{}}}", many.join(","))).gpus;
    assert_eq!(gpus.iter().map(|gpu| gpu.index).collect::<Vec<_>>(), [0, 2, 10]);
}

#[test]
fn hygon_is_read_under_both_names_and_when_it_is_no_json() {
    let newer = read("hygon", "", fixture!("hy_smi_dtk2504.json")).gpus;
    assert_eq!(newer.len(), 2);
    assert_eq!((newer[0].utilization, newer[0].model.as_deref()), (Some(0.645), Some("K100_AI")));
    assert_eq!((newer[0].memory_used_bytes, newer[0].memory_total_bytes), (mib(26_200), mib(65_520)));
    assert_eq!(
        (newer[1].power_watts, newer[1].temperature_c, newer[1].memory_used_bytes),
        (Some(60.0), Some(41.0), mib(3))
    );
    let older = &read("hygon", "", fixture!("hy_smi_before_dtk2504.json")).gpus[0];
    assert_eq!((older.utilization, older.memory_used_bytes), (Some(0.64), mib(13_100)));
    assert_eq!((older.key.as_deref(), older.model.as_deref()), (Some("fake000000000001"), Some("Z100L")));
    let broken = &read("hygon", "", fixture!("hy_smi_invalid_json.txt")).gpus[0];
    assert_eq!(
        (broken.utilization, broken.memory_total_bytes, broken.temperature_c),
        (Some(0.64), mib(65_520), Some(48.0))
    );
    let warned = format!("WARNING: \"slow\": card1\n{}", fixture!("hy_smi_dtk2504.json"));
    assert_eq!(read("hygon", "", &warned).gpus, newer);
}

#[test]
fn ascend_is_read_chip_by_chip() {
    let cards = read("ascend", "", fixture!("npu_smi_info_910b.txt"));
    assert_eq!(cards.gpus.len(), 3);
    let busy = GpuSample {
        index: 1,
        key: Some("0000:C2:00.0".to_owned()),
        model: Some("910B3".to_owned()),
        utilization: Some(0.87),
        memory_used_bytes: mib(65_099),
        memory_total_bytes: mib(65_536),
        temperature_c: Some(61.0),
        power_watts: Some(312.4),
        ..GpuSample::default()
    };
    assert_eq!(cards.gpus[1], busy);
    assert_eq!((cards.gpus[0].utilization, cards.gpus[0].memory_used_bytes), (Some(0.0), mib(3_318)));
    let sick = &cards.gpus[2];
    assert_eq!((sick.utilization, sick.power_watts, sick.fault.as_deref()), (None, None, Some("Warning")));
    let process = GpuProcess { gpu: Some(1), pid: 23456, name: Some("python3".to_owned()), memory_bytes: mib(61_800) };
    assert_eq!(cards.processes, Some(vec![process]));

    let dies = read("ascend", "", fixture!("npu_smi_info_910c_two_dies.txt")).gpus;
    let short: Vec<_> = dies.iter().map(|gpu| (gpu.index, gpu.key.as_deref().unwrap(), gpu.utilization)).collect();
    assert_eq!(short, [(0, "0000:9D:00.0", Some(0.12)), (1, "0000:9F:00.0", Some(0.0))]);
    assert_eq!((dies[0].power_watts, dies[1].power_watts, &dies[1].fault), (Some(171.2), None, &None));

    // Without memory of the fast kind, the other one counts.
    let small = &read("ascend", "", fixture!("npu_smi_info_310p.txt")).gpus[0];
    assert_eq!((small.memory_used_bytes, small.memory_total_bytes), (mib(1_800), mib(21_527)));
    assert_eq!((small.model.as_deref(), small.power_watts, small.utilization), (Some("310P3"), None, Some(0.05)));

    let refused = told("ascend", "dcmi module initialize failed. ret is -8005", 1);
    assert_eq!(refused.fault.as_deref(), Some("dcmi module initialize failed. ret is -8005"));
}

#[rstest]
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

mod host {
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
        assert!(
            near(usage.cpu, 0.25) && near(usage.memory, 0.4) && near(usage.disk_bytes_per_second, 4096.0),
            "{usage:?}"
        );
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
        let then =
            |uptime: u32, devices: &str| format!("/proc/uptime:{uptime}.0 1\n/proc/stat:cpu  9 0 0 9\n{devices}");
        let before = then(10, &(device("eth0", 500) + &device("eth1", 100)));
        let usage =
            second(&before, &then(20, &(device("eth0", 5) + &device("eth1", 200) + &device("eth2", 1_000_000))));
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
}

mod seldom {
    use super::*;

    const FULL: &str = "@cards nvidia\n0, GPU-0, NVIDIA A100, 0, 81920, 40000, 30, 60, 400, [N/A]\n@exit 0\n";
    const EMPTY: &str = "@cards nvidia\n0, GPU-0, NVIDIA A100, 0, 81920, 512, 30, 60, 400, [N/A]\n@exit 0\n";

    #[test]
    fn a_device_is_listed_once_and_what_is_no_disk_is_not() {
        let usage = look(
            "@mounts\nFilesystem 1024-blocks Used Available Capacity Mounted on\noverlay 1000 400 600 40% /\n\
             overlay 1000 400 600 40% /\n/dev/md0 4000 100 3900 3% /workspace\n/dev/md0 4000 100 3900 3% /data\n\
             tmpfs 10 0 10 0% /mnt\n//nas/my share 900 1 899 1% /mnt/my share\ndf: /storage: No such file or directory\n\
             broken - - - - /x\n/dev/y 10 20 0 100% /over",
        );
        let mount = |path: &str, used: u64, total: u64| Mount {
            path: path.to_owned(),
            used_bytes: used * 1024,
            total_bytes: total * 1024,
        };
        let expected = [mount("/", 400, 1000), mount("/workspace", 100, 4000), mount("/mnt/my share", 1, 900)];
        assert_eq!(usage.mounts, expected);
    }

    #[test]
    fn users_are_names_each_once() {
        let who = "ubuntu   pts/0 2026-11-30 10:00 (192.0.2.7)\nada pts/1 2026-11-30 10:00\nubuntu tty1 2026-11-30\n";
        let expected = Some(vec!["ada".to_owned(), "ubuntu".to_owned()]);
        assert_eq!(look(&format!("@users\n{who}\n@exit 0")).users, expected);
        assert_eq!(look("@users\n\n@exit 0").users, Some(vec![]));
        assert_eq!(look("@users\nsh: who: not found\n@exit 127").users, None);
    }

    #[rstest]
    #[case::named("@serving\nvllm\0serve\nVLLM::\nvllm.entrypoints\n@ports 22\n0: 00000000:1F40 00000000:0000 0A", FULL, &[Server::Vllm])]
    #[case::all("@serving\ntext-generation-launcher\ntrtllm-serve\ntritonserver", EMPTY, &[Server::TensorRtLlm, Server::Tgi])]
    #[case::port("@ports 22\n0: 00000000:1F40 00000000:0000 0A \n1: 00000000000000000000000001000000:2CAA 0:0000 0A", FULL, &[Server::Port(8000), Server::Port(11434)])]
    #[case::nothing_held("@ports 22\n0: 00000000:1F40 00000000:0000 0A", EMPTY, &[])]
    #[case::notebook("@ports 22\n0: 00000000:22B8 00000000:0000 0A\n1: 0100007F:E2F3 00000000:0000 0A", FULL, &[])]
    #[case::own_ssh("@ports 10022\n0: 00000000:2726 00000000:0000 0A\n1: 00000000:0016 00000000:0000 0A", FULL, &[])]
    fn what_serves_is_known_by_name_or_by_a_port_with_memory_held(
        #[case] sections: &str,
        #[case] cards: &str,
        #[case] expected: &[Server],
    ) {
        assert_eq!(look(&format!("{cards}{sections}")).servers, expected);
    }

    #[test]
    fn what_is_seldom_told_stays_known_until_it_is_told_anew() {
        let mut reader = Reader::default();
        let text = format!(
            "@look\n{FULL}@apps\nGPU-0, 7, python, 100\n@exit 0\n@mounts\n/dev/a 10 5 5 50% /\n@users\nada pts/0\n@exit 0\n\
             @ports 22\n0: 00000000:1F40 00000000:0000 0A\n@end\n@look\n{FULL}@end\n\
             @look\n{EMPTY}@apps\n\n@exit 0\n@mounts\n@users\n\n@exit 0\n@end\n"
        );
        let usages = looks(&mut reader, &text);
        assert_eq!(usages.len(), 3);
        assert_eq!(usages[0].processes.as_ref().unwrap().len(), 1);
        assert_eq!(Usage { as_of: usages[0].as_of, ..usages[1].clone() }, usages[0]);
        assert!((usages[2].mounts.len(), &usages[2].users, &usages[2].servers) == (0, &Some(vec![]), &vec![]));
        assert_eq!(usages[2].processes, Some(vec![]));
    }
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
    let script = command.strip_prefix("exec sh -c '").and_then(|rest| rest.strip_suffix('\'')).unwrap();
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
