//! What a terminal sends, byte by byte: keys, the mouse, pasted texts, and answers to questions.
//!
//! A sequence is taken whole or not at all: no piece of one that is torn, unknown or somebody else's ever
//! passes for a key. Where bytes could be either, a key is rather lost than invented.

use std::collections::VecDeque;
use std::time::Duration;

use crossterm::event::{
    Event, KeyCode, KeyEvent, KeyEventKind, KeyEventState, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};

/// One thing that the terminal sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    Event(Event),
    Answer(Answer),
}

/// What the terminal answers to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It knows the kitty keyboard protocol.
    Keyboard,
    /// What kind of terminal it is: every terminal answers this, and answers in order.
    Attributes,
    /// Where its cursor is, from 1.
    Cursor { row: u16, column: u16 },
    /// Its background: red, green, blue.
    Background([u8; 3]),
}

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
const CTRL_C: u8 = 0x03;

/// The Esc key sends what every sequence begins with; the rest of one comes in the same moment.
const ESC_ALONE: Duration = Duration::from_millis(5);
/// What comes later than this does not belong to what was begun.
const TORN: Duration = Duration::from_millis(500);
/// No sequence of a key, the mouse or an answer that we asked for is longer.
const LONGEST: usize = 64;
/// More of a pasted text than this is dropped.
const LONGEST_PASTE: usize = 1 << 16;
const PASTE_ENDS: &[u8] = b"\x1b[201~";

/// Takes bytes in, gives [`Input`]s out.
#[derive(Debug, Default)]
pub struct Parser {
    bytes: Vec<u8>,
    text: Option<Text>,
    inputs: VecDeque<Input>,
}

/// A text between a begin and an end, as far as it came.
#[derive(Debug)]
struct Text {
    kind: TextKind,
    kept: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextKind {
    Paste,
    /// An operating system command: colours are told in one.
    Command,
    /// Anything that the terminal tells somebody else.
    Foreign,
}

/// What the first bytes are.
enum Step {
    /// More are needed to tell.
    More,
    /// So many bytes, which mean this or nothing.
    Done(usize, Option<Input>),
    /// So many bytes, which begin a text.
    Begins(usize, TextKind),
}

impl Parser {
    /// Takes in what was read.
    pub fn take(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let mut at = 0;
        while at < self.bytes.len() {
            let rest = &self.bytes[at..];
            let taken = match &mut self.text {
                Some(text) => {
                    let (taken, ended) = text.take(rest);
                    if ended {
                        self.inputs.extend(self.text.take().and_then(Text::end));
                    }
                    taken
                }
                None => match step(rest) {
                    Step::More => 0,
                    Step::Done(taken, input) => {
                        self.inputs.extend(input);
                        taken
                    }
                    Step::Begins(taken, kind) => {
                        self.text = Some(Text { kind, kept: Vec::new() });
                        taken
                    }
                },
            };
            if taken == 0 {
                break;
            }
            at += taken;
        }
        self.bytes.drain(..at);
    }

    /// The next input that is whole.
    pub fn pop(&mut self) -> Option<Input> {
        self.inputs.pop_front()
    }

    /// How long the rest of what has begun may take; `None` when nothing has, and in a paste, which ends only
    /// with its end: a slow line must not turn the rest of it into keys.
    pub fn patience(&self) -> Option<Duration> {
        match &self.text {
            Some(text) if text.kind == TextKind::Paste => None,
            Some(_) => Some(TORN),
            None if self.bytes.is_empty() => None,
            None if self.bytes.iter().all(|byte| *byte == ESC) => Some(ESC_ALONE),
            None => Some(TORN),
        }
    }

