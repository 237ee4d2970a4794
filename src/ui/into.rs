//! Windows about looking into machines: everything about one of them, whether it may be done, and a host key that
//! changed.

use providers::model::{AccountName, Identity};
use ratatui::layout::{Position, Rect};
use tui_input::Input;

use super::details;
use super::paint::{Paint, Runs, dim, plain, run, wrap};
use super::popup::{self, Border, key};
use super::scene::{Scene, name_of};
use super::text::Word;
use super::theme::Role;
use crate::app::action::Action as Meaning;
use crate::app::state::ACCEPT;
use crate::rules::streams::Consent;

/// The widest that a text is comfortable to read.
const TEXT: u16 = 78;
/// The widest that curves gain from.
const CURVES: u16 = 140;

/// Everything about an instance. Returns the first line that is shown.
pub fn paint_machine(paint: &mut Paint, scene: &Scene, room: Rect, identity: &Identity, scroll: u16) -> u16 {
    let language = scene.look.language;
    let width = CURVES.min(room.width.saturating_sub(2));
    let inner = width.saturating_sub(6);
    let known = scene.state.world.fleet.instances.get(identity);
    let (title, title_right, lines) = match known {
        Some(known) => {
            let right = scene.whereabouts(known);
            (name_of(known).to_owned(), right, details::in_full(scene, known, inner))
        }
        None => (identity.id.to_string(), String::new(), vec![vec![plain(language.word(Word::Unknown))]]),
    };
    let lines: Vec<Runs> = lines.iter().flat_map(|line| wrap(line, inner, 2)).collect();
    let mut keys = Runs::new();
    if known.is_some_and(|known| scene.usage(known).is_some()) {
        keys.extend(key(&scene.key_of(Meaning::Range), language.word(Word::OtherSpan)));
        keys.push(plain("   "));
    }
    keys.extend(key("esc", language.word(Word::Close)));
    popup::scrolled(paint, room, width, &lines, scroll, Border { title, title_right, keys, ..Border::default() })
}

/// Whether the machines of an account may be looked into.
pub fn paint_consent(paint: &mut Paint, scene: &Scene, room: Rect, account: &AccountName) {
    let language = scene.look.language;
    let width = TEXT.min(room.width.saturating_sub(2));
    let mut lines = Vec::new();
    for text in language.look_explained() {
        lines.extend(wrap(&[plain(text)], width.saturating_sub(6), 0));
    }
    lines.push(Runs::new());
    let now = scene.state.world.streams.consent(account);
    for (name, consent) in [("y", Consent::Yes), ("a", Consent::Always), ("n", Consent::No), ("N", Consent::Never)] {
        let mut line = vec![run(format!("{name}  "), Role::Accent), plain(language.consent_answer(consent))];
        if consent == now {
            line.push(dim(format!("  {}", scene.look.glyphs.marked)));
        }
        lines.push(line);
    }
    let border = Border {
        title: language.word(Word::LookInto).to_owned(),
        title_right: scene.account_title(account),
        keys: key("esc", language.word(Word::Cancel)),
        ..Border::default()
    };
    popup::scrolled(paint, room, width, &lines, 0, border);
}

/// A host that has another key than before. Says where the cursor belongs.
pub fn paint_host_key(paint: &mut Paint, scene: &Scene, room: Rect, identity: &Identity, input: &Input) -> Position {
    let language = scene.look.language;
    let width = TEXT.min(room.width.saturating_sub(2));
    let inner = width.saturating_sub(6);
    let known = scene.state.world.fleet.instances.get(identity);
    let endpoint = known.and_then(|known| known.row.ssh.as_ref());
    let [what, perhaps, there, here] = language.host_key_explained();
    let mut lines = wrap(&[run(what, Role::Urgent)], inner, 0);
    lines.extend(wrap(&[plain(perhaps)], inner, 0));
    lines.push(Runs::new());
    lines.extend(wrap(&[plain(there)], inner, 0));
    let command = |text: &str| vec![plain("  "), run(text, Role::Strong)];
    lines.extend(wrap(&command("for f in /etc/ssh/ssh_host_*.pub; do ssh-keygen -lf $f; done"), inner, 2));
    lines.extend(wrap(&[plain(here)], inner, 0));
    if let Some(endpoint) = endpoint {
        let port = endpoint.port.map_or_else(String::new, |port| format!("-p {port} "));
        let line = format!("ssh-keyscan {port}{} | ssh-keygen -lf -", endpoint.host);
        lines.extend(wrap(&command(&line), inner, 2));
    }
    lines.push(Runs::new());
    let [before, after] = language.type_accept();
    lines.extend(wrap(&[plain(before), run(ACCEPT, Role::Strong), plain(after)], inner, 0));
    let field = lines.len();
    lines.push(Runs::new());
    let border = Border {
        title: language.word(Word::AnotherHostKey).to_owned(),
        title_right: known
            .map(|known| format!("{}  {}", name_of(known), scene.account_title(&identity.account)))
            .unwrap_or_default(),
        keys: key("esc", language.word(Word::Cancel)),
        ..Border::default()
    };
    let area = popup::place(room, width, (lines.len() as u16).saturating_add(2));
    // The field is seen whatever has no room.
    let top = lines.len().saturating_sub(usize::from(area.height.saturating_sub(2)));
    popup::scrolled(paint, room, width, &lines, top as u16, border);
    let y = area.y + 1 + (field - top) as u16;
    let x = paint.text(area.x + 3, y, 2, "> ", Role::Accent);
    popup::input(paint, x, y, inner.saturating_sub(2), input)
}
