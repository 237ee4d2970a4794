use std::collections::{BTreeMap, VecDeque};

use jiff::tz::TimeZone;
use proptest::prelude::*;
use providers::error::ErrorKind;
use providers::model::{Identity, Instance, SshEndpoint};
use providers::money::{Currency, Money};
use providers::provider::{Accepted, Found};
use rstest::rstest;

use super::*;
use crate::app::effect::Then;
use crate::app::event::{Event, Intent, WorldEvent};
use crate::app::state::{Fixed, State, View};
use crate::app::{next_wake as wakes, update as take};
use crate::rules::alerts::Kind;
use crate::rules::budgets::Scope;
use crate::rules::checkpoint::{self, KeepRule, Method, Proof, QUIET, Recipe, RecipeRule};
use crate::rules::lease::{Ask, Commands, When};
use crate::rules::memory::{Collector, Memory, Owner};
use crate::rules::saga::Operation;
use crate::rules::samples::{at, error, failed, fleet, identity, instance, listed};
use crate::rules::settings::{Rules, Setting};

/// One account with its machines, a ledger and a person's `ssh`, all of which answer at once.
struct Sim {
    state: State,
    now: Timestamp,
    rows: BTreeMap<String, Instance>,
    /// What was sent to the provider.
    sent: Vec<(Timestamp, Action)>,
    leases: BTreeMap<LeaseId, Lease>,
    operations: BTreeMap<OpId, Operation>,
    asked: Vec<Ask>,
    /// What machines tell.
    told: Told,
    copies_fail: bool,
    provider_is_down: bool,
    /// Its lists are empty, and it is there when it is asked for by id.
    lists_are_empty: bool,
    disk_is_full: bool,
    recipe: bool,
}

impl Sim {
    fn new() -> Self {
        let now = at("10:00:00");
        let mut row = instance("a", Phase::Running, "2");
        row.ssh = SshEndpoint::new("root", "192.0.2.7", 22, true);
        let mut sim = Sim {
            state: Sim::program(now),
            now,
            rows: BTreeMap::from([("a".to_owned(), row)]),
            sent: Vec::new(),
            leases: BTreeMap::new(),
            operations: BTreeMap::new(),
            asked: Vec::new(),
            told: Told::NoFile,
            copies_fail: false,
            provider_is_down: false,
            lists_are_empty: false,
            disk_is_full: false,
            recipe: true,
        };
        sim.start();
        sim
    }

    fn program(now: Timestamp) -> State {
        let mut world = World::new(fleet(&["team"]).accounts, Rules::default(), false, "ana@desk".to_owned(), now);
        world.use_zone(TimeZone::UTC);
        State { world, view: View::new(Fixed::default(), Vec::new()), leaving: false }
    }

    fn start(&mut self) {
        if self.recipe {
            let recipe = Recipe {
                name: "default".to_owned(),
                paths: vec!["/out".to_owned()],
                method: Method::Volume,
                prepare: None,
                quiet: QUIET,
            };
            let rule = RecipeRule { recipe, scope: Scope::default(), every: None, keep: KeepRule::default() };
            self.state.world.recipes = vec![rule];
        }
        self.hear(WorldEvent::Collector(Collector::Us));
        let memory = self.memory();
        self.hear(memory);
    }

    /// The program ends without a word and begins again.
    fn restart(&mut self, clock: &str) -> &mut Self {
        self.restart_at(at(clock))
    }

    fn restart_at(&mut self, now: Timestamp) -> &mut Self {
        let instances = self.state.world.fleet.instances.clone();
        self.now = now;
        self.state = Sim::program(self.now);
        self.state.world.fleet.instances = instances;
        self.start();
        self
    }

    fn memory(&self) -> WorldEvent {
        let owner = Owner { host: "desk".to_owned(), pid: 1 };
        let (recent, unfinished): (Vec<_>, Vec<_>) =
            self.operations.values().cloned().partition(|operation| operation.is_ended());
        let memory = Memory {
            instances: self.state.world.fleet.instances.values().cloned().collect(),
            leases: self.in_force(),
            recent,
            unfinished: unfinished.into_iter().map(|operation| (operation, owner.clone())).collect(),
            ..Memory::default()
        };
        WorldEvent::Remembered { memory: Box::new(memory), notices: Vec::new() }
    }