    /// Nothing more came in that time.
    pub fn give_up(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if self.text.take().is_some() {
            return;
        }
        match bytes.as_slice() {
            [ESC, letter] if letter.is_ascii_graphic() => {
                let key = KeyEvent::new(KeyCode::Char(char::from(*letter)), KeyModifiers::ALT);
                self.inputs.push_back(Input::Event(Event::Key(key)));
            }
            escapes if escapes.iter().all(|byte| *byte == ESC) => {
                self.inputs.extend(escapes.iter().map(|_| pressed(KeyCode::Esc, KeyModifiers::NONE)));
            }
            _ => {}
        }
    }
}

impl Text {
    /// Takes what belongs to it: how many bytes, and whether that was its end.
    fn take(&mut self, bytes: &[u8]) -> (usize, bool) {
        let (own, taken, ended) = match self.kind {
            TextKind::Paste => match bytes.windows(PASTE_ENDS.len()).position(|window| window == PASTE_ENDS) {
                Some(end) => (end, end + PASTE_ENDS.len(), true),
                // Its end may be here in part.
                None => {
                    let own = bytes.len().saturating_sub(PASTE_ENDS.len() - 1);
                    (own, own, false)
                }
            },
            TextKind::Command | TextKind::Foreign => match bytes.iter().position(|byte| matches!(*byte, BEL | ESC)) {
                Some(end) if bytes[end] == BEL => (end, end + 1, true),
                Some(end) if bytes.get(end + 1) == Some(&b'\\') => (end, end + 2, true),
                // Another sequence begins, so this one is over.
                Some(end) if bytes.len() > end + 1 => (end, end, true),
                Some(end) => (end, end, false),
                None => (bytes.len(), bytes.len(), false),
            },
        };
        let most = if self.kind == TextKind::Paste { LONGEST_PASTE } else { LONGEST };
        let room = most.saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&bytes[..own.min(room)]);
        (taken, ended)
    }

    fn end(self) -> Option<Input> {
        match self.kind {
            TextKind::Paste => Some(Input::Event(Event::Paste(String::from_utf8_lossy(&self.kept).into_owned()))),
            TextKind::Command => background(&self.kept).map(|rgb| Input::Answer(Answer::Background(rgb))),
            TextKind::Foreign => None,
        }
    }
}

fn pressed(code: KeyCode, modifiers: KeyModifiers) -> Input {
    Input::Event(Event::Key(KeyEvent::new(code, modifiers)))
}

fn key(taken: usize, code: KeyCode) -> Step {
    Step::Done(taken, Some(pressed(code, KeyModifiers::NONE)))
}

/// What the first bytes are; there is at least one.
fn step(bytes: &[u8]) -> Step {
    match bytes[0] {
        ESC => escape(bytes),
        b'\r' => key(1, KeyCode::Enter),
        b'\t' => key(1, KeyCode::Tab),
        0x7f => key(1, KeyCode::Backspace),
        0 => Step::Done(1, Some(pressed(KeyCode::Char(' '), KeyModifiers::CONTROL))),
        letter @ 0x01..=0x1a => {
            let letter = char::from(letter - 1 + b'a');
            Step::Done(1, Some(pressed(KeyCode::Char(letter), KeyModifiers::CONTROL)))
        }
        digit @ 0x1c..=0x1f => {
            let digit = char::from(digit - 0x1c + b'4');
            Step::Done(1, Some(pressed(KeyCode::Char(digit), KeyModifiers::CONTROL)))
        }
        _ => character(bytes),
    }
}

/// One character of UTF-8.
fn character(bytes: &[u8]) -> Step {
    let length = match bytes[0] {
        0x20..=0x7e => 1,
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return Step::Done(1, None),
    };
    let whole = &bytes[..length.min(bytes.len())];
    match std::str::from_utf8(whole) {
        Ok(text) => match text.chars().next() {
            Some(c) => key(length, KeyCode::Char(c)),
            None => Step::Done(1, None),
        },
        Err(error) if error.error_len().is_none() && whole.len() < length => Step::More,
        Err(_) => Step::Done(1, None),
    }
}

/// What begins with ESC.
fn escape(bytes: &[u8]) -> Step {
    let Some(second) = bytes.get(1) else { return Step::More };
    match second {
        b'[' => control(bytes),
        b'O' => single_shift(bytes),
        // What is told in one begins with a number: a plain Alt-] is none.
        b']' => match bytes.get(2) {
            None => Step::More,
            Some(b'0'..=b'9') => Step::Begins(2, TextKind::Command),
            Some(_) => alt(bytes),
        },
        b'P' | b'X' | b'^' | b'_' if bytes.len() == 2 => Step::More,
        b'P' | b'X' | b'^' | b'_' => Step::Begins(2, TextKind::Foreign),
        // Esc, and Esc once more; but Alt before a key that sends a sequence.
        &ESC => match bytes.get(2) {
            None => Step::More,
            Some(b'[' | b'O') => alt(bytes),
            Some(_) => key(1, KeyCode::Esc),
        },
        // Whatever came before it, this one is heard.
        &CTRL_C => key(1, KeyCode::Esc),
        _ => alt(bytes),
    }
}

