//! The TOML document as it stands in the file: every key and value with its place.
//!
//! It is read by hand and not by derived code, for three reasons: each mistake knows the place of its own
//! key or value, all mistakes are told at once, and no value that may be a secret is ever quoted.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;

use providers::text::{clean, excerpt};
use toml::de::{DeTable, DeValue};

/// The longest quotation of the user's own text in a mistake, in characters.
const QUOTE: usize = 60;

/// One thing that is wrong in the file. Prints as `line:column: key path: what is wrong`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Counted from 1.
    pub line: usize,
    /// In characters, counted from 1.
    pub column: usize,
    /// For instance `account[1].base_url`, list places counted from 0. Empty when the text is no TOML at all.
    pub key: String,
    /// One cleaned line.
    pub message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.line, self.column)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

/// The text and what was found wrong in it so far.
pub(super) struct Document<'t> {
    text: &'t str,
    mistakes: RefCell<Vec<(usize, Mistake)>>,
}

impl<'t> Document<'t> {
    /// A byte-order mark at the beginning does not count.
    pub fn new(text: &'t str) -> Self {
        Document { text: text.strip_prefix('\u{feff}').unwrap_or(text), mistakes: RefCell::default() }
    }

    /// The document's own table, or `None` when the text is no TOML, which is then the only mistake.
    pub fn parse(&self) -> Option<DeTable<'t>> {
        match DeTable::parse(self.text) {
            Ok(table) => Some(table.into_inner()),
            Err(error) => {
                // Only the message: the error itself would print the line, and a secret may stand in it.
                let at = error.span().map_or(0, |span| span.start);
                self.note(at, "", format!("this is not TOML: {}", error.message()));
                None
            }
        }
    }

    /// The document as a section with these keys.
    pub fn root<'d>(&'d self, table: &'d DeTable<'d>, keys: &[&'static str]) -> Section<'d> {
        let root = Section { document: self, path: String::new(), at: 0, table };
        root.complain_of_unknown(keys);
        root
    }

    /// All mistakes in the order of the file.
    pub fn into_mistakes(self) -> Vec<Mistake> {
        let mut mistakes = self.mistakes.into_inner();
        mistakes.sort_by_key(|(at, _)| *at);
        mistakes.into_iter().map(|(_, mistake)| mistake).collect()
    }

    /// The line of a byte, counted from 1, and the column in characters, counted from 1.
    fn line_and_column(&self, at: usize) -> (usize, usize) {
        place(self.text.as_bytes(), at)
    }

    fn note(&self, at: usize, key: &str, message: impl AsRef<str>) {
        let (line, column) = self.line_and_column(at);
        let mistake = Mistake { line, column, key: key.to_owned(), message: clean(message.as_ref()) };
        self.mistakes.borrow_mut().push((at, mistake));
    }
}

/// The line of a byte and the column in characters, both counted from 1. What is no UTF-8 counts as it can.
pub(super) fn place(text: &[u8], at: usize) -> (usize, usize) {
    let before = &text[..at.min(text.len())];
    let line_begins = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    (line, String::from_utf8_lossy(&before[line_begins..]).chars().count() + 1)
}

/// A table of the document.
#[derive(Clone)]
pub(super) struct Section<'d> {
    document: &'d Document<'d>,
    path: String,
    at: usize,
    table: &'d DeTable<'d>,
}

impl<'d> Section<'d> {
    /// The value of a key; `None` when the key is not there.
    pub fn get(&self, key: &str) -> Option<Node<'d>> {
        let (name, value) = self.table.get_key_value(key)?;
        Some(self.node(name.get_ref(), name.span().start, value))
    }

    /// The value of a key that must be there.
    pub fn need(&self, key: &str) -> Option<Node<'d>> {
        let node = self.get(key);
        if node.is_none() {
            self.document.note(self.at, &child(&self.path, key), "missing");
        }
        node
    }

    /// Every key with its value, for tables whose keys are the user's own.
    pub fn entries(&self) -> impl Iterator<Item = (&'d str, Node<'d>)> {
        self.table.iter().map(|(name, value)| {
            let key: &'d str = name.get_ref();
            (key, self.node(key, name.span().start, value))
        })
    }

    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The key path, for instance `account[1]`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Notes that the section as a whole is wrong.
    pub fn refuse(&self, message: impl AsRef<str>) {
        self.document.note(self.at, &self.path, message);
    }

    fn node(&self, key: &str, key_at: usize, value: &'d toml::Spanned<DeValue<'d>>) -> Node<'d> {
        Node {
            document: self.document,
            path: child(&self.path, key),
            key_at,
            at: value.span().start,
            value: value.get_ref(),
        }
    }

    fn complain_of_unknown(&self, keys: &[&'static str]) {
        for (key, node) in self.entries().filter(|(key, _)| !keys.contains(key)) {
            let hint = if keys.contains(&"key_env") && ["key", "api_key", "token", "secret"].contains(&key) {
                "a key itself does not belong into this file: name its source with `key_env`, `key_cmd` or `key_file`"
                    .to_owned()
            } else {
                did_you_mean(key, keys, "known here")
            };
            self.document.note(node.key_at, &node.path, format!("unknown key; {hint}"));
        }
    }
}

