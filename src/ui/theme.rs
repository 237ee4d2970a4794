//! What each colour means. Screen parts name a role; only this file knows colours.
//!
//! No role sets a background: normal text stands on the terminal's own, whatever that is.

use ratatui::style::{Color, Modifier, Style};

/// How many colours the terminal shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// None: bold and reverse alone tell things apart.
    None,
    /// The terminal's own palette of 16.
    Sixteen,
    True,
}

/// What the terminal's background is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    Dark,
    Light,
}

impl Background {
    /// The kind that a colour is: the one whose texts can be read better on it.
    pub fn of(rgb: [u8; 3]) -> Self {
        let behind = luminance(rgb);
        let (black, white) = ((behind + 0.05) / 0.05, 1.05 / (behind + 0.05));
        if black > white { Background::Light } else { Background::Dark }
    }
}

/// How bright a colour looks, from 0.0 for black to 1.0 for white, by WCAG 2.2.
fn luminance(rgb: [u8; 3]) -> f64 {
    let [r, g, b] = rgb.map(|part| {
        let part = f64::from(part) / 255.0;
        if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    });
    0.2126 * r + 0.7152 * g + 0.0722 * b
}

/// What a piece of text is. At rest nearly everything is plain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    Plain,
    /// Names and figures that the eye should find first.
    Strong,
    /// Known already, or not of now: heads, units, what is stale.
    Dim,
    /// Lines between parts.
    Rule,
    /// Where you are, and keys.
    Accent,
    /// The name under the cursor.
    Here,
    /// Costs money and does no work.
    Waste,
    /// Needs you now.
    Urgent,
    /// Was just confirmed.
    Good,
}

impl Role {
    pub const ALL: [Role; 9] = [
        Role::Plain,
        Role::Strong,
        Role::Dim,
        Role::Rule,
        Role::Accent,
        Role::Here,
        Role::Waste,
        Role::Urgent,
        Role::Good,
    ];
}

/// The styles of one terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    pub colours: Colours,
    pub background: Background,
}

impl Theme {
    pub const fn new(colours: Colours, background: Background) -> Self {
        Theme { colours, background }
    }

    pub fn style(&self, role: Role) -> Style {
        let style = Style::new();
        let style = match self.colour(role) {
            Some(colour) => style.fg(colour),
            None => style,
        };
        style.add_modifier(self.modifier(role))
    }

    fn colour(&self, role: Role) -> Option<Color> {
        match (self.colours, self.background) {
            (Colours::None, _) => None,
            (Colours::Sixteen, background) => sixteen(role, background),
            (Colours::True, Background::Dark) => true_dark(role),
            (Colours::True, Background::Light) => true_light(role),
        }
    }

    fn modifier(&self, role: Role) -> Modifier {
        match (role, self.colours) {
            (Role::Here, Colours::None) => Modifier::BOLD.union(Modifier::REVERSED),
            (Role::Strong | Role::Here | Role::Urgent, _) => Modifier::BOLD,
            (Role::Accent | Role::Waste | Role::Good, Colours::None) => Modifier::BOLD,
            // Palettes make their "bright black" anything from black to white, so it is no grey to rely on.
            (Role::Dim | Role::Rule, Colours::Sixteen) => Modifier::DIM,
            // There is no readable dark green in the palette.
            (Role::Good, Colours::Sixteen) => Modifier::BOLD,
            _ => Modifier::empty(),
        }
    }
}

fn sixteen(role: Role, background: Background) -> Option<Color> {
    let dark = background == Background::Dark;
    match role {
        Role::Plain | Role::Strong | Role::Dim | Role::Rule => None,
        Role::Accent | Role::Here => Some(if dark { Color::LightCyan } else { Color::Blue }),
        // Palette yellow cannot be read on white.
        Role::Waste => Some(if dark { Color::Yellow } else { Color::Magenta }),
        Role::Urgent => Some(if dark { Color::LightRed } else { Color::Red }),
        Role::Good => dark.then_some(Color::LightGreen),
    }
}

