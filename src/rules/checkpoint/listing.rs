//! What is on a machine below the paths of a recipe, as a shell there tells it, and which of it is whole.
//!
//! Names are bytes and hostile: a path counts only if it leads nowhere but below one of the paths that were asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::SignedDuration;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest path in bytes, `PATH_MAX` of Linux.
const LONGEST: usize = 4096;
/// A file whose time lies so far ahead was given that time; a clock that is only a little ahead catches up.
const AHEAD: i64 = 3600;
/// The bits of a mode that say what it is, and their values, as in inode(7).
const KIND: u32 = 0o170_000;
const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;

/// A path on a machine, without the slash at its beginning: plain names and nothing that leads elsewhere.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RemotePath(Vec<u8>);

impl RemotePath {
    /// `None` for what is no plain path. A dot for the same folder is passed over.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut path = Vec::with_capacity(bytes.len());
        for part in bytes.split(|byte| *byte == b'/') {
            match part {
                b"" | b"." => continue,
                b".." => return None,
                _ if part.contains(&0) => return None,
                _ => {}
            }
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(part);
        }
        (!path.is_empty() && path.len() <= LONGEST).then_some(RemotePath(path))
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Its names, outermost first.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|byte| *byte == b'/')
    }

    /// As a word for a command that runs in `/`: never an option.
    pub fn argument(&self) -> Vec<u8> {
        [b"./", self.0.as_slice()].concat()
    }

    pub fn is_in(&self, folder: &RemotePath) -> bool {
        self.0.strip_prefix(folder.as_bytes()).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    }

    /// The rest of it below a folder; of a path that is the folder itself, its name.
    pub fn below(&self, folder: &RemotePath) -> Option<RemotePath> {
        let rest = self.0.strip_prefix(folder.as_bytes())?;
        match rest {
            [] => RemotePath::new(self.parts().next_back()?),
            [b'/', rest @ ..] => RemotePath::new(rest),
            _ => None,
        }
    }

    /// No program writes it other than it is, a line a name.
    pub fn is_plain(&self) -> bool {
        !self.0.iter().any(|byte| matches!(byte, b'\n' | b'\r' | b'\\'))
    }
}

/// As it is on the machine, cleaned.
impl fmt::Display for RemotePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}", providers::text::excerpt(&String::from_utf8_lossy(&self.0), 200))
    }
}

impl fmt::Debug for RemotePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

/// A text; where the name is none, `{"hex": …}`.
impl Serialize for RemotePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Bytes::of(&self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RemotePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = Bytes::deserialize(deserializer)?.bytes().ok_or_else(|| serde::de::Error::custom("no hex"))?;
        // Read again it is what it was, or somebody else wrote it.
        let path = RemotePath::new(&bytes).filter(|path| path.as_bytes() == bytes);
        path.ok_or_else(|| serde::de::Error::custom("no plain path"))
    }
}

/// Where a link leads: kept as it is, and never followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkTarget(pub Vec<u8>);

impl Serialize for LinkTarget {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Bytes::of(&self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for LinkTarget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = Bytes::deserialize(deserializer)?.bytes();
        bytes.map(LinkTarget).ok_or_else(|| serde::de::Error::custom("no hex"))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Bytes {
    Text(String),
    Other { hex: String },
}

impl Bytes {
    fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Bytes::Text(text.to_owned()),
            Err(_) => Bytes::Other { hex: hex(bytes) },
        }
    }

    fn bytes(self) -> Option<Vec<u8>> {
        match self {
            Bytes::Text(text) => Some(text.into_bytes()),
            Bytes::Other { hex } => unhex(hex.as_bytes()),
        }
    }
}

/// In small hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    pairs.iter().map(|[high, low]| u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()).collect()
}

/// A file on a machine. What its tools do not tell is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteFile {
    pub bytes: u64,
    /// In seconds since 1970 by the machine's clock.
    pub mtime: Option<i64>,
    /// The permission bits.
    pub mode: Option<u32>,
    pub inode: Option<u64>,
}

impl RemoteFile {
    /// Nobody has written to it in between. Its permissions are no matter.
    pub fn is_same(&self, other: &RemoteFile) -> bool {
        (self.bytes, self.mtime, self.inode) == (other.bytes, other.mtime, other.inode)
    }
}

