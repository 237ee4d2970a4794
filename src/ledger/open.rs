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
const VERSION: i32 = 7;

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
    small_cache(&durable)?;
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
    // Room for all statements that one import of billed lines uses in turn.
    main.set_prepared_statement_cache_capacity(64);
    // The pages that a question reads again and again; the system keeps the file's others, and a larger cache
    // answered no question sooner.
    main.pragma_update(None, "cache_size", -256)?;
    // Otherwise SQLite prepares a statement anew whenever a bound of a range is another one.
    main.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(Ledger { main, durable: None, place, read_only, zone: TimeZone::UTC })
}

fn connect(path: &Path, mode: OpenFlags) -> Result<Connection, LedgerError> {
    let connection = Connection::open_with_flags(path, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_FOR)?;
    keep_log(&connection, true)?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES)?;
    Ok(connection)
}

/// For a connection that reads each page once, or few: it would fill two megabytes with pages otherwise.
pub(super) fn small_cache(connection: &Connection) -> Result<(), LedgerError> {
    Ok(connection.pragma_update(None, "cache_size", -128)?)
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
        AND name IN ('account', 'resource', 'setting', 'operation', 'journal', 'collector', 'book', 'billable', 'open',
                     'terms', 'span', 'amount', 'imported', 'day_sum', 'month_sum', 'added_up', 'balance')";
    let found: i64 = connection.query_row(TABLES, [], |row| row.get(0))?;
    Ok(found == 17)
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
#[path = "open_tests.rs"]
mod tests;
