use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use providers::usage::{Usage, UsageSource};
use rstest::rstest;

use super::*;
use crate::rules::samples::{at, fleet, identity, instance};

/// Machines of one account, their streams, and a clock.
struct Play {
    fleet: Fleet,
    streams: Streams,
    now: Timestamp,
}

fn endpoint(host: &str) -> Option<SshEndpoint> {
    SshEndpoint::new("root", host, 22, true)
}

impl Play {
    /// So many running machines, `m000` and on, that may be looked into.
    fn of(machines: usize) -> Self {
        let mut play = Play { fleet: fleet(&["team"]), streams: Streams::default(), now: at("10:00:00") };
        for n in 0..machines {
            play.add(&format!("m{n:03}"));
        }
        play.streams.set_consent(&"team".into(), Consent::Yes);
        play
    }

    fn add(&mut self, id: &str) -> Identity {
        let identity = identity("team", id);
        let row = Instance { ssh: endpoint("192.0.2.1"), ..instance(id, Phase::Running, "1") };
        let now = self.now;
        let known = Known {
            identity: identity.clone(),
            row,
            first_seen: now,
            last_seen: now,
            missing_since: None,
            absences: 0,
            gone_at: None,
        };
        self.fleet.instances.insert(identity.clone(), known);
        identity
    }

    fn machine(&mut self, id: &str) -> &mut Known<Instance> {
        self.fleet.instances.get_mut(&identity("team", id)).unwrap()
    }

    fn pass(&mut self, seconds: i64) -> Vec<Order> {
        self.now += SignedDuration::from_secs(seconds);
        self.orders()
    }

    fn orders(&mut self) -> Vec<Order> {
        self.streams.orders(&self.fleet, self.now)
    }

    fn stream(&self, id: &str) -> &Stream {
        self.streams.get(&identity("team", id)).unwrap()
    }

    fn tell(&mut self, id: &str, told: Told) -> bool {
        let number = self.stream(id).number;
        self.streams.told(&identity("team", id), number, &told, self.now)
    }

    fn looks(&mut self, id: &str) -> bool {
        let usage = Usage::new(self.now, UsageSource::Ssh);
        self.tell(id, Told::Usage(Box::new(usage)))
    }

    fn ends(&mut self, id: &str, trouble: Trouble) -> bool {
        self.tell(id, Told::Ended(trouble))
    }

    /// Tells that all looked at are alive.
    fn all_look(&mut self) {
        let up: Vec<String> =
            self.streams.iter().filter(|(_, stream)| stream.is_up()).map(|(it, _)| it.id.to_string()).collect();
        up.iter().for_each(|id| assert!(self.looks(id)));
    }

    fn focus(&mut self, id: Option<&str>) {
        self.streams.focus(id.map(|id| identity("team", id)).as_ref(), self.now);
    }

    /// The pause until a stream that is down is tried again, in seconds.
    fn pause(&self, id: &str) -> Option<f64> {
        match self.stream(id).link {
            Link::Down { since, retry_at, .. } => retry_at.map(|at| at.duration_since(since).as_secs_f64()),
            _ => panic!("{id} is up"),
        }
    }
}

/// What is opened and closed, in words.
fn words(orders: &[Order]) -> Vec<String> {
    let word = |order: &Order| match order {
        Order::Open { identity, pace, new_key, .. } => {
            format!("open {} {}{}", identity.id, pace.as_secs(), if *new_key { " new key" } else { "" })
        }
        Order::Close { identity } => format!("close {}", identity.id),
    };
    orders.iter().map(word).collect()
}

#[rstest]
#[case(Consent::Unasked, false)]
#[case(Consent::Yes, true)]
#[case(Consent::No, false)]
#[case(Consent::Always, true)]
#[case(Consent::Never, false)]
fn nothing_is_opened_without_consent_and_all_is_closed_when_it_ends(#[case] consent: Consent, #[case] opens: bool) {
    let mut play = Play::of(1);
    play.streams.set_consent(&"team".into(), consent);
    assert_eq!(!play.orders().is_empty(), opens);
    play.streams.set_consent(&"team".into(), Consent::No);
    assert_eq!(words(&play.orders()).len(), usize::from(opens));
    assert_eq!(play.streams.iter().count(), 0);
}

