use super::*;
use crate::rules::alerts::{Alert, Stage};
use crate::rules::samples::{at, identity, usd};
use proptest::prelude::*;
use rstest::rstest;

const PACE: SignedDuration = SignedDuration::from_secs(3);

fn rule(name: &str) -> ChannelRule {
    ChannelRule { name: name.to_owned(), watch_only: false, kinds: None, actions: true, pace: PACE, at_once: 3, way: 0 }
}

fn dispatch(rules: Vec<ChannelRule>) -> Dispatch {
    Dispatch { rules, ..Dispatch::default() }
}

fn alert(matter: Matter) -> Alert {
    let topic = matter.topic();
    let since = at("09:00:00");
    let told_to = ["all", "team", "gone", "deeds", "a", "b"].map(str::to_owned).into();
    Alert {
        topic,
        matter,
        stage: Stage::Firing,
        since,
        fired_at: Some(since),
        told_at: Some(since),
        told_to,
        moot: None,
    }
}

fn idle(name: &str) -> Matter {
    let since = at("09:00:00");
    Matter::Idle {
        identity: identity("team", name),
        name: name.to_owned(),
        since,
        rates: vec![usd("2")],
        wasted: vec![],
    }
}

fn fired(name: &str) -> Told {
    Told::Fired(alert(idle(name)))
}

fn names(messages: &[Message]) -> Vec<&str> {
    let name = |message: &'_ Message| match &message.news {
        News::Fired(Matter::Idle { .. }) | News::Resolved(Matter::Idle { .. }) => message.id,
        _ => 0,
    };
    assert!(messages.iter().map(name).is_sorted(), "in their order");
    messages
        .iter()
        .map(|message| match &message.news {
            News::Fired(Matter::Idle { name, .. }) | News::Resolved(Matter::Idle { name, .. }) => name.as_str(),
            News::Acted { name, .. } => name.as_str(),
            _ => "other",
        })
        .collect()
}

fn later(why: &str) -> Delivery {
    Delivery::Later { wait: None, why: why.to_owned(), perhaps: false }
}

#[test]
fn each_channel_is_told_what_it_wants() {
    let rules = vec![
        rule("all"),
        ChannelRule { watch_only: true, ..rule("team") },
        ChannelRule { kinds: Some(vec![Kind::Vanished]), actions: false, ..rule("gone") },
        ChannelRule { kinds: Some(vec![]), ..rule("deeds") },
    ];
    let vanished = Matter::Vanished { identity: identity("team", "b"), name: "b".to_owned() };
    let broken = Matter::Channel { name: "all".to_owned(), why: "403".to_owned(), way: 0 };
    let told = [
        fired("a"),
        Told::Fired(alert(vanished.clone())),
        Told::Resolved(alert(vanished)),
        Told::Resolved(alert(idle("a"))),
        Told::Fired(alert(broken)),
    ];
    let deed = News::Acted { by: "ann@lab".to_owned(), action: Action::Stop, name: "a".to_owned(), saves: vec![] };
    for (screen, expected) in [
        (true, [("all", 4), ("team", 0), ("gone", 1), ("deeds", 1)]),
        (false, [("all", 4), ("team", 5), ("gone", 1), ("deeds", 1)]),
    ] {
        let mut dispatch = dispatch(rules.clone());
        let mut messages = dispatch.tell(&told, screen, "lab", at("10:00:00"));
        messages.extend(dispatch.tell_deed(&deed, screen, "lab", at("10:00:00")));
        for (channel, count) in expected {
            let told = messages.iter().filter(|message| message.channel == channel);
            assert_eq!(told.count(), count, "{channel} on a screen: {screen}");
        }
        let ids: std::collections::BTreeSet<i64> = messages.iter().map(|message| message.id).collect();
        assert_eq!(ids.len(), messages.len());
    }
}

