use std::sync::Barrier;

use providers::model::ResourceKind;
use rstest::rstest;
use tempfile::TempDir;

use super::*;
use crate::ledger::samples::*;
use crate::rules::settings::Setting;

fn file(dir: &TempDir) -> PathBuf {
    dir.path().join(FILE)
}

/// The names in the folder, without the lock.
fn names(dir: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(dir.path()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name != LOCK_FILE);
    names.sort();
    names
}

fn project(name: &str) -> Setting {
    Setting { project: Some(name.to_owned()), ..Setting::default() }
}

/// Begins a ledger that knows some machines and one setting, and closes it.
fn filled(dir: &TempDir) {
    let mut ledger = open(dir);
    ledger.keep(&keep((0..40).map(|n| known_instance(&format!("pod-{n:02}"))).collect())).unwrap();
    ledger.set(&identity(ResourceKind::Instance, "pod-00"), &project("vision")).unwrap();
}

/// The number of machines and the projects that are recalled.
fn known(ledger: &mut Ledger) -> (usize, Vec<String>) {
    let (memory, notices) = ledger.recall(at("10:00")).unwrap();
    assert_eq!(notices, []);
    (memory.instances.len(), memory.settings.into_values().filter_map(|setting| setting.project).collect())
}

fn set_aside_as(notices: &[LedgerNotice]) -> (&Path, &str) {
    match notices {
        [LedgerNotice::SetAside { kept_as, why }, ..] => (Path::new(kept_as), why),
        other => panic!("nothing was set aside: {other:?}"),
    }
}

#[test]
fn a_new_ledger_is_whole_and_opens_again_without_a_word() {
    let dir = folder();
    let ledger = open(&dir);
    assert_eq!(ledger.path(), Some(file(&dir).as_path()));
    assert!(!ledger.read_only);
    let mode: String = ledger.main.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
    let id: i32 = ledger.main.pragma_query_value(None, "application_id", |row| row.get(0)).unwrap();
    assert_eq!(id, APPLICATION_ID);
    drop(ledger);
    assert_eq!(names(&dir), [FILE]);
    open(&dir);
}

#[test]
fn the_layouts_number_is_that_of_the_newest_migration() {
    let newest = (Schema::current().migrations)().iter().map(Migration::version).max();
    assert_eq!(newest, Some(Schema::current().version()));
}

/// STATE-01: whatever lies there, the program starts, says so, and keeps it under another name.
#[rstest]
#[case::cut(br#"{"version":1,"spend":{"A":{"usd":12.3"#, "not an SQLite file")]
#[case::empty(b"", "the file is empty")]
#[case::nul(&[0; 4], "the file holds NUL bytes")]
#[case::wrong(b"[1,2,3]", "not an SQLite file")]
#[case::a_page_of_nul(&[0; 8192], "the file holds NUL bytes")]
#[case::cut_within_the_first_bytes(b"SQLite format 3\0\x10\x00", "the file is cut off")]
#[case::ours_by_its_mark_alone(
    &[b"SQLite format 3\0\x10\x00\x02\x02\x00\x40\x20\x20".as_slice(), &[0; 44], b"rent", &[0; 4024]].concat(),
    "malformed"
)]
fn a_file_that_cannot_be_used_is_set_aside(#[case] content: &[u8], #[case] reason: &str) {
    let dir = folder();
    fs::write(file(&dir), content).unwrap();
    let (mut ledger, notices) = open_telling(&dir);
    assert_eq!(notices.len(), 1);
    let (kept_as, why) = set_aside_as(&notices);
    assert!(why.contains(reason), "{why}");
    assert_eq!(fs::read(kept_as).unwrap(), content);
    assert_eq!(kept_as, beside(&file(&dir), ".damaged-20261130T100000Z"));

    ledger.keep(&keep(vec![known_instance("pod-a")])).unwrap();
    drop(ledger);
    assert_eq!(known(&mut open(&dir)), (1, vec![]));
    assert_eq!(fs::read(kept_as).unwrap(), content);
}

