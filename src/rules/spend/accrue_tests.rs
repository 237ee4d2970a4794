//! Sights that are easily taken for something else.

use jiff::{SignedDuration, Timestamp};
use providers::model::{Component, Granularity, Instance, Phase, Rates};
use providers::money::Currency;
use providers::provider::Found;
use rstest::rstest;

use super::driver::Watch;
use super::{Exact, Meter};
use crate::rules::samples::{at, identity, instance, listed, usd, volume, with_storage};

fn running(started_at: Option<&str>) -> Instance {
    Instance { started_at: started_at.map(at), ..instance("A", Phase::Running, "3.6") }
}

/// Stopped, with a disk at 0.36.
fn stopped(stopped_at: Option<&str>) -> Instance {
    let rates = Rates::known().with(Component::Disk, usd("0.36"));
    Instance { rates, stopped_at: stopped_at.map(at), ..instance("A", Phase::Stopped, "0") }
}

fn starting(started_at: Option<&str>) -> Instance {
    let row = Instance { phase: Phase::Provisioning, ..running(started_at) };
    Instance { rates: row.rates.clone().doubtful(), ..row }
}

fn gone(stopped_at: &str) -> Instance {
    Instance { phase: Phase::Gone, stopped_at: Some(at(stopped_at)), ..running(None) }
}

fn decimal(text: &str) -> rust_decimal::Decimal {
    text.parse().unwrap()
}

fn counted(seconds: u32) -> Granularity {
    Granularity::Steps { seconds, least_seconds: 0 }
}

/// In thousandths of a dollar, a second of compute being one: observed, inferred, assumed, possible.
#[track_caller]
fn check(watch: &Watch, now: &str, expected: [i64; 4]) {
    let sums = watch.usd("A", at(now));
    let found = [sums.observed, sums.inferred, sums.assumed, sums.possible];
    let thousandths = |amount: i64| Exact::over(usd("3.6"), at("00:00:00"), second(amount));
    assert_eq!(found, expected.map(thousandths), "{:#?}", watch.all(at(now)));
}

fn second(seconds: i64) -> Timestamp {
    at("00:00:00") + SignedDuration::from_secs(seconds)
}

fn look(watch: &mut Watch, clock: &str, row: Instance) {
    watch.poll(at(clock), listed(vec![row]));
}

#[test]
fn a_restart_within_a_gap_leaves_the_time_before_it_assumed() {
    let mut watch = Watch::new();
    look(&mut watch, "10:00:00", running(Some("10:00:00")));
    look(&mut watch, "11:00:00", running(Some("10:50:00")));
    check(&watch, "11:00:00", [0, 600, 3000, 0]);
}

#[test]
fn a_restart_ends_a_run_and_begins_another() {
    let mut watch = Watch::new();
    let row = |started: &str| Instance { granularity: counted(3600), ..running(Some(started)) };
    look(&mut watch, "10:00:00", row("10:00:00"));
    look(&mut watch, "10:00:20", row("10:00:10"));
    assert_eq!(
        watch.lumps.iter().map(|lump| lump.amount).collect::<Vec<_>>(),
        [Exact::over(usd("3.6"), second(10), second(3600))]
    );
    check(&watch, "10:00:20", [3610, 0, 0, 0]);
}

#[test]
fn a_run_between_two_sights_of_rest_is_not_proven_to_be_none() {
    let mut watch = Watch::new();
    look(&mut watch, "10:00:00", stopped(Some("09:00:00")));
    look(&mut watch, "11:00:00", stopped(Some("10:30:00")));
    check(&watch, "11:00:00", [0, 360, 360, 0]);
}

#[test]
fn what_may_have_been_charged_was_once_its_provider_says_since_when() {
    let mut watch = Watch::new();
    look(&mut watch, "12:00:03", starting(Some("12:00:01")));
    check(&watch, "12:00:10", [0, 0, 0, 7]);
    look(&mut watch, "12:00:18", starting(Some("12:00:01")));
    look(&mut watch, "12:00:33", running(Some("12:00:01")));
    check(&watch, "12:00:33", [32, 0, 0, 0]);
}

