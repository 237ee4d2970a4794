//! Files brought over: small ones by archives, large ones one at a time, so that a cut connection goes on where it was.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Write};
use std::sync::Arc;

use providers::text::excerpt;
use tar::EntryType;

use super::remote::{Kind, Output};
use super::store::{Missing, Store, local, partial};
use super::survey::{first, refused};
use super::{Work, blocking, rsync};
use crate::rules::checkpoint::listing::{Listing, RemoteFile, RemotePath};
use crate::rules::checkpoint::manifest::without_a_place;
use crate::rules::checkpoint::rsync::is_of_no_use;
use crate::rules::checkpoint::{Trouble, script};

/// Larger files come one at a time.
const LARGE: u64 = 64 << 20;
const CHUNK: usize = 256 << 10;
/// A file in the making that came by an archive: it is begun anew when it is cut.
const FROM_ARCHIVE: &str = "from-archive";

impl Work {
    /// Brings over what is missing or differs.
    pub(super) async fn copy(&self, store: Arc<Store>, listing: Arc<Listing>) -> Result<(), Trouble> {
        self.meter.expect(listing.count(), listing.bytes());
        let (to, meter, by_rsync) = (store.clone(), self.meter.clone(), listing.has_rsync);
        let missing = blocking(move || {
            if let Some(path) = without_a_place(&listing, to.capitals_count()?) {
                return Err(Trouble::Name(path.to_string()));
            }
            let missing = to.prepare(&listing, &meter)?;
            to.room(missing.bytes)?;
            Ok(missing)
        });
        let missing = missing.await?;
        let brought = if missing.files.is_empty() {
            Ok(())
        } else if by_rsync && rsync::is_here().await {
            match self.bring_by_rsync(&store, &missing).await {
                Err(trouble) if is_of_no_use(&trouble) => self.bring(&store, missing).await,
                brought => brought,
            }
        } else {
            self.bring(&store, missing).await
        };
        match brought {
            // It filled up in the middle.
            Err(Trouble::NoRoom { need: 0, .. }) => {
                let left = self.meter.left();
                Err(blocking(move || store.no_room(left)).await.unwrap_or_else(|trouble| trouble))
            }
            brought => brought,
        }
    }

    async fn bring(&self, store: &Arc<Store>, missing: Missing) -> Result<(), Trouble> {
        // GNU tar takes a backslash in a name for the beginning of another sign, and has no word against it that
        // BusyBox knows: such files come alone as well (tar 1.34, tried 2026-12-01).
        let alone = |(path, file): &(RemotePath, RemoteFile)| file.bytes > LARGE || !path.is_plain();
        let (large, small): (BTreeMap<_, _>, BTreeMap<_, _>) = missing.files.into_iter().partition(alone);
        if !small.is_empty() {
            self.bring_small(store, small).await?;
        }
        for (path, file) in large {
            self.bring_large(store, path, file).await?;
        }
        Ok(())
    }

    /// All in one go, by archives one after another.
    async fn bring_small(&self, store: &Arc<Store>, files: BTreeMap<RemotePath, RemoteFile>) -> Result<(), Trouble> {
        let names = words(files.keys());
        let (to, meter) = (store.clone(), self.meter.clone());
        let ended = self.remote.run(script::TAR, names, Kind::Bytes, move |output| {
            let mut unpacking = Unpacking { store: &to, wanted: files, came: BTreeSet::new() };
            unpacking.all(output, |bytes| meter.add(bytes).check())?;
            to.discard(FROM_ARCHIVE);
            Ok(unpacking.wanted)
        });
        let ended = ended.await?;
        if ended.value.is_empty() {
            return Ok(());
        }
        if let Some(trouble) = refused(&ended.errors) {
            return Err(trouble);
        }
        Err(Trouble::Changed { files: ended.value.len() as u64, first: first(ended.value.keys()) })
    }

