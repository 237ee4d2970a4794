//! Where the columns of the fleet stand: those that somebody wants, as far as there is room.

use serde::{Deserialize, Serialize};

use super::message::SortName;

/// Cursor, mark, phase and the sign of what needs somebody stand before the name.
pub const SIGNS: u16 = 6;
/// The signs for spot and protected stand before the GPUs.
pub const FLAGS: u16 = 3;
/// Cells of a figure of use.
const USE: u16 = 5;
/// Cells of how long something is idle.
const IDLE: u16 = 5;
/// Cells of the age of a copy.
const SAVED: u16 = 5;
/// From so many cells on there is room for that age.
const SAVED_FROM: u16 = 66;
/// Cells of a curve of use.
pub const SPARK: u16 = 8;
/// Cells of the longest usual name of a card, with their number.
const CARD: u16 = 17;
/// Cells of an amount of money, cents and a sign before it included.
pub const AMOUNT: u16 = 10;
/// Digits of an hourly rate after its point, and one sign that may follow.
pub const FRACTION: u16 = 5;

/// A column that may leave; the others always stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Optional {
    Up,
    Region,
    /// What the rental cost since it began.
    Spent,
    Project,
    Memory,
    /// The curve beside the figure of use.
    Trend,
    /// What it cost this month.
    Month,
    Account,
}

impl Optional {
    /// In the order in which they leave unless somebody chose another.
    pub const ALL: [Optional; 8] = [
        Optional::Up,
        Optional::Region,
        Optional::Spent,
        Optional::Project,
        Optional::Memory,
        Optional::Trend,
        Optional::Month,
        Optional::Account,
    ];
}

/// Which columns somebody wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ColumnChoice {
    /// Each once, in the order in which they leave when it gets narrow.
    pub order: Vec<Optional>,
    /// Never shown.
    pub off: Vec<Optional>,
}

impl Default for ColumnChoice {
    fn default() -> Self {
        ColumnChoice { order: Optional::ALL.to_vec(), off: Vec::new() }
    }
}

impl ColumnChoice {
    /// The same with every column once, whatever a file said.
    pub fn sane(mut self) -> Self {
        let mut order: Vec<Optional> = Vec::new();
        for column in self.order.into_iter().chain(Optional::ALL) {
            if !order.contains(&column) {
                order.push(column);
            }
        }
        self.order = order;
        self
    }

    pub fn is_on(&self, column: Optional) -> bool {
        !self.off.contains(&column)
    }

    pub fn toggle(&mut self, column: Optional) {
        match self.off.iter().position(|one| *one == column) {
            Some(at) => drop(self.off.remove(at)),
            None => self.off.push(column),
        }
    }
}

/// One column's place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Column {
    pub x: u16,
    pub width: u16,
}

/// Places of all columns; those that left have no width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    pub name: Column,
    pub gpu: Column,
    pub util: Column,
    pub spark: bool,
    pub memory: Column,
    pub idle: Column,
    pub rate: Column,
    pub month: Column,
    pub spent: Column,
    /// The age of the last verified copy.
    pub saved: Column,
    pub next: Column,
    pub account: Column,
    pub project: Column,
    pub region: Column,
    pub up: Column,
}

