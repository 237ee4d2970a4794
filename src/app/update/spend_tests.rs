use jiff::tz::TimeZone;
use providers::model::{Component, Identity, Phase};
use providers::money::Currency;
use providers::provider::{Part, Poll, Reading};
use rstest::rstest;
use rust_decimal::Decimal;

use super::*;
use crate::app::event::{Event, Intent, WorldEvent};
use crate::app::state::{Fixed, State, View};
use crate::app::update;
use crate::rules::fleet::Known;
use crate::rules::memory::{AccountMemory, Collector};
use crate::rules::samples::{at, error, fleet, identity, instance, listed, usd};
use crate::rules::settings::Rules;
use crate::rules::spend::{
    Assignment, Charge, Evidence, Exact, Horizon, OpenLine, Running, Span, State as Charged, Sums, Terms,
};

/// A collector over one account at a provider with billed records.
struct Books {
    state: State,
    now: Timestamp,
    effects: Vec<Effect>,
    /// The number of the latest question for sums.
    asked: u64,
}

impl Books {
    fn begin(memory: Memory, now: Timestamp) -> Self {
        let mut world = World::new(fleet(&["team"]).accounts, Rules::default(), false, "ana@desk".to_owned(), now);
        world.use_zone(TimeZone::get("Asia/Shanghai").unwrap());
        let state = State { world, view: View::new(Fixed::default(), Vec::new()), leaving: false };
        let mut books = Books { state, now, effects: Vec::new(), asked: 0 };
        books.hear(WorldEvent::Collector(Collector::Us));
        books.hear(WorldEvent::Remembered { memory: Box::new(memory), notices: Vec::new() });
        books
    }

    fn hear(&mut self, event: WorldEvent) -> &mut Self {
        self.effects = update::update(&mut self.state, Event::World(event), self.now);
        let asked = self.effects.iter().filter_map(|effect| match effect {
            Effect::SumUp { asked, .. } => Some(*asked),
            _ => None,
        });
        self.asked = asked.max().unwrap_or(self.asked);
        self
    }

    fn at(&mut self, now: Timestamp) -> &mut Self {
        self.now = now;
        self.state.world.ledger_due = Some(now);
        self.hear(WorldEvent::Tick)
    }

    fn answer(&mut self, poll: Poll) -> &mut Self {
        let asked_at = self.state.world.fleet.accounts[0].pacing.in_flight.expect("a poll is under way");
        self.hear(WorldEvent::Polled { account: "team".into(), asked_at, poll: Box::new(poll) })
    }

    fn summed(&mut self, today: Sums) -> &mut Self {
        let day = date_of(self.now, &self.state.world.spending.zone);
        self.hear(WorldEvent::Summed(Box::new(Summed { asked: self.asked, day, today, ..Summed::default() })))
    }

    fn today(&mut self) -> Exact {
        super::add_up(&mut self.state.world, self.now);
        self.state.world.spending.totals.as_ref().expect("the books have answered").today.of(Currency::USD).total()
    }

    fn asks_for_sums(&self) -> usize {
        self.effects.iter().filter(|effect| matches!(effect, Effect::SumUp { .. })).count()
    }
}

fn dollars(amount: &str) -> Exact {
    Exact::of(amount.parse::<Decimal>().unwrap())
}

fn running(hourly: &str) -> Poll {
    Poll { balance: Reading::NotTold, tenant: Reading::NotTold, ..listed(vec![instance("a", Phase::Running, hourly)]) }
}

#[test]
fn before_the_books_have_answered_nothing_is_said_to_be_spent() {
    let mut books = Books::begin(Memory::default(), at("10:00:00"));
    assert_eq!(books.asks_for_sums(), 1);
    books.answer(running("3.6"));
    assert_eq!(books.state.world.spending.totals, None);
    assert_eq!(books.state.world.spending.row(&identity("team", "a"), books.now), None);
}

