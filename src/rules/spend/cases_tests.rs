//! What happened to people, with the amounts that it should have come to.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use providers::error::{ErrorKind, Problem, RequestLine};
use providers::model::{Component, Granularity, Instance, Market, Phase, Rates, StorageKind};
use providers::money::{Currency, Rate};
use providers::provider::{Found, Part, Poll};
use rstest::rstest;
use rust_decimal::Decimal;

use super::driver::Watch;
use super::{Exact, date_of};
use crate::rules::samples::{at, failed, identity, instance, listed, usd, volume, with_storage};

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn dec(text: &str) -> Decimal {
    text.parse().unwrap()
}

fn running(hourly: &str) -> Instance {
    instance("A", Phase::Running, hourly)
}

fn started(hourly: &str, at: Timestamp) -> Instance {
    Instance { started_at: Some(at), ..running(hourly) }
}

fn stopped(disk: &str) -> Instance {
    let rates = Rates::known().with(Component::Disk, usd(disk));
    Instance { rates, ..instance("A", Phase::Stopped, "0") }
}

fn doubtful(phase: Phase, hourly: &str) -> Instance {
    let row = instance("A", phase, hourly);
    Instance { rates: row.rates.clone().doubtful(), ..row }
}

fn refused() -> Poll {
    failed(ErrorKind::Connect { message: "connection refused".to_owned() })
}

/// The same list at the pace of the account, from one time to before another.
fn every_15_s(watch: &mut Watch, from: Timestamp, to: Timestamp, poll: &Poll) {
    let mut now = from;
    while now < to {
        watch.poll(now, poll.clone());
        now += SignedDuration::from_secs(15);
    }
}

/// The total, then observed, inferred, assumed and possible.
fn amounts(watch: &Watch, now: Timestamp) -> [String; 5] {
    let sums = watch.usd("A", now);
    [sums.total(), sums.observed, sums.inferred, sums.assumed, sums.possible].map(|sum| sum.amount().to_string())
}

/// COST-01: an hour and a half is that, though rentop was closed for a third of it and came late.
#[test]
fn what_ran_while_nobody_looked_is_charged_by_the_providers_own_time() {
    let mut watch = Watch::new();
    let row = || listed(vec![started("3.6", at("10:00:00"))]);
    watch.poll(at("10:00:05"), row());
    watch.poll(at("10:30:00"), row());
    watch.restart();
    watch.poll(at("11:00:05"), row());
    watch.poll(at("11:30:00"), row());
    assert_eq!(amounts(&watch, at("11:30:00")), ["5.4", "0", "5.4", "0", "0"]);
}

/// COST-02: asleep over night, stopped in the evening.
#[test]
fn a_stop_that_was_slept_through_ends_the_charge_when_its_provider_says() {
    let mut watch = Watch::new();
    watch.poll(time("2026-11-29T18:00:00Z"), listed(vec![running("4.44")]));
    let stopped_at = Some(time("2026-11-29T18:42:00Z"));
    let row = Instance { stopped_at, rates: Rates::known(), ..instance("A", Phase::Stopped, "0") };
    watch.poll(time("2026-11-30T08:58:53Z"), listed(vec![row]));
    assert_eq!(amounts(&watch, time("2026-11-30T09:00:00Z")), ["3.108", "0", "3.108", "0", "0"]);
}

/// COST-03: gone for weeks. It is charged to its last sight, and what may lie beyond is no charge.
#[test]
fn what_went_unseen_is_charged_to_its_last_sight() {
    let mut watch = Watch::new();
    watch.poll(time("2026-10-14T07:00:00Z"), listed(vec![running("0.384")]));
    watch.poll(time("2026-10-14T09:00:00Z"), listed(vec![running("0.384")]));
    watch.restart();
    for clock in ["09:00:05", "09:01:05", "09:02:05"] {
        watch.poll(at(clock), listed(Vec::new()));
    }
    watch.found(at("09:02:06"), &identity("team", "A"), Found::NoSuchId);
    assert!(watch.fleet.instance(&"team".into(), &"A".into()).unwrap().is_gone());
    // Forty-seven days and two minutes at 0.384, as an upper limit.
    let beyond = Exact::over(usd("0.384"), time("2026-10-14T09:00:00Z"), at("09:02:06")).amount().to_string();
    assert_eq!(amounts(&watch, at("09:02:06")), ["0.768", "0", "0", "0.768", beyond.as_str()]);
}

