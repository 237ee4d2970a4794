//! Opening the file: new, ours, older, newer, damaged or foreign. Nothing that is found is ever deleted or
//! overwritten; what cannot be used is moved aside with its log.
//!
//! Opening does not look through the whole file, so that the first frame does not wait for it: see
//! [`quick_check`](super::quick_check).

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use refinery::{Migration, Runner};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use tempfile::TempPath;

use super::{BUSY_FOR, Ledger, LedgerError, Place, copies};
use crate::rules::memory::LedgerNotice;

mod embedded {
    refinery::embed_migrations!("src/ledger/migrations");
}

/// The ledger's file within the state folder.
pub(super) const FILE: &str = "ledger.sqlite";
/// Held while a process opens the ledger, so that two never begin, move or migrate it at once.
const LOCK_FILE: &str = "ledger.lock";
/// Marks an SQLite file as a ledger of rentop: "rent" in ASCII.
const APPLICATION_ID: i32 = 0x7265_6e74;
/// SQLite's companions of a database file.
const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];
/// The log is cut back to this size after a burst.
const LOG_BYTES: i64 = 4 << 20;

/// The number of the newest migration, so that a usual start need not prepare them all.
const VERSION: i32 = 1;

/// The layout of the tables, as its number and the list of steps that lead to it.
pub(super) struct Schema {
    version: i32,
    migrations: Box<dyn Fn() -> Vec<Migration>>,
}

impl Schema {
    pub fn current() -> Self {
        let migrations = Box::new(|| embedded::migrations::runner().get_migrations().clone());
        Schema { version: VERSION, migrations }
    }

    /// The present layout and one step more, as a later rentop would have it.
    #[cfg(test)]
    pub fn with_step(sql: &str) -> Self {
        let sql = sql.to_owned();
        let migrations = move || {
            let step = Migration::unapplied(&format!("V{}__later", VERSION + 1), &sql).expect("a migration's name");
            (Schema::current().migrations)().into_iter().chain([step]).collect()
        };
        Schema { version: VERSION + 1, migrations: Box::new(migrations) }
    }

    pub fn version(&self) -> i32 {
        self.version
    }

    /// Takes all the steps that are missing, or none.
    pub fn bring_up(&self, connection: &mut Connection) -> Result<(), LedgerError> {
        Runner::new(&(self.migrations)()).set_grouped(true).run(connection)?;
        Ok(())
    }
}

/// The layout's number in an open file; an error when it has none.
fn version_of(connection: &Connection) -> rusqlite::Result<i32> {
    connection.query_row("SELECT MAX(version) FROM refinery_schema_history", [], |row| row.get(0))
}

pub(super) fn open_in(dir: &Path, now: Timestamp, schema: &Schema) -> Result<(Ledger, Vec<LedgerNotice>), LedgerError> {
    open_at(&dir.join(FILE), None, now, schema)
}

/// Sets a damaged file aside and goes on with the last good copy, or anew.
pub(super) fn replace(
    place: Place,
    why: &str,
    now: Timestamp,
    schema: &Schema,
) -> Result<(Ledger, Vec<LedgerNotice>), LedgerError> {
    open_at(&place.path, Some((&place, why)), now, schema)
}

/// An empty ledger in memory.
pub(super) fn in_memory(schema: &Schema) -> Result<Ledger, LedgerError> {
    let mut main = Connection::open_in_memory()?;
    schema.bring_up(&mut main)?;
    adopt(main, None, schema, &mut Vec::new())
}

/// A file that is known to be damaged, and why it is thought so.
type Damage<'a> = Option<(&'a Place, &'a str)>;

fn open_at(
    path: &Path,
    damage: Damage,
    now: Timestamp,
    schema: &Schema,
) -> Result<(Ledger, Vec<LedgerNotice>), LedgerError> {
    let mut notices = Vec::new();
    match on_disk(path, damage, now, schema, &mut notices) {
        Ok(ledger) => Ok((ledger, notices)),
        // Another process is there and well: a ledger of our own would make a second collector.
        Err(LedgerError::Busy) => Err(LedgerError::Busy),
        Err(error) => {
            notices.push(LedgerNotice::NotWritable { why: error.to_string() });
            let ledger = match copies::in_memory(path, schema) {
                Some(main) => adopt(main, None, schema, &mut notices)?,
                None => in_memory(schema)?,
            };
            Ok((ledger, notices))
        }
    }
}