#[test]
fn what_started_later_than_it_was_seen_starting_is_charged_from_then() {
    let mut watch = Watch::new();
    look(&mut watch, "12:00:00", starting(None));
    look(&mut watch, "12:00:15", starting(None));
    look(&mut watch, "12:00:30", running(Some("12:00:10")));
    check(&watch, "12:00:30", [20, 0, 0, 10]);
}

#[test]
fn a_start_out_of_rest_is_possible_from_the_providers_own_time() {
    let mut watch = Watch::new();
    look(&mut watch, "12:00:00", stopped(None));
    look(&mut watch, "12:00:20", starting(Some("12:00:10")));
    check(&watch, "12:00:20", [1, 0, 0, 10]);
}

#[test]
fn a_word_that_nobody_knows_interrupts_no_run_that_is_proven() {
    let mut watch = Watch::new();
    let unknown = || Instance { phase: Phase::Unknown, ..starting(None) };
    look(&mut watch, "12:00:00", running(Some("11:59:00")));
    look(&mut watch, "12:00:15", unknown());
    look(&mut watch, "12:00:30", unknown());
    check(&watch, "12:00:30", [15, 60, 0, 15]);
    look(&mut watch, "12:00:45", running(Some("11:59:00")));
    check(&watch, "12:00:45", [45, 60, 0, 0]);
}

#[test]
fn nothing_is_charged_again_from_before_its_first_sight() {
    let mut watch = Watch::new();
    let disk =
        |row: Instance, hourly: &str| Instance { rates: row.rates.clone().with(Component::Disk, usd(hourly)), ..row };
    look(&mut watch, "12:00:10", disk(starting(Some("12:00:00")), "3.6"));
    look(&mut watch, "12:00:20", disk(running(Some("12:00:00")), "7.2"));
    // Compute and disk: ten seconds at the old price of the disk, the rest at the new one.
    check(&watch, "12:00:20", [20 + 20, 10, 0, 0]);
}

#[rstest]
#[case::noticed_at_once("10:00:15", "10:00:10", [10, 0, 0, 0])]
#[case::after_a_gap("11:00:00", "10:30:00", [0, 1800, 0, 0])]
#[case::before_it_was_last_seen_so("10:00:15", "09:59:59", [0, 0, 0, 15])]
fn an_end_is_where_its_provider_says(#[case] listed_at: &str, #[case] ended: &str, #[case] expected: [i64; 4]) {
    let mut watch = Watch::new();
    look(&mut watch, "10:00:00", running(None));
    look(&mut watch, listed_at, gone(ended));
    check(&watch, "12:00:00", expected);
}

#[test]
fn a_stopped_machine_that_goes_is_charged_to_its_last_sight() {
    let mut watch = Watch::new();
    look(&mut watch, "10:00:00", stopped(Some("09:00:00")));
    look(&mut watch, "10:00:10", gone("10:00:05"));
    check(&watch, "10:01:00", [0, 360, 0, 1]);
}

#[test]
fn a_list_that_lags_behind_the_providers_own_time_gives_way_to_it() {
    let mut watch = Watch::new();
    look(&mut watch, "10:00:00", running(None));
    look(&mut watch, "10:00:15", running(None));
    look(&mut watch, "10:00:30", stopped(Some("10:00:10")));
    // Ten seconds of compute and twenty of the disk.
    check(&watch, "10:00:30", [12, 0, 0, 0]);
}

#[rstest]
#[case::by_its_own_time(Some("09:00:00"), 90)]
#[case::without_one(None, 60)]
fn what_is_back_from_being_gone_is_charged_once(#[case] started_at: Option<&str>, #[case] charged: i64) {
    let mut watch = Watch::new();
    look(&mut watch, "10:00:00", running(None));
    look(&mut watch, "10:00:15", running(None));
    for clock in ["10:00:30", "10:00:45"] {
        watch.poll(at(clock), listed(Vec::new()));
    }
    watch.found(at("10:00:45"), &identity("team", "A"), Found::NoSuchId);
    check(&watch, "10:00:45", [15, 0, 0, 30]);
    look(&mut watch, "10:00:45", running(started_at));
    look(&mut watch, "10:01:00", running(started_at));
    look(&mut watch, "10:01:15", running(started_at));
    look(&mut watch, "10:01:30", running(started_at));
    let sums = watch.usd("A", at("10:01:30"));
    assert_eq!(sums.total(), Exact::over(usd("3.6"), second(0), second(charged)));
}