#[rstest]
#[case::in_the_middle(|size| size / 2)]
#[case::by_a_page(|size| size - 4096)]
#[case::by_a_byte(|size| size - 1)]
#[case::after_one_page(|_| 4096)]
#[case::within_the_first_page(|_| 1000)]
fn a_ledger_that_was_cut_is_set_aside(#[case] length: fn(u64) -> u64) {
    let dir = folder();
    filled(&dir);
    let whole = OpenOptions::new().write(true).open(file(&dir)).unwrap();
    let size = whole.metadata().unwrap().len();
    whole.set_len(length(size)).unwrap();
    let cut = fs::read(file(&dir)).unwrap();

    let (mut ledger, mut notices) = open_telling(&dir);
    let (memory, more) = ledger.recall(at("10:00")).unwrap();
    notices.extend(more);
    assert_eq!(fs::read(set_aside_as(&notices).0).unwrap(), cut);
    assert_eq!(notices.len(), 1);
    assert_eq!(memory, Default::default());
}

#[test]
fn the_database_of_another_program_is_set_aside_untouched() {
    let dir = folder();
    let other = Connection::open(file(&dir)).unwrap();
    other.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE bookmarks (url TEXT)").unwrap();
    keep_log(&other, true).unwrap();
    drop(other);
    let [content, log] = ["", "-wal"].map(|ending| fs::read(beside(&file(&dir), ending)).unwrap());
    let (ledger, notices) = open_telling(&dir);
    let (kept_as, why) = set_aside_as(&notices);
    assert_eq!(why, "the file of another program");
    assert_eq!(fs::read(kept_as).unwrap(), content);
    assert_eq!(fs::read(beside(kept_as, "-wal")).unwrap(), log);
    assert!(ledger.path().is_some());
}

#[test]
fn a_ledger_without_its_tables_or_without_its_layout_is_set_aside() {
    for table in ["operation", "refinery_schema_history"] {
        let dir = folder();
        let ledger = open(&dir);
        ledger.main.execute_batch(&format!("DROP TABLE {table}")).unwrap();
        drop(ledger);
        let (_, notices) = open_telling(&dir);
        assert!(set_aside_as(&notices).1.contains("table"), "{notices:?}");
    }
}

#[test]
fn a_folder_in_the_ledgers_place_is_set_aside_with_all_that_it_holds() {
    let dir = folder();
    fs::create_dir(file(&dir)).unwrap();
    fs::write(file(&dir).join("note"), "mine").unwrap();
    let (_, notices) = open_telling(&dir);
    assert_eq!(fs::read(set_aside_as(&notices).0.join("note")).unwrap(), b"mine");
}

#[test]
fn a_log_whose_file_is_gone_is_set_aside_too() {
    let dir = folder();
    fs::write(beside(&file(&dir), "-wal"), "frames").unwrap();
    let (_, notices) = open_telling(&dir);
    assert_eq!(fs::read(set_aside_as(&notices).0).unwrap(), b"frames");
}

#[test]
fn damaged_files_of_one_second_are_all_kept() {
    let dir = folder();
    for content in ["one", "two", "three"] {
        fs::write(file(&dir), content).unwrap();
        let (ledger, notices) = open_telling(&dir);
        drop(ledger);
        assert_eq!(fs::read_to_string(set_aside_as(&notices).0).unwrap(), content);
    }
    let kept = names(&dir).into_iter().filter(|name| name.contains("damaged")).count();
    assert_eq!(kept, 3);
}

