//! A checkpoint in words: under way in a row and in full, the last one that was made, and what the next one would take.

use jiff::{SignedDuration, Timestamp};
use providers::model::{Action, Identity};
use providers::money::Rate;
use rust_decimal::Decimal;

use super::format;
use super::paint::{Run, Runs, dim, plain, run, runs_width};
use super::scene::Scene;
use super::text::{OfSaving, Word};
use super::theme::Role;
use crate::rules::checkpoint::{Method, Progress, Recipe, Stage};
use crate::rules::saga::{Operation, Saving, Step};

/// Cells of a bar that still tells something, and of one that tells enough.
const BAR: [u16; 2] = [4, 14];
/// Cells of a share: `100 %`.
const SHARE: u16 = 5;

/// What an operation is doing of its checkpoint.
struct UnderWay<'a> {
    stage: Stage,
    /// It failed, and is tried again then.
    next_try: Option<Timestamp>,
    saving: &'a Saving,
    operation: &'a Operation,
}

impl<'a> UnderWay<'a> {
    fn of(operation: &'a Operation) -> Option<Self> {
        match (&operation.step, &operation.saving) {
            (Step::Saving { stage, next_try, .. }, Some(saving)) => {
                Some(UnderWay { stage: *stage, next_try: *next_try, saving, operation })
            }
            _ => None,
        }
    }

    /// Of the stages that count bytes, once there are any.
    fn progress(&self) -> Option<&'a Progress> {
        let progress = &self.saving.progress;
        (self.stage != Stage::Prepare && progress.bytes > 0).then_some(progress)
    }

    fn share(&self) -> Option<f64> {
        self.progress().map(|progress| (progress.done as f64 / progress.bytes as f64).min(1.0))
    }

    /// Until this stage is done, as it goes now.
    fn time_left(&self) -> Option<SignedDuration> {
        let progress = self.progress().filter(|_| self.next_try.is_none())?;
        let seconds = progress.bytes.saturating_sub(progress.done).checked_div(progress.rate?)?;
        Some(SignedDuration::from_secs(i64::try_from(seconds).ok()?))
    }

    /// `7.2 of 12.4 GB`, and how fast.
    fn figures(&self, scene: &Scene) -> Vec<String> {
        let Some(progress) = self.progress() else { return Vec::new() };
        let (part, whole) = (format::bytes_of(progress.done, progress.bytes), format::bytes(progress.bytes));
        let done = scene.look.language.of_saving(&OfSaving::Done { part: &part, whole: &whole });
        let flow = progress.rate.filter(|_| self.next_try.is_none()).map(|rate| format::flow(rate as f64));
        [Some(done), flow].into_iter().flatten().collect()
    }

    fn then(&self, scene: &Scene, briefly: bool) -> Option<Run> {
        let (stage, action, language) = (self.stage, self.operation.action, scene.look.language);
        if self.saving.lapsed && action != Action::Checkpoint {
            return Some(run(language.of_saving(&OfSaving::Lapsed { action }), Role::Waste));
        }
        let then = language.of_saving(&OfSaving::Then { stage, action, briefly });
        (!then.is_empty()).then(|| dim(then))
    }

    fn left(&self, scene: &Scene) -> Option<Run> {
        let language = scene.look.language;
        if let Some(at) = self.next_try {
            let seconds = format::seconds_left(at, scene.now);
            return Some(run(language.of_saving(&OfSaving::TriedAgain { seconds }), Role::Waste));
        }
        let time = format::span(self.time_left()?, language);
        Some(plain(language.of_saving(&OfSaving::TimeLeft { time: &time })))
    }
}

/// Where it is and how far, in the place of what the machine does; `None` when nothing of it is being saved.
pub fn doing_in_row(scene: &Scene, operation: &Operation, cells: u16) -> Option<Runs> {
    let under_way = UnderWay::of(operation)?;
    let language = scene.look.language;
    if let (Some(_), Some(trouble)) = (under_way.next_try, &under_way.saving.trouble) {
        return Some(vec![run(language.save_trouble(trouble), Role::Waste)]);
    }
    let mut runs = vec![run(language.of_saving(&OfSaving::At(under_way.stage)), Role::Accent)];
    let Some(share) = under_way.share() else { return Some(runs) };
    let told = format::percent(share);
    let fixed = runs_width(&runs) + 1 + SHARE;
    let Some(for_bar) = cells.checked_sub(fixed + 1).filter(|room| *room >= BAR[0]) else {
        runs.push(plain(format!(" {told}")));
        return Some(runs);
    };
    let mut figures = under_way.figures(scene);
    let wanted = |figures: &[String]| figures.iter().map(|figure| format::width(figure) + 2).sum::<u16>();
    while wanted(&figures) + BAR[0] > for_bar {
        figures.pop();
    }
    let bar = bar(scene, share, (for_bar - wanted(&figures)).min(BAR[1]));
    runs.extend([run(format!(" {bar}"), Role::Accent), plain(format!(" {told:>5}"))]);
    runs.extend(figures.into_iter().map(|figure| plain(format!("  {figure}"))));
    Some(runs)
}

/// How long it takes still and what follows, in as many words as have room.
pub fn next_in_row(scene: &Scene, operation: &Operation, cells: u16) -> Option<Runs> {
    let under_way = UnderWay::of(operation)?;
    let comma = || dim(scene.look.language.word(Word::Comma));
    let left = under_way.left(scene);
    let with = |then: Option<Run>| match (left.clone(), then) {
        (Some(left), Some(then)) => vec![left, comma(), then],
        (left, then) => left.into_iter().chain(then).collect(),
    };
    let ways = [with(under_way.then(scene, false)), with(under_way.then(scene, true)), with(None)];
    let fits = ways.iter().find(|way| runs_width(way) <= cells);
    fits.or(ways.first()).cloned()
}

