//! A month with thirty budgets, through `app::update` and a real ledger: what is told of them is exactly what a plain
//! sum over the true history says, however often the program ends, sleeps, or does not hear of an account.
//!
//! `BUDGET_SEEDS=1000 cargo test --test budget_month` goes through a thousand months.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use providers::error::{ErrorKind, ProviderError, RequestLine};
use providers::gpu::Gpus;
use providers::model::{Component, Granularity, Instance, Market, Offer, Offers, Phase, Rates, Refusal};
use providers::money::{Currency, Rate};
use providers::provider::{Part, Poll, Reading};
use rentop::app::event::WorldEvent;
use rentop::app::state::{Fixed, View, World};
use rentop::app::{self, Effect, Event, State};
use rentop::ledger::Ledger;
use rentop::rules::alerts::{Alert, Alerts, Matter, Told};
use rentop::rules::budgets::{Budget, Cycle, Quantity, Scope, Unit, findings};
use rentop::rules::fleet::Account;
use rentop::rules::matcher::{Glob, LabelPattern, Matcher};
use rentop::rules::memory::Collector;
use rentop::rules::settings::{ProjectRule, Rules};
use rentop::rules::spend::{Exchange, Fx, Period, Summed};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

const HOUR: i64 = 3_600_000;
const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * HOUR;
/// Accounts, each with its provider and currency.
const ACCOUNTS: [(&str, &str, Currency); 5] = [
    ("team", "runpod", Currency::USD),
    ("lab", "runpod", Currency::USD),
    ("solo", "vast", Currency::USD),
    ("spare", "vast", Currency::USD),
    ("east", "autodl", Currency::CNY),
];
const ZONES: [&str; 5] = ["UTC", "America/New_York", "Europe/Berlin", "Asia/Shanghai", "Australia/Lord_Howe"];
/// So many dollars are a yuan: eight yuan are a dollar, without a rest.
const YUAN: &str = "0.125";

struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn between(&mut self, least: i64, most: i64) -> i64 {
        least + (self.next() % (most - least + 1) as u64) as i64
    }

    fn chance(&mut self, percent: i64) -> bool {
        self.between(0, 99) < percent
    }

    fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.between(0, choices.len() as i64 - 1) as usize].clone()
    }
}

fn time(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(ms).unwrap()
}

/// A machine as it truly is, and was.
struct Machine {
    account: usize,
    id: String,
    team: &'static str,
    gpus: u32,
    prepaid: bool,
    ends_at: Option<i64>,
    /// In 1e-12 an hour; `None` while it is stopped and costs nothing.
    rate: Option<i64>,
    /// Since when it is.
    since: i64,
    /// What it cost before: from, to, rate.
    past: Vec<(i64, i64, i64)>,
}

impl Machine {
    fn turn(&mut self, rate: Option<i64>, now: i64) {
        if let Some(rate) = self.rate {
            self.past.push((self.since, now, rate));
        }
        (self.rate, self.since) = (rate, now);
    }

    fn row(&self) -> Instance {
        let (_, _, currency) = ACCOUNTS[self.account];
        let no = || Offer::No(Refusal::NotOffered);
        let rates = self
            .rate
            .map_or(Rates::known(), |rate| Rates::known().with(Component::Compute, Rate::from_picos(rate, currency)));
        Instance {
            id: self.id.as_str().into(),
            name: Some(self.id.clone()),
            phase: if self.rate.is_some() { Phase::Running } else { Phase::Stopped },
            provider_phase: None,
            note: None,
            remarks: vec![],
            market: if self.prepaid { Market::Reserved { until: None } } else { Market::OnDemand },
            gpus: Some(Gpus::parse("RTX 4090", Some(self.gpus), None)),
            rates,
            created_at: None,
            started_at: None,
            stopped_at: None,
            granularity: Granularity::Exact,
            repricing: None,
            ends_at: self.ends_at.map(time),
            at_zero: Default::default(),
            usage: None,
            ssh: None,
            region: None,
            labels: [("team".to_owned(), self.team.to_owned())].into(),
            mounts: vec![],
            offers: Offers { stop: no(), start: no(), restart: no(), release: no() },
            page: None,
        }
    }
}

/// What is true, and how it is added up: an eighth of a 1e-12 dollar an hour (1e-12 yuan) times milliseconds, or
/// GPU-milliseconds.
struct Truth {
    machines: Vec<Machine>,
}

