//! Alerts: the list of them, the window of those that have just fired, and one of them in full.

use providers::model::ResourceKind;
use ratatui::layout::Rect;

use super::fleet;
use super::format;
use super::paint::{Paint, Run, Runs, dim, plain, run, runs_width, wrap};
use super::popup::{self, Border, key, labelled};
use super::scene::Scene;
use super::text::{OfAlerts, Sentence, Telling, Word};
use super::theme::Role;
use crate::app::action::Action;
use crate::app::answers::answers;
use crate::app::listing::Line;
use crate::app::message::Msg;
use crate::app::state::{AlertsPopup, SnoozeChoice};
use crate::rules::alerts::{Alert, Matter, Severity, Stage};

/// The widest that a list of sentences is comfortable to read.
const WIDTH: u16 = 96;
/// Cells of the labels of one alert in full.
const LABELS: u16 = 12;

/// Places of the columns.
struct Columns {
    state: (u16, u16),
    age: (u16, u16),
    what: (u16, u16),
    /// Leaves where there is little room: the details have it as well.
    answer: (u16, u16),
}

impl Columns {
    fn fit(area: Rect) -> Self {
        let answer = if area.width >= 100 { 20 } else { 0 };
        let (state, age) = (if area.width < 76 { 11 } else { 15 }, 7);
        let mut x = area.x + 3;
        let mut next = |width: u16| {
            let at = x;
            x += width + 1;
            (at, width)
        };
        let (state, age) = (next(state), next(age));
        let taken = age.0 + age.1 + 2;
        let what = (taken, area.right().saturating_sub(taken + answer + if answer > 0 { 2 } else { 0 }));
        Columns { state, age, what, answer: (what.0 + what.1 + 2, answer) }
    }
}

pub fn paint(paint: &mut Paint, scene: &Scene, area: Rect) {
    let (language, list) = (scene.look.language, &scene.state.view.alerts);
    let columns = Columns::fit(area);
    for (column, text) in [
        (columns.state, OfAlerts::HeadState),
        (columns.what, OfAlerts::HeadWhat),
        (columns.answer, OfAlerts::HeadAnswer),
    ] {
        paint.text(column.0, area.y, column.1, &language.of_alerts(text), Role::Dim);
    }
    paint.right(columns.age.0, area.y, columns.age.1, &language.of_alerts(OfAlerts::HeadSince), Role::Dim);
    let height = usize::from(area.height.saturating_sub(1));
    for (row, line) in list.lines.iter().skip(list.top).take(height).enumerate() {
        let Some(alert) = alert_of(scene, line) else { continue };
        let y = area.y + 1 + row as u16;
        let here = list.cursor.as_ref() == Some(line);
        if here {
            paint.text(area.x, y, 1, scene.look.glyphs.cursor, Role::Accent);
        }
        let sign = sign(scene, alert);
        paint.runs(area.x + 1, y, 1, &[sign]);
        let state = state(scene, alert);
        paint.text(columns.state.0, y, columns.state.1, &state.text, state.role);
        paint.right(columns.age.0, y, columns.age.1, &age(scene, alert), Role::Dim);
        paint.runs(columns.what.0, y, columns.what.1, &sentence_in(scene, alert, columns.what.1, here));
        let answer = answer_runs(scene, alert, true);
        paint.runs(columns.answer.0, y, columns.answer.1, &answer);
    }
}

fn alert_of<'a>(scene: &Scene<'a>, line: &Line) -> Option<&'a Alert> {
    match line {
        Line::Alert(topic, since) => scene.state.world.alerting.alerts.find_one(topic, *since),
        _ => None,
    }
}

/// The alert under the cursor of the list.
pub fn here<'a>(scene: &Scene<'a>) -> Option<&'a Alert> {
    alert_of(scene, scene.state.view.alerts.cursor.as_ref()?)
}

fn sign(scene: &Scene, alert: &Alert) -> Run {
    match alert.stage {
        Stage::Firing => run(scene.look.glyphs.needs_you, tone(alert)),
        _ => dim(scene.look.glyphs.dot),
    }
}

