//! The first lines: what it all costs now, what is wasted, what is wrong.

use jiff::SignedDuration;
use providers::money::Rate;
use ratatui::layout::Rect;

use super::budgets;
use super::format;
use super::paint::{Paint, Run, Runs, dim, plain, run, runs_width};
use super::scene::Scene;
use super::text::{OfBudgets, Phrase, Word, percent_of};
use super::theme::Role;
use crate::app::action::Action as Meaning;
use crate::app::spending::Unwatched;
use crate::app::state::Tab;
use crate::rules::budgets::Cycle;
use crate::rules::fleet::{Account, AsOf, Trouble};
use crate::rules::memory::Collector;
use crate::rules::runway::Runway;
use crate::rules::spend::{Sums, date_of};

/// Blanks between two parts.
const GAP: u16 = 3;
/// Cells of the bar of the month.
const BAR: u16 = 10;
/// The ranks of the shortest runway: where it needs somebody, and else.
const SHORT_RUNWAY: u8 = 1;
const RUNWAY: u8 = 6;
/// The rank of the month where a budget is set for it: the sum of today leaves before.
const BUDGET: u8 = 2;

/// A part of the header. The highest `rank` leaves first when there is no room.
struct Part {
    rank: u8,
    runs: Runs,
}

/// The header and the rule below it, which names the views.
pub fn paint(paint: &mut Paint, scene: &Scene, area: Rect) {
    let mut parts = self::parts(scene, Naming::Full);
    let attention = attention(scene);
    let right = runs_width(&attention);
    let room = area.width.saturating_sub(2);
    let needed = |parts: &[Part], gap: u16| {
        let texts: u16 = parts.iter().map(|part| runs_width(&part.runs)).sum();
        let gaps = parts.len() + usize::from(right > 0);
        texts + right + gap * gaps.saturating_sub(1) as u16
    };
    // What can be said elsewhere leaves first; then all is said shorter, and stands closer, before more leaves.
    let mut naming = Naming::Full;
    while needed(&parts, GAP - 1) > room {
        let Some((last, rank)) = parts.iter().map(|part| part.rank).enumerate().max_by_key(|(_, rank)| *rank) else {
            break;
        };
        match naming {
            Naming::Full if rank <= RUNWAY => {
                naming = Naming::Short;
                parts = self::parts(scene, naming);
                parts.retain(|part| part.rank <= rank);
            }
            _ if rank == 0 => break,
            _ => drop(parts.remove(last)),
        }
    }
    let end = area.right().saturating_sub(right + 1);
    let gap = if needed(&parts, GAP) > room { GAP - 1 } else { GAP };
    let mut x = area.x + 1;
    for part in &parts {
        x = paint.runs(x, area.y, end.saturating_sub(x), &part.runs).saturating_add(gap);
    }
    paint.runs_right(area.x, area.y, area.width - 1, &attention);
    tabs(paint, scene, Rect { y: area.y + 1, height: 1, ..area });
}

/// How long what is said may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// Accounts with their provider, amounts to the cent.
    Full,
    /// Accounts alone and whole amounts, where there is little room.
    Short,
}

fn parts(scene: &Scene, naming: Naming) -> Vec<Part> {
    let (world, view, language) = (&scene.state.world, &scene.state.view, scene.look.language);
    let mut parts = Vec::new();
    let mut add = |rank, runs: Runs| parts.push(Part { rank, runs });
    let mut title = vec![run("rentop", Role::Strong)];
    if view.fixed.demo {
        title.push(run(format!("  {}", language.word(Word::Demo)), Role::Accent));
    }
    if world.read_only {
        title.push(run(format!("  {}", language.word(Word::ReadOnly)), Role::Accent));
    }
    add(0, title);
    if !world.fleet.accounts.is_empty() {
        add(0, burn(scene, naming));
    }
    let dash = scene.look.glyphs.dash;
    if let Some(spent) = &world.spending.totals {
        let month = date_of(spent.as_of, &world.spending.zone).month();
        let told = match naming {
            Naming::Full => format::sums,
            Naming::Short => format::sums_briefly,
        };
        // Before anybody has answered, nothing is known to be spent: that is not zero.
        let told = |sums: &Sums| if is_told(scene) || !sums.is_empty() { told(sums, scene) } else { dash.to_owned() };
        let (of_day, of_month) = (told(&spent.today), told(&spent.month));
        add(3, vec![plain(language.phrase(&Phrase::Today { money: &of_day }))]);
        match against_budget(scene, month, naming) {
            Some(told) => add(BUDGET, told),
            None => add(5, vec![plain(language.phrase(&Phrase::InMonth { month, money: &of_month }))]),
        }
    }
    if let Some(waste) = format::burn(&world.totals.waste, scene.currency(), scene.look) {
        add(2, vec![run(language.phrase(&Phrase::Wasting { rate: &waste }), Role::Waste)]);
    }
    if let Some(storage) = format::burn(&world.totals.storage, scene.currency(), scene.look) {
        add(8, vec![dim(language.phrase(&Phrase::StorageCosts { rate: &storage }))]);
    }
    if let Some(runway) = &world.runway {
        let told = self::runway(scene, runway, naming);
        add(if told.role == Role::Urgent { SHORT_RUNWAY } else { RUNWAY }, vec![told]);
    }
    if view.trouble > 0 {
        add(4, vec![run(language.phrase(&Phrase::InTrouble { count: view.trouble }), Role::Urgent)]);
    }
    if let Some(prepaid) = format::burn(&world.totals.prepaid, scene.currency(), scene.look) {
        add(7, vec![dim(language.phrase(&Phrase::Prepaid { rate: &prepaid }))]);
    }
    parts
}

