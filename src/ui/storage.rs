//! The Storage view: what costs without working, by the month.

use providers::model::{Action, ResourceKind, StorageItem};
use ratatui::layout::Rect;

use super::deeds::effect_parts;
use super::details::labelled;
use super::language::{Language, Unit};
use super::paint::{Paint, Run, Runs, dim, plain, run};
use super::scene::Scene;
use super::text::{Phrase, Word};
use super::theme::Role;
use super::{fleet, format, plain as told};
use crate::app::columns::{Column, SIGNS};
use crate::app::listing::Line;
use crate::rules::fleet::Known;
use crate::rules::upkeep::{Kind, Note, Row, Since, Standing, month};

/// Places of the columns.
struct Columns {
    name: Column,
    kind: Column,
    account: Column,
    size: Column,
    age: Column,
    month: Column,
    note: Column,
}

impl Columns {
    fn fit(area: Rect, language: Language) -> Self {
        // The longest age, one that is only known to be no shorter.
        let age = 2 + 1 + format::width(language.unit(Unit::Minute)).max(2) + 1;
        let (size, month) = (6, 10);
        // What it is stands in the details as well.
        let kind = if area.width < 100 { 0 } else { 10 };
        let (mut name, mut account) = if area.width < 76 { (14, 0) } else { (14, 11) };
        let mut note = 18 - age;
        // A blank after each that is there; a second one before the notes.
        let gaps = 6 + u16::from(kind > 0) + u16::from(account > 0);
        let taken = SIGNS + name + kind + account + size + age + month + note + gaps;
        let mut spare = area.width.saturating_sub(taken);
        let mut give = |column: &mut u16, most: u16| {
            let more = spare.min(most.saturating_sub(*column));
            *column += more;
            spare -= more;
        };
        give(&mut note, 22);
        give(&mut name, 20);
        if account > 0 {
            give(&mut account, 18);
        }
        give(&mut note, 44);
        give(&mut name, 34);
        give(&mut note, u16::MAX);
        let mut x = area.x + SIGNS;
        let mut next = |width: u16| {
            let column = Column { x, width };
            x += if width > 0 { width + 1 } else { 0 };
            column
        };
        Columns {
            name: next(name),
            kind: next(kind),
            account: next(account),
            size: next(size),
            age: next(age),
            month: next(month + 1),
            note: next(note),
        }
    }
}

pub fn paint(paint: &mut Paint, scene: &Scene, area: Rect) {
    let list = &scene.state.view.storage;
    let columns = Columns::fit(area, scene.look.language);
    head(paint, scene, &columns, area.y);
    let height = usize::from(area.height.saturating_sub(1));
    for (row, line) in list.lines.iter().skip(list.top).take(height).enumerate() {
        let Line::Resource(identity) = line else { continue };
        let Some(found) = scene.state.view.shelf.row(identity) else { continue };
        let y = area.y + 1 + row as u16;
        let here = list.cursor.as_ref() == Some(line);
        if here {
            paint.text(area.x, y, 1, scene.look.glyphs.cursor, Role::Accent);
        }
        if list.marks.contains(identity) {
            paint.text(area.x + 1, y, 1, scene.look.glyphs.marked, Role::Accent);
        }
        self::row(paint, scene, &columns, area.x, y, found, here);
    }
    // What it all comes to stands below the rows, where there is room.
    let sums = told::upkeep_sums(&scene.state.view.shelf.upkeep, scene.look, scene.currency());
    let used = list.lines.len() + 1;
    for (row, sum) in sums.iter().enumerate().take_while(|(row, _)| used + row < height) {
        let y = area.y + 1 + (used + row) as u16;
        paint.text(columns.name.x, y, area.right().saturating_sub(columns.name.x), sum, Role::Dim);
    }
}

fn head(paint: &mut Paint, scene: &Scene, columns: &Columns, y: u16) {
    let language = scene.look.language;
    for (column, word) in [
        (columns.name, Word::Name),
        (columns.kind, Word::Kind),
        (columns.account, Word::Account),
        (columns.note, Word::Note),
    ] {
        paint.text(column.x, y, column.width, language.word(word), Role::Dim);
    }
    let sign = format::symbol(scene.currency(), scene.look.glyphs);
    let by_month = format!("{}/{}", sign.trim(), language.word(Word::PerMonth));
    for (column, text) in [
        (columns.size, language.word(Word::Size)),
        (columns.age, language.word(Word::Age)),
        (Column { width: columns.month.width - 2, ..columns.month }, by_month.as_str()),
    ] {
        paint.right(column.x, y, column.width, text, Role::Dim);
    }
}

