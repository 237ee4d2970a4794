//! What outlives the program, in one SQLite file: the fleet as last seen, settings, the journal of actions,
//! and who may act. SQL lives here and nowhere else.
//!
//! Everything here blocks, so the runtime calls it from a thread of its own. The statements keep to what
//! SQLite and PostgreSQL share: integers for rates and times, text, `ON CONFLICT`, parameters written `$1`.
//! What only SQLite has (opening, copies, checks) stays in `open.rs` and `copies.rs`.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior, ffi};

use crate::rules::memory::{LedgerNotice, Owner};
use crate::rules::saga::OpId;

mod alerts;
mod books;
mod budgets;
mod collector;
mod copies;
mod guards;
mod journal;
mod leases;
mod memory;
mod open;
mod rename;
mod row;
#[cfg(test)]
pub(crate) mod samples;
mod saved;
mod usage;
mod watches;

pub use copies::{back_up, quick_check};
pub use journal::JournalLine;

/// How long a statement waits for another process's write.
const BUSY_FOR: Duration = Duration::from_secs(5);

/// Why the ledger did not do what was asked. What was asked is then not done at all.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error("the ledger was written by a newer rentop and is open to read only")]
    ReadOnly,
    #[error("the disk that holds the ledger is full")]
    Full,
    #[error("another process kept the ledger locked for {} s", BUSY_FOR.as_secs())]
    Busy,
    #[error("the ledger is damaged: {why}")]
    Damaged { why: String },
    /// The open file is no longer the one at its path.
    #[error("the ledger at {} was moved or deleted while it was in use", .path.display())]
    Moved { path: PathBuf },
    #[error("the ledger cannot be written: {why}")]
    NotWritable { why: String },
    /// No locks there: two processes could not be kept apart.
    #[error("the ledger's folder does not support file locks (a network folder?): {why}")]
    NoLocks { why: String },
    /// Another process has an action on the same resource in hand.
    #[error("{} ({}) has another action on it under way", .0.host, .0.pid)]
    UnderWay(Owner),
    /// Two actions with one id: the first one's record is kept.
    #[error("action {} is already in the ledger with another start or target", .0.0)]
    OpTaken(OpId),
    #[error("the ledger's layout cannot be brought up to date: {why}")]
    Migration { why: String },
    #[error("the ledger cannot write a row: {0}")]
    Encode(#[from] serde_json::Error),
    #[error("the ledger: {0}")]
    Sql(#[source] rusqlite::Error),
}

impl LedgerError {
    /// Whether the same may succeed later: the fault lies with the disk or with another process.
    pub fn may_pass(&self) -> bool {
        matches!(
            self,
            LedgerError::Full | LedgerError::Busy | LedgerError::Moved { .. } | LedgerError::NotWritable { .. }
        )
    }
}

impl From<rusqlite::Error> for LedgerError {
    fn from(error: rusqlite::Error) -> Self {
        let why = error.to_string();
        let Some(ffi::Error { code, extended_code }) = error.sqlite_error().copied() else {
            return LedgerError::Sql(error);
        };
        match code {
            ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt => LedgerError::Damaged { why },
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => LedgerError::Busy,
            ErrorCode::DiskFull => LedgerError::Full,
            ErrorCode::FileLockingProtocolFailed => LedgerError::NoLocks { why },
            ErrorCode::SystemIoFailure if is_about_locks(extended_code) => LedgerError::NoLocks { why },
            ErrorCode::ReadOnly
            | ErrorCode::PermissionDenied
            | ErrorCode::CannotOpen
            | ErrorCode::NoLargeFileSupport
            | ErrorCode::SystemIoFailure => LedgerError::NotWritable { why },
            _ => LedgerError::Sql(error),
        }
    }
}

impl From<io::Error> for LedgerError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => LedgerError::Full,
            _ => LedgerError::NotWritable { why: error.to_string() },
        }
    }
}

impl From<refinery::Error> for LedgerError {
    fn from(error: refinery::Error) -> Self {
        let code = match error.kind() {
            refinery::error::Kind::Connection(_, source) => {
                source.downcast_ref::<rusqlite::Error>().and_then(rusqlite::Error::sqlite_error).copied()
            }
            _ => None,
        };
        match code.map(|code| rusqlite::Error::SqliteFailure(code, Some(error.to_string())).into()) {
            None | Some(LedgerError::Sql(_)) => LedgerError::Migration { why: error.to_string() },
            Some(known) => known,
        }
    }
}

/// SQLite's finer words for a lock, or the shared memory that holds the locks, that could not be had.
fn is_about_locks(extended_code: i32) -> bool {
    matches!(
        extended_code,
        ffi::SQLITE_IOERR_LOCK
            | ffi::SQLITE_IOERR_UNLOCK
            | ffi::SQLITE_IOERR_RDLOCK
            | ffi::SQLITE_IOERR_CHECKRESERVEDLOCK
            | ffi::SQLITE_IOERR_SHMLOCK
            | ffi::SQLITE_IOERR_SHMMAP
    )
}

