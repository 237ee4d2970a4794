//! The manifest: what a copy holds, beside it. With it anybody can check the copy again, without us too.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::listing::{LinkTarget, Listing, RemoteFile, RemotePath};

pub const SCHEMA: &str = "rentop.manifest/1";
/// Its name, in the copy's folder.
pub const NAME: &str = "manifest.json";
/// Where files are in the making, in a copy's folder that is not finished.
pub const INCOMING: &str = ".incoming";

/// What a copy holds. Paths are those of the machine without the slash at their beginning, and so are they below the
/// copy's folder; a name that is no text stands as `{"hex": …}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub schema: String,
    /// The name under which the machine's host key is known: its provider, account, id and generation.
    pub machine: String,
    /// Of the config's section; empty where the paths were chosen by hand.
    pub recipe: String,
    /// What was asked for, absolute.
    pub paths: Vec<String>,
    /// When both sides were compared.
    pub verified_at: Timestamp,
    pub files: Vec<File>,
    pub links: Vec<Link>,
    pub folders: Vec<Folder>,
    /// What is below the paths and not in the copy.
    pub left_out: Vec<LeftOut>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    pub path: RemotePath,
    pub bytes: u64,
    /// By the machine's clock; `None` where it did not tell.
    pub mtime: Option<i64>,
    /// Permission bits, octal; `None` where the machine did not tell.
    pub mode: Option<String>,
    pub sha256: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    pub path: RemotePath,
    pub target: LinkTarget,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Folder {
    pub path: RemotePath,
    pub mode: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub path: RemotePath,
    pub why: Why,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// It was being written.
    Unfinished,
    /// A socket, a pipe or a device.
    Special,
}

impl Manifest {
    /// Of a list whose files have these sums.
    pub fn new(
        (machine, recipe, paths): (&str, &str, &[String]),
        listing: &Listing,
        sums: &BTreeMap<RemotePath, String>,
        verified_at: Timestamp,
    ) -> Self {
        let octal = |mode: &Option<u32>| mode.map(|mode| format!("{mode:04o}"));
        let file = |(path, file): (&RemotePath, &RemoteFile)| {
            let sha256 = sums.get(path)?.clone();
            Some(File { path: path.clone(), bytes: file.bytes, mtime: file.mtime, mode: octal(&file.mode), sha256 })
        };
        let left_out = |why| move |path: &RemotePath| LeftOut { path: path.clone(), why };
        let unfinished = listing.unfinished.iter().map(left_out(Why::Unfinished));
        let links = listing.links.iter();
        let folders = listing.folders.iter();
        Manifest {
            schema: SCHEMA.to_owned(),
            machine: machine.to_owned(),
            recipe: recipe.to_owned(),
            paths: paths.to_vec(),
            verified_at,
            files: listing.files.iter().filter_map(file).collect(),
            links: links.map(|(path, target)| Link { path: path.clone(), target: target.clone() }).collect(),
            folders: folders.map(|(path, mode)| Folder { path: path.clone(), mode: octal(mode) }).collect(),
            left_out: unfinished.chain(listing.others.iter().map(left_out(Why::Special))).collect(),
        }
    }
}

/// The first name that has no place of its own in a copy's folder: what we put there ourselves, or, where capitals and
/// small letters are one, a name that is there already.
pub fn without_a_place(listing: &Listing, capitals_count: bool) -> Option<RemotePath> {
    let fold = |part: &[u8]| String::from_utf8_lossy(part).to_lowercase();
    let mut seen: BTreeMap<String, &[u8]> = BTreeMap::new();
    let all = listing.files.keys().chain(listing.links.keys()).chain(listing.folders.keys());
    for path in all {
        if path.parts().next().is_some_and(|first| [NAME, INCOMING].contains(&fold(first).as_str())) {
            return Some(path.clone());
        }
        if capitals_count {
            continue;
        }
        // Each folder above it is a name as well.
        let ends = path.as_bytes().iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        for end in ends.chain([path.as_bytes().len()]) {
            let name = &path.as_bytes()[..end];
            if *seen.entry(fold(name)).or_insert(name) != name {
                return Some(path.clone());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::plain(&["a/b", "a/c"], false, None)]
    #[case::ours(&["manifest.json"], true, Some("/manifest.json"))]
    #[case::ours_in_capitals(&["Manifest.JSON"], true, Some("/Manifest.JSON"))]
    #[case::in_the_making(&[".incoming/a"], true, Some("/.incoming/a"))]
    #[case::deeper(&["a/manifest.json"], false, None)]
    #[case::two_that_are_one(&["a/B", "a/b"], false, Some("/a/b"))]
    #[case::folders_that_are_one(&["A/x", "a/y"], false, Some("/a/y"))]
    #[case::two(&["a/B", "a/b"], true, None)]
    fn every_name_has_its_own_place(#[case] names: &[&str], #[case] capitals_count: bool, #[case] taken: Option<&str>) {
        let file = RemoteFile { bytes: 0, mtime: None, mode: None, inode: None };
        let files = names.iter().map(|name| (RemotePath::new(name.as_bytes()).unwrap(), file)).collect();
        let listing = Listing { files, ..Listing::default() };
        let found = without_a_place(&listing, capitals_count).map(|path| path.to_string());
        assert_eq!(found.as_deref(), taken);
    }
}
