//! The Storage view and the windows, as snapshots.

use jiff::SignedDuration;
use providers::model::{Attachment, Component, Phase, Rates, StorageItem, StorageKind};
use providers::provider::Part;
use ratatui::style::Modifier;
use rstest::rstest;

use super::testing::*;
use super::tests::{check, fleet};
use super::text::Language;
use crate::app::action::Code;
use crate::app::event::WorldEvent;
use crate::app::next_wake;
use crate::app::spending::Unwatched;
use crate::app::state::Modal;
use crate::rules::filter::Filter;
use crate::rules::memory::{Collector, Owner};
use crate::rules::samples;
use crate::rules::spend::{Amounts, Exact, RowSums, Summed, Sums};
use providers::money::Currency;

fn item(id: &str, kind: StorageKind, hourly: &str, users: &[&str]) -> StorageItem {
    StorageItem { kind, region: Some("US-TX-3".to_owned()), ..samples::volume(id, hourly, users) }
}

/// Something of each standing.
fn storage() -> Story {
    let mut story = Story::over(&["runpod/team", "lambda/主账号"]);
    let stopped = stopped(instance("0abc91", "old-exp", "A100 80GB", 1, usd("1.69"), usd("0.033")));
    let running = instance("7xk2p0", "llama-ft", "H100 SXM", 8, usd("21.47"), usd("0.08"));
    let mut owned = item("nv-team", StorageKind::NetworkVolume, "0.0192", &[]);
    owned.labels.insert("owner".to_owned(), "vision".to_owned());
    owned.created_at = Some("2026-09-30T10:00:00Z".parse().unwrap());
    let mut unknown = item("fs-数据集-公共", StorageKind::FileSystem, "0.27", &[]);
    unknown.attachment = Attachment::Unknown;
    unknown.rates = Rates::known().with_estimate(Component::Storage, cny("0.27"));
    let items = vec![
        item("datasets", StorageKind::NetworkVolume, "0.0192", &["7xk2p0"]),
        item("old-exp-data", StorageKind::Volume, "0.0137", &["0abc91"]),
        owned,
        item("snap-2026-09", StorageKind::Snapshot, "0.0066", &[]),
        item("203.0.113.9", StorageKind::Address, "0.005", &[]),
    ];
    story.answer("team", Part::complete(vec![stopped, running]), items, None);
    story.answer("主账号", Part::complete(Vec::new()), vec![unknown], None);
    story.wait(4);
    story.press("3").wait(9);
    story
}

#[test]
fn storage_that_costs_without_working() {
    check("storage", &[(60, 16), (80, 24), (120, 30), (200, 50)], storage);
}

#[test]
fn storage_that_is_filtered_marked_and_empty() {
    check("storage_marks", &[(80, 24)], || {
        let mut story = storage();
        story.press("  /kind:snapshot").code(Code::Enter).wait(9);
        story
    });
    check("storage_empty", &[(80, 24)], || {
        let mut story = Story::over(&["runpod/team"]);
        story.poll("team", Vec::new()).wait(1);
        story.press("3").wait(9);
        story
    });
    check("storage_loading", &[(80, 24)], || {
        let mut story = Story::over(&["runpod/team", "vast/me"]);
        story.press("3").wait(2);
        story
    });
}

/// ORPH-04: each is told by its name, its size and its age.
#[test]
fn plans_for_storage() {
    check("plan_delete", &[(80, 24)], || {
        let mut story = storage();
        story.row("nv-team").press("x").wait(1);
        story
    });
    check("plan_delete_many", &[(80, 24)], || {
        let mut story = storage();
        story.row("nv-team").press(" ").row("snap-2026-09").press(" x").wait(1);
        story
    });
    check("plan_delete_in_use", &[(80, 24)], || {
        let mut story = storage();
        story.row("old-exp-data").press("x").wait(1);
        story
    });
}

#[test]
fn the_palette() {
    check("palette", &[(60, 16), (80, 24), (120, 30)], || {
        let mut story = fleet();
        story.press(":rel").wait(1);
        story
    });
    check("palette_rows", &[(80, 24)], || {
        let mut story = fleet();
        story.press(":批量").wait(1);
        story
    });
    check("palette_nothing", &[(80, 24)], || {
        let mut story = fleet();
        story.press(":zzzz").wait(1);
        story
    });
}

