use lock_core::{FencingToken, Issuer, ResourceName};

use super::HandoverPhase;
use crate::{FenceError, admin::AdminError};

/// The reason why a handover was refused, or did not finish.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandoverError {
    /// Old and new lock service have the same name. Nothing was changed.
    #[error("the old and the new lock service have the same issuer name: rename one of them")]
    SameIssuer,
    /// The store accepts tokens of a third lock service. After the [beginning](HandoverPhase) this
    /// means that another handover has changed the issuer meanwhile.
    #[error(
        "the store takes tokens of \"{current}\", and not of one of these lock services: {}",
        phase.how_to_leave(current),
    )]
    #[non_exhaustive]
    OtherIssuer {
        /// The phase that the handover had reached.
        phase: HandoverPhase,
        /// The issuer whose tokens the store accepts.
        current: Issuer,
    },
    /// A mark, or the clock, is so great that no lock service will ever exceed it. See
    /// [`FencedStore::plausibility`](crate::FencedStore::plausibility).
    #[error(
        "{} stands at {token}, too great for a lock service to come above it; set it to the right \
         value first: {phase}",
        resource.as_ref().map_or_else(
            || "the clock".to_owned(),
            |resource| format!("the mark of \"{resource}\""),
        ),
    )]
    #[non_exhaustive]
    Implausible {
        /// The phase that the handover had reached.
        phase: HandoverPhase,
        /// The resource of the mark, if it is a mark.
        resource: Option<ResourceName>,
        /// The token of the mark or of the clock.
        token: FencingToken,
    },
    /// The new lock service counts ahead of the marks and of the clock, so the store could not
    /// distinguish its early grants from those after the handover. Nothing was changed.
    #[error(
        "\"{issuer}\" issues {token} already, and could only take over with tokens up to \
         {greatest}, one minute ahead of the clock: nothing was changed; wait until the clock has \
         passed its tokens, or give the service another prefix"
    )]
    #[non_exhaustive]
    CountsPast {
        /// The name of the new lock service.
        issuer: Issuer,
        /// A token that it has issued.
        token: FencingToken,
        /// The greatest token that would have been accepted.
        greatest: FencingToken,
    },
    /// The new lock service did not grant the probe, or cannot count from the number that the store
    /// needs. Nothing was changed.
    #[error("the new lock service failed: nothing was changed")]
    #[non_exhaustive]
    New {
        /// Its error.
        source: lock_core::Error,
    },
    /// Open transactions of some resources have kept their marks from being sealed. All other
    /// resources are in service.
    #[error("{sealed} marks are sealed, open transactions hold up the others: hand over again")]
    #[non_exhaustive]
    Unfinished {
        /// The number of marks that this call has sealed.
        sealed: u64,
        /// The error of one of the others.
        source: FenceError,
    },
    /// The handover is done, but an earlier one, from a third lock service, was never finished. The
    /// earlier one has left marks that no client can claim.
    #[error(
        "{sealed} marks are sealed; {marks} more belong to \"{issuer}\", because an earlier \
         handover did not finish: hand over from \"{issuer}\", too"
    )]
    #[non_exhaustive]
    OthersLeft {
        /// The number of marks that this call has sealed.
        sealed: u64,
        /// The third lock service; if there are several, the first by name.
        issuer: Issuer,
        /// The number of marks that it still has.
        marks: u64,
    },
    /// The store refused, or failed.
    #[error("the store failed: {phase}")]
    #[non_exhaustive]
    Store {
        /// The phase that the handover had reached.
        phase: HandoverPhase,
        /// Its error.
        source: AdminError,
    },
}
