//! Checkpoints performed: one stage at a time, over the person's own `ssh`, and each says how it went.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::AbortHandle;

use super::Outbox;
use super::keeper::OnDisk;
use super::streams::{Ssh, Streams};
use crate::app::Event;
use crate::app::event::WorldEvent;
use crate::rules::checkpoint::{Job, Told, Trouble};
use crate::rules::saga::OpId;

/// All stages that are under way, one an action.
#[derive(Clone)]
pub struct Copies {
    under_way: Arc<Mutex<BTreeMap<OpId, AbortHandle>>>,
    ssh: Ssh,
    outbox: Outbox,
}

impl Copies {
    pub fn new(streams: &Streams, outbox: Outbox) -> Self {
        Copies { under_way: Arc::default(), ssh: streams.ssh(), outbox }
    }

    /// What is to be done once the step is on disk: the stage.
    pub(super) fn once_on_disk(&self, job: Job) -> OnDisk {
        let copies = self.clone();
        let runtime = tokio::runtime::Handle::current();
        Box::new(move || copies.start(job, &runtime))
    }

    /// Ends what is done for an action.
    pub fn stop(&self, op: OpId) {
        self.lock().remove(&op).iter().for_each(AbortHandle::abort);
    }

    fn start(&self, job: Job, runtime: &tokio::runtime::Handle) {
        let (op, number, outbox) = (job.op, job.number, self.outbox.clone());
        let ssh = self.ssh.clone();
        let task = runtime.spawn(async move {
            let told = perform(&ssh, job).await.unwrap_or_else(Told::Failed);
            outbox.put(Event::World(WorldEvent::Saving { op, number, told }));
        });
        self.lock().insert(op, task.abort_handle()).iter().for_each(AbortHandle::abort);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<OpId, AbortHandle>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn perform(_ssh: &Ssh, _job: Job) -> Result<Told, Trouble> {
    Err(Trouble::Garbled("not built yet".to_owned()))
}