/// COST-04: what was asked for and never came costs nothing.
#[test]
fn a_launch_that_failed_costs_nothing() {
    let mut watch = Watch::new();
    watch.poll(at("11:08:00"), listed(Vec::new()));
    assert!(watch.sums(None, at("11:08:00")).is_empty());
}

/// COST-05: compute and disk while it runs, the disk alone while it is stopped, and never the sum twice.
#[test]
fn a_stopped_instance_costs_its_disk() {
    let mut watch = Watch::new();
    let on = Instance { rates: running("0.8").rates.with(Component::Disk, usd("0.0021")), ..running("0.8") };
    every_15_s(&mut watch, at("00:00:00"), at("06:00:00"), &listed(vec![on]));
    every_15_s(&mut watch, at("06:00:00"), time("2026-12-01T00:00:15Z"), &listed(vec![stopped("0.0021")]));
    let end = time("2026-12-01T00:00:00Z");
    assert_eq!(amounts(&watch, end), ["4.8504", "4.8504", "0", "0", "0"]);
    assert_eq!(watch.usd("A", end).wasted.amount(), dec("0.0378"));
}

/// COST-06: the day on which clocks go forward has 23 hours to pay, and the one on which they go back 25.
#[rstest]
#[case("2026-03-07T05:00:00Z", "2026-03-10T04:00:00Z", ["24", "23", "24"])]
#[case("2026-10-31T04:00:00Z", "2026-11-03T05:00:00Z", ["24", "25", "24"])]
fn a_day_costs_the_hours_that_its_clocks_show(#[case] from: &str, #[case] to: &str, #[case] expected: [&str; 3]) {
    let mut watch = Watch::new();
    watch.poll(time(from), listed(vec![running("1")]));
    watch.poll(time(to), listed(vec![running("1")]));
    let days = watch.days(&TimeZone::get("America/New_York").unwrap(), time(to));
    assert_eq!(days.into_values().map(|day| day.to_string()).collect::<Vec<_>>(), expected);
}

/// COST-07: a run across the end of a month is charged to both.
#[test]
fn the_end_of_a_month_divides_a_run() {
    let mut watch = Watch::new();
    watch.poll(time("2026-11-29T12:00:00Z"), listed(vec![running("1.5")]));
    let row = Instance { rates: Rates::known(), ..instance("A", Phase::Stopped, "0") };
    watch.poll(time("2026-12-02T12:00:00Z"), listed(vec![row]));
    let now = time("2026-12-02T12:00:00Z");
    let of_month = |month: i8| -> Decimal {
        let days = watch.days(&TimeZone::UTC, now);
        days.into_iter().filter(|(day, _)| day.month() == month).map(|(_, amount)| amount).sum()
    };
    assert_eq!((of_month(11), of_month(12)), (dec("54"), dec("54")));
    assert_eq!(date_of(now, &TimeZone::UTC).month(), 12);
}

/// COST-08: currencies stand side by side.
#[test]
fn currencies_are_never_added() {
    let mut watch = Watch::new();
    let yuan = Rate::per_hour(dec("1.98"), Currency::CNY).unwrap();
    let other = Instance { rates: Rates::known().with(Component::Compute, yuan), ..instance("B", Phase::Running, "0") };
    let rows = listed(vec![running("2"), other]);
    watch.poll(at("10:00:00"), rows.clone());
    watch.poll(at("11:00:00"), rows);
    let sums = watch.sums(None, at("11:00:00"));
    let total = |currency| sums.of(currency).total().amount();
    assert_eq!((total(Currency::USD), total(Currency::CNY)), (dec("2"), dec("1.98")));
}

