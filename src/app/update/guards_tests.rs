use providers::error::ErrorKind;
use providers::model::{Offer, Refusal, SshEndpoint};
use providers::money::Currency;
use providers::provider::{Accepted, Found};
use providers::usage::{GpuSample, Usage, UsageSource};
use rstest::rstest;

use super::*;
use crate::app::effect::Then;
use crate::app::event::{Event, Intent, WorldEvent};
use crate::app::state::{Fixed, State, View};
use crate::app::update::{settle, start, take};
use crate::rules::alerts::Kind;
use crate::rules::budgets::Scope;
use crate::rules::checkpoint::{self, KeepRule, Method, Progress, Proof, QUIET, Recipe, RecipeRule, Trouble};
use crate::rules::dispatch::News;
use crate::rules::guard::{Trial, Unable};
use crate::rules::lease::{Draft, What, When};
use crate::rules::memory::{Collector, Memory};
use crate::rules::saga::Operation;
use crate::rules::samples::{at, failed, identity, instance, listed};
use crate::rules::settings::{Rules, Setting};

/// What the machine's card does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Does {
    Work,
    Nothing,
    /// Its provider tells no figure.
    Untold,
}

/// A collector of one account with one machine, its provider, and its ledger, half a minute at a time.
struct Story {
    state: State,
    now: Timestamp,
    row: Instance,
    does: Does,
    /// Checkpoints come to nothing.
    disk_full: bool,
    /// The account does not answer.
    silent: bool,
    /// What was sent to the provider.
    sent: Vec<(Timestamp, Action)>,
    /// What was written down of guards.
    watches: Vec<Watch>,
    vetoes: Vec<(Identity, Veto)>,
    operations: BTreeMap<i64, Operation>,
    /// What was tried out, and what is in the way.
    tried: Vec<(Timestamp, Trial)>,
    unable: Option<Unable>,
    effects: Vec<Effect>,
}

fn a() -> Identity {
    identity("team", "a")
}

fn recipe() -> RecipeRule {
    let recipe = Recipe {
        name: "default".to_owned(),
        paths: vec!["/out".to_owned()],
        method: Method::Copy { to: "/copies".to_owned() },
        prepare: None,
        quiet: QUIET,
    };
    RecipeRule { recipe, scope: Scope::default(), every: None, keep: KeepRule::default() }
}

fn guard(action: Action) -> Guard {
    Guard {
        name: "idle".to_owned(),
        scope: Scope::default(),
        on: Condition::Idle { after: SignedDuration::from_hours(1) },
        action,
        mode: Mode::Enforce,
        countdown: SignedDuration::from_mins(10),
        on_screen: false,
        veto_label: Some("keep".to_owned()),
    }
}

impl Story {
    fn begin(guards: Vec<Guard>, recipes: Vec<RecipeRule>) -> Self {
        let now = at("00:00:00");
        let ssh = SshEndpoint::new("root", "203.0.113.7", 22, true);
        let mut story = Story {
            state: Story::program(guards, recipes, now),
            now,
            row: Instance { ssh, ..instance("a", Phase::Running, "2") },
            does: Does::Nothing,
            disk_full: false,
            silent: false,
            sent: Vec::new(),
            watches: Vec::new(),
            vetoes: Vec::new(),
            operations: BTreeMap::new(),
            tried: Vec::new(),
            unable: None,
            effects: Vec::new(),
        };
        story.start();
        story
    }

    fn program(guards: Vec<Guard>, recipes: Vec<RecipeRule>, now: Timestamp) -> State {
        let accounts = vec![Account::new("team".into(), "runpod".into(), false)];
        let mut world = World::new(accounts, Rules::default(), false, "ana@desk".to_owned(), now);
        world.use_zone(jiff::tz::TimeZone::UTC);
        (world.guarding.rules, world.recipes) = (guards, recipes);
        State { world, view: View::new(Fixed::default(), Vec::new()), leaving: false }
    }

    /// The program starts, and learns what the ledger knows.
    fn start(&mut self) {
        start(&mut self.state, self.now);
        self.hear(WorldEvent::Collector(Collector::Us));
        let memory = Memory { watches: self.watches.clone(), vetoes: self.vetoes.clone(), ..Memory::default() };
        self.hear(WorldEvent::Remembered { memory: Box::new(memory), notices: Vec::new() });
    }

