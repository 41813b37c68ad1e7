use std::{
    any::Any,
    fmt,
    panic::{AssertUnwindSafe, resume_unwind},
    time::Duration,
};

use fenced_store::{
    FenceError, FencedGuard, FencedLockError, FencedStore, FencedTx, Storage,
    jobs::{JobRows, counted, to_read, until_lost},
};
use futures_util::FutureExt;
use lock_core::RetryPolicy;
use tracing::debug;

use crate::{JobOutcome, Slot, SlotState, name::JobName};

/// The pauses after which a failed slot is due again, unless the caller sets others.
pub(crate) const BACK_OFF: RetryPolicy =
    RetryPolicy::exponential(Duration::from_secs(1)).longest(Duration::from_secs(300));

/// The number of failures after which a pause does not grow any more, whatever the policy is.
const MANY: u64 = 64;

/// The most bytes of an error that are noted.
const LONGEST_ERROR: usize = 1000;

/// A slot of a job, with the calls that work on it under a claimed lease.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    pub(crate) job: &'a JobName,
    pub(crate) slot: &'a Slot,
    pub(crate) back_off: RetryPolicy,
}

/// A slot that was due, or the reason why it was not.
pub(crate) enum Worked<DB: Storage, T> {
    /// The work is done and marked, and not yet committed.
    Uncommitted(T, Box<FencedTx<DB>>),
    Told(SlotState),
}

impl Place<'_> {
    pub(crate) fn texts(&self) -> (&str, &str) {
        (self.job.as_str(), self.slot.as_str())
    }

    /// The present state of the slot. The state decides nothing unless the job is claimed.
    pub(crate) async fn look<DB: Storage>(
        &self,
        store: &FencedStore<DB>,
    ) -> Result<SlotState, FenceError> {
        let mut connection = to_read(store).await?;
        DB::Jobs::look(&mut *connection, self.texts()).await
    }

    /// Marks the slot as done and does the work in one transaction, or finds that the slot is not
    /// due. A failure is noted.
    pub(crate) async fn work<DB, T, E, F>(
        &self,
        guard: &FencedGuard<DB>,
        work: F,
    ) -> Result<Worked<DB, T>, E>
    where
        DB: Storage,
        F: AsyncFnOnce(&mut FencedTx<DB>) -> Result<T, E>,
        E: From<FencedLockError> + fmt::Display,
    {
        let begun = guard.begin().await;
        if begun.as_ref().is_err_and(FenceError::is_fenced) {
            counted::job_run("lost");
        }
        let mut tx = begun.map_err(FencedLockError::from)?;
        let state = DB::Jobs::run(&mut tx, self.texts()).await;
        let state = state.map_err(FencedLockError::from)?;
        if JobOutcome::<T>::told(&state).is_some() {
            tx.rollback().await.map_err(FencedLockError::from)?;
            return Ok(Worked::Told(state));
        }
        let worked = AssertUnwindSafe(until_lost(guard, work(&mut tx)));
        let (failure, text) = match worked.catch_unwind().await {
            Ok(Ok(value)) => return Ok(Worked::Uncommitted(value, Box::new(tx))),
            Ok(Err(error)) => {
                let text = format!("{error:#}");
                (Ok(error), text)
            }
            Err(panic) => {
                let text = text_of_panic(&*panic);
                (Err(panic), text)
            }
        };
        if let Err(error) = tx.rollback().await {
            debug!(%error, "not rolled back here, so the database does it");
        }
        self.note_failure(guard, text).await;
        match failure {
            Ok(error) => Err(error),
            Err(panic) => resume_unwind(panic),
        }
    }

    /// The error to return for a failed commit. The store notes a failure, unless the commit may
    /// have happened.
    pub(crate) async fn not_committed<DB: Storage>(
        &self,
        error: FenceError,
        guard: &FencedGuard<DB>,
    ) -> FencedLockError {
        if !matches!(error, FenceError::CommitUnknown { .. }) {
            self.note_failure(guard, error.to_string()).await;
        }
        error.into()
    }

    /// Notes a failure under the fence, so a runner that was overtaken notes nothing.
    pub(crate) async fn note_failure<DB: Storage>(&self, guard: &FencedGuard<DB>, error: String) {
        // Postgres takes no text with that byte.
        let error = error.replace('\0', " ");
        let cut = error.floor_char_boundary(LONGEST_ERROR);
        let noted = self.try_note_failure(guard, &error[..cut]).await;
        let was_overtaken = noted.as_ref().is_err_and(FenceError::is_fenced);
        counted::job_run(if was_overtaken { "lost" } else { "failed" });
        if let Err(error) = noted {
            debug!(%error, "the failure of a job is not noted, so it is due at once");
        }
    }

    async fn try_note_failure<DB: Storage>(
        &self,
        guard: &FencedGuard<DB>,
        error: &str,
    ) -> Result<(), FenceError> {
        let mut tx = guard.begin().await?;
        let state = DB::Jobs::look(&mut tx, self.texts()).await?;
        let many = usize::try_from(state.attempts.min(MANY)).unwrap_or(0);
        let mut pauses = self.back_off.limit(u32::MAX).pauses();
        let pauses = (0..=many).map_while(|_| pauses.next(guard.runtime()));
        let pause = pauses.last().unwrap_or_default().as_millis();
        let pause = i64::try_from(pause).unwrap_or(i64::from(u32::MAX));
        DB::Jobs::fail(&mut tx, self.texts(), error, pause).await?;
        tx.commit().await.map(drop)
    }
}

/// The text of a panic of a job.
pub(crate) fn text_of_panic(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the work panicked: {}", text.unwrap_or("without a text"))
}
