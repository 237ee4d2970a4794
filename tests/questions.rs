//! Questions while the world goes on: what is begun is what the window showed when it was answered, and nothing else.

mod support;

use jiff::SignedDuration;
use proptest::prelude::*;
use providers::error::ErrorKind;
use providers::model::{Attachment, Identity, Instance, Offer, Offers, Phase, Refusal, StorageItem, Tenant};
use providers::provider::{Found, Part, Poll, Reading};
use rentop::app::Effect;
use rentop::app::action::{Code, Key};
use rentop::app::event::WorldEvent;
use rentop::app::listing::Line;
use rentop::app::message::{Msg, SortName};
use rentop::app::state::{Tab, View};
use rentop::config::Language;
use rentop::rules::memory::Owner;
use rentop::rules::plan::{Confirmation, Plan};
use rentop::rules::saga::{Authority, Permit};
use rstest::rstest;
use support::story::*;

/// A row whose stop loses its disk, as at providers without a lasting one.
fn scratch(id: &str, hourly: &str) -> Instance {
    let row = running(id, hourly);
    let release = row.offers.release.clone();
    Instance { offers: Offers { stop: release, ..row.offers }, ..row }
}

/// Marks rows by their ids.
fn mark(story: &mut Story, ids: &[&str]) {
    for id in ids {
        story.on(id).press(" ");
    }
}

fn places(story: &Story) -> Vec<&str> {
    let places = story.state.view.list().lines.iter().filter_map(|line| match line {
        Line::Resource(identity) => Some(identity.id.as_str()),
        _ => None,
    });
    places.collect()
}

fn targets(plan: &Plan) -> Vec<&str> {
    plan.targets.iter().map(|target| target.identity.id.as_str()).collect()
}

/// What a poll may do to the rows under a question.
#[derive(Clone, Copy, Debug)]
enum Change {
    Vanishes,
    Phase,
    LosesMore,
    Rate,
}

fn changed(change: Change) -> Vec<Instance> {
    let b = running("b", "2");
    let lost = [disk(), providers::model::DataPlace { path: Some("/scratch".into()), ..disk() }];
    match change {
        Change::Vanishes => vec![running("a", "3")],
        Change::Phase => vec![running("a", "3"), stopped("b")],
        Change::LosesMore => {
            let release = match b.offers.release.clone() {
                Offer::Yes(deed) => Offer::Yes(providers::model::Effect { lost: lost.to_vec(), ..deed }),
                no => no,
            };
            vec![running("a", "3"), Instance { offers: Offers { release, ..b.offers.clone() }, ..b }]
        }
        Change::Rate => vec![running("a", "3"), running("b", "2.5")],
    }
}

/// The question says that it changed, its field is emptied, a quick answer does nothing, and then it asks for
/// what is now so.
#[rstest]
#[case::vanishes(Change::Vanishes, "Release a")]
#[case::phase(Change::Phase, "Release 2 instances")]
#[case::loses_more(Change::LosesMore, "/scratch")]
#[case::rate(Change::Rate, "$5.50/h")]
fn a_question_that_changes_says_so_and_is_asked_anew(#[case] change: Change, #[case] shown: &str) {
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", vec![running("a", "3"), running("b", "2")]);
    mark(&mut story, &["a", "b"]);
    story.press("xx").press("release ");
    assert_eq!(story.field(), Some("release "));
    story.hides("decide anew");

    story.lists("me", changed(change));
    story.shows("It has changed while you were asked");
    story.shows(shown);
    assert_eq!(story.field(), None, "half a name is not half a name of something else");
    let expected = story.question().unwrap().plan.confirmation.clone();
    let Confirmation::Typed(expected) = expected else { panic!("{expected:?}") };

    // The rest of what was being typed, and the key that opens the field, within the time that it takes to read.
    for key in ['2', 'x', 'y'] {
        story.quick(Key::char(key));
    }
    story.quick(Key::plain(Code::Enter)).wait_ms(650);
    story.quick(Key::char('x'));
    assert!(story.busy().is_empty() && story.field().is_none());
    story.press("x");
    assert_eq!(story.field(), Some(""));
    let plan = story.question().unwrap().plan.clone();
    story.press(&format!("{expected}\n"));
    let mut begun = story.busy();
    begun.sort();
    let mut asked: Vec<String> = targets(&plan).into_iter().map(str::to_owned).collect();
    asked.sort();
    assert_eq!(begun, asked);
}

