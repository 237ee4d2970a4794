//! Keys, and what a key can mean.

/// A key as the terminal reports it, brought to one form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub code: Code,
    pub ctrl: bool,
    pub alt: bool,
    /// The terminal itself says that the key is being held.
    pub repeat: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// With its letter case: Shift is part of the character.
    Char(char),
    Enter,
    Esc,
    Tab,
    BackTab,
    Backspace,
    Delete,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    F(u8),
    /// Anything else.
    Other,
}

impl Key {
    pub const fn plain(code: Code) -> Self {
        Key { code, ctrl: false, alt: false, repeat: false }
    }
    pub const fn char(c: char) -> Self {
        Key::plain(Code::Char(c))
    }
    pub const fn ctrl(c: char) -> Self {
        Key { code: Code::Char(c), ctrl: true, alt: false, repeat: false }
    }
}

/// What the mouse did, and where: column and row from 0, which may lie outside the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mouse {
    pub kind: MouseKind,
    pub column: u16,
    pub row: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MouseKind {
    /// The left button went down.
    Press,
    /// The left button went up, wherever that was.
    Release,
    WheelUp,
    WheelDown,
}

/// What a person can ask for with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    Quit,
    Back,
    Help,
    Filter,
    Suspend,
    Repaint,
    Refresh,
    ShowFleet,
    ShowActivity,
    NextView,
    Down,
    Up,
    PageDown,
    PageUp,
    First,
    Last,
    Fold,
    Unfold,
    Mark,
    Details,
    Sort,
    Group,
    Quick,
    StopOrStart,
    End,
    TakeBack,
    Protect,
    Mine,
    Page,
    Problem,
    /// In a plan: yes, when nothing is lost.
    Confirm,
}

impl Action {
    /// Moving is meant when its key is held; everything else acts once.
    pub fn moves(self) -> bool {
        matches!(self, Action::Down | Action::Up | Action::PageDown | Action::PageUp)
    }
}
