use jiff::SignedDuration;
use providers::error::ErrorKind;
use providers::model::{AccountName, Action, Component, Fate, Identity, Instance, Market, Phase, Rates};
use providers::money::{Currency, Money, Rate};
use providers::provider::{Found, Poll, Reading};
use rstest::rstest;

use super::*;
use crate::app::event::{Event, WorldEvent};
use crate::app::state::State;
use crate::app::state::{Fixed, View};
use crate::app::update::take;
use crate::rules::alerts::{Awake, Kind, Matter, Topic};
use crate::rules::dispatch::{ChannelRule, Message};
use crate::rules::fleet::Account;
use crate::rules::memory::{AccountMemory, Collector, Memory};
use crate::rules::saga::{Authority, NotSent, OpId, Outcome, Step};
use crate::rules::samples::{at, error, failed, identity, instance, listed, usd, volume, with_balance, with_storage};
use crate::rules::settings::{Rules, Setting};

/// The collector of one account, `team`, with a ledger that outlives it.
struct Story {
    state: State,
    now: Timestamp,
    alerts: Vec<Alert>,
    rows: Vec<crate::rules::fleet::Known<Instance>>,
    account: Option<AccountMemory>,
    /// What other processes did; `None` while the ledger does not answer.
    acted: Option<Vec<Operation>>,
    /// As they were written down first, in their order.
    messages: Vec<Message>,
}

impl Story {
    fn begin(clock: &str) -> Self {
        let mut story = Story {
            state: state(at(clock)),
            now: at(clock),
            alerts: vec![],
            rows: vec![],
            account: None,
            acted: Some(vec![]),
            messages: vec![],
        };
        story.start();
        story
    }

    /// The program starts, or starts again.
    fn start(&mut self) {
        let limits = self.state.world.alerting.limits.clone();
        let rules = std::mem::take(&mut self.state.world.alerting.dispatch.rules);
        self.state = state(self.now);
        self.state.world.alerting.limits = limits;
        self.state.world.alerting.dispatch.rules = rules;
        self.hear(WorldEvent::Collector(Collector::Us));
        let memory = Memory {
            accounts: self.account.iter().cloned().collect(),
            instances: self.rows.clone(),
            alerts: self.alerts.clone(),
            ..Memory::default()
        };
        self.hear(WorldEvent::Remembered { memory: Box::new(memory), notices: Vec::new() });
    }

    fn hear(&mut self, event: WorldEvent) {
        let mut recall = false;
        for effect in take(&mut self.state, Event::World(event), self.now) {
            match effect {
                Effect::KeepAlerts { alerts, messages } => {
                    self.messages.extend(messages);
                    for alert in alerts {
                        self.alerts.retain(|known| known.topic != alert.topic || known.since != alert.since);
                        if !alert.came_to_nothing() {
                            self.alerts.push(alert);
                        }
                    }
                }
                Effect::Keep(keep) => {
                    self.account = Some(keep.account);
                    for row in keep.instances {
                        self.rows.retain(|known| known.identity != row.identity);
                        self.rows.push(row);
                    }
                }
                Effect::RecallAlerts => recall = true,
                _ => {}
            }
        }
        if let Some(acted) = self.acted.clone().filter(|_| recall) {
            self.hear(WorldEvent::AlertsRecalled { alerts: self.alerts.clone(), acted });
        }
    }

    /// An answer of the account at a time; the claim was renewed meanwhile.
    fn poll(&mut self, clock: &str, poll: Poll) -> &mut Self {
        self.now = at(clock);
        self.poll_now(poll)
    }

    fn poll_now(&mut self, poll: Poll) -> &mut Self {
        self.state.world.ledger_due = Some(self.now + SignedDuration::from_secs(10));
        let account = AccountName::from("team");
        self.state.world.fleet.account_mut(&account).unwrap().pacing.in_flight = Some(self.now);
        self.state.world.alerting.looked_at = None;
        self.hear(WorldEvent::Polled { account, asked_at: self.now, poll: Box::new(poll) });
        self
    }

    fn tick(&mut self, clock: &str) -> &mut Self {
        self.now = at(clock);
        self.state.world.ledger_due = Some(self.now + SignedDuration::from_secs(10));
        self.state.world.alerting.looked_at = None;
        self.hear(WorldEvent::Tick);
        self
    }

    /// The kinds that call for somebody, in order.
    fn calling(&self) -> Vec<Kind> {
        self.state.world.alerting.alerts.calling().map(|alert| alert.topic.kind).collect()
    }

