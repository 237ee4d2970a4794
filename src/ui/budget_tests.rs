//! Budgets and alerts, as snapshots; and what their sentences say.

use jiff::civil::date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use providers::model::{AccountName, Action, Identity, Refusal};
use providers::money::{Currency, Money};
use ratatui::buffer::CellWidth;
use rstest::rstest;
use rust_decimal::Decimal;

use super::glyphs::ASCII;
use super::look::Look;
use super::testing::*;
use super::tests::{check, fleet};
use super::text::{Language, Telling, alert_line};
use super::theme::{Background, Colours, Theme};
use crate::app::action::Code;
use crate::app::event::{Intent, WorldEvent};
use crate::app::spending::SpentTotals;
use crate::app::state::Modal;
use crate::rules::alerts::{Finding, Kind, Matter};
use crate::rules::budgets::{Budget, Cycle, FORECAST, Quantity, Scope, Standing, THRESHOLDS, Term, Unit};
use crate::rules::checkpoint::Trouble;
use crate::rules::guard::{Cause, Unable, Warning, Way};
use crate::rules::lease::{Instead, LeaseId, What, Why};
use crate::rules::matcher::Glob;
use crate::rules::plan::Hindrance;
use crate::rules::saga::{OpId, Outcome};
use crate::rules::samples;
use crate::rules::spend::{Amounts, Exact, Sums};
use crate::rules::streams;

fn dec(text: &str) -> Decimal {
    text.parse().unwrap()
}

fn dollar(amount: &str) -> Quantity {
    Quantity::new(dec(amount), Unit::Money(Currency::USD))
}

fn budget(name: &str, scope: Scope, cycle: Cycle, limit: Quantity) -> Budget {
    let thresholds = THRESHOLDS.to_vec();
    Budget { name: name.to_owned(), scope, cycle, limit, zone: TimeZone::UTC, thresholds, forecast: Some(FORECAST) }
}

/// It stands so at a moment in its present term, after even days.
fn standing(budget: &Budget, now: Timestamp, spent: &str, forecast: Option<&str>, committed: Option<&str>) -> Standing {
    let term: Term = budget.term(now);
    let today = TimeZone::UTC.to_datetime(now).date();
    let first = term.first.unwrap_or(date(2026, 9, 1));
    let days: Vec<_> = first.series(jiff::Span::new().days(1)).take_while(|day| *day <= today).collect();
    let spent = dec(spent);
    let by_day = days
        .iter()
        .enumerate()
        .map(|(at, day)| {
            // Slow at first, faster later.
            let part = Decimal::from((at + 1) * (at + 3)) / Decimal::from(days.len() * (days.len() + 2));
            (*day, spent * part)
        })
        .collect();
    Standing {
        term,
        as_of: now,
        spent,
        estimated: Decimal::ZERO,
        apart: Vec::new(),
        burn: dec("12"),
        forecast: forecast.map(dec),
        committed: committed.map(dec),
        left_running: Vec::new(),
        reaches: None,
        crossed: Vec::new(),
        by_day,
    }
}