fn true_dark(role: Role) -> Option<Color> {
    match role {
        Role::Plain | Role::Strong => None,
        Role::Dim => Some(Color::Rgb(0x93, 0x97, 0x9e)),
        Role::Rule => Some(Color::Rgb(0x4d, 0x52, 0x5a)),
        Role::Accent | Role::Here => Some(Color::Rgb(0x6c, 0xb6, 0xff)),
        Role::Waste => Some(Color::Rgb(0xe8, 0xb0, 0x4b)),
        Role::Urgent => Some(Color::Rgb(0xff, 0x7b, 0x72)),
        Role::Good => Some(Color::Rgb(0x7e, 0xd0, 0x8a)),
    }
}

fn true_light(role: Role) -> Option<Color> {
    match role {
        Role::Plain | Role::Strong => None,
        Role::Dim => Some(Color::Rgb(0x63, 0x68, 0x70)),
        Role::Rule => Some(Color::Rgb(0xb4, 0xb9, 0xc0)),
        Role::Accent | Role::Here => Some(Color::Rgb(0x05, 0x50, 0xae)),
        Role::Waste => Some(Color::Rgb(0x8a, 0x56, 0x00)),
        Role::Urgent => Some(Color::Rgb(0xb3, 0x1d, 0x28)),
        Role::Good => Some(Color::Rgb(0x1a, 0x6b, 0x33)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    /// The palette of xterm, which most terminals' own is near to.
    fn rgb(colour: Color) -> [u8; 3] {
        match colour {
            Color::Rgb(r, g, b) => [r, g, b],
            Color::Red => [0xcd, 0, 0],
            Color::Green => [0, 0xcd, 0],
            Color::Yellow => [0xcd, 0xcd, 0],
            Color::Blue => [0, 0, 0xee],
            Color::Magenta => [0xcd, 0, 0xcd],
            Color::Cyan => [0, 0xcd, 0xcd],
            Color::LightRed => [0xff, 0, 0],
            Color::LightGreen => [0, 0xff, 0],
            Color::LightCyan => [0, 0xff, 0xff],
            other => panic!("{other:?} is in no theme"),
        }
    }

    fn contrast(a: [u8; 3], b: [u8; 3]) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// Backgrounds that people use: pure, soft, and warm.
    const DARK: [[u8; 3]; 3] = [[0, 0, 0], [0x1e, 0x1e, 0x1e], [0x28, 0x2c, 0x34]];
    const LIGHT: [[u8; 3]; 3] = [[0xff, 0xff, 0xff], [0xfa, 0xfa, 0xfa], [0xfd, 0xf6, 0xe3]];

    /// TUI-10.
    #[rstest]
    #[case(Colours::True, Background::Dark, &DARK)]
    #[case(Colours::True, Background::Light, &LIGHT)]
    #[case(Colours::Sixteen, Background::Dark, &DARK[..1])]
    #[case(Colours::Sixteen, Background::Light, &LIGHT[..1])]
    fn every_style_can_be_read_on_its_background(
        #[case] colours: Colours,
        #[case] background: Background,
        #[case] grounds: &[[u8; 3]],
    ) {
        let theme = Theme::new(colours, background);
        for role in Role::ALL {
            let style = theme.style(role);
            assert_eq!(style.bg, None, "{role:?} would fix the background");
            let Some(colour) = style.fg else { continue };
            for ground in grounds {
                let found = contrast(rgb(colour), *ground);
                // A rule carries no words.
                let least = if role == Role::Rule { 1.5 } else { 4.5 };
                assert!(found >= least, "{role:?} on {ground:?}: {found:.1}");
            }
        }
    }

    #[test]
    fn a_background_is_light_where_dark_texts_can_be_read_better() {
        for (grounds, expected) in [(DARK, Background::Dark), (LIGHT, Background::Light)] {
            for ground in grounds {
                assert_eq!(Background::of(ground), expected, "{ground:?}");
            }
        }
        // Blue looks dark, green does not.
        assert_eq!(Background::of([0, 0, 0xff]), Background::Dark);
        assert_eq!(Background::of([0, 0xff, 0]), Background::Light);
    }

    /// TUI-10: with NO_COLOR nothing but bold and reverse.
    #[test]
    fn without_colours_only_bold_and_reverse_are_left() {
        for background in [Background::Dark, Background::Light] {
            let theme = Theme::new(Colours::None, background);
            for role in Role::ALL {
                let style = theme.style(role);
                assert_eq!((style.fg, style.bg), (None, None), "{role:?}");
                assert!((Modifier::BOLD | Modifier::REVERSED).contains(style.add_modifier), "{role:?}");
            }
        }
    }
}
