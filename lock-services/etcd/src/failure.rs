use std::{error::Error as StdError, io};

use tonic::{Code, Status};

use lock_core::{Error, ErrorKind, backend::support::RuntimeEnded};

/// Why a call has failed, and whether it may have happened nevertheless.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    status: Status,
    /// This or an earlier attempt of the call may have been carried out.
    sent: bool,
}

impl From<RuntimeEnded> for Failure {
    fn from(ended: RuntimeEnded) -> Self {
        Self::new(Status::failed_precondition(ended.to_string()), true)
    }
}

/// The next step after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remedy {
    /// Ask another node, or the same node later.
    Again,
    /// Log in first: the server has forgotten us, or an operator has changed the rights.
    LogIn,
    /// There is no remedy: the same answer would come again.
    None,
}

/// The first cause, such as a refused connection. The client library's own text does not help
/// people.
fn first_cause(status: &Status) -> Option<&(dyn StdError + 'static)> {
    let mut cause = status.source()?;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    Some(cause)
}

/// etcd's answer to a request for a lease that exists.
const LEASE_EXISTS: &str = "lease already exists";
/// etcd's answer to the use of a lease that does not exist.
const NO_LEASE: &str = "requested lease not found";
/// etcd's answer to each write when its space is used up.
const NO_SPACE: &str = "database space exceeded";
/// etcd's answer to the token of a login that is no longer valid.
const OLD_LOGIN: [&str; 2] = ["invalid auth token", "revision of auth store is old"];

impl Failure {
    pub(super) const fn new(status: Status, sent: bool) -> Self {
        Self { status, sent }
    }

    /// Whether the call may have happened, or may happen later.
    pub(super) const fn was_sent(&self) -> bool {
        self.sent
    }

    pub(super) fn lease_exists(&self) -> bool {
        self.status.message().contains(LEASE_EXISTS)
    }

    pub(super) fn no_lease(&self) -> bool {
        self.status.message().contains(NO_LEASE)
    }

    /// Whether etcd has no space: nothing was written, but deletions work.
    pub(super) fn no_space(&self) -> bool {
        self.status.message().contains(NO_SPACE)
    }
}

/// The meaning of the failure for the operation.
impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let (kind, detail) = meaning(&failure.status);
        let error = if failure.sent {
            Self::unknown(kind)
        } else {
            Self::not_applied(kind)
        };
        match first_cause(&failure.status) {
            Some(cause) => error.because(detail).caused_by(cause.to_string()),
            None => error.because(detail),
        }
    }
}

/// The next step after the answer of a node, or its silence.
pub(super) fn remedy(status: &Status) -> Remedy {
    if OLD_LOGIN.iter().any(|old| status.message().contains(old)) {
        return Remedy::LogIn;
    }
    match status.code() {
        Code::Unavailable
        | Code::DeadlineExceeded
        | Code::Cancelled
        | Code::Unknown
        | Code::Internal
        | Code::Aborted => Remedy::Again,
        // "too many requests": the log of the node has too many entries that are not applied yet.
        Code::ResourceExhausted if status.message().contains("too many requests") => Remedy::Again,
        _ => Remedy::None,
    }
}

/// Whether the call may have been carried out although it returned this status.
pub(super) fn may_have_run(status: &Status) -> bool {
    remedy(status) == Remedy::Again && !refused(status)
}

/// Whether the connection was refused, or a node without a leader refused before it did anything.
fn refused(status: &Status) -> bool {
    let mut source = status.source();
    while let Some(error) = source {
        let io = error.downcast_ref::<io::Error>();
        if io.is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            return true;
        }
        source = error.source();
    }
    status.message().contains("etcdserver: no leader")
}

fn meaning(status: &Status) -> (ErrorKind, String) {
    let says = || format!("the server says {:?}", status.message());
    match status.code() {
        Code::PermissionDenied => (
            ErrorKind::Refused,
            format!(
                "{}: the user lacks a right that palisade_etcd lists",
                says()
            ),
        ),
        Code::InvalidArgument if status.message().contains("user name is empty") => (
            ErrorKind::Refused,
            "the server asks for a user and a password: put them into the URL".to_owned(),
        ),
        Code::InvalidArgument if status.message().contains("authentication failed") => {
            (ErrorKind::Refused, "user or password is wrong".to_owned())
        }
        Code::DeadlineExceeded => (ErrorKind::Unavailable, "no answer in time".to_owned()),
        // The failure passes when an operator has made room.
        Code::ResourceExhausted if status.message().contains(NO_SPACE) => (
            ErrorKind::Unavailable,
            "etcd has no space and writes nothing (alarm NOSPACE): compact its history, defragment \
             it and disarm the alarm"
                .to_owned(),
        ),
        Code::ResourceExhausted => (ErrorKind::Unavailable, says()),
        _ if refused(status) => (
            ErrorKind::Unavailable,
            "the connection was refused, or there is no leader".to_owned(),
        ),
        _ if remedy(status) != Remedy::None => (ErrorKind::Unavailable, says()),
        _ => (ErrorKind::Refused, says()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lock_core::Outcome;

    fn error(status: Status, sent: bool) -> Error {
        Failure::new(status, sent).into()
    }

    /// Catches: a call is given up because its login has expired, or a cluster without space is
    /// asked again and again.
    #[test]
    fn a_failure_that_passes_is_tried_again_and_no_other() {
        for (status, expected) in [
            (
                Status::unavailable("etcdserver: request timed out"),
                Remedy::Again,
            ),
            (
                Status::unauthenticated("etcdserver: invalid auth token"),
                Remedy::LogIn,
            ),
            (
                Status::invalid_argument("etcdserver: revision of auth store is old"),
                Remedy::LogIn,
            ),
            (
                Status::permission_denied("etcdserver: permission denied"),
                Remedy::None,
            ),
            (
                Status::resource_exhausted("etcdserver: mvcc: database space exceeded"),
                Remedy::None,
            ),
            (
                Status::resource_exhausted("etcdserver: too many requests"),
                Remedy::Again,
            ),
        ] {
            assert_eq!(remedy(&status), expected, "{status:?}");
        }
    }

    /// Catches: the outcome "not applied" for a request that the node may have passed on.
    #[test]
    fn the_outcome_is_unknown_if_anything_was_sent() {
        let timeout = || Status::unavailable("etcdserver: request timed out");
        assert!(may_have_run(&timeout()));
        assert!(!may_have_run(&Status::unavailable("etcdserver: no leader")));
        assert!(!may_have_run(&Status::permission_denied("no")));
        assert_eq!(error(timeout(), true).outcome(), Outcome::Unknown);
        let denied = error(Status::permission_denied("no"), false);
        assert_eq!(
            (denied.kind(), denied.outcome()),
            (ErrorKind::Refused, Outcome::NotApplied)
        );
    }
}
