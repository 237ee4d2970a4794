//! More about the line under the cursor: below the list, or at the side where there is room.

use providers::model::{AccountName, Action, Instance, Market, Phase, ResourceKind, StorageItem};
use providers::money::Burn;
use ratatui::layout::Rect;

use super::deeds::{ACTION_CELLS, action_line, action_parts, first_action, save_line};
use super::fleet;
use super::format;
use super::header;
use super::paint::{Paint, Run, Runs, dim, plain, run, runs_width, wrap};
use super::saving;
use super::scene::{Scene, name_of};
use super::text::{Phrase, Word};
use super::theme::Role;
use super::usage;
use crate::app::listing::Line;
use crate::app::rows::{self, GroupKey};
use crate::rules::alerts::Alert;
use crate::rules::fleet::Known;
use crate::rules::runway;
use crate::rules::saga::Operation;
use crate::rules::spend::Exact;

/// From so many rows on there is room for more than what stop and release do.
const ROOMY: usize = 9;

/// Below the list: a rule and few lines.
pub fn below(paint: &mut Paint, scene: &Scene, area: Rect) {
    let room = Rect::new(area.x + 1, area.y + 1, area.width.saturating_sub(2), area.height.saturating_sub(1));
    let rows = usize::from(room.height);
    let wrapped = |lines: &[Runs]| lines.iter().flat_map(|line| wrap(line, room.width, 2)).collect();
    let lines = match subject(scene) {
        Subject::Nothing => return,
        Subject::Budget => {
            paint.rule(area.x, area.y, area.width);
            return super::budgets::paint_chart(paint, scene, room);
        }
        Subject::Alert(alert) => wrapped(&super::alerts::in_full(scene, alert)),
        Subject::Instance(known) => instance_below(scene, known, room.width, rows),
        Subject::Group(key) => group_lines(scene, key),
        Subject::Storage(known) => super::storage::details(scene, known),
        Subject::Operation(operation) => wrapped(&super::activity::operation_lines(scene, operation)),
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
        Subject::Budget => return super::budgets::paint_chart(paint, scene, room),
        Subject::Alert(alert) => super::alerts::in_full(scene, alert),
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
    /// The one under the cursor.
    Budget,
    Alert(&'a Alert),
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
        Some(Line::Budget(_)) => Subject::Budget,
        Some(Line::Alert(..)) => super::alerts::here(scene).map_or(Subject::Nothing, Subject::Alert),
        Some(Line::Spend(_)) | None => Subject::Nothing,
    }
}

fn instance_below(scene: &Scene, known: &Known<Instance>, width: u16, rows: usize) -> Vec<Runs> {
    let (mut head, facts) = (title(scene, known), separated(scene, facts(scene, known)));
    let mut lines = if runs_width(&head) + 3 + runs_width(&facts) <= width {
        head.push(plain("   "));
        head.extend(facts);
        vec![head]
    } else {
        vec![head, facts]
    };
    if let Some(operation) = scene.operation(&known.identity).filter(|operation| operation.is_saving()) {
        return saving_below(scene, known, operation, lines, width, rows);
    }
    let mut actions =
        vec![action_line(scene, known, first_action(scene, known)), action_line(scene, known, Action::Release)];
    if rows >= ROOMY {
        actions.extend(save_line(scene, known));
        actions.extend(last_saved(scene, known));
    }
    let wanted: usize = actions.iter().map(|action| wrap(action, width, ACTION_CELLS).len()).sum();
    // A row for the cost and one for each action are kept free whatever comes before. What an action does goes before
    // the machine around the cards, but not before the cards.
    let most = rows.saturating_sub(lines.len() + 1 + actions.len());
    let room = rows.saturating_sub(lines.len() + 1 + wanted).max(2).min(most);
    lines.extend(use_below(scene, known, width, room));
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
        let wrapped = cut_to(wrap(&action, width, ACTION_CELLS), spare + 1);
        spare -= wrapped.len() - 1;
        lines.extend(wrapped);
    }
    lines
}

/// While it is brought to safety: how far that is, then what it does.
fn saving_below(
    scene: &Scene,
    known: &Known<Instance>,
    operation: &Operation,
    mut lines: Vec<Runs>,
    width: u16,
    rows: usize,
) -> Vec<Runs> {
    let told = saving::in_full(scene, operation);
    lines.extend(told.iter().flat_map(|line| cut_to(wrap(line, width, 2), 2)));
    let room = rows.saturating_sub(lines.len());
    lines.extend(use_below(scene, known, width, room));
    lines
}

