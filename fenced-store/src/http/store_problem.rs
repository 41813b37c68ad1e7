//! What the store's errors look like over HTTP.

use std::time::Duration;

use lock_core::{FencingToken, ResourceName};

use super::{Problem, ProblemType, outage::is_outage};
use crate::FenceError;

/// When to try again if the store does not know better.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The words are not those of the error: what the database said is for the log.
impl From<&FenceError> for Problem {
    fn from(error: &FenceError) -> Self {
        match error {
            FenceError::Stale {
                resource,
                presented,
                high_water,
            } => Self::stale(resource, *presented, *high_water),
            FenceError::DuplicateToken {
                resource,
                presented,
            } => Self::new(ProblemType::HOLDER_CONFLICT)
                .detail(
                    "another holder has claimed the same token, so the lock service issued it \
                         twice: acquire the lock again, and tell its operator",
                )
                .about(resource, *presented),
            FenceError::NotClaimed {
                resource,
                presented,
            } => Self::not_claimed(resource, *presented),
            FenceError::MarkLost {
                resource,
                presented,
            } => Self::new(ProblemType::MARK_LOST)
                .detail(
                    "the store has forgotten the claim of this token: acquire the lock again \
                     and start afresh",
                )
                .about(resource, *presented),
            FenceError::WrongIssuer { resource, .. } => Self::new(ProblemType::WRONG_ISSUER)
                .detail("the store takes the tokens of another lock service only")
                .with("resource", resource.as_str()),
            FenceError::Implausible {
                resource,
                presented,
            } => Self::implausible(resource, *presented),
            FenceError::Busy { source } => Self::busy(source),
            FenceError::Serialization { .. } => Self::outrun(),
            FenceError::Terminated { .. } => Self::unavailable(
                "the transaction was ended from outside: see whether the lock is still held, \
                 then send the request again",
            ),
            // Only a guard in this process notices by itself: the lease was not the client's.
            FenceError::LeaseLost(_) => Self::unavailable(
                "the service lost the lease that it held for this request: send the request again",
            ),
            FenceError::Db { source } if is_outage(source) => {
                Self::unavailable("the store failed: send the request again, with the same token")
            }
            FenceError::CommitUnknown { .. } => Self::new(ProblemType::OUTCOME_UNKNOWN)
                .detail("the write was sent to the store and no answer came: read before you retry")
                .with("outcome", "unknown"),
            FenceError::Aborted => Self::aborted(),
            FenceError::Db { .. }
            | FenceError::RepeatedResource { .. }
            | FenceError::Unfenced { .. }
            | FenceError::WrongResource { .. }
            | FenceError::CannotProtect { .. }
            | FenceError::NotMigrated { .. }
            | FenceError::NotReady(_)
            | FenceError::Migration { .. } => Self::new(ProblemType::SERVICE_FAULT)
                .detail("nothing was written: the operator finds the reason in the log"),
        }
    }
}

impl Problem {
    fn not_claimed(resource: &ResourceName, presented: FencingToken) -> Self {
        Self::new(ProblemType::TOKEN_NOT_CLAIMED)
            .detail(
                "the token is to be claimed in the store once, right after acquiring \
                 (`Protected::acquire` does both, `LockManager::acquire` alone does not)",
            )
            .about(resource, presented)
    }

    fn busy(source: &sqlx::Error) -> Self {
        match source {
            sqlx::Error::PoolTimedOut => Self::unavailable(
                "the store is busy or down: send the request again, with the same token",
            ),
            _ => Self::outrun(),
        }
    }

    fn outrun() -> Self {
        Self::unavailable("others were faster: send the request again, with the same token")
    }

    fn aborted() -> Self {
        Self::new(ProblemType::SERVICE_FAULT)
            .detail(
                "the transaction had ended before its commit, and what was written after its end \
                 may be stored: the operator finds the reason in the log",
            )
            .with("outcome", "unknown")
    }

    fn implausible(resource: &ResourceName, presented: FencingToken) -> Self {
        Self::new(ProblemType::TOKEN_IMPLAUSIBLE)
            .detail("the fencing token is too far ahead to have been issued")
            .about(resource, presented)
    }

    fn stale(resource: &ResourceName, presented: FencingToken, high_water: FencingToken) -> Self {
        Self::new(ProblemType::TOKEN_STALE)
            .detail(
                "a later holder has taken over and this token will never be accepted again: \
                 acquire the lock again and start afresh",
            )
            .about(resource, presented)
            .high_water(high_water)
    }

    /// Fails closed: what could not be checked was not done.
    pub(super) fn unavailable(detail: &str) -> Self {
        Self::new(ProblemType::STORE_UNAVAILABLE)
            .detail(detail)
            .retry_after(RETRY_AFTER)
    }

    fn about(self, resource: &ResourceName, token: FencingToken) -> Self {
        self.with("resource", resource.as_str())
            .with("token", token.get())
    }
}