#[test]
fn two_processes_number_alike_at_no_moment() {
    let make = |salt| {
        let mut dispatch = Dispatch { salt, ..dispatch(vec![rule("a"), rule("b")]) };
        dispatch.tell(&[fired("x"), fired("y")], false, "lab", at("10:00:00"))
    };
    let (one, other) = (make(1), make(2));
    assert!(one.iter().all(|message| other.iter().all(|theirs| theirs.id != message.id)));
}

#[test]
fn all_that_waits_goes_out_together_and_nothing_else_before_the_answer() {
    let mut dispatch = dispatch(vec![rule("a"), rule("b")]);
    let told: Vec<Told> = ["1", "2", "3", "4"].map(fired).into();
    dispatch.tell(&told, false, "lab", at("10:00:00"));
    let parcels = dispatch.due(at("10:00:00"));
    assert_eq!(parcels.iter().map(|parcel| names(&parcel.messages)).collect::<Vec<_>>(), [["1", "2", "3"]; 2]);
    assert!(parcels.iter().all(|parcel| parcel.messages.iter().all(|one| one.state == MessageState::Sending)));
    assert_eq!(dispatch.due(at("10:30:00")), [], "each has one under way");
    assert_eq!(dispatch.next_wake(), None);
    let written = dispatch.answered("a", Delivery::Delivered, at("10:30:00"));
    assert!(written.iter().all(|message| message.state == MessageState::Sent) && written.len() == 3);
    assert_eq!(dispatch.due(at("10:30:02")), [], "before the pause is over");
    assert_eq!(dispatch.next_wake(), Some(at("10:30:03")));
    let [parcel] = &dispatch.due(at("10:30:03"))[..] else { panic!("the other one still waits for its answer") };
    assert_eq!((parcel.channel.as_str(), names(&parcel.messages)), ("a", vec!["4"]));
    assert_eq!(dispatch.answered("c", Delivery::Delivered, at("10:31:00")), [], "nobody knows this one");
}

/// By the number of the failure, the wait in seconds.
#[rstest]
#[case(&[5, 10, 20, 40, 80, 160, 320, 640, 900, 900], None)]
#[case(&[60, 60, 60, 60, 80], Some(60))]
#[case(&[3600, 3600], Some(3600))]
fn a_channel_that_fails_is_tried_ever_later(#[case] waits: &[i64], #[case] asked: Option<i64>) {
    let mut dispatch = dispatch(vec![rule("a")]);
    dispatch.tell(&[fired("x")], false, "lab", at("00:00:00"));
    let mut now = at("00:00:00");
    for (count, seconds) in waits.iter().enumerate() {
        assert_eq!(dispatch.due(now).len(), 1, "failure {count}");
        assert_eq!(dispatch.failing().count(), usize::from(count >= 3), "failure {count}");
        let wait = asked.map(SignedDuration::from_secs);
        let written = dispatch.answered("a", Delivery::Later { wait, why: "busy".to_owned(), perhaps: false }, now);
        assert!(written.iter().all(|message| message.state == MessageState::Queued && !message.again));
        let due = now + SignedDuration::from_secs(*seconds);
        assert_eq!(dispatch.next_wake(), Some(due), "failure {count}");
        assert_eq!(dispatch.due(due - SignedDuration::from_secs(1)), []);
        now = due;
    }
}

#[test]
fn a_channel_fails_until_it_takes_something() {
    let mut dispatch = dispatch(vec![rule("a")]);
    dispatch.tell(&[fired("x")], false, "lab", at("10:00:00"));
    for minute in ["10:00:00", "10:10:00", "10:20:00"] {
        assert_eq!(dispatch.failing().count(), 0);
        dispatch.due(at(minute));
        dispatch.answered("a", later("HTTP 500"), at(minute));
    }
    assert_eq!(dispatch.trouble(), ["a: HTTP 500"]);
    dispatch.due(at("10:30:00"));
    dispatch.answered("a", Delivery::Delivered, at("10:30:00"));
    assert_eq!(dispatch.failing().count(), 0);
}

