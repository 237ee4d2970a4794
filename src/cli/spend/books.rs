//! What the books and the open lines tell together, as of one moment.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use providers::model::{AccountName, Identity, ProviderName};

use crate::app::notes::is_unexplained;
use crate::app::state::World;
use crate::cli::Stop;
use crate::ledger::LedgerError;
use crate::rules::memory::Memory;
use crate::rules::spend::{Answer, BalanceChange, Billable, Cell, Meter, Period, Question, open_cells};
use crate::runtime::keeper::Keeper;

/// So often the books are asked anew when another process wrote meanwhile.
const TRIES: usize = 5;

/// Asks the books, and what is open beside them, so that neither knows more than the other: what another process
/// closes between the two questions would be counted twice, or not at all.
pub async fn at_one_moment<T>(keeper: &Keeper, ask: impl AsyncFn() -> Result<T, Stop>) -> Result<(T, Memory), Stop> {
    let mut before = answered(keeper.remembered().await)?;
    let mut tries = 1;
    loop {
        let told = ask().await?;
        let after = answered(keeper.remembered().await)?;
        if after.running == before.running || tries == TRIES {
            return Ok((told, after));
        }
        before = after;
        tries += 1;
    }
}

/// What the ledger answered, or why it did not.
pub fn answered<T>(answer: Option<Result<T, LedgerError>>) -> Result<T, Stop> {
    answer.ok_or_else(|| Stop::failed("the ledger did not answer"))?.map_err(Stop::failed)
}

/// All that was spent in a period.
pub struct Books {
    pub period: Period,
    pub zone: TimeZone,
    pub now: Timestamp,
    /// Closed and open.
    pub cells: Vec<Cell>,
    /// Since when each account is known, first by name.
    pub since: BTreeMap<AccountName, Timestamp>,
    /// With what is open.
    pub balances: Vec<BalanceChange>,
    /// The accounts among them of whose balance something is to be explained.
    pub unexplained: BTreeSet<AccountName>,
    /// The books are still being added up anew.
    pub unfinished: bool,
    pub(super) providers: BTreeMap<AccountName, ProviderName>,
}

impl Books {
    /// Puts the answers of the books and the open lines together.
    pub fn of(
        answer: Answer,
        balances: Vec<BalanceChange>,
        memory: &Memory,
        world: &World,
        period: Period,
        now: Timestamp,
    ) -> Self {
        let zone = world.spending.zone.clone();
        let meter = meter(memory, world);
        let by_resource = matches!(answer.question, Question::Resources(_));
        let mut cells = answer.cells;
        cells.extend(open_cells(&meter, period, by_resource, &zone, now));
        name(&mut cells, world);
        let mut since: BTreeMap<AccountName, Timestamp> = answer.since.into_iter().collect();
        for span in meter.open_spans(now) {
            let known = since.entry(span.identity.account).or_insert(span.from);
            *known = span.from.min(*known);
        }
        let balances: Vec<_> = balances.into_iter().map(|change| change.with_open(&meter, now)).collect();
        let unexplained = balances.iter().filter(|change| is_unexplained(world, change));
        Books {
            period,
            zone,
            now,
            cells,
            since,
            unexplained: unexplained.map(|change| change.account.clone()).collect(),
            balances,
            unfinished: answer.unfinished,
            providers: providers(memory, world),
        }
    }

    pub fn provider_of(&self, account: &AccountName) -> Option<ProviderName> {
        self.providers.get(account).cloned()
    }
}

/// The open lines, as the books have them.
pub fn meter(memory: &Memory, world: &World) -> Meter {
    memory.meter(|account| world.fleet.account(&account.name).is_some_and(|known| known.provider == account.provider))
}

/// Whose each account is, also of those that are in the config no more.
pub fn providers(memory: &Memory, world: &World) -> BTreeMap<AccountName, ProviderName> {
    let remembered = memory.accounts.iter().map(|account| (account.name.clone(), account.provider.clone()));
    let configured = world.fleet.accounts.iter().map(|account| (account.name.clone(), account.provider.clone()));
    remembered.chain(configured).collect()
}

/// Gives every piece of one resource the same name: the one that it has now, else its last one.
fn name(cells: &mut [Cell], world: &World) {
    let mut names: BTreeMap<Identity, Option<String>> = BTreeMap::new();
    for cell in cells.iter() {
        if let Some(Billable::Resource { identity, name }) = &cell.billable {
            let known = names.entry(identity.clone()).or_default();
            *known = known.take().or_else(|| name.clone());
        }
    }
    let fleet = &world.fleet;
    for (identity, name) in &mut names {
        let instance = fleet.instances.get(identity).map(|known| &known.row.name);
        let now = instance.or_else(|| fleet.storage.get(identity).map(|known| &known.row.name));
        if let Some(now) = now {
            name.clone_from(now);
        }
    }
    for cell in cells {
        if let Some(Billable::Resource { identity, name }) = &mut cell.billable {
            name.clone_from(&names[identity]);
        }
    }
}
