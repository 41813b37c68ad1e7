//! The administrator's orders.

use std::time::Duration;

use sqlx::Sqlite;

use super::error;
use crate::{FenceError, admin::by_statements::Wording};

/// Nobody logs in to a file. How long to wait for it is a setting of the connection.
impl Wording for Sqlite {
    const BEGIN: &'static str = "BEGIN IMMEDIATE";
    const WHO: &'static str = "NULL";
    const NOW: &'static str = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')";
    const SHARED: &'static str = "";
    const EXCLUSIVE: &'static str = "";

    fn limit(_: Option<Duration>) -> String {
        String::new()
    }

    fn of_our_call(source: sqlx::Error) -> FenceError {
        error::of_our_call(source)
    }

    fn of_commit(source: sqlx::Error) -> FenceError {
        error::of_commit(source)
    }
}
