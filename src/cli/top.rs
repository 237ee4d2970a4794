//! `rentop top`: every GPU, once, with what it does now.

use std::time::Duration;

use jiff::Timestamp;
use providers::model::{Instance, Phase};
use providers::usage::{GpuSample, UsageSource};
use serde::Serialize;

use super::look::{settled, told_trouble, visit_as};
use super::setup::{Kind, Setup};
use super::table::{Table, print_json, verdict};
use super::{Common, Exit, Output, Stop, warn};
use crate::app::state::State;
use crate::rules::fleet::Known;
use crate::rules::streams::{Consent, Link, Trouble};
use crate::rules::usage::Verdict;
use crate::runtime::clock;
use crate::ui::text::Phrase;

/// Machines have so long to answer.
const PROBING: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, clap::Args)]
pub struct TopArgs {
    #[command(flatten)]
    output: Output,
    /// Look into the machines over ssh this once, also of accounts that nobody allowed it for.
    #[arg(long)]
    ssh: bool,
}

pub fn run(common: &Common, args: &TopArgs) -> Result<Exit, Stop> {
    let mut setup = Setup::read(common)?;
    setup.need_accounts()?;
    if args.ssh {
        let unasked = setup.config.accounts.iter_mut().filter(|account| account.streams == Consent::Unasked);
        unasked.for_each(|account| account.streams = Consent::Yes);
    }
    let (now, state) = visit_as(&setup, Kind::Probe, async |errand| {
        let answered = errand.run_until(|state| state.world.streams.have_answered(&state.world.fleet));
        // Whoever has not answered by then is shown with what is known.
        if let Ok(failed) = tokio::time::timeout(PROBING, answered).await {
            failed.map_err(Stop::failed)?;
        }
        // What a link told may have made its account ask anew.
        errand.run_until(|state| settled(state, None, clock::now())).await.map_err(Stop::failed)?;
        Ok(clock::now())
    })?;
    let listing = Listing::of(&state, now);
    if args.output.json {
        print_json(&listing)?;
    } else {
        table(&listing, args.output.csv).print(args.output)?;
    }
    for (account, machines) in state.world.streams.to_ask(&state.world.fleet) {
        let phrase = Phrase::NotLookedInto { account: account.as_str(), machines };
        warn(format_args!("rentop: {}", setup.language.phrase(&phrase)));
    }
    let exit = told_trouble(&setup, &state);
    Ok(if told_links(&setup, &state) { exit } else { Exit::Partly })
}

/// Says on standard error which machines did not answer over `ssh`, and why. True when all did.
fn told_links(setup: &Setup, state: &State) -> bool {
    let mut all = true;
    for (identity, stream) in state.world.streams.iter() {
        let trouble = match &stream.link {
            Link::Live { .. } => continue,
            // It had its time.
            Link::Connecting { .. } => &Trouble::NoAnswer,
            Link::Down { trouble, .. } => trouble,
        };
        let known = state.world.fleet.instances.get(identity);
        let name = known.and_then(|known| known.row.name.as_deref()).unwrap_or(identity.id.as_str());
        warn(format_args!("rentop: {}/{name}: ssh: {}", identity.account, setup.language.link_trouble(trouble)));
        all = false;
    }
    all
}

#[derive(Serialize)]
struct Listing {
    schema: &'static str,
    as_of: Timestamp,
    gpus: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    account: String,
    provider: String,
    id: String,
    name: Option<String>,
    /// `None` where one figure stands for all of its cards.
    index: Option<u32>,
    /// How many cards the line is about.
    count: u32,
    model: Option<String>,
    utilization: Option<f64>,
    memory_used: Option<u64>,
    memory_total: Option<u64>,
    temperature_c: Option<f64>,
    power_watts: Option<f64>,
    fault: Option<String>,
    as_of: Option<Timestamp>,
    source: Option<UsageSource>,
    idle: &'static str,
}

