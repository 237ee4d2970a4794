//! A terminal's screen as an SVG picture. Words are text; rules, blocks and signs are drawn, so that they join
//! up and look the same whatever fonts the reader has.

use std::collections::BTreeMap;
use std::fmt::Write;

/// A cell, in units of the picture. Whole numbers, so that edges are sharp; odd ones, so that a rule of one unit
/// through the middle is sharp too.
const WIDTH: u16 = 9;
const HEIGHT: u16 = 19;
/// From the top of a cell to the line that letters stand on.
const BASELINE: u16 = 14;
/// Its letters are three fifths as wide as high in most fonts: one cell.
const FONT_SIZE: u16 = 15;
/// Around the screen.
const MARGIN: u16 = 14;

/// Each is asked for what the ones before it lack: the last has the wide letters, and narrow ones too narrow.
const FONTS: &str = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace, 'Noto Sans Mono CJK SC'";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rgb(u8, u8, u8);

impl std::fmt::Display for Rgb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }
}

/// The colours of a terminal that are not the program's choice.
pub struct Ground {
    pub back: Rgb,
    pub text: Rgb,
    /// The line around the picture.
    pub edge: Rgb,
    pub palette: [Rgb; 16],
}

pub const DARK: Ground = Ground {
    back: Rgb(0x17, 0x1a, 0x1f),
    text: Rgb(0xd8, 0xdb, 0xe0),
    edge: Rgb(0x30, 0x36, 0x3d),
    palette: [
        Rgb(0x17, 0x1a, 0x1f),
        Rgb(0xd9, 0x5f, 0x57),
        Rgb(0x5f, 0xb0, 0x6c),
        Rgb(0xd0, 0x9c, 0x3c),
        Rgb(0x53, 0x97, 0xdd),
        Rgb(0xb5, 0x83, 0xd6),
        Rgb(0x4f, 0xb3, 0xba),
        Rgb(0xd8, 0xdb, 0xe0),
        Rgb(0x6e, 0x74, 0x7d),
        Rgb(0xff, 0x7b, 0x72),
        Rgb(0x7e, 0xd0, 0x8a),
        Rgb(0xe8, 0xb0, 0x4b),
        Rgb(0x6c, 0xb6, 0xff),
        Rgb(0xd2, 0xa8, 0xff),
        Rgb(0x6f, 0xd3, 0xda),
        Rgb(0xff, 0xff, 0xff),
    ],
};

pub const LIGHT: Ground = Ground {
    back: Rgb(0xff, 0xff, 0xff),
    text: Rgb(0x1f, 0x23, 0x28),
    edge: Rgb(0xd0, 0xd7, 0xde),
    palette: [
        Rgb(0x1f, 0x23, 0x28),
        Rgb(0xb3, 0x1d, 0x28),
        Rgb(0x1a, 0x6b, 0x33),
        Rgb(0x8a, 0x56, 0x00),
        Rgb(0x05, 0x50, 0xae),
        Rgb(0x7a, 0x3a, 0xa8),
        Rgb(0x0a, 0x69, 0x72),
        Rgb(0xb4, 0xb9, 0xc0),
        Rgb(0x63, 0x68, 0x70),
        Rgb(0xcf, 0x22, 0x2e),
        Rgb(0x1a, 0x7f, 0x37),
        Rgb(0x9a, 0x67, 0x00),
        Rgb(0x09, 0x69, 0xda),
        Rgb(0x82, 0x50, 0xdf),
        Rgb(0x0e, 0x7c, 0x86),
        Rgb(0xff, 0xff, 0xff),
    ],
};

impl Ground {
    fn rgb(&self, colour: vt100::Color, default: Rgb) -> Rgb {
        match colour {
            vt100::Color::Default => default,
            vt100::Color::Rgb(red, green, blue) => Rgb(red, green, blue),
            vt100::Color::Idx(index @ 0..=15) => self.palette[usize::from(index)],
            // A cube of six steps a side, then a ramp of greys: the same in every terminal.
            vt100::Color::Idx(index @ 16..=231) => {
                let step = |part: u8| if part == 0 { 0 } else { 55 + 40 * part };
                let index = index - 16;
                Rgb(step(index / 36), step(index / 6 % 6), step(index % 6))
            }
            vt100::Color::Idx(index) => {
                let grey = 8 + 10 * (index - 232);
                Rgb(grey, grey, grey)
            }
        }
    }
}