/// Rows that change their places, and polls that change nothing, leave a question and its field alone.
#[test]
fn what_changes_nothing_for_the_question_leaves_it_alone() {
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", vec![running("a", "3"), running("b", "2")]);
    story.press("o").on("b").press("xx").press("b");
    for hourly in ["1", "9"] {
        story.wait_ms(40_000);
        story.lists("me", vec![running("a", hourly), running("b", "2"), running("c", "7")]);
        assert_eq!(story.field(), Some("b"));
        story.hides("It has changed");
        assert_eq!(places(&story)[..2], ["a", "b"], "nothing jumps while a question is open");
    }
    story.press("\n");
    assert_eq!(story.busy(), ["b"]);
}

/// Nothing is left: only Esc does anything, and a question that has something to ask again is asked anew.
#[test]
fn a_question_about_nothing_can_only_be_left() {
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", vec![running("a", "3"), running("b", "2")]);
    story.on("a").press("xx").press("a");
    story.lists("me", vec![running("b", "2")]);
    story.shows("nothing is left to do");
    story.wait_ms(2_000).effects();
    for code in [Code::Enter, Code::Char('x'), Code::Char('y'), Code::Char('a'), Code::Down, Code::Char('s')] {
        story.code(code);
        assert!(story.question().is_some() && story.field().is_none(), "{code:?}");
    }
    assert!(story.deeds().is_empty() && story.busy().is_empty());
    story.shows("esc cancel");
    // It is back in the next list.
    story.lists("me", vec![running("a", "3"), running("b", "2")]);
    story.shows("It has changed");
    story.press("x").press("a\n");
    assert_eq!(story.busy(), ["a"]);

    story.on("b").press("x");
    story.lists("me", vec![running("a", "3")]);
    story.code(Code::Esc);
    assert!(story.state.view.modals.is_empty());
}

/// An action that a command left is taken up while the screen asks about the very same machine.
#[test]
fn an_action_that_begins_meanwhile_takes_its_machine_out_of_the_question() {
    let mut left = Story::over(&["me"], "09:59:00");
    left.lists("me", vec![running("a", "3"), running("b", "2")]);
    left.on("a").press("x").press("x").press("a\n");
    let owner = Owner { host: "desk".to_owned(), pid: 7 };
    let entry = left.action().clone();

    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", vec![running("a", "3"), running("b", "2")]);
    mark(&mut story, &["a", "b"]);
    story.press("x");
    let mut sending = entry;
    sending.step = rentop::rules::saga::Step::Sending { since: story.now };
    story.world(WorldEvent::Orphaned(vec![(sending, owner)]));
    story.shows("It has changed");
    story.shows("Release b");
    story.shows("another action on it is under way");
    assert_eq!(targets(&story.question().unwrap().plan), ["b"]);
}

/// A key that opens another tenant's account: what was asked cannot be answered any more.
#[test]
fn an_account_in_doubt_ends_what_is_asked_about_it() {
    let of = |tenant: &str, rows| Poll { tenant: Reading::Known(Tenant { id: tenant.to_owned() }), ..listed(rows) };
    let mut story = Story::over(&["me"], "10:00:00");
    story.answer("me", of("1", vec![running("a", "3"), running("b", "2")]));
    mark(&mut story, &["a", "b"]);
    story.press("s");
    story.shows("Stop 2 instances");
    story.answer("me", of("2", vec![]));
    story.shows("nothing is left to do");
    story.shows("its account is in trouble");
    story.wait_ms(1_000).press("y");
    assert!(story.busy().is_empty());

    // A key that cannot be read any more says the same.
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", vec![running("a", "3")]).on("a").press("x");
    let trouble = rentop::rules::fleet::Trouble::Key("locked".to_owned());
    story.world(WorldEvent::NotReady { account: "me".into(), trouble });
    story.shows("nothing is left to do");

    // A request that failed proves nothing: the plan tells how old it is.
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", vec![running("a", "3")]).on("a").press("x");
    story.wait_ms(120_000).fails("me", ErrorKind::Connect { message: "refused".to_owned() });
    story.hides("It has changed");
    story.shows("2 m ago");
}