/// COST-09: a provider that charges at each full hour and at the end, each piece rounded up to a cent.
#[rstest]
#[case::looked_at_all_the_time(true)]
#[case::looked_at_twice(false)]
fn pieces_of_an_hour_are_rounded_up_each_on_its_own(#[case] often: bool) {
    let mut watch = Watch::new();
    let rate = Rate::per_hour(dec("0.98"), Currency::CNY).unwrap();
    let granularity = Granularity::ClockHours { round_up_to: dec("0.01") };
    let rates = Rates::known().with(Component::Compute, rate);
    let row = |phase, rates: &Rates| Instance { rates: rates.clone(), granularity, ..instance("A", phase, "0") };
    let on = listed(vec![row(Phase::Running, &rates)]);
    let off = listed(vec![row(Phase::Stopped, &Rates::known())]);
    let (start, end) = (time("2026-11-30T10:52:00+08:00"), time("2026-11-30T12:07:30+08:00"));
    if often {
        every_15_s(&mut watch, start, end, &on);
    } else {
        watch.poll(start, on);
    }
    watch.poll(end, off);
    let total = |now| watch.sums(None, now).of(Currency::CNY).total().amount();
    assert_eq!(total(end), dec("1.25"));
    let pieces: Vec<_> =
        watch.lumps.iter().map(|lump| (lump.at.to_string(), lump.amount.amount().to_string())).collect();
    let at = |text: &str, amount: &str| (text.to_owned(), amount.to_owned());
    // The hour in between is worth 0.98 exactly.
    let expected = [at("2026-11-30T03:00:00Z", "0.009333333333"), at("2026-11-30T04:07:30Z", "0.0075")];
    assert_eq!(pieces, expected);
}

/// What ends at a full hour has its last piece rounded up by that hour, and not once more by its end.
#[rstest]
#[case::seen_to_stop_then("12:00:00", "12:00:00", None)]
#[case::told_to_have_stopped_then("11:59:45", "12:00:10", Some("12:00:00"))]
#[case::told_after_a_gap("11:10:00", "14:30:00", Some("12:00:00"))]
#[case::gone_after_it("12:00:00", "12:00:15", None)]
fn an_end_at_a_full_hour_is_rounded_up_once(#[case] last: &str, #[case] end: &str, #[case] told: Option<&str>) {
    let mut watch = Watch::new();
    let granularity = Granularity::ClockHours { round_up_to: dec("0.01") };
    let row = |phase| Instance { granularity, started_at: Some(at("10:52:00")), ..instance("A", phase, "0.98") };
    let on = listed(vec![row(Phase::Running)]);
    every_15_s(&mut watch, at("10:52:00"), at(last), &on);
    if at(last) < at(end) {
        watch.poll(at(last), on);
    }
    let off = Instance { rates: Rates::known(), stopped_at: told.map(at), started_at: None, ..row(Phase::Stopped) };
    if told.is_none() && last != end {
        watch.poll(at(end), listed(Vec::new()));
        watch.released(at(end), &identity("team", "A"));
    } else {
        watch.poll(at(end), listed(vec![off]));
    }
    let pieces: Vec<_> = watch.lumps.iter().map(|lump| lump.at).collect();
    assert_eq!(pieces, [at("11:00:00")], "eight minutes; the whole hour after them is worth 0.98 exactly");
    assert_eq!(watch.usd("A", at(end)).total().amount(), dec("1.12"));
}

/// The same where the last piece is not worth whole cents.
#[test]
fn a_piece_that_ends_at_a_full_hour_is_rounded_up_once() {
    let mut watch = Watch::new();
    let granularity = Granularity::ClockHours { round_up_to: dec("0.01") };
    let row = |phase, rate| Instance { granularity, ..instance("A", phase, rate) };
    every_15_s(&mut watch, at("10:52:00"), at("11:00:00"), &listed(vec![row(Phase::Running, "0.98")]));
    let off = Instance { rates: Rates::known(), ..row(Phase::Stopped, "0") };
    watch.poll(at("11:00:00"), listed(vec![off]));
    assert_eq!((watch.lumps.len(), watch.usd("A", at("11:00:00")).total().amount()), (1, dec("0.14")));
}

