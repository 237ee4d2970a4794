//! What holds whatever the polls show, in whatever order, and whatever the clock does.

use std::collections::{BTreeMap, VecDeque};

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, tz};
use proptest::prelude::*;
use providers::error::{ErrorKind, Problem, RequestLine};
use providers::model::{Component, Granularity, Instance, Phase, Rates, StorageItem};
use providers::money::Currency;
use providers::provider::{Found, Part, Poll};
use rust_decimal::Decimal;

use super::driver::Watch;
use super::{Amounts, Entries, Exact, Period, Span, Summed, Sums, Tally, by_day, date_of};
use crate::rules::samples::{at, failed, identity, instance, listed, usd, volume, with_storage};

/// Something that happens, some seconds after what came before, or before it.
#[derive(Clone, Debug)]
struct Step {
    seconds: i64,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    /// A list, with some rows left out, some unreadable, and storage where it was asked for.
    Listed {
        rows: Vec<Seen>,
        items: Option<Vec<u8>>,
        unreadable: bool,
    },
    Failed,
    NoSuchId(u8),
    Found(Seen),
    /// What was billed is in the books.
    Cut {
        seconds_ago: i64,
    },
    Assign(u8, Option<&'static str>),
}

#[derive(Clone, Debug)]
struct Seen {
    id: u8,
    phase: Phase,
    hourly: &'static str,
    certain: bool,
    /// Seconds since then, by a provider whose clock is not ours.
    started: Option<i64>,
    stopped: Option<i64>,
    created: Option<i64>,
}

fn seen() -> impl Strategy<Value = Seen> {
    let phases = [
        Phase::Provisioning,
        Phase::Running,
        Phase::Running,
        Phase::Running,
        Phase::Stopping,
        Phase::Stopped,
        Phase::Stopped,
        Phase::Failed,
        Phase::Unknown,
        Phase::Gone,
    ];
    let ago = || prop::option::of(prop_oneof![-60i64..120, -3600i64..100_000]);
    (
        0u8..3,
        prop::sample::select(phases.to_vec()),
        prop::sample::select(vec!["0", "1", "0.44", "3.600000000001"]),
        any::<bool>(),
        ago(),
        ago(),
        prop::option::of(prop::sample::select(vec![10i64, 20])),
    )
        .prop_map(|(id, phase, hourly, certain, started, stopped, created)| {
            let certain = match phase {
                Phase::Provisioning | Phase::Unknown => false,
                Phase::Running | Phase::Stopping => true,
                _ => certain,
            };
            Seen { id, phase, hourly, certain, started, stopped, created }
        })
}

fn what() -> impl Strategy<Value = What> {
    let rows = || prop::collection::vec(seen(), 0..4);
    prop_oneof![
        8 => (rows(), prop::option::of(prop::collection::vec(0u8..2, 0..3)), prop::bool::weighted(0.2))
            .prop_map(|(rows, items, unreadable)| What::Listed { rows, items, unreadable }),
        1 => Just(What::Failed),
        2 => (0u8..3).prop_map(What::NoSuchId),
        1 => seen().prop_map(What::Found),
        1 => (0i64..8000).prop_map(|seconds_ago| What::Cut { seconds_ago }),
        1 => (0u8..3, prop::option::of(Just("thesis"))).prop_map(|(id, project)| What::Assign(id, project)),
    ]
}

/// At the usual pace mostly; sometimes after a long time, or with the clock set back.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let seconds = prop_oneof![6 => 0i64..40, 2 => 40i64..40_000, 1 => -40_000i64..0, 1 => Just(3_000_000i64)];
    prop::collection::vec((seconds, what()).prop_map(|(seconds, what)| Step { seconds, what }), 1..25)
}