/// All that is below the paths of a recipe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The machine's clock, in seconds since 1970.
    pub now: i64,
    pub files: BTreeMap<RemotePath, RemoteFile>,
    pub folders: BTreeMap<RemotePath, Option<u32>>,
    pub links: BTreeMap<RemotePath, LinkTarget>,
    /// Sockets, pipes and devices: no part of a copy.
    pub others: BTreeSet<RemotePath>,
    /// Files that were being written when the others were whole: no part of this copy.
    pub unfinished: BTreeSet<RemotePath>,
    /// The machine has `rsync`.
    pub has_rsync: bool,
}

impl Listing {
    pub fn bytes(&self) -> u64 {
        self.files.values().map(|file| file.bytes).fold(0, u64::saturating_add)
    }

    pub fn count(&self) -> u64 {
        self.files.len() as u64
    }

    /// Files that are still being written, seen against an earlier list: another size, time or inode, or written less
    /// than `quiet` ago.
    pub fn being_written(&self, earlier: &Listing, quiet: SignedDuration) -> BTreeSet<RemotePath> {
        let rests = |file: &RemoteFile| {
            file.mtime.is_none_or(|at| {
                let age = self.now.saturating_sub(at);
                age >= quiet.as_secs() || age < -AHEAD
            })
        };
        let is_whole = |path: &RemotePath, file: &RemoteFile| {
            rests(file) && earlier.files.get(path).is_some_and(|before| before.is_same(file))
        };
        let written = self.files.iter().filter(|(path, file)| !is_whole(path, file));
        written.map(|(path, _)| path.clone()).collect()
    }

    /// The same without files that are being written.
    pub fn without(mut self, unfinished: BTreeSet<RemotePath>) -> Listing {
        self.files.retain(|path, _| !unfinished.contains(path));
        self.unfinished.extend(unfinished);
        self
    }

    /// What is not in a later list as it is in this one, and what is new there.
    pub fn changed(&self, later: &Listing) -> BTreeSet<RemotePath> {
        let same = |path: &RemotePath, file: &RemoteFile| later.files.get(path).is_some_and(|now| now.is_same(file));
        let mut changed: BTreeSet<RemotePath> =
            self.files.iter().filter(|(path, file)| !same(path, file)).map(|(path, _)| path.clone()).collect();
        let is_new = |path: &&RemotePath| !self.files.contains_key(path) && !self.unfinished.contains(path);
        changed.extend(later.files.keys().filter(is_new).cloned());
        let links = self.links.iter().filter(|(path, target)| later.links.get(path) != Some(target));
        changed.extend(links.map(|(path, _)| path.clone()));
        changed.extend(later.links.keys().filter(|path| !self.links.contains_key(path)).cloned());
        let (was, is): (BTreeSet<_>, BTreeSet<_>) = (self.folders.keys().collect(), later.folders.keys().collect());
        changed.extend(was.symmetric_difference(&is).map(|path| (*path).clone()));
        changed
    }
}

/// What a machine said of the paths, before it is a list.
#[derive(Debug)]
pub struct Reader {
    asked: Vec<RemotePath>,
    listing: Listing,
    /// A link whose target is told by the next line.
    link: Option<RemotePath>,
    /// Programs that the machine lacks.
    pub lacks: Vec<String>,
    /// Which of the paths are not there; with a text where they are links that lead to no folder.
    pub missing: Vec<(usize, String)>,
    /// Something could not be read, or went away meanwhile.
    pub failed: bool,
    /// It came to its end.
    ended: bool,
}

/// What was said is no list.
#[derive(Debug, PartialEq, Eq)]
pub struct NotAList(pub String);

impl Reader {
    pub fn new(asked: Vec<RemotePath>) -> Self {
        Reader {
            asked,
            listing: Listing::default(),
            link: None,
            lacks: Vec::new(),
            missing: Vec::new(),
            failed: false,
            ended: false,
        }
    }

    /// Takes in a line, without its end.
    pub fn line(&mut self, line: &[u8]) -> Result<(), NotAList> {
        if line.is_empty() && self.link.is_none() {
            return Ok(());
        }
        self.take(line).ok_or_else(|| NotAList(providers::text::excerpt(&String::from_utf8_lossy(line), 80)))
    }

    fn take(&mut self, line: &[u8]) -> Option<()> {
        let (word, rest) = cut(line);
        if let Some(path) = self.link.take() {
            return (word == b"t").then(|| drop(self.listing.links.insert(path, LinkTarget(rest.to_vec()))));
        }
        match word {
            b"now" => self.listing.now = number(rest)?,
            b"has" => self.listing.has_rsync |= rest == b"rsync",
            b"lacks" => self.lacks.push(String::from_utf8_lossy(rest).into_owned()),
            b"missing" => {
                let (index, target) = cut(rest);
                let index: usize = number(index)?;
                self.asked.get(index)?;
                self.missing.push((index, String::from_utf8_lossy(target).into_owned()));
            }
            b"failed" => self.failed = true,
            b"end" => self.ended = true,
            b"e" => self.entry(rest, |name| Some(name.to_vec()))?,
            b"E" => self.entry(rest, unhex)?,
            b"l" => self.link = Some(self.path(rest)?),
            b"L" => {
                let (path, target) = cut(rest);
                let path = self.path(&unhex(path)?)?;
                self.listing.links.insert(path, LinkTarget(unhex(target)?));
            }
            _ => return None,
        }
        Some(())
    }

