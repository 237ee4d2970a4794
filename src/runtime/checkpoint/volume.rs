//! Paths on storage that outlives the machine: where they lie is looked at, and everything is brought to the disk.

use providers::text::excerpt;

use super::Work;
use super::remote::Kind;
use crate::rules::checkpoint::listing::Listing;
use crate::rules::checkpoint::mounts::Mounts;
use crate::rules::checkpoint::{Proof, Trouble, script};

const LINE: u64 = 64 << 10;
const MOUNTS: u64 = 4 << 20;
/// What the proof calls the place.
const PLACE: &str = "volume";

impl Work {
    /// Every path lies on another storage than the machine's own, and all that was written is on it.
    pub(super) async fn on_volume(&self) -> Result<(), Trouble> {
        let asked = self.asked()?;
        self.meter.waits(true);
        let script = script::mounts(&asked);
        let ended = self.remote.run(&script, Vec::new(), Kind::Lines, |output| {
            let mut mounts = Mounts::default();
            output.lines(LINE, MOUNTS, |line| {
                mounts.line(&String::from_utf8_lossy(line));
                Ok(())
            })?;
            Ok(mounts)
        });
        let ended = ended.await?;
        self.meter.waits(false);
        let complaint = ended.complaint();
        let on_root = (0..self.recipe.paths.len()).find(|index| !ended.value.outlives(*index));
        match on_root.and_then(|index| self.recipe.paths.get(index)) {
            Some(path) => Err(Trouble::NotOnVolume { path: excerpt(path, 200) }),
            None if ended.code != 0 || !ended.value.synced => Err(Trouble::Garbled(complaint)),
            None => Ok(()),
        }
    }

    /// It still lies there, and is what it was.
    pub(super) async fn still_on_volume(&self, listing: Listing) -> Result<Proof, Trouble> {
        self.on_volume().await?;
        self.unchanged(listing, PLACE).await
    }
}
