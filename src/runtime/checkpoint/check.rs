//! A copy checked again, long after: everything that its manifest names, read from the disk.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use jiff::Timestamp;
use rustix::fs::Mode;

use super::store::{copy_flags, read_manifest, sum, walk};
use crate::rules::checkpoint::listing::RemotePath;

/// What a copy turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub struct Checked {
    /// When both sides were compared.
    pub verified_at: Timestamp,
    /// SHA-256 of the manifest, in hexadecimal.
    pub manifest: String,
    /// What the manifest names.
    pub files: u64,
    pub bytes: u64,
    /// Files and links that are not there, or not what they were.
    pub missing: Vec<RemotePath>,
    pub differs: Vec<RemotePath>,
}

impl Checked {
    pub fn is_whole(&self) -> bool {
        self.missing.is_empty() && self.differs.is_empty()
    }
}

/// Checks the copy in a folder. Fails where there is no manifest that can be read.
pub fn check(folder: &Path) -> io::Result<Checked> {
    let root = rustix::fs::open(folder, copy_flags(), Mode::empty())?;
    let (manifest, digest) = read_manifest(&root)?;
    let mut checked = Checked {
        verified_at: manifest.verified_at,
        manifest: digest,
        files: manifest.files.len() as u64,
        bytes: manifest.files.iter().map(|file| file.bytes).fold(0, u64::saturating_add),
        missing: Vec::new(),
        differs: Vec::new(),
    };
    for file in &manifest.files {
        let found = walk(&root, &file.path).filter(|(above, name)| exists(above, name));
        // One that cannot be read is not known to be what it was.
        let same = found.as_ref().map(|(above, name)| {
            sum(above.as_fd(), name, file.bytes, &mut |_| Ok(())).is_ok_and(|sum| sum.as_deref() == Some(&file.sha256))
        });
        checked.note(&file.path, same);
    }
    for link in &manifest.links {
        let found = walk(&root, &link.path).filter(|(above, name)| exists(above, name));
        let same = found.as_ref().map(|(above, name)| {
            rustix::fs::readlinkat(above, *name, Vec::new()).is_ok_and(|to| to.as_bytes() == link.target.0)
        });
        checked.note(&link.path, same);
    }
    Ok(checked)
}

fn exists(folder: impl AsFd, name: &std::ffi::OsStr) -> bool {
    rustix::fs::statat(folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

impl Checked {
    fn note(&mut self, path: &RemotePath, same: Option<bool>) {
        match same {
            Some(true) => {}
            Some(false) => self.differs.push(path.clone()),
            None => self.missing.push(path.clone()),
        }
    }
}