    /// It ends and starts again after a time.
    fn restart(&mut self, after: SignedDuration) {
        let World { guarding, recipes, alerting, .. } = &self.state.world;
        let on_screen = alerting.on_screen;
        self.now += after;
        self.state = Story::program(guarding.rules.clone(), recipes.clone(), self.now);
        self.state.world.alerting.on_screen = on_screen;
        self.start();
    }

    fn world(&mut self) -> &mut World {
        &mut self.state.world
    }

    fn hear(&mut self, event: WorldEvent) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            let effects = take(&mut self.state, Event::World(event), self.now);
            settle(&mut self.state, self.now);
            for effect in effects {
                events.extend(self.perform(&effect));
                self.effects.push(effect);
            }
        }
    }

    fn perform(&mut self, effect: &Effect) -> Option<WorldEvent> {
        match effect {
            Effect::KeepWatches(watches) => self.watches.clone_from(watches),
            Effect::KeepVeto { identity, veto } => self.vetoes.push((identity.clone(), veto.clone())),
            Effect::RecallVetoes { asked_at } => {
                return Some(WorldEvent::VetoesRecalled { asked_at: *asked_at, vetoes: self.vetoes.clone() });
            }
            Effect::Prove(trial) => {
                self.tried.push((self.now, (**trial).clone()));
                return Some(WorldEvent::Proven { identity: trial.identity.clone(), unable: self.unable.clone() });
            }
            Effect::Lookup { op, identity } => {
                let found = Ok(Found::Instance(Box::new(self.seen())));
                return Some(WorldEvent::LookedUp { op: *op, identity: identity.clone(), found });
            }
            Effect::Commit { entry, then } => {
                self.operations.insert(entry.id.0, (**entry).clone());
                return then.as_ref().map(|then| self.then(then));
            }
            _ => {}
        }
        None
    }

    fn then(&mut self, then: &Then) -> WorldEvent {
        match then {
            Then::Send(permit) => {
                self.sent.push((self.now, permit.action()));
                let phase = if permit.action() == Action::Release { Phase::Gone } else { Phase::Stopped };
                self.row = Instance { ssh: self.row.ssh.clone(), ..instance("a", phase, "0.01") };
                WorldEvent::Acted { op: permit.op(), answer: Ok(Accepted::Done) }
            }
            Then::Save(job) => {
                let told = match job.stage {
                    _ if self.disk_full => checkpoint::Told::Failed(Trouble::NoRoom { need: 2, free: 1 }),
                    checkpoint::Stage::Verify => checkpoint::Told::Verified(Proof {
                        at: self.now,
                        files: 1,
                        bytes: 1,
                        left_out: 0,
                        place: format!("/copies/{}", job.folder),
                        manifest: String::new(),
                    }),
                    _ => checkpoint::Told::Done(Progress::default()),
                };
                WorldEvent::Saving { op: job.op, number: job.number, told }
            }
        }
    }

    fn seen(&self) -> Instance {
        let used = match self.does {
            Does::Work => Some(0.97),
            Does::Nothing => Some(0.0),
            Does::Untold => None,
        };
        let memory = Some(1 << 30);
        let usage = used.filter(|_| self.row.phase == Phase::Running).map(|used| {
            let card = GpuSample {
                utilization: Some(used),
                memory_used_bytes: memory,
                memory_total_bytes: Some(24 << 30),
                ..GpuSample::default()
            };
            Usage { gpus: vec![card], timed: true, ..Usage::new(self.now, UsageSource::Provider) }
        });
        Instance { usage, ..self.row.clone() }
    }

    fn poll(&mut self) {
        let account = AccountName::from("team");
        self.world().fleet.account_mut(&account).unwrap().pacing.in_flight = Some(self.now);
        let rows = if self.row.phase == Phase::Gone { vec![] } else { vec![self.seen()] };
        let poll = if self.silent {
            failed(ErrorKind::Server { status: 500, message: None, retry_after: None })
        } else {
            listed(rows)
        };
        self.hear(WorldEvent::Polled { account, asked_at: self.now, poll: Box::new(poll) });
    }

    /// Time passes, with a look every half minute.
    fn until(&mut self, clock: &str) -> &mut Self {
        let to = at(clock);
        while self.now < to {
            if self.now.as_second() % 30 == 0 {
                self.poll();
            }
            self.now += SignedDuration::from_secs(5);
            self.world().ledger_due = Some(self.now + SignedDuration::from_secs(10));
            self.hear(WorldEvent::Tick);
        }
        self
    }

    /// What is open about guards.
    fn warned(&self) -> Vec<Warning> {
        let open = self.state.world.alerting.alerts.calling();
        open.filter_map(|alert| match &alert.matter {
            Matter::Guard { warning, .. } => Some(warning.clone()),
            _ => None,
        })
        .collect()
    }

    fn actions(&self) -> Vec<Action> {
        self.sent.iter().map(|(_, action)| *action).collect()
    }

    fn stage(&self) -> Option<&Stage> {
        self.watches.first().map(|watch| &watch.stage)
    }
}

