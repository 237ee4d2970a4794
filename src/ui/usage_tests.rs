//! Use, idleness and the streams to machines, as snapshots; and what the one question and a changed host key lead to.

use jiff::SignedDuration;
use providers::model::{Identity, Instance, Phase, SshEndpoint};
use providers::usage::{GpuProcess, GpuSample, Mount, Server, Usage, UsageSource};
use rstest::rstest;

use super::testing::*;
use super::tests::check;
use super::text::Language;
use crate::app::action::Code;
use crate::app::event::WorldEvent;
use crate::app::state::{Listener, Modal};
use crate::rules::memory::{Collector, Owner};
use crate::rules::streams::{Consent, Link, Told, Trouble};
use crate::rules::usage::{CardMinute, Flow, HostMinute, MINUTE, SLOT, Share, Slot, UsageEntry, Verdict};

fn reached(mut instance: Instance) -> Instance {
    instance.ssh = SshEndpoint::new("root", "192.0.2.7", 40022, true);
    instance
}

/// A look by the machine itself: so much use of each card, each with 80 GiB.
fn look_of(story: &Story, shares: &[f64]) -> Usage {
    let gpus = shares.iter().zip(0..).map(|(share, index)| GpuSample {
        index,
        model: Some("NVIDIA H100 80GB HBM3".to_owned()),
        utilization: Some(*share),
        memory_used_bytes: Some(if *share > 0.0 { 74 << 30 } else { 2 << 30 }),
        memory_total_bytes: Some(80 << 30),
        temperature_c: Some(40.0 + 30.0 * share),
        power_watts: Some(70.0 + 600.0 * share),
        power_limit_watts: Some(700.0),
        ..GpuSample::default()
    });
    let mount = |path: &str, used: u64| Mount { path: path.to_owned(), used_bytes: used << 30, total_bytes: 500 << 30 };
    let process = |gpu, name: &str, gib: u64| GpuProcess {
        gpu: Some(gpu),
        pid: 4100 + gpu,
        name: Some(name.to_owned()),
        memory_bytes: Some(gib << 30),
    };
    Usage {
        gpus: gpus.collect(),
        cpu: Some(0.01),
        memory: Some(0.12),
        disk_bytes_per_second: Some(12_000.0),
        network_bytes_per_second: Some(3_400_000.0),
        mounts: vec![mount("/", 80), mount("/workspace", 490)],
        users: Some(Vec::new()),
        processes: Some(vec![process(0, "python", 74)]),
        ..Usage::new(story.now, UsageSource::Ssh)
    }
}

fn identity(story: &Story, id: &str) -> Identity {
    let mut all = story.state.world.fleet.instances.keys();
    all.find(|identity| identity.id.as_str() == id).cloned().unwrap()
}

fn told(story: &mut Story, id: &str, told: Told) {
    let identity = identity(story, id);
    let number = story.state.world.streams.get(&identity).unwrap().number;
    story.world(WorldEvent::Stream { identity, number, told });
}

/// So much use of each card for so many minutes before now, in the ledger.
fn recalled(story: &mut Story, id: &str, minutes: i64, shares: &[f64], serves: bool) {
    let (identity, now) = (identity(story, id), story.now.as_second());
    let cards: Vec<CardMinute> = shares
        .iter()
        .map(|share| {
            let (used, memory) = (Share::of(*share), Share::of(0.025));
            let power = Share::of(0.1 + share * 0.8);
            CardMinute { peak: used, least: used, memory_low: memory, memory_high: memory, power }
        })
        .collect();
    let (cpu, quiet) = (Share::of(0.01), Flow::from(Some(1000.0)));
    let host = HostMinute { seen: true, whole: true, averaged_over: 1, serves, cpu, disk: quiet, network: quiet };
    let last = now.div_euclid(MINUTE * SLOT);
    let entry = |number| {
        let seen = if number == last { (1 << (now / MINUTE % SLOT)) - 1 } else { 0b11111 };
        let slot = Slot { number, seen, whole: seen, host, cards: cards.clone() };
        UsageEntry { identity: identity.clone(), slot, latest: None }
    };
    let entries = (last - minutes / SLOT..=last).map(entry).collect();
    story.world(WorldEvent::UsageRecalled { entries, rest: None, peaks: None });
}

