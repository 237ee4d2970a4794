//! The folder of a copy on this machine. Names in it come from the machine that is copied: each is one plain name below
//! a folder that is open already, and nothing is ever reached through a link.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use providers::text::excerpt;
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::meter::Meter;
use crate::rules::checkpoint::Trouble;
use crate::rules::checkpoint::listing::{LinkTarget, Listing, RemoteFile, RemotePath, hex};
use crate::rules::checkpoint::manifest::{INCOMING, Manifest, NAME};

/// What is added to the bytes of a copy before room counts as enough: a hundredth, for the file system's own, and this.
const SPARE: u64 = 100_000_000;
const CHUNK: usize = 256 << 10;
/// No copy holds a larger one.
const MANIFEST_BYTES: u64 = 1 << 30;
/// The name of a file that says that nothing may be taken from the copy before: one of its files was not what it said.
const NOT_LINKED: &str = "not-linked";
const LOCK: &str = "lock";
/// Where `rsync` keeps files that were cut, in each folder.
pub(super) const PARTIAL: &str = ".rentop-partial";

/// A copy in the making, which nobody else works on.
pub struct Store {
    /// The folder of the machine's copies.
    all: PathBuf,
    /// Of this one, when it is finished.
    name: String,
    root: OwnedFd,
    incoming: OwnedFd,
    /// The folder that was opened last: files come a folder at a time.
    last: Mutex<Option<(Vec<u8>, OwnedFd)>>,
    _lock: File,
}

/// What of a list is here, and what is not.
pub struct Missing {
    pub files: BTreeMap<RemotePath, RemoteFile>,
    /// Of these, what is still to come.
    pub bytes: u64,
}

/// The copy before this one.
struct Before {
    root: OwnedFd,
    files: BTreeMap<RemotePath, (u64, Option<i64>)>,
}

/// A person may name a copy by a link to it.
pub(super) fn copy_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC
}

pub(super) fn folder_flags() -> OFlags {
    copy_flags() | OFlags::NOFOLLOW
}

fn private() -> Mode {
    Mode::from_raw_mode(0o700)
}

/// What is wrong on this side. A full disk is told apart, with what it lacks at least.
pub fn local(path: impl std::fmt::Display, error: impl Into<io::Error>) -> Trouble {
    let error = error.into();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Trouble::NoRoom { need: 0, free: 0 },
        io::ErrorKind::InvalidFilename => Trouble::Name(excerpt(&path.to_string(), 200)),
        _ if error.raw_os_error() == Some(Errno::ILSEQ.raw_os_error()) => {
            Trouble::Name(excerpt(&path.to_string(), 200))
        }
        _ => Trouble::Local(excerpt(&format!("{path}: {error}"), 200)),
    }
}

