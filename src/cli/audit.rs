//! `rentop audit`: what was done to instances, when, by whom, and how it ended.

use jiff::Timestamp;
use providers::model::{AccountName, ResourceId};
use providers::money::{Currency, Money};
use rust_decimal::Decimal;
use serde::Serialize;

use super::checkpoint::SavedLine;
use super::look::told_notices;
use super::ls::six;
use super::setup::{self, Kind, Program, Setup};
use super::table::{Table, print_json};
use super::{Common, Exit, Output, Stop, tell};
use crate::rules::saga::{Authority, Operation, Outcome, Step};
use crate::rules::savings::saved_since;
use crate::rules::spend::{Period, date_of};
use crate::runtime::clock;
use crate::ui::plain;
use crate::ui::text::Phrase;

/// So many of the latest actions are told.
const LATEST: u32 = 1000;

#[derive(Serialize)]
struct Listing {
    schema: &'static str,
    /// What stops, releases and deletions that were proven done this month, in the config's time zone, saved until now:
    /// what each saves per hour times the hours since, or until the provider would have ended the resource, or until it
    /// was started or stopped again. A currency at a time; empty when nothing did.
    saved_this_month: Vec<Amount>,
    actions: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    at: Timestamp,
    by: String,
    action: &'static str,
    account: AccountName,
    provider: String,
    id: ResourceId,
    name: String,
    /// How it was confirmed: countdown, yes, typed, lose_data, checkpoint.
    confirmed_by: &'static str,
    sent_at: Option<Timestamp>,
    /// The provider's answer in one line.
    answer: Option<String>,
    /// done, queued, not_sent, refused, unproven, not_saved, or the step of an action that is not ended.
    outcome: &'static str,
    detail: String,
    ended_at: Option<Timestamp>,
    /// What it saves per hour, a currency at a time; empty unless it is done.
    saves: Vec<Amount>,
    /// The verified checkpoint that it made; null without one.
    saved: Option<SavedLine>,
}

#[derive(Serialize)]
struct Amount {
    amount: String,
    currency: String,
}

pub fn run(common: &Common, output: Output) -> Result<Exit, Stop> {
    let setup = Setup::read(common)?;
    let runtime = setup::runtime()?;
    let told = runtime.block_on(async {
        let Program { performer, mut inbox, .. } = setup.program(Kind::OneShot)?;
        let actions = performer.keeper.audit(LATEST).await;
        performer.keeper.end(false);
        let actions = actions.ok_or_else(|| Stop::failed("the ledger did not answer"))?.map_err(Stop::failed)?;
        Ok((actions, std::iter::from_fn(|| inbox.ready()).collect()))
    });
    setup::end(runtime);
    let (actions, events) = told?;
    let exit = told_notices(&setup, events);
    let now = clock::now();
    let month = Period::month(date_of(now, &setup.config.timezone)).start(&setup.config.timezone);
    let saved = saved_since(&actions, month, now);
    let listing = Listing {
        schema: "rentop.audit/1",
        saved_this_month: saved.iter().map(|(currency, sum)| amount(sum.amount(), *currency)).collect(),
        actions: actions.iter().map(|operation| line(operation, &setup)).collect(),
    };
    if output.json {
        print_json(&listing)?;
        return Ok(exit);
    }
    let mut table = Table::new(&["AT", "BY", "ACTION", "ACCOUNT", "NAME", "ID", "OUTCOME", " SAVES/H", "DETAIL"]);
    for line in &listing.actions {
        let saves: Vec<String> =
            line.saves.iter().map(|saves| format!("{} {}", saves.amount, saves.currency)).collect();
        table.row(vec![
            line.at.to_zoned_datetime(setup.config.timezone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
            line.by.clone(),
            line.action.to_owned(),
            line.account.to_string(),
            line.name.clone(),
            line.id.to_string(),
            line.outcome.to_owned(),
            saves.join(" + "),
            line.detail.clone(),
        ]);
    }
    table.print(output)?;
    let look = setup.look();
    let saved = saved.into_iter().map(|(currency, sum)| Money::new(sum.amount(), currency)).collect();
    if let Some(money) = plain::amounts(saved, setup.config.currency, false, &look).filter(|_| !output.csv) {
        tell(format_args!("\n{}", setup.language.phrase(&Phrase::SavedThisMonth { money: &money })));
    }
    Ok(exit)
}

fn amount(amount: Decimal, currency: Currency) -> Amount {
    Amount { amount: six(amount), currency: currency.to_string() }
}

fn line(operation: &Operation, setup: &Setup) -> Line {
    let (outcome, ended_at) = match &operation.step {
        Step::Ended { at, outcome } => (
            match outcome {
                Outcome::Done { .. } => "done",
                Outcome::Queued(_) => "queued",
                Outcome::NotSent(_) => "not_sent",
                Outcome::Refused(_) => "refused",
                Outcome::Unproven => "unproven",
                Outcome::NotSaved(_) => "not_saved",
            },
            Some(*at),
        ),
        step => (step.word(), None),
    };
    let saves = if outcome == "done" { operation.target.saves() } else { Vec::new() };
    Line {
        at: operation.began_at,
        by: operation.by.clone(),
        action: operation.action.word(),
        account: operation.target.identity.account.clone(),
        provider: operation.target.provider.to_string(),
        id: operation.target.identity.id.clone(),
        name: operation.target.name.clone(),
        confirmed_by: match operation.authority {
            Authority::LosesNothing => "countdown",
            Authority::Confirmed => "yes",
            Authority::Typed(_) => "typed",
            Authority::LoseData => "lose_data",
            Authority::Saved => "checkpoint",
        },
        sent_at: operation.sent_at,
        answer: operation.answer.clone(),
        outcome,
        detail: plain::operation_line(operation, &setup.look(), clock::now()),
        ended_at,
        saves: saves.into_iter().map(|rate| amount(rate.amount(), rate.currency)).collect(),
        saved: operation.saved().map(|saved| SavedLine::of(&saved.proof)),
    }
}
