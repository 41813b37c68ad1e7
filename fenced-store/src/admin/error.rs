use lock_core::{FencingToken, ResourceName};

use crate::FenceError;

/// The reason why an administrator's order was refused, or could not be carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// The mark is not where the order expects it. Nothing was changed.
    #[error(
        "the mark of \"{resource}\" is {}, not {expected}: nothing was changed, look again",
        current.map_or_else(|| "not there".to_owned(), |current| current.to_string()),
    )]
    #[non_exhaustive]
    NotAsExpected {
        /// The resource.
        resource: ResourceName,
        /// The mark that the order expects.
        expected: FencingToken,
        /// The present mark; `None` if the resource was never claimed.
        current: Option<FencingToken>,
    },
    /// The mark would be above every token that a lock service can issue. Nothing was changed. See
    /// [`FencedStore::plausibility`](crate::FencedStore::plausibility).
    #[error(
        "{to} is too great for a mark, no lock service would come above it: nothing was changed"
    )]
    #[non_exhaustive]
    Implausible {
        /// The token to which the order would set the mark.
        to: FencingToken,
    },
    /// A mark can only be raised to a greater token.
    #[error("{to} is not above {expected}: a mark is lowered by Reset::lower alone")]
    #[non_exhaustive]
    NotARaise {
        /// The present mark, as the order names it.
        expected: FencingToken,
        /// The token to which the order would set the mark.
        to: FencingToken,
    },
    /// A mark can only be lowered to a smaller token.
    #[error("{to} is not below {expected}: a mark is raised by Reset::raise")]
    #[non_exhaustive]
    NotALowering {
        /// The present mark, as the order names it.
        expected: FencingToken,
        /// The token to which the order would set the mark.
        to: FencingToken,
    },
    /// The floor is not where the order expects it. Nothing was changed.
    #[error("the floor is {current}, not {expected}: nothing was changed, look again")]
    #[non_exhaustive]
    FloorNotAsExpected {
        /// The floor that the order expects.
        expected: FencingToken,
        /// The present floor; 0 if no mark was ever forgotten.
        current: u64,
    },
    /// Marks may not be forgotten in this way. Nothing was forgotten.
    #[error("nothing was forgotten: {reason}")]
    #[non_exhaustive]
    NotForgettable {
        /// The reason.
        reason: String,
    },
    /// The lock service failed when it was asked for a token. Nothing was changed.
    #[error("the lock service failed: nothing was forgotten")]
    #[non_exhaustive]
    LockService {
        /// Its error.
        source: lock_core::Error,
    },
    /// The database refused, or could not be queried.
    #[error(transparent)]
    Store(#[from] FenceError),
}

impl AdminError {
    pub(crate) const fn not_forgettable(reason: String) -> Self {
        Self::NotForgettable { reason }
    }
}
