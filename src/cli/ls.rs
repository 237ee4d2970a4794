//! `rentop ls`: all instances and storage items, once.

use std::collections::BTreeSet;

use jiff::Timestamp;
use providers::model::{Attachment, Component, Instance, Market, Phase, Rates, StorageItem};
use providers::money::{Burn, Currency, Money, Rate};
use providers::usage::UsageSource;
use rust_decimal::Decimal;
use serde::Serialize;

use super::look::{told_trouble, visit};
use super::setup::Setup;
use super::table::{Table, print_json, verdict};
use super::{Common, Exit, Output, Stop};
use crate::app::rows::{project_of, shown_phase};
use crate::app::state::{State, World};
use crate::rules::fleet::{Account, Known};
use crate::rules::lease::{NextWhen, What};
use crate::rules::runway;
use crate::rules::spend::{Exact, RowSums};
use crate::rules::usage::Verdict;
use crate::runtime::clock;

pub fn run(common: &Common, output: Output) -> Result<Exit, Stop> {
    let setup = Setup::read(common)?;
    setup.need_accounts()?;
    let (now, state) = visit(&setup, async |errand| {
        // What each machine cost is in the books.
        errand.catch_up().await;
        Ok(clock::now())
    })?;
    let listing = Listing::of(&state, now);
    if output.json {
        print_json(&listing)?;
    } else {
        table(&listing, output.csv).print(output)?;
    }
    Ok(told_trouble(&setup, &state))
}

#[derive(Serialize)]
pub struct Listing {
    schema: &'static str,
    as_of: Timestamp,
    accounts: Vec<AccountLine>,
    instances: Vec<InstanceLine>,
    storage: Vec<StorageLine>,
    totals: Totals,
}

#[derive(Serialize)]
pub struct AccountLine {
    pub account: String,
    pub provider: String,
    pub freshness: &'static str,
    pub as_of: Option<Timestamp>,
    pub error: Option<String>,
    pub balance: Option<BalanceLine>,
    pub runway_hours: Option<String>,
}

#[derive(Serialize)]
pub struct BalanceLine {
    pub amount: String,
    pub voucher: Option<String>,
    pub currency: Currency,
}

#[derive(Serialize)]
struct InstanceLine {
    account: String,
    provider: String,
    id: String,
    name: Option<String>,
    phase: &'static str,
    provider_phase: Option<String>,
    missing_since: Option<Timestamp>,
    market: &'static str,
    reserved_until: Option<Timestamp>,
    gpu: Option<GpuLine>,
    rate: RateLine,
    created_at: Option<Timestamp>,
    started_at: Option<Timestamp>,
    usage: Option<UsageLine>,
    idle: IdleLine,
    spent: Option<SpentLine>,
    checkpoint: CheckpointLine,
    next: Option<NextLine>,
    ssh: Option<SshLine>,
    region: Option<String>,
    labels: std::collections::BTreeMap<String, String>,
    project: Option<String>,
    protected: bool,
    mine: bool,
}

#[derive(Serialize)]
struct GpuLine {
    model: String,
    count: u32,
    memory_gib: Option<u32>,
}

#[derive(Serialize)]
struct RateLine {
    total: Option<String>,
    compute: Option<String>,
    storage: Option<String>,
    other: Option<String>,
    estimated: bool,
    complete: bool,
    currency: Option<Currency>,
}

#[derive(Serialize)]
struct UsageLine {
    as_of: Timestamp,
    source: UsageSource,
    gpus: Vec<GpuUse>,
}

#[derive(Serialize)]
struct GpuUse {
    index: u32,
    utilization: Option<f64>,
    memory_used: Option<u64>,
    memory_total: Option<u64>,
    temperature_c: Option<f64>,
    power_watts: Option<f64>,
}

#[derive(Serialize)]
struct IdleLine {
    verdict: &'static str,
    since: Option<Timestamp>,
    waste: Option<IdleWaste>,
}

#[derive(Serialize)]
struct IdleWaste {
    amount: String,
    currency: Currency,
}

#[derive(Serialize)]
struct SpentLine {
    amount: String,
    /// When this rental begins in the books.
    since: Option<Timestamp>,
    assumed: String,
    currency: Currency,
}

#[derive(Serialize)]
struct CheckpointLine {
    verified_at: Option<Timestamp>,
}

#[derive(Serialize)]
struct NextLine {
    what: &'static str,
    /// `None` when it is known by a job's end, or nobody knows when.
    at: Option<Timestamp>,
}