/// The month against its budget; `None` without one over everything, and before the books have answered for it.
fn against_budget(scene: &Scene, month: i8, naming: Naming) -> Option<Runs> {
    let (language, budgets) = (scene.look.language, &scene.state.world.budgets);
    let mut of_month = budgets.rules.iter().zip(&budgets.standings);
    let (budget, standing) = of_month
        .find(|(budget, _)| budget.cycle == Cycle::Month && budget.scope.is_all() && budget.limit.money().is_some())?;
    let (standing, limit) = (standing.as_ref()?, budget.limit.money()?);
    let role = budgets::tone(standing.spent, budget);
    let percent = format!("{} %", percent_of(standing.spent, limit.amount)?);
    if naming == Naming::Short {
        return Some(vec![run(language.of_budgets(OfBudgets::MonthBriefly { month, percent: &percent }), role)]);
    }
    let spent = format::with_sign(&format::brief(standing.spent), limit.currency, scene.look.glyphs);
    let limit_told = format::limit(limit.amount);
    let (full, rest) = budgets::filled(scene, standing.spent, limit.amount, BAR);
    let mut told = vec![
        plain(language.of_budgets(OfBudgets::Month { month, spent: &spent, limit: &limit_told })),
        run(format!(" {full}"), role),
        run(rest, Role::Rule),
        run(format!(" {percent}"), role),
    ];
    // Money that no exchange rate joins is never left out.
    for (currency, amount) in &standing.apart {
        told.push(plain(format!(" {}", format::spent_money(*amount, *currency, scene.look.glyphs))));
    }
    Some(told)
}

/// How long an account's money lasts, where it is plain whose it is.
pub fn lasts(scene: &Scene, runway: &Runway) -> Run {
    let (left, role) = left(scene, runway);
    let time = format::age(left, scene.look.language);
    run(scene.look.language.phrase(&Phrase::LastsStill { time: &time, at_most: runway.at_most }), role)
}

/// The same in a few cells, after the money that it is about.
pub fn lasts_briefly(scene: &Scene, runway: &Runway) -> Run {
    let (left, role) = left(scene, runway);
    let at_most = if runway.at_most { "<" } else { "" };
    run(format!("{at_most}{}", format::age(left, scene.look.language)), role)
}

fn left(scene: &Scene, runway: &Runway) -> (SignedDuration, Role) {
    let left = runway.ends_at.map_or(SignedDuration::MAX, |end| end.duration_since(scene.now));
    let role = match left.as_hours() {
        ..12 => Role::Urgent,
        12..48 => Role::Waste,
        _ => Role::Dim,
    };
    (left, role)
}

/// How long an account's money lasts: within a working day it needs somebody, within two it is worth a look.
pub fn runway(scene: &Scene, runway: &Runway, naming: Naming) -> Run {
    let (left, role) = left(scene, runway);
    let time = format::age(left, scene.look.language);
    let account = match naming {
        Naming::Full => scene.account_title(&runway.account),
        Naming::Short => runway.account.to_string(),
    };
    let text = scene.look.language.phrase(&Phrase::Lasts { account: &account, time: &time, at_most: runway.at_most });
    run(text, role)
}

/// Some account has answered once, or there is none.
fn is_told(scene: &Scene) -> bool {
    let accounts = &scene.state.world.fleet.accounts;
    accounts.is_empty() || accounts.iter().any(|account| account.as_of.is_some())
}