/// The list has it back before the question by id has, or the other way round.
#[test]
fn what_is_found_by_id_is_charged_from_then_and_once() {
    let mut watch = Watch::new();
    look(&mut watch, "10:00:00", running(None));
    watch.poll(at("10:00:15"), listed(Vec::new()));
    watch.poll(at("10:00:30"), listed(Vec::new()));
    watch.found(at("10:00:31"), &identity("team", "A"), Found::NoSuchId);
    let row = running(Some("10:00:32"));
    watch.found(at("10:00:40"), &identity("team", "A"), Found::Instance(Box::new(row.clone())));
    watch.found(at("10:00:41"), &identity("team", "A"), Found::Instance(Box::new(row.clone())));
    look(&mut watch, "10:00:45", row.clone());
    look(&mut watch, "10:01:00", row);
    check(&watch, "10:01:00", [20, 8, 0, 31]);
}

#[test]
fn another_machine_under_the_same_id_is_charged_apart() {
    let mut watch = Watch::new();
    let made = |created: &str, row: Instance| Instance { created_at: Some(at(created)), ..row };
    look(&mut watch, "10:00:00", made("09:00:00", running(None)));
    look(&mut watch, "10:00:15", made("10:00:05", running(Some("10:00:08"))));
    let spans = watch.all(at("10:00:15"));
    let seconds = |generation, certain| -> i64 {
        let of = spans.iter().filter(|span| span.identity.generation == generation);
        let of = of.filter(|span| (span.terms.charge == super::Charge::Certain) == certain);
        of.map(|span| span.to.duration_since(span.from).as_secs()).sum()
    };
    assert_eq!([seconds(0, true), seconds(0, false), seconds(1, true), seconds(1, false)], [0, 15, 7, 0]);
}

#[test]
fn a_start_in_the_future_of_a_slow_clock_begins_no_run_twice() {
    let mut watch = Watch::new();
    let row = |hourly| Instance {
        granularity: counted(60),
        started_at: Some(at("10:00:20")),
        ..instance("A", Phase::Running, hourly)
    };
    look(&mut watch, "10:00:00", row("3.6"));
    look(&mut watch, "10:00:15", row("3.6"));
    // A look at what has changed, when the clock says that it starts.
    look(&mut watch, "10:00:30", row("7.2"));
    assert_eq!(watch.lumps, []);
    look(&mut watch, "10:01:15", Instance { granularity: counted(60), ..stopped(None) });
    assert_eq!(watch.lumps.len(), 1);
}

#[test]
fn what_only_may_be_charged_is_not_rounded_up() {
    let mut watch = Watch::new();
    let row = || Instance { granularity: counted(3600), ..starting(None) };
    look(&mut watch, "10:00:00", row());
    look(&mut watch, "10:00:15", row());
    look(&mut watch, "10:00:30", stopped(None));
    assert_eq!(watch.lumps, []);
    check(&watch, "10:00:30", [0, 0, 0, 30]);
}

#[test]
fn what_was_paid_ahead_costs_nothing_beyond_its_last_sight() {
    let mut watch = Watch::new();
    let market = providers::model::Market::Reserved { until: None };
    let row = |row| Instance { market, ..row };
    look(&mut watch, "10:00:00", row(running(None)));
    look(&mut watch, "10:00:15", row(Instance { phase: Phase::Gone, ..running(None) }));
    let sums = watch.usd("A", at("10:00:15"));
    assert_eq!((sums.total(), sums.possible, sums.prepaid), Default::default());
}

/// A provider that says one thing and then another: what was charged stands, and is not charged again.
#[test]
fn an_end_within_what_was_charged_already_is_no_end() {
    let mut watch = Watch::new();
    look(&mut watch, "10:00:00", stopped(None));
    look(&mut watch, "11:00:00", running(Some("10:30:00")));
    look(&mut watch, "11:00:15", gone("10:45:00"));
    look(&mut watch, "11:00:30", running(Some("10:40:00")));
    let compute = watch
        .all(at("11:00:30"))
        .into_iter()
        .filter(|span| (span.terms.component, span.terms.charge) == (Component::Compute, super::Charge::Certain));
    let seconds: i64 = compute.map(|span| span.to.duration_since(span.from).as_secs()).sum();
    assert_eq!(seconds, 1800 + 30);
}