/// Whether a write must be on the disk before the call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Durability {
    /// It survives the end of the program; a power cut may take the last moments.
    Soon,
    /// It survives a power cut.
    Now,
}

/// The open ledger of one process.
#[derive(Debug)]
pub struct Ledger {
    main: Connection,
    /// The same file with every commit forced to the disk; `None` in memory and when read only.
    durable: Option<Connection>,
    /// `None` in memory.
    place: Option<Place>,
    read_only: bool,
    /// For civil days.
    zone: TimeZone,
}

impl Ledger {
    /// Opens the ledger in a folder, or begins one. A damaged or foreign file is set aside, an older one is
    /// copied and brought up to date, a newer one is opened to read only; where nothing can be written, the
    /// ledger lives in memory. The notices say which. Fails only when another process holds the file too long.
    pub fn open(state_dir: &Path, now: Timestamp) -> Result<(Ledger, Vec<LedgerNotice>), LedgerError> {
        open::open_in(state_dir, now, &open::Schema::current())
    }

    /// A ledger that ends with the program, for demonstrations and tests.
    pub fn in_memory() -> Result<Ledger, LedgerError> {
        open::in_memory(&open::Schema::current())
    }

    /// Takes the present file out of use as damaged (it is kept under another name) and goes on with the
    /// last good copy, or anew, as [`Ledger::open`] does. For when a quick check fails. Does nothing in memory.
    /// After an error this ledger refuses every write: open it again.
    pub fn set_aside(&mut self, why: &str, now: Timestamp) -> Result<Vec<LedgerNotice>, LedgerError> {
        if self.read_only {
            return Err(LedgerError::ReadOnly);
        }
        let Some(place) = self.place.take() else { return Ok(Vec::new()) };
        // Closing would write the log into the damaged file, and must come before the file is moved.
        for connection in [Some(&self.main), self.durable.as_ref()].into_iter().flatten() {
            open::keep_log(connection, true)?;
        }
        let mut nowhere = Ledger::in_memory()?;
        nowhere.read_only = true;
        self.become_other(nowhere);
        let (ledger, notices) = open::replace(place, why, now, &open::Schema::current())?;
        self.become_other(ledger);
        Ok(notices)
    }

    /// Goes on with what is at the ledger's path, should that be another file by now than the one that is open, or
    /// none: another process set it aside, or a person moved it. `None` while it is the same. After an error this
    /// ledger is as it was.
    pub fn reopen(&mut self, now: Timestamp) -> Result<Option<Vec<LedgerNotice>>, LedgerError> {
        let Some(place) = &self.place else { return Ok(None) };
        match place.check() {
            Ok(()) => return Ok(None),
            Err(LedgerError::Moved { .. }) => {}
            Err(error) => return Err(error),
        }
        let (ledger, notices) = open::open_in(open::parent(&place.path), now, &open::Schema::current())?;
        if ledger.place.is_none() {
            return Err(LedgerError::Moved { path: place.path.clone() });
        }
        self.become_other(ledger);
        Ok(Some(notices))
    }

    fn become_other(&mut self, other: Ledger) {
        let zone = std::mem::replace(&mut self.zone, TimeZone::UTC);
        *self = other;
        self.zone = zone;
    }

    /// The file; `None` for a ledger in memory.
    pub fn path(&self) -> Option<&Path> {
        self.place.as_ref().map(|place| place.path.as_path())
    }

    /// Does one piece of writing, wholly or not at all.
    fn write<T>(
        &mut self,
        durability: Durability,
        work: impl FnOnce(&Transaction) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        if self.read_only {
            return Err(LedgerError::ReadOnly);
        }
        if let Some(place) = &self.place {
            place.check()?;
        }
        let connection = match (durability, &mut self.durable) {
            (Durability::Now, Some(durable)) => durable,
            _ => &mut self.main,
        };
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = work(&transaction)?;
        transaction.commit()?;
        Ok(done)
    }
}

/// Where the ledger is, and which file that was when it was opened.
#[derive(Debug)]
struct Place {
    path: PathBuf,
    /// Device and number of the file; `None` where the system does not tell.
    file: Option<(u64, u64)>,
}

impl Place {
    fn of(path: &Path) -> io::Result<Self> {
        Ok(Place { path: path.to_owned(), file: file_number(path)? })
    }

    /// What is written to a file that is no longer at its path would be lost without a word.
    fn check(&self) -> Result<(), LedgerError> {
        match file_number(&self.path) {
            Ok(file) if file == self.file => Ok(()),
            Ok(_) => Err(LedgerError::Moved { path: self.path.clone() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(LedgerError::Moved { path: self.path.clone() })
            }
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(unix)]
fn file_number(path: &Path) -> io::Result<Option<(u64, u64)>> {
    use std::os::unix::fs::MetadataExt;
    path.metadata().map(|file| Some((file.dev(), file.ino())))
}

#[cfg(not(unix))]
fn file_number(path: &Path) -> io::Result<Option<(u64, u64)>> {
    path.metadata().map(|_| None)
}