/// In the middle of a month: one budget is near its limit, one over it, one in GPU-hours, one not known yet.
fn budgets() -> Story {
    let mut story = fleet();
    // Not the last day of the month, as every other story: a chart has days to come.
    story.now = "2026-12-19T15:30:00Z".parse().unwrap();
    let now = story.now;
    let everything = budget("all", Scope::default(), Cycle::Month, dollar("1500"));
    let art = Scope { project: Some("客户甲".to_owned()), ..Scope::default() };
    let art = budget("客户甲", art, Cycle::Week, dollar("120.50"));
    let sweeps = Scope { instance: Some(Glob::new("sweep-*")), ..Scope::default() };
    let sweeps = budget("sweeps", sweeps, Cycle::Total, Quantity::new(dec("2000"), Unit::GpuHours));
    let today = Scope { account: Some(AccountName::from("team")), ..Scope::default() };
    let today = budget("team-day", today, Cycle::Day, dollar("600"));
    let unknown = Scope { provider: Some("vast".into()), ..Scope::default() };
    let unknown = budget("vast", unknown, Cycle::Month, Quantity::new(dec("900"), Unit::Money(Currency::CNY)));

    let mut whole = standing(&everything, now, "1204.40", Some("1672.12"), Some("2010.77"));
    whole.reaches = Some("2026-12-27T10:00:00Z".parse().unwrap());
    whole.apart = vec![(Currency::CNY, dec("88.2"))];
    let running = |account: &str, id: &str, amount: &str| (samples::identity(account, id), dec(amount));
    whole.left_running =
        vec![running("team", "7xk2p0", "771.03"), running("me", "14382011", "20.4"), running("me", "14383000", "14.9")];
    let mut over = standing(&art, now, "131.02", Some("180.40"), Some("180.40"));
    over.reaches = Some("2026-12-18T21:04:00Z".parse().unwrap());
    over.estimated = dec("12.2");
    let hours = standing(&sweeps, now, "148.25", None, None);
    let day = standing(&today, now, "310.2", Some("492"), Some("492"));
    story.state.world.budgets.rules = vec![everything, art, sweeps, today, unknown];
    story.state.world.budgets.standings = vec![Some(whole), Some(over), Some(hours), Some(day), None];
    story.state.world.budgets.as_of = Some(now);
    story
}

fn identity(story: &Story, name: &str) -> Identity {
    let mut known = story.state.world.fleet.instances.values();
    known.find(|known| known.row.name.as_deref() == Some(name)).unwrap().identity.clone()
}

/// Three things call, one is seen, one silent for a while, two are over.
pub fn alerts() -> Story {
    let mut story = fleet();
    let now = story.now;
    let lora = identity(&story, "sd-lora");
    let matters = [
        Matter::Runway {
            account: "team".into(),
            ends_at: now + SignedDuration::from_mins(812),
            at_most: false,
            asleep: true,
            lost: vec!["llama-ft".to_owned(), "old-exp".to_owned()],
            stopped: 0,
        },
        Matter::Budget {
            name: "all".to_owned(),
            term: Some(date(2026, 11, 1)),
            threshold: 80,
            spent: dollar("1204.4"),
            limit: dollar("1500"),
            crossed_at: None,
            forecast: Some(dollar("1372.1")),
            closed: None,
        },
        Matter::Idle {
            identity: lora.clone(),
            name: "sd-lora".to_owned(),
            since: now - SignedDuration::from_mins(220),
            rates: vec![usd("0.415")],
            wasted: vec![dollars("1.50")],
        },
        Matter::Account {
            account: "主账号".into(),
            why: "GET /v1/instances: no answer within 15 s".to_owned(),
            since: now - SignedDuration::from_mins(12),
        },
        Matter::Appeared { identity: lora, name: "sd-lora".to_owned(), rates: vec![usd("0.415")] },
        Matter::Channel { name: "ops".to_owned(), why: "404 Not Found".to_owned(), way: 0 },
    ];
    let topics: Vec<_> = matters.iter().map(Matter::topic).collect();
    let found = matters.into_iter().map(Finding::now).collect();
    story.state.world.fleet.idle.insert(identity(&story, "sd-lora"));
    let alerts = &mut story.state.world.alerting.alerts;
    drop(alerts.take(found, &|_| true, now - SignedDuration::from_mins(30)));
    // The channel works again.
    let ended = topics[5].clone();
    drop(alerts.take(Vec::new(), &|topic| *topic != ended, now - SignedDuration::from_mins(4)));
    story.world(WorldEvent::Intent(Intent::Acknowledge(vec![topics[4].clone()])));
    let until = now + SignedDuration::from_mins(45);
    story.world(WorldEvent::Intent(Intent::Snooze { topics: vec![topics[3].clone()], until }));
    story
}

#[test]
fn the_budgets_and_where_they_lead() {
    check("budgets", &[(60, 16), (80, 24), (120, 40), (200, 50)], || {
        let mut story = budgets();
        story.press("4");
        story
    });
    check("budgets_over", &[(80, 24), (120, 40)], || {
        let mut story = budgets();
        story.press("4j");
        story
    });
    check("budgets_day", &[(80, 24)], || {
        let mut story = budgets();
        story.press("4jjj");
        story
    });
    check("budgets_unknown", &[(80, 24)], || {
        let mut story = budgets();
        story.press("4").code(Code::End);
        story
    });
}

