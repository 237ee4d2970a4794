//! Guards: what they are called for by, what people say to that, and what they do.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use providers::model::{AccountName, Action, Identity, Instance, Phase};
use providers::money::{Burn, Rate};

use super::findings::{is_heard, is_told, sum_in};
use super::world::{advance, launch};
use crate::app::effect::Effect;
use crate::app::state::World;
use crate::rules::alerts::{Finding, Matter};
use crate::rules::fleet::{Account, Known};
use crate::rules::guard::{
    self, Cause, Condition, Course, Guard, Mode, Seen, Sign, Stage, Verdict, Veto, Watch, Way, judge,
};
use crate::rules::plan::{Basis, Hindrance, Plan, shown_name};
use crate::rules::runway::runway_at;
use crate::rules::saga::{Confirmed, Input, Step, confirm};
use crate::rules::usage;

/// How often the ledger is asked for vetoes while somebody may have one to say.
const ASK: SignedDuration = SignedDuration::from_secs(5);

/// A countdown has run out, or the ledger is to be asked again whether it is forbidden.
pub(super) fn wants_a_look(world: &World, now: Timestamp) -> bool {
    let ran_out = |watch: &Watch| matches!(watch.stage, Stage::Counting { until, .. } if until <= now);
    world.guarding.watches.values().any(ran_out) && asks_again(world, now)
}

fn asks_again(world: &World, now: Timestamp) -> bool {
    world.guarding.asked_at.is_none_or(|at| !(SignedDuration::ZERO..ASK).contains(&now.duration_since(at)))
}

/// When the next countdown runs out.
pub(super) fn next_wake(world: &World, now: Timestamp) -> Option<Timestamp> {
    let end = |watch: &Watch| match watch.stage {
        Stage::Counting { until, .. } if until > now => Some(until),
        _ => None,
    };
    world.guarding.watches.values().filter_map(end).min().filter(|_| world.collects())
}

/// Takes over what the ledger knew.
pub(super) fn remember(world: &mut World, watches: Vec<Watch>, vetoes: Vec<(Identity, Veto)>) {
    let key = |watch: Watch| ((watch.guard.clone(), watch.identity.clone()), watch);
    world.guarding.watches = watches.into_iter().map(key).collect();
    world.guarding.vetoes = vetoes.into_iter().collect();
    (world.guarding.asked_at, world.guarding.answered_at) = (None, None);
}

/// What people forbid guards, by the ledger.
pub(super) fn vetoes_recalled(world: &mut World, asked_at: Timestamp, vetoes: Vec<(Identity, Veto)>) {
    for (identity, veto) in vetoes {
        let own = world.guarding.vetoes.get(&identity);
        // What was said here may not be written down yet.
        if own.is_none_or(|own| own.said_at <= veto.said_at) {
            world.guarding.vetoes.insert(identity, veto);
        }
    }
    world.guarding.answered_at = Some(asked_at);
    world.alerting.looked_at = None;
}

/// Somebody forbids guards to act on some machines.
pub(super) fn veto(world: &mut World, identities: Vec<Identity>, now: Timestamp) -> Vec<Effect> {
    let veto = Veto { said_at: now, until: None, by: world.by.clone() };
    // What it is about is seen to at once.
    world.alerting.looked_at = None;
    let effect = |identity: Identity| {
        world.guarding.vetoes.insert(identity.clone(), veto.clone());
        Effect::KeepVeto { identity, veto: veto.clone() }
    };
    identities.into_iter().map(effect).collect()
}

