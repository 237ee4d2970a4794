//! What an instance does: whether it works and why one can say so, its cards as curves and figures, the machine around
//! them, and the stream that tells all of it.

use providers::model::{Instance, Phase};
use providers::usage::{GpuProcess, GpuSample, Usage, UsageSource};

use super::curves::Curves;
use super::details::{labelled, separated};
use super::format;
use super::paint::{Run, Runs, dim, plain, run, runs_width};
use super::scene::Scene;
use super::text::{OfUse, Phrase, Word};
use super::theme::Role;
use crate::app::action::Action as Meaning;
use crate::app::gauges::Alarm;
use crate::rules::fleet::Known;
use crate::rules::streams::{Consent, Link, Trouble};
use crate::rules::usage::{Idleness, Verdict};

/// From so many cards on they stand side by side where there is room, so many a line at the most.
const MANY: usize = 8;
const BESIDE: usize = 4;
/// The least and the most cells of a curve.
const CURVE: (u16, u16) = (6, 120);
/// Blanks between two cards of a line.
const GAP: u16 = 3;
/// Figures are of now up to this age, in seconds.
const OF_NOW: i64 = 60;
/// So many processes and file systems are listed in the pane.
const LISTED: usize = 4;

/// What needs somebody, then whether it works and why, then hints. A line each, for so many cells.
pub fn status(scene: &Scene, known: &Known<Instance>, width: u16) -> Vec<Runs> {
    let language = scene.look.language;
    let mut lines: Vec<Runs> = scene.state.world.alarms(known).iter().map(|alarm| alarm_line(scene, alarm)).collect();
    let Some(idleness) = scene.state.world.idleness(&known.identity).filter(|_| scene.phase(known) == Phase::Running)
    else {
        return lines;
    };
    let Some(verdict) = language.verdict(idleness.verdict) else { return lines };
    let role = if idleness.wastes() { Role::Waste } else { Role::Plain };
    let why = why(scene, known, idleness);
    let mut line = vec![run(verdict, if role == Role::Waste { role } else { Role::Strong })];
    let wasted = scene
        .wasted(known)
        .map(|(rate, so_far)| language.of_use(OfUse::Wasting { rate: &rate, so_far: so_far.as_deref() }));
    let semicolon = language.word(Word::Semicolon);
    let told = match wasted {
        None => why,
        Some(wasted) => {
            let whole = format!("{why}{semicolon}{wasted}");
            let cells = runs_width(&line) + format::width(language.word(Word::Colon)) + format::width(&whole);
            // Money first where something is cut.
            if cells <= width { whole } else { format!("{wasted}{semicolon}{why}") }
        }
    };
    line.push(run(format!("{}{told}", language.word(Word::Colon)), role));
    lines.push(line);
    for hint in &idleness.hints {
        lines.push(vec![dim(format!("{} ", scene.look.glyphs.dot)), run(language.usage_hint(hint), Role::Waste)]);
    }
    lines
}

/// Whether it works, and why one can say so; `None` where nothing is known.
pub fn doing(scene: &Scene, known: &Known<Instance>) -> Option<Runs> {
    let language = scene.look.language;
    let idleness = scene.state.world.idleness(&known.identity).filter(|_| scene.phase(known) == Phase::Running)?;
    let works = match idleness.verdict {
        Verdict::Busy | Verdict::Underused => true,
        Verdict::Waiting | Verdict::Idle => false,
        Verdict::NotYet | Verdict::Unknown | Verdict::NotApplicable => return None,
    };
    let why = why(scene, known, idleness);
    Some(vec![
        run(language.verdict(idleness.verdict)?, if works { Role::Strong } else { Role::Plain }),
        plain(format!("{}{why}", language.word(Word::Colon))),
    ])
}

fn why(scene: &Scene, known: &Known<Instance>, idleness: &Idleness) -> String {
    let memory = scene.usage(known).is_some_and(|usage| usage.gpus.iter().any(|gpu| gpu.memory_used_bytes.is_some()));
    scene.look.language.why(idleness, memory, scene.now)
}