fn tone(alert: &Alert) -> Role {
    match alert.matter.severity() {
        Severity::Urgent => Role::Urgent,
        Severity::Money => Role::Waste,
        Severity::Note => Role::Plain,
    }
}

fn state(scene: &Scene, alert: &Alert) -> Run {
    let language = scene.look.language;
    match alert.stage {
        Stage::Pending => dim(language.of_alerts(OfAlerts::Pending)),
        Stage::Firing => run(language.of_alerts(OfAlerts::Firing), tone(alert)),
        Stage::Acknowledged => dim(language.of_alerts(OfAlerts::Seen)),
        Stage::Snoozed { until } => dim(language.of_alerts(OfAlerts::Snoozed { until: &scene.moment(until) })),
        Stage::Resolved { .. } => dim(language.of_alerts(OfAlerts::Ended)),
    }
}

/// How long it has been so, or how long ago it ended.
fn age(scene: &Scene, alert: &Alert) -> String {
    match alert.stage {
        Stage::Resolved { at } => scene.since(at),
        _ => scene.since(alert.since),
    }
}

fn sentence(scene: &Scene, matter: &Matter) -> Sentence {
    let title = |account: &providers::model::AccountName| scene.account_title(account);
    let telling = Telling {
        look: scene.look,
        first: scene.currency(),
        zone: &scene.state.view.fixed.zone,
        now: Some(scene.now),
        title: &title,
    };
    telling.sentence(matter)
}

/// Its sentence in one line: what matters less is left out before anything is cut.
fn sentence_in(scene: &Scene, alert: &Alert, cells: u16, here: bool) -> Runs {
    let mut sentence = sentence(scene, &alert.matter);
    while format::width(&sentence.line()) > cells && sentence.more.pop().is_some() {}
    runs_of(sentence, alert, here)
}

fn runs_of(sentence: Sentence, alert: &Alert, here: bool) -> Runs {
    let over = matches!(alert.stage, Stage::Resolved { .. });
    let subject = match (here, over) {
        (true, _) => Role::Here,
        (_, true) => Role::Dim,
        _ => Role::Strong,
    };
    let rest = [sentence.says.as_str()].into_iter().chain(sentence.more.iter().map(String::as_str)).collect::<String>();
    vec![run(sentence.subject, subject), run(rest, if over { Role::Dim } else { Role::Plain })]
}

/// What is being done about it, else the keys that answer it: the best alone, or all.
fn answer_runs(scene: &Scene, alert: &Alert, best: bool) -> Runs {
    if matches!(alert.stage, Stage::Resolved { .. }) {
        return Runs::new();
    }
    let mut runs = Runs::new();
    if let Some(operation) = alert.matter.identity().and_then(|identity| scene.operation(identity)) {
        runs.push(fleet::step(scene, operation));
        if best {
            return runs;
        }
    }
    for action in answers(&scene.state.world, &alert.matter).into_iter().take(if best { 1 } else { usize::MAX }) {
        if !runs.is_empty() {
            runs.push(plain("   "));
        }
        runs.extend(hint(scene, alert, action, best));
    }
    runs
}

/// A key and what it does about an alert.
fn hint(scene: &Scene, alert: &Alert, action: Action, briefly: bool) -> Runs {
    let language = scene.look.language;
    let of_storage = alert.matter.identity().is_some_and(|identity| identity.kind == ResourceKind::Storage);
    let does = match action {
        Action::StopOrStart => language.of_alerts(OfAlerts::Stop),
        Action::End if of_storage => language.of_alerts(OfAlerts::Delete),
        Action::End => language.of_alerts(OfAlerts::Release),
        Action::Problem => language.word(Word::InFull).to_owned(),
        Action::Page => scene.message(&Msg::HintPage),
        Action::TakeBack => language.of_alerts(OfAlerts::Forbid),
        Action::AllIdle if briefly => scene.message(&Msg::HintAllIdle),
        Action::AllIdle => {
            let fleet = &scene.state.world.fleet;
            let idle = fleet.idle.iter().filter_map(|identity| fleet.instances.get(identity));
            let burn = idle.flat_map(|known| known.rates().certain().rates().to_vec()).collect();
            let rate = format::burn(&burn, scene.currency(), scene.look).unwrap_or_default();
            language.of_alerts(OfAlerts::AllIdle { count: fleet.idle.len(), rate: &rate })
        }
        _ => scene.message(&Msg::HintGoThere),
    };
    key(&scene.key_of(action), &does)
}

