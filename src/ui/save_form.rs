//! The form that asks what of a machine is to be brought to safety.

use providers::model::DataPlace;
use ratatui::layout::{Position, Rect};
use tui_input::Input;

use super::format;
use super::paint::{Paint, Runs, dim, plain, run, wrap};
use super::popup::{self, Border, key};
use super::scene::Scene;
use super::text::{OfSaveForm, Word};
use super::theme::Role;
use crate::app::action::Action as Meaning;
use crate::app::save_form::{At, Choice, Look, SaveForm};
use crate::rules::checkpoint::proposals::Size;

const WIDTH: u16 = 84;
/// Cells of a size: `12.4 GB`.
const SIZE: u16 = 8;

/// Returns where a text is being typed.
pub fn paint(paint: &mut Paint, scene: &Scene, room: Rect, form: &SaveForm) -> Option<Position> {
    let language = scene.look.language;
    let width = WIDTH.min(room.width.saturating_sub(2));
    let inner = width.saturating_sub(6);
    let above = wrap(&[plain(language.of_save_form(OfSaveForm::Why))], inner, 0);
    let mut told = told(scene, form, inner);
    // Two lines at least, so that the window does not jump while somebody chooses.
    told.resize(told.len().max(2), Runs::new());
    let state = language.saving_look(&form.look, !form.choices.is_empty());
    let state: Vec<Runs> = state.map_or_else(Vec::new, |state| {
        let role = if matches!(form.look, Look::Failed(_)) { Role::Urgent } else { Role::Dim };
        wrap(&[run(state, role)], inner, 0)
    });
    // Beside the choices: the border, the texts, the fields, and three lines between them.
    let others = (2 + above.len() + state.len() + 2 + told.len() + 3) as u16;
    let shown = (form.choices.len() as u16).min(room.height.saturating_sub(others).max(1));
    let border = Border {
        title: language.of_save_form(OfSaveForm::Title { action: form.action, name: &form.name }),
        title_right: scene.account_title(&form.identity.account),
        keys: keys(scene, form),
        ..Border::default()
    };
    let inside = popup::paint(paint, popup::place(room, width, others + shown), &border);
    let mut y = inside.y;
    for line in above.iter().chain([&Runs::new()]).chain(&state) {
        put(paint, inside, &mut y, line);
    }
    let top = match form.at {
        At::Choice(at) => (at + 1).saturating_sub(usize::from(shown)),
        At::Another | At::Folder => form.choices.len().saturating_sub(usize::from(shown)),
    };
    let longest = form.choices.iter().map(|choice| format::width(&choice.proposal.path)).max().unwrap_or_default();
    let cells = longest.min(inner.saturating_sub(2 + SIZE + 4) * 3 / 5);
    for (at, choice) in form.choices.iter().enumerate().skip(top).take(usize::from(shown)) {
        let here = form.at == At::Choice(at);
        cursor(paint, scene, inside, y, here);
        put(paint, inside, &mut y, &line(scene, form, choice, here, cells));
    }
    y += 1;
    let labels = [OfSaveForm::Another, OfSaveForm::Folder].map(|label| language.of_save_form(label));
    let labels_cells = labels.iter().map(|label| format::width(label)).max().unwrap_or_default() + 2;
    let mut typing = None;
    for ((label, input), at) in labels.iter().zip([&form.another, &form.folder]).zip([At::Another, At::Folder]) {
        let here = form.at == at;
        cursor(paint, scene, inside, y, here);
        let end = field(paint, inside, &mut y, (label, labels_cells), input, here);
        typing = if here { end } else { typing };
    }
    y += 1;
    for line in &told {
        put(paint, inside, &mut y, line);
    }
    typing
}

fn put(paint: &mut Paint, inside: Rect, y: &mut u16, line: &Runs) {
    if *y < inside.bottom() {
        paint.runs(inside.x, *y, inside.width, line);
    }
    *y += 1;
}

fn cursor(paint: &mut Paint, scene: &Scene, inside: Rect, y: u16, here: bool) {
    if here && y < inside.bottom() {
        paint.text(inside.x - 2, y, 1, scene.look.glyphs.cursor, Role::Accent);
    }
}