fn on_disk(
    path: &Path,
    damage: Damage,
    now: Timestamp,
    schema: &Schema,
    notices: &mut Vec<LedgerNotice>,
) -> Result<Ledger, LedgerError> {
    make_folder(parent(path))?;
    let _lock = lock(path, BUSY_FOR)?;
    // Another process may have found the same damage, and the file at the path is a good one by now.
    let damage = damage.filter(|(place, _)| place.check().is_ok()).map(|(_, why)| why.to_owned());
    let found = match damage {
        Some(why) => Look::Other(why),
        None => look(path)?,
    };
    match found {
        Look::Nothing => begin(path, false, schema, notices)?,
        Look::Ledger => match enter(path, schema, notices) {
            Err(LedgerError::Damaged { why }) => {
                set_aside(path, &why, now, notices)?;
                begin(path, true, schema, notices)?;
            }
            entered => return entered,
        },
        Look::Other(why) => {
            set_aside(path, &why, now, notices)?;
            begin(path, true, schema, notices)?;
        }
    }
    enter(path, schema, notices)
}

/// What is at the ledger's path.
enum Look {
    Nothing,
    /// Says of itself that it is a ledger.
    Ledger,
    /// Something else, or what is left of a ledger.
    Other(String),
}

/// Reads the first bytes by hand: SQLite would already change a foreign file by opening it.
fn look(path: &Path) -> Result<Look, LedgerError> {
    let other = |why: &str| Ok(Look::Other(why.to_owned()));
    let file = match path.metadata() {
        Ok(file) => file,
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        Err(_) if path.symlink_metadata().is_ok() => {
            return Err(LedgerError::NotWritable { why: format!("{} is a link to nothing", path.display()) });
        }
        Err(_) if beside(path, "-wal").metadata().is_ok_and(|log| log.len() > 0) => {
            return other("the file is missing beside its log");
        }
        Err(_) => return Ok(Look::Nothing),
    };
    if !file.is_file() {
        return other("not a file");
    }
    let mut head = Vec::with_capacity(100);
    File::open(path)?.take(100).read_to_end(&mut head)?;
    if head.is_empty() {
        return other("the file is empty");
    }
    if head.iter().all(|byte| *byte == 0) {
        return other("the file holds NUL bytes");
    }
    if !head.starts_with(b"SQLite format 3\0") {
        return other("not an SQLite file");
    }
    let Some(id) = head.get(68..72) else { return other("the file is cut off") };
    if *id != APPLICATION_ID.to_be_bytes() {
        return other("the file of another program");
    }
    // SQLite takes the missing end of the last page for zeros. With a log beside it, the log has that page.
    let page_bytes = match u64::from(u16::from_be_bytes([head[16], head[17]])) {
        1 => 65_536,
        bytes => bytes.max(1),
    };
    let log_bytes = beside(path, "-wal").metadata().map_or(0, |log| log.len());
    if log_bytes == 0 && file.len() % page_bytes != 0 {
        return other("the file is cut off");
    }
    Ok(Look::Ledger)
}

/// Opens what says that it is a ledger.
fn enter(path: &Path, schema: &Schema, notices: &mut Vec<LedgerNotice>) -> Result<Ledger, LedgerError> {
    make_private(path)?;
    let mut main = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let version = layout(&main)?;
    if version > schema.version() {
        drop(main);
        let main = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        return adopt(main, Some(Place::of(path)?), schema, notices);
    }
    if main.is_readonly(rusqlite::MAIN_DB)? {
        return Err(LedgerError::NotWritable { why: format!("no right to write to {}", path.display()) });
    }
    let log = switch_to_log(&main)?;
    if version < schema.version() {
        let kept_as = copies::before_migration(&main, path, version)?;
        notices.push(LedgerNotice::BackedUp { kept_as: kept_as.display().to_string() });
        schema.bring_up(&mut main)?;
    }
    if !has_tables(&main)? {
        return Err(LedgerError::Damaged { why: "tables are missing".to_owned() });
    }
    // Without the log, a power cut could damage the file unless every write is forced to the disk.
    main.pragma_update(None, "synchronous", if log { "NORMAL" } else { "FULL" })?;
    let mut ledger = adopt(main, Some(Place::of(path)?), schema, notices)?;
    let durable = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    durable.pragma_update(None, "synchronous", "FULL")?;
    // On macOS a plain sync leaves the data in the drive's cache.
    durable.pragma_update(None, "fullfsync", "ON")?;
    keep_log(&ledger.main, false)?;
    keep_log(&durable, false)?;
    ledger.durable = Some(durable);
    Ok(ledger)
}

