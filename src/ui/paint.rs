//! Putting text into cells. Every part of the screen writes through this, so that nothing leaves its room.

use ratatui::buffer::{Buffer, CellWidth};
use ratatui::layout::Rect;
use unicode_segmentation::UnicodeSegmentation;

use super::format;
use super::look::Look;
use super::theme::Role;

/// A piece of text of one role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub text: String,
    pub role: Role,
}

/// A line of such pieces.
pub type Runs = Vec<Run>;

pub fn run(text: impl Into<String>, role: Role) -> Run {
    Run { text: text.into(), role }
}

pub fn plain(text: impl Into<String>) -> Run {
    run(text, Role::Plain)
}

pub fn dim(text: impl Into<String>) -> Run {
    run(text, Role::Dim)
}

/// How many cells a line takes.
pub fn runs_width(runs: &[Run]) -> u16 {
    runs.iter().fold(0, |sum, run| sum.saturating_add(format::width(&run.text)))
}

/// The screen's cells with the look of the terminal.
pub struct Paint<'a> {
    pub buffer: &'a mut Buffer,
    pub look: &'a Look,
}

impl Paint<'_> {
    /// Writes at most `cells` cells and returns where it ended. What does not fit is cut with a mark.
    pub fn text(&mut self, x: u16, y: u16, cells: u16, text: &str, role: Role) -> u16 {
        let area = self.buffer.area;
        if y < area.top() || y >= area.bottom() || x < area.left() || x >= area.right() {
            return x;
        }
        let cells = cells.min(area.right() - x);
        let style = self.look.theme.style(role);
        let fitting = format::cut(text, cells, self.look.glyphs.ellipsis);
        // Nothing of what stood here shines through, its style neither.
        for at in x..x + format::width(&fitting) {
            self.buffer[(at, y)].reset();
        }
        self.buffer.set_stringn(x, y, fitting, usize::from(cells), style).0
    }

    /// The same, ending at the right edge of its room.
    pub fn right(&mut self, x: u16, y: u16, cells: u16, text: &str, role: Role) {
        let room = cells.saturating_sub(format::width(text));
        self.text(x.saturating_add(room), y, cells - room, text, role);
    }

    /// A line of several pieces; returns where it ended.
    pub fn runs(&mut self, x: u16, y: u16, cells: u16, runs: &[Run]) -> u16 {
        let end = x.saturating_add(cells);
        let mut at = x;
        for (place, run) in runs.iter().enumerate() {
            if at >= end {
                break;
            }
            let needed = format::width(&run.text);
            let rest = runs_width(&runs[place + 1..]);
            // The mark of a cut goes where the last visible piece ends.
            let room = end - at;
            let text = if needed < room || rest == 0 { &run.text } else { &format!("{} ", run.text) };
            at = self.text(at, y, room, text, run.role);
            if needed > room {
                // A wide character that had no room may leave a cell: nothing goes on there.
                break;
            }
        }
        at
    }

    pub fn runs_right(&mut self, x: u16, y: u16, cells: u16, runs: &[Run]) {
        let room = cells.saturating_sub(runs_width(runs));
        self.runs(x.saturating_add(room), y, cells - room, runs);
    }

    /// A line from left to right.
    pub fn rule(&mut self, x: u16, y: u16, cells: u16) {
        let line = self.look.glyphs.horizontal.repeat(usize::from(cells));
        self.text(x, y, cells, &line, Role::Rule);
    }

    /// A line from top to bottom.
    pub fn upright(&mut self, x: u16, y: u16, rows: u16) {
        for row in 0..rows {
            self.text(x, y.saturating_add(row), 1, self.look.glyphs.vertical, Role::Rule);
        }
    }

    /// Empties a part of the screen. A wide character that reaches into it from the left goes as a whole:
    /// half of it would hide the first cell.
    pub fn blank(&mut self, area: Rect) {
        let area = area.intersection(self.buffer.area);
        for y in area.top()..area.bottom() {
            if area.width > 0 && area.left() > self.buffer.area.left() {
                let before = &mut self.buffer[(area.left() - 1, y)];
                if before.symbol().cell_width() > 1 {
                    before.set_symbol(" ");
                }
            }
            for x in area.left()..area.right() {
                self.buffer[(x, y)].reset();
            }
        }
    }
}

