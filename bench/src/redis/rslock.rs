//! The peer in Rust: one key per lock, no fencing token, waiters that poll.

use std::time::Duration;

use rslock::{Lock, LockError, LockManager};

/// The same ttl as our default.
const TTL: Duration = Duration::from_secs(10);

#[derive(Clone)]
pub(super) struct Rslock(LockManager);

impl Rslock {
    /// Makes a peer with its own defaults. It connects when it is first used.
    pub(super) fn new(url: &str) -> Self {
        Self(LockManager::new(vec![url]))
    }

    /// Waits as long as necessary.
    pub(super) async fn acquire(&self, resource: &str) -> Result<Lock, LockError> {
        self.0.acquire_no_guard(resource.as_bytes(), TTL).await
    }

    pub(super) async fn release(&self, lock: &Lock) {
        self.0.unlock(lock).await;
    }

    /// Acquires and releases.
    pub(super) async fn cycle(&self, resource: &str) -> Result<(), LockError> {
        let lock = self.acquire(resource).await?;
        self.release(&lock).await;
        Ok(())
    }
}
