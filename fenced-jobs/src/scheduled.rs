use std::{fmt, time::Duration};

use fenced_store::{
    AcquireFenced, FencedGuard, FencedLockError, FencedLocks, FencedTx, Storage,
    jobs::{JobRows, Undone, counted, to_read},
};
use jiff::Timestamp;
use lock_core::{
    Attempt, InvalidName, RetryPolicy,
    backend::{AcquiresLeases, LeaseSettings},
};

use crate::{
    JobOutcome, Schedule, Slot,
    name::JobName,
    once::{give_back, job_lease},
    place::{BACK_OFF, Place, Worked},
};

/// A job that is to run once for each time of its schedule: call [`run`](Self::run) whenever a time
/// may be due, from as many processes as you like.
///
/// A call does the times in order under one lease, and begins after the newest time that is done.
/// So no time is done after a later one. The promises of [`Once`](crate::Once) hold for each time.
/// The wall clock of this process decides whether a time is due.
///
/// # Examples
/// ```no_run
/// # use fenced_jobs::{Jobs, Missed, Schedule};
/// # use fenced_store::{PgFencedLocks, FencedLockError};
/// # use std::time::Duration;
/// # async fn f(shop: PgFencedLocks) -> Result<(), Box<dyn std::error::Error>> {
/// let nightly = Schedule::new("0 2 * * *", "Europe/Vienna")?;
/// loop {
///     let runs = shop
///         .scheduled("nightly-report", &nightly)
///         .missed(Missed::RunNewest)
///         .run(async |slot, tx| {
///             sqlx::query("INSERT INTO reports SELECT $1, sum(amount) FROM sales")
///                 .bind(slot.as_str())
///                 .execute(&mut **tx)
///                 .await?;
///             Ok::<_, FencedLockError>(())
///         })
///         .await;
///     // The failure of a time is noted. The time is due again after a pause, which grows.
///     let pause = runs.map(|runs| runs.next_in).unwrap_or_else(|error| {
///         eprintln!("{error}");
///         Duration::from_secs(1)
///     });
///     tokio::time::sleep(pause).await;
/// }
/// # }
/// ```
#[derive(Debug)]
#[must_use = "nothing is run until `run` is awaited"]
pub struct Scheduled<DB: Storage> {
    protected: FencedLocks<DB>,
    job: Result<JobName, InvalidName>,
    schedule: Schedule,
    acquire: AcquireFenced<DB>,
    since: Option<Slot>,
    missed: Missed,
    back_off: RetryPolicy,
}

/// The treatment of times that have passed while no process ran the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Missed {
    /// Run all of them in order, with a limit for one lease.
    RunAll {
        /// The most times in one call of [`Scheduled::run`].
        at_most: usize,
    },
    /// Run only the newest time. The times before it count as done.
    RunNewest,
    /// Run no missed time, but only a time that became due a short while ago.
    Skip {
        /// The longest time between the moment when a time is due and its run.
        later_than: Duration,
    },
}

/// The pause before another look, if another runner is at work, which may finish or die.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// The result of one call of [`Scheduled::run`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScheduledRuns {
    /// The times that the call has done, in order.
    pub done: Vec<Slot>,
    /// Whether another runner holds the lease of the job.
    pub is_held: bool,
    /// The time until the next call: zero if more times are due; after a failure the rest of the
    /// back-off; otherwise the time until the next one is due, but at most 10 s if the lease is
    /// held.
    pub next_in: Duration,
}

impl<DB: Storage> AcquiresLeases for Scheduled<DB> {
    fn lease_settings(&mut self) -> &mut LeaseSettings {
        self.acquire.lease_settings()
    }
}

impl<DB: Storage> Scheduled<DB> {
    pub(crate) fn new(protected: &FencedLocks<DB>, job: &str, schedule: &Schedule) -> Self {
        let job = JobName::new(job);
        Self {
            acquire: job_lease(protected, &job),
            protected: protected.clone(),
            job,
            schedule: schedule.clone(),
            since: None,
            missed: Missed::RunAll { at_most: 100 },
            back_off: BACK_OFF,
        }
    }

    /// The treatment of times that were missed. By default all of them run, at most 100 per call.
    pub const fn missed(mut self, missed: Missed) -> Self {
        self.missed = missed;
        self
    }

    /// The beginning of the schedule, if the job has never run. Defaults to now: then the first
    /// call runs nothing, and the store remembers the time of that call.
    pub fn since(mut self, since: Timestamp) -> Self {
        self.since = Some(since.into());
        self
    }

    lock_core::lease_settings!();

    /// See [`Once::back_off`](crate::Once::back_off). Later times wait for a failed time.
    pub const fn back_off(mut self, policy: RetryPolicy) -> Self {
        self.back_off = policy;
        self
    }

    /// See [`Once::tx_options`](crate::Once::tx_options).
    pub fn tx_options(mut self, options: DB::TxOptions) -> Self {
        self.acquire = self.acquire.tx_options(options);
        self
    }