#[rstest]
#[case::runs(Phase::Running, endpoint("192.0.2.1"), true)]
#[case::unreachable(Phase::Unreachable, endpoint("192.0.2.1"), true)]
#[case::no_port_yet(Phase::Running, None, false)]
#[case::a_proxy(Phase::Running, SshEndpoint::new("root", "ssh.example.invalid", 22, false), false)]
#[case::stopped(Phase::Stopped, endpoint("192.0.2.1"), false)]
#[case::beginning(Phase::Provisioning, endpoint("192.0.2.1"), false)]
#[case::unknown(Phase::Unknown, endpoint("192.0.2.1"), false)]
fn only_what_runs_and_runs_commands_is_looked_into(
    #[case] phase: Phase,
    #[case] ssh: Option<SshEndpoint>,
    #[case] opens: bool,
) {
    let mut play = Play::of(1);
    let row = &mut play.machine("m000").row;
    (row.phase, row.ssh) = (phase, ssh);
    assert_eq!(!play.orders().is_empty(), opens);
}

#[rstest]
#[case::unknown(Phase::Unknown, endpoint("192.0.2.1"), &[])]
#[case::address_left_out(Phase::Running, None, &[])]
#[case::moved(Phase::Running, endpoint("192.0.2.2"), &["close m000", "open m000 15"])]
#[case::stops(Phase::Stopping, endpoint("192.0.2.1"), &["close m000"])]
#[case::stopped(Phase::Stopped, None, &["close m000"])]
fn a_stream_that_works_follows_what_its_provider_says(
    #[case] phase: Phase,
    #[case] ssh: Option<SshEndpoint>,
    #[case] expected: &[&str],
) {
    let mut play = Play::of(1);
    play.orders();
    assert!(play.looks("m000"));
    let row = &mut play.machine("m000").row;
    (row.phase, row.ssh) = (phase, ssh);
    assert_eq!(words(&play.pass(1)), expected);
}

#[test]
fn a_stream_outlives_a_list_without_its_machine_and_ends_with_it() {
    let mut play = Play::of(1);
    play.orders();
    play.looks("m000");
    play.machine("m000").missing_since = Some(play.now);
    assert_eq!(words(&play.pass(5)), [""; 0]);
    play.machine("m000").gone_at = Some(play.now);
    assert_eq!(words(&play.pass(1)), ["close m000"]);
}

#[test]
fn another_generation_is_another_machine() {
    let mut play = Play::of(1);
    play.orders();
    play.looks("m000");
    let mut next = play.fleet.instances.remove(&identity("team", "m000")).unwrap();
    next.identity.generation = 1;
    play.fleet.instances.insert(next.identity.clone(), next);
    let orders = play.pass(1);
    assert_eq!(words(&orders), ["close m000", "open m000 15"]);
    let Order::Open { target, .. } = &orders[1] else { panic!("{orders:?}") };
    assert!(target.alias.ends_with(".m000.1"), "{}", target.alias);
}

#[test]
fn eight_connect_at_a_time() {
    let mut play = Play::of(20);
    assert_eq!(play.orders().len(), 8);
    assert_eq!(words(&play.orders()), [""; 0]);
    play.looks("m000");
    play.ends("m001", Trouble::NoAnswer);
    assert_eq!(words(&play.orders()), ["open m008 15", "open m009 15"]);
    // Whoever does not come to an end with it gives its place up, and is waited for all the same.
    assert_eq!(play.pass(EXCHANGED.as_secs()).len(), 8);
    assert!(play.stream("m002").is_up());
}

#[test]
fn no_machine_is_passed_over_however_many_fail_before_it() {
    let mut play = Play::of(100);
    let mut tried = BTreeSet::new();
    for _ in 0..(100 / CONNECTING + 1) {
        for order in play.orders() {
            let Order::Open { identity, .. } = order else { continue };
            tried.insert(identity.id.to_string());
            // So slow that those that failed first are due again before the last was tried.
            assert!(play.ends(identity.id.as_str(), Trouble::NoAnswer));
        }
        play.now += SignedDuration::from_secs(30);
    }
    assert_eq!(tried.len(), 100);
}

#[test]
fn whom_somebody_looks_at_comes_first() {
    let mut play = Play::of(20);
    play.focus(Some("m019"));
    assert_eq!(words(&play.orders())[0], "open m019 15");
}