#[test]
fn what_is_refused_is_kept_and_tried_again_at_long_intervals_or_when_there_is_news() {
    let mut dispatch = dispatch(vec![rule("a")]);
    dispatch.tell(&["1", "2", "3", "4"].map(fired), false, "lab", at("10:00:00"));
    let refused = || Delivery::Refused { why: "HTTP 404".to_owned() };
    dispatch.due(at("10:00:00"));
    let written = dispatch.answered("a", refused(), at("10:00:00"));
    assert!(written.len() == 4 && written.iter().all(|message| message.state == MessageState::Queued));
    assert_eq!(dispatch.trouble(), ["a: HTTP 404"]);
    assert_eq!(dispatch.due(at("10:14:59")), []);
    assert_eq!(names(&dispatch.due(at("10:15:00"))[0].messages), ["1", "2", "3"]);
    dispatch.answered("a", refused(), at("10:15:00"));
    dispatch.tell(&[fired("5")], false, "lab", at("10:16:00"));
    assert_eq!(names(&dispatch.due(at("10:16:00"))[0].messages), ["1", "2", "3"]);
    dispatch.answered("a", Delivery::Delivered, at("10:16:00"));
    assert_eq!(dispatch.trouble(), [""; 0]);
    // A command beside us has news as well.
    let mut other = Dispatch { salt: 7, ..self::dispatch(vec![rule("a")]) };
    let theirs = other.tell(&[fired("6")], false, "lab", at("10:20:01"));
    let rest = &dispatch.due(at("10:16:03"))[0].messages;
    assert!(names(rest) == ["4", "5"] && rest.iter().all(|message| !message.again));
    dispatch.answered("a", refused(), at("10:20:00"));
    dispatch.join(theirs);
    assert_eq!(names(&dispatch.due(at("10:20:03"))[0].messages), ["4", "5", "6"]);
}

#[test]
fn what_is_too_long_is_tried_one_by_one_and_then_given_up_with_its_reason() {
    let mut dispatch = dispatch(vec![rule("a")]);
    dispatch.tell(&["1", "2"].map(fired), false, "lab", at("10:00:00"));
    let too_long = || Delivery::TooLong { why: "HTTP 413".to_owned() };
    dispatch.due(at("10:00:00"));
    let written = dispatch.answered("a", too_long(), at("10:00:00"));
    assert!(written.len() == 2 && written.iter().all(|message| message.state == MessageState::Queued));
    assert_eq!(names(&dispatch.due(at("10:00:03"))[0].messages), ["1"]);
    let written = dispatch.answered("a", too_long(), at("10:00:03"));
    assert_eq!(written[0].state, MessageState::Dropped { why: "HTTP 413".to_owned() });
    assert_eq!(names(&dispatch.due(at("10:00:06"))[0].messages), ["2"]);
    assert_eq!(dispatch.trouble(), [""; 0], "the others are taken");
}

impl Dispatch {
    fn trouble(&self) -> Vec<String> {
        self.failing().map(|(rule, why)| format!("{}: {why}", rule.name)).collect()
    }

    /// Tries a channel every quarter of an hour for so long, in vain, from a time on. Returns when it ended.
    fn try_in_vain(&mut self, mut now: Timestamp, hours: i64) -> Timestamp {
        let end = now + SignedDuration::from_hours(hours);
        while now < end {
            assert_eq!(self.due(now).len(), 1);
            self.answered("a", later("HTTP 500"), now);
            now += LONGEST_WAIT;
        }
        end
    }
}