impl Truth {
    fn takes(&self, budget: &Budget, machine: &Machine) -> bool {
        let (account, provider, _) = ACCOUNTS[machine.account];
        let Scope { provider: of_provider, account: of_account, project, instance, label } = &budget.scope;
        // Vision's machines are the project `see`, all others belong to none.
        of_provider.as_ref().is_none_or(|wanted| wanted.as_str() == provider)
            && of_account.as_ref().is_none_or(|wanted| wanted.as_str() == account)
            && project.is_none() | (machine.team == "vision")
            && instance.is_none() | machine.id.ends_with('1')
            && label.is_none() | (machine.team == "audio")
    }

    /// What a machine's rate counts a millisecond.
    fn weight(budget: &Budget, machine: &Machine, rate: i64) -> i128 {
        match budget.limit.unit {
            Unit::GpuHours => machine.gpus.into(),
            Unit::Money(_) if machine.prepaid => 0,
            Unit::Money(_) if ACCOUNTS[machine.account].2 == Currency::CNY => rate.into(),
            Unit::Money(_) => i128::from(rate) * 8,
        }
    }

    fn spent(&self, budget: &Budget, from: i64, at: i64) -> i128 {
        let mut sum = 0;
        for machine in self.machines.iter().filter(|machine| self.takes(budget, machine)) {
            let open = machine.rate.map(|rate| (machine.since, i64::MAX, rate));
            for (start, end, rate) in machine.past.iter().copied().chain(open) {
                sum += i128::from((end.min(at) - start.max(from)).max(0)) * Self::weight(budget, machine, rate);
            }
        }
        sum
    }

    /// What will be spent by the end of a term, and whether anything burns.
    fn forecast(&self, budget: &Budget, from: i64, now: i64, to: i64) -> Option<i128> {
        let mut more = 0;
        let mut burns = false;
        for machine in self.machines.iter().filter(|machine| self.takes(budget, machine)) {
            let Some(rate) = machine.rate else { continue };
            let end = machine.ends_at.filter(|end| *end > now).map_or(to, |end| end.min(to));
            let weight = Self::weight(budget, machine, rate);
            burns |= weight > 0;
            more += weight * i128::from((end - now.max(from)).max(0));
        }
        burns.then(|| self.spent(budget, from, now) + more)
    }
}

/// So many percent of a limit, as the truth counts.
fn line(budget: &Budget, percent: u32) -> i128 {
    // Limits are whole hundredths.
    let hundredths = (budget.limit.amount * Decimal::ONE_HUNDRED).to_i128().unwrap() * i128::from(percent);
    match budget.limit.unit {
        Unit::GpuHours => hundredths * i128::from(HOUR) / 10_000,
        Unit::Money(Currency::CNY) => hundredths * 100_000_000 * i128::from(HOUR),
        Unit::Money(_) => hundredths * 800_000_000 * i128::from(HOUR),
    }
}

/// When a budget's present turn begins and ends, by its clocks; with its first day.
fn turn(budget: &Budget, now: i64) -> (i64, i64, Option<Date>) {
    let zone = &budget.zone;
    let start = |day: Date| zone.to_timestamp(day.at(0, 0, 0, 0)).unwrap().as_millisecond();
    let mut first = zone.to_datetime(time(now)).date();
    let last = match budget.cycle {
        Cycle::Total => return (i64::MIN / 4, i64::MAX / 4, None),
        Cycle::Day => first + 1.day(),
        Cycle::Week => {
            while first.weekday() != Weekday::Monday {
                first -= 1.day();
            }
            first + 7.days()
        }
        Cycle::Month => {
            first = first.first_of_month();
            first.last_of_month() + 1.day()
        }
        Cycle::Dates(period) => {
            first = period.from;
            period.to
        }
    };
    (start(first), start(last), Some(first))
}

