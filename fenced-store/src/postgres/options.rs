use std::time::Duration;

/// Settings of claims and fenced transactions in PostgreSQL.
///
/// The timeouts bound the time for which a client that is stopped inside a transaction holds up the
/// claim of the next holder. `None` keeps the setting of the session, by default no bound. If the
/// end of a guard's lease is known, because it is not renewed or has a `max_hold`, the timeouts are
/// at most the time left when the transaction begins. Durations count in whole milliseconds,
/// rounded up, from 1 ms to 24 days.
#[derive(Clone, Debug)]
#[must_use = "options do nothing until a store gets them"]
pub struct PgTxOptions {
    pub(super) isolation: Option<PgIsolation>,
    pub(super) lock_timeout: Option<Duration>,
    pub(super) idle_timeout: Option<Duration>,
    pub(super) statement_timeout: Option<Duration>,
    pub(super) terminate_older: bool,
}

/// Isolation levels. The store rule holds at each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "Postgres has no others")]
pub enum PgIsolation {
    /// Each statement sees everything that was committed before it.
    ReadCommitted,
    /// All statements see what was committed before the first one.
    RepeatableRead,
    /// As if the transactions ran one after the other.
    Serializable,
}

impl PgTxOptions {
    /// The isolation level of transactions. Defaults to the level of the session, usually read
    /// committed.
    pub const fn isolation(mut self, isolation: PgIsolation) -> Self {
        self.isolation = Some(isolation);
        self
    }

    /// How long a claim waits for transactions of the older holder, and a transaction for a claim
    /// that is in progress. Defaults to 2 s. Statements inside the transaction are not affected.
    ///
    /// A claim waits this long up to three times: see [`terminate_older`](Self::terminate_older).
    pub const fn lock_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// How long a transaction may be idle between statements before the database ends it. Defaults
    /// to 10 s.
    pub const fn idle_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// How long a statement may take, and how long a client may leave its result unread, before the
    /// database ends it. Defaults to 30 s.
    pub const fn statement_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.statement_timeout = timeout;
        self
    }

    /// Whether a claim that has waited for a whole lock timeout ends the database sessions of the
    /// older holders that it waits for, and then queues again. Defaults to true.
    ///
    /// Nothing else bounds the time for which a holder that is paused inside a transaction holds up
    /// the next one. A client that sends a statement now and then, or has stopped in the middle of
    /// a large result, reaches none of the timeouts here. When its session is ended, its writes are
    /// rolled back, and its next call fails with
    /// [`FenceError::Terminated`](crate::FenceError::Terminated).
    ///
    /// Only transactions of the claimed resource that an older grant fences are ended, and none if
    /// the claim itself is stale by then. The end of a session of another role needs rights, see
    /// docs/operations/rights.md. A prepared transaction cannot be ended this way. Without the
    /// right, and for a prepared transaction, the claim fails with
    /// [`FenceError::Busy`](crate::FenceError::Busy), and its source gives the reason.
    pub const fn terminate_older(mut self, terminate: bool) -> Self {
        self.terminate_older = terminate;
        self
    }
}

impl Default for PgTxOptions {
    fn default() -> Self {
        Self {
            isolation: None,
            lock_timeout: Some(Duration::from_secs(2)),
            idle_timeout: Some(Duration::from_secs(10)),
            statement_timeout: Some(Duration::from_secs(30)),
            terminate_older: true,
        }
    }
}
