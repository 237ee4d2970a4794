//! What an alert is about, with all that its sentence needs.

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use providers::model::{AccountName, Action, Identity};
use providers::money::Rate;
use serde::{Deserialize, Serialize};

use crate::rules::budgets::Quantity;
use crate::rules::checkpoint::Trouble;
use crate::rules::guard::{Cause, Unable, Warning};
use crate::rules::lease::{LeaseId, What, Why};
use crate::rules::saga::OpId;

pub use providers::money::Money;

/// Everything that can be worth an alert.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Matter {
    /// So much of a budget is spent.
    Budget {
        name: String,
        /// The first day of its term; `None` for all time.
        term: Option<Date>,
        /// The line that was crossed, in percent.
        threshold: u32,
        spent: Quantity,
        limit: Quantity,
        /// When it was crossed, where that was not now; `None` when nobody can tell.
        crossed_at: Option<Timestamp>,
        /// What will be spent at the end of the term.
        forecast: Option<Quantity>,
        /// When the term ended, where that was before it could be told; `None` in the term.
        #[serde(default)]
        closed: Option<Timestamp>,
    },
    /// A budget will not last.
    Forecast {
        name: String,
        term: Option<Date>,
        forecast: Quantity,
        limit: Quantity,
        /// When the limit is reached.
        reaches: Option<Timestamp>,
    },
    /// The fleet costs more an hour than it should.
    Burn { burn: Rate, limit: Rate },
    /// An account's money ends.
    Runway {
        account: AccountName,
        ends_at: Timestamp,
        /// It may be earlier.
        at_most: bool,
        /// Before anybody is awake again.
        asleep: bool,
        /// The resources whose data the provider deletes then.
        lost: Vec<String>,
        /// How many are only stopped.
        stopped: usize,
    },
    /// An instance does nothing.
    Idle {
        identity: Identity,
        name: String,
        since: Timestamp,
        /// What it costs an hour.
        rates: Vec<Rate>,
        /// What that came to so far.
        wasted: Vec<Money>,
    },
    /// An instance is stopped and is charged all the same.
    StoppedBilled { identity: Identity, name: String, since: Timestamp, rates: Vec<Rate> },
    /// Nothing uses a storage item that costs.
    Unattached { identity: Identity, name: String, since: Timestamp, rates: Vec<Rate> },
    /// A stop or a release did not take effect: it is still billed, or nobody knows.
    NotDone { op: OpId, identity: Identity, name: String, action: Action, rates: Vec<Rate> },
    /// The provider took an instance back.
    Reclaimed {
        identity: Identity,
        name: String,
        /// When its data was last copied and verified; `None` for never.
        copied_at: Option<Timestamp>,
    },
    /// The provider will delete it, or its term ends.
    Ending { identity: Identity, name: String, at: Timestamp, deleted: bool },
    /// It costs something else than before.
    Repriced { identity: Identity, name: String, before: Vec<Rate>, after: Vec<Rate> },
    /// An instance that nobody here started.
    Appeared { identity: Identity, name: String, rates: Vec<Rate> },
    /// An instance is gone without an action of ours.
    Vanished { identity: Identity, name: String },
    /// An account does not answer, or refuses us. `why` is one line.
    Account { account: AccountName, why: String, since: Timestamp },
    /// Fewer or smaller cards than are rented, or a fault of one. `why` is the driver's word, if it is one.
    Cards { identity: Identity, name: String, rented: u32, seen: Option<u32>, why: Option<String> },
    /// The host of an instance has another key than before.
    HostKey { identity: Identity, name: String },
    /// The last verified copy of an instance is older than its schedule allows.
    CopyOverdue {
        identity: Identity,
        name: String,
        /// When it was last copied and verified; `None` for never.
        copied_at: Option<Timestamp>,
        every: SignedDuration,
        /// What was wrong with the last try; `None` where nothing is known to be.
        why: Option<Trouble>,
    },
    /// More left an account than is known to be charged.
    Unexplained { account: AccountName, amount: Money, since: Timestamp },
    /// What was to happen to an instance by itself did not: somebody is asked.
    Lease {
        lease: LeaseId,
        identity: Identity,
        name: String,
        what: What,
        why: Why,
        since: Timestamp,
        /// What it costs an hour.
        rates: Vec<Rate>,
        /// What it has cost since.
        cost: Vec<Money>,
    },
    /// A channel does not take what is to be told. `why` is one line without its address.
    Channel {
        name: String,
        why: String,
        /// How it is reached: another one when that was changed.
        #[serde(default)]
        way: u16,
    },
    /// A guard proposes something, is about to do it, or could not.
    Guard {
        identity: Identity,
        name: String,
        /// Its own name.
        guard: String,
        cause: Cause,
        warning: Warning,
        /// What the machine costs an hour.
        rates: Vec<Rate>,
    },
    /// What a guard or a lease is to do with an instance could not be done now.
    Unable { identity: Identity, name: String, why: Unable },
}