#[test]
fn what_is_open_ticks_beside_what_the_books_hold() {
    let mut books = Books::begin(Memory::default(), at("10:00:00"));
    books.answer(running("3.6")).summed(Sums::default());
    assert_eq!(books.today(), Exact::ZERO);
    books.at(at("10:00:10"));
    assert_eq!(books.today(), dollars("0.01"));
    let row = books.state.world.spending.row(&identity("team", "a"), books.now).unwrap();
    assert_eq!((row.rental.of(Currency::USD).total(), row.since), (dollars("0.01"), Some(at("10:00:00"))));
}

/// What is closed while the books are being asked is in no answer of theirs.
#[test]
fn what_was_closed_meanwhile_comes_on_top_of_an_answer() {
    let mut books = Books::begin(Memory::default(), at("10:00:00"));
    books.answer(running("3.6"));
    books.at(at("10:00:16")).answer(running("7.2"));
    books.summed(Sums::default());
    assert_eq!(books.today(), dollars("0.016"), "sixteen seconds at the old rate");
}

/// Two providers may tell what they billed within one second.
#[test]
fn of_two_answers_under_way_each_knows_what_came_before_its_question() {
    let mut books = Books::begin(Memory::default(), at("10:00:00"));
    books.answer(running("3.6"));
    let first = books.asked;
    books.at(at("10:00:20")).answer(running("7.2")).hear(WorldEvent::AddedUp);
    let second = std::mem::replace(&mut books.asked, first);
    assert!(second > first);
    books.at(at("10:00:40")).answer(running("3.6"));
    books.summed(Sums::default());
    assert_eq!(books.today(), dollars("0.06"), "twenty seconds at each rate, both closed since the first question");
    books.asked = second;
    let mut known = Sums::default();
    known.add_span(&Span {
        identity: identity("team", "a"),
        terms: Terms { component: Component::Compute, charge: Charge::Certain, wasted: false, project: None, gpus: 1 },
        rate: usd("3.6"),
        from: at("10:00:00"),
        to: at("10:00:20"),
        evidence: Evidence::Observed,
    });
    books.summed(known);
    assert_eq!(books.today(), dollars("0.06"), "the books know of the first of them now");
}

/// What a header says and what a row says is of one moment.
#[test]
fn rows_add_up_to_the_header_at_any_moment() {
    let mut books = Books::begin(Memory::default(), at("10:00:00"));
    books.answer(running("3.6")).summed(Sums::default());
    books.at(at("10:00:07"));
    books.now = at("10:00:09");
    let spending = &books.state.world.spending;
    let row = spending.row_beside_totals(&identity("team", "a")).unwrap();
    assert_eq!(row.month.of(Currency::USD).total(), dollars("0.007"));
    assert_eq!(row.month, spending.totals.as_ref().unwrap().month);
}

#[test]
fn a_new_day_of_the_zone_asks_the_books_anew() {
    let mut books = Books::begin(Memory::default(), at("15:59:40"));
    books.answer(running("3.6")).summed(Sums::default());
    books.at(at("15:59:59"));
    assert_eq!(books.asks_for_sums(), 0);
    books.at(at("16:00:00"));
    assert_eq!(books.asks_for_sums(), 1, "midnight in Shanghai");
    books.summed(Sums::default());
    assert_eq!(books.today(), Exact::ZERO, "the twenty seconds before midnight are yesterday's");
}

#[test]
fn what_was_billed_is_written_down_after_what_is_open_was_closed() {
    let mut books = Books::begin(Memory::default(), at("10:00:00"));
    books.answer(running("3.6"));
    books.at(at("10:00:20"));
    let asked = |effect: &Effect| matches!(effect, Effect::AskBilled { from, .. } if *from == "2026-09-30T00:00:00Z".parse().unwrap());
    assert!(books.effects.iter().any(asked), "back to the start of the previous month, once the account has answered");
    books.answer(running("3.6"));
    let (from, to) = (at("09:00:00"), at("10:00:10"));
    books.hear(WorldEvent::Billed { account: "team".into(), from, to, lines: Ok(Vec::new()) });
    let order: Vec<&str> = books
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Keep(keep) => {
                let ends: Vec<Timestamp> = keep.entries.spans.iter().map(|span| span.to).collect();
                assert_eq!(ends, [to]);
                Some("keep")
            }
            Effect::KeepBilled { .. } => Some("billed"),
            Effect::SumUp { .. } => Some("sum"),
            _ => None,
        })
        .collect();
    assert_eq!(order, ["keep", "billed", "sum"]);
}

