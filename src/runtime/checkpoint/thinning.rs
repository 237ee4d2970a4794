//! Copies that make room for later ones, and copies that are no longer where they were.
//!
//! Of a copy only what its manifest names is deleted, and only where that manifest is the one that was recorded. A copy
//! counts as gone only where what lies above it shows that its disk is there.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use jiff::tz::TimeZone;
use providers::model::Identity;
use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;

use super::super::Outbox;
use super::super::keeper::Shelf;
use super::store::{copy_flags, folder_flags, read_manifest, walk};
use crate::app::Event;
use crate::app::event::WorldEvent;
use crate::rules::checkpoint::listing::RemotePath;
use crate::rules::checkpoint::manifest::NAME;
use crate::rules::checkpoint::{KeepRule, Method, Saved, place_of, surplus};

/// Where the folder of a copy was looked for.
enum Place {
    /// It is there: itself, with the folder that it is in and its name there.
    There { root: OwnedFd, above: OwnedFd, name: OsString },
    /// It is not, or is no copy any more.
    Gone,
    /// Nobody can tell: another method made it, or its disk is not there now.
    OutOfReach,
}

/// Deletes the copies of a machine that make room for later ones, and notes it.
pub fn thin(shelf: Shelf, identity: Identity, recipe: String, keep: KeepRule, zone: TimeZone) {
    tokio::spawn(async move {
        let Some(mut copies) = shelf.copies(identity).await else { return };
        copies.retain(|copy| copy.recipe.name == recipe);
        for copy in surplus(&copies, keep, &zone).into_iter().cloned() {
            let op = copy.op;
            match tokio::task::spawn_blocking(move || delete(&copy)).await.map_err(io::Error::other).flatten() {
                Ok(true) => shelf.thinned(op),
                Ok(false) => {}
                Err(error) => tracing::warn!(?op, %error, "a copy could not be thinned out"),
            }
        }
    });
}

/// Looks whether the last copies of machines are still there, and tells of those that are not, with the one before.
pub fn look_for(shelf: Shelf, outbox: Outbox, last: Vec<Saved>) {
    tokio::spawn(async move {
        for copy in last {
            let (identity, op) = (copy.identity.clone(), copy.op);
            if !gone(copy, &shelf).await {
                continue;
            }
            let mut earlier = None;
            for copy in shelf.copies(identity.clone()).await.into_iter().flatten().filter(|copy| copy.op != op) {
                if !gone(copy.clone(), &shelf).await {
                    earlier = Some(Box::new(copy));
                    break;
                }
            }
            outbox.put(Event::World(WorldEvent::CopyMissing { identity, op, earlier }));
        }
    });
}

/// Whether a copy cannot be claimed to be there. That it is gone for good is noted.
async fn gone(copy: Saved, shelf: &Shelf) -> bool {
    if place_of(&copy).is_none() {
        return false;
    }
    let op = copy.op;
    match tokio::task::spawn_blocking(move || look(&copy)).await {
        Ok(Place::There { .. }) => false,
        Ok(Place::Gone) => {
            tracing::warn!(?op, "a copy is no longer where it was");
            shelf.thinned(op);
            true
        }
        Ok(Place::OutOfReach) | Err(_) => true,
    }
}

/// Through the folder of its method, which a person may have made a link, and through no other one.
fn look(copy: &Saved) -> Place {
    let (Some(place), Method::Copy { to }) = (place_of(copy), &copy.recipe.method) else { return Place::OutOfReach };
    let Ok(below) = place.strip_prefix(Path::new(to)) else { return Place::OutOfReach };
    let Ok(mut above) = rustix::fs::open(to.as_str(), copy_flags(), Mode::empty()) else { return Place::OutOfReach };
    let parts: Vec<&OsStr> = below.iter().collect();
    for (depth, part) in parts.iter().enumerate() {
        match rustix::fs::openat(&above, *part, folder_flags(), Mode::empty()) {
            Ok(root) if depth + 1 == parts.len() => {
                let has_manifest = rustix::fs::statat(&root, NAME, AtFlags::SYMLINK_NOFOLLOW);
                return match has_manifest {
                    Ok(_) => Place::There { root, above, name: part.to_os_string() },
                    Err(Errno::NOENT) => Place::Gone,
                    Err(_) => Place::OutOfReach,
                };
            }
            Ok(folder) => above = folder,
            // An empty folder in its place is how a disk looks that is not mounted.
            Err(Errno::NOENT) if depth > 0 => return Place::Gone,
            Err(_) => return Place::OutOfReach,
        }
    }
    Place::OutOfReach
}