/// Breaks a line into lines of at most `cells` cells: at blanks, and between characters of scripts that
/// write without them. Later lines begin with `indent` blanks.
pub fn wrap(runs: &[Run], cells: u16, indent: u16) -> Vec<Runs> {
    let indent = if indent * 2 > cells { 0 } else { indent };
    let mut lines = vec![Runs::new()];
    let mut used = 0u16;
    // What stays together does so also where the roles change.
    let whole: String = runs.iter().map(|run| run.text.as_str()).collect();
    let mut at = 0;
    for word in words(&whole) {
        let mut rest = word;
        loop {
            let fits = format::width(rest) <= cells.saturating_sub(used);
            let at_start = used == 0 || (lines.len() > 1 && used == indent);
            if fits {
                if !(rest.trim().is_empty() && at_start && lines.len() > 1) {
                    push(&mut lines, runs, at, rest);
                    used += format::width(rest);
                }
                at += rest.len();
                break;
            }
            if !at_start {
                let open = lines.last_mut().expect("there is always a line");
                trim_end(open);
                lines.push(if indent > 0 { vec![plain(" ".repeat(usize::from(indent)))] } else { Runs::new() });
                used = indent;
                at += rest.len() - rest.trim_start().len();
                rest = rest.trim_start();
                if rest.is_empty() {
                    break;
                }
                continue;
            }
            // A word that is longer than a line is broken where the line ends.
            let head = head_of(rest, cells.saturating_sub(used));
            if head.is_empty() {
                return lines;
            }
            push(&mut lines, runs, at, head);
            used += format::width(head);
            at += head.len();
            rest = &rest[head.len()..];
        }
    }
    lines
}

/// As many whole characters as fit; always at least one when any room is there for it.
fn head_of(text: &str, cells: u16) -> &str {
    let mut used = 0;
    let mut end = 0;
    for (at, symbol) in text.grapheme_indices(true) {
        used += format::width(symbol);
        if used > cells {
            break;
        }
        end = at + symbol.len();
    }
    &text[..end]
}

/// Puts a piece that begins at this place of the whole text into the open line, each part in the role that it has there.
fn push(lines: &mut [Runs], runs: &[Run], at: usize, text: &str) {
    let open = lines.last_mut().expect("there is always a line");
    let mut begins = 0;
    for whole in runs {
        let ends = begins + whole.text.len();
        let (from, to) = (at.clamp(begins, ends), (at + text.len()).clamp(begins, ends));
        let part = &whole.text[from - begins..to - begins];
        match open.last_mut() {
            _ if part.is_empty() => {}
            Some(last) if last.role == whole.role => last.text.push_str(part),
            _ => open.push(run(part, whole.role)),
        }
        begins = ends;
    }
}

fn trim_end(line: &mut Runs) {
    if let Some(last) = line.last_mut() {
        last.text.truncate(last.text.trim_end().len());
    }
}

/// The pieces between which a line may break, closing punctuation kept with what it closes.
fn words(text: &str) -> Vec<&str> {
    let mut out: Vec<&str> = Vec::new();
    let mut start = 0;
    let bounds: Vec<(usize, &str)> = text.split_word_bound_indices().collect();
    // A number is not parted from its unit: what stands at its blank stays together.
    let parts = |place: usize, wanted: fn(&str) -> bool| bounds.get(place).is_some_and(|(_, part)| wanted(part));
    let of_unit = |blank: usize| {
        blank > 0
            && parts(blank - 1, |part| part.ends_with(|c: char| c.is_ascii_digit()))
            && parts(blank, |part| part == " ")
            && parts(blank + 1, |part| matches!(part, "GB" | "GiB" | "G" | "%"))
    };
    for (place, (at, word)) in bounds.iter().enumerate() {
        let next = bounds.get(place + 1).map(|(_, next)| *next);
        let breaks_after = match next {
            None => true,
            Some(_) if of_unit(place) || of_unit(place + 1) => false,
            // Latin words go on over their punctuation: `GET /v1/pods` breaks at its blank only.
            Some(next) => {
                let blank = word.trim().is_empty() || next.trim().is_empty();
                let wide = |part: &str| part.chars().all(|c| !c.is_ascii()) && format::width(part) > 1;
                blank || ((wide(word) || wide(next)) && !closes(next) && !opens(word))
            }
        };
        if breaks_after {
            out.push(&text[start..at + word.len()]);
            start = at + word.len();
        }
    }
    out
}

