//! From what somebody typed to the terms of a filter.

use std::ops::Range;

use jiff::SignedDuration;
use providers::model::Phase;
use providers::money::Currency;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::names::{CURRENCIES, KINDS, MARKETS, PERIODS, SIZES, TIMES, kind_words, market_words, nearest, phase_words};
use super::{
    Expected, Field, FilterError, FilterErrorKind, Flag, Glob, Key, Op, Part, Pattern, Quantity, Term, Test, Word,
};

/// All terms of a text.
pub(super) fn terms(text: &str) -> Result<Vec<Term>, FilterError> {
    tokens(text)?.iter().map(term).collect()
}

/// A character with its place in the text.
#[derive(Clone, Copy, Debug)]
struct Char {
    at: usize,
    char: char,
    /// It stands for itself.
    quoted: bool,
}

impl Char {
    /// Its narrow form, when it may mean something.
    fn sign(&self) -> Option<char> {
        (!self.quoted).then(|| narrow(self.char))
    }
}

/// What stands between two spaces, without its quotes.
#[derive(Debug)]
struct Token {
    at: Range<usize>,
    chars: Vec<Char>,
}

fn tokens(text: &str) -> Result<Vec<Token>, FilterError> {
    let mut tokens = Vec::new();
    let mut token: Option<Token> = None;
    let mut quote = None;
    for (at, char) in text.char_indices() {
        if quote.is_none() && char.is_whitespace() {
            tokens.extend(token.take());
            continue;
        }
        let token = token.get_or_insert_with(|| Token { at: at..at, chars: Vec::new() });
        token.at.end = at + char.len_utf8();
        if matches!(narrow(char), '"' | '“' | '”') {
            quote = if quote.is_none() { Some(at) } else { None };
        } else {
            token.chars.push(Char { at, char, quoted: quote.is_some() });
        }
    }
    if let Some(at) = quote {
        return Err(error(FilterErrorKind::Unfinished(Expected::Quote), at..text.len()));
    }
    tokens.extend(token);
    Ok(tokens)
}

/// The narrow form of the punctuation, letters and digits that Chinese keyboards write wide.
fn narrow(char: char) -> char {
    match char {
        '￥' => '¥',
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(char) - 0xfee0).unwrap_or(char),
        other => other,
    }
}

fn term(token: &Token) -> Result<Term, FilterError> {
    let (negated, chars) = match token.chars.split_first() {
        Some((first, rest)) if matches!(first.sign(), Some('-' | '!')) => (true, rest),
        _ => (false, &token.chars[..]),
    };
    let mut reader = Reader { token, before: None };
    let parts = chars.split(|char| char.sign() == Some('|'));
    Ok(Term { negated, any: parts.map(|part| reader.test(part)).collect::<Result<_, _>>()? })
}

/// What a value belongs to.
#[derive(Clone, Copy)]
enum Left {
    Key(Key),
    Quantity(Quantity, Op),
}

/// Reads the alternatives of one token.
struct Reader<'a> {
    token: &'a Token,
    /// The key of the alternatives so far: it stands for those that have none.
    before: Option<Left>,
}

