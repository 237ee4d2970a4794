//! The window in which somebody chooses the days of the Spend view.

use jiff::civil::Date;
use tui_input::Input;

use crate::rules::spend::{Period, Range, RangeMistake, parse_days};

/// What can be chosen without typing: a range, and how many of it before the present one.
pub const CHOICES: [(Range, i32); 6] =
    [(Range::Day, 0), (Range::Week, 0), (Range::Month, 0), (Range::Month, 1), (Range::Quarter, 0), (Range::Year, 0)];

/// The window's own state.
#[derive(Clone, Debug)]
pub struct RangeChoice {
    /// The choice that is pointed at; after the last one comes the field.
    pub at: usize,
    /// Days that are being typed.
    pub input: Input,
    /// What stands in the field is what was chosen before: who types begins anew.
    pub untouched: bool,
    /// Somebody asked for what is typed, and it is to be told what is wrong with it.
    pub tried: bool,
}

impl RangeChoice {
    /// Points at what is shown now.
    pub fn open(range: Range, back: i32) -> Self {
        let at = CHOICES.iter().position(|choice| *choice == (range, back));
        let same = || CHOICES.iter().position(|(choice, _)| *choice == range);
        let at = at.or_else(same).unwrap_or(CHOICES.len());
        let typed = match range {
            Range::Days(period) => format!("{}..{}", period.from, period.to.yesterday().unwrap_or(period.to)),
            _ => String::new(),
        };
        RangeChoice { at, input: Input::new(typed), untouched: true, tried: false }
    }

    /// A text is being typed.
    pub fn in_field(&self) -> bool {
        self.at == CHOICES.len()
    }

    /// Somebody types: what stood in the field before is in the way.
    pub fn begin_to_type(&mut self) {
        if self.untouched || !self.in_field() {
            self.input.reset();
        }
        (self.at, self.untouched, self.tried) = (CHOICES.len(), false, false);
    }

    pub fn step(&mut self, by: isize) {
        self.at = self.at.saturating_add_signed(by).min(CHOICES.len());
        self.tried = false;
    }

    /// The days that are typed so far.
    pub fn typed(&self, today: Date) -> Result<Period, RangeMistake> {
        parse_days(self.input.value(), today)
    }
}