/// How the letters of a cell look.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Style {
    colour: Rgb,
    bold: bool,
    italic: bool,
    underlined: bool,
}

/// The style of a cell and what is behind it.
fn style(cell: &vt100::Cell, ground: &Ground) -> (Style, Rgb) {
    let mut colour = ground.rgb(cell.fgcolor(), ground.text);
    let mut behind = ground.rgb(cell.bgcolor(), ground.back);
    if cell.inverse() {
        std::mem::swap(&mut colour, &mut behind);
    }
    if cell.dim() {
        let fainter = |from: u8, to: u8| ((u16::from(from) * 3 + u16::from(to) * 2) / 5) as u8;
        colour = Rgb(fainter(colour.0, behind.0), fainter(colour.1, behind.1), fainter(colour.2, behind.2));
    }
    (Style { colour, bold: cell.bold(), italic: cell.italic(), underlined: cell.underline() }, behind)
}

/// What a cell shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A letter of one cell.
    Narrow,
    /// A letter of two cells.
    Wide,
    /// A shape that goes on in the next cell.
    Band,
    /// A shape of its own.
    Sign,
}

/// A cell of the screen, or two that one wide letter takes.
struct Cell<'a> {
    column: u16,
    cells: u16,
    text: &'a str,
    style: Style,
    behind: Rgb,
}

impl Cell<'_> {
    fn end(&self) -> u16 {
        self.column + self.cells
    }

    fn is_blank(&self) -> bool {
        self.text == " " && !self.style.underlined
    }

    fn kind(&self) -> Kind {
        match self.text {
            text if text == "─" || eighths(text).is_some() => Kind::Band,
            text if SIGNS.contains(text) => Kind::Sign,
            _ if self.cells == 2 => Kind::Wide,
            _ => Kind::Narrow,
        }
    }

    /// Whether the next cell that is not blank goes on with what this one shows.
    fn goes_on(&self, next: &Cell) -> bool {
        let gap = next.column - self.end();
        self.style == next.style
            && match (self.kind(), next.kind()) {
                // A blank does not part words.
                (Kind::Narrow, Kind::Narrow) => gap <= 1,
                (Kind::Wide, Kind::Wide) => gap == 0,
                (Kind::Band, Kind::Band) => gap == 0 && self.text == next.text,
                _ => false,
            }
    }
}

/// How a shape is drawn.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Pen {
    Fill,
    Rule,
    Sign,
}

/// What is drawn, by colour: one path each, so that shapes that touch show no seam.
#[derive(Default)]
struct Shapes(BTreeMap<(Pen, Rgb), String>);

impl Shapes {
    fn add(&mut self, pen: Pen, colour: Rgb, path: &str) {
        self.0.entry((pen, colour)).or_default().push_str(path);
    }

    fn rectangle(&mut self, colour: Rgb, x: f64, y: f64, width: f64, height: f64) {
        self.add(Pen::Fill, colour, &format!("M{x} {y}h{width}v{height}h-{width}z"));
    }

    fn write(&self, svg: &mut String) {
        for ((pen, colour), path) in &self.0 {
            let paint = match pen {
                Pen::Fill => format!("fill=\"{colour}\""),
                Pen::Rule => format!("fill=\"none\" stroke=\"{colour}\""),
                Pen::Sign => format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.3\""),
            };
            writeln!(svg, "<path {paint} d=\"{path}\"/>").unwrap();
        }
    }
}

