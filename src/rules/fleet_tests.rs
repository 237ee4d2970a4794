use std::time::Duration;

use jiff::ToSpan;
use proptest::prelude::*;
use providers::gpu::Gpus;
use providers::model::{Component, RateLine};
use providers::money::{Currency, Rate};
use providers::usage::{GpuSample, Usage, UsageSource};
use rstest::rstest;
use rust_decimal::Decimal;
use serde::de::DeserializeOwned;

use super::*;
use crate::rules::samples::{
    at, error, failed, fleet, identity, instance, item_identity, listed, of_tenant, usd, volume, with_balance,
    with_storage,
};
use crate::rules::settings::{Setting, Settings};

fn running(id: &str) -> Instance {
    instance(id, Phase::Running, "1")
}

fn created(id: &str, at: Option<Timestamp>) -> Instance {
    Instance { created_at: at, ..running(id) }
}

fn partial(rows: Vec<Instance>) -> Poll {
    let request = RequestLine("GET /instances".to_owned());
    let problems = vec![Problem { request, field: "instances[1].id".to_owned(), message: "missing".to_owned() }];
    Poll { instances: Part::Listed { rows, problems }, ..listed(Vec::new()) }
}

fn key_refused() -> ErrorKind {
    ErrorKind::Credentials { message: None }
}

fn retired() -> ErrorKind {
    ErrorKind::Retired { status: 410, message: Some("deprecated_endpoint".to_owned()) }
}

fn phase(fleet: &Fleet, id: &str) -> Option<Phase> {
    fleet.instance(&"team".into(), &id.into()).map(Known::phase)
}

fn burn(fleet: &Fleet) -> String {
    fleet.burn().burn.of(Currency::USD).amount().to_string()
}

fn upper(fleet: &Fleet) -> String {
    fleet.burn().upper.of(Currency::USD).amount().to_string()
}

fn gone(consequences: &[Consequence]) -> Vec<&Identity> {
    consequences
        .iter()
        .filter_map(|consequence| match consequence {
            Consequence::Gone(identity) => Some(identity),
            _ => None,
        })
        .collect()
}

fn team(fleet: &Fleet) -> &Account {
    fleet.account(&"team".into()).unwrap()
}

/// API-01: a retired address hides no machine, stops no clock and blames no key.
#[test]
fn a_failed_poll_changes_nothing_but_freshness() {
    let mut fleet = fleet(&["team"]);
    let rows = [("a", "0.351"), ("b", "0.622"), ("c", "1.204")].map(|(id, rate)| instance(id, Phase::Running, rate));
    fleet.poll("team", listed(rows.to_vec()), at("10:00:00"));
    let before = fleet.instances.clone();
    for minute in ["10:05:00", "10:10:00"] {
        assert_eq!(fleet.poll("team", failed(retired()), at(minute)), []);
        assert_eq!(fleet.instances, before);
        assert_eq!(fleet.freshness(team(&fleet), at(minute)), Freshness::Failed);
        assert_eq!(burn(&fleet), "2.177");
    }
    let account = team(&fleet);
    let age = at("10:10:00").duration_since(account.as_of.unwrap());
    assert_eq!(age, SignedDuration::from_mins(10));
    let trouble = account.trouble.clone().unwrap();
    assert_eq!(trouble.as_of, at("10:05:00"), "the trouble is as old as its first failure");
    assert!(trouble.value.line().contains("deprecated_endpoint") && !trouble.value.line().contains("key"));
    fleet.poll("team", listed(rows.to_vec()), at("10:15:00"));
    assert_eq!(fleet.freshness(team(&fleet), at("10:15:00")), Freshness::Fresh);
}

/// API-05 and API-06: whatever the answer was, the rows stay and one line says what it was.
#[rstest]
#[case(ErrorKind::RateLimited { retry_after: None }, "rate limited")]
#[case(ErrorKind::NotJson { status: 502, excerpt: None }, "HTTP 502")]
#[case(ErrorKind::NotJson { status: 200, excerpt: Some("maintenance".to_owned()) }, "HTTP 200, not JSON")]
#[case(ErrorKind::Server { status: 503, message: None, retry_after: None }, "HTTP 503")]
#[case(ErrorKind::Connect { message: "connection refused".to_owned() }, "connection refused")]
#[case(key_refused(), "key refused")]
fn no_failure_empties_an_account(#[case] kind: ErrorKind, #[case] told: &str) {
    let mut fleet = fleet(&["team"]);
    fleet.poll("team", listed(vec![running("a")]), at("10:00:00"));
    for second in ["10:00:15", "10:00:30", "10:00:45"] {
        assert_eq!(fleet.poll("team", failed(kind.clone()), at(second)), []);
    }
    assert_eq!(phase(&fleet, "a"), Some(Phase::Running));
    let line = team(&fleet).trouble.clone().unwrap().value.line();
    assert!(line.contains(told) && line.lines().count() == 1, "{line}");
    fleet.poll("team", listed(vec![running("a")]), at("10:01:00"));
    assert_eq!((team(&fleet).trouble.clone(), team(&fleet).pacing.failures), (None, 0));
}

/// API-08: what is not known may be charged, so it counts above and not below.
#[test]
fn an_unknown_phase_counts_in_the_upper_burn_only() {
    let mut fleet = fleet(&["team"]);
    let unknown = |id: &str| {
        let row = instance(id, Phase::Unknown, "0.5");
        Instance { rates: row.rates.clone().doubtful(), ..row }
    };
    let stopped = Instance { rates: Rates::known(), ..instance("p1", Phase::Stopped, "0") };
    let rows = vec![instance("p0", Phase::Running, "0.5"), stopped, unknown("p2"), unknown("p3"), unknown("p4")];
    fleet.poll("team", listed(rows), at("10:00:00"));
    assert_eq!((burn(&fleet).as_str(), upper(&fleet).as_str()), ("0.5", "2"));
}

