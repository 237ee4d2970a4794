//! The window of alerts: when it opens, which keys it hears, what it never does. Times are literal.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use providers::model::{Action, DataKind, Effect as Deed, Instance, Offer, Offers, Phase, Refusal, SshEndpoint};
use providers::provider::{Part, Poll, Reading};
use rstest::rstest;

use super::{next_wake, take, update};
use crate::app::action::{Code, Key, Mouse, MouseKind};
use crate::app::effect::Effect;
use crate::app::event::{Event, Intent, ViewEvent, WorldEvent};
use crate::app::idle::IdleList;
use crate::app::listing::Line;
use crate::app::message::Msg;
use crate::app::state::{AlertsPopup, Fixed, Listener, Modal, OfferedAccount, Question, State, Tab, View, World};
use crate::rules::alerts::{Awake, Finding, Matter, Stage, Topic};
use crate::rules::budgets::Scope;
use crate::rules::checkpoint::{KeepRule, Method, QUIET, Recipe, RecipeRule};
use crate::rules::fleet::Account;
use crate::rules::matcher::Glob;
use crate::rules::memory::{Collector, Memory};
use crate::rules::plan::{Confirmation, Hindrance};
use crate::rules::samples::{at, disk, identity, instance, usd};
use crate::rules::settings::{Rules, Setting};

/// A screen over three instances of one account.
struct Story {
    state: State,
    now: Timestamp,
    effects: Vec<Effect>,
}

fn can(id: &str, stop: bool) -> Instance {
    let release = Deed { lost: vec![disk(DataKind::VolumeDisk)], ..Deed::default() };
    let offers = Offers {
        stop: if stop { Offer::Yes(Deed::default()) } else { Offer::No(Refusal::NotOffered) },
        release: Offer::Yes(release),
        ..instance(id, Phase::Running, "1").offers
    };
    Instance { offers, name: Some(format!("{id}-name")), ..instance(id, Phase::Running, "1") }
}

impl Story {
    fn begin() -> Self {
        let now = at("10:00:00");
        let accounts = vec![Account::new("team".into(), "runpod".into(), false)];
        let mut state = State {
            world: World::new(accounts, Rules::default(), false, "ana@desk".to_owned(), now),
            view: View::new(Fixed::default(), Vec::new()),
            leaving: false,
        };
        super::start(&mut state, now);
        let mut story = Story { state, now, effects: Vec::new() };
        story.world(WorldEvent::Collector(Collector::Us));
        story.world(WorldEvent::Remembered { memory: Box::new(Memory::default()), notices: Vec::new() });
        let asked_at = story.now;
        story.state.world.fleet.account_mut(&"team".into()).unwrap().pacing.in_flight = Some(asked_at);
        let poll = Poll {
            instances: Part::complete(vec![can("a", true), can("b", true), can("c", false)]),
            storage: Part::NotAsked,
            balance: Reading::NotAsked,
            tenant: Reading::NotTold,
            server_time: None,
        };
        story.world(WorldEvent::Polled { account: "team".into(), asked_at, poll: Box::new(poll) });
        story
    }

    fn world(&mut self, event: WorldEvent) {
        // Only the story says what is the case.
        self.state.world.alerting.looked_at = Some(self.now);
        self.effects.extend(update(&mut self.state, Event::World(event), self.now));
    }

    fn wait(&mut self, milliseconds: i64) -> &mut Self {
        self.now += SignedDuration::from_millis(milliseconds);
        self
    }

    /// Time that somebody wakes the program at, if it asked for that.
    fn tick(&mut self) -> &mut Self {
        self.world(WorldEvent::Tick);
        self
    }

    fn key(&mut self, key: Key) -> &mut Self {
        self.effects = take(&mut self.state, Event::View(ViewEvent::Key(key)), self.now);
        super::settle(&mut self.state, self.now);
        self
    }

    fn press(&mut self, key: char) -> &mut Self {
        self.key(Key::char(key))
    }