fn closes(word: &str) -> bool {
    word.starts_with([
        '，', '。', '；', '：', '、', '）', '」', '”', '！', '？', '%', ',', '.', ';', ':', ')', '!', '?',
    ])
}

fn opens(word: &str) -> bool {
    word.ends_with(['（', '「', '“', '(', '`', '/'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::glyphs::UNICODE;
    use crate::ui::language::Language;
    use crate::ui::theme::{Background, Colours, Theme};
    use proptest::prelude::*;

    fn wrapped(text: &str, cells: u16, indent: u16) -> Vec<String> {
        let lines = wrap(&[plain(text)], cells, indent);
        lines.into_iter().map(|line| line.into_iter().map(|run| run.text).collect()).collect()
    }

    #[test]
    fn lines_break_at_blanks_and_between_ideographs() {
        assert_eq!(wrapped("stop loses the GPU", 10, 0), ["stop loses", "the GPU"]);
        assert_eq!(wrapped("停止后磁盘继续计费。", 10, 0), ["停止后磁盘", "继续计费。"]);
        assert_eq!(wrapped("GET /v1/pods: timed out", 14, 2), ["GET /v1/pods:", "  timed out"]);
        assert_eq!(wrapped("浪费 $0.41/时", 10, 0), ["浪费", "$0.41/时"]);
        assert_eq!(wrapped("keeps /data 30 GB", 14, 0), ["keeps /data", "30 GB"]);
        assert_eq!(wrapped("abcdefghij", 4, 0), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("", 4, 0), [""]);
    }

    #[test]
    fn closing_punctuation_stays_with_what_it_closes_also_in_another_role() {
        let lines = wrap(&[plain("keeps 100 GB"), dim("; no GPU"), dim("。")], 12, 0);
        let texts: Vec<Vec<&str>> =
            lines.iter().map(|line| line.iter().map(|run| run.text.as_str()).collect()).collect();
        assert_eq!(texts, [vec!["keeps"], vec!["100 GB", "; no"], vec!["GPU。"]]);
    }

    /// What was left out may not look like the end of a sentence.
    #[test]
    fn a_piece_that_ends_at_the_edge_is_marked_when_more_follows() {
        let theme = Theme::new(Colours::None, Background::Dark);
        let look = Look { theme, glyphs: &UNICODE, language: Language::English };
        for (text, cells, seen) in [
            ("abcd", 4, "abc…"),
            ("abcd", 5, "abcd…"),
            ("abcd", 6, "abcdef"),
            ("更贵了", 4, "更 …"),
            ("更贵了", 5, "更 贵 …"),
        ] {
            let mut buffer = Buffer::empty(Rect::new(0, 0, 8, 1));
            let mut paint = Paint { buffer: &mut buffer, look: &look };
            paint.runs(0, 0, cells, &[plain(text), dim("ef")]);
            let line: String = buffer.content().iter().map(|cell| cell.symbol()).collect();
            assert_eq!(line.trim_end(), seen);
        }
    }

    #[test]
    fn a_window_cuts_no_wide_character_in_half() {
        let theme = Theme::new(Colours::None, Background::Dark);
        let look = Look { theme, glyphs: &UNICODE, language: Language::English };
        let mut buffer = Buffer::empty(Rect::new(0, 0, 10, 1));
        let mut paint = Paint { buffer: &mut buffer, look: &look };
        paint.text(0, 0, 10, "实验批量", Role::Plain);
        paint.blank(Rect::new(3, 0, 4, 1));
        let symbols: Vec<&str> = buffer.content().iter().map(|cell| cell.symbol()).collect();
        assert_eq!(symbols, ["实", " ", " ", " ", " ", " ", " ", " ", " ", " "]);
    }

    proptest! {
        #[test]
        fn wrapped_lines_fit_and_lose_only_blanks(text in "[a-z /训练，。]{0,60}", cells in 4u16..30, indent in 0u16..3) {
            let lines = wrapped(&text, cells, indent);
            prop_assert!(lines.iter().all(|line| format::width(line) <= cells), "{lines:?}");
            let squeeze = |text: &str| text.chars().filter(|c| *c != ' ').collect::<String>();
            prop_assert_eq!(squeeze(&lines.concat()), squeeze(&text));
        }
    }
}