#[test]
fn the_form_of_a_budget_says_what_to_change() {
    check("budget_form", &[(60, 16), (80, 24)], || {
        let mut story = budgets();
        story.press("4n");
        story
    });
    check("budget_form_wrong", &[(80, 24)], || {
        let mut story = budgets();
        story.press("4").code(Code::Enter).code(Code::Tab).press("x").code(Code::Enter);
        story
    });
    check("budget_form_refused", &[(80, 24)], || {
        let mut story = budgets();
        story.press("4").code(Code::Enter);
        let Some(Modal::Budget(form)) = story.state.view.modals.last_mut() else { panic!("no form") };
        form.refused = Some("~/.config/rentop/config.toml: no permission to write there".to_owned());
        story
    });
}

#[test]
fn alerts_that_are_open_and_that_are_over() {
    check("alerts", &[(60, 16), (80, 24), (120, 40), (200, 50)], || {
        let mut story = alerts();
        story.wait(1).code(Code::Esc);
        story.press("5");
        story
    });
}

#[test]
fn alerts_pop_up() {
    check("popup", &[(60, 16), (80, 24), (120, 40), (200, 50)], || {
        let mut story = alerts();
        story.wait(1);
        story
    });
    check("popup_just_now", &[(80, 24)], || {
        let mut story = alerts();
        story.key_at_once('j');
        story
    });
    check("snooze", &[(80, 24)], || {
        let mut story = alerts();
        story.wait(1).press("jz");
        story
    });
    check("all_idle", &[(80, 24)], || {
        let mut story = alerts();
        let idle = ["sd-lora", "llama-ft", "serve-prod", "eval-批量"].map(|name| identity(&story, name));
        story.state.world.fleet.idle.extend(idle);
        story.wait(1).press("I");
        story
    });
}

/// Signs that every terminal has, and no colours.
#[test]
fn the_views_in_ascii_without_colours() {
    let theme = Theme::new(Colours::None, Background::Light);
    let look = Look { theme, glyphs: &ASCII, language: Language::English };
    for (name, story) in [("budgets", budgets as fn() -> Story), ("alerts", alerts)] {
        let mut story = story();
        story.code(Code::Esc).press(if name == "budgets" { "4" } else { "5" });
        let text = text_of(&story.paint(80, 24, &look).0);
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(format!("{name}_ascii_80x24"), text);
        });
        let ours = text.lines().filter(|line| !line.contains(['客', '主', '¥']));
        assert!(ours.clone().all(str::is_ascii), "{text}");
    }
}

