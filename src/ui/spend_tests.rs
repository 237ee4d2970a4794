//! The Spend view and its windows, as snapshots over answers of the books; and what it asks when.

use std::sync::Arc;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::Timestamp;
use providers::model::{AccountName, Component, Identity, ResourceId, ResourceKind};
use providers::money::{Currency, Money};
use rstest::rstest;
use rust_decimal::Decimal;

use super::glyphs::{ASCII, UNICODE};
use super::look::Look;
use super::testing::*;
use super::tests::check;
use super::text::Language;
use super::theme::{Background, Colours, Theme};
use crate::app::action::Code;
use crate::app::event::WorldEvent;
use crate::rules::spend::{
    Answer, BalanceChange, Billable, By, Cell, Charge, Entry, Evidence, Exact, Exchange, Fx, Period, Question, Summed,
    Sums, Terms,
};

const SIZES: [(u16, u16); 4] = [(60, 16), (80, 24), (120, 40), (200, 50)];

fn date(text: &str) -> Date {
    text.parse().unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn exact(text: &str) -> Exact {
    Exact::of(text.parse().unwrap())
}

fn terms(project: Option<&str>, component: Component) -> Terms {
    Terms { component, charge: Charge::Certain, wasted: false, project: project.map(Arc::from), gpus: 0 }
}

fn resource(account: &str, id: &str, name: &str) -> Option<Billable> {
    let (account, id) = (AccountName::from(account), ResourceId::new(id));
    let identity = Identity { account, kind: ResourceKind::Instance, id, generation: 0 };
    Some(Billable::Resource { identity, name: Some(name.to_owned()) })
}

fn october_on() -> Period {
    Period { from: date("2026-10-20"), to: date("2026-12-01") }
}

/// All that the books hold: each piece by its day and what it was spent on.
fn pieces() -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut add = |day: Date, account: &str, billable, terms: Terms, evidence, amount: Decimal, gpu_ms| {
        let currency = Currency::USD;
        let (account, amount) = (AccountName::from(account), Exact::of(amount));
        cells.push(Cell { day, account, billable, terms, evidence, replaced: false, currency, amount, gpu_ms });
    };
    for (at, day) in october_on().days().enumerate() {
        let wave = Decimal::from(12 + (at * 7) % 23);
        let evidence = if day < date("2026-11-19") { Evidence::Billed } else { Evidence::Observed };
        let llama = || resource("team", "7xk2p0", "llama-ft");
        add(day, "team", llama(), terms(Some("finetune"), Component::Compute), evidence, wave, 8 * 3_600_000);
        let disk = Decimal::new(14, 2);
        add(day, "team", llama(), terms(Some("finetune"), Component::Disk), evidence, disk, 0);
        let idle = Terms { wasted: at % 3 == 0, ..terms(Some("art"), Component::Compute) };
        let how = if at % 9 == 4 { Evidence::Assumed } else { Evidence::Observed };
        let art = resource("me", "14382011", "sd-lora");
        add(day, "me", art, idle, how, Decimal::new(331 + at as i64 * 17, 2), 3_600_000);
        let stored = Terms { wasted: true, ..terms(None, Component::Storage) };
        let volume = resource("team", "nv-9", "datasets");
        add(day, "team", volume, stored, evidence, Decimal::new(4667, 4), 0);
        if at % 10 == 0 {
            let product = Some(Billable::Product("serverless endpoints".to_owned()));
            add(day, "team", product, terms(None, Component::Other), Evidence::Billed, Decimal::new(125, 2), 0);
        }
    }
    cells
}

fn answer_of(question: &Question, cells: Vec<Cell>) -> Answer {
    Answer {
        question: question.clone(),
        cells,
        entries: Vec::new(),
        since: Vec::new(),
        balances: Vec::new(),
        unfinished: false,
    }
}

/// What the books answer from some pieces.
fn from(pieces: &[Cell], question: &Question) -> Answer {
    let (Question::Days(period) | Question::Resources(period) | Question::Entries { period, .. }) = question;
    let mut cells: Vec<Cell> = pieces.iter().filter(|cell| period.contains(cell.day)).cloned().collect();
    for cell in &mut cells {
        match question {
            Question::Days(_) => cell.billable = None,
            _ => cell.day = period.from,
        }
    }
    answer_of(question, if matches!(question, Question::Entries { .. }) { Vec::new() } else { cells })
}

fn books(question: &Question) -> Answer {
    from(&pieces(), question)
}

