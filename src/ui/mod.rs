//! The screen: `draw` reads the state and paints it. It changes nothing and asks nobody.

mod activity;
mod alerts;
mod assign;
mod budgets;
mod columns;
mod curves;
mod deeds;
mod details;
mod empty;
mod fleet;
mod footer;
pub mod format;
pub mod glyphs;
mod header;
mod help;
mod idle;
mod into;
mod language;
mod lease;
mod leave;
mod look;
mod paint;
mod palette;
pub mod plain;
mod plan;
mod popup;
mod problem;
mod save_form;
mod saving;
mod scene;
mod spend;
mod storage;
pub mod text;
pub mod theme;
mod usage;

#[cfg(test)]
mod budget_tests;
#[cfg(test)]
mod saving_tests;
#[cfg(test)]
mod spend_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod usage_tests;
#[cfg(test)]
mod window_tests;

use jiff::Timestamp;
use ratatui::layout::{Position, Rect};

use crate::app::action::Action;
use crate::app::keymap::key_name;
use crate::app::state::{Modal, State, Tab};
use paint::Paint;
use scene::Scene;
use text::Phrase;
use theme::Role;

pub use crate::app::layout::SMALLEST;
pub use look::{Look, answers, has_a_mouse};

/// What only painting tells.
#[derive(Default)]
struct Drawn {
    /// Where a text is being typed.
    cursor: Option<Position>,
    /// The first line that the window over a long text shows; `None` without such a window.
    text_top: Option<u16>,
}

/// Paints everything. Returns the first line that the window over a long text shows: how long that is, only
/// painting tells. `None` without such a window.
pub fn draw(frame: &mut ratatui::Frame, state: &State, look: &Look, now: Timestamp) -> Option<u16> {
    let area = frame.area();
    let mut paint = Paint { buffer: frame.buffer_mut(), look };
    let drawn = screen(&mut paint, area, state, now);
    if let Some(cursor) = drawn.cursor {
        frame.set_cursor_position(cursor);
    }
    drawn.text_top
}

fn screen(paint: &mut Paint, area: Rect, state: &State, now: Timestamp) -> Drawn {
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        too_small(paint, area, state);
        return Drawn::default();
    }
    let scene = Scene::new(state, paint.look, now);
    let heights = state.view.frame_of(area.width, area.height);
    header::paint(paint, &scene, area);
    let trouble = Rect { y: area.y + heights.header, height: heights.trouble, ..area };
    header::above_list(paint, &scene, trouble);

    // One line of the list's room is its head.
    let list_width = area.width - heights.side;
    let inner = heights.list_width(area.width);
    let list = Rect { y: trouble.bottom(), height: heights.above.height() + heights.body + 1, width: inner, ..area };
    let below = Rect { y: list.bottom(), height: heights.details, ..area };
    match state.view.tab {
        // It has something to say also without lines.
        Tab::Spend if !state.view.spend.list.lines.is_empty() || !state.world.fleet.accounts.is_empty() => {
            spend::paint(paint, &scene, list, heights.above);
        }
        // Without lines there are no details, so their room is free.
        _ if state.view.list().lines.is_empty() || state.view.offers_shown() => {
            empty::paint(paint, &scene, Rect { height: list.height + below.height, ..list });
        }
        Tab::Fleet | Tab::Spend => fleet::paint(paint, &scene, list),
        Tab::Storage => storage::paint(paint, &scene, list),
        Tab::Budgets => budgets::paint(paint, &scene, list),
        Tab::Alerts => alerts::paint(paint, &scene, list),
        Tab::Activity => activity::paint(paint, &scene, list),
    }
    // What is offered has the room to itself.
    let rows = !state.view.offers_shown();
    if heights.details > 0 && rows {
        details::below(paint, &scene, below);
    }
    if heights.side > 0 && rows {
        let top = area.y + heights.header + heights.trouble;
        let height = area.height - heights.header - heights.trouble - heights.footer;
        details::side(paint, &scene, Rect::new(area.x + list_width, top, heights.side, height));
    }
    let footer = Rect { y: area.bottom() - heights.footer, height: heights.footer, ..area };
    let cursor = footer::paint(paint, &scene, footer);

    let room = Rect { y: area.y + 2, height: area.height.saturating_sub(heights.footer + 2), ..area };
    let typing = |cursor| Drawn { cursor, ..Drawn::default() };
    let reading = |top| Drawn { text_top: Some(top), ..Drawn::default() };
    match state.view.modals.last() {
        None => {}
        Some(Modal::Filter { .. }) => return typing(cursor),
        Some(Modal::Help { scroll }) => return reading(help::paint(paint, &scene, room, *scroll)),
        Some(Modal::Palette(palette)) => return typing(Some(palette::paint(paint, &scene, room, palette))),
        Some(Modal::Assign(form)) => return typing(Some(assign::paint(paint, &scene, room, form))),
        Some(Modal::Columns { at }) => columns::paint(paint, &scene, room, *at),
        Some(Modal::Problem { about, scroll }) => {
            return reading(problem::paint(paint, &scene, room, about, *scroll));
        }
        Some(Modal::Machine { identity, scroll }) => {
            return reading(into::paint_machine(paint, &scene, room, identity, *scroll));
        }
        Some(Modal::Consent { account }) => into::paint_consent(paint, &scene, room, account),
        Some(Modal::HostKey { identity, input }) => {
            return typing(Some(into::paint_host_key(paint, &scene, room, identity, input)));
        }
        Some(Modal::Plan(question)) => return typing(plan::paint(paint, &scene, room, question)),
        Some(Modal::Range(choice)) => return typing(spend::paint_range(paint, &scene, room, choice)),
        Some(Modal::Figure(figure)) => spend::paint_figure(paint, &scene, room, figure),
        Some(Modal::Alerts(popup)) => alerts::paint_popup(paint, &scene, room, popup),
        Some(Modal::Snooze(choice)) => alerts::paint_snooze(paint, &scene, room, choice),
        Some(Modal::Budget(form)) => return typing(budgets::paint_form(paint, &scene, room, form)),
        Some(Modal::Save(form)) => return typing(save_form::paint(paint, &scene, room, form)),
        Some(Modal::Lease(form)) => return typing(lease::paint(paint, &scene, room, form)),
        Some(Modal::Idle(list)) => return reading(idle::paint(paint, &scene, room, list)),
        Some(Modal::Leave) => leave::paint(paint, &scene, room),
    }
    Drawn::default()
}

fn too_small(paint: &mut Paint, area: Rect, state: &State) {
    let (width, height) = SMALLEST;
    let quit = state.view.fixed.keys.key_of(Action::Quit).map(key_name).unwrap_or_default();
    let under_way = matches!(state.view.modals.last(), Some(Modal::Leave)).then(|| state.world.under_way().count());
    let line = paint.look.language.phrase(&Phrase::TooSmall { width, height, quit: &quit, under_way });
    let x = area.x + area.width.saturating_sub(format::width(&line)) / 2;
    let y = area.y + area.height.saturating_sub(1) / 2;
    paint.text(x, y, area.right().saturating_sub(x), &line, Role::Plain);
}