/// A row may be stopped by a poll that comes with the very key: the key means what was painted, or nothing.
#[test]
fn a_key_that_stops_does_not_start_what_was_stopped_a_moment_ago() {
    for (before, after) in [(running("a", "1"), stopped("a")), (stopped("a"), running("a", "1"))] {
        let mut story = Story::over(&["me"], "10:00:00");
        story.lists("me", vec![before]).on("a").wait_ms(60_000);
        story.lists("me", vec![after]).quick(Key::char('s'));
        assert!(story.busy().is_empty(), "{:?}", story.action());
        assert_eq!(story.said(), Some(&Msg::RowJustChanged));
        story.shows("the row just changed: press again");
        story.press("s");
        assert_eq!(story.busy(), ["a"]);
    }
}

/// The cursor goes from row to row by keys: none of them is a row that has just changed.
#[test]
fn moving_about_is_no_change_of_a_row() {
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", vec![running("a", "3"), stopped("b"), running("c", "1")]);
    story.code(Code::Home);
    for key in ['s', 'j', 's', 'j', 's'] {
        story.wait_ms(160).quick(Key::char(key));
    }
    assert_eq!(story.busy().len(), 3, "{:?}", story.said());
}

/// A marked row may be hidden or far away: it is asked about with its name, however little is lost.
#[test]
fn what_is_not_under_the_cursor_is_never_begun_without_a_window() {
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", vec![running("a", "3"), running("b", "2")]);
    mark(&mut story, &["a"]);
    story.press("/b\n");
    assert_eq!((story.selected(), story.marked()), (Some("b"), vec!["a"]));
    story.wait_ms(9_000);
    story.shows("1 marked, 1 of them hidden");
    story.press("s");
    assert!(story.busy().is_empty());
    story.shows("Stop a");
    story.press("y");
    assert_eq!(story.busy(), ["a"]);

    // Two were marked and one vanishes before the key: still asked.
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", vec![running("a", "3"), running("b", "2"), running("c", "1")]);
    mark(&mut story, &["a", "b"]);
    story.on("c").press("/c\n");
    story.lists("me", vec![running("b", "2"), running("c", "1")]).press("s");
    assert!(story.busy().is_empty());
    story.shows("Stop b");
}

/// A plan shows every target, however many are marked: those that have no room are counted and scrolled to.
#[test]
fn every_marked_row_can_be_seen_in_the_plan() {
    for (width, height) in [(60, 16), (80, 24), (100, 30)] {
        let mut story = Story::over(&["me"], "10:00:00");
        story.resize(width, height);
        let ids: Vec<String> = (0..15).map(|n| format!("m{n:02}")).collect();
        story.lists("me", ids.iter().map(|id| running(id, "1")).collect());
        story.code(Code::Home);
        for _ in &ids {
            story.press(" ");
        }
        story.press("/m0\n");
        assert_eq!(story.state.view.fleet.hidden_marks, 5);
        story.press("x");
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..15 {
            story.shows("Release 15 instances");
            story.shows("asks for a typed word");
            let screen = story.screen();
            seen.extend(ids.iter().filter(|id| screen.contains(id.as_str())).cloned());
            story.code(Code::Down);
        }
        assert_eq!(seen.len(), 15, "{width}×{height}: {seen:?}");
    }
}

/// The question is seen at the smallest size, also under many that are left out and in a window that changed.
#[test]
fn the_question_is_seen_however_much_is_told_above_it() {
    for language in [Language::English, Language::Chinese] {
        let mut story = Story::over(&["me"], "10:00:00");
        story.language = language;
        story.resize(60, 16);
        let no = |id: &str| {
            let row = running(id, "1");
            let told = Refusal::Told("member of a cluster that is managed as a whole somewhere else".to_owned());
            Instance { offers: Offers { release: Offer::No(told), ..row.offers }, ..row }
        };
        let rows = |hourly: &str| {
            let mut rows: Vec<Instance> = ["n1", "n2", "n3", "n4", "n5", "n6"].into_iter().map(no).collect();
            rows.extend([running("y1", hourly), running("y2", "1")]);
            rows
        };
        story.lists("me", rows("1"));
        mark(&mut story, &["n1", "n2", "n3", "n4", "n5", "n6", "y1", "y2"]);
        story.press("x");
        story.lists("me", rows("2"));
        let [asks, types] = match language {
            Language::English => ["asks for a typed word", "type release 2 and press enter"],
            Language::Chinese => ["需先输入确认文字", "输入 release 2 并按回车"],
        };
        story.shows(asks);
        story.press("x");
        story.shows(types);
        story.press("release 2");
        story.shows("> release 2");
        story.press("\n");
        assert_eq!(story.busy().len(), 2);
    }
}

