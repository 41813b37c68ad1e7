use std::ops::Deref;

use lock_core::{DetachedLease, LeaseGuard, Released};

use super::Held;
use crate::{Begin, Dialect, FencedStore, Presented};

/// A lease whose token is claimed in the store: all earlier holders of the resource are shut out.
///
/// It is a [`LeaseGuard`], with its token, its deadline and its renewals, that can begin fenced
/// transactions.
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

impl<DB: Dialect> Deref for ProtectedGuard<DB> {
    type Target = LeaseGuard;

    fn deref(&self) -> &LeaseGuard {
        &self.held.lease
    }
}

impl<'a, DB: Dialect> From<&'a ProtectedGuard<DB>> for Presented<'a> {
    fn from(guard: &'a ProtectedGuard<DB>) -> Self {
        Self::of_held(guard.sequencer(), &guard.held)
    }
}
