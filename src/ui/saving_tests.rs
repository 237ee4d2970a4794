//! Checkpoints on the screen: offered by plans, under way, made; and leaving meanwhile.

use jiff::SignedDuration;
use providers::model::{Instance, Market, Offer, SshEndpoint};

use super::glyphs::ASCII;
use super::look::Look;
use super::testing::*;
use super::tests::check;
use super::text::Language;
use super::theme::{Background, Colours, Theme};
use crate::app::action::Code;
use crate::app::event::WorldEvent;
use crate::app::state::Modal;
use crate::rules::budgets::Scope;
use crate::rules::checkpoint::{
    CommandProof, KeepRule, Method, Progress, Proof, QUIET, Recipe, RecipeRule, Told, Trouble,
};
use crate::rules::plan::{Confirmation, SaveFirst};
use crate::rules::saga::OpId;
use crate::rules::streams;

const GB: u64 = 1_000_000_000;

fn recipe(paths: &[&str], method: Method) -> Recipe {
    let paths = paths.iter().map(|path| (*path).to_owned()).collect();
    Recipe { name: "results".to_owned(), paths, method, prepare: None, quiet: QUIET }
}

fn reached(mut row: Instance, host: &str) -> Instance {
    row.ssh = SshEndpoint::new("root", host, 22, true);
    row
}

/// Three machines: a spot one and a large one with results to keep, and one whose address nobody knows.
fn rows(story: &Story) -> Vec<Instance> {
    let now = story.now;
    let mut art = instance("14382011", "sd-lora", "RTX 4090", 1, usd("0.41"), usd("0.005"));
    art.market = Market::Spot;
    let large = instance("7xk2p0", "llama-ft", "H100 SXM", 8, usd("21.47"), usd("0.08"));
    let hidden = instance("c0ffee01", "eval", "A10", 1, usd("0.75"), usd("0"));
    let on = |mut row: Instance, users: &[&str]| {
        let usage = row.usage.as_mut().expect("it is busy");
        usage.users = Some(users.iter().map(|user| (*user).to_owned()).collect());
        row
    };
    vec![
        on(reached(busy(art, 0.0, 2, now), "203.0.113.7"), &[]),
        on(reached(busy(large, 0.97, 74, now), "203.0.113.8"), &["ana", "root"]),
        busy(hidden, 0.4, 8, now),
    ]
}

fn fleet_without_recipe() -> Story {
    let mut story = Story::over(&["vast/me"]);
    let rows = rows(&story);
    story.poll("me", rows).wait(4);
    story
}

fn fleet_with(recipe: Recipe) -> Story {
    let mut story = fleet_without_recipe();
    let rule = RecipeRule { recipe, scope: Scope::default(), every: None, keep: KeepRule::default() };
    story.state.world.recipes = vec![rule];
    story
}

fn fleet() -> Story {
    fleet_with(recipe(&["/workspace/out", "/data/logs"], Method::Copy { to: "/home/ana/checkpoints".to_owned() }))
}

/// What is told of the checkpoint on this row.
fn told(story: &mut Story, name: &str, told: Told) {
    let (op, number) = under_way(story, name);
    story.world(WorldEvent::Saving { op, number, told });
}

fn under_way(story: &Story, name: &str) -> (OpId, u64) {
    let mut all = story.state.world.under_way();
    let operation = all.find(|operation| operation.target.name == name).expect("something is under way");
    (operation.id, operation.saving.as_ref().expect("it has a checkpoint").number())
}

fn so_far(done: u64) -> Progress {
    Progress { files: 34, bytes: 12_400_000_000, done, rate: (done > 0).then_some(41_000_000) }
}

fn copying() -> Story {
    let mut story = fleet();
    story.at("sd-lora").press("RR").wait(4);
    told(&mut story, "sd-lora", Told::Done(so_far(0)));
    story.wait(160);
    told(&mut story, "sd-lora", Told::Sign(so_far(7_200_000_000)));
    story
}

fn proof(story: &Story) -> Proof {
    let folder = "/home/ana/checkpoints/vast-me/sd-lora-14382011/20261130T100005Z";
    Proof {
        at: story.now,
        files: 34,
        bytes: 12_400_000_000,
        left_out: 0,
        place: folder.to_owned(),
        manifest: "ab".to_owned(),
    }
}

/// A checkpoint without anything after it, three quarters of an hour ago.
fn saved() -> Story {
    let mut story = fleet();
    story.at("sd-lora").press("c").wait(4);
    told(&mut story, "sd-lora", Told::Done(so_far(0)));
    story.wait(300);
    told(&mut story, "sd-lora", Told::Done(so_far(12_400_000_000)));
    story.wait(60);
    let proof = proof(&story);
    told(&mut story, "sd-lora", Told::Verified(proof));
    story.now += SignedDuration::from_mins(45);
    let rows = rows(&story);
    story.poll("me", rows).wait(9);
    story
}

