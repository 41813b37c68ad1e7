use lock_core::{FencingToken, Issuer, ResourceName};

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
    /// The store accepts tokens of a third lock service. Nothing was changed.
    #[error("the store takes tokens of \"{current}\", not of \"{expected}\": nothing was changed")]
    #[non_exhaustive]
    OtherIssuer {
        /// The issuer whose tokens the order expects the store to accept.
        expected: Issuer,
        /// The issuer whose tokens it accepts.
        current: Issuer,
    },
    /// Open transactions keep some marks from being sealed. The others are sealed; call again.
    #[error("{sealed} marks are sealed, transactions that are open keep others: seal again")]
    #[non_exhaustive]
    Unfinished {
        /// How many marks were sealed.
        sealed: u64,
        /// The error of one of the others.
        source: FenceError,
    },
    /// The seal is done, but there are marks of a third lock service, whose seal was never
    /// finished: nobody can claim them.
    #[error(
        "{sealed} marks are sealed; {marks} more are those of \"{issuer}\", which an earlier seal \
         has left: seal from \"{issuer}\", too"
    )]
    #[non_exhaustive]
    OthersLeft {
        /// How many marks were sealed.
        sealed: u64,
        /// The third lock service; if there are several, the first by name.
        issuer: Issuer,
        /// How many marks it still has.
        marks: u64,
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
    /// Old and new lock service have the same name.
    #[error("the old and the new lock service have the same issuer name: give one another name")]
    SameIssuer,
    /// The database refused, or could not be queried.
    #[error(transparent)]
    Store(#[from] FenceError),
}
