//! The SQL of the databases whose own functions cannot keep the tables of this crate: MySQL,
//! MariaDB and SQLite.

use std::time::Duration;

use super::Operations;

/// Carries out administrators' orders (`admin/order_statements.rs`) and keeps the tables of jobs
/// (`jobs/job_statements.rs`) by statements that are the same in these databases.
#[derive(Clone, Copy, Debug)]
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub struct ByStatements;

/// The words in which the SQL of these databases differs.
pub(crate) trait Wording: Operations {
    /// The user that has logged in.
    const WHO: &'static str;

    /// The present time, in the form that a claim writes.
    const NOW: &'static str;

    /// The present time in milliseconds since 1970.
    const NOW_MS: &'static str;

    /// Locks the rows that a statement only reads, if there can be other writers.
    const SHARED: &'static str;

    /// Locks the same rows so that no other transaction can lock them.
    const EXCLUSIVE: &'static str;

    /// The prefix of the name of a table of ours.
    const SCHEMA: &'static str;

    /// The time after a number of milliseconds, which is a parameter.
    const LATER: &'static str;

    /// Inserts a row, unless a row with the same key is there. It must lock no gap between rows,
    /// because other transactions insert rows there.
    const INSERT_NEW: &'static str;

    /// Whether the column `slot` is a time of a schedule.
    const IS_TIME_SLOT: &'static str;

    /// A value as an integer, for a row whose value may have any type.
    fn integer(value: &str) -> String {
        value.to_owned()
    }

    /// A value as a text.
    fn text_of(value: &str) -> String {
        value.to_owned()
    }

    /// A time as milliseconds since 1970.
    fn millis(time: &str) -> String;

    /// Limits how long the following statement waits, if the database has such a limit.
    fn limit(lock_timeout: Option<Duration>) -> String;
}