/// Looks for what guards are called for by, and does what follows.
pub(super) fn look(world: &mut World, now: Timestamp) -> Vec<Effect> {
    if world.guarding.rules.is_empty() && world.guarding.watches.is_empty() {
        return Vec::new();
    }
    let mut changes = Vec::new();
    let mut asks = false;
    for guard in &world.guarding.rules {
        let whole = Whole::of(world, guard, now);
        for known in world.fleet.instances.values().filter(|known| !known.is_gone()) {
            let key = (guard.name.clone(), known.identity.clone());
            let watch = world.guarding.watches.get(&key);
            let Some(account) = world.fleet.account(&known.identity.account) else { continue };
            let sign = whole.sign(world, known, account, now);
            // Most machines give no guard any cause.
            if watch.is_none() && !matches!(sign, Sign::Holds(_)) {
                continue;
            }
            let verdict = judge(watch, seen(world, guard, known, account, watch, &sign, now), now);
            asks |= verdict == Verdict::Ask;
            if !matches!(verdict, Verdict::Stay | Verdict::Ask) {
                changes.push(Change { guard: guard.clone(), key, verdict, cause: cause_of(sign) });
            }
        }
    }
    let before = world.guarding.watches.clone();
    forget_gone(world);
    let mut after = Vec::new();
    for change in changes {
        after.extend(carry_out(world, change, now));
    }
    let may_be_told = |watch: &Watch| watch.can_be_vetoed() || matches!(watch.stage, Stage::Vetoed);
    asks |= world.guarding.watches.values().any(may_be_told);
    let mut effects = Vec::new();
    if world.guarding.watches != before {
        world.changed = true;
        // On disk before what it led to.
        effects.push(Effect::KeepWatches(world.guarding.watches.values().cloned().collect()));
    }
    effects.extend(after);
    if asks && asks_again(world, now) {
        world.guarding.asked_at = Some(now);
        effects.push(Effect::RecallVetoes { asked_at: now });
    }
    effects
}

/// What follows for one machine of a guard.
struct Change {
    guard: Guard,
    key: (String, Identity),
    verdict: Verdict,
    cause: Option<Cause>,
}

fn cause_of(sign: Sign) -> Option<Cause> {
    match sign {
        Sign::Holds(cause) => Some(cause),
        Sign::Over | Sign::Unknown => None,
    }
}

/// Guards that are no longer in the config, and machines that are gone.
fn forget_gone(world: &mut World) {
    let World { guarding, fleet, .. } = world;
    guarding.watches.retain(|(guard, identity), _| {
        guarding.rules.iter().any(|rule| rule.name == *guard)
            && fleet.instances.get(identity).is_some_and(|known| !known.is_gone())
    });
}

/// What a condition says of more than one machine.
enum Whole {
    /// Each is looked at by itself: idle for so long.
    Each(SignedDuration),
    All(Sign),
    Accounts(BTreeMap<AccountName, Sign>),
}

impl Whole {
    fn of(world: &World, guard: &Guard, now: Timestamp) -> Self {
        match &guard.on {
            Condition::Idle { after } => Whole::Each(*after),
            Condition::Budget { name, percent } => Whole::All(spent(world, name, *percent, now)),
            Condition::Burn { above } => Whole::All(burn(world, guard, *above, now)),
            Condition::Runway { below } => {
                let sign = |account: &Account| (account.name.clone(), runway(world, account, *below, now));
                Whole::Accounts(world.fleet.accounts.iter().map(sign).collect())
            }
        }
    }

    /// What is so of one machine.
    fn sign(&self, world: &World, known: &Known<Instance>, account: &Account, now: Timestamp) -> Sign {
        let is_known = is_heard(world, account, now)
            && is_told(known, account)
            && !matches!(known.phase(), Phase::Unknown | Phase::Unreachable);
        let of_more = match self {
            Whole::Each(after) if is_known => return idle(world, known, *after, now),
            Whole::Each(_) => return Sign::Unknown,
            Whole::All(sign) => Some(sign),
            Whole::Accounts(signs) => signs.get(&account.name),
        };
        match of_more {
            Some(Sign::Holds(_)) if !is_known => Sign::Unknown,
            Some(sign) => sign.clone(),
            None => Sign::Unknown,
        }
    }
}

fn idle(world: &World, known: &Known<Instance>, after: SignedDuration, now: Timestamp) -> Sign {
    if known.phase() != Phase::Running {
        return Sign::Over;
    }
    let Some(gauge) = world.gauges.get(&known.identity).filter(|gauge| gauge.judged_at.is_some()) else {
        return Sign::Unknown;
    };
    match (gauge.idleness.verdict, gauge.idleness.since) {
        (usage::Verdict::Idle, Some(since)) if now.duration_since(since) >= after => Sign::Holds(Cause::Idle { since }),
        (usage::Verdict::Unknown, _) | (usage::Verdict::Idle, None) => Sign::Unknown,
        _ => Sign::Over,
    }
}

fn spent(world: &World, name: &str, percent: u32, now: Timestamp) -> Sign {
    let Some((budget, Some(standing))) = world.budgets.get(name) else { return Sign::Unknown };
    // Of the term before nobody can tell what is spent in this one.
    if standing.term != budget.term(now) {
        return Sign::Unknown;
    }
    match standing.percent(budget.limit.amount) {
        spent if spent >= percent => Sign::Holds(Cause::Budget { name: name.to_owned(), percent: spent }),
        _ => Sign::Over,
    }
}

