//! `rentop alerts`: what somebody should know of, and the answer to it.

use clap::Subcommand;
use jiff::{SignedDuration, SpanRelativeTo, Timestamp};
use providers::model::{AccountName, ResourceKind};
use serde::Serialize;

use super::budgets::minute;
use super::look::told_notices;
use super::setup::{self, Kind, Program, Setup};
use super::spend::books::answered;
use super::table::{Table, print_json};
use super::{Common, Exit, Output, Stop, tell};
use crate::rules::alerts::{About, Alert, Moot, Severity, Stage};
use crate::runtime::clock;
use crate::ui::text::alert_line;

#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct AlertsArgs {
    #[command(flatten)]
    pub output: Output,
    /// Also those that ended lately.
    #[arg(long)]
    pub all: bool,
    #[command(subcommand)]
    pub answer: Option<Answer>,
}

/// What a person says to alerts.
#[derive(Clone, Debug, Subcommand)]
pub enum Answer {
    /// Somebody has seen them: they are told no more, and stay open while they are so.
    Seen(Which),
    /// They are told again later.
    Snooze {
        #[command(flatten)]
        which: Which,
        /// After how long, such as 30m, 8h or 2d.
        #[arg(long = "for", value_name = "TIME", default_value = "8h", value_parser = time)]
        time: SignedDuration,
    },
}

#[derive(Clone, Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub struct Which {
    /// The ids, as `rentop alerts` tells them.
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// All that fire.
    #[arg(long)]
    pub all: bool,
}

pub(super) fn time(text: &str) -> Result<SignedDuration, String> {
    let days = SpanRelativeTo::days_are_24_hours();
    let span = text.parse::<jiff::Span>().ok().and_then(|span| span.to_duration(days).ok());
    let month = SignedDuration::from_hours(31 * 24);
    span.filter(|span| span.is_positive() && *span <= month)
        .ok_or_else(|| "no time of up to 31 days such as 30m or 8h".to_owned())
}

/// All alerts as scripts have them.
#[derive(Serialize)]
pub struct Listing {
    schema: &'static str,
    as_of: Timestamp,
    pub alerts: Vec<Line>,
}

#[derive(Serialize)]
pub struct Line {
    /// Names this alert for ever; for `seen` and `snooze`.
    id: String,
    /// budget, forecast, burn, runway, idle, and so on: the words of the config.
    kind: &'static str,
    /// pending, firing, acknowledged, snoozed, resolved
    state: &'static str,
    /// urgent, money, note
    severity: &'static str,
    /// What it is about; `null` what it is not about.
    account: Option<AccountName>,
    instance: Option<String>,
    storage: Option<String>,
    budget: Option<String>,
    channel: Option<String>,
    since: Timestamp,
    fired_at: Option<Timestamp>,
    snoozed_until: Option<Timestamp>,
    resolved_at: Option<Timestamp>,
    /// gone, changed, term_over, term_ahead: why it ended where what it told is not over; else `null`.
    ended_because: Option<&'static str>,
    /// One line in the language of the user.
    pub text: String,
}

pub fn run(common: &Common, args: &AlertsArgs) -> Result<Exit, Stop> {
    let setup = Setup::read(common)?;
    let runtime = setup::runtime()?;
    let told = runtime.block_on(async {
        let Program { performer, mut inbox, .. } = setup.program(Kind::OneShot)?;
        let asked = async {
            let mut alerts = answered(performer.keeper.remembered().await)?.alerts;
            if let Some(answer) = &args.answer {
                let answers = answer.to(&alerts, clock::now())?;
                performer.keeper.keep_alerts(answers.clone(), Vec::new());
                performer.keeper.reached().await;
                alerts = answers;
            }
            Ok::<_, Stop>(alerts)
        };
        let alerts = asked.await;
        performer.keeper.end(false);
        alerts.map(|alerts| (alerts, std::iter::from_fn(|| inbox.ready()).collect()))
    });
    setup::end(runtime);
    let (alerts, events) = told?;
    let exit = told_notices(&setup, events);
    // A line below the highest one is noted and tells nothing of its own.
    let is_noted = |alert: &Alert| alert.stage == Stage::Acknowledged && alert.fired_at.is_none();
    let shown = |alert: &&Alert| args.answer.is_some() || (!is_noted(alert) && (args.all || !is_ended(alert)));
    let listing = Listing::of(alerts.iter().filter(shown), &setup, clock::now());
    if args.output.json {
        print_json(&listing)?;
    } else if args.output.csv {
        listing.spreadsheet().print(args.output)?;
    } else if listing.alerts.is_empty() {
        tell(if args.answer.is_some() { "nothing fires" } else { "no alerts" });
    } else {
        listing.table(&setup).print(args.output)?;
    }
    Ok(exit)
}

fn is_ended(alert: &Alert) -> bool {
    matches!(alert.stage, Stage::Resolved { .. })
}

