//! The lines of the Storage view: what costs without working.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use jiff::Timestamp;
use providers::model::{Identity, ResourceKind};
use providers::money::Rate;

use super::listing::{Line, Listing};
use super::message::SortName;
use super::state::World;
use super::subject::{InstanceRow, StorageRow};
use crate::rules::upkeep::{Row, Since, Standing, Upkeep, upkeep};

/// What costs without working, as of the last time that the lines were made.
#[derive(Clone, Debug, Default)]
pub struct Shelf {
    pub upkeep: Upkeep,
    places: BTreeMap<Identity, usize>,
}

impl Shelf {
    pub fn row(&self, identity: &Identity) -> Option<&Row> {
        self.upkeep.rows.get(*self.places.get(identity)?)
    }
}

/// Computes rows and lines anew. With `resort` they take the places that the order gives them; without it
/// those that were there keep theirs, and new ones come last.
pub fn rebuild(world: &World, list: &mut Listing, shelf: &mut Shelf, resort: bool, now: Timestamp) {
    let under_way = world.busy(providers::model::Action::Delete);
    shelf.upkeep = upkeep(world.basis(&under_way, now));
    let rows = &shelf.upkeep.rows;
    shelf.places = rows.iter().enumerate().map(|(at, row)| (row.identity.clone(), at)).collect();

    let shown: Vec<&Row> = rows.iter().filter(|row| passes(world, row, list, now)).collect();
    list.hidden = rows.len() - shown.len();
    list.marks.retain(|identity| shelf.places.contains_key(identity));
    let before: BTreeMap<&Line, usize> = list.lines.iter().enumerate().map(|(at, line)| (line, at)).collect();
    let mut placed: Vec<(usize, &Row, Line)> = shown
        .into_iter()
        .map(|row| {
            let line = Line::Resource(row.identity.clone());
            let place = if resort { None } else { before.get(&line).copied() };
            (place.unwrap_or(usize::MAX), row, line)
        })
        .collect();
    placed.sort_by(|(a, one, _), (b, two, _)| a.cmp(b).then_with(|| compare(one, two, list)));
    list.lines = placed.into_iter().map(|(.., line)| line).collect();
    list.count_hidden_marks();
    list.unsorted = !resort;
    list.stale = false;
}

fn passes(world: &World, row: &Row, list: &Listing, now: Timestamp) -> bool {
    let filter = list.filter();
    if filter.is_empty() {
        return true;
    }
    let provider = world.fleet.account(&row.identity.account).map(|account| &account.provider);
    match row.identity.kind {
        ResourceKind::Instance => world.fleet.instances.get(&row.identity).is_some_and(|known| {
            filter.matches(
                &InstanceRow::new(
                    world,
                    known,
                    world.gauges.get(&row.identity),
                    provider,
                    world.operation_on(&row.identity),
                ),
                now,
            )
        }),
        ResourceKind::Storage => world.fleet.storage.get(&row.identity).is_some_and(|known| {
            filter.matches(&StorageRow { world, known, provider, wastes: row.standing == Standing::Waste }, now)
        }),
    }
}

fn compare(a: &Row, b: &Row, list: &Listing) -> Ordering {
    let cost = |row: &Row| Reverse(row.hourly().rates().iter().map(Rate::picos).fold(0, i64::saturating_add));
    let name = |row: &Row| row.shown_name().to_lowercase();
    let since = |row: &Row| match row.since {
        Since::Created(at) | Since::FirstSeen(at) => at,
    };
    let chosen = match list.sort {
        SortName::Attention => (a.standing != Standing::Waste, cost(a)).cmp(&(b.standing != Standing::Waste, cost(b))),
        SortName::Size => Reverse(a.size_gb).cmp(&Reverse(b.size_gb)),
        SortName::Age => since(a).cmp(&since(b)),
        SortName::Name => name(a).cmp(&name(b)),
        SortName::Account => a.identity.account.cmp(&b.identity.account),
        _ => cost(a).cmp(&cost(b)),
    };
    let chosen = if list.reversed { chosen.reverse() } else { chosen };
    // Without a size, a row comes last whichever way round.
    let unknown = |row: &Row| list.sort == SortName::Size && row.size_gb.is_none();
    unknown(a).cmp(&unknown(b)).then(chosen).then_with(|| name(a).cmp(&name(b)))
}