impl Store {
    /// Opens or makes it. What was finished and not recorded is taken up again.
    pub fn open(to: &str, folder: &str) -> Result<Store, Trouble> {
        let finished = Path::new(to).join(folder);
        let (Some(all), Some(name)) = (finished.parent(), finished.file_name()) else {
            return Err(Trouble::Local("a copy without a name".to_owned()));
        };
        let name = name.to_string_lossy().into_owned();
        let part = all.join(format!("{name}.part"));
        let at = |error: io::Error| local(part.display(), error);
        if !part.exists() && finished.is_dir() {
            std::fs::rename(&finished, &part).map_err(at)?;
        }
        std::fs::create_dir_all(&part).map_err(at)?;
        let root = rustix::fs::open(&part, folder_flags(), Mode::empty()).map_err(|error| at(error.into()))?;
        let incoming = subfolder(&root, INCOMING.as_bytes()).map_err(|error| at(error.into()))?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let lock = rustix::fs::openat(&incoming, LOCK, flags, Mode::from_raw_mode(0o600));
        let lock = File::from(lock.map_err(|error| at(error.into()))?);
        // What was aborted a moment ago may have to finish a write.
        for left in (0..50).rev() {
            match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK) if left > 0 => std::thread::sleep(std::time::Duration::from_millis(100)),
                Err(error) => return Err(at(error.into())),
            }
        }
        Ok(Store { all: all.to_owned(), name, root, incoming, last: Mutex::new(None), _lock: lock })
    }

    /// The folder that is being filled.
    pub fn part(&self) -> PathBuf {
        self.all.join(format!("{}.part", self.name))
    }

    /// Where it will be.
    pub fn finished(&self) -> PathBuf {
        self.all.join(&self.name)
    }

    /// Where files are in the making.
    pub fn incoming_path(&self) -> PathBuf {
        self.part().join(INCOMING)
    }

    /// Whether a capital and a small letter are two.
    pub fn capitals_count(&self) -> Result<bool, Trouble> {
        drop(self.create("aa")?);
        let is_other = rustix::fs::statat(&self.incoming, "AA", AtFlags::SYMLINK_NOFOLLOW).is_err();
        self.discard("aa");
        Ok(is_other)
    }

    /// Makes the folders, takes what it can from the copy before, and says what is still to come.
    pub fn prepare(&self, listing: &Listing, meter: &Meter) -> Result<Missing, Trouble> {
        self.clear(listing, true, meter)?;
        for path in listing.folders.keys() {
            self.inside(path)?;
        }
        let before = self.before();
        let mut missing = Missing { files: BTreeMap::new(), bytes: 0 };
        for (path, file) in &listing.files {
            meter.check()?;
            if self.has(path, file)? || before.as_ref().is_some_and(|before| self.link(before, path, file)) {
                meter.add(file.bytes);
                continue;
            }
            let begun = self.incoming_size(&partial(path, file)).min(file.bytes);
            meter.add(begun);
            missing.bytes = missing.bytes.saturating_add(file.bytes - begun);
            missing.files.insert(path.clone(), *file);
        }
        Ok(missing)
    }

    /// Whether there is room for so much more.
    pub fn room(&self, bytes: u64) -> Result<(), Trouble> {
        let free = self.free()?;
        let need = bytes.saturating_add(bytes / 100).saturating_add(SPARE);
        if bytes > 0 && free < need { Err(Trouble::NoRoom { need, free }) } else { Ok(()) }
    }

    /// There is none left, and so much is still to come.
    pub fn no_room(&self, need: u64) -> Result<Trouble, Trouble> {
        Ok(Trouble::NoRoom { need, free: self.free()? })
    }

    fn free(&self) -> Result<u64, Trouble> {
        let told = rustix::fs::fstatvfs(&self.root).map_err(|error| local(self.part().display(), error))?;
        Ok(told.f_bavail.saturating_mul(told.f_frsize))
    }

    /// The file is here whole, as far as its size and time tell.
    fn has(&self, path: &RemotePath, file: &RemoteFile) -> Result<bool, Trouble> {
        let (folder, name) = self.parent(path)?;
        Ok(is_like(folder.as_fd(), name, file.bytes, file.mtime))
    }

    /// Takes a file from the copy before, in which it was verified.
    fn link(&self, before: &Before, path: &RemotePath, file: &RemoteFile) -> bool {
        // Without a time nothing says that it is the same.
        if file.mtime.is_none() || before.files.get(path) != Some(&(file.bytes, file.mtime)) {
            return false;
        }
        let Some((from, name)) = walk(&before.root, path) else { return false };
        let Ok((to, _)) = self.parent(path) else { return false };
        is_like(from.as_fd(), name, file.bytes, file.mtime)
            && rustix::fs::linkat(&from, name, &to, name, AtFlags::empty()).is_ok()
    }

    /// The latest copy that was verified, unless one of its files was not what it said.
    fn before(&self) -> Option<Before> {
        if rustix::fs::statat(&self.incoming, NOT_LINKED, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            return None;
        }
        let entries = std::fs::read_dir(&self.all).ok()?.flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let finished = names.filter(|name| *name != self.name && !name.ends_with(".part"));
        // Their names are their times.
        let mut finished: Vec<String> = finished.collect();
        finished.sort_unstable();
        finished.iter().rev().find_map(|name| {
            let root = rustix::fs::open(self.all.join(name), folder_flags(), Mode::empty()).ok()?;
            let (manifest, _) = read_manifest(&root).ok()?;
            let files = manifest.files.into_iter().map(|file| (file.path, (file.bytes, file.mtime)));
            Some(Before { files: files.collect(), root })
        })
    }

    /// From now on every file of this copy comes from the machine.
    pub fn link_nothing(&self) -> Result<(), Trouble> {
        self.create(NOT_LINKED).map(drop)
    }

    /// The folder above a path, made where it is not there, and the name in it.
    fn parent<'p>(&self, path: &'p RemotePath) -> Result<(OwnedFd, &'p OsStr), Trouble> {
        let bytes = path.as_bytes();
        let cut = bytes.iter().rposition(|byte| *byte == b'/');
        let (folder, name) = cut.map_or((&[][..], bytes), |at| (&bytes[..at], &bytes[at + 1..]));
        Ok((self.folder(folder)?, OsStr::from_bytes(name)))
    }

    /// Makes a folder with all above it.
    fn inside(&self, path: &RemotePath) -> Result<OwnedFd, Trouble> {
        self.folder(path.as_bytes())
    }

    fn folder(&self, path: &[u8]) -> Result<OwnedFd, Trouble> {
        let at = |error: io::Error| local(String::from_utf8_lossy(path), error);
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((name, folder)) = &*last
            && name == path
        {
            return folder.try_clone().map_err(at);
        }
        let mut folder = self.root.try_clone().map_err(at)?;
        for part in path.split(|byte| *byte == b'/').filter(|part| !part.is_empty()) {
            folder = subfolder(&folder, part).map_err(|error| at(error.into()))?;
        }
        *last = Some((path.to_vec(), folder.try_clone().map_err(at)?));
        Ok(folder)
    }

    /// A new file in the making.
    pub fn create(&self, name: &str) -> Result<File, Trouble> {
        self.discard(name);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.incoming, name, flags, Mode::from_raw_mode(0o600));
        file.map(File::from).map_err(|error| local(name, error))
    }

    /// A file in the making, to go on with.
    pub fn append(&self, name: &str) -> Result<File, Trouble> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.incoming, name, flags, Mode::from_raw_mode(0o600));
        file.map(File::from).map_err(|error| local(name, error))
    }

    /// Forgets a file in the making.
    pub fn discard(&self, name: &str) {
        // There is none, most of the time.
        let _ = rustix::fs::unlinkat(&self.incoming, name, AtFlags::empty());
    }

    /// How much of a file in the making is here.
    pub fn incoming_size(&self, name: &str) -> u64 {
        let stat = rustix::fs::statat(&self.incoming, name, AtFlags::SYMLINK_NOFOLLOW);
        stat.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or_default())
    }

    /// Brings a whole file to its place, with its time, in place of whatever is there.
    pub fn place(&self, made: &File, name: &str, path: &RemotePath, like: &RemoteFile) -> Result<(), Trouble> {
        let at = |error: Errno| local(path, error);
        let (folder, own) = self.parent(path)?;
        // Whoever owns the copy can read and remove it, whatever the machine says.
        let mode = Mode::from_raw_mode((0o600 | like.mode.unwrap_or_default() & 0o700) as _);
        rustix::fs::fchmod(made, mode).map_err(at)?;
        if let Some(seconds) = like.mtime {
            let time = Timespec { tv_sec: seconds, tv_nsec: 0 };
            rustix::fs::futimens(made, &Timestamps { last_access: time, last_modification: time }).map_err(at)?;
        }
        match rustix::fs::renameat(&self.incoming, name, &folder, own) {
            Err(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => Err(Trouble::Local(format!("{path}: a folder"))),
            done => done.map_err(at),
        }
    }

    /// The second name of a file that came already.
    pub fn twin(&self, first: &RemotePath, second: &RemotePath) -> Result<(), Trouble> {
        let (from, from_name) = self.parent(first)?;
        let (to, to_name) = self.parent(second)?;
        // Whatever is there is not it.
        let _ = rustix::fs::unlinkat(&to, to_name, AtFlags::empty());
        rustix::fs::linkat(&from, from_name, &to, to_name, AtFlags::empty()).map_err(|error| local(second, error))
    }

    pub fn remove(&self, path: &RemotePath) -> Result<(), Trouble> {
        let (folder, name) = self.parent(path)?;
        match rustix::fs::unlinkat(&folder, name, AtFlags::empty()) {
            Err(error) if error != Errno::NOENT => Err(local(path, error)),
            _ => Ok(()),
        }
    }

    /// Removes whatever is not in the list, links included: they are made last. What `rsync` goes on with is kept as
    /// long as it may go on.
    pub fn clear(&self, listing: &Listing, keep_partial: bool, meter: &Meter) -> Result<(), Trouble> {
        *self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = None;
        let at = |error: Errno| local(self.part().display(), error);
        let mut folders = vec![(Vec::new(), self.root.try_clone().map_err(|error| local("", error))?)];
        let mut empty = Vec::new();
        while let Some((above, folder)) = folders.pop() {
            for entry in rustix::fs::Dir::read_from(&folder).map_err(at)? {
                meter.check()?;
                let entry = entry.map_err(at)?;
                let name = entry.file_name().to_bytes();
                let is_ours =
                    (above.is_empty() && name == INCOMING.as_bytes()) || (keep_partial && name == PARTIAL.as_bytes());
                if matches!(name, b"." | b"..") || is_ours {
                    continue;
                }
                let path = if above.is_empty() { name.to_vec() } else { [&above, name].join(&b'/') };
                let known = RemotePath::new(&path);
                let stat = rustix::fs::statat(&folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW).map_err(at)?;
                if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                    let is_known = known.as_ref().is_some_and(|path| listing.folders.contains_key(path));
                    let inner = rustix::fs::openat(&folder, entry.file_name(), folder_flags(), Mode::empty());
                    folders.push((path.clone(), inner.map_err(at)?));
                    if !is_known {
                        empty.push((folder.try_clone().map_err(|error| local("", error))?, name.to_vec()));
                    }
                } else if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile
                    || !known.is_some_and(|path| listing.files.contains_key(&path))
                {
                    rustix::fs::unlinkat(&folder, entry.file_name(), AtFlags::empty()).map_err(at)?;
                }
            }
        }
        // Innermost first. One that is not empty leads to something in the list.
        for (folder, name) in empty.into_iter().rev() {
            let _ = rustix::fs::unlinkat(&folder, OsStr::from_bytes(&name), AtFlags::REMOVEDIR);
        }
        Ok(())
    }

    /// The SHA-256 of a file as it is on this disk; `None` when it is not there with this size.
    pub fn sum(&self, path: &RemotePath, bytes: u64, meter: &Meter) -> Result<Option<String>, Trouble> {
        let (folder, name) = self.parent(path)?;
        sum(folder.as_fd(), name, bytes, &mut |read| meter.add(read).check()).map_err(|error| match error {
            Unread::Io(error) => local(path, error),
            Unread::Told(trouble) => trouble,
        })
    }

    /// Makes the links, writes the manifest, sees to it that all of it is on the disk, and gives the copy its name.
    /// Returns the sum of the manifest.
    pub fn finish(&self, manifest: &Manifest, links: &BTreeMap<RemotePath, LinkTarget>) -> Result<String, Trouble> {
        for (path, target) in links {
            let (folder, name) = self.parent(path)?;
            let linked = rustix::fs::symlinkat(OsStr::from_bytes(&target.0), &folder, name);
            linked.map_err(|error| local(path, error))?;
        }
        let at = |error: io::Error| local(self.part().display(), error);
        let text = serde_json::to_vec_pretty(manifest).map_err(|error| Trouble::Local(error.to_string()))?;
        let mut file = self.create(NAME)?;
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(at)?;
        rustix::fs::renameat(&self.incoming, NAME, &self.root, NAME).map_err(|error| at(error.into()))?;
        self.empty_incoming()?;
        for path in manifest.folders.iter().map(|folder| &folder.path) {
            File::from(self.inside(path)?).sync_all().map_err(at)?;
        }
        File::from(self.root.try_clone().map_err(at)?).sync_all().map_err(at)?;
        std::fs::rename(self.part(), self.finished()).map_err(at)?;
        File::open(&self.all).and_then(|all| all.sync_all()).map_err(at)?;
        Ok(hex(&Sha256::digest(&text)))
    }

    fn empty_incoming(&self) -> Result<(), Trouble> {
        let at = |error: Errno| local(INCOMING, error);
        for entry in rustix::fs::Dir::read_from(&self.incoming).map_err(at)? {
            let entry = entry.map_err(at)?;
            if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                rustix::fs::unlinkat(&self.incoming, entry.file_name(), AtFlags::empty()).map_err(at)?;
            }
        }
        rustix::fs::unlinkat(&self.root, INCOMING, AtFlags::REMOVEDIR).map_err(at)
    }
}