impl Reader<'_> {
    fn test(&mut self, part: &[Char]) -> Result<Test, FilterError> {
        if part.is_empty() {
            return Err(self.unfinished(Expected::Term));
        }
        let is_sign = |char: &Char| matches!(char.sign(), Some(':' | '<' | '>' | '=' | '≤' | '≥' | '≠'));
        let Some(at) = part.iter().position(is_sign) else {
            return match self.before {
                Some(left) => self.value(left, part),
                None => Ok(flag(part).map_or_else(|| Test::Word(word(&text(part))), Test::Flag)),
            };
        };
        match part[at].sign() {
            Some(':') => self.after_colon(&part[..at], &part[at + 1..]),
            Some('=') => self.equation(part, at),
            _ => self.comparison(&part[..at], &part[at..]),
        }
    }

    /// `project:art`, and also `size:100g` and `size:>100g`.
    fn after_colon(&mut self, name: &[Char], value: &[Char]) -> Result<Test, FilterError> {
        let word = plain(name);
        let (left, value) = match (Key::named(&word), Quantity::named(&word)) {
            (Some(key), _) => (Left::Key(key), value),
            (None, Some(quantity)) => match operator(value) {
                Some((op, value)) => (Left::Quantity(quantity, op), value),
                None => (Left::Quantity(quantity, Op::Equal), value),
            },
            (None, None) => {
                let keys = Key::ALL.iter().flat_map(|key| key.names());
                let quantities = Quantity::ALL.iter().flat_map(|quantity| quantity.names());
                return Err(self.unknown_key(name, &word, keys.chain(quantities).copied()));
            }
        };
        self.before = Some(left);
        self.value(left, value)
    }

    /// `gpus>=8`, and `>1/h` without a name.
    fn comparison(&mut self, name: &[Char], rest: &[Char]) -> Result<Test, FilterError> {
        let word = plain(name);
        let quantity = if name.is_empty() { Some(Quantity::Rate) } else { Quantity::named(&word) };
        let (Some(quantity), Some((op, value))) = (quantity, operator(rest)) else {
            if let Some(key) = Key::named(&word) {
                return Err(self.error(FilterErrorKind::NotCompared(key), name));
            }
            let quantities = Quantity::ALL.iter().flat_map(|quantity| quantity.names());
            return Err(self.unknown_key(name, &word, quantities.copied()));
        };
        let left = Left::Quantity(quantity, op);
        self.before = Some(left);
        self.value(left, value)
    }

    /// `gpus=8` and `gpus!=8`. All else with an `=` in it is the text of a label: `team=vision`, `size=big`.
    fn equation(&mut self, part: &[Char], at: usize) -> Result<Test, FilterError> {
        let negated = at > 0 && part[at - 1].sign() == Some('!');
        let name = if negated { at - 1 } else { at };
        if let Some(quantity) = Quantity::named(&plain(&part[..name]))
            && let Some((op, value)) = operator(&part[name..])
            && let Ok(test) = compare(quantity, op, &plain(value))
        {
            self.before = Some(Left::Quantity(quantity, op));
            return Ok(test);
        }
        match self.before {
            Some(left) => self.value(left, part),
            None => Ok(Test::Word(word(&text(part)))),
        }
    }

    fn value(&self, left: Left, value: &[Char]) -> Result<Test, FilterError> {
        match left {
            Left::Key(key) => self.pattern(key, value),
            Left::Quantity(quantity, op) => compare(quantity, op, &plain(value)).map_err(|fault| match fault {
                Fault::Unfinished => self.unfinished(Expected::Amount(quantity)),
                Fault::Wrong => self.error(FilterErrorKind::NotAnAmount(quantity), value),
            }),
        }
    }

    fn pattern(&self, key: Key, value: &[Char]) -> Result<Test, FilterError> {
        let shown = text(value);
        if shown.is_empty() {
            return Err(self.unfinished(Expected::Value(key)));
        }
        let pattern = match value {
            [only] if only.sign() == Some('-') => Pattern::Nothing,
            // A glob cannot quote: one wildcard makes the others wildcards, too.
            _ if value.iter().any(|char| matches!(char.sign(), Some('*' | '?'))) => {
                let wild = |char: &Char| char.sign().filter(|sign| matches!(sign, '*' | '?')).unwrap_or(char.char);
                Pattern::Whole(Glob::new_case_insensitive(&value.iter().map(wild).collect::<String>()))
            }
            _ => Pattern::Part(Part::new(&shown)),
        };
        let named = |words: &[&str]| words.iter().any(|word| pattern.fits(Some(word)));
        let test = match key {
            Key::Name => Test::Text(Field::Name, pattern),
            Key::Id => Test::Text(Field::Id, pattern),
            Key::Account => Test::Text(Field::Account, pattern),
            Key::Provider => Test::Text(Field::Provider, pattern),
            Key::Region => Test::Text(Field::Region, pattern),
            Key::Gpu => Test::Text(Field::Gpu, pattern),
            Key::Project => Test::Text(Field::Project, pattern),
            Key::Label => Test::Label(pattern),
            Key::Phase => {
                let phases: Vec<_> = Phase::ALL.into_iter().filter(|phase| named(&phase_words(*phase))).collect();
                let words = Phase::ALL.into_iter().flat_map(phase_words);
                self.known(key, value, words, phases.is_empty())?;
                Test::Phase(phases)
            }
            Key::Market => {
                let markets = MARKETS.into_iter().filter(|market| named(market_words(*market)));
                let markets: Vec<_> = markets.map(|market| std::mem::discriminant(&market)).collect();
                let words = MARKETS.into_iter().flat_map(market_words).copied();
                self.known(key, value, words, markets.is_empty())?;
                Test::Market(markets)
            }
            Key::Kind => {
                let kinds: Vec<_> = KINDS.into_iter().filter(|kind| named(&kind_words(*kind))).collect();
                self.known(key, value, KINDS.into_iter().flat_map(kind_words), kinds.is_empty())?;
                Test::Kind(kinds)
            }
        };
        Ok(test)
    }

    fn known(
        &self,
        key: Key,
        value: &[Char],
        words: impl Iterator<Item = &'static str>,
        is_none: bool,
    ) -> Result<(), FilterError> {
        if !is_none {
            return Ok(());
        }
        let nearest = nearest(&plain(value), words);
        Err(self.error(FilterErrorKind::UnknownValue { key, nearest }, value))
    }

    fn unknown_key(&self, name: &[Char], word: &str, known: impl Iterator<Item = &'static str>) -> FilterError {
        self.error(FilterErrorKind::UnknownKey { nearest: nearest(word, known) }, name)
    }

    fn unfinished(&self, expected: Expected) -> FilterError {
        error(FilterErrorKind::Unfinished(expected), self.token.at.clone())
    }

    /// An error about some characters; about the whole token where there are none.
    fn error(&self, kind: FilterErrorKind, chars: &[Char]) -> FilterError {
        let at = match (chars.first(), chars.last()) {
            (Some(first), Some(last)) => first.at..last.at + last.char.len_utf8(),
            _ => self.token.at.clone(),
        };
        error(kind, at)
    }
}