    fn mouse(&mut self, kind: MouseKind) -> &mut Self {
        let mouse = Mouse { kind, column: 5, row: 4 };
        self.effects = update(&mut self.state, Event::View(ViewEvent::Mouse(mouse)), self.now);
        self
    }

    /// These are the case, as far as anybody knows from now on.
    fn found(&mut self, matters: Vec<Matter>) -> &mut Self {
        let found = matters.into_iter().map(Finding::now).collect();
        drop(self.state.world.alerting.alerts.take(found, &|_| false, self.now));
        self.state.world.changed = true;
        self.tick()
    }

    fn popup(&self) -> Option<&AlertsPopup> {
        self.state.view.modals.iter().find_map(|modal| match modal {
            Modal::Alerts(popup) => Some(popup),
            _ => None,
        })
    }

    fn ids(&self) -> Vec<&str> {
        let popup = self.popup().map(|popup| popup.topics.as_slice()).unwrap_or_default();
        popup.iter().map(|topic| self.of(topic)).collect()
    }

    fn of(&self, topic: &Topic) -> &str {
        let alert = self.state.world.alerting.alerts.get(topic).unwrap();
        alert.matter.identity().map_or("-", |identity| identity.id.as_str())
    }

    fn pointed(&self) -> &str {
        let popup = self.popup().unwrap();
        self.of(&popup.topics[popup.at])
    }

    fn stage(&self, id: &str) -> Stage {
        self.state.world.alerting.alerts.get(&idle(id, "1").topic()).unwrap().stage
    }

    fn idle_list(&self) -> Option<&IdleList> {
        match self.state.view.modals.last() {
            Some(Modal::Idle(list)) => Some(list),
            _ => None,
        }
    }

    fn plan(&self) -> Option<&Question> {
        match self.state.view.modals.last() {
            Some(Modal::Plan(question)) => Some(question),
            _ => None,
        }
    }

    fn rings(&self) -> bool {
        self.effects.contains(&Effect::Bell)
    }

    fn under_way(&self) -> usize {
        self.state.world.under_way().count()
    }
}

fn idle(id: &str, hourly: &str) -> Matter {
    Matter::Idle {
        identity: identity("team", id),
        name: format!("{id}-name"),
        since: at("08:00:00"),
        rates: vec![usd(hourly)],
        wasted: Vec::new(),
    }
}

fn empty() -> Matter {
    Matter::Runway {
        account: "team".into(),
        ends_at: at("23:00:00"),
        at_most: false,
        asleep: false,
        lost: vec!["a-name".to_owned()],
        stopped: 0,
    }
}

/// It is open and hears keys: `b` costs most, then `a`.
fn open() -> Story {
    let mut story = Story::begin();
    story.found(vec![idle("a", "1"), idle("b", "2")]).wait(600).tick();
    assert_eq!(story.state.view.listener(), Listener::AlertsPopup);
    story
}

#[test]
fn it_opens_by_itself_the_worst_first() {
    let mut story = Story::begin();
    assert!(story.popup().is_none());
    story.found(vec![idle("a", "1"), empty(), idle("b", "2")]);
    assert_eq!(story.ids(), ["-", "b", "a"]);
    assert_eq!(story.state.view.attention, 3);
}

#[test]
fn the_view_beneath_hears_keys_until_half_a_second_passed_without_one() {
    let mut story = Story::begin();
    let first = story.state.view.fleet.cursor.clone();
    story.found(vec![idle("a", "1"), idle("b", "2")]);
    // Each key makes it wait again.
    story.wait(400).press('j');
    assert_ne!(story.state.view.fleet.cursor, first);
    assert_eq!(next_wake(&story.state, story.now), Some(story.now + SignedDuration::from_millis(500)));
    story.wait(499).press('k');
    assert_eq!(story.state.view.fleet.cursor, first);
    assert_eq!(story.popup().unwrap().at, 0);
    // Nothing wakes it at half a second but itself, and a key then is its own.
    story.wait(500).press('j');
    assert_eq!((story.state.view.fleet.cursor.clone(), story.popup().unwrap().at), (first, 1));
}