    /// How often something of a kind was told, ended or not.
    fn told(&self, kind: Kind) -> usize {
        self.alerts.iter().filter(|alert| alert.topic.kind == kind && alert.fired_at.is_some()).count()
    }

    fn matter(&self, kind: Kind) -> &Matter {
        let mut open = self.state.world.alerting.alerts.open();
        &open.find(|alert| alert.topic.kind == kind).expect("an open alert").matter
    }

    /// Asked by its id, its provider knows it no more.
    fn hear_gone(&mut self, id: &str) {
        self.hear(WorldEvent::LookedUp { op: None, identity: identity("team", id), found: Ok(Found::NoSuchId) });
    }

    fn acknowledge(&mut self) {
        let topics: Vec<Topic> = self.state.world.alerting.alerts.calling().map(|alert| alert.topic.clone()).collect();
        self.hear(WorldEvent::Intent(Intent::Acknowledge(topics)));
    }

    fn limits(&mut self) -> &mut crate::rules::alerts::Limits {
        &mut self.state.world.alerting.limits
    }
}

fn state(now: Timestamp) -> State {
    let accounts = vec![Account::new("team".into(), "vast".into(), false)];
    let world = World::new(accounts, Rules::default(), false, "ana@desk".to_owned(), now);
    State { world, view: View::new(Fixed::default(), Vec::new()), leaving: false }
}

fn running(id: &str) -> Instance {
    instance(id, Phase::Running, "1")
}

fn a_and(more: Vec<Instance>) -> Poll {
    listed([vec![running("a")], more].concat())
}

#[test]
fn what_is_there_at_first_sight_did_not_appear_and_what_comes_later_did_once_also_over_a_restart() {
    let mut story = Story::begin("10:00:00");
    story.poll("10:00:00", a_and(vec![]));
    assert_eq!(story.calling(), []);
    story.poll("10:00:15", a_and(vec![running("b")]));
    assert_eq!(story.calling(), [Kind::Appeared]);
    story.start();
    story.poll("10:00:30", a_and(vec![running("b")]));
    assert_eq!((story.calling(), story.told(Kind::Appeared)), (vec![Kind::Appeared], 1));
    // While the program was closed.
    story.now = at("18:00:00");
    story.start();
    story.poll("18:00:00", a_and(vec![running("b"), running("c")]));
    assert_eq!(story.told(Kind::Appeared), 2);
    story.acknowledge();
    story.tick("18:00:15");
    assert_eq!((story.calling(), story.state.world.alerting.alerts.open().count()), (vec![], 0));
}

#[test]
fn an_account_that_was_never_read_whole_tells_of_what_was_made_since() {
    use providers::error::{Problem, RequestLine};
    use providers::provider::Part;
    let partial = |rows| {
        let (request, field) = (RequestLine("GET /x".to_owned()), "gpu".to_owned());
        let problems = vec![Problem { request, field, message: "no".to_owned() }];
        Poll { instances: Part::Listed { rows, problems }, ..listed(vec![]) }
    };
    let made = |id, clock| Instance { created_at: Some(at(clock)), ..running(id) };
    let mut story = Story::begin("10:00:00");
    story.poll("10:00:00", partial(vec![running("a")]));
    story.poll("10:01:00", partial(vec![running("a"), running("b"), made("old", "09:00:00")]));
    assert_eq!(story.told(Kind::Appeared), 0, "they may have been there");
    story.poll("10:02:00", partial(vec![running("a"), made("new", "10:01:30")]));
    assert_eq!(story.told(Kind::Appeared), 1);
}

#[test]
fn what_is_gone_without_our_doing_vanished_and_silence_is_no_such_thing() {
    let mut story = Story::begin("10:00:00");
    story.poll("10:00:00", a_and(vec![running("b")]));
    story.poll("10:00:15", failed(ErrorKind::Server { status: 500, message: None, retry_after: None }));
    for clock in ["10:00:30", "10:00:45"] {
        story.poll(clock, a_and(vec![]));
        assert_eq!(story.calling(), []);
    }
    let looked_up = |op, found| WorldEvent::LookedUp { op, identity: identity("team", "b"), found: Ok(found) };
    story.hear(looked_up(None, Found::NoSuchId));
    assert_eq!(story.calling(), [Kind::Vanished]);
}

