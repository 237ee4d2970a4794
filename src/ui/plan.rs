//! A plan's window: what an action saves, what goes on costing, what it keeps and deletes, what may go
//! wrong, what is left out, and what it asks of the person.

mod choices;

use providers::model::{Action, Phase, ResourceKind};
use ratatui::layout::{Position, Rect};
use tui_input::Input;

use super::deeds::places;
use super::format;
use super::paint::{Paint, Run, Runs, dim, plain, run, wrap};
use super::plain as told;
use super::popup::{self, Border, key, labelled};
use super::scene::Scene;
use super::text::{OfSaving, Phrase, Word};
use super::theme::Role;
use super::usage;
use crate::app::action::Action as Meaning;
use crate::app::keymap::Place;
use crate::app::state::Question;
use crate::rules::plan::{Confirmation, Plan, Target};
use crate::rules::upkeep::Note;

const WIDTH: u16 = 78;
/// The most cells of a name and of an account in a list of several.
const NAME_CELLS: u16 = 22;
const ACCOUNT_CELLS: u16 = 16;
/// From so many lines on there is room for paths beside what is deleted.
const ROOMY: usize = 14;
/// A list of several needs so many lines to be of use.
const LEAST_LISTED: usize = 3;

/// Paints the window and says where its text is being typed.
pub fn paint(paint: &mut Paint, scene: &Scene, room: Rect, question: &Question) -> Option<Position> {
    let asked = question;
    let Question { plan, field, scroll, changed, .. } = asked;
    let field = field.as_ref();
    let language = scene.look.language;
    let width = WIDTH.min(room.width.saturating_sub(2));
    let inside = width.saturating_sub(6);
    let labels = label_cells(scene);
    let (title, mut title_right) = titles(scene, plan);
    let mut body = Vec::new();
    if !popup::both_fit(width, &title, &title_right) {
        // Names may be long and several may be the same: which one it is must still be seen.
        body.extend(wrap(&[dim(std::mem::take(&mut title_right))], inside, 0));
    }
    if !plan.targets.is_empty() {
        body.extend(sums(scene, plan, labels, inside));
    }
    let most = usize::from(room.height.saturating_sub(2));
    let mut question = vec![Runs::new()];
    if changed.is_some() {
        let word = if plan.targets.is_empty() { Word::PlanNothingLeft } else { Word::PlanChanged };
        question.extend(wrap(
            &[run(format!("{} ", scene.look.glyphs.needs_you), Role::Urgent), run(language.word(word), Role::Urgent)],
            inside,
            2,
        ));
    }
    question.extend(asks(scene, asked, inside, most >= ROOMY));
    // The question is always seen, and what is left out leaves room for what is not.
    let mut tail = left_out(scene, plan, inside, most.saturating_sub(question.len()) / 2);
    tail.extend(question);

    let room_for_body = most.saturating_sub(tail.len());
    if plan.targets.len() > 1 {
        let mut rows = room_for_body.saturating_sub(body.len() + 1);
        if rows < LEAST_LISTED && *scroll > 0 {
            // Where there is no room for both, the sums make way for who scrolls.
            body.clear();
            rows = room_for_body;
        } else {
            body.push(Runs::new());
        }
        body.extend(listed(scene, plan, inside, rows, *scroll));
    }
    if body.len() > room_for_body {
        let hidden = body.len() - room_for_body.saturating_sub(1);
        body.truncate(room_for_body.saturating_sub(1));
        body.push(vec![dim(language.phrase(&Phrase::MoreLines { count: hidden }))]);
    }
    let height = (body.len() + tail.len()) as u16 + 2;
    let cancel = key("esc", language.word(if field.is_some() { Word::Back } else { Word::Cancel }));
    let border = Border { title, title_right, keys: cancel, ..Border::default() };
    // The field takes a line more: it opens below, and nothing above it moves.
    let opens = matches!((&plan.confirmation, field), (Confirmation::Typed(_), None)) && !plan.targets.is_empty();
    let area = Rect { height, ..popup::place(room, width, height + u16::from(opens)) };
    let inside = popup::paint(paint, area, &border);
    let lines = body.into_iter().chain(tail);
    let mut last = inside.y;
    for (row, line) in lines.take(usize::from(inside.height)).enumerate() {
        last = inside.y + row as u16;
        paint.runs(inside.x, last, inside.width, &line);
    }
    field.map(|input| name_field(paint, inside, last, input))
}