/// COST-10: an announced price is charged from when it is charged, not from when it was announced or accepted.
#[test]
fn a_new_price_counts_from_then_on() {
    let mut watch = Watch::new();
    every_15_s(&mut watch, at("10:00:05"), at("12:00:05"), &listed(vec![started("0.36", at("10:00:00"))]));
    every_15_s(&mut watch, at("12:00:05"), at("14:00:15"), &listed(vec![started("0.72", at("10:00:00"))]));
    // Two hours and five seconds at 0.36, the first five by the provider's own time, and two hours at 0.72.
    assert_eq!(amounts(&watch, at("14:00:05")), ["2.1605", "2.16", "0.0005", "0", "0"]);
}

/// COST-11: eight hours of sleep are charged by the clock on the wall.
#[test]
fn sleep_is_charged_for() {
    let mut watch = Watch::new();
    every_15_s(&mut watch, at("10:00:00"), at("10:10:15"), &listed(vec![running("2")]));
    watch.poll(at("18:10:05"), listed(vec![running("2")]));
    let expected = ["16.336111111111", "0.333333333333", "0", "16.002777777778", "0"];
    assert_eq!(amounts(&watch, at("18:10:05")), expected);
}

/// COST-13: little a hour is not nothing a month.
#[test]
fn small_rates_add_up() {
    let mut watch = Watch::new();
    watch.poll(at("00:00:00"), listed(vec![stopped("0.0021")]));
    let month = at("00:00:00") + SignedDuration::from_hours(730);
    watch.poll(at("00:00:00") + SignedDuration::from_hours(24), listed(vec![stopped("0.0021")]));
    assert_eq!(watch.usd("A", at("00:00:00") + SignedDuration::from_hours(24)).total().amount(), dec("0.0504"));
    assert_eq!(watch.usd("A", month).total().amount(), dec("1.533"));
}

/// COST-15: what is being stopped is charged until it is.
#[test]
fn stopping_is_charged_until_it_is_stopped() {
    let mut watch = Watch::new();
    let stopping = instance("A", Phase::Stopping, "6");
    watch.poll(at("12:00:00"), listed(vec![running("6")]));
    every_15_s(&mut watch, at("12:00:15"), at("12:02:10"), &listed(vec![stopping]));
    watch.poll(at("12:02:10"), listed(vec![stopped("0")]));
    assert_eq!(amounts(&watch, at("12:03:00")), ["0.216666666667", "0.216666666667", "0", "0", "0"]);
}

/// COST-17: five starts that came to nothing: an upper limit, and no charge.
#[test]
fn a_start_that_came_to_nothing_is_an_upper_limit() {
    let mut watch = Watch::new();
    let mut now = at("10:00:00");
    for (turn, seconds) in [900, 900, 900, 120, 180].into_iter().enumerate() {
        let id = format!("A{turn}");
        let row = Instance { id: id.as_str().into(), ..doubtful(Phase::Provisioning, "21.52") };
        let end = now + SignedDuration::from_secs(seconds);
        every_15_s(&mut watch, now, end, &listed(vec![row.clone()]));
        watch.poll(end, listed(vec![row]));
        watch.released(end, &identity("team", &id));
        now = end + SignedDuration::from_secs(15);
        watch.poll(now, listed(Vec::new()));
    }
    let sums = watch.sums(None, now).of(Currency::USD);
    assert_eq!((sums.total(), sums.possible.amount()), (Exact::ZERO, dec("17.933333333333")));
    assert!(watch.fleet.burn().burn.is_zero());
}

