use std::{slice, time::Duration};

use super::{Acquire, Inner, LeaseGuard, LockManager, granted::Granted};
use crate::{
    Attempt, Error, ErrorKind, Operation, Released, RenewRequest, Renewed, Sequencer, Ttl,
    error::OURSELVES,
};

/// A lease without guard and watchdog: renew and release it yourself, by its sequencer.
///
/// A gateway hands such leases to its clients. The lease ends by itself unless it is renewed.
///
/// Any client with its sequencer can renew and release it.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let memory = lock_core::memory::MemoryBackend::default();
/// # let locks = lock_core::LockManager::builder().build(memory)?;
/// use lock_core::{Attempt, Ttl};
///
/// let Attempt::Granted(lease) = locks.acquire("account:42").detached().await? else {
///     return Ok(()); // another holder has it
/// };
/// // A client sends the sequencer back when it wants more time, and when it is done.
/// locks.renew(&lease.sequencer, Ttl::secs(20)).await?;
/// locks.release(&lease.sequencer).await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
#[must_use = "nothing renews or releases the lease any more"]
pub struct DetachedLease {
    /// Proof of the grant. Its holder is a secret.
    pub sequencer: Sequencer,
    /// The ttl that was asked for.
    pub ttl: Ttl,
    /// The time that was left when the lease was detached: when the grant arrived, or when
    /// [`LeaseGuard::detach`](super::LeaseGuard::detach) was called. Zero if the lease was lost by
    /// then.
    pub remaining: Duration,
}

impl Acquire {
    /// Acquires without guard and watchdog. Waits as configured, and returns `Held` when the wait
    /// is over.
    ///
    /// # Errors
    /// As [`Acquire`], without `WaitTimeout`.
    ///
    /// # Cancel safety
    /// As [`Acquire`]. Once this has returned, the caller has to release the lease. A release of an
    /// [`Owner`](super::Owner)'s lease then ends it for all of the owner's handles.
    pub async fn detached(self) -> Result<Attempt<DetachedLease>, Error> {
        let acquire = self.renew(false);
        let attempt = acquire.granted(None).await?;
        Ok(attempt.map(|Granted { mut pending, grant }| {
            let sequencer = pending.granted(grant.token);
            pending.disarm();
            DetachedLease {
                sequencer,
                ttl: acquire.settings.ttl,
                remaining: grant.lease.deadline().since(acquire.locks.runtime().now()),
            }
        }))
    }
}

impl LeaseGuard {
    /// Gives up the guard and keeps the lease: renew and release it yourself, by its sequencer.
    ///
    /// The watchdog stops renewing. A later release of an [`Owner`](crate::Owner)'s lease ends it
    /// for all of the owner's handles at once.
    #[must_use = "nothing renews or releases the lease any more"]
    pub fn detach(mut self) -> DetachedLease {
        self.on_drop.disarm();
        DetachedLease {
            sequencer: self.sequencer().clone(),
            ttl: self.status.ttl(),
            remaining: self.remaining().unwrap_or_default(),
        }
    }
}

impl LockManager {
    /// Renews a detached lease to a full `ttl` from now.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] if a guard of this manager holds the lease, because the guard
    /// would not learn of the new deadline: use [`LeaseGuard::renew`]. [`ErrorKind::Unavailable`]
    /// with the outcome unknown if no answer came: the lease may be renewed.
    ///
    /// # Cancel safety
    /// The lease may or may not have been renewed. Renewing again is harmless.
    pub async fn renew(&self, lease: &Sequencer, ttl: Ttl) -> Result<Renewed, Error> {
        if self.inner.guarded.has(lease) {
            return Err(Error::not_applied(ErrorKind::InvalidInput)
                .during(Operation::Renew, OURSELVES)
                .on(lease.resource())
                .because("a guard of this manager holds the lease: call its `renew`"));
        }
        let request = RenewRequest::new(lease.clone(), ttl);
        self.inner.renew(&request).await
    }

    /// Releases a detached lease.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] with the outcome unknown if no
    /// answer came: the lease may be released.
    ///
    /// # Cancel safety
    /// The lease may or may not have been released. Releasing again is harmless.
    pub async fn release(&self, lease: &Sequencer) -> Result<Released, Error> {
        let Inner { backend, .. } = &*self.inner;
        let release = || backend.release(lease, true);
        self.inner.answered(release).await
    }
}

impl Inner {
    /// Renews one lease, whatever its holder.
    pub(super) async fn renew(&self, request: &RenewRequest) -> Result<Renewed, Error> {
        let renew = || async {
            let mut answers = self.backend.renew(slice::from_ref(request)).await;
            // There is one answer for each lease.
            answers.remove(0)
        };
        self.answered(renew).await
    }
}