    fn in_force(&self) -> Vec<Lease> {
        self.leases.values().filter(|lease| !lease.is_ended()).cloned().collect()
    }

    fn hear(&mut self, event: WorldEvent) -> &mut Self {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let effects = take(&mut self.state, Event::World(event), self.now);
            events.extend(effects.into_iter().flat_map(|effect| self.perform(effect)));
        }
        self
    }

    fn perform(&mut self, effect: Effect) -> Vec<WorldEvent> {
        match effect {
            Effect::Poll { account, asked_at, .. } => {
                let poll = match self.provider_is_down {
                    true => failed(ErrorKind::Connect { message: "refused".to_owned() }),
                    false if self.lists_are_empty => listed(vec![]),
                    false => listed(self.rows.values().cloned().collect()),
                };
                vec![WorldEvent::Polled { account, asked_at, poll: Box::new(poll) }]
            }
            Effect::Lookup { op, identity } => {
                let found = match (self.provider_is_down, self.rows.get(identity.id.as_str())) {
                    (true, _) => Err(error(ErrorKind::Connect { message: "refused".to_owned() })),
                    (_, Some(row)) => Ok(Found::Instance(Box::new(row.clone()))),
                    (_, None) => Ok(Found::NoSuchId),
                };
                vec![WorldEvent::LookedUp { op, identity, found }]
            }
            Effect::Commit { entry, then } => {
                self.operations.insert(entry.id, (*entry).clone());
                then.map(|then| self.then(&entry, then)).into_iter().collect()
            }
            Effect::KeepLease(lease) => {
                let id = lease.id;
                let kept = match (self.disk_is_full, self.leases.get(&id).is_some_and(Lease::is_ended)) {
                    (true, _) => Err("full".to_owned()),
                    (_, true) => Ok(false),
                    (_, false) => {
                        self.leases.insert(id, *lease);
                        Ok(true)
                    }
                };
                vec![WorldEvent::LeaseKept { lease: id, kept }]
            }
            Effect::LookForJob { lease, ask, .. } => {
                self.asked.push(ask);
                vec![WorldEvent::Job { lease, told: self.told.clone() }]
            }
            Effect::Claim => vec![WorldEvent::Collector(Collector::Us)],
            Effect::Recall => vec![self.memory()],
            Effect::RecallAlerts => vec![WorldEvent::LeasesRecalled(self.in_force())],
            _ => vec![],
        }
    }

    fn then(&mut self, entry: &Operation, then: Then) -> WorldEvent {
        match then {
            Then::Save(job) => {
                let told = match job.stage {
                    checkpoint::Stage::Copy if self.copies_fail => {
                        checkpoint::Told::Failed(checkpoint::Trouble::NoTool("tar".to_owned()))
                    }
                    checkpoint::Stage::Verify => checkpoint::Told::Verified(Proof {
                        at: self.now,
                        files: 1,
                        bytes: 1,
                        left_out: 0,
                        place: "/c".to_owned(),
                        manifest: "ab".to_owned(),
                    }),
                    _ => checkpoint::Told::Done(checkpoint::Progress::default()),
                };
                WorldEvent::Saving { op: job.op, number: job.number, told }
            }
            Then::Send(permit) => {
                let action = permit.action();
                let proven = entry.saving.as_ref().is_some_and(|saving| saving.proof.is_some());
                assert!(action != Action::Release || proven, "released without a verified checkpoint");
                self.sent.push((self.now, action));
                let id = permit.identity().id.to_string();
                match action {
                    Action::Release => drop(self.rows.remove(&id)),
                    Action::Stop => self.becomes(&id, Phase::Stopped),
                    _ => self.becomes(&id, Phase::Running),
                }
                WorldEvent::Acted { op: permit.op(), answer: Ok(Accepted::Done) }
            }
        }
    }

    fn becomes(&mut self, id: &str, phase: Phase) {
        let row = self.rows.get_mut(id).expect("a machine");
        let hourly = if phase == Phase::Running { "2" } else { "0.01" };
        *row = Instance { ssh: row.ssh.clone(), created_at: row.created_at, ..instance(id, phase, hourly) };
    }

    fn lease(&mut self, what: What, when: When) -> &mut Self {
        self.lease_up_to(what, when, None)
    }

    fn lease_up_to(&mut self, what: What, when: When, max_cost: Option<&str>) -> &mut Self {
        let max_cost = max_cost.map(|amount| Money::new(amount.parse().unwrap(), Currency::USD));
        let draft = Draft { identity: a(), what, when, max_cost, on_box: false };
        self.hear(WorldEvent::Intent(Intent::Lease(Box::new(draft))))
    }

    /// Time passes, and the program wakes whenever it wants to.
    fn until(&mut self, clock: &str) -> &mut Self {
        self.pass(at(clock))
    }

    fn pass(&mut self, until: Timestamp) -> &mut Self {
        let mut wakes_left = 30_000;
        while let Some(wake) = wakes(&self.state, self.now).filter(|wake| *wake <= until) {
            self.now = wake.max(self.now + SignedDuration::from_millis(1));
            self.hear(WorldEvent::Tick);
            wakes_left -= 1;
            assert!(wakes_left > 0, "it wakes again and again: {:?}", self.state.world.leases);
        }
        self.now = self.now.max(until);
        self
    }

    /// The computer sleeps until then.
    fn sleep(&mut self, clock: &str) -> &mut Self {
        self.now = at(clock);
        self.hear(WorldEvent::Tick)
    }

    fn sent(&self) -> Vec<Action> {
        self.sent.iter().map(|(_, action)| *action).collect()
    }

    fn asks(&self) -> Option<&Why> {
        self.leases.values().find_map(|lease| match &lease.step {
            Step::Asking { why, .. } => Some(why),
            _ => None,
        })
    }

    /// How the leases ended.
    fn ends(&self) -> Vec<End> {
        let ended = self.leases.values().filter_map(|lease| match lease.step {
            Step::Ended { how, .. } => Some(how),
            _ => None,
        });
        ended.collect()
    }

    fn alerts(&self) -> usize {
        self.state.world.alerting.alerts.calling().filter(|alert| alert.topic.kind == Kind::Lease).count()
    }
}

