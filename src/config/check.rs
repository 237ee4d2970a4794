//! The document turned into a [`Config`]: every value checked, every mistake noted.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use jiff::tz::TimeZone;
use providers::facts::{FactError, Facts};
use providers::model::{AccountName, ProviderName};
use providers::money::Currency;
use providers::provider::Entry;
use rust_decimal::Decimal;

use super::file::{Document, Mistake, Node, Section, did_you_mean, nearest, quote};
use super::keys::KeySource;
use super::{AccountConfig, Config, KeyWish, alerts, budget, channel, checkpoint, idle, lease, machine, places};
use crate::rules::matcher::{Glob, LabelPattern, Matcher};
use crate::rules::settings::ProjectRule;
use crate::rules::spend::Fx;
use crate::rules::streams::Consent;

pub(super) const ROOT: &[&str] = &[
    "timezone",
    "currency",
    "awake",
    "mine",
    "mouse",
    "keys",
    "fx",
    "account",
    "project",
    "protect",
    "idle",
    "budget",
    "alerts",
    "notify",
    "checkpoint",
    "lease",
];
pub(super) const FX: &[&str] = &["usd", "as_of"];
pub(super) const ACCOUNT: &[&str] = &[
    "provider",
    "name",
    "key_env",
    "key_cmd",
    "key_file",
    "base_url",
    "read_only",
    "facts",
    "ssh",
    "machine",
    "auto_topup",
];
pub(super) const PROJECT: &[&str] = &["name", "match"];
pub(super) const PROTECT: &[&str] = &["match"];
pub(super) const MATCH: &[&str] = &["name", "account", "provider", "label"];

/// Whether an account's machines are looked into over `ssh`.
const STREAMS: &[&str] = &["ask", "always", "never"];

/// The longest name of an account, project, budget or channel, in characters.
const NAME: usize = 64;

/// The providers to choose from.
pub(super) type Registry = &'static [&'static Entry];

/// A text that was read without a mistake.
pub(super) struct Checked {
    pub config: Config,
    /// True when an address that is a secret stands in the file.
    pub holds_secrets: bool,
}

/// Reads a config text. `folder` is where the file stands: a relative `key_file` is below it.
pub(super) fn check(text: &str, folder: &Path, registry: Registry) -> Result<Checked, Vec<Mistake>> {
    let document = Document::new(text);
    let checked = document.parse().map(|table| {
        let root = document.root(&table, ROOT);
        sections(&root, folder, registry)
    });
    let mistakes = document.into_mistakes();
    match checked {
        Some(checked) if mistakes.is_empty() => Ok(checked),
        _ => Err(mistakes),
    }
}

fn sections(root: &Section<'_>, folder: &Path, registry: Registry) -> Checked {
    let mut config = Config::default();
    if let Some(zone) = root.get("timezone").and_then(|node| timezone(&node)) {
        config.timezone_name = super::zone_name(&zone);
        config.timezone = zone;
    }
    if let Some(currency) = root.get("currency").and_then(|node| currency(&node)) {
        config.currency = currency;
    }
    if let Some(mine) = root.get("mine").and_then(|node| node.list()) {
        config.rules.mine = mine.iter().filter_map(read_mine).collect();
    }
    if let Some(mouse) = root.get("mouse").and_then(|node| node.flag()) {
        config.mouse = mouse;
    }
    if let Some(table) = root.get("keys").and_then(|node| node.free_section()) {
        config.keys = table.entries().filter_map(|(action, node)| key_wish(action, &node)).collect();
    }
    if let Some(table) = root.get("fx").and_then(|node| node.free_section()) {
        table.entries().for_each(|(code, node)| fx(code, &node, &mut config.fx));
    }

    let accounts = tables(root, "account", ACCOUNT);
    let mut names = Names::new(registry, &accounts);
    config.accounts = accounts.iter().filter_map(|section| account(section, folder, &mut names)).collect();
    config.rules.projects =
        tables(root, "project", PROJECT).iter().filter_map(|section| project(section, &names)).collect();
    config.rules.protect = tables(root, "protect", PROTECT)
        .iter()
        .filter_map(|section| section.need("match").and_then(|node| matcher(&node, &names)))
        .collect();

    idle::rules(&tables(root, "idle", idle::IDLE), &names, &mut config.rules);

    let mut holds_secrets = false;
    let budgets = tables(root, "budget", budget::BUDGET);
    let zone = &config.timezone;
    config.budgets = budgets.iter().filter_map(|section| budget::budget(section, &mut names, zone)).collect();
    config.limits.awake = root.get("awake").and_then(|node| alerts::awake(&node));
    if let Some(section) = root.get("alerts").and_then(|node| node.section(alerts::ALERTS)) {
        alerts::limits(&section, &mut config.limits);
    }
    for section in &tables(root, "notify", channel::NOTIFY) {
        let (channel, holds) = channel::channel(section, &mut names);
        config.channels.extend(channel);
        holds_secrets |= holds;
    }
    let home = places::home();
    for section in &tables(root, "checkpoint", checkpoint::CHECKPOINT) {
        config.recipes.extend(checkpoint::checkpoint(section, &mut names, home.as_deref()));
    }
    if let Some(section) = root.get("lease").and_then(|node| node.section(lease::LEASE)) {
        config.lease = lease::commands(&section);
    }
    Checked { config, holds_secrets }
}

