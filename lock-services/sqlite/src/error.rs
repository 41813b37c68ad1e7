use lock_core::{Error, ErrorKind};

const BUSY: i32 = 5;
const LOCKED: i32 = 6;
const READ_ONLY: i32 = 8;
const IO: i32 = 10;
const CORRUPT: i32 = 11;
const FULL: i32 = 13;
const CANNOT_OPEN: i32 = 14;
const NO_DATABASE: i32 = 26;

/// Translates a failure before a commit: the transaction is over, and nothing of it was written.
pub(super) fn translate(error: sqlx::Error) -> Error {
    let (kind, why) = match code(&error) {
        Some(BUSY | LOCKED) => (
            ErrorKind::Unavailable,
            "another transaction writes the file",
        ),
        Some(FULL) => (ErrorKind::Unavailable, "the disk of the file is full"),
        Some(IO) => (ErrorKind::Unavailable, "the file cannot be read or written"),
        Some(READ_ONLY) => (
            ErrorKind::Refused,
            "the file, or its folder, is not writable by this process",
        ),
        Some(CANNOT_OPEN) => (
            ErrorKind::Refused,
            "the file cannot be opened: its folder has to exist and to be writable",
        ),
        Some(CORRUPT | NO_DATABASE) => (ErrorKind::Refused, "the file is no sound database"),
        Some(_) => (ErrorKind::Refused, "SQLite refuses a statement"),
        None => (
            ErrorKind::Unavailable,
            "the connection to the file has ended",
        ),
    };
    Error::not_applied(kind).because(why).caused_by(error)
}

/// The same for a commit. A disk that fails in a commit leaves open whether it was written.
pub(super) fn of_commit(error: sqlx::Error) -> Error {
    match code(&error) {
        Some(IO) | None => Error::unknown(ErrorKind::Unavailable)
            .because("the file failed in a commit")
            .caused_by(error),
        Some(_) => translate(error),
    }
}

/// Whether another transaction writes the file.
pub(super) fn is_busy(error: &sqlx::Error) -> bool {
    matches!(code(error), Some(BUSY | LOCKED))
}

/// The primary result code, which is the low byte of the code that sqlx has.
fn code(error: &sqlx::Error) -> Option<i32> {
    let code: i32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(code & 0xff)
}
