//! Copies on this machine: which are no longer where they were made, and which are deleted to make room.
//!
//! Only a folder of ours is ever deleted: below the folder of its method, reached through folders alone (no link), and
//! with our manifest in it.

use std::io;
use std::path::{Path, PathBuf};

use super::Outbox;
use super::keeper::{Keeper, OnDisk};
use crate::app::Event;
use crate::app::event::WorldEvent;
use crate::rules::checkpoint::{Method, Saved, place_of};
use crate::rules::saga::OpId;

/// Beside the files of each copy.
const MANIFEST: &str = "manifest.json";

/// Looks whether copies lie where they were made.
pub fn look(copies: Vec<Saved>, outbox: Outbox) {
    tokio::task::spawn_blocking(move || {
        let (mut gone, mut out_of_reach) = (Vec::new(), Vec::new());
        for copy in copies {
            match sight(&copy) {
                Sight::There => {}
                Sight::Gone => gone.push(copy.op),
                Sight::OutOfReach => out_of_reach.push(copy.op),
            }
        }
        if !(gone.is_empty() && out_of_reach.is_empty()) {
            tracing::warn!(?gone, ?out_of_reach, "copies are not where they were made");
            outbox.put(Event::World(WorldEvent::CopiesMissed { gone, out_of_reach }));
        }
    });
}

#[derive(Debug, PartialEq, Eq)]
enum Sight {
    There,
    Gone,
    /// Not even the folder of all copies is there, or nobody can tell.
    OutOfReach,
}

fn sight(copy: &Saved) -> Sight {
    let (Some(place), Method::Copy { to }) = (place_of(copy), &copy.recipe.method) else { return Sight::There };
    match place.join(MANIFEST).symlink_metadata() {
        Ok(_) => Sight::There,
        Err(error) if error.kind() == io::ErrorKind::NotFound && Path::new(to).is_dir() => Sight::Gone,
        Err(_) => Sight::OutOfReach,
    }
}

/// Deletes copies, each once it is written down that it is there no longer.
pub fn discard(copies: Vec<Saved>, keeper: &Keeper) {
    let runtime = tokio::runtime::Handle::current();
    for copy in copies {
        let runtime = runtime.clone();
        let op = copy.op;
        let then: OnDisk = Box::new(move || drop(runtime.spawn_blocking(move || delete_told(&copy))));
        keeper.thin(op, Some(then));
    }
}

fn delete_told(copy: &Saved) {
    let OpId(op) = copy.op;
    match delete(copy) {
        Ok(()) => tracing::info!(op, place = copy.proof.place, "a copy made room for later ones"),
        Err(error) => tracing::warn!(op, place = copy.proof.place, %error, "a copy could not be deleted"),
    }
}

fn delete(copy: &Saved) -> io::Result<()> {
    let refused = |why: &str| io::Error::other(why.to_owned());
    let (Some(place), Method::Copy { to }) = (place_of(copy), &copy.recipe.method) else {
        return Err(refused("it is not below the folder of its method"));
    };
    let to = Path::new(to);
    let below = place.strip_prefix(to).map_err(|_| refused("it is not below the folder of its method"))?;
    let mut reached = PathBuf::from(to);
    for part in below.components() {
        reached.push(part);
        if !reached.symlink_metadata()?.is_dir() {
            return Err(refused("the way to it leads over something that is no folder"));
        }
    }
    if !place.join(MANIFEST).symlink_metadata()?.is_file() {
        return Err(refused("it has no manifest of ours"));
    }
    // Links in it are deleted and not followed.
    std::fs::remove_dir_all(place)
}

#[cfg(test)]
#[path = "thinning_tests.rs"]
mod tests;
