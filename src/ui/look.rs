//! How one terminal is painted on.

use super::glyphs::Glyphs;
use super::language::Language;
use super::theme::Theme;

/// Colours, signs and language of one terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub theme: Theme,
    pub glyphs: &'static Glyphs,
    pub language: Language,
}
