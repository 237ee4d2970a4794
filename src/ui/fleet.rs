//! The list of the fleet: groups and rows, in columns that leave by their rank when it gets narrow.

use providers::model::{AccountName, Instance, Market, Phase, ProviderName, Rates, Remark};
use providers::money::Money;
use providers::usage::Usage;
use ratatui::layout::Rect;

use super::paint::{Paint, Run, Runs, dim, plain, run, runs_width};
use super::scene::{Scene, name_of};
use super::text::{OfUse, Phrase, Word};
use super::theme::Role;
use super::{format, header, usage};
use crate::app::action::Action as Meaning;
use crate::app::columns::{Column, Columns, FLAGS, FRACTION, SIGNS, SPARK};
use crate::app::listing::Line;
use crate::app::message::GroupName;
use crate::app::rows::{self, GroupKey};
use crate::app::state::BRIGHT;
use crate::rules::fleet::{Freshness, Known};
use crate::rules::runway;
use crate::rules::saga::{Operation, Step};

/// After so long an unanswered question is worth a word.
const ASKING_LONG: i64 = 5;

/// Head and visible lines.
pub fn paint(paint: &mut Paint, scene: &Scene, area: Rect) {
    let view = &scene.state.view.fleet;
    let grouping = rows::grouping(&scene.state.world, view);
    let columns = scene.state.view.fleet_columns(&scene.state.world);
    head(paint, scene, &columns, area.y);
    let height = usize::from(area.height.saturating_sub(1));
    for (row, line) in view.lines.iter().skip(view.top).take(height).enumerate() {
        let y = area.y + 1 + row as u16;
        let here = view.cursor.as_ref() == Some(line);
        if here {
            paint.text(area.x, y, 1, scene.look.glyphs.cursor, Role::Accent);
        }
        match line {
            Line::Group(key) => group(paint, scene, &columns, area, y, key, here),
            Line::Resource(identity) => {
                if let Some(known) = scene.state.world.fleet.instances.get(identity) {
                    instance(paint, scene, &columns, y, known, here, grouping);
                }
            }
            Line::Operation(_) | Line::Spend(_) | Line::Budget(_) | Line::Alert(..) => {}
        }
    }
}

fn head(paint: &mut Paint, scene: &Scene, columns: &Columns, y: u16) {
    let language = scene.look.language;
    let rate =
        format!("{}/{}", format::symbol(scene.currency(), scene.look.glyphs).trim(), language.word(Word::PerHour));
    let rate_end = Column { width: columns.rate.width.saturating_sub(FRACTION - 3), ..columns.rate };
    let left = [
        (columns.name, Word::Name),
        (columns.gpu, Word::Gpu),
        (columns.next, Word::Next),
        (columns.account, Word::Account),
        (columns.project, Word::Project),
        (columns.region, Word::Region),
    ];
    // The head of the column that the rows are sorted by says so.
    let sort = scene.state.view.fleet.sort;
    let role = |column: Column| {
        let sorted = columns.sorted().into_iter().any(|(one, name)| name == sort && one.x == column.x);
        if sorted { Role::Accent } else { Role::Dim }
    };
    for (column, word) in left {
        paint.text(column.x, y, column.width, language.word(word), role(column));
    }
    let at_right = [
        (columns.util, Word::Util),
        (columns.memory, Word::Memory),
        (columns.idle, Word::Idle),
        (columns.up, Word::Up),
    ];
    for (column, word) in at_right {
        // A head may reach into the gap before its column.
        let more = u16::from(column.width > 0);
        paint.right(column.x - more, y, column.width + more, language.word(word), role(column));
    }
    paint.right(rate_end.x, y, rate_end.width, &rate, role(columns.rate));
    if let Some(day) = scene.state.world.spending.tally.day() {
        let month = language.month(day.month());
        paint.right(columns.month.x, y, columns.month.width, month, Role::Dim);
    }
    paint.right(columns.spent.x, y, columns.spent.width, language.word(Word::Spent), Role::Dim);
}