/// One machine of each verdict, in an account that may be looked into, and one that nobody was asked about.
fn machines() -> Story {
    let mut story = Story::over(&["runpod/team", "lambda/lab"]);
    let eight = |id: &str, name: &str| reached(instance(id, name, "H100 SXM", 8, usd("21.47"), usd("0.08")));
    let one = |id: &str, name: &str| reached(instance(id, name, "H100 SXM", 1, usd("2.69"), usd("0.01")));
    let mut young = one("y1", "just-started");
    young.started_at = Some(story.now - SignedDuration::from_mins(4));
    let team = vec![
        eight("b1", "llama-ft"),
        one("i1", "sd-lora"),
        eight("u1", "sweep"),
        one("w1", "serve-llm"),
        young,
        one("n1", "untold"),
    ];
    story.poll("team", team);
    story.poll("lab", vec![one("l1", "pretrain"), one("l2", "infer")]);
    story.press("vy");
    story.wait(1);
    recalled(&mut story, "b1", 60, &[0.97; 8], false);
    recalled(&mut story, "i1", 220, &[0.0], false);
    recalled(&mut story, "u1", 60, &[0.9, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], false);
    recalled(&mut story, "w1", 90, &[0.0], true);
    for (id, shares) in [("b1", [0.97; 8].as_slice()), ("i1", &[0.0]), ("w1", &[0.0]), ("y1", &[0.0])] {
        let mut usage = look_of(&story, shares);
        if id == "w1" {
            usage.servers = vec![Server::Vllm];
        }
        // What flows is no work here.
        usage.network_bytes_per_second = Some(4_000.0);
        told(&mut story, id, Told::Usage(Box::new(usage)));
    }
    let usage = look_of(&story, &[0.88, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    told(&mut story, "u1", Told::Usage(Box::new(usage)));
    story.wait(1);
    story
}

#[test]
fn verdicts_stand_on_the_rows() {
    check("use", &[(60, 16), (80, 24), (120, 30), (200, 50)], || {
        let mut story = machines();
        story.at("sd-lora");
        story
    });
    let story = machines();
    let verdict = |id| story.state.world.idleness(&identity(&story, id)).unwrap().verdict;
    let ids = ["b1", "i1", "u1", "w1", "y1", "n1"];
    use Verdict::{Busy, Idle, NotYet, Underused, Unknown, Waiting};
    assert_eq!(ids.map(verdict), [Busy, Idle, Underused, Waiting, NotYet, Unknown]);
}

#[test]
fn eight_cards_are_a_grid() {
    check("use_of_eight", &[(80, 24), (120, 40), (200, 50)], || {
        let mut story = machines();
        story.at("sweep");
        story
    });
}

/// Sixteen cards, one of them lost.
#[test]
fn sixteen_cards_have_room_too() {
    check("use_of_sixteen", &[(80, 24), (120, 40)], || {
        let mut story = Story::over(&["runpod/team"]);
        story.poll("team", vec![reached(instance("a1", "big", "H100 SXM", 16, usd("43.00"), usd("0.08")))]);
        story.press("vy").wait(1);
        let mut usage = look_of(&story, &[0.9; 16]);
        usage.gpus[11] = GpuSample { index: 11, fault: Some("GPU is lost".to_owned()), ..GpuSample::default() };
        told(&mut story, "a1", Told::Usage(Box::new(usage)));
        story.wait(1);
        story.at("big");
        story
    });
}

#[test]
fn everything_about_a_machine_is_a_window() {
    check("machine", &[(60, 16), (80, 24), (120, 40)], || {
        let mut story = machines();
        story.at("sd-lora").press("w").code(Code::Enter);
        story
    });
}

/// The row under the cursor is acted on from its window, and no other.
#[test]
fn keys_of_a_row_work_in_its_window() {
    let mut story = machines();
    story.at("sd-lora").code(Code::Enter);
    assert_eq!(story.state.view.listener(), Listener::Machine);
    story.press("w");
    assert_eq!(story.state.view.listener(), Listener::Machine, "another span closes nothing");
    story.press("x");
    assert!(matches!(story.state.view.modals.last(), Some(Modal::Plan(plan)) if plan.asked.len() == 1));
}

#[rstest]
#[case::key_refused("link_refused", Trouble::KeyRefused)]
#[case::host_key("link_host_key", Trouble::HostKeyChanged)]
#[case::no_answer("link_no_answer", Trouble::NoAnswer)]
fn why_a_stream_ended_is_told(#[case] name: &str, #[case] trouble: Trouble) {
    check(name, &[(80, 24), (120, 30)], || {
        let mut story = machines();
        told(&mut story, "i1", Told::Ended(trouble.clone()));
        story.wait(1);
        story.at("sd-lora");
        story
    });
}

/// Of a machine that only its link can tell of, the link's trouble is all that there is to say.
#[test]
fn why_a_machine_over_ssh_does_not_answer_is_told() {
    let mut story = Story::over(&["ssh/own"]);
    let mut desk = reached(instance("desk", "desk", "H100 SXM", 1, usd("2.69"), usd("0.01")));
    desk.phase = Phase::Unreachable;
    story.poll("own", vec![desk]);
    story.press("va");
    told(&mut story, "desk", Told::Ended(Trouble::KeyRefused));
    story.wait(1);
    story.at("desk");
    let text = text_of(&story.paint(120, 30, &look(Language::English)).0);
    assert!(text.contains("ssh  key refused: add your public key"), "{text}");
    assert!(text.lines().any(|line| line.contains("no answer") && line.contains("key refused")));
    // Its id is its name: that is said once.
    assert!(text.contains(" desk  ssh/own   no answer"), "{text}");
}

/// Who is about to end a machine sees what it is doing, and who is on it.
#[rstest]
#[case::works("llama-ft", "use         busy: GPU 97 %", "logged in   root, mei")]
#[case::idles("sd-lora", "use         idle: GPU at 0 % for 3 h", "logged in   nobody")]
fn a_plan_says_what_would_be_ended(#[case] name: &str, #[case] does: &str, #[case] on: &str) {
    let mut story = machines();
    let mut usage = look_of(&story, &[0.97; 8]);
    usage.users = Some(vec!["root".to_owned(), "mei".to_owned()]);
    told(&mut story, "b1", Told::Usage(Box::new(usage)));
    story.wait(1);
    story.at(name).press("x");
    let text = text_of(&story.paint(80, 24, &look(Language::English)).0);
    assert!(text.contains(does) && text.contains(on), "{text}");
}

#[test]
fn fewer_cards_than_rented_need_somebody() {
    check("use_fewer", &[(80, 24), (120, 30)], || {
        let mut story = machines();
        let usage = look_of(&story, &[0.9; 7]);
        told(&mut story, "b1", Told::Usage(Box::new(usage)));
        story.wait(1);
        story.at("llama-ft");
        story
    });
}

/// Each account has its question; none takes the keys by itself.
#[test]
fn each_account_is_asked_about_once() {
    let mut story = Story::over(&["runpod/team", "lambda/lab"]);
    let machine = |id: &str| reached(instance(id, id, "H100 SXM", 1, usd("2.69"), usd("0.01")));
    story.poll("team", vec![machine("a1"), machine("a2")]);
    story.poll("lab", vec![machine("l1")]);
    story.wait(1);
    let asked = |story: &Story| story.state.view.unasked.as_ref().map(|(account, count)| (account.to_string(), *count));
    assert_eq!((asked(&story), story.state.view.listener()), (Some(("team".to_owned(), 2)), Listener::View));
    let text = text_of(&story.paint(120, 30, &look(Language::English)).0);
    assert!(text.contains("look into 2 machines of runpod/team over your own ssh, read-only?"), "{text}");

    // Habits are no answer.
    story.press("v").code(Code::Enter).press(" ");
    assert_eq!(story.state.view.listener(), Listener::Consent);
    story.press("N");
    assert_eq!(story.state.world.streams.consent(&"team".into()), Consent::Never);
    assert_eq!(story.state.world.streams.iter().count(), 0);
    assert_eq!(asked(&story), Some(("lab".to_owned(), 1)));
    story.press("vy");
    assert_eq!((asked(&story), story.state.world.streams.iter().count()), (None, 1));
    // Said once, it can be said otherwise.
    story.row("a1").press("va");
    assert_eq!(story.state.world.streams.consent(&"team".into()), Consent::Always);
}

#[test]
fn the_question_is_a_line_and_a_window() {
    let asking = || {
        let mut story = Story::over(&["runpod/team"]);
        let machine = reached(instance("a1", "llama-ft", "H100 SXM", 8, usd("21.47"), usd("0.08")));
        story.poll("team", vec![machine]).wait(1);
        story
    };
    check("consent_line", &[(60, 16), (80, 24), (120, 30)], asking);
    check("consent", &[(60, 16), (80, 24)], || {
        let mut story = asking();
        story.press("v");
        story
    });
}

#[test]
fn who_only_looks_on_asks_nothing() {
    let mut story = Story::over(&["runpod/team"]);
    story.poll("team", vec![reached(instance("a1", "llama-ft", "H100 SXM", 8, usd("21.47"), usd("0.08")))]);
    let owner = Owner { host: "desk".to_owned(), pid: 4127 };
    let until = story.now + SignedDuration::from_mins(1);
    story.world(WorldEvent::Collector(Collector::Other { owner, until })).wait(1);
    assert_eq!(story.state.view.unasked, None);
    story.press("v");
    assert_eq!(story.state.view.listener(), Listener::View);
}

/// Another host key is taken by a typed word alone.
#[test]
fn a_changed_host_key_wants_a_word() {
    let changed = || {
        let mut story = machines();
        told(&mut story, "i1", Told::Ended(Trouble::HostKeyChanged));
        story.wait(1);
        story.at("sd-lora").press("v");
        story
    };
    check("host_key", &[(60, 16), (80, 24)], changed);
    let mut story = changed();
    let down = |story: &Story| {
        let stream = story.state.world.streams.get(&identity(story, "i1")).unwrap();
        matches!(stream.link, Link::Down { .. })
    };
    for wrong in ["", "yes", "accep"] {
        story.press(wrong).code(Code::Enter);
        assert_eq!((story.state.view.listener(), down(&story)), (Listener::HostKey, true), "{wrong}");
        for _ in 0..wrong.len() {
            story.code(Code::Backspace);
        }
    }
    story.press("accept").code(Code::Enter);
    assert_eq!((story.state.view.listener(), down(&story)), (Listener::View, false));
}