/// API-09, second half: the provider denies an id that we never released. That is one miss and no more.
#[test]
fn no_such_id_for_what_was_listed_makes_it_unknown_and_not_gone() {
    let mut fleet = fleet(&["team"]);
    fleet.poll("team", listed(vec![running("a")]), at("12:00:00"));
    for second in ["12:00:20", "12:00:21", "12:00:22"] {
        let consequences = fleet.absorb_found(&identity("team", "a"), Found::NoSuchId, at(second));
        assert_eq!(gone(&consequences), Vec::<&Identity>::new());
    }
    assert_eq!(phase(&fleet, "a"), Some(Phase::Unknown));
    assert_eq!((burn(&fleet).as_str(), upper(&fleet).as_str()), ("0", "1"));
    // One list without it is the first absence, not the second.
    assert_eq!(fleet.poll("team", listed(vec![]), at("12:00:30")), []);
    fleet.poll("team", listed(vec![running("a")]), at("12:00:45"));
    assert_eq!(phase(&fleet, "a"), Some(Phase::Running));
}

/// LIFE-01: missing once, then back.
#[test]
fn missing_once_is_unknown_and_coming_back_is_the_same_machine() {
    let mut fleet = fleet(&["team"]);
    let a = || instance("a", Phase::Running, "3.6");
    let b = || running("b");
    let mut all = fleet.poll("team", listed(vec![a(), b()]), at("10:00:00"));
    all.extend(fleet.poll("team", listed(vec![b()]), at("10:00:30")));
    assert_eq!(phase(&fleet, "a"), Some(Phase::Unknown));
    assert_eq!((burn(&fleet).as_str(), upper(&fleet).as_str()), ("1", "4.6"));
    let known = &fleet.instances[&identity("team", "a")];
    assert_eq!(known.missing_since, Some(at("10:00:30")));
    assert_eq!(known.row.provider_phase.as_deref(), Some("running"), "the last word stays");
    all.extend(fleet.poll("team", listed(vec![a(), b()]), at("10:01:00")));
    assert_eq!(phase(&fleet, "a"), Some(Phase::Running));
    assert_eq!(burn(&fleet), "4.6");
    assert_eq!(fleet.instances.len(), 2, "no second generation");
    assert_eq!(fleet.instances[&identity("team", "a")].first_seen, at("10:00:00"));
    assert_eq!(gone(&all), Vec::<&Identity>::new());
}

/// LIFE-02: forty minutes without a network.
#[test]
fn an_outage_of_our_own_ends_nothing() {
    let mut fleet = fleet(&["team"]);
    let mut now = at("14:00:00");
    fleet.poll("team", listed(vec![running("a")]), now);
    while now < at("14:40:00") {
        now += SignedDuration::from_mins(5);
        let refused = ErrorKind::Connect { message: "connection refused".to_owned() };
        assert_eq!(fleet.poll("team", failed(refused), now), []);
        assert_eq!(phase(&fleet, "a"), Some(Phase::Running));
        assert_eq!(fleet.freshness(team(&fleet), now), Freshness::Failed, "failed beats stale");
        assert_eq!(team(&fleet).as_of, Some(at("14:00:00")));
    }
    fleet.poll("team", listed(vec![running("a")]), at("14:41:00"));
    assert_eq!(phase(&fleet, "a"), Some(Phase::Running));
    assert_eq!(fleet.freshness(team(&fleet), at("14:41:00")), Freshness::Fresh);
}

#[rstest]
#[case::just_asked("10:00:10", None, Freshness::Fresh)]
#[case::within_three_intervals("10:00:45", None, Freshness::Fresh)]
#[case::older_than_three_intervals("10:00:46", None, Freshness::Stale)]
#[case::a_poll_on_its_way("10:00:30", Some("10:00:15"), Freshness::Fresh)]
#[case::a_poll_that_hangs("10:00:31", Some("10:00:15"), Freshness::Stale)]
fn an_account_goes_stale(#[case] now: &str, #[case] in_flight: Option<&str>, #[case] expected: Freshness) {
    let mut fleet = fleet(&["team"]);
    assert_eq!(fleet.freshness(team(&fleet), at(now)), Freshness::Never);
    fleet.poll("team", listed(vec![running("a")]), at("10:00:00"));
    fleet.accounts[0].pacing.in_flight = in_flight.map(at);
    assert_eq!(fleet.freshness(team(&fleet), at(now)), expected);
}

#[test]
fn an_account_with_nothing_running_goes_stale_later() {
    let mut fleet = fleet(&["team"]);
    fleet.poll("team", listed(vec![instance("a", Phase::Stopped, "0.1")]), at("10:00:00"));
    assert_eq!(fleet.freshness(team(&fleet), at("10:03:00")), Freshness::Fresh);
    assert_eq!(fleet.freshness(team(&fleet), at("10:03:01")), Freshness::Stale);
}

#[test]
fn a_list_with_an_unreadable_row_refreshes_the_rest_and_loses_nothing() {
    let mut fleet = fleet(&["team"]);
    fleet.poll("team", listed(vec![running("a"), running("b")]), at("10:00:00"));
    for second in ["10:00:15", "10:00:30", "10:00:45"] {
        let consequences = fleet.poll("team", partial(vec![instance("a", Phase::Stopped, "0.1")]), at(second));
        assert!(!consequences.iter().any(|consequence| matches!(consequence, Consequence::AskById(_))));
    }
    assert_eq!(phase(&fleet, "a"), Some(Phase::Stopped));
    assert_eq!(phase(&fleet, "b"), Some(Phase::Running));
    assert_eq!(fleet.freshness(team(&fleet), at("10:00:45")), Freshness::Partial);
    assert_eq!(team(&fleet).problems.len(), 1);
    assert_eq!(team(&fleet).last_complete, Some(at("10:00:00")));
}

#[test]
fn a_storage_list_that_failed_is_told_until_it_is_asked_for_again() {
    let mut fleet = fleet(&["team"]);
    let rows = || listed(vec![running("a")]);
    fleet.poll("team", with_storage(rows(), vec![volume("v", "0.1", &[])]), at("10:00:00"));
    let broken = Part::Failed(error(ErrorKind::Timeout { after: Duration::from_secs(30) }));
    fleet.poll("team", Poll { storage: broken, ..rows() }, at("10:01:00"));
    assert_eq!(fleet.freshness(team(&fleet), at("10:01:00")), Freshness::Partial);
    fleet.poll("team", rows(), at("10:01:15"));
    assert_eq!(fleet.freshness(team(&fleet), at("10:01:15")), Freshness::Partial, "storage was not asked for again");
    assert_eq!(team(&fleet).problems.len(), 1);
    assert_eq!(team(&fleet).last_complete, Some(at("10:00:00")));
    assert!(fleet.storage[&item_identity("team", "v")].missing_since.is_none());
    fleet.poll("team", with_storage(rows(), vec![volume("v", "0.1", &[])]), at("10:02:00"));
    assert_eq!(fleet.freshness(team(&fleet), at("10:02:00")), Freshness::Fresh);
}