fn instance(
    paint: &mut Paint,
    scene: &Scene,
    columns: &Columns,
    y: u16,
    known: &Known<Instance>,
    here: bool,
    grouping: GroupName,
) {
    let (look, view) = (scene.look, &scene.state.view.fleet);
    let old = scene.is_old(&known.identity.account) || known.is_gone();
    let tone = |role: Role| match role {
        Role::Plain | Role::Strong if old => Role::Dim,
        role => role,
    };
    let signs = columns.name.x - SIGNS;
    if view.marks.contains(&known.identity) {
        paint.text(signs + 1, y, 1, look.glyphs.marked, Role::Accent);
    }
    let sign = scene.phase_sign(known);
    paint.text(signs + 2, y, 1, &sign.text, tone(sign.role));
    if scene.needs_you(known) {
        paint.text(signs + 4, y, 1, look.glyphs.needs_you, Role::Urgent);
    }
    let name_role = if here { Role::Here } else { tone(Role::Plain) };
    paint.text(columns.name.x, y, columns.name.width, name_of(known), name_role);
    if known.row.market == Market::Spot {
        paint.text(columns.gpu.x - FLAGS, y, 1, "s", Role::Dim);
    }
    if scene.is_protected(known) {
        paint.text(columns.gpu.x - FLAGS + 1, y, 1, "p", Role::Accent);
    }
    let gpus = gpus(known, scene);
    paint.text(columns.gpu.x, y, columns.gpu.width, &gpus, tone(Role::Plain));
    util(paint, scene, columns, y, known, old);
    if columns.memory.width > 0 {
        let memory = memory(known, scene);
        paint.right(columns.memory.x, y, columns.memory.width, &memory, tone(Role::Plain));
    }
    idle(paint, scene, columns, y, known, old);
    rate_cell(paint, scene, columns.rate, y, &known.rates(), rate_role(known, scene, old));

    spent(paint, scene, columns, y, known, tone(Role::Plain));
    let mut next = next(scene, columns, known);
    let acted = scene.operation(&known.identity).is_some() || scene.confirmed(&known.identity).is_some();
    if old && !known.is_gone() && !acted && grouping != GroupName::Account {
        age_first(scene, known, &mut next);
    }
    paint.runs(columns.next.x, y, columns.next.width, &whole_parts(scene, next, columns.next.width, Word::Comma));
    let account = scene.account_title(&known.identity.account);
    paint.text(columns.account.x, y, columns.account.width, &account, Role::Dim);
    if columns.project.width > 0 {
        let project = rows::project_of(&scene.state.world, known).unwrap_or_default();
        paint.text(columns.project.x, y, columns.project.width, project, tone(Role::Plain));
    }
    let region = known.row.region.as_deref().unwrap_or_default();
    paint.text(columns.region.x, y, columns.region.width, region, Role::Dim);
    if let Some(started) = known.row.started_at.filter(|_| columns.up.width > 0 && known.phase() == Phase::Running) {
        let age = scene.since(scene.state.world.fleet.here(&known.identity.account, started));
        paint.right(columns.up.x, y, columns.up.width, &age, Role::Dim);
    }
}

/// `8× H100 SXM`.
pub fn gpus(known: &Known<Instance>, scene: &Scene) -> String {
    match &known.row.gpus {
        Some(gpus) if gpus.count > 0 => format!("{}{} {}", gpus.count, scene.look.glyphs.times, gpus.model),
        Some(_) => scene.look.language.word(Word::NoGpu).to_owned(),
        None => scene.look.glyphs.dash.to_owned(),
    }
}

