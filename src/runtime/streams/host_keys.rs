//! The file of host keys. `ssh` writes new keys into it; we only ever take one out, when a person said so, and see to it
//! that one can be written.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Clone, Debug)]
pub struct HostKeys {
    file: PathBuf,
    /// One at a time: each writes the whole file anew.
    writing: Arc<Mutex<()>>,
}

impl HostKeys {
    pub fn new(file: PathBuf) -> Self {
        HostKeys { file, writing: Arc::default() }
    }

    /// Makes sure that a new key can be kept, without which `ssh` would take any key for a new one each time. With a
    /// name its keys are taken out before: whatever key its host has the next time is the right one.
    pub async fn prepare(&self, forgotten: Option<String>) -> io::Result<()> {
        let keys = self.clone();
        let prepared = tokio::task::spawn_blocking(move || {
            let _alone = keys.writing.lock().unwrap_or_else(PoisonError::into_inner);
            forgotten.map_or(Ok(()), |alias| forget(&keys.file, &alias))?;
            writable(&keys.file)
        });
        prepared.await.map_err(io::Error::other)?
    }
}

fn writable(file: &Path) -> io::Result<()> {
    let mut options = File::options();
    options.append(true).create(true);
    // Readable by its owner alone, as `ssh` makes it.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file).map(drop)
}

/// The file is replaced in one step, so that an `ssh` that reads it meanwhile sees all other keys.
fn forget(file: &Path, alias: &str) -> io::Result<()> {
    let mut before = match File::open(file) {
        Ok(before) => before,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut text = Vec::new();
    before.read_to_end(&mut text)?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Readable by its owner alone, as `ssh` makes it.
    let mut after = tempfile::NamedTempFile::new_in(folder)?;
    after.write_all(&without(&text, alias))?;
    after.as_file().sync_all()?;
    let mut after = after.persist(file).map_err(|error| error.error)?;
    // What an `ssh` has added to the old file meanwhile.
    let mut late = Vec::new();
    before.read_to_end(&mut late)?;
    after.write_all(&without(&late, alias))
}

/// The lines that are of others. Each begins with its hosts, of which ours has one alone.
fn without(text: &[u8], alias: &str) -> Vec<u8> {
    let is_of = |line: &[u8]| {
        line.split(u8::is_ascii_whitespace).next().is_some_and(|host| host.eq_ignore_ascii_case(alias.as_bytes()))
    };
    text.split_inclusive(|byte| *byte == b'\n').filter(|line| !is_of(line)).collect::<Vec<_>>().concat()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const OTHERS: &str = "rentop.vast.me.m1.0 ssh-ed25519 AAAA1\n\
        # a word of somebody's own\n\
        |1|c2FsdA==|aGFzaA== ssh-rsa AAAA2\n\
        @revoked rentop.vast.me.m2.0 ssh-rsa AAAA3\n\n\
        rentop.vast.me.m2.01 ssh-ed25519 AAAA4 a comment\n\
        caf\u{e9},rentop.vast.me.m2.0 ssh-ed25519 AAAA5";

    #[rstest]
    #[case::one("rentop.vast.me.m2.0 ssh-ed25519 AAAA6\n")]
    #[case::two("rentop.vast.me.m2.0 ssh-ed25519 AAAA6\nrentop.vast.me.m2.0\tecdsa-sha2-nistp256 AAAA7\r\n")]
    #[case::none("")]
    fn only_the_lines_of_the_name_go(#[case] ours: &str) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("known_hosts");
        std::fs::write(&file, format!("{ours}{OTHERS}")).unwrap();
        forget(&file, "rentop.vast.me.m2.0").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), OTHERS);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn bytes_that_are_no_text_stay() {
        assert_eq!(without(b"x\xff ssh-rsa A\ngone ssh-rsa B\n\xfe", "gone"), b"x\xff ssh-rsa A\n\xfe");
    }

    #[tokio::test]
    async fn a_file_that_is_not_there_has_no_key_to_forget() {
        let folder = tempfile::tempdir().unwrap();
        let keys = HostKeys::new(folder.path().join("known_hosts"));
        keys.prepare(Some("rentop.vast.me.m1.0".to_owned())).await.unwrap();
        assert_eq!(std::fs::read(folder.path().join("known_hosts")).unwrap(), b"");
    }

    #[rstest]
    #[case::for_a_key_that_changed(Some("rentop.vast.me.m1.0"))]
    #[case::for_a_new_one(None)]
    #[tokio::test]
    async fn a_file_that_keeps_no_keys_is_told(#[case] forgotten: Option<&str>) {
        let folder = tempfile::tempdir().unwrap();
        let keys = HostKeys::new(folder.path().to_owned());
        assert!(keys.prepare(forgotten.map(str::to_owned)).await.is_err());
    }
}