fn alarm_line(scene: &Scene, alarm: &Alarm) -> Runs {
    let language = scene.look.language;
    let mut line = vec![run(format!("{} ", scene.look.glyphs.needs_you), Role::Urgent)];
    match alarm {
        Alarm::HostKeyChanged => {
            line.push(run(language.word(Word::HostKeyChanged), Role::Urgent));
            line.push(run(format!("   {}", scene.key_of(Meaning::LookInto)), Role::Accent));
            line.push(dim(format!(" {}", language.word(Word::InFull))));
        }
        Alarm::Mismatch(mismatch) => line.push(run(language.mismatch(mismatch), Role::Urgent)),
        Alarm::Fault(said) => line.push(run(language.of_use(OfUse::Fault { said }), Role::Urgent)),
    }
    line
}

/// What needs somebody, in a few words for a row.
pub fn alarm_words(scene: &Scene, alarm: &Alarm) -> String {
    let language = scene.look.language;
    match alarm {
        Alarm::HostKeyChanged => language.word(Word::HostKeyChanged).to_owned(),
        Alarm::Mismatch(mismatch) => language.mismatch_short(mismatch),
        Alarm::Fault(_) => language.word(Word::GpuFault).to_owned(),
    }
}

/// Why a stream to a machine that does not answer stays down, for a row.
pub fn unreached(scene: &Scene, known: &Known<Instance>) -> Option<Run> {
    match &scene.state.world.streams.get(&known.identity)?.link {
        Link::Down { trouble, .. } => {
            let role = if trouble.is_lasting() { Role::Urgent } else { Role::Plain };
            Some(run(scene.look.language.link_trouble(trouble), role))
        }
        Link::Connecting { .. } | Link::Live { .. } => None,
    }
}

/// How the stream to the machine stands; nothing where its provider tells no address for one.
pub fn link(scene: &Scene, known: &Known<Instance>) -> Option<Runs> {
    let (language, streams) = (scene.look.language, &scene.state.world.streams);
    // Of one that was tried it is told whatever its phase: that may be why nobody knows whether it runs.
    let concerns = scene.phase(known) == Phase::Running || streams.get(&known.identity).is_some();
    if scene.state.view.fixed.demo || !known.row.ssh.as_ref()?.direct || !concerns {
        return None;
    }
    let key = scene.key_of(Meaning::LookInto);
    let told = match streams.get(&known.identity).map(|stream| (&stream.link, stream.pace)) {
        Some((Link::Connecting { since }, _)) => dim(language.of_use(OfUse::Connecting { time: &scene.since(*since) })),
        Some((Link::Live { since, .. }, pace)) => {
            let told = OfUse::Streams { time: &scene.since(*since), pace: pace.as_secs() };
            dim(language.of_use(told))
        }
        // This stands above, as something that needs somebody.
        Some((Link::Down { trouble: Trouble::HostKeyChanged, .. }, _)) => return None,
        Some((Link::Down { trouble, retry_at, .. }, _)) => {
            let again = retry_at.map(|at| scene.moment(at));
            let role = if trouble.is_lasting() { Role::Urgent } else { Role::Plain };
            run(language.of_use(OfUse::Down { trouble, again: again.as_deref() }), role)
        }
        None => match streams.consent(&known.identity.account) {
            Consent::Unasked if scene.state.world.streams_open() => dim(language.of_use(OfUse::Unasked { key: &key })),
            Consent::No | Consent::Never => dim(language.of_use(OfUse::NotWanted { key: &key })),
            _ => return None,
        },
    };
    Some(labelled(scene, Word::Ssh, vec![told]))
}

/// Use of the machine around its cards, who tells it and how old it is.
pub fn host(scene: &Scene, usage: &Usage) -> Vec<Run> {
    let language = scene.look.language;
    let mut facts = Vec::new();
    let mut add = |text: String| facts.push(plain(text));
    if let Some(cpu) = usage.cpu {
        add(format!("CPU {}", format::percent(cpu)));
    }
    if let Some(memory) = usage.memory {
        add(format!("{} {}", language.word(Word::MainMemory), format::percent(memory)));
    }
    if let Some(flow) = usage.disk_bytes_per_second {
        add(language.of_use(OfUse::Disk { flow: &format::flow(flow) }));
    }
    if let Some(flow) = usage.network_bytes_per_second {
        add(language.of_use(OfUse::Network { flow: &format::flow(flow) }));
    }
    if let Some(users) = &usage.users {
        add(language.of_use(OfUse::Users { names: &users.join(language.word(Word::ListComma)) }));
    }
    if scene.now.duration_since(usage.as_of).as_secs() > OF_NOW {
        facts.push(dim(language.of_use(OfUse::Old { age: &scene.since(usage.as_of) })));
    }
    facts
}

