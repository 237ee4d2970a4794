//! The table of bindings: dispatch, footer, help, palette, the config's `[keys]` and the README's table all
//! come from it.

use std::borrow::Cow;

use super::action::{Action, Code, Key};
use super::message::Msg;
use super::state::Tab;

/// Where a binding counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// In every view.
    Everywhere,
    /// In the lists of what is rented: Fleet and Storage.
    Lists,
    Fleet,
    Spend,
    Budgets,
    Alerts,
    Activity,
    /// In the window of alerts that have just fired.
    Popup,
    /// In a plan's window.
    Plan,
}

/// One meaning of one or more keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    pub place: Place,
    pub keys: Cow<'static, [Key]>,
    pub action: Action,
    /// For the footer; empty keeps it out of the footer.
    pub hint: Option<Msg>,
    /// One sentence for the help screen.
    pub help: Msg,
    /// Ends or stops something: a plan is shown first.
    pub danger: bool,
}

const fn binding(place: Place, keys: &'static [Key], action: Action, hint: Option<Msg>, help: Msg) -> Binding {
    Binding { place, keys: Cow::Borrowed(keys), action, hint, help, danger: false }
}

const fn danger(place: Place, keys: &'static [Key], action: Action, hint: Msg, help: Msg) -> Binding {
    Binding { place, keys: Cow::Borrowed(keys), action, hint: Some(hint), help, danger: true }
}

use Action as A;
use Place::{Activity, Alerts, Budgets, Everywhere, Fleet, Lists, Plan, Popup, Spend};

