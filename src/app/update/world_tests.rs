use providers::model::{Action, Instance, Phase};
use providers::provider::Accepted;

use super::*;
use crate::app::action::Key;
use crate::app::event::{Event, ViewEvent};
use crate::app::state::{Fixed, State, View};
use crate::app::{next_wake, update as take};
use crate::rules::earlier::{Earlier, Gone};
use crate::rules::memory::Owner;
use crate::rules::plan;
use crate::rules::saga::Permit;
use crate::rules::samples::{at, fleet, identity, instance, item_identity, listed, of_tenant, volume, with_storage};
use crate::rules::settings::{Rules, Setting};
use crate::rules::streams::Told;

/// A program over one account, `team`, told by events at their times.
struct Story {
    state: State,
    now: Timestamp,
    effects: Vec<Effect>,
}

impl Story {
    /// Before the ledger has answered.
    fn new() -> Self {
        let now = at("10:00:00");
        let world = World::new(fleet(&["team"]).accounts, Rules::default(), false, "ana@desk".to_owned(), now);
        let fixed = Fixed::default();
        let state = State { world, view: View::new(fixed, Vec::new()), leaving: false };
        Story { state, now, effects: Vec::new() }
    }

    /// The collector, with one running instance.
    fn collecting() -> Self {
        let mut story = Story::new();
        story.hear(WorldEvent::Collector(Collector::Us)).recall(Memory::default());
        story.answer(listed(vec![instance("a", Phase::Running, "1")]));
        story
    }

    fn hear(&mut self, event: WorldEvent) -> &mut Self {
        self.effects = take(&mut self.state, Event::World(event), self.now);
        self
    }

    fn recall(&mut self, memory: Memory) -> &mut Self {
        self.hear(WorldEvent::Remembered { memory: Box::new(memory), notices: Vec::new() })
    }

    /// Time passes, and the claim was renewed meanwhile.
    fn tick_at(&mut self, clock: &str) -> &mut Self {
        self.state.world.ledger_due = Some(at(clock));
        self.wake_at(clock)
    }

    /// Time passes without anybody noticing.
    fn wake_at(&mut self, clock: &str) -> &mut Self {
        self.now = at(clock);
        self.hear(WorldEvent::Tick)
    }

    /// Answers the poll that is under way.
    fn answer(&mut self, poll: Poll) -> &mut Self {
        let asked_at = self.team().pacing.in_flight.expect("a poll is under way");
        self.hear(WorldEvent::Polled { account: "team".into(), asked_at, poll: Box::new(poll) })
    }

    fn intend(&mut self, intent: Intent) -> &mut Self {
        self.hear(WorldEvent::Intent(intent))
    }

    /// Begins an action on `a` that loses nothing.
    fn stop(&mut self) -> OpId {
        let world = &self.state.world;
        let under_way = world.busy(Action::Stop);
        let basis = world.basis(&under_way, self.now);
        let plan = Box::new(plan::plan(basis, Action::Stop, &[identity("team", "a")]));
        self.intend(Intent::Begin { plan, authority: Authority::Confirmed });
        self.state.world.under_way().map(|operation| operation.id).max().expect("an action under way")
    }

    /// Takes the action on until its request was accepted.
    fn accepted(&mut self, op: OpId) -> &mut Self {
        let found = providers::provider::Found::Instance(Box::new(instance("a", Phase::Running, "1")));
        self.hear(WorldEvent::LookedUp { op: Some(op), identity: identity("team", "a"), found: Ok(found) });
        assert!(self.permit().is_some(), "{:?}", self.effects);
        self.hear(WorldEvent::Acted { op, answer: Ok(Accepted::Done) })
    }

    fn permit(&self) -> Option<&Permit> {
        self.effects.iter().find_map(|effect| match effect {
            Effect::Commit { then: Some(Then::Send(permit)), .. } => Some(permit),
            _ => None,
        })
    }

    fn team(&self) -> &Account {
        &self.state.world.fleet.accounts[0]
    }

    fn polls(&self) -> usize {
        self.effects.iter().filter(|effect| matches!(effect, Effect::Poll { .. })).count()
    }

