use std::{future::IntoFuture, time::Duration};

use futures_util::future::join_all;
use lock_core::{
    Acquire, AcquireAll, Attempt, ErrorKind, FencingToken, Holder, LeaseGuard, Owner, ResourceName,
    backend::{AcquiresLeases, BoxFuture, LeaseSettings, Moment, Patience, StoreSide},
};
use tracing::debug;

use super::{FencedGuard, FencedLockError, FencedLocks, leases::Leases};
use crate::{FenceError, Storage};

/// An acquisition that is being prepared: `.await` it for a [`FencedGuard`], or for
/// [`FencedGuards`](super::FencedGuards) if it names several resources. It acquires all resources
/// or none.
///
/// # Errors
/// Awaiting it fails as [`Acquire`] or [`AcquireAll`] does, and as
/// [`FencedStore::claim`](crate::FencedStore::claim) does. After an error all leases have been
/// given back. A claim that was made stays: it shuts out only older holders, which had lost the
/// lease before.
///
/// # Cancel safety
/// Dropping the future at any await gives all leases back. A claim may go on in the background. It
/// shuts out only older holders.
#[derive(Debug)]
#[must_use = "an acquisition does nothing until it is awaited"]
pub struct AcquireFenced<DB: Storage, L = Acquire> {
    pub(super) protected: FencedLocks<DB>,
    leases: L,
    /// The wait for all attempts together.
    wait: Option<Duration>,
}

/// An acquisition of several resources.
pub type AcquireAllFenced<DB> = AcquireFenced<DB, AcquireAll>;

/// The number of attempts, including the first. A further attempt follows if the lock service is
/// behind the store for one of the resources, or if the claims take longer than a lease.
const ATTEMPTS: usize = 3;

/// A claim that failed, and the token that would repair it, if there is one.
struct Refused {
    resource: ResourceName,
    error: FenceError,
    above: Option<FencingToken>,
}

impl<DB: Storage, L: Leases> AcquiresLeases for AcquireFenced<DB, L> {
    fn lease_settings(&mut self) -> &mut LeaseSettings {
        self.leases.lease_settings()
    }
}

impl<DB: Storage> AcquireFenced<DB> {
    /// See [`Acquire::holder`].
    pub fn holder(mut self, holder: Holder) -> Self {
        self.leases = self.leases.holder(holder);
        self
    }

    /// See [`Acquire::owner`].
    pub fn owner(mut self, owner: &Owner) -> Self {
        self.leases = self.leases.owner(owner);
        self
    }
}

impl<DB: Storage, L: Leases> AcquireFenced<DB, L> {
    pub(super) fn new(protected: &FencedLocks<DB>, leases: L, wait: Option<Duration>) -> Self {
        Self {
            protected: protected.clone(),
            leases,
            wait,
        }
    }

    lock_core::lease_settings!();

    /// The settings of its claims and transactions, in place of those of the store.
    #[doc(hidden)]
    pub fn tx_options(mut self, options: DB::TxOptions) -> Self {
        self.protected.store = self.protected.store.with_tx_options(options);
        self
    }

    /// How long to wait for the leases while others hold some of them. Defaults to no bound for one
    /// resource.
    ///
    /// The claims in the store take additional time; each waits as long as the store's settings
    /// allow.
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Locks all resources and then claims all, so that a caller that does not get all of them
    /// claims none. If the tokens of the lock service are behind the marks of the store, this
    /// function repairs the lock service: it gives the leases back and acquires afresh with tokens
    /// above the marks. Safety does not depend on the repair, because the store refuses the old
    /// tokens.
    async fn lock_and_claim(self) -> Result<L::Guard<DB>, FencedLockError> {
        let started = self.protected.locks.runtime().now();
        let protected = self.protected.clone();
        let mut leases = self.leases.clone();
        if protected.one_database {
            leases = leases.claiming();
        }
        let mut repaired = Vec::new();
        let mut late = 0;
        loop {
            let next = match self.left(started) {
                Some(left) => leases.clone().within(left),
                None => leases.clone(),
            };
            let held = next.acquired().await?;
            let claimed = self.claim(held.as_ref()).await;
            let lost = held
                .as_ref()
                .iter()
                .find_map(|lease| lease.remaining().err());
            let Err(refused) = claimed else {
                let Some(lost) = lost else {
                    return Ok(L::protected(held, &protected));
                };
                // The claims took longer than a lease, so guards would be useless.
                give_back(held).await;
                late += 1;
                if late == ATTEMPTS {
                    return Err(lost.into());
                }
                continue;
            };
            give_back(held).await;
            let repairs = repaired.iter().filter(|name| **name == refused.resource);
            let again = repairs.count() + 1 < ATTEMPTS;
            let Some(above) = refused.above.filter(|_| again) else {
                return Err(refused.error.into());
            };
            protected.note_repair(&refused.error, above);
            match leases.above(above) {
                Some(above) => leases = above,
                None => self.lift(&refused.resource, above, started).await?,
            }
            repaired.push(refused.resource);
        }
    }