fn budgets(dice: &mut Dice, start: i64) -> Vec<Budget> {
    let one = |n: usize| {
        let cycle = match n % 5 {
            0 => Cycle::Day,
            1 => Cycle::Week,
            2 => Cycle::Month,
            3 => Cycle::Total,
            _ => {
                let from = TimeZone::UTC.to_datetime(time(start)).date() + dice.between(0, 15).days();
                Cycle::Dates(Period { from, to: from + dice.between(1, 14).days() })
            }
        };
        let all = Scope::default;
        let scope = match dice.between(0, 7) {
            0 | 1 => all(),
            2 => Scope { provider: Some("runpod".into()), ..all() },
            3 => Scope { account: Some(dice.of(&ACCOUNTS).0.into()), ..all() },
            4 => Scope { project: Some("see".to_owned()), ..all() },
            5 => Scope { instance: Some(Glob::new("*1")), ..all() },
            6 => Scope { label: LabelPattern::parse("team=audio"), ..all() },
            _ => Scope { provider: Some("vast".into()), project: Some("see".to_owned()), ..all() },
        };
        let unit = dice.of(&[
            Unit::Money(Currency::USD),
            Unit::Money(Currency::USD),
            Unit::Money(Currency::CNY),
            Unit::GpuHours,
        ]);
        let days = match cycle {
            Cycle::Day => 1,
            Cycle::Week => 7,
            Cycle::Month | Cycle::Total => 30,
            Cycle::Dates(period) => period.len() as i64,
        };
        let factor = if unit == Unit::Money(Currency::CNY) { 8 } else { 1 };
        let thresholds = dice.of(&[vec![50, 80, 100], vec![100], vec![10, 20, 30, 40, 90, 120], vec![80]]);
        Budget {
            name: format!("b{n}"),
            scope,
            cycle,
            limit: Quantity::new(Decimal::new(dice.between(500, 30_000) * days * factor, 2), unit),
            zone: TimeZone::get(dice.of(&ZONES)).unwrap(),
            thresholds,
            forecast: dice.of(&[None, Some(100), Some(80)]),
        }
    };
    (0..30).map(one).collect()
}

/// What is told: when, of which budget and term, and which line; `None` for its forecast.
type Line = (i64, String, Option<Date>, Option<u32>);

/// What ought to be told, by the truth.
#[derive(Default)]
struct Oracle {
    told: BTreeSet<(String, Option<Date>, u32)>,
    /// Since when a forecast is too high, and whether that was told.
    forecasts: BTreeMap<(String, Option<Date>), (i64, bool)>,
}

impl Oracle {
    fn look(&mut self, truth: &Truth, budget: &Budget, now: i64) -> Vec<Line> {
        let (from, to, first) = turn(budget, now);
        let spent = truth.spent(budget, from, now.min(to));
        let mut lines = Vec::new();
        let mut highest = None;
        for percent in &budget.thresholds {
            if spent > 0 && spent >= line(budget, *percent) && self.told.insert((budget.name.clone(), first, *percent))
            {
                highest = Some(*percent);
            }
        }
        lines.extend(highest.map(|percent| (now, budget.name.clone(), first, Some(percent))));
        let Some(percent) = budget.forecast else { return lines };
        let key = (budget.name.clone(), first);
        let has_end = first.is_some() && now < to;
        let forecast = truth.forecast(budget, from, now, to).filter(|_| has_end);
        let is_over = forecast.is_some_and(|sum| sum > line(budget, percent)) && spent < line(budget, 100);
        let is_nearly = forecast.is_some_and(|sum| sum * 100 >= line(budget, percent) * 95);
        let (since, told) = self.forecasts.get(&key).copied().unwrap_or((now, false));
        if !(is_over || told && is_nearly) {
            self.forecasts.remove(&key);
            return lines;
        }
        let is_told = told || now - since >= 5 * MINUTE;
        lines.extend((is_told && !told).then(|| (now, budget.name.clone(), first, None)));
        self.forecasts.insert(key, (since, is_told));
        lines
    }
}

/// The program.
struct Program {
    state: State,
    ledger: Ledger,
    rules: Vec<Budget>,
    alerts: Alerts,
    kept: BTreeMap<(String, Timestamp), Alert>,
    zone: TimeZone,
}

impl Program {
    fn new(rules: Vec<Budget>, zone: TimeZone, now: i64) -> Self {
        let mut ledger = Ledger::in_memory().unwrap();
        ledger.use_zone(zone.clone()).unwrap();
        while ledger.add_up_more().unwrap() {}
        let (alerts, kept) = (Alerts::default(), BTreeMap::new());
        Program { state: state(&rules, &zone, now), ledger, rules, alerts, kept, zone }
    }

    /// It ends, and begins with what was written down.
    fn restart(&mut self, truth: &Truth, from_text: bool, now: i64) {
        self.state = state(&self.rules, &self.zone, now);
        self.alerts = Alerts::default();
        if from_text {
            let text = serde_json::to_string(&self.kept.values().collect::<Vec<_>>()).unwrap();
            self.alerts.remember(serde_json::from_str(&text).unwrap());
        } else {
            self.alerts.remember(self.ledger.recall(time(now)).unwrap().0.alerts);
        }
        let begun = app::update::start(&mut self.state, time(now));
        self.perform(begun, truth, &BTreeSet::new(), now);
    }