/// THE table. The order is that of footer and help.
static STANDARD: &[Binding] = &[
    danger(Fleet, &[Key::char('s')], A::StopOrStart, Msg::HintStop, Msg::HelpStop),
    danger(Lists, &[Key::char('x')], A::End, Msg::HintRelease, Msg::HelpRelease),
    danger(Fleet, &[Key::char('R')], A::SaveAndEnd, Msg::HintSaveAndEnd, Msg::HelpSaveAndEnd),
    binding(Fleet, &[Key::char('c')], A::Checkpoint, Some(Msg::HintCheckpoint), Msg::HelpCheckpoint),
    binding(Fleet, &[Key::char('t')], A::Lease, None, Msg::HelpLease),
    binding(Lists, &[Key::char('u')], A::TakeBack, Some(Msg::HintTakeBack), Msg::HelpTakeBack),
    binding(Lists, &[Key::char(' ')], A::Mark, Some(Msg::HintMark), Msg::HelpMark),
    binding(Lists, &[Key::plain(Code::Enter)], A::Details, Some(Msg::HintDetails), Msg::HelpDetails),
    binding(Lists, &[Key::char('/')], A::Filter, Some(Msg::HintFilter), Msg::HelpFilter),
    danger(Fleet, &[Key::char('I')], A::AllIdle, Msg::HintAllIdle, Msg::HelpAllIdle),
    binding(Fleet, &[Key::char('f')], A::Quick, Some(Msg::HintQuick), Msg::HelpQuick),
    binding(Lists, &[Key::char('o')], A::Sort, Some(Msg::HintSort), Msg::HelpSort),
    binding(Fleet, &[Key::char('g')], A::Group, Some(Msg::HintGroup), Msg::HelpGroup),
    binding(Fleet, &[Key::char('w')], A::Range, None, Msg::HelpChart),
    binding(Lists, &[Key::char('z')], A::Pane, None, Msg::HelpPane),
    binding(Fleet, &[Key::char('O')], A::Columns, None, Msg::HelpColumns),
    binding(Fleet, &[Key::char('v')], A::LookInto, None, Msg::HelpLookInto),
    binding(Lists, &[Key::char('p')], A::Protect, None, Msg::HelpProtect),
    binding(Lists, &[Key::char('m')], A::Mine, None, Msg::HelpMine),
    binding(Lists, &[Key::char('P')], A::Project, None, Msg::HelpProject),
    binding(Lists, &[Key::char('a')], A::Seen, None, Msg::HelpSeen),
    binding(Fleet, &[Key::char('!')], A::Ssh, None, Msg::HelpSsh),
    binding(Fleet, &[Key::char('y')], A::CopySsh, None, Msg::HelpCopySsh),
    binding(Lists, &[Key::char('b')], A::Page, None, Msg::HelpPage),
    binding(Fleet, &[Key::char('h'), Key::plain(Code::Left)], A::Fold, None, Msg::HelpFold),
    binding(Fleet, &[Key::char('l'), Key::plain(Code::Right)], A::Unfold, None, Msg::HelpUnfold),
    binding(Spend, &[Key::char('h'), Key::plain(Code::Left)], A::Earlier, Some(Msg::HintEarlier), Msg::HelpEarlier),
    binding(Spend, &[Key::char('l'), Key::plain(Code::Right)], A::Later, Some(Msg::HintLater), Msg::HelpLater),
    binding(Spend, &[Key::char('w')], A::Range, Some(Msg::HintRange), Msg::HelpRange),
    binding(Spend, &[Key::char('g')], A::Group, Some(Msg::HintGroup), Msg::HelpSpendGroup),
    binding(Spend, &[Key::plain(Code::Enter)], A::Details, Some(Msg::HintBehind), Msg::HelpBehind),
    binding(Spend, &[Key::char('a')], A::Seen, None, Msg::HelpSeen),
    binding(Spend, &[Key::char('T')], A::Times, None, Msg::HelpTimes),
    binding(Spend, &[Key::char('y')], A::CopySsh, None, Msg::HelpCopySsh),
    binding(Budgets, &[Key::char('n')], A::NewBudget, Some(Msg::HintNewBudget), Msg::HelpNewBudget),
    binding(Budgets, &[Key::plain(Code::Enter)], A::Details, Some(Msg::HintChange), Msg::HelpChangeBudget),
    danger(Alerts, &[Key::char('s')], A::StopOrStart, Msg::HintStop, Msg::HelpStop),
    danger(Alerts, &[Key::char('x')], A::End, Msg::HintRelease, Msg::HelpRelease),
    binding(Alerts, &[Key::char('a')], A::Seen, Some(Msg::HintSeen), Msg::HelpAlertSeen),
    binding(Alerts, &[Key::char('A')], A::SeenAll, None, Msg::HelpSeenAll),
    binding(Alerts, &[Key::char('z')], A::Snooze, Some(Msg::HintSnooze), Msg::HelpSnooze),
    binding(Alerts, &[Key::plain(Code::Enter)], A::Details, Some(Msg::HintGoThere), Msg::HelpGoThere),
    danger(Alerts, &[Key::char('I')], A::AllIdle, Msg::HintAllIdle, Msg::HelpAllIdle),
    binding(Alerts, &[Key::char('b')], A::Page, None, Msg::HelpPage),
    binding(Alerts, &[Key::char('u')], A::TakeBack, Some(Msg::HintTakeBack), Msg::HelpTakeBack),
    binding(Activity, &[Key::char('u')], A::TakeBack, Some(Msg::HintTakeBack), Msg::HelpTakeBack),
    binding(Everywhere, &[Key::char('e')], A::Problem, None, Msg::HelpProblem),
    binding(Everywhere, &[Key::char('E')], A::EditConfig, None, Msg::HelpEditConfig),
    binding(Everywhere, &[Key::char('j'), Key::plain(Code::Down)], A::Down, None, Msg::HelpDown),
    binding(Everywhere, &[Key::char('k'), Key::plain(Code::Up)], A::Up, None, Msg::HelpUp),
    binding(Everywhere, &[Key::plain(Code::PageDown)], A::PageDown, None, Msg::HelpPageDown),
    binding(Everywhere, &[Key::plain(Code::PageUp)], A::PageUp, None, Msg::HelpPageUp),
    binding(Everywhere, &[Key::plain(Code::Home)], A::First, None, Msg::HelpFirst),
    binding(Everywhere, &[Key::plain(Code::End)], A::Last, None, Msg::HelpLast),
    binding(Everywhere, &[Key::char('1')], A::ShowFleet, None, Msg::HelpShowFleet),
    binding(Everywhere, &[Key::char('2')], A::ShowSpend, None, Msg::HelpShowSpend),
    binding(Everywhere, &[Key::char('3')], A::ShowStorage, None, Msg::HelpShowStorage),
    binding(Everywhere, &[Key::char('4')], A::ShowBudgets, None, Msg::HelpShowBudgets),
    binding(Everywhere, &[Key::char('5')], A::ShowAlerts, None, Msg::HelpShowAlerts),
    binding(Everywhere, &[Key::char('6')], A::ShowActivity, None, Msg::HelpShowActivity),
    binding(Everywhere, &[Key::plain(Code::Tab)], A::NextView, None, Msg::HelpNextView),
    binding(Everywhere, &[Key::plain(Code::F(5))], A::Refresh, None, Msg::HelpRefresh),
    binding(Everywhere, &[Key::ctrl('l')], A::Repaint, None, Msg::HelpRepaint),
    binding(Everywhere, &[Key::ctrl('z')], A::Suspend, None, Msg::HelpSuspend),
    binding(Everywhere, &[Key::char(':')], A::Palette, Some(Msg::HintPalette), Msg::HelpPalette),
    binding(Everywhere, &[Key::plain(Code::Esc)], A::Back, None, Msg::HelpBack),
    binding(Everywhere, &[Key::char('?')], A::Help, Some(Msg::HintHelp), Msg::HelpHelp),
    binding(Everywhere, &[Key::char('q'), Key::ctrl('c')], A::Quit, Some(Msg::HintQuit), Msg::HelpQuit),
    danger(Popup, &[Key::char('s')], A::StopOrStart, Msg::HintStop, Msg::HelpStop),
    danger(Popup, &[Key::char('x')], A::End, Msg::HintRelease, Msg::HelpRelease),
    danger(Popup, &[Key::char('I')], A::AllIdle, Msg::HintAllIdle, Msg::HelpAllIdle),
    binding(Popup, &[Key::char('b')], A::Page, Some(Msg::HintPage), Msg::HelpPage),
    binding(Popup, &[Key::plain(Code::Enter)], A::Details, Some(Msg::HintGoThere), Msg::HelpGoThere),
    binding(Popup, &[Key::char('a')], A::Seen, Some(Msg::HintSeen), Msg::HelpAlertSeen),
    binding(Popup, &[Key::char('A')], A::SeenAll, Some(Msg::HintSeenAll), Msg::HelpSeenAll),
    binding(Popup, &[Key::char('z')], A::Snooze, Some(Msg::HintSnooze), Msg::HelpSnooze),
    binding(Popup, &[Key::char('e')], A::Problem, None, Msg::HelpAlertInFull),
    binding(Popup, &[Key::char('u')], A::TakeBack, Some(Msg::HintTakeBack), Msg::HelpTakeBack),
    binding(Popup, &[Key::char('j'), Key::plain(Code::Down)], A::Down, None, Msg::HelpDown),
    binding(Popup, &[Key::char('k'), Key::plain(Code::Up)], A::Up, None, Msg::HelpUp),
    binding(Popup, &[Key::plain(Code::Esc)], A::Back, Some(Msg::HintLeave), Msg::HelpLeaveAlerts),
    binding(Plan, &[Key::char('y')], A::Confirm, Some(Msg::HintConfirm), Msg::HelpConfirm),
    danger(Plan, &[Key::char('s')], A::StopOrStart, Msg::HintStop, Msg::HelpPlanAgain),
    danger(Plan, &[Key::char('x')], A::End, Msg::HintRelease, Msg::HelpPlanAgain),
    danger(Plan, &[Key::char('R')], A::SaveAndEnd, Msg::HintSaveAndEnd, Msg::HelpPlanSave),
    binding(Plan, &[Key::char('j'), Key::plain(Code::Down)], A::Down, None, Msg::HelpDown),
    binding(Plan, &[Key::char('k'), Key::plain(Code::Up)], A::Up, None, Msg::HelpUp),
    binding(Plan, &[Key::plain(Code::Esc)], A::Back, Some(Msg::HintCancel), Msg::HelpCancel),
];