/// The kinds of alerts, each with its word in `--json` and in the config.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Budget,
    Forecast,
    Burn,
    Runway,
    Idle,
    StoppedBilled,
    Unattached,
    NotDone,
    Reclaimed,
    Ending,
    Repriced,
    Appeared,
    Vanished,
    Account,
    Cards,
    HostKey,
    CopyOverdue,
    Unexplained,
    Lease,
    Channel,
    Guard,
    Unable,
}

impl Kind {
    pub const ALL: [Kind; 22] = [
        Kind::Budget,
        Kind::Forecast,
        Kind::Burn,
        Kind::Runway,
        Kind::Idle,
        Kind::StoppedBilled,
        Kind::Unattached,
        Kind::NotDone,
        Kind::Reclaimed,
        Kind::Ending,
        Kind::Repriced,
        Kind::Appeared,
        Kind::Vanished,
        Kind::Account,
        Kind::Cards,
        Kind::HostKey,
        Kind::CopyOverdue,
        Kind::Unexplained,
        Kind::Lease,
        Kind::Channel,
        Kind::Guard,
        Kind::Unable,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Kind::Budget => "budget",
            Kind::Forecast => "forecast",
            Kind::Burn => "burn",
            Kind::Runway => "runway",
            Kind::Idle => "idle",
            Kind::StoppedBilled => "stopped_billed",
            Kind::Unattached => "unattached",
            Kind::NotDone => "not_done",
            Kind::Reclaimed => "reclaimed",
            Kind::Ending => "ending",
            Kind::Repriced => "repriced",
            Kind::Appeared => "appeared",
            Kind::Vanished => "vanished",
            Kind::Account => "account",
            Kind::Cards => "cards",
            Kind::HostKey => "host_key",
            Kind::CopyOverdue => "copy_overdue",
            Kind::Unexplained => "unexplained",
            Kind::Lease => "lease",
            Kind::Channel => "channel",
            Kind::Guard => "guard",
            Kind::Unable => "unable",
        }
    }
}

/// How much an alert matters: the order of a list begins with the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Data may be lost, or money goes on being charged against a person's word.
    Urgent,
    /// Money is spent, or will be, that should not be.
    Money,
    /// Worth knowing.
    Note,
}

/// To what an alert belongs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum About {
    Fleet,
    Budget(String),
    Account(AccountName),
    Resource(Identity),
    Action(OpId),
    Channel(String),
}

/// What tells one alert from another: of one topic there is one at a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Topic {
    pub kind: Kind,
    pub about: About,
    /// What tells apart several of one kind about the same: a budget's term and line.
    pub mark: String,
}

impl Matter {
    pub fn kind(&self) -> Kind {
        match self {
            Matter::Budget { .. } => Kind::Budget,
            Matter::Forecast { .. } => Kind::Forecast,
            Matter::Burn { .. } => Kind::Burn,
            Matter::Runway { .. } => Kind::Runway,
            Matter::Idle { .. } => Kind::Idle,
            Matter::StoppedBilled { .. } => Kind::StoppedBilled,
            Matter::Unattached { .. } => Kind::Unattached,
            Matter::NotDone { .. } => Kind::NotDone,
            Matter::Reclaimed { .. } => Kind::Reclaimed,
            Matter::Ending { .. } => Kind::Ending,
            Matter::Repriced { .. } => Kind::Repriced,
            Matter::Appeared { .. } => Kind::Appeared,
            Matter::Vanished { .. } => Kind::Vanished,
            Matter::Account { .. } => Kind::Account,
            Matter::Cards { .. } => Kind::Cards,
            Matter::HostKey { .. } => Kind::HostKey,
            Matter::CopyOverdue { .. } => Kind::CopyOverdue,
            Matter::Unexplained { .. } => Kind::Unexplained,
            Matter::Lease { .. } => Kind::Lease,
            Matter::Channel { .. } => Kind::Channel,
            Matter::Guard { .. } => Kind::Guard,
            Matter::Unable { .. } => Kind::Unable,
        }
    }

