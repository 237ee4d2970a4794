//! The commands of a recipe, which run on the machine, and what proves what they did.

use std::collections::BTreeMap;

use super::Work;
use super::remote::Kind;
use super::survey::first;
use crate::rules::checkpoint::listing::{Listing, RemotePath};
use crate::rules::checkpoint::{CommandProof, Proof, Trouble, Which, script};
use crate::runtime::clock;

const LINE: u64 = 64 << 10;
const LISTING: u64 = 512 << 20;
/// What the proof calls the place to which a command brought everything: the method, since only the command knows it.
const PLACE: &str = "command";

impl Work {
    /// Runs a command of the recipe, which must end well.
    pub(super) async fn own_command(&self, command: Which, line: &str) -> Result<(), Trouble> {
        self.meter.waits(true);
        let ended = self.remote.command(&script::command(line)).await?;
        self.meter.waits(false);
        ended_well(command, ended.code, ended.complaint())
    }

    /// Whether all that was listed is where the command brought it.
    pub(super) async fn proven(&self, proof: &CommandProof, listing: Listing) -> Result<Proof, Trouble> {
        match proof {
            CommandProof::Verify(line) => self.own_command(Which::Verify, line).await?,
            CommandProof::Listing(line) => self.all_listed(line, &listing).await?,
        }
        self.unchanged(listing, PLACE).await
    }

    async fn all_listed(&self, line: &str, listing: &Listing) -> Result<(), Trouble> {
        self.meter.waits(true);
        let script = script::output_of(line);
        let ended = self.remote.run(&script, Vec::new(), Kind::Lines, |output| {
            let mut there = BTreeMap::new();
            output.lines(LINE, LISTING, |line| {
                let line = line.trim_ascii_start();
                let at = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
                let bytes = std::str::from_utf8(&line[..at]).ok().and_then(|digits| digits.parse::<u64>().ok());
                // Headings and sums are no files.
                if let (Some(bytes), Some(path)) = (bytes, RemotePath::new(line[at..].trim_ascii())) {
                    there.insert(path, bytes);
                }
                Ok(())
            })?;
            Ok(there)
        });
        let ended = ended.await?;
        self.meter.waits(false);
        let complaint = ended.complaint();
        ended_well(Which::Listing, ended.code, complaint)?;
        let asked = self.asked()?;
        let is_there = |path: &RemotePath, bytes: u64| {
            asked.iter().any(|asked| path.below(asked).is_some_and(|below| ended.value.get(&below) == Some(&bytes)))
        };
        let different: Vec<&RemotePath> =
            listing.files.iter().filter(|(path, file)| !is_there(path, file.bytes)).map(|(path, _)| path).collect();
        if different.is_empty() {
            return Ok(());
        }
        Err(Trouble::Differs { files: different.len() as u64, first: first(different.into_iter()) })
    }

    /// A last look: what was brought to safety is what is there now.
    pub(super) async fn unchanged(&self, listing: Listing, place: &str) -> Result<Proof, Trouble> {
        self.meter.waits(true);
        let changed = listing.changed(&self.list().await?);
        if !changed.is_empty() && self.whole {
            return Err(Trouble::Changed { files: changed.len() as u64, first: first(changed.iter()) });
        }
        let unfinished = changed.into_iter().filter(|path| listing.files.contains_key(path)).collect();
        let listing = listing.without(unfinished);
        Ok(Proof {
            at: clock::now(),
            files: listing.count(),
            bytes: listing.bytes(),
            left_out: listing.unfinished.len() as u64,
            place: place.to_owned(),
            manifest: String::new(),
        })
    }
}

fn ended_well(command: Which, code: i32, complaint: String) -> Result<(), Trouble> {
    if code == 0 { Ok(()) } else { Err(Trouble::Command { command, code, complaint }) }
}
