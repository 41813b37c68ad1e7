use sqlx::{
    error::DatabaseError,
    mysql::MySqlDatabaseError,
    postgres::{PgDatabaseError, PgSeverity},
};

/// Out of memory, interrupted, input or output: SQLite may report these before or after a commit.
const SQLITE_UNDECIDED: [i32; 3] = [7, 9, 10];

/// MySQL is shutting down, a statement was interrupted, a session was ended.
const MYSQL_UNDECIDED: [u16; 4] = [1053, 1317, 1927, 4031];

/// Whether the database reported that it did nothing, and that the session goes on.
///
/// After any other error, such as a broken connection, the outcome is unknown.
pub(crate) fn was_refused(error: &sqlx::Error) -> bool {
    let Some(error) = error.as_database_error() else {
        return false;
    };
    if let Some(error) = error.try_downcast_ref::<MySqlDatabaseError>() {
        return !MYSQL_UNDECIDED.contains(&error.number());
    }
    match error.try_downcast_ref::<PgDatabaseError>() {
        // A session that was ended (`FATAL`) may have committed before.
        Some(error) => error.severity() == PgSeverity::Error,
        None => !SQLITE_UNDECIDED.contains(&primary_code(error)),
    }
}

/// The low byte of the extended code that sqlx reports.
fn primary_code(error: &dyn DatabaseError) -> i32 {
    let code = error.code().and_then(|code| code.parse::<i32>().ok());
    code.unwrap_or_default() & 0xff
}
