//! A channel beyond the screen, as the config names it.

use secrecy::SecretString;

use crate::rules::dispatch::ChannelRule;

/// What takes messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelKind {
    Json,
    Slack,
    Telegram,
    Ntfy,
    Feishu,
    Dingtalk,
    Wecom,
    Desktop,
    Command,
}

/// Where something that is a secret comes from.
#[derive(Clone, Debug)]
pub enum SecretSource {
    Text(SecretString),
    /// An environment variable.
    Variable(String),
}

/// One channel of the config.
#[derive(Clone, Debug)]
pub struct ChannelConfig {
    pub kind: ChannelKind,
    pub rule: ChannelRule,
    /// Its address, which is a secret: whoever knows it can write there.
    pub address: Option<SecretSource>,
    /// With what messages are signed.
    pub secret: Option<SecretSource>,
    /// To whom: a chat of Telegram.
    pub to: Option<String>,
    /// Of a command: the program and its arguments.
    pub argv: Vec<String>,
}

impl PartialEq for ChannelConfig {
    fn eq(&self, other: &Self) -> bool {
        (self.kind, &self.rule, &self.to, &self.argv) == (other.kind, &other.rule, &other.to, &other.argv)
    }
}