    fn does(&self, effect: &Effect) -> bool {
        self.effects.contains(effect)
    }

    fn message(&self) -> Option<&Msg> {
        self.state.view.message.as_ref().map(|shown| &shown.message)
    }
}

fn another() -> Collector {
    Collector::Other { owner: Owner { host: "desk".to_owned(), pid: 7 }, until: at("10:00:30") }
}

#[test]
fn a_key_that_cannot_be_used_is_tried_again_when_asked_for_and_wakes_nobody_until_then() {
    let mut story = Story::new();
    story.hear(WorldEvent::Collector(Collector::Us)).recall(Memory::default());
    assert_eq!(story.polls(), 1);
    let trouble = Trouble::Key("key_cmd pass: gave no key within 10 s".to_owned());
    story.hear(WorldEvent::NotReady { account: "team".into(), trouble });

    story.tick_at("10:30:00");
    assert_eq!(story.polls(), 0);
    assert!(next_wake(&story.state, story.now).unwrap() > story.now, "it would wake again and again");

    story.intend(Intent::Refresh);
    assert_eq!(story.polls(), 1);
}

#[test]
fn a_clock_that_is_set_back_stops_no_polls() {
    let mut story = Story::collecting();
    story.tick_at("08:00:00");
    assert_eq!(story.polls(), 1);
}

/// A laptop slept while another process may have collected and acted.
#[test]
fn a_claim_that_ran_out_is_claimed_anew_and_the_ledger_is_read_before_anything_else() {
    let mut story = Story::collecting();
    story.wake_at("10:10:00");
    assert!(story.does(&Effect::Claim) && story.does(&Effect::Recall), "{:?}", story.effects);
    assert_eq!(story.polls(), 0);
    story.hear(WorldEvent::Collector(Collector::Us));
    assert_eq!(story.polls(), 0);
    story.recall(Memory::default());
    assert_eq!(story.polls(), 1);
}

#[test]
fn a_renewal_in_time_is_no_reason_to_read_the_ledger() {
    let mut story = Story::collecting();
    story.wake_at("10:00:12");
    assert!(story.does(&Effect::Claim) && !story.does(&Effect::Recall), "{:?}", story.effects);
}

/// A command that answers from a ledger with holes would show a fleet without the machines in them.
/// Another file in the ledger's place is taken up as at a start: what was known of the books is of the other one.
#[test]
fn another_ledger_is_claimed_and_read_before_anything_else_and_every_account_asked_again() {
    let mut story = Story::collecting();
    spend::track_billing(&mut story.state.world);
    spend::billed_kept(&mut story.state.world, &"team".into(), at("09:00:00"));
    let asked = story.polls();
    story.hear(WorldEvent::Reopened);
    assert!(story.effects.ends_with(&[Effect::Claim, Effect::Recall]), "{:?}", story.effects);
    assert!(!story.state.world.collects(), "nothing is written before it is claimed");
    assert_eq!(story.state.world.spending.billing[&"team".into()].billed_to, None);
    story.hear(WorldEvent::Collector(Collector::Us));
    assert_eq!(story.polls(), 0, "what it holds is not known yet");
    story.now = at("10:00:06");
    story.recall(Memory::default());
    assert!(story.state.world.fleet.instances.is_empty());
    assert_eq!((asked, story.polls()), (0, 1));
}

#[test]
fn a_ledger_that_can_be_written_again_is_no_news_any_more() {
    let mut story = Story::collecting();
    let unreadable = LedgerNotice::Unreadable { rows: 1 };
    for notice in [LedgerNotice::NotWritable { why: "full".to_owned() }, unreadable.clone()] {
        story.hear(WorldEvent::Ledger(notice));
    }
    story.hear(WorldEvent::Writable);
    assert_eq!(story.state.world.ledger_notices, [unreadable]);
}

