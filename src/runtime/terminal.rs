//! The terminal: taken over, given back whatever happens, and its keys brought to our form.

use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossterm::clipboard::CopyToClipboard;
use crossterm::event::{
    DisableBracketedPaste, EnableBracketedPaste, Event as TermEvent, KeyCode, KeyEvent, KeyEventKind, KeyModifiers,
    KeyboardEnhancementFlags, MouseButton, MouseEvent, MouseEventKind, PopKeyboardEnhancementFlags,
    PushKeyboardEnhancementFlags,
};
use crossterm::terminal::{Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen};
use crossterm::{Command, cursor, execute, queue, terminal};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

use crate::app::action::{Code, Key, Mouse, MouseKind};
use crate::app::event::ViewEvent;

pub type Screen = Terminal<CrosstermBackend<io::BufWriter<io::Stdout>>>;

/// What is switched on beside the other screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// Presses, releases and the wheel are told.
    pub mouse: bool,
    /// The terminal knows the kitty keyboard protocol: every key is told from every other, and a press from a
    /// repeat and a release.
    pub keyboard: bool,
}

/// What has to be taken back, by whoever comes first.
static UP: AtomicBool = AtomicBool::new(false);
static MOUSE: AtomicBool = AtomicBool::new(false);
static KEYBOARD: AtomicBool = AtomicBool::new(false);

/// Takes the terminal over.
pub fn enter(modes: Modes) -> io::Result<Screen> {
    UP.store(true, Ordering::SeqCst);
    let taken = (|| {
        terminal::enable_raw_mode()?;
        switch_on(modes)?;
        // One write a frame: the terminal never shows half of one.
        Terminal::new(CrosstermBackend::new(io::BufWriter::with_capacity(1 << 16, io::stdout())))
    })();
    if taken.is_err() {
        restore();
    }
    taken
}

/// Takes over once more a terminal that is ours and that somebody else may have set up meanwhile.
pub fn take_again(modes: Modes) -> io::Result<()> {
    // Raw mode that is believed to be on is not switched on again.
    terminal::disable_raw_mode()?;
    terminal::enable_raw_mode()?;
    switch_on(modes)
}

fn switch_on(modes: Modes) -> io::Result<()> {
    let mut out = io::stdout();
    queue!(out, EnterAlternateScreen, Clear(ClearType::All), EnableBracketedPaste, cursor::Hide)?;
    if modes.mouse {
        MOUSE.store(true, Ordering::SeqCst);
        queue!(out, ListenToMouse)?;
    }
    out.flush()?;
    if modes.keyboard { enhance_keyboard() } else { Ok(()) }
}

/// Has keys told in the kitty protocol, on a terminal that has said that it knows it.
pub fn enhance_keyboard() -> io::Result<()> {
    let flags = KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES
        | KeyboardEnhancementFlags::REPORT_EVENT_TYPES
        | KeyboardEnhancementFlags::REPORT_ALTERNATE_KEYS;
    if KEYBOARD.swap(true, Ordering::SeqCst) {
        // Once is enough; what we had may have been taken off meanwhile, and then there is nothing to take off.
        queue!(io::stdout(), PopKeyboardEnhancementFlags)?;
    }
    execute!(io::stdout(), PushKeyboardEnhancementFlags(flags))
}

/// Gives the terminal back, once, however often it is called.
pub fn restore() {
    if !UP.swap(false, Ordering::SeqCst) {
        return;
    }
    let (mouse, keyboard) = (MOUSE.swap(false, Ordering::SeqCst), KEYBOARD.swap(false, Ordering::SeqCst));
    // Each step is tried although another failed: a terminal that is half given back is of no use.
    drop(switch_off(mouse, keyboard));
    drop(terminal::disable_raw_mode());
}

fn switch_off(mouse: bool, keyboard: bool) -> io::Result<()> {
    let mut last = Vec::new();
    if keyboard {
        queue!(last, PopKeyboardEnhancementFlags)?;
    }
    if mouse {
        queue!(last, IgnoreMouse)?;
    }
    queue!(last, DisableBracketedPaste, LeaveAlternateScreen, cursor::Show)?;
    let mut out = io::stdout();
    let said = out.write_all(&last).and_then(|()| out.flush());
    // By another way when the standard output leads to the terminal no more.
    #[cfg(unix)]
    let said = said.or_else(|_| std::fs::OpenOptions::new().write(true).open("/dev/tty")?.write_all(&last));
    said
}