use crate::rules::guard::Warning;

#[test]
fn an_idle_machine_is_stopped_after_its_countdown_and_not_before() {
    let mut story = Story::begin(vec![guard(Action::Stop)], vec![]);
    story.until("00:59:00");
    assert_eq!((story.warned(), story.stage()), (vec![], None));
    story.until("01:01:00");
    let [Warning::Acts { way, at: until }] = story.warned()[..] else { panic!("{:?}", story.warned()) };
    assert_eq!(way, Way { action: Action::Stop, saves: false });
    assert!(at("01:10:00") <= until && until <= at("01:10:30"), "{until}");
    story.until("01:10:00");
    assert_eq!(story.actions(), []);
    story.until("01:12:00");
    assert_eq!(story.actions(), [Action::Stop]);
    assert!(story.sent[0].0 >= until, "{:?}", story.sent);
    assert_eq!(story.warned(), []);
    story.until("05:00:00");
    assert_eq!((story.actions(), &story.watches[..]), (vec![Action::Stop], &[][..]), "once");
}

#[test]
fn a_machine_is_released_only_with_a_verified_checkpoint() {
    let mut story = Story::begin(vec![guard(Action::Release)], vec![recipe()]);
    story.until("01:20:00");
    assert_eq!(story.actions(), [Action::Release]);
    let released = story.operations.values().find(|operation| operation.action == Action::Release).unwrap();
    assert!(released.saved().is_some() && released.by == "guard idle", "{released:?}");
}

#[rstest]
#[case::no_recipe(vec![], false)]
#[case::the_disk_is_full(vec![recipe()], true)]
fn without_a_checkpoint_it_is_stopped_instead(#[case] recipes: Vec<RecipeRule>, #[case] disk_full: bool) {
    let mut story = Story::begin(vec![guard(Action::Release)], recipes);
    story.disk_full = disk_full;
    story.until("03:00:00");
    assert_eq!(story.actions(), [Action::Stop]);
}

#[rstest]
#[case::no_recipe(vec![], false)]
#[case::the_disk_is_full(vec![recipe()], true)]
fn without_a_checkpoint_and_without_a_stop_it_only_says_so(#[case] recipes: Vec<RecipeRule>, #[case] disk_full: bool) {
    let mut story = Story::begin(vec![guard(Action::Release)], recipes);
    story.disk_full = disk_full;
    story.row.offers.stop = Offer::No(Refusal::NotOffered);
    story.until("03:00:00");
    assert_eq!(story.actions(), []);
    let told = story.warned();
    assert!(matches!(told[..], [Warning::CanDoNothing { .. } | Warning::DidNot { .. }]), "{told:?}");
}

#[rstest]
#[case::it_works(Does::Work)]
#[case::nobody_knows(Does::Untold)]
fn what_works_or_is_not_known_is_left_alone(#[case] does: Does) {
    let mut story = Story::begin(vec![guard(Action::Stop)], vec![]);
    story.does = does;
    story.until("04:00:00");
    assert_eq!((story.actions(), story.watches.len()), (vec![], 0));
}

#[test]
fn a_countdown_over_figures_that_are_not_known_waits_for_them() {
    let mut story = Story::begin(vec![guard(Action::Stop)], vec![]);
    story.until("01:05:00");
    story.silent = true;
    story.until("01:15:00");
    assert_eq!(story.actions(), [], "the account does not answer");
    story.until("01:40:00");
    story.silent = false;
    story.until("01:42:00");
    assert_eq!(story.actions(), [], "what ran out so long ago starts anew");
    story.until("03:30:00");
    assert_eq!(story.actions(), [Action::Stop]);
}

