//! What a terminal sends: keys, the mouse, pasted texts, and answers to questions.
//!
//! A sequence is taken whole or not at all: no piece of one that is torn or cut off by something else passes
//! for a key. Where bytes could be either, a key is rather lost than invented.

use std::collections::VecDeque;
use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use termina::escape::csi::{self, Csi};
use termina::escape::osc::{ColorOrQuery, DynamicColorNumber, Osc};
use termina::event as told;

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
const ESC_ALONE: Duration = Duration::from_millis(2);
/// What comes later than this does not belong to what was begun.
const TORN: Duration = Duration::from_millis(500);
/// No sequence of a key, the mouse or an answer that we asked for is longer.
const LONGEST: usize = 64;
/// A longer pasted text is dropped.
const LONGEST_PASTE: usize = 1 << 16;
const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

/// Takes bytes in, gives [`Input`]s out.
#[derive(Debug, Default)]
pub struct Parser {
    parser: termina::Parser,
    /// What has begun and is not whole yet.
    begun: Vec<u8>,
    /// It means nothing to us, or is too long: its end is all that matters.
    dropping: bool,
    inputs: VecDeque<Input>,
}

impl Parser {
    /// Takes in what was read.
    pub fn take(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.byte(*byte));
    }

    fn byte(&mut self, byte: u8) {
        let pasting = self.begun.starts_with(PASTE_BEGINS);
        match self.begun.as_slice() {
            // The way out is heard whatever was torn before it.
            [ESC, ..] if byte == CTRL_C && !pasting => self.give_up(),
            // Two keys, or one and the beginning of a sequence.
            [ESC] if byte == ESC => self.give_up(),
            // Strings that nobody asked for.
            [ESC] if matches!(byte, b'_' | b'^' | b'X') => self.dropping = true,
            // A command begins with its number: anything else was typed after Alt-].
            [ESC, b']'] if !byte.is_ascii_digit() => self.give_up(),
            // Something else begins, so this one is over; only a string may end with ESC and a stroke.
            [ESC, .., ESC] if byte != b'\\' && !pasting => {
                self.drop_begun();
                self.byte(ESC);
            }
            [ESC, b'[' | b'O', ..] if byte == ESC && !pasting => self.drop_begun(),
            _ => {}
        }
        self.begun.push(byte);
        let longest = if pasting { LONGEST_PASTE } else { LONGEST };
        self.dropping |= self.begun.len() > longest;
        if self.dropping {
            self.drop_one_more(pasting);
            return;
        }
        self.parser.parse(&[byte], true);
        while let Some(event) = self.parser.pop() {
            let begun = std::mem::take(&mut self.begun);
            self.inputs.extend(input(event, &begun));
        }
    }

    /// Looks whether what is dropped has come to its end.
    fn drop_one_more(&mut self, pasting: bool) {
        let ended = match self.begun.as_slice() {
            begun if pasting => begun.ends_with(PASTE_ENDS),
            [ESC, b'[', .., last] => matches!(last, 0x40..=0x7e),
            [.., last] => *last == BEL || self.begun.ends_with(b"\x1b\\"),
            [] => true,
        };
        if ended {
            self.drop_begun();
        } else if self.begun.len() > 2 * LONGEST {
            // Its beginning says what it is, its end whether it is over.
            self.begun.drain(PASTE_BEGINS.len()..self.begun.len() - PASTE_ENDS.len());
        }
    }

    /// The next input that is whole.
    pub fn pop(&mut self) -> Option<Input> {
        self.inputs.pop_front()
    }

    /// How long the rest of what has begun may take; `None` when nothing has, and in a paste, which ends only
    /// with its end: a slow line must not turn the rest of it into keys.
    pub fn patience(&self) -> Option<Duration> {
        match self.begun.as_slice() {
            [] => None,
            [ESC] => Some(ESC_ALONE),
            begun if begun.starts_with(PASTE_BEGINS) => None,
            _ => Some(TORN),
        }
    }

    /// Nothing more came in that time.
    pub fn give_up(&mut self) {
        match self.begun.as_slice() {
            [ESC] => self.inputs.push_back(pressed(KeyCode::Esc, KeyModifiers::NONE)),
            [ESC, letter] if letter.is_ascii_graphic() => {
                self.inputs.push_back(pressed(KeyCode::Char(char::from(*letter)), KeyModifiers::ALT));
            }
            _ => {}
        }
        self.drop_begun();
    }

    fn drop_begun(&mut self) {
        self.begun.clear();
        self.dropping = false;
        self.parser = termina::Parser::default();
    }
}

fn pressed(code: KeyCode, modifiers: KeyModifiers) -> Input {
    Input::Event(Event::Key(KeyEvent::new(code, modifiers)))
}

