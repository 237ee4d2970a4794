//! `rentop storage`: what costs without working, once.

use std::collections::BTreeMap;

use jiff::Timestamp;
use providers::model::{Identity, Refusal, ResourceKind};
use providers::money::Currency;
use serde::Serialize;

use super::look::{look, told_trouble};
use super::ls::{attached_to, six, size_number};
use super::setup::Setup;
use super::table::{Table, print_json};
use super::{Common, Exit, Output, Stop, tell};
use crate::app::state::{State, World};
use crate::rules::fleet::{Known, Row as Resource};
use crate::rules::plan::Hindrance;
use crate::rules::upkeep::{Kind, Note, Row, Since, Standing, Sum, Upkeep, month, upkeep};
use crate::ui::text::Word;
use crate::ui::{Look, format, plain};

pub fn run(common: &Common, output: Output) -> Result<Exit, Stop> {
    let setup = Setup::read(common)?;
    setup.need_accounts()?;
    let (state, now) = look(&setup)?;
    let world = &state.world;
    let under_way = world.busy(providers::model::Action::Delete);
    let found = upkeep(world.basis(&under_way, now));
    if output.json {
        print_json(&Listing::of(world, &found, now))?;
    } else if output.csv {
        spreadsheet(world, &found).print(output)?;
    } else {
        let look = setup.look();
        table(&state, &found, &look, now).print(output)?;
        let mut lines = plain::upkeep_sums(&found, &look, setup.config.currency);
        if found.rows.is_empty() {
            lines.insert(0, setup.language.word(Word::NothingIdle).to_owned());
        }
        lines.into_iter().for_each(tell);
    }
    Ok(told_trouble(&setup, &state))
}

#[derive(Serialize)]
struct Listing {
    schema: &'static str,
    as_of: Timestamp,
    storage: Vec<Line>,
    /// One for each sum and currency.
    totals: Vec<TotalLine>,
}

#[derive(Serialize)]
struct Line {
    account: String,
    provider: String,
    id: String,
    name: Option<String>,
    /// `instance`, or what a storage item is.
    kind: &'static str,
    /// Of an instance.
    phase: Option<&'static str>,
    /// waste, with_stopped, perhaps_used, paid_ahead
    standing: &'static str,
    size_gib: Option<serde_json::Number>,
    created_at: Option<Timestamp>,
    first_seen_at: Option<Timestamp>,
    missing_since: Option<Timestamp>,
    region: Option<String>,
    /// Ids of instances; `null` for an instance, and where it is not told.
    attached_to: Option<Vec<String>>,
    per_hour: Option<String>,
    per_month: Option<String>,
    estimated: bool,
    certain: bool,
    complete: bool,
    currency: Option<Currency>,
    notes: Vec<&'static str>,
    labels: BTreeMap<String, String>,
    protected: bool,
    mine: bool,
    /// Whether ending it loses data; `null` where that is not offered.
    loses_data: Option<bool>,
    /// Why it cannot be ended now.
    hindrance: Option<&'static str>,
    proposable: bool,
}

#[derive(Serialize)]
struct TotalLine {
    /// That of its rows, or `working` for storage in use, which has none.
    standing: &'static str,
    /// How many resources stand so, in whatever currency.
    count: usize,
    /// What is surely charged.
    per_hour: Option<String>,
    per_month: Option<String>,
    estimated: bool,
    complete: bool,
    currency: Option<Currency>,
}

impl Listing {
    fn of(world: &World, found: &Upkeep, now: Timestamp) -> Self {
        let standings = [Standing::Waste, Standing::WithStopped, Standing::PerhapsUsed, Standing::PaidAhead];
        let sums = standings.map(|standing| (standing.word(), found.sum(standing)));
        Listing {
            schema: "rentop.storage/1",
            as_of: now,
            storage: found.rows.iter().map(|row| line(world, row)).collect(),
            totals: sums.into_iter().chain([("working", &found.working)]).flat_map(total_lines).collect(),
        }
    }
}

