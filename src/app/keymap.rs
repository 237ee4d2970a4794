//! The table of bindings: dispatch, footer, help and the README's table all come from it.

use super::action::{Action, Code, Key};
use super::message::Msg;
use super::state::Tab;

/// Where a binding counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// In every view.
    Everywhere,
    Fleet,
    Activity,
    /// In a plan's window.
    Plan,
}

/// One meaning of one or more keys.
#[derive(Clone, Debug)]
pub struct Binding {
    pub place: Place,
    pub keys: &'static [Key],
    pub action: Action,
    /// For the footer; empty keeps it out of the footer.
    pub hint: Option<Msg>,
    /// One sentence for the help screen.
    pub help: Msg,
    /// Ends or stops something: a plan is shown first.
    pub danger: bool,
}

const fn binding(place: Place, keys: &'static [Key], action: Action, hint: Option<Msg>, help: Msg) -> Binding {
    Binding { place, keys, action, hint, help, danger: false }
}

const fn danger(place: Place, keys: &'static [Key], action: Action, hint: Msg, help: Msg) -> Binding {
    Binding { place, keys, action, hint: Some(hint), help, danger: true }
}

use Action as A;
use Place::{Activity, Everywhere, Fleet, Plan};

/// THE table. The order is that of footer and help.
pub static BINDINGS: &[Binding] = &[
    danger(Fleet, &[Key::char('s')], A::StopOrStart, Msg::HintStop, Msg::HelpStop),
    danger(Fleet, &[Key::char('x')], A::End, Msg::HintRelease, Msg::HelpRelease),
    binding(Fleet, &[Key::char('u')], A::TakeBack, Some(Msg::HintTakeBack), Msg::HelpTakeBack),
    binding(Fleet, &[Key::char(' ')], A::Mark, Some(Msg::HintMark), Msg::HelpMark),
    binding(Fleet, &[Key::plain(Code::Enter)], A::Details, Some(Msg::HintDetails), Msg::HelpDetails),
    binding(Fleet, &[Key::char('/')], A::Filter, Some(Msg::HintFilter), Msg::HelpFilter),
    binding(Fleet, &[Key::char('o')], A::Sort, Some(Msg::HintSort), Msg::HelpSort),
    binding(Fleet, &[Key::char('g')], A::Group, Some(Msg::HintGroup), Msg::HelpGroup),
    binding(Fleet, &[Key::char('f')], A::Quick, Some(Msg::HintQuick), Msg::HelpQuick),
    binding(Fleet, &[Key::char('p')], A::Protect, None, Msg::HelpProtect),
    binding(Fleet, &[Key::char('m')], A::Mine, None, Msg::HelpMine),
    binding(Fleet, &[Key::char('b')], A::Page, None, Msg::HelpPage),
    binding(Fleet, &[Key::char('h'), Key::plain(Code::Left)], A::Fold, None, Msg::HelpFold),
    binding(Fleet, &[Key::char('l'), Key::plain(Code::Right)], A::Unfold, None, Msg::HelpUnfold),
    binding(Activity, &[Key::char('u')], A::TakeBack, Some(Msg::HintTakeBack), Msg::HelpTakeBack),
    binding(Everywhere, &[Key::char('e')], A::Problem, None, Msg::HelpProblem),
    binding(Everywhere, &[Key::char('j'), Key::plain(Code::Down)], A::Down, None, Msg::HelpDown),
    binding(Everywhere, &[Key::char('k'), Key::plain(Code::Up)], A::Up, None, Msg::HelpUp),
    binding(Everywhere, &[Key::plain(Code::PageDown)], A::PageDown, None, Msg::HelpPageDown),
    binding(Everywhere, &[Key::plain(Code::PageUp)], A::PageUp, None, Msg::HelpPageUp),
    binding(Everywhere, &[Key::plain(Code::Home)], A::First, None, Msg::HelpFirst),
    binding(Everywhere, &[Key::plain(Code::End)], A::Last, None, Msg::HelpLast),
    binding(Everywhere, &[Key::char('1')], A::ShowFleet, None, Msg::HelpShowFleet),
    binding(Everywhere, &[Key::char('6')], A::ShowActivity, None, Msg::HelpShowActivity),
    binding(Everywhere, &[Key::plain(Code::Tab)], A::NextView, None, Msg::HelpNextView),
    binding(Everywhere, &[Key::plain(Code::F(5))], A::Refresh, None, Msg::HelpRefresh),
    binding(Everywhere, &[Key::ctrl('l')], A::Repaint, None, Msg::HelpRepaint),
    binding(Everywhere, &[Key::ctrl('z')], A::Suspend, None, Msg::HelpSuspend),
    binding(Everywhere, &[Key::plain(Code::Esc)], A::Back, None, Msg::HelpBack),
    binding(Everywhere, &[Key::char('?')], A::Help, Some(Msg::HintHelp), Msg::HelpHelp),
    binding(Everywhere, &[Key::char('q'), Key::ctrl('c')], A::Quit, Some(Msg::HintQuit), Msg::HelpQuit),
    binding(Plan, &[Key::char('y')], A::Confirm, Some(Msg::HintConfirm), Msg::HelpConfirm),
    danger(Plan, &[Key::char('s')], A::StopOrStart, Msg::HintStop, Msg::HelpPlanAgain),
    danger(Plan, &[Key::char('x')], A::End, Msg::HintRelease, Msg::HelpPlanAgain),
    binding(Plan, &[Key::char('j'), Key::plain(Code::Down)], A::Down, None, Msg::HelpDown),
    binding(Plan, &[Key::char('k'), Key::plain(Code::Up)], A::Up, None, Msg::HelpUp),
    binding(Plan, &[Key::plain(Code::Esc)], A::Back, Some(Msg::HintCancel), Msg::HelpCancel),
];

