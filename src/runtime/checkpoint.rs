//! Checkpoints performed: one stage at a time, over the person's own `ssh`, and each says how it went.

mod check;
mod command;
mod copy;
mod meter;
mod proposals;
mod remote;
mod rsync;
mod store;
mod survey;
mod thinning;
mod verify;
mod volume;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::task::AbortHandle;

pub use self::check::{Checked, check};
use self::meter::Meter;
use self::remote::Remote;
use self::store::Store;
pub use self::thinning::{look_for, thin};
use super::Outbox;
use super::awake::Awake;
use super::keeper::OnDisk;
use super::streams::{HostKeys, KNOWN_HOSTS, Ssh, Streams};
use crate::app::Event;
use crate::app::event::WorldEvent;
use crate::rules::checkpoint::listing::Listing;
use crate::rules::checkpoint::{Job, Method, Progress, Recipe, Stage, Told, Trouble, Which};
use crate::rules::saga::OpId;
use crate::rules::streams;

/// All stages that are under way, one an action.
#[derive(Clone)]
pub struct Copies {
    under_way: Arc<Mutex<UnderWay>>,
    /// What one stage found, for the next. Where it is not there it is found anew.
    found: Arc<Mutex<BTreeMap<OpId, Listing>>>,
    awake: Arc<Mutex<Weak<Awake>>>,
    ssh: Ssh,
    host_keys: HostKeys,
    outbox: Outbox,
}

impl Copies {
    pub fn new(streams: &Streams, outbox: Outbox) -> Self {
        Copies {
            under_way: Arc::default(),
            found: Arc::default(),
            awake: Arc::default(),
            ssh: streams.ssh(),
            host_keys: streams.host_keys(),
            outbox,
        }
    }

    /// What is to be done once the step is on disk: the stage.
    pub(super) fn once_on_disk(&self, job: Job) -> OnDisk {
        let copies = self.clone();
        let runtime = tokio::runtime::Handle::current();
        Box::new(move || copies.start(job, &runtime))
    }

    /// Ends the stage of this number of an action. One that is still on its way to the disk is not begun any more.
    pub fn stop(&self, op: OpId, number: u64) {
        let mut under_way = self.lock();
        under_way.given_up.insert(op, number);
        under_way.tasks.remove(&op).iter().for_each(AbortHandle::abort);
    }

    /// Begins a stage, in place of the one that is under way for the same action.
    pub fn start(&self, job: Job, runtime: &tokio::runtime::Handle) {
        let op = job.op;
        let copies = self.clone();
        let mut under_way = self.lock();
        if under_way.given_up.get(&op).is_some_and(|number| job.number <= *number) {
            return;
        }
        let task = runtime.spawn(async move { copies.tell_of(job).await });
        under_way.tasks.retain(|_, task| !task.is_finished());
        under_way.tasks.insert(op, task.abort_handle()).iter().for_each(AbortHandle::abort);
    }

    async fn tell_of(&self, job: Job) {
        let (op, number) = (job.op, job.number);
        let tell = |told| self.outbox.put(Event::World(WorldEvent::Saving { op, number, told }));
        let _awake = self.stay_awake();
        let stage = job.stage;
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner).remove(&op);
        let work = Work {
            remote: Remote { ssh: self.ssh.clone(), target: job.target },
            recipe: job.recipe,
            folder: job.folder,
            whole: job.whole,
            meter: Meter::default(),
        };
        let performing = async {
            self.host_keys.prepare(None).await.map_err(|error| {
                let why = format!("{KNOWN_HOSTS}: {error}");
                Trouble::Link(streams::Trouble::Said(providers::text::excerpt(&why, 200)))
            })?;
            work.perform(stage, found).await
        };
        let performed = work.meter.tell_while(performing, |progress| tell(Told::Sign(progress))).await;
        tracing::debug!(?op, ?stage, ok = performed.is_ok(), "a stage of a checkpoint");
        let told = performed.map(|(told, found)| {
            if let Some(found) = found {
                self.found.lock().unwrap_or_else(PoisonError::into_inner).insert(op, found);
            }
            told
        });
        tell(told.unwrap_or_else(Told::Failed));
    }

    /// As long as any stage is under way.
    fn stay_awake(&self) -> Arc<Awake> {
        let mut awake = self.awake.lock().unwrap_or_else(PoisonError::into_inner);
        awake.upgrade().unwrap_or_else(|| {
            let new = Arc::new(Awake::new());
            *awake = Arc::downgrade(&new);
            new
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, UnderWay> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
struct UnderWay {
    tasks: BTreeMap<OpId, AbortHandle>,
    /// The last stage of an action that nobody wants any more.
    given_up: BTreeMap<OpId, u64>,
}

/// One stage, and what it takes to do it.
struct Work {
    remote: Remote,
    recipe: Recipe,
    folder: String,
    whole: bool,
    meter: Meter,
}

impl Work {
    /// Does a stage. With what it says comes what the next one needs to know.
    async fn perform(&self, stage: Stage, found: Option<Listing>) -> Result<(Told, Option<Listing>), Trouble> {
        if stage == Stage::Prepare
            && let Some(line) = &self.recipe.prepare
        {
            self.own_command(Which::Prepare, line).await?;
        }
        // After a restart nobody knows any more what was found.
        let listing = match found.filter(|_| stage != Stage::Prepare) {
            Some(listing) => listing,
            None => self.survey().await?,
        };
        // A copy of nothing proves nothing: the results are somewhere else.
        if listing.count() == 0 {
            return Err(match listing.unfinished.first() {
                Some(path) => Trouble::NotQuiet { files: listing.unfinished.len() as u64, first: path.to_string() },
                None => Trouble::Nothing,
            });
        }
        let progress = Progress { files: listing.count(), bytes: listing.bytes(), done: 0, rate: None };
        let done = |listing: Listing| {
            let progress = Progress { done: progress.bytes, ..progress };
            Ok((Told::Done(progress), Some(listing)))
        };
        match (stage, &self.recipe.method) {
            (Stage::Prepare, _) => Ok((Told::Done(progress), Some(listing))),
            (Stage::Copy, Method::Copy { to }) => {
                let store = self.store(to).await?;
                self.copy(store, Arc::new(listing.clone())).await?;
                done(listing)
            }
            (Stage::Copy, Method::Command { run, .. }) => {
                self.own_command(Which::Run, run).await?;
                done(listing)
            }
            (Stage::Copy, Method::Volume) => {
                self.on_volume().await?;
                done(listing)
            }
            (Stage::Verify, Method::Copy { to }) => {
                let store = self.store(to).await?;
                Ok((Told::Verified(self.compare(store, listing).await?), None))
            }
            (Stage::Verify, Method::Command { proof, .. }) => {
                Ok((Told::Verified(self.proven(proof, listing).await?), None))
            }
            (Stage::Verify, Method::Volume) => Ok((Told::Verified(self.still_on_volume(listing).await?), None)),
        }
    }

    async fn store(&self, to: &str) -> Result<Arc<Store>, Trouble> {
        let (to, folder) = (to.to_owned(), self.folder.clone());
        blocking(move || Store::open(&to, &folder)).await.map(Arc::new)
    }
}

/// What waits for the disk, on a thread of its own.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Trouble> + Send + 'static) -> Result<T, Trouble> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Trouble::Local(error.to_string()))?
}
