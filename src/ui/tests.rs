//! The screen in its states, as snapshots; and what must hold in every state and at every size.

use providers::error::{ErrorKind, Problem, RequestLine};
use providers::model::{Component, Instance, Market, Offer, Phase, Rates, Refusal, Remark};
use providers::provider::Part;
use rstest::rstest;

use super::testing::*;
use super::text::Language;
use crate::app::action::Code;
use crate::app::event::WorldEvent;
use crate::rules::memory::LedgerNotice;

const LANGUAGES: [(Language, &str); 2] = [(Language::English, "en"), (Language::Chinese, "zh")];
const SIZES: [(u16, u16); 4] = [(60, 16), (80, 24), (120, 30), (200, 50)];

/// Compares the screen with its snapshot in both languages at some sizes.
fn check(name: &str, sizes: &[(u16, u16)], story: impl Fn() -> Story) {
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
fn fleet() -> Story {
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
}

#[test]
fn actions_under_way() {
    check("countdown", &[(80, 24), (120, 30)], || {
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

#[rstest]
fn a_small_window_says_so() {
    check("too_small", &[(40, 5), (12, 2), (1, 1)], fleet);
}