/// STATE-01: the last good copy is used, and it stays.
#[test]
fn after_damage_the_newest_sound_copy_is_taken_up() {
    let dir = folder();
    filled(&dir);
    let backup = copies::back_up(&file(&dir)).unwrap();
    // Newer than the good one, and broken.
    let broken = beside(&file(&dir), ".backup-v7");
    fs::write(&broken, "SQLite format 3\0").unwrap();
    open(&dir).set(&identity(ResourceKind::Instance, "pod-01"), &project("late")).unwrap();
    fs::write(file(&dir), "").unwrap();

    let (mut ledger, notices) = open_telling(&dir);
    set_aside_as(&notices);
    let [_, LedgerNotice::Restored { from, as_of: Some(_) }] = notices.as_slice() else { panic!("{notices:?}") };
    assert_eq!(Path::new(from), backup);
    assert_eq!(known(&mut ledger), (40, vec!["vision".to_owned()]));
    assert!(backup.exists() && broken.exists());
}

/// What the start does not look for is found when it is read.
#[test]
fn damage_that_shows_later_is_set_aside_at_the_recall() {
    let dir = folder();
    filled(&dir);
    copies::back_up(&file(&dir)).unwrap();
    let root = "SELECT rootpage FROM sqlite_master WHERE name = 'resource'";
    let root: u32 = Connection::open(file(&dir)).unwrap().query_row(root, [], |row| row.get(0)).unwrap();
    let root = root as usize;
    let mut content = fs::read(file(&dir)).unwrap();
    content[4096 * (root - 1)..4096 * root].fill(0);
    fs::write(file(&dir), &content).unwrap();

    let mut ledger = open(&dir);
    assert!(matches!(copies::quick_check(&file(&dir)), Err(LedgerError::Damaged { .. })));
    let (memory, notices) = ledger.recall(at("10:00")).unwrap();
    assert_eq!(fs::read(set_aside_as(&notices).0).unwrap(), content);
    assert!(matches!(notices[1..], [LedgerNotice::Restored { .. }]));
    assert_eq!(memory.instances.len(), 40);
    ledger.record(&operation(1, sending()), &owner(7), at("10:00")).unwrap();
    drop(ledger);
    assert_eq!(open(&dir).recall(at("10:00")).unwrap().0.unfinished.len(), 1);
}

#[test]
fn two_processes_that_find_the_same_damage_set_it_aside_once() {
    let dir = folder();
    let (mut first, mut second) = (open(&dir), open(&dir));
    set_aside_as(&first.set_aside("a page is broken", at("10:00")).unwrap());
    first.keep(&keep(vec![known_instance("pod-a")])).unwrap();
    assert_eq!(second.set_aside("a page is broken", at("10:00")).unwrap(), []);
    assert_eq!(known(&mut second), (1, vec![]));
}

const LATER: &str = "ALTER TABLE account ADD COLUMN colour TEXT; UPDATE account SET colour = 'red'";

#[test]
fn the_ledger_of_a_newer_rentop_is_opened_to_read_only() {
    let dir = folder();
    filled(&dir);
    open_in(dir.path(), at("10:00"), &Schema::with_step(LATER)).unwrap();
    let content = fs::read(file(&dir)).unwrap();

    let (mut ledger, notices) = open_telling(&dir);
    assert_eq!(notices, [LedgerNotice::Newer]);
    assert!(ledger.read_only);
    assert_eq!(known(&mut ledger), (40, vec!["vision".to_owned()]));
    let refused = [
        ledger.keep(&keep(vec![])),
        ledger.set(&identity(ResourceKind::Instance, "pod-00"), &Setting::default()),
        ledger.record(&operation(1, sending()), &owner(7), at("10:00")),
        ledger.claim(&owner(7), at("10:00"), jiff::SignedDuration::from_secs(60), &|_| true).map(drop),
        ledger.set_aside("it is not damaged", at("10:00")).map(drop),
    ];
    assert!(refused.iter().all(|answer| matches!(answer, Err(LedgerError::ReadOnly))), "{refused:?}");
    drop(ledger);
    assert_eq!(fs::read(file(&dir)).unwrap(), content);
}