impl Columns {
    /// They depend on the width, the choice and the grouping alone: nothing moves while values change.
    pub fn fit(x: u16, width: u16, choice: &ColumnChoice, with_account: bool, with_project: bool) -> Self {
        let narrow = width < 80;
        let gap = if narrow { 1 } else { 2 };
        let least = |column: Optional| match column {
            column if !choice.is_on(column) => 0,
            Optional::Up => 7,
            Optional::Region => 10,
            Optional::Spent | Optional::Month => AMOUNT,
            Optional::Project => 10 * u16::from(with_project),
            Optional::Memory => 9,
            Optional::Trend => SPARK + 1,
            Optional::Account => 14 * u16::from(with_account),
        };
        let mut optional: Vec<(Optional, u16)> = choice.order.iter().map(|column| (*column, least(*column))).collect();
        let (mut name, mut gpu, mut util) = if narrow { (9, 10, USE) } else { (12, 12, USE) };
        let rate = if narrow { 8 } else { 9 };
        let saved = if width < SAVED_FROM { 0 } else { SAVED };
        // With the age before it there is room for a countdown and the key that takes it back.
        let mut next = if narrow { 9 } else { 16 };
        let before_next = if saved > 0 { 1 + saved + 1 } else { gap };
        let fixed = SIGNS + name + 1 + FLAGS + gpu + 1 + util + 1 + IDLE + gap + rate + before_next + next;
        let extra = |column: &(Optional, u16)| match column {
            (_, 0) => 0,
            // It shares its column with the figure.
            (Optional::Trend, width) => *width,
            (_, width) => width + gap,
        };
        for at in 0..optional.len() {
            // The name of a card is worth more than where it stands and since when.
            let card = match optional[at].0 {
                Optional::Up | Optional::Region => CARD - gpu.min(CARD),
                _ => 0,
            };
            if !narrow && fixed + card + optional.iter().map(extra).sum::<u16>() <= width {
                break;
            }
            optional[at].1 = 0;
        }
        let mut spare = width.saturating_sub(fixed + optional.iter().map(extra).sum::<u16>());
        let mut give = |column: &mut u16, most: u16| {
            let more = spare.min(most.saturating_sub(*column));
            *column += more;
            spare -= more;
        };
        let of = |optional: &[(Optional, u16)], wanted| {
            optional.iter().find(|(column, _)| *column == wanted).map_or(0, |(_, width)| *width)
        };
        let [up, mut region, spent, mut project, memory, trend, month, mut account] =
            Optional::ALL.map(|column| of(&optional, column));
        give(&mut gpu, CARD);
        if trend == 0 {
            // A state in full, in the place of a figure.
            give(&mut util, 9);
        }
        give(&mut name, 16);
        give(&mut next, 20);
        give(&mut name, 20);
        give(&mut gpu, 19);
        give(&mut next, 26);
        if account > 0 {
            give(&mut account, 20);
        }
        if project > 0 {
            give(&mut project, 16);
        }
        if region > 0 {
            give(&mut region, 16);
        }
        give(&mut name, 34);
        // Beyond that the eye loses the row.
        give(&mut next, 70);
        let util = util + trend;

        let mut columns = Columns { spark: trend > 0, ..Columns::default() };
        let mut x = x + SIGNS;
        // Flags, use, how long and how old are seldom as wide as their columns: what stands before them needs no more
        // than one blank.
        let mut place = |column: &mut Column, width: u16, flags: u16, close: bool| {
            if width > 0 {
                x -= if close { gap - 1 } else { 0 };
                *column = Column { x: x + flags, width };
                x += flags + width + gap;
            }
        };
        place(&mut columns.name, name, 0, false);
        place(&mut columns.gpu, gpu, FLAGS, true);
        place(&mut columns.util, util, 0, true);
        place(&mut columns.memory, memory, 0, false);
        place(&mut columns.idle, IDLE, 0, true);
        place(&mut columns.rate, rate, 0, false);
        place(&mut columns.month, month, 0, false);
        place(&mut columns.spent, spent, 0, false);
        place(&mut columns.saved, saved, 0, true);
        place(&mut columns.next, next, 0, saved > 0);
        place(&mut columns.account, account, 0, false);
        place(&mut columns.project, project, 0, false);
        place(&mut columns.region, region, 0, false);
        place(&mut columns.up, up, 0, false);
        columns
    }

    /// The last two of those that always stay, as one: there is room for a sentence.
    pub fn saved_and_next(&self) -> Column {
        if self.saved.width == 0 {
            return self.next;
        }
        Column { x: self.saved.x, width: self.next.x + self.next.width - self.saved.x }
    }

    /// The order that a click on the head at this cell asks for.
    pub fn sort_at(&self, x: u16) -> Option<SortName> {
        let under = |column: &Column| (column.x..column.x + column.width).contains(&x);
        self.sorted().into_iter().find(|(column, _)| under(column)).map(|(_, sort)| sort)
    }

