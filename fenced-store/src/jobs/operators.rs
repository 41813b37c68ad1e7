use std::time::Duration;

use lock_core::{ErrorKind, InvalidName};

use super::{
    Slot, SlotState,
    name::JobName,
    once::{give_back, job_lease},
    rows::{JobRows, Undone},
};
use crate::{
    Dialect, FenceError, FencedLockError, FencedLocks, FencedStore, FencedTx, leaked::to_read,
};

/// A slot of which the store knows something.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobSlot {
    /// The name of the job.
    pub job: String,
    /// The slot, as text.
    pub slot: String,
    /// What is known of it.
    pub state: SlotState,
}

impl<DB: Dialect> FencedStore<DB> {
    /// Where a slot of a job stands. Needs no lock service.
    ///
    /// # Errors
    /// If a name is invalid, or the database cannot be queried.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn job_slot<S>(&self, job: &str, slot: S) -> Result<SlotState, FencedLockError>
    where
        S: TryInto<Slot>,
        S::Error: Into<InvalidName>,
    {
        let (job, slot) = names(job, slot)?;
        let mut connection = to_read(self.pool()).await?;
        Ok(DB::Jobs::look(&mut *connection, (job.as_str(), slot.as_str())).await?)
    }

    /// The slots of which something is known, ordered by job and slot: the first ones, or those
    /// after one of them. At most `count`.
    ///
    /// A role that may write the tables may have written anything: print the texts with care. In
    /// MySQL, MariaDB and SQLite they are cut after 10 000 characters, see
    /// [`job_slot`](FencedStore::job_slot). A number that is no token shows as the nearest one.
    ///
    /// # Errors
    /// If the database cannot be queried.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn job_slots(
        &self,
        after: Option<&JobSlot>,
        count: u32,
    ) -> Result<Vec<JobSlot>, FenceError> {
        let mut connection = to_read(self.pool()).await?;
        let after = after.map_or(("", ""), |after| (&after.job, &after.slot));
        let rows = DB::Jobs::list(&mut *connection, after, count.into()).await?;
        let slot = |(job, slot, state)| JobSlot { job, slot, state };
        Ok(rows.into_iter().map(slot).collect())
    }
}

/// For operators. Each of them takes the lease of the job, for which it waits as long as it is told
/// to, and writes under its fence.
impl<DB: Dialect> FencedLocks<DB> {
    /// Makes a slot that has failed due at once, with no failures. Returns whether there was one.
    ///
    /// # Errors
    /// As [`AcquireFenced`](crate::AcquireFenced) and [`FencedTx::commit`].
    ///
    /// # Cancel safety
    /// Cancel safe; it may or may not have happened.
    pub async fn retry_job<S>(
        &self,
        job: &str,
        slot: S,
        wait: Duration,
    ) -> Result<bool, FencedLockError>
    where
        S: TryInto<Slot>,
        S::Error: Into<InvalidName>,
    {
        let place = names(job, slot)?;
        self.as_operator(place, wait, async |tx, place| {
            DB::Jobs::retry(tx, place).await
        })
        .await
    }

    /// Forgets what is known of a slot, so that it CAN RUN AGAIN, from its beginning. Returns
    /// whether anything was known.
    ///
    /// # Errors
    /// As [`AcquireFenced`](crate::AcquireFenced) and [`FencedTx::commit`].
    ///
    /// # Cancel safety
    /// Cancel safe; it may or may not have happened.
    pub async fn forget_job<S>(
        &self,
        job: &str,
        slot: S,
        wait: Duration,
    ) -> Result<bool, FencedLockError>
    where
        S: TryInto<Slot>,
        S::Error: Into<InvalidName>,
    {
        let place = names(job, slot)?;
        self.as_operator(place, wait, async |tx, place| {
            DB::Jobs::forget(tx, place).await
        })
        .await
    }

    /// Forgets the markers of all times of a schedule before this one. They count as done for ever:
    /// a runner that comes late is told that they are [forgotten](super::Standing::Forgotten).
    ///
    /// It goes no further than the newest time that is done, so no time to come is forgotten. It
    /// stops at the first time that is known and not done. Returns the time that it came to, empty
    /// if the job has never run.
    ///
    /// # Errors
    /// As [`AcquireFenced`](crate::AcquireFenced) and [`FencedTx::commit`]; an invalid name
    /// if the slot is not a time.
    ///
    /// # Cancel safety
    /// Cancel safe; it may or may not have happened.
    pub async fn forget_jobs_below<S>(
        &self,
        job: &str,
        slot: S,
        wait: Duration,
    ) -> Result<String, FencedLockError>
    where
        S: TryInto<Slot>,
        S::Error: Into<InvalidName>,
    {
        let place = names(job, slot)?;
        if !place.1.is_time() {
            let error = lock_core::Error::not_applied(ErrorKind::InvalidInput);
            let why = format!("{} is no time, and has no slots before it", place.1);
            return Err(error.because(why).into());
        }
        self.as_operator(place, wait, async |tx, place| {
            DB::Jobs::forget_below(tx, place, Undone::Kept).await
        })
        .await
    }

    async fn as_operator<T>(
        &self,
        (job, slot): (JobName, Slot),
        wait: Duration,
        order: impl AsyncFnOnce(&mut FencedTx<DB>, (&str, &str)) -> Result<T, FenceError>,
    ) -> Result<T, FencedLockError> {
        let place = (job.as_str(), slot.as_str());
        let guard = job_lease(self, &Ok(job.clone())).wait(wait).await?;
        let mut tx = guard.begin().await?;
        let value = order(&mut tx, place).await?;
        tx.commit().await?;
        give_back(guard).await;
        Ok(value)
    }
}

fn names<S>(job: &str, slot: S) -> Result<(JobName, Slot), FencedLockError>
where
    S: TryInto<Slot>,
    S::Error: Into<InvalidName>,
{
    let names = JobName::new(job).and_then(|job| Ok((job, slot.try_into().map_err(Into::into)?)));
    names.map_err(|error| lock_core::Error::from(error).into())
}