/// A machine that was gone before the program started, and its id given to another one meanwhile.
#[test]
fn another_machine_under_an_id_of_old_has_a_spend_of_its_own() {
    let mut story = Story::new();
    let earlier = {
        let mut earlier = Earlier::default();
        let gone = Gone { generation: 0, created_at: Some(at("08:00:00")) };
        earlier.note("team", ResourceKind::Instance, "a", gone);
        earlier
    };
    story.hear(WorldEvent::Collector(Collector::Us)).recall(Memory { earlier, ..Memory::default() });
    let row = |created| Instance { created_at: Some(created), ..instance("a", Phase::Running, "1") };
    story.answer(listed(vec![row(at("09:00:00"))]));
    let generations: Vec<u32> = story.state.world.fleet.instances.keys().map(|known| known.generation).collect();
    assert_eq!(generations, [1]);
}

#[test]
fn a_command_asks_anew_when_the_ledger_is_old_cut_short_or_not_read_in_full() {
    let now = at("10:00:00");
    let hole = LedgerNotice::Unreadable { rows: 1 };
    for (as_of, complete, notices, asks) in [
        (now, now, vec![], false),
        (now, now, vec![hole], true),
        (now, at("09:59:50"), vec![], true),
        (at("09:50:00"), at("09:50:00"), vec![], true),
    ] {
        let mut story = Story::new();
        story.state.world.one_shot = true;
        let account = AccountMemory {
            as_of: Some(as_of),
            last_complete: Some(complete),
            ..AccountMemory::new("team".into(), story.team().provider.clone())
        };
        let memory = Box::new(Memory { accounts: vec![account], ..Memory::default() });
        story.hear(WorldEvent::Collector(Collector::Us));
        story.hear(WorldEvent::Remembered { memory, notices: notices.clone() });
        assert_eq!(story.team().pacing.in_flight.is_some(), asks, "{as_of} {complete} {notices:?}");
    }
}

/// What the rules say of the past is nobody's own setting: a rule that changes later counts again.
#[test]
fn rules_that_count_for_the_past_pin_nothing() {
    let mut story = Story::collecting();
    story.now = at("10:00:20");
    let identity = identity("team", "a");
    let assignment = Assignment { identity: identity.clone(), from: None, project: Some("art".to_owned()) };
    story.hear(WorldEvent::Intent(Intent::AssignAll(vec![assignment.clone()])));
    assert!(story.does(&Effect::Assign(vec![assignment])));
    assert_eq!(story.state.world.settings.single, BTreeMap::new());
    let open = &story.state.world.spending.meter.running()[&identity].lines;
    assert!(open.iter().all(|line| line.terms.project.as_deref() == Some("art")), "{open:?}");
    let places = story.effects.iter().map(|effect| match effect {
        Effect::Keep(_) => "keep",
        Effect::Assign(_) => "assign",
        Effect::SumUp { .. } => "sum up",
        _ => "another",
    });
    assert_eq!(places.collect::<Vec<_>>(), ["keep", "assign", "sum up"], "what is open is closed before it is moved");
}

#[test]
fn a_clock_that_is_set_back_stops_no_renewals() {
    let mut story = Story::collecting();
    story.wake_at("08:00:00");
    assert!(story.does(&Effect::Claim));
}

#[test]
fn who_only_looks_on_changes_nothing_and_says_who_does() {
    let set = Intent::Set {
        identity: identity("team", "a"),
        setting: Setting { protected: Some(true), ..Setting::default() },
    };
    for intent in [Intent::Refresh, set] {
        let mut story = Story::new();
        story.hear(WorldEvent::Collector(another())).recall(Memory::default());
        story.intend(intent);
        assert_eq!(story.effects, []);
        assert!(matches!(story.message(), Some(Msg::OnlyLooking { pid: 7, .. })), "{:?}", story.message());
        assert!(!story.team().pacing.wanted && story.state.world.settings.single.is_empty());
    }
}

#[test]
fn an_action_is_seen_to_its_end_also_after_the_claim_was_lost() {
    let mut story = Story::collecting();
    let op = story.stop();
    story.accepted(op).hear(WorldEvent::Collector(another()));
    story.tick_at("10:00:05");
    assert_eq!(story.polls(), 1, "{:?}", story.effects);
    story.answer(listed(vec![instance("a", Phase::Stopped, "0.01")]));
    assert!(story.state.world.operations[&op].is_ended());
    story.tick_at("10:02:00");
    assert_eq!(story.polls(), 0, "the other one collects");
}

