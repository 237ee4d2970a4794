//! Machines that no API lists, reached over the person's own `ssh`: a colleague's box, or what a provider's
//! interface leaves out, such as the ordinary containers of AutoDL.
//!
//! - **Rows** are the machines of the config: nothing is discovered. The id of a machine is its name there.
//! - **Running** is what was heard over its link within two minutes. Nothing here opens a link: see [`Shell`].
//! - **Stopped** is a machine that accepted our own stop command and answers no more since. Silence alone stops
//!   nothing: a machine that does not answer is unreachable, and may be charged.
//! - **Stop** runs the command of the config on the machine. That the command ended well, or that the connection
//!   was cut while it ran, is a promise, which the silence afterwards proves. There is no start and no release.
//! - **Not told**: balance, records of what was charged, creation times.
//! - AutoDL releases an ordinary container that was off for 15 days in a row, its data with it, and tells no
//!   countdown (<https://www.autodl.com/docs/price/> and its console, read 2026-11): `release_after_off`.

mod shell;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

use crate::error::{ErrorKind, ProviderError, RequestLine};
use crate::gpu::Gpus;
use crate::model::*;
use crate::money::Rate;
use crate::provider::*;

pub use shell::{End, Link, OwnStop, Ran, Shell};

/// What the config calls it.
pub const NAME: &str = "ssh";

/// Machines without a provider in the registry.
pub static ENTRY: Entry = Entry {
    name: NAME,
    title: "SSH",
    capabilities: Capabilities {
        stop: true,
        start: false,
        restart: false,
        release: false,
        storage: false,
        balance: false,
        telemetry: true,
        billed_history: None,
        spot: false,
    },
    key_env: &[],
    key_page: "",
    money_page: None,
    facts: include_str!("facts.toml"),
    connect: |access| Ok(Arc::new(Ssh::new(access)?)),
};

/// So long after it was last heard a machine counts as running: a connection that breaks is made anew meanwhile.
const HEARD_WITHIN: SignedDuration = SignedDuration::from_mins(2);
/// So long a machine may take to go down once it accepted a stop. One that still answers then was not stopped.
const GOES_DOWN_WITHIN: SignedDuration = SignedDuration::from_mins(10);
/// A session that was open may tell something so long after nobody new is let in.
const LINGERS: SignedDuration = SignedDuration::from_secs(30);
/// A command that does nothing, to see whether anybody answers.
const KNOCK: &str = "true";

/// A machine, as the config describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Unique within its account.
    pub name: String,
    pub endpoint: SshEndpoint,
    /// What an hour costs; `None` when nobody said.
    pub running: Option<Rate>,
    /// What an hour costs while it is off; `None` when nobody said.
    pub stopped: Option<Rate>,
    pub gpus: Option<Gpus>,
    /// The command that stops it; without one it cannot be stopped from here.
    pub stop: Option<String>,
    /// Its provider releases it when it was off for so long.
    pub release_after_off: Option<SignedDuration>,
    pub labels: BTreeMap<String, String>,
}

impl Machine {
    fn id(&self) -> ResourceId {
        ResourceId::new(&self.name)
    }
}

/// What is known of a machine's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    On,
    GoingDown,
    Off {
        since: Timestamp,
    },
    Unreachable,
    /// Nobody has tried to reach it yet.
    Untold,
}

struct Ssh {
    account: AccountName,
    provider: ProviderName,
    machines: Vec<Machine>,
    shell: Arc<dyn Shell>,
}

impl Ssh {
    fn new(access: &Access) -> Result<Self, ProviderError> {
        let (account, provider) = (access.account.clone(), access.provider.clone());
        let Some(shell) = access.shell.clone() else {
            return Err(ProviderError {
                provider,
                account,
                request: RequestLine("set-up".to_owned()),
                kind: ErrorKind::Unusable { message: "no ssh can be run here".to_owned() },
            });
        };
        Ok(Ssh { account, provider, machines: access.machines.clone(), shell })
    }

    fn machine(&self, id: &ResourceId) -> Option<&Machine> {
        self.machines.iter().find(|machine| machine.name == id.as_str())
    }

    fn error(&self, request: &str, machine: &Machine, kind: ErrorKind) -> ProviderError {
        let request = RequestLine(format!("{request} {}", machine.name));
        ProviderError { provider: self.provider.clone(), account: self.account.clone(), request, kind }
    }

