//! A look at a machine for what may be worth a checkpoint.

use std::time::Duration;

use providers::model::Identity;
use tokio::time::timeout;

use super::Copies;
use super::remote::{Kind, Remote};
use crate::app::Event;
use crate::app::event::ViewEvent;
use crate::rules::checkpoint::Trouble;
use crate::rules::checkpoint::proposals::{self, Proposal, Size};
use crate::rules::streams::{self, Target};

/// So long a look may take, the connections to the machine included.
const LONGEST: Duration = Duration::from_secs(120);
/// A line of an answer, and a whole answer, in bytes.
const LINE: u64 = 16 << 10;
const ANSWER: u64 = 4 << 20;

impl Copies {
    /// Looks at a machine for what may be worth a checkpoint, and tells the screen.
    pub fn look_for_paths(&self, identity: Identity, target: Target) {
        let remote = Remote { ssh: self.ssh.clone(), target };
        let outbox = self.outbox.clone();
        tokio::spawn(async move {
            let found = timeout(LONGEST, look(&remote)).await.unwrap_or_else(|_| Err(too_long()));
            tracing::debug!(%identity, ok = found.is_ok(), "looked for paths");
            outbox.put(Event::View(ViewEvent::PathsFound { identity, found }));
        });
    }

    /// Measures a path on a machine, and tells the screen.
    pub fn measure_path(&self, identity: Identity, target: Target, path: String) {
        let remote = Remote { ssh: self.ssh.clone(), target };
        let outbox = self.outbox.clone();
        tokio::spawn(async move {
            let paths = [path];
            let sizes = timeout(LONGEST, measure(&remote, &paths)).await;
            // A size that cannot be had keeps nobody from taking the path in.
            let size = sizes.ok().and_then(Result::ok).and_then(|sizes| sizes.first().copied());
            let [path] = paths;
            let size = size.unwrap_or(Size::Unknown);
            outbox.put(Event::View(ViewEvent::PathMeasured { identity, path, size }));
        });
    }
}

fn too_long() -> Trouble {
    Trouble::Link(streams::Trouble::NoAnswer)
}

async fn look(remote: &Remote) -> Result<Vec<Proposal>, Trouble> {
    let answer = ask(remote, &proposals::look()).await?;
    let mut found = proposals::found(answer.lines());
    if !found.is_empty() {
        let paths: Vec<String> = found.iter().map(|proposal| proposal.path.clone()).collect();
        for (proposal, size) in found.iter_mut().zip(measure(remote, &paths).await?) {
            proposal.size = size;
        }
    }
    Ok(found)
}

async fn measure(remote: &Remote, paths: &[String]) -> Result<Vec<Size>, Trouble> {
    let answer = ask(remote, &proposals::measure(paths)).await?;
    Ok(proposals::sizes(answer.lines(), paths.len()))
}

/// What a script says, whatever its code: where something is not to be had, the rest is told all the same.
async fn ask(remote: &Remote, script: &str) -> Result<String, Trouble> {
    let ended = remote.run(script, Vec::new(), Kind::Lines, |output| {
        let mut answer = String::new();
        output.lines(LINE, ANSWER, |line| {
            answer.push_str(&String::from_utf8_lossy(line));
            answer.push('\n');
            Ok(())
        })?;
        Ok(answer)
    });
    Ok(ended.await?.value)
}
