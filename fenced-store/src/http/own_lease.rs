//! What a service answers whose own lease was at fault, and not its client's token.

use fenced_http::{Problem, ProblemType};
use lock_core::{ErrorKind, Operation};

use super::{outage::is_outage, store_problem::unavailable};
use crate::{FenceError, ProtectedError};

/// For handlers that acquire the lease themselves. Their client has neither a lock nor a token, so
/// it is never told to acquire or to present one. What another try may mend is a 503; where the
/// write may have been made, as when the lease was lost while the handler was at work, it is a 504.
impl From<&ProtectedError> for Problem {
    fn from(error: &ProtectedError) -> Self {
        match error {
            ProtectedError::Lock(error) => of_the_lock(error),
            ProtectedError::Store(error) => of_the_store(error),
        }
    }
}

fn of_the_lock(error: &lock_core::Error) -> Problem {
    // Whatever comes after the acquisition may come after the write.
    if !matches!(error.operation(), Operation::Connect | Operation::Acquire) {
        return unknown();
    }
    let problem = match error.kind() {
        ErrorKind::WaitTimeout | ErrorKind::QueueFull => {
            unavailable("others were before you: send the request again")
        }
        ErrorKind::Unavailable
        | ErrorKind::TooFewReplicas
        | ErrorKind::Released
        | ErrorKind::Lost
        | ErrorKind::ShutDown => {
            unavailable("the service did not get its lease: send the request again")
        }
        _ => {
            return Problem::new(ProblemType::SERVICE_FAULT).detail(
                "the service cannot use its lock service: the operator finds the reason in the log",
            );
        }
    };
    match error.retry_after() {
        Some(after) => problem.retry_after(after),
        None => problem,
    }
}

fn of_the_store(error: &FenceError) -> Problem {
    match error {
        FenceError::Stale { .. }
        | FenceError::DuplicateToken { .. }
        | FenceError::NotClaimed { .. }
        | FenceError::MarkLost { .. } => unavailable(
            "the service lost the lease that it held for this request: send the request again",
        ),
        // Also said by whoever gave up a section in the middle of its commit.
        FenceError::LeaseLost(_) => unknown(),
        FenceError::WrongIssuer { .. } | FenceError::Implausible { .. } => Problem::new(
            ProblemType::SERVICE_FAULT,
        )
        .detail("the store follows another lock service: the operator finds the reason in the log"),
        FenceError::Busy { .. } | FenceError::Serialization { .. } => {
            unavailable("others were faster, or the store is down: send the request again")
        }
        FenceError::Terminated { .. } => {
            unavailable("the transaction was ended from outside: send the request again")
        }
        FenceError::Db { source } if is_outage(source) => {
            unavailable("the store failed: send the request again")
        }
        other => Problem::from(other),
    }
}

fn unknown() -> Problem {
    Problem::new(ProblemType::OUTCOME_UNKNOWN)
        .detail("the service lost its lease at work, or could not end well: read before you retry")
        .with("outcome", "unknown")
}