/// A machine is gone after two complete lists without it, and the provider's word that there is no such id.
#[rstest]
#[case::two_lists_and_no_such_id(&["absent", "absent", "no such id"], true)]
#[case::two_lists_and_nobody_to_ask(&["absent", "absent", "cannot ask"], true)]
#[case::two_lists_alone(&["absent", "absent", "absent"], false)]
#[case::one_list(&["absent", "no such id"], false)]
#[case::one_list_twice_denied(&["absent", "no such id", "no such id"], false)]
#[case::one_list_and_nobody_to_ask(&["absent", "cannot ask"], false)]
#[case::a_failed_list_counts_for_none(&["absent", "failed", "no such id"], false)]
#[case::a_failed_list_breaks_nothing(&["absent", "failed", "absent", "no such id"], true)]
#[case::a_partial_list_counts_for_none(&["absent", "partial", "no such id"], false)]
#[case::a_refused_key_is_no_proof(&["absent", "refused", "refused", "no such id"], false)]
#[case::a_sight_between_begins_anew(&["absent", "listed", "absent", "no such id"], false)]
#[case::found_by_id_after_all(&["absent", "absent", "found", "absent", "no such id"], false)]
#[case::never_missed(&["no such id", "no such id", "no such id"], false)]
fn gone_needs_two_complete_lists_and_a_denied_id(#[case] story: &[&str], #[case] expected: bool) {
    let mut fleet = fleet(&["team"]);
    let a = identity("team", "a");
    let mut now = at("10:00:00");
    fleet.poll("team", listed(vec![running("a")]), now);
    let mut all = Vec::new();
    for step in story {
        now += SignedDuration::from_secs(15);
        all.extend(match *step {
            "absent" => fleet.poll("team", listed(vec![]), now),
            "listed" => fleet.poll("team", listed(vec![running("a")]), now),
            "partial" => fleet.poll("team", partial(vec![]), now),
            "failed" => fleet.poll("team", failed(retired()), now),
            "refused" => fleet.poll("team", failed(key_refused()), now),
            "found" => fleet.absorb_found(&a, Found::Instance(Box::new(running("a"))), now),
            "no such id" => fleet.absorb_found(&a, Found::NoSuchId, now),
            "cannot ask" => fleet.absorb_found(&a, Found::CannotAsk, now),
            other => panic!("no step {other}"),
        });
    }
    assert_eq!(fleet.instances[&a].is_gone(), expected);
    assert_eq!(gone(&all), if expected { vec![&a] } else { vec![] });
}

#[test]
fn a_second_absence_asks_by_id_and_so_does_each_further_one() {
    let mut fleet = fleet(&["team"]);
    fleet.poll("team", listed(vec![running("a")]), at("10:00:00"));
    let asked = |consequences: Vec<Consequence>| consequences.contains(&Consequence::AskById(identity("team", "a")));
    assert!(!asked(fleet.poll("team", listed(vec![]), at("10:00:15"))));
    assert!(asked(fleet.poll("team", listed(vec![]), at("10:00:30"))));
    assert!(asked(fleet.poll("team", listed(vec![]), at("10:00:45"))));
}

#[test]
fn what_is_gone_stays_a_minute_and_counts_nothing() {
    let mut fleet = fleet(&["team"]);
    let a = identity("team", "a");
    fleet.poll("team", listed(vec![running("a")]), at("10:00:00"));
    let consequences = fleet.released(&a, at("10:01:00"));
    assert_eq!(consequences, [Consequence::Gone(a.clone()), Consequence::Changed(a.clone())]);
    assert_eq!(fleet.released(&a, at("10:01:01")), [], "gone once is gone");
    assert_eq!((burn(&fleet).as_str(), upper(&fleet).as_str()), ("0", "0"));
    assert_eq!(phase(&fleet, "a"), Some(Phase::Gone));
    assert_eq!(fleet.next_prune(), Some(at("10:02:00")));
    assert!(!fleet.prune(at("10:01:59")));
    assert!(fleet.prune(at("10:02:00")));
    assert_eq!((phase(&fleet, "a"), fleet.next_prune()), (None, None));
}

#[test]
fn a_list_asked_for_before_the_proof_revives_nothing() {
    let mut fleet = fleet(&["team"]);
    let a = identity("team", "a");
    fleet.poll("team", listed(vec![running("a")]), at("10:00:00"));
    fleet.accounts[0].pacing.ask(at("10:00:15"), true);
    fleet.released(&a, at("10:00:16"));
    fleet.absorb(&"team".into(), listed(vec![running("a")]), at("10:00:17"));
    assert_eq!(phase(&fleet, "a"), Some(Phase::Gone));
    // One that was asked for afterwards is the truth.
    let consequences = fleet.poll("team", listed(vec![running("a")]), at("10:00:30"));
    assert_eq!(phase(&fleet, "a"), Some(Phase::Running));
    assert_eq!(consequences, [Consequence::Appeared(a.clone()), Consequence::Changed(a)]);
}

#[test]
fn a_list_asked_for_before_a_sight_by_id_makes_nothing_absent() {
    let mut fleet = fleet(&["team"]);
    fleet.accounts[0].pacing.ask(at("10:00:15"), true);
    fleet.absorb_found(&identity("team", "a"), Found::Instance(Box::new(running("a"))), at("10:00:16"));
    fleet.absorb(&"team".into(), listed(vec![]), at("10:00:17"));
    assert_eq!(phase(&fleet, "a"), Some(Phase::Running));
}

#[test]
fn a_row_that_the_provider_calls_ended_is_gone_and_appears_no_more() {
    let mut fleet = fleet(&["team"]);
    let ended = |id: &str| Instance { rates: Rates::known(), ..instance(id, Phase::Gone, "0") };
    assert_eq!(fleet.poll("team", listed(vec![ended("old")]), at("10:00:00")), [], "it was never ours to see");
    assert!(fleet.instances.is_empty());
    fleet.poll("team", listed(vec![running("a")]), at("10:00:15"));
    let consequences = fleet.poll("team", listed(vec![ended("a")]), at("10:00:30"));
    assert_eq!(gone(&consequences), [&identity("team", "a")]);
    assert_eq!(burn(&fleet), "0");
    assert_eq!(fleet.poll("team", listed(vec![ended("a")]), at("10:01:00")), []);
    fleet.prune(at("10:01:30"));
    assert_eq!(fleet.poll("team", listed(vec![ended("a")]), at("10:01:45")), []);
    assert!(fleet.instances.is_empty());
}