/// The field stands after its question, in the last line.
fn name_field(paint: &mut Paint, inside: Rect, y: u16, input: &Input) -> Position {
    let prompt = vec![run("> ", Role::Accent)];
    let x = paint.runs(inside.x, y, inside.width, &prompt);
    let cells = inside.right().saturating_sub(x + 1);
    popup::input(paint, x, y, cells, input)
}

fn titles(scene: &Scene, plan: &Plan) -> (String, String) {
    let language = scene.look.language;
    match plan.targets.as_slice() {
        [one] => {
            let account = scene.account_title(&one.identity.account);
            let which = [account.as_str(), one.identity.id.as_str(), one.gpus.as_str()];
            let which: Vec<&str> = which.into_iter().filter(|text| !text.is_empty()).collect();
            let title = match plan.confirmation {
                Confirmation::Save if plan.action != Action::Checkpoint => {
                    language.of_saving(&OfSaving::PlanFor { action: plan.action, name: &one.name })
                }
                _ => language.phrase(&Phrase::PlanFor { action: plan.action, name: &one.name }),
            };
            (title, which.join(&format!(" {} ", scene.look.glyphs.dot)))
        }
        [] => {
            let name = plan.left_out.first().map_or("", |(_, name, _)| name);
            (language.phrase(&Phrase::PlanFor { action: plan.action, name }), String::new())
        }
        many if plan.confirmation == Confirmation::Save && plan.action != Action::Checkpoint => {
            (language.of_saving(&OfSaving::PlanForMany { action: plan.action, count: many.len() }), String::new())
        }
        many => (language.phrase(&Phrase::PlanForMany { action: plan.action, count: many.len() }), String::new()),
    }
}

fn label_cells(scene: &Scene) -> u16 {
    let words = [
        Word::PlanSaves,
        Word::PlanCosts,
        Word::PlanGoesOn,
        Word::PlanKeeps,
        Word::PlanDeletes,
        Word::LastSaved,
        Word::LoggedIn,
        Word::PlanUse,
        Word::PlanMind,
        Word::PlanAge,
        Word::PlanEnds,
        Word::PlanPhase,
        Word::PlanAsOf,
    ];
    words.iter().map(|word| format::width(scene.look.language.word(*word))).max().unwrap_or(0) + 2
}

