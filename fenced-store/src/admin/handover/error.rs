use lock_core::{FencingToken, Issuer, ResourceName};

use crate::admin::AdminError;

/// Why a handover was refused, or did not come to its end.
///
/// One that has `begun` has retired the old lock service, so nobody is granted anything until it
/// was carried out again, or in the other direction.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandoverError {
    /// Old and new lock service have the same name. Nothing was changed.
    #[error("the old and the new lock service have the same issuer name: give one another name")]
    SameIssuer,
    /// The store takes tokens of a third lock service. Nothing was changed.
    #[error(
        "the store takes tokens of \"{current}\", and not of one of these lock services: nothing \
         was changed"
    )]
    OtherIssuer {
        /// Whose tokens it takes.
        current: Issuer,
    },
    /// A mark, or a counter, is so great that no lock service would come above it. See
    /// [`FencedStore::plausibility`](crate::FencedStore::plausibility). Nothing was changed.
    #[error(
        "{} stands at {token}, too great for a lock service to come above it: nothing was changed, \
         set it to what it should be first",
        resource.as_ref().map_or_else(
            || "the counter of a lock service".to_owned(),
            |resource| format!("the mark of \"{resource}\""),
        ),
    )]
    Implausible {
        /// Whose mark it is, if it is a mark.
        resource: Option<ResourceName>,
        /// Where it stands.
        token: FencingToken,
    },
    /// The old lock service failed.
    #[error("the old lock service failed: {}", next(*begun))]
    Old {
        /// Whether it may be retired, in part at least.
        begun: bool,
        /// What it said.
        source: lock_core::Error,
    },
    /// The new lock service failed.
    #[error("the new lock service failed: {}", next(*begun))]
    New {
        /// Whether the old one is retired.
        begun: bool,
        /// What it said.
        source: lock_core::Error,
    },
    /// The store refused, or failed.
    #[error("the store failed: {}", next(*begun))]
    Store {
        /// Whether the old lock service is retired.
        begun: bool,
        /// What it said.
        source: AdminError,
    },
}

const fn next(begun: bool) -> &'static str {
    if begun {
        "the old one grants no more; hand over again to go on, or in the other direction to turn \
         back"
    } else {
        "nothing was changed"
    }
}
