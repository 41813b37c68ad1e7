use std::time::Duration;

use lock_core::{
    DetachedLease, FencingToken, LeaseGuard, Lost, Released, ResourceName, Sequencer, Ttl,
};

use super::Held;
use crate::{Begin, Dialect, FencedStore, Presented};

/// A lease whose token is claimed in the store: all earlier holders of the resource are shut out.
///
/// # Dropping
/// As [`LeaseGuard`]: the release follows shortly.
#[must_use = "dropping the guard releases the lease"]
#[derive(Debug)]
#[clippy::has_significant_drop]
pub struct ProtectedGuard<DB: Dialect> {
    held: Held,
    store: FencedStore<DB>,
}

impl<DB: Dialect> ProtectedGuard<DB> {
    /// The caller has claimed the lease's token.
    pub(super) const fn new(lease: LeaseGuard, store: FencedStore<DB>) -> Self {
        let held = Held::new(lease);
        Self { held, store }
    }

    /// Prepares a fenced transaction. It never claims again.
    ///
    /// For several guards use [`and`](Begin::and): `one.begin().and(&other).await?`.
    ///
    /// # Errors
    /// Awaiting it fails as [`Begin`] does. [`FenceError::LeaseLost`] from the lease's deadline on,
    /// without asking the store; [`FenceError::MarkLost`] if the store has forgotten the claim. A
    /// guard that was refused once stays fenced: it always gets the same answer, and the store is
    /// not asked again.
    ///
    /// [`FenceError::LeaseLost`]: crate::FenceError::LeaseLost
    /// [`FenceError::MarkLost`]: crate::FenceError::MarkLost
    pub fn begin(&self) -> Begin<'_, DB> {
        self.store.begin(self)
    }

    /// The fencing token of this acquisition.
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.held.lease.token()
    }

    /// Send this along with writes that others carry out.
    #[must_use]
    pub fn sequencer(&self) -> &Sequencer {
        self.held.lease.sequencer()
    }

    /// The resource that is held.
    #[must_use]
    pub fn resource(&self) -> &ResourceName {
        self.held.lease.resource()
    }

    /// The time until the deadline of the present lease, by the local clock.
    ///
    /// # Errors
    /// [`Lost`] from the deadline on, for good, without asking any server.
    pub fn remaining(&self) -> Result<Duration, Lost> {
        self.held.lease.remaining()
    }

    /// Whether the deadline of the present lease has not passed, as [`LeaseGuard::is_held`].
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.held.lease.is_held()
    }

    /// Renews the lease now, as [`LeaseGuard::renew`] does.
    ///
    /// # Errors
    /// As [`LeaseGuard::renew`].
    ///
    /// # Cancel safety
    /// As [`LeaseGuard::renew`].
    pub async fn renew(&self, ttl: Ttl) -> Result<(), lock_core::Error> {
        self.held.lease.renew(ttl).await
    }

    /// Completes when the lease is lost, at the latest at its deadline.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn lost(&self) -> Lost {
        self.held.lease.lost().await
    }

    /// Gives up the guard and keeps the lease, as [`LeaseGuard::detach`] does. Its token stays
    /// claimed.
    #[must_use = "nothing renews or releases the lease any more"]
    pub fn detach(self) -> DetachedLease {
        self.held.lease.detach()
    }

    /// Releases the lease. The mark in the store stays.
    ///
    /// # Errors
    /// As [`LeaseGuard::release`].
    ///
    /// # Cancel safety
    /// As [`LeaseGuard::release`]: the watchdog finishes it.
    pub async fn release(self) -> Result<Released, lock_core::Error> {
        self.held.lease.release().await
    }
}

impl<'a, DB: Dialect> From<&'a ProtectedGuard<DB>> for Presented<'a> {
    fn from(guard: &'a ProtectedGuard<DB>) -> Self {
        Self::of_held(guard.sequencer(), &guard.held)
    }
}
