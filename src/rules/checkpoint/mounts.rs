//! Where paths lie, as `df -P` tells it (POSIX.1-2017, "df": six columns, the last of which is the mount point).

use std::collections::BTreeMap;

/// File systems that are gone with the machine, wherever they are mounted.
const OWN: &[&str] = &["overlay", "tmpfs", "aufs", "shm", "none", "devtmpfs", "ramfs", "zram"];

/// What `df` said of the root and of some paths.
#[derive(Debug, Default)]
pub struct Mounts {
    root: Option<String>,
    /// Of each path its device and mount point.
    of: BTreeMap<usize, (String, String)>,
    /// All that was written is on the disk.
    pub synced: bool,
}

impl Mounts {
    /// Takes in a line: of whom, and a row of `df`.
    pub fn line(&mut self, line: &str) {
        if line == "synced" {
            self.synced = true;
        }
        let Some((of, row)) = line.split_once(' ') else { return };
        let words: Vec<&str> = row.split_whitespace().collect();
        // Device, blocks, used, available, capacity: from behind, since a device may hold blanks, and so may a mount.
        let Some(percent) = words.iter().position(|word| word.strip_suffix('%').is_some_and(is_number) || *word == "-")
        else {
            return;
        };
        let (Some(device), mount) =
            (percent.checked_sub(3).map(|end| words[..end].join(" ")), words[percent + 1..].join(" "))
        else {
            return;
        };
        match of.parse::<usize>() {
            Ok(index) => drop(self.of.insert(index, (device, mount))),
            Err(_) if of == "/" => self.root = Some(device),
            Err(_) => {}
        }
    }

    /// Whether a path lies on a device of its own, mounted below the root; no when nobody said.
    pub fn outlives(&self, index: usize) -> bool {
        let (Some(root), Some((device, mount))) = (&self.root, self.of.get(&index)) else { return false };
        mount.starts_with('/') && mount != "/" && device != root && !OWN.contains(&device.as_str())
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::volume("/dev/sdb1 103081248 4 97798980 1% /workspace", true)]
    #[case::network("10.0.0.1:/vol/a 103081248 4 97798980 100% /mnt/my data", true)]
    #[case::device_with_blanks("my share 103081248 4 97798980 1% /mnt/share", true)]
    #[case::of_no_size("mfs#10.0.0.1:9421 0 0 0 - /workspace", true)]
    #[case::root("overlay 103081248 4 97798980 1% /", false)]
    #[case::the_root_again("/dev/sda1 103081248 4 97798980 1% /etc/hosts", false)]
    #[case::another_overlay("overlay 103081248 4 97798980 1% /workspace", false)]
    #[case::memory("tmpfs 103081248 4 97798980 1% /workspace", false)]
    #[case::no_row("df: /workspace: Permission denied", false)]
    #[case::nothing("", false)]
    fn only_a_mount_of_its_own_outlives_the_machine(#[case] row: &str, #[case] expected: bool) {
        let mut mounts = Mounts::default();
        mounts.line("/ /dev/sda1 51474912 25084240 23743472 52% /");
        mounts.line(&format!("0 {row}"));
        assert_eq!(mounts.outlives(0), expected);
        assert!(!mounts.outlives(1));
        let mut without_root = Mounts::default();
        without_root.line(&format!("0 {row}"));
        assert!(!without_root.outlives(0));
    }
}