/// The name of a file in the making: of this path, size and time, so that another file is never gone on with.
pub fn partial(path: &RemotePath, file: &RemoteFile) -> String {
    let of = format!("{} {:?} {:?} ", file.bytes, file.mtime, file.inode);
    hex(&Sha256::digest([of.as_bytes(), path.as_bytes()].concat()))
}

/// A folder in a folder, made where it is not there; what stands in its place is removed.
fn subfolder(folder: &OwnedFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    let name = OsStr::from_bytes(name);
    match rustix::fs::openat(folder, name, folder_flags(), Mode::empty()) {
        Err(Errno::NOENT) => {}
        Err(Errno::NOTDIR | Errno::LOOP | Errno::MLINK) => rustix::fs::unlinkat(folder, name, AtFlags::empty())?,
        opened => return opened,
    }
    rustix::fs::mkdirat(folder, name, private())?;
    rustix::fs::openat(folder, name, folder_flags(), Mode::empty())
}

/// The folder above a path, and the name in it; `None` where it is not there.
pub(super) fn walk<'p>(root: &OwnedFd, path: &'p RemotePath) -> Option<(OwnedFd, &'p OsStr)> {
    let mut folder = root.try_clone().ok()?;
    let mut parts = path.parts();
    let name = OsStr::from_bytes(parts.next_back()?);
    for part in parts {
        folder = rustix::fs::openat(&folder, OsStr::from_bytes(part), folder_flags(), Mode::empty()).ok()?;
    }
    Some((folder, name))
}