impl Answer {
    /// The alerts that are meant, as they are to be written down.
    fn to(&self, alerts: &[Alert], now: Timestamp) -> Result<Vec<Alert>, Stop> {
        let (which, stage) = match self {
            Answer::Seen(which) => (which, Stage::Acknowledged),
            Answer::Snooze { which, time } => (which, Stage::Snoozed { until: now + *time }),
        };
        let open: Vec<&Alert> = alerts.iter().filter(|alert| !is_ended(alert)).collect();
        if which.all {
            let firing = open.iter().filter(|alert| alert.stage == Stage::Firing);
            return Ok(firing.map(|alert| Alert { stage, ..(*alert).clone() }).collect());
        }
        let meant = which.ids.iter().map(|wanted| {
            let found = open.iter().find(|alert| id(alert) == *wanted);
            match found {
                None => Err(Stop::usage(format!(
                    "no open alert `{}`; `rentop alerts` lists them",
                    providers::text::clean(wanted)
                ))),
                Some(alert) if alert.stage == Stage::Pending => {
                    Err(Stop::usage(format!("`{wanted}` does not fire yet")))
                }
                Some(alert) => Ok(Alert { stage, ..(*alert).clone() }),
            }
        });
        meant.collect()
    }
}

/// FNV-1a over what names an alert for ever: the same in every version, since scripts hold it.
fn id(alert: &Alert) -> String {
    let topic = serde_json::to_string(&alert.topic).expect("a topic is plain data");
    let bytes = topic.bytes().chain(alert.since.as_microsecond().to_be_bytes());
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{:010x}", hash >> 24)
}

impl Listing {
    /// What matters most first, and of that the newest.
    pub fn of<'a>(alerts: impl Iterator<Item = &'a Alert>, setup: &Setup, now: Timestamp) -> Self {
        let mut alerts: Vec<&Alert> = alerts.collect();
        let newest = |alert: &Alert| std::cmp::Reverse(alert.fired_at.unwrap_or(alert.since));
        alerts.sort_by_key(|alert| (is_ended(alert), alert.matter.severity(), newest(alert)));
        let line = |alert: &Alert| line(alert, setup);
        Listing { schema: "rentop.alerts/1", as_of: now, alerts: alerts.into_iter().map(line).collect() }
    }

    fn table(&self, setup: &Setup) -> Table {
        let mut table = Table::new(&["ID", "STATE", "SINCE", "WHAT"]);
        for line in &self.alerts {
            let zone = &setup.config.timezone;
            let state = match line.snoozed_until {
                Some(until) => format!("{} until {}", line.state, minute(until, zone)),
                None => line.state.to_owned(),
            };
            table.row(vec![line.id.clone(), state, minute(line.since, zone), line.text.clone()]);
        }
        table
    }

    fn spreadsheet(&self) -> Table {
        let mut table = Table::new(&[
            "ID",
            "KIND",
            "STATE",
            "SEVERITY",
            "ACCOUNT",
            "INSTANCE",
            "STORAGE",
            "BUDGET",
            "CHANNEL",
            "SINCE",
            "FIRED_AT",
            "SNOOZED_UNTIL",
            "RESOLVED_AT",
            "ENDED_BECAUSE",
            "TEXT",
        ]);
        let or_empty = |text: &Option<String>| text.clone().unwrap_or_default();
        let time = |at: Option<Timestamp>| at.map(|at| at.to_string()).unwrap_or_default();
        for line in &self.alerts {
            table.row(vec![
                line.id.clone(),
                line.kind.to_owned(),
                line.state.to_owned(),
                line.severity.to_owned(),
                line.account.as_ref().map(ToString::to_string).unwrap_or_default(),
                or_empty(&line.instance),
                or_empty(&line.storage),
                or_empty(&line.budget),
                or_empty(&line.channel),
                line.since.to_string(),
                time(line.fired_at),
                time(line.snoozed_until),
                time(line.resolved_at),
                line.ended_because.unwrap_or_default().to_owned(),
                line.text.clone(),
            ]);
        }
        table
    }
}

fn line(alert: &Alert, setup: &Setup) -> Line {
    let resource = |kind| {
        let identity = alert.matter.identity().filter(|identity| identity.kind == kind);
        identity.map(|identity| identity.id.to_string())
    };
    let named = |of: fn(&About) -> Option<&String>| of(&alert.topic.about).cloned();
    Line {
        id: id(alert),
        kind: alert.topic.kind.word(),
        state: match alert.stage {
            Stage::Pending => "pending",
            Stage::Firing => "firing",
            Stage::Acknowledged => "acknowledged",
            Stage::Snoozed { .. } => "snoozed",
            Stage::Resolved { .. } => "resolved",
        },
        severity: match alert.matter.severity() {
            Severity::Urgent => "urgent",
            Severity::Money => "money",
            Severity::Note => "note",
        },
        account: alert.matter.account().cloned(),
        instance: resource(ResourceKind::Instance),
        storage: resource(ResourceKind::Storage),
        budget: named(|about| match about {
            About::Budget(name) => Some(name),
            _ => None,
        }),
        channel: named(|about| match about {
            About::Channel(name) => Some(name),
            _ => None,
        }),
        since: alert.since,
        fired_at: alert.fired_at,
        snoozed_until: match alert.stage {
            Stage::Snoozed { until } => Some(until),
            _ => None,
        },
        resolved_at: match alert.stage {
            Stage::Resolved { at } => Some(at),
            _ => None,
        },
        ended_because: alert.moot.map(Moot::word),
        text: alert_line(&alert.matter, setup.language, &setup.config.timezone),
    }
}