/// Two accounts of which one machine goes on, in the Spend view.
fn spend() -> Story {
    let mut story = Story::over(&["runpod/team", "vast/me"]);
    story.state.world.use_zone(TimeZone::get("Asia/Shanghai").unwrap());
    let now = story.now;
    let llama = instance("7xk2p0", "llama-ft", "H100 SXM", 8, usd("21.47"), usd("0.08"));
    story.poll("team", vec![busy(llama, 0.97, 74, now)]).poll("me", Vec::new());
    story.press("2").books(books);
    story
}

#[test]
fn the_month_by_project() {
    check("spend", &SIZES, spend);
}

#[test]
fn the_month_by_day_instance_and_component() {
    for (name, by, sizes) in [
        ("spend_day", By::Day, &[(80, 24), (120, 40)][..]),
        ("spend_instance", By::Instance, &[(80, 24), (120, 40)]),
        ("spend_component", By::Component, &[(80, 24)]),
        ("spend_account", By::Account, &[(80, 24)]),
    ] {
        check(name, sizes, || {
            let mut story = spend();
            let at = By::ALL.iter().position(|one| *one == by).unwrap();
            for _ in 0..at {
                story.press("g").wait(9);
            }
            story.books(books).press("j").wait(9);
            story
        });
    }
}

#[test]
fn other_days() {
    for (name, keys) in [("week", "jk"), ("today", "k"), ("before", "jj"), ("quarter", "jjj"), ("year", "jjjj")] {
        check(&format!("spend_{name}"), &[(80, 24)], || {
            let mut story = spend();
            story.press("w");
            // The window points at this month.
            let down = keys.matches('j').count();
            for _ in 0..2 {
                story.code(Code::Up);
            }
            for _ in 0..(if keys == "k" { 0 } else { down.max(1) + usize::from(down > 1) }) {
                story.code(Code::Down);
            }
            story.code(Code::Enter).books(books).wait(9);
            story
        });
    }
}

#[test]
fn the_choice_of_days() {
    check("spend_range", &[(60, 16), (80, 24)], || {
        let mut story = spend();
        story.press("w");
        story
    });
    check("spend_range_typed", &[(80, 24)], || {
        let mut story = spend();
        story.press("w2026-11-01..2026-11-15");
        story
    });
    check("spend_range_wrong", &[(60, 16), (80, 24)], || {
        let mut story = spend();
        story.press("w2026-11-01..2026-13").code(Code::Enter);
        story
    });
}

/// Everything that one may have to know, in two currencies.
fn with_notes(question: &Question) -> Answer {
    let mut cells = pieces();
    let yuan = |component, evidence, amount: &str| Cell {
        day: date("2026-11-20"),
        account: "主账号".into(),
        billable: resource("主账号", "c0ffee", "eval-批量"),
        terms: terms(Some("客户甲"), component),
        evidence,
        replaced: false,
        currency: Currency::CNY,
        amount: exact(amount),
        gpu_ms: 7_200_000,
    };
    cells.push(yuan(Component::Compute, Evidence::Observed, "88.20"));
    let perhaps = Cell { terms: Terms { charge: Charge::Possible, ..terms(Some("art"), Component::Compute) }, currency: Currency::USD, ..yuan(Component::Compute, Evidence::Observed, "3.40") };
    let prepaid = Cell { terms: Terms { charge: Charge::Prepaid, wasted: true, ..terms(None, Component::Compute) }, currency: Currency::USD, ..yuan(Component::Compute, Evidence::Observed, "31.40") };
    let ours = Cell { replaced: true, currency: Currency::USD, terms: terms(Some("finetune"), Component::Compute), ..yuan(Component::Compute, Evidence::Observed, "377.10") };
    cells.extend([perhaps, prepaid, ours]);
    let money = |amount: &str| Money::new(amount.parse().unwrap(), Currency::USD);
    Answer {
        since: vec![("team".into(), at("2026-10-20T00:00:00Z")), ("me".into(), at("2026-11-11T20:00:00Z"))],
        balances: vec![BalanceChange {
            account: "me".into(),
            from: at("2026-11-12T00:00:00Z"),
            to: at("2026-11-30T09:00:00Z"),
            first: money("50"),
            last: money("23.40"),
            paid_in: money("200"),
            vouchers: Some((money("10"), money("10"))),
            charged: exact("220.25"),
        }],
        unfinished: true,
        ..from(&cells, question)
    }
}