/// LIFE-05, at first sight and in the run.
#[test]
fn an_instance_that_was_taken_is_told_once_and_not_as_one_that_appeared_or_costs_less() {
    let taken = || Instance { market: Market::Spot, ..instance("b", Phase::Reclaimed, "0.0021") };
    let mut story = Story::begin("10:00:00");
    story.poll("10:00:00", a_and(vec![taken()]));
    assert_eq!(story.calling(), [Kind::Reclaimed]);
    assert_eq!(story.matter(Kind::Reclaimed).rates(), []);

    let mut story = Story::begin("10:00:00");
    story.poll("10:00:00", a_and(vec![running("b")]));
    for clock in ["10:00:15", "10:00:30"] {
        story.poll(clock, a_and(vec![taken()]));
    }
    assert_eq!(
        (story.calling(), story.alerts.iter().filter(|alert| alert.fired_at.is_some()).count()),
        (vec![Kind::Reclaimed], 1)
    );
}

#[test]
fn another_price_is_told_and_what_another_phase_costs_is_none() {
    let mut story = Story::begin("10:00:00");
    story.poll("10:00:00", listed(vec![running("a")]));
    story.poll("10:00:15", listed(vec![instance("a", Phase::Stopped, "0.1")]));
    story.poll("10:00:30", listed(vec![running("a")]));
    assert_eq!(story.told(Kind::Repriced), 0);
    let unsure = Instance { rates: running("a").rates.with_missing(), ..running("a") };
    story.poll("10:00:45", listed(vec![unsure]));
    story.poll("10:01:00", listed(vec![running("a")]));
    assert_eq!(story.told(Kind::Repriced), 0, "what was not told is no other price");
    story.poll("10:01:15", listed(vec![instance("a", Phase::Running, "1.25")]));
    let Matter::Repriced { before, after, .. } = story.matter(Kind::Repriced) else { panic!() };
    assert_eq!((before, after), (&vec![usd("1")], &vec![usd("1.25")]));
}

/// LIFE-09: stopped, and charged as if it ran; and one whose disk alone is charged.
#[test]
fn what_is_stopped_and_still_charged_is_told_soon_in_full_and_later_for_its_disk_alone() {
    let disk = Rates::known().with(Component::Disk, usd("0.044"));
    let euro = Rate::per_hour("0.8".parse().unwrap(), Currency::EUR).unwrap();
    let rows = || {
        let scw = Rates::known().with(Component::Compute, euro);
        vec![
            instance("do", Phase::Stopped, "3.39"),
            Instance { rates: scw, ..instance("scw", Phase::Stopped, "0") },
            Instance { rates: disk.clone(), ..instance("disk", Phase::Stopped, "0") },
            Instance { rates: Rates::known(), ..instance("free", Phase::Stopped, "0") },
            Instance { market: Market::Reserved { until: None }, ..instance("paid", Phase::Stopped, "1") },
        ]
    };
    let mut story = Story::begin("00:00:00");
    story.poll("00:00:00", listed(rows()));
    story.poll("00:09:00", listed(rows()));
    assert_eq!(story.calling(), []);
    story.poll("05:00:00", listed(rows()));
    assert_eq!(story.calling(), [Kind::StoppedBilled; 2]);
    story.start();
    story.poll("12:00:00", listed(rows()));
    assert_eq!(story.told(Kind::StoppedBilled), 2);
    story.now = at("00:00:00") + SignedDuration::from_hours(24);
    story.poll_now(listed(rows()));
    assert_eq!(story.told(Kind::StoppedBilled), 3, "counted from its first sign, over a restart");
    // It runs again.
    story.now += SignedDuration::from_mins(1);
    story.poll_now(listed(vec![instance("do", Phase::Running, "3.39")]));
    assert!(!story.calling().is_empty(), "the others are missing: nobody knows");
    assert!(story.state.world.alerting.alerts.get(&topic(Kind::StoppedBilled, "do")).is_none());
}

fn topic(kind: Kind, id: &str) -> Topic {
    topic_of(kind, identity("team", id))
}

fn topic_of(kind: Kind, identity: Identity) -> Topic {
    Topic { kind, about: crate::rules::alerts::About::Resource(identity), mark: String::new() }
}

