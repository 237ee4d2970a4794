//! The window behind a figure: its parts by component and evidence, then the dearest resources or the entries.

use jiff::Timestamp;
use providers::money::{Currency, Rate};
use ratatui::layout::Rect;

use super::{account_name, amount, billable_name, evidence, group_name, money, sign, sums};
use crate::app::figure::{Figure, Told};
use crate::app::spend::SpendLine;
use crate::rules::spend::{Amounts, Billable, Charge, Entry, Evidence, Exact, Key, Terms};
use crate::ui::format;
use crate::ui::paint::{Paint, Runs, dim, plain, run};
use crate::ui::popup::{self, Border, key};
use crate::ui::scene::Scene;
use crate::ui::text::{Phrase, Word};
use crate::ui::theme::Role;

const WIDTH: u16 = 96;
/// Cells of a component's name.
const NAME: u16 = 11;
/// The widest column of amounts.
const AMOUNT: u16 = 12;
const RATE: u16 = 11;
/// Cells from one moment to another.
const TIMES: u16 = 30;
/// From so many cells on a rate stands beside each entry.
const WITH_RATE: u16 = 66;

pub fn paint(paint: &mut Paint, scene: &Scene, room: Rect, figure: &Figure) {
    let language = scene.look.language;
    let width = WIDTH.min(room.width.saturating_sub(2));
    let (title, currency) = match &figure.about {
        SpendLine::Group(currency, key) => (group_name(scene, key), *currency),
        SpendLine::Total(currency) => (language.word(Word::Total).to_owned(), *currency),
    };
    let account = match &figure.about {
        SpendLine::Group(_, Key::Billable(account, Billable::Resource { identity, .. }))
            if title != identity.id.as_str() =>
        {
            format!("{}  {}   ", account_name(scene, account), identity.id)
        }
        SpendLine::Group(_, Key::Billable(account, _)) => format!("{}   ", account_name(scene, account)),
        _ => String::new(),
    };
    let days = match &figure.about {
        // The title says which.
        SpendLine::Group(_, Key::Day(_)) => String::new(),
        _ => format::period(figure.period, super::today(scene), language),
    };
    let place = Place { cells: width.saturating_sub(6), currency, columns: columns(figure) };
    let lines: Vec<Runs> = figure.lines.iter().map(|told| line(scene, &place, told)).collect();
    let mut keys = Runs::new();
    if figure.lines.iter().any(|told| matches!(told, Told::Entry(_) | Told::Open { .. })) {
        let times = scene.key_of(crate::app::action::Action::Times);
        keys.extend([key(&times, language.word(Word::Times)), vec![dim("   ")]].concat());
    }
    keys.extend(key("esc", language.word(Word::Close)));
    let border = Border { title, title_right: format!("{account}{days}"), keys, ..Border::default() };
    let top = u16::try_from(figure.top).unwrap_or(u16::MAX);
    popup::scrolled(paint, room, width, &lines, top, border);
}

/// Where the parts of a line stand.
struct Place {
    cells: u16,
    currency: Currency,
    /// The kinds of evidence that there is anything of.
    columns: Vec<Evidence>,
}

fn columns(figure: &Figure) -> Vec<Evidence> {
    let has = |evidence: Evidence| {
        figure.lines.iter().any(|told| match told {
            Told::Component(_, amounts) | Told::Sum(amounts) => !of(amounts, evidence).is_zero(),
            _ => false,
        })
    };
    Evidence::ALL.into_iter().filter(|evidence| has(*evidence)).collect()
}

fn of(amounts: &Amounts, evidence: Evidence) -> Exact {
    match evidence {
        Evidence::Billed => amounts.billed,
        Evidence::Observed => amounts.observed,
        Evidence::Inferred => amounts.inferred,
        Evidence::Assumed => amounts.assumed,
    }
}

