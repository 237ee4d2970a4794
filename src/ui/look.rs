//! How one terminal is painted on.

use std::ffi::OsString;

use super::glyphs::{ASCII, Glyphs, UNICODE};
use super::language::Language;
use super::theme::{Background, Colours, Theme};

/// Colours, signs and language of one terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub theme: Theme,
    pub glyphs: &'static Glyphs,
    pub language: Language,
}

impl Look {
    /// What the environment tells of the terminal: `NO_COLOR`, `COLORTERM`, `TERM`, `COLORFGBG` and the
    /// character set of the locale.
    pub fn of_environment(language: Language, environment: &dyn Fn(&str) -> Option<OsString>) -> Self {
        let text = |name: &str| environment(name).map(|value| value.to_string_lossy().into_owned()).unwrap_or_default();
        let dumb = !answers(environment);
        let plain = !text("NO_COLOR").is_empty() || dumb;
        let colours = match text("COLORTERM").as_str() {
            _ if plain => Colours::None,
            "truecolor" | "24bit" => Colours::True,
            _ => Colours::Sixteen,
        };
        // `COLORFGBG` is `text;background`, by number in the palette of 16: 7 and above 8 are light.
        let behind = text("COLORFGBG").rsplit(';').next().and_then(|number| number.parse::<u8>().ok());
        let background = match behind {
            Some(7 | 9..=15) => Background::Light,
            _ => Background::Dark,
        };
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].map(text).into_iter().find(|value| !value.is_empty());
        // A system without a locale is asked for nothing: nearly every terminal draws UTF-8.
        let unicode = locale.is_none_or(|locale| {
            let locale = locale.to_uppercase();
            locale.contains("UTF-8") || locale.contains("UTF8")
        });
        let glyphs = if unicode && !dumb { &UNICODE } else { &ASCII };
        Look { theme: Theme::new(colours, background), glyphs, language }
    }
}

/// False for a terminal that says that it can do nothing: it would print what it is asked.
pub fn answers(environment: &dyn Fn(&str) -> Option<OsString>) -> bool {
    environment("TERM").is_none_or(|term| term != "dumb")
}

/// False for GNU screen: while the mouse is listened to, it holds back an Esc until the next key (seen with 4.9,
/// 2026-11-30). Behind it, over ssh, only `TERM` tells.
pub fn has_a_mouse(environment: &dyn Fn(&str) -> Option<OsString>) -> bool {
    let named = environment("TERM").is_some_and(|term| term.to_string_lossy().starts_with("screen"));
    // tmux goes by that name too.
    !named || (environment("STY").is_none() && environment("TMUX").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(variables: &[(&str, &str)]) -> Look {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value));
        Look::of_environment(Language::English, &find)
    }

    #[test]
    fn gnu_screen_is_told_from_tmux() {
        type Variables = &'static [(&'static str, &'static str)];
        let cases: [(Variables, bool); 6] = [
            (&[("TERM", "xterm")], true),
            (&[("TERM", "tmux-256color"), ("TMUX", "/tmp/tmux")], true),
            (&[("TERM", "screen-256color"), ("TMUX", "/tmp/tmux")], true),
            (&[("TERM", "screen"), ("STY", "1.tty")], false),
            (&[("TERM", "screen"), ("STY", "1.tty"), ("TMUX", "/tmp/tmux")], false),
            (&[("TERM", "screen.xterm-256color")], false),
        ];
        for (variables, mouse) in cases {
            let find =
                |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value));
            assert_eq!(has_a_mouse(&find), mouse, "{variables:?}");
        }
    }

    /// TUI-10: colours as far as the terminal has them, and none where none are wanted.
    #[test]
    fn the_environment_tells_colours_and_signs() {
        type Variables = &'static [(&'static str, &'static str)];
        let cases: [(Variables, Colours, bool); 6] = [
            (&[("TERM", "xterm"), ("LANG", "C.UTF-8")], Colours::Sixteen, true),
            (&[("COLORTERM", "truecolor"), ("LANG", "zh_CN.utf8")], Colours::True, true),
            (&[("COLORTERM", "truecolor"), ("NO_COLOR", "1")], Colours::None, true),
            (&[("TERM", "dumb"), ("LANG", "C.UTF-8")], Colours::None, false),
            (&[("LANG", "C")], Colours::Sixteen, false),
            (&[("LC_ALL", "C"), ("LANG", "C.UTF-8")], Colours::Sixteen, false),
        ];
        for (variables, colours, unicode) in cases {
            let look = look(variables);
            assert_eq!((look.theme.colours, *look.glyphs == UNICODE), (colours, unicode), "{variables:?}");
        }
        assert_eq!(look(&[("COLORFGBG", "0;15")]).theme.background, Background::Light);
        assert_eq!(look(&[("COLORFGBG", "15;0")]).theme.background, Background::Dark);
    }
}