/// What a guard is for, by what is certainly charged: what is not heard may only make it more.
fn burn(world: &World, guard: &Guard, above: Rate, now: Timestamp) -> Sign {
    let mut burn = Burn::default();
    let mut is_complete = true;
    let heard: BTreeMap<&AccountName, (&Account, bool)> = (world.fleet.accounts.iter())
        .map(|account| (&account.name, (account, is_heard(world, account, now))))
        .collect();
    for known in world.fleet.instances.values().filter(|known| !known.is_gone()) {
        let Some((account, is_heard)) = heard.get(&known.identity.account) else { continue };
        if !guard.scope.takes(&world.thing(&account.provider, known)) {
            continue;
        }
        if *is_heard && is_told(known, account) {
            known.rates().certain().rates().iter().for_each(|rate| burn.add(*rate));
        } else {
            is_complete = false;
        }
    }
    let sum = sum_in(&world.alerting.exchange, above.currency, &burn);
    match Rate::per_hour(sum, above.currency) {
        Some(burn) if burn.amount() > above.amount() => Sign::Holds(Cause::Burn { burn, above }),
        Some(_) if is_complete => Sign::Over,
        _ => Sign::Unknown,
    }
}

fn runway(world: &World, account: &Account, below: SignedDuration, now: Timestamp) -> Sign {
    if account.balance.is_none() || account.balance_error.is_some() {
        return Sign::Unknown;
    }
    match runway_at(account, &world.fleet.burn_of(&account.name)).and_then(|runway| runway.ends_at) {
        Some(ends_at) if ends_at.duration_since(now) < below => {
            Sign::Holds(Cause::Runway { account: account.name.clone(), ends_at })
        }
        _ => Sign::Over,
    }
}

/// It is this process that acts for a guard, and does not only propose.
fn acts(world: &World, guard: &Guard) -> bool {
    guard.mode == Mode::Enforce && !world.one_shot && (guard.on_screen || !world.alerting.on_screen)
}

/// A guard is for a machine, which is ours to act on.
fn is_for(world: &World, guard: &Guard, known: &Known<Instance>, account: &Account) -> bool {
    let thing = world.thing(&account.provider, known);
    // Only what counts for a budget is acted on when that is spent.
    let counts = match &guard.on {
        Condition::Budget { name, .. } => {
            world.budgets.rules.iter().any(|budget| budget.name == *name && budget.scope.takes(&thing))
        }
        _ => true,
    };
    counts
        && guard.scope.takes(&thing)
        && world.may_be_acted_on(&account.provider, known)
        && !guard.is_kept_away(&known.row)
}

fn seen<'a>(
    world: &'a World,
    guard: &Guard,
    known: &Known<Instance>,
    account: &Account,
    watch: Option<&Watch>,
    sign: &'a Sign,
    now: Timestamp,
) -> Seen<'a> {
    let identity = &known.identity;
    let since = watch.map_or(now, |watch| watch.since);
    let own = watch.and_then(|watch| match watch.stage {
        Stage::Acting { op, .. } => Some(op),
        _ => None,
    });
    let course = match own.and_then(|op| world.operations.get(&op)).map(|operation| (operation, &operation.step)) {
        None => Course::None,
        Some((_, Step::Ended { outcome, .. })) => Course::Ended(outcome),
        Some((operation, _)) => Course::UnderWay { can_be_taken_back: operation.can_be_taken_back() },
    };
    Seen {
        sign,
        allowed: is_for(world, guard, known, account),
        ready: known.phase() == Phase::Running && world.is_free_for(guard.action, identity),
        vetoed: world.guarding.vetoes.get(identity).is_some_and(|veto| veto.holds(since, now)),
        acts: acts(world, guard),
        asked_at: world.guarding.answered_at,
        course,
    }
}

