//! The administrator's orders.

use std::time::Duration;

use sqlx::MySql;

use super::{error, options::MySqlTxOptions};
use crate::{FenceError, admin::by_statements::Wording};

impl Wording for MySql {
    const BEGIN: &'static str = "START TRANSACTION";
    const WHO: &'static str = "USER()";
    const NOW: &'static str = "NOW(3)";
    const SHARED: &'static str = "LOCK IN SHARE MODE";
    const EXCLUSIVE: &'static str = "FOR UPDATE";

    fn limit(lock_timeout: Option<Duration>) -> String {
        MySqlTxOptions::default().lock_timeout(lock_timeout).limit()
    }

    fn of_our_call(source: sqlx::Error) -> FenceError {
        error::of_our_call(source)
    }

    fn of_commit(source: sqlx::Error) -> FenceError {
        error::of_commit(source)
    }
}