/// The screen as a picture, with a title for those who do not see it.
pub fn picture(screen: &vt100::Screen, ground: &Ground, title: &str) -> String {
    let (rows, columns) = screen.size();
    let (rows, columns) = (rows.get(), columns.get());
    let (width, height) = (columns * WIDTH + 2 * MARGIN, rows * HEIGHT + 2 * MARGIN);
    let (mut behind, mut shapes, mut letters) = (Shapes::default(), Shapes::default(), String::new());
    for row in 0..rows {
        let cells: Vec<Cell> = (0..columns).filter_map(|column| cell(screen, ground, row, column)).collect();
        for cells in cells.chunk_by(|cell, next| cell.behind == next.behind) {
            let (first, last) = (&cells[0], &cells[cells.len() - 1]);
            if first.behind != ground.back {
                let (x, y) = corner(row, first.column);
                let width = f64::from((last.end() - first.column) * WIDTH);
                behind.rectangle(first.behind, x, y, width, f64::from(HEIGHT));
            }
        }
        let inked: Vec<Cell> = cells.into_iter().filter(|cell| !cell.is_blank()).collect();
        for run in inked.chunk_by(Cell::goes_on) {
            match run[0].kind() {
                Kind::Narrow | Kind::Wide => write_letters(&mut letters, ground, row, run),
                Kind::Band => draw_band(&mut shapes, row, run),
                Kind::Sign => draw_sign(&mut shapes, row, &run[0]),
            }
        }
    }
    let Ground { back, text, edge, .. } = ground;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" xml:space=\"preserve\" role=\"img\" \
         width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
         <title>{}</title>\n\
         <rect x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\" fill=\"{back}\" stroke=\"{edge}\"/>\n",
        escape(title),
        width - 1,
        height - 1,
    );
    behind.write(&mut svg);
    shapes.write(&mut svg);
    write!(svg, "<g font-family=\"{FONTS}\" font-size=\"{FONT_SIZE}\" fill=\"{text}\">\n{letters}</g>\n</svg>\n")
        .unwrap();
    svg
}

/// A cell of the screen; `None` for the second half of a wide letter.
fn cell<'a>(screen: &'a vt100::Screen, ground: &Ground, row: u16, column: u16) -> Option<Cell<'a>> {
    let cell = screen.cell(row, column).filter(|cell| !cell.is_wide_continuation())?;
    let (style, behind) = style(cell, ground);
    let text = if cell.has_contents() { cell.contents() } else { " " };
    Some(Cell { column, cells: if cell.is_wide() { 2 } else { 1 }, text, style, behind })
}

/// Letters of one style beside each other, all of one cell or all of two.
fn write_letters(svg: &mut String, ground: &Ground, row: u16, run: &[Cell]) {
    let (first, last) = (&run[0], &run[run.len() - 1]);
    let (x, y) = (MARGIN + first.column * WIDTH, MARGIN + row * HEIGHT + BASELINE);
    if first.kind() == Kind::Wide {
        // A wide letter is as wide as high; what two cells have beyond that is parted between both sides.
        let beyond = 2 * WIDTH - FONT_SIZE;
        let x = f64::from(x) + f64::from(beyond) / 2.0;
        write!(svg, "<text x=\"{x}\" y=\"{y}\" letter-spacing=\"{beyond}\" xml:lang=\"zh-CN\"").unwrap();
    } else {
        write!(svg, "<text x=\"{x}\" y=\"{y}\"").unwrap();
    }
    let cells = last.end() - first.column;
    if cells > 1 {
        write!(svg, " textLength=\"{}\"", cells * WIDTH).unwrap();
    }
    let style = first.style;
    if style.colour != ground.text {
        write!(svg, " fill=\"{}\"", style.colour).unwrap();
    }
    let attributes = [
        (style.bold, " font-weight=\"bold\""),
        (style.italic, " font-style=\"italic\""),
        (style.underlined, " text-decoration=\"underline\""),
    ];
    for (_, attribute) in attributes.into_iter().filter(|(is_set, _)| *is_set) {
        svg.push_str(attribute);
    }
    let mut text = String::new();
    let mut at = first.column;
    for cell in run {
        text.push_str(&" ".repeat(usize::from(cell.column - at)));
        text.push_str(cell.text);
        at = cell.end();
    }
    if text.contains("  ") || text.trim() != text {
        // Not every browser takes the word of the elements around.
        svg.push_str(" xml:space=\"preserve\"");
    }
    writeln!(svg, ">{}</text>", escape(&text)).unwrap();
}

/// The upper left corner of a cell.
fn corner(row: u16, column: u16) -> (f64, f64) {
    (f64::from(MARGIN + column * WIDTH), f64::from(MARGIN + row * HEIGHT))
}

/// The eighths of a cell that a block fills from below.
fn eighths(text: &str) -> Option<u32> {
    let mut chars = text.chars();
    let block = chars.next().filter(|_| chars.next().is_none())?;
    ('▁'..='█').contains(&block).then(|| u32::from(block) - u32::from('▁') + 1)
}