/// One key or several; what they mean is checked where keys are known.
fn key_wish(action: &str, node: &Node<'_>) -> Option<KeyWish> {
    let keys = match node.is_list() {
        true => node.list()?.iter().map(|node| node.text().map(str::to_owned)).collect::<Option<_>>()?,
        false => vec![node.text()?.to_owned()],
    };
    let (line, column) = node.place();
    Some(KeyWish { action: action.to_owned(), keys, line, column })
}

fn tables<'d>(root: &Section<'d>, key: &str, keys: &[&'static str]) -> Vec<Section<'d>> {
    root.get(key).map(|node| node.sections(keys)).unwrap_or_default()
}

/// What names may be referred to, and which are taken.
pub(super) struct Names<'d> {
    pub registry: Registry,
    accounts: Vec<&'d str>,
    /// By kind of section and name, the path of the section that has it.
    taken: HashMap<(String, &'d str), String>,
}

impl<'d> Names<'d> {
    fn new(registry: Registry, accounts: &[Section<'d>]) -> Self {
        let name = |section: &Section<'d>| section.get("name").and_then(|node| node.peek());
        Names { registry, accounts: accounts.iter().filter_map(name).collect(), taken: HashMap::new() }
    }

    /// The section's own name, which no other section of its kind may have.
    pub fn unique(&mut self, section: &Section<'d>) -> Option<&'d str> {
        let node = section.need("name")?;
        let name = name(&node)?;
        let kind = section.path().split('[').next().unwrap_or_default().to_owned();
        match self.taken.get(&(kind.clone(), name)) {
            Some(first) => {
                node.refuse(format!("`{name}` is the name of {first} already"));
                None
            }
            None => {
                self.taken.insert((kind, name), section.path().to_owned());
                Some(name)
            }
        }
    }
}

/// A name that can stand in a line of a table and in a path.
pub(super) fn name<'d>(node: &Node<'d>) -> Option<&'d str> {
    let text = node.text()?;
    let wrong = if text != providers::text::clean(text) {
        "has blanks around it or characters that cannot be shown"
    } else if text.contains(['/', '\\']) {
        "holds a slash; names are parts of paths"
    } else if text.chars().count() > NAME {
        "is longer than 64 characters"
    } else {
        return Some(text);
    };
    node.refuse(format!("`{}` {wrong}", quote(text)));
    None
}

pub(super) fn timezone(node: &Node<'_>) -> Option<TimeZone> {
    let text = node.text()?;
    let zone = TimeZone::get(text).ok();
    if zone.is_none() {
        let known: Vec<String> = jiff::tz::db().available().map(|name| name.as_str().to_owned()).collect();
        let hint = match nearest(text, &known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "names are such as `Asia/Shanghai`".to_owned(),
        };
        node.refuse(format!("`{}` is no IANA time zone; {hint}", quote(text)));
    }
    zone
}

fn currency(node: &Node<'_>) -> Option<Currency> {
    let text = node.text()?;
    let currency = Currency::parse(text);
    if currency.is_none() {
        node.refuse(no_currency(text));
    }
    currency
}

fn no_currency(text: &str) -> String {
    format!("`{}` is no currency code of three letters such as `USD`", quote(text))
}

fn read_mine(node: &Node<'_>) -> Option<Matcher> {
    let mine = Matcher::parse(node.text()?);
    if mine.is_none() {
        node.refuse("a label pattern is written key=value");
    }
    mine
}

fn fx(code: &str, node: &Node<'_>, rates: &mut BTreeMap<Currency, Fx>) {
    let Some(currency) = Currency::parse(code) else { return node.refuse_key(no_currency(code)) };
    if currency == Currency::USD {
        return node.refuse_key("USD is what the other currencies are counted in");
    }
    let Some(section) = node.section(FX) else { return };
    let usd = section.need("usd").and_then(|node| {
        let text = node.text()?;
        let usd = decimal(text).filter(|usd| *usd > Decimal::ZERO);
        if usd.is_none() {
            node.refuse(format!("`{}` is not a decimal above 0 such as \"0.1389\"", quote(text)));
        }
        usd
    });
    let as_of = section.need("as_of").and_then(|node| node.date());
    if let (Some(usd), Some(as_of)) = (usd, as_of)
        && rates.insert(currency, Fx { usd, as_of }).is_some()
    {
        node.refuse_key(format!("{currency} stands here twice"));
    }
}

/// Plain digits with at most one point and perhaps a sign, exact; `None` for anything else.
pub(super) fn decimal(text: &str) -> Option<Decimal> {
    let plain = text.strip_prefix('-').unwrap_or(text);
    let digits = plain.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    digits.then(|| Decimal::from_str_exact(text).ok()).flatten()
}

fn account<'d>(section: &Section<'d>, folder: &Path, names: &mut Names<'d>) -> Option<AccountConfig> {
    let provider = section.need("provider").and_then(|node| check_provider(&node, names.registry));
    let name = names.unique(section);
    // Machines that no API lists need no key: the person's own `ssh` has its own.
    let own_machines = provider.is_some_and(|entry| entry.name == providers::ssh::NAME);
    let key = if own_machines { no_key(section) } else { key_source(section, folder) };
    let base_url = section.get("base_url").and_then(|node| base_url(&node));
    let read_only = section.get("read_only").and_then(|node| node.flag()).unwrap_or(false);
    let facts = section.get("facts").and_then(|node| node.free_section());
    let facts = facts.map(|facts| check_facts(&facts, provider)).unwrap_or_default();
    let streams = section.get("ssh").and_then(|node| node.word(STREAMS).map(|word| (node, word)));
    if let Some((node, _)) = streams.as_ref().filter(|(_, word)| own_machines && *word != "always") {
        node.refuse("these machines are known over ssh alone; leave this out");
    }
    let streams = match streams {
        Some((_, "always")) => Consent::Always,
        Some((_, "never")) => Consent::Never,
        _ if own_machines => Consent::Always,
        _ => Consent::Unasked,
    };
    let machines = machine::machines(section, own_machines);
    let auto_topup = section.get("auto_topup").and_then(|node| node.flag()).unwrap_or(false);
    let (provider, name, key) = (provider?, AccountName::from(name?), key?);
    Some(AccountConfig { provider, name, key, base_url, read_only, facts, streams, machines, auto_topup })
}

