use std::time::Duration;

use fenced_store::{
    AcquireFenced, FencedLockError, FencedLocks, Storage,
    jobs::{JobRows, Undone},
};
use lock_core::{ErrorKind, InvalidName, Lead, backend::lead_resource};

use crate::{Once, Slot, operator::Operator, sealed::Sealed, slots::names};
#[cfg(feature = "schedule")]
use crate::{Schedule, Scheduled};

/// Jobs of a [`FencedLocks`]: once, by a schedule, or as a leader. No other type implements this
/// trait.
///
/// [`retry_job`](Self::retry_job), [`forget_job`](Self::forget_job) and
/// [`forget_jobs_below`](Self::forget_jobs_below) are for operators. Each of them acquires the
/// lease of the job, waiting at most for the given time, and writes under the fence of the job.
pub trait Jobs<DB: Storage>: Sealed {
    /// Prepares to run a job once for a slot: see [`Once`].
    ///
    /// The job acquires the lease of the resource `job:NAME`, so its slots run one after the other.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use fenced_jobs::{JobOutcome, Jobs};
    /// use fenced_store::{FencedLocks, FencedLockError, SqliteFencedStore};
    ///
    /// # let directory = tempfile::tempdir()?;
    /// # let file = directory.path().join("accounts.db");
    /// # let options = sqlx::sqlite::SqliteConnectOptions::new().filename(file);
    /// # let options = SqliteFencedStore::recommended(options.create_if_missing(true));
    /// # let pool = sqlx::SqlitePool::connect_with(options).await?;
    /// # sqlx::query("CREATE TABLE report (day TEXT, total INTEGER)").execute(&pool).await?;
    /// # let store = SqliteFencedStore::new(pool);
    /// # store.migrate().await?;
    /// # let locks = palisade::connect("memory:").await?;
    /// let reports = FencedLocks::new(locks, store);
    /// for attempt in 1..=2 {
    ///     let once = reports.once("nightly-report", "2026-11-27");
    ///     let outcome = once.run(async |tx| {
    ///         sqlx::query("INSERT INTO report VALUES ('2026-11-27', 42)")
    ///             .execute(&mut **tx)
    ///             .await?;
    ///         Ok::<_, FencedLockError>(())
    ///     });
    ///     let ran = matches!(outcome.await?, JobOutcome::Ran(..));
    ///     assert_eq!(ran, attempt == 1);
    /// }
    /// # Ok(()) }
    /// ```
    fn once<S>(&self, job: &str, slot: S) -> Once<DB>
    where
        S: TryInto<Slot>,
        S::Error: Into<InvalidName>;

    /// Prepares to run a job for the times of a schedule that are due: see [`Scheduled`].
    #[cfg(feature = "schedule")]
    fn scheduled(&self, job: &str, schedule: &Schedule) -> Scheduled<DB>;

    /// Prepares to lead under a name, where each term is fenced: at most one of the processes that
    /// campaign for the name leads, and the store refuses the late writes of an earlier leader. See
    /// [`Lead`]. The resource is `lead:NAME`.
    ///
    /// # Examples
    /// ```no_run
    /// # use fenced_jobs::Jobs;
    /// # use fenced_store::{PgFencedLocks, FencedLockError};
    /// # async fn f(shop: PgFencedLocks) -> Result<(), FencedLockError> {
    /// let lead = shop.lead("scheduler");
    /// // After a lost connection the leader pauses, and stays the leader.
    /// lead.run_through(FencedLockError::may_pass, async |term| {
    ///     loop {
    ///         let mut tx = term.begin().await?;
    ///         sqlx::query("UPDATE orders SET sent = now() WHERE sent IS NULL")
    ///             .execute(&mut *tx)
    ///             .await?;
    ///         tx.commit().await?;
    ///         tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    ///     }
    /// })
    /// .await
    /// # }
    /// ```
    fn lead(&self, name: &str) -> Lead<AcquireFenced<DB>>;

    /// Makes a failed slot due at once, and sets the number of its failures to 0. Returns whether
    /// there was one.
    ///
    /// # Errors
    /// As [`AcquireFenced`] and [`FencedTx::commit`](fenced_store::FencedTx::commit).
    ///
    /// # Cancel safety
    /// Cancel safe; it may or may not have happened.
    fn retry_job<S>(
        &self,
        job: &str,
        slot: S,
        wait: Duration,
    ) -> impl Future<Output = Result<bool, FencedLockError>> + Send
    where
        S: TryInto<Slot>,
        S::Error: Into<InvalidName>;