/// One of four states of a screen, with paths and places of any kind.
pub fn state(at: usize) -> Story {
    let nasty = [
        "/数据🦀/e\u{301}\u{200d}",
        "/a path\u{1b}[31m with blanks\u{202e}/and-a-very-long-name-without-any-0123456789",
    ];
    let mut story = fleet_with(recipe(&nasty, Method::Copy { to: nasty[1].to_owned() }));
    story.at("sd-lora");
    match at {
        0 => drop(story.press("R")),
        1 => drop(story.press(" ").at("llama-ft").press(" ").at("eval").press(" x")),
        _ => {
            story.press("RR").wait(4);
            told(&mut story, "sd-lora", Told::Done(so_far(0)));
            told(&mut story, "sd-lora", Told::Sign(Progress { done: u64::MAX, ..so_far(1) }));
        }
    }
    if at == 3 {
        told(&mut story, "sd-lora", Told::Failed(Trouble::Local(nasty.concat())));
        story.press("6");
    }
    story
}

/// TUI-10: a checkpoint under way is a sign and words also without colours and without Unicode.
#[test]
fn a_checkpoint_is_told_without_colours_and_unicode() {
    let look =
        Look { theme: Theme::new(Colours::None, Background::Light), glyphs: &ASCII, language: Language::English };
    let text = text_of(&copying().paint(80, 24, &look).0);
    for told in ["> ~   sd-lora", "copying ########......  58 %", "2 m left, then release", "llama-ft", "never"] {
        assert!(text.contains(told), "{told} is not on\n{text}");
    }
}

/// At 80 columns the keys that one needs most are all there.
#[test]
fn the_keys_that_are_needed_most_fit_80_columns() {
    for (language, keys) in [
        (Language::English, ["s stop", "x release", "R save+release", "I all idle", "/ filter", "? help"]),
        (Language::Chinese, ["s 停止", "x 释放", "R 保存并释放", "I 全部空闲", "/ 筛选", "? 帮助"]),
    ] {
        let mut story = fleet();
        story.at("sd-lora").wait(9);
        let idle = story.state.world.fleet.instances.keys().cloned().collect();
        story.state.world.fleet.idle = idle;
        let text = text_of(&story.paint(80, 24, &look(language)).0);
        let footer = text.lines().last().unwrap();
        assert!(keys.iter().all(|key| footer.contains(key)), "{footer}");
    }
}

#[test]
fn a_checkpoint_under_way() {
    let sizes = [(60, 16), (80, 24), (120, 30), (200, 50)];
    check("saving_copy", &sizes, copying);
    check("saving_verify", &[(80, 24)], || {
        let mut story = copying();
        told(&mut story, "sd-lora", Told::Done(so_far(12_400_000_000)));
        story.wait(3);
        told(&mut story, "sd-lora", Told::Sign(so_far(3_100_000_000)));
        story
    });
    check("saving_again", &[(80, 24), (120, 30)], || {
        let mut story = copying();
        told(&mut story, "sd-lora", Told::Failed(Trouble::Link(streams::Trouble::Ended)));
        story.wait(1);
        story
    });
    check("saving_lapsed", &[(80, 24)], || {
        let mut story = copying();
        story.now += SignedDuration::from_hours(8);
        let rows = rows(&story);
        story.poll("me", rows).wait(1);
        story
    });
    check("saving_several", &[(80, 24), (120, 30)], || {
        let mut story = copying();
        story.at("llama-ft").press("c").wait(2);
        story
    });
    check("saving_activity", &[(80, 24), (200, 50)], || {
        let mut story = copying();
        story.press("6").wait(1);
        story
    });
}

#[test]
fn a_checkpoint_that_was_made() {
    check("saved_row", &[(80, 24), (120, 30), (200, 50)], || {
        let mut story = saved();
        story.at("sd-lora");
        story
    });
    check("saved_activity", &[(80, 24)], || {
        let mut story = saved();
        story.press("6").wait(1);
        story
    });
    check("not_saved_activity", &[(80, 24)], || {
        let mut story = copying();
        told(&mut story, "sd-lora", Told::Failed(Trouble::NoRoom { need: 13 * GB, free: 2 * GB }));
        story.press("6").wait(9);
        story
    });
}

