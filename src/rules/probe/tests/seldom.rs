//! What stays known between looks.

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