/// A bill that no books can hold is none, and is asked for again.
#[test]
fn an_amount_beyond_measure_is_no_bill() {
    let mut books = Books::begin(Memory::default(), at("10:00:00"));
    books.answer(running("3.6"));
    let (from, to) = (at("09:00:00"), at("10:00:00"));
    let line = |amount: Decimal| providers::model::BilledLine {
        resource: None,
        product: "serverless".to_owned(),
        component: Component::Compute,
        from,
        to,
        amount: providers::money::Money::new(amount, Currency::USD),
    };
    for (amount, kept) in [(Decimal::MAX, false), (Decimal::MIN, false), (Decimal::from(-1_000_000_000), true)] {
        books.hear(WorldEvent::Billed { account: "team".into(), from, to, lines: Ok(vec![line(amount)]) });
        let written = books.effects.iter().any(|effect| matches!(effect, Effect::KeepBilled { .. }));
        assert_eq!(written, kept, "{amount}");
        assert_eq!(books.state.world.spending.billing[&"team".into()].failures == 0, kept);
    }
}

/// What is billed is asked for by the provider's time: by ours, set a year ahead, the books would hold all of that
/// year already, and ask for nothing until it has passed.
#[test]
fn a_wrong_clock_asks_for_no_bill_of_the_future() {
    let mut books = Books::begin(Memory::default(), at("10:00:00"));
    books.answer(running("3.6"));
    books.hear(WorldEvent::Tick);
    let asked = |books: &Books| {
        let to = books.effects.iter().find_map(|effect| match effect {
            Effect::AskBilled { to, .. } => Some(*to),
            _ => None,
        });
        to.map(|to| to.to_string())
    };
    assert_eq!(asked(&books).as_deref(), Some("2026-11-30T00:00:00Z"));
    books.hear(WorldEvent::Billed { account: "team".into(), from: at("09:00"), to: at("09:00"), lines: Ok(vec![]) });
    let year = jiff::SignedDuration::from_hours(400 * 24);
    books.at(at("10:00:00") + year);
    assert_eq!(asked(&books), None, "the provider has not said yet what time it is");
    books.answer(Poll { server_time: Some("2026-12-01T11:40:00Z".parse().unwrap()), ..running("3.6") });
    books.hear(WorldEvent::Tick);
    assert_eq!(asked(&books).as_deref(), Some("2026-12-01T00:00:00Z"));
}

#[test]
fn a_failed_question_for_what_was_billed_changes_nothing() {
    let mut books = Books::begin(Memory::default(), at("10:00:00"));
    books.answer(running("3.6"));
    let refused = error(providers::error::ErrorKind::Timeout { after: std::time::Duration::from_secs(30) });
    let before = books.state.world.spending.meter.clone();
    let (from, to) = (at("09:00:00"), at("10:00:00"));
    books.hear(WorldEvent::Billed { account: "team".into(), from, to, lines: Err(refused) });
    assert_eq!(books.effects, []);
    assert_eq!(books.state.world.spending.meter, before);
}

fn remembered(account: &str) -> Memory {
    let known = Known::new(identity(account, "a"), instance("a", Phase::Running, "0.44"), at("08:00:00"));
    let line = OpenLine {
        terms: Terms {
            component: Component::Compute,
            charge: crate::rules::spend::Charge::Certain,
            wasted: false,
            project: None,
            gpus: 1,
        },
        rate: crate::rules::samples::usd("0.44"),
        from: at("08:00:00"),
        run_from: at("08:00:00"),
    };
    let running = Running {
        lines: vec![line],
        seen: None,
        missing: false,
        since: at("08:00:00"),
        state: Charged { running: true, started_at: None, granularity: providers::model::Granularity::Exact },
        idle: Default::default(),
    };
    Memory {
        accounts: vec![AccountMemory {
            as_of: Some(at("09:00:00")),
            last_complete: Some(at("09:00:00")),
            instances_seen: Some(Horizon { at: at("09:00:00"), longest_gap: jiff::SignedDuration::from_secs(45) }),
            ..AccountMemory::new(account.into(), "vast".into())
        }],
        running: vec![(known.identity.clone(), running)],
        instances: vec![known],
        ..Memory::default()
    }
}