/// Leaves the screen to the shell and stops the process until it is brought back.
#[cfg(unix)]
pub fn suspend() {
    restore();
    stop();
}

#[cfg(not(unix))]
pub fn suspend() {
    restore();
}

/// Stops the process until it is brought back, as it would stop if nobody listened to the signal.
#[cfg(unix)]
pub fn stop() {
    // It can only fail for a signal that does not exist.
    drop(signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTSTP));
}

#[cfg(not(unix))]
pub fn stop() {}

/// Rings the bell, or whatever the terminal has in its place.
pub fn ring() -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(b"\x07")?;
    out.flush()
}

/// Puts a text into the clipboard of the terminal's own machine, wherever we run.
pub fn copy(text: &str) -> io::Result<()> {
    execute!(io::stdout(), CopyToClipboard::to_clipboard_from(text))
}

/// Has the terminal tell a notice, one clean line, as the terminals of `TERM` know it.
pub fn tell(text: &str) -> io::Result<()> {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let sequence = notice(text, &variable("TERM"), !variable("TMUX").is_empty());
    let mut out = io::stdout();
    out.write_all(sequence.as_bytes())?;
    out.flush()
}

/// OSC 777 where that alone is known, else OSC 9; handed through `tmux`, which would swallow it.
fn notice(text: &str, term: &str, tmux: bool) -> String {
    let rather_777 = ["foot", "rxvt"].iter().any(|name| term.starts_with(name));
    let sequence = match rather_777 {
        true => format!("\x1b]777;notify;rentop;{text}\x07"),
        false => format!("\x1b]9;{text}\x07"),
    };
    if tmux { format!("\x1bPtmux;{}\x1b\\", sequence.replace('\x1b', "\x1b\x1b")) } else { sequence }
}

/// Switches off what a program may have left on that was killed: the other screen, margins, drawn
/// characters instead of letters, colours, insert mode, application keys, the mouse, focus.
#[cfg(unix)]
pub fn clean_up(keyboard: bool) -> io::Result<()> {
    const LEFT_ON: &str = "\x1b[?1047l\x1b7\x1b[r\x1b8\x1b(B\x0f\x1b[0m\x1b[4l\x1b[?1l\x1b>\x1b[?7h\
        \x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?2004l\x1b[?25h";
    let mut out = io::stdout();
    out.write_all(LEFT_ON.as_bytes())?;
    if keyboard {
        // No flag of the kitty protocol.
        out.write_all(b"\x1b[=0;1u")?;
    }
    out.flush()
}

/// Buttons and the wheel, not every movement: places beyond column 223 too.
struct ListenToMouse;

impl Command for ListenToMouse {
    fn write_ansi(&self, out: &mut impl fmt::Write) -> fmt::Result {
        out.write_str("\x1b[?1000h\x1b[?1006h")
    }

    #[cfg(windows)]
    fn execute_winapi(&self) -> io::Result<()> {
        crossterm::event::EnableMouseCapture.execute_winapi()
    }
}

struct IgnoreMouse;

impl Command for IgnoreMouse {
    fn write_ansi(&self, out: &mut impl fmt::Write) -> fmt::Result {
        out.write_str("\x1b[?1006l\x1b[?1000l")
    }

    #[cfg(windows)]
    fn execute_winapi(&self) -> io::Result<()> {
        crossterm::event::DisableMouseCapture.execute_winapi()
    }
}

/// A held key repeats within this time, by the slowest of settings.
const SLOWEST_REPEAT: Duration = Duration::from_secs(1);

/// Brings what the terminal reports to our form.
#[derive(Clone, Copy, Debug, Default)]
pub struct Keys {
    /// The terminal has told that a letter was let go, so it always does.
    tells_releases: bool,
    /// The letter that went down last and is not known to be up again, and when it was last heard of.
    down: Option<(Code, Instant)>,
}

