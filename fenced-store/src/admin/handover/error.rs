use lock_core::{FencingToken, Issuer, ResourceName};

use super::HandoverPhase;
use crate::admin::AdminError;

/// Why a handover was refused, or did not come to its end. Its phase says what has been done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandoverError {
    /// Old and new lock service have the same name. Nothing was changed.
    #[error("the old and the new lock service have the same issuer name: give one another name")]
    SameIssuer,
    /// The store takes tokens of a third lock service; after the [beginning](HandoverPhase), since
    /// somebody else has handed it over meanwhile.
    #[error(
        "the store takes tokens of \"{current}\", and not of one of these lock services: {}",
        phase.how_to_leave(current),
    )]
    OtherIssuer {
        /// What was done by then.
        phase: HandoverPhase,
        /// Whose tokens it takes.
        current: Issuer,
    },
    /// A mark, or a counter, is so great that no lock service would come above it. See
    /// [`FencedStore::plausibility`](crate::FencedStore::plausibility).
    #[error(
        "{} stands at {token}, too great for a lock service to come above it; set it to what it \
         should be first: {phase}",
        resource.as_ref().map_or_else(
            || "the counter of a lock service".to_owned(),
            |resource| format!("the mark of \"{resource}\""),
        ),
    )]
    Implausible {
        /// What was done by then.
        phase: HandoverPhase,
        /// Whose mark it is, if it is a mark.
        resource: Option<ResourceName>,
        /// Where it stands.
        token: FencingToken,
    },
    /// The old lock service failed.
    #[error("the old lock service failed: {phase}")]
    Old {
        /// What was done by then.
        phase: HandoverPhase,
        /// What it said.
        source: lock_core::Error,
    },
    /// The new lock service failed.
    #[error("the new lock service failed: {phase}")]
    New {
        /// What was done by then.
        phase: HandoverPhase,
        /// What it said.
        source: lock_core::Error,
    },
    /// The store refused, or failed.
    #[error("the store failed: {phase}")]
    Store {
        /// What was done by then.
        phase: HandoverPhase,
        /// What it said.
        source: AdminError,
    },
}

impl HandoverError {
    /// What a seal says of itself alone, that nothing was changed, is not true of a handover.
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