/// The window of alerts that have just fired.
pub fn paint_popup(paint: &mut Paint, scene: &Scene, room: Rect, popup: &AlertsPopup) {
    let language = scene.look.language;
    let width = WIDTH.min(room.width.saturating_sub(2));
    let inner = width.saturating_sub(6);
    let alerts: Vec<&Alert> =
        popup.topics.iter().filter_map(|topic| scene.state.world.alerting.alerts.get(topic)).collect();
    let mut keys = Runs::new();
    if let Some(alert) = alerts.get(popup.at) {
        let mut lines = wrap(&answer_runs(scene, alert, false), inner, 0);
        keys.append(&mut lines.remove(0));
    }
    // The sign, the sentence, broken where it has no room.
    let each: Vec<Vec<Runs>> = alerts
        .iter()
        .enumerate()
        .map(|(at, alert)| {
            let mut line = vec![run(format!("{} ", scene.look.glyphs.needs_you), tone(alert))];
            line.extend(runs_of(sentence(scene, &alert.matter), alert, at == popup.at));
            wrap(&line, inner, 2)
        })
        .collect();
    // A blank line and the keys stand below.
    let most = usize::from(room.height.saturating_sub(4)).max(1);
    let (first, shown) = around(&each, popup.at, most);
    let height = each[first..first + shown].iter().map(Vec::len).sum::<usize>().min(most) as u16 + 4;
    let count = alerts.len();
    let waits = dim(if popup.armed { String::new() } else { language.of_alerts(OfAlerts::Waits) });
    let place = if shown < count { format!("{}-{} / {count}", first + 1, first + shown) } else { String::new() };
    let mut below = Runs::new();
    for (action, hint) in [
        (Action::Seen, Msg::HintSeen),
        (Action::SeenAll, Msg::HintSeenAll),
        (Action::Snooze, Msg::HintSnooze),
        (Action::Back, Msg::HintLeave),
    ] {
        if count > 1 || action != Action::SeenAll {
            below.extend(key(&scene.key_of(action), &scene.message(&hint)));
            below.push(plain("  "));
        }
    }
    below.pop();
    let border = Border {
        title: format!("{} {}", scene.look.glyphs.needs_you, language.of_alerts(OfAlerts::Title { count })),
        title_right: waits.text,
        place,
        keys: below,
    };
    let inside = popup::paint(paint, popup::place(room, width, height), &border);
    let mut y = inside.y;
    for (at, lines) in each.iter().enumerate().skip(first).take(shown) {
        if at == popup.at {
            paint.text(inside.x - 2, y, 1, scene.look.glyphs.cursor, Role::Accent);
        }
        for line in lines {
            if y < inside.bottom().saturating_sub(2) {
                paint.runs(inside.x, y, inside.width, line);
                y += 1;
            }
        }
    }
    paint.runs(inside.x, inside.bottom().saturating_sub(1), inside.width, &dimmed(keys, popup.armed));
}

/// Keys that do not work yet look so.
fn dimmed(keys: Runs, armed: bool) -> Runs {
    if armed { keys } else { keys.into_iter().map(|key| dim(key.text)).collect() }
}

/// As many as have room, with the one that is pointed at: the first, and how many.
fn around(each: &[Vec<Runs>], at: usize, most: usize) -> (usize, usize) {
    let mut first = 0;
    loop {
        let mut used = 0;
        let shown = each[first..].iter().take_while(|lines| {
            used += lines.len();
            used <= most
        });
        let shown = shown.count().max(1).min(each.len() - first);
        if at < first + shown || first + 1 >= each.len() {
            return (first, shown);
        }
        first += 1;
    }
}