/// The curve and the figure while it runs, the phase as a word else.
fn util(paint: &mut Paint, scene: &Scene, columns: &Columns, y: u16, known: &Known<Instance>, old: bool) {
    let (column, look) = (columns.util, scene.look);
    let phase = scene.phase(known);
    let role = if old { Role::Dim } else { Role::Plain };
    if phase != Phase::Running || known.row.remarks.contains(&Remark::NoGpus) {
        let word = match phase {
            Phase::Running => look.language.word(Word::NoGpu),
            _ if columns.spark => state_words(scene, known, phase),
            _ if column.width < 9 => look.language.phase_short(phase),
            _ => look.language.phase(phase),
        };
        let role = match phase {
            Phase::Stopped if scene.wastes(known) && !old => Role::Waste,
            _ => Role::Dim,
        };
        paint.text(column.x, y, column.width, word, role);
        return;
    }
    let usage = scene.usage(known);
    let share = usage.and_then(Usage::mean_utilization);
    let figure = share.map_or_else(|| look.glyphs.dash.to_owned(), format::percent);
    let late = usage.filter(|usage| !usage.is_fresh(scene.now));
    let role = if share.is_some() && late.is_none() { role } else { Role::Dim };
    paint.right(column.x + column.width - 5, y, 5, &figure, role);
    // What is not of now has its age in the place of the curve.
    if let Some(late) = late.filter(|_| columns.spark && share.is_some()) {
        let age = look.language.phrase(&Phrase::Old { age: &scene.since(late.as_of) });
        paint.right(column.x, y, SPARK, &age, Role::Dim);
    } else if columns.spark
        && let Some(trend) = scene.state.world.gauges.get(&known.identity).map(|gauge| &gauge.trend)
    {
        let shown = trend.len().min(usize::from(SPARK));
        let curve: String =
            trend.iter().skip(trend.len() - shown).map(|share| look.glyphs.height(f64::from(*share))).collect();
        paint.right(column.x, y, SPARK, &curve, Role::Dim);
    }
}

/// A phase with what it means for money.
fn state_words(scene: &Scene, known: &Known<Instance>, phase: Phase) -> &'static str {
    use providers::model::Component;
    let language = scene.look.language;
    let rates = known.rates();
    match phase {
        Phase::Stopped if !rates.of(&[Component::Compute]).is_zero() => language.word(Word::StoppedBilled),
        Phase::Stopped if !rates.upper().is_zero() => language.word(Word::StoppedDisk),
        Phase::Stopped if rates.complete => language.word(Word::StoppedFree),
        phase => language.phase(phase),
    }
}

fn memory(known: &Known<Instance>, scene: &Scene) -> String {
    let dash = scene.look.glyphs.dash;
    let running = scene.phase(known) == Phase::Running;
    let Some(usage) = scene.usage(known) else {
        return if running { dash.to_owned() } else { String::new() };
    };
    let sum = |figures: Vec<Option<u64>>| {
        let known: Vec<u64> = figures.into_iter().flatten().collect();
        (!known.is_empty()).then(|| known.iter().fold(0u64, |sum, bytes| sum.saturating_add(*bytes)))
    };
    let used = sum(usage.gpus.iter().map(|gpu| gpu.memory_used_bytes).collect());
    let total = sum(usage.gpus.iter().map(|gpu| gpu.memory_total_bytes).collect());
    match (used, total) {
        (Some(used), Some(total)) => format!("{}/{}", format::gib(used), format::gib(total)),
        (Some(used), None) => format::gib(used),
        (None, _) => dash.to_owned(),
    }
}

/// How long nothing has worked on it; for how long it has been off.
fn idle(paint: &mut Paint, scene: &Scene, columns: &Columns, y: u16, known: &Known<Instance>, old: bool) {
    let (text, role) = match (scene.phase(known), known.row.stopped_at) {
        (Phase::Running, _) => usage::idle_cell(scene, known),
        (Phase::Stopped | Phase::Reclaimed, Some(stopped)) => {
            let stopped = scene.state.world.fleet.here(&known.identity.account, stopped);
            (format::brief_span(scene.now.duration_since(stopped)), Role::Dim)
        }
        _ => return,
    };
    let role = if old { Role::Dim } else { role };
    paint.right(columns.idle.x, y, columns.idle.width, &text, role);
}

fn rate_role(known: &Known<Instance>, scene: &Scene, old: bool) -> Role {
    let bright = scene.state.world.bright.get(&known.identity);
    if bright.is_some_and(|since| scene.now.duration_since(*since) < BRIGHT) {
        Role::Strong
    } else if known.is_gone() || matches!(known.row.market, Market::Reserved { .. }) {
        Role::Dim
    } else if scene.wastes(known) {
        Role::Waste
    } else if old {
        Role::Dim
    } else {
        Role::Plain
    }
}

