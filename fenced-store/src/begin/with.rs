use std::time::Duration;

use lock_core::RetryPolicy;
use tracing::debug;

use super::{Begin, Presented};
use crate::{Dialect, FenceError, FencedStore, FencedTx, ProtectedGuard, Receipt};

/// About five seconds of pauses, and no more than eleven attempts.
pub(crate) const RETRIES: RetryPolicy = RetryPolicy::exponential(Duration::from_millis(5))
    .longest(Duration::from_secs(1))
    .limit(10);

impl<DB: Dialect> Begin<'_, DB> {
    /// Begins, does the work, and commits; starts again if others were faster.
    ///
    /// [Retryable](FenceError::is_retryable) errors are retried, wherever they occur: a lock that
    /// did not become free, a transaction that could not be serialized. There are up to ten
    /// retries, with pauses that grow from 5 ms to 1 s, halved at random. Fenced refusals are final
    /// at once, and so are all other errors. The work is done once per attempt. The writes of an
    /// attempt are rolled back before the next one; its effects elsewhere are not.
    ///
    /// If the commit is not answered, the store is [settled](FencedStore::settle), so that the
    /// commit is no longer in progress. With a number ([`seq`](Begin::seq)) its result is then
    /// known, and the transaction is repeated if it never happened, provided that nobody else gives
    /// out the numbers of this grant. Without a number the error is returned; look at the data to
    /// know.
    ///
    /// # Errors
    /// Those of [`Begin`], of [`FencedTx::commit`] and of the work itself; a retryable one after
    /// the last attempt. [`FenceError::CommitUnknown`] as described above.
    ///
    /// # Cancel safety
    /// The transaction is rolled back, unless it is being committed: see [`FencedTx::commit`].
    ///
    /// # Examples
    /// ```no_run
    /// # #[cfg(feature = "postgres")]
    /// # async fn f(
    /// #     guard: fenced_store::ProtectedGuard<sqlx::Postgres>,
    /// # ) -> Result<(), fenced_store::FenceError> {
    /// let (balance, receipt) = guard
    ///     .with(async |tx| {
    ///         let take = "UPDATE accounts SET balance = balance - 10 RETURNING balance";
    ///         let balance: i64 = sqlx::query_scalar(take).fetch_one(&mut **tx).await?;
    ///         Ok(balance)
    ///     })
    ///     .await?;
    /// # Ok(()) }
    /// ```
    pub async fn with<T, F>(self, work: F) -> Result<(T, Receipt), FenceError>
    where
        F: AsyncFnOnce(&mut FencedTx<DB>) -> Result<T, FenceError> + Clone,
    {
        let mut pauses = RETRIES.pauses();
        // A commit that may have happened: what it would return, and the error that says so.
        let mut unanswered: Option<(T, Receipt, FenceError)> = None;
        loop {
            let error = match self.attempt(work.clone()).await {
                Attempt::Committed(value, receipt) => return Ok((value, receipt)),
                Attempt::Unanswered(value, receipt, error) => {
                    let settled = self.settle().await;
                    if settled.is_err() || self.seq.is_none() || pauses.next().is_none() {
                        return Err(error);
                    }
                    unanswered = Some((value, receipt, error));
                    continue;
                }
                Attempt::NotBegun(error) => match (number_taken(&error), unanswered.take()) {
                    (Some(true), Some((value, receipt, _))) => return Ok((value, receipt)),
                    (Some(false), Some((.., unknown))) => return Err(unknown),
                    (_, before) => {
                        unanswered = before;
                        error
                    }
                },
                Attempt::Failed(error) => {
                    // The number was free, so the commit before this attempt did not happen.
                    unanswered = None;
                    error
                }
            };
            match pauses.next().filter(|_| error.is_retryable()) {
                Some(pause) => {
                    debug!(%error, ?pause, "trying the transaction again");
                    tokio::time::sleep(pause).await;
                }
                // Until the number turns out to be free, whatever this error says about itself.
                None => return Err(unanswered.map_or(error, |(.., unknown)| unknown)),
            }
        }
    }

    async fn attempt<T, F>(&self, work: F) -> Attempt<T>
    where
        F: AsyncFnOnce(&mut FencedTx<DB>) -> Result<T, FenceError>,
    {
        let mut tx = match self.again().await {
            Ok(tx) => tx,
            Err(error) => return Attempt::NotBegun(error),
        };
        let value = match work(&mut tx).await {
            Ok(value) => value,
            Err(error) => {
                if let Err(error) = tx.rollback().await {
                    debug!(%error, "not rolled back here, so the database does it");
                }
                return Attempt::Failed(error);
            }
        };
        match tx.commit().await {
            Ok(receipt) => Attempt::Committed(value, receipt),
            Err(error @ FenceError::CommitUnknown { .. }) => {
                Attempt::Unanswered(value, self.receipt(), error)
            }
            Err(error) => Attempt::Failed(error),
        }
    }

    /// Waits until nothing of these grants is in progress. A grant that is shut out by now counts
    /// as settled: the claim that shut it out has waited for the same.
    async fn settle(&self) -> Result<(), FenceError> {
        for presented in self.presented() {
            let mut pauses = RETRIES.pauses();
            while let Err(error) = self.store.settle(presented.sequencer()).await {
                if error.is_fenced() {
                    break;
                }
                match pauses.next() {
                    Some(pause) => tokio::time::sleep(pause).await,
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
            seq: self.seq,
        }
    }
}

/// What became of an attempt. Whose error it is matters: the work may pass on refusals of other
/// stores, which look like those of this one.
enum Attempt<T> {
    /// The error of the store that was asked to begin.
    NotBegun(FenceError),
    /// Begun, and not committed: the error of the work, or of the commit.
    Failed(FenceError),
    Committed(T, Receipt),
    /// With the receipt that is valid if the commit happened.
    Unanswered(T, Receipt, FenceError),
}

/// For a transaction that was refused because of its number: whether it is this very number that
/// was committed last.
fn number_taken(error: &FenceError) -> Option<bool> {
    match error {
        FenceError::OutOfOrder {
            presented, last, ..
        } => Some(presented == last),
        _ => None,
    }
}

impl<DB: Dialect> FencedStore<DB> {
    /// A transaction of this grant that starts again if others were faster: [`Begin::with`].
    ///
    /// # Errors
    /// As [`Begin::with`].
    ///
    /// # Cancel safety
    /// As [`Begin::with`].
    pub async fn with<'a, T, F>(
        &'a self,
        grant: impl Into<Presented<'a>>,
        work: F,
    ) -> Result<(T, Receipt), FenceError>
    where
        F: AsyncFnOnce(&mut FencedTx<DB>) -> Result<T, FenceError> + Clone,
    {
        self.begin(grant).with(work).await
    }
}

impl<DB: Dialect> ProtectedGuard<DB> {
    /// A transaction of this guard that starts again if others were faster: [`Begin::with`].
    ///
    /// # Errors
    /// As [`Begin::with`].
    ///
    /// # Cancel safety
    /// As [`Begin::with`].
    pub async fn with<T, F>(&self, work: F) -> Result<(T, Receipt), FenceError>
    where
        F: AsyncFnOnce(&mut FencedTx<DB>) -> Result<T, FenceError> + Clone,
    {
        self.begin().with(work).await
    }
}