impl Listing {
    fn of(state: &State, now: Timestamp) -> Self {
        // Whoever was asked is shown, also when it did not answer and nobody else knows whether it runs.
        let asked = |known: &Known<Instance>| !known.is_gone() && state.world.streams.get(&known.identity).is_some();
        let running =
            |known: &&Known<Instance>| matches!(known.phase(), Phase::Running | Phase::Unreachable) || asked(known);
        let instances = state.world.fleet.instances.values().filter(running);
        Listing { schema: "rentop.top/1", as_of: now, gpus: instances.flat_map(|known| lines(state, known)).collect() }
    }
}

/// A line a card; of what tells nothing, a line for each card that is rented.
fn lines(state: &State, known: &Known<Instance>) -> Vec<Line> {
    let world = &state.world;
    let usage = world.usage(known);
    let rented = known.row.gpus.as_ref();
    let verdict = world.idleness(&known.identity).map_or(Verdict::Unknown, |idleness| idleness.verdict);
    let provider = world.fleet.account(&known.identity.account).map(|account| account.provider.to_string());
    let line = |index: Option<u32>, count: u32, gpu: &GpuSample| Line {
        account: known.identity.account.to_string(),
        provider: provider.clone().unwrap_or_default(),
        id: known.row.id.to_string(),
        name: known.row.name.clone(),
        index,
        count,
        model: gpu.model.clone().or_else(|| rented.map(|gpus| gpus.model.clone())),
        utilization: gpu.utilization,
        memory_used: gpu.memory_used_bytes,
        memory_total: gpu.memory_total_bytes,
        temperature_c: gpu.temperature_c,
        power_watts: gpu.power_watts,
        fault: gpu.fault.clone(),
        as_of: usage.map(|usage| usage.as_of),
        source: usage.map(|usage| usage.source),
        idle: verdict.word(),
    };
    let cards = rented.map_or(0, |gpus| gpus.count);
    match usage.map(|usage| (usage.averaged, &usage.gpus[..])) {
        Some((true, [average])) => vec![line(None, cards, average)],
        Some((_, seen @ [_, ..])) => seen.iter().map(|gpu| line(Some(gpu.index), 1, gpu)).collect(),
        Some((_, [])) | None => (0..cards).map(|index| line(Some(index), 1, &GpuSample::default())).collect(),
    }
}

/// For people; for spreadsheets plain numbers, and nothing where nothing is known.
fn table(listing: &Listing, csv: bool) -> Table {
    let mut table =
        Table::new(&["ACCOUNT", "NAME", "GPU", "CARD", " UTIL", " MEMORY", " TEMP", " POWER", "SOURCE", "IDLE"]);
    let unknown = || if csv { "" } else { "—" }.to_owned();
    let figure = |number: Option<f64>, unit: &str| match number {
        Some(number) if csv => format!("{number:.0}"),
        Some(number) => format!("{number:.0} {unit}"),
        None => unknown(),
    };
    let gib = |bytes: u64| bytes as f64 / f64::from(1u32 << 30);
    for line in &listing.gpus {
        let memory = match (line.memory_used, line.memory_total) {
            (Some(used), _) if csv => format!("{:.1}", gib(used)),
            (Some(used), Some(total)) => format!("{:.1}/{:.0} GiB", gib(used), gib(total)),
            (Some(used), None) => format!("{:.1} GiB", gib(used)),
            (None, _) => unknown(),
        };
        let source = line.source.map(|source| match source {
            UsageSource::Provider => "provider",
            UsageSource::Ssh => "ssh",
        });
        table.row(vec![
            line.account.clone(),
            line.name.clone().unwrap_or_else(|| line.id.clone()),
            line.index.map_or_else(|| format!("all {}", line.count), |index| index.to_string()),
            line.model.clone().unwrap_or_else(unknown),
            figure(line.utilization.map(|share| 100.0 * share), "%"),
            memory,
            figure(line.temperature_c, "°C"),
            figure(line.power_watts, "W"),
            line.fault.clone().or_else(|| source.map(str::to_owned)).unwrap_or_else(unknown),
            verdict(line.idle, csv),
        ]);
    }
    table
}