/// The ways out: they mean the same whatever the config says.
const FIXED: [(Key, Action); 2] = [(Key::plain(Code::Esc), Action::Back), (Key::ctrl('c'), Action::Quit)];

/// Rows of a keyboard as most hands know it.
const ROWS: [&str; 3] = ["qwertyuiop", "asdfghjkl", "zxcvbnm"];

/// What is wrong with a wish for other keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyMistake {
    #[error("there is no such action{}", nearest_action(.0))]
    UnknownAction(String),
    #[error("`{0}` is no key; write one character, or enter, space, tab, esc, up, f5, ctrl-r, alt-x and the like")]
    UnknownKey(String),
    #[error("{} means {} there already", key_name(*.key), .by.word())]
    Taken { key: Key, by: Action },
    #[error("{} always means {always}", key_name(*.key))]
    Fixed { key: Key, always: &'static str },
    #[error("{} is a Shift away from {}, which ends or stops things", key_name(*.0), key_name(*.1))]
    ShiftFromDanger(Key, Key),
    #[error("{} is beside {}, and both end or stop things", key_name(*.0), key_name(*.1))]
    BesideDanger(Key, Key),
    #[error("enter and space never confirm a plan")]
    Habit,
}

fn nearest_action(word: &str) -> String {
    let words = Action::ALL.iter().map(|action| action.word());
    let near = words.map(|known| (strsim::jaro_winkler(known, word), known)).max_by(|a, b| a.0.total_cmp(&b.0));
    near.filter(|(score, _)| *score > 0.7).map_or_else(String::new, |(_, known)| format!("; did you mean `{known}`?"))
}

