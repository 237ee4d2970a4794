//! One list on the screen: its lines, its cursor, and what was chosen for it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use jiff::Timestamp;
use providers::model::{Action, Identity};

use super::message::{GroupName, QuickName, SortName};
use super::rows::{GroupKey, GroupSum};
use super::spend::SpendLine;
use crate::rules::alerts::Topic;
use crate::rules::filter::{Filter, FilterError};
use crate::rules::saga::OpId;

/// One line of a list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Line {
    Group(GroupKey),
    /// An instance or a storage item.
    Resource(Identity),
    /// An action.
    Operation(OpId),
    /// What was spent on something.
    Spend(SpendLine),
    /// A budget, by its name.
    Budget(String),
    /// An alert, with its first sign.
    Alert(Topic, Timestamp),
}

/// The list of one view.
#[derive(Clone, Debug)]
pub struct Listing {
    /// As painted, computed when something changed.
    pub lines: Vec<Line>,
    /// The sums of each group among them.
    pub sums: BTreeMap<GroupKey, GroupSum>,
    /// How many rows the filters hide.
    pub hidden: usize,
    /// How many of the marked rows are not among the lines: hidden by a filter, or folded away.
    pub hidden_marks: usize,
    /// Where the cursor is, by what stands there and not by place.
    pub cursor: Option<Line>,
    /// The first line on the screen.
    pub top: usize,
    pub marks: BTreeSet<Identity>,
    pub folded: BTreeSet<GroupKey>,
    filter: Filter,
    /// The filter as it was typed.
    pub filter_text: String,
    /// Why that is no filter; the one before it counts for now.
    pub filter_error: Option<FilterError>,
    pub quick: QuickName,
    pub sort: SortName,
    /// The other way round.
    pub reversed: bool,
    /// What was chosen; by itself the fleet is grouped by account from twenty rows on.
    pub group: Option<GroupName>,
    /// Places of the rows since they were last sorted, in the order of identities: nothing jumps while people
    /// look.
    pub ranks: Vec<(Identity, usize)>,
    pub(super) stale: bool,
    /// The lines were brought up to date without sorting them anew.
    pub(super) unsorted: bool,
    /// Somebody has pressed a key here: the cursor no longer stays on the first row by itself.
    pub(super) touched: bool,
    /// Where the cursor was, for when its line goes.
    pub(super) cursor_was: usize,
    /// When the cursor last came to another line without a key, or its row got another meaning.
    pub(super) cursor_jumped: Option<Timestamp>,
    /// What stop-or-start would do to the instance under the cursor, as of the last frame.
    pub(super) means: Option<(Identity, Action)>,
}

impl Default for Listing {
    fn default() -> Self {
        Listing {
            lines: Vec::new(),
            sums: BTreeMap::new(),
            hidden: 0,
            hidden_marks: 0,
            cursor: None,
            top: 0,
            marks: BTreeSet::new(),
            folded: BTreeSet::new(),
            filter: Filter::default(),
            filter_text: String::new(),
            filter_error: None,
            quick: QuickName::All,
            sort: SortName::Attention,
            reversed: false,
            group: None,
            ranks: Vec::new(),
            stale: true,
            unsorted: false,
            touched: false,
            cursor_was: 0,
            cursor_jumped: None,
            means: None,
        }
    }
}

impl Listing {
    /// The place of the cursor among the lines.
    pub fn cursor_at(&self) -> Option<usize> {
        let cursor = self.cursor.as_ref()?;
        // The usual case first: the line is where it was.
        if self.lines.get(self.cursor_was) == Some(cursor) {
            return Some(self.cursor_was);
        }
        self.lines.iter().position(|line| line == cursor)
    }

    /// The resource under the cursor; `None` on any other line and in an empty list.
    pub fn selected(&self) -> Option<&Identity> {
        match &self.cursor {
            Some(Line::Resource(identity)) => Some(identity),
            _ => None,
        }
    }

    /// Something other than everything is shown.
    pub fn is_filtered(&self) -> bool {
        !self.filter.is_empty() || self.quick != QuickName::All
    }

    /// The filter that counts.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Reads a filter as it is being typed. Of what cannot be read the rest counts: nothing is hidden by half
    /// a word.
    pub(super) fn set_filter(&mut self, text: &str) {
        if self.filter_text == text {
            return;
        }
        text.clone_into(&mut self.filter_text);
        self.filter_error = None;
        let mut rest = text.to_owned();
        let filter = loop {
            match Filter::parse(&rest) {
                Ok(filter) => break filter,
                Err(error) => {
                    let at = unreadable(&rest, error.at.clone());
                    self.filter_error.get_or_insert(error);
                    if rest[at.clone()].trim().is_empty() {
                        break Filter::default();
                    }
                    // Blanks of the same length keep the places of what stands behind.
                    rest.replace_range(at.clone(), &" ".repeat(at.len()));
                }
            }
        };
        if self.filter != filter {
            self.filter = filter;
            self.stale = true;
            // What passes is placed by the order, not by where it once was.
            self.ranks.clear();
        }
    }

    /// Counts the marked rows that are not among the lines.
    pub(super) fn count_hidden_marks(&mut self) {
        let marked = |line: &&Line| matches!(line, Line::Resource(identity) if self.marks.contains(identity));
        let shown = if self.marks.is_empty() { 0 } else { self.lines.iter().filter(marked).count() };
        self.hidden_marks = self.marks.len() - shown;
    }

    /// Hides nothing.
    pub(super) fn show_all(&mut self) {
        self.set_filter("");
        self.quick = QuickName::All;
        self.stale = true;
    }

    /// What the next action is about: the marked rows, else the one under the cursor.
    pub fn pointed(&self) -> Vec<Identity> {
        if self.marks.is_empty() {
            self.selected().cloned().into_iter().collect()
        } else {
            self.marks.iter().cloned().collect()
        }
    }

    /// Puts the cursor on a line by its place.
    pub(super) fn go_to(&mut self, at: usize) {
        if let Some(line) = self.lines.get(at) {
            self.cursor = Some(line.clone());
            self.cursor_was = at;
        }
    }

    /// Keeps the cursor on a line that exists, and that line among the `height` lines on the screen.
    pub(super) fn keep_cursor(&mut self, height: u16) {
        if self.lines.is_empty() {
            self.cursor = None;
            self.top = 0;
            return;
        }
        let at = match self.cursor_at() {
            // Until somebody presses a key, the cursor stays on the first row: the one that needs somebody most.
            _ if !self.touched => {
                let first = self.lines.iter().position(|line| !matches!(line, Line::Group(_))).unwrap_or(0);
                self.cursor = Some(self.lines[first].clone());
                first
            }
            Some(at) => at,
            None => {
                // Its line is gone: the one that took its place is nearest to where people look.
                let at = self.cursor_was.min(self.lines.len() - 1);
                self.cursor = Some(self.lines[at].clone());
                at
            }
        };
        self.cursor_was = at;
        let height = usize::from(height).max(1);
        if at < self.top {
            self.top = at;
        } else if at >= self.top + height {
            self.top = at + 1 - height;
        }
        self.top = self.top.min(self.lines.len().saturating_sub(height));
    }
}

/// A part of a text that is to be left out. It is widened until it holds more than blanks: what stands between quotes
/// may be blank and is still read.
fn unreadable(text: &str, mut at: Range<usize>) -> Range<usize> {
    while text[at.clone()].trim().is_empty() && at != (0..text.len()) {
        at.start = text[..at.start].char_indices().next_back().map_or(0, |(before, _)| before);
        at.end += text[at.end..].chars().next().map_or(0, char::len_utf8);
    }
    at
}
