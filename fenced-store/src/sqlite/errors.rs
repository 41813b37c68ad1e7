use sqlx::{Sqlite, error::DatabaseError, sqlite::SqliteError};

use crate::{FenceError, dialect::Errors};

/// Primary result codes of SQLite. A primary code is the low byte of the extended code that sqlx
/// reports.
const BUSY: i32 = 5;
const LOCKED: i32 = 6;
const OUT_OF_MEMORY: i32 = 7;
const READ_ONLY: i32 = 8;
const INTERRUPT: i32 = 9;
const IO: i32 = 10;

/// Classifies an error of SQLite; returns any other unchanged.
pub(crate) fn classify(source: sqlx::Error) -> Result<FenceError, sqlx::Error> {
    match refusal(&source) {
        // FN001: the transaction of the fence is over, and its note was left behind.
        Some("FN010" | "FN001") => return Ok(FenceError::Unfenced { source }),
        Some("FN011") => return Ok(FenceError::WrongResource { source }),
        _ => {}
    }
    match primary_code(&source) {
        _ if is_taken(&source) => Ok(FenceError::Busy { source }),
        Some(INTERRUPT) => Ok(FenceError::Terminated { source }),
        _ => Err(source),
    }
}

impl Errors for Sqlite {
    /// An error of one of our own calls. A missing table is then one of ours.
    fn of_our_call(source: sqlx::Error) -> FenceError {
        if sqlite_error(&source).is_some_and(|error| error.message().starts_with("no such table")) {
            return FenceError::NotMigrated { source };
        }
        if Self::is_leaked(&source) {
            return FenceError::Busy { source };
        }
        source.into()
    }

    /// An error of a commit. If SQLite has refused it, nothing was committed. Otherwise the result
    /// is unknown.
    fn of_commit(source: sqlx::Error) -> FenceError {
        match primary_code(&source) {
            Some(INTERRUPT | OUT_OF_MEMORY | IO) | None => FenceError::CommitUnknown { source },
            Some(_) => source.into(),
        }
    }

    fn is_read_only(error: &sqlx::Error) -> bool {
        primary_code(error) == Some(READ_ONLY)
    }

    /// Either sqlx counts the transaction, or only SQLite knows it.
    fn is_leaked(error: &sqlx::Error) -> bool {
        const WITHIN: &str = "cannot start a transaction within a transaction";
        matches!(error, sqlx::Error::InvalidSavePointStatement)
            || sqlite_error(error).is_some_and(|error| error.message() == WITHIN)
    }
}

/// Whether another transaction writes the file, and did not end in time.
pub(super) fn is_taken(source: &sqlx::Error) -> bool {
    matches!(primary_code(source), Some(BUSY | LOCKED))
}

/// Whether a commit failed because a statement had ended the transaction, and with it the
/// savepoint. SQLite has no separate code for this.
pub(super) fn no_savepoint(source: &sqlx::Error) -> bool {
    sqlite_error(source).is_some_and(|error| error.message().starts_with("no such savepoint"))
}

/// Whether there was no transaction to end.
pub(super) fn no_transaction(error: &sqlx::Error) -> bool {
    const OUTSIDE: &str = "cannot rollback - no transaction is active";
    sqlite_error(error).is_some_and(|error| error.message() == OUTSIDE)
}

/// The code that a trigger of a protected table has raised. Its message begins with the code.
fn refusal(error: &sqlx::Error) -> Option<&str> {
    const CONSTRAINT_TRIGGER: &str = "1811";
    let error = sqlite_error(error)?;
    if error.code()? != CONSTRAINT_TRIGGER {
        return None;
    }
    error.message().split(' ').next()
}

fn primary_code(error: &sqlx::Error) -> Option<i32> {
    let extended: i32 = sqlite_error(error)?.code()?.parse().ok()?;
    Some(extended & 0xff)
}

fn sqlite_error(error: &sqlx::Error) -> Option<&SqliteError> {
    error.as_database_error()?.try_downcast_ref()
}
