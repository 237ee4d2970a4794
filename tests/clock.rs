//! A clock of this machine that is wrong: ages and money are counted by the provider's own, told in its answers.

mod support;

use jiff::{SignedDuration, Timestamp};
use providers::money::Currency;
use providers::provider::{Access, Ask, Poll};
use providers::sim::{Machine, Shared, SimClock, Simulator, World};
use rentop::app::event::WorldEvent;
use rentop::config::Language;
use rentop::rules::spend::{Evidence, Summed};
use rstest::rstest;
use rust_decimal::Decimal;
use support::story::*;

/// What RunPod's adapter makes, over HTTP, of a machine at 3 an hour that has been up for two minutes by the
/// provider's clock, which is so much ahead of ours.
fn polled(ours: Timestamp, ahead: SignedDuration) -> Poll {
    let mut world = World::new(SimClock::manual(ours + ahead), "k");
    let there = world.now();
    let began = there - SignedDuration::from_mins(2);
    world.machines = vec![Machine {
        compute_per_hour: Decimal::from(3),
        scratch_gb: 0,
        disk_gb: 0,
        created_at: began,
        started_at: Some(began),
        ..Machine::new("poda", "a", there)
    }];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let world = Shared::new(world);
        let simulator = Simulator::serve(providers::runpod::simulator::routes(world.clone()), world).await.unwrap();
        let access = Access::new("runpod", "team", "k").at(simulator.url());
        let account = (providers::find("runpod").unwrap().connect)(&access).unwrap();
        account.poll(Ask::ALL, ours).await
    })
}

/// COST-12, and the same with a clock that is ahead.
#[rstest]
#[case(300, "behind")]
#[case(-300, "ahead of")]
fn a_wrong_clock_makes_neither_wrong_ages_nor_wrong_money(#[case] ahead_seconds: i64, #[case] way: &str) {
    let ahead = SignedDuration::from_secs(ahead_seconds);
    let mut story = Story::over(&["team"], "10:02:00");
    story.world(WorldEvent::Summed(Box::new(Summed { day: "2026-11-30".parse().unwrap(), ..Summed::default() })));
    let poll = polled(story.now, ahead);
    let asked = story.asked("team");
    assert_eq!(asked, story.now);
    story.answer("team", poll);

    let skew = story.account("team").skew.unwrap();
    assert!((skew + ahead).abs() < SignedDuration::from_secs(5), "{skew:?}");
    let spent = |story: &Story| {
        let row = story.state.world.spending.row(&identity("team", "poda"), story.now).unwrap();
        row.rental.of(Currency::USD).total().amount()
    };
    let cent = Decimal::new(5, 3);
    assert!((spent(&story) - Decimal::new(10, 2)).abs() < cent, "{}", spent(&story));
    let started = story.row("team", "poda").row.started_at.unwrap();
    let age = story.now.duration_since(story.state.world.fleet.here(&"team".into(), started));
    assert!((SignedDuration::from_secs(115)..=SignedDuration::from_secs(125)).contains(&age), "{age:?}");

    // Between two looks it goes on with the time that passes, whatever the clock says, and nothing of it is a guess.
    story.now += SignedDuration::from_secs(12);
    assert!((spent(&story) - Decimal::new(11, 2)).abs() < cent, "{}", spent(&story));
    assert!(story.state.world.spending.meter.open_spans(story.now).all(|span| span.evidence == Evidence::Observed));

    story.shows("1 notice");
    story.press("?");
    story.shows(&format!("The clock of this machine is about 5 m {way} the provider's (team)"));
    story.language = Language::Chinese;
    story.shows(&format!("比平台（team）{}约 5 分钟：请校准", if ahead_seconds > 0 { "慢" } else { "快" }));
}

#[test]
fn half_a_minute_is_no_wrong_clock() {
    let mut story = Story::over(&["team"], "10:02:00");
    let poll = polled(story.now, SignedDuration::from_secs(20));
    story.answer("team", poll);
    assert_eq!(story.account("team").skew, None);
    story.hides("notice");
}