#[test]
fn what_one_should_know_about_a_total() {
    check("spend_notes", &[(80, 24), (120, 40), (200, 50)], || {
        let mut story = spend();
        let as_of = date("2026-11-29");
        let yuan = Fx { usd: "0.1389".parse().unwrap(), as_of };
        story.state.view.fixed.exchange = Exchange { into: Currency::USD, rates: [(Currency::CNY, yuan)].into() };
        story.press("h").questions();
        story.press("l").books(with_notes).wait(9);
        story
    });
}

#[test]
fn where_a_figure_comes_from() {
    check("figure_project", &[(60, 16), (80, 24), (120, 40)], || {
        let mut story = spend();
        story.code(Code::Enter).books(books);
        story
    });
    check("figure_total", &[(80, 24)], || {
        let mut story = spend();
        story.press("h").questions();
        story.press("l").books(with_notes).code(Code::End).code(Code::Enter).books(with_notes);
        story
    });
    check("figure_reading", &[(80, 24)], || {
        let mut story = spend();
        story.code(Code::Enter);
        story
    });
}

fn entries(question: &Question) -> Answer {
    if !matches!(question, Question::Entries { .. }) {
        return books(question);
    }
    let entry = |from: &str, to: &str, evidence, amount: &str| Entry {
        from: at(from),
        to: at(to),
        terms: terms(Some("finetune"), Component::Compute),
        evidence,
        replaced: false,
        rate: Some(usd("21.47")),
        amount: exact(amount),
        currency: Currency::USD,
    };
    let entries = vec![
        Entry { rate: None, ..entry("2026-11-28T16:00:00Z", "2026-11-28T17:00:00Z", Evidence::Billed, "21.4712") },
        Entry { replaced: true, ..entry("2026-11-28T16:00:00Z", "2026-11-28T17:00:00Z", Evidence::Observed, "21.51") },
        entry("2026-11-28T17:00:00Z", "2026-11-29T02:00:00Z", Evidence::Observed, "193.23"),
        entry("2026-11-29T02:00:00Z", "2026-11-29T02:10:00Z", Evidence::Assumed, "3.5783"),
        Entry { rate: None, ..entry("2026-11-29T03:00:00Z", "2026-11-29T03:00:00Z", Evidence::Observed, "0.0041") },
    ];
    Answer { entries, ..answer_of(question, Vec::new()) }
}

#[test]
fn the_entries_of_an_instance() {
    for (name, keys) in [("entries", ""), ("entries_ago", "T")] {
        check(&format!("figure_{name}"), &[(60, 16), (80, 24), (120, 40)], || {
            let mut story = spend();
            story.press("ggg").wait(9);
            story.books(entries).code(Code::Home).code(Code::Enter).books(entries).press(keys);
            story
        });
    }
}

#[test]
fn before_the_books_have_answered_and_when_nothing_was_spent() {
    check("spend_reading", &[(80, 24)], || {
        let mut story = Story::over(&["runpod/team"]);
        story.press("2");
        story
    });
    let empty = |since: Option<&str>| {
        let mut story = Story::over(&["runpod/team"]);
        let summed = Summed {
            day: date("2026-11-30"),
            today: Sums::default(),
            month: Sums::default(),
            rows: Vec::new(),
            since: since.map(at),
        };
        story.world(WorldEvent::Summed(Box::new(summed)));
        story.press("2").books(|question| answer_of(question, Vec::new()));
        story
    };
    check("spend_empty", &[(80, 24)], || empty(None));
    check("spend_nothing", &[(60, 16), (80, 24)], || {
        let mut story = empty(Some("2026-11-12T00:00:00Z"));
        story.press("h").books(|question| answer_of(question, Vec::new())).wait(9);
        story
    });
}

/// TUI-10: without colours, in sixteen of them, and on a terminal that knows only ASCII.
#[rstest]
#[case("none", Colours::None, false)]
#[case("sixteen", Colours::Sixteen, false)]
#[case("ascii", Colours::None, true)]
fn any_terminal_tells_billed_from_counted_and_assumed(#[case] name: &str, #[case] colours: Colours, #[case] ascii: bool) {
    let glyphs = if ascii { &ASCII } else { &UNICODE };
    let look = Look { theme: Theme::new(colours, Background::Dark), glyphs, language: Language::English };
    let mut story = spend();
    story.press("ggggg").wait(9);
    let picture = story.books(books).picture(80, 24, &look);
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(format!("spend_look_{name}"), picture);
    });
}