/// A value of the document.
#[derive(Clone)]
pub(super) struct Node<'d> {
    document: &'d Document<'d>,
    path: String,
    key_at: usize,
    at: usize,
    value: &'d DeValue<'d>,
}

impl<'d> Node<'d> {
    /// Notes that the value is wrong.
    pub fn refuse(&self, message: impl AsRef<str>) {
        self.document.note(self.at, &self.path, message);
    }

    /// Notes that the key should not be here at all.
    pub fn refuse_key(&self, message: impl AsRef<str>) {
        self.document.note(self.key_at, &self.path, message);
    }

    /// The last part of the key path.
    pub fn key(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or_default()
    }

    /// The line and the column on which the value begins, both counted from 1.
    pub fn place(&self) -> (usize, usize) {
        self.document.line_and_column(self.at)
    }

    /// The text, if it is one; notes nothing.
    pub fn peek(&self) -> Option<&'d str> {
        self.value.as_str()
    }

    /// A text, which may be empty.
    pub fn any_text(&self) -> Option<&'d str> {
        self.peek().or_else(|| self.other_than("text in quotes"))
    }

    /// A text with something in it.
    pub fn text(&self) -> Option<&'d str> {
        let text = self.any_text()?;
        if text.trim().is_empty() {
            self.refuse("empty");
            return None;
        }
        Some(text)
    }

    pub fn flag(&self) -> Option<bool> {
        match self.value {
            DeValue::Boolean(flag) => Some(*flag),
            _ => self.other_than("true or false"),
        }
    }

    /// A number without quotes.
    pub fn number(&self) -> Option<f64> {
        let number = match self.value {
            DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix()).ok().map(|n| n as f64),
            DeValue::Float(float) => float.as_str().parse().ok(),
            _ => return self.other_than("a number without quotes"),
        };
        number.filter(|number: &f64| number.is_finite()).or_else(|| {
            self.refuse("no number that can be read");
            None
        })
    }

    pub fn is_flag(&self) -> bool {
        matches!(self.value, DeValue::Boolean(_))
    }

    pub fn is_table(&self) -> bool {
        self.value.is_table()
    }

    pub fn is_list(&self) -> bool {
        self.value.is_array()
    }

    /// The values of a list.
    pub fn list(&self) -> Option<Vec<Node<'d>>> {
        match self.value {
            DeValue::Array(values) => {
                let node = |(index, value): (usize, &'d toml::Spanned<DeValue<'d>>)| Node {
                    document: self.document,
                    path: format!("{}[{index}]", self.path),
                    key_at: value.span().start,
                    at: value.span().start,
                    value: value.get_ref(),
                };
                Some(values.iter().enumerate().map(node).collect())
            }
            _ => self.other_than("a list in [ ]"),
        }
    }

    /// The tables of a list that is written `[[key]]`.
    pub fn sections(&self, keys: &[&'static str]) -> Vec<Section<'d>> {
        if self.is_table() {
            self.refuse(format!("there may be several: write `[[{}]]`", self.path));
            return Vec::new();
        }
        self.list().unwrap_or_default().iter().filter_map(|node| node.section(keys)).collect()
    }

    /// A table with these keys and no others.
    pub fn section(&self, keys: &[&'static str]) -> Option<Section<'d>> {
        let section = self.free_section()?;
        section.complain_of_unknown(keys);
        Some(section)
    }

    /// A table whose keys are the user's own.
    pub fn free_section(&self) -> Option<Section<'d>> {
        match self.value {
            DeValue::Table(table) => {
                Some(Section { document: self.document, path: self.path.clone(), at: self.at, table })
            }
            _ => self.other_than("a table"),
        }
    }

    /// One word out of these.
    pub fn word(&self, words: &[&'static str]) -> Option<&'static str> {
        let text = self.text()?;
        let word = words.iter().copied().find(|word| *word == text);
        if word.is_none() {
            self.refuse(format!("`{}` is not known; {}", quote(text), did_you_mean(text, words, "there are")));
        }
        word
    }

    /// A date without a time, in quotes or bare.
    pub fn date(&self) -> Option<jiff::civil::Date> {
        let date = match self.value {
            DeValue::String(text) => jiff::civil::Date::strptime("%Y-%m-%d", text.as_ref()).ok(),
            DeValue::Datetime(toml::value::Datetime { date: Some(date), time: None, offset: None }) => {
                let (year, month, day) = (i16::try_from(date.year), i8::try_from(date.month), i8::try_from(date.day));
                year.ok().zip(month.ok()).zip(day.ok()).and_then(|((y, m), d)| jiff::civil::Date::new(y, m, d).ok())
            }
            _ => None,
        };
        if date.is_none() {
            self.refuse("expected a date such as \"2026-11-28\"");
        }
        date
    }

    fn other_than<T>(&self, expected: &str) -> Option<T> {
        let found = match self.value {
            DeValue::String(_) => "text",
            DeValue::Integer(_) | DeValue::Float(_) => "a number without quotes",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date without quotes",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.refuse(format!("expected {expected}, found {found}"));
        None
    }
}

/// A piece of the user's text for a mistake: cleaned and cut.
pub(super) fn quote(text: &str) -> String {
    excerpt(text, QUOTE)
}

/// Names the nearest of the known words, or all of them under `title` when none is near.
pub(super) fn did_you_mean<S: AsRef<str>>(word: &str, known: &[S], title: &str) -> String {
    match nearest(word, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("{title}: {}", known.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ")),
    }
}

/// The known word that the user probably meant; `None` when none is close enough to be helpful.
pub(super) fn nearest<'k, S: AsRef<str>>(word: &str, known: &'k [S]) -> Option<&'k str> {
    if word.len() > QUOTE {
        return None;
    }
    let word = word.to_lowercase();
    let distance = |known: &str| strsim::osa_distance(&word, &known.to_lowercase());
    let (near, distance) =
        known.iter().map(|known| (known.as_ref(), distance(known.as_ref()))).min_by_key(|(_, distance)| *distance)?;
    (distance * 3 <= near.chars().count().max(3)).then_some(near)
}

/// The path of a key below another, quoted where TOML would quote it.
fn child(path: &str, key: &str) -> String {
    let bare = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let key = if bare && key.len() <= QUOTE { Cow::Borrowed(key) } else { Cow::Owned(format!("\"{}\"", quote(key))) };
    if path.is_empty() { key.into_owned() } else { format!("{path}.{key}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::a_letter_missing("providr", Some("provider"))]
    #[case::two_letters_swapped("nmae", Some("name"))]
    #[case::other_case("Provider", Some("provider"))]
    #[case::a_dash("base-url", Some("base_url"))]
    #[case::something_else("colour", None)]
    #[case::nothing("", None)]
    fn the_nearest_word_is_near(#[case] word: &str, #[case] expected: Option<&str>) {
        assert_eq!(nearest(word, &["provider", "name", "base_url"]), expected);
    }

    #[rstest]
    #[case(0, (1, 1))]
    // `名` is three bytes and one column.
    #[case(3, (1, 2))]
    #[case(6, (2, 1))]
    #[case(7, (2, 2))]
    #[case(99, (2, 2))]
    fn columns_are_characters_and_windows_line_ends_count_once(#[case] at: usize, #[case] expected: (usize, usize)) {
        assert_eq!(place("名a\r\nb".as_bytes(), at), expected);
    }

    #[test]
    fn a_key_that_toml_would_quote_is_quoted_and_cut_in_a_path() {
        assert_eq!(child("fx", "CNY"), "fx.CNY");
        assert_eq!(child("", "a b\u{1b}[31m"), "\"a b\"");
        assert!(child("", &"x".repeat(5000)).chars().count() < 70);
    }
}