    fn hear(&mut self, event: WorldEvent, now: i64) -> Vec<Effect> {
        app::take(&mut self.state, Event::World(event), time(now))
    }

    /// Does what is asked for. Accounts in `silent` do not answer.
    fn perform(&mut self, effects: Vec<Effect>, truth: &Truth, silent: &BTreeSet<usize>, now: i64) {
        let mut todo: VecDeque<Effect> = effects.into();
        while let Some(effect) = todo.pop_front() {
            let event = match effect {
                Effect::Claim => WorldEvent::Collector(Collector::Us),
                Effect::Recall => {
                    let (memory, notices) = self.ledger.recall(time(now)).unwrap();
                    WorldEvent::Remembered { memory: Box::new(memory), notices }
                }
                Effect::Keep(keep) => {
                    self.ledger.keep(&keep).unwrap();
                    continue;
                }
                Effect::SumUp { day, asked, budgets } => {
                    let drawn = self.ledger.drawn(&budgets, time(now)).unwrap();
                    let summed = self.ledger.sum_up(day).unwrap();
                    WorldEvent::Summed(Box::new(Summed { asked, budgets: drawn, ..summed }))
                }
                Effect::Poll { account, asked_at, .. } => {
                    let at = ACCOUNTS.iter().position(|(name, ..)| *name == account.as_str()).unwrap();
                    let own = truth.machines.iter().filter(|machine| machine.account == at);
                    let instances = match silent.contains(&at) {
                        true => Part::Failed(ProviderError {
                            provider: ACCOUNTS[at].1.into(),
                            account: account.clone(),
                            request: RequestLine("GET /instances".to_owned()),
                            kind: ErrorKind::Timeout { after: Duration::from_secs(10) },
                        }),
                        false => Part::complete(own.map(Machine::row).collect()),
                    };
                    let (storage, balance, tenant) = (Part::NotAsked, Reading::NotAsked, Reading::NotAsked);
                    let poll = Poll { instances, storage, balance, tenant, server_time: None };
                    WorldEvent::Polled { account, asked_at, poll: Box::new(poll) }
                }
                _ => continue,
            };
            todo.extend(self.hear(event, now));
        }
    }

    fn tick(&mut self, truth: &Truth, silent: &BTreeSet<usize>, now: i64) {
        self.state.world.ledger_due = Some(time(now));
        self.state.world.fleet.accounts.iter_mut().for_each(|account| account.pacing.wanted = true);
        let effects = self.hear(WorldEvent::Tick, now);
        self.perform(effects, truth, silent, now);
    }

    /// Looks what of the budgets is to be told.
    fn look(&mut self, now: i64) -> Vec<Alert> {
        let mut found = Vec::new();
        for budget in &self.rules {
            let (_, standing) = self.state.world.budgets.get(&budget.name).unwrap();
            let standing = standing.expect("the books have answered");
            assert_eq!(standing.as_of, time(now), "{}", budget.name);
            found.extend(findings(budget, standing, &self.alerts));
        }
        let told = self.alerts.take(found, &|_| false, time(now));
        let unkept = self.alerts.take_unkept();
        self.ledger.keep_alerts(&unkept, &[], time(now)).unwrap();
        let key = |alert: &Alert| (serde_json::to_string(&alert.topic).unwrap(), alert.since);
        self.kept.extend(unkept.into_iter().map(|alert| (key(&alert), alert)));
        told.into_iter().filter_map(|told| if let Told::Fired(alert) = told { Some(alert) } else { None }).collect()
    }
}

fn state(rules: &[Budget], zone: &TimeZone, now: i64) -> State {
    let account = |(name, provider, _): (&str, &str, Currency)| Account::new(name.into(), provider.into(), false);
    let see = ProjectRule { name: "see".to_owned(), matcher: Matcher::parse("team=vision").unwrap() };
    let settings = Rules { projects: vec![see], ..Rules::default() };
    let mut world = World::new(ACCOUNTS.map(account).to_vec(), settings, false, "ana@desk".to_owned(), time(now));
    world.use_zone(zone.clone());
    world.budgets.rules = rules.to_vec();
    let yuan = Fx { usd: YUAN.parse().unwrap(), as_of: "2026-10-01".parse().unwrap() };
    world.budgets.exchange = Exchange { into: Currency::USD, rates: [(Currency::CNY, yuan)].into() };
    State { world, view: View::new(Fixed::default(), vec![]), leaving: false }
}