/// Too small to show anything: nothing is begun, marked or typed, and the ways out work.
#[test]
fn nothing_is_begun_in_a_window_that_shows_nothing() {
    let every = "sxupmyoghfv!be \n/:?1236jk";
    for (width, height) in [(14, 54), (10, 11), (7, 2), (1, 1), (2, 100), (100, 2), (59, 16), (60, 15)] {
        let mut story = Story::over(&["me"], "10:00:00");
        story.lists("me", vec![running("a", "3"), running("b", "2")]).on("b").effects();
        story.resize(width, height).press(every).press("a\nb\n");
        story.screen();
        story.wait_ms(10_000);
        assert!(story.deeds().is_empty() && story.busy().is_empty(), "{width}×{height}");
        story.resize(80, 24);
        assert!(story.state.view.modals.is_empty() && story.selected() == Some("b"), "{width}×{height}");
        assert!(story.marked().is_empty());

        // With a question open, and with its name already typed.
        story.press("xx").press("b").resize(width, height).press("\nxy\n");
        story.paste("b\n");
        assert!(story.busy().is_empty());
        story.resize(80, 24);
        story.shows("Release b");
        assert_eq!(story.field(), Some("b"));
        story.resize(width, height).press("q");
        assert!(story.state.leaving);
    }
}

/// TUI-02: with an action under way the small window says so before it is left, and what can be taken back is.
#[test]
fn a_small_window_tells_what_is_under_way_before_it_is_left() {
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", vec![running("a", "3")]).on("a").press("s").resize(59, 15);
    story.shows("window too small: 60×16 needed, q quits");
    story.press("q");
    assert!(!story.state.leaving);
    story.shows("1 action is under way, q leaves now");
    story.language = Language::Chinese;
    story.shows("有 1 个操作正在进行，q 立即退出");
    story.press("u");
    assert!(story.busy().is_empty());
    story.press("q");
    assert!(story.state.leaving);
}

/// A stop that erases something asks for the name, and a start is told with what it costs.
#[test]
fn a_stop_that_erases_is_asked_like_a_release() {
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", vec![scratch("a", "3")]).on("a").press("s");
    story.shows("Stop a");
    story.shows("deletes");
    story.press("y\n");
    assert!(story.busy().is_empty());
    story.press("s").press("a\n");
    assert_eq!(story.busy(), ["a"]);
    assert_eq!(story.action().authority, Authority::Typed("a".to_owned()));
}

/// What `x` ends in the Storage view, by what the row is.
#[test]
fn the_storage_view_ends_each_row_in_its_own_way() {
    let mut story = Story::over(&["me"], "10:00:00");
    let used = StorageItem { attachment: Attachment::To(vec!["old".into()]), ..volume("used") };
    let mut doubtful = StorageItem { attachment: Attachment::Unknown, ..volume("doubtful") };
    if let Offer::Yes(deed) = &mut doubtful.delete {
        deed.risks.push(providers::model::Risk::UseUnknown);
    }
    let mounting = Instance { mounts: vec!["busy".into()], ..running("a", "1") };
    story.lists_with("me", vec![mounting, stopped("old")], vec![volume("free"), used, doubtful, volume("busy")]);
    story.press("3").wait_ms(9_000).effects();
    assert_eq!(story.state.view.tab, Tab::Storage);
    assert!(!places(&story).contains(&"busy"), "what works is no row");

    story.on("old").press("x");
    story.shows("Release old");
    story.code(Code::Esc).on("free").press("x");
    story.shows("Delete free");
    story.shows("80 GB");
    story.shows("61 d");
    // Neither yes nor another name, nor its name in other letters.
    story.press("y").press("x").press("old\n").key(Key::ctrl('u'));
    story.press("FREE\n");
    assert!(story.busy().is_empty());
    story.key(Key::ctrl('u'));
    story.code(Code::Esc).code(Code::Esc).on("used").press("x");
    assert!(story.question().is_none());
    story.shows("used: still in use by other resources");
    story.on("doubtful").press("x");
    story.shows("others may be using it");
    story.press("x");
    story.shows("type doubtful and press enter");
    // Pointed at alone, what is protected can be ended all the same; the plan says that it is.
    story.code(Code::Esc).code(Code::Esc).press("px");
    story.shows("mind        protected");
    story.code(Code::Esc).press("p").on("free").press(" ").on("old").press(" ").press("x");
    story.shows("instances and storage are marked: mark one kind");
    let only_set = story.deeds().iter().all(|effect| matches!(effect, Effect::Set { .. }));
    assert!(only_set && story.busy().is_empty());
}