/// The same for an id that was forgotten meanwhile: another machine does not go on with the first one's spend.
#[rstest]
#[case::another(Some("09:00:00"), Some("10:05:00"), 1, Some("10:05:00"))]
#[case::the_same(Some("09:00:00"), Some("09:00:00"), 0, Some("09:00:00"))]
#[case::not_told_this_time(Some("09:00:00"), None, 0, Some("09:00:00"))]
#[case::never_told_before(None, Some("10:05:00"), 0, Some("10:05:00"))]
fn an_id_that_comes_back_after_a_while_is_told_by_its_created_at(
    #[case] then: Option<&str>,
    #[case] new: Option<&str>,
    #[case] rises: u32,
    #[case] known: Option<&str>,
) {
    let mut fleet = fleet(&["team"]);
    let row = |created_at: Option<&str>| listed(vec![created("a", created_at.map(at))]);
    for generation in [0, 1] {
        // The second time the id has a past of its own, which goes on from where it was.
        let identity = Identity { generation: generation * rises, ..identity("team", "a") };
        let (start, told) = if generation == 0 { ("10:00:00", then) } else { ("10:10:00", new) };
        fleet.poll("team", row(told), at(start));
        assert_eq!(fleet.instances.keys().collect::<Vec<_>>(), [&identity]);
        fleet.released(&identity, at(start));
        fleet.prune(at(start) + GONE_SHOWN);
        assert!(fleet.instances.is_empty());
    }
    fleet.poll("team", row(None), at("10:20:00"));
    let back = fleet.instances.values().next().unwrap();
    assert_eq!((back.identity.generation, back.row.created_at), (rises, known.map(at)));
}

/// The generation rises only when a known created-at changes.
#[rstest]
#[case::the_same(&[Some("09:00:00"), Some("09:00:00")], 0)]
#[case::learnt_later(&[None, Some("09:00:00")], 0)]
#[case::not_told_this_time(&[Some("09:00:00"), None, Some("09:00:00")], 0)]
#[case::another(&[Some("09:00:00"), Some("09:30:00")], 1)]
#[case::another_after_silence(&[Some("09:00:00"), None, Some("09:30:00")], 1)]
#[case::never_told(&[None, None, None], 0)]
#[case::a_third(&[Some("09:00:00"), Some("09:30:00"), Some("09:45:00")], 2)]
fn a_generation_is_a_changed_creation(#[case] told: &[Option<&str>], #[case] expected: u32) {
    let mut fleet = fleet(&["team"]);
    let mut now = at("10:00:00");
    for created_at in told {
        now += SignedDuration::from_secs(15);
        fleet.poll("team", listed(vec![created("a", created_at.map(at))]), now);
    }
    let latest = fleet.instance(&"team".into(), &"a".into()).unwrap();
    assert_eq!(latest.identity.generation, expected);
    assert_eq!(latest.row.created_at, told.iter().rev().find_map(|created_at| created_at.map(at)));
    assert_eq!(fleet.instances.values().filter(|known| !known.is_gone()).count(), 1, "one machine an id");
    assert_eq!(burn(&fleet), "1", "and one rate");
}

#[test]
fn absent_and_back_is_the_same_generation_even_after_it_was_called_gone() {
    let mut fleet = fleet(&["team"]);
    let row = || listed(vec![created("a", Some(at("09:00:00")))]);
    fleet.poll("team", row(), at("10:00:00"));
    fleet.poll("team", listed(vec![]), at("10:00:15"));
    fleet.poll("team", listed(vec![]), at("10:00:30"));
    fleet.absorb_found(&identity("team", "a"), Found::NoSuchId, at("10:00:31"));
    assert_eq!(phase(&fleet, "a"), Some(Phase::Gone));
    fleet.poll("team", row(), at("10:00:45"));
    assert_eq!(fleet.instances.keys().collect::<Vec<_>>(), [&identity("team", "a")]);
    assert_eq!(phase(&fleet, "a"), Some(Phase::Running));
}

#[test]
fn a_second_machine_under_an_id_ends_the_first_and_is_told() {
    let mut fleet = fleet(&["team"]);
    let first = identity("team", "a");
    let second = Identity { generation: 1, ..first.clone() };
    fleet.poll("team", listed(vec![created("a", Some(at("09:00:00")))]), at("10:00:00"));
    let consequences = fleet.poll("team", listed(vec![created("a", Some(at("09:30:00")))]), at("10:00:15"));
    let expected = [
        Consequence::Gone(first.clone()),
        Consequence::Changed(first.clone()),
        Consequence::Appeared(second.clone()),
        Consequence::Changed(second.clone()),
    ];
    assert_eq!(consequences, expected);
    assert!(fleet.instances[&first].is_gone() && !fleet.instances[&second].is_gone());
}

/// LIFE-09: what a phase costs is told by its rates.
#[test]
fn a_stopped_machine_that_is_billed_stays_in_burn_and_is_waste() {
    let mut fleet = fleet(&["team"]);
    let euros = |hourly: &str| Rate::per_hour(hourly.parse().unwrap(), Currency::EUR).unwrap();
    let mut scaleway = instance("scw", Phase::Stopped, "0");
    scaleway.rates = Rates::known().with(Component::Compute, euros("0.80"));
    let droplet = instance("do", Phase::Stopped, "3.39");
    fleet.poll("team", listed(vec![scaleway, droplet]), at("00:00:00"));
    let totals = fleet.burn();
    for sums in [&totals.burn, &totals.waste] {
        assert_eq!(sums.of(Currency::EUR), euros("0.80"));
        assert_eq!(sums.of(Currency::USD), usd("3.39"));
    }
}

