//! Tables on standard output: aligned for people, CSV for spreadsheets.

use std::borrow::Cow;
use std::io::{self, Write};

use providers::text::spreadsheet_cell;
use rust_decimal::Decimal;
use unicode_width::UnicodeWidthStr;

use super::{Exit, Output, Stop};
use crate::ui::format::cut;

/// No cell of a table for people is wider: a name of thousands of characters would drown all else.
const WIDEST: u16 = 100;

/// A table of texts. Columns whose head begins with a space hold figures and are set to the right.
pub struct Table {
    heads: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(heads: &[&'static str]) -> Self {
        Table { heads: heads.to_vec(), rows: Vec::new() }
    }

    /// Adds a row, with a cell for each head.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.heads.len());
        self.rows.push(cells);
    }

    #[cfg(test)]
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// Prints as aligned text or as CSV.
    pub fn print(&self, output: Output) -> Result<(), Stop> {
        let mut out = io::stdout().lock();
        let written = if output.csv { self.csv(&mut out) } else { self.text(&mut out) };
        finished(written)
    }

    fn text(&self, out: &mut impl Write) -> io::Result<()> {
        let right: Vec<bool> = self.heads.iter().map(|head| head.starts_with(' ')).collect();
        let heads: Vec<String> = self.heads.iter().map(|head| head.trim().to_owned()).collect();
        let shown: Vec<Vec<String>> =
            self.rows.iter().map(|row| row.iter().map(|cell| cut(cell, WIDEST, "…")).collect()).collect();
        let width = |at: usize| shown.iter().chain([&heads]).map(|row| row[at].width()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..heads.len()).map(width).collect();
        for row in [&heads].into_iter().chain(&shown) {
            let mut line = String::new();
            for (at, cell) in row.iter().enumerate() {
                let fill = " ".repeat(widths[at] - cell.width());
                let gap = if at == 0 { "" } else { "  " };
                let (left, after) = if right[at] { (fill.as_str(), "") } else { ("", fill.as_str()) };
                line.push_str(&format!("{gap}{left}{cell}{after}"));
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        out.flush()
    }

    fn csv(&self, out: &mut impl Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        csv.write_record(self.heads.iter().map(|head| head.trim().to_lowercase())).map_err(of_the_pipe)?;
        for row in &self.rows {
            let cells = self.heads.iter().zip(row);
            let cells = cells.map(|(head, cell)| csv_cell(cell, head.starts_with(' ')).into_owned());
            csv.write_record(cells).map_err(of_the_pipe)?;
        }
        csv.flush()
    }
}

/// A cell of a CSV file. Nothing in it is a formula; of a column of figures a negative number stays one.
pub fn csv_cell(cell: &str, figure: bool) -> Cow<'_, str> {
    let number = figure && !cell.starts_with('+') && cell.parse::<Decimal>().is_ok();
    if number { Cow::Borrowed(cell) } else { spreadsheet_cell(cell) }
}

/// Prints a CSV file whose heads stand as they are.
pub fn print_csv(records: impl IntoIterator<Item = Vec<String>>) -> Result<(), Stop> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let write = || {
        let mut csv = csv::Writer::from_writer(&mut out);
        for record in records {
            csv.write_record(record).map_err(of_the_pipe)?;
        }
        csv.flush()
    };
    finished(write())
}

/// Prints a value as JSON.
pub fn print_json(value: &impl serde::Serialize) -> Result<(), Stop> {
    let mut out = io::stdout().lock();
    let text = serde_json::to_string_pretty(value).map_err(Stop::failed)?;
    finished(writeln!(out, "{text}").and_then(|()| out.flush()))
}

/// Prints a text that is made as a whole.
pub fn print_bytes(text: &[u8]) -> Result<Exit, Stop> {
    let mut out = io::stdout().lock();
    finished(out.write_all(text).and_then(|()| out.flush()))?;
    Ok(Exit::Done)
}

/// What the pipe itself said, which `csv` keeps to itself.
fn of_the_pipe(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        kind => io::Error::other(format!("{kind:?}")),
    }
}

/// A reader that has seen enough closes the pipe: that is no failure.
fn finished(written: io::Result<()>) -> Result<(), Stop> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Stop::failed(error)),
        _ => Ok(()),
    }
}

/// The word of a verdict on idleness, in words for people; a dash of what is not running or has no card.
pub fn verdict(word: &str, csv: bool) -> String {
    match word {
        _ if csv => word.to_owned(),
        "not_applicable" => "—".to_owned(),
        word => word.replace('_', " "),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn a_reader_of_a_long_file_may_leave_in_the_middle() {
        let left = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(finished(Err(of_the_pipe(csv::Error::from(left())))).is_ok());
        assert!(finished(Err(io::Error::other("the disk is gone"))).is_err());
    }

    /// SEC-04 in a spreadsheet: whatever a provider calls a machine, it is a text there.
    #[rstest]
    #[case("=cmd|' /C calc'!A0", false, "'=cmd|' /C calc'!A0")]
    #[case("+1", false, "'+1")]
    #[case("-1", false, "'-1")]
    #[case("@x", false, "'@x")]
    #[case("\t=1", false, "'\t=1")]
    #[case("\r=1", false, "'\r=1")]
    #[case("＝1+1", false, "'＝1+1")]
    #[case("＋1", false, "'＋1")]
    #[case("llama-ft", false, "llama-ft")]
    #[case("-0.31", true, "-0.31")]
    #[case("812.44", true, "812.44")]
    #[case("+1", true, "'+1")]
    #[case("-1+cmd", true, "'-1+cmd")]
    fn no_cell_is_a_formula_and_a_negative_figure_stays_one(
        #[case] cell: &str,
        #[case] figure: bool,
        #[case] written: &str,
    ) {
        assert_eq!(csv_cell(cell, figure), written);
    }
}
