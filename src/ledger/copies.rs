//! Copies of the file: made before its layout changes and whenever it was found to be good, taken up when it
//! is damaged.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use jiff::Timestamp;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
use tempfile::TempPath;

use super::open::{self, FILE, Schema, beside, parent};
use super::{BUSY_FOR, LedgerError};

/// The ending of the copy that [`back_up`] makes.
const BACKUP: &str = ".backup";

/// Reads the whole file for damage. Slow with a large ledger and needs no open ledger: for a thread of its
/// own, after the start.
pub fn quick_check(path: &Path) -> Result<(), LedgerError> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(BUSY_FOR)?;
    open::small_cache(&connection)?;
    check(&connection)
}

/// Makes a copy of a ledger that is in use and, if the copy is sound, puts it in the place of the last one.
/// For a thread of its own.
pub fn back_up(path: &Path) -> Result<PathBuf, LedgerError> {
    let source = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    source.busy_timeout(BUSY_FOR)?;
    open::small_cache(&source)?;
    copy(&source, path, beside(path, BACKUP))
}

/// Makes the copy that goes before a change of layout.
pub(super) fn before_migration(source: &Connection, path: &Path, version: i32) -> Result<PathBuf, LedgerError> {
    copy(source, path, beside(path, &format!("{BACKUP}-v{version}")))
}

fn copy(source: &Connection, path: &Path, target: PathBuf) -> Result<PathBuf, LedgerError> {
    let temporary = open::temporary_beside(path)?;
    {
        let mut copy = Connection::open_with_flags(&temporary, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        open::small_cache(&copy)?;
        copy_pages(source, &mut copy)?;
        // A copy lies still: without a log it is one file.
        copy.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))?;
        check(&copy)?;
    }
    open::settle(temporary, |temporary| temporary.persist(&target).map_err(|error| error.error))?;
    open::sync_folder(parent(path));
    Ok(target)
}

fn copy_pages(source: &Connection, target: &mut Connection) -> Result<(), LedgerError> {
    let backup = Backup::new(source, target)?;
    for _ in 0..100 {
        match backup.step(-1)? {
            StepResult::Done => return Ok(()),
            _ => thread::sleep(BUSY_FOR / 100),
        }
    }
    Err(LedgerError::Busy)
}

fn check(connection: &Connection) -> Result<(), LedgerError> {
    let found: String = connection.pragma_query_value(None, "quick_check", |row| row.get(0))?;
    if found == "ok" { Ok(()) } else { Err(LedgerError::Damaged { why: found }) }
}

/// The last good copy, copied once more so that the copy itself stays.
pub(super) struct Restored {
    pub file: TempPath,
    pub from: PathBuf,
    /// When the copy was made, by its file's time.
    pub as_of: Option<Timestamp>,
}

/// The newest copy that is sound and that this version understands; `None` when there is none.
pub(super) fn last_good(path: &Path, schema: &Schema) -> Option<Restored> {
    let prefix = format!("{FILE}{BACKUP}");
    let mut copies: Vec<_> = fs::read_dir(parent(path))
        .ok()?
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
        .filter_map(|entry| Some((entry.metadata().ok().filter(|file| file.is_file())?.modified().ok()?, entry.path())))
        .collect();
    copies.sort();
    copies.into_iter().rev().find_map(|(made, from)| {
        let file = open::temporary_beside(path).ok()?;
        // Only the bytes: the copy is to have the mode of a new file.
        io::copy(&mut File::open(&from).ok()?, &mut OpenOptions::new().write(true).open(&file).ok()?).ok()?;
        let connection = Connection::open_with_flags(&file, OpenFlags::SQLITE_OPEN_READ_WRITE).ok()?;
        connection.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(())).ok()?;
        let version = open::layout(&connection).ok()?;
        check(&connection).ok()?;
        (version <= schema.version()).then_some(Restored { file, from, as_of: Timestamp::try_from(made).ok() })
    })
}

/// What a ledger that cannot be written holds, as a database in memory; `None` when it cannot be read. The
/// file is copied first: SQLite cannot read it in place without writing beside it.
pub(super) fn in_memory(path: &Path, schema: &Schema) -> Option<Connection> {
    let dir = tempfile::tempdir().ok()?;
    let copied = dir.path().join(FILE);
    for companion in ["", "-wal"] {
        let (from, to) = (beside(path, companion), beside(&copied, companion));
        if from.is_file() {
            fs::write(to, fs::read(from).ok()?).ok()?;
        }
    }
    let source = Connection::open_with_flags(&copied, OpenFlags::SQLITE_OPEN_READ_WRITE).ok()?;
    source.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(())).ok()?;
    check(&source).ok()?;
    let mut memory = Connection::open_in_memory().ok()?;
    copy_pages(&source, &mut memory).ok()?;
    if open::layout(&memory).ok()? < schema.version() {
        schema.bring_up(&mut memory).ok()?;
    }
    Some(memory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::samples::*;

    #[test]
    fn a_copy_is_made_while_the_ledger_is_in_use_and_takes_the_last_ones_place() {
        let dir = folder();
        let mut ledger = open(&dir);
        let path = ledger.path().unwrap().to_owned();
        for n in 1..=2 {
            ledger.keep(&keep(vec![known_instance(&format!("pod-{n}"))])).unwrap();
            let copy = back_up(&path).unwrap();
            quick_check(&copy).unwrap();
            let other = folder();
            fs::copy(copy, other.path().join(FILE)).unwrap();
            assert_eq!(open(&other).recall(at("10:00")).unwrap().0.instances.len(), n);
        }
        quick_check(&path).unwrap();
    }

    #[test]
    fn a_damaged_ledger_is_not_copied_over_the_last_good_copy() {
        let dir = folder();
        let mut ledger = open(&dir);
        let path = ledger.path().unwrap().to_owned();
        ledger.keep(&keep((0..40).map(|n| known_instance(&format!("pod-{n}"))).collect())).unwrap();
        let copy = back_up(&path).unwrap();
        drop(ledger);
        let good = fs::read(&copy).unwrap();
        let mut content = fs::read(&path).unwrap();
        content[4096 * 4..].fill(0);
        fs::write(&path, content).unwrap();
        assert!(matches!(back_up(&path), Err(LedgerError::Damaged { .. })));
        assert!(matches!(quick_check(&path), Err(LedgerError::Damaged { .. })));
        assert_eq!(fs::read(&copy).unwrap(), good);
        let leftovers = fs::read_dir(dir.path())
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().ends_with(".new"));
        assert_eq!(leftovers.count(), 0);
    }

    #[test]
    fn a_copy_of_a_newer_rentop_is_not_taken_up() {
        let dir = folder();
        let newer = Schema::with_step("CREATE TABLE more (x TEXT)");
        let (ledger, _) = open::open_in(dir.path(), at("10:00"), &newer).unwrap();
        let path = ledger.path().unwrap().to_owned();
        back_up(&path).unwrap();
        assert!(last_good(&path, &newer).is_some());
        assert!(last_good(&path, &Schema::current()).is_none());
        drop(ledger);
    }
}