/// One of each kind.
fn all() -> Vec<Matter> {
    let at = samples::at;
    let identity = || samples::identity("team", "a1");
    let name = || "sd-lora".to_owned();
    let gpu_hours = |amount: &str| Quantity::new(dec(amount), Unit::GpuHours);
    vec![
        Matter::Budget {
            name: "nov".to_owned(),
            term: None,
            threshold: 80,
            spent: dollar("1204.4"),
            limit: dollar("1500"),
            crossed_at: None,
            forecast: Some(dollar("1372")),
            closed: None,
        },
        Matter::Budget {
            name: "sweeps".to_owned(),
            term: None,
            threshold: 100,
            spent: gpu_hours("203.25"),
            limit: gpu_hours("200"),
            crossed_at: Some(at("03:12:00")),
            forecast: None,
            closed: None,
        },
        Matter::Budget {
            name: "oct".to_owned(),
            term: None,
            threshold: 100,
            spent: dollar("1560"),
            limit: dollar("1500"),
            crossed_at: None,
            forecast: None,
            closed: Some(at("00:00:00")),
        },
        Matter::Budget {
            name: "day".to_owned(),
            term: None,
            threshold: 80,
            spent: dollar("84"),
            limit: dollar("100"),
            crossed_at: None,
            forecast: None,
            closed: Some(at("00:00:00")),
        },
        Matter::Forecast {
            name: "nov".to_owned(),
            term: None,
            forecast: dollar("1720"),
            limit: dollar("1500"),
            reaches: Some(at("21:00:00")),
        },
        Matter::Burn { burn: usd("78.69"), limit: usd("50") },
        Matter::Runway {
            account: "team".into(),
            ends_at: at("13:34:00"),
            at_most: false,
            asleep: true,
            lost: ["a", "b", "c"].map(str::to_owned).to_vec(),
            stopped: 0,
        },
        Matter::Runway {
            account: "team".into(),
            ends_at: at("13:34:00"),
            at_most: true,
            asleep: false,
            lost: Vec::new(),
            stopped: 2,
        },
        Matter::Idle {
            identity: identity(),
            name: name(),
            since: at("08:20:00"),
            rates: vec![usd("0.41")],
            wasted: vec![dollars("1.5")],
        },
        Matter::StoppedBilled { identity: identity(), name: name(), since: at("08:20:00"), rates: vec![usd("0.44")] },
        Matter::Unattached { identity: identity(), name: name(), since: at("08:20:00"), rates: vec![usd("0.02")] },
        Matter::NotDone {
            op: OpId(7),
            identity: identity(),
            name: name(),
            action: Action::Release,
            rates: vec![usd("0.41")],
        },
        Matter::NotDone { op: OpId(7), identity: identity(), name: name(), action: Action::Stop, rates: Vec::new() },
        Matter::Reclaimed { identity: identity(), name: name(), copied_at: None },
        Matter::Ending { identity: identity(), name: name(), at: at("23:00:00"), deleted: true },
        Matter::Ending { identity: identity(), name: name(), at: at("23:00:00"), deleted: false },
        Matter::Repriced { identity: identity(), name: name(), before: vec![usd("0.41")], after: vec![usd("0.52")] },
        Matter::Appeared { identity: identity(), name: name(), rates: vec![usd("0.41")] },
        Matter::Vanished { identity: identity(), name: name() },
        Matter::Account { account: "team".into(), why: "401 Unauthorized".to_owned(), since: at("11:48:00") },
        Matter::Cards { identity: identity(), name: name(), rented: 8, seen: Some(7), why: None },
        Matter::Cards { identity: identity(), name: name(), rented: 8, seen: None, why: Some("Xid 79".to_owned()) },
        Matter::HostKey { identity: identity(), name: name() },
        Matter::CopyOverdue {
            identity: identity(),
            name: name(),
            copied_at: Some(at("08:20:00")),
            every: SignedDuration::from_mins(30),
            why: Some(Trouble::NoAddress),
        },
        Matter::CopyOverdue {
            identity: identity(),
            name: name(),
            copied_at: None,
            every: SignedDuration::from_mins(30),
            why: None,
        },
        Matter::Unexplained {
            account: "team".into(),
            amount: Money::new(dec("12.3"), Currency::USD),
            since: at("02:00:00"),
        },
        lease(Why::Overdue),
        lease(Why::Stale),
        lease(Why::Job { code: Some(137) }),
        lease(Why::Job { code: None }),
        lease(Why::Hindered(Hindrance::NoRecipe)),
        lease(Why::LosesData),
        lease(Why::NotDone(Outcome::Unproven)),
        lease(Why::Stopped(Instead::NoCheckpoint(Hindrance::NoRecipe))),
        lease(Why::Stopped(Instead::CostReached { code: Some(1) })),
        lease(Why::Blind(streams::Trouble::NoAnswer)),
        Matter::Channel { name: "ops".to_owned(), why: "404 Not Found".to_owned(), way: 0 },
        guard(Cause::Idle { since: at("08:20:00") }, Warning::Proposes { action: Action::Release }),
        guard(
            Cause::Budget { name: "nov".to_owned(), percent: 103 },
            Warning::Acts { way: Way { action: Action::Release, saves: true }, at: at("12:10:00") },
        ),
        guard(
            Cause::Burn { burn: usd("21.5"), above: usd("20") },
            Warning::CanDoNothing { why: Hindrance::Provider(Refusal::NotOffered) },
        ),
        guard(
            Cause::Runway { account: "team".into(), ends_at: at("13:34:00") },
            Warning::DidNot { way: Way { action: Action::Stop, saves: false }, why: Outcome::Unproven },
        ),
        unable(Unable::Key("no such variable".to_owned())),
        unable(Unable::Ssh("connection refused".to_owned())),
        unable(Unable::Plan(Hindrance::NoRecipe)),
        unable(Unable::Folder("/backup: permission denied".to_owned())),
        unable(Unable::NoRoom { need: 12_400_000_000, free: 3_000_000_000 }),
    ]
}

