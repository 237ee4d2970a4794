//! Lines of a provider that overlap, cut at the same times: none takes the other's place.

use providers::model::{BilledLine, Component};
use providers::money::Currency;
use rstest::rstest;

use super::tests::*;
use crate::ledger::Ledger;
use crate::ledger::samples::at;
use crate::rules::spend::*;

type Times = (&'static str, &'static str);

fn line((from, to): Times, amount: &str) -> BilledLine {
    billed("a", at(from), at(to), amount)
}

fn billed_in_all(ledger: &mut Ledger) -> String {
    let sums = total(ledger, november());
    assert_eq!(sums.total(), sums.billed);
    money(sums.billed)
}

#[rstest]
#[case::they_end_together(("06:00", "10:00"), ("09:00", "10:00"), ("07:00", "09:00"))]
#[case::they_begin_together(("06:00", "08:00"), ("06:00", "10:00"), ("06:00", "07:00"))]
#[case::they_begin_together_and_the_shorter_is_not_cut(("06:00", "08:00"), ("06:00", "10:00"), ("08:00", "09:00"))]
#[case::one_lies_within_the_other(("06:00", "10:00"), ("07:00", "08:00"), ("07:00", "08:00"))]
#[case::each_reaches_beyond_the_other(("06:00", "09:00"), ("07:00", "10:00"), ("07:00", "09:00"))]
fn lines_that_overlap_keep_their_money(#[case] one: Times, #[case] other: Times, #[case] (from, to): Times) {
    let mut ledger = Ledger::in_memory().unwrap();
    let lines = [line(one, "0.000007"), line(other, "3")];
    let import_all = |ledger: &mut Ledger| import(ledger, at("06:00"), at("10:00"), &lines);
    import_all(&mut ledger);
    let fresh = rows(&ledger);
    let whole = total(&mut ledger, november());
    let (from, to) = (at(from), Some(at(to)));
    let steps: [&dyn Fn(&mut Ledger); 9] = [
        &|ledger| mark(ledger, "a", from, to, true),
        &|ledger| mark(ledger, "a", from, to, true),
        &import_all,
        &|ledger| assign(ledger, "a", Some(from), Some("vision")),
        &|ledger| mark(ledger, "a", at("07:30"), None, true),
        &|ledger| mark(ledger, "a", from, to, false),
        &|ledger| assign(ledger, "a", to, Some("speech")),
        &import_all,
        &|ledger| mark(ledger, "a", at("05:00"), None, false),
    ];
    for (number, step) in steps.iter().enumerate() {
        step(&mut ledger);
        let sums = total(&mut ledger, november());
        assert_eq!(money(sums.billed), "3.000007", "after step {number}");
    }
    // Nothing is told of them any more but one owner: each is one row again.
    assign(&mut ledger, "a", None, None);
    import_all(&mut ledger);
    assert_eq!((rows(&ledger), total(&mut ledger, november())), (fresh, whole));
}

#[rstest]
#[case::told_together(&[("06:00", "10:00")])]
#[case::told_one_after_the_other(&[("06:00", "08:00"), ("08:00", "10:00")])]
#[case::told_the_later_first(&[("08:00", "10:00"), ("06:00", "08:00")])]
fn lines_that_overlap_are_both_there_where_our_own_spans_cut_them(#[case] windows: &[Times]) {
    let mut ledger = Ledger::in_memory().unwrap();
    let of = |project: &str, from: &str, to: &str| Span { terms: compute(Some(project)), ..observed("a", from, to) };
    enter(&mut ledger, spans(vec![of("vision", "06:00", "08:00"), of("speech", "08:00", "10:00")]));
    let lines = [line(("06:00", "10:00"), "4"), line(("08:00", "10:00"), "1")];
    for (from, to) in windows {
        let told = lines.iter().filter(|line| at(from) <= line.from && line.from < at(to));
        import(&mut ledger, at(from), at(to), &told.cloned().collect::<Vec<_>>());
    }
    assert_eq!(billed_in_all(&mut ledger), "5");
}

#[test]
fn a_line_that_is_taken_back_leaves_the_one_that_it_overlaps() {
    let mut ledger = Ledger::in_memory().unwrap();
    import(&mut ledger, at("06:00"), at("10:00"), &[line(("06:00", "10:00"), "4"), line(("08:00", "10:00"), "1")]);
    mark(&mut ledger, "a", at("06:00"), Some(at("08:00")), true);
    import(&mut ledger, at("08:00"), at("10:00"), &[]);
    assert_eq!(entries(&mut ledger, "a"), ["30 06:00-30 08:00 billed 2", "30 08:00-30 10:00 billed 2"]);
    import(&mut ledger, at("06:00"), at("08:00"), &[]);
    assert_eq!(billed_in_all(&mut ledger), "0");
}

/// A line whose end is corrected is still the one that was marked.
#[test]
fn a_corrected_line_keeps_its_mark() {
    let mut ledger = Ledger::in_memory().unwrap();
    import(&mut ledger, at("06:00"), at("10:00"), &[line(("06:00", "10:00"), "4")]);
    mark(&mut ledger, "a", at("08:00"), Some(at("10:00")), true);
    for (to, amount, wasted) in [("09:00", "3", "1"), ("10:00", "4", "2")] {
        import(&mut ledger, at("06:00"), at("10:00"), &[line(("06:00", to), amount)]);
        let sums = total(&mut ledger, november());
        assert_eq!([sums.billed, sums.wasted].map(money), [amount, wasted]);
    }
}

#[test]
fn lines_of_components_with_times_of_their_own_are_all_found_again() {
    let mut ledger = Ledger::in_memory().unwrap();
    let disk = BilledLine { component: Component::Disk, ..line(("08:00", "09:00"), "1") };
    import(&mut ledger, at("06:00"), at("10:00"), &[line(("06:00", "10:00"), "4"), disk]);
    mark(&mut ledger, "a", at("09:30"), None, true);
    let sums = total(&mut ledger, november());
    assert_eq!([sums.billed, sums.wasted].map(money), ["5", "0.5"]);
}

#[rstest]
#[case::marked(|ledger: &mut Ledger| mark(ledger, "a", at("08:00"), Some(at("09:00")), true))]
#[case::assigned(|ledger: &mut Ledger| assign(ledger, "a", None, Some("vision")))]
fn a_charge_of_one_moment_is_entered_once_whatever_became_of_it(#[case] change: fn(&mut Ledger)) {
    let mut ledger = Ledger::in_memory().unwrap();
    let lump = Lump {
        identity: pod("a"),
        terms: compute(None),
        at: at("09:00"),
        amount: Exact::of("0.5".parse().unwrap()),
        currency: Currency::USD,
        evidence: Evidence::Observed,
    };
    let look = Entries { lumps: vec![lump], ..Entries::default() };
    for _ in 0..2 {
        enter(&mut ledger, look.clone());
        change(&mut ledger);
        assert_eq!(money(total(&mut ledger, november()).total()), "0.5");
    }
}