/// What is charged per hour now, a currency at a time.
fn burn(scene: &Scene, naming: Naming) -> Runs {
    let (totals, language) = (&scene.state.world.totals, scene.look.language);
    if !is_told(scene) {
        return vec![dim(format!("{}/{}", scene.look.glyphs.dash, language.per_hour()))];
    }
    let first = scene.currency();
    let mut upper = format::in_order(totals.upper.rates(), first);
    if upper.is_empty() {
        upper.push(Rate::zero(first));
    }
    let mut runs = Runs::new();
    for most in upper {
        let certain = totals.burn.of(most.currency);
        if !runs.is_empty() {
            runs.push(dim("  "));
        }
        // Something of unknown price is in it: at least so much.
        let more = if totals.incomplete { "+" } else { "" };
        let about = if totals.estimated { "~" } else { "" };
        if naming == Naming::Short && certain != most {
            let range = format!("{}-{}", format::bare_rate(certain, scene.look.glyphs), format::hourly(most.amount()));
            runs.push(run(format!("{about}{range}/{}{more}", language.per_hour()), Role::Strong));
            continue;
        }
        runs.push(run(format!("{about}{}", format::rate(certain, scene.look)), Role::Strong));
        if certain != most {
            runs.push(dim(language.phrase(&Phrase::UpTo { rate: &format::rate(most, scene.look) })));
        }
        runs.push(run(more, Role::Strong));
    }
    runs
}

fn attention(scene: &Scene) -> Runs {
    match scene.state.view.attention {
        0 => Runs::new(),
        count => vec![run(format!("{} {count}", scene.look.glyphs.needs_you), Role::Urgent)],
    }
}

/// The rule with the names of the views on it, the present one in the accent; at its right what this
/// program is to the others, and whether it has something to say.
fn tabs(paint: &mut Paint, scene: &Scene, area: Rect) {
    paint.rule(area.x, area.y, area.width);
    let right = remarks(scene);
    let views = [
        (Meaning::ShowFleet, Tab::Fleet, Word::Fleet),
        (Meaning::ShowSpend, Tab::Spend, Word::Spend),
        (Meaning::ShowStorage, Tab::Storage, Word::Storage),
        (Meaning::ShowBudgets, Tab::Budgets, Word::Budgets),
        (Meaning::ShowAlerts, Tab::Alerts, Word::Alerts),
        (Meaning::ShowActivity, Tab::Activity, Word::Activity),
    ];
    let titles = |named: bool, close: bool| {
        views.map(|(meaning, tab, word)| {
            let (key, here) = (scene.key_of(meaning), scene.state.view.tab == tab);
            let name = if named || here { format!(" {}", scene.look.language.word(word)) } else { String::new() };
            let after = if close { "" } else { " " };
            run(format!(" {key}{name}{after}"), if here { Role::Here } else { Role::Dim })
        })
    };
    // Where there is no room for all names and what is said beside them, they stand close; then only the present view
    // has its name.
    let needed = |titles: &[Run], gap: u16| runs_width(titles) + titles.len() as u16 * gap + 2 + runs_width(&right);
    let (mut shown, mut gap) = (titles(true, false), 1);
    if needed(&shown, gap) > area.width {
        (shown, gap) = (titles(true, true), 0);
    }
    if needed(&shown, gap) > area.width {
        (shown, gap) = (titles(false, false), 1);
    }
    let mut x = area.x + 1;
    for title in shown {
        x = paint.text(x, area.y, area.right().saturating_sub(x), &title.text, title.role) + gap;
    }
    if gap == 0 {
        x = paint.text(x, area.y, 1, " ", Role::Plain);
    }
    let room = area.right().saturating_sub(x + 1);
    paint.runs_right(area.right().saturating_sub(room + 1), area.y, room, &right);
}

/// What this program is to the others, and whether it has something to say.
fn remarks(scene: &Scene) -> Runs {
    let (world, language) = (&scene.state.world, scene.look.language);
    let mut right = Runs::new();
    if let Some(Collector::Other { owner, .. }) = &world.collector {
        let text = language.phrase(&Phrase::LooksOn { host: &owner.host, pid: owner.pid });
        right.push(run(format!(" {text} "), Role::Accent));
    }
    let clock = usize::from(world.fleet.clock_off().is_some());
    let notices = clock + world.ledger_notices.len() + scene.state.view.fixed.notices.len();
    if notices > 0 {
        right.push(run(scene.look.glyphs.horizontal, Role::Rule));
        right.push(plain(format!(" {} ", language.phrase(&Phrase::Notices { count: notices }))));
        right.push(run("? ", Role::Accent));
    }
    right
}