/// LIFE-10: what a person set belongs to the identity, and the identity survives.
#[test]
fn settings_survive_a_flicker() {
    let mut fleet = fleet(&["team"]);
    let a = identity("team", "a");
    let setting = Setting { protected: Some(true), mine: Some(true), project: Some("llm".to_owned()) };
    let settings = Settings { single: [(a.clone(), setting.clone())].into(), ..Settings::default() };
    fleet.poll("team", listed(vec![running("a")]), at("10:00:00"));
    fleet.poll("team", listed(vec![]), at("10:01:00"));
    fleet.poll("team", listed(vec![]), at("10:02:00"));
    // The program ends and begins again with what the ledger kept.
    let kept = round_trip(&fleet.instances.values().cloned().collect::<Vec<_>>());
    let mut again = crate::rules::samples::fleet(&["team"]);
    again.instances = kept.into_iter().map(|known| (known.identity.clone(), known)).collect();
    again.poll("team", listed(vec![running("a")]), at("10:03:00"));
    let (identity, known) = again.instances.first_key_value().unwrap();
    assert_eq!((identity, known.phase()), (&a, Phase::Running));
    assert_eq!(settings.single.get(identity), Some(&setting));
    assert!(settings.protected(&"vast".into(), identity, &known.row));
}

#[test]
fn a_key_of_another_tenant_ends_nothing_until_the_provider_names_the_old_one_again() {
    let mut fleet = fleet(&["team"]);
    let ours = || of_tenant(listed(vec![running("a")]), "t-1");
    let theirs = || listed(vec![running("x")]);
    fleet.poll("team", ours(), at("10:00:00"));
    let before = fleet.instances.clone();
    let silent = Poll { tenant: Reading::Failed(error(ErrorKind::PagingLoop { pages: 1 })), ..theirs() };
    let untold = Poll { tenant: Reading::NotTold, ..theirs() };
    let broken = failed(retired());
    for (second, poll) in [
        ("10:01:00", of_tenant(theirs(), "t-2")),
        ("10:02:00", theirs()),
        ("10:03:00", silent),
        ("10:04:00", untold),
        ("10:05:00", broken),
        ("10:06:00", theirs()),
    ] {
        assert_eq!(fleet.poll("team", poll, at(second)), [], "{second}");
        assert_eq!(fleet.instances, before, "{second}");
        assert_eq!(
            team(&fleet).trouble.as_ref().map(|trouble| &trouble.value),
            Some(&Trouble::OtherTenant),
            "{second}"
        );
        assert!(!fleet.trusts(&"team".into()));
        assert!(!team(&fleet).tenant_checked, "the next poll asks who it is");
    }
    let denied = fleet.absorb_found(&identity("team", "a"), Found::NoSuchId, at("10:06:30"));
    assert_eq!(denied, [], "the other tenant's answer by id tells nothing either");
    fleet.poll("team", ours(), at("10:07:00"));
    assert_eq!(fleet.freshness(team(&fleet), at("10:07:00")), Freshness::Fresh);
    assert!(fleet.trusts(&"team".into()));
}

#[test]
fn after_a_restart_nothing_is_missed_before_the_tenant_was_compared() {
    let mut fleet = fleet(&["team"]);
    fleet.poll("team", of_tenant(listed(vec![running("a")]), "t-1"), at("10:00:00"));
    fleet.accounts[0].tenant_checked = false;
    let failing = Poll { tenant: Reading::Failed(error(retired())), ..listed(vec![]) };
    for second in ["10:01:00", "10:02:00", "10:03:00"] {
        fleet.poll("team", failing.clone(), at(second));
    }
    let a = identity("team", "a");
    assert_eq!(phase(&fleet, "a"), Some(Phase::Running));
    assert!(matches!(fleet.vouch(&a, Ok(Found::NoSuchId)), Err(error) if !error.kind.is_transient()));
    fleet.poll("team", of_tenant(listed(vec![]), "t-1"), at("10:04:00"));
    assert_eq!(phase(&fleet, "a"), Some(Phase::Unknown));
    assert_eq!(fleet.vouch(&a, Ok(Found::NoSuchId)), Ok(Found::NoSuchId));
}

#[test]
fn a_provider_that_tells_no_tenant_is_believed() {
    let mut fleet = fleet(&["team"]);
    let untold = |rows| Poll { tenant: Reading::NotTold, ..listed(rows) };
    fleet.poll("team", untold(vec![running("a")]), at("10:00:00"));
    fleet.poll("team", untold(vec![]), at("10:00:15"));
    assert_eq!(phase(&fleet, "a"), Some(Phase::Unknown));
}

#[rstest]
#[case::in_the_order_of_the_config("one", "two")]
#[case::the_other_way_round("two", "one")]
fn two_accounts_of_one_tenant_count_once(#[case] first: &str, #[case] second: &str) {
    let mut fleet = fleet(&["one", "two"]);
    fleet.poll(first, of_tenant(listed(vec![running("a")]), "t-1"), at("10:00:00"));
    // Its rows came before its tenant could be read.
    fleet.poll(second, listed(vec![running("a")]), at("10:00:01"));
    assert_eq!(burn(&fleet), "2");
    for second_of in ["10:00:15", "10:01:15"] {
        fleet.poll(second, of_tenant(listed(vec![running("a")]), "t-1"), at(second_of));
        let trouble = fleet.account(&second.into()).unwrap().trouble.clone().unwrap();
        assert_eq!(trouble.value, Trouble::SameAs(first.into()));
        assert!(trouble.value.line().contains(first));
        assert_eq!(burn(&fleet), "1");
    }
    fleet.poll(second, listed(vec![running("a")]), at("10:02:00"));
    assert_eq!(burn(&fleet), "1", "a poll without a tenant lifts nothing");
    fleet.poll(first, of_tenant(listed(vec![running("a")]), "t-1"), at("10:02:15"));
    assert_eq!(fleet.account(&first.into()).unwrap().trouble, None);
}

#[test]
fn of_two_that_were_both_known_before_the_first_in_the_config_stays() {
    let mut fleet = fleet(&["one", "two"]);
    fleet.accounts.iter_mut().for_each(|account| account.tenant = Some(Tenant { id: "t-1".to_owned() }));
    for name in ["two", "one"] {
        fleet.poll(name, of_tenant(listed(vec![running("a")]), "t-1"), at("10:00:00"));
    }
    assert_eq!(fleet.accounts[0].trouble, None);
    assert_eq!(fleet.accounts[1].trouble.as_ref().map(|known| &known.value), Some(&Trouble::SameAs("one".into())));
}

