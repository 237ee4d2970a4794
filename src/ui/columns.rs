//! Where the columns of the fleet stand: they leave by their rank when it gets narrow.

use ratatui::layout::Rect;

/// Cursor, mark, phase and the sign of what needs somebody stand before the name.
pub const SIGNS: u16 = 6;
/// The signs for spot and protected stand before the GPUs.
pub const FLAGS: u16 = 3;
/// Cells of a curve of use.
pub const SPARK: u16 = 8;
/// Digits of an hourly rate after its point, and one sign that may follow.
pub const FRACTION: u16 = 5;

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
    pub rate: Column,
    pub next: Column,
    pub account: Column,
    pub project: Column,
    pub region: Column,
    pub up: Column,
}

impl Columns {
    /// They depend on the width and the grouping alone: nothing moves while values change.
    pub fn fit(area: Rect, with_account: bool, with_project: bool) -> Self {
        let narrow = area.width < 80;
        let gap = if narrow { 1 } else { 2 };
        let mut optional = [
            // In the order in which they leave.
            ("up", 7),
            ("region", 10),
            ("project", if with_project { 10 } else { 0 }),
            ("memory", 9),
            ("spark", SPARK + 1),
            ("account", if with_account { 14 } else { 0 }),
        ];
        let (mut name, mut gpu, util) = if narrow { (10, 11, 6) } else { (12, 12, 9) };
        let rate = if narrow { 9 } else { 10 };
        let mut next = if narrow { 11 } else { 20 };
        let fixed = SIGNS + name + gap + FLAGS + gpu + gap + util + gap + rate + gap + next;
        // With a curve the figure needs no more room than itself.
        let extra = |column: &(&str, u16)| match column {
            (_, 0) => 0,
            ("spark", width) => width - (util - 5).min(*width),
            (_, width) => width + gap,
        };
        for at in 0..optional.len() {
            if !narrow && fixed + optional.iter().map(extra).sum::<u16>() <= area.width {
                break;
            }
            optional[at].1 = 0;
        }
        let mut spare = area.width.saturating_sub(fixed + optional.iter().map(extra).sum::<u16>());
        let mut give = |column: &mut u16, most: u16| {
            let more = spare.min(most.saturating_sub(*column));
            *column += more;
            spare -= more;
        };
        give(&mut gpu, 17);
        give(&mut name, 20);
        give(&mut gpu, 19);
        give(&mut next, 26);
        if optional[5].1 > 0 {
            give(&mut optional[5].1, 20);
        }
        if optional[2].1 > 0 {
            give(&mut optional[2].1, 16);
        }
        give(&mut name, 34);
        give(&mut next, u16::MAX);
        let [(_, up), (_, region), (_, project), (_, memory), (_, spark), (_, account)] = optional;
        let util = if spark > 0 { SPARK + 1 + 5 } else { util };

        let mut columns = Columns { spark: spark > 0, ..Columns::default() };
        let mut x = area.x + SIGNS;
        let mut place = |column: &mut Column, width: u16, flags: u16| {
            if width > 0 {
                *column = Column { x: x + flags, width };
                x += flags + width + gap;
            }
        };
        place(&mut columns.name, name, 0);
        place(&mut columns.gpu, gpu, FLAGS);
        place(&mut columns.util, util, 0);
        place(&mut columns.memory, memory, 0);
        place(&mut columns.rate, rate, 0);
        place(&mut columns.next, next, 0);
        place(&mut columns.account, account, 0);
        place(&mut columns.project, project, 0);
        place(&mut columns.region, region, 0);
        place(&mut columns.up, up, 0);
        columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(width: u16, with_account: bool) -> Vec<&'static str> {
        let columns = Columns::fit(Rect::new(0, 0, width, 20), with_account, true);
        let optional = [
            ("up", columns.up),
            ("region", columns.region),
            ("project", columns.project),
            ("memory", columns.memory),
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
        assert_eq!(shown(200, true), ["up", "region", "project", "memory", "account", "spark"]);
        let mut before = 7;
        for width in (60..=200).rev() {
            let now = shown(width, true).len();
            assert!(now <= before, "{width}: a column came back");
            before = now;
        }
    }

    #[test]
    fn no_column_reaches_over_the_edge_or_into_another() {
        for width in 60..=400 {
            for with_account in [false, true] {
                let columns = Columns::fit(Rect::new(0, 0, width, 20), with_account, true);
                let all = [
                    columns.name,
                    columns.gpu,
                    columns.util,
                    columns.memory,
                    columns.rate,
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