/// A key with Alt: ESC before what it sends alone.
fn alt(bytes: &[u8]) -> Step {
    match step(&bytes[1..]) {
        Step::Done(taken, Some(Input::Event(Event::Key(mut key)))) => {
            key.modifiers |= KeyModifiers::ALT;
            Step::Done(taken + 1, Some(Input::Event(Event::Key(key))))
        }
        Step::Done(taken, input) => Step::Done(taken + 1, input),
        Step::Begins(taken, kind) => Step::Begins(taken + 1, kind),
        Step::More => Step::More,
    }
}

/// ESC O and one letter.
fn single_shift(bytes: &[u8]) -> Step {
    let Some(letter) = bytes.get(2) else { return Step::More };
    match function_key(*letter) {
        Some(code) => key(3, code),
        // The keypad of a terminal that was left in its application mode.
        None if letter.is_ascii_alphabetic() => Step::Done(3, None),
        None => alt(bytes),
    }
}

/// Keys that end in a letter, with ESC O or with ESC [ before it.
fn function_key(letter: u8) -> Option<KeyCode> {
    Some(match letter {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'F' => KeyCode::End,
        b'H' => KeyCode::Home,
        b'P' => KeyCode::F(1),
        b'Q' => KeyCode::F(2),
        b'R' => KeyCode::F(3),
        b'S' => KeyCode::F(4),
        _ => return None,
    })
}

/// Keys that are told by a number before `~`.
fn numbered_key(number: u32) -> Option<KeyCode> {
    let number = u8::try_from(number).ok()?;
    Some(match number {
        1 | 7 => KeyCode::Home,
        2 => KeyCode::Insert,
        3 => KeyCode::Delete,
        4 | 8 => KeyCode::End,
        5 => KeyCode::PageUp,
        6 => KeyCode::PageDown,
        11..=15 => KeyCode::F(number - 10),
        17..=21 => KeyCode::F(number - 11),
        23..=26 => KeyCode::F(number - 12),
        28 | 29 => KeyCode::F(number - 15),
        31..=34 => KeyCode::F(number - 17),
        _ => return None,
    })
}

/// A control sequence: ESC [, parameters, and the letter that ends it.
fn control(bytes: &[u8]) -> Step {
    match bytes.get(2) {
        // The function keys of the Linux console.
        Some(b'[') => {
            return match bytes.get(3) {
                None => Step::More,
                Some(letter @ b'A'..=b'E') => key(4, KeyCode::F(letter - b'A' + 1)),
                Some(_) => Step::Done(4, None),
            };
        }
        // The mouse of terminals that know but the oldest form: three bytes that may be anything.
        Some(b'M') => return if bytes.len() < 6 { Step::More } else { Step::Done(6, old_mouse(&bytes[3..6])) },
        _ => {}
    }
    let Some(end) = bytes[2..].iter().position(|byte| !(0x20..=0x3f).contains(byte)).map(|at| at + 2) else {
        return if bytes.len() > LONGEST { Step::Done(bytes.len(), None) } else { Step::More };
    };
    if !(0x40..=0x7e).contains(&bytes[end]) {
        // It broke off: what comes now is something else.
        return Step::Done(end, None);
    }
    let Ok(parameters) = std::str::from_utf8(&bytes[2..end]) else { return Step::Done(end + 1, None) };
    if (parameters, bytes[end]) == ("200", b'~') {
        return Step::Begins(end + 1, TextKind::Paste);
    }
    Step::Done(end + 1, meaning(parameters, bytes[end]))
}