#[rstest]
#[case::lost(Trouble::Ended, &[15.0, 30.0, 60.0, 120.0, 200.0, 200.0, 200.0, 200.0, 200.0, 200.0])]
#[case::silent(Trouble::NoAnswer, &[15.0, 30.0, 60.0, 120.0, 200.0])]
#[case::keys_come_late(Trouble::KeyRefused, &[15.0, 30.0, 60.0, 600.0, 600.0])]
fn a_failing_stream_is_tried_ever_more_seldom(#[case] trouble: Trouble, #[case] pauses: &[f64]) {
    let mut play = Play::of(1);
    for pause in pauses {
        assert_eq!(words(&play.orders()), ["open m000 15"]);
        play.ends("m000", trouble.clone());
        let waits = play.pause("m000").unwrap();
        assert!((*pause..pause * 1.5).contains(&waits), "{waits} is not {pause} to {}", pause * 1.5);
        assert!(*pause == 600.0 || waits <= LONGEST_RETRY.as_secs_f64());
        assert_eq!(words(&play.pass(waits as i64 - 1)), [""; 0]);
        assert!(play.streams.next_wake(play.now).is_some());
        play.now += SignedDuration::from_secs(2);
    }
}

#[test]
fn a_stream_that_worked_begins_its_failures_anew_and_one_that_breaks_off_at_once_does_not() {
    let mut play = Play::of(1);
    play.orders();
    for (lives, pause) in [(1, 15.0), (1, 30.0), (70, 15.0), (1, 30.0)] {
        play.looks("m000");
        play.now += SignedDuration::from_secs(lives);
        play.ends("m000", Trouble::Ended);
        let waits = play.pause("m000").unwrap();
        assert!((pause..pause * 1.5).contains(&waits), "{waits} is not {pause}");
        play.pass(waits as i64 + 1);
    }
}

#[test]
fn streams_that_end_together_do_not_come_back_together() {
    let mut play = Play::of(200);
    while play.streams.iter().count() < 200 {
        play.orders();
        play.all_look();
    }
    let all: Vec<String> = play.streams.iter().map(|(identity, _)| identity.id.to_string()).collect();
    all.iter().for_each(|id| assert!(play.ends(id, Trouble::NoAnswer)));
    let mut by_second: BTreeMap<i64, usize> = BTreeMap::new();
    for id in &all {
        *by_second.entry(play.pause(id).unwrap() as i64).or_default() += 1;
    }
    assert!(by_second.len() >= 7 && by_second.values().all(|count| *count < 50), "{by_second:?}");
}

#[test]
fn a_silent_stream_is_closed_and_tried_again_later_and_what_it_says_then_is_late() {
    let mut play = Play::of(1);
    play.orders();
    play.looks("m000");
    assert_eq!(words(&play.pass(SILENT.as_secs() + 14)), [""; 0]);
    assert_eq!(words(&play.pass(1)), ["close m000"]);
    assert!(!play.looks("m000") && !play.ends("m000", Trouble::Ended));
    assert!(matches!(play.stream("m000").link, Link::Down { trouble: Trouble::NoAnswer, .. }));
    assert_eq!(words(&play.pass(25)), ["open m000 15"]);
    // One that never says anything is given up as well.
    assert_eq!(words(&play.pass(SILENT.as_secs() - 1)), [""; 0]);
    assert_eq!(words(&play.pass(1)), ["close m000"]);
    assert!(play.pause("m000").unwrap() >= 30.0);
}

#[test]
fn a_machine_that_moves_is_followed_at_once() {
    let mut play = Play::of(1);
    play.orders();
    play.machine("m000").row.ssh = endpoint("192.0.2.2");
    assert_eq!(words(&play.pass(1)), ["close m000", "open m000 15"]);
    play.ends("m000", Trouble::ConnectionRefused);
    play.machine("m000").row.ssh = endpoint("192.0.2.3");
    assert_eq!(words(&play.pass(1)), ["open m000 15"]);
    assert_eq!(play.stream("m000").target.endpoint.host, "192.0.2.3");
}

#[test]
fn an_earlier_connection_says_nothing_any_more() {
    let mut play = Play::of(1);
    play.orders();
    let number = play.stream("m000").number;
    play.machine("m000").row.ssh = endpoint("192.0.2.2");
    play.orders();
    let late = Told::Ended(Trouble::Ended);
    assert!(!play.streams.told(&identity("team", "m000"), number, &late, play.now));
    assert!(play.stream("m000").is_up());
}

