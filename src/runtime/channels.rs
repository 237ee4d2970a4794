//! Channels beyond the screen: a parcel of messages is written down as begun, then sent, and how that went comes back
//! as an event. Nothing of a channel is started or read before it has something to tell.

mod command;
mod desktop;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::tz::TimeZone;
use providers::channels::{Hook, Text, Undelivered};
use providers::money::Currency;
use providers::text::clean;
use tokio::sync::OnceCell;

use super::keeper::Keeper;
use super::{Outbox, clock};
use crate::app::Event;
use crate::app::event::{ViewEvent, WorldEvent};
use crate::config::{ChannelConfig, ChannelKind, Config, Language, process_environment};
use crate::rules::dispatch::{Delivery, Message, Parcel};
use crate::ui::text::channel_text;

/// All channels of the config. Copies are of the same.
#[derive(Clone)]
pub struct Channels(Arc<Ways>);

struct Ways {
    outbox: Outbox,
    by_name: BTreeMap<String, Way>,
    /// The person's own.
    language: Language,
    currency: Currency,
    zone: TimeZone,
    /// There is a screen, whose terminal can tell what the desktop does not.
    screen: bool,
}

/// How a channel is reached.
struct Way {
    config: ChannelConfig,
    /// Of a service, made when it is first written to.
    hook: OnceCell<Hook>,
}

/// What became of a text.
enum Told {
    Now(Delivery),
    /// The screen's terminal is to tell it.
    ByTerminal,
}

impl Channels {
    /// The channels of a config, in the language and the zone of the person.
    pub fn new(config: &Config, language: Language, screen: bool, outbox: Outbox) -> Self {
        let way =
            |config: &ChannelConfig| (config.rule.name.clone(), Way { config: config.clone(), hook: OnceCell::new() });
        Channels(Arc::new(Ways {
            outbox,
            by_name: config.channels.iter().map(way).collect(),
            language,
            currency: config.currency,
            zone: config.timezone.clone(),
            screen,
        }))
    }

    /// Sends a parcel once it is written down that this was begun. Its answer comes in any case, as an event.
    pub fn send(&self, parcel: Parcel, keeper: &Keeper) {
        let Parcel { channel, messages } = parcel;
        let (ways, runtime) = (self.clone(), tokio::runtime::Handle::current());
        let begun = messages.clone();
        let then = move |written: Result<(), String>| match written {
            Ok(()) => drop(runtime.spawn(async move {
                let text = ways.text(&channel, &messages);
                match ways.tell(&channel, &text).await {
                    Told::Now(delivery) => ways.answer(channel, delivery),
                    Told::ByTerminal => {
                        let text = desktop::one_line(&text);
                        ways.0.outbox.put(Event::View(ViewEvent::TellTerminal { channel, text }));
                    }
                }
            })),
            // Sent without a word in the ledger, it might be sent again and again.
            Err(error) => ways.answer(channel, later(format!("it could not be written down: {error}"))),
        };
        keeper.sending(begun, Box::new(then));
    }

    /// Tells a channel at once, beside every queue. Whoever asks has no screen.
    pub async fn try_out(&self, channel: &str, message: Message) -> Delivery {
        let text = self.text(channel, &[message]);
        match self.tell(channel, &text).await {
            Told::Now(delivery) => delivery,
            Told::ByTerminal => later("no screen is open".to_owned()),
        }
    }

    fn text(&self, channel: &str, messages: &[Message]) -> Text {
        let language = self.0.by_name.get(channel).and_then(|way| way.config.language).unwrap_or(self.0.language);
        channel_text(messages, language, self.0.currency, &self.0.zone)
    }

    fn answer(&self, channel: String, delivery: Delivery) {
        match &delivery {
            Delivery::Delivered => tracing::info!(channel, "told"),
            Delivery::Later { why, .. } => tracing::warn!(channel, why, "not told yet"),
            Delivery::Refused { why } => tracing::warn!(channel, why, "refused"),
            Delivery::TooLong { why } => tracing::warn!(channel, why, "too long"),
        }
        self.0.outbox.put(Event::World(WorldEvent::Sent { channel, delivery }));
    }

    async fn tell(&self, channel: &str, text: &Text) -> Told {
        let Some(way) = self.0.by_name.get(channel) else {
            return Told::Now(later("it is not in the config".to_owned()));
        };
        match way.config.kind {
            ChannelKind::Hook(_) => Told::Now(way.post(text).await),
            ChannelKind::Command => Told::Now(command::tell(&way.config.argv, &text.record).await),
            ChannelKind::Desktop => match desktop::tell(text).await {
                Err(_) if self.0.screen => Told::ByTerminal,
                Err(undelivered) => Told::Now(undelivered),
                Ok(()) => Told::Now(Delivery::Delivered),
            },
        }
    }
}

impl Way {
    async fn post(&self, text: &Text) -> Delivery {
        match self.hook.get_or_try_init(async || self.hook()).await {
            Ok(hook) => match hook.send(text, clock::now()).await {
                Ok(()) => Delivery::Delivered,
                Err(Undelivered::Refused { why }) => Delivery::Refused { why },
                Err(Undelivered::TooLong { why }) => Delivery::TooLong { why },
                Err(Undelivered::Later { wait, why, perhaps }) => {
                    Delivery::Later { wait: wait.and_then(|wait| wait.try_into().ok()), why, perhaps }
                }
            },
            // The config is right: what is missing may be there at the next start.
            Err(why) => later(clean(&why)),
        }
    }

    fn hook(&self) -> Result<Hook, String> {
        let ChannelConfig { kind, address, secret, to, .. } = &self.config;
        let (ChannelKind::Hook(service), Some(address)) = (kind, address) else {
            return Err("it has no address".to_owned());
        };
        let read = |source: &crate::config::SecretSource| source.read(&process_environment);
        Hook::new(*service, read(address)?, secret.as_ref().map(read).transpose()?, to.clone())
    }
}

fn later(why: String) -> Delivery {
    Delivery::Later { wait: None, why, perhaps: false }
}