/// Deletes a copy. True when it is no longer there. The manifest goes last but for the folder, so that what was cut
/// short is gone on with; what somebody else put beside the copy stays.
fn delete(copy: &Saved) -> io::Result<bool> {
    let (root, above, name) = match look(copy) {
        Place::There { root, above, name } => (root, above, name),
        Place::Gone => return Ok(true),
        Place::OutOfReach => return Ok(false),
    };
    let (manifest, digest) = read_manifest(&root)?;
    if digest != copy.proof.manifest {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "its manifest is not the one that was recorded"));
    }
    let mut folders: BTreeSet<&RemotePath> = manifest.folders.iter().map(|folder| &folder.path).collect();
    let files = manifest.files.iter().map(|file| &file.path);
    let paths: Vec<&RemotePath> = files.chain(manifest.links.iter().map(|link| &link.path)).collect();
    for path in &paths {
        remove(&root, path, AtFlags::empty())?;
    }
    let outer: BTreeSet<RemotePath> = paths.iter().copied().chain(folders.iter().copied()).flat_map(outer).collect();
    folders.extend(&outer);
    // Innermost first.
    for path in folders.into_iter().rev() {
        remove(&root, path, AtFlags::REMOVEDIR)?;
    }
    forgiving(rustix::fs::unlinkat(&root, NAME, AtFlags::empty()))?;
    forgiving(rustix::fs::unlinkat(&above, &name, AtFlags::REMOVEDIR))?;
    Ok(true)
}

/// The folders that a path is in.
fn outer(path: &RemotePath) -> Vec<RemotePath> {
    let ends = path.as_bytes().iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    ends.filter_map(|end| RemotePath::new(&path.as_bytes()[..end])).collect()
}

fn remove(root: &OwnedFd, path: &RemotePath, flags: AtFlags) -> io::Result<()> {
    // What it was in is not there.
    let Some((folder, name)) = walk(root, path) else { return Ok(()) };
    forgiving(rustix::fs::unlinkat(&folder, name, flags))
}

