use std::fmt;

use lock_core::backend::StoreSide;
use tracing::debug;

use super::{FencedGuard, FencedLockError};
use crate::{FenceError, FencedTx, Receipt, Storage, transaction::uninterrupted::uninterrupted};

/// The error of [`commit_and_release`](FencedTx::commit_and_release): the transaction was not
/// committed, or its result is unknown. The error has the guard, so that the caller can
/// [settle](crate::FencedStore::settle) a commit whose result is unknown, or try again.
///
/// The lease is still held, but the watchdog does not renew it while this error has the guard,
/// because an error may be kept for long: the lease ends within its ttl.
/// [`into_parts`](NotCommitted::into_parts) takes the guard out.
///
/// `?` turns this error into a [`FenceError`] or a [`FencedLockError`], and drops the guard.
///
/// # Dropping
/// As [`FencedGuard`]: the release follows shortly.
#[derive(Debug)]
#[non_exhaustive]
pub struct NotCommitted<DB: Storage> {
    /// The error of the commit.
    pub error: FenceError,
    /// Its renewal is paused.
    guard: Box<FencedGuard<DB>>,
}

impl<DB: Storage> NotCommitted<DB> {
    fn new(error: FenceError, guard: FencedGuard<DB>) -> Self {
        guard.pause_renewal();
        let guard = Box::new(guard);
        Self { error, guard }
    }

    /// The error of the commit, and the guard. The watchdog renews the lease at once, and goes on
    /// with the settings of the acquisition. If the lease has ended meanwhile, the guard is lost:
    /// see [`lost`](lock_core::LeaseGuard::lost).
    ///
    /// # Examples
    /// ```
    /// # use fenced_store::{FencedTx, FencedGuard, FencedLockError, PgFencedLocks};
    /// # use sqlx::Postgres;
    /// # async fn f(
    /// #     accounts: PgFencedLocks, tx: FencedTx<Postgres>, guard: FencedGuard<Postgres>,
    /// # ) -> Result<(), FencedLockError> {
    /// if let Err(not_committed) = tx.commit_and_release(guard).await {
    ///     let (error, guard) = not_committed.into_parts();
    ///     println!("not committed, or unknown: {error}");
    ///     accounts.store().settle(guard.sequencer()).await?; // now the result is final
    ///     // read what was written, and try again with the guard
    /// }
    /// # Ok(()) }
    /// ```
    pub fn into_parts(self) -> (FenceError, FencedGuard<DB>) {
        self.guard.resume_renewal();
        (self.error, *self.guard)
    }
}

impl<DB: Storage> FencedTx<DB> {
    /// Commits, and then releases the lease of this guard.
    ///
    /// If lock service and store are one database (`FencedLocks::in_one_database`), in PostgreSQL
    /// this takes one round trip: the message of the commit also releases, in a transaction of its
    /// own after the commit. So your transaction contains no statement of the lock service, and the
    /// lease is released only after a commit. Otherwise the release follows when the commit has
    /// been answered.
    ///
    /// If the release fails, the watchdog repeats it, and the error is not reported, because the
    /// commit stands.
    ///
    /// # Errors
    /// As [`commit`](FencedTx::commit), with the guard.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, commit and release go on in the background, and
    /// the result is unknown.
    ///
    /// # Examples
    /// ```no_run
    /// # use fenced_store::{PgFencedLocks, FencedLockError};
    /// # async fn f(accounts: PgFencedLocks) -> Result<(), FencedLockError> {
    /// let guard = accounts.acquire("account:42").await?;
    /// let mut tx = guard.begin().await?;
    /// sqlx::query("UPDATE accounts SET balance = balance - 10 WHERE id = 42")
    ///     .execute(&mut *tx)
    ///     .await?;
    /// let receipt = tx.commit_and_release(guard).await?;
    /// # Ok(()) }
    /// ```
    pub async fn commit_and_release(
        self,
        guard: FencedGuard<DB>,
    ) -> Result<Receipt, NotCommitted<DB>> {
        let tasks = self.tasks().clone();
        uninterrupted(tasks, self.committed_and_released(guard)).await
    }

    async fn committed_and_released(
        self,
        guard: FencedGuard<DB>,
    ) -> Result<Receipt, NotCommitted<DB>> {
        let is_its = self.sequencers().any(|grant| grant == guard.sequencer());
        let name = guard.name_for_store().filter(|_| is_its);
        match self.commit_with(name.zip(Some(guard.sequencer()))).await {
            Ok((receipt, true)) => {
                guard.released_by_store();
                Ok(receipt)
            }
            Ok((receipt, false)) => {
                if let Err(error) = guard.release().await {
                    debug!(%error, "release failed, the watchdog goes on with it");
                }
                Ok(receipt)
            }
            Err(error) => Err(NotCommitted::new(error, guard)),
        }
    }
}

impl<DB: Storage> fmt::Display for NotCommitted<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<DB: Storage> std::error::Error for NotCommitted<DB> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

impl<DB: Storage> From<NotCommitted<DB>> for FenceError {
    fn from(not_committed: NotCommitted<DB>) -> Self {
        not_committed.error
    }
}

impl<DB: Storage> From<NotCommitted<DB>> for FencedLockError {
    fn from(not_committed: NotCommitted<DB>) -> Self {
        not_committed.error.into()
    }
}
