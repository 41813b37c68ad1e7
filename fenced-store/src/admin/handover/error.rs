use lock_core::{FencingToken, Issuer, ResourceName};

use super::HandoverPhase;
use crate::admin::AdminError;

/// Why a handover was refused, or did not finish. Its phase says how far it got.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandoverError {
    /// Old and new lock service have the same name. Nothing was changed.
    #[error("the old and the new lock service have the same issuer name: give one another name")]
    SameIssuer,
    /// The store accepts tokens of a third lock service. After the [beginning](HandoverPhase) this
    /// means that somebody else has meanwhile handed it over.
    #[error(
        "the store takes tokens of \"{current}\", and not of one of these lock services: {}",
        phase.how_to_leave(current),
    )]
    #[non_exhaustive]
    OtherIssuer {
        /// How far the handover had got.
        phase: HandoverPhase,
        /// The issuer whose tokens it accepts.
        current: Issuer,
    },
    /// A mark, or a counter, is so great that no lock service would ever exceed it. See
    /// [`FencedStore::plausibility`](crate::FencedStore::plausibility).
    #[error(
        "{} stands at {token}, too great for a lock service to come above it; set it to what it \
         should be first: {phase}",
        resource.as_ref().map_or_else(
            || "the counter of a lock service".to_owned(),
            |resource| format!("the mark of \"{resource}\""),
        ),
    )]
    #[non_exhaustive]
    Implausible {
        /// How far the handover had got.
        phase: HandoverPhase,
        /// The resource of the mark, if it is a mark.
        resource: Option<ResourceName>,
        /// Where it is.
        token: FencingToken,
    },
    /// The old lock service failed.
    #[error("the old lock service failed: {phase}")]
    #[non_exhaustive]
    Old {
        /// How far the handover had got.
        phase: HandoverPhase,
        /// Its error.
        source: lock_core::Error,
    },
    /// The new lock service failed.
    #[error("the new lock service failed: {phase}")]
    #[non_exhaustive]
    New {
        /// How far the handover had got.
        phase: HandoverPhase,
        /// Its error.
        source: lock_core::Error,
    },
    /// The store refused, or failed.
    #[error("the store failed: {phase}")]
    #[non_exhaustive]
    Store {
        /// How far the handover had got.
        phase: HandoverPhase,
        /// Its error.
        source: AdminError,
    },
}

impl HandoverError {
    /// An error of a seal says that nothing was changed. For a whole handover that is not true.
    pub(super) fn of_seal(phase: HandoverPhase, error: AdminError) -> Self {
        match error {
            AdminError::OtherIssuer { current, .. } => Self::OtherIssuer { phase, current },
            AdminError::Implausible { to: token } => Self::Implausible {
                phase,
                resource: None,
                token,
            },
            source => Self::Store { phase, source },
        }
    }
}