/// The bindings in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Bindings(Vec<Binding>);

impl Default for Bindings {
    fn default() -> Self {
        Bindings(STANDARD.to_vec())
    }
}

impl Bindings {
    /// The standard with other keys for some actions, each wish an action's word and its keys. Each mistake
    /// comes with the place of its wish.
    pub fn with(wishes: &[(&str, &[String])]) -> Result<Self, Vec<(usize, KeyMistake)>> {
        let mut bindings = Bindings::default();
        let mut mistakes = Vec::new();
        let mut wished: Vec<(usize, Action)> = Vec::new();
        for (at, (word, names)) in wishes.iter().enumerate() {
            let Some(action) = Action::ALL.iter().copied().find(|action| action.word() == *word) else {
                mistakes.push((at, KeyMistake::UnknownAction((*word).to_owned())));
                continue;
            };
            let mut keys = Vec::new();
            for name in *names {
                match parse_key(name) {
                    Some(key) => keys.push(key),
                    None => mistakes.push((at, KeyMistake::UnknownKey(providers::text::clean(name)))),
                }
            }
            // What is fixed stays, and is given to nothing else.
            for (fixed, meaning) in FIXED {
                match (meaning == action, keys.contains(&fixed)) {
                    (true, false) => keys.push(fixed),
                    (false, true) => mistakes.push((at, KeyMistake::Fixed { key: fixed, always: meaning.word() })),
                    _ => {}
                }
            }
            let habits = [Key::plain(Code::Enter), Key::char(' ')];
            if action == Action::Confirm && habits.iter().any(|key| keys.contains(key)) {
                mistakes.push((at, KeyMistake::Habit));
            }
            wished.push((at, action));
            for binding in bindings.0.iter_mut().filter(|binding| binding.action == action) {
                binding.keys = Cow::Owned(keys.clone());
            }
        }
        let wish = |action| wished.iter().rev().find(|(_, wished)| *wished == action);
        for (action, mistake) in bindings.mistakes() {
            // Told where somebody can mend it.
            let (action, mistake) = match mistake {
                KeyMistake::Taken { key, by } if wish(action).is_none() => (by, KeyMistake::Taken { key, by: action }),
                mistake => (action, mistake),
            };
            let at = wish(action).or(wished.last());
            mistakes.push((at.map_or(0, |(at, _)| *at), mistake));
        }
        mistakes.dedup();
        if mistakes.is_empty() { Ok(bindings) } else { Err(mistakes) }
    }