    /// A machine's state by its link, and what follows for the memory of our own stop.
    async fn state(&self, machine: &Machine, now: Timestamp) -> State {
        let id = machine.id();
        let link = self.shell.link(&self.account, &id);
        let stop = self.shell.own_stop(&self.account, &id).await;
        let (state, remembered) = state(link, stop, now);
        if remembered != stop {
            self.shell.note_own_stop(&self.account, &id, remembered).await;
        }
        // A process that keeps no links still sees its own stop to its end.
        let unproven = remembered.is_some_and(|stop| stop.off_since.is_none());
        if unproven && link.is_none() {
            return match self.knock(machine).await {
                Ran::NotBegun { silent: true, .. } => {
                    let off = remembered.map(|stop| OwnStop { off_since: Some(now), ..stop });
                    self.shell.note_own_stop(&self.account, &id, off).await;
                    State::Off { since: now }
                }
                _ => state,
            };
        }
        state
    }

    async fn knock(&self, machine: &Machine) -> Ran {
        self.shell.run(&self.account, &machine.id(), &machine.endpoint, KNOCK).await
    }
}

/// A machine's state, and what of our own stop is to be remembered.
fn state(link: Option<Link>, stop: Option<OwnStop>, now: Timestamp) -> (State, Option<OwnStop>) {
    let heard = link.and_then(|link| link.heard);
    let end = link.and_then(|link| link.end);
    let by_link = match link {
        None => State::Untold,
        Some(_) if heard.is_some_and(|heard| now.duration_since(heard) < HEARD_WITHIN) => State::On,
        Some(_) => State::Unreachable,
    };
    let Some(stop) = stop else { return (by_link, None) };
    let heard_after = |at: Timestamp, time: SignedDuration| heard.is_some_and(|heard| heard.duration_since(at) > time);
    match stop.off_since {
        // Somebody started it again.
        Some(off) if heard_after(off, LINGERS) => (by_link, None),
        // Somebody answers there, who lets us not in: perhaps it, and perhaps whoever has its address now.
        Some(off) if end.is_some_and(|end| !end.silent && end.at > off) => (State::Unreachable, Some(stop)),
        Some(off) => (State::Off { since: off }, Some(stop)),
        None => match end {
            Some(end) if end.silent && end.at > stop.accepted => {
                (State::Off { since: end.at }, Some(OwnStop { off_since: Some(end.at), ..stop }))
            }
            // It answers as if nothing had been.
            _ if heard_after(stop.accepted, GOES_DOWN_WITHIN) => (by_link, None),
            _ if now.duration_since(stop.accepted) < GOES_DOWN_WITHIN => (State::GoingDown, Some(stop)),
            _ => (by_link, Some(stop)),
        },
    }
}

#[async_trait]
impl Provider for Ssh {
    async fn poll(&self, ask: Ask, now: Timestamp) -> Poll {
        let (mut told, mut untold) = (Vec::new(), Vec::new());
        for machine in &self.machines {
            match self.state(machine, now).await {
                State::Untold => untold.push(instance(machine, State::Untold)),
                state => told.push(instance(machine, state)),
            }
        }
        let instances =
            if untold.is_empty() { Part::complete(told) } else { Part::Pieces { rows: told, unheard: untold } };
        let storage = if ask.storage { Part::complete(Vec::new()) } else { Part::NotAsked };
        let (balance, tenant) =
            if ask.money { (Reading::NotTold, Reading::NotTold) } else { (Reading::NotAsked, Reading::NotAsked) };
        Poll { instances, storage, balance, tenant, server_time: None }
    }

    async fn lookup(&self, kind: ResourceKind, id: &ResourceId, now: Timestamp) -> Result<Found, ProviderError> {
        // The config says what there is.
        let Some(machine) = self.machine(id).filter(|_| kind == ResourceKind::Instance) else {
            return Ok(Found::NoSuchId);
        };
        let state = match self.state(machine, now).await {
            state @ (State::On | State::GoingDown | State::Off { .. }) => state,
            State::Unreachable | State::Untold => match self.knock(machine).await {
                Ran::NotBegun { message, .. } => {
                    return Err(self.error("ssh", machine, ErrorKind::Connect { message }));
                }
                Ran::TooLong { after } => return Err(self.error("ssh", machine, ErrorKind::Timeout { after })),
                Ran::Ended { .. } | Ran::Cut => State::On,
            },
        };
        Ok(Found::Instance(Box::new(instance(machine, state))))
    }