/// What the plan comes to, a line for each question.
fn sums(scene: &Scene, plan: &Plan, labels: u16, width: u16) -> Vec<Runs> {
    let (language, first) = (scene.look.language, scene.currency());
    let incomplete = plan.targets.iter().any(|target| !target.rates_complete);
    let more = if incomplete { "+" } else { "" };
    let after_unknown = plan.targets.iter().any(|target| !target.effect.rates_after.complete);
    let mut lines = Vec::new();
    let mut add = |word: Option<Word>, value: Runs| {
        let line = labelled(word.map_or("", |word| language.word(word)), labels, value);
        lines.extend(wrap(&line, width, labels));
    };
    if plan.action == Action::Start {
        let rate = format::burn(&plan.goes_on(), first, scene.look);
        let value = rate.map_or_else(
            || vec![dim(language.word(Word::Unknown))],
            |rate| vec![run(format!("{rate}{more}"), Role::Strong)],
        );
        add(Some(Word::PlanCosts), value);
    } else {
        let saves = plan.saves();
        let mut value = match format::burn(&saves, first, scene.look) {
            Some(rate) => vec![run(format!("{rate}{more}"), Role::Strong)],
            None if incomplete || plan.targets.iter().any(is_doubtful) => vec![dim(language.word(Word::Unknown))],
            None => vec![plain(language.word(Word::Nothing))],
        };
        let by_day: Vec<String> = format::in_order(saves.rates(), first)
            .into_iter()
            .filter_map(|rate| rate.over_hours(24.into()))
            .map(|money| format::money(money, scene.look.glyphs))
            .collect();
        if !by_day.is_empty() {
            value.push(dim(format!("   {}", language.phrase(&Phrase::ADay { money: &by_day.join(" + ") }))));
        }
        if plan.targets.iter().any(|target| target.prepaid) {
            value.push(dim(format!("   {}", language.word(Word::PaidAhead))));
        }
        add(Some(Word::PlanSaves), value);
        let goes_on = match format::burn(&plan.goes_on(), first, scene.look) {
            Some(rate) if after_unknown => vec![run(format!("{rate}+"), Role::Waste)],
            Some(rate) => vec![run(rate, Role::Waste)],
            None if after_unknown => vec![dim(language.word(Word::Unknown))],
            None => vec![plain(language.word(Word::Nothing))],
        };
        add(Some(Word::PlanGoesOn), goes_on);
        for (name, rates) in plan.targets.iter().flat_map(|target| &target.left_behind) {
            let rate = format::rates(rates, first, scene.look);
            let text = language.phrase(&Phrase::LeftBehind { name, rate: rate.as_deref() });
            add(None, vec![run(text, Role::Waste)]);
        }
    }
    match plan.targets.as_slice() {
        [one] => {
            if !one.effect.lost.is_empty() {
                add(Some(Word::PlanDeletes), vec![run(places(language, &one.effect.lost), Role::Urgent)]);
            }
            if !one.effect.kept.is_empty() {
                add(Some(Word::PlanKeeps), vec![plain(places(language, &one.effect.kept))]);
            }
        }
        many => {
            let losing = many.iter().filter(|target| target.effect.loses_data()).count();
            if losing > 0 {
                let text = language.phrase(&Phrase::DataOf { action: plan.action, count: losing });
                add(Some(Word::PlanDeletes), vec![run(text, Role::Urgent)]);
            }
        }
    }
    if let ([one], Action::Delete) = (plan.targets.as_slice(), plan.action) {
        add(Some(Word::PlanAge), vec![plain(target_age(scene, one))]);
    }
    if let [one] = plan.targets.as_slice() {
        if let Some(last) = choices::last_saved(scene, plan, one) {
            add(Some(Word::LastSaved), vec![last]);
        }
        if let Some(who) = choices::logged_in(scene, plan, one) {
            add(Some(Word::LoggedIn), who);
        }
    }
    // What would be ended in the midst of its work.
    if let ([one], Action::Stop | Action::Release) = (plan.targets.as_slice(), plan.action)
        && let Some(known) = scene.state.world.fleet.instances.get(&one.identity)
        && let Some(told) = usage::doing(scene, known)
    {
        add(Some(Word::PlanUse), told);
    }
    let about = match plan.targets.as_slice() {
        [one] => whose(scene, one),
        _ => Vec::new(),
    };
    let risks = plan.risks().into_iter().map(|risk| plain(language.risk(risk)));
    for (at, mind) in about.into_iter().chain(risks).enumerate() {
        add((at == 0).then_some(Word::PlanMind), vec![mind]);
    }
    if let Some(ends) = plan.targets.iter().filter_map(|target| target.ends_at).min() {
        add(Some(Word::PlanEnds), vec![plain(scene.moment(ends))]);
    }
    if let [one] = plan.targets.as_slice()
        && matches!(one.phase, Phase::Unknown | Phase::Unreachable | Phase::Provisioning)
    {
        add(Some(Word::PlanPhase), vec![run(language.phase(one.phase), Role::Waste)]);
    }
    let oldest = plan.targets.iter().map(|target| target.as_of).min().flatten();
    add(
        Some(Word::PlanAsOf),
        match oldest {
            Some(as_of) => vec![dim(language.phrase(&Phrase::Ago { age: &scene.since(as_of) }))],
            None => vec![run(language.word(Word::OnlyRemembered), Role::Waste)],
        },
    );
    lines
}