fn meaning(parameters: &str, letter: u8) -> Option<Input> {
    if let Some(rest) = parameters.strip_prefix('<') {
        return mouse(rest, letter);
    }
    if parameters.starts_with('?') {
        return match letter {
            b'u' => Some(Input::Answer(Answer::Keyboard)),
            b'c' => Some(Input::Answer(Answer::Attributes)),
            _ => None,
        };
    }
    let mut fields = parameters.split(';').map(numbers);
    let codes = fields.next().unwrap_or_default();
    let second = fields.next().unwrap_or_default();
    let first = codes[0];
    match (letter, first) {
        (b'R', Some(row)) => {
            let (row, column) = (u16::try_from(row).ok()?, u16::try_from(second[0]?).ok()?);
            Some(Input::Answer(Answer::Cursor { row, column }))
        }
        (b'u', Some(_)) => enhanced_key(codes, second),
        (b'~', Some(number)) => modified(numbered_key(number)?, second),
        (b'Z', None) => Some(pressed(KeyCode::BackTab, KeyModifiers::SHIFT)),
        (_, None | Some(1)) => modified(function_key(letter)?, second),
        _ => None,
    }
}

/// Up to three numbers with colons between them.
fn numbers(field: &str) -> [Option<u32>; 3] {
    let mut parts = field.split(':').map(|part| part.parse().ok());
    std::array::from_fn(|_| parts.next().flatten())
}

/// Modifiers (one more than their bits) and what happened to the key.
fn modified(code: KeyCode, [bits, kind, _]: [Option<u32>; 3]) -> Option<Input> {
    let bits = bits.unwrap_or(1).checked_sub(1)?;
    let mut modifiers = KeyModifiers::empty();
    for (bit, modifier) in [
        (1, KeyModifiers::SHIFT),
        (2, KeyModifiers::ALT),
        (4, KeyModifiers::CONTROL),
        (8, KeyModifiers::SUPER),
        (16, KeyModifiers::HYPER),
        (32, KeyModifiers::META),
    ] {
        modifiers.set(modifier, bits & bit != 0);
    }
    let mut state = KeyEventState::empty();
    state.set(KeyEventState::CAPS_LOCK, bits & 64 != 0);
    state.set(KeyEventState::NUM_LOCK, bits & 128 != 0);
    let kind = match kind {
        None | Some(1) => KeyEventKind::Press,
        Some(2) => KeyEventKind::Repeat,
        Some(3) => KeyEventKind::Release,
        Some(_) => return None,
    };
    let code = match code {
        KeyCode::Tab if modifiers.contains(KeyModifiers::SHIFT) => KeyCode::BackTab,
        code => code,
    };
    Some(Input::Event(Event::Key(KeyEvent::new_with_kind_and_state(code, modifiers, kind, state))))
}

/// A key of the kitty protocol, <https://sw.kovidgoyal.net/kitty/keyboard-protocol/>, read 2026-11-30: its
/// number is the character without Shift; the second one, if told, with it; the third where it stands on an
/// American keyboard.
fn enhanced_key([number, shifted, latin]: [Option<u32>; 3], modifiers: [Option<u32>; 3]) -> Option<Input> {
    let number = number?;
    let code = match number {
        9 => KeyCode::Tab,
        13 => KeyCode::Enter,
        27 => KeyCode::Esc,
        127 => KeyCode::Backspace,
        57344..=63743 => keypad(number)?,
        0..32 => return None,
        _ => KeyCode::Char(char::from_u32(number)?),
    };
    let mut input = modified(code, modifiers)?;
    if let (Input::Event(Event::Key(key)), KeyCode::Char(c)) = (&mut input, code)
        && number < 57344
    {
        key.code = KeyCode::Char(letter(c, shifted, latin, key.modifiers, key.state));
    }
    Some(input)
}

/// The character that was meant.
fn letter(c: char, shifted: Option<u32>, latin: Option<u32>, modifiers: KeyModifiers, state: KeyEventState) -> char {
    // On a Russian keyboard Ctrl-C has the C of the Latin one.
    let latin = latin.and_then(char::from_u32).filter(|_| !c.is_ascii() && modifiers.contains(KeyModifiers::CONTROL));
    let c = latin.unwrap_or(c);
    let shift = modifiers.contains(KeyModifiers::SHIFT);
    if !c.is_alphabetic() {
        return shifted.and_then(char::from_u32).filter(|_| shift).unwrap_or(c);
    }
    let capital = shift != state.contains(KeyEventState::CAPS_LOCK);
    let mut upper = c.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(upper), None) if capital => upper,
        _ => c,
    }
}

