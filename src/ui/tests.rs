//! The screen in its states, as snapshots; and what must hold in every state and at every size.

use proptest::prelude::*;
use providers::error::{ErrorKind, Problem, RequestLine};
use providers::model::{Component, Instance, Market, Offer, Phase, Rates, Refusal, Remark};
use providers::provider::Part;
use ratatui::buffer::{Buffer, CellWidth};

use super::glyphs::{ASCII, UNICODE};
use super::look::Look;
use super::testing::*;
use super::text::Language;
use super::theme::{Background, Colours, Theme};
use crate::app::action::Code;
use crate::app::event::WorldEvent;
use crate::rules::memory::{Collector, LedgerNotice, Owner};

const LANGUAGES: [(Language, &str); 2] = [(Language::English, "en"), (Language::Chinese, "zh")];
const SIZES: [(u16, u16); 4] = [(60, 16), (80, 24), (120, 30), (200, 50)];

/// Compares the screen with its snapshot in both languages at some sizes.
pub fn check(name: &str, sizes: &[(u16, u16)], story: impl Fn() -> Story) {
    for (language, tag) in LANGUAGES {
        for (width, height) in sizes {
            let picture = story().picture(*width, *height, &look(language));
            insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
                insta::assert_snapshot!(format!("{name}_{tag}_{width}x{height}"), picture);
            });
        }
    }
}

/// Three accounts with a bit of everything.
pub fn fleet() -> Story {
    let mut story = Story::over(&["runpod/team", "vast/me", "lambda/主账号"]);
    for share in [0.62, 0.91, 0.97] {
        let now = story.now;
        story.answer("team", Part::complete(team(share, now)), Vec::new(), Some(dollars("914.2")));
        story.answer("me", Part::complete(me(now)), Vec::new(), Some(dollars("23.40")));
        story.answer("主账号", Part::complete(main(now)), Vec::new(), None);
        if share < 0.97 {
            story.wait(16);
        }
    }
    story.wait(4);
    story
}

fn team(share: f64, now: jiff::Timestamp) -> Vec<Instance> {
    let mut llama = busy(instance("7xk2p0", "llama-ft", "H100 SXM", 8, usd("21.47"), usd("0.08")), share, 74, now);
    llama.labels.insert("owner".to_owned(), "ana".to_owned());
    let old = stopped(instance("0abc91", "old-exp", "A100 80GB", 1, usd("1.69"), usd("0.033")));
    vec![llama, old]
}

fn me(now: jiff::Timestamp) -> Vec<Instance> {
    let mut art = busy(instance("14382011", "sd-lora", "RTX 4090", 1, usd("0.41"), usd("0.005")), 0.0, 2, now);
    art.market = Market::Spot;
    let mut outbid = stopped(instance("14382999", "sweep-03", "RTX 3090", 2, usd("0.30"), usd("0.012")));
    outbid.phase = Phase::Reclaimed;
    outbid.market = Market::Spot;
    outbid.remarks = vec![Remark::Outbid];
    let mut boot = instance("14383000", "", "RTX 5090", 1, usd("0.72"), usd("0.005"));
    boot.phase = Phase::Provisioning;
    boot.rates = boot.rates.doubtful();
    boot.started_at = None;
    vec![art, outbid, boot]
}

fn main(now: jiff::Timestamp) -> Vec<Instance> {
    let mut batch = busy(instance("c0ffee01", "eval-批量", "RTX 4090", 2, cny("4.36"), cny("0")), 0.48, 20, now);
    batch.rates = Rates::known().with_estimate(Component::Compute, cny("4.36"));
    batch.offers.stop = Offer::No(Refusal::NotOffered);
    batch.region = Some("北京".to_owned());
    let mut broken = instance("c0ffee02", "旧实验-训练机", "GH200", 1, usd("1.49"), usd("0"));
    broken.phase = Phase::Unreachable;
    broken.provider_phase = Some("unhealthy".to_owned());
    broken.rates = Rates::unknown();
    let mut kept = busy(instance("c0ffee03", "serve-prod", "A10", 1, usd("0.75"), usd("0")), 0.33, 21, now);
    kept.market = Market::Reserved { until: Some("2027-03-01T00:00:00Z".parse().unwrap()) };
    kept.labels.insert("rentop.protect".to_owned(), "yes".to_owned());
    vec![batch, broken, kept]
}

#[test]
fn the_fleet() {
    check("fleet", &SIZES, fleet);
}

