//! `rentop spend --apply-projects`: the config's present project rules count for what was spent before.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal};
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::{Date, date};
use providers::model::{AccountName, Identity, ProviderName};
use providers::money::{Currency, Money};

use super::books::{answered, at_one_moment, meter, providers as providers_of};
use crate::app::Event;
use crate::app::event::{Intent, WorldEvent};
use crate::app::state::World;
use crate::cli::act::ask;
use crate::cli::look::{told_trouble, visit};
use crate::cli::setup::Setup;
use crate::cli::{Exit, Stop, period, tell, warn};
use crate::rules::fleet::{Known, Row};
use crate::rules::memory::{Collector, LedgerNotice, Memory, Past};
use crate::rules::spend::{Answer, Assignment, Billable, Cell, Period, Question, Sums, open_cells, start_of};
use crate::runtime::clock;
use crate::runtime::errand::Errand;
use crate::ui::text::Below;
use crate::ui::{Look, format};

/// Long before any ledger.
const EVER: Date = date(1970, 1, 1);

type Project = Option<Arc<str>>;

pub fn run(setup: &Setup, from: Option<&str>, yes: bool, today: Date) -> Result<Exit, Stop> {
    let from = from.map(|text| period::read("--from", text, today)).transpose()?.map(|period| period.from);
    let look = setup.look();
    let (exit, state) = visit(setup, async |errand| apply(errand, from, yes, today, &look).await)?;
    Ok(exit.max(told_trouble(setup, &state)))
}

async fn apply(errand: &mut Errand, from: Option<Date>, yes: bool, today: Date, look: &Look) -> Result<Exit, Stop> {
    // Whoever collects holds the open lines in memory, and would write them down again as they were.
    if let Some(Collector::Other { owner, .. }) = &errand.state.world.collector {
        let message = format!("{} ({}) collects: end it first, nothing was changed", owner.host, owner.pid);
        return Err(Stop::refused(message));
    }
    let keeper = errand.keeper();
    let period = Period { from: from.unwrap_or(EVER), to: Period::day(today).to };
    let ((past, answer), memory) = at_one_moment(keeper, async || {
        Ok((answered(keeper.past().await)?, answered(keeper.spend(Question::Resources(period)).await)?))
    })
    .await?;
    let change = Change::of(&past, answer, &memory, &errand.state.world, period, clock::now());
    if change.belongs.is_empty() {
        tell("nothing changes: all that was spent belongs where the rules say");
        return Ok(Exit::Done);
    }
    change.lines(look).into_iter().for_each(warn);
    if !yes {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Err(Stop::refused("nobody is there to be asked; add --yes if that is meant"));
        }
        if !matches!(ask("[y/N]")?.to_lowercase().as_str(), "y" | "yes" | "是") {
            return Err(Stop::refused("nothing was changed"));
        }
    }
    let since = from.map(|from| start_of(from, &errand.state.world.spending.zone));
    let count = change.belongs.len();
    let assignments = change.belongs.into_iter().map(|(identity, project)| Assignment {
        identity,
        from: since,
        project: project.map(|project| project.to_string()),
    });
    let intent = Intent::AssignAll(assignments.collect());
    errand.take(Event::World(WorldEvent::Intent(intent)));
    errand.catch_up().await;
    let written = |notice: &LedgerNotice| matches!(notice, LedgerNotice::NotWritable { .. });
    if errand.state.world.ledger_notices.iter().any(written) {
        return Err(Stop::failed("the books could not be written; `rentop spend` shows what they hold"));
    }
    tell(format_args!("done: the spend of {}", resources(count)));
    Ok(Exit::Done)
}

fn resources(count: usize) -> String {
    if count == 1 { "1 resource".to_owned() } else { format!("{count} resources") }
}

/// What the rules would change.
struct Change {
    /// Where each resource belongs whose spend stands elsewhere.
    belongs: BTreeMap<Identity, Project>,
    /// What moves from one project to another.
    moves: BTreeMap<(Project, Project), (BTreeSet<Identity>, Sums)>,
}

impl Change {
    fn of(past: &Past, answer: Answer, memory: &Memory, world: &World, period: Period, now: Timestamp) -> Self {
        let providers = providers_of(memory, world);
        let rules: BTreeMap<Identity, Project> =
            ruled(&past.instances, &providers, world).chain(ruled(&past.storage, &providers, world)).collect();
        let mut cells = answer.cells;
        cells.extend(open_cells(&meter(memory, world), period, true, &world.spending.zone, now));
        let mut change = Change { belongs: BTreeMap::new(), moves: BTreeMap::new() };
        for cell in &cells {
            change.note(cell, &rules);
        }
        change
    }

    fn note(&mut self, cell: &Cell, rules: &BTreeMap<Identity, Project>) {
        let Some(Billable::Resource { identity, .. }) = &cell.billable else { return };
        let Some(project) = rules.get(identity).filter(|project| **project != cell.terms.project) else { return };
        self.belongs.insert(identity.clone(), project.clone());
        let step = (cell.terms.project.clone(), project.clone());
        let (moved, sums) = self.moves.entry(step).or_default();
        moved.insert(identity.clone());
        sums.add_cell(cell);
    }

    fn lines(&self, look: &Look) -> Vec<String> {
        let name = |project: &Project| match project {
            Some(project) => project.to_string(),
            None => look.language.below(Below::NoProject),
        };
        let money = |(currency, amount): (&Currency, _)| format::money(Money::new(amount, *currency), look.glyphs);
        let line = |((from, to), (moved, sums)): (&(Project, Project), &(BTreeSet<Identity>, Sums))| {
            let amounts: Vec<String> =
                sums.0.iter().map(|(currency, amounts)| money((currency, amounts.total().amount()))).collect();
            format!("{} -> {}: {}, {}", name(from), name(to), resources(moved.len()), amounts.join(" + "))
        };
        self.moves.iter().map(line).collect()
    }
}

/// Where the rules say that each resource belongs.
fn ruled<'a, T: Row + 'a>(
    seen: &'a [Known<T>],
    providers: &'a BTreeMap<AccountName, ProviderName>,
    world: &'a World,
) -> impl Iterator<Item = (Identity, Project)> + 'a {
    seen.iter().filter_map(|known| {
        let provider = providers.get(&known.identity.account)?;
        let project = world.settings.project(provider, &known.identity, &known.row);
        Some((known.identity.clone(), project.map(Arc::from)))
    })
}