/// STATE-03: the account is no longer in the config while a machine of it runs.
#[test]
fn an_account_that_is_watched_no_longer_is_told_and_counted_to_its_last_look() {
    let mut books = Books::begin(remembered("old"), at("10:00:00"));
    let told = books.state.world.spending.unwatched.clone();
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].resources, told[0].seen), (1, Some(at("09:00:00"))));
    assert_eq!(told[0].burn.of(Currency::USD).amount(), "0.44".parse().unwrap());
    books.summed(Sums::default());
    assert_eq!(books.today(), dollars("0.44"), "one hour, to the last look");
    books.at(at("11:00:00"));
    assert_eq!(books.today(), dollars("0.44"), "nobody knows what came after");
    books.hear(WorldEvent::Intent(Intent::NoteUnwatched));
    assert_eq!(books.effects, [Effect::NoteUnwatched(vec!["old".into()])]);
    assert!(books.state.world.spending.unwatched.is_empty());
}

#[test]
fn a_restart_goes_on_where_the_last_look_was() {
    let mut books = Books::begin(remembered("team"), at("10:00:00"));
    books.summed(Sums::default());
    assert_eq!(books.today(), dollars("0.88"));
    let totals = books.state.world.spending.totals.clone().unwrap();
    assert_eq!(totals.today.of(Currency::USD).assumed, dollars("0.44"), "since the last look");
    books.answer(Poll { instances: Part::complete(vec![instance("a", Phase::Running, "0.44")]), ..running("0.44") });
    assert_eq!(books.today(), dollars("0.88"), "the same observation adds nothing");
}

#[test]
fn spend_belongs_to_a_project_from_the_moment_somebody_says_so() {
    let mut books = Books::begin(Memory::default(), at("10:00:00"));
    books.answer(running("3.6"));
    books.at(at("10:00:20")).answer(running("3.6"));
    let assignment = |from| Assignment { identity: identity("team", "a"), from, project: Some("vision".to_owned()) };
    let project = |books: &Books, identity: &Identity| {
        books.state.world.spending.meter.running()[identity].lines[0].terms.project.clone()
    };
    books.hear(WorldEvent::Intent(Intent::Assign(assignment(Some(books.now)))));
    assert_eq!(project(&books, &identity("team", "a")).as_deref(), Some("vision"));
    let assigns = |books: &Books| books.effects.iter().any(|effect| matches!(effect, Effect::Assign(_)));
    assert!(!assigns(&books), "what is in the books stays where it is");
    books.hear(WorldEvent::Intent(Intent::Assign(assignment(Some(at("10:00:05"))))));
    assert!(assigns(&books));
    // The next looks do not take it back.
    books.at(at("10:00:40")).answer(running("3.6"));
    assert_eq!(project(&books, &identity("team", "a")).as_deref(), Some("vision"));
    assert_eq!(books.state.world.settings.single[&identity("team", "a")].project.as_deref(), Some("vision"));
}

/// The books know this provider's account under a name that the config no longer has.
fn known_as(name: &str, tenant: Option<&str>) -> Memory {
    let tenant = tenant.map(|id| providers::model::Tenant { id: id.to_owned() });
    let as_of = Some(at("09:00:00"));
    let account = AccountMemory {
        as_of,
        last_complete: as_of,
        tenant,
        ..AccountMemory::new(name.into(), fleet(&["team"]).accounts[0].provider.clone())
    };
    let known = Known::new(identity(name, "a"), instance("a", Phase::Running, "3.6"), at("09:00:00"));
    Memory { accounts: vec![account], instances: vec![known], ..Memory::default() }
}