#[test]
fn what_was_offered_for_a_day_is_given_up_and_told_as_a_number_when_the_channel_works_again() {
    let mut dispatch = dispatch(vec![rule("a")]);
    dispatch.tell(&["1", "2", "3", "4"].map(fired), false, "lab", at("00:00:00"));
    let now = dispatch.try_in_vain(at("00:00:00"), 25);
    dispatch.tell(&[fired("y")], false, "lab", now);
    let parcel = dispatch.due(now).remove(0);
    let given_up = dispatch.take_unkept();
    let dropped = MessageState::Dropped { why: "not taken for 24 h: HTTP 500".to_owned() };
    assert_eq!(given_up.iter().filter(|message| message.state == dropped).count(), 4);
    let lost = News::Lost { count: 4, since: at("00:00:00") };
    assert_eq!(parcel.messages.iter().map(|message| &message.news).collect::<Vec<_>>()[0], &lost);
    assert!(given_up.iter().any(|message| message.news == lost && message.state == MessageState::Queued));
    dispatch.answered("a", later("HTTP 500"), now);
    // What is lost later is counted with it, and the number itself is never lost.
    let now = dispatch.try_in_vain(now + LONGEST_WAIT, 30);
    dispatch.tell(&[fired("z")], false, "lab", now);
    let parcel = dispatch.due(now).remove(0);
    assert_eq!(names(&parcel.messages[1..]), ["z"]);
    assert_eq!(parcel.messages[0].news, News::Lost { count: 5, since: at("00:00:00") });
    let all = &parcel.messages;
    assert_eq!(Dispatch::backlog(all), [("a", Backlog { waiting: 1, lost: 5 })].into());
}

/// What was off, or slept, did not try: the message waits on, from one process to the next.
#[test]
fn only_the_time_in_which_it_was_tried_makes_a_message_old() {
    let mut dispatch = dispatch(vec![rule("a")]);
    dispatch.tell(&[fired("x")], false, "lab", at("00:00:00"));
    let days = |days: i64| at("00:00:00") + SignedDuration::from_hours(24 * days);
    for day in 0..20 {
        assert_eq!(names(&dispatch.due(days(day))[0].messages), ["x"], "day {day}");
        let kept = dispatch.answered("a", later("no network"), days(day));
        let text = serde_json::to_string(&kept).unwrap();
        let rules = std::mem::take(&mut dispatch.rules);
        dispatch = Dispatch { rules, ..Dispatch::default() };
        dispatch.remember(serde_json::from_str(&text).unwrap());
    }
    assert!(dispatch.take_unkept().is_empty());
}

#[test]
fn what_waits_for_a_channel_that_is_not_in_the_config_is_given_up_after_a_day() {
    let mut dispatch = dispatch(vec![rule("a")]);
    let mut orphan = dispatch.tell(&[fired("x")], false, "lab", at("00:00:00")).remove(0);
    (orphan.id, orphan.channel) = (1, "old".to_owned());
    dispatch.join(vec![orphan]);
    assert_eq!(dispatch.unnamed().collect::<Vec<_>>(), [("old", 1)]);
    // A day from when somebody saw that, not from when it was made.
    dispatch.due(at("10:00:00"));
    let noticed = dispatch.take_unkept();
    assert_eq!(noticed.iter().map(|message| message.wait.unnamed_since).collect::<Vec<_>>(), [Some(at("10:00:00"))]);
    dispatch.due(at("09:59:59") + SignedDuration::from_hours(24));
    assert_eq!(dispatch.take_unkept(), []);
    dispatch.due(at("10:00:00") + SignedDuration::from_hours(24));
    let dropped = MessageState::Dropped { why: "not in the config any more".to_owned() };
    assert_eq!(dispatch.take_unkept().into_iter().map(|message| message.state).collect::<Vec<_>>(), [dropped]);
}

#[test]
fn an_end_is_told_to_the_channels_that_were_told_of_the_beginning() {
    let mut dispatch = dispatch(vec![rule("a"), rule("renamed")]);
    let messages = dispatch.tell(&[Told::Resolved(alert(idle("x")))], false, "lab", at("10:00:00"));
    assert_eq!(messages.iter().map(|message| message.channel.as_str()).collect::<Vec<_>>(), ["a"]);
}