fn bar(scene: &Scene, share: f64, cells: u16) -> String {
    let glyphs = scene.look.glyphs;
    let full = (share * f64::from(cells)) as usize;
    glyphs.bar_full.repeat(full) + &glyphs.bar_empty.repeat(usize::from(cells).saturating_sub(full))
}

/// All about a checkpoint that is under way, or what an action made of its own.
pub fn in_full(scene: &Scene, operation: &Operation) -> Vec<Runs> {
    let Some(saving) = &operation.saving else { return Vec::new() };
    let language = scene.look.language;
    let mut lines = Vec::new();
    if let Some(under_way) = UnderWay::of(operation) {
        lines.push(progress_line(scene, &under_way));
        if let Some(trouble) = &saving.trouble {
            let text = format!("{} {}", scene.look.glyphs.needs_you, language.save_trouble(trouble));
            lines.push(vec![run(text, Role::Waste)]);
        }
    }
    if let Some(proof) = &saving.proof {
        let (bytes, files) = (format::bytes(proof.bytes), proof.files);
        lines.push(vec![run(language.of_saving(&OfSaving::Made { bytes: &bytes, files }), Role::Good)]);
        lines.push(vec![plain(&proof.place)]);
        if proof.left_out > 0 {
            lines.push(vec![run(language.of_saving(&OfSaving::NotIn { files: proof.left_out }), Role::Waste)]);
        }
    } else if let Some(recipe) = &operation.target.recipe {
        let recipe = below(recipe, &saving.folder);
        let paths = language.of_saving(&OfSaving::Paths { recipe: &recipe });
        lines.push(vec![dim(format!("{}  ", language.word(Word::SavesPaths))), plain(paths)]);
    }
    if let Some(under_way) = UnderWay::of(operation) {
        lines.extend(meanwhile(scene, &under_way));
    }
    lines
}

fn progress_line(scene: &Scene, under_way: &UnderWay) -> Runs {
    let language = scene.look.language;
    let mut line = vec![run(language.of_saving(&OfSaving::At(under_way.stage)), Role::Accent)];
    if let Some(share) = under_way.share() {
        let told = format::percent(share);
        line.extend([run(format!("  {}", bar(scene, share, BAR[1])), Role::Accent), plain(format!(" {told:>5}"))]);
    }
    let figures = under_way.figures(scene).into_iter().map(plain);
    for part in figures.chain(under_way.left(scene)).chain(under_way.then(scene, false)) {
        line.push(run(format!("  {}", part.text), part.role));
    }
    line
}

/// What the machine costs while it is saved.
fn meanwhile(scene: &Scene, under_way: &UnderWay) -> Option<Runs> {
    let language = scene.look.language;
    let rates = &under_way.operation.target.before;
    let rate = format::rates(rates, scene.currency(), scene.look)?;
    let so_far = costs(scene, rates, scene.now.duration_since(under_way.operation.began_at))?;
    let more = under_way.time_left().and_then(|time| costs(scene, rates, time));
    let told = language.of_saving(&OfSaving::Meanwhile { rate: &rate, so_far: &so_far, more: more.as_deref() });
    Some(vec![dim(format!("{}  ", language.word(Word::Meanwhile))), plain(told)])
}

/// What these rates come to in a time; `None` where nothing is charged.
fn costs(scene: &Scene, rates: &[Rate], time: SignedDuration) -> Option<String> {
    let hours = Decimal::from(time.as_secs().max(0)) / Decimal::from(3600);
    let sums: Vec<String> = format::in_order(rates, scene.currency())
        .into_iter()
        .filter_map(|rate| rate.over_hours(hours))
        .map(|money| format::spent_money(money.amount, money.currency, scene.look.glyphs))
        .collect();
    (!sums.is_empty()).then(|| sums.join(" + "))
}

/// The same recipe, into the very folder of one copy.
fn below(recipe: &Recipe, folder: &str) -> Recipe {
    let mut recipe = recipe.clone();
    if let Method::Copy { to } = &mut recipe.method {
        *to = format!("{}/{folder}", to.trim_end_matches('/'));
    }
    recipe
}

/// How old the last verified checkpoint of a resource is and what it holds; `None` where there is none.
pub fn last(scene: &Scene, identity: &Identity) -> Option<String> {
    let saved = scene.state.world.saved.get(identity)?;
    let (age, bytes) = (scene.since(saved.proof.at), format::bytes(saved.proof.bytes));
    Some(scene.look.language.of_saving(&OfSaving::Last { age: &age, bytes: &bytes, files: saved.proof.files }))
}

/// Where it is.
pub fn place<'a>(scene: &Scene<'a>, identity: &Identity) -> Option<&'a str> {
    scene.state.world.saved.get(identity).map(|saved| saved.proof.place.as_str())
}

/// What the last one took, as far as that is known: bytes, time, and what the machine costs in such a time.
pub fn last_time(scene: &Scene, identity: &Identity, rates: &[Rate]) -> Option<String> {
    let world = &scene.state.world;
    let saved = world.saved.get(identity)?;
    let bytes = format::bytes(saved.proof.bytes);
    let took = world.operations.get(&saved.op).map(|operation| saved.proof.at.duration_since(operation.began_at));
    let costs = took.and_then(|took| costs(scene, rates, took));
    let took = took.map(|took| format::span(took, scene.look.language));
    let last = OfSaving::LastTime { bytes: &bytes, took: took.as_deref(), costs: costs.as_deref() };
    Some(scene.look.language.of_saving(&last))
}
