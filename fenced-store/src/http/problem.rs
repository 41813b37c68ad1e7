//! Errors as problem documents of HTTP. The text of a document is not the text of the error,
//! because messages of a database or a lock service belong in the log.

use std::time::Duration;

use fenced_http::{Problem, ProblemType};
use lock_core::{ErrorKind, FencingToken, Operation};

use super::outage::is_outage;
use crate::{FenceError, FencedLockError, error::classify::is_no_connection};

/// The pause before another try, if the error names none.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The subject of an error. It decides the answer of a service that has acquired the lease itself,
/// for a client without a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    /// The grant: a newer one has replaced it, or it was never claimed.
    Grant,
    /// The lock service that has issued the grant.
    LockService,
    /// A lease that this service held, and not its client. Only a guard reports this error.
    Lease,
    /// The present state of the service: another try may succeed.
    Moment,
    /// The result of the write, which is unknown.
    Outcome,
    /// The service, its database or its program.
    Service,
}

/// The table: the type of problem of an error, the description, and the subject.
fn described(error: &FenceError) -> (ProblemType, &'static str, About) {
    use About::{Grant, Lease, LockService, Moment, Outcome, Service};

    const UNAVAILABLE: ProblemType = ProblemType::STORE_UNAVAILABLE;
    match error {
        FenceError::Stale { .. } => (
            ProblemType::TOKEN_STALE,
            "a later holder has taken over and this token will never be accepted again: acquire \
             the lock again and start afresh",
            Grant,
        ),
        FenceError::DuplicateToken { .. } => (
            ProblemType::HOLDER_CONFLICT,
            "another holder has claimed the same token, so the lock service issued it twice: \
             acquire the lock again, and tell its operator",
            Grant,
        ),
        FenceError::NotClaimed { .. } => (
            ProblemType::TOKEN_NOT_CLAIMED,
            "the token must be claimed in the store once, right after acquiring \
             (`FencedLocks::acquire` does both, `LockManager::acquire` alone does not)",
            Grant,
        ),
        FenceError::MarkLost { .. } => (
            ProblemType::MARK_LOST,
            "the store has forgotten the claim of this token: acquire the lock again and start \
             afresh",
            Grant,
        ),
        FenceError::Implausible { .. } => (
            ProblemType::TOKEN_IMPLAUSIBLE,
            "the fencing token is too far ahead to have been issued",
            LockService,
        ),
        FenceError::WrongIssuer { .. } => (
            ProblemType::WRONG_ISSUER,
            "the store takes the tokens of another lock service only",
            LockService,
        ),
        FenceError::LeaseLost(_) => (UNAVAILABLE, LEASE_LOST, Lease),
        FenceError::Busy { source } if is_no_connection(source) => {
            (UNAVAILABLE, "the store is busy or down", Moment)
        }
        FenceError::Busy { .. } | FenceError::Serialization { .. } => {
            (UNAVAILABLE, "others were faster", Moment)
        }
        FenceError::Terminated { .. } => (
            UNAVAILABLE,
            "the transaction was ended from outside",
            Moment,
        ),
        FenceError::Db { source } if is_outage(source) => (UNAVAILABLE, "the store failed", Moment),
        FenceError::CommitUnknown { .. } => (
            ProblemType::OUTCOME_UNKNOWN,
            "the write was sent to the store and no answer came: read before you retry",
            Outcome,
        ),
        FenceError::Aborted => (
            ProblemType::SERVICE_FAULT,
            "the transaction had ended before its commit, and writes after its end may be \
             stored: the operator finds the reason in the log",
            Outcome,
        ),
        _ => (
            ProblemType::SERVICE_FAULT,
            "nothing was written: the operator finds the reason in the log",
            Service,
        ),
    }
}

const LEASE_LOST: &str = "the service lost the lease that it held for this request";

/// The answer of a service whose client has sent the token.
impl From<&FenceError> for Problem {
    fn from(error: &FenceError) -> Self {
        let (kind, detail, about) = described(error);
        let problem = match about {
            About::Moment | About::Lease => again(detail),
            About::Outcome => Self::new(kind).detail(detail).with("outcome", "unknown"),
            About::Service => Self::new(kind).detail(detail),
            About::Grant | About::LockService => {
                let resource = error.resource().map(|resource| resource.as_str());
                Self::new(kind).detail(detail).with("resource", resource)
            }
        };
        let problem = match presented(error) {
            Some(token) => problem.with("token", token.get()),
            None => problem,
        };
        match error {
            FenceError::Stale { high_water, .. } => problem.high_water(*high_water),
            _ => problem,
        }
    }
}

const fn presented(error: &FenceError) -> Option<FencingToken> {
    match error {
        FenceError::Stale { presented, .. }
        | FenceError::DuplicateToken { presented, .. }
        | FenceError::NotClaimed { presented, .. }
        | FenceError::MarkLost { presented, .. }
        | FenceError::Implausible { presented, .. } => Some(*presented),
        _ => None,
    }
}

/// The answer of a handler that acquires the lease itself. Its client has neither a lock nor a
/// token, so the answer never asks it to acquire or present one. It is a 503 if another try may
/// succeed, and a 504 if the write may have been made, such as after a lease that was lost during
/// the work.
impl From<&FencedLockError> for Problem {
    fn from(error: &FencedLockError) -> Self {
        let error = match error {
            FencedLockError::Lock(error) => return of_the_lock(error),
            FencedLockError::Store(error) => error,
        };
        match described(error) {
            (_, detail, About::Moment) => again(detail),
            (_, _, About::Grant) => again(LEASE_LOST),
            // A section that was given up in the middle of its commit has this error, too.
            (_, _, About::Lease) => lost_at_work(),
            (_, _, About::LockService) => fault("the store follows another lock service"),
            (_, _, About::Outcome | About::Service) => Self::from(error),
        }
    }
}

fn of_the_lock(error: &lock_core::Error) -> Problem {
    // An error after the acquisition may come after the write.
    if !matches!(error.operation(), Operation::Connect | Operation::Acquire) {
        return lost_at_work();
    }
    let problem = match error.kind() {
        ErrorKind::WaitTimeout | ErrorKind::QueueFull => again("others were before you"),
        ErrorKind::Unavailable
        | ErrorKind::TooFewReplicas
        | ErrorKind::Released
        | ErrorKind::Lost
        | ErrorKind::ShutDown => again("the service did not get its lease"),
        _ => return fault("the service cannot use its lock service"),
    };
    match error.retry_after() {
        Some(after) => problem.retry_after(after),
        None => problem,
    }
}

fn lost_at_work() -> Problem {
    Problem::new(ProblemType::OUTCOME_UNKNOWN)
        .detail("the service lost its lease, or its release failed: read before you retry")
        .with("outcome", "unknown")
}

fn fault(what: &str) -> Problem {
    Problem::new(ProblemType::SERVICE_FAULT)
        .detail(format!("{what}: the operator finds the reason in the log"))
}

/// Fails closed: a write that could not be checked was not made.
fn again(what: &str) -> Problem {
    Problem::new(ProblemType::STORE_UNAVAILABLE)
        .detail(format!("{what}: send the same request again"))
        .retry_after(RETRY_AFTER)
}
