//! Budgets and alerts, as the collector knows them.

use std::collections::BTreeSet;

use jiff::Timestamp;
use providers::model::AccountName;

use crate::rules::alerts::{Alerts, Finding, Limits};
use crate::rules::budgets::{Budget, Standing};
use crate::rules::dispatch::{Dispatch, Message};
use crate::rules::spend::Exchange;

/// The budgets of the config, and how each stands.
#[derive(Clone, Debug, Default)]
pub struct Budgets {
    /// In the order of the config.
    pub rules: Vec<Budget>,
    /// Of each of them; `None` before the books have answered.
    pub standings: Vec<Option<Standing>>,
    /// When these were made.
    pub as_of: Option<Timestamp>,
}

impl Budgets {
    /// A budget of this name, with how it stands.
    pub fn get(&self, name: &str) -> Option<(&Budget, Option<&Standing>)> {
        let at = self.rules.iter().position(|budget| budget.name == name)?;
        Some((&self.rules[at], self.standings.get(at).and_then(Option::as_ref)))
    }
}

/// What is told to people, from when on, and where.
#[derive(Clone, Debug, Default)]
pub struct Alerting {
    pub limits: Limits,
    pub alerts: Alerts,
    pub dispatch: Dispatch,
    /// Accounts whose money comes by itself: that it ends is a note.
    pub topped_up: BTreeSet<AccountName>,
    /// How sums of several currencies are joined.
    pub exchange: Exchange,
    /// The host that messages name.
    pub host: String,
    /// A screen shows them: channels for whoever watches stay silent.
    pub on_screen: bool,
    /// Messages that are not written down yet.
    pub(super) unkept: Vec<Message>,
    /// What happened and is yet to be told.
    pub events: Vec<Finding>,
    /// When it was last looked for what is worth an alert.
    pub looked_at: Option<Timestamp>,
}
