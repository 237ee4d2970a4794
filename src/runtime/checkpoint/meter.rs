//! How far a stage is, counted by whoever works on it, on whatever thread, and told once a second.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::time::MissedTickBehavior;

use crate::rules::checkpoint::{Progress, Trouble};

const PACE: Duration = Duration::from_secs(1);
/// The rate is that of the last so many signs.
const LATE: usize = 10;
/// What is done by somebody else shows no bytes: every so many signs it is told that it goes on.
const WAITING: u64 = 5;

/// The count. Copies are of the same.
#[derive(Clone, Debug, Default)]
pub struct Meter(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    files: AtomicU64,
    bytes: AtomicU64,
    done: AtomicU64,
    waits: AtomicBool,
    stopped: AtomicBool,
    late: Mutex<VecDeque<(Instant, u64)>>,
}

impl Meter {
    /// What there is to do.
    pub fn expect(&self, files: u64, bytes: u64) {
        self.0.files.store(files, Ordering::Relaxed);
        self.0.bytes.store(bytes, Ordering::Relaxed);
    }

    pub fn add(&self, bytes: u64) -> &Self {
        self.0.done.fetch_add(bytes, Ordering::Relaxed);
        self
    }

    /// What is still to do.
    pub fn left(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed).saturating_sub(self.0.done.load(Ordering::Relaxed))
    }

    /// Somebody else works on it, and shows nothing as long as the link lives.
    pub fn waits(&self, waits: bool) {
        self.0.waits.store(waits, Ordering::Relaxed);
    }

    /// Fails once nobody wants it any more.
    pub fn check(&self) -> Result<(), Trouble> {
        if self.0.stopped.load(Ordering::Relaxed) { Err(Trouble::Stalled) } else { Ok(()) }
    }

    /// As it stands, with the rate since it stood so before.
    pub fn progress(&self) -> Progress {
        let (now, done) = (Instant::now(), self.0.done.load(Ordering::Relaxed));
        let bytes = self.0.bytes.load(Ordering::Relaxed);
        let mut late = self.0.late.lock().unwrap_or_else(PoisonError::into_inner);
        let rate = late.front().and_then(|(at, before)| {
            let span = now.duration_since(*at).as_millis();
            let rate = u128::from(done.saturating_sub(*before)).saturating_mul(1000).checked_div(span)?;
            u64::try_from(rate).ok()
        });
        late.push_back((now, done));
        if late.len() > LATE {
            late.pop_front();
        }
        Progress { files: self.0.files.load(Ordering::Relaxed), bytes, done: done.min(bytes), rate }
    }

    /// Waits for the work, and tells meanwhile how far it is: whenever it moved. When this is dropped, whoever works
    /// on it on another thread is told to stop.
    pub async fn tell_while<T>(&self, work: impl Future<Output = T>, mut tell: impl FnMut(Progress)) -> T {
        let _stops = Stops(self.0.clone());
        let mut ticks = tokio::time::interval(PACE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut told, mut count) = (None, 0);
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                _ = ticks.tick() => {
                    count += 1;
                    let progress = self.progress();
                    let moved = told != Some((progress.done, progress.bytes));
                    if moved || (self.0.waits.load(Ordering::Relaxed) && count % WAITING == 0) {
                        told = Some((progress.done, progress.bytes));
                        tell(progress);
                    }
                }
            }
        }
    }
}

struct Stops(Arc<Counts>);

impl Drop for Stops {
    fn drop(&mut self) {
        self.0.stopped.store(true, Ordering::Relaxed);
    }
}