impl Keys {
    /// `None` for what nobody listens to.
    pub fn translate(&mut self, event: TermEvent, now: Instant) -> Option<ViewEvent> {
        match event {
            TermEvent::Key(key) => self.key(key, now).map(ViewEvent::Key),
            TermEvent::Paste(text) => Some(ViewEvent::Paste(text)),
            TermEvent::Mouse(event) => mouse(event).map(ViewEvent::Mouse),
            // The signal is heard apart.
            TermEvent::Resize(..) if cfg!(unix) => None,
            TermEvent::Resize(width, height) => Some(ViewEvent::Resize { width, height }),
            TermEvent::FocusGained | TermEvent::FocusLost => None,
        }
    }

    /// A press or a repeat; a release is nothing.
    fn key(&mut self, event: KeyEvent, now: Instant) -> Option<Key> {
        if event.kind == KeyEventKind::Release {
            // With Shift let go first it is told by another letter: whichever it is, none is held by now.
            if matches!(event.code, KeyCode::Char(_)) {
                self.tells_releases = true;
                self.down = None;
            }
            return None;
        }
        let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
        let alt = event.modifiers.contains(KeyModifiers::ALT);
        let code = code(event);
        // Letters are sent as plain text, where a repeat looks like a press: but nobody presses a key that is
        // down.
        let is_letter = matches!(code, Code::Char(c) if c.is_ascii());
        let held = self.down.is_some_and(|(down, at)| down == code && now.duration_since(at) < SLOWEST_REPEAT);
        self.down = is_letter.then_some((code, now));
        let repeat = event.kind == KeyEventKind::Repeat || (held && self.tells_releases);
        Some(Key { code, ctrl, alt, repeat })
    }
}

fn code(event: KeyEvent) -> Code {
    let with = |modifiers: KeyModifiers| event.modifiers.intersects(modifiers);
    // A key with these is never the plain one: it belongs to the window manager, or to nobody.
    if with(KeyModifiers::SUPER | KeyModifiers::HYPER | KeyModifiers::META) {
        return Code::Other;
    }
    match event.code {
        // Ctrl-Shift-C is for copying and must not leave.
        KeyCode::Char(_) if with(KeyModifiers::CONTROL) && with(KeyModifiers::SHIFT) => Code::Other,
        // With Ctrl the letter's case says nothing.
        KeyCode::Char(c) if with(KeyModifiers::CONTROL) => {
            let mut lower = c.to_lowercase();
            Code::Char(lower.next().filter(|_| lower.next().is_none()).unwrap_or(c))
        }
        KeyCode::Char(c) => Code::Char(c),
        KeyCode::Enter => Code::Enter,
        KeyCode::Esc => Code::Esc,
        KeyCode::Tab => Code::Tab,
        KeyCode::BackTab => Code::BackTab,
        KeyCode::Backspace => Code::Backspace,
        KeyCode::Delete => Code::Delete,
        KeyCode::Up => Code::Up,
        KeyCode::Down => Code::Down,
        KeyCode::Left => Code::Left,
        KeyCode::Right => Code::Right,
        KeyCode::Home => Code::Home,
        KeyCode::End => Code::End,
        KeyCode::PageUp => Code::PageUp,
        KeyCode::PageDown => Code::PageDown,
        KeyCode::F(n) => Code::F(n),
        _ => Code::Other,
    }
}

