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

/// Defines the actions, each with the word that the config and the palette call it by.
macro_rules! actions {
    ($($(#[$doc:meta])* $action:ident $word:literal,)*) => {
        /// What a person can ask for with a key.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Action {
            $($(#[$doc])* $action,)*
        }

        impl Action {
            /// All of them, in this order.
            pub const ALL: &[Action] = &[$(Action::$action,)*];

            /// Its name in the config.
            pub fn word(self) -> &'static str {
                match self {
                    $(Action::$action => $word,)*
                }
            }
        }
    };
}

actions! {
    StopOrStart "stop",
    /// Release an instance, delete a storage item.
    End "end",
    /// Bring to safety what is worth keeping.
    Checkpoint "checkpoint",
    /// The same, and release it once that is verified.
    SaveAndEnd "save-and-end",
    /// What is to happen to it by itself.
    Lease "lease",
    TakeBack "undo",
    Mark "mark",
    Details "details",
    /// The details beside or below the list, shown or hidden.
    Pane "pane",
    Filter "filter",
    Sort "sort",
    Group "group",
    Quick "quick-filter",
    Columns "columns",
    /// Whether machines may be looked into over `ssh`.
    LookInto "look-into",
    Protect "protect",
    Mine "mine",
    /// To which project spend belongs.
    Project "project",
    Ssh "ssh",
    CopySsh "copy-ssh",
    Page "page",
    EditConfig "edit-config",
    Problem "error",
    /// What the program told is known.
    Seen "seen",
    /// All alerts that fire are seen.
    SeenAll "seen-all",
    /// An alert is to be told again later.
    Snooze "snooze",
    /// All that is idle, and what can be done with it.
    AllIdle "all-idle",
    /// A new budget.
    NewBudget "new-budget",
    Fold "fold",
    Unfold "unfold",
    Down "down",
    Up "up",
    PageDown "page-down",
    PageUp "page-up",
    First "first",
    Last "last",
    /// In Spend: the range before.
    Earlier "earlier",
    Later "later",
    Range "range",
    /// Times as moments, or by how long ago they are.
    Times "times",
    ShowFleet "fleet",
    ShowSpend "spend",
    ShowStorage "storage",
    ShowBudgets "budgets",
    ShowAlerts "alerts",
    ShowActivity "activity",
    NextView "next-view",
    Refresh "refresh",
    Repaint "repaint",
    Suspend "suspend",
    Palette "palette",
    Back "back",
    Help "help",
    Quit "quit",
    /// In a plan: yes, when nothing is lost.
    Confirm "confirm",
}

impl Action {
    /// Moving is meant when its key is held; everything else acts once.
    pub fn moves(self) -> bool {
        matches!(self, Action::Down | Action::Up | Action::PageDown | Action::PageUp)
    }

    /// It is about rows: the one under the cursor, or those that are marked.
    pub fn is_about_rows(self) -> bool {
        matches!(
            self,
            Action::StopOrStart
                | Action::End
                | Action::Checkpoint
                | Action::SaveAndEnd
                | Action::Lease
                | Action::Mark
                | Action::Details
                | Action::Protect
                | Action::Mine
                | Action::Project
                | Action::Ssh
                | Action::CopySsh
                | Action::LookInto
                | Action::Page
                | Action::Fold
                | Action::Unfold
        )
    }

    /// A second press undoes the first, and nobody would see it: a key that is held must not come to it twice,
    /// although its first repeat comes late.
    pub fn toggles(self) -> bool {
        matches!(self, Action::Protect | Action::Mine)
    }
}