#[rstest]
#[case::stop(Key::char('s'))]
#[case::release(Key::char('x'))]
#[case::all_idle(Key::char('I'))]
#[case::confirm(Key::char('y'))]
#[case::enter(Key::plain(Code::Enter))]
fn what_ends_something_is_swallowed_meanwhile(#[case] key: Key) {
    let mut story = Story::begin();
    story.state.world.fleet.idle.insert(identity("team", "a"));
    story.found(vec![idle("a", "1")]);
    story.wait(499).key(key);
    assert_eq!((story.under_way(), story.state.view.modals.len()), (0, 1), "{key:?}");
    assert!(matches!(story.state.view.modals[0], Modal::Alerts(AlertsPopup { armed: false, .. })));
    assert!(!story.effects.iter().any(|effect| matches!(effect, Effect::Commit { .. } | Effect::Copy(_))));
}

/// The first repeat of a held key comes after the window hears keys.
#[test]
fn a_key_that_is_held_is_none_of_its_own() {
    let mut story = Story::begin();
    story.found(vec![idle("a", "1")]);
    story.wait(10).press('s').wait(520).tick();
    assert!(story.popup().unwrap().armed);
    story.wait(100).press('s');
    story.wait(30).press('s').wait(30).press('s');
    assert_eq!(story.under_way(), 0);
}

#[rstest]
#[case::filter('/')]
#[case::help('?')]
fn it_waits_while_something_is_open(#[case] opens: char) {
    let mut story = Story::begin();
    story.press(opens).wait(1000);
    story.found(vec![idle("a", "1")]).wait(5000).tick();
    assert!(story.popup().is_none());
    assert_eq!(story.state.view.attention, 1);
    story.key(Key::plain(Code::Esc));
    assert_eq!(story.ids(), ["a"]);
    assert!(!story.popup().unwrap().armed);
}

#[test]
fn what_somebody_opens_over_it_goes_first() {
    let mut story = Story::begin();
    story.found(vec![idle("a", "1")]).wait(100);
    story.press('/').wait(200).press('a').wait(3000).tick();
    assert_eq!(story.state.view.listener(), Listener::Filter);
    assert_eq!(story.state.view.fleet.filter_text, "a");
    assert!(story.popup().is_none());
    story.key(Key::plain(Code::Enter));
    assert_eq!(story.ids(), ["a"]);
}

#[test]
fn it_waits_for_accounts_on_offer_and_for_room() {
    let mut story = Story::begin();
    let offered = OfferedAccount { number: 1, provider: "vast".to_owned(), variable: "VAST_API_KEY".to_owned() };
    story.state.view.offered.push(offered);
    story.found(vec![idle("a", "1")]).wait(1000).tick();
    assert!(story.popup().is_none());
    story.state.view.offered.clear();
    story.state.view.height = 10;
    story.wait(1000).tick();
    assert!(story.popup().is_none());
    story.state.view.height = 24;
    story.wait(1000).tick();
    assert!(story.popup().is_some());
}

#[test]
fn what_was_left_does_not_pop_up_again_until_it_is_told_again() {
    let mut story = Story::begin();
    story.found(vec![empty()]).wait(600).key(Key::plain(Code::Esc));
    assert!(story.popup().is_none());
    assert_eq!(story.state.view.attention, 1);
    story.wait(59 * 60_000).found(vec![empty()]);
    assert!(story.popup().is_none());
    // Hourly, while nobody has seen it.
    story.wait(60_000).found(vec![empty()]);
    assert_eq!(story.ids(), ["-"]);
}

#[test]
fn new_ones_join_it_without_moving_the_cursor() {
    let mut story = open();
    story.press('j');
    assert_eq!(story.pointed(), "a");
    story.wait(2000).found(vec![idle("a", "1"), idle("b", "2"), empty()]);
    assert_eq!((story.ids(), story.pointed()), (vec!["b", "a", "-"], "a"));
    // One before it is over.
    story.wait(2000).found(vec![idle("a", "1"), empty()]);
    assert_eq!((story.ids(), story.pointed()), (vec!["a", "-"], "a"));
    assert!(story.popup().unwrap().jumped_at.is_none());
}