    /// Does the work for each time that is due, each in a fenced transaction of its own that also
    /// marks the time as done. If no time is due, the call costs one read.
    ///
    /// The future can be spawned if the work owns what it uses (`async move |slot, tx| ..`): see
    /// [`Lead::run`](lock_core::Lead::run).
    ///
    /// # Errors
    /// As [`Once::run`](crate::Once::run); times that were done before the error stay done.
    ///
    /// # Cancel safety
    /// As [`Once::run`](crate::Once::run), for the present time.
    pub async fn run<E, F>(self, mut work: F) -> Result<ScheduledRuns, E>
    where
        F: AsyncFnMut(&Slot, &mut FencedTx<DB>) -> Result<(), E>,
        E: From<FencedLockError> + fmt::Display,
    {
        let job = self.job.as_ref().map_err(|error| {
            let error = lock_core::Error::from(error.clone());
            FencedLockError::from(error)
        })?;
        let last = self.last(job).await?;
        let mut runs = ScheduledRuns {
            done: Vec::new(),
            is_held: false,
            next_in: self.until_next(self.now()),
        };
        if let Some(last) = &last
            && self.due(last, self.now()).is_empty()
        {
            return Ok(runs);
        }
        let attempt = self.acquire.clone().attempt(Duration::ZERO).await?;
        let Attempt::Granted(guard) = attempt else {
            runs.is_held = true;
            runs.next_in = runs.next_in.min(LOOK_AGAIN);
            return Ok(runs);
        };
        let result = self.run_due(job, &guard, &mut runs, &mut work).await;
        give_back(guard).await;
        result.map(|()| runs)
    }

    /// Runs the times that are due, under the lease. The clock is read here, because the times that
    /// are due are certain only under the lease, and the acquire may have taken long. The work may
    /// take long, too, so the clock is read again after the work.
    async fn run_due<E, F>(
        &self,
        job: &JobName,
        guard: &FencedGuard<DB>,
        runs: &mut ScheduledRuns,
        work: &mut F,
    ) -> Result<(), E>
    where
        F: AsyncFnMut(&Slot, &mut FencedTx<DB>) -> Result<(), E>,
        E: From<FencedLockError> + fmt::Display,
    {
        let last = self.last(job).await?;
        let now = self.now();
        let Some(last) = last else {
            return Ok(begin(job, guard, &Slot::from(now)).await?);
        };
        let due = self.due(&last, now);
        for slot in &due {
            let place = Place {
                job,
                slot,
                back_off: self.back_off,
            };
            let passes_over = !matches!(self.missed, Missed::RunAll { .. });
            let worked = place.work(guard, async |tx| {
                if passes_over {
                    let passed = DB::Jobs::forget_below(tx, place.texts(), Undone::GivenUp).await;
                    passed.map_err(FencedLockError::from)?;
                }
                work(slot, tx).await
            });
            match worked.await? {
                Worked::Uncommitted((), tx) => {
                    if let Err(error) = tx.commit().await {
                        return Err(place.not_committed(error, guard).await.into());
                    }
                    counted::job_run("ran");
                    if self.schedule.newest(now).map(Slot::from).as_ref() != Some(slot) {
                        counted::job_late();
                    }
                    runs.done.push(slot.clone());
                }
                Worked::Told(state) => {
                    if let Some(JobOutcome::BackingOff { retry_in, .. }) =
                        JobOutcome::<()>::told(&state)
                    {
                        runs.next_in = retry_in;
                        return Ok(());
                    }
                }
            }
        }
        let (last, now) = (due.last().unwrap_or(&last), self.now());
        runs.next_in = if self.due(last, now).is_empty() {
            self.until_next(now)
        } else {
            Duration::ZERO
        };
        Ok(())
    }

    /// The slot up to which the job is done, as far as the store or the caller knows.
    async fn last(&self, job: &JobName) -> Result<Option<Slot>, FencedLockError> {
        let mut connection = to_read(self.protected.store()).await?;
        let newest = DB::Jobs::newest(&mut *connection, job.as_str()).await?;
        Ok(newest.parse().ok().or_else(|| self.since.clone()))
    }

    fn due(&self, last: &Slot, now: Timestamp) -> Vec<Slot> {
        let newest = || {
            let newest = self.schedule.newest(now)?;
            Some((newest, Slot::from(newest))).filter(|(_, newest)| newest > last)
        };
        match self.missed {
            Missed::RunAll { at_most } => {
                self.schedule.due_since(last, now).take(at_most).collect()
            }
            Missed::RunNewest => newest().map(|(_, slot)| slot).into_iter().collect(),
            Missed::Skip { later_than } => newest()
                .filter(|(time, _)| now.duration_since(*time).unsigned_abs() <= later_than)
                .map(|(_, slot)| slot)
                .into_iter()
                .collect(),
        }
    }

    fn now(&self) -> Timestamp {
        let now = self.protected.locks().runtime().unix_time();
        Timestamp::try_from(std::time::UNIX_EPOCH + now).unwrap_or(Timestamp::MAX)
    }

    fn until_next(&self, now: Timestamp) -> Duration {
        let next = self.schedule.next(now);
        next.map_or(Duration::MAX, |next| {
            next.duration_since(now).unsigned_abs()
        })
    }
}

/// Begins the schedule of a job that has never run.
async fn begin<DB: Storage>(
    job: &JobName,
    guard: &FencedGuard<DB>,
    first: &Slot,
) -> Result<(), FencedLockError> {
    let mut tx = guard.begin().await?;
    let place = (job.as_str(), first.as_str());
    DB::Jobs::forget_below(&mut tx, place, Undone::GivenUp).await?;
    tx.commit().await?;
    Ok(())
}