    fn entry(&mut self, rest: &[u8], name: impl FnOnce(&[u8]) -> Option<Vec<u8>>) -> Option<()> {
        let (mode, rest) = cut(rest);
        let (bytes, rest) = cut(rest);
        let (mtime, rest) = cut(rest);
        let (inode, rest) = cut(rest);
        let mode = u32::from_str_radix(std::str::from_utf8(mode).ok()?, 16).ok()?;
        let path = self.path(&name(rest)?)?;
        // Without the tool that tells the time there are no permissions either.
        let permissions = (mtime != b"-").then_some(mode & 0o7777);
        match mode & KIND {
            FILE => {
                let file =
                    RemoteFile { bytes: number(bytes)?, mtime: maybe(mtime)?, mode: permissions, inode: maybe(inode)? };
                self.listing.files.insert(path, file);
            }
            FOLDER => drop(self.listing.folders.insert(path, permissions)),
            _ => drop(self.listing.others.insert(path)),
        }
        Some(())
    }

    fn path(&self, bytes: &[u8]) -> Option<RemotePath> {
        RemotePath::new(bytes).filter(|path| self.asked.iter().any(|asked| path.is_in(asked)))
    }

    /// The list, if it came to its end and no name means two things.
    pub fn finish(self) -> Result<Listing, NotAList> {
        if !self.ended {
            return Err(NotAList("a list without its end".to_owned()));
        }
        let listing = self.listing;
        let leaves = listing.files.keys().chain(listing.links.keys()).chain(&listing.others);
        let mut seen = BTreeSet::new();
        for leaf in leaves {
            if !seen.insert(leaf) || listing.folders.contains_key(leaf) {
                return Err(NotAList(format!("{leaf} twice")));
            }
        }
        // A folder of one entry that is a file or a link to another.
        for path in listing.files.keys().chain(listing.links.keys()).chain(listing.folders.keys()) {
            let parts: Vec<&[u8]> = path.parts().collect();
            for length in 1..parts.len() {
                let above = RemotePath(parts[..length].join(&b'/'));
                if seen.contains(&above) {
                    return Err(NotAList(format!("{path} below what is no folder")));
                }
            }
        }
        Ok(listing)
    }
}

/// The first word, and what follows the blank behind it.
fn cut(line: &[u8]) -> (&[u8], &[u8]) {
    match line.iter().position(|byte| *byte == b' ') {
        Some(at) => (&line[..at], &line[at + 1..]),
        None => (line, &[]),
    }
}