/// A field behind its label. Returns where its text ends.
fn field(
    paint: &mut Paint,
    inside: Rect,
    y: &mut u16,
    (label, cells): (&str, u16),
    input: &Input,
    here: bool,
) -> Option<Position> {
    let row = *y;
    *y += 1;
    if row >= inside.bottom() {
        return None;
    }
    paint.text(inside.x, row, cells, label, if here { Role::Here } else { Role::Dim });
    Some(popup::input(paint, inside.x + cells, row, inside.width.saturating_sub(cells + 1), input))
}

/// A path, whether it is taken in, how much it holds, and why it is there.
fn line(scene: &Scene, form: &SaveForm, choice: &Choice, here: bool, cells: u16) -> Runs {
    let (language, glyphs) = (scene.look.language, scene.look.glyphs);
    let proposal = &choice.proposal;
    let path = format::cut(&proposal.path, cells, glyphs.ellipsis);
    let pad = |cells: u16, text: &str| " ".repeat(usize::from(cells.saturating_sub(format::width(text))));
    let size = match proposal.size {
        Size::Bytes(bytes) => format::bytes(bytes),
        Size::Unknown | Size::Missing => glyphs.dash.to_owned(),
    };
    let role = if here { Role::Here } else { Role::Plain };
    let mut line = vec![
        run(format!("{} ", if choice.chosen { glyphs.marked } else { " " }), Role::Accent),
        run(format!("{path}{}", pad(cells, &path)), role),
        run(format!("  {}{size}  ", pad(SIZE, &size)), role),
    ];
    if proposal.size == Size::Missing {
        line.push(run(language.of_save_form(OfSaveForm::Missing), Role::Urgent));
    } else if choice.measured {
        line.push(dim(language.of_save_form(OfSaveForm::Measuring)));
    } else if let Some(place) = form.kept_place(&proposal.path) {
        line.push(dim(language.of_save_form(OfSaveForm::Kept { place: &place_name(scene, place) })));
    } else if proposal.works_here {
        line.push(dim(language.of_save_form(OfSaveForm::WorksHere)));
    } else if let Some(newest) = proposal.newest {
        line.push(dim(language.of_save_form(OfSaveForm::Newest { since: &scene.since(newest) })));
    }
    line
}

fn place_name(scene: &Scene, place: &DataPlace) -> String {
    place.name.clone().unwrap_or_else(|| scene.look.language.data_kind(place.kind).to_owned())
}

/// What is wrong, else how much is chosen.
fn told(scene: &Scene, form: &SaveForm, cells: u16) -> Vec<Runs> {
    let language = scene.look.language;
    if let Some(mistake) = form.mistake {
        return wrap(&[run(language.saving_mistake(mistake), Role::Urgent)], cells, 0);
    }
    let (bytes, whole) = form.sum();
    let paths = form.chosen().count();
    let size = whole.then(|| format::bytes(bytes));
    match paths {
        0 => Vec::new(),
        _ => vec![vec![plain(language.of_save_form(OfSaveForm::Sum { paths, size: size.as_deref() }))]],
    }
}

