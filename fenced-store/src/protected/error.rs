use lock_core::Lost;

use crate::FenceError;

/// What can go wrong with a protected resource: the lock service's side, or the store's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProtectedError {
    /// The lock service could not be reached, or did not grant the lease.
    #[error(transparent)]
    Lock(#[from] lock_core::Error),
    /// The store refused the grant, or failed.
    #[error(transparent)]
    Store(#[from] FenceError),
}

/// So that `guard.lost()` can end a function that returns this error.
impl From<Lost> for ProtectedError {
    fn from(lost: Lost) -> Self {
        Self::Store(lost.into())
    }
}

/// So that `?` works on your own statements.
impl From<sqlx::Error> for ProtectedError {
    fn from(source: sqlx::Error) -> Self {
        Self::Store(source.into())
    }
}