#[test]
fn of_a_newer_ledger_what_cannot_be_asked_for_is_left_out() {
    let dir = folder();
    filled(&dir);
    let moved = Schema::with_step("ALTER TABLE resource RENAME TO asset");
    assert!(open_in(dir.path(), at("10:00"), &moved).is_ok());
    assert_eq!(known(&mut open_telling(&dir).0), (0, vec!["vision".to_owned()]));
}

#[test]
fn an_older_ledger_is_copied_before_its_layout_changes() {
    let dir = folder();
    filled(&dir);
    let (mut ledger, notices) = open_in(dir.path(), at("10:00"), &Schema::with_step(LATER)).unwrap();
    let backup = beside(&file(&dir), &format!(".backup-v{VERSION}"));
    assert_eq!(notices, [LedgerNotice::BackedUp { kept_as: backup.display().to_string() }]);
    assert_eq!(known(&mut ledger), (40, vec!["vision".to_owned()]));
    let colour: String = ledger.main.query_row("SELECT colour FROM account", [], |row| row.get(0)).unwrap();
    assert_eq!(colour, "red");
    drop(ledger);

    // The copy is a ledger of the old layout.
    let old = folder();
    fs::copy(backup, file(&old)).unwrap();
    assert_eq!(known(&mut open(&old)), (40, vec!["vision".to_owned()]));
    // And the change is made once.
    let (_, notices) = open_in(dir.path(), at("10:00"), &Schema::with_step(LATER)).unwrap();
    assert_eq!(notices, []);
}

/// The ledgers of the first release have no books.
#[test]
fn a_ledger_of_the_first_layout_keeps_its_rows_and_gets_books() {
    let (dir, present) = (folder(), folder());
    filled(&present);
    let mut gone = known_instance("pod-40");
    gone.gone_at = Some(at("01:00"));
    open(&present).keep(&keep(vec![gone])).unwrap();
    let first = || (Schema::current().migrations)().into_iter().filter(|step| step.version() == 1).collect();
    let mut old = Connection::open(file(&dir)).unwrap();
    old.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
    Schema { version: 1, migrations: Box::new(first) }.bring_up(&mut old).unwrap();
    old.execute("ATTACH $1 AS present", [file(&present).to_str().unwrap()]).unwrap();
    old.execute_batch(
        "INSERT INTO account SELECT * FROM present.account;
        UPDATE account SET state = json_remove(state, '$.row.billed_to', '$.row.unwatched_noted');
        INSERT INTO resource SELECT account, kind, id, generation, name, phase, first_seen, last_seen, missing_since,
            absences, gone_at, state FROM present.resource;
        INSERT INTO setting SELECT * FROM present.setting;",
    )
    .unwrap();
    drop(old);

    let (mut ledger, notices) = open_telling(&dir);
    let backup = beside(&file(&dir), ".backup-v1");
    assert_eq!(notices, [LedgerNotice::BackedUp { kept_as: backup.display().to_string() }]);
    assert_eq!(known(&mut ledger), (40, vec!["vision".to_owned()]));
    let gone = ledger.earlier().unwrap().of(&identity(ResourceKind::Instance, "pod-40")).unwrap();
    assert_eq!(gone.created_at, known_instance("pod-40").row.created_at);
    ledger.keep(&spent("pod-00", at("08:00"), at("09:00"))).unwrap();
    let summed = ledger.sum_up("2026-11-30".parse().unwrap()).unwrap();
    assert_eq!(summed.rows.len(), 40);
    assert_eq!(summed.since, Some(at("08:00")));
    assert_eq!(layout(&Connection::open(backup).unwrap()).unwrap(), 1);
}