fn line(scene: &Scene, place: &Place, told: &Told) -> Runs {
    let language = scene.look.language;
    match told {
        Told::Blank => Runs::new(),
        Told::Heads => {
            let heads =
                place.columns.iter().map(|how| format!("{} {}", sign(scene, *how), language.word(evidence(*how))));
            amounts_line(place, dim(""), heads.map(dim).chain([dim(language.word(Word::Total))]))
        }
        Told::Component(component, amounts) => {
            amounts_line(place, plain(language.component(*component)), parts(scene, place, amounts, Role::Plain))
        }
        Told::Sum(amounts) => amounts_line(
            place,
            run(language.word(Word::Total), Role::Strong),
            parts(scene, place, amounts, Role::Strong),
        ),
        Told::Wasted(amount) => {
            vec![run(format!("{} {}", language.word(Word::Waste), money(scene, *amount, place.currency)), Role::Waste)]
        }
        Told::GpuTime(milliseconds) => {
            vec![plain(language.phrase(&Phrase::GpuHours { hours: &format::gpu_hours(*milliseconds) }))]
        }
        Told::Note(note) => vec![sums::note(scene, note)],
        Told::Dearest => vec![dim(language.word(Word::Dearest))],
        Told::Resource { account, billable, amounts } => {
            let about = if amounts.assumed.is_zero() { "" } else { "~" };
            let text = format!("{about}{}", amount(scene, amounts.total(), place.currency));
            let name = billable_name(scene, billable);
            let room = place.cells.saturating_sub(AMOUNT + 2);
            let name = format::cut(&name, room.min(40), scene.look.glyphs.ellipsis);
            let account = format::cut(
                &account_name(scene, account),
                room.saturating_sub(format::width(&name) + 2),
                scene.look.glyphs.ellipsis,
            );
            padded(place, vec![plain(name), dim(format!("  {account}"))], plain(text))
        }
        Told::More(count) => vec![dim(language.phrase(&Phrase::MoreLines { count: *count }))],
        Told::Entries => vec![dim(language.word(Word::Entries))],
        Told::Entry(entry) => self::entry(scene, place, entry),
        Told::Open { span, running } => {
            let end = running.then(|| language.word(Word::StillRunning));
            let entry = Entry {
                from: span.from,
                to: span.to,
                terms: span.terms.clone(),
                evidence: span.evidence,
                replaced: false,
                rate: Some(span.rate),
                amount: span.amount(),
                currency: span.rate.currency,
            };
            entry_line(scene, place, &entry, &times(scene, span.from, span.to, end))
        }
        Told::Replaced => vec![dim(language.word(Word::ReplacedWhy))],
        Told::Reading => vec![dim(language.word(Word::ReadingBooks))],
        Told::NoEntry => vec![dim(language.word(Word::NoEntry))],
    }
}

fn parts<'a>(
    scene: &'a Scene,
    place: &'a Place,
    amounts: &'a Amounts,
    role: Role,
) -> impl Iterator<Item = crate::ui::paint::Run> + use<'a> {
    let cell = move |part: Exact, role: Role| {
        if part.is_zero() { dim("") } else { run(amount(scene, part, place.currency), role) }
    };
    place.columns.iter().map(move |how| cell(of(amounts, *how), role)).chain([cell(amounts.total(), role)])
}

/// A name and amounts, each at the right of its column.
fn amounts_line(
    place: &Place,
    name: crate::ui::paint::Run,
    amounts: impl IntoIterator<Item = crate::ui::paint::Run>,
) -> Runs {
    let count = place.columns.len() as u16 + 1;
    let cells = (place.cells.saturating_sub(NAME) / count).min(AMOUNT + 2);
    let pad = NAME.saturating_sub(format::width(&name.text));
    let mut runs = vec![name, plain(" ".repeat(usize::from(pad)))];
    for amount in amounts {
        let pad = cells.saturating_sub(format::width(&amount.text));
        runs.push(plain(" ".repeat(usize::from(pad))));
        runs.push(amount);
    }
    runs
}

/// A text, and an amount at the right edge.
fn padded(place: &Place, left: Runs, amount: crate::ui::paint::Run) -> Runs {
    let used = crate::ui::paint::runs_width(&left) + format::width(&amount.text);
    let pad = place.cells.saturating_sub(used);
    [left, vec![plain(" ".repeat(usize::from(pad))), amount]].concat()
}

