//! What comes next for a row: where the action under way is, else what will happen to it by itself.

use providers::model::{Identity, Instance, Market, Phase, Remark};

use super::Columns;
use crate::app::action::Action as Meaning;
use crate::rules::fleet::Known;
use crate::rules::saga::{Operation, Step};
use crate::ui::format;
use crate::ui::paint::{Run, Runs, dim, plain, run, runs_width};
use crate::ui::scene::Scene;
use crate::ui::text::{OfUse, Phrase, Word};
use crate::ui::theme::Role;
use crate::ui::usage;

/// Where the action under way on a resource is, or that one has just been proven; `None` where nobody does anything.
pub(super) fn of_action(scene: &Scene, identity: &Identity) -> Option<Runs> {
    if let Some(operation) = scene.operation(identity) {
        return Some(vec![step(scene, operation)]);
    }
    let operation = scene.confirmed(identity)?;
    let text = scene.look.language.phrase(&Phrase::Confirmed { action: operation.action });
    Some(vec![run(format!("{} {text}", scene.look.glyphs.done), Role::Good)])
}

/// What will happen to a row by itself, the most urgent first.
pub(super) fn next_of(scene: &Scene, columns: &Columns, known: &Known<Instance>) -> Runs {
    let language = scene.look.language;
    if let Some(gone) = known.gone_at {
        return vec![dim(language.phrase(&Phrase::GoneSince { age: &scene.since(gone) }))];
    }
    if let Some(missing) = known.missing_since {
        let text = language.phrase(&Phrase::MissingSince { age: &scene.since(missing) });
        return vec![run(text, Role::Urgent)];
    }
    let alarms = scene.state.world.alarms(known);
    let remarked = known
        .row
        .remarks
        .iter()
        .find(|remark| matches!(remark, Remark::Outbid | Remark::BootFailed | Remark::StartQueued))
        .map(|remark| run(language.remark_short(*remark), remark_role(*remark)));
    let mut runs: Runs = alarms.iter().map(|alarm| run(usage::alarm_words(scene, alarm), Role::Urgent)).collect();
    runs.extend(remarked);
    if known.phase() == Phase::Unreachable && alarms.is_empty() {
        runs.extend(usage::unreached(scene, known));
    }
    // Where no curve gives room to it.
    let late = scene.usage(known).filter(|usage| !columns.spark && !usage.is_fresh(scene.now));
    if let Some(late) = late {
        runs.push(dim(language.of_use(OfUse::Old { age: &scene.since(late.as_of) })));
    }
    if let Some(ends) = known.row.ends_at {
        runs.push(plain(language.phrase(&Phrase::Ends { at: &scene.moment(ends) })));
    }
    match known.row.market {
        Market::Reserved { until: Some(until) } => {
            runs.push(dim(language.phrase(&Phrase::ReservedTo { at: &scene.moment(until) })));
        }
        Market::Reserved { until: None } => runs.push(dim(language.word(Word::Reserved))),
        Market::Spot if runs.is_empty() && known.phase() == Phase::Running => {
            runs.push(dim(language.word(Word::ReclaimAnyTime)));
        }
        Market::Spot | Market::OnDemand => {}
    }
    if runs.is_empty()
        && let Some(note) =
            known.row.note.as_deref().filter(|_| !matches!(known.row.phase, Phase::Running | Phase::Stopped))
    {
        runs.push(dim(note));
    }
    join(scene, runs)
}

/// What a remark means for the person.
pub fn remark_role(remark: Remark) -> Role {
    match remark {
        Remark::Outbid | Remark::BootFailed => Role::Urgent,
        Remark::StartQueued => Role::Waste,
        Remark::NoGpus | Remark::Locked | Remark::NothingSurvivesStop | Remark::StartTimeUnknown | Remark::NoApi => {
            Role::Plain
        }
    }
}

/// Puts separators between the parts.
fn join(scene: &Scene, parts: Runs) -> Runs {
    let mut out = Runs::new();
    for part in parts {
        if !out.is_empty() {
            out.push(dim(scene.look.language.word(Word::Comma)));
        }
        out.push(part);
    }
    out
}

/// A joined line without the parts that would be cut inside a figure: half a date says nothing.
pub fn whole_parts(scene: &Scene, mut runs: Runs, cells: u16, between: Word) -> Runs {
    let whole = runs_width(&runs);
    let comma = scene.look.language.word(between);
    let mark = scene.look.glyphs.ellipsis;
    while whole > cells
        && runs.last().is_some_and(|run| run.text.contains(|c: char| c.is_ascii_digit()))
        && let Some(at) = runs.iter().rposition(|run| run.text == comma)
    {
        runs.truncate(at);
        if runs_width(&runs) + format::width(comma) + format::width(mark) <= cells {
            runs.push(dim(format!("{comma}{mark}")));
            break;
        }
    }
    runs
}

/// Where an action is, in the words of a row.
pub fn step(scene: &Scene, operation: &Operation) -> Run {
    let language = scene.look.language;
    let role = match &operation.step {
        Step::Overdue { .. } => Role::Urgent,
        Step::Confirming { doubt: Some(_), .. } | Step::Verifying { .. } | Step::Waiting { .. } => Role::Waste,
        _ => Role::Accent,
    };
    run(language.phrase(&Phrase::Step { operation, now: scene.now, undo: &scene.key_of(Meaning::TakeBack) }), role)
}

/// Puts before it how old the row is.
pub(super) fn age_first(scene: &Scene, known: &Known<Instance>, next: &mut Runs) {
    let as_of = scene.account(&known.identity.account).and_then(|account| account.as_of);
    let Some(as_of) = as_of else { return };
    let age = plain(scene.look.language.phrase(&Phrase::Old { age: &scene.since(as_of) }));
    let rest = std::mem::take(next);
    next.push(age);
    if !rest.is_empty() {
        next.push(dim(scene.look.language.word(Word::Comma)));
        next.extend(rest);
    }
}