fn row(paint: &mut Paint, scene: &Scene, columns: &Columns, x: u16, y: u16, row: &Row, here: bool) {
    let glyphs = scene.look.glyphs;
    let old = scene.is_old(&row.identity.account);
    let tone = |role: Role| if old && role == Role::Plain { Role::Dim } else { role };
    let (sign, sign_role) = match row.kind {
        Kind::Instance(phase) => (glyphs.phase(phase), Role::Plain),
        Kind::Storage(_) => (glyphs.storage, Role::Plain),
    };
    let missing = row.notes.iter().any(|note| matches!(note, Note::MissingSince(_)));
    paint.text(x + 2, y, 1, sign, tone(if row.standing == Standing::Waste { Role::Waste } else { sign_role }));
    if missing {
        paint.text(x + 4, y, 1, glyphs.needs_you, Role::Urgent);
    }
    if row.notes.contains(&Note::Protected) {
        // Not right before the name, which it would seem to begin.
        paint.text(x + 3, y, 1, "p", Role::Accent);
    }
    let name_role = if here { Role::Here } else { tone(Role::Plain) };
    paint.text(columns.name.x, y, columns.name.width, row.shown_name(), name_role);
    paint.text(columns.kind.x, y, columns.kind.width, kind(scene, row.kind), Role::Dim);
    let account = scene.account_title(&row.identity.account);
    paint.text(columns.account.x, y, columns.account.width, &account, Role::Dim);
    let size = row.size_gb.map_or_else(|| glyphs.dash.to_owned(), format::large_size);
    paint.right(columns.size.x, y, columns.size.width, &size, tone(Role::Plain));
    paint.right(columns.age.x, y, columns.age.width, &age(scene, row), tone(Role::Plain));
    money(paint, scene, columns.month, y, row, old);
    paint.runs(
        columns.note.x,
        y,
        columns.note.width,
        &fleet::whole_parts(scene, notes(scene, row), columns.note.width, Word::Semicolon),
    );
}

/// What sort of thing it is, in words.
pub fn kind(scene: &Scene, kind: Kind) -> &'static str {
    match kind {
        Kind::Instance(phase) => scene.look.language.phase(phase),
        Kind::Storage(kind) => scene.look.language.storage_kind(kind),
    }
}

/// `61 d`, with `+` where only our first sight of it is known.
fn age(scene: &Scene, row: &Row) -> String {
    let at_least = if matches!(row.since, Since::FirstSeen(_)) { "+" } else { "" };
    format!("{}{at_least}", format::age(row.since.age(scene.now), scene.look.language))
}

/// What it costs a month: `~` before an estimate, `?` after what only may be charged, `+` after what lacks a
/// part.
fn money(paint: &mut Paint, scene: &Scene, column: Column, y: u16, row: &Row, old: bool) {
    let glyphs = scene.look.glyphs;
    let shown = format::in_order(row.hourly().rates(), scene.currency());
    let Some(first) = shown.first() else {
        let dash = if row.rates.complete { "0.00" } else { glyphs.dash };
        return paint.right(column.x, y, column.width - 2, dash, Role::Dim);
    };
    let sum = month(*first);
    let text = if first.currency == scene.currency() { format::digits(sum.amount) } else { format::money(sum, glyphs) };
    let about = if row.rates.estimated() { "~" } else { "" };
    let more = match () {
        () if !row.rates.complete || shown.len() > 1 => "+",
        () if !row.certain() => "?",
        () => " ",
    };
    let role = match row.standing {
        Standing::Waste => Role::Waste,
        _ if old => Role::Dim,
        _ => Role::Plain,
    };
    paint.right(column.x, y, column.width - 1, &format!("{about}{text}{more}"), role);
}

/// What is being done to it, else what one should know.
fn notes(scene: &Scene, row: &Row) -> Runs {
    if let Some(operation) = scene.operation(&row.identity) {
        return vec![fleet::step(scene, operation)];
    }
    // Whose it is comes before what it is: the end of a long line is cut.
    let mut shown: Vec<&Note> = row.notes.iter().filter(|note| **note != Note::Protected).collect();
    shown.sort_by_key(|note| match note {
        Note::MissingSince(_) => 0,
        Note::OwnerLabels(_) => 1,
        _ => 2,
    });
    let mut runs = Runs::new();
    for note in shown {
        if !runs.is_empty() {
            runs.push(dim(scene.look.language.word(Word::Semicolon)));
        }
        runs.push(self::note(scene, note));
    }
    runs
}