    /// The columns that rows can be sorted by.
    pub fn sorted(&self) -> [(Column, SortName); 8] {
        [
            (self.name, SortName::Name),
            (self.util, SortName::Use),
            (self.idle, SortName::Idle),
            (self.rate, SortName::Cost),
            (self.account, SortName::Account),
            (self.project, SortName::Project),
            (self.region, SortName::Region),
            (self.up, SortName::Age),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(width: u16, with_account: bool) -> Vec<&'static str> {
        let columns = Columns::fit(0, width, &ColumnChoice::default(), with_account, true);
        let optional = [
            ("up", columns.up),
            ("region", columns.region),
            ("project", columns.project),
            ("memory", columns.memory),
            ("month", columns.month),
            ("spent", columns.spent),
            ("account", columns.account),
        ];
        let mut names: Vec<_> = optional.iter().filter(|(_, column)| column.width > 0).map(|(name, _)| *name).collect();
        if columns.spark {
            names.push("spark");
        }
        names
    }

    #[test]
    fn columns_leave_by_their_rank() {
        assert_eq!(shown(60, true), [""; 0]);
        assert_eq!(shown(200, true), ["up", "region", "project", "memory", "month", "spent", "account", "spark"]);
        let mut before = 9;
        for width in (60..=200).rev() {
            let now = shown(width, true).len();
            assert!(now <= before, "{width}: a column came back");
            before = now;
        }
    }

    #[test]
    fn somebody_says_which_columns_leave_and_which_are_never_there() {
        let choice = ColumnChoice { off: vec![Optional::Memory], order: vec![Optional::Account, Optional::Trend] };
        let choice = choice.sane();
        assert_eq!(choice.order.len(), Optional::ALL.len());
        let at = |width| Columns::fit(0, width, &choice, true, true);
        assert_eq!(at(200).memory.width, 0);
        let narrower = (80..200).rev().map(at).find(|columns| columns.account.width == 0).unwrap();
        assert!(narrower.spark && narrower.up.width > 0);
    }

    #[test]
    fn the_age_of_a_copy_stands_wherever_there_is_room_for_it() {
        let at = |width| Columns::fit(0, width, &ColumnChoice::default(), true, true);
        for width in SAVED_FROM..=400 {
            let columns = at(width);
            assert_eq!(columns.saved.width, SAVED, "{width}");
            let both = columns.saved_and_next();
            assert_eq!((both.x, both.x + both.width), (columns.saved.x, columns.next.x + columns.next.width));
        }
        assert_eq!(at(60).saved_and_next(), at(60).next);
        // A countdown and the key that takes it back.
        assert!(at(80).saved_and_next().width >= 19);
    }

    #[test]
    fn a_click_on_a_head_sorts_by_its_column() {
        let columns = Columns::fit(0, 200, &ColumnChoice::default(), true, true);
        assert_eq!(columns.sort_at(columns.rate.x), Some(SortName::Cost));
        assert_eq!(columns.sort_at(columns.up.x + columns.up.width - 1), Some(SortName::Age));
        assert_eq!(columns.sort_at(0), None);
        assert_eq!(columns.sort_at(u16::MAX), None);
    }

    #[test]
    fn no_column_reaches_over_the_edge_or_into_another() {
        for width in 60..=400 {
            for with_account in [false, true] {
                let columns = Columns::fit(0, width, &ColumnChoice::default(), with_account, true);
                let all = [
                    columns.name,
                    columns.gpu,
                    columns.util,
                    columns.memory,
                    columns.idle,
                    columns.rate,
                    columns.month,
                    columns.spent,
                    columns.saved,
                    columns.next,
                    columns.account,
                    columns.project,
                    columns.region,
                    columns.up,
                ];
                let placed: Vec<Column> = all.into_iter().filter(|column| column.width > 0).collect();
                for pair in placed.windows(2) {
                    assert!(pair[0].x + pair[0].width < pair[1].x, "{width}: {pair:?}");
                }
                let last = placed.last().unwrap();
                assert!(last.x + last.width <= width, "{width}: {last:?}");
            }
        }
    }
}
