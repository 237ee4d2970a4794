//! What is on the machine, once nobody writes to it any more.

use std::time::Duration;

use jiff::SignedDuration;
use tokio::time::Instant;

use super::Work;
use super::remote::{Ended, Kind};
use crate::rules::checkpoint::listing::{Listing, NotAList, Reader, RemotePath};
use crate::rules::checkpoint::{Method, Trouble, script};

/// Before a release, files may take so long to come to rest.
const LONGEST: SignedDuration = SignedDuration::from_mins(10);
/// So long it takes at least from one list to the next.
const SHORTEST: Duration = Duration::from_secs(1);
/// Files that come and go while they are listed: it is tried so often.
const TRIES: usize = 5;
/// A line of the list; a name and the target of a link in hexadecimal digits fit.
const LINE: u64 = 64 << 10;
/// Of a whole list. More files are no checkpoint.
const LISTING: u64 = 512 << 20;

impl Work {
    /// Lists the files once they are quiet. What is still being written is left out, or waited for where all of it is
    /// wanted.
    pub(super) async fn survey(&self) -> Result<Listing, Trouble> {
        let quiet = self.recipe.quiet;
        let began = Instant::now();
        self.meter.waits(true);
        let mut earlier = self.list().await?;
        loop {
            if quiet > SignedDuration::ZERO {
                tokio::time::sleep(Duration::try_from(quiet).unwrap_or_default().max(SHORTEST)).await;
            }
            let later = self.list().await?;
            let written = later.being_written(&earlier, quiet);
            if written.is_empty() || !self.whole {
                self.meter.waits(false);
                return Ok(later.without(written));
            }
            if began.elapsed() >= LONGEST.unsigned_abs() {
                return Err(Trouble::NotQuiet { files: written.len() as u64, first: first(written.iter()) });
            }
            if quiet == SignedDuration::ZERO {
                tokio::time::sleep(SHORTEST).await;
            }
            earlier = later;
        }
    }

    /// Lists them as they are now.
    pub(super) async fn list(&self) -> Result<Listing, Trouble> {
        let needed: &[&str] = match self.recipe.method {
            Method::Copy { .. } => &["find", "xargs", "tar", "tail", "sha256sum"],
            Method::Command { .. } => &["find"],
            Method::Volume => &["find", "df", "sync"],
        };
        let asked = self.asked()?;
        let script = script::list(&asked, needed);
        let mut last = Trouble::Garbled(String::new());
        for _ in 0..TRIES {
            let asked = asked.clone();
            let ended = self.remote.run(&script, Vec::new(), Kind::Lines, move |output| {
                let mut reader = Reader::new(asked);
                output.lines(LINE, LISTING, |line| reader.line(line).map_err(garbled))?;
                Ok(reader)
            });
            let ended = ended.await?;
            match self.listed(ended)? {
                Ok(listing) => return Ok(listing),
                Err(trouble) => last = trouble,
            }
        }
        Err(last)
    }

    /// The list; within, why it may be one the next time.
    fn listed(&self, ended: Ended<Reader>) -> Result<Result<Listing, Trouble>, Trouble> {
        let complaint = ended.complaint();
        let reader = ended.value;
        if let Some(tool) = reader.lacks.first() {
            return Err(Trouble::NoTool(providers::text::excerpt(tool, 40)));
        }
        if !reader.missing.is_empty() {
            let shown = |(index, target): &(usize, String)| {
                let path = self.recipe.paths.get(*index).map_or("", String::as_str);
                let leads = if target.is_empty() { String::new() } else { format!(" -> {target}") };
                providers::text::excerpt(&format!("{path}{leads}"), 200)
            };
            return Err(Trouble::Missing(reader.missing.iter().map(shown).collect()));
        }
        if ended.code != 0 {
            return Err(Trouble::Garbled(complaint));
        }
        if reader.failed {
            return refused(&ended.errors).map_or(Ok(Err(Trouble::Changed { files: 1, first: complaint })), Err);
        }
        reader.finish().map(Ok).map_err(garbled)
    }

    pub(super) fn asked(&self) -> Result<Vec<RemotePath>, Trouble> {
        let plain =
            |path: &String| RemotePath::new(path.as_bytes()).ok_or_else(|| Trouble::Missing(vec![path.clone()]));
        self.recipe.paths.iter().map(plain).collect()
    }
}

fn garbled(error: NotAList) -> Trouble {
    Trouble::Garbled(error.0)
}

/// What may not be read there, as GNU's and BusyBox's tools say it under `LC_ALL=C`.
pub(super) fn refused(errors: &str) -> Option<Trouble> {
    let refused: Vec<&str> = errors.lines().filter(|line| line.contains("Permission denied")).collect();
    let first = refused.first()?;
    // The name stands before the reason, and the program before the name.
    let name = first.rsplit_once(": ").map_or(*first, |(name, _)| name);
    let name = name.split_once(": ").map_or(name, |(_, name)| name);
    Some(Trouble::Unreadable { files: refused.len() as u64, first: providers::text::excerpt(name, 200) })
}

/// The first of some names, as it is shown.
pub(super) fn first<'p>(mut names: impl Iterator<Item = &'p RemotePath>) -> String {
    names.next().map(ToString::to_string).unwrap_or_default()
}