impl Place {
    fn of(tab: Tab) -> Place {
        match tab {
            Tab::Fleet => Fleet,
            Tab::Activity => Activity,
        }
    }
}

/// What a key means in a view.
pub fn action_in(tab: Tab, key: Key) -> Option<Action> {
    find(Place::of(tab), key).or_else(|| find(Everywhere, key))
}

/// What a key means in a plan's window.
pub fn action_in_plan(key: Key) -> Option<Action> {
    find(Plan, key)
}

fn find(place: Place, key: Key) -> Option<Action> {
    let key = Key { repeat: false, ..key };
    BINDINGS.iter().find(|binding| binding.place == place && binding.keys.contains(&key)).map(|binding| binding.action)
}

/// The bindings that count in a view, its own first.
pub fn bindings_of(tab: Tab) -> impl Iterator<Item = &'static Binding> {
    let place = Place::of(tab);
    let own = BINDINGS.iter().filter(move |binding| binding.place == place);
    own.chain(BINDINGS.iter().filter(|binding| binding.place == Everywhere))
}

/// A key's name as people write it.
pub fn key_name(key: Key) -> String {
    let name = match key.code {
        Code::Char(' ') => "space".to_owned(),
        Code::Char(c) if key.ctrl => c.to_uppercase().to_string(),
        Code::Char(c) => c.to_string(),
        Code::Enter => "enter".to_owned(),
        Code::Esc => "esc".to_owned(),
        Code::Tab | Code::BackTab => "tab".to_owned(),
        Code::Backspace => "backspace".to_owned(),
        Code::Delete => "delete".to_owned(),
        Code::Up => "↑".to_owned(),
        Code::Down => "↓".to_owned(),
        Code::Left => "←".to_owned(),
        Code::Right => "→".to_owned(),
        Code::Home => "Home".to_owned(),
        Code::End => "End".to_owned(),
        Code::PageUp => "PgUp".to_owned(),
        Code::PageDown => "PgDn".to_owned(),
        Code::F(n) => format!("F{n}"),
        Code::Other => "?".to_owned(),
    };
    match (key.ctrl, key.alt) {
        (true, _) => format!("Ctrl-{name}"),
        (_, true) => format!("Alt-{name}"),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_means_two_things_in_a_view() {
        for place in [Fleet, Activity, Plan] {
            let here: Vec<_> = BINDINGS
                .iter()
                .filter(|binding| binding.place == place || (place != Plan && binding.place == Everywhere))
                .flat_map(|binding| binding.keys.iter().map(move |key| (key, binding.action)))
                .collect();
            for (at, (key, action)) in here.iter().enumerate() {
                let again = here[at + 1..].iter().find(|(other, _)| other == key);
                assert!(again.is_none(), "{} means {action:?} and {again:?} in {place:?}", key_name(**key));
            }
        }
    }

    /// A slip of the finger, or a Shift too many, next to a key that ends things does nothing.
    #[test]
    fn the_neighbours_of_dangerous_keys_are_unbound() {
        for c in ['i', 'r', 'd', 'S', 'X', 'C'] {
            for tab in [Tab::Fleet, Tab::Activity] {
                assert_eq!(action_in(tab, Key::char(c)), None, "{c}");
            }
            assert_eq!(action_in_plan(Key::char(c)), None, "{c}");
        }
    }

    /// TUI-07: what hands press by habit ends nothing, and Enter is no answer to a plan.
    #[test]
    fn habits_end_nothing() {
        let habits = [
            Key::plain(Code::Backspace),
            Key::plain(Code::Delete),
            Key::ctrl('d'),
            Key::ctrl('k'),
            Key::ctrl('h'),
            Key::ctrl('w'),
            Key::plain(Code::Enter),
            Key::char('y'),
            Key::char('Y'),
        ];
        for key in habits {
            let action = action_in(Tab::Fleet, key);
            assert!(!BINDINGS.iter().any(|binding| binding.danger && Some(binding.action) == action), "{key:?}");
        }
        assert_eq!(action_in_plan(Key::plain(Code::Enter)), None);
    }
}
