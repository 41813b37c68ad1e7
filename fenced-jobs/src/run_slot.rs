use fenced_store::{
    FenceError, FencedTx, Storage,
    jobs::{self, JobRows},
};

use crate::{Slot, SlotState, name::JobName, sealed::Sealed};

/// Marks slots of jobs in a [`FencedTx`]. Only transactions implement it.
pub trait RunSlot: Sealed {
    /// Marks a slot as done by this transaction, if the slot is due, and returns the state that it
    /// had before. Do the work if it was [due](crate::Standing::Due).
    ///
    /// This is for callers with a grant but no guard, such as a service behind a `Fencing-Token`
    /// header. The resource `job:NAME` has to fence the transaction, and its name is the job. With
    /// a guard use [`Jobs::once`](crate::Jobs::once).
    ///
    /// # Errors
    /// [`FenceError::WrongResource`] if no job fences this transaction; errors of the database.
    ///
    /// # Cancel safety
    /// The slot may or may not be marked: roll back.
    fn run_slot(
        &mut self,
        slot: &Slot,
    ) -> impl Future<Output = Result<SlotState, FenceError>> + Send;
}

impl<DB: Storage> RunSlot for FencedTx<DB> {
    async fn run_slot(&mut self, slot: &Slot) -> Result<SlotState, FenceError> {
        let job = self
            .sequencers()
            .find_map(|grant| JobName::of(grant.resource()));
        let job = job.ok_or_else(|| {
            let why = "no resource job:NAME fences this transaction".to_owned();
            let source = sqlx::Error::Protocol(why);
            FenceError::WrongResource { source }
        })?;
        jobs::catch_up(&mut *self).await?;
        DB::Jobs::run(&mut *self, (job.as_str(), slot.as_str())).await
    }
}
