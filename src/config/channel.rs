//! A channel beyond the screen, as the config names it.

use std::fmt;

use jiff::SignedDuration;
use providers::channels::{self, Hook, Service};
use secrecy::SecretString;

use super::check::{Names, variable};
use super::file::{Node, Section};
use super::{Environment, Language};
use crate::rules::alerts::Kind;
use crate::rules::dispatch::ChannelRule;

pub(super) const NOTIFY: &[&str] = &[
    "name",
    "kind",
    "url",
    "url_env",
    "secret",
    "secret_env",
    "to",
    "command",
    "from",
    "alerts",
    "actions",
    "language",
];

const KINDS: &[&str] = &["json", "slack", "telegram", "ntfy", "feishu", "dingtalk", "wecom", "desktop", "command"];

/// What takes messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelKind {
    /// A service that is written to over HTTP.
    Hook(Service),
    /// The desktop's own notices, or those of the terminal.
    Desktop,
    /// A program of the person's own.
    Command,
}

impl ChannelKind {
    /// Its word in the config.
    pub fn word(self) -> &'static str {
        match self {
            ChannelKind::Hook(service) => service.word(),
            ChannelKind::Desktop => "desktop",
            ChannelKind::Command => "command",
        }
    }

    fn of_word(word: &str) -> ChannelKind {
        let service = Service::ALL.into_iter().find(|service| service.word() == word);
        match (service, word) {
            (Some(service), _) => ChannelKind::Hook(service),
            (None, "desktop") => ChannelKind::Desktop,
            (None, _) => ChannelKind::Command,
        }
    }

    /// The least time between two messages.
    fn pace(self) -> SignedDuration {
        match self {
            ChannelKind::Hook(service) => service.pace().try_into().unwrap_or(SignedDuration::ZERO),
            ChannelKind::Desktop | ChannelKind::Command => SignedDuration::from_secs(1),
        }
    }

    /// So many pieces of news go out together.
    fn at_once(self) -> usize {
        match self {
            ChannelKind::Hook(service) => service.at_once(),
            ChannelKind::Desktop => 5,
            // A program takes one thing at a time.
            ChannelKind::Command => 1,
        }
    }
}

/// Where something that is a secret comes from.
#[derive(Clone, Debug)]
pub enum SecretSource {
    Text(SecretString),
    /// An environment variable.
    Variable(String),
}

/// Without the secret itself.
impl fmt::Display for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretSource::Text(_) => f.write_str("the config file"),
            SecretSource::Variable(name) => f.write_str(&providers::text::clean(name)),
        }
    }
}

impl SecretSource {
    /// The secret; else why there is none.
    pub fn read(&self, environment: &Environment) -> Result<SecretString, String> {
        match self {
            SecretSource::Text(text) => Ok(text.clone()),
            SecretSource::Variable(name) => super::set(environment, name)
                .and_then(|value| value.into_string().ok())
                .map(SecretString::from)
                .ok_or_else(|| format!("the environment variable {} is not set", providers::text::clean(name))),
        }
    }
}

/// One channel of the config.
#[derive(Clone, Debug)]
pub struct ChannelConfig {
    pub kind: ChannelKind,
    pub rule: ChannelRule,
    /// Its address, which is a secret: whoever knows it can write there.
    pub address: Option<SecretSource>,
    /// With what messages are signed, or an access token of ntfy.
    pub secret: Option<SecretSource>,
    /// To whom: a chat of Telegram.
    pub to: Option<String>,
    /// Of a command: the program and its arguments.
    pub argv: Vec<String>,
    /// In which language it is written to; `None` for the person's own.
    pub language: Option<Language>,
}

impl ChannelConfig {
    /// Its rule, which tells whether it is still reached as it was.
    pub fn rule_in(&self, environment: &Environment) -> ChannelRule {
        let address = self.address.as_ref().and_then(|source| source.read(environment).ok());
        let rest = [self.kind.word(), self.to.as_deref().unwrap_or_default()].into_iter();
        let rest: Vec<&str> = rest.chain(self.argv.iter().map(String::as_str)).collect();
        let rest = channels::mark(&SecretString::from(rest.join("\n")));
        ChannelRule { way: address.as_ref().map_or(0, channels::mark) ^ rest, ..self.rule.clone() }
    }
}

/// By hand, as a secret has no equality.
impl PartialEq for ChannelConfig {
    fn eq(&self, other: &Self) -> bool {
        let ChannelConfig { kind, rule, address: _, secret: _, to, argv, language } = self;
        (kind, rule, to, argv, language) == (&other.kind, &other.rule, &other.to, &other.argv, &other.language)
    }
}