/// What somebody listens to; `bytes` are those that told it.
fn input(event: told::Event, bytes: &[u8]) -> Option<Input> {
    Some(match event {
        told::Event::Key(event) => Input::Event(Event::Key(key(event, bytes)?)),
        told::Event::Mouse(event) => Input::Event(Event::Mouse(mouse(event)?)),
        told::Event::Paste(text) => Input::Event(Event::Paste(text)),
        told::Event::Csi(Csi::Keyboard(csi::Keyboard::ReportFlags(_))) => Input::Answer(Answer::Keyboard),
        told::Event::Csi(Csi::Device(csi::Device::DeviceAttributes(()))) => Input::Answer(Answer::Attributes),
        told::Event::Csi(Csi::Cursor(csi::Cursor::ActivePositionReport { line, col })) => {
            Input::Answer(Answer::Cursor { row: line.get(), column: col.get() })
        }
        told::Event::Osc(Osc::ChangeDynamicColors(DynamicColorNumber::TextBackgroundColor, colours)) => {
            match colours.as_slice() {
                [ColorOrQuery::Color(colour)] => {
                    Input::Answer(Answer::Background([colour.red, colour.green, colour.blue]))
                }
                _ => return None,
            }
        }
        _ => return None,
    })
}

fn key(event: told::KeyEvent, bytes: &[u8]) -> Option<KeyEvent> {
    let mut modifiers = modifiers(event.modifiers);
    let ctrl = modifiers.contains(KeyModifiers::CONTROL);
    let caps =
        event.modifiers.contains(told::Modifiers::CAPS_LOCK) || event.state.contains(told::KeyEventState::CAPS_LOCK);
    let code = match event.code {
        // Ctrl and a key, whatever letter stands on it.
        told::KeyCode::Char(c) if ctrl && !c.is_ascii() => KeyCode::Char(latin(bytes).unwrap_or(c)),
        // The letter that the person sees, whatever made it a capital.
        told::KeyCode::Char(c) if c.is_lowercase() => {
            let capital = event.modifiers.contains(told::Modifiers::SHIFT) != caps;
            KeyCode::Char(if capital { c.to_uppercase().next().unwrap_or(c) } else { c })
        }
        told::KeyCode::Char(c) => {
            if ctrl && c.is_uppercase() {
                // The letter says what the modifiers then no longer do.
                modifiers.insert(KeyModifiers::SHIFT);
            }
            KeyCode::Char(c)
        }
        told::KeyCode::Enter => KeyCode::Enter,
        told::KeyCode::Backspace => KeyCode::Backspace,
        told::KeyCode::Tab => KeyCode::Tab,
        told::KeyCode::Escape => KeyCode::Esc,
        told::KeyCode::Left => KeyCode::Left,
        told::KeyCode::Right => KeyCode::Right,
        told::KeyCode::Up => KeyCode::Up,
        told::KeyCode::Down => KeyCode::Down,
        told::KeyCode::Home => KeyCode::Home,
        told::KeyCode::End => KeyCode::End,
        told::KeyCode::BackTab => KeyCode::BackTab,
        told::KeyCode::PageUp => KeyCode::PageUp,
        told::KeyCode::PageDown => KeyCode::PageDown,
        told::KeyCode::Delete => KeyCode::Delete,
        told::KeyCode::Function(n) => KeyCode::F(n),
        told::KeyCode::Modifier(_) => return None,
        _ => KeyCode::Null,
    };
    let kind = match event.kind {
        told::KeyEventKind::Press => KeyEventKind::Press,
        told::KeyEventKind::Repeat => KeyEventKind::Repeat,
        told::KeyEventKind::Release => KeyEventKind::Release,
    };
    Some(KeyEvent::new_with_kind(code, modifiers, kind))
}

/// The letter of the same key on the standard layout, as the kitty protocol tells it third.
fn latin(bytes: &[u8]) -> Option<char> {
    let text = std::str::from_utf8(bytes.strip_prefix(b"\x1b[")?).ok()?;
    let codes = text.split(';').next()?;
    char::from_u32(codes.split(':').nth(2)?.parse().ok()?)
}

fn modifiers(told: told::Modifiers) -> KeyModifiers {
    [
        (told::Modifiers::SHIFT, KeyModifiers::SHIFT),
        (told::Modifiers::ALT, KeyModifiers::ALT),
        (told::Modifiers::CONTROL, KeyModifiers::CONTROL),
        (told::Modifiers::SUPER, KeyModifiers::SUPER),
        (told::Modifiers::HYPER, KeyModifiers::HYPER),
        (told::Modifiers::META, KeyModifiers::META),
    ]
    .into_iter()
    .filter(|(theirs, _)| told.contains(*theirs))
    .fold(KeyModifiers::NONE, |all, (_, ours)| all | ours)
}

/// The left button and the wheel.
fn mouse(event: told::MouseEvent) -> Option<MouseEvent> {
    let kind = match event.kind {
        told::MouseEventKind::Down(told::MouseButton::Left) => MouseEventKind::Down(MouseButton::Left),
        told::MouseEventKind::Up(told::MouseButton::Left) => MouseEventKind::Up(MouseButton::Left),
        told::MouseEventKind::ScrollUp => MouseEventKind::ScrollUp,
        told::MouseEventKind::ScrollDown => MouseEventKind::ScrollDown,
        _ => return None,
    };
    Some(MouseEvent { kind, column: event.column, row: event.row, modifiers: modifiers(event.modifiers) })
}

#[cfg(test)]
#[path = "input_tests.rs"]
mod tests;
