//! The Spend view and its windows, as snapshots over answers of the books; and what it asks when.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
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
use crate::app::state::Modal;
use crate::rules::spend::{
    Answer, BalanceChange, Billable, By, Cell, Charge, Entry, Evidence, Exact, Exchange, Fx, Period, Question, Summed,
    Terms,
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
    let (Question::Days(period)
    | Question::Resources(period)
    | Question::Balances(period)
    | Question::Entries { period, .. }) = question;
    let mut cells: Vec<Cell> = pieces.iter().filter(|cell| period.contains(cell.day)).cloned().collect();
    for cell in &mut cells {
        match question {
            Question::Days(_) => cell.billable = None,
            _ => cell.day = period.from,
        }
    }
    let has_cells = matches!(question, Question::Days(_) | Question::Resources(_));
    answer_of(question, if has_cells { cells } else { Vec::new() })
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
    let perhaps = Cell {
        terms: Terms { charge: Charge::Possible, ..terms(Some("art"), Component::Compute) },
        currency: Currency::USD,
        ..yuan(Component::Compute, Evidence::Observed, "3.40")
    };
    let prepaid = Cell {
        terms: Terms { charge: Charge::Prepaid, wasted: true, ..terms(None, Component::Compute) },
        currency: Currency::USD,
        ..yuan(Component::Compute, Evidence::Observed, "31.40")
    };
    let ours = Cell {
        replaced: true,
        currency: Currency::USD,
        terms: terms(Some("finetune"), Component::Compute),
        ..yuan(Component::Compute, Evidence::Observed, "377.10")
    };
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
        let summed = Summed { day: date("2026-11-30"), since: since.map(at), ..Summed::default() };
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
fn any_terminal_tells_billed_from_counted_and_assumed(
    #[case] name: &str,
    #[case] colours: Colours,
    #[case] ascii: bool,
) {
    let glyphs = if ascii { &ASCII } else { &UNICODE };
    let look = Look { theme: Theme::new(colours, Background::Dark), glyphs, language: Language::English };
    let mut story = spend();
    story.press("ggggg").wait(9);
    let picture = story.books(books).picture(80, 24, &look);
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(format!("spend_look_{name}"), picture);
    });
}

/// States of the view that have to bear any size: names from the wild in it, and its windows over it.
pub fn state(at: usize) -> Story {
    let wild = "very-long-name-without-any-space-0123456789-0123456789 训练🦀\u{202e}\u{1b}[31m";
    let books = move |question: &Question| {
        let mut answer = with_notes(question);
        for cell in &mut answer.cells {
            cell.terms.project = Some(Arc::from(wild));
            cell.billable = cell.billable.as_ref().map(|_| resource("team", "x", wild).unwrap());
        }
        if matches!(question, Question::Entries { .. }) {
            answer.entries = entries(question).entries;
        }
        answer
    };
    let mut story = spend();
    story.press("h").questions();
    story.press("l").books(books);
    match at {
        0 => story.press("ggg").wait(1).books(books),
        1 => story.press("ggggg").wait(1).books(books),
        2 => story.press("w2026-11-01..训练"),
        3 => story.code(Code::Enter).books(books),
        _ => story.press("ggg").wait(1).books(books).code(Code::Enter).books(books),
    };
    story
}

fn text(story: &mut Story, width: u16, height: u16) -> String {
    text_of(&story.paint(width, height, &look(Language::English)).0)
}

/// What is shown as spent, in all.
fn total(story: &Story) -> Decimal {
    let shown = story.state.view.spend.shown.as_ref().expect("the books have answered");
    shown.total.of(Currency::USD).total().amount()
}

fn november() -> Period {
    Period::month(date("2026-11-30"))
}

#[test]
fn the_books_are_asked_once_and_again_only_for_something_else() {
    let mut story = Story::over(&["runpod/team"]);
    story.wait(20);
    assert_eq!(story.questions(), [], "nobody looks at it");
    story.press("2").wait(20).press("jkjg").wait(3);
    assert_eq!(
        story.questions(),
        [Question::Days(november()), Question::Balances(november())],
        "one question at a time, however long it takes"
    );
    story.event(crate::app::Event::View(crate::app::event::ViewEvent::Spend(Box::new(books(&Question::Days(
        november(),
    ))))));
    story.press("g").wait(20);
    assert_eq!(story.questions(), [], "another grouping of the same days");
    story.press("g").wait(1);
    assert_eq!(story.questions(), [Question::Resources(november())]);
    story.press("h").wait(1);
    let october = Period::month(date("2026-10-01"));
    assert_eq!(story.questions(), [Question::Days(october), Question::Resources(october), Question::Balances(october)]);
}

