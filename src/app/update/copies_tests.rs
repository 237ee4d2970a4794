use std::collections::BTreeMap;

use providers::model::{Instance, SshEndpoint};
use rstest::rstest;

use super::*;
use crate::app::effect::Then;
use crate::app::event::{Event, Intent, WorldEvent};
use crate::app::state::{Fixed, State, View};
use crate::app::update::{next_wake, take};
use crate::rules::alerts::{Kind, Matter};
use crate::rules::budgets::Scope;
use crate::rules::checkpoint::{Job, KeepRule, Progress, Proof, QUIET, Recipe, Stage, Told};
use crate::rules::fleet;
use crate::rules::matcher::Matcher;
use crate::rules::memory::{AccountMemory, Collector, Memory, Owner};
use crate::rules::saga::{Authority, Input};
use crate::rules::samples::{at, identity, instance, listed};
use crate::rules::settings::{Rules, Setting};

fn minutes(count: i64) -> SignedDuration {
    SignedDuration::from_mins(count)
}

fn recipe() -> Recipe {
    Recipe {
        name: "default".to_owned(),
        paths: vec!["/workspace/out".to_owned()],
        method: Method::Copy { to: "/home/ana/checkpoints".to_owned() },
        prepare: None,
        quiet: QUIET,
    }
}

fn rule(every: Option<SignedDuration>) -> RecipeRule {
    RecipeRule { recipe: recipe(), scope: Scope::default(), every, keep: KeepRule::default() }
}

fn machine(id: &str) -> Instance {
    Instance {
        ssh: SshEndpoint::new("root", "203.0.113.7", 22, true),
        started_at: Some(at("00:00:00")),
        ..instance(id, Phase::Running, "1")
    }
}

/// The collector of one account, `team`, with a provider that answers at once, a ledger that outlives it, and somebody
/// who makes copies.
struct Story {
    state: State,
    now: Timestamp,
    rows: Vec<Instance>,
    /// How long each stage of a copy takes; none fails while this is `None`.
    takes: SignedDuration,
    fails: Option<Trouble>,
    stages: Vec<(Timestamp, Job)>,
    /// Verified copies as they came, each with its machine.
    copies: Vec<(Timestamp, String)>,
    /// Begun on a schedule, with when.
    begun: Vec<(Timestamp, String)>,
    most_at_once: usize,
    thinned: Vec<Effect>,
    looked_for: Vec<OpId>,
    operations: BTreeMap<OpId, Operation>,
    saved: BTreeMap<Identity, Saved>,
    account: Option<AccountMemory>,
    known: BTreeMap<Identity, Known<Instance>>,
    alerts: Vec<crate::rules::alerts::Alert>,
}

impl Story {
    /// Every half an hour, of these machines, which run since midnight.
    fn over(ids: &[&str], clock: &str) -> Self {
        let mut story = Story {
            state: state(at(clock)),
            now: at(clock),
            rows: ids.iter().map(|id| machine(id)).collect(),
            takes: SignedDuration::from_secs(20),
            fails: None,
            stages: vec![],
            copies: vec![],
            begun: vec![],
            most_at_once: 0,
            thinned: vec![],
            looked_for: vec![],
            operations: BTreeMap::new(),
            saved: BTreeMap::new(),
            account: None,
            known: BTreeMap::new(),
            alerts: vec![],
        };
        story.start();
        story
    }

    /// The program starts, or starts again after it was killed.
    fn start(&mut self) {
        let before = std::mem::replace(&mut self.state, state(self.now)).world;
        self.state.world.recipes = before.recipes;
        self.stages.clear();
        self.hear(WorldEvent::Collector(Collector::Us));
        self.recall();
    }

    fn recall(&mut self) {
        let (ended, open): (Vec<Operation>, Vec<Operation>) =
            self.operations.values().rev().cloned().partition(Operation::is_ended);
        let owner = || Owner { host: "desk".to_owned(), pid: 1 };
        let memory = Memory {
            accounts: self.account.iter().cloned().collect(),
            instances: self.known.values().cloned().collect(),
            recent: ended,
            unfinished: open.into_iter().map(|operation| (operation, owner())).collect(),
            saved: self.saved.values().cloned().collect(),
            alerts: self.alerts.clone(),
            ..Memory::default()
        };
        self.hear(WorldEvent::Remembered { memory: Box::new(memory), notices: Vec::new() });
    }

