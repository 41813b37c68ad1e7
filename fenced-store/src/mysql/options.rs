use std::{borrow::Cow, time::Duration};

/// Settings of claims and fenced transactions in MariaDB and MySQL.
///
/// None of them stays behind in the session. So there is no timeout here for a client that is idle
/// in its transaction, nor for the statements of a transaction, because these databases have no
/// timeout that ends with the transaction. Set such timeouts for the sessions of the pool, in
/// `PoolOptions::after_connect`: in MariaDB `SET SESSION idle_transaction_timeout = 10,
/// max_statement_time = 30`.
#[derive(Clone, Debug)]
#[must_use = "options do nothing until a store gets them"]
pub struct MySqlTxOptions {
    pub(super) lock_timeout: Option<Duration>,
    pub(super) terminate_older: bool,
}

impl MySqlTxOptions {
    /// How long a claim waits for transactions of the older holder before it ends them or gives up,
    /// and how long a transaction waits for a claim that is in progress. Defaults to 2 s; `None`
    /// keeps the setting of the session, by default 50 s.
    ///
    /// A claim or a transaction waits as long for a backup that keeps writes out (`FLUSH TABLES
    /// WITH READ LOCK`, `BACKUP STAGE`) and for a change of a table's schema. Calls without these
    /// options, such as calls that read or write the state of a job, wait for a backup or a change
    /// of schema for 2 s. Then the error is [`Busy`](crate::FenceError::Busy). A commit, and your
    /// own statements, wait for the `lock_wait_timeout` of the session, by default a day in MariaDB
    /// and a year in MySQL.
    ///
    /// The timeout counts in whole seconds, rounded up, from 1 s to a year. It applies to MariaDB
    /// only. MySQL cannot limit a single statement, so the `innodb_lock_wait_timeout` and
    /// `lock_wait_timeout` of the session count there.
    pub const fn lock_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// Whether a claim that has waited in vain ends the sessions of the older holder that are still
    /// in a fenced transaction (`KILL CONNECTION`). Defaults to true, because a client that is
    /// stopped inside a transaction would otherwise hold the claim up until it continues.
    ///
    /// Every user of the database may end their own sessions. The end of a session of another user
    /// needs the right `CONNECTION ADMIN` (MySQL: `CONNECTION_ADMIN`). Without it the claim fails
    /// with [`Busy`](crate::FenceError::Busy).
    pub const fn terminate_older(mut self, terminate: bool) -> Self {
        self.terminate_older = terminate;
        self
    }

    /// The prefix that limits the lock waits of a single statement: for rows, and for tables, which
    /// a backup locks. MySQL reads it as a comment.
    ///
    /// 0 would mean "do not wait", so the minimum is 1.
    pub(super) fn limit(&self) -> String {
        let Some(timeout) = self.lock_timeout else {
            return String::new();
        };
        let rounded_up = timeout.as_nanos().div_ceil(1_000_000_000);
        let seconds = rounded_up.clamp(1, 365 * 24 * 3600);
        format!(
            "{PREFIX} lock_wait_timeout = {seconds}, innodb_lock_wait_timeout = {seconds} FOR */ "
        )
    }
}

/// The beginning of the prefix.
const PREFIX: &str = "/*M! SET STATEMENT";

/// A statement of ours with the default limit, unless it has one.
pub(super) fn limited(sql: &str) -> Cow<'_, str> {
    if sql.starts_with(PREFIX) {
        return sql.into();
    }
    (MySqlTxOptions::default().limit() + sql).into()
}

impl Default for MySqlTxOptions {
    fn default() -> Self {
        Self {
            lock_timeout: Some(Duration::from_secs(2)),
            terminate_older: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: a timeout of less than a second that becomes none.
    #[test]
    fn a_lock_timeout_counts_in_whole_seconds_and_never_means_not_at_all() {
        let limit = |timeout| MySqlTxOptions::default().lock_timeout(timeout).limit();
        assert_eq!(limit(None), "");
        for (timeout, seconds) in [
            (Duration::ZERO, "1"),
            (Duration::from_millis(1001), "2"),
            (Duration::MAX, "31536000"),
        ] {
            assert!(limit(Some(timeout)).contains(&format!("timeout = {seconds} FOR")));
        }
    }
}