/// Whether a plain file of this size and time is there.
fn is_like(folder: BorrowedFd<'_>, name: &OsStr, bytes: u64, mtime: Option<i64>) -> bool {
    rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| {
        FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && u64::try_from(stat.st_size) == Ok(bytes)
            && mtime.is_none_or(|mtime| stat.st_mtime == mtime)
    })
}

/// Why a file could not be summed up.
pub(super) enum Unread {
    Io(io::Error),
    Told(Trouble),
}

/// Reads a file anew from the disk. `None` when it is no plain file of this size.
pub(super) fn sum(
    folder: BorrowedFd<'_>,
    name: &OsStr,
    bytes: u64,
    read_some: &mut dyn FnMut(u64) -> Result<(), Trouble>,
) -> Result<Option<String>, Unread> {
    if !is_like(folder, name, bytes, None) {
        return Ok(None);
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, name, flags, Mode::empty()).map_err(|error| Unread::Io(error.into()))?;
    let mut file = File::from(file);
    file.sync_all().map_err(Unread::Io)?;
    // What is on the disk counts, not what is still in memory. A system that does not take the advice reads that.
    #[cfg(target_os = "linux")]
    let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
    let (mut sha, mut chunk, mut all) = (Sha256::new(), vec![0; CHUNK], 0);
    loop {
        let read = file.read(&mut chunk).map_err(Unread::Io)?;
        if read == 0 {
            return Ok((all == bytes).then(|| hex(&sha.finalize())));
        }
        sha.update(&chunk[..read]);
        all += read as u64;
        read_some(read as u64).map_err(Unread::Told)?;
    }
}

/// The manifest of a copy, and its sum.
pub(super) fn read_manifest(root: &OwnedFd) -> io::Result<(Manifest, String)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(root, NAME, flags, Mode::empty())?);
    let mut text = Vec::new();
    file.take(MANIFEST_BYTES).read_to_end(&mut text)?;
    let manifest: Manifest = serde_json::from_slice(&text)?;
    if manifest.schema != crate::rules::checkpoint::manifest::SCHEMA {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("schema {}", manifest.schema)));
    }
    Ok((manifest, hex(&Sha256::digest(&text))))
}
