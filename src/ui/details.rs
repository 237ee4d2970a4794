//! More about the line under the cursor: below the list, or at the side where there is room.

use providers::model::{
    AccountName, Action, DataKind, DataPlace, Effect, Instance, Market, Offer, Phase, Rates, ResourceId, ResourceKind,
    Risk, StorageItem,
};
use providers::money::{Burn, Money, Rate};
use providers::usage::GpuSample;
use ratatui::layout::Rect;

use super::fleet;
use super::format;
use super::header;
use super::language::Language;
use super::paint::{Paint, Run, Runs, dim, plain, run, runs_width, wrap};
use super::scene::{Scene, name_of};
use super::text::{Phrase, Word};
use super::theme::Role;
use crate::app::action::Action as Meaning;
use crate::app::listing::Line;
use crate::app::rows::{self, GroupKey};
use crate::app::update::stop_or_start_of;
use crate::rules::fleet::Known;
use crate::rules::runway;
use crate::rules::saga::Operation;
use crate::rules::spend::Exact;

/// Cells of a GPU's bar.
const BAR: usize = 8;
/// Key and name of an action stand in so many cells.
const ACTION_CELLS: u16 = 11;
/// Cells of one GPU's figures, its bar with them.
const GPU_CELLS: u16 = 48;

/// Below the list: a rule and few lines.
pub fn below(paint: &mut Paint, scene: &Scene, area: Rect) {
    let room = Rect::new(area.x + 1, area.y + 1, area.width.saturating_sub(2), area.height.saturating_sub(1));
    let rows = usize::from(room.height);
    let lines = match subject(scene) {
        Subject::Nothing => return,
        Subject::Instance(known) => instance_below(scene, known, room.width, rows),
        Subject::Group(key) => group_lines(scene, key),
        Subject::Storage(known) => super::storage::details(scene, known),
        Subject::Operation(operation) => super::activity::operation_lines(scene, operation),
    };
    paint.rule(area.x, area.y, area.width);
    for (row, line) in lines.iter().take(rows).enumerate() {
        paint.runs(room.x, room.y + row as u16, room.width, line);
    }
}

/// At the side: everything, a line each.
pub fn side(paint: &mut Paint, scene: &Scene, area: Rect) {
    paint.upright(area.x, area.y, area.height);
    let room = Rect::new(area.x + 2, area.y, area.width.saturating_sub(3), area.height);
    let lines = match subject(scene) {
        Subject::Nothing => return,
        Subject::Instance(known) => instance_side(scene, known, room.width),
        Subject::Group(key) => group_lines(scene, key),
        Subject::Storage(known) => super::storage::details(scene, known),
        Subject::Operation(operation) => super::activity::operation_lines(scene, operation),
    };
    let wrapped = lines.iter().flat_map(|line| wrap(line, room.width, 2));
    for (row, line) in wrapped.take(usize::from(room.height)).enumerate() {
        paint.runs(room.x, room.y + row as u16, room.width, &line);
    }
}