#[test]
fn the_same_tenant_name_at_two_providers_is_two_accounts() {
    let mut fleet = fleet(&["one", "two"]);
    fleet.accounts[1].provider = "runpod".into();
    for name in ["one", "two"] {
        fleet.poll(name, of_tenant(listed(vec![running("a")]), "1"), at("10:00:00"));
    }
    assert_eq!(burn(&fleet), "2");
}

/// BAL-02: a balance that cannot be read is not 0, and the last good one keeps its age.
#[test]
fn a_balance_that_cannot_be_read_keeps_the_last_one_and_says_so() {
    let mut fleet = fleet(&["team"]);
    let rows = || listed(vec![running("a")]);
    let unreadable = || Reading::Failed(error(ErrorKind::Decode { path: "amount".into(), message: "n/a".into() }));
    fleet.poll("team", Poll { balance: unreadable(), ..rows() }, at("09:59:00"));
    assert_eq!((team(&fleet).balance.clone(), team(&fleet).trouble.clone()), (None, None));
    fleet.poll("team", with_balance(rows(), "12.5"), at("10:00:00"));
    fleet.poll("team", Poll { balance: unreadable(), ..rows() }, at("10:01:00"));
    let account = team(&fleet);
    let known = account.balance.clone().unwrap();
    assert_eq!((known.value.cash.amount, known.as_of), ("12.5".parse::<Decimal>().unwrap(), at("10:00:00")));
    assert!(account.balance_error.is_some());
    fleet.poll("team", rows(), at("10:01:15"));
    assert!(team(&fleet).balance_error.is_some(), "not asked is no answer");
    fleet.poll("team", Poll { balance: Reading::NotTold, ..rows() }, at("10:02:00"));
    assert_eq!((team(&fleet).balance.clone(), team(&fleet).balance_error.clone()), (None, None));
}

/// ORPH-01: unattached storage is waste, attached storage is counted once, and never twice.
#[test]
fn storage_is_counted_once_and_is_waste_only_where_nobody_uses_it() {
    let mut fleet = fleet(&["team"]);
    let of = |size: i64| Rate::of_month(size.into(), "0.08".parse().unwrap(), 730.into(), Currency::USD).unwrap();
    let sized = |id: &str, size: i64, users: &[&str]| StorageItem {
        rates: Rates::known().with(Component::Storage, of(size)),
        ..volume(id, "0", users)
    };
    let free = |id: &str, phase| Instance { rates: Rates::known(), ..instance(id, phase, "0") };
    let rows = listed(vec![free("i-stopped", Phase::Stopped), free("i-running", Phase::Running)]);
    let volumes =
        vec![sized("vol-1", 200, &[]), sized("vol-2", 100, &["i-stopped"]), sized("vol-3", 100, &["i-running"])];
    fleet.poll("team", with_storage(rows, volumes), at("10:00:00"));
    let totals = fleet.burn();
    assert_eq!(totals.waste.of(Currency::USD), of(200));
    assert_eq!(totals.waste.of(Currency::USD).amount().round_dp(6).to_string(), "0.021918");
    assert_eq!(totals.burn.of(Currency::USD).picos(), of(200).picos() + 2 * of(100).picos());
}

#[test]
fn what_an_instance_says_that_it_mounts_is_no_waste() {
    let mut fleet = fleet(&["team", "lab"]);
    let mounts = |phase| Instance { mounts: vec!["v".into()], ..instance("i", phase, "0") };
    for (account, phase) in [("team", Phase::Running), ("lab", Phase::Gone)] {
        fleet.poll(account, with_storage(listed(vec![mounts(phase)]), vec![volume("v", "0.1", &[])]), at("10:00:00"));
    }
    assert_eq!(fleet.burn_of(&"team".into()).waste.of(Currency::USD), usd("0"));
    assert_eq!(fleet.burn_of(&"lab".into()).waste.of(Currency::USD), usd("0.1"), "what is gone mounts nothing");
    assert_eq!(fleet.burn().waste.of(Currency::USD), usd("0.1"), "the same id in two accounts is two volumes");
}

#[test]
fn what_is_used_somewhere_or_perhaps_is_no_waste() {
    let mut fleet = fleet(&["team"]);
    let items = [Attachment::Somewhere, Attachment::Unknown]
        .into_iter()
        .enumerate()
        .map(|(n, attachment)| StorageItem { attachment, ..volume(&format!("v{n}"), "0.1", &[]) });
    fleet.poll("team", with_storage(listed(vec![]), items.collect()), at("10:00:00"));
    assert!(fleet.burn().waste.is_zero());
    assert_eq!(burn(&fleet), "0.2");
}

#[test]
fn storage_disappears_by_the_same_rule_and_only_when_it_was_asked_for() {
    let mut fleet = fleet(&["team"]);
    let v = item_identity("team", "v");
    fleet.poll("team", with_storage(listed(vec![]), vec![volume("v", "0.1", &[])]), at("10:00:00"));
    for second in ["10:00:15", "10:00:30", "10:00:45"] {
        fleet.poll("team", listed(vec![]), at(second));
    }
    assert_eq!(fleet.storage[&v].missing_since, None);
    for second in ["10:01:00", "10:02:00"] {
        fleet.poll("team", with_storage(listed(vec![]), vec![]), at(second));
    }
    assert_eq!((burn(&fleet).as_str(), upper(&fleet).as_str()), ("0", "0.1"));
    let consequences = fleet.absorb_found(&v, Found::CannotAsk, at("10:02:01"));
    assert_eq!(gone(&consequences), [&v]);
    assert_eq!(upper(&fleet), "0");
}

#[test]
fn an_answer_for_an_account_that_is_not_there_is_dropped() {
    let mut fleet = fleet(&["team"]);
    assert_eq!(fleet.absorb(&"other".into(), listed(vec![running("a")]), at("10:00:00")), []);
    assert!(fleet.instances.is_empty());
}

