//! What a service answers whose own lease was at fault, and not its client's token.

use lock_core::{ErrorKind, Operation};

use super::{Problem, ProblemType};
use crate::{FenceError, ProtectedError};

/// For handlers that acquire the lease themselves. Their client has neither a lock nor a token, so
/// it is never told to acquire or to present one: what another try may mend is a 503.
impl From<&ProtectedError> for Problem {
    fn from(error: &ProtectedError) -> Self {
        match error {
            ProtectedError::Lock(error) => of_the_lock(error),
            ProtectedError::Store(error) => of_the_store(error),
        }
    }
}

fn of_the_lock(error: &lock_core::Error) -> Problem {
    // A release comes after the write.
    if error.operation() == Operation::Release {
        return Problem::new(ProblemType::OUTCOME_UNKNOWN)
            .detail("the service could not give its lease back: read before you retry")
            .with("outcome", "unknown");
    }
    let problem = match error.kind() {
        ErrorKind::WaitTimeout | ErrorKind::QueueFull => {
            Problem::unavailable("others were before you: send the request again")
        }
        ErrorKind::Unavailable | ErrorKind::TooFewReplicas | ErrorKind::ShutDown => {
            Problem::unavailable("the service did not get its lease: send the request again")
        }
        ErrorKind::Lost | ErrorKind::Released => lost(),
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
        | FenceError::MarkLost { .. }
        | FenceError::LeaseLost(_) => lost(),
        FenceError::WrongIssuer { .. } | FenceError::Implausible { .. } => Problem::new(
            ProblemType::SERVICE_FAULT,
        )
        .detail("the store follows another lock service: the operator finds the reason in the log"),
        FenceError::Busy { .. } | FenceError::Serialization { .. } => {
            Problem::unavailable("others were faster, or the store is down: send the request again")
        }
        FenceError::Terminated { .. } => lost(),
        other => Problem::from(other),
    }
}

fn lost() -> Problem {
    Problem::unavailable(
        "the service lost the lease that it held for this request: send the request again",
    )
}