fn a() -> Identity {
    identity("team", "a")
}

fn twelve() -> When {
    When::At(at("12:00:00"))
}

fn file() -> When {
    When::File("/root/done".to_owned())
}

fn code(code: i32) -> Told {
    Told::Code { code: Some(code), age: Some(SignedDuration::from_secs(20)) }
}

#[test]
fn a_stop_comes_after_a_countdown_at_its_time() {
    let mut sim = Sim::new();
    sim.lease(What::Stop, twelve()).until("11:59:59");
    assert_eq!((sim.sent(), sim.alerts()), (vec![], 0));
    sim.until("12:00:03");
    let operation = sim.state.world.operation_on(&a()).expect("the countdown is seen");
    assert!(operation.in_countdown() && operation.by == "lease of ana@desk");
    sim.until("12:01:00");
    assert_eq!((sim.sent(), sim.ends()), (vec![Action::Stop], vec![End::Done]));
}

#[test]
fn who_takes_the_countdown_back_ends_the_lease() {
    let mut sim = Sim::new();
    sim.lease(What::Stop, twelve()).until("12:00:02");
    sim.hear(WorldEvent::Intent(Intent::TakeBack(None))).until("14:00:00");
    assert_eq!((sim.sent(), sim.ends()), (vec![], vec![End::TakenBack]));
}

#[test]
fn a_release_follows_a_verified_checkpoint() {
    let mut sim = Sim::new();
    sim.lease(What::Release, twelve()).until("12:05:00");
    assert_eq!((sim.sent(), sim.ends()), (vec![Action::Release], vec![End::Done]));
}

