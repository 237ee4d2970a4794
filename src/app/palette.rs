//! The palette: every action, view and row by a few letters of what it is called.

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use providers::model::{Identity, ResourceKind};
use tui_input::Input;

use super::action::Action;
use super::state::State;

/// So many are found at most: who wants another types one letter more.
const MOST: usize = 50;

/// What can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    Action(Action),
    /// The row of an instance or a storage item.
    Row(Identity),
}

/// One line of the palette.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub entry: Entry,
    /// What the entry is called, in the language of the screen.
    pub label: String,
}

/// The palette's window.
#[derive(Clone, Debug)]
pub struct Palette {
    pub input: Input,
    /// What an action would be about, as it was when the palette was opened: the palette covers the rows.
    pub about: Vec<Identity>,
    /// The best first.
    pub found: Vec<Found>,
    pub at: usize,
}

impl Palette {
    pub fn open(state: &State) -> Self {
        let about = state.view.list().pointed();
        let mut palette = Palette { input: Input::default(), about, found: Vec::new(), at: 0 };
        palette.search(state);
        palette
    }

    /// Finds anew what fits the text.
    pub fn search(&mut self, state: &State) {
        let entries = actions(state).chain(rows(state));
        self.at = 0;
        self.found = if self.input.value().trim().is_empty() {
            entries.take(MOST).collect()
        } else {
            best(self.input.value(), entries)
        };
    }
}

fn best(text: &str, entries: impl Iterator<Item = Found>) -> Vec<Found> {
    let mut matcher = Matcher::new(Config::DEFAULT);
    let pattern = Pattern::new(text, CaseMatching::Ignore, Normalization::Smart, AtomKind::Fuzzy);
    let mut buffer = Vec::new();
    let mut scored: Vec<(u32, Found)> = entries
        .filter_map(|found| {
            // An action is also found by its name in the config.
            let haystack = match found.entry {
                Entry::Action(action) => format!("{} {}", action.word(), found.label),
                Entry::Row(_) => found.label.clone(),
            };
            let score = pattern.score(Utf32Str::new(&haystack, &mut buffer), &mut matcher)?;
            Some((score, found))
        })
        .collect();
    // Equally good ones stay in their order: actions first.
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    scored.truncate(MOST);
    scored.into_iter().map(|(_, found)| found).collect()
}

/// What a key could do in this view, but for moving about.
fn actions(state: &State) -> impl Iterator<Item = Found> {
    let fixed = &state.view.fixed;
    let useful = fixed.keys.of(state.view.tab).map(|binding| (binding.place, binding.action)).filter(|(_, action)| {
        !action.moves()
            && !matches!(action, Action::Palette | Action::Back | Action::First | Action::Last | Action::NextView)
    });
    useful
        .filter_map(|meant| Some(Found { entry: Entry::Action(meant.1), label: fixed.sentences.get(&meant)?.clone() }))
}

fn rows(state: &State) -> impl Iterator<Item = Found> {
    state.world.fleet.shown().into_iter().map(|(identity, name)| {
        let name = name.filter(|name| !name.trim().is_empty()).unwrap_or(identity.id.as_str());
        let label = format!("{name}  {}  {}", identity.account, identity.id);
        Found { entry: Entry::Row(identity.clone()), label }
    })
}

/// The view that shows a resource.
pub fn view_of(identity: &Identity) -> super::state::Tab {
    match identity.kind {
        ResourceKind::Instance => super::state::Tab::Fleet,
        ResourceKind::Storage => super::state::Tab::Storage,
    }
}
