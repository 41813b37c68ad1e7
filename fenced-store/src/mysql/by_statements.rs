use std::time::Duration;

use sqlx::MySql;

use super::MySqlTxOptions;
use crate::dialect::by_statements::Wording;

impl Wording for MySql {
    const WHO: &'static str = "USER()";
    const NOW: &'static str = "NOW(3)";
    const NOW_MS: &'static str = "CAST(UNIX_TIMESTAMP() * 1000 AS SIGNED)";
    const SHARED: &'static str = "LOCK IN SHARE MODE";
    const EXCLUSIVE: &'static str = "FOR UPDATE";
    const SCHEMA: &'static str = "";
    const LATER: &'static str = "NOW(3) + INTERVAL (? * 1000) MICROSECOND";
    const INSERT_NEW: &'static str = "INSERT IGNORE INTO";
    const IS_TIME_SLOT: &'static str =
        "slot REGEXP '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$'";

    fn millis(time: &str) -> String {
        format!("CAST(UNIX_TIMESTAMP({time}) * 1000 AS SIGNED)")
    }

    fn limit(lock_timeout: Option<Duration>) -> String {
        MySqlTxOptions::default().lock_timeout(lock_timeout).limit()
    }
}
