use fenced_store::{
    FenceError, FencedLockError, FencedStore, Storage,
    jobs::{JobRows, to_read},
};
use lock_core::InvalidName;

use crate::{Slot, SlotState, name::JobName, sealed::Sealed};

/// A slot that the store knows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobSlot {
    /// The name of the job.
    pub job: String,
    /// The slot, as text.
    pub slot: String,
    /// The state of the slot.
    pub state: SlotState,
}

/// The state of the slots of jobs in a [`FencedStore`]. The calls need no lock service. Only stores
/// implement this trait.
pub trait JobSlots: Sealed {
    /// The state of a slot of a job.
    ///
    /// # Errors
    /// If a name is invalid, or the database cannot be queried.
    ///
    /// # Cancel safety
    /// Cancel safe.
    fn job_slot<S>(
        &self,
        job: &str,
        slot: S,
    ) -> impl Future<Output = Result<SlotState, FencedLockError>> + Send
    where
        S: TryInto<Slot>,
        S::Error: Into<InvalidName>;

    /// The slots that the store knows, ordered by job and slot. Returns at most `count`: the first
    /// slots, or the slots after a given one.
    ///
    /// A role that may write to the tables may have written anything: print the texts with care. In
    /// MySQL, MariaDB and SQLite they are cut after 10 000 characters; [`job_slot`](Self::job_slot)
    /// returns them in full. A number that is no token is returned as the nearest token.
    ///
    /// # Errors
    /// If the database cannot be queried.
    ///
    /// # Cancel safety
    /// Cancel safe.
    fn job_slots(
        &self,
        after: Option<&JobSlot>,
        count: u32,
    ) -> impl Future<Output = Result<Vec<JobSlot>, FenceError>> + Send;
}

impl<DB: Storage> JobSlots for FencedStore<DB> {
    fn job_slot<S>(
        &self,
        job: &str,
        slot: S,
    ) -> impl Future<Output = Result<SlotState, FencedLockError>> + Send
    where
        S: TryInto<Slot>,
        S::Error: Into<InvalidName>,
    {
        let names = names(job, slot);
        async move {
            let (job, slot) = names?;
            let mut connection = to_read(self).await?;
            Ok(DB::Jobs::look(&mut *connection, (job.as_str(), slot.as_str())).await?)
        }
    }

    async fn job_slots(
        &self,
        after: Option<&JobSlot>,
        count: u32,
    ) -> Result<Vec<JobSlot>, FenceError> {
        let mut connection = to_read(self).await?;
        let after = after.map_or(("", ""), |after| (&after.job, &after.slot));
        let rows = DB::Jobs::list(&mut *connection, after, count.into()).await?;
        let slot = |(job, slot, state)| JobSlot { job, slot, state };
        Ok(rows.into_iter().map(slot).collect())
    }
}

pub(crate) fn names<S>(job: &str, slot: S) -> Result<(JobName, Slot), FencedLockError>
where
    S: TryInto<Slot>,
    S::Error: Into<InvalidName>,
{
    let names = JobName::new(job).and_then(|job| Ok((job, slot.try_into().map_err(Into::into)?)));
    names.map_err(|error| lock_core::Error::from(error).into())
}