fn entry(scene: &Scene, place: &Place, entry: &Entry) -> Runs {
    let times =
        if entry.from == entry.to { moment(scene, entry.from) } else { times(scene, entry.from, entry.to, None) };
    entry_line(scene, place, entry, &times)
}

fn entry_line(scene: &Scene, place: &Place, entry: &Entry, times: &str) -> Runs {
    let language = scene.look.language;
    let role = if entry.replaced { Role::Dim } else { Role::Plain };
    let mut left = vec![run(in_cells(scene, times, TIMES), role)];
    left.push(run(in_cells(scene, language.component(entry.terms.component), NAME), role));
    if place.cells >= WITH_RATE {
        let rate = entry.rate.map_or_else(String::new, |rate| rate_text(scene, rate));
        left.push(dim(in_cells(scene, &rate, RATE)));
    }
    let text = amount(scene, entry.amount, entry.currency);
    let text = if entry.replaced { format!("({text})") } else { text };
    let room = place.cells.saturating_sub(crate::ui::paint::runs_width(&left) + format::width(&text) + 1);
    let told = how(scene, &entry.terms, entry.evidence, entry.replaced);
    // Where there is no room for words, the sign tells.
    let how = match format::width(&told) > room && place.cells < WITH_RATE {
        true => sign(scene, entry.evidence).to_owned(),
        false => format::cut(&told, room, scene.look.glyphs.ellipsis),
    };
    left.push(if entry.terms.wasted && !entry.replaced { run(how, Role::Waste) } else { dim(how) });
    padded(place, left, run(text, role))
}

fn rate_text(scene: &Scene, rate: Rate) -> String {
    format::rate(rate, scene.look)
}

/// How an entry is known, and in which sum it stands.
fn how(scene: &Scene, terms: &Terms, how: Evidence, replaced: bool) -> String {
    let language = scene.look.language;
    let known = if replaced { language.word(Word::OurFigure) } else { language.word(evidence(how)) };
    let also = match terms.charge {
        Charge::Possible => Some(Word::Perhaps),
        Charge::Prepaid => Some(Word::PaidAhead),
        Charge::Certain if terms.wasted && !replaced => Some(Word::Waste),
        Charge::Certain => None,
    };
    match also {
        Some(also) => format!("{} {known}{}{}", sign(scene, how), language.word(Word::Comma), language.word(also)),
        None => format!("{} {known}", sign(scene, how)),
    }
}

/// A text in exactly so many cells, the last of them blank.
fn in_cells(scene: &Scene, text: &str, cells: u16) -> String {
    let text = format::cut(text, cells - 1, scene.look.glyphs.ellipsis);
    let pad = cells.saturating_sub(format::width(&text));
    format!("{text}{}", " ".repeat(usize::from(pad)))
}

fn moment(scene: &Scene, at: Timestamp) -> String {
    let language = scene.look.language;
    if scene.state.view.spend.ago {
        return language.phrase(&Phrase::Ago { age: &scene.since(at) });
    }
    format::instant(at, super::today(scene), &scene.state.world.spending.zone, language)
}

/// From one moment to another; the day of the second where it is another one. `end` stands for it.
fn times(scene: &Scene, from: Timestamp, to: Timestamp, end: Option<&str>) -> String {
    let zone = &scene.state.world.spending.zone;
    let first = moment(scene, from);
    // Within a minute, or as long ago as it began.
    if end.is_none() && moment(scene, to) == first {
        return first;
    }
    let same_day = zone.to_datetime(from).date() == zone.to_datetime(to).date();
    let last = match end {
        Some(end) => return format!("{first} - {end}"),
        None if scene.state.view.spend.ago => moment(scene, to),
        None if same_day => zone.to_datetime(to).strftime("%H:%M").to_string(),
        None => moment(scene, to),
    };
    format!("{first} - {last}")
}
