//! Both sides compared: the machine's own sums against those of what is on this disk, and a last list against the one
//! that was copied.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::copy::words;
use super::remote::Kind;
use super::store::Store;
use super::survey::{first, refused};
use super::{Work, blocking};
use crate::rules::checkpoint::listing::{Listing, RemotePath};
use crate::rules::checkpoint::manifest::Manifest;
use crate::rules::checkpoint::{Proof, Trouble, script};
use crate::runtime::clock;

/// A sum, two blanks and a path.
const LINE: u64 = 16 << 10;
const SUMS: u64 = 512 << 20;

type Sums = BTreeMap<RemotePath, String>;

impl Work {
    /// Compares everything, writes the manifest, and gives the copy its name.
    pub(super) async fn compare(&self, store: Arc<Store>, listing: Listing) -> Result<Proof, Trouble> {
        // Read on both sides.
        self.meter.expect(listing.count(), listing.bytes().saturating_mul(2));
        self.meter.waits(true);
        let listing = Arc::new(listing);
        let (there, here) = tokio::join!(self.sums_there(&listing), self.sums_here(&store, &listing));
        let (there, here) = (there?, here?);
        let later = self.list().await?;
        self.meter.waits(false);
        let mut listing = Arc::unwrap_or_clone(listing);
        let changed = listing.changed(&later);
        if !changed.is_empty() && self.whole {
            return Err(Trouble::Changed { files: changed.len() as u64, first: first(changed.iter()) });
        }
        // A copy on a schedule goes without what somebody writes to just now.
        let unfinished = changed.into_iter().filter(|path| listing.files.contains_key(path)).collect();
        listing = listing.without(unfinished);
        let differs = |path: &&RemotePath| !there.contains_key(*path) || there.get(*path) != here.get(*path);
        let different: Vec<RemotePath> = listing.files.keys().filter(differs).cloned().collect();
        let machine = self.remote.target.alias.clone();
        let (name, paths) = (self.recipe.name.clone(), self.recipe.paths.clone());
        blocking(move || {
            if !different.is_empty() {
                store.link_nothing()?;
                different.iter().try_for_each(|path| store.remove(path))?;
                return Err(Trouble::Differs { files: different.len() as u64, first: first(different.iter()) });
            }
            let at = clock::now();
            store.clear(&listing, false, &super::Meter::default())?;
            let manifest = Manifest::new((&machine, &name, &paths), &listing, &here, at);
            let sum = store.finish(&manifest, &listing.links)?;
            Ok(Proof {
                at,
                files: listing.count(),
                bytes: listing.bytes(),
                left_out: listing.unfinished.len() as u64,
                place: store.finished().display().to_string(),
                manifest: sum,
            })
        })
        .await
    }

    /// What the machine says that its files add up to.
    async fn sums_there(&self, listing: &Listing) -> Result<Sums, Trouble> {
        let (plain, odd): (Vec<RemotePath>, Vec<RemotePath>) =
            listing.files.keys().cloned().partition(RemotePath::is_plain);
        let mut sums = Sums::new();
        if !plain.is_empty() {
            let (wanted, sizes) = (plain.iter().cloned().collect::<BTreeSet<_>>(), sizes(listing, &plain));
            sums = self
                .sums(script::SUMS, &plain, move |sums, sum, name| {
                    let path = RemotePath::new(name).filter(|path| wanted.contains(path))?;
                    let bytes = sizes.get(&path).copied();
                    sums.insert(path, sum);
                    bytes
                })
                .await?;
        }
        if !odd.is_empty() {
            let (mut names, sizes) = (odd.clone().into_iter(), sizes(listing, &odd));
            let more = self.sums(script::SUMS_IN_ORDER, &odd, move |sums, sum, _| {
                let path = names.next()?;
                let bytes = sizes.get(&path).copied();
                sums.insert(path, sum);
                bytes
            });
            sums.extend(more.await?);
        }
        Ok(sums)
    }

    async fn sums(
        &self,
        script: &str,
        paths: &[RemotePath],
        mut note: impl FnMut(&mut Sums, String, &[u8]) -> Option<u64> + Send + 'static,
    ) -> Result<Sums, Trouble> {
        let meter = self.meter.clone();
        let ended = self.remote.run(script, words(paths), Kind::Lines, move |output| {
            let mut sums = Sums::new();
            output.lines(LINE, SUMS, |line| {
                if let Some((sum, name)) = parted(line) {
                    meter.add(note(&mut sums, sum, name).unwrap_or_default());
                }
                Ok(())
            })?;
            Ok(sums)
        });
        let ended = ended.await?;
        match refused(&ended.errors).filter(|_| ended.value.len() < paths.len()) {
            Some(trouble) => Err(trouble),
            None => Ok(ended.value),
        }
    }

    /// What the files here add up to.
    async fn sums_here(&self, store: &Arc<Store>, listing: &Arc<Listing>) -> Result<Sums, Trouble> {
        let (store, listing, meter) = (store.clone(), listing.clone(), self.meter.clone());
        blocking(move || {
            let mut sums = Sums::new();
            for (path, file) in &listing.files {
                meter.check()?;
                if let Some(sum) = store.sum(path, file.bytes, &meter)? {
                    sums.insert(path.clone(), sum);
                }
            }
            Ok(sums)
        })
        .await
    }
}

fn sizes(listing: &Listing, paths: &[RemotePath]) -> BTreeMap<RemotePath, u64> {
    paths.iter().map(|path| (path.clone(), listing.files[path].bytes)).collect()
}

/// The sum of a line, and the name behind it. A sum that is none equals no other.
fn parted(line: &[u8]) -> Option<(String, &[u8])> {
    let at = line.iter().position(|byte| *byte == b' ')?;
    let (sum, name) = (&line[..at], &line[at + 1..]);
    // In text mode a blank, in binary mode a star: sha256sum(1).
    let name = name.strip_prefix(b" ").or_else(|| name.strip_prefix(b"*"))?;
    Some((String::from_utf8_lossy(sum).into_owned(), name))
}