    fn hear(&mut self, event: WorldEvent) {
        let effects = take(&mut self.state, Event::World(event), self.now);
        let scheduled = self.state.world.under_way().filter(|operation| is_scheduled(operation)).count();
        self.most_at_once = self.most_at_once.max(scheduled);
        for effect in effects {
            self.perform(effect);
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Poll { account, asked_at, .. } => {
                let poll = Box::new(listed(self.rows.clone()));
                self.hear(WorldEvent::Polled { account, asked_at, poll });
            }
            Effect::Keep(keep) => {
                self.account = Some(keep.account);
                self.known.extend(keep.instances.into_iter().map(|known| (known.identity.clone(), known)));
            }
            Effect::Commit { entry, then } => {
                let id = entry.target.identity.id.to_string();
                if !self.operations.contains_key(&entry.id) && is_scheduled(&entry) {
                    self.begun.push((self.now, id.clone()));
                }
                if let Some(saved) = entry.saved()
                    && self.saved.get(&saved.identity) != Some(&saved)
                {
                    self.copies.push((self.now, id));
                    self.saved.insert(saved.identity.clone(), saved);
                }
                self.operations.insert(entry.id, *entry);
                if let Some(Then::Save(job)) = then {
                    self.stages.push((self.now + self.takes, *job));
                }
            }
            Effect::StopSaving { op, .. } => self.stages.retain(|(_, job)| job.op != op),
            Effect::Thin { .. } => self.thinned.push(effect),
            Effect::LookForCopies(last) => self.looked_for.extend(last.iter().map(|saved| saved.op)),
            Effect::Claim => self.hear(WorldEvent::Collector(Collector::Us)),
            Effect::Recall => self.recall(),
            Effect::KeepAlerts { alerts, .. } => {
                for alert in alerts {
                    self.alerts.retain(|known| known.topic != alert.topic || known.since != alert.since);
                    self.alerts.push(alert);
                }
            }
            _ => {}
        }
    }

    /// Time passes, and the program wakes whenever it wants to.
    fn pass(&mut self, span: SignedDuration) -> &mut Self {
        let until = self.now + span;
        loop {
            let stage = self.stages.iter().enumerate().min_by_key(|(_, (at, _))| *at).map(|(at, stage)| (stage.0, at));
            let wake = next_wake(&self.state, self.now).map(|at| at.max(self.now + SignedDuration::from_millis(1)));
            match (stage, wake) {
                (Some((at, stage)), wake) if at <= until && wake.is_none_or(|wake| at <= wake) => {
                    self.now = self.now.max(at);
                    let (_, job) = self.stages.remove(stage);
                    let told = self.told(&job);
                    self.hear(WorldEvent::Saving { op: job.op, number: job.number, told });
                }
                (_, Some(wake)) if wake <= until => {
                    self.now = wake;
                    self.hear(WorldEvent::Tick);
                }
                _ => break,
            }
            assert_eq!(self.state.view.message, None, "nobody is told of it");
        }
        self.now = until;
        self
    }

    fn told(&self, job: &Job) -> Told {
        let progress = Progress { files: 1, bytes: 1, done: 1, rate: None };
        match (&self.fails, job.stage) {
            (Some(trouble), _) => Told::Failed(trouble.clone()),
            (None, Stage::Prepare | Stage::Copy) => Told::Done(progress),
            (None, Stage::Verify) => Told::Verified(Proof {
                at: self.now,
                files: 1,
                bytes: 1,
                left_out: 0,
                place: format!("/home/ana/checkpoints/{}", job.folder),
                manifest: String::new(),
            }),
        }
    }

    /// The machine here sleeps.
    fn sleep(&mut self, span: SignedDuration) -> &mut Self {
        self.now += span;
        self.stages.iter_mut().for_each(|(at, _)| *at += span);
        self.hear(WorldEvent::Tick);
        self
    }

    /// Alerts about copies that somebody was told of and that are not over.
    fn overdue(&self) -> Vec<&Matter> {
        let told = self.state.world.alerting.alerts.open().filter(|alert| alert.fired_at.is_some());
        told.filter(|alert| alert.topic.kind == Kind::CopyOverdue).map(|alert| &alert.matter).collect()
    }