    async fn claim(&self, leases: &[LeaseGuard]) -> Result<(), Refused> {
        let one_database = self.protected.one_database;
        let is_unclaimed = |lease: &&LeaseGuard| !(one_database && lease.is_claimed());
        for lease in leases.iter().filter(is_unclaimed) {
            if let Err(error) = self.protected.store.claim(lease.sequencer()).await {
                // If the lease is lost, a refusal needs no repair, because another holder has the
                // lease.
                let above = error.needed_token().filter(|_| lease.is_held());
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
        let mut acquire = self.protected.locks.acquire(resource).at_least(above);
        if let Some(left) = self.left(started) {
            acquire = acquire.wait(left);
        }
        acquire.await?.release().await.map(drop)
    }

    /// The rest of the wait.
    fn left(&self, started: Moment) -> Option<Duration> {
        let waited = self.protected.locks.runtime().now().since(started);
        self.wait.map(|wait| wait.saturating_sub(waited))
    }
}

impl<DB: Storage> AcquireFenced<DB> {
    /// Looks once and does not wait for the lease. If it is granted, the claim waits for the
    /// transactions of older holders, as long as the settings of the store allow.
    ///
    /// # Errors
    /// As [`AcquireFenced`], except that a held lease is no error but [`Attempt::Held`].
    ///
    /// # Cancel safety
    /// As [`AcquireFenced`].
    pub async fn try_acquire(self) -> Result<Attempt<FencedGuard<DB>>, FencedLockError> {
        self.attempt(Duration::ZERO).await
    }

    /// As [`wait`](Self::wait), but a wait of zero is one look, which has the time to send its
    /// request again if the connection was gone. A lease that is held then is the error
    /// [`WaitTimeout`](ErrorKind::WaitTimeout).
    #[doc(hidden)]
    pub fn wait_or_look(mut self, wait: Duration) -> Self {
        if wait.is_zero() {
            self.wait = None;
            self.lease_settings().wait = Patience::Look;
            return self;
        }
        self.wait(wait)
    }

    /// As [`try_acquire`](Self::try_acquire), after a wait.
    #[doc(hidden)]
    pub async fn attempt(
        self,
        wait: Duration,
    ) -> Result<Attempt<FencedGuard<DB>>, FencedLockError> {
        match self.wait_or_look(wait).lock_and_claim().await {
            Ok(guard) => Ok(Attempt::Granted(guard)),
            Err(FencedLockError::Lock(error)) if error.kind() == ErrorKind::WaitTimeout => {
                let retry_after = error.retry_after().unwrap_or_default();
                Ok(Attempt::held(retry_after))
            }
            Err(error) => Err(error),
        }
    }
}

impl<DB: Storage, L: Leases + 'static> IntoFuture for AcquireFenced<DB, L> {
    type Output = Result<L::Guard<DB>, FencedLockError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.lock_and_claim())
    }
}

impl<DB: Storage, L: Clone> Clone for AcquireFenced<DB, L> {
    fn clone(&self) -> Self {
        Self {
            protected: self.protected.clone(),
            leases: self.leases.clone(),
            wait: self.wait,
        }
    }
}

/// Gives the leases back, so that the same holder can acquire again and gets another token. If a
/// release fails, the watchdog goes on trying, so the error is not reported.
async fn give_back(leases: impl IntoIterator<Item = LeaseGuard>) {
    for result in join_all(leases.into_iter().map(LeaseGuard::give_up)).await {
        if let Err(error) = result {
            debug!(%error, "a lease whose claim failed is not given back yet");
        }
    }
}