/// Parts of one billed line learn how much of it lies before and after them, and the sums are made anew.
#[test]
fn a_ledger_of_the_third_layout_keeps_what_was_billed() {
    let dir = folder();
    let third = || (Schema::current().migrations)().into_iter().filter(|step| step.version() <= 3).collect();
    let mut old = Connection::open(file(&dir)).unwrap();
    old.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
    Schema { version: 3, migrations: Box::new(third) }.bring_up(&mut old).unwrap();
    let [one, two, three] = ["08:00", "09:00", "11:00"].map(|clock| at(clock).as_millisecond());
    old.execute_batch(&format!(
        "INSERT INTO book (key, account) VALUES (1, 'team');
        INSERT INTO billable VALUES (1, 1, 'instance', 'pod-00', 0, {one}, 0, {longest});
        INSERT INTO terms VALUES (1, 0, 0, 0, NULL, 0, 'USD', 0, 0), (2, 0, 0, 1, NULL, 0, 'USD', 0, 0);
        INSERT INTO amount VALUES (1, 0, {one}, {two}, 1, {one}, 1000000, 0), (1, 0, {two}, {three}, 2, {one}, 2000000, 0),
            (1, 0, {three}, {three}, 1, NULL, 500000, 0);",
        longest = three - one,
    ))
    .unwrap();
    drop(old);
    let (mut ledger, notices) = open_telling(&dir);
    assert!(matches!(notices[..], [LedgerNotice::BackedUp { .. }]), "{notices:?}");
    let mut statement =
        ledger.main.prepare("SELECT billed_before, billed_after FROM amount ORDER BY began, ended").unwrap();
    let parts = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let parts: Vec<(i64, i64)> = parts.collect::<Result<_, _>>().unwrap();
    drop(statement);
    assert_eq!(parts, [(0, three - two), (two - one, 0), (-1, -1)]);
    assert!(ledger.is_unfinished().unwrap());
    while ledger.add_up_more().unwrap() {}
    let today = ledger.sum_up("2026-11-30".parse().unwrap()).unwrap().today;
    assert_eq!(today.of(providers::money::Currency::USD).total().amount().to_string(), "3.5");
}

#[test]
fn a_layout_change_that_fails_leaves_the_file_as_it_was() {
    let dir = folder();
    filled(&dir);
    let broken = Schema::with_step("DROP TABLE setting; CREATE UNIQUE INDEX one_each ON resource (account)");
    let (ledger, notices) = open_in(dir.path(), at("10:00"), &broken).unwrap();
    assert_eq!(ledger.path(), None);
    assert!(matches!(notices[..], [LedgerNotice::BackedUp { .. }, LedgerNotice::NotWritable { .. }]), "{notices:?}");
    assert_eq!(known(&mut open(&dir)), (40, vec!["vision".to_owned()]));
}

#[test]
fn without_a_folder_to_write_to_the_ledger_lives_in_memory() {
    let dir = folder();
    fs::write(dir.path().join("taken"), "").unwrap();
    let (mut ledger, notices) = Ledger::open(&dir.path().join("taken/state"), at("10:00")).unwrap();
    assert!(matches!(&notices[..], [LedgerNotice::NotWritable { why }] if !why.is_empty()), "{notices:?}");
    assert_eq!(ledger.path(), None);
    ledger.keep(&keep(vec![known_instance("pod-a")])).unwrap();
    ledger.record(&operation(1, sending()), &owner(7), at("10:00")).unwrap();
    assert_eq!(known(&mut ledger).0, 1);
}

#[test]
fn a_ledger_that_can_only_be_read_is_remembered_in_memory() {
    let dir = folder();
    filled(&dir);
    // Part of it is still in the log, as after a crash.
    let mut ledger = open(&dir);
    ledger.set(&identity(ResourceKind::Instance, "pod-01"), &project("late")).unwrap();
    for connection in [&ledger.main, ledger.durable.as_ref().unwrap()] {
        keep_log(connection, true).unwrap();
    }
    drop(ledger);
    // Rights would not stop an administrator; a lock that cannot be opened stops everybody.
    fs::remove_file(dir.path().join(LOCK_FILE)).unwrap();
    fs::create_dir(dir.path().join(LOCK_FILE)).unwrap();
    let before = names(&dir);

    let (mut ledger, notices) = open_telling(&dir);
    assert!(matches!(notices[..], [LedgerNotice::NotWritable { .. }]), "{notices:?}");
    assert_eq!(known(&mut ledger), (40, vec!["vision".to_owned(), "late".to_owned()]));
    ledger.set(&identity(ResourceKind::Instance, "pod-01"), &Setting::default()).unwrap();
    assert_eq!(known(&mut ledger).1, ["vision"]);
    assert_eq!(names(&dir), before);
}