#[test]
fn what_another_process_wrote_down_is_sent_once() {
    let mut other = Dispatch { salt: 7, ..dispatch(vec![rule("a")]) };
    let written = other.tell(&[fired("theirs")], false, "lab", at("10:00:00"));
    let mut ours = dispatch(vec![rule("a")]);
    for _ in 0..2 {
        ours.join(written.clone());
    }
    assert_eq!(names(&ours.due(at("10:00:01"))[0].messages), ["theirs"]);
    ours.join(written.clone());
    ours.answered("a", Delivery::Delivered, at("10:00:02"));
    // Read before it was written down that it is sent.
    ours.join(written);
    assert_eq!(ours.due(at("11:00:00")), []);
}

#[test]
fn a_clock_that_is_set_back_holds_nothing_up() {
    let mut dispatch = dispatch(vec![rule("a")]);
    dispatch.tell(&[fired("x")], false, "lab", at("10:00:00"));
    dispatch.due(at("10:00:00"));
    dispatch.answered("a", later("busy"), at("10:00:00"));
    assert_eq!(dispatch.due(at("04:00:00")).len(), 1);
}

/// A ledger, a service, and a process that may be killed between any two steps.
struct Model {
    dispatch: Dispatch,
    ledger: BTreeMap<i64, Message>,
    now: Timestamp,
    /// Id, whether it said that it may be there already, and when.
    received: Vec<(i64, bool, Timestamp)>,
    /// When requests went out in the life of this process.
    requests: Vec<Timestamp>,
    /// What is under way, and whether the service has it.
    under_way: Option<(Vec<Message>, bool)>,
    /// Those whose request ended without an answer that is known, or was cut by a kill.
    in_doubt: std::collections::BTreeSet<i64>,
}

#[derive(Clone, Debug)]
enum Deed {
    Tell(u8),
    Wait(u16),
    /// What is due is sent, and killed before the first, second or third thing that is done for it.
    Send {
        killed_after: Option<u8>,
    },
    /// 0 delivered, 1 later, 2 later and perhaps there, 3 refused; killed before it is written down.
    Answer {
        kind: u8,
        killed: bool,
    },
    Kill,
    /// The ledger is read again by a living process.
    Recall,
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        (1u8..5).prop_map(Deed::Tell),
        (0u16..400).prop_map(Deed::Wait),
        prop::option::weighted(0.3, 0u8..3).prop_map(|killed_after| Deed::Send { killed_after }),
        (0u8..4, prop::bool::weighted(0.3)).prop_map(|(kind, killed)| Deed::Answer { kind, killed }),
        Just(Deed::Kill),
        Just(Deed::Recall),
    ]
}

impl Model {
    fn new() -> Self {
        Model {
            dispatch: dispatch(vec![rule("a")]),
            ledger: BTreeMap::new(),
            now: at("00:00:00"),
            received: Vec::new(),
            requests: Vec::new(),
            under_way: None,
            in_doubt: Default::default(),
        }
    }

    fn write(&mut self, messages: Vec<Message>) {
        self.ledger.extend(messages.into_iter().map(|message| (message.id, message)));
    }

    fn waiting(&self) -> Vec<Message> {
        let waits = |message: &&Message| matches!(message.state, MessageState::Queued | MessageState::Sending);
        self.ledger.values().filter(waits).cloned().collect()
    }

    /// A new process takes up what the ledger knows.
    fn kill(&mut self) {
        let sending = self.ledger.values().filter(|message| message.state == MessageState::Sending);
        self.in_doubt.extend(sending.map(|message| message.id));
        self.now += SignedDuration::from_secs(1);
        self.dispatch = dispatch(vec![rule("a")]);
        self.dispatch.remember(self.waiting());
        (self.under_way, self.requests) = (None, Vec::new());
    }