fn error(kind: FilterErrorKind, at: Range<usize>) -> FilterError {
    FilterError { kind, at }
}

fn text(chars: &[Char]) -> String {
    chars.iter().map(|char| char.char).collect()
}

/// The same in narrow characters and lower case, for what has a meaning.
fn plain(chars: &[Char]) -> String {
    chars.iter().map(|char| narrow(char.char)).collect::<String>().to_lowercase()
}

fn flag(part: &[Char]) -> Option<Flag> {
    if part.iter().any(|char| char.quoted) {
        return None;
    }
    Flag::named(&plain(part))
}

fn word(text: &str) -> Word {
    let part = Part::new(text);
    let found = |words: &[&str]| words.iter().any(|word| part.is_in(word));
    // On demand is what a row does not mention.
    let markets = MARKETS[1..].iter().filter(|market| found(market_words(**market)));
    Word {
        phases: Phase::ALL.into_iter().filter(|phase| found(&phase_words(*phase))).collect(),
        markets: markets.map(std::mem::discriminant).collect(),
        kinds: KINDS.into_iter().filter(|kind| found(&kind_words(*kind))).collect(),
        part,
    }
}

/// The operator at the beginning, and what follows it.
fn operator(chars: &[Char]) -> Option<(Op, &[Char])> {
    let second = chars.get(1).and_then(Char::sign) == Some('=');
    let (op, length) = match (chars.first()?.sign()?, second) {
        ('<', false) => (Op::Less, 1),
        ('<', true) => (Op::AtMost, 2),
        ('≤', _) => (Op::AtMost, 1),
        ('>', false) => (Op::More, 1),
        ('>', true) => (Op::AtLeast, 2),
        ('≥', _) => (Op::AtLeast, 1),
        ('=', false) => (Op::Equal, 1),
        ('=', true) => (Op::Equal, 2),
        ('!', true) => (Op::Unequal, 2),
        ('≠', _) => (Op::Unequal, 1),
        _ => return None,
    };
    Some((op, &chars[length..]))
}

/// What is wrong with an amount.
#[derive(Debug, PartialEq, Eq)]
enum Fault {
    /// It may become right.
    Unfinished,
    Wrong,
}