/// Storage is listed once a minute, and a deletion is proven by two lists where nobody can be asked by id.
#[test]
fn a_deletion_that_waits_for_its_proof_asks_for_storage_at_every_poll() {
    let mut story = Story::collecting();
    let asks_storage = |story: &Story| {
        let asked = story.effects.iter().find_map(|effect| match effect {
            Effect::Poll { ask, .. } => Some(ask.storage),
            _ => None,
        });
        asked.expect("a poll")
    };
    let answer = || {
        of_tenant(with_storage(listed(vec![instance("a", Phase::Running, "1")]), vec![volume("vol", "1", &[])]), "us")
    };
    story.tick_at("10:00:20").answer(answer());
    story.tick_at("10:00:40");
    assert!(!asks_storage(&story), "nobody waits for it");
    story.answer(answer());
    let world = &story.state.world;
    let basis = world.basis(&[], story.now);
    let plan = Box::new(plan::plan(basis, Action::Delete, &[item_identity("team", "vol")]));
    story.intend(Intent::Begin { plan, authority: Authority::LoseData });
    let op = story.state.world.under_way().map(|operation| operation.id).max().expect("an action under way");
    let found = Ok(providers::provider::Found::CannotAsk);
    story.hear(WorldEvent::LookedUp { op: Some(op), identity: item_identity("team", "vol"), found });
    story.hear(WorldEvent::Acted { op, answer: Ok(Accepted::Done) });
    for clock in ["10:00:45", "10:00:50", "10:00:55"] {
        if story.team().pacing.in_flight.is_none() {
            story.tick_at(clock);
        }
        assert!(asks_storage(&story), "{clock}");
        story.answer(answer());
    }
}

/// What is still billing after its deadline may stay so for days.
#[test]
fn an_overdue_action_does_not_hurry_the_polls() {
    let mut story = Story::collecting();
    let op = story.stop();
    story.accepted(op);
    let running = || listed(vec![instance("a", Phase::Running, "1")]);
    story.tick_at("10:00:01").answer(running());
    story.tick_at("10:00:05").answer(running());
    assert!(!story.state.world.operations[&op].is_ended());
    story.tick_at("10:03:10").answer(running());
    assert!(story.state.world.operations[&op].is_overdue());
    story.tick_at("10:03:20");
    assert_eq!(story.polls(), 0);
}

#[test]
fn losing_the_claim_writes_down_what_was_not_sent() {
    let mut story = Story::collecting();
    let op = story.stop();
    story.hear(WorldEvent::Collector(another()));
    assert!(story.state.world.operations[&op].is_ended());
    assert!(matches!(story.effects.as_slice(), [Effect::Commit { then: None, .. }, ..]), "{:?}", story.effects);
}

#[test]
fn somebody_who_looks_on_for_weeks_keeps_the_latest_actions_only() {
    let mut story = Story::collecting();
    let op = story.stop();
    let mut ended = story.state.world.operations[&op].clone();
    ended.step = Step::Ended { at: story.now, outcome: Outcome::Unproven };
    let mut story = Story::new();
    story.hear(WorldEvent::Collector(another()));
    for first in [0, 150, 300] {
        let recent = (first..first + 200).rev().map(|id| Operation { id: OpId(id), ..ended.clone() }).collect();
        story.recall(Memory { recent, ..Memory::default() });
    }
    assert_eq!(story.state.world.operations.len(), RECENT);
    assert_eq!(story.state.world.operations.keys().next(), Some(&OpId(300)));
}