/// Until when alerts are to be silent.
pub fn paint_snooze(paint: &mut Paint, scene: &Scene, room: Rect, choice: &SnoozeChoice) {
    let language = scene.look.language;
    let hour = scene.moment(scene.now + jiff::SignedDuration::from_hours(1));
    let morning = scene.moment(choice.morning);
    let texts =
        [language.of_alerts(OfAlerts::AnHour { at: &hour }), language.of_alerts(OfAlerts::Morning { at: &morning })];
    let keys = [key("enter", language.word(Word::Choose)), vec![dim("   ")], key("esc", language.word(Word::Cancel))];
    let border = Border { title: language.of_alerts(OfAlerts::Snooze), keys: keys.concat(), ..Border::default() };
    let about = about(scene, choice);
    let lines = texts.len() as u16 + u16::from(about.is_some());
    let inside = popup::paint(paint, popup::place(room, 60, lines + 2), &border);
    if let Some(about) = &about {
        paint.text(inside.x, inside.y, inside.width, about, Role::Dim);
    }
    for (at, text) in texts.iter().enumerate() {
        let y = inside.y + u16::from(about.is_some()) + at as u16;
        if at == choice.at {
            paint.text(inside.x - 2, y, 1, scene.look.glyphs.cursor, Role::Accent);
        }
        let role = if at == choice.at { Role::Here } else { Role::Plain };
        paint.runs(inside.x, y, inside.width, &[run(format!("{}  ", at + 1), Role::Accent), run(text, role)]);
    }
}

/// Which alerts it is about: one by its sentence.
fn about(scene: &Scene, choice: &SnoozeChoice) -> Option<String> {
    let [topic] = choice.topics.as_slice() else { return None };
    let alert = scene.state.world.alerting.alerts.get(topic)?;
    Some(sentence(scene, &alert.matter).line())
}

/// One alert in full, for the details and its own window.
pub fn in_full(scene: &Scene, alert: &Alert) -> Vec<Runs> {
    let language = scene.look.language;
    let mut lines = vec![runs_of(sentence(scene, &alert.matter), alert, false)];
    let mut state = vec![sign(scene, alert), plain(" "), self::state(scene, alert)];
    let answers = answer_runs(scene, alert, false);
    if runs_width(&answers) > 0 {
        state.push(plain("    "));
        state.extend(answers);
    }
    lines.push(state);
    let at = |at| {
        let age = language.phrase(&super::text::Phrase::Ago { age: &scene.since(at) });
        vec![plain(scene.moment(at)), dim(format!("{}{age}", language.word(Word::Comma)))]
    };
    let mut add = |text: OfAlerts, value: Runs| lines.push(labelled(&language.of_alerts(text), LABELS, value));
    add(OfAlerts::Since, at(alert.since));
    if let Some(fired) = alert.fired_at {
        add(OfAlerts::Told, at(fired));
    }
    if let Some(told) = alert.told_at.filter(|told| Some(*told) != alert.fired_at) {
        add(OfAlerts::ToldAgain, at(told));
    }
    if let Stage::Resolved { at: ended } = alert.stage {
        add(OfAlerts::EndedAt, at(ended));
    }
    if let Some(rates) = format::rates(alert.matter.rates(), scene.currency(), scene.look) {
        add(OfAlerts::Costs, vec![plain(rates)]);
    }
    if let Some(identity) = alert.matter.identity() {
        let account = scene.account_title(&identity.account);
        add(OfAlerts::About, vec![plain(account), dim(format!("  {}", identity.id))]);
    } else if let Some(account) = alert.matter.account() {
        add(OfAlerts::About, vec![plain(scene.account_title(account))]);
    }
    if let Matter::Runway { lost, .. } = &alert.matter
        && !lost.is_empty()
    {
        lines.push(labelled(
            language.word(Word::PlanDeletes),
            LABELS,
            vec![run(lost.join(language.word(Word::ListComma)), Role::Urgent)],
        ));
    }
    lines
}