/// A rate at the decimal point: `~` before an estimate, `?` after what only may be charged, `+` after what
/// lacks a part.
fn rate_cell(paint: &mut Paint, scene: &Scene, column: Column, y: u16, rates: &Rates, role: Role) {
    let glyphs = scene.look.glyphs;
    let (first, whole_width) = (scene.currency(), column.width.saturating_sub(FRACTION));
    let fraction_x = column.x + whole_width;
    if rates.lines.is_empty() && !rates.complete {
        return paint.right(column.x, y, whole_width, glyphs.dash, Role::Dim);
    }
    let shown = format::in_order(rates.upper().rates(), first);
    let rate = shown.first().copied().unwrap_or(providers::money::Rate::zero(first));
    let digits = format::hourly(rate.amount());
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let about = if rates.estimated() { "~" } else { "" };
    let sign = if rate.currency == first { String::new() } else { format::symbol(rate.currency, glyphs) };
    let more = if !rates.complete || shown.len() > 1 {
        "+"
    } else if rates.lines.iter().any(|line| !line.certain) {
        "?"
    } else {
        ""
    };
    // A long amount reaches into the gap before it: money is never cut.
    let whole = format!("{about}{sign}{whole}");
    let cells = format::width(&whole);
    paint.text(fraction_x.saturating_sub(cells), y, cells, &whole, role);
    paint.text(fraction_x, y, FRACTION, &format!(".{fraction}{more}"), role);
}

/// What it cost this month, and in the whole rental.
fn spent(paint: &mut Paint, scene: &Scene, columns: &Columns, y: u16, known: &Known<Instance>, role: Role) {
    if columns.month.width + columns.spent.width == 0 {
        return;
    }
    let row = scene.state.world.spending.row_beside_totals(&known.identity);
    let rates = known.rates();
    for (column, sums) in
        [(columns.month, row.as_ref().map(|row| &row.month)), (columns.spent, row.as_ref().map(|row| &row.rental))]
    {
        // Of what has no known price nothing is known to be spent.
        let known = sums.filter(|sums| rates.complete || sums.0.values().any(|amounts| !amounts.total().is_zero()));
        let Some(sums) = known else {
            paint.right(column.x, y, column.width, scene.look.glyphs.dash, Role::Dim);
            continue;
        };
        // The head says which currency is meant.
        let first = format::symbol(scene.currency(), scene.look.glyphs);
        let perhaps = sums.0.values().any(|amounts| !amounts.possible.is_zero());
        let more = if !rates.complete {
            "+"
        } else if perhaps {
            "?"
        } else {
            ""
        };
        let text = format!("{}{more}", format::sums(sums, scene).replacen(first.trim(), "", 1));
        paint.right(column.x, y, column.width, &text, role);
    }
}