/// Who tells the figures, and how far back the curves reach.
pub fn span(scene: &Scene, usage: &Usage) -> Runs {
    let language = scene.look.language;
    let source = match usage.source {
        UsageSource::Ssh => OfUse::ByMachine,
        UsageSource::Provider => OfUse::ByProvider,
    };
    vec![
        run(scene.key_of(Meaning::Range), Role::Accent),
        dim(format!(" {} {} ", language.of_use(OfUse::Curves(scene.state.view.chart)), scene.look.glyphs.dot)),
        dim(language.of_use(source)),
    ]
}

/// How full each file system is, the fullest first.
pub fn mounts(scene: &Scene, usage: &Usage, most: usize) -> Option<Runs> {
    let language = scene.look.language;
    let share = |used: u64, total: u64| if total == 0 { 0.0 } else { used as f64 / total as f64 };
    let mut mounts: Vec<_> = usage.mounts.iter().collect();
    mounts.sort_by(|a, b| share(b.used_bytes, b.total_bytes).total_cmp(&share(a.used_bytes, a.total_bytes)));
    let mut told: Vec<Run> = mounts
        .iter()
        .take(most)
        .map(|mount| {
            let share = share(mount.used_bytes, mount.total_bytes);
            let (part, size) = (format::percent(share), format!("{} G", format::gib(mount.total_bytes)));
            let text = language.of_use(OfUse::Mount { path: &mount.path, share: &part, size: &size });
            run(text, if share >= 0.95 { Role::Waste } else { Role::Plain })
        })
        .collect();
    if mounts.len() > most {
        told.push(dim(language.of_use(OfUse::More { count: mounts.len() - most })));
    }
    (!told.is_empty()).then(|| labelled(scene, Word::Disks, separated(scene, told)))
}

/// What holds memory of the cards.
pub fn processes(scene: &Scene, usage: &Usage, most: usize) -> Vec<Runs> {
    let language = scene.look.language;
    let Some(processes) = usage.processes.as_ref().filter(|processes| !processes.is_empty()) else { return Vec::new() };
    let told = |process: &GpuProcess| {
        let name = process.name.as_deref().unwrap_or(scene.look.glyphs.dash);
        let memory = process.memory_bytes.map(|bytes| format!("  {} G", format::gib(bytes))).unwrap_or_default();
        let card = process.gpu.map(|gpu| format!("GPU {gpu}  ")).unwrap_or_default();
        vec![dim(format!("  {card}")), plain(format!("{name}{memory}")), dim(format!("  {}", process.pid))]
    };
    let mut lines = vec![vec![dim(language.word(Word::Processes))]];
    lines.extend(processes.iter().take(most).map(told));
    if processes.len() > most {
        let more = language.of_use(OfUse::More { count: processes.len() - most });
        lines.push(vec![dim(format!("  {more}"))]);
    }
    lines
}

/// Everything about use for a pane or a window of this width.
pub fn in_full(scene: &Scene, known: &Known<Instance>, width: u16, window: bool) -> Vec<Runs> {
    let mut lines = Vec::new();
    if let Some(usage) = scene.usage(known) {
        let rows = match usage.gpus.len() {
            many if many > MANY => many.div_ceil(2),
            few => few,
        };
        lines.push(span(scene, usage));
        match usage.gpus.as_slice() {
            few if window && few.len() <= 2 => lines.extend(tall_cards(scene, known, usage, width)),
            _ => lines.extend(cards(scene, known, usage, width, rows)),
        }
        let host = separated(scene, host(scene, usage));
        lines.extend((!host.is_empty()).then_some(host));
        let most = if window { usize::MAX } else { LISTED };
        lines.extend(mounts(scene, usage, most));
        lines.extend(processes(scene, usage, most));
    }
    lines.extend(link(scene, known));
    lines
}

/// How many lines the cards should have at the least, where there is room.
pub fn lines_wanted(usage: &Usage) -> usize {
    match usage.gpus.len() {
        many if many >= MANY => many.div_ceil(BESIDE),
        few => few.min(2),
    }
}

