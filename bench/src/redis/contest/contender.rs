//! The interface of a strategy.

use std::time::Duration;

use crate::figure::BoxError;

/// A way to compete for one resource, shared by all waiters of a process.
pub(super) trait Contender: Sized + Send + Sync + 'static {
    /// What a waiter has while it holds the resource.
    type Lease: Send;

    /// Acquires for this waiter, however long it takes.
    fn acquire(&self, waiter: u32) -> impl Future<Output = Result<Self::Lease, BoxError>> + Send;

    /// The number that orders this hold among all others; 0 if there is none.
    fn token(lease: &Self::Lease) -> u64;

    /// How long ago the waiter was told that the resource is its own, if acquire went on after
    /// that.
    fn told_ago(_lease: &Self::Lease) -> Duration {
        Duration::ZERO
    }

    /// Gives the resource back.
    fn release(
        &self,
        waiter: u32,
        lease: Self::Lease,
    ) -> impl Future<Output = Result<(), BoxError>> + Send;
}
