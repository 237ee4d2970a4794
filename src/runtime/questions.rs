//! What is asked of the terminal before the first frame: which keys it can tell, how wide it draws doubtful
//! signs, how light its background is. Nothing waits for an answer: each is taken when it comes, and a
//! terminal that stays silent is used as the environment describes it.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use super::input::Answer;
use crate::ui::Look;
use crate::ui::glyphs::{ASCII, UNICODE};
use crate::ui::theme::{Background, Colours};

/// Who leaves at once leaves the answers to the shell, which would take them for typing: so long they are
/// waited for.
const PATIENCE: Duration = Duration::from_millis(300);

/// The kitty keyboard protocol: which flags are on.
const KEYBOARD: &str = "\x1b[?u";
const BACKGROUND: &str = "\x1b]11;?\x1b\\";
const CURSOR: &str = "\x1b[6n";
/// Every terminal answers this, and after all that was asked before.
const ATTRIBUTES: &str = "\x1b[c";

/// What was asked and not yet answered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Questions {
    /// Until when the last answer is worth waiting for.
    open_until: Option<Instant>,
    /// Where the cursor is if each sign takes one cell: column, from 1.
    signs_end: Option<u16>,
}

/// What changes with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learnt {
    Nothing,
    /// The terminal knows the kitty keyboard protocol.
    Keyboard,
    /// The screen is to be painted in another way.
    Look,
}

impl Questions {
    /// Asks, on a screen that is still empty and `width` columns wide; leaves it empty.
    pub fn ask(look: &Look, width: u16, out: &mut impl Write) -> io::Result<Self> {
        let mut text = String::from(KEYBOARD);
        if look.theme.colours != Colours::None {
            text.push_str(BACKGROUND);
        }
        let signs = UNICODE.doubtful();
        let end = signs.chars().count() as u16 + 1;
        // Drawn twice as wide they must not run into the next line.
        let signs_end = Some(end).filter(|end| *look.glyphs == UNICODE && 2 * end <= width);
        if signs_end.is_some() {
            text.push_str("\x1b[H");
            text.push_str(&signs);
            text.push_str(CURSOR);
            text.push_str("\r\x1b[2K");
        }
        text.push_str(ATTRIBUTES);
        out.write_all(text.as_bytes())?;
        out.flush()?;
        Ok(Questions { open_until: Some(Instant::now() + PATIENCE), signs_end })
    }

    /// Takes an answer, however late.
    pub fn answered(&mut self, answer: Answer, look: &mut Look) -> Learnt {
        let before = *look;
        match answer {
            Answer::Keyboard => return Learnt::Keyboard,
            Answer::Attributes => *self = Questions::default(),
            Answer::Background(rgb) => look.theme.background = Background::of(rgb),
            Answer::Cursor { row: 1, column } => match self.signs_end {
                // F3 with Shift is told like a cursor: further to the left than the signs can end.
                Some(end) if column >= end => {
                    self.signs_end = None;
                    if column > end {
                        look.glyphs = &ASCII;
                    }
                }
                _ => {}
            },
            Answer::Cursor { .. } => {}
        }
        if *look == before { Learnt::Nothing } else { Learnt::Look }
    }

    /// Until when answers are worth waiting for before the terminal is given away; `None` when all are here.
    pub fn open_until(&self) -> Option<Instant> {
        self.open_until
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::config::Language;

    fn look(variables: &[(&str, &str)]) -> Look {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
        Look::of_environment(Language::English, &find)
    }

    fn asked(look: &Look, width: u16) -> (Questions, String) {
        let mut text = Vec::new();
        let questions = Questions::ask(look, width, &mut text).unwrap();
        (questions, String::from_utf8(text).unwrap())
    }

    #[rstest]
    #[case(&[], 80, [true, true, true])]
    #[case(&[("NO_COLOR", "1")], 80, [true, false, true])]
    #[case(&[("LANG", "C")], 80, [true, true, false])]
    #[case(&[], 20, [true, true, false])]
    fn only_what_matters_is_asked(#[case] variables: &[(&str, &str)], #[case] width: u16, #[case] expected: [bool; 3]) {
        let (questions, text) = asked(&look(variables), width);
        assert_eq!([KEYBOARD, BACKGROUND, CURSOR].map(|question| text.contains(question)), expected);
        assert!(text.ends_with(ATTRIBUTES) && questions.open_until().is_some());
    }

    #[test]
    fn signs_that_are_drawn_wider_are_replaced() {
        let end = UNICODE.doubtful().chars().count() as u16 + 1;
        for (row, column, ascii) in
            [(1, end, false), (1, end + 1, true), (1, 2 * end - 1, true), (1, 2, false), (2, end + 9, false)]
        {
            let mut look = look(&[]);
            let mut questions = asked(&look, 200).0;
            let learnt = questions.answered(Answer::Cursor { row, column }, &mut look);
            assert_eq!((*look.glyphs == ASCII, learnt == Learnt::Look), (ascii, ascii), "{row};{column}");
        }
        // Nobody asked.
        let mut look = look(&[]);
        let learnt = Questions::default().answered(Answer::Cursor { row: 1, column: 90 }, &mut look);
        assert_eq!((*look.glyphs == UNICODE, learnt), (true, Learnt::Nothing));
    }

    #[test]
    fn the_terminals_own_word_about_its_background_counts() {
        let mut look = look(&[("COLORFGBG", "15;0")]);
        let mut questions = asked(&look, 80).0;
        assert_eq!(questions.answered(Answer::Attributes, &mut look), Learnt::Nothing);
        assert_eq!(questions.open_until(), None);
        // Late, and heard all the same.
        assert_eq!(questions.answered(Answer::Background([0xfd, 0xf6, 0xe3]), &mut look), Learnt::Look);
        assert_eq!(look.theme.background, Background::Light);
        assert_eq!(questions.answered(Answer::Background([0xff; 3]), &mut look), Learnt::Nothing);
    }
}