    /// Forgets a slot, so that it CAN RUN AGAIN, from its beginning. Returns whether the store knew
    /// the slot.
    ///
    /// # Errors
    /// As [`retry_job`](Self::retry_job).
    ///
    /// # Cancel safety
    /// Cancel safe; it may or may not have happened.
    fn forget_job<S>(
        &self,
        job: &str,
        slot: S,
        wait: Duration,
    ) -> impl Future<Output = Result<bool, FencedLockError>> + Send
    where
        S: TryInto<Slot>,
        S::Error: Into<InvalidName>;

    /// Forgets the markers of all times of a schedule before this one. These times count as done
    /// permanently: a late runner finds them [forgotten](crate::Standing::Forgotten).
    ///
    /// The call forgets no time after the newest one that is done, so no future time is forgotten.
    /// It stops at the first time that is known and not done. Returns the time at which it has
    /// stopped; empty if the job has never run.
    ///
    /// # Errors
    /// As [`retry_job`](Self::retry_job); an invalid name if the slot is not a time.
    ///
    /// # Cancel safety
    /// Cancel safe; it may or may not have happened.
    fn forget_jobs_below<S>(
        &self,
        job: &str,
        slot: S,
        wait: Duration,
    ) -> impl Future<Output = Result<String, FencedLockError>> + Send
    where
        S: TryInto<Slot>,
        S::Error: Into<InvalidName>;
}

impl<DB: Storage> Jobs<DB> for FencedLocks<DB> {
    fn once<S>(&self, job: &str, slot: S) -> Once<DB>
    where
        S: TryInto<Slot>,
        S::Error: Into<InvalidName>,
    {
        Once::new(self, job, slot.try_into().map_err(Into::into))
    }

    #[cfg(feature = "schedule")]
    fn scheduled(&self, job: &str, schedule: &Schedule) -> Scheduled<DB> {
        Scheduled::new(self, job, schedule)
    }

    fn lead(&self, name: &str) -> Lead<AcquireFenced<DB>> {
        Lead::new(self.acquire(lead_resource(name)))
    }

    fn retry_job<S>(
        &self,
        job: &str,
        slot: S,
        wait: Duration,
    ) -> impl Future<Output = Result<bool, FencedLockError>> + Send
    where
        S: TryInto<Slot>,
        S::Error: Into<InvalidName>,
    {
        let names = names(job, slot);
        async move {
            let (job, slot) = names?;
            let mut operator = Operator::begin(self, &job, wait).await?;
            let place = (job.as_str(), slot.as_str());
            let found = DB::Jobs::retry(&mut operator.tx, place).await?;
            operator.commit().await?;
            Ok(found)
        }
    }

    fn forget_job<S>(
        &self,
        job: &str,
        slot: S,
        wait: Duration,
    ) -> impl Future<Output = Result<bool, FencedLockError>> + Send
    where
        S: TryInto<Slot>,
        S::Error: Into<InvalidName>,
    {
        let names = names(job, slot);
        async move {
            let (job, slot) = names?;
            let mut operator = Operator::begin(self, &job, wait).await?;
            let place = (job.as_str(), slot.as_str());
            let found = DB::Jobs::forget(&mut operator.tx, place).await?;
            operator.commit().await?;
            Ok(found)
        }
    }

    fn forget_jobs_below<S>(
        &self,
        job: &str,
        slot: S,
        wait: Duration,
    ) -> impl Future<Output = Result<String, FencedLockError>> + Send
    where
        S: TryInto<Slot>,
        S::Error: Into<InvalidName>,
    {
        let names = names(job, slot);
        async move {
            let (job, slot) = names?;
            if !slot.is_time() {
                let error = lock_core::Error::not_applied(ErrorKind::InvalidInput);
                let why = format!("{slot} is no time, so no slots come before it");
                return Err(error.because(why).into());
            }
            let mut operator = Operator::begin(self, &job, wait).await?;
            let place = (job.as_str(), slot.as_str());
            let below = DB::Jobs::forget_below(&mut operator.tx, place, Undone::Kept).await?;
            operator.commit().await?;
            Ok(below)
        }
    }
}