/// Makes a ledger of a connection whose layout is the present one or a newer one.
fn adopt(
    main: Connection,
    place: Option<Place>,
    schema: &Schema,
    notices: &mut Vec<LedgerNotice>,
) -> Result<Ledger, LedgerError> {
    let read_only = layout(&main)? > schema.version();
    if read_only {
        notices.push(LedgerNotice::Newer);
    }
    Ok(Ledger { main, durable: None, place, read_only })
}

fn connect(path: &Path, mode: OpenFlags) -> Result<Connection, LedgerError> {
    let connection = Connection::open_with_flags(path, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_FOR)?;
    keep_log(&connection, true)?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES)?;
    Ok(connection)
}

/// Whether closing leaves the log as it is, instead of moving it into the file: what may be damaged is to be
/// set aside as it was found.
pub(super) fn keep_log(connection: &Connection, keep: bool) -> Result<(), LedgerError> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep)?;
    Ok(())
}

/// True when the file has a write-ahead log; false where the file system cannot carry one.
fn switch_to_log(connection: &Connection) -> Result<bool, LedgerError> {
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0)).map_err(LedgerError::from)?;
    Ok(mode.eq_ignore_ascii_case("wal"))
}

/// The layout's number. A ledger has one from its first moment on, so a file without is damaged.
pub(super) fn layout(connection: &Connection) -> Result<i32, LedgerError> {
    version_of(connection).map_err(|error| match error.into() {
        LedgerError::Sql(error) => LedgerError::Damaged { why: error.to_string() },
        known => known,
    })
}

fn has_tables(connection: &Connection) -> Result<bool, LedgerError> {
    const TABLES: &str = "
        SELECT COUNT(*) FROM sqlite_master WHERE type = 'table'
        AND name IN ('account', 'resource', 'setting', 'operation', 'journal', 'collector')";
    let found: i64 = connection.query_row(TABLES, [], |row| row.get(0))?;
    Ok(found == 6)
}