/// When money runs out data is deleted: the shortest runway is said with a shorter name before it is left out.
#[test]
fn the_runway_gives_up_its_providers_name_first() {
    for (width, told) in [(80, "runpod/team lasts"), (62, "  team lasts"), (60, "")] {
        let mut story = Story::over(&["runpod/team"]);
        let row = instance("a", "trainer", "H100 SXM", 8, usd("21.47"), usd("0.08"));
        story.answer("team", Part::complete(vec![row]), Vec::new(), Some(dollars("914.2")));
        story.state.view.fixed.demo = true;
        story.state.world.totals.waste = [usd("0.5")].into_iter().collect();
        let text = text_of(&story.paint(width, 24, &look(Language::English)).0);
        let header = text.lines().next().unwrap();
        assert!(header.contains(told), "{header}");
    }
}

#[test]
fn the_fleet_grouped_by_account() {
    check("grouped", &[(80, 24), (120, 30)], || {
        let mut story = fleet();
        story.press("g").wait(9);
        story
    });
    check("group_cursor", &[(120, 30), (200, 50)], || {
        let mut story = fleet();
        story.press("g").code(Code::Home).wait(9);
        story.press("h").wait(1);
        story
    });
}

#[test]
fn a_stopped_row_and_one_that_cannot_stop() {
    check("stopped_row", &[(80, 24), (120, 30)], || {
        let mut story = fleet();
        story.at("old-exp");
        story
    });
    check("cannot_stop", &[(80, 24)], || {
        let mut story = fleet();
        story.at("eval-批量");
        story
    });
}

#[test]
fn marks_and_a_message() {
    check("marks", &[(80, 24)], || {
        let mut story = fleet();
        story.at("llama-ft").press("  p");
        story
    });
}

/// What is missing, gone, queued, ends soon, came up broken, or has no GPU.
#[test]
fn rows_that_are_not_as_they_should_be() {
    check("odd_rows", &[(80, 24), (120, 30)], || {
        let mut story = Story::over(&["runpod/team"]);
        let row = |id: &str, name: &str| instance(id, name, "A100 80GB", 1, usd("1.69"), usd("0.033"));
        let mut queued = stopped(row("b", "queued"));
        queued.remarks = vec![Remark::StartQueued];
        let mut ends = row("c", "ends-soon");
        ends.ends_at = Some("2026-12-01T08:30:00Z".parse().unwrap());
        let mut broken = row("d", "broken");
        broken.phase = Phase::Failed;
        broken.remarks = vec![Remark::BootFailed];
        let mut rescue = row("e", "rescue");
        rescue.remarks = vec![Remark::NoGpus];
        let mut strange = row("f", "strange");
        strange.phase = Phase::Unknown;
        strange.provider_phase = Some("hibernating".to_owned());
        strange.rates = Rates::unknown().with(Component::Disk, usd("0.033"));
        let mut cpu = row("g", "cpu-only");
        cpu.gpus = Some(providers::gpu::Gpus { model: String::new(), count: 0, memory_gib: None });
        let mut paying = stopped(row("h", "stopped-but-billed"));
        paying.rates = Rates::known().with(Component::Compute, usd("1.69"));
        let kept = vec![queued, ends, broken, rescue, strange, cpu, paying];
        story.poll("team", [vec![row("a", "missing"), row("z", "gone")], kept.clone()].concat());
        story.poll("team", [vec![row("z", "gone")], kept.clone()].concat());
        story.at("gone").press("xxgone").code(Code::Enter).wait(1);
        story.looked_up(row("z", "gone"));
        story.poll("team", kept).wait(1);
        story.gone("z");
        story.at("strange");
        story
    });
}

#[test]
fn the_first_run() {
    check("first_run", &[(60, 16), (80, 24)], || {
        Story::offering(&[("runpod", "RUNPOD_API_KEY"), ("vast", "VAST_API_KEY")])
    });
    check("no_accounts", &[(80, 24)], || Story::over(&[]));
}

#[test]
fn loading_and_nothing_rented() {
    check("loading", &[(80, 24)], || {
        let mut story = Story::over(&["runpod/team", "vast/me"]);
        story.wait(3).fail("me", ErrorKind::Timeout { after: std::time::Duration::from_secs(30) });
        story
    });
    check("nothing_rented", &[(80, 24)], || {
        let mut story = Story::over(&["runpod/team"]);
        story.poll("team", Vec::new());
        story
    });
}