/// LIFE-01: missing once, then back: as if it had been there.
#[test]
fn what_is_back_is_charged_without_a_gap() {
    let mut watch = Watch::new();
    watch.poll(at("10:00:00"), listed(vec![running("3.6")]));
    watch.poll(at("10:00:20"), listed(Vec::new()));
    assert_eq!(amounts(&watch, at("10:00:30")), ["0", "0", "0", "0", "0.03"], "since its last sight");
    watch.poll(at("10:00:40"), listed(vec![running("3.6")]));
    assert_eq!(amounts(&watch, at("10:01:00")), ["0.06", "0.06", "0", "0", "0"]);
}

/// LIFE-02: forty minutes without a network are charged on, as assumed, and stay so where nothing proves more.
#[rstest]
#[case::not_told(None, ["0.300666666667", "0", "0", "0.300666666667", "0"])]
#[case::proven(Some("13:00:00"), ["0.740666666667", "0", "0.740666666667", "0", "0"])]
fn an_outage_is_charged_on(#[case] started_at: Option<&str>, #[case] after: [&str; 5]) {
    let mut watch = Watch::new();
    let row = Instance { started_at: started_at.map(at), ..running("0.44") };
    watch.poll(at("14:00:00"), listed(vec![row.clone()]));
    for minute in ["14:05:00", "14:10:00", "14:15:00", "14:20:00", "14:25:00", "14:30:00", "14:35:00", "14:40:00"] {
        assert!(watch.poll(at(minute), refused()).is_empty());
    }
    let before = watch.usd("A", at("14:40:00"));
    assert_eq!(before.assumed.amount(), dec("0.293333333333"));
    watch.poll(at("14:41:00"), listed(vec![row]));
    assert_eq!(amounts(&watch, at("14:41:00")), after);
}

/// LIFE-03: a release is charged to the last list that still held the instance; the time to the proof that
/// it is gone is an upper limit.
#[test]
fn a_release_is_charged_to_the_last_sight() {
    let mut watch = Watch::new();
    for clock in ["15:00:00", "15:00:10", "15:00:20"] {
        watch.poll(at(clock), listed(vec![running("3.98")]));
    }
    watch.poll(at("15:00:40"), listed(vec![instance("A", Phase::Releasing, "3.98")]));
    watch.poll(at("15:01:00"), listed(Vec::new()));
    watch.poll(at("15:01:30"), listed(Vec::new()));
    watch.found(at("15:01:31"), &identity("team", "A"), Found::NoSuchId);
    let expected = ["0.044222222222", "0.044222222222", "0", "0", "0.056383333333"];
    assert_eq!(amounts(&watch, at("15:05:00")), expected);
}

/// LIFE-06: a start that was refused costs what being stopped costs.
#[test]
fn a_refused_start_changes_no_charge() {
    let mut watch = Watch::new();
    let (start, end) = (time("2026-09-14T03:26:00Z"), time("2026-09-16T03:26:00Z"));
    watch.poll(start, listed(vec![stopped("0.044")]));
    watch.poll(time("2026-09-14T04:01:00Z"), listed(vec![stopped("0.044")]));
    watch.poll(end, listed(vec![stopped("0.044")]));
    let sums = watch.usd("A", end);
    assert_eq!((sums.total().amount(), sums.wasted), (dec("2.112"), sums.total()));
}

/// LIFE-09: where being off is charged in full it counts in full, as waste.
#[test]
fn off_may_cost_in_full() {
    let mut watch = Watch::new();
    let euro = Rate::per_hour(dec("0.8"), Currency::EUR).unwrap();
    let scw = Instance { rates: Rates::known().with(Component::Compute, euro), ..instance("scw", Phase::Stopped, "0") };
    let both = listed(vec![scw, instance("do", Phase::Stopped, "3.39")]);
    for clock in ["00:00:00", "05:00:00", "12:00:00"] {
        watch.poll(at(clock), both.clone());
        if clock == "05:00:00" {
            let sums = watch.sums(Some("scw"), at(clock)).of(Currency::EUR);
            assert_eq!((sums.total().amount(), sums.wasted.amount()), (dec("4"), dec("4")));
        }
    }
    let sums = watch.usd("do", at("12:00:00"));
    assert_eq!((sums.total().amount(), sums.wasted.amount()), (dec("40.68"), dec("40.68")));
}