/// One line for each account in trouble, and for each that is watched no longer; the last says how many more
/// there are. Below them the one question.
pub fn above_list(paint: &mut Paint, scene: &Scene, area: Rect) {
    let asks = u16::from(scene.state.view.asks());
    let height = area.height.saturating_sub(asks);
    trouble(paint, scene, Rect { height, ..area });
    if let Some((account, machines)) = scene.state.view.unasked.as_ref().filter(|_| asks > 0) {
        let language = scene.look.language;
        let text = language.ask_to_look(&scene.account_title(account), *machines);
        let key = scene.key_of(Meaning::LookInto);
        let tail = vec![run(format!("   {key}"), Role::Accent), dim(format!(" {}", language.word(Word::Answers)))];
        let (y, room) = (area.y + height, area.width.saturating_sub(2));
        let before = format::width(scene.look.glyphs.needs_you) + 1;
        let left = room.saturating_sub(before + runs_width(&tail));
        paint.text(area.x + 1 + before, y, left, &text, Role::Plain);
        paint.runs_right(area.x + 1, y, room, &tail);
    }
}

fn trouble(paint: &mut Paint, scene: &Scene, area: Rect) {
    let language = scene.look.language;
    let accounts = scene.state.world.fleet.accounts.iter().filter(|account| account.needs_a_look());
    let told = accounts.map(Told::Trouble).chain(scene.state.world.spending.unwatched.iter().map(Told::Unwatched));
    let more = scene.state.view.trouble.saturating_sub(usize::from(area.height));
    for (row, told) in told.take(usize::from(area.height)).enumerate() {
        let y = area.y + row as u16;
        let last = row + 1 == usize::from(area.height);
        if last && more > 0 {
            let line = language.phrase(&Phrase::MoreInTrouble { count: more + 1 });
            paint.text(area.x + 3, y, area.width.saturating_sub(4), &line, Role::Dim);
            break;
        }
        let (title, what, tail) = match told {
            Told::Trouble(account) => trouble_line(scene, account),
            Told::Unwatched(unwatched) => unwatched_line(scene, unwatched),
        };
        let room = area.width.saturating_sub(2);
        let tail_width = runs_width(&tail);
        let room_for_head = room.saturating_sub(tail_width + 2);
        let mut head = vec![
            run(format!("{} ", scene.look.glyphs.needs_you), Role::Urgent),
            run(format!("{title}  "), Role::Strong),
        ];
        let fits = runs_width(&head) + format::width(&what) <= room_for_head;
        head.push(plain(match told {
            // What went wrong says more than what was asked.
            Told::Trouble(Account { trouble: Some(AsOf { value: Trouble::Request(error), .. }), .. }) if !fits => {
                language.error_kind(&error.kind)
            }
            _ => what,
        }));
        paint.runs(area.x + 1, y, room_for_head, &head);
        paint.runs_right(area.x + 1, y, room, &tail);
    }
}

/// An account that somebody should know of.
enum Told<'a> {
    Trouble(&'a Account),
    Unwatched(&'a Unwatched),
}

fn trouble_line(scene: &Scene, account: &Account) -> (String, String, Runs) {
    let language = scene.look.language;
    let (what, since) = match &account.trouble {
        Some(trouble) => (
            language.trouble(&trouble.value),
            language.phrase(&Phrase::TroubleSince { age: &scene.since(trouble.as_of) }),
        ),
        None => (language.phrase(&Phrase::Problems { count: account.problems.len() }), String::new()),
    };
    let tail = vec![dim(since), run("   e", Role::Accent), dim(format!(" {}", language.word(Word::InFull)))];
    (scene.account_title(&account.name), what, tail)
}

fn unwatched_line(scene: &Scene, unwatched: &Unwatched) -> (String, String, Runs) {
    let language = scene.look.language;
    let rate = format::burn(&unwatched.burn, scene.currency(), scene.look).unwrap_or_default();
    let age = unwatched.seen.map(|seen| scene.since(seen));
    let what = language.phrase(&Phrase::Unwatched { count: unwatched.resources, rate: &rate, age: age.as_deref() });
    let key = scene.key_of(Meaning::Seen);
    let tail = vec![run(format!("   {key}"), Role::Accent), dim(format!(" {}", language.word(Word::Seen)))];
    (format!("{}/{}", unwatched.provider, unwatched.account), what, tail)
}