#[test]
fn storage_that_nothing_uses_is_told_when_it_has_been_so_for_a_day_since_it_was_let_go() {
    let poll = |mounts: &[&str]| {
        let user = Instance { mounts: mounts.iter().map(|id| (*id).into()).collect(), ..running("a") };
        with_storage(listed(vec![user]), vec![volume("v", "0.1", &[])])
    };
    let mut story = Story::begin("00:00:00");
    story.limits().unattached = Some(SignedDuration::from_hours(6));
    story.poll("00:00:00", poll(&[]));
    story.poll("05:00:00", poll(&["v"]));
    story.poll("06:30:00", poll(&[]));
    assert_eq!(story.calling(), [], "it was used meanwhile");
    story.now = at("12:00:00");
    story.start();
    story.poll("12:29:00", poll(&[]));
    assert_eq!(story.calling(), []);
    story.poll("12:30:00", poll(&[]));
    assert_eq!(story.calling(), [Kind::Unattached]);
    let Matter::Unattached { since, .. } = story.matter(Kind::Unattached) else { panic!() };
    assert_eq!(*since, at("06:30:00"));
}

#[test]
fn an_account_that_does_not_answer_is_told_after_its_time_and_a_refused_key_at_once() {
    let down = || failed(ErrorKind::Server { status: 500, message: None, retry_after: None });
    let mut story = Story::begin("10:00:00");
    story.poll("10:00:00", a_and(vec![]));
    story.poll("10:01:00", down());
    story.poll("10:10:00", down());
    assert_eq!(story.calling(), []);
    story.poll("10:11:00", down());
    assert_eq!(story.calling(), [Kind::Account]);
    // It fails every other poll.
    for minute in (12..40).step_by(2) {
        story.poll(&format!("10:{minute}:00"), a_and(vec![]));
        story.poll(&format!("10:{}:00", minute + 1), down());
    }
    assert_eq!(story.told(Kind::Account), 1);
    story.poll("10:41:00", a_and(vec![]));
    story.poll("10:57:00", a_and(vec![]));
    assert_eq!((story.calling(), story.told(Kind::Account)), (vec![], 1));
    assert_eq!(story.state.world.alerting.alerts.ended().len(), 1);
    story.poll("11:00:00", failed(ErrorKind::Credentials { message: None }));
    assert_eq!((story.calling(), story.told(Kind::Account)), (vec![Kind::Account], 2));
}

/// BAL-03: what runs out first, and what it takes along.
#[test]
fn money_that_ends_soon_is_told_with_what_is_deleted_then_and_every_hour_until_it_was_seen() {
    let pod = |id, hourly, at_zero| Instance { at_zero, ..instance(id, Phase::Running, hourly) };
    let rows = || vec![pod("pod-a", "0.74", Fate::Stopped), pod("pod-b", "1.26", Fate::Deleted)];
    let poll = |cash: &str| {
        let item = volume("v", "0.1", &["pod-a"]);
        with_balance(with_storage(listed(rows()), vec![item]), cash)
    };
    let mut story = Story::begin("10:00:00");
    story.poll("10:00:00", poll("60"));
    assert_eq!(story.calling(), []);
    story.poll("10:01:00", poll("6"));
    let Matter::Runway { ends_at, lost, stopped, asleep, .. } = story.matter(Kind::Runway).clone() else { panic!() };
    let seconds = ends_at.duration_since(at("10:01:00")).as_secs();
    assert!((10256..10316).contains(&seconds), "{seconds}");
    assert_eq!((lost, stopped, asleep), (vec!["pod-b".to_owned()], 1, false));
    let told_at = |story: &Story| story.alerts.last().and_then(|alert| alert.told_at);
    assert_eq!(told_at(&story), Some(at("10:01:00")));
    story.poll("11:01:00", poll("4"));
    assert_eq!(told_at(&story), Some(at("11:01:00")));
    story.acknowledge();
    story.poll("12:01:00", poll("3"));
    assert_eq!((told_at(&story), story.calling()), (Some(at("11:01:00")), vec![]));
    story.poll("12:02:00", poll("60"));
    assert_eq!(story.state.world.alerting.alerts.open().count(), 0);
}

#[test]
fn money_that_ends_in_the_night_is_told_the_evening_before() {
    let poll = |cash: &str| with_balance(listed(vec![running("a")]), cash);
    let mut story = Story::begin("10:00:00");
    story.limits().runway = Some(SignedDuration::from_hours(1));
    story.limits().awake = Some(Awake { from: "08:00".parse().unwrap(), to: "23:00".parse().unwrap() });
    // To three in the morning.
    story.poll("19:59:00", poll("7"));
    assert_eq!(story.calling(), []);
    story.poll("20:00:00", poll("7"));
    let Matter::Runway { asleep, .. } = story.matter(Kind::Runway) else { panic!() };
    assert!(*asleep);
    // It reaches past the next waking hour.
    story.poll("20:10:00", poll("13"));
    assert_eq!((story.calling(), story.told(Kind::Runway)), (vec![], 1));
}

