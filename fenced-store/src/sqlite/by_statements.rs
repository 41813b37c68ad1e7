use std::time::Duration;

use sqlx::Sqlite;

use crate::dialect::by_statements::Wording;

/// A file has no users who log in. The time that a statement waits for the file is a setting of the
/// connection.
impl Wording for Sqlite {
    const WHO: &'static str = "NULL";
    const NOW: &'static str = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')";
    const NOW_MS: &'static str =
        "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)";
    const SHARED: &'static str = "";
    const EXCLUSIVE: &'static str = "";
    const SCHEMA: &'static str = "main.";
    const LATER: &'static str = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', (? / 1000.0) || ' seconds')";
    const INSERT_NEW: &'static str = "INSERT OR IGNORE INTO";
    const IS_TIME_SLOT: &'static str = "slot GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T\
        [0-9][0-9]:[0-9][0-9]:[0-9][0-9]Z'";

    /// A column of SQLite may hold values of every type.
    fn integer(value: &str) -> String {
        format!("CAST({value} AS INTEGER)")
    }

    fn text_of(value: &str) -> String {
        format!("CAST({value} AS TEXT)")
    }

    /// SQLite counts days of the Julian calendar; 1970 began on day 2440587.5.
    fn millis(time: &str) -> String {
        format!("CAST(ROUND((julianday({time}) - 2440587.5) * 86400000) AS INTEGER)")
    }

    fn limit(_: Option<Duration>) -> String {
        String::new()
    }
}