/// The registry's entry of a provider that is named.
pub(super) fn check_provider(node: &Node<'_>, registry: Registry) -> Option<&'static Entry> {
    let text = node.text()?;
    let entry = registry.iter().copied().find(|entry| entry.name == text);
    if entry.is_none() {
        let known: Vec<&str> = registry.iter().map(|entry| entry.name).collect();
        node.refuse(format!("no provider `{}`; {}", quote(text), did_you_mean(text, &known, "there are")));
    }
    entry
}

/// The name of an account that is referred to. Without any account in the file it may be one of those that
/// the environment offers.
pub(super) fn check_account(node: &Node<'_>, names: &Names<'_>) -> Option<AccountName> {
    let text = node.text()?;
    if names.accounts.is_empty() || names.accounts.contains(&text) {
        return Some(AccountName::from(text));
    }
    node.refuse(format!("no account `{}`; {}", quote(text), did_you_mean(text, &names.accounts, "there are")));
    None
}

/// Sees to it that no key source stands where none is used.
fn no_key(section: &Section<'_>) -> Option<KeySource> {
    for node in ["key_env", "key_cmd", "key_file", "base_url", "facts"].iter().filter_map(|key| section.get(key)) {
        node.refuse_key("these machines have no API, so this means nothing");
    }
    Some(KeySource::NotNeeded)
}

fn key_source(section: &Section<'_>, folder: &Path) -> Option<KeySource> {
    let given: Vec<Node<'_>> = ["key_env", "key_cmd", "key_file"].iter().filter_map(|key| section.get(key)).collect();
    match &given[..] {
        [] => {
            section.refuse(
                "no key source; this version reads keys from key_env, key_cmd or key_file \
                 (the OS keyring comes with `rentop login`, which is not available yet)",
            );
            None
        }
        [node] => match node.key() {
            "key_env" => variable(node).map(|name| KeySource::Env(name.to_owned())),
            "key_cmd" => command(node).map(KeySource::Command),
            // A path that begins at `/` or `~/` stays what it is.
            _ => node.text().map(|path| {
                let path = Path::new(path);
                KeySource::File(if path.starts_with("~") { path.to_owned() } else { folder.join(path) })
            }),
        },
        [first, second, ..] => {
            second.refuse_key(format!(
                "two key sources, `{}` and `{}`; an account has exactly one",
                first.key(),
                second.key()
            ));
            None
        }
    }
}

/// The name of an environment variable. Never quoted when it is wrong: it may be the secret itself, written
/// where its variable's name belongs.
pub(super) fn variable<'d>(node: &Node<'d>) -> Option<&'d str> {
    let text = node.text()?;
    let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    // Words of a name are short; a long run of letters and digits is a key.
    if !plain || text.starts_with(|c: char| c.is_ascii_digit()) || text.split('_').any(|word| word.len() > 24) {
        node.refuse("not the name of an environment variable, such as \"RUNPOD_API_KEY\"; the secret is its value");
        return None;
    }
    Some(text)
}