fn compare(quantity: Quantity, op: Op, value: &str) -> Result<Test, Fault> {
    if value.is_empty() {
        return Err(Fault::Unfinished);
    }
    Ok(match quantity {
        Quantity::Rate => rate(op, value)?,
        Quantity::Gpus => match number(value)? {
            (count, "") if count.fract().is_zero() => Test::Gpus(op, count),
            _ => return Err(Fault::Wrong),
        },
        Quantity::Utilization => match number(value)? {
            (percent, "" | "%") => Test::Utilization(op, percent.to_f64().ok_or(Fault::Wrong)? / 100.0),
            _ => return Err(Fault::Wrong),
        },
        Quantity::Memory => Test::MemoryBytes(op, scaled(mebibytes(value)?, 1 << 20)?),
        Quantity::Size => Test::SizeGib(op, mebibytes(value)? / Decimal::from(1024)),
        Quantity::Up => Test::Up(op, duration(value)?),
        Quantity::Age => Test::Age(op, duration(value)?),
        Quantity::Saved => Test::Saved(op, duration(value)?),
    })
}

/// `1/h`, `$20/mo`, `4cny/h`, `4元/时`; an hour where nothing else is said.
fn rate(op: Op, value: &str) -> Result<Test, Fault> {
    let (money, hours) = match value.split_once('/') {
        Some((money, period)) => (money, unit(period, PERIODS)?),
        None => (value, 1),
    };
    let digits = money.find(|char: char| char.is_ascii_digit() || char == '.').unwrap_or(money.len());
    let (before, money) = money.split_at(digits);
    if money.is_empty() && !value.contains('/') {
        // A currency, so far.
        return unit(before, CURRENCIES).and(Err(Fault::Unfinished));
    }
    let (amount, after) = number(money)?;
    let currency = match (before, after) {
        ("", "") => None,
        (code, "") | ("", code) => Some(Currency::parse(unit(code, CURRENCIES)?).ok_or(Fault::Wrong)?),
        _ => return Err(Fault::Wrong),
    };
    Ok(Test::Rate { op, amount, hours: hours.into(), currency })
}

/// `90m`, `2d`, `1d12h`.
fn duration(value: &str) -> Result<SignedDuration, Fault> {
    let mut seconds = Decimal::ZERO;
    let mut rest = value;
    while !rest.is_empty() {
        let (amount, after) = number(rest)?;
        let end = after.find(|char: char| char.is_ascii_digit() || char == '.').unwrap_or(after.len());
        let part = scaled(amount, unit(&after[..end], TIMES)?)?;
        seconds = seconds.checked_add(part).ok_or(Fault::Wrong)?;
        rest = &after[end..];
    }
    let millis = scaled(seconds, 1000)?.to_i64().ok_or(Fault::Wrong)?;
    Ok(SignedDuration::from_millis(millis))
}

/// `40g`, `1.5tb`, `100`.
fn mebibytes(value: &str) -> Result<Decimal, Fault> {
    let (amount, after) = number(value)?;
    scaled(amount, unit(after, SIZES)?)
}

fn scaled(amount: Decimal, by: u32) -> Result<Decimal, Fault> {
    amount.checked_mul(by.into()).ok_or(Fault::Wrong)
}

/// What a unit stands for.
fn unit<T: Copy>(text: &str, units: &[(&str, T)]) -> Result<T, Fault> {
    match units.iter().find(|(name, _)| *name == text) {
        Some((_, value)) => Ok(*value),
        None if units.iter().any(|(name, _)| name.starts_with(text)) => Err(Fault::Unfinished),
        None => Err(Fault::Wrong),
    }
}

/// The number at the beginning, and what follows it.
fn number(text: &str) -> Result<(Decimal, &str), Fault> {
    let end = text.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.is_empty() {
        return Err(Fault::Wrong);
    }
    if digits.ends_with('.') && rest.is_empty() && digits.matches('.').count() == 1 {
        return Err(Fault::Unfinished);
    }
    Ok((Decimal::from_str_exact(digits).map_err(|_| Fault::Wrong)?, rest))
}