#[test]
fn what_comes_late_for_other_days_is_not_shown() {
    let mut story = Story::over(&["runpod/team"]);
    story.press("2");
    let [first, _] = story.questions().try_into().unwrap();
    story.press("h");
    let [second, _] = story.questions().try_into().unwrap();
    for (question, shown) in [(&first, None), (&second, Some(Period::month(date("2026-10-01"))))] {
        story.event(crate::app::Event::View(crate::app::event::ViewEvent::Spend(Box::new(books(question)))));
        assert_eq!(story.state.view.spend.shown.as_ref().map(|shown| shown.period), shown);
    }
}

#[test]
fn nothing_lies_beyond_the_present_days() {
    let mut story = spend();
    story.press("l").wait(1);
    assert_eq!(story.questions(), []);
    assert!(text(&mut story, 80, 24).contains("nothing is spent beyond today"));
    story.press("h").wait(1).press("l").wait(1).books(books);
    assert_eq!(story.state.view.spend.shown.as_ref().unwrap().period, november());
}

#[test]
fn the_books_are_asked_again_when_they_hold_more_and_when_the_view_is_opened() {
    let mut story = spend();
    let summed = || {
        let day = date("2026-11-30");
        WorldEvent::Summed(Box::new(Summed { day, ..Summed::default() }))
    };
    story.world(summed());
    assert_eq!(story.questions(), [Question::Days(november())]);
    story.world(summed()).world(summed()).wait(9);
    assert_eq!(story.questions(), [], "the answer is still to come");
    story.event(crate::app::Event::View(crate::app::event::ViewEvent::Spend(Box::new(books(&Question::Days(
        november(),
    ))))));
    assert_eq!(story.questions(), [Question::Days(november())], "it does not know of the last one");
    story.books(books).press("1").wait(9);
    story.world(summed()).press("2");
    assert_eq!(story.questions(), [Question::Days(november()), Question::Balances(november())]);
}

/// Who types into the field means other days than those that stand there.
#[rstest]
#[case("w2026-09", "2026-09")]
#[case("w2026-09-1\u{8}", "2026-09-")]
fn what_was_chosen_before_is_typed_over(#[case] keys: &str, #[case] field: &str) {
    let mut story = spend();
    story.press("w2026-10-05..2026-10-09").code(Code::Enter);
    for key in keys.chars() {
        if key == '\u{8}' {
            story.code(Code::Backspace)
        } else {
            story.press(&key.to_string())
        };
    }
    let Some(Modal::Range(choice)) = story.state.view.modals.last() else { panic!("the window is open") };
    assert_eq!(choice.input.value(), field);
}

/// Books that were not added up yet have more to tell when they are.
#[test]
fn what_was_not_all_is_asked_for_again() {
    let mut story = spend();
    story.press("h");
    let part = |question: &Question| Answer { unfinished: true, ..answer_of(question, Vec::new()) };
    story.books(part).wait(20);
    assert_eq!(story.questions(), [], "nothing new is known");
    story.world(WorldEvent::Summed(Box::new(Summed { day: date("2026-11-30"), ..Summed::default() })));
    assert_eq!(story.questions(), [Question::Days(Period::month(date("2026-10-01")))]);
}

/// What ends is closed: it leaves the open lines before the books have answered with it.
#[test]
fn a_total_never_falls_while_the_books_are_asked() {
    let mut story = spend();
    story.wait(30);
    let llama = instance("7xk2p0", "llama-ft", "H100 SXM", 8, usd("21.47"), usd("0.08"));
    story.poll("team", vec![llama.clone()]).wait(9);
    let before = total(&story);
    story.poll("team", vec![stopped(llama)]);
    assert_eq!(story.questions(), [Question::Days(november())]);
    assert!(total(&story) >= before);
    story.wait(20);
    assert!(total(&story) >= before);
}

#[test]
fn figures_tick_every_five_seconds() {
    let mut story = spend();
    let mut seen = vec![total(&story)];
    for _ in 0..20 {
        story.wait(1);
        if seen.last() != Some(&total(&story)) {
            seen.push(total(&story));
        }
    }
    assert_eq!(seen.len(), 5, "{seen:?}");
    assert!(seen.is_sorted());
}

#[test]
fn at_midnight_the_days_are_others() {
    let mut story = spend();
    story.press("w").code(Code::Up).code(Code::Up).code(Code::Enter).books(books);
    assert_eq!(story.state.view.spend.range, crate::rules::spend::Range::Day);
    let midnight = at("2026-11-30T16:00:00Z");
    story.now = midnight - jiff::SignedDuration::from_secs(1);
    story.wait(2);
    // So long a pause is a sleep, after which the ledger is read anew.
    let memory = Box::new(crate::rules::memory::Memory::default());
    story.world(WorldEvent::Remembered { memory, notices: Vec::new() });
    let asked = story.questions();
    assert!(asked.contains(&Question::Days(Period::day(date("2026-12-01")))), "{asked:?}");
}

