use std::{
    fmt,
    panic::{AssertUnwindSafe, resume_unwind},
    time::Duration,
};

use fenced_store::{
    AcquireFenced, FencedGuard, FencedLockError, FencedLocks, FencedTx, Storage,
    jobs::{counted, until_lost},
};
use futures_util::FutureExt;
use lock_core::{
    Attempt, InvalidName, RetryPolicy,
    backend::{AcquiresLeases, LeaseSettings},
};
use tracing::debug;

use crate::{
    Job, JobOutcome, Slot,
    name::JobName,
    place::{BACK_OFF, Place, Worked, text_of_panic},
};

/// The acquire of the lease of a job. If the name is invalid, awaiting it returns the error.
pub(crate) fn job_lease<DB: Storage>(
    protected: &FencedLocks<DB>,
    job: &Result<JobName, InvalidName>,
) -> AcquireFenced<DB> {
    protected.acquire(job.as_ref().map_or("", |job| job.resource().as_str()))
}

/// A slot of a job that is to run once: call [`run`](Self::run), or [`steps`](Self::steps) for work
/// that is too long for one transaction.
///
/// A runner holds the lease of the job and has claimed its token before it looks whether the slot
/// is done; the marker is committed with the work, under the fence. So the work is stored once,
/// whatever the number of calls and processes is, and wherever a process is paused.
///
/// NOT guaranteed: anything about effects outside of the database. Such effects happen *at least*
/// once; give them the [`idempotency_key`](Self::idempotency_key).
#[derive(Debug)]
#[must_use = "nothing is run until `run` or `steps` is awaited"]
pub struct Once<DB: Storage> {
    protected: FencedLocks<DB>,
    job: Result<JobName, InvalidName>,
    slot: Result<Slot, InvalidName>,
    acquire: AcquireFenced<DB>,
    wait: Duration,
    back_off: RetryPolicy,
}

impl<DB: Storage> AcquiresLeases for Once<DB> {
    fn lease_settings(&mut self) -> &mut LeaseSettings {
        self.acquire.lease_settings()
    }
}

impl<DB: Storage> Once<DB> {
    pub(crate) fn new(
        protected: &FencedLocks<DB>,
        job: &str,
        slot: Result<Slot, InvalidName>,
    ) -> Self {
        let job = JobName::new(job);
        Self {
            acquire: job_lease(protected, &job),
            protected: protected.clone(),
            job,
            slot,
            wait: Duration::ZERO,
            back_off: BACK_OFF,
        }
    }

    lock_core::lease_settings!();

    /// How long to wait while another runner holds the lease of the job. By default the call does
    /// not wait, and returns [`JobOutcome::Held`].
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// The pauses after which a failed slot is due again: the first pause after the first failure,
    /// and so on. Defaults to 1 s, which doubles each time up to 5 min, shortened by
    /// [jitter](lock_core::Jitter). The limit of the policy does not count: attempts go on until
    /// the slot is done. An operator ends a back-off with [`retry_job`](crate::Jobs::retry_job).
    pub const fn back_off(mut self, policy: RetryPolicy) -> Self {
        self.back_off = policy;
        self
    }

    /// Settings of the claims and transactions of this job, in place of the settings of the store:
    /// a `PgTxOptions` or a `MySqlTxOptions`.
    ///
    /// Postgres ends a transaction that is idle for 10 s between two statements, or whose statement
    /// takes 30 s: work that awaits something else for longer needs a longer `idle_timeout`. A
    /// paused runner holds up the next one for as long.
    pub fn tx_options(mut self, options: DB::TxOptions) -> Self {
        self.acquire = self.acquire.tx_options(options);
        self
    }

    /// A key for effects outside of the database. Each attempt to run this slot has the same key,
    /// and no other slot has it. [`Job::idempotency_key`] is the key of a step.
    ///
    /// # Errors
    /// If a name is invalid.
    pub fn idempotency_key(&self) -> Result<String, InvalidName> {
        let (job, slot) = (self.job.as_ref(), self.slot.as_ref());
        let (job, slot) = (job.map_err(Clone::clone)?, slot.map_err(Clone::clone)?);
        Ok(format!("{}/{slot}", job.as_str()))
    }

    /// Runs the work in a fenced transaction and commits it with the marker of the slot, unless the
    /// slot is done, held or backing off. A slot that is done costs one read.
    ///
    /// If the work fails, everything is rolled back, and the failure is noted with the time when
    /// the slot is due again. When the lease is lost, the work is dropped at its present await.
    ///
    /// # Errors
    /// The error of the work, or of the lock service or the store; then the slot is not done. After
    /// [`FenceError::CommitUnknown`](fenced_store::FenceError::CommitUnknown) the slot may be done:
    /// run it again, which waits until that commit has succeeded or failed. An invalid name is an
    /// error of the lock service, before anything is sent.
    ///
    /// # Cancel safety
    /// The work is rolled back and the lease released. If the commit was sent, the commit goes on
    /// in the background. In both cases the slot can be run again.
    pub async fn run<T, E, F>(self, work: F) -> Result<JobOutcome<T>, E>
    where
        F: AsyncFnOnce(&mut FencedTx<DB>) -> Result<T, E>,
        E: From<FencedLockError> + fmt::Display,
    {
        self.held(async |place, guard| finish(&place, guard, work).await)
            .await
    }