fn keypad(number: u32) -> Option<KeyCode> {
    Some(match number {
        57399..=57408 => KeyCode::Char(char::from_digit(number - 57399, 10)?),
        57409 => KeyCode::Char('.'),
        57410 => KeyCode::Char('/'),
        57411 => KeyCode::Char('*'),
        57412 => KeyCode::Char('-'),
        57413 => KeyCode::Char('+'),
        57414 => KeyCode::Enter,
        57415 => KeyCode::Char('='),
        57416 => KeyCode::Char(','),
        57417 => KeyCode::Left,
        57418 => KeyCode::Right,
        57419 => KeyCode::Up,
        57420 => KeyCode::Down,
        57421 => KeyCode::PageUp,
        57422 => KeyCode::PageDown,
        57423 => KeyCode::Home,
        57424 => KeyCode::End,
        57426 => KeyCode::Delete,
        _ => return None,
    })
}

/// Button and place, `M` for down and `m` for up.
fn mouse(parameters: &str, letter: u8) -> Option<Input> {
    let mut fields = parameters.split(';').map(|field| field.parse::<u16>().ok());
    let (button, column, row) = (fields.next()??, fields.next()??, fields.next()??);
    let up = match letter {
        b'M' => false,
        b'm' => true,
        _ => return None,
    };
    mouse_event(button, up, column.checked_sub(1)?, row.checked_sub(1)?)
}

/// The oldest form: each number with 32 added, in one byte.
fn old_mouse(bytes: &[u8]) -> Option<Input> {
    let number = |at: usize| bytes.get(at)?.checked_sub(32).map(u16::from);
    let button = number(0)?;
    // It does not say which button went up.
    let (button, up) = if button & 0b1100_0011 == 3 { (button & !3, true) } else { (button, false) };
    mouse_event(button, up, number(1)?.checked_sub(1)?, number(2)?.checked_sub(1)?)
}

fn mouse_event(bits: u16, up: bool, column: u16, row: u16) -> Option<Input> {
    const MOVED: u16 = 32;
    let kind = match (bits & 0b1100_0011, up) {
        _ if bits & MOVED != 0 => return None,
        (0, false) => MouseEventKind::Down(MouseButton::Left),
        (0, true) => MouseEventKind::Up(MouseButton::Left),
        (64, false) => MouseEventKind::ScrollUp,
        (65, false) => MouseEventKind::ScrollDown,
        _ => return None,
    };
    let mut modifiers = KeyModifiers::empty();
    modifiers.set(KeyModifiers::SHIFT, bits & 4 != 0);
    modifiers.set(KeyModifiers::ALT, bits & 8 != 0);
    modifiers.set(KeyModifiers::CONTROL, bits & 16 != 0);
    Some(Input::Event(Event::Mouse(MouseEvent { kind, column, row, modifiers })))
}

/// `11;rgb:1e1e/1e1e/1e1e`, each part of one to four hexadecimal digits, or `11;#1e1e1e`.
fn background(text: &[u8]) -> Option<[u8; 3]> {
    let colour = std::str::from_utf8(text).ok()?.strip_prefix("11;")?;
    let part = |digits: &str| {
        if !(1..=4).contains(&digits.len()) {
            return None;
        }
        let most = (1u32 << (4 * digits.len())) - 1;
        u8::try_from(u32::from_str_radix(digits, 16).ok()? * 255 / most).ok()
    };
    let parts: Vec<&str> = match colour.strip_prefix('#') {
        Some(digits) if digits.is_ascii() && digits.len().is_multiple_of(3) => {
            let each = digits.len() / 3;
            (0..3).map(|n| &digits[n * each..(n + 1) * each]).collect()
        }
        Some(_) => return None,
        None => colour.strip_prefix("rgb:").or_else(|| colour.strip_prefix("rgba:"))?.split('/').take(3).collect(),
    };
    let parts: Vec<u8> = parts.into_iter().map(part).collect::<Option<_>>()?;
    parts.try_into().ok()
}

#[cfg(test)]
#[path = "input_tests.rs"]
mod tests;