fn of_three(amounts: [&str; 3]) -> impl Fn(&Question) -> Answer {
    move |question| {
        let cell = |(project, amount): (&str, &str)| Cell {
            terms: terms(Some(project), Component::Compute),
            amount: exact(amount),
            ..pieces().remove(0)
        };
        answer_of(question, ["a", "b", "c"].into_iter().zip(amounts).map(cell).collect())
    }
}

/// COST-16 and COST-13.
#[rstest]
#[case::uneven(["0.333", "0.333", "0.333"], &["a 0.33", "b 0.33", "c 0.33", "total (rows rounded) 1.00"], &[])]
#[case::even(["0.33", "0.33", "0.34"], &["total 1.00"], &["rounded"])]
#[case::small(["0.0021", "0.0001", "12"], &["b <0.01", "total 12.00"], &[" 0.00"])]
fn rows_are_rounded_each_and_the_total_from_the_exact_sum(
    #[case] amounts: [&str; 3],
    #[case] told: &[&str],
    #[case] never: &[&str],
) {
    let mut story = Story::over(&["runpod/team"]);
    story.press("2").books(of_three(amounts));
    let screen = text(&mut story, 80, 24).replace(['▌', '═'], " ");
    let screen: Vec<String> =
        screen.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for told in told {
        assert!(screen.iter().any(|line| line.starts_with(told)), "{told} is not in {screen:#?}");
    }
    for never in never {
        assert!(!screen.iter().any(|line| line.contains(never)), "{never} is in {screen:#?}");
    }
}

/// Balances and polls are not of one moment: a small difference is no news.
#[rstest]
#[case::one_percent("202.00", false)]
#[case::more("203.50", true)]
#[case::less("196.00", true)]
fn what_a_balance_lost_is_told_from_a_sensible_amount_on(#[case] left: &str, #[case] told: bool) {
    let money = |amount: Decimal| Money::new(amount, Currency::USD);
    let mut story = Story::over(&["vast/me"]);
    story.press("2").books(|question| Answer {
        balances: vec![BalanceChange {
            account: "me".into(),
            from: at("2026-11-12T00:00:00Z"),
            to: at("2026-11-30T09:00:00Z"),
            first: money(Decimal::from(500)),
            last: money(Decimal::from(500) - left.parse::<Decimal>().unwrap()),
            paid_in: money(Decimal::ZERO),
            vouchers: None,
            charged: exact("200"),
        }],
        ..books(question)
    });
    let screen = text(&mut story, 120, 30);
    assert_eq!(screen.contains("unexplained") || screen.contains("less left"), told, "{screen}");
}

#[test]
fn a_figure_opens_asks_and_closes_and_its_end_is_where_it_ends() {
    let many = |question: &Question| {
        let mut answer = entries(question);
        let entry = answer.entries.last().cloned();
        answer.entries.extend(entry.into_iter().cycle().take(200));
        answer
    };
    let mut story = spend();
    story.press("ggg").wait(9);
    story.books(many).code(Code::Home).code(Code::Enter);
    let asked = story.questions();
    assert!(matches!(&asked[..], [Question::Entries { period, .. }] if *period == november()), "{asked:?}");
    for question in asked {
        story.event(crate::app::Event::View(crate::app::event::ViewEvent::Spend(Box::new(many(&question)))));
    }
    story.code(Code::End);
    assert!(text(&mut story, 80, 24).contains("still running"));
    story.wait(1).code(Code::Up);
    let up = text(&mut story, 80, 24);
    assert!(!up.contains("no total"), "one line up shows one line less at the end:\n{up}");
    story.wait(1).code(Code::Esc);
    assert!(story.state.view.modals.is_empty());
    story.wait(9);
    assert_eq!(story.questions(), []);
}

#[test]
fn typed_days_are_shown_and_wrong_ones_stay_in_the_field() {
    let mut story = spend();
    story.press("w2026-11-15..2026-11-01").code(Code::Enter);
    assert!(text(&mut story, 80, 24).contains("the last day is before the first"));
    for _ in 0..12 {
        story.code(Code::Backspace);
    }
    assert!(!text(&mut story, 80, 24).contains("the last day is before"), "it is being mended");
    story.code(Code::Enter);
    let typed = Period { from: date("2026-11-15"), to: date("2026-11-16") };
    assert_eq!(story.questions(), [Question::Days(typed), Question::Balances(typed)]);
}
