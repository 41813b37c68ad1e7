//! SQLite. `BEGIN IMMEDIATE` makes a transaction the only writer of the file. So a plain read of
//! the mark inside it is a check that holds until the transaction ends.
//!
//! `operations.rs` has the calls of a fenced write: open it first. `uncounted.rs` begins and
//! commits, by statements that sqlx does not take for a transaction; `claim.rs` raises a mark.
//! `installation.rs` has the migrations, and `protect.rs` the protected tables.

mod by_statements;
mod claim;
mod errors;
mod forget;
mod installation;
mod operations;
mod protect;
mod uncounted;

use std::time::Duration;

use sqlx::{
    Sqlite,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};

pub(crate) use self::errors::classify;
use crate::{FencedLocks, FencedStore};

/// A fenced store in an SQLite file.
///
/// A fenced transaction keeps out all other writers of the file, whatever their resource. A process
/// that is stopped inside such a transaction does the same: claims are
/// [`Busy`](crate::FenceError::Busy) until it continues or ends. SQLite has no remedy for that.
///
/// When a statement fails, SQLite may end the transaction by itself: because of `RAISE(ROLLBACK)`
/// or `ON CONFLICT ROLLBACK`, a full disk, an I/O error, lack of memory, or an interrupt. Later
/// statements are then written unfenced. The commit reports this, but too late: roll back
/// after any error.
pub type SqliteFencedStore = FencedStore<Sqlite>;

/// A lock service combined with a fenced store in an SQLite file.
pub type SqliteFencedLocks = FencedLocks<Sqlite>;

impl FencedStore<Sqlite> {
    /// Sets the options that a fenced store needs: a write-ahead log, so that readers do not block
    /// writers; `synchronous = FULL`, without which a power cut may undo a claim; and the time for
    /// which a writer waits for another one, 5 s.
    #[must_use]
    pub fn recommended(options: SqliteConnectOptions) -> SqliteConnectOptions {
        options
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(5))
    }
}