#[test]
fn the_choice_of_columns() {
    check("columns", &[(80, 24), (120, 30)], || {
        let mut story = fleet();
        story.press("Ojj +").wait(1);
        story
    });
}

#[test]
fn filters_while_they_are_typed() {
    for (name, text) in [("amount", ">1/"), ("key", "projct:art"), ("quote", "\"two wor"), ("value", "phase:stoped")] {
        check(&format!("filter_{name}"), &[(80, 24)], || {
            let mut story = fleet();
            story.press(&format!("/{text}")).wait(1);
            story
        });
    }
}

/// What a question asks may become something else under it.
#[test]
fn questions_that_changed() {
    let team = |story: &Story, hourly: &str| {
        let now = story.now;
        busy(instance("7xk2p0", "llama-ft", "H100 SXM", 8, usd(hourly), usd("0.08")), 0.9, 74, now)
    };
    let asked = || {
        let mut story = Story::over(&["runpod/team"]);
        let row = team(&story, "21.47");
        story.poll("team", vec![row]).wait(1);
        story.press("x").wait(1);
        story
    };
    check("plan_changed", &[(80, 24)], || {
        let mut story = asked();
        let mut row = team(&story, "21.47");
        row.phase = Phase::Stopped;
        story.poll("team", vec![row]).wait(1);
        story
    });
    check("plan_nothing_left", &[(80, 24)], || {
        let mut story = asked();
        story.poll("team", Vec::new()).wait(1);
        story
    });
}

#[test]
fn what_was_said_can_be_read_in_full() {
    check("problem_said", &[(80, 24)], || {
        let mut story = fleet();
        let owner = Owner { host: "desk".to_owned(), pid: 4711 };
        let until = story.now + SignedDuration::from_secs(30);
        story.world(WorldEvent::Collector(Collector::Other { owner, until }));
        story.press("xe");
        story
    });
}

/// A figure that has just changed is bright for a second, and the frame without it is painted in time.
#[test]
fn a_changed_rate_is_bright_for_a_moment() {
    let mut story = Story::over(&["runpod/team"]);
    let row = |hourly: &str| instance("a", "trainer", "H100 SXM", 8, usd(hourly), usd("0.08"));
    story.poll("team", vec![row("21")]).wait(1);
    let bright = |story: &mut Story| {
        let buffer = story.paint(80, 24, &look(Language::English)).0;
        let line: String = (0..80).map(|x| buffer[(x, 3)].symbol()).collect();
        let at = line.char_indices().position(|(at, _)| line[at..].starts_with(".0")).expect("the rate") as u16;
        buffer[(at, 3)].style().add_modifier.contains(Modifier::BOLD)
    };
    assert!(!bright(&mut story));
    story.poll("team", vec![row("22")]);
    assert!(bright(&mut story));
    let wake = next_wake(&story.state, story.now).unwrap();
    assert!(wake.duration_since(story.now) <= SignedDuration::from_secs(1));
    story.wait(1);
    assert!(!bright(&mut story));
}

/// What stands on the screen can be typed into the filter.
#[test]
fn the_filter_understands_the_words_of_the_screen() {
    for language in [Language::English, Language::Chinese] {
        let phases = Phase::ALL.map(|phase| format!("phase:\"{}\"", language.phase(phase)));
        let kinds = [StorageKind::Snapshot, StorageKind::Image, StorageKind::Address, StorageKind::Volume]
            .map(|kind| format!("kind:{}", language.storage_kind(kind)));
        for text in phases.iter().chain(&kinds) {
            assert!(Filter::parse(text).is_ok(), "{text}");
        }
    }
}

/// What the books hold: on this day, in this month, and of two rentals.
fn with_sums(mut story: Story) -> Story {
    let sums = |observed: &str, assumed: &str| {
        let exact = |amount: &str| Exact::of(amount.parse().unwrap());
        let amounts = Amounts { observed: exact(observed), assumed: exact(assumed), ..Amounts::default() };
        Sums([(Currency::USD, amounts)].into())
    };
    let row = |rental: &str, month: &str, assumed: &str| RowSums {
        rental: sums(rental, assumed),
        month: sums(month, assumed),
        since: Some("2026-11-02T08:00:00Z".parse().unwrap()),
    };
    let rows = [("team", "7xk2p0", row("1204.5", "412.1", "0")), ("me", "14382011", row("8.2", "8.2", "1.44"))];
    let summed = Summed {
        asked: 1,
        day: "2026-11-30".parse().unwrap(),
        today: sums("187.409", "0"),
        month: sums("1190", "14.55"),
        rows: rows.map(|(account, id, sums)| (samples::identity(account, id), sums)).into(),
        since: Some("2026-11-02T08:00:00Z".parse().unwrap()),
        budgets: Vec::new(),
        partial: false,
    };
    story.world(WorldEvent::Summed(Box::new(summed)));
    story
}