/// SSH-01: another key under the same identity is a matter for a person.
#[test]
fn a_changed_host_key_is_an_alarm_and_is_never_tried_again_by_itself() {
    let mut play = Play::of(1);
    let m000 = identity("team", "m000");
    play.orders();
    assert!(!play.streams.accept_host_key(&m000));
    assert!(play.ends("m000", Trouble::HostKeyChanged));
    assert_eq!(play.streams.alarm(&m000), Some(&Trouble::HostKeyChanged));
    play.machine("m000").row.ssh = endpoint("192.0.2.2");
    assert_eq!(words(&play.pass(1_000_000)), [""; 0]);
    assert_eq!(play.streams.next_wake(play.now), None);
    assert!(play.streams.accept_host_key(&m000));
    assert_eq!(play.streams.alarm(&m000), None);
    assert_eq!(words(&play.orders()), ["open m000 15 new key"]);
    // Once is once.
    play.ends("m000", Trouble::Ended);
    assert_eq!(words(&play.pass(30)), ["open m000 15"]);
}

#[test]
fn an_accepted_key_waits_for_its_turn() {
    let mut play = Play::of(1);
    play.orders();
    play.ends("m000", Trouble::HostKeyChanged);
    for n in 1..=8 {
        play.add(&format!("m{n:03}"));
    }
    assert_eq!(play.orders().len(), 8);
    assert!(play.streams.accept_host_key(&identity("team", "m000")));
    assert_eq!(words(&play.orders()), [""; 0]);
    play.looks("m001");
    assert_eq!(words(&play.orders()), ["open m000 15 new key"]);
}

#[rstest]
#[case::key(Trouble::KeyRefused)]
#[case::end(Trouble::Ended)]
fn nothing_else_is_an_alarm(#[case] trouble: Trouble) {
    let mut play = Play::of(1);
    play.orders();
    assert_eq!(play.streams.alarm(&identity("team", "m000")), None);
    play.ends("m000", trouble);
    assert_eq!(play.streams.alarm(&identity("team", "m000")), None);
}

#[test]
fn whoever_lost_the_claim_closes_all_and_begins_anew_when_it_is_back() {
    let mut play = Play::of(3);
    play.orders();
    play.looks("m000");
    play.ends("m002", Trouble::Ended);
    let closed = play.streams.close_all();
    assert_eq!(words(&closed), ["close m000", "close m001"]);
    assert_eq!(words(&play.streams.close_all()), [""; 0]);
    assert_eq!(play.streams.next_wake(play.now), None);
    assert_eq!(play.orders().len(), 3);
}

#[test]
fn a_row_on_which_the_cursor_rests_is_looked_at_closely_and_for_a_while_after() {
    let mut play = Play::of(2);
    play.orders();
    play.all_look();
    play.focus(Some("m000"));
    assert_eq!(play.streams.next_wake(play.now), Some(play.now + RESTED));
    assert_eq!(words(&play.pass(1)), [""; 0]);
    assert_eq!(words(&play.pass(1)), ["close m000", "open m000 1"]);
    play.all_look();
    // Passed over on the way.
    play.focus(Some("m001"));
    assert_eq!(words(&play.pass(1)), [""; 0]);
    play.focus(Some("m000"));
    assert_eq!(words(&play.pass(10)), [""; 0]);
    play.focus(None);
    assert_eq!(words(&play.pass(LINGERS.as_secs() - 1)), [""; 0]);
    play.all_look();
    assert_eq!(play.streams.next_wake(play.now), Some(play.now + SignedDuration::from_secs(1)));
    assert_eq!(words(&play.pass(1)), ["close m000", "open m000 15"]);
}

#[test]
fn somebody_who_scrolls_connects_nothing_anew() {
    let mut play = Play::of(30);
    while play.streams.iter().count() < 30 {
        play.orders();
        play.all_look();
    }
    for step in 0..300 {
        play.focus(Some(&format!("m{:03}", step % 30)));
        play.all_look();
        assert_eq!(words(&play.pass(1)), [""; 0]);
    }
    // To and fro between two rows, however often: each is opened once.
    let mut opened = 0;
    for step in 0..40 {
        play.focus(Some(if step % 2 == 0 { "m001" } else { "m002" }));
        opened += play.pass(3).iter().filter(|order| matches!(order, Order::Open { .. })).count();
        play.all_look();
    }
    assert_eq!(opened, 2);
}