/// The cards in at most so many lines: a curve and figures each, several a line where there are many, and all of them
/// in one line where there is no room.
pub fn cards(scene: &Scene, known: &Known<Instance>, usage: &Usage, width: u16, rows: usize) -> Vec<Runs> {
    let count = usage.gpus.len();
    if count == 0 || rows == 0 {
        return Vec::new();
    }
    let roomy = if count >= MANY { usize::from(width / 50).clamp(1, BESIDE) } else { 1 };
    let per_line = count.div_ceil(rows).max(roomy);
    let cell = (width + GAP) / u16::try_from(per_line).unwrap_or(u16::MAX) - GAP.min(width);
    let columns = FigureColumns::fit(usage, cell, per_line == 1);
    let Some(columns) = columns else { return vec![summary(scene, usage)] };
    let curves = Curves::of(scene, known);
    // Down the columns, as one reads.
    let lines = count.div_ceil(per_line);
    (0..lines)
        .map(|line| {
            let mut runs = Runs::new();
            for (place, card) in (line..count).step_by(lines).enumerate() {
                let start = (cell + GAP) * place as u16;
                runs.push(plain(" ".repeat(usize::from(start.saturating_sub(runs_width(&runs))))));
                runs.extend(card_line(scene, usage, card, &columns, &curves));
            }
            runs
        })
        .collect()
}

/// Cells of what stands beside a curve.
struct FigureColumns {
    label: u16,
    curve: u16,
    memory: u16,
    temperature: u16,
    power: u16,
}

impl FigureColumns {
    /// What has room in a cell; the least that says something is a number, a curve and its figure.
    fn fit(usage: &Usage, cell: u16, alone: bool) -> Option<Self> {
        let any = |told: fn(&GpuSample) -> bool| usage.gpus.iter().any(told);
        let memory = usage.gpus.iter().map(|gpu| format::width(&memory_text(gpu))).max().unwrap_or(0);
        let optional = |width: u16| if width > 0 { width + 2 } else { 0 };
        let mut columns = FigureColumns {
            label: if alone { 6 } else { 2 },
            curve: 0,
            memory: optional(memory),
            temperature: if any(|gpu| gpu.temperature_c.is_some()) { 8 } else { 0 },
            power: if any(|gpu| gpu.power_watts.is_some()) { 7 } else { 0 },
        };
        let used = |columns: &FigureColumns| {
            columns.label + 1 + USE_CELLS + columns.memory + columns.temperature + columns.power
        };
        for leaves in [
            (|_: &mut FigureColumns| {}) as fn(&mut FigureColumns),
            |columns| columns.power = 0,
            |columns| columns.temperature = 0,
            |columns| columns.memory = 0,
        ] {
            leaves(&mut columns);
            if used(&columns) + CURVE.0 <= cell {
                columns.curve = (cell - used(&columns)).min(CURVE.1);
                return Some(columns);
            }
        }
        None
    }
}

/// `100 %` with a blank before it.
const USE_CELLS: u16 = 6;

fn card_line(scene: &Scene, usage: &Usage, card: usize, columns: &FigureColumns, curves: &Curves) -> Runs {
    let (gpu, glyphs) = (&usage.gpus[card], scene.look.glyphs);
    let label = match (usage.averaged, columns.label) {
        (true, _) => scene.look.language.word(Word::AllGpus).trim().to_owned(),
        (false, 2) => gpu.index.to_string(),
        (false, _) => format!("GPU {}", gpu.index),
    };
    let mut runs = vec![dim(padded(&label, columns.label + 1))];
    if let Some(fault) = &gpu.fault {
        let room = columns.curve + USE_CELLS + columns.memory + columns.temperature + columns.power;
        runs.push(run(format::cut(fault, room, glyphs.ellipsis), Role::Urgent));
        return runs;
    }
    runs.push(dim(curves.line(card, usize::from(columns.curve), scene)));
    let used = match gpu.utilization {
        Some(share) => format::percent(share),
        None if gpu.partitioned => "MIG".to_owned(),
        None => glyphs.dash.to_owned(),
    };
    runs.push(plain(right(&used, USE_CELLS)));
    if columns.memory > 0 {
        runs.push(plain(right(&memory_text(gpu), columns.memory)));
    }
    runs.extend(heat(scene, gpu, columns.temperature, columns.power));
    runs
}