#[derive(Serialize)]
struct SshLine {
    user: Option<String>,
    host: String,
    port: Option<u16>,
}

#[derive(Serialize)]
struct StorageLine {
    account: String,
    provider: String,
    id: String,
    name: Option<String>,
    kind: &'static str,
    size_gib: Option<serde_json::Number>,
    attached_to: Option<Vec<String>>,
    rate: StorageRate,
}

#[derive(Serialize)]
struct StorageRate {
    total: Option<String>,
    estimated: bool,
    complete: bool,
    currency: Option<Currency>,
}

#[derive(Serialize)]
struct Totals {
    burn: Vec<Amount>,
    burn_upper: Vec<Amount>,
    waste_burn: Vec<Amount>,
    prepaid: Vec<Amount>,
}

#[derive(Serialize)]
struct Amount {
    amount: String,
    currency: Currency,
}

impl Listing {
    pub fn of(state: &State, now: Timestamp) -> Self {
        let world = &state.world;
        let totals = world.fleet.burn();
        Listing {
            schema: "rentop.ls/1",
            as_of: now,
            accounts: world.fleet.accounts.iter().map(|account| account_line(world, account, now)).collect(),
            instances: world
                .fleet
                .instances
                .values()
                .filter(|known| !known.is_gone())
                .map(|known| instance_line(world, known, now))
                .collect(),
            storage: world
                .fleet
                .storage
                .values()
                .filter(|known| !known.is_gone())
                .map(|known| storage_line(world, known))
                .collect(),
            totals: Totals {
                burn: amounts(&totals.burn),
                burn_upper: amounts(&totals.upper),
                waste_burn: amounts(&totals.waste),
                prepaid: amounts(&totals.prepaid),
            },
        }
    }
}

fn amounts(burn: &Burn) -> Vec<Amount> {
    burn.rates().iter().map(|rate| Amount { amount: six(rate.amount()), currency: rate.currency }).collect()
}

/// A decimal of up to six places, half to even.
pub fn six(amount: Decimal) -> String {
    amount.round_dp(6).normalize().to_string()
}

/// Parts of up to six places that add up to their rounded total: what rounding leaves goes to the parts
/// that lost most by it.
fn six_parts(parts: [Rate; 3]) -> (String, [String; 3]) {
    const UNIT: i64 = 1_000_000;
    let total: i64 = parts.iter().map(Rate::picos).fold(0, i64::saturating_add);
    let currency = parts[0].currency;
    let rounded = Rate::from_picos(total, currency).amount().round_dp(6);
    let target = (rounded * Decimal::from(UNIT)).try_into().unwrap_or(total / UNIT);
    let mut units = parts.map(|part| part.picos() / UNIT);
    let mut by_rest = [0, 1, 2];
    by_rest.sort_by_key(|at| std::cmp::Reverse(parts[*at].picos() % UNIT));
    let missing: i64 = target - units.iter().sum::<i64>();
    for at in by_rest.into_iter().cycle().take(usize::try_from(missing).unwrap_or(0)) {
        units[at] += 1;
    }
    let text = |units: i64| Decimal::new(units, 6).normalize().to_string();
    (text(target), units.map(text))
}

pub fn account_line(world: &World, account: &Account, now: Timestamp) -> AccountLine {
    let balance = account.balance.as_ref().filter(|_| account.balance_error.is_none()).map(|balance| BalanceLine {
        amount: six(balance.value.cash.amount),
        voucher: balance.value.voucher.map(|voucher| six(voucher.amount)),
        currency: balance.value.cash.currency,
    });
    AccountLine {
        account: account.name.to_string(),
        provider: account.provider.to_string(),
        freshness: world.fleet.freshness(account, now).word(),
        as_of: account.as_of,
        error: account.trouble.as_ref().map(|trouble| trouble.value.line()),
        balance,
        runway_hours: runway::runway(&world.fleet, account)
            .map(|runway| runway.hours.round_dp(1).normalize().to_string()),
    }
}