#[test]
fn failing_and_stale_accounts() {
    check("failing", &[(80, 24), (120, 30)], || {
        let mut story = fleet();
        failing(&mut story);
        story
    });
    check("stale", &[(80, 24)], || {
        let mut story = fleet();
        story.wait(300);
        story
    });
    check("failing_grouped", &[(120, 30)], || {
        let mut story = fleet();
        story.fail("me", ErrorKind::Credentials { message: Some("token revoked".to_owned()) });
        let problem = Problem {
            request: RequestLine("GET /v1/instances".to_owned()),
            field: "[2].gpu".to_owned(),
            message: "a number was expected".to_owned(),
        };
        let now = story.now;
        let listed = Part::Listed { rows: main(now), problems: vec![problem] };
        story.answer("主账号", listed, Vec::new(), None);
        story.press("g").wait(12);
        story
    });
    check("problem", &[(80, 24)], || {
        let mut story = fleet();
        failing(&mut story);
        story.press("e");
        story
    });
}

/// A row that could not be read may be a machine that costs: the list without it may not look whole.
#[test]
fn an_account_that_is_read_in_part_is_told_in_every_grouping() {
    check("partly_read", &[(80, 24)], || {
        let mut story = fleet();
        story.wait(16);
        let problem = Problem {
            request: RequestLine("GET /v1/instances".to_owned()),
            field: "instances[2].gpu".to_owned(),
            message: "a number was expected".to_owned(),
        };
        let listed = Part::Listed { rows: main(story.now), problems: vec![problem.clone(), problem] };
        story.answer("主账号", listed, Vec::new(), None);
        story
    });
}

#[test]
fn read_only_says_so() {
    check("read_only", &[(80, 24)], || {
        let mut story = Story::read_only(&["runpod/team"]);
        let now = story.now;
        story.poll("team", team(0.9, now));
        story.state.view.fixed.demo = true;
        story.state.view.fixed.notices.push("[budgets] is not acted on by this version.".to_owned());
        story.world(WorldEvent::Ledger(LedgerNotice::Newer));
        story
    });
}

#[test]
fn who_only_looks_on_is_told() {
    check("looking_on", &[(80, 24)], || {
        let mut story = fleet();
        let owner = Owner { host: "tower".to_owned(), pid: 4711 };
        let until = story.now;
        story.world(WorldEvent::Collector(Collector::Other { owner, until }));
        story.at("sd-lora").press("s");
        story
    });
}

#[test]
fn plans() {
    check("plan_release", &[(60, 16), (80, 24), (120, 30)], || {
        let mut story = fleet();
        story.at("sd-lora").press("x");
        story
    });
    check("plan_typed", &[(80, 24)], || {
        let mut story = fleet();
        story.at("sd-lora").press("xxsd-lora");
        story
    });
    // The account stays in sight although the name leaves no room for it on the border.
    check("plan_long_name", &[(60, 16), (80, 24)], || {
        let mut story = fleet();
        let name = "a-very-long-name-that-somebody-gave-a-machine-and-to-another-one";
        story.wait(16);
        let mut rows = team(0.9, story.now);
        rows[1].name = Some(name.to_owned());
        story.poll("team", rows).at(name).press("x");
        story
    });
    check("plan_bulk_stop", &[(80, 24)], || {
        let mut story = fleet();
        story.at("llama-ft").press(" ").at("sd-lora").press(" ").press("s");
        story
    });
    check("plan_bulk_release", &[(80, 24), (120, 30)], || {
        let mut story = fleet();
        for name in ["llama-ft", "sd-lora", "serve-prod", "旧实验-训练机"] {
            story.at(name).press(" ");
        }
        story.press("x");
        story
    });
    // More than there is room for: how many instances are not named, not how many lines.
    check("plan_many", &[(60, 16), (80, 24)], || {
        let mut story = Story::over(&["runpod/team"]);
        let row =
            |at: usize| instance(&format!("id{at:02}"), &format!("worker-{at:02}"), "A10", 1, usd("1"), usd("0.1"));
        story.poll("team", (0..25).map(row).collect());
        for at in 0..25 {
            story.at(&format!("worker-{at:02}")).press(" ");
        }
        story.press("x");
        story
    });
}

#[test]
fn actions_under_way() {
    check("countdown", &[(60, 16), (80, 24), (120, 30)], || {
        let mut story = fleet();
        story.at("sd-lora").press("s").wait(1);
        story
    });
    check("under_way", &[(80, 24)], under_way);
    check("leave", &[(80, 24)], || {
        let mut story = under_way();
        story.at("llama-ft").press("s").press("q");
        story
    });
    check("activity", &[(80, 24), (120, 30), (200, 50)], || {
        let mut story = under_way();
        story.at("llama-ft").press("s").press("u").press("6");
        story
    });
    check("activity_empty", &[(80, 24)], || {
        let mut story = fleet();
        story.press("6");
        story
    });
}