/// Found by id, after which the clock is set back before that.
#[test]
fn what_its_own_time_proved_is_not_charged_again_by_a_clock_that_was_set_back() {
    let mut watch = Watch::new();
    look(&mut watch, "10:00:00", running(None));
    watch.poll(at("10:00:15"), listed(Vec::new()));
    watch.poll(at("10:00:30"), listed(Vec::new()));
    watch.found(at("10:00:31"), &identity("team", "A"), Found::NoSuchId);
    let row = running(Some("10:00:40"));
    watch.found(at("10:01:20"), &identity("team", "A"), Found::Instance(Box::new(row.clone())));
    assert!(watch.meter.running().contains_key(&identity("team", "A")));
    look(&mut watch, "10:00:50", Instance { rates: Rates::known(), ..stopped(None) });
    look(&mut watch, "10:01:00", row.clone());
    look(&mut watch, "10:01:30", row);
    let total = watch.usd("A", at("10:01:30")).total();
    assert_eq!(total, Exact::over(usd("3.6"), second(0), second(50)));
}

/// Gone, the clock set back before that, and back.
#[test]
fn what_may_have_been_charged_beyond_its_end_may_not_be_charged_twice() {
    let mut watch = Watch::new();
    look(&mut watch, "10:00:00", starting(None));
    for clock in ["10:00:15", "10:00:30"] {
        watch.poll(at(clock), listed(Vec::new()));
    }
    watch.found(at("10:00:30"), &identity("team", "A"), Found::NoSuchId);
    check(&watch, "10:00:30", [0, 0, 0, 30]);
    let mut earlier = Watch::new();
    look(&mut earlier, "10:00:00", starting(None));
    earlier.found(at("10:00:20"), &identity("team", "A"), Found::NoSuchId);
    look(&mut earlier, "09:59:50", gone("08:00:00"));
    look(&mut earlier, "09:59:55", starting(None));
    look(&mut earlier, "10:00:30", starting(None));
    check(&earlier, "10:00:30", [0, 0, 0, 30]);
}

#[test]
fn what_is_charged_already_does_not_begin_between_two_looks() {
    let mut watch = Watch::new();
    look(&mut watch, "10:00:00", running(None));
    let known = &watch.fleet.instances[&identity("team", "A")];
    let charged = super::Charged::instance(&watch.fleet, &watch.settings, known);
    let look = super::Look::new(&watch.fleet, &"team".into(), providers::model::ResourceKind::Instance, at("10:00:10"));
    let entries = watch.meter.single(&look, &identity("team", "A"), super::Seen::Now, charged);
    assert!(entries.is_empty());
}

#[rstest]
#[case::zero("1970-01-01T00:00:00Z")]
#[case::zero_of_another_calendar("0001-01-01T00:00:00Z")]
fn a_time_that_is_no_time_proves_nothing(#[case] started_at: &str) {
    let mut watch = Watch::new();
    let row = Instance { started_at: Some(started_at.parse().unwrap()), ..running(None) };
    look(&mut watch, "10:00:00", row.clone());
    look(&mut watch, "10:00:15", row);
    check(&watch, "10:00:15", [15, 0, 0, 0]);
}

#[test]
fn a_clock_that_was_set_back_charges_no_time_again() {
    let mut watch = Watch::new();
    for clock in ["10:00:00", "10:00:15", "09:00:00", "09:00:15", "10:00:05", "10:00:30"] {
        look(&mut watch, clock, running(None));
    }
    check(&watch, "10:00:30", [30, 0, 0, 0]);
    look(&mut watch, "09:20:00", running(None));
    check(&watch, "09:20:00", [30, 0, 0, 0]);
    look(&mut watch, "09:30:00", stopped(None));
    check(&watch, "09:30:00", [30, 0, 0, 0]);
}

