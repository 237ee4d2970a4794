//! Effects performed: each is spawned or handed on, and its outcome comes back as an event.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use providers::error::{ErrorKind, ProviderError, RequestLine};
use providers::model::{AccountName, Identity};
use providers::provider::{Ask, Found, Part, Poll, Reading};

use super::accounts::Accounts;
use super::channels::Channels;
use super::checkpoint::{self, Copies};
use super::jobs::Jobs;
use super::keeper::{Keeper, OnDisk};
use super::streams::Streams;
use super::{Outbox, clock, preferences, proving};
use crate::app::effect::Then;
use crate::app::event::{ViewEvent, WorldEvent};
use crate::app::preferences::Preferences;
use crate::app::{Effect, Event};
use crate::rules::fleet::Trouble;
use crate::rules::saga::{OpId, Permit};

/// No poll may take longer, however many pages it has.
const LONGEST_POLL: Duration = Duration::from_secs(180);

const NOT_IN_CONFIG: &str = "the account is not in the config";

/// Performs world effects, and the view effects that need no terminal.
pub struct Performer {
    pub accounts: Accounts,
    pub keeper: Keeper,
    pub streams: Streams,
    pub channels: Channels,
    pub copies: Copies,
    pub jobs: Jobs,
    pub outbox: Outbox,
    /// Enforced here once more: keys are not the only way to an action.
    pub read_only: bool,
    /// Where this screen's set-up is kept; `None` when it is not.
    pub preferences: Option<PathBuf>,
}

impl Performer {
    /// Performs one effect. Gives back those that only the screen can perform.
    pub fn perform(&self, effect: Effect) -> Option<Effect> {
        match effect {
            Effect::Poll { account, ask, asked_at } => self.poll(account, ask, asked_at),
            Effect::Lookup { op, identity } => self.look_up(op, identity),
            Effect::Commit { entry, then } => {
                let then = then.map(|then| match then {
                    Then::Send(permit) => self.once_on_disk(permit),
                    Then::Save(job) => self.copies.once_on_disk(*job),
                });
                self.keeper.record(entry, then);
            }
            Effect::StopSaving { op, number } => self.copies.stop(op, number),
            Effect::Thin { identity, recipe, keep, zone } => {
                checkpoint::thin(self.keeper.shelf(), identity, recipe, keep, zone);
            }
            Effect::LookForCopies(last) => checkpoint::look_for(self.keeper.shelf(), self.outbox.clone(), last),
            Effect::Keep(keep) => self.keeper.keep(keep),
            Effect::Set { identity, setting } => self.keeper.set(identity, setting),
            Effect::SumUp { day, asked, budgets } => self.keeper.sum_up(day, asked, budgets),
            Effect::KeepAlerts { alerts, messages } => self.keeper.keep_alerts(alerts, messages),
            Effect::KeepWatches(watches) => self.keeper.keep_watches(watches),
            Effect::KeepVeto { identity, veto } => self.keeper.keep_veto(identity, veto),
            Effect::RecallVetoes { asked_at } => self.keeper.recall_vetoes(asked_at),
            Effect::Prove(trial) => {
                proving::prove(*trial, self.accounts.clone(), self.streams.ssh(), self.outbox.clone());
            }
            Effect::AskBalances(question) => self.keeper.ask_balances(question),
            Effect::RecallAlerts => self.keeper.recall_alerts(),
            Effect::KeepLease(lease) => self.keeper.keep_lease(lease),
            Effect::LookForJob { lease, target, ask } => self.jobs.look(lease, target, ask),
            Effect::Send(parcel) => self.channels.send(parcel, &self.keeper),
            Effect::AskBilled { account, from, to } => self.ask_billed(account, from, to),
            Effect::KeepBilled { account, from, to, lines } => self.keeper.keep_billed(account, from, to, lines),
            Effect::Assign(assignments) => self.keeper.assign(assignments),
            Effect::MarkWaste(markings) => self.keeper.mark_waste(markings),
            Effect::NoteUnwatched(accounts) => self.keeper.note_unwatched(accounts),
            Effect::LookForPaths { identity, target } => self.copies.look_for_paths(identity, target),
            Effect::MeasurePath { identity, target, path } => self.copies.measure_path(identity, target, path),
            Effect::AskSpend(question) => self.keeper.ask_spend(question),
            Effect::Rename { from, to } => self.keeper.rename(from, to),
            Effect::OpenStream { identity, number, target, pace, new_key } => {
                self.streams.open(identity, number, target, pace, new_key);
            }
            Effect::CloseStream { identity } => self.streams.close(&identity),
            Effect::KeepUsage(entries) => self.keeper.keep_usage(entries),
            Effect::RecallUsage { from, peaks } => self.keeper.recall_usage(from, peaks),
            Effect::Claim => self.keeper.claim(),
            Effect::Recall => self.keeper.recall(),
            Effect::SavePreferences(preferences) => self.save_preferences(preferences),
            Effect::OpenPage(url) => open_page(url, self.outbox.clone()),
            effect @ (Effect::AddOffered(_)
            | Effect::SaveBudget { .. }
            | Effect::Bell
            | Effect::Repaint
            | Effect::Suspend
            | Effect::Copy(_)
            | Effect::TellTerminal { .. }
            | Effect::EditConfig
            | Effect::Ssh(_)) => {
                return Some(effect);
            }
        }
        None
    }

