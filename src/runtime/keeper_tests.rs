use super::*;
use crate::ledger::samples::{at, done, folder, keep, known_instance, operation, owner, sending, spent};
use crate::rules::earlier::Gone;
use crate::rules::saga::Step;
use crate::rules::usage::HostMinute;
use crate::rules::usage::Slot;
use crate::runtime::Inbox;

fn desk(ledger: Option<Ledger>, owner: Owner, outbox: Outbox) -> Desk {
    Desk::new(ledger, owner, outbox)
}

async fn record_and_send(state_dir: PathBuf) -> (bool, Vec<Event>) {
    let (mut inbox, outbox) = Inbox::new();
    let keeper = Keeper::start(state_dir, owner(std::process::id()), outbox, false).unwrap();
    let (sent, heard) = mpsc::channel();
    let then: OnDisk = Box::new(move || sent.send(()).unwrap());
    keeper.record(Box::new(operation(1, sending())), Some(then));
    keeper.end(false);
    let told = std::iter::from_fn(|| inbox.ready()).collect();
    (heard.try_recv().is_ok(), told)
}

/// A full disk for a while costs nothing: what was looked at meanwhile is written down afterwards, in its order,
/// and the sums are told again.
#[test]
fn what_could_not_be_written_is_written_once_it_can_be() {
    let dir = folder();
    let (ledger, _) = Ledger::open(dir.path(), at("10:00")).unwrap();
    let (mut inbox, outbox) = Inbox::new();
    let mut desk = desk(Some(ledger), owner(std::process::id()), outbox);
    let day: Date = "2026-11-30".parse().unwrap();
    desk.sum_up(day, 1, &[]);
    let path = dir.path().join("ledger.sqlite");
    assert_eq!(desk.ledger.as_ref().unwrap().path(), Some(path.as_path()));
    let elsewhere = dir.path().join("elsewhere");
    std::fs::rename(&path, &elsewhere).unwrap();
    let look = |desk: &mut Desk, keep: Keep| desk.keep(Entry::Look(Box::new(keep)));
    look(&mut desk, spent("a", at("10:00"), at("11:00")));
    for _ in 0..5 {
        look(&mut desk, keep(vec![]));
    }
    assert_eq!(desk.waiting.len(), 2, "looks that changed nothing are one");
    look(&mut desk, spent("a", at("11:00"), at("12:00")));
    assert_eq!(desk.waiting.len(), 2, "the next look tells as much");
    desk.sum_up(day, 2, &[]);
    std::fs::rename(&elsewhere, &path).unwrap();
    look(&mut desk, keep(vec![]));
    assert_eq!(desk.waiting.len(), 0);
    let mut told: Vec<Event> = std::iter::from_fn(|| inbox.ready()).collect();
    let last = [WorldEvent::Writable, WorldEvent::AddedUp].map(Event::World);
    assert!(told.ends_with(&last), "they are asked for anew: {told:?}");
    desk.sum_up(day, 3, &[]);
    told.extend(std::iter::from_fn(|| inbox.ready()));
    let sums: Vec<String> = told
        .iter()
        .filter_map(|event| match event {
            Event::World(WorldEvent::Summed(summed)) => {
                Some(summed.today.of(providers::money::Currency::USD).total().amount().to_string())
            }
            _ => None,
        })
        .collect();
    assert_eq!(sums, ["0", "4"], "what waits is in the sums that were told: {told:?}");
}

/// Whoever collects meanwhile goes on from what is written: what waits here would be of the same time.
#[test]
fn what_waits_is_dropped_when_another_process_collects() {
    let dir = folder();
    let (mut ledger, _) = Ledger::open(dir.path(), at("10:00")).unwrap();
    let other = owner(1);
    ledger.claim(&other, clock::now(), CLAIM, &|_| true).unwrap();
    let (_inbox, outbox) = Inbox::new();
    let mut desk = desk(Some(ledger), owner(std::process::id()), outbox);
    desk.waiting.push_back(Entry::Look(Box::new(spent("a", at("10:00"), at("11:00")))));
    desk.claim();
    assert!(desk.waiting.is_empty());
    assert!(desk.ledger.unwrap().sum_up("2026-11-30".parse().unwrap()).unwrap().today.is_empty());
}