/// Whether it works and why, its cards, the machine around them and the stream that tells it: the most that has room
/// in so many lines, in the order of what somebody has to know.
fn use_below(scene: &Scene, known: &Known<Instance>, width: u16, room: usize) -> Vec<Runs> {
    let usage = scene.usage(known).filter(|usage| !usage.gpus.is_empty() || usage.cpu.is_some());
    // One line is left for the cards.
    let told = room.saturating_sub(usize::from(usage.is_some())).max(1);
    let mut lines: Vec<Runs> = Vec::new();
    for line in usage::status(scene, known, width) {
        let left = told.saturating_sub(lines.len());
        if left > 0 {
            lines.extend(cut_to(wrap(&line, width, 2), left));
        }
    }
    lines.truncate(room);
    let Some(usage) = usage else {
        let left = room.saturating_sub(lines.len());
        if let Some(link) = usage::link(scene, known).filter(|_| left > 0) {
            lines.extend(cut_to(wrap(&link, width, 2), left));
        }
        return lines;
    };
    let mut left = room.saturating_sub(lines.len());
    let mut host = separated(scene, usage::host(scene, usage));
    if !host.is_empty() {
        host.push(plain("   "));
    }
    host.extend(usage::span(scene, usage));
    let link = usage::link(scene, known);
    let mounts = usage::mounts(scene, usage, 3);
    // Each of these has a line where the cards leave one.
    let around: Vec<Runs> = [Some(host), link, mounts].into_iter().flatten().collect();
    let kept = around.len().min(left.saturating_sub(usage::lines_wanted(usage)));
    left -= kept;
    lines.extend(usage::cards(scene, known, usage, width, left));
    let free = room.saturating_sub(lines.len());
    lines.extend(around.into_iter().take(free));
    lines
}

/// At most so many of wrapped lines, the rest in the last of them: it is cut there, with a mark.
fn cut_to(mut wrapped: Vec<Runs>, most: usize) -> Vec<Runs> {
    if wrapped.len() > most && most > 0 {
        let rest = wrapped.split_off(most - 1);
        wrapped.push(one_line(rest));
    }
    wrapped
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
    let mut lines = vec![vec![run(name_of(known), Role::Strong)]];
    lines.push(vec![dim(scene.whereabouts(known))]);
    lines.push(Runs::new());
    lines.extend(facts(scene, known).into_iter().map(|fact| vec![fact]));
    lines.extend(belongings(scene, known));
    lines.extend(from_use_on(scene, known, width, false));
    lines
}

/// All that is known of an instance, for a window of its own.
pub fn in_full(scene: &Scene, known: &Known<Instance>, width: u16) -> Vec<Runs> {
    let mut lines = vec![separated(scene, facts(scene, known))];
    lines.extend(belongings(scene, known));
    lines.extend(from_use_on(scene, known, width, true));
    lines
}

/// Its project, how to reach it, its labels.
fn belongings(scene: &Scene, known: &Known<Instance>) -> Vec<Runs> {
    let mut lines = Vec::new();
    if let Some(project) = rows::project_of(&scene.state.world, known) {
        lines.push(labelled(scene, Word::AssignProject, vec![plain(project)]));
    }
    if let Some(ssh) = &known.row.ssh {
        // As it is copied, for where nothing can be.
        lines.push(vec![plain(ssh.command_line())]);
    }
    if !known.row.labels.is_empty() {
        let labels: Vec<String> = known.row.labels.iter().map(|(label, value)| format!("{label}={value}")).collect();
        lines.push(labelled(scene, Word::Labels, vec![plain(labels.join(" "))]));
    }
    lines
}

/// What it does, what it costs, and what can be done.
fn from_use_on(scene: &Scene, known: &Known<Instance>, width: u16, window: bool) -> Vec<Runs> {
    let language = scene.look.language;
    let mut lines = Vec::new();
    for part in [usage::status(scene, known, u16::MAX), usage::in_full(scene, known, width, window)] {
        if !part.is_empty() {
            lines.push(Runs::new());
            lines.extend(part);
        }
    }
    match scene.operation(&known.identity).filter(|operation| operation.is_saving()) {
        Some(operation) => {
            lines.push(Runs::new());
            lines.extend(saving::in_full(scene, operation));
        }
        None => lines.extend(last_saved(scene, known)),
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
    if !known.row.rates.complete && !known.row.rates.lines.is_empty() {
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
    if let Some(line) = save_line(scene, known) {
        lines.push(Runs::new());
        lines.push(line);
    }
    lines
}

/// When it was last brought to safety, what that holds and where it is; `None` where it never was.
fn last_saved(scene: &Scene, known: &Known<Instance>) -> Option<Runs> {
    let last = saving::last(scene, &known.identity)?;
    let label = scene.look.language.word(Word::LastSaved);
    let mut line = vec![dim(format!("{label}  ")), plain(last)];
    line.extend(saving::place(scene, &known.identity).map(|place| dim(format!("   {place}"))));
    Some(line)
}

pub fn labelled(scene: &Scene, word: Word, mut runs: Runs) -> Runs {
    runs.insert(0, dim(format!("{}  ", scene.look.language.word(word))));
    runs
}

/// Name and whereabouts.
fn title(scene: &Scene, known: &Known<Instance>) -> Runs {
    vec![run(name_of(known), Role::Strong), dim(format!("  {}", scene.whereabouts(known)))]
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
    let role = if phase == Phase::Running { Role::Plain } else { scene.phase_sign(known).role };
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

fn total_cost(scene: &Scene, known: &Known<Instance>) -> Runs {
    let language = scene.look.language;
    let rates = known.rates();
    let mut runs = vec![dim(format!("{}  ", language.word(Word::Costs)))];
    let about = if rates.estimated() { "~" } else { "" };
    match scene.total(&rates.upper(), !rates.complete) {
        Some(total) => runs.push(run(format!("{about}{total}"), Role::Strong)),
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
        let money = |amount: Exact| format::spent_money(amount.amount(), *currency, scene.look.glyphs);
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
