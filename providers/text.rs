//! Text from outside, made safe: everything a provider or an instance sends passes `clean` on its way in.

use std::borrow::Cow;

/// Takes out what could speak to a terminal, a log or a spreadsheet instead of being read: whole escape
/// sequences (CSI, OSC, DCS and their kin, 7-bit and 8-bit), control characters, bidirectional marks and
/// zero-width characters. Line breaks and tabs become one space each, so that the result is one line.
pub fn clean(text: &str) -> String {
    // As nearly all are: nothing to take out but blanks around it.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.trim_matches(' ').to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => match rest.next() {
                Some('[') => skip_csi(&mut rest),
                Some(']' | 'P' | 'X' | '^' | '_') => skip_string(&mut rest),
                // ESC and intermediates, then one final character, as in `ESC ( B`.
                Some(' '..='/') => {
                    while rest.next_if(|c| (' '..='/').contains(c)).is_some() {}
                    rest.next();
                }
                _ => {}
            },
            '\u{9b}' => skip_csi(&mut rest),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut rest),
            '\r' if rest.peek() == Some(&'\n') => {}
            '\r' | '\n' | '\t' | '\u{85}' | '\u{2028}' | '\u{2029}' => out.push(' '),
            c if c.is_control() || is_invisible(c) => {}
            c => out.push(c),
        }
    }
    out.truncate(out.trim_end().len());
    let lead = out.len() - out.trim_start().len();
    out.drain(..lead);
    out
}

/// [`clean`], and `None` when nothing readable is left.
pub fn clean_opt(text: Option<&str>) -> Option<String> {
    text.map(clean).filter(|text| !text.is_empty())
}

/// At most `max` characters of a cleaned text, cut with a mark. For excerpts in errors.
pub fn excerpt(text: &str, max: usize) -> String {
    // A long body is cut before it is cleaned: cleaning megabytes for one line would be waste.
    let head: String = text.chars().take(max * 4).collect();
    let cleaned = clean(&head);
    match cleaned.char_indices().nth(max) {
        Some((at, _)) => format!("{}…", &cleaned[..at]),
        None => cleaned,
    }
}

/// What a spreadsheet takes for the start of a formula: its signs, narrow and full-width, and the characters
/// that some programs drop before they look for one.
const FORMULA: [char; 11] = ['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}', '\t', '\r', '\n'];

/// A cell for a spreadsheet: a text that would be read as a formula gets a leading apostrophe.
pub fn spreadsheet_cell(text: &str) -> Cow<'_, str> {
    if text.starts_with(FORMULA) { Cow::Owned(format!("'{text}")) } else { Cow::Borrowed(text) }
}

fn skip_csi(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while rest.next_if(|c| ('\u{20}'..='\u{3f}').contains(c)).is_some() {}
    rest.next_if(|c| ('\u{40}'..='\u{7e}').contains(c));
}

/// Skips to BEL, ST (`ESC \` or U+009C); an unterminated string swallows the rest, as a terminal would.
fn skip_string(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while let Some(c) = rest.next() {
        match c {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                rest.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

/// Format characters that take no cell but change what is read: bidi controls, zero-width characters,
/// interlinear marks, tags, variation selectors and the byte order mark.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// SEC-04: names that talk to the terminal.
    #[test]
    fn a_name_says_nothing_to_the_terminal() {
        let cases = [
            ("\u{1b}]52;c;ZXZpbA==\u{7}prod", "prod"),
            ("\u{1b}[2J\u{1b}[Hgone", "gone"),
            ("\u{9b}31mred", "red"),
            ("a\u{202e}txt.exe", "atxt.exe"),
            ("x\r\nSTOPPED", "x STOPPED"),
            ("tab\there", "tab here"),
            ("\u{1b}Pq#0;2;0;0;0\u{1b}\\dcs", "dcs"),
            ("bell\u{7}", "bell"),
            ("\u{1b}]8;;http://evil.invalid\u{7}link\u{1b}]8;;\u{7}", "link"),
            ("train \n", "train"),
            ("实验-批量", "实验-批量"),
            ("\u{1b}", ""),
        ];
        for (dirty, expected) in cases {
            assert_eq!(clean(dirty), expected, "{dirty:?}");
        }
    }

    #[test]
    fn excerpts_are_short_and_one_line() {
        assert_eq!(excerpt("<html>\n<body>", 40), "<html> <body>");
        assert_eq!(excerpt(&"x".repeat(500), 3), "xxx…");
    }

    #[test]
    fn a_formula_is_no_formula_in_a_spreadsheet() {
        assert_eq!(spreadsheet_cell("=cmd()"), "'=cmd()");
        assert_eq!(spreadsheet_cell("train"), "train");
    }

    proptest! {
        #[test]
        fn nothing_that_controls_is_left(text in "\\PC*|[\\x00-\\x20\\x7f-\\x9f\u{200b}-\u{202e}\\[\\]a-z;]*") {
            let cleaned = clean(&text);
            prop_assert!(!cleaned.chars().any(|c| c.is_control() || is_invisible(c)));
            prop_assert_eq!(clean(&cleaned), cleaned.clone());
        }
    }
}
