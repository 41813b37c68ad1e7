use lock_core::{Error, ErrorKind, backend::support::database::Refusal};

const BUSY: i32 = 5;
const LOCKED: i32 = 6;
const READ_ONLY: i32 = 8;
const IO: i32 = 10;
const CORRUPT: i32 = 11;
const FULL: i32 = 13;
const CANNOT_OPEN: i32 = 14;
const NO_DATABASE: i32 = 26;

const REFUSALS: [Refusal<i32>; 6] = [
    Refusal::passes(&[BUSY, LOCKED], "another transaction writes the file"),
    Refusal::passes(&[FULL], "the disk of the file is full"),
    Refusal::passes(&[IO], "the file cannot be read or written"),
    Refusal::for_good(
        &[READ_ONLY],
        "the file, or its folder, is not writable by this process",
    ),
    Refusal::for_good(
        &[CANNOT_OPEN],
        "the file cannot be opened: its folder has to exist and to be writable",
    ),
    Refusal::for_good(&[CORRUPT, NO_DATABASE], "the file is no sound database"),
];

/// Translates a failure before a commit. The transaction has ended, and nothing of it was written.
pub(super) fn translate(error: sqlx::Error) -> Error {
    let translated = match code(&error) {
        Some(code) => Refusal::error_of(&REFUSALS, |known| *known == code).unwrap_or_else(|| {
            Error::not_applied(ErrorKind::Refused).because("SQLite refuses a statement")
        }),
        None => Error::not_applied(ErrorKind::Unavailable)
            .because("the connection to the file has ended"),
    };
    translated.caused_by(error)
}

/// Translates a failure of a commit. If the disk fails in a commit, it is not known whether the
/// transaction was written.
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
