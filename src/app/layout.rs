//! Where the parts of the screen stand, for painting and for the mouse alike.

/// The smallest screen that shows anything but how small it is: columns and rows.
pub const SMALLEST: (u16, u16) = (60, 16);

/// Lines about accounts in trouble, at the most.
pub const TROUBLE_LINES: usize = 3;

/// What stands above the list of the Spend view, in rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Above {
    /// Sums and what one should know about them.
    pub sums: u16,
    /// The height of the bars.
    pub bars: u16,
    /// Below the bars: what they are known by, and the days.
    pub feet: u16,
}

impl Above {
    pub fn height(&self) -> u16 {
        self.sums + self.bars + self.feet
    }
}

/// How the height of the screen is shared out, for painting and for moving alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Header and its rule.
    pub header: u16,
    /// Lines about accounts in trouble, and the one question.
    pub trouble: u16,
    /// Sums and bars above the list.
    pub above: Above,
    /// Rows of the list, its head not counted.
    pub body: u16,
    /// The details below the list, their rule counted; 0 when they stand at the side or are off.
    pub details: u16,
    /// Rule and footer.
    pub footer: u16,
    /// Width of the details at the side; 0 when they are below or off.
    pub side: u16,
}

impl Frame {
    /// From so many columns on the details stand at the side.
    const SIDE_FROM: u16 = 160;
    const SIDE: u16 = 56;
    /// A list of budgets has all its columns in so many cells.
    const BUDGETS: u16 = 132;
    /// The largest chart that one gains from.
    const WIDEST_CHART: u16 = 100;
    const TALLEST_CHART: u16 = 24;

    /// The details below the list, their rule counted.
    fn below(height: u16) -> u16 {
        match height {
            0..30 => 8,
            30..44 => 11,
            _ => 15,
        }
    }

    /// `roomy` details are tall where the screen is.
    pub fn of(width: u16, height: u16, details: bool, roomy: bool, lines: usize) -> Self {
        let (header, footer, head) = (2, 2, 1);
        let side = if details && width >= Self::SIDE_FROM { Self::SIDE } else { 0 };
        let trouble = lines.min(TROUBLE_LINES + 1) as u16;
        let rest = height.saturating_sub(header + footer + head + trouble);
        // Below, the details never take more than half of what the list could have.
        let wanted = if roomy { Self::below(height) } else { Self::below(0) };
        let details = if details && side == 0 && rest >= 2 * wanted { wanted } else { 0 };
        Frame { header, trouble, above: Above::default(), body: rest - details, details, footer, side }
    }

    /// The chart of a budget has all the room that so many budgets leave.
    pub fn of_budgets(width: u16, height: u16, details: bool, trouble: usize, budgets: usize) -> Self {
        let frame = Frame::of(width, height, details, false, trouble);
        if !details || budgets == 0 {
            return Frame { body: frame.body + frame.details, details: 0, side: 0, ..frame };
        }
        if frame.side > 0 {
            return Frame { side: (width - Self::BUDGETS).clamp(Self::SIDE, Self::WIDEST_CHART), ..frame };
        }
        let rest = frame.body + frame.details;
        let rows = u16::try_from(budgets).unwrap_or(u16::MAX).saturating_add(1).min(rest / 2);
        let details = rest.saturating_sub(rows).min(Self::TALLEST_CHART);
        let details = if details < Self::below(0) { 0 } else { details };
        Frame { body: rest - details, details, ..frame }
    }

    /// With so many lines of sums as there are, as far as there is room. A single day has no days to compare.
    pub fn of_spend(width: u16, height: u16, trouble: usize, sums: u16, one_day: bool) -> Self {
        let plain = Frame::of(width, height, false, false, trouble);
        let (most, bars, feet) = match height {
            0..20 => (2, 1, 1),
            20..24 => (3, 2, 2),
            24..28 => (4, 3, 2),
            28..40 => (5, 4, 2),
            _ => (6, 6, 2),
        };
        let (bars, feet) = if one_day { (1, 0) } else { (bars, feet) };
        // A blank line below them, where there is room.
        let gap = u16::from(height >= 28);
        let mut above = Above { sums: sums.min(most) + gap, bars, feet: feet + gap };
        if above.height() > plain.body {
            above = Above::default();
        }
        Frame { above, body: plain.body - above.height(), ..plain }
    }

    /// What is at a cell of a screen of this width; anything may be asked for.
    pub fn spot(&self, width: u16, column: u16, row: u16) -> Spot {
        let head = self.header + self.trouble + self.above.height();
        let list = width.saturating_sub(self.side);
        match row.checked_sub(head) {
            _ if column >= list => Spot::Elsewhere,
            Some(0) => Spot::Head,
            Some(below) if below <= self.body => Spot::Line(below - 1),
            _ => Spot::Elsewhere,
        }
    }

    /// Columns that the list has for itself.
    pub fn list_width(&self, width: u16) -> u16 {
        // A blank stands between the list and what is at its side.
        width.saturating_sub(self.side + u16::from(self.side > 0))
    }
}

/// What is at a place of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot {
    /// The heads of the columns.
    Head,
    /// A row of the list, counted from 0 at its top.
    Line(u16),
    Elsewhere,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TUI-03: the edge, and beyond it.
    #[test]
    fn every_place_is_something_or_nothing() {
        let frame = Frame::of(209, 51, true, true, 1);
        assert_eq!(frame.spot(209, 3, 3), Spot::Head);
        assert_eq!(frame.spot(209, 3, 4), Spot::Line(0));
        for (column, row) in [(209, 49), (208, 50), (0, 51), (500, 500), (u16::MAX, u16::MAX), (0, 0)] {
            assert_eq!(frame.spot(209, column, row), Spot::Elsewhere, "{column},{row}");
        }
        assert_eq!(Frame::of(0, 0, true, true, 3).spot(0, 0, 0), Spot::Elsewhere);
    }
}