    fn begin_by_hand(&mut self, action: Action, id: &str) {
        let under_way = self.state.world.busy(action);
        let basis = self.state.world.basis(&under_way, self.now);
        let plan = Box::new(plan::plan_with(basis, action, &[identity("team", id)], &SaveFirst::Nothing));
        assert_eq!(plan.left_out, []);
        let authority = if action == Action::Checkpoint { Authority::Saved } else { Authority::LosesNothing };
        self.hear(WorldEvent::Intent(Intent::Begin { plan, authority }));
        self.state.view.message = None;
    }
}

fn state(now: Timestamp) -> State {
    let accounts = vec![fleet::Account::new("team".into(), "vast".into(), false)];
    let mut world = World::new(accounts, Rules::default(), false, "ana@desk".to_owned(), now);
    world.recipes = vec![rule(Some(minutes(30)))];
    State { world, view: View::new(Fixed::default(), Vec::new()), leaving: false }
}

#[test]
fn a_machine_is_copied_every_half_an_hour_without_a_word() {
    let mut story = Story::over(&["a"], "09:00:00");
    story.pass(minutes(4 * 60));
    let times: Vec<Timestamp> = story.copies.iter().map(|(at, _)| *at).collect();
    assert!(times[0] <= at("09:02:00"), "the first is long overdue: {times:?}");
    assert!((8..=10).contains(&times.len()), "{times:?}");
    for pair in times.windows(2) {
        let apart = pair[1].duration_since(pair[0]);
        assert!((minutes(27)..=minutes(35)).contains(&apart), "{apart:#}");
    }
    let apart: std::collections::BTreeSet<_> = times.windows(2).map(|pair| pair[1].duration_since(pair[0])).collect();
    assert!(apart.len() > 2, "they are not in step");
    assert_eq!(story.overdue(), [] as [&Matter; 0]);
    // Each makes room, by the rule of its recipe.
    let thins = Effect::Thin {
        identity: identity("team", "a"),
        recipe: "default".to_owned(),
        keep: KeepRule::default(),
        zone: story.state.world.spending.zone.clone(),
    };
    assert_eq!(story.thinned, vec![thins; times.len()]);
    // Of those that came to something the last is remembered; the ledger has all.
    assert_eq!(story.state.world.operations.len(), 1);
    assert_eq!(story.operations.len(), times.len());
}

#[test]
fn two_are_made_at_a_time_and_all_have_their_turn() {
    let ids = ["a", "b", "c", "d", "e"];
    let mut story = Story::over(&ids, "09:00:00");
    story.takes = minutes(2);
    story.pass(minutes(25));
    let mut copied: Vec<&str> = story.copies.iter().map(|(_, id)| id.as_str()).collect();
    copied.sort_unstable();
    assert_eq!(copied, ids);
    assert_eq!(story.most_at_once, AT_ONCE);
}

#[test]
fn a_machine_that_has_just_come_up_has_its_first_one_later() {
    let mut story = Story::over(&[], "09:00:00");
    story.rows = vec![Instance { started_at: Some(at("09:00:00")), ..machine("a") }];
    story.pass(minutes(25));
    assert_eq!(story.begun, []);
    story.pass(minutes(10));
    assert_eq!(story.begun.len(), 1);
}

#[test]
fn none_is_made_while_something_else_is_done_to_the_machine() {
    let mut story = Story::over(&["a"], "09:00:00");
    story.takes = minutes(1);
    story.pass(minutes(5));
    assert_eq!(story.copies.len(), 1);
    story.takes = SignedDuration::from_hours(4);
    story.begin_by_hand(Action::Checkpoint, "a");
    let hand = story.state.world.under_way().next().unwrap().id;
    story.pass(minutes(4));
    assert_eq!(story.begun.len(), 1);
    // It stalls again and again, and is at it all the time.
    story.pass(minutes(20));
    assert!(story.state.world.under_way().all(|operation| operation.id == hand));
    assert_eq!(story.begun.len(), 1);
}

#[test]
fn what_somebody_wants_done_now_goes_before_it() {
    let mut story = Story::over(&["a"], "09:00:00");
    story.takes = minutes(4);
    story.pass(SignedDuration::from_secs(30));
    assert_eq!(story.begun.len(), 1);
    story.begin_by_hand(Action::Stop, "a");
    assert_eq!(story.stages.len(), 0, "it was stopped");
    let under_way: Vec<Action> = story.state.world.under_way().map(|operation| operation.action).collect();
    assert_eq!(under_way, [Action::Stop]);
}

