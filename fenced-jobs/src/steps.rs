use std::fmt;

use fenced_store::{
    FenceError, FencedGuard, FencedLockError, FencedTx, Storage,
    jobs::{self, JobRows},
};
use lock_core::FencingToken;
use serde::{Serialize, de::DeserializeOwned};

use crate::{SlotState, place::Place};

/// A slot that is being worked on in steps: see [`Once::steps`](crate::Once::steps).
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use fenced_store::{FencedLocks, SqliteFencedStore};
/// # let directory = tempfile::tempdir()?;
/// # let options = sqlx::sqlite::SqliteConnectOptions::new().filename(directory.path().join("db"));
/// # let options = SqliteFencedStore::recommended(options.create_if_missing(true));
/// # let store = SqliteFencedStore::new(sqlx::SqlitePool::connect_with(options).await?);
/// # store.migrate().await?;
/// # sqlx::query("CREATE TABLE accounts AS SELECT 42 AS id, 100 AS balance")
/// #     .execute(store.pool())
/// #     .await?;
/// # let accounts = FencedLocks::new(palisade::connect("memory:").await?, store);
/// use fenced_jobs::Jobs;
/// use fenced_store::FencedLockError;
///
/// let outcome = accounts
///     .once("interest", "2026-11-27")
///     .steps(async |job| {
///         // Another runner may have done some steps, and died.
///         let mut after: i64 = job.progress()?.unwrap_or(0);
///         while after < 50 {
///             after = job
///                 .step(async |tx| {
///                     let add = "UPDATE accounts SET balance = balance + 1 \
///                                WHERE id BETWEEN $1 AND $1 + 9";
///                     sqlx::query(add)
///                         .bind(after)
///                         .execute(&mut **tx)
///                         .await?;
///                     Ok::<_, FencedLockError>(after + 10)
///                 })
///                 .await?;
///         }
///         Ok::<_, FencedLockError>(())
///     })
///     .await?;
/// assert!(outcome.is_done());
/// # Ok(()) }
/// ```
pub struct Job<'a, DB: Storage> {
    guard: &'a FencedGuard<DB>,
    place: &'a Place<'a>,
    state: SlotState,
    /// Whether a step may have been committed that `state` does not show.
    in_doubt: bool,
}

impl<'a, DB: Storage> Job<'a, DB> {
    pub(crate) const fn new(
        guard: &'a FencedGuard<DB>,
        place: &'a Place<'a>,
        state: SlotState,
    ) -> Self {
        Self {
            guard,
            place,
            state,
            in_doubt: false,
        }
    }

    /// The lease that this run holds, with its deadline and its loss. A write that is not a step
    /// has to present this guard.
    pub const fn guard(&self) -> &'a FencedGuard<DB> {
        self.guard
    }

    /// The result of the last committed step, of this or an earlier runner; `None` before the first
    /// step.
    ///
    /// # Errors
    /// [`FenceError::Db`] with an error of decoding if the result was saved as another type.
    pub fn progress<T: DeserializeOwned>(&self) -> Result<Option<T>, FenceError> {
        self.state.progress()
    }

    /// The number of committed steps.
    #[must_use]
    pub const fn committed_steps(&self) -> u64 {
        self.state.steps
    }

    /// The token of this run.
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.guard.token()
    }

    /// A key for effects outside of the database, which happen at least once. Each attempt of the
    /// next step has the same key, and no other step has it.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        let (job, slot) = self.place.texts();
        format!("{job}/{slot}/{}", self.state.steps)
    }

    /// Does a step in a fenced transaction, and commits the step with its result, which the next
    /// runner finds as its [`progress`](Self::progress).
    ///
    /// # Errors
    /// The error of the step, or of the store; then nothing of the step is stored. After
    /// [`FenceError::CommitUnknown`] the step may be stored, and no further step is begun: return
    /// the error, and run the slot again, which finds out.
    ///
    /// # Cancel safety
    /// The step is rolled back. If its commit was sent, the state is the same as after
    /// [`FenceError::CommitUnknown`].
    pub async fn step<P, E, F>(&mut self, step: F) -> Result<P, E>
    where
        P: Serialize,
        F: AsyncFnOnce(&mut FencedTx<DB>) -> Result<P, E>,
        E: From<FencedLockError>,
    {
        self.is_certain()?;
        let mut tx = self.guard.begin().await.map_err(FencedLockError::from)?;
        let value = step(&mut tx).await?;
        let progress = serde_json::to_string(&value);
        let progress = progress.map_err(|error| {
            let error = sqlx::Error::Encode(error.into());
            FencedLockError::from(error)
        })?;
        self.save(tx, progress).await?;
        Ok(value)
    }

    async fn save(
        &mut self,
        mut tx: FencedTx<DB>,
        progress: String,
    ) -> Result<(), FencedLockError> {
        let steps = i64::try_from(self.state.steps + 1).unwrap_or(i64::MAX);
        jobs::catch_up(&mut tx).await?;
        DB::Jobs::save(&mut tx, self.place.texts(), steps, &progress).await?;
        self.in_doubt = true;
        let committed = tx.commit().await;
        self.in_doubt = matches!(committed, Err(FenceError::CommitUnknown { .. }));
        committed?;
        self.state.steps += 1;
        self.state.progress = Some(progress);
        Ok(())
    }

    /// Fails if it is not certain whether the last step was committed.
    pub(crate) fn is_certain(&self) -> Result<(), FencedLockError> {
        if self.in_doubt {
            let why = "it is not known whether the last step was committed: run the slot again";
            let source = sqlx::Error::Protocol(why.to_owned());
            return Err(FenceError::CommitUnknown { source }.into());
        }
        Ok(())
    }
}

impl<DB: Storage> fmt::Debug for Job<'_, DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("place", &self.place)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}