/// What was billed is known once it is in the books, and is written down as soon as it can be. Of two answers about
/// one time the later one is enough.
#[test]
fn what_was_billed_is_told_to_be_known_once_it_is_written() {
    let dir = folder();
    let (mut ledger, _) = Ledger::open(dir.path(), at("10:00")).unwrap();
    ledger.keep(&keep(vec![])).unwrap();
    let (mut inbox, outbox) = Inbox::new();
    let mut desk = desk(Some(ledger), owner(std::process::id()), outbox);
    let (path, elsewhere) = (dir.path().join("ledger.sqlite"), dir.path().join("elsewhere"));
    let billed = |account: &str, to| {
        Entry::Billed(Billed { account: account.into(), from: at("08:00"), to: at(to), lines: vec![] })
    };
    std::fs::rename(&path, &elsewhere).unwrap();
    for (account, to) in [("team", "09:00"), ("other", "09:00"), ("team", "10:00")] {
        desk.keep(billed(account, to));
        desk.keep(Entry::Look(Box::new(keep(vec![]))));
    }
    let mut known = || {
        let told = std::iter::from_fn(|| inbox.ready());
        let kept = told.filter_map(|event| match event {
            Event::World(WorldEvent::BilledKept { account, to }) => Some((account.to_string(), to)),
            _ => None,
        });
        kept.collect::<Vec<_>>()
    };
    assert_eq!(known(), []);
    std::fs::rename(&elsewhere, &path).unwrap();
    desk.keep(Entry::Look(Box::new(keep(vec![]))));
    assert_eq!(known(), [("other".to_owned(), at("09:00")), ("team".to_owned(), at("10:00"))]);
    assert_eq!(desk.ledger.unwrap().recall(at("10:00")).unwrap().0.billed_to[&AccountName::from("team")], at("10:00"));
}

#[test]
fn what_machines_did_while_the_disk_was_full_is_written_later() {
    let dir = folder();
    let (ledger, _) = Ledger::open(dir.path(), at("10:00")).unwrap();
    let (_inbox, outbox) = Inbox::new();
    let mut desk = desk(Some(ledger), owner(std::process::id()), outbox);
    let path = dir.path().join("ledger.sqlite");
    let elsewhere = path.with_extension("elsewhere");
    let number = clock::now().as_second().div_euclid(300);
    let saw = |number, seen| {
        let host = HostMinute { seen: true, averaged_over: 1, ..HostMinute::default() };
        let slot = Slot { number, seen, whole: seen, host, cards: Vec::new() };
        vec![UsageEntry { identity: known_instance("a").identity, slot, latest: None }]
    };
    std::fs::rename(&path, &elsewhere).unwrap();
    for (number, seen) in [(number - 1, 0b10), (number, 0b01), (number, 0b11)] {
        desk.keep_usage(saw(number, seen));
    }
    assert_eq!(desk.usage.len(), 2);
    std::fs::rename(&elsewhere, &path).unwrap();
    desk.keep_usage(saw(number, 0b100));
    assert!(desk.usage.is_empty());
    let (read, _) = desk.ledger.unwrap().usage_since(clock::now() - SignedDuration::from_hours(1), 10).unwrap();
    assert_eq!(read.iter().map(|entry| entry.slot.seen).collect::<Vec<_>>(), [0b10, 0b111]);
}