fn command(node: &Node<'_>) -> Option<Vec<String>> {
    let words = if node.is_list() {
        let words: Vec<Option<String>> = node.list()?.iter().map(|word| word.any_text().map(str::to_owned)).collect();
        words.into_iter().collect::<Option<Vec<String>>>()?
    } else {
        let Ok(words) = shell_words::split(node.text()?) else {
            node.refuse("a quote in it is not closed");
            return None;
        };
        words
    };
    if words.first().is_none_or(|program| program.trim().is_empty()) {
        node.refuse("no program to run");
        return None;
    }
    Some(words)
}

fn base_url(node: &Node<'_>) -> Option<String> {
    let text = node.text()?.trim();
    // Told before the URL is quoted anywhere: a user name, a password or a query may be a secret.
    if text.contains('@') {
        node.refuse("holds a user name or password; a key belongs into the account's key source");
        return None;
    }
    if text.contains(['?', '#']) {
        node.refuse("holds more than scheme, host and port; it replaces these only");
        return None;
    }
    match providers::http::base_url(text) {
        Ok(_) => Some(text.to_owned()),
        Err(message) => {
            // Its sentences begin with the key, which stands before every mistake anyway.
            node.refuse(message.strip_prefix("base_url ").unwrap_or(&message));
            None
        }
    }
}

fn check_facts(section: &Section<'_>, provider: Option<&'static Entry>) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    for (key, node) in section.entries() {
        let Some(value) = node.text() else { continue };
        let fact = BTreeMap::from([(key.to_owned(), value.to_owned())]);
        if let Some(provider) = provider {
            let built_in = Facts::built_in(provider.facts);
            let known: Vec<&str> = built_in.iter().map(|(key, _)| key).collect();
            match built_in.clone().corrected(&fact) {
                Ok(_) => {}
                Err(FactError::Unknown { .. }) => node.refuse_key(format!(
                    "no billing fact of {}; {}",
                    provider.name,
                    did_you_mean(key, &known, "there are")
                )),
                Err(FactError::NotADecimal { .. }) => {
                    node.refuse(format!("`{}` is not a decimal of 0 or more", quote(value)));
                }
            }
        }
        facts.extend(fact);
    }
    facts
}

fn project<'d>(section: &Section<'d>, names: &Names<'d>) -> Option<ProjectRule> {
    // Several rules may lead to the same project.
    let name = section.need("name").and_then(|node| name(&node));
    let matcher = section.need("match").and_then(|node| matcher(&node, names));
    Some(ProjectRule { name: name?.to_owned(), matcher: matcher? })
}

fn matcher(node: &Node<'_>, names: &Names<'_>) -> Option<Matcher> {
    let section = node.section(MATCH)?;
    matcher_in(&section, names)
}

/// The conditions of a match but for `project`.
pub(super) fn matcher_in(section: &Section<'_>, names: &Names<'_>) -> Option<Matcher> {
    if section.is_empty() {
        section.refuse("empty; to take everything write { name = \"*\" }");
        return None;
    }
    let label = section.get("label").and_then(|node| {
        let label = LabelPattern::parse(node.text()?);
        if label.is_none() {
            node.refuse("a label pattern is written key=value");
        }
        label
    });
    Some(Matcher {
        name: section.get("name").and_then(|node| node.text().map(Glob::new)),
        account: section.get("account").and_then(|node| check_account(&node, names)),
        provider: section
            .get("provider")
            .and_then(|node| check_provider(&node, names.registry))
            .map(|entry| ProviderName::from(entry.name)),
        label,
    })
}