/// A night of eight hours over the moment: nothing is released, and somebody is asked what it cost since.
#[test]
fn a_release_that_slept_over_its_moment_asks() {
    let mut sim = Sim::new();
    sim.lease(What::Release, twelve()).until("11:50:00").sleep("19:50:00").until("20:00:00");
    assert_eq!((sim.sent(), sim.asks(), sim.alerts()), (vec![], Some(&Why::Overdue), 1));
    let finding = findings(&sim.state.world, sim.now).next().expect("it is found");
    let Matter::Lease { cost, since, .. } = finding.matter else { panic!("{:?}", finding.matter) };
    assert_eq!((since, cost), (at("12:00:00"), vec![Money::new("16".parse().unwrap(), Currency::USD)]));
    // Somebody stops it: that is an answer.
    sim.becomes("a", Phase::Stopped);
    sim.until("20:10:00");
    assert_eq!((sim.ends(), sim.alerts()), (vec![End::Answered], 0));
}

#[test]
fn a_stop_that_slept_over_its_moment_comes_after_its_countdown() {
    let mut sim = Sim::new();
    sim.lease(What::Stop, twelve()).until("11:50:00").sleep("19:50:00");
    assert_eq!(sim.sent(), []);
    sim.until("19:51:00");
    assert_eq!((sim.sent(), sim.ends()), (vec![Action::Stop], vec![End::Done]));
}

#[test]
fn a_sleep_in_the_countdown_is_no_consent() {
    let mut sim = Sim::new();
    sim.lease(What::Stop, twelve()).until("12:00:02").sleep("20:00:00");
    assert_eq!(sim.sent(), [], "it is counted down anew");
    sim.until("20:01:00");
    assert_eq!((sim.sent(), sim.ends()), (vec![Action::Stop], vec![End::Done]));
}

#[rstest]
#[case::in_time("11:00:00", "12:05:00", vec![Action::Release])]
#[case::over_its_moment("12:09:00", "12:15:00", vec![Action::Release])]
#[case::too_long("12:30:00", "13:00:00", vec![])]
fn a_lease_survives_a_restart(#[case] back: &str, #[case] until: &str, #[case] expected: Vec<Action>) {
    let mut sim = Sim::new();
    sim.lease(What::Release, twelve()).until("10:30:00").restart(back).until(until);
    assert_eq!(sim.sent(), expected);
    assert_eq!(sim.asks().is_some(), expected.is_empty());
}

/// LIFE-10: missing from two lists, a restart, and back: the same machine with the same lease.
#[test]
fn a_lease_survives_absence_and_return() {
    let mut sim = Sim::new();
    sim.lease(What::Stop, twelve());
    let setting = Setting { protected: Some(true), ..Setting::default() };
    sim.hear(WorldEvent::Intent(Intent::Set { identity: a(), setting }));
    sim.lists_are_empty = true;
    sim.until("10:02:00").restart("10:02:30");
    sim.lists_are_empty = false;
    sim.until("12:01:00");
    assert_eq!(sim.sent(), [Action::Stop], "a lease of its own counts also for what is protected");
}

#[test]
fn another_machine_under_the_id_ends_the_lease() {
    let mut sim = Sim::new();
    sim.rows.get_mut("a").unwrap().created_at = Some(at("08:00:00"));
    sim.until("10:05:00").lease(What::Stop, twelve());
    sim.rows.get_mut("a").unwrap().created_at = Some(at("11:00:00"));
    sim.until("12:30:00");
    assert_eq!((sim.sent(), sim.ends()), (vec![], vec![End::AnotherMachine]));
}

#[test]
fn without_a_checkpoint_it_is_stopped_and_somebody_is_told() {
    let mut sim = Sim::new();
    sim.state.world.recipes.clear();
    sim.lease(What::Release, twelve()).until("12:05:00");
    assert_eq!(sim.sent(), [Action::Stop]);
    let why = Why::Stopped(Instead::NoCheckpoint(Hindrance::NoRecipe));
    assert_eq!((sim.asks(), sim.alerts()), (Some(&why), 1));
}