fn carry_out(world: &mut World, change: Change, now: Timestamp) -> Vec<Effect> {
    let Change { guard, key, verdict, cause } = change;
    match verdict {
        Verdict::Stay | Verdict::Ask => Vec::new(),
        Verdict::Forget => {
            world.guarding.watches.remove(&key);
            Vec::new()
        }
        Verdict::Turn(stage) => {
            turn(world, key, cause, stage, now);
            Vec::new()
        }
        Verdict::Begin => {
            let stage = match planned(world, now, |basis| guard::way(basis, guard.action, &key.1)) {
                Ok(plan) => Stage::Counting { until: now + guard.countdown, way: Way::of(&plan) },
                Err(why) => Stage::Barred { why },
            };
            turn(world, key, cause, stage, now);
            Vec::new()
        }
        Verdict::Act => match planned(world, now, |basis| guard::way(basis, guard.action, &key.1)) {
            Ok(plan) => act(world, &guard, key, cause, plan, now),
            Err(why) => {
                turn(world, key, cause, Stage::Barred { why }, now);
                Vec::new()
            }
        },
        Verdict::StopInstead(failed) => match planned(world, now, |basis| guard::stop_instead(basis, &key.1)) {
            Ok(plan) => act(world, &guard, key, cause, plan, now),
            Err(_) => {
                turn(world, key, cause, failed, now);
                Vec::new()
            }
        },
        Verdict::TakeBack => match world.guarding.watches.get(&key).map(|watch| &watch.stage) {
            Some(Stage::Acting { op, .. }) => {
                let op = *op;
                advance(world, op, Input::TakeBack, now)
            }
            _ => Vec::new(),
        },
    }
}

/// A plan for one machine, as it is now.
fn planned(
    world: &World,
    now: Timestamp,
    make: impl FnOnce(Basis<'_>) -> Result<Plan, Hindrance>,
) -> Result<Plan, Hindrance> {
    // What gives way to a stop gives way to a release.
    let under_way = world.busy(Action::Stop);
    make(world.basis(&under_way, now))
}

/// Begins what a plan says.
fn act(
    world: &mut World,
    guard: &Guard,
    key: (String, Identity),
    cause: Option<Cause>,
    plan: Plan,
    now: Timestamp,
) -> Vec<Effect> {
    // A plan that asks for a name is none that a guard may begin.
    let Confirmed::Yes(authority) = confirm(&plan, None) else { return Vec::new() };
    let way = Way::of(&plan);
    let Some(target) = plan.targets.into_iter().next() else { return Vec::new() };
    let by = format!("guard {}", guard.name);
    let (op, effects) = launch(world, plan.action, target, authority, by, now);
    turn(world, key, cause, Stage::Acting { op, way }, now);
    effects
}

/// Brings a watch to a stage, and begins one where there is none.
fn turn(world: &mut World, key: (String, Identity), cause: Option<Cause>, stage: Stage, now: Timestamp) {
    let World { guarding, fleet, .. } = world;
    let Some(known) = fleet.instances.get(&key.1) else { return };
    let name = shown_name(known.row.name.as_deref(), &known.identity.id);
    if let Some(watch) = guarding.watches.get_mut(&key) {
        // Begun anew after nothing was sent.
        watch.tries += u32::from(matches!((&watch.stage, &stage), (Stage::Acting { .. }, Stage::Counting { .. })));
        watch.name = name;
        watch.cause = cause.unwrap_or_else(|| watch.cause.clone());
        watch.stage = stage;
        return;
    }
    let Some(cause) = cause else { return };
    let (guard, identity) = key.clone();
    guarding.watches.insert(key, Watch { guard, identity, name, cause, since: now, tries: 0, stage });
}

/// What guards are called for by, as far as somebody should know it.
pub(super) fn findings(world: &World) -> impl Iterator<Item = Finding> {
    world.guarding.watches.values().filter_map(|watch| {
        let guard = world.guarding.rules.iter().find(|guard| guard.name == watch.guard)?;
        Some(Finding::now(Matter::Guard {
            identity: watch.identity.clone(),
            name: watch.name.clone(),
            guard: watch.guard.clone(),
            cause: watch.cause.clone(),
            warning: watch.warning(guard)?,
            rates: world.fleet.rates_of(&watch.identity).unwrap_or_default(),
        }))
    })
}

/// Machines on which a guard would act by itself, each with whether it would release it.
pub(super) fn promised(world: &World) -> BTreeMap<Identity, bool> {
    let mut promised = BTreeMap::new();
    for guard in world.guarding.rules.iter().filter(|guard| acts(world, guard)) {
        let running = world.fleet.instances.values().filter(|known| known.phase() == Phase::Running);
        for known in running {
            let account = world.fleet.account(&known.identity.account);
            if account.is_some_and(|account| is_for(world, guard, known, account)) {
                *promised.entry(known.identity.clone()).or_default() |= guard.action == Action::Release;
            }
        }
    }
    promised
}

#[cfg(test)]
#[path = "guards_tests.rs"]
mod tests;