#[test]
fn a_pace_that_has_just_become_faster_makes_no_gap() {
    let mut watch = Watch::new();
    look(&mut watch, "10:00:00", stopped(None));
    look(&mut watch, "10:01:00", stopped(None));
    watch.poll(at("10:02:00"), listed(vec![stopped(None), instance("B", Phase::Running, "1")]));
    check(&watch, "10:02:00", [12, 0, 0, 0]);
}

#[test]
fn storage_is_looked_at_more_rarely_and_that_is_no_gap() {
    let mut watch = Watch::new();
    for clock in ["10:00:00", "10:01:10", "10:02:20", "10:03:30"] {
        let poll = listed(vec![instance("B", Phase::Running, "1")]);
        watch.poll(at(clock), with_storage(poll, vec![volume("A", "3.6", &[])]));
    }
    check(&watch, "10:03:30", [210, 0, 0, 0]);
    assert!(watch.spans.iter().all(|span| span.identity.id.as_str() != "A"), "nothing is closed before it changes");
}

#[test]
fn what_nobody_looks_at_any_more_is_charged_to_the_last_look_until_somebody_does() {
    let mut watch = Watch::new();
    look(&mut watch, "10:00:00", running(None));
    look(&mut watch, "10:00:15", running(None));
    watch.meter.leave_unwatched(&"team".into());
    assert!(!watch.meter.ticks(&identity("team", "A")));
    check(&watch, "12:00:00", [15, 0, 0, 0]);
    look(&mut watch, "10:00:30", running(None));
    assert!(watch.meter.ticks(&identity("team", "A")));
    check(&watch, "10:00:40", [40, 0, 0, 0]);
}

/// What is shown between two looks is what the next look writes down, nothing having changed.
#[test]
fn what_is_beyond_the_last_look_is_observed_until_looks_are_overdue() {
    let mut watch = Watch::new();
    look(&mut watch, "10:00:00", running(None));
    look(&mut watch, "10:00:15", running(None));
    check(&watch, "10:00:55", [55, 0, 0, 0]);
    check(&watch, "10:01:10", [15, 0, 55, 0]);
}

#[test]
fn a_project_gets_what_is_charged_from_the_last_look_on() {
    let mut watch = Watch::new();
    look(&mut watch, "10:00:00", running(None));
    look(&mut watch, "10:00:15", running(None));
    let entries = watch.meter.assign(&identity("team", "A"), Some(&"thesis".into()));
    watch.keep(&entries);
    let of = |project: Option<&str>| -> i64 {
        let spans = watch.all(at("10:00:20"));
        let own = spans.iter().filter(|span| span.terms.project.as_deref() == project);
        own.map(|span| span.to.duration_since(span.from).as_secs()).sum()
    };
    assert_eq!((of(None), of(Some("thesis"))), (15, 5));
}

/// Closed to where the provider's records reach, and no further than was looked at.
#[rstest]
#[case("10:00:10", 10)]
#[case("12:00:00", 15)]
fn a_cut_closes_what_was_looked_at(#[case] to: &str, #[case] closed: i64) {
    let mut watch = Watch::new();
    look(&mut watch, "10:00:00", running(None));
    look(&mut watch, "10:00:15", running(None));
    let entries = watch.meter.cut(&"team".into(), at(to));
    watch.keep(&entries);
    let seconds: i64 = watch.spans.iter().map(|span| span.to.duration_since(span.from).as_secs()).sum();
    assert_eq!(seconds, closed);
    check(&watch, "10:00:15", [15, 0, 0, 0]);
    // A word about a time before the cut comes too late for it.
    look(&mut watch, "10:00:20", stopped(Some("10:00:05")));
    assert_eq!(watch.usd("A", at("10:00:20")).total(), Exact::over(usd("3.6"), second(0), second(20)));
}

#[test]
fn an_unchanged_account_adds_nothing_and_is_not_even_read() {
    let mut watch = Watch::new();
    look(&mut watch, "10:00:00", running(None));
    let before = watch.meter.clone();
    let look = super::Look::new(&watch.fleet, &"team".into(), providers::model::ResourceKind::Instance, at("10:00:15"));
    let identity = identity("team", "A");
    let rows = [(&identity, super::Seen::Now, || unreachable!("it is unchanged"))];
    let entries = watch.meter.look(&look, rows, Some(&std::collections::BTreeSet::new()));
    assert!(entries.is_empty());
    assert_eq!(before.running(), watch.meter.running());
    assert_eq!(Meter::default().horizon(&"team".into(), look.kind), None);
    assert_eq!(
        watch.sums(None, at("10:00:15")).of(Currency::USD).observed,
        Exact::over(usd("3.6"), second(0), second(15))
    );
}