    /// Goes on where it was.
    async fn bring_large(&self, store: &Arc<Store>, path: RemotePath, file: RemoteFile) -> Result<(), Trouble> {
        let name = partial(&path, &file);
        let begun = store.incoming_size(&name);
        if begun > file.bytes {
            store.discard(&name);
            return Err(Trouble::Changed { files: 1, first: path.to_string() });
        }
        let (to, meter, own) = (store.clone(), self.meter.clone(), path.clone());
        let script = script::rest(begun);
        let ended = self.remote.run(&script, words([&path]), Kind::Bytes, move |output| {
            let mut made = to.append(&name)?;
            let all = pour(output, &mut made, file.bytes - begun, &own, |bytes| meter.add(bytes).check())?;
            if all == file.bytes - begun {
                made.sync_all().map_err(|error| local(&own, error))?;
                to.place(&made, &name, &own, &file)?;
                return Ok(true);
            }
            Ok(false)
        });
        let ended = ended.await?;
        match ended.value {
            true => Ok(()),
            false => Err(refused(&ended.errors).unwrap_or(Trouble::Changed { files: 1, first: path.to_string() })),
        }
    }
}

/// Names as words of `xargs -0`.
pub(super) fn words<'p>(paths: impl IntoIterator<Item = &'p RemotePath>) -> Vec<u8> {
    paths.into_iter().flat_map(|path| path.argument().into_iter().chain([0])).collect()
}

/// Writes at most so much of what comes, and says how much that was. What comes after it is left.
fn pour(
    from: &mut impl Read,
    to: &mut File,
    most: u64,
    path: &RemotePath,
    mut came: impl FnMut(u64) -> Result<(), Trouble>,
) -> Result<u64, Trouble> {
    let (mut from, mut chunk, mut all) = (from.take(most), vec![0; CHUNK], 0);
    loop {
        let read = from.read(&mut chunk).map_err(|error| garbled(&error))?;
        if read == 0 {
            return Ok(all);
        }
        to.write_all(&chunk[..read]).map_err(|error| local(path, error))?;
        all += read as u64;
        came(read as u64)?;
    }
}

fn garbled(error: &std::io::Error) -> Trouble {
    Trouble::Garbled(excerpt(&error.to_string(), 200))
}

/// Archives that come from a machine. What was not asked for is passed over, whatever its name.
struct Unpacking<'s> {
    store: &'s Store,
    wanted: BTreeMap<RemotePath, RemoteFile>,
    came: BTreeSet<RemotePath>,
}

impl Unpacking<'_> {
    fn all(&mut self, output: &mut Output, mut came: impl FnMut(u64) -> Result<(), Trouble>) -> Result<(), Trouble> {
        let mut archive = tar::Archive::new(output);
        // Each ends with zeros, and the next one begins behind them.
        archive.set_ignore_zeros(true);
        for entry in archive.entries().map_err(|error| garbled(&error))? {
            // A connection that is cut ends in the middle of an entry: what is missing then is told by the link.
            let Ok(mut entry) = entry else { return Ok(()) };
            let Some(path) = RemotePath::new(&entry.path_bytes()) else { continue };
            let Some(file) = self.wanted.get(&path).copied() else { continue };
            match entry.header().entry_type() {
                EntryType::Regular | EntryType::Continuous if entry.size() == file.bytes => {
                    let mut made = self.store.create(FROM_ARCHIVE)?;
                    if pour(&mut entry, &mut made, file.bytes, &path, &mut came)? < file.bytes {
                        return Ok(());
                    }
                    self.store.place(&made, FROM_ARCHIVE, &path, &file)?;
                }
                // The second name of a file whose first came before.
                EntryType::Link => {
                    let first = entry.link_name_bytes().and_then(|name| RemotePath::new(&name));
                    let Some(first) = first.filter(|first| self.came.contains(first)) else { continue };
                    self.store.twin(&first, &path)?;
                    came(file.bytes)?;
                }
                // It is another file by now.
                _ => continue,
            }
            self.wanted.remove(&path);
            self.came.insert(path);
        }
        Ok(())
    }
}