#[test]
fn what_can_neither_be_saved_nor_stopped_is_only_told() {
    let mut sim = Sim::new();
    sim.state.world.recipes.clear();
    sim.rows.get_mut("a").unwrap().offers.stop = providers::model::Offer::No(Refusal::NotOffered);
    sim.until("10:05:00").lease(What::Release, twelve()).until("15:00:00");
    assert_eq!((sim.sent(), sim.asks()), (vec![], Some(&Why::Hindered(Hindrance::NoRecipe))));
}

#[test]
fn a_checkpoint_that_fails_releases_nothing() {
    let mut sim = Sim::new();
    sim.copies_fail = true;
    sim.lease(What::Release, twelve()).until("13:00:00");
    assert_eq!(sim.sent(), [Action::Stop]);
    assert!(matches!(sim.asks(), Some(Why::Stopped(Instead::NotSaved(_)))), "{:?}", sim.asks());
}

#[test]
fn a_stop_that_would_erase_something_is_only_told() {
    let mut sim = Sim::new();
    let lost = vec![crate::rules::samples::disk(providers::model::DataKind::VolumeDisk)];
    let stop = crate::rules::samples::effect("0.01", lost);
    sim.rows.get_mut("a").unwrap().offers.stop = providers::model::Offer::Yes(stop);
    sim.until("10:05:00").lease(What::Stop, twelve()).until("13:00:00");
    assert_eq!((sim.sent(), sim.asks()), (vec![], Some(&Why::LosesData)));
}

#[test]
fn a_start_comes_at_its_time_and_not_the_morning_after() {
    let mut sim = Sim::new();
    sim.becomes("a", Phase::Stopped);
    sim.until("10:10:00").lease(What::Start, twelve()).until("12:01:00");
    assert_eq!((sim.sent(), sim.ends()), (vec![Action::Start], vec![End::Done]));
    let mut late = Sim::new();
    late.becomes("a", Phase::Stopped);
    late.until("10:10:00").lease(What::Start, twelve()).sleep("20:00:00").until("20:05:00");
    assert_eq!((late.sent(), late.asks()), (vec![], Some(&Why::Overdue)));
}

#[test]
fn a_job_that_went_well_is_saved_and_released() {
    let mut sim = Sim::new();
    sim.lease(What::Release, file()).until("11:00:00");
    assert!((59..=62).contains(&sim.asked.len()), "{} looks in an hour", sim.asked.len());
    sim.told = code(0);
    sim.until("11:02:00");
    assert_eq!((sim.sent(), sim.ends()), (vec![Action::Release], vec![End::Done]));
}

#[rstest]
#[case::error(file(), code(137), Some(137))]
#[case::no_exit_code(When::Process { pid: 4711, began: Some(8) }, Told::NoProcess, None)]
fn a_job_that_did_not_is_saved_and_kept_up_to_a_cost(
    #[case] when: When,
    #[case] told: Told,
    #[case] ended: Option<i32>,
) {
    let mut sim = Sim::new();
    sim.told = told;
    sim.lease_up_to(What::Release, when, Some("5")).until("10:02:00");
    let saved: Vec<Action> = sim.operations.values().map(|operation| operation.action).collect();
    assert_eq!((sim.sent(), saved), (vec![], vec![Action::Checkpoint]));
    assert_eq!((sim.asks(), sim.alerts()), (Some(&Why::Job { code: ended }), 1));
    // Five dollars at two an hour.
    sim.until("12:29:00");
    assert_eq!(sim.sent(), []);
    sim.until("12:33:00");
    assert_eq!(sim.sent(), [Action::Stop]);
    let why = Why::Stopped(Instead::CostReached { code: ended });
    assert_eq!((sim.asks(), sim.alerts()), (Some(&why), 1));
}

#[test]
fn a_machine_that_cannot_be_asked_is_not_done() {
    let mut sim = Sim::new();
    sim.told = Told::Lost(Trouble::NoAnswer);
    sim.lease(What::Release, file()).until("10:09:00");
    assert_eq!(sim.alerts(), 0);
    sim.until("10:12:00");
    assert_eq!((sim.sent(), sim.asks(), sim.alerts()), (vec![], None, 1));
    sim.told = Told::NoFile;
    sim.until("10:14:00");
    assert_eq!((sim.alerts(), sim.in_force().len()), (0, 1));
}