fn guard(cause: Cause, warning: Warning) -> Matter {
    Matter::Guard {
        identity: samples::identity("team", "a1"),
        name: "sd-lora".to_owned(),
        guard: "night".to_owned(),
        cause,
        warning,
        rates: vec![usd("0.41")],
    }
}

fn unable(why: Unable) -> Matter {
    Matter::Unable { identity: samples::identity("team", "a1"), name: "sd-lora".to_owned(), why }
}

fn lease(why: Why) -> Matter {
    Matter::Lease {
        lease: LeaseId(7),
        identity: samples::identity("team", "train-a"),
        name: "train-a".to_owned(),
        what: What::Release,
        why,
        since: samples::at("11:00:00"),
        rates: vec![usd("0.41")],
        cost: vec![dollars("0.41")],
    }
}

#[test]
fn every_kind_of_alert_has_a_sentence() {
    let kinds: std::collections::BTreeSet<Kind> = all().iter().map(Matter::kind).collect();
    assert_eq!(kinds.len(), Kind::ALL.len());
    let now = samples::at("12:00:00");
    let mut told = String::new();
    for (language, zone) in [(Language::English, "UTC"), (Language::Chinese, "Asia/Shanghai")] {
        let (look, zone) = (look(language), TimeZone::get(zone).unwrap());
        let title = |account: &AccountName| format!("runpod/{account}");
        let telling = Telling { look: &look, first: Currency::USD, zone: &zone, now: Some(now), title: &title };
        for matter in all() {
            told.push_str(&format!("{}\n", telling.sentence(&matter).line()));
        }
        told.push('\n');
        for matter in all() {
            told.push_str(&format!("{}\n", alert_line(&matter, language, &zone)));
        }
        told.push('\n');
    }
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("alert_sentences", told);
    });
}

/// Whatever the size, nothing is painted beyond the screen, and no wide character is cut in half.
#[rstest]
fn the_views_and_windows_fit_every_size(#[values(60, 61, 79, 95, 100, 159, 160, 230)] width: u16) {
    for height in [16, 17, 20, 24, 31, 60] {
        for keys in ["4", "4jj", "4n", "5", "5jjjj"] {
            let mut story = if keys.starts_with('4') { budgets() } else { alerts() };
            story.code(Code::Esc).press(keys);
            let (buffer, _) = story.paint(width, height, &look(Language::Chinese));
            for y in 0..height {
                let last = &buffer[(width - 1, y)];
                assert!(last.symbol().cell_width() <= 1, "{keys} at {width}x{height}, row {y}");
            }
        }
    }
}

/// What was spent this month, as the books tell it.
fn with_totals(mut story: Story) -> Story {
    let sums = |amount: &str| {
        let amounts = Amounts { observed: Exact::of(dec(amount)), ..Amounts::default() };
        Sums(std::collections::BTreeMap::from([(Currency::USD, amounts)]))
    };
    story.state.world.spending.totals =
        Some(SpentTotals { as_of: story.now, today: sums("187.41"), month: sums("1204.40") });
    story
}

/// With a budget over everything the header says how much of it is gone, also where there is little room.
#[rstest]
#[case(180, "Dec $1,204 of 1,500 ▇▇▇▇▇▇▇▇▁▁ 80 % ¥88.20")]
#[case(80, "Dec 80 %")]
fn the_month_stands_against_its_budget(#[case] width: u16, #[case] told: &str) {
    let mut story = with_totals(budgets());
    let text = text_of(&story.paint(width, 24, &look(Language::English)).0);
    let header = text.lines().next().unwrap();
    assert!(header.contains(told), "{header}");
    // Before the books have answered for it, the month stands alone.
    story.state.world.budgets.standings[0] = None;
    let text = text_of(&story.paint(180, 24, &look(Language::English)).0);
    assert!(text.lines().next().unwrap().contains("Dec $1,204.40"), "{text}");
}