/// What is not there need not be removed, and what is not a copy's own stays: a folder with something in it, or
/// something of another kind in the place.
fn forgiving(removed: Result<(), Errno>) -> io::Result<()> {
    match removed {
        Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR | Errno::ISDIR) => Ok(()),
        removed => Ok(removed?),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    use jiff::Timestamp;

    use super::*;
    use crate::rules::checkpoint::listing::{LinkTarget, Listing, RemoteFile, hex};
    use crate::rules::checkpoint::manifest::Manifest;
    use crate::rules::checkpoint::{Proof, QUIET, Recipe};
    use crate::rules::saga::OpId;
    use crate::rules::samples::identity;
    use sha2::{Digest, Sha256};

    fn path(text: &str) -> RemotePath {
        RemotePath::new(text.as_bytes()).unwrap()
    }

    /// A copy with two files, a folder and a link out of it.
    fn copy(to: &Path, time: &str) -> Saved {
        let place = to.join("vast-team/trainer-31").join(time);
        fs::create_dir_all(place.join("workspace/out/deep")).unwrap();
        let mut listing = Listing::default();
        let mut sums = BTreeMap::new();
        for name in ["workspace/out/model.pt", "workspace/out/deep/log"] {
            fs::write(place.join(name), name).unwrap();
            let file = RemoteFile { bytes: name.len() as u64, mtime: None, mode: None, inode: None };
            listing.files.insert(path(name), file);
            sums.insert(path(name), String::new());
        }
        listing.folders.insert(path("workspace/out"), None);
        listing.folders.insert(path("workspace/out/deep"), None);
        listing.links.insert(path("workspace/out/latest"), LinkTarget(to.as_os_str().as_bytes().to_vec()));
        symlink(to, place.join("workspace/out/latest")).unwrap();
        let paths = vec!["/workspace/out".to_owned()];
        let manifest = Manifest::new(("vast/team/31", "default", &paths), &listing, &sums, Timestamp::UNIX_EPOCH);
        let text = serde_json::to_vec_pretty(&manifest).unwrap();
        fs::write(place.join(NAME), &text).unwrap();
        let proof = Proof {
            at: Timestamp::UNIX_EPOCH,
            files: 2,
            bytes: 1,
            left_out: 0,
            place: place.display().to_string(),
            manifest: hex(&Sha256::digest(&text)),
        };
        let method = Method::Copy { to: to.display().to_string() };
        let recipe = Recipe { name: "default".to_owned(), paths, method, prepare: None, quiet: QUIET };
        Saved { op: OpId(1), identity: identity("team", "31"), recipe, proof }
    }

    fn left(place: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(place)
            .map(|entries| entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect())
            .unwrap_or_default();
        names.sort();
        names
    }

    #[test]
    fn a_copy_goes_with_its_folder_and_nothing_else_does() {
        let to = tempfile::tempdir().unwrap();
        let (old, new) = (copy(to.path(), "20261130T100000Z"), copy(to.path(), "20261130T110000Z"));
        assert!(delete(&old).unwrap());
        assert_eq!(left(&to.path().join("vast-team/trainer-31")), ["20261130T110000Z"]);
        assert_eq!(left(Path::new(&new.proof.place)), [NAME, "workspace"], "a link in the other one was not followed");
        assert!(delete(&old).unwrap(), "once more it is gone already");
    }

    #[test]
    fn what_somebody_put_into_a_copy_stays() {
        let to = tempfile::tempdir().unwrap();
        let copy = copy(to.path(), "20261130T100000Z");
        let place = Path::new(&copy.proof.place);
        fs::write(place.join("workspace/out/deep/notes"), "mine").unwrap();
        assert!(delete(&copy).unwrap());
        assert_eq!(fs::read_to_string(place.join("workspace/out/deep/notes")).unwrap(), "mine");
        assert_eq!(left(&place.join("workspace/out")), ["deep"]);
        assert_eq!(left(place), ["workspace"]);
    }

    #[test]
    fn another_manifest_is_another_copy() {
        let to = tempfile::tempdir().unwrap();
        let mut copy = copy(to.path(), "20261130T100000Z");
        copy.proof.manifest = "00".to_owned();
        assert!(delete(&copy).is_err());
        assert_eq!(left(Path::new(&copy.proof.place).join("workspace/out").as_path()), ["deep", "latest", "model.pt"]);
    }

    #[test]
    fn nothing_is_reached_through_a_link() {
        let to = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let copy = copy(elsewhere.path(), "20261130T100000Z");
        symlink(elsewhere.path().join("vast-team"), to.path().join("vast-team")).unwrap();
        let place = to.path().join("vast-team/trainer-31/20261130T100000Z").display().to_string();
        let method = Method::Copy { to: to.path().display().to_string() };
        let copy = Saved {
            recipe: Recipe { method, ..copy.recipe.clone() },
            proof: Proof { place: place.clone(), ..copy.proof.clone() },
            ..copy
        };
        assert!(!delete(&copy).unwrap());
        assert_eq!(left(Path::new(&place)), [NAME, "workspace"]);
    }

    /// What cannot be told is not gone: the disk may not be mounted.
    #[test]
    fn a_copy_is_gone_only_where_its_disk_is_there() {
        let to = tempfile::tempdir().unwrap();
        let (one, other) = (copy(to.path(), "20261130T100000Z"), copy(to.path(), "20261130T110000Z"));
        assert!(matches!(look(&one), Place::There { .. }));
        fs::remove_dir_all(&one.proof.place).unwrap();
        assert!(matches!(look(&one), Place::Gone));
        fs::remove_file(Path::new(&other.proof.place).join(NAME)).unwrap();
        assert!(matches!(look(&other), Place::Gone), "without its manifest it is no copy");
        fs::remove_dir_all(to.path().join("vast-team")).unwrap();
        assert!(matches!(look(&one), Place::OutOfReach), "the empty folder of a disk that is not mounted");
        fs::remove_dir(to.path()).unwrap();
        assert!(matches!(look(&one), Place::OutOfReach));
        assert!(!delete(&one).unwrap());
    }
}