fn number<T: std::str::FromStr>(digits: &[u8]) -> Option<T> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// A dash is what is not known.
fn maybe<T: std::str::FromStr>(digits: &[u8]) -> Option<Option<T>> {
    if digits == b"-" { Some(None) } else { number(digits).map(Some) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn listing(now: i64, files: &[(&str, u64, Option<i64>, u64)]) -> Listing {
        let file = |&(path, bytes, mtime, inode): &(&str, u64, Option<i64>, u64)| {
            let file = RemoteFile { bytes, mtime, mode: Some(0o644), inode: Some(inode) };
            (RemotePath::new(path.as_bytes()).unwrap(), file)
        };
        Listing { now, files: files.iter().map(file).collect(), ..Listing::default() }
    }

    fn names(paths: &BTreeSet<RemotePath>) -> Vec<String> {
        paths.iter().map(ToString::to_string).collect()
    }

    /// DATA-01.
    #[test]
    fn a_file_that_grows_is_not_whole() {
        let (first, second) = (1_000_000, 1_000_005);
        let before = listing(
            first,
            &[
                ("ckpt/step-1900.pt", 9_800_000_000, Some(first - 1900), 1),
                ("ckpt/step-2000.pt", 3_100_000_000, Some(first - 2), 2),
            ],
        );
        let after = listing(
            second,
            &[
                ("ckpt/step-1900.pt", 9_800_000_000, Some(second - 1905), 1),
                ("ckpt/step-2000.pt", 4_600_000_000, Some(second - 1), 2),
            ],
        );
        let written = after.being_written(&before, SignedDuration::from_secs(5));
        assert_eq!(names(&written), ["/ckpt/step-2000.pt"]);
        let rest = after.without(written);
        assert_eq!((rest.count(), rest.bytes(), rest.unfinished.len()), (1, 9_800_000_000, 1));
    }

    #[rstest]
    #[case::rests(("a", 1, Some(90), 1), ("a", 1, Some(90), 1), true)]
    #[case::just_written(("a", 1, Some(91), 1), ("a", 1, Some(91), 1), false)]
    #[case::longer(("a", 1, Some(50), 1), ("a", 2, Some(50), 1), false)]
    #[case::written_again(("a", 1, Some(50), 1), ("a", 1, Some(60), 1), false)]
    #[case::put_in_its_place(("a", 1, Some(50), 1), ("a", 1, Some(50), 2), false)]
    #[case::a_clock_ahead(("a", 1, Some(130), 1), ("a", 1, Some(130), 1), false)]
    #[case::a_time_that_was_given(("a", 1, Some(99_999), 1), ("a", 1, Some(99_999), 1), true)]
    #[case::no_time(("a", 1, None, 1), ("a", 1, None, 1), true)]
    #[case::new(("b", 1, Some(50), 1), ("a", 1, Some(50), 1), false)]
    fn a_file_is_whole_once_it_rests(
        #[case] before: (&str, u64, Option<i64>, u64),
        #[case] after: (&str, u64, Option<i64>, u64),
        #[case] whole: bool,
    ) {
        let (before, after) = (listing(90, &[before]), listing(100, &[after]));
        assert_eq!(after.being_written(&before, SignedDuration::from_secs(10)).is_empty(), whole);
    }

    #[rstest]
    #[case("./workspace/out/a", Some("workspace/out/a"))]
    #[case("/workspace//out/./a/", Some("workspace/out/a"))]
    #[case("./workspace/out/../../etc/passwd", None)]
    #[case("..", None)]
    #[case("./", None)]
    #[case("a\0b", None)]
    fn a_path_is_plain_or_none(#[case] text: &str, #[case] expected: Option<&str>) {
        let path = RemotePath::new(text.as_bytes());
        assert_eq!(path.as_ref().map(RemotePath::as_bytes), expected.map(str::as_bytes));
    }

    #[rstest]
    #[case::no_end(&["e 81a4 1 1 1 ./out/a"])]
    #[case::twice(&["e 81a4 1 1 1 ./out/a", "l ./out/a", "t x", "end"])]
    #[case::below_a_file(&["e 81a4 1 1 1 ./out/a", "e 81a4 1 1 1 ./out/a/b", "end"])]
    fn what_means_two_things_is_no_list(#[case] lines: &[&str]) {
        let mut reader = Reader::new(vec![RemotePath::new(b"out").unwrap()]);
        lines.iter().for_each(|line| reader.line(line.as_bytes()).unwrap());
        assert!(reader.finish().is_err());
    }

    proptest! {
        /// Whatever is said, every name leads below what was asked for.
        #[test]
        fn no_name_leads_elsewhere(lines in prop::collection::vec("[eElLt] (81a4 [0-9]{1,3} [0-9-]{1,3} 1 )?[./a-z0-9]{0,12}", 0..8)) {
            let out = RemotePath::new(b"a").unwrap();
            let mut reader = Reader::new(vec![out.clone()]);
            for line in &lines {
                drop(reader.line(line.as_bytes()));
            }
            drop(reader.line(b"end"));
            if let Ok(listing) = reader.finish() {
                let all = listing.files.keys().chain(listing.links.keys()).chain(listing.folders.keys());
                prop_assert!(all.clone().all(|path| path.is_in(&out) && path.parts().all(|part| part != b"..")));
            }
        }

        #[test]
        fn a_path_is_read_as_it_was_written(bytes in prop::collection::vec(any::<u8>(), 1..20)) {
            let Some(path) = RemotePath::new(&bytes) else { return Ok(()) };
            let text = serde_json::to_string(&path).unwrap();
            prop_assert_eq!(serde_json::from_str::<RemotePath>(&text).unwrap(), path);
        }
    }

    #[rstest]
    #[case(r#""../a""#)]
    #[case(r#""/a""#)]
    #[case(r#"{"hex":"2e2e"}"#)]
    #[case(r#"{"hex":"2"}"#)]
    fn a_manifest_leads_nowhere_else_either(#[case] text: &str) {
        assert!(serde_json::from_str::<RemotePath>(text).is_err());
    }
}