/// ORPH-01 to ORPH-03: what nobody uses is waste, and what a stopped instance holds is not.
#[test]
fn unattached_storage_is_waste_from_when_nobody_uses_it() {
    let mut watch = Watch::new();
    let rows = vec![instance("i-stopped", Phase::Stopped, "0"), instance("i-running", Phase::Running, "0")];
    let of_month = |amount: &str| Rate::of_month(dec(amount), Decimal::ONE, dec("730"), Currency::USD).unwrap();
    let item = |id: &str, rate, users: &[&str]| {
        let component = Component::Storage;
        providers::model::StorageItem { rates: Rates::known().with(component, rate), ..volume(id, "0", users) }
    };
    let address = |id: &str, users: &[&str]| providers::model::StorageItem {
        kind: StorageKind::Address,
        ..item(id, usd("0.005"), users)
    };
    let items = vec![
        item("vol-1", of_month("16"), &[]),
        item("vol-2", of_month("8"), &["i-stopped"]),
        item("vol-3", of_month("8"), &["i-running"]),
        address("eipalloc-1", &[]),
        address("eipalloc-2", &["i-stopped"]),
    ];
    let (start, end) = (at("00:00:00"), at("00:00:00") + SignedDuration::from_hours(730));
    watch.poll(start, with_storage(listed(rows.clone()), items.clone()));
    watch.poll(end, with_storage(listed(rows.clone()), items));
    let cents = |id: &str| {
        let sums = watch.usd(id, end);
        [sums.total(), sums.wasted].map(|sum| sum.amount().round_dp(6).normalize().to_string())
    };
    assert_eq!(cents("vol-1"), ["16", "16"]);
    assert_eq!(cents("vol-2"), ["8", "0"]);
    assert_eq!(cents("vol-3"), ["8", "0"]);
    assert_eq!(cents("eipalloc-1"), ["3.65", "3.65"]);
    assert_eq!(cents("eipalloc-2"), ["3.65", "0"]);
    // Its user lets go of it: waste from the next look on, the price being the same.
    watch.poll(
        end + SignedDuration::from_secs(60),
        with_storage(listed(rows.clone()), vec![volume("vol-3", "0.6", &[])]),
    );
    watch.poll(end + SignedDuration::from_secs(120), with_storage(listed(rows), vec![volume("vol-3", "0.6", &[])]));
    assert_eq!(watch.usd("vol-3", end + SignedDuration::from_secs(120)).wasted.amount(), dec("0.01"));
}

/// API-01: two polls that failed hide no cost.
#[test]
fn a_retired_address_hides_no_cost() {
    let mut watch = Watch::new();
    let rows = [("a", "0.351"), ("b", "0.622"), ("c", "1.204")].map(|(id, rate)| instance(id, Phase::Running, rate));
    let retired = || failed(ErrorKind::Retired { status: 410, message: Some("deprecated_endpoint".to_owned()) });
    watch.poll(at("10:00:00"), listed(rows.to_vec()));
    watch.poll(at("10:05:00"), retired());
    watch.poll(at("10:10:00"), retired());
    let total = |watch: &Watch, now| watch.sums(None, now).of(Currency::USD).total().amount();
    assert_eq!(total(&watch, at("10:15:00")), dec("0.54425"));
    watch.poll(at("10:15:00"), listed(rows.to_vec()));
    assert_eq!(total(&watch, at("10:15:00")), dec("0.54425"));
}

