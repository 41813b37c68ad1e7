use std::{future::IntoFuture, time::Duration};

use lock_core::{
    AcquireAll, BoxFuture, FencingToken, InvalidMetadata, LeaseGuards, Metadata, Moment,
    ResourceName, Ttl,
};
use tracing::debug;

use super::{Protected, ProtectedError, ProtectedGuards, acquire::ATTEMPTS};
use crate::{Dialect, FenceError};

/// An acquisition of several resources that is being prepared: `.await` it for [`ProtectedGuards`].
/// It gets either all of them or none.
///
/// # Errors
/// Awaiting it fails as [`AcquireAll`] does, and as
/// [`FencedStore::claim`](crate::FencedStore::claim) does; then all leases have been given back. A
/// claim that was made stays: it shuts out older holders, who had lost that lease anyway.
///
/// # Cancel safety
/// Dropping the future at any await gives all leases back. A claim may go on in the background; it
/// shuts out older holders, and nobody else.
#[derive(Debug)]
#[must_use = "an acquisition does nothing until it is awaited"]
pub struct AcquireAllProtected<'a, DB: Dialect> {
    protected: &'a Protected<DB>,
    leases: AcquireAll<'a>,
    /// For all attempts together.
    wait: Duration,
}

/// Which claim failed, and whether it can be repaired.
struct Refused {
    resource: ResourceName,
    error: FenceError,
    above: Option<FencingToken>,
}

impl<'a, DB: Dialect> AcquireAllProtected<'a, DB> {
    pub(super) const fn new(
        protected: &'a Protected<DB>,
        leases: AcquireAll<'a>,
        wait: Duration,
    ) -> Self {
        Self {
            protected,
            leases,
            wait,
        }
    }

    /// The ttl of each lease. Defaults to the lock manager's. Setting it does not switch off
    /// renewal.
    pub fn ttl(mut self, ttl: Ttl) -> Self {
        self.leases = self.leases.ttl(ttl);
        self
    }

    /// Whether the watchdog renews the leases. Defaults to true; nothing else switches it off.
    pub fn renew(mut self, renew: bool) -> Self {
        self.leases = self.leases.renew(renew);
        self
    }

    /// How long the watchdog keeps the leases up, as [`Acquire::max_hold`].
    ///
    /// [`Acquire::max_hold`]: lock_core::Acquire::max_hold
    pub fn max_hold(mut self, max_hold: Duration) -> Self {
        self.leases = self.leases.max_hold(max_hold);
        self
    }

    /// A note for each lease, as [`Acquire::metadata`].
    ///
    /// [`Acquire::metadata`]: lock_core::Acquire::metadata
    pub fn metadata<M>(mut self, metadata: M) -> Self
    where
        M: TryInto<Metadata>,
        M::Error: Into<InvalidMetadata>,
    {
        self.leases = self.leases.metadata(metadata);
        self
    }

    /// The greatest number of waiters for each of them, as [`Acquire::max_waiters`].
    ///
    /// [`Acquire::max_waiters`]: lock_core::Acquire::max_waiters
    pub fn max_waiters(mut self, max_waiters: u32) -> Self {
        self.leases = self.leases.max_waiters(max_waiters);
        self
    }

    /// Locks all and then claims all, so that nothing is claimed by a caller that does not get them
    /// all.
    ///
    /// If the lock service is behind the store, all leases are given back first: waiting for a
    /// greater token while holding the others could deadlock.
    async fn lock_and_claim(self) -> Result<ProtectedGuards<DB>, ProtectedError> {
        let started = self.protected.locks.clock().now();
        let mut repaired = Vec::new();
        let mut late = 0;
        loop {
            let leases = self.lock(started).await?;
            match (self.claim(&leases).await, leases.remaining()) {
                (Ok(()), Ok(_)) => {
                    return Ok(ProtectedGuards::new(leases, &self.protected.store));
                }
                // The claims took longer than a lease: guards would be useless.
                (Ok(()), Err(lost)) => {
                    give_back(leases).await;
                    late += 1;
                    if late == ATTEMPTS {
                        return Err(lost.into());
                    }
                }
                (Err(refused), _) => {
                    give_back(leases).await;
                    let repairs = repaired.iter().filter(|name| **name == refused.resource);
                    let again = repairs.count() + 1 < ATTEMPTS as usize;
                    let Some(above) = refused.above.filter(|_| again) else {
                        return Err(refused.error.into());
                    };
                    self.protected.note_repair(&refused.error, above);
                    self.lift(&refused.resource, above, started).await?;
                    repaired.push(refused.resource);
                }
            }
        }
    }

    /// Acquires the leases in the rest of the wait.
    async fn lock(&self, started: Moment) -> Result<LeaseGuards, lock_core::Error> {
        self.leases.clone().wait(self.left(started)).await
    }

    async fn claim(&self, leases: &LeaseGuards) -> Result<(), Refused> {
        for lease in leases {
            if let Err(error) = self.protected.store.claim(lease.sequencer()).await {
                // If the lease is lost, a refusal needs no repair: somebody else has it.
                let above = error.needed_token().filter(|_| lease.remaining().is_ok());
                return Err(Refused {
                    resource: lease.resource().clone(),
                    error,
                    above,
                });
            }
        }
        Ok(())
    }

    /// Makes the lock service draw a token for this resource that the store has not seen.
    async fn lift(
        &self,
        resource: &ResourceName,
        above: FencingToken,
        started: Moment,
    ) -> Result<(), lock_core::Error> {
        let acquire = self.protected.locks.acquire(resource).at_least(above);
        acquire
            .wait(self.left(started))
            .await?
            .release()
            .await
            .map(drop)
    }

    /// The rest of the wait.
    fn left(&self, started: Moment) -> Duration {
        let waited = self.protected.locks.clock().now().since(started);
        self.wait.saturating_sub(waited)
    }
}

impl<'a, DB: Dialect> IntoFuture for AcquireAllProtected<'a, DB> {
    type Output = Result<ProtectedGuards<DB>, ProtectedError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.lock_and_claim())
    }
}

/// If this fails, the watchdog goes on trying, so the error is not reported.
async fn give_back(leases: LeaseGuards) {
    if let Err(error) = leases.release_all().await {
        debug!(%error, "leases whose claim failed are not released yet");
    }
}