#[test]
fn work_that_begins_in_the_countdown_ends_it() {
    let mut story = Story::begin(vec![guard(Action::Stop)], vec![]);
    story.until("01:05:00");
    assert_eq!(story.warned().len(), 1);
    story.does = Does::Work;
    story.until("01:30:00");
    assert_eq!((story.actions(), story.warned(), story.watches.len()), (vec![], vec![], 0));
}

#[test]
fn a_veto_holds_until_the_machine_was_busy_and_is_idle_again() {
    let mut story = Story::begin(vec![guard(Action::Stop)], vec![]);
    story.until("01:05:00");
    story.hear(WorldEvent::Intent(Intent::Veto(vec![a()])));
    assert_eq!((story.stage(), story.warned()), (Some(&Stage::Vetoed), vec![]));
    story.until("04:00:00");
    assert_eq!(story.actions(), []);
    story.does = Does::Work;
    story.until("04:10:00");
    story.does = Does::Nothing;
    story.until("05:00:00");
    assert_eq!(story.actions(), []);
    story.until("06:00:00");
    assert_eq!(story.actions(), [Action::Stop]);
}

#[test]
fn what_another_process_was_told_counts_up_to_the_last_moment() {
    let mut story = Story::begin(vec![guard(Action::Stop)], vec![]);
    story.until("01:10:00");
    let until = Some(at("02:30:00"));
    story.vetoes.push((a(), Veto { said_at: story.now, until, by: "ben@desk".to_owned() }));
    story.until("02:25:00");
    assert_eq!((story.actions(), story.stage()), (vec![], Some(&Stage::Vetoed)));
    story.until("02:50:00");
    assert_eq!(story.actions(), [Action::Stop], "the time that was given is over");
}

#[rstest]
#[case::protected(|story: &mut Story| {
    let protected = Setting { protected: Some(true), ..Setting::default() };
    story.world().settings.single.insert(a(), protected);
})]
#[case::not_mine(|story: &mut Story| {
    let other = Setting { mine: Some(false), ..Setting::default() };
    story.world().settings.single.insert(a(), other);
})]
#[case::its_label(|story: &mut Story| drop(story.row.labels.insert("keep".to_owned(), String::new())))]
#[case::read_only(|story: &mut Story| story.world().read_only = true)]
#[case::a_screen(|story: &mut Story| story.world().alerting.on_screen = true)]
fn what_is_to_be_left_alone_is(#[case] leave: fn(&mut Story)) {
    let mut story = Story::begin(vec![guard(Action::Stop)], vec![]);
    leave(&mut story);
    story.until("03:00:00");
    assert_eq!(story.actions(), []);
}

#[test]
fn a_screen_proposes_what_it_does_not_do() {
    let mut story = Story::begin(vec![guard(Action::Stop)], vec![]);
    story.world().alerting.on_screen = true;
    story.until("02:00:00");
    assert_eq!(story.warned(), [Warning::Proposes { action: Action::Stop }]);
    story.world().guarding.rules[0].on_screen = true;
    story.until("02:12:00");
    assert_eq!(story.actions(), [Action::Stop]);
}

#[rstest]
#[case::a_short_one(SignedDuration::from_mins(2), "01:12:00", 1)]
#[case::a_long_one(SignedDuration::from_mins(40), "01:52:00", 0)]
fn after_a_restart_a_countdown_goes_on_or_starts_anew(
    #[case] pause: SignedDuration,
    #[case] until: &str,
    #[case] expected: usize,
) {
    let mut story = Story::begin(vec![Guard { on: always(), ..guard(Action::Stop) }], vec![]);
    story.until("01:05:00");
    assert_eq!(story.stage().map(|stage| matches!(stage, Stage::Acting { .. })), None, "{:?}", story.watches);
    story.row = Instance { ssh: story.row.ssh.clone(), ..instance("a", Phase::Running, "9") };
    story.until("01:06:00");
    assert!(matches!(story.stage(), Some(Stage::Counting { .. })), "{:?}", story.watches);
    story.restart(pause);
    let to = at(until).max(story.now + SignedDuration::from_mins(2));
    story.until(&to.strftime("%H:%M:%S").to_string());
    // Ten minutes after 01:05, if it goes on.
    let due = if story.now >= at("01:16:00") { expected } else { 0 };
    assert_eq!(story.actions().len(), due, "{:?}", story.watches);
}

/// While the machine costs more than this.
fn always() -> Condition {
    Condition::Burn { above: Rate::per_hour(5.into(), Currency::USD).unwrap() }
}