/// Another process set the file aside: what is at its place is claimed and read, and written from then on. Its log
/// outlives the closing of the file that is elsewhere.
#[test]
fn a_ledger_that_another_process_began_anew_is_gone_on_with() {
    let dir = folder();
    let (ledger, _) = Ledger::open(dir.path(), at("10:00")).unwrap();
    let (mut inbox, outbox) = Inbox::new();
    let mut desk = desk(Some(ledger), owner(std::process::id()), outbox);
    desk.claim();
    desk.keep(Entry::Look(Box::new(keep(vec![known_instance("a")]))));
    let path = dir.path().join("ledger.sqlite");
    let (mut other, _) = Ledger::open(dir.path(), at("10:00")).unwrap();
    other.set_aside("it looks damaged", at("10:01")).unwrap();
    other.keep(&keep(vec![known_instance("b")])).unwrap();
    std::iter::from_fn(|| inbox.ready()).for_each(drop);

    desk.keep(Entry::Look(Box::new(keep(vec![known_instance("c")]))));
    let moved = LedgerError::Moved { path: path.clone() }.to_string();
    let told = |inbox: &mut Inbox| std::iter::from_fn(|| inbox.ready()).collect::<Vec<_>>();
    assert_eq!(
        told(&mut inbox),
        [Event::World(WorldEvent::Ledger(LedgerNotice::NotWritable { why: moved }))],
        "it is told what is wrong"
    );
    desk.claim();
    assert_eq!(told(&mut inbox), [WorldEvent::Writable, WorldEvent::Reopened].map(Event::World));
    assert_eq!(desk.ledger.as_ref().unwrap().path(), Some(path.as_path()));
    desk.claim();
    assert_eq!(told(&mut inbox), [Event::World(WorldEvent::Collector(Collector::Us))]);
    desk.keep(Entry::Look(Box::new(keep(vec![known_instance("d")]))));
    let mut ids: Vec<String> =
        other.recall(at("10:00")).unwrap().0.instances.iter().map(|known| known.row.id.to_string()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["b", "d"], "what was known before is in the file that was set aside");
    assert!(dir.path().join("ledger.sqlite-wal").exists());
}