/// What happens to it first by itself: a lease of ours, or the end that the provider set.
fn next(world: &World, known: &Known<Instance>) -> Option<NextLine> {
    let end = known.row.ends_at.map(|at| NextLine { what: "provider_end", at: Some(at) });
    let lease = world.next_of(&known.identity).map(|next| NextLine {
        what: match (next.when, next.what) {
            (NextWhen::Asks, _) => "lease_asks",
            (_, What::Stop) => "lease_stop",
            (_, What::Release) => "lease_release",
            (_, What::Start) => "lease_start",
        },
        at: if let NextWhen::At(at) = next.when { Some(at) } else { None },
    });
    match (lease, end) {
        (Some(lease), Some(end)) if lease.at.is_some_and(|at| Some(at) > end.at) => Some(end),
        (lease, end) => lease.or(end),
    }
}

fn instance_line(world: &World, known: &Known<Instance>, now: Timestamp) -> InstanceLine {
    let row = &known.row;
    let provider = world.fleet.account(&known.identity.account).map(|account| account.provider.clone());
    let provider = provider.unwrap_or_else(|| "".into());
    let (market, reserved_until) = match row.market {
        Market::OnDemand => ("on_demand", None),
        Market::Spot => ("spot", None),
        Market::Reserved { until } => ("reserved", until),
    };
    InstanceLine {
        account: known.identity.account.to_string(),
        id: row.id.to_string(),
        name: row.name.clone(),
        phase: shown_phase(known, world.operation_on(&known.identity)).word(),
        provider_phase: row.provider_phase.clone(),
        missing_since: known.missing_since,
        market,
        reserved_until,
        gpu: row.gpus.as_ref().map(|gpus| GpuLine {
            model: gpus.model.clone(),
            count: gpus.count,
            memory_gib: gpus.memory_gib,
        }),
        rate: rate_line(&known.rates()),
        created_at: row.created_at,
        started_at: row.started_at,
        usage: world.usage(known).map(|usage| UsageLine {
            as_of: usage.as_of,
            source: usage.source,
            gpus: usage
                .gpus
                .iter()
                .map(|gpu| GpuUse {
                    index: gpu.index,
                    utilization: gpu.utilization,
                    memory_used: gpu.memory_used_bytes,
                    memory_total: gpu.memory_total_bytes,
                    temperature_c: gpu.temperature_c,
                    power_watts: gpu.power_watts,
                })
                .collect(),
        }),
        idle: idle_line(world, known, now),
        spent: spent(world, known, now),
        checkpoint: CheckpointLine { verified_at: None },
        next: next(world, known),
        ssh: row.ssh.as_ref().map(|ssh| SshLine { user: ssh.user.clone(), host: ssh.host.clone(), port: ssh.port }),
        region: row.region.clone(),
        labels: row.labels.clone(),
        project: project_of(world, known).map(str::to_owned),
        protected: world.settings.protected(&provider, &known.identity, row),
        mine: world.settings.mine(&provider, &known.identity, row),
        provider: provider.to_string(),
    }
}

/// Whether it works. Waste is not known where that is not, or where it has no price.
fn idle_line(world: &World, known: &Known<Instance>, now: Timestamp) -> IdleLine {
    let (verdict, since) = match world.idleness(&known.identity) {
        Some(idleness) => (idleness.verdict, idleness.since),
        None if matches!(known.phase(), Phase::Running | Phase::Unreachable | Phase::Unknown) => {
            (Verdict::Unknown, None)
        }
        None => (Verdict::NotApplicable, None),
    };
    let waste = wasted(known, verdict, world.wasted(&known.identity, now));
    let waste = waste.map(|waste| IdleWaste { amount: six(waste.amount), currency: waste.currency });
    IdleLine { verdict: verdict.word(), since, waste }
}

/// What it cost since it does nothing, of what it was charged since then. `None` where that is not known, or where it
/// has no price or prices in several currencies.
fn wasted(known: &Known<Instance>, verdict: Verdict, charged: Option<Vec<(Currency, Exact)>>) -> Option<Money> {
    let burn = known.rates().upper();
    let [rate] = burn.rates() else { return None };
    let amount = match verdict {
        Verdict::Unknown => return None,
        Verdict::Idle => charged?.into_iter().find(|(currency, _)| *currency == rate.currency),
        _ => None,
    };
    Some(Money::new(amount.map_or(Decimal::ZERO, |(_, sum)| sum.amount()), rate.currency))
}