#[test]
fn plans_that_can_save_first() {
    let sizes = [(60, 16), (80, 24), (120, 30)];
    check("plan_or_save", &sizes, || {
        let mut story = saved();
        story.at("sd-lora").press("x").wait(1);
        story
    });
    check("plan_save", &sizes, || {
        let mut story = fleet();
        story.at("llama-ft").press("R").wait(1);
        story
    });
    check("plan_save_all_covered", &[(80, 24)], || {
        let method = Method::Command {
            run: "rclone copy /workspace remote:out".to_owned(),
            proof: CommandProof::Verify("rclone check /workspace remote:out".to_owned()),
        };
        let mut story = fleet_with(recipe(&["/workspace"], method));
        story.at("sd-lora").press("R").wait(1);
        story
    });
    check("plan_no_recipe", &[(80, 24)], || {
        let mut story = fleet_without_recipe();
        story.at("sd-lora").press("x").wait(1);
        story
    });
    check("plan_no_address", &[(80, 24)], || {
        let mut story = fleet();
        story.at("eval").press("x").wait(1);
        story
    });
    check("plan_save_many", &[(60, 16), (80, 24), (120, 30)], || {
        let mut story = fleet();
        story.at("sd-lora").press(" ").at("llama-ft").press(" ").at("eval").press(" R").wait(1);
        story
    });
    check("plan_save_some", &[(80, 24)], || {
        let mut story = fleet();
        story.at("sd-lora").press(" ").at("eval").press(" x").wait(1);
        story
    });
    check("plan_stop_erases", &[(80, 24)], || {
        let mut story = fleet_without_recipe();
        story.state.world.recipes = fleet().state.world.recipes;
        let mut rows = rows(&story);
        for row in &mut rows {
            let Offer::Yes(effect) = &mut row.offers.stop else { continue };
            effect.lost = std::mem::take(&mut effect.kept);
        }
        story.poll("me", rows).wait(1);
        story.at("sd-lora").press("s").wait(1);
        story
    });
}

fn asked(story: &Story) -> &Confirmation {
    match story.state.view.modals.last() {
        Some(Modal::Plan(question)) => &question.plan.confirmation,
        other => panic!("{other:?}"),
    }
}

/// One key turns the plan into the other one; neither begins anything by that.
#[test]
fn a_plan_is_turned_into_the_one_that_saves_and_back() {
    let mut story = fleet();
    story.at("sd-lora").press("x");
    assert!(matches!(asked(&story), Confirmation::Typed(_)));
    story.press("R");
    assert_eq!(asked(&story), &Confirmation::Save);
    story.press("x");
    assert!(matches!(asked(&story), Confirmation::Typed(_)));
    assert_eq!(story.state.world.under_way().count(), 0);
    story.press("xsd-lora").code(Code::Enter);
    let operation = story.state.world.under_way().next().expect("it was begun");
    assert_eq!((operation.saving.is_none(), operation.target.recipe.is_none()), (true, true));
}

/// What somebody chose by hand comes back with the key that turns the plan.
#[test]
fn chosen_paths_outlive_a_look_at_the_other_plan() {
    let mut story = fleet();
    story.at("sd-lora").press("R");
    let chosen = recipe(&["/root/results"], Method::Volume);
    if let Some(Modal::Plan(question)) = story.state.view.modals.last_mut() {
        question.save = SaveFirst::By(chosen.clone());
    }
    story.press("xRR");
    let operation = story.state.world.under_way().next().expect("it was begun");
    assert_eq!(operation.target.recipe.as_ref(), Some(&chosen));
}

/// TUI-07: a key that is held, and a yes by habit, begin nothing that loses what no copy holds.
#[test]
fn a_held_key_and_a_habit_begin_no_release() {
    let mut story = fleet();
    story.at("sd-lora").press("R");
    for milliseconds in [500, 30, 30, 30, 30] {
        story.now += SignedDuration::from_millis(milliseconds);
        story.key_at_once('R');
    }
    story.press("y").code(Code::Enter);
    assert_eq!(story.state.world.under_way().count(), 0);
    story.press("R");
    assert_eq!(story.state.world.under_way().count(), 1);
}

/// Where nothing can be saved the plan stays as it is, and the reason is said.
#[test]
fn a_plan_that_cannot_save_says_why() {
    for (mut story, name, told) in
        [(fleet_without_recipe(), "sd-lora", "[[checkpoint]]"), (fleet(), "eval", "address for ssh")]
    {
        story.at(name).press("xR");
        assert!(matches!(asked(&story), Confirmation::Typed(_)));
        let text = text_of(&story.paint(120, 30, &look(Language::English)).0);
        assert!(text.lines().last().is_some_and(|line| line.contains(told)), "{text}");
    }
}

#[test]
fn leaving_while_something_is_saved() {
    check("saving_leave", &[(60, 16), (80, 24)], || {
        let mut story = copying();
        story.press("q").wait(1);
        story
    });
}
