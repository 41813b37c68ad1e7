use std::time::Duration;

use fenced_store::{FencedGuard, FencedLockError, FencedLocks, FencedTx, Storage};

use crate::{
    name::JobName,
    once::{give_back, job_lease},
};

/// A change by an operator: a transaction under the lease of a job.
pub(crate) struct Operator<DB: Storage> {
    guard: FencedGuard<DB>,
    pub(crate) tx: FencedTx<DB>,
}

impl<DB: Storage> Operator<DB> {
    pub(crate) async fn begin(
        locks: &FencedLocks<DB>,
        job: &JobName,
        wait: Duration,
    ) -> Result<Self, FencedLockError> {
        let guard = job_lease(locks, &Ok(job.clone())).wait(wait).await?;
        let tx = guard.begin().await?;
        Ok(Self { guard, tx })
    }

    pub(crate) async fn commit(self) -> Result<(), FencedLockError> {
        self.tx.commit().await?;
        give_back(self.guard).await;
        Ok(())
    }
}
