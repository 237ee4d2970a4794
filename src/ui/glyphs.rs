//! Signs, one cell each: a Unicode set, and an ASCII set for terminals that draw the others wider.

use providers::model::Phase;

/// One set of signs. Every sign takes one cell, but for `times` and `ellipsis`, which stand in running text.
#[derive(Debug, PartialEq, Eq)]
pub struct Glyphs {
    pub running: &'static str,
    /// Runs and does nothing.
    pub idle: &'static str,
    /// Runs, and less of it works than is paid for.
    pub underused: &'static str,
    pub stopped: &'static str,
    pub provisioning: &'static str,
    pub under_way: &'static str,
    pub reclaimed: &'static str,
    pub failed: &'static str,
    pub unreachable: &'static str,
    pub gone: &'static str,
    pub unknown: &'static str,
    pub needs_you: &'static str,
    pub marked: &'static str,
    pub cursor: &'static str,
    /// Something that holds data.
    pub storage: &'static str,
    pub open: &'static str,
    pub folded: &'static str,
    pub done: &'static str,
    /// For what is not known.
    pub dash: &'static str,
    pub dot: &'static str,
    pub times: &'static str,
    pub ellipsis: &'static str,
    pub degree: &'static str,
    pub euro: &'static str,
    pub horizontal: &'static str,
    pub vertical: &'static str,
    /// Corners of a window: top left, top right, bottom left, bottom right.
    pub corners: [&'static str; 4],
    /// Heights of a sparkline, lowest first.
    pub spark: [&'static str; 8],
    /// How an amount is known: billed, counted by us, assumed.
    pub evidence: [&'static str; 3],
    pub bar_full: &'static str,
    pub bar_empty: &'static str,
    /// Names of the arrow keys: up, down, left, right.
    pub arrows: [&'static str; 4],
}

pub static UNICODE: Glyphs = Glyphs {
    running: "●",
    idle: "◐",
    underused: "◔",
    stopped: "○",
    provisioning: "◌",
    under_way: "◎",
    reclaimed: "◆",
    failed: "✕",
    unreachable: "◇",
    gone: "·",
    unknown: "?",
    needs_you: "▲",
    marked: "✓",
    cursor: "▌",
    storage: "▪",
    open: "▾",
    folded: "▸",
    done: "✓",
    dash: "—",
    dot: "·",
    times: "×",
    ellipsis: "…",
    degree: "°C",
    euro: "€",
    horizontal: "─",
    vertical: "│",
    corners: ["╭", "╮", "╰", "╯"],
    spark: ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
    evidence: ["═", "·", "~"],
    bar_full: "▇",
    bar_empty: "▁",
    arrows: ["↑", "↓", "←", "→"],
};

pub static ASCII: Glyphs = Glyphs {
    running: "*",
    idle: "-",
    underused: "u",
    stopped: "o",
    provisioning: "+",
    under_way: "~",
    reclaimed: "r",
    failed: "x",
    unreachable: "/",
    gone: ".",
    unknown: "?",
    needs_you: "!",
    marked: "v",
    cursor: ">",
    storage: "=",
    open: "-",
    folded: "+",
    done: "v",
    dash: "-",
    dot: "-",
    times: "x",
    ellipsis: "..",
    degree: "C",
    euro: "EUR ",
    horizontal: "-",
    vertical: "|",
    corners: ["+", "+", "+", "+"],
    spark: ["_", ".", ":", "-", "=", "+", "*", "#"],
    evidence: ["=", ".", "~"],
    bar_full: "#",
    bar_empty: ".",
    arrows: ["up", "down", "left", "right"],
};

impl Glyphs {
    pub fn phase(&self, phase: Phase) -> &'static str {
        match phase {
            Phase::Provisioning => self.provisioning,
            Phase::Running => self.running,
            Phase::Stopping | Phase::Releasing => self.under_way,
            Phase::Stopped => self.stopped,
            Phase::Reclaimed => self.reclaimed,
            Phase::Unreachable => self.unreachable,
            Phase::Gone => self.gone,
            Phase::Failed => self.failed,
            Phase::Unknown => self.unknown,
        }
    }

    /// Signs of which some terminals draw each in two cells, once each: what is wrong with one of them is wrong
    /// with the screen.
    pub fn doubtful(&self) -> String {
        let phases = Phase::ALL.map(|phase| self.phase(phase));
        let marks = [
            self.idle,
            self.underused,
            self.needs_you,
            self.marked,
            self.cursor,
            self.open,
            self.folded,
            self.dash,
            self.dot,
            self.times,
        ];
        let lines = [self.ellipsis, self.euro, self.horizontal, self.vertical, self.bar_full, self.bar_empty];
        let signs = phases
            .iter()
            .chain(&marks)
            .chain(&lines)
            .chain(&self.evidence)
            .chain(&self.corners)
            .chain(&self.spark)
            .chain(&self.arrows);
        let mut signs: Vec<char> = signs.flat_map(|sign| sign.chars()).filter(|c| !c.is_ascii()).collect();
        signs.sort_unstable();
        signs.dedup();
        signs.into_iter().collect()
    }

    /// The height that stands for a share of 0.0 to 1.0; anything else is brought into that range. The highest leaves a
    /// little of its cell free: curves of two lines do not run into each other.
    pub fn height(&self, share: f64) -> &'static str {
        let last = self.spark.len() - 2;
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        self.spark[((share * last as f64).round() as usize).min(last)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_width::UnicodeWidthStr;

    #[test]
    fn signs_in_columns_take_one_cell() {
        for set in [&UNICODE, &ASCII] {
            let phases = Phase::ALL.map(|phase| set.phase(phase));
            let marks = [set.needs_you, set.marked, set.cursor, set.open, set.folded, set.dash, set.horizontal];
            let bars = [set.vertical, set.bar_full, set.bar_empty, set.done];
            for sign in
                phases.iter().chain(&marks).chain(&bars).chain(&set.evidence).chain(&set.corners).chain(&set.spark)
            {
                assert_eq!(sign.width(), 1, "{sign}");
            }
        }
    }

    #[test]
    fn the_ascii_set_is_ascii() {
        assert!(format!("{ASCII:?}").is_ascii());
    }

    #[test]
    fn phases_of_which_one_must_be_told_from_another_look_different() {
        for set in [&UNICODE, &ASCII] {
            let mut seen: Vec<&str> = Phase::ALL.map(|phase| set.phase(phase)).to_vec();
            seen.sort_unstable();
            seen.dedup();
            // Stopping and releasing share the sign for what is under way.
            assert_eq!(seen.len(), Phase::ALL.len() - 1);
        }
    }

    #[test]
    fn the_doubtful_signs_are_those_that_are_no_letters_and_fit_a_small_screen_twice() {
        assert_eq!(ASCII.doubtful(), "");
        let signs = UNICODE.doubtful();
        assert!(signs.contains('●') && signs.contains('─') && signs.contains('×') && signs.contains('█'), "{signs}");
        assert!(2 * signs.width() < 80, "{signs}");
    }

    #[test]
    fn a_share_out_of_range_has_a_height_too() {
        assert_eq!(UNICODE.height(f64::NAN), "▁");
        assert_eq!(UNICODE.height(-1.0), "▁");
        assert_eq!(UNICODE.height(7.0), "▇");
    }
}