/// A rule, or blocks of one height.
fn draw_band(shapes: &mut Shapes, row: u16, run: &[Cell]) {
    let (x, y) = corner(row, run[0].column);
    let width = f64::from(run.len() as u16 * WIDTH);
    match eighths(run[0].text) {
        Some(eighths) => {
            let high = f64::from(HEIGHT) * f64::from(eighths) / 8.0;
            shapes.rectangle(run[0].style.colour, x, y + f64::from(HEIGHT) - high, width, high);
        }
        None => {
            let middle = y + f64::from(HEIGHT) / 2.0;
            shapes.add(Pen::Rule, run[0].style.colour, &format!("M{x} {middle}h{width}"));
        }
    }
}

/// What `draw_sign` draws.
const SIGNS: &str = "│═╭╮╰╯▌▪●○◐◔◌◎◆◇▲▸▾✓✕";

fn draw_sign(shapes: &mut Shapes, row: u16, cell: &Cell) {
    let (x, y) = corner(row, cell.column);
    let (width, height) = (f64::from(WIDTH), f64::from(HEIGHT));
    let (right, bottom, half) = (x + width, y + height, width / 2.0);
    // The middle of the cell.
    let (cx, cy) = (x + half, y + height / 2.0);
    let circle = |r: f64| format!("M{} {cy}a{r} {r} 0 1 1 {d} 0a{r} {r} 0 1 1-{d} 0z", cx - r, d = 2.0 * r);
    let diamond = |r: f64| format!("M{} {cy}l{r}-{r} {r} {r}-{r} {r}z", cx - r);
    let (pen, path) = match cell.text {
        "│" => (Pen::Rule, format!("M{cx} {y}v{height}")),
        "═" => (Pen::Rule, format!("M{x} {}h{width}M{x} {}h{width}", cy - 1.5, cy + 1.5)),
        "╭" => (Pen::Rule, format!("M{right} {cy}q-{half} 0-{half} {half}V{bottom}")),
        "╮" => (Pen::Rule, format!("M{x} {cy}q{half} 0 {half} {half}V{bottom}")),
        "╰" => (Pen::Rule, format!("M{right} {cy}q-{half} 0-{half}-{half}V{y}")),
        "╯" => (Pen::Rule, format!("M{x} {cy}q{half} 0 {half}-{half}V{y}")),
        "▌" => (Pen::Fill, format!("M{x} {y}h{half}v{height}h-{half}z")),
        "▪" => (Pen::Fill, format!("M{} {}h5v5h-5z", cx - 2.5, cy - 2.5)),
        "●" => (Pen::Fill, circle(3.5)),
        "○" => (Pen::Sign, circle(3.0)),
        "◐" => {
            shapes.add(Pen::Sign, cell.style.colour, &circle(3.0));
            (Pen::Fill, format!("M{cx} {}a3 3 0 0 0 0 6z", cy - 3.0))
        }
        "◔" => {
            shapes.add(Pen::Sign, cell.style.colour, &circle(3.0));
            (Pen::Fill, format!("M{cx} {cy}v-3a3 3 0 0 1 3 3z"))
        }
        "◌" => (Pen::Sign, broken_circle(cx, cy, 3.2)),
        "◎" => (Pen::Sign, circle(3.4) + &circle(1.1)),
        "◆" => (Pen::Fill, diamond(4.2)),
        "◇" => (Pen::Sign, diamond(3.6)),
        "▲" => (Pen::Fill, format!("M{} {}h8l-4-7.5z", cx - 4.0, cy + 3.5)),
        "▸" => (Pen::Fill, format!("M{} {}v7l5-3.5z", cx - 2.5, cy - 3.5)),
        "▾" => (Pen::Fill, format!("M{} {}h7l-3.5 5z", cx - 3.5, cy - 2.5)),
        "✓" => (Pen::Sign, format!("M{} {cy}l2.6 3.2 4.4-7.4", cx - 3.5)),
        "✕" => (Pen::Sign, format!("M{} {}l6 6m0-6l-6 6", cx - 3.0, cy - 3.0)),
        other => panic!("`{other}` is among the signs and is not drawn"),
    };
    shapes.add(pen, cell.style.colour, &path);
}