/// A line for each currency; one without an amount where things stand so and nothing is surely charged.
fn total_lines((standing, sum): (&'static str, &Sum)) -> Vec<TotalLine> {
    let (count, estimated, complete) = (sum.count, sum.estimated, !sum.incomplete);
    let rates = sum.certain.rates();
    if rates.is_empty() && count > 0 {
        return vec![TotalLine {
            standing,
            count,
            per_hour: None,
            per_month: None,
            estimated,
            complete,
            currency: None,
        }];
    }
    let line = |rate: &providers::money::Rate| TotalLine {
        standing,
        count,
        per_hour: Some(six(rate.amount())),
        per_month: Some(six(month(*rate).amount)),
        estimated,
        complete,
        currency: Some(rate.currency),
    };
    rates.iter().map(line).collect()
}

fn line(world: &World, row: &Row) -> Line {
    let Seen { labels, first_seen, attached_to } = Seen::of(world, &row.identity);
    let charge = Charge::of(row);
    Line {
        account: row.identity.account.to_string(),
        provider: row.provider.to_string(),
        id: row.identity.id.to_string(),
        name: row.name.clone(),
        kind: row.kind.word(),
        phase: match row.kind {
            Kind::Instance(phase) => Some(phase.word()),
            Kind::Storage(_) => None,
        },
        standing: row.standing.word(),
        size_gib: row.size_gb.and_then(size_number),
        created_at: created_at(row),
        first_seen_at: first_seen,
        missing_since: row.notes.iter().find_map(|note| match note {
            Note::MissingSince(at) => Some(*at),
            _ => None,
        }),
        region: row.region.clone(),
        attached_to,
        per_hour: charge.per_hour,
        per_month: charge.per_month,
        estimated: row.rates.estimated(),
        certain: row.certain(),
        complete: row.rates.complete,
        currency: charge.currency,
        notes: row.notes.iter().map(Note::word).collect(),
        labels,
        protected: row.notes.contains(&Note::Protected),
        mine: !row.notes.contains(&Note::NotMine),
        loses_data: row.effect.as_ref().map(providers::model::Effect::loses_data),
        hindrance: row.hindrance.as_ref().map(hindrance),
        proposable: row.proposable,
    }
}

/// What a row's resource tells beside it.
#[derive(Default)]
struct Seen {
    labels: BTreeMap<String, String>,
    first_seen: Option<Timestamp>,
    attached_to: Option<Vec<String>>,
}

impl Seen {
    fn of(world: &World, identity: &Identity) -> Self {
        fn seen<T: Resource>(known: &Known<T>, attached_to: Option<Vec<String>>) -> Seen {
            Seen { labels: known.row.labels().clone(), first_seen: Some(known.first_seen), attached_to }
        }
        let found = match identity.kind {
            ResourceKind::Instance => world.fleet.instances.get(identity).map(|known| seen(known, None)),
            ResourceKind::Storage => {
                world.fleet.storage.get(identity).map(|known| seen(known, attached_to(&known.row)))
            }
        };
        found.unwrap_or_default()
    }
}

/// The charges of a row as plain numbers: none where nothing is known, or where they are of two currencies
/// and their sum would be no number.
#[derive(Default)]
struct Charge {
    per_hour: Option<String>,
    per_month: Option<String>,
    currency: Option<Currency>,
}

impl Charge {
    fn of(row: &Row) -> Self {
        match row.hourly().rates() {
            [only] => Charge {
                per_hour: Some(six(only.amount())),
                per_month: Some(six(month(*only).amount)),
                currency: Some(only.currency),
            },
            _ => Charge::default(),
        }
    }
}

fn created_at(row: &Row) -> Option<Timestamp> {
    match row.since {
        Since::Created(at) => Some(at),
        Since::FirstSeen(_) => None,
    }
}

fn hindrance(hindrance: &Hindrance) -> &'static str {
    match hindrance {
        Hindrance::Provider(Refusal::NotOffered) => "not_offered",
        Hindrance::Provider(Refusal::NoApi) => "no_api",
        Hindrance::Provider(Refusal::WrongPhase) => "wrong_phase",
        Hindrance::Provider(Refusal::Locked) => "locked",
        Hindrance::Provider(Refusal::InUse) => "in_use",
        Hindrance::Provider(Refusal::ManagedElsewhere) => "managed_elsewhere",
        Hindrance::Provider(Refusal::Told(_)) => "refused",
        Hindrance::ReadOnly => "read_only",
        Hindrance::ReadOnlyAccount => "read_only_account",
        Hindrance::NotThere => "not_there",
        Hindrance::UnderWay => "under_way",
        Hindrance::Protected => "protected",
        Hindrance::NotMine => "not_mine",
        Hindrance::AccountInTrouble => "account_in_trouble",
        Hindrance::NoRecipe => "no_recipe",
        Hindrance::CannotBeRead => "cannot_be_read",
        Hindrance::NoAddress => "no_address",
    }
}