/// An id that comes back may be another machine: who takes in what providers list is told what is gone.
#[test]
fn who_collects_is_told_what_is_gone() {
    let dir = folder();
    let (mut ledger, _) = Ledger::open(dir.path(), at("10:00")).unwrap();
    let mut gone = known_instance("a");
    gone.gone_at = Some(at("01:00"));
    ledger.keep(&keep(vec![gone.clone()])).unwrap();
    let (mut inbox, outbox) = Inbox::new();
    let mut desk = desk(Some(ledger), owner(std::process::id()), outbox);
    let mut told = |desk: &mut Desk| {
        desk.recall();
        match inbox.ready().unwrap() {
            Event::World(WorldEvent::Remembered { memory, .. }) => memory.earlier.of(&gone.identity),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(told(&mut desk), None);
    desk.collector = Some(Collector::Us);
    assert_eq!(told(&mut desk), Some(Gone { generation: 0, created_at: gone.row.created_at }));
}

/// Safety: nothing is sent before it is on the disk, and a ledger that lives in memory never is.
#[tokio::test]
async fn nothing_is_sent_on_the_word_of_a_ledger_in_memory() {
    let dir = folder();
    let (sent, told) = record_and_send(dir.path().join("state")).await;
    assert!(sent && told.is_empty(), "{told:?}");

    let file = dir.path().join("a-file");
    std::fs::write(&file, "").unwrap();
    let (sent, told) = record_and_send(file).await;
    assert!(!sent);
    let not_recorded = |event: &Event| matches!(event, Event::World(WorldEvent::NotRecorded { .. }));
    assert!(told.iter().any(not_recorded), "{told:?}");
}

/// After a change of zone: what waits for whole sums is answered when they are, and nothing waits for it.
#[tokio::test]
async fn sums_are_told_when_the_books_are_added_up_in_the_zone() {
    let dir = folder();
    let (mut ledger, _) = Ledger::open(dir.path(), at("10:00")).unwrap();
    // The last day of November here is the first of December there, from 16:00 on.
    let (from, to) = (at("15:00"), at("20:00"));
    ledger.keep(&spent("a", from, to)).unwrap();
    drop(ledger);

    let (mut inbox, outbox) = Inbox::new();
    let keeper = Keeper::start(dir.path().to_owned(), owner(std::process::id()), outbox, false).unwrap();
    keeper.use_zone(TimeZone::get("Asia/Shanghai").unwrap());
    keeper.claim();
    keeper.sum_up("2026-12-01".parse().unwrap(), 1, vec![]);
    keeper.recall();
    let mut told = Vec::new();
    let summed = loop {
        match inbox.next().await.unwrap() {
            Event::World(WorldEvent::Summed(summed)) => break summed,
            Event::World(WorldEvent::AddedUp) => keeper.sum_up("2026-12-01".parse().unwrap(), 2, vec![]),
            other => told.push(other),
        }
    };
    assert!(matches!(told[..], [Event::World(WorldEvent::Collector(_)), Event::World(WorldEvent::Remembered { .. })]));
    assert_eq!(summed.asked, 2, "what was not whole was not told");
    let month = summed.month.of(providers::money::Currency::USD);
    assert_eq!(month.total().amount().to_string(), "8");
    keeper.end(true);
    let (ledger, _) = Ledger::open(dir.path(), at("10:00")).unwrap();
    assert!(ledger.is_unfinished().unwrap(), "they are those of the other zone");
}

/// A write of another process that takes long makes nobody the collector who was none.
#[test]
fn a_busy_ledger_leaves_the_collector_who_it_was() {
    let other = Collector::Other { owner: owner(7), until: at("10:00") };
    assert_eq!(collector(Err(LedgerError::Busy), Some(other.clone())), other);
    assert_eq!(collector(Err(LedgerError::Busy), None), Collector::Us);
    assert_eq!(collector(Err(LedgerError::ReadOnly), Some(other.clone())), Collector::Us);
    assert_eq!(collector(Ok(other.clone()), Some(Collector::Us)), other);
}

/// After a power cut the number of the process may belong to another one.
#[cfg(target_os = "linux")]
#[test]
fn a_process_that_began_after_the_action_has_it_not_in_hand() {
    let began = process_began(std::process::id()).unwrap();
    let orphaned = |began_at| {
        let operation = Operation { began_at, ..operation(1, sending()) };
        is_orphaned(&operation, &owner(std::process::id()), &owner(1))
    };
    assert!(!orphaned(began));
    assert!(orphaned(began - SignedDuration::from_hours(1)));
}

/// Safety: an action under way is never forgotten, also when its process ends beside a collector.
#[cfg(unix)]
#[tokio::test]
async fn who_collects_is_told_what_a_dead_process_of_this_host_left() {
    let dir = folder();
    let (mut ledger, _) = Ledger::open(dir.path(), at("10:00")).unwrap();
    let (us, dead) = (owner(std::process::id()), owner(i32::MAX as u32));
    let elsewhere = Owner { host: "elsewhere".to_owned(), ..dead.clone() };
    for (id, owner) in [(1, &us), (2, &dead), (3, &elsewhere)] {
        ledger.record(&operation(id, sending()), owner, at("10:00")).unwrap();
    }
    let (mut inbox, outbox) = Inbox::new();
    desk(Some(ledger), us, outbox).claim();
    let collector = Event::World(WorldEvent::Collector(Collector::Us));
    let orphaned = Event::World(WorldEvent::Orphaned(vec![(operation(2, sending()), dead)]));
    assert_eq!(std::iter::from_fn(|| inbox.ready()).collect::<Vec<_>>(), [collector, orphaned]);
}

/// Safety: what was not begun is not sent either, even when the other one ends before the state heard of it.
#[cfg(unix)]
#[tokio::test]
async fn an_action_that_came_second_is_never_sent() {
    let dir = folder();
    let looking = |id| operation(id, Step::Checking { looks: 1, next_look: None });
    // The parent of this process lives as long as it does.
    let other = owner(std::os::unix::process::parent_id());
    let began_at = clock::now();
    let (mut theirs, _) = Ledger::open(dir.path(), began_at).unwrap();
    let first = Operation { began_at, ..looking(1) };
    theirs.record(&first, &other, began_at).unwrap();

    let (mut inbox, outbox) = Inbox::new();
    let (ours, _) = Ledger::open(dir.path(), began_at).unwrap();
    let mut desk = desk(Some(ours), owner(std::process::id()), outbox);
    desk.record(&looking(2), None);
    let forestalled = Event::World(WorldEvent::Forestalled { op: OpId(2), by: other.clone() });
    assert_eq!(inbox.ready(), Some(forestalled));

    theirs.record(&Operation { step: done("10:01"), ..first }, &other, began_at).unwrap();
    desk.record(&operation(2, sending()), Some(Box::new(|| panic!("it was sent"))));
    desk.record(&operation(2, done("10:01")), None);
    assert_eq!(inbox.ready(), None);
    let steps: Vec<String> = theirs.journal(OpId(2)).unwrap().into_iter().map(|line| line.step).collect();
    assert_eq!(steps, ["ended"]);
}

/// What is overdue, and what nobody sees to any more, stands in nobody's way.
#[cfg(unix)]
#[tokio::test]
async fn an_action_begins_beside_what_is_overdue_or_was_left() {
    let overdue = Step::Overdue { since: at("10:03"), doubt: None, absences: 0, next_look: None };
    let alive = owner(std::os::unix::process::parent_id());
    for (step, by) in [(overdue, alive), (sending(), owner(i32::MAX as u32))] {
        let mut ledger = Ledger::in_memory().unwrap();
        ledger.record(&Operation { began_at: clock::now(), ..operation(1, step) }, &by, at("10:00")).unwrap();
        let (mut inbox, outbox) = Inbox::new();
        let mut desk = desk(Some(ledger), owner(std::process::id()), outbox);
        desk.record(&operation(2, Step::Checking { looks: 1, next_look: None }), None);
        assert_eq!(inbox.ready(), None);
        assert_eq!(desk.ledger.unwrap().journal(OpId(2)).unwrap().len(), 1);
    }
}

/// An audit that finds nothing says that nothing was ever done.
#[tokio::test]
async fn an_audit_without_a_ledger_is_an_error() {
    let (_inbox, outbox) = Inbox::new();
    let (answer, asked) = oneshot::channel();
    let (work, todo) = mpsc::channel();
    work.send(Work::Audit(10, answer)).unwrap();
    drop(work);
    desk(None, owner(1), outbox).serve(todo);
    assert!(asked.await.unwrap().is_err());
}

/// The answer comes in any case: a channel that waited for it for ever would never be told anything again.
#[test]
fn a_message_that_cannot_be_written_down_is_said_so() {
    let dir = folder();
    let (ledger, _) = Ledger::open(dir.path(), at("10:00")).unwrap();
    let expected = [(Some(ledger), Ok(())), (None, Err("the ledger cannot be written: it could not be opened"))];
    for (ledger, expected) in expected {
        let (_inbox, outbox) = Inbox::new();
        let (work, todo) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        work.send(Work::Sending(vec![], Box::new(move |written| tell.send(written).unwrap()))).unwrap();
        work.send(Work::End { release: false }).unwrap();
        desk(ledger, owner(std::process::id()), outbox).serve(todo);
        assert_eq!(told.try_recv().unwrap(), expected.map_err(str::to_owned));
    }
}

/// Whoever collects hears that a `watch` is there, and that it is not there any more.
#[test]
fn a_watch_that_looks_on_is_known_to_who_collects() {
    let dir = folder();
    let open = || Ledger::open(dir.path(), clock::now()).unwrap().0;
    let (mut inbox, outbox) = Inbox::new();
    let us = std::process::id();
    let mut screen = desk(Some(open()), owner(us), outbox.clone());
    let mut watched = |screen: &mut Desk| {
        screen.claim();
        let told = std::iter::from_fn(|| inbox.ready()).filter_map(|event| match event {
            Event::World(WorldEvent::Watched(watched)) => Some(watched),
            _ => None,
        });
        told.collect::<Vec<_>>()
    };
    assert_eq!(watched(&mut screen), Vec::<bool>::new());
    let (_inbox, elsewhere) = Inbox::new();
    let mut watch = desk(Some(open()), Owner { host: "laptop".to_owned(), pid: 1 }, elsewhere);
    watch.watches = true;
    watch.claim();
    assert_eq!(watch.collector, Some(Collector::Other { owner: owner(us), until: screen_until(&screen) }));
    assert_eq!(watched(&mut screen), [true]);
    assert_eq!(watched(&mut screen), Vec::<bool>::new(), "told once");
    let (work, todo) = mpsc::channel();
    work.send(Work::End { release: false }).unwrap();
    watch.serve(todo);
    assert_eq!(watched(&mut screen), [false]);
}

fn screen_until(desk: &Desk) -> Timestamp {
    desk.ledger.as_ref().unwrap().collector().unwrap().expect("somebody collects").1
}