/// A deletion is what the provider's own answers prove, and it is written down before it is sent.
#[test]
fn a_deletion_goes_through_its_steps_to_its_proof() {
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists_with("me", vec![], vec![volume("v"), volume("w")]).press("3").on("v").effects();
    story.press("x").press("x").press("v\n");
    let effects = story.effects();
    assert_eq!(commits(&effects), [("checking", false)]);
    story.effects = effects;
    story.found(Found::Storage(Box::new(volume("v"))));
    let permits: Vec<Permit> = story.permits();
    assert_eq!(permits.iter().map(Permit::identity).collect::<Vec<_>>(), [&item_identity("me", "v")]);
    story.world(WorldEvent::Acted { op: permits[0].op(), answer: Ok(providers::provider::Accepted::Done) });
    story.shows("deleting");
    // The cursor stays on it, and nothing can be asked of it meanwhile.
    story.press("x");
    story.shows("v: another action on it is under way");
    for _ in 0..3 {
        if story.outcome().is_some() {
            break;
        }
        story.lists_with("me", vec![], vec![volume("w")]);
        if looks(&story.effects) > 0 && story.outcome().is_none() {
            story.found(Found::NoSuchId);
        }
    }
    assert_eq!(story.outcome(), Some(&rentop::rules::saga::Outcome::Done { despite: None }));
    assert!(story.permits().is_empty());
    assert_eq!(places(&story), ["w"]);
    story.press("6");
    story.shows("done and proven");
}

/// ORPH-04: not everything that nothing uses is ours. Owners are told, what was kept stays kept, and each is
/// deleted by a question that tells its name, its size and its age.
#[test]
fn not_everything_unattached_is_ours_to_delete() {
    let mut story = Story::over(&["me"], "10:00:00");
    let mut owned = volume("vA");
    owned.labels.insert("owner".to_owned(), "other-team".to_owned());
    let items = || vec![volume("vB"), volume("vC"), volume("vD")];
    let all = || [vec![owned.clone()], items()].concat();
    story.resize(120, 30).lists_with("me", vec![], all()).press("3").wait_ms(9_000);
    assert_eq!(places(&story).len(), 4);
    let line = |story: &Story, id: &str| {
        story.screen().lines().find(|line| line.contains(&format!(" {id} "))).unwrap_or_default().to_owned()
    };
    assert!(line(&story, "vA").contains("owner=other-team"), "{}", story.screen());
    story.on("vB").press("p").wait_ms(9_000);
    assert!(line(&story, "vB").contains("▪p "), "{}", story.screen());
    story.shows("attached to nothing; protected");
    let proposed = |story: &Story| {
        let rows = story.state.view.shelf.upkeep.proposable();
        let mut ids: Vec<String> = rows.map(|row| row.identity.id.to_string()).collect();
        ids.sort();
        ids
    };
    assert_eq!(proposed(&story), ["vC", "vD"]);

    // After a restart it is still kept.
    let settings = story.state.world.settings.single.clone();
    let memory = rentop::rules::memory::Memory { settings, ..Default::default() };
    let mut again = Story::opened(&["me"], "10:30:00");
    again.world(WorldEvent::Collector(rentop::rules::memory::Collector::Us));
    again.remember(memory);
    again.lists_with("me", vec![], all()).press("3").wait_ms(9_000).effects();
    assert!(line(&again, "vB").contains("▪p "), "{}", again.screen());
    assert_eq!(proposed(&again), ["vC", "vD"]);

    again.on("vA").press("x");
    again.shows("mind        owner=other-team");
    again.code(Code::Esc);
    // All four marked: what is kept is left out and named, the others are listed one by one.
    mark(&mut again, &["vA", "vB", "vC", "vD"]);
    again.press("x");
    again.shows("Delete 3 storage items");
    again.shows("vB  protected: bulk actions leave it alone");
    for id in ["vA", "vC", "vD"] {
        let screen = again.screen();
        let lines: Vec<&str> = screen.lines().collect();
        let of_it = lines.windows(2).find(|lines| lines[0].contains(&format!("│  {id}  "))).map(|lines| lines.concat());
        let told = of_it.is_some_and(|line| line.contains("80 GB") && line.contains("61 d"));
        assert!(told, "{id} without its size and age:\n{screen}");
    }
    again.shows("owner=other-team");
    again.wait_ms(600_000);
    assert!(again.deeds().is_empty() && again.busy().is_empty(), "nothing is deleted by itself");
}

