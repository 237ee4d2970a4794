//! `nvidia-smi` and `ixsmi`.

use super::*;

/// What the tools' documentation lists, and more than we ask for.
const EVERYTHING: &str = "--query-gpu=timestamp,index,uuid,name,pci.bus_id,driver_version,utilization.gpu,\
    utilization.memory,memory.total,memory.used,memory.free,memory.reserved,temperature.gpu,temperature.memory,power.draw,\
    power.limit,pstate,clocks.sm,fan.speed,ecc.errors.uncorrected.volatile.total,mig.mode.current --format=csv";

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
    assert_eq!((gpus[0].temperature_c, gpus[0].utilization, gpus[0].memory_used_bytes), (None, Some(0.0), mib(227)));
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
        &read("nvidia", &asked, "0, NVIDIA A800-SXM4-80GB, [N/A], 36537, 81920, 33, 87.00, 400.00, Enabled\n").gpus[0];
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
    let asked = "--query-gpu=index,name,memory.total,memory.used,utilization.gpu,driver_version --format=csv,noheader";
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
    let with = |apps: &str, exit: i32| look(&format!("@cards nvidia\n{rows}\n@exit 0\n@apps\n{apps}\n@exit {exit}"));
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
