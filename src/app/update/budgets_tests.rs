use jiff::tz::TimeZone;
use providers::model::{Instance, Phase, Rates};
use providers::money::Currency;
use rust_decimal::Decimal;

use super::*;
use crate::app::effect::Effect;
use crate::app::event::{Event, Intent, WorldEvent};
use crate::app::state::{Fixed, State, View};
use crate::app::update;
use crate::rules::alerts::{Alert, Matter, Stage};
use crate::rules::budgets::{Cycle, Scope};
use crate::rules::matcher::Glob;
use crate::rules::memory::{AccountMemory, Collector, Memory, Owner};
use crate::rules::samples::{at, budget, fleet, instance, listed};
use crate::rules::settings::Rules;
use crate::rules::spend::{Amounts, Exact, Period, Summed, Sums};

/// A collector with budgets, whose books are asked and hold nothing.
struct Desk {
    state: State,
    now: Timestamp,
    /// The latest question that was not answered, with what it was asked about.
    asked: Option<(u64, Vec<Budget>)>,
}

impl Desk {
    fn new(rules: Vec<Budget>, now: Timestamp) -> Self {
        let mut world = World::new(fleet(&["team"]).accounts, Rules::default(), false, "ana@desk".to_owned(), now);
        world.use_zone(TimeZone::UTC);
        world.budgets.rules = rules;
        let state = State { world, view: View::new(Fixed::default(), Vec::new()), leaving: false };
        let mut desk = Desk { state, now, asked: None };
        desk.hear(WorldEvent::Collector(Collector::Us));
        desk.hear(WorldEvent::Remembered { memory: Box::new(Memory::default()), notices: Vec::new() });
        desk
    }

    fn hear(&mut self, event: WorldEvent) {
        for effect in update::update(&mut self.state, Event::World(event), self.now) {
            if let Effect::SumUp { asked, budgets, .. } = effect {
                self.asked = Some((asked, budgets));
            }
        }
    }

    fn at(&mut self, now: Timestamp) -> &mut Self {
        self.now = now;
        self.state.world.ledger_due = Some(now);
        self.hear(WorldEvent::Tick);
        self
    }

    /// The books answer that they hold nothing.
    fn books_answer(&mut self) -> &mut Self {
        self.books_answer_of("0", self.now)
    }

    /// The books answer that they hold so much of each closed term that they are asked for, and since when they know
    /// of the budgets.
    fn books_answer_of(&mut self, closed: &str, known_since: Timestamp) -> &mut Self {
        let (asked, budgets) = self.asked.take().expect("they were asked");
        let drawn = |budget: &Budget| {
            let term = budget.term(self.now);
            let days = match budget.cycle {
                Cycle::Dates(period) if !term.holds(self.now) => {
                    let sum = Amounts { observed: Exact::of(dec(closed)), ..Amounts::default() };
                    [(period.from, Sums([(Currency::USD, sum)].into()))].into()
                }
                _ => Default::default(),
            };
            let known_since = Some(known_since);
            Drawn { name: budget.name.clone(), from: term.from, known_since, as_of: self.now, days }
        };
        let day = TimeZone::UTC.to_datetime(self.now).date();
        let budgets = budgets.iter().map(drawn).collect();
        self.hear(WorldEvent::Summed(Box::new(Summed { asked, day, budgets, ..Summed::default() })));
        self
    }

    fn list(&mut self, rows: Vec<Instance>) -> &mut Self {
        let account = &mut self.state.world.fleet.accounts[0];
        let asked_at = account.pacing.in_flight.expect("a poll is under way");
        self.hear(WorldEvent::Polled { account: "team".into(), asked_at, poll: Box::new(listed(rows)) });
        self
    }

    fn standing(&self, name: &str) -> Option<&Standing> {
        self.state.world.budgets.get(name).and_then(|(_, standing)| standing)
    }

    fn spent(&self, name: &str) -> Decimal {
        self.standing(name).expect("the books answered").spent
    }
}

