//! Leaving while actions are under way: what becomes of each, and what goes on costing.

use ratatui::layout::Rect;

use super::fleet::step;
use super::format;
use super::paint::{Paint, Runs, dim, plain, run, wrap};
use super::plain::farewell;
use super::popup::{self, Border};
use super::scene::Scene;
use super::text::{OfSaving, Phrase, Word};
use super::theme::Role;
use crate::app::action::Action;
use crate::rules::saga::{Operation, Step};

const WIDTH: u16 = 74;
/// So many actions are listed by name.
const LISTED: usize = 6;

pub fn paint(paint: &mut Paint, scene: &Scene, room: Rect) {
    let language = scene.look.language;
    let width = WIDTH.min(room.width.saturating_sub(2));
    let inside = width.saturating_sub(6);
    let under_way: Vec<_> = scene.state.world.under_way().collect();
    let saving = under_way.iter().filter(|one| one.is_saving()).count();
    let unsent = |one: &&&Operation| !one.is_saving() && (one.sent == 0 || matches!(one.step, Step::Waiting { .. }));
    let unsent = under_way.iter().filter(unsent).count();
    let sent = under_way.len() - unsent - saving;
    let mut lines: Vec<Runs> = Vec::new();
    for operation in under_way.iter().take(LISTED) {
        lines.push(vec![
            plain(format::cut(&operation.target.name, 28, scene.look.glyphs.ellipsis)),
            dim("  "),
            step(scene, operation),
        ]);
    }
    if under_way.len() > LISTED {
        lines.push(vec![dim(language.phrase(&Phrase::MoreLines { count: under_way.len() - LISTED }))]);
    }
    lines.push(Runs::new());
    if unsent > 0 {
        lines.push(vec![run(language.phrase(&Phrase::UnsentAtLeave { count: unsent }), Role::Waste)]);
    }
    if saving > 0 {
        lines.push(vec![run(language.of_saving(&OfSaving::StopsAtLeave { count: saving }), Role::Waste)]);
    }
    if sent > 0 {
        lines.push(vec![plain(language.phrase(&Phrase::SentAtLeave { count: sent }))]);
    }
    lines.extend(farewell(scene.state, scene.look, scene.now).map(|goes_on| vec![plain(goes_on)]));
    let lines: Vec<Runs> = lines.iter().flat_map(|line| wrap(line, inside, 0)).collect();
    let keys = [
        popup::key(&scene.key_of(Action::Quit), language.word(Word::LeaveNow)),
        vec![dim("   ")],
        popup::key(language.word(Word::AnyOther), language.word(Word::Stay)),
    ]
    .concat();
    let border =
        Border { title: language.phrase(&Phrase::LeaveTitle { count: under_way.len() }), keys, ..Border::default() };
    popup::scrolled(paint, room, width, &lines, 0, border);
}