/// The key of one account was refused minutes ago; the others go on.
fn failing(story: &mut Story) {
    story.fail("me", ErrorKind::Credentials { message: Some("token revoked".to_owned()) });
    for _ in 0..5 {
        story.wait(40);
        let now = story.now;
        story.answer("team", Part::complete(team(0.97, now)), Vec::new(), Some(dollars("912.00")));
        story.answer("主账号", Part::complete(main(now)), Vec::new(), None);
    }
}

/// A stop that was proven, and a release that still bills.
fn under_way() -> Story {
    let mut story = fleet();
    story.at("sd-lora").press("s").wait(6);
    let now = story.now;
    let row = me(now).remove(0);
    story.looked_up(row.clone());
    let mut rows = me(now);
    rows[0] = stopped(row);
    story.poll("me", rows.clone());
    story.poll("me", rows);
    story.at("old-exp").press("xxold-exp").code(Code::Enter).wait(1);
    story.looked_up(team(0.9, now).remove(1));
    story.wait(200);
    let now = story.now;
    story.poll("team", team(0.9, now));
    story
}

#[test]
fn filters() {
    check("filter_field", &[(80, 24)], || {
        let mut story = fleet();
        story.press("/4090");
        story
    });
    check("filter_nothing", &[(80, 24)], || {
        let mut story = fleet();
        story.press("/nowhere").code(Code::Enter);
        story
    });
}

#[test]
fn the_help() {
    check("help", &[(80, 24), (120, 30)], || {
        let mut story = fleet();
        story.press("?");
        story
    });
}

#[test]
fn a_small_window_says_so() {
    check("too_small", &[(40, 5), (12, 2), (1, 1)], fleet);
}

/// Names from the wild: what speaks to terminals, what is wide, what is long, what is nothing.
const NAMES: [&str; 16] = [
    "\u{1b}]52;c;ZXZpbA==\u{7}prod",
    "\u{1b}[2J\u{1b}[Hgone",
    "\u{9b}31mred",
    "a\u{202e}txt.exe",
    "x\r\nSTOPPED",
    "tab\there",
    "\u{1b}Pq#0;2;0;0;0\u{1b}\\dcs",
    "bell\u{7}",
    "\u{1b}]8;;http://evil.invalid\u{7}link\u{1b}]8;;\u{7}",
    "训练机-01",
    "🦀 でCLIから",
    "実験 α",
    "cafe\u{301}",
    "very-long-name-without-any-space-0123456789-0123456789",
    "👩\u{200d}👩\u{200d}👧\u{fe0f} family",
    "",
];

/// A fleet of such names, put in as they are: the screen is safe also where nobody has cleaned them.
fn nasty() -> Story {
    let mut story = Story::over(&["runpod/team", "vast/me", "lambda/主账号", "lambda/locked"]);
    let now = story.now;
    let rows = NAMES
        .iter()
        .enumerate()
        .map(|(at, name)| {
            let mut row =
                busy(instance(&format!("id-{at}"), name, name, 8, usd("1234.5"), cny("0.0001")), 0.5, 40, now);
            row.region = Some((*name).to_owned());
            row.note = Some((*name).to_owned());
            row.provider_phase = Some((*name).to_owned());
            row.labels.insert((*name).to_owned(), (*name).to_owned());
            row.phase = Phase::ALL[at % Phase::ALL.len()];
            row
        })
        .collect();
    story.poll("team", rows);
    let message = Some(NAMES.concat());
    story.fail("me", ErrorKind::Credentials { message: message.clone() });
    story.fail("主账号", ErrorKind::Forbidden { message: message.clone() });
    story.fail("locked", ErrorKind::Forbidden { message });
    story
}

/// How many states of a screen have to bear any size.
const STATES: usize = 22;

/// One of them.
fn state(at: usize) -> Story {
    let mut story = match at {
        0 => fleet(),
        1 => under_way(),
        13..18 => super::spend_tests::state(at - 13),
        18..22 => super::saving_tests::state(at - 18),
        2 => Story::offering(&[("runpod", "RUNPOD_API_KEY"), ("🦀", "训练")]),
        _ => nasty(),
    };
    let long = "very-long-name-without-any-space-0123456789-0123456789";
    match at {
        2 | 3 => story.press("/训练🦀"),
        4 => story.press("g"),
        5 => story.press("g?"),
        6 => story.press("e"),
        7 => story.press("6"),
        8 => story.at("训练机-01").press("x"),
        9 => story.at(long).press("xx长名字🦀 and more than there is room for in it"),
        10 => story.press("          x"),
        11 => story.press("jx"),
        _ => &mut story,
    };
    story
}