/// BAL-02, BAL-04, BAL-05.
#[rstest]
#[case::not_readable(Poll { balance: Reading::Failed(error(ErrorKind::Decode { path: "amount".into(), message: "null".into() })), ..a_and(vec![]) })]
#[case::not_told(Poll { balance: Reading::NotTold, ..a_and(vec![]) })]
#[case::nothing_burns(with_balance(listed(vec![]), "6"))]
#[case::an_empty_account_that_burns_nothing(with_balance(listed(vec![]), "0"))]
fn without_a_balance_or_a_burn_no_money_ends(#[case] poll: Poll) {
    let mut story = Story::begin("10:00:00");
    story.poll("10:00:00", poll);
    assert_eq!(story.calling(), []);
}

#[test]
fn a_balance_that_cannot_be_read_any_more_ends_no_alert() {
    let mut story = Story::begin("10:00:00");
    story.poll("10:00:00", with_balance(a_and(vec![]), "3"));
    let unread = error(ErrorKind::Decode { path: "amount".into(), message: "null".into() });
    story.poll("10:01:00", Poll { balance: Reading::Failed(unread), ..a_and(vec![]) });
    assert_eq!(story.calling(), [Kind::Runway]);
}

#[test]
fn an_account_whose_money_comes_by_itself_has_a_quiet_note() {
    let mut story = Story::begin("10:00:00");
    story.state.world.alerting.topped_up.insert("team".into());
    story.poll("10:00:00", with_balance(a_and(vec![]), "3"));
    assert_eq!((story.calling(), story.told(Kind::Runway)), (vec![], 0));
    assert_eq!(story.state.world.alerting.alerts.open().count(), 1);
}

#[test]
fn a_burn_over_its_limit_is_told_once_and_only_of_what_was_heard() {
    let mut story = Story::begin("10:00:00");
    story.limits().burn = Some(usd("1.5"));
    story.poll("10:00:00", a_and(vec![running("b")]));
    assert_eq!(story.calling(), [Kind::Burn]);
    story.now = at("18:00:00");
    story.start();
    story.tick("18:00:00");
    assert_eq!(story.calling(), [Kind::Burn], "nobody knows yet");
    story.poll("18:00:10", listed(vec![instance("a", Phase::Running, "1.48"), instance("b", Phase::Stopped, "0")]));
    assert!(
        !story.calling().contains(&Kind::Burn),
        "it is nearly over the limit: nobody is called, and it is the same alert"
    );
    story.poll("18:00:25", a_and(vec![running("b")]));
    assert!(story.calling().contains(&Kind::Burn) && story.told(Kind::Burn) == 1);
}

#[test]
fn what_is_stale_begins_no_alert_and_ends_none() {
    let mut story = Story::begin("10:00:00");
    story.poll("10:00:00", a_and(vec![instance("do", Phase::Stopped, "3.39")]));
    story.state.world.fleet.accounts[0].pacing.in_flight = Some(at("10:00:00"));
    story.tick("10:30:00");
    assert_eq!(story.calling(), [], "what was seen half an hour ago is no proof");
    assert_eq!(story.state.world.alerting.alerts.open().count(), 1, "and no disproof");
    story.poll("10:30:15", a_and(vec![instance("do", Phase::Stopped, "3.39")]));
    assert_eq!(story.calling(), [Kind::StoppedBilled]);
}

#[test]
fn a_term_that_ends_is_worth_a_note_and_what_the_provider_ends_is_more() {
    let ends = at("20:00:00");
    let rows = || {
        vec![
            Instance { market: Market::Reserved { until: Some(ends) }, ..running("term") },
            Instance { ends_at: Some(ends), ..running("contract") },
        ]
    };
    let mut story = Story::begin("10:00:00");
    story.limits().ending = Some(SignedDuration::from_hours(6));
    story.poll("13:59:00", listed(rows()));
    assert_eq!(story.calling(), []);
    story.poll("14:00:00", listed(rows()));
    let deleted: Vec<(String, bool)> = story
        .state
        .world
        .alerting
        .alerts
        .calling()
        .filter_map(|alert| match &alert.matter {
            Matter::Ending { name, deleted, .. } => Some((name.clone(), *deleted)),
            _ => None,
        })
        .collect();
    assert_eq!(deleted, [("contract".to_owned(), true), ("term".to_owned(), false)]);
}