/// The left button alone, and the wheel.
fn mouse(event: MouseEvent) -> Option<Mouse> {
    let kind = match event.kind {
        MouseEventKind::Down(MouseButton::Left) if event.modifiers.is_empty() => MouseKind::Press,
        MouseEventKind::Up(MouseButton::Left) => MouseKind::Release,
        MouseEventKind::ScrollUp => MouseKind::WheelUp,
        MouseEventKind::ScrollDown => MouseKind::WheelDown,
        _ => return None,
    };
    Some(Mouse { kind, column: event.column, row: event.row })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(c: char, kind: KeyEventKind) -> TermEvent {
        TermEvent::Key(KeyEvent::new_with_kind(KeyCode::Char(c), KeyModifiers::NONE, kind))
    }

    fn key(c: char, repeat: bool) -> Option<ViewEvent> {
        Some(ViewEvent::Key(Key { repeat, ..Key::char(c) }))
    }

    #[test]
    fn a_notice_is_told_as_the_terminal_knows_it() {
        for (term, tmux, expected) in [
            ("xterm-256color", false, "\x1b]9;rentop: idle\x07"),
            ("foot", false, "\x1b]777;notify;rentop;rentop: idle\x07"),
            ("rxvt-unicode-256color", false, "\x1b]777;notify;rentop;rentop: idle\x07"),
            ("tmux-256color", true, "\x1bPtmux;\x1b\x1b]9;rentop: idle\x07\x1b\\"),
        ] {
            assert_eq!(notice("rentop: idle", term, tmux), expected, "{term}");
        }
    }

    /// TUI-05: a key's release is no second press.
    #[test]
    fn a_release_is_nothing_and_a_repeat_is_told() {
        let now = Instant::now();
        for (kind, heard) in [
            (KeyEventKind::Press, key('s', false)),
            (KeyEventKind::Repeat, key('s', true)),
            (KeyEventKind::Release, None),
        ] {
            assert_eq!(Keys::default().translate(letter('s', kind), now), heard);
        }
    }

    /// Terminals of the kitty protocol send a letter as text, again and again while it is held, and then that
    /// it was let go.
    #[test]
    fn a_letter_that_was_not_let_go_is_held() {
        let (press, release) = (KeyEventKind::Press, KeyEventKind::Release);
        let start = Instant::now();
        let mut keys = Keys::default();
        let mut heard = |at: u64, c, kind| keys.translate(letter(c, kind), start + Duration::from_millis(at));
        // Nothing is known yet: two presses are two.
        assert_eq!(heard(0, 'x', press), key('x', false));
        assert_eq!(heard(500, 'x', press), key('x', false));
        assert_eq!(heard(600, 'x', release), None);
        assert_eq!(heard(700, 'x', press), key('x', false));
        assert_eq!(heard(1300, 'x', press), key('x', true));
        assert_eq!(heard(1330, 'x', press), key('x', true));
        assert_eq!(heard(1340, 'x', release), None);
        assert_eq!(heard(1350, 'x', press), key('x', false));
        // Another key is another key, and with Shift let go first the letter's release is a small one's.
        assert_eq!(heard(1360, 'y', press), key('y', false));
        assert_eq!(heard(1400, 'x', press), key('x', false));
        assert_eq!(heard(1410, 'X', release), None);
        assert_eq!(heard(1420, 'x', press), key('x', false));
        // It was let go over another window, and nobody told us.
        assert_eq!(heard(2420, 'x', press), key('x', false));
    }

    #[test]
    fn shift_is_part_of_the_letter() {
        let event = KeyEvent::new(KeyCode::Char('X'), KeyModifiers::SHIFT);
        assert_eq!(Keys::default().translate(TermEvent::Key(event), Instant::now()), key('X', false));
    }

    #[test]
    fn ctrl_with_any_letter_is_a_key() {
        for (c, expected) in [('C', 'c'), ('ä', 'ä'), ('Ä', 'ä'), ('İ', 'İ'), ('机', '机'), ('ß', 'ß')] {
            let event = KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL);
            let heard = Keys::default().translate(TermEvent::Key(event), Instant::now());
            assert_eq!(heard, Some(ViewEvent::Key(Key::ctrl(expected))), "{c}");
        }
    }

    /// A click with Shift selects text in the terminal, and what it does with Ctrl is not ours either.
    #[test]
    fn only_the_plain_left_button_presses() {
        let event = |kind, modifiers| TermEvent::Mouse(MouseEvent { kind, column: 3, row: 4, modifiers });
        let heard = |event| Keys::default().translate(event, Instant::now());
        let press = MouseEventKind::Down(MouseButton::Left);
        let pressed = Mouse { kind: MouseKind::Press, column: 3, row: 4 };
        assert_eq!(heard(event(press, KeyModifiers::NONE)), Some(ViewEvent::Mouse(pressed)));
        assert_eq!(heard(event(press, KeyModifiers::CONTROL)), None);
        assert_eq!(heard(event(MouseEventKind::Down(MouseButton::Right), KeyModifiers::NONE)), None);
        assert_eq!(heard(event(MouseEventKind::Moved, KeyModifiers::NONE)), None);
    }
}
