//! Budgets and alerts, as the collector knows them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use providers::model::{AccountName, Identity};

use crate::rules::alerts::{Alerts, Finding, Limits, Matter};
use crate::rules::budgets::{Budget, Standing};
use crate::rules::dispatch::{Dispatch, Message};
use crate::rules::saga::Operation;
use crate::rules::spend::Exchange;

/// The budgets of the config, and how each stands.
#[derive(Clone, Debug, Default)]
pub struct Budgets {
    /// In the order of the config.
    pub rules: Vec<Budget>,
    /// Of each of them; `None` before the books have answered.
    pub standings: Vec<Option<Standing>>,
    /// How those stood that have no standing just now, since the books are asked anew.
    pub before: Vec<(Budget, Standing)>,
    /// How the terms that closed lately stood at their end, each as a budget for its days alone.
    pub closed: Vec<(Budget, Option<Standing>)>,
    /// When anything was last seen before this process began to look; `None` when nothing was.
    pub seen: Option<Timestamp>,
    /// Accounts of which the ledger knows something and that have not been looked at since it was read: what ran
    /// meanwhile is not counted yet.
    pub unheard: BTreeSet<AccountName>,
    /// When these were made.
    pub as_of: Option<Timestamp>,
    /// The user's rates, by which several currencies come to the one of a limit.
    pub exchange: Exchange,
    /// What the books were asked.
    pub asked: Asked,
    /// The rules that the standings were made for.
    pub made_for: Vec<Budget>,
    /// Which version of the spend they were made from.
    pub version: u64,
    /// What is gone and was spent on since the books answered.
    pub faces: BTreeMap<Identity, Face>,
}

/// What the books were asked about budgets.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// As they were then.
    pub rules: Vec<Budget>,
    /// The first question for these.
    pub first: u64,
    /// When they were last asked.
    pub at: Option<Timestamp>,
}

/// What a resource was called when it was last seen.
#[derive(Clone, Debug, Default)]
pub struct Face {
    pub name: Option<String>,
    pub labels: BTreeMap<String, String>,
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
    /// A screen shows them.
    pub on_screen: bool,
    /// Some process watches without a screen, whoever collects.
    pub watched: bool,
    /// This process has other business than to look for what is worth an alert.
    pub heedless: bool,
    /// It ends too soon to send anything: what waits for channels is left to others.
    pub silent: bool,
    /// Messages that are not written down yet.
    pub(super) unkept: Vec<Message>,
    /// What happened and is yet to be told.
    pub events: Vec<Finding>,
    /// What any process did of late, by the ledger; `None` until it is read after something happened.
    pub acted: Option<Vec<Operation>>,
    /// What left accounts beyond what is known to be charged; `None` before the books have answered.
    pub unexplained: Option<Vec<Matter>>,
    /// When they were asked.
    pub balances_asked: Option<Timestamp>,
    /// When it was last looked for what is worth an alert.
    pub looked_at: Option<Timestamp>,
}

impl Alerting {
    /// Nothing but screens is open: channels for whoever watches stay silent.
    pub fn screens_only(&self) -> bool {
        self.on_screen && !self.watched
    }
}
