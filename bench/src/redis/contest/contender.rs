//! The interface of a strategy.

use crate::figure::BoxError;

/// A way to compete for one resource, shared by all waiters of a process.
pub(super) trait Contender: Sized + Send + Sync + 'static {
    /// What a waiter has while it holds the resource.
    type Lease: Send;

    /// Acquires for this waiter, however long it takes.
    fn acquire(&self, waiter: u32) -> impl Future<Output = Result<Self::Lease, BoxError>> + Send;

    /// The number that orders this hold among all others; 0 if there is none.
    fn token(lease: &Self::Lease) -> u64;

    /// Gives the resource back.
    fn release(
        &self,
        waiter: u32,
        lease: Self::Lease,
    ) -> impl Future<Output = Result<(), BoxError>> + Send;
}
