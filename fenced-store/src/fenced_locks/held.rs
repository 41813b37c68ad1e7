use std::sync::OnceLock;
#[cfg(feature = "postgres")]
use std::time::Duration;

use lock_core::LeaseGuard;
#[cfg(feature = "postgres")]
use lock_core::backend::StoreSide;

use crate::FenceError;

/// A lease whose token is claimed, and the refusal of the store, if the store has refused the grant
/// since the claim.
#[derive(Debug)]
pub(crate) struct Held {
    pub(super) lease: LeaseGuard,
    /// A refusal is final, because no later grant lowers the mark.
    refusal: OnceLock<FenceError>,
}

impl Held {
    pub(super) const fn new(lease: LeaseGuard) -> Self {
        let refusal = OnceLock::new();
        Self { lease, refusal }
    }

    /// Fails if the store has refused this grant before, or the lease has ended. In both cases no
    /// request to the store is needed.
    pub(crate) fn check(&self) -> Result<(), FenceError> {
        match self.refusal.get().and_then(FenceError::again) {
            Some(refusal) => Err(refusal),
            None => Ok(self.lease.remaining().map(drop)?),
        }
    }

    /// How long the lease may last at most; `None` if unknown.
    #[cfg(feature = "postgres")]
    pub(crate) fn bound(&self) -> Option<Duration> {
        self.lease.ends_within().ok().flatten()
    }

    /// Remembers a fenced refusal. This grant was claimed, so a store that does not know it has
    /// lost the claim.
    pub(crate) fn refused(&self, error: FenceError) -> FenceError {
        let error = error.of_claimed();
        if let Some(refusal) = error.again() {
            self.refusal.get_or_init(|| refusal);
        }
        error
    }
}