#[test]
fn what_somebody_saw_on_another_screen_is_seen_here() {
    let mut story = Story::begin("10:00:00");
    story.limits().burn = Some(usd("0.5"));
    story.poll("10:00:00", a_and(vec![]));
    let theirs = |stage| vec![Alert { stage, ..story.alerts[0].clone() }];
    let (past, seen) = (theirs(Stage::Snoozed { until: at("09:59:00") }), theirs(Stage::Acknowledged));
    story.hear(WorldEvent::AlertsRecalled { alerts: past, acted: Vec::new() });
    assert_eq!(story.calling(), [Kind::Burn], "a time that has come is not waited for again");
    story.hear(WorldEvent::AlertsRecalled { alerts: seen, acted: Vec::new() });
    assert_eq!(story.calling(), []);
}

#[test]
fn who_only_looks_on_finds_nothing_and_keeps_no_events() {
    let mut story = Story::begin("10:00:00");
    story.poll("10:00:00", a_and(vec![]));
    let owner = crate::rules::memory::Owner { host: "desk".to_owned(), pid: 7 };
    story.hear(WorldEvent::Collector(Collector::Other { owner, until: at("23:00:00") }));
    story.poll("10:00:15", a_and(vec![running("b")]));
    assert!(story.calling().is_empty() && story.state.world.alerting.events.is_empty());
}

#[test]
fn an_idle_instance_of_somebody_else_is_none_of_ours() {
    use crate::rules::usage::{Gauge, Idleness, Verdict};
    let idles = |story: &mut Story| {
        let since = Some(at("08:00:00"));
        let idleness = Idleness { verdict: Verdict::Idle, since, ..Idleness::default() };
        let mut gauge = Gauge::default();
        gauge.judged(idleness, story.now);
        story.state.world.gauges.by.insert(identity("team", "a"), gauge);
    };
    let look = |story: &mut Story| {
        idles(story);
        super::look(&mut story.state.world, story.now);
        story.calling()
    };
    let mut story = Story::begin("10:00:00");
    story.poll("10:00:00", a_and(vec![]));
    story
        .state
        .world
        .settings
        .single
        .insert(identity("team", "a"), Setting { mine: Some(false), ..Setting::default() });
    assert_eq!(look(&mut story), []);
    let setting = Setting { protected: Some(true), ..Setting::default() };
    story.state.world.settings.single.insert(identity("team", "a"), setting);
    assert_eq!(look(&mut story), [Kind::Idle], "one that is protected costs as well");
    let Matter::Idle { rates, since, .. } = story.matter(Kind::Idle) else { panic!() };
    assert_eq!((rates, *since), (&vec![usd("1")], at("08:00:00")));
    // It works: the alert waits for it to settle, and calls nobody.
    story
        .state
        .world
        .gauges
        .by
        .get_mut(&identity("team", "a"))
        .unwrap()
        .judged(Idleness { verdict: Verdict::Busy, ..Idleness::default() }, at("10:00:00"));
    super::look(&mut story.state.world, story.now);
    assert_eq!((story.calling(), story.state.world.alerting.alerts.open().count()), (vec![], 1));
    // It is stopped: that is the end of it.
    story.poll("10:00:15", listed(vec![Instance { rates: Rates::known(), ..instance("a", Phase::Stopped, "0") }]));
    assert_eq!(story.state.world.alerting.alerts.open().count(), 0);
}

/// What another process did to `b`, as the ledger tells it.
fn theirs(story: &Story, action: Action, changed: impl Fn(&mut Operation)) -> Vec<Operation> {
    use crate::rules::plan::plan;
    let basis = story.state.world.basis(&[], story.now);
    let target = plan(basis, action, &[identity("team", "b")]).targets.remove(0);
    let (mut operation, _) =
        Operation::begin(OpId(1), action, target, Authority::LoseData, "bo@desk".to_owned(), story.now);
    operation.sent = 1;
    changed(&mut operation);
    vec![operation]
}