fn heat(scene: &Scene, gpu: &GpuSample, temperature: u16, power: u16) -> Vec<Run> {
    let degrees = gpu.temperature_c.filter(|degrees| degrees.is_finite());
    let degrees = degrees.map(|degrees| format!("{degrees:.0} {}", scene.look.glyphs.degree)).unwrap_or_default();
    let watts = gpu.power_watts.filter(|watts| watts.is_finite());
    let watts = watts.map(|watts| format!("{watts:.0} W")).unwrap_or_default();
    let columns = [(degrees, temperature), (watts, power)];
    columns.into_iter().filter(|(_, cells)| *cells > 0).map(|(text, cells)| plain(right(&text, cells))).collect()
}

/// `74/80 G`.
fn memory_text(gpu: &GpuSample) -> String {
    match (gpu.memory_used_bytes, gpu.memory_total_bytes) {
        (Some(used), Some(total)) => format!("{}/{} G", format::gib(used), format::gib(total)),
        (Some(used), None) => format!("{} G", format::gib(used)),
        (None, _) => String::new(),
    }
}

fn padded(text: &str, cells: u16) -> String {
    format!("{text}{}", " ".repeat(usize::from(cells.saturating_sub(format::width(text)).max(1))))
}

fn right(text: &str, cells: u16) -> String {
    format!("{}{text}", " ".repeat(usize::from(cells.saturating_sub(format::width(text)))))
}

/// One or two cards with a curve of several rows each.
fn tall_cards(scene: &Scene, known: &Known<Instance>, usage: &Usage, width: u16) -> Vec<Runs> {
    let curves = Curves::of(scene, known);
    let mut lines = Vec::new();
    for card in 0..usage.gpus.len() {
        let Some(columns) = FigureColumns::fit(usage, width, true) else { return vec![summary(scene, usage)] };
        let figures = card_line(scene, usage, card, &columns, &curves);
        // A curve that never leaves the ground needs one row.
        if curves.is_flat(card) || usage.gpus[card].fault.is_some() || usage.gpus[card].utilization.is_none() {
            lines.push(figures);
            continue;
        }
        let rows = curves.rows(card, usize::from(columns.curve), scene);
        let last = rows.len() - 1;
        for (place, row) in rows.into_iter().enumerate() {
            let before = usize::from(columns.label + 1);
            if place < last {
                lines.push(vec![plain(" ".repeat(before)), dim(row)]);
                continue;
            }
            // The figures stand beside the foot of the curve.
            let mut foot = figures.clone();
            foot[1] = dim(row);
            lines.push(foot);
        }
        if card + 1 < usage.gpus.len() {
            lines.push(Runs::new());
        }
    }
    lines
}

/// All cards in one line: a bar for each, then mean, range and sums.
fn summary(scene: &Scene, usage: &Usage) -> Runs {
    let (language, glyphs) = (scene.look.language, scene.look.glyphs);
    let mut runs = vec![dim(format!("{} GPU ", usage.gpus.len()))];
    for gpu in usage.gpus.iter().take(16) {
        runs.push(match gpu.utilization {
            _ if gpu.fault.is_some() => run(glyphs.failed, Role::Urgent),
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
    runs
}

/// How long it has been idle or waiting, how many of its cards work, or nothing; with its role. For a column of five
/// cells.
pub fn idle_cell(scene: &Scene, known: &Known<Instance>) -> (String, Role) {
    use crate::rules::usage::Why;
    let dash = scene.look.glyphs.dash;
    let Some(idleness) = scene.state.world.idleness(&known.identity) else {
        let cards = known.row.gpus.as_ref().is_none_or(|gpus| gpus.count > 0);
        return (if cards { dash.to_owned() } else { String::new() }, Role::Dim);
    };
    match (idleness.verdict, &idleness.why) {
        (Verdict::Idle | Verdict::Waiting, _) => {
            let time = idleness.since.map(|since| scene.now.duration_since(since));
            let role = if idleness.wastes() { Role::Waste } else { Role::Plain };
            (time.map_or_else(|| dash.to_owned(), format::brief_span), role)
        }
        (Verdict::Underused, Why::Few { busy, cards }) => (format!("{busy}/{cards}"), Role::Plain),
        (Verdict::NotYet, _) => (scene.look.language.word(Word::NotYet).to_owned(), Role::Dim),
        (Verdict::Unknown, _) => (dash.to_owned(), Role::Dim),
        (Verdict::Underused | Verdict::Busy | Verdict::NotApplicable, _) => (String::new(), Role::Dim),
    }
}