fn row(seen: &Seen, now: Timestamp) -> Instance {
    let ago = |seconds: i64| now - SignedDuration::from_secs(seconds);
    let mut rates = Rates::known().with(Component::Disk, usd("0.01"));
    if seen.phase != Phase::Stopped {
        rates = rates.with(Component::Compute, usd(seen.hourly));
    }
    let granularity = match seen.id {
        0 => Granularity::Exact,
        1 => Granularity::Steps { seconds: 60, least_seconds: 600 },
        _ => Granularity::ClockHours { round_up_to: Decimal::new(1, 2) },
    };
    Instance {
        rates: if seen.certain { rates } else { rates.doubtful() },
        started_at: seen.started.map(ago),
        stopped_at: seen.stopped.map(ago),
        created_at: seen.created.map(|seconds| at("00:00:00") + SignedDuration::from_secs(seconds)),
        granularity,
        ..instance(&id(seen.id), seen.phase, "0")
    }
}

fn id(number: u8) -> String {
    format!("i{number}")
}

/// A list as a provider sends it: no id twice.
fn list(rows: &[Seen], items: &Option<Vec<u8>>, unreadable: bool, now: Timestamp) -> Poll {
    let rows: BTreeMap<u8, Instance> = rows.iter().map(|seen| (seen.id, row(seen, now))).collect();
    let problem = || Problem {
        request: RequestLine("GET /instances".to_owned()),
        field: "instances[1].id".to_owned(),
        message: "missing".to_owned(),
    };
    let problems = if unreadable { vec![problem()] } else { Vec::new() };
    let poll = Poll { instances: Part::Listed { rows: rows.into_values().collect(), problems }, ..listed(Vec::new()) };
    let Some(items) = items else { return poll };
    let items: BTreeMap<u8, StorageItem> =
        items.iter().map(|item| (*item, volume(&format!("v{item}"), "0.05", &[]))).collect();
    with_storage(poll, items.into_values().collect())
}

fn take(watch: &mut Watch, what: &What, now: Timestamp) -> Entries {
    let known = |number: &u8| {
        let known = watch.fleet.instance(&"team".into(), &id(*number).as_str().into());
        known.map(|known| known.identity.clone())
    };
    match what {
        What::Listed { rows, items, unreadable } => watch.poll(now, list(rows, items, *unreadable, now)),
        What::Failed => watch.poll(now, failed(ErrorKind::Connect { message: "refused".to_owned() })),
        What::NoSuchId(number) => match known(number) {
            Some(identity) => watch.found(now, &identity, Found::NoSuchId),
            None => Entries::default(),
        },
        What::Found(seen) => match known(&seen.id) {
            Some(identity) => watch.found(now, &identity, Found::Instance(Box::new(row(seen, now)))),
            None => Entries::default(),
        },
        What::Cut { seconds_ago } => {
            let entries = watch.meter.cut(&"team".into(), now - SignedDuration::from_secs(*seconds_ago));
            watch.keep(&entries);
            entries
        }
        What::Assign(number, project) => {
            let project = project.map(std::sync::Arc::from);
            let entries = watch.meter.assign(&identity("team", &id(*number)), project.as_ref());
            watch.keep(&entries);
            entries
        }
    }
}

/// No two spans of one resource, component and sort of charge share a moment, and each is some time.
fn check_spans(spans: &[Span]) -> Result<(), TestCaseError> {
    let mut sorted: Vec<&Span> = spans.iter().collect();
    let key = |span: &Span| (span.identity.clone(), span.terms.component, span.terms.charge);
    sorted.sort_by_key(|span| (key(span), span.from));
    for span in &sorted {
        prop_assert!(span.from < span.to, "{:?}", span);
    }
    for pair in sorted.windows(2) {
        prop_assert!(key(pair[0]) != key(pair[1]) || pair[0].to <= pair[1].from, "{:#?}", pair);
    }
    Ok(())
}

/// All that counts of a sum, whatever its evidence.
fn figures(amounts: &Amounts) -> (Exact, Exact, Exact, i64) {
    (amounts.total(), amounts.possible, amounts.wasted, amounts.gpu_ms)
}