#[rstest]
#[case::under_way(Action::Release, |_: &mut Operation| {}, 0)]
#[case::done(Action::Release, |operation: &mut Operation| operation.step = Step::Ended { at: at("10:00:05"), outcome: Outcome::Done { despite: None } }, 0)]
#[case::done_long_ago(Action::Release, |operation: &mut Operation| operation.step = Step::Ended { at: at("08:59:00"), outcome: Outcome::Done { despite: None } }, 1)]
#[case::taken_back(Action::Release, |operation: &mut Operation| operation.step = Step::Ended { at: at("10:00:05"), outcome: Outcome::NotSent(NotSent::TakenBack) }, 1)]
#[case::not_sent_yet(Action::Release, |operation: &mut Operation| operation.sent = 0, 1)]
#[case::another_action(Action::Restart, |_: &mut Operation| {}, 1)]
#[case::another_machine(Action::Release, |operation: &mut Operation| operation.target.identity.id = "c".into(), 1)]
fn what_another_process_did_is_not_told_as_what_nobody_did(
    #[case] action: Action,
    #[case] changed: fn(&mut Operation),
    #[case] told: usize,
) {
    for restarted in [false, true] {
        let mut story = Story::begin("10:00:00");
        story.poll("10:00:00", a_and(vec![running("b")]));
        story.acted = Some(theirs(&story, action, changed));
        if restarted {
            story.start();
        }
        story.poll("10:00:10", a_and(vec![])).poll("10:00:15", a_and(vec![]));
        story.hear_gone("b");
        assert_eq!(story.told(Kind::Vanished), told, "restarted: {restarted}");
        assert_eq!(story.alerts.len(), told, "nothing is left of what was explained");
    }
}

#[test]
fn while_the_ledger_does_not_answer_what_happened_is_held_back_for_a_time_and_outlives_a_restart() {
    let mut story = Story::begin("10:00:00");
    story.poll("10:00:00", a_and(vec![running("b")]));
    story.acted = None;
    story.poll("10:00:10", a_and(vec![])).poll("10:00:15", a_and(vec![]));
    story.hear_gone("b");
    story.tick("10:00:30");
    assert_eq!((story.calling(), story.alerts.len()), (vec![], 1), "it is written down");
    story.start();
    story.tick("10:00:34");
    assert_eq!(story.calling(), []);
    story.tick("10:00:35");
    assert_eq!(story.calling(), [Kind::Vanished]);
}

/// A command that lists and is gone takes in what was listed: without a word of it, nobody would ever be told.
#[test]
fn what_a_command_was_the_first_to_see_is_told_by_who_looks_next() {
    let mut story = Story::begin("10:00:00");
    story.poll("10:00:00", a_and(vec![running("b"), running("c")]));
    story.start();
    (story.state.world.one_shot, story.state.world.alerting.heedless) = (true, true);
    for clock in ["11:00:00", "11:00:15"] {
        story.poll(clock, a_and(vec![instance("c", Phase::Running, "2"), running("new")]));
    }
    story.hear_gone("b");
    story.tick("11:00:30");
    assert_eq!(story.calling(), []);
    story.now = at("12:00:00");
    story.start();
    story.poll("12:00:00", a_and(vec![instance("c", Phase::Running, "2"), running("new")]));
    story.tick("12:00:20");
    assert_eq!(story.calling(), [Kind::Repriced, Kind::Appeared, Kind::Vanished]);
    assert_eq!(story.alerts.len(), 3);
}

#[test]
fn what_left_an_account_unexplained_is_told_as_the_books_say_it_every_hour() {
    let money = |amount: &str| Money::new(amount.parse().unwrap(), Currency::USD);
    let answer = |last: &str, unfinished| {
        let change = BalanceChange {
            account: "team".into(),
            from: at("01:00:00"),
            to: at("09:00:00"),
            first: money("100"),
            last: money(last),
            paid_in: money("0"),
            vouchers: None,
            charged: Exact::of("8".parse().unwrap()),
        };
        let question = Question::Balances(Period::month(date_of(at("10:00:00"), &jiff::tz::TimeZone::UTC)));
        let (cells, entries, since) = (vec![], vec![], vec![]);
        WorldEvent::Balances(Box::new(Answer { question, cells, entries, since, balances: vec![change], unfinished }))
    };
    let asks = |story: &mut Story, clock: &str| {
        story.now = at(clock);
        story.state.world.ledger_due = Some(story.now + SignedDuration::from_secs(10));
        let effects = take(&mut story.state, Event::World(WorldEvent::Tick), story.now);
        effects.iter().filter(|effect| matches!(effect, Effect::AskBalances(Question::Balances(_)))).count()
    };
    let mut story = Story::begin("10:00:00");
    story.poll("10:00:00", a_and(vec![]));
    assert_eq!((asks(&mut story, "10:59:59"), asks(&mut story, "11:00:00")), (0, 1));
    story.poll("11:00:01", a_and(vec![]));
    story.hear(answer("50", true));
    story.tick("11:00:02");
    assert_eq!(story.calling(), [], "the books are not added up");
    for (last, told) in [("95", 0), ("91.95", 0), ("87", 1)] {
        story.hear(answer(last, false));
        story.tick("11:00:02");
        assert_eq!(story.told(Kind::Unexplained), told, "{last}");
    }
    assert!(matches!(story.matter(Kind::Unexplained), Matter::Unexplained { amount, .. } if *amount == money("5")));
    story.start();
    story.poll("11:00:20", a_and(vec![]));
    assert_eq!(story.calling(), [Kind::Unexplained], "nobody knows yet");
    story.hear(answer("92", false));
    story.tick("11:00:21");
    assert_eq!((story.calling(), story.told(Kind::Unexplained)), (vec![], 1));
}

