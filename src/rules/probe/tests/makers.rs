//! The tools of the other makers.

use super::*;

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

    let none_of_it =
        fixture!("npu_smi_info_910b.txt").replace("0    / 0          3318 / 65536", "700  / 900        0 / 0");
    let other = &read("ascend", "", &none_of_it).gpus[0];
    assert_eq!((other.memory_used_bytes, other.memory_total_bytes), (mib(700), mib(900)));

    let refused = told("ascend", "dcmi module initialize failed. ret is -8005", 1);
    assert_eq!(refused.fault.as_deref(), Some("dcmi module initialize failed. ret is -8005"));
}