/// The sums from some time on, from every span and lump.
fn recomputed(watch: &Watch, from: Timestamp, now: Timestamp) -> Sums {
    let mut sums = Sums::default();
    for span in watch.all(now).iter().filter(|span| span.to > from) {
        sums.add_span(&Span { from: span.from.max(from), ..span.clone() });
    }
    watch.lumps.iter().filter(|lump| lump.at >= from).for_each(|lump| sums.add_lump(lump));
    sums
}

/// A gone resource that comes back after a restart is clipped by the books, which alone know of it then: here
/// such a row does not come.
fn without_returns(what: &What, retired: &[u8]) -> What {
    match what {
        What::Listed { rows, items, unreadable } => {
            let rows = rows.iter().filter(|seen| !retired.contains(&seen.id)).cloned().collect();
            What::Listed { rows, items: items.as_ref().map(|_| vec![0]), unreadable: *unreadable }
        }
        What::Found(seen) if retired.contains(&seen.id) => What::Failed,
        other => other.clone(),
    }
}

proptest! {
    /// Two that saw the same differ in what is waste alone, whatever is thought of who did nothing when.
    #[test]
    fn idle_times_change_nothing_but_what_is_waste(
        steps in steps(),
        idle in prop::collection::vec((0u8..3, -100i64..4000, any::<bool>()), 25),
        cut in any::<prop::sample::Index>(),
    ) {
        let (mut plain, mut marked) = (Watch::new(), Watch::new());
        let mut now = at("10:00:00");
        for (number, (step, (item, ago, begins))) in steps.iter().zip(&idle).enumerate() {
            now += SignedDuration::from_secs(step.seconds);
            let (item, when) = (identity("team", &id(*item)), now - SignedDuration::from_secs(*ago));
            match begins {
                true => drop(marked.meter.idles(&item, when)),
                false => marked.meter.works(&item, when),
            }
            take(&mut plain, &step.what, now);
            take(&mut marked, &step.what, now);
            if number == cut.index(steps.len()) {
                plain.restart();
                marked.restart();
            }
            let [before, after] = [&plain, &marked].map(|watch| watch.sums(None, now).of(Currency::USD));
            let but_waste = |amounts: Amounts| Amounts { wasted: Exact::ZERO, unused: Exact::ZERO, ..amounts };
            prop_assert_eq!(but_waste(before), but_waste(after));
            prop_assert!(before.wasted <= after.wasted && after.wasted <= after.total());
        }
    }

    #[test]
    fn spans_never_overlap_and_the_same_look_again_adds_nothing(steps in steps()) {
        let mut watch = Watch::new();
        let mut now = at("10:00:00");
        for step in &steps {
            now += SignedDuration::from_secs(step.seconds);
            take(&mut watch, &step.what, now);
            check_spans(&watch.all(now))?;
            if let What::Listed { .. } | What::Failed = &step.what {
                let again = take(&mut watch, &step.what, now);
                prop_assert!(again.is_empty(), "{:#?}", again);
            }
            for lump in &watch.lumps {
                prop_assert!(lump.amount > Exact::ZERO, "{:?}", lump);
            }
            let sums = watch.sums(None, now).of(Currency::USD);
            for part in [sums.observed, sums.inferred, sums.assumed, sums.possible, sums.wasted] {
                prop_assert!(part >= Exact::ZERO);
            }
            prop_assert_eq!(sums.total(), sums.observed + sums.inferred + sums.assumed);
        }
    }

    /// One that is restarted after every poll comes to the same as one that never was.
    #[test]
    fn a_restart_adds_nothing(steps in steps()) {
        let (mut steady, mut restarted) = (Watch::new(), Watch::new());
        let mut now = at("10:00:00");
        let mut retired = Vec::new();
        for step in &steps {
            now += SignedDuration::from_secs(step.seconds);
            let what = without_returns(&step.what, &retired);
            take(&mut steady, &what, now);
            take(&mut restarted, &what, now);
            restarted.restart();
            let ended = steady.fleet.instances.values().filter(|known| known.is_gone());
            retired.extend(ended.map(|known| known.identity.id.as_str()[1..].parse::<u8>().unwrap()));
            check_spans(&restarted.all(now))?;
            let [one, other] = [&steady, &restarted].map(|watch| figures(&watch.sums(None, now).of(Currency::USD)));
            prop_assert_eq!(one, other);
        }
    }

    /// The sums that tick are those of all spans, also while several answers are under way.
    #[test]
    fn closed_and_open_add_up_to_everything(
        steps in steps(),
        asked_at in prop::collection::vec(0usize..10, 1..4),
        answered_after in 0usize..4,
    ) {
        let zone = TimeZone::get("America/New_York").unwrap();
        let mut watch = Watch::new();
        let mut tally = Tally::default();
        let mut answers = VecDeque::new();
        let mut now = at("10:00:00");
        let day = date_of(now + SignedDuration::from_secs(3000), &zone);
        let (morning, month) = (Period::day(day).start(&zone), Period::month(day).start(&zone));
        for (number, step) in steps.iter().enumerate() {
            for _ in asked_at.iter().filter(|at| **at == number) {
                // The books answer with what is closed by now.
                let asked = tally.ask();
                let closed = |from| {
                    let mut closed = Sums::default();
                    let spans = watch.spans.iter().filter(|span| span.to > from);
                    spans.for_each(|span| closed.add_span(&Span { from: span.from.max(from), ..span.clone() }));
                    watch.lumps.iter().filter(|lump| lump.at >= from).for_each(|lump| closed.add_lump(lump));
                    closed
                };
                let (today, month) = (closed(morning), closed(month));
                answers.push_back((number + answered_after, Summed { asked, day, today, month, ..Summed::default() }));
            }
            now += SignedDuration::from_secs(step.seconds);
            let entries = take(&mut watch, &step.what, now);
            tally.note(&entries, &zone);
            while let Some((_, summed)) = answers.pop_front_if(|(due, _)| *due <= number) {
                tally.answer(summed, &zone);
            }
            if let Some((of_day, of_month)) = tally.totals(&watch.meter, &zone, now) {
                for (ticking, from) in [(of_day, morning), (of_month, month)] {
                    let expected = recomputed(&watch, from, now).of(Currency::USD);
                    prop_assert_eq!(ticking.of(Currency::USD), expected);
                }
            }
        }
    }

    /// Whatever looks there were, and whatever part of them the clock, a restart or an outage took away: a run
    /// whose ends are told is rounded up once.
    #[test]
    fn a_run_is_rounded_up_once(
        mut looks in prop::collection::vec((0i64..20_000, 0u8..6), 0..30),
        run in 1i64..20_000,
        started in 0i64..3600,
        step in prop::sample::select(vec![1u32, 60, 3600]),
        least in prop::sample::select(vec![0u32, 600, 7200]),
    ) {
        looks.sort_unstable();
        let second = |seconds: i64| at("00:00:00") + SignedDuration::from_secs(seconds);
        let (start, end) = (second(started), second(started + run));
        let granularity = Granularity::Steps { seconds: step, least_seconds: least };
        let on = Instance { started_at: Some(start), granularity, ..instance("A", Phase::Running, "3.6") };
        let off = Instance { rates: Rates::known(), phase: Phase::Stopped, stopped_at: Some(end), ..on.clone() };
        let mut watch = Watch::new();
        watch.poll(start, listed(vec![on.clone()]));
        for (seconds, what) in looks.into_iter().map(|(seconds, what)| (second(started + seconds), what)) {
            match what {
                0 => { watch.poll(seconds, failed(ErrorKind::Connect { message: "refused".to_owned() })); }
                1 => watch.restart(),
                2 => { take(&mut watch, &What::Cut { seconds_ago: 30 }, seconds); }
                3 if seconds < end => { watch.poll(seconds, listed(Vec::new())); }
                _ => { watch.poll(seconds, listed(vec![if seconds < end { on.clone() } else { off.clone() }])); }
            }
        }
        let last = second(started + 30_000);
        watch.poll(last, listed(vec![off]));
        let charged = ((run + i64::from(step) - 1) / i64::from(step) * i64::from(step)).max(i64::from(least));
        let expected = Exact::over(usd("3.6"), start, start + SignedDuration::from_secs(charged));
        prop_assert_eq!(watch.usd("A", last).total(), expected);
        prop_assert!(watch.lumps.len() <= 1);
    }

    /// The same where it is charged at each full hour: every piece is rounded up once.
    #[test]
    fn a_piece_is_rounded_up_once(
        mut looks in prop::collection::vec((0i64..20_000, 0u8..4), 0..30),
        run in 1i64..20_000,
        started in 0i64..3600,
        lets_be in any::<bool>(),
    ) {
        looks.sort_unstable();
        // Runs that end at a full hour, too.
        let run = if lets_be { run } else { (started + run) / 3600 * 3600 + 3600 - started };
        let second = |seconds: i64| at("00:00:00") + SignedDuration::from_secs(seconds);
        let (start, end) = (second(started), second(started + run));
        let granularity = Granularity::ClockHours { round_up_to: Decimal::new(1, 2) };
        let on = Instance { started_at: Some(start), granularity, ..instance("A", Phase::Running, "0.98") };
        let off = Instance { rates: Rates::known(), phase: Phase::Stopped, stopped_at: Some(end), ..on.clone() };
        let mut watch = Watch::new();
        watch.poll(start, listed(vec![on.clone()]));
        for (seconds, what) in looks.into_iter().map(|(seconds, what)| (second(started + seconds), what)) {
            match what {
                0 => { watch.poll(seconds, failed(ErrorKind::Connect { message: "refused".to_owned() })); }
                1 => watch.restart(),
                _ => { watch.poll(seconds, listed(vec![if seconds < end { on.clone() } else { off.clone() }])); }
            }
        }
        let last = second(started + 40_000);
        watch.poll(last, listed(vec![off]));
        let mut expected = Exact::ZERO;
        let mut from = started;
        while from < started + run {
            let to = (from / 3600 * 3600 + 3600).min(started + run);
            let cents = (Exact::over(usd("0.98"), second(from), second(to)).amount() * Decimal::from(100)).ceil();
            expected += Exact::of(cents / Decimal::from(100));
            from = to;
        }
        prop_assert_eq!(watch.usd("A", last).total(), expected);
    }

    /// In every zone there is, days add up to their months, and those to the whole.
    #[test]
    fn days_add_up_to_their_months_in_any_zone(
        start in 1_577_836_800_000i64..1_893_456_000_000,
        length in 1i64..200 * 86_400_000,
        picos in 0i64..1_000_000_000_000_000,
        zone in any::<prop::sample::Index>(),
    ) {
        let names: Vec<_> = tz::db().available().collect();
        let zone = TimeZone::get(names[zone.index(names.len())].as_str()).unwrap();
        let (from, to) = (Timestamp::from_millisecond(start).unwrap(), Timestamp::from_millisecond(start + length).unwrap());
        let rate = providers::money::Rate::from_picos(picos, Currency::USD);
        let mut months: BTreeMap<jiff::civil::Date, (Exact, Exact)> = BTreeMap::new();
        for (day, start, end) in by_day(from, to, &zone) {
            let month = Period::month(day);
            prop_assert!(month.contains(day) && Period::week(day).contains(day));
            let (days, whole) = months.entry(month.from).or_default();
            *days += Exact::over(rate, start, end);
            *whole = Exact::over(rate, from.max(month.start(&zone)), to.min(month.end(&zone)));
        }
        for (month, (days, whole)) in &months {
            prop_assert_eq!(days, whole, "{:?}", month);
        }
        prop_assert_eq!(months.values().map(|(days, _)| *days).sum::<Exact>(), Exact::over(rate, from, to));
    }
}