    /// Two meanings of one key in a view, and keys from which a slip of the finger does harm.
    fn mistakes(&self) -> Vec<(Action, KeyMistake)> {
        let mut found = Vec::new();
        for places in Tab::ALL.map(places_of).into_iter().chain([[Plan].as_slice(), &[Popup]]) {
            let here: Vec<(Key, &Binding)> = self
                .0
                .iter()
                .filter(|binding| places.contains(&binding.place))
                .flat_map(|binding| binding.keys.iter().map(move |key| (*key, binding)))
                .collect();
            for (at, (key, binding)) in here.iter().enumerate() {
                for (other, one) in &here[..at] {
                    if other == key {
                        found.push((binding.action, KeyMistake::Taken { key: *key, by: one.action }));
                    }
                }
                for (other, one) in here.iter().filter(|(_, one)| one.danger) {
                    if shift_apart(*key, *other) && one.action != binding.action {
                        found.push((binding.action, KeyMistake::ShiftFromDanger(*key, *other)));
                    }
                    if binding.danger && beside(*key, *other) {
                        found.push((binding.action, KeyMistake::BesideDanger(*key, *other)));
                    }
                }
            }
        }
        found
    }

    pub fn all(&self) -> &[Binding] {
        &self.0
    }

    /// What a key means in a view.
    pub fn action_in(&self, tab: Tab, key: Key) -> Option<Action> {
        self.find(places_of(tab), key)
    }

    /// What a key means in a plan's window.
    pub fn action_in_plan(&self, key: Key) -> Option<Action> {
        self.find(&[Plan], key)
    }

    /// What a key means in the window of alerts that have just fired.
    pub fn action_in_popup(&self, key: Key) -> Option<Action> {
        self.find(&[Popup], key)
    }

    fn find(&self, places: &[Place], key: Key) -> Option<Action> {
        let key = Key { repeat: false, ..key };
        let mut bindings = self.0.iter();
        let binding = bindings.find(|binding| places.contains(&binding.place) && binding.keys.contains(&key));
        binding.map(|binding| binding.action)
    }

    /// The bindings that count in a view.
    pub fn of(&self, tab: Tab) -> impl Iterator<Item = &Binding> {
        let places = places_of(tab);
        self.0.iter().filter(move |binding| places.contains(&binding.place))
    }

    /// The first key of an action, wherever it counts.
    pub fn key_of(&self, action: Action) -> Option<Key> {
        let binding = self.0.iter().find(|binding| binding.action == action)?;
        binding.keys.first().copied()
    }
}

fn places_of(tab: Tab) -> &'static [Place] {
    match tab {
        Tab::Fleet => &[Fleet, Lists, Everywhere],
        Tab::Spend => &[Spend, Everywhere],
        Tab::Storage => &[Lists, Everywhere],
        Tab::Budgets => &[Budgets, Everywhere],
        Tab::Alerts => &[Alerts, Everywhere],
        Tab::Activity => &[Activity, Everywhere],
    }
}

fn shift_apart(a: Key, b: Key) -> bool {
    match (a.code, b.code) {
        (Code::Char(one), Code::Char(two)) => {
            one != two && one.eq_ignore_ascii_case(&two) && (a.ctrl, a.alt) == (b.ctrl, b.alt)
        }
        _ => false,
    }
}