/// What a row is, in the word of `--json`; of an instance its phase.
fn what(row: &Row) -> &'static str {
    match row.kind {
        Kind::Instance(phase) => phase.word(),
        Kind::Storage(kind) => kind.word(),
    }
}

/// For people: figures as on the screen, notes in their language.
fn table(state: &State, found: &Upkeep, look: &Look, now: Timestamp) -> Table {
    let fixed = &state.view.fixed;
    let mut table = Table::new(&["ACCOUNT", "PROVIDER", "ID", "NAME", "WHAT", " SIZE", " AGE", " MONTH", "NOTE"]);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "—".to_owned());
    for row in &found.rows {
        let at_least = if matches!(row.since, Since::FirstSeen(_)) { "+" } else { "" };
        let month = plain::amounts(row.monthly(), fixed.currency, !row.rates.complete, look);
        let mark = if row.rates.estimated() || !row.certain() { "~" } else { "" };
        let notes: Vec<String> =
            row.notes.iter().map(|note| plain::upkeep_note(note, look, &fixed.zone, now)).collect();
        table.row(vec![
            row.identity.account.to_string(),
            row.provider.to_string(),
            row.identity.id.to_string(),
            or_dash(row.name.clone()),
            what(row).to_owned(),
            or_dash(row.size_gb.map(format::gigabytes)),
            format!("{}{at_least}", format::age(row.since.age(now), look.language)),
            or_dash(month.map(|month| format!("{mark}{month}"))),
            notes.join(look.language.word(Word::Semicolon)),
        ]);
    }
    table
}

/// For spreadsheets: plain numbers and words, and nothing where nothing is known.
fn spreadsheet(world: &World, found: &Upkeep) -> Table {
    let mut table = Table::new(&[
        "ACCOUNT",
        "PROVIDER",
        "ID",
        "NAME",
        "KIND",
        "PHASE",
        "STANDING",
        "SIZE",
        "CREATED_AT",
        "FIRST_SEEN_AT",
        "PER_HOUR",
        "PER_MONTH",
        "ESTIMATED",
        "CERTAIN",
        "COMPLETE",
        "CURRENCY",
        "NOTES",
    ]);
    let or_empty = |text: Option<String>| text.unwrap_or_default();
    let yes = |holds: bool| if holds { "yes" } else { "no" }.to_owned();
    for line in found.rows.iter().map(|row| line(world, row)) {
        table.row(vec![
            line.account,
            line.provider,
            line.id,
            or_empty(line.name),
            line.kind.to_owned(),
            line.phase.unwrap_or_default().to_owned(),
            line.standing.to_owned(),
            or_empty(line.size_gib.map(|size| size.to_string())),
            or_empty(line.created_at.map(|at| at.to_string())),
            or_empty(line.first_seen_at.map(|at| at.to_string())),
            or_empty(line.per_hour),
            or_empty(line.per_month),
            yes(line.estimated),
            yes(line.certain),
            yes(line.complete),
            or_empty(line.currency.map(|currency| currency.to_string())),
            line.notes.join(" "),
        ]);
    }
    table
}