/// An instance at a dollar an hour that did nothing from ten past ten to half past.
fn idle_for_a_while() -> Watch {
    let mut watch = Watch::new();
    let poll = || listed(vec![instance("a", Phase::Running, "1")]);
    watch.poll(at("10:00:00"), poll());
    watch.poll(at("10:01:00"), poll());
    let a = identity("team", "a");
    assert_eq!(watch.meter.idles(&a, at("10:10:00")), Some(at("10:10:00")));
    watch
}

fn wasted(watch: &Watch, now: &str) -> String {
    watch.usd("a", at(now)).wasted.amount().round_dp(6).normalize().to_string()
}

#[test]
fn what_an_instance_costs_while_it_does_nothing_is_waste_and_not_before_or_after() {
    let mut watch = idle_for_a_while();
    let a = identity("team", "a");
    assert_eq!((wasted(&watch, "10:10:00"), wasted(&watch, "11:10:00")), ("0".to_owned(), "1".to_owned()));
    watch.meter.works(&a, at("10:40:00"));
    assert_eq!(wasted(&watch, "11:10:00"), "0.5");
    // It does nothing again.
    watch.meter.idles(&a, at("11:10:00"));
    assert_eq!(wasted(&watch, "12:10:00"), "1.5");
    assert_eq!(watch.usd("a", at("12:10:00")).total().amount(), decimal("2.166666666667"));
}

#[test]
fn what_was_charged_while_it_did_nothing_is_told_at_the_rates_that_were_in_force() {
    let mut watch = idle_for_a_while();
    let a = identity("team", "a");
    let spent = |watch: &Watch, now: &str| watch.meter.charged_since(&a, at("10:10:00"), at(now));
    watch.poll(at("10:40:00"), listed(vec![instance("a", Phase::Running, "3")]));
    watch.poll(at("10:41:00"), listed(vec![instance("a", Phase::Running, "3")]));
    let dollars = |amount: &str| vec![(Currency::USD, Exact::of(decimal(amount)))];
    assert_eq!(spent(&watch, "11:40:00"), dollars("3.5"));
    let entries = watch.meter.cut(&"team".into(), at("10:41:00"));
    watch.keep(&entries);
    assert_eq!(spent(&watch, "11:40:00"), dollars("3.5"), "what is closed is not forgotten");
    assert_eq!(watch.usd("a", at("11:40:00")).wasted, Exact::of(decimal("3.5")));
    watch.restart();
    assert_eq!(watch.meter.idle_since(&a), None, "nobody has seen whether it works since then");
    assert_eq!(spent(&watch, "11:40:00"), dollars("4.5"), "what is not known is taken for charged as now");
}

#[test]
fn after_a_restart_it_was_idle_up_to_the_last_look_and_goes_on_when_that_is_proven() {
    let mut watch = Watch::new();
    let a = identity("team", "a");
    let poll = |hourly| listed(vec![instance("a", Phase::Running, hourly)]);
    watch.poll(at("10:00:00"), poll("1"));
    watch.meter.idles(&a, at("10:00:00"));
    watch.poll(at("10:00:30"), poll("2"));
    watch.poll(at("10:01:00"), poll("2"));
    watch.restart();
    assert_eq!(wasted(&watch, "11:00:00"), "0.025", "half a minute at each rate");
    assert_eq!(watch.meter.idles(&a, at("10:00:50")), Some(at("10:00:00")));
    assert_eq!(wasted(&watch, "10:30:30"), "1.008333");
}

#[test]
fn a_stop_ends_idleness() {
    let mut watch = idle_for_a_while();
    watch.poll(at("10:20:00"), listed(vec![instance("a", Phase::Running, "1")]));
    watch.poll(at("10:21:00"), listed(vec![instance("a", Phase::Stopped, "1")]));
    assert_eq!(watch.meter.idle_since(&identity("team", "a")), None);
}