#[test]
fn a_clock_that_is_set_back_holds_nothing_up() {
    let mut play = Play::of(3);
    play.orders();
    play.looks("m000");
    play.ends("m001", Trouble::KeyRefused);
    play.now -= SignedDuration::from_hours(5);
    assert_eq!(words(&play.orders()), [""; 0]);
    let orders = words(&play.pass(LONGEST_WAIT.as_secs()));
    assert_eq!(orders, ["close m000", "close m002", "open m001 15"]);
}

#[test]
fn accounts_are_asked_about_while_nobody_has_said() {
    let mut play = Play::of(3);
    play.machine("m000").row.ssh = None;
    assert_eq!(play.streams.to_ask(&play.fleet).count(), 0);
    play.streams.set_consent(&"team".into(), Consent::Unasked);
    let asked: Vec<_> = play.streams.to_ask(&play.fleet).map(|(name, count)| (name.to_string(), count)).collect();
    assert_eq!(asked, [("team".to_owned(), 2)]);
}

#[rstest]
#[case::plain("vast", "me", "31000001", 0, "rentop.vast.me.31000001.0")]
#[case::generation("vast", "me", "31000001", 12, "rentop.vast.me.31000001.12")]
// Letters are made small when a name is looked for.
#[case::capitals("runpod", "Team", "aB", 0, "rentop.runpod._54eam.a_42.0")]
#[case::signs("runpod", "a.b c", "x_y/*?!|,", 0, "rentop.runpod.a_2eb_20c.x_5fy_2f_2a_3f_21_7c_2c.0")]
#[case::other_letters("runpod", "团", "é", 0, "rentop.runpod._e5_9b_a2._c3_a9.0")]
fn a_host_key_is_known_by_a_name_of_its_identity(
    #[case] provider: &str,
    #[case] account: &str,
    #[case] id: &str,
    #[case] generation: u32,
    #[case] expected: &str,
) {
    let identity = Identity { generation, ..identity(account, id) };
    let target = |direct| Target::new(&provider.into(), &identity, &SshEndpoint::new("u", "h", 1, direct).unwrap());
    assert_eq!(target(true).alias, expected);
    assert_eq!(target(false).alias, format!("{expected}.proxy"));
}

/// Something that happens.
#[derive(Clone, Debug)]
enum Happens {
    Passes(u16),
    SetBack(u16),
    Looks(usize),
    Ends(usize, usize),
    Phase(usize, usize),
    Moves(usize, u8),
    Focus(Option<usize>),
    Accepts(usize),
    Consents(bool),
    LosesTheClaim,
}

const TROUBLES: [Trouble; 4] = [Trouble::Ended, Trouble::NoAnswer, Trouble::KeyRefused, Trouble::HostKeyChanged];
const PHASES: [Phase; 5] = [Phase::Running, Phase::Unreachable, Phase::Unknown, Phase::Stopped, Phase::Gone];
const MACHINES: usize = 14;

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        4 => (0..200u16).prop_map(Happens::Passes),
        1 => (0..2000u16).prop_map(Happens::SetBack),
        6 => (0..MACHINES).prop_map(Happens::Looks),
        6 => (0..MACHINES, 0..TROUBLES.len()).prop_map(|(at, trouble)| Happens::Ends(at, trouble)),
        2 => (0..MACHINES, 0..PHASES.len()).prop_map(|(at, phase)| Happens::Phase(at, phase)),
        2 => (0..MACHINES, 0..4u8).prop_map(|(at, host)| Happens::Moves(at, host)),
        2 => prop::option::of(0..MACHINES).prop_map(Happens::Focus),
        1 => (0..MACHINES).prop_map(Happens::Accepts),
        1 => any::<bool>().prop_map(Happens::Consents),
        1 => Just(Happens::LosesTheClaim),
    ]
}