fn channel(name: &str, watch_only: bool) -> ChannelRule {
    let pace = SignedDuration::from_secs(1);
    ChannelRule { name: name.to_owned(), watch_only, kinds: None, actions: true, pace, at_once: 5, way: 1 }
}

/// A screen collects and a `watch` looks on: the channels of those who watch are told all the same.
#[test]
fn channels_of_those_who_watch_are_told_by_a_screen_as_long_as_somebody_watches() {
    let mut story = Story::begin("10:00:00");
    story.state.world.alerting.on_screen = true;
    story.state.world.alerting.dispatch.rules = vec![channel("team", true)];
    story.poll("10:00:00", a_and(vec![]));
    let burns = |story: &mut Story, clock: &str, burns: bool| {
        story.limits().burn = burns.then(|| usd("0.5"));
        story.tick(clock);
        story.messages.len()
    };
    assert_eq!(burns(&mut story, "10:00:10", true), 0, "nothing but a screen is open");
    burns(&mut story, "10:00:20", false);
    story.hear(WorldEvent::Watched(true));
    assert_eq!(burns(&mut story, "10:00:30", true), 1);
    burns(&mut story, "10:00:40", false);
    story.hear(WorldEvent::Watched(false));
    let before = story.messages.len();
    assert_eq!(burns(&mut story, "10:00:50", true), before);
}

/// A person puts off, with a command beside the collector, what was seen before.
#[test]
fn what_was_seen_can_be_put_off_beside_the_collector() {
    let mut story = Story::begin("10:00:00");
    story.poll("10:00:00", a_and(vec![]));
    story.limits().burn = Some(usd("0.5"));
    story.tick("10:00:10");
    story.acknowledge();
    let put_off = Stage::Snoozed { until: at("10:01:00") };
    story.alerts.iter_mut().for_each(|alert| alert.stage = put_off);
    story.hear(WorldEvent::AlertsRecalled { alerts: story.alerts.clone(), acted: vec![] });
    let stages: Vec<Stage> = story.state.world.alerting.alerts.open().map(|alert| alert.stage).collect();
    assert_eq!(stages, [put_off]);
    assert_eq!(story.poll("10:01:00", a_and(vec![])).calling(), [Kind::Burn]);
}

/// An address that was corrected starts clean: nothing is said of it before a try, and nobody is told that it is over.
#[test]
fn a_channel_that_is_reached_otherwise_has_not_failed() {
    let mut story = Story::begin("10:00:00");
    let rules = vec![channel("ops", false), channel("other", false)];
    story.state.world.alerting.dispatch.rules = rules.clone();
    story.poll("10:00:00", a_and(vec![]));
    story.limits().burn = Some(usd("0.5"));
    story.tick("10:00:10");
    let why = "HTTP 404".to_owned();
    story.hear(WorldEvent::Sent { channel: "ops".to_owned(), delivery: Delivery::Refused { why } });
    story.tick("10:00:20");
    assert_eq!(story.calling(), [Kind::Burn, Kind::Channel]);
    for (way, expected) in [(1, 1), (2, 0)] {
        story.state.world.alerting.dispatch.rules =
            rules.iter().map(|rule| ChannelRule { way, ..rule.clone() }).collect();
        story.start();
        story.messages.clear();
        story.poll("10:01:00", a_and(vec![]));
        let about = story.state.world.alerting.alerts.open().filter(|alert| alert.topic.kind == Kind::Channel);
        assert_eq!(about.count(), expected, "reached by way {way}");
        assert!(!story.messages.iter().any(|message| matches!(message.news, News::Resolved(_))));
    }
}
