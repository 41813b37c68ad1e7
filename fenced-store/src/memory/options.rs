use std::time::Duration;

/// The settings of claims and transactions in memory.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemoryTxOptions {
    pub(super) lock_timeout: Duration,
    pub(super) terminate_older: bool,
}

/// The same as in Postgres: a claim waits 2 s, and then ends older transactions.
impl Default for MemoryTxOptions {
    fn default() -> Self {
        Self {
            lock_timeout: Duration::from_secs(2),
            terminate_older: true,
        }
    }
}

impl MemoryTxOptions {
    /// How long a claim waits for the transactions of an older holder, and a `begin` for a claim
    /// that waits. Defaults to 2 s.
    #[must_use]
    pub const fn lock_timeout(mut self, lock_timeout: Duration) -> Self {
        self.lock_timeout = lock_timeout;
        self
    }

    /// Whether a claim that has waited for the whole lock timeout ends the transactions in its way.
    /// Otherwise it fails with [`FenceError::Busy`](crate::FenceError::Busy). Defaults to true.
    #[must_use]
    pub const fn terminate_older(mut self, terminate_older: bool) -> Self {
        self.terminate_older = terminate_older;
        self
    }
}