#[test]
fn one_process_at_a_time_opens_the_ledger() {
    let dir = folder();
    let held = lock(&file(&dir), Duration::ZERO).unwrap();
    assert!(held.is_some());
    assert!(matches!(lock(&file(&dir), Duration::ZERO), Err(LedgerError::Busy)));
    drop(held);
    assert!(lock(&file(&dir), Duration::ZERO).unwrap().is_some());
}

#[test]
fn many_that_open_at_once_share_one_new_ledger() {
    const PROCESSES: u32 = 6;
    let dir = folder();
    let start = Barrier::new(PROCESSES as usize);
    std::thread::scope(|scope| {
        for n in 0..PROCESSES {
            let (dir, start) = (&dir, &start);
            scope.spawn(move || {
                start.wait();
                let mut ledger = open(dir);
                ledger.keep(&keep(vec![known_instance(&format!("pod-{n}"))])).unwrap();
            });
        }
    });
    assert_eq!(known(&mut open(&dir)).0, PROCESSES as usize);
    assert_eq!(names(&dir), [FILE]);
}

#[cfg(unix)]
mod rights {
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    use super::*;

    const OPENS_IN: &str = "RENTOP_TEST_OPENS_IN";

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    /// SEC-02: whatever the umask, only the user can read the state. The test starts itself once more
    /// below a shell that sets the umask.
    #[test]
    fn all_files_are_for_the_user_alone_whatever_the_umask() {
        const NAME: &str = "ledger::open::tests::rights::all_files_are_for_the_user_alone_whatever_the_umask";
        if let Some(dir) = std::env::var_os(OPENS_IN) {
            // A folder between is made as well.
            let dir = Path::new(&dir).join("state/rentop");
            let (mut ledger, _) = Ledger::open(&dir, at("10:00")).unwrap();
            ledger.keep(&keep(vec![known_instance("pod-a")])).unwrap();
            copies::back_up(ledger.path().unwrap()).unwrap();
            let modes = fs::read_dir(&dir).unwrap().map(|entry| mode(&entry.unwrap().path()));
            let modes: Vec<_> = modes.map(|mode| format!("{mode:o}")).collect();
            // The file, its log, its shared memory, the lock, the copy.
            assert_eq!(modes, ["600"; 5]);
            assert_eq!(format!("{:o}", mode(&dir)), "700");
            return;
        }
        for umask in ["000", "022", "077"] {
            let dir = folder();
            let child = Command::new("sh")
                .args(["-c", "umask \"$1\" && exec \"$2\" --exact \"$3\"", "sh", umask])
                .arg(std::env::current_exe().unwrap())
                .arg(NAME)
                .env(OPENS_IN, dir.path())
                .output()
                .unwrap();
            assert!(child.status.success(), "{umask}: {}", String::from_utf8_lossy(&child.stdout));
            assert!(dir.path().join("state/rentop").join(FILE).exists(), "{umask}");
        }
    }

    #[test]
    fn a_ledger_that_others_could_read_is_closed_to_them() {
        let dir = folder();
        let ledger = open(&dir);
        let files = ["", "-wal", "-shm"].map(|ending| beside(&file(&dir), ending));
        for file in &files {
            fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
        }
        open(&dir);
        assert_eq!(files.map(|file| mode(&file)), [0o600; 3]);
        drop(ledger);
    }
}
