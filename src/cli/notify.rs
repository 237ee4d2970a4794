//! `rentop notify`: which channels there are, and whether one takes a message.

use clap::Subcommand;
use serde::Serialize;

use super::setup::{self, Kind, Program, Setup};
use super::table::{Table, print_json};
use super::{Common, Exit, Output, Stop, tell, warn};
use crate::rules::dispatch::{Backlog, Delivery, Dispatch, Message, MessageState, News, Wait};
use crate::runtime::{Inbox, clock};

#[derive(Clone, Debug, clap::Args)]
pub struct NotifyArgs {
    #[command(subcommand)]
    command: NotifyCommand,
}

#[derive(Clone, Debug, Subcommand)]
enum NotifyCommand {
    /// Send a test message now, past every queue, and say how the channel answered.
    Test {
        /// The channel's name in the config.
        name: String,
    },
    /// The channels of the config.
    List(Output),
}

#[derive(Serialize)]
struct Listing {
    schema: &'static str,
    channels: Vec<Line>,
}

/// Nothing in it is a secret: an address is named by where it stands.
#[derive(Serialize)]
struct Line {
    channel: String,
    /// `null` of a channel that the config does not name any more, as all that follows but what waits for it.
    kind: Option<&'static str>,
    /// `any` or `watch`.
    from: Option<&'static str>,
    /// `null` for all.
    alerts: Option<Vec<&'static str>>,
    actions: Option<bool>,
    /// `null` for the person's own.
    language: Option<&'static str>,
    /// The variable that holds the address, or that it stands in the config; `null` where there is none.
    address: Option<String>,
    /// So many messages wait to be taken; `null` when the ledger cannot be read.
    waiting: Option<u32>,
    /// So many were given up, which the channel is told when it takes something again.
    lost: Option<u32>,
}

impl Line {
    /// A channel that the config does not name any more.
    fn unnamed(name: &str, of: Backlog) -> Self {
        Line {
            channel: providers::text::clean(name),
            kind: None,
            from: None,
            alerts: None,
            actions: None,
            language: None,
            address: None,
            waiting: Some(of.waiting),
            lost: Some(of.lost),
        }
    }
}

pub fn run(common: &Common, args: &NotifyArgs) -> Result<Exit, Stop> {
    let setup = Setup::read(common)?;
    match &args.command {
        NotifyCommand::Test { name } => test(&setup, name),
        NotifyCommand::List(output) => list(&setup, *output),
    }
}

fn test(setup: &Setup, name: &str) -> Result<Exit, Stop> {
    if !setup.config.channels.iter().any(|channel| channel.rule.name == name) {
        let names: Vec<&str> = setup.config.channels.iter().map(|channel| channel.rule.name.as_str()).collect();
        let hint = match names[..] {
            [] => "the config has no [[notify]]".to_owned(),
            _ => format!("there are: {}", names.join(", ")),
        };
        return Err(Stop::usage(format!("no channel `{}`; {hint}", providers::text::clean(name))));
    }
    let _log = setup::log(&setup.places.state_dir);
    let runtime = setup::runtime()?;
    let delivery = runtime.block_on(async {
        let (_inbox, outbox) = Inbox::new();
        let now = clock::now();
        let message = Message {
            id: now.as_microsecond(),
            channel: name.to_owned(),
            news: News::Test,
            made_at: now,
            host: setup::host(),
            state: MessageState::Sending,
            again: false,
            wait: Wait::default(),
        };
        setup.channels(Kind::OneShot, outbox).try_out(name, message).await
    });
    setup::end(runtime);
    match delivery {
        Delivery::Delivered => {
            tell(format_args!("{name}: the message was taken"));
            Ok(Exit::Done)
        }
        Delivery::Refused { why } => {
            warn(format_args!("rentop: {name}: refused, and would be refused again: {why}"));
            Ok(Exit::Failed)
        }
        Delivery::TooLong { why } => {
            warn(format_args!("rentop: {name}: the message is too long for it: {why}"));
            Ok(Exit::Failed)
        }
        Delivery::Later { wait, why, perhaps } => {
            let wait = wait.map(|wait| format!(" (again in {} s at the earliest)", wait.as_secs())).unwrap_or_default();
            let perhaps = if perhaps { "; it may have arrived all the same" } else { "" };
            warn(format_args!("rentop: {name}: not delivered: {why}{wait}{perhaps}"));
            Ok(Exit::Failed)
        }
    }
}

/// What waits for channels; `None` when the ledger cannot be read.
fn waiting(setup: &Setup) -> Result<Option<Vec<Message>>, Stop> {
    let runtime = setup::runtime()?;
    let told = runtime.block_on(async {
        let Program { performer, .. } = setup.program(Kind::OneShot)?;
        let memory = performer.keeper.remembered().await;
        performer.keeper.end(false);
        Ok(memory)
    });
    setup::end(runtime);
    match told? {
        Some(Ok(memory)) => Ok(Some(memory.messages)),
        Some(Err(error)) => {
            warn(format_args!("rentop: what waits is not known: {error}"));
            Ok(None)
        }
        None => Ok(None),
    }
}

fn list(setup: &Setup, output: Output) -> Result<Exit, Stop> {
    let messages = waiting(setup)?;
    let backlog = messages.as_ref().map(Dispatch::backlog);
    let of = |name: &str| backlog.as_ref().map(|backlog| backlog.get(name).copied().unwrap_or_default());
    let line = |channel: &crate::config::ChannelConfig| Line {
        channel: channel.rule.name.clone(),
        kind: Some(channel.kind.word()),
        from: Some(if channel.rule.watch_only { "watch" } else { "any" }),
        alerts: channel.rule.kinds.as_ref().map(|kinds| kinds.iter().map(|kind| kind.word()).collect()),
        actions: Some(channel.rule.actions),
        language: channel.language.map(|language| language.tag()),
        address: channel.address.as_ref().map(ToString::to_string),
        waiting: of(&channel.rule.name).map(|backlog| backlog.waiting),
        lost: of(&channel.rule.name).map(|backlog| backlog.lost),
    };
    let mut channels: Vec<Line> = setup.config.channels.iter().map(line).collect();
    let named = |name: &str| setup.config.channels.iter().any(|channel| channel.rule.name == name);
    for (name, of) in backlog.iter().flatten().filter(|(name, _)| !named(name)) {
        channels.push(Line::unnamed(name, *of));
    }
    let listing = Listing { schema: "rentop.channels/1", channels };
    if output.json {
        print_json(&listing)?;
        return Ok(Exit::Done);
    }
    let mut table =
        Table::new(&["CHANNEL", "KIND", "FROM", "ALERTS", "ACTIONS", "LANGUAGE", "ADDRESS", " WAITING", " LOST"]);
    let figure = |figure: Option<u32>| figure.map_or_else(|| "—".to_owned(), |figure| figure.to_string());
    for line in &listing.channels {
        table.row(vec![
            line.channel.clone(),
            line.kind.unwrap_or("not in the config").to_owned(),
            line.from.unwrap_or("—").to_owned(),
            match (&line.alerts, line.kind) {
                (Some(kinds), _) => kinds.join(" "),
                (None, Some(_)) => "all".to_owned(),
                (None, None) => "—".to_owned(),
            },
            line.actions.map_or("—", |actions| if actions { "yes" } else { "no" }).to_owned(),
            line.language.unwrap_or("—").to_owned(),
            line.address.clone().unwrap_or_else(|| "—".to_owned()),
            figure(line.waiting),
            figure(line.lost),
        ]);
    }
    table.print(output)?;
    Ok(Exit::Done)
}
