//! What the store's errors look like over HTTP.

use std::time::Duration;

use fenced_http::{Problem, ProblemType};
use lock_core::{FencingToken, ResourceName};

use super::outage::is_outage;
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
            } => about(ProblemType::TOKEN_STALE, resource, *presented)
                .detail(
                    "a later holder has taken over and this token will never be accepted again: \
                     acquire the lock again and start afresh",
                )
                .high_water(*high_water),
            FenceError::DuplicateToken {
                resource,
                presented,
            } => about(ProblemType::HOLDER_CONFLICT, resource, *presented).detail(
                "another holder has claimed the same token, so the lock service issued it twice: \
                 acquire the lock again, and tell its operator",
            ),
            FenceError::NotClaimed {
                resource,
                presented,
            } => about(ProblemType::TOKEN_NOT_CLAIMED, resource, *presented).detail(
                "the token is to be claimed in the store once, right after acquiring \
                 (`Protected::acquire` does both, `LockManager::acquire` alone does not)",
            ),
            FenceError::MarkLost {
                resource,
                presented,
            } => about(ProblemType::MARK_LOST, resource, *presented).detail(
                "the store has forgotten the claim of this token: acquire the lock again and \
                 start afresh",
            ),
            FenceError::Implausible {
                resource,
                presented,
            } => about(ProblemType::TOKEN_IMPLAUSIBLE, resource, *presented)
                .detail("the fencing token is too far ahead to have been issued"),
            FenceError::WrongIssuer { resource, .. } => Self::new(ProblemType::WRONG_ISSUER)
                .detail("the store takes the tokens of another lock service only")
                .with("resource", resource.as_str()),
            other => failure(other),
        }
    }
}

/// The token was not at fault.
fn failure(error: &FenceError) -> Problem {
    match error {
        FenceError::Busy {
            source: sqlx::Error::PoolTimedOut,
        } => unavailable("the store is busy or down: send the request again, with the same token"),
        FenceError::Busy { .. } | FenceError::Serialization { .. } => {
            unavailable("others were faster: send the request again, with the same token")
        }
        FenceError::Terminated { .. } => unavailable(
            "the transaction was ended from outside: see whether the lock is still held, \
             then send the request again",
        ),
        // Only a guard in this process notices by itself: the lease was not the client's.
        FenceError::LeaseLost(_) => unavailable(
            "the service lost the lease that it held for this request: send the request again",
        ),
        FenceError::Db { source } if is_outage(source) => {
            unavailable("the store failed: send the request again, with the same token")
        }
        FenceError::CommitUnknown { .. } => Problem::new(ProblemType::OUTCOME_UNKNOWN)
            .detail("the write was sent to the store and no answer came: read before you retry")
            .with("outcome", "unknown"),
        FenceError::Aborted => Problem::new(ProblemType::SERVICE_FAULT)
            .detail(
                "the transaction had ended before its commit, and what was written after its \
                 end may be stored: the operator finds the reason in the log",
            )
            .with("outcome", "unknown"),
        _ => Problem::new(ProblemType::SERVICE_FAULT)
            .detail("nothing was written: the operator finds the reason in the log"),
    }
}

/// Fails closed: what could not be checked was not done.
pub(super) fn unavailable(detail: &str) -> Problem {
    Problem::new(ProblemType::STORE_UNAVAILABLE)
        .detail(detail)
        .retry_after(RETRY_AFTER)
}

fn about(kind: ProblemType, resource: &ResourceName, token: FencingToken) -> Problem {
    Problem::new(kind)
        .with("resource", resource.as_str())
        .with("token", token.get())
}
