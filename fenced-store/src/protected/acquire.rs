use std::{future::IntoFuture, time::Duration};

use lock_core::{
    Acquire, Attempt, BoxFuture, ErrorKind, FencingToken, Holder, InvalidMetadata, LeaseGuard,
    Metadata, Moment, Owner, Ttl,
};
use tracing::debug;

use super::{Protected, ProtectedError, ProtectedGuard};
use crate::Dialect;

/// An acquisition that is being prepared: `.await` it for a [`ProtectedGuard`].
///
/// # Errors
/// Awaiting it fails as [`Acquire`] does, and as
/// [`FencedStore::claim`](crate::FencedStore::claim) does; then the lease has been given back.
///
/// # Cancel safety
/// Dropping the future at any await gives the lease back. The claim may go on in the background; it
/// shuts out older holders, and nobody else.
#[derive(Debug)]
#[must_use = "an acquisition does nothing until it is awaited"]
pub struct AcquireProtected<'a, DB: Dialect> {
    protected: &'a Protected<DB>,
    lease: Acquire<'a>,
    wait: Option<Duration>,
}

/// How many attempts are made, including the first, when the lock service is behind the store or
/// the claim outlasts the lease.
pub(super) const ATTEMPTS: u32 = 3;

impl<'a, DB: Dialect> AcquireProtected<'a, DB> {
    pub(super) const fn new(protected: &'a Protected<DB>, lease: Acquire<'a>) -> Self {
        Self {
            protected,
            lease,
            wait: None,
        }
    }

    /// The ttl of the lease. Defaults to the lock manager's. Setting it does not switch off
    /// renewal.
    pub fn ttl(mut self, ttl: Ttl) -> Self {
        self.lease = self.lease.ttl(ttl);
        self
    }

    /// How long to wait for the lease while somebody else holds it. Defaults to no bound.
    ///
    /// The claim in the store takes additional time; it waits as long as the store's settings
    /// allow.
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Whether the watchdog renews the lease. Defaults to true; nothing else switches it off.
    pub fn renew(mut self, renew: bool) -> Self {
        self.lease = self.lease.renew(renew);
        self
    }

    /// How long the watchdog keeps the lease up, as [`Acquire::max_hold`].
    pub fn max_hold(mut self, max_hold: Duration) -> Self {
        self.lease = self.lease.max_hold(max_hold);
        self
    }

    /// A note for the lease, as [`Acquire::metadata`].
    pub fn metadata<M>(mut self, metadata: M) -> Self
    where
        M: TryInto<Metadata>,
        M::Error: Into<InvalidMetadata>,
    {
        self.lease = self.lease.metadata(metadata);
        self
    }

    /// The greatest number of waiters, as [`Acquire::max_waiters`].
    pub fn max_waiters(mut self, max_waiters: u32) -> Self {
        self.lease = self.lease.max_waiters(max_waiters);
        self
    }

    /// Acquires with an identity that was drawn earlier, as [`Acquire::holder`].
    ///
    /// For lock services without [`Extension::Holds`](lock_core::Extension::Holds). With it, use an
    /// [`owner`](Self::owner), whose guards each give back their own hold.
    pub fn holder(mut self, holder: Holder) -> Self {
        self.lease = self.lease.holder(holder);
        self
    }

    /// Acquires as this owner, as [`Acquire::owner`]. To the store, all its guards are one writer.
    pub fn owner(mut self, owner: &Owner) -> Self {
        self.lease = self.lease.owner(owner);
        self
    }

    /// Takes one look and does not wait for the lease. If it is granted, the claim waits for the
    /// transactions of older holders, as long as the store's settings allow.
    ///
    /// # Errors
    /// As [`AcquireProtected`], except that a held lease is no error but [`Attempt::Held`].
    ///
    /// # Cancel safety
    /// As [`AcquireProtected`].
    pub async fn try_now(self) -> Result<Attempt<ProtectedGuard<DB>>, ProtectedError> {
        match self.wait(Duration::ZERO).lock_and_claim().await {
            Ok(guard) => Ok(Attempt::Granted(guard)),
            Err(ProtectedError::Lock(error)) if error.kind() == ErrorKind::WaitTimeout => {
                let retry_after = error.retry_after().unwrap_or_default();
                Ok(Attempt::held(retry_after))
            }
            Err(error) => Err(error),
        }
    }

    /// Locks and claims. If the lock service's tokens are behind the store's mark, this repairs the
    /// lock service: the lease is given back and acquired afresh with a token above the mark.
    /// Safety does not depend on it, because the store refuses the old tokens anyway.
    async fn lock_and_claim(self) -> Result<ProtectedGuard<DB>, ProtectedError> {
        let started = self.protected.locks.clock().now();
        let mut floor = None;
        let mut attempt = 1;
        loop {
            let lease = self.lock(floor, started).await?;
            let claimed = self.protected.store.claim(lease.sequencer()).await;
            match (claimed, lease.remaining()) {
                (Ok(()), Ok(_)) => {
                    return Ok(ProtectedGuard::new(lease, self.protected.store.clone()));
                }
                // The claim took longer than the lease: a guard would be useless.
                (Ok(()), Err(lost)) => {
                    give_back(lease).await;
                    if attempt == ATTEMPTS {
                        return Err(lost.into());
                    }
                }
                (Err(error), held) => {
                    give_back(lease).await;
                    // If the lease is lost, a refusal needs no repair: somebody else has it.
                    let repair = error
                        .needed_token()
                        .filter(|_| attempt < ATTEMPTS && held.is_ok());
                    let Some(above) = repair else {
                        return Err(error.into());
                    };
                    self.protected.note_repair(&error, above);
                    floor = Some(above);
                }
            }
            attempt += 1;
        }
    }

    /// Acquires the lease in the rest of the wait.
    async fn lock(
        &self,
        floor: Option<FencingToken>,
        started: Moment,
    ) -> Result<LeaseGuard, lock_core::Error> {
        let mut acquire = self.lease.clone();
        if let Some(wait) = self.wait {
            let waited = self.protected.locks.clock().now().since(started);
            acquire = acquire.wait(wait.saturating_sub(waited));
        }
        if let Some(floor) = floor {
            acquire = acquire.at_least(floor);
        }
        acquire.await
    }
}

impl<'a, DB: Dialect> IntoFuture for AcquireProtected<'a, DB> {
    type Output = Result<ProtectedGuard<DB>, ProtectedError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.lock_and_claim())
    }
}

/// So that the same holder can acquire it again, and gets another token. If this fails, the
/// watchdog goes on trying, so the error is not reported.
async fn give_back(lease: LeaseGuard) {
    if let Err(error) = lease.give_up().await {
        debug!(%error, "a lease whose claim failed is not given back yet");
    }
}
