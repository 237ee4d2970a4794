//! Instances are asked on behalf of leases: a few lines over the person's own `ssh`, and what comes back.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};

use super::Outbox;
use super::streams::{Spoken, Ssh, Streams, last_line, why_ended};
use crate::app::Event;
use crate::app::event::WorldEvent;
use crate::rules::lease::{Ask, LeaseId, Told};
use crate::rules::streams::{Target, Trouble};

/// The longest that one question may take, the connection to the instance included.
const LONGEST: Duration = Duration::from_secs(60);
/// More of an answer is not read.
const ANSWER_BYTES: u64 = 64 * 1024;

/// Who asks.
#[derive(Clone)]
pub struct Jobs {
    ssh: Ssh,
    outbox: Outbox,
}

impl Jobs {
    /// By the same `ssh` as streams.
    pub fn new(streams: &Streams, outbox: Outbox) -> Self {
        Jobs { ssh: streams.ssh(), outbox }
    }

    /// Asks an instance; the answer comes as an event.
    pub fn look(&self, lease: LeaseId, target: Target, ask: Ask) {
        let jobs = self.clone();
        tokio::spawn(async move {
            let told = tokio::time::timeout(LONGEST, jobs.ask(&target, &ask)).await;
            let told = told.unwrap_or(Told::Lost(Trouble::NoAnswer));
            tracing::debug!(alias = target.alias, ?told, "asked for a lease");
            jobs.outbox.put(Event::World(WorldEvent::Job { lease, told }));
        });
    }

    async fn ask(&self, target: &Target, ask: &Ask) -> Told {
        let remote = format!("exec sh -c {}", shell_words::quote(&ask.script()));
        let Some(mut command) = self.ssh.unattended(target, &remote) else { return Told::Lost(Trouble::NoProgram) };
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Told::Lost(Trouble::NoProgram),
            Err(error) => return Told::Lost(Trouble::Said(providers::text::clean(&error.to_string()))),
        };
        let (Some(output), Some(errors)) = (child.stdout.take(), child.stderr.take()) else {
            return Told::Lost(Trouble::Ended);
        };
        let (output, errors) = tokio::join!(all(output), all(errors));
        let code = child.wait().await.ok().and_then(|status| status.code());
        match ask.read(&output, &last_line(&errors).unwrap_or_default()) {
            // It never came to an answer: what `ssh` said tells why.
            Told::Lost(Trouble::Garbled) => {
                let greeting = output.lines().next();
                let spoken = Spoken { looks: false, came_to_its_end: false, greeting };
                Told::Lost(why_ended(code, &spoken, &errors, &target.alias))
            }
            told => told,
        }
    }
}

/// All that comes, as text, up to a bound. What comes beyond it is read and forgotten, so that nobody waits.
async fn all(mut from: impl AsyncRead + Unpin) -> String {
    let mut bytes = Vec::new();
    // What broke off is no answer, and is read as such.
    drop((&mut from).take(ANSWER_BYTES).read_to_end(&mut bytes).await);
    drop(tokio::io::copy(&mut from, &mut tokio::io::sink()).await);
    String::from_utf8_lossy(&bytes).into_owned()
}