#[test]
fn a_timer_on_the_machine_is_armed_and_read_back() {
    let mut sim = Sim::new();
    sim.state.world.leases.commands = Commands { arm: Some("arm".into()), check: Some("check".into()) };
    sim.told = Told::Armed;
    let draft = Draft { identity: a(), what: What::Stop, when: twelve(), max_cost: None, on_box: true };
    sim.hear(WorldEvent::Intent(Intent::Lease(Box::new(draft)))).until("10:00:30");
    assert!(sim.in_force()[0].is_armed() && sim.asked == [Ask::Arm("arm".into())], "{:?}", sim.asked);
    sim.told = Told::Confirmed;
    sim.until("10:02:00");
    assert!(matches!(sim.in_force()[0].on_box, Some(crate::rules::lease::OnBox::Confirmed(_))));
}

/// Another process takes it away in the ledger, and this one has not heard when the moment comes.
#[test]
fn what_was_taken_away_elsewhere_never_acts() {
    let mut sim = Sim::new();
    sim.lease(What::Stop, twelve()).until("11:59:58");
    sim.leases.values_mut().for_each(|lease| drop(lease.end(End::Cancelled, at("11:59:58"))));
    sim.until("12:30:00");
    assert_eq!((sim.sent(), sim.state.world.leases.in_force().count()), (vec![], 0));
}

#[test]
fn what_another_process_made_is_carried_out_here() {
    let mut sim = Sim::new();
    let draft = Draft { identity: a(), what: What::Stop, when: twelve(), max_cost: None, on_box: false };
    let lease = Lease::new(LeaseId(9), draft, "a".to_owned(), "bob@lab".to_owned(), at("11:00:00"));
    sim.until("11:00:00").leases.insert(LeaseId(9), lease);
    sim.until("12:01:00");
    assert_eq!(sim.sent(), [Action::Stop]);
}

#[test]
fn who_only_looks_on_may_make_one_and_does_not_carry_it_out() {
    let mut sim = Sim::new();
    let owner = Owner { host: "desk".to_owned(), pid: 7 };
    sim.hear(WorldEvent::Collector(Collector::Other { owner, until: at("23:00:00") }));
    sim.lease(What::Stop, twelve());
    assert_eq!(sim.in_force().len(), 1);
    let next = wakes(&sim.state, sim.now);
    sim.now = at("12:00:01");
    assert!(next.is_some() && tick(&mut sim.state.world, sim.now).is_empty());
}

#[test]
fn a_new_lease_takes_the_place_of_the_one_before() {
    let mut sim = Sim::new();
    sim.lease(What::Stop, twelve()).lease(What::Stop, When::At(at("13:00:00"))).until("12:30:00");
    assert_eq!((sim.sent(), sim.ends()), (vec![], vec![End::Replaced]));
    sim.until("13:01:00");
    assert_eq!(sim.sent(), [Action::Stop]);
}

#[test]
fn what_could_not_be_written_down_is_not_begun_and_a_new_one_is_refused() {
    let mut sim = Sim::new();
    sim.lease(What::Stop, twelve()).until("11:00:00");
    sim.disk_is_full = true;
    sim.lease(What::Start, twelve());
    assert_eq!(sim.state.world.leases.in_force().count(), 1, "nobody is told that it is set");
    sim.until("12:20:00");
    assert_eq!(sim.sent(), []);
    sim.disk_is_full = false;
    sim.until("12:25:00");
    assert_eq!(sim.sent(), [Action::Stop], "a stop comes late, and after its countdown");
}

#[test]
fn nothing_is_set_where_nothing_may_be_changed() {
    let mut sim = Sim::new();
    sim.state.world.read_only = true;
    sim.lease(What::Stop, twelve());
    assert!(sim.leases.is_empty());
}