/// Six short strokes around a point.
fn broken_circle(cx: f64, cy: f64, r: f64) -> String {
    let tenths = |value: f64| (value * 10.0).round() / 10.0;
    let point = |degrees: i32| {
        let (sin, cos) = f64::from(degrees).to_radians().sin_cos();
        format!("{} {}", tenths(cx + r * cos), tenths(cy + r * sin))
    };
    (0..360).step_by(60).map(|from| format!("M{}L{}", point(from), point(from + 26))).collect()
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // No character of XML.
            c if c.is_control() => {}
            c => escaped.push(c),
        }
    }
    escaped
}

/// What a screen comes to, as one picture a case.
#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use super::*;
    use crate::check;

    fn painted(bytes: &str) -> String {
        let cells = |count| NonZeroU16::new(count).unwrap();
        let mut parser = vt100::Parser::new(cells(3), cells(40), 0);
        parser.process(bytes.as_bytes());
        let svg = picture(parser.screen(), &DARK, "a < b & c");
        check::is_whole(&svg).unwrap();
        assert!(svg.contains("<title>a &lt; b &amp; c</title>"));
        svg
    }

    #[rstest::rstest]
    #[case::plain("ab", r#"<text x="14" y="28" textLength="18">ab</text>"#)]
    #[case::one_cell("a", r#"<text x="14" y="28">a</text>"#)]
    #[case::one_blank_joins("a b", r#"<text x="14" y="28" textLength="27">a b</text>"#)]
    #[case::two_blanks_part("a  b", r#"<text x="41" y="28">b</text>"#)]
    #[case::second_row("\r\na", r#"<text x="14" y="47">a</text>"#)]
    #[case::markup("<&>\"", r#">&lt;&amp;&gt;&quot;</text>"#)]
    #[case::wide("a价格b", r#"<text x="24.5" y="28" letter-spacing="3" xml:lang="zh-CN" textLength="36">价格</text>"#)]
    #[case::after_wide("a价格b", r#"<text x="59" y="28">b</text>"#)]
    #[case::bold("\x1b[1mab", r#" font-weight="bold">ab<"#)]
    #[case::italic("\x1b[3mab", r#" font-style="italic">ab<"#)]
    #[case::underlined("\x1b[4ma  b", r#" text-decoration="underline" xml:space="preserve">a  b<"#)]
    #[case::sixteen("\x1b[91ma", r##" fill="#ff7b72">a<"##)]
    #[case::cube("\x1b[38;5;208ma", r##" fill="#ff8700">a<"##)]
    #[case::grey("\x1b[38;5;244ma", r##" fill="#808080">a<"##)]
    #[case::rgb("\x1b[38;2;1;2;3ma", r##" fill="#010203">a<"##)]
    #[case::dim("\x1b[2ma", r##" fill="#8a8d92">a<"##)]
    #[case::reversed("\x1b[7ma", r##" fill="#171a1f">a<"##)]
    #[case::behind_reversed("\x1b[7ma b", r##"<path fill="#d8dbe0" d="M14 14h27v19h-27z"/>"##)]
    #[case::behind("a\x1b[48;2;1;2;3mb价", r##"<path fill="#010203" d="M23 14h27v19h-27z"/>"##)]
    #[case::a_rule_is_one_line("───", r##"<path fill="none" stroke="#d8dbe0" d="M14 23.5h27"/>"##)]
    #[case::corners_join("╭─╮", "M23 23.5q-4.5 0-4.5 4.5V33M23 23.5h9M32 23.5q")]
    #[case::blocks_of_a_height_are_one("██", "M14 14h18v19h-18z")]
    #[case::a_low_block("▁", "M14 30.625h9v2.375h-9z")]
    #[case::letters_beside_a_shape("▌ab", r#"<text x="23" y="28" textLength="18">ab</text>"#)]
    fn a_screen_becomes(#[case] bytes: &str, #[case] part: &str) {
        let svg = painted(bytes);
        assert!(svg.contains(part), "no {part} in\n{svg}");
    }

    /// Fonts differ most in the signs that are no letters.
    #[test]
    fn every_sign_of_the_program_is_drawn() {
        let signs = format!("{:?}", rentop::ui::glyphs::UNICODE);
        let drawn: Vec<char> = signs.chars().filter(|c| ('\u{2500}'..='\u{27bf}').contains(c)).collect();
        assert!(drawn.len() > 20, "{drawn:?}");
        for sign in drawn.into_iter().chain(SIGNS.chars()) {
            assert!(!painted(&sign.to_string()).contains("<text"), "{sign}");
        }
    }
}