/// What is done by keys while a question is open.
#[derive(Clone, Debug)]
enum Told {
    /// Rows by id: phase, rate in tens of cents, whether a stop erases.
    Poll(Vec<(usize, bool, u8, bool)>),
    OtherTenant,
    Keys(&'static str),
    Typed,
    Wait(i64),
    Small(bool),
    Painted,
}

fn any_told() -> impl Strategy<Value = Told> {
    let row = (0usize..4, any::<bool>(), 1u8..4, prop::bool::weighted(0.3));
    prop_oneof![
        4 => prop::collection::vec(row, 0..4).prop_map(Told::Poll),
        1 => Just(Told::OtherTenant),
        8 => prop::sample::select(vec!["x", "s", "y", "\n", " ", "j", "k", "xx", "ss", "u", "/a\n", ":stop\n", ":release\n", "3", "1"]).prop_map(Told::Keys),
        5 => Just(Told::Typed),
        5 => prop::sample::select(vec![1i64, 100, 400, 800, 1600, 31_000]).prop_map(Told::Wait),
        1 => any::<bool>().prop_map(Told::Small),
        6 => Just(Told::Painted),
    ]
}

/// What one frame showed that could be begun.
#[derive(Clone, Debug, PartialEq)]
enum Frame {
    Plan(Box<Plan>),
    /// The row under the cursor, and what stop-or-start means for it.
    Row(Identity, providers::model::Action),
    Nothing,
}

fn painted(story: &Story) -> Frame {
    let view: &View = &story.state.view;
    if view.is_too_small() {
        return Frame::Nothing;
    }
    if let Some(question) = story.question() {
        let mut plan = question.plan.clone();
        plan.made_at = story.now;
        return Frame::Plan(plan);
    }
    let world = &story.state.world;
    let row = view.list().selected().and_then(|identity| world.fleet.instances.get(identity));
    row.map_or(Frame::Nothing, |known| {
        let phase = rentop::app::rows::shown_phase(known, world.operation_on(&known.identity));
        Frame::Row(known.identity.clone(), rentop::app::update::stop_or_start_of(phase))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Polls and keys in any order, some of them in bursts without a frame between: whatever is begun is what
    /// the last frame before it showed.
    #[test]
    fn what_is_begun_is_what_was_painted(told in prop::collection::vec(any_told(), 1..40)) {
        let mut story = Story::over(&["me"], "10:00:00");
        let tenant = |poll, id: &str| Poll { tenant: Reading::Known(Tenant { id: id.to_owned() }), ..poll };
        story.answer("me", tenant(listed(vec![running("a", "1"), running("b", "2"), stopped("c")]), "1"));
        let mut frame = painted(&story);
        for one in told {
            let before = story.state.world.operations.len();
            match one {
                Told::Poll(rows) => {
                    let mut list: Vec<Instance> = Vec::new();
                    for (id, up, rate, erases) in rows {
                        let (id, hourly) = (["a", "b", "c", "d"][id], format!("0.{rate}"));
                        let row = match (up, erases) {
                            (true, true) => scratch(id, &hourly),
                            (true, false) => running(id, &hourly),
                            _ => instance(id, Phase::Stopped, &hourly),
                        };
                        if list.iter().all(|other| other.id != row.id) {
                            list.push(row);
                        }
                    }
                    if story.account("me").pacing.in_flight.is_some() {
                        story.answer("me", tenant(listed(list), "1"));
                    }
                }
                Told::OtherTenant => {
                    if story.account("me").pacing.in_flight.is_some() {
                        story.answer("me", Poll { instances: Part::complete(vec![]), ..tenant(listed(vec![]), "2") });
                    }
                }
                Told::Keys(keys) => {
                    for c in keys.chars() {
                        if story.state.world.operations.len() > before {
                            break;
                        }
                        story.quick(if c == '\n' { Key::plain(Code::Enter) } else { Key::char(c) });
                        // What a key does is seen before the next; what a poll does may come with it.
                        if story.state.world.operations.len() == before {
                            frame = painted(&story);
                        }
                    }
                }
                Told::Typed => {
                    let typed = story.question().and_then(|question| match &question.plan.confirmation {
                        Confirmation::Typed(expected) => Some(expected.clone()),
                        Confirmation::Countdown | Confirmation::Save => None,
                    });
                    for c in typed.unwrap_or_default().chars() {
                        story.quick(Key::char(c));
                    }
                }
                Told::Wait(milliseconds) => {
                    story.wait_ms(milliseconds);
                    frame = painted(&story);
                }
                Told::Small(small) => {
                    story.resize(if small { 30 } else { 100 }, 30);
                    frame = painted(&story);
                }
                Told::Painted => {
                    story.screen();
                    frame = painted(&story);
                }
            }
            let begun: Vec<_> = story.state.world.operations.values().skip(before).cloned().collect();
            if begun.is_empty() {
                continue;
            }
            match &frame {
                Frame::Plan(plan) => {
                    let mut shown = plan.targets.clone();
                    let mut acted: Vec<_> = begun.iter().map(|operation| operation.target.clone()).collect();
                    for targets in [&mut shown, &mut acted] {
                        targets.sort_by(|a, b| a.identity.cmp(&b.identity));
                        targets.iter_mut().for_each(|target| target.as_of = None);
                    }
                    prop_assert_eq!(shown, acted);
                    prop_assert!(begun.iter().all(|operation| operation.action == plan.action));
                }
                Frame::Row(identity, deed) => {
                    prop_assert_eq!(begun.len(), 1);
                    prop_assert_eq!(&begun[0].target.identity, identity);
                    prop_assert_eq!(begun[0].action, *deed);
                    prop_assert_eq!(&begun[0].authority, &Authority::LosesNothing);
                }
                Frame::Nothing => prop_assert!(false, "nothing was shown that could be begun: {:?}", begun),
            }
            for operation in begun {
                let loses = operation.target.effect.loses_data();
                let typed = matches!(operation.authority, Authority::Typed(_));
                prop_assert!(typed || !loses, "{:?}", operation);
            }
            frame = painted(&story);
        }
    }
}

/// The clock is set back while a question waits: it can still be answered, or at least be left.
#[test]
fn a_clock_that_is_set_back_makes_no_key_deaf() {
    let mut story = Story::over(&["me"], "10:00:00");
    story.lists("me", vec![running("cheap", "1")]);
    story.lists("me", vec![running("cheap", "1"), running("dear", "9")]);
    story.now -= SignedDuration::from_hours(1);
    story.quick(Key::char('x'));
    story.shows("Release dear");
    assert_eq!(story.state.view.fleet.sort, SortName::Attention);
}

/// LIFE-04: names that look alike, equal names, empty names. The question tells which one it is, and one request goes
/// to one id.
#[rstest]
#[case("rp", "a1", "a1", &["train", "A1", ""])]
#[case("rp", "a2", "train-2", &["train", "train-"])]
#[case("va", "b1", "b1", &["train"])]
#[case("va", "b2", "b2", &[""])]
#[case("va", "b3", "b3", &["", " "])]
#[case("la", "c1", "c1", &["TRAIN"])]
#[case("la", "c2", "c2", &["train ", "train"])]
fn one_question_is_about_one_machine(
    #[case] account: &str,
    #[case] id: &str,
    #[case] typed: &str,
    #[case] wrong: &[&str],
) {
    let named = |id: &str, name: Option<&str>| Instance { name: name.map(str::to_owned), ..running(id, "1.25") };
    let mut story = Story::over(&["rp", "va", "la"], "10:00:00");
    story.lists("rp", vec![named("a1", Some("train")), named("a2", Some("train-2"))]);
    story.lists("va", vec![named("b1", Some("train")), named("b2", None), named("b3", Some(""))]);
    story.lists("la", vec![named("c1", Some("TRAIN")), named("c2", Some("train "))]);
    story.on(id).effects();
    story.press("x");
    story.shows(&format!("vast/{account} · {id} · 1× RTX 4090"));
    story.shows("$1.25/h");
    story.press("x");
    for wrong in wrong {
        story.press(wrong).press("\n");
        assert!(story.busy().is_empty(), "`{wrong}` was enough");
        story.key(Key::ctrl('u'));
    }
    story.press(typed).press("\n");
    story.found(Found::Instance(Box::new(named(id, story.row(account, id).row.name.as_deref()))));
    let permits = story.permits();
    assert_eq!(permits.iter().map(Permit::identity).collect::<Vec<_>>(), [&identity(account, id)]);
}