/// API-10: a start that was answered with an error is charged from the start that the provider tells.
#[test]
fn a_start_is_charged_from_the_providers_own_time() {
    let mut watch = Watch::new();
    watch.poll(at("11:59:50"), listed(vec![stopped("0")]));
    watch.poll(at("12:00:03"), listed(vec![started("0.44", at("12:00:01"))]));
    let hour = at("13:00:01");
    every_15_s(&mut watch, at("12:00:15"), hour, &listed(vec![started("0.44", at("12:00:01"))]));
    assert_eq!(amounts(&watch, hour), ["0.44", "0.44", "0", "0", "0"]);
}

/// API-12: a release that is slow to come true is charged until it is.
#[test]
fn a_slow_release_is_charged_until_it_is_gone() {
    let mut watch = Watch::new();
    every_15_s(&mut watch, at("09:00:00"), at("09:01:15"), &listed(vec![instance("A", Phase::Releasing, "2")]));
    watch.poll(at("09:01:30"), listed(Vec::new()));
    watch.released(at("09:01:45"), &identity("team", "A"));
    // Until somebody says that it is gone it may run, whatever a list lacks: 0.05 up to that list, of which half
    // a minute is not sure, and a quarter of a minute that may come on top of it.
    let sums = watch.usd("A", at("09:02:00"));
    assert_eq!(sums.total(), Exact::over(usd("2"), at("09:00:00"), at("09:01:00")));
    assert_eq!(sums.possible, Exact::over(usd("2"), at("09:01:00"), at("09:01:45")));
    let up_to_the_list = Exact::over(usd("2"), at("09:01:00"), at("09:01:30"));
    assert_eq!((sums.total() + up_to_the_list).amount(), dec("0.05"));
}

/// Prepaid stands beside the total, and what of it stood still is unused, not waste.
#[test]
fn prepaid_is_in_no_total() {
    let mut watch = Watch::new();
    let market = Market::Reserved { until: None };
    let row = |phase| Instance { market, ..instance("A", phase, "1") };
    watch.poll(at("10:00:00"), listed(vec![row(Phase::Running)]));
    watch.poll(at("11:00:00"), listed(vec![row(Phase::Stopped)]));
    watch.poll(at("12:30:00"), listed(vec![row(Phase::Failed)]));
    watch.poll(at("13:00:00"), listed(vec![row(Phase::Failed)]));
    let sums = watch.usd("A", at("13:00:00"));
    assert_eq!((sums.total(), sums.wasted, sums.possible), (Exact::ZERO, Exact::ZERO, Exact::ZERO));
    assert_eq!((sums.prepaid.amount(), sums.unused.amount()), (dec("3"), dec("2")));
    assert!(sums.gpu_ms > 0, "it worked all the same");
}

/// A row that is never readable again is charged on as assumed: the list says nothing about it.
#[test]
fn what_a_partial_list_lacks_goes_on_as_assumed() {
    let mut watch = Watch::new();
    watch.poll(at("10:00:00"), listed(vec![running("3.6"), instance("B", Phase::Running, "1")]));
    let problems = vec![Problem {
        request: RequestLine("GET /instances".to_owned()),
        field: "instances[0].price".to_owned(),
        message: "missing".to_owned(),
    }];
    let rows = vec![instance("B", Phase::Running, "1")];
    let partial = Poll { instances: Part::Listed { rows, problems }, ..listed(Vec::new()) };
    every_15_s(&mut watch, at("10:00:15"), at("10:10:00"), &partial);
    assert_eq!(amounts(&watch, at("10:10:00")), ["0.6", "0", "0", "0.6", "0"]);
    assert_eq!(watch.usd("B", at("10:10:00")).assumed, Exact::ZERO);
    watch.poll(at("10:10:00"), listed(vec![running("3.6"), instance("B", Phase::Running, "1")]));
    assert_eq!(amounts(&watch, at("10:10:00")), ["0.6", "0", "0", "0.6", "0"]);
    watch.poll(at("10:10:15"), listed(vec![running("3.6"), instance("B", Phase::Running, "1")]));
    assert_eq!(amounts(&watch, at("10:10:15")), ["0.615", "0.015", "0", "0.6", "0"]);
}