    fn perform(&mut self, deed: &Deed) {
        match deed {
            Deed::Tell(count) => {
                let told: Vec<Told> = (0..*count).map(|number| fired(&number.to_string())).collect();
                let messages = self.dispatch.tell(&told, false, "lab", self.now);
                self.write(messages);
            }
            Deed::Wait(seconds) => self.now += SignedDuration::from_secs((*seconds).into()),
            Deed::Send { killed_after } => {
                let Some(parcel) = self.dispatch.due(self.now).pop() else { return };
                assert!(self.under_way.is_none(), "one at a time");
                if *killed_after == Some(0) {
                    return self.kill();
                }
                self.write(parcel.messages.clone());
                if *killed_after == Some(1) {
                    return self.kill();
                }
                for message in &parcel.messages {
                    self.received.push((message.id, message.again, self.now));
                }
                self.requests.push(self.now);
                self.under_way = Some((parcel.messages, true));
                if *killed_after == Some(2) {
                    self.kill();
                }
            }
            Deed::Answer { kind, killed } => {
                let Some((messages, _)) = self.under_way.take() else { return };
                let ids: Vec<i64> = messages.iter().map(|message| message.id).collect();
                let delivery = match kind {
                    0 => Delivery::Delivered,
                    3 => Delivery::Refused { why: "no".to_owned() },
                    kind => Delivery::Later { wait: None, why: "busy".to_owned(), perhaps: *kind == 2 },
                };
                if matches!(kind, 1 | 3) {
                    // The service says itself that it did not take it.
                    self.received
                        .retain(|(id, _, when)| !(ids.contains(id) && *when == *self.requests.last().unwrap()));
                }
                if *kind == 2 {
                    self.in_doubt.extend(ids);
                }
                let written = self.dispatch.answered("a", delivery, self.now);
                if *killed {
                    return self.kill();
                }
                self.write(written);
            }
            Deed::Kill => self.kill(),
            Deed::Recall => self.dispatch.remember(self.waiting()),
        }
        let dropped = self.dispatch.take_unkept();
        self.write(dropped);
    }

    /// Until nothing waits any more.
    fn drain(&mut self) {
        for _ in 0..1000 {
            self.perform(&Deed::Send { killed_after: None });
            self.perform(&Deed::Answer { kind: 0, killed: false });
            self.now += SignedDuration::from_secs(3600 / 4);
            if self.waiting().is_empty() {
                return;
            }
        }
        panic!("something waits for ever: {:?}", self.waiting());
    }
}

proptest! {
    /// Whatever happens between two steps: each piece of news reaches the channel; twice only where nobody could know
    /// whether it had, and the second one says so; the first ones in their order, and never faster than the channel
    /// allows.
    #[test]
    fn each_piece_of_news_arrives_once_or_says_that_it_may_be_there(deeds in prop::collection::vec(deed(), 1..60)) {
        let mut model = Model::new();
        for deed in &deeds {
            model.perform(deed);
            prop_assert!(model.requests.windows(2).all(|two| two[1].duration_since(two[0]) >= PACE));
        }
        model.drain();
        let mut seen = BTreeMap::<i64, u32>::new();
        let mut firsts = Vec::new();
        for (id, again, _) in &model.received {
            let times = seen.entry(*id).or_default();
            *times += 1;
            if *times == 1 {
                firsts.push(*id);
            } else {
                prop_assert!(*again && model.in_doubt.contains(id), "{id} came again without a word");
            }
            prop_assert!(!*again || model.in_doubt.contains(id), "{id} says that it may be there, and nobody doubts it");
        }
        for (id, message) in &model.ledger {
            match &message.state {
                MessageState::Sent => prop_assert!(seen.contains_key(id), "{id} was never told"),
                MessageState::Dropped { .. } => {}
                state => prop_assert!(false, "{id} is left as {state:?}"),
            }
        }
        // What was refused, or never left, may be passed by others; of the rest none overtakes another.
        let sent = |id: &i64| model.ledger[id].state == MessageState::Sent && !model.in_doubt.contains(id);
        firsts.retain(sent);
        prop_assert!(firsts.is_sorted(), "{firsts:?}");
    }
}