fn keys(scene: &Scene, form: &SaveForm) -> Runs {
    let language = scene.look.language;
    let adds = form.at == At::Another && !form.another.value().trim().is_empty();
    let enter = if adds { OfSaveForm::Add } else { OfSaveForm::Begin { action: form.action } };
    let mut named = Vec::new();
    if matches!(form.at, At::Choice(_)) {
        named.push((scene.key_of(Meaning::Mark), language.of_save_form(OfSaveForm::TakeInOrOut)));
    }
    if form.look != Look::UnderWay && (matches!(form.look, Look::Failed(_)) || form.choices.is_empty()) {
        named.push((scene.key_of(Meaning::Refresh), language.of_save_form(OfSaveForm::LookAgain)));
    }
    named.push(("tab".to_owned(), language.word(Word::OtherField).to_owned()));
    named.push(("enter".to_owned(), language.of_save_form(enter)));
    named.push(("esc".to_owned(), language.word(Word::Cancel).to_owned()));
    let mut keys = Runs::new();
    for (name, does) in named {
        if !keys.is_empty() {
            keys.push(plain("   "));
        }
        keys.extend(key(&name, &does));
    }
    keys
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use providers::model::{DataKind, Offer, SshEndpoint};
    use rstest::rstest;

    use super::*;
    use crate::app::action::Code;
    use crate::app::event::{Event, ViewEvent};
    use crate::app::state::Modal;
    use crate::rules::checkpoint::Trouble;
    use crate::rules::checkpoint::proposals::Proposal;
    use crate::rules::streams;
    use crate::ui::testing::*;
    use crate::ui::tests::check;

    /// One machine that can be copied from, whose volume at /data a release keeps.
    fn machine() -> Story {
        let mut story = Story::over(&["runpod/team"]);
        story.state.view.fixed.home = Some(PathBuf::from("/home/ana"));
        let mut trainer = instance("q4notebook0007", "notebook", "RTX 4090", 1, usd("0.69"), usd("0.008"));
        trainer.ssh = SshEndpoint::new("root", "192.0.2.45", 22000, true);
        if let Offer::Yes(effect) = &mut trainer.offers.release {
            effect.kept.push(DataPlace {
                kind: DataKind::NetworkVolume,
                name: Some("datasets".to_owned()),
                path: Some("/data".to_owned()),
                size_gb: None,
            });
        }
        story.poll("team", vec![trainer]).wait(4);
        story.at("notebook");
        story
    }

    fn proposal(path: &str, works_here: bool, age: Option<i64>, bytes: u64, now: jiff::Timestamp) -> Proposal {
        Proposal {
            path: path.to_owned(),
            works_here,
            newest: age.map(|minutes| now - jiff::SignedDuration::from_mins(minutes)),
            size: Size::Bytes(bytes),
        }
    }

    fn identity(story: &Story) -> providers::model::Identity {
        story.state.world.fleet.instances.keys().next().unwrap().clone()
    }

    fn found(story: &mut Story, found: Result<Vec<Proposal>, Trouble>) {
        let identity = identity(story);
        story.event(Event::View(ViewEvent::PathsFound { identity, found }));
    }

    fn likely(now: jiff::Timestamp) -> Vec<Proposal> {
        vec![
            proposal("/workspace/train", true, None, 48_300_000, now),
            proposal("/root/runs/实验 12", false, Some(4), 12_400_000_000, now),
            proposal("/data/ckpt", false, Some(130), 340_000_000_000, now),
            Proposal {
                size: Size::Unknown,
                ..proposal("/mnt/a/very/long/way/down/to/what/is/meant", false, Some(3000), 0, now)
            },
        ]
    }

    fn looked_at(key: &str) -> Story {
        let mut story = machine();
        story.press(key).wait(1);
        let now = story.now;
        found(&mut story, Ok(likely(now)));
        story
    }

    #[test]
    fn what_is_worth_keeping_is_asked() {
        check("save_form", &[(80, 24), (120, 30)], || looked_at("c"));
        check("save_form_release", &[(60, 16), (80, 24)], || {
            let mut story = looked_at("R");
            story.press("jj ").code(Code::Down).code(Code::Down).press("/workspace/notes").wait(1);
            story
        });
        check("save_form_looking", &[(80, 24)], || {
            let mut story = machine();
            story.press("c").wait(1);
            story
        });
        check("save_form_nothing", &[(80, 24)], || {
            let mut story = machine();
            story.press("c").wait(1);
            found(&mut story, Ok(Vec::new()));
            story.press("workspace").code(Code::Enter);
            story
        });
        check("save_form_refused", &[(80, 24)], || {
            let mut story = machine();
            story.press("c").wait(1);
            found(&mut story, Err(Trouble::Link(streams::Trouble::KeyRefused)));
            story
        });
    }

    fn form(story: &Story) -> &SaveForm {
        match story.state.view.modals.last() {
            Some(Modal::Save(form)) => form,
            other => panic!("no form: {other:?}"),
        }
    }

    #[test]
    fn only_where_the_job_works_and_the_newest_folder_are_chosen_at_first() {
        let story = looked_at("c");
        let chosen: Vec<&str> = form(&story).chosen().map(|proposal| proposal.path.as_str()).collect();
        assert_eq!(chosen, ["/workspace/train", "/root/runs/实验 12"]);
        assert_eq!(form(&story).sum(), (12_448_300_000, true));
        assert_eq!(form(&story).folder.value(), "/home/ana/checkpoints");
    }

    /// The window is another one, or none, once the answer comes.
    #[test]
    fn an_answer_that_nobody_waits_for_opens_nothing() {
        let mut story = machine();
        story.press("c").code(Code::Esc);
        let now = story.now;
        found(&mut story, Ok(likely(now)));
        assert!(story.state.view.modals.is_empty());
    }

    #[rstest]
    #[case::as_proposed("", &["/workspace/train", "/root/runs/实验 12"])]
    #[case::one_out(" ", &["/root/runs/实验 12"])]
    #[case::one_in("jj ", &["/workspace/train", "/root/runs/实验 12", "/data/ckpt"])]
    fn enter_begins_with_what_is_chosen(#[case] keys: &str, #[case] expected: &[&str]) {
        let mut story = looked_at("c");
        story.press(keys).code(Code::Enter);
        assert!(story.state.view.modals.is_empty());
        let operation = story.state.world.under_way().next().expect("it has begun");
        let recipe = operation.target.recipe.as_ref().unwrap();
        assert_eq!(recipe.paths, expected);
        assert_eq!(format!("{:?}", recipe.method), r#"Copy { to: "/home/ana/checkpoints" }"#);
    }

    #[test]
    fn a_release_goes_on_to_its_plan_and_begins_nothing_before_a_second_press() {
        let mut story = looked_at("R");
        story.code(Code::Enter);
        assert!(matches!(story.state.view.modals.last(), Some(Modal::Plan(_))));
        assert_eq!(story.state.world.under_way().count(), 0);
        story.press("R");
        assert_eq!(story.state.world.under_way().count(), 1);
    }

    #[test]
    fn without_a_path_nothing_begins() {
        let mut story = looked_at("c");
        story.press(" j ").code(Code::Enter);
        assert_eq!(form(&story).mistake, Some(crate::app::save_form::Mistake::NothingChosen));
        assert_eq!(story.state.world.under_way().count(), 0);
    }

    #[test]
    fn what_lies_in_a_chosen_path_is_not_copied_twice() {
        let mut story = looked_at("c");
        for _ in 0..4 {
            story.code(Code::Down);
        }
        story.press("/workspace//train/out/").code(Code::Enter);
        assert_eq!(form(&story).choices.len(), 5);
        assert_eq!(form(&story).chosen().count(), 2);
        // Its field is empty: the same key begins.
        story.code(Code::Enter);
        let operation = story.state.world.under_way().next().unwrap();
        assert_eq!(operation.target.recipe.as_ref().unwrap().paths.len(), 2);
    }

    #[test]
    fn a_folder_that_leads_nowhere_is_told() {
        let mut story = looked_at("c");
        for _ in 0..5 {
            story.code(Code::Down);
        }
        for _ in 0..30 {
            story.code(Code::Backspace);
        }
        story.press("here").code(Code::Enter);
        assert_eq!(form(&story).mistake, Some(crate::app::save_form::Mistake::NoFolder));
        for _ in 0..4 {
            story.code(Code::Backspace);
        }
        story.press("~/here").code(Code::Enter);
        assert_eq!(story.state.world.under_way().count(), 1);
    }

    #[rstest]
    #[case::stopped(true, false)]
    #[case::no_address(false, true)]
    fn what_cannot_be_copied_from_opens_no_form(#[case] is_stopped: bool, #[case] has_address: bool) {
        let mut story = Story::over(&["runpod/team"]);
        let mut trainer = instance("q4notebook0007", "notebook", "RTX 4090", 1, usd("0.69"), usd("0.008"));
        trainer.ssh = SshEndpoint::new("root", "192.0.2.45", 22000, true).filter(|_| !has_address);
        if is_stopped {
            trainer = stopped(trainer);
        }
        story.poll("team", vec![trainer]).wait(4);
        story.at("notebook").press("R");
        assert!(story.state.view.modals.is_empty());
        assert!(story.state.view.message.is_some());
    }
}