    fn save_preferences(&self, preferences: Preferences) {
        let Some(file) = self.preferences.clone() else { return };
        tokio::task::spawn_blocking(move || {
            if let Err(error) = preferences::save(&file, &preferences) {
                tracing::warn!(%error, "the screen's set-up could not be kept");
            }
        });
    }

    fn poll(&self, name: AccountName, ask: Ask, asked_at: Timestamp) {
        let (accounts, outbox) = (self.accounts.clone(), self.outbox.clone());
        tokio::spawn(async move {
            let provider = match accounts.get(&name) {
                Some(slot) => slot.provider().await,
                // Told all the same: an answer that never comes would leave the account waiting for ever.
                None => Err(Trouble::Key(NOT_IN_CONFIG.to_owned())),
            };
            let event = match provider {
                Err(trouble) => WorldEvent::NotReady { account: name, trouble },
                Ok(provider) => {
                    let polled = tokio::time::timeout(LONGEST_POLL, provider.poll(ask, asked_at)).await;
                    let poll = polled.unwrap_or_else(|_| too_long(&name));
                    tracing::debug!(account = %name, ?ask, "polled");
                    WorldEvent::Polled { account: name, asked_at, poll: Box::new(poll) }
                }
            };
            outbox.put(Event::World(event));
        });
    }

    fn ask_billed(&self, name: AccountName, from: Timestamp, to: Timestamp) {
        let (accounts, outbox) = (self.accounts.clone(), self.outbox.clone());
        tokio::spawn(async move {
            let lines = match ready(&accounts, &name).await {
                Ok(provider) => provider.billed(from, to).await,
                Err(error) => Err(error),
            };
            outbox.put(Event::World(WorldEvent::Billed { account: name, from, to, lines }));
        });
    }

    fn look_up(&self, op: Option<OpId>, identity: Identity) {
        let (accounts, outbox) = (self.accounts.clone(), self.outbox.clone());
        tokio::spawn(async move {
            let found = match ready(&accounts, &identity.account).await {
                Ok(provider) => provider.lookup(identity.kind, &identity.id, clock::now()).await,
                Err(error) => Err(error),
            };
            let told = match &found {
                Ok(Found::NoSuchId) => "no such id",
                Ok(Found::CannotAsk) => "cannot be asked",
                Ok(_) => "found",
                Err(_) => "failed",
            };
            tracing::info!(%identity, told, "asked by id");
            outbox.put(Event::World(WorldEvent::LookedUp { op, identity, found }));
        });
    }

    /// What is to be done once the step is on disk: the request is sent.
    fn once_on_disk(&self, permit: Permit) -> OnDisk {
        let (accounts, outbox, read_only) = (self.accounts.clone(), self.outbox.clone(), self.read_only);
        let runtime = tokio::runtime::Handle::current();
        Box::new(move || {
            runtime.spawn(async move {
                let identity = permit.identity().clone();
                let locked = read_only || accounts.get(&identity.account).is_none_or(|slot| slot.read_only());
                let answer = match ready(&accounts, &identity.account).await {
                    Ok(_) if locked => Err(unusable(&identity.account, "read-only: nothing was sent")),
                    // It slept between the decision and here, for instance.
                    Ok(_) if !permit.counts(clock::now()) => {
                        Err(unusable(&identity.account, "too late: nothing was sent"))
                    }
                    Ok(provider) => provider.act(permit.action(), &identity.id).await,
                    Err(error) => Err(error),
                };
                match &answer {
                    Ok(accepted) => tracing::info!(%identity, action = permit.action().word(), ?accepted, "sent"),
                    Err(error) => tracing::warn!(%identity, action = permit.action().word(), %error, "sent"),
                }
                outbox.put(Event::World(WorldEvent::Acted { op: permit.op(), answer }));
            });
        })
    }
}

async fn ready(
    accounts: &Accounts,
    name: &AccountName,
) -> Result<std::sync::Arc<dyn providers::provider::Provider>, ProviderError> {
    let slot = accounts.get(name).ok_or_else(|| unusable(name, NOT_IN_CONFIG))?;
    slot.provider().await.map_err(|trouble| unusable(name, &trouble.line()))
}

fn unusable(account: &AccountName, message: &str) -> ProviderError {
    ProviderError {
        provider: "rentop".into(),
        account: account.clone(),
        request: RequestLine("set-up".to_owned()),
        kind: ErrorKind::Unusable { message: message.to_owned() },
    }
}

fn too_long(account: &AccountName) -> Poll {
    let error = ProviderError {
        provider: "rentop".into(),
        account: account.clone(),
        request: RequestLine("poll".to_owned()),
        kind: ErrorKind::Timeout { after: LONGEST_POLL },
    };
    Poll {
        instances: Part::Failed(error),
        storage: Part::NotAsked,
        balance: Reading::NotAsked,
        tenant: Reading::NotAsked,
        server_time: None,
    }
}

/// Opens a page in the browser, on a thread: some launchers wait for the browser.
fn open_page(url: String, outbox: Outbox) {
    std::thread::spawn(move || {
        if let Err(error) = webbrowser::open(&url) {
            let error = providers::text::clean(&error.to_string());
            outbox.put(Event::View(ViewEvent::PageNotOpened { url, error }));
        }
    });
}