#[test]
fn one_that_fails_is_tried_later_and_later_and_told_when_the_last_copy_is_too_old() {
    let mut story = Story::over(&["a"], "09:00:00");
    story.pass(minutes(10));
    assert_eq!(story.copies.len(), 1);
    let full = Trouble::NoRoom { need: 10, free: 1 };
    story.fails = Some(full.clone());
    story.pass(minutes(45));
    assert_eq!(story.overdue(), [] as [&Matter; 0], "45 minutes are not twice 30");
    story.pass(minutes(30));
    let copied_at = Some(story.copies[0].0);
    let expected = Matter::CopyOverdue {
        identity: identity("team", "a"),
        name: "a".to_owned(),
        copied_at,
        every: minutes(30),
        why: Some(full),
    };
    assert_eq!(story.overdue(), [&expected]);
    story.pass(minutes(5 * 60));
    let times: Vec<Timestamp> = story.begun.iter().skip(1).map(|(at, _)| *at).collect();
    let waits: Vec<SignedDuration> = times.windows(2).map(|pair| pair[1].duration_since(pair[0])).collect();
    assert!(waits.windows(2).take(4).all(|pair| pair[1] > pair[0]), "{waits:?}");
    assert!(waits.iter().all(|wait| *wait < minutes(62)), "{waits:?}");
    // Also a restart does not begin anew with it.
    let tried = story.begun.len();
    story.start();
    story.pass(minutes(1));
    assert_eq!(story.begun.len(), tried);
    story.fails = None;
    story.pass(minutes(65));
    assert!(story.copies.len() >= 2);
    assert_eq!(story.overdue(), [] as [&Matter; 0], "it is over");
}

#[test]
fn after_a_night_asleep_one_is_made_and_nobody_is_told_that_it_was_due() {
    let mut story = Story::over(&["a"], "09:00:00");
    story.pass(minutes(20));
    let before = story.copies.len();
    story.sleep(SignedDuration::from_hours(8)).pass(minutes(15));
    assert_eq!(story.copies.len(), before + 1);
    assert!(story.copies[before].0 <= at("17:23:00"), "{:?}", story.copies);
    assert!(story.alerts.iter().all(|alert| alert.topic.kind != Kind::CopyOverdue || alert.fired_at.is_none()));
}

/// The program was killed in the midst of one, and hours later somebody starts it again.
#[test]
fn one_that_was_under_way_is_finished_and_not_begun_twice() {
    let mut story = Story::over(&["a"], "09:00:00");
    story.takes = minutes(2);
    story.pass(minutes(3));
    assert_eq!((story.begun.len(), story.copies.len()), (1, 0));
    story.now += SignedDuration::from_hours(3);
    story.start();
    story.pass(minutes(10));
    assert_eq!((story.begun.len(), story.copies.len()), (1, 1));
    story.start();
    story.pass(minutes(20));
    assert_eq!(story.begun.len(), 1, "it is half an hour after the one before");
    assert_eq!(story.looked_for.len(), 1, "the last copies are looked for at the start");
}

#[test]
fn it_is_taken_back_only_by_who_points_at_it_and_comes_again_in_its_time() {
    let mut story = Story::over(&["a"], "09:00:00");
    story.takes = minutes(4);
    story.pass(minutes(1));
    let op = story.state.world.under_way().next().unwrap().id;
    story.hear(WorldEvent::Intent(Intent::TakeBack(None)));
    story.state.view.message = None;
    assert!(story.state.world.operations[&op].is_saving());
    story.hear(WorldEvent::Intent(Intent::TakeBack(Some(op))));
    story.state.view.message = None;
    assert!(story.state.world.operations[&op].is_ended());
    story.pass(minutes(26));
    assert_eq!(story.begun.len(), 1);
    story.pass(minutes(8));
    assert_eq!(story.begun.len(), 2);
}