fn dec(text: &str) -> Decimal {
    text.parse().unwrap()
}

#[test]
fn a_standing_follows_what_is_open_and_is_made_anew_every_ten_seconds() {
    let mut named = budget("named", "10", Cycle::Day);
    named.scope = Scope { instance: Some(Glob::new("a*")), ..Scope::default() };
    let mut desk = Desk::new(vec![budget("all", "10", Cycle::Day), named], at("10:00:00"));
    assert_eq!(desk.standing("all"), None);
    desk.books_answer();
    assert_eq!(desk.spent("all"), Decimal::ZERO);
    let ends = instance("a", Phase::Running, "3.6");
    let ends = Instance { ends_at: Some(at("11:00:00")), ..ends };
    desk.list(vec![ends, instance("b", Phase::Running, "7.2")]);
    desk.at(at("10:00:05"));
    let made = desk.standing("all").unwrap().as_of;
    desk.at(at("10:00:09"));
    assert_eq!(desk.standing("all").unwrap().as_of, made, "nothing but the time has changed");
    desk.at(at("10:00:20"));
    assert_eq!((desk.spent("all"), desk.spent("named")), (dec("0.06"), dec("0.02")));
    let all = desk.standing("all").unwrap();
    assert_eq!((all.burn, all.at(at("10:00:30"))), (dec("10.8"), dec("0.09")));
    assert_eq!(all.forecast, Some(dec("104.4")), "what ends does so");
    assert_eq!(all.committed, Some(dec("151.2")));
}

#[test]
fn a_term_that_turns_and_a_rule_that_changes_ask_the_books_again() {
    let mut east = budget("east", "10", Cycle::Day);
    east.zone = TimeZone::get("Asia/Shanghai").unwrap();
    let mut desk = Desk::new(vec![east, budget("all", "10", Cycle::Month)], at("15:59:50"));
    desk.books_answer().at(at("15:59:59"));
    assert_eq!(desk.asked, None);
    desk.at(at("16:00:00"));
    assert!(desk.asked.is_some(), "there it is midnight");
    assert!(desk.standing("east").is_none() && desk.standing("all").is_some());
    desk.books_answer();
    assert_eq!(desk.standing("east").unwrap().term.from, at("16:00:00"));

    desk.state.world.budgets.rules[1].limit.amount = dec("20");
    desk.at(at("16:00:30"));
    assert!(desk.asked.is_none() && desk.standing("all").is_some(), "another limit draws on the same");
    desk.state.world.budgets.rules[1].scope.account = Some("lab".into());
    desk.at(at("16:00:40"));
    assert!(desk.standing("all").is_none(), "what the books told was of another scope");
    desk.books_answer();
    assert!(desk.standing("all").is_some());
}

/// Before its days, in them and after them: a budget for some dates is looked at no more often than any other.
#[test]
fn days_that_are_not_now_are_no_turn() {
    let dates = |from: &str, to: &str| Cycle::Dates(Period { from: from.parse().unwrap(), to: to.parse().unwrap() });
    let rules = [("2026-11-01", "2026-11-05"), ("2026-11-30", "2026-12-01"), ("2026-12-05", "2026-12-09")];
    let rules = rules.map(|(from, to)| budget(from, "10", dates(from, to)));
    let mut desk = Desk::new(rules.to_vec(), at("10:00:00"));
    desk.books_answer().at(at("10:00:20"));
    for clock in ["10:00:21", "10:00:25", "10:00:29"] {
        desk.at(at(clock));
        assert_eq!(desk.state.world.budgets.as_of, Some(at("10:00:20")));
    }
}

#[test]
fn books_that_do_not_answer_are_asked_again_after_a_minute() {
    let mut desk = Desk::new(vec![budget("all", "10", Cycle::Day)], at("10:00:00"));
    desk.asked = None;
    desk.at(at("10:00:59"));
    assert_eq!(desk.asked, None);
    desk.at(at("10:01:00"));
    assert!(desk.asked.is_some());
    desk.books_answer().at(at("10:05:00"));
    assert_eq!(desk.asked, None);
}