/// What the present rental cost so far; `None` while the books do not tell, or no price is known.
fn spent(world: &World, known: &Known<Instance>, now: Timestamp) -> Option<SpentLine> {
    let RowSums { rental, since, .. } = world.spending.row(&known.identity, now)?;
    let open = world.spending.meter.running().get(&known.identity);
    let open = open.map(|running| running.lines.as_slice()).unwrap_or_default();
    // What just began has cost nothing yet, in the currency of its price.
    let currencies: BTreeSet<Currency> = match rental.is_empty() {
        false => rental.0.keys().copied().collect(),
        true => open.iter().map(|line| line.rate.currency).collect(),
    };
    let [currency] = currencies.into_iter().collect::<Vec<_>>()[..] else { return None };
    let amounts = rental.of(currency);
    Some(SpentLine {
        amount: six(amounts.total().amount()),
        since: since.or_else(|| open.iter().map(|line| line.run_from).min()),
        assumed: six(amounts.assumed.amount()),
        currency,
    })
}

fn rate_line(rates: &Rates) -> RateLine {
    // A resource is charged in one currency; were it two, their sum would be no number.
    let currency = match rates.upper().rates() {
        [only] => Some(only.currency),
        _ => None,
    };
    const PARTS: [&[Component]; 3] = [
        &[Component::Compute],
        &[Component::Disk, Component::Storage, Component::Ip],
        &[Component::Traffic, Component::Other],
    ];
    // Where something is not known, a part without a line may be it: unknown, not free.
    let known = |part: &[Component]| rates.complete || rates.lines.iter().any(|line| part.contains(&line.component));
    let nothing = || (rates.lines.is_empty() && rates.complete).then(|| "0".to_owned());
    let (total, [compute, storage, other]) = match currency.filter(|_| !rates.lines.is_empty()) {
        Some(currency) => {
            let (total, texts) = six_parts(PARTS.map(|part| rates.of(part).of(currency)));
            let [compute, storage, other] = texts;
            let told = |part: usize, text: String| Some(text).filter(|_| known(PARTS[part]));
            (Some(total), [told(0, compute), told(1, storage), told(2, other)])
        }
        None => (nothing(), [nothing(), nothing(), nothing()]),
    };
    RateLine { total, compute, storage, other, estimated: rates.estimated(), complete: rates.complete, currency }
}

fn storage_line(world: &World, known: &Known<StorageItem>) -> StorageLine {
    let row = &known.row;
    let rate = rate_line(&known.rates());
    let provider = world.fleet.account(&known.identity.account).map(|account| account.provider.to_string());
    StorageLine {
        account: known.identity.account.to_string(),
        provider: provider.unwrap_or_default(),
        id: row.id.to_string(),
        name: row.name.clone(),
        kind: row.kind.word(),
        size_gib: row.size_gib.and_then(size_number),
        attached_to: attached_to(row),
        rate: StorageRate {
            total: rate.total,
            estimated: rate.estimated,
            complete: rate.complete,
            currency: rate.currency,
        },
    }
}

/// A size as a number of up to three places.
pub fn size_number(size: Decimal) -> Option<serde_json::Number> {
    serde_json::from_str(&size.round_dp(3).normalize().to_string()).ok()
}

/// The instances that use a storage item; `None` where that is not told.
pub fn attached_to(row: &StorageItem) -> Option<Vec<String>> {
    match &row.attachment {
        Attachment::To(ids) => Some(ids.iter().map(ToString::to_string).collect()),
        Attachment::Somewhere | Attachment::Unknown => None,
    }
}