#[test]
fn what_was_spent_stands_in_the_header_and_on_rows() {
    check("spent", &[(60, 16), (80, 24), (120, 30), (200, 50)], || {
        let mut story = with_sums(fleet());
        story.row("14382011").wait(1);
        story
    });
}

#[test]
fn a_project_is_asked_for() {
    check("assign", &[(60, 16), (80, 24)], || {
        let mut story = with_sums(fleet());
        story.row("14382011").press("Pvision").code(Code::Tab);
        for _ in 0..3 {
            story.code(Code::Backspace);
        }
        story.press("5 Nov").code(Code::Enter).wait(1);
        story
    });
}

/// STATE-03: it stays until somebody says that it was seen.
#[test]
fn accounts_that_nobody_watches_are_told_until_they_were_seen() {
    let story = || {
        let mut story = fleet();
        story.state.world.spending.unwatched = vec![Unwatched {
            account: "old".into(),
            provider: "runpod".into(),
            resources: 2,
            burn: [usd("0.44"), usd("0.69")].into_iter().collect(),
            seen: Some("2026-11-27T10:00:00Z".parse().unwrap()),
        }];
        story.wait(9);
        story
    };
    check("unwatched", &[(80, 24), (120, 30)], story);
    let mut seen = story();
    seen.press("a").wait(1);
    assert!(!seen.picture(120, 24, &look(Language::English)).contains("watched no longer"));
}

/// Whoever is at the end of a text is one line above it after one press.
#[rstest]
#[case(80, 24)]
#[case(60, 16)]
fn a_text_moves_with_the_first_press_from_its_end(#[case] width: u16, #[case] height: u16) {
    let mut story = fleet();
    let shown = |story: &mut Story| text_of(&story.paint(width, height, &look(Language::English)).0);
    story.press("?");
    let top = shown(&mut story);
    story.code(Code::End);
    let end = shown(&mut story);
    for _ in 0..3 {
        story.code(Code::PageDown);
    }
    assert_eq!(shown(&mut story), end);
    story.code(Code::Up);
    assert_ne!(shown(&mut story), end);
    story.code(Code::Down);
    assert_eq!(shown(&mut story), end);
    story.code(Code::Home);
    assert_eq!(shown(&mut story), top);
}

/// The time that stands in the form is typed over, and what is pasted replaces it too.
#[test]
fn the_time_of_an_assignment_is_typed_over() {
    let from = |story: &Story| match story.state.view.modals.last() {
        Some(Modal::Assign(form)) => form.from.value().to_owned(),
        other => panic!("{other:?}"),
    };
    let mut story = fleet();
    story.row("14382011").press("Pvision").code(Code::Tab);
    assert_eq!(from(&story), "now");
    story.press("3d");
    assert_eq!(from(&story), "3d");
    let mut story = fleet();
    story.row("14382011").press("Pvision").code(Code::Tab).code(Code::Backspace).press("n");
    assert_eq!(from(&story), "non", "who takes a letter away means the rest");
}

#[test]
fn the_form_of_a_lease_says_what_it_comes_to() {
    check("lease_form", &[(60, 16), (80, 24)], || {
        let mut story = fleet();
        story.at("llama-ft").press("t");
        story
    });
    check("lease_form_release", &[(80, 24), (120, 40)], || {
        let mut story = fleet();
        story.at("llama-ft").press("t").code(Code::Right).code(Code::Tab).press("22:00");
        story
    });
    check("lease_form_wrong", &[(80, 24)], || {
        let mut story = fleet();
        story.at("llama-ft").press("t").code(Code::Tab).press("pid 1").code(Code::Enter);
        story
    });
    check("lease_form_there", &[(80, 24)], || {
        let mut story = fleet();
        story.at("llama-ft").press("t").code(Code::Tab).press("4h").code(Code::Enter);
        story.press("t").code(Code::Left);
        story
    });
}