#[test]
fn usage_alone_is_no_change_worth_writing_down() {
    let mut fleet = fleet(&["team"]);
    let used = |utilization| {
        let gpus = vec![GpuSample { utilization: Some(utilization), ..GpuSample::default() }];
        let usage = Usage { gpus, ..Usage::new(at("10:00:00"), UsageSource::Provider) };
        listed(vec![Instance { usage: Some(usage), ..running("a") }])
    };
    fleet.poll("team", used(0.25), at("10:00:00"));
    assert_eq!(fleet.poll("team", used(0.75), at("10:00:15")), []);
    let usage = fleet.instances[&identity("team", "a")].row.usage.clone().unwrap();
    assert_eq!(usage.gpus[0].utilization, Some(0.75));
    let stopped = fleet.poll("team", listed(vec![instance("a", Phase::Stopped, "1")]), at("10:00:30"));
    let a = identity("team", "a");
    assert_eq!(stopped, [Consequence::Turned(a.clone(), Phase::Running), Consequence::Changed(a)]);
}

#[test]
fn one_account_says_nothing_about_another() {
    let mut fleet = fleet(&["team", "lab"]);
    fleet.poll("team", listed(vec![running("a")]), at("10:00:00"));
    fleet.poll("lab", listed(vec![running("a"), running("b")]), at("10:00:00"));
    for second in ["10:00:15", "10:00:30"] {
        fleet.poll("lab", listed(vec![]), at(second));
    }
    assert_eq!(phase(&fleet, "a"), Some(Phase::Running));
    assert_eq!(fleet.burn_of(&"team".into()).burn.of(Currency::USD), usd("1"));
    assert!(fleet.burn_of(&"lab".into()).burn.is_zero());
}