/// What will happen to a row by itself, the most urgent first.
fn next(scene: &Scene, columns: &Columns, known: &Known<Instance>) -> Runs {
    let language = scene.look.language;
    if let Some(operation) = scene.operation(&known.identity) {
        return vec![step(scene, operation)];
    }
    if let Some(operation) = scene.confirmed(&known.identity) {
        let text = language.phrase(&Phrase::Confirmed { action: operation.action });
        return vec![run(format!("{} {text}", scene.look.glyphs.done), Role::Good)];
    }
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

fn age_first(scene: &Scene, known: &Known<Instance>, next: &mut Runs) {
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

fn group(paint: &mut Paint, scene: &Scene, columns: &Columns, area: Rect, y: u16, key: &GroupKey, here: bool) {
    let (view, glyphs, language) = (&scene.state.view.fleet, scene.look.glyphs, scene.look.language);
    let folded = view.folded.contains(key);
    let fold = if folded { glyphs.folded } else { glyphs.open };
    paint.text(area.x + 2, y, 1, fold, if here { Role::Accent } else { Role::Dim });
    let sum = view.sums.get(key).cloned().unwrap_or_default();
    let mut title: Runs = vec![
        run(group_title(scene, key), if here { Role::Here } else { Role::Strong }),
        dim(format!("  {}", sum.rows)),
    ];
    match key {
        GroupKey::Account(account) => title.extend(freshness(scene, account)),
        _ => title.extend(oldest(scene, &sum.accounts)),
    }
    if folded && sum.attention > 0 {
        title.push(run(format!("   {} {}", glyphs.needs_you, sum.attention), Role::Urgent));
    }
    let first = scene.currency();
    let waste = format::burn(&sum.totals.waste, first, scene.look)
        .map(|rate| run(language.phrase(&Phrase::Wasting { rate: &rate }), Role::Waste));
    let room = if sum.rows > 0 { columns.rate.x } else { columns.next.x }.saturating_sub(area.x + 4);
    let end = paint.runs(area.x + 4, y, room.saturating_sub(1), &title);
    if let Some(waste) = waste {
        // Only where it does not touch the title.
        let left = columns.rate.x.saturating_sub(end + 2);
        if format::width(&waste.text) < left {
            paint.runs_right(end + 2, y, left.saturating_sub(1), &[waste]);
        }
    }
    if sum.rows > 0 {
        let total = Rates {
            lines: sum
                .totals
                .upper
                .rates()
                .iter()
                .map(|rate| providers::model::RateLine {
                    component: providers::model::Component::Other,
                    rate: *rate,
                    estimated: sum.totals.estimated,
                    certain: sum.totals.burn.of(rate.currency) == *rate,
                })
                .collect(),
            complete: !sum.totals.incomplete,
        };
        rate_cell(paint, scene, columns.rate, y, &total, if here { Role::Here } else { Role::Strong });
    }
    let money = match key {
        GroupKey::Account(account) => account_money(scene, account),
        GroupKey::Provider(provider) => provider_money(scene, provider),
        GroupKey::Project(_) | GroupKey::Market(_) => Vec::new(),
    };
    let prepaid = format::burn(&sum.totals.prepaid, first, scene.look)
        .map(|rate| dim(language.phrase(&Phrase::Prepaid { rate: &rate })));
    let cells = area.right().saturating_sub(columns.next.x + 1);
    paint.runs(columns.next.x, y, cells, &longest(prepaid, money, cells));
}

/// The first way to say it that has room, after what is prepaid where that has room too. Money is never cut: none
/// of it is shown where not even the shortest has room.
fn longest(prepaid: Option<Run>, ways: Vec<Runs>, cells: u16) -> Runs {
    let with = |way: &Runs| match &prepaid {
        Some(prepaid) if way.is_empty() => vec![prepaid.clone()],
        Some(prepaid) => [vec![prepaid.clone(), dim("   ")], way.clone()].concat(),
        None => way.clone(),
    };
    let fits = |runs: &Runs| runs_width(runs) <= cells;
    let found = ways.iter().map(with).find(fits).or_else(|| ways.iter().find(|way| fits(way)).cloned());
    found.or_else(|| Some(prepaid.into_iter().collect()).filter(fits)).unwrap_or_default()
}

/// What is left on an account and how long it lasts, in ever fewer cells.
fn account_money(scene: &Scene, name: &AccountName) -> Vec<Runs> {
    let left = balance(scene, name);
    let Some(account) = scene.account(name).filter(|_| !left.is_empty()) else { return Vec::new() };
    let bare = account.balance.as_ref().map(|balance| format::money(balance.value.cash, scene.look.glyphs));
    let bare: Runs = bare.into_iter().map(|money| run(money, left[0].role)).collect();
    let Some(runway) = runway::runway(&scene.state.world.fleet, account) else { return vec![left, bare] };
    let comma = dim(scene.look.language.word(Word::Comma));
    let briefly = |money: &Run| vec![money.clone(), comma.clone(), header::lasts_briefly(scene, &runway)];
    let full = [left.clone(), vec![dim("   "), header::lasts(scene, &runway)]].concat();
    vec![full, briefly(&left[0]), briefly(&bare[0]), bare]
}

/// What is left on all accounts of a provider; nothing where one of them does not tell.
fn provider_money(scene: &Scene, provider: &ProviderName) -> Vec<Runs> {
    let accounts = scene.state.world.fleet.accounts.iter().filter(|account| account.provider == *provider);
    let balances: Option<Vec<Money>> =
        accounts.map(|account| account.balance.as_ref().map(|balance| balance.value.cash)).collect();
    let Some(balances) = balances else { return Vec::new() };
    let mut sums: Vec<Money> = Vec::new();
    for cash in balances {
        match sums.iter_mut().find(|sum| sum.currency == cash.currency) {
            Some(sum) => sum.amount += cash.amount,
            None => sums.push(cash),
        }
    }
    let told: Vec<String> = sums.into_iter().map(|sum| format::money(sum, scene.look.glyphs)).collect();
    let told = told.join(" + ");
    if told.is_empty() {
        return Vec::new();
    }
    vec![vec![plain(scene.look.language.phrase(&Phrase::Left { money: &told }))], vec![plain(told)]]
}

/// How old the oldest figures of a group are, when some of them are not of now.
fn oldest(scene: &Scene, accounts: &[AccountName]) -> Runs {
    let stale = accounts.iter().filter(|name| scene.is_old(name));
    let oldest = stale.min_by_key(|name| scene.account(name).and_then(|account| account.as_of));
    oldest.map(|name| freshness(scene, name)).unwrap_or_default()
}

/// What a group has in common, in words.
pub fn group_title(scene: &Scene, key: &GroupKey) -> String {
    let language = scene.look.language;
    match key {
        GroupKey::Account(account) => scene.account_title(account),
        GroupKey::Provider(provider) => provider.to_string(),
        GroupKey::Project(Some(project)) => project.clone(),
        GroupKey::Project(None) => language.word(Word::NoProject).to_owned(),
        GroupKey::Market(market) => language.market(*market).to_owned(),
    }
}

/// How old an account's figures are, and what keeps them from being newer.
pub fn freshness(scene: &Scene, name: &AccountName) -> Runs {
    let language = scene.look.language;
    let Some(account) = scene.account(name) else { return Runs::new() };
    let mut runs = Runs::new();
    let age = account.as_of.map(|as_of| scene.since(as_of));
    let word = |freshness| language.freshness(freshness);
    let freshness = scene.freshness(name);
    let text = match (freshness, age) {
        (Freshness::Fresh, Some(age)) => (language.phrase(&Phrase::Ago { age: &age }), Role::Dim),
        (Freshness::Never, _) | (_, None) => (word(Freshness::Never).to_owned(), Role::Dim),
        (Freshness::Partial, Some(age)) => (format!("{} {age}", word(freshness)), Role::Plain),
        (Freshness::Stale, Some(age)) => (format!("{} {age}", word(freshness)), Role::Plain),
        (Freshness::Failed, Some(age)) => (format!("{} {age}", word(freshness)), Role::Urgent),
    };
    runs.push(run(format!("   {}", text.0), text.1));
    if let Some(asked) = account.pacing.in_flight
        && scene.now.duration_since(asked).as_secs() >= ASKING_LONG
    {
        runs.push(dim(format!("   {}", language.phrase(&Phrase::AskingFor { age: &scene.since(asked) }))));
    }
    if account.read_only {
        runs.push(run(format!("   {}", language.word(Word::ReadOnlyAccount)), Role::Accent));
    }
    runs
}

/// What is left on an account.
pub fn balance(scene: &Scene, name: &AccountName) -> Runs {
    let language = scene.look.language;
    let Some(balance) = scene.account(name).and_then(|account| account.balance.as_ref()) else { return Runs::new() };
    let cash = balance.value.cash;
    let role = if cash.amount.is_sign_negative() && !cash.amount.is_zero() { Role::Urgent } else { Role::Plain };
    let mut runs = vec![run(language.phrase(&Phrase::Left { money: &format::money(cash, scene.look.glyphs) }), role)];
    if let Some(voucher) = balance.value.voucher.filter(|voucher| !voucher.amount.is_zero()) {
        let text = language.phrase(&Phrase::Voucher { money: &format::money(voucher, scene.look.glyphs) });
        runs.push(dim(format!(" + {text}")));
    }
    let old = scene.now.duration_since(balance.as_of).as_secs() > 300;
    if old {
        let as_of = language.phrase(&Phrase::Old { age: &scene.since(balance.as_of) });
        runs.push(dim(format!("  {as_of}")));
    }
    runs
}