#[test]
fn a_key_meant_for_one_that_has_just_gone_ends_no_other() {
    let mut story = open();
    assert_eq!(story.pointed(), "b");
    story.wait(1000).found(vec![idle("a", "1")]);
    assert_eq!(story.pointed(), "a");
    story.wait(300).press('s');
    assert_eq!(story.under_way(), 0);
    assert_eq!(story.state.view.message.as_ref().map(|shown| &shown.message), Some(&Msg::RowJustChanged));
    story.wait(300).press('s');
    assert_eq!(story.under_way(), 1);
}

#[test]
fn it_goes_when_nothing_calls_any_more() {
    let mut story = open();
    story.wait(1000).found(Vec::new());
    assert!(story.state.view.modals.is_empty());
    assert_eq!(story.state.view.attention, 0);
}

#[test]
fn a_stop_begins_its_countdown_as_in_the_fleet_and_can_be_taken_back() {
    let mut story = open();
    story.press('s');
    assert_eq!(story.state.world.operation_on(&identity("team", "b")).map(|one| one.in_countdown()), Some(true));
    assert!(story.popup().is_some());
    story.wait(1000).press('u');
    assert_eq!(story.under_way(), 0);
}

#[test]
fn a_release_asks_for_the_name_in_its_plan() {
    let mut story = open();
    story.press('x');
    let plan = story.plan().expect("a plan is open");
    assert_eq!(plan.asked, [identity("team", "b")]);
    assert_eq!(story.under_way(), 0);
    // The plan hears keys now: what calls newly does not get between.
    story.wait(1000).found(vec![idle("a", "1"), idle("b", "2"), empty()]);
    assert!(story.plan().is_some());
    story.wait(1000).key(Key::plain(Code::Esc));
    assert_eq!(story.ids(), ["b", "a", "-"]);
}

/// A stopped instance is never started from an alert.
#[test]
fn stop_never_means_start() {
    let mut story = open();
    let known = story.state.world.fleet.instances.get_mut(&identity("team", "b")).unwrap();
    known.row.phase = Phase::Stopped;
    known.row.offers.stop = Offer::No(Refusal::WrongPhase);
    known.row.offers.start = Offer::Yes(Deed::default());
    story.press('s');
    assert_eq!(story.under_way(), 0);
    assert!(story.plan().is_none());
}

#[test]
fn seen_is_said_of_one_or_of_all() {
    let mut story = open();
    story.press('a');
    assert_eq!((story.stage("b"), story.stage("a")), (Stage::Acknowledged, Stage::Firing));
    assert_eq!((story.ids(), story.state.view.attention), (vec!["a"], 1));
    assert!(story.effects.iter().any(|effect| matches!(effect, Effect::KeepAlerts { .. })));
    story.wait(1000).found(vec![idle("a", "1"), idle("b", "2"), empty()]);
    story.wait(1000).press('A');
    assert_eq!(story.stage("a"), Stage::Acknowledged);
    assert!(story.state.view.modals.is_empty());
    assert_eq!(story.state.view.attention, 0);
}

#[rstest]
#[case::hour('1', None, "11:00")]
#[case::morning('2', None, "08:00")]
#[case::awake('2', Some("07:30"), "07:30")]
fn it_can_be_told_again_later(#[case] choice: char, #[case] awake: Option<&str>, #[case] clock: &str) {
    let mut story = open();
    let time = |text: &str| text.parse().unwrap();
    story.state.world.alerting.limits.awake = awake.map(|from| Awake { from: time(from), to: time("23:00") });
    story.press('z').wait(1000).press(choice);
    let Stage::Snoozed { until } = story.stage("b") else { panic!("{:?}", story.stage("b")) };
    let there = TimeZone::UTC.to_datetime(until);
    assert_eq!(format!("{:02}:{:02}", there.hour(), there.minute()), clock);
    assert!(until > story.now + SignedDuration::from_mins(59));
    assert_eq!((story.ids(), story.state.view.attention), (vec!["a"], 1));
}