#[test]
fn a_row_tells_what_comes_next() {
    let mut sim = Sim::new();
    sim.lease(What::Stop, twelve()).lease(What::Start, When::At(at("11:00:00")));
    let next = sim.state.world.next_of(&a()).unwrap();
    assert_eq!((next.what, next.when), (What::Start, crate::rules::lease::NextWhen::At(at("11:00:00"))));
    assert_eq!(sim.state.world.next_of(&identity("team", "b")), None);
}

/// What happens to a program with leases, in any order.
#[derive(Clone, Debug)]
enum Turned {
    Lease(What, bool),
    Pass(i64),
    Sleep(i64),
    SetBack(i64),
    Restart,
    TakeBack,
    Job(Told),
    Copies(bool),
    Provider(bool),
    Disk(bool),
    Recipe(bool),
    Phase(Phase),
}

fn turned() -> impl Strategy<Value = Turned> {
    let told = prop_oneof![
        Just(Told::NoFile),
        Just(code(0)),
        Just(code(1)),
        Just(Told::Lost(Trouble::NoAnswer)),
        Just(Told::Code { code: Some(0), age: None }),
    ];
    prop_oneof![
        (prop::sample::select(What::ALL.to_vec()), any::<bool>()).prop_map(|(what, job)| Turned::Lease(what, job)),
        (1_i64..1800).prop_map(Turned::Pass),
        (1_i64..40_000).prop_map(Turned::Sleep),
        (1_i64..7200).prop_map(Turned::SetBack),
        Just(Turned::Restart),
        Just(Turned::TakeBack),
        told.prop_map(Turned::Job),
        any::<bool>().prop_map(Turned::Copies),
        any::<bool>().prop_map(Turned::Provider),
        any::<bool>().prop_map(Turned::Disk),
        any::<bool>().prop_map(Turned::Recipe),
        prop::sample::select(vec![Phase::Running, Phase::Stopped]).prop_map(Turned::Phase),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    /// Whatever clock, disk, provider and people do: `then` asserts the proof of every release, `until` that nothing
    /// wakes without end; and no release begins later than ten minutes after its moment.
    #[test]
    fn nothing_is_released_without_a_proof_or_late(turns in prop::collection::vec(turned(), 1..24)) {
        let mut sim = Sim::new();
        let mut moments: Vec<Timestamp> = Vec::new();
        for turn in turns {
            if sim.rows.is_empty() {
                break;
            }
            match turn {
                Turned::Lease(what, job) => {
                    let moment = sim.now + SignedDuration::from_mins(20);
                    let job = job && what != What::Start;
                    moments.push(moment);
                    sim.lease(what, if job { file() } else { When::At(moment) });
                }
                Turned::Pass(seconds) => {
                    let until = sim.now + SignedDuration::from_secs(seconds);
                    sim.pass(until);
                }
                Turned::Sleep(seconds) => {
                    sim.now += SignedDuration::from_secs(seconds);
                    sim.hear(WorldEvent::Tick);
                }
                Turned::SetBack(seconds) => {
                    sim.now -= SignedDuration::from_secs(seconds);
                    sim.hear(WorldEvent::Tick);
                }
                Turned::Restart => {
                    let now = sim.now;
                    sim.restart_at(now);
                }
                Turned::TakeBack => drop(sim.hear(WorldEvent::Intent(Intent::TakeBack(None)))),
                Turned::Job(told) => sim.told = told,
                Turned::Copies(fail) => sim.copies_fail = fail,
                Turned::Provider(down) => sim.provider_is_down = down,
                Turned::Disk(full) => sim.disk_is_full = full,
                Turned::Recipe(there) => {
                    sim.recipe = there;
                    if !there {
                        sim.state.world.recipes.clear();
                    }
                }
                Turned::Phase(phase) => sim.becomes("a", phase),
            }
        }
        for operation in sim.operations.values().filter(|operation| operation.action == Action::Release) {
            let of_job = sim.leases.values().any(|lease| lease.when.is_job());
            let began = operation.began_at;
            let in_time = |moment: &Timestamp| {
                let late = began.duration_since(*moment);
                late <= SignedDuration::from_mins(10) && !late.is_negative()
            };
            prop_assert!(of_job || moments.iter().any(in_time), "{began} of {moments:?}");
        }
    }
}