/// TUI-02, TUI-12 and SEC-04: at no size does it panic, and nothing that controls reaches a cell.
#[test]
fn every_state_bears_every_size() {
    let sizes = [(14, 54), (10, 11), (7, 2), (1, 1), (2, 100), (100, 2), (80, 24), (172, 18), (209, 51), (600, 200)];
    let looks = [
        look(Language::English),
        Look { theme: Theme::new(Colours::None, Background::Light), glyphs: &ASCII, language: Language::Chinese },
    ];
    for mut story in (0..STATES).map(state) {
        for look in &looks {
            for (width, height) in sizes {
                assert_clean(&story.paint(width, height, look).0);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_size_panics(width in 0u16..=220, height in 0u16..=70, at in 0usize..STATES, chinese in any::<bool>()) {
        let language = if chinese { Language::Chinese } else { Language::English };
        let mut story = state(at);
        assert_clean(&story.paint(width, height, &look(language)).0);
    }

    #[test]
    fn names_of_any_kind_leave_the_columns_where_they_are(name in "\\PC{0,40}|[训a\u{301}🦀\u{200d}\u{202e}\\x1b \\x07]{0,40}") {
        let mut story = Story::over(&["runpod/team"]);
        let now = story.now;
        let row = |id, name: &str| busy(instance(id, name, "H100 SXM", 8, usd("21.47"), usd("0.08")), 0.97, 74, now);
        story.poll("team", vec![row("a", &name), row("b", "plain")]);
        let (buffer, _) = story.paint(120, 30, &look(Language::English));
        assert_clean(&buffer);
        // What stands to the right of the names is the same in both rows, cell by cell.
        for x in 40..120 {
            prop_assert_eq!(buffer[(x, 3)].symbol(), buffer[(x, 4)].symbol(), "column {}", x);
        }
    }
}

/// No cell holds what a terminal would obey, and no wide character is cut: its second cell is blank.
fn assert_clean(buffer: &Buffer) {
    let area = buffer.area;
    for y in area.top()..area.bottom() {
        for x in area.left()..area.right() {
            let symbol = buffer[(x, y)].symbol();
            assert!(!symbol.contains(|c: char| c.is_control() || c == '\u{202e}'), "{symbol:?} at {x},{y}");
            if symbol.cell_width() > 1 {
                assert!(x + 1 < area.right(), "{symbol} hangs over the edge at {x},{y}");
                assert_eq!(buffer[(x + 1, y)].symbol(), " ", "beside {symbol} at {x},{y}");
            }
        }
    }
}

/// TUI-08: what stands to the right of a name starts in the same cell in every row.
#[test]
fn wide_names_leave_the_columns_where_they_are() {
    let mut story = Story::over(&["runpod/team"]);
    let rows: Vec<Instance> = NAMES[9..]
        .iter()
        .enumerate()
        .map(|(at, name)| instance(&format!("id-{at}"), name, "GH200", 1, usd("1.49"), usd("0")))
        .collect();
    let count = rows.len() as u16;
    story.poll("team", rows);
    for (width, gpu_x) in [(80, 22), (120, 22)] {
        let (buffer, _) = story.paint(width, 30, &look(Language::English));
        for y in 3..3 + count {
            assert_eq!(buffer[(gpu_x, y)].symbol(), "1", "row {y} at {width} columns\n{}", text_of(&buffer));
        }
    }
}

/// TUI-02: a window that was too small shows all of it again, at the same row.
#[test]
fn a_window_that_was_small_comes_back() {
    let mut story = fleet();
    story.at("serve-prod");
    let before = story.picture(80, 24, &look(Language::English));
    for (width, height) in [(14, 54), (1, 1), (100, 2), (80, 16)] {
        story.paint(width, height, &look(Language::English));
    }
    assert_eq!(story.picture(80, 24, &look(Language::English)), before);
}

/// TUI-10: without colours each state is still a sign and a word.
#[test]
fn without_colours_a_state_is_a_sign_and_a_word() {
    let look =
        Look { theme: Theme::new(Colours::None, Background::Dark), glyphs: &UNICODE, language: Language::English };
    let text = text_of(&fleet().paint(80, 24, &look).0);
    for told in ["◆ ▲ sweep-03", "reclaimed", "taken", "outbid", "○   old-exp", "off", "▲ 2", "wasting"] {
        assert!(text.contains(told), "{told} is not on\n{text}");
    }
}