#[test]
fn enter_goes_to_the_row() {
    let mut story = open();
    story.state.view.tab = Tab::Activity;
    story.key(Key::plain(Code::Enter));
    assert_eq!((story.state.view.tab, story.state.view.modals.len()), (Tab::Fleet, 0));
    assert_eq!(story.state.view.fleet.cursor, Some(Line::Resource(identity("team", "b"))));
}

#[test]
fn the_bell_rings_once_when_it_is_wanted() {
    let mut story = Story::begin();
    story.state.world.alerting.limits.bell = true;
    story.found(vec![idle("a", "1")]);
    story.effects.clear();
    story.wait(10).tick();
    assert!(story.rings());
    story.effects.clear();
    story.wait(5000).tick();
    assert!(!story.rings());
    // Without being asked for it is silent.
    let mut story = Story::begin();
    story.found(vec![idle("a", "1")]).wait(10).tick();
    assert!(!story.rings());
}

#[test]
fn a_paste_and_a_click_answer_nothing() {
    for armed in [false, true] {
        let mut story = Story::begin();
        story.found(vec![idle("a", "1")]).wait(if armed { 1000 } else { 100 }).tick();
        let cursor = story.state.view.fleet.cursor.clone();
        story.effects = update(&mut story.state, Event::View(ViewEvent::Paste("sxay".to_owned())), story.now);
        story.mouse(MouseKind::Press).mouse(MouseKind::Press);
        assert_eq!((story.under_way(), story.state.view.modals.len()), (0, 1));
        assert_eq!((story.stage("a"), story.state.view.fleet.cursor.clone()), (Stage::Firing, cursor));
    }
}

/// The list of all idle ones leads to plans only, and whoever is left out is named.
#[test]
fn all_idle_opens_a_list_and_begins_nothing() {
    let mut story = Story::begin();
    story.press('I');
    assert_eq!(story.state.view.message.as_ref().map(|shown| &shown.message), Some(&Msg::NothingIdleNow));
    story.state.world.fleet.idle.extend(["a", "b", "c"].map(|id| identity("team", id)));
    let protect = Setting { protected: Some(true), ..Setting::default() };
    story.world(WorldEvent::Intent(Intent::Set { identity: identity("team", "b"), setting: protect }));
    story.wait(1000).press('I');
    let list = story.idle_list().expect("the list is open");
    let each: Vec<_> =
        list.each().iter().map(|ways| (ways.name.to_owned(), ways.stop.is_ok(), ways.left_alone().is_some())).collect();
    let named = |name: &str, stops, alone| (name.to_owned(), stops, alone);
    assert_eq!(each, [named("a-name", true, false), named("c-name", false, false), named("b-name", false, true)]);
    story.wait(1000).press('y').wait(1000).key(Key::plain(Code::Enter));
    assert_eq!((story.under_way(), story.idle_list().is_some()), (0, true), "a list answers no question");
    story.wait(1000).press('s');
    let question = story.plan().expect("a plan is open");
    assert_eq!(question.plan.targets.iter().map(|target| target.name.as_str()).collect::<Vec<_>>(), ["a-name"]);
    let left: Vec<_> = question.plan.left_out.iter().map(|(_, name, why)| (name.as_str(), why.clone())).collect();
    let refused = Hindrance::Provider(Refusal::NotOffered);
    assert_eq!(left, [("c-name", refused), ("b-name", Hindrance::Protected)]);
    assert_eq!(story.under_way(), 0);
    story.wait(1000).key(Key::plain(Code::Enter));
    assert_eq!(story.under_way(), 0);
    story.wait(1000).press('y');
    assert_eq!(story.under_way(), 1);
}