proptest! {
    #[test]
    fn whatever_happens_the_rules_hold(story in prop::collection::vec(happens(), 1..120)) {
        let mut play = Play::of(MACHINES);
        // What is open, by what was ordered and told alone; whose key is in question.
        let mut open: BTreeSet<Identity> = BTreeSet::new();
        let mut accepted: BTreeSet<Identity> = BTreeSet::new();
        let mut last = 0;
        let mut steady = true;
        for event in story {
            let id = |at: usize| format!("m{at:03}");
            let has = |play: &Play, at| play.streams.get(&identity("team", &id(at))).is_some();
            let mut orders = Vec::new();
            match event {
                Happens::Passes(seconds) => play.now += SignedDuration::from_secs(seconds.into()),
                Happens::SetBack(seconds) => {
                    // Who gave a place up long ago may have it again: nobody can tell.
                    steady &= seconds == 0;
                    play.now -= SignedDuration::from_secs(seconds.into());
                }
                Happens::Looks(at) if has(&play, at) => drop(play.looks(&id(at))),
                Happens::Ends(at, trouble) if has(&play, at) => {
                    if play.ends(&id(at), TROUBLES[trouble].clone()) {
                        open.remove(&identity("team", &id(at)));
                    }
                }
                Happens::Looks(_) | Happens::Ends(..) => {}
                Happens::Phase(at, phase) => play.machine(&id(at)).row.phase = PHASES[phase],
                Happens::Moves(at, 0) => play.machine(&id(at)).row.ssh = None,
                Happens::Moves(at, host) => {
                    play.machine(&id(at)).row.ssh = SshEndpoint::new("root", &format!("192.0.2.{host}"), 22, host != 3);
                }
                Happens::Focus(at) => play.focus(at.map(id).as_deref()),
                Happens::Accepts(at) => {
                    if play.streams.accept_host_key(&identity("team", &id(at))) {
                        accepted.insert(identity("team", &id(at)));
                    }
                }
                Happens::Consents(yes) => {
                    play.streams.set_consent(&"team".into(), if yes { Consent::Yes } else { Consent::No });
                }
                Happens::LosesTheClaim => orders.extend(play.streams.close_all()),
            }
            let alarmed: Vec<Identity> =
                play.streams.iter().map(|(it, _)| it.clone()).filter(|it| play.streams.alarm(it).is_some()).collect();
            orders.extend(play.orders());
            for order in &orders {
                match order {
                    Order::Close { identity } => prop_assert!(open.remove(identity), "closed, and was not open"),
                    Order::Open { identity, number, target, new_key, .. } => {
                        prop_assert!(open.insert(identity.clone()), "opened twice");
                        prop_assert!(*number > last);
                        last = *number;
                        let known = &play.fleet.instances[identity];
                        prop_assert!(can_be_looked_into(known) && play.streams.consent(&"team".into()).allows());
                        prop_assert_eq!(Some(&target.endpoint), known.row.ssh.as_ref());
                        prop_assert!(!alarmed.contains(identity), "another key, and tried by itself");
                        prop_assert_eq!(*new_key, accepted.remove(identity));
                    }
                }
            }
            let connecting = play.streams.iter().filter_map(|(_, stream)| stream.connects_until());
            let connecting = connecting.filter(|until| *until > play.now).count();
            prop_assert!(!steady || connecting <= CONNECTING);
            let up: BTreeSet<Identity> =
                play.streams.iter().filter(|(_, stream)| stream.is_up()).map(|(it, _)| it.clone()).collect();
            prop_assert_eq!(&up, &open);
            prop_assert_eq!(words(&play.orders()), Vec::<String>::new(), "not done at once");
            prop_assert!(play.streams.next_wake(play.now).is_none_or(|at| at > play.now));
        }
    }

    #[test]
    fn no_two_identities_share_a_host_key(
        a in ("[A-Za-z._0-9é-]{1,4}", "[A-Za-z._0-9é-]{1,4}", 0..3u32),
        b in ("[A-Za-z._0-9é-]{1,4}", "[A-Za-z._0-9é-]{1,4}", 0..3u32),
    ) {
        let alias = |(account, id, generation): &(String, String, u32)| {
            host_key_alias(&"vast".into(), &Identity { generation: *generation, ..identity(account, id) })
        };
        prop_assert_eq!(a == b, alias(&a) == alias(&b));
        prop_assert_eq!(alias(&a).to_lowercase(), alias(&a));
    }
}