enum Subject<'a> {
    Nothing,
    Instance(&'a Known<Instance>),
    Group(&'a GroupKey),
    Storage(&'a Known<StorageItem>),
    Operation(&'a Operation),
}

fn subject<'a>(scene: &Scene<'a>) -> Subject<'a> {
    let fleet = &scene.state.world.fleet;
    match &scene.state.view.list().cursor {
        Some(Line::Resource(identity)) => match identity.kind {
            ResourceKind::Instance => fleet.instances.get(identity).map_or(Subject::Nothing, Subject::Instance),
            ResourceKind::Storage => fleet.storage.get(identity).map_or(Subject::Nothing, Subject::Storage),
        },
        Some(Line::Group(key)) => Subject::Group(key),
        Some(Line::Operation(op)) => scene.state.world.operations.get(op).map_or(Subject::Nothing, Subject::Operation),
        Some(Line::Spend(_)) | None => Subject::Nothing,
    }
}

fn instance_below(scene: &Scene, known: &Known<Instance>, width: u16, rows: usize) -> Vec<Runs> {
    let mut lines = vec![title(scene, known), separated(scene, facts(scene, known))];
    let actions = [first_action(scene, known), Action::Release].map(|action| action_line(scene, known, action));
    // A row for the cost and one for each action are kept free whatever comes before.
    let room = rows.saturating_sub(lines.len() + 1 + actions.len());
    let mut gpus = gpu_lines(scene, known, width);
    let mut host = host_line(scene, known);
    if gpus.len() > room {
        gpus = gpu_summary(scene, known).into_iter().collect();
    }
    match gpus.as_mut_slice() {
        // Beside a single line there is room.
        [only] if !host.is_empty() && runs_width(only) + runs_width(&host) + 4 <= width => {
            only.push(plain("    "));
            only.append(&mut host);
        }
        _ => {}
    }
    // What an action does goes before how busy its host is.
    let wanted: usize = actions.iter().map(|action| wrap(action, width, ACTION_CELLS).len()).sum();
    if !host.is_empty() && gpus.len() < room && lines.len() + gpus.len() + 2 + wanted <= rows {
        gpus.push(host);
    }
    lines.extend(gpus.into_iter().take(room));
    let mut cost = costs(scene, known);
    let mut spent = spent(scene, known).unwrap_or_default();
    if !spent.is_empty() && runs_width(&cost) + runs_width(&spent) + 4 <= width {
        cost.push(plain("    "));
        cost.append(&mut spent);
    }
    lines.push(cost);
    if !spent.is_empty() && lines.len() + wanted < rows {
        lines.push(spent);
    }
    let mut spare = rows.saturating_sub(lines.len() + actions.len());
    for action in actions {
        let mut wrapped = wrap(&action, width, ACTION_CELLS);
        let taken = (wrapped.len() - 1).min(spare);
        if taken + 1 < wrapped.len() {
            // What has no room is cut in its last line, with a mark.
            let rest = wrapped.split_off(taken);
            wrapped.push(one_line(rest));
        }
        spare -= taken;
        lines.extend(wrapped);
    }
    lines
}

/// Wrapped lines as one again, their indents taken away.
fn one_line(lines: Vec<Runs>) -> Runs {
    let mut out = Runs::new();
    for mut line in lines {
        if !out.is_empty() {
            while let Some(first) = line.first_mut() {
                first.text.drain(..first.text.len() - first.text.trim_start().len());
                if !first.text.is_empty() {
                    break;
                }
                line.remove(0);
            }
            out.push(plain(" "));
        }
        out.append(&mut line);
    }
    out
}

fn instance_side(scene: &Scene, known: &Known<Instance>, width: u16) -> Vec<Runs> {
    let language = scene.look.language;
    let mut lines = vec![vec![run(name_of(known), Role::Strong)]];
    lines.push(vec![dim(format!("{}  {}", scene.account_title(&known.identity.account), known.row.id))]);
    lines.push(Runs::new());
    lines.extend(facts(scene, known).into_iter().map(|fact| vec![fact]));
    if let Some(project) = rows::project_of(&scene.state.world, known) {
        lines.push(labelled(scene, Word::Project, vec![plain(project)]));
    }
    if let Some(ssh) = &known.row.ssh {
        lines.push(labelled(scene, Word::Ssh, vec![plain(ssh.place())]));
    }
    if !known.row.labels.is_empty() {
        let labels: Vec<String> = known.row.labels.iter().map(|(label, value)| format!("{label}={value}")).collect();
        lines.push(labelled(scene, Word::Labels, vec![plain(labels.join(" "))]));
    }
    let gpus = gpu_lines(scene, known, width.min(GPU_CELLS));
    if !gpus.is_empty() {
        lines.push(Runs::new());
        lines.extend(gpus);
        lines.push(host_line(scene, known));
    }
    lines.push(Runs::new());
    lines.push(total_cost(scene, known));
    for line in &known.row.rates.lines {
        let mut parts = vec![
            dim(format!("  {}  ", language.component(line.component))),
            plain(format::rate(line.rate, scene.look)),
        ];
        parts.extend(rate_remark(scene, line.estimated, line.certain));
        lines.push(parts);
    }
    if !known.row.rates.complete {
        lines.push(vec![dim(format!("  {}", language.word(Word::PartUnknown)))]);
    }
    if let Some(spent) = spent(scene, known) {
        lines.extend(wrap(&spent, width, 2));
    }
    for action in [first_action(scene, known), Action::Release] {
        lines.push(Runs::new());
        let (head, parts) = action_parts(scene, known, action);
        lines.push(head);
        lines.extend(parts.into_iter().map(|part| [vec![plain("  ")], part].concat()));
    }
    lines
}

pub fn labelled(scene: &Scene, word: Word, mut runs: Runs) -> Runs {
    runs.insert(0, dim(format!("{}  ", scene.look.language.word(word))));
    runs
}

/// Name, account and id.
fn title(scene: &Scene, known: &Known<Instance>) -> Runs {
    vec![
        run(name_of(known), Role::Strong),
        dim(format!("  {}  {}", scene.account_title(&known.identity.account), known.row.id)),
    ]
}

/// What it is and how it is, each fact by itself.
fn facts(scene: &Scene, known: &Known<Instance>) -> Vec<Run> {
    let language = scene.look.language;
    let phase = scene.phase(known);
    let mut state = language.phase(phase).to_owned();
    let said = known.row.provider_phase.as_deref().filter(|said| !said.eq_ignore_ascii_case(phase.word()));
    if let Some(said) = said {
        state.push_str(&format!(" ({said})"));
    }
    let role = scene.phase_sign(known).role;
    let mut facts = vec![run(state, role)];
    match known.row.market {
        Market::OnDemand => {}
        Market::Spot => facts.push(plain(language.word(Word::Spot))),
        Market::Reserved { until: Some(until) } => {
            facts.push(plain(language.phrase(&Phrase::ReservedTo { at: &scene.moment(until) })));
        }
        Market::Reserved { until: None } => facts.push(plain(language.word(Word::Reserved))),
    }
    if let Some(region) = &known.row.region {
        facts.push(plain(region));
    }
    if let Some(started) = known.row.started_at.filter(|_| phase == Phase::Running) {
        let started = scene.state.world.fleet.here(&known.identity.account, started);
        let up = format::span(scene.now.duration_since(started), language);
        facts.push(plain(language.phrase(&Phrase::UpFor { time: &up })));
    }
    if let Some(ends) = known.row.ends_at {
        facts.push(plain(language.phrase(&Phrase::Ends { at: &scene.moment(ends) })));
    }
    if let Some(repricing) = &known.row.repricing {
        let ends = repricing.ends_at.map(|at| scene.moment(at));
        let [rate, asked] = [repricing.rate, repricing.asked].map(|rate| format::rate(rate, scene.look));
        let phrase = Phrase::Repricing { rate: &rate, asked: &asked, ends: ends.as_deref() };
        facts.push(run(language.phrase(&phrase), Role::Waste));
    }
    if scene.is_protected(known) {
        facts.push(run(language.word(Word::Protected), Role::Accent));
    }
    if !scene.is_mine(known) {
        facts.push(dim(language.word(Word::NotMine)));
    }
    facts.extend(known.row.remarks.iter().map(|remark| run(language.remark(*remark), fleet::remark_role(*remark))));
    // "Rented by user" and the like say nothing about a machine that runs.
    facts.extend(known.row.note.iter().filter(|_| known.row.phase != Phase::Running).map(dim));
    if let Some(as_of) = scene.account(&known.identity.account).and_then(|account| account.as_of)
        && scene.is_old(&known.identity.account)
    {
        facts.push(plain(language.phrase(&Phrase::Old { age: &scene.since(as_of) })));
    }
    facts
}

pub fn separated(scene: &Scene, parts: Vec<Run>) -> Runs {
    let mut out = Runs::new();
    for part in parts {
        if !out.is_empty() {
            out.push(dim(format!(" {} ", scene.look.glyphs.dot)));
        }
        out.push(part);
    }
    out
}

/// A bar and figures for each GPU, as many a line as fit.
fn gpu_lines(scene: &Scene, known: &Known<Instance>, width: u16) -> Vec<Runs> {
    let language = scene.look.language;
    let Some(usage) = known.row.usage.as_ref().filter(|_| scene.phase(known) == Phase::Running) else {
        return Vec::new();
    };
    let per_line = usize::from((width / GPU_CELLS).max(1));
    let label = |gpu: &GpuSample| match usage.averaged {
        true => language.word(Word::AllGpus).to_owned(),
        false => format!("GPU {}", gpu.index),
    };
    usage
        .gpus
        .chunks(per_line)
        .map(|gpus| {
            let mut line = Runs::new();
            for gpu in gpus {
                let used = runs_width(&line);
                let start = used.next_multiple_of(GPU_CELLS);
                line.push(plain(" ".repeat(usize::from(start - used))));
                line.extend(gpu_figures(scene, gpu, &label(gpu)));
            }
            line
        })
        .collect()
}

/// All GPUs in one line: a bar for each, then mean, range and sums.
fn gpu_summary(scene: &Scene, known: &Known<Instance>) -> Option<Runs> {
    let (language, glyphs) = (scene.look.language, scene.look.glyphs);
    let usage = known.row.usage.as_ref()?;
    let mut runs = vec![dim(format!("{} GPU ", usage.gpus.len()))];
    for gpu in usage.gpus.iter().take(16) {
        runs.push(match gpu.utilization {
            Some(share) => dim(glyphs.height(share)),
            None => dim(glyphs.dash),
        });
    }
    if let Some(mean) = usage.mean_utilization() {
        let known = usage.gpus.iter().filter_map(|gpu| gpu.utilization);
        let (least, most) = known.fold((f64::MAX, f64::MIN), |(least, most), one| (least.min(one), most.max(one)));
        let (least, most) = (format::percent(least), format::percent(most));
        runs.push(plain(format!("  {}", format::percent(mean))));
        if least != most {
            let range = language.phrase(&Phrase::Range { from: &least, to: &most });
            runs.push(dim(format!(" ({range})")));
        }
    }
    let sum = |figure: fn(&GpuSample) -> Option<u64>| {
        let figures: Option<Vec<u64>> = usage.gpus.iter().map(figure).collect();
        figures.map(|figures| figures.iter().fold(0, |sum: u64, one| sum.saturating_add(*one)))
    };
    if let (Some(used), Some(total)) = (sum(|gpu| gpu.memory_used_bytes), sum(|gpu| gpu.memory_total_bytes)) {
        runs.push(plain(format!("  {}/{} G", format::gib(used), format::gib(total))));
    }
    let power: Option<Vec<f64>> = usage.gpus.iter().map(|gpu| gpu.power_watts).collect();
    if let Some(power) = power.map(|watts| watts.iter().sum::<f64>()).filter(|watts| watts.is_finite()) {
        runs.push(plain(format!("  {power:.0} W")));
    }
    Some(runs)
}

/// Use of the machine around the GPUs, and how old all of it is.
fn host_line(scene: &Scene, known: &Known<Instance>) -> Runs {
    let language = scene.look.language;
    let Some(usage) = known.row.usage.as_ref().filter(|_| scene.phase(known) == Phase::Running) else {
        return Runs::new();
    };
    let mut host = Vec::new();
    if let Some(cpu) = usage.cpu {
        host.push(plain(format!("CPU {}", format::percent(cpu))));
    }
    if let Some(memory) = usage.memory {
        host.push(plain(format!("{} {}", language.word(Word::MainMemory), format::percent(memory))));
    }
    if scene.now.duration_since(usage.as_of).as_secs() > 60 {
        host.push(dim(language.phrase(&Phrase::Old { age: &scene.since(usage.as_of) })));
    }
    separated(scene, host)
}

fn gpu_figures(scene: &Scene, gpu: &GpuSample, label: &str) -> Runs {
    let glyphs = scene.look.glyphs;
    let mut runs = vec![dim(format!("{label} "))];
    match gpu.utilization {
        Some(share) => {
            let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
            let full = (share * BAR as f64).round() as usize;
            runs.push(run(glyphs.bar_full.repeat(full), Role::Dim));
            runs.push(run(glyphs.bar_empty.repeat(BAR - full), Role::Rule));
            runs.push(plain(format!(" {:>5}", format::percent(share))));
        }
        None => runs.push(dim(format!("{} {:>5}", " ".repeat(BAR), glyphs.dash))),
    }
    if let Some(used) = gpu.memory_used_bytes {
        let of = gpu.memory_total_bytes.map(|total| format!("/{}", format::gib(total))).unwrap_or_default();
        runs.push(plain(format!("  {}{of} G", format::gib(used))));
    }
    if let Some(temperature) = gpu.temperature_c.filter(|degrees| degrees.is_finite()) {
        runs.push(plain(format!("  {temperature:.0} {}", glyphs.degree)));
    }
    if let Some(power) = gpu.power_watts.filter(|watts| watts.is_finite()) {
        runs.push(plain(format!("  {power:.0} W")));
    }
    runs
}

fn total_cost(scene: &Scene, known: &Known<Instance>) -> Runs {
    let language = scene.look.language;
    let rates = known.rates();
    let mut runs = vec![dim(format!("{}  ", language.word(Word::Costs)))];
    match scene.total(&rates.upper(), !rates.complete) {
        Some(total) => runs.push(run(total, Role::Strong)),
        None if rates.complete => runs.push(plain(language.word(Word::Nothing))),
        None => runs.push(dim(language.word(Word::Unknown))),
    }
    if matches!(known.row.market, Market::Reserved { .. }) {
        runs.push(dim(format!("  {}", language.word(Word::PaidAhead))));
    }
    runs
}

/// What it cost so far; `None` before the books have answered.
fn spent(scene: &Scene, known: &Known<Instance>) -> Option<Runs> {
    let language = scene.look.language;
    let row = scene.state.world.spending.row_beside_totals(&known.identity)?;
    let whole = format::sums(&row.rental, scene);
    let mut runs = vec![dim(format!("{}  ", language.word(Word::SpentSoFar)))];
    match row.since {
        Some(since) => {
            runs.push(plain(language.phrase(&Phrase::SpentSince { money: &whole, at: &scene.moment(since) })))
        }
        None => runs.push(plain(whole)),
    }
    let day = scene.state.world.spending.tally.day();
    if let Some(month) = day.map(|day| day.month()) {
        let of_month = format::sums(&row.month, scene);
        runs.push(dim(language.word(Word::Comma)));
        runs.push(plain(language.phrase(&Phrase::InMonth { month, money: &of_month })));
    }
    for (currency, amounts) in &row.rental.0 {
        let money = |amount: Exact| format::money(Money::new(amount.amount(), *currency), scene.look.glyphs);
        if !amounts.assumed.is_zero() {
            runs.push(dim(language.word(Word::Comma)));
            runs.push(dim(language.phrase(&Phrase::OfItAssumed { money: &money(amounts.assumed) })));
        }
        if !amounts.possible.is_zero() {
            runs.push(dim(language.word(Word::Comma)));
            runs.push(dim(language.phrase(&Phrase::PerhapsMore { money: &money(amounts.possible) })));
        }
    }
    Some(runs)
}

/// Why it costs what it costs, in one line.
fn costs(scene: &Scene, known: &Known<Instance>) -> Runs {
    let language = scene.look.language;
    let mut runs = total_cost(scene, known);
    let lines = &known.row.rates.lines;
    if lines.is_empty() || known.is_gone() {
        return runs;
    }
    let mut parts = Vec::new();
    for line in lines {
        let name = language.component(line.component);
        let remark: String = rate_remark(scene, line.estimated, line.certain).into_iter().map(|run| run.text).collect();
        parts.push(plain(format!("{name} {}{remark}", format::bare_rate(line.rate, scene.look.glyphs))));
    }
    if !known.row.rates.complete {
        parts.push(dim(language.word(Word::PartUnknown)));
    }
    runs.push(dim("   "));
    runs.extend(separated(scene, parts));
    runs
}

fn rate_remark(scene: &Scene, estimated: bool, certain: bool) -> Vec<Run> {
    let language = scene.look.language;
    let mut remarks = Vec::new();
    if estimated {
        remarks.push(dim(format!(" {}", language.word(Word::Estimated))));
    }
    if !certain {
        remarks.push(dim(format!(" {}", language.word(Word::Perhaps))));
    }
    remarks
}

/// What `s` means for a row.
pub fn first_action(scene: &Scene, known: &Known<Instance>) -> Action {
    stop_or_start_of(scene.phase(known))
}

fn action_line(scene: &Scene, known: &Known<Instance>, action: Action) -> Runs {
    let (mut head, parts) = action_parts(scene, known, action);
    let used = runs_width(&head);
    head.push(plain(" ".repeat(usize::from(ACTION_CELLS.saturating_sub(used).max(2)))));
    for (at, part) in parts.into_iter().enumerate() {
        if at > 0 {
            head.push(dim(scene.look.language.word(Word::Semicolon)));
        }
        head.extend(part);
    }
    head
}

/// The key and the action, then what it would do: saves, goes on, lost, kept, risks; or why it cannot be had.
fn action_parts(scene: &Scene, known: &Known<Instance>, action: Action) -> (Runs, Vec<Runs>) {
    let language = scene.look.language;
    let key = scene.key_of(if action == Action::Release { Meaning::End } else { Meaning::StopOrStart });
    let hindrance = scene.hindrance(known, action);
    let key_role = if hindrance.is_some() { Role::Dim } else { Role::Accent };
    let head = vec![run(key, key_role), run(format!(" {}", language.action(action)), key_role)];
    if let Some(operation) = scene.operation(&known.identity).filter(|operation| operation.action == action) {
        return (head, vec![vec![fleet::step(scene, operation)]]);
    }
    if let Some(hindrance) = hindrance {
        return (head, vec![vec![dim(language.hindrance(&hindrance, action))]]);
    }
    let Offer::Yes(effect) = known.row.offers.of(action) else { return (head, Vec::new()) };
    let prepaid = matches!(known.row.market, Market::Reserved { .. });
    (head, effect_parts(scene, &known.identity.account, &known.rates(), prepaid, &effect, action))
}

/// What an action would do to a resource that is charged at these rates.
pub fn effect_parts(
    scene: &Scene,
    account: &AccountName,
    rates: &Rates,
    prepaid: bool,
    effect: &Effect,
    action: Action,
) -> Vec<Runs> {
    let language = scene.look.language;
    let before = rates.certain();
    let after = effect.rates_after.upper();
    let mut parts: Vec<Runs> = Vec::new();
    let first = scene.currency();
    if action == Action::Start {
        if let Some(rate) = scene.total(&after, !effect.rates_after.complete) {
            parts.push(vec![plain(language.phrase(&Phrase::WillCost { rate: &rate }))]);
        }
    } else {
        let saves = if prepaid { Vec::new() } else { less(&before, &after) };
        let doubtful = !rates.complete || rates.lines.iter().any(|line| !line.certain);
        parts.push(match format::rates(&saves, first, scene.look) {
            Some(rate) => {
                let more = if rates.complete { "" } else { "+" };
                vec![plain(language.phrase(&Phrase::Saves { rate: &format!("{rate}{more}") }))]
            }
            None if doubtful && !prepaid => vec![dim(language.word(Word::SavesUnknown))],
            None => vec![dim(language.word(Word::SavesNothing))],
        });
        if let Some(rate) = scene.total(&after, !effect.rates_after.complete) {
            parts.push(vec![run(language.phrase(&Phrase::GoesOn { rate: &rate }), Role::Waste)]);
        }
    }
    for id in &effect.left_behind {
        let (name, rate) = left_behind(scene, account, id);
        parts.push(vec![run(language.phrase(&Phrase::LeftBehind { name: &name, rate: rate.as_deref() }), Role::Waste)]);
    }
    if !effect.lost.is_empty() {
        let places = places(language, &effect.lost);
        parts.push(vec![run(language.phrase(&Phrase::Deletes { places: &places }), Role::Strong)]);
    }
    // What is erased is said before what stays: a narrow window cuts the end.
    let (erased, risks): (Vec<&Risk>, Vec<&Risk>) = effect.risks.iter().partition(|risk| **risk == Risk::ScratchErased);
    parts.extend(erased.into_iter().map(|risk| vec![run(language.risk(*risk), Role::Strong)]));
    if !effect.kept.is_empty() {
        let places = places(language, &effect.kept);
        parts.push(vec![plain(language.phrase(&Phrase::Keeps { places: &places }))]);
    }
    parts.extend(risks.into_iter().map(|risk| vec![dim(language.risk(*risk))]));
    parts
}

fn less(before: &Burn, after: &Burn) -> Vec<Rate> {
    before.rates().iter().filter_map(|rate| rate.minus(after.of(rate.currency))).collect()
}

fn left_behind(scene: &Scene, account: &AccountName, id: &ResourceId) -> (String, Option<String>) {
    let known = scene.state.world.fleet.storage_of(account).find(|known| known.row.id == *id && !known.is_gone());
    match known {
        Some(known) => {
            let name = known.row.name.clone().unwrap_or_else(|| id.to_string());
            (name, format::burn(&known.rates().upper(), scene.currency(), scene.look))
        }
        None => (id.to_string(), None),
    }
}

/// Places of data, as people know them: where it is mounted, what it is called, or what it is; and its size.
pub fn places(language: Language, places: &[DataPlace]) -> String {
    let words: Vec<String> = places.iter().map(|place| place_words(language, place)).collect();
    words.join(language.word(Word::ListComma))
}

fn place_words(language: Language, place: &DataPlace) -> String {
    let kind = language.data_kind(place.kind);
    // The root of the file system says less than what it lies on.
    let path = place.path.as_ref().filter(|path| *path != "/");
    let size = place.size_gb.map(format::gigabytes);
    if let (DataKind::Contents, None, Some(name)) = (place.kind, path, &place.name) {
        return language.phrase(&Phrase::AllIn { name, size: size.as_deref() });
    }
    let name = match (path, &place.name) {
        (Some(path), Some(name)) => format!("{path} ({name})"),
        (Some(path), None) => path.clone(),
        (None, Some(name)) => format!("{kind} {name}"),
        (None, None) => kind.to_owned(),
    };
    size.map_or(name.clone(), |size| format!("{name} {size}"))
}

fn group_lines(scene: &Scene, key: &GroupKey) -> Vec<Runs> {
    let language = scene.look.language;
    let sum = scene.state.view.fleet.sums.get(key).cloned().unwrap_or_default();
    let mut title = vec![run(fleet::group_title(scene, key), Role::Strong)];
    if let GroupKey::Account(account) = key {
        title.extend(fleet::freshness(scene, account));
    }
    let mut lines = vec![title];
    let mut rows = vec![plain(language.phrase(&Phrase::Rows { count: sum.rows }))];
    if let Some(total) = scene.total(&sum.totals.upper, sum.totals.incomplete) {
        rows.push(plain(total));
    }
    if let Some(prepaid) = format::burn(&sum.totals.prepaid, scene.currency(), scene.look) {
        rows.push(plain(language.phrase(&Phrase::Prepaid { rate: &prepaid })));
    }
    if let Some(waste) = format::burn(&sum.totals.waste, scene.currency(), scene.look) {
        rows.push(run(language.phrase(&Phrase::Wasting { rate: &waste }), Role::Waste));
    }
    lines.push(separated(scene, rows));
    if let GroupKey::Account(name) = key {
        lines.extend(account_lines(scene, name));
    }
    lines
}

fn account_lines(scene: &Scene, name: &AccountName) -> Vec<Runs> {
    let language = scene.look.language;
    let Some(account) = scene.account(name) else { return Vec::new() };
    let mut lines = Vec::new();
    let storage: Vec<_> = scene.state.world.fleet.storage_of(name).filter(|known| !known.is_gone()).collect();
    if !storage.is_empty() {
        let total: Burn = storage.iter().flat_map(|known| known.rates().upper().rates().to_vec()).collect();
        let incomplete = storage.iter().any(|known| !known.row.rates.complete);
        let rate = scene.total(&total, incomplete);
        lines.push(vec![plain(language.phrase(&Phrase::StorageItems { count: storage.len(), rate: rate.as_deref() }))]);
    }
    let balance = fleet::balance(scene, name);
    if !balance.is_empty() {
        lines.push(balance);
    }
    if let Some(runway) = runway::runway(&scene.state.world.fleet, account) {
        lines.push(vec![header::runway(scene, &runway, header::Naming::Full)]);
    }
    if let Some(burn) = account.balance.as_ref().and_then(|balance| balance.value.provider_burn) {
        let rate = format::rate(burn, scene.look);
        lines.push(vec![dim(language.phrase(&Phrase::ProviderBurn { rate: &rate }))]);
    }
    if let Some(error) = &account.balance_error {
        let error = language.error_kind(&error.kind);
        lines.push(vec![plain(language.phrase(&Phrase::BalanceUnknown { error: &error }))]);
    }
    if let Some(trouble) = &account.trouble {
        let text = language.trouble(&trouble.value);
        lines.push(vec![run(format!("{} ", scene.look.glyphs.needs_you), Role::Urgent), plain(text)]);
    } else if !account.problems.is_empty() {
        let text = language.phrase(&Phrase::Problems { count: account.problems.len() });
        lines.push(vec![plain(text), run("   e", Role::Accent), dim(format!(" {}", language.word(Word::InFull)))]);
    }
    if let Some(until) = account.pacing.quiet_until.or(account.pacing.backoff_until).filter(|until| *until > scene.now)
    {
        let time = format::age(until.duration_since(scene.now), language);
        lines.push(vec![dim(language.phrase(&Phrase::NextTryIn { time: &time }))]);
    }
    lines
}