/// The only idle one is protected: no bulk action takes it, however few there are.
#[test]
fn a_single_idle_one_that_is_protected_is_left_alone() {
    let mut story = Story::begin();
    story.state.world.fleet.idle.insert(identity("team", "b"));
    let protect = Setting { protected: Some(true), ..Setting::default() };
    story.world(WorldEvent::Intent(Intent::Set { identity: identity("team", "b"), setting: protect }));
    story.wait(1000).press('I').wait(1000).press('s');
    assert!(story.plan().is_none() && story.idle_list().is_some());
    let message = story.state.view.message.as_ref().map(|shown| &shown.message);
    assert!(matches!(message, Some(Msg::LeftOut { hindrance: Hindrance::Protected, .. })), "{message:?}");
}

/// What can be saved is released after that, and what cannot is left and named.
#[test]
fn all_idle_are_saved_and_released_by_what_the_config_says() {
    let mut story = Story::begin();
    story.state.world.fleet.idle.extend(["a", "b", "c"].map(|id| identity("team", id)));
    for id in ["a", "b"] {
        let known = story.state.world.fleet.instances.get_mut(&identity("team", id)).unwrap();
        known.row.ssh = SshEndpoint::new("root", "203.0.113.7", 22, true);
    }
    let to = Method::Copy { to: "/home/ana/checkpoints".to_owned() };
    let paths = vec!["/workspace/out".to_owned()];
    let recipe = Recipe { name: "default".to_owned(), paths, method: to, prepare: None, quiet: QUIET };
    let rule = |glob: &str| {
        let scope = Scope { instance: Some(Glob::new(glob)), ..Scope::default() };
        RecipeRule { recipe: recipe.clone(), scope, every: None, keep: KeepRule::default() }
    };
    story.state.world.recipes = vec![rule("a-*"), rule("c-*")];
    story.wait(1000).press('I').wait(1000).press('R');
    let question = story.plan().expect("a plan is open");
    let planned: Vec<_> =
        question.plan.targets.iter().map(|target| (target.name.as_str(), target.recipe.as_ref())).collect();
    assert_eq!((question.plan.action, planned), (Action::Release, vec![("a-name", Some(&recipe))]));
    let left: Vec<_> = question.plan.left_out.iter().map(|(_, name, why)| (name.as_str(), why.clone())).collect();
    assert_eq!(left, [("b-name", Hindrance::NoRecipe), ("c-name", Hindrance::NoAddress)]);
    assert_eq!((&question.plan.confirmation, story.under_way()), (&Confirmation::Save, 0));
    // The key that opened it is being held: that begins nothing.
    story.wait(500).press('R').wait(30).press('R').wait(30).press('R');
    assert_eq!(story.under_way(), 0);
    story.wait(1000).press('R');
    assert_eq!(story.under_way(), 1);
}

/// A row that an alert is about is counted once, and no more when somebody has seen that.
#[test]
fn what_needs_somebody_is_counted_once() {
    let mut story = Story::begin();
    let known = story.state.world.fleet.instances.get_mut(&identity("team", "a")).unwrap();
    known.row.phase = Phase::Reclaimed;
    story.state.world.changed = true;
    story.tick();
    assert_eq!(story.state.view.attention, 1);
    let reclaimed =
        || Matter::Reclaimed { identity: identity("team", "a"), name: "a-name".to_owned(), copied_at: None };
    story.found(vec![reclaimed(), idle("b", "1")]);
    assert_eq!(story.state.view.attention, 2);
    story.world(WorldEvent::Intent(Intent::Acknowledge(vec![reclaimed().topic()])));
    assert_eq!(story.state.view.attention, 1);
}

/// What is urgent stands first as long as nobody has touched the window; the cursor stays on its alert.
#[test]
fn what_is_urgent_is_sorted_in_while_nobody_has_touched_the_window() {
    let mut story = open();
    story.wait(3000).found(vec![idle("a", "1"), idle("b", "2"), empty(), idle("c", "9")]);
    assert_eq!((story.ids(), story.pointed()), (vec!["-", "c", "b", "a"], "b"));
    story.press('j').wait(5000).found(vec![idle("a", "1"), idle("b", "2"), empty(), idle("c", "9"), idle("d", "99")]);
    assert_eq!((story.ids(), story.pointed()), (vec!["-", "c", "b", "a", "d"], "a"), "touched");
}