/// A command beside the screen was killed, or did not wait: the screen sees to what it left.
#[test]
fn an_action_that_a_command_left_is_taken_up_by_who_collects_and_once() {
    let mut story = Story::collecting();
    let op = story.stop();
    story.accepted(op);
    let left = vec![(story.state.world.operations[&op].clone(), Owner { host: "desk".to_owned(), pid: 7 })];

    let mut story = Story::collecting();
    story.hear(WorldEvent::Orphaned(left.clone()));
    assert!(story.does(&Effect::Lookup { op: Some(op), identity: identity("team", "a") }), "{:?}", story.effects);
    story.hear(WorldEvent::Orphaned(left.clone()));
    assert_eq!(story.effects, []);

    let mut story = Story::new();
    story.hear(WorldEvent::Collector(another())).recall(Memory::default()).hear(WorldEvent::Orphaned(left));
    assert_eq!(story.effects, []);
}

#[test]
fn a_demonstration_opens_no_page_of_a_real_provider() {
    let mut story = Story::collecting();
    let page = "https://example.com/a".to_owned();
    let row = story.state.world.fleet.instances.values_mut().next().unwrap();
    row.row.page = Some(page.clone());
    for demo in [false, true] {
        story.state.view.fixed.demo = demo;
        story.state.view.last_key = None;
        let press = Event::View(ViewEvent::Key(Key::char('b')));
        let effects = take(&mut story.state, press, story.now);
        assert_eq!(effects.contains(&Effect::OpenPage(page.clone())), !demo);
    }
}

/// While a command waits for a person's answer nobody renews its claim.
#[test]
fn a_command_whose_question_took_a_minute_acts_on_the_answer() {
    for collector in [Collector::Us, another()] {
        let mut story = Story::collecting();
        story.state.world.one_shot = true;
        story.now = at("10:01:00");
        let op = story.stop();
        story.wake_at("10:01:00").hear(WorldEvent::Collector(collector));
        assert!(!story.state.world.operations[&op].is_ended());
        story.accepted(op);
    }
}

/// What no API lists is reached in any phase, and what its link tells is asked for at once.
#[test]
fn a_machine_without_an_api_is_known_by_its_link() {
    use providers::model::{Instance, Remark, SshEndpoint};
    use providers::provider::Part;
    use providers::usage::{Usage, UsageSource};

    let row = |phase| Instance {
        remarks: vec![Remark::NoApi],
        ssh: SshEndpoint::of_config("gpu-box", None, None),
        ..instance("a", phase, "1")
    };
    let mut story = Story::new();
    story.state.world.streams.ordain(&"team".into(), Consent::Always);
    story.hear(WorldEvent::Collector(Collector::Us)).recall(Memory::default());
    let unheard = vec![row(Phase::Unknown)];
    story.answer(Poll { instances: Part::Pieces { rows: vec![], unheard }, ..listed(vec![]) });
    let opened = story.effects.iter().any(|effect| matches!(effect, Effect::OpenStream { .. }));
    assert!(opened, "it is reached for although nothing is known of it");
    let kept = story.effects.iter().find_map(|effect| match effect {
        Effect::Keep(keep) => Some((keep.account.as_of, keep.instances.len())),
        _ => None,
    });
    assert_eq!(kept, Some((None, 1)), "the whole list may seem to change nothing");
    let tell = |story: &mut Story, told| {
        let number = story.state.world.streams.get(&identity("team", "a")).unwrap().number;
        story.hear(WorldEvent::Stream { identity: identity("team", "a"), number, told });
    };
    story.now = at("10:00:05");
    let told = Told::Usage(Box::new(Usage::new(story.now, UsageSource::Ssh)));
    tell(&mut story, told);
    assert!(story.state.world.fleet.accounts[0].pacing.wanted);
    story.tick_at("10:00:06").answer(listed(vec![row(Phase::Running)]));
    let known = &story.state.world.fleet.instances[&identity("team", "a")];
    assert!(story.state.world.usage(known).is_some());
    // What the config says is no answer of anybody's: it is not remembered as one.
    let kept = story.effects.iter().find_map(|effect| match effect {
        Effect::Keep(keep) => Some(keep.account.streams),
        _ => None,
    });
    assert_eq!(kept, Some(Consent::Unasked));
    tell(&mut story, Told::Ended(crate::rules::streams::Trouble::Ended));
    assert!(story.state.world.fleet.accounts[0].pacing.wanted);
}