/// What the fleet has forgotten still counts by its name, as long as the books have not answered since.
#[test]
fn what_is_gone_goes_on_to_count_by_its_name() {
    let mut named = budget("named", "10", Cycle::Day);
    named.scope = Scope { instance: Some(Glob::new("a*")), ..Scope::default() };
    let mut desk = Desk::new(vec![named], at("10:00:00"));
    let runs = || vec![instance("a", Phase::Running, "3.6")];
    desk.books_answer().list(runs()).at(at("10:00:20")).list(runs()).at(at("10:00:40"));
    let gone = Instance { rates: Rates::known(), ..instance("a", Phase::Gone, "0") };
    desk.list(vec![gone]).at(at("10:00:51"));
    assert_eq!(desk.spent("named"), dec("0.02"), "up to its last sight");
    desk.at(at("10:02:30")).at(at("10:02:45"));
    assert!(desk.state.world.fleet.instances.is_empty());
    assert_eq!(desk.spent("named"), dec("0.02"));
}

fn tomorrow(clock: &str) -> Timestamp {
    at(clock) + SignedDuration::from_hours(24)
}

impl Desk {
    /// The lines of closed terms that were told and are open, each with what was spent.
    fn told_of_closed(&self) -> Vec<(u32, Decimal)> {
        let told = |alert: &Alert| match &alert.matter {
            Matter::Budget { threshold, spent, closed: Some(_), .. } => Some((*threshold, spent.amount)),
            _ => None,
        };
        let mut told: Vec<_> = self.state.world.alerting.alerts.open().filter_map(told).collect();
        told.sort();
        told
    }
}

/// A line that is crossed in the last seconds of a day, or by a bill that comes later, is told of that day, once.
#[test]
fn what_was_crossed_before_the_turn_is_told_after_it_once() {
    let mut desk = Desk::new(vec![budget("all", "10", Cycle::Day)], at("23:00:00"));
    desk.books_answer().list(vec![]).at(tomorrow("00:00:05")).books_answer_of("8", at("23:00:00"));
    assert_eq!(desk.told_of_closed(), [(80, dec("8"))], "the highest alone");
    desk.at(tomorrow("00:00:20"));
    assert_eq!(desk.told_of_closed().len(), 1);
    let ask_again = |desk: &mut Desk, spent: &str| {
        desk.hear(WorldEvent::AddedUp);
        desk.books_answer_of(spent, at("23:00:00"));
        desk.at(desk.now + SignedDuration::from_secs(20));
    };
    ask_again(&mut desk, "12");
    assert_eq!(desk.told_of_closed(), [(80, dec("8")), (100, dec("12"))], "the bill came");
    let topics = desk.state.world.alerting.alerts.open().map(|alert| alert.topic.clone()).collect();
    desk.hear(WorldEvent::Intent(Intent::Acknowledge(topics)));
    ask_again(&mut desk, "12.5");
    assert!(desk.told_of_closed().is_empty(), "it was seen");
    let ended = desk.state.world.alerting.alerts.ended();
    assert!(ended.len() == 2 && ended.iter().all(|alert| matches!(alert.stage, Stage::Resolved { .. })));
}

/// A `check` in the new term is the first look after the turn, however late; a budget that is new had no term before.
#[test]
fn the_first_look_in_a_new_term_tells_the_one_before_and_a_new_budget_has_none() {
    for (known_since, expected) in [(at("09:00:00"), 1), (tomorrow("00:00:01"), 0)] {
        let mut desk = Desk::new(vec![budget("all", "10", Cycle::Day)], tomorrow("20:00:00"));
        desk.state.world.budgets.seen = Some(at("22:00:00"));
        desk.list(vec![]).books_answer_of("11", known_since).at(tomorrow("20:00:20"));
        assert_eq!(desk.told_of_closed().len(), expected, "known since {known_since}");
    }
    let mut month = budget("month", "10", Cycle::Month);
    month.zone = TimeZone::UTC;
    let later = at("10:00:00") + SignedDuration::from_hours(24 * 10);
    for (seen, expected) in [(at("22:00:00"), 1), (later, 0)] {
        let mut desk = Desk::new(vec![month.clone()], later);
        desk.state.world.budgets.seen = Some(seen);
        desk.asked = None;
        desk.hear(WorldEvent::AddedUp);
        desk.list(vec![]).books_answer_of("11", at("09:00:00")).at(later + SignedDuration::from_secs(20));
        assert_eq!(desk.told_of_closed().len(), expected, "last seen {seen}");
    }
}

