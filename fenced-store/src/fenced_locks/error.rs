use lock_core::{ErrorKind, Lost, ResourceName};

use crate::FenceError;

/// An error of a protected resource: from the lock service, or from the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FencedLockError {
    /// The lock service could not be reached, or did not grant the lease.
    #[error(transparent)]
    Lock(#[from] lock_core::Error),
    /// The store refused the grant, or failed.
    #[error(transparent)]
    Store(#[from] FenceError),
}

impl FencedLockError {
    /// Whether this grant is over: the store has shut it out, or it has ended at the lock service.
    /// Stop, because no write of this grant will be accepted, and acquire afresh.
    #[must_use]
    pub fn is_fenced(&self) -> bool {
        match self {
            Self::Lock(error) => matches!(error.kind(), ErrorKind::Lost | ErrorKind::Released),
            Self::Store(error) => error.is_fenced(),
        }
    }

    /// Whether nothing happened and the same call may succeed a moment later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Lock(error) => error.is_retryable(),
            Self::Store(error) => error.is_retryable(),
        }
    }

    /// Whether the cause may pass by itself: see
    /// [`Error::may_pass`](lock_core::Error::may_pass) and [`FenceError::may_pass`].
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Lock(error) => error.may_pass(),
            Self::Store(error) => error.may_pass(),
        }
    }

    /// The resource that the error is about, if there is one.
    #[must_use]
    pub const fn resource(&self) -> Option<&ResourceName> {
        match self {
            Self::Lock(error) => error.resource(),
            Self::Store(error) => error.resource(),
        }
    }
}

/// A function that returns this error can return the result of `guard.lost()`.
impl From<Lost> for FencedLockError {
    fn from(lost: Lost) -> Self {
        Self::Store(lost.into())
    }
}

/// Makes `?` work on your own statements.
impl From<sqlx::Error> for FencedLockError {
    fn from(source: sqlx::Error) -> Self {
        Self::Store(source.into())
    }
}