fn round_trip<T: Serialize + DeserializeOwned>(value: &T) -> T {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

#[test]
fn accounts_and_polls_read_back_as_they_were_written() {
    let mut fleet = fleet(&["team", "lab"]);
    let rich = Instance {
        market: Market::Reserved { until: Some(at("23:00:00")) },
        gpus: Some(Gpus::parse("H100 SXM", Some(8), Some(80))),
        rates: Rates::known().with_estimate(Component::Disk, usd("0.033333333333")).with_missing(),
        created_at: Some(at("09:00:00.123456789")),
        labels: [("team".to_owned(), "批量 \u{1F600}".to_owned())].into(),
        ..running("a")
    };
    let poll = with_balance(with_storage(listed(vec![rich]), vec![volume("v", "0.1", &["a"])]), "-0.0000000001");
    assert_eq!(round_trip(&poll), poll);
    let empty = Poll { tenant: Reading::NotTold, ..failed(key_refused()) };
    assert_eq!(round_trip(&empty), empty);
    fleet.poll("team", of_tenant(poll, "t-1"), at("10:00:00"));
    fleet.poll("team", partial(vec![]), at("10:00:15"));
    let waiting = ErrorKind::RateLimited { retry_after: Some(Duration::from_millis(1500)) };
    fleet.poll("lab", failed(waiting), at("10:00:00"));
    assert_eq!(round_trip(&fleet.accounts), fleet.accounts);
    let known: Vec<_> = fleet.instances.values().cloned().collect();
    assert_eq!(round_trip(&known), known);
}

/// One poll of a random story.
#[derive(Clone, Debug)]
enum Step {
    Listed(Vec<(u8, Phase, Option<u8>)>),
    Partial(Vec<(u8, Phase, Option<u8>)>),
    Failed,
    Denied(u8),
}

fn any_phase() -> impl Strategy<Value = Phase> {
    prop::sample::select(vec![
        Phase::Running,
        Phase::Stopped,
        Phase::Unknown,
        Phase::Releasing,
        Phase::Reclaimed,
        Phase::Gone,
    ])
}

fn any_step() -> impl Strategy<Value = Step> {
    let rows = || prop::collection::vec((0u8..4, any_phase(), prop::option::of(0u8..2)), 0..4);
    prop_oneof![
        4 => rows().prop_map(Step::Listed),
        1 => rows().prop_map(Step::Partial),
        1 => Just(Step::Failed),
        2 => (0u8..4).prop_map(Step::Denied),
    ]
}

fn any_line() -> impl Strategy<Value = RateLine> {
    let currency = prop::sample::select(vec![Currency::USD, Currency::EUR, Currency::CNY]);
    (0i64..10_000_000_000_000, currency, any::<bool>(), any::<bool>()).prop_map(
        |(picos, currency, estimated, certain)| RateLine {
            component: Component::Compute,
            rate: Rate::from_picos(picos, currency),
            estimated,
            certain,
        },
    )
}

fn any_rates() -> impl Strategy<Value = Rates> {
    (prop::collection::vec(any_line(), 0..4), any::<bool>()).prop_map(|(lines, complete)| Rates { lines, complete })
}

proptest! {
    /// Whatever a provider tells: nothing is gone without two complete lists in a row and a denied id, or the
    /// provider's own word; an id has one living machine; the first sight of a machine never moves.
    #[test]
    fn no_story_makes_a_machine_gone_without_proof(steps in prop::collection::vec(any_step(), 1..40)) {
        let mut fleet = fleet(&["team"]);
        let mut absent = [0u32; 4];
        let mut now = at("10:00:00");
        for step in steps {
            now += 15.seconds();
            let rows = |rows: &[(u8, Phase, Option<u8>)]| -> Vec<Instance> {
                rows.iter()
                    .map(|(id, phase, created)| Instance {
                        created_at: created.map(|hour| at(&format!("0{hour}:00:00"))),
                        ..instance(&id.to_string(), *phase, "1")
                    })
                    .collect()
            };
            let seen_before = fleet.instances.clone();
            let (consequences, listed_ids, denied) = match &step {
                Step::Listed(list) => {
                    let ids: Vec<u8> = list.iter().map(|(id, ..)| *id).collect();
                    for (id, absences) in absent.iter_mut().enumerate() {
                        *absences = if ids.contains(&(id as u8)) { 0 } else { *absences + 1 };
                    }
                    (fleet.poll("team", listed(rows(list)), now), ids, None)
                }
                Step::Partial(list) => {
                    let ids: Vec<u8> = list.iter().map(|(id, ..)| *id).collect();
                    ids.iter().for_each(|id| absent[usize::from(*id)] = 0);
                    (fleet.poll("team", partial(rows(list)), now), ids, None)
                }
                Step::Failed => (fleet.poll("team", failed(retired()), now), vec![], None),
                Step::Denied(id) => {
                    (fleet.absorb_found(&identity("team", &id.to_string()), Found::NoSuchId, now), vec![], Some(*id))
                }
            };
            for identity in gone(&consequences) {
                let id: u8 = identity.id.as_str().parse().unwrap();
                let proven = denied == Some(id) && absent[usize::from(id)] >= 2;
                // In a list only its own word, or another machine's row under its id, ends one.
                prop_assert!(proven || listed_ids.contains(&id), "{identity} after {step:?}");
            }
            for id in 0u8..4 {
                let alive = fleet.instances.values().filter(|known| known.identity.id.as_str() == id.to_string() && !known.is_gone());
                prop_assert!(alive.count() <= 1);
            }
            for (identity, known) in &seen_before {
                prop_assert_eq!(fleet.instances[identity].first_seen, known.first_seen);
            }
            if matches!(step, Step::Failed) {
                prop_assert_eq!(&fleet.instances, &seen_before);
            }
        }
    }

    /// The parts add up: every account's sums make the whole; certain and doubtful make the upper; prepaid
    /// and gone stand in neither.
    #[test]
    fn parts_add_up_to_the_whole(
        rows in prop::collection::vec((any::<bool>(), any_rates(), 0u8..4, any::<bool>()), 0..8),
        items in prop::collection::vec((any::<bool>(), any_rates(), any::<bool>()), 0..6),
    ) {
        let mut fleet = fleet(&["team", "lab"]);
        let account = |first: bool| if first { "team" } else { "lab" };
        let (mut certain, mut all, mut prepaid) = (Burn::default(), Burn::default(), Burn::default());
        for (n, (first, rates, state, reserved)) in rows.into_iter().enumerate() {
            let identity = identity(account(first), &n.to_string());
            let market = if reserved { Market::Reserved { until: None } } else { Market::OnDemand };
            let row = Instance { rates: rates.clone(), market, ..running(&n.to_string()) };
            let mut known = Known::new(identity.clone(), row, at("10:00:00"));
            match state {
                0 => known.gone_at = Some(at("10:00:00")),
                1 => known.missing_since = Some(at("10:00:00")),
                _ => {}
            }
            for line in rates.lines.iter().filter(|_| state != 0) {
                if reserved {
                    prepaid.add(line.rate);
                    continue;
                }
                all.add(line.rate);
                if line.certain && state != 1 {
                    certain.add(line.rate);
                }
            }
            fleet.instances.insert(identity, known);
        }
        for (n, (first, rates, missing)) in items.into_iter().enumerate() {
            let identity = item_identity(account(first), &n.to_string());
            let row = StorageItem { rates: rates.clone(), ..volume(&n.to_string(), "0", &[]) };
            let mut known = Known::new(identity.clone(), row, at("10:00:00"));
            known.missing_since = missing.then(|| at("10:00:00"));
            for line in &rates.lines {
                all.add(line.rate);
                if line.certain && !missing {
                    certain.add(line.rate);
                }
            }
            fleet.storage.insert(identity, known);
        }
        let whole = fleet.burn();
        let parts = [fleet.burn_of(&"team".into()), fleet.burn_of(&"lab".into())];
        for currency in [Currency::USD, Currency::EUR, Currency::CNY] {
            let sum = |of: fn(&Totals) -> &Burn| parts.iter().map(|part| of(part).of(currency).picos()).sum::<i64>();
            prop_assert_eq!(whole.burn.of(currency), certain.of(currency));
            prop_assert_eq!(whole.upper.of(currency), all.of(currency));
            prop_assert_eq!(whole.prepaid.of(currency), prepaid.of(currency));
            prop_assert!(whole.burn.of(currency).picos() <= whole.upper.of(currency).picos());
            prop_assert!(whole.waste.of(currency).picos() <= whole.burn.of(currency).picos());
            prop_assert_eq!(sum(|totals| &totals.burn), whole.burn.of(currency).picos());
            prop_assert_eq!(sum(|totals| &totals.upper), whole.upper.of(currency).picos());
            prop_assert_eq!(sum(|totals| &totals.waste), whole.waste.of(currency).picos());
            prop_assert_eq!(sum(|totals| &totals.prepaid), whole.prepaid.of(currency).picos());
        }
    }

    /// The same list twice changes nothing but the time at which it was seen.
    #[test]
    fn the_same_list_twice_is_no_news(rows in prop::collection::vec((0u8..6, any_phase()), 0..6)) {
        let mut fleet = fleet(&["team"]);
        let mut ids = BTreeSet::new();
        let list: Vec<Instance> = rows
            .into_iter()
            .filter(|(id, _)| ids.insert(*id))
            .map(|(id, phase)| instance(&id.to_string(), phase, "1"))
            .collect();
        fleet.poll("team", listed(list.clone()), at("10:00:00"));
        let before = fleet.burn();
        prop_assert_eq!(fleet.poll("team", listed(list), at("10:00:15")), []);
        prop_assert_eq!(fleet.burn(), before);
    }
}

fn pieces(rows: Vec<Instance>, unheard: Vec<Instance>) -> Poll {
    Poll { instances: Part::Pieces { rows, unheard }, ..listed(Vec::new()) }
}

/// What was asked for one by one is taken in one by one: the others stay as they are, and so does the age of all.
#[test]
fn pieces_of_an_account_change_only_what_they_hold() {
    let mut fleet = fleet(&["team"]);
    fleet.poll("team", listed(vec![running("a"), running("b")]), at("10:00:00"));
    let account = |fleet: &Fleet| fleet.account(&"team".into()).cloned().unwrap();
    let unknown = |id: &str| instance(id, Phase::Unknown, "3");
    let told = pieces(vec![instance("a", Phase::Unreachable, "1")], vec![unknown("b"), unknown("c")]);
    for at in ["10:01:00", "10:02:00", "10:03:00"].map(at) {
        assert_eq!(gone(&fleet.poll("team", told.clone(), at)), Vec::<&Identity>::new());
    }
    let phases = ["a", "b", "c"].map(|id| phase(&fleet, id).unwrap());
    assert_eq!(phases, [Phase::Unreachable, Phase::Running, Phase::Unknown]);
    assert_eq!(account(&fleet).as_of, Some(at("10:00:00")));
    assert_eq!(account(&fleet).pacing.in_flight, None);
    fleet.poll("team", listed(vec![running("a"), running("b")]), at("10:04:00"));
    assert_eq!(phase(&fleet, "c"), Some(Phase::Unknown), "a whole list alone makes things disappear");
    assert_eq!(account(&fleet).last_complete, Some(at("10:04:00")));
}