#[rstest]
#[case::nobody_wants_it(|story: &mut Story| story.state.world.recipes = vec![rule(None)])]
#[case::read_only(|story: &mut Story| story.state.world.read_only = true)]
#[case::a_command(|story: &mut Story| story.state.world.one_shot = true)]
#[case::no_address(|story: &mut Story| story.rows[0].ssh = None)]
#[case::a_proxy_without_copies(|story: &mut Story| {
    story.rows[0].ssh = SshEndpoint::new("root", "203.0.113.7", 22, false);
})]
#[case::stopped(|story: &mut Story| story.rows = vec![instance("a", Phase::Stopped, "0.01")])]
#[case::of_somebody_else(|story: &mut Story| {
    let setting = Setting { mine: Some(false), ..Setting::default() };
    story.state.world.settings.single.insert(identity("team", "a"), setting);
})]
#[case::no_longer_listed(|story: &mut Story| story.rows.clear())]
fn none_is_made(#[case] unless: fn(&mut Story)) {
    let mut story = Story::over(&["a"], "09:00:00");
    story.state.world.recipes.clear();
    story.pass(minutes(1));
    story.state.world.recipes = vec![rule(Some(minutes(30)))];
    unless(&mut story);
    story.pass(minutes(1));
    story.begun.clear();
    story.pass(minutes(60));
    assert_eq!(story.begun, []);
}

/// A protected machine is one that matters: its results do as well.
#[test]
fn a_protected_machine_is_copied_like_any_other() {
    let mut story = Story::over(&["a"], "09:00:00");
    story.state.world.settings.rules.protect = vec![Matcher::default()];
    story.pass(minutes(5));
    assert_eq!(story.copies.len(), 1);
}

#[test]
fn a_clock_that_was_set_back_does_not_keep_the_next_one_away_for_long() {
    let mut story = Story::over(&["a"], "21:00:00");
    story.pass(minutes(5));
    assert_eq!(story.copies.len(), 1);
    story.now = at("09:00:00");
    story.start();
    story.pass(minutes(5));
    assert_eq!(story.copies.len(), 2);
}

#[test]
fn a_copy_that_is_not_there_is_no_longer_claimed() {
    let mut story = Story::over(&["a"], "09:00:00");
    story.pass(minutes(5));
    let first = story.saved[&identity("team", "a")].clone();
    story.pass(minutes(32));
    let second = story.saved[&identity("team", "a")].clone();
    assert_ne!(first.op, second.op);
    let lost = |op, earlier: Option<&Saved>| WorldEvent::CopyMissing {
        identity: identity("team", "a"),
        op,
        earlier: earlier.cloned().map(Box::new),
    };
    story.hear(lost(first.op, None));
    assert_eq!(story.state.world.saved[&identity("team", "a")].op, second.op, "a later one was made meanwhile");
    story.hear(lost(second.op, Some(&first)));
    assert_eq!(story.state.world.saved[&identity("team", "a")].op, first.op);
    story.hear(lost(first.op, None));
    assert!(story.state.world.saved.is_empty());
    story.saved.clear();
    story.pass(minutes(2));
    assert_eq!(story.copies.len(), 3, "there is none: the next is due at once");
}

/// What somebody chose by hand is not what the schedule is to bring to safety, and is thinned out by nobody.
#[test]
fn a_copy_of_other_paths_does_not_stand_for_it() {
    let mut story = Story::over(&["a"], "09:00:00");
    story.state.world.recipes.clear();
    story.pass(minutes(1));
    let by_hand = Recipe { name: String::new(), paths: vec!["/data".to_owned()], ..recipe() };
    let basis = story.state.world.basis(&[], story.now);
    let plan = plan::plan_with(basis, Action::Checkpoint, &[identity("team", "a")], &SaveFirst::By(by_hand));
    let authority = Authority::Saved;
    story.hear(WorldEvent::Intent(Intent::Begin { plan: Box::new(plan), authority }));
    story.state.view.message = None;
    let op = story.state.world.under_way().next().unwrap().id;
    for _ in 0..3 {
        let (_, job) = story.stages.remove(0);
        let told = story.told(&job);
        story.hear(WorldEvent::Saving { op, number: job.number, told });
    }
    story.state.view.message = None;
    assert_eq!((story.copies.len(), story.thinned.len()), (1, 0));
    story.state.world.recipes = vec![rule(Some(minutes(30)))];
    story.pass(minutes(3));
    assert_eq!((story.begun.len(), story.copies.len()), (1, 2));
    assert!(world::advance(&mut story.state.world, op, Input::Tick, story.now).is_empty());
}