/// After a start the books hold what was seen before: a line is not judged by that before the first look is done.
#[test]
fn nothing_is_told_of_partial_sums() {
    let mut desk = Desk::new(vec![budget("all", "0.05", Cycle::Day)], at("10:00:00"));
    let known = AccountMemory { as_of: Some(at("09:00:00")), ..AccountMemory::new("team".into(), "vast".into()) };
    let memory = Memory { accounts: vec![known], ..Memory::default() };
    desk.state.world.collector =
        Some(Collector::Other { owner: Owner { host: "box".to_owned(), pid: 1 }, until: desk.now });
    desk.hear(WorldEvent::Remembered { memory: Box::new(memory), notices: Vec::new() });
    desk.hear(WorldEvent::Collector(Collector::Us));
    desk.state.world.remembered = true;
    desk.hear(WorldEvent::AddedUp);
    desk.books_answer();
    let runs = || vec![instance("a", Phase::Running, "3600")];
    let told = |desk: &Desk| desk.state.world.alerting.alerts.open().count();
    desk.state.world.alerting.looked_at = None;
    desk.at(at("10:00:20"));
    assert!(desk.standing("all").is_some() && told(&desk) == 0);
    assert!(!are_whole(&desk.state.world), "the account was not looked at yet");
    desk.list(runs());
    assert!(are_whole(&desk.state.world));
    desk.at(at("10:00:40"));
    assert!(told(&desk) > 0);
    // What waits for a disk with room is in no sum.
    let waiting = Summed { partial: true, day: TimeZone::UTC.to_datetime(desk.now).date(), ..Summed::default() };
    desk.hear(WorldEvent::Summed(Box::new(waiting)));
    assert!(!are_whole(&desk.state.world));
}

/// The books know the day alone of what is long past: when a line was crossed is kept while they are asked anew.
#[test]
fn another_budget_takes_no_known_moment_away() {
    let mut desk = Desk::new(vec![budget("all", "0.05", Cycle::Day)], at("10:00:00"));
    desk.books_answer().list(vec![instance("a", Phase::Running, "3.6")]).at(at("10:01:00"));
    let crossed = desk.standing("all").unwrap().crossed_at(100);
    assert!(crossed.is_some());
    desk.state.world.budgets.rules.push(budget("new", "10", Cycle::Month));
    desk.state.world.budgets.as_of = None;
    desk.at(at("10:01:10"));
    assert!(desk.standing("all").is_none(), "the books are asked anew");
    // What was spent is closed by now.
    let gone = Instance { rates: Rates::known(), ..instance("a", Phase::Gone, "0") };
    desk.list(vec![gone]).at(at("10:01:20"));
    let (asked, budgets) = desk.asked.take().unwrap();
    let day = TimeZone::UTC.to_datetime(desk.now).date();
    let sum = Amounts { observed: Exact::of(dec("0.08")), ..Amounts::default() };
    let drawn = |budget: &Budget| Drawn {
        name: budget.name.clone(),
        from: budget.term(desk.now).from,
        as_of: desk.now,
        days: [(day, Sums([(Currency::USD, sum)].into()))].into(),
        ..Drawn::default()
    };
    let budgets = budgets.iter().map(drawn).collect();
    desk.hear(WorldEvent::Summed(Box::new(Summed { asked, day, budgets, ..Summed::default() })));
    assert_eq!(desk.standing("all").unwrap().crossed_at(100), crossed);
}