    async fn act(&self, action: Action, id: &ResourceId) -> Result<Accepted, ProviderError> {
        let unusable = |message: String| ProviderError {
            provider: self.provider.clone(),
            account: self.account.clone(),
            request: RequestLine(format!("{} {id}", action.word())),
            kind: ErrorKind::Unusable { message },
        };
        let machine = self.machine(id).ok_or_else(|| unusable("the config has no such machine".to_owned()))?;
        let command = match (action, &machine.stop) {
            (Action::Stop, Some(command)) => command,
            (Action::Stop, None) => return Err(unusable("the config names no `stop` command".to_owned())),
            _ => return Err(unusable(format!("a machine without an API cannot be told to {}", action.word()))),
        };
        let failed = |kind| Err(self.error("stop", machine, kind));
        match self.shell.run(&self.account, id, &machine.endpoint, command).await {
            // What cuts the connection is mostly the stop itself.
            Ran::Ended { code: 0, .. } | Ran::Cut => {
                let stop = OwnStop { accepted: Timestamp::now(), off_since: None };
                self.shell.note_own_stop(&self.account, id, Some(stop)).await;
                Ok(Accepted::Done)
            }
            Ran::Ended { code, complaint } => {
                let said = if complaint.is_empty() { String::new() } else { format!(": {complaint}") };
                let message = format!("the stop command ended with code {code}{said}");
                failed(ErrorKind::Refused { status: 0, code: Some(code.to_string()), message, retry_after: None })
            }
            Ran::TooLong { after } => failed(ErrorKind::Timeout { after }),
            Ran::NotBegun { message, .. } => failed(ErrorKind::Connect { message }),
        }
    }

    async fn billed(&self, _from: Timestamp, _to: Timestamp) -> Result<Vec<BilledLine>, ProviderError> {
        Ok(Vec::new())
    }
}

fn instance(machine: &Machine, state: State) -> Instance {
    let (phase, off_since) = match state {
        State::On => (Phase::Running, None),
        State::GoingDown => (Phase::Stopping, None),
        State::Off { since } => (Phase::Stopped, Some(since)),
        State::Unreachable => (Phase::Unreachable, None),
        State::Untold => (Phase::Unknown, None),
    };
    Instance {
        id: machine.id(),
        name: Some(machine.name.clone()),
        phase,
        provider_phase: None,
        note: None,
        remarks: vec![Remark::NoApi],
        market: Market::OnDemand,
        gpus: machine.gpus.clone(),
        rates: rates(machine, state),
        created_at: None,
        started_at: None,
        stopped_at: off_since,
        granularity: Granularity::Exact,
        repricing: None,
        ends_at: off_since.zip(machine.release_after_off).and_then(|(off, after)| off.checked_add(after).ok()),
        at_zero: Fate::Unknown,
        usage: None,
        ssh: Some(machine.endpoint.clone()),
        region: None,
        labels: machine.labels.clone(),
        mounts: Vec::new(),
        offers: offers(machine, phase),
        page: None,
    }
}

fn rates(machine: &Machine, state: State) -> Rates {
    let known = |component, rate: Option<Rate>| match rate {
        Some(rate) => Rates::known().with(component, rate),
        None => Rates::unknown(),
    };
    match state {
        State::On | State::GoingDown => known(Component::Compute, machine.running),
        State::Off { .. } => known(Component::Disk, machine.stopped),
        State::Unreachable | State::Untold => known(Component::Compute, machine.running).doubtful(),
    }
}

/// A stop is offered wherever the machine may be running: it is looked at before the command is sent.
fn offers(machine: &Machine, phase: Phase) -> Offers {
    let by_hand = || Offer::No(Refusal::NoApi);
    let stop = match (&machine.stop, phase) {
        (None, _) => by_hand(),
        (Some(_), Phase::Running | Phase::Unreachable | Phase::Unknown) => Offer::Yes(Effect {
            rates_after: rates(machine, State::Off { since: Timestamp::UNIX_EPOCH }),
            // Who rents it out decides who gets the card next, and at which address it comes back.
            risks: vec![Risk::GpuMayBeTaken, Risk::AddressChanges],
            ..Effect::default()
        }),
        (Some(_), _) => Offer::No(Refusal::WrongPhase),
    };
    Offers { stop, start: by_hand(), restart: by_hand(), release: by_hand() }
}