#[test]
fn as_long_as_a_condition_goes_on_a_guard_acts_once() {
    let mut story = Story::begin(vec![Guard { on: always(), ..guard(Action::Stop) }], vec![]);
    let dear = Instance { ssh: story.row.ssh.clone(), ..instance("a", Phase::Running, "9") };
    story.row = dear.clone();
    story.until("00:15:00");
    assert_eq!(story.actions(), [Action::Stop]);
    story.until("00:20:00");
    assert_eq!(story.watches, [], "it costs less now: what comes again is another time");
    story.row = dear;
    story.until("00:40:00");
    assert_eq!(story.actions(), [Action::Stop, Action::Stop]);
}

#[test]
fn a_countdown_is_told_to_channels_that_want_other_alerts_only() {
    let mut story = Story::begin(vec![guard(Action::Stop)], vec![]);
    let rule = crate::rules::dispatch::ChannelRule {
        name: "ops".to_owned(),
        watch_only: false,
        kinds: Some(vec![Kind::Runway]),
        actions: false,
        pace: SignedDuration::ZERO,
        at_once: 20,
        way: 0,
    };
    story.world().alerting.dispatch.rules = vec![rule];
    story.until("01:05:00");
    let told = story.effects.iter().filter_map(|effect| match effect {
        Effect::KeepAlerts { messages, .. } => Some(messages.iter().map(|message| message.news.clone())),
        _ => None,
    });
    let told: Vec<News> = told.flatten().collect();
    assert!(matches!(told[..], [News::Fired(Matter::Guard { .. }), ..]), "{told:?}");
}

fn unables(story: &Story) -> Vec<Unable> {
    let open = story.state.world.alerting.alerts.calling();
    open.filter_map(|alert| match &alert.matter {
        Matter::Unable { why, .. } => Some(why.clone()),
        _ => None,
    })
    .collect()
}

/// At the start and every hour; again soon while something is in the way, which somebody is told.
#[test]
fn what_a_guard_promises_is_tried_out() {
    let mut story = Story::begin(vec![guard(Action::Release)], vec![recipe()]);
    story.does = Does::Work;
    story.until("00:55:00");
    let [(_, trial)] = &story.tried[..] else { panic!("{:?}", story.tried) };
    assert!(trial.target.is_some() && trial.folder == Some(("/copies".to_owned(), 0)), "{trial:?}");
    story.unable = Some(Unable::Ssh("refused".to_owned()));
    story.until("01:05:00");
    assert_eq!((story.tried.len() > 1, unables(&story)), (true, vec![Unable::Ssh("refused".to_owned())]));
    story.unable = None;
    story.until("01:15:00");
    assert_eq!(unables(&story), []);
}

/// Of what only stops, and of what needs no checkpoint, `ssh` promises nothing; without a recipe nothing need be tried.
#[test]
fn what_is_tried_out_is_what_was_promised() {
    let mut story = Story::begin(vec![guard(Action::Stop)], vec![recipe()]);
    story.does = Does::Work;
    story.until("00:10:00");
    assert!(story.tried.iter().all(|(_, trial)| trial.target.is_none() && trial.folder.is_none()), "{:?}", story.tried);
    let mut story = Story::begin(vec![guard(Action::Release)], vec![]);
    story.does = Does::Work;
    story.until("00:10:00");
    assert_eq!((story.tried.len(), unables(&story)), (0, vec![Unable::Plan(Hindrance::NoRecipe)]));
}

/// A lease promises as much as a guard does, also of a machine that is protected: somebody pointed at it.
#[test]
fn what_a_lease_promises_is_tried_out() {
    let mut story = Story::begin(vec![], vec![recipe()]);
    story.does = Does::Work;
    story.until("00:01:00");
    assert_eq!(story.tried, []);
    let protect = Setting { protected: Some(true), ..Setting::default() };
    story.hear(WorldEvent::Intent(Intent::Set { identity: a(), setting: protect }));
    let (what, when) = (What::Release, When::At(at("05:00:00")));
    let draft = Draft { identity: a(), what, when, max_cost: None, on_box: false };
    story.hear(WorldEvent::Intent(Intent::Lease(Box::new(draft))));
    story.until("00:02:00");
    let [(_, trial)] = &story.tried[..] else { panic!("{:?}", story.tried) };
    assert!(trial.target.is_some() && trial.folder.is_some(), "{trial:?}");
    assert_eq!(unables(&story), []);
}