/// One line each for people; for spreadsheets plain numbers, and nothing where nothing is known.
fn table(listing: &Listing, csv: bool) -> Table {
    let mut table = Table::new(&[
        "ACCOUNT",
        "PROVIDER",
        "ID",
        "NAME",
        "PHASE",
        "GPU",
        " UTIL",
        "IDLE",
        " RATE/H",
        "ESTIMATED",
        "CURRENCY",
        "REGION",
    ]);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| if csv { "" } else { "—" }.to_owned());
    let rate = |total: &Option<String>, estimated: bool| {
        let mark = if estimated && !csv { "~" } else { "" };
        or_dash(total.as_ref().map(|total| format!("{mark}{total}")))
    };
    let estimated = |estimated: bool| if estimated { "yes" } else { "no" }.to_owned();
    for line in &listing.instances {
        let gpu = line.gpu.as_ref().map(|gpu| format!("{}× {}", gpu.count, gpu.model));
        let known: Vec<f64> =
            line.usage.iter().flat_map(|usage| &usage.gpus).filter_map(|gpu| gpu.utilization).collect();
        let use_now = (!known.is_empty()).then(|| 100.0 * known.iter().sum::<f64>() / known.len() as f64);
        let use_now = use_now.map(|share| if csv { format!("{share:.0}") } else { format!("{share:.0} %") });
        table.row(vec![
            line.account.clone(),
            line.provider.clone(),
            line.id.clone(),
            or_dash(line.name.clone()),
            line.phase.to_owned(),
            or_dash(gpu),
            or_dash(use_now),
            verdict(line.idle.verdict, csv),
            rate(&line.rate.total, line.rate.estimated),
            estimated(line.rate.estimated),
            or_dash(line.rate.currency.map(|currency| currency.to_string())),
            or_dash(line.region.clone()),
        ]);
    }
    for line in &listing.storage {
        table.row(vec![
            line.account.clone(),
            line.provider.clone(),
            line.id.clone(),
            or_dash(line.name.clone()),
            line.kind.to_owned(),
            or_dash(line.size_gib.as_ref().map(|size| format!("{size} GiB"))),
            or_dash(None),
            or_dash(None),
            rate(&line.rate.total, line.rate.estimated),
            estimated(line.rate.estimated),
            or_dash(line.rate.currency.map(|currency| currency.to_string())),
            or_dash(None),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::rules::samples::{at, identity, instance, usd};

    #[test]
    fn rounded_parts_add_up_to_their_total() {
        let picos = [333_333_333_333, 333_333_433_333, 333_333_333_334];
        let (total, parts) = six_parts(picos.map(|picos| Rate::from_picos(picos, Currency::USD)));
        let sum: Decimal = parts.iter().map(|part| part.parse::<Decimal>().unwrap()).sum();
        assert_eq!(total, "1");
        assert_eq!(sum, total.parse::<Decimal>().unwrap());
    }

    #[test]
    fn nothing_known_is_null_and_known_to_be_free_is_zero() {
        assert_eq!(rate_line(&Rates::unknown()).total, None);
        assert_eq!(rate_line(&Rates::known()).total.as_deref(), Some("0"));
        let rate = Rate::from_picos(1_500_000_000_000, Currency::USD);
        let line = rate_line(&Rates::known().with(Component::Compute, rate));
        assert_eq!((line.compute.as_deref(), line.storage.as_deref()), (Some("1.5"), Some("0")));
        let line = rate_line(&Rates::known().with(Component::Compute, rate).with_missing());
        assert_eq!((line.total.as_deref(), line.compute.as_deref()), (Some("1.5"), Some("1.5")));
        assert_eq!((line.storage, line.other, line.complete), (None, None, false));
    }

    #[rstest]
    #[case::idle("2", Verdict::Idle, Some("3"), Some("3"))]
    #[case::idle_and_nothing_charged_yet("2", Verdict::Idle, Some("0"), Some("0"))]
    #[case::idle_and_nobody_knows("2", Verdict::Idle, None, None)]
    #[case::busy("2", Verdict::Busy, None, Some("0"))]
    #[case::waiting_is_a_hint("2", Verdict::Waiting, None, Some("0"))]
    #[case::not_known("2", Verdict::Unknown, Some("3"), None)]
    #[case::no_price("", Verdict::Idle, Some("3"), None)]
    fn waste_is_what_it_cost_since_it_does_nothing(
        #[case] price: &str,
        #[case] verdict: Verdict,
        #[case] charged: Option<&str>,
        #[case] expected: Option<&str>,
    ) {
        let mut row = instance("a", Phase::Running, if price.is_empty() { "1" } else { price });
        if price.is_empty() {
            row.rates = Rates::unknown();
        }
        let known = Known::new(identity("team", "a"), row, at("08:00:00"));
        let hour = |hourly| Exact::over(usd(hourly), at("08:00:00"), at("09:00:00"));
        let waste = wasted(&known, verdict, charged.map(|charged| vec![(Currency::USD, hour(charged))]));
        assert_eq!(waste.map(|waste| six(waste.amount)).as_deref(), expected);
    }

    proptest::proptest! {
        #[test]
        fn any_parts_add_up(a in 0i64..1_000_000_000_000_000, b in 0i64..1_000_000_000_000, c in 0i64..5_000_000) {
            let (total, parts) = six_parts([a, b, c].map(|picos| Rate::from_picos(picos, Currency::USD)));
            let sum: Decimal = parts.iter().map(|part| part.parse::<Decimal>().unwrap()).sum();
            proptest::prop_assert_eq!(sum, total.parse::<Decimal>().unwrap());
        }
    }
}