fn note(scene: &Scene, note: &Note) -> Run {
    let text = told::upkeep_note(note, scene.look, &scene.state.view.fixed.zone, scene.now);
    let role = match note {
        Note::MissingSince(_) => Role::Urgent,
        Note::ComputeBilled | Note::CostsMoreWhileStopped | Note::AddressBilled => Role::Waste,
        Note::AttachedToNothing | Note::EndsAt(_) => Role::Plain,
        _ => Role::Dim,
    };
    run(text, role)
}

/// The sum for the footer: what all of the waste comes to in a month.
pub fn sum(scene: &Scene) -> Option<Runs> {
    let sum = &scene.state.view.shelf.upkeep.waste;
    if sum.count == 0 {
        return None;
    }
    let at_least = sum.incomplete || sum.certain != sum.upper;
    let money = told::amounts(sum.monthly(), scene.currency(), at_least, scene.look)?;
    let language = scene.look.language;
    let text = language.phrase(&Phrase::AMonth { money: &money });
    Some(vec![run(format!("{} {text}", language.word(Word::Waste)), Role::Waste)])
}

/// One storage item in full.
pub fn details(scene: &Scene, known: &Known<StorageItem>) -> Vec<Runs> {
    let item = &known.row;
    let name = item.name.as_deref().filter(|name| !name.trim().is_empty()).unwrap_or(item.id.as_str());
    let account = scene.account_title(&known.identity.account);
    let mut lines = vec![vec![run(name, Role::Strong), dim(format!("  {account}  {}", item.id))], facts(scene, known)];
    if !item.labels.is_empty() {
        let labels: Vec<String> = item.labels.iter().map(|(label, value)| format!("{label}={value}")).collect();
        lines.push(labelled(scene, Word::Labels, vec![plain(labels.join(" "))]));
    }
    let Some(row) = scene.state.view.shelf.row(&known.identity) else { return lines };
    lines.push(costs(scene, row));
    let mut told = notes(scene, row);
    if row.notes.contains(&Note::Protected) {
        if !told.is_empty() {
            told.push(dim(scene.look.language.word(Word::Semicolon)));
        }
        told.push(run(scene.look.language.word(Word::Protected), Role::Accent));
    }
    if !told.is_empty() {
        lines.push(told);
    }
    lines.push(end(scene, row));
    lines
}

fn facts(scene: &Scene, known: &Known<StorageItem>) -> Runs {
    let item = &known.row;
    let mut facts = vec![plain(scene.look.language.storage_kind(item.kind))];
    facts.extend(item.size_gib.map(|size| plain(format::gigabytes(size))));
    facts.extend(item.region.as_deref().map(plain));
    if let Some(row) = scene.state.view.shelf.row(&known.identity) {
        let word = scene.look.language.word(Word::Age).to_lowercase();
        facts.push(plain(format!("{word} {}", age(scene, row))));
    }
    super::details::separated(scene, facts)
}

fn costs(scene: &Scene, row: &Row) -> Runs {
    let language = scene.look.language;
    let hourly = scene.total(&row.hourly(), !row.rates.complete);
    let mut runs = vec![dim(format!("{}  ", language.word(Word::Costs)))];
    match hourly {
        Some(rate) => {
            let money = told::amounts(row.monthly(), scene.currency(), !row.rates.complete, scene.look);
            let money = money.unwrap_or_else(|| scene.look.glyphs.dash.to_owned());
            runs.push(plain(language.phrase(&Phrase::AMonth { money: &money })));
            runs.push(dim(format!("  {rate}")));
        }
        None => runs.push(dim(language.word(Word::Unknown))),
    }
    runs
}

/// The key that ends it, and what that would do; or why it cannot be ended.
fn end(scene: &Scene, row: &Row) -> Runs {
    let language = scene.look.language;
    let action = match row.identity.kind {
        ResourceKind::Instance => Action::Release,
        ResourceKind::Storage => Action::Delete,
    };
    let role = if row.hindrance.is_some() { Role::Dim } else { Role::Accent };
    let key = scene.key_of(crate::app::action::Action::End);
    let mut line = vec![run(format!("{key} {}  ", language.action(action)), role)];
    match (&row.hindrance, &row.effect) {
        (Some(hindrance), _) => line.push(dim(language.hindrance(hindrance, action))),
        (None, Some(effect)) => {
            let parts = effect_parts(scene, &row.identity.account, &row.rates, false, effect, action);
            for (at, part) in parts.into_iter().enumerate() {
                if at > 0 {
                    line.push(dim(language.word(Word::Semicolon)));
                }
                line.extend(part);
            }
        }
        (None, None) => {}
    }
    line
}
