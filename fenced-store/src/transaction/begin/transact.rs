use std::time::Duration;

use lock_core::RetryPolicy;
use tracing::debug;

use super::{Begin, Presented};
use crate::{FenceError, FencedGuard, FencedStore, FencedTx, Receipt, Storage};

/// About five seconds of pauses, and no more than eleven attempts.
pub(crate) const RETRIES: RetryPolicy = RetryPolicy::exponential(Duration::from_millis(5))
    .longest(Duration::from_secs(1))
    .limit(10);

impl<DB: Storage> Begin<'_, DB> {
    /// Begins, does the work, and commits. Starts again after a conflict with other transactions.
    ///
    /// [Retryable](FenceError::is_retryable) errors are retried, wherever they occur: a lock that
    /// did not become free, a transaction that could not be serialized. There are up to ten
    /// retries, with pauses that grow from 5 ms to 1 s, halved at random. Fenced refusals and all
    /// other errors are returned at once. The work is done once per attempt. The writes of an
    /// attempt are rolled back before the next one; its effects outside of the database are not.
    ///
    /// If the commit is not answered, nothing is repeated. The call [settles](FencedStore::settle)
    /// the store, so that the commit is no longer in progress, and returns the error. Look at the
    /// data, in a fenced transaction, to find out whether the commit happened.
    ///
    /// # Errors
    /// Those of [`Begin`], of [`FencedTx::commit`] and of the work itself. A retryable error is
    /// returned after the last attempt. [`FenceError::CommitUnknown`] as described above.
    ///
    /// # Cancel safety
    /// The transaction is rolled back, unless it is being committed: see [`FencedTx::commit`].
    ///
    /// # Examples
    /// ```no_run
    /// # #[cfg(feature = "postgres")]
    /// # async fn f(
    /// #     guard: fenced_store::FencedGuard<sqlx::Postgres>,
    /// # ) -> Result<(), fenced_store::FenceError> {
    /// let (balance, receipt) = guard
    ///     .transact(async |tx| {
    ///         let take = "UPDATE accounts SET balance = balance - 10 RETURNING balance";
    ///         let balance: i64 = sqlx::query_scalar(take).fetch_one(&mut **tx).await?;
    ///         Ok(balance)
    ///     })
    ///     .await?;
    /// # Ok(()) }
    /// ```
    pub async fn transact<T, F>(self, work: F) -> Result<(T, Receipt), FenceError>
    where
        F: AsyncFnOnce(&mut FencedTx<DB>) -> Result<T, FenceError> + Clone,
    {
        let mut pauses = RETRIES.pauses();
        loop {
            let error = match self.attempt(work.clone()).await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let runtime = &*self.store.runtime;
            let Some(pause) = pauses.next(runtime).filter(|_| error.is_retryable()) else {
                return Err(error);
            };
            debug!(%error, ?pause, "trying the transaction again");
            runtime.sleep(pause).await;
        }
    }

    async fn attempt<T, F>(&self, work: F) -> Result<(T, Receipt), FenceError>
    where
        F: AsyncFnOnce(&mut FencedTx<DB>) -> Result<T, FenceError>,
    {
        let mut tx = self.again().await?;
        let value = match work(&mut tx).await {
            Ok(value) => value,
            Err(error) => {
                if let Err(error) = tx.rollback().await {
                    debug!(%error, "not rolled back here, so the database does it");
                }
                return Err(error);
            }
        };
        let committed = tx.commit().await;
        if let Err(FenceError::CommitUnknown { .. }) = &committed
            && let Err(error) = self.settle().await
        {
            debug!(%error, "a commit without an answer may still be in progress");
        }
        Ok((value, committed?))
    }

    /// Waits until no transaction of these grants is in progress. A grant that was shut out
    /// meanwhile counts as settled, because the claim that shut it out has waited for the same
    /// transactions.
    async fn settle(&self) -> Result<(), FenceError> {
        for presented in self.presented() {
            let mut pauses = RETRIES.pauses();
            while let Err(error) = self.store.settle(presented.sequencer()).await {
                if error.is_fenced() {
                    break;
                }
                let runtime = &*self.store.runtime;
                match pauses.next(runtime) {
                    Some(pause) => runtime.sleep(pause).await,
                    None => return Err(error),
                }
            }
        }
        Ok(())
    }

    fn again(&self) -> Self {
        Self {
            store: self.store,
            first: self.first,
            others: self.others.clone(),
        }
    }
}

impl<DB: Storage> FencedStore<DB> {
    /// A transaction of this grant that starts again after a conflict: [`Begin::transact`].
    ///
    /// # Errors
    /// As [`Begin::transact`].
    ///
    /// # Cancel safety
    /// As [`Begin::transact`].
    pub async fn transact<'a, T, F>(
        &'a self,
        grant: impl Into<Presented<'a>>,
        work: F,
    ) -> Result<(T, Receipt), FenceError>
    where
        F: AsyncFnOnce(&mut FencedTx<DB>) -> Result<T, FenceError> + Clone,
    {
        self.begin(grant).transact(work).await
    }
}

impl<DB: Storage> FencedGuard<DB> {
    /// A transaction of this guard that starts again after a conflict: [`Begin::transact`].
    ///
    /// # Errors
    /// As [`Begin::transact`].
    ///
    /// # Cancel safety
    /// As [`Begin::transact`].
    pub async fn transact<T, F>(&self, work: F) -> Result<(T, Receipt), FenceError>
    where
        F: AsyncFnOnce(&mut FencedTx<DB>) -> Result<T, FenceError> + Clone,
    {
        self.begin().transact(work).await
    }
}