fn beside(a: Key, b: Key) -> bool {
    let (Code::Char(one), Code::Char(two)) = (a.code, b.code) else { return false };
    let neighbours = [format!("{one}{two}").to_lowercase(), format!("{two}{one}").to_lowercase()];
    ROWS.iter().any(|row| neighbours.iter().any(|pair| row.contains(pair.as_str())))
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

/// Reads a key's name from the config, in any case but that of a letter by itself.
fn parse_key(name: &str) -> Option<Key> {
    let mut key = Key::plain(Code::Other);
    let mut rest = name.trim();
    loop {
        let lower = rest.to_ascii_lowercase();
        let (modifier, cut) = match () {
            () if lower.starts_with("ctrl-") => (&mut key.ctrl, 5),
            () if lower.starts_with("alt-") => (&mut key.alt, 4),
            () => break,
        };
        *modifier = true;
        rest = &rest[cut..];
    }
    let mut characters = rest.chars();
    key.code = match (characters.next(), characters.next()) {
        (Some(c), None) if key.ctrl => Code::Char(c.to_ascii_lowercase()),
        (Some(c), None) if !c.is_control() => Code::Char(c),
        _ => match rest.to_ascii_lowercase().as_str() {
            "space" => Code::Char(' '),
            "enter" => Code::Enter,
            "esc" => Code::Esc,
            "tab" => Code::Tab,
            "backspace" => Code::Backspace,
            "delete" => Code::Delete,
            "up" => Code::Up,
            "down" => Code::Down,
            "left" => Code::Left,
            "right" => Code::Right,
            "home" => Code::Home,
            "end" => Code::End,
            "pgup" => Code::PageUp,
            "pgdn" => Code::PageDown,
            function => Code::F(function.strip_prefix('f')?.parse().ok().filter(|n| (1..=24).contains(n))?),
        },
    };
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[test]
    fn no_key_of_the_standard_means_two_things_or_does_harm_by_a_slip() {
        assert_eq!(Bindings::default().mistakes(), []);
    }

    /// A slip of the finger, or a Shift too many, next to a key that ends things does nothing.
    #[test]
    fn the_neighbours_of_dangerous_keys_are_unbound() {
        let bindings = Bindings::default();
        for c in ['i', 'r', 'd', 'S', 'X', 'C'] {
            for tab in Tab::ALL {
                assert_eq!(bindings.action_in(tab, Key::char(c)), None, "{c}");
            }
            assert_eq!(bindings.action_in_plan(Key::char(c)), None, "{c}");
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
        let bindings = Bindings::default();
        for (key, tab) in habits.into_iter().flat_map(|key| Tab::ALL.map(|tab| (key, tab))) {
            let action = bindings.action_in(tab, key);
            assert!(!bindings.all().iter().any(|one| one.danger && Some(one.action) == action), "{key:?}");
        }
        assert_eq!(bindings.action_in_plan(Key::plain(Code::Enter)), None);
    }

    fn with(word: &str, keys: &[&str]) -> Result<Bindings, Vec<(usize, KeyMistake)>> {
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        Bindings::with(&[(word, &keys)])
    }

    #[test]
    fn an_action_has_other_keys_wherever_it_counts() {
        let bindings = with("end", &["Delete", "alt-x"]).unwrap();
        for tab in [Tab::Fleet, Tab::Storage] {
            assert_eq!(bindings.action_in(tab, Key::plain(Code::Delete)), Some(Action::End));
            assert_eq!(bindings.action_in(tab, Key::char('x')), None);
        }
        assert_eq!(bindings.action_in_plan(Key { alt: true, ..Key::char('x') }), Some(Action::End));
        let none = with("page", &[]).unwrap();
        assert_eq!(none.key_of(Action::Page), None);
    }

    #[test]
    fn the_ways_out_stay() {
        let bindings = with("quit", &["ctrl-q"]).unwrap();
        assert_eq!(bindings.action_in(Tab::Fleet, Key::ctrl('q')), Some(Action::Quit));
        assert_eq!(bindings.action_in(Tab::Fleet, Key::ctrl('c')), Some(Action::Quit));
        assert_eq!(bindings.action_in(Tab::Fleet, Key::char('q')), None);
    }

    #[rstest]
    #[case::action("sotr", &["x"], "there is no such action; did you mean `sort`?")]
    #[case::key("end", &["hyper"], "`hyper` is no key; write one character, or enter, space, tab, esc, up, f5, ctrl-r, alt-x and the like")]
    #[case::taken("group", &["o"], "o means sort there already")]
    #[case::taken_by_one_further_down("undo", &["z"], "z means pane there already")]
    #[case::fixed("end", &["esc"], "esc always means back")]
    #[case::shift("group", &["X"], "X is a Shift away from x, which ends or stops things")]
    #[case::beside("end", &["d"], "d is beside s, and both end or stop things")]
    #[case::habit("confirm", &["enter"], "enter and space never confirm a plan")]
    fn a_mistake_says_what_to_change(#[case] word: &str, #[case] keys: &[&str], #[case] told: &str) {
        let mistakes = with(word, keys).unwrap_err();
        assert!(mistakes.iter().any(|(_, mistake)| mistake.to_string() == told), "{mistakes:?}");
    }

    #[test]
    fn every_key_that_has_a_name_is_read_by_it() {
        for key in Bindings::default().all().iter().flat_map(|binding| binding.keys.iter()) {
            let arrows = [("↑", "up"), ("↓", "down"), ("←", "left"), ("→", "right")];
            let name = arrows.iter().fold(key_name(*key), |name, (sign, word)| name.replace(sign, word));
            assert_eq!(parse_key(&name), Some(*key), "{name}");
        }
    }
}
