use axum::response::{IntoResponse, Response};
use fenced_http::{Problem, ProblemType};
use fenced_store::{FenceError, FencedLockError};
use lock_core::{ErrorKind, InvalidName, InvalidTtl};

use crate::problems;

/// The reason why a handler answers with a problem document.
#[derive(Debug)]
#[non_exhaustive]
pub enum ApiError {
    /// The request is invalid, or asks for something that does not exist.
    Problem(Problem),
    /// The store refused, or failed.
    Fence(FenceError),
    /// The lock service refused, or failed.
    Lock(lock_core::Error),
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        match self {
            Self::Problem(problem) => problem.into_response(),
            Self::Fence(error) => error.into_response(),
            Self::Lock(error) => lock_problem(&error).into_response(),
        }
    }
}

/// The message of the lock service goes to the log, not to the client.
fn lock_problem(error: &lock_core::Error) -> Problem {
    let problem = match error.kind() {
        ErrorKind::InvalidInput => {
            return Problem::new(problems::UNPROCESSABLE).detail(error.to_string());
        }
        // The lock service works, so this is nothing for an operator.
        ErrorKind::Unsupported => {
            return Problem::new(problems::LOCK_LACKS_IT).detail(error.to_string());
        }
        ErrorKind::Unavailable
        | ErrorKind::TooFewReplicas
        | ErrorKind::QueueFull
        | ErrorKind::ShutDown => Problem::new(problems::LOCK_UNAVAILABLE)
            .detail("the lock service does not answer: send the request again")
            .retry_after(std::time::Duration::from_secs(1)),
        _ => Problem::new(ProblemType::SERVICE_FAULT)
            .detail("the lock service has a fault: the operator finds the reason in the log"),
    };
    let source = std::error::Error::source(error).map(tracing::field::display);
    tracing::error!(%error, source, "the lock service failed");
    problem
}

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl From<FenceError> for ApiError {
    fn from(error: FenceError) -> Self {
        Self::Fence(error)
    }
}

impl From<sqlx::Error> for ApiError {
    fn from(error: sqlx::Error) -> Self {
        Self::Fence(error.into())
    }
}

impl From<lock_core::Error> for ApiError {
    fn from(error: lock_core::Error) -> Self {
        Self::Lock(error)
    }
}

impl From<FencedLockError> for ApiError {
    fn from(error: FencedLockError) -> Self {
        match error {
            FencedLockError::Lock(error) => Self::Lock(error),
            FencedLockError::Store(error) => Self::Fence(error),
            // A later version may have further variants.
            _ => Self::Problem(Problem::new(ProblemType::SERVICE_FAULT)),
        }
    }
}

impl From<InvalidName> for ApiError {
    fn from(error: InvalidName) -> Self {
        Self::Problem(Problem::new(problems::MALFORMED).detail(error.to_string()))
    }
}

impl From<InvalidTtl> for ApiError {
    fn from(error: InvalidTtl) -> Self {
        Self::Problem(Problem::new(problems::UNPROCESSABLE).detail(error.to_string()))
    }
}