/// What one account cost would be told twice, once under each name.
#[rstest]
#[case::the_same_tenant(Some("ann"), Reading::Known("ann"), "b", true)]
#[case::another_tenant(Some("ann"), Reading::Known("bob"), "a", false)]
#[case::a_tenant_that_is_not_told_and_the_same_machine(None, Reading::NotTold, "a", true)]
#[case::a_tenant_that_was_not_told_before(None, Reading::Known("ann"), "a", true)]
#[case::a_tenant_that_is_not_told_and_another_machine(Some("ann"), Reading::NotTold, "b", false)]
fn an_account_is_known_by_another_name(
    #[case] before: Option<&str>,
    #[case] now: Reading<&str>,
    #[case] machine: &str,
    #[case] same: bool,
) {
    let mut books = Books::begin(known_as("crew", before), at("10:00:00"));
    let tenant = match now {
        Reading::Known(id) => Reading::Known(providers::model::Tenant { id: id.to_owned() }),
        _ => Reading::NotTold,
    };
    let poll = Poll { tenant, ..listed(vec![instance(machine, Phase::Running, "3.6")]) };
    books.answer(poll.clone());
    let renamed = Effect::Rename { from: "crew".into(), to: "team".into() };
    assert_eq!(books.effects.first() == Some(&renamed), same, "{:?}", books.effects);
    assert_eq!(books.state.world.spending.meter.running().is_empty(), same, "nothing is charged under two names");
    if same {
        // Where that could not be done the account is taken as it is, and is not asked without end.
        books.hear(WorldEvent::Remembered { memory: Box::new(known_as("crew", before)), notices: Vec::new() });
        books.at(at("10:00:10")).answer(poll);
        assert!(!books.effects.contains(&renamed) && !books.state.world.spending.meter.running().is_empty());
    }
}

/// Machines without an API are known before any of them was heard of.
#[test]
fn an_account_whose_machines_nobody_heard_of_yet_is_known_by_another_name() {
    let mut books = Books::begin(known_as("crew", None), at("10:00:00"));
    let unheard = vec![instance("a", Phase::Unknown, "3.6")];
    books.answer(Poll {
        tenant: Reading::NotTold,
        instances: Part::Pieces { rows: Vec::new(), unheard },
        ..listed(Vec::new())
    });
    assert_eq!(books.effects.first(), Some(&Effect::Rename { from: "crew".into(), to: "team".into() }));
}

#[test]
fn an_account_that_another_one_of_the_config_is_takes_no_name_over() {
    let mut books = Books::begin(known_as("crew", Some("ann")), at("10:00:00"));
    let mut first = Account::new("first".into(), books.state.world.fleet.accounts[0].provider.clone(), false);
    first.tenant = Some(providers::model::Tenant { id: "ann".to_owned() });
    books.state.world.fleet.accounts.push(first);
    let tenant = Reading::Known(providers::model::Tenant { id: "ann".to_owned() });
    books.answer(Poll { tenant, ..running("3.6") });
    assert!(!books.effects.iter().any(|effect| matches!(effect, Effect::Rename { .. })), "{:?}", books.effects);
}

/// A look by id that shows another rate is followed by a list that shows the same and so changes nothing: the books
/// take it in all the same.
#[test]
fn what_a_look_by_id_showed_is_charged_from_the_next_list_on() {
    use providers::provider::Found;

    let mut books = Books::begin(Memory::default(), at("10:00:00"));
    books.at(at("10:00:00")).answer(listed(vec![instance("a", Phase::Running, "1")]));
    books.at(at("10:00:20")).answer(listed(vec![instance("a", Phase::Running, "1")]));
    let off = instance("a", Phase::Stopped, "0.02");
    let found = Ok(Found::Instance(Box::new(off.clone())));
    books.hear(WorldEvent::LookedUp { op: None, identity: identity("team", "a"), found });
    books.at(at("10:01:40")).answer(listed(vec![off]));
    let running = &books.state.world.spending.meter.running()[&identity("team", "a")];
    let rates: Vec<String> = running.lines.iter().map(|line| line.rate.amount().to_string()).collect();
    assert_eq!(rates, ["0.02"]);
}