/// Puts a ledger at a path where there is nothing: the last good copy if there is one and it is `wanted`,
/// else a new one. It appears whole or not at all.
fn begin(path: &Path, copy_wanted: bool, schema: &Schema, notices: &mut Vec<LedgerNotice>) -> Result<(), LedgerError> {
    let restored = if copy_wanted { copies::last_good(path, schema) } else { None };
    let temporary = match restored {
        Some(copies::Restored { file, from, as_of }) => {
            notices.push(LedgerNotice::Restored { from: from.display().to_string(), as_of });
            file
        }
        None => temporary_beside(path)?,
    };
    {
        let mut connection = Connection::open_with_flags(&temporary, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        // Nobody else knows this file yet, and all of it is forced to the disk at the end.
        connection.pragma_update(None, "synchronous", "OFF")?;
        connection.pragma_update(None, "application_id", APPLICATION_ID)?;
        schema.bring_up(&mut connection)?;
        switch_to_log(&connection)?;
    }
    settle(temporary, |temporary| match temporary.persist_noclobber(path) {
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        done => done.map_err(|error| error.error),
    })?;
    sync_folder(parent(path));
    Ok(())
}

/// Forces a finished file to the disk and gives it its name.
pub(super) fn settle(file: TempPath, name: impl FnOnce(TempPath) -> io::Result<()>) -> io::Result<()> {
    OpenOptions::new().write(true).open(&file)?.sync_all()?;
    name(file)
}

/// An empty file of a passing name, for us alone, that goes away unless it is given another name.
pub(super) fn temporary_beside(path: &Path) -> io::Result<TempPath> {
    let file = tempfile::Builder::new().prefix(".ledger-").suffix(".new").tempfile_in(parent(path))?;
    Ok(file.into_temp_path())
}

/// Moves whatever is at the path to a free name, with its companions.
fn set_aside(path: &Path, why: &str, now: Timestamp, notices: &mut Vec<LedgerNotice>) -> Result<(), LedgerError> {
    let stamp = now.to_zoned_datetime(TimeZone::UTC).strftime("%Y%m%dT%H%M%SZ").to_string();
    let names = (1..).map(|turn| match turn {
        1 => beside(path, &format!(".damaged-{stamp}")),
        turn => beside(path, &format!(".damaged-{stamp}-{turn}")),
    });
    let taken = |name: &Path| {
        let mut files = COMPANIONS.iter().map(|companion| beside(name, companion));
        name.symlink_metadata().is_ok() || files.any(|file| file.symlink_metadata().is_ok())
    };
    let kept_as = names.into_iter().find(|name| !taken(name)).expect("the numbers do not end");
    let mut moved = Vec::new();
    // The file before its log: should we end in between, a log without a file is set aside at the next start.
    for companion in [""].iter().chain(&COMPANIONS) {
        let to = beside(&kept_as, companion);
        match fs::rename(beside(path, companion), &to) {
            Ok(()) => moved.push(to),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    sync_folder(parent(path));
    let kept_as = moved.first().unwrap_or(&kept_as).display().to_string();
    notices.push(LedgerNotice::SetAside { kept_as, why: why.to_owned() });
    Ok(())
}

/// A name in the same folder that begins with the file's own.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

pub(super) fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

/// Waits until no other process is opening the ledger, as long as the patience lasts. `None` where the folder has no locks: SQLite then
/// says so itself. The lock ends with the returned file, or with the process.
fn lock(path: &Path, patience: Duration) -> Result<Option<File>, LedgerError> {
    let path = path.with_file_name(LOCK_FILE);
    let file = private_options().create(true).truncate(false).write(true).open(&path)?;
    make_private(&path)?;
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::Error(_)) => return Ok(None),
            Err(TryLockError::WouldBlock) if began.elapsed() >= patience => return Err(LedgerError::Busy),
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// Makes the entries of a folder durable, where the system has that.
pub(super) fn sync_folder(dir: &Path) {
    // Some file systems refuse it; the names are then as durable as they make them.
    if let Ok(dir) = File::open(dir) {
        let _ = dir.sync_all();
    }
}

#[cfg(unix)]
fn private_options() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

#[cfg(not(unix))]
fn private_options() -> OpenOptions {
    OpenOptions::new()
}

/// Only the user may read and write it, whatever the umask was. SQLite gives its companions the same mode.
#[cfg(unix)]
fn make_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if path.metadata()?.permissions().mode() & 0o777 == 0o600 {
        return Ok(());
    }
    // Companions of an earlier process keep the mode that they had.
    for companion in COMPANIONS {
        match fs::set_permissions(beside(path, companion), fs::Permissions::from_mode(0o600)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn make_private(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Makes the state folder, for the user alone. One that is there keeps the rights that it has.
#[cfg(unix)]
fn make_folder(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    if dir.is_dir() {
        return Ok(());
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn make_folder(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)
}

#[cfg(test)]
mod tests {
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
        assert!(ledger.size().unwrap() > 0);
        assert!(!ledger.is_read_only());
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
        let mut content = fs::read(file(&dir)).unwrap();
        // All but the pages with the layout and its number.
        content[4096 * 4..].fill(0);
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
        assert!(ledger.is_read_only());
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
        let backup = beside(&file(&dir), ".backup-v1");
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

    #[test]
    fn a_layout_change_that_fails_leaves_the_file_as_it_was() {
        let dir = folder();
        filled(&dir);
        let broken = Schema::with_step("DROP TABLE setting; CREATE UNIQUE INDEX one_each ON resource (account)");
        let (ledger, notices) = open_in(dir.path(), at("10:00"), &broken).unwrap();
        assert_eq!(ledger.path(), None);
        assert!(
            matches!(notices[..], [LedgerNotice::BackedUp { .. }, LedgerNotice::NotWritable { .. }]),
            "{notices:?}"
        );
        assert_eq!(known(&mut open(&dir)), (40, vec!["vision".to_owned()]));
    }

    #[test]
    fn without_a_folder_to_write_to_the_ledger_lives_in_memory() {
        let dir = folder();
        fs::write(dir.path().join("taken"), "").unwrap();
        let (mut ledger, notices) = Ledger::open(&dir.path().join("taken/state"), at("10:00")).unwrap();
        assert!(matches!(&notices[..], [LedgerNotice::NotWritable { why }] if !why.is_empty()), "{notices:?}");
        assert_eq!((ledger.path(), ledger.size().unwrap()), (None, 0));
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
}