/// What happens to each of several, in at most so many rows, from the one that was scrolled to; how many have
/// no room there is said.
fn listed(scene: &Scene, plan: &Plan, width: u16, rows: usize, scroll: usize) -> Vec<Runs> {
    let columns = columns(scene, plan);
    let each: Vec<Vec<Runs>> =
        plan.targets.iter().map(|target| wrap(&target_line(scene, plan, target, columns), width, 2)).collect();
    let all_fit = each.iter().map(Vec::len).sum::<usize>() <= rows;
    let first = if all_fit { 0 } else { scroll };
    let mut lines = Vec::new();
    for (at, target) in each.into_iter().enumerate().skip(first) {
        if !all_fit && lines.len() + target.len() >= rows {
            lines.push(vec![dim(scene.look.language.phrase(&Phrase::MoreLines { count: plan.targets.len() - at }))]);
            break;
        }
        lines.extend(target);
    }
    lines
}

/// The cells for names and for accounts, two blanks included: as few as will do, so that what is lost has room.
fn columns(scene: &Scene, plan: &Plan) -> [u16; 2] {
    let widest = |text: &dyn Fn(&Target) -> String| {
        plan.targets.iter().map(|target| format::width(&text(target))).max().unwrap_or(0).saturating_add(2)
    };
    let names = widest(&|target| target.name.clone());
    let accounts = widest(&|target| scene.account_title(&target.identity.account));
    [names.min(NAME_CELLS), accounts.min(ACCOUNT_CELLS)]
}

/// What people have said of a resource: whose it is, and that it is to be kept. Pointed at alone it is acted on all
/// the same.
fn whose(scene: &Scene, target: &Target) -> Vec<Run> {
    let (world, language) = (&scene.state.world, scene.look.language);
    let (settings, identity) = (&world.settings, &target.identity);
    let (protected, mine) = match identity.kind {
        ResourceKind::Instance => world.fleet.instances.get(identity).map(|known| {
            let row = &known.row;
            (settings.protected(&target.provider, identity, row), settings.mine(&target.provider, identity, row))
        }),
        ResourceKind::Storage => world.fleet.storage.get(identity).map(|known| {
            let row = &known.row;
            (settings.protected(&target.provider, identity, row), settings.mine(&target.provider, identity, row))
        }),
    }
    .unwrap_or((false, true));
    let mut said = Vec::new();
    if protected {
        said.push(run(language.word(Word::Protected), Role::Waste));
    }
    if !mine {
        said.push(run(language.word(Word::NotMine), Role::Waste));
    }
    said.extend(owners(scene, target));
    said
}

/// Labels that name the owner of a storage item.
fn owners(scene: &Scene, target: &Target) -> Option<Run> {
    let view = &scene.state.view;
    let row = view.shelf.row(&target.identity).filter(|_| target.identity.kind == ResourceKind::Storage)?;
    let labels = row.notes.iter().find(|note| matches!(note, Note::OwnerLabels(_)))?;
    Some(run(told::upkeep_note(labels, scene.look, &view.fixed.zone, scene.now), Role::Waste))
}

/// How long a storage item is there; with `+` where only our first sight of it is known.
fn target_age(scene: &Scene, target: &Target) -> String {
    let seen = || scene.state.world.fleet.storage.get(&target.identity).map(|known| known.first_seen);
    match (target.created_at, seen()) {
        (Some(created), _) => scene.since(scene.state.world.fleet.here(&target.identity.account, created)),
        (None, Some(seen)) => format!("{}+", scene.since(seen)),
        (None, None) => scene.look.glyphs.dash.to_owned(),
    }
}

