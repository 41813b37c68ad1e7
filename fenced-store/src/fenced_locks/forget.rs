use std::time::Duration;

use lock_core::{Attempt, FencingToken, InitialToken, TokenScale, Ttl};

use super::{FencedLockError, FencedLocks};
use crate::{Forget, Forgotten, Storage, admin::AdminError};

/// The resource that is acquired for a moment, if tokens are revisions of one counter. Its token
/// shows the present revision.
const PROBE: &str = "palisade-forget-probe";

/// The ttl of the lease of [`PROBE`]. It is short, because a lease that cannot be given back keeps
/// others waiting.
const PROBING: Ttl = Ttl::secs(2);

/// For operators.
impl<DB: Storage> FencedLocks<DB> {
    /// Forgets the marks of resources that were not claimed for this time, an hour or more: see
    /// [`FencedStore::forget_marks`](crate::FencedStore::forget_marks).
    ///
    /// If the tokens of the lock service are the revisions of one counter, this call acquires a
    /// lease for a moment, to learn the present revision.
    ///
    /// # Errors
    /// [`AdminError::NotForgettable`] if the tokens of the lock service follow neither the clock
    /// nor one revision. An example is a service whose counters begin at a small number. Nothing is
    /// forgotten. Otherwise the errors of
    /// [`FencedStore::forget_marks`](crate::FencedStore::forget_marks), and of the lock service.
    ///
    /// # Cancel safety
    /// Cancel safe: the present batch is finished in the background.
    pub async fn forget_marks(&self, older_than: Duration) -> Result<Forgotten, AdminError> {
        let order = Forget::older_than(older_than);
        let order = match self.locks.capabilities().tokens {
            TokenScale::Clock => order,
            TokenScale::Revision => match self.revision().await {
                Ok(Some(issued)) => order.below(issued),
                Ok(None) => return Ok(Forgotten::default()),
                Err(source) => return Err(AdminError::LockService { source }),
            },
            _ => {
                return Err(AdminError::not_forgettable(format!(
                    "the tokens of the lock service \"{}\" follow neither the clock nor one \
                     revision, so one floor does not fit all resources",
                    self.locks.issuer()
                )));
            }
        };
        self.store.forget_marks(&order).await
    }

    /// A token that the lock service has just issued. `None` if another client is asking.
    async fn revision(&self) -> Result<Option<FencingToken>, lock_core::Error> {
        let probe = self.locks.acquire(PROBE).ttl(PROBING).renew(false);
        match probe.try_acquire().await? {
            Attempt::Granted(guard) => {
                let token = guard.token();
                guard.release().await?;
                Ok(Some(token))
            }
            Attempt::Held { .. } => Ok(None),
        }
    }

    /// Keeps the mark of a grant whose lease was renewed. Call it with each renewal of a lease that
    /// has no guard, because the marks of guards are kept by a task. It sends a request to the
    /// store only if the grant is older than 20 minutes.
    ///
    /// # Errors
    /// Those of the database. The next renewal repeats the request.
    ///
    /// # Cancel safety
    /// The request is finished in the background.
    #[doc(hidden)]
    pub async fn keep(&self, grant: &lock_core::Sequencer) -> Result<(), FencedLockError> {
        const YOUNG: Duration = Duration::from_secs(20 * 60);
        let then = self.locks.runtime().unix_time().saturating_sub(YOUNG);
        if grant.token().get() < InitialToken::clock_token(then) {
            self.store.refresh(grant).await?;
        }
        Ok(())
    }
}
