use lock_core::{FencingToken, ResourceName};

use crate::FenceError;

/// Why an administrator's order was refused, or could not be carried out.
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
        /// Where the order expects the mark.
        expected: FencingToken,
        /// Where the mark is; `None` if the resource was never claimed.
        current: Option<FencingToken>,
    },
    /// The mark would be above everything that a lock service can issue. Nothing was changed. See
    /// [`FencedStore::plausibility`](crate::FencedStore::plausibility).
    #[error(
        "{to} is too great for a mark, no lock service would come above it: nothing was changed"
    )]
    #[non_exhaustive]
    Implausible {
        /// Where the mark was to be set.
        to: FencingToken,
    },
    /// A mark can only be raised to a greater token.
    #[error("{to} is not above {expected}: a mark is lowered by Reset::lower alone")]
    #[non_exhaustive]
    NotARaise {
        /// Where the mark is.
        expected: FencingToken,
        /// Where the mark was to be set.
        to: FencingToken,
    },
    /// A mark can only be lowered to a smaller token.
    #[error("{to} is not below {expected}: a mark is raised by Reset::raise")]
    #[non_exhaustive]
    NotALowering {
        /// Where the mark is.
        expected: FencingToken,
        /// Where the mark was to be set.
        to: FencingToken,
    },
    /// The database refused, or could not be queried.
    #[error(transparent)]
    Store(#[from] FenceError),
}