/// Goes through one month; returns how many alerts there were, and of how many the moment was told.
fn month(seed: u64) -> (usize, usize) {
    let mut dice = Dice(seed * 7919 + 1);
    // Clocks change within both.
    let start: Timestamp = dice.of(&["2026-10-05T10:00:00Z", "2026-03-02T10:00:00Z"]).parse().unwrap();
    let start = start.as_millisecond() + dice.between(0, DAY);
    let rules = budgets(&mut dice, start);
    let mut program = Program::new(rules.clone(), TimeZone::get(dice.of(&ZONES)).unwrap(), start);
    let rate = |dice: &mut Dice| dice.between(100_000_007, 3_000_000_000_001);
    let machine = |n: i64, dice: &mut Dice| Machine {
        account: (n % 5) as usize,
        id: format!("m{n}"),
        team: dice.of(&["vision", "audio"]),
        gpus: dice.between(1, 8) as u32,
        prepaid: n == 7,
        ends_at: dice.chance(20).then(|| start + dice.between(0, 40 * DAY)),
        rate: None,
        since: start,
        past: vec![],
    };
    let mut truth = Truth { machines: (0..10).map(|n| machine(n, &mut dice)).collect() };
    let (mut oracle, mut now, mut moments) = (Oracle::default(), start, 0);
    let (mut told, mut expected): (Vec<Line>, Vec<Line>) = Default::default();
    program.restart(&truth, false, now);
    while now < start + 30 * DAY {
        if dice.chance(15) {
            let from_text = dice.chance(50);
            program.restart(&truth, from_text, now);
        }
        let silent: BTreeSet<usize> = (0..5).filter(|_| dice.chance(20)).collect();
        program.state.world.budgets.as_of = Some(time(now));
        program.tick(&truth, &silent, now);
        // What changes does so as somebody looks, shortly after another look: then its moment is known.
        now += 20_000;
        for machine in truth.machines.iter_mut().filter(|machine| !silent.contains(&machine.account)) {
            if dice.chance(if machine.rate.is_none() { 20 } else { 10 }) {
                let rate = if dice.chance(30) { None } else { Some(rate(&mut dice)) };
                machine.turn(rate, now);
            }
        }
        program.state.world.budgets.as_of = Some(time(now));
        program.tick(&truth, &silent, now);
        now += 11_000;
        program.tick(&truth, &silent, now);
        for budget in &rules {
            expected.extend(oracle.look(&truth, budget, now));
        }
        for alert in program.look(now) {
            told.push(match &alert.matter {
                Matter::Budget { name, term, threshold, crossed_at, .. } => {
                    if let Some(at) = crossed_at.map(|at| at.as_millisecond()) {
                        let budget = rules.iter().find(|budget| budget.name == *name).unwrap();
                        let (from, ..) = turn(budget, now);
                        let line = line(budget, *threshold);
                        let sums = [at - 2, at + 1].map(|at| truth.spent(budget, from, at));
                        assert!(sums[0] < line && line <= sums[1], "seed {seed}: {name} {threshold} at {at}");
                        moments += 1;
                    }
                    (now, name.clone(), *term, Some(*threshold))
                }
                Matter::Forecast { name, term, .. } => (now, name.clone(), *term, None),
                other => panic!("{other:?}"),
            });
        }
        now += match dice.between(0, 9) {
            0..=3 => dice.between(30 * HOUR, 90 * HOUR),
            4 => dice.between(5 * MINUTE, 30 * MINUTE),
            _ => dice.between(HOUR, 50 * HOUR),
        };
    }
    told.sort();
    expected.sort();
    assert_eq!(told, expected, "seed {seed}");
    (told.len(), moments)
}

#[test]
fn a_month_tells_exactly_what_the_true_history_says() {
    let seeds: u64 = std::env::var("BUDGET_SEEDS").map_or(50, |text| text.parse().expect("a number"));
    let workers: Vec<_> = (0..2)
        .map(|part| std::thread::spawn(move || (part..seeds).step_by(2).map(month).collect::<Vec<_>>()))
        .collect();
    let months: Vec<(usize, usize)> = workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect();
    let (told, moments) = months.iter().fold((0, 0), |sum, month| (sum.0 + month.0, sum.1 + month.1));
    println!("{told} alerts in {} months, {moments} with the moment of the crossing", months.len());
    assert!(told > 20 * months.len() && moments * 4 > told, "{told} alerts, {moments} moments");
}