    pub fn topic(&self) -> Topic {
        let term = |term: &Option<Date>| term.map_or_else(String::new, |date| date.to_string());
        let (about, mark) = match self {
            Matter::Budget { name, term: first, threshold, .. } => {
                (About::Budget(name.clone()), format!("{} {threshold}", term(first)))
            }
            Matter::Forecast { name, term: first, .. } => (About::Budget(name.clone()), term(first)),
            Matter::Burn { limit, .. } => (About::Fleet, limit.currency.to_string()),
            Matter::Runway { account, .. } | Matter::Account { account, .. } | Matter::Unexplained { account, .. } => {
                (About::Account(account.clone()), String::new())
            }
            Matter::NotDone { op, .. } => (About::Action(*op), String::new()),
            Matter::Channel { name, way, .. } => (About::Channel(name.clone()), format!("{way:04x}")),
            Matter::Lease { identity, lease, .. } => (About::Resource(identity.clone()), lease.0.to_string()),
            // A countdown that starts anew is told anew.
            Matter::Guard { identity, guard, warning, .. } => {
                let at = match warning {
                    Warning::Acts { at, .. } => format!(" {at}"),
                    _ => String::new(),
                };
                (About::Resource(identity.clone()), format!("{guard}{at}"))
            }
            Matter::Idle { identity, .. }
            | Matter::StoppedBilled { identity, .. }
            | Matter::Unattached { identity, .. }
            | Matter::Unable { identity, .. }
            | Matter::Reclaimed { identity, .. }
            | Matter::Ending { identity, .. }
            | Matter::Repriced { identity, .. }
            | Matter::Appeared { identity, .. }
            | Matter::Vanished { identity, .. }
            | Matter::Cards { identity, .. }
            | Matter::HostKey { identity, .. }
            | Matter::CopyOverdue { identity, .. } => (About::Resource(identity.clone()), String::new()),
        };
        Topic { kind: self.kind(), about, mark }
    }

    /// The resource that it is about.
    pub fn identity(&self) -> Option<&Identity> {
        match self {
            Matter::Idle { identity, .. }
            | Matter::StoppedBilled { identity, .. }
            | Matter::Unattached { identity, .. }
            | Matter::NotDone { identity, .. }
            | Matter::Reclaimed { identity, .. }
            | Matter::Ending { identity, .. }
            | Matter::Repriced { identity, .. }
            | Matter::Appeared { identity, .. }
            | Matter::Vanished { identity, .. }
            | Matter::Cards { identity, .. }
            | Matter::HostKey { identity, .. }
            | Matter::Lease { identity, .. }
            | Matter::Guard { identity, .. }
            | Matter::Unable { identity, .. }
            | Matter::CopyOverdue { identity, .. } => Some(identity),
            _ => None,
        }
    }

    /// The account that it is about.
    pub fn account(&self) -> Option<&AccountName> {
        match self {
            Matter::Runway { account, .. } | Matter::Account { account, .. } | Matter::Unexplained { account, .. } => {
                Some(account)
            }
            _ => self.identity().map(|identity| &identity.account),
        }
    }

    pub fn severity(&self) -> Severity {
        match self {
            Matter::Guard { warning: Warning::Proposes { .. }, .. } => Severity::Money,
            Matter::Runway { .. }
            | Matter::NotDone { .. }
            | Matter::Reclaimed { .. }
            | Matter::HostKey { .. }
            | Matter::Guard { .. }
            | Matter::Unable { .. }
            | Matter::CopyOverdue { .. } => Severity::Urgent,
            Matter::Ending { deleted, .. } if *deleted => Severity::Urgent,
            Matter::Budget { threshold, .. } if *threshold < 80 => Severity::Note,
            Matter::Budget { .. }
            | Matter::Forecast { .. }
            | Matter::Burn { .. }
            | Matter::Idle { .. }
            | Matter::StoppedBilled { .. }
            | Matter::Unattached { .. }
            | Matter::Vanished { .. }
            | Matter::Cards { .. }
            | Matter::Unexplained { .. }
            | Matter::Lease { .. }
            | Matter::Account { .. } => Severity::Money,
            Matter::Ending { .. } | Matter::Repriced { .. } | Matter::Appeared { .. } | Matter::Channel { .. } => {
                Severity::Note
            }
        }
    }

    /// It is told again every hour until somebody has seen it.
    pub fn repeats(&self) -> bool {
        matches!(self, Matter::Runway { lost, .. } if !lost.is_empty())
    }

    /// It is told to every channel, whatever the channel is for: somebody must be able to forbid it.
    pub fn is_for_all(&self) -> bool {
        matches!(self, Matter::Guard { warning: Warning::Acts { .. }, .. })
    }

    /// It tells of something that happened, not of something that goes on: it ends by being seen, or by time.
    pub fn is_event(&self) -> bool {
        matches!(
            self,
            Matter::Repriced { .. }
                | Matter::Appeared { .. }
                | Matter::Vanished { .. }
                | Matter::Reclaimed { .. }
                | Matter::Budget { closed: Some(_), .. }
        )
    }

    /// What it costs an hour.
    pub fn rates(&self) -> &[Rate] {
        match self {
            Matter::Burn { burn, .. } => std::slice::from_ref(burn),
            Matter::Idle { rates, .. }
            | Matter::StoppedBilled { rates, .. }
            | Matter::Unattached { rates, .. }
            | Matter::NotDone { rates, .. }
            | Matter::Appeared { rates, .. }
            | Matter::Guard { rates, .. }
            | Matter::Lease { rates, .. } => rates,
            _ => &[],
        }
    }
}