/// Reads one section. The flag is true when a secret stands in the file.
pub(super) fn channel<'d>(section: &Section<'d>, names: &mut Names<'d>) -> (Option<ChannelConfig>, bool) {
    let name = names.unique(section);
    let kind = section.need("kind").and_then(|node| node.word(KINDS)).map(ChannelKind::of_word);
    let from = section.get("from").and_then(|node| node.word(&["any", "watch"]));
    let language =
        section.get("language").and_then(|node| node.word(&[Language::English.tag(), Language::Chinese.tag()]));
    let language =
        language.map(|word| if word == Language::Chinese.tag() { Language::Chinese } else { Language::English });
    let kinds = section.get("alerts").and_then(|node| alerts(&node));
    let actions = section.get("actions").and_then(|node| node.flag()).unwrap_or(false);

    let address = source(section, "url", "url_env", "addresses");
    let secret = source(section, "secret", "secret_env", "secrets");
    let to = section.get("to").and_then(|node| node.text().map(|text| (text.trim().to_owned(), node)));
    let argv = section.get("command").and_then(|node| command(&node));
    if let Some(kind) = kind {
        fits(section, kind);
    }
    if let Some((Some(SecretSource::Text(text)), node)) = &address {
        check_address(node, text, kind, to.as_ref().map(|(to, _)| to.clone()));
    }
    let sources = [&address, &secret].into_iter().flatten();
    let holds = sources.filter(|(source, _)| matches!(source, Some(SecretSource::Text(_)))).count() > 0;
    let built = name.zip(kind).map(|(name, kind)| ChannelConfig {
        kind,
        rule: ChannelRule {
            name: name.to_owned(),
            watch_only: from == Some("watch"),
            kinds,
            actions,
            pace: kind.pace(),
            at_once: kind.at_once(),
            way: 0,
        },
        address: address.and_then(|(source, _)| source),
        secret: secret.and_then(|(source, _)| source),
        to: to.map(|(text, _)| text),
        argv: argv.unwrap_or_default(),
        language,
    });
    (built, holds)
}

/// What each kind needs, and what means nothing to it.
fn fits(section: &Section<'_>, kind: ChannelKind) {
    use Service::{Dingtalk, Feishu, Ntfy, Telegram};
    let is_hook = matches!(kind, ChannelKind::Hook(_));
    let signed = matches!(kind, ChannelKind::Hook(Dingtalk | Feishu | Ntfy));
    let table: [(&[&str], bool, Option<&str>, &str); 4] = [
        (
            &["url", "url_env"],
            is_hook,
            Some("no address: name it with `url_env`, or write it as `url`"),
            "only a service has an address; leave this out",
        ),
        (
            &["secret", "secret_env"],
            signed,
            None,
            "only feishu and dingtalk are signed, and ntfy has a token; leave this out",
        ),
        (
            &["to"],
            kind == ChannelKind::Hook(Telegram),
            Some("no `to`: the number of the chat, or \"@channel\""),
            "only telegram wants to know to whom; leave this out",
        ),
        (
            &["command"],
            kind == ChannelKind::Command,
            Some("no `command`: the program and its arguments, as a list"),
            "only a channel of the kind `command` runs one; leave this out",
        ),
    ];
    for (keys, wanted, missing, idle) in table {
        let given: Vec<Node<'_>> = keys.iter().filter_map(|key| section.get(key)).collect();
        match (wanted, missing) {
            (true, Some(missing)) if given.is_empty() => section.refuse(missing),
            (true, _) => {}
            (false, _) => given.iter().for_each(|node| node.refuse_key(idle)),
        }
    }
}

/// Checks an address that stands in the file. It is never quoted: whoever knows it can write to the channel.
fn check_address(node: &Node<'_>, text: &SecretString, kind: Option<ChannelKind>, to: Option<String>) {
    if node.peek().is_some_and(|text| channels::address(text).is_err()) {
        node.refuse("not an https address (plain http is for loopback only)");
    } else if let Some(ChannelKind::Hook(service)) = kind
        // That this one lacks its `to` is told by itself.
        && let Err(why) = Hook::new(service, text.clone(), None, to.or_else(|| Some("0".to_owned())))
    {
        node.refuse(why);
    }
}

/// A secret that stands in the file, or the variable that holds it; without a source where what stands there is wrong.
fn source<'d>(
    section: &Section<'d>,
    text: &str,
    by_name: &str,
    several: &str,
) -> Option<(Option<SecretSource>, Node<'d>)> {
    let (text, by_name) = (section.get(text), section.get(by_name));
    if let (Some(first), Some(second)) = (&text, &by_name) {
        second.refuse_key(format!("two {several}, `{}` and `{}`; a channel has one", first.key(), second.key()));
    }
    if let Some(node) = by_name {
        return Some((variable(&node).map(|name| SecretSource::Variable(name.to_owned())), node));
    }
    text.map(|node| (node.text().map(|text| SecretSource::Text(SecretString::from(text))), node))
}

fn alerts(node: &Node<'_>) -> Option<Vec<Kind>> {
    let words: Vec<&'static str> = Kind::ALL.iter().map(|kind| kind.word()).collect();
    let kind = |node: &Node<'_>| {
        let word = node.word(&words)?;
        Kind::ALL.into_iter().find(|kind| kind.word() == word)
    };
    Some(node.list()?.iter().filter_map(kind).collect())
}

/// A program and its arguments, for no shell.
fn command(node: &Node<'_>) -> Option<Vec<String>> {
    if !node.is_list() {
        node.refuse("a list of the program and its arguments, such as [\"notify.sh\", \"gpu\"]; there is no shell");
        return None;
    }
    let words: Vec<String> = node.list()?.iter().filter_map(|node| node.any_text().map(str::to_owned)).collect();
    if words.first().is_none_or(|program| program.trim().is_empty()) {
        node.refuse("no program; the first of the list is the one that is run");
    }
    Some(words)
}