/// One of several: its name, what it saves and what it loses.
fn target_line(scene: &Scene, plan: &Plan, target: &Target, columns: [u16; 2]) -> Runs {
    let language = scene.look.language;
    let ellipsis = scene.look.glyphs.ellipsis;
    let column = |text: &str, cells: u16| {
        let text = format::cut(text, cells - 2, ellipsis);
        let pad = " ".repeat(usize::from(cells - format::width(&text)));
        text + &pad
    };
    let figures = if plan.action == Action::Start { target.after.clone() } else { target.saves() };
    let rate = match format::rates(&figures, scene.currency(), scene.look) {
        Some(rate) if !target.rates_complete => format!("{rate}+"),
        Some(rate) => rate,
        None if target.rates_complete && !is_doubtful(target) => language.word(Word::Nothing).to_owned(),
        None => scene.look.glyphs.dash.to_owned(),
    };
    let rate = format!("{}{rate}", " ".repeat(usize::from(10u16.saturating_sub(format::width(&rate)))));
    let mut runs = vec![
        plain(column(&target.name, columns[0])),
        dim(column(&scene.account_title(&target.identity.account), columns[1])),
        plain(rate),
    ];
    runs.extend(choices::of_several(scene, target));
    if target.effect.loses_data() {
        let places = places(language, &target.effect.lost);
        runs.push(run(format!("  {}", language.phrase(&Phrase::Deletes { places: &places })), Role::Urgent));
    }
    if plan.action == Action::Delete {
        let age = target_age(scene, target);
        runs.push(dim(format!("{}{} {age}", language.word(Word::Semicolon), language.word(Word::PlanAge))));
        if let Some(owners) = owners(scene, target) {
            runs.extend([dim(language.word(Word::Semicolon)), owners]);
        }
    }
    runs
}

/// Nobody knows whether it is charged for now.
pub fn is_doubtful(target: &Target) -> bool {
    !target.prepaid && matches!(target.phase, Phase::Provisioning | Phase::Stopping | Phase::Unknown)
}

/// What was pointed at and is left out, and why, in at most so many lines or the two that say how many.
fn left_out(scene: &Scene, plan: &Plan, width: u16, rows: usize) -> Vec<Runs> {
    let language = scene.look.language;
    if plan.left_out.is_empty() {
        return Vec::new();
    }
    const SHOWN: usize = 4;
    let mut lines = vec![Runs::new(), vec![dim(language.phrase(&Phrase::LeftOutCount { count: plan.left_out.len() }))]];
    for (at, (_, name, hindrance)) in plan.left_out.iter().enumerate() {
        let line = vec![plain(format!("  {name}  ")), dim(language.hindrance(hindrance, plan.action))];
        let told = wrap(&line, width, 4);
        let last = at + 1 == plan.left_out.len();
        if at == SHOWN || lines.len() + told.len() + usize::from(!last) > rows {
            if at > 0 {
                lines.push(vec![dim(language.phrase(&Phrase::MoreLines { count: plan.left_out.len() - at }))]);
            }
            break;
        }
        lines.extend(told);
    }
    lines
}

/// What the person has to do.
fn asks(scene: &Scene, question: &Question, width: u16, roomy: bool) -> Vec<Runs> {
    let language = scene.look.language;
    let plan = &question.plan;
    if plan.targets.is_empty() {
        return Vec::new();
    }
    match (&plan.confirmation, &question.field) {
        (Confirmation::Countdown, _) => {
            let (action, count, undo) = (plan.action, plan.targets.len(), scene.key_of(Meaning::TakeBack));
            let text = language.phrase(&Phrase::Confirm { action, count, undo: &undo });
            vec![vec![run(format!("{}  ", scene.key_in(Place::Plan, Meaning::Confirm)), Role::Accent), plain(text)]]
        }
        (Confirmation::Typed(expected), Some(input)) => {
            let right = input.value().trim() == expected;
            let [before, after] = language.type_name();
            let mut line = vec![plain(before), run(expected, Role::Strong), plain(after)];
            if right {
                let text = language.phrase(&Phrase::EnterDoes { action: plan.action });
                line.push(run(format!("   {text}"), Role::Urgent));
            } else if !expected.starts_with(input.value().trim()) {
                line.push(run(format!("   {}", language.word(Word::NotTheSame)), Role::Waste));
            }
            vec![line, Runs::new()]
        }
        (Confirmation::Typed(_) | Confirmation::Save, _) => choices::choices(scene, question, width, roomy),
    }
}
