//! `rentop export --focus`: the books as a CSV file in the columns of FOCUS 1.2, the FinOps Open Cost and Usage
//! Specification (<https://focus.finops.org>, read 2026-11-30).
//!
//! One row for each day, resource, component, project, rate and evidence. `BilledCost` is what the provider says
//! that it charged, and 0 for what only we computed: the sum of it is comparable with invoices. `EffectiveCost`
//! holds both. Columns of our own begin with `x_`.

mod columns;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use providers::model::{AccountName, Component, Identity, Market, ProviderName, StorageKind};
use providers::money::Currency;

use super::look::{told_trouble, visit};
use super::period::Days;
use super::setup::Setup;
use super::spend::books::{answered, at_one_moment, meter, providers as providers_of};
use super::table::print_csv;
use super::{Common, Exit, Stop};
use crate::app::state::World;
use crate::rules::memory::{AccountMemory, Memory, Past};
use crate::rules::spend::{Billable, Charge, Entry, Evidence, Exact, Period, Question, by_day, date_of};
use crate::runtime::clock;
use crate::runtime::keeper::Keeper;

#[derive(Clone, Debug, clap::Args)]
pub struct ExportArgs {
    /// CSV in the columns of FOCUS 1.2; the only form that there is.
    #[arg(long, required = true)]
    pub focus: bool,
    #[command(flatten)]
    pub days: Days,
}

pub fn run(common: &Common, args: &ExportArgs) -> Result<Exit, Stop> {
    let setup = Setup::read(common)?;
    setup.need_accounts()?;
    let period = args.days.period(date_of(clock::now(), &setup.config.timezone))?;
    let (charges, state) = visit(&setup, async |errand| {
        let keeper = errand.keeper();
        let ((entries, past), memory) =
            at_one_moment(keeper, async || Ok((entries(keeper, period).await?, answered(keeper.past().await)?)))
                .await?;
        Ok(Charges::of(entries, &past, &memory, &errand.state.world, period, clock::now()))
    })?;
    print_csv(columns::records(&charges))?;
    Ok(told_trouble(&setup, &state))
}

/// Whose each entry is.
type Owned = (AccountName, Billable, Entry);

/// Everything that is closed in a period, entry by entry.
async fn entries(keeper: &Keeper, period: Period) -> Result<Vec<Owned>, Stop> {
    let resources = answered(keeper.spend(Question::Resources(period)).await)?.cells;
    let mut billables: Vec<(AccountName, Billable)> =
        resources.into_iter().filter_map(|cell| Some((cell.account, cell.billable?))).collect();
    billables.sort();
    billables.dedup();
    let mut entries = Vec::new();
    for (account, billable) in billables {
        let question = Question::Entries { account: account.clone(), billable: billable.clone(), period };
        let answer = answered(keeper.spend(question).await)?;
        entries.extend(answer.entries.into_iter().map(|entry| (account.clone(), billable.clone(), entry)));
    }
    Ok(entries)
}

/// What tells one row from another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    day: Date,
    account: AccountName,
    /// The resource, or the provider's own name of the product.
    what: Result<Identity, String>,
    component: Component,
    project: Option<Arc<str>>,
    charge: Charge,
    wasted: bool,
    evidence: Evidence,
    currency: Currency,
    /// In 1e-12 an hour; `None` for an amount that is no rate over a time.
    rate: Option<i64>,
}

/// How much stands in one row.
#[derive(Clone, Copy, Debug, Default)]
struct Charged {
    amount: Exact,
    ms: i64,
    gpu_ms: i64,
}

/// What is known of a resource, gone or not.
#[derive(Clone, Debug, Default)]
struct Known {
    name: Option<String>,
    region: Option<String>,
    kind: Option<StorageKind>,
    spot: bool,
    labels: BTreeMap<String, String>,
}

/// All rows of the file.
struct Charges {
    zone: TimeZone,
    rows: BTreeMap<Place, Charged>,
    known: BTreeMap<Identity, Known>,
    providers: BTreeMap<AccountName, ProviderName>,
    /// What each provider calls the account, where it tells.
    tenants: BTreeMap<AccountName, String>,
}

impl Charges {
    fn of(entries: Vec<Owned>, past: &Past, memory: &Memory, world: &World, period: Period, now: Timestamp) -> Self {
        let tenant = |account: &AccountMemory| Some((account.name.clone(), account.tenant.as_ref()?.id.clone()));
        let mut charges = Charges {
            zone: world.spending.zone.clone(),
            rows: BTreeMap::new(),
            known: known(past),
            providers: providers_of(memory, world),
            tenants: past.accounts.iter().filter_map(tenant).collect(),
        };
        for (account, billable, entry) in entries.into_iter().filter(|(_, _, entry)| !entry.replaced) {
            charges.add(account, billable, &entry, period);
        }
        for span in meter(memory, world).open_spans(now) {
            let (account, amount) = (span.identity.account.clone(), span.amount());
            let billable = Billable::Resource { identity: span.identity, name: None };
            let entry = Entry {
                from: span.from,
                to: span.to,
                terms: span.terms,
                evidence: span.evidence,
                replaced: false,
                rate: Some(span.rate),
                amount,
                currency: span.rate.currency,
            };
            charges.add(account, billable, &entry, period);
        }
        charges
    }

    /// Adds an entry, cut into the days of the period that it covers. What may have been charged is no charge.
    fn add(&mut self, account: AccountName, billable: Billable, entry: &Entry, period: Period) {
        if entry.terms.charge == Charge::Possible {
            return;
        }
        let what = match billable {
            Billable::Resource { identity, .. } => Ok(identity),
            Billable::Product(product) => Err(product),
        };
        let (from, to) = (entry.from, entry.to);
        let moment = (from == to).then(|| (date_of(from, &self.zone), from, to));
        let days: Vec<_> = moment.into_iter().chain(by_day(from, to, &self.zone)).collect();
        for (day, start, end) in days.into_iter().filter(|(day, _, _)| period.contains(*day)) {
            let amount = match moment {
                Some(_) => entry.amount,
                None => entry.amount.until(end, from, to) - entry.amount.until(start, from, to),
            };
            let ms = end.as_millisecond() - start.as_millisecond();
            let place = Place {
                day,
                account: account.clone(),
                what: what.clone(),
                component: entry.terms.component,
                project: entry.terms.project.clone(),
                charge: entry.terms.charge,
                wasted: entry.terms.wasted,
                evidence: entry.evidence,
                currency: entry.currency,
                rate: entry.rate.map(|rate| rate.picos()),
            };
            let charged = self.rows.entry(place).or_default();
            charged.amount += amount;
            charged.ms += ms;
            charged.gpu_ms += i64::from(entry.terms.gpus) * ms;
        }
    }
}

/// What was last seen of every resource.
fn known(past: &Past) -> BTreeMap<Identity, Known> {
    let instances = past.instances.iter().map(|known| {
        let row = &known.row;
        let spot = row.market == Market::Spot;
        let (name, region, labels) = (row.name.clone(), row.region.clone(), row.labels.clone());
        (known.identity.clone(), Known { name, region, kind: None, spot, labels })
    });
    let storage = past.storage.iter().map(|known| {
        let row = &known.row;
        let (name, region, labels) = (row.name.clone(), row.region.clone(), row.labels.clone());
        (known.identity.clone(), Known { name, region, kind: Some(row.kind), spot: false, labels })
    });
    instances.chain(storage).collect()
}
