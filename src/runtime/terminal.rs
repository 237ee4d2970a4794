//! The terminal: taken over, given back whatever happens, and its keys brought to our form.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::event::{
    DisableBracketedPaste, EnableBracketedPaste, Event as TermEvent, KeyCode, KeyEvent, KeyEventKind, KeyModifiers,
};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use crossterm::{cursor, execute, terminal};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

use crate::app::action::{Code, Key};
use crate::app::event::ViewEvent;

static UP: AtomicBool = AtomicBool::new(false);

/// Takes the terminal over.
pub fn enter() -> io::Result<Terminal<CrosstermBackend<io::BufWriter<io::Stdout>>>> {
    UP.store(true, Ordering::SeqCst);
    let taken = (|| {
        terminal::enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste, cursor::Hide)?;
        // One write a frame: the terminal never shows half of one.
        Terminal::new(CrosstermBackend::new(io::BufWriter::with_capacity(1 << 16, io::stdout())))
    })();
    if taken.is_err() {
        restore();
    }
    taken
}

/// Takes over once more a terminal that is ours and that somebody else may have set up meanwhile.
pub fn take_again() -> io::Result<()> {
    // Raw mode that is believed to be on is not switched on again.
    terminal::disable_raw_mode()?;
    terminal::enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste, cursor::Hide)
}

/// Gives the terminal back, once, however often it is called.
pub fn restore() {
    if !UP.swap(false, Ordering::SeqCst) {
        return;
    }
    // Each step is tried although another failed: a terminal that is half given back is of no use.
    drop(execute!(io::stdout(), DisableBracketedPaste, LeaveAlternateScreen, cursor::Show));
    drop(terminal::disable_raw_mode());
    drop(io::stdout().flush());
}

/// Leaves the screen to the shell and stops the process until it is brought back.
#[cfg(unix)]
pub fn suspend() {
    restore();
    // It can only fail for a signal that does not exist.
    drop(signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTSTP));
}

#[cfg(not(unix))]
pub fn suspend() {
    restore();
}

/// Brings what the terminal reports to our form; `None` for what nobody listens to.
pub fn translate(event: TermEvent) -> Option<ViewEvent> {
    match event {
        TermEvent::Key(key) => translate_key(key).map(ViewEvent::Key),
        TermEvent::Paste(text) => Some(ViewEvent::Paste(text)),
        TermEvent::Resize(width, height) => Some(ViewEvent::Resize { width, height }),
        TermEvent::FocusGained | TermEvent::FocusLost | TermEvent::Mouse(_) => None,
    }
}

/// A press or a repeat; a release is nothing.
fn translate_key(key: KeyEvent) -> Option<Key> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    let code = match key.code {
        // With Ctrl the letter's case says nothing.
        KeyCode::Char(c) if ctrl => Code::Char(c.to_ascii_lowercase()),
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
    };
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    Some(Key { code, ctrl, alt, repeat: key.kind == KeyEventKind::Repeat })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TUI-05: a key's release is no second press.
    #[test]
    fn a_release_is_nothing_and_a_repeat_is_told() {
        let key = |kind| {
            let event = KeyEvent::new_with_kind(KeyCode::Char('s'), KeyModifiers::NONE, kind);
            translate(TermEvent::Key(event))
        };
        assert_eq!(key(KeyEventKind::Press), Some(ViewEvent::Key(Key::char('s'))));
        assert_eq!(key(KeyEventKind::Release), None);
        assert_eq!(key(KeyEventKind::Repeat), Some(ViewEvent::Key(Key { repeat: true, ..Key::char('s') })));
    }

    #[test]
    fn shift_is_part_of_the_letter() {
        let event = KeyEvent::new(KeyCode::Char('X'), KeyModifiers::SHIFT);
        assert_eq!(translate(TermEvent::Key(event)), Some(ViewEvent::Key(Key::char('X'))));
    }
}