    /// Runs work in steps. Each step is a fenced transaction that is committed with its result. If
    /// a runner dies or is overtaken, the next one goes on after its last committed step: see
    /// [`Job::step`]. After the last step the slot is marked as done.
    ///
    /// # Errors
    /// As [`run`](Self::run). Committed steps stay, and are not done again.
    ///
    /// # Cancel safety
    /// As [`run`](Self::run), for the present step.
    ///
    /// # Examples
    /// ```no_run
    /// # use fenced_jobs::Jobs;
    /// # use fenced_store::{PgFencedLocks, FencedLockError};
    /// # async fn f(shop: PgFencedLocks) -> Result<(), FencedLockError> {
    /// let outcome = shop.once("new-prices", "2026-12").steps(async |job| {
    ///     let mut last = job.progress::<i64>()?.unwrap_or(0);
    ///     while last < 1_000_000 {
    ///         last = job
    ///             .step(async |tx| {
    ///                 sqlx::query("UPDATE products SET price = 2 * price WHERE id = $1")
    ///                     .bind(last + 1)
    ///                     .execute(&mut **tx)
    ///                     .await?;
    ///                 Ok::<_, FencedLockError>(last + 1)
    ///             })
    ///             .await?;
    ///     }
    ///     Ok::<_, FencedLockError>(())
    /// });
    /// println!("{:?}", outcome.await?);
    /// # Ok(()) }
    /// ```
    pub async fn steps<T, E, F>(self, work: F) -> Result<JobOutcome<T>, E>
    where
        F: AsyncFnOnce(&mut Job<'_, DB>) -> Result<T, E>,
        E: From<FencedLockError> + fmt::Display,
    {
        let store = self.protected.store().clone();
        self.held(async |place, guard| {
            let state = place.look(&store).await.map_err(FencedLockError::from)?;
            if let Some(told) = JobOutcome::told(&state) {
                give_back(guard).await;
                return Ok(told);
            }
            if state.steps > 0 {
                counted::job_taken_over();
            }
            let mut job = Job::new(&guard, &place, state);
            let done = AssertUnwindSafe(until_lost(&guard, work(&mut job)));
            let done = match done.catch_unwind().await {
                Ok(done) => done,
                Err(panic) => {
                    place.note_failure(&guard, text_of_panic(&*panic)).await;
                    give_back(guard).await;
                    resume_unwind(panic);
                }
            };
            let error = match (done, job.is_certain()) {
                (Ok(value), Ok(())) => {
                    return finish(&place, guard, async |_| Ok(value)).await;
                }
                (Ok(_), Err(in_doubt)) => in_doubt.into(),
                // The commit may have happened. Another run at once finds out.
                (Err(error), Err(_)) => error,
                (Err(error), Ok(())) => {
                    place.note_failure(&guard, format!("{error:#}")).await;
                    error
                }
            };
            give_back(guard).await;
            Err(error)
        })
        .await
    }

    /// Does something under the lease of the job, if the slot may be due.
    async fn held<T, E, F>(self, section: F) -> Result<JobOutcome<T>, E>
    where
        F: AsyncFnOnce(Place<'_>, FencedGuard<DB>) -> Result<JobOutcome<T>, E>,
        E: From<FencedLockError>,
    {
        let names = self.job.and_then(|job| Ok((job, self.slot?)));
        let (job, slot) =
            names.map_err(|error| FencedLockError::from(lock_core::Error::from(error)))?;
        let place = Place {
            job: &job,
            slot: &slot,
            back_off: self.back_off,
        };
        let seen = place.look(self.protected.store()).await;
        let outcome = if let Some(told) = JobOutcome::told(&seen.map_err(FencedLockError::from)?) {
            Ok(told)
        } else if let Attempt::Granted(guard) = self.acquire.attempt(self.wait).await? {
            section(place, guard).await
        } else {
            Ok(JobOutcome::Held)
        };
        if let Ok(outcome) = &outcome {
            counted::job_run(outcome.label());
        }
        outcome
    }
}

/// Does the rest of the work of a slot, commits it with the marker, and releases the lease.
async fn finish<DB, T, E, F>(
    place: &Place<'_>,
    guard: FencedGuard<DB>,
    work: F,
) -> Result<JobOutcome<T>, E>
where
    DB: Storage,
    F: AsyncFnOnce(&mut FencedTx<DB>) -> Result<T, E>,
    E: From<FencedLockError> + fmt::Display,
{
    let worked = AssertUnwindSafe(place.work(&guard, work));
    let worked = match worked.catch_unwind().await {
        Ok(worked) => worked,
        Err(panic) => {
            give_back(guard).await;
            resume_unwind(panic);
        }
    };
    match worked {
        Ok(Worked::Uncommitted(value, tx)) => match tx.commit_and_release(guard).await {
            Ok(receipt) => Ok(JobOutcome::Ran(value, receipt)),
            Err(not_committed) => {
                let (error, guard) = not_committed.into_parts();
                let error = place.not_committed(error, &guard).await;
                give_back(guard).await;
                Err(error.into())
            }
        },
        Ok(Worked::Told(state)) => {
            give_back(guard).await;
            // The slot is not due.
            Ok(JobOutcome::told(&state).unwrap_or(JobOutcome::Held))
        }
        Err(error) => {
            give_back(guard).await;
            Err(error)
        }
    }
}

/// Releases the lease. The outcome of the slot is known already.
pub(crate) async fn give_back<DB: Storage>(guard: FencedGuard<DB>) {
    if let Err(error) = guard.release().await {
        debug!(%error, "release failed, the watchdog goes on with it");
    }
}
